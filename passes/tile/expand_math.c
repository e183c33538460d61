/* expand_math: write every transcendental as core arithmetic, so that interpreter, CPU and GPU give
 * the same bits.
 *
 * in     a kernel; F_MATH operations on f32 and f64, scalar or vector, and POW on integers
 * out    no F_MATH operation; FMA, bit operations and selects in their place
 * fp     defines the functions: docs/accuracy.md has the worst error of each
 * tests  tests/math/
 *
 * Narrow floats never reach this pass: arithmetic on them is in f32 (LANGUAGE.md, Dtypes). */
#include "passes/tile/expand.h"
#include "passes/tile/tile.h"

typedef ValId UnaryFn(const Ex *x, ValId a);

static UnaryFn *const unary[OP_COUNT] = {
	[OP_RSQRT] = ex_rsqrt, [OP_EXP] = ex_exp, [OP_EXP2] = ex_exp2, [OP_EXPM1] = ex_expm1,
	[OP_LOG] = ex_log, [OP_LOG2] = ex_log2, [OP_LOG1P] = ex_log1p, [OP_TANH] = ex_tanh,
	[OP_ERF] = ex_erf, [OP_SIN] = ex_sin, [OP_COS] = ex_cos,
};

static bool
is_function(const TirInst *p)
{
	return op_info[p->op].flags & F_MATH;
}

static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const TirInst *p = tir_inst(from, v);
	(void)user;
	if (!is_function(p))
		return tir_copy_inst(to, from, v, arg);
	if (p->op == OP_POW && dtype_is_int((DType)p->type.dtype))
		return ex_int_pow(to, p->type, arg[0], arg[1]);
	Ex x = ex_of(to, p->type);
	if (unary[p->op])
		return unary[p->op](&x, arg[0]);
	if (p->op != OP_POW)
		bug(to->arena, "expand_math: %s has no expansion", op_info[p->op].text);
	return ex_pow(&x, arg[0], arg[1]);
}

TirKernel *
tile_expand_math(const TirKernel *k, Arena *a)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_function(tir_inst(k, v)))
			return tir_rewrite(k, a, expand, NULL);
	return (TirKernel *)(uintptr_t)k;
}
