/* Nodes: reductions and their ranges, laziness, faults, cuts, domains, scatter. */
#include "bench.h"

#include <float.h>
#include <math.h>

static ExprId
index_of(Bench *b, TensorId t, ExprId at)
{
	return expr_cast(b->g, DT_I64, bench_read(b, t, 1, at, 0, 0));
}

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
	n.body = bench_mul(&b, bench_read(&b, a, 2, i, k, 0), bench_read(&b, c, 2, k, j, 0));
	bench_result(&b, bench_node(&b, n, DT_F32, 2, 2));
	bench_expect_exact(&b, want, 4);
	bench_close(&b);
}

/* The bound of x[0] w[0] + x[1] w[1], or of the first alone; apart: whose products are another node's. */
static double
bound_of_products(FpMode fp, const float *x, const float *w, int terms, bool apart)
{
	Bench b;
	bench_open(&b, fp);
	TensorId a = bench_input(&b, DT_F32, x, 1, terms, 0), c = bench_input(&b, DT_F32, w, 1, terms, 0);
	Node n = {.monoid = MON_SUM}, product = {.npar = 1};
	ExprId i = expr_axis(b.g, 0);
	ExprId both = bench_mul(&b, bench_read(&b, a, 1, i, 0, 0), bench_read(&b, c, 1, i, 0, 0));
	product.body = both;
	bench_reduced(&b, &n, terms);
	n.body = apart ? bench_read(&b, bench_node(&b, product, DT_F32, terms, 0), 1, i, 0, 0) : both;
	bench_result(&b, bench_node(&b, n, DT_F32, 0, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	double err = bench_at(&b, 0, 0)->err;
	bench_close(&b);
	return err;
}

/* In fast mode factors may be rounded to 11 bits: sums of longer ones are not exact, and one may become infinite. */
static void
fast_products_round_their_factors(void **state)
{
	(void)state;
	static const float few[2] = {2047, -3}, more[2] = {4097, 3}, ones[2] = {1, 1}, largest[2] = {0x1.fffffep127f, 1}, half[2] = {0.5f, 1};
	static const float infinite[2] = {INFINITY, 1}, tiny[2] = {0x1p-140f, 1}; /* which may be rounded to 0 */
	for (unsigned n = 0; n < 4; n++) {
		int terms = 1 + (int)n % 2;
		bool apart = n / 2;
		assert_true(bound_of_products(FP_FAST, few, ones, terms, apart) == 0);
		assert_true(bound_of_products(FP_RELAXED, more, ones, terms, apart) == 0);
		double err = bound_of_products(FP_FAST, more, ones, terms, apart);
		assert_true(err >= 1 && err <= 4100 * 0x1.2p-10); /* 4097 is 4096 then */
		assert_true(bound_of_products(FP_FAST, ones, more, terms, apart) >= 1);
		assert_true(bound_of_products(FP_FAST, tiny, few, terms, apart) >= 0x1p-140 * 2047);
	}
	assert_true(isfinite(bound_of_products(FP_RELAXED, largest, half, 2, false)));
	for (int terms = 1; terms < 3; terms++) {
		assert_false(isfinite(bound_of_products(FP_FAST, largest, half, terms, false)));
		assert_false(isfinite(bound_of_products(FP_FAST, infinite, tiny, terms, false)));
	}
	assert_true(bound_of_products(FP_RELAXED, infinite, tiny, 2, false) == 0);
}

/* --- demand --- */

/* x[i] < 0 ? 7 : table[ids[i]]: only the arm taken may fault. */
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
	ExprId i = expr_axis(b.g, 0);
	ExprId cond = expr_binary(b.g, OP_LT, bench_read(&b, tx, 1, i, 0, 0), bench_f32(&b, 0));
	n.body = expr_select(b.g, cond, bench_f32(&b, 7), bench_read(&b, tt, 1, index_of(&b, ti, i),
		0, gather));
	bench_result(&b, bench_node(&b, n, DT_F32, 3, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_true(bench_at(&b, 0, 0)->re == 7 && bench_at(&b, 0, 0)->fault == 0);
	assert_true(bench_at(&b, 0, 1)->re == 20 && bench_at(&b, 0, 1)->fault == 0);
	assert_true(bench_at(&b, 0, 2)->re == 0);
	assert_int_equal(bench_at(&b, 0, 2)->fault, gather);
	assert_int_equal(b.out.fault, gather);
	bench_close(&b);
}

/* i > 0 && x[i-1] == 5, i == 0 || x[i-1] == 5: without a check the left side guards the right. */
static void
logic_reads_only_what_is_open(void **state)
{
	(void)state;
	static const int32_t x[3] = {5, 6, 0};
	static const double want[2][3] = {{0, 1, 0}, {1, 1, 0}};
	for (int either = 0; either < 2; either++) {
		Bench b;
		bench_open(&b, FP_RELAXED);
		TensorId t = bench_input(&b, DT_I32, x, 1, 3, 0);
		ExprId i = expr_axis(b.g, 0), zero = bench_i64(&b, 0);
		ExprId last = bench_read(&b, t, 1, expr_binary(b.g, OP_SUB, i, bench_i64(&b, 1)), 0, 0);
		ExprId right = expr_binary(b.g, OP_EQ, last, expr_int(b.g, DT_I32, 5));
		Node n = {.npar = 1};
		n.body = either ? expr_binary(b.g, OP_OR, expr_binary(b.g, OP_EQ, i, zero), right)
		                : expr_binary(b.g, OP_AND, expr_binary(b.g, OP_LT, zero, i), right);
		bench_result(&b, bench_node(&b, n, DT_BOOL, 3, 0));
		bench_expect_exact(&b, want[either], 3);
		bench_close(&b);
	}
}

/* A chain of selects that share everything below, ten thousand deep, and evaluated once each. */
static void
deep_expressions_are_walked_once(void **state)
{
	(void)state;
	Bench b;
	static const float x[2] = {3, -4};
	static const double want[2] = {10003, 0};
	bench_open(&b, FP_RELAXED);
	TensorId t = bench_input(&b, DT_F32, x, 1, 2, 0);
	ExprId e = bench_read(&b, t, 1, expr_axis(b.g, 0), 0, 0), zero = bench_f32(&b, 0);
	for (int k = 0; k < 10000; k++)
		e = expr_select(b.g, expr_binary(b.g, OP_LT, zero, e), bench_add(&b, e, bench_f32(&b, 1)),
		                bench_mul(&b, e, zero));
	Node n = {.npar = 1, .body = e};
	bench_result(&b, bench_node(&b, n, DT_F32, 2, 0));
	bench_expect_exact(&b, want, 2);
	bench_close(&b);
}

/* An uncertain comparison gives a value that covers both arms, and says so. */
static void
uncertain_choices_cover_both_arms(void **state)
{
	(void)state;
	Bench b;
	static const float x[2] = {1, 3};
	bench_open(&b, FP_RELAXED);
	TensorId t = bench_input(&b, DT_F32, x, 1, 2, 0);
	ExprId e = expr_unary(b.g, OP_EXP, bench_read(&b, t, 1, expr_axis(b.g, 0), 0, 0));
	Node n = {.npar = 1};
	n.body = expr_select(b.g, expr_binary(b.g, OP_LT, e, bench_f32(&b, 2.7182817459106445)),
	                     bench_f32(&b, 10), bench_f32(&b, 12));
	bench_result(&b, bench_node(&b, n, DT_F32, 2, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	const EvalValue *near = bench_at(&b, 0, 0), *far = bench_at(&b, 0, 1);
	assert_true(near->ambiguous && fabs(near->re - 10) <= near->err &&
		fabs(near->re - 12) <= near->err);
	assert_true(near->err < 2.001 && !far->ambiguous && far->re == 12 && far->err == 0);
	float got[2] = {10, 12};
	EvalCompare c;
	eval_compare(&b.out.result[0], got, &c);
	assert_true(c.mismatches == 0 && c.ambiguous == 1 && c.count == 2);
	bench_close(&b);
}

/* --- reductions --- */

/* sum over e in row[i]..row[i+1], and over what a condition leaves. */
static void
ranges_and_guards_depend_on_data(void **state)
{
	(void)state;
	Bench b;
	static const float x[5] = {1, 2, 4, 8, 16};
	static const int32_t row[4] = {0, 2, 2, 5};
	static const double want[3] = {2, 0, 24}; /* without 1 and 4 */
	bench_open(&b, FP_RELAXED);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 5, 0), tr = bench_input(&b, DT_I32, row, 1, 4, 0);
	ExprId i = expr_axis(b.g, 0), e = expr_axis(b.g, 1);
	Node n = {.npar = 1, .nred = 1, .monoid = MON_SUM};
	n.axis[1].lo = index_of(&b, tr, i);
	n.axis[1].hi = index_of(&b, tr, bench_add(&b, i, bench_i64(&b, 1)));
	n.guard = expr_binary(b.g, OP_EQ, expr_binary(b.g, OP_IMOD, e, bench_i64(&b, 2)), bench_i64(&b, 1));
	n.guard = expr_binary(b.g, OP_OR, n.guard, expr_binary(b.g, OP_LE, bench_i64(&b, 4), e));
	n.body = bench_read(&b, tx, 1, e, 0, 0);
	bench_result(&b, bench_node(&b, n, DT_F32, 3, 0));
	bench_expect_exact(&b, want, 3);
	bench_close(&b);
}

/* Rows that leave the tensor are cut; which of them is said, and it is no failure. */
static void
a_cut_range_says_so(void **state)
{
	(void)state;
	Bench b;
	static const float x[3] = {1, 2, 4};
	static const int32_t row[4] = {-2, 1, 1, 9};
	static const double want[3] = {1, 0, 6};
	bench_open(&b, FP_RELAXED);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 3, 0), tr = bench_input(&b, DT_I32, row, 1, 4, 0);
	AccessId cut = bench_access(&b, ACCESS_CUT, "e");
	ExprId i = expr_axis(b.g, 0);
	Node n = {.npar = 1, .nred = 1, .monoid = MON_SUM};
	n.axis[1] = (Axis){.lo = index_of(&b, tr, i), .hi = index_of(&b, tr, bench_add(&b, i, bench_i64(&b, 1))),
	                   .clamp = bench_i64(&b, 3), .cut = cut};
	n.body = bench_read(&b, tx, 1, expr_axis(b.g, 1), 0, 0);
	bench_result(&b, bench_node(&b, n, DT_F32, 3, 0));
	bench_expect_exact(&b, want, 3);
	assert_int_equal(b.out.cut, cut);
	assert_int_equal(bench_at(&b, 0, 0)->cut, cut);
	assert_int_equal(bench_at(&b, 0, 1)->cut, 0);
	assert_int_equal(bench_at(&b, 0, 2)->cut, cut);
	bench_close(&b);
}

static double
reduce_of(Monoid m, FpMode fp, DType t, const void *data, int64_t count, double *err)
{
	Bench b;
	bench_open(&b, fp);
	TensorId x = bench_input(&b, t, data, 1, count, 0);
	Node n = {.monoid = m};
	n.body = bench_read(&b, x, 1, bench_reduced(&b, &n, count), 0, 0);
	DType result = m == MON_ARGMAX || m == MON_ARGMIN ? DT_I64
	               : m == MON_SUM || m == MON_PROD    ? dtype_info[t].arith
	                                                  : t;
	bench_result(&b, bench_node(&b, n, result, 0, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	EvalValue v = *bench_at(&b, 0, 0);
	bench_close(&b);
	*err = v.err;
	return dtype_is_float(result) ? v.re : (double)v.i;
}

static void
monoids_on_special_values(void **state)
{
	(void)state;
	double e;
	static const float nan_late[4] = {1, 9, NAN, 3}, zeros[3] = {-0.0f, 0, -0.0f},
		ties[5] = {2, 7, 7, -1, -1};
	static const float minus[2] = {-0.0f, -0.0f}, infs[3] = {INFINITY, 1, -INFINITY},
		over[3] = {3e38f, 3e38f, -3e38f};
	static const int8_t small[4] = {100, 100, 100, 3};
	static const uint8_t flags[3] = {1, 0, 2};
	static const double wide[3] = {1, 0x1p40, 1};
	static const float above[3] = {0x1p24f, 1, 1}, close[3] = {1, 3, 2},
		factors[4] = {3, 0.5f, 5, 1e-3f};
	static const uint16_t bf16[3] = {0x4380, 0x3f80, 0x3f80}; /* 256 + 1 + 1 is 258 in f32 */
	assert_true(isnan(reduce_of(MON_MAX, FP_RELAXED, DT_F32, nan_late, 4, &e)) && e == 0);
	assert_true(reduce_of(MON_ARGMAX, FP_RELAXED, DT_F32, nan_late, 4, &e) == 2 && e == 0);
	assert_true(!signbit(reduce_of(MON_MAX, FP_RELAXED, DT_F32, zeros, 3, &e)) && e == 0);
	assert_true(signbit(reduce_of(MON_MIN, FP_RELAXED, DT_F32, zeros, 3, &e)) && e == 0);
	assert_true(reduce_of(MON_ARGMAX, FP_RELAXED, DT_F32, ties, 5, &e) == 1 && e == 0);
	assert_true(reduce_of(MON_ARGMIN, FP_RELAXED, DT_F32, ties, 5, &e) == 3 && e == 0);
	assert_true(signbit(reduce_of(MON_SUM, FP_STRICT, DT_F32, minus, 2, &e)) && e == 0);
	assert_true(isnan(reduce_of(MON_SUM, FP_RELAXED, DT_F32, infs, 3, &e)) && e == 0);
	reduce_of(MON_SUM, FP_RELAXED, DT_F32, over, 3, &e);
	assert_true(isinf(e)); /* 3e38 or infinite, by the order */
	assert_true(isinf(reduce_of(MON_SUM, FP_STRICT, DT_F32, over, 3, &e)) && e == 0);
	assert_true(isinf(reduce_of(MON_SUM, FP_RELAXED, DT_F32, over, 2, &e)) && e == 0);
	assert_true(reduce_of(MON_SUM, FP_RELAXED, DT_I8, small, 4, &e) == 303 && e == 0);
	assert_true(reduce_of(MON_SUM, FP_RELAXED, DT_BOOL, flags, 3, &e) == 2);
	assert_true(reduce_of(MON_ANY, FP_RELAXED, DT_BOOL, flags, 3, &e) == 1);
	assert_true(reduce_of(MON_ALL, FP_RELAXED, DT_BOOL, flags, 3, &e) == 0);
	assert_true(reduce_of(MON_SUM, FP_RELAXED, DT_BF16, bf16, 3, &e) == 258 && e == 0);
	assert_true(reduce_of(MON_PROD, FP_RELAXED, DT_I8, small, 4, &e) == 3000000 && e == 0);
	assert_true(reduce_of(MON_MIN, FP_RELAXED, DT_I8, small, 4, &e) == 3);
	assert_true(reduce_of(MON_SUM, FP_RELAXED, DT_F64, wide, 3, &e) == 0x1p40 + 2 && e == 0);
	assert_true(reduce_of(MON_SUM, FP_RELAXED, DT_F32, above, 3, &e) == 0x1p24 + 2 && e >= 2 && e < 4);
	assert_true(reduce_of(MON_SUM, FP_STRICT, DT_F32, above, 3, &e) == 0x1p24 + 2 && e >= 1 && e < 4);
	assert_true(reduce_of(MON_ARGMAX, FP_STRICT, DT_F32, close, 3, &e) == 1 && e == 0);
	assert_true(reduce_of(MON_PROD, FP_STRICT, DT_F32, close, 3, &e) == 6 && e == 0);
	assert_true(reduce_of(MON_PROD, FP_RELAXED, DT_F32, close, 3, &e) == 6 && e == 0);
	reduce_of(MON_PROD, FP_RELAXED, DT_F32, factors, 4, &e);
	assert_true(e > 7e-10 && e < 4e-9); /* up to four roundings of 7.5e-3 */
	assert_true(reduce_of(MON_SUM, FP_RELAXED, DT_F32, NULL, 0, &e) == 0 && e == 0);
	assert_true(reduce_of(MON_PROD, FP_RELAXED, DT_F32, NULL, 0, &e) == 1 && e == 0);
	assert_true(reduce_of(MON_ALL, FP_RELAXED, DT_BOOL, NULL, 0, &e) == 1);
}

/* sum[k](x[k] * y[k]) of n terms. */
static double
dot_of(const float *x, const float *y, int64_t n, double *err)
{
	Bench b;
	bench_open(&b, FP_RELAXED);
	TensorId s = bench_input(&b, DT_F32, x, 1, n, 0), t = bench_input(&b, DT_F32, y, 1, n, 0);
	Node node = {.monoid = MON_SUM};
	ExprId k = bench_reduced(&b, &node, n);
	node.body = expr_binary(b.g, OP_MUL, bench_read(&b, s, 1, k, 0, 0), bench_read(&b, t, 1, k, 0, 0));
	bench_result(&b, bench_node(&b, node, DT_F32, 0, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	EvalValue v = *bench_at(&b, 0, 0);
	bench_close(&b);
	*err = v.err;
	return v.re;
}

/* A product may be added before it is rounded. Where nothing has the other sign, one that overflows makes the sum
 * infinite all the same; else a sum shows the sign, where there is one. */
static void
sums_of_products_overflow(void **state)
{
	(void)state;
	static const float x[3] = {1e30f, 2, 3e38f}, minus[3] = {-1e30f, -2, -3e38f}, mixed[3] = {1e30f, -2, 1e-30f},
		both[3] = {1e30f, 1, -1e30f}, y[3] = {1e30f, 1, 3e38f};
	double e;
	assert_true(dot_of(x, y, 3, &e) == INFINITY && e == 0);
	assert_true(dot_of(minus, y, 3, &e) == -INFINITY && e == 0);
	assert_true(dot_of(mixed, y, 3, &e) > FLT_MAX && isinf(e));
	dot_of(both, y, 3, &e);
	assert_true(isinf(e));
}

/* argmax over two ranges: row-major among the ranges, each from its lower end. */
static void
positions_count_from_the_lower_ends(void **state)
{
	(void)state;
	Bench b;
	static const float x[12] = {9, 9, 9, 9, 1, 2, 3, 9, 1, 5, 2, 9};
	static const double want[1] = {2}; /* of rows 1..3, columns 1..3: 2 3 5 2 */
	bench_open(&b, FP_RELAXED);
	TensorId t = bench_input(&b, DT_F32, x, 2, 3, 4);
	Node n = {.nred = 2, .monoid = MON_ARGMAX};
	for (int k = 0; k < 2; k++)
		n.axis[k] = (Axis){.lo = bench_i64(&b, 1), .hi = bench_i64(&b, 3)};
	n.body = bench_read(&b, t, 2, expr_axis(b.g, 0), expr_axis(b.g, 1), 0);
	bench_result(&b, bench_node(&b, n, DT_I64, 0, 0));
	bench_expect_exact(&b, want, 1);
	bench_close(&b);
}

/* max of x[k] over k < i, else -1: finish sees whether a term arrived. */
static void
finish_knows_whether_a_term_arrived(void **state)
{
	(void)state;
	Bench b;
	static const float x[3] = {5, -3, 8};
	static const double want[4] = {-1, 10, 10, 16};
	bench_open(&b, FP_RELAXED);
	TensorId t = bench_input(&b, DT_F32, x, 1, 3, 0);
	Node n = {.npar = 1, .nred = 1, .monoid = MON_MAX};
	n.axis[1] = (Axis){.lo = bench_i64(&b, 0), .hi = expr_axis(b.g, 0)};
	n.body = bench_read(&b, t, 1, expr_axis(b.g, 1), 0, 0);
	ExprId acc = expr_make(b.g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	ExprId touched = expr_make(b.g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	n.finish = expr_select(b.g, touched, bench_add(&b, acc, acc), bench_f32(&b, -1));
	bench_result(&b, bench_node(&b, n, DT_F32, 4, 0));
	bench_expect_exact(&b, want, 4);
	bench_close(&b);
}

/* A reduction carries the first fault of its terms; an element that reads it carries it on. */
static void
faults_travel(void **state)
{
	(void)state;
	Bench b;
	static const float x[2] = {1, 2};
	static const int32_t ids[6] = {0, 1, 1, 7, 0, 0};
	bench_open(&b, FP_RELAXED);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 2, 0), ti = bench_input(&b, DT_I32, ids, 2, 3, 2);
	AccessId gather = bench_access(&b, ACCESS_GATHER, "x[ids[i, k]]");
	Node n = {.npar = 1, .monoid = MON_SUM};
	ExprId i = expr_axis(b.g, 0), k = bench_reduced(&b, &n, 2);
	ExprId at = expr_cast(b.g, DT_I64, bench_read(&b, ti, 2, i, k, 0));
	n.body = bench_read(&b, tx, 1, at, 0, gather);
	TensorId s = bench_node(&b, n, DT_F32, 3, 0);
	Node copy = {.npar = 1, .body = bench_read(&b, s, 1, expr_binary(b.g, OP_SUB, bench_i64(&b, 2),
		i), 0, 0)};
	bench_result(&b, bench_node(&b, copy, DT_F32, 3, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_int_equal(bench_at(&b, 0, 0)->fault, 0);
	assert_int_equal(bench_at(&b, 0, 1)->fault, gather);
	assert_int_equal(bench_at(&b, 0, 2)->fault, 0);
	assert_true(bench_at(&b, 0, 1)->re == 2);
	bench_close(&b);
}

/* Outside a domain nothing is asked for; a result that asks all the same is our mistake. */
static void
domains(void **state)
{
	(void)state;
	for (int shift = 0; shift < 2; shift++) {
		Bench b;
		static const float x[4] = {1, 2, 3, 4};
		bench_open(&b, FP_RELAXED);
		TensorId t = bench_input(&b, DT_F32, x, 1, 4, 0);
		ExprId i = expr_axis(b.g, 0);
		Node n = {.npar = 1};
		n.domain = expr_binary(b.g, OP_LT, i, bench_i64(&b, 2));
		n.body = bench_read(&b, t, 1, bench_add(&b, i, bench_i64(&b, 2)), 0, 0);
		TensorId part = bench_node(&b, n, DT_F32, 4, 0);
		Node all = {.npar = 1};
		all.body = expr_select(b.g, expr_binary(b.g, OP_LT, i, bench_i64(&b, 2 + shift)),
		                       bench_read(&b, part, 1, i, 0, 0), bench_f32(&b, 0));
		bench_result(&b, bench_node(&b, all, DT_F32, 4, 0));
		bench_result(&b, part);
		if (shift) {
			assert_true(bench_is_bug(&b));
		} else {
			assert_int_equal(bench_eval(&b), EVAL_OK);
			assert_true(bench_at(&b, 0, 1)->re == 4 && bench_at(&b, 0, 3)->re == 0);
			assert_true(!bench_at(&b, 1, 1)->skip && bench_at(&b, 1, 2)->skip);
		}
		bench_close(&b);
	}
}

/* A condition that demanded what is absent decides nothing. */
static void
absence_travels(void **state)
{
	(void)state;
	for (int at = 0; at < 2; at++) {
		Bench b;
		static const int32_t x[2] = {1, 2};
		bench_open(&b, FP_RELAXED);
		TensorId t = bench_input(&b, DT_I32, x, 1, 2, 0);
		ExprId read = bench_read(&b, t, 1, bench_i64(&b, 1 + at), 0, 0), one = bench_i64(&b, 1);
		Node n = {.body = expr_select(b.g, expr_binary(b.g, OP_LT, read, expr_int(b.g, DT_I32, 9)),
			one, one)};
		bench_result(&b, bench_node(&b, n, DT_I64, 0, 0));
		if (at) {
			assert_true(bench_is_bug(&b));
		} else {
			assert_int_equal(bench_eval(&b), EVAL_OK);
			assert_int_equal(bench_at(&b, 0, 0)->i, 1);
		}
		bench_close(&b);
	}
}

static void
narrow_sum(const uint16_t *x, double want, int finish)
{
	Bench b;
	bench_open(&b, FP_RELAXED);
	TensorId t = bench_input(&b, DT_BF16, x, 1, 3, 0);
	Node n = {.monoid = MON_SUM};
	n.body = bench_read(&b, t, 1, bench_reduced(&b, &n, 3), 0, 0);
	if (finish)
		n.finish = expr_make(b.g, OP_ACC, DT_BF16, 0, 0, NULL, 0);
	bench_result(&b, bench_node(&b, n, DT_BF16, 0, 0));
	bench_expect_exact(&b, &want, 1);
	bench_close(&b);
}

/* A bf16 tensor of a bf16 sum: added in f32, rounded once; its finish sees bf16 as well. */
static void
narrow_tensors_round_once(void **state)
{
	(void)state;
	static const uint16_t even[3] = {0x4380, 0x3f80, 0x3f80}, middle[3] = {0x4380, 0x3f80, 0x4000};
	for (int finish = 0; finish < 2; finish++) {
		narrow_sum(even, 258, finish);
		narrow_sum(middle, 260, finish); /* 259 is between 258 and 260, which is even */
	}
}

/* --- scatter --- */

/* g[ids[t]] += x[t] from an old value or from nothing; 9 is outside. */
static void
scatter_adds_in_order(void **state)
{
	(void)state;
	static const float x[4] = {1, 2, 4, 8}, old[3] = {100, 200, 300};
	static const int32_t good[4] = {2, 0, 2, 2}, bad[4] = {2, 9, 2, 2};
	static const double want[2][3] = {{2, 0, 13}, {102, 200, 313}};
	for (int kind = 0; kind < 3; kind++) {
		Bench b;
		bench_open(&b, FP_RELAXED);
		TensorId tx = bench_input(&b, DT_F32, x, 1, 4, 0);
		TensorId ti = bench_input(&b, DT_I32, kind == 2 ? bad : good, 1, 4, 0);
		TensorId told = bench_input(&b, DT_F32, old, 1, 3, 0);
		AccessId access = bench_access(&b, ACCESS_SCATTER, "g[ids[t]]");
		Node n = {.npar = 1, .monoid = MON_SUM, .scatter = true, .target_access = {access}};
		ExprId t = bench_reduced(&b, &n, 4);
		n.target[0] = index_of(&b, ti, t);
		n.body = bench_read(&b, tx, 1, t, 0, 0);
		n.init = kind ? bench_read(&b, told, 1, expr_axis(b.g, 0), 0, 0) : 0;
		bench_result(&b, bench_node(&b, n, DT_F32, 3, 0));
		if (kind < 2) {
			bench_expect_exact(&b, want[kind], 3);
		} else {
			assert_int_equal(bench_eval(&b), EVAL_OK);
			assert_int_equal(b.out.fault, access);
		}
		bench_close(&b);
	}
}

/* A scatter that no result reads: its failure is met where the node reports, and nowhere else. */
static void
what_reports_is_evaluated(void **state)
{
	(void)state;
	static const float x[2] = {1, 2};
	static const int32_t bad[2] = {0, 9};
	for (int reports = 0; reports < 2; reports++) {
		Bench b;
		bench_open(&b, FP_RELAXED);
		TensorId tx = bench_input(&b, DT_F32, x, 1, 2, 0), ti = bench_input(&b, DT_I32, bad, 1, 2, 0);
		AccessId access = bench_access(&b, ACCESS_SCATTER, "g[ids[t]]");
		Node n = {.npar = 1, .monoid = MON_SUM, .scatter = true, .target_access = {access}, .reports = reports};
		ExprId t = bench_reduced(&b, &n, 2);
		n.target[0] = index_of(&b, ti, t);
		n.body = bench_read(&b, tx, 1, t, 0, 0);
		bench_node(&b, n, DT_F32, 3, 0);
		Node copy = {.npar = 1, .body = bench_read(&b, tx, 1, expr_axis(b.g, 0), 0, 0)};
		bench_result(&b, bench_node(&b, copy, DT_F32, 2, 0));
		assert_int_equal(bench_eval(&b), EVAL_OK);
		assert_int_equal(b.out.fault, reports ? access : 0);
		bench_close(&b);
	}
}

/* m[ids[t]] max= x[t] else -7, with a condition on t. */
static void
scatter_fills_untouched_targets(void **state)
{
	(void)state;
	Bench b;
	static const float x[4] = {-1, -2, -4, 8};
	static const int32_t ids[4] = {2, 0, 2, 1};
	static const double want[3] = {-2, -7, -1};
	bench_open(&b, FP_RELAXED);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 4, 0), ti = bench_input(&b, DT_I32, ids, 1, 4, 0);
	Node n = {.npar = 1, .monoid = MON_MAX, .scatter = true};
	ExprId t = bench_reduced(&b, &n, 4);
	n.target[0] = index_of(&b, ti, t);
	n.guard = expr_binary(b.g, OP_LT, t, bench_i64(&b, 3));
	n.body = bench_read(&b, tx, 1, t, 0, 0);
	n.finish = expr_select(b.g, expr_make(b.g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0),
	                       expr_make(b.g, OP_ACC, DT_F32, 0, 0, NULL, 0), bench_f32(&b, -7));
	bench_result(&b, bench_node(&b, n, DT_F32, 3, 0));
	bench_expect_exact(&b, want, 3);
	bench_close(&b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(matmul_is_exact_on_integers),
		cmocka_unit_test(fast_products_round_their_factors),
		cmocka_unit_test(select_reads_only_the_arm_taken),
		cmocka_unit_test(logic_reads_only_what_is_open),
		cmocka_unit_test(deep_expressions_are_walked_once),
		cmocka_unit_test(uncertain_choices_cover_both_arms),
		cmocka_unit_test(ranges_and_guards_depend_on_data),
		cmocka_unit_test(a_cut_range_says_so),
		cmocka_unit_test(monoids_on_special_values),
		cmocka_unit_test(sums_of_products_overflow),
		cmocka_unit_test(positions_count_from_the_lower_ends),
		cmocka_unit_test(finish_knows_whether_a_term_arrived),
		cmocka_unit_test(faults_travel),
		cmocka_unit_test(domains),
		cmocka_unit_test(absence_travels),
		cmocka_unit_test(narrow_tensors_round_once),
		cmocka_unit_test(scatter_adds_in_order),
		cmocka_unit_test(what_reports_is_evaluated),
		cmocka_unit_test(scatter_fills_untouched_targets),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
