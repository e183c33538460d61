/* held_columns_test.c: columns that are folded and read again, held by the threads of a block or of a cluster (rows/columns.c):
 * rows that one block has and that several do, lines of columns and half lines, and what is left over of both. */
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
	unsigned cluster, columns; /* 0: in parts */
} Shape;

static const Shape shapes[] = {{DT_BF16, 70, 72, 0, 64},   {DT_BF16, 256, 40, 0, 64},  {DT_BF16, 257, 64, 4, 64}, {DT_F32, 600, 36, 4, 32},
                               {DT_F32, 40, 132, 0, 32},   {DT_BF16, 1100, 32, 8, 64}, {DT_F16, 2049, 32, 8, 32}, {DT_F32, 70, 35, 0, 0},
                               {DT_BF16, 4097, 16, 0, 0},  {DT_F64, 90, 18, 0, 32},    {DT_F32, 64, 12, 0, 0},    {DT_F32, 513, 20, 4, 32},
                               {DT_BF16, 200, 64, 0, 64}};
static const Shape *now;
static ExprId n, m;
static TensorId x;

static DType
wide(void)
{
	return now->in == DT_F64 ? DT_F64 : DT_F32;
}

static void
matrix(Case *c)
{
	c->cluster = 8;
	n = case_dim(c, "N", now->n);
	m = case_dim(c, "M", now->m);
	x = case_input(c, TENSOR_INPUT, "x", now->in, 2, (ExprId[]){n, m});
}

static ExprId
element(Case *c, unsigned row, unsigned column)
{
	return expr_cast(c->g, wide(), read_at(c, x, 2, ax(c, row), ax(c, column)));
}

/* Of a column, whose terms have the row as their axis 1. */
static TensorId
column_fold(Case *c, const char *name, Monoid monoid, ExprId term)
{
	Node f = case_node(1, term);
	case_reduce(&f, monoid, case_int(c, 0), n);
	return case_add(c, &f, name, wide(), &m);
}

static ExprId
of_column(Case *c, TensorId t, unsigned column)
{
	return read_at(c, t, 1, ax(c, column));
}

static void
result(Case *c, ExprId body)
{
	Node y = case_node(2, expr_cast(c->g, now->in, body));
	case_result(c, "y", case_add(c, &y, "y", now->in, (ExprId[]){n, m}), 0);
}

static void
softmax(Case *c)
{
	matrix(c);
	TensorId most = column_fold(c, "most", MON_MAX, element(c, 1, 0));
	TensorId sum = column_fold(c, "sum", MON_SUM, expr_unary(c->g, OP_EXP, BIN(SUB, element(c, 1, 0), of_column(c, most, 0))));
	result(c, BIN(FDIV, expr_unary(c->g, OP_EXP, BIN(SUB, element(c, 0, 1), of_column(c, most, 1))), of_column(c, sum, 1)));
}

/* Columns' mean and what they differ from it by, which are results as well, with a factor for each row and for each column. */
static void
norm(Case *c)
{
	matrix(c);
	TensorId rows = case_input(c, TENSOR_INPUT, "rows", wide(), 1, &n), columns = case_input(c, TENSOR_INPUT, "columns", wide(), 1, &m);
	ExprId count = expr_cast(c->g, wide(), n);
	TensorId sum = column_fold(c, "sum", MON_SUM, element(c, 1, 0));
	ExprId less = BIN(SUB, element(c, 1, 0), BIN(FDIV, of_column(c, sum, 0), count));
	TensorId squares = column_fold(c, "squares", MON_SUM, BIN(MUL, less, less));
	ExprId here = BIN(SUB, element(c, 0, 1), BIN(FDIV, of_column(c, sum, 1), count));
	here = BIN(FDIV, here, BIN(ADD, of_column(c, squares, 1), expr_float(c->g, wide(), 1)));
	result(c, BIN(ADD, BIN(MUL, here, of_column(c, columns, 1)), of_column(c, rows, 0)));
	case_result(c, "sum", sum, 0);
	Node scale = case_node(1, BIN(MUL, of_column(c, squares, 0), of_column(c, columns, 0)));
	case_result(c, "scale", case_add(c, &scale, "scale", wide(), &m), 0);
}

static void
expect(CaseFn *build)
{
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		now = &shapes[k];
		CaseRun r = case_try_blocks(build);
		assert_int_equal(r.columns, now->columns);
		if (now->columns)
			assert_int_equal(r.cluster, now->cluster);
	}
}

static void
test_softmax(void **state)
{
	(void)state;
	expect(softmax);
}

static void
test_norm(void **state)
{
	(void)state;
	expect(norm);
}

/* One fold alone, of matrices of which each has columns of its own. */
static void
batch(Case *c)
{
	ExprId b = case_dim(c, "B", 3);
	n = case_dim(c, "N", 90);
	m = case_dim(c, "M", 44);
	x = case_input(c, TENSOR_INPUT, "x", DT_F32, 3, (ExprId[]){b, n, m});
	Node f = case_node(2, expr_unary(c->g, OP_ABS, read_at(c, x, 3, ax(c, 0), ax(c, 2), ax(c, 1))));
	case_reduce(&f, MON_SUM, case_int(c, 0), n);
	TensorId sum = case_add(c, &f, "sum", DT_F32, (ExprId[]){b, m});
	ExprId all = BIN(ADD, read_at(c, sum, 2, ax(c, 0), ax(c, 2)), expr_float(c->g, DT_F32, 1));
	Node y = case_node(3, BIN(FDIV, read_at(c, x, 3, ax(c, 0), ax(c, 1), ax(c, 2)), all));
	case_result(c, "y", case_add(c, &y, "y", DT_F32, (ExprId[]){b, n, m}), 0);
}

static void
test_batch(void **state)
{
	(void)state;
	CaseRun r = case_try_blocks(batch);
	assert_int_equal(r.columns, 32);
}

/* What is read of another row, or written where it was read, is not held. */
static void
elsewhere(Case *c)
{
	now = &shapes[0];
	matrix(c);
	TensorId sum = column_fold(c, "sum", MON_SUM, element(c, 1, 0));
	ExprId up = BIN(MAX, BIN(SUB, ax(c, 0), case_int(c, 1)), case_int(c, 0));
	ExprId above = expr_cast(c->g, wide(), read_at(c, x, 2, up, ax(c, 1)));
	result(c, BIN(FDIV, above, BIN(ADD, expr_unary(c->g, OP_ABS, of_column(c, sum, 1)), expr_float(c->g, wide(), 1))));
}

static void
in_place(Case *c)
{
	n = case_dim(c, "N", 70);
	m = case_dim(c, "M", 72);
	x = case_input(c, TENSOR_INOUT, "x", DT_F32, 2, (ExprId[]){n, m});
	Node f = case_node(1, read_at(c, x, 2, ax(c, 1), ax(c, 0)));
	case_reduce(&f, MON_SUM, case_int(c, 0), n);
	TensorId sum = case_add(c, &f, "sum", DT_F32, &m);
	Node y = case_node(2, BIN(SUB, read_at(c, x, 2, ax(c, 0), ax(c, 1)), read_at(c, sum, 1, ax(c, 1))));
	case_result(c, "x", case_add(c, &y, "y", DT_F32, (ExprId[]){n, m}), x);
}

static void
test_elsewhere(void **state)
{
	(void)state;
	assert_int_equal(case_try_blocks(elsewhere).columns, 64);
	assert_int_equal(case_try_blocks(in_place).columns, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_softmax, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_norm, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_batch, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_elsewhere, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
