/* warps_finish.c: what is made of a tile's sums (warps.c). They go through shared memory, where those of both slices are
 * added up: a lane then has elements side by side of the output's rows, which it reads and stores at once, and finishes
 * several rows' together, what they read before what they store, so that their reads wait together. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/side.h"
#include "passes/schedule/contract/warps.h"

#include "ir/bugs.h"

enum {
	GAP = 8,      /* between rows in shared memory: pairs of 8 lanes meet all banks */
	AT_ONCE = 8, ROWS = 4, /* elements of a lane that are finished together, at most, of so many rows, */
	MOST_AT_ONCE = 32, MOST_ROWS = 8, /* and where that takes few instructions: */
	FEW = 24,
	TILE_ROWS = 16 /* of a lane, in a tile, at most */
};

typedef struct {
	Warps *x;
	Side side;
	ValId row, right;       /* where the lane's first element is in the tile, */
	unsigned down, end;     /* rows to its next, below which all of them are; */
	unsigned across;        /* and columns of the lanes of a row */
	ValId flat, place, column; /* with a window, and several elements at once: the output, by offset and column; where the first of rows is that it has all, else 0 */
} Finish;

unsigned
warps_staged_elements(const Warps *x)
{
	return (unsigned)x->plan->tile_rows * (x->plan->tile_columns + GAP);
}

void
warps_bind_staged(Warps *x, unsigned buffer)
{
	ValId pitch = warps_int(x, x->plan->tile_columns + GAP);
	x->staged = tir_view(x->l.tir, buffer, 2, (ValId[]){warps_int(x, x->plan->tile_rows), pitch}, (ValId[]){pitch, warps_int(x, 1)});
}

/* A warp's lanes are side by side along as many rows as they fill; each has every so manieth column. */
static void
place_lanes(Finish *f)
{
	Warps *x = f->x;
	unsigned side = f->side.side, lanes = x->plan->tile_columns / side < TIR_WARP ? x->plan->tile_columns / side : TIR_WARP;
	ValId right, below = raster_divide(x->l.tir, x->lane, warps_int(x, lanes), &right);
	f->across = lanes * side;
	f->down = TIR_WARP / lanes;
	f->end = x->plan->tile_rows / (WARPS_THREADS / TIR_WARP);
	f->row = warps_op(x, OP_ADD, warps_op(x, OP_MUL, x->warp, warps_int(x, f->end)), below);
	f->right = warps_op(x, OP_MUL, right, warps_int(x, side));
}

/* --- both slices' sums --- */

/* Two sums side by side, at this place of the tile: put there, or added to what the other slice's warp has put. */
static void
stage_pair(Warps *x, const ValId *sum, const ValId *at, bool add)
{
	TirKernel *k = x->l.tir;
	ValId pair[2] = {sum[0], sum[1]};
	if (add) {
		ValId other = tir_load(k, x->staged, at, 0, TIR_LANES_ALONG(1), 2);
		for (unsigned e = 0; e < 2; e++)
			pair[e] = warps_op(x, OP_ADD, sum[e], tir_emit(k, OP_LANE, tir_scalar(DT_F32), e, &other, 1));
	}
	tir_store(k, x->staged, tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2), at, 0, TIR_LANES_ALONG(1));
}

/* Those of some blocks of the warp's rows. */
static void
stage_blocks(Warps *x, unsigned first, unsigned n, const ValId *acc, bool add)
{
	unsigned tiles = 2 * warps_blocks(&x->side[1]);
	ValId quad, row = raster_divide(x->l.tir, x->lane, warps_int(x, 4), &quad);
	row = warps_op(x, OP_ADD, row, warps_op(x, OP_MUL, x->down, warps_int(x, x->plan->tile_rows / WARPS_ACROSS)));
	ValId column = warps_op(x, OP_MUL, x->across, warps_int(x, x->plan->tile_columns / WARPS_ACROSS));
	column = warps_op(x, OP_ADD, column, warps_op(x, OP_MUL, quad, warps_int(x, 2)));
	for (unsigned b = first; b < first + n; b++)
		for (unsigned j = 0; j < tiles; j++)
			for (unsigned e = 0; e < WARP_MMA_C; e += 2) {
				ValId down = warps_int(x, b * WARPS_BLOCK + warp_mma_c_row(e, 0)), right = warps_int(x, j * WARP_MMA_COLUMNS);
				const ValId at[2] = {warps_op(x, OP_ADD, row, down), warps_op(x, OP_ADD, column, right)};
				stage_pair(x, acc + (b * tiles + j) * WARP_MMA_C + e, at, add);
			}
}

_Static_assert(WARPS_SLICES == 2, "each has a half of the rows");

/* Each slice's warps put one half of their rows where the other slice's have the same ones, and then add their own to the
 * half that those put. */
static void
stage_halves(Warps *x, const ValId *acc, bool add)
{
	TirKernel *k = x->l.tir;
	unsigned half = warps_blocks(&x->side[0]) / 2;
	tir_if(k, warps_op(x, OP_EQ, x->slice, warps_int(x, 0)));
	stage_blocks(x, add ? 0 : half, half, acc, add);
	tir_else(k, NULL, 0);
	stage_blocks(x, add ? half : 0, half, acc, add);
	tir_end_if(k, NULL, 0);
}

/* --- rows --- */

/* Makes this row of the tile the point. */
static void
enter_row(Warps *x, ValId row)
{
	if (x->window)
		window_enter_row(x->window, row);
	else
		indices_at(&x->l, &x->rows, warps_op(x, OP_ADD, x->row0, row));
}

/* Row i of those that the output has all. */
static void
store_side(const Finish *f, unsigned i, const PointVal *done)
{
	Warps *x = f->x;
	ValId which = warps_int(x, i), step = tir_load(x->l.tir, x->row_steps, &which, 0, 0, 0);
	ValId at[2] = {warps_op(x, OP_ADD, f->place, step), f->column};
	tir_store(x->l.tir, f->flat, side_join(&f->side, done), at, 0, TIR_LANES_ALONG(1));
}

/* The elements at so many of the lane's rows, from this one on. */
static void
finish_rows(const Finish *f, ValId row, unsigned n)
{
	Warps *x = f->x;
	PointVal done[MOST_AT_ONCE];
	row = warps_op(x, OP_ADD, f->row, row);
	for (unsigned i = 0; i < n; i++) {
		ValId at[2] = {warps_op(x, OP_ADD, row, warps_int(x, i * f->down)), f->right}, sum[MOST_SIDE];
		enter_row(x, at[0]);
		side_load(&f->side, x->staged, at, 2, DT_F32, sum);
		side_finish(&f->side, sum, done + i * f->side.side);
	}
	for (unsigned i = 0; i < n; i++) {
		const PointVal *own = done + i * f->side.side;
		enter_row(x, warps_op(x, OP_ADD, row, warps_int(x, i * f->down)));
		if (f->place)
			store_side(f, i, own);
		else
			side_store(&f->side, own);
	}
}

static ValId
below(const Finish *f, ValId i, ValId end)
{
	return BUG(warp_tiles_unmasked) ? tir_int(f->x->l.tir, DT_BOOL, 1) : warps_op(f->x, OP_LT, i, end);
}

static ValId
has_row(const Finish *f, ValId row)
{
	Warps *x = f->x;
	row = warps_op(x, OP_ADD, f->row, row);
	if (x->window && !BUG(warp_tiles_unmasked))
		return window_has_row(x->window, row);
	return x->window ? tir_int(x->l.tir, DT_BOOL, 1) : below(f, warps_op(x, OP_ADD, x->row0, row), x->rows.all);
}

/* Whether the output has all of the lane's rows up to this one. */
static ValId
has_rows(const Finish *f, ValId last)
{
	return f->x->window ? f->x->window->whole : has_row(f, last);
}

/* Those of the rows from `first` to `end` that the output has, one after the other. */
static void
finish_last_rows(const Finish *f, ValId first, ValId end)
{
	TirKernel *k = f->x->l.tir;
	ValId row = tir_for(k, first, end, warps_int(f->x, f->down), NULL, 0);
	tir_if(k, has_row(f, row));
	finish_rows(f, row, 1);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

/* Where the lane's row is in the output, but for its column. */
static ValId
row_place(const Finish *f, ValId row)
{
	Point *l = &f->x->l;
	const TensorArg *out = point_tensor(l, l->node->out);
	ValId place = warps_int(f->x, 0);
	enter_row(f->x, row);
	for (unsigned a = 0; a < l->node->npar; a++)
		if (a != f->x->columns.axis[f->x->columns.naxis - 1])
			place = warps_op(f->x, OP_ADD, place, warps_op(f->x, OP_MUL, l->axis[a], out->stride[a]));
	return place;
}

/* From the first of the lane's rows to each, for all lanes: other bits of a row's number say nothing about these, as a box has
 * powers of two of indices. In shared memory, as registers are few. */
void
warps_place_rows(Warps *x)
{
	Point *l = &x->l;
	TirKernel *k = l->tir;
	const Window *w = x->window;
	const TensorArg *out = point_tensor(l, l->node->out);
	unsigned buffer = tir_add_buffer(k, 0, DT_I64, true);
	ValId at[WINDOW_AXES], step = warps_int(x, 0), one = warps_int(x, 1), count = warps_int(x, MOST_ROWS);
	Finish f = {.x = x, .side.side = x->plan->group};
	place_lanes(&f);
	k->buffer.at[buffer].shared = MOST_ROWS;
	x->row_steps = tir_view(k, buffer, 1, &count, &one);
	tir_if(k, warps_op(x, OP_LT, x->thread, count));
	window_row_at(w, warps_op(x, OP_MUL, x->thread, warps_int(x, f.down)), at);
	for (unsigned n = 0; n < w->naxis; n++)
		step = warps_op(x, OP_ADD, step, warps_op(x, OP_MUL, at[n], out->stride[w->axis[n]]));
	tir_store(k, x->row_steps, step, &x->thread, 0, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* Rows that the output has all. */
static void
finish_whole(const Finish *f, ValId from, unsigned rows)
{
	Finish all = *f;
	all.place = f->flat ? row_place(f, warps_op(f->x, OP_ADD, f->row, from)) : 0;
	finish_rows(&all, from, rows);
}

/* The lane's rows, several at a time, as many as the output has. */
static void
finish_columns(const Finish *f)
{
	Warps *x = f->x;
	TirKernel *k = x->l.tir;
	bool few = side_cost(&x->l) <= FEW;
	unsigned rows = (few ? MOST_AT_ONCE : AT_ONCE) / f->side.side, most = few ? MOST_ROWS : ROWS, all = f->end / f->down;
	most = most < all ? most : all;
	rows = rows < most ? rows : most;
	ValId step = warps_int(x, rows * f->down), from = tir_for(k, warps_int(x, 0), warps_int(x, f->end), step, NULL, 0);
	tir_if(k, has_rows(f, warps_op(x, OP_ADD, from, warps_int(x, (rows - 1) * f->down))));
	finish_whole(f, from, rows);
	tir_else(k, NULL, 0);
	finish_last_rows(f, from, warps_op(x, OP_ADD, from, step));
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

/* --- sums that absent terms have spoilt --- */

/* What the lane's sums of these columns add up to: no number, if one is none. */
static ValId
add_up(const Finish *f)
{
	Warps *x = f->x;
	ValId all[TILE_ROWS * MOST_SIDE], sum[MOST_SIDE];
	unsigned n = 0;
	for (unsigned row = 0; row < f->end; row += f->down) {
		side_load(&f->side, x->staged, (ValId[]){warps_op(x, OP_ADD, f->row, warps_int(x, row)), f->right}, 2, DT_F32, sum);
		for (unsigned e = 0; e < f->side.side; e++)
			all[n++] = sum[e];
	}
	for (; n > 1; n = (n + 1) / 2)
		for (unsigned i = 0; i < n / 2; i++)
			all[i] = warps_op(x, OP_ADD, all[i], all[n - 1 - i]);
	return all[0];
}

/* The lane's of these columns, which it finishes afterwards, one after the other. */
static void
mend_rows(const Finish *f)
{
	Warps *x = f->x;
	Point *l = &x->l;
	TirKernel *k = l->tir;
	ValId all = add_up(f);
	tir_if(k, warps_op(x, OP_NE, all, all));
	unsigned axis = x->columns.axis[x->columns.naxis - 1];
	ValId row = tir_for(k, warps_int(x, 0), warps_int(x, f->end), warps_int(x, f->down), NULL, 0), column = l->axis[axis];
	ValId c = tir_for(k, warps_int(x, 0), warps_int(x, f->side.side), warps_int(x, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	tir_if(k, has_row(f, row));
	row = warps_op(x, OP_ADD, f->row, row);
	enter_row(x, row);
	l->axis[axis] = warps_op(x, OP_ADD, column, c);
	absent_mend(l, &x->absent, x->staged, (ValId[]){row, warps_op(x, OP_ADD, f->right, c)});
	l->axis[axis] = column;
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- the tile --- */

/* The tile by as many columns at a time as a row's lanes have. */
static void
finish_tile(Finish *f)
{
	Warps *x = f->x;
	TirKernel *k = x->l.tir;
	ValId right = f->right, pass = tir_for(k, warps_int(x, 0), warps_int(x, x->plan->tile_columns), warps_int(x, f->across), NULL, 0);
	f->right = warps_op(x, OP_ADD, right, pass);
	ValId column = warps_op(x, OP_ADD, x->column0, f->right);
	tir_if(k, below(f, column, x->columns.all));
	indices_at(&x->l, &x->columns, column);
	f->column = x->l.axis[x->columns.axis[x->columns.naxis - 1]];
	if (absent_spoils(&x->absent))
		mend_rows(f);
	finish_columns(f);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

void
warps_finish(Warps *x, const ValId *acc)
{
	Finish f = {.x = x, .flat = x->window && x->plan->group > 1 ? side_flat_output(&x->l, x->columns.extent[x->columns.naxis - 1]) : 0};
	side_begin(&f.side, &x->l, x->plan->group, x->columns.axis[x->columns.naxis - 1]);
	place_lanes(&f);
	stage_halves(x, acc, false);
	warps_barrier(x);
	stage_halves(x, acc, true);
	warps_barrier(x);
	if (warps_go_along_rows(x))
		warps_finish_rows(x);
	else
		finish_tile(&f);
	warps_barrier(x);
}
