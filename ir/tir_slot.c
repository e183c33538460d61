/* tir_slot.c: see tir_slot.h. Shares nothing with the oracle's conversions (ir/eval.h). Compiled
 * without contraction; needs the default rounding mode. */
#include "ir/tir_slot.h"

#include <math.h>
#include <string.h>

/* A float of up to 16 bits: sign, exponent, mantissa. Finite codes are 0..max; above max lie, where
 * the type has them, infinity and NaN. */
typedef struct {
	uint8_t bits, mantissa;
	int16_t bias;
	uint16_t max, over, nan; /* over: what a magnitude beyond max becomes */
	uint16_t infinity;       /* 0: none */
} Format;

static const Format formats[DT_COUNT] = {
	[DT_F16] = {16, 10, 15, 0x7bff, 0x7c00, 0x7e00, 0x7c00},
	[DT_BF16] = {16, 7, 127, 0x7f7f, 0x7f80, 0x7fc0, 0x7f80},
	[DT_F8E4M3] = {8, 3, 7, 0x7e, 0x7e, 0x7f, 0},
	[DT_F8E5M2] = {8, 2, 15, 0x7b, 0x7c, 0x7e, 0x7c},
	[DT_F4E2M1] = {4, 1, 1, 0x7, 0x7, 0, 0}, /* no NaN: it becomes 0 */
};

enum { E8M0_BIAS = 127, E8M0_MAX = 254, E8M0_NAN = 255 };

static double
double_of(uint64_t bits)
{
	double v;
	memcpy(&v, &bits, sizeof v);
	return v;
}

static uint64_t
bits_of(double v)
{
	uint64_t bits;
	memcpy(&bits, &v, sizeof bits);
	return bits;
}

/* 2^e of a normal double. */
static double
power_of_two(int e)
{
	return double_of((uint64_t)(e + 1023) << 52);
}

int64_t
slot_wrap(DType t, int64_t v)
{
	unsigned bits = dtype_info[t].bits;
	if (dtype_info[t].kind == KIND_BOOL)
		return v != 0;
	if (bits >= 64)
		return v;
	uint64_t high = (uint64_t)v << (64 - bits);
	return dtype_info[t].kind == KIND_INT ? (int64_t)high >> (64 - bits) : (int64_t)(high >> (64 - bits));
}

static double
decode_narrow(const Format *f, uint64_t code)
{
	uint64_t magnitude = code & ((UINT64_C(1) << (f->bits - 1)) - 1);
	double v;
	if (magnitude > f->max)
		v = f->infinity && magnitude == f->infinity ? (double)INFINITY : (double)NAN;
	else if (magnitude >> f->mantissa == 0)
		v = (double)magnitude * power_of_two(1 - f->bias - f->mantissa);
	else
		v = double_of((magnitude << (52 - f->mantissa)) + ((uint64_t)(1023 - f->bias) << 52));
	return magnitude == code ? v : -v;
}

double
slot_decode(DType t, uint64_t slot)
{
	if (t == DT_F64)
		return double_of(slot);
	if (t == DT_F32) {
		uint32_t low = (uint32_t)slot;
		float v;
		memcpy(&v, &low, sizeof v);
		return v;
	}
	if (t == DT_E8M0)
		return slot == E8M0_NAN ? (double)NAN : power_of_two((int)slot - E8M0_BIAS);
	return decode_narrow(&formats[t], slot);
}

/* m shifted right by drop, the rest as -1 below, 0 at, 1 above half a unit. */
static uint64_t
split(uint64_t m, int drop, int *rest)
{
	uint64_t half = UINT64_C(1) << 63, low;
	if (drop > 64) {
		*rest = -1;
		return 0;
	}
	low = drop == 64 ? m : drop == 0 ? 0 : m << (64 - drop);
	*rest = low < half ? -1 : low > half;
	return drop == 64 ? 0 : m >> drop;
}

/* The code nearest to m * 2^e, m != 0. */
static uint64_t
round_narrow(const Format *f, bool negative, uint64_t m, int e)
{
	int shift = __builtin_clzll(m), rest;
	m <<= shift;
	e -= shift;
	int top = e + 63, least = 1 - f->bias; /* the exponents of m's first bit and of the least normal */
	int unit = (top < least ? least : top) - f->mantissa;
	uint64_t code = split(m, unit - e, &rest);
	code += rest > 0 || (rest == 0 && (code & 1));
	if (top > least)
		code += (uint64_t)(top - least) << f->mantissa;
	if (code > f->max)
		code = f->over;
	return code | (uint64_t)negative << (f->bits - 1);
}

/* The nearest power of two, ties to the even exponent field; what is too small is 2^-127, what is
 * too large 2^127. */
static uint64_t
round_power(uint64_t m, int e)
{
	int shift = __builtin_clzll(m), rest;
	m <<= shift;
	int field = e - shift + 63 + E8M0_BIAS;
	if (field < 0)
		return 0;
	split(m, 63, &rest);
	field += rest > 0 || (rest == 0 && (field & 1));
	return field > E8M0_MAX ? E8M0_MAX : (uint64_t)field;
}

static uint64_t
encode_e8m0(double v)
{
	if (isnan(v) || v < 0)
		return E8M0_NAN;
	if (v == 0)
		return 0;
	if (isinf(v))
		return E8M0_MAX;
	int e;
	uint64_t m = (uint64_t)ldexp(frexp(v, &e), 53);
	return round_power(m, e - 53);
}

static uint64_t
encode_narrow(const Format *f, double v)
{
	uint64_t bits = bits_of(v), m = bits & ((UINT64_C(1) << 52) - 1);
	bool negative = bits >> 63;
	int field = (int)(bits >> 52 & 0x7ff);
	uint64_t sign = (uint64_t)negative << (f->bits - 1);
	if (isnan(v))
		return f->nan;
	if (isinf(v))
		return f->over | sign;
	if (v == 0)
		return sign;
	if (field == 0)
		return round_narrow(f, negative, m, -1074);
	return round_narrow(f, negative, m | UINT64_C(1) << 52, field - 1075);
}

static uint64_t
float_slot(float v)
{
	uint32_t low;
	memcpy(&low, &v, sizeof low);
	return low;
}

uint64_t
slot_encode(DType t, double v)
{
	if (t == DT_F64)
		return bits_of(v);
	if (t == DT_F32)
		return float_slot((float)v);
	if (t == DT_E8M0)
		return encode_e8m0(v);
	return encode_narrow(&formats[t], v);
}

static int64_t
truncate_signed(double v, unsigned bits)
{
	if (isnan(v))
		return 0;
	double limit = power_of_two((int)bits - 1);
	int64_t max = (int64_t)((UINT64_C(1) << (bits - 1)) - 1);
	if (v >= limit)
		return max;
	if (v <= -limit)
		return -max - 1;
	return (int64_t)v;
}

static uint64_t
truncate_unsigned(double v, unsigned bits)
{
	if (isnan(v) || v <= 0)
		return 0;
	if (v >= power_of_two((int)bits))
		return bits == 64 ? UINT64_MAX : (UINT64_C(1) << bits) - 1;
	return (uint64_t)v;
}

static uint64_t
cast_from_float(DType to, DType from, uint64_t slot)
{
	double v = slot_decode(from, slot);
	switch (dtype_info[to].kind) {
	case KIND_FLOAT: return slot_encode(to, v);
	case KIND_INT: return (uint64_t)truncate_signed(v, dtype_info[to].bits);
	case KIND_UINT: return truncate_unsigned(v, dtype_info[to].bits);
	case KIND_BOOL: return !(v == 0);
	case KIND_COMPLEX: break;
	}
	return 0;
}

static uint64_t
float_from_int(DType to, bool is_signed, uint64_t slot)
{
	int64_t s = (int64_t)slot;
	if (to == DT_F64)
		return bits_of(is_signed ? (double)s : (double)slot);
	if (to == DT_F32)
		return float_slot(is_signed ? (float)s : (float)slot);
	bool negative = is_signed && s < 0;
	uint64_t m = negative ? 0 - slot : slot;
	if (m == 0)
		return 0;
	if (to == DT_E8M0)
		return negative ? E8M0_NAN : round_power(m, 0);
	return round_narrow(&formats[to], negative, m, 0);
}

uint64_t
slot_cast(DType to, DType from, uint64_t slot)
{
	if (to == from)
		return slot;
	if (dtype_is_float(from))
		return cast_from_float(to, from, slot);
	if (dtype_is_float(to))
		return float_from_int(to, dtype_info[from].kind == KIND_INT, slot);
	return (uint64_t)slot_wrap(to, (int64_t)slot);
}

void
slot_cast_all(DType to, DType from, const uint64_t *slot, uint64_t *out, unsigned n)
{
	if (dtype_is_float(to) || dtype_is_float(from))
		for (unsigned l = 0; l < n; l++)
			out[l] = slot_cast(to, from, slot[l]);
	else
		for (unsigned l = 0; l < n; l++)
			out[l] = to == from ? slot[l] : (uint64_t)slot_wrap(to, (int64_t)slot[l]);
}

/* Of a known size, since most accesses of the interpreter come here; little endian. */
uint64_t
slot_load(DType t, const void *packed, int64_t n)
{
	const unsigned char *p = packed;
	uint64_t slot = 0;
	switch (dtype_info[t].bits) {
	case 4: slot = p[n / 2] >> (n % 2 * 4) & 15; break;
	case 8: slot = p[n]; break;
	case 16: memcpy(&slot, p + n * 2, 2); break;
	case 32: memcpy(&slot, p + n * 4, 4); break;
	default: memcpy(&slot, p + n * 8, 8); break;
	}
	return dtype_is_float(t) ? slot : (uint64_t)slot_wrap(t, (int64_t)slot);
}

void
slot_store(DType t, void *packed, int64_t n, uint64_t slot)
{
	unsigned char *p = packed;
	unsigned shift = n % 2 * 4;
	switch (dtype_info[t].bits) {
	case 4: p[n / 2] = (unsigned char)((p[n / 2] & ~(15u << shift)) | (slot & 15) << shift); break;
	case 8: p[n] = (unsigned char)slot; break;
	case 16: memcpy(p + n * 2, &slot, 2); break;
	case 32: memcpy(p + n * 4, &slot, 4); break;
	default: memcpy(p + n * 8, &slot, 8); break;
	}
}
