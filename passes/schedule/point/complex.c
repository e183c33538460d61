/* complex.c: c64 arithmetic on pairs of f32, and exact roots of unity.
 *
 * Products are the textbook formula in f32. Quotients go through f64, where squares of f32 can
 * neither overflow nor vanish and products of f32 are exact: each part is rounded to f64 three times
 * and to f32 once. An infinite divisor gives NaN, as the formula does. */
#include "passes/schedule/point/point.h"

static ValId
bin(Point *l, Op op, ValId a, ValId b)
{
	return tir_binary(l->tir, op, a, b);
}

static PointVal
multiply(Point *l, PointVal a, PointVal b)
{
	return (PointVal){
		.re = bin(l, OP_SUB, bin(l, OP_MUL, a.re, b.re), bin(l, OP_MUL, a.im, b.im)),
		.im = bin(l, OP_ADD, bin(l, OP_MUL, a.re, b.im), bin(l, OP_MUL, a.im, b.re)),
	};
}

static PointVal
divide(Point *l, PointVal a, PointVal b)
{
	TirKernel *k = l->tir;
	ValId ar = tir_cast(k, DT_F64, a.re), ai = tir_cast(k, DT_F64, a.im);
	ValId br = tir_cast(k, DT_F64, b.re), bi = tir_cast(k, DT_F64, b.im);
	ValId d = bin(l, OP_ADD, bin(l, OP_MUL, br, br), bin(l, OP_MUL, bi, bi));
	ValId re = bin(l, OP_ADD, bin(l, OP_MUL, ar, br), bin(l, OP_MUL, ai, bi));
	ValId im = bin(l, OP_SUB, bin(l, OP_MUL, ai, br), bin(l, OP_MUL, ar, bi));
	return (PointVal){.re = tir_cast(k, DT_F32, bin(l, OP_FDIV, re, d)),
	                .im = tir_cast(k, DT_F32, bin(l, OP_FDIV, im, d))};
}

PointVal
point_complex(Point *l, Op op, PointVal a, PointVal b)
{
	if (op == OP_MUL)
		return multiply(l, a, b);
	if (op == OP_FDIV)
		return divide(l, a, b);
	if (op == OP_NEG)
		return (PointVal){.re = tir_unary(l->tir, op, a.re), .im = tir_unary(l->tir, op, a.im)};
	if (op == OP_EQ)
		return (PointVal){.re = bin(l, OP_AND, bin(l, op, a.re, b.re), bin(l, op, a.im, b.im))};
	if (op == OP_NE)
		return (PointVal){.re = bin(l, OP_OR, bin(l, op, a.re, b.re), bin(l, op, a.im, b.im))};
	return (PointVal){.re = bin(l, op, a.re, b.re), .im = bin(l, op, a.im, b.im)};
}

/* q when it is at most n - q, else n - q: mirrors a fraction of n at its half. */
static ValId
mirror(Point *l, ValId q, ValId n, ValId *mirrored)
{
	ValId rest = bin(l, OP_SUB, n, q);
	*mirrored = bin(l, OP_LT, rest, q);
	return tir_select(l->tir, *mirrored, rest, q);
}

static ValId
negate_if(Point *l, ValId c, ValId v)
{
	return tir_select(l->tir, c, tir_unary(l->tir, OP_NEG, v), v);
}

/* e^(2 pi i (a mod n)/n). The angle 2 pi k/n is mirrored into 0..pi/4 in integers, without overflow:
 * k at n/2 (conjugate), then 2k at n/2 of what is left (negated real part), then 4k (parts swapped);
 * there cos and sin of f64, a rounding of the quotient and one of the product away from exact, are
 * far closer than 1 ulp of the f32 that they are rounded to. */
PointVal
point_root(Point *l, ValId a, ValId n)
{
	TirKernel *k = l->tir;
	ValId below, left, steep, two = tir_int(k, DT_I64, 2);
	ValId whole = tir_unary(k, OP_ABS, n);
	ValId q = mirror(l, tir_unary(k, OP_ABS, bin(l, OP_IMOD, a, n)), whole, &below);
	q = mirror(l, bin(l, OP_MUL, q, two), whole, &left);
	q = mirror(l, bin(l, OP_MUL, q, two), whole, &steep);
	ValId turn = bin(l, OP_FDIV, tir_cast(k, DT_F64, q), tir_cast(k, DT_F64, whole));
	ValId angle = bin(l, OP_MUL, turn, tir_float(k, DT_F64, 1.5707963267948966));
	ValId c = tir_unary(k, OP_COS, angle), s = tir_unary(k, OP_SIN, angle);
	ValId re = negate_if(l, left, tir_select(k, steep, s, c));
	ValId im = negate_if(l, below, tir_select(k, steep, c, s));
	return (PointVal){.re = tir_cast(k, DT_F32, re), .im = tir_cast(k, DT_F32, im)};
}
