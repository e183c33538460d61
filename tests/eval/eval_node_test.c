/* Nodes: reductions and their ranges, laziness, faults, cuts, domains, scatter, recurrences. */
#include "bench.h"

#include <math.h>

static void
matmul_is_exact_on_integers(void **state)
{
	(void)state;
	Bench b;
	static const float x[6] = {1, 2, 3, 4, 5, 6}, w[6] = {1, -1, 2, 0, 3, 7};
	static const double want[4] = {14, 20, 32, 38};
	bench_open(&b, FP_RELAXED);
	TensorId a = bench_input(&b, DT_F32, x, 2, 2, 3), c = bench_input(&b, DT_F32, w, 2, 3, 2);
	Node n = {.npar = 2, .monoid = MON_SUM};
	ExprId i = expr_axis(b.g, 0), j = expr_axis(b.g, 1), k = bench_reduced(&b, &n, 3);
	n.body = expr_binary(b.g, OP_MUL, bench_read(&b, a, 2, i, k, 0), bench_read(&b, c, 2, k, j, 0));
	bench_result(&b, bench_node(&b, n, DT_F32, 2, 2));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	for (int e = 0; e < 4; e++) {
		assert_true(bench_at(&b, 0, e)->re == want[e]);
		assert_true(bench_at(&b, 0, e)->err == 0);
	}
	bench_close(&b);
}

/* x[i] < 0 ? 1/x… : table[ids[i]]: only the arm taken may fault. */
static void
select_reads_only_the_arm_taken(void **state)
{
	(void)state;
	Bench b;
	static const float x[3] = {-1, 1, 1}, table[2] = {10, 20};
	static const int32_t ids[3] = {99, 1, 5};
	bench_open(&b, FP_RELAXED);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 3, 0), tt = bench_input(&b, DT_F32, table, 1, 2, 0);
	TensorId ti = bench_input(&b, DT_I32, ids, 1, 3, 0);
	AccessId gather = bench_access(&b, ACCESS_GATHER, "table[ids[i]]");
	Node n = {.npar = 1};
	ExprId i = expr_axis(b.g, 0), at = expr_cast(b.g, DT_I64, bench_read(&b, ti, 1, i, 0, 0));
	ExprId cond = expr_binary(b.g, OP_LT, bench_read(&b, tx, 1, i, 0, 0), bench_f32(&b, 0));
	n.body = expr_select(b.g, cond, bench_f32(&b, 7), bench_read(&b, tt, 1, at, 0, gather));
	bench_result(&b, bench_node(&b, n, DT_F32, 3, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_true(bench_at(&b, 0, 0)->re == 7 && bench_at(&b, 0, 0)->fault == 0);
	assert_true(bench_at(&b, 0, 1)->re == 20 && bench_at(&b, 0, 1)->fault == 0);
	assert_true(bench_at(&b, 0, 2)->re == 0);
	assert_int_equal(bench_at(&b, 0, 2)->fault, gather);
	assert_int_equal(b.out.fault, gather);
	bench_close(&b);
}

/* h[t] = a[t] * h[t-1] + 1, forwards and backwards. */
static void
recurrences_step_in_their_direction(void **state)
{
	(void)state;
	static const float a[4] = {2, 3, 4, 5};
	static const double want[2][4] = {{1, 4, 17, 86}, {33, 16, 5, 1}};
	for (int back = 0; back < 2; back++) {
		Bench b;
		bench_open(&b, FP_RELAXED);
		TensorId ta = bench_input(&b, DT_F32, a, 1, 4, 0), self = b.g->tensor.n;
		Recur rec = {.nseq = 1, .dir = {back ? -1 : 1}};
		vec_push(&b.arena, &rec.member, self);
		vec_push(&b.arena, &b.g->recur, rec);
		Node n = {.npar = 1, .recur = 1};
		ExprId t = expr_axis(b.g, 0), one = bench_i64(&b, 1);
		ExprId before = expr_binary(b.g, back ? OP_ADD : OP_SUB, t, one);
		ExprId extent[1] = {bench_i64(&b, 4)};
		ExprId first = expr_binary(b.g, OP_EQ, t, bench_i64(&b, back ? 3 : 0));
		ExprId slot = tensor_new(b.g, TENSOR_NODE, 0, (Span){0}, DT_F32, 1, extent); /* to read from */
		assert_int_equal(slot, self);
		ExprId h = bench_read(&b, self, 1, before, 0, 0);
		n.body = expr_select(b.g, first, bench_f32(&b, 1),
			expr_binary(b.g, OP_ADD, expr_binary(b.g, OP_MUL, bench_read(&b, ta, 1, t, 0, 0), h),
			            bench_f32(&b, 1)));
		n.out = self;
		vec_push(&b.arena, &b.g->node, n);
		b.g->tensor.at[self].node = 0;
		bench_result(&b, self);
		assert_int_equal(bench_eval(&b), EVAL_OK);
		for (int k = 0; k < 4; k++)
			assert_true(bench_at(&b, 0, k)->re == want[back][k]);
		bench_close(&b);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matmul_is_exact_on_integers),
		cmocka_unit_test(select_reads_only_the_arm_taken),
		cmocka_unit_test(recurrences_step_in_their_direction),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
