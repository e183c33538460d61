/* eval_complex.c: c64, two f32 parts, each with its bound. A product is two products and a sum a
 * part; for a quotient any of the usual algorithms is allowed, so its bound is normwise, and where
 * squares may leave the range of f32 there is none: the result shows the quotient. */
#include "ir/eval_value.h"

static Val
part(Val a, bool im)
{
	return im ? (Val){.re = a.im, .err = a.ierr} : (Val){.re = a.re, .err = a.err};
}

static Val
join(Val re, Val im)
{
	re.soft = false;
	re.im = im.re;
	re.ierr = im.err;
	re.ambiguous |= im.ambiguous;
	return re;
}

static Val
product(FpMode fp, Val a, Val b)
{
	Val ar = part(a, false), ai = part(a, true), br = part(b, false), bi = part(b, true);
	Val re = arith_sub(fp, DT_F32, arith_mul(fp, DT_F32, ar, br), arith_mul(fp, DT_F32, ai, bi));
	Val im = arith_add(fp, DT_F32, arith_mul(fp, DT_F32, ar, bi), arith_mul(fp, DT_F32, ai, br));
	return join(re, im);
}

static Val
quotient(FpMode fp, Val a, Val b)
{
	long double nb = hypotl(b.re, b.im), na = hypotl(a.re, a.im);
	long double ea = hypotl(a.err, a.ierr), eb = hypotl(b.err, b.ierr), low = nb - eb;
	bool safe = low > 0x1p-50L && nb + eb < 0x1p50L && na + ea < 0x1p50L && (na == 0 || na > 0x1p-50L);
	long double square = nb * nb, size = na / nb;
	long double re = (a.re * b.re + a.im * b.im) / square, im = (a.im * b.re - a.re * b.im) / square;
	if (!safe)
		return join(val_open(re), val_open(im));
	long double e = (ea + size * eb) / low + 8 * 0x1p-24L * (size + (ea + size * eb) / low);
	return join(number_settle(fp, DT_F32, re, (double)e), number_settle(fp, DT_F32, im, (double)e));
}

Val
complex_binary(FpMode fp, Op op, Val a, Val b)
{
	switch (op) {
	case OP_ADD:
		return join(arith_add(fp, DT_F32, part(a, false), part(b, false)),
		            arith_add(fp, DT_F32, part(a, true), part(b, true)));
	case OP_SUB:
		return join(arith_sub(fp, DT_F32, part(a, false), part(b, false)),
		            arith_sub(fp, DT_F32, part(a, true), part(b, true)));
	case OP_MUL:
		return product(fp, a, b);
	default: /* FDIV */
		return quotient(fp, a, b);
	}
}

/* e^(2 pi i (a mod n) / n). The language asks for exact a mod n; what is left is one sine and one
 * cosine, within one unit of f32 at 1. Multiples of a quarter turn are exact in the reference. */
Val
complex_root(int64_t a, int64_t n)
{
	if (n == 0)
		return (Val){.re = NAN, .im = NAN};
	int64_t r = n == -1 ? 0 : a % n;
	if (r != 0 && (r < 0) != (n < 0))
		r += n;
	long double turn = (long double)r / (long double)n, angle = 6.283185307179586476925286766559L * turn;
	Val v = {.re = cosl(angle), .im = sinl(angle), .err = 0x1p-23, .ierr = 0x1p-23};
	if (turn == 0.25L || turn == 0.75L)
		v.re = 0;
	if (turn == 0 || turn == 0.5L)
		v.im = 0;
	return v;
}
