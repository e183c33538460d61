/* values.c: see values.h. */
#include "tests/codegen/values.h"

#include <math.h>
#include <string.h>

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const float edge_f32[] = {
	0.0f, -0.0f, 1.0f, -1.0f, 0.5f, -0.5f, 1.5f, -1.5f, 2.5f, -2.5f, 0.49999997f, 8388607.5f, -8388607.5f,
	8388609.0f, 16777216.0f, 2147483648.0f, -2147483648.0f, 2147483520.0f, 4294967296.0f, 9.2233720e18f,
	-9.2233720e18f, 1.8446744e19f, 127.5f, -128.9f, 255.9f, -0.9f, 32767.9f, 65535.9f, 7.9f, -8.9f, 15.9f,
	1e-45f, -1e-45f, 1.1754944e-38f, 3.4028235e38f, -3.4028235e38f, INFINITY, -INFINITY, NAN};
static const double edge_f64[] = {
	0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 0.49999999999999994, 4503599627370495.5,
	-4503599627370495.5, 4503599627370497.0, 9007199254740992.0, 2147483647.9, -2147483648.9, 4294967295.9,
	9.2233720368547748e18, 9.2233720368547758e18, -9.2233720368547758e18, 1.8446744073709550e19, 127.9, -128.9,
	255.9, 32767.9, 65535.9, 7.9, -8.9, 15.9, 5e-324, -5e-324, 2.2250738585072014e-308, 1.7976931348623157e308,
	-1.7976931348623157e308, 1.401298464324817e-45, 7.006492321624085e-46, 3.4028235677973366e38,
	3.4028235677973362e38, INFINITY, -INFINITY, NAN};
/* Bits, cut to the type: signed and unsigned edges of every width. */
static const uint64_t edge_int[] = {
	0, 1, 2, 3, 5, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 32767, 32768, 65535,
	16777217, 0x7fffffff, 0x80000000, 0xffffffff, 0x100000000, 9007199254740993, 0x7fffffffffffffff,
	0x8000000000000000, 0x8000000000000001, 0xfffffffffffffffd, 0xfffffffffffffffe, 0xffffffffffffffff};

static uint64_t
next_random(uint64_t *s)
{
	uint64_t z = *s += UINT64_C(0x9e3779b97f4a7c15);
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static uint64_t
edge_bits(DType t, uint64_t n, uint64_t *count)
{
	uint64_t bits = 0;
	*count = t == DT_F32 ? COUNT(edge_f32) : t == DT_F64 ? COUNT(edge_f64) : COUNT(edge_int);
	n %= *count;
	if (t == DT_F32)
		memcpy(&bits, &edge_f32[n], 4);
	else if (t == DT_F64)
		memcpy(&bits, &edge_f64[n], 8);
	else
		bits = edge_int[n];
	return bits;
}

static void
put_element(DType t, uint8_t *packed, int64_t i, uint64_t bits)
{
	if (dtype_info[t].bits == 4) {
		unsigned shift = 4 * (unsigned)(i % 2);
		packed[i / 2] = (uint8_t)((packed[i / 2] & ~(15u << shift)) | (bits & 15) << shift);
		return;
	}
	size_t size = dtype_info[t].bits / 8u;
	memcpy(packed + (size_t)i * size, &bits, size);
}

void
fill_values(DType t, void *packed, int64_t count, unsigned round, uint64_t seed)
{
	uint64_t n, s = seed + round * 77;
	edge_bits(t, 0, &n);
	for (int64_t i = 0; i < count; i++) {
		uint64_t at = (uint64_t)i, random = next_random(&s), bits;
		for (unsigned k = 0; k < round; k++)
			at /= n;
		if (round == 2)
			at = random;
		bits = edge_bits(t, at, &n);
		if ((uint64_t)i >= n * n && random % 3)
			bits = next_random(&s);
		else if ((uint64_t)i >= n * n)
			bits = edge_bits(t, random / 3, &n);
		put_element(t, packed, i, bits);
	}
}
