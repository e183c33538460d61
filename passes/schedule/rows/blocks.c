/* blocks.c: how a kernel by rows is done by blocks of threads (PERFORMANCE.md T1 to T5): several kernels of
 * which a launch runs one.
 *
 * A row that is short enough is held: each of its phases is one vector, so that what one phase read or computed
 * is in registers for the next. As few threads as hold it do, since a masked lane costs as much as any. A thread's code is
 * as long as it has lanes, and takes as long to compile: where enough blocks of threads that hold half as much fit beside
 * each other, their lanes are half as many. Where one block does not hold a row, those of a cluster do: blocks of half the registers that a
 * multiprocessor has, as long as they can, so that one computes while the other one waits for memory. Longer rows are gone
 * through by vectors, phase by phase, and come again from the L2 cache.
 *
 * Threads have groups of lanes side by side that fill 16 bytes of the widest tensor accessed along the lanes,
 * where memory is aligned for it; the last kernels take anything. */
#include "passes/schedule/rows/blocks.h"

#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/op_cost.h"
#include "passes/schedule/rows/apart.h"
#include "passes/schedule/rows/flat.h"
#include "passes/schedule/rows/held.h"
#include "passes/schedule/rows/once.h"
#include "passes/schedule/rows/plan.h"

/* A thread has HELD_WORDS registers of 32 bits for what its lanes hold, and as many to compute with. */
enum {
	GROUP_BYTES = 16,
	ALONE_BYTES = 4, /* of elements of which none are side by side: lanes have a word each */
	HELD_LANES = 32,
	MASKS_A_WORD = 4, /* of lanes that have a condition each: more than there are predicates */
	HELD_WORDS = 64, FEW_WORDS = HELD_WORDS / 2, /* of threads that hold much, or have little code */
	MOST_BLOCKS = 16, /* of any GPU's multiprocessor */
	TURN_REGISTERS = 192, /* of one that computes functions with long branches */
	MAP_LANES = 16, MAP_GROUPS = 2, MAP_BYTES = 128, /* of a thread, in how many groups, and what it reads at once of them */
	MAP_THREADS = 128,
	TILE_THREADS = 128,
	LOOP_LANES = 8,
	BUSY_UNITS = 160, /* of op_cost.h, for one lane: they take much longer than its bytes, from wherever */
	COLUMN_THREADS = 128,
	COLUMN_BYTES = 128, /* of a row of columns that are held: a line of memory */
	SCAN_THREADS = 1024, /* of a multiprocessor, which have its memory busy while others wait */
	POST_THREADS = 256, /* of a scan whose tasks are vectors */
	LINEAR_THREADS = 768, /* of a multiprocessor, where recurrences take registers beside: for what tasks post, or rows that begin anywhere */
	PLAIN_WORDS = 2, PLAIN_READS = 3, PLAIN_UNITS = 32, /* of a recurrence that takes few registers: those of a step, reads, its own among
	                                                     * them, and of op_cost.h what is computed of a step */
	SPLIT_THREADS = 512, /* of a block whose rows of lanes split a recurrence's steps */
	LINEAR_GROUPS = 4, /* of 16 bytes, of a thread's steps of a recurrence: each part of its own is another join of all threads' */
	ONCE_THREADS = 256, ONCE_BLOCKS = 4, /* of what goes by rows once, and so many blocks a multiprocessor */
	ONCE_ROWS = 8     /* and so many rows, for each multiprocessor */
};

/* The threads that then have all registers of a multiprocessor, where each holds so many words. */
static unsigned
threads_holding(unsigned words)
{
	return cost_machine(true, 0)->registers / (2 * words);
}

static unsigned
held_threads(void)
{
	return threads_holding(HELD_WORDS);
}

static bool
is_kept(const Rows *r, ExprId e)
{
	for (unsigned k = 0; k < r->nkept; k++)
		if (r->kept[k] == e)
			return true;
	return false;
}

static void
note_width(void *user, ExprId e)
{
	LaneAccess *a = user;
	const Expr *p = expr_get(a->g, e);
	if (p->op != OP_READ || !p->narg || (a->rows && (block_has_member(a->rows, p->ref) || is_kept(a->rows, e))) ||
	    !(expr_axes(a->g, a->scratch, expr_arg(a->g, e, p->narg - 1u)) & a->lanes) || (a->also && !(expr_axes(a->g, a->scratch, e) & a->also)))
		return;
	unsigned bytes = dtype_info[a->g->tensor.at[p->ref].dtype].bits / 8u;
	a->widest = bytes > a->widest ? bytes : a->widest;
}

void
lane_access_reads(LaneAccess *a, const Node *n)
{
	node_walk(a->g, a->scratch, n, note_width, a);
}

unsigned
lane_access_group(const LaneAccess *a)
{
	return a->widest < GROUP_BYTES ? GROUP_BYTES / a->widest : 1;
}

static unsigned
group_of(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes, uint32_t also)
{
	LaneAccess along = {.g = g, .scratch = scratch, .rows = r, .lanes = lanes, .also = also};
	for (unsigned m = 0; m < r->nmember; m++) {
		const RowMember *x = &r->member[m];
		unsigned bytes = dtype_info[g->tensor.at[x->t].dtype].bits / 8u;
		lane_access_reads(&along, &x->node);
		bool seldom = (r->across && (x->across || x->parked)) || (also && !x->is_row); /* once a part, or not where rows are held */
		if (x->stored && !seldom && (x->is_row || r->lanes_by_row) && bytes > along.widest)
			along.widest = bytes;
	}
	along.widest = along.widest ? along.widest : ALONE_BYTES;
	return lane_access_group(&along);
}

static bool
has_lane_loops(const Rows *r)
{
	for (unsigned k = 0; k < r->nloop; k++)
		if (r->loop[k].lanes)
			return true;
	return false;
}

/* How many blocks of so many threads a multiprocessor has, with so many registers each. */
static unsigned
resident_blocks(unsigned threads, unsigned registers)
{
	unsigned blocks = cost_machine(true, 0)->registers / (threads * registers);
	return blocks ? blocks : 1;
}

static bool
stores_row(const Rows *r)
{
	for (unsigned m = 0; m < r->nmember; m++)
		if (r->member[m].is_row && r->member[m].stored)
			return true;
	return false;
}

/* --- the forms --- */

static BlockShape *
add(BlockShapes *out, unsigned threads, unsigned group, unsigned each)
{
	unsigned lanes = each < group ? threads * group : threads * each;
	out->at[out->n] = (BlockShape){.lanes = lanes, .threads = (uint16_t)threads, .group = (uint16_t)group};
	return &out->at[out->n++];
}

/* The words that a lane carries from row to row. */
static unsigned
carried_words(const Graph *g, const Rows *r)
{
	unsigned words = 0;
	for (unsigned m = 0; m < r->nmember; m++)
		words += r->member[m].across ? held_words_of(g, r->member[m].t) : 0;
	return words;
}

typedef struct {
	const Graph *g;
	unsigned units;
} BodyCost;

static void
add_op(void *user, ExprId e)
{
	BodyCost *c = user;
	c->units += expr_cost(c->g, e).vector;
}

/* Whether no phase leaves elements of a row to a later one, and what is computed of one takes much longer than
 * bringing it: nothing is gained by having many on their way, and each is another copy of the code. */
static bool
only_computes(const Graph *g, Arena *scratch, const Rows *r, uint32_t lanes)
{
	BodyCost c = {g, 0};
	const uint32_t *phases = held_phases(g, scratch, r, lanes);
	for (TensorId t = 0; t < g->tensor.n; t++)
		if (phases[t] & (phases[t] - 1))
			return false;
	for (unsigned m = 0; m < r->nmember; m++)
		expr_walk(g, scratch, r->member[m].node.body, add_op, &c);
	return c.units >= BUSY_UNITS;
}

/* Rows that go by, where there are so many that clusters have not much to share out; in tests any. */
static void
add_once(BlockShapes *out, const PassOptions *o, unsigned group)
{
	unsigned threads = o->part_terms ? 2 * TIR_WARP : ONCE_THREADS;
	BlockShape *s = add(out, threads, group, o->part_terms ? 2 * group : HELD_LANES);
	s->once = o->part_terms ? 1 : ONCE_ROWS * cost_machine(true, 0)->threads;
	s->resident = ONCE_BLOCKS;
}

/* What a lane of a held row takes of a thread's registers, how many a thread has at most, and how many tensors are read of a row. */
typedef struct {
	unsigned words, carried, apart, most, tensors;
	bool turns;
} LaneWords;

/* How many lanes a thread has that holds so many words. What is carried may take half of the registers to compute with. */
static unsigned
lanes_in(const LaneWords *w, unsigned room, unsigned group)
{
	unsigned most = w->most;
	while (most > group && (most * (w->words + w->apart) > room || most * (w->words + w->carried) > room + room / 2))
		most /= 2;
	return most;
}

/* The threads of the largest block of those that hold few words; 0: there are none. While a row's elements are folded nothing of
 * it is on its way, for which other rows make up: four blocks are enough of them, and two where several tensors are read of each,
 * or where threads with all their lanes would be half as many (a softmax of 8192 takes two fifths longer in two blocks, a layer
 * norm of a sum as long). None: what a lane takes apart from what it holds finds no room in few registers, nor does code of
 * functions that take turns; what is carried goes on for longer than a row; a row that phases have loops around is not held. */
static unsigned
most_with_few(const Rows *r, const LaneWords *w, unsigned few, unsigned each, bool is_wide)
{
	bool held = !w->carried && !w->turns && !w->apart && few < each && few * w->words <= FEW_WORDS;
	for (unsigned f = 0; f < r->nphase; f++)
		held = held && r->phase[f].nloop <= 1;
	return held ? threads_holding(FEW_WORDS) / (is_wide || w->tensors > 1 ? 2 : 4) : 0;
}

static BlockShape *
add_holding(BlockShapes *out, unsigned threads, unsigned group, unsigned each, unsigned resident)
{
	BlockShape *s = add(out, threads, group, each);
	s->held = true;
	s->resident = (uint16_t)resident;
	return s;
}

/* Rows that blocks of a multiprocessor hold, the shortest first. What is carried goes on while a block waits: there is another
 * one. Where threads have few lanes, masked ones cost more: rows that do not fill them are for half as many threads with `each`,
 * where these hold as much. How many blocks there are is left to the assembler where rows are stored, but for what takes registers apart:
 * of that it has more blocks than it has registers for, and spills. */
static void
add_held_blocks(BlockShapes *out, const Rows *r, const LaneWords *w, unsigned group, unsigned each)
{
	LaneWords near = {.words = w->words, .carried = w->carried, .most = w->most};
	bool is_wide = lanes_in(&near, HELD_WORDS, group) < HELD_LANES;
	unsigned all = held_threads(), most = w->carried || w->turns ? all / 2 : all, few = lanes_in(w, FEW_WORDS, group);
	unsigned most_few = most_with_few(r, w, few, each, is_wide), small = TIR_WARP;
	for (unsigned threads = TIR_WARP; threads <= most; threads *= threads == TIR_WARP ? 4 : 2) {
		for (; small <= most_few && small * few <= threads * each; small *= 2) {
			unsigned fit = threads_holding(FEW_WORDS) / small;
			add_holding(out, small, group, few, fit < MOST_BLOCKS ? fit : MOST_BLOCKS)->filled = !is_wide && small * few == threads * each;
		}
		if (is_wide && threads * each <= most_few * few)
			continue;
		add_holding(out, threads, group, each, is_wide || w->apart || threads == all || !stores_row(r) ? all / (w->turns ? 2 : 1) / threads : 0);
	}
}

/* In how many phases terms that are folded have a condition each. */
static unsigned
guarded_phases(const Graph *g, const Rows *r)
{
	uint32_t phases = 0;
	for (unsigned m = 0; m < r->nmember; m++)
		if (rows_is_folded(&r->member[m]) && !expr_is_true(g, r->member[m].node.guard))
			phases |= UINT32_C(1) << r->member[m].phase;
	unsigned n = 0;
	for (; phases; phases &= phases - 1)
		n++;
	return n;
}

/* The forms that hold a row, the smallest first. Rows that a block can't hold, if they go by `once`, are not held where
 * there are many of them. */
static void
add_held(BlockShapes *out, const Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, unsigned group, unsigned words,
         bool once)
{
	uint32_t along = held_lane_axes(r);
	LaneWords w = {words, carried_words(g, r), apart_words(g, scratch, r, along), HELD_LANES, 0, apart_turns(g, scratch, r, along)};
	w.most = only_computes(g, scratch, r, along) ? group : HELD_LANES;
	block_bytes_read(g, scratch, r, (UINT32_C(1) << r->nrow) - 1, &w.tensors);
	unsigned all = held_threads(), each = lanes_in(&w, HELD_WORDS, group);
	bool half_all = w.carried || w.turns;
	add_held_blocks(out, r, &w, group, each);
	if (once && !o->part_terms)
		add_once(out, o, group);
	unsigned registers = held_registers(g, scratch, r, along, each) + each * (w.carried + w.apart);
	registers += guarded_phases(g, r) > 1 ? each / MASKS_A_WORD : 0; /* which they keep from the first to the last */
	if (w.turns && registers < TURN_REGISTERS)
		registers = TURN_REGISTERS;
	for (unsigned half = 4; half <= (half_all ? 1u : 2u) * o->cluster; half *= 2) { /* blocks of half as many threads hold the row */
		unsigned threads = half > o->cluster ? all : all / 2;
		BlockShape *s = add_holding(out, threads, group, each, resident_blocks(threads, registers));
		s->cluster = (uint16_t)(half * (all / 2) / threads);
		s->lanes *= s->cluster;
	}
}

/* Whether vectors of a row can be tasks: all members are rows of values along one loop, none a fold of the row. */
static bool
may_post(const Rows *r)
{
	bool rows = true;
	for (unsigned m = 0; m < r->nmember; m++)
		rows = rows && r->member[m].is_row && !rows_is_folded(&r->member[m]);
	return rows && r->nphase == 1 && r->phase[0].nloop == 1 && r->phase[0].lanes && !r->across && !r->block;
}

/* The words that a lane folds of a row's scans. */
static unsigned
scanned_words(const Graph *g, const Rows *r)
{
	unsigned words = 0;
	for (unsigned m = 0; m < r->nmember; m++) {
		const Node *n = &r->member[m].node;
		if (!r->member[m].scans)
			continue;
		DType t = dtype_info[expr_get(g, n->body)->dtype].arith;
		words += n->factor != 0; /* that of a step */
		words += t == DT_C64 ? 4 : dtype_info[t].bits > 32 ? 2 : 1; /* two parts, which lie side by side before and after */
		words += monoid_info[n->monoid].index ? 3 : !expr_is_true(g, n->guard); /* where, and whether */
	}
	return words;
}

static bool
has_recurrence(const Rows *r)
{
	bool any = false;
	for (unsigned m = 0; m < r->nmember; m++)
		any |= r->member[m].node.factor != 0;
	return any;
}

/* What a thread has at most of a scan's lanes: of those that lie alone, each takes a register more, for what it begins with; of
 * steps that are joined, one part. */
static unsigned
scan_lanes(const Rows *r, unsigned group, unsigned words)
{
	unsigned each = group > 1 ? HELD_LANES : HELD_LANES / 2;
	if (has_recurrence(r))
		return group;
	while (each > group && each * words > HELD_LANES)
		each /= 2;
	return each;
}

typedef struct {
	LaneAccess along;
	unsigned n;
} LaneReads;

static void
count_read(void *user, ExprId e)
{
	LaneReads *a = user;
	a->along.widest = 0;
	note_width(&a->along, e);
	a->n += a->along.widest > 0;
}

static unsigned
lane_reads(const Graph *g, Arena *scratch, const Rows *r)
{
	LaneReads reads = {.along = {.g = g, .scratch = scratch, .rows = r, .lanes = held_lane_axes(r)}};
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(g, scratch, &r->member[m].node, count_read, &reads);
	return reads.n;
}

/* And how many blocks of so many threads that have them a multiprocessor has: wide folds take more beside their lanes, and
 * so do other reads than the first. */
static uint16_t
scan_blocks(const Graph *g, Arena *scratch, const Rows *r, unsigned threads)
{
	unsigned words = scanned_words(g, r) + (lane_reads(g, scratch, r) > 1 ? 2 : 0) + has_recurrence(r);
	unsigned all = SCAN_THREADS - (words > 1 ? SCAN_THREADS / 4 : 0) - (words > 2 ? SCAN_THREADS / 4 : 0);
	return (uint16_t)(all < threads ? 1 : all / threads);
}

/* The same of recurrences whose tasks post: steps of two registers, made of what two tensors have by a few operations, find room in
 * those of a quarter of a multiprocessor, and four blocks wait less than three (2^26 steps on an H200: 301 us, not 346). */
static uint16_t
linear_blocks(const Graph *g, Arena *scratch, const Rows *r, unsigned threads)
{
	BodyCost c = {g, 0};
	expr_walk(g, scratch, r->member[0].node.body, add_op, &c);
	expr_walk(g, scratch, r->member[0].node.factor, add_op, &c);
	bool plain = r->nmember == 1 && scanned_words(g, r) <= PLAIN_WORDS && lane_reads(g, scratch, r) <= PLAIN_READS && c.units <= PLAIN_UNITS;
	return (uint16_t)((plain ? SCAN_THREADS : LINEAR_THREADS) / threads);
}

static void
add_posts(BlockShapes *out, const Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, unsigned group)
{
	unsigned threads = TIR_WARP, words = scanned_words(g, r), each = scan_lanes(r, group, words), least = o->part_terms;
	while (least && each > group && threads * each > least)
		each /= 2;
	while (threads < POST_THREADS && (!least || threads * each < least))
		threads *= 2;
	BlockShape *s = add(out, threads, group, each);
	s->resident = has_recurrence(r) ? linear_blocks(g, scratch, r, threads) : scan_blocks(g, scratch, r, threads);
	s->posts = least ? least : s->lanes + 1;
}

/* The forms of a scan that hold a row, which fills at least half of one; in tests as much as a task is worth. */
static void
add_held_scans(BlockShapes *out, const Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, unsigned group, unsigned words)
{
	unsigned each = scan_lanes(r, group, scanned_words(g, r));
	while (each > group && each * words > HELD_WORDS)
		each /= 2;
	unsigned most = o->part_terms ? o->part_terms : held_threads() * each;
	for (unsigned threads = 2 * TIR_WARP; threads * each <= most; threads *= 2)
		add_holding(out, threads, group, each, has_recurrence(r) && r->nrow ? SCAN_THREADS / threads : scan_blocks(g, scratch, r, threads));
}

/* Whether a scan's steps lie along lanes: not where their order is asked for, or what they read is looked for by position. */
static bool
scans_by_lanes(const Rows *r)
{
	bool all = true;
	for (unsigned m = 0; m < r->nmember; m++)
		all = all && (!r->member[m].scans || r->phase[r->member[m].phase].lanes);
	return all;
}

/* A scan: rows held where they fit; by vectors of long rows; by a warp a row, which folds without waiting, where there are rows
 * for enough of them; by a block a row. */
static void
add_scans(BlockShapes *out, const Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, unsigned group, unsigned words,
          bool known)
{
	bool posts = known && may_post(r);
	if (group > 1) {
		if (known && !r->across && scans_by_lanes(r))
			add_held_scans(out, g, scratch, o, r, group, words);
		if (posts)
			add_posts(out, g, scratch, o, r, group);
		add(out, TIR_WARP, group, 4 * group);
	}
	for (unsigned v = group;; v = 1) {
		if (v == 1 && posts)
			add_posts(out, g, scratch, o, r, v);
		add(out, 256, v, 2 * v)->resident = (uint16_t)(v > 1 ? held_threads() / 256 : 0); /* else the assembler keeps to 64 registers */
		if (v == 1)
			return;
	}
}

/* Linear recurrences: a thread has many steps side by side, wherever rows begin, and a warp accesses its own as they lie in memory,
 * one at a time (unit 1). Accesses of 16 bytes where rows allow them, a thread's four apart, took a tenth to a third longer. */
static void
add_recurrences(BlockShapes *out, const Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, unsigned side, unsigned words,
                bool known)
{
	if (known && !r->across && scans_by_lanes(r))
		add_held_scans(out, g, scratch, o, r, side, words);
	if (known && may_post(r))
		add_posts(out, g, scratch, o, r, side);
	add(out, TIR_WARP, side, side)->resident = BUSY_WARPS;
	add(out, 256, side, side)->resident = (uint16_t)(held_threads() / 256);
	for (unsigned k = 0; k < out->n; k++) {
		BlockShape *s = &out->at[k];
		s->anywhere = true;
		if (s->held && s->resident > LINEAR_THREADS / s->threads && s->threads < held_threads())
			s->resident = LINEAR_THREADS / s->threads;
	}
}

/* Those of these forms that take only rows which the ones before are too short for, where that makes them long. */
static void
take_long_rows(BlockShapes *out, unsigned n)
{
	bool is_long = false;
	for (unsigned k = 1; k < n; k++) {
		is_long |= out->at[k - 1].held && !out->at[k - 1].filled && out->at[k - 1].lanes > LONG_SUM_TERMS;
		out->at[k].long_sums = is_long && (out->at[k].held || out->at[k].once || k + 1 == n);
	}
}

/* Not those of these forms that take longer rows than any launch has: what parts of a fold are joined by is a short row. Behind one
 * that holds all of them only what asks for no groups is ever asked for. */
static void
drop_longer(BlockShapes *out, Graph *g, const Rows *r)
{
	unsigned n = 0;
	bool all = false;
	for (unsigned k = 0; k < out->n; k++) {
		const BlockShape s = out->at[k];
		bool behind = all && (s.held || s.once || s.group > 1);
		if (!behind && (!s.long_sums || block_lengths_reach(g, r, LONG_SUM_TERMS)))
			out->at[n++] = s;
		all |= s.held && !s.filled && !block_lengths_reach(g, r, (int64_t)s.lanes + 1);
	}
	out->n = n;
}

/* Whether all that is folded of a row, and nothing else is done with it, can be folded as it goes by. */
static bool
goes_by_once(Graph *g, Arena *scratch, const Rows *r, const bool *faulty)
{
	return !stores_row(r) && rows_once_plan(g, scratch, r, faulty, ARENA_NEW(scratch, RowsOnce));
}

typedef struct {
	const Graph *g;
	bool any;
} Joins;

static void
note_parts(void *user, ExprId e)
{
	Joins *j = user;
	const Expr *p = expr_get(j->g, e);
	if (p->op == OP_READ && j->g->tensor.at[p->ref].kind == TENSOR_NODE)
		j->any |= tensor_node(j->g, p->ref)->parts;
}

/* Whether it joins parts of a stream: a launch has them where rows are few, and so are their blocks. */
static bool
joins_parts(const Graph *g, Arena *scratch, const Rows *r)
{
	Joins j = {g, false};
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(g, scratch, &r->member[m].node, note_parts, &j);
	return j.any;
}

/* So many elements as a thread of a pointwise kernel has: what it reads of all tensors is on its way at once, of each of them
 * two groups, which leave memory as busy as more do; but for wide values, which take longer to compute. */
static unsigned
map_lanes(const Graph *g, Arena *scratch, const Rows *r, unsigned group, unsigned computed, bool turns)
{
	unsigned each = MAP_LANES / computed / (turns ? 2 : 1), n, bytes = block_bytes_read(g, scratch, r, held_lane_axes(r), &n);
	each = group > 1 && computed == 1 && each > MAP_GROUPS * group ? MAP_GROUPS * group : each;
	while (each > group && each * bytes > MAP_BYTES)
		each /= 2;
	return each;
}

static void
add_maps(BlockShapes *out, Graph *g, Arena *scratch, const Rows *r, const bool *faulty, unsigned group, unsigned computed, bool turns)
{
	ExprId cond = 0;
	unsigned wide = group_of(g, scratch, r, held_lane_axes(r), 0);
	if (wide > 1 && rows_may_be_flat(g, scratch, r, faulty) && block_is_multiple(g, scratch, rows_flat_extent(g, r), wide, &cond)) {
		BlockShape *s = add(out, MAP_THREADS, wide, map_lanes(g, scratch, r, wide, computed, turns));
		s->resident = turns;
		s->flat = true;
	}
	if (r->lanes_by_row)
		add(out, TIR_WARP, group, 1)->short_axis = true;
	add(out, MAP_THREADS, group, map_lanes(g, scratch, r, group, computed, turns))->resident = turns;
	add(out, 2 * MAP_THREADS, 1, map_lanes(g, scratch, r, 1, computed, turns) / 2)->resident = turns;
}

/* Whether all that is done is to take steps of scans, down columns, which may be joined. */
static bool
may_split_steps(const Graph *g, Arena *scratch, const Rows *r, const bool *faulty)
{
	bool all = r->nphase == 1 && r->phase[0].nloop == 1 && !r->phase[0].nown;
	for (unsigned k = 0; all && k < r->nmember; k++) {
		const RowMember *m = &r->member[k];
		bool one = !monoid_info[m->node.monoid].index && expr_get(g, m->node.body)->dtype != DT_C64; /* value that is carried */
		all = m->scans && m->is_row && expr_is_true(g, m->node.guard) && !faulty[m->t] && rows_may_regroup(g, scratch, &m->node, faulty) &&
		      (m->node.factor || (m->node.monoid != MON_NONE && one));
	}
	return all;
}

/* So many blocks of columns, or fewer where elements of a few bits are read along the lanes: of each row on its way every lane has an
 * address then, and more where that is divided for. */
static unsigned
packed_columns(const Graph *g, Arena *scratch, const Rows *r, unsigned columns)
{
	bool divides;
	if (!columns || !apart_packed(g, scratch, r, held_lane_axes(r), &divides))
		return columns;
	columns /= divides ? 4 : 2;
	return columns ? columns : 1;
}

BlockShapes
block_shapes(Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, const bool *faulty)
{
	BlockShapes out = {0};
	ExprId cond = 0;
	uint32_t along = held_lane_axes(r);
	unsigned side = group_of(g, scratch, r, along, 0), group = side, computed = held_computed_words(g, scratch, r, along);
	unsigned words = held_words(g, scratch, r, along, computed);
	bool loops = !r->lanes_by_row && has_lane_loops(r), known = block_lengths_known(g, scratch, r);
	bool turns = apart_turns(g, scratch, r, along), apart = apart_words(g, scratch, r, along) > 0;
	if (!block_ends_are_multiples(g, scratch, r, group, &cond))
		group = 1;
	if (r->ntile) { /* four warps a tile of many bytes; a warp a tile: it waits for no other */
		ExprId large = 0, whole = 0;
		unsigned v = r->tile_group;
		if (r->large_side && block_ends_are_multiples(g, scratch, r, r->large_group, &large))
			add(&out, TILE_THREADS, r->large_group, r->large_group)->columns = r->large_side;
		if (v > 1 && block_ends_are_multiples(g, scratch, r, v, &whole))
			add(&out, TIR_WARP, v, v);
		add(&out, TIR_WARP, 1, v);
		return out;
	}
	if (r->block && !r->nkept) { /* lines that lanes have brought stay in the cache for the values that come next */
		add(&out, 256, 1, 1);
		return out;
	}
	if (r->tmpl == TMPL_MAP) {
		add_maps(&out, g, scratch, r, faulty, group, computed, turns);
		return out;
	}
	if (r->lanes_by_row && r->scans && !r->block) { /* a step waits for the last one: as many warps as there can be, each with several on their way */
		if (group > 1)
			add(&out, TIR_WARP, group, 1);
		if (may_split_steps(g, scratch, r, faulty)) {
			BlockShape *s = add(&out, o->part_terms ? 2 * TIR_WARP : SPLIT_THREADS, 1, 1);
			s->columns = TIR_WARP;
			s->resident = 1;
		}
		add(&out, TIR_WARP, 1, 1);
		return out;
	}
	if (r->lanes_by_row) /* of columns as many warps, each with as many rows, as there can be */
		add(&out, TIR_WARP, r->tmpl == TMPL_COLRED ? 1 : group, 1)->short_axis = true;
	if (r->tmpl == TMPL_COLRED && group > 1)
		add(&out, TIR_WARP, group, 1)->short_axis = true;
	bool once = loops && known && goes_by_once(g, scratch, r, faulty);
	if (once && o->part_terms)
		add_once(&out, o, group);
	if (loops && known && !r->scans)
		add_held(&out, g, scratch, o, r, group, words, once);
	if (loops && has_recurrence(r)) {
		add_recurrences(&out, g, scratch, o, r, LINEAR_GROUPS * side, words, known);
		return out;
	}
	if (loops && r->scans) {
		add_scans(&out, g, scratch, o, r, group, words, known);
		return out;
	}
	unsigned halves = r->across || (turns && computed > 1) ? 2 : 1; /* wide values wait for their turns in many registers */
	unsigned threads = !loops ? COLUMN_THREADS : turns ? 256 : 512, each = loops ? LOOP_LANES / computed / halves : 1;
	unsigned columns = r->tmpl == TMPL_COLRED ? 2 * held_threads() / COLUMN_THREADS : 0; /* registers for rows on their way */
	columns -= guarded_phases(g, r) ? columns / 4 : 0; /* and for which of them there are */
	columns = joins_parts(g, scratch, r) ? columns / 4 : columns;
	if (group > 1)
		add(&out, threads, group, each)->resident = (uint16_t)(loops ? words > 2 || apart || !stores_row(r) : packed_columns(g, scratch, r, columns));
	if (long_sums_gain(g, r))
		take_long_rows(&out, out.n);
	add(&out, threads, 1, each)->resident = (uint16_t)(loops ? 1 : columns);
	if (loops && known)
		drop_longer(&out, g, r);
	return out;
}

/* Whether all loops are phases of their own, from 0 to what is known at launch, and folds need no positions. */
static bool
may_hold_columns(const Graph *g, Arena *scratch, const Rows *r)
{
	for (unsigned k = 0; k < r->nloop; k++) {
		const Expr *lo = expr_get(g, r->loop[k].lo);
		if (lo->op != OP_CONST || lo->imm.i != 0 || !expr_is_of_launch(g, scratch, r->loop[k].hi))
			return false;
	}
	for (unsigned f = 0; f < r->nphase; f++)
		if (r->phase[f].nloop > 1 || r->phase[f].nown)
			return false;
	for (unsigned m = 0; m < r->nmember; m++) {
		const RowMember *x = &r->member[m];
		if (x->side || x->scans || (x->is_row && x->node.nred) || x->node.nred > 1 || monoid_info[x->node.monoid].index)
			return false;
	}
	return r->tmpl == TMPL_COLRED && r->lanes_by_row && !r->across && !r->block;
}

/* Of so many columns, by a block or a cluster of so many, where there may be such. */
static void
add_columns(BlockShapes *out, const PassOptions *o, unsigned blocks, unsigned columns, unsigned group, unsigned each, unsigned registers)
{
	unsigned threads = held_threads();
	if (columns < group || columns < TIR_WARP || columns * blocks > threads || (blocks > 1 && blocks > o->cluster))
		return;
	BlockShape *s = add(out, threads, group, each);
	s->held = true;
	s->columns = (uint16_t)columns;
	s->cluster = (uint16_t)(blocks > 1 ? blocks : 0);
	s->lanes *= blocks;
	s->resident = (uint16_t)resident_blocks(threads, registers);
}

/* As many blocks as hold all rows of a line's columns; half a line where the most don't. */
BlockShapes
block_column_shapes(Graph *g, Arena *scratch, const PassOptions *o, const Rows *r)
{
	BlockShapes out = {0};
	ExprId cond = 0;
	if (!may_hold_columns(g, scratch, r))
		return out;
	uint32_t along = held_lane_axes(r), rows = ((1u << r->nloop) - 1) << r->nrow;
	unsigned group = group_of(g, scratch, r, along, rows), computed = held_computed_words(g, scratch, r, along | rows);
	unsigned words = held_words(g, scratch, r, rows, computed), each = HELD_LANES, line = group * COLUMN_BYTES / GROUP_BYTES;
	if (apart_turns(g, scratch, r, along | rows) || only_computes(g, scratch, r, rows) || !block_ends_are_multiples(g, scratch, r, group, &cond))
		return out;
	while (each > group && each * (words + apart_columns_words(g, scratch, r, along)) > HELD_WORDS)
		each /= 2;
	unsigned registers = held_registers(g, scratch, r, rows, each);
	line = line < TIR_WARP ? TIR_WARP : line;
	for (unsigned blocks = 1; blocks <= TIR_MAX_CLUSTER; blocks *= blocks == 1 ? 4 : 2)
		add_columns(&out, o, blocks, line, group, each, registers);
	add_columns(&out, o, TIR_MAX_CLUSTER, line / 2, group, each, registers);
	return out;
}
