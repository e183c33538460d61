/* eval_cast.c: conversions between element types, LANGUAGE.md "Dtypes and numerics": float to
 * integer truncates and saturates with NaN to 0, integer to integer wraps, to bool is != 0. An
 * inexact value is converted as an interval, so that only values near a step get a bound. */
#include "ir/eval_value.h"

int64_t
number_wrap(DType t, int64_t v)
{
	unsigned bits = dtype_info[t].bits;
	if (dtype_info[t].kind == KIND_BOOL)
		return v != 0;
	if (bits == 64)
		return v;
	uint64_t low = (uint64_t)v & ((1ull << bits) - 1), sign = 1ull << (bits - 1);
	return dtype_info[t].kind == KIND_INT ? (int64_t)((low ^ sign) - sign) : (int64_t)low;
}

static int64_t
saturate(DType t, long double x)
{
	bool is_signed = dtype_info[t].kind == KIND_INT;
	int top = (int)dtype_info[t].bits - is_signed;
	if (isnan(x))
		return 0;
	x = truncl(x);
	if (x >= ldexpl(1, top))
		return is_signed ? (int64_t)((1ull << top) - 1) : number_wrap(t, -1);
	long double least = is_signed ? -ldexpl(1, top) : 0;
	if (x < least)
		x = least;
	return is_signed ? (int64_t)x : (int64_t)(uint64_t)x;
}

double
number_distance(DType t, int64_t a, int64_t b)
{
	bool less = dtype_info[t].kind == KIND_UINT ? (uint64_t)a < (uint64_t)b : a < b;
	double d = (double)(less ? (uint64_t)b - (uint64_t)a : (uint64_t)a - (uint64_t)b);
	return d < 0x1p53 ? d : d * (1 + 0x1p-50);
}

static Val
float_to_int(DType to, Val a)
{
	a = val_hard(a);
	Val r = val_int(saturate(to, a.re));
	if (a.err == 0)
		return r;
	if (!val_finite(&a))
		r.err = INFINITY;
	else
		r.err = fmax(number_distance(to, saturate(to, a.re + a.err), r.i),
		             number_distance(to, r.i, saturate(to, a.re - a.err)));
	return r;
}

static Val
float_to_bool(Val a)
{
	a = val_hard(a);
	Val r = val_int(a.re != 0);
	if (a.err > 0 && !(fabsl(a.re) > a.err)) {
		r.err = 1;
	}
	return r;
}

static long double
int_value(DType t, int64_t i)
{
	return dtype_info[t].kind == KIND_UINT ? (long double)(uint64_t)i : (long double)i;
}

static Val
int_to_int(DType to, Val a)
{
	Val r = {.i = number_wrap(to, a.i), .err = a.err};
	if (a.err == 0)
		return r;
	bool fits = dtype_info[to].bits == 64 ||
	            (a.err < 0x1p30 && number_wrap(to, (int64_t)((uint64_t)a.i + (uint64_t)a.err)) ==
	                                       (int64_t)((uint64_t)a.i + (uint64_t)a.err) &&
	             number_wrap(to, (int64_t)((uint64_t)a.i - (uint64_t)a.err)) ==
	                     (int64_t)((uint64_t)a.i - (uint64_t)a.err));
	if (dtype_info[to].kind == KIND_BOOL)
		r.err = 1;
	else if (!fits)
		r.err = INFINITY;
	return r;
}

static Val
to_float(DType from, DType to, Val a)
{
	Val x = a;
	if (dtype_info[from].kind != KIND_FLOAT) {
		x = val_float(int_value(from, a.i));
		x.err = a.err;
		x.ambiguous = a.err > 0;
	}
	if (to == DT_F64)
		x = val_hard(x);
	bool widens = dtype_info[from].kind == KIND_FLOAT && (to == DT_F64 || to == DT_F32 || to == DT_C64) &&
	              from != DT_F64;
	return widens ? val_hard(x) : number_narrow(to == DT_C64 ? DT_F32 : to, x);
}

Val
number_cast(DType from, DType to, Val a)
{
	if (from == to)
		return a;
	bool is_float = dtype_info[from].kind == KIND_FLOAT;
	switch (dtype_info[to].kind) {
	case KIND_FLOAT:
	case KIND_COMPLEX:
		return to_float(from, to, a);
	case KIND_BOOL:
		return is_float ? float_to_bool(a) : int_to_int(to, a);
	case KIND_INT:
	case KIND_UINT:
		return is_float ? float_to_int(to, a) : int_to_int(to, a);
	}
	return a;
}

Val
number_convert(DType from, DType to, Val a)
{
	if (from == to)
		return a;
	Val r = number_cast(from, to, a);
	r.fault = a.fault;
	r.cut = a.cut;
	r.absent = a.absent;
	r.skip = a.skip;
	r.ambiguous |= a.ambiguous;
	return r;
}
