/* threads_finish.c: what is made of a tile's sums. They go through shared memory, some rows of each thread at a
 * time, so that what finish reads, and the output, are met along the output's rows. Sums of slices are added there, in their order.
 * Blocks of a cluster put theirs where the others reach them; then each adds those of its rows, in the order of the blocks,
 * and finishes them. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/threads.h"

#include "ir/bugs.h"

unsigned
threads_finish_rows(const KernelPlan *p, unsigned elements)
{
	unsigned n = QUAD;
	while (p->tile_rows / threads_rows(p) * n * p->tile_columns * threads_slices(p) > elements)
		n /= 2;
	return n;
}

typedef struct {
	Threads *x;
	unsigned rows;        /* of each thread at a time, a part of a quad */
	unsigned staged;      /* those of a slice */
	ValId turn;
} Finish;

/* The thread's rows of this turn. */
static void
stage_rows(const Finish *f, unsigned turn, const ValId *acc)
{
	Threads *x = f->x;
	TirKernel *k = x->l.tir;
	unsigned columns = threads_columns(x->plan), apart = x->plan->tile_columns / (columns / QUAD);
	unsigned most = 16 / (dtype_info[x->fold.type].bits / 8u);
	ValId row = raster_divide(k, x->row_at, threads_int(x, QUAD), &(ValId){0});
	row = threads_op(x, OP_MUL, row, threads_int(x, f->rows));
	if (threads_slices(x->plan) > 1)
		row = threads_op(x, OP_ADD, row, threads_op(x, OP_MUL, x->warp, threads_int(x, f->staged)));
	for (unsigned r = 0; r < f->rows; r++)
		for (unsigned c = 0; c < columns; c += most) {
			const ValId *from = acc + (turn * f->rows + r) * columns + c;
			ValId all = tir_emit(k, OP_JOIN, tir_vector(x->fold.type, most), 0, from, most);
			ValId column = threads_op(x, OP_ADD, x->column_at, threads_int(x, c / QUAD * apart + c % QUAD));
			const ValId at[2] = {threads_op(x, OP_ADD, row, threads_int(x, r)), column};
			tir_store(k, x->staged, all, at, 0, TIR_LANES_ALONG(1));
		}
}

/* Which turn it is is known as the code runs; which registers it has is not. */
static void
stage_any_rows(const Finish *f, const ValId *acc)
{
	Threads *x = f->x;
	TirKernel *k = x->l.tir;
	unsigned n = threads_rows(x->plan) / f->rows;
	for (unsigned turn = 0; turn + 1 < n; turn++) {
		tir_if(k, threads_op(x, OP_EQ, f->turn, threads_int(x, turn)));
		stage_rows(f, turn, acc);
		tir_else(k, NULL, 0);
	}
	stage_rows(f, n - 1, acc);
	for (unsigned turn = 0; turn + 1 < n; turn++)
		tir_end_if(k, NULL, 0);
}

/* In the tile: the row that is staged as `row`. */
static ValId
row_of(const Finish *f, ValId row)
{
	Threads *x = f->x;
	TirKernel *k = x->l.tir;
	unsigned quads = threads_rows(x->plan) / QUAD;
	ValId inside, part, thread = raster_divide(k, row, threads_int(x, f->rows), &inside);
	ValId quad = raster_divide(k, threads_op(x, OP_MUL, f->turn, threads_int(x, f->rows)), threads_int(x, QUAD), &part);
	ValId at = threads_op(x, OP_MUL, quad, threads_int(x, x->plan->tile_rows / quads));
	at = threads_op(x, OP_ADD, at, threads_op(x, OP_MUL, thread, threads_int(x, QUAD)));
	return threads_op(x, OP_ADD, at, threads_op(x, OP_ADD, part, inside));
}

/* What the slices have for the element staged at this row and column. */
static ValId
load_sum(const Finish *f, ValId row, ValId column)
{
	Threads *x = f->x;
	ValId sum = 0;
	for (unsigned s = 0; s < threads_slices(x->plan); s++) {
		const ValId at[2] = {s ? threads_op(x, OP_ADD, row, threads_int(x, s * f->staged)) : row, column};
		ValId part = tir_load(x->l.tir, x->staged, at, 0, 0, 0);
		sum = s ? threads_op(x, OP_ADD, sum, part) : part;
	}
	return sum;
}

/* What the blocks of the cluster have for this element of the tile. */
static ValId
load_parts(const Finish *f, ValId row, ValId column)
{
	Threads *x = f->x;
	ValId sum = 0, at = threads_op(x, OP_ADD, threads_op(x, OP_MUL, row, threads_int(x, x->plan->tile_columns)), column);
	for (unsigned p = 0; p < x->plan->cluster; p++) {
		ValId part = tir_load(x->l.tir, x->sums, (ValId[]){threads_int(x, p), at}, 0, 0, 0);
		sum = p ? threads_op(x, OP_ADD, sum, part) : part;
	}
	return sum;
}

/* The element staged at this row and column, where the point is at its row. */
static void
finish_element(const Finish *f, ValId row, ValId column)
{
	Threads *x = f->x;
	Point *l = &x->l;
	uint32_t mark = point_mark(l);
	PointVal sum = {.re = x->plan->cluster ? load_parts(f, row, column) : load_sum(f, row, column)};
	indices_at(&x->l, &x->columns, threads_op(x, OP_ADD, x->column0, column));
	point_store(l, l->node->out, element_finish(l, sum, tir_int(l->tir, DT_BOOL, 1), true), l->axis, -1);
	point_release(l, mark);
}

/* Loops over rows of the thread's warp, which takes every so manieth, and makes the point that row; of the output. */
static ValId
open_rows(const Finish *f, ValId *i)
{
	Threads *x = f->x;
	ValId row = tir_for(x->l.tir, threads_int(x, 0), threads_int(x, f->staged), threads_int(x, x->plan->threads / TIR_WARP), NULL, 0);
	row = threads_op(x, OP_ADD, row, x->warp);
	*i = threads_op(x, OP_ADD, x->row0, row_of(f, row));
	return row;
}

/* The same of the rows of a tile that its cluster has which the block is to finish. */
static ValId
open_part(const Finish *f, ValId *i)
{
	Threads *x = f->x;
	unsigned rows = x->plan->tile_rows / x->plan->cluster;
	ValId row = tir_for(x->l.tir, threads_int(x, 0), threads_int(x, rows), threads_int(x, x->plan->threads / TIR_WARP), NULL, 0);
	row = threads_op(x, OP_ADD, row, x->warp);
	row = threads_op(x, OP_ADD, row, threads_op(x, OP_MUL, x->rank, threads_int(x, rows)));
	*i = threads_op(x, OP_ADD, x->row0, row);
	return row;
}

/* The sums of this turn, to where the cluster reaches them. */
static void
gather_rows(const Finish *f)
{
	Threads *x = f->x;
	TirKernel *k = x->l.tir;
	ValId i, row = open_rows(f, &i);
	ValId at = threads_op(x, OP_MUL, row_of(f, row), threads_int(x, x->plan->tile_columns));
	for (unsigned c = 0; c < x->plan->tile_columns; c += TIR_WARP) {
		ValId column = threads_op(x, OP_ADD, x->lane, threads_int(x, c));
		tir_store(k, x->sums, load_sum(f, row, column), (ValId[]){x->rank, threads_op(x, OP_ADD, at, column)}, 0, 0);
	}
	tir_end_for(k, NULL, 0);
}

/* Sums that absent terms have spoilt, by the lanes that finish them. */
static void
mend_rows(const Finish *f)
{
	Threads *x = f->x;
	Point *l = &x->l;
	TirKernel *k = l->tir;
	ValId i, row = open_rows(f, &i), width = threads_int(x, x->plan->tile_columns);
	ValId column = threads_op(x, OP_ADD, x->lane, tir_for(k, threads_int(x, 0), width, threads_int(x, TIR_WARP), NULL, 0));
	uint32_t mark = point_mark(l);
	tir_if(k, threads_op(x, OP_AND, threads_op(x, OP_LT, i, x->rows.all),
	                     threads_op(x, OP_LT, threads_op(x, OP_ADD, x->column0, column), x->columns.all)));
	indices_at(l, &x->rows, i);
	indices_at(l, &x->columns, threads_op(x, OP_ADD, x->column0, column));
	absent_mend(l, &x->absent, x->staged, (ValId[]){row, column});
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

/* The lanes of a warp are side by side in a row. */
static void
finish_rows(const Finish *f, bool whole)
{
	Threads *x = f->x;
	TirKernel *k = x->l.tir;
	ValId i, row = x->plan->cluster ? open_part(f, &i) : open_rows(f, &i);
	bool masked = !whole && !BUG(thread_tiles_unmasked);
	if (masked)
		tir_if(k, threads_op(x, OP_LT, i, x->rows.all));
	indices_at(&x->l, &x->rows, i);
	for (unsigned c = 0; c < x->plan->tile_columns; c += TIR_WARP) {
		ValId column = threads_op(x, OP_ADD, x->lane, threads_int(x, c));
		if (masked)
			tir_if(k, threads_op(x, OP_LT, threads_op(x, OP_ADD, x->column0, column), x->columns.all));
		finish_element(f, row, column);
		if (masked) {
			tir_else(k, NULL, 0);
			tir_end_if(k, NULL, 0);
		}
	}
	if (masked) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	tir_end_for(k, NULL, 0);
}

static void
finish_all_rows(const Finish *f, ValId whole)
{
	TirKernel *k = f->x->l.tir;
	tir_if(k, whole);
	finish_rows(f, true);
	tir_else(k, NULL, 0);
	finish_rows(f, false);
	tir_end_if(k, NULL, 0);
}

/* The block's rows of a tile that its cluster has; nobody's sums go away before all have them. */
static void
finish_part(const Finish *f, ValId whole)
{
	Threads *x = f->x;
	TirKernel *k = x->l.tir;
	unsigned rows = x->plan->tile_rows / x->plan->cluster;
	bool idle = rows < x->plan->threads / TIR_WARP; /* some warps */
	if (!BUG(parts_meet_nobody))
		tir_emit(k, OP_BARRIER, (TirType){0}, 1, NULL, 0);
	if (idle)
		tir_if(k, threads_op(x, OP_LT, x->warp, threads_int(x, rows)));
	finish_all_rows(f, whole);
	if (idle) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	tir_emit(k, OP_BARRIER, (TirType){0}, 1, NULL, 0);
}

void
threads_finish(Threads *x, const ValId *acc)
{
	TirKernel *k = x->l.tir;
	const TirBuffer *shared = &k->buffer.at[k->buffer.n - 1];
	Finish f = {.x = x, .rows = threads_finish_rows(x->plan, shared->shared)};
	f.staged = x->plan->tile_rows / threads_rows(x->plan) * f.rows;
	ValId row1 = threads_op(x, OP_ADD, x->row0, threads_int(x, x->plan->tile_rows));
	ValId column1 = threads_op(x, OP_ADD, x->column0, threads_int(x, x->plan->tile_columns));
	ValId whole = threads_op(x, OP_AND, threads_op(x, OP_LE, row1, x->rows.all), threads_op(x, OP_LE, column1, x->columns.all));
	f.turn = tir_for(k, threads_int(x, 0), threads_int(x, threads_rows(x->plan) / f.rows), threads_int(x, 1), NULL, 0);
	stage_any_rows(&f, acc);
	threads_barrier(x);
	if (absent_spoils(&x->absent))
		mend_rows(&f);
	if (x->plan->cluster)
		gather_rows(&f);
	else
		finish_all_rows(&f, whole);
	threads_barrier(x);
	tir_end_for(k, NULL, 0);
	if (x->plan->cluster)
		finish_part(&f, whole);
}
