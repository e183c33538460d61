/* test_blocks_test.c: finding and reading the test blocks of a file. */
#include "driver/test_blocks.h"
#include "tests/driver/arena_fixture.h"

#include <string.h>

static void
find(const char *text, TestBlocks *out)
{
	test_blocks_find(&arena, text, strlen(text), "/base", out);
}

static void
whole_block(void **state)
{
	(void)state;
	TestBlocks b;
	find("graph g(x: f32[N]) -> (y: f32[N]) {\n"
	     "  y[i] = x[i]\n"
	     "}\n"
	     "# test: first one  \n"
	     "#   x = [[1, 2],\n"
	     "#        [3, 4]]\n"
	     "#\n"
	     "#   w = random:1 f32[4, 8]\n"
	     "#   expect y = @y.npy\n"
	     "#   compare interp\n"
	     "#   kernels <= 1\n"
	     "#   graph g\n"
	     "#   fp strict\n"
	     "# an ordinary comment\n"
	     "#   z = 3\n"
	     "# test: second\n"
	     "#   error e0100 at 3:8\n",
	     &b);
	assert_int_equal(b.n, 2);
	assert_string_equal(b.at[0].name, "first one");
	assert_int_equal(b.at[0].line, 4);
	assert_null(b.at[0].broken);
	assert_int_equal(b.at[0].input.n, 2);
	assert_int_equal(b.at[0].input.at[0].literal.item.n, 4);
	assert_string_equal(b.at[0].expect.at[0].path, "/base/y.npy");
	assert_string_equal(b.at[0].graph, "g");
	assert_true(b.at[0].has_fp && b.at[0].fp == FP_STRICT);
	assert_true(test_kernels_hold(&b.at[0], 1) && !test_kernels_hold(&b.at[0], 2));
	assert_int_equal(b.at[1].error, DIAG_E0100);
	assert_int_equal(b.at[1].error_line, 3);
	assert_int_equal(b.at[1].error_col, 8);
	assert_true(test_kernels_hold(&b.at[1], 99));
}

static void
relations(void **state)
{
	(void)state;
	static const struct {
		const char *line;
		bool at2, at3, at4;
	} rows[] = {
		{"kernels <= 3", true, true, false}, {"kernels < 3", true, false, false}, {"kernels == 3", false, true, false},
		{"kernels >= 3", false, true, true}, {"kernels > 3", false, false, true},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		TestBlocks b;
		find(arena_text(&arena, "# test: k\n#   %s\n", rows[i].line), &b);
		assert_null(b.at[0].broken);
		assert_int_equal(test_kernels_hold(&b.at[0], 2), rows[i].at2);
		assert_int_equal(test_kernels_hold(&b.at[0], 3), rows[i].at3);
		assert_int_equal(test_kernels_hold(&b.at[0], 4), rows[i].at4);
	}
}

static void
broken_blocks(void **state)
{
	(void)state;
	static const char *const bad[] = {"expct y = 1", "expect y", "expect y = random", "compare cpu", "error E9999",
	                                  "error E0100 at 3", "error E0100 at 3:8 x", "kernels 3", "kernels <= x",
	                                  "fp loose", "x = [1, 2", "x = what"};
	for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
		TestBlocks b;
		find(arena_text(&arena, "\n# test: k\n#   %s\n# text\n", bad[i]), &b);
		assert_int_equal(b.n, 1);
		if (!b.at[0].broken)
			fail_msg("'%s' was taken", bad[i]);
		assert_int_equal(b.at[0].broken_line, 3);
	}
}

static void
ends(void **state)
{
	(void)state;
	TestBlocks b;
	find("# test: a\n# test: b\nx\n#   M = 4\n  # test: c\n  #   M = 4", &b);
	assert_int_equal(b.n, 3);
	assert_int_equal(b.at[0].input.n, 0);
	assert_int_equal(b.at[1].input.n, 0);
	assert_int_equal(b.at[2].input.n, 1);
	find("", &b);
	assert_int_equal(b.n, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(whole_block), ARENA_TEST(relations), ARENA_TEST(broken_blocks), ARENA_TEST(ends),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
