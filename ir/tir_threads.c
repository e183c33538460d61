/* tir_threads.c: runs a kernel of threads (TIR_SPREAD): each step for all threads of the block, or of the cluster, at
 * once, so that what one computes is there when its partner shuffles. Where threads take different branches, those of the
 * one go first, then those of the other.
 *
 * Beside what tir_interp.c checks: between two barriers no thread touches what another one writes, where only
 * those of the cluster part threads of different blocks, and no one reads what nobody wrote to shared memory; barriers
 * and shuffles are met by all threads. So a race is found whatever order of threads would hide it. What blocks hand to
 * each other has rules of its own (tir_handed.c). */
#include "ir/tir_threads.h"

#include <inttypes.h>
#include <string.h>

#include "ir/tir_slot.h"

bool
threads_violation(Block *x, const Step *s, const char *what)
{
	x->error = arena_text(x->scratch, "kernel %s: %%%" PRIu32 " %s: %s", name_text(x->k->names, x->k->name), s->inst,
	                      op_info[tir_inst(x->k, s->inst)->op].text, what);
	return false;
}

/* --- memory --- */

bool
threads_race(Block *x, const Access *c, int64_t byte, const char *which)
{
	return threads_violation(x, c->s, arena_text(x->scratch, "thread %u %s byte %" PRId64 " of %s, which %s", c->thread,
	                                     c->writes ? "writes" : "reads", byte,
	                                     name_text(x->k->names, x->k->buffer.at[c->a->buffer].name), which));
}

/* Blocks other than that of the access, since the cluster's last barrier. */
static bool
touch_of_blocks(Block *x, const Access *c, int64_t byte, const Shadow *h)
{
	if (h->wrote_at >= x->cluster_epoch && h->writer / x->k->threads != c->block)
		return threads_race(x, c, byte, arena_text(x->scratch, "thread %u wrote since the last barrier of the cluster", h->writer));
	if (c->writes && h->block_read_at >= c->since && h->reader_block != c->block)
		return threads_race(x, c, byte, "another block read since the last barrier of the cluster");
	return true;
}

static unsigned
group_of(uint16_t thread)
{
	return thread < SEVERAL_OF_WARP    ? thread / TIR_GROUP
	       : thread < SEVERAL_OF_GROUP ? (thread - (unsigned)SEVERAL_OF_WARP) / (TIR_GROUP / TIR_WARP)
	                                   : thread - (unsigned)SEVERAL_OF_GROUP;
}

/* Of all threads of the cluster. */
static unsigned
warp_of(uint16_t thread)
{
	return thread < SEVERAL_OF_WARP ? thread / TIR_WARP : thread - (unsigned)SEVERAL_OF_WARP;
}

static uint32_t
later(uint32_t a, uint32_t b)
{
	return a > b ? a : b;
}

/* None that parts threads is older than this one. */
static uint32_t
parts_all(const Block *x)
{
	return x->roles_epoch ? x->roles_epoch : x->block_epoch;
}

/* The last barrier that parts two threads. */
static uint32_t
parted_at(const Block *x, uint16_t a, uint16_t b)
{
	unsigned group = group_of(a);
	bool same = x->roles_epoch && group == group_of(b);
	uint32_t at = !x->roles_epoch ? x->block_epoch : same ? later(x->group_epoch[group], x->roles_epoch) : x->roles_epoch;
	return warp_of(a) == warp_of(b) ? later(at, same ? x->group_warp_epoch[group] : x->warp_epoch) : at;
}

/* Who stands for two readers. */
static uint16_t
several(const Block *x, uint16_t a, uint16_t b)
{
	if (warp_of(a) == warp_of(b))
		return (uint16_t)(SEVERAL_OF_WARP + warp_of(a));
	return x->roles_epoch && group_of(a) == group_of(b) ? (uint16_t)(SEVERAL_OF_GROUP + group_of(a)) : SEVERAL;
}

/* Who stands for this thread and those that have read the grain since they were parted from it. */
static inline uint16_t
readers(const Block *x, uint16_t thread, const Shadow *h, uint32_t all)
{
	bool others = h->reader != thread && h->read_at >= all && h->read_at >= parted_at(x, thread, h->reader);
	return others ? several(x, thread, h->reader) : thread;
}

bool
threads_touch(Block *x, const Access *c, int64_t byte, Shadow *h)
{
	uint16_t thread = (uint16_t)c->thread, block = (uint16_t)c->block;
	uint32_t all = parts_all(x);
	if (c->waited)
		return threads_touch_handed(x, c, byte, h);
	if (h->coming)
		return threads_race(x, c, byte, arena_text(x->scratch, "thread %u copies and has not waited for", h->writer));
	if (c->shared && !c->writes && !h->filled)
		return threads_race(x, c, byte, "nobody wrote");
	bool handed = x->posts && !c->shared && !c->writes;
	if (handed && !threads_was_handed(x, thread, h))
		return threads_race(x, c, byte, arena_text(x->scratch, "thread %u wrote, which no post has handed over", h->writer));
	if (!handed && h->wrote_at >= all && h->writer != thread && h->wrote_at >= parted_at(x, thread, h->writer))
		return threads_race(x, c, byte, arena_text(x->scratch, "thread %u wrote since the last barrier", h->writer));
	if (c->writes && h->read_at >= all && h->reader != thread && h->read_at >= parted_at(x, thread, h->reader))
		return threads_race(x, c, byte, "another one read since the last barrier");
	if (c->blocks && !touch_of_blocks(x, c, byte, h))
		return false;
	if (c->writes) {
		h->wrote_at = x->epoch;
		h->writer = thread;
		h->filled = true;
		return true;
	}
	h->reader = readers(x, thread, h, all);
	h->read_at = x->epoch;
	h->reader_block = h->block_read_at >= c->since && h->reader_block != block ? SEVERAL : block;
	h->block_read_at = x->epoch;
	return true;
}

static inline __attribute__((always_inline)) bool
locate(Block *x, const Access *c, unsigned l, int64_t *element)
{
	const unsigned rank = c->a->rank, t = c->thread;
	int64_t where = 0;
	for (unsigned n = 0; n < rank; n++) {
		const AxisSlots *axis = &c->axis[n];
		int64_t index = (int64_t)axis->index[axis->lanes * l + t], extent = (int64_t)axis->extent[t], stride = (int64_t)axis->stride[t], step;
		if (axis->along && __builtin_add_overflow(index, (int64_t)l, &index))
			index = -1;
		if (index < 0 || index >= extent)
			return threads_violation(x, c->s, arena_text(x->scratch, "index %u of thread %u is %" PRId64 ", the extent %" PRId64, n,
			                                     t, index, extent));
		if (__builtin_mul_overflow(index, stride, &step) || __builtin_add_overflow(where, step, &where))
			where = -1;
	}
	if (where < 0 || where >= c->count)
		return threads_violation(x, c->s, arena_text(x->scratch, "thread %u lies outside of buffer %s", t,
		                                     name_text(x->k->names, x->k->buffer.at[c->a->buffer].name)));
	*element = where;
	return true;
}

bool
threads_locate(Block *x, const Access *c, unsigned l, int64_t *element)
{
	return locate(x, c, l, element);
}

/* Whether nobody else has written the grain since all threads were parted, nor read it if this one writes, as where most reach:
 * threads_touch allows it then. */
static inline bool
touch_freely(const Block *x, const Access *c, Shadow *h)
{
	if (c->ruled || h->coming || (c->shared && !c->writes && !h->filled) || (h->wrote_at >= c->all && h->writer != c->thread) ||
	    (c->writes && h->read_at >= c->all && h->reader != c->thread))
		return false;
	if (c->writes) {
		h->wrote_at = x->epoch;
		h->writer = (uint16_t)c->thread;
		h->filled = true;
	} else {
		h->reader = readers(x, (uint16_t)c->thread, h, c->all);
		h->read_at = h->block_read_at = x->epoch;
		h->reader_block = (uint16_t)c->block;
	}
	return true;
}

/* Its grains are touched: a byte of 4-bit elements by each of them. */
static inline bool
touch_all(Block *x, const Access *c, const Memory *m, int64_t element)
{
	int64_t first = c->bits < 8 ? element / (8 / c->bits) : element * (c->bits / 8), bytes = c->bits < 8 ? 1 : c->bits / 8;
	Shadow *h = m->shadow + (((m->own ? c->block * m->bytes : 0) + first) >> m->shift);
	for (int64_t byte = first; byte < first + bytes; byte += m->grain, h++)
		if (!touch_freely(x, c, h) && !threads_touch(x, c, byte, h))
			return false;
	return true;
}

/* A GPU reaches for a vector at once: in a block's own memory it begins at a multiple of its size, and its elements lie side by
 * side. Where others do, the launch asks. */
static bool
is_aligned(Block *x, const Access *c, unsigned lane, unsigned lanes, int64_t element)
{
	return !c->shared || lanes < 2 || c->bits < 8 || element % lanes == lane ||
	       threads_violation(x, c->s, arena_text(x->scratch, "thread %u is at element %" PRId64 " of buffer %s, where a vector's lane %u does not belong",
	                                         c->thread, element, name_text(x->k->names, x->k->buffer.at[c->a->buffer].name), lane));
}

/* What is there, or comes there, of a posted buffer. */
static bool
is_post(Block *x, const Access *c, const uint8_t *data, int64_t element, uint64_t value)
{
	const Memory *m = &x->memory[c->a->buffer];
	threads_post(x, c->thread, c->writes, m->shadow + element * (int64_t)sizeof value / m->grain);
	bool there = slot_load((DType)c->a->dtype, data, element) != 0;
	if (!c->writes)
		return there || threads_violation(x, c->s, "waits for what no task has posted");
	return (!there && value) || threads_violation(x, c->s, "posts 0, or once more");
}

Access
threads_access(const Block *x, const Step *s, const StepAccess *a, bool writes)
{
	Access c = {.s = s, .a = a, .writes = writes, .shared = x->k->buffer.at[a->buffer].shared > 0,
	            .blocks = x->threads > x->k->threads, .waited = x->handed[a->buffer].waited, .bits = dtype_info[a->dtype].bits};
	c.count = x->memory[a->buffer].bytes * 8 / c.bits;
	c.since = x->k->buffer.at[a->buffer].wide && x->handed_epoch > x->cluster_epoch ? x->handed_epoch : x->cluster_epoch;
	c.ruled = c.blocks || c.waited || x->posts;
	c.all = parts_all(x);
	for (unsigned n = 0; n < a->rank; n++) {
		const StepAxis *axis = &a->axis[n];
		c.axis[n] = (AxisSlots){at(x, axis->index), at(x, axis->extent), at(x, axis->stride), axis->each_lane ? x->threads : 0, axis->along};
	}
	return c;
}

static bool
run_access(Block *x, const Step *s, const bool *active, bool writes)
{
	const StepAccess *a = &x->program->access.at[s->access];
	const Memory *m = &x->memory[a->buffer];
	Access c = threads_access(x, s, a, writes);
	const TirBuffer *buffer = &x->k->buffer.at[a->buffer];
	uint64_t *values = at(x, a->value);
	const uint64_t *mask = a->mask ? at(x, a->mask) : NULL;
	for (unsigned t = x->from; t < x->to; t++) {
		if (!active[t])
			continue;
		c.thread = t;
		c.block = c.blocks ? t / x->k->threads : 0;
		uint8_t *data = m->data + (m->own ? c.block * m->bytes : 0);
		for (unsigned l = 0; l < s->lanes; l++) {
			size_t slot = (size_t)l * x->threads + t;
			uint64_t *value = &values[slot];
			int64_t element = 0;
			if (mask && !mask[slot]) {
				*value = writes ? *value : 0;
				continue;
			}
			if (!locate(x, &c, l, &element) || !is_aligned(x, &c, l, s->lanes, element) ||
			    !(buffer->posted ? is_post(x, &c, data, element, *value) : touch_all(x, &c, m, element)))
				return false;
			if (buffer->wide && element / buffer->shared != c.block)
				x->reached_epoch = x->epoch;
			if (writes)
				slot_store((DType)a->dtype, data, element, *value);
			else
				*value = slot_load((DType)a->dtype, data, element);
		}
	}
	return true;
}

/* --- values --- */

static void
run_value(Block *x, const Step *s)
{
	unsigned n = x->to - x->from;
	uint64_t keep = s->kind == STEP_BITCAST ? UINT64_MAX >> (64 - dtype_info[s->dtype].bits) : 0;
	bool wrap = dtype_is_int((DType)s->dtype);
	for (unsigned l = 0; l < s->lanes; l++) {
		uint64_t *d = at(x, s->dst + l) + x->from;
		const uint64_t *a = at(x, s->src[0] + (s->kind == STEP_SPLAT ? 0 : l)) + x->from;
		if (s->kind == STEP_CAST || (s->kind == STEP_BITCAST && wrap)) {
			slot_cast_all((DType)s->dtype, s->kind == STEP_CAST ? (DType)s->from : DT_I64, a, d, n);
		} else if (s->kind == STEP_BITCAST) {
			for (unsigned t = 0; t < n; t++)
				d[t] = a[t] & keep;
		} else if (s->kind == STEP_SELECT) {
			const uint64_t *yes = at(x, s->src[1] + l) + x->from, *no = at(x, s->src[2] + l) + x->from;
			for (unsigned t = 0; t < n; t++)
				d[t] = a[t] ? yes[t] : no[t];
		} else {
			memmove(d, a, n * sizeof *d);
		}
	}
}

static void
run_lanes(Block *x, const Step *s)
{
	for (unsigned l = 0; l < s->lanes; l++)
		s->fn(at(x, s->dst + l) + x->from, at(x, s->src[0] + l) + x->from, at(x, s->src[1] ? s->src[1] + l : 0) + x->from,
		      at(x, s->src[2] ? s->src[2] + l : 0) + x->from, x->to - x->from);
}

static void
run_regroup(Block *x, const Step *s)
{
	for (unsigned t = x->from; t < x->to; t++)
		step_regroup(s, at(x, s->src[0]) + t, at(x, s->dst) + t, x->threads);
}

void
threads_move(Block *x, const Step *s, const bool *active)
{
	bool all = !memchr(active + x->from, false, x->to - x->from);
	for (uint32_t n = 0; n < s->nmove; n++) {
		const StepMove *m = &x->program->move.at[s->move + n];
		for (uint32_t l = 0; l < m->lanes; l++) {
			uint64_t *to = at(x, m->dst + l);
			const uint64_t *from = at(x, m->src + l);
			if (all)
				memmove(to + x->from, from + x->from, (x->to - x->from) * sizeof *to);
			for (unsigned t = x->from; !all && t < x->to; t++)
				to[t] = active[t] ? from[t] : to[t];
		}
	}
}

static void
run_fault(Block *x, const Step *s, const bool *active)
{
	for (unsigned t = x->from; t < x->to; t++) {
		uint32_t id = active[t] ? (uint32_t)at(x, s->src[0])[t] : 0;
		if (!x->run->fault)
			x->run->fault = id & 0xffff;
		if (!x->run->cut)
			x->run->cut = id >> 16;
	}
}

static bool
all_meet(Block *x, const Step *s, const bool *active)
{
	for (unsigned t = 0; t < x->threads; t++)
		if (!active[t])
			return threads_violation(x, s, "not all threads meet it");
	return true;
}

bool
threads_shuffle(Block *x, const Step *s, const bool *active)
{
	int64_t by = tir_inst(x->k, s->inst)->imm.i;
	const uint64_t *own = at(x, s->src[0]);
	for (unsigned t = x->from; t < x->to; t++) {
		unsigned warp = t / TIR_WARP * TIR_WARP;
		if (active[t] != active[warp])
			return threads_violation(x, s, "not all threads of a warp meet it");
		if (!active[t])
			continue;
		if (by == TIR_SAME && own[t] != own[warp])
			return threads_violation(x, s, "threads of a warp do not have the same");
		at(x, s->dst)[t] = own[warp + tir_shuffle_from(by, t % TIR_WARP)];
	}
	return true;
}

static bool
run_together(Block *x, const Step *s, const bool *active)
{
	int64_t by = tir_inst(x->k, s->inst)->imm.i;
	if (s->kind == STEP_SHUFFLE)
		return threads_shuffle(x, s, active);
	if (!all_meet(x, s, active))
		return false;
	int64_t k = TIR_HANDED_BUFFER(by);
	if (k >= 0)
		return threads_wait_handed(x, s, (uint32_t)k);
	x->warp_epoch = ++x->epoch;
	if (by != TIR_WARP_BARRIER)
		x->block_epoch = x->epoch;
	if (by == 1)
		x->cluster_epoch = x->epoch;
	return true;
}

/* --- control --- */

/* Whether the slot is the same in all threads at work; its value. */
static bool
same_value(Block *x, const Step *s, uint32_t slot, const bool *active, int64_t *value)
{
	int first = -1;
	for (unsigned t = x->from; t < x->to; t++) {
		if (active[t] && first < 0)
			first = (int)t;
		if (active[t] && at(x, slot)[t] != at(x, slot)[first])
			return threads_violation(x, s, "threads differ in how often they run it");
	}
	*value = first < 0 ? 0 : (int64_t)at(x, slot)[first];
	return true;
}

/* From STEP_FOR to what follows the loop. */
static const Step *
run_for(Block *x, const Step *s, const bool *active)
{
	const Step *head = s + 1, *after = x->program->step.at + head->target;
	int64_t lo, hi, step;
	if (!same_value(x, s, s->src[0], active, &lo) || !same_value(x, s, s->src[1], active, &hi) ||
	    !same_value(x, s, s->src[2], active, &step))
		return NULL;
	if (step <= 0) {
		threads_violation(x, s, "the step is not positive");
		return NULL;
	}
	threads_move(x, s, active);
	while (lo < hi) {
		for (unsigned t = x->from; t < x->to; t++)
			at(x, head->dst)[t] = (uint64_t)lo;
		threads_move(x, head, active);
		if (!threads_run(x, head + 1, after - 1, active))
			return NULL;
		threads_move(x, after - 1, active);
		if (__builtin_add_overflow(lo, step, &lo)) {
			threads_violation(x, s, "the index overflows");
			return NULL;
		}
	}
	return after;
}

/* From STEP_IF to what follows the branches; each ends in STEP_JUMP. */
static const Step *
run_if(Block *x, const Step *s, const bool *active)
{
	const Step *other = x->program->step.at + s->target, *after = x->program->step.at + (other - 1)->target;
	const Step *from[2] = {s + 1, other}, *end[2] = {other - 1, after - 1};
	if (x->nested == x->taken.n)
		vec_push(x->scratch, &x->taken, ARENA_ARRAY(x->scratch, bool, x->threads));
	bool *taken = x->taken.at[x->nested++];
	for (unsigned n = 0; n < 2; n++) {
		bool any = false;
		for (unsigned t = x->from; t < x->to; t++) {
			taken[t] = active[t] && (at(x, s->src[0])[t] == 0) == (n == 1);
			any |= taken[t];
		}
		if (any && !threads_run(x, from[n], end[n], taken))
			return NULL;
		if (any)
			threads_move(x, end[n], taken);
	}
	x->nested--;
	return after;
}

bool
threads_run(Block *x, const Step *from, const Step *to, const bool *active)
{
	const Step *next;
	for (const Step *s = from; s < to; s = next) {
		bool ok = true;
		next = s + 1;
		if (x->left-- <= 0)
			return threads_violation(x, s, "runs too long");
		switch ((StepKind)s->kind) {
		case STEP_LANES: run_lanes(x, s); break;
		case STEP_CAST: case STEP_BITCAST: case STEP_SELECT: case STEP_SPLAT: case STEP_COPY: run_value(x, s); break;
		case STEP_REGROUP: run_regroup(x, s); break;
		case STEP_LOAD: ok = run_access(x, s, active, false); break;
		case STEP_STORE: ok = run_access(x, s, active, true); break;
		case STEP_FAULT: run_fault(x, s, active); break;
		case STEP_SHUFFLE: case STEP_BARRIER: ok = run_together(x, s, active); break;
		case STEP_WARP_MMA: ok = all_meet(x, s, active); if (ok) threads_warp_mma(x, s); break;
		case STEP_LOAD_MATRIX: case STEP_STORE_MATRIX: ok = all_meet(x, s, active) && threads_matrix(x, s); break;
		case STEP_ASYNC_COPY: ok = threads_async_copy(x, s, active); break;
		case STEP_ASYNC_WAIT: threads_async_wait(x, s, active); break;
		case STEP_FOR: next = run_for(x, s, active); break;
		case STEP_IF: next = run_if(x, s, active); break;
		case STEP_ROLES:
			next = x->program->step.at + (x->program->step.at[s->target - 1].target);
			ok = roles_run(x, s, next);
			break;
		case STEP_PIECE: case STEP_PUT: ok = roles_piece(x, s, active); break;
		case STEP_ACQUIRE: case STEP_BOX: case STEP_WAIT: case STEP_RELEASE: case STEP_MMA: case STEP_PRODUCT: case STEP_KEEP: case STEP_SETTLE: case STEP_TURN: case STEP_HELD: case STEP_TAKE:
			ok = threads_violation(x, s, "not all threads of the group take the same way here");
			break;
		case STEP_HALF: case STEP_WEAVE: case STEP_PICK: case STEP_ANY: case STEP_DOT: case STEP_HEAD: case STEP_NEXT: case STEP_JUMP: case STEP_END:
			ok = threads_violation(x, s, "not of one thread");
			break;
		}
		if (!ok || !next)
			return false;
	}
	return true;
}

/* --- the blocks --- */

/* Of the buffers that are in the place of this one the smallest element's bytes. */
static unsigned
grain_of(const Block *x, uint32_t b)
{
	unsigned bits = dtype_info[x->k->buffer.at[b].dtype].bits;
	for (uint32_t a = 0; a < x->k->buffer.n && !x->k->buffer.at[b].shared; a++)
		if (!x->k->buffer.at[a].shared && x->run->buffer[a].data == x->run->buffer[b].data && dtype_info[x->k->buffer.at[a].dtype].bits < bits)
			bits = dtype_info[x->k->buffer.at[a].dtype].bits;
	return bits < 8 ? 1 : bits / 8;
}

static Memory
memory_of(const Block *x, uint32_t b)
{
	Memory m = {0};
	const TirBuffer *buffer = &x->k->buffer.at[b];
	unsigned copies = 1;
	if (buffer->shared) {
		m.own = !buffer->wide;
		dtype_bytes(buffer->dtype, buffer->shared * (int64_t)(m.own ? 1 : tir_blocks(x->k)), &m.bytes);
		copies = m.own ? tir_blocks(x->k) : 1;
		m.data = arena_alloc(x->scratch, (size_t)m.bytes * copies);
		memset(m.data, 0xa5, (size_t)m.bytes * copies);
	} else {
		m.data = x->run->buffer[b].data;
		m.bytes = x->run->buffer[b].bytes;
	}
	m.grain = grain_of(x, b);
	m.shift = (unsigned)__builtin_ctz(m.grain);
	for (uint32_t a = 0; a < b; a++)
		if (x->memory[a].data == m.data && m.bytes <= x->memory[a].bytes)
			m.shadow = x->memory[a].shadow;
	if (!m.shadow)
		m.shadow = ARENA_ARRAY(x->scratch, Shadow, (size_t)m.bytes * copies / m.grain + 1);
	return m;
}

bool
interp_threads(const TirKernel *k, Arena *scratch, TirRun *run, const StepProgram *program, const char **error)
{
	Block x = {.k = k, .scratch = scratch, .run = run, .program = program, .threads = tir_all_threads(k), .epoch = 1, .block_epoch = 1, .cluster_epoch = 1};
	x.to = x.threads;
	x.left = run->max_steps ? run->max_steps : INT64_C(1) << 40;
	x.slot = ARENA_ARRAY(scratch, uint64_t, (size_t)program->nslot * x.threads);
	for (uint32_t s = 0; s < program->nslot; s++)
		for (unsigned t = 0; t < x.threads; t++)
			at(&x, s)[t] = program->slot[s];
	for (uint32_t n = 0; n < program->thread.n; n++)
		for (unsigned t = 0; t < x.threads; t++)
			at(&x, program->thread.at[n])[t] = t % k->threads;
	for (uint32_t n = 0; n < program->rank.n; n++)
		for (unsigned t = 0; t < x.threads; t++)
			at(&x, program->rank.at[n])[t] = t / k->threads;
	x.groups = ARENA_ARRAY(scratch, uint32_t, x.threads);
	x.memory = ARENA_ARRAY(scratch, Memory, k->buffer.n + 1);
	for (uint32_t b = 0; b < k->buffer.n; b++)
		x.memory[b] = memory_of(&x, b);
	threads_handed_begin(&x);
	threads_posts_begin(&x);
	bool *active = ARENA_ARRAY(scratch, bool, x.threads);
	memset(active, true, x.threads);
	bool ok = threads_run(&x, program->step.at, program->step.at + program->step.n - 1, active) && threads_async_end(&x) && threads_handed_end(&x);
	if (!ok)
		*error = x.error;
	return ok;
}
