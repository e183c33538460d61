/* roles_expanded.c: sums of squares of differences as what is taken from the sums of a product of thirds (Node.expanded;
 * fuse/expand_squares.c says what of and how exactly).
 *
 * A thread's sums are a + b less the product's where the hardware has those, before they are staged (roles_finish.c). A warp knows of
 * which of its panels some are below TG_EXPANDED_LEAST of a + b, or no numbers: those it folds again, term by term, as the body says,
 * and takes these in their place. Others of the panel stay as they are, whatever their neighbours are.
 *
 * Folding again is slow (roles_mend.c): of points in eight places, far from one another, each panel has some, and 8192 by 8192 of them
 * took 6.2 ms on an H200, where others take 0.27 and tiles of threads 0.77. What all points have in common is taken from them before. */
#include "ir/bugs.h"
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/roles_build.h"
#include "passes/schedule/op_cost.h"

enum { WARP_ROWS = 16 };

/* --- whether it pays --- */

enum {
	LEAST_TERMS = 64,      /* of which the definition's bound allows what the expanded sum's roundings are, eight times as large */
	LEAST_ROWS = 64,       /* and columns */
	OPERATIONS = 120,      /* of terms in a cycle of a processor, by tiles of threads: 769 us of 8192 by 8192 pairs of 128 terms on an H200 */
	THREADS_TILE = 128, USUAL_COLUMNS = 128,
	KERNELS = 3, BYTES = 12 /* that make factors and their sums; of each element, read and written */
};

static void
add_cost(void *user, ExprId e)
{
	struct { const Graph *g; unsigned units; } *c = user;
	const Expr *x = expr_get(c->g, e);
	c->units += x->op == OP_READ || x->op == OP_CAST ? 0 : op_cost((Op)x->op).vector;
}

/* Cycles, about, of tiles of threads. */
static ExprId
direct_cycles(Roles *r)
{
	Graph *g = r->l.g;
	const Node *n = r->l.node;
	struct { const Graph *g; unsigned units; } cost = {g, 0};
	expr_walk(g, r->l.scratch, n->body, add_cost, &cost);
	ExprId tiles = expr_binary(g, OP_MUL, launch_ceil_div(g, r->nrow, THREADS_TILE), launch_ceil_div(g, r->ncolumn, THREADS_TILE));
	for (unsigned a = 0; a < n->npar; a++)
		if (a != r->of.row_axis && a != r->of.column_axis)
			tiles = expr_binary(g, OP_MUL, tiles, roles_extent(r, a));
	ExprId each = expr_binary(g, OP_MUL, r->nterm, expr_int(g, DT_I64, (int64_t)THREADS_TILE * THREADS_TILE * cost.units / OPERATIONS));
	return gpu_arithmetic(g, expr_binary(g, OP_MUL, gpu_waves(g, tiles, GPU_ALL), each));
}

/* Of a tile that most sizes have, and of what makes the factors. */
static ExprId
expanded_cycles(Roles *r)
{
	Graph *g = r->l.g;
	unsigned n = 0;
	ExprId count = expr_int(g, DT_I64, 0);
	while (roles_tile(n).thirds != r->of.thirds || roles_tile(n).columns != USUAL_COLUMNS)
		n++;
	const RolesTile tile = roles_tile(n);
	for (unsigned p = 0; p < 2; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		ExprId all = expr_int(g, DT_I64, BYTES);
		for (unsigned a = 0; a < e->naxis; a++)
			all = expr_binary(g, OP_MUL, all, roles_extent(r, e->axis[a]));
		count = expr_binary(g, OP_ADD, count, all);
	}
	ExprId made = expr_binary(g, OP_MUL, gpu_launch(g), expr_int(g, DT_I64, KERNELS));
	return expr_binary(g, OP_ADD, roles_cycles(r, &tile), expr_binary(g, OP_ADD, made, gpu_moving(g, count)));
}

ExprId
contract_expanded_pays(Graph *g, Arena *scratch, TensorId t, const PassOptions *o)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	r->l.g = g;
	r->l.scratch = scratch;
	r->l.node = tensor_node(g, t);
	if (!roles_find_elements(g, scratch, NULL, t, &r->of))
		bug(g->arena, "%%%u has no product that it is expanded to", t);
	roles_find_sizes(r);
	ExprId pays = roles_thirds_fit(r);
	if (!o->roles_tile)
		pays = expr_binary(g, OP_AND, expr_binary(g, OP_LE, expanded_cycles(r), direct_cycles(r)), pays);
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, r->nrow, LEAST_ROWS), raster_reaches(g, r->ncolumn, LEAST_ROWS));
	worth = expr_binary(g, OP_MUL, worth, raster_reaches(g, r->nterm, LEAST_TERMS));
	return expr_binary(g, OP_MUL, worth, expr_select(g, pays, expr_int(g, DT_I64, 1), expr_int(g, DT_I64, 0)));
}

/* --- what is taken from what --- */

/* a or b at the point, along its axis at i. */
static ValId
element_at(Roles *r, ExprId element, unsigned axis, ValId i)
{
	uint32_t mark = point_mark(&r->l);
	r->l.axis[axis] = i;
	ValId v = point_value(&r->l, element, true).re;
	point_release(&r->l, mark);
	return v;
}

static ValId
last_of(Roles *r, unsigned axis)
{
	return roles_op(r, OP_SUB, point_launch_expr(&r->l, roles_extent(r, axis)), roles_int(r, 1));
}

/* How much of a whole is beyond the least that it may be of a + b: not a number where it is none, nor where that is infinite. Then
 * no part of a product was either, which are less than half of that. */
static ValId
beyond_least(Roles *r, ValId whole, ValId both)
{
	return roles_op(r, OP_SUB, whole, roles_op(r, OP_MUL, both, tir_float(r->l.tir, DT_F32, TG_EXPANDED_LEAST)));
}

static ValId
is_beyond(Roles *r, ValId more)
{
	return roles_op(r, OP_LE, tir_float(r->l.tir, DT_F32, 0), more);
}

ValId
roles_expanded_holds(Roles *r, ValId whole)
{
	const Point *l = &r->l;
	unsigned row = r->of.row_axis, column = r->of.column_axis;
	ValId a = element_at(r, r->of.of_row, row, roles_op(r, OP_MIN, l->axis[row], last_of(r, row)));
	ValId b = element_at(r, r->of.of_column, column, roles_op(r, OP_MIN, l->axis[column], last_of(r, column)));
	return is_beyond(r, beyond_least(r, whole, roles_op(r, OP_ADD, a, b)));
}

/* The first row and column that the thread has of the tile. */
static void
find_first(Roles *r, ValId *row, ValId *column)
{
	ValId lane, quad, in_group;
	ValId warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &lane);
	roles_divide(r, warp, roles_int(r, TIR_GROUP / TIR_WARP), &in_group);
	*row = roles_op(r, OP_ADD, roles_op(r, OP_MUL, in_group, roles_int(r, WARP_ROWS)), roles_divide(r, lane, roles_int(r, 4), &quad));
	if (!r->tile.turns)
		*row = roles_op(r, OP_ADD, *row, roles_op(r, OP_MUL, r->group, roles_int(r, (int64_t)roles_repeats(r) * TIR_MMA_ROWS)));
	*row = roles_op(r, OP_ADD, r->row0, *row);
	*column = roles_op(r, OP_ADD, r->column0, roles_op(r, OP_MUL, quad, roles_int(r, 2)));
}

enum { MOST_OWN = 72 };

/* a of the thread's rows and then b of its columns; those that there are not are the last one's. Maps have fewer than 2^32 of either. */
static void
read_own(Roles *r, ValId *to)
{
	TirKernel *k = r->l.tir;
	unsigned columns = r->tile.columns, each = columns / 2, rows = roles_repeats(r) * 2;
	ValId first[2], last[2] = {last_of(r, r->of.row_axis), last_of(r, r->of.column_axis)};
	if (rows + each / 2 > MOST_OWN)
		bug(r->l.g->arena, "a thread has sums of %u rows and columns", rows + each / 2);
	find_first(r, &first[0], &first[1]);
	for (unsigned n = 0; n < 2; n++) {
		first[n] = tir_cast(k, DT_U32, first[n]);
		last[n] = tir_cast(k, DT_U32, last[n]);
	}
	for (unsigned i = 0; i < rows + each / 2; i++) {
		bool column = i >= rows;
		unsigned n = i - rows, on = column ? tir_piece_column(n / 2 * 4 + n % 2, 0, columns) : tir_piece_row(i / 2 * each + i % 2 * 2, 0, columns);
		ValId at = roles_op(r, OP_MIN, roles_op(r, OP_ADD, first[column], tir_int(k, DT_U32, on)), last[column]);
		to[i] = element_at(r, column ? r->of.of_column : r->of.of_row, column ? r->of.column_axis : r->of.row_axis, tir_cast(k, DT_I64, at));
	}
}

ValId
roles_expand(Roles *r)
{
	TirKernel *k = r->l.tir;
	unsigned columns = r->tile.columns, each = columns / 2, n = roles_repeats(r) * each, across = roles_across(&r->tile, false);
	ValId own[MOST_OWN], *a = own, *b = own + roles_repeats(r) * 2, doubt = tir_int(k, DT_U32, 0);
	for (unsigned x = 0; x < r->l.node->npar; x++)
		r->l.axis[x] = r->coord[x];
	read_own(r, own);
	for (unsigned panel = 0; panel < roles_repeats(r) * across; panel++) {
		ValId least = tir_float(k, DT_F32, 0);
		for (unsigned p = 0; p < n; p++) {
			if (p / each * across + tir_piece_column(p, 0, columns) / r->tile.panel != panel)
				continue;
			ValId both = roles_op(r, OP_ADD, a[p / each * 2 + p / 2 % 2], b[p % each / 4 * 2 + p % 2]);
			r->total[p] = roles_op(r, OP_SUB, both, r->total[p]);
			least = roles_op(r, OP_MIN, least, beyond_least(r, r->total[p], both));
		}
		ValId bit = tir_select(k, is_beyond(r, least), tir_int(k, DT_U32, 0), tir_int(k, DT_U32, INT64_C(1) << panel));
		doubt = tir_binary(k, OP_BOR, doubt, bit);
	}
	for (unsigned lanes = 1; lanes < TIR_WARP; lanes *= 2)
		doubt = tir_binary(k, OP_BOR, doubt, tir_emit(k, OP_SHUFFLE, tir_scalar(DT_U32), lanes, &doubt, 1));
	return BUG(expanded_unmended) ? tir_int(k, DT_U32, 0) : doubt;
}
