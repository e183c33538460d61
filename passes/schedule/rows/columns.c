/* columns.c: columns that the threads of a block, or of a cluster, hold: COLRED kernels whose lanes are rows of so many
 * columns (ir/tir.h), all rows that there are in one vector.
 *
 * So each phase is one vector, as of a held row: what one phase read or computed is in registers for the next, and nothing is
 * read twice. Where columns have been folded all rows have the result, and what is made of it is the same in each; the
 * first row's lanes store it. A launch knows how many rows there are, and that there is one. */
#include "passes/schedule/rows/build.h"

#include "ir/bugs.h"

/* A lane's place, or that of the group that it is in. */
static ValId
places(RowBuild *b, DType t)
{
	const TirKernel *k = b->l->tir;
	return tir_emit(b->l->tir, OP_IOTA, tir_vector(t, b->l->lanes), k->group > 1 ? k->group : 0, NULL, 0);
}

ValId
rows_columns_of(RowBuild *b, ValId begin, ValId end)
{
	TirKernel *k = b->l->tir;
	ValId column = tir_binary(k, OP_IMOD, places(b, DT_I32), tir_int(k, DT_I32, k->columns));
	ValId there = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, end, begin), rows_int(b, k->columns));
	return tir_binary(k, OP_LT, column, tir_cast(k, DT_I32, there));
}

ValId
rows_first_row(RowBuild *b)
{
	TirKernel *k = b->l->tir;
	return tir_binary(k, OP_AND, b->l->mask, tir_binary(k, OP_LT, places(b, DT_I32), tir_int(k, DT_I32, k->columns)));
}

ValId
rows_lane_row(RowBuild *b)
{
	TirKernel *k = b->l->tir;
	return tir_cast(k, DT_I64, tir_binary(k, OP_IDIV, places(b, DT_U32), tir_int(k, DT_U32, k->columns)));
}

void
rows_run_columns(RowBuild *b, unsigned phase)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId lo, hi, mask = l->mask, columns = rows_int(b, k->columns);
	rows_loop_ends(b, phase, &lo, &hi);
	ValId there = point_block_mask(l, rows_int(b, 0), tir_binary(k, OP_MUL, hi, columns));
	l->axis[b->r->phase[phase].loop[0]] = rows_lane_row(b);
	l->mask = tir_binary(k, OP_AND, mask, there);
	rows_phase_point(b, phase, rows_lane_axis(b), b->base, 0);
	l->mask = mask;
	rows_put_touched(b, phase, lo, hi);
}
