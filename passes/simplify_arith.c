/* simplify_arith.c: identities of arithmetic; see simplify.c. */
#include <math.h>

#include "passes/simplify.h"
#include "ir/bugs.h"

static bool
is_number(const Graph *g, ExprId e, double v)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_CONST)
		return false;
	if (dtype_is_float((DType)p->dtype))
		return p->imm.f == v && signbit(p->imm.f) == signbit(v);
	return dtype_is_int((DType)p->dtype) && p->imm.i == (int64_t)v && !(v == 0 && signbit(v));
}

static bool
is_float(const Graph *g, ExprId e)
{
	return dtype_is_float((DType)expr_get(g, e)->dtype);
}

/* c is 2^k and 1/c is a normal number of the type. */
static bool
is_power_of_two(const Graph *g, ExprId e, double *inverse)
{
	const Expr *p = expr_get(g, e);
	int exponent;
	if (p->op != OP_CONST || !is_float(g, e) || p->imm.f == 0 || !isfinite(p->imm.f) ||
	    fabs(frexp(p->imm.f, &exponent)) != 0.5)
		return false;
	*inverse = 1 / p->imm.f;
	return exponent > -120 && exponent < 120;
}

/* What adds nothing on the right: -0 to any float, 0 to any integer. */
static bool
is_nothing(const Graph *g, ExprId e, bool subtracted)
{
	return is_number(g, e, is_float(g, e) && !subtracted && !BUG(zero_keeps_sign) ? -0.0 : 0.0);
}

static ExprId
negated(const Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_NEG ? expr_arg(g, e, 0) : 0;
}

static ExprId
sum(Graph *g, ExprId e, ExprId a, ExprId b)
{
	if (is_nothing(g, b, false))
		return a;
	if (is_nothing(g, a, false))
		return b;
	if (negated(g, b))
		return expr_binary(g, OP_SUB, a, negated(g, b));
	if (negated(g, a))
		return expr_binary(g, OP_SUB, b, negated(g, a));
	return e;
}

static ExprId
difference(Graph *g, ExprId e, ExprId a, ExprId b)
{
	if (is_nothing(g, b, true))
		return a;
	if (negated(g, b))
		return expr_binary(g, OP_ADD, a, negated(g, b));
	return e;
}

static ExprId
product(Graph *g, ExprId e, ExprId a, ExprId b)
{
	if (is_number(g, b, 1))
		return a;
	if (is_number(g, a, 1))
		return b;
	if (is_number(g, b, -1))
		return expr_unary(g, OP_NEG, a);
	if (is_number(g, a, -1))
		return expr_unary(g, OP_NEG, b);
	if (negated(g, a) && negated(g, b))
		return expr_binary(g, OP_MUL, negated(g, a), negated(g, b));
	return e;
}

/* x / 2^k is x * 2^-k to the bit; but a sum would take the product unrounded, which strict mode sees
 * when it is subnormal. */
static ExprId
quotient(Graph *g, ExprId e, ExprId a, ExprId b)
{
	double inverse;
	if (is_number(g, b, 1))
		return a;
	if (is_number(g, b, -1))
		return expr_unary(g, OP_NEG, a);
	if (g->fp != FP_STRICT && is_power_of_two(g, b, &inverse))
		return expr_binary(g, OP_MUL, a, expr_float(g, (DType)expr_get(g, b)->dtype, inverse));
	return e;
}

static ExprId
magnitude(Graph *g, ExprId e, ExprId a)
{
	Op op = (Op)expr_get(g, a)->op;
	if (op == OP_ABS || dtype_info[expr_get(g, a)->dtype].kind == KIND_UINT)
		return a;
	return op == OP_NEG ? expr_unary(g, OP_ABS, expr_arg(g, a, 0)) : e;
}

/* Already a whole number. */
static bool
is_whole(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_FLOOR || p->op == OP_CEIL || p->op == OP_ROUND || p->op == OP_TRUNC)
		return true;
	return p->op == OP_CAST && dtype_is_int((DType)expr_get(g, expr_arg(g, e, 0))->dtype);
}

ExprId
simplify_arith(Simplify *s, Graph *g, ExprId e)
{
	Expr p = *expr_get(g, e);
	if (p.dtype == DT_C64 || p.narg == 0 || p.narg > 2 || p.op == OP_READ)
		return e;
	ExprId a = expr_arg(g, e, 0), b = p.narg > 1 ? expr_arg(g, e, 1) : 0;
	(void)s;
	switch (p.op) {
	case OP_ADD: return sum(g, e, a, b);
	case OP_SUB: return difference(g, e, a, b);
	case OP_MUL: return product(g, e, a, b);
	case OP_FDIV: return quotient(g, e, a, b);
	case OP_IDIV: return is_number(g, b, 1) ? a : e;
	case OP_NEG: return negated(g, a) ? negated(g, a) : e;
	case OP_ABS: return magnitude(g, e, a);
	case OP_MIN: case OP_MAX: return a == b ? a : e;
	case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_TRUNC: return is_whole(g, a) ? a : e;
	}
	return e;
}
