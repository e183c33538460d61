/* Element types: every bit pattern of every type of at most 16 bits there and back, rounding at
 * and beside every midpoint, the ends of the ranges, casts between kinds. */
#include "bench.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/eval_value.h"

static const DType small_floats[] = {DT_F16, DT_BF16, DT_F8E4M3, DT_F8E5M2, DT_F4E2M1, DT_E8M0};
enum { SMALL = sizeof small_floats / sizeof small_floats[0] };

static EvalValue
load_bits(DType t, uint32_t bits)
{
	unsigned char p[4] = {(unsigned char)bits, (unsigned char)(bits >> 8), 0, 0};
	return eval_load(t, p, 0);
}

static uint32_t
stored_bits(DType t, double x)
{
	unsigned char p[8] = {0};
	eval_store(t, p, 0, (EvalValue){.re = x});
	return p[0] | (uint32_t)p[1] << 8;
}

static void
every_pattern_comes_back(void **state)
{
	(void)state;
	for (unsigned k = 0; k < SMALL; k++) {
		DType t = small_floats[k];
		uint32_t count = UINT32_C(1) << dtype_info[t].bits, nans = 0;
		for (uint32_t bits = 0; bits < count; bits++) {
			double x = load_bits(t, bits).re;
			nans += isnan(x);
			if (isnan(x))
				assert_true(isnan(load_bits(t, stored_bits(t, x)).re));
			else
				assert_int_equal(stored_bits(t, x), bits);
		}
		static const uint32_t nan_patterns[SMALL] = {2046, 254, 2, 6, 0, 1};
		assert_int_equal(nans, nan_patterns[k]);
	}
}

static void
known_values(void **state)
{
	(void)state;
	static const struct { DType t; uint32_t bits; double v; } rows[] = {
		{DT_F16, 0x3c00, 1}, {DT_F16, 0x7bff, 65504}, {DT_F16, 0x0001, 0x1p-24},
		{DT_F16, 0xfc00, -INFINITY},
		{DT_F16, 0x3555, 0.333251953125}, {DT_F16, 0x0400, 0x1p-14},
		{DT_BF16, 0x3f80, 1}, {DT_BF16, 0x4049, 3.140625}, {DT_BF16, 0x0001, 0x1p-133},
		{DT_BF16, 0x7f80, INFINITY},
		{DT_F8E4M3, 0x38, 1}, {DT_F8E4M3, 0x7e, 448}, {DT_F8E4M3, 0x01, 0x1p-9}, {DT_F8E4M3, 0xb8, -1},
		{DT_F8E5M2, 0x3c, 1}, {DT_F8E5M2, 0x7b, 57344}, {DT_F8E5M2, 0x01, 0x1p-16},
		{DT_F8E5M2, 0x7c, INFINITY},
		{DT_F4E2M1, 1, 0.5}, {DT_F4E2M1, 2, 1}, {DT_F4E2M1, 3, 1.5}, {DT_F4E2M1, 7, 6},
		{DT_F4E2M1, 15, -6},
		{DT_E8M0, 0, 0x1p-127}, {DT_E8M0, 127, 1}, {DT_E8M0, 254, 0x1p127},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		assert_true(load_bits(rows[k].t, rows[k].bits).re == rows[k].v);
		assert_int_equal(stored_bits(rows[k].t, rows[k].v), rows[k].bits);
	}
}

/* Between neighbours a < b of a type: below the midpoint a, above b, on it the even pattern. */
static void
rounding_is_to_nearest_even(void **state)
{
	(void)state;
	for (unsigned k = 0; k + 1 < SMALL; k++) { /* all but e8m0 */
		DType t = small_floats[k];
		uint32_t count = UINT32_C(1) << (dtype_info[t].bits - 1);
		for (uint32_t bits = 0; bits + 1 < count; bits++) {
			double a = load_bits(t, bits).re, b = load_bits(t, bits + 1).re;
			if (!isfinite(a) || !isfinite(b))
				continue;
			double mid = a + (b - a) / 2, even = bits % 2 ? b : a;
			assert_true(number_round(t, mid) == even);
			assert_true(number_round(t, -mid) == -even);
			assert_true(number_round(t, nextafter(mid, 0)) == a);
			assert_true(number_round(t, nextafter(mid, INFINITY)) == b);
		}
	}
}

static void
scales_round_to_powers_of_two(void **state)
{
	(void)state;
	for (int e = -126; e < 127; e++) {
		double a = ldexp(1, e), mid = 1.5 * a, even = (e + 127) % 2 ? 2 * a : a;
		assert_true(number_round(DT_E8M0, mid) == even);
		assert_true(number_round(DT_E8M0, nextafter(mid, 0)) == a);
		assert_true(number_round(DT_E8M0, nextafter(mid, INFINITY)) == 2 * a);
	}
	assert_true(number_round(DT_E8M0, 0) == 0x1p-127);
	assert_true(number_round(DT_E8M0, -0.0) == 0x1p-127);
	assert_true(number_round(DT_E8M0, 1e-300) == 0x1p-127);
	assert_true(number_round(DT_E8M0, INFINITY) == 0x1p127);
	assert_true(isnan(number_round(DT_E8M0, -1)) && isnan(number_round(DT_E8M0, NAN)));
	assert_int_equal(stored_bits(DT_E8M0, -1), 255);
}

static void
ends_of_the_ranges(void **state)
{
	(void)state;
	static const struct { DType t; double below, at, to; } rows[] = {
		{DT_F16, 65519.99, 65520, INFINITY}, {DT_F8E5M2, 61439.9, 61440, INFINITY},
		{DT_F8E4M3, 447, 1e9, 448}, {DT_F8E4M3, 464, INFINITY, 448}, {DT_F4E2M1, 5.5, 1e9, 6},
		{DT_F4E2M1, 6, INFINITY, 6}, {DT_F32, FLT_MAX, 0x1.ffffffp127, INFINITY},
		{DT_BF16, 0x1.fep127, 0x1.ffp127, INFINITY},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		assert_true(isfinite(number_round(rows[k].t, rows[k].below)));
		assert_true(number_round(rows[k].t, rows[k].at) == rows[k].to);
		assert_true(number_round(rows[k].t, -rows[k].at) == -rows[k].to);
	}
	assert_true(number_round(DT_F4E2M1, NAN) == 0);
	assert_int_equal(stored_bits(DT_F8E4M3, NAN), 0x7f);
	assert_true(number_round(DT_F32, 0x1p-150L) == 0);
	assert_true(number_round(DT_F32, 0x1.000001p-150L) == 0x1p-149L);
}

static void
four_bits_share_a_byte(void **state)
{
	(void)state;
	unsigned char p[2] = {0xff, 0xff};
	eval_store(DT_I4, p, 0, (EvalValue){.i = 3});
	eval_store(DT_I4, p, 1, (EvalValue){.i = -8});
	eval_store(DT_U4, p, 2, (EvalValue){.i = 21});
	assert_int_equal(p[0], 0x83);
	assert_int_equal(p[1], 0xf5);
	assert_int_equal(eval_load(DT_I4, p, 1).i, -8);
	assert_int_equal(eval_load(DT_U4, p, 1).i, 8);
	assert_int_equal(eval_load(DT_I4, p, 3).i, -1);
	assert_true(eval_load(DT_F4E2M1, p, 0).re == 1.5);
}

static void
integers_come_back(void **state)
{
	(void)state;
	for (int t = 1; t < DT_COUNT; t++) {
		DTypeKind kind = dtype_info[t].kind;
		if (kind == KIND_FLOAT || kind == KIND_COMPLEX)
			continue;
		for (int64_t i = -300; i <= 300; i++) {
			unsigned char p[8];
			int64_t want = number_wrap((DType)t, i);
			memset(p, 0xa5, sizeof p);
			eval_store((DType)t, p, 0, (EvalValue){.i = want});
			assert_int_equal(eval_load((DType)t, p, 0).i, want);
		}
	}
	unsigned char odd[1] = {0x80};
	assert_int_equal(eval_load(DT_BOOL, odd, 0).i, 1);
}

static void
wrapping(void **state)
{
	(void)state;
	static const struct { DType t; int64_t from, to; } rows[] = {
		{DT_I8, 128, -128}, {DT_I8, -129, 127}, {DT_U8, -1, 255}, {DT_I4, 8, -8}, {DT_U4, -1, 15},
		{DT_I32, INT64_C(1) << 31, INT32_MIN}, {DT_U32, -1, UINT32_MAX}, {DT_U64, -1, -1},
		{DT_BOOL, 256, 1}, {DT_I16, 0x18000, -32768}, {DT_U16, 0x1ffff, 65535},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		assert_int_equal(number_cast(DT_I64, rows[k].t, val_int(rows[k].from)).i, rows[k].to);
}

static void
floats_to_integers(void **state)
{
	(void)state;
	static const struct { DType t; double from; int64_t to; } rows[] = {
		{DT_I32, 1.99, 1}, {DT_I32, -1.99, -1}, {DT_I32, 3e9, INT32_MAX}, {DT_I32, -3e9, INT32_MIN},
		{DT_I32, NAN, 0}, {DT_I32, INFINITY, INT32_MAX}, {DT_I8, 200, 127}, {DT_I8, -128.5, -128},
		{DT_U8, -5, 0}, {DT_U8, 256, 255}, {DT_U8, 255.9, 255}, {DT_I4, 9, 7}, {DT_U4, 99, 15},
		{DT_I64, 1e19, INT64_MAX}, {DT_I64, -1e19, INT64_MIN}, {DT_U64, 1e20, -1},
		{DT_U64, 1e19, (int64_t)10000000000000000000u},
		{DT_U32, 4294967295.5, UINT32_MAX}, {DT_U32, -0.9, 0}, {DT_BOOL, 0.25, 1}, {DT_BOOL, -0.0, 0},
		{DT_BOOL, NAN, 1},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		Val v = number_cast(DT_F64, rows[k].t, val_float(rows[k].from));
		assert_int_equal(v.i, rows[k].to);
		assert_true(v.err == 0);
	}
}

static void
integers_to_floats_round_once(void **state)
{
	(void)state;
	static const struct { DType from, to; int64_t i; double want; } rows[] = {
		{DT_I32, DT_F32, 16777217, 16777216}, {DT_I32, DT_F32, 16777219, 16777220},
		{DT_U64, DT_F32, -1, 0x1p64}, {DT_U64, DT_F64, -1, 0x1p64}, {DT_I64, DT_F64, INT64_MAX, 0x1p63},
		{DT_I64, DT_F64, (INT64_C(1) << 53) + 1, 0x1p53}, {DT_BOOL, DT_F16, 1, 1},
		/* through f32 this would be 2^24 + 2^17 + 1 -> a tie in bf16 */
		{DT_I32, DT_BF16, (1 << 24) + (1 << 16) + 1, (1 << 24) + (1 << 17)},
		{DT_I32, DT_F16, 70000, INFINITY}, {DT_I32, DT_F8E4M3, -1000, -448}, {DT_U8, DT_F4E2M1, 5, 4},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		Val v = number_cast(rows[k].from, rows[k].to, val_int(rows[k].i));
		assert_true((double)v.re == rows[k].want && v.err == 0);
	}
}

/* A bound widens what lies near a step and nothing else. */
static void
inexact_values_convert_as_intervals(void **state)
{
	(void)state;
	Val far = {.re = 1.001, .err = 1e-6}, tie = {.re = 1 + 0x1p-8, .err = 1e-6};
	Val r = number_cast(DT_F32, DT_BF16, far);
	assert_true(r.re == 1 && r.err == 0);
	r = number_cast(DT_F32, DT_BF16, tie);
	assert_true(r.err >= 0x1p-7 && r.err < 0x1.01p-7);
	Val step = {.re = 2.9999999, .err = 1e-6};
	r = number_cast(DT_F32, DT_I32, step);
	assert_true(r.i == 2 && r.err == 1);
	step.re = 2.5;
	r = number_cast(DT_F32, DT_I32, step);
	assert_true(r.i == 2 && r.err == 0);
	Val edge = {.re = 65519, .err = 10};
	assert_true(isinf(number_cast(DT_F32, DT_F16, edge).err));
	edge.err = 0.5;
	assert_true(number_cast(DT_F32, DT_F16, edge).err == 0);
	Val zero = {.re = 1e-9, .err = 1e-6};
	assert_true(number_cast(DT_F32, DT_BOOL, zero).err == 1);
	assert_true(isinf(number_cast(DT_F32, DT_E8M0, zero).err));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_pattern_comes_back),
		cmocka_unit_test(known_values),
		cmocka_unit_test(rounding_is_to_nearest_even),
		cmocka_unit_test(scales_round_to_powers_of_two),
		cmocka_unit_test(ends_of_the_ranges),
		cmocka_unit_test(four_bits_share_a_byte),
		cmocka_unit_test(integers_come_back),
		cmocka_unit_test(wrapping),
		cmocka_unit_test(floats_to_integers),
		cmocka_unit_test(integers_to_floats_round_once),
		cmocka_unit_test(inexact_values_convert_as_intervals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
