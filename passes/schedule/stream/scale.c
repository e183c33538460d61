/* scale.c: scores that are divided or multiplied by what a launch knows, as attention's are by a root of a size.
 *
 * A division takes longer than all else that is done with a score. By a power of two whose reciprocal is
 * a normal number, x / u and x * (1 / u) are the same real number rounded once: the same bits. Whether it
 * is one is asked once a call; the branch goes one way for all scores. */
#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/fuse/interval.h"
#include "passes/schedule/stream/stream.h"

typedef struct {
	const Graph *g;
	Arena *scratch;
	ExprId divisor;
	bool varies;
} Divisor;

static void
note_varying(void *user, ExprId e)
{
	Divisor *d = user;
	const Expr *p = expr_get(d->g, e);
	d->varies |= p->op == OP_AXIS || p->op == OP_ACC || p->op == OP_TOUCHED ||
	             (p->op == OP_READ && d->g->tensor.at[p->ref].kind != TENSOR_SCALAR);
}

static bool
is_known_at_launch(Divisor *d, ExprId e)
{
	d->varies = false;
	expr_walk(d->g, d->scratch, e, note_varying, d);
	return !d->varies;
}

bool
stream_known_at_launch(const Graph *g, Arena *scratch, ExprId e)
{
	return is_known_at_launch(&(Divisor){.g = g, .scratch = scratch}, e);
}

static ExprId
multiply(void *user, Graph *g, ExprId e)
{
	Divisor *d = user;
	const Expr p = *expr_get(g, e);
	if (p.op != OP_FDIV || (p.dtype != DT_F32 && p.dtype != DT_F64))
		return e;
	ExprId x = expr_arg(g, e, 0), by = expr_arg(g, e, 1);
	if ((d->divisor && d->divisor != by) || !is_known_at_launch(d, by) || is_known_at_launch(d, x))
		return e;
	d->divisor = by;
	return expr_binary(g, OP_MUL, x, expr_binary(g, OP_FDIV, expr_float(g, (DType)p.dtype, 1), by));
}

/* Whether e is the sum by what is known at launch. */
static bool
is_scaled_sum(Divisor *d, ExprId e)
{
	const Expr *p = expr_get(d->g, e);
	return p->op == OP_MUL && expr_get(d->g, expr_arg(d->g, e, 0))->op == OP_ACC && is_known_at_launch(d, expr_arg(d->g, e, 1));
}

/* By what is far from 0 and from infinity: its reciprocal is as well. */
static ExprId
multiply_more(void *user, Graph *g, ExprId e)
{
	Divisor *d = user;
	const Expr p = *expr_get(g, e);
	if (p.op != OP_FDIV || !is_scaled_sum(d, expr_arg(g, e, 0)) || !is_known_at_launch(d, expr_arg(g, e, 1)))
		return e;
	ExprId by = expr_arg(g, e, 1);
	Interval in = interval_of(g, by);
	if (!(in.lo >= 1e-30 && in.hi <= 1e30))
		return e;
	return expr_binary(g, OP_MUL, expr_arg(g, e, 0), expr_binary(g, OP_FDIV, expr_float(g, (DType)p.dtype, 1), by));
}

/* --- scaled by who reads it --- */

typedef struct {
	Divisor d;
	ExprId read;     /* the score */
	ExprId mark;     /* which stands for it where a scale was taken: what scales it there is no other one to take */
	StreamScale all; /* how all that read it scale it; by 0: not known yet */
	bool otherwise;
} Readers;

/* How e, which has the score as its nth argument, scales it; by 0: in no such way. */
static StreamScale
scale_of(Readers *r, ExprId e, unsigned n)
{
	const Expr *p = expr_get(r->d.g, e);
	if ((p->op != OP_FDIV || n) && p->op != OP_MUL)
		return (StreamScale){0};
	ExprId by = expr_arg(r->d.g, e, 1 - n);
	return is_known_at_launch(&r->d, by) ? (StreamScale){(Op)p->op, by} : (StreamScale){0};
}

static void
note_reader(void *user, ExprId e)
{
	Readers *r = user;
	const Expr *p = expr_get(r->d.g, e);
	for (unsigned n = 0; n < p->narg; n++) {
		if (expr_arg(r->d.g, e, n) != r->read)
			continue;
		StreamScale own = scale_of(r, e, n);
		if (!own.by || (r->all.by && (r->all.by != own.by || r->all.op != own.op)))
			r->otherwise = true;
		r->all = own;
	}
}

static ExprId
unscaled(void *user, Graph *g, ExprId e)
{
	Readers *r = user;
	const Expr *p = expr_get(g, e);
	for (unsigned n = 0; n < p->narg; n++)
		if (expr_arg(g, e, n) == r->read && scale_of(r, e, n).by)
			return BUG(scales_taken_twice) ? r->read : r->mark;
	return e;
}

static ExprId
taken(Readers *r, Graph *g, ExprId e)
{
	ExprId marked = e ? expr_map(g, r->d.scratch, e, unscaled, r) : 0;
	return e ? expr_replace(g, r->d.scratch, marked, r->mark, r->read) : 0;
}

StreamScale
stream_take_scale(Graph *g, Arena *scratch, Stream *s, ExprId read)
{
	Readers r = {.d = {.g = g, .scratch = scratch}, .read = read};
	CascadePass *pass = &s->c.pass[0];
	for (unsigned k = 0; k < pass->nacc; k++) {
		r.otherwise |= pass->acc[k].term == read;
		expr_walk(g, scratch, pass->acc[k].term, note_reader, &r);
	}
	r.otherwise |= s->c.guard == read;
	if (s->c.guard)
		expr_walk(g, scratch, s->c.guard, note_reader, &r);
	if (!r.all.by || r.otherwise)
		return (StreamScale){0};
	r.mark = expr_make(g, OP_IVAR, (DType)expr_get(g, read)->dtype, UINT32_MAX, 0, NULL, 0);
	for (unsigned k = 0; k < pass->nacc; k++)
		pass->acc[k].term = taken(&r, g, pass->acc[k].term);
	s->c.guard = taken(&r, g, s->c.guard);
	return r.all;
}

/* By what the sum is multiplied, if that is all; a number, or a reciprocal that a launch knows. */
static ExprId
known_scale(Graph *g, const StreamScore *s)
{
	ExprId finish = s->quick.finish;
	if (!finish)
		return expr_float(g, DT_F32, 1);
	const Expr *p = expr_get(g, finish);
	for (unsigned n = 0; n < 2 && p->op == OP_MUL; n++) {
		ExprId by = expr_arg(g, finish, 1 - n);
		if (expr_get(g, expr_arg(g, finish, n))->op == OP_ACC && (s->divisor || expr_get(g, by)->op == OP_CONST))
			return by;
	}
	return 0;
}

void
stream_find_scale(Graph *g, Arena *scratch, StreamScore *s)
{
	Divisor d = {.g = g, .scratch = scratch};
	s->scaled = s->quick = s->node;
	if (s->node.finish) {
		s->scaled.finish = expr_map(g, scratch, s->node.finish, multiply, &d);
		s->divisor = d.divisor;
		s->quick.finish = expr_map(g, scratch, s->scaled.finish, multiply_more, &d);
	}
	s->scale = known_scale(g, s);
}

/* Whether u is a power of two, neither so small nor so large that 1 / u is no normal number. */
static ValId
is_power_of_two(StreamBuild *b, ValId u)
{
	TirKernel *k = b->l.tir;
	bool wide = tir_inst(k, u)->type.dtype == DT_F64;
	DType bits = wide ? DT_U64 : DT_U32;
	unsigned mantissa = wide ? 52 : 23;
	int64_t most = wide ? 2045 : 253;
	ValId one = tir_int(k, bits, 1), x = tir_bitcast(k, bits, u);
	ValId rest = tir_binary(k, OP_BAND, x, tir_int(k, bits, ((int64_t)1 << mantissa) - 1));
	ValId exponent = tir_binary(k, OP_SHR, tir_binary(k, OP_SHL, x, one), tir_int(k, bits, mantissa + 1));
	ValId normal = tir_binary(k, OP_AND, tir_binary(k, OP_LE, one, exponent),
	                          tir_binary(k, OP_LE, exponent, tir_int(k, bits, most)));
	return tir_binary(k, OP_AND, normal, tir_binary(k, OP_EQ, rest, tir_int(k, bits, 0)));
}

void
stream_bind_divisors(StreamBuild *b)
{
	Point *l = &b->l;
	for (unsigned k = 0; k < b->s->nscore; k++) {
		uint32_t mark = point_mark(l);
		if (b->s->score[k].divisor)
			b->scaled[k] = is_power_of_two(b, point_value(l, b->s->score[k].divisor, true).re);
		point_release(l, mark);
	}
}

/* --- extremes of quotients --- */

/* Where `by` lies if there are so many terms. */
static Interval
interval_with(StreamBuild *b, ExprId by, ExprId terms, int64_t n)
{
	return interval_of(b->l.g, expr_replace(b->l.g, b->l.scratch, by, terms, expr_int(b->l.g, DT_I64, n)));
}

/* Where the number lies by which finish multiplies the sum, if that, or a division, is all it does; 0: it is not known. */
static Interval
factor_of(StreamBuild *b, const StreamScore *s, int64_t least, int64_t most)
{
	const Graph *g = b->l.g;
	const Interval unknown = {0, 0};
	if (!s->node.finish)
		return (Interval){1, 1};
	const Expr *finish = expr_get(g, s->node.finish);
	if ((finish->op != OP_FDIV && finish->op != OP_MUL) || expr_get(g, expr_arg(g, s->node.finish, 0))->op != OP_ACC)
		return unknown;
	ExprId terms = s->node.axis[s->node.npar].hi, by = expr_arg(g, s->node.finish, 1);
	int way = direction_of(g, by, terms);
	double lo = interval_with(b, by, terms, least).lo, hi = interval_with(b, by, terms, most).hi;
	if ((way != 1 && way != 0) || !(lo > 0))
		return unknown;
	return finish->op == OP_MUL ? (Interval){lo, hi} : (Interval){1 / hi, 1 / lo};
}

/* Whether that is a number that is far from 0 and from infinity. */
static bool
scales_by_positive(StreamBuild *b, const StreamScore *s, int64_t least, int64_t most)
{
	Interval by = factor_of(b, s, least, most);
	return by.lo >= 1e-30 && by.hi <= 1e30;
}

bool
stream_scores_are_small(StreamBuild *b, unsigned k, int64_t least, int64_t most)
{
	Interval by = factor_of(b, &b->s->score[k], least, most);
	return by.lo > 0 && by.hi <= 0.5;
}

int
stream_extreme_of(StreamBuild *b, unsigned acc, int64_t least, int64_t most)
{
	const CascadeAcc *a = &b->s->pass->acc[acc];
	const Expr *term = expr_get(b->l.g, a->term);
	if ((a->monoid != MON_MAX && a->monoid != MON_MIN) || a->stage || b->s->acc[acc].wide || term->op != OP_READ)
		return -1;
	for (unsigned k = 0; k < b->s->nscore; k++)
		if (term->ref == b->s->score[k].t)
			return scales_by_positive(b, &b->s->score[k], least, most) ? (int)k : -1;
	return -1;
}

ValId
stream_finished_as(StreamBuild *b, const Node *node, unsigned k, ValId sum)
{
	Point *l = &b->l;
	uint32_t mark = point_mark(l);
	l->node = node;
	ValId some = tir_binary(l->tir, OP_LT, stream_int(b, 0), point_launch_expr(l, b->terms[k]));
	ValId v = element_finish(l, (PointVal){.re = sum}, some, !b->masked).re;
	point_release(l, mark);
	return stream_vector(b, v);
}

ValId
stream_finished(StreamBuild *b, unsigned k, ValId sum)
{
	const StreamScore *s = &b->s->score[k];
	TirKernel *t = b->l.tir;
	if (!s->divisor)
		return stream_finished_as(b, &s->node, k, sum);
	tir_if(t, b->scaled[k]);
	ValId x = stream_finished_as(b, &s->scaled, k, sum);
	tir_else(t, &x, 1);
	x = stream_finished_as(b, &s->node, k, sum);
	tir_end_if(t, &x, 1);
	return x;
}
