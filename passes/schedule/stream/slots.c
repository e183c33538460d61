/* slots.c: a tile's slots of a thread into the state of its rows (slots.h), as fold.c has it for
 * vectors. What lanes join, and how powers are made, is powers.c's. */
#include "passes/schedule/stream/slots.h"

#include <math.h>

#include "ir/bugs.h"

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
	slots_enter_apart(x);
}

typedef struct {
	StreamSlots *x;
	unsigned stage;
	ValId by[STREAM_MAX_SCORES], from[STREAM_MAX_SCORES][STREAM_MAX_VECTORS]; /* of powers: c l, and m l less its lift; not plain: half of both; by scores: m */
	ValId sum[STREAM_MAX_SCORES][SLOTS_MAX], score[STREAM_MAX_SCORES][SLOTS_MAX], kept[MAX_ACCS][SLOTS_MAX], keep[SLOTS_MAX];
} Fold;

static void
enter_slot(StreamSlots *x, unsigned row, unsigned element)
{
	stream_at_vector(&x->b, row);
	x->b.l.axis[x->b.s->stream] = x->at[element];
	slots_place_apart(x, row, element);
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
			finish_scores(f, k, &s->quick, sum);
			continue;
		}
		tir_if(t, b->scaled[k]);
		finish_scores(f, k, &s->scaled, sum);
		tir_else(t, f->score[k], n);
		finish_scores(f, k, &s->node, sum);
		tir_end_if(t, f->score[k], n);
	}
}

/* How far `end` is from the first slot's element, as a number that is compared with offsets: of each row's own range one of 32
 * bits, as each is compared in every tile; where all rows have one, only the last tile asks (what takes fewer instructions
 * there made all tiles of heads of 128 take 2 % longer). */
static ValId
distance(StreamSlots *x, ValId end)
{
	TirKernel *k = x->b.l.tir;
	ValId d = tir_binary(k, OP_SUB, end, x->from);
	if (!x->b.s->ragged)
		return d;
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

/* What the slot's sums count as, and its scores where powers are taken of those. */
static void
drop_absent(Fold *f, unsigned slot)
{
	StreamSlots *x = f->x;
	TirKernel *k = x->b.l.tir;
	ValId none = tir_float(k, x->b.s->type, -INFINITY);
	for (unsigned n = 0; n < x->b.s->nscore; n++) {
		if (x->plain[n])
			f->sum[n][slot] = tir_select(k, f->keep[slot], f->sum[n][slot], none);
		if (x->plain[n] && x->by_score[n])
			f->score[n][slot] = tir_select(k, f->keep[slot], f->score[n][slot], none);
	}
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
			ValId at = tir_int(k, (DType)tir_inst(k, hi)->type.dtype, x->offset[e]), rest = stream_rest(b);
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

static bool
is_late(const StreamSlots *x, unsigned slot)
{
	return slot % x->nelement >= x->nelement - x->nlate;
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
		if (is_late(x, slot) && !a->wide && slots_takes_power(x, k))
			continue;
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

/* Those of the anchors that the stage has made. */
static void
find_powers(Fold *f)
{
	StreamSlots *x = f->x;
	StreamBuild *b = &x->b;
	for (unsigned n = 0; n < b->s->nscore; n++)
		for (unsigned row = 0; b->power[n] && b->s->pass->anchor[x->extreme[n]].stage == f->stage && row < b->vectors; row++) {
			f->from[n][row] = slots_power_from(x, n, b->anchor_new[x->extreme[n]][row]);
			if (x->plain[n])
				b->move[n][row] = slots_move_between(x, n, slots_power_from(x, n, b->anchor_old[x->extreme[n]][row]), f->from[n][row]);
		}
}

/* What powers take of the tile. */
static void
find_power_parts(Fold *f, unsigned row)
{
	StreamSlots *x = f->x;
	for (unsigned n = 0; n < x->b.s->nscore; n++)
		if (f->from[n][row] && !f->by[n] && !x->by_score[n])
			f->by[n] = x->by[n] ? x->by[n] : slots_power_scale(x, n);
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
		ValId exponent = x->by_score[n] ? slots_exponent(x, n, f->score[n][slot], f->from[n][row])
		                 : tir_binary(k, OP_SUB, tir_binary(k, OP_MUL, f->sum[n][slot], f->by[n]), f->from[n][row]);
		if (!x->plain[n])
			exponent = tir_binary(k, OP_ADD, exponent, exponent);
		DType mark = expr_narrow_type(x->b.l.g, x->b.power[n]);
		ValId power = !x->plain[n] ? tir_emit(k, OP_EXP2, tir_scalar(DT_F32), mark, &exponent, 1)
		              : is_late(x, slot) ? exponent : tir_unary(k, OP_EX2, exponent);
		point_place(&x->b.l, stream_power(&x->b, n), power);
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
			part[k][row][0] = stream_finished_as(b, &s->quick, score, part[k][row][0]);
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
