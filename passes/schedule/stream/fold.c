/* fold.c: a tile of elements into the state of a strip of rows (stream.h).
 *
 * By ascending stage: narrow accumulators are moved to their anchors, as these are now, and take the terms
 * of the tile, each vector of rows element by element; then come the anchors that are made of them. Weights
 * of wide ones are left in a panel for the register tiles, which add them once the wide
 * accumulators have been moved as well.
 *
 * A state of nothing is made of units, which no term changes; only what moves it is not for it, so a move
 * asks whether there was an element. Absent terms are units. */
#include "passes/schedule/stream/stream.h"

#include "ir/bugs.h"

/* --- vectors --- */

ValId
stream_vector(StreamBuild *b, ValId v)
{
	TirKernel *k = b->l.tir;
	TirType t = tir_inst(k, v)->type;
	return t.lanes || !b->plan->lanes ? v : tir_emit(k, OP_SPLAT, tir_vector((DType)t.dtype, b->plan->lanes), 0, &v, 1);
}

static bool
is_float_sum(const StreamBuild *b, unsigned acc)
{
	const CascadeAcc *a = &b->s->pass->acc[acc];
	return a->monoid == MON_SUM && dtype_is_float(a->dtype);
}

/* -0 for sums, so that a sum of only -0 is one; where nothing says at the end whether there was a term, +0. */
ValId
stream_unit(StreamBuild *b, unsigned acc)
{
	const CascadeAcc *a = &b->s->pass->acc[acc];
	if (is_float_sum(b, acc) && b->s->rest && b->s->pass->seen < 0)
		return stream_vector(b, tir_float(b->l.tir, a->dtype, 0));
	return stream_vector(b, reduction_of(&b->l, a->monoid, a->dtype).re);
}

/* A sum of no terms is +0. */
static ValId
completed(StreamBuild *b, unsigned acc, unsigned v, ValId x)
{
	if (!b->some[v] || !is_float_sum(b, acc) || (b->s->acc[acc].wide && b->from_zero))
		return x;
	return tir_select(b->l.tir, b->some[v], x, stream_vector(b, tir_float(b->l.tir, b->s->pass->acc[acc].dtype, 0)));
}

ValId
stream_joined(StreamBuild *b, unsigned acc, ValId x, ValId y)
{
	const CascadeAcc *a = &b->s->pass->acc[acc];
	Reduction f = {.monoid = a->monoid, .type = a->dtype, .re = x}, g = f;
	g.re = y;
	reduction_merge(&b->l, &f, &g);
	return f.re;
}

static ValId
load_row(StreamBuild *b, ValId view, ValId at, unsigned v)
{
	const ValId p[2] = {at, stream_int(b, v * b->plan->lanes)};
	return tir_load(b->l.tir, view, p, 0, TIR_LANES_ALONG(1), b->plan->lanes);
}

static void
store_row(StreamBuild *b, ValId view, ValId at, unsigned v, ValId x)
{
	const ValId p[2] = {at, stream_int(b, v * b->plan->lanes)};
	tir_store(b->l.tir, view, x, p, 0, TIR_LANES_ALONG(1));
}

static ExprId
state_ivar(StreamBuild *b, unsigned acc)
{
	return cascade_state(b->l.g, b->s->pass, STATE_A, acc);
}

static void
column_at(StreamBuild *b, ValId column, unsigned v, ValId *p)
{
	p[0] = b->strip;
	p[1] = column;
	p[2] = stream_int(b, v * b->plan->lanes);
}

void
stream_place_state(StreamBuild *b, ValId (*narrow)[STREAM_MAX_VECTORS], unsigned v, ValId column)
{
	ValId p[3];
	for (unsigned k = 0; k < b->s->pass->nacc; k++) {
		bool wide = b->s->acc[k].wide;
		ValId x = wide ? b->column[k] : narrow[k][v];
		if (wide && !column)
			continue;
		if (!x) {
			column_at(b, column, v, p);
			x = tir_load(b->l.tir, b->state[k], p, 0, TIR_LANES_ALONG(2), b->plan->lanes);
		}
		point_place(&b->l, state_ivar(b, k), completed(b, k, v, x));
	}
}

void
stream_place_anchors(StreamBuild *b, uint32_t base, ValId (*value)[STREAM_MAX_VECTORS], unsigned v)
{
	for (unsigned k = 0; k < b->s->pass->nanchor; k++)
		if (value[k][v])
			point_place(&b->l, expr_make(b->l.g, OP_IVAR, b->s->pass->anchor[k].dtype, base + k, 0, NULL, 0), value[k][v]);
}

/* --- states --- */

void
stream_start(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1), p[3];
	for (unsigned n = 0; n < b->s->pass->nacc; n++) {
		ValId column = 0;
		if (b->s->acc[n].wide)
			column = tir_for(k, zero, point_launch_expr(&b->l, b->padded), one, NULL, 0);
		for (unsigned v = 0; v < b->vectors; v++) {
			column_at(b, column, v, p);
			if (column)
				tir_store(k, b->state[n], stream_unit(b, n), p, 0, TIR_LANES_ALONG(2));
			else
				store_row(b, b->state[n], b->strip, v, stream_unit(b, n));
		}
		if (column)
			tir_end_for(k, NULL, 0);
	}
}

/* Whether the strip's state held an element before the tile. */
static ValId
was_seen(StreamBuild *b, unsigned v)
{
	const CascadePass *p = b->s->pass;
	ValId seen = p->seen < 0 ? 0 : b->old[p->seen][v];
	if (seen && p->counted)
		seen = tir_binary(b->l.tir, OP_LT, stream_vector(b, stream_int(b, 0)), seen);
	return seen;
}

/* Accumulator k as it was, at the anchors as they are. What it is made of has been placed. */
ValId
stream_moved(StreamBuild *b, unsigned k, unsigned v, ValId old)
{
	const CascadeAcc *a = &b->s->pass->acc[k];
	if (!a->rebase || BUG(stream_not_moved))
		return old;
	ValId x = stream_vector(b, point_value(&b->l, a->rebase, true).re), seen = was_seen(b, v);
	return seen ? tir_select(b->l.tir, seen, x, old) : x;
}

/* --- elements --- */

enum { MAX_CHAINS = 4, MAX_CARRIED = 16 };

ValId
stream_rest(StreamBuild *b)
{
	if (!b->s->rest || BUG(stream_absent_terms))
		return 0;
	return stream_vector(b, point_value(&b->l, b->s->rest, false).re);
}

ValId
stream_present(StreamBuild *b, unsigned v, ValId j)
{
	TirKernel *k = b->l.tir;
	ValId keep = 0;
	if (!b->masked)
		return 0;
	if (b->s->ragged && !BUG(stream_absent_terms)) {
		j = stream_vector(b, j);
		keep = tir_binary(k, OP_AND, tir_binary(k, OP_LE, b->lo[v], j), tir_binary(k, OP_LT, j, b->hi[v]));
	}
	ValId rest = stream_rest(b);
	return keep && rest ? tir_binary(k, OP_AND, keep, rest) : keep ? keep : rest;
}

/* The finished scores of element c, as the values of what reads them. */
static void
place_scores(StreamBuild *b, ValId c, unsigned v, bool first)
{
	Point *l = &b->l;
	for (unsigned k = 0; k < b->s->nscore; k++) {
		const StreamScore *s = &b->s->score[k];
		if (!first && !s->again)
			continue;
		point_tensor(l, s->t)->value[v] = (PointVal){.re = stream_finished(b, k, load_row(b, b->panel[k], c, v))};
	}
}

ExprId
stream_kept(StreamBuild *b, unsigned acc)
{
	return expr_make(b->l.g, OP_IVAR, b->s->pass->acc[acc].dtype, STREAM_KEPT + acc, 0, NULL, 0);
}

ExprId
stream_power(StreamBuild *b, unsigned score)
{
	return expr_make(b->l.g, OP_IVAR, DT_F32, STREAM_POWER + score, 0, NULL, 0);
}

ExprId
stream_move(StreamBuild *b, unsigned score)
{
	return expr_make(b->l.g, OP_IVAR, DT_F32, STREAM_MOVE + score, 0, NULL, 0);
}

static void
place_kept(StreamBuild *b, ValId c, unsigned v)
{
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		if (b->s->acc[k].kept)
			point_place(&b->l, stream_kept(b, k), load_row(b, b->weight[k], c, v));
}

static bool
is_at(const StreamBuild *b, unsigned acc, unsigned stage, bool wide)
{
	return b->s->pass->acc[acc].stage == stage && b->s->acc[acc].wide == wide;
}

/* The terms of element c at the v-th vector. */
static void
take_terms(StreamBuild *b, unsigned stage, ValId c, unsigned v)
{
	Point *l = &b->l;
	const CascadePass *p = b->s->pass;
	bool always = !b->masked;
	ValId weight[MAX_ACCS] = {0}, keep = stream_present(b, v, l->axis[b->s->stream]);
	for (unsigned k = 0; k < p->nacc; k++) {
		if (p->acc[k].stage != stage)
			continue;
		const StreamAcc *a = &b->s->acc[k];
		ValId x = stream_vector(b, point_value(l, a->wide ? a->weight : a->term, always).re);
		if (a->wide || a->kept)
			weight[k] = x;
		if (a->wide && keep)
			weight[k] = tir_select(l->tir, keep, x, stream_vector(b, tir_float(l->tir, b->s->type, 0)));
		if (a->wide)
			continue;
		x = keep ? tir_select(l->tir, keep, x, stream_unit(b, k)) : x;
		b->run[k][v] = stream_joined(b, k, x, b->run[k][v]);
	}
	for (unsigned k = 0; k < p->nacc; k++)
		if (weight[k])
			store_row(b, b->weight[k], c, v, weight[k]);
}

static unsigned
pack_stage(StreamBuild *b, unsigned stage, ValId *carried, bool back)
{
	unsigned n = 0;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; is_at(b, k, stage, false) && v < b->vectors; v++, n++) {
			if (back)
				b->run[k][v] = carried[n];
			else
				carried[n] = b->run[k][v];
		}
	return n;
}

static void
fold_element(StreamBuild *b, unsigned stage, ValId c)
{
	Point *l = &b->l;
	uint32_t mark = point_mark(l);
	l->axis[b->s->stream] = tir_binary(l->tir, OP_ADD, b->first, c);
	for (unsigned v = 0; v < b->vectors; v++) {
		uint32_t at = point_mark(l);
		stream_at_vector(b, v);
		if (stage)
			place_kept(b, c, v);
		stream_place_anchors(b, ANCHOR_NEW, b->anchor_new, v);
		place_scores(b, c, v, stage == 0);
		take_terms(b, stage, c, v);
		point_release(l, at);
	}
	point_release(l, mark);
}

/* `chains` elements at a time, each into accumulators of its own, n for each. */
static void
fold_chains(StreamBuild *b, unsigned stage, ValId from, ValId to, unsigned chains, ValId *carried, unsigned n)
{
	TirKernel *k = b->l.tir;
	ValId c = tir_for(k, from, to, stream_int(b, chains), carried, chains * n);
	for (unsigned i = 0; i < chains; i++) {
		pack_stage(b, stage, carried + i * n, true);
		fold_element(b, stage, tir_binary(k, OP_ADD, c, stream_int(b, i)));
		pack_stage(b, stage, carried + i * n, false);
	}
	tir_end_for(k, carried, chains * n);
}

/* Chains but for the first begin with nothing, and end joined with it. */
static void
join_chains(StreamBuild *b, unsigned stage, unsigned chains, ValId *carried, unsigned n, bool begin)
{
	for (unsigned k = 0, m = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; is_at(b, k, stage, false) && v < b->vectors; v++, m++)
			for (unsigned i = 1; i < chains; i++) {
				if (begin)
					carried[i * n + m] = stream_unit(b, k);
				else
					carried[m] = stream_joined(b, k, carried[i * n + m], carried[m]);
			}
}

/* How many elements at a time the stage takes: the next waits for what is folded of one. Only where no bit depends on their order, and
 * half the registers hold what is folded. */
static unsigned
chains_of(const StreamBuild *b, unsigned stage)
{
	unsigned n = 0, vectors = b->plan->lanes * dtype_info[b->s->type].bits >= 512 ? MAX_CARRIED : MAX_CARRIED / 2;
	for (unsigned k = 0; k < b->s->pass->nacc; k++) {
		if (!is_at(b, k, stage, false))
			continue;
		Monoid m = b->s->pass->acc[k].monoid;
		if (dtype_is_float(b->s->pass->acc[k].dtype) && m != MON_MAX && m != MON_MIN)
			return 1;
		n += b->vectors;
	}
	return n && n <= vectors ? (vectors / n < MAX_CHAINS ? vectors / n : MAX_CHAINS) : 1;
}

static void
fold_elements(StreamBuild *b, unsigned stage)
{
	TirKernel *k = b->l.tir;
	ValId carried[MAX_CARRIED + MAX_ACCS * STREAM_MAX_VECTORS], zero = stream_int(b, 0), whole = zero;
	unsigned n = pack_stage(b, stage, carried, false), chains = chains_of(b, stage);
	if (chains > 1) {
		ValId many = stream_int(b, chains);
		whole = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, b->count, many), many);
		join_chains(b, stage, chains, carried, n, true);
		fold_chains(b, stage, zero, whole, chains, carried, n);
		join_chains(b, stage, chains, carried, n, false);
	}
	fold_chains(b, stage, whole, b->count, 1, carried, n);
	pack_stage(b, stage, carried, true);
}

/* --- stages --- */

void
stream_make_anchors(StreamBuild *b, unsigned stage)
{
	Point *l = &b->l;
	const CascadePass *p = b->s->pass;
	for (unsigned k = 0; k < p->nanchor; k++)
		for (unsigned v = 0; p->anchor[k].stage == stage && v < b->vectors; v++) {
			uint32_t mark = point_mark(l);
			stream_at_vector(b, v);
			stream_place_state(b, b->old, v, 0);
			b->anchor_old[k][v] = stream_vector(b, point_value(l, p->anchor[k].value, true).re);
			point_release(l, mark);
			stream_place_state(b, b->run, v, 0);
			b->anchor_new[k][v] = stream_vector(b, point_value(l, p->anchor[k].value, true).re);
			point_release(l, mark);
		}
}

void
stream_place_move(StreamBuild *b, unsigned v, ValId column)
{
	stream_place_state(b, b->old, v, column);
	stream_place_anchors(b, ANCHOR_OLD, b->anchor_old, v);
	stream_place_anchors(b, ANCHOR_NEW, b->anchor_new, v);
	for (unsigned n = 0; n < b->s->nscore; n++)
		if (b->move[n][v])
			point_place(&b->l, stream_move(b, n), b->move[n][v]);
}

void
stream_move_narrow(StreamBuild *b, unsigned stage)
{
	Point *l = &b->l;
	for (unsigned v = 0; v < b->vectors; v++) {
		uint32_t mark = point_mark(l);
		stream_at_vector(b, v);
		stream_place_move(b, v, 0);
		for (unsigned k = 0; k < b->s->pass->nacc; k++)
			if (is_at(b, k, stage, false))
				b->run[k][v] = stream_moved(b, k, v, b->old[k][v]);
		point_release(l, mark);
	}
}

ValId
stream_move_factor(StreamBuild *b, unsigned acc, unsigned v)
{
	ValId one = stream_vector(b, tir_float(b->l.tir, b->s->type, 1)), seen = was_seen(b, v);
	ValId x = stream_vector(b, point_value(&b->l, b->s->acc[acc].factor, true).re);
	return BUG(stream_not_moved) ? one : seen ? tir_select(b->l.tir, seen, x, one) : x;
}

/* Those of wide accumulators that a factor moves, which waits for their columns to be loaded. */
static void
keep_factors(StreamBuild *b)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	for (unsigned v = 0; v < b->vectors; v++) {
		uint32_t mark = point_mark(l);
		stream_at_vector(b, v);
		stream_place_move(b, v, 0);
		for (unsigned n = 0; n < b->s->pass->nacc; n++) {
			if (!b->factor[n])
				continue;
			ValId at = stream_int(b, v * l->lanes);
			tir_store(k, b->factor[n], stream_move_factor(b, n, v), &at, 0, TIR_LANES_ALONG(0));
		}
		point_release(l, mark);
	}
}

/* All others, before any columns are added: one may be made of others at the same column. */
static void
move_wide(StreamBuild *b)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	const CascadePass *p = b->s->pass;
	bool any = false;
	for (unsigned n = 0; n < p->nacc; n++)
		any |= b->s->acc[n].wide && p->acc[n].rebase && !b->factor[n];
	if (!any)
		return;
	ValId column = tir_for(k, stream_int(b, 0), point_launch_expr(l, b->columns), stream_int(b, 1), NULL, 0);
	l->axis[b->s->wide] = column;
	for (unsigned v = 0; v < b->vectors; v++) {
		ValId x[MAX_ACCS], at[3];
		uint32_t mark = point_mark(l);
		stream_at_vector(b, v);
		stream_place_move(b, v, column);
		column_at(b, column, v, at);
		for (unsigned n = 0; n < p->nacc; n++)
			if (b->s->acc[n].wide && !b->factor[n])
				x[n] = stream_moved(b, n, v, tir_load(k, b->state[n], at, 0, TIR_LANES_ALONG(2), b->plan->lanes));
		for (unsigned n = 0; n < p->nacc; n++)
			if (b->s->acc[n].wide && p->acc[n].rebase && !b->factor[n])
				tir_store(k, b->state[n], x[n], at, 0, TIR_LANES_ALONG(2));
		point_release(l, mark);
	}
	tir_end_for(k, NULL, 0);
}

void
stream_load_state(StreamBuild *b)
{
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; !b->s->acc[k].wide && v < b->vectors; v++)
			b->run[k][v] = b->old[k][v] = load_row(b, b->state[k], b->strip, v);
	for (unsigned k = 0; k < b->s->pass->nanchor; k++)
		for (unsigned v = 0; v < b->vectors; v++)
			b->anchor_old[k][v] = b->anchor_new[k][v] = 0;
}

void
stream_fold(StreamBuild *b)
{
	uint32_t mark = point_mark(&b->l);
	stream_load_state(b);
	for (unsigned stage = 0; stage <= b->s->last_stage; stage++) {
		if (stage)
			stream_move_narrow(b, stage);
		fold_elements(b, stage);
		stream_make_anchors(b, stage);
	}
	keep_factors(b);
	move_wide(b);
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; !b->s->acc[k].wide && v < b->vectors; v++)
			store_row(b, b->state[k], b->strip, v, b->run[k][v]);
	point_release(&b->l, mark);
}

/* --- columns of a tile with absent terms and values that are not finite --- */

static void
add_where(StreamBuild *b, unsigned acc, ValId c, ValId keep, unsigned v)
{
	TirKernel *k = b->l.tir;
	ValId p[3], weight = load_row(b, b->weight[acc], c, v);
	ValId column = tir_for(k, stream_int(b, 0), point_launch_expr(&b->l, b->columns), stream_int(b, 1), NULL, 0);
	const ValId at[2] = {c, column};
	column_at(b, column, v, p);
	ValId sum = tir_load(k, b->state[acc], p, 0, TIR_LANES_ALONG(2), b->plan->lanes);
	ValId x = tir_binary(k, OP_MUL, stream_vector(b, tir_load(k, b->value[acc], at, 0, 0, 0)), weight);
	ValId more = tir_binary(k, OP_ADD, sum, x);
	tir_store(k, b->state[acc], keep ? tir_select(k, keep, more, sum) : more, p, 0, TIR_LANES_ALONG(2));
	tir_end_for(k, NULL, 0);
}

/* Columns by their factor, where tiles don't. */
static void
move_columns(StreamBuild *b, unsigned acc)
{
	TirKernel *k = b->l.tir;
	ValId column = tir_for(k, stream_int(b, 0), point_launch_expr(&b->l, b->columns), stream_int(b, 1), NULL, 0), p[3];
	for (unsigned v = 0; v < b->vectors; v++) {
		ValId x = stream_factor(b, acc, v);
		column_at(b, column, v, p);
		x = tir_binary(k, OP_MUL, tir_load(k, b->state[acc], p, 0, TIR_LANES_ALONG(2), b->plan->lanes), x);
		tir_store(k, b->state[acc], x, p, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
}

ValId
stream_factor(StreamBuild *b, unsigned acc, unsigned v)
{
	ValId at = stream_int(b, v * b->plan->lanes);
	return tir_load(b->l.tir, b->factor[acc], &at, 0, TIR_LANES_ALONG(0), b->plan->lanes);
}

void
stream_columns_where(StreamBuild *b, unsigned acc)
{
	Point *l = &b->l;
	uint32_t mark = point_mark(l);
	if (b->factor[acc])
		move_columns(b, acc);
	ValId c = tir_for(l->tir, stream_int(b, 0), b->count, stream_int(b, 1), NULL, 0);
	b->masked = true;
	l->axis[b->s->stream] = tir_binary(l->tir, OP_ADD, b->first, c);
	for (unsigned v = 0; v < b->vectors; v++) {
		uint32_t at = point_mark(l);
		stream_at_vector(b, v);
		add_where(b, acc, c, stream_present(b, v, l->axis[b->s->stream]), v);
		point_release(l, at);
	}
	tir_end_for(l->tir, NULL, 0);
	point_release(l, mark);
}
