/* roles_pieces.c: tasks of kernels of roles that are pieces of the output's terms, where tiles are few: each tile has as many
 * pieces as there are processors for (split-K, as NVIDIA's CUTLASS calls it; the blocks of a cluster divide terms too, but there
 * is room for few clusters of many blocks: 15 of 8 on an H200, which has 132 processors).
 *
 * Task p has piece p div t of tile p mod t, of t tiles: tasks side by side have the same terms, and go through them together, so
 * that what tiles have in common comes from memory once, and is asked of the cache once by processors that are neighbours. That is
 * why no task has pieces of several tiles, as in Osama, Merrill, Cecka, Garland, Owens, "Stream-K: Work-Centric Parallel
 * Decomposition for Dense Matrix-Matrix Multiplication on the GPU", PPoPP 2023, whose tasks begin anywhere: of 2304 x 2304 x 4096
 * on an H200 such asked the L2 cache for 602 MB where whole tiles ask for 390, and took 71 us for 64; 5008 cubed took 463 for 427.
 *
 * What each piece has of an element goes to memory, where a second kernel, which follows this one, adds the pieces of all elements
 * and finishes them (roles_join.c). Its blocks come while the last pieces end. No task waits for another one: where the last piece of
 * a tile waited for the others and added them, words that they posted had to be cleared by the launch, and one processor brought
 * what all others had.
 *
 * How many pieces there are, the sizes and the number of processors say alone, and so what is added to what. A piece is added by one
 * addition, or by two, and has at least a step of terms, which the bound on the error in roles.c has room for: its own products leave
 * 0.34 u S of each term. */
#include "ir/bugs.h"
#include "ir/gpu_facts.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	LEAST = 1000, /* cycles of a piece's steps: less is gained by another piece than its sums cost, 25 cycles where tiles are small */
	WARP_ROWS = 16
};

/* --- the launch --- */

void
roles_count_pieces(Roles *r, const RolesTile *t, RolesPieces *to)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1);
	to->tiles = roles_tile_count(r, t);
	ExprId room = expr_binary(g, OP_IDIV, gpu_fact(g, GPU_PROCESSORS), expr_binary(g, OP_MAX, to->tiles, one));
	ExprId steps = launch_ceil_div(g, r->nterm, TIR_PART_TERMS), most = expr_binary(g, OP_IDIV, steps, expr_int(g, DT_I64, (LEAST + t->step - 1) / t->step));
	most = expr_binary(g, OP_MAX, expr_binary(g, OP_MIN, expr_binary(g, OP_MIN, room, expr_int(g, DT_I64, t->pieces)), most), one);
	/* none more than there must be where none is to have more steps */
	ExprId more = expr_binary(g, OP_SUB, most, one);
	to->steps = expr_binary(g, OP_MAX, expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, steps, more), most), one);
	more = expr_binary(g, OP_SUB, to->steps, one);
	to->pieces = expr_binary(g, OP_MAX, expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, steps, more), to->steps), one);
}

ExprId
roles_rows_of_output(const Roles *r)
{
	Graph *g = r->l.g;
	ExprId rows = expr_int(g, DT_I64, 1);
	for (unsigned a = 0; a < r->l.node->npar; a++)
		if (a != r->of.column_axis)
			rows = expr_binary(g, OP_MUL, rows, roles_extent(r, a));
	return rows;
}

void
roles_bind_pieces(Roles *r, Kernel *kernel)
{
	Graph *g = r->l.g;
	RolesPieces x;
	roles_count_pieces(r, &r->tile, &x);
	ExprId each = roles_rows_of_output(r), rows = expr_binary(g, OP_MUL, each, x.pieces), elements = expr_binary(g, OP_MUL, rows, r->ncolumn);
	vec_push(g->arena, &kernel->buffer, ((BufferBind){.kind = BIND_PASSED, .tensor = r->plan->node[0], .elements = elements}));
	unsigned buffer = tir_add_buffer(r->l.tir, g->tensor.at[r->plan->node[0]].name, DT_F32, !r->plan->joins);
	const ValId extent[2] = {point_launch_expr(&r->l, rows), point_launch_expr(&r->l, r->ncolumn)}, stride[2] = {extent[1], roles_int(r, 1)};
	r->pieces = (PieceValues){.sums = tir_view(r->l.tir, buffer, 2, extent, stride),
	                          .tiles = point_launch_expr(&r->l, x.tiles),
	                          .pieces = point_launch_expr(&r->l, x.pieces),
	                          .rows = point_launch_expr(&r->l, each)};
}

/* --- which piece a task has --- */

static ValId
first_step(Roles *r, ValId piece)
{
	ValId rest;
	return roles_divide(r, roles_op(r, OP_MUL, r->steps, piece), r->pieces.pieces, &rest);
}

void
roles_enter_piece(Roles *r)
{
	PieceValues *x = &r->pieces;
	x->piece = roles_divide(r, r->task, x->tiles, &r->task);
	r->step0 = first_step(r, x->piece);
	r->step_end = first_step(r, roles_op(r, OP_ADD, x->piece, roles_int(r, 1)));
	if (BUG(piece_step_missing))
		r->step0 = roles_op(r, OP_MIN, roles_op(r, OP_ADD, r->step0, x->piece), roles_op(r, OP_SUB, r->step_end, roles_int(r, 1)));
}

/* --- what is handed over --- */

/* Where a row of the tile has its sums; *apart: from one to the next. */
static ValId
place_of_row(Roles *r, ValId row, ValId *apart)
{
	ValId place = r->pieces.piece;
	*apart = roles_int(r, 1);
	for (unsigned a = 0; a < r->l.node->npar; a++) {
		if (a == r->of.column_axis)
			continue;
		ValId extent = point_launch_expr(&r->l, roles_extent(r, a));
		place = roles_op(r, OP_ADD, roles_op(r, OP_MUL, place, extent), a == r->of.row_axis ? row : r->coord[a]);
		*apart = a > r->of.row_axis ? roles_op(r, OP_MUL, *apart, extent) : *apart;
	}
	return place;
}

/* Whether index i is below the end, and none that a tile before this one has, which has so many of its first ones. */
static ValId
is_own(Roles *r, ValId i, ValId first, ValId skip, ValId end)
{
	ValId own = roles_op(r, OP_LE, skip, tir_cast(r->l.tir, DT_U32, roles_op(r, OP_SUB, i, first)));
	return roles_op(r, OP_AND, own, roles_op(r, OP_LT, i, end));
}

static ValId
sum_of(Roles *r, unsigned n)
{
	return r->total ? r->total[n] : tir_emit(r->l.tir, OP_PIECE, tir_scalar(DT_F32), n, NULL, 0);
}

void
roles_hand_over(Roles *r)
{
	enum { MOST_ROWS = 8 };
	TirKernel *k = r->l.tir;
	unsigned columns = r->tile.columns, repeats = roles_repeats(r);
	ValId lane, quad, apart, warp = roles_divide(r, r->thread, roles_int(r, TIR_WARP), &lane);
	roles_divide(r, warp, roles_int(r, TIR_GROUP / TIR_WARP), &warp);
	ValId row = roles_op(r, OP_ADD, r->row0, roles_divide(r, lane, roles_int(r, 4), &quad));
	row = roles_op(r, OP_ADD, row, roles_op(r, OP_MUL, r->group, roles_int(r, (int64_t)repeats * TIR_MMA_ROWS)));
	row = roles_op(r, OP_ADD, row, roles_op(r, OP_MUL, warp, roles_int(r, WARP_ROWS)));
	ValId column = roles_op(r, OP_ADD, r->column0, roles_op(r, OP_MUL, quad, roles_int(r, 2)));
	ValId place[MOST_ROWS], own[MOST_ROWS], first = place_of_row(r, row, &apart), row_end = point_launch_expr(&r->l, r->nrow), column_end = point_launch_expr(&r->l, r->ncolumn);
	for (unsigned n = 0; n < 2 * repeats; n++) {
		ValId down = roles_int(r, n / 2 * TIR_MMA_ROWS + n % 2 * (WARP_ROWS / 2));
		place[n] = roles_op(r, OP_ADD, first, roles_op(r, OP_MUL, apart, down));
		own[n] = is_own(r, roles_op(r, OP_ADD, row, down), r->row0, r->skip_rows, row_end);
	}
	for (unsigned c = 0; c < columns; c += 8) {
		ValId at = roles_op(r, OP_ADD, column, roles_int(r, c)), there = is_own(r, at, r->column0, r->skip_columns, column_end);
		for (unsigned n = 0; n < 2 * repeats; n++) {
			unsigned piece = n / 2 * (columns / 2) + c / 2 + n % 2 * 2;
			const ValId pair[2] = {sum_of(r, piece), sum_of(r, piece + 1)};
			ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
			tir_store(k, r->pieces.sums, both, (ValId[]){place[n], at}, tir_binary(k, OP_AND, there, own[n]), TIR_LANES_ALONG(1));
		}
	}
}
