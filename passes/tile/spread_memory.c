/* spread_memory.c: loads and stores by thread, shared buffers, and the barriers between them (spread.c). */
#include "passes/tile/spread.h"

#include <string.h>

#include "ir/bugs.h"

/* --- barriers --- */

static Accesses
no_accesses(Spread *s)
{
	return (Accesses){ARENA_ARRAY(s->arena, bool, s->nmemory), ARENA_ARRAY(s->arena, bool, s->nmemory),
	                  ARENA_ARRAY(s->arena, uint32_t, s->nmemory)};
}

static void
add_access(Accesses *to, unsigned m, bool reads, bool writes, uint32_t way)
{
	if (!reads && !writes)
		return;
	to->way[m] = (!to->read[m] && !to->written[m]) || to->way[m] == way ? way : 0;
	to->read[m] |= reads;
	to->written[m] |= writes;
}

static void
add_accesses(const Spread *s, Accesses *to, const Accesses *more)
{
	for (unsigned m = 0; m < s->nmemory; m++)
		add_access(to, m, more->read[m], more->written[m], more->way[m]);
}

/* Whether other blocks of the cluster reach memory m. */
static bool
is_wide(const Spread *s, unsigned m)
{
	return s->blocks > 1 && m < s->to->buffer.n && (!s->to->buffer.at[m].shared || s->to->buffer.at[m].wide);
}

static Reach
reach_of(const Spread *s, unsigned m)
{
	return !is_wide(s, m) ? REACH_BLOCK : s->to->buffer.at[m].shared ? REACH_HANDED : REACH_CLUSTER;
}

/* Whether each element of memory m was, and will be, the same thread's; `values` have the value that they had. */
static bool
same_thread(const Spread *s, const Accesses *first, const Accesses *then, unsigned m, ValId values)
{
	uint32_t way = first->way[m];
	if (BUG(way_of_each_turn))
		return way && way == then->way[m];
	return way && way == then->way[m] && s->way.at[way - 1].view < values && s->way.at[way - 1].index < values;
}

static bool
conflict(const Spread *s, const Accesses *first, const Accesses *then, bool wide, ValId values)
{
	for (unsigned m = 0; m < s->nmemory; m++)
		if (is_wide(s, m) == wide && !same_thread(s, first, then, m, values) &&
		    ((first->read[m] && then->written[m]) || (first->written[m] && then->read[m])))
			return true;
	return false;
}

/* Of the block, or of the cluster. */
static void
barrier(Spread *s, bool wide)
{
	Flow *f = s->flow;
	tir_emit(s->to, OP_BARRIER, (TirType){0}, wide, NULL, 0);
	s->anew += s->anew > 0;
	for (unsigned m = 0; m < s->nmemory; m++)
		if (wide || !is_wide(s, m))
			f->since.read[m] = f->since.written[m] = false;
	f->closed[REACH_BLOCK] = true;
	f->closed[REACH_CLUSTER] |= wide;
	f->closed[REACH_HANDED] |= wide;
}

void
spread_enter(Spread *s)
{
	Flow *f = ARENA_NEW(s->arena, Flow);
	*f = (Flow){.since = no_accesses(s), .exposed = no_accesses(s), .outer = s->flow};
	if (s->flow)
		add_accesses(s, &f->since, &s->flow->since);
	s->flow = f;
}

/* The barriers that accesses to come need, when values before this one are still the same. */
static void
barrier_for(Spread *s, const Accesses *then, ValId values)
{
	if (conflict(s, &s->flow->since, then, true, values))
		barrier(s, true);
	if (conflict(s, &s->flow->since, then, false, values))
		barrier(s, false);
}

static Accesses
copy_of(Spread *s, const Accesses *a)
{
	Accesses copy = no_accesses(s);
	add_accesses(s, &copy, a);
	return copy;
}

/* A barrier for another turn alone has not been met where the turns end. */
void
spread_loop_ends(Spread *s, ValId loop, ValId more)
{
	Flow *f = s->flow;
	const Flow before = *f;
	if (!more) {
		barrier_for(s, &f->exposed, loop);
		return;
	}
	if (!conflict(s, &f->since, &f->exposed, true, loop) && !conflict(s, &f->since, &f->exposed, false, loop))
		return;
	Accesses since = copy_of(s, &f->since);
	tir_if(s->to, more);
	barrier_for(s, &f->exposed, loop);
	tir_else(s->to, NULL, 0);
	tir_end_if(s->to, NULL, 0);
	*f = before;
	f->since = since;
}

void
spread_leave(Spread *s)
{
	Flow *f = s->flow;
	s->flow = f->outer;
	add_accesses(s, &s->flow->since, &f->since);
	for (unsigned m = 0; m < s->nmemory; m++)
		if (!s->flow->closed[reach_of(s, m)])
			add_access(&s->flow->exposed, m, f->exposed.read[m], f->exposed.written[m], f->exposed.way[m]);
}

/* The memory of a buffer, by number. */
static unsigned
memory_of(const Spread *s, unsigned buffer)
{
	while (s->to->buffer.at[buffer].same)
		buffer = s->to->buffer.at[buffer].same - 1;
	return buffer;
}

/* In the place of a memory of the block: it is read where wide buffers are, or waited for, written where elements are handed over. */
static unsigned
turns_of_handing(const Spread *s)
{
	return s->nmemory - 1;
}

/* What warps hand over with barriers of their own. */
static bool
is_of_warps(const Spread *s, unsigned buffer)
{
	return s->of_warps[s->to->buffer.at[buffer].dtype] == (int)buffer;
}

static void
note_access(Spread *s, unsigned buffer, bool writes, uint32_t way)
{
	unsigned m = memory_of(s, buffer);
	Flow *f = s->flow;
	if (s->to->buffer.at[m].posted || is_of_warps(s, m)) /* by another task, which no barrier waits for */
		return;
	bool own = way && f->since.way[m] == way;
	if ((writes ? f->since.read[m] : f->since.written[m]) && !own && !BUG(barrier_missing))
		barrier(s, is_wide(s, m));
	add_access(&f->since, m, !writes, writes, way);
	if (!f->closed[reach_of(s, m)])
		add_access(&f->exposed, m, !writes, writes, way);
	if (!writes && reach_of(s, m) == REACH_HANDED)
		add_access(&f->since, turns_of_handing(s), true, false, 0);
}

/* Of LOAD or STORE v of from; 0: in no such way. */
static uint32_t
way_of(Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	int along = TIR_LANE_AXIS(p->imm.i);
	unsigned first = p->op == OP_STORE ? 2 : 1, lanes = tir_inst(s->from, p->op == OP_STORE ? tir_arg(s->from, v, 1) : v)->type.lanes;
	if (along < 0 || lanes < s->threads)
		return 0;
	Way w = {tir_arg(s->from, v, 0), tir_arg(s->from, v, first + (unsigned)along), lanes, along, spread_turns(s, v)};
	for (uint32_t n = 0; n < s->way.n; n++)
		if (s->way.at[n].view == w.view && s->way.at[n].index == w.index && s->way.at[n].lanes == lanes && s->way.at[n].along == along &&
		    s->way.at[n].turned == w.turned)
			return n + 1;
	vec_push(s->arena, &s->way, w);
	return s->way.n;
}

static void
add_region(Spread *s, uint32_t region, Accesses *all)
{
	const TirKernel *k = s->from;
	for (uint32_t i = 0; i < k->region.at[region].inst.n; i++) {
		ValId v = k->region.at[region].inst.at[i];
		const TirInst *p = tir_inst(k, v);
		if (p->op == OP_LOAD || p->op == OP_STORE) {
			unsigned m = memory_of(s, (unsigned)tir_inst(k, tir_arg(k, tir_arg(k, v, 0), 0))->imm.i);
			bool posted = s->to->buffer.at[m].posted;
			add_access(all, m, !posted && p->op == OP_LOAD, !posted && p->op == OP_STORE, way_of(s, v));
		}
		for (uint32_t n = 0; n < p->nregion; n++)
			add_region(s, p->region + n, all);
	}
}

void
spread_before_loop(Spread *s, ValId loop)
{
	Accesses inside = no_accesses(s);
	add_region(s, tir_inst(s->from, loop)->region, &inside);
	barrier_for(s, &inside, loop);
}

/* --- shared buffers --- */

static unsigned
exchange(Spread *s, DType t, unsigned elements, bool wide, bool handed)
{
	unsigned kind = 3u * t + wide + handed;
	int *buffer = &s->exchange[2 * kind + (s->turn[kind]++ & 1)];
	if (*buffer < 0)
		*buffer = (int)tir_add_buffer(s->to, name_cstr(s->to->names, wide ? "cluster" : "exchange"), t, true);
	TirBuffer *b = &s->to->buffer.at[*buffer];
	if (wide && b->shared && b->shared != elements) /* all of which are waited for */
		bug(s->arena, "spread: blocks hand %u elements, and %u", b->shared, elements);
	b->shared = b->shared > elements ? b->shared : elements;
	b->wide = wide;
	return (unsigned)*buffer;
}

unsigned
spread_exchange(Spread *s, DType t, unsigned elements)
{
	return exchange(s, t, elements, false, false);
}

unsigned
spread_cluster_exchange(Spread *s, DType t, unsigned each, bool handed)
{
	return exchange(s, t, each * s->blocks, true, handed);
}

static ValId
shared_view(Spread *s, unsigned buffer)
{
	if (s->to->buffer.at[buffer].wide) {
		ValId blocks = spread_int(s, s->blocks), each = spread_int(s, s->to->buffer.at[buffer].shared);
		const ValId extent[2] = {blocks, each}, stride[2] = {each, spread_int(s, 1)};
		return tir_view(s->to, buffer, 2, extent, stride);
	}
	ValId extent = spread_int(s, TIR_MAX_BLOCK_LANES * 2), one = spread_int(s, 1);
	return tir_view(s->to, buffer, 1, &extent, &one);
}

unsigned
spread_warps_buffer(Spread *s, DType t, unsigned elements)
{
	int *buffer = &s->of_warps[t];
	if (*buffer < 0)
		*buffer = (int)tir_add_buffer(s->to, name_cstr(s->to->names, "turns"), t, true);
	TirBuffer *b = &s->to->buffer.at[*buffer];
	b->shared = b->shared > elements ? b->shared : elements;
	return (unsigned)*buffer;
}

void
spread_put(Spread *s, unsigned buffer, ValId rank, ValId at, ValId value, ValId mask)
{
	const ValId index[2] = {rank ? rank : at, at};
	note_access(s, buffer, true, 0);
	tir_store(s->to, shared_view(s, buffer), value, index, mask, 0);
}

ValId
spread_get(Spread *s, unsigned buffer, ValId rank, ValId at)
{
	const ValId index[2] = {rank ? rank : at, at};
	note_access(s, buffer, false, 0);
	return tir_load(s->to, shared_view(s, buffer), index, 0, 0, 0);
}

/* Registers r .. r + n - 1 as one vector. */
static ValId
joined(Spread *s, const Regs *v, unsigned r, unsigned n, DType t)
{
	return n > 1 ? tir_emit(s->to, OP_JOIN, tir_vector(t, n), 0, v->reg + r, n) : v->reg[r];
}

enum { WORD_BITS = 32 }; /* of a register */

/* How many registers go to memory at once. */
static unsigned
at_once(DType t, unsigned n)
{
	unsigned bits = dtype_info[t].bits, most = t == DT_BOOL || bits < 8 ? 1 : 128 / bits;
	return n < most ? n : most;
}

void
spread_put_row(Spread *s, unsigned buffer, ValId at, const Regs *v)
{
	DType t = s->to->buffer.at[buffer].dtype;
	unsigned n = at_once(t, v->n);
	note_access(s, buffer, true, 0);
	for (unsigned r = 0; r < v->n; r += n) {
		ValId index = tir_binary(s->to, OP_ADD, at, spread_int(s, r));
		tir_store(s->to, shared_view(s, buffer), joined(s, v, r, n, t), &index, 0, n > 1 ? TIR_LANES_ALONG(0) : 0);
	}
}

Regs
spread_get_row(Spread *s, unsigned buffer, ValId at, unsigned count)
{
	DType t = s->to->buffer.at[buffer].dtype;
	Regs out = spread_regs(s, count);
	unsigned n = at_once(t, count);
	note_access(s, buffer, false, 0);
	for (unsigned r = 0; r < count; r += n) {
		ValId index = tir_binary(s->to, OP_ADD, at, spread_int(s, r));
		ValId x = tir_load(s->to, shared_view(s, buffer), &index, 0, n > 1 ? TIR_LANES_ALONG(0) : 0, n > 1 ? n : 0);
		for (unsigned i = 0; i < n; i++)
			out.reg[r + i] = n > 1 ? tir_emit(s->to, OP_LANE, tir_scalar(t), i, &x, 1) : x;
	}
	return out;
}

/* A wait is no barrier of the block, so that the next elements are put where one comes between: who has them knows then that
 * all threads have waited for those before, and read them. */
void
spread_hand_over(Spread *s, unsigned buffer, ValId rank, ValId at, ValId value, ValId mask)
{
	unsigned turns = turns_of_handing(s), m = memory_of(s, buffer);
	if (dtype_info[s->to->buffer.at[buffer].dtype].bits > 32) {
		spread_put(s, buffer, rank, at, value, mask);
		return;
	}
	note_access(s, buffer, true, 0);
	if (s->flow->since.read[turns])
		barrier(s, false);
	if (!s->flow->closed[REACH_BLOCK])
		add_access(&s->flow->exposed, turns, false, true, 0);
	spread_put(s, buffer, rank, at, value, mask);
	tir_emit(s->to, OP_BARRIER, (TirType){0}, TIR_HANDED(buffer), NULL, 0);
	s->anew += s->anew > 0;
	for (unsigned n = 0; n < s->nmemory; n++)
		if (reach_of(s, n) == REACH_HANDED)
			s->flow->since.read[n] = false;
	s->flow->since.written[m] = false;
	s->flow->closed[REACH_HANDED] = true;
	add_access(&s->flow->since, turns, true, false, 0);
}

/* --- loads and stores --- */

/* A power of two by which the scalar v can be divided, up to `most`. */
static unsigned
divisor_of(const TirKernel *k, ValId v, unsigned most, unsigned depth)
{
	const TirInst *p = tir_inst(k, v);
	if (p->type.dtype != DT_I64 || p->type.lanes || depth == 0)
		return 1;
	if (p->op == OP_CONST) {
		unsigned n = most;
		while (p->imm.i % (int64_t)n)
			n /= 2;
		return n;
	}
	if (p->op == OP_SCALAR) {
		unsigned n = k->scalar.at[p->imm.i].multiple;
		return n > most ? most : n ? n : 1;
	}
	if (p->op != OP_ADD && p->op != OP_SUB && p->op != OP_MUL && p->op != OP_MIN && p->op != OP_MAX)
		return 1;
	unsigned a = divisor_of(k, tir_arg(k, v, 0), most, depth - 1), b = divisor_of(k, tir_arg(k, v, 1), most, depth - 1);
	if (p->op == OP_MUL)
		return a * b > most ? most : a * b;
	return a < b ? a : b;
}

/* The same of an index, which may be a loop's. */
static unsigned
index_divisor(const Spread *s, ValId v, unsigned most)
{
	const TirKernel *k = s->from;
	const TirInst *p = tir_inst(k, v);
	if (p->op != OP_BLOCKARG || p->imm.i)
		return divisor_of(k, v, most, 8);
	for (ValId f = v - 1; f > 0; f--) {
		const TirInst *loop = tir_inst(k, f);
		if (loop->op != OP_FOR || k->region.at[loop->region].inst.at[0] != v)
			continue;
		unsigned lo = divisor_of(k, tir_arg(k, f, 0), most, 8), step = divisor_of(k, tir_arg(k, f, 2), most, 8);
		return lo < step ? lo : step;
	}
	return 1;
}

typedef struct {
	ValId view, index[TIR_MAX_RANK], mask; /* of from; mask 0: none */
	unsigned rank, lanes, buffer;
	int along;
	int64_t flags;
	DType dtype;
} Access;

static Access
access_of(const Spread *s, ValId v, unsigned lanes)
{
	const TirKernel *k = s->from;
	const TirInst *p = tir_inst(k, v);
	unsigned first = p->op == OP_STORE ? 2 : 1;
	Access a = {.view = tir_arg(k, v, 0), .lanes = lanes, .along = TIR_LANE_AXIS(p->imm.i)};
	const TirInst *view = tir_inst(k, a.view);
	a.rank = (unsigned)view->imm.i;
	a.buffer = (unsigned)tir_inst(k, tir_arg(k, a.view, 0))->imm.i;
	a.dtype = (DType)view->type.dtype;
	a.flags = p->imm.i & ~(TIR_MASKED | (p->op == OP_STORE ? TIR_STREAM : 0));
	for (unsigned n = 0; n < a.rank; n++)
		a.index[n] = tir_arg(k, v, first + n);
	a.mask = p->imm.i & TIR_MASKED ? tir_arg(k, v, first + a.rank) : 0;
	return a;
}

static bool
is_one(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	return p->op == OP_CONST && p->imm.i == 1;
}

static bool
same_in_groups(const Regs *v, unsigned n)
{
	for (unsigned r = 0; r < v->n; r++)
		if (v->reg[r] != v->reg[r - r % n])
			return false;
	return true;
}

/* How many lanes side by side are one access: those of a group, if they are in a row from a multiple of
 * their number on and all have the same mask and other indices. At most 16 bytes. */
static unsigned
together(const Spread *s, const Access *a)
{
	unsigned n = spread_group(s, a->lanes), bytes = dtype_info[a->dtype].bits / 8u;
	if (s->from->anywhere || a->along < 0 || a->lanes < s->threads || a->dtype == DT_BOOL || dtype_info[a->dtype].bits < 8 ||
	    !is_one(s->from, tir_arg(s->from, a->view, 1 + a->rank + (unsigned)a->along)))
		return 1;
	while (n * bytes > 16)
		n /= 2;
	for (unsigned k = 0; k < a->rank; k++)
		if (!same_in_groups(&s->map[a->index[k]], n))
			return 1;
	unsigned fits = index_divisor(s, a->index[a->along], n);
	n = fits < n ? fits : n;
	return !a->mask || same_in_groups(&s->map[a->mask], n) ? n : 1;
}

/* What the lane of register r adds to the index along the lanes. */
static ValId
lane_along(Spread *s, unsigned lanes, unsigned r)
{
	if (!s->columns)
		return spread_number(s, lanes, r, 0, DT_I64);
	unsigned group = spread_group(s, lanes);
	ValId first = tir_binary(s->to, OP_IMOD, spread_number(s, lanes, 0, 0, DT_U32), tir_int(s->to, DT_U32, s->columns));
	return tir_binary(s->to, OP_ADD, tir_cast(s->to, DT_I64, first), spread_int(s, r % group));
}

/* The indices of register r on. */
static void
index_at(Spread *s, const Access *a, unsigned r, ValId *index)
{
	for (unsigned k = 0; k < a->rank; k++) {
		const Regs *i = &s->map[a->index[k]];
		index[k] = i->reg[i->n > 1 ? r : 0];
		if (a->along == (int)k && a->lanes)
			index[k] = tir_binary(s->to, OP_ADD, index[k], lane_along(s, a->lanes, r));
	}
}

static ValId
mask_at(const Spread *s, const Access *a, unsigned r)
{
	return a->mask ? s->map[a->mask].reg[s->map[a->mask].n > 1 ? r : 0] : 0;
}

/* Whether register r is loaded from where the one before it is. */
static bool
as_before(const Spread *s, const Access *a, unsigned r)
{
	bool same = r && a->along < 0 && (!a->mask || s->map[a->mask].n == 1 || s->map[a->mask].reg[r] == s->map[a->mask].reg[r - 1]);
	for (unsigned k = 0; same && k < a->rank; k++)
		same = s->map[a->index[k]].n == 1 || s->map[a->index[k]].reg[r] == s->map[a->index[k]].reg[r - 1];
	return same;
}

Regs
spread_load(Spread *s, ValId v)
{
	unsigned lanes = tir_inst(s->from, v)->type.lanes;
	Access a = access_of(s, v, lanes);
	Regs out = spread_regs(s, lanes ? spread_registers(s, lanes) : 1);
	unsigned n = lanes ? together(s, &a) : 1;
	ValId view = s->map[a.view].reg[0], index[TIR_MAX_RANK];
	note_access(s, a.buffer, false, way_of(s, v));
	if (spread_turns(s, v))
		return spread_load_turned(s, v);
	s->flow->brings |= out.n > n && dtype_info[a.dtype].bits < WORD_BITS && !s->from->buffer.at[a.buffer].shared;
	for (unsigned r = 0; r < out.n; r += n) {
		if (as_before(s, &a, r)) {
			out.reg[r] = out.reg[r - 1];
			continue;
		}
		index_at(s, &a, r, index);
		ValId x = tir_load(s->to, view, index, mask_at(s, &a, r), n > 1 ? a.flags : a.flags & TIR_STREAM, n > 1 ? n : 0);
		for (unsigned i = 0; i < n; i++)
			out.reg[r + i] = n > 1 ? tir_emit(s->to, OP_LANE, tir_scalar(a.dtype), i, &x, 1) : x;
	}
	return out;
}

void
spread_store(Spread *s, ValId v)
{
	ValId value = tir_arg(s->from, v, 1);
	unsigned lanes = tir_inst(s->from, value)->type.lanes;
	Access a = access_of(s, v, lanes);
	const Regs *from = &s->map[value];
	unsigned n = lanes ? together(s, &a) : 1;
	ValId view = s->map[a.view].reg[0], index[TIR_MAX_RANK], holds = spread_holds(s, lanes);
	note_access(s, a.buffer, true, way_of(s, v));
	if (spread_turns(s, v)) {
		spread_store_turned(s, v);
		return;
	}
	for (unsigned r = 0; r < from->n; r += n) {
		ValId mask = mask_at(s, &a, r);
		index_at(s, &a, r, index);
		mask = mask && holds ? tir_binary(s->to, OP_AND, mask, holds) : mask ? mask : holds;
		tir_store(s->to, view, joined(s, from, r, n, a.dtype), index, mask, n > 1 ? a.flags : 0);
	}
}
