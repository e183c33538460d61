/* window_finish.c: the elements of a tile of sums whose rows are a box (window.c).
 *
 * As roles_finish.c finishes others: a panel at a time, 64 rows by some columns of the group's, through shared memory.
 * Where a row begins in the output takes longer to say with several axes, so that is done once for all panels side by side.
 * A sum that is no number may have met, beside an absent term, a factor that is none or infinite: it is folded again. */
#include <string.h>

#include "ir/bugs.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	GAP = 8,      /* between rows in shared memory: pairs of 8 lanes meet all banks */
	WARP_ROWS = 16,
	AT_ONCE = 8,  /* elements of a lane that are finished together, */
	MOST_AT_ONCE = 16, /* where that takes few instructions: */
	FEW = 24
};

typedef struct {
	ValId lane;
	ValId first;        /* the first row of the lane's in what is staged, */
	ValId right;        /* and column */
	ValId row0, column; /* the same of the output */
	unsigned down;      /* rows from one of the lane's to its next */
	bool placed;        /* where these rows of the output begin: */
	ValId offset[WARP_ROWS];
	Side side;
} Own;

void
window_bind_staged(Roles *r)
{
	TirKernel *k = r->l.tir;
	unsigned rows = (unsigned)r->tile.groups * TIR_MMA_ROWS, buffer = tir_add_buffer(k, 0, DT_F32, true);
	unsigned pitch = r->tile.panel + GAP;
	k->buffer.at[buffer].shared = rows * pitch;
	r->staged = tir_view(k, buffer, 2, (ValId[]){roles_int(r, rows), roles_int(r, pitch)}, (ValId[]){roles_int(r, pitch), roles_int(r, 1)});
}

/* --- what is staged --- */

/* The sums that are staged at these rows of the lane's. */
static void
load_sums(Roles *r, const Own *own, const ValId *down, unsigned n, ValId *to)
{
	for (unsigned i = 0; i < n; i++) {
		ValId from[2] = {roles_op(r, OP_ADD, own->first, down[i]), own->right};
		side_load(&own->side, r->staged, from, 2, DT_F32, to + i * r->tile.side);
	}
}

/* i: which one of the lane's rows the point is in, where all of them are stored. */
static void
store_side(Roles *r, const Own *own, unsigned i, const PointVal *done)
{
	if (own->placed && r->tile.side > 1)
		tir_store(r->l.tir, r->flat, side_join(&own->side, done), (ValId[]){own->offset[i], own->column}, 0, TIR_LANES_ALONG(1));
	else
		side_store(&own->side, done);
}

/* --- rows --- */

static ValId
below(Roles *r, ValId i, ExprId end)
{
	return roles_op(r, OP_LT, i, point_launch_expr(&r->l, end));
}

/* --- sums that met a factor which is no number instead of an absent term (window.c) --- */

/* Whether all terms of the point are there: those at either end of all ranges are, and what is in between. */
static ValId
all_are_there(Roles *r)
{
	Point *l = &r->l;
	const Node *n = l->node;
	ValId there = tir_int(l->tir, DT_BOOL, r->window->even);
	for (unsigned end = 0; end < 2 && r->window->even; end++) {
		uint32_t mark = point_mark(l);
		for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
			l->axis[a] = end ? roles_op(r, OP_SUB, point_launch_expr(l, roles_extent(r, a)), roles_int(r, 1)) : roles_int(r, 0);
		there = roles_op(r, OP_AND, there, point_value(l, n->guard, true).re);
		point_release(l, mark);
	}
	return there;
}

/* The element whose sum is staged there, if that is no number and lacks a term. */
static void
mend_element(Roles *r, const ValId *at)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	ValId sum = tir_load(k, r->staged, at, 0, 0, 0);
	uint32_t mark = point_mark(l);
	tir_if(k, roles_op(r, OP_NE, sum, sum));
	tir_if(k, all_are_there(r));
	tir_else(k, NULL, 0);
	point_release(l, mark);
	tir_store(k, r->staged, element_fold(l).re, at, 0, 0);
	tir_end_if(k, NULL, 0);
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* The sums of elements at these rows of what is staged, again where one is no number: what the others add up to says that
 * there may be one. */
static void
mend_sums(Roles *r, const Own *own, const ValId *down, unsigned n, ValId *sum)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	unsigned side = r->tile.side;
	ValId all[MOST_AT_ONCE] = {0}, column = l->axis[r->of.column_axis];
	memcpy(all, sum, n * side * sizeof *sum);
	for (unsigned left = n * side; left > 1; left = (left + 1) / 2)
		for (unsigned i = 0; i < left / 2; i++)
			all[i] = roles_op(r, OP_ADD, all[i], all[left - 1 - i]);
	tir_if(k, roles_op(r, OP_NE, all[0], all[0]));
	for (unsigned i = 0; i < n; i++) {
		ValId at = roles_op(r, OP_ADD, own->first, down[i]);
		window_enter_row(r->window, roles_op(r, OP_ADD, own->row0, down[i]));
		ValId c = tir_for(k, roles_int(r, 0), roles_int(r, side), roles_int(r, 1), NULL, 0);
		uint32_t mark = point_mark(l);
		l->axis[r->of.column_axis] = roles_op(r, OP_ADD, column, c);
		mend_element(r, (ValId[]){at, roles_op(r, OP_ADD, own->right, c)});
		point_release(l, mark);
		tir_end_for(k, NULL, 0);
	}
	ValId again[MOST_AT_ONCE] = {0};
	load_sums(r, own, down, n, again);
	tir_else(k, again, n * side);
	tir_end_if(k, sum, n * side);
	l->axis[r->of.column_axis] = column;
}

/* --- panels --- */

/* The elements at so many of the lane's rows, from this one of the warp's on. */
static void
finish_rows(Roles *r, const Own *own, ValId row, unsigned n)
{
	PointVal done[MOST_AT_ONCE];
	ValId down[MOST_AT_ONCE] = {0}, sum[MOST_AT_ONCE] = {0};
	const Node *node = r->l.node;
	for (unsigned i = 0; i < n; i++)
		down[i] = roles_op(r, OP_ADD, row, roles_int(r, (int64_t)i * own->down));
	load_sums(r, own, down, n, sum);
	if (!expr_is_true(r->l.g, node->guard) && !BUG(absent_factors_kept))
		mend_sums(r, own, down, n, sum);
	for (unsigned i = 0; i < n; i++) {
		window_enter_row(r->window, roles_op(r, OP_ADD, own->row0, down[i]));
		side_finish(&own->side, sum + i * r->tile.side, done + i * r->tile.side);
	}
	for (unsigned i = 0; i < n; i++) {
		window_enter_row(r->window, roles_op(r, OP_ADD, own->row0, down[i]));
		store_side(r, own, i, done + i * r->tile.side);
	}
}

/* Those of the rows from `first` to `end` that the output has, one after the other. */
static void
finish_last_rows(Roles *r, const Own *own, ValId first, ValId end)
{
	TirKernel *k = r->l.tir;
	ValId row = tir_for(k, first, end, roles_int(r, own->down), NULL, 0);
	tir_if(k, window_has_row(r->window, roles_op(r, OP_ADD, own->row0, row)));
	Own one = *own;
	one.placed = false;
	finish_rows(r, &one, row, 1);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

static unsigned
rows_at_once(Roles *r)
{
	return (side_cost(&r->l) <= FEW ? MOST_AT_ONCE : AT_ONCE) / r->tile.side;
}

/* Where the lane's rows begin in the output, once for all panels side by side: with several axes that takes long. */
static void
place_rows(Roles *r, Own *own)
{
	Point *l = &r->l;
	const TensorArg *out = point_tensor(l, l->node->out);
	unsigned rows = WARP_ROWS / own->down;
	own->placed = r->flat && rows_at_once(r) == rows;
	for (unsigned i = 0; i < rows && own->placed; i++) {
		window_enter_row(r->window, roles_op(r, OP_ADD, own->row0, roles_int(r, (int64_t)i * own->down)));
		own->offset[i] = roles_int(r, 0);
		for (unsigned a = 0; a < l->node->npar; a++)
			if (a != r->of.column_axis)
				own->offset[i] = roles_op(r, OP_ADD, own->offset[i], roles_op(r, OP_MUL, l->axis[a], out->stride[a]));
	}
}

/* The rows of the lane's that the output has, where it has the lane's columns. */
static void
finish_panel(Roles *r, const Own *own)
{
	TirKernel *k = r->l.tir;
	unsigned rows = rows_at_once(r);
	ValId step = roles_int(r, (int64_t)rows * own->down);
	tir_if(k, below(r, own->column, r->ncolumn));
	ValId row = tir_for(k, roles_int(r, 0), roles_int(r, WARP_ROWS), step, NULL, 0), end = roles_op(r, OP_ADD, row, step);
	tir_if(k, r->window->whole);
	finish_rows(r, own, row, rows);
	tir_else(k, NULL, 0);
	finish_last_rows(r, own, row, end);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* A warp has panel / side lanes along a row, so that several of its rows are met at once. */
static Own
own_place(Roles *r)
{
	Own own;
	unsigned side = r->tile.side, across = r->tile.panel / side;
	ValId rest, warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &own.lane);
	ValId below = roles_divide(r, own.lane, roles_int(r, across), &own.right);
	own.right = roles_op(r, OP_MUL, own.right, roles_int(r, side));
	own.down = TIR_WARP / across;
	own.first = roles_op(r, OP_ADD, roles_op(r, OP_MUL, warp, roles_int(r, WARP_ROWS)), below);
	roles_divide(r, own.first, roles_int(r, TIR_MMA_ROWS), &rest);
	if (!r->tile.turns)
		rest = roles_op(r, OP_ADD, rest, roles_op(r, OP_MUL, r->group, roles_int(r, (int64_t)roles_repeats(r) * TIR_MMA_ROWS)));
	own.row0 = roles_op(r, OP_ADD, r->row0, rest);
	side_begin(&own.side, &r->l, r->tile.side, r->of.column_axis);
	return own;
}

/* A panel of those side by side that have the rows of own. */
static void
build_panel(Roles *r, Own *own, ValId warp_row, ValId panel, ValId right)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	roles_stage_one_of(r, own->lane, warp_row, panel, 0, roles_repeats(r) * (r->tile.columns / r->tile.panel));
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
	own->column = roles_op(r, OP_ADD, roles_op(r, OP_ADD, r->column0, roles_op(r, OP_MUL, right, roles_int(r, r->tile.panel))), own->right);
	l->axis[r->of.column_axis] = own->column;
	finish_panel(r, own);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
}

void
window_finish(Roles *r)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	Own own = own_place(r);
	ValId rest, row0 = own.row0, warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &rest);
	ValId warp_row = roles_op(r, OP_MUL, warp, roles_int(r, WARP_ROWS)), zero = roles_int(r, 0), one = roles_int(r, 1);
	ValId across = roles_int(r, r->tile.columns / r->tile.panel);
	for (unsigned a = 0; a < l->node->npar; a++)
		l->axis[a] = r->coord[a];
	ValId down = tir_for(k, zero, roles_int(r, roles_repeats(r)), one, NULL, 0);
	own.row0 = roles_op(r, OP_ADD, row0, roles_op(r, OP_MUL, down, roles_int(r, TIR_MMA_ROWS)));
	place_rows(r, &own);
	ValId right = tir_for(k, zero, across, one, NULL, 0);
	build_panel(r, &own, warp_row, roles_op(r, OP_ADD, roles_op(r, OP_MUL, down, across), right), right);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}
