/* The launch: dims from shapes, scalars and options; wrong shapes; checks; limits; empty tensors;
 * comparison with what an implementation stored. */
#include "bench.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static DimId
new_dim(Bench *b, Dim d, const char *name)
{
	if (b->g->dim.n == 0)
		vec_grow(&b->arena, &b->g->dim, 1);
	d.name = name_cstr(b->g->names, name);
	vec_push(&b->arena, &b->g->dim, d);
	return b->g->dim.n - 1;
}

/* A rank-1 parameter of this extent, given a shape of n. */
static TensorId
vector_param(Bench *b, ExprId extent, int64_t n, const void *data)
{
	TensorId t = bench_input(b, DT_F32, data, 1, n, 0);
	b->g->tensor.at[t].extent[0] = extent;
	return t;
}

/* x: f32[2*N + 1], y: f32[N]; the result has N elements. */
static void
solved_dim(Bench *b, int64_t nx, int64_t ny, const float *x, const float *y)
{
	bench_open(b, FP_RELAXED);
	DimId n = new_dim(b, (Dim){.param = 0, .axis = 0, .scale = 2, .offset = 1}, "N");
	ExprId dim = expr_dim(b->g, n), i = expr_axis(b->g, 0);
	ExprId twice = expr_binary(b->g, OP_ADD, expr_binary(b->g, OP_MUL, bench_i64(b, 2), dim),
		bench_i64(b, 1));
	TensorId tx = vector_param(b, twice, nx, x), ty = vector_param(b, dim, ny, y);
	Node node = {.npar = 1};
	node.body = expr_binary(b->g, OP_ADD, bench_read(b, tx, 1, expr_binary(b->g, OP_ADD, i, dim), 0, 0),
	                        bench_read(b, ty, 1, i, 0, 0));
	ExprId extent[1] = {dim};
	bench_result(b, node_add(b->g, &node, 0, (Span){0}, DT_F32, extent));
}

static void
dims_are_solved_from_shapes(void **state)
{
	(void)state;
	Bench b;
	static const float x[5] = {1, 2, 3, 4, 5}, y[2] = {10, 20};
	solved_dim(&b, 5, 2, x, y);
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_int_equal(b.out.dim[1], 2);
	assert_int_equal(b.out.result[0].count, 2);
	assert_true(bench_at(&b, 0, 0)->re == 13 && bench_at(&b, 0, 1)->re == 24);
	bench_close(&b);
	solved_dim(&b, 4, 2, x, y);
	assert_int_equal(bench_eval(&b), EVAL_BAD_INPUT);
	assert_string_equal(b.out.message,
		"parameter a: axis 0 has extent 4, which is not 2*N + 1 for any N >= 0");
	bench_close(&b);
	solved_dim(&b, 5, 3, x, y);
	assert_int_equal(bench_eval(&b), EVAL_BAD_INPUT);
	assert_string_equal(b.out.message, "parameter b: axis 0 has extent 3 where the graph has 2");
	bench_close(&b);
	solved_dim(&b, 1, 0, x, y);
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_int_equal(b.out.result[0].count, 0);
	bench_close(&b);
}

/* x: f32[B*T + B], y: f32[B]; the result has T elements. */
static void
solved_turn(Bench *b, int64_t nx, int64_t ny, const float *x)
{
	bench_open(b, FP_RELAXED);
	DimId t = new_dim(b, (Dim){.param = 0, .axis = 0, .turn = 1}, "T");
	DimId n = new_dim(b, (Dim){.param = 1, .axis = 0, .scale = 1}, "B");
	ExprId dim = expr_dim(b->g, n), extent = expr_dim(b->g, t);
	ExprId both = expr_binary(b->g, OP_ADD, expr_binary(b->g, OP_MUL, dim, extent), dim);
	vector_param(b, both, nx, x);
	vector_param(b, dim, ny, x);
	Node node = {.npar = 1, .body = expr_float(b->g, DT_F32, 1)};
	bench_result(b, node_add(b->g, &node, 0, (Span){0}, DT_F32, &extent));
}

static void
dims_are_solved_with_others(void **state)
{
	(void)state;
	Bench b;
	static const float x[16];
	static const struct { int64_t nx, ny, t; } cases[] = {{12, 3, 3}, {3, 3, 0}, {13, 3, -1}, {0, 3, -1}, {0, 0, -1}, {5, 0, -1}};
	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
		solved_turn(&b, cases[k].nx, cases[k].ny, x);
		assert_int_equal(bench_eval(&b), cases[k].t < 0 ? EVAL_BAD_INPUT : EVAL_OK);
		if (cases[k].t < 0)
			assert_non_null(strstr(b.out.message, "which does not say what T is"));
		else
			assert_int_equal(b.out.result[0].count, cases[k].t);
		bench_close(&b);
	}
}

static void
dims_come_from_scalars_and_options(void **state)
{
	(void)state;
	Bench b;
	int32_t w = 3;
	bench_open(&b, FP_RELAXED);
	bench_input(&b, DT_I32, &w, 0, 0, 0);
	DimId from = new_dim(&b, (Dim){.param = 0, .axis = -1}, "W");
	DimId fixed = new_dim(&b, (Dim){.param = -1, .fixed = true, .value = 7}, "K");
	Node node = {.body = expr_binary(b.g, OP_MUL, expr_dim(b.g, from), expr_dim(b.g, fixed))};
	bench_result(&b, bench_node(&b, node, DT_I64, 0, 0));
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_int_equal(bench_at(&b, 0, 0)->i, 21);
	w = -3;
	assert_int_equal(bench_eval(&b), EVAL_BAD_INPUT);
	assert_string_equal(b.out.message, "the dim W is -3");
	bench_close(&b);
}

static void
checks_fail_by_name(void **state)
{
	(void)state;
	for (int64_t n = 6; n < 8; n++) {
		Bench b;
		float x[8] = {0};
		bench_open(&b, FP_RELAXED);
		DimId d = new_dim(&b, (Dim){.param = 0, .axis = 0, .scale = 1}, "N");
		ExprId dim = expr_dim(b.g, d);
		bench_result(&b, vector_param(&b, dim, n, x));
		Check one = {.cond = expr_binary(b.g, OP_LE, bench_i64(&b, 1), dim), .text = "N >= 1"};
		ExprId rest = expr_binary(b.g, OP_IMOD, dim, bench_i64(&b, 3));
		Check two = {.cond = expr_binary(b.g, OP_EQ, rest, bench_i64(&b, 0)), .text = "N mod 3 == 0"};
		vec_push(&b.arena, &b.g->check, one);
		vec_push(&b.arena, &b.g->check, two);
		assert_int_equal(bench_eval(&b), n == 6 ? EVAL_OK : EVAL_CHECK_FAILED);
		if (n == 7) {
			assert_int_equal(b.out.failed, 1);
			assert_string_equal(b.out.message, "the check N mod 3 == 0 does not hold");
		}
		bench_close(&b);
	}
}

static EvalStatus
limited(int64_t n0, int64_t n1, int64_t terms, int64_t max_values)
{
	Bench b;
	bench_open(&b, FP_RELAXED);
	Node n = {.npar = 2, .monoid = MON_SUM};
	n.body = bench_reduced(&b, &n, terms);
	bench_result(&b, bench_node(&b, n, DT_I64, n0, n1));
	EvalInputs in = {b.data, b.shape};
	EvalStatus s = graph_eval(b.g, &b.arena, &in, max_values, &b.out);
	bench_close(&b);
	return s;
}

static void
limits_are_named(void **state)
{
	(void)state;
	assert_int_equal(limited(10, 10, 10, 2000), EVAL_OK);
	assert_int_equal(limited(10, 10, 10, 1000), EVAL_TOO_LARGE);
	assert_int_equal(limited(1000, 10, 0, 5000), EVAL_TOO_LARGE);
	assert_int_equal(limited(INT64_C(1) << 40, INT64_C(1) << 40, 1, 0), EVAL_TOO_LARGE);
	assert_int_equal(limited(INT64_MAX, 0, 1, 1000), EVAL_OK);
	assert_int_equal(limited(-4, 3, 1, 1000), EVAL_OK);
}

/* m = 0.5*m + x, w = w - m: the second definition sees the old m. */
static void
inout_reads_the_value_from_before(void **state)
{
	(void)state;
	Bench b;
	static const float m[2] = {2, 4}, w[2] = {10, 20}, x[2] = {1, 1};
	bench_open(&b, FP_RELAXED);
	TensorId tm = bench_input(&b, DT_F32, m, 1, 2, 0), tw = bench_input(&b, DT_F32, w, 1, 2, 0);
	TensorId tx = bench_input(&b, DT_F32, x, 1, 2, 0);
	b.g->tensor.at[tm].kind = b.g->tensor.at[tw].kind = TENSOR_INOUT;
	ExprId i = expr_axis(b.g, 0), old = bench_read(&b, tm, 1, i, 0, 0);
	Node nm = {.npar = 1}, nw = {.npar = 1};
	nm.body = expr_binary(b.g, OP_ADD, expr_binary(b.g, OP_MUL, bench_f32(&b, 0.5), old),
	                      bench_read(&b, tx, 1, i, 0, 0));
	nw.body = expr_binary(b.g, OP_SUB, bench_read(&b, tw, 1, i, 0, 0), old);
	bench_result(&b, bench_node(&b, nm, DT_F32, 2, 0));
	bench_result(&b, bench_node(&b, nw, DT_F32, 2, 0));
	b.g->result.at[0].inout = tm;
	b.g->result.at[1].inout = tw;
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_true(bench_at(&b, 0, 0)->re == 2 && bench_at(&b, 0, 1)->re == 3);
	assert_true(bench_at(&b, 1, 0)->re == 8 && bench_at(&b, 1, 1)->re == 16);
	bench_close(&b);
}

/* A node that no result needs does not run, and can fail nothing. */
static void
unused_nodes_do_not_run(void **state)
{
	(void)state;
	Bench b;
	static const float x[1] = {3};
	bench_open(&b, FP_RELAXED);
	TensorId t = bench_input(&b, DT_F32, x, 1, 1, 0);
	Node n = {.npar = 1, .body = bench_read(&b, t, 1, bench_i64(&b, 9), 0, 0)};
	bench_node(&b, n, DT_F32, 1, 0);
	bench_result(&b, t);
	assert_int_equal(bench_eval(&b), EVAL_OK);
	assert_true(bench_at(&b, 0, 0)->re == 3);
	bench_close(&b);
}

static void
compare_one(DType t, EvalValue want, EvalValue got, bool right)
{
	unsigned char packed[8] = {0};
	EvalTensor e = {.dtype = t, .count = 1, .at = &want};
	EvalCompare c;
	eval_store(t, packed, 0, got);
	eval_compare(&e, packed, &c);
	assert_int_equal(c.mismatches, !right);
}

static void
comparison_allows_the_bound_and_a_spacing(void **state)
{
	(void)state;
	EvalValue exact = {.re = 1}, bounded = {.re = 1, .err = 1e-6}, unknown = {.re = 1, .err = INFINITY};
	EvalValue nan = {.re = NAN}, inf = {.re = INFINITY}, skip = {.skip = true}, fault = {.fault = 1};
	EvalValue integer = {.i = 5}, loose = {.i = 5, .err = 1, .ambiguous = true},
		parts = {.re = 1, .im = 2};
	compare_one(DT_F32, exact, (EvalValue){.re = 1}, true);
	compare_one(DT_F32, exact, (EvalValue){.re = 1 + 0x1p-23}, false);
	compare_one(DT_F32, bounded, (EvalValue){.re = 1 + 1e-6 + 0x1p-24}, true);
	compare_one(DT_F32, bounded, (EvalValue){.re = 1 + 1e-6 + 0x1p-22}, false);
	compare_one(DT_F32, bounded, nan, false);
	compare_one(DT_F32, unknown, nan, true);
	compare_one(DT_F32, nan, nan, true);
	compare_one(DT_F32, nan, exact, false);
	compare_one(DT_F32, inf, inf, true);
	compare_one(DT_F32, inf, (EvalValue){.re = -INFINITY}, false);
	compare_one(DT_F32, inf, (EvalValue){.re = 3e38}, false);
	compare_one(DT_F32, skip, nan, true);
	compare_one(DT_F32, fault, nan, true);
	compare_one(DT_I32, integer, (EvalValue){.i = 5}, true);
	compare_one(DT_I32, integer, (EvalValue){.i = 6}, false);
	compare_one(DT_I32, loose, (EvalValue){.i = 6}, true);
	compare_one(DT_I32, loose, (EvalValue){.i = 7}, false);
	compare_one(DT_U64, (EvalValue){.i = -1}, (EvalValue){.i = -2}, false);
	compare_one(DT_C64, parts, parts, true);
	compare_one(DT_C64, parts, (EvalValue){.re = 1, .im = 3}, false);
}

static void
comparison_finds_the_worst(void **state)
{
	(void)state;
	EvalValue want[4] = {{.re = 1, .err = 1e-3}, {.re = 2, .err = 1e-3}, {.re = 3, .err = 1},
		{.skip = true}};
	float got[4] = {1.0001f, 2.0005f, 3.1f, 77};
	EvalTensor e = {.dtype = DT_F32, .count = 4, .at = want};
	EvalCompare c;
	eval_compare(&e, got, &c);
	assert_true(c.mismatches == 0 && c.count == 3 && c.worst == 1);
	assert_true(fabs(c.worst_ratio - 0.5) < 0.01 && c.worst_got == (double)2.0005f &&
		c.worst_want == 2);
	got[2] = 5;
	eval_compare(&e, got, &c);
	assert_true(c.mismatches == 1 && c.worst == 2 && c.worst_ratio > 1.9);
	EvalValue whole[2] = {{.i = 4}, {.i = -9}};
	int32_t stored[2] = {4, -7};
	EvalTensor ints = {.dtype = DT_I32, .count = 2, .at = whole};
	eval_compare(&ints, stored, &c);
	assert_true(c.mismatches == 1 && c.worst == 1 && c.worst_got == -7 && c.worst_want == -9 &&
		c.worst_ulp == 2);
	EvalValue large[1] = {{.i = -1}};
	uint64_t bits[1] = {UINT64_MAX - 1};
	EvalTensor unsigned_ints = {.dtype = DT_U64, .count = 1, .at = large};
	eval_compare(&unsigned_ints, bits, &c);
	assert_true(c.mismatches == 1 && c.worst_got == 0x1p64 && c.worst_want == 0x1p64);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dims_are_solved_from_shapes),
		cmocka_unit_test(dims_are_solved_with_others),
		cmocka_unit_test(dims_come_from_scalars_and_options),
		cmocka_unit_test(checks_fail_by_name),
		cmocka_unit_test(limits_are_named),
		cmocka_unit_test(inout_reads_the_value_from_before),
		cmocka_unit_test(unused_nodes_do_not_run),
		cmocka_unit_test(comparison_allows_the_bound_and_a_spacing),
		cmocka_unit_test(comparison_finds_the_worst),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
