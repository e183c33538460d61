/* warps.c: the CONTRACT template for a GPU whose warps multiply matrices by mma.sync, which all have from sm_80 on: a sum
 * of products of two bf16 or f16 factors or, in fast mode, of f32 factors that are rounded to tf32; each an element of a
 * tensor with indices that are known without memory.
 *
 * A task is a tile of the output, of one batch. The block goes through the terms, a panel of WARPS_TERMS words of them at a
 * time, of which shared memory holds a ring of WARPS_SLOTS: while one is multiplied the next ones are copied, which takes
 * no registers (warps_panel.c). A barrier a panel says that the copies of all threads have come, and that the slot before
 * has been read; the panel that is copied there is WARPS_SLOTS - 1 further on. Four warps have a quarter of the tile
 * each, for one half of every panel's terms; four others have the other half. They load blocks of 16 rows or columns by
 * 16 terms, of f32 by 8, each of which is multiplied by all of the other side's. Sums are added up and finished through the same
 * shared memory (warps_finish.c).
 *
 * The largest tile fills a multiprocessor's registers with one block. A launch takes the tile that is predicted to take
 * least; rows of factors that do not begin at multiples of 16 bytes, or end there, are another kernel's. Where kernels of
 * windows are asked before, what is left has too few rows, columns or terms for them, and gets the small tile. Kernels of
 * roles leave nothing.
 *
 * A term may be absent (absent.c) where all of a chunk's are: zeros are copied.
 *
 * Terms beyond the last one are 0 in both factors. The order of the sums is the hardware's, in steps of 16 terms, which
 * the strict mode does not allow. Of its rounding holds what roles.c says where an instruction adds 16 products in one go
 * and keeps 2 bits below a significand, as on an H100 (scripts/gpu-products.py). Earlier ones add 8, and an A100 was seen
 * to keep a bit (Fasi, Higham, Mikaitis and Pranesh, "Numerical behavior of NVIDIA tensor cores", 2021). Then each of the
 * 9 but the largest loses less than u E, where E is the largest's power of two. What is left are multiples of u E, whose
 * sum loses u E more if it is below 2 E, or (2^k - 1) u E if it is below 2^k E and so S at least 2^(k-1) E: less than 9 u
 * S for 8 terms. No warp has more than n / 2 + 16 of n terms, and two sums are added: that is less than the n u S of the
 * oracle for n >= 44.
 *
 * A factor of f32 is rounded to 11 bits as it is loaded, to the nearest: a product is then within (2^-10 + 2^-22) of its
 * magnitude, where the instruction by itself would cut bits off, for 2^-9. The oracle's fast mode allows (2^-10 + 2^-14) S
 * besides n u S, so that there is room for what the sums lose whatever their number. */
#include "passes/schedule/contract/warps.h"

#include "ir/bugs.h"
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/side.h"

enum {
	SIDE = 4,
	LEAST = 16,       /* rows and columns that are worth a tile */
	INDEX_BITS = 31   /* of rows, columns and terms, each */
};

/* A panel takes a multiprocessor so many cycles, where it has all blocks that fit; a block of its own no less than `alone`. */
typedef struct {
	uint16_t rows, columns, resident, side, step, alone;
} Tile;
static const Tile tiles[WARPS_MOST_PLANS] = {
	{128, 128, 1, SIDE, 1000, 1000},
	{128, 64, 1, SIDE, 620, 620},
	{64, 64, 2, SIDE, 420, 480},
	/* where the output's rows do not begin at multiples of 16 bytes */
	{128, 128, 1, 1, 1000, 1000},
	{64, 64, 2, 1, 420, 480},
};

unsigned
contract_warps_tiles(void)
{
	return WARPS_MOST_PLANS;
}

static unsigned
tile_of(const KernelPlan *p)
{
	unsigned n = 0;
	while (tiles[n].rows != p->tile_rows || tiles[n].columns != p->tile_columns || tiles[n].side != p->group)
		n++;
	return n;
}

static bool
is_small(const Tile *t)
{
	return t->rows == 64;
}

/* --- whether --- */

typedef struct {
	Factors f;
	Absent absent;
	WarpsSide side[2];
} Product;

static int64_t
least_of(const PassOptions *o, int64_t otherwise)
{
	return o->least_tile ? o->least_tile : otherwise;
}

/* A panel: with fewer, sums of 16-bit factors would not be within their bound. */
static int64_t
least_terms(const PassOptions *o, DType t)
{
	return least_of(o, WARPS_TERMS * warp_mma_word(t));
}

/* A product of two factors of the same type, whose sums are of f32. */
static bool
find_product(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, Product *p)
{
	if (!o->blocks || !o->warp_mma || g->fp == FP_STRICT || !contract_is_sum_of_products(g, t) ||
	    !absent_factors(g, scratch, faulty, t, &p->f, &p->absent))
		return false;
	const Node *n = tensor_node(g, t);
	uint32_t terms = ((UINT32_C(1) << n->nred) - 1) << n->npar;
	DType type = contract_matrix_type(g, p->f.row);
	return reduction_type(g, n) == DT_F32 && !(n->finish && expr_can_fault(g, scratch, faulty, n->finish)) &&
	       type != DT_NONE && type == contract_matrix_type(g, p->f.column) &&
	       indices_may_reach(g, n, p->f.row_axes, least_of(o, LEAST)) && indices_may_reach(g, n, p->f.column_axes, least_of(o, LEAST)) &&
	       indices_may_reach(g, n, terms, least_terms(o, type));
}

static bool
find_elements(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, Product *p)
{
	const Node *n = tensor_node(g, t);
	return find_product(g, scratch, faulty, t, o, p) && warps_side_find(g, scratch, n, &p->f, &p->absent, false, &p->side[0]) &&
	       warps_side_find(g, scratch, n, &p->f, &p->absent, true, &p->side[1]);
}

bool
contract_warps_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	Product *p = ARENA_NEW(scratch, Product);
	return find_elements(g, scratch, faulty, t, o, p);
}

bool
contract_warps_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, ExprId *factor)
{
	Product *p = ARENA_NEW(scratch, Product);
	if (!find_product(g, scratch, faulty, t, o, p) || p->absent.n)
		return false;
	const Node *n = tensor_node(g, t);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		if (expr_get(g, n->axis[a].lo)->op != OP_CONST || expr_get(g, n->axis[a].lo)->imm.i != 0)
			return false;
	factor[0] = warps_side_find(g, scratch, n, &p->f, &p->absent, false, &p->side[0]) ? 0 : p->f.row;
	factor[1] = warps_side_find(g, scratch, n, &p->f, &p->absent, true, &p->side[1]) ? 0 : p->f.column;
	return true;
}

static unsigned
inner_of(uint32_t axes)
{
	return 31u - (unsigned)__builtin_clz(axes);
}

unsigned
contract_warps_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, bool windows,
                    KernelPlan *plan)
{
	Product *p = ARENA_NEW(scratch, Product);
	if (places->faulty[t] || !find_elements(g, scratch, places->faulty, t, o, p))
		return 0;
	TensorId out = places_memory(g, places, t);
	for (unsigned n = 0; n < 2; n++)
		if (places_memory(g, places, expr_get(g, p->side[n].read)->ref) == out)
			return 0;
	bool side = side_possible(g, tensor_node(g, t), inner_of(p->f.column_axes));
	unsigned count = 0;
	for (unsigned n = 0; n < WARPS_MOST_PLANS; n++) {
		const Tile *tile = &tiles[n];
		if ((o->warps_tile && o->warps_tile != n + 1) || (tile->side > 1 && !side) || (windows && !is_small(tile)))
			continue;
		plan[count++] = (KernelPlan){.tmpl = TMPL_CONTRACT, .unroll = 1, .pairs = (uint8_t)(WARP_MMA_TERM_WORDS * p->side[0].word / 2), .threads = WARPS_THREADS,
		                             .group = tile->side, .resident = tile->resident, .tile_rows = tile->rows,
		                             .tile_columns = tile->columns, .block_rows = tile->rows, .block_columns = tile->columns,
		                             .block_terms = WARPS_TERMS * p->side[0].word, .block_tasks = 1, .nnode = 1, .node = {t}};
	}
	return count;
}

/* --- the launch --- */

static ExprId
one_if(Graph *g, ExprId cond)
{
	return expr_select(g, cond, expr_int(g, DT_I64, 1), expr_int(g, DT_I64, 0));
}

static ExprId
is_multiple(Graph *g, ExprId e, int64_t of)
{
	return one_if(g, expr_binary(g, OP_EQ, expr_binary(g, OP_IMOD, e, expr_int(g, DT_I64, of)), expr_int(g, DT_I64, 0)));
}

static ExprId
tile_count(Warps *x, const Tile *t)
{
	Graph *g = x->l.g;
	ExprId n = expr_binary(g, OP_MUL, launch_ceil_div(g, x->rows.count, t->rows), launch_ceil_div(g, x->columns.count, t->columns));
	return x->batch.naxis ? expr_binary(g, OP_MUL, n, x->batch.count) : n;
}

/* Over dims: of a panel of all tiles, about. */
static ExprId
cycles(Warps *x, const Tile *t)
{
	Graph *g = x->l.g;
	ExprId each = gpu_waves(g, tile_count(x, t), GPU_ALL);
	ExprId full = expr_binary(g, OP_MUL, each, expr_int(g, DT_I64, t->step));
	ExprId waves = expr_binary(g, OP_MUL, launch_ceil_div(g, each, t->resident), expr_int(g, DT_I64, t->alone));
	return expr_binary(g, OP_MAX, full, waves);
}

/* Over dims: whether the tile takes no longer than any other one that finishes elements in the same way, of those behind it. */
static ExprId
is_best(Warps *x, const Tile *t)
{
	Graph *g = x->l.g;
	ExprId best = expr_int(g, DT_I64, 1);
	for (const Tile *other = t + 1; other < tiles + WARPS_MOST_PLANS; other++)
		if (other->side == t->side)
			best = expr_binary(g, OP_MUL, best, one_if(g, expr_binary(g, OP_LE, cycles(x, t), cycles(x, other))));
	return best;
}

static void
count_tasks(Warps *x, const PassOptions *o, Kernel *kernel)
{
	Graph *g = x->l.g;
	const Tile *tile = &tiles[tile_of(x->plan)];
	ExprId one = expr_int(g, DT_I64, 1);
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, x->rows.count, least_of(o, LEAST)),
	                           raster_reaches(g, x->columns.count, least_of(o, LEAST)));
	worth = expr_binary(g, OP_MUL, worth, raster_reaches(g, x->terms.count, least_terms(o, x->side[0].dtype)));
	ExprId longest = expr_binary(g, OP_MAX, x->terms.count, expr_binary(g, OP_MAX, x->rows.count, x->columns.count));
	worth = expr_binary(g, OP_MUL, worth, expr_binary(g, OP_SUB, one, raster_reaches(g, longest, INT64_C(1) << INDEX_BITS)));
	for (unsigned n = 0; n < 2; n++)
		worth = expr_binary(g, OP_MUL, worth, is_multiple(g, x->side[n].turned ? x->side[n].indices->inner : x->terms.inner, WARPS_CHUNK * x->side[n].word));
	if (tile->side > 1)
		worth = expr_binary(g, OP_MUL, worth, is_multiple(g, x->columns.inner, tile->side));
	kernel->could = expr_binary(g, OP_MUL, tile_count(x, tile), worth);
	if (!o->warps_tile)
		worth = expr_binary(g, OP_MUL, worth, is_best(x, tile));
	kernel->ntask = expr_binary(g, OP_MUL, tile_count(x, tile), worth);
	x->row_tiles = point_launch_expr(&x->l, launch_ceil_div(g, x->rows.count, tile->rows));
	x->column_tiles = point_launch_expr(&x->l, launch_ceil_div(g, x->columns.count, tile->columns));
	x->panels = point_launch_expr(&x->l, launch_ceil_div(g, x->terms.count, warps_terms(x)));
}

/* --- products --- */

void
warps_barrier(Warps *x)
{
	tir_emit(x->l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
}

static void
copy_panel(Warps *x, ValId slot, ValId panel)
{
	ValId term = warps_op(x, OP_MUL, panel, warps_int(x, warps_terms(x)));
	for (unsigned n = 0; n < 2; n++)
		warps_side_copy(x, &x->side[n], slot, term);
}

void
warps_multiply(TirKernel *k, const ValId *rows, const ValId *columns, unsigned half, ValId *sum)
{
	ValId arg[WARP_MMA_OPERANDS];
	unsigned word = warp_mma_word((DType)tir_inst(k, rows[0])->type.dtype), n = 0;
	for (unsigned e = 0; e < WARP_MMA_A_WORDS * word; e++)
		arg[n++] = rows[e];
	for (unsigned e = 0; e < WARP_MMA_B_WORDS * word; e++)
		arg[n++] = columns[(e / word * 2 + half) * word + e % word];
	for (unsigned e = 0; e < WARP_MMA_C; e++)
		arg[n++] = sum[e];
	ValId all = tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, WARP_MMA_C), 0, arg, n);
	for (unsigned e = 0; e < WARP_MMA_C; e++)
		sum[e] = tir_emit(k, OP_LANE, tir_scalar(DT_F32), e, &all, 1);
}

/* The warp's slice of the panel in a slot, added to its sums; `free` gets the panel that is number `later`. */
static void
multiply_panel(Warps *x, ValId slot, ValId free, ValId later, ValId *acc)
{
	unsigned down = warps_blocks(&x->side[0]), across = warps_blocks(&x->side[1]);
	ValId rows[WARPS_BLOCKS][2 * WARPS_ELEMENTS], columns[WARPS_BLOCKS][2 * WARPS_ELEMENTS];
	for (unsigned part = 0; part < WARPS_PARTS; part++) {
		for (unsigned i = 0; i < down; i++)
			warps_side_load(x, &x->side[0], slot, i, part, rows[i]);
		for (unsigned j = 0; j < across; j++)
			warps_side_load(x, &x->side[1], slot, j, part, columns[j]);
		if (part == 0)
			copy_panel(x, free, later);
		for (unsigned i = 0; i < down; i++)
			for (unsigned j = 0; j < 2 * across; j++)
				warps_multiply(x->l.tir, rows[i], columns[j / 2], j % 2, acc + (i * 2 * across + j) * WARP_MMA_C);
	}
}

static ValId
next_slot(Warps *x, ValId slot)
{
	ValId next = warps_op(x, OP_ADD, slot, warps_int(x, 1));
	return tir_select(x->l.tir, warps_op(x, OP_EQ, next, warps_int(x, WARPS_SLOTS)), warps_int(x, 0), next);
}

/* All terms, added to the warp's sums. A wait ends the group of what was begun to be copied since the last one: of the panels
 * behind the one that is multiplied, all but the last have been begun to be copied before it. */
static void
add_terms(Warps *x, ValId *acc)
{
	TirKernel *k = x->l.tir;
	enum { AHEAD = WARPS_SLOTS - 1 };
	unsigned n = warps_blocks(&x->side[0]) * warps_blocks(&x->side[1]) * 2 * WARP_MMA_C;
	for (unsigned p = 0; p < AHEAD; p++) {
		if (p)
			tir_async_wait(k, AHEAD);
		copy_panel(x, warps_int(x, p), warps_int(x, p));
	}
	for (unsigned i = 0; i < n; i++)
		acc[i] = tir_float(k, DT_F32, 0);
	ValId *slot = acc + n, *free = slot + 1; /* of the panel; the one before */
	*slot = warps_int(x, 0);
	*free = warps_int(x, AHEAD);
	ValId panel = tir_for(k, warps_int(x, 0), x->panels, warps_int(x, 1), acc, n + 2);
	tir_async_wait(k, BUG(panel_unawaited) ? AHEAD : AHEAD - 1);
	warps_barrier(x);
	multiply_panel(x, *slot, BUG(slot_copied_early) ? next_slot(x, *slot) : *free, warps_op(x, OP_ADD, panel, warps_int(x, AHEAD)), acc);
	*free = *slot;
	*slot = next_slot(x, *slot);
	tir_end_for(k, acc, n + 2);
	tir_async_wait(k, 0);
	warps_barrier(x);
}

/* --- the kernel --- */

void
warps_place_threads(Warps *x, int64_t time)
{
	TirKernel *k = x->l.tir;
	ValId in_slice;
	x->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), time, NULL, 0);
	x->warp = raster_divide(k, x->thread, warps_int(x, TIR_WARP), &x->lane);
	x->slice = raster_divide(k, x->warp, warps_int(x, WARPS_ACROSS * WARPS_ACROSS), &in_slice);
	x->down = raster_divide(k, in_slice, warps_int(x, WARPS_ACROSS), &x->across);
}

static void
bind_shared(Warps *x)
{
	TirKernel *k = x->l.tir;
	unsigned buffer = tir_add_buffer(k, 0, DT_F32, true), all = WARPS_SLOTS * x->words;
	ValId one = warps_int(x, 1), words = warps_int(x, x->words);
	k->buffer.at[buffer].shared = all;
	x->ring = tir_view(k, buffer, 2, (ValId[]){warps_int(x, WARPS_SLOTS), words}, (ValId[]){words, one});
	warps_bind_staged(x, buffer);
}

static void
bind_sides(Warps *x, const Product *p)
{
	x->absent = p->absent;
	for (unsigned n = 0; n < 2; n++) {
		x->side[n] = p->side[n];
		x->side[n].there = absent_condition(x->l.g, &x->absent, n);
		point_declare(&x->l, x->side[n].there);
		x->side[n].own = n ? x->plan->tile_columns : x->plan->tile_rows;
		x->side[n].first = n ? x->side[0].own * WARPS_TERMS : 0;
		x->side[n].indices = n ? &x->columns : &x->rows;
		x->words += x->side[n].own * WARPS_TERMS;
	}
}

static void
build_tasks(Warps *x)
{
	TirKernel *k = x->l.tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId acc[WARPS_SUMS + 2];
	RasterTile tile = raster_tile(k, tir_for(k, lo, hi, warps_int(x, 1), NULL, 0), x->row_tiles, x->column_tiles);
	x->row0 = raster_first(k, tile.row, x->plan->tile_rows);
	x->column0 = raster_first(k, tile.column, x->plan->tile_columns);
	indices_at(&x->l, &x->batch, tile.batch);
	warps_side_enter(x, &x->side[0], x->row0);
	warps_side_enter(x, &x->side[1], x->column0);
	add_terms(x, acc);
	warps_finish(x, acc);
	tir_end_for(k, NULL, 0);
}

void
contract_warps_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel)
{
	Warps *x = ARENA_NEW(scratch, Warps);
	Product *p = ARENA_NEW(scratch, Product);
	Point *l = &x->l;
	TensorId t = kernel->plan.node[0];
	x->plan = &kernel->plan;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_elements(g, scratch, places->faulty, t, o, p))
		bug(g->arena, "%%%u is no contraction for warps", t);
	bind_sides(x, p);
	indices_bind(l, &p->f, &x->batch, &x->rows, &x->columns, &x->terms);
	count_tasks(x, o, kernel);
	warps_place_threads(x, 0);
	warps_side_place(x, &x->side[0], x->down);
	warps_side_place(x, &x->side[1], x->across);
	point_say_same_memory(l);
	bind_shared(x);
	build_tasks(x);
}
