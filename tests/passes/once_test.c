/* once_test.c: folds of a row that wait for one another, gone through together by blocks of threads (rows/once.c). */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

enum { ROWS = 3, MOST = 1031 };

/* less than a block's lanes; some vectors of them; whole groups of lanes, and others */
static const int64_t lengths[] = {1, 7, 64, 256, 515, 1024, MOST};
static int64_t length;
static bool endless;   /* most of the elements are -inf */
static float data[ROWS * MOST];
static ExprId n, m;

static TensorId
row_fold(Case *c, const char *name, Monoid monoid, ExprId term)
{
	Node s = case_node(1, term);
	case_reduce(&s, monoid, case_int(c, 0), m);
	return case_add(c, &s, name, DT_F32, &n);
}

static TensorId
begin(Case *c)
{
	c->part_terms = 1;
	n = case_dim(c, "N", ROWS);
	m = case_dim(c, "M", length);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, (ExprId[]){n, m});
	for (int64_t k = 0; k < ROWS * length; k++)
		data[k] = endless && k % length != length / 2 ? -INFINITY : (float)((double)(k * 7919 % 1000) / 10 - 60);
	case_given(c, x, data);
	return x;
}

static ExprId
element(Case *c, TensorId t)
{
	return read_at(c, t, 2, ax(c, 0), ax(c, 1));
}

static ExprId
of_row(Case *c, TensorId t)
{
	return read_at(c, t, 1, ax(c, 0));
}

/* The logarithm of a sum of powers, and the mean of what they weigh. */
static void
weighed(Case *c)
{
	TensorId x = begin(c), y = case_input(c, TENSOR_INPUT, "y", DT_F32, 2, (ExprId[]){n, m});
	TensorId top = row_fold(c, "top", MON_MAX, element(c, x));
	ExprId power = expr_unary(c->g, OP_EXP, BIN(SUB, element(c, x), of_row(c, top)));
	TensorId sum = row_fold(c, "sum", MON_SUM, power), weighed = row_fold(c, "weighed", MON_SUM, BIN(MUL, power, element(c, y)));
	Node log = case_node(1, BIN(ADD, of_row(c, top), expr_unary(c->g, OP_LOG, of_row(c, sum))));
	Node mean = case_node(1, BIN(FDIV, of_row(c, weighed), of_row(c, sum)));
	case_result(c, "log", case_add(c, &log, "log", DT_F32, &n), 0);
	case_result(c, "mean", case_add(c, &mean, "mean", DT_F32, &n), 0);
}

/* From the least element on; the least is a result of its own. */
static void
falling(Case *c)
{
	TensorId x = begin(c), low = row_fold(c, "low", MON_MIN, element(c, x));
	ExprId power = expr_unary(c->g, OP_EXP, BIN(MUL, BIN(SUB, of_row(c, low), element(c, x)), expr_float(c->g, DT_F32, 0.25)));
	case_result(c, "low", low, 0);
	case_result(c, "sum", row_fold(c, "sum", MON_SUM, power), 0);
}

/* What is added to each element is a number and the row's: it is in the terms once, and no factor of the sum. */
static void
shifted(Case *c)
{
	TensorId x = begin(c);
	ExprId row = expr_cast(c->g, DT_F32, ax(c, 0)), moved = BIN(ADD, BIN(ADD, element(c, x), expr_float(c->g, DT_F32, 0.75)), row);
	TensorId top = row_fold(c, "top", MON_MAX, moved);
	ExprId power = expr_unary(c->g, OP_EXP, BIN(SUB, moved, of_row(c, top)));
	case_result(c, "top", top, 0);
	case_result(c, "sum", row_fold(c, "sum", MON_SUM, power), 0);
}

/* The deviation from the mean, whose state counts: it is folded phase by phase. */
static void
counted(Case *c)
{
	TensorId x = begin(c), sum = row_fold(c, "sum", MON_SUM, element(c, x));
	ExprId mean = BIN(FDIV, of_row(c, sum), expr_cast(c->g, DT_F32, m)), off = BIN(SUB, element(c, x), mean);
	case_result(c, "spread", row_fold(c, "spread", MON_SUM, BIN(MUL, off, off)), 0);
}

static void
try_all(CaseFn *graph, bool once)
{
	for (unsigned k = 0; k < sizeof lengths / sizeof *lengths; k++) {
		length = lengths[k];
		CaseRun run = case_try_blocks(graph);
		assert_int_equal(run.once, once);
		assert_true(run.ratio <= 1);
	}
}

static void
go_by_once(void **state)
{
	(void)state;
	endless = false;
	try_all(weighed, true);
	try_all(falling, true);
	try_all(shifted, true);
}

static void
rows_of_nothing(void **state)
{
	(void)state;
	endless = true;
	try_all(weighed, true);
	endless = false;
}

static void
phase_by_phase(void **state)
{
	(void)state;
	try_all(counted, false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(go_by_once, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(rows_of_nothing, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(phase_by_phase, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
