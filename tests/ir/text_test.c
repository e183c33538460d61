/* text_test.c: a growing text (ir/text.h) against the C library: numbers of every length, words across each of its sizes. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/host.h"
#include "ir/text.h"

typedef struct {
	Unwind unwind;
	Arena arena;
	Text text;
} Fixture;

static void
start(Fixture *x)
{
	*x = (Fixture){0};
	arena_init(&x->arena, &host_default()->memory, &x->unwind);
	text_init(&x->text, &x->arena);
}

static void
number(Fixture *x, uint64_t v)
{
	char want[32];
	size_t before = x->text.n;
	snprintf(want, sizeof want, "%" PRIu64, v);
	text_number(&x->text, v);
	assert_string_equal(x->text.at + before, want);
	assert_int_equal(x->text.n, before + strlen(want));
}

static void
numbers(void **state)
{
	Fixture x;
	(void)state;
	start(&x);
	for (uint64_t power = 1;; power *= 10) {
		for (uint64_t v = power - 1; v <= power + 1; v++)
			number(&x, v);
		if (power > UINT64_MAX / 10)
			break;
	}
	number(&x, UINT64_MAX);
	arena_free(&x.arena);
}

/* Whatever it had when its memory ends, all of it is in the next one. */
static void
growth(void **state)
{
	static char want[1 << 13];
	(void)state;
	for (size_t step = 1; step < 300; step += 7) {
		Fixture x;
		size_t n = 0;
		start(&x);
		assert_string_equal(text_get(&x.text), "");
		for (; n + step + 3 < sizeof want; n += step) {
			memset(want + n, (int)('a' + n % 26), step);
			text_add(&x.text, want + n, step);
			if (n % 3 == 0) {
				memcpy(want + n + step, "42", 2);
				text_number(&x.text, 42);
				n += 2;
			}
			assert_int_equal(x.text.n, n + step);
			assert_memory_equal(x.text.at, want, n + step);
			assert_int_equal(x.text.at[n + step], 0);
		}
		text_word(&x.text, "");
		text_add(&x.text, "", 0);
		assert_int_equal(x.text.n, n);
		arena_free(&x.arena);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(numbers), cmocka_unit_test(growth)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
