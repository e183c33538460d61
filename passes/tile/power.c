/* power.c: rsqrt and pow.
 *
 * rsqrt: an estimate from the exponent's half, three or four Newton steps, and a last one whose
 * residual 1 - a y^2 is exact to twice the precision.
 *
 * pow: |a|^b = 2^(b log2 |a|). log2 |a| = n + log2 e * 2 atanh(s), s = (m - 1) / (m + 1), is held as
 * hi + lo with about 15 bits more than the type has, the product likewise, and ex_exp2_sum takes the
 * sum. The signs and C23's table are selects at the end. */
#include "passes/tile/expand.h"

#include <math.h>

/* y (1 + e/2), e = 1 - a y^2 */
static ValId
newton(const Ex *x, ValId half_a, ValId y)
{
	ValId e = ex_fma(x, ex_neg(x, ex_mul(x, half_a, y)), y, ex_float(x, 0.5));
	return ex_fma(x, y, e, y);
}

/* For normal a: the estimate is good to 3.5 %, each step squares that. */
static ValId
rsqrt_normal(const Ex *x, ValId a)
{
	ValId start = ex_bits(x, x->wide ? UINT64_C(0x5fe6eb50c7b537a9) : 0x5f375a86u);
	ValId y = ex_from_bits(x, ex_sub(x, start, ex_shr(x, ex_to_bits(x, a), 1)));
	ValId half_a = ex_mul(x, a, ex_float(x, 0.5));
	for (int i = 0; i < (x->wide ? 4 : 3); i++)
		y = newton(x, half_a, y);
	Ex2 p = ex_two_mul(x, a, y);
	ValId minus = ex_neg(x, y);
	ValId e = ex_fma(x, minus, p.lo, ex_fma(x, minus, p.hi, ex_float(x, 1)));
	return ex_fma(x, ex_mul(x, y, ex_float(x, 0.5)), e, y);
}

ValId
ex_rsqrt(const Ex *x, ValId a)
{
	/* Small arguments are scaled by an even power of two. */
	ValId small = ex_lt(x, a, ex_float(x, x->wide ? 0x1p-900 : 0x1p-90));
	double up = x->wide ? 0x1p200 : 0x1p60, up_root = x->wide ? 0x1p100 : 0x1p30;
	ValId b = ex_select(x, small, ex_mul(x, a, ex_float(x, up)), a);
	ValId y = rsqrt_normal(x, b);
	y = ex_select(x, small, ex_mul(x, y, ex_float(x, up_root)), y);
	ValId zero = ex_float(x, 0), infinity = ex_float(x, (double)INFINITY);
	/* 1/sqrt(-0) is -infinity. */
	ValId pole = ex_flip(x, infinity, ex_sign_bit(x, a));
	ValId none = ex_select(x, ex_eq(x, a, zero), pole, ex_float(x, (double)NAN));
	y = ex_select(x, ex_eq(x, a, infinity), zero, y);
	return ex_select(x, ex_lt(x, zero, a), y, none);
}

/* c + v, where v is smaller; v.lo 0: none. */
static Ex2
sum_of(const Ex *x, const ExSum *c, Ex2 v)
{
	Ex2 s = ex_fast_sum(x, ex_sum(x, c, 0), v.hi);
	ValId low = ex_sum(x, c, 1);
	if (v.lo)
		low = ex_add(x, low, v.lo);
	return (Ex2){s.hi, ex_add(x, s.lo, low)};
}

/* atanh(f / (2 + f)) * 2 = log(1 + f), as hi + lo */
static Ex2
log_sum(const Ex *x, ValId f)
{
	Ex2 d = ex_fast_sum(x, ex_float(x, 2), f);
	ValId inverse = tir_binary(x->k, OP_FDIV, ex_float(x, 1), d.hi);
	Ex2 s = {.hi = ex_mul(x, f, inverse)};
	ValId minus = ex_neg(x, s.hi);
	ValId left = ex_fma(x, minus, d.lo, ex_fma(x, minus, d.hi, f));
	s.lo = ex_mul(x, left, inverse);
	Ex2 z = ex_mul2(x, s, s);
	/* w = z (1/3 + z (1/5 + z Q(z))) */
	ValId rest = ex_mul(x, z.hi, ex_poly(x, &atanh_poly, z.hi));
	Ex2 w = sum_of(x, &fifth, (Ex2){rest, 0});
	w = sum_of(x, &third, ex_mul2(x, z, w));
	w = ex_mul2(x, z, w);
	Ex2 twice = {ex_add(x, s.hi, s.hi), ex_add(x, s.lo, s.lo)};
	Ex2 p = ex_mul2(x, twice, w);
	Ex2 sum = ex_fast_sum(x, twice.hi, p.hi);
	sum.lo = ex_add(x, sum.lo, ex_add(x, twice.lo, p.lo));
	return ex_fast_sum(x, sum.hi, sum.lo);
}

/* log2 of a >= 0, infinite at 0 and infinity */
static Ex2
log2_sum(const Ex *x, ValId a)
{
	ExSplit d = ex_log_split(x, a, x->wide ? UINT64_C(0x3fe6a09e667f3bcd) : 0x3f3504f3u); /* sqrt(1/2) */
	Ex2 v = log_sum(x, ex_sub(x, d.m, ex_float(x, 1)));
	v = ex_mul2(x, v, (Ex2){ex_sum(x, &log2e_sum, 0), ex_sum(x, &log2e_sum, 1)});
	Ex2 s = ex_fast_sum(x, d.n, v.hi);
	s = ex_fast_sum(x, s.hi, ex_add(x, s.lo, v.lo));
	ValId zero = ex_float(x, 0), infinity = ex_float(x, (double)INFINITY);
	s.hi = ex_select(x, ex_eq(x, a, zero), ex_neg(x, infinity), s.hi);
	s.hi = ex_select(x, ex_eq(x, a, infinity), infinity, s.hi);
	return s;
}

/* |a|^b, NaN where an operand is NaN. */
static ValId
pow_size(const Ex *x, ValId size, ValId b)
{
	Ex2 l = log2_sum(x, size);
	Ex2 e = ex_two_mul(x, b, l.hi);
	e.lo = ex_fma(x, b, l.lo, e.lo);
	ValId v = ex_exp2_sum(x, e);
	/* 1^b is 1 for infinite b as well. */
	ValId one = ex_float(x, 1);
	v = ex_select(x, ex_eq(x, size, one), one, v);
	ValId nan = tir_binary(x->k, OP_OR, tir_unary(x->k, OP_ISNAN, size),
	                       tir_unary(x->k, OP_ISNAN, b));
	return ex_select(x, nan, ex_float(x, (double)NAN), v);
}

ValId
ex_pow(const Ex *x, ValId a, ValId b)
{
	ValId v = pow_size(x, ex_abs(x, a), b);
	ValId zero = ex_float(x, 0), one = ex_float(x, 1);
	ValId half = ex_mul(x, b, ex_float(x, 0.5));
	ValId whole = ex_eq(x, tir_unary(x->k, OP_FLOOR, b), b);
	ValId even = ex_eq(x, tir_unary(x->k, OP_FLOOR, half), half);
	ValId odd = tir_binary(x->k, OP_AND, whole, tir_unary(x->k, OP_NOT, even));
	ValId sign = ex_select(x, odd, ex_sign_bit(x, a), ex_bits(x, 0));
	v = ex_flip(x, v, sign);
	/* A finite negative to a power that is no integer. */
	ValId negative = tir_binary(x->k, OP_AND, ex_lt(x, a, zero),
	                            ex_lt(x, ex_float(x, -(double)INFINITY), a));
	ValId undefined = tir_binary(x->k, OP_AND, negative, tir_unary(x->k, OP_NOT, whole));
	v = ex_select(x, undefined, ex_float(x, (double)NAN), v);
	ValId unit = tir_binary(x->k, OP_OR, ex_eq(x, b, zero), ex_eq(x, a, one));
	return ex_select(x, unit, one, v);
}
