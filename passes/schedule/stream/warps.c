/* warps.c: the STREAM template for a GPU whose warps multiply matrices by mma.sync, which all have from sm_80 on: the streams of
 * factors.h, of up to 256 terms and columns, in the form of FlashAttention-2 (Dao 2023).
 *
 * A task is 64 or 128 rows, of which each warp of a block has 16 or 32, and a row four lanes, with two of every eight elements. The
 * block goes through the elements that some of the rows have, a tile at a time. Queries, a tile's keys and its values have a panel
 * each in shared memory, where they are copied to without registers (warps_panel.c): values while queries are multiplied by keys, the
 * next tile's keys while scores are folded (slots.h) and columns added. Where all threads meet, the ones have come and the others
 * were read. Weights stay in registers for the second product, and so do columns (warps_tile.c). What else a thread knows of its task
 * and a tile has little use for it notes in shared memory, since columns and scores take most registers.
 *
 * Elements beyond the task's are 0 in both factors. A tile that all rows have needs no mask.
 *
 * What is rounded: an instruction of sm_80 adds 16 products in two steps of 8 (contract/warps.c), each of which loses less than 9 u S
 * or, where nothing was there before, as much as it has terms. Every other instruction of a score adds to another chain, whose sums
 * are added at last: a chain has m <= n / 2 + 8 terms, and both lose (9/8) m u S together, and the addition u S. That leaves the 3 u S
 * of the n u S that a score's sum may be off by, which roles.c wants for what is done to it, for all n that are multiples of 8 from
 * LEAST_TERMS on; more on GPUs whose instructions add all 16 in one step. Columns of n elements are one chain, that loses (9/8) n u S,
 * and u S with each tile that moves them: n / 8 u S more than a sum of n terms may, which of 2^16 elements is 2^-11 S. They are
 * sums of weights that are rounded to 16 bits, so that whoever rounds what is off by its last bit the other way is off by
 * 2^-10 of a weight of f16, 2^-7 of one of bf16, at most.
 *
 * Copies want rows that begin at multiples of 16 bytes, and as many terms and columns as fill them: a launch takes another kernel
 * for others. Where memory runs along the elements, those of a task have to begin at such multiples too. */
#include "passes/schedule/stream/warps.h"

#include <string.h>

#include "ir/bugs.h"
#include "passes/schedule/contract/raster.h"

enum { LEAST_TERMS = 24, INDEX_BITS = 31 };

/* Tiles in the order in which they are asked for: of a warp with two blocks of rows, where those have registers for so many elements,
 * or with one. */
static const struct {
	uint16_t terms, columns, of_two, of_one;
} tile[STREAM_WARPS_PLANS] = {
	{64, 64, 64, 64},
	{96, 96, 0, 64},
	{128, 128, 32, 64},
	{192, 128, 0, 64},
	{256, 256, 0, 32},
};

/* --- whether --- */

static int64_t
least_terms(const PassOptions *o)
{
	return o->least_tile ? o->least_tile : LEAST_TERMS;
}

/* Along what the memory of a factor runs: by axis of the stream. */
static unsigned
inner_axis(const StreamElement *e)
{
	return e->turned ? e->own : e->term;
}

/* Whether chunks of what lies along memory begin where the task's rows, or its elements, do. */
static bool
chunks_begin(const Graph *g, const Stream *s, const StreamElement *of)
{
	const Expr *lo = expr_get(g, s->lo);
	bool values = s->wide >= 0 && !of[OF_VALUE].turned, elements = of[OF_KEY].turned || values;
	return !(of[OF_QUERY].turned && s->group) && (!elements || (lo->op == OP_CONST && lo->imm.i % SW_CHUNK == 0));
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	unsigned axis;
	bool any;
} Reads;

static void
note_read(void *user, ExprId e)
{
	Reads *r = user;
	r->any |= expr_get(r->g, e)->op == OP_READ && expr_axes(r->g, r->scratch, e) >> r->axis & 1;
}

/* Whether a thread has registers for two blocks of rows: where all rows' elements begin at a place that is known, without a
 * condition, nothing is read of each, and there are as many columns, if any, as terms. Parts are of few rows. */
static bool
may_be_of_two(const Graph *g, Arena *scratch, const Stream *s, ExprId terms, ExprId columns)
{
	Reads r = {g, scratch, s->stream, false};
	if (columns && columns != terms)
		return false;
	if (s->score[0].node.finish)
		expr_walk(g, scratch, s->score[0].node.finish, note_read, &r);
	return !r.any && !stream_is_parts(g, s) && expr_get(g, s->lo)->op == OP_CONST && !s->rest;
}

unsigned
stream_warps_take(const Graph *g, Arena *scratch, const Stream *s, const bool *stored, const PassOptions *o, KernelPlan *plan)
{
	StreamElement of[NOF];
	unsigned n = 0;
	if (!o->warp_mma || !o->blocks || g->fp == FP_STRICT || !stream_find_elements(g, scratch, s, of) || !chunks_begin(g, s, of))
		return 0;
	ExprId terms = s->score[0].node.axis[s->score[0].node.npar].hi, columns = s->wide < 0 ? 0 : s->c.extent[s->wide];
	bool two = may_be_of_two(g, scratch, s, terms, columns);
	for (unsigned k = 0; k < STREAM_WARPS_PLANS; k++) {
		if (!stream_may_be_in(g, terms, least_terms(o), tile[k].terms) || (columns && !stream_may_be_in(g, columns, 1, tile[k].columns)))
			continue;
		bool twice = two && tile[k].of_two;
		uint16_t rows = twice ? 2 * SW_WARPS * SW_BLOCK : SW_WARPS * SW_BLOCK;
		plan[n++] = (KernelPlan){.tmpl = TMPL_STREAM, .unroll = 1, .pairs = WARP_MMA_TERM_WORDS, .threads = SW_WARPS * TIR_WARP,
		                         .group = stored && columns && slots_side_by_side(g, s, stored) ? SLOTS_SIDE : 1, .resident = 1,
		                         .tile_rows = rows, .tile_columns = tile[k].terms, .block_rows = rows, .block_columns = tile[k].columns,
		                         .block_terms = twice ? tile[k].of_two : tile[k].of_one, .block_tasks = 1};
		if (expr_get(g, terms)->op == OP_CONST && (!columns || expr_get(g, columns)->op == OP_CONST))
			break;
	}
	return n;
}

/* --- the launch --- */

static ExprId
one_strip(StreamBuild *b)
{
	return expr_int(b->l.g, DT_I64, 1);
}

static ExprId
is_in(Graph *g, ExprId e, int64_t least, int64_t most)
{
	ExprId one = expr_int(g, DT_I64, 1), small = expr_binary(g, OP_SUB, one, raster_reaches(g, e, most + 1));
	return least ? expr_binary(g, OP_MUL, raster_reaches(g, e, least), small) : small;
}

static ExprId
is_filled(Graph *g, ExprId e)
{
	ExprId rest = expr_binary(g, OP_IMOD, e, expr_int(g, DT_I64, SW_CHUNK));
	return expr_binary(g, OP_SUB, expr_int(g, DT_I64, 1), expr_binary(g, OP_MIN, rest, expr_int(g, DT_I64, 1)));
}

static void
count_tasks(StreamWarps *x, const PassOptions *o, Kernel *kernel)
{
	StreamBuild *b = &x->s.b;
	Graph *g = b->l.g;
	ExprId n = expr_binary(g, OP_MUL, slots_task_count(b, x->rows, one_strip(b)), is_in(g, b->terms[0], least_terms(o), x->terms));
	for (unsigned k = OF_QUERY; k <= OF_KEY; k++)
		n = expr_binary(g, OP_MUL, n, is_in(g, g->tensor.at[x->of[k].tensor].extent[x->of[k].own], 0, (INT64_C(1) << INDEX_BITS) - 1));
	for (unsigned k = OF_QUERY; k <= (x->columns ? OF_VALUE : OF_KEY); k++)
		n = expr_binary(g, OP_MUL, n, is_filled(g, g->tensor.at[x->of[k].tensor].extent[inner_axis(&x->of[k])]));
	if (!x->of[OF_QUERY].turned || !x->of[OF_KEY].turned)
		n = expr_binary(g, OP_MUL, n, is_filled(g, b->terms[0]));
	if (x->columns)
		n = expr_binary(g, OP_MUL, n, expr_binary(g, OP_MUL, is_filled(g, b->columns), is_in(g, b->columns, 1, x->columns)));
	kernel->ntask = n;
}

/* --- a task --- */

/* When a place is looked up: each has its own, and so has quads_direct.c. */
enum { AT_START = 2, AT_VALUES, AT_SCORES, AT_KEYS, AT_COLUMNS, AT_FOLD, AT_EDGE, AT_END };

static ValId
thread_at(StreamWarps *x, int64_t time)
{
	return tir_emit(x->s.b.l.tir, OP_THREAD, tir_scalar(DT_I64), time, NULL, 0);
}

/* What is noted: the task, its rows, and the elements that all of them have. */
enum { TASK, ROW_FIRST, ROW_LAST, CORE_BEGIN, CORE_END, NOTED };

static void
note(StreamWarps *x, unsigned what, ValId v)
{
	TirKernel *k = x->s.b.l.tir;
	const ValId at[2] = {sw_int(x, what), thread_at(x, AT_START)};
	tir_store(k, x->noted, tir_cast(k, DT_U32, v), at, 0, 0);
}

static ValId
noted(StreamWarps *x, unsigned what, int64_t time)
{
	TirKernel *k = x->s.b.l.tir;
	const ValId at[2] = {sw_int(x, what), thread_at(x, time)};
	return tir_cast(k, DT_I64, tir_load(k, x->noted, at, 0, 0, 0));
}

/* The lane's rows and elements, which no tile keeps for the next one. */
static void
enter_rows(StreamWarps *x, int64_t time)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId lane, quad, warp = raster_divide(k, thread_at(x, time), sw_int(x, TIR_WARP), &lane);
	ValId row = raster_divide(k, lane, sw_int(x, 4), &quad);
	x->right = sw_op(x, OP_MUL, quad, sw_int(x, 2));
	row = sw_op(x, OP_ADD, sw_op(x, OP_ADD, b->row0, sw_op(x, OP_MUL, warp, sw_int(x, x->down * SW_BLOCK))), row);
	for (unsigned v = 0; v < b->vectors; v++) {
		b->row_of[v] = sw_op(x, OP_MIN, sw_op(x, OP_ADD, row, sw_int(x, QUADS_STEP * v)), x->row_last);
		uint32_t mark = point_mark(&b->l);
		stream_at_vector(b, v);
		b->lo[v] = b->s->ragged ? point_value(&b->l, b->s->lo, true).re : 0;
		b->hi[v] = b->s->ragged ? point_value(&b->l, b->s->hi, true).re : 0;
		point_release(&b->l, mark);
	}
}

/* What is in 0 .. 2^31 - 1, so that a register has it. */
static ValId
short_of(StreamWarps *x, ValId v)
{
	TirKernel *k = x->s.b.l.tir;
	return tir_cast(k, DT_I64, tir_cast(k, DT_U32, v));
}

static void
open_task(StreamWarps *x, ValId task, int64_t time)
{
	StreamBuild *b = &x->s.b;
	ValId warp = raster_divide(b->l.tir, thread_at(x, time), sw_int(x, TIR_WARP), &x->lane);
	x->quads.lane = x->lane;
	x->quads.warp_row = sw_op(x, OP_MUL, warp, sw_int(x, x->down * SW_BLOCK));
	slots_open_task(b, task, x->rows, one_strip(b));
	b->row0 = short_of(x, b->row0);
	b->row1 = short_of(x, b->row1);
	x->row_last = x->quads.row_last = short_of(x, sw_op(x, OP_SUB, b->row1, sw_int(x, 1)));
	slots_hull(b, b->row0, x->row_last, x->rows, x->lane, &b->begin, &b->end);
	b->end = short_of(x, sw_op(x, OP_MAX, b->end, sw_int(x, 0)));
	b->begin = short_of(x, sw_op(x, OP_MIN, b->begin, b->end));
}

static void
start(StreamWarps *x)
{
	StreamBuild *b = &x->s.b;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned v = 0; v < b->vectors; v++)
			b->run[k][v] = stream_unit(b, k);
	for (unsigned i = 0; i < SW_WIDE; i++)
		x->wide[i] = tir_float(b->l.tir, DT_F32, 0);
}

static void
copy_queries(StreamWarps *x)
{
	StreamBuild *b = &x->s.b;
	SwPanel *p = &x->panel[OF_QUERY];
	sw_place_copies(x, p, AT_START);
	sw_copy_panel(x, p, (SwRange){b->row0, b->row1}, (SwRange){sw_int(x, 0), point_launch_expr(&b->l, b->terms[0])});
}

/* The keys of the tile that begins there. */
static void
copy_keys(StreamWarps *x, ValId first, int64_t time)
{
	StreamBuild *b = &x->s.b;
	SwPanel *p = &x->panel[OF_KEY];
	SwRange terms = {sw_int(x, 0), point_launch_expr(&b->l, b->terms[0])};
	sw_place_copies(x, p, time);
	sw_copy_panel(x, p, (SwRange){first, b->end}, terms);
}

static void
copy_values(StreamWarps *x)
{
	StreamBuild *b = &x->s.b;
	SwPanel *p = &x->panel[OF_VALUE];
	sw_place_copies(x, p, AT_VALUES);
	sw_copy_panel(x, p, (SwRange){sw_int(x, 0), point_launch_expr(&b->l, b->columns)}, (SwRange){b->first, b->end});
}

/* --- a tile --- */

static ValId
sum_of(StreamSlots *s, unsigned score, unsigned row, unsigned element)
{
	(void)score;
	return ((StreamWarps *)(void *)s)->sum[row * s->nelement + element];
}

enum {
	FOLDED = MAX_ACCS * STREAM_MAX_VECTORS + SLOTS_MAX + STREAM_MAX_VECTORS,
	CARRIED = MAX_ACCS * STREAM_MAX_VECTORS + SW_WIDE
};

static unsigned
move_values(ValId *to, ValId *of, unsigned n, bool back)
{
	memcpy(back ? of : to, back ? to : of, n * sizeof *to);
	return n;
}

/* All that a fold changes: the state, weights, and what columns are multiplied by. */
static unsigned
pack_folded(StreamWarps *x, ValId *v, bool back)
{
	StreamBuild *b = &x->s.b;
	unsigned n = slots_carry(&x->s, v, back);
	if (!x->columns)
		return n;
	n += move_values(v + n, x->s.weight[x->acc], b->vectors * x->s.nelement, back);
	return n + (x->s.factor[x->acc][0] ? move_values(v + n, x->s.factor[x->acc], b->vectors, back) : 0);
}

static unsigned
carry(StreamWarps *x, ValId *v, bool back)
{
	unsigned n = slots_carry(&x->s, v, back);
	return n + (x->columns ? move_values(v + n, x->wide, x->s.b.vectors * x->columns / 4, back) : 0);
}

static void
fold_as(StreamWarps *x, bool exact)
{
	uint32_t mark = point_mark(&x->s.b.l);
	x->s.exact = exact;
	ValId row0 = x->s.b.row0, row_last = x->row_last;
	x->s.b.row0 = noted(x, ROW_FIRST, exact ? AT_FOLD : AT_EDGE);
	x->row_last = noted(x, ROW_LAST, exact ? AT_FOLD : AT_EDGE);
	enter_rows(x, exact ? AT_FOLD : AT_EDGE);
	slots_enter(&x->s, sw_op(x, OP_ADD, x->s.b.first, x->right));
	slots_fold(&x->s, sum_of);
	x->s.b.row0 = row0;
	x->row_last = row_last;
	point_release(&x->s.b.l, mark);
}

/* All that was copied has come, and all threads have read what they were to. */
static void
meet(StreamWarps *x)
{
	tir_async_wait(x->s.b.l.tir, 0);
	tir_emit(x->s.b.l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
}

/* The tile's values have come, and its keys were read. */
static void
start_next(StreamWarps *x)
{
	StreamBuild *b = &x->s.b;
	if (BUG(stream_values_unawaited))
		tir_emit(b->l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
	else if (!BUG(stream_keys_early))
		meet(x);
	copy_keys(x, sw_op(x, OP_ADD, b->first, sw_int(x, x->elements)), AT_KEYS);
	if (BUG(stream_keys_early))
		meet(x);
}

/* Whether all rows have all elements of the tile. */
static ValId
is_whole(StreamWarps *x)
{
	ValId first = x->s.b.first, after = sw_op(x, OP_ADD, first, sw_int(x, x->elements));
	ValId begins = sw_op(x, OP_LE, noted(x, CORE_BEGIN, AT_SCORES), first);
	return sw_op(x, OP_AND, begins, sw_op(x, OP_LE, after, noted(x, CORE_END, AT_SCORES)));
}

/* Threads meet where a branch has begun: before it the assembler would have them meet ahead of all products, whose factors it would
 * keep in registers for that. */
static void
fold_tile(StreamWarps *x)
{
	TirKernel *k = x->s.b.l.tir;
	ValId v[FOLDED], before[FOLDED];
	if (x->s.b.s->rest || BUG(stream_edge_unmasked)) {
		fold_as(x, !x->s.b.s->rest);
		start_next(x);
		return;
	}
	slots_carry(&x->s, before, false);
	tir_if(k, is_whole(x));
	start_next(x);
	fold_as(x, true);
	unsigned n = pack_folded(x, v, false);
	tir_else(k, v, n);
	slots_carry(&x->s, before, true);
	start_next(x);
	fold_as(x, false);
	pack_folded(x, v, false);
	tir_end_if(k, v, n);
	pack_folded(x, v, true);
}

static void
multiply_keys(StreamWarps *x)
{
	sw_place_loads(x, &x->panel[OF_KEY], 0, AT_SCORES);
	sw_place_loads(x, &x->panel[OF_QUERY], x->down, AT_SCORES);
	sw_scores(x);
}

static void
multiply_values(StreamWarps *x)
{
	sw_place_loads(x, &x->panel[OF_VALUE], 0, AT_COLUMNS);
	sw_columns(x);
}

/* What was copied for it has not been waited for. */
static void
run_tile(StreamWarps *x)
{
	meet(x);
	if (x->columns)
		copy_values(x);
	multiply_keys(x);
	fold_tile(x);
	if (x->columns)
		multiply_values(x);
}

static void
run_tiles(StreamWarps *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId carried[CARRIED], begin, end;
	copy_queries(x);
	copy_keys(x, b->begin, AT_START);
	slots_core(b, b->row0, x->row_last, x->rows, x->lane, &begin, &end);
	if (begin) {
		note(x, CORE_BEGIN, sw_op(x, OP_MIN, begin, b->end));
		note(x, CORE_END, sw_op(x, OP_MAX, end, sw_int(x, 0)));
	}
	unsigned n = carry(x, carried, false);
	b->first = short_of(x, tir_for(k, b->begin, b->end, sw_int(x, x->elements), carried, n));
	uint32_t mark = point_mark(&b->l);
	carry(x, carried, true);
	run_tile(x);
	carry(x, carried, false);
	point_release(&b->l, mark);
	tir_end_for(k, carried, n);
	carry(x, carried, true);
	meet(x);
}

static void
run_task(StreamWarps *x, ValId task)
{
	StreamBuild *b = &x->s.b;
	uint32_t mark = point_mark(&b->l);
	open_task(x, task, AT_START);
	note(x, TASK, task);
	note(x, ROW_FIRST, b->row0);
	note(x, ROW_LAST, x->row_last);
	start(x);
	run_tiles(x);
	open_task(x, noted(x, TASK, AT_END), AT_END);
	enter_rows(x, AT_END);
	slots_lower(&x->s);
	slots_join(&x->s);
	stream_find_some(b);
	quads_finish(&x->quads);
	if (!quads_are_direct(&x->quads))
		meet(x);
	point_release(&b->l, mark);
}

/* --- the kernel --- */

static ValId
column_sum(StreamQuads *q, unsigned nth, unsigned column)
{
	StreamWarps *x = (StreamWarps *)(void *)q->s;
	return x->wide[nth * x->columns / 4 + column];
}

/* What is staged of columns takes the place of the panels. */
static void
bind_memory(StreamWarps *x)
{
	TirKernel *k = x->s.b.l.tir;
	unsigned buffer = tir_add_buffer(k, 0, DT_F32, true), words = 0;
	const unsigned own[] = {[OF_QUERY] = x->rows, [OF_KEY] = x->elements, [OF_VALUE] = x->columns};
	for (unsigned n = OF_QUERY; n <= (x->columns ? OF_VALUE : OF_KEY); n++) {
		SwPanel *p = &x->panel[n];
		*p = (SwPanel){.of = &x->of[n], .own = own[n], .terms = n == OF_VALUE ? x->elements : x->terms, .first = words};
		sw_shape_panel(p);
		words += p->own * p->terms / 2;
	}
	k->buffer.at[buffer].shared = words;
	unsigned noted = tir_add_buffer(k, 0, DT_U32, true);
	k->buffer.at[noted].shared = NOTED * SW_WARPS * TIR_WARP;
	ValId one = sw_int(x, 1), threads = sw_int(x, SW_WARPS * TIR_WARP), pitch = sw_int(x, QUADS_PITCH);
	x->quads = (StreamQuads){.s = &x->s, .rows = x->rows, .columns = x->columns, .acc = x->acc, .side = x->s.b.plan->group,
	                         .barrier = TIR_WARP_BARRIER, .sum = column_sum};
	x->memory = tir_view(k, buffer, 1, (ValId[]){sw_int(x, words)}, &one);
	x->noted = tir_view(k, noted, 2, (ValId[]){sw_int(x, NOTED), threads}, (ValId[]){threads, one});
	if (!quads_are_direct(&x->quads))
		x->quads.staged = tir_view(k, buffer, 2, (ValId[]){sw_int(x, x->rows), pitch}, (ValId[]){pitch, one});
	quads_bind_shared(&x->quads);
}

static void
enter_plan(StreamWarps *x, Stream *s)
{
	StreamBuild *b = &x->s.b;
	x->rows = b->plan->tile_rows;
	x->down = x->rows / (SW_WARPS * SW_BLOCK);
	x->terms = b->plan->tile_columns;
	x->columns = s->wide < 0 ? 0 : b->plan->block_columns;
	x->elements = b->plan->block_terms;
	x->acc = x->columns ? (unsigned)stream_wide_acc(s) : 0;
	b->vectors = 2 * x->down;
	b->l.short_axes = 1u << s->lane | 1u << s->stream;
	b->from_zero = true;
	b->beyond = x->columns && !x->of[OF_VALUE].turned;
	x->s.nelement = x->elements / 4;
	for (unsigned e = 0; e < x->s.nelement; e++)
		x->s.offset[e] = 8 * (e / 2) + e % 2;
	x->s.reciprocal = true;
	x->s.most = x->terms;
	x->s.across = 3;
	if (x->columns)
		s->acc[x->acc].weight = stream_unrounded(b->l.g, s->acc[x->acc].weight, s->factors);
}

void
stream_warps_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel)
{
	StreamWarps *x = ARENA_NEW(scratch, StreamWarps);
	StreamBuild *b = &x->s.b;
	TirKernel *k = kernel->tir;
	Stream *s = stream_begin(b, g, scratch, places, kernel);
	if (!stream_find_elements(g, scratch, s, x->of))
		bug(g->arena, "%%%u is no stream for warps", kernel->plan.node[0]);
	enter_plan(x, s);
	x->s.least = least_terms(o);
	slots_begin(&x->s, s);
	stream_bind_sizes(b);
	slots_bind_tasks(b, x->rows, one_strip(b));
	stream_bind_launch(b);
	count_tasks(x, o, kernel);
	point_say_same_memory(&b->l);
	bind_memory(x);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId step = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0);
	run_task(x, tir_for(k, lo, hi, step, NULL, 0));
	tir_end_for(k, NULL, 0);
}
