/* simplify_logic.c: identities of conditions, selects and casts; see simplify.c. The arm of a select
 * and the right side of && and || are evaluated only where they are needed, so dropping what is never
 * needed drops no fault; a condition itself is dropped only when it can't fault. */
#include "passes/expr_map.h"
#include "passes/simplify.h"

static bool
is_bool(const Graph *g, ExprId e, bool v)
{
	const Expr *p = expr_get(g, e);
	return p->op == OP_CONST && p->dtype == DT_BOOL && (p->imm.i != 0) == v;
}

static bool
is_safe(const Simplify *s, const Graph *g, ExprId e)
{
	return !expr_can_fault(g, s->cx->scratch, s->faulty, e);
}

static ExprId
inverted(const Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_NOT ? expr_arg(g, e, 0) : 0;
}

static ExprId
negation(Graph *g, ExprId e, ExprId a)
{
	Expr p = *expr_get(g, a);
	if (p.op == OP_NOT)
		return expr_arg(g, a, 0);
	if (p.op != OP_EQ && p.op != OP_NE && p.op != OP_LT && p.op != OP_LE)
		return e;
	ExprId x = expr_arg(g, a, 0), y = expr_arg(g, a, 1);
	if (p.op == OP_EQ || p.op == OP_NE)
		return expr_binary(g, p.op == OP_EQ ? OP_NE : OP_EQ, x, y);
	if (!dtype_is_int((DType)expr_get(g, x)->dtype)) /* a NaN compares false either way */
		return e;
	return expr_binary(g, p.op == OP_LT ? OP_LE : OP_LT, y, x);
}

/* && with unit true, || with unit false. */
static ExprId
connective(Simplify *s, Graph *g, ExprId e, bool unit, ExprId a, ExprId b)
{
	if (is_bool(g, a, unit) || a == b)
		return b;
	if (is_bool(g, b, unit) || is_bool(g, a, !unit))
		return a;
	return is_bool(g, b, !unit) && is_safe(s, g, a) ? b : e;
}

static ExprId
selection(Simplify *s, Graph *g, ExprId e)
{
	ExprId c = expr_arg(g, e, 0), a = expr_arg(g, e, 1), b = expr_arg(g, e, 2);
	if (is_bool(g, c, true))
		return a;
	if (is_bool(g, c, false))
		return b;
	if (a == b && is_safe(s, g, c))
		return a;
	if (inverted(g, c))
		return expr_select(g, inverted(g, c), b, a);
	if (expr_get(g, a)->op == OP_SELECT && expr_arg(g, a, 0) == c)
		return expr_select(g, c, expr_arg(g, a, 1), b);
	if (expr_get(g, b)->op == OP_SELECT && expr_arg(g, b, 0) == c)
		return expr_select(g, c, a, expr_arg(g, b, 2));
	if (is_bool(g, a, true) && is_bool(g, b, false))
		return c;
	if (is_bool(g, a, false) && is_bool(g, b, true))
		return expr_unary(g, OP_NOT, c);
	return e;
}

/* b == true and the like. */
static ExprId
comparison(Graph *g, ExprId e, bool equal, ExprId a, ExprId b)
{
	if (expr_get(g, a)->dtype != DT_BOOL)
		return e;
	if (expr_get(g, a)->op == OP_CONST) {
		ExprId t = a;
		a = b;
		b = t;
	}
	if (is_bool(g, b, equal))
		return a;
	return is_bool(g, b, !equal) ? expr_unary(g, OP_NOT, a) : e;
}

ExprId
simplify_logic(Simplify *s, Graph *g, ExprId e)
{
	Expr p = *expr_get(g, e);
	ExprId a = p.narg > 0 ? expr_arg(g, e, 0) : 0, b = p.narg > 1 ? expr_arg(g, e, 1) : 0;
	switch (p.op) {
	case OP_NOT: return negation(g, e, a);
	case OP_AND: case OP_OR: return connective(s, g, e, p.op == OP_AND, a, b);
	case OP_EQ: case OP_NE: return comparison(g, e, p.op == OP_EQ, a, b);
	case OP_SELECT: return selection(s, g, e);
	case OP_RE: case OP_IM: {
		if (expr_get(g, a)->op != OP_CPLX)
			return e;
		ExprId part = expr_arg(g, a, p.op == OP_IM), other = expr_arg(g, a, p.op == OP_RE);
		return is_safe(s, g, other) ? part : e;
	}
	}
	return e;
}

/* --- casts --- */

static unsigned
integer_bits(DType t)
{
	return t == DT_BOOL ? 1 : dtype_info[t].bits;
}

/* Bits of a significand, for the types whose values of more bits lie in range too. */
static unsigned
float_digits(DType t)
{
	return t == DT_F64 ? 53 : t == DT_F32 ? 24 : 0;
}

/* Every value of `from` is one of `to`. Of the narrow floats each is in f32 and f64. */
static bool
embeds(DType from, DType to)
{
	bool from_float = dtype_is_float(from), to_float = dtype_is_float(to);
	if (from == to)
		return true;
	if (from == DT_C64 || to == DT_C64 || to == DT_BOOL)
		return false;
	if (from_float)
		return to == DT_F64 || (to == DT_F32 && from != DT_F64);
	unsigned bits = integer_bits(from);
	if (to_float)
		return bits <= float_digits(to);
	bool from_sign = dtype_info[from].kind == KIND_INT, to_sign = dtype_info[to].kind == KIND_INT;
	return from_sign == to_sign ? bits <= integer_bits(to) : to_sign && bits < integer_bits(to);
}

/* A cast of a cast that changed no value: from the value itself. Integers to integers wrap, floats to
 * integers saturate, so a float between two integers stays, unless the value is back where it was. */
ExprId
simplify_cast(Graph *g, ExprId e)
{
	Expr p = *expr_get(g, e);
	if (p.op != OP_CAST)
		return e;
	ExprId a = expr_arg(g, e, 0);
	if (expr_get(g, a)->op != OP_CAST)
		return e;
	ExprId x = expr_arg(g, a, 0);
	DType from = (DType)expr_get(g, x)->dtype, through = (DType)expr_get(g, a)->dtype, to = (DType)p.dtype;
	if (!embeds(from, through))
		return e;
	bool detour = !dtype_is_float(from) && dtype_is_float(through) && !dtype_is_float(to) && to != DT_BOOL;
	return !detour || embeds(from, to) ? expr_cast(g, to, x) : e;
}
