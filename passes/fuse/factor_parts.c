/* factor_parts.c: what depends on fewer axes than a factor of a contraction has is computed once for each point of these,
 * not for each element that fills a panel: the root of a row's mean square, by which the row's elements are divided.
 *
 * in     groups of nodes, each a kernel by rows (group.c), for a processor
 * out    factors of contractions, and pointwise nodes that contractions read, have such parts as elements of nodes over the
 *        axes of the part alone. Whether these are computed in the panels after all is fill_panels.c's to say; what is
 *        stored although it might have been computed there takes its parts back
 * fp     exact: a node has the type of its expression, so nothing is rounded on the way
 * tests  tests/fuse/kernels.tex, tests/text/explain_panels.tex, tests/random
 *
 * A part takes no less time than the read that is left of it. It is evaluated at every point, asked for or not, so all that it
 * reads must be there, without a fault. */
#include "passes/fuse/group.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/retarget.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/op_cost.h"

/* Of an expression that was met, by ExprId. */
typedef struct {
	uint32_t axes; /* as bits */
	bool wanted;   /* it is no part, nor inside of one */
} Met;

typedef struct {
	Graph *g;
	PassCtx *cx;
	const bool *faulty, *results;
	const Groups *groups;
	bool *point;         /* by TensorId: a pointwise node, of a kernel by rows, that contractions read */
	uint32_t nnode;      /* that there were */
	VEC(uint32_t) owner; /* of new nodes, as nodes_in_order has them */
	/* of the expression at work */
	ExprId extent[TG_MAX_AXES];
	VEC(ExprId) inside;  /* all of it, operands first */
	VEC(Met) met;
	unsigned units;
} Parts;

/* --- whose --- */

static bool
is_contraction(const Parts *s, TensorId t, Factors *f)
{
	KernelPlan plan = {0};
	RemarkId why;
	return !s->groups->of[t] && contract_is_sum_of_products(s->g, t) &&
	       contract_takes(s->g, s->cx->scratch, s->faulty, t, s->cx->options, &plan, &why) &&
	       contract_factors(s->g, s->cx->scratch, s->faulty, t, f, &why);
}

static void
note_point(void *user, ExprId e)
{
	Parts *s = user;
	const Expr *p = expr_get(s->g, e);
	if (p->op != OP_READ || s->g->tensor.at[p->ref].kind != TENSOR_NODE || !s->groups->of[p->ref])
		return;
	s->point[p->ref] |= !group_is_closed(&s->groups->group.at[s->groups->of[p->ref] - 1]) && !s->results[p->ref] &&
	                    point_may_move(s->g, tensor_node(s->g, p->ref));
}

static void
find_points(Parts *s)
{
	Factors f;
	for (uint32_t i = 0; i < s->nnode; i++)
		if (is_contraction(s, s->g->node.at[i].out, &f))
			expr_walk(s->g, s->cx->scratch, s->g->node.at[i].body, note_point, s);
}

/* --- what is a part --- */

static void
note_expr(void *user, ExprId e)
{
	Parts *s = user;
	const Expr *p = expr_get(s->g, e);
	uint32_t axes = p->op == OP_AXIS && p->ref < 32 ? 1u << p->ref : 0;
	for (unsigned k = 0; k < p->narg; k++)
		axes |= s->met.at[expr_arg(s->g, e, k)].axes;
	s->met.at[e] = (Met){.axes = axes};
	vec_push(s->cx->scratch, &s->inside, e);
}

static void
add_units(void *user, ExprId e)
{
	Parts *s = user;
	const Expr *p = expr_get(s->g, e);
	s->units += s->met.at[e].axes && p->op != OP_READ && p->dtype != DT_I64 ? expr_cost(s->g, e).vector : 0;
}

static bool
is_part(Parts *s, ExprId e, uint32_t of)
{
	const Expr *p = expr_get(s->g, e);
	if (!s->met.at[e].axes || s->met.at[e].axes == of || op_info[p->op].cls != CLASS_MAP || !dtype_is_float((DType)p->dtype))
		return false;
	for (unsigned a = 0; a < TG_MAX_AXES; a++)
		if ((s->met.at[e].axes >> a & 1) && !s->extent[a])
			return false;
	s->units = 0;
	expr_walk(s->g, s->cx->scratch, e, add_units, s);
	return s->units >= op_cost_read.vector &&
	       (expr_is_whole(s->g, s->cx->scratch, s->faulty, e, s->extent) || BUG(part_beyond_bounds));
}

/* Of each axis of the node that is counted from 0 to what a launch knows. */
static void
set_extents(Parts *s, const Node *n)
{
	for (unsigned a = 0; a < TG_MAX_AXES; a++) {
		const Axis *x = &n->axis[a];
		bool own = a < n->npar, counted = !own && a < (unsigned)n->npar + n->nred && !x->clamp &&
		           expr_get(s->g, x->lo)->op == OP_CONST && expr_get(s->g, x->lo)->imm.i == 0 &&
		           expr_is_of_launch(s->g, s->cx->scratch, x->hi);
		s->extent[a] = own ? s->g->tensor.at[n->out].extent[a] : counted ? x->hi : 0;
	}
}

/* --- the nodes --- */

static void
take_part(Parts *s, uint32_t i, ExprId e)
{
	const Node n = s->g->node.at[i];
	bool fresh;
	ExprId element = expr_apart(s->g, s->cx->scratch, &n, e, s->nnode, &fresh);
	ExprId body = expr_replace(s->g, s->cx->scratch, n.body, e, element);
	s->g->node.at[i].body = body;
	if (fresh)
		vec_push(s->cx->scratch, &s->owner, i);
}

/* The largest parts of e, in the body of the i-th node, with fewer axes than these. */
static void
take_parts(Parts *s, uint32_t i, ExprId e, uint32_t axes)
{
	s->inside.n = 0;
	expr_walk(s->g, s->cx->scratch, e, note_expr, s);
	s->met.at[e].wanted = true;
	for (uint32_t k = s->inside.n; k-- > 0;) {
		ExprId x = s->inside.at[k];
		if (!s->met.at[x].wanted)
			continue;
		if (is_part(s, x, axes)) {
			if (spend(s->cx))
				take_part(s, i, x);
			continue;
		}
		for (unsigned a = 0; a < expr_get(s->g, x)->narg; a++)
			s->met.at[expr_arg(s->g, x, a)].wanted = true;
	}
}

static void
look_at(Parts *s, uint32_t i)
{
	const Node n = s->g->node.at[i];
	Factors f;
	bool product = is_contraction(s, n.out, &f);
	if (!product && !s->point[n.out])
		return;
	set_extents(s, &n);
	if (s->met.n < s->g->expr.n)
		vec_grow(s->cx->scratch, &s->met, s->g->expr.n - s->met.n);
	if (!product) {
		take_parts(s, i, n.body, (1u << n.npar) - 1);
		return;
	}
	take_parts(s, i, f.row, expr_axes(s->g, s->cx->scratch, f.row));
	take_parts(s, i, f.column, expr_axes(s->g, s->cx->scratch, f.column));
}

const bool *
factor_parts(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, const Groups *groups)
{
	Parts s = {.g = g, .cx = cx, .faulty = faulty, .results = results, .groups = groups, .nnode = g->node.n};
	s.point = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	find_points(&s);
	for (uint32_t i = 0; i < s.nnode; i++)
		look_at(&s, i);
	if (!s.owner.n)
		return NULL;
	nodes_in_order(g, cx->scratch, s.nnode, s.owner.at, s.owner.n);
	bool *part = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	for (uint32_t k = 0; k < s.owner.n; k++)
		part[g->node.at[s.owner.at[k] + k].out] = true;
	return part;
}

/* --- back --- */

typedef struct {
	const bool *part;
	bool some;
} Back;

static ExprId
body_of_part(void *user, Graph *g, ExprId e)
{
	Back *b = user;
	const Expr p = *expr_get(g, e);
	if (p.op != OP_READ || !b->part[p.ref])
		return e;
	b->some = true;
	return expr_at_read(g, tensor_node(g, p.ref)->body, e);
}

uint32_t
factor_parts_back(Graph *g, const bool *part)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < g->node.n; i++) {
		Back b = {.part = part};
		if (!point_may_move(g, &g->node.at[i]))
			continue;
		ExprId body = expr_rewrite(g, g->node.at[i].body, body_of_part, &b);
		g->node.at[i].body = body;
		done += b.some;
	}
	return done;
}
