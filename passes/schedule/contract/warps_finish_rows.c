/* warps_finish_rows.c: what is made of a tile's sums (warps_finish.c) where the output's memory goes along an axis of the rows, as
 * that of a convolution with channels first: a warp's lanes have a row each, and go through columns, some of which are finished
 * together. Rows are a box, whose last axis runs first: lanes side by side store side by side. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/side.h"
#include "passes/schedule/contract/warps.h"

#include "ir/bugs.h"

enum { AT_ONCE = 8, WARPS = WARPS_THREADS / TIR_WARP };

typedef struct {
	Warps *x;
	Side side;
	ValId row, first; /* the lane's row, and the first one of its columns, in the tile */
} Finish;

static ValId
has_row(const Finish *f)
{
	return BUG(warp_tiles_unmasked) ? tir_int(f->x->l.tir, DT_BOOL, 1) : window_has_row(f->x->window, f->row);
}

static void
enter_column(const Finish *f, ValId column)
{
	indices_at(&f->x->l, &f->x->columns, warps_op(f->x, OP_ADD, f->x->column0, column));
}

static void
load_sums(const Finish *f, ValId column, unsigned n, ValId *sum)
{
	TirKernel *k = f->x->l.tir;
	for (unsigned i = 0; i < n; i++) {
		ValId at[2] = {f->row, warps_op(f->x, OP_ADD, column, warps_int(f->x, i))};
		if (n % MOST_SIDE) {
			sum[i] = tir_load(k, f->x->staged, at, 0, 0, 0);
			continue;
		}
		ValId all = tir_load(k, f->x->staged, at, 0, TIR_LANES_ALONG(1), MOST_SIDE);
		for (unsigned e = 0; e < MOST_SIDE; e++)
			sum[i + e] = tir_emit(k, OP_LANE, tir_scalar(DT_F32), e, &all, 1);
		i += MOST_SIDE - 1;
	}
}

/* Those that others may have spoilt, again, if what they add up to is no number. */
static void
mend_sums(const Finish *f, ValId column, unsigned n, ValId *sum)
{
	Warps *x = f->x;
	Point *l = &x->l;
	TirKernel *k = l->tir;
	ValId all = sum[0];
	for (unsigned i = 1; i < n; i++)
		all = warps_op(x, OP_ADD, all, sum[i]);
	tir_if(k, warps_op(x, OP_NE, all, all));
	ValId c = warps_op(x, OP_ADD, column, tir_for(k, warps_int(x, 0), warps_int(x, n), warps_int(x, 1), NULL, 0));
	uint32_t mark = point_mark(l);
	window_enter_row(x->window, f->row);
	enter_column(f, c);
	absent_mend(l, &x->absent, x->staged, (ValId[]){f->row, c});
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
	ValId again[AT_ONCE];
	load_sums(f, column, n, again);
	tir_else(k, again, n);
	tir_end_if(k, sum, n);
}

/* The row's elements of so many columns, from this one on, which the output has. */
static void
finish_some(const Finish *f, ValId column, unsigned n)
{
	Warps *x = f->x;
	ValId sum[AT_ONCE];
	PointVal done[AT_ONCE];
	load_sums(f, column, n, sum);
	if (absent_spoils(&x->absent))
		mend_sums(f, column, n, sum);
	window_enter_row(x->window, f->row);
	for (unsigned i = 0; i < n; i++) {
		enter_column(f, warps_op(x, OP_ADD, column, warps_int(x, i)));
		side_finish(&f->side, &sum[i], &done[i]);
	}
	for (unsigned i = 0; i < n; i++) {
		enter_column(f, warps_op(x, OP_ADD, column, warps_int(x, i)));
		side_store(&f->side, &done[i]);
	}
}

static ValId
has_column(const Finish *f, ValId column)
{
	return warps_op(f->x, OP_LT, warps_op(f->x, OP_ADD, f->x->column0, column), f->x->columns.all);
}

bool
warps_go_along_rows(const Warps *x)
{
	return x->window && x->columns.axis[x->columns.naxis - 1] + 1u != x->l.node->npar;
}

void
warps_finish_rows(Warps *x)
{
	Finish f = {.x = x};
	TirKernel *k = x->l.tir;
	unsigned groups = x->plan->tile_rows / TIR_WARP, columns = x->plan->tile_columns / (WARPS / groups);
	ValId group, part = raster_divide(k, x->warp, warps_int(x, groups), &group), one = warps_int(x, 1);
	side_begin(&f.side, &x->l, 1, x->columns.axis[x->columns.naxis - 1]);
	f.row = warps_op(x, OP_ADD, warps_op(x, OP_MUL, group, warps_int(x, TIR_WARP)), x->lane);
	f.first = warps_op(x, OP_MUL, part, warps_int(x, columns));
	ValId step = tir_for(k, warps_int(x, 0), warps_int(x, columns), warps_int(x, AT_ONCE), NULL, 0);
	ValId column = warps_op(x, OP_ADD, f.first, step);
	tir_if(k, has_row(&f));
	tir_if(k, has_column(&f, warps_op(x, OP_ADD, column, warps_int(x, AT_ONCE - 1))));
	finish_some(&f, column, AT_ONCE);
	tir_else(k, NULL, 0);
	column = warps_op(x, OP_ADD, column, tir_for(k, warps_int(x, 0), warps_int(x, AT_ONCE), one, NULL, 0));
	tir_if(k, BUG(warp_tiles_unmasked) ? tir_int(k, DT_BOOL, 1) : has_column(&f, column));
	finish_some(&f, column, 1);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}
