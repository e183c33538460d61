/* spread: gives each thread of a block its lanes.
 *
 * in     a kernel of form BLOCK (ir/tir.h)
 * out    the same, of form SPREAD: scalars, groups of lanes that are loaded and stored at once, shuffles, and
 *        shared buffers for what goes from warp to warp; another kernel is left as it is
 * fp     exact
 * tests  tests/tile/spread_test.c; random kernels before and after
 *
 * Which lanes a thread has follows from the number n of a vector's lanes alone, so that operands always lie
 * side by side. With T threads in W warps in C blocks (1, or those of a cluster), and groups of V lanes, threads and
 * warps counted through all blocks:
 *
 *     n >= T       register r has lane  r / V * T * V + thread * V + r mod V   (V at most n / T)
 *     W <= n < T   the one register has  warp * n / W + thread mod (n / W): several threads have the same
 *     C <= n < W   register r has  block * n / C + r
 *     n < C        every thread has all
 *
 * Rows of columns are spread as spread_columns.c says, where they are fewer than lanes in groups of all threads; groups of lanes
 * that begin anywhere are accessed as spread_turned.c says.
 *
 * tir_halves halves in that order, so that a fold ends in registers, then goes by shuffles through a warp, by memory
 * from warp to warp, and then from block to block.
 *
 * What several threads write and others read is parted by barriers: one stands before an access to memory
 * that another thread may have accessed otherwise since the last; what all blocks reach needs one of the cluster, but for
 * elements that each block hands to each, which are waited for themselves. A loop whose body begins with what its end must
 * not meet has one at its end, that over tasks only where another one comes, and so has the kernel, whose body is run for
 * task after task. */
#include "passes/tile/spread.h"

#include "ir/tir_inside.h"
#include "passes/tile/cleanup.h"
#include "passes/tile/tile.h"

static Regs
one_register(Spread *s, ValId v)
{
	Regs r = spread_regs(s, 1);
	r.reg[0] = v;
	return r;
}

/* Whether registers r and r - by of all operands are the same. */
static bool
as_before(const Spread *s, ValId v, unsigned r, unsigned by)
{
	const TirInst *p = tir_inst(s->from, v);
	for (unsigned n = 0; n < p->narg; n++) {
		const Regs *a = &s->map[tir_arg(s->from, v, n)];
		if (a->n > 1 && a->reg[r] != a->reg[r - by])
			return false;
	}
	return true;
}

static bool
halves_commute(const Spread *s, ValId a, ValId b)
{
	const TirInst *x = tir_inst(s->from, a), *y = tir_inst(s->from, b);
	bool lanes = x->op == OP_LANE || x->op == OP_HALF;
	return lanes && y->op == x->op && x->type.lanes == y->type.lanes && x->imm.i != y->imm.i &&
	       tir_arg(s->from, a, 0) == tir_arg(s->from, b, 0);
}

/* An operation of two halves in which they may change places, where they are what a thread and its partner
 * have: no need to know which is which. */
static bool
shuffled(Spread *s, ValId v, Regs *out)
{
	const TirInst *p = tir_inst(s->from, v);
	if (!(op_info[p->op].flags & F_COMM) || !halves_commute(s, tir_arg(s->from, v, 0), tir_arg(s->from, v, 1)))
		return false;
	ValId whole = tir_arg(s->from, tir_arg(s->from, v, 0), 0);
	unsigned n = tir_inst(s->from, whole)->type.lanes;
	if (n > s->threads || n <= s->warps || s->columns)
		return false;
	ValId own = s->map[whole].reg[0];
	ValId other = tir_emit(s->to, OP_SHUFFLE, tir_inst(s->to, own)->type, n / s->warps / 2, &own, 1);
	*out = one_register(s, tir_binary(s->to, (Op)p->op, own, other));
	return true;
}

static Regs
by_register(Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	Regs out = spread_regs(s, p->type.lanes ? spread_registers(s, p->type.lanes) : 1);
	ValId arg[3];
	if (p->narg == 2 && shuffled(s, v, &out))
		return out;
	for (unsigned r = 0; r < out.n; r++) {
		unsigned group = s->from->group, by = r && as_before(s, v, r, 1) ? 1 : r >= group && as_before(s, v, r, group) ? group : 0;
		if (by) { /* what groups have in common too, as rows have of columns */
			out.reg[r] = out.reg[r - by];
			continue;
		}
		for (unsigned n = 0; n < p->narg; n++) {
			const Regs *a = &s->map[tir_arg(s->from, v, n)];
			arg[n] = a->reg[a->n > 1 ? r : 0];
		}
		out.reg[r] = tir_emit(s->to, (Op)p->op, tir_scalar((DType)p->type.dtype), p->imm.i, arg, p->narg);
	}
	return out;
}

static Regs
spread_iota(Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	Regs out = spread_regs(s, spread_registers(s, p->type.lanes));
	unsigned step = (unsigned)p->imm.i, group = spread_group(s, p->type.lanes);
	for (unsigned r = 0; r < out.n; r++)
		out.reg[r] = step > 1 && step <= group && r % step ? out.reg[r - 1]
		                                                    : spread_number(s, p->type.lanes, r, step, (DType)p->type.dtype);
	return out;
}

/* A constant, or a scalar, in all lanes. */
static Regs
everywhere(Spread *s, ValId v, ValId same)
{
	Regs out = spread_regs(s, spread_registers(s, tir_inst(s->from, v)->type.lanes));
	for (unsigned r = 0; r < out.n; r++)
		out.reg[r] = same;
	return out;
}

static void
spread_fault(Spread *s, ValId v)
{
	const Regs *id = &s->map[tir_arg(s->from, v, 0)];
	for (unsigned r = 0; r < id->n; r++)
		tir_fault(s->to, id->reg[r]);
}

/* --- structure --- */

/* How many registers the first n values that FOR or IF v hands on have. */
static unsigned
registers_before(const Spread *s, ValId v, unsigned n)
{
	unsigned count = 0;
	for (unsigned i = 0; i < n; i++) {
		unsigned lanes = tir_inst(s->from, tir_result_model(s->from, v, i))->type.lanes;
		count += lanes ? spread_registers(s, lanes) : 1;
	}
	return count;
}

/* v with all its operands' registers in a row. */
static ValId
flattened(Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	VEC(ValId) arg = {0};
	for (unsigned n = 0; n < p->narg; n++) {
		const Regs *a = &s->map[tir_arg(s->from, v, n)];
		for (unsigned r = 0; r < a->n; r++)
			vec_push(s->arena, &arg, a->reg[r]);
	}
	return tir_emit(s->to, (Op)p->op, p->type, p->imm.i, arg.at, arg.n);
}

/* A block argument, or a result of `owner`: its registers, each one such. */
static Regs
handed_on(Spread *s, ValId v, ValId owner)
{
	const TirInst *p = tir_inst(s->from, v);
	bool argument = p->op == OP_BLOCKARG;
	Regs out = spread_regs(s, p->type.lanes ? spread_registers(s, p->type.lanes) : 1);
	unsigned first = (unsigned)p->imm.i;
	if (!argument || first)
		first = argument ? 1 + registers_before(s, owner, first - 1) : registers_before(s, owner, first);
	ValId to = s->map[owner].reg[0];
	for (unsigned r = 0; r < out.n; r++)
		out.reg[r] = tir_emit(s->to, (Op)p->op, tir_scalar((DType)p->type.dtype), first + r, &to, argument ? 0 : 1);
	return out;
}

static Regs
join_scalars(Spread *s, ValId v)
{
	Regs all = spread_regs(s, tir_inst(s->from, v)->narg);
	for (unsigned n = 0; n < all.n; n++)
		all.reg[n] = s->map[tir_arg(s->from, v, n)].reg[0];
	return spread_join(s, &all);
}

static Regs
spread_inst(Spread *s, ValId v, ValId owner)
{
	const TirInst *p = tir_inst(s->from, v);
	switch ((Op)p->op) {
	case OP_FOR: case OP_IF: {
		if (p->op == OP_FOR)
			spread_before_loop(s, v);
		ValId to = flattened(s, v);
		tir_add_regions(s->to, to, p->nregion);
		return one_register(s, to);
	}
	case OP_YIELD: return one_register(s, flattened(s, v));
	case OP_BLOCKARG: return handed_on(s, v, owner);
	case OP_RESULT: return handed_on(s, v, tir_arg(s->from, v, 0));
	case OP_IOTA: return spread_iota(s, v);
	case OP_SPLAT: return everywhere(s, v, s->map[tir_arg(s->from, v, 0)].reg[0]);
	case OP_HALF: return spread_half(s, tir_arg(s->from, v, 0), (unsigned)p->imm.i / 2, p->imm.i & 1);
	case OP_LANE: return spread_lane(s, tir_arg(s->from, v, 0), (uint64_t)p->imm.i, p->type.lanes);
	case OP_SLIDE:
		return spread_slide(s, tir_arg(s->from, v, 0), tir_arg(s->from, v, 1), TIR_SLIDE_BY(p->imm.i), TIR_SLIDE_SEGMENT(p->imm.i));
	case OP_WEAVE: return spread_weave(s, tir_arg(s->from, v, 0), tir_arg(s->from, v, 1), (unsigned)p->imm.i / 2);
	case OP_JOIN: return join_scalars(s, v);
	case OP_LOAD: return spread_load(s, v);
	case OP_STORE: spread_store(s, v); return (Regs){0};
	case OP_FAULT: spread_fault(s, v); return (Regs){0};
	case OP_FETCH: return (Regs){0}; /* a GPU has other threads to run meanwhile */
	case OP_CONST:
		if (p->type.lanes)
			return everywhere(s, v, tir_emit(s->to, OP_CONST, tir_scalar((DType)p->type.dtype), p->imm.i, NULL, 0));
		return by_register(s, v);
	case OP_BUFFER: case OP_VIEW: return one_register(s, flattened(s, v));
	case OP_DOT: case OP_THREAD: case OP_RANK: case OP_SHUFFLE: case OP_WARP_MMA: case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT: case OP_BARRIER:
	case OP_TASK_STEP: case OP_ACQUIRE: case OP_COPY: case OP_WAIT: case OP_RELEASE:
	case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_TURN: case OP_PIECE: case OP_HELD: case OP_TAKE: case OP_ROLES:
		bug(s->arena, "spread: '%s' in a kernel of blocks", op_info[p->op].text);
	default: return by_register(s, v);
	}
}

/* Whether v is computed of what has not been handed over, and waits with it. Before anything else that wants it, and where regions
 * begin and end, it is, and all that waits is made. */
static bool
waits(Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	bool wants = false;
	for (unsigned n = 0; n < p->narg; n++)
		wants |= s->late[tir_arg(s->from, v, n)];
	if (wants && op_info[p->op].cls == CLASS_MAP && cleanup_is_pure((Op)p->op) && p->op != OP_HALF && p->op != OP_LANE && p->op != OP_SLIDE &&
	    p->op != OP_WEAVE && p->op != OP_JOIN && p->op != OP_SPLAT) {
		vec_push(s->arena, &s->computed, v);
		return s->late[v] = true;
	}
	if (!wants && !p->nregion && p->op != OP_YIELD)
		return false;
	spread_hand_loaded(s);
	for (uint32_t n = 0; n < s->computed.n; n++) {
		s->late[s->computed.at[n]] = false;
		s->map[s->computed.at[n]] = by_register(s, s->computed.at[n]);
	}
	s->computed.n = 0;
	return false;
}

static bool
loops(const Spread *s, ValId v)
{
	return tir_inst(s->from, v)->op == OP_FOR;
}

/* Whether it is the loop over the tasks of a call. */
static bool
of_tasks(const Spread *s, ValId v)
{
	return tir_inst(s->from, tir_arg(s->from, v, 0))->op == OP_TASK_LO && tir_inst(s->from, tir_arg(s->from, v, 1))->op == OP_TASK_HI;
}

/* Whether that loop, which is open, has another turn. */
static ValId
more_tasks(Spread *s, ValId v)
{
	ValId to = s->map[v].reg[0], index = s->to->region.at[tir_inst(s->to, to)->region].inst.at[0];
	ValId next = tir_binary(s->to, OP_ADD, index, tir_arg(s->to, to, 2));
	return tir_binary(s->to, OP_LT, next, tir_arg(s->to, to, 1));
}

static void
spread_kernel(Spread *s)
{
	Walk w;
	walk_init(&w, s->from, s->arena);
	spread_enter(s);
	for (WalkEvent e; (e = walk_next(&w)) != WALK_END;) {
		if (e == WALK_OPEN) {
			tir_enter(s->to, tir_inst(s->to, s->map[w.value].reg[0])->region + w.nth);
			spread_enter(s);
		} else if (e == WALK_CLOSE) {
			tir_leave(s->to);
			spread_leave(s);
		} else {
			ValId owner = w.frame.at[w.frame.n - 1].owner;
			if (waits(s, w.value))
				continue;
			if (tir_inst(s->from, w.value)->op == OP_YIELD && loops(s, owner))
				spread_loop_ends(s, owner, of_tasks(s, owner) ? more_tasks(s, owner) : 0);
			s->map[w.value] = spread_inst(s, w.value, owner);
		}
	}
	spread_loop_ends(s, 0, 0);
}

TirKernel *
tile_spread(const TirKernel *k, Arena *a)
{
	if (k->form != TIR_BLOCK)
		return (TirKernel *)(uintptr_t)k;
	Spread s = {.from = k, .to = tir_new(a, k->names, k->name), .arena = a, .blocks = tir_blocks(k),
	            .threads = tir_all_threads(k), .warps = tir_all_threads(k) / TIR_WARP, .nmemory = k->buffer.n + DT_COUNT + EXCHANGES + 1};
	s.columns = k->columns;
	s.to->form = TIR_SPREAD;
	s.to->threads = k->threads;
	s.to->cluster = k->cluster;
	s.to->resident = k->resident;
	s.to->group = k->group;
	s.anew = k->tight;
	s.to->sets = k->sets;
	s.map = ARENA_ARRAY(a, Regs, k->inst.n);
	s.late = ARENA_ARRAY(a, bool, k->inst.n);
	s.whole = ARENA_ARRAY(a, Regs, k->inst.n);
	for (unsigned n = 0; n < EXCHANGES; n++)
		s.exchange[n] = -1;
	for (unsigned t = 0; t < DT_COUNT; t++)
		s.of_warps[t] = -1;
	for (uint32_t i = 0; i < k->buffer.n; i++)
		vec_push(a, &s.to->buffer, k->buffer.at[i]);
	for (uint32_t i = 0; i < k->scalar.n; i++)
		vec_push(a, &s.to->scalar, k->scalar.at[i]);
	spread_kernel(&s);
	return spread_bring_next(s.to, k->tight, a);
}
