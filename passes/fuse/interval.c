/* interval.c: see interval.h. What is read from a node is bounded by the node's own body; rounding to
 * nearest keeps bounds that are numbers of the type, and bounds here are used as such or with room. */
#include "passes/fuse/interval.h"

#include <math.h>

#include "ir/tg_types.h"

enum { MAX_DEPTH = 40, MAX_STEPS = 2000 };

typedef struct {
	const Graph *g;
	Interval acc; /* of ACC, in a finish */
	unsigned steps;
} Bounds;

static const Interval anything = {-INFINITY, INFINITY};

static Interval
within(Bounds *b, ExprId e, unsigned depth);

static Interval
of_type(DType t)
{
	switch (dtype_info[t].kind) {
	case KIND_BOOL:
		return (Interval){0, 1};
	case KIND_UINT:
		return (Interval){0, ldexp(1, dtype_info[t].bits) - 1};
	case KIND_INT:
		return (Interval){-ldexp(1, dtype_info[t].bits - 1), ldexp(1, dtype_info[t].bits - 1)};
	case KIND_FLOAT:
		if (t == DT_E8M0)
			return (Interval){0, INFINITY};
		break;
	case KIND_COMPLEX:
		break;
	}
	return anything;
}

static Interval
sum_of_many(Interval t)
{
	return (Interval){t.lo >= 0 ? 0 : -INFINITY, t.hi <= 0 ? 0 : INFINITY};
}

/* What the folding gives, of nothing too where that has a value. */
static Interval
folded(const Node *n, Interval t)
{
	switch (n->monoid) {
	case MON_NONE: case MON_MAX: case MON_MIN:
		return t;
	case MON_SUM:
		return sum_of_many(t);
	case MON_PROD:
		return (Interval){t.lo >= 0 ? 0 : -INFINITY, t.lo >= 0 && t.hi <= 1 ? 1 : INFINITY};
	case MON_ANY: case MON_ALL:
		return (Interval){0, 1};
	case MON_ARGMAX: case MON_ARGMIN:
		return (Interval){0, INFINITY};
	}
	return anything;
}

static Interval
of_tensor(Bounds *b, TensorId t, unsigned depth)
{
	Interval type = of_type(b->g->tensor.at[t].dtype);
	const Node *n = tensor_node(b->g, t);
	if (!n || n->scatter || n->recur)
		return type;
	Interval v = folded(n, within(b, n->body, depth + 1));
	if (n->finish) {
		Interval outer = b->acc;
		b->acc = v;
		v = within(b, n->finish, depth + 1);
		b->acc = outer;
	}
	return v;
}

/* 0 * inf is 0 here: an endpoint that is not attained, or attained by 0. */
static double
times(double a, double b)
{
	return a == 0 || b == 0 ? 0 : a * b;
}

static Interval
product_of(Interval a, Interval b)
{
	double c[4] = {times(a.lo, b.lo), times(a.lo, b.hi), times(a.hi, b.lo), times(a.hi, b.hi)};
	Interval r = {c[0], c[0]};
	for (int k = 1; k < 4; k++)
		r = (Interval){fmin(r.lo, c[k]), fmax(r.hi, c[k])};
	return r;
}

static Interval
inverse_of(Interval a)
{
	if (a.lo >= 0)
		return (Interval){a.hi == INFINITY ? 0 : 1 / a.hi, a.lo == 0 ? INFINITY : 1 / a.lo};
	if (a.hi < 0)
		return (Interval){1 / a.hi, a.lo == -INFINITY ? 0 : 1 / a.lo};
	return anything;
}

static Interval
magnitude_of(Interval a)
{
	if (a.lo >= 0)
		return a;
	return (Interval){a.hi <= 0 ? -a.hi : 0, fmax(-a.lo, a.hi)};
}

static Interval
rising(double (*f)(double), Interval a, double least)
{
	return (Interval){a.lo == -INFINITY || a.lo < least ? f(least) : f(a.lo), a.hi < least ? f(least) : f(a.hi)};
}

static Interval
of_unary(Op op, Interval a)
{
	switch ((int)op) {
	case OP_NEG: return (Interval){-a.hi, -a.lo};
	case OP_ABS: return magnitude_of(a);
	case OP_SIGN: case OP_ERF: case OP_TANH: return (Interval){a.lo >= 0 ? 0 : -1, a.hi <= 0 ? 0 : 1};
	case OP_SIN: case OP_COS: return (Interval){-1, 1};
	case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_TRUNC: return (Interval){a.lo - 1, a.hi + 1};
	case OP_SQRT: return rising(sqrt, a, 0);
	case OP_RSQRT: return (Interval){0, a.lo > 0 ? 1 / sqrt(a.lo) : INFINITY};
	case OP_EXP: return (Interval){exp(a.lo), exp(a.hi)};
	case OP_EXP2: return (Interval){exp2(a.lo), exp2(a.hi)};
	case OP_EXPM1: return (Interval){expm1(a.lo), expm1(a.hi)};
	case OP_LOG: return rising(log, a, 0);
	case OP_LOG2: return rising(log2, a, 0);
	case OP_LOG1P: return rising(log1p, a, -1);
	}
	return anything;
}

static Interval
of_binary(Op op, Interval a, Interval b, bool same)
{
	switch ((int)op) {
	case OP_ADD: return (Interval){a.lo + b.lo, a.hi + b.hi};
	case OP_SUB: return same ? anything : (Interval){a.lo - b.hi, a.hi - b.lo};
	case OP_MUL: return same ? product_of(magnitude_of(a), magnitude_of(a)) : product_of(a, b);
	case OP_FDIV: return product_of(a, inverse_of(b));
	case OP_MIN: return (Interval){fmin(a.lo, b.lo), fmin(a.hi, b.hi)};
	case OP_MAX: return (Interval){fmax(a.lo, b.lo), fmax(a.hi, b.hi)};
	case OP_POW: return a.lo >= 0 || same ? (Interval){a.lo >= 0 ? 0 : -INFINITY, INFINITY} : anything;
	}
	return anything;
}

static Interval
of_leaf(Bounds *b, const Expr *p, unsigned depth)
{
	DType t = (DType)p->dtype;
	if (p->op == OP_CONST) {
		double v = dtype_is_float(t) ? p->imm.f : (double)p->imm.i;
		return isnan(v) ? anything : (Interval){v, v};
	}
	if (p->op == OP_READ)
		return of_tensor(b, p->ref, depth);
	if (p->op == OP_ACC)
		return b->acc;
	if (p->op == OP_RAND)
		return (Interval){0, 1};
	if (p->op == OP_DIM && b->g->dim.at[p->ref].axis >= 0 && b->g->dim.at[p->ref].scale == 1 &&
	    b->g->dim.at[p->ref].offset <= 0)
		return (Interval){0, INFINITY};
	return of_type(t);
}

/* --- a value and the extreme of some that it is among --- */

typedef struct {
	const Graph *g;
	const Node *n;
	ExprId axis[TG_MAX_AXES];      /* what is at the place of each axis; 0: not met */
	bool whole[TG_MAX_AXES];       /* a reduced axis goes through all that there is of something read along it */
	unsigned steps;
} Among;

static bool
is_same_axis(Among *m, uint32_t axis, ExprId e)
{
	if (axis >= TG_MAX_AXES)
		return false;
	if (!m->axis[axis])
		m->axis[axis] = e;
	return m->axis[axis] == e;
}

/* Reduced axes that are subscripts, and go from 0 to the end of that tensor's axis: then whatever is read is in the range. */
static void
note_whole(Among *m, const Expr *read, ExprId term)
{
	for (unsigned k = 0; k < read->narg; k++) {
		const Expr *sub = expr_get(m->g, expr_arg(m->g, term, k));
		if (sub->op != OP_AXIS || sub->ref < m->n->npar || sub->ref >= (uint32_t)m->n->npar + m->n->nred)
			continue;
		const Axis *a = &m->n->axis[sub->ref];
		const Expr *lo = expr_get(m->g, a->lo);
		m->whole[sub->ref] |= lo->op == OP_CONST && lo->imm.i == 0 && a->hi == m->g->tensor.at[read->ref].extent[k];
	}
}

/* Whether a read has the same bits wherever it is made. What narrow nodes have may be rounded in one place and not in
 * another, and what is folded may be so in another order. */
static bool
is_given(const Among *m, const Expr *read)
{
	const Node *n = tensor_node(m->g, read->ref);
	return !n || (n->monoid == MON_NONE && dtype_info[read->dtype].bits >= 32);
}

/* Whether e is what the node's expression `term` is where its axes are what they have been found to be. */
static bool
is_term(Among *m, ExprId term, ExprId e)
{
	const Expr *t = expr_get(m->g, term), *p = expr_get(m->g, e);
	if (m->steps == 0)
		return false;
	m->steps--;
	if (t->op == OP_AXIS)
		return is_same_axis(m, t->ref, e);
	if (t->op != p->op || t->dtype != p->dtype || t->ref != p->ref || t->narg != p->narg || t->imm.i != p->imm.i)
		return false;
	if ((t->op == OP_READ && !is_given(m, t)) || expr_is_free_cast(m->g, term))
		return false;
	for (unsigned k = 0; k < t->narg; k++)
		if (!is_term(m, expr_arg(m->g, term, k), expr_arg(m->g, e, k)))
			return false;
	if (t->op == OP_READ)
		note_whole(m, t, term);
	return true;
}

/* Whether the node's elements are the extremes, or sums, of all their terms, and nothing else. */
static bool
folds_all(const Graph *g, const Node *n, Monoid extreme)
{
	bool all = !n->guard || expr_get(g, n->guard)->op == OP_CONST;
	bool plain = !n->finish || expr_get(g, n->finish)->op == OP_ACC;
	return n->monoid == extreme && all && plain && !n->scatter && !n->recur;
}

/* Whether `read` is of a node that is the extreme of terms, e one of them, whichever they are. */
static bool
is_among(const Graph *g, ExprId e, ExprId read, Monoid extreme)
{
	const Expr *p = expr_get(g, read);
	const Node *n = p->op == OP_READ ? tensor_node(g, p->ref) : NULL;
	Among m = {.g = g, .n = n, .steps = MAX_STEPS};
	if (!n || !folds_all(g, n, extreme))
		return false;
	for (unsigned k = 0; k < n->npar; k++)
		m.axis[k] = expr_arg(g, read, k);
	if (!is_term(&m, n->body, e))
		return false;
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++)
		if (!m.whole[k] || n->axis[k].clamp)
			return false;
	return true;
}

/* Whether the axis of m that is gone through there, where it has been found to be e, is one that n goes through in the same way. */
static bool
is_gone_through(const Node *m, unsigned axis, const Node *n, const Expr *e)
{
	if (e->op != OP_AXIS || e->ref < n->npar || e->ref >= (uint32_t)n->npar + n->nred)
		return false;
	const Axis *a = &m->axis[axis], *b = &n->axis[e->ref];
	return a->lo == b->lo && a->hi == b->hi && !a->clamp && !b->clamp;
}

bool
is_sum_of_powers(const Graph *g, ExprId read)
{
	const Expr *p = expr_get(g, read);
	const Node *n = p->op == OP_READ ? tensor_node(g, p->ref) : NULL, *greatest;
	if (!n || !folds_all(g, n, MON_SUM) || p->dtype != DT_F32)
		return false;
	const Expr *power = expr_get(g, n->body), *less = power->narg ? expr_get(g, expr_arg(g, n->body, 0)) : power;
	if ((power->op != OP_EXP && power->op != OP_EXP2) || less->op != OP_SUB)
		return false;
	ExprId a = expr_arg(g, expr_arg(g, n->body, 0), 0), b = expr_arg(g, expr_arg(g, n->body, 0), 1);
	const Expr *of = expr_get(g, b);
	greatest = of->op == OP_READ ? tensor_node(g, of->ref) : NULL;
	Among m = {.g = g, .n = greatest, .steps = MAX_STEPS};
	if (!greatest || !folds_all(g, greatest, MON_MAX))
		return false;
	for (unsigned k = 0; k < greatest->npar; k++)
		m.axis[k] = expr_arg(g, b, k);
	bool same = is_term(&m, greatest->body, a);
	for (unsigned k = greatest->npar; same && k < (unsigned)greatest->npar + greatest->nred; k++) {
		same = m.axis[k] && is_gone_through(greatest, k, n, expr_get(g, m.axis[k]));
		for (unsigned j = greatest->npar; same && j < k; j++)
			same = m.axis[j] != m.axis[k];
	}
	return same;
}

/* x - max(.., x, ..) is not above 0, nor x - min(.., x, ..) below it. */
static Interval
less_extreme(const Graph *g, ExprId a, ExprId b, Interval v)
{
	if (is_among(g, a, b, MON_MAX))
		v.hi = fmin(v.hi, 0);
	if (is_among(g, a, b, MON_MIN))
		v.lo = fmax(v.lo, 0);
	return v;
}

/* Where the arm of a selection lies, being v elsewhere: by the comparison with a number that it is chosen by, where it is what is
 * compared, or that negated. */
static Interval
chosen(const Graph *g, ExprId cond, bool holds, ExprId arm, Interval v)
{
	const Expr *c = expr_get(g, cond), *p = expr_get(g, arm);
	if (c->op != OP_LT && c->op != OP_LE)
		return v;
	ExprId x = p->op == OP_NEG ? expr_arg(g, arm, 0) : arm;
	bool first = expr_arg(g, cond, 0) == x, second = expr_arg(g, cond, 1) == x;
	const Expr *limit = expr_get(g, expr_arg(g, cond, first));
	if (first == second || limit->op != OP_CONST || !dtype_is_float((DType)limit->dtype) || isnan(limit->imm.f))
		return v;
	double least = first == holds ? -INFINITY : limit->imm.f, most = first == holds ? limit->imm.f : INFINITY;
	if (p->op == OP_NEG)
		return (Interval){fmax(v.lo, -most), fmin(v.hi, -least)};
	return (Interval){fmax(v.lo, least), fmin(v.hi, most)};
}

/* Integers wrap: only floats, where an overflow is an infinity, are followed through arithmetic. */
static Interval
within(Bounds *b, ExprId e, unsigned depth)
{
	const Expr *p = expr_get(b->g, e);
	if (depth > MAX_DEPTH || b->steps == 0)
		return of_type((DType)p->dtype);
	b->steps--;
	if (p->narg == 0 || p->op == OP_READ || p->op == OP_RAND)
		return of_leaf(b, p, depth);
	if (p->op == OP_CAST && dtype_is_float((DType)p->dtype)) {
		Interval a = within(b, expr_arg(b->g, e, 0), depth + 1);
		return (Interval){a.lo < 0 ? -INFINITY : a.lo == 0 ? 0 : tg_round((DType)p->dtype, a.lo),
		                  a.hi > 0 ? tg_round((DType)p->dtype, a.hi) : 0};
	}
	if (!dtype_is_float((DType)p->dtype))
		return of_type((DType)p->dtype);
	if (p->op == OP_SELECT) {
		ExprId cond = expr_arg(b->g, e, 0), yes = expr_arg(b->g, e, 1), no = expr_arg(b->g, e, 2);
		Interval x = chosen(b->g, cond, true, yes, within(b, yes, depth + 1)), y = chosen(b->g, cond, false, no, within(b, no, depth + 1));
		return (Interval){fmin(x.lo, y.lo), fmax(x.hi, y.hi)};
	}
	ExprId a = expr_arg(b->g, e, 0), c = p->narg > 1 ? expr_arg(b->g, e, 1) : 0;
	Interval x = within(b, a, depth + 1), r;
	if (p->narg == 1)
		r = of_unary((Op)p->op, x);
	else
		r = of_binary((Op)p->op, x, within(b, c, depth + 1), a == c);
	r = isnan(r.lo) || isnan(r.hi) ? anything : r;
	return p->op == OP_SUB ? less_extreme(b->g, a, c, r) : r;
}

Interval
interval_of(const Graph *g, ExprId e)
{
	Bounds b = {.g = g, .acc = anything, .steps = MAX_STEPS};
	return within(&b, e, 0);
}

static int
opposite(int d)
{
	return d == 2 ? 2 : -d;
}

static int
both_of(int a, int b)
{
	return a == 0 || a == b ? b : b == 0 ? a : 2;
}

/* The direction of k * f, by the sign of k. */
static int
scaled_by(const Graph *g, ExprId k, int d)
{
	Interval i = interval_of(g, k);
	return d == 0 ? 0 : i.lo >= 0 ? d : i.hi <= 0 ? opposite(d) : 2;
}

static int
direction_of_product(const Graph *g, ExprId a, ExprId b, int da, int db)
{
	if (da == 0)
		return scaled_by(g, a, db);
	return db == 0 ? scaled_by(g, b, da) : 2;
}

static int
direction(const Graph *g, ExprId e, ExprId of, unsigned *steps)
{
	const Expr *p = expr_get(g, e);
	if (e == of)
		return 1;
	if (p->narg == 0 || p->op == OP_READ || e < of)
		return 0;
	if (*steps == 0)
		return 2;
	--*steps;
	ExprId a = expr_arg(g, e, 0), b = p->narg > 1 ? expr_arg(g, e, 1) : 0;
	int da = direction(g, a, of, steps), db = b ? direction(g, b, of, steps) : 0;
	if (p->op == OP_SELECT && da == 0)
		return both_of(db, direction(g, expr_arg(g, e, 2), of, steps));
	if (p->narg > 2)
		return both_of(both_of(da, db), direction(g, expr_arg(g, e, 2), of, steps)) == 0 ? 0 : 2;
	if (da == 0 && db == 0)
		return 0;
	switch ((int)p->op) {
	case OP_ADD: case OP_MIN: case OP_MAX: return both_of(da, db);
	case OP_SUB: return both_of(da, opposite(db));
	case OP_NEG: return opposite(da);
	case OP_MUL: return direction_of_product(g, a, b, da, db);
	case OP_FDIV: return db == 0 ? scaled_by(g, b, da) : 2;
	case OP_EXP: case OP_EXP2: case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_LOG1P: case OP_SQRT: case OP_TANH:
	case OP_ERF: case OP_CAST:
		return da;
	case OP_RSQRT: return opposite(da);
	}
	return 2;
}

int
direction_of(const Graph *g, ExprId e, ExprId of)
{
	unsigned steps = MAX_STEPS;
	return direction(g, e, of, &steps);
}
