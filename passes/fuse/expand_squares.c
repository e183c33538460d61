/* expand_squares.c: sums of squares of differences between rows and columns as a product of matrices, where the target has units for
 * those.
 *
 *     k[i, j] = exp(-gamma * sum[d](sq(x[i, d] - z[j, d])))      k[i, j] = 1 / (1 + sum[d](((x[i, d] - z[j, d]) / l[d]) ** 2))
 *
 * in     any graph in relaxed or fast mode
 * out    a sum, along one axis, of c u(a - b)^2, with a of the rows, b of the columns, c > 0 a constant and u a product of the difference
 *        and of what neither has an axis of, is also (Node.expanded)
 *            sum c u(a - m)^2 + sum c u(b - m)^2 - sum u(a - m) * 2 c u(b - m)
 *        where m is the mean of some of the columns' b. What this is made of are nodes of their own, for launches whose sizes
 *        pay for it (Node.when)
 * needs  FACT_FAULTS
 * fp     reassociates: with q the sum of the first two and u = 2^-24 all roundings together are some 7 u q, of which 3 are the product's
 *        (roles_thirds.c), where the definition's bound is that of its n terms in any order, n u of the whole. So it is used where
 *        the whole is at least an eighth of q (TG_EXPANDED_LEAST), with LEAST_TERMS terms at least; what cancels further is folded as
 *        the body says (roles_expanded.c). The m, which may be anything, takes from points what they have in common, that less cancels
 * tests  tests/passes/contract_expanded_test.c, tests/fuse/squares.tex
 *
 * What others fold on, or stream, has kernels that store nothing of it (schedule/pairwise): it stays as it is. */
#include "passes/expr_map.h"
#include "passes/fuse/group.h"
#include "passes/pass_ctx.h"
#include "passes/retarget.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/contract/roles.h"

enum { MEAN_ROWS = 16, MOST_AXES = 4 /* of a factor, whose thirds have one more */ };

typedef struct {
	Graph *g;
	PassCtx *cx;
	const Node *node;
	uint32_t own[2];       /* the axis that a and b have of their own, as bits */
	ExprId difference;     /* a - b */
	ExprId square, scale;  /* u(a - b); c, or 0: 1 */
	VEC(uint32_t) owner;
} Squares;

static uint32_t
parallel_axes(const Squares *s, ExprId e)
{
	return expr_axes(s->g, s->cx->scratch, e) & ((UINT32_C(1) << s->node->npar) - 1);
}

static bool
is_free(const Squares *s, ExprId e)
{
	return !(parallel_axes(s, e) & (s->own[0] | s->own[1]));
}

static bool
is_single(uint32_t axes)
{
	return axes && !(axes & (axes - 1));
}

static bool
has_term(const Squares *s, ExprId e)
{
	return expr_axes(s->g, s->cx->scratch, e) >> s->node->npar & 1;
}

/* Whether e is one, of what both have terms of. */
static bool
is_difference(Squares *s, ExprId e)
{
	uint32_t a = parallel_axes(s, expr_arg(s->g, e, 0)), b = parallel_axes(s, expr_arg(s->g, e, 1));
	s->own[0] = a & ~b;
	s->own[1] = b & ~a;
	s->difference = e;
	return is_single(s->own[0]) && is_single(s->own[1]) && has_term(s, expr_arg(s->g, e, 0)) && has_term(s, expr_arg(s->g, e, 1));
}

/* Whether e is a difference, or one times or over what is free. */
static bool
is_linear(Squares *s, ExprId e)
{
	const Expr *x = expr_get(s->g, e);
	switch ((Op)x->op) {
	case OP_SUB: return is_difference(s, e);
	case OP_NEG: return is_linear(s, expr_arg(s->g, e, 0));
	case OP_FDIV: return is_linear(s, expr_arg(s->g, e, 0)) && is_free(s, expr_arg(s->g, e, 1));
	case OP_MUL:
		for (unsigned k = 0; k < 2; k++)
			if (is_linear(s, expr_arg(s->g, e, k)))
				return is_free(s, expr_arg(s->g, e, 1 - k));
		return false;
	default: return false;
	}
}

/* Whether e is such a square, times a constant. */
static bool
is_square(Squares *s, ExprId e)
{
	const Expr x = *expr_get(s->g, e);
	if (x.op == OP_POW) {
		const Expr *n = expr_get(s->g, expr_arg(s->g, e, 1));
		s->square = expr_arg(s->g, e, 0);
		return n->op == OP_CONST && n->imm.f == 2 && is_linear(s, s->square);
	}
	if (x.op != OP_MUL)
		return false;
	ExprId a = expr_arg(s->g, e, 0), b = expr_arg(s->g, e, 1);
	if (a == b) {
		s->square = a;
		return is_linear(s, a);
	}
	for (unsigned k = 0; k < 2; k++) {
		ExprId c = expr_arg(s->g, e, k);
		const Expr *p = expr_get(s->g, c);
		if (s->scale || p->op != OP_CONST || !(p->imm.f > 0))
			continue;
		s->scale = c;
		return is_square(s, expr_arg(s->g, e, 1 - k));
	}
	return false;
}

/* Whether the factors are elements that maps have axes for. */
static bool
has_few_axes(const Squares *s)
{
	uint32_t all = expr_axes(s->g, s->cx->scratch, s->square);
	return __builtin_popcount(all & ~s->own[0]) <= MOST_AXES && __builtin_popcount(all & ~s->own[1]) <= MOST_AXES;
}

/* --- nodes --- */

typedef struct {
	ExprId sub[TG_MAX_AXES]; /* of the node's axes, in the new one */
	ExprId at[TG_MAX_RANK];  /* how the node reads it */
	ExprId extent[TG_MAX_RANK];
	Node node;
} Made;

/* Axes are those of the set, in order; summed over the last one of the node's, if that is asked for. */
static Made
begin(const Squares *s, uint32_t axes, bool sum)
{
	const Node *n = s->node;
	Made m = {.node = {.monoid = sum ? MON_SUM : MON_NONE}};
	for (unsigned a = 0; a <= n->npar; a++) {
		if (!(axes >> a & 1) || (sum && a == n->npar))
			continue;
		unsigned k = m.node.npar++;
		m.sub[a] = expr_axis(s->g, k);
		m.at[k] = expr_axis(s->g, a);
		m.extent[k] = a < n->npar ? s->g->tensor.at[n->out].extent[a] : n->axis[a].hi;
		m.node.axis[k] = (Axis){.name = n->axis[a].name};
	}
	if (sum) {
		m.sub[n->npar] = expr_axis(s->g, m.node.npar);
		m.node.axis[m.node.npar] = n->axis[n->npar];
		m.node.nred = 1;
	}
	return m;
}

/* The element of the new node that the node reads. */
static ExprId
end(Squares *s, Made *m)
{
	Graph *g = s->g;
	uint32_t at = s->node->out;
	TensorId t = node_add(g, &m->node, 0, g->tensor.at[at].at, DT_F32, m->extent);
	vec_push(s->cx->scratch, &s->owner, g->tensor.at[at].node);
	return expr_read(g, t, m->at, m->node.npar, 0);
}

/* The mean of b at some columns, or what it would be if those that there are not had nothing. */
static ExprId
mean_of(Squares *s, ExprId b)
{
	Graph *g = s->g;
	unsigned column = (unsigned)__builtin_ctz(s->own[1]);
	uint32_t axes = expr_axes(g, s->cx->scratch, b) & ~s->own[1];
	Made m = begin(s, axes, false);
	unsigned r = m.node.npar;
	ExprId some = expr_int(g, DT_I64, MEAN_ROWS), extent = g->tensor.at[s->node->out].extent[column];
	m.node.monoid = MON_SUM;
	m.node.nred = 1;
	m.node.parts = true; /* who reads it is another kernel, whose rows are no terms of it */
	m.node.axis[r] = (Axis){.lo = expr_int(g, DT_I64, 0), .hi = expr_binary(g, OP_MIN, some, extent)};
	m.sub[column] = expr_binary(g, OP_MUL, expr_axis(g, r), expr_binary(g, OP_IDIV, extent, some));
	m.node.body = expr_subst_axes(g, b, m.sub, s->node->npar + 1u);
	ExprId sum = expr_make(g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	m.node.finish = expr_binary(g, OP_MUL, sum, expr_float(g, DT_F32, 1.0 / MEAN_ROWS));
	return end(s, &m);
}

/* factor u(v - m), as an element. */
static ExprId
factor_of(Squares *s, ExprId v, ExprId mean, double factor)
{
	Graph *g = s->g;
	ExprId e = expr_replace(g, s->cx->scratch, s->square, s->difference, expr_binary(g, OP_SUB, v, mean));
	if (factor != 1)
		e = expr_binary(g, OP_MUL, e, expr_float(g, DT_F32, factor));
	Made m = begin(s, expr_axes(g, s->cx->scratch, e), false);
	m.node.body = expr_subst_axes(g, e, m.sub, s->node->npar + 1u);
	return end(s, &m);
}

/* factor times the sum of its squares. */
static ExprId
sum_of(Squares *s, ExprId element, double factor)
{
	Graph *g = s->g;
	Made m = begin(s, expr_axes(g, s->cx->scratch, element), true);
	m.node.body = expr_subst_axes(g, expr_binary(g, OP_MUL, element, element), m.sub, s->node->npar + 1u);
	if (factor != 1) {
		ExprId sum = expr_make(g, OP_ACC, DT_F32, 0, 0, NULL, 0);
		m.node.finish = expr_binary(g, OP_MUL, sum, expr_float(g, DT_F32, factor));
	}
	return end(s, &m);
}

/* --- whether --- */

/* Who reads what. */
typedef struct {
	Graph *g;
	uint32_t *readers; /* by TensorId: how many nodes; */
	TensorId *last;    /* the last of them */
	bool *result;
	TensorId at;
} Reads;

static void
note_read(void *user, ExprId e)
{
	Reads *r = user;
	const Expr *x = expr_get(r->g, e);
	if (x->op != OP_READ || r->last[x->ref] == r->at)
		return;
	r->last[x->ref] = r->at;
	r->readers[x->ref]++;
}

static Reads
find_reads(Graph *g, Arena *a)
{
	Reads r = {.g = g, .readers = ARENA_ARRAY(a, uint32_t, g->tensor.n), .last = ARENA_ARRAY(a, TensorId, g->tensor.n), .result = ARENA_ARRAY(a, bool, g->tensor.n)};
	for (uint32_t i = 0; i < g->node.n; i++) {
		r.at = g->node.at[i].out;
		node_walk(g, a, &g->node.at[i], note_read, &r);
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		r.result[g->result.at[k].tensor] = true;
	return r;
}

/* Whether t is a result that nothing reads, or what is made of it point by point (epilogue.c). */
static bool
is_handed_out(const Reads *r, TensorId t)
{
	const Graph *g = r->g;
	if (r->readers[t] == 0)
		return r->result[t];
	const Node *y = tensor_node(g, r->last[t]);
	return r->readers[t] == 1 && !r->result[t] && y->monoid == MON_NONE && !y->recur && r->result[y->out] && r->readers[y->out] == 0;
}

static float
narrow(double v)
{
	return (float)v;
}

/* Adds the nodes, and says when. */
static void
expand(Squares *s)
{
	Graph *g = s->g;
	uint32_t first = g->node.n;
	TensorId t = s->node->out;
	double c = s->scale ? expr_get(g, s->scale)->imm.f : 1;
	ExprId a = expr_arg(g, s->difference, 0), b = expr_arg(g, s->difference, 1);
	ExprId mean = mean_of(s, b);
	ExprId row = factor_of(s, a, mean, 1), column = factor_of(s, b, mean, narrow(2 * c));
	ExprId rows = sum_of(s, row, narrow(c)), columns = sum_of(s, column, narrow(1 / (4 * c)));
	ExprId both = expr_binary(g, OP_ADD, rows, columns);
	tensor_node(g, t)->expanded = expr_binary(g, OP_SUB, both, expr_binary(g, OP_MUL, row, column));
	ExprId when = contract_expanded_pays(g, s->cx->scratch, t, s->cx->options);
	for (uint32_t n = first; n < g->node.n; n++)
		g->node.at[n].when = when;
}

uint32_t
pass_expand_squares(Graph *g, PassCtx *cx)
{
	uint32_t nnode = g->node.n, done = 0;
	Squares all = {0};
	if (cx->options->fuse != FUSE_ALL || !cx->options->roles || !cx->options->blocks)
		return 0;
	const bool *streamed = stream_members(g, cx);
	const Reads reads = find_reads(g, cx->scratch);
	for (uint32_t i = 0; i < nnode; i++) {
		const Node n = g->node.at[i];
		Squares s = {.g = g, .cx = cx, .node = &n, .owner = all.owner};
		if (streamed[n.out] || !is_handed_out(&reads, n.out) || n.monoid != MON_SUM || n.scatter || n.recur || !contract_is_plain_sum(g, cx->scratch, cx->faulty, n.out) ||
		    !is_square(&s, n.body) || !has_few_axes(&s) || (n.finish && expr_can_fault(g, cx->scratch, cx->faulty, n.finish)) || !spend(cx))
			continue;
		expand(&s);
		all.owner = s.owner;
		done++;
	}
	if (done)
		nodes_in_order(g, cx->scratch, nnode, all.owner.at, all.owner.n);
	return done;
}
