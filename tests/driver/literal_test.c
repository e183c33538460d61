/* literal_test.c: tensors written out, and name=value. */
#include "driver/input_spec.h"
#include "driver/literal.h"
#include "tests/driver/arena_fixture.h"

#include <math.h>
#include <string.h>

static bool
parse(const char *text, Literal *lit, const char **error)
{
	size_t used;
	return literal_parse(&arena, text, strlen(text), &used, lit, error) && used == strlen(text);
}

static void
values(void **state)
{
	(void)state;
	Literal l;
	const char *error;
	assert_true(parse("[[1, -2.5e1, inf], [-inf, nan, .125]]", &l, &error));
	assert_int_equal(l.rank, 2);
	assert_int_equal(l.shape[0], 2);
	assert_int_equal(l.shape[1], 3);
	assert_int_equal(l.item.at[0].kind, LITERAL_INT);
	assert_int_equal(l.item.at[0].u, 1);
	assert_true(l.item.at[1].re == -25.0 && l.item.at[1].half == 0.5);
	assert_true(l.item.at[2].re == INFINITY && l.item.at[3].re == -INFINITY);
	assert_true(isnan(l.item.at[4].re));
	assert_true(l.item.at[5].re == 0.125 && fabs(l.item.at[5].half - 0.0005) < 1e-18);
	assert_true(parse("[true, false]", &l, &error));
	assert_true(l.item.at[0].u == 1 && l.item.at[1].u == 0 && l.item.at[1].kind == LITERAL_BOOL);
	assert_true(parse("[(1, -2), (0.5, 0)]", &l, &error));
	assert_true(l.item.at[0].im == -2 && l.item.at[1].re == 0.5 && l.item.at[1].kind == LITERAL_COMPLEX);
	assert_true(parse("18446744073709551615", &l, &error));
	assert_true(l.rank == 0 && l.item.at[0].u == UINT64_MAX);
}

static void
empty_shapes(void **state)
{
	(void)state;
	Literal l;
	const char *error;
	assert_true(parse("[]", &l, &error));
	assert_true(l.rank == 1 && l.shape[0] == 0 && l.item.n == 0);
	assert_true(parse("[[], []]", &l, &error));
	assert_true(l.rank == 2 && l.shape[0] == 2 && l.shape[1] == 0);
	assert_true(parse("[[1, 2,], ]", &l, &error));
	assert_true(l.rank == 2 && l.shape[0] == 1 && l.shape[1] == 2);
}

static void
refusals(void **state)
{
	(void)state;
	static const char *const bad[] = {"",        "[1, 2",   "[[1], 2]", "[1, [2]]", "[[1], [2, 3]]", "[[], [1]]",
	                                  "[1 2]",   "1.2.3",   "[1x]",     "(1)",      "(1, 2",         "tru",
	                                  "[[[[[[[[[1]]]]]]]]]", "-",   "1e",       "infx",     "0x10"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		Literal l;
		const char *error = NULL;
		if (parse(bad[i], &l, &error))
			fail_msg("'%s' was taken", bad[i]);
	}
}

static void
specs(void **state)
{
	(void)state;
	InputSpec s;
	const char *name, *value;
	assert_true(input_split(&arena, "x = random:42 f32[4, 8]", &name, &value));
	assert_string_equal(name, "x");
	assert_true(input_spec_parse(&arena, name, value, NULL, &s, &problem_met));
	assert_int_equal(s.kind, INPUT_RANDOM);
	assert_int_equal(s.seed, 42);
	assert_int_equal(s.dtype, DT_F32);
	assert_true(s.has_shape && s.rank == 2 && s.shape[0] == 4 && s.shape[1] == 8);
	assert_true(input_spec_parse(&arena, "x", "@a.npy", "/dir", &s, &problem_met));
	assert_string_equal(s.path, "/dir/a.npy");
	assert_true(input_spec_parse(&arena, "x", "iota", NULL, &s, &problem_met));
	assert_false(s.has_shape);
	assert_true(input_spec_parse(&arena, "x", "[1, 2] i32[2]", NULL, &s, &problem_met));
	assert_int_equal(s.kind, INPUT_LITERAL);
	assert_false(input_split(&arena, "= 3", &name, &value));
	assert_false(input_split(&arena, "a == 3", &name, &value));
	assert_false(input_split(&arena, "3 = a", &name, &value));
}

static void
bad_specs(void **state)
{
	(void)state;
	static const char *const bad[] = {"@",           "random:",     "random:x",     "random:-1", "zeros:1",
	                                  "random g32",  "random f32[", "random f32[-1]", "random f32[1] x",
	                                  "randomf32",   "",            "1 2",          "randm",
	                                  "random f32[1,1,1,1,1,1,1,1,1]"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		InputSpec s;
		if (input_spec_parse(&arena, "x", bad[i], NULL, &s, &problem_met))
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(problem_met.exit, EXIT_INPUT);
	}
	InputSpec s;
	assert_false(input_spec_parse(&arena, "x", "randm:3", NULL, &s, &problem_met));
	assert_non_null(strstr(problem_met.help, "'random'"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(values), ARENA_TEST(empty_shapes), ARENA_TEST(refusals), ARENA_TEST(specs), ARENA_TEST(bad_specs),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
