/* turn.c: tensors that a MAP kernel of a processor reads across its lanes are read along their memory, a
 * square of as many vectors as each has lanes, and turned in registers (rows.h).
 *
 * A vector of elements that lie a row apart is as many loads as lanes, and rows that are a multiple of 4096 bytes
 * apart share a set of the first cache, which then keeps none of them for the next vector. A square is one load a
 * vector, each of a whole line, and two shuffles a vector for each bit of a lane's number. The elements of the
 * result that a square feeds are written out side by side, so only short ones take it. What is left beside the
 * squares is read as it lies.
 *
 * What a square reads is read before anything of it is written, and whether the result wants it or not: tile.c
 * says which reads allow that. */
#include "passes/schedule/rows/build.h"

enum { MOST_LANES = 16, LINE_BYTES = 64 };

static ValId
has_bit(TirKernel *k, unsigned lanes, unsigned bit)
{
	ValId number = tir_emit(k, OP_IOTA, tir_vector(DT_U32, lanes), 0, NULL, 0);
	ValId part = tir_binary(k, OP_BAND, number, tir_int(k, DT_U32, bit));
	return tir_binary(k, OP_NE, part, tir_int(k, DT_U32, 0));
}

static ValId
slide(TirKernel *k, ValId a, unsigned by)
{
	return tir_emit(k, OP_SLIDE, tir_inst(k, a)->type, by, (ValId[]){a, a}, 2);
}

/* Lane m of vector n becomes lane n of vector m: one bit of both after the other. */
static void
turn(TirKernel *k, ValId *v, unsigned n)
{
	for (unsigned bit = 1; bit < n; bit *= 2) {
		ValId odd = has_bit(k, n, bit);
		for (unsigned u = 0; u < n; u++) {
			if (u & bit)
				continue;
			ValId even = v[u], other = v[u | bit];
			v[u] = tir_select(k, odd, slide(k, other, n - bit), even);
			v[u | bit] = tir_select(k, odd, other, slide(k, even, bit));
		}
	}
}

/* The rows of tile n's square at (base, column), as vectors along the blocked axis. */
static void
load_square(RowBuild *b, unsigned n, ValId column, ValId *row)
{
	Point *l = b->l;
	unsigned lane = rows_lane_axis(b), block = b->r->block - 1u;
	point_set_lanes(l, l->lanes, block);
	l->axis[block] = column;
	for (unsigned u = 0; u < l->lanes; u++) {
		uint32_t mark = point_mark(l);
		l->axis[lane] = u ? tir_binary(l->tir, OP_ADD, b->base, rows_int(b, u)) : b->base;
		row[u] = point_value(l, b->r->tile[n], false).re;
		point_release(l, mark);
	}
	point_set_lanes(l, l->lanes, lane);
	l->axis[lane] = b->base;
}

static void
run_square(RowBuild *b, ValId column)
{
	Point *l = b->l;
	ValId row[ROWS_MAX_TILES][MOST_LANES];
	for (unsigned n = 0; n < b->r->ntile; n++) {
		load_square(b, n, column, row[n]);
		turn(l->tir, row[n], l->lanes);
	}
	for (unsigned u = 0; u < l->lanes; u++) {
		uint32_t mark = point_mark(l);
		l->axis[b->r->block - 1u] = u ? tir_binary(l->tir, OP_ADD, column, rows_int(b, u)) : column;
		for (unsigned n = 0; n < b->r->ntile; n++)
			point_place(l, rows_stand_in(l->g, b->r, n), row[n][u]);
		rows_run_phases(b, 1);
		point_release(l, mark);
	}
}

/* One vector of each value of the blocked axis from lo to hi, read across. */
static void
run_columns(RowBuild *b, ValId lo, ValId hi)
{
	Point *l = b->l;
	ValId *column = &l->axis[b->r->block - 1u];
	*column = tir_for(l->tir, lo, hi, rows_int(b, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	l->axis[rows_lane_axis(b)] = b->base;
	for (unsigned n = 0; n < b->r->ntile; n++)
		point_place(l, rows_stand_in(l->g, b->r, n), point_value(l, b->r->tile[n], false).re);
	rows_run_phases(b, 1);
	point_release(l, mark);
	tir_end_for(l->tir, NULL, 0);
}

/* lo + the multiple of n that is nearest below hi - lo */
static ValId
last_whole(RowBuild *b, ValId lo, ValId hi, ValId n)
{
	TirKernel *k = b->l->tir;
	ValId whole = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, hi, lo), n);
	return tir_binary(k, OP_ADD, lo, tir_binary(k, OP_MUL, whole, n));
}

/* How many squares side by side along the lanes fill lines of the result. A line that is written by halves, with others
 * between them, is written twice where it goes past the caches. */
static unsigned
squares_of_line(const RowBuild *b)
{
	unsigned bytes = LINE_BYTES;
	for (unsigned m = 0; m < b->r->nmember; m++)
		if (b->r->member[m].stored)
			bytes = dtype_info[b->l->g->tensor.at[b->r->member[m].t].dtype].bits / 8u * b->l->lanes;
	return bytes < LINE_BYTES ? 2 : 1;
}

/* Whole squares, `side` of them side by side: rows of memory are read from end to end. */
static void
run_squares_from(RowBuild *b, ValId begin, ValId end, ValId columns, unsigned side)
{
	TirKernel *k = b->l->tir;
	ValId n = rows_int(b, b->l->lanes);
	ValId first = tir_for(k, begin, end, rows_int(b, (int64_t)side * b->l->lanes), NULL, 0);
	uint32_t mark = point_mark(b->l);
	ValId column = tir_for(k, b->block_lo, columns, n, NULL, 0);
	for (unsigned s = 0; s < side; s++) {
		b->base = s ? tir_binary(k, OP_ADD, first, rows_int(b, (int64_t)s * b->l->lanes)) : first;
		run_square(b, column);
	}
	tir_end_for(k, NULL, 0);
	point_release(b->l, mark);
	tir_end_for(k, NULL, 0);
}

void
rows_run_squares(RowBuild *b, ValId begin, ValId end)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	unsigned side = squares_of_line(b);
	ValId n = rows_int(b, l->lanes), whole = last_whole(b, begin, end, n);
	ValId lines = side > 1 ? last_whole(b, begin, end, rows_int(b, (int64_t)side * l->lanes)) : whole;
	ValId columns = last_whole(b, b->block_lo, b->block_hi, n);
	run_squares_from(b, begin, lines, columns, side);
	if (side > 1)
		run_squares_from(b, lines, whole, columns, 1);
	b->base = tir_for(k, begin, whole, n, NULL, 0);
	uint32_t mark = point_mark(l);
	run_columns(b, columns, b->block_hi);
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
	b->base = tir_for(k, whole, end, n, NULL, 0);
	mark = point_mark(l);
	l->mask = point_block_mask(l, b->base, end);
	run_columns(b, b->block_lo, b->block_hi);
	l->mask = 0;
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}
