/* cancel.c: differences of the stream and an earlier result (cancel.h).
 *
 * x - y is exact where both are near one another, and its error bound is as small as it is: a sum of such terms allows
 * nothing that is in proportion to x. So they stay closed, and are summed at anchors near y.
 *
 * An anchor that moves brings terms of the size of x - anchor for the terms so far. That is allowed
 *     of sums    whose own rounding has a bound of that size: each of their terms counts there
 *     of maxima  from which what they are of is taken away, or less: x - y is then of one sign, and the further from 0 the more
 *                the maximum grows. So of minima. Of others x - y may be 0 where x - anchor is not. */
#include "passes/fuse/cancel.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/fuse/exponent.h"
#include "passes/fuse/formula.h"
#include "passes/fuse/interval.h"

/* Each factor and exponent has one side. */
static bool
is_plain(const Product *p)
{
	for (unsigned k = 0; k < p->nfactor; k++)
		if (p->factor[k].side == SIDE_BOTH)
			return false;
	return true;
}

/* Whether never both are there. */
static bool
are_apart(const Algebra *a, ExprId c, ExprId d)
{
	return c && d && (c == expr_unary(a->g, OP_NOT, d) || d == expr_unary(a->g, OP_NOT, c));
}

bool
terms_cancel(const Algebra *a, const Sum *s)
{
	for (unsigned k = 0; k < s->n && !BUG(terms_summed_apart); k++)
		for (unsigned j = 0; j < k && is_plain(&s->at[k]); j++)
			if (is_plain(&s->at[j]) && !are_apart(a, s->at[j].xcond, s->at[k].xcond) && !are_apart(a, s->at[j].ycond, s->at[k].ycond))
				return true;
	return false;
}

bool
close_terms(Algebra *a, ExprId body, Sum *s)
{
	for (unsigned k = 0; k < s->n; k++)
		if (!is_plain(&s->at[k]) || s->at[k].ycond || s->at[k].narrow != DT_NONE)
			return algebra_refuse(a, REMARK_cascade_cancels, body);
	s->n = 1;
	s->at[0] = product_one(1);
	return product_factor(a, &s->at[0], body, 1, SIDE_BOTH);
}

static void
find_function(void *user, ExprId e)
{
	void **at = user;
	switch ((int)expr_get(((const Algebra *)at[0])->g, e)->op) {
	case OP_RSQRT: case OP_EXP: case OP_EXP2: case OP_LOG: case OP_LOG2: *(bool *)at[1] |= side_of(at[0], e) == SIDE_Y;
	}
}

bool
is_inexact(const Algebra *a, ExprId e)
{
	bool met = false;
	const void *user[2] = {a, &met};
	expr_walk(a->g, a->scratch, e, find_function, user);
	return met;
}

/* Whether e holds a member of the pass that is a maximum or a minimum. */
static bool
holds_extreme(const Frame *f, ExprId e)
{
	for (unsigned k = 0; k < f->member; k++) {
		const CascadeMember *m = &f->out->member[k];
		Monoid monoid = tensor_node(f->g, m->tensor)->monoid;
		if (m->pass == f->pass && (monoid == MON_MAX || monoid == MON_MIN) && expr_contains(f->g, f->scratch, e, f->read[k]))
			return true;
	}
	return false;
}

AnchorEnd
end_of(const Frame *f, ExprId atom)
{
	AnchorEnd end = END_NONE;
	bool sums = false;
	for (unsigned k = 0; k < f->member; k++) {
		const CascadeMember *m = &f->out->member[k];
		Monoid monoid = tensor_node(f->g, m->tensor)->monoid;
		if (m->pass != f->pass || !expr_contains(f->g, f->scratch, atom, f->read[k]))
			continue;
		int d = direction_of(f->g, atom, f->read[k]);
		if (monoid != MON_MAX && monoid != MON_MIN)
			sums = true;
		else if (d == 1 || d == -1)
			end = (d == 1) == (monoid == MON_MAX) ? END_BELOW : END_ABOVE;
	}
	Op op = (Op)expr_get(f->g, atom)->op;
	return sums && (end == END_BELOW || op == OP_LOG || op == OP_LOG2) ? END_UNKNOWN : end;
}

/* Whether the extremes of power * base are all maxima or all minima that it falls with, and it is never above 0. */
static bool
is_below(Frame *f, Algebra *a, ExprId base, double power, const Atoms *atoms)
{
	Swap swap[MAX_ATOMS];
	unsigned n = 0;
	int clamp = 0;
	for (unsigned k = 0; k < atoms->n; k++) {
		if (!holds_extreme(f, atoms->at[k])) {
			swap[n++] = (Swap){atoms->at[k], formula_number(f->g, (DType)expr_get(f->g, atoms->at[k])->dtype, 0)};
			continue;
		}
		int c = clamp_of(f, base, power, atoms->at[k]);
		if (c == 0 || (clamp && c != clamp))
			return false;
		clamp = c;
	}
	return most_alone(f, a, formula_swap(f->g, f->scratch, base, swap, n), power) <= 0;
}

static bool
is_kept(Frame *f, Algebra *a, ExprId e)
{
	Atoms atoms = {0};
	return atoms_of(a, e, true, &atoms) && (is_below(f, a, e, 1, &atoms) || is_below(f, a, e, -1, &atoms));
}

/* The one operand of a sum that holds extremes; 0: it is no sum, or both do. */
static ExprId
part_of_extremes(const Frame *f, ExprId e)
{
	const Expr *p = expr_get(f->g, e);
	if (p->op != OP_ADD && p->op != OP_SUB)
		return 0;
	ExprId x = expr_arg(f->g, e, 0), y = expr_arg(f->g, e, 1);
	bool hx = holds_extreme(f, x), hy = holds_extreme(f, y);
	return hx && hy ? 0 : hx ? x : y;
}

/* What is added to a part that is not exact may be anything: that part's own rounding is of its size. */
bool
keeps_at_anchors(Frame *f, Algebra *a, ExprId base)
{
	if (!holds_extreme(f, base) || is_kept(f, a, base) || BUG(extreme_of_another))
		return true;
	for (ExprId e = part_of_extremes(f, base); e && is_inexact(a, e); e = part_of_extremes(f, e))
		if (is_kept(f, a, e))
			return true;
	return algebra_refuse(a, REMARK_cascade_cancels, base);
}
