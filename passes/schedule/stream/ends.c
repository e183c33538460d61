/* ends.c: which elements a block's rows have (range.c says which a row has).
 *
 * An end that only grows, or only falls, with the row is that of the first row or of the last; any other is asked of all. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/slots.h"

typedef enum { STAYS = 0, GROWS = 1, FALLS = 2, EITHER = 3 } Course;

static Course
turned(Course c)
{
	return c == GROWS ? FALLS : c == FALLS ? GROWS : c;
}

/* How e goes as the axis goes on. */
static Course
course_of(Graph *g, Arena *scratch, ExprId e, unsigned axis)
{
	const Expr p = *expr_get(g, e);
	if (!(expr_axes(g, scratch, e) >> axis & 1))
		return STAYS;
	if (p.op == OP_AXIS)
		return GROWS;
	if (p.op != OP_ADD && p.op != OP_SUB && p.op != OP_MIN && p.op != OP_MAX)
		return EITHER;
	Course a = course_of(g, scratch, expr_arg(g, e, 0), axis), b = course_of(g, scratch, expr_arg(g, e, 1), axis);
	return (Course)(a | (p.op == OP_SUB ? turned(b) : b));
}

static ValId
end_at(StreamBuild *b, ExprId e, ValId row)
{
	Point *l = &b->l;
	uint32_t mark = point_mark(l);
	l->axis[b->s->lane] = row;
	ValId v = point_value(l, e, true).re;
	point_release(l, mark);
	return v;
}

/* An end as a number of 32 bits, of elements that are counted in as many: any beyond those is one beyond them. */
static ValId
in_32_bits(StreamBuild *b, ValId end)
{
	TirKernel *k = b->l.tir;
	end = tir_binary(k, OP_MIN, tir_binary(k, OP_MAX, end, stream_int(b, -1)), stream_int(b, INT32_MAX));
	return tir_cast(k, DT_I32, end);
}

/* The least or most of some rows, of which the threads of a warp ask some each, all at once. */
static ValId
end_of_all(StreamBuild *b, ExprId e, bool most, ValId first, ValId last, unsigned rows, ValId lane)
{
	TirKernel *k = b->l.tir;
	Op op = most ? OP_MAX : OP_MIN;
	ValId v = 0, own = tir_binary(k, OP_ADD, first, lane);
	for (unsigned n = 0; n < rows; n += TIR_WARP) {
		ValId row = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, own, stream_int(b, n)), last), end = end_at(b, e, row);
		v = v ? tir_binary(k, op, v, end) : end;
	}
	DType t = b->l.short_axes >> b->s->stream & 1 ? DT_I32 : DT_I64;
	v = t == DT_I32 ? in_32_bits(b, v) : v;
	for (unsigned bit = 1; bit < TIR_WARP; bit *= 2)
		v = tir_binary(k, op, v, tir_emit(k, OP_SHUFFLE, tir_scalar(t), bit, &v, 1));
	return t == DT_I32 ? tir_cast(k, DT_I64, v) : v;
}

static ValId
end_of(StreamBuild *b, ExprId e, bool most, ValId first, ValId last, unsigned rows, ValId lane)
{
	Course c = course_of(b->l.g, b->l.scratch, e, b->s->lane);
	if (c == EITHER)
		return end_of_all(b, e, most, first, last, rows, lane);
	return end_at(b, e, (c == GROWS) == most ? last : first);
}

void
slots_hull(StreamBuild *b, ValId first, ValId last, unsigned rows, ValId lane, ValId *begin, ValId *end)
{
	*begin = end_of(b, b->s->lo, false, first, last, rows, lane);
	*end = end_of(b, b->s->hi, true, first, last, rows, lane);
}

void
slots_core(StreamBuild *b, ValId first, ValId last, unsigned rows, ValId lane, ValId *begin, ValId *end)
{
	*begin = b->s->rest ? 0 : end_of(b, b->s->lo, true, first, last, rows, lane);
	*end = b->s->rest ? 0 : end_of(b, b->s->hi, false, first, last, rows, lane);
}

bool
slots_ask_all(StreamBuild *b)
{
	Graph *g = b->l.g;
	return course_of(g, b->l.scratch, b->s->lo, b->s->lane) == EITHER || course_of(g, b->l.scratch, b->s->hi, b->s->lane) == EITHER;
}

bool
slots_grow(StreamBuild *b)
{
	Graph *g = b->l.g;
	return course_of(g, b->l.scratch, b->s->hi, b->s->lane) == GROWS && course_of(g, b->l.scratch, b->s->lo, b->s->lane) == STAYS;
}
