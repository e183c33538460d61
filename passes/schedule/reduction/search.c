/* search.c: argmax and argmin of a block's vector: first the extreme of all terms, as max and min fold it,
 * then the least position that has it. A lane costs one operation to fold and two to search, and what goes from
 * thread to thread is a value, then a number; values and positions that are folded together cost eight for each two.
 *
 * Each lane has at most one term, whose position is the lane's number. Of the terms those are found that equal the
 * extreme, as -0 and +0 do, or that are NaN where it is. */
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"

#include <stdint.h>

enum { MAX_SHARES = 64, NOWHERE = INT32_MAX };

/* A block's vectors are parts of as many lanes as all threads have side by side. */
typedef struct {
	unsigned threads, group, parts, n; /* n: lanes of a thread, in the order of their numbers */
	ValId term[MAX_SHARES], there[MAX_SHARES], number; /* of the threads' k-th lanes; of their first ones */
} Shares;

void
reduction_search(Reduction *f)
{
	f->searched = f->monoid == MON_ARGMAX || f->monoid == MON_ARGMIN;
	if (f->searched)
		f->position = 0;
}

/* The lane that a thread has as its k-th, counted from its first. */
static int64_t
lane_of(const Shares *s, unsigned k)
{
	return (int64_t)(k / s->group) * s->threads * s->group + k % s->group;
}

static void
take_group(Point *l, const Shares *s, ValId v, unsigned lanes, ValId *to, unsigned step)
{
	if (lanes == s->threads) {
		*to = v;
		return;
	}
	for (unsigned side = 0; side < 2; side++) {
		TirType t = tir_vector((DType)tir_inst(l->tir, v)->type.dtype, lanes / 2);
		take_group(l, s, tir_emit(l->tir, OP_HALF, t, side, &v, 1), lanes / 2, to + side * step, 2 * step);
	}
}

/* A vector as one of the threads' first lanes, one of their second lanes, and so on. */
static void
take_shares(Point *l, const Shares *s, ValId v, ValId *to)
{
	unsigned lanes = s->threads * s->group;
	TirType t = tir_vector((DType)tir_inst(l->tir, v)->type.dtype, lanes);
	for (unsigned p = 0; p < s->parts; p++) {
		ValId part = s->parts > 1 ? tir_emit(l->tir, OP_LANE, t, (int64_t)p * lanes, &v, 1) : v;
		take_group(l, s, part, lanes, to + p * s->group, 1);
	}
}

static void
share_out(Point *l, const Reduction *f, Shares *s)
{
	ValId number[MAX_SHARES];
	s->threads = tir_all_threads(l->tir);
	s->n = l->lanes / s->threads;
	s->group = s->n < l->tir->group ? s->n : l->tir->group;
	if (l->lanes % s->threads || s->n == 0 || s->n > MAX_SHARES)
		bug(l->tir->arena, "a search of %u lanes by %u threads", l->lanes, s->threads);
	s->parts = s->n / s->group;
	take_shares(l, s, f->re, s->term);
	take_shares(l, s, f->touched, s->there);
	take_shares(l, s, tir_emit(l->tir, OP_IOTA, tir_vector(DT_I32, l->lanes), 0, NULL, 0), number);
	s->number = number[0];
}

/* Of the threads' terms the extreme; one that is not there is the other end of all. */
static ValId
extreme_of(Point *l, const Reduction *f, const Shares *s)
{
	ValId v[MAX_SHARES], none = reduction_of(l, f->monoid, f->type).re;
	for (unsigned k = 0; k < s->n; k++)
		v[k] = tir_select(l->tir, s->there[k], s->term[k], none);
	for (unsigned step = 1; step < s->n; step *= 2)
		for (unsigned k = 0; k < s->n; k += 2 * step)
			v[k] = tir_binary(l->tir, f->monoid == MON_ARGMAX ? OP_MAX : OP_MIN, v[k], v[k + step]);
	return v[0];
}

/* The first of the threads' lanes whose term is the extreme, counted from its first lane. Where lanes side by side have
 * terms together, one of them is asked. */
static ValId
first_of(Point *l, const Reduction *f, const Shares *s, ValId extreme, bool nan)
{
	TirKernel *k = l->tir;
	ValId none = tir_int(k, DT_I32, NOWHERE), first = none;
	unsigned step = f->by_group ? s->group : 1;
	for (unsigned i = s->n; i > 0; i -= step) {
		unsigned begin = BUG(arg_takes_last_lane) ? s->n - i : i - step;
		ValId own = none;
		for (unsigned n = begin + step; n-- > begin;) {
			ValId is = nan ? tir_unary(k, OP_ISNAN, s->term[n]) : tir_binary(k, OP_EQ, s->term[n], extreme);
			own = tir_select(k, is, tir_int(k, DT_I32, lane_of(s, n)), own);
		}
		ValId has = tir_binary(k, OP_AND, s->there[begin], tir_binary(k, OP_LT, own, none));
		first = tir_select(k, has, own, first);
	}
	return first;
}

/* The extreme is the same for all threads. */
static ValId
search(Point *l, const Reduction *f, const Shares *s, ValId extreme)
{
	ValId first;
	if (!dtype_is_float(f->type))
		return first_of(l, f, s, extreme, false);
	tir_if(l->tir, tir_unary(l->tir, OP_ISNAN, extreme));
	first = first_of(l, f, s, extreme, !BUG(arg_loses_nan));
	tir_else(l->tir, &first, 1);
	first = first_of(l, f, s, extreme, false);
	tir_end_if(l->tir, &first, 1);
	return first;
}

void
reduction_search_across(Point *l, Reduction *f)
{
	TirKernel *k = l->tir;
	Shares *s = ARENA_NEW(k->arena, Shares);
	share_out(l, f, s);
	Reduction best = {.monoid = f->monoid == MON_ARGMAX ? MON_MAX : MON_MIN, .type = f->type};
	best.re = extreme_of(l, f, s);
	reduction_join_lanes(l, &best, s->threads);
	ValId first = search(l, f, s, best.re), none = tir_int(k, DT_I32, NOWHERE);
	Reduction at = {.monoid = MON_MIN, .type = DT_I32}, words = {.monoid = MON_NONE, .fail = f->fail, .cut = f->cut};
	at.re = tir_select(k, tir_binary(k, OP_LT, first, none), tir_binary(k, OP_ADD, s->number, first), none);
	reduction_join_lanes(l, &at, s->threads);
	reduction_join_lanes(l, &words, l->lanes);
	f->re = best.re;
	f->fail = words.fail;
	f->cut = words.cut;
	f->touched = tir_binary(k, OP_LT, at.re, none);
	f->position = tir_select(k, f->touched, tir_cast(k, DT_I64, at.re), tir_int(k, DT_I64, 0));
}
