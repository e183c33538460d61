/* eval_int.c: integer operations of the oracle: exact, wrapping at the type's width, defined for
 * every operand (ir/README.md, "Meaning"). A bound on an operand (an ambiguous decision) goes
 * through sums, differences, products and extremes where nothing wraps; elsewhere it is lost. */
#include "ir/eval_value.h"

static bool
is_unsigned(DType t)
{
	return dtype_info[t].kind == KIND_UINT;
}

static double
magnitude(DType t, int64_t i)
{
	if (is_unsigned(t))
		return (double)(uint64_t)i;
	return fabs((double)i);
}

static Val
with_bound(DType t, int64_t i, double err)
{
	Val r = {.i = number_wrap(t, i), .err = err};
	double room = ldexp(1, (int)dtype_info[t].bits - !is_unsigned(t)) - 1;
	if (err > 0 && !(magnitude(t, r.i) + err < room && (!is_unsigned(t) || magnitude(t, r.i) >= err)))
		r.err = INFINITY;
	return r;
}

static int64_t
floor_div(DType t, int64_t a, int64_t b)
{
	if (b == 0)
		return -1;
	if (is_unsigned(t))
		return (int64_t)((uint64_t)a / (uint64_t)b);
	if (b == -1)
		return (int64_t)(0 - (uint64_t)a);
	int64_t q = a / b;
	return q - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
floor_mod(DType t, int64_t a, int64_t b)
{
	if (b == 0)
		return a;
	if (is_unsigned(t))
		return (int64_t)((uint64_t)a % (uint64_t)b);
	if (b == -1)
		return 0;
	int64_t r = a % b;
	return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

static int64_t
power(DType t, int64_t a, int64_t b)
{
	if (!is_unsigned(t) && b < 0) {
		if (a == 1 || a == 0)
			return a == 1 ? 1 : -1;
		return a == -1 ? (b % 2 ? -1 : 1) : 0;
	}
	uint64_t r = 1, x = (uint64_t)a;
	for (uint64_t n = (uint64_t)b; n; n >>= 1) {
		if (n & 1)
			r *= x;
		x *= x;
	}
	return (int64_t)r;
}

static bool
int_less(DType t, int64_t a, int64_t b)
{
	return is_unsigned(t) ? (uint64_t)a < (uint64_t)b : a < b;
}

int
int_order(DType t, Val a, Val b)
{
	bool less = int_less(t, a.i, b.i);
	uint64_t gap = less ? (uint64_t)b.i - (uint64_t)a.i : (uint64_t)a.i - (uint64_t)b.i;
	if (a.err + b.err > 0 && !((double)gap > a.err + b.err))
		return 3;
	return gap == 0 ? 0 : less ? -1 : 1;
}

Val
int_unary(Op op, DType t, Val a)
{
	bool negative = !is_unsigned(t) && a.i < 0;
	if (op == OP_SIGN) {
		Val r = val_int(negative ? -1 : a.i != 0);
		r.err = a.err > 0 && !(magnitude(t, a.i) > a.err) ? 2 : 0;
		return r;
	}
	if (op == OP_NEG || (op == OP_ABS && negative))
		return with_bound(t, (int64_t)(0 - (uint64_t)a.i), a.err);
	return with_bound(t, a.i, a.err); /* ABS */
}

Val
int_binary(Op op, DType t, Val a, Val b)
{
	uint64_t x = (uint64_t)a.i, y = (uint64_t)b.i;
	double sum = a.err + b.err, lost = sum > 0 ? INFINITY : 0;
	switch (op) {
	case OP_ADD:
		return with_bound(t, (int64_t)(x + y), sum);
	case OP_SUB:
		return with_bound(t, (int64_t)(x - y), sum);
	case OP_MUL:
		return with_bound(t, (int64_t)(x * y), sum > 0 ? magnitude(t, a.i) * b.err +
		                  magnitude(t, b.i) * a.err + a.err * b.err : 0);
	case OP_MIN:
		return with_bound(t, int_less(t, b.i, a.i) ? b.i : a.i, fmax(a.err, b.err));
	case OP_MAX:
		return with_bound(t, int_less(t, a.i, b.i) ? b.i : a.i, fmax(a.err, b.err));
	case OP_IDIV:
		return with_bound(t, floor_div(t, a.i, b.i), lost);
	case OP_IMOD:
		return with_bound(t, floor_mod(t, a.i, b.i), lost);
	default: /* POW */
		return with_bound(t, power(t, a.i, b.i), lost);
	}
}
