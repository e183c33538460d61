/* derive_extreme.c: a maximum or minimum whose terms hold earlier results: they must rise, or fall, with one part p(x); then
 * the extreme of p is folded, and the rest of the term is applied to it at the end (P4). Every rounding is monotone as well, so
 * this is the definition's element to the bit. A product whose factors of y are no better than their functions may be taken
 * apart as well, p(x) times a factor that is not negative: its bound has room for another order.
 *
 * A term that is no number makes the extreme none. With y infinite, or 0 as a factor, terms of infinite p are none, and both
 * extremes of p show whether there is such a one. Factors of y that make none of p = 0 are not taken: infinite ones, and divisors 0. */
#include <math.h>

#include "ir/bugs.h"
#include "passes/fuse/cancel.h"
#include "passes/fuse/formula.h"
#include "passes/fuse/frame.h"
#include "passes/fuse/interval.h"
#include "passes/expr_map.h"

/* The largest part of e that varies with x alone, where that is one; `ok` says whether there are no two. */
static ExprId
part_of_stream(const Algebra *a, ExprId e, bool *ok)
{
	Side side = side_of(a, e);
	ExprId part = 0;
	if (side == SIDE_X)
		return e;
	for (unsigned k = 0; side == SIDE_BOTH && k < expr_get(a->g, e)->narg; k++) {
		ExprId p = part_of_stream(a, expr_arg(a->g, e, k), ok);
		*ok &= !p || !part || p == part;
		part = p ? p : part;
	}
	return part;
}

static Monoid
opposite_of(Monoid m)
{
	return m == MON_MAX ? MON_MIN : MON_MAX;
}

/* The other extreme of x than `near`, which is `here`: the lesser or greater of both, so that it is no member's value by itself, whose
 * difference to that formulas take for 0. */
static ExprId
other_extreme(Frame *f, Algebra *a, Monoid near, DType t, ExprId x, ExprId here)
{
	ExprId there = add_acc(f, a, opposite_of(near), t, x);
	return there ? expr_binary(f->g, near == MON_MAX ? OP_MIN : OP_MAX, there, here) : 0;
}

/* Of p at both extremes: the term of the one, or what the other has where that is no number. */
static ExprId
of_both(Frame *f, ExprId here, ExprId there)
{
	return formula_select(f->g, expr_binary(f->g, OP_NE, there, there), there, here);
}

/* Whether every factor that the part has on its way up is finite, and every divisor not 0. */
static bool
keeps_zeros(const Algebra *a, ExprId e, ExprId part)
{
	const Expr *p = expr_get(a->g, e);
	for (unsigned k = 0; e != part && k < p->narg; k++) {
		ExprId x = expr_arg(a->g, e, k), y = p->narg == 2 ? expr_arg(a->g, e, 1 - k) : 0;
		if (!expr_contains(a->g, a->scratch, x, part))
			continue;
		Interval i = y ? interval_of(a->g, y) : (Interval){0, 0};
		if ((p->op == OP_MUL && !(isfinite(i.lo) && isfinite(i.hi))) || (p->op == OP_FDIV && !(i.lo > 0 || i.hi < 0)))
			return false;
		return keeps_zeros(a, x, part);
	}
	return e == part;
}

static ExprId
monotone(Frame *f, Algebra *a, ExprId body, Monoid monoid)
{
	bool ok = true;
	ExprId part = part_of_stream(a, body, &ok);
	int d = ok && part ? direction_of(f->g, body, part) : 2;
	if ((d != 1 && d != -1) || !keeps_zeros(a, body, part))
		return 0;
	Monoid near = d == 1 || BUG(extreme_falls) ? monoid : opposite_of(monoid);
	DType t = (DType)expr_get(f->g, part)->dtype;
	Swap here = {part, add_acc(f, a, near, t, part)}, there = {part, here.to ? other_extreme(f, a, near, t, part, here.to) : 0};
	if (!there.to)
		return 0;
	return of_both(f, formula_swap(f->g, f->scratch, body, &here, 1), formula_swap(f->g, f->scratch, body, &there, 1));
}

/* p(x) * h(y), all factors of h known not to be negative, and h not exact. */
static ExprId
scaled(Frame *f, Algebra *a, const Product *p, Monoid monoid)
{
	ExprId h = product_expr(a, p, false);
	Interval i = interval_of(a->g, h);
	if (!is_inexact(a, h) || p->nexponent || !(i.lo >= 0) || isinf(i.hi))
		return 0;
	ExprId x = product_expr(a, p, true), here = add_acc(f, a, monoid, a->type, x);
	ExprId there = here ? other_extreme(f, a, monoid, a->type, x, here) : 0;
	return there ? of_both(f, formula_mul(a->g, here, h), formula_mul(a->g, there, h)) : 0;
}

ExprId
derive_extreme(Frame *f, Algebra *a, ExprId body, CascadeMember *m)
{
	Sum *s = ARENA_NEW(a->scratch, Sum), *open = ARENA_NEW(a->scratch, Sum);
	Monoid monoid = tensor_node(f->g, m->tensor)->monoid;
	m->policy = FOLD_HOIST;
	ExprId value = monotone(f, a, body, monoid);
	if (value)
		return value;
	if (sum_of(a, body, s) && s->n == 1 && product_is_unconditional(&s->at[0]) && product_open(a, &s->at[0], open) && open->n == 1)
		value = scaled(f, a, &open->at[0], monoid);
	if (!value)
		algebra_refuse(a, REMARK_cascade_distributes, body);
	return value;
}
