/* eval_fold.c: reductions of the oracle.
 *
 * Free folds (relaxed, fast) may be combined in any order: a sum is bounded by gamma_n * sum|x|, a
 * product by n relative roundings; both know when every order is exact. Ordered folds (strict,
 * scatter) take one rounding a term on the running value. max, min, any, all and arg depend on no
 * order. A single term is itself, but a product of which fast mode may round the factors, or whose factors may come in
 * another order (eval_order.c).
 *
 * In fast mode a product of f32 may be one of factors that are rounded to tf32, 11 bits with f32's exponents: within
 * (2^-10 + 2^-22) of its magnitude, for which a sum has 2^-10 + 2^-14. So a sum is exact if its factors have no more bits,
 * and a rounded factor may overflow, or be a subnormal whose last bits are lost. */
#include <string.h>

#include "ir/eval_fold.h"

static double
unit_roundoff(DType t)
{
	return t == DT_F64 ? 0x1p-53 : 0x1p-24;
}

static long double
largest(DType t)
{
	return t == DT_F64 ? 0x1p1024L : 0x1p128L;
}

/* The exponent of the lowest set bit of x != 0, and its odd part. */
static int
lowest_bit(long double x, uint64_t *odd)
{
	int ex, zeros;
	uint64_t m;
	if (!number_bits(fabsl(x), &m, &ex)) {
		m = (uint64_t)ldexpl(frexpl(fabsl(x), &ex), 64);
		ex -= 64;
	}
	zeros = __builtin_ctzll(m);
	*odd = m >> zeros;
	return ex + zeros;
}

DType
fold_accumulator(Monoid m, DType t)
{
	return m == MON_SUM || m == MON_PROD ? dtype_info[t].arith : t;
}

void
fold_start(Fold *f, Monoid m, FpMode fp, DType dtype, bool ordered, bool products)
{
	memset(f, 0, sizeof *f);
	f->monoid = m;
	f->dtype = fold_accumulator(m, dtype);
	f->fp = fp;
	f->ordered = ordered;
	f->contracts = products && fp == FP_FAST && m == MON_SUM && dtype == DT_F32;
	f->re.quantum = f->im.quantum = INT32_MAX;
	f->big = f->small = f->odd = 1;
	f->rival = -INFINITY;
}

DType
fold_dtype(const Fold *f)
{
	return monoid_info[f->monoid].index ? DT_I64 : f->dtype;
}

/* --- free sums --- */

static void
sum_term(FoldSum *s, long double re, double err, bool soft)
{
	if (isnan(re) && err == 0) {
		s->nan = true;
		return;
	}
	if (!isfinite(err)) {
		s->unknown = true;
		return;
	}
	if (isinf(re)) {
		*(re > 0 ? soft ? &s->pover : &s->pinf : soft ? &s->nover : &s->ninf) = true;
		return;
	}
	uint64_t odd;
	s->sum += re;
	s->abs += fabsl(re) + err;
	s->pos += re + err > 0 ? re + err : 0;
	s->neg += err - re > 0 ? err - re : 0;
	s->err += err;
	s->inexact |= err > 0;
	if (re != 0 && err == 0) {
		int low = lowest_bit(re, &odd);
		s->quantum = low < s->quantum ? low : s->quantum;
	}
}

static bool
sum_is_exact(const FoldSum *s, DType t)
{
	return !s->inexact && (s->abs == 0 || s->abs <= ldexpl(1, s->quantum + (t == DT_F64 ? 53 : 24)));
}

/* Of terms that overflow and none of the other sign every order makes an infinity. */
static Val
sum_overflown(const FoldSum *s)
{
	bool certain = s->pover ? !s->nover && !s->ninf && s->neg == 0 : !s->pinf && s->pos == 0;
	long double v = s->pover == s->nover ? 0 : s->pover ? INFINITY : -INFINITY;
	return certain ? val_float(v) : val_open(v);
}

/* Of both signs there is no number, but that a factor that moves may be what makes them infinite. */
static Val
sum_infinite(const FoldSum *s, long double limit, bool moved)
{
	if (s->pinf && s->ninf)
		return moved ? val_unknown() : val_float(NAN);
	if (s->pinf)
		return s->neg >= limit ? val_open(INFINITY) : val_float(INFINITY);
	return s->pos >= limit ? val_open(-INFINITY) : val_float(-INFINITY);
}

void
fold_factors(Fold *f, const Val *a, const Val *b)
{
	enum { DIGITS = 11, LOW = -136 };
	const Val *factor[2] = {a, b};
	for (unsigned k = 0; k < 2; k++) {
		const Val *x = factor[k], *other = factor[1 - k];
		double size = (double)fabsl(x->re) + x->err;
		uint64_t odd;
		if (x->re == 0 || !isfinite(size))
			continue;
		if (lowest_bit(x->re, &odd) >= LOW && odd < UINT64_C(1) << DIGITS && x->err == 0)
			continue;
		f->re.inexact = true;
		f->re.unknown |= size >= 0x1p128 - 0x1p116;
		if (size < 0x1p-126) { /* or 0, which makes no number of an infinity */
			f->re.unknown |= isinf(other->re);
			f->re.err += 0x1p-137 * ((double)fabsl(other->re) + other->err);
		}
	}
}

/* A zero sum of only -0 may be +0, as other orders may start from a 0. */
static double
sum_bound(const Fold *f, const FoldSum *s, double gamma, DType t)
{
	if (!f->moved && sum_is_exact(s, t))
		return s->sum == 0 && signbit(s->sum) ? 0x1p-1074 : 0;
	double e = (s->err + gamma * (double)s->abs) * 1.001;
	if (f->fp == FP_FAST)
		e += (double)f->n * 0x1p-126 + (f->contracts ? (double)s->abs * 0x1.1p-10 : 0);
	return e;
}

static Val
sum_result(const Fold *f, const FoldSum *s)
{
	DType t = f->dtype == DT_C64 ? DT_F32 : f->dtype;
	double u = unit_roundoff(t) * (double)(f->n + f->moved), gamma = u / (1 - u);
	if (s->nan)
		return val_float(NAN);
	if (s->unknown || u > 0.25)
		return val_unknown();
	if (s->pover || s->nover)
		return sum_overflown(s);
	long double limit = largest(t) * (1 - 2 * gamma);
	if (s->pinf || s->ninf)
		return sum_infinite(s, limit, f->moved > 0);
	double e = sum_bound(f, s, gamma, t);
	if (s->pos >= limit || s->neg >= limit) {
		bool certain = (s->pos == 0 || s->neg == 0) && fabsl(s->sum) - e >= largest(t);
		return certain ? val_float(copysignl(INFINITY, s->sum)) : val_open(s->sum);
	}
	Val r = val_float(s->sum);
	r.err = e;
	return r;
}

/* --- free products --- */

static void
product_term(Fold *f, const Val *x)
{
	Val a = f->acc, b = val_hard(*x);
	uint64_t odd;
	double u = unit_roundoff(f->dtype);
	f->re.inexact |= b.err > 0;
	f->re.unknown |= !isfinite(b.err);
	if (b.re != 0 && val_finite(&b)) {
		lowest_bit(b.re, &odd);
		f->odd *= (long double)odd;
		f->big *= fmaxl(1, fabsl(b.re) + b.err);
		f->small *= fminl(1, fmaxl(fabsl(b.re) - b.err, 0x1p-1074L));
	}
	f->re.nan |= val_is_nan(&b) || (isinf(a.re) && b.re == 0) || (isinf(b.re) && a.re == 0);
	f->re.unknown |= (isinf(a.re) || isinf(b.re)) && (a.err >= fabsl(a.re) || b.err >= fabsl(b.re)) &&
	                 (a.err > 0 || b.err > 0);
	f->acc = val_float(a.re * b.re);
	if (!isfinite(f->acc.re))
		return;
	double grown = (double)fabsl(a.re) * b.err + (double)fabsl(b.re) * a.err + a.err * b.err;
	f->acc.err = (grown + u * ((double)fabsl(f->acc.re) + grown)) * (1 + 0x1p-40);
}

static Val
product_result(const Fold *f)
{
	DType t = f->dtype;
	bool f64 = t == DT_F64;
	long double limit = largest(t) * 0.999L, tiny = f64 ? 0x1p-1022L : 0x1p-126L;
	Val r = f->acc;
	bool under = f->small < tiny;
	if (f->re.nan)
		return val_float(NAN);
	if (f->re.unknown || (isinf(r.re) && under))
		return val_unknown();
	if (isinf(r.re))
		return r;
	if (f->big >= limit) {
		bool certain = f->small == 1 && fabsl(r.re) - r.err >= largest(t);
		return certain ? val_float(copysignl(INFINITY, r.re)) : val_open(r.re);
	}
	if (!f->re.inexact && (r.re == 0 || (!under && f->odd < (f64 ? 0x1p53L : 0x1p24L))))
		r.err = 0;
	else if (under)
		r.err += (double)f->n * (f64 ? 0x1p-1074 : 0x1p-149) * (double)f->big;
	if (f->fp == FP_FAST)
		r.err += (double)f->n * 0x1p-126 * (double)f->big;
	return isfinite(r.err) ? r : val_open(r.re);
}

/* Normwise: n complex products, each with an error of 8 u in all. */
static void
complex_product_term(Fold *f, const Val *x)
{
	Val a = f->acc;
	if (!isfinite(x->re) || !isfinite(x->im) || !isfinite(x->err) || !isfinite(x->ierr) || !isfinite(a.err)) {
		f->acc = val_unknown();
		return;
	}
	long double na = hypotl(a.re, a.im), nx = hypotl(x->re, x->im), ex = hypotl(x->err, x->ierr);
	f->acc = (Val){.re = a.re * x->re - a.im * x->im, .im = a.re * x->im + a.im * x->re};
	long double grown = na * ex + nx * a.err + a.err * ex;
	f->acc.err = (double)(grown + 0x1p-21L * (na * nx + grown) + 0x1p-148L);
	if (na * nx + grown >= 0x1p126L || (na * nx > 0 && na * nx < 0x1p-100L))
		f->acc.err = INFINITY;
	f->acc.ierr = f->acc.err;
}

/* --- one step of the running value --- */

/* A sum's steps are not taken to be rounded: its bound is, so that any start is covered. */
static Val
ordered_sum(const Fold *f, Val a, Val b)
{
	Val r = arith_add(f->fp, f->dtype, a, b);
	long double v = a.re + b.re;
	if (a.err == 0 && b.err == 0 && isfinite(r.re) && isfinite(v) && r.re != v)
		r = number_settle(f->fp, f->dtype, v, 0);
	return r;
}

static Val
logic(Val a, Val b, bool any)
{
	bool settled = (a.err == 0 && a.i == any) || (b.err == 0 && b.i == any);
	Val r = val_int(settled ? any : any ? a.i || b.i : a.i && b.i);
	r.err = settled ? 0 : fmax(a.err, b.err) > 0;
	return r;
}

static Val
combine(const Fold *f, Val a, Val b)
{
	DType t = f->dtype;
	bool is_float = dtype_info[t].kind == KIND_FLOAT;
	Op op = f->monoid == MON_SUM ? OP_ADD : OP_MUL;
	switch (f->monoid) {
	case MON_SUM:
	case MON_PROD:
		if (t == DT_C64)
			return complex_binary(f->fp, op, a, b);
		if (!is_float)
			return int_binary(op, t, a, b);
		return op == OP_ADD ? ordered_sum(f, a, b) : val_hard(arith_mul(f->fp, t, a, b));
	case MON_MAX:
	case MON_MIN:
		if (is_float)
			return arith_extreme(a, b, f->monoid == MON_MAX);
		return int_binary(f->monoid == MON_MAX ? OP_MAX : OP_MIN, t, a, b);
	case MON_ANY:
	case MON_ALL:
		return logic(a, b, f->monoid == MON_ANY);
	case MON_ARGMAX:
	case MON_ARGMIN:
	case MON_NONE:
		break;
	}
	return b;
}

static bool
is_free(const Fold *f)
{
	DTypeKind k = dtype_info[f->dtype].kind;
	return !f->ordered && (f->monoid == MON_SUM || f->monoid == MON_PROD) &&
	       (k == KIND_FLOAT || k == KIND_COMPLEX);
}

static Val
unit(const Fold *f)
{
	Val v = {0};
	switch (monoid_info[f->monoid].unit) {
	case UNIT_NONE:
		v.absent = true;
		break;
	case UNIT_ONE:
		v.re = v.i = 1;
		break;
	case UNIT_TRUE:
		v.i = 1;
		break;
	case UNIT_ZERO:
	case UNIT_FALSE:
		break;
	}
	return v;
}

static void
free_term(Fold *f, const Val *x)
{
	if (f->monoid == MON_SUM) {
		if (f->n == 0) /* so that a sum of only -0 is -0 */
			f->re.sum = copysignl(0, x->re), f->im.sum = copysignl(0, x->im);
		sum_term(&f->re, x->re, x->err, x->soft);
		if (f->dtype == DT_C64)
			sum_term(&f->im, x->im, x->ierr, false);
	} else {
		if (f->n == 0)
			f->acc = val_float(1);
		if (f->dtype == DT_C64)
			complex_product_term(f, x);
		else
			product_term(f, x);
	}
	if (f->n == 0)
		f->acc = *x;
}

/* --- arg --- */

static void
arg_rival(Fold *f, Val x, bool max)
{
	double end = (double)(max ? x.re : -x.re) + x.err;
	if (end > f->rival || (end == f->rival && x.err > f->rival_err)) {
		f->rival = end;
		f->rival_err = x.err;
	}
}

/* The winner is by the reference values; what comes within its bounds makes it uncertain. */
static void
arg_term(Fold *f, Val x, int64_t index)
{
	bool max = f->monoid == MON_ARGMAX, is_float = dtype_info[f->dtype].kind == KIND_FLOAT;
	x = val_hard(x);
	if (!is_float) {
		int order = f->n == 0 ? 0 : int_order(f->dtype, x, f->acc);
		f->uncertain |= f->n > 0 && order == 3;
		if (f->n == 0 || order == (max ? 1 : -1))
			f->acc = x, f->index = index;
		return;
	}
	f->uncertain |= isinf(x.err);
	if (f->n == 0) {
		f->acc = x, f->index = index;
		return;
	}
	if (val_is_nan(&f->acc) || isinf(x.err))
		return;
	if (val_is_nan(&x) || (max ? x.re > f->acc.re : x.re < f->acc.re)) {
		if (isfinite(f->acc.err) && !isnan(x.re))
			arg_rival(f, f->acc, max);
		f->acc = x, f->index = index;
	} else {
		arg_rival(f, x, max);
	}
}

static Val
arg_result(const Fold *f)
{
	bool max = f->monoid == MON_ARGMAX, uncertain = f->uncertain;
	Val r = val_int(f->index);
	if (dtype_info[f->dtype].kind == KIND_FLOAT && !val_is_nan(&f->acc)) {
		double low = (double)(max ? f->acc.re : -f->acc.re) - f->acc.err;
		uncertain |= f->rival > low || (f->rival == low && f->acc.err + f->rival_err > 0);
	}
	r.err = uncertain ? INFINITY : 0;
	return r;
}

/* --- the interface --- */

void
fold_init(Fold *f, Val v)
{
	const Val yes = val_int(1);
	fold_term(f, &yes, &v, 0);
	f->touched = val_int(0);
}

/* A term that may be absent, as one whose bound reaches its neutral value; or both outcomes. */
static void
uncertain_term(Fold *f, bool present, Val x, int64_t index)
{
	if (monoid_info[f->monoid].index) {
		arg_term(f, x, index);
		f->uncertain = true;
		return;
	}
	bool sum = is_free(f) && f->monoid == MON_SUM;
	if (sum) {
		f->ambiguous |= fabsl(x.re) > x.err || fabsl(x.im) > x.ierr;
		x.soft = false;
		x.err += (double)fabsl(x.re);
		x.ierr += (double)fabsl(x.im);
		if (!present)
			x.re = x.im = 0;
		if (!isfinite(x.err))
			x = val_unknown();
		free_term(f, &x);
		return;
	}
	if (is_free(f)) {
		x = val_unknown();
		free_term(f, &x);
		return;
	}
	if (f->n == 0 && monoid_info[f->monoid].unit == UNIT_NONE) {
		f->acc = x;
		f->maybe_empty = true;
		return;
	}
	Val without = f->n ? f->acc : unit(f), with = f->n ? combine(f, f->acc, x) : x;
	f->acc = present ? val_hull(f->dtype, with, without) : val_hull(f->dtype, without, with);
	if (f->maybe_empty)
		f->acc = val_hull(f->dtype, f->acc, x);
}

static void
certain_term(Fold *f, Val x)
{
	Val with = f->n ? combine(f, f->acc, x) : x;
	f->acc = f->maybe_empty ? val_hull(f->dtype, with, x) : with;
	f->maybe_empty = false;
}

void
fold_term(Fold *f, const Val *present, const Val *x, int64_t index)
{
	if (present->err == 0 && !present->i)
		return;
	if (!f->fault)
		f->fault = x->fault;
	if (!f->cut)
		f->cut = x->cut;
	f->ambiguous |= x->ambiguous;
	f->absent |= x->absent && present->err == 0;
	if (f->touched.err > 0 || !f->touched.i) /* or it stays what it is */
		f->touched = logic(f->touched, *present, true);
	if (present->err > 0)
		uncertain_term(f, present->i != 0, x->absent ? val_unknown() : *x, index);
	else if (monoid_info[f->monoid].index)
		arg_term(f, *x, index);
	else if (is_free(f))
		free_term(f, x);
	else
		certain_term(f, *x);
	f->n++;
}

Val
fold_result(const Fold *f)
{
	Val r = f->acc;
	if (f->n == 0)
		r = unit(f);
	else if (monoid_info[f->monoid].index)
		r = arg_result(f);
	else if (is_free(f) && (f->n > 1 || f->contracts || f->moved) && f->monoid == MON_SUM) {
		r = sum_result(f, &f->re);
		Val im = f->dtype == DT_C64 ? sum_result(f, &f->im) : val_float(0);
		r.im = im.re;
		r.ierr = im.err;
	} else if (is_free(f) && f->n > 1 && f->dtype != DT_C64) {
		r = product_result(f);
	}
	r.fault = f->fault;
	r.cut = f->cut;
	r.ambiguous = f->ambiguous || (r.ambiguous && r.err > 0);
	r.absent |= f->absent;
	return r;
}
