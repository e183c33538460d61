/* eval_arith.c: float arithmetic of the oracle with running bounds (RELIABILITY.md 3.2).
 *
 * Operands without a bound give the IEEE result without a bound: no mode reassociates outside
 * reductions. Only products keep one, as an addition may take them unrounded. With bounds, the
 * operands' are propagated and half a spacing of the result is added. Where an interval meets
 * zero as a divisor, or the overflow threshold, the result is unknown, never a guess. */
#include "ir/eval_value.h"

static long double
round_once(DType t, long double x)
{
	if (t == DT_F64)
		return (double)x;
	return number_round(t, number_round(DT_F32, x));
}

/* Both exact or a NaN, an infinity or nothing known among them: the result, or false. */
static bool
settled_early(Val a, Val b, Val *r)
{
	if (val_is_nan(&a) || val_is_nan(&b))
		*r = val_float(NAN);
	else if (!isfinite(a.err) || !isfinite(b.err))
		*r = val_unknown();
	else
		return false;
	return true;
}

/* A product that overflows may be added before it is rounded: certain is what the other operand does not take back. */
static Val
add_infinite(Val a, Val b)
{
	long double v = a.re + b.re;
	Val high = isinf(a.re) ? a : b, other = isinf(a.re) ? b : a;
	bool agree = isinf(other.re) ? other.re == high.re : (high.re > 0 ? other.re : -other.re) >= other.err;
	bool overflown = (a.soft && isinf(a.re)) || (b.soft && isinf(b.re));
	return agree || !overflown ? val_float(v) : val_open(v);
}

Val
arith_add(FpMode fp, DType t, Val a, Val b)
{
	Val r;
	if (settled_early(a, b, &r))
		return r;
	if (isinf(a.re) || isinf(b.re))
		return add_infinite(a, b);
	if (a.err > 0 || b.err > 0)
		return number_settle(fp, t, a.re + b.re, (long double)a.err + b.err);
	if (t == DT_F64)
		return val_float((double)a.re + (double)b.re);
	return val_float(round_once(t, a.re + b.re));
}

Val
arith_neg(Val a)
{
	a.re = -a.re;
	return a;
}

Val
arith_sub(FpMode fp, DType t, Val a, Val b)
{
	return arith_add(fp, t, a, arith_neg(b));
}

/* A product or quotient of which one factor is infinite: certain if the other's sign is. */
static bool
sign_known(Val a)
{
	return a.err == 0 || fabsl(a.re) > a.err;
}

void
arith_mul_exact(DType t, long double a, long double b, Val *r)
{
	long double v = a * b, rounded = t == DT_F32 ? (float)v : t == DT_F64 ? (long double)((double)a * (double)b) : round_once(t, v);
	*r = (Val){0};
	r->re = rounded;
	if (isinf(rounded)) {
		r->soft = true;
		return;
	}
	double lost = t == DT_F64 ? fabs(fma((double)a, (double)b, -(double)rounded)) : (double)fabsl(v - rounded);
	if (lost == 0 && v != rounded) /* what was lost is below the least double */
		lost = 0x1p-1074;
	r->err = lost;
	r->soft = lost > 0;
}

Val
arith_mul(FpMode fp, DType t, Val a, Val b)
{
	Val r;
	a = val_hard(a), b = val_hard(b);
	if (settled_early(a, b, &r))
		return r;
	if (isinf(a.re) || isinf(b.re))
		return sign_known(a) && sign_known(b) ? val_float(a.re * b.re) : val_unknown();
	if (a.err == 0 && b.err == 0) {
		arith_mul_exact(t, a.re, b.re, &r);
		return r;
	}
	long double e = fabsl(a.re) * b.err + fabsl(b.re) * a.err + (long double)a.err * b.err;
	r = number_settle(fp, t, a.re * b.re, e);
	r.soft = isinf(r.re); /* an addition may see it before it overflows */
	return r;
}

static Val
div_exact(DType t, Val a, Val b)
{
	if (t == DT_F64)
		return val_float((double)a.re / (double)b.re);
	return val_float(round_once(t, a.re / b.re));
}

Val
arith_div(FpMode fp, DType t, Val a, Val b)
{
	Val r;
	a = val_hard(a), b = val_hard(b);
	if (settled_early(a, b, &r))
		return r;
	if (fp != FP_FAST && a.err == 0 && b.err == 0)
		return div_exact(t, a, b);
	if (isinf(a.re) || isinf(b.re) || (b.re == 0 && b.err == 0)) {
		bool zero = isinf(b.re) && !isinf(a.re);
		if (!sign_known(a) || !sign_known(b)) {
			r = zero ? val_float(0) : val_unknown();
			r.err = zero ? 0x1p-1074 : r.err; /* a zero of unknown sign */
			return r;
		}
		return val_float(a.re / b.re);
	}
	long double low = fabsl(b.re) - b.err;
	if (!(low > 0))
		return val_unknown();
	long double q = a.re / b.re;
	long double e = (a.err + fabsl(q) * b.err) / low * (1 + 0x1p-50L);
	if (fp == FP_FAST) /* 2 ulp in all */
		e += 1.5 * number_ulp(t, (double)(fabsl(q) + e));
	return number_settle(fp, t, q, e);
}

int
arith_order(Val a, Val b)
{
	a = val_hard(a), b = val_hard(b);
	if (val_is_nan(&a) || val_is_nan(&b))
		return 2;
	if (!isfinite(a.err) || !isfinite(b.err))
		return 3;
	if (a.err + b.err > 0 && !(fabsl(a.re - b.re) > a.err + b.err))
		return 3;
	return a.re == b.re ? 0 : a.re < b.re ? -1 : 1;
}

Val
arith_extreme(Val a, Val b, bool max)
{
	Val r;
	a = val_hard(a), b = val_hard(b);
	if (settled_early(a, b, &r))
		return r;
	bool b_wins = max ? b.re > a.re || (b.re == a.re && signbit(a.re) && !signbit(b.re))
	                  : b.re < a.re || (b.re == a.re && signbit(b.re) && !signbit(a.re));
	r = b_wins ? b : a;
	Val other = b_wins ? a : b;
	if (isinf(r.re))
		return r; /* the winner, or both are this infinity */
	/* The far end of the interval of the extreme may be the loser's. */
	long double reach = max ? other.re + other.err - r.re : r.re - (other.re - other.err);
	if (isfinite(other.re) && other.err > 0 && reach > r.err)
		r.err = (double)reach * (1 + 0x1p-50);
	return r;
}

static long double
step(Op op, long double x)
{
	switch (op) {
	case OP_FLOOR:
		return floorl(x);
	case OP_CEIL:
		return ceill(x);
	case OP_ROUND:
		return rintl(x);
	case OP_TRUNC:
		return truncl(x);
	default: /* SIGN */
		return isnan(x) ? x : (x > 0) - (x < 0);
	}
}

/* All but ABS are monotone, so the ends of the interval bound what is between. */
Val
arith_step(Op op, Val a)
{
	a = val_hard(a);
	if (op == OP_ABS) {
		a.re = fabsl(a.re);
		return a;
	}
	if (!isfinite(a.err))
		return op == OP_SIGN ? a : val_unknown();
	Val r = val_float(step(op, a.re));
	if (a.err > 0) {
		long double lo = step(op, a.re - a.err), hi = step(op, a.re + a.err);
		r.err = (double)fmaxl(hi - r.re, r.re - lo);
		r.ambiguous = r.err > 0;
		if (r.err == 0 && signbit(lo) != signbit(hi))
			r.err = 0x1p-1074; /* a zero of unknown sign */
	}
	return r;
}

static Val
hull_float(Val a, Val b)
{
	Val r = val_hard(a);
	b = val_hard(b);
	r.ambiguous = a.ambiguous || b.ambiguous;
	if ((val_is_nan(&r) && val_is_nan(&b)) || (r.re == b.re && r.err == 0 && b.err == 0))
		return r;
	if (!val_finite(&r) || !val_finite(&b))
		return val_unknown();
	r.ambiguous |= fabsl(r.re - b.re) > r.err + b.err;
	r.err = fmax(r.err, ((double)fabsl(r.re - b.re) + b.err) * (1 + 0x1p-50));
	if (r.err == 0 && signbit(a.re) != signbit(b.re))
		r.err = 0x1p-1074;
	return r;
}

Val
val_hull(DType t, Val a, Val b)
{
	if (a.absent || b.absent)
		return val_unknown();
	if (dtype_info[t].kind == KIND_FLOAT)
		return hull_float(a, b);
	if (dtype_info[t].kind == KIND_COMPLEX) {
		Val im = hull_float((Val){.re = a.im, .err = a.ierr}, (Val){.re = b.im, .err = b.ierr});
		Val r = hull_float(a, b);
		r.im = im.re;
		r.ierr = im.err;
		r.ambiguous |= im.ambiguous;
		return r;
	}
	a.err = fmax(a.err, number_distance(t, a.i, b.i) + b.err);
	return a;
}
