/* product.c: products, sums of them, opening and closing (product.h).
 *
 * Products of one side are opened, so that equal ones meet. Sums stay closed inside products: (x - y)^2
 * opened is x^2 - 2xy + y^2, which is right over the reals and wrong to compute with. */
#include "passes/fuse/product.h"

#include <math.h>
#include <string.h>

#include "passes/fuse/formula.h"
#include "passes/fuse/interval.h"

enum { MAX_STEPS = 600, MAX_OPENED = 4 };

typedef struct {
	Algebra *f;
	Side side;
} SideWalk;

static void
gather_side(void *user, ExprId e)
{
	SideWalk *w = user;
	const Expr *p = expr_get(w->f->g, e);
	if (p->narg == 0 || p->op == OP_READ || p->op == OP_RAND || p->op == OP_RANDN)
		w->side |= w->f->side(w->f->user, w->f->g, e);
}

Side
side_of(const Algebra *f, ExprId e)
{
	SideWalk w = {(Algebra *)f, SIDE_NONE};
	expr_walk(f->g, f->scratch, e, gather_side, &w);
	return w.side;
}

void
algebra_init(Algebra *f, Graph *g, Arena *scratch, SideFn *side, void *user, ExprId e)
{
	*f = (Algebra){.g = g, .scratch = scratch, .side = side, .user = user, .steps = MAX_STEPS};
	f->type = (DType)expr_get(g, e)->dtype;
}

bool
algebra_refuse(Algebra *f, RemarkId why, ExprId at)
{
	if (f->why.why == REMARK_NONE)
		f->why = (Refusal){.why = why, .at = at};
	return false;
}

/* --- products --- */

Product
product_one(double coef)
{
	Product p;
	memset(&p, 0, sizeof p);
	p.coef = coef;
	return p;
}

bool
product_factor(Algebra *f, Product *p, ExprId base, double power, Side side)
{
	unsigned k = 0;
	while (k < p->nfactor && (p->factor[k].base < base || (p->factor[k].base == base && p->factor[k].power < 0 && power > 0)))
		k++;
	if (k < p->nfactor && p->factor[k].base == base && (p->factor[k].power > 0) == (power > 0)) {
		p->factor[k].power += power;
		return true;
	}
	if (p->nfactor == MAX_FACTORS)
		return algebra_refuse(f, REMARK_cascade_rank, base);
	memmove(&p->factor[k + 1], &p->factor[k], (p->nfactor++ - k) * sizeof *p->factor);
	p->factor[k] = (Factor){base, power, side};
	return true;
}

bool
product_exponent(Algebra *f, Product *p, Exponent x)
{
	unsigned k = 0;
	while (k < p->nexponent && (p->exponent[k].two < x.two || (p->exponent[k].two == x.two && p->exponent[k].atom < x.atom)))
		k++;
	if (k < p->nexponent && p->exponent[k].atom == x.atom && p->exponent[k].two == x.two) {
		p->exponent[k].coef += x.coef;
		if (p->exponent[k].coef == 0)
			memmove(&p->exponent[k], &p->exponent[k + 1], (--p->nexponent - k) * sizeof *p->exponent);
		return true;
	}
	if (p->nexponent == MAX_EXPONENTS)
		return algebra_refuse(f, REMARK_cascade_rank, x.atom);
	memmove(&p->exponent[k + 1], &p->exponent[k], (p->nexponent++ - k) * sizeof *p->exponent);
	p->exponent[k] = x;
	return true;
}

bool
product_times(Algebra *f, Product *p, const Product *q)
{
	if (p->narrow != DT_NONE && q->narrow != DT_NONE)
		return algebra_refuse(f, REMARK_cascade_rounds, p->inside[0]);
	if (q->narrow != DT_NONE) {
		p->narrow = q->narrow;
		p->ninside = q->ninside;
		memcpy(p->inside, q->inside, sizeof p->inside);
	}
	p->coef *= q->coef;
	p->xcond = expr_and(f->g, p->xcond, q->xcond);
	p->ycond = expr_and(f->g, p->ycond, q->ycond);
	for (unsigned k = 0; k < q->nfactor; k++)
		if (!product_factor(f, p, q->factor[k].base, q->factor[k].power, q->factor[k].side))
			return false;
	for (unsigned k = 0; k < q->nexponent; k++)
		if (!product_exponent(f, p, q->exponent[k]))
			return false;
	return true;
}

bool
sum_add(Algebra *f, Sum *s, const Product *p)
{
	if (p->coef == 0 && p->nfactor + p->nexponent == 0)
		return true;
	if (s->n == MAX_PRODUCTS)
		return algebra_refuse(f, REMARK_cascade_rank, p->nfactor ? p->factor[0].base : 0);
	s->at[s->n++] = *p;
	return true;
}

Sum *
sum_new(Algebra *f)
{
	return ARENA_NEW(f->scratch, Sum);
}

bool
sum_product(Algebra *f, const Sum *a, const Sum *b, Sum *out)
{
	out->n = 0;
	for (unsigned i = 0; i < a->n; i++)
		for (unsigned j = 0; j < b->n; j++) {
			Product p = a->at[i];
			if (!product_times(f, &p, &b->at[j]) || !sum_add(f, out, &p))
				return false;
		}
	return true;
}

/* A condition under a root or in a divisor stays one: where it fails the value is not 0. */
bool
product_is_unconditional(const Product *p)
{
	return !p->xcond && !p->ycond;
}

/* Every value of `from` is one of `to`. */
bool
cast_widens(DType from, DType to)
{
	return (to == DT_F64 && dtype_is_float(from)) || (to == DT_F32 && dtype_is_float(from) && from != DT_F64) || from == to;
}

/* --- opening --- */

ExprId
exponential_of(const Graph *g, ExprId e)
{
	while (expr_get(g, e)->op == OP_CAST && cast_widens((DType)expr_get(g, expr_arg(g, e, 0))->dtype, (DType)expr_get(g, e)->dtype))
		e = expr_arg(g, e, 0);
	Op op = (Op)expr_get(g, e)->op;
	return op == OP_EXP || op == OP_EXP2 ? e : 0;
}

static ExprId
without_number(Algebra *f, const Product *p)
{
	Product q = *p;
	q.coef = 1;
	ExprId x = product_expr(f, &q, true), y = product_expr(f, &q, false);
	return formula_mul(f->g, x, y);
}

Side
product_side(const Product *p)
{
	Side s = SIDE_NONE;
	for (unsigned k = 0; k < p->nfactor; k++)
		s |= p->factor[k].side;
	for (unsigned k = 0; k < p->nexponent; k++)
		s |= p->exponent[k].side;
	return s;
}

/* exp(c * log z) is z^c. */
static bool
add_exponent(Algebra *f, const Product *q, bool two, double scale, Product *into)
{
	ExprId atom = without_number(f, q);
	const Expr *p = expr_get(f->g, atom);
	double v;
	if (formula_number_of(f->g, atom, &v)) {
		into->coef *= two ? exp2(scale * q->coef * v) : exp(scale * q->coef * v);
		return true;
	}
	if (p->op == (two ? OP_LOG2 : OP_LOG))
		return product_factor(f, into, expr_arg(f->g, atom, 0), scale * q->coef, product_side(q));
	return product_exponent(f, into, (Exponent){atom, scale * q->coef, product_side(q), two});
}

bool
exponents_of(Algebra *f, ExprId arg, bool two, double scale, Product *into)
{
	bool deep = f->deep;
	Sum *s = sum_new(f), *opened = sum_new(f);
	f->deep = true;
	bool ok = sum_of(f, arg, s);
	for (unsigned k = 0; ok && k < s->n; k++) {
		ok = product_open(f, &s->at[k], opened);
		for (unsigned j = 0; ok && j < opened->n; j++) {
			Product *q = &opened->at[j];
			if (product_side(q) == SIDE_BOTH || !product_is_unconditional(q))
				ok = algebra_refuse(f, REMARK_cascade_mixes, s->at[k].nfactor ? s->at[k].factor[0].base : arg);
			ok = ok && add_exponent(f, q, two, scale, into);
		}
	}
	f->deep = deep;
	return ok;
}

/* The exponents of an exponential under widening casts, in the wide type; one of x alone is one atom. */
static bool
open_exponential(Algebra *f, const Factor *x, Product *into)
{
	ExprId inner = exponential_of(f->g, x->base);
	if (x->side == SIDE_X)
		return product_exponent(f, into, (Exponent){expr_arg(f->g, inner, 0), x->power, SIDE_X,
		                                            expr_get(f->g, inner)->op == OP_EXP2});
	return exponents_of(f, expr_arg(f->g, inner, 0), expr_get(f->g, inner)->op == OP_EXP2, x->power, into);
}

static bool
open_power(Algebra *f, const Factor *x, Sum *sum, Sum *next)
{
	Sum *base = sum_new(f), *open = sum_new(f), *all = sum_new(f);
	if (!sum_of(f, x->base, base))
		return false;
	for (unsigned k = 0; k < base->n; k++) {
		if (!product_open(f, &base->at[k], open))
			return false;
		for (unsigned j = 0; j < open->n; j++)
			if (!sum_add(f, all, &open->at[j]))
				return false;
	}
	for (int k = 0; k < (int)x->power; k++) {
		if (!sum_product(f, sum, all, next))
			return false;
		*sum = *next;
	}
	return true;
}

/* Sums of one side are opened only when deep, and to small whole powers. */
static bool
opens(const Algebra *f, const Factor *x)
{
	Op op = (Op)expr_get(f->g, x->base)->op;
	if (x->side == SIDE_BOTH)
		return true;
	return f->deep && (op == OP_ADD || op == OP_SUB) && x->power >= 1 && x->power <= MAX_OPENED && x->power == floor(x->power);
}

bool
product_open(Algebra *f, const Product *p, Sum *out)
{
	Product start = *p;
	Sum *sum = sum_new(f), *next = sum_new(f);
	start.nfactor = 0;
	for (unsigned k = 0; k < p->nfactor; k++) {
		const Factor *x = &p->factor[k];
		if (exponential_of(f->g, x->base) ? !open_exponential(f, x, &start)
		                                  : !opens(f, x) && !product_factor(f, &start, x->base, x->power, x->side))
			return false;
	}
	sum->n = 1;
	sum->at[0] = start;
	for (unsigned k = 0; k < p->nfactor; k++)
		if (!exponential_of(f->g, p->factor[k].base) && opens(f, &p->factor[k]) &&
		    !open_power(f, &p->factor[k], sum, next))
			return false;
	*out = *sum;
	return true;
}

/* --- back to expressions --- */

static ExprId
in_type(const Algebra *f, ExprId e)
{
	return expr_cast(f->g, f->type, e);
}

static bool
in_part(Side s, bool x_part)
{
	return x_part ? s == SIDE_X : s != SIDE_X;
}

/* Divisors are gathered, so that a quotient stays one. */
ExprId
product_expr(const Algebra *f, const Product *p, bool x_part)
{
	Graph *g = f->g;
	ExprId above = formula_number(g, f->type, x_part ? 1 : p->coef), below = 0, power[2] = {0, 0};
	for (unsigned k = 0; k < p->nfactor; k++) {
		const Factor *x = &p->factor[k];
		ExprId b = in_type(f, x->base);
		if (!in_part(x->side, x_part))
			continue;
		if (x->power > 0) {
			above = formula_mul(g, above, formula_power(g, b, x->power));
		} else {
			ExprId d = formula_power(g, b, -x->power);
			below = below ? formula_mul(g, below, d) : d;
		}
	}
	for (unsigned k = 0; k < p->nexponent; k++) {
		const Exponent *x = &p->exponent[k];
		if (!in_part(x->side, x_part))
			continue;
		ExprId d = formula_scale(g, x->coef, in_type(f, x->atom));
		power[x->two] = power[x->two] ? formula_add(g, power[x->two], d) : d;
	}
	for (int two = 0; two < 2; two++)
		if (power[two])
			above = formula_mul(g, above, formula_exp(g, two ? OP_EXP2 : OP_EXP, power[two]));
	ExprId e = below ? formula_div(g, above, below) : above, c = x_part ? p->xcond : p->ycond;
	return c ? formula_select(g, c, e, formula_number(g, f->type, 0)) : e;
}
