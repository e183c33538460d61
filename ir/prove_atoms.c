/* prove_atoms.c: the facts that compound i64 atoms bring along.
 *
 * div and mod are tied to one another by x == c * (x div c) + x mod c and 0 <= x mod c < c, once c >= 1
 * follows from what is known; with c unknown they stay opaque. The arms of min, max, abs and select
 * become cases. Casts from narrow integers bring the range of their type. */
#include "ir/prove_facts.h"

static void
push_op(Facts *f, Op op, ExprId a, ExprId b)
{
	facts_push_literal(f, expr_binary(f->g, op, a, b), true);
}

static ExprId
num(Facts *f, int64_t v)
{
	return expr_int(f->g, DT_I64, v);
}

/* Signs of products of unknowns are not for the linear questions to find: said here where known. */
static void
push_quotient_sign(Facts *f, ExprId x, ExprId q, unsigned depth)
{
	ExprId zero = num(f, 0);
	if (!prove_within(f, expr_binary(f->g, OP_LE, zero, x), depth))
		return;
	push_op(f, OP_LE, zero, q);
	push_op(f, OP_LE, q, x);
}

static bool
expand_division(Facts *f, ExprId e, unsigned depth)
{
	Graph *g = f->g;
	ExprId x = expr_arg(g, e, 0), c = expr_arg(g, e, 1);
	if (!prove_within(f, expr_binary(g, OP_LE, num(f, 1), c), depth))
		return false;
	ExprId q = expr_binary(g, OP_IDIV, x, c), m = expr_binary(g, OP_IMOD, x, c);
	vec_push(f->arena, &f->expanded, index_norm(g, q));
	vec_push(f->arena, &f->expanded, index_norm(g, m));
	ExprId back = expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, q, c), m);
	push_op(f, OP_EQ, x, back);
	push_op(f, OP_LE, num(f, 0), m);
	push_op(f, OP_LT, m, c);
	if (expr_get(g, c)->op != OP_CONST)
		push_quotient_sign(f, x, q, depth);
	return true;
}

static void
push_either(Facts *f, ExprId a, ExprId b)
{
	facts_push_literal(f, expr_binary(f->g, OP_OR, a, b), true);
}

static bool
expand_minmax(Facts *f, ExprId e)
{
	Graph *g = f->g;
	ExprId a = expr_arg(g, e, 0), b = expr_arg(g, e, 1);
	bool least = expr_get(g, e)->op == OP_MIN;
	push_op(f, OP_LE, least ? e : a, least ? a : e);
	push_op(f, OP_LE, least ? e : b, least ? b : e);
	push_either(f, expr_binary(g, OP_EQ, e, a), expr_binary(g, OP_EQ, e, b));
	return true;
}

static bool
expand_abs(Facts *f, ExprId e)
{
	Graph *g = f->g;
	ExprId a = expr_arg(g, e, 0), minus = expr_unary(g, OP_NEG, a);
	push_op(f, OP_LE, a, e);
	push_op(f, OP_LE, minus, e);
	push_either(f, expr_binary(g, OP_EQ, e, a), expr_binary(g, OP_EQ, e, minus));
	return true;
}

static bool
expand_select(Facts *f, ExprId e)
{
	Graph *g = f->g;
	ExprId c = expr_arg(g, e, 0), a = expr_arg(g, e, 1), b = expr_arg(g, e, 2);
	push_either(f, expr_binary(g, OP_AND, c, expr_binary(g, OP_EQ, e, a)),
	            expr_binary(g, OP_AND, expr_unary(g, OP_NOT, c), expr_binary(g, OP_EQ, e, b)));
	return true;
}

static bool
expand_cast(Facts *f, ExprId e)
{
	Graph *g = f->g;
	DType from = (DType)expr_get(g, expr_arg(g, e, 0))->dtype;
	unsigned bits = from == DT_BOOL ? 1 : dtype_info[from].bits;
	DTypeKind kind = dtype_info[from].kind;
	if (bits > 32 || (kind != KIND_INT && kind != KIND_UINT && kind != KIND_BOOL))
		return false;
	int64_t lo = kind == KIND_INT ? -(1ll << (bits - 1)) : 0;
	push_op(f, OP_LE, num(f, lo), e);
	push_op(f, OP_LT, e, num(f, lo + (1ll << bits)));
	return true;
}

bool
prove_expand_atom(Facts *f, ExprId e, unsigned depth)
{
	const Expr *p = expr_get(f->g, e);
	if (p->dtype != DT_I64 || p->narg == 0 || p->op == OP_READ)
		return false;
	vec_push(f->arena, &f->expanded, e);
	switch (p->op) {
	case OP_IDIV: case OP_IMOD:
		return depth > 0 && expand_division(f, e, depth - 1);
	case OP_MIN: case OP_MAX:
		return expand_minmax(f, e);
	case OP_ABS:
		return expand_abs(f, e);
	case OP_SELECT:
		return expand_select(f, e);
	case OP_CAST:
		return expand_cast(f, e);
	}
	return false;
}
