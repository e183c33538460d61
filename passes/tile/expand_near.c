/* expand_near, expand_scaled, expand_ex2: exp, exp2, tanh, erf and powers by fewer operations than expand_math takes, for modes that
 * allow a whole ulp and more.
 *
 * in     a kernel of a graph in relaxed or fast mode
 * out    no EXP, EXP2, TANH or ERF; no POW with a constant exponent that whole_power.c takes. expand_ex2: no ERF of f32
 * fp     within 1 ulp instead of 0.6, tanh and erf 1.5 instead of 1, pow 2: docs/accuracy.md has the worst
 *        errors
 * tests  tests/math/
 *
 * exp: a = n ln 2 + r with |r| <= ln 2 / 2, e^r by one polynomial, in which each step's rounding counts for
 * at most half of the next one's; times 2^n in two steps, of which only the second can round. Arguments
 * beyond those whose results are 0 and infinity are replaced by some that have these results, so that n
 * stays in its field; NaN compares false and flows through. Where the target multiplies by 2^n in one
 * operation (SCALE), that takes the place of the two steps, and has the same bits.
 *
 * tanh and erf are near 1 where tanh_erf.c takes an exponential: what that lacks in its last bits is
 * then a fraction of the result's last bit. So from 1 on erf is 1 - 2^q, q a polynomial, and 2^q has fewer
 * terms than where all of its bits count. Where the target has a unit for 2^q (EX2), its error of 2^-22.5 is half a
 * unit in the last place of erf at most. */
#include "passes/tile/expand.h"
#include "passes/tile/tile.h"

/* Twice the bias: added to n, it makes both of its halves fields of an exponent. */
static ValId
offset(const Ex *x)
{
	return ex_float(x, ex_magic(x) + 2 * x->bias);
}

/* e^r 2^n, where t = n + offset. */
static ValId
scaled_power(const Ex *x, ValId r, ValId n, ValId t)
{
	ValId one = ex_float(x, 1), p = ex_poly(x, &exp_near_poly, r);
	ValId v = ex_fma(x, ex_fma(x, p, r, one), r, one);
	if (x->scales)
		return tir_binary(x->k, OP_SCALE, v, n);
	ValId both = ex_to_bits(x, t), half = ex_shl(x, ex_shr(x, both, 1), (unsigned)x->mant);
	ValId rest = ex_sub(x, ex_shl(x, both, (unsigned)x->mant), half); /* as one operation: both 2^mant - half */
	return ex_mul(x, ex_mul(x, v, ex_from_bits(x, half)), ex_from_bits(x, rest));
}

static ValId
near_exp(const Ex *x, ValId a)
{
	a = x->wide ? ex_between(x, a, -746, 710) : ex_between(x, a, -104, 89);
	ValId t = ex_fma(x, a, ex_sum(x, &log2e_sum, 0), offset(x)), n = ex_sub(x, t, offset(x));
	/* n times the leading part cancels against a: exact. */
	ValId r = ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][0]), a);
	return scaled_power(x, ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][1]), r), n, t);
}

static ValId
near_exp2(const Ex *x, ValId a)
{
	a = x->wide ? ex_between(x, a, -1076, 1025) : ex_between(x, a, -151, 129);
	ValId t = ex_add(x, a, offset(x)), n = ex_sub(x, t, offset(x)), r = ex_sub(x, a, n);
	return scaled_power(x, ex_mul(x, r, ex_sum(x, &ln2_sum, 0)), n, t);
}

/* e^a for a whose result is normal by far. */
static ValId
middle_exp(const Ex *x, ValId a)
{
	ValId magic = ex_float(x, ex_magic(x) + x->bias), one = ex_float(x, 1);
	ValId t = ex_fma(x, a, ex_sum(x, &log2e_sum, 0), magic), n = ex_sub(x, t, magic);
	ValId r = ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][0]), a);
	r = ex_fma(x, n, ex_float(x, -ln2_sum.c[x->wide][1]), r);
	ValId v = ex_fma(x, ex_fma(x, ex_poly(x, &exp_near_poly, r), r, one), r, one);
	if (x->scales)
		return tir_binary(x->k, OP_SCALE, v, n);
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
	ValId q = ex_middle_quotient(x, ex_float(x, 2), sum.hi), half = ex_mul(x, q, ex_float(x, -0.5));
	ValId large = ex_sub(x, one, ex_fma(x, ex_mul(x, half, q), sum.lo, q));
	return ex_flip(x, ex_select(x, ex_lt(x, r, ex_float(x, 0.55)), small, large), ex_sign_bit(x, a));
}

/* 2^a, normal by far, where a sixth of its error counts. */
static ValId
low_exp2(const Ex *x, ValId a)
{
	if (x->powers)
		return tir_unary(x->k, OP_EX2, a);
	ValId magic = ex_float(x, ex_magic(x) + x->bias), t = ex_add(x, a, magic), n = ex_sub(x, t, magic);
	ValId v = ex_poly(x, &exp2_low_poly, ex_sub(x, a, n));
	if (x->scales)
		return tir_binary(x->k, OP_SCALE, v, n);
	return ex_mul(x, v, ex_from_bits(x, ex_shl(x, ex_to_bits(x, t), (unsigned)x->mant)));
}

/* p at `at` where c holds, else q: one FMA a term, whose coefficients are chosen lane by lane. */
static ValId
either_poly(const Ex *x, ValId c, const ExPoly *p, const ExPoly *q, ValId at)
{
	unsigned np = p->n[x->wide], nq = q->n[x->wide], n = np < nq ? nq : np;
	ValId v = 0;
	while (n-- > 0) {
		ValId a = ex_float(x, n < np ? p->c[x->wide][n] : 0), b = ex_float(x, n < nq ? q->c[x->wide][n] : 0);
		ValId k = ex_select(x, c, a, b);
		v = v ? ex_fma(x, v, at, k) : k;
	}
	return v;
}

/* Where there is SCALE a select by a mask costs less than an FMA, so both polynomials are one, to the same bits. */
static ValId
near_erf(const Ex *x, ValId a)
{
	ValId r = magnitude(x, a, x->wide ? 6 : 4), one = ex_float(x, 1);
	ValId is_small = ex_lt(x, r, one), square = ex_mul(x, r, r), beyond = ex_sub(x, r, one), p, q;
	if (x->scales) {
		p = q = either_poly(x, is_small, &erf_near_poly, &erfc_near_poly, ex_select(x, is_small, square, beyond));
	} else {
		p = ex_poly(x, &erf_near_poly, square);
		q = ex_poly(x, &erfc_near_poly, beyond);
	}
	ValId small = ex_fma(x, r, p, r), large = ex_sub(x, one, low_exp2(x, q));
	return ex_flip(x, ex_select(x, is_small, small, large), ex_sign_bit(x, a));
}

typedef ValId NearFn(const Ex *x, ValId a);
static NearFn *const near_fn[OP_COUNT] = {
	[OP_EXP] = near_exp, [OP_EXP2] = near_exp2, [OP_TANH] = near_tanh, [OP_ERF] = near_erf,
};

typedef enum { BY_PRODUCTS, BY_SCALE, BY_EX2 } Means;

static bool
is_taken(const TirInst *p, Means by)
{
	if (by == BY_EX2)
		return p->op == OP_ERF && p->type.dtype == DT_F32;
	return near_fn[p->op] || (p->op == OP_POW && dtype_is_float((DType)p->type.dtype));
}

static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const TirInst *p = tir_inst(from, v);
	Means by = *(const Means *)user;
	if (!is_taken(p, by))
		return tir_copy_inst(to, from, v, arg);
	Ex x = ex_of(to, p->type);
	x.scales = by == BY_SCALE;
	x.powers = by == BY_EX2;
	ValId power = p->op == OP_POW ? ex_constant_pow(&x, arg[0], arg[1]) : 0;
	if (p->op == OP_POW)
		return power ? power : tir_copy_inst(to, from, v, arg);
	return near_fn[p->op](&x, arg[0]);
}

static TirKernel *
expand_kernel(const TirKernel *k, Arena *a, Means by)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_taken(tir_inst(k, v), by))
			return tir_rewrite(k, a, expand, &by);
	return (TirKernel *)(uintptr_t)k;
}

TirKernel *
tile_expand_near(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, BY_PRODUCTS);
}

TirKernel *
tile_expand_scaled(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, BY_SCALE);
}

TirKernel *
tile_expand_ex2(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, BY_EX2);
}
