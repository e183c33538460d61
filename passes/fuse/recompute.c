/* recompute.c: a pointwise node that other kernels read is computed by them again, where that takes less time
 * than to store it and to read it back.
 *
 * in     groups of nodes, each a kernel by rows (group.c)
 * out    no plain read of the node by an open node of another group, or, inside, by any open node; the nodes stay,
 *        perhaps unused
 * fp     exact: an element is the same expression, rounded to the same type, wherever it is computed
 * tests  tests/text/explain_cost.tex, tests/fuse/kernels.tex, tests/random
 *
 * Why a read may become the body at its subscripts is in inline_points.c, which has done so where it costs next to
 * nothing whatever shares a kernel. Here it is known what does: the elements are computed once more for each
 * kernel, by the operations of op_cost.h at the machine's rate, and neither written nor read, at its rate to
 * memory. What else the kernels read then is not counted here: who asks compares the divisions before and
 * after. Three kernels or more read what is stored. Inside, the nodes of its own kernel compute it again as well: a
 * kernel that has no room to keep it between its phases could not take in the readers otherwise. */
#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "passes/fuse/group.h"
#include "passes/schedule/op_cost.h"
#include "passes/schedule/schedule.h"

enum { MAX_SIZE = 100 /* expressions of a body */, MAX_KERNELS = 2 };

typedef struct {
	Graph *g;
	PassCtx *cx;
	const Groups *groups;
	bool *chosen;      /* by TensorId */
	bool *checked;     /* by TensorId: some read of it is not a plain one, or not by an open node */
	uint32_t *kernel[MAX_KERNELS + 1]; /* by TensorId: other groups that read it, 0: none */
	bool inside;
	uint32_t group;    /* of the node at work */
	uint32_t size, units;
} Recompute;

/* --- who reads it --- */

static void
note_read(void *user, ExprId e)
{
	Recompute *s = user;
	const Expr *p = expr_get(s->g, e);
	if (p->op != OP_READ || s->g->tensor.at[p->ref].kind != TENSOR_NODE)
		return;
	bool own = s->groups->of[p->ref] == s->group;
	if (!own || s->inside)
		s->checked[p->ref] |= p->access != 0 || s->group == 0;
	if (own)
		return;
	unsigned k = 0;
	while (k < MAX_KERNELS && s->kernel[k][p->ref] && s->kernel[k][p->ref] != s->group)
		k++;
	s->kernel[k][p->ref] = s->group;
}

/* The group of an open node; 0: it is not open. */
static uint32_t
open_group(const Groups *groups, TensorId t)
{
	uint32_t of = groups->of[t];
	return of && !group_is_closed(&groups->group.at[of - 1]) ? of : 0;
}

static void
find_readers(Recompute *s)
{
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		s->group = open_group(s->groups, s->g->node.at[i].out);
		node_walk(s->g, s->cx->scratch, &s->g->node.at[i], note_read, s);
	}
}

/* --- whether it pays --- */

static void
count_expr(void *user, ExprId e)
{
	Recompute *s = user;
	const Expr *p = expr_get(s->g, e);
	s->size++;
	s->units += p->op != OP_READ && p->dtype != DT_I64 ? expr_cost(s->g, e).vector : 0;
}

static bool
pays(Recompute *s, TensorId t)
{
	const Machine *m = cost_machine(s->cx->options->blocks, s->cx->options->lanes);
	unsigned kernels = 0;
	while (kernels <= MAX_KERNELS && s->kernel[kernels][t])
		kernels++;
	if (!m || kernels == 0 || kernels > MAX_KERNELS)
		return false;
	s->size = s->units = 0;
	expr_walk(s->g, s->cx->scratch, tensor_node(s->g, t)->body, count_expr, s);
	double bytes = dtype_info[s->g->tensor.at[t].dtype].bits / 8.0;
	double computed = kernels * (s->units * m->slower / UNITS_A_NS), moved = (1 + kernels) * bytes / m->far;
	return s->size <= MAX_SIZE && computed < moved;
}

static bool
may_choose(const Recompute *s, const Node *n)
{
	bool product = expr_get(s->g, n->body)->op == OP_MUL; /* which a strict sum must not come to take as its own */
	return point_may_move(s->g, n) && open_group(s->groups, n->out) && !s->checked[n->out] &&
	       !(s->g->fp == FP_STRICT && product);
}

/* --- the rewrite --- */

static ExprId
replace_read(void *user, Graph *g, ExprId e)
{
	const Recompute *s = user;
	const Expr p = *expr_get(g, e);
	if (p.op != OP_READ || !s->chosen[p.ref] || (s->groups->of[p.ref] == s->group && !s->inside))
		return e;
	return expr_at_read(g, tensor_node(g, p.ref)->body, e);
}

static void
rewrite_node(Recompute *s, uint32_t i)
{
	Node n = s->g->node.at[i];
	ExprId *const root[] = {&n.guard, &n.body, &n.finish, &n.domain, &n.init};
	s->group = open_group(s->groups, n.out);
	for (unsigned k = 0; s->group && k < sizeof root / sizeof *root; k++)
		if (*root[k])
			*root[k] = expr_rewrite(s->g, *root[k], replace_read, s);
	s->g->node.at[i] = n;
}

uint32_t
recompute_points(Graph *g, PassCtx *cx, const Groups *groups, const bool *results, bool inside)
{
	uint32_t done = 0;
	Recompute s = {.g = g, .cx = cx, .groups = groups, .inside = inside};
	s.chosen = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	s.checked = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	for (unsigned k = 0; k <= MAX_KERNELS; k++)
		s.kernel[k] = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n);
	find_readers(&s);
	for (uint32_t i = 0; i < g->node.n; i++) { /* in order, so that what is chosen has taken in what it reads */
		if (done)
			rewrite_node(&s, i);
		const Node *n = &g->node.at[i];
		if (results[n->out] || !may_choose(&s, n) || !pays(&s, n->out) || !spend(cx))
			continue;
		s.chosen[n->out] = true;
		done++;
	}
	return done;
}
