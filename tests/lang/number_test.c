/* number_test.c: decimal numbers against strtod, which is correctly rounded in the C library, and
 * the same bits under every rounding mode; and quotients of long integers, by what they are. */
#include <fenv.h>
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/exact.h"
#include "frontend/lex.h"
#include "parsed.h"

static uint64_t
bits_of(double v)
{
	uint64_t b;
	memcpy(&b, &v, sizeof b);
	return b;
}

static void
expect_float(const char *text)
{
	Number n;
	assert_int_equal(number_read(text, strlen(text), &n), NUMBER_OK);
	double got = n.is_int ? (double)n.value.i : n.value.f;
	if (bits_of(got) != bits_of(strtod(text, NULL)))
		fail_msg("%s reads as %a, not %a", text, got, strtod(text, NULL));
}

static void
known_hard_ones(void **state)
{
	(void)state;
	static const char *const hard[] = {
		"0.0", "0e9", "1e0", "0.1", "0.3", "1e22", "1e23", "1.7976931348623157e308",
		"1.7976931348623158e308", "2.2250738585072011e-308", "2.2250738585072014e-308", "5e-324",
		"4.9406564584124654e-324", "2.4703282292062327e-324", "2.4703282292062328e-324", "1e-400",
		"9007199254740993.0", "9007199254740992.9999999999999999", "9007199254740993.0000000000000001",
		"0.500000000000000166533453693773481063544750213623046875", "3.518437208883201171875e13",
		"6.2230152778611417071440640537801242405902521687211671331011166147896988340353834411839448231257136169569665895551224821247160434722900390625e-60",
		"8.5e-2", "123456789012345678901234567890", "0.000000000000000000000000000000000000001",
		"9223372036854775807", "9223372036854775808", "1e-45", "1.4012984643e-45",
	};
	for (size_t k = 0; k < sizeof hard / sizeof hard[0]; k++)
		expect_float(hard[k]);
}

static uint64_t
next(uint64_t *s)
{
	*s ^= *s << 13, *s ^= *s >> 7, *s ^= *s << 17;
	return *s;
}

/* Random digits and exponents, and the middles between neighbours, which decide ties. */
static void
random_ones(void **state)
{
	(void)state;
	uint64_t s = 88172645463325252u;
	char text[1300];
	for (int k = 0; k < 40000; k++) {
		snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(next(&s) >> (next(&s) % 64)),
		         (unsigned long long)next(&s), (int)(next(&s) % 640) - 330);
		double v = strtod(text, NULL);
		if (v > 1e308)
			continue;
		expect_float(text);
	}
	for (int k = 0; k < 2000; k++) {
		uint64_t b = next(&s) & 0x7fefffffffffffffu;
		double v;
		memcpy(&v, &b, sizeof v);
		snprintf(text, sizeof text, "%.*e", (int)(next(&s) % 1100), v);
		expect_float(text);
		long double middle = (long double)v * (1.0L + 0x1p-53L); /* 64 bits hold most of them */
		snprintf(text, sizeof text, "%.1100Le", middle);
		expect_float(text);
		strcpy(strchr(text, 'e') - 1, "1e0");
		expect_float(text);
	}
}

static void
same_under_every_rounding_mode(void **state)
{
	(void)state;
	static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
	static const char *const texts[] = {"0.1", "1e23", "0.3333333333333333333", "1.1e-310"};
	for (size_t k = 0; k < sizeof texts / sizeof texts[0]; k++) {
		double want = strtod(texts[k], NULL);
		for (int m = 0; m < 3; m++) {
			Number n;
			fesetround(modes[m]);
			number_read(texts[k], strlen(texts[k]), &n);
			fesetround(FE_TONEAREST);
			assert_true(bits_of(n.value.f) == bits_of(want));
		}
	}
}

static void
integers_and_limits(void **state)
{
	(void)state;
	Number n;
	assert_int_equal(number_read("9223372036854775807", 19, &n), NUMBER_OK);
	assert_true(n.is_int && n.value.i == INT64_MAX);
	assert_int_equal(number_read("9223372036854775808", 19, &n), NUMBER_OK);
	assert_true(!n.is_int && n.value.f == 0x1p63 && n.wide == UINT64_C(1) << 63);
	assert_int_equal(number_read("018446744073709551615", 21, &n), NUMBER_OK);
	assert_true(!n.is_int && n.value.f == 0x1p64 && n.wide == UINT64_MAX);
	assert_int_equal(number_read("18446744073709551616", 20, &n), NUMBER_OK);
	assert_true(!n.is_int && n.value.f == 0x1p64 && n.wide == 0);
	assert_int_equal(number_read("9223372036854775808.0", 21, &n), NUMBER_OK);
	assert_true(!n.is_int && n.wide == 0);
	assert_int_equal(number_read("0x7fffffffffffffff", 18, &n), NUMBER_OK);
	assert_true(n.is_int && n.value.i == INT64_MAX);
	assert_int_equal(number_read("0x8000000000000000", 18, &n), NUMBER_WIDE_HEX);
	assert_int_equal(number_read("0x00000000000000000000DEadbeef", 30, &n), NUMBER_OK);
	assert_true(n.is_int && n.value.i == 0xdeadbeef);
	assert_int_equal(number_read("1.0", 3, &n), NUMBER_OK);
	assert_true(!n.is_int && n.value.f == 1);
	assert_int_equal(number_read("1e2", 3, &n), NUMBER_OK);
	assert_true(!n.is_int && n.value.f == 100);
	assert_int_equal(number_read("1e309", 5, &n), NUMBER_TOO_LARGE);
	assert_int_equal(number_read("1e999999999", 11, &n), NUMBER_TOO_LARGE);
	assert_int_equal(number_read("1.7976931348623159e308", 22, &n), NUMBER_TOO_LARGE);
	assert_int_equal(number_read("0e999999999", 11, &n), NUMBER_OK);
	char digits[4096];
	memset(digits, '7', sizeof digits);
	assert_int_equal(number_read(digits, sizeof digits, &n), NUMBER_TOO_LARGE);
	memset(digits, '0', sizeof digits);
	digits[0] = '1', digits[1] = '.', digits[4095] = '1';
	assert_int_equal(number_read(digits, sizeof digits, &n), NUMBER_OK);
	assert_true(n.value.f == 1);
}

/* Of at most 32 bits a part, so that all words of one may be the same. */
static const Exact *
random_integer(Arena *a, uint64_t *s, unsigned parts)
{
	const Exact *x = exact_whole(a, 0), *word = exact_whole(a, (Whole)1 << 32);
	for (unsigned k = 0; k < parts; k++) {
		uint64_t r = next(s);
		Whole part = r % 4 == 0 ? 0 : r % 4 == 1 ? UINT32_MAX : r >> 32;
		x = exact_arith(a, OP_ADD, exact_arith(a, OP_MUL, x, word), exact_whole(a, part));
	}
	return next(s) % 2 ? x : exact_negated(a, x);
}

/* x = (x div y)*y + x mod y, and x mod y is 0 or lies between 0 and y. */
static void
long_quotients(void **state)
{
	(void)state;
	Parsed p;
	parsed_make(&p, PARSE_TREE, "", 0);
	Arena *a = &p.arena;
	const Exact *zero = exact_whole(a, 0);
	uint64_t s = 2463534242;
	for (unsigned k = 0; k < 4000; k++) {
		const Exact *x = random_integer(a, &s, (unsigned)(next(&s) % 40)), *y = random_integer(a, &s, (unsigned)(next(&s) % 20));
		const Exact *q = exact_arith(a, OP_IDIV, x, y), *r = exact_arith(a, OP_IMOD, x, y);
		assert_true(q && r);
		if (exact_is_zero(y)) {
			assert_true(exact_compare(q, exact_whole(a, -1)) == 0 && exact_compare(r, x) == 0);
			continue;
		}
		assert_true(exact_compare(exact_arith(a, OP_ADD, exact_arith(a, OP_MUL, q, y), r), x) == 0);
		int sign = exact_compare(y, zero);
		assert_true(exact_is_zero(r) || exact_compare(r, zero) == sign);
		assert_true(exact_compare(r, y) == -sign);
	}
	assert_null(exact_arith(a, OP_IDIV, exact_decimal(a, "0.5", 3), exact_whole(a, 2)));
	assert_null(exact_arith(a, OP_IMOD, exact_whole(a, 2), exact_decimal(a, "0.5", 3)));
	parsed_free(&p);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_hard_ones),
		cmocka_unit_test(random_ones),
		cmocka_unit_test(same_under_every_rounding_mode),
		cmocka_unit_test(integers_and_limits),
		cmocka_unit_test(long_quotients),
	};
	return cmocka_run_group_tests_name("number", tests, NULL, NULL);
}
