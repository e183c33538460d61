/* eval_value.h: what the oracle computes with, inside ir/eval*.c only.
 *
 * A Val is a value with a bound. For floats `re` is a reference value in long double and every
 * correct implementation's value lies within err of it; err == 0 says that every implementation
 * has exactly re (NaN and infinities included), err == INFINITY that nothing is known, NaN not
 * excluded. For integers and bool `i` is the value and err how far another branch of an ambiguous
 * decision may be from it; 0 is certain.
 *
 * soft: re is a product of exact factors, correctly rounded, and err only covers that an addition
 * may take the product before rounding (contraction). Whoever is not an addition sees re exactly. */
#ifndef TEXO_IR_EVAL_VALUE_H
#define TEXO_IR_EVAL_VALUE_H

#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/eval.h"

typedef struct {
	long double re, im;
	double err, ierr;
	int64_t i;
	AccessId fault, cut;
	bool ambiguous; /* floats: a decision within its bounds matters; integers say it by err */
	bool soft;
	bool absent; /* it read what is outside a domain, out of bounds without a check, or empty */
	bool skip;   /* an element outside its own node's domain; absent as well */
} Val;

/* --- eval_number.c: element types --- */
/* A normal double x > 0 as m * 2^e with 53 bits of m; false for others, which take the functions of <math.h>. */
static inline bool
number_bits(long double x, uint64_t *m, int *e)
{
	double d = (double)x;
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	*m = (bits & 0xfffffffffffff) | UINT64_C(1) << 52;
	*e = (int)(bits >> 52) - 1075;
	return (long double)d == x && bits >> 52 && bits >> 52 < 0x7ff;
}

/* x rounded once to t, as LANGUAGE.md's casts between floats do. */
long double number_round(DType t, long double x);
/* The distance of neighbouring values of t at |x|. */
double number_ulp(DType t, double x);
/* A finite result v that is e from exact before the operation's own rounding in t. */
Val number_settle(FpMode fp, DType t, long double v, long double e);
/* The interval of a (a float) rounded to t: what a cast gives. */
Val number_narrow(DType t, Val a);
/* The same where the mode leaves it open whether a is rounded (tg.h, free casts). */
Val number_narrow_free(DType t, Val a);
void number_load(DType t, const void *packed, int64_t n, Val *out);
int64_t number_wrap(DType t, int64_t v);
/* At least |a - b| for two integers of type t. */
double number_distance(DType t, int64_t a, int64_t b);
Val number_cast(DType from, DType to, Val a);
/* The same, with the faults and flags of a. */
Val number_convert(DType from, DType to, Val a);

static inline Val
val_int(int64_t i)
{
	return (Val){.i = i};
}

static inline Val
val_float(long double x)
{
	return (Val){.re = x};
}

static inline Val
val_unknown(void)
{
	return (Val){.err = INFINITY, .ierr = INFINITY, .ambiguous = true};
}

/* What may have any value, where an exact computation has v, or an infinity: a result shows that, comparisons take all.
 * Finite, so that nobody takes it for a certain infinity. */
static inline Val
val_open(long double v)
{
	Val r = val_unknown();
	r.re = isnan(v) ? 0 : isinf(v) ? copysignl(LDBL_MAX, v) : v;
	return r;
}

/* The operand as anything but an addition sees it. */
static inline Val
val_hard(Val a)
{
	if (a.soft)
		a.err = 0;
	a.soft = false;
	return a;
}

/* A finite number without a bound, as anything but an addition sees it. */
static inline bool
val_is_exact(const Val *a)
{
	return (a->err == 0 || a->soft) && isfinite(a->re);
}

/* Finite in value and bound. */
static inline bool
val_finite(const Val *a)
{
	return isfinite(a->re) && isfinite(a->err);
}

static inline bool
val_is_nan(const Val *a)
{
	return isnan(a->re) && a->err == 0;
}

/* What holds whichever of the two it is; the value is a's. */
Val val_hull(DType t, Val a, Val b);

/* --- eval_arith.c --- */
Val arith_add(FpMode fp, DType t, Val a, Val b);
Val arith_sub(FpMode fp, DType t, Val a, Val b);
Val arith_mul(FpMode fp, DType t, Val a, Val b);
void arith_mul_exact(DType t, long double a, long double b, Val *r); /* of finite numbers without a bound */
Val arith_div(FpMode fp, DType t, Val a, Val b);
Val arith_neg(Val a);
Val arith_extreme(Val a, Val b, bool max); /* NaN wins, -0 < +0 */
Val arith_step(Op op, Val a);              /* FLOOR CEIL ROUND TRUNC SIGN ABS */
/* -1, 0 or 1 by a < b, a == b, a > b; 2 when a NaN is in it; 3 when the bounds do not tell. */
int arith_order(Val a, Val b);

/* --- eval_int.c: integers of type t, exact, wrapping --- */
Val int_unary(Op op, DType t, Val a);
Val int_binary(Op op, DType t, Val a, Val b);
int int_order(DType t, Val a, Val b); /* as arith_order, without 2 */

/* --- eval_complex.c --- */
Val complex_binary(FpMode fp, Op op, Val a, Val b);
Val complex_root(int64_t a, int64_t n);

/* --- eval_math.c --- */
/* With a narrow type (tg.h, narrowed functions), or DT_NONE. */
Val math_unary(FpMode fp, Op op, DType t, DType narrow, Val a);
Val math_pow(FpMode fp, DType t, DType narrow, Val a, Val b);

/* --- eval_rand.c --- */
void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]);
Val rand_uniform(uint64_t seed, const int64_t *index, unsigned n);
Val rand_normal(FpMode fp, uint64_t seed, const int64_t *index, unsigned n);

#endif
