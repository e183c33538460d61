/* whole_power.c: pow with a constant exponent n that is a whole number, |n| <= 64, or 1/2.
 *
 * The squares of a, and the product of those that the bits of n name; of 1/a where n is negative, since
 * the power of a could overflow where its reciprocal is a subnormal number. Powers are hi + lo to about
 * twice the precision, and the last product is rounded once: 0.5 ulp and next to nothing. Where lo is of
 * no use (hi is infinite), what comes out is 0, NaN, or infinite with any sign: the product of the hi knows
 * better. Lost low parts of tiny powers don't matter: with |a| < 1 all are larger than the result.
 *
 * Some are within 2 ulp by simpler products:
 *     a^3    the square's error, up to half an ulp, counts at most once: 1.5
 *     a^4    the error e of the square m is 2 m e of m^2: for m < sqrt(2) 2 m 2^-24 < 1.42 ulp, above that
 *            (the result's ulp is twice as large) less than 1; and half an ulp of its own
 *     a^-2   the same, with the reciprocal as m
 *     a^7    p of a^3 and q of a^4, each rounded once, 1 <= p, q < 2: where p q < 2 their errors count
 *            (p + q)/2 < 1.5 ulp, above that half as much; a^5, a^6 and a^8 less. The square's error counts
 *            three times, and all three are put right in a^3: what is left of a^4 is the square's square
 * What the square lacks is found exactly. Of a square whose powers are all infinite something else is: it is
 * taken from a limit, so that it is no less than 0, maybe infinite itself, and of no sign that would make a NaN. */
#include "passes/tile/expand.h"

#include "ir/bugs.h"

#include <math.h>

enum { LARGEST = 64 };

/* lo 0: none. */
static Ex2
product(const Ex *x, Ex2 a, Ex2 b)
{
	Ex2 p = ex_two_mul(x, a.hi, b.hi);
	if (a.lo)
		p.lo = ex_fma(x, a.lo, b.hi, p.lo);
	if (b.lo)
		p.lo = ex_fma(x, a.hi, b.lo, p.lo);
	return p;
}

/* a b rounded once. */
static ValId
last_product(const Ex *x, Ex2 a, Ex2 b)
{
	ValId plain = ex_mul(x, a.hi, b.hi);
	if (!a.lo && !b.lo)
		return plain;
	ValId cross = a.lo ? ex_mul(x, a.lo, b.hi) : ex_mul(x, a.hi, b.lo);
	if (a.lo && b.lo)
		cross = ex_fma(x, a.hi, b.lo, cross);
	ValId size = ex_abs(x, ex_fma(x, a.hi, b.hi, cross));
	return ex_select(x, ex_lt(x, ex_float(x, 0), size), ex_flip(x, size, ex_sign_bit(x, plain)), plain);
}

static Ex2
reciprocal(const Ex *x, ValId a, bool plain)
{
	ValId one = ex_float(x, 1);
	Ex2 y = {.hi = tir_binary(x->k, OP_FDIV, one, a)};
	if (!plain)
		y.lo = ex_mul(x, ex_fma(x, ex_neg(x, y.hi), a, one), y.hi);
	return y;
}

static Ex2
times(const Ex *x, Ex2 a, Ex2 b, bool plain)
{
	return plain ? (Ex2){.hi = ex_mul(x, a.hi, b.hi)} : product(x, a, b);
}

/* a^n, 5 <= n <= 8, within 2 ulp: a product of a, a^3 and a^4, of which the last two are rounded once. */
static ValId
middle_power(const Ex *x, ValId a, int n)
{
	ValId square = ex_mul(x, a, a), limit = ex_float(x, x->wide ? 0x1p450 : 0x1p60); /* beyond, powers are infinite */
	ValId near = tir_binary(x->k, OP_MIN, ex_to_bits(x, square), ex_to_bits(x, limit)); /* as numbers are: it is no less than 0 */
	ValId low = ex_fma(x, a, a, ex_neg(x, BUG(power_of_infinity) ? square : ex_from_bits(x, near)));
	if (n == 6 || n == 7) {
		ValId base = n == 6 ? a : ex_mul(x, a, ex_float(x, 3));
		ValId cube = ex_fma(x, square, a, ex_mul(x, low, base));
		return ex_mul(x, cube, n == 6 ? cube : ex_mul(x, square, square));
	}
	ValId fourth = ex_fma(x, square, square, ex_mul(x, ex_add(x, square, square), low));
	return ex_mul(x, n == 5 ? a : fourth, fourth);
}

static ValId
whole_power(const Ex *x, ValId a, int n)
{
	if (n >= 5 && n <= 8)
		return middle_power(x, a, n);
	bool plain = n >= -2 && n <= 4;
	unsigned left = (unsigned)(n < 0 ? -n : n);
	Ex2 square = n < 0 ? reciprocal(x, a, plain) : (Ex2){.hi = a}, v = {0};
	if (n == 0)
		return ex_float(x, 1);
	for (; left > 1; left >>= 1) {
		if (left & 1)
			v = v.hi ? times(x, v, square, plain) : square;
		if (left == 2 && !v.hi)
			return last_product(x, square, square);
		square = times(x, square, square, plain);
	}
	return v.hi ? last_product(x, v, square) : square.hi;
}

ValId
ex_constant_pow(const Ex *x, ValId a, ValId b)
{
	const TirInst *constant = ex_constant(x->k, b);
	double n = constant ? constant->imm.f : (double)NAN;
	if (n == 0.5) { /* unlike sqrt, of -0 and of -infinity */
		ValId infinity = ex_float(x, (double)INFINITY);
		ValId root = tir_unary(x->k, OP_SQRT, ex_add(x, a, ex_float(x, 0)));
		return ex_select(x, ex_eq(x, a, ex_neg(x, infinity)), infinity, root);
	}
	return fabs(n) <= LARGEST && n == floor(n) ? whole_power(x, a, (int)n) : 0;
}
