/* across_test.c: folds along columns in the kernel of the rows' own folds (rows/across.c), which blocks of threads run:
 * rows that one vector holds and rows that it does not, one part and several, of which the last may be short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef struct {
	DType in;
	int64_t n, m;
} Shape;

/* rows of 70 and 3 elements are gone through by vectors, as no group of lanes divides them; a block does not hold one of 4104 */
static const Shape shapes[] = {{DT_F32, 600, 72}, {DT_F32, 150, 70}, {DT_BF16, 150, 264}, {DT_F16, 70, 8}, {DT_F32, 33, 4},
                               {DT_BF16, 5, 40}, {DT_F32, 1, 3}, {DT_F64, 97, 12}, {DT_BF16, 40, 4104}};
static const Shape *now;
static ExprId n, m;
static TensorId x, y;

static void
matrices(Case *c)
{
	c->cluster = 8;
	c->processors = 16;
	n = case_dim(c, "N", now->n);
	m = case_dim(c, "M", now->m);
	x = case_input(c, TENSOR_INPUT, "x", now->in, 2, (ExprId[]){n, m});
	y = case_input(c, TENSOR_INPUT, "y", now->in, 2, (ExprId[]){n, m});
}

static DType
wide(void)
{
	return now->in == DT_F64 ? DT_F64 : DT_F32;
}

static ExprId
element(Case *c, TensorId t, unsigned row, unsigned column)
{
	return expr_cast(c->g, wide(), read_at(c, t, 2, ax(c, row), ax(c, column)));
}

static void
column_fold(Case *c, const char *name, Monoid monoid, ExprId body)
{
	Node f = case_node(1, body);
	case_reduce(&f, monoid, case_int(c, 0), n);
	case_result(c, name, case_add(c, &f, name, wide(), &m), 0);
}

/* A row's fold, which its elements read. */
static TensorId
row_sum(Case *c)
{
	Node s = case_node(1, BIN(MUL, element(c, x, 0, 1), element(c, y, 0, 1)));
	case_reduce(&s, MON_SUM, case_int(c, 0), m);
	return case_add(c, &s, "s", wide(), &n);
}

/* Columns of what was read, of what a row's fold gave, and of what is stored. */
static void
backward(Case *c)
{
	matrices(c);
	TensorId s = row_sum(c);
	ExprId less = BIN(SUB, element(c, x, 0, 1), BIN(MUL, element(c, y, 0, 1), read_at(c, s, 1, ax(c, 0))));
	Node z = case_node(2, expr_cast(c->g, now->in, less));
	TensorId stored = case_add(c, &z, "z", now->in, (ExprId[]){n, m});
	case_result(c, "z", stored, 0);
	column_fold(c, "q", MON_SUM, BIN(MUL, element(c, x, 1, 0), element(c, y, 1, 0)));
	column_fold(c, "r", MON_MAX, element(c, y, 1, 0));
	column_fold(c, "t", MON_SUM, BIN(MUL, element(c, x, 1, 0), read_at(c, s, 1, ax(c, 1))));
	column_fold(c, "u", MON_MIN, element(c, stored, 1, 0));
}

/* The inout is written where its columns were read. */
static void
in_place(Case *c)
{
	n = case_dim(c, "N", now->n);
	m = case_dim(c, "M", now->m);
	x = case_input(c, TENSOR_INOUT, "x", now->in, 2, (ExprId[]){n, m});
	y = x;
	TensorId s = row_sum(c);
	column_fold(c, "q", MON_SUM, element(c, x, 1, 0));
	Node z = case_node(2, expr_cast(c->g, now->in, BIN(MUL, element(c, x, 0, 1), read_at(c, s, 1, ax(c, 0)))));
	case_result(c, "x", case_add(c, &z, "z", now->in, (ExprId[]){n, m}), x);
}

static void
columns_with_rows(void **state)
{
	(void)state;
	for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		now = &shapes[k];
		CaseRun run = case_try_blocks(backward);
		assert_int_equal(run.members, 6);
		assert_true(run.tmpl == TMPL_ROWRED);
		assert_int_equal(run.cluster, now->m > 4096 ? 4 : 0);
		case_try_blocks(in_place);
	}
}

/* Columns of other rows than their own are another kernel's. */
static void
shifted(Case *c)
{
	matrices(c);
	TensorId s = row_sum(c);
	case_result(c, "s", s, 0);
	ExprId next = BIN(MIN, BIN(ADD, ax(c, 1), case_int(c, 1)), BIN(SUB, n, case_int(c, 1)));
	column_fold(c, "q", MON_SUM, BIN(MUL, element(c, x, 1, 0), read_at(c, s, 1, next)));
}

static void
other_rows(void **state)
{
	(void)state;
	now = &shapes[0];
	CaseRun run = case_try_blocks(shifted);
	assert_int_equal(run.members, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(columns_with_rows, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(other_rows, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
