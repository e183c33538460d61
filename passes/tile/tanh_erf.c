/* tanh_erf.c: tanh and erf, on |a|, with a's sign put back at the end.
 *
 * tanh: r + r^3 P(r^2) up to 0.55; above, 1 - 2 / (e^(2r) + 1), where denominator, quotient and
 * difference carry their rounding errors along. erf: r + r P(r^2) up to 7/8; above,
 * 1 - exp(-r^2 + Q(r)), Q = log(erfc(r) e^(r^2)), r^2 exactly. Where 1 is the result, r is cut off
 * first, so that infinity needs no case of its own; NaN compares false and flows through. */
#include "passes/tile/expand.h"

static ValId
at_most(const Ex *x, ValId a, double limit)
{
	ValId top = ex_float(x, limit);
	return ex_select(x, ex_lt(x, top, a), top, a);
}

/* 1 - 2 / (e^(2r) + 1) for 0.5 < r < 25 */
static ValId
tanh_large(const Ex *x, ValId r)
{
	ExReduced d = ex_exp_reduce(x, ex_mul(x, r, ex_float(x, 2)));
	Ex2 s = ex_exp_small(x, d.r);
	s = ex_fast_sum(x, s.hi, s.lo);
	ValId one = ex_float(x, 1), two = ex_float(x, 2);
	Ex2 sum = ex_fast_sum(x, ex_scale(x, s.hi, d.t), one);
	sum.lo = ex_add(x, sum.lo, ex_scale(x, s.lo, d.t));
	ValId q = ex_middle_quotient(x, two, sum.hi);
	ValId minus = ex_neg(x, q);
	/* What is left of 2 - q * sum, divided by sum: q / 2 is 1 / sum. */
	ValId left = ex_fma(x, minus, sum.lo, ex_fma(x, minus, sum.hi, two));
	ValId q_low = ex_mul(x, left, ex_mul(x, q, ex_float(x, 0.5)));
	Ex2 v = ex_fast_sum(x, one, minus);
	return ex_add(x, v.hi, ex_sub(x, v.lo, q_low));
}

ValId
ex_tanh(const Ex *x, ValId a)
{
	ValId r = at_most(x, ex_abs(x, a), x->wide ? 22 : 10);
	ValId square = ex_mul(x, r, r);
	ValId small = ex_fma(x, ex_mul(x, square, r), ex_poly(x, &tanh_poly, square), r);
	ValId v = ex_select(x, ex_lt(x, r, ex_float(x, 0.55)), small, tanh_large(x, r));
	return ex_flip(x, v, ex_sign_bit(x, a));
}

/* 1 - exp(-r^2 + Q(r)) for 7/8 <= r <= 6 */
static ValId
erf_large(const Ex *x, ValId r)
{
	ValId one = ex_float(x, 1);
	Ex2 square = ex_two_mul(x, r, r);
	ValId rest = ex_sub(x, ex_poly(x, &erfcx_poly, ex_sub(x, r, one)), square.lo);
	Ex2 power = ex_two_sum(x, ex_neg(x, square.hi), rest);
	ExReduced d = ex_exp_reduce(x, power.hi);
	d.r.lo = ex_add(x, d.r.lo, power.lo);
	Ex2 s = ex_exp_small(x, d.r);
	Ex2 v = ex_fast_sum(x, one, ex_neg(x, ex_scale(x, s.hi, d.t)));
	return ex_add(x, v.hi, ex_sub(x, v.lo, ex_scale(x, s.lo, d.t)));
}

ValId
ex_erf(const Ex *x, ValId a)
{
	ValId r = at_most(x, ex_abs(x, a), x->wide ? 6 : 4);
	ValId square = ex_mul(x, r, r);
	ValId small = ex_fma(x, r, ex_poly(x, &erf_poly, square), r);
	ValId v = ex_select(x, ex_lt(x, r, ex_float(x, 0.875)), small, erf_large(x, r));
	return ex_flip(x, v, ex_sign_bit(x, a));
}
