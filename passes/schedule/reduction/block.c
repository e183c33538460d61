/* block.c: prefixes of a fold whose lanes are a block's (ir/tir.h): each thread folds its own lanes, a warp
 * joins its threads' by log steps of SLIDE, and the threads know what each warp has. So a term is joined twice, once in
 * its thread and once with all that comes before the thread; the rest is for each thread, not for each term.
 *
 * Of n = P T V lanes a part of T V is V vectors of T lanes, one a thread, which are the part's lanes by HALF; WEAVE puts
 * them together again. tile_spread keeps all of them in the same thread's registers. */
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"

typedef struct {
	Point *l;
	const Reduction *unit; /* by lane */
	unsigned threads;
	bool reverse;
} Prefix;

enum { WARP_BITS = 5 };
_Static_assert(1 << WARP_BITS == TIR_WARP, "a warp's threads have as many bits");

/* All accumulators of f, and of g, through one operation. */
static Reduction
each(const Prefix *x, Op op, int64_t imm, unsigned lanes, const Reduction *f, const Reduction *g)
{
	ValId a[REDUCTION_MAX_CARRIED], b[REDUCTION_MAX_CARRIED];
	unsigned n = reduction_pack(f, a);
	Reduction to = *f;
	if (g)
		reduction_pack(g, b);
	for (unsigned k = 0; k < n; k++) {
		DType t = (DType)tir_inst(x->l->tir, a[k])->type.dtype;
		ValId arg[2] = {a[k], g ? b[k] : 0};
		a[k] = tir_emit(x->l->tir, op, lanes > 1 ? tir_vector(t, lanes) : tir_scalar(t), imm, arg, g ? 2 : 1);
	}
	reduction_unpack(&to, a);
	return to;
}

/* Every lanes'th / n'th lane of f, in turns: n folds of lanes / n lanes each. */
static void
take_apart(const Prefix *x, const Reduction *f, unsigned lanes, Reduction *to, unsigned n, unsigned step)
{
	if (n == 1) {
		*to = *f;
		return;
	}
	for (unsigned side = 0; side < 2; side++) {
		Reduction half = each(x, lanes > 2 ? OP_HALF : OP_LANE, side, lanes / 2, f, NULL);
		take_apart(x, &half, lanes / 2, to + side * step, n / 2, 2 * step);
	}
}

/* The other way: n folds of so many lanes. */
static Reduction
put_together(const Prefix *x, const Reduction *from, unsigned lanes, unsigned n, unsigned step)
{
	if (n == 1)
		return *from;
	Reduction even = put_together(x, from, lanes, n / 2, 2 * step), odd = put_together(x, from + step, lanes, n / 2, 2 * step);
	return each(x, OP_WEAVE, 0, lanes * n, &even, &odd);
}

/* Lanes of the threads before this one in its warp, by so many; the unit where there are none. */
static Reduction
from_before(const Prefix *x, const Reduction *f, const Reduction *unit, unsigned by)
{
	if (x->reverse)
		return each(x, OP_SLIDE, TIR_SLIDE(by, TIR_WARP), x->threads, f, unit);
	return each(x, OP_SLIDE, TIR_SLIDE(TIR_WARP - by, TIR_WARP), x->threads, unit, f);
}

/* What a thread has: its lanes, each with those before it, or steps as they are. */
static Reduction
join_own(const Prefix *x, Reduction *own, unsigned group)
{
	if (x->unit->factor)
		return reduction_linear_join(x->l, x->unit, own, group, x->reverse);
	for (unsigned k = 1; k < group; k++) {
		unsigned v = x->reverse ? group - 1 - k : k;
		reduction_merge(x->l, &own[v], &own[x->reverse ? v + 1 : v - 1]);
	}
	return own[x->reverse ? 0 : group - 1];
}

/* The same with what they begin with. */
static void
begin_own(const Prefix *x, Reduction *own, unsigned group, const Reduction *begin)
{
	if (x->unit->factor)
		reduction_linear_steps(x->l, begin, own, group, x->reverse);
	else
		for (unsigned v = 0; v < group; v++)
			reduction_merge(x->l, &own[v], begin);
}

/* Each thread's with those of the threads before it in its warp. */
static void
join_before(const Prefix *x, Reduction *total)
{
	for (unsigned by = 1; by < TIR_WARP; by *= 2) {
		Reduction before = from_before(x, total, x->unit, by);
		reduction_merge(x->l, total, &before);
	}
}

/* What each warp has, as scalars, where `total` is what its threads have, each with those before it. */
static void
sums_of_warps(const Prefix *x, const Reduction *total, Reduction *sum)
{
	unsigned warps = x->threads / TIR_WARP;
	Reduction last = *total;
	for (unsigned bit = WARP_BITS; bit-- > 0;) {
		unsigned lanes = warps << bit;
		last = each(x, lanes > 1 ? OP_HALF : OP_LANE, lanes > 1 ? 2 * bit + !x->reverse : !x->reverse, lanes, &last, NULL);
	}
	take_apart(x, &last, warps, sum, warps, 1);
}

/* What each warp begins with, in all of its threads; *carry is what the block begins with, and then what it ends with. */
static Reduction
across_warps(const Prefix *x, const Reduction *total, Reduction *carry)
{
	Point *l = x->l;
	unsigned warps = x->threads / TIR_WARP;
	const Reduction begin = *carry;
	Reduction sum[TIR_MAX_THREADS / TIR_WARP], start[TIR_MAX_THREADS / TIR_WARP];
	sums_of_warps(x, total, sum);
	for (unsigned k = 0; k < warps; k++) {
		unsigned w = x->reverse ? warps - 1 - k : k;
		start[w] = BUG(warps_begin_alike) ? begin : *carry;
		reduction_merge(l, &sum[w], carry);
		*carry = sum[w];
	}
	Reduction all = start[0];
	ValId part[REDUCTION_MAX_CARRIED][TIR_MAX_THREADS / TIR_WARP], joined[REDUCTION_MAX_CARRIED];
	unsigned n = 0;
	for (unsigned w = 0; w < warps; w++) {
		n = reduction_pack(&start[w], joined);
		for (unsigned k = 0; k < n; k++)
			part[k][w] = joined[k];
	}
	for (unsigned k = 0; k < n; k++) {
		DType t = (DType)tir_inst(l->tir, part[k][0])->type.dtype;
		joined[k] = warps > 1 ? tir_emit(l->tir, OP_JOIN, tir_vector(t, warps), 0, part[k], warps)
		                      : tir_emit(l->tir, OP_SPLAT, tir_vector(t, x->threads), 0, part[k], 1);
	}
	reduction_unpack(&all, joined);
	for (unsigned bit = 0; warps > 1 && bit < WARP_BITS; bit++)
		all = each(x, OP_WEAVE, 2 * bit, warps << (bit + 1), &all, &all);
	return all;
}

/* A part, with `group` lanes a thread. */
static Reduction
prefix_part(const Prefix *x, const Reduction *part, unsigned group, Reduction *carry)
{
	Point *l = x->l;
	Reduction own[TIR_MAX_LANES], unit = *x->unit;
	take_apart(x, part, x->threads * group, own, group, 1);
	Reduction total = join_own(x, own, group);
	join_before(x, &total);
	Reduction begin = across_warps(x, &total, carry), before = from_before(x, &total, &unit, 1);
	reduction_merge(l, &before, &begin);
	begin_own(x, own, group, &before);
	return put_together(x, own, x->threads, group, 1);
}

/* Parts of so many lanes as the vector that they were. */
static Reduction
weave_parts(const Prefix *x, Reduction *part, unsigned parts, unsigned lanes)
{
	for (; parts > 1; parts /= 2, lanes *= 2)
		for (unsigned p = 0; p < parts / 2; p++)
			part[p] = each(x, OP_WEAVE, 2 * (int64_t)__builtin_ctz(lanes), 2 * lanes, &part[2 * p], &part[2 * p + 1]);
	return part[0];
}

/* Scalars in all threads. */
static Reduction
in_threads(const Prefix *x, const Reduction *f)
{
	return each(x, OP_SPLAT, 0, x->threads, f, NULL);
}

void
reduction_prefix_block(Point *l, Reduction *f, const Reduction *unit, Reduction *carry, bool reverse)
{
	unsigned threads = l->tir->threads, each_thread = l->lanes / threads;
	unsigned group = each_thread < l->tir->group ? each_thread : l->tir->group, parts = each_thread / group;
	unsigned lanes = threads * group;
	Prefix x = {.l = l, .threads = threads, .reverse = reverse};
	Reduction units = in_threads(&x, unit), part[TIR_MAX_LANES];
	x.unit = &units;
	for (unsigned k = 0; k < parts; k++) {
		unsigned p = reverse ? parts - 1 - k : k;
		part[p] = parts > 1 ? each(&x, OP_LANE, (int64_t)p * lanes, lanes, f, NULL) : *f;
		part[p] = prefix_part(&x, &part[p], group, carry);
	}
	*f = weave_parts(&x, part, parts, lanes);
}

void
reduction_join_in_order(Point *l, Reduction *f, const Reduction *unit, unsigned lanes)
{
	Prefix x = {.l = l, .threads = l->tir->threads};
	Reduction units = in_threads(&x, unit), sum[TIR_MAX_THREADS / TIR_WARP];
	x.unit = &units;
	join_before(&x, f);
	sums_of_warps(&x, f, sum);
	*f = sum[0];
	for (unsigned w = 1; w * TIR_WARP < lanes; w++) {
		reduction_merge(l, &sum[w], f);
		*f = sum[w];
	}
}

/* --- a vector of which it is known later what it begins with --- */

static Prefix
prefix_of(const ReductionTile *t, bool reverse)
{
	return (Prefix){.l = t->l, .unit = &t->units, .threads = t->l->tir->threads, .reverse = reverse};
}

void
reduction_tile_declare(Point *l, const Reduction *unit, ReductionTile *t)
{
	TirKernel *k = l->tir;
	unsigned each_thread = l->lanes / k->threads;
	*t = (ReductionTile){.l = l, .group = each_thread < k->group ? each_thread : k->group};
	t->parts = each_thread / t->group;
	t->sums = t->parts * (k->threads / TIR_WARP);
	if (t->sums > TIR_WARP * REDUCTION_TILE_SUMS || each_thread > REDUCTION_TILE_LANES)
		bug(l->g->arena, "a prefix of %u lanes in %u threads", l->lanes, (unsigned)k->threads);
	ValId v[REDUCTION_MAX_CARRIED];
	t->carried = reduction_pack(unit, v);
	for (unsigned c = 0; c < t->carried; c++)
		for (unsigned n = 0; n < 2; n++) {
			unsigned buffer = tir_add_buffer(k, name_cstr(k->names, n ? "start" : "sum"), (DType)tir_inst(k, v[c])->type.dtype, true);
			ValId extent = tir_int(k, DT_I64, t->sums + n), one = tir_int(k, DT_I64, 1);
			k->buffer.at[buffer].shared = t->sums + n;
			(n ? t->start : t->sum)[c] = tir_view(k, buffer, 1, &extent, &one);
		}
}

/* Where part p of each thread's warp comes. */
static ValId
place_of(const ReductionTile *t, unsigned p, ValId warp)
{
	TirKernel *k = t->l->tir;
	unsigned warps = t->sums / t->parts;
	ValId at = tir_binary(k, OP_ADD, warp, tir_int(k, DT_I64, p * warps));
	return t->reverse ? tir_binary(k, OP_SUB, tir_int(k, DT_I64, t->sums - 1), at) : at;
}

static ValId
count_up(TirKernel *k, unsigned lanes)
{
	return tir_emit(k, OP_IOTA, tir_vector(DT_I64, lanes), 0, NULL, 0);
}

static void
put(const ReductionTile *t, const ValId *view, const Reduction *f, ValId at, ValId mask)
{
	ValId v[REDUCTION_MAX_CARRIED];
	reduction_pack(f, v);
	for (unsigned c = 0; c < t->carried; c++)
		tir_store(t->l->tir, view[c], v[c], &at, mask, 0);
}

static Reduction
get(const ReductionTile *t, const ValId *view, ValId at, ValId mask, unsigned lanes)
{
	ValId v[REDUCTION_MAX_CARRIED];
	Reduction f = t->units;
	for (unsigned c = 0; c < t->carried; c++)
		v[c] = tir_load(t->l->tir, view[c], &at, mask, 0, lanes);
	reduction_unpack(&f, v);
	return f;
}

/* The sums from `at` on where there are so many, each with those before it among these: what they have is the last one. */
static Reduction
take_sums(ReductionTile *t, Reduction *sum, unsigned n, ValId at, ValId there, unsigned threads)
{
	TirKernel *k = t->l->tir;
	ValId had[REDUCTION_MAX_CARRIED], none[REDUCTION_MAX_CARRIED];
	reduction_pack(&t->units, none);
	for (unsigned s = 0; s < n; s++) {
		sum[s] = get(t, t->sum, s ? tir_binary(k, OP_ADD, at, tir_int(k, DT_I64, s)) : at, there, threads);
		reduction_pack(&sum[s], had);
		for (unsigned c = 0; there && c < t->carried; c++)
			had[c] = tir_select(k, there, had[c], none[c]);
		reduction_unpack(&sum[s], had);
		if (s)
			reduction_merge(t->l, &sum[s], &sum[s - 1]);
	}
	return sum[n - 1];
}

/* What each part of each warp begins with, of the sums; every warp adds them up, a thread as many as there are for it. */
static void
find_starts(ReductionTile *t, const Reduction *unit)
{
	TirKernel *k = t->l->tir;
	Prefix x = prefix_of(t, false);
	unsigned n = t->sums > TIR_WARP ? t->sums / TIR_WARP : 1, holders = t->sums / n;
	ValId iota = count_up(k, x.threads), lane = tir_binary(k, OP_IMOD, iota, tir_int(k, DT_I64, TIR_WARP));
	ValId at = n > 1 ? tir_binary(k, OP_MUL, lane, tir_int(k, DT_I64, n)) : lane;
	ValId there = holders < TIR_WARP ? tir_binary(k, OP_LT, lane, tir_int(k, DT_I64, holders)) : 0;
	Reduction sum[REDUCTION_TILE_SUMS], all = take_sums(t, sum, n, at, there, x.threads);
	for (unsigned by = 1; by < holders; by *= 2) {
		Reduction before = from_before(&x, &all, x.unit, by);
		reduction_merge(t->l, &all, &before);
	}
	put(t, t->start, unit, tir_int(k, DT_I64, 0), 0);
	ValId first_warp = tir_binary(k, OP_LT, iota, tir_int(k, DT_I64, holders));
	for (unsigned s = 0; s < n; s++) {
		Reduction start = all;
		if (s + 1 < n) {
			Reduction before = from_before(&x, &all, x.unit, 1);
			start = sum[s];
			reduction_merge(t->l, &start, &before);
		}
		put(t, t->start, &start, tir_binary(k, OP_ADD, at, tir_int(k, DT_I64, s + 1)), first_warp);
	}
	t->all = get(t, t->start, tir_int(k, DT_I64, t->sums), 0, 0);
}

void
reduction_tile_begin(ReductionTile *t, const Reduction *f, const Reduction *unit, bool reverse)
{
	Point *l = t->l;
	TirKernel *to = l->tir;
	unsigned threads = to->threads, lanes = threads * t->group;
	Prefix x = prefix_of(t, reverse);
	ValId iota = count_up(to, threads), size = tir_int(to, DT_I64, TIR_WARP), warp = tir_binary(to, OP_IDIV, iota, size);
	ValId ends = tir_binary(to, OP_EQ, tir_binary(to, OP_IMOD, iota, size), tir_int(to, DT_I64, reverse ? 0 : TIR_WARP - 1));
	t->reverse = reverse;
	t->units = in_threads(&x, unit);
	for (unsigned p = 0; p < t->parts; p++) {
		Reduction part = t->parts > 1 ? each(&x, OP_LANE, (int64_t)p * lanes, lanes, f, NULL) : *f, *own = &t->own[p * t->group];
		take_apart(&x, &part, lanes, own, t->group, 1);
		Reduction last = join_own(&x, own, t->group);
		join_before(&x, &last);
		t->before[p] = from_before(&x, &last, &t->units, 1);
		put(t, t->sum, &last, place_of(t, p, warp), ends);
	}
	find_starts(t, unit);
}

Reduction
reduction_tile_end(ReductionTile *t, const Reduction *before)
{
	Point *l = t->l;
	TirKernel *k = l->tir;
	Prefix x = prefix_of(t, t->reverse);
	Reduction part[REDUCTION_TILE_LANES], first = in_threads(&x, before);
	ValId warp = tir_binary(k, OP_IDIV, count_up(k, x.threads), tir_int(k, DT_I64, TIR_WARP));
	for (unsigned p = 0; p < t->parts; p++) {
		Reduction begin = get(t, t->start, place_of(t, p, warp), 0, x.threads);
		reduction_merge(l, &begin, &first);
		reduction_merge(l, &t->before[p], &begin);
		begin_own(&x, &t->own[p * t->group], t->group, &t->before[p]);
		part[p] = put_together(&x, &t->own[p * t->group], x.threads, t->group, 1);
	}
	return weave_parts(&x, part, t->parts, x.threads * t->group);
}
