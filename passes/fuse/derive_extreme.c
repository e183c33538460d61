/* derive_extreme.c: a maximum or minimum whose terms hold earlier results: they must be p(x) + q(y), or
 * p(x) times a factor of y that is not negative; then q, or the factor, is applied at the end (P4). */
#include "passes/fuse/formula.h"
#include "passes/fuse/frame.h"
#include "passes/fuse/interval.h"

static bool
open_all(Algebra *a, ExprId body, Sum *out)
{
	Sum *s = ARENA_NEW(a->scratch, Sum), *open = ARENA_NEW(a->scratch, Sum);
	out->n = 0;
	if (!sum_of(a, body, s))
		return false;
	for (unsigned k = 0; k < s->n; k++) {
		if (!product_open(a, &s->at[k], open))
			return false;
		for (unsigned j = 0; j < open->n; j++) {
			if (out->n == MAX_PRODUCTS || open->at[j].xcond || open->at[j].ycond)
				return algebra_refuse(a, REMARK_cascade_distributes, body);
			out->at[out->n++] = open->at[j];
		}
	}
	return true;
}

static ExprId
whole(const Algebra *a, const Product *p)
{
	return formula_mul(a->g, product_expr(a, p, false), product_expr(a, p, true));
}

/* p(x) * h(y), all factors of h known not to be negative. */
static ExprId
scaled(Frame *f, Algebra *a, const Product *p, Monoid monoid, ExprId body)
{
	ExprId h = product_expr(a, p, false);
	if (!(interval_of(a->g, h).lo >= 0)) {
		algebra_refuse(a, REMARK_cascade_distributes, body);
		return 0;
	}
	ExprId acc = add_acc(f, a, monoid, a->type, product_expr(a, p, true));
	return acc ? formula_mul(a->g, acc, h) : 0;
}

ExprId
derive_extreme(Frame *f, Algebra *a, ExprId body, CascadeMember *m)
{
	Sum *s = ARENA_NEW(a->scratch, Sum);
	Monoid monoid = tensor_node(f->g, m->tensor)->monoid;
	ExprId x = 0, y = 0;
	if (!open_all(a, body, s))
		return 0;
	m->policy = FOLD_HOIST;
	if (s->n == 1 && product_side(&s->at[0]) == SIDE_BOTH)
		return scaled(f, a, &s->at[0], monoid, body);
	for (unsigned k = 0; k < s->n; k++) {
		Side side = product_side(&s->at[k]);
		ExprId e = whole(a, &s->at[k]), *to = side == SIDE_X ? &x : &y;
		if (side == SIDE_BOTH) {
			algebra_refuse(a, REMARK_cascade_distributes, body);
			return 0;
		}
		*to = *to ? formula_add(f->g, *to, e) : e;
	}
	ExprId acc = x ? add_acc(f, a, monoid, a->type, x) : 0;
	if (!x) /* the same for every element */
		return y;
	return acc && y ? formula_add(f->g, acc, y) : acc;
}
