/* tir_lanes.c: every operation on every type it is defined on, one row each. Compiled without
 * contraction; f32 arithmetic is in float, and what F_MATH names is computed in double and rounded,
 * as it may stand in a kernel only until it is expanded. */
#include "ir/tir_lanes.h"

#include <math.h>
#include <string.h>

#include "ir/tir_slot.h"

/* --- slots to C and back --- */

static float
get_F32(uint64_t s)
{
	uint32_t low = (uint32_t)s;
	float v;
	memcpy(&v, &low, sizeof v);
	return v;
}

static uint64_t
put_F32(float v)
{
	uint32_t low;
	memcpy(&low, &v, sizeof low);
	return low;
}

static double
get_F64(uint64_t s)
{
	double v;
	memcpy(&v, &s, sizeof v);
	return v;
}

static uint64_t
put_F64(double v)
{
	uint64_t s;
	memcpy(&s, &v, sizeof s);
	return s;
}

/* Integers are computed in u64, wrapped by put; get gives the value. */
#define get_I32(s) ((int64_t)(s))
#define get_I64(s) ((int64_t)(s))
#define get_U32(s) (s)
#define get_U64(s) (s)
#define get_U16(s) (s)
#define get_U8(s) (s)
#define get_BOOL(s) (s)
#define put_I32(v) ((uint64_t)(int32_t)(uint32_t)(uint64_t)(v))
#define put_I64(v) ((uint64_t)(v))
#define put_U32(v) ((uint64_t)(uint32_t)(v))
#define put_U64(v) ((uint64_t)(v))
#define put_U16(v) ((uint64_t)(uint16_t)(v))
#define put_U8(v) ((uint64_t)(uint8_t)(v))
#define put_BOOL(v) ((uint64_t)((v) != 0))
#define type_F32 float
#define type_F64 double
#define type_I32 int64_t
#define type_I64 int64_t
#define type_U32 uint64_t
#define type_U64 uint64_t
#define type_U16 uint64_t
#define type_U8 uint64_t
#define type_BOOL uint64_t

/* --- what the rows use --- */

static uint64_t
floor_div(int64_t x, int64_t y)
{
	if (y == 0 || y == -1)
		return y ? 0 - (uint64_t)x : UINT64_MAX;
	return (uint64_t)(x / y - (x % y != 0 && (x < 0) != (y < 0)));
}

static uint64_t
floor_mod(int64_t x, int64_t y)
{
	if (y == 0 || y == -1)
		return y ? 0 : (uint64_t)x;
	int64_t r = x % y;
	return (uint64_t)(r + (r != 0 && (r < 0) != (y < 0) ? y : 0));
}

/* NaN wins, -0 < +0. */
static double
float_min(double x, double y)
{
	if (isnan(x) || isnan(y))
		return isnan(x) ? x : y;
	if (x == y)
		return signbit(x) ? x : y;
	return x < y ? x : y;
}

/* x 2^floor(y), y not infinite: of an f32 exact, or too small or large for one */
static double
scaled(double x, double y)
{
	if (isnan(x) || !isfinite(y))
		return isnan(x) ? x : (double)NAN;
	y = floor(y);
	return ldexp(x, y > 5000 ? 5000 : y < -5000 ? -5000 : (int)y);
}

/* 1/x; what is below 2^-126 counts as 0, x and the result. */
static float
near_reciprocal(float x)
{
	if (fabsf(x) < 0x1p-126f)
		return copysignf(INFINITY, x);
	return fabsf(x) > 0x1p126f ? copysignf(0, x) : 1 / x;
}

static float
flushed(float x)
{
	return fabsf(x) < 0x1p-126f ? copysignf(0, x) : x;
}

/* v moved by so many units of its last place and by `more`, up where the last bit of x is set, else down, and rounded within
 * that; 0, infinities and NaN stay, and what comes of them. */
static float
off(float x, double v, double ulps, double more)
{
	int ex;
	if (!isfinite(v) || v == 0 || x == 0 || !isfinite(x))
		return (float)v;
	frexp(v, &ex);
	double unit = ldexp(1, (ex < -125 ? -125 : ex) - 24), by = ulps * unit + more - unit / 2;
	float moved = (float)(v + (put_F32(x) & 1 ? by : -by));
	return fabs(moved - v) <= by + unit / 2 ? moved : (float)v;
}

/* By a power of two as it is. */
static float
near_quotient(float x, float y)
{
	bool exact = (put_F32(y) & 0x7fffff) == 0;
	return exact ? x / y : off(x + y, (double)x / y, 2, 0);
}

/* By 2^-22.9 of it, but 2 units of its last place at most. */
static float
near_rsqrt(float x)
{
	double v = 1 / sqrt(x);
	int ex;
	frexp(v, &ex);
	return off(x, v, 0, fmin(0x1.11p-23 * v, ldexp(2, ex - 24)));
}

static uint64_t
wrapping_pow(uint64_t x, uint64_t y)
{
	uint64_t r = 1;
	for (; y; y >>= 1, x *= x)
		if (y & 1)
			r *= x;
	return r;
}

/* A negative power is 1 over the positive one, truncated: 0 but for 1, -1 and, as div by 0, 0. */
static uint64_t
int_pow(int64_t x, int64_t y)
{
	if (y >= 0)
		return wrapping_pow((uint64_t)x, (uint64_t)y);
	if (x == 0)
		return UINT64_MAX;
	if (x == 1 || x == -1)
		return y % 2 ? (uint64_t)x : 1;
	return 0;
}

/* --- one function a row, and the table of them --- */

#define LANE_NAME(op, t) lane_##op##_##t
#define LANES(op, t, ...)                                                                           \
	static void LANE_NAME(op, t)(uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c, \
	                             unsigned n)                                                    \
	{                                                                                           \
		(void)b;                                                                            \
		(void)c;                                                                            \
		for (unsigned l = 0; l < n; l++)                                                    \
			__VA_ARGS__                                                                 \
	}
#define LANES1(op, t, r, e)                             \
	LANES(op, t, {                                  \
		const type_##t x = get_##t(a[l]);       \
		d[l] = put_##r(e);                      \
	})
#define LANES2(op, t, r, e)                                                      \
	LANES(op, t, {                                                           \
		const type_##t x = get_##t(a[l]), y = get_##t(b[l]);             \
		d[l] = put_##r(e);                                               \
	})
#define LANES3(op, t, r, e)                                                                  \
	LANES(op, t, {                                                                       \
		const type_##t x = get_##t(a[l]), y = get_##t(b[l]), z = get_##t(c[l]);      \
		d[l] = put_##r(e);                                                           \
	})
#include "ir/tir_lanes.def"

static LaneFn *const lane_table[OP_COUNT][DT_COUNT] = {
#define LANES1(op, t, r, e) [OP_##op][DT_##t] = LANE_NAME(op, t),
#define LANES2(op, t, r, e) [OP_##op][DT_##t] = LANE_NAME(op, t),
#define LANES3(op, t, r, e) [OP_##op][DT_##t] = LANE_NAME(op, t),
#include "ir/tir_lanes.def"
};

LaneFn *
lane_function(Op op, DType operand)
{
	return lane_table[op][operand];
}

/* --- matrices --- */

static float
without_subnormals(float v)
{
	return fabsf(v) < 0x1p-126f ? copysignf(0, v) : v;
}

static float
bf16_value(uint32_t high_half)
{
	return without_subnormals(get_F32(high_half));
}

uint64_t
lane_dot(uint64_t c, const uint32_t *a, const uint32_t *b, unsigned step, unsigned n)
{
	float low = 0, high = 0;
	for (unsigned p = 0; p < n; p++) {
		uint32_t x = a[p], y = b[(size_t)p * step];
		low = without_subnormals(fmaf(bf16_value(x << 16), bf16_value(y << 16), low));
		high = without_subnormals(fmaf(bf16_value(x & 0xffff0000), bf16_value(y & 0xffff0000), high));
	}
	float both = without_subnormals(low + high);
	return put_F32(without_subnormals(without_subnormals(get_F32(c)) + both));
}

uint64_t
lane_dot_chained(uint64_t c, const uint32_t *a, const uint32_t *b, unsigned step, unsigned n)
{
	float sum = without_subnormals(get_F32(c));
	for (unsigned p = 0; p < n; p++) {
		uint32_t x = a[p], y = b[(size_t)p * step];
		sum = without_subnormals(fmaf(bf16_value(x & 0xffff0000), bf16_value(y & 0xffff0000), sum));
		sum = without_subnormals(fmaf(bf16_value(x << 16), bf16_value(y << 16), sum));
	}
	return put_F32(sum);
}
