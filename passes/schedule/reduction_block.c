/* reduction_block.c: prefixes of a fold whose lanes are a block's (ir/tir.h): each thread folds its own lanes, a warp
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

/* What each warp begins with, in all of its threads, where `total` is what its threads have, each with those before
 * it; *carry is what the block begins with, and then what it ends with. */
static Reduction
across_warps(const Prefix *x, const Reduction *total, Reduction *carry)
{
	Point *l = x->l;
	unsigned warps = x->threads / TIR_WARP;
	const Reduction begin = *carry;
	Reduction last = *total, sum[TIR_MAX_THREADS / TIR_WARP], start[TIR_MAX_THREADS / TIR_WARP];
	for (unsigned bit = WARP_BITS; bit-- > 0;) {
		unsigned lanes = warps << bit;
		last = each(x, lanes > 1 ? OP_HALF : OP_LANE, lanes > 1 ? 2 * bit + !x->reverse : !x->reverse, lanes, &last, NULL);
	}
	take_apart(x, &last, warps, sum, warps, 1);
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
	for (unsigned k = 1; k < group; k++) {
		unsigned v = x->reverse ? group - 1 - k : k;
		reduction_merge(l, &own[v], &own[x->reverse ? v + 1 : v - 1]);
	}
	Reduction total = own[x->reverse ? 0 : group - 1];
	for (unsigned by = 1; by < TIR_WARP; by *= 2) {
		Reduction before = from_before(x, &total, &unit, by);
		reduction_merge(l, &total, &before);
	}
	Reduction begin = across_warps(x, &total, carry), before = from_before(x, &total, &unit, 1);
	reduction_merge(l, &begin, &before);
	for (unsigned v = 0; v < group; v++)
		reduction_merge(l, &own[v], &begin);
	return put_together(x, own, x->threads, group, 1);
}

void
reduction_prefix_block(Point *l, Reduction *f, const Reduction *unit, Reduction *carry, bool reverse)
{
	unsigned threads = l->tir->threads, each_thread = l->lanes / threads;
	unsigned group = each_thread < l->tir->group ? each_thread : l->tir->group, parts = each_thread / group;
	unsigned lanes = threads * group;
	Prefix x = {.l = l, .threads = threads, .reverse = reverse};
	Reduction units = *unit, part[TIR_MAX_LANES];
	ValId v[REDUCTION_MAX_CARRIED];
	unsigned n = reduction_pack(unit, v);
	for (unsigned k = 0; k < n; k++)
		v[k] = tir_emit(l->tir, OP_SPLAT, tir_vector((DType)tir_inst(l->tir, v[k])->type.dtype, threads), 0, &v[k], 1);
	reduction_unpack(&units, v);
	x.unit = &units;
	for (unsigned k = 0; k < parts; k++) {
		unsigned p = reverse ? parts - 1 - k : k;
		part[p] = parts > 1 ? each(&x, OP_LANE, (int64_t)p * lanes, lanes, f, NULL) : *f;
		part[p] = prefix_part(&x, &part[p], group, carry);
	}
	for (; parts > 1; parts /= 2, lanes *= 2)
		for (unsigned p = 0; p < parts / 2; p++)
			part[p] = each(&x, OP_WEAVE, 2 * (int64_t)__builtin_ctz(lanes), 2 * lanes, &part[2 * p], &part[2 * p + 1]);
	*f = part[0];
}
