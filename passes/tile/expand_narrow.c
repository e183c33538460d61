/* narrow_ex2, narrow_scaled, narrow_short: the functions whose results end in narrow floats, as short as that allows.
 *
 * in     a kernel of a graph in relaxed or fast mode, in which narrowed functions (tir.h) bear the mark of a type
 * out    none of them
 * fp     within 1/16 ulp of that type, with f32's exponents; subnormals, infinities and NaN as in expand_near.c
 * tests  tests/math/narrow_test.c
 *
 * a log2(e) = n + r with |r| <= 1/2, 2^r by a polynomial, times 2^n as in expand_near.c. The product is rounded once, of
 * |a| < 104: 2^-17 of the result at most, where f16 needs 2^-15 and bf16 2^-12. Where arguments are known to be no more than 0
 * the power has one factor, lifted so that it is normal, and another that is a constant: the same bits.
 *
 * Where the target has a unit for 2^a (EX2), which takes any argument but has no subnormal results, it is asked for the
 * root of the result, which is normal wherever its square is not 0: errors count twice, and are as small as above.
 *
 * tanh is 1 - 2 / (e^2a + 1), within 2^-21.1 where units for 2^a and a reciprocal (RCP) are as wrong as they may be, each with
 * the sign that hurts, and 2^-22.2 where 2^a is a polynomial, of which half the error counts. An infinite power makes 1, one of 0
 * -1, without a test; the polynomial has powers up to 2^28, from where on the result is 1. Near 0 that is too much in proportion:
 * for bf16 the result is a below 2^-7, wrong by 2^-15.5 of it, the rest by 2^-14.6 at most; for f16 it is a - a^3 / 3 below 2^-4,
 * 2^-18.9, and the rest 2^-17.5. */
#include "passes/tile/expand.h"
#include "passes/tile/tile.h"

#include "passes/tile/narrow_coefficients.h"

#include "ir/bugs.h"

typedef enum { BY_EX2, BY_SCALE, BY_PRODUCTS } Means;

enum { LIFT = 64 };

/* What is added to n, to leave it in the low bits as the power's factors want it. */
static double
offset_of(const Ex *x, bool low)
{
	return ex_magic(x) + (low ? x->bias + LIFT : 2 * x->bias);
}

/* v 2^n, where t = n + offset: one of two factors can round. */
static ValId
scaled(const Ex *x, ValId v, ValId n, ValId t, bool low)
{
	if (x->scales)
		return tir_binary(x->k, OP_SCALE, v, n);
	if (low) {
		ValId lifted = ex_from_bits(x, ex_shl(x, ex_to_bits(x, t), (unsigned)x->mant));
		return ex_mul(x, ex_mul(x, v, lifted), ex_float(x, 0x1p-64));
	}
	ValId both = ex_to_bits(x, t), half = ex_shr(x, both, 1);
	ValId first = ex_from_bits(x, ex_shl(x, half, (unsigned)x->mant));
	ValId second = ex_from_bits(x, ex_shl(x, ex_sub(x, both, half), (unsigned)x->mant));
	return ex_mul(x, ex_mul(x, v, first), second);
}

/* Half of a, which is half of h + h without another step. */
static ValId
half_of(const Ex *x, ValId a)
{
	const TirInst *p = tir_inst(x->k, a);
	if (p->op == OP_ADD && tir_arg(x->k, a, 0) == tir_arg(x->k, a, 1))
		return tir_arg(x->k, a, 0);
	return ex_mul(x, a, ex_float(x, 0.5));
}

static ValId
narrow_exp(const Ex *x, ValId a, bool two, DType to, bool low)
{
	double least = two ? -151 : -104;
	const ExPoly *p = to == DT_F16 && !BUG(narrow_too_short) ? &exp2_f16_poly : &exp2_bf16_poly;
	ValId log2e = ex_sum(x, &log2e_sum, 0), offset = ex_float(x, offset_of(x, low));
	a = low ? ex_at_least(x, a, least) : ex_between(x, a, least, two ? 129 : 89);
	ValId t = two ? ex_add(x, a, offset) : ex_fma(x, a, log2e, offset), n = ex_sub(x, t, offset);
	ValId r = two ? ex_sub(x, a, n) : ex_fma(x, a, log2e, ex_neg(x, n));
	return scaled(x, ex_poly(x, p, r), n, t, low);
}

/* e^2a */
static ValId
narrow_square(const Ex *x, ValId a, Means by)
{
	ValId log2e2 = ex_float(x, 2 * log2e_sum.c[0][0]);
	if (by == BY_EX2)
		return tir_unary(x->k, OP_EX2, ex_mul(x, a, log2e2));
	ValId magic = ex_float(x, ex_magic(x) + x->bias);
	a = ex_between(x, a, -9.5, 9.5);
	ValId t = ex_fma(x, a, log2e2, magic), n = ex_sub(x, t, magic);
	ValId v = ex_poly(x, &exp2_low_poly, ex_fma(x, a, log2e2, ex_neg(x, n)));
	if (x->scales)
		return tir_binary(x->k, OP_SCALE, v, n);
	return ex_mul(x, v, ex_from_bits(x, ex_shl(x, ex_to_bits(x, t), (unsigned)x->mant)));
}

static ValId
narrow_tanh(const Ex *x, ValId a, DType to, Means by)
{
	ValId one = ex_float(x, 1), sum = ex_add(x, narrow_square(x, a, by), one), small = a, large;
	if (by == BY_EX2)
		large = ex_fma(x, tir_unary(x->k, OP_RCP, sum), ex_float(x, -2), one);
	else
		large = ex_sub(x, one, ex_middle_quotient(x, ex_float(x, 2), sum));
	if (to == DT_F16 && !BUG(narrow_too_short))
		small = ex_mul(x, a, ex_fma(x, ex_mul(x, a, a), ex_float(x, -0x1.555556p-2), one));
	return ex_select(x, ex_lt(x, ex_abs(x, a), ex_float(x, to == DT_F16 ? 0x1p-4 : 0x1p-7)), small, large);
}

/* 2^a, or e^a. */
static ValId
narrow_power(const Ex *x, ValId a, bool two, const TirInst *p, Means by)
{
	if (by == BY_EX2) {
		ValId half = two ? half_of(x, a) : ex_mul(x, a, ex_float(x, log2e_sum.c[0][0] / 2));
		ValId root = tir_unary(x->k, OP_EX2, half);
		return ex_mul(x, root, root);
	}
	return narrow_exp(x, a, two, TIR_NARROW(p->imm.i), p->op != OP_POW && p->imm.i & TIR_NO_MORE_THAN_0);
}

/* a^b = 2^(b log2 |a|) with the sign of a where b is odd; b is a whole number, and finite. The exponent is off by less than 2^-22 of
 * itself, and no larger than 150 where the power is anything but 0 or infinite: that is 2^-15.5 of the power. */
static ValId
narrow_pow(const Ex *x, ValId a, ValId b, const TirInst *p, Means by)
{
	ValId exponent = ex_mul(x, b, tir_unary(x->k, OP_LOG2, ex_abs(x, a)));
	ValId v = narrow_power(x, exponent, true, p, by), half = ex_mul(x, b, ex_float(x, 0.5));
	ValId even = ex_eq(x, tir_unary(x->k, OP_FLOOR, half), half);
	v = ex_flip(x, v, ex_select(x, even, ex_bits(x, 0), BUG(narrow_power_unsigned) ? ex_bits(x, 0) : ex_sign_bit(x, a)));
	return ex_select(x, ex_eq(x, b, ex_float(x, 0)), ex_float(x, 1), v);
}

static bool
is_taken(const TirInst *p)
{
	return op_info[p->op].flags & F_NARROW && TIR_NARROW(p->imm.i) != DT_NONE;
}

static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const TirInst *p = tir_inst(from, v);
	Means by = *(const Means *)user;
	if (!is_taken(p))
		return tir_copy_inst(to, from, v, arg);
	Ex x = ex_of(to, p->type);
	x.scales = by == BY_SCALE;
	if (p->op == OP_TANH)
		return narrow_tanh(&x, arg[0], TIR_NARROW(p->imm.i), by);
	if (p->op == OP_POW)
		return narrow_pow(&x, arg[0], arg[1], p, by);
	return narrow_power(&x, arg[0], p->op == OP_EXP2, p, by);
}

static TirKernel *
expand_kernel(const TirKernel *k, Arena *a, Means by)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_taken(tir_inst(k, v)))
			return tir_rewrite(k, a, expand, &by);
	return (TirKernel *)(uintptr_t)k;
}

TirKernel *
tile_narrow_ex2(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, BY_EX2);
}

TirKernel *
tile_narrow_scaled(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, BY_SCALE);
}

TirKernel *
tile_narrow_short(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, BY_PRODUCTS);
}
