/* stream.c: the STREAM template (stream.h): attention and its kin, as one kernel.
 *
 *     score[row, element] = finish( sum[terms]( query[row, term] * key[element, term] ) )
 *     state[row]          = a cascade's accumulators over the elements, anchored
 *     out[row, column]    = of the state, where wide accumulators add weight[row, element] * value[element, column]
 *
 * A task is a block of rows: some strips, each as wide as a register tile. For each tile of elements it
 * packs keys and values once (pack.c), then for each strip: scores by register tiles
 * (tile.c), the narrow accumulators and the weights (fold.c), the columns by register tiles.
 * The scores of a tile never leave the nearest cache.
 *
 * Rows have ranges of elements (range.c): a tile that no row of the task, or of the strip, has
 * an element of is not visited, and one that lies within all of the strip's ranges needs no mask.
 *
 * Tiles begin where the range of the task does, and which rows a task has follows from their number alone:
 * so no bit of a result depends on threads or strides. */
#include "passes/schedule/stream/stream.h"

#include "ir/bugs.h"

/* --- vectors of rows --- */

void
stream_by_rows(StreamBuild *b)
{
	point_set_lanes(&b->l, b->plan->lanes, b->s->lane);
}

void
stream_at_vector(StreamBuild *b, unsigned v)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	if (!b->plan->lanes) {
		l->axis[b->s->lane] = b->row_of[v];
		return;
	}
	ValId before = tir_binary(k, OP_MUL, b->strip, stream_int(b, b->plan->tile_columns));
	ValId row = tir_binary(k, OP_ADD, tir_binary(k, OP_ADD, b->row0, before), stream_int(b, v * b->plan->lanes));
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
	l->copy = v;
	l->axis[b->s->lane] = row;
	l->mask = tir_binary(k, OP_LT, tir_binary(k, OP_ADD, row, iota), b->row1);
}

void
stream_at_group(StreamBuild *b)
{
	if (b->s->group)
		b->l.axis[b->s->lane] = b->row0;
}

/* --- ranges --- */

typedef enum { LEAST_LO, MOST_HI, MOST_LO, LEAST_HI, NHULL } Hull;

static bool
is_max(Hull h)
{
	return h == MOST_HI || h == MOST_LO;
}

/* The largest or least of a vector's lanes. */
static ValId
across(StreamBuild *b, ValId v, Hull h)
{
	TirKernel *k = b->l.tir;
	for (unsigned n = b->plan->lanes / 2u; n; n /= 2) {
		TirType half = n > 1 ? tir_vector(DT_I64, n) : tir_scalar(DT_I64);
		ValId low = tir_emit(k, OP_LANE, half, 0, &v, 1), high = tir_emit(k, OP_LANE, half, (int64_t)n, &v, 1);
		v = tir_binary(k, is_max(h) ? OP_MAX : OP_MIN, low, high);
	}
	return v;
}

/* The ends of each of the strip's rows, kept, and the hull of them; rows that are not there have none. */
static void
find_strip_ends(StreamBuild *b, ValId *hull)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	for (unsigned h = 0; h < NHULL; h++)
		hull[h] = stream_int(b, is_max((Hull)h) ? INT64_MIN : INT64_MAX);
	for (unsigned v = 0; v < b->vectors; v++) {
		uint32_t mark = point_mark(l);
		stream_at_vector(b, v);
		ValId lo = stream_vector(b, point_value(l, b->s->lo, false).re);
		ValId hi = stream_vector(b, point_value(l, b->s->hi, false).re);
		const ValId end[NHULL] = {lo, hi, lo, hi};
		for (unsigned h = 0; h < NHULL; h++) {
			ValId none = stream_int(b, is_max((Hull)h) ? INT64_MIN : INT64_MAX);
			ValId x = across(b, tir_select(k, l->mask, end[h], stream_vector(b, none)), (Hull)h);
			hull[h] = tir_binary(k, is_max((Hull)h) ? OP_MAX : OP_MIN, hull[h], x);
		}
		for (unsigned e = 0; e < 2; e++) {
			const ValId at[3] = {stream_int(b, e), b->strip, stream_int(b, v * l->lanes)};
			tir_store(k, b->ends, end[e], at, 0, TIR_LANES_ALONG(2));
		}
		point_release(l, mark);
	}
}

/* The task's range. */
static void
find_ends(StreamBuild *b, ValId *lo, ValId *hi)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId ends[2] = {stream_int(b, INT64_MAX), stream_int(b, INT64_MIN)}, hull[NHULL];
	stream_by_rows(b);
	if (!b->s->ragged) {
		*lo = point_value(l, b->s->lo, false).re;
		*hi = point_value(l, b->s->hi, false).re;
		return;
	}
	b->strip = tir_for(k, stream_int(b, 0), b->nstrip, stream_int(b, 1), ends, 2);
	find_strip_ends(b, hull);
	for (unsigned h = 0; h < NHULL; h++) {
		const ValId at[2] = {b->strip, stream_int(b, h)};
		tir_store(k, b->hull, hull[h], at, 0, 0);
	}
	ends[0] = tir_binary(k, OP_MIN, ends[0], hull[LEAST_LO]);
	ends[1] = tir_binary(k, OP_MAX, ends[1], hull[MOST_HI]);
	tir_end_for(k, ends, 2);
	*lo = ends[0];
	*hi = ends[1];
}

static void
load_ends(StreamBuild *b, ValId *hull)
{
	TirKernel *k = b->l.tir;
	for (unsigned h = 0; h < NHULL; h++) {
		const ValId at[2] = {b->strip, stream_int(b, h)};
		hull[h] = tir_load(k, b->hull, at, 0, 0, 0);
	}
	for (unsigned v = 0; v < b->vectors; v++) {
		ValId at[3] = {stream_int(b, 0), b->strip, stream_int(b, v * b->plan->lanes)};
		b->lo[v] = tir_load(k, b->ends, at, 0, TIR_LANES_ALONG(2), b->plan->lanes);
		at[0] = stream_int(b, 1);
		b->hi[v] = tir_load(k, b->ends, at, 0, TIR_LANES_ALONG(2), b->plan->lanes);
	}
}

/* --- a tile --- */

static void
add_columns(StreamBuild *b, bool absent)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0);
	for (unsigned n = 0; n < b->s->pass->nacc; n++) {
		if (!b->s->acc[n].wide)
			continue;
		if (absent)
			tir_if(k, tir_load(k, b->finite, &zero, 0, 0, 0));
		stream_columns(b, n);
		if (!absent)
			continue;
		tir_else(k, NULL, 0);
		stream_columns_where(b, n);
		tir_end_if(k, NULL, 0);
	}
}

/* The strip's share, where it has a range of its own: what of the tile comes behind it is not looked at. */
static void
fold_ragged(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	ValId hull[NHULL], end = tir_binary(k, OP_ADD, b->first, b->count);
	load_ends(b, hull);
	ValId meets = tir_binary(k, OP_AND, tir_binary(k, OP_LT, b->first, hull[MOST_HI]),
	                         tir_binary(k, OP_LT, hull[LEAST_LO], end));
	ValId whole = tir_binary(k, OP_AND, tir_binary(k, OP_LE, hull[MOST_LO], b->first),
	                         tir_binary(k, OP_LE, end, hull[LEAST_HI]));
	if (BUG(stream_edge_unmasked))
		whole = meets;
	tir_if(k, meets);
	ValId count = b->count;
	b->count = tir_binary(k, OP_SUB, tir_binary(k, OP_MIN, end, hull[MOST_HI]), b->first);
	stream_scores(b);
	b->masked = true;
	if (!b->s->rest) {
		tir_if(k, whole);
		b->masked = false;
		stream_fold(b);
		tir_else(k, NULL, 0);
		b->masked = true;
	}
	stream_fold(b);
	if (!b->s->rest)
		tir_end_if(k, NULL, 0);
	add_columns(b, true);
	b->count = count;
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

static void
fold_strip(StreamBuild *b)
{
	if (b->s->ragged) {
		fold_ragged(b);
		return;
	}
	b->masked = b->s->rest != 0;
	stream_scores(b);
	stream_fold(b);
	add_columns(b, b->masked);
}

static void
run_tile(StreamBuild *b, ValId hi)
{
	TirKernel *k = b->l.tir;
	b->count = tir_binary(k, OP_MIN, stream_int(b, b->plan->block_terms), tir_binary(k, OP_SUB, hi, b->first));
	stream_pack_keys(b);
	stream_pack_values(b);
	stream_by_rows(b);
	b->strip = tir_for(k, stream_int(b, 0), b->nstrip, stream_int(b, 1), NULL, 0);
	fold_strip(b);
	tir_end_for(k, NULL, 0);
}

/* --- tasks --- */

/* Axes of rows but for the lanes', each value of which has blocks of its own. */
static bool
is_outer(const StreamBuild *b, unsigned a)
{
	return a != b->s->lane && b->s->base >> a & 1;
}

static ExprId
times_outer(StreamBuild *b, ExprId n)
{
	for (unsigned a = 0; a < b->s->c.npar; a++)
		if (is_outer(b, a))
			n = expr_binary(b->l.g, OP_MUL, n, b->s->c.extent[a]);
	return n;
}

/* How many rows a block has. Elements are packed for each block anew: where the plan has room for large ones, blocks are such if there
 * are tasks enough with them, and a row's terms and columns are so few that a cache has all that wait. By the sizes alone. */
static ExprId
block_size(StreamBuild *b)
{
	enum { ENOUGH = 32, SMALL = 256, WAITING = 256 };
	Graph *g = b->l.g;
	int64_t most = b->plan->block_rows;
	if (most <= SMALL)
		return expr_int(g, DT_I64, most);
	ExprId one = expr_int(g, DT_I64, 1), enough = expr_int(g, DT_I64, ENOUGH * most);
	ExprId large = expr_binary(g, OP_MIN, expr_binary(g, OP_IDIV, times_outer(b, b->rows), enough), one);
	ExprId row = expr_binary(g, OP_MAX, expr_binary(g, OP_ADD, b->terms[0], b->columns), one);
	large = expr_binary(g, OP_MIN, large, expr_binary(g, OP_IDIV, expr_int(g, DT_I64, WAITING), row));
	return expr_binary(g, OP_MUL, expr_binary(g, OP_ADD, large, one), expr_int(g, DT_I64, most / 2));
}

static ExprId
blocks(StreamBuild *b)
{
	Graph *g = b->l.g;
	ExprId size = block_size(b);
	if (expr_get(g, size)->op == OP_CONST)
		return launch_ceil_div(g, b->rows, b->plan->block_rows);
	ExprId more = expr_binary(g, OP_SUB, size, expr_int(g, DT_I64, 1));
	return expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, b->rows, more), size);
}

static void
open_task(StreamBuild *b, ValId task)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId nblock = point_launch_expr(l, blocks(b)), size = point_launch_expr(l, block_size(b));
	ValId block = tir_binary(k, OP_IMOD, task, nblock), width = stream_int(b, b->plan->tile_columns);
	ValId rest = tir_binary(k, OP_IDIV, task, nblock);
	for (unsigned a = b->s->c.npar; a-- > 0;) {
		if (!is_outer(b, a))
			continue;
		ValId extent = point_launch_expr(l, b->s->c.extent[a]);
		l->axis[a] = tir_binary(k, OP_IMOD, rest, extent);
		rest = tir_binary(k, OP_IDIV, rest, extent);
	}
	b->row0 = tir_binary(k, OP_MUL, block, size);
	b->row1 = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, b->row0, size), point_launch_expr(l, b->rows));
	ValId rows = tir_binary(k, OP_SUB, b->row1, b->row0);
	b->nstrip = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, rows, tir_binary(k, OP_SUB, width, stream_int(b, 1))), width);
}

static void
run_task(StreamBuild *b, ValId task)
{
	TirKernel *k = b->l.tir;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0);
	uint32_t mark = point_mark(&b->l);
	open_task(b, task);
	stream_pack_queries(b);
	stream_clear_values(b);
	b->strip = tir_for(k, zero, b->nstrip, one, NULL, 0);
	stream_start(b);
	tir_end_for(k, NULL, 0);
	find_ends(b, &b->begin, &b->end);
	b->first = tir_for(k, b->begin, b->end, stream_int(b, b->plan->block_terms), NULL, 0);
	run_tile(b, b->end);
	tir_end_for(k, NULL, 0);
	b->strip = tir_for(k, zero, b->nstrip, one, NULL, 0);
	stream_finish(b);
	tir_end_for(k, NULL, 0);
	point_release(&b->l, mark);
}

/* --- the kernel --- */

static void
declare_outs(StreamBuild *b)
{
	Point *l = &b->l;
	const StreamOut *out = b->s->out;
	for (unsigned k = 0; k < b->s->nout; k++)
		if (l->places->stored[out[k].t])
			point_declare_output(l, out[k].t);
	for (unsigned k = 0; k < b->s->nout; k++) {
		point_declare(l, l->places->stored[out[k].t] ? out[k].value : 0);
		point_declare(l, l->places->stored[out[k].t] ? out[k].domain : 0);
	}
}

static void
declare(StreamBuild *b)
{
	Point *l = &b->l;
	const Stream *s = b->s;
	for (unsigned k = 0; k < s->nscore; k++)
		point_declare_local(l, s->score[k].t);
	declare_outs(b);
	for (unsigned k = 0; k < s->nscore; k++) {
		point_declare(l, s->score[k].query);
		point_declare(l, s->score[k].key);
		point_declare(l, s->score[k].node.finish);
		point_declare(l, s->score[k].divisor ? s->score[k].scaled.finish : 0);
		point_declare(l, s->score[k].divisor ? s->score[k].quick.finish : 0);
	}
	for (unsigned k = 0; k < s->pass->nacc; k++) {
		point_declare(l, s->acc[k].wide ? s->acc[k].weight : s->acc[k].term);
		point_declare(l, s->acc[k].wide ? s->acc[k].value : 0);
		point_declare(l, s->pass->acc[k].rebase);
	}
	for (unsigned k = 0; k < s->pass->nanchor; k++)
		point_declare(l, s->pass->anchor[k].value);
	point_declare(l, s->lo);
	point_declare(l, s->hi);
	point_declare(l, s->rest);
}

/* Which axes stay inside extents by themselves, as Point.run says. */
static void
note_runs(StreamBuild *b)
{
	Point *l = &b->l;
	const Stream *s = b->s;
	const Axis *j = &s->c.axis[s->stream];
	for (unsigned a = 0; a < s->c.npar; a++)
		l->run[a] = s->c.extent[a];
	const Expr *lo = expr_get(l->g, j->lo);
	if (lo->op == OP_CONST && lo->imm.i >= 0)
		l->run[s->stream] = j->hi;
	for (unsigned k = 0; k < s->nscore; k++) {
		const Axis *x = &s->score[k].node.axis[s->score[k].node.npar];
		lo = expr_get(l->g, x->lo);
		if (lo->op == OP_CONST && lo->imm.i >= 0)
			l->run[s->score[k].term] = x->hi;
	}
}

void
stream_bind_launch(StreamBuild *b)
{
	Point *l = &b->l;
	const Stream *s = b->s;
	for (unsigned a = 0; a < s->c.npar; a++)
		point_launch_expr(l, s->c.extent[a]);
	for (unsigned k = 0; k < s->nscore; k++) {
		point_launch_expr(l, s->score[k].node.axis[s->score[k].node.npar].lo);
		point_launch_expr(l, b->terms[k]);
	}
	point_launch_expr(l, b->columns);
	point_launch_expr(l, b->padded);
	point_launch_expr(l, block_size(b));
	point_launch_expr(l, blocks(b));
}

static ExprId
task_count(StreamBuild *b)
{
	return times_outer(b, blocks(b));
}

Stream *
stream_begin(StreamBuild *b, Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Stream *s = ARENA_NEW(scratch, Stream);
	const KernelPlan *p = &kernel->plan;
	Refusal why;
	RowsFacts facts = {.stored = places->stored, .faulty = places->faulty, .blocks = p->threads > 0};
	if (!stream_plan(g, scratch, &facts, p->node, p->nnode, s, &why))
		bug(g->arena, "stream: %%%u %s", p->node[0], remark_info[why.why].text);
	if (p->long_sums)
		stream_mark_long_sums(g, s);
	*b = (StreamBuild){.s = s, .plan = p};
	Point *l = &b->l;
	point_begin(l, g, scratch, places, kernel);
	l->lanes = p->lanes;
	l->unit = true;
	l->lane_axes = p->lanes ? 1u << s->lane : 0;
	note_runs(b);
	stream_note_low(b);
	declare(b);
	return s;
}

void
stream_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	StreamBuild *b = ARENA_NEW(scratch, StreamBuild);
	const KernelPlan *p = &kernel->plan;
	Point *l = &b->l;
	stream_begin(b, g, scratch, places, kernel);
	b->vectors = p->tile_columns / p->lanes;
	stream_bind_memory(b);
	stream_bind_launch(b);
	stream_bind_divisors(b);
	kernel->ntask = task_count(b);
	ExprId elements = expr_binary(g, OP_MUL, b->columns, expr_binary(g, OP_MIN, b->rows, block_size(b)));
	kernel->grain = task_grain(g, scratch, p, elements);
	ValId lo = tir_emit(l->tir, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(l->tir, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId task = tir_for(l->tir, lo, hi, stream_int(b, 1), NULL, 0);
	run_task(b, task);
	tir_end_for(l->tir, NULL, 0);
}
