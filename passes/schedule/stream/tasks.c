/* tasks.c: which rows a block of a GPU has of a stream (slots.h). */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/slots.h"

/* Axes of rows but for the lanes', each value of which has blocks of its own. */
static bool
is_outer(const StreamBuild *b, unsigned a)
{
	return a != b->s->lane && b->s->base >> a & 1;
}

ExprId
slots_blocks(StreamBuild *b, unsigned rows)
{
	return launch_ceil_div(b->l.g, b->rows, rows);
}

ExprId
slots_task_count(StreamBuild *b, unsigned rows, ExprId strips)
{
	Graph *g = b->l.g;
	ExprId n = expr_binary(g, OP_MUL, slots_blocks(b, rows), strips);
	for (unsigned a = 0; a < b->s->c.npar; a++)
		if (is_outer(b, a))
			n = expr_binary(g, OP_MUL, n, b->s->c.extent[a]);
	return n;
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
		if (is_outer(b, a))
			rest = raster_divide(k, rest, point_launch_expr(l, b->s->c.extent[a]), &l->axis[a]);
	if (grow)
		block = tir_binary(k, OP_SUB, tir_binary(k, OP_SUB, nblock, one), rest);
	b->row0 = tir_binary(k, OP_MUL, block, stream_int(b, rows));
	b->row1 = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, b->row0, stream_int(b, rows)), point_launch_expr(l, b->rows));
	return strip;
}
