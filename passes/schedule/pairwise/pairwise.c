/* pairwise.c: the PAIRWISE template (pairwise.h): rows along threads, elements by tiles of shared memory.
 *
 * A task is some rows. Each warp of its block has all of them, a lane up to PW_ROWS of them, with what they have and what is
 * folded of them in registers; of a tile's elements each warp takes others. So a value of an element is read
 * by all lanes at once, PW_SIDE elements by one access, and costs little beside the pairs that it is for. What the warps have
 * folded is joined at the end, in their order: no bit depends on which blocks run when.
 *
 * Rows and elements that are not there are the last ones again: nothing is stored, or folded, of them. Where a condition
 * compares indices, tiles that lie within it for all of the block's rows are folded without asking it. */
#include "passes/schedule/pairwise/pairwise_build.h"

#include <string.h>

#include "ir/bugs.h"
#include "passes/cost/cost.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/point/long_sums.h"

enum {
	SIDE_BYTES = 16,
	LEAST_ELEMENTS = 64 /* that are worth joining what warps have */
};

/* --- whether --- */

/* The short extents that a launch may have, each range a kernel: what is computed of a pair is written out. */
static const struct {
	unsigned least, most;
} shorts[PAIRWISE_PLANS] = {{1, 2}, {3, 3}, {4, 4}, {5, PAIRWISE_SHORT}};

/* Rows of a lane: each has registers for what it has and what is folded of it. */
static unsigned
lane_rows(const Graph *g, const Pairwise *w)
{
	unsigned words = 0, rows = PW_ROWS;
	for (unsigned v = 0; v < w->nrow_value; v++)
		words += dtype_info[expr_get(g, w->row_value[v])->dtype].bits > 32 ? 2 : 1;
	for (unsigned m = 0; m < w->nmember && w->member[m].monoid; m++)
		words += w->member[m].count * (dtype_info[w->member[m].type].bits > 32 ? 2 : 1);
	while (rows > 1 && rows * words > PW_ROW_WORDS)
		rows /= 2;
	return rows;
}

static KernelPlan
plan_of(const Graph *g, const Pairwise *w, unsigned shorts_at, bool long_sums, const TensorId *node, unsigned n)
{
	unsigned rows = lane_rows(g, w);
	KernelPlan p = {.tmpl = TMPL_PAIRWISE, .unroll = 1, .threads = PW_THREADS, .group = 1, .tile_rows = (uint16_t)rows,
	                .tile_columns = (uint16_t)(w->some ? shorts_at : 0), .block_rows = rows * TIR_WARP, .block_terms = PW_TILE,
	                .block_columns = PW_SIDE, .block_tasks = 1, .long_sums = long_sums, .nnode = (uint16_t)n};
	memcpy(p.node, node, n * sizeof *node);
	return p;
}

static bool
has_few(const Graph *g, const Pairwise *w, const PassOptions *o)
{
	const Expr *lo = expr_get(g, w->lo), *hi = expr_get(g, w->hi);
	return !o->least_tile && lo->op == OP_CONST && hi->op == OP_CONST && hi->imm.i - lo->imm.i < LEAST_ELEMENTS;
}

/* Where only the launch knows a short extent, powers have their short forms alone: each form is as many kernels as there are
 * such extents. */
unsigned
pairwise_take(Graph *g, Arena *scratch, const Places *places, const TensorId *node, unsigned n, const PassOptions *o,
              KernelPlan *plan)
{
	Pairwise *w = ARENA_NEW(scratch, Pairwise);
	unsigned count = 0;
	if (!o->blocks || o->fuse != FUSE_ALL)
		return 0;
	for (unsigned k = 0; k < PAIRWISE_PLANS; k++) {
		if (!pairwise_plan(g, scratch, places, node, n, shorts[k].least, shorts[k].most, true, w) || has_few(g, w, o))
			return count;
		plan[count++] = plan_of(g, w, k, w->shortened, node, n);
		if (w->some)
			continue;
		if (w->shortened)
			plan[count++] = plan_of(g, w, k, false, node, n);
		break;
	}
	return count;
}

/* --- tasks --- */

void
pairwise_find_thread(PairwiseBuild *b, int64_t anew)
{
	b->thread = tir_emit(b->l.tir, OP_THREAD, tir_scalar(DT_I64), anew, NULL, 0);
	b->warp = raster_divide(b->l.tir, b->thread, pw_int(b, TIR_WARP), &b->lane);
}

static void
count_tasks(PairwiseBuild *b, Kernel *kernel)
{
	Graph *g = b->l.g;
	Pairwise *w = b->w;
	int64_t least = b->o->least_tile ? 1 : (int64_t)cost_machine(true, 0)->threads / 2; /* else a row is better a block's */
	b->blocks = launch_ceil_div(g, w->extent[w->nrow - 1], b->rows);
	ExprId n = b->blocks;
	for (unsigned k = 0; k + 1 < w->nrow; k++)
		n = expr_binary(g, OP_MUL, n, w->extent[k]);
	ExprId suits = expr_binary(g, OP_LE, expr_int(g, DT_I64, least), n);
	if (w->some) {
		suits = expr_binary(g, OP_AND, suits, expr_binary(g, OP_LE, expr_int(g, DT_I64, w->least), w->some));
		suits = expr_binary(g, OP_AND, suits, expr_binary(g, OP_LE, w->some, expr_int(g, DT_I64, w->most)));
	}
	int64_t terms = kernel->plan.long_sums ? LONG_SUM_TERMS : b->o->least_tile ? 0 : LEAST_ELEMENTS;
	if (terms) {
		ExprId all = expr_binary(g, OP_SUB, w->hi, w->lo);
		suits = expr_binary(g, OP_AND, suits, expr_binary(g, OP_LE, expr_int(g, DT_I64, terms), all));
	}
	kernel->ntask = expr_select(g, suits, n, expr_int(g, DT_I64, 0));
}

static void
open_task(PairwiseBuild *b, ValId task)
{
	Point *l = &b->l;
	Pairwise *w = b->w;
	ValId block, rest = raster_divide(l->tir, task, point_launch_expr(l, b->blocks), &block);
	for (unsigned k = w->nrow - 1; k-- > 0;)
		rest = raster_divide(l->tir, rest, point_launch_expr(l, w->extent[k]), &l->axis[k]);
	b->row0 = pw_op(b, OP_MUL, block, pw_int(b, b->rows));
	ValId end = pw_op(b, OP_MIN, pw_op(b, OP_ADD, b->row0, pw_int(b, b->rows)), point_launch_expr(l, w->extent[w->nrow - 1]));
	b->row_last = pw_op(b, OP_SUB, end, pw_int(b, 1));
	for (unsigned r = 0; r < b->lane_rows; r++)
		b->row[r] = pw_op(b, OP_MIN, pw_op(b, OP_ADD, b->row0, pw_op(b, OP_ADD, b->lane, pw_int(b, r * TIR_WARP))), b->row_last);
}

static void
find_row_values(PairwiseBuild *b)
{
	Point *l = &b->l;
	for (unsigned r = 0; r < b->lane_rows; r++) {
		uint32_t mark = point_mark(l);
		l->axis[b->w->nrow - 1] = b->row[r];
		for (unsigned v = 0; v < b->w->nrow_value; v++)
			b->of_row[v][r] = point_value(l, b->w->row_value[v], false).re;
		point_release(l, mark);
	}
}

/* --- folds --- */

ValId
pairwise_joined(PairwiseBuild *b, const PairwiseMember *m, ValId x, ValId y)
{
	Reduction f = reduction_of(&b->l, m->monoid, m->type);
	f.re = x;
	reduction_value(&b->l, &f, (PointVal){.re = y}, 0);
	return f.re;
}

static ValId
unit(PairwiseBuild *b, const PairwiseMember *m)
{
	return reduction_of(&b->l, m->monoid, m->type).re;
}

static void
start(PairwiseBuild *b)
{
	unsigned at = 0;
	for (unsigned m = 0; m < b->w->nmember && b->w->member[m].monoid; m++)
		for (unsigned c = 0; c < b->w->member[m].count * b->lane_rows; c++)
			b->run[at++] = unit(b, &b->w->member[m]);
}

/* One pair into the folds of the r-th row. */
static void
fold_pair(PairwiseBuild *b, unsigned r, bool masked)
{
	Point *l = &b->l;
	unsigned at = r;
	for (unsigned m = 0; m < b->w->nmember && b->w->member[m].monoid; m++) {
		const PairwiseMember *x = &b->w->member[m];
		for (unsigned c = 0; c < x->count; c++, at += b->lane_rows) {
			ValId next = pairwise_joined(b, x, b->run[at], point_value(l, x->body[c], true).re);
			bool asked = masked && x->keep[c] && !BUG(pairwise_condition_dropped);
			b->run[at] = asked ? tir_select(l->tir, point_value(l, x->keep[c], true).re, next, b->run[at]) : next;
		}
	}
}

static void
fold_element(PairwiseBuild *b, ValId j, const ValId *value, bool masked)
{
	Point *l = &b->l;
	Pairwise *w = b->w;
	l->axis[w->nrow] = j;
	for (unsigned r = 0; r < b->lane_rows; r++) {
		uint32_t mark = point_mark(l);
		l->axis[w->nrow - 1] = b->row[r];
		for (unsigned v = 0; v < w->nelement_value; v++)
			point_place(l, pairwise_ivar(l->g, PAIRWISE_OF_ELEMENT, v, (DType)expr_get(l->g, w->element_value[v])->dtype), value[v]);
		for (unsigned v = 0; v < w->nrow_value; v++)
			point_place(l, pairwise_ivar(l->g, PAIRWISE_OF_ROW, v, (DType)expr_get(l->g, w->row_value[v])->dtype), b->of_row[v][r]);
		fold_pair(b, r, masked);
		point_release(l, mark);
	}
}

/* n values side by side. */
static void
load_side(PairwiseBuild *b, unsigned v, ValId at, unsigned n, ValId (*out)[PAIRWISE_VALUES])
{
	TirKernel *k = b->l.tir;
	DType t = (DType)expr_get(b->l.g, b->w->element_value[v])->dtype;
	unsigned most = SIDE_BYTES * 8 / dtype_info[t].bits;
	if (n == 1)
		out[0][v] = tir_load(k, b->element[v], &at, 0, 0, 0);
	for (unsigned i = 0; n > 1 && i < n; i += most) {
		unsigned m = n - i < most ? n - i : most;
		ValId from = pw_op(b, OP_ADD, at, pw_int(b, i)), all = tir_load(k, b->element[v], &from, 0, TIR_LANES_ALONG(0), m);
		for (unsigned e = 0; e < m; e++)
			out[i + e][v] = tir_emit(k, OP_LANE, tir_scalar(t), e, &all, 1);
	}
}

/* n elements of the tile, side by side, from e on. */
static void
fold_side(PairwiseBuild *b, ValId e, unsigned n, bool masked)
{
	ValId value[PW_SIDE][PAIRWISE_VALUES];
	uint32_t mark = point_mark(&b->l);
	for (unsigned v = 0; v < b->w->nelement_value; v++)
		load_side(b, v, e, n, value);
	for (unsigned i = 0; i < n; i++)
		fold_element(b, pw_op(b, OP_ADD, b->first, pw_op(b, OP_ADD, e, pw_int(b, i))), value[i], masked);
	point_release(&b->l, mark);
}

/* The warp's elements of the tile: with `side` PW_SIDE of each round, then one by one of what no round has. */
static void
fold_part(PairwiseBuild *b, bool masked, bool side)
{
	TirKernel *k = b->l.tir;
	unsigned nrun = b->w->nfold * b->lane_rows;
	ValId before[PAIRWISE_FOLDS * PW_ROWS], warps = pw_int(b, PW_WARPS), round = pw_int(b, PW_ROUND);
	ValId count = pw_op(b, OP_MIN, pw_op(b, OP_SUB, b->hi, b->first), pw_int(b, PW_TILE));
	ValId whole = side ? pw_op(b, OP_SUB, count, pw_op(b, OP_IMOD, count, round)) : pw_int(b, 0);
	if (side) {
		ValId from = tir_for(k, pw_int(b, 0), whole, round, b->run, nrun);
		fold_side(b, pw_op(b, OP_ADD, from, pw_op(b, OP_MUL, b->warp, pw_int(b, PW_SIDE))), PW_SIDE, masked);
		tir_end_for(k, b->run, nrun);
	}
	ValId e = pw_op(b, OP_ADD, tir_for(k, whole, count, warps, b->run, nrun), b->warp);
	memcpy(before, b->run, sizeof before);
	tir_if(k, pw_op(b, OP_LT, e, count));
	fold_side(b, e, 1, masked);
	tir_else(k, b->run, nrun);
	memcpy(b->run, before, sizeof before);
	tir_end_if(k, b->run, nrun);
	tir_end_for(k, b->run, nrun);
}

/* --- tiles --- */

static void
stage(PairwiseBuild *b)
{
	Point *l = &b->l;
	ValId last = pw_op(b, OP_SUB, b->hi, pw_int(b, 1)), value[PW_TILE / PW_THREADS][PAIRWISE_VALUES], at[PW_TILE / PW_THREADS];
	for (unsigned s = 0; s < PW_TILE / PW_THREADS; s++) {
		uint32_t mark = point_mark(l);
		at[s] = pw_op(b, OP_ADD, b->thread, pw_int(b, (int64_t)s * PW_THREADS));
		l->axis[b->w->nrow] = pw_op(b, OP_MIN, pw_op(b, OP_ADD, b->first, at[s]), last);
		for (unsigned v = 0; v < b->w->nelement_value; v++)
			value[s][v] = point_value(l, b->w->element_value[v], false).re;
		point_release(l, mark);
	}
	for (unsigned s = 0; s < PW_TILE / PW_THREADS; s++)
		for (unsigned v = 0; v < b->w->nelement_value; v++)
			tir_store(l->tir, b->element[v], value[s][v], &at[s], 0, 0);
}

static void
run_tile(PairwiseBuild *b)
{
	TirKernel *k = b->l.tir;
	unsigned nrun = b->w->nfold * b->lane_rows;
	ValId before[PAIRWISE_FOLDS * PW_ROWS];
	bool any;
	pw_barrier(b);
	stage(b);
	pw_barrier(b);
	uint32_t mark = point_mark(&b->l);
	ValId whole = pairwise_all_hold(b, &any);
	if (whole) {
		memcpy(before, b->run, sizeof before);
		tir_if(k, whole);
		fold_part(b, false, true);
		tir_else(k, b->run, nrun);
		memcpy(b->run, before, sizeof before);
	}
	fold_part(b, any, !whole); /* where few tiles are, the code is short */
	if (whole)
		tir_end_if(k, b->run, nrun);
	point_release(&b->l, mark);
}

/* --- the kernel --- */

static void
run_task(PairwiseBuild *b, ValId task)
{
	TirKernel *k = b->l.tir;
	unsigned nrun = b->w->nfold * b->lane_rows;
	uint32_t mark = point_mark(&b->l);
	pairwise_find_thread(b, 1);
	open_task(b, task);
	find_row_values(b);
	start(b);
	b->first = tir_for(k, b->lo, b->hi, pw_int(b, PW_TILE), b->run, nrun);
	run_tile(b);
	tir_end_for(k, b->run, nrun);
	pairwise_finish(b);
	point_release(&b->l, mark);
}

static ValId
bind_shared(PairwiseBuild *b, DType t, unsigned elements)
{
	TirKernel *k = b->l.tir;
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = elements;
	return tir_view(k, buffer, 1, (ValId[]){pw_int(b, elements)}, (ValId[]){pw_int(b, 1)});
}

static void
declare(PairwiseBuild *b)
{
	Point *l = &b->l;
	Pairwise *w = b->w;
	for (unsigned m = 0; m < w->nmember; m++)
		if (l->places->stored[w->member[m].t])
			point_declare_output(l, w->member[m].t);
	for (unsigned v = 0; v < w->nrow_value; v++)
		point_declare(l, w->row_value[v]);
	for (unsigned v = 0; v < w->nelement_value; v++)
		point_declare(l, w->element_value[v]);
	for (unsigned m = 0; m < w->nmember; m++)
		for (unsigned c = 0; c < w->member[m].count; c++) {
			point_declare(l, w->member[m].body[c]);
			point_declare(l, w->member[m].keep[c]);
			point_declare(l, w->member[m].finish[c]);
			point_declare(l, w->member[m].domain[c]);
			if (w->member[m].beyond)
				point_launch_expr(l, w->member[m].beyond);
		}
	point_launch_expr(l, b->blocks);
	for (unsigned k = 0; k < w->nrow; k++) {
		l->run[k] = w->extent[k];
		point_launch_expr(l, w->extent[k]);
	}
	const Expr *lo = expr_get(l->g, w->lo);
	l->run[w->nrow] = lo->op == OP_CONST && lo->imm.i >= 0 ? w->hi : 0;
	b->lo = point_launch_expr(l, w->lo);
	b->hi = point_launch_expr(l, w->hi);
}

static void
bind_memory(PairwiseBuild *b)
{
	Pairwise *w = b->w;
	unsigned f = 0;
	for (unsigned v = 0; v < w->nelement_value; v++)
		b->element[v] = bind_shared(b, (DType)expr_get(b->l.g, w->element_value[v])->dtype, PW_TILE);
	for (unsigned m = 0; m < w->nmember && w->member[m].monoid; m++)
		for (unsigned c = 0; c < w->member[m].count; c++)
			b->part[f++] = bind_shared(b, w->member[m].type, PW_WARPS * b->rows);
}

void
pairwise_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel)
{
	PairwiseBuild *b = ARENA_NEW(scratch, PairwiseBuild);
	TirKernel *k = kernel->tir;
	const KernelPlan *p = &kernel->plan;
	b->o = o;
	b->lane_rows = p->tile_rows;
	b->rows = p->block_rows;
	b->w = ARENA_NEW(scratch, Pairwise);
	if (!pairwise_plan(g, scratch, places, p->node, p->nnode, shorts[p->tile_columns].least, shorts[p->tile_columns].most,
	                   p->long_sums, b->w))
		bug(g->arena, "pairwise: %%%u is none", p->node[0]);
	point_begin(&b->l, g, scratch, places, kernel);
	b->l.unit = true;
	count_tasks(b, kernel);
	declare(b);
	point_say_same_memory(&b->l);
	bind_memory(b);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	run_task(b, tir_for(k, lo, hi, pw_int(b, 1), NULL, 0));
	tir_end_for(k, NULL, 0);
}
