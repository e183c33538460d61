/* roles_join.c: the kernel that follows one of roles whose tasks are pieces of terms (roles_pieces.c): it adds what the pieces have of
 * each element, and finishes it.
 *
 * A task has SIDE elements of the output for each lane of a warp, in the order in which the output has them. The block's warps take
 * every so manieth piece each, a few at a time, so that their reads wait together; then the first warp adds what the warps have, in
 * their order, and finishes the elements. Which warp has which piece says the number of pieces alone: so do all bits.
 *
 * Sums of thirds that come out as no finite numbers are folded again, term by term, as in roles_finish.c. */
#include "ir/bugs.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	WARPS = ROLES_JOIN_THREADS / TIR_WARP,
	AT_ONCE = 4, /* pieces that a warp reads together */
	SIDE = 4     /* elements side by side of a lane */
};

typedef struct {
	Roles *r;
	ValId quads, across;      /* of the output, of a row of it */
	ValId warp, lane, staged; /* staged: view of shared memory, (warp, element) */
	ValId there, row, column; /* of the lane */
} Join;

static void
bind_staged(Join *j)
{
	TirKernel *k = j->r->l.tir;
	unsigned each = TIR_WARP * SIDE, buffer = tir_add_buffer(k, 0, DT_F32, true);
	k->buffer.at[buffer].shared = WARPS * each;
	const ValId extent[2] = {roles_int(j->r, WARPS), roles_int(j->r, each)}, stride[2] = {extent[1], roles_int(j->r, 1)};
	j->staged = tir_view(k, buffer, 2, extent, stride);
}

static void
barrier(Join *j)
{
	tir_emit(j->r->l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
}

/* The lane's elements, of the output whose axes but the columns' are one. */
static void
enter(Join *j, ValId task)
{
	Roles *r = j->r;
	ValId right, quad = roles_op(r, OP_ADD, roles_op(r, OP_MUL, task, roles_int(r, TIR_WARP)), j->lane);
	j->there = roles_op(r, OP_LT, quad, j->quads);
	j->row = roles_divide(r, quad, j->across, &right);
	j->column = roles_op(r, OP_MUL, right, roles_int(r, SIDE));
}

/* What the warp's pieces have of them. */
static void
add_pieces(Join *j, ValId *sum)
{
	Roles *r = j->r;
	TirKernel *k = r->l.tir;
	for (unsigned c = 0; c < SIDE; c++)
		sum[c] = tir_float(k, DT_F32, 0);
	ValId first = tir_for(k, roles_int(r, BUG(piece_forgotten)), r->pieces.pieces, roles_int(r, WARPS * AT_ONCE), sum, SIDE), quad[AT_ONCE];
	for (unsigned n = 0; n < AT_ONCE; n++) {
		ValId piece = roles_op(r, OP_ADD, roles_op(r, OP_ADD, first, j->warp), roles_int(r, n * WARPS));
		ValId mask = tir_binary(k, OP_AND, j->there, roles_op(r, OP_LT, piece, r->pieces.pieces));
		const ValId at[2] = {roles_op(r, OP_ADD, roles_op(r, OP_MUL, piece, r->pieces.rows), j->row), j->column};
		quad[n] = tir_load(k, r->pieces.sums, at, mask, TIR_LANES_ALONG(1), SIDE);
	}
	for (unsigned n = 0; n < AT_ONCE; n++)
		for (unsigned c = 0; c < SIDE; c++)
			sum[c] = roles_op(r, OP_ADD, sum[c], tir_emit(k, OP_LANE, tir_scalar(DT_F32), c, &quad[n], 1));
	tir_end_for(k, sum, SIDE);
}

/* What all warps have of the lane's elements. */
static void
add_warps(Join *j, ValId *sum)
{
	Roles *r = j->r;
	TirKernel *k = r->l.tir;
	ValId at = roles_op(r, OP_MUL, j->lane, roles_int(r, SIDE));
	for (unsigned w = 0; w < WARPS; w++) {
		ValId all = tir_load(k, j->staged, (ValId[]){roles_int(r, w), at}, 0, TIR_LANES_ALONG(1), SIDE);
		for (unsigned c = 0; c < SIDE; c++) {
			ValId own = tir_emit(k, OP_LANE, tir_scalar(DT_F32), c, &all, 1);
			sum[c] = w ? roles_op(r, OP_ADD, sum[c], own) : own;
		}
	}
}

/* Those that are no finite numbers are what they are when they are folded again. */
static void
mend(Join *j, ValId *sum)
{
	Roles *r = j->r;
	Point *l = &r->l;
	TirKernel *k = l->tir;
	ValId all = tir_int(k, DT_BOOL, 1), again[SIDE];
	for (unsigned c = 0; c < SIDE; c++)
		all = tir_binary(k, OP_AND, all, roles_is_finite(r, sum[c]));
	tir_if(k, all);
	tir_else(k, sum, SIDE);
	for (unsigned c = 0; c < SIDE; c++)
		again[c] = tir_float(k, DT_F32, 0);
	l->axis[r->of.term_axis] = tir_for(k, roles_int(r, 0), point_launch_expr(l, r->nterm), roles_int(r, 1), again, SIDE);
	for (unsigned c = 0; c < SIDE; c++) {
		uint32_t mark = point_mark(l);
		l->axis[r->of.column_axis] = roles_op(r, OP_ADD, j->column, roles_int(r, c));
		again[c] = roles_op(r, OP_ADD, again[c], point_value(l, l->node->body, true).re);
		point_release(l, mark);
	}
	tir_end_for(k, again, SIDE);
	l->axis[r->of.column_axis] = j->column;
	for (unsigned c = 0; c < SIDE; c++)
		again[c] = tir_select(k, roles_is_finite(r, sum[c]), sum[c], again[c]);
	tir_end_if(k, again, SIDE);
	for (unsigned c = 0; c < SIDE; c++)
		sum[c] = again[c];
}

static void
finish(Join *j)
{
	Roles *r = j->r;
	Point *l = &r->l;
	Side side;
	PointVal done[SIDE];
	ValId sum[SIDE], row = j->row;
	add_warps(j, sum);
	l->axis[r->of.column_axis] = j->column;
	for (unsigned a = l->node->npar; a-- > 0;)
		if (a != r->of.column_axis)
			row = roles_divide(r, row, point_launch_expr(l, roles_extent(r, a)), &l->axis[a]);
	if (r->of.thirds)
		mend(j, sum);
	side_begin(&side, l, SIDE, r->of.column_axis);
	side_finish(&side, sum, done);
	side_store(&side, done);
}

static void
declare(Roles *r, const Places *places)
{
	Point *l = &r->l;
	TensorId t = r->plan->node[0];
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!roles_find_elements(l->g, l->scratch, places->faulty, t, &r->of))
		bug(l->g->arena, "%%%u is no contraction for roles", t);
	roles_find_sizes(r);
}

void
contract_join_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Join j = {.r = r};
	TirKernel *k = kernel->tir;
	r->plan = &kernel->plan;
	r->tile = roles_tile(roles_tile_of(r->plan));
	point_begin(&r->l, g, scratch, places, kernel);
	declare(r, places);
	ExprId across = expr_binary(g, OP_IDIV, r->ncolumn, expr_int(g, DT_I64, SIDE)), quads = expr_binary(g, OP_MUL, roles_rows_of_output(r), across);
	kernel->ntask = launch_ceil_div(g, quads, TIR_WARP);
	j.across = point_launch_expr(&r->l, across);
	j.quads = point_launch_expr(&r->l, quads);
	roles_bind_pieces(r, kernel);
	point_say_same_memory(&r->l);
	bind_staged(&j);
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	j.warp = roles_divide(r, thread, roles_int(r, TIR_WARP), &j.lane);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId sum[SIDE];
	enter(&j, tir_for(k, lo, hi, roles_int(r, 1), NULL, 0));
	add_pieces(&j, sum);
	ValId all = tir_emit(k, OP_JOIN, tir_vector(DT_F32, SIDE), 0, sum, SIDE);
	tir_store(k, j.staged, all, (ValId[]){j.warp, roles_op(r, OP_MUL, j.lane, roles_int(r, SIDE))}, 0, TIR_LANES_ALONG(1));
	if (!BUG(pieces_meet_nobody))
		barrier(&j);
	tir_if(k, tir_binary(k, OP_AND, j.there, roles_op(r, OP_EQ, j.warp, roles_int(r, 0))));
	finish(&j);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	barrier(&j);
	tir_end_for(k, NULL, 0);
}
