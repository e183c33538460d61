/* narrow_factors.c: what is narrowed to be multiplied is stored so, where matrix units take elements alone; and what they
 * narrow themselves, in fast mode, as it is.
 *
 * in     any graph in relaxed or fast mode
 * out    a factor of a contraction, f32(t(y)) with a computed y and t of 16 bits, or a computed one of f32, where kernels of roles or of warps
 *        (schedule/contract/roles.c, warps.c) would take the contraction if it were an element: y in t, or in f32, is a node of its
 *        own, over the axes that the factor has, and the factor is its element
 * fp     reassociates: t(y) may be a free cast (narrow_contract.c), which this makes one that rounds
 * tests  tests/passes/contract_roles_test.c, contract_warps_test.c
 *
 * Products of a stream (stream_group.c) are not asked: weights never leave its kernel.
 *
 * Computing y anew for each element that it is a factor of costs more than memory for it, which is as many elements as
 * one matrix has. Not so where y comes from fewer bits than it has then: weights of 8 or 4 bits stay as they are. Nor
 * where it is computed once anyway, for few rows (schedule/contract/strips.c). Nor what is read by windows, of which each element
 * would be stored once for each window. */
#include "passes/expr_map.h"
#include "passes/fuse/group.h"
#include "passes/pass_ctx.h"
#include "passes/retarget.h"
#include "passes/schedule/contract/roles.h"
#include "passes/schedule/contract/strips.h"
#include "passes/schedule/contract/warps.h"
#include "passes/schedule/contract/window.h"

enum { LEAST_BITS = 16 };

typedef struct {
	Graph *g;
	Arena *scratch;
	uint32_t axes; /* the factor's, as bits */
	bool wide;     /* it reads an element of LEAST_BITS at all of them */
} Factor;

static void
note_width(void *user, ExprId e)
{
	Factor *f = user;
	const Expr *p = expr_get(f->g, e);
	f->wide |= p->op == OP_READ && dtype_info[p->dtype].bits >= LEAST_BITS && expr_axes(f->g, f->scratch, e) == f->axes;
}

/* The factor of node n as an element of a node that has its values, maybe one of those from index `first` on, with which
 * another's factor is the same; 0: it is not worth that. */
static ExprId
stored(Graph *g, Arena *scratch, const Node *n, ExprId factor, uint32_t first, bool *fresh)
{
	Factor f = {.g = g, .scratch = scratch, .axes = expr_axes(g, scratch, factor)};
	bool narrow = contract_narrow_type(g, factor) != DT_NONE;
	ExprId value = contract_matrix_value(g, factor);
	expr_walk(g, scratch, factor, note_width, &f);
	if (!f.wide || (unsigned)__builtin_popcount(f.axes) > TG_MAX_RANK)
		return 0;
	if (narrow && expr_get(g, value)->op == OP_CAST) /* one that rounds, if it is free */
		value = expr_cast(g, (DType)expr_get(g, value)->dtype, expr_arg(g, value, 0));
	ExprId element = expr_apart(g, scratch, n, value, first, fresh);
	return narrow ? expr_cast(g, DT_F32, element) : element;
}

static bool
is_window(PassCtx *cx, const Graph *g, const Node *n, ExprId factor)
{
	ExprId read[2];
	for (unsigned k = contract_window_reads(g, cx->scratch, n, cx->options, read); k-- > 0;)
		if (read[k] == contract_matrix_value(g, factor))
			return true;
	return false;
}

uint32_t
pass_narrow_factors(Graph *g, PassCtx *cx)
{
	uint32_t nnode = g->node.n, done = 0;
	VEC(uint32_t) owner = {0};
	if (cx->options->fuse == FUSE_OFF || (!cx->options->roles && !cx->options->warp_mma))
		return 0;
	const bool *streamed = stream_members(g, cx);
	for (uint32_t i = 0; i < nnode; i++) {
		const Node n = g->node.at[i];
		ExprId factor[2], body = n.body;
		if (streamed[n.out] || (!contract_roles_would(g, cx->scratch, cx->faulty, n.out, cx->options, factor) &&
		                        !contract_warps_would(g, cx->scratch, cx->faulty, n.out, cx->options, factor)))
			continue;
		ExprId once = contract_strips_long(g, cx->scratch, cx->faulty, n.out, cx->options);
		for (unsigned k = 0; k < 2; k++) {
			bool fresh = false;
			bool stays = !factor[k] || factor[k] == once || is_window(cx, g, &n, factor[k]);
			ExprId element = !stays ? stored(g, cx->scratch, &n, factor[k], nnode, &fresh) : 0;
			if (!element || !spend(cx))
				continue;
			ExprId a = expr_arg(g, body, 0), b = expr_arg(g, body, 1);
			body = expr_binary(g, OP_MUL, a == factor[k] ? element : a, a == factor[k] ? b : element);
			if (fresh)
				vec_push(cx->scratch, &owner, i);
			done++;
		}
		g->node.at[i].body = body;
	}
	if (owner.n)
		nodes_in_order(g, cx->scratch, nnode, owner.at, owner.n);
	return done;
}
