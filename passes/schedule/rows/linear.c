/* linear.c: finds the linear recurrence in a node (linear.h).
 *
 * The step is taken apart by its form: sums, differences, products with and quotients by what does not read it, and choices
 * among such, by a condition that does not. Where an element has no earlier one its definition says so by a condition on the
 * index, `t == 0` or the bounds test of `y?[t - 1] ?? ..`, which holds at the first step alone: then that step is a term with
 * the factor 0. Any other choice of a value that takes nothing of an earlier one is refused, since 0 times an infinity is not 0.
 *
 * Integers wrap, so that all of it holds to the bit. Of floats factor and term are in f32, as written, where the step is one
 * product and one sum; else what was distributed is in f64, which is as good as exact beside a step's own rounding. What steps
 * are joined in has more range than f32 products need (reduction/linear.c): so recurrences of f64 are refused, and of narrower
 * types, which are rounded at every step. */
#include "passes/schedule/rows/linear.h"

#include "ir/prove.h"
#include "passes/expr_map.h"
#include "passes/schedule/schedule.h"

enum { MOST_FACTORS = 4 }; /* in a row: as many as joined steps have range for */

typedef struct {
	Graph *g;
	Arena *scratch;
	const Node *n;
	unsigned axis;
	int dir;
	DType type;        /* of the recurrence */
	bool wide;         /* factors and terms are made in f64 */
	bool direct;       /* so far they need not be */
	bool rest;         /* choices by the step are made as later steps make them, not as the first one does */
} Taker;

/* factor * y + term; factor 0: y is not in it; term 0: nothing is added. */
typedef struct {
	ExprId factor, term;
	unsigned factors;
} Form;

static DType
made_in(const Taker *x)
{
	return x->wide ? DT_F64 : x->type;
}

static ExprId
constant(const Taker *x, double v)
{
	DType t = made_in(x);
	return dtype_is_float(t) ? expr_float(x->g, t, v) : expr_int(x->g, t, (int64_t)v);
}

/* The unit of sums, to the bit. */
static ExprId
nothing(const Taker *x)
{
	return constant(x, -0.0);
}

static ExprId
or_nothing(const Taker *x, ExprId term)
{
	return term ? term : nothing(x);
}

static bool
is_self(const Taker *x, ExprId e)
{
	const Expr *p = expr_get(x->g, e);
	return p->op == OP_READ && p->ref == x->n->out;
}

/* a + b, and a * b, of forms made already: more than was written. */
static ExprId
made(Taker *x, Op op, ExprId a, ExprId b)
{
	x->direct = false;
	return expr_binary(x->g, op, a, b);
}

static ExprId
negated(const Taker *x, ExprId e)
{
	return e ? expr_unary(x->g, OP_NEG, e) : 0;
}

static bool take(Taker *x, ExprId e, Form *out);

static bool
take_sum(Taker *x, bool minus, const Form *a, Form b, Form *out)
{
	if (minus) {
		b.factor = negated(x, b.factor);
		b.term = negated(x, b.term);
	}
	out->factors = a->factors > b.factors ? a->factors : b.factors;
	out->factor = a->factor && b.factor ? made(x, OP_ADD, a->factor, b.factor) : a->factor ? a->factor : b.factor;
	out->term = a->term && b.term ? made(x, OP_ADD, a->term, b.term) : a->term ? a->term : b.term;
	return true;
}

/* A product with, or a quotient by, what has no y in it. */
static bool
take_scaled(Taker *x, Op op, const Form *a, ExprId by, Form *out)
{
	bool lone = op == OP_MUL && a->factor == constant(x, 1);
	*out = (Form){.factor = lone ? by : made(x, op, a->factor, by), .factors = a->factors + 1};
	out->term = a->term ? made(x, op, a->term, by) : 0;
	return out->factors <= MOST_FACTORS;
}

static bool
take_choice(Taker *x, ExprId e, Form *out)
{
	ExprId cond = expr_arg(x->g, e, 0);
	Form a, b;
	if (expr_reads_from(x->g, cond, x->n->out) || !take(x, expr_arg(x->g, e, 1), &a) || !take(x, expr_arg(x->g, e, 2), &b))
		return false;
	if (!a.factor || !b.factor)
		return false;
	out->factor = expr_select(x->g, cond, a.factor, b.factor);
	out->term = a.term || b.term ? expr_select(x->g, cond, or_nothing(x, a.term), or_nothing(x, b.term)) : 0;
	out->factors = a.factors > b.factors ? a.factors : b.factors;
	return true;
}

static bool
take_pair(Taker *x, ExprId e, Form *out)
{
	Op op = (Op)expr_get(x->g, e)->op;
	Form a, b;
	if (!take(x, expr_arg(x->g, e, 0), &a) || !take(x, expr_arg(x->g, e, 1), &b))
		return false;
	if (op == OP_ADD || op == OP_SUB)
		return take_sum(x, op == OP_SUB, &a, b, out);
	if (b.factor && (op == OP_FDIV || a.factor))
		return false;
	return take_scaled(x, op, a.factor ? &a : &b, a.factor ? b.term : a.term, out);
}

/* e as a form. */
static bool
take(Taker *x, ExprId e, Form *out)
{
	*out = (Form){0};
	if (!expr_reads_from(x->g, e, x->n->out)) {
		out->term = expr_cast(x->g, made_in(x), e);
		return true;
	}
	if (is_self(x, e)) {
		out->factor = constant(x, 1);
		return true;
	}
	switch ((Op)expr_get(x->g, e)->op) {
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_FDIV: return take_pair(x, e, out);
	case OP_SELECT: return take_choice(x, e, out);
	case OP_NEG:
		if (!take(x, expr_arg(x->g, e, 0), out))
			return false;
		out->factor = negated(x, out->factor);
		out->term = negated(x, out->term);
		return true;
	default: return false;
	}
}

/* --- the first step --- */

static ExprId
is_first(const Taker *x)
{
	Graph *g = x->g;
	ExprId at = expr_axis(g, x->axis);
	if (x->dir < 0) /* behind it the row ends, where its vectors begin: so lanes that can't be the first one are known */
		return expr_binary(g, OP_EQ, expr_binary(g, OP_ADD, at, expr_int(g, DT_I64, 1)), g->tensor.at[x->n->out].extent[x->axis]);
	return expr_binary(g, OP_EQ, at, expr_int(g, DT_I64, 0));
}

/* Whether cond holds at all steps but the first, or, `first`, at that one. */
static bool
holds(const Taker *x, ExprId cond, bool first)
{
	Graph *g = x->g;
	Facts *f = facts_new(g, x->scratch);
	for (unsigned a = 0; a < x->n->npar; a++)
		facts_push_range(f, expr_axis(g, a), expr_int(g, DT_I64, 0), g->tensor.at[x->n->out].extent[a]);
	facts_push(f, first ? is_first(x) : expr_unary(g, OP_NOT, is_first(x)));
	return prove(f, cond);
}

/* A choice by whether it is the first step becomes what it is there, or elsewhere. */
static ExprId
choose_step(void *user, Graph *g, ExprId e)
{
	const Taker *x = user;
	if (expr_get(g, e)->op != OP_SELECT || !expr_reads_from(g, e, x->n->out))
		return e;
	ExprId cond = expr_arg(g, e, 0);
	if (!(expr_axes(g, x->scratch, cond) >> x->axis & 1))
		return e;
	ExprId not = expr_unary(g, OP_NOT, cond);
	if (holds(x, cond, true) && holds(x, not, false))
		return expr_arg(g, e, x->rest ? 2 : 1);
	if (holds(x, not, true) && holds(x, cond, false))
		return expr_arg(g, e, x->rest ? 1 : 2);
	return e;
}

typedef struct {
	const Taker *x;
	bool other;
} Reads;

static void
note_self(void *user, ExprId e)
{
	Reads *r = user;
	const Taker *x = r->x;
	Graph *g = x->g;
	if (!is_self(x, e))
		return;
	for (unsigned a = 0; a < x->n->npar; a++) {
		ExprId at = expr_axis(g, a);
		if (a == x->axis)
			at = expr_binary(g, OP_SUB, at, expr_int(g, DT_I64, x->dir));
		r->other |= index_norm(g, expr_arg(g, e, a)) != index_norm(g, at);
	}
}

/* Whether all that is read of y is the element one step earlier. */
static bool
reads_last_step(const Taker *x)
{
	Reads r = {.x = x};
	expr_walk(x->g, x->scratch, x->n->body, note_self, &r);
	return !r.other;
}

/* Whether what the mode and the type say lets steps be joined. */
static bool
may_join(const Taker *x)
{
	DType t = x->type, body = (DType)expr_get(x->g, x->n->body)->dtype;
	bool whole = !dtype_is_float(t) && dtype_is_int(t) && dtype_info[t].bits >= 32;
	return t == body && (whole || (t == DT_F32 && x->g->fp != FP_STRICT));
}

bool
linear_derive(Graph *g, Arena *scratch, const Node *n, Scan *out, RemarkId *why)
{
	const Recur *r = &g->recur.at[n->recur];
	Form f = {0};
	*why = REMARK_NONE;
	if (!n->recur || r->member.n != 1 || r->nseq != 1)
		return false;
	Taker x = {.g = g, .scratch = scratch, .n = n, .axis = n->seq[0], .dir = r->dir[0], .type = g->tensor.at[n->out].dtype,
	           .direct = true};
	*why = REMARK_recurs_rounded;
	if (!may_join(&x))
		return false;
	*why = REMARK_recurs_bent;
	if (n->finish || n->nred || !expr_is_true(g, n->domain) || !expr_is_true(g, n->guard) || !reads_last_step(&x))
		return false;
	ExprId first = expr_map(g, scratch, n->body, choose_step, &x);
	x.rest = true;
	ExprId rest = expr_map(g, scratch, n->body, choose_step, &x);
	if (expr_reads_from(g, first, n->out) || !take(&x, rest, &f) || !f.factor)
		return false;
	if (!x.direct && dtype_is_float(x.type)) {
		x.wide = true;
		take(&x, rest, &f);
	}
	*why = REMARK_NONE;
	*out = (Scan){.node = *n, .axis = (uint8_t)x.axis, .reverse = x.dir < 0};
	out->node.recur = 0;
	out->node.monoid = MON_SUM;
	out->node.body = expr_select(g, is_first(&x), expr_cast(g, made_in(&x), first), or_nothing(&x, f.term));
	out->node.factor = expr_select(g, is_first(&x), constant(&x, 0), f.factor);
	return true;
}
