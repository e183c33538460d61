/* halo_panel.c: what halo.c has in shared memory: the box of the one factor, line by line, where its lines are and where pairs
 * of terms are in it, and the panel of the other factor. */
#include "passes/schedule/contract/halo.h"

#include "ir/bugs.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/point/early_reads.h"

enum {
	WARPS = WARPS_THREADS / TIR_WARP,
	LINES = HALO_LINES_MORE / WARPS, ACROSS = 4, /* of a lane, whose elements are read together: lines, and elements of each */
	COLUMNS = 8            /* elements of the panel that are */
};
static const int64_t OUTSIDE = INT64_MIN; /* where no line begins: strides may be negative */

static ValId
halo_int(Halo *h, int64_t v)
{
	return warps_int(&h->w, v);
}

static ValId
op(Halo *h, Op o, ValId a, ValId b)
{
	return warps_op(&h->w, o, a, b);
}

static ValId
divide(Halo *h, ValId a, ValId b, ValId *rest)
{
	return raster_divide(h->w.l.tir, a, b, rest);
}

/* Stores where cond holds. */
static void
store_if(Halo *h, ValId cond, ValId view, ValId v, ValId at)
{
	TirKernel *k = h->w.l.tir;
	tir_if(k, cond);
	tir_store(k, view, v, &at, 0, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- pairs and rows --- */

static bool
counts_runs(const Halo *h, unsigned axis)
{
	return axis != h->of.inner && (int)axis != h->of.pixels;
}

static ValId
terms(Halo *h, unsigned axis)
{
	return point_launch_expr(&h->w.l, h->w.l.node->axis[axis].hi);
}

/* Which terms of the axes that count runs this run has, and where it is from the first one. */
static ValId
enter_run(Halo *h, ValId run, ValId *at)
{
	Point *l = &h->w.l;
	const Node *n = l->node;
	ValId place = halo_int(h, 0);
	for (unsigned a = (unsigned)n->npar + n->nred; a-- > n->npar;) {
		at[a] = 0;
		if (!counts_runs(h, a))
			continue;
		run = divide(h, run, terms(h, a), &at[a]);
		for (unsigned k = 0; k < h->of.window.rank; k++)
			if (h->of.sub[k].axis[a]) {
				ValId step = op(h, OP_MUL, h->pitch[k], halo_int(h, h->of.sub[k].axis[a]));
				place = op(h, OP_ADD, place, op(h, OP_MUL, at[a], step));
			}
	}
	return place;
}

/* Beyond the last one pairs are where the first one is: what they are multiplied by is 0. */
void
halo_place_pairs(Halo *h)
{
	TirKernel *k = h->w.l.tir;
	ValId at[TG_MAX_AXES], in_run, end = op(h, OP_MUL, h->steps, halo_int(h, HALO_STEP));
	ValId pair = op(h, OP_ADD, tir_for(k, halo_int(h, 0), end, halo_int(h, WARPS_THREADS), NULL, 0), h->w.thread);
	ValId place = enter_run(h, divide(h, pair, h->run_pairs, &in_run), at);
	place = op(h, OP_ADD, place, op(h, OP_MUL, in_run, halo_int(h, 2)));
	place = tir_select(k, op(h, OP_LT, pair, h->npairs), place, halo_int(h, 0));
	store_if(h, op(h, OP_LT, pair, end), h->table, tir_cast(k, DT_U32, place), pair);
	tir_end_for(k, NULL, 0);
}

void
halo_place_rows(Halo *h)
{
	Warps *x = &h->w;
	TirKernel *k = x->l.tir;
	const Window *w = &h->of.window;
	ValId quad, row = divide(h, x->lane, halo_int(h, 4), &quad), at[WINDOW_AXES];
	row = op(h, OP_ADD, row, op(h, OP_MUL, x->down, halo_int(h, HALO_ROWS / WARPS_ACROSS)));
	for (unsigned b = 0; b < 2 * warps_blocks(&x->side[0]); b++) {
		ValId place = halo_int(h, 0), odd;
		window_row_at(w, op(h, OP_ADD, row, halo_int(h, b * (WARPS_BLOCK / 2))), at);
		for (unsigned n = 0; n < w->naxis; n++)
			place = op(h, OP_ADD, place, op(h, OP_MUL, at[n], op(h, OP_MUL, h->pitch[w->place[n]], halo_int(h, w->step[n]))));
		if (h->of.twice && !BUG(halo_odd_rows)) {
			ValId again = op(h, OP_SUB, op(h, OP_ADD, place, op(h, OP_MUL, h->nlines, h->nline)), halo_int(h, 1));
			divide(h, place, halo_int(h, 2), &odd);
			place = tir_select(k, op(h, OP_EQ, odd, halo_int(h, 0)), place, again);
		}
		h->row_at[b / 2][b % 2] = tir_cast(k, DT_U32, place);
	}
}

/* --- the box --- */

/* The first indices that the tile reads. */
static void
find_first(Halo *h)
{
	Point *l = &h->w.l;
	const Node *n = l->node;
	const Window *w = &h->of.window;
	uint32_t mark = point_mark(l);
	for (unsigned k = 0; k < w->naxis; k++)
		l->axis[w->axis[k]] = w->first[k];
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		l->axis[a] = halo_int(h, 0);
	for (unsigned k = 0; k < w->rank; k++)
		h->from[k] = point_value(l, w->sub[k], true).re;
	point_release(l, mark);
}

/* Whether this index of subscript k is one of the tensor's. */
static ValId
is_there(Halo *h, unsigned k, ValId i)
{
	const TensorArg *x = point_tensor(&h->w.l, h->of.window.tensor);
	return op(h, OP_AND, op(h, OP_LE, halo_int(h, 0), i), op(h, OP_LT, i, x->extent[k]));
}

/* Where each line begins in memory, or OUTSIDE. */
static void
place_lines(Halo *h)
{
	TirKernel *k = h->w.l.tir;
	const TensorArg *x = point_tensor(&h->w.l, h->of.window.tensor);
	ValId end = op(h, OP_ADD, h->nlines, halo_int(h, HALO_LINES_MORE));
	ValId line = op(h, OP_ADD, tir_for(k, halo_int(h, 0), end, halo_int(h, WARPS_THREADS), NULL, 0), h->w.thread);
	ValId rest = line, there = op(h, OP_LT, line, h->nlines), place = halo_int(h, 0);
	for (unsigned s = h->of.window.rank - h->of.whole; s-- > 0;) {
		ValId at = rest;
		if (s)
			rest = divide(h, rest, h->extent[s], &at);
		at = op(h, OP_ADD, at, h->from[s]);
		there = op(h, OP_AND, there, is_there(h, s, at));
		place = op(h, OP_ADD, place, op(h, OP_MUL, at, x->stride[s]));
	}
	store_if(h, op(h, OP_LT, line, end), h->where, tir_select(k, there, place, halo_int(h, OUTSIDE)), line);
	tir_end_for(k, NULL, 0);
}

/* An element of all lines: where it is in a line's memory, and whether it is; whether lines have it. */
typedef struct {
	ValId at, place, there, has;
} Across;

static Across
enter_across(Halo *h, ValId at)
{
	TirKernel *k = h->w.l.tir;
	unsigned last = h->of.window.rank - 1;
	const TensorArg *x = point_tensor(&h->w.l, h->of.window.tensor);
	Across a = {.at = at, .has = op(h, OP_LT, at, h->nline)};
	ValId element = at, pixel = 0;
	if (h->of.whole == 2)
		pixel = divide(h, at, h->npixel, &element);
	a.there = op(h, OP_AND, a.has, is_there(h, last, op(h, OP_ADD, element, h->from[last])));
	a.place = op(h, OP_ADD, element, h->from[last]);
	if (pixel) {
		pixel = op(h, OP_ADD, pixel, h->from[last - 1]);
		a.there = op(h, OP_AND, a.there, op(h, OP_AND, is_there(h, last - 1, pixel), op(h, OP_LT, element, terms(h, h->of.inner))));
		a.place = op(h, OP_ADD, a.place, op(h, OP_MUL, pixel, x->stride[last - 1]));
	}
	a.place = tir_select(k, a.there, a.place, halo_int(h, 0));
	return a;
}

/* In 32 bits. Without a branch, behind which the element would be read, and waited for: what lines have not goes elsewhere. */
static void
store_element(Halo *h, ValId line, const Across *a, ValId v)
{
	TirKernel *k = h->w.l.tir;
	ValId nline = tir_cast(k, DT_U32, h->nline), nlines = tir_cast(k, DT_U32, h->nlines), zero = tir_int(k, DT_U32, 0);
	ValId nowhere = op(h, OP_ADD, tir_int(k, DT_U32, HALO_ELEMENTS), tir_cast(k, DT_U32, h->w.thread));
	line = tir_cast(k, DT_U32, line);
	ValId some = op(h, OP_AND, op(h, OP_LT, line, nlines), a->has), to = op(h, OP_ADD, op(h, OP_MUL, line, nline), tir_cast(k, DT_U32, a->at));
	ValId at = tir_cast(k, DT_I64, tir_select(k, some, to, nowhere));
	tir_store(k, h->halo, v, &at, 0, 0);
	if (!h->of.twice)
		return;
	ValId again = op(h, OP_SUB, op(h, OP_ADD, to, op(h, OP_MUL, nlines, nline)), tir_int(k, DT_U32, 1));
	at = tir_cast(k, DT_I64, tir_select(k, op(h, OP_AND, some, op(h, OP_LT, zero, to)), again, nowhere));
	tir_store(k, h->halo, v, &at, 0, 0);
}

/* Some lines' elements there, from this line on: all are read before any is stored. For an element outside, one of the tensor's
 * is read, the first of its line or the same of the first line, and 0 is stored. */
static void
stage_lines(Halo *h, ValId memory, ValId first, const Across *across)
{
	TirKernel *k = h->w.l.tir;
	ValId v[LINES][ACROSS], line[LINES], none = tir_float(k, h->of.window.dtype, 0);
	for (unsigned n = 0; n < LINES; n++) {
		line[n] = op(h, OP_ADD, first, halo_int(h, n * WARPS));
		ValId place = tir_load(k, h->where, &line[n], 0, 0, 0), inside = op(h, OP_NE, place, halo_int(h, OUTSIDE));
		place = tir_select(k, inside, place, halo_int(h, 0));
		for (unsigned e = 0; e < ACROSS; e++) {
			ValId at = op(h, OP_ADD, place, across[e].place);
			v[n][e] = tir_load(k, memory, &at, 0, 0, 0);
			v[n][e] = BUG(halo_ends_taken) ? v[n][e] : tir_select(k, op(h, OP_AND, across[e].there, inside), v[n][e], none);
		}
	}
	for (unsigned n = 0; n < LINES; n++)
		for (unsigned e = 0; e < ACROSS; e++)
			store_element(h, line[n], &across[e], v[n][e]);
}

/* The second time, an element further on: after the last one is what nothing is multiplied by but 0. */
static void
end_second(Halo *h)
{
	ValId all_elements = op(h, OP_MUL, op(h, OP_MUL, h->nlines, h->nline), halo_int(h, 2));
	ValId first = op(h, OP_EQ, h->w.thread, halo_int(h, 0));
	store_if(h, first, h->halo, tir_float(h->w.l.tir, h->of.window.dtype, 0), op(h, OP_SUB, all_elements, halo_int(h, 1)));
}

void
halo_stage_box(Halo *h)
{
	Point *l = &h->w.l;
	TirKernel *k = l->tir;
	Across across[ACROSS];
	ValId buffer = tir_arg(k, point_tensor(l, h->of.window.tensor)->data, 0), far = halo_int(h, INT64_C(1) << 40), one = halo_int(h, 1);
	ValId memory = tir_view(k, (unsigned)tir_inst(k, buffer)->imm.i, 1, &far, &one);
	find_first(h);
	place_lines(h);
	if (h->of.twice)
		end_second(h);
	warps_barrier(&h->w);
	ValId at = op(h, OP_ADD, tir_for(k, halo_int(h, 0), h->nline, halo_int(h, ACROSS * TIR_WARP), NULL, 0), h->w.lane);
	for (unsigned e = 0; e < ACROSS; e++)
		across[e] = enter_across(h, op(h, OP_ADD, at, halo_int(h, e * TIR_WARP)));
	stage_lines(h, memory, op(h, OP_ADD, tir_for(k, halo_int(h, 0), h->nlines, halo_int(h, LINES * WARPS), NULL, 0), h->w.warp), across);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

/* --- the panel --- */

/* Makes an element of the round's terms the point: whether it is a term of the sum. */
static ValId
enter_term(Halo *h, ValId round, ValId element)
{
	Point *l = &h->w.l;
	TirKernel *k = l->tir;
	const Node *n = l->node;
	ValId odd, in_run, at[TG_MAX_AXES], pair = divide(h, element, halo_int(h, 2), &odd), zero = halo_int(h, 0);
	pair = op(h, OP_ADD, pair, op(h, OP_MUL, round, halo_int(h, HALO_SHARE)));
	enter_run(h, divide(h, pair, h->run_pairs, &in_run), at);
	in_run = op(h, OP_ADD, op(h, OP_MUL, in_run, halo_int(h, 2)), odd);
	ValId there = op(h, OP_AND, op(h, OP_LT, pair, h->npairs), op(h, OP_LT, in_run, h->nrun));
	at[h->of.inner] = in_run;
	if (h->of.pixels >= 0)
		at[h->of.pixels] = divide(h, in_run, h->npixel, &at[h->of.inner]);
	there = op(h, OP_AND, there, op(h, OP_LT, at[h->of.inner], terms(h, h->of.inner)));
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		l->axis[a] = tir_select(k, there, at[a], zero);
	return BUG(halo_tail_taken) ? tir_int(k, DT_BOOL, 1) : there;
}

/* A thread has one term of all columns. Those beyond the last one are that one again. */
void
halo_stage_columns(Halo *h, ValId round)
{
	Warps *x = &h->w;
	Point *l = &x->l;
	TirKernel *k = l->tir;
	ExprId factor = contract_matrix_value(l->g, h->of.f.column);
	ValId last = op(h, OP_SUB, x->columns.all, halo_int(h, 1)), left = op(h, OP_SUB, h->steps, op(h, OP_MUL, round, halo_int(h, HALO_SHARE / HALO_STEP)));
	tir_if(k, op(h, OP_LT, x->thread, op(h, OP_MUL, left, halo_int(h, 2 * HALO_STEP))));
	uint32_t mark = point_mark(l);
	ValId there = enter_term(h, round, x->thread), v[COLUMNS], none = tir_float(k, h->of.window.dtype, 0);
	ValId column = tir_for(k, halo_int(h, 0), halo_int(h, HALO_COLUMNS), halo_int(h, COLUMNS), NULL, 0);
	for (unsigned n = 0; n < COLUMNS; n++) {
		ValId own = op(h, OP_ADD, op(h, OP_ADD, x->column0, column), halo_int(h, n));
		indices_at(l, &x->columns, op(h, OP_MIN, own, last));
		v[n] = tir_select(k, there, early_value(l, factor, true), none);
	}
	for (unsigned n = 0; n < COLUMNS; n++)
		tir_store(k, h->columns, v[n], (ValId[]){op(h, OP_ADD, column, halo_int(h, n)), x->thread}, 0, 0);
	tir_end_for(k, NULL, 0);
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}
