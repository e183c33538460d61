/* cascade_parts_test.c: usage: cascade_parts_test [[-]PATTERN]: the tests of such names, or all others. Folds of columns that read one another, whose parts blocks of threads fold at the same time
 * (fuse/split_cascade.c), against the oracle on the graph as it was: one part and several, of which the last may be
 * short, none, and columns that fill a vector and that don't. */
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

static const Shape shapes[] = {{DT_F32, 150, 70}, {DT_BF16, 64, 128}, {DT_F32, 33, 4}, {DT_F16, 5, 37}, {DT_F32, 1, 1},
                               {DT_BF16, 4200, 3}, {DT_F64, 97, 10}};
static const Shape *now;
static ExprId n, m;
static TensorId x;

static void
matrix(Case *c)
{
	n = case_dim(c, "N", now->n);
	m = case_dim(c, "M", now->m);
	x = case_input(c, TENSOR_INPUT, "x", now->in, 2, (ExprId[]){n, m});
}

static DType
wide(void)
{
	return now->in == DT_F64 ? DT_F64 : DT_F32;
}

static ExprId
element(Case *c, unsigned row, unsigned column)
{
	return expr_cast(c->g, wide(), read_at(c, x, 2, ax(c, row), ax(c, column)));
}

/* A fold of each column. */
static TensorId
fold(Case *c, const char *name, Monoid monoid, ExprId body)
{
	Node f = case_node(1, body);
	case_reduce(&f, monoid, case_int(c, 0), n);
	return case_add(c, &f, name, wide(), &m);
}

static ExprId
less(Case *c, TensorId t, unsigned row, unsigned column)
{
	return BIN(SUB, element(c, row, column), read_at(c, t, 1, ax(c, column)));
}

/* The maximum, the sum at it, and each element's part of it. */
static void
softmax(Case *c)
{
	matrix(c);
	TensorId most = fold(c, "most", MON_MAX, element(c, 1, 0));
	TensorId sum = fold(c, "sum", MON_SUM, expr_unary(c->g, OP_EXP, less(c, most, 1, 0)));
	Node y = case_node(2, BIN(FDIV, expr_unary(c->g, OP_EXP, less(c, most, 0, 1)), read_at(c, sum, 1, ax(c, 1))));
	case_result(c, "sum", sum, 0);
	case_result(c, "y", case_add(c, &y, "y", wide(), (ExprId[]){n, m}), 0);
}

/* A sum that reads two folds before it. */
static void
entropy(Case *c)
{
	matrix(c);
	TensorId most = fold(c, "most", MON_MAX, element(c, 1, 0));
	TensorId sum = fold(c, "sum", MON_SUM, expr_unary(c->g, OP_EXP, less(c, most, 1, 0)));
	ExprId share = BIN(FDIV, expr_unary(c->g, OP_EXP, less(c, most, 1, 0)), read_at(c, sum, 1, ax(c, 0)));
	case_result(c, "e", fold(c, "e", MON_SUM, BIN(MUL, share, less(c, most, 1, 0))), 0);
}

/* Squares less a mean. */
static void
variance(Case *c)
{
	matrix(c);
	TensorId sum = fold(c, "sum", MON_SUM, element(c, 1, 0));
	Node mean = case_node(1, BIN(FDIV, read_at(c, sum, 1, ax(c, 0)), expr_cast(c->g, wide(), n)));
	TensorId middle = case_add(c, &mean, "mean", wide(), &m);
	ExprId far = less(c, middle, 1, 0);
	case_result(c, "v", fold(c, "v", MON_SUM, BIN(MUL, far, far)), 0);
}

/* A whole row's softmax times elements of bf16: no contraction, so its weights are not rounded, in parts neither. */
static void
weighed(Case *c)
{
	TensorId of[2];
	n = case_dim(c, "N", now->n);
	TensorId scores = case_input(c, TENSOR_INPUT, "b", DT_F32, 1, &n), v = case_input(c, TENSOR_INPUT, "v", DT_BF16, 1, &n);
	ExprId score = read_at(c, scores, 1, ax(c, 0));
	Node most = case_node(0, score);
	case_reduce(&most, MON_MAX, case_int(c, 0), n);
	of[0] = case_add(c, &most, "most", DT_F32, NULL);
	ExprId weight = expr_unary(c->g, OP_EXP, BIN(SUB, score, read_at(c, of[0], 0)));
	Node sum = case_node(0, weight);
	case_reduce(&sum, MON_SUM, case_int(c, 0), n);
	of[1] = case_add(c, &sum, "sum", DT_F32, NULL);
	Node y = case_node(0, BIN(MUL, BIN(FDIV, weight, read_at(c, of[1], 0)), expr_cast(c->g, DT_F32, read_at(c, v, 1, ax(c, 0)))));
	case_reduce(&y, MON_SUM, case_int(c, 0), n);
	case_result(c, "y", case_add(c, &y, "y", DT_F32, NULL), 0);
	c->part_terms = 3;
}

static void
try_all(CaseFn *build, unsigned members)
{
	for (unsigned k = 0; k < sizeof shapes / sizeof *shapes; k++) {
		now = &shapes[k];
		CaseRun run = case_try_blocks(build);
		assert_int_equal(run.tmpl, TMPL_COLRED);
		assert_int_equal(run.members, members);
	}
}

static void
test_softmax(void **state)
{
	(void)state;
	try_all(softmax, 3); /* what holds the columns comes first */
}

static void
test_entropy(void **state)
{
	(void)state;
	try_all(entropy, 3);
}

static void
test_variance(void **state)
{
	(void)state;
	try_all(variance, 3);
}

static void
test_weighed(void **state)
{
	(void)state;
	now = &(Shape){DT_F32, 33, 1};
	case_try_blocks(weighed);
	case_try(weighed);
}

int
main(int argc, char **argv)
{
	case_choose(argc, argv);
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_softmax, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_entropy, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_variance, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_weighed, case_setup, case_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
