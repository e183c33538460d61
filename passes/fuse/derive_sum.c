/* derive_sum.c: a sum whose terms hold earlier results, as accumulators and the value made of them.
 *
 * Each product of the body is W(x) * R(y) * E * M, with E exponentials (exponent.c) and M closed sums.
 *
 *     no E, no M        sum of W; times R at the end                                     (FOLD_HOIST)
 *     else              sums of W * E * b(x, anchor) for a basis b of M and its derivatives by its parts
 *                       of y: M(x, t') = sum of M^(i)(x, t) / i! * (t' - t)^i, so a state moves to
 *                       another anchor by binomials, all times the shift of E            (FOLD_STREAM, _MOMENTS)
 *
 * A closed sum that holds an exponential is multiplied out first. No other is: (x - y) w as the sums of x w and of w
 * loses as many digits as x has more than x - y, which is often exact (cancel.c). */
#include <math.h>
#include <string.h>

#include "passes/fuse/cancel.h"
#include "passes/fuse/differentiate.h"
#include "passes/fuse/exponent.h"
#include "passes/fuse/formula.h"

enum { MAX_DEGREE = 3, MAX_EXPS = 4 };

/* An element of the basis: the derivative of order[k] by atom k, over the factorials, is coef * b. */
typedef struct {
	uint8_t order[MAX_ATOMS];
	Sum *sum;
	double coef;
	ExprId term, acc;
} Beta;

typedef struct {
	Product weight, rest, closed; /* W; R with conditions; M */
	Product inner;                /* of W, what is rounded to `narrow` with E and M */
	DType narrow;
	Factor exp[MAX_EXPS];
	unsigned nexp;
	ExpPlan plan[MAX_EXPS];
	Atoms atoms;                  /* of M */
	int anchor[MAX_ATOMS];
	Beta beta[MAX_BETAS];
	unsigned nbeta;
} Moments;

static bool
is_inside(const Product *p, ExprId base)
{
	for (unsigned k = 0; k < p->ninside; k++)
		if (p->inside[k] == base)
			return true;
	return false;
}

static bool
sort_factors(Algebra *a, const Product *p, Moments *m)
{
	memset(m, 0, sizeof *m);
	m->weight.coef = m->closed.coef = m->inner.coef = 1;
	m->narrow = p->narrow;
	m->rest.coef = p->coef;
	m->weight.xcond = p->xcond;
	m->rest.ycond = p->ycond;
	for (unsigned k = 0; k < p->nfactor; k++) {
		const Factor *x = &p->factor[k];
		if (x->side == SIDE_BOTH && exponential_of(a->g, x->base)) {
			if (m->nexp == MAX_EXPS)
				return algebra_refuse(a, REMARK_cascade_rank, x->base);
			m->exp[m->nexp++] = *x;
			continue;
		}
		Product *to = x->side == SIDE_X ? is_inside(p, x->base) ? &m->inner : &m->weight : x->side == SIDE_BOTH ? &m->closed : &m->rest;
		if (!product_factor(a, to, x->base, x->power, x->side))
			return false;
	}
	return true;
}

static void
find_exponential(void *user, ExprId e)
{
	Algebra *a = ((void **)user)[0];
	bool *met = ((void **)user)[1];
	*met |= exponential_of(a->g, e) == e && side_of(a, e) == SIDE_BOTH;
}

static bool
holds_exponential(Algebra *a, const Product *p)
{
	bool met = false;
	void *user[2] = {a, &met};
	for (unsigned k = 0; k < p->nfactor; k++)
		expr_walk(a->g, a->scratch, p->factor[k].base, find_exponential, user);
	return met;
}

/* --- the basis --- */

static bool
add_beta(Algebra *a, Moments *m, const uint8_t *order, Sum *s)
{
	double factorial = 1;
	if (s->n == 0)
		return true;
	if (m->nbeta == MAX_BETAS)
		return algebra_refuse(a, REMARK_cascade_rank, closed_expr(a, &m->closed));
	Beta *b = &m->beta[m->nbeta++];
	memcpy(b->order, order, MAX_ATOMS);
	b->sum = s;
	for (unsigned k = 0; k < MAX_ATOMS; k++)
		for (unsigned j = 2; j <= order[k]; j++)
			factorial *= j;
	b->coef = 1 / factorial;
	if (s->n == 1) {
		b->coef *= s->at[0].coef;
		Product p = s->at[0];
		p.coef = 1;
		b->term = closed_expr(a, &p);
		return true;
	}
	for (unsigned k = 0; k < s->n; k++) {
		ExprId e = closed_expr(a, &s->at[k]);
		b->term = b->term ? formula_add(a->g, b->term, e) : e;
	}
	return true;
}

/* All derivatives that are not 0: from each, by the atoms from its last one on, so that each comes once. */
static bool
make_basis(Algebra *a, Moments *m)
{
	uint8_t none[MAX_ATOMS] = {0};
	for (unsigned k = 0; k < m->closed.nfactor; k++)
		if (!atoms_of(a, m->closed.factor[k].base, false, &m->atoms))
			return algebra_refuse(a, REMARK_cascade_rank, m->closed.factor[k].base);
	Sum *whole = ARENA_NEW(a->scratch, Sum);
	whole->n = 1;
	whole->at[0] = m->closed;
	if (!add_beta(a, m, none, whole))
		return false;
	for (unsigned k = 0; k < m->nbeta; k++) {
		unsigned last = 0;
		for (unsigned j = 0; j < m->atoms.n; j++)
			if (m->beta[k].order[j])
				last = j;
		for (unsigned j = last; j < m->atoms.n; j++) {
			uint8_t order[MAX_ATOMS];
			Sum *d = ARENA_NEW(a->scratch, Sum);
			memcpy(order, m->beta[k].order, sizeof order);
			if (++order[j] > MAX_DEGREE + 1 || !sum_derivative(a, m->beta[k].sum, m->atoms.at[j], d))
				return algebra_refuse(a, REMARK_cascade_rank, closed_expr(a, &m->closed));
			if (!add_beta(a, m, order, d))
				return false;
		}
	}
	return m->nbeta <= MAX_TERMS || algebra_refuse(a, REMARK_cascade_rank, closed_expr(a, &m->closed));
}

/* The sum of a term; of ones it is the number of elements, exact. */
static ExprId
sum_acc(Frame *f, Algebra *a, ExprId term)
{
	double v;
	if (!formula_number_of(f->g, term, &v) || v != 1)
		return add_acc(f, a, MON_SUM, a->type, term);
	ExprId count = count_of(f, a);
	return count ? expr_cast(f->g, a->type, count) : 0;
}

static bool
add_accs(Frame *f, Algebra *a, Moments *m)
{
	Swap swap[MAX_ATOMS];
	Product w = m->weight;
	w.xcond = 0;
	ExprId weight = product_expr(a, &w, true);
	for (unsigned k = 0; k < m->atoms.n; k++) {
		DType t = (DType)expr_get(f->g, m->atoms.at[k])->dtype;
		m->anchor[k] = add_anchor(f, a, m->atoms.at[k], end_of(f, m->atoms.at[k]));
		if (m->anchor[k] < 0)
			return false;
		swap[k] = (Swap){m->atoms.at[k], placeholder(f->g, ANCHOR_NEW, (unsigned)m->anchor[k], t)};
	}
	for (unsigned k = 0; k < m->nbeta; k++) {
		ExprId e = formula_swap(f->g, f->scratch, m->beta[k].term, swap, m->atoms.n);
		for (unsigned j = 0; j < m->nexp; j++)
			e = formula_mul(f->g, m->plan[j].term, e);
		e = formula_mul(f->g, e, product_expr(a, &m->inner, true));
		if (m->narrow != DT_NONE)
			e = expr_cast(f->g, a->type, expr_cast(f->g, m->narrow, e));
		e = formula_mul(f->g, e, weight);
		if (m->weight.xcond)
			e = formula_select(f->g, m->weight.xcond, e, formula_number(f->g, a->type, 0));
		m->beta[k].acc = sum_acc(f, a, e);
		if (!m->beta[k].acc)
			return false;
	}
	return true;
}

/* --- moving --- */

static double
binomials(const Beta *to, const Beta *from)
{
	double n = 1;
	for (unsigned k = 0; k < MAX_ATOMS; k++)
		for (unsigned j = 0; j < to->order[k]; j++)
			n = n * (from->order[k] - j) / (j + 1);
	return n;
}

static bool
reaches(const Beta *to, const Beta *from)
{
	for (unsigned k = 0; k < MAX_ATOMS; k++)
		if (from->order[k] < to->order[k])
			return false;
	return true;
}

/* The accumulator of beta `to` when the atoms of M move from `from` to `to_value`; without the shift of E. */
static ExprId
moved_basis(Frame *f, Algebra *a, const Moments *m, const Beta *to, const ExprId *from, const ExprId *to_value)
{
	ExprId sum = 0;
	for (unsigned k = 0; k < m->nbeta; k++) {
		const Beta *b = &m->beta[k];
		if (!reaches(to, b))
			continue;
		ExprId e = formula_scale(f->g, binomials(to, b) * b->coef / to->coef, b->acc);
		for (unsigned j = 0; j < m->atoms.n; j++) {
			ExprId d = formula_sub(f->g, to_value[j], from[j]);
			unsigned power = (unsigned)(b->order[j] - to->order[j]);
			if (power)
				e = formula_mul(f->g, e, expr_cast(f->g, a->type, formula_power(f->g, d, power)));
		}
		sum = sum ? formula_add(f->g, sum, e) : e;
	}
	return sum;
}

typedef enum { AT_OLD, AT_NEW, AT_STATE, AT_END } Where;

/* A value for each atom: its anchor as a placeholder or of the state, or y itself. */
static void
atom_values(Frame *f, const Atoms *atoms, const int *anchor, Where where, ExprId *out)
{
	const CascadePass *p = &f->out->pass[f->pass];
	for (unsigned k = 0; k < atoms->n; k++) {
		DType t = (DType)expr_get(f->g, atoms->at[k])->dtype;
		switch (where) {
		case AT_OLD: out[k] = placeholder(f->g, ANCHOR_OLD, (unsigned)anchor[k], t); break;
		case AT_NEW: out[k] = placeholder(f->g, ANCHOR_NEW, (unsigned)anchor[k], t); break;
		case AT_STATE: out[k] = p->anchor[anchor[k]].value; break;
		case AT_END: out[k] = with_values(f, atoms->at[k]); break;
		}
	}
}

static ExprId
moved(Frame *f, Algebra *a, const Moments *m, const Beta *to, Where from, Where where)
{
	ExprId x[MAX_ATOMS], y[MAX_ATOMS];
	atom_values(f, &m->atoms, m->anchor, from, x);
	atom_values(f, &m->atoms, m->anchor, where, y);
	ExprId e = moved_basis(f, a, m, to, x, y);
	for (unsigned k = 0; k < m->nexp; k++) {
		const ExpPlan *p = &m->plan[k];
		atom_values(f, &p->kept, p->anchor, from, x);
		atom_values(f, &p->kept, p->anchor, where, y);
		e = formula_mul(f->g, e, exponent_shift(f, a, p, x, y));
	}
	return e;
}

static ExprId
finished(Frame *f, Algebra *a, const Moments *m, ExprId sum)
{
	ExprId rest = product_expr(a, &m->rest, false), c = m->rest.ycond;
	if (c) {
		Product r = m->rest;
		r.ycond = 0;
		rest = product_expr(a, &r, false);
	}
	for (unsigned k = 0; k < m->nexp; k++)
		rest = formula_mul(f->g, rest, m->plan[k].rest);
	sum = formula_mul(f->g, rest, sum);
	return c ? formula_select(f->g, c, sum, formula_number(f->g, a->type, 0)) : sum;
}

/* --- the three ways --- */

static void
at_least(CascadeMember *m, FoldPolicy p)
{
	if (m->policy < p)
		m->policy = p;
}

static bool
has_kept(const Moments *m)
{
	for (unsigned k = 0; k < m->nexp; k++)
		if (m->plan[k].kept.n)
			return true;
	return false;
}

/* Its exponentials are bounded, and it has no sums that mix. What is of one side stays as it is: exp(-y) is no better than 1 / exp(y). */
static ExprId
hoist(Frame *f, Algebra *a, const Product *p, CascadeMember *member)
{
	Sum *open = ARENA_NEW(a->scratch, Sum);
	Product mixed = *p;
	ExprId sum = 0;
	mixed.nfactor = 0;
	for (unsigned k = 0; k < p->nfactor; k++)
		if (p->factor[k].side == SIDE_BOTH)
			mixed.factor[mixed.nfactor++] = p->factor[k];
	if (!product_open(a, &mixed, open))
		return 0;
	for (unsigned k = 0; k < open->n; k++) {
		for (unsigned j = 0; j < p->nfactor; j++)
			if (p->factor[j].side != SIDE_BOTH && !product_factor(a, &open->at[k], p->factor[j].base, p->factor[j].power, p->factor[j].side))
				return 0;
		ExprId acc = sum_acc(f, a, product_expr(a, &open->at[k], true));
		if (!acc)
			return 0;
		Product y = open->at[k];
		y.ycond = 0;
		ExprId e = formula_mul(f->g, acc, product_expr(a, &y, false)), c = open->at[k].ycond;
		e = c ? formula_select(f->g, c, e, formula_number(f->g, a->type, 0)) : e;
		sum = sum ? formula_add(f->g, sum, e) : e;
	}
	at_least(member, FOLD_HOIST);
	return sum ? sum : formula_number(f->g, a->type, 0);
}

static ExprId
anchored(Frame *f, Algebra *a, Moments *m, CascadeMember *member)
{
	if (!add_accs(f, a, m))
		return 0;
	for (unsigned k = 0; k < m->nbeta; k++) {
		ExprId e = moved(f, a, m, &m->beta[k], AT_OLD, AT_NEW);
		if (e != m->beta[k].acc)
			set_rebase(f, m->beta[k].acc, e);
	}
	at_least(member, m->nbeta > 1 ? FOLD_MOMENTS : FOLD_STREAM);
	Beta end = {.coef = 1};
	return finished(f, a, m, moved(f, a, m, &end, AT_STATE, AT_END));
}

static ExprId
derive_product(Frame *f, Algebra *a, const Product *p, CascadeMember *member, unsigned depth);

static ExprId
derive_all(Frame *f, Algebra *a, const Sum *s, CascadeMember *member, unsigned depth)
{
	ExprId sum = 0;
	for (unsigned k = 0; k < s->n; k++) {
		ExprId e = derive_product(f, a, &s->at[k], member, depth);
		if (!e)
			return 0;
		sum = sum ? formula_add(f->g, sum, e) : e;
	}
	return sum ? sum : formula_number(f->g, a->type, 0);
}

/* Multiplies out the closed sums that hold exponentials, to the products that the rules above know. */
static ExprId
distribute(Frame *f, Algebra *a, const Product *p, CascadeMember *member, unsigned depth)
{
	Sum *all = ARENA_NEW(a->scratch, Sum), *base = ARENA_NEW(a->scratch, Sum), *next = ARENA_NEW(a->scratch, Sum);
	all->n = 1;
	all->at[0] = *p;
	all->at[0].nfactor = 0;
	for (unsigned k = 0; k < p->nfactor; k++) {
		const Factor *x = &p->factor[k];
		Product one = {.nfactor = 1, .factor = {*x}};
		bool open = x->side == SIDE_BOTH && !exponential_of(f->g, x->base) && holds_exponential(a, &one);
		if (open && !sum_of(a, x->base, base))
			return 0;
		if (!open) {
			base->n = 1;
			base->at[0] = (Product){.coef = 1};
			product_factor(a, &base->at[0], x->base, x->power, x->side);
		}
		for (int n = 0; n < (open ? (int)x->power : 1); n++) {
			if (!sum_product(a, all, base, next))
				return 0;
			*all = *next;
		}
	}
	return terms_cancel(a, all) ? algebra_refuse(a, REMARK_cascade_cancels, p->factor[0].base) : derive_all(f, a, all, member, depth + 1);
}

static ExprId
derive_product(Frame *f, Algebra *a, const Product *p, CascadeMember *member, unsigned depth)
{
	Moments *m = ARENA_NEW(a->scratch, Moments);
	if (!sort_factors(a, p, m))
		return 0;
	if (holds_exponential(a, &m->closed)) {
		if (depth < MAX_DEGREE)
			return distribute(f, a, p, member, depth);
		algebra_refuse(a, REMARK_cascade_rank, closed_expr(a, &m->closed));
		return 0;
	}
	for (unsigned k = 0; k < m->nexp; k++)
		if (!exponent_plan(f, a, &m->exp[k], &m->plan[k]))
			return 0;
	if (!make_basis(a, m))
		return 0;
	if (m->narrow == DT_NONE && !has_kept(m) && m->nbeta == 1)
		return hoist(f, a, p, member);
	for (unsigned k = 0; k < m->closed.nfactor; k++)
		if (m->nbeta > 1 && !keeps_at_anchors(f, a, m->closed.factor[k].base))
			return 0;
	return anchored(f, a, m, member);
}

/* A sum of nothing is 0, whatever its factors of y are. */
ExprId
derive_sum(Frame *f, Algebra *a, ExprId body, CascadeMember *m)
{
	Sum *s = ARENA_NEW(a->scratch, Sum);
	if (!sum_of(a, body, s) || (terms_cancel(a, s) && !close_terms(a, body, s)))
		return 0;
	ExprId e = derive_all(f, a, s, m, 0);
	if (!e || expr_get(f->g, e)->op == OP_IVAR)
		return e;
	ExprId seen = seen_of(f, a);
	return seen ? formula_select(f->g, seen, e, formula_number(f->g, a->type, 0)) : 0;
}
