/* tasks.c: which rows a block of a GPU has of a stream (slots.h). */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/slots.h"

#include "ir/bugs.h"

/* Axes of rows but for the lanes', each value of which has blocks of its own. */
static bool
is_outer(const Stream *s, unsigned a)
{
	return a != s->lane && s->base >> a & 1;
}

/* Axes of blocks that have what they don't keep in common: what else they have is their elements. */
static bool
is_shared(const StreamBuild *b, unsigned a)
{
	return is_outer(b->s, a) && b->shared >> a & 1;
}

/* Rows of a group, at least 1 and no more than there are; 0: all have the same elements. */
ExprId
stream_group_rows(Graph *g, const Stream *s)
{
	return s->group ? expr_binary(g, OP_MAX, expr_binary(g, OP_MIN, s->group, s->c.extent[s->lane]), expr_int(g, DT_I64, 1)) : 0;
}

/* Along the lanes' axis. Of a group there is one at least. */
static ExprId
blocks_along(Graph *g, const Stream *s, unsigned rows)
{
	ExprId all = s->c.extent[s->lane], group = stream_group_rows(g, s);
	if (!group)
		return launch_ceil_div(g, all, rows);
	ExprId one = expr_int(g, DT_I64, 1), more = expr_binary(g, OP_SUB, expr_binary(g, OP_ADD, all, group), one);
	return expr_binary(g, OP_MUL, expr_binary(g, OP_IDIV, more, group), launch_ceil_div(g, group, rows));
}

static ExprId
times_outer(Graph *g, const Stream *s, ExprId n)
{
	for (unsigned a = 0; a < s->c.npar; a++)
		if (is_outer(s, a))
			n = expr_binary(g, OP_MUL, n, s->c.extent[a]);
	return n;
}

ExprId
stream_blocks(Graph *g, const Stream *s, unsigned rows)
{
	return times_outer(g, s, blocks_along(g, s, rows));
}

static ExprId
blocks_of_group(StreamBuild *b, unsigned rows)
{
	return launch_ceil_div(b->l.g, b->group, rows);
}

ExprId
slots_blocks(StreamBuild *b, unsigned rows)
{
	return blocks_along(b->l.g, b->s, rows);
}

/* --- pairs of sections --- */

/* What caches of a GPU keep of a section's elements, and tasks that it has at least: as many as half of the blocks that a GPU has
 * at once, since blocks whose every task were at the same place of a pair would be the first to end, or the last. */
enum { SECTION_BYTES = 16 << 20, SECTION_TASKS = 128 };

static ExprId
number(StreamBuild *b, int64_t v)
{
	return expr_int(b->l.g, DT_I64, v);
}

static ExprId
ceil_div(StreamBuild *b, ExprId a, ExprId by)
{
	Graph *g = b->l.g;
	return expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, a, expr_binary(g, OP_SUB, by, number(b, 1))), by);
}

static ExprId
point_count(StreamBuild *b)
{
	return times_outer(b->l.g, b->s, number(b, 1));
}

/* Elements of a point's last row, which has the most; where other things than the row decide, as many as it has rows. */
static ExprId
most_elements(StreamBuild *b)
{
	Graph *g = b->l.g;
	const Stream *s = b->s;
	ExprId sub[TG_MAX_AXES], rows = s->c.extent[s->lane];
	for (unsigned a = 0; a < s->c.npar; a++)
		sub[a] = a == s->lane ? expr_binary(g, OP_SUB, rows, number(b, 1)) : expr_axis(g, a);
	ExprId most = expr_subst_axes(g, s->hi, sub, s->c.npar);
	return expr_binary(g, OP_MAX, stream_known_at_launch(g, b->l.scratch, most) ? most : rows, number(b, 1));
}

/* Bytes of all elements of a point, for scores and columns. */
static ExprId
element_bytes(StreamBuild *b)
{
	Graph *g = b->l.g;
	const Stream *s = b->s;
	ExprId n = s->wide < 0 ? number(b, 0) : b->columns;
	for (unsigned k = 0; k < s->nscore; k++)
		n = expr_binary(g, OP_ADD, n, b->terms[k]);
	n = expr_binary(g, OP_MUL, n, number(b, dtype_info[s->factors ? s->factors : s->type].bits / 8));
	return expr_binary(g, OP_MUL, n, most_elements(b));
}

/* Points of two sections. */
static ExprId
pair_points(StreamBuild *b, unsigned rows)
{
	Graph *g = b->l.g;
	ExprId one = number(b, 1), two = number(b, 2), count = point_count(b), blocks = expr_binary(g, OP_MAX, slots_blocks(b, rows), one);
	ExprId kept = expr_binary(g, OP_IDIV, number(b, SECTION_BYTES), expr_binary(g, OP_MAX, element_bytes(b), one));
	kept = expr_binary(g, OP_MAX, kept, ceil_div(b, number(b, SECTION_TASKS), blocks));
	ExprId pairs = ceil_div(b, count, expr_binary(g, OP_MUL, kept, two));
	return expr_binary(g, OP_MAX, ceil_div(b, count, expr_binary(g, OP_MAX, pairs, one)), one);
}

static ExprId
pair_tasks(StreamBuild *b, unsigned rows)
{
	return expr_binary(b->l.g, OP_MAX, expr_binary(b->l.g, OP_MUL, pair_points(b, rows), slots_blocks(b, rows)), number(b, 1));
}

/* --- tasks --- */

void
slots_bind_tasks(StreamBuild *b, unsigned rows, ExprId strips)
{
	point_launch_expr(&b->l, slots_blocks(b, rows));
	point_launch_expr(&b->l, strips);
	point_launch_expr(&b->l, b->rows);
	if (b->group) {
		point_launch_expr(&b->l, b->group);
		point_launch_expr(&b->l, blocks_of_group(b, rows));
	}
	if (slots_grow(b)) {
		point_launch_expr(&b->l, point_count(b));
		point_launch_expr(&b->l, pair_points(b, rows));
		point_launch_expr(&b->l, pair_tasks(b, rows));
	}
}

ExprId
slots_task_count(StreamBuild *b, unsigned rows, ExprId strips)
{
	Graph *g = b->l.g;
	return times_outer(g, b->s, expr_binary(g, OP_MUL, slots_blocks(b, rows), strips));
}

/* The last group may have fewer rows; a block of it that has none takes its last row once more. */
static void
open_rows(StreamBuild *b, ValId block, unsigned rows)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId end = point_launch_expr(l, b->rows), size = stream_int(b, rows), of_group = block;
	if (b->group && !BUG(stream_group_crossed)) {
		ValId group = point_launch_expr(l, b->group);
		ValId first = raster_divide(k, block, point_launch_expr(l, blocks_of_group(b, rows)), &of_group);
		first = tir_binary(k, OP_MUL, first, group);
		end = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, group), end);
		b->row0 = tir_binary(k, OP_ADD, first, tir_binary(k, OP_MUL, of_group, size));
		b->row0 = tir_binary(k, OP_MIN, b->row0, tir_binary(k, OP_SUB, end, stream_int(b, 1)));
	} else {
		b->row0 = tir_binary(k, OP_MUL, block, size);
	}
	b->row1 = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, b->row0, size), end);
}

/* Of points whose later rows have more elements: as many as caches keep the elements of are a section. In the first section of
 * two the shortest blocks of all its points come first, in the second one the longest: so who takes every n-th task has as many
 * elements as anybody, and ends with short ones. Which block of which point it is. */
static ValId
open_section(StreamBuild *b, ValId task, unsigned rows, ValId *point)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId blocks = point_launch_expr(l, slots_blocks(b, rows)), points = point_launch_expr(l, pair_points(b, rows)), within, odd;
	ValId first = tir_binary(k, OP_MUL, raster_divide(k, task, point_launch_expr(l, pair_tasks(b, rows)), &within), points);
	points = tir_binary(k, OP_MIN, points, tir_binary(k, OP_SUB, point_launch_expr(l, point_count(b)), first));
	ValId half = raster_divide(k, points, stream_int(b, 2), &odd), begin = tir_binary(k, OP_MUL, half, blocks);
	ValId second = tir_binary(k, OP_LE, begin, within);
	within = tir_select(k, second, tir_binary(k, OP_SUB, within, begin), within);
	first = tir_select(k, second, tir_binary(k, OP_ADD, first, half), first);
	ValId block = raster_divide(k, within, tir_select(k, second, tir_binary(k, OP_SUB, points, half), half), point);
	*point = tir_binary(k, OP_ADD, first, *point);
	ValId last = tir_binary(k, OP_SUB, blocks, stream_int(b, 1));
	return tir_select(k, second, tir_binary(k, OP_SUB, last, block), block);
}

/* Where all rows have as many elements, a point's blocks follow each other, and find its elements in the cache. */
ValId
slots_open_task(StreamBuild *b, ValId task, unsigned rows, ExprId strips)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId strip, block, point, rest = raster_divide(k, task, point_launch_expr(l, strips), &strip);
	if (slots_grow(b))
		block = open_section(b, rest, rows, &point);
	else
		point = raster_divide(k, rest, point_launch_expr(l, slots_blocks(b, rows)), &block);
	for (unsigned n = 0; n < 2; n++) /* those that share come first */
		for (unsigned a = b->s->c.npar; a-- > 0;)
			if (is_outer(b->s, a) && is_shared(b, a) == !n)
				point = raster_divide(k, point, point_launch_expr(l, b->s->c.extent[a]), &l->axis[a]);
	open_rows(b, block, rows);
	return strip;
}

/* --- as tiles of a product are taken (contract/raster.c) --- */

static ExprId
shared_count(StreamBuild *b)
{
	ExprId n = expr_int(b->l.g, DT_I64, 1);
	for (unsigned a = 0; a < b->s->c.npar; a++)
		if (is_shared(b, a))
			n = expr_binary(b->l.g, OP_MUL, n, b->s->c.extent[a]);
	return n;
}

void
slots_bind_raster(StreamBuild *b)
{
	point_launch_expr(&b->l, shared_count(b));
}

void
slots_open_raster(StreamBuild *b, ValId task, unsigned rows)
{
	Point *l = &b->l;
	RasterTile t = raster_tile(l->tir, task, point_launch_expr(l, slots_blocks(b, rows)), point_launch_expr(l, shared_count(b)));
	for (unsigned a = b->s->c.npar; a-- > 0;) {
		ValId *of = is_shared(b, a) ? &t.column : &t.batch;
		if (is_outer(b->s, a))
			*of = raster_divide(l->tir, *of, point_launch_expr(l, b->s->c.extent[a]), &l->axis[a]);
	}
	open_rows(b, t.row, rows);
}
