/* long_sums_test.c: powers that are terms of long sums (point/long_sums.c) leave these within the oracle's bounds: rows that a
 * block holds and rows that it does not, in kernels of blocks that take long rows alone and in those that take any. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

/* as many elements as a kernel of long rows takes at least; held; none that fill groups of lanes; not held */
static const int64_t lengths[] = {2048, 4104, 8192, 9001, 16400};
static int64_t length;
static ExprId n, m;
static TensorId x, y;

static ExprId
element(Case *c, TensorId t)
{
	return read_at(c, t, 2, ax(c, 0), ax(c, 1));
}

/* The power of what is down to -104 and beyond. */
static ExprId
power(Case *c, ExprId of)
{
	return expr_unary(c->g, OP_EXP, BIN(MUL, BIN(SUB, of, expr_float(c->g, DT_F32, 2)), expr_float(c->g, DT_F32, 27)));
}

static void
row_sum(Case *c, const char *name, ExprId term)
{
	Node s = case_node(1, term);
	case_reduce(&s, MON_SUM, case_int(c, 0), m);
	case_result(c, name, case_add(c, &s, name, DT_F32, &n), 0);
}

static void
sums(Case *c)
{
	n = case_dim(c, "N", 2);
	m = case_dim(c, "M", length);
	x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){n, m});
	y = case_input(c, TENSOR_INPUT, "y", DT_F32, 2, (ExprId[]){n, m});
	ExprId one = power(c, element(c, x)), other = power(c, element(c, y));
	row_sum(c, "s", one);
	row_sum(c, "t", BIN(MUL, expr_unary(c->g, OP_NEG, BIN(MUL, element(c, y), one)), other));
	row_sum(c, "u", BIN(FDIV, BIN(MUL, other, element(c, y)), BIN(ADD, BIN(MUL, element(c, x), element(c, x)), expr_float(c->g, DT_F32, 0.5))));
	row_sum(c, "v", expr_select(c->g, BIN(LT, element(c, x), element(c, y)), one, element(c, x)));
}

static void
within_bounds(void **state)
{
	(void)state;
	for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
		length = lengths[k];
		CaseRun run = case_try_blocks(sums);
		assert_int_equal(run.members, 4);
		assert_true(run.tmpl == TMPL_ROWRED);
		assert_true(run.ratio <= 1);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(within_bounds, case_setup, case_teardown)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
