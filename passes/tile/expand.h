/* expand.h: building arithmetic of one type inside an expansion.
 *
 * An Ex names the kernel and the type worked in: f32 or f64, scalar or vector. The functions below
 * append one operation each; a value of type Ex2 is the unevaluated sum hi + lo, |lo| far below
 * |hi|, which is how the expansions keep more than the type's precision where they need it. */
#ifndef TEXO_PASSES_TILE_EXPAND_H
#define TEXO_PASSES_TILE_EXPAND_H

#include "ir/tir.h"
#include "passes/tile/coefficients.h"

typedef struct {
	TirKernel *k;
	DType f, u;     /* the float type; the unsigned type of its bits */
	uint16_t lanes; /* 0: scalar */
	int wide;       /* 0: f32, 1: f64: the index into ExSum and ExPoly */
	int mant, bias; /* bits of the stored significand; exponent bias */
	bool scales;    /* SCALE may be used */
	bool powers;    /* EX2 may */
} Ex;

typedef struct {
	ValId hi, lo;
} Ex2;

Ex ex_of(TirKernel *k, TirType t);
ValId ex_float(const Ex *x, double v);      /* a constant, rounded to the type */
ValId ex_bits(const Ex *x, uint64_t v);     /* a constant of the unsigned type */
ValId ex_sum(const Ex *x, const ExSum *s, unsigned part);
ValId ex_poly(const Ex *x, const ExPoly *p, ValId at); /* Horner, one FMA a term */
/* The CONST that v is, in all lanes if it has some; NULL: none. */
const TirInst *ex_constant(const TirKernel *k, ValId v);
double ex_magic(const Ex *x); /* 1.5 * 2^mant: adding it rounds to an integer, in the low bits */
ValId ex_between(const Ex *x, ValId a, double low, double high); /* the nearest to a of those; NaN stays */
ValId ex_at_least(const Ex *x, ValId a, double low); /* that, or the greater a; NaN stays */
ValId ex_any(const Ex *x, ValId cond); /* whether it holds in a lane: a scalar */

static inline ValId
ex_add(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_ADD, a, b);
}
static inline ValId
ex_sub(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_SUB, a, b);
}
/* Of operands that are normal by far, as the quotient is. */
static inline ValId
ex_middle_quotient(const Ex *x, ValId a, ValId b)
{
	return tir_emit(x->k, OP_FDIV, tir_inst(x->k, a)->type, TIR_MIDDLE, (ValId[]){a, b}, 2);
}
static inline ValId
ex_mul(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_MUL, a, b);
}
static inline ValId
ex_fma(const Ex *x, ValId a, ValId b, ValId c)
{
	return tir_fma(x->k, a, b, c);
}
static inline ValId
ex_neg(const Ex *x, ValId a)
{
	return tir_unary(x->k, OP_NEG, a);
}
static inline ValId
ex_abs(const Ex *x, ValId a)
{
	return tir_unary(x->k, OP_ABS, a);
}
static inline ValId
ex_lt(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_LT, a, b);
}
static inline ValId
ex_eq(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_EQ, a, b);
}
static inline ValId
ex_select(const Ex *x, ValId c, ValId a, ValId b)
{
	return tir_select(x->k, c, a, b);
}
static inline ValId
ex_and(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_BAND, a, b);
}
static inline ValId
ex_or(const Ex *x, ValId a, ValId b)
{
	return tir_binary(x->k, OP_BOR, a, b);
}
static inline ValId
ex_shl(const Ex *x, ValId a, unsigned n)
{
	return tir_binary(x->k, OP_SHL, a, ex_bits(x, n));
}
static inline ValId
ex_shr(const Ex *x, ValId a, unsigned n)
{
	return tir_binary(x->k, OP_SHR, a, ex_bits(x, n));
}
static inline ValId
ex_to_bits(const Ex *x, ValId a)
{
	return tir_bitcast(x->k, x->u, a);
}
static inline ValId
ex_from_bits(const Ex *x, ValId a)
{
	return tir_bitcast(x->k, x->f, a);
}

/* a + b, where |a| >= |b| or a is 0: exact. */
Ex2 ex_fast_sum(const Ex *x, ValId a, ValId b);
/* a + b: exact. */
Ex2 ex_two_sum(const Ex *x, ValId a, ValId b);
/* a * b: exact but for underflow. */
Ex2 ex_two_mul(const Ex *x, ValId a, ValId b);
/* Products to about twice the precision. */
Ex2 ex_mul2(const Ex *x, Ex2 a, Ex2 b);
ValId ex_sign_bit(const Ex *x, ValId a);          /* only the sign bit of a, as bits */
ValId ex_flip(const Ex *x, ValId a, ValId sign);  /* a with its sign flipped where `sign` has the bit */

/* --- exp.c --- */
/* e^r as hi + lo for |r.hi| <= 0.36. */
Ex2 ex_exp_small(const Ex *x, Ex2 r);
/* Splits a = n ln 2 + r, n an integer; t holds n as ex_magic does. */
typedef struct {
	ValId t, n;
	Ex2 r;
} ExReduced;
ExReduced ex_exp_reduce(const Ex *x, ValId a);
/* v * 2^n, rounded once, where t holds n as ex_magic does, |n| < 1.9 * bias. */
ValId ex_scale(const Ex *x, ValId v, ValId t);
ValId ex_exp2_sum(const Ex *x, Ex2 a); /* 2^a */
ValId ex_exp(const Ex *x, ValId a);
ValId ex_exp2(const Ex *x, ValId a);
ValId ex_expm1(const Ex *x, ValId a);

/* --- log.c --- */
/* a = 2^n m with least <= m < 2 least, for finite a > 0; n as a float; least by its bits. */
typedef struct {
	ValId n, m;
} ExSplit;
ExSplit ex_log_split(const Ex *x, ValId a, uint64_t least);
ValId ex_log(const Ex *x, ValId a);
ValId ex_log2(const Ex *x, ValId a);
ValId ex_log1p(const Ex *x, ValId a);

/* --- the other families --- */
ValId ex_sin(const Ex *x, ValId a);
ValId ex_cos(const Ex *x, ValId a);
ValId ex_tanh(const Ex *x, ValId a);
ValId ex_erf(const Ex *x, ValId a);
ValId ex_rsqrt(const Ex *x, ValId a);
ValId ex_pow(const Ex *x, ValId a, ValId b);
/* The same within 2 ulp, by a few products; 0: b is no constant of that kind. Not for strict mode: what is
 * known to be a constant depends on what was fused. */
ValId ex_constant_pow(const Ex *x, ValId a, ValId b);
/* On integers of type t. */
ValId ex_int_pow(TirKernel *k, TirType t, ValId a, ValId b);

/* --- turns.c: a = q (pi/2) + r with |r| <= pi/4 (1 + 2^-6), any finite a; q in the low two bits --- */
typedef struct {
	ValId q;
	Ex2 r;
} ExTurns;
ExTurns ex_turns(const Ex *x, ValId a);

#endif
