/* slots.c: a tile's slots of a thread into the state of its rows (slots.h), as fold.c has it for
 * vectors.
 *
 * An accumulator that an anchor is made of, or that moves another one, is joined over the lanes with each tile. Of the others
 * each lane keeps its own part: parts are at the same anchors, so the sum of what has been moved is what the sum is moved to.
 *
 * A power e^(s - m) of few bits, of a score s that is a sum times a number c, and an extreme m of such, is 2^(sum (c l) - m l), l
 * = log2(e): a multiply-add where there were two products and a difference. That rounds c l, and m l, of magnitudes that a
 * sum's terms have; roles.c has why the bound of the sums covers it.
 *
 * EX2, which targets have a unit for, makes results below 2^-126 0. Where nothing is done with powers but to add them up, one
 * is the extreme's own, 1: a sum of theirs alone has no such bits. Weights of f16 have none either; of bf16 they go down to 2^-134,
 * half its least step, so powers are made 2^LIFT times larger, a factor of the row that moves across the cast and the sums. What
 * such sums move by when the extreme changes is then made of the same m l, before and after: all roundings of m l but the last one cancel.
 * An m of nothing but -inf counts as -2^127, so that m l is a number; of scores whose m l is none, 2^127 and more, a sum is none.
 *
 * A sum of products that counts as -inf is no greater than any, and its power 0: that is all it takes for an element to be absent
 * from the extreme and from sums of powers as they are. */
#include "passes/schedule/stream/slots.h"

#include <float.h>
#include <math.h>

#include "ir/bugs.h"
#include "passes/expr_map.h"

/* --- what is joined --- */

typedef struct {
	const Graph *g;
	bool *used;
	unsigned but;
} Uses;

static void
note_use(void *user, ExprId e)
{
	Uses *u = user;
	const Expr *p = expr_get(u->g, e);
	if (p->op == OP_IVAR && p->ref >= STATE_A && p->ref < STATE_A + MAX_ACCS && p->ref - STATE_A != u->but)
		u->used[p->ref - STATE_A] = true;
}

/* Which score e reads at the element, or as the term that an accumulator kept; -1: none. */
static int
score_read(const StreamBuild *b, ExprId e)
{
	const Expr *p = expr_get(b->l.g, e);
	if (p->op == OP_IVAR && p->ref >= STREAM_KEPT && p->ref < STREAM_KEPT + b->s->pass->nacc)
		p = expr_get(b->l.g, b->s->acc[p->ref - STREAM_KEPT].term);
	for (unsigned n = 0; n < b->s->nscore; n++)
		if (p->op == OP_READ && p->ref == b->s->score[n].t)
			return (int)n;
	return -1;
}

/* Whether the anchor is an extreme of score n, or a finite constant in its place. */
static bool
is_extreme(const StreamSlots *x, unsigned anchor, int n)
{
	const CascadePass *p = x->b.s->pass;
	Graph *g = x->b.l.g;
	ExprId value = p->anchor[anchor].value;
	for (unsigned k = 0; k < p->nacc; k++) {
		ExprId extreme = cascade_state(g, p, STATE_A, k);
		const Expr *v = expr_get(g, value);
		bool bounded = (v->op == OP_MAX || v->op == OP_MIN) && expr_arg(g, value, 0) == extreme && expr_get(g, expr_arg(g, value, 1))->op == OP_CONST;
		if (x->score_of[k] == n && (value == extreme || bounded))
			return true;
	}
	return false;
}

static void
note_power(void *user, ExprId e)
{
	StreamSlots *x = user;
	const Graph *g = x->b.l.g;
	const Expr *p = expr_get(g, e), *arg = p->op == OP_EXP ? expr_get(g, expr_arg(g, e, 0)) : NULL;
	if (!arg || arg->op != OP_SUB || expr_narrow_type(g, e) == DT_NONE)
		return;
	const Expr *from = expr_get(g, expr_arg(g, expr_arg(g, e, 0), 1));
	int n = score_read(&x->b, expr_arg(g, expr_arg(g, e, 0), 0));
	unsigned anchor = from->op == OP_IVAR ? from->ref - ANCHOR_NEW : MAX_ANCHORS;
	if (n < 0 || !x->b.s->score[n].divisor || anchor >= x->b.s->pass->nanchor || !is_extreme(x, anchor, n))
		return;
	x->b.power[n] = e;
	x->extreme[n] = anchor;
}

static ExprId
named(void *user, Graph *g, ExprId e)
{
	StreamBuild *b = user;
	(void)g;
	for (unsigned n = 0; n < b->s->nscore; n++)
		if (b->power[n] == e)
			return stream_power(b, n);
	return e;
}

static void
name_powers(StreamSlots *x, Stream *s)
{
	Graph *g = x->b.l.g;
	Arena *scratch = x->b.l.scratch;
	for (unsigned k = 0; k < s->pass->nacc && x->reciprocal; k++)
		expr_walk(g, scratch, s->acc[k].wide ? s->acc[k].weight : s->acc[k].term, note_power, x);
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		ExprId *at = s->acc[k].wide ? &s->acc[k].weight : &s->acc[k].term;
		*at = expr_map(g, scratch, *at, named, &x->b);
		point_declare(&x->b.l, *at);
	}
}

enum { LIFT = 8 };

static bool
has_power(StreamSlots *x, ExprId e, ExprId power)
{
	return e && expr_contains(x->b.l.g, x->b.l.scratch, e, power);
}

/* Whether e is the power times what has no part of it; alone: the power itself. */
static bool
is_multiple_of(StreamSlots *x, ExprId e, ExprId power, bool alone)
{
	const Expr *p = expr_get(x->b.l.g, e);
	if (e == power)
		return true;
	if (p->op != OP_MUL || alone)
		return false;
	ExprId a = expr_arg(x->b.l.g, e, 0), b = expr_arg(x->b.l.g, e, 1);
	return (is_multiple_of(x, a, power, false) && !has_power(x, b, power)) || (is_multiple_of(x, b, power, false) && !has_power(x, a, power));
}

/* Whether a move multiplies the accumulator by what has no part of a state. */
static bool
moves_by_factor(StreamSlots *x, unsigned acc)
{
	const CascadePass *p = x->b.s->pass;
	Graph *g = x->b.l.g;
	bool used[MAX_ACCS] = {0};
	Uses own = {.g = g, .used = used, .but = MAX_ACCS};
	ExprId move = p->acc[acc].rebase, state = cascade_state(g, p, STATE_A, acc);
	if (!move)
		return true;
	const Expr *m = expr_get(g, move);
	if (m->op != OP_MUL)
		return false;
	for (unsigned k = 0; k < 2; k++)
		if (expr_arg(g, move, k) == state) {
			expr_walk(g, x->b.l.scratch, expr_arg(g, move, 1 - k), note_use, &own);
			return !used[acc];
		}
	return false;
}

/* Whether the power's anchor is the greatest score, or of scores without end the least number. */
static bool
is_greatest(StreamSlots *x, unsigned anchor)
{
	const CascadePass *p = x->b.s->pass;
	const Graph *g = x->b.l.g;
	const Expr *v = expr_get(g, p->anchor[anchor].value);
	const Expr *of = v->op == OP_MAX ? expr_get(g, expr_arg(g, p->anchor[anchor].value, 0)) : v;
	if (v->op == OP_MAX && expr_get(g, expr_arg(g, p->anchor[anchor].value, 1))->imm.f > -(double)FLT_MAX)
		return false;
	return (v == of || v->op == OP_MAX) && of->op == OP_IVAR && p->acc[of->ref - STATE_A].monoid == MON_MAX;
}

typedef struct {
	StreamBuild *b;
	unsigned score, anchor;
} Moves;

static ExprId
named_move(void *user, Graph *g, ExprId e)
{
	const Moves *m = user;
	const Expr *p = expr_get(g, e), *arg = p->op == OP_EXP ? expr_get(g, expr_arg(g, e, 0)) : NULL;
	if (!arg || arg->op != OP_SUB)
		return e;
	const Expr *from = expr_get(g, expr_arg(g, expr_arg(g, e, 0), 0)), *to = expr_get(g, expr_arg(g, expr_arg(g, e, 0), 1));
	bool own = from->op == OP_IVAR && from->ref == ANCHOR_OLD + m->anchor && to->op == OP_IVAR && to->ref == ANCHOR_NEW + m->anchor;
	return own ? stream_move(m->b, m->score) : e;
}

static void
name_moves(StreamSlots *x, Stream *s, unsigned n)
{
	Graph *g = x->b.l.g;
	Moves m = {&x->b, n, x->extreme[n]};
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		ExprId *at[2] = {&s->c.pass[0].acc[k].rebase, &s->acc[k].factor};
		for (unsigned i = 0; i < 2; i++) {
			if (!*at[i])
				continue;
			*at[i] = expr_map(g, x->b.l.scratch, *at[i], named_move, &m);
			point_declare(&x->b.l, *at[i]);
		}
	}
}

/* What a sum of -inf is the unit of, or makes a weight of 0 of. */
static void
find_absent(StreamSlots *x, unsigned n)
{
	const Stream *s = x->b.s;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		bool greatest = x->score_of[k] == (int)n && s->pass->acc[k].monoid == MON_MAX;
		x->by_sum[k] |= greatest || (s->acc[k].wide ? s->acc[k].weight : s->acc[k].term) == stream_power(&x->b, n);
	}
}

/* Powers of which only such sums are made. */
static void
find_plain(StreamSlots *x, Stream *s, unsigned n)
{
	ExprId power = stream_power(&x->b, n);
	x->plain[n] = x->b.power[n] && is_greatest(x, x->extreme[n]);
	for (unsigned k = 0; x->plain[n] && k < s->pass->nacc; k++) {
		const StreamAcc *a = &s->acc[k];
		ExprId term = a->wide ? a->weight : a->term;
		if (!has_power(x, term, power))
			continue;
		x->plain[n] = s->pass->acc[k].monoid == MON_SUM && !x->joined[k] && !a->kept && moves_by_factor(x, k) &&
		              is_multiple_of(x, term, power, !a->wide) && (!a->wide || !s->pass->acc[k].rebase || a->factor);
		if (a->wide && s->factors != DT_F16)
			x->lift[n] = LIFT;
	}
	if (!x->plain[n]) {
		x->lift[n] = 0;
		return;
	}
	name_moves(x, s, n);
	find_absent(x, n);
}

/* An accumulator that moves together with others needs all of them as they are. */
void
slots_begin(StreamSlots *x, Stream *s)
{
	const CascadePass *p = s->pass;
	Graph *g = x->b.l.g;
	Arena *scratch = x->b.l.scratch;
	Uses u = {.g = g, .used = x->joined, .but = MAX_ACCS};
	for (unsigned k = 0; k < p->nanchor; k++)
		expr_walk(g, scratch, p->anchor[k].value, note_use, &u);
	for (unsigned k = 0; k < p->nacc; k++) {
		bool others[MAX_ACCS] = {0}, any = false;
		Uses own = {.g = g, .used = others, .but = k};
		if (p->acc[k].rebase)
			expr_walk(g, scratch, p->acc[k].rebase, note_use, &own);
		for (unsigned n = 0; n < p->nacc; n++) {
			x->joined[n] |= others[n];
			any |= others[n];
		}
		x->joined[k] |= any;
	}
	if (p->seen >= 0)
		x->joined[p->seen] = true;
	for (unsigned k = 0; k < p->nacc; k++)
		x->score_of[k] = x->reciprocal && x->joined[k] ? stream_extreme_of(&x->b, k, x->least, x->most) : -1;
	name_powers(x, s);
	for (unsigned n = 0; n < s->nscore; n++)
		find_plain(x, s, n);
}

/* By how many powers of 2 the accumulator is larger than what it stands for. */
static double
lift_of(StreamSlots *x, unsigned acc)
{
	const StreamAcc *a = &x->b.s->acc[acc];
	for (unsigned n = 0; n < x->b.s->nscore; n++)
		if (x->lift[n] > 0 && has_power(x, a->wide ? a->weight : a->term, stream_power(&x->b, n)))
			return x->lift[n];
	return 0;
}

ValId
slots_lowered(StreamSlots *x, unsigned acc, ValId sum)
{
	TirKernel *k = x->b.l.tir;
	double lift = lift_of(x, acc);
	return lift > 0 ? tir_binary(k, OP_MUL, sum, tir_float(k, DT_F32, ldexp(1, -(int)lift))) : sum;
}

void
slots_lower(StreamSlots *x)
{
	StreamBuild *b = &x->b;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; !b->s->acc[k].wide && v < b->vectors; v++)
			b->run[k][v] = slots_lowered(x, k, b->run[k][v]);
}

static ValId
over_lanes(StreamSlots *x, unsigned acc, ValId v)
{
	TirKernel *k = x->b.l.tir;
	for (unsigned bit = 1; bit < TIR_WARP; bit *= 2)
		if (x->across & bit) {
			ValId other = tir_emit(k, OP_SHUFFLE, tir_scalar((DType)tir_inst(k, v)->type.dtype), bit, &v, 1);
			v = stream_joined(&x->b, acc, v, other);
		}
	return v;
}

void
slots_join(StreamSlots *x)
{
	StreamBuild *b = &x->b;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; !b->s->acc[k].wide && !x->joined[k] && v < b->vectors; v++)
			b->run[k][v] = over_lanes(x, k, b->run[k][v]);
}

unsigned
slots_carry(StreamSlots *x, ValId *carried, bool back)
{
	StreamBuild *b = &x->b;
	unsigned n = 0;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; !b->s->acc[k].wide && v < b->vectors; v++, n++) {
			if (back)
				b->run[k][v] = carried[n];
			else
				carried[n] = b->run[k][v];
		}
	return n;
}

/* --- a tile --- */

enum { FAR = 1 << 16 }; /* beyond all offsets */

void
slots_enter(StreamSlots *x, ValId from)
{
	StreamBuild *b = &x->b;
	TirKernel *k = b->l.tir;
	ValId last = x->exact ? 0 : tir_binary(k, OP_SUB, b->end, stream_int(b, 1));
	x->from = from;
	for (unsigned e = 0; e < x->nelement; e++) {
		ValId at = tir_binary(k, OP_ADD, from, stream_int(b, x->offset[e]));
		x->at[e] = last ? tir_binary(k, OP_MIN, at, last) : at;
	}
}

typedef struct {
	StreamSlots *x;
	unsigned stage;
	ValId by[STREAM_MAX_SCORES], from[STREAM_MAX_SCORES][STREAM_MAX_VECTORS]; /* of powers: c l, and m l less its lift; not plain: half of both */
	ValId sum[STREAM_MAX_SCORES][SLOTS_MAX], score[STREAM_MAX_SCORES][SLOTS_MAX], kept[MAX_ACCS][SLOTS_MAX], keep[SLOTS_MAX];
} Fold;

static void
enter_slot(StreamSlots *x, unsigned row, unsigned element)
{
	stream_at_vector(&x->b, row);
	x->b.l.axis[x->b.s->stream] = x->at[element];
}

static bool
is_narrow_at(const StreamBuild *b, unsigned acc, unsigned stage)
{
	return b->s->pass->acc[acc].stage == stage && !b->s->acc[acc].wide;
}

/* What finish makes of the sums in all slots. */
static void
finish_scores(Fold *f, unsigned k, const Node *node, SlotSum *sum)
{
	StreamSlots *x = f->x;
	Point *l = &x->b.l;
	for (unsigned row = 0; row < x->b.vectors; row++)
		for (unsigned e = 0; e < x->nelement; e++) {
			uint32_t mark = point_mark(l);
			unsigned slot = row * x->nelement + e;
			enter_slot(x, row, e);
			f->sum[k][slot] = sum(x, k, row, e);
			f->score[k][slot] = stream_finished_as(&x->b, node, k, f->sum[k][slot]);
			point_release(l, mark);
		}
}

static void
find_scores(Fold *f, SlotSum *sum)
{
	StreamBuild *b = &f->x->b;
	TirKernel *t = b->l.tir;
	unsigned n = b->vectors * f->x->nelement;
	for (unsigned k = 0; k < b->s->nscore; k++) {
		const StreamScore *s = &b->s->score[k];
		if (!s->divisor || f->x->reciprocal) {
			finish_scores(f, k, s->divisor ? &s->scaled : &s->node, sum);
			continue;
		}
		tir_if(t, b->scaled[k]);
		finish_scores(f, k, &s->scaled, sum);
		tir_else(t, f->score[k], n);
		finish_scores(f, k, &s->node, sum);
		tir_end_if(t, f->score[k], n);
	}
}

/* How far `end` is from the first slot's element, as a number that is compared with offsets. */
static ValId
distance(StreamSlots *x, ValId end)
{
	TirKernel *k = x->b.l.tir;
	ValId d = tir_binary(k, OP_SUB, end, x->from);
	d = tir_binary(k, OP_MIN, tir_binary(k, OP_MAX, d, stream_int(&x->b, -1)), stream_int(&x->b, FAR));
	return tir_cast(k, DT_I32, d);
}

/* Of the row's elements in the tile: where they begin, 0: at the first or before; and end. */
static void
row_range(StreamSlots *x, unsigned row, ValId *lo, ValId *hi)
{
	StreamBuild *b = &x->b;
	bool ragged = b->s->ragged && !BUG(stream_absent_terms);
	const Expr *first = expr_get(b->l.g, b->s->lo);
	*lo = ragged && !(first->op == OP_CONST && first->imm.i == 0) ? distance(x, b->lo[row]) : 0;
	*hi = distance(x, ragged ? tir_binary(b->l.tir, OP_MIN, b->hi[row], b->end) : b->end);
}

/* What the slot's sums count as; f->score has the scores that they are sums of. */
static void
drop_absent(Fold *f, unsigned slot)
{
	StreamSlots *x = f->x;
	TirKernel *k = x->b.l.tir;
	for (unsigned n = 0; n < x->b.s->nscore; n++)
		if (x->plain[n])
			f->sum[n][slot] = tir_select(k, f->keep[slot], f->sum[n][slot], tir_float(k, x->b.s->type, -INFINITY));
}

/* Whether there is the element, for the row. */
static void
find_present(Fold *f)
{
	StreamSlots *x = f->x;
	StreamBuild *b = &x->b;
	TirKernel *k = b->l.tir;
	b->masked = !x->exact;
	for (unsigned row = 0; row < b->vectors && b->masked; row++) {
		ValId lo, hi;
		row_range(x, row, &lo, &hi);
		for (unsigned e = 0; e < x->nelement; e++) {
			unsigned slot = row * x->nelement + e;
			uint32_t mark = point_mark(&b->l);
			enter_slot(x, row, e);
			for (unsigned n = 0; n < b->s->nscore; n++)
				point_tensor(&b->l, b->s->score[n].t)->value[0] = (PointVal){.re = f->score[n][slot]};
			ValId at = tir_int(k, DT_I32, x->offset[e]), rest = stream_rest(b);
			f->keep[slot] = tir_binary(k, OP_LT, at, hi);
			f->keep[slot] = lo ? tir_binary(k, OP_AND, tir_binary(k, OP_LE, lo, at), f->keep[slot]) : f->keep[slot];
			f->keep[slot] = rest ? tir_binary(k, OP_AND, f->keep[slot], rest) : f->keep[slot];
			point_release(&b->l, mark);
			drop_absent(f, slot);
		}
	}
}

enum { CHAINS = 4 }; /* of a row's slots, each folded one after the other, so that few wait for the one before */

/* 0: of nothing yet. */
static void
join_into(StreamBuild *b, unsigned acc, ValId *sum, ValId v)
{
	if (v)
		*sum = *sum ? stream_joined(b, acc, v, *sum) : v;
}

/* The terms of a slot, which is the point. */
static void
take_terms(Fold *f, unsigned row, unsigned slot, ValId (*part)[STREAM_MAX_VECTORS][CHAINS])
{
	StreamSlots *x = f->x;
	StreamBuild *b = &x->b;
	Point *l = &b->l;
	const CascadePass *p = b->s->pass;
	unsigned chain = slot % x->nelement % CHAINS;
	for (unsigned k = 0; k < p->nacc; k++) {
		if (p->acc[k].stage != f->stage)
			continue;
		const StreamAcc *a = &b->s->acc[k];
		ValId v = point_value(l, a->wide ? a->weight : a->term, !b->masked).re;
		if (a->kept)
			f->kept[k][slot] = v;
		if (x->score_of[k] >= 0)
			v = f->sum[x->score_of[k]][slot];
		if (f->keep[slot] && !x->by_sum[k])
			v = tir_select(l->tir, f->keep[slot], v, a->wide ? tir_float(l->tir, b->s->type, 0) : stream_unit(b, k));
		if (a->wide)
			x->weight[k][slot] = v;
		else
			join_into(b, k, &part[k][row][chain], v);
	}
}

static void
place_slot(Fold *f, unsigned slot)
{
	StreamBuild *b = &f->x->b;
	Point *l = &b->l;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		if (b->s->acc[k].kept && f->stage)
			point_place(l, stream_kept(b, k), f->kept[k][slot]);
	for (unsigned k = 0; k < b->s->nscore; k++)
		point_tensor(l, b->s->score[k].t)->value[0] = (PointVal){.re = f->score[k][slot]};
}

static const double log2e = 1.44269504088896340736;

/* What all powers of the row take, where m is the anchor. That of no score stays a number. */
static ValId
power_from(StreamSlots *x, unsigned n, ValId m)
{
	TirKernel *k = x->b.l.tir;
	if (!x->plain[n])
		return tir_binary(k, OP_MUL, m, tir_float(k, DT_F32, log2e / 2));
	m = tir_binary(k, OP_MAX, m, tir_float(k, DT_F32, -0x1p127));
	m = tir_binary(k, OP_MUL, m, tir_float(k, DT_F32, log2e));
	return x->lift[n] > 0 ? tir_binary(k, OP_SUB, m, tir_float(k, DT_F32, x->lift[n])) : m;
}

/* The root's square, which may be subnormal. */
static ValId
move_between(StreamSlots *x, ValId before, ValId now)
{
	TirKernel *k = x->b.l.tir;
	ValId half = tir_binary(k, OP_MUL, tir_binary(k, OP_SUB, before, now), tir_float(k, DT_F32, 0.5));
	ValId root = tir_unary(k, OP_EX2, half);
	return tir_binary(k, OP_MUL, root, root);
}

/* Those of the anchors that the stage has made. */
static void
find_powers(Fold *f)
{
	StreamSlots *x = f->x;
	StreamBuild *b = &x->b;
	for (unsigned n = 0; n < b->s->nscore; n++)
		for (unsigned row = 0; b->power[n] && b->s->pass->anchor[x->extreme[n]].stage == f->stage && row < b->vectors; row++) {
			f->from[n][row] = power_from(x, n, b->anchor_new[x->extreme[n]][row]);
			if (x->plain[n])
				b->move[n][row] = move_between(x, power_from(x, n, b->anchor_old[x->extreme[n]][row]), f->from[n][row]);
		}
}

static ExprId
scale_of(const StreamSlots *x, unsigned n)
{
	return expr_arg(x->b.l.g, x->b.s->score[n].scaled.finish, 1);
}

typedef struct {
	const Graph *g;
	bool varies;
} Scale;

static void
note_launch(void *user, ExprId e)
{
	Scale *s = user;
	s->varies |= expr_get(s->g, e)->op == OP_DIM || expr_get(s->g, e)->op == OP_READ;
}

/* Whether each launch has its own. */
static bool
is_of_launch(const StreamSlots *x, ExprId e)
{
	Scale s = {.g = x->b.l.g};
	expr_walk(s.g, x->b.l.scratch, e, note_launch, &s);
	return s.varies;
}

static ValId
power_scale(StreamSlots *x, unsigned n)
{
	Point *l = &x->b.l;
	return tir_binary(l->tir, OP_MUL, point_value(l, scale_of(x, n), true).re, tir_float(l->tir, DT_F32, x->plain[n] ? log2e : log2e / 2));
}

/* As one register of a warp: multiply-adds that read it take two of a thread's then, beside products whose sums take most of
 * what registers can be read. A number is part of the instruction, which is better still. */
void
slots_scales(StreamSlots *x)
{
	for (unsigned n = 0; n < x->b.s->nscore; n++) {
		if (!x->b.power[n] || !is_of_launch(x, scale_of(x, n)))
			continue;
		ValId by = power_scale(x, n);
		x->by[n] = tir_emit(x->b.l.tir, OP_SHUFFLE, tir_scalar(DT_F32), TIR_SAME, &by, 1);
	}
}

/* What powers take of the tile. */
static void
find_power_parts(Fold *f, unsigned row)
{
	StreamSlots *x = f->x;
	for (unsigned n = 0; n < x->b.s->nscore; n++)
		if (f->from[n][row] && !f->by[n])
			f->by[n] = x->by[n] ? x->by[n] : power_scale(x, n);
}

/* Of those that are not plain halves, of which targets that have units for powers take squares. */
static void
place_powers(Fold *f, unsigned row, unsigned slot)
{
	StreamSlots *x = f->x;
	TirKernel *k = x->b.l.tir;
	for (unsigned n = 0; n < x->b.s->nscore; n++) {
		if (!f->from[n][row])
			continue;
		ValId exponent = tir_binary(k, OP_SUB, tir_binary(k, OP_MUL, f->sum[n][slot], f->by[n]), f->from[n][row]);
		if (!x->plain[n])
			exponent = tir_binary(k, OP_ADD, exponent, exponent);
		DType mark = expr_narrow_type(x->b.l.g, x->b.power[n]);
		point_place(&x->b.l, stream_power(&x->b, n),
		            x->plain[n] ? tir_unary(k, OP_EX2, exponent) : tir_emit(k, OP_EXP2, tir_scalar(DT_F32), mark, &exponent, 1));
	}
}

static void
join_chains(Fold *f, ValId (*part)[STREAM_MAX_VECTORS][CHAINS])
{
	StreamBuild *b = &f->x->b;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned row = 0; is_narrow_at(b, k, f->stage) && row < b->vectors; row++)
			for (unsigned n = CHAINS / 2; n; n /= 2)
				for (unsigned c = 0; c < n; c++)
					join_into(b, k, &part[k][row][c], part[k][row][c + n]);
}

/* Of the tile's extreme sums the scores. */
static void
finish_extremes(Fold *f, ValId (*part)[STREAM_MAX_VECTORS][CHAINS])
{
	StreamSlots *x = f->x;
	StreamBuild *b = &x->b;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned row = 0; is_narrow_at(b, k, f->stage) && x->score_of[k] >= 0 && row < b->vectors; row++) {
			uint32_t mark = point_mark(&b->l);
			unsigned score = (unsigned)x->score_of[k];
			stream_at_vector(b, row);
			const StreamScore *s = &b->s->score[score];
			part[k][row][0] = stream_finished_as(b, s->divisor ? &s->scaled : &s->node, score, part[k][row][0]);
			point_release(&b->l, mark);
		}
}

/* Joined accumulators take a tile's terms by themselves, until those of all lanes are together. */
static void
fold_stage(Fold *f)
{
	StreamSlots *x = f->x;
	StreamBuild *b = &x->b;
	ValId part[MAX_ACCS][STREAM_MAX_VECTORS][CHAINS] = {0};
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned row = 0; is_narrow_at(b, k, f->stage) && row < b->vectors; row++)
			part[k][row][0] = x->joined[k] ? stream_unit(b, k) : b->run[k][row];
	for (unsigned row = 0; row < b->vectors; row++) {
		uint32_t of_row = point_mark(&b->l);
		stream_at_vector(b, row);
		stream_place_anchors(b, ANCHOR_NEW, b->anchor_new, row);
		find_power_parts(f, row);
		for (unsigned e = 0; e < x->nelement; e++) {
			uint32_t mark = point_mark(&b->l);
			enter_slot(x, row, e);
			place_slot(f, row * x->nelement + e);
			place_powers(f, row, row * x->nelement + e);
			take_terms(f, row, row * x->nelement + e, part);
			point_release(&b->l, mark);
		}
		point_release(&b->l, of_row);
	}
	join_chains(f, part);
	finish_extremes(f, part);
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned row = 0; is_narrow_at(b, k, f->stage) && row < b->vectors; row++)
			b->run[k][row] = x->joined[k] ? stream_joined(b, k, over_lanes(x, k, part[k][row][0]), b->run[k][row]) : part[k][row][0];
}

static void
find_factors(StreamSlots *x)
{
	StreamBuild *b = &x->b;
	for (unsigned row = 0; row < b->vectors; row++) {
		uint32_t mark = point_mark(&b->l);
		stream_at_vector(b, row);
		stream_place_move(b, row, 0);
		for (unsigned k = 0; k < b->s->pass->nacc; k++)
			x->factor[k][row] = b->s->acc[k].wide && b->s->acc[k].factor ? stream_move_factor(b, k, row) : 0;
		point_release(&b->l, mark);
	}
}

void
slots_fold(StreamSlots *x, SlotSum *sum)
{
	StreamBuild *b = &x->b;
	Fold *f = ARENA_NEW(b->l.scratch, Fold);
	f->x = x;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned row = 0; row < b->vectors; row++)
			b->old[k][row] = b->run[k][row];
	for (unsigned k = 0; k < b->s->pass->nanchor; k++)
		for (unsigned row = 0; row < b->vectors; row++)
			b->anchor_old[k][row] = b->anchor_new[k][row] = 0;
	find_scores(f, sum);
	find_present(f);
	for (f->stage = 0; f->stage <= b->s->last_stage; f->stage++) {
		if (f->stage)
			stream_move_narrow(b, f->stage);
		fold_stage(f);
		stream_make_anchors(b, f->stage);
		find_powers(f);
	}
	find_factors(x);
}

ValId
slots_moved(StreamSlots *x, unsigned acc, unsigned row)
{
	StreamBuild *b = &x->b;
	ValId state = b->column[acc];
	if (x->factor[acc][row])
		return tir_binary(b->l.tir, OP_MUL, state, x->factor[acc][row]);
	if (!b->s->pass->acc[acc].rebase)
		return state;
	uint32_t mark = point_mark(&b->l);
	stream_at_vector(b, row);
	stream_place_move(b, row, state);
	state = stream_moved(b, acc, row, state);
	point_release(&b->l, mark);
	return state;
}
