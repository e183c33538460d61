/* extremes_test.c: max and min of rows of zeros of both signs, NaNs of both signs, infinities and numbers about them, by vectors
 * that fold their bits and by such that fold their numbers (reduction/rank.c). A quotient tells a zero's sign. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/passes/graph_case.h"

enum { ROWS = 400, COLUMNS = 53, SPECIAL = 12, MOST = 3 };

static DType type;
static float narrow[ROWS * COLUMNS];
static double wide[ROWS * COLUMNS];

/* Each row has one of the special values in most of its places, and up to three others somewhere. */
static void
fill(void)
{
	static const double value[SPECIAL] = {0.0, -0.0, 1, -1, (double)INFINITY, -(double)INFINITY, (double)NAN, -(double)NAN,
	                                      0x1p-140, -0x1p-140, 3e38, -3e38};
	uint64_t seed = 1;
	for (unsigned i = 0; i < ROWS; i++) {
		double row[COLUMNS];
		for (unsigned j = 0; j < COLUMNS; j++)
			row[j] = value[i % SPECIAL];
		for (unsigned n = 0; n < i / SPECIAL % (MOST + 1); n++) {
			seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
			row[(seed >> 33) % COLUMNS] = value[(seed >> 50) % SPECIAL];
		}
		for (unsigned j = 0; j < COLUMNS; j++)
			narrow[i * COLUMNS + j] = (float)(wide[i * COLUMNS + j] = row[j]);
	}
}

static void
build(Case *c)
{
	ExprId e[2] = {case_dim(c, "N", ROWS), case_dim(c, "M", COLUMNS)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", type, 2, e);
	case_given(c, x, type == DT_F32 ? (const void *)narrow : wide);
	for (unsigned k = 0; k < 2; k++) {
		Node n = case_node(1, read_at(c, x, 2, ax(c, 0), ax(c, 1)));
		case_reduce(&n, k ? MON_MIN : MON_MAX, case_int(c, 0), e[1]);
		TensorId t = case_add(c, &n, k ? "least" : "greatest", type, e);
		ExprId v = read_at(c, t, 1, ax(c, 0)), nan = expr_unary(c->g, OP_ISNAN, v);
		ExprId seen = expr_select(c->g, nan, expr_float(c->g, type, 7), v); /* a NaN's bits are nobody's */
		Node number = case_node(1, seen), by = case_node(1, expr_binary(c->g, OP_FDIV, expr_float(c->g, type, 1), seen));
		case_result(c, k ? "low" : "high", case_add(c, &number, k ? "low" : "high", type, e), 0);
		case_result(c, k ? "by_low" : "by_high", case_add(c, &by, k ? "by_low" : "by_high", type, e), 0);
	}
}

static void
test_rows(void **state)
{
	static const DType types[2] = {DT_F32, DT_F64};
	(void)state;
	fill();
	for (unsigned k = 0; k < 2; k++) {
		type = types[k];
		assert_int_equal(case_try(build).mismatches, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_rows, case_setup, case_teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
