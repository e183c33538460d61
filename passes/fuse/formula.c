/* formula.c: see formula.h. */
#include "passes/fuse/formula.h"

#include <math.h>

#include "ir/tg_types.h"

enum { MAX_PRODUCT = 4 }; /* the largest power written as a product */

static bool
is_number(const Graph *g, ExprId e, double v)
{
	double x;
	return formula_number_of(g, e, &x) && x == v;
}

bool
formula_number_of(const Graph *g, ExprId e, double *v)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_CONST || !dtype_is_float((DType)p->dtype))
		return false;
	*v = p->imm.f;
	return true;
}

ExprId
formula_number(Graph *g, DType t, double v)
{
	return expr_float(g, t, tg_round(t, v));
}

ExprId
formula_neg(Graph *g, ExprId a)
{
	double v;
	if (formula_number_of(g, a, &v))
		return formula_number(g, (DType)expr_get(g, a)->dtype, -v);
	if (expr_get(g, a)->op == OP_NEG)
		return expr_arg(g, a, 0);
	if (expr_get(g, a)->op == OP_SUB)
		return expr_binary(g, OP_SUB, expr_arg(g, a, 1), expr_arg(g, a, 0));
	return expr_unary(g, OP_NEG, a);
}

ExprId
formula_add(Graph *g, ExprId a, ExprId b)
{
	if (is_number(g, a, 0))
		return b;
	if (is_number(g, b, 0))
		return a;
	if (expr_get(g, b)->op == OP_NEG)
		return formula_sub(g, a, expr_arg(g, b, 0));
	return expr_binary(g, OP_ADD, a, b);
}

ExprId
formula_sub(Graph *g, ExprId a, ExprId b)
{
	if (is_number(g, b, 0))
		return a;
	if (is_number(g, a, 0))
		return formula_neg(g, b);
	if (a == b)
		return formula_number(g, (DType)expr_get(g, a)->dtype, 0);
	if (expr_get(g, b)->op == OP_NEG)
		return expr_binary(g, OP_ADD, a, expr_arg(g, b, 0));
	return expr_binary(g, OP_SUB, a, b);
}

ExprId
formula_mul(Graph *g, ExprId a, ExprId b)
{
	double x, y;
	if (formula_number_of(g, a, &x) && formula_number_of(g, b, &y))
		return formula_number(g, (DType)expr_get(g, a)->dtype, x * y);
	if (is_number(g, a, 1))
		return b;
	if (is_number(g, b, 1))
		return a;
	if (is_number(g, a, -1))
		return formula_neg(g, b);
	if (is_number(g, b, -1))
		return formula_neg(g, a);
	return expr_binary(g, OP_MUL, a, b);
}

ExprId
formula_div(Graph *g, ExprId a, ExprId b)
{
	return is_number(g, b, 1) ? a : expr_binary(g, OP_FDIV, a, b);
}

ExprId
formula_scale(Graph *g, double c, ExprId a)
{
	return formula_mul(g, formula_number(g, (DType)expr_get(g, a)->dtype, c), a);
}

ExprId
formula_power(Graph *g, ExprId a, double p)
{
	DType t = (DType)expr_get(g, a)->dtype;
	if (p == 0)
		return formula_number(g, t, 1);
	if (p < 0)
		return formula_div(g, formula_number(g, t, 1), formula_power(g, a, -p));
	if (p == 0.5)
		return expr_unary(g, OP_SQRT, a);
	if (p != floor(p) || p > MAX_PRODUCT)
		return expr_binary(g, OP_POW, a, formula_number(g, t, p));
	ExprId e = a;
	for (int k = 1; k < (int)p; k++)
		e = formula_mul(g, e, a);
	return e;
}

ExprId
formula_exp(Graph *g, Op op, ExprId a)
{
	return is_number(g, a, 0) ? formula_number(g, (DType)expr_get(g, a)->dtype, 1) : expr_unary(g, op, a);
}

ExprId
formula_select(Graph *g, ExprId c, ExprId a, ExprId b)
{
	const Expr *p = expr_get(g, c);
	if (p->op == OP_CONST)
		return p->imm.i ? a : b;
	return expr_select(g, c, a, b);
}

ExprId
formula_rebuild(Graph *g, const Expr *p, const ExprId *arg)
{
	if (p->op == OP_SELECT)
		return formula_select(g, arg[0], arg[1], arg[2]);
	if (dtype_is_float((DType)p->dtype)) {
		switch (p->op) {
		case OP_ADD: return formula_add(g, arg[0], arg[1]);
		case OP_SUB: return formula_sub(g, arg[0], arg[1]);
		case OP_MUL: return formula_mul(g, arg[0], arg[1]);
		case OP_FDIV: return formula_div(g, arg[0], arg[1]);
		case OP_NEG: return formula_neg(g, arg[0]);
		case OP_EXP: case OP_EXP2: {
			ExprId e = formula_exp(g, (Op)p->op, arg[0]);
			return p->ref && expr_get(g, e)->op == p->op ? expr_narrowed(g, e, (DType)p->ref) : e;
		}
		}
	}
	return expr_make(g, (Op)p->op, (DType)p->dtype, p->ref, p->access, arg, p->narg);
}

/* What has been rewritten so far: a hash table, as expressions share parts. */
typedef struct {
	const Swap *swap;
	unsigned nswap;
	Arena *scratch;
	ExprId *from, *to;
	uint32_t n, mask;
} Swapping;

static uint32_t
slot_of(const Swapping *s, ExprId e)
{
	uint32_t k = e * 2654435761u & s->mask;
	while (s->from[k] && s->from[k] != e)
		k = (k + 1) & s->mask;
	return k;
}

static void
grow(Swapping *s)
{
	Swapping old = *s;
	s->mask = s->mask * 2 + 1;
	s->from = ARENA_ARRAY(s->scratch, ExprId, s->mask + 1);
	s->to = ARENA_ARRAY(s->scratch, ExprId, s->mask + 1);
	for (uint32_t k = 0; k <= old.mask; k++)
		if (old.from[k]) {
			uint32_t at = slot_of(s, old.from[k]);
			s->from[at] = old.from[k];
			s->to[at] = old.to[k];
		}
}

static ExprId
swapped(Swapping *s, Graph *g, ExprId e)
{
	for (unsigned k = 0; k < s->nswap; k++)
		if (s->swap[k].from == e)
			return s->swap[k].to;
	uint32_t at = slot_of(s, e);
	if (s->from[at])
		return s->to[at];
	Expr p = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES], out = e;
	bool changed = false;
	for (unsigned k = 0; k < p.narg; k++) {
		ExprId x = expr_arg(g, e, k);
		arg[k] = swapped(s, g, x);
		changed |= arg[k] != x;
	}
	if (changed)
		out = formula_rebuild(g, &p, arg);
	if (2 * ++s->n > s->mask)
		grow(s);
	at = slot_of(s, e);
	s->from[at] = e;
	s->to[at] = out;
	return out;
}

ExprId
formula_swap(Graph *g, Arena *scratch, ExprId e, const Swap *swap, unsigned n)
{
	if (!e || n == 0)
		return e;
	Swapping s = {.swap = swap, .nswap = n, .scratch = scratch, .mask = 31};
	s.from = ARENA_ARRAY(scratch, ExprId, s.mask + 1);
	s.to = ARENA_ARRAY(scratch, ExprId, s.mask + 1);
	return swapped(&s, g, e);
}
