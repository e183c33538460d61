/* exp.c: exp, exp2 and expm1.
 *
 * a = n ln 2 + r with |r| <= ln 2 / 2, r as hi + lo; e^r = 1 + r + r^2 P(r), where 1 + r is summed
 * exactly (its rounding error joins the small rest), and that of r^2 enters with P's first term; times 2^n in two steps, of which only the
 * second can round (subnormal results: a second rounding, under 3/4 of their ulp in all).
 * Arguments so large that n leaves its field are answered by selects; NaN flows through. */
#include "passes/tile/expand.h"
#include "ir/bugs.h"

#include <math.h>

ExReduced
ex_exp_reduce(const Ex *x, ValId a)
{
	ValId magic = ex_float(x, ex_magic(x));
	ExReduced d = {.t = ex_fma(x, a, ex_sum(x, &log2e_sum, 0), magic)};
	d.n = ex_sub(x, d.t, magic);
	/* n times the leading part cancels against a: exact. */
	ValId top = ex_fma(x, d.n, ex_float(x, -ln2_sum.c[x->wide][0]), a);
	ValId low = ex_float(x, -ln2_sum.c[x->wide][1]);
	d.r.hi = ex_fma(x, d.n, low, top);
	d.r.lo = ex_fma(x, d.n, low, ex_sub(x, top, d.r.hi));
	return d;
}

Ex2
ex_exp_small(const Ex *x, Ex2 r)
{
	Ex2 s = ex_fast_sum(x, ex_float(x, 1), r.hi);
	Ex2 square = ex_two_mul(x, r.hi, r.hi);
	ValId rest = ex_fma(x, r.lo, s.hi, s.lo);
	rest = ex_fma(x, square.lo, ex_float(x, 0.5), rest);
	s.lo = ex_fma(x, square.hi, ex_poly(x, &exp_poly, r.hi), rest);
	return s;
}

/* 2^floor(n/2) and 2^ceil(n/2), from n + magic. */
static void
halves(const Ex *x, ValId t, ValId part[2])
{
	uint64_t magic_bits = x->wide ? UINT64_C(0x4338000000000000) : 0x4b400000u;
	ValId both = ex_sub(x, ex_to_bits(x, t), ex_bits(x, magic_bits - 2 * (uint64_t)x->bias));
	ValId half = ex_shr(x, both, 1);
	part[0] = ex_from_bits(x, ex_shl(x, half, (unsigned)x->mant));
	part[1] = ex_from_bits(x, ex_shl(x, ex_sub(x, both, half), (unsigned)x->mant));
}

ValId
ex_scale(const Ex *x, ValId v, ValId t)
{
	ValId part[2];
	halves(x, t, part);
	return ex_mul(x, ex_mul(x, v, part[0]), part[1]);
}

/* v where low <= a <= high, else 0 or infinity; NaN where a is NaN, as v is. */
static ValId
clip(const Ex *x, ValId v, ValId a, double low, double high)
{
	v = ex_select(x, ex_lt(x, a, ex_float(x, low)), ex_float(x, 0), v);
	ValId beyond = ex_float(x, BUG(exp_overflows_to_zero) ? 0 : (double)INFINITY);
	return ex_select(x, ex_lt(x, ex_float(x, high), a), beyond, v);
}

ValId
ex_exp(const Ex *x, ValId a)
{
	ExReduced d = ex_exp_reduce(x, a);
	Ex2 s = ex_exp_small(x, d.r);
	ValId v = ex_scale(x, ex_add(x, s.hi, s.lo), d.t);
	return clip(x, v, a, -x->bias, x->bias);
}

/* r log 2, given an exact r, |r| <= 1/2. */
static Ex2
times_ln2(const Ex *x, ValId r)
{
	Ex2 p = ex_two_mul(x, r, ex_sum(x, &ln2_sum, 0));
	p.lo = ex_fma(x, r, ex_sum(x, &ln2_sum, 1), p.lo);
	return p;
}

ValId
ex_exp2(const Ex *x, ValId a)
{
	ValId magic = ex_float(x, ex_magic(x));
	ValId t = ex_add(x, a, magic);
	ValId r = ex_sub(x, a, ex_sub(x, t, magic));
	Ex2 s = ex_exp_small(x, times_ln2(x, r));
	ValId v = ex_scale(x, ex_add(x, s.hi, s.lo), t);
	return clip(x, v, a, -1.5 * x->bias, 1.5 * x->bias);
}

ValId
ex_exp2_sum(const Ex *x, Ex2 a)
{
	ValId magic = ex_float(x, ex_magic(x));
	ValId t = ex_add(x, a.hi, magic);
	ValId r = ex_sub(x, a.hi, ex_sub(x, t, magic));
	Ex2 p = times_ln2(x, r);
	p.lo = ex_fma(x, a.lo, ex_sum(x, &ln2_sum, 0), p.lo);
	Ex2 s = ex_exp_small(x, ex_fast_sum(x, p.hi, p.lo));
	ValId v = ex_scale(x, ex_add(x, s.hi, s.lo), t);
	return clip(x, v, a.hi, -1.5 * x->bias, 1.5 * x->bias);
}

/* Half of e^a - 1: half, so that 2^n stays finite up to the threshold. The subtraction is exact
 * where it cancels; for tiny a, e^a - 1 rounds to a itself (which also keeps -0). */
ValId
ex_expm1(const Ex *x, ValId a)
{
	ValId floor = ex_float(x, -(x->mant + 3)); /* e^a is then below a quarter ulp of 1 */
	ValId b = ex_select(x, ex_lt(x, a, floor), floor, a);
	ExReduced d = ex_exp_reduce(x, b);
	Ex2 s = ex_exp_small(x, d.r);
	uint64_t magic_bits = x->wide ? UINT64_C(0x4338000000000000) : 0x4b400000u;
	ValId n = ex_sub(x, ex_to_bits(x, d.t), ex_bits(x, magic_bits - (uint64_t)x->bias + 1));
	ValId scale = ex_from_bits(x, ex_shl(x, n, (unsigned)x->mant));
	Ex2 v = ex_two_sum(x, ex_mul(x, s.hi, scale), ex_float(x, -0.5));
	v.lo = ex_fma(x, s.lo, scale, v.lo);
	ValId y = ex_mul(x, ex_add(x, v.hi, v.lo), ex_float(x, 2));
	y = ex_select(x, ex_lt(x, ex_float(x, x->wide ? 710 : 89), a), ex_float(x, (double)INFINITY), y);
	ValId tiny = ex_lt(x, ex_abs(x, a), ex_float(x, x->wide ? 0x1p-54 : 0x1p-25));
	return ex_select(x, tiny, a, y);
}
