/* threads.c: the CONTRACT template for a GPU by multiply-adds of its threads, in strict mode too: there each sum takes
 * its terms one by one in ascending order, as NEST computes it.
 *
 * A task is a tile of the output, of one batch. The block goes through the terms, a panel of them at a time,
 * which its threads bring into shared memory (threads_panel.c): while one is multiplied, what the next one is made
 * of is read, and then staged in the other slot. A thread has 16 or 8 rows of the tile by 8 or 4 columns, in quads
 * that lie a part of the tile apart: so the lanes of a warp read quads side by side, of which four rows and eight columns are
 * enough for all of them, without meeting in a bank. Sums are finished through shared memory (threads_finish.c).
 *
 * A row of shared memory has all rows and columns of a term, and QUAD elements more, so that what is brought along the terms
 * is written without meeting in a bank either.
 *
 * A panel has THREADS_TERMS terms; or a slice of so many for each warp, which brings and multiplies it by itself, so that warps
 * wait for each other at the end alone, and a small tile has many. The blocks of a cluster may divide a tile's terms as well. The
 * sums of slices and of blocks are added in their order (threads_finish.c), which is always the same, but not that of the terms.
 *
 * What is folded need not be a product: a term may be made in any way of a value of the rows and one of the columns (pair_terms.c),
 * and taken into any fold that is one value. Of those a panel's terms are a loop, so that a thread has registers for the values on the
 * way, and a multiprocessor room for another block.
 *
 * There are kernels of several tiles (threads_tile.c). A launch takes one that reads groups where these are aligned, and another
 * one for sizes that do not fill a fraction of a tile. */
#include "passes/schedule/contract/threads.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/contract/pair_terms.h"
#include "passes/schedule/contract/raster.h"

enum {
	MOST_COST = 256, /* of a pair's term, in units of op_cost.h: more are no longer bound by what they read */
	FEW_COST = 8,    /* of one, in a sum, that leaves registers for another block */
	LEAST = 32,     /* rows and columns that are worth a tile */
	LANE_ROWS = 4,  /* of a warp's threads, by quads */
	LANE_COLUMNS = 8,
	SLOTS = 2,
	INDEX_BITS = 31 /* of rows, columns and terms, each */
};

/* The terms after which the next panels of rows and of columns are staged. */
static const unsigned stage_after[2] = {0, 3};

/* --- whether --- */

static int64_t
least_of(const PassOptions *o, int64_t otherwise)
{
	return o->least_tile ? o->least_tile : otherwise;
}

static bool
find_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, Absent *a)
{
	if (contract_is_sum_of_products(g, t) && absent_factors(g, scratch, faulty, t, f, a))
		return true;
	*a = (Absent){0};
	return pair_values(g, scratch, faulty, t, f) && pair_cost(g, scratch, f, tensor_node(g, t)->body) <= MOST_COST;
}

bool
contract_threads_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	Factors f;
	Absent a;
	if (!o->blocks || !find_factors(g, scratch, faulty, t, &f, &a))
		return false;
	const Node *n = tensor_node(g, t);
	uint32_t terms = ((UINT32_C(1) << n->nred) - 1) << n->npar;
	return indices_may_reach(g, n, f.row_axes, least_of(o, LEAST)) && indices_may_reach(g, n, f.column_axes, least_of(o, LEAST)) &&
	       indices_may_reach(g, n, terms, threads_least_terms(o, &(ThreadsTile){.slices = 1}));
}

/* Whether it is an element, which may be widened. */
static bool
is_element(const Graph *g, ExprId factor)
{
	const Expr *e = expr_get(g, factor);
	return (e->op == OP_CAST ? expr_get(g, expr_arg(g, factor, 0)) : e)->op == OP_READ;
}

typedef struct {
	const Graph *g;
	bool functions, bytes; /* bytes: elements of 8 bits and fewer */
} Made;

static void
note_made(void *user, ExprId e)
{
	Made *m = user;
	const Expr *p = expr_get(m->g, e);
	m->functions |= (op_info[p->op].flags & F_MATH) != 0;
	m->bytes |= p->op == OP_READ && dtype_info[p->dtype].bits <= 8;
}

/* What the factors are made of. */
static Made
made_of(const Graph *g, Arena *scratch, const Factors *f)
{
	Made made = {g, false, false};
	expr_walk(g, scratch, f->row, note_made, &made);
	expr_walk(g, scratch, f->column, note_made, &made);
	return made;
}

unsigned
contract_threads_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, bool matrices,
                      KernelPlan *p)
{
	Factors f;
	Absent a;
	Panel rows, columns;
	unsigned count = 0;
	if (!contract_threads_could(g, scratch, places->faulty, t, o) || !find_factors(g, scratch, places->faulty, t, &f, &a))
		return 0;
	const Node *node = tensor_node(g, t);
	panel_find(g, scratch, node, &f, &a, false, &rows);
	panel_find(g, scratch, node, &f, &a, true, &columns);
	bool both = rows.group > 1 && columns.group > 1, groups = !matrices && (rows.group > 1 || columns.group > 1);
	Made made = made_of(g, scratch, &f);
	bool functions = !f.pair && made.functions;
	bool wide = dtype_info[reduction_type(g, node)].bits > 32, elements = is_element(g, f.row) && is_element(g, f.column);
	elements = elements && (!f.pair || (node->monoid == MON_SUM && pair_cost(g, scratch, &f, node->body) <= FEW_COST));
	for (unsigned n = 0; n < CONTRACT_THREADS_PLANS; n++) {
		ThreadsTile tile = threads_tile(n);
		if ((tile.groups && !groups) || (tile.large && wide) || (a.n && !tile.absent) || !threads_tile_exists(g, o, n, both, f.pair))
			continue;
		unsigned group = rows.group > columns.group ? rows.group : columns.group, computed = tile.functions && functions ? tile.functions : tile.computed;
		computed = tile.bytes && made.bytes ? tile.bytes : computed;
		unsigned resident = a.n ? tile.absent : elements ? tile.resident : computed;
		resident = f.pair && !resident ? 1 : resident; /* where nothing is said, assemblers may spill to have more */
		p[count++] = (KernelPlan){.tmpl = TMPL_CONTRACT, .lanes = QUAD, .unroll = 1, .threads = tile.threads,
		                          .group = (uint16_t)(tile.groups ? group : 1), .cluster = tile.cluster,
		                          .resident = (uint16_t)resident, .tile_rows = tile.rows, .tile_columns = tile.columns,
		                          .block_rows = tile.rows, .block_columns = tile.columns, .block_terms = (uint32_t)THREADS_TERMS * tile.slices,
		                          .block_tasks = 1, .nnode = 1, .node = {t}};
	}
	return count;
}

/* --- the launch --- */

/* Whether groups of the panel are whole: a condition, or 0 where they are anyway. */
static ExprId
groups_are_whole(Threads *x, const Panel *p)
{
	Graph *g = x->l.g;
	ExprId inner = p->along_terms ? x->terms.inner : p->indices->inner, group = expr_int(g, DT_I64, p->group);
	return p->whole ? expr_binary(g, OP_EQ, expr_binary(g, OP_IMOD, inner, group), expr_int(g, DT_I64, 0)) : 0;
}

static void
count_tasks(Threads *x, const PassOptions *o, Kernel *kernel)
{
	Graph *g = x->l.g;
	const KernelPlan *p = x->plan;
	ExprId one = expr_int(g, DT_I64, 1);
	ExprId rows = launch_ceil_div(g, x->rows.count, p->tile_rows), columns = launch_ceil_div(g, x->columns.count, p->tile_columns);
	unsigned n = threads_tile_of(p);
	const ThreadsTile tile = threads_tile(n);
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, x->rows.count, least_of(o, LEAST)),
	                           raster_reaches(g, x->columns.count, least_of(o, LEAST)));
	worth = expr_binary(g, OP_MUL, worth, raster_reaches(g, x->terms.count, threads_least_terms(o, &tile)));
	ExprId longest = expr_binary(g, OP_MAX, x->terms.count, expr_binary(g, OP_MAX, x->rows.count, x->columns.count));
	worth = expr_binary(g, OP_MUL, worth, expr_binary(g, OP_SUB, one, raster_reaches(g, longest, INT64_C(1) << INDEX_BITS)));
	worth = expr_binary(g, OP_MUL, worth, threads_tile_suits(x, o, n));
	kernel->ntask = expr_binary(g, OP_MUL, threads_tile_count(x, &tile), worth);
	for (unsigned k = 0; k < 2; k++) {
		ExprId whole = groups_are_whole(x, &x->panel[k]);
		if (whole)
			kernel->ntask = expr_select(g, whole, kernel->ntask, expr_int(g, DT_I64, 0));
	}
	x->row_tiles = point_launch_expr(&x->l, rows);
	x->column_tiles = point_launch_expr(&x->l, columns);
	if (p->cluster) {
		ExprId units = launch_ceil_div(g, x->terms.count, THREADS_TERMS);
		x->units = point_launch_expr(&x->l, units);
		x->npanel = point_launch_expr(&x->l, launch_ceil_div(g, launch_ceil_div(g, units, p->cluster), threads_slices(p)));
		return;
	}
	ExprId width = expr_int(g, DT_I64, p->block_terms);
	x->end = point_launch_expr(&x->l, expr_binary(g, OP_ADD, x->terms.count, width));
	ExprId others = expr_binary(g, OP_IDIV, expr_binary(g, OP_SUB, x->terms.count, one), width);
	x->rest = point_launch_expr(&x->l, expr_binary(g, OP_SUB, x->terms.count, expr_binary(g, OP_MUL, others, width)));
}

/* --- threads --- */

/* By pairs of rows: sixteen lanes side by side read two quads of rows and eight of columns. */
static void
place_threads(Threads *x)
{
	TirKernel *k = x->l.tir;
	const KernelPlan *p = x->plan;
	unsigned columns = threads_of_slice(p) / (p->tile_rows / threads_rows(p));
	ValId odd, column, quad = threads_int(x, QUAD), warp; /* warp: of those of a slice */
	x->inside = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	x->warp = warp = raster_divide(k, x->inside, threads_int(x, TIR_WARP), &x->lane);
	if (threads_slices(p) > 1) {
		x->inside = x->lane;
		x->term_at = threads_op(x, OP_MUL, x->warp, threads_int(x, THREADS_TERMS));
		warp = threads_int(x, 0);
	}
	if (p->cluster)
		x->rank = tir_emit(k, OP_RANK, tir_scalar(DT_I64), 0, NULL, 0);
	ValId half = raster_divide(k, x->lane, threads_int(x, 2), &odd);
	half = raster_divide(k, half, threads_int(x, LANE_COLUMNS), &column);
	ValId row = threads_op(x, OP_ADD, threads_op(x, OP_MUL, half, threads_int(x, 2)), odd);
	ValId across, down = raster_divide(k, warp, threads_int(x, columns / LANE_COLUMNS), &across);
	row = threads_op(x, OP_ADD, row, threads_op(x, OP_MUL, down, threads_int(x, LANE_ROWS)));
	column = threads_op(x, OP_ADD, column, threads_op(x, OP_MUL, across, threads_int(x, LANE_COLUMNS)));
	x->row_at = threads_op(x, OP_MUL, row, quad);
	x->column_at = threads_op(x, OP_MUL, column, quad);
}

/* --- products --- */

void
threads_barrier(Threads *x)
{
	tir_emit(x->l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
}

/* Of the threads of a slice. */
static void
slice_barrier(Threads *x)
{
	bool warp = threads_slices(x->plan) > 1;
	if (warp && BUG(slices_meet_nobody))
		return;
	tir_emit(x->l.tir, OP_BARRIER, (TirType){0}, warp ? TIR_WARP_BARRIER : 0, NULL, 0);
}

/* The thread's `n` rows or columns of a term: quads `apart` from each other. */
static void
load_quads(Threads *x, const Panel *p, ValId slot, ValId own_at, ValId term, unsigned n, ValId *out)
{
	TirKernel *k = x->l.tir;
	unsigned most = 16 / (dtype_info[x->fold.type].bits / 8u), apart = p->own / (n / QUAD);
	for (unsigned i = 0; i < n; i += most) {
		ValId own = threads_op(x, OP_ADD, own_at, threads_int(x, p->first + i / QUAD * apart + i % QUAD));
		const ValId at[3] = {slot, own, threads_slices(x->plan) > 1 ? threads_op(x, OP_ADD, x->term_at, term) : term};
		ValId all = tir_load(k, x->panels, at, 0, TIR_LANES_ALONG(1), most);
		for (unsigned j = 0; j < most; j++)
			out[i + j] = tir_emit(k, OP_LANE, tir_scalar(x->fold.type), j, &all, 1);
	}
}

/* The term of a pair, of which nothing is kept for others. */
static ValId
take_pair(Threads *x, ValId acc, ValId a, ValId b)
{
	Point *l = &x->l;
	Reduction f = x->fold;
	uint32_t mark = point_mark(l);
	f.re = acc;
	point_place(l, x->value[0], a);
	point_place(l, x->value[1], b);
	reduction_term_of(l, &f, x->term, 0, true);
	point_release(l, mark);
	return f.re;
}

static ValId
add_product(Threads *x, ValId acc, ValId a, ValId b)
{
	if (x->term)
		return take_pair(x, acc, a, b);
	if (x->fold.fma)
		return tir_fma(x->l.tir, a, b, acc);
	return threads_op(x, OP_ADD, acc, threads_op(x, OP_MUL, a, b));
}

/* The thread's rows and columns of a term. */
typedef struct {
	ValId row[THREADS_ROWS], column[THREADS_COLUMNS];
} Term;

static void
load_term(Threads *x, ValId slot, ValId term, Term *out)
{
	load_quads(x, &x->panel[0], slot, x->row_at, term, threads_rows(x->plan), out->row);
	load_quads(x, &x->panel[1], slot, x->column_at, term, threads_columns(x->plan), out->column);
}

static void
add_term(Threads *x, const Term *t, ValId *acc)
{
	unsigned rows = threads_rows(x->plan), columns = threads_columns(x->plan);
	for (unsigned r = 0; r < rows; r++)
		for (unsigned c = 0; c < columns; c++)
			acc[r * columns + c] = add_product(x, acc[r * columns + c], t->row[r], t->column[c]);
}

/* The n-th panel of those in a slot. What is read for it goes on from turn to turn of the loop over the terms. */
static ValId *
raw_of(const Threads *x, unsigned n, ValId *raw)
{
	return n ? raw + panel_reads(&x->panel[0]) : raw;
}

/* The terms of a panel from one of them on, one after the other. */
static void
take_terms(Threads *x, ValId slot, ValId from, ValId *acc)
{
	TirKernel *k = x->l.tir;
	unsigned n = threads_rows(x->plan) * threads_columns(x->plan);
	Term t;
	load_term(x, slot, tir_for(k, from, threads_int(x, THREADS_TERMS), threads_int(x, 1), acc, n), &t);
	add_term(x, &t, acc);
	tir_end_for(k, acc, n);
}

static void
stage_next(Threads *x, ValId slot, ValId following, ValId later, ValId *raw)
{
	for (unsigned n = 0; n < 2; n++) {
		panel_stage(x, &x->panel[n], slot, following, false, raw_of(x, n, raw));
		panel_load(x, &x->panel[n], later, false, raw_of(x, n, raw));
	}
}

/* All terms of its slice of a panel, added to the thread's sums; one is read while the one before is multiplied. In between the next
 * panels are staged in the other slot, and those after them are begun to be read, from `later` on. */
static void
multiply(Threads *x, ValId slot, ValId other, ValId following, ValId later, ValId *raw, ValId *acc)
{
	Term now, next;
	if (x->term) {
		take_terms(x, slot, threads_int(x, 0), acc);
		stage_next(x, other, following, later, raw);
		return;
	}
	load_term(x, slot, threads_int(x, 0), &next);
	for (unsigned term = 0; term < THREADS_TERMS; term++) {
		now = next;
		if (term + 1 < THREADS_TERMS)
			load_term(x, slot, threads_int(x, term + 1), &next);
		add_term(x, &now, acc);
		for (unsigned n = 0; n < 2; n++)
			if (term == stage_after[n]) {
				panel_stage(x, &x->panel[n], other, following, false, raw_of(x, n, raw));
				panel_load(x, &x->panel[n], later, false, raw_of(x, n, raw));
			}
	}
}

/* The panels of the block: of all terms, or of its part of the cluster's, which begins at a multiple of THREADS_TERMS. Each part
 * has as many panels, of which no more than the first one is not full. */
static void
find_panels(Threads *x)
{
	TirKernel *k = x->l.tir;
	ValId width = threads_int(x, x->plan->block_terms), unit = threads_int(x, THREADS_TERMS), rest;
	if (!x->plan->cluster) {
		x->first = threads_op(x, OP_SUB, x->rest, width);
		x->last = threads_op(x, OP_SUB, x->terms.all, width);
		return;
	}
	ValId parts = threads_int(x, x->plan->cluster), next = threads_op(x, OP_ADD, x->rank, threads_int(x, 1));
	x->begin = threads_op(x, OP_MUL, raster_divide(k, threads_op(x, OP_MUL, x->units, x->rank), parts, &rest), unit);
	ValId end = threads_op(x, OP_MUL, raster_divide(k, threads_op(x, OP_MUL, x->units, next), parts, &rest), unit);
	end = threads_op(x, OP_MIN, end, x->terms.all);
	x->count = threads_op(x, OP_SUB, end, x->begin);
	x->first = threads_op(x, OP_SUB, end, threads_op(x, OP_MUL, x->npanel, width));
	x->last = threads_op(x, OP_SUB, end, width);
	x->end = threads_op(x, OP_MUL, x->npanel, width);
}

/* All terms, added to the thread's sums. The first panel is the one that may not be full, so the others are read as they
 * are. The last one is read and staged again instead of those beyond it, which nobody multiplies. */
static void
add_terms(Threads *x, ValId *acc)
{
	TirKernel *k = x->l.tir;
	unsigned n = threads_rows(x->plan) * threads_columns(x->plan), nraw = panel_reads(&x->panel[0]) + panel_reads(&x->panel[1]);
	ValId zero = threads_int(x, 0), one = threads_int(x, 1), width = threads_int(x, x->plan->block_terms);
	ValId first = x->first, last = x->last, *raw = acc + n + 1;
	ValId second = x->plan->cluster ? threads_op(x, OP_ADD, first, width) : x->rest;
	for (unsigned p = 0; p < 2; p++) {
		panel_load(x, &x->panel[p], first, true, raw_of(x, p, raw));
		panel_stage(x, &x->panel[p], zero, first, true, raw_of(x, p, raw));
		panel_load(x, &x->panel[p], threads_op(x, OP_MIN, second, last), false, raw_of(x, p, raw));
	}
	slice_barrier(x);
	for (unsigned i = 0; i < n; i++)
		acc[i] = x->fold.re;
	acc[n] = zero;
	if (x->term) { /* there is no term that leaves a fold as it is: the first panel's are taken as far as there are any */
		take_terms(x, zero, threads_op(x, OP_SUB, width, x->rest), acc);
		ValId third = threads_op(x, OP_ADD, second, width);
		stage_next(x, one, threads_op(x, OP_MIN, second, last), threads_op(x, OP_MIN, third, last), raw);
		slice_barrier(x);
		acc[n] = one;
		second = BUG(pair_panel_twice) ? second : third;
	}
	ValId following = tir_for(k, x->plan->cluster ? zero : second, x->end, width, acc, n + 1 + nraw);
	ValId slot = acc[n];
	if (x->plan->cluster) /* as often in each of its blocks */
		following = threads_op(x, OP_ADD, second, following);
	acc[n] = BUG(panels_share_slot) ? slot : threads_op(x, OP_SUB, one, slot);
	ValId later = threads_op(x, OP_MIN, threads_op(x, OP_ADD, following, width), last);
	multiply(x, slot, acc[n], threads_op(x, OP_MIN, following, last), later, raw, acc);
	slice_barrier(x);
	tir_end_for(k, acc, n + 1 + nraw);
	if (threads_slices(x->plan) > 1) /* whose memory sums are staged in */
		threads_barrier(x);
}

/* --- the kernel --- */

static void
bind_shared(Threads *x)
{
	TirKernel *k = x->l.tir;
	const KernelPlan *p = x->plan;
	unsigned width = p->tile_rows + p->tile_columns + QUAD, elements = SLOTS * p->block_terms * width, all = p->tile_rows * p->tile_columns;
	if (p->cluster) {
		unsigned wide = tir_add_buffer(k, 0, x->fold.type, true);
		k->buffer.at[wide].shared = all;
		k->buffer.at[wide].wide = true;
		x->sums = tir_view(k, wide, 2, (ValId[]){threads_int(x, p->cluster), threads_int(x, all)}, (ValId[]){threads_int(x, all), threads_int(x, 1)});
	}
	unsigned buffer = tir_add_buffer(k, 0, x->fold.type, true);
	ValId one = threads_int(x, 1), terms = threads_int(x, p->block_terms), columns = threads_int(x, p->tile_columns);
	k->buffer.at[buffer].shared = elements;
	const ValId extent[3] = {threads_int(x, SLOTS), threads_int(x, width), terms};
	const ValId stride[3] = {threads_int(x, (int64_t)p->block_terms * width), one, threads_int(x, width)};
	x->panels = tir_view(k, buffer, 3, extent, stride);
	ValId rows = threads_int(x, elements / p->tile_columns);
	x->staged = tir_view(k, buffer, 2, (ValId[]){rows, columns}, (ValId[]){columns, one});
}

static void
declare_panels(Threads *x, const Factors *f)
{
	Point *l = &x->l;
	bool real = dtype_is_float(x->fold.type);
	for (unsigned n = 0; n < 2; n++) {
		Panel *p = &x->panel[n];
		panel_find(l->g, l->scratch, l->node, f, &x->absent, n, p);
		p->own = n ? x->plan->tile_columns : x->plan->tile_rows;
		p->first = n ? x->plan->tile_rows : 0;
		p->indices = n ? &x->columns : &x->rows;
		panel_declare(x, p, x->plan->group);
		p->fill = real ? tir_float(l->tir, x->fold.type, n ? -0.0 : 0) : tir_int(l->tir, x->fold.type, 0);
	}
}

static void
build_tasks(Threads *x)
{
	Point *l = &x->l;
	TirKernel *k = l->tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId acc[THREADS_ROWS * THREADS_COLUMNS + 1 + 2 * THREADS_RAW];
	RasterTile tile = raster_tile(k, tir_for(k, lo, hi, threads_int(x, 1), NULL, 0), x->row_tiles, x->column_tiles);
	x->row0 = raster_first(k, tile.row, x->plan->tile_rows);
	x->column0 = raster_first(k, tile.column, x->plan->tile_columns);
	indices_at(&x->l, &x->batch, tile.batch);
	panel_enter(x, &x->panel[0], x->row0);
	panel_enter(x, &x->panel[1], x->column0);
	add_terms(x, acc);
	threads_finish(x, acc);
	tir_end_for(k, NULL, 0);
}

static void
enter_pair(Threads *x, const Factors *f)
{
	Point *l = &x->l;
	x->term = pair_term(l->g, l->scratch, f, l->node->body);
	for (unsigned k = 0; k < 2; k++)
		x->value[k] = pair_stand_in(l->g, f, k);
	point_declare(l, x->term);
}

void
contract_threads_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel)
{
	Threads *x = ARENA_NEW(scratch, Threads);
	Point *l = &x->l;
	TensorId t = kernel->plan.node[0];
	Factors f;
	x->plan = &kernel->plan;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_factors(g, scratch, places->faulty, t, &f, &x->absent))
		bug(g->arena, "%%%u is no contraction for threads", t);
	x->fold = reduction_begin(l);
	if (f.pair)
		enter_pair(x, &f);
	declare_panels(x, &f);
	indices_bind(l, &f, &x->batch, &x->rows, &x->columns, &x->terms);
	count_tasks(x, o, kernel);
	place_threads(x);
	point_say_same_memory(l);
	bind_shared(x);
	find_panels(x);
	build_tasks(x);
}
