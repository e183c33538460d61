/* Recurrences: directions, steps that are absent, members of a step, several axes, and the errors of steps that are joined. */
#include "bench.h"

#include <math.h>

/* A tensor to be read before its node is known: a member of recurrence 1. */
static TensorId
declare(Bench *b, DType t, unsigned rank, int64_t n0, int64_t n1)
{
	ExprId extent[2] = {bench_i64(b, n0), bench_i64(b, n1)};
	return tensor_new(b->g, TENSOR_NODE, 0, (Span){0}, t, rank, extent);
}

static void
define(Bench *b, TensorId t, Node n)
{
	n.out = t;
	n.recur = 1;
	vec_push(&b->arena, &b->g->node, n);
	b->g->tensor.at[t].node = b->g->node.n - 1;
}

static ExprId
shifted(Bench *b, ExprId t, int by)
{
	return bench_add(b, t, bench_i64(b, by));
}

/* h[t] = t is first ? 1 : a[t] * h[before] + 1, forwards and backwards. */
static void
recurrences_step_in_their_direction(void **state)
{
	(void)state;
	static const float a[4] = {2, 3, 4, 5};
	static const double want[2][4] = {{1, 4, 17, 86}, {33, 16, 5, 1}};
	for (int back = 0; back < 2; back++) {
		Bench b;
		bench_open(&b, FP_RELAXED);
		TensorId ta = bench_input(&b, DT_F32, a, 1, 4, 0), self = declare(&b, DT_F32, 1, 4, 0);
		Recur rec = {.nseq = 1, .dir = {back ? -1 : 1}};
		vec_push(&b.arena, &rec.member, self);
		vec_push(&b.arena, &b.g->recur, rec);
		ExprId t = expr_axis(b.g, 0), h = bench_read(&b, self, 1, shifted(&b, t, back ? 1 : -1), 0, 0);
		ExprId first = expr_binary(b.g, OP_EQ, t, bench_i64(&b, back ? 3 : 0));
		Node n = {.npar = 1};
		n.body = expr_select(b.g, first, bench_f32(&b, 1),
		                     bench_add(&b, bench_mul(&b, bench_read(&b, ta, 1, t, 0, 0), h), bench_f32(&b, 1)));
		define(&b, self, n);
		bench_result(&b, self);
		bench_expect_exact(&b, want[back], 4);
		bench_close(&b);
	}
}

/* h[t] = h[t+1] against the direction: that element is not there yet. */
static void
later_steps_are_absent(void **state)
{
	(void)state;
	Bench b;
	bench_open(&b, FP_RELAXED);
	TensorId self = declare(&b, DT_I64, 1, 3, 0);
	Recur rec = {.nseq = 1, .dir = {1}};
	vec_push(&b.arena, &rec.member, self);
	vec_push(&b.arena, &b.g->recur, rec);
	ExprId t = expr_axis(b.g, 0), two = bench_i64(&b, 2);
	Node n = {.npar = 1};
	n.body = expr_select(b.g, expr_binary(b.g, OP_LT, t, two),
	                     bench_read(&b, self, 1, shifted(&b, t, 1), 0, 0), two);
	define(&b, self, n);
	bench_result(&b, self);
	assert_true(bench_is_bug(&b));
	bench_close(&b);
}

/* u[t] = v[t-1] + 1, v[t] = u[t] * 2, with v read before its node: a step runs u, then v. */
static void
members_of_a_step_run_in_order(void **state)
{
	(void)state;
	Bench b;
	static const double want[4] = {2, 6, 14, 30};
	bench_open(&b, FP_RELAXED);
	TensorId u = declare(&b, DT_I64, 1, 4, 0), v = declare(&b, DT_I64, 1, 4, 0);
	Recur rec = {.nseq = 1, .dir = {1}};
	vec_push(&b.arena, &rec.member, u);
	vec_push(&b.arena, &rec.member, v);
	vec_push(&b.arena, &b.g->recur, rec);
	ExprId t = expr_axis(b.g, 0), one = bench_i64(&b, 1);
	Node nu = {.npar = 1}, nv = {.npar = 1};
	nu.body = expr_select(b.g, expr_binary(b.g, OP_LT, t, one), one,
	                      shifted(&b, bench_read(&b, v, 1, shifted(&b, t, -1), 0, 0), 1));
	nv.body = bench_mul(&b, bench_read(&b, u, 1, t, 0, 0), bench_i64(&b, 2));
	define(&b, u, nu);
	define(&b, v, nv);
	bench_result(&b, v);
	bench_expect_exact(&b, want, 4);
	bench_close(&b);
}

/* Paths on a grid, p[i,j] = p[i-1,j] + p[i,j-1]: two sequential axes; and the same with a sum over
 * all earlier j of the last row, where one axis is free. */
static void
two_sequential_axes(void **state)
{
	(void)state;
	Bench b;
	static const double want[9] = {1, 1, 1, 1, 2, 3, 1, 3, 6};
	bench_open(&b, FP_RELAXED);
	TensorId p = declare(&b, DT_I64, 2, 3, 3);
	Recur rec = {.nseq = 2, .dir = {1, 1}};
	vec_push(&b.arena, &rec.member, p);
	vec_push(&b.arena, &b.g->recur, rec);
	ExprId i = expr_axis(b.g, 0), j = expr_axis(b.g, 1), one = bench_i64(&b, 1);
	ExprId edge = expr_binary(b.g, OP_OR, expr_binary(b.g, OP_LT, i, one),
		expr_binary(b.g, OP_LT, j, one));
	Node n = {.npar = 2, .seq = {0, 1}};
	n.body = expr_select(b.g, edge, one, bench_add(&b, bench_read(&b, p, 2, shifted(&b, i, -1), j, 0),
	                                         bench_read(&b, p, 2, i, shifted(&b, j, -1), 0)));
	define(&b, p, n);
	bench_result(&b, p);
	bench_expect_exact(&b, want, 9);
	bench_close(&b);
}

static void
a_free_axis_reads_the_whole_step_before(void **state)
{
	(void)state;
	Bench b;
	static const double want[6] = {0, 1, 1, 2, 3, 4};
	bench_open(&b, FP_RELAXED);
	TensorId h = declare(&b, DT_I64, 2, 3, 2);
	Recur rec = {.nseq = 1, .dir = {1}};
	vec_push(&b.arena, &rec.member, h);
	vec_push(&b.arena, &b.g->recur, rec);
	ExprId t = expr_axis(b.g, 0), d = expr_axis(b.g, 1);
	Node n = {.npar = 2, .monoid = MON_SUM};
	ExprId e = bench_reduced(&b, &n, 2);
	n.guard = expr_binary(b.g, OP_LT, bench_i64(&b, 0), t);
	n.body = bench_read(&b, h, 2, shifted(&b, t, -1), e, 0);
	n.finish = bench_add(&b, expr_make(b.g, OP_ACC, DT_I64, 0, 0, NULL, 0), d);
	define(&b, h, n);
	bench_result(&b, h);
	bench_expect_exact(&b, want, 6);
	bench_close(&b);
}

enum { STEPS = 3000 };

/* y[t] = y[t - 1] + k (x[t] - y[t - 1]), x[0] at first: what is left of an error is 1 - k of it, step by step and where steps are
 * joined. */
static void
an_average_forgets_its_errors(void **state)
{
	(void)state;
	static float x[STEPS];
	const float k = 0.3f;
	Bench b;
	bench_open(&b, FP_RELAXED);
	for (int i = 0; i < STEPS; i++)
		x[i] = (float)(i * 7919 % 4001) / 4001 + 1;
	TensorId tx = bench_input(&b, DT_F32, x, 1, STEPS, 0), self = declare(&b, DT_F32, 1, STEPS, 0);
	Recur rec = {.nseq = 1, .dir = {1}};
	vec_push(&b.arena, &rec.member, self);
	vec_push(&b.arena, &b.g->recur, rec);
	ExprId t = expr_axis(b.g, 0), now = bench_read(&b, tx, 1, t, 0, 0), y = bench_read(&b, self, 1, shifted(&b, t, -1), 0, 0);
	Node n = {.npar = 1};
	ExprId next = bench_add(&b, y, bench_mul(&b, bench_f32(&b, k), expr_binary(b.g, OP_SUB, now, y)));
	n.body = expr_select(b.g, expr_binary(b.g, OP_EQ, t, bench_i64(&b, 0)), now, next);
	define(&b, self, n);
	bench_result(&b, self);
	assert_int_equal(bench_eval(&b), EVAL_OK);
	float step = x[0];
	double joined = x[0];
	for (int i = 0; i < STEPS; i++) {
		const EvalValue *v = bench_at(&b, 0, i);
		step = i ? step + k * (x[i] - step) : step;
		joined = i ? (1 - k) * joined + k * x[i] : joined;
		assert_true(fabs(step - v->re) <= v->err && fabs((float)joined - v->re) <= v->err);
		assert_true(v->err < 5e-6);
	}
	bench_close(&b);
}

/* y[t] = y[t - 1] + x[t]: where steps are joined, what a large one hides comes back or does not. */
static void
joined_steps_may_hide_others(void **state)
{
	(void)state;
	static const float x[4] = {1, 0x1p80f, -0x1p80f, 0.25f};
	Bench b;
	bench_open(&b, FP_RELAXED);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 4, 0), self = declare(&b, DT_F32, 1, 4, 0);
	Recur rec = {.nseq = 1, .dir = {1}};
	vec_push(&b.arena, &rec.member, self);
	vec_push(&b.arena, &b.g->recur, rec);
	ExprId t = expr_axis(b.g, 0), now = bench_read(&b, tx, 1, t, 0, 0);
	Node n = {.npar = 1};
	n.body = expr_select(b.g, expr_binary(b.g, OP_EQ, t, bench_i64(&b, 0)), now, bench_add(&b, bench_read(&b, self, 1, shifted(&b, t, -1), 0, 0), now));
	define(&b, self, n);
	bench_result(&b, self);
	assert_int_equal(bench_eval(&b), EVAL_OK);
	for (int i = 0; i < 4; i++)
		assert_true(i == 0 ? bench_at(&b, 0, i)->err == 0 : bench_at(&b, 0, i)->err >= 1); /* 1 + 2^80 - 2^80 is 1 or 0 */
	bench_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recurrences_step_in_their_direction),
		cmocka_unit_test(an_average_forgets_its_errors),
		cmocka_unit_test(joined_steps_may_hide_others),
		cmocka_unit_test(later_steps_are_absent),
		cmocka_unit_test(members_of_a_step_run_in_order),
		cmocka_unit_test(two_sequential_axes),
		cmocka_unit_test(a_free_axis_reads_the_whole_step_before),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
