/* expr.c: launch expressions. expr_check runs the words once without values, following the depth of the
 * stack; what it accepts expr_value evaluates without checks. Programs have no jumps, so one pass
 * over the words is the whole proof. */
#include "runtime/inside.h"

enum { MAX_DEPTH = 1 << 16 };

static const uint8_t pops[IMG_OP_COUNT] = {
#define IMAGE_OP(id, pops, what) pops,
#include "ir/image_ops.def"
};

static bool
is_integer(uint32_t dtype)
{
	const Element *e = element_of(dtype);
	return e && e->is_int;
}

static bool
operand_ok(uint32_t op, uint32_t operand, const ExprScope *s)
{
	if (op == IMG_DIM)
		return operand < s->ndim;
	if (op == IMG_PARAM)
		return operand < s->nparam && s->param[operand].kind == IMG_SCALAR &&
		       is_integer(s->param[operand].dtype);
	if (op == IMG_WRAP)
		return is_integer(operand);
	if (op == IMG_SHARED)
		return operand < s->nshared;
	return operand == 0;
}

bool
expr_check(const uint32_t *words, uint64_t n, uint32_t first, const ExprScope *s, uint32_t *stack)
{
	uint32_t depth = 0;
	for (uint64_t at = first; at < n; at++) {
		uint32_t op = words[at] & 0xff, operand = words[at] >> 8;
		if (op == IMG_END)
			return depth == 1 && operand == 0;
		if (op >= IMG_OP_COUNT || !operand_ok(op, operand, s) || depth < pops[op])
			return false;
		depth = depth - pops[op] + 1;
		if (depth > MAX_DEPTH)
			return false;
		if (depth > *stack)
			*stack = depth;
		if (op == IMG_CONST)
			at += 2; /* an end that is missing then ends the loop */
	}
	return false;
}

/* --- arithmetic, wrapping --- */

static int64_t
wrap_mul(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static int64_t
negate(int64_t a)
{
	return (int64_t)(0 - (uint64_t)a);
}

static int64_t
floor_div(int64_t a, int64_t b)
{
	if (b == 0)
		return -1;
	if (b == -1)
		return negate(a);
	int64_t q = a / b;
	return a % b != 0 && (a % b < 0) != (b < 0) ? q - 1 : q;
}

static int64_t
floor_mod(int64_t a, int64_t b)
{
	if (b == 0)
		return a;
	return b == -1 ? 0 : (int64_t)((uint64_t)a - (uint64_t)wrap_mul(floor_div(a, b), b));
}

static int64_t
unsigned_power(int64_t a, uint64_t b)
{
	int64_t r = 1;
	for (; b; b >>= 1) {
		if (b & 1)
			r = wrap_mul(r, a);
		a = wrap_mul(a, a);
	}
	return r;
}

/* A negative exponent gives the truncated reciprocal, and -1 (as division does) for 0. */
static int64_t
power(int64_t a, int64_t b)
{
	if (b >= 0)
		return unsigned_power(a, (uint64_t)b);
	if (a == 0)
		return -1;
	return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
}

static int64_t
wrap_to(uint32_t dtype, int64_t v)
{
	return element_int(element_of(dtype), &v); /* little-endian, as the file */
}

static int64_t
unary(uint32_t op, uint32_t operand, int64_t a)
{
	switch (op) {
	case IMG_NEG: return negate(a);
	case IMG_ABS: return a < 0 ? negate(a) : a;
	case IMG_SIGN: return (a > 0) - (a < 0);
	case IMG_WRAP: return wrap_to(operand, a);
	default: return !a; /* IMG_NOT */
	}
}

static int64_t
binary(uint32_t op, int64_t a, int64_t b)
{
	uint64_t x = (uint64_t)a, y = (uint64_t)b;
	switch (op) {
	case IMG_ADD: return (int64_t)(x + y);
	case IMG_SUB: return (int64_t)(x - y);
	case IMG_MUL: return wrap_mul(a, b);
	case IMG_DIV: return floor_div(a, b);
	case IMG_MOD: return floor_mod(a, b);
	case IMG_UDIV: return y ? (int64_t)(x / y) : -1;
	case IMG_UMOD: return y ? (int64_t)(x % y) : a;
	case IMG_MIN: return a < b ? a : b;
	case IMG_MAX: return a > b ? a : b;
	case IMG_UMIN: return x < y ? a : b;
	case IMG_UMAX: return x > y ? a : b;
	case IMG_EQ: return a == b;
	case IMG_NE: return a != b;
	case IMG_LT: return a < b;
	case IMG_LE: return a <= b;
	case IMG_ULT: return x < y;
	case IMG_ULE: return x <= y;
	case IMG_AND: return a && b;
	case IMG_OR: return a || b;
	case IMG_UPOW: return unsigned_power(a, y);
	default: return power(a, b); /* IMG_POW */
	}
}

static bool
power_overflows(int64_t a, int64_t b)
{
	for (int64_t r = 1; b > 0; b >>= 1)
		if ((b & 1 && !checked_mul(r, a, &r)) || (b > 1 && !checked_mul(a, a, &a)))
			return true;
	return false;
}

/* Whether the exact result is no i64; b is 0 for one operand. */
static bool
overflows(uint32_t op, int64_t a, int64_t b)
{
	int64_t r;
	switch (op) {
	case IMG_NEG:
	case IMG_ABS: return a == INT64_MIN;
	case IMG_DIV: return a == INT64_MIN && b == -1;
	case IMG_POW: return power_overflows(a, b);
	case IMG_ADD: return !checked_add(a, b, &r);
	case IMG_SUB: return b < 0 ? a > INT64_MAX + b : a < INT64_MIN + b;
	case IMG_MUL: return !checked_mul(a, b, &r);
	default: return false;
	}
}

/* *exact becomes false where an operation wraps that no WRAP after it says so of. */
static int64_t
evaluate(const ExprEnv *env, uint32_t first, bool *exact)
{
	int64_t *top = env->stack; /* one past the value on top */
	for (const uint32_t *w = env->words + first;; w++) {
		uint32_t op = *w & 0xff, operand = *w >> 8;
		switch (op) {
		case IMG_END:
			return top[-1];
		case IMG_CONST:
			*top++ = (int64_t)((uint64_t)w[2] << 32 | w[1]);
			w += 2;
			break;
		case IMG_DIM:
			*top++ = env->dim[operand];
			break;
		case IMG_PARAM:
			*top++ = env->param[operand];
			break;
		case IMG_SHARED:
			*exact &= env->shared[operand].exact;
			*top++ = env->shared[operand].value;
			break;
		case IMG_SELECT:
			top -= 2;
			top[-1] = top[-1] ? top[0] : top[1];
			break;
		default:
			top -= pops[op] - 1;
			if ((w[1] & 0xff) != IMG_WRAP && overflows(op, top[-1], pops[op] == 1 ? 0 : top[0]))
				*exact = false;
			top[-1] = pops[op] == 1 ? unary(op, operand, top[-1]) : binary(op, top[-1], top[0]);
		}
	}
}

int64_t
expr_value(const ExprEnv *env, uint32_t first)
{
	bool exact = true;
	return evaluate(env, first, &exact);
}

bool
expr_exact(const ExprEnv *env, uint32_t first, int64_t *value)
{
	bool exact = true;
	*value = evaluate(env, first, &exact);
	return exact;
}
