/* powers.c: what threads' lanes join of a stream's accumulators, and which powers they make their own way (slots.h).
 *
 * An accumulator that an anchor is made of, or that moves another one, is joined over the lanes with each tile. Of the others
 * each lane keeps its own part: parts are at the same anchors, so the sum of what has been moved is what the sum is moved to.
 *
 * A power e^(s - m) of few bits, of a score s that is a sum times a number c, and an extreme m of such, is 2^(sum (c l) - m l), l
 * = log2(e): a multiply-add where there were two products and a difference. That rounds c l, and m l, of magnitudes that a
 * sum's terms have; roles.c has why the bound of the sums covers it.
 *
 * A score that is something else, as with a bias or a soft cap, may be larger than its sum by far, and m l off by whole powers of 2; and
 * one that is its sum, or more than half of it, may be 2^127 and more, whose m l is none. So its power is 2^((s - m) l), of a
 * difference and a product.
 *
 * EX2, which targets have a unit for, makes results below 2^-126 0. Where nothing is done with powers but to add them up, one
 * is the extreme's own, 1: a sum of theirs alone has no such bits. Weights of f16 have none either; of bf16 they go down to 2^-134,
 * half its least step, so powers are made 2^LIFT times larger, a factor of the row that moves across the cast and the sums. What
 * such sums move by when the extreme changes is then made of the same m l, before and after: all roundings of m l but the last one cancel.
 * An m of nothing but -inf counts as -2^127, so that m l is a number; of scores whose m l is none, 2^127 and more, a sum is none.
 *
 * A sum of products that counts as -inf is no greater than any, and its power 0: that is all it takes for an element to be absent
 * from the extreme and from sums of powers as they are.
 *
 * Such sums can also wait: threads that ask for the next tile's products can do nothing else until most of them are made, so the
 * last few powers of a tile are made in between. Of the 64 that a thread has, 8 gain the most on an H200: 1.5 % with heads of 128. 16
 * gain less, 24 nothing: the first products come apart then. */
#include <float.h>
#include <math.h>

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/stream/slots.h"

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

/* Whether the accumulator is an extreme of score n: of the sums that it folds; or of scores as they are. */
static bool
is_of_score(const StreamSlots *x, unsigned acc, unsigned n, bool by_score)
{
	const CascadeAcc *a = &x->b.s->pass->acc[acc];
	const Expr *term = expr_get(x->b.l.g, a->term);
	if (!by_score)
		return x->score_of[acc] == (int)n;
	return (a->monoid == MON_MAX || a->monoid == MON_MIN) && term->op == OP_READ && term->ref == x->b.s->score[n].t;
}

/* Whether the anchor is an extreme of score n, or a finite constant in its place. */
static bool
is_extreme(const StreamSlots *x, unsigned anchor, unsigned n, bool by_score)
{
	const CascadePass *p = x->b.s->pass;
	Graph *g = x->b.l.g;
	ExprId value = p->anchor[anchor].value;
	for (unsigned k = 0; k < p->nacc; k++) {
		ExprId extreme = cascade_state(g, p, STATE_A, k);
		const Expr *v = expr_get(g, value);
		bool bounded = (v->op == OP_MAX || v->op == OP_MIN) && expr_arg(g, value, 0) == extreme && expr_get(g, expr_arg(g, value, 1))->op == OP_CONST;
		if (is_of_score(x, k, n, by_score) && (value == extreme || bounded))
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
	if (n < 0 || anchor >= x->b.s->pass->nanchor)
		return;
	bool of_sums = x->b.s->score[n].scale && stream_scores_are_small(&x->b, (unsigned)n, x->least, x->most);
	bool by_score = !of_sums || !is_extreme(x, anchor, (unsigned)n, false);
	if (by_score && !is_extreme(x, anchor, (unsigned)n, true))
		return;
	x->by_score[n] = by_score;
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

bool
slots_is_greatest(const StreamSlots *x, unsigned anchor)
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
		bool greatest = is_of_score(x, k, n, x->by_score[n]) && s->pass->acc[k].monoid == MON_MAX;
		x->by_sum[k] |= greatest || (s->acc[k].wide ? s->acc[k].weight : s->acc[k].term) == stream_power(&x->b, n);
	}
}

/* Powers of which only such sums are made. */
static void
find_plain(StreamSlots *x, Stream *s, unsigned n)
{
	ExprId power = stream_power(&x->b, n);
	x->plain[n] = x->b.power[n] && slots_is_greatest(x, x->extreme[n]);
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
	slots_divide(x, s);
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
	double lift = x->b.raised > 0 ? 0 : lift_of(x, acc);
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

/* --- powers --- */

static const double log2e = 1.44269504088896340736;

/* What all powers of the row take, where m is the anchor. That of no score stays a number. */
ValId
slots_power_from(StreamSlots *x, unsigned n, ValId m)
{
	TirKernel *k = x->b.l.tir;
	if (x->by_score[n])
		return x->plain[n] ? tir_binary(k, OP_MAX, m, tir_float(k, DT_F32, -FLT_MAX)) : m;
	if (!x->plain[n])
		return tir_binary(k, OP_MUL, m, tir_float(k, DT_F32, log2e / 2));
	m = tir_binary(k, OP_MAX, m, tir_float(k, DT_F32, -0x1p127));
	m = tir_binary(k, OP_MUL, m, tir_float(k, DT_F32, log2e));
	return x->lift[n] > 0 ? tir_binary(k, OP_SUB, m, tir_float(k, DT_F32, x->lift[n])) : m;
}

ValId
slots_exponent(StreamSlots *x, unsigned n, ValId score, ValId from)
{
	TirKernel *k = x->b.l.tir;
	ValId off = tir_binary(k, OP_SUB, score, from);
	off = tir_binary(k, OP_MUL, off, tir_float(k, DT_F32, x->plain[n] ? log2e : log2e / 2));
	return x->lift[n] > 0 ? tir_binary(k, OP_ADD, off, tir_float(k, DT_F32, x->lift[n])) : off;
}

/* The root's square, which may be subnormal. */
ValId
slots_move_between(StreamSlots *x, unsigned n, ValId before, ValId now)
{
	TirKernel *k = x->b.l.tir;
	ValId half = tir_binary(k, OP_MUL, tir_binary(k, OP_SUB, before, now), tir_float(k, DT_F32, x->by_score[n] ? log2e / 2 : 0.5));
	ValId root = tir_unary(k, OP_EX2, half);
	return tir_binary(k, OP_MUL, root, root);
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

ValId
slots_power_scale(StreamSlots *x, unsigned n)
{
	Point *l = &x->b.l;
	return tir_binary(l->tir, OP_MUL, point_value(l, x->b.s->score[n].scale, true).re, tir_float(l->tir, DT_F32, x->plain[n] ? log2e : log2e / 2));
}

/* As one register of a warp: multiply-adds that read it take two of a thread's then, beside products whose sums take most of
 * what registers can be read. A number is part of the instruction, which is better still. */
void
slots_scales(StreamSlots *x)
{
	for (unsigned n = 0; n < x->b.s->nscore; n++) {
		if (!x->b.power[n] || x->by_score[n] || !is_of_launch(x, x->b.s->score[n].scale))
			continue;
		ValId by = slots_power_scale(x, n);
		x->by[n] = tir_emit(x->b.l.tir, OP_SHUFFLE, tir_scalar(DT_F32), TIR_SAME, &by, 1);
	}
}

/* --- powers that wait --- */

bool
slots_takes_power(const StreamSlots *x, unsigned acc)
{
	return x->by_sum[acc] && x->b.s->pass->acc[acc].monoid == MON_SUM;
}

/* Whether all that the power is used for are such sums, of which a wide one has it as its weight. */
static bool
may_wait(StreamSlots *x, unsigned n)
{
	const Stream *s = x->b.s;
	bool wide = false;
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		const StreamAcc *a = &s->acc[k];
		if (!has_power(x, a->wide ? a->weight : a->term, stream_power(&x->b, n)))
			continue;
		if (!slots_takes_power(x, k))
			return false;
		wide |= a->wide;
	}
	return wide;
}

void
slots_delay(StreamSlots *x, unsigned nelement)
{
	if (x->b.s->nscore == 1 && x->plain[0] && may_wait(x, 0))
		x->nlate = nelement;
}

void
slots_late(StreamSlots *x)
{
	StreamBuild *b = &x->b;
	TirKernel *t = b->l.tir;
	for (unsigned row = 0; row < b->vectors; row++)
		for (unsigned e = x->nelement - x->nlate; e < x->nelement; e++) {
			ValId power = 0;
			for (unsigned k = 0; k < b->s->pass->nacc; k++) {
				ValId *weight = &x->weight[k][row * x->nelement + e];
				if (b->s->acc[k].wide && slots_takes_power(x, k))
					*weight = power = power ? power : tir_unary(t, OP_EX2, *weight);
			}
			for (unsigned k = 0; k < b->s->pass->nacc; k++)
				if (!b->s->acc[k].wide && slots_takes_power(x, k) && !BUG(stream_late_lost))
					b->run[k][row] = tir_binary(t, OP_ADD, b->run[k][row], power);
		}
}
