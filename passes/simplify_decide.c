/* simplify_decide.c: comparisons of indices that follow from the node's ranges, domain and guard and
 * the launch checks become constants; see simplify.c. */
#include "ir/prove.h"
#include "passes/expr_map.h"
#include "passes/simplify.h"

enum { MAX_QUESTIONS = 3000 }; /* a proof that fails costs up to a millisecond */

typedef struct {
	Simplify *s;
	Facts *facts;
	unsigned left;
	const bool *open; /* by ExprId, those there were at the start: holds a comparison of indices */
	uint32_t nopen;
} Decide;

static bool
is_integer_comparison(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	return (p->op == OP_LT || p->op == OP_LE || p->op == OP_EQ || p->op == OP_NE) &&
	       expr_get(g, expr_arg(g, e, 0))->dtype == DT_I64;
}

/* Operands have smaller ids, so one walk up the pool tells which expressions hold a comparison. */
static const bool *
find_open(const Graph *g, Arena *scratch)
{
	bool *open = ARENA_ARRAY(scratch, bool, g->expr.n);
	for (ExprId e = 1; e < g->expr.n; e++) {
		open[e] = is_integer_comparison(g, e);
		for (unsigned k = 0; k < expr_get(g, e)->narg; k++)
			open[e] |= open[expr_arg(g, e, k)];
	}
	return open;
}

static bool
is_open(const Decide *d, ExprId e)
{
	return e && (e >= d->nopen || d->open[e]);
}

static ExprId
decide_step(void *user, Graph *g, ExprId e)
{
	Decide *d = user;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_LT && p->op != OP_LE && p->op != OP_EQ && p->op != OP_NE)
		return e;
	ExprId a = expr_arg(g, e, 0), b = expr_arg(g, e, 1);
	Arena *scratch = d->s->cx->scratch;
	if (d->left == 0 || !expr_is_index(g, scratch, a) || !expr_is_index(g, scratch, b))
		return e;
	d->left--;
	bool yes = prove(d->facts, e), no = !yes && prove(d->facts, expr_unary(g, OP_NOT, e));
	if ((!yes && !no) || !spend(d->s->cx))
		return e;
	d->s->done++;
	return expr_int(g, DT_BOOL, yes);
}

static ExprId
decide(Decide *d, Graph *g, ExprId e)
{
	return is_open(d, e) ? expr_map(g, d->s->cx->scratch, e, decide_step, d) : e;
}

/* A conjunction, from left to right: each conjunct is decided where those before it hold. All of them
 * stay on the stack of facts. */
static ExprId
decide_conjuncts(Decide *d, Graph *g, ExprId cond)
{
	if (!cond)
		return 0;
	ExprId out;
	if (expr_get(g, cond)->op == OP_AND) {
		ExprId right = expr_arg(g, cond, 1);
		ExprId a = decide_conjuncts(d, g, expr_arg(g, cond, 0)), b = decide_conjuncts(d, g, right);
		bool drop_a = expr_get(g, a)->op == OP_CONST && expr_get(g, a)->imm.i;
		bool drop_b = expr_get(g, b)->op == OP_CONST && expr_get(g, b)->imm.i;
		return drop_a ? b : drop_b ? a : expr_binary(g, OP_AND, a, b);
	}
	out = decide(d, g, cond);
	facts_push(d->facts, cond);
	return out;
}

static void
push_launch_facts(Graph *g, Facts *f)
{
	ExprId zero = expr_int(g, DT_I64, 0);
	for (DimId d = 1; d < g->dim.n; d++)
		if (g->dim.at[d].axis >= 0) /* an extent, but maybe scaled */
			facts_push(f, expr_binary(g, OP_LE, zero,
			                          expr_binary(g, OP_ADD,
			                                      expr_binary(g, OP_MUL, expr_dim(g, d),
			                                                  expr_int(g, DT_I64, g->dim.at[d].scale)),
			                                      expr_int(g, DT_I64, g->dim.at[d].offset))));
	for (uint32_t k = 0; k < g->check.n; k++)
		facts_push(f, g->check.at[k].cond);
}

static void
push_ranges(Graph *g, Facts *f, const Node *n, unsigned lo, unsigned hi)
{
	ExprId zero = expr_int(g, DT_I64, 0);
	for (unsigned k = lo; k < hi; k++) {
		ExprId axis = expr_axis(g, k);
		if (k < n->npar)
			facts_push_range(f, axis, zero, g->tensor.at[n->out].extent[k]);
		else
			facts_push_range(f, axis, n->axis[k].lo, n->axis[k].hi);
		if (n->axis[k].clamp) {
			facts_push(f, expr_binary(g, OP_LT, axis, n->axis[k].clamp));
			facts_push(f, expr_binary(g, OP_LE, zero, axis));
		}
	}
}

/* A scatter's guard and body know nothing of the element they go to. */
static void
decide_node(Decide *d, Graph *g, uint32_t i)
{
	Node n = g->node.at[i];
	uint32_t mark = facts_mark(d->facts);
	push_ranges(g, d->facts, &n, 0, n.npar);
	n.domain = decide_conjuncts(d, g, n.domain);
	n.finish = decide(d, g, n.finish);
	if (n.scatter)
		facts_pop(d->facts, mark);
	push_ranges(g, d->facts, &n, n.npar, (unsigned)n.npar + n.nred);
	n.guard = decide_conjuncts(d, g, n.guard);
	n.body = decide(d, g, n.body);
	facts_pop(d->facts, mark);
	g->node.at[i] = n;
}

/* The launch checks are facts here, so they themselves are left as they are. */
void
simplify_decided(Simplify *s, Graph *g)
{
	Decide d = {s, facts_new(g, g->arena), MAX_QUESTIONS, find_open(g, s->cx->scratch), g->expr.n};
	push_launch_facts(g, d.facts);
	for (uint32_t i = 0; i < g->node.n && d.left > 0; i++) {
		const Node *n = &g->node.at[i];
		if (is_open(&d, n->domain) || is_open(&d, n->guard) || is_open(&d, n->body) || is_open(&d, n->finish))
			decide_node(&d, g, i);
	}
}
