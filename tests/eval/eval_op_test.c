/* Every operation of ops.def that a body may hold, on known answers; special values; overflow;
 * what is unknown. A row's answer is exact where err is 0. */
#include "bench.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "ir/eval_run.h"

static bool tried[OP_COUNT];

/* op(a, b, c) with operands of type `from` and a result of type `to`. */
static Val
apply(FpMode fp, Op op, DType from, DType to, Val a, Val b)
{
	Graph g = {.fp = fp};
	Run r = {.g = &g};
	Instr p = {.op = (uint8_t)op, .dtype = (uint8_t)to, .from = (uint8_t)from, .narg = 2};
	const Val *arg[2] = {&a, &b};
	tried[op] = true;
	Val v;
	op_apply(&r, &p, arg, &v);
	return v;
}

static bool
same(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b && (a != 0 || signbit(a) == signbit(b));
}

typedef struct {
	Op op;
	DType t;
	double a, b, want;
} FloatRow;

static void
check_floats(const FloatRow *row, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		Val v = apply(FP_RELAXED, row[k].op, row[k].t, row[k].t, val_float(row[k].a),
			val_float(row[k].b));
		if (!same((double)v.re, row[k].want) || (!v.soft && v.err != 0))
			fail_msg("%s(%a, %a) = %a +- %g, not %a", op_info[row[k].op].id, row[k].a, row[k].b,
			         (double)v.re, v.err, row[k].want);
	}
}

#define CHECK_FLOATS(rows) check_floats(rows, sizeof rows / sizeof rows[0])

static void
float_arithmetic_is_ieee(void **state)
{
	(void)state;
	static const FloatRow rows[] = {
		{OP_ADD, DT_F32, 1, 0x1p-24, 1}, {OP_ADD, DT_F32, 1, 0x1.8p-24, 1 + 0x1p-23},
		{OP_ADD, DT_F64, 1, 0x1p-53, 1}, {OP_ADD, DT_F64, 1, 0x1.8p-53, 1 + 0x1p-52},
		{OP_ADD, DT_F32, FLT_MAX, FLT_MAX, INFINITY}, {OP_ADD, DT_F32, INFINITY, -INFINITY, NAN},
		{OP_ADD, DT_F32, -0.0, -0.0, -0.0}, {OP_ADD, DT_F32, -0.0, 0, 0}, {OP_ADD, DT_F32, 1, -1, 0},
		{OP_SUB, DT_F32, 3, 5, -2}, {OP_SUB, DT_F32, 0x1p-149, 0x1p-148, -0x1p-149},
		{OP_MUL, DT_F32, 0x1.000002p0, 0x1.000002p0, 0x1.000004p0},
		{OP_MUL, DT_F32, 1e30f, 1e30f, INFINITY},
		{OP_MUL, DT_F32, INFINITY, 0, NAN}, {OP_MUL, DT_F32, 0x1p-100, 0x1p-49, 0x1p-149},
		{OP_MUL, DT_F32, 0x1p-100, -0x1p-60, -0.0},
		{OP_MUL, DT_F64, 0x1.0000000000001p0, 3, 0x1.8000000000002p1},
		{OP_FDIV, DT_F32, 1, 3, 0x1.555556p-2}, {OP_FDIV, DT_F64, 1, 3, 0x1.5555555555555p-2},
		{OP_FDIV, DT_F32, 1, 0, INFINITY}, {OP_FDIV, DT_F32, 1, -0.0, -INFINITY},
		{OP_FDIV, DT_F32, 0, 0, NAN},
		{OP_FDIV, DT_F32, -5, INFINITY, -0.0},
		{OP_NEG, DT_F32, 0, 0, -0.0}, {OP_NEG, DT_F32, -3, 0, 3}, {OP_ABS, DT_F32, -0.0, 0, 0},
		{OP_ABS, DT_F32, -INFINITY, 0, INFINITY}, {OP_SIGN, DT_F32, -7, 0, -1},
		{OP_SIGN, DT_F32, 0.1, 0, 1},
		{OP_SIGN, DT_F32, -0.0, 0, 0}, {OP_SIGN, DT_F32, NAN, 0, NAN},
		{OP_MAX, DT_F32, -0.0, 0, 0}, {OP_MAX, DT_F32, 0, -0.0, 0}, {OP_MAX, DT_F32, NAN, 1, NAN},
		{OP_MAX, DT_F32, 1, NAN, NAN}, {OP_MAX, DT_F32, 2, 1, 2}, {OP_MIN, DT_F32, -0.0, 0, -0.0},
		{OP_MIN, DT_F32, 0, -0.0, -0.0}, {OP_MIN, DT_F32, NAN, 1, NAN},
		{OP_MIN, DT_F32, -INFINITY, 1, -INFINITY},
		{OP_FLOOR, DT_F32, -1.5, 0, -2}, {OP_CEIL, DT_F32, -1.5, 0, -1},
		{OP_TRUNC, DT_F32, -1.5, 0, -1},
		{OP_ROUND, DT_F32, 2.5, 0, 2}, {OP_ROUND, DT_F32, 3.5, 0, 4}, {OP_ROUND, DT_F32, -0.5, 0, -0.0},
		{OP_FLOOR, DT_F32, INFINITY, 0, INFINITY}, {OP_CEIL, DT_F32, NAN, 0, NAN},
		{OP_SQRT, DT_F32, 2, 0, 0x1.6a09e6p0}, {OP_SQRT, DT_F64, 2, 0, 0x1.6a09e667f3bcdp0},
		{OP_SQRT, DT_F32, -0.0, 0, -0.0}, {OP_SQRT, DT_F32, -1, 0, NAN},
		{OP_SQRT, DT_F32, INFINITY, 0, INFINITY},
	};
	CHECK_FLOATS(rows);
}

static void
functions_at_their_ends(void **state)
{
	(void)state;
	static const FloatRow rows[] = {
		{OP_EXP, DT_F32, -INFINITY, 0, 0}, {OP_EXP, DT_F32, INFINITY, 0, INFINITY},
		{OP_EXP, DT_F32, 100, 0, INFINITY}, {OP_EXP, DT_F32, 1000, 0, INFINITY},
		{OP_EXP, DT_F32, 12000, 0, INFINITY}, {OP_EXP, DT_F64, 710, 0, INFINITY},
		{OP_EXP, DT_F64, 11000, 0, INFINITY}, {OP_EXP2, DT_F64, 1025, 0, INFINITY},
		{OP_EXPM1, DT_F32, 1000, 0, INFINITY}, {OP_EXPM1, DT_F64, 710, 0, INFINITY},
		{OP_EXP2, DT_F32, 129, 0, INFINITY}, {OP_EXP2, DT_F32, -INFINITY, 0, 0},
		{OP_EXP, DT_F32, NAN, 0, NAN},
		{OP_EXPM1, DT_F32, -INFINITY, 0, -1}, {OP_EXPM1, DT_F32, -0.0, 0, -0.0},
		{OP_LOG, DT_F32, 0, 0, -INFINITY}, {OP_LOG, DT_F32, -1, 0, NAN},
		{OP_LOG, DT_F32, INFINITY, 0, INFINITY},
		{OP_LOG2, DT_F32, 0, 0, -INFINITY}, {OP_LOG1P, DT_F32, -1, 0, -INFINITY},
		{OP_LOG1P, DT_F32, -2, 0, NAN},
		{OP_LOG1P, DT_F32, -0.0, 0, -0.0}, {OP_RSQRT, DT_F32, 0, 0, INFINITY},
		{OP_RSQRT, DT_F32, INFINITY, 0, 0},
		{OP_RSQRT, DT_F32, -1, 0, NAN}, {OP_TANH, DT_F32, INFINITY, 0, 1},
		{OP_TANH, DT_F32, -INFINITY, 0, -1},
		{OP_ERF, DT_F32, -INFINITY, 0, -1}, {OP_SIN, DT_F32, -0.0, 0, -0.0},
		{OP_SIN, DT_F32, INFINITY, 0, NAN},
		{OP_COS, DT_F32, -INFINITY, 0, NAN},
	};
	CHECK_FLOATS(rows);
}

/* C23 F.10.4.4, and what a square root would get wrong. */
static void
pow_follows_the_table(void **state)
{
	(void)state;
	static const FloatRow rows[] = {
		{OP_POW, DT_F32, 2, 129, INFINITY}, {OP_POW, DT_F32, 2, 2000, INFINITY},
		{OP_POW, DT_F32, -2, 2001, -INFINITY}, {OP_POW, DT_F32, 10, 1e4, INFINITY},
		{OP_POW, DT_F64, 2, 1025, INFINITY}, {OP_POW, DT_F64, 0.5, -3000, INFINITY},
		{OP_POW, DT_F32, NAN, 0, 1}, {OP_POW, DT_F32, INFINITY, -0.0, 1}, {OP_POW, DT_F32, 1, NAN, 1},
		{OP_POW, DT_F32, 1, INFINITY, 1}, {OP_POW, DT_F32, -1, INFINITY, 1},
		{OP_POW, DT_F32, -1, -INFINITY, 1},
		{OP_POW, DT_F32, 0, -1, INFINITY}, {OP_POW, DT_F32, -0.0, -1, -INFINITY},
		{OP_POW, DT_F32, -0.0, -2, INFINITY},
		{OP_POW, DT_F32, 0, -0.5, INFINITY}, {OP_POW, DT_F32, 0, -INFINITY, INFINITY},
		{OP_POW, DT_F32, 0, 3, 0},
		{OP_POW, DT_F32, -0.0, 3, -0.0}, {OP_POW, DT_F32, -0.0, 2, 0}, {OP_POW, DT_F32, -0.0, 0.5, 0},
		{OP_POW, DT_F32, -8, 0.5, NAN}, {OP_POW, DT_F32, 0.5, -INFINITY, INFINITY},
		{OP_POW, DT_F32, 2, -INFINITY, 0},
		{OP_POW, DT_F32, -0.5, INFINITY, 0}, {OP_POW, DT_F32, -2, INFINITY, INFINITY},
		{OP_POW, DT_F32, -INFINITY, -1, -0.0}, {OP_POW, DT_F32, -INFINITY, -2, 0},
		{OP_POW, DT_F32, -INFINITY, 3, -INFINITY},
		{OP_POW, DT_F32, -INFINITY, 2, INFINITY}, {OP_POW, DT_F32, -INFINITY, 0.5, INFINITY},
		{OP_POW, DT_F32, INFINITY, -1, 0}, {OP_POW, DT_F32, INFINITY, 2, INFINITY},
		{OP_POW, DT_F32, NAN, 1, NAN},
		{OP_POW, DT_F32, 2, NAN, NAN}, {OP_POW, DT_F32, 1e30, 2, INFINITY},
		{OP_POW, DT_F32, -1e30, 3, -INFINITY},
	};
	CHECK_FLOATS(rows);
	Val v = apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, val_float(-3), val_float(3));
	assert_true(v.re == -27 && v.err > 0 && v.err < 1e-5);
}

static void
functions_are_where_libm_says(void **state)
{
	(void)state;
	static const struct { Op op; double x, want; } rows[] = {
		{OP_EXP, 1, 2.718281828459045}, {OP_EXP2, 0.5, 1.4142135623730951},
		{OP_EXPM1, 1e-10, 1.00000000005e-10},
		{OP_LOG, 10, 2.302585092994046}, {OP_LOG2, 10, 3.321928094887362},
		{OP_LOG1P, 1e-10, 9.9999999995e-11},
		{OP_TANH, 0.5, 0.46211715726000976}, {OP_ERF, 0.5, 0.5204998778130465},
		{OP_SIN, 1e22, -0.8522008497671888},
		{OP_COS, 1e22, 0.523214785395139}, {OP_RSQRT, 2, 0.7071067811865476},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		for (int wide = 0; wide < 2; wide++) {
			DType t = wide ? DT_F64 : DT_F32;
			Val v = apply(FP_RELAXED, rows[k].op, t, t, val_float(rows[k].x), val_float(0));
			if (fabs((double)v.re - rows[k].want) > 2e-16 * fabs(rows[k].want))
				fail_msg("%s(%g) = %.17g", op_info[rows[k].op].id, rows[k].x, (double)v.re);
			assert_true(v.err > 0.4 * eval_ulp(t, rows[k].want) &&
				v.err < 2.1 * eval_ulp(t, rows[k].want));
		}
}

static void
comparisons_and_logic(void **state)
{
	(void)state;
	static const struct { Op op; double a, b; int want; } rows[] = {
		{OP_EQ, 0, -0.0, 1}, {OP_EQ, NAN, NAN, 0}, {OP_NE, NAN, NAN, 1}, {OP_NE, 1, 1, 0},
		{OP_LT, 1, 2, 1},
		{OP_LT, NAN, 1, 0}, {OP_LE, NAN, 1, 0}, {OP_LE, 2, 2, 1}, {OP_LT, 2, 2, 0},
		{OP_ISNAN, NAN, 0, 1},
		{OP_ISNAN, INFINITY, 0, 0}, {OP_LE, -INFINITY, INFINITY, 1},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		Val v = apply(FP_RELAXED, rows[k].op, DT_F32, DT_BOOL, val_float(rows[k].a),
			val_float(rows[k].b));
		assert_int_equal(v.i, rows[k].want);
		assert_true(v.err == 0);
	}
	assert_int_equal(apply(FP_RELAXED, OP_NOT, DT_BOOL, DT_BOOL, val_int(1), val_int(0)).i, 0);
	assert_int_equal(apply(FP_RELAXED, OP_LT, DT_U64, DT_BOOL, val_int(1), val_int(-1)).i, 1);
	assert_int_equal(apply(FP_RELAXED, OP_LT, DT_I64, DT_BOOL, val_int(1), val_int(-1)).i, 0);
	Val three = {.i = 3, .err = 2};
	assert_int_equal(int_order(DT_I32, val_int(4), three), 3);
	assert_int_equal(int_order(DT_I32, three, val_int(5)), 3);
	assert_int_equal(int_order(DT_I32, three, val_int(6)), -1);
	Val near = {.re = 1, .err = 0.1};
	Val v = apply(FP_RELAXED, OP_LT, DT_F32, DT_BOOL, near, val_float(1.05));
	assert_true(v.err == 1 && v.i == 1);
	v = apply(FP_RELAXED, OP_LT, DT_F32, DT_BOOL, near, val_float(1.2));
	assert_true(v.err == 0 && v.i == 1);
}

static void
integers_are_total(void **state)
{
	(void)state;
	static const struct { Op op; DType t; int64_t a, b, want; } rows[] = {
		{OP_ADD, DT_I32, INT32_MAX, 1, INT32_MIN}, {OP_ADD, DT_U32, UINT32_MAX, 2, 1},
		{OP_SUB, DT_U64, 0, 1, -1}, {OP_MUL, DT_I64, INT64_MAX, 2, -2},
		{OP_MUL, DT_U32, 1 << 16, 1 << 16, 0},
		{OP_IDIV, DT_I32, -7, 2, -4}, {OP_IDIV, DT_I32, 7, -2, -4}, {OP_IDIV, DT_I32, -7, -2, 3},
		{OP_IDIV, DT_I32, 5, 0, -1}, {OP_IDIV, DT_U32, 5, 0, UINT32_MAX},
		{OP_IDIV, DT_U64, -1, 2, INT64_MAX},
		{OP_IDIV, DT_I32, INT32_MIN, -1, INT32_MIN}, {OP_IDIV, DT_I64, INT64_MIN, -1, INT64_MIN},
		{OP_IMOD, DT_I32, -7, 2, 1}, {OP_IMOD, DT_I32, 7, -2, -1}, {OP_IMOD, DT_I32, -6, 2, 0},
		{OP_IMOD, DT_I32, 5, 0, 5}, {OP_IMOD, DT_I64, INT64_MIN, -1, 0}, {OP_IMOD, DT_U64, -1, 10, 5},
		{OP_POW, DT_I32, 3, 4, 81}, {OP_POW, DT_I32, 2, 31, INT32_MIN}, {OP_POW, DT_I32, 0, 0, 1},
		{OP_POW, DT_I32, 1, -5, 1}, {OP_POW, DT_I32, -1, -5, -1}, {OP_POW, DT_I32, -1, -4, 1},
		{OP_POW, DT_I32, 0, -1, -1}, {OP_POW, DT_I32, 7, -1, 0},
		{OP_POW, DT_U32, 3, UINT32_MAX, (int64_t)2863311531},
		{OP_NEG, DT_I32, INT32_MIN, 0, INT32_MIN}, {OP_NEG, DT_U32, 1, 0, UINT32_MAX},
		{OP_ABS, DT_I32, INT32_MIN, 0, INT32_MIN}, {OP_ABS, DT_I64, -9, 0, 9},
		{OP_SIGN, DT_I32, -9, 0, -1}, {OP_SIGN, DT_I32, 0, 0, 0}, {OP_SIGN, DT_I64, 9, 0, 1},
		{OP_SIGN, DT_U64, -9, 0, 1}, {OP_MIN, DT_U64, -1, 1, 1}, {OP_MIN, DT_I64, -1, 1, -1},
		{OP_MAX, DT_U32, UINT32_MAX, 1, UINT32_MAX},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		Val v = apply(FP_RELAXED, rows[k].op, rows[k].t, rows[k].t, val_int(rows[k].a),
			val_int(rows[k].b));
		if (v.i != rows[k].want || v.err != 0)
			fail_msg("%s %s(%lld, %lld) = %lld, not %lld", op_info[rows[k].op].id,
				dtype_info[rows[k].t].text,
			         (long long)rows[k].a, (long long)rows[k].b, (long long)v.i,
				(long long)rows[k].want);
	}
	Val sure = apply(FP_RELAXED, OP_CAST, DT_F32, DT_I64, val_float(7.9), val_int(0));
	assert_int_equal(sure.i, 7);
}

static Val
complex_val(double re, double im)
{
	return (Val){.re = re, .im = im};
}

static void
complex_numbers(void **state)
{
	(void)state;
	Val a = complex_val(1, 2), b = complex_val(3, -4);
	Val v = apply(FP_RELAXED, OP_ADD, DT_C64, DT_C64, a, b);
	assert_true(v.re == 4 && v.im == -2 && v.err == 0 && v.ierr == 0);
	v = apply(FP_RELAXED, OP_SUB, DT_C64, DT_C64, a, b);
	assert_true(v.re == -2 && v.im == 6 && v.err == 0 && v.ierr == 0);
	v = apply(FP_RELAXED, OP_MUL, DT_C64, DT_C64, a, b);
	assert_true(v.re == 11 && v.im == 2 && v.err == 0);
	v = apply(FP_RELAXED, OP_FDIV, DT_C64, DT_C64, a, b);
	assert_true(fabsl(v.re + 0.2L) < 1e-15L && fabsl(v.im - 0.4L) < 1e-15L && v.err > 0 &&
		v.err < 1e-6);
	v = apply(FP_RELAXED, OP_NEG, DT_C64, DT_C64, a, b);
	assert_true(v.re == -1 && v.im == -2);
	v = apply(FP_RELAXED, OP_CONJ, DT_C64, DT_C64, a, b);
	assert_true(v.re == 1 && v.im == -2);
	assert_true(apply(FP_RELAXED, OP_RE, DT_C64, DT_F32, a, b).re == 1);
	assert_true(apply(FP_RELAXED, OP_IM, DT_C64, DT_F32, a, b).re == 2);
	v = apply(FP_RELAXED, OP_CPLX, DT_F32, DT_C64, val_float(5), val_float(6));
	assert_true(v.re == 5 && v.im == 6);
	assert_int_equal(apply(FP_RELAXED, OP_EQ, DT_C64, DT_BOOL, a, a).i, 1);
	assert_int_equal(apply(FP_RELAXED, OP_EQ, DT_C64, DT_BOOL, a, complex_val(1, 3)).i, 0);
	assert_int_equal(apply(FP_RELAXED, OP_NE, DT_C64, DT_BOOL, a, complex_val(0, 2)).i, 1);
	v = apply(FP_RELAXED, OP_ROOT, DT_I64, DT_C64, val_int(-1), val_int(4));
	assert_true(v.re == 0 && fabsl(v.im + 1) < 1e-15L && v.err <= 0x1p-23);
	v = apply(FP_RELAXED, OP_ROOT, DT_I64, DT_C64, val_int(INT64_C(1) << 62), val_int(3));
	assert_true(fabsl(v.re + 0.5L) < 1e-15L && fabsl(v.im - 0.86602540378443864676L) < 1e-15L);
}

/* Where an interval meets a pole, a threshold or a border, no claim is made. */
static void
unknown_rather_than_wrong(void **state)
{
	(void)state;
	Val zero = {.re = 0, .err = 1e-9}, edge = {.re = 88.72283, .err = 1e-4},
		big = {.re = 3.4e38, .err = 1e36};
	assert_true(isinf(apply(FP_RELAXED, OP_FDIV, DT_F32, DT_F32, val_float(1), zero).err));
	assert_true(isinf(apply(FP_RELAXED, OP_LOG, DT_F32, DT_F32, zero, zero).err));
	assert_true(isinf(apply(FP_RELAXED, OP_SQRT, DT_F32, DT_F32, zero, zero).err));
	assert_true(isinf(apply(FP_RELAXED, OP_EXP, DT_F32, DT_F32, edge, zero).err));
	assert_true(isinf(apply(FP_RELAXED, OP_ADD, DT_F32, DT_F32, big, val_float(1e36)).err));
	assert_true(isinf(apply(FP_RELAXED, OP_MUL, DT_F32, DT_F32, val_float(INFINITY), zero).err));
	assert_true(isinf(apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, zero, val_float(-1)).err));
	Val v = apply(FP_RELAXED, OP_ISNAN, DT_F32, DT_BOOL, val_unknown(), zero);
	assert_true(v.err == 1);
	/* a NaN beats what is unknown, in a sum and in a maximum */
	assert_true(apply(FP_RELAXED, OP_ADD, DT_F32, DT_F32, val_float(NAN), val_unknown()).err == 0);
	/* an overflowing product is infinite unless an addition may take it unrounded */
	Val p = apply(FP_RELAXED, OP_MUL, DT_F32, DT_F32, val_float(1e30), val_float(1e30));
	assert_true(isinf(p.re) && p.err == 0);
	assert_true(isinf(apply(FP_RELAXED, OP_ADD, DT_F32, DT_F32, p, val_float(-1e38)).err));
	assert_true(isinf(apply(FP_RELAXED, OP_SUB, DT_F32, DT_F32, p, p).err));
	const Val minus = apply(FP_RELAXED, OP_MUL, DT_F32, DT_F32, val_float(-1e30), val_float(1e30));
	const Val up[] = {val_float(0), val_float(1e38), p, {.re = 1, .err = 0.5}};
	for (unsigned k = 0; k < sizeof up / sizeof up[0]; k++) {
		Val over = apply(FP_RELAXED, OP_ADD, DT_F32, DT_F32, p, up[k]);
		Val under = apply(FP_RELAXED, OP_SUB, DT_F32, DT_F32, minus, up[k]);
		assert_true(over.err == 0 && over.re > 0 && isinf(over.re) && under.err == 0 && under.re < 0 && isinf(under.re));
	}
	Val perhaps = {.re = 1, .err = 2};
	assert_true(isinf(apply(FP_RELAXED, OP_ADD, DT_F32, DT_F32, perhaps, p).err));
	assert_true(apply(FP_RELAXED, OP_MAX, DT_F32, DT_F32, p, val_float(1)).err == 0);
}

/* What overflows whatever the operands' errors is infinite, also where it is beyond all doubles; what may or may not
 * is open, and shows what an exact computation has. */
static void
far_overflow_is_certain(void **state)
{
	(void)state;
	static const struct { Op op; DType t; double a, aerr, b, berr; } rows[] = {
		{OP_EXP, DT_F32, 1000, 1e-3, 0, 0}, {OP_EXP, DT_F32, 12000, 1, 0, 0}, {OP_EXP, DT_F64, 800, 0.1, 0, 0},
		{OP_EXP2, DT_F64, 3000, 1e-3, 0, 0}, {OP_EXPM1, DT_F32, 900, 1e-3, 0, 0},
		{OP_POW, DT_F32, 2, 1e-5, 2000, 1e-3}, {OP_POW, DT_F64, 10, 1e-4, 6000, 1e-3},
		{OP_MUL, DT_F64, 1e200, 1e185, 1e200, 1e185}, {OP_FDIV, DT_F64, 1e200, 1e185, 1e-200, 1e-215},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		Val a = {.re = rows[k].a, .err = rows[k].aerr}, b = {.re = rows[k].b, .err = rows[k].berr};
		Val v = apply(FP_RELAXED, rows[k].op, rows[k].t, rows[k].t, a, b);
		if (!isinf(v.re) || v.re < 0 || v.err != 0)
			fail_msg("%s(%g, %g): %Lg +- %g", op_info[rows[k].op].id, rows[k].a, rows[k].b, v.re, v.err);
	}
	Val edge = apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, val_float(2), val_float(128));
	assert_true(isinf(edge.err) && edge.re == 0x1p128L);
	edge = number_cast(DT_F32, DT_BF16, edge);
	assert_true(isinf(edge.err) && edge.re == 0x1p128L);
}

/* Errors of operands come through with the slope there, and no larger. */
static void
bounds_follow_the_slope(void **state)
{
	(void)state;
	static const struct { Op op; double x, err, least, most; } rows[] = {
		{OP_SIN, 1.5707963, 1e-3, 5e-7, 1.2e-6}, {OP_SIN, 0, 1e-3, 9.99e-4, 1.01e-3},
		{OP_COS, 0, 1e-3, 5e-7, 1.2e-6},
		{OP_SIN, 100, 1e9, 1, 2}, {OP_EXP, 3, 1e-3, 0.02, 0.0203}, {OP_LOG, 0.01, 1e-4, 0.01, 0.0102},
		{OP_SQRT, 1e-4, 1e-6, 5e-5, 5.1e-5}, {OP_RSQRT, 4, 0.01, 6.2e-4, 6.4e-4},
		{OP_TANH, 20, 1, 0, 3e-7},
		{OP_ERF, 0, 1e-3, 1.128e-3, 1.14e-3}, {OP_EXP2, -1, 0.01, 3.4e-3, 3.6e-3},
		{OP_LOG2, 8, 0.08, 0.0144, 0.0147},
		{OP_EXPM1, 0, 1e-3, 1e-3, 1.02e-3}, {OP_LOG1P, -0.5, 1e-3, 2e-3, 2.03e-3},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		Val x = {.re = rows[k].x, .err = rows[k].err};
		Val v = apply(FP_RELAXED, rows[k].op, DT_F32, DT_F32, x, x);
		if (!(v.err >= rows[k].least && v.err <= rows[k].most))
			fail_msg("%s(%g +- %g): %g", op_info[rows[k].op].id, rows[k].x, rows[k].err, v.err);
	}
	Val subnormal = apply(FP_STRICT, OP_EXP, DT_F32, DT_F32, val_float(-100), val_float(0));
	assert_true(subnormal.err >= 0x1p-149 && subnormal.err < 0x1p-148);
	Val two = {.re = 2, .err = 1e-3}, three = {.re = 3, .err = 1e-3}, zero = {0},
		tenth = {.re = 0.05, .err = 0.1};
	Val p = apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, two, three);
	assert_true(p.err > 0.0175 && p.err < 0.018); /* 12 * 1e-3 + 8 ln 2 * 1e-3 */
	p = apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, arith_neg(two), val_float(3));
	assert_true(p.re == -8 && p.err > 0.012 && p.err < 0.0125);
	p = apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, tenth, val_float(2));
	assert_true(fabsl(p.re - 0.0025L) < 1e-9L && p.err > 0.0199 && p.err < 0.0205);
	assert_true(apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, zero, two).err < 1e-40);
	assert_true(isinf(apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, zero, tenth).err));
	assert_true(isinf(apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, arith_neg(two), three).err));
	p = apply(FP_RELAXED, OP_POW, DT_F32, DT_F32, val_float(4), arith_neg(tenth));
	assert_true(p.err > 0.138 && p.err < 0.141); /* 4^0.05 - 4^-0.05 is 0.139 */
	Val at_zero = {.re = 1e-3, .err = 1e-3};
	p = apply(FP_RELAXED, OP_SQRT, DT_F32, DT_F32, at_zero, zero);
	assert_true(p.err > 0.0316 && p.err < 0.0321);
	assert_true(isinf(apply(FP_RELAXED, OP_LOG, DT_F32, DT_F32, at_zero, zero).err));
	assert_true(isinf(apply(FP_RELAXED, OP_RSQRT, DT_F32, DT_F32, at_zero, zero).err));
	p = apply(FP_RELAXED, OP_FDIV, DT_F32, DT_F32, three, two);
	assert_true(p.err > 1.25e-3 && p.err < 1.26e-3);
	p = apply(FP_RELAXED, OP_MUL, DT_F32, DT_F32, three, two);
	assert_true(p.err > 5e-3 && p.err < 5.01e-3);
	p = apply(FP_RELAXED, OP_MAX, DT_F32, DT_F32, two, (Val){.re = 1.999, .err = 0.01});
	assert_true(p.re == 2 && p.err > 8.9e-3 && p.err < 9.1e-3);
}

/* Fast mode allows more than relaxed, and relaxed at least what strict does. */
static void
modes_are_ordered(void **state)
{
	(void)state;
	static const Op ops[] = {OP_FDIV, OP_SQRT, OP_RSQRT, OP_EXP, OP_EXP2, OP_EXPM1, OP_LOG, OP_LOG2,
		OP_LOG1P,
		OP_TANH, OP_ERF, OP_SIN, OP_COS, OP_POW};
	for (size_t k = 0; k < sizeof ops / sizeof ops[0]; k++) {
		double err[3];
		static const FpMode modes[3] = {FP_STRICT, FP_RELAXED, FP_FAST};
		for (int m = 0; m < 3; m++)
			err[m] = apply(modes[m], ops[k], DT_F32, DT_F32, val_float(0.7), val_float(1.3)).err;
		if (!(err[0] <= err[1] && err[1] < err[2] && err[2] < 1e-3))
			fail_msg("%s: %g %g %g", op_info[ops[k]].id, err[0], err[1], err[2]);
	}
	double near = apply(FP_FAST, OP_EXP, DT_F32, DT_F32, val_float(1), val_float(0)).err / exp(1);
	double far = apply(FP_FAST, OP_EXP, DT_F32, DT_F32, val_float(50), val_float(0)).err / exp(50);
	assert_true(far > 5 * near); /* growing with the size of the operand */
	Val tiny = apply(FP_FAST, OP_ADD, DT_F32, DT_F32, (Val){.re = 1e-39, .err = 1e-45},
		val_float(1e-39));
	assert_true(tiny.err >= 0x1p-126); /* it may be flushed */
}

/* 1/16 ulp of the narrow type, with f32's exponents; half an ulp of f32 for the rounding is within. */
static void
narrowed_functions(void **state)
{
	(void)state;
	static const double at[] = {0, 1, -3.5, 80, -80, -90};
	for (size_t k = 0; k < sizeof at / sizeof at[0]; k++) {
		int ex;
		frexp(exp(at[k]), &ex);
		Val bf16 = math_unary(FP_RELAXED, OP_EXP, DT_F32, DT_BF16, val_float(at[k]));
		Val f16 = math_unary(FP_FAST, OP_EXP, DT_F32, DT_F16, val_float(at[k]));
		double least = fmax(ldexp(1, ex - 8), 0x1p-133) / 16, finer = fmax(ldexp(1, ex - 11), 0x1p-136) / 16;
		if (!(bf16.err >= least && bf16.err < 1.01 * least && f16.err >= finer && f16.err < finer + 0x1p-120 + finer * 0.01))
			fail_msg("exp(%g): %g and %g, not %g and %g", at[k], bf16.err, f16.err, least, finer);
	}
	/* tanh: 2^-21 and 1.5 ulp, or what is allowed in proportion, whichever is less */
	const double one = math_unary(FP_RELAXED, OP_TANH, DT_F32, DT_BF16, val_float(1)).err;
	assert_true(one > 0x1p-21 && one < 0x1p-21 + 0x1p-23);
	assert_true(math_unary(FP_RELAXED, OP_TANH, DT_F32, DT_F16, val_float(1)).err == one);
	const double small = math_unary(FP_RELAXED, OP_TANH, DT_F32, DT_F16, val_float(0x1.8p-12)).err;
	assert_true(small > 0.99 * 0x1p-26 && small < 1.01 * 0x1p-26);
	assert_true(math_unary(FP_RELAXED, OP_TANH, DT_F32, DT_NONE, val_float(1)).err < 0x1p-23);
	Val top = math_unary(FP_RELAXED, OP_EXP, DT_F32, DT_BF16, val_float(INFINITY));
	assert_true(isinf(top.re) && top.err == 0);
	assert_true(isinf(math_unary(FP_RELAXED, OP_EXP, DT_F32, DT_BF16, val_float(100)).re));
}

/* (1+2^-12)^2 - 1 is 2^-11 contracted and 2^-11 + 2^-24 rounded to f32: both are allowed. */
static void
additions_may_take_products_unrounded(void **state)
{
	(void)state;
	float x = 0x1.001p0f + 0x1p-23f;
	Val p = apply(FP_RELAXED, OP_MUL, DT_F32, DT_F32, val_float(x), val_float(x));
	Val d = apply(FP_RELAXED, OP_SUB, DT_F32, DT_F32, p, val_float(1));
	assert_true(p.soft && fabs((double)d.re - (double)fmaf(x, x, -1)) <= d.err);
	volatile float rounded = x * x;
	assert_true(fabs((double)d.re - (double)(rounded - 1)) <= d.err && fmaf(x, x, -1) != rounded - 1);
	Val c = apply(FP_RELAXED, OP_EQ, DT_F32, DT_BOOL, p, val_float(rounded));
	assert_true(c.i == 1 && c.err == 0);
}

/* What the expression machine runs itself, and what never reaches it. */
static void
every_row_has_a_case(void **state)
{
	(void)state;
	static const Op elsewhere[] = {OP_CONST, OP_IVAR, OP_AXIS, OP_DIM, OP_ACC, OP_TOUCHED, OP_READ,
		OP_AND,
		OP_OR, OP_SELECT, OP_RAND, OP_RANDN};
	for (size_t k = 0; k < sizeof elsewhere / sizeof elsewhere[0]; k++)
		tried[elsewhere[k]] = true;
	for (int op = 1; op < OP_COUNT; op++)
		if ((op_info[op].level & LEVEL_G) && !tried[op])
			fail_msg("%s has no test", op_info[op].id);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(float_arithmetic_is_ieee),
		cmocka_unit_test(functions_at_their_ends),
		cmocka_unit_test(pow_follows_the_table),
		cmocka_unit_test(functions_are_where_libm_says),
		cmocka_unit_test(comparisons_and_logic),
		cmocka_unit_test(integers_are_total),
		cmocka_unit_test(complex_numbers),
		cmocka_unit_test(unknown_rather_than_wrong),
		cmocka_unit_test(far_overflow_is_certain), cmocka_unit_test(bounds_follow_the_slope),
		cmocka_unit_test(modes_are_ordered), cmocka_unit_test(narrowed_functions),
		cmocka_unit_test(additions_may_take_products_unrounded),
		cmocka_unit_test(every_row_has_a_case),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
