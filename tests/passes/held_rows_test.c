/* held_rows_test.c: rows that the blocks of a cluster hold, one after another where there are more than clusters (rows/ahead.c): as
 * many of them as fill rounds and not, of one tensor and of two, with axes before them, and the same bits however many a cluster has. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)

typedef struct {
	DType in;
	int64_t b, n, m;       /* matrices, their rows, of so many elements */
	int64_t processors;    /* of which 16 have clusters of blocks at work at once */
	unsigned cluster;
	int64_t tasks;         /* clusters that go through rows */
} Shape;

static const Shape *now;
static int64_t processors;
static ExprId b, n, m;
static TensorId x;

static void
tensors(Case *c)
{
	c->cluster = 8;
	c->processors = processors;
	b = case_dim(c, "B", now->b);
	n = case_dim(c, "N", now->n);
	m = case_dim(c, "M", now->m);
	x = case_input(c, TENSOR_INPUT, "x", now->in, 3, (ExprId[]){b, n, m});
}

static ExprId
element(Case *c, TensorId t)
{
	return expr_cast(c->g, DT_F32, read_at(c, t, 3, ax(c, 0), ax(c, 1), ax(c, 2)));
}

static TensorId
fold(Case *c, const char *name, Monoid monoid, ExprId term)
{
	Node f = case_node(2, term);
	case_reduce(&f, monoid, case_int(c, 0), m);
	return case_add(c, &f, name, DT_F32, (ExprId[]){b, n});
}

static ExprId
of_row(Case *c, TensorId t)
{
	return read_at(c, t, 2, ax(c, 0), ax(c, 1));
}

static TensorId
row(Case *c, const char *name, ExprId body, bool result)
{
	Node y = case_node(3, expr_cast(c->g, now->in, body));
	TensorId t = case_add(c, &y, name, now->in, (ExprId[]){b, n, m});
	if (result)
		case_result(c, name, t, 0);
	return t;
}

static void
softmax(Case *c)
{
	tensors(c);
	TensorId most = fold(c, "most", MON_MAX, element(c, x));
	TensorId sum = fold(c, "sum", MON_SUM, expr_unary(c->g, OP_EXP, BIN(SUB, element(c, x), of_row(c, most))));
	row(c, "y", BIN(FDIV, expr_unary(c->g, OP_EXP, BIN(SUB, element(c, x), of_row(c, most))), of_row(c, sum)), true);
}

/* Of a sum that is a result too, with a factor for each element of a row and a number for each row. */
static void
norm(Case *c)
{
	tensors(c);
	TensorId g = case_input(c, TENSOR_INPUT, "g", now->in, 1, &m);
	TensorId s = row(c, "s", BIN(MUL, element(c, x), expr_float(c->g, DT_F32, 0.5)), true);
	TensorId squares = fold(c, "squares", MON_SUM, BIN(MUL, element(c, s), element(c, s)));
	ExprId scale = BIN(ADD, of_row(c, squares), expr_float(c->g, DT_F32, 1));
	row(c, "y", BIN(MUL, BIN(FDIV, element(c, s), scale), expr_cast(c->g, DT_F32, read_at(c, g, 1, ax(c, 2)))), true);
}

/* Of rows alone nothing is stored but where their largest elements are. */
static void
largest(Case *c)
{
	tensors(c);
	case_result(c, "most", fold(c, "most", MON_MAX, expr_unary(c->g, OP_ABS, element(c, x))), 0);
}

static void
expect(CaseFn *build, const Shape *s, unsigned loads)
{
	now = s;
	processors = s->processors;
	CaseRun r = case_try_blocks(build);
	assert_int_equal(r.cluster, s->cluster);
	assert_int_equal(r.tasks, s->tasks);
	assert_int_equal(r.next, 2 * loads); /* before the loop, and in it */
	size_t bytes = (size_t)(s->b * s->n) * dtype_info[s->in].bits / 8; /* at least, of any result */
	processors = 1 << 16;
	CaseRun one = case_try_blocks(build);
	assert_int_equal(one.tasks, s->b * s->n);
	assert_memory_equal(one.first_result, r.first_result, bytes);
}

/* Of a cluster's thread in as many groups of 16 bytes as its share of a row has. */
static void
test_softmax(void **state)
{
	static const Shape shapes[] = {
		{DT_BF16, 1, 9, 65544, 1, 8, 5}, {DT_BF16, 1, 17, 66000, 16, 8, 7}, {DT_F32, 1, 5, 65540, 16, 8, 3},
		{DT_F16, 3, 2, 65544, 16, 8, 3},
	};
	(void)state;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
		expect(softmax, &shapes[k], shapes[k].in == DT_F32 ? 8 : 4);
}

static void
test_norm(void **state)
{
	static const Shape shapes[] = {{DT_BF16, 1, 13, 66000, 16, 8, 5}, {DT_BF16, 2, 4, 65544, 16, 8, 3}};
	(void)state;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
		expect(norm, &shapes[k], 4);
}

static void
test_largest(void **state)
{
	static const Shape shapes[] = {{DT_BF16, 3, 7, 66000, 16, 8, 7}, {DT_F32, 3, 7, 66000, 16, 8, 7}};
	(void)state;
	for (size_t k = 0; k < sizeof shapes / sizeof *shapes; k++)
		expect(largest, &shapes[k], shapes[k].in == DT_F32 ? 8 : 4);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_softmax, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_norm, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_largest, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
