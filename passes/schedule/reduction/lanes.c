/* lanes.c: folds with an accumulator for each lane of a vector, and how accumulators of
 * different terms are joined. The units of reduction.c make an accumulator that took no term neutral,
 * but for arg: it asks, or, where nothing leaves out terms, the first of all has the unit's position. */
#include "passes/schedule/schedule.h"

void
reduction_widen(Point *l, Reduction *f)
{
	ValId *all[REDUCTION_MAX_CARRIED];
	reduction_each(f, all);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++)
		*all[k] = point_widen(l, *all[k]);
}

void
reduction_term_where(Point *l, Reduction *f, ValId position, ValId keep, bool always)
{
	Reduction before = *f;
	reduction_term(l, f, position, always);
	reduction_widen(l, f);
	if (!keep)
		return;
	ValId *all[REDUCTION_MAX_CARRIED], *old[REDUCTION_MAX_CARRIED];
	reduction_each(f, all);
	reduction_each(&before, old);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++)
		if (*all[k] && !(f->searched && all[k] == &f->re)) /* touched tells which are terms */
			*all[k] = tir_select(l->tir, keep, *all[k], *old[k]);
}

/* --- joining --- */

/* Whether x, an extreme of some terms, is beyond y, that of others: a NaN is beyond all numbers. */
static ValId
beyond(Point *l, const Reduction *f, ValId x, ValId y)
{
	bool max = f->monoid == MON_ARGMAX;
	if (!dtype_is_float(f->type))
		return tir_binary(l->tir, OP_LT, max ? y : x, max ? x : y);
	ValId within = tir_binary(l->tir, OP_LE, max ? x : y, max ? y : x), nan = tir_unary(l->tir, OP_ISNAN, y);
	return tir_unary(l->tir, OP_NOT, tir_binary(l->tir, OP_OR, within, nan));
}

/* The better one wins, among equals the smaller position, and whatever took no term loses. */
static void
merge_arg(Point *l, Reduction *f, const Reduction *g)
{
	TirKernel *k = l->tir;
	ValId worse = tir_unary(k, OP_NOT, beyond(l, f, f->re, g->re));
	ValId first = tir_binary(k, OP_AND, worse, tir_binary(k, OP_LT, g->position, f->position));
	ValId wins = tir_binary(k, OP_OR, beyond(l, f, g->re, f->re), first);
	if (f->touched)
		wins = tir_binary(k, OP_AND, g->touched, tir_binary(k, OP_OR, tir_unary(k, OP_NOT, f->touched), wins));
	f->re = tir_select(k, wins, g->re, f->re);
	f->position = tir_select(k, wins, g->position, f->position);
}

void
reduction_merge(Point *l, Reduction *f, const Reduction *g)
{
	TirKernel *k = l->tir;
	if (f->factor) {
		reduction_linear_merge(l, f, g);
		return;
	}
	switch (f->other ? MON_NONE : f->monoid) {
	case MON_NONE: break;
	case MON_SUM:
		f->re = tir_binary(k, OP_ADD, f->re, g->re);
		f->im = f->im ? tir_binary(k, OP_ADD, f->im, g->im) : 0;
		break;
	case MON_PROD: f->re = tir_binary(k, OP_MUL, f->re, g->re); break;
	case MON_MAX: f->re = tir_binary(k, OP_MAX, f->re, g->re); break;
	case MON_MIN: f->re = tir_binary(k, OP_MIN, f->re, g->re); break;
	case MON_ANY: f->re = tir_binary(k, OP_OR, f->re, g->re); break;
	case MON_ALL: f->re = tir_binary(k, OP_AND, f->re, g->re); break;
	case MON_ARGMAX: case MON_ARGMIN: merge_arg(l, f, g); break;
	}
	if (f->other)
		reduction_rank_merge(l, f, g);
	if (f->touched != g->touched)
		f->touched = tir_binary(k, OP_OR, f->touched, g->touched);
	f->fail = point_word(l, f->fail, g->fail);
	f->cut = point_word(l, f->cut, g->cut);
}

/* Lanes first .. first + n - 1 of every accumulator. */
static Reduction
lanes_of(Point *l, const Reduction *f, unsigned first, unsigned n)
{
	Reduction part = *f;
	ValId *all[REDUCTION_MAX_CARRIED];
	reduction_each(&part, all);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++) {
		if (!*all[k] || !tir_inst(l->tir, *all[k])->type.lanes)
			continue;
		DType t = (DType)tir_inst(l->tir, *all[k])->type.dtype;
		*all[k] = tir_emit(l->tir, OP_LANE, n > 1 ? tir_vector(t, n) : tir_scalar(t), first, all[k], 1);
	}
	return part;
}

/* Every accumulator of low, which high has as well, becomes the two halves of its lanes. */
static void
halve(Point *l, Reduction *low, Reduction *high)
{
	ValId *lo[REDUCTION_MAX_CARRIED], *hi[REDUCTION_MAX_CARRIED];
	reduction_each(low, lo);
	reduction_each(high, hi);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++)
		if (*lo[k] && tir_inst(l->tir, *lo[k])->type.lanes)
			tir_halves(l->tir, *lo[k], lo[k], hi[k]);
}

/* One half onto the other, until so many lanes are left. */
static void
fold_halves(Point *l, Reduction *f, unsigned lanes, unsigned left)
{
	for (; lanes > left; lanes /= 2) {
		Reduction low = *f, high = *f;
		halve(l, &low, &high);
		reduction_merge(l, &low, &high);
		*f = low;
	}
}

/* The threads' lanes side by side first: they have one mask, and what it leaves out is left out once. */
void
reduction_join_in_threads(Point *l, Reduction *f, unsigned lanes)
{
	unsigned threads = tir_all_threads(l->tir), each = threads * l->tir->group, n = lanes / each;
	if (n <= 1) {
		fold_halves(l, f, lanes, threads);
		return;
	}
	Reduction part[TIR_MAX_LANES];
	for (unsigned p = 0; p < n; p++) {
		part[p] = lanes_of(l, f, p * each, each);
		fold_halves(l, &part[p], each, threads);
	}
	for (unsigned step = 1; step < n; step *= 2)
		for (unsigned p = 0; p < n; p += 2 * step)
			reduction_merge(l, &part[p], &part[p + step]);
	*f = part[0];
}

void
reduction_join_lanes(Point *l, Reduction *f, unsigned lanes)
{
	unsigned threads = l->tir->form == TIR_BLOCK ? tir_all_threads(l->tir) : lanes;
	if (lanes > threads)
		reduction_join_in_threads(l, f, lanes);
	fold_halves(l, f, lanes < threads ? lanes : threads, 1);
}

/* Positions in two steps, where every lane's counts: the extreme of all lanes, then the least position that has it. */
static void
join_positions(Point *l, Reduction *f)
{
	TirKernel *k = l->tir;
	Reduction at = {.monoid = MON_MIN, .type = DT_I64}, words = {.monoid = MON_NONE, .fail = f->fail, .cut = f->cut};
	ValId best = f->re;
	for (unsigned lanes = l->lanes; lanes > 1; lanes /= 2) {
		ValId low, high;
		tir_halves(k, best, &low, &high);
		best = tir_select(k, beyond(l, f, high, low), high, low);
	}
	ValId has = tir_binary(k, OP_EQ, f->re, best);
	if (dtype_is_float(f->type)) /* if any is, the extreme is one */
		has = tir_binary(k, OP_OR, has, tir_unary(k, OP_ISNAN, f->re));
	at.re = tir_select(k, has, f->position, tir_int(k, DT_I64, INT64_MAX));
	fold_halves(l, &at, l->lanes, 1);
	fold_halves(l, &words, l->lanes, 1);
	f->re = best;
	f->position = at.re;
	f->fail = words.fail;
	f->cut = words.cut;
}

void
reduction_across(Point *l, Reduction *f)
{
	if (f->searched)
		reduction_search_across(l, f);
	else if (f->position && !f->touched)
		join_positions(l, f);
	else
		reduction_join_lanes(l, f, l->lanes);
}

/* v, a row, in all rows of the point's lanes. */
static ValId
in_all_rows(Point *l, ValId v)
{
	while (v && tir_inst(l->tir, v)->type.lanes && tir_inst(l->tir, v)->type.lanes < l->lanes) {
		const TirType t = tir_inst(l->tir, v)->type;
		const ValId both[2] = {v, v};
		v = tir_emit(l->tir, OP_WEAVE, tir_vector((DType)t.dtype, 2 * t.lanes), 2 * (int64_t)__builtin_ctz(t.lanes), both, 2);
	}
	return v;
}

void
reduction_across_rows(Point *l, Reduction *f)
{
	fold_halves(l, f, l->lanes, l->tir->columns);
	ValId *all[REDUCTION_MAX_CARRIED];
	reduction_each(f, all);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++)
		*all[k] = in_all_rows(l, *all[k]);
}

/* --- prefixes --- */

/* The accumulators of f, by lanes further on by this many, with units where there are none. */
static Reduction
moved(Point *l, const Reduction *f, const Reduction *unit, unsigned by, bool reverse)
{
	Reduction to = *f, from = *f, none = *unit;
	ValId *all[REDUCTION_MAX_CARRIED], *have[REDUCTION_MAX_CARRIED], *empty[REDUCTION_MAX_CARRIED];
	reduction_each(&to, all);
	reduction_each(&from, have);
	reduction_each(&none, empty);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++) {
		if (!*all[k])
			continue;
		TirType t = tir_inst(l->tir, *have[k])->type;
		ValId pair[2] = {reverse ? *have[k] : *empty[k], reverse ? *empty[k] : *have[k]};
		*all[k] = tir_emit(l->tir, OP_SLIDE, t, reverse ? by : l->lanes - by, pair, 2);
	}
	return to;
}

void
reduction_prefix(Point *l, Reduction *f, const Reduction *unit, bool reverse)
{
	for (unsigned by = 1; by < l->lanes; by *= 2) {
		Reduction others = moved(l, f, unit, by, reverse);
		reduction_merge(l, f, &others);
	}
}

Reduction
reduction_lane(Point *l, const Reduction *f, unsigned k)
{
	return lanes_of(l, f, k, 1);
}

Reduction
reduction_spread(Point *l, const Reduction *f, unsigned k)
{
	Reduction one = lanes_of(l, f, k, 1);
	reduction_widen(l, &one);
	return one;
}
