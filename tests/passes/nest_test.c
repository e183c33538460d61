/* nest_test.c: every feature of a node through the NEST and MAP templates, against the oracle. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "graph_case.h"

#define BIN(op, a, b) expr_binary(c->g, OP_##op, a, b)
#define UN(op, a) expr_unary(c->g, OP_##op, a)

/* --- pointwise --- */

static void
build_axpy(Case *c)
{
	ExprId e[2] = {case_dim(c, "N", 7), case_dim(c, "M", 37)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 2, e);
	TensorId y = case_input(c, TENSOR_INPUT, "y", DT_F32, 1, e + 1);
	TensorId a = case_input(c, TENSOR_SCALAR, "a", DT_F32, 0, NULL);
	ExprId body = BIN(ADD, BIN(MUL, read_at(c, a, 0), read_at(c, x, 2, ax(c, 0), ax(c, 1))),
	                  read_at(c, y, 1, ax(c, 1)));
	Node n = case_node(2, body);
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static void
test_axpy(void **state)
{
	(void)state;
	CaseRun r = case_try(build_axpy);
	assert_true(r.map);
	assert_int_equal(r.kernels, 1);
}

static void
build_long_row(Case *c)
{
	ExprId e[1] = {case_dim(c, "N", 9001)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_I32, 1, e);
	Node n = case_node(1, BIN(MUL, read_at(c, x, 1, ax(c, 0)), read_at(c, x, 1, ax(c, 0))));
	case_result(c, "z", case_add(c, &n, "z", DT_I32, e), 0);
}

static void
test_long_row(void **state)
{
	(void)state;
	assert_true(case_try(build_long_row).map);
}

/* z[i, j] = x[j, i] + w[i + j]: a transposed read is a gather, a sum of axes is not. */
static void
build_views(Case *c)
{
	ExprId e[2] = {case_int(c, 5), case_int(c, 19)}, swapped[2] = {e[1], e[0]}, long_[1] = {case_int(c, 40)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F64, 2, swapped);
	TensorId w = case_input(c, TENSOR_INPUT, "w", DT_F64, 1, long_);
	Node n = case_node(2, BIN(ADD, read_at(c, x, 2, ax(c, 1), ax(c, 0)),
	                          read_at(c, w, 1, BIN(ADD, ax(c, 0), ax(c, 1)))));
	case_result(c, "z", case_add(c, &n, "z", DT_F64, e), 0);
}

static void
test_views(void **state)
{
	(void)state;
	assert_true(case_try(build_views).map);
}

static DType cast_from, cast_to;

static void
build_cast(Case *c)
{
	ExprId e[1] = {case_int(c, 26)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", cast_from, 1, e);
	case_range(c, x, dtype_info[cast_from].kind == KIND_UINT ? 0 : -7, 8);
	DType mid = dtype_info[cast_from].arith;
	ExprId v = expr_cast(c->g, mid, read_at(c, x, 1, ax(c, 0)));
	Node n = case_node(1, expr_cast(c->g, cast_to, BIN(ADD, v, v)));
	case_result(c, "z", case_add(c, &n, "z", cast_to, e), 0);
}

/* Two 4-bit elements share a byte, so their tasks must not run at once. */
static void
test_nibbles(void **state)
{
	(void)state;
	cast_from = DT_F32;
	cast_to = DT_U4;
	CaseRun r = case_try(build_cast);
	assert_true(r.serial && !r.map);
	assert_non_null(strstr(r.remarks, "remark[rows_nibbles]: z "));
	cast_to = DT_U8;
	assert_false(case_try(build_cast).serial);
}

static void
test_every_dtype(void **state)
{
	(void)state;
	for (int from = 1; from < DT_COUNT; from++)
		for (int to = 1; to < DT_COUNT; to++) {
			if ((from == DT_C64) != (to == DT_C64))
				continue;
			cast_from = (DType)from;
			cast_to = (DType)to;
			case_try(build_cast);
		}
}

/* --- demand --- */

/* z[i] = 0 < i && x[i - 1] > 0 ? x[i - 1] : y[i], where x[-1] must not be read. */
static void
build_guarded_read(Case *c)
{
	ExprId e[1] = {case_dim(c, "N", 21)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	TensorId y = case_input(c, TENSOR_INPUT, "y", DT_F32, 1, e);
	ExprId before = read_at(c, x, 1, BIN(SUB, ax(c, 0), case_int(c, 1)));
	ExprId cond = BIN(AND, BIN(LT, case_int(c, 0), ax(c, 0)),
	                  BIN(LT, expr_float(c->g, DT_F32, 0), before));
	Node n = case_node(1, expr_select(c->g, cond, before, read_at(c, y, 1, ax(c, 0))));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

/* z[i] = i < 10 || x[i - 10] < 0 ? 1 : 0 */
static void
build_or_read(Case *c)
{
	ExprId e[1] = {case_dim(c, "N", 21)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	ExprId back = read_at(c, x, 1, BIN(SUB, ax(c, 0), case_int(c, 10)));
	ExprId cond = BIN(OR, BIN(LT, ax(c, 0), case_int(c, 10)), BIN(LT, back, expr_float(c->g, DT_F32, 0)));
	Node n = case_node(1, expr_select(c->g, cond, case_int(c, 1), case_int(c, 0)));
	case_result(c, "z", case_add(c, &n, "z", DT_I64, e), 0);
}

static void
test_demand(void **state)
{
	(void)state;
	assert_true(case_try(build_guarded_read).map);
	case_try(build_or_read);
}

/* A deep chain of selects that share their operands: linear, not exponential. */
static void
build_shared_arms(Case *c)
{
	ExprId e[1] = {case_int(c, 12)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	AccessId id = case_access(c, ACCESS_GATHER);
	ExprId v = read_at(c, x, 1, ax(c, 0));
	for (int k = 0; k < 300; k++) {
		ExprId cond = BIN(LT, v, expr_float(c->g, DT_F32, k / 128.0));
		ExprId arm = BIN(SUB, v, gather_at(c, id, x, 1, BIN(IMOD, BIN(ADD, ax(c, 0), case_int(c, k)), case_int(c, 12))));
		v = expr_select(c->g, cond, v, arm);
	}
	Node n = case_node(1, v);
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static void
test_shared_arms(void **state)
{
	(void)state;
	case_try(build_shared_arms);
}

/* --- faults --- */

static int64_t gather_lo, gather_hi;
static bool gather_hidden, gather_stored;

/* z[i] = table[ids[i]]: directly, where ids[i] < L alone, and through a stored node. */
static void
build_gather(Case *c)
{
	ExprId e[1] = {case_dim(c, "N", 33)}, v[1] = {case_dim(c, "V", 10)};
	TensorId ids = case_input(c, TENSOR_INPUT, "ids", DT_I32, 1, e);
	case_range(c, ids, gather_lo, gather_hi);
	TensorId table = case_input(c, TENSOR_INPUT, "table", DT_F32, 1, v);
	TensorId limit = case_input(c, TENSOR_SCALAR, "L", DT_I64, 0, NULL);
	static const int64_t ten[1] = {10};
	case_given(c, limit, ten);
	AccessId id = case_access(c, ACCESS_GATHER);
	ExprId at = expr_cast(c->g, DT_I64, read_at(c, ids, 1, ax(c, 0)));
	ExprId value = gather_at(c, id, table, 1, at), zero = expr_float(c->g, DT_F32, 0);
	if (gather_stored) {
		Node n = case_node(1, value);
		value = read_at(c, case_add(c, &n, "t", DT_F32, e), 1, ax(c, 0));
	}
	if (gather_hidden)
		value = expr_select(c->g, BIN(LT, at, read_at(c, limit, 0)), value, zero);
	Node n = case_node(1, BIN(ADD, value, zero));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static void
gather(int64_t lo, int64_t hi, bool hidden, bool stored, AccessId fault)
{
	gather_lo = lo;
	gather_hi = hi;
	gather_hidden = hidden;
	gather_stored = stored;
	assert_int_equal(case_try(build_gather).fault, fault);
}

static void
test_gather(void **state)
{
	(void)state;
	for (int stored = 0; stored < 2; stored++) {
		gather(0, 10, false, stored, 0);
		gather(0, 14, false, stored, 1);
		gather(-3, 10, false, stored, 1);
		gather(0, 14, true, stored, 0);
		gather(-3, 14, true, stored, 1);
	}
}

/* --- folds --- */

static Monoid fold_monoid;
static DType fold_dtype;

/* z[i] = fold[j, k] x[i, j, k] */
static void
build_fold(Case *c)
{
	ExprId e[3] = {case_dim(c, "N", 9), case_dim(c, "M", 5), case_dim(c, "K", 7)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", fold_dtype, 3, e);
	case_range(c, x, fold_dtype == DT_U32 || fold_dtype == DT_U64 ? 0 : -4, 4);
	Node n = case_node(1, read_at(c, x, 3, ax(c, 0), ax(c, 1), ax(c, 2)));
	case_reduce(&n, fold_monoid, case_int(c, 0), e[1]);
	case_reduce(&n, fold_monoid, case_int(c, 0), e[2]);
	DType out = monoid_info[fold_monoid].index ? DT_I64 : fold_dtype;
	case_result(c, "z", case_add(c, &n, "z", out, e), 0);
}

static void
test_monoids(void **state)
{
	(void)state;
	static const DType types[] = {DT_F32, DT_F64, DT_I32, DT_I64, DT_U32, DT_U64, DT_C64, DT_BOOL};
	for (int m = 1; m < MON_COUNT; m++)
		for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
			bool logic = m == MON_ANY || m == MON_ALL, complex = types[t] == DT_C64;
			if (logic != (types[t] == DT_BOOL) || (complex && m != MON_SUM && m != MON_PROD))
				continue;
			fold_monoid = (Monoid)m;
			fold_dtype = types[t];
			case_try(build_fold);
		}
}

/* z[i] = sum[j < i where j mod 3 != 1](x[i] * x[j]) / count, with an empty first row. */
static void
build_ragged(Case *c)
{
	ExprId e[1] = {case_dim(c, "N", 17)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	Node n = case_node(1, BIN(MUL, read_at(c, x, 1, ax(c, 0)), read_at(c, x, 1, ax(c, 1))));
	case_reduce(&n, MON_SUM, case_int(c, 0), ax(c, 0));
	n.guard = BIN(NE, BIN(IMOD, ax(c, 1), case_int(c, 3)), case_int(c, 1));
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	ExprId touched = expr_make(c->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	n.finish = expr_select(c->g, touched, BIN(MUL, acc, acc), expr_float(c->g, DT_F32, -7));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

/* Bags: z[b] = max[l in off[b]..off[b+1]](x[l]) else -1, cut to x's extent. */
static void
build_bags(Case *c)
{
	static const int64_t off[6] = {-4, 3, 3, 9, 20, 31};
	ExprId e[1] = {case_int(c, 5)}, o[1] = {case_int(c, 6)}, v[1] = {case_dim(c, "V", 25)};
	TensorId offs = case_input(c, TENSOR_INPUT, "off", DT_I64, 1, o);
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, v);
	case_given(c, offs, off);
	Node n = case_node(1, read_at(c, x, 1, ax(c, 1)));
	case_reduce(&n, MON_MAX, read_at(c, offs, 1, ax(c, 0)),
	            read_at(c, offs, 1, BIN(ADD, ax(c, 0), case_int(c, 1))));
	n.axis[1].clamp = v[0];
	n.axis[1].cut = case_access(c, ACCESS_CUT);
	ExprId acc = expr_make(c->g, OP_ACC, DT_F32, 0, 0, NULL, 0);
	ExprId touched = expr_make(c->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0);
	n.finish = expr_select(c->g, touched, acc, expr_float(c->g, DT_F32, -1));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static void
test_ranges(void **state)
{
	(void)state;
	case_try(build_ragged);
	CaseRun r = case_try(build_bags);
	assert_int_equal(r.cut, 1);
	assert_int_equal(r.fault, 0);
}

static float signs[4] = {-0.0f, -0.0f, -0.0f, -0.0f};

static void
build_signed_sum(Case *c)
{
	ExprId e[2] = {case_int(c, 3), case_int(c, 4)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e + 1);
	case_given(c, x, signs);
	Node n = case_node(1, read_at(c, x, 1, ax(c, 1)));
	case_reduce(&n, MON_SUM, case_int(c, 0), BIN(MUL, ax(c, 0), case_int(c, 2)));
	case_result(c, "z", case_add(c, &n, "z", DT_F32, e), 0);
}

static void
test_signed_zeros(void **state)
{
	(void)state;
	const float *z = case_try(build_signed_sum).first_result;
	assert_memory_equal(&z[0], (&(float){0.0f}), 4); /* of nothing */
	assert_memory_equal(&z[1], (&(float){-0.0f}), 4);
	assert_memory_equal(&z[2], (&(float){-0.0f}), 4);
}

static float with_nan[6] = {1, 3, 3, 0, 0, 2};

static void
build_arg(Case *c)
{
	ExprId e[2] = {case_int(c, 2), case_int(c, 6)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e + 1);
	case_given(c, x, with_nan);
	Node n = case_node(1, read_at(c, x, 1, ax(c, 1)));
	case_reduce(&n, MON_ARGMAX, ax(c, 0), e[1]);
	case_result(c, "z", case_add(c, &n, "z", DT_I64, e), 0);
}

static void
test_arg(void **state)
{
	(void)state;
	with_nan[3] = 0;
	const int64_t *z = case_try(build_arg).first_result;
	assert_int_equal(z[0], 1);
	assert_int_equal(z[1], 0);
	with_nan[3] = with_nan[4] = NAN;
	z = case_try(build_arg).first_result;
	assert_int_equal(z[0], 3);
	assert_int_equal(z[1], 2);
}

/* Positions count from the lower end of each range, row by row. */
static void
build_positions(Case *c)
{
	ExprId e[3] = {case_int(c, 4), case_int(c, 9), case_int(c, 8)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_I32, 3, e);
	case_range(c, x, 0, 1000);
	Node n = case_node(1, read_at(c, x, 3, ax(c, 0), ax(c, 1), ax(c, 2)));
	case_reduce(&n, MON_ARGMIN, case_int(c, 2), e[1]);
	case_reduce(&n, MON_ARGMIN, ax(c, 0), case_int(c, 7));
	case_result(c, "z", case_add(c, &n, "z", DT_I64, e), 0);
}

static void
test_positions(void **state)
{
	(void)state;
	case_try(build_positions);
}

/* --- strict sums of products: one fma a term, in order --- */

enum { DOT = 37 };
static float dot_a[DOT], dot_b[DOT];

static void
build_dot(Case *c)
{
	ExprId e[1] = {case_int(c, DOT)};
	TensorId a = case_input(c, TENSOR_INPUT, "a", DT_F32, 1, e), b = case_input(c, TENSOR_INPUT, "b", DT_F32, 1, e);
	case_given(c, a, dot_a);
	case_given(c, b, dot_b);
	Node n = case_node(0, BIN(MUL, read_at(c, a, 1, ax(c, 0)), read_at(c, b, 1, ax(c, 0))));
	case_reduce(&n, MON_SUM, case_int(c, 0), e[0]);
	case_result(c, "s", case_add(c, &n, "s", DT_F32, NULL), 0);
}

static void
test_strict_dot(void **state)
{
	(void)state;
	float fused = -0.0f;
	volatile float separate = -0.0f;
	for (int k = 0; k < DOT; k++) {
		dot_a[k] = 1.0f + (float)k / 1024 + 0x1p-20f;
		dot_b[k] = (k % 3 ? -1.0f : 1.7f) / (float)(k + 1);
		volatile float product = dot_a[k] * dot_b[k];
		separate = separate + product;
		fused = fmaf(dot_a[k], dot_b[k], fused);
	}
	const float *s = case_try(build_dot).first_result; /* the first configuration is strict */
	assert_memory_equal(s, &fused, 4);
	assert_true(fused != separate); /* else the data shows nothing */
}

/* --- a fold is demanded, whatever finish makes of it --- */

static void
build_ignored(Case *c)
{
	ExprId e[1] = {case_int(c, 3)};
	TensorId x = case_input(c, TENSOR_INPUT, "x", DT_F32, 1, e);
	Node n = case_node(0, gather_at(c, case_access(c, ACCESS_GATHER), x, 1, BIN(ADD, ax(c, 0), case_int(c, 1))));
	case_reduce(&n, MON_MAX, case_int(c, 0), e[0]);
	n.finish = expr_float(c->g, DT_F32, 1);
	case_result(c, "s", case_add(c, &n, "s", DT_F32, NULL), 0);
}

static void
test_ignored(void **state)
{
	(void)state;
	assert_int_equal(case_try(build_ignored).fault, 1);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_axpy, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_long_row, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_views, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_nibbles, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_every_dtype, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_demand, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_shared_arms, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_gather, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_monoids, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_ranges, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_signed_zeros, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_arg, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_positions, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_strict_dot, case_setup, case_teardown),
		cmocka_unit_test_setup_teardown(test_ignored, case_setup, case_teardown),
	};
	case_choose(argc, argv);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
