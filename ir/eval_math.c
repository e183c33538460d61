/* eval_math.c: transcendental functions of the oracle. The reference is libm's long double; the
 * bound is the change over the operand's interval plus the mode's budget in ulp of the result
 * (RELIABILITY.md 3.3; for what it does not list, LANGUAGE.md's 2 ulp; for a narrowed function, 1/16 ulp of
 * the narrow float, or, where that is less, 2^-21 more than its own, for tanh). The functions that are monotone are bounded by the ends of the interval, sine and
 * cosine by their slope. */
#include "ir/eval_value.h"

typedef struct {
	double strict, relaxed, fast; /* ulp, the result's own rounding included */
	double fast_abs;              /* added in fast mode whatever the size of the result */
	double least;                 /* the end of the domain; -INFINITY if there is none */
} MathInfo;

static const MathInfo infos[OP_COUNT] = {
	[OP_SQRT] = {0.5, 0.5, 2, 0, 0},
	[OP_RSQRT] = {0.6, 1, 2, 0, 0},
	[OP_EXP] = {0.6, 1, 2, 0, -INFINITY},
	[OP_EXP2] = {0.6, 1, 2, 0, -INFINITY},
	[OP_EXPM1] = {1, 2, 8, 0x1p-21, -INFINITY},
	[OP_LOG] = {0.6, 1, 4, 0x1p-21, 0},
	[OP_LOG2] = {0.6, 1, 4, 0x1p-21, 0},
	[OP_LOG1P] = {1, 2, 8, 0x1p-21, -1},
	[OP_TANH] = {1, 1.5, 8192, 0, -INFINITY},
	[OP_ERF] = {1, 1.5, 8, 0, -INFINITY},
	[OP_SIN] = {1, 1.5, 8, 0x1p-20, -INFINITY},
	[OP_COS] = {1, 1.5, 8, 0x1p-20, -INFINITY},
	[OP_POW] = {1, 2, 16, 0, -INFINITY},
};

static long double
value(Op op, long double x)
{
	switch (op) {
	case OP_SQRT:
		return sqrtl(x);
	case OP_RSQRT:
		return 1 / sqrtl(x);
	case OP_EXP:
		return expl(x);
	case OP_EXP2:
		return exp2l(x);
	case OP_EXPM1:
		return expm1l(x);
	case OP_LOG:
		return logl(x);
	case OP_LOG2:
		return log2l(x);
	case OP_LOG1P:
		return log1pl(x);
	case OP_TANH:
		return tanhl(x);
	case OP_ERF:
		return erfl(x);
	case OP_SIN:
		return sinl(x);
	default: /* COS */
		return cosl(x);
	}
}

/* What a narrowed function may take in place of its budget, in units of f32 at the result. */
static double
narrow_budget(Op op, DType narrow, double budget, double unit)
{
	double wide = narrow == DT_BF16 ? 0x1p16 / 16 : narrow == DT_F16 ? 0x1p13 / 16 : 0;
	return fmax(budget, op == OP_TANH ? fmin(wide, budget + 0x1p-21 / unit) : wide);
}

/* A result v whose exact counterpart is within e, computed within the operation's budget. */
static Val
within_budget(FpMode fp, Op op, DType t, DType narrow, long double v, long double e, double operand)
{
	DType wide = t == DT_F64 ? DT_F64 : DT_F32;
	const MathInfo *f = &infos[op];
	double budget = fp == FP_STRICT ? f->strict : fp == FP_RELAXED ? f->relaxed : f->fast;
	if (fp == FP_FAST && (op == OP_EXP || op == OP_EXP2))
		budget += fabs(operand); /* the stated growth with the size of x */
	e += fabsl(v) * 0x1p-62L;
	double own = fp == FP_FAST ? f->fast_abs : 0, unit = number_ulp(wide, (double)(fabsl(v) + e));
	budget = narrow_budget(op, narrow, budget, unit);
	if (wide == DT_F64 && budget > 0.5 && budget < 1)
		budget = 1;
	own += (budget - 0.5) * unit;
	if (fabsl(v) - e < (wide == DT_F64 ? 0x1p-1022L : 0x1p-126L)) /* it may be rounded twice */
		own += number_ulp(wide, 0);
	if (!(e + own < INFINITY))
		return val_unknown();
	return number_settle(fp, t, v, e + own);
}

/* Exact at infinities and outside the domain; 2 pi of slope elsewhere. */
static Val
periodic(FpMode fp, Op op, DType t, DType narrow, Val a)
{
	if (isinf(a.re))
		return val_float(NAN);
	long double v = value(op, a.re);
	if (a.err == 0 && a.re == 0 && op == OP_SIN)
		return a;
	double slope = (double)fabsl(op == OP_SIN ? cosl(a.re) : sinl(a.re)) + a.err;
	double e = fmin(a.err * fmin(slope, 1), 1 + (double)fabsl(v));
	return within_budget(fp, op, t, narrow, v, e, 0);
}

static Val
sqrt_exact(DType t, Val a)
{
	if (t == DT_F64)
		return val_float(sqrt((double)a.re));
	return val_float(number_round(t, number_round(DT_F32, sqrtl(a.re))));
}

Val
math_unary(FpMode fp, Op op, DType t, DType narrow, Val a)
{
	a = val_hard(a);
	if (val_is_nan(&a))
		return a;
	if (!isfinite(a.err))
		return val_unknown();
	if (a.err == 0 && op == OP_SQRT && fp != FP_FAST)
		return sqrt_exact(t, a);
	if (op == OP_SIN || op == OP_COS)
		return periodic(fp, op, t, narrow, a);
	long double v = value(op, a.re);
	if (a.err == 0)
		return isfinite(v) && isfinite(a.re) && !(v == 0 && a.re == 0) ?
		               within_budget(fp, op, t, narrow, v, 0, (double)a.re) :
		                val_float(v);
	long double lo = a.re - a.err, hi = a.re + a.err, least = infos[op].least;
	if (hi < least)
		return val_float(NAN);
	if (lo < least)
		return val_unknown();
	long double at_lo = value(op, lo), at_hi = value(op, hi);
	if (isinf(at_lo) && at_lo == at_hi)
		return val_float(v);
	long double e = fmaxl(fabsl(at_lo - v), fabsl(at_hi - v));
	/* the ends were rounded: a hundredth of the way further covers it */
	return within_budget(fp, op, t, narrow, v, e * 1.01L, (double)fabsl(a.re));
}

/* --- pow --- */

static bool
is_integer(Val b)
{
	return b.err == 0 && isfinite(b.re) && floorl(b.re) == b.re;
}

static void
reach(long double *lo, long double *hi, long double x)
{
	*lo = fminl(*lo, x);
	*hi = fmaxl(*hi, x);
}

/* Of exact operands: infinities and powers of 0 are exact, the rest has its budget. */
static Val
pow_exact(FpMode fp, DType t, DType narrow, Val a, Val b, long double v)
{
	if (isinf(a.re) || isinf(b.re) || a.re == 0 || !isfinite(v))
		return val_float(v);
	return within_budget(fp, OP_POW, t, narrow, v, 0, 0);
}

/* pow is monotone in each operand on a > 0, so its extremes over the box are at the corners; for
 * an exact integer exponent also on a < 0, with 0 as one more point where the box holds it. */
Val
math_pow(FpMode fp, DType t, DType narrow, Val a, Val b)
{
	a = val_hard(a), b = val_hard(b);
	bool one = (b.err == 0 && b.re == 0) || (a.err == 0 && a.re == 1);
	if (one)
		return val_float(1);
	if (val_is_nan(&a) || val_is_nan(&b))
		return (val_is_nan(&a) ? b.err : a.err) > 0 ? val_unknown() : val_float(NAN);
	if (!isfinite(a.err) || !isfinite(b.err))
		return val_unknown();
	long double v = powl(a.re, b.re);
	if (a.err == 0 && b.err == 0)
		return pow_exact(fp, t, narrow, a, b, v);
	bool straddles = fabsl(a.re) <= a.err;
	if (isinf(a.re) || isinf(b.re) || (a.err > 0 && straddles && !(is_integer(b) && b.re > 0)) ||
	    (a.re < 0 && !is_integer(b)))
		return val_unknown();
	long double lo = v, hi = v;
	for (int k = 0; k < 4; k++)
		reach(&lo, &hi, powl(k & 1 ? a.re + a.err : a.re - a.err, k & 2 ? b.re + b.err : b.re - b.err));
	if (straddles)
		reach(&lo, &hi, 0);
	if (isinf(lo) && lo == hi)
		return val_float(v);
	long double e = fmaxl(hi - v, v - lo) * 1.01L;
	return isfinite(e) ? within_budget(fp, OP_POW, t, narrow, v, e, 0) : val_unknown();
}
