/* fold.c: evaluate operations on constants.
 *
 * in     any graph
 * out    the same, no exactly defined operation with constant operands left
 * fp     exact: only what is the same to the bit on every device; nothing transcendental
 * tests  tests/passes/fold_test.c
 *
 * In strict mode products of floats stay: the one that a sum takes is a single fma with the running
 * value there, and rounding it first would not be the same. */
#include "passes/expr_map.h"
#include "passes/fold_value.h"
#include "passes/pass_ctx.h"

typedef struct {
	PassCtx *cx;
	uint32_t done;
} Fold;

static ExprId
fold_step(void *user, Graph *g, ExprId e)
{
	Fold *f = user;
	Expr p = *expr_get(g, e), own[2];
	const Expr *a[2] = {&own[0], &own[1]};
	if (p.narg == 0 || p.narg > 2 || p.op == OP_READ)
		return e;
	if (p.op == OP_MUL && g->fp == FP_STRICT && dtype_is_float((DType)p.dtype))
		return e;
	for (unsigned k = 0; k < p.narg; k++) {
		own[k] = *expr_get(g, expr_arg(g, e, k)); /* the pool may move while folding */
		if (own[k].op != OP_CONST)
			return e;
	}
	ExprId to = fold_value(g, (Op)p.op, (DType)p.dtype, a, p.narg);
	if (!to || !spend(f->cx))
		return e;
	f->done++;
	return to;
}

uint32_t
pass_fold(Graph *g, PassCtx *cx)
{
	Fold f = {.cx = cx};
	graph_map(g, cx->scratch, fold_step, &f);
	return f.done;
}
