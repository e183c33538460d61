/* pick_term.c: a fold over an index that can have one value only is what it has there.
 *
 * in     any graph
 * out    sum over k where k == e, e without k, is the term at k = e, or what an empty fold is where e
 *        is outside of k's range; a fold over more indices keeps the others
 * needs  FACT_FAULTS: e is looked at for every element, so it must not fault
 * fp     exact
 * tests  tests/passes/pass_graphs.c, tests/text/pass_pick_term.tex
 *
 * The bits are the same: terms that are left keep their order, a sum of one term is that term, and one of
 * none is +0. The condition must be the guard's first, unless e reads nothing: a later one may rely on
 * those before it to keep its reads in bounds. An empty range asked for no e, so it is looked at before. */
#include "passes/expr_map.h"
#include "ir/bugs.h"
#include "passes/pass_ctx.h"

typedef struct {
	unsigned axis;
	ExprId at;    /* what the axis is equal to */
	ExprId equal; /* the conjunct that says so */
} Pick;

typedef struct {
	const Graph *g;
	Op op;
	bool found;
} Search;

static void
look(void *user, ExprId e)
{
	Search *s = user;
	s->found |= expr_get(s->g, e)->op == s->op;
}

static bool
has_op(const Graph *g, Arena *scratch, ExprId e, Op op)
{
	Search s = {g, op, false};
	if (e)
		expr_walk(g, scratch, e, look, &s);
	return s.found;
}

/* A range that only `axis` has, and that no other range of the node looks at. */
static bool
is_free(const Graph *g, Arena *scratch, const Node *n, unsigned axis)
{
	if (n->axis[axis].clamp)
		return false;
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		uint32_t in_range = expr_axes(g, scratch, n->axis[k].lo) | expr_axes(g, scratch, n->axis[k].hi);
		if (n->axis[k].clamp)
			in_range |= expr_axes(g, scratch, n->axis[k].clamp);
		if (in_range >> axis & 1)
			return false;
	}
	return true;
}

/* The conjunct `c` is AXIS k == e, for a reduced axis that e is free of? */
static bool
is_pick(const Graph *g, PassCtx *cx, const Node *n, ExprId c, bool first, Pick *out)
{
	if (expr_get(g, c)->op != OP_EQ)
		return false;
	for (unsigned side = 0; side < 2; side++) {
		ExprId axis = expr_arg(g, c, side), at = expr_arg(g, c, 1 - side);
		uint32_t k = expr_get(g, axis)->ref;
		if (expr_get(g, axis)->op == OP_AXIS && k >= n->npar && is_free(g, cx->scratch, n, k) &&
		    !(expr_axes(g, cx->scratch, at) >> k & 1) && (first || !has_op(g, cx->scratch, at, OP_READ)) &&
		    !expr_can_fault(g, cx->scratch, cx->faulty, at)) {
			*out = (Pick){k, at, c};
			return true;
		}
	}
	return false;
}

static bool
find_pick(const Graph *g, PassCtx *cx, const Node *n, ExprId guard, bool first, Pick *out)
{
	if (expr_get(g, guard)->op != OP_AND)
		return is_pick(g, cx, n, guard, first, out);
	return find_pick(g, cx, n, expr_arg(g, guard, 0), first, out) ||
	       find_pick(g, cx, n, expr_arg(g, guard, 1), false, out);
}

/* The guard without the conjunct; 0: nothing is left. */
static ExprId
without(Graph *g, ExprId guard, ExprId conjunct)
{
	if (guard == conjunct)
		return 0;
	if (expr_get(g, guard)->op != OP_AND)
		return guard;
	ExprId right = expr_arg(g, guard, 1), left = without(g, expr_arg(g, guard, 0), conjunct);
	return expr_and(g, left, without(g, right, conjunct));
}

static ExprId
acc_leaf(void *user, Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_ACC ? *(const ExprId *)user : e;
}

/* What the fold is without terms, for its finish; 0: not a value that is known here. */
static ExprId
empty_result(Graph *g, Arena *scratch, const Node *n)
{
	DType t = (DType)expr_get(g, n->body)->dtype;
	bool is_float = t == DT_F32 || t == DT_F64, one = n->monoid == MON_PROD || n->monoid == MON_ALL;
	if (has_op(g, scratch, n->finish, OP_TOUCHED) || (!n->finish && t != g->tensor.at[n->out].dtype))
		return 0;
	if (n->monoid == MON_ANY || n->monoid == MON_ALL)
		return t == DT_BOOL ? expr_int(g, t, one) : 0;
	if (n->monoid != MON_SUM && n->monoid != MON_PROD)
		return 0;
	return is_float ? expr_float(g, t, one) : dtype_is_int(t) ? expr_int(g, t, one) : 0;
}

/* lo < hi, lo <= e, e < hi, in this order */
static ExprId
in_range(Graph *g, const Axis *a, ExprId e)
{
	ExprId some = expr_binary(g, OP_LT, a->lo, a->hi), above = expr_binary(g, OP_LE, a->lo, e);
	return expr_and(g, expr_and(g, some, above), expr_binary(g, OP_LT, e, a->hi));
}

/* `empty`: what stands for the fold where the term is absent, if no index is left. */
static void
pick(Graph *g, Node *n, const Pick *p, ExprId empty)
{
	ExprId sub[TG_MAX_AXES];
	unsigned naxis = (unsigned)n->npar + n->nred;
	for (unsigned k = 0; k < naxis; k++)
		sub[k] = expr_axis(g, k > p->axis ? k - 1 : k);
	ExprId at = expr_subst_axes(g, p->at, sub, naxis);
	sub[p->axis] = at;
	Axis range = n->axis[p->axis];
	range.lo = expr_subst_axes(g, range.lo, sub, naxis);
	range.hi = expr_subst_axes(g, range.hi, sub, naxis);
	ExprId rest = without(g, n->guard, p->equal);
	ExprId guard = BUG(picks_beyond_range) ? 0 : in_range(g, &range, at);
	guard = expr_and(g, guard, rest ? expr_subst_axes(g, rest, sub, naxis) : 0);
	n->body = expr_subst_axes(g, n->body, sub, naxis);
	for (unsigned k = p->axis; k + 1 < naxis; k++) {
		n->axis[k] = n->axis[k + 1];
		n->axis[k].lo = expr_subst_axes(g, n->axis[k].lo, sub, naxis);
		n->axis[k].hi = expr_subst_axes(g, n->axis[k].hi, sub, naxis);
		if (n->axis[k].clamp)
			n->axis[k].clamp = expr_subst_axes(g, n->axis[k].clamp, sub, naxis);
	}
	n->axis[naxis - 1] = (Axis){0};
	n->guard = guard;
	if (--n->nred)
		return;
	ExprId value = guard ? expr_select(g, guard, n->body, empty) : n->body;
	n->body = n->finish ? expr_rewrite(g, n->finish, acc_leaf, &value) : value;
	n->monoid = MON_NONE;
	n->guard = n->finish = 0;
}

uint32_t
pass_pick_term(Graph *g, PassCtx *cx)
{
	uint32_t done = 0;
	for (uint32_t i = 0; i < g->node.n; i++) {
		Node n = g->node.at[i];
		Pick p;
		if (n.monoid == MON_NONE || n.monoid == MON_ARGMAX || n.monoid == MON_ARGMIN || n.scatter || n.recur ||
		    n.parts || !n.guard || !find_pick(g, cx, &n, n.guard, true, &p))
			continue;
		ExprId value = n.nred == 1 ? empty_result(g, cx->scratch, &n) : 0;
		if (n.nred == 1 && !value)
			continue;
		if (!spend(cx))
			break;
		pick(g, &n, &p, value);
		g->node.at[i] = n;
		done++;
	}
	return done;
}
