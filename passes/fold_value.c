/* fold_value.c: see fold_value.h. Integers wrap at their width, floats are computed in their own type
 * with IEEE operations, casts round once. Shares nothing with the oracle, which checks it. */
#include "passes/fold_value.h"
#include "ir/bugs.h"

#include <math.h>

#include "ir/tg_types.h"

static bool
is_unsigned(DType t)
{
	return dtype_info[t].kind != KIND_INT;
}

/* --- integers --- */

static int64_t
int_div(DType t, int64_t a, int64_t b)
{
	if (b == 0)
		return -1;
	if (is_unsigned(t))
		return (int64_t)((uint64_t)a / (uint64_t)b);
	if (b == -1)
		return (int64_t)(0 - (uint64_t)a);
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
int_mod(DType t, int64_t a, int64_t b)
{
	if (b == 0)
		return a;
	return (int64_t)((uint64_t)a - (uint64_t)b * (uint64_t)int_div(t, a, b));
}

static int64_t
int_pow(DType t, int64_t a, int64_t b)
{
	if (b < 0 && !is_unsigned(t))
		return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : a == 0 ? -1 : 0;
	uint64_t r = 1, x = (uint64_t)a;
	for (uint64_t n = (uint64_t)b; n; n >>= 1, x *= x)
		if (n & 1)
			r *= x;
	return (int64_t)r;
}

static bool
int_less(DType t, int64_t a, int64_t b)
{
	return is_unsigned(t) ? (uint64_t)a < (uint64_t)b : a < b;
}

static ExprId
fold_int(Graph *g, Op op, DType t, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	bool negative = !is_unsigned(t) && a < 0;
	switch ((int)op) {
	case OP_ADD: return expr_int(g, t, (int64_t)(x + y));
	case OP_SUB: return expr_int(g, t, (int64_t)(x - y));
	case OP_MUL: return expr_int(g, t, (int64_t)(x * y));
	case OP_IDIV: return expr_int(g, t, int_div(t, a, b));
	case OP_IMOD: return expr_int(g, t, int_mod(t, a, b));
	case OP_POW: return expr_int(g, t, int_pow(t, a, b));
	case OP_NEG: return expr_int(g, t, (int64_t)(0 - x));
	case OP_ABS: return expr_int(g, t, negative ? (int64_t)(0 - x) : a);
	case OP_SIGN: return expr_int(g, t, negative ? -1 : a != 0);
	case OP_MIN: return expr_int(g, t, int_less(t, a, b) ? a : b);
	case OP_MAX: return expr_int(g, t, int_less(t, a, b) ? b : a);
	}
	return 0;
}

static ExprId
fold_logic(Graph *g, Op op, bool a, bool b)
{
	switch ((int)op) {
	case OP_AND: return expr_int(g, DT_BOOL, a && b);
	case OP_OR: return expr_int(g, DT_BOOL, a || b);
	case OP_NOT: return expr_int(g, DT_BOOL, !a);
	}
	return 0;
}

/* --- floats --- */

static double
extreme(double a, double b, bool most)
{
	if (isnan(a) || isnan(b))
		return NAN;
	if (a == b)
		return (signbit(a) != 0) == most ? b : a;
	return (a < b) == most ? b : a;
}

static double
sign_of(double a)
{
	return isnan(a) ? a : a > 0 ? 1 : a < 0 ? -1 : 0;
}

/* The rounding to f32 is what makes the difference between the two types. */
static double
rounded(DType t, double v)
{
	return t == DT_F32 && !BUG(fold_unrounded) ? (double)(float)v : v;
}

/* Sums, products, quotients and roots of two f32 computed in f64 and rounded to f32 are those of f32:
 * 53 >= 2 * 24 + 2 bits. */
static ExprId
fold_float(Graph *g, Op op, DType t, double a, double b)
{
	switch ((int)op) {
	case OP_ADD: return expr_float(g, t, rounded(t, a + b));
	case OP_SUB: return expr_float(g, t, rounded(t, a - b));
	case OP_MUL: return expr_float(g, t, rounded(t, a * b));
	case OP_FDIV: return expr_float(g, t, rounded(t, a / b));
	case OP_SQRT: return expr_float(g, t, rounded(t, sqrt(a)));
	case OP_NEG: return expr_float(g, t, -a);
	case OP_ABS: return expr_float(g, t, fabs(a));
	case OP_SIGN: return expr_float(g, t, sign_of(a));
	case OP_MIN: return expr_float(g, t, extreme(a, b, false));
	case OP_MAX: return expr_float(g, t, extreme(a, b, true));
	case OP_FLOOR: return expr_float(g, t, floor(a));
	case OP_CEIL: return expr_float(g, t, ceil(a));
	case OP_TRUNC: return expr_float(g, t, trunc(a));
	case OP_ROUND: return expr_float(g, t, nearbyint(a));
	case OP_ISNAN: return expr_int(g, DT_BOOL, isnan(a));
	}
	return 0;
}

static ExprId
fold_compare(Graph *g, Op op, const Expr *a, const Expr *b)
{
	DType t = (DType)a->dtype;
	bool eq, lt;
	if (dtype_is_float(t)) {
		eq = a->imm.f == b->imm.f;
		lt = a->imm.f < b->imm.f;
	} else {
		eq = a->imm.i == b->imm.i;
		lt = int_less(t, a->imm.i, b->imm.i);
	}
	return expr_int(g, DT_BOOL, op == OP_EQ ? eq : op == OP_NE ? !eq : op == OP_LT ? lt : lt || eq);
}

/* --- casts --- */

/* An integer of 64 bits as a double that rounds to any narrower type as the integer itself would: what
 * does not fit is kept in the last bit (round to odd). */
static double
int_as_double(DType t, int64_t v)
{
	bool minus = !is_unsigned(t) && v < 0;
	uint64_t u = minus ? 0 - (uint64_t)v : (uint64_t)v;
	int shift = 0;
	while (u >> shift >> 53)
		shift++;
	uint64_t top = u >> shift;
	if (shift && (u & ((1ull << shift) - 1)))
		top |= 1;
	double d = ldexp((double)top, shift);
	return minus ? -d : d;
}

static ExprId
float_to_int(Graph *g, DType to, double v)
{
	unsigned bits = dtype_info[to].bits;
	bool sign = !is_unsigned(to);
	double end = ldexp(1, (int)(sign ? bits - 1 : bits)), least = sign ? -end : 0;
	if (isnan(v))
		return expr_int(g, to, 0);
	v = trunc(v);
	if (v >= end)
		return expr_int(g, to, sign ? (int64_t)((1ull << (bits - 1)) - 1) : -1);
	if (v <= least)
		return expr_int(g, to, sign ? (int64_t)(0 - (1ull << (bits - 1))) : 0);
	return expr_int(g, to, v < 0x1p63 ? (int64_t)v : (int64_t)(uint64_t)v);
}

static ExprId
fold_cast(Graph *g, DType to, const Expr *a)
{
	DType from = (DType)a->dtype;
	if (dtype_is_float(from)) {
		if (to == DT_BOOL)
			return expr_int(g, to, a->imm.f != 0);
		return dtype_is_float(to) ? expr_float(g, to, tg_round(to, a->imm.f)) : float_to_int(g, to, a->imm.f);
	}
	if (!dtype_is_float(to))
		return expr_int(g, to, a->imm.i);
	double d = int_as_double(from, a->imm.i);
	if (to == DT_F64)
		d = is_unsigned(from) ? (double)(uint64_t)a->imm.i : (double)a->imm.i;
	return expr_float(g, to, tg_round(to, d));
}

ExprId
fold_value(Graph *g, Op op, DType t, const Expr *const *a, unsigned n)
{
	if (n == 0 || n > 2 || t == DT_C64)
		return 0;
	DType from = (DType)a[0]->dtype;
	if (op == OP_CAST)
		return fold_cast(g, t, a[0]);
	if (op_info[op].sig == SIG_CMP)
		return fold_compare(g, op, a[0], a[1]);
	if (from == DT_BOOL)
		return fold_logic(g, op, a[0]->imm.i, n > 1 && a[1]->imm.i);
	if (from == DT_F32 || from == DT_F64)
		return fold_float(g, op, from, a[0]->imm.f, n > 1 ? a[1]->imm.f : 0);
	if (from == DT_I32 || from == DT_I64 || from == DT_U32 || from == DT_U64)
		return fold_int(g, op, from, a[0]->imm.i, n > 1 ? a[1]->imm.i : 0);
	return 0;
}
