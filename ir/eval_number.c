/* eval_number.c: element types of the oracle: storage, rounding, casts, spacing.
 *
 * The narrow floats are described by one table; nothing here is shared with the code generator.
 * Choices the language leaves open are listed in ir/README.md, "Meaning". Rounding is to
 * nearest even; graph_eval sees to the rounding mode. */
#include <float.h>
#include <string.h>

#include "ir/eval_value.h"

typedef struct {
	int digits;   /* of the significand, with the leading one */
	int low;      /* exponent of the smallest subnormal */
	int mantissa; /* bits stored */
	double max;
	bool inf, nan;
} FloatFormat;

static const FloatFormat formats[DT_COUNT] = {
	[DT_F64] = {53, -1074, 52, DBL_MAX, true, true},
	[DT_F32] = {24, -149, 23, FLT_MAX, true, true},
	[DT_F16] = {11, -24, 10, 65504, true, true},
	[DT_BF16] = {8, -133, 7, 0x1.fep127, true, true},
	[DT_F8E4M3] = {4, -9, 3, 448, false, true},
	[DT_F8E5M2] = {3, -16, 2, 57344, true, true},
	[DT_F4E2M1] = {2, -1, 1, 6, false, false},
	[DT_E8M0] = {1, -127, 0, 0x1p127, false, true},
	[DT_C64] = {24, -149, 23, FLT_MAX, true, true},
};

/* x * 2^e, which is exact. */
static long double
scaled(long double x, int e)
{
	if (e < -1022 || e > 1023)
		return ldexpl(x, e);
	double two_to_e;
	uint64_t bits = (uint64_t)(e + 1023) << 52;
	memcpy(&two_to_e, &bits, sizeof bits);
	return x * two_to_e;
}

/* That of frexpl. */
static int
exponent(long double m)
{
	uint64_t bits;
	int e;
	if (number_bits(m, &bits, &e))
		return e + 53;
	frexpl(m, &e);
	return e;
}

/* To the nearest power of two, the even exponent field on ties. */
static long double
round_scale(long double x)
{
	if (isnan(x) || x < 0)
		return NAN;
	if (x <= 0x1p-127L)
		return 0x1p-127L;
	if (x >= 0x1p127L)
		return 0x1p127L;
	int ex;
	long double f = frexpl(x, &ex); /* x = 2f * 2^(ex-1), 1 <= 2f < 2 */
	int field = ex - 1 + 127;
	bool up = f > 0.75L || (f == 0.75L && field % 2 != 0);
	return ldexpl(1, ex - 1 + up);
}

static long double
round_magnitude(const FloatFormat *f, long double m)
{
	int ex = exponent(m);
	int q = ex - f->digits > f->low ? ex - f->digits : f->low;
	return scaled(rintl(scaled(m, -q)), q);
}

long double
number_round(DType t, long double x)
{
	if (t == DT_F64)
		return (double)x;
	if (t == DT_F32 || t == DT_C64)
		return (float)x;
	if (t == DT_E8M0)
		return round_scale(x);
	const FloatFormat *f = &formats[t];
	if (isnan(x))
		return f->nan ? x : 0;
	long double m = fabsl(x);
	if (isfinite(m))
		m = round_magnitude(f, m);
	if (m > f->max)
		m = f->inf ? (long double)INFINITY : f->max;
	return copysignl(m, x);
}

double
number_ulp(DType t, double x)
{
	const FloatFormat *f = &formats[t];
	x = fabs(x);
	if (!(x <= f->max))
		x = f->max;
	int ex = exponent(x);
	int q = x > 0 && ex - f->digits > f->low ? ex - f->digits : f->low;
	return (double)scaled(1, q);
}

/* From here on a correctly rounded result is infinite. */
static long double
overflow_at(DType wide)
{
	return wide == DT_F64 ? 0x1.fffffffffffff8p1023L : 0x1.ffffffp127L;
}

static DType
wide_of(DType t)
{
	return t == DT_F64 ? DT_F64 : DT_F32;
}

/* 1.002 covers the reference's own rounding, 2^-64 of the value, in f64 as well. */
Val
number_settle(FpMode fp, DType t, long double v, long double e)
{
	DType wide = wide_of(t);
	long double m = fabsl(v), over = overflow_at(wide);
	Val r = val_float(v);
	if (!(m + e < over)) {
		if (!(m - e >= over))
			return val_open(v);
		r.re = copysignl(INFINITY, v);
	} else {
		r.err = (double)(e + 0.501 * number_ulp(wide, (double)(m + e))) * (1 + 0x1p-40);
		if (fp == FP_FAST)
			r.err += 0x1p-126;
	}
	return wide == t || t == DT_C64 ? r : number_narrow(t, r);
}

Val
number_narrow(DType t, Val a)
{
	a = val_hard(a);
	Val r = a;
	if (a.err == 0) {
		r.re = number_round(t, a.re);
		return r;
	}
	r.re = number_round(t, a.re);
	long double lo = number_round(t, a.re - a.err), hi = number_round(t, a.re + a.err);
	bool scale_edge = t == DT_E8M0 && a.re - a.err < 0 && a.re + a.err >= 0;
	if (!isfinite(a.err) || !isfinite(a.re) || scale_edge) {
		Val u = val_open(a.re);
		u.fault = a.fault, u.cut = a.cut, u.absent = a.absent;
		return u;
	}
	if (lo == hi || (isnan(lo) && isnan(hi))) {
		r.err = lo == 0 && signbit(lo) != signbit(hi) ? 0x1p-1074 : 0; /* a zero of unknown sign */
		return r;
	}
	r.err = (double)fmaxl(hi - r.re, r.re - lo) * (1 + 0x1p-50);
	if (!isfinite(lo) || !isfinite(hi))
		r.err = INFINITY;
	return r;
}

/* A value that t holds stays what it is. Any other may be rounded, before or after factors of at most 1 that
 * its row shares, or not at all: rounding a normal number moves it by at most 2^-digits of itself, another
 * by half the least step. */
Val
number_narrow_free(DType t, Val a)
{
	const FloatFormat *f = &formats[t];
	Val r = number_narrow(t, a);
	a = val_hard(a);
	long double most = fabsl(a.re) + a.err;
	if (a.err == 0 && (r.re == a.re || isnan(a.re)))
		return r;
	if (!isfinite(r.err) || !(most <= f->max))
		return val_unknown();
	a.err = (a.err + ldexp((double)most, -f->digits) + ldexp(1, f->low - 1)) * (1 + 0x1p-50);
	return a;
}

/* --- storage --- */

static uint64_t
load_bits(DType t, const void *packed, int64_t n)
{
	const unsigned char *p = packed;
	unsigned bits = dtype_info[t].bits;
	uint64_t v = 0;
	if (bits == 4)
		return n % 2 ? p[n / 2] >> 4 : p[n / 2] & 15;
	if (bits == 16)
		return p[2 * n] | (uint64_t)p[2 * n + 1] << 8;
	unsigned size = bits / 8;
	for (unsigned k = 0; k < size; k++)
		v |= (uint64_t)p[n * size + k] << (8 * k);
	return v;
}

static void
store_bits(DType t, void *packed, int64_t n, uint64_t v)
{
	unsigned char *p = packed;
	unsigned bits = dtype_info[t].bits;
	if (bits == 4) {
		unsigned shift = n % 2 ? 4 : 0;
		p[n / 2] = (unsigned char)((p[n / 2] & ~(15u << shift)) | (unsigned)(v & 15) << shift);
		return;
	}
	for (unsigned k = 0; k < bits / 8; k++)
		p[n * (bits / 8) + k] = (unsigned char)(v >> (8 * k));
}

static long double
decode_float(DType t, uint64_t b)
{
	if (t == DT_BF16) { /* the upper half of an f32 */
		uint32_t wide = (uint32_t)b << 16;
		float x;
		memcpy(&x, &wide, sizeof x);
		return x;
	}
	if (t == DT_E8M0)
		return b == 255 ? (long double)NAN : ldexpl(1, (int)b - 127);
	const FloatFormat *f = &formats[t];
	unsigned bits = dtype_info[t].bits;
	uint64_t one = 1, sign = b >> (bits - 1), rest = b & ((one << (bits - 1)) - 1);
	uint64_t mant = rest & ((one << f->mantissa) - 1), ex = rest >> f->mantissa;
	uint64_t top = (one << (bits - 1 - (unsigned)f->mantissa)) - 1;
	long double m;
	if (f->inf && ex == top)
		m = mant ? NAN : INFINITY;
	else if (t == DT_F8E4M3 && rest == 0x7f)
		m = NAN;
	else if (ex == 0)
		m = scaled((long double)mant, f->low);
	else
		m = scaled((long double)(mant | one << f->mantissa), f->low + (int)ex - 1);
	return sign ? -m : m;
}

static uint64_t
encode_float(DType t, long double x)
{
	x = number_round(t, x);
	if (t == DT_E8M0)
		return isnan(x) ? 255 : (uint64_t)(ilogbl(x) + 127);
	const FloatFormat *f = &formats[t];
	unsigned bits = dtype_info[t].bits;
	uint64_t one = 1, sign = signbit(x) ? one << (bits - 1) : 0;
	uint64_t top = ((one << (bits - 1 - (unsigned)f->mantissa)) - 1) << f->mantissa;
	if (isnan(x))
		return t == DT_F8E4M3 ? 0x7f : top | one << (f->mantissa - 1);
	if (isinf(x))
		return sign | top;
	long double m = fabsl(x);
	int ex;
	frexpl(m, &ex);
	int q = m > 0 && ex - f->digits > f->low ? ex - f->digits : f->low;
	uint64_t k = (uint64_t)ldexpl(m, -q);
	if (k < one << f->mantissa)
		return sign | k;
	return sign | (uint64_t)(q - f->low + 1) << f->mantissa | (k - (one << f->mantissa));
}

static float
load_f32(const void *p, int64_t n)
{
	float x;
	memcpy(&x, (const char *)p + n * (int64_t)sizeof x, sizeof x);
	return x;
}

void
number_load(DType t, const void *packed, int64_t n, Val *out)
{
	*out = (Val){0};
	if (t == DT_F32) {
		out->re = load_f32(packed, n);
		return;
	}
	switch (dtype_info[t].kind) {
	case KIND_FLOAT:
		out->re = decode_float(t, load_bits(t, packed, n));
		return;
	case KIND_COMPLEX:
		out->re = load_f32(packed, 2 * n);
		out->im = load_f32(packed, 2 * n + 1);
		return;
	case KIND_BOOL:
		out->i = load_bits(t, packed, n) != 0;
		return;
	case KIND_INT:
	case KIND_UINT:
		out->i = number_wrap(t, (int64_t)load_bits(t, packed, n));
		return;
	}
}

EvalValue
eval_load(DType t, const void *packed, int64_t n)
{
	Val v;
	number_load(t, packed, n, &v);
	return (EvalValue){.re = (double)v.re, .im = (double)v.im, .i = v.i};
}

void
eval_store(DType t, void *packed, int64_t n, EvalValue v)
{
	switch (dtype_info[t].kind) {
	case KIND_FLOAT:
		store_bits(t, packed, n, encode_float(t, v.re));
		return;
	case KIND_COMPLEX:
		store_bits(DT_F32, packed, 2 * n, encode_float(DT_F32, v.re));
		store_bits(DT_F32, packed, 2 * n + 1, encode_float(DT_F32, v.im));
		return;
	case KIND_BOOL:
		store_bits(t, packed, n, v.i != 0);
		return;
	case KIND_INT:
	case KIND_UINT:
		store_bits(t, packed, n, (uint64_t)v.i);
		return;
	}
}

double
eval_ulp(DType t, double x)
{
	return number_ulp(t, x);
}
