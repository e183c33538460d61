/* derive_extreme.c: a maximum or minimum whose terms hold earlier results: they must rise, or fall, with one part p(x); then
 * the extreme of p is folded, and the rest of the term is applied to it at the end (P4). Every rounding is monotone as well, so
 * this is the definition's element to the bit. A product whose factors of y are no better than their functions may be taken
 * apart as well, p(x) times a factor that is not negative: its bound has room for another order. */
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

static ExprId
monotone(Frame *f, Algebra *a, ExprId body, Monoid monoid)
{
	bool ok = true;
	ExprId part = part_of_stream(a, body, &ok);
	int d = ok && part ? direction_of(f->g, body, part) : 2;
	if (d != 1 && d != -1)
		return 0;
	ExprId acc = add_acc(f, a, d == 1 || BUG(extreme_falls) ? monoid : opposite_of(monoid), (DType)expr_get(f->g, part)->dtype, part);
	Swap swap = {part, acc};
	return acc ? formula_swap(f->g, f->scratch, body, &swap, 1) : 0;
}

/* p(x) * h(y), all factors of h known not to be negative, and h not exact. */
static ExprId
scaled(Frame *f, Algebra *a, const Product *p, Monoid monoid)
{
	ExprId h = product_expr(a, p, false);
	if (!is_inexact(a, h) || p->nexponent || !(interval_of(a->g, h).lo >= 0))
		return 0;
	ExprId acc = add_acc(f, a, monoid, a->type, product_expr(a, p, true));
	return acc ? formula_mul(a->g, acc, h) : 0;
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
