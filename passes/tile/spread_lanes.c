/* spread_lanes.c: which lanes a thread has, and what takes lanes apart (spread.c). */
#include "passes/tile/spread.h"

unsigned
spread_registers(const Spread *s, unsigned lanes)
{
	if (lanes >= s->threads)
		return lanes / s->threads;
	if (s->columns)
		return spread_columns_registers(s, lanes);
	return lanes >= s->warps ? 1 : lanes >= s->blocks ? lanes / s->blocks : lanes;
}

unsigned
spread_group(const Spread *s, unsigned lanes)
{
	unsigned most = s->columns && lanes < s->threads * s->from->group ? 1 : lanes / s->threads;
	return most > s->from->group ? s->from->group : most ? most : 1;
}

static ValId
thread_mod(Spread *s, int64_t n)
{
	return tir_binary(s->to, OP_IMOD, spread_thread(s), spread_int(s, n));
}

static ValId
warp_of(Spread *s, ValId thread)
{
	return tir_binary(s->to, OP_IDIV, thread, spread_int(s, TIR_WARP));
}

/* The lane of register 0. */
static ValId
first_number(Spread *s, unsigned lanes)
{
	if (lanes >= s->threads)
		return tir_binary(s->to, OP_MUL, spread_place(s), spread_int(s, spread_group(s, lanes)));
	if (lanes < s->blocks || (lanes < s->warps && s->blocks == 1))
		return spread_int(s, 0);
	if (lanes < s->warps)
		return tir_binary(s->to, OP_MUL, spread_rank(s), spread_int(s, lanes / s->blocks));
	unsigned each = lanes / s->warps;
	ValId before = tir_binary(s->to, OP_MUL, warp_of(s, spread_place(s)), spread_int(s, each));
	return tir_binary(s->to, OP_ADD, before, thread_mod(s, each));
}

ValId
spread_number(Spread *s, unsigned lanes, unsigned r, unsigned step, DType t)
{
	unsigned group = spread_group(s, lanes), more = r;
	if (lanes >= s->threads)
		more = r / group * s->threads * group + r % group;
	if (step > 1 && step <= group)
		more -= more % step;
	ValId v = tir_cast(s->to, t, first_number(s, lanes));
	v = tir_binary(s->to, OP_ADD, v, tir_int(s->to, t, more));
	if (step <= 1 || step <= group)
		return v;
	return tir_binary(s->to, OP_SUB, v, tir_binary(s->to, OP_IMOD, v, tir_int(s->to, t, step)));
}

ValId
spread_holds(Spread *s, unsigned lanes)
{
	if (lanes >= s->threads)
		return 0;
	if (lanes < s->warps || lanes == 0) {
		ValId thread = lanes < s->blocks ? spread_place(s) : spread_thread(s);
		return tir_binary(s->to, OP_EQ, thread, spread_int(s, 0));
	}
	return tir_binary(s->to, OP_LT, thread_mod(s, TIR_WARP), spread_int(s, lanes / s->warps));
}

/* Of a vector with one lane a warp, those of the block, in each of its threads. */
static Regs
gather_warps(Spread *s, ValId v)
{
	if (s->whole[v].n)
		return s->whole[v];
	DType t = (DType)tir_inst(s->from, v)->type.dtype;
	unsigned n = s->warps / s->blocks, buffer = spread_exchange(s, t, n);
	ValId first = tir_binary(s->to, OP_EQ, thread_mod(s, TIR_WARP), spread_int(s, 0));
	spread_put(s, buffer, 0, warp_of(s, spread_thread(s)), s->map[v].reg[0], first);
	return s->whole[v] = spread_get_row(s, buffer, spread_int(s, 0), n);
}

/* All lanes of a vector with one lane a block, in every thread: a block has a thread for each block that hands over
 * its lane. */
static Regs
gather_blocks(Spread *s, ValId v)
{
	if (s->whole[v].n)
		return s->whole[v];
	Regs all = spread_regs(s, s->blocks);
	unsigned buffer = spread_cluster_exchange(s, (DType)tir_inst(s->from, v)->type.dtype, 1, true);
	ValId own = spread_rank(s), hands = tir_binary(s->to, OP_LT, spread_thread(s), spread_int(s, s->blocks));
	spread_hand_over(s, buffer, thread_mod(s, s->blocks), own, s->map[v].reg[0], hands);
	for (unsigned r = 0; r < all.n; r++)
		all.reg[r] = spread_get(s, buffer, own, spread_int(s, r));
	return s->whole[v] = all;
}

/* Every other register, or every other so many. */
static Regs
half_of_registers(Spread *s, Regs all, unsigned bit, unsigned side)
{
	Regs half = spread_regs(s, all.n / 2);
	unsigned low = (1u << bit) - 1;
	for (unsigned r = 0; r < half.n; r++)
		half.reg[r] = all.reg[(r & ~low) << 1 | side << bit | (r & low)];
	return half;
}

/* What is held by the thread with this bit of its number as `side`, and by the other one. */
static ValId
across_threads(Spread *s, ValId own, unsigned step, unsigned side)
{
	DType t = (DType)tir_inst(s->to, own)->type.dtype;
	ValId other = tir_emit(s->to, OP_SHUFFLE, tir_scalar(t), step, &own, 1);
	ValId upper = tir_binary(s->to, OP_LE, spread_int(s, step), thread_mod(s, 2 * (int64_t)step));
	return side ? tir_select(s->to, upper, own, other) : tir_select(s->to, upper, other, own);
}

Regs
spread_half(Spread *s, ValId v, unsigned bit, unsigned side)
{
	unsigned n = tir_inst(s->from, v)->type.lanes, group = spread_group(s, n), step = 1u << bit;
	Regs all = s->map[v];
	if (s->columns && n <= s->from->group * s->threads)
		return spread_columns_half(s, v, side);
	if (n <= s->blocks)
		return half_of_registers(s, n == s->blocks ? gather_blocks(s, v) : all, bit, side);
	if (n <= s->warps)
		return half_of_registers(s, n == s->warps ? gather_warps(s, v) : all, bit, side);
	if (step >= group * s->threads && n > s->threads)
		return half_of_registers(s, all, bit - (unsigned)__builtin_ctz(s->threads), side);
	if (step < group && n <= s->threads * group)
		return half_of_registers(s, all, bit, side);
	if (n > s->threads || 2 * step * s->warps != n)
		bug(s->arena, "spread: bit %u of %u lanes", bit, n);
	Regs one = spread_regs(s, 1);
	one.reg[0] = across_threads(s, all.reg[0], step, side);
	return one;
}

/* What `own` is in the thread with this number, in all threads. */
static ValId
hand_out(Spread *s, ValId own, uint64_t holder)
{
	DType t = (DType)tir_inst(s->to, own)->type.dtype;
	ValId zero = spread_int(s, 0), holds = tir_binary(s->to, OP_EQ, spread_place(s), spread_int(s, (int64_t)holder));
	if (s->blocks == 1) {
		unsigned buffer = spread_exchange(s, t, 1);
		spread_put(s, buffer, 0, zero, own, holds);
		return spread_get(s, buffer, 0, zero);
	}
	unsigned buffer = spread_cluster_exchange(s, t, 1, false);
	for (unsigned b = 0; b < s->blocks; b++)
		spread_put(s, buffer, spread_int(s, b), zero, own, holds);
	return spread_get(s, buffer, spread_rank(s), zero);
}

/* Lane k in all threads. */
static ValId
broadcast(Spread *s, ValId v, uint64_t k)
{
	unsigned n = tir_inst(s->from, v)->type.lanes, group = spread_group(s, n);
	Regs all = s->map[v];
	if (n < s->blocks || (n < s->warps && s->blocks == 1))
		return all.reg[k];
	if (n < s->warps)
		return hand_out(s, all.reg[k % (n / s->blocks)], k / (n / s->blocks) * (s->threads / s->blocks));
	uint64_t place = k % ((uint64_t)s->threads * group), r = k / ((uint64_t)s->threads * group) * group + place % group;
	if (n < s->threads)
		return hand_out(s, all.reg[0], k / (n / s->warps) * TIR_WARP + k % (n / s->warps));
	return hand_out(s, all.reg[r], place / group);
}

Regs
spread_lane(Spread *s, ValId v, uint64_t first, unsigned n)
{
	unsigned have = tir_inst(s->from, v)->type.lanes;
	if (have == 2 * (n ? n : 1) && (first == 0 || first == have / 2))
		return spread_half(s, v, (unsigned)__builtin_ctz(have) - 1, first > 0);
	Regs some = spread_regs(s, n ? n / s->threads : 1);
	unsigned all = s->threads * spread_group(s, have), group = spread_group(s, have);
	if (n && (n % all || first % all))
		bug(s->arena, "spread: lanes %u to %u of %u", (unsigned)first, (unsigned)first + n, have);
	if (!n)
		some.reg[0] = broadcast(s, v, first);
	for (unsigned r = 0; n && r < some.n; r++)
		some.reg[r] = s->map[v].reg[first / all * group + r];
	return some;
}

/* --- what is put together --- */

/* Whether all lanes of v are one scalar. */
static bool
is_everywhere(const Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	return p->op == OP_CONST || p->op == OP_SPLAT;
}

static ValId
neighbour(Spread *s, ValId v, ValId own, int64_t which)
{
	DType t = (DType)tir_inst(s->to, own)->type.dtype;
	return is_everywhere(s, v) ? own : tir_emit(s->to, OP_SHUFFLE, tir_scalar(t), which, &own, 1);
}

/* All that a thread loads is asked for before its warp joins the first of it. Of elements that are widened, which then have
 * more registers than they came in, the assembler would put joins between loads, and those behind them would wait for
 * memory once more; of others it brings nearly all at once. Where the threads of a warp run together, the barrier is no
 * instruction. */
static void
bring_all(Spread *s)
{
	if (s->flow->brings)
		tir_emit(s->to, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
	s->flow->brings = false;
}

/* A segment is a warp, with one lane a thread. */
static Regs
slide_in_warp(Spread *s, ValId a, ValId b, unsigned by)
{
	Regs slid = spread_regs(s, 1);
	bring_all(s);
	ValId low = tir_binary(s->to, OP_LT, thread_mod(s, TIR_WARP), spread_int(s, TIR_WARP - by));
	ValId from_a = neighbour(s, a, s->map[a].reg[0], TIR_AFTER(by));
	ValId from_b = neighbour(s, b, s->map[b].reg[0], TIR_BEFORE(TIR_WARP - by));
	slid.reg[0] = tir_select(s->to, low, from_a, from_b);
	return slid;
}

/* Through shared memory: all of a, then all of b, read from `by` on; of segments, what is not in a's is in b's. */
Regs
spread_slide(Spread *s, ValId a, ValId b, unsigned by, unsigned segment)
{
	unsigned n = tir_inst(s->from, a)->type.lanes;
	DType t = (DType)tir_inst(s->from, a)->type.dtype;
	if (segment == TIR_WARP && n == s->threads)
		return slide_in_warp(s, a, b, by);
	Regs slid = spread_regs(s, s->map[a].n);
	unsigned buffer = spread_exchange(s, t, 2 * n);
	ValId holds = spread_holds(s, n);
	for (unsigned r = 0; r < slid.n; r++) {
		ValId at = spread_number(s, n, r, 0, DT_I64);
		spread_put(s, buffer, 0, at, s->map[a].reg[r], holds);
		spread_put(s, buffer, 0, tir_binary(s->to, OP_ADD, at, spread_int(s, n)), s->map[b].reg[r], holds);
	}
	for (unsigned r = 0; r < slid.n; r++) {
		ValId lane = spread_number(s, n, r, 0, DT_I64), from = tir_binary(s->to, OP_ADD, lane, spread_int(s, by));
		if (segment) {
			ValId in_b = tir_binary(s->to, OP_LE, spread_int(s, segment - by), tir_binary(s->to, OP_IMOD, lane, spread_int(s, segment)));
			from = tir_binary(s->to, OP_ADD, from, tir_select(s->to, in_b, spread_int(s, n - segment), spread_int(s, 0)));
		}
		slid.reg[r] = spread_get(s, buffer, 0, from);
	}
	return slid;
}

/* The one of this warp of as many registers as there are warps, which all threads have. */
static Regs
of_this_warp(Spread *s, Regs all)
{
	Regs one = spread_regs(s, 1);
	for (unsigned n = all.n; n > 1; n /= 2) {
		ValId rest = tir_binary(s->to, OP_IMOD, warp_of(s, spread_thread(s)), spread_int(s, n));
		ValId upper = tir_binary(s->to, OP_LE, spread_int(s, n / 2), rest);
		for (unsigned r = 0; r < n / 2; r++)
			all.reg[r] = tir_select(s->to, upper, all.reg[n / 2 + r], all.reg[r]);
	}
	one.reg[0] = all.reg[0];
	return one;
}

/* The registers of a and b in turns of 2^bit. */
static Regs
woven(Spread *s, Regs a, Regs b, unsigned bit)
{
	Regs both = spread_regs(s, 2 * a.n);
	unsigned low = (1u << bit) - 1;
	for (unsigned r = 0; r < both.n; r++)
		both.reg[r] = (r >> bit & 1 ? b : a).reg[(r >> 1 & ~low) | (r & low)];
	return both;
}

Regs
spread_weave(Spread *s, ValId a, ValId b, unsigned bit)
{
	unsigned n = 2u * tir_inst(s->from, a)->type.lanes, group = spread_group(s, n), step = 1u << bit;
	Regs x = s->map[a], y = s->map[b], one = spread_regs(s, 1);
	if (s->columns)
		return spread_columns_weave(s, a, n);
	if (n <= s->warps && s->warps > 1)
		return n < s->warps ? woven(s, x, y, bit) : of_this_warp(s, woven(s, x, y, bit));
	if (n > s->threads && step >= group * s->threads)
		return woven(s, x, y, bit - (unsigned)__builtin_ctz(s->threads));
	if (n > s->threads && step < group && n <= s->threads * group)
		return woven(s, x, y, bit);
	if (n > s->threads || 2 * step * s->warps != n)
		bug(s->arena, "spread: bit %u of %u woven lanes", bit, n);
	ValId upper = tir_binary(s->to, OP_LE, spread_int(s, step), thread_mod(s, 2 * (int64_t)step));
	one.reg[0] = x.reg[0] == y.reg[0] ? x.reg[0] : tir_select(s->to, upper, y.reg[0], x.reg[0]);
	return one;
}

Regs
spread_join(Spread *s, const Regs *scalars)
{
	if (scalars->n > s->warps || s->warps == 1)
		bug(s->arena, "spread: %u scalars joined", scalars->n);
	return scalars->n < s->warps ? *scalars : of_this_warp(s, *scalars);
}
