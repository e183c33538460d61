/* differentiate.c: see differentiate.h. A product's derivative keeps its other factors closed, so that
 * (x - t)^2 becomes -2 (x - t) and nothing cancels that did not before. */
#include "passes/fuse/differentiate.h"

#include <math.h>
#include <string.h>

#include "passes/expr_map.h"
#include "passes/fuse/formula.h"

ExprId
closed_expr(const Algebra *a, const Product *p)
{
	Product q = *p;
	for (unsigned k = 0; k < q.nfactor; k++)
		q.factor[k].side = SIDE_X;
	q.xcond = 0;
	return formula_scale(a->g, p->coef, product_expr(a, &q, true));
}

static bool
is_zero(const Graph *g, ExprId e)
{
	double v;
	return formula_number_of(g, e, &v) && v == 0;
}

/* A slope of 0 is exactly that, whatever it would be multiplied with. */
static ExprId
times_slope(Graph *g, ExprId slope, ExprId e)
{
	return is_zero(g, slope) ? slope : formula_mul(g, slope, e);
}

/* d e / d t; 0: no polynomial. */
static ExprId
slope_of(Algebra *a, ExprId e, ExprId t)
{
	Graph *g = a->g;
	Expr p = *expr_get(g, e);
	DType type = (DType)p.dtype;
	if (e == t)
		return formula_number(g, type, 1);
	if (!expr_contains(g, a->scratch, e, t))
		return formula_number(g, type, 0);
	ExprId x = p.narg > 0 ? expr_arg(g, e, 0) : 0, y = p.narg > 1 ? expr_arg(g, e, 1) : 0, dx, dy;
	double n;
	switch ((int)p.op) {
	case OP_ADD: case OP_SUB: case OP_MUL:
		dx = slope_of(a, x, t);
		dy = slope_of(a, y, t);
		if (!dx || !dy)
			return 0;
		if (p.op == OP_MUL)
			return formula_add(g, times_slope(g, dx, y), times_slope(g, dy, x));
		return p.op == OP_ADD ? formula_add(g, dx, dy) : formula_sub(g, dx, dy);
	case OP_NEG:
		dx = slope_of(a, x, t);
		return dx ? formula_neg(g, dx) : 0;
	case OP_FDIV:
		dx = expr_contains(g, a->scratch, y, t) ? 0 : slope_of(a, x, t);
		return dx && !is_zero(g, dx) ? formula_div(g, dx, y) : dx;
	case OP_POW:
		if (!formula_number_of(g, y, &n) || n != floor(n) || n < 1 || !(dx = slope_of(a, x, t)))
			return 0;
		return times_slope(g, dx, formula_scale(g, n, formula_power(g, x, n - 1)));
	case OP_CAST:
		dx = dtype_is_float((DType)expr_get(g, x)->dtype) ? slope_of(a, x, t) : 0;
		return dx ? expr_cast(g, type, dx) : 0;
	case OP_SELECT:
		if (expr_contains(g, a->scratch, x, t))
			return 0;
		dx = slope_of(a, y, t);
		dy = slope_of(a, expr_arg(g, e, 2), t);
		return dx && dy ? formula_select(g, x, dx, dy) : 0;
	}
	return 0;
}

static bool
product_derivative(Algebra *a, const Product *p, ExprId t, Sum *out)
{
	Sum *slope = ARENA_NEW(a->scratch, Sum);
	for (unsigned k = 0; k < p->nfactor; k++) {
		const Factor *x = &p->factor[k];
		ExprId d = slope_of(a, x->base, t);
		if (!d)
			return algebra_refuse(a, REMARK_cascade_mixes, x->base);
		if (is_zero(a->g, d))
			continue;
		if (!sum_of(a, d, slope))
			return false;
		for (unsigned j = 0; j < slope->n; j++) {
			Product q = *p;
			q.coef *= x->power;
			q.factor[k].power--;
			if (q.factor[k].power == 0)
				memmove(&q.factor[k], &q.factor[k + 1], (--q.nfactor - k) * sizeof *q.factor);
			if (out->n == MAX_PRODUCTS || !product_times(a, &q, &slope->at[j]))
				return algebra_refuse(a, REMARK_cascade_rank, x->base);
			out->at[out->n++] = q;
		}
	}
	return true;
}

static bool
same_but_number(const Product *p, const Product *q)
{
	return p->nfactor == q->nfactor && p->xcond == q->xcond &&
	       memcmp(p->factor, q->factor, p->nfactor * sizeof *p->factor) == 0;
}

bool
sum_derivative(Algebra *a, const Sum *s, ExprId t, Sum *out)
{
	Sum *all = ARENA_NEW(a->scratch, Sum);
	out->n = 0;
	for (unsigned k = 0; k < s->n; k++)
		if (!product_derivative(a, &s->at[k], t, all))
			return false;
	for (unsigned k = 0; k < all->n; k++) {
		unsigned j = 0;
		while (j < out->n && !same_but_number(&out->at[j], &all->at[k]))
			j++;
		if (j < out->n)
			out->at[j].coef += all->at[k].coef;
		else
			out->at[out->n++] = all->at[k];
	}
	return true;
}
