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

/* Where later rows have more elements, the last blocks of all points come first, and the shortest last: who takes every
 * n-th task has as many elements as anybody. Else a point's blocks follow each other, and find its elements in the cache. */
ValId
slots_open_task(StreamBuild *b, ValId task, unsigned rows, ExprId strips)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	bool grow = slots_grow(b);
	ValId strip, block, nblock = point_launch_expr(l, slots_blocks(b, rows)), one = stream_int(b, 1);
	ValId rest = raster_divide(k, task, point_launch_expr(l, strips), &strip);
	if (!grow)
		rest = raster_divide(k, rest, nblock, &block);
	for (unsigned a = b->s->c.npar; a-- > 0;)
		if (is_outer(b->s, a))
			rest = raster_divide(k, rest, point_launch_expr(l, b->s->c.extent[a]), &l->axis[a]);
	if (grow)
		block = tir_binary(k, OP_SUB, tir_binary(k, OP_SUB, nblock, one), rest);
	open_rows(b, block, rows);
	return strip;
}

/* --- as tiles of a product are taken (contract/raster.c) --- */

/* Axes of rows whose queries are the same: what else they have is their elements. */
static bool
is_shared(const StreamBuild *b, unsigned a)
{
	uint32_t axes = 0;
	for (unsigned k = 0; k < b->s->nscore; k++)
		axes |= expr_axes(b->l.g, b->l.scratch, b->s->score[k].query);
	return is_outer(b->s, a) && !(axes >> a & 1);
}

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
