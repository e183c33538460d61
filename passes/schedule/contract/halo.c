/* halo.c: the CONTRACT template for a GPU whose warps multiply matrices (warps.c), for a factor that is read by windows, as an image by
 * a convolution, and whose elements lie in no chunks of 16 bytes, as those of images of three channels:
 *
 *     y[n, p, q, o] = sum[r, s, c](x[n, 2*p + r - 3, 2*q + s - 3, c] * w[o, r, s, c]),   terms absent outside of x
 *
 * A tile of the output has a box of rows, one of each of their axes' indices (window_rows.h). What they read of x is a box
 * too, with what windows reach beyond: the halo. A block brings it to shared memory once, each element as it is, 0 outside
 * of x; its rows overlap there as they do in x. Where the element of a row and a term is has two parts, one of the row and
 * one of the term, so a lane adds two numbers for each pair of terms that it loads: those of its rows stay in registers,
 * those of the terms are in a table. Terms that lie side by side are a run: with channels last those of c and s together, else
 * those of s. A run is made of pairs, each in a word; the other axes of the terms count runs. A word's elements have to be an even
 * number of elements from the box's first. Where a row's may be odd, either pixels are padded by an element, or, where there are no
 * pixels, the box is there twice, the second time an element further on.
 *
 * The other factor has a panel of HALO_SHARE pairs of all columns of the tile, 0 where a pair has what is no term of the sum.
 * A task is several boxes one after the other, with the same columns, so that where one panel has all terms it stays. Four warps
 * have a quarter of the tile each, for every other step of the terms; four others have the other steps. Sums are added up
 * and finished as those of warps.c (warps_finish.c).
 *
 * What is no term of a row is multiplied by 0, as is an absent term's factor: a sum that is no number is folded again.
 *
 * Of the rounding of an instruction holds what warps.c says: it loses 18 u S, or where there are roles 10.5, whatever is multiplied by
 * 0. A slice has half of the instructions, and two sums are added: of k for n terms, that is no more than the n u S of the
 * oracle for 9 k + 1 <= n, or 5.25 k + 1 <= n. */
#include "passes/schedule/contract/halo.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/side.h"
#include "passes/schedule/contract/window.h"

enum {
	SIDE = 4,
	LEAST_ROWS = 64, LEAST_COLUMNS = 16, LEAST_TERMS = 16, /* that are worth a tile */
	CHUNK = 8,      /* elements that lie side by side where other kernels take them */
	MOST_STEP = 255,
	RESIDENT = 2,
	LOSS_16 = 42, LOSS_8 = 72, /* quarters of u S that an instruction loses: where it adds 16 products in one go, and where it adds 8 */
	INDEX_BITS = 31
};

/* --- whether --- */

static int64_t
least_of(const PassOptions *o, int64_t otherwise)
{
	return o->least_tile ? o->least_tile : otherwise;
}

/* Notes subscript k of the factor, with axes of these rows; seen: those that there were before. */
static bool
add_subscript(const Graph *g, Arena *scratch, const Node *n, HaloFactor *h, unsigned k, uint32_t rows, uint32_t *seen)
{
	Window *w = &h->window;
	const int64_t *coef = h->sub[k].axis;
	h->sub[k] = (Affine){0};
	if (!affine_add(g, scratch, &h->sub[k], w->sub[k], 1))
		return false;
	if (!window_add_axis(w, n, k, coef, rows, MOST_STEP, seen))
		return false;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		if (coef[a] < 0)
			return false;
	return true;
}

/* The step of the rows' axis in subscript k; 0: it has none. */
static unsigned
row_step(const HaloFactor *h, unsigned k)
{
	for (unsigned i = 0; i < h->window.naxis; i++)
		if (h->window.place[i] == k)
			return h->window.step[i];
	return 0;
}

/* Whether axis a of the terms is in subscript k alone, by itself. */
static bool
is_only_in(const HaloFactor *h, unsigned a, unsigned k)
{
	for (unsigned i = 0; i < h->window.rank; i++)
		if (h->sub[i].axis[a] != (i == k))
			return false;
	return true;
}

/* Which terms are side by side. */
static bool
find_run(const Node *n, HaloFactor *h)
{
	unsigned last = h->window.rank - 1, count = 0, end = (unsigned)n->npar + n->nred;
	for (unsigned a = n->npar; a < end; a++)
		if (h->sub[last].axis[a]) {
			h->inner = a;
			count++;
		}
	if (count != 1 || !is_only_in(h, h->inner, last))
		return false;
	unsigned step = row_step(h, last);
	h->whole = step || !last ? 1 : 2;
	h->twice = step % 2;
	h->pixels = -1;
	for (unsigned a = n->npar; a < end && h->whole == 2; a++)
		h->pixels = is_only_in(h, a, last - 1) ? (int)a : h->pixels;
	h->padded = h->whole == 2 && (h->pixels < 0 || row_step(h, last - 1) % 2);
	for (unsigned a = n->npar; a < end && h->whole == 2; a++)
		h->padded |= (int)a != h->pixels && h->sub[last - 1].axis[a] % 2;
	return true;
}

static bool
find_windows(const Graph *g, Arena *scratch, const Node *n, HaloFactor *h)
{
	ExprId read = contract_matrix_value(g, h->f.row);
	const Expr *p = expr_get(g, read);
	uint32_t seen = 0, terms = ((UINT32_C(1) << n->nred) - 1) << n->npar;
	if (p->op != OP_READ || p->access || p->narg < 1 || p->narg > 5 || g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return false;
	h->window = (Window){.tensor = p->ref, .dtype = (DType)p->dtype, .rank = p->narg, .even = true};
	bool window = false;
	for (unsigned k = 0; k < p->narg; k++) {
		h->window.sub[k] = expr_arg(g, read, k);
		if (!add_subscript(g, scratch, n, h, k, h->f.row_axes, &seen))
			return false;
		window |= row_step(h, k) && (expr_axes(g, scratch, h->window.sub[k]) & terms);
	}
	return window && seen == h->f.row_axes && find_run(n, h) && (!n->guard || window_asks_for_range(g, scratch, &h->window, n->guard));
}

/* A product of two 16-bit factors of the same type, whose sums are of f32, with the rows those of the one that is read by windows. */
static bool
find_product(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, HaloFactor *h)
{
	*h = (HaloFactor){0};
	if (!o->blocks || !o->warp_mma || g->fp == FP_STRICT || !contract_is_sum_of_products(g, t) ||
	    !absent_factors(g, scratch, faulty, t, &h->f, &h->absent))
		return false;
	const Node *n = tensor_node(g, t);
	DType type = contract_narrow_type(g, h->f.row);
	if (reduction_type(g, n) != DT_F32 || !expr_is_true(g, n->domain) || !window_ranges_are_plain(g, scratch, n) ||
	    (n->finish && expr_can_fault(g, scratch, faulty, n->finish)) || type == DT_NONE || type != contract_narrow_type(g, h->f.column))
		return false;
	h->absent.others = true;
	for (unsigned k = 0; k < 2; k++) {
		if (find_windows(g, scratch, n, h) && !absent_is(&h->absent, k == 0)) /* the other factor's panels ask for nothing */
			return indices_may_reach(g, n, h->f.row_axes, least_of(o, LEAST_ROWS)) &&
			       indices_may_reach(g, n, h->f.column_axes, least_of(o, LEAST_COLUMNS));
		h->f = (Factors){.row = h->f.column, .column = h->f.row, .row_axes = h->f.column_axes, .column_axes = h->f.row_axes};
	}
	return false;
}

/* Whether others are asked before, which take all sizes that there are. */
static bool
is_others(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, const HaloFactor *h)
{
	const Node *n = tensor_node(g, t);
	const Expr *terms = expr_get(g, n->axis[h->inner].hi);
	return contract_window_could(g, scratch, faulty, t, o) && terms->op == OP_CONST && terms->imm.i >= 2 * CHUNK && terms->imm.i % CHUNK == 0;
}

static unsigned
inner_of(uint32_t axes)
{
	return 31u - (unsigned)__builtin_clz(axes);
}

unsigned
contract_halo_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan)
{
	HaloFactor *h = ARENA_NEW(scratch, HaloFactor);
	if (places->faulty[t] || !find_product(g, scratch, places->faulty, t, o, h) || is_others(g, scratch, places->faulty, t, o, h) ||
	    places_memory(g, places, t) == places_memory(g, places, h->window.tensor))
		return 0;
	unsigned count = 0;
	for (unsigned side = side_possible(g, tensor_node(g, t), inner_of(h->f.column_axes)) ? SIDE : 1; side; side = side > 1)
		plan[count++] = (KernelPlan){.tmpl = TMPL_CONTRACT, .unroll = 1, .pairs = WARP_MMA_TERM_WORDS, .halo = true, .threads = WARPS_THREADS,
		                             .group = (uint16_t)side, .resident = RESIDENT, .tile_rows = HALO_ROWS, .tile_columns = HALO_COLUMNS,
		                             .block_rows = HALO_ROWS, .block_columns = HALO_COLUMNS, .block_terms = 2 * HALO_SHARE,
		                             .block_tasks = 1, .nnode = 1, .node = {t}};
	return count;
}

/* --- the launch --- */

static ExprId
num(Halo *h, int64_t v)
{
	return expr_int(h->w.l.g, DT_I64, v);
}

static ExprId
op(Halo *h, Op o, ExprId a, ExprId b)
{
	return expr_binary(h->w.l.g, o, a, b);
}

static ExprId
terms_of(const Halo *h, unsigned axis)
{
	return h->w.l.node->axis[axis].hi;
}

/* Indices of the box along subscript k. */
static ExprId
extent_of(Halo *h, unsigned k, const ExprId *box)
{
	const Node *n = h->w.l.node;
	ExprId all = num(h, 1), one = num(h, 1);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		if (h->of.sub[k].axis[a])
			all = op(h, OP_ADD, all, op(h, OP_MUL, op(h, OP_SUB, terms_of(h, a), one), num(h, h->of.sub[k].axis[a])));
	for (unsigned i = 0; i < h->of.window.naxis; i++)
		if (h->of.window.place[i] == k)
			all = op(h, OP_ADD, all, op(h, OP_MUL, op(h, OP_SUB, box[i], one), num(h, h->of.window.step[i])));
	return all;
}

/* Twice the next whole number from half of e on. */
static ExprId
made_even(Halo *h, ExprId e)
{
	return op(h, OP_ADD, e, op(h, OP_IMOD, e, num(h, 2)));
}

/* What the box has, and runs of terms, over dims. A line has an element more than it needs. */
static void
find_sizes(Halo *h, const ExprId *box)
{
	const Node *n = h->w.l.node;
	unsigned rank = h->of.window.rank;
	ExprId inner = terms_of(h, h->of.inner);
	h->pixel = h->of.whole == 1 ? num(h, 1) : h->of.padded ? made_even(h, inner) : inner;
	h->run = h->of.whole == 1 ? inner : h->of.pixels < 0 ? h->pixel : op(h, OP_MUL, h->pixel, terms_of(h, (unsigned)h->of.pixels));
	ExprId line = h->of.whole == 1 ? extent_of(h, rank - 1, box) : op(h, OP_MUL, h->pixel, extent_of(h, rank - 2, box));
	h->line = made_even(h, op(h, OP_ADD, line, num(h, 1)));
	h->lines = num(h, 1);
	for (unsigned k = 0; k + h->of.whole < rank; k++)
		h->lines = op(h, OP_MUL, h->lines, extent_of(h, k, box));
	h->pairs = op(h, OP_IDIV, made_even(h, h->run), num(h, 2));
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		if (a != h->of.inner && (int)a != h->of.pixels)
			h->pairs = op(h, OP_MUL, h->pairs, terms_of(h, a));
	h->nstep = op(h, OP_MUL, launch_ceil_div(h->w.l.g, h->pairs, WARPS_SLICES * HALO_STEP), num(h, WARPS_SLICES));
}

static ExprId
at_most(Halo *h, ExprId e, int64_t most)
{
	return op(h, OP_SUB, num(h, 1), raster_reaches(h->w.l.g, e, most + 1));
}

/* Over dims: 1 where the sizes are worth a tile, and shared memory has room for it; else 0. */
static ExprId
worth(Halo *h, const PassOptions *o)
{
	Graph *g = h->w.l.g;
	Warps *x = &h->w;
	const Tensor *in = &g->tensor.at[h->of.window.tensor];
	ExprId w = op(h, OP_MUL, raster_reaches(g, x->rows.count, least_of(o, LEAST_ROWS)), raster_reaches(g, x->columns.count, least_of(o, LEAST_COLUMNS)));
	w = op(h, OP_MUL, w, raster_reaches(g, x->terms.count, least_of(o, LEAST_TERMS)));
	for (unsigned k = 0; k < h->of.window.rank; k++) /* else there is nothing to read */
		w = op(h, OP_MUL, w, raster_reaches(g, in->extent[k], 1));
	ExprId elements = op(h, OP_MUL, op(h, OP_MUL, h->lines, h->line), num(h, h->of.twice ? 2 : 1));
	w = op(h, OP_MUL, w, op(h, OP_MUL, at_most(h, elements, HALO_ELEMENTS), at_most(h, h->lines, HALO_LINES)));
	w = op(h, OP_MUL, w, at_most(h, h->pairs, HALO_PAIRS));
	ExprId loss = op(h, OP_ADD, op(h, OP_MUL, h->nstep, num(h, (o->roles ? LOSS_16 : LOSS_8) / WARPS_SLICES)), num(h, 4));
	w = op(h, OP_MUL, w, expr_select(g, op(h, OP_LE, loss, op(h, OP_MUL, x->terms.count, num(h, 4))), num(h, 1), num(h, 0)));
	ExprId longest = op(h, OP_MAX, x->rows.count, x->columns.count);
	return op(h, OP_MUL, w, at_most(h, longest, (INT64_C(1) << INDEX_BITS) - 1));
}

static ExprId
ceil_div(Halo *h, ExprId a, ExprId b)
{
	return op(h, OP_IDIV, op(h, OP_SUB, op(h, OP_ADD, a, b), num(h, 1)), b);
}

static void
count_tasks(Halo *h, const PassOptions *o, Kernel *kernel)
{
	Point *l = &h->w.l;
	Graph *g = l->g;
	Warps *x = &h->w;
	ExprId box[WINDOW_AXES], boxes = window_bind_rows(&h->of.window, l, HALO_ROWS, true, box);
	find_sizes(h, box);
	ExprId columns = launch_ceil_div(g, x->columns.count, HALO_COLUMNS), others = columns, right = worth(h, o);
	if (x->batch.naxis)
		others = op(h, OP_MUL, others, x->batch.count);
	if (x->plan->group > 1)
		right = op(h, OP_MUL, right, expr_select(g, op(h, OP_EQ, op(h, OP_IMOD, x->columns.inner, num(h, SIDE)), num(h, 0)), num(h, 1), num(h, 0)));
	ExprId blocks = op(h, OP_MUL, gpu_fact(g, GPU_PROCESSORS), num(h, RESIDENT)); /* at once: each has a task, where there are as many boxes */
	ExprId run = ceil_div(h, op(h, OP_MUL, boxes, others), blocks);
	run = op(h, OP_MAX, run, num(h, 1));
	ExprId runs = ceil_div(h, boxes, run);
	kernel->ntask = op(h, OP_MUL, op(h, OP_MUL, runs, others), right);
	x->row_tiles = point_launch_expr(l, runs);
	x->column_tiles = point_launch_expr(l, columns);
	h->box_run = point_launch_expr(l, run);
	h->boxes = h->of.window.count;
}

/* As scalars of the kernel. */
static void
bind_sizes(Halo *h)
{
	Point *l = &h->w.l;
	Graph *g = l->g;
	const Node *n = l->node;
	const HaloFactor *of = &h->of;
	Warps *x = &h->w;
	ValId one = warps_int(x, 1);
	h->npixel = point_launch_expr(l, h->pixel);
	h->nrun = point_launch_expr(l, h->run);
	h->nline = point_launch_expr(l, h->line);
	h->nlines = point_launch_expr(l, h->lines);
	h->npairs = point_launch_expr(l, h->pairs);
	h->run_pairs = point_launch_expr(l, op(h, OP_IDIV, made_even(h, h->run), num(h, 2)));
	h->steps = point_launch_expr(l, h->nstep);
	h->rounds = point_launch_expr(l, launch_ceil_div(g, h->pairs, HALO_SHARE));
	for (unsigned k = 0; k < of->window.rank; k++) {
		h->extent[k] = one;
		for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
			if (of->sub[k].axis[a]) {
				ValId more = warps_op(x, OP_SUB, point_launch_expr(l, terms_of(h, a)), one);
				h->extent[k] = warps_op(x, OP_ADD, h->extent[k], warps_op(x, OP_MUL, more, warps_int(x, of->sub[k].axis[a])));
			}
		for (unsigned i = 0; i < of->window.naxis; i++)
			if (of->window.place[i] == k) {
				ValId more = warps_op(x, OP_SUB, of->window.box[i], one);
				h->extent[k] = warps_op(x, OP_ADD, h->extent[k], warps_op(x, OP_MUL, more, warps_int(x, of->window.step[i])));
			}
	}
	unsigned k = of->window.rank;
	h->pitch[--k] = one;
	if (of->whole == 2)
		h->pitch[--k] = h->npixel;
	for (ValId pitch = h->nline; k-- > 0; pitch = warps_op(x, OP_MUL, pitch, h->extent[k]))
		h->pitch[k] = pitch;
}

static ValId
shared_view(Halo *h, DType t, unsigned outer, unsigned inner)
{
	TirKernel *k = h->w.l.tir;
	Warps *x = &h->w;
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = outer * inner;
	ValId one = warps_int(x, 1);
	return outer > 1 ? tir_view(k, buffer, 2, (ValId[]){warps_int(x, outer), warps_int(x, inner)}, (ValId[]){warps_int(x, inner), one})
	                 : tir_view(k, buffer, 1, (ValId[]){warps_int(x, inner)}, &one);
}

static void
bind_shared(Halo *h)
{
	TirKernel *k = h->w.l.tir;
	DType t = h->of.window.dtype;
	h->halo = shared_view(h, t, 1, HALO_ELEMENTS + WARPS_THREADS);
	h->columns = shared_view(h, t, HALO_COLUMNS, 2 * HALO_SHARE + HALO_GAP);
	h->table = shared_view(h, DT_U32, 1, HALO_PAIRS);
	h->where = shared_view(h, DT_I64, 1, HALO_LINES + HALO_LINES_MORE);
	unsigned staged = tir_add_buffer(k, 0, DT_F32, true);
	k->buffer.at[staged].shared = warps_staged_elements(&h->w);
	warps_bind_staged(&h->w, staged);
}

/* --- products --- */

/* The words of a block of the warp's rows at two pairs of terms. */
static void
load_rows(Halo *h, unsigned block, const ValId *pair, ValId *to)
{
	Warps *x = &h->w;
	TirKernel *k = x->l.tir;
	DType t = h->of.window.dtype;
	for (unsigned e = 0; e < WARPS_ELEMENTS; e++) {
		ValId at = tir_cast(k, DT_I64, warps_op(x, OP_ADD, h->row_at[block][e % 2], pair[e / 2]));
		ValId word = tir_load(k, h->halo, &at, 0, TIR_LANES_ALONG(0), 2);
		for (unsigned i = 0; i < 2; i++)
			to[2 * e + i] = tir_emit(k, OP_LANE, tir_scalar(t), i, &word, 1);
	}
}

/* Block n of the warp's columns at this step of the panel. Its matrices are loaded so that what an instruction takes is side by side. */
static void
load_columns(Halo *h, ValId from, unsigned n, ValId step, ValId *to)
{
	Warps *x = &h->w;
	TirKernel *k = x->l.tir;
	DType t = h->of.window.dtype;
	ValId half, in_matrix, quarter = raster_divide(k, x->lane, warps_int(x, TIR_MATRIX), &in_matrix);
	ValId odd = raster_divide(k, quarter, warps_int(x, 2), &half);
	ValId column = warps_op(x, OP_ADD, in_matrix, warps_op(x, OP_MUL, odd, warps_int(x, TIR_MATRIX)));
	column = warps_op(x, OP_ADD, warps_op(x, OP_ADD, from, warps_int(x, n * WARPS_BLOCK)), column);
	ValId term = warps_op(x, OP_ADD, warps_op(x, OP_MUL, step, warps_int(x, 2 * HALO_STEP)), warps_op(x, OP_MUL, half, warps_int(x, TIR_MATRIX)));
	ValId all = tir_load_matrix(k, t, h->columns, (ValId[]){column, term}, false);
	for (unsigned e = 0; e < 2 * WARPS_ELEMENTS; e++) {
		unsigned word = e / 2, as_rows = word % 2 * 2 + word / 2; /* warps_multiply takes words in their order */
		to[2 * as_rows + e % 2] = tir_emit(k, OP_LANE, tir_scalar(t), e, &all, 1);
	}
}

/* Added to the warp's sums: this step of the terms, which is that of the panel. */
static void
multiply_step(Halo *h, ValId step, ValId in_panel, ValId *acc)
{
	Warps *x = &h->w;
	TirKernel *k = x->l.tir;
	unsigned down = warps_blocks(&x->side[0]), across = warps_blocks(&x->side[1]);
	ValId rows[WARPS_BLOCKS][2 * WARPS_ELEMENTS], columns[WARPS_BLOCKS][2 * WARPS_ELEMENTS], pair[2], quad;
	raster_divide(k, x->lane, warps_int(x, HALO_STEP / 2), &quad);
	ValId at = warps_op(x, OP_ADD, warps_op(x, OP_MUL, step, warps_int(x, HALO_STEP)), quad);
	for (unsigned e = 0; e < 2; e++) {
		ValId place = warps_op(x, OP_ADD, at, warps_int(x, e * HALO_STEP / 2));
		pair[e] = tir_load(k, h->table, &place, 0, 0, 0);
	}
	for (unsigned i = 0; i < down; i++)
		load_rows(h, i, pair, rows[i]);
	for (unsigned j = 0; j < across; j++)
		load_columns(h, warps_op(x, OP_MUL, x->across, warps_int(x, HALO_COLUMNS / WARPS_ACROSS)), j, in_panel, columns[j]);
	for (unsigned i = 0; i < down; i++)
		for (unsigned j = 0; j < 2 * across; j++)
			warps_multiply(x->l.tir, rows[i], columns[j / 2], j % 2, acc + (i * 2 * across + j) * WARP_MMA_C);
}

/* All terms of the tile that is entered. */
static void
add_terms(Halo *h, ValId fresh, ValId *acc)
{
	Warps *x = &h->w;
	TirKernel *k = x->l.tir;
	unsigned n = warps_blocks(&x->side[0]) * warps_blocks(&x->side[1]) * 2 * WARP_MMA_C;
	ValId zero = warps_int(x, 0), one = warps_int(x, 1), share = warps_int(x, HALO_SHARE / HALO_STEP);
	for (unsigned i = 0; i < n; i++)
		acc[i] = tir_float(k, DT_F32, 0);
	ValId round = tir_for(k, zero, h->rounds, one, acc, n);
	tir_if(k, warps_op(x, OP_OR, fresh, warps_op(x, OP_LT, one, h->rounds)));
	warps_barrier(x); /* until all have read what was there */
	halo_stage_columns(h, round);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	warps_barrier(x);
	ValId first = warps_op(x, OP_MUL, round, share), end = warps_op(x, OP_MIN, h->steps, warps_op(x, OP_ADD, first, share));
	ValId step = warps_op(x, OP_ADD, tir_for(k, first, end, warps_int(x, WARPS_SLICES), acc, n), x->slice);
	multiply_step(h, step, warps_op(x, OP_SUB, step, first), acc);
	tir_end_for(k, acc, n);
	tir_end_for(k, acc, n);
}

/* --- the kernel --- */

/* A task's boxes have the same columns. */
static void
build_tasks(Halo *h)
{
	Warps *x = &h->w;
	TirKernel *k = x->l.tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId acc[WARPS_SUMS], one = warps_int(x, 1);
	halo_place_pairs(h);
	if (x->plan->group > 1)
		warps_place_rows(x);
	RasterTile tile = raster_tile(k, tir_for(k, lo, hi, one, NULL, 0), x->row_tiles, x->column_tiles);
	x->row0 = warps_int(x, 0);
	x->column0 = warps_op(x, OP_MUL, tile.column, warps_int(x, HALO_COLUMNS));
	ValId first = warps_op(x, OP_MUL, tile.row, h->box_run);
	ValId end = warps_op(x, OP_MIN, h->boxes, warps_op(x, OP_ADD, first, h->box_run));
	indices_at(&x->l, &x->batch, tile.batch);
	uint32_t mark = point_mark(&x->l);
	ValId box = tir_for(k, first, end, one, NULL, 0);
	window_enter_tile(&h->of.window, box);
	warps_place_threads(x, 1);
	halo_stage_box(h);
	add_terms(h, BUG(halo_panel_kept) ? warps_op(x, OP_EQ, box, warps_int(x, 0)) : warps_op(x, OP_EQ, box, first), acc);
	warps_place_threads(x, 2);
	warps_finish(x, acc);
	tir_end_for(k, NULL, 0);
	point_release(&x->l, mark);
	tir_end_for(k, NULL, 0);
}

void
contract_halo_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel)
{
	Halo *h = ARENA_NEW(scratch, Halo);
	Warps *x = &h->w;
	Point *l = &x->l;
	TensorId t = kernel->plan.node[0];
	x->plan = &kernel->plan;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_product(g, scratch, places->faulty, t, o, &h->of))
		bug(g->arena, "%%%u is no contraction by windows for warps", t);
	x->absent = h->of.absent;
	x->window = &h->of.window;
	x->side[0].own = HALO_ROWS;
	x->side[1].own = HALO_COLUMNS;
	indices_bind(l, &h->of.f, &x->batch, &x->rows, &x->columns, &x->terms);
	count_tasks(h, o, kernel);
	bind_sizes(h);
	warps_place_threads(x, 0);
	halo_place_rows(h);
	point_say_same_memory(l);
	bind_shared(h);
	build_tasks(h);
}
