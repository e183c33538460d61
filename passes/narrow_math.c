/* narrow_math.c: a transcendental whose results are rounded to a narrow float need not have all bits of f32.
 *
 * in     any graph in relaxed or fast mode
 * out    functions of f32 that have a short form (F_NARROW), all of whose paths end in a narrow float, bear the
 *        mark of the widest such type (tg.h): they are within 1/16 ulp of it
 * fp     reassociates: LANGUAGE.md's relaxed mode says that it is so, for every schedule. It is decided
 *        here alone, before fusion, and the oracle sees the graph after it
 * tests  tests/passes/pass_graphs.c, tests/text/pass_narrow_math.tex
 *
 * A path ends where its value is cast to a narrow float, free casts (the operands of contractions) included, and a
 * value that nobody casts ends as what it is: a result of f32, a condition, a subscript, an integer. On the way it
 * may only pass what hands a relative error on as it is: factors, quotients, roots, the greatest of several, arms of
 * selects, sums of which all terms have one sign. LANGUAGE.md allows more; but a difference, a logarithm, or an
 * exponent would make 1/16 ulp of a narrow float many ulps of it (1 + erf(x) at x = -3: hundreds). So does a
 * recurrence, by its many steps.
 *
 * The short form of tanh is also within 2^-21 of it, however small it is (tg.h), and what an absolute error of d does to a
 * power's exponent is a relative one of d to the power: e^(x + d) = e^x (1 + d + ...). So a path from tanh may also end in the
 * argument of an exp or exp2 all of whose own paths end in narrow floats. On its way there it may pass what hands an absolute error
 * on: differences and sums of any sign, the greatest of several, arms of selects, and, magnified by as much as the other
 * operand is at most, products and quotients. What arrives by several ways adds up, as that of a soft cap's score and of the
 * greatest of them in e^(s - m). It may be 1/16 ulp of what the power ends in, which a mark of the power's own may cost as well:
 * for f16, 2^-15, errors may be 64 times as large, for bf16, 2^-12, 512 times. Caps of 30 are marked for both. Such a tanh bears
 * the mark of what the power ends in. A sum of many terms hands no absolute error on: they would add up.
 *
 * A function that occurs in several nodes as one expression is marked if all nodes agree, so that it stays one. Marks
 * change no path: running it again finds the same. */
#include "passes/expr_map.h"

#include <math.h>

#include "ir/bugs.h"
#include "passes/fuse/interval.h"
#include "passes/pass_ctx.h"

enum { MAX_ASKED = 1000 }; /* intervals in a graph, each of which may take a while */

/* Where paths end, as bits. */
enum { END_BF16 = 1, END_F16 = 2, END_NARROW = 3, END_WIDE = 4, END_DECIDES = 8, END_MAGNIFIED = 16 };

/* The types that powers end in, and how many times 2^-21 an error of their arguments may be. */
enum { NTYPE = 2 };
static const uint8_t type_end[NTYPE] = {END_BF16, END_F16};
static const double most_gain[NTYPE] = {512, 64};

typedef struct {
	uint8_t at;         /* of the paths that hand on relative errors, and of those that come to nothing */
	double gain[NTYPE]; /* of those that end in powers: an absolute error is so many times as large there; 0: there are none */
} Ends;

typedef struct {
	Graph *g;
	PassCtx *cx;
	Ends *tensor; /* by TensorId: of its readers' paths */
	Ends *ends;   /* by ExprId: in the node at hand, else none */
	Ends *all;    /* by ExprId: of functions, in all nodes */
	Ends acc;     /* of ACC in the finish at hand */
	unsigned asked;
	VEC(ExprId) order;
} Paths;

static void
list_expr(void *user, ExprId e)
{
	Paths *p = user;
	vec_push(p->cx->scratch, &p->order, e);
}

/* Where the values of e lie, as far as there is time to tell. */
static Interval
interval(Paths *p, ExprId e)
{
	return p->asked++ < MAX_ASKED ? interval_of(p->g, e) : (Interval){-INFINITY, INFINITY};
}

/* Whether a + b, or a - b, is at least as large as either. */
static bool
is_sum_of_one_sign(Paths *p, ExprId e)
{
	Interval a = interval(p, expr_arg(p->g, e, 0)), b = interval(p, expr_arg(p->g, e, 1));
	if (expr_get(p->g, e)->op == OP_SUB)
		b = (Interval){-b.hi, -b.lo};
	return (a.lo >= 0 && b.lo >= 0) || (a.hi <= 0 && b.hi <= 0);
}

static void
add_ends(Ends *to, const Ends *e)
{
	to->at |= e->at;
	for (unsigned t = 0; t < NTYPE; t++)
		to->gain[t] += e->gain[t];
}

static bool
ends_in_powers(const Ends *e)
{
	return e->gain[0] > 0 || e->gain[1] > 0;
}

/* Whether it has a short form: a power has one whose exponent is an integer, which it is where that is cast, of a sum of indices. */
static bool
has_short_form(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (!(op_info[p->op].flags & F_NARROW) || p->dtype != DT_F32)
		return false;
	const Expr *by = p->op == OP_POW ? expr_get(g, expr_arg(g, e, 1)) : NULL;
	return !by || (by->op == OP_CAST && dtype_is_int((DType)expr_get(g, expr_arg(g, expr_arg(g, e, 1), 0))->dtype));
}

/* Those of an operand that hands absolute errors on, magnified by `gain`; if that is 0 or infinite, it does not. */
static Ends
with_gain(Ends e, double gain)
{
	bool handed_on = gain > 0 && gain < INFINITY;
	for (unsigned t = 0; t < NTYPE; t++) {
		if (e.gain[t] > 0 && !handed_on)
			e.at |= type_end[t] | END_MAGNIFIED;
		e.gain[t] *= handed_on ? BUG(narrow_gain_missing) ? 1 : gain : 0;
	}
	return e;
}

/* The same where relative errors are magnified as well. */
static Ends
magnified(Ends e)
{
	e.at |= END_MAGNIFIED;
	return with_gain(e, 0);
}

/* How many times as large an absolute error of operand k of the product or quotient e is at most in it. */
static double
gain_of_factor(Paths *p, ExprId e, unsigned k, const Ends *own)
{
	if (!ends_in_powers(own))
		return 0;
	Interval x = interval(p, expr_arg(p->g, e, 1 - k));
	if (expr_get(p->g, e)->op == OP_MUL)
		return fmax(fabs(x.lo), fabs(x.hi));
	return k == 0 && x.lo > 0 ? 1 / x.lo : k == 0 && x.hi < 0 ? -1 / x.hi : 0;
}

/* Of the exponent of a power. */
static Ends
ends_of_exponent(const Ends *power)
{
	Ends e = {.at = power->at & ~END_NARROW};
	for (unsigned t = 0; t < NTYPE; t++)
		e.gain[t] = power->at & type_end[t] ? 1 : 0;
	if (ends_in_powers(power))
		e.at |= END_MAGNIFIED;
	return e;
}

static Ends
end_of_cast(const Graph *g, ExprId e, Ends own)
{
	DType to = (DType)expr_get(g, e)->dtype, from = (DType)expr_get(g, expr_arg(g, e, 0))->dtype;
	if (to == from)
		return own;
	if (!dtype_is_float(to))
		return (Ends){.at = to == DT_C64 ? END_WIDE : END_DECIDES};
	return (Ends){.at = to == DT_F16 ? END_F16 : dtype_info[to].bits <= 16 ? END_BF16 : END_WIDE};
}

/* The ends of the paths from operand k of e through e, whose own paths have these. */
static Ends
ends_through(Paths *p, ExprId e, unsigned k, Ends own)
{
	const Graph *g = p->g;
	switch (expr_get(g, e)->op) {
	case OP_CAST:
		return end_of_cast(g, e, own);
	case OP_MUL: case OP_FDIV:
		return with_gain(own, gain_of_factor(p, e, k, &own));
	case OP_NEG: case OP_ABS: case OP_MIN: case OP_MAX:
		return own;
	case OP_SQRT: case OP_RSQRT: case OP_TANH: case OP_ERF:
		return with_gain(own, 0);
	case OP_SELECT:
		return k == 0 ? (Ends){.at = END_DECIDES} : own;
	case OP_ADD: case OP_SUB:
		own.at |= (own.at & END_NARROW) && !is_sum_of_one_sign(p, e) ? END_MAGNIFIED : 0;
		return own;
	case OP_LOG1P: /* below 0 it has a pole */
		own.at |= (own.at & END_NARROW) && !(interval(p, expr_arg(g, e, 0)).lo >= 0) ? END_MAGNIFIED : 0;
		return with_gain(own, 0);
	case OP_EXP: case OP_EXP2:
		return ends_of_exponent(&own);
	case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_SIN: case OP_COS: case OP_POW:
		return magnified(own);
	case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ:
		own.at |= END_WIDE;
		return with_gain(own, 0);
	}
	return (Ends){.at = END_DECIDES};
}

/* Follows one expression of a node from its value down to what it reads. */
static void
follow(Paths *p, ExprId root, Ends ends)
{
	Graph *g = p->g;
	p->order.n = 0;
	if (!root)
		return;
	expr_walk(g, p->cx->scratch, root, list_expr, p);
	p->ends[root] = ends;
	for (uint32_t i = p->order.n; i-- > 0;) {
		ExprId e = p->order.at[i];
		const Expr *x = expr_get(g, e);
		Ends own = p->ends[e];
		p->ends[e] = (Ends){0};
		if (x->op == OP_READ)
			add_ends(&p->tensor[x->ref], &own);
		else if (x->op == OP_ACC)
			add_ends(&p->acc, &own);
		else if (has_short_form(g, e))
			add_ends(&p->all[e], &own);
		for (unsigned k = 0; k < x->narg; k++) {
			Ends through = ends_through(p, e, k, own);
			add_ends(&p->ends[expr_arg(g, e, k)], &through);
		}
	}
}

/* The ends of a term's paths, given those of what is folded. */
static Ends
ends_of_term(Paths *p, const Node *n, Ends ends)
{
	if (n->scatter || n->monoid == MON_PROD)
		return magnified(ends);
	if (n->monoid == MON_SUM) {
		Interval x = ends.at & END_NARROW ? interval(p, n->body) : (Interval){0, 0};
		return x.lo >= 0 || x.hi <= 0 ? with_gain(ends, 0) : magnified(ends);
	}
	return n->monoid == MON_ARGMAX || n->monoid == MON_ARGMIN ? (Ends){.at = END_DECIDES} : ends;
}

static void
follow_node(Paths *p, const Node *n)
{
	const Ends decides = {.at = END_DECIDES};
	Ends ends = p->tensor[n->out];
	if (n->recur)
		ends = magnified(ends);
	p->acc = (Ends){0};
	follow(p, n->finish, ends);
	follow(p, n->body, n->monoid == MON_NONE ? ends : ends_of_term(p, n, n->finish ? p->acc : ends));
	follow(p, n->domain, decides);
	follow(p, n->guard, decides);
	follow(p, n->init, magnified(ends));
	for (unsigned k = 0; k < n->npar + n->nred; k++) {
		follow(p, n->axis[k].lo, decides);
		follow(p, n->axis[k].hi, decides);
		follow(p, n->axis[k].clamp, decides);
	}
	for (unsigned k = 0; k < TG_MAX_RANK; k++)
		follow(p, n->target[k], decides);
}

/* Where the paths of the function e end: those that end in powers, for what is not known to have a small absolute error or is
 * magnified too much, in nothing. */
static uint8_t
ends_of_function(const Paths *p, ExprId e)
{
	const Ends *all = &p->all[e];
	uint8_t ends = all->at;
	for (unsigned t = 0; t < NTYPE; t++)
		if (all->gain[t] > 0)
			ends |= type_end[t] | (expr_get(p->g, e)->op == OP_TANH && all->gain[t] <= most_gain[t] ? 0 : END_MAGNIFIED);
	return ends;
}

static DType
mark_of(const Paths *p, ExprId e)
{
	uint8_t ends = ends_of_function(p, e);
	if (BUG(narrow_of_some_paths))
		ends &= END_NARROW;
	return ends == 0 || ends > END_NARROW ? DT_NONE : ends & END_F16 ? DT_F16 : DT_BF16;
}

/* Why a node's functions, whose paths end so, are marked or not; one that no path of a narrow float meets is no news. */
static void
explain(Paths *p, TensorId t, uint8_t ends)
{
	if (!(ends & END_NARROW))
		return;
	remark(p->cx, ends & END_MAGNIFIED ? REMARK_math_magnified : ends & END_DECIDES ? REMARK_math_decides :
	       ends & END_WIDE ? REMARK_math_is_wide : REMARK_math_narrowed, t);
}

static void
explain_nodes(Paths *p)
{
	for (uint32_t i = 0; i < p->g->node.n; i++) {
		const Node *n = &p->g->node.at[i];
		uint8_t ends = 0;
		for (unsigned part = 0; part < 2; part++) {
			p->order.n = 0;
			if (part ? n->finish : n->body)
				expr_walk(p->g, p->cx->scratch, part ? n->finish : n->body, list_expr, p);
			for (uint32_t k = 0; k < p->order.n; k++)
				ends |= ends_of_function(p, p->order.at[k]);
		}
		explain(p, n->out, ends);
	}
}

typedef struct {
	ExprId *to; /* by ExprId */
} Marked;

static void
replace(void *user, Graph *g, ExprId *root)
{
	(void)g;
	*root = ((const Marked *)user)->to[*root];
}

/* Operands have smaller ids. */
static uint32_t
mark_all(Paths *p, uint32_t nexpr)
{
	Graph *g = p->g;
	Marked m = {ARENA_ARRAY(p->cx->scratch, ExprId, nexpr)};
	uint32_t done = 0;
	for (ExprId e = 1; e < nexpr; e++) {
		Expr x = *expr_get(g, e);
		ExprId arg[TG_MAX_AXES];
		bool changed = false;
		for (unsigned k = 0; k < x.narg; k++) {
			arg[k] = m.to[expr_arg(g, e, k)];
			changed |= arg[k] != expr_arg(g, e, k);
		}
		DType mark = mark_of(p, e);
		if (mark != DT_NONE && mark != expr_narrow_type(g, e) && spend(p->cx)) {
			x.ref = mark;
			changed = true;
			done++;
		}
		m.to[e] = changed ? expr_make(g, (Op)x.op, (DType)x.dtype, x.ref, x.access, arg, x.narg) : e;
	}
	if (done)
		graph_each_root(g, replace, &m);
	return done;
}

static bool
has_function(const Graph *g)
{
	for (ExprId e = 1; e < g->expr.n; e++)
		if (has_short_form(g, e))
			return true;
	return false;
}

uint32_t
pass_narrow_math(Graph *g, PassCtx *cx)
{
	if (g->fp == FP_STRICT || !has_function(g))
		return 0;
	uint32_t nexpr = g->expr.n;
	Paths p = {.g = g, .cx = cx, .tensor = ARENA_ARRAY(cx->scratch, Ends, g->tensor.n),
	           .ends = ARENA_ARRAY(cx->scratch, Ends, nexpr), .all = ARENA_ARRAY(cx->scratch, Ends, nexpr)};
	for (uint32_t k = 0; k < g->result.n; k++)
		p.tensor[g->result.at[k].tensor].at |= END_WIDE;
	for (uint32_t i = g->node.n; i-- > 0;)
		follow_node(&p, &g->node.at[i]);
	if (cx->options->remarks)
		explain_nodes(&p);
	return mark_all(&p, nexpr);
}
