/* expand_near: exp, exp2, tanh and erf by fewer operations than expand_math takes, for modes that allow
 * a whole ulp and more.
 *
 * in     a kernel of a graph in relaxed or fast mode
 * out    no EXP, EXP2, TANH or ERF
 * fp     within 1 ulp instead of 0.6, tanh and erf 1.5 instead of 1: docs/accuracy.md has the worst errors
 * tests  tests/math/
 *
 * exp: a = n ln 2 + r with |r| <= ln 2 / 2, e^r by one polynomial, in which each step's rounding counts for
 * at most half of the next one's; times 2^n in two steps, of which only the second can round. Arguments
 * beyond those whose results are 0 and infinity are replaced by some that have these results, so that n
 * stays in its field; NaN compares false and flows through.
 *
 * tanh and erf are near 1 where tanh_erf.c takes an exponential: what that lacks in its last bits is
 * then a fraction of the result's last bit. */
#include "passes/tile/expand.h"
#include "passes/tile/tile.h"

#include "ir/bugs.h"

/* low <= a <= high, or NaN */
static ValId
between(const Ex *x, ValId a, double low, double high)
{
	ValId bottom = ex_float(x, low), top = ex_float(x, high);
	a = ex_select(x, ex_lt(x, a, bottom), bottom, a);
	return BUG(exp_overflows_to_zero) ? a : ex_select(x, ex_lt(x, top, a), top, a);
}

/* Twice the bias: added to n, it makes both of its halves fields of an exponent. */
static ValId
offset(const Ex *x)
{
	return ex_float(x, ex_magic(x) + 2 * x->bias);
}

/* e^r 2^n, where t = n + offset. */
static ValId
scaled_power(const Ex *x, ValId r, ValId t)
{
	ValId one = ex_float(x, 1), p = ex_poly(x, &exp_poly, r);
	ValId v = ex_fma(x, ex_fma(x, p, r, one), r, one);
	ValId both = ex_to_bits(x, t), half = ex_shr(x, both, 1);
	ValId first = ex_from_bits(x, ex_shl(x, half, (unsigned)x->mant));
	ValId second = ex_from_bits(x, ex_shl(x, ex_sub(x, both, half), (unsigned)x->mant));
	return ex_mul(x, ex_mul(x, v, first), second);
}

static ValId
near_exp(const Ex *x, ValId a)
{
	a = x->wide ? between(x, a, -746, 710) : between(x, a, -104, 89);
	ValId t = ex_fma(x, a, ex_sum(x, &log2e_sum, 0), offset(x)), n = ex_sub(x, t, offset(x));
	/* n times the leading part cancels against a: exact. */
	ValId r = ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][0]), a);
	return scaled_power(x, ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][1]), r), t);
}

static ValId
near_exp2(const Ex *x, ValId a)
{
	a = x->wide ? between(x, a, -1076, 1025) : between(x, a, -151, 129);
	ValId t = ex_add(x, a, offset(x)), r = ex_sub(x, a, ex_sub(x, t, offset(x)));
	return scaled_power(x, ex_mul(x, r, ex_sum(x, &ln2_sum, 0)), t);
}

/* e^a for a whose result is normal by far. */
static ValId
middle_exp(const Ex *x, ValId a)
{
	ValId magic = ex_float(x, ex_magic(x) + x->bias), one = ex_float(x, 1);
	ValId t = ex_fma(x, a, ex_sum(x, &log2e_sum, 0), magic), n = ex_sub(x, t, magic);
	ValId r = ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][0]), a);
	r = ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][1]), r);
	ValId v = ex_fma(x, ex_fma(x, ex_poly(x, &exp_poly, r), r, one), r, one);
	return ex_mul(x, v, ex_from_bits(x, ex_shl(x, ex_to_bits(x, t), (unsigned)x->mant)));
}

/* |a|, cut off where the result is 1 whatever is beyond; NaN stays. */
static ValId
magnitude(const Ex *x, ValId a, double limit)
{
	ValId r = ex_abs(x, a), top = ex_float(x, limit);
	return ex_select(x, ex_lt(x, top, r), top, r);
}

static ValId
near_tanh(const Ex *x, ValId a)
{
	ValId r = magnitude(x, a, x->wide ? 22 : 10), one = ex_float(x, 1), square = ex_mul(x, r, r);
	ValId small = ex_fma(x, ex_mul(x, square, r), ex_poly(x, &tanh_poly, square), r);
	/* 1 - 2 / (power + 1), where the sum's rounding error is felt just above 4 */
	Ex2 sum = ex_fast_sum(x, middle_exp(x, ex_mul(x, r, ex_float(x, 2))), one);
	ValId q = tir_binary(x->k, OP_FDIV, ex_float(x, 2), sum.hi), half = ex_mul(x, q, ex_float(x, -0.5));
	ValId large = ex_sub(x, one, ex_fma(x, ex_mul(x, half, q), sum.lo, q));
	return ex_flip(x, ex_select(x, ex_lt(x, r, ex_float(x, 0.55)), small, large), ex_sign_bit(x, a));
}

static ValId
near_erf(const Ex *x, ValId a)
{
	ValId r = magnitude(x, a, x->wide ? 6 : 4), one = ex_float(x, 1), square = ex_mul(x, r, r);
	ValId small = ex_fma(x, r, ex_poly(x, &erf_poly, square), r);
	ValId rest = ex_poly(x, &erfcx_poly, ex_sub(x, r, one));
	ValId large = ex_sub(x, one, middle_exp(x, ex_fma(x, ex_neg(x, r), r, rest)));
	return ex_flip(x, ex_select(x, ex_lt(x, r, ex_float(x, 0.875)), small, large), ex_sign_bit(x, a));
}

typedef ValId NearFn(const Ex *x, ValId a);
static NearFn *const near_fn[OP_COUNT] = {
	[OP_EXP] = near_exp, [OP_EXP2] = near_exp2, [OP_TANH] = near_tanh, [OP_ERF] = near_erf,
};

static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const TirInst *p = tir_inst(from, v);
	(void)user;
	if (!near_fn[p->op])
		return tir_copy_inst(to, from, v, arg);
	Ex x = ex_of(to, p->type);
	return near_fn[p->op](&x, arg[0]);
}

TirKernel *
tile_expand_near(const TirKernel *k, Arena *a)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (near_fn[tir_inst(k, v)->op])
			return tir_rewrite(k, a, expand, NULL);
	return (TirKernel *)(uintptr_t)k;
}
