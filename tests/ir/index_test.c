/* index_test.c: index_norm and index_affine keep values, are canonical, and are fast. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "int_value.h"

typedef struct {
	Unwind unwind;
	Arena arena;
	Graph *g;
} Fixture;

static int
setup(void **state)
{
	static Fixture f;
	f = (Fixture){0};
	arena_init(&f.arena, &host_default()->memory, &f.unwind);
	f.g = graph_new(&f.arena, names_new(&f.arena));
	*state = &f;
	return 0;
}

static int
teardown(void **state)
{
	arena_free(&((Fixture *)*state)->arena);
	return 0;
}

#define GUARD(f) \
	if (setjmp((f)->unwind.env)) \
	fail_msg("%s", (f)->unwind.text)

static ExprId
num(Graph *g, int64_t v)
{
	return expr_int(g, DT_I64, v);
}

#define ADD(a, b) expr_binary(g, OP_ADD, a, b)
#define SUB(a, b) expr_binary(g, OP_SUB, a, b)
#define MUL(a, b) expr_binary(g, OP_MUL, a, b)
#define DIV(a, b) expr_binary(g, OP_IDIV, a, b)
#define MOD(a, b) expr_binary(g, OP_IMOD, a, b)
#define same(a, b) assert_int_equal(index_norm(g, a), index_norm(g, b))
#define differ(a, b) assert_int_not_equal(index_norm(g, a), index_norm(g, b))

static void
equal_polynomials(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Graph *g = f->g;
	ExprId i = expr_axis(g, 0), j = expr_axis(g, 1), n = expr_dim(g, 1), m = expr_dim(g, 2);
	same(ADD(i, j), ADD(j, i));
	same(MUL(ADD(i, n), ADD(i, n)), ADD(ADD(MUL(i, i), MUL(num(g, 2), MUL(n, i))), MUL(n, n)));
	same(SUB(ADD(i, n), ADD(n, i)), num(g, 0));
	same(SUB(SUB(n, num(g, 1)), i), ADD(expr_unary(g, OP_NEG, i), SUB(n, num(g, 1))));
	same(expr_unary(g, OP_NEG, expr_unary(g, OP_NEG, i)), i);
	same(MUL(MUL(n, m), i), MUL(i, MUL(m, n)));
	same(ADD(i, ADD(i, i)), MUL(i, num(g, 3)));
	differ(ADD(i, j), SUB(i, j));
	differ(MUL(n, m), MUL(n, n));
	assert_int_equal(index_norm(g, ADD(i, num(g, 0))), i);
	assert_int_equal(index_norm(g, MUL(i, num(g, 1))), i);
}

static void
division(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Graph *g = f->g;
	ExprId i = expr_axis(g, 0), j = expr_axis(g, 1), n = expr_dim(g, 1);
	ExprId four_i = MUL(num(g, 4), i);
	same(DIV(ADD(four_i, num(g, 3)), num(g, 4)), i);
	same(DIV(SUB(four_i, num(g, 1)), num(g, 4)), SUB(i, num(g, 1)));
	same(MOD(ADD(four_i, num(g, 3)), num(g, 4)), num(g, 3));
	same(MOD(MOD(i, n), n), MOD(i, n));
	same(MOD(MOD(i, num(g, 8)), num(g, 4)), MOD(i, num(g, 4)));
	same(MOD(MOD(i, num(g, 4)), num(g, 8)), MOD(i, num(g, 4)));
	same(DIV(DIV(i, num(g, 4)), num(g, 8)), DIV(i, num(g, 32)));
	same(DIV(ADD(DIV(i, num(g, 4)), num(g, 3)), num(g, 8)), DIV(ADD(i, num(g, 12)), num(g, 32)));
	same(DIV(MOD(i, num(g, 4)), num(g, 4)), num(g, 0));
	same(DIV(ADD(MUL(num(g, 8), i), ADD(MUL(num(g, 2), j), num(g, 1))), num(g, 4)),
	     ADD(MUL(num(g, 2), i), DIV(j, num(g, 2))));
	same(DIV(i, num(g, 1)), i);
	same(MOD(i, num(g, 1)), num(g, 0));
	same(DIV(i, num(g, 0)), num(g, -1));
	same(MOD(i, num(g, 0)), i);
	same(DIV(num(g, -7), num(g, 2)), num(g, -4));
	same(MOD(num(g, 7), num(g, -2)), num(g, -1));
	differ(DIV(i, i), num(g, 1)); /* i may be 0 */
	differ(MUL(DIV(i, num(g, 4)), num(g, 4)), i);
	differ(DIV(DIV(i, n), n), DIV(i, MUL(n, n)));
}

static void
affine(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Graph *g = f->g;
	ExprId i = expr_axis(g, 0), j = expr_axis(g, 1), n = expr_dim(g, 1), rest;
	int64_t c[3];
	assert_true(index_affine(g, SUB(ADD(MUL(num(g, 3), i), n), ADD(j, num(g, 5))), 3, c, &rest));
	assert_int_equal(c[0], 3);
	assert_int_equal(c[1], -1);
	assert_int_equal(c[2], 0);
	assert_int_equal(rest, index_norm(g, SUB(n, num(g, 5))));
	assert_false(index_affine(g, MUL(i, n), 3, c, &rest));
	assert_false(index_affine(g, DIV(i, num(g, 2)), 3, c, &rest));
	assert_false(index_affine(g, j, 1, c, &rest));
	assert_true(index_affine(g, num(g, 7), 3, c, &rest));
	assert_int_equal(rest, num(g, 7));
}

static ExprId
random_expr(Graph *g, Random *r, unsigned depth)
{
	unsigned kind = depth == 0 ? random_below(r, 3) : random_below(r, 10);
	if (kind == 0)
		return expr_axis(g, random_below(r, 2));
	if (kind == 1)
		return expr_dim(g, 1 + random_below(r, 2));
	if (kind == 2)
		return num(g, (int64_t)random_below(r, 25) - 8);
	static const Op ops[] = {OP_ADD, OP_SUB, OP_MUL, OP_IDIV, OP_IMOD, OP_IDIV, OP_IMOD};
	ExprId a = random_expr(g, r, depth - 1);
	bool constant = kind >= 6 && random_below(r, 4);
	ExprId b = constant ? num(g, 1 + random_below(r, 12)) : random_expr(g, r, depth - 1);
	return expr_binary(g, ops[kind - 3], a, b);
}

static void
values_are_kept(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Graph *g = f->g;
	Random r = {20250101};
	int changed = 0;
	for (int k = 0; k < 30000; k++) {
		ExprId e = random_expr(g, &r, 5), to = index_norm(g, e);
		changed += to != e;
		assert_int_equal(index_norm(g, to), to);
		for (int t = 0; t < 6; t++) {
			IntEnv env = {0};
			for (int v = 0; v < INT_VARS; v++) {
				env.axis[v] = (int64_t)random_below(&r, 40) - 20;
				env.dim[v] = (int64_t)random_below(&r, 20) - 3;
			}
			int64_t want = int_value(g, &env, e), got = int_value(g, &env, to);
			if (!env.overflow)
				assert_int_equal(got, want);
		}
	}
	assert_true(changed > 10000);
}

static void
large_sums(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Graph *g = f->g;
	ExprId sum = expr_axis(g, 0), twice = expr_axis(g, 1), product = expr_dim(g, 1);
	for (int k = 0; k < 100000; k++)
		sum = ADD(sum, expr_ivar(g, (uint32_t)k % 1000));
	for (int k = 0; k < 60; k++)
		twice = ADD(twice, twice);
	for (int k = 0; k < 40; k++)
		product = MUL(product, expr_dim(g, 2));
	assert_int_not_equal(index_norm(g, sum), 0);
	same(twice, MUL(num(g, 1ll << 60), expr_axis(g, 1)));
	assert_int_not_equal(index_norm(g, product), 0);
	same(SUB(sum, sum), SUB(product, product));
	same(SUB(sum, sum), num(g, 0));
}

static double
seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The bound is loose, as machines differ; what it must catch is work that grows with the pool. */
static void
ten_thousand(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Graph *g = f->g;
	double start = seconds();
	for (uint32_t k = 0; k < 10000; k++) {
		ExprId i = expr_ivar(g, 3 * k), j = expr_ivar(g, 3 * k + 1);
		for (int t = 0; t < 4; t++) {
			index_norm(g, i);
			index_norm(g, j);
		}
		index_norm(g, ADD(MUL(i, num(g, 4)), num(g, 3)));
	}
	double took = seconds() - start;
	printf("10,000 definitions: %.1f ms\n", 1e3 * took);
	assert_true(took < 0.5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(equal_polynomials, setup, teardown),
		cmocka_unit_test_setup_teardown(division, setup, teardown),
		cmocka_unit_test_setup_teardown(affine, setup, teardown),
		cmocka_unit_test_setup_teardown(values_are_kept, setup, teardown),
		cmocka_unit_test_setup_teardown(large_sums, setup, teardown),
		cmocka_unit_test_setup_teardown(ten_thousand, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
