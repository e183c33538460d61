/* trig.c: sin and cos over the whole range.
 *
 * ex_turns gives a = q (pi/2) + r with r as hi + lo; then sin r = r + r^3 S(r^2) and
 * cos r = 1 - r^2/2 + r^4 C(r^2), with the errors of the leading steps kept; q chooses. */
#include "passes/tile/expand.h"

static ValId
sin_small(const Ex *x, Ex2 r, ValId square)
{
	ValId cube = ex_mul(x, square, r.hi);
	ValId slope = ex_fma(x, square, ex_float(x, -0.5), ex_float(x, 1));
	ValId rest = ex_mul(x, r.lo, slope);
	return ex_add(x, r.hi, ex_fma(x, cube, ex_poly(x, &sin_poly, square), rest));
}

static ValId
cos_small(const Ex *x, Ex2 r, ValId square)
{
	ValId half = ex_mul(x, square, ex_float(x, 0.5));
	ValId half_error = ex_fma(x, ex_mul(x, r.hi, ex_float(x, 0.5)), r.hi, ex_neg(x, half));
	Ex2 s = ex_fast_sum(x, ex_float(x, 1), ex_neg(x, half));
	ValId rest = ex_sub(x, s.lo, half_error);
	rest = ex_sub(x, rest, ex_mul(x, r.hi, r.lo));
	ValId fourth = ex_mul(x, square, square);
	return ex_add(x, s.hi, ex_fma(x, fourth, ex_poly(x, &cos_poly, square), rest));
}

/* sin(a + shift * pi/2) */
static ValId
sin_shifted(const Ex *x, ValId a, unsigned shift)
{
	ExTurns d = ex_turns(x, a);
	ValId square = ex_mul(x, d.r.hi, d.r.hi);
	ValId q = ex_add(x, d.q, ex_bits(x, shift));
	ValId odd = ex_eq(x, ex_and(x, q, ex_bits(x, 1)), ex_bits(x, 1));
	ValId v = ex_select(x, odd, cos_small(x, d.r, square), sin_small(x, d.r, square));
	return ex_flip(x, v, ex_shl(x, ex_and(x, q, ex_bits(x, 2)), x->wide ? 62 : 30));
}

/* A zero stays as it is: 0 + 0 in the sum above would lose its sign. */
ValId
ex_sin(const Ex *x, ValId a)
{
	return ex_select(x, ex_eq(x, a, ex_float(x, 0)), a, sin_shifted(x, a, 0));
}

ValId
ex_cos(const Ex *x, ValId a)
{
	return sin_shifted(x, a, 1);
}
