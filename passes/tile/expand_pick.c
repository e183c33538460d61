/* expand_pick, expand_pick_scaled: exp, exp2 and erf of f32 by short polynomials, whose coefficients PICK chooses lane by lane.
 *
 * in     a kernel of a graph in relaxed or fast mode, for a target that picks from 8 lanes by one instruction
 * out    no EXP, EXP2 or ERF of f32
 * fp     within 1 ulp, erf 1.5: docs/accuracy.md has the worst errors
 * tests  tests/math/
 *
 * exp: a = n ln 2 + r, n a multiple of 1/8, |r| <= ln 2 / 16. e^r = s (1 + q) with a number s near 1 and q a polynomial, so
 * 2^(n - floor n) e^r = p + p q, where p = s 2^(n - floor n) is one of eight numbers; s is such that all are nearly floats.
 * n + 1.5 2^20 has n's eighths in its last bits. Arguments beyond those whose results are 0 and infinity are replaced by some
 * that have these results; NaN flows through, whatever is picked then.
 *
 * Times 2^floor(n) in one operation (SCALE), or in two steps, of which only the second can round: p's exponent takes a half of it
 * as an integer, the product with the other half is rounded. Where arguments are known to be no more than 0 all of n fits
 * into p's exponent, lifted by 64, and the first step is an addition. All ways have the same bits.
 *
 * erf: |a| = k 17/32 + u, |u| <= 17/64; for k = 0, where |a| can be tiny, u + u q, else c + u q, q and c of the k-th polynomial.
 * From 3.96 on erf is 1. */
#include "passes/tile/expand.h"
#include "passes/tile/tile.h"

#include "passes/tile/pick_coefficients.h"

#include <math.h>
#include <string.h>

enum {
	EIGHTHS = 3, /* bits below the point of n */
	LIFT = 64    /* powers that are no more than 1 are made 2^LIFT times as large, so that all of them are normal */
};

static uint32_t
bits_of(double v)
{
	float f = (float)v;
	uint32_t u;
	memcpy(&u, &f, sizeof u);
	return u;
}

/* The lane of these numbers that `number` says, taken as bits of f32. */
static ValId
pick(const Ex *x, const uint32_t bits[PICKS], ValId number)
{
	ValId lane[PICKS];
	for (unsigned k = 0; k < PICKS; k++)
		lane[k] = tir_int(x->k, DT_U32, bits[k]);
	ValId from = tir_emit(x->k, OP_JOIN, tir_vector(DT_U32, PICKS), 0, lane, PICKS);
	return tir_emit(x->k, OP_PICK, tir_inst(x->k, number)->type, 0, (ValId[]){from, number}, 2);
}

static ValId
polynomial(const Ex *x, const double *c, unsigned n, ValId at)
{
	ValId v = ex_float(x, c[n - 1]);
	while (n-- > 1)
		v = ex_fma(x, v, at, ex_float(x, c[n - 1]));
	return v;
}

/* The bits of 2^n s 2^LIFT: n, lifted, is added to the exponent of s; what its eighths add below the exponent is taken from s before. */
static ValId
lifted(const Ex *x, ValId bits)
{
	uint32_t from[PICKS];
	for (uint32_t k = 0; k < PICKS; k++)
		from[k] = bits_of(power_pick[k]) - (k << (x->mant - EIGHTHS));
	return tir_binary(x->k, OP_ADD, pick(x, from, bits), ex_shl(x, bits, (unsigned)(x->mant - EIGHTHS)));
}

/* 2^n s (1 + q), where t = n + offset. */
static ValId
power(const Ex *x, ValId q, ValId n, ValId t, bool low)
{
	ValId bits = ex_to_bits(x, t);
	if (low && !x->scales) {
		ValId p = ex_from_bits(x, lifted(x, bits));
		return ex_mul(x, ex_fma(x, p, q, p), ex_float(x, ldexp(1, -LIFT)));
	}
	uint32_t from[PICKS], down = x->scales ? 0 : (uint32_t)x->bias << x->mant;
	for (unsigned k = 0; k < PICKS; k++)
		from[k] = bits_of(power_pick[k]) - down;
	ValId p = pick(x, from, bits);
	if (x->scales) {
		p = ex_from_bits(x, p);
		return tir_binary(x->k, OP_SCALE, ex_fma(x, p, q, p), n);
	}
	ValId half = ex_shl(x, ex_shr(x, bits, EIGHTHS + 1), (unsigned)x->mant);
	ValId rest = ex_sub(x, ex_shl(x, ex_shr(x, bits, EIGHTHS), (unsigned)x->mant), half);
	p = ex_from_bits(x, tir_binary(x->k, OP_ADD, p, half));
	return ex_mul(x, ex_fma(x, p, q, p), ex_from_bits(x, rest));
}

/* 1.5 2^20, and LIFT, or twice the bias, which makes both halves of n fields of an exponent. */
static ValId
offset(const Ex *x, bool low)
{
	return ex_float(x, ex_magic(x) / (1 << EIGHTHS) + (low ? LIFT : 2 * x->bias));
}

static ValId
pick_exp(const Ex *x, ValId a, bool low)
{
	ValId from = offset(x, low);
	a = low ? ex_at_least(x, a, -104) : ex_between(x, a, -104, 89);
	ValId t = ex_fma(x, a, ex_sum(x, &log2e_sum, 0), from), n = ex_sub(x, t, from);
	ValId r = ex_fma(x, n, ex_float(x, -ln2_sum.c[0][0]), a);
	r = ex_fma(x, n, ex_float(x, -ln2_sum.c[0][1]), r);
	return power(x, polynomial(x, exp_pick_poly, 4, r), n, t, low);
}

static ValId
pick_exp2(const Ex *x, ValId a, bool low)
{
	ValId from = offset(x, low);
	a = low ? ex_at_least(x, a, -151) : ex_between(x, a, -151, 129);
	ValId t = ex_add(x, a, from), n = ex_sub(x, t, from);
	return power(x, polynomial(x, exp2_pick_poly, 4, ex_sub(x, a, n)), n, t, low);
}

static ValId
pick_erf(const Ex *x, ValId a)
{
	const double width = 17.0 / 32, last = 3.96;
	ValId size = ex_abs(x, a), top = ex_float(x, last), magic = ex_float(x, ex_magic(x)), v = 0;
	size = ex_select(x, ex_lt(x, top, size), top, size);
	ValId t = ex_fma(x, size, ex_float(x, 1 / width), magic), k = ex_sub(x, t, magic);
	ValId u = ex_fma(x, k, ex_float(x, -width), size);
	for (unsigned term = 8; term-- > 0;) {
		uint32_t from[PICKS];
		for (unsigned p = 0; p < PICKS; p++)
			from[p] = bits_of(erf_pick_poly[p][term]);
		ValId c = ex_from_bits(x, pick(x, from, ex_to_bits(x, t)));
		if (term == 0)
			c = ex_select(x, ex_eq(x, k, ex_float(x, 0)), u, c);
		v = v ? ex_fma(x, v, u, c) : c;
	}
	return ex_flip(x, v, ex_sign_bit(x, a));
}

static bool
is_taken(const TirInst *p)
{
	return p->type.dtype == DT_F32 && (p->op == OP_EXP || p->op == OP_EXP2 || p->op == OP_ERF);
}

static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const TirInst *p = tir_inst(from, v);
	if (!is_taken(p))
		return tir_copy_inst(to, from, v, arg);
	Ex x = ex_of(to, p->type);
	x.scales = *(const bool *)user;
	if (p->op == OP_ERF)
		return pick_erf(&x, arg[0]);
	return (p->op == OP_EXP ? pick_exp : pick_exp2)(&x, arg[0], p->imm.i & TIR_NO_MORE_THAN_0);
}

static TirKernel *
expand_kernel(const TirKernel *k, Arena *a, bool scales)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_taken(tir_inst(k, v)))
			return tir_rewrite(k, a, expand, &scales);
	return (TirKernel *)(uintptr_t)k;
}

TirKernel *
tile_expand_pick_scaled(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, true);
}

TirKernel *
tile_expand_pick(const TirKernel *k, Arena *a)
{
	return expand_kernel(k, a, false);
}
