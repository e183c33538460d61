/* terms_last.c: factors of products that matrix units would take if what they read had its terms side by side in memory, as
 * images whose channels are not, are stored so.
 *
 * in     any graph in relaxed or fast mode
 * out    where a sum of products of elements goes over several axes, one of which is a subscript of both factors, and
 *        kernels of windows or of warps (schedule/contract/window.c, warps.c) would take it if that were the last subscript, each
 *        factor reads a copy of its tensor that has that axis last. Kernels of windows get an output with the columns last, from
 *        which the tensor that others read is copied; a product that reads this one's copy needs none of its own
 * needs  FACT_FAULTS
 * fp     reassociates: that axis of the terms comes last
 * tests  tests/passes/terms_last_test.c, scripts/gpu-convolutions.py
 *
 * A copy is read once for each of the terms of the other axes, and costs what a pointwise kernel does; with a single axis of
 * terms it would be read once. */
#include "passes/expr_map.h"
#include "passes/fuse/group.h"
#include "passes/fuse/last_axis.h"
#include "passes/pass_ctx.h"
#include "passes/retarget.h"
#include "passes/schedule/contract/indices.h"
#include "passes/schedule/contract/roles.h"
#include "passes/schedule/contract/strips.h"
#include "passes/schedule/contract/warps.h"
#include "passes/schedule/contract/window.h"

#include <string.h>

enum { LEAST_TERMS = 8, MOST_COPIES = 3 }; /* side by side that are worth a copy; of a node */

typedef struct {
	Graph *g;
	PassCtx *cx;
	bool *faulty; /* with room for the copies, which never are */
	LastAxisCopies copy;
	VEC(uint32_t) owner;
} TermsLast;

static bool
is_taken(const TermsLast *s, TensorId t)
{
	return contract_window_could(s->g, s->cx->scratch, s->faulty, t, s->cx->options) ||
	       contract_warps_could(s->g, s->cx->scratch, s->faulty, t, s->cx->options);
}

/* --- copies --- */

/* Which subscript of the read is this axis, if none but one has it; -1: none. */
static int
subscript_of(const Graph *g, Arena *scratch, ExprId read, unsigned axis)
{
	const Expr *p = expr_get(g, read);
	int at = -1;
	for (unsigned k = 0; k < p->narg; k++) {
		ExprId sub = expr_arg(g, read, k);
		if (!(expr_axes(g, scratch, sub) >> axis & 1))
			continue;
		if (at >= 0 || expr_get(g, sub)->op != OP_AXIS)
			return -1;
		at = (int)k;
	}
	return at;
}

/* The factor of a copy with subscript `last` last. */
static ExprId
factor_of_copy(TermsLast *s, ExprId factor, unsigned last)
{
	ExprId read = contract_matrix_value(s->g, factor);
	if (last + 1u == expr_get(s->g, read)->narg)
		return factor;
	return expr_cast(s->g, DT_F32, last_axis_read(s->g, s->cx->scratch, &s->copy, read, last));
}

/* --- nodes --- */

typedef struct {
	ExprId to[TG_MAX_AXES];
	unsigned n;
} Moved;

static void
move_axes(void *user, Graph *g, ExprId *root)
{
	const Moved *m = user;
	*root = *root ? expr_subst_axes(g, *root, m->to, m->n) : 0;
}

/* The node with parallel axis `par` behind the other parallel ones and reduced axis `term` behind all. */
static Node
with_last(Graph *g, const Node *n, unsigned par, unsigned term)
{
	Node to = *n;
	Moved m = {.n = (unsigned)n->npar + n->nred};
	for (unsigned a = 0; a < m.n; a++) {
		unsigned place = a < n->npar ? last_axis_place(a, par, n->npar) : last_axis_place(a, term, m.n);
		m.to[a] = expr_axis(g, place);
		to.axis[place] = n->axis[a];
	}
	node_each_root(g, &to, move_axes, &m);
	return to;
}

/* --- whether --- */

static bool
is_element(const TermsLast *s, ExprId factor)
{
	const Graph *g = s->g;
	const Expr *p = expr_get(g, contract_matrix_value(g, factor));
	return contract_matrix_type(g, factor) != DT_NONE && p->op == OP_READ && !p->access && p->narg > 1 &&
	       g->tensor.at[p->ref].kind != TENSOR_SCALAR && !s->faulty[p->ref];
}

static bool
is_candidate(const TermsLast *s, const Node *n)
{
	const Graph *g = s->g;
	Arena *scratch = s->cx->scratch;
	const PassOptions *o = s->cx->options;
	const Expr *body = expr_get(g, n->body);
	return contract_is_sum_of_products(g, n->out) && n->nred > 1 && !n->domain && is_element(s, expr_arg(g, n->body, 0)) &&
	       is_element(s, expr_arg(g, n->body, 1)) && body->dtype == DT_F32 && !is_taken(s, n->out) &&
	       !contract_roles_could(g, scratch, s->faulty, n->out, o) && !contract_strips_could(g, scratch, s->faulty, n->out, o);
}

/* Node i with this axis of the terms last in memory and among its own, if it is taken then. */
static bool
try_term(TermsLast *s, uint32_t i, unsigned term)
{
	Graph *g = s->g;
	const Node was = g->node.at[i];
	uint32_t ncopy = s->copy.n, nnode = g->node.n, ntensor = g->tensor.n;
	ExprId factor[2];
	if (!indices_may_reach(g, &was, UINT32_C(1) << term, LEAST_TERMS))
		return false;
	for (unsigned k = 0; k < 2; k++) {
		ExprId f = expr_arg(g, was.body, k);
		int at = subscript_of(g, s->cx->scratch, contract_matrix_value(g, f), term);
		if (at < 0)
			return false;
		factor[k] = factor_of_copy(s, f, (unsigned)at);
	}
	Node now = was;
	now.body = expr_binary(g, OP_MUL, factor[0], factor[1]);
	g->node.at[i] = with_last(g, &now, was.npar - 1u, term);
	if (is_taken(s, was.out) && spend(s->cx))
		return true;
	g->node.at[i] = was;
	g->node.n = nnode;
	g->tensor.n = ntensor;
	s->copy.n = ncopy;
	return false;
}

/* Of a node that kernels of windows take, whose columns are not the last axis: it writes a copy of its output that has them last,
 * and its tensor is copied from there. */
static void
turn_output(TermsLast *s, uint32_t i)
{
	Graph *g = s->g;
	const Node n = g->node.at[i];
	const Tensor t = g->tensor.at[n.out];
	int columns = contract_window_columns(g, s->cx->scratch, s->faulty, n.out, s->cx->options);
	unsigned column = (unsigned)columns;
	if (columns < 0 || column + 1 == n.npar)
		return;
	Node to = with_last(g, &n, column, n.npar + n.nred - 1u), view = {.out = n.out, .npar = n.npar};
	ExprId sub[TG_MAX_RANK], extent[TG_MAX_RANK];
	for (unsigned k = 0; k < n.npar; k++) {
		sub[last_axis_place(k, column, n.npar)] = expr_axis(g, k);
		extent[last_axis_place(k, column, n.npar)] = t.extent[k];
	}
	TensorId stored = node_add(g, &to, 0, t.at, t.dtype, extent);
	view.body = expr_read(g, stored, sub, n.npar, 0);
	g->node.at[i] = view;
	vec_push(s->cx->scratch, &s->copy, ((LastAxisCopy){n.out, stored, column}));
}

uint32_t
pass_terms_last(Graph *g, PassCtx *cx)
{
	uint32_t nnode = g->node.n, done = 0;
	TermsLast s = {.g = g, .cx = cx};
	if (cx->options->fuse == FUSE_OFF || g->fp == FP_STRICT || (!cx->options->roles && !cx->options->warp_mma))
		return 0;
	s.faulty = ARENA_ARRAY(cx->scratch, bool, g->tensor.n + MOST_COPIES * nnode);
	memcpy(s.faulty, cx->faulty, g->tensor.n * sizeof *s.faulty);
	const bool *streamed = stream_members(g, cx);
	for (uint32_t i = 0; i < nnode; i++) {
		const Node n = g->node.at[i];
		uint32_t before = g->node.n;
		if (streamed[n.out] || !is_candidate(&s, &n))
			continue;
		for (unsigned term = n.npar; term < (unsigned)n.npar + n.nred; term++)
			if (try_term(&s, i, term)) {
				turn_output(&s, i);
				done++;
				break;
			}
		for (uint32_t k = before; k < g->node.n; k++)
			vec_push(cx->scratch, &s.owner, i);
	}
	if (s.owner.n)
		nodes_in_order(g, cx->scratch, nnode, s.owner.at, s.owner.n);
	return done;
}
