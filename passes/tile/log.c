/* log.c: log, log2 and log1p.
 *
 * a = 2^n m with m in [0.684, 1.367), f = m - 1 exactly, log m = f - f^2/2 + f^3 P(f). The
 * first two terms and n ln 2 (its leading part has few bits, so the product is exact) are summed
 * with their rounding errors kept; the rest is small enough to be rounded as it comes. */
#include "passes/tile/expand.h"

#include <math.h>

/* n + m's split, where n comes with an offset: 2^mant + bias (+ what the argument was scaled by). */
static ExSplit
split(const Ex *x, ValId a, ValId offset, uint64_t least)
{
	uint64_t one = (uint64_t)x->bias << x->mant;
	uint64_t frac = (UINT64_C(1) << x->mant) - 1;
	uint64_t exact = (uint64_t)(x->bias + x->mant) << x->mant; /* 2^mant */
	ValId u = ex_add(x, ex_to_bits(x, a), ex_bits(x, one - least));
	ValId n = ex_from_bits(x, ex_or(x, ex_shr(x, u, (unsigned)x->mant), ex_bits(x, exact)));
	ValId m = ex_add(x, ex_and(x, u, ex_bits(x, frac)), ex_bits(x, least));
	return (ExSplit){ex_sub(x, n, offset), ex_from_bits(x, m)};
}

/* The least m: from here to twice as much, the f^3 P(f) of both ends weigh the same. */
static uint64_t
least_m(const Ex *x)
{
	return x->wide ? UINT64_C(0x3fe5e00000000000) : 0x3f2f0000u; /* 0.68359375 */
}

static double
offset_of(const Ex *x)
{
	return (x->wide ? 0x1p52 : 0x1p23) + x->bias;
}

ExSplit
ex_log_split(const Ex *x, ValId a, uint64_t least)
{
	ValId normal = ex_float(x, x->wide ? 0x1p-1022 : 0x1p-126);
	ValId tiny = ex_lt(x, a, normal);
	double up = x->wide ? 0x1p54 : 0x1p25;
	ValId b = ex_select(x, tiny, ex_mul(x, a, ex_float(x, up)), a);
	ValId offset = ex_select(x, tiny, ex_float(x, offset_of(x) + x->mant + 2),
	                         ex_float(x, offset_of(x)));
	return split(x, b, offset, least);
}

/* log(1 + f) as hi + lo, the sum not yet rounded; lo may reach 2^-4 of hi. */
static Ex2
log_near_one(const Ex *x, ValId f)
{
	ValId half = ex_mul(x, f, ex_float(x, 0.5));
	Ex2 h = ex_two_mul(x, half, f);
	ValId hi = ex_sub(x, f, h.hi);
	ValId lo = ex_sub(x, ex_sub(x, ex_sub(x, f, hi), h.hi), h.lo);
	ValId half_cube = ex_fma(x, f, h.hi, ex_mul(x, f, h.lo));
	ValId cube = ex_add(x, half_cube, half_cube);
	return (Ex2){hi, ex_fma(x, cube, ex_poly(x, &log_poly, f), lo)};
}

/* n ln 2 + v, rounded. */
static ValId
join(const Ex *x, ValId n, Ex2 v)
{
	Ex2 s = ex_fast_sum(x, ex_mul(x, n, ex_sum(x, &ln2_short, 0)), v.hi);
	ValId low = ex_fma(x, n, ex_sum(x, &ln2_short, 1), ex_add(x, s.lo, v.lo));
	return ex_add(x, s.hi, low);
}

/* 2^-n for an integer n below the bias. */
static ValId
power_below(const Ex *x, ValId n)
{
	double exact = x->wide ? 0x1p52 : 0x1p23;
	ValId shifted = ex_sub(x, ex_float(x, exact + x->bias), n);
	return ex_from_bits(x, ex_shl(x, ex_to_bits(x, shifted), (unsigned)x->mant));
}

/* v for 0 < a < infinity; -infinity at 0, NaN below, infinity and NaN as they are. */
static ValId
limits(const Ex *x, ValId v, ValId a, double pole)
{
	ValId low = ex_float(x, pole);
	ValId outside = ex_select(x, ex_eq(x, a, low), ex_float(x, -(double)INFINITY),
	                          ex_float(x, (double)NAN));
	v = ex_select(x, ex_lt(x, a, ex_float(x, (double)INFINITY)), v, a);
	return ex_select(x, tir_binary(x->k, OP_LE, a, low), outside, v);
}

ValId
ex_log(const Ex *x, ValId a)
{
	ExSplit d = ex_log_split(x, a, least_m(x));
	Ex2 v = log_near_one(x, ex_sub(x, d.m, ex_float(x, 1)));
	return limits(x, join(x, d.n, v), a, 0);
}

ValId
ex_log2(const Ex *x, ValId a)
{
	ExSplit d = ex_log_split(x, a, least_m(x));
	Ex2 v = log_near_one(x, ex_sub(x, d.m, ex_float(x, 1)));
	v = ex_fast_sum(x, v.hi, v.lo);
	Ex2 e = {ex_sum(x, &log2e_sum, 0), ex_sum(x, &log2e_sum, 1)};
	Ex2 p = ex_mul2(x, v, e);
	Ex2 s = ex_fast_sum(x, d.n, p.hi);
	return limits(x, ex_add(x, s.hi, ex_add(x, s.lo, p.lo)), a, 0);
}

/* 1 + a = u + c exactly. Where u is near 1, f = a itself and c is not needed; elsewhere f = m - 1
 * and c, scaled as u was, enters by the derivative 1 / (1 + f), to a few bits. */
ValId
ex_log1p(const Ex *x, ValId a)
{
	ValId zero = ex_float(x, 0), one = ex_float(x, 1);
	Ex2 u = ex_two_sum(x, one, a);
	ExSplit d = split(x, u.hi, ex_float(x, offset_of(x)), least_m(x));
	ValId near = ex_eq(x, d.n, zero);
	ValId f = ex_select(x, near, a, ex_sub(x, d.m, one));
	/* 2^-n, where it matters: above 2^(mant + 2), c is below a quarter ulp of u. */
	ValId big = ex_lt(x, ex_float(x, x->wide ? 0x1p54 : 0x1p25), u.hi);
	ValId none = tir_binary(x->k, OP_OR, near, big);
	ValId scale = power_below(x, d.n);
	ValId c = ex_select(x, none, zero, ex_mul(x, u.lo, scale));
	ValId slope = ex_fma(x, f, ex_sub(x, f, one), one);
	Ex2 v = log_near_one(x, f);
	v.lo = ex_fma(x, c, slope, v.lo);
	ValId y = limits(x, join(x, d.n, v), a, -1);
	return ex_select(x, ex_eq(x, a, zero), a, y);
}
