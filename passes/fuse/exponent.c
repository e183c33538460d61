/* exponent.c: exp(p(x) + q(y)) at an anchor (P5, P6).
 *
 * A part of y can be an anchor when it is made of maxima and minima and the exponent falls as they grow
 * (rises, for minima): then a state that meets more elements is scaled by at most 1. The exponent with
 * each maximum replaced by its own term must be bounded above: then no element of a state exceeds what
 * its anchor allows. The other parts of y are factors of the finished sum; if there is no anchor, p(x)
 * must lie where its exponential neither overflows nor vanishes. */
#include "passes/fuse/exponent.h"

#include <math.h>

#include "passes/expr_map.h"
#include "passes/fuse/formula.h"
#include "passes/fuse/interval.h"

enum { MAX_CASES = 3 };
static const double harmless = 40; /* |p| up to this: e^p is far from the ends of f32 */

static bool
add_atom(Atoms *out, ExprId e)
{
	for (unsigned k = 0; k < out->n; k++)
		if (out->at[k] == e)
			return true;
	if (out->n == MAX_ATOMS)
		return false;
	out->at[out->n++] = e;
	return true;
}

bool
atoms_of(const Algebra *a, ExprId e, bool flat, Atoms *out)
{
	const Expr *p = expr_get(a->g, e);
	Side side = side_of(a, e);
	bool sum = p->op == OP_ADD || p->op == OP_SUB || p->op == OP_NEG;
	if (!(side & SIDE_Y))
		return true;
	if (side == SIDE_Y && !(flat && sum))
		return p->dtype == DT_BOOL || add_atom(out, e);
	for (unsigned k = 0; k < expr_get(a->g, e)->narg; k++)
		if (!atoms_of(a, expr_arg(a->g, e, k), flat, out))
			return false;
	return true;
}

int
clamp_of(const Frame *f, ExprId arg, double power, ExprId atom)
{
	int clamp = 0;
	for (unsigned k = 0; k < f->member; k++) {
		const CascadeMember *m = &f->out->member[k];
		Monoid monoid = tensor_node(f->g, m->tensor)->monoid;
		if (m->pass != f->pass || !expr_contains(f->g, f->scratch, atom, f->read[k]))
			continue;
		int d = direction_of(f->g, arg, f->read[k]), want = monoid == MON_MAX ? -1 : monoid == MON_MIN ? 1 : 0;
		if (want == 0 || d == 2 || (power < 0 ? -d : d) != want || (clamp && clamp != want))
			return 0;
		clamp = want;
	}
	return clamp;
}

typedef struct {
	ExprId e;
	double coef;
} Part;

/* The terms of an expression of x, equal ones together. */
static bool
parts_of(Algebra *a, ExprId e, Part *part, unsigned *n)
{
	Sum *s = ARENA_NEW(a->scratch, Sum), *open = ARENA_NEW(a->scratch, Sum);
	*n = 0;
	if (!sum_of(a, e, s))
		return false;
	for (unsigned k = 0; k < s->n; k++) {
		if (!product_open(a, &s->at[k], open))
			return false;
		for (unsigned j = 0; j < open->n; j++) {
			Product q = open->at[j];
			unsigned i = 0;
			q.coef = 1;
			ExprId x = formula_mul(a->g, product_expr(a, &q, true), product_expr(a, &q, false));
			while (i < *n && part[i].e != x)
				i++;
			if (i == MAX_PRODUCTS)
				return false;
			if (i == *n)
				part[(*n)++] = (Part){x, 0};
			part[i].coef += open->at[j].coef;
		}
	}
	return true;
}

static double
upper_of(Algebra *a, ExprId e, unsigned cases);

/* At most what it is with a maximum that is subtracted, or a minimum that is added, replaced by either. */
static double
upper_by_cases(Algebra *a, ExprId e, const Part *part, unsigned n, unsigned cases)
{
	double best = INFINITY;
	for (unsigned k = 0; k < n && cases < MAX_CASES; k++) {
		Op op = (Op)expr_get(a->g, part[k].e)->op;
		if (part[k].coef == 0 || op != (part[k].coef < 0 ? OP_MAX : OP_MIN))
			continue;
		for (unsigned side = 0; side < 2; side++) {
			Swap swap = {part[k].e, expr_arg(a->g, part[k].e, side)};
			best = fmin(best, upper_of(a, formula_swap(a->g, a->scratch, e, &swap, 1), cases + 1));
		}
	}
	return best;
}

static double
upper_of(Algebra *a, ExprId e, unsigned cases)
{
	Part part[MAX_PRODUCTS];
	unsigned n;
	double sum = 0;
	if (!parts_of(a, e, part, &n))
		return INFINITY;
	for (unsigned k = 0; k < n; k++) {
		Interval i = interval_of(a->g, part[k].e);
		if (part[k].coef != 0)
			sum += part[k].coef * (part[k].coef > 0 ? i.hi : i.lo);
	}
	return isfinite(sum) ? sum : isnan(sum) ? INFINITY : fmin(sum, upper_by_cases(a, e, part, n, cases));
}

/* The exponent where each member is what it is of this element alone. */
static ExprId
at_one_element(Frame *f, ExprId e)
{
	const CascadePass *p = &f->out->pass[f->pass];
	Swap swap[MAX_ACCS];
	unsigned n = 0;
	for (unsigned k = 0; k < p->nacc; k++)
		swap[n++] = (Swap){placeholder(f->g, STATE_A, k, p->acc[k].dtype), p->acc[k].term};
	return formula_swap(f->g, f->scratch, with_values(f, e), swap, n);
}

double
most_alone(Frame *f, const Algebra *a, ExprId arg, double power)
{
	Algebra own = *a;
	own.deep = true;
	own.type = (DType)expr_get(f->g, arg)->dtype;
	own.steps = 600;
	return upper_of(&own, formula_scale(f->g, power, at_one_element(f, arg)), 0);
}

static bool
is_harmless(const Graph *g, const Product *x)
{
	double lo = 0, hi = 0;
	for (unsigned k = 0; k < x->nexponent; k++) {
		const Exponent *e = &x->exponent[k];
		Interval i = interval_of(g, e->atom);
		if (e->side != SIDE_X)
			continue;
		lo += e->coef * (e->coef > 0 ? i.lo : i.hi);
		hi += e->coef * (e->coef > 0 ? i.hi : i.lo);
	}
	return lo >= -harmless && hi <= harmless;
}

static bool
holds_any(const Frame *f, ExprId e, const Atoms *atoms)
{
	for (unsigned k = 0; k < atoms->n; k++)
		if (expr_contains(f->g, f->scratch, e, atoms->at[k]))
			return true;
	return false;
}

/* Exponents of y: with a kept atom they move, the others are hoisted with the factors that logs left. */
static void
split_exponents(const Frame *f, const Product *x, const Atoms *kept, Product *moving, Product *rest)
{
	*moving = (Product){.coef = 1};
	*rest = *x;
	rest->nexponent = 0;
	for (unsigned k = 0; k < x->nexponent; k++) {
		const Exponent *e = &x->exponent[k];
		if (e->side == SIDE_X)
			continue;
		Product *to = holds_any(f, e->atom, kept) ? moving : rest;
		to->exponent[to->nexponent++] = *e;
	}
}

/* What of the exponent is of neither x nor the atoms, as numbers and what a row has, stays in the terms: it is no factor of the rest. */
static bool
leave_in_terms(Frame *f, Algebra *a, const Factor *x, const Atoms *kept, const Atoms *hoisted, Product *rest)
{
	const Atoms *const all[] = {kept, hoisted};
	ExprId inner = exponential_of(f->g, x->base);
	Product *stay = ARENA_NEW(f->scratch, Product);
	Swap swap[2 * MAX_ATOMS];
	unsigned n = 0;
	stay->coef = 1;
	for (unsigned s = 0; s < 2; s++)
		for (unsigned k = 0; k < all[s]->n; k++)
			swap[n++] = (Swap){all[s]->at[k], formula_number(f->g, (DType)expr_get(f->g, all[s]->at[k])->dtype, 0)};
	ExprId arg = formula_swap(f->g, f->scratch, expr_arg(f->g, inner, 0), swap, n);
	bool ok = exponents_of(a, arg, expr_get(f->g, inner)->op == OP_EXP2, x->power, stay);
	if (!ok || !(stay->coef > 0) || isinf(stay->coef))
		return false;
	rest->coef /= stay->coef;
	for (unsigned k = 0; ok && k < stay->nfactor; k++)
		if (stay->factor[k].side != SIDE_X)
			ok = product_factor(a, rest, stay->factor[k].base, -stay->factor[k].power, stay->factor[k].side);
	for (unsigned k = 0; ok && k < stay->nexponent; k++)
		if (stay->exponent[k].side != SIDE_X)
			ok = product_exponent(a, rest, (Exponent){stay->exponent[k].atom, -stay->exponent[k].coef, stay->exponent[k].side, stay->exponent[k].two});
	return ok;
}

static ExprId
powered(const Algebra *a, const Factor *x, ExprId base)
{
	ExprId inner = exponential_of(a->g, base);
	if (x->power == 1 || !inner)
		return formula_power(a->g, base, x->power);
	ExprId arg = formula_scale(a->g, x->power, expr_arg(a->g, inner, 0));
	return expr_cast(a->g, (DType)expr_get(a->g, base)->dtype, formula_exp(a->g, (Op)expr_get(a->g, inner)->op, arg));
}

bool
exponent_plan(Frame *f, Algebra *a, const Factor *x, ExpPlan *out)
{
	ExprId inner = exponential_of(f->g, x->base), arg = expr_arg(f->g, inner, 0);
	Product *all = ARENA_NEW(f->scratch, Product), *rest = ARENA_NEW(f->scratch, Product);
	Atoms atoms = {0}, hoisted = {0};
	int clamp[MAX_ATOMS];
	all->coef = 1;
	*out = (ExpPlan){0};
	if (!exponents_of(a, arg, expr_get(f->g, inner)->op == OP_EXP2, x->power, all) || !atoms_of(a, arg, true, &atoms))
		return algebra_refuse(a, REMARK_cascade_rank, inner);
	for (unsigned k = 0; k < atoms.n; k++) {
		int c = clamp_of(f, arg, x->power, atoms.at[k]);
		if (c)
			clamp[out->kept.n] = c;
		add_atom(c ? &out->kept : &hoisted, atoms.at[k]);
	}
	Swap swap[2 * MAX_ATOMS];
	unsigned n = 0;
	for (unsigned k = 0; k < hoisted.n; k++)
		swap[n++] = (Swap){hoisted.at[k], formula_number(f->g, (DType)expr_get(f->g, hoisted.at[k])->dtype, 0)};
	ExprId bare = formula_swap(f->g, f->scratch, arg, swap, n);
	if (out->kept.n ? !(most_alone(f, a, bare, x->power) <= 2 * harmless) : !is_harmless(f->g, all))
		return algebra_refuse(a, REMARK_cascade_unbounded, inner);
	split_exponents(f, all, &out->kept, &out->q, rest);
	if (!leave_in_terms(f, a, x, &out->kept, &hoisted, rest))
		return algebra_refuse(a, REMARK_cascade_unbounded, inner);
	for (unsigned k = 0; k < out->q.nexponent; k++)
		if (holds_any(f, out->q.exponent[k].atom, &hoisted))
			return algebra_refuse(a, REMARK_cascade_mixes, out->q.exponent[k].atom);
	for (unsigned k = 0; k < out->kept.n; k++) {
		out->anchor[k] = add_anchor(f, a, out->kept.at[k], (AnchorEnd)clamp[k]);
		if (out->anchor[k] < 0)
			return false;
		DType t = (DType)expr_get(f->g, out->kept.at[k])->dtype;
		swap[n++] = (Swap){out->kept.at[k], placeholder(f->g, ANCHOR_NEW, (unsigned)out->anchor[k], t)};
	}
	out->term = expr_cast(f->g, a->type, powered(a, x, formula_swap(f->g, f->scratch, x->base, swap, n)));
	out->rest = product_expr(a, rest, false);
	return true;
}

/* The difference of an atom that is k * t, with k fixed, as k * (to - from): infinite ends don't meet. */
static ExprId
difference_of(Frame *f, ExprId e, const ExpPlan *p, const ExprId *from, const ExprId *to)
{
	Graph *g = f->g;
	const Expr *x = expr_get(g, e);
	Op op = (Op)x->op;
	for (unsigned k = 0; k < p->kept.n; k++)
		if (p->kept.at[k] == e)
			return formula_sub(g, to[k], from[k]);
	if ((op == OP_MUL || op == OP_FDIV) && !holds_any(f, expr_arg(g, e, 1), &p->kept)) {
		ExprId by = expr_arg(g, e, 1), d = difference_of(f, expr_arg(g, e, 0), p, from, to);
		return op == OP_MUL ? formula_mul(g, d, by) : formula_div(g, d, by);
	}
	if (op == OP_MUL && !holds_any(f, expr_arg(g, e, 0), &p->kept)) {
		ExprId by = expr_arg(g, e, 0);
		return formula_mul(g, by, difference_of(f, expr_arg(g, e, 1), p, from, to));
	}
	Swap a[MAX_ATOMS], b[MAX_ATOMS];
	for (unsigned k = 0; k < p->kept.n; k++) {
		a[k] = (Swap){p->kept.at[k], from[k]};
		b[k] = (Swap){p->kept.at[k], to[k]};
	}
	return formula_sub(g, formula_swap(g, f->scratch, e, b, p->kept.n), formula_swap(g, f->scratch, e, a, p->kept.n));
}

ExprId
exponent_shift(Frame *f, Algebra *a, const ExpPlan *p, const ExprId *from, const ExprId *to)
{
	ExprId power[2] = {0, 0}, out = formula_number(f->g, a->type, 1);
	for (unsigned k = 0; k < p->q.nexponent; k++) {
		const Exponent *x = &p->q.exponent[k];
		ExprId d = formula_scale(f->g, x->coef, expr_cast(f->g, a->type, difference_of(f, x->atom, p, from, to)));
		power[x->two] = power[x->two] ? formula_add(f->g, power[x->two], d) : d;
	}
	for (int two = 0; two < 2; two++)
		if (power[two])
			out = formula_mul(f->g, out, formula_exp(f->g, two ? OP_EXP2 : OP_EXP, power[two]));
	return out;
}
