/* affine.c: see affine.h. What is not a sum, a difference or a product with a constant, and reads no axis, is one term. */
#include "passes/schedule/point/affine.h"

#include "passes/expr_map.h"

enum { LARGE = 1 << 24 };

static bool
is_small(int64_t v)
{
	return v > -LARGE && v < LARGE;
}

static bool
add_term(Affine *a, ExprId e, int64_t times)
{
	unsigned n = 0;
	while (n < a->nterm && a->term[n].e != e)
		n++;
	if (n == AFFINE_MOST_TERMS)
		return false;
	if (n == a->nterm) {
		a->nterm++;
		a->term[n].e = e;
		a->term[n].times = 0;
	}
	a->term[n].times += times;
	return is_small(a->term[n].times);
}

/* The constant factor of a product and what it multiplies; false: there is none. */
static bool
constant_factor(const Graph *g, ExprId e, int64_t *factor, ExprId *rest)
{
	for (unsigned n = 0; n < 2; n++) {
		const Expr *p = expr_get(g, expr_arg(g, e, n));
		*factor = p->imm.i;
		*rest = expr_arg(g, e, 1 - n);
		if (p->op == OP_CONST && is_small(p->imm.i))
			return true;
	}
	return false;
}

bool
affine_add(const Graph *g, Arena *scratch, Affine *a, ExprId e, int64_t times)
{
	const Expr *p = expr_get(g, e);
	int64_t factor;
	ExprId rest;
	if (p->dtype != DT_I64 || !is_small(times))
		return false;
	if (p->op == OP_AXIS) {
		a->axis[p->ref] += times;
		return is_small(a->axis[p->ref]);
	}
	if (p->op == OP_CONST) {
		a->constant += is_small(p->imm.i) ? times * p->imm.i : 0;
		return is_small(p->imm.i);
	}
	if (p->op == OP_ADD || p->op == OP_SUB)
		return affine_add(g, scratch, a, expr_arg(g, e, 0), times) &&
		       affine_add(g, scratch, a, expr_arg(g, e, 1), p->op == OP_SUB ? -times : times);
	if (p->op == OP_MUL && constant_factor(g, e, &factor, &rest))
		return affine_add(g, scratch, a, rest, times * factor);
	return !expr_axes(g, scratch, e) && expr_is_index(g, scratch, e) && add_term(a, e, times);
}

static bool
has_terms(const Affine *a, const Affine *of)
{
	for (unsigned n = 0; n < of->nterm; n++) {
		int64_t times = 0;
		for (unsigned k = 0; k < a->nterm; k++)
			times += a->term[k].e == of->term[n].e ? a->term[k].times : 0;
		if (times != of->term[n].times)
			return false;
	}
	return true;
}

bool
affine_same(const Affine *a, const Affine *b)
{
	for (unsigned n = 0; n < TG_MAX_AXES; n++)
		if (a->axis[n] != b->axis[n])
			return false;
	return a->constant == b->constant && has_terms(a, b) && has_terms(b, a);
}
