/* op_cost.c: see op_cost.h. A power with a constant exponent that is a small whole number, or 1/2, is a few products
 * where the mode lets it be within 2 ulp (passes/tile/whole_power.c): their number, about. */
#include "passes/schedule/op_cost.h"

#include <math.h>

enum { LARGEST_POWER = 64 };

static unsigned
products(unsigned n)
{
	enum { PLAIN = 4, MIDDLE = 8 }; /* one rounded product after the other; with what the square lacks */
	unsigned bits = 0;
	if (n <= PLAIN)
		return n > 2 ? 2 : 1;
	if (n <= MIDDLE)
		return MIDDLE;
	for (; n; n >>= 1)
		bits++;
	return MIDDLE * bits;
}

static OpCost
power_cost(double n)
{
	OpCost each = op_cost(OP_MUL), c = n < 0 || n == 0.5 ? op_cost(OP_FDIV) : (OpCost){0, 0};
	unsigned count = products((unsigned)fabs(n));
	c.scalar = (uint16_t)(c.scalar + count * each.scalar);
	c.vector = (uint16_t)(c.vector + count * each.vector);
	return c;
}

OpCost
expr_cost(const Graph *g, ExprId e)
{
	const Expr *x = expr_get(g, e);
	if (x->op != OP_POW || g->fp == FP_STRICT || !dtype_is_float((DType)x->dtype))
		return op_cost((Op)x->op);
	const Expr *n = expr_get(g, expr_arg(g, e, 1));
	bool few = n->op == OP_CONST && dtype_is_float((DType)n->dtype) &&
	           (n->imm.f == 0.5 || (n->imm.f == floor(n->imm.f) && fabs(n->imm.f) <= LARGEST_POWER));
	return few ? power_cost(n->imm.f) : op_cost(OP_POW);
}
