/* roles_join.c: the kernel that follows one of roles whose tasks are pieces of terms (roles_pieces.c): it adds what the pieces have of
 * each element, and finishes it.
 *
 * The lanes of a unit have SIDE elements of the output each, which fill a line of memory, and the units of a block share the pieces of
 * as many lines as there are units for: each takes every so manieth piece, some at a time, so that its reads wait together. Units of a
 * warp add what they have by shuffles, and warps through shared memory, where the first of those that have the same elements
 * finishes them. Which unit has which piece says the number of pieces alone: so do all bits.
 *
 * Sums of thirds that come out as no finite numbers are folded again, term by term, as in roles_finish.c. */
#include "ir/bugs.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	SIDE = 4,    /* elements side by side of a lane */
	LANES = 8,   /* of a unit */
	IN_WARP = TIR_WARP / LANES, UNITS = ROLES_JOIN_THREADS / LANES, WARPS = ROLES_JOIN_THREADS / TIR_WARP,
	AT_ONCE = 4  /* pieces that a unit reads together */
};

typedef struct {
	Roles *r;
	ValId quads, across;      /* of the output, of a row of it */
	ValId shares;             /* units that have the same elements: a power of two; */
	ValId share, group;       /* which of these the lane's is, and which those */
	ValId warp, lane, right;  /* lane: of the warp; right: of the unit */
	ValId staged;             /* view of shared memory: (warp, element) */
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

static void
place_thread(Join *j)
{
	Roles *r = j->r;
	ValId thread = tir_emit(r->l.tir, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	j->warp = roles_divide(r, thread, roles_int(r, TIR_WARP), &j->lane);
	j->group = roles_divide(r, roles_divide(r, thread, roles_int(r, LANES), &j->right), j->shares, &j->share);
}

/* The lane's elements, of the output whose axes but the columns' are one. */
static void
enter(Join *j, ValId task)
{
	Roles *r = j->r;
	ValId rest, right, groups = roles_divide(r, roles_int(r, UNITS), j->shares, &rest);
	ValId group = roles_op(r, OP_ADD, roles_op(r, OP_MUL, task, groups), j->group);
	ValId quad = roles_op(r, OP_ADD, roles_op(r, OP_MUL, group, roles_int(r, LANES)), j->right);
	j->there = roles_op(r, OP_LT, quad, j->quads);
	j->row = roles_divide(r, quad, j->across, &right);
	j->column = roles_op(r, OP_MUL, right, roles_int(r, SIDE));
}

/* What the unit's pieces have of them. */
static void
add_pieces(Join *j, ValId *sum)
{
	Roles *r = j->r;
	TirKernel *k = r->l.tir;
	for (unsigned c = 0; c < SIDE; c++)
		sum[c] = tir_float(k, DT_F32, 0);
	ValId step = roles_op(r, OP_MUL, j->shares, roles_int(r, AT_ONCE)), quad[AT_ONCE];
	ValId piece = roles_op(r, OP_ADD, tir_for(k, roles_int(r, BUG(piece_forgotten)), r->pieces.pieces, step, sum, SIDE), j->share);
	for (unsigned n = 0; n < AT_ONCE; n++) {
		ValId mask = tir_binary(k, OP_AND, j->there, roles_op(r, OP_LT, piece, r->pieces.pieces));
		const ValId at[2] = {roles_op(r, OP_ADD, roles_op(r, OP_MUL, piece, r->pieces.rows), j->row), j->column};
		quad[n] = tir_load(k, r->pieces.sums, at, mask, TIR_LANES_ALONG(1), SIDE);
		piece = roles_op(r, OP_ADD, piece, j->shares);
	}
	for (unsigned n = 0; n < AT_ONCE; n++)
		for (unsigned c = 0; c < SIDE; c++)
			sum[c] = roles_op(r, OP_ADD, sum[c], tir_emit(k, OP_LANE, tir_scalar(DT_F32), c, &quad[n], 1));
	tir_end_for(k, sum, SIDE);
}

/* What those units of the warp have that have the same elements, in each of them. */
static void
add_units(Join *j, ValId *sum)
{
	TirKernel *k = j->r->l.tir;
	for (unsigned n = 1; n < IN_WARP; n *= 2) {
		ValId several = roles_op(j->r, OP_LT, roles_int(j->r, n), j->shares);
		for (unsigned c = 0; c < SIDE; c++) {
			ValId other = tir_emit(k, OP_SHUFFLE, tir_scalar(DT_F32), n * LANES, &sum[c], 1);
			sum[c] = tir_select(k, several, roles_op(j->r, OP_ADD, sum[c], other), sum[c]);
		}
	}
}

/* What the warps have whose units have the lane's elements, from its own on. */
static void
add_warps(Join *j, ValId *sum)
{
	Roles *r = j->r;
	TirKernel *k = r->l.tir;
	ValId rest, at = roles_op(r, OP_MUL, j->lane, roles_int(r, SIDE));
	ValId warps = roles_divide(r, roles_op(r, OP_ADD, j->shares, roles_int(r, IN_WARP - 1)), roles_int(r, IN_WARP), &rest);
	for (unsigned c = 0; c < SIDE; c++)
		sum[c] = tir_float(k, DT_F32, 0);
	ValId behind = tir_for(k, roles_int(r, 0), warps, roles_int(r, 1), sum, SIDE);
	ValId all = tir_load(k, j->staged, (ValId[]){roles_op(r, OP_ADD, j->warp, behind), at}, 0, TIR_LANES_ALONG(1), SIDE);
	for (unsigned c = 0; c < SIDE; c++)
		sum[c] = roles_op(r, OP_ADD, sum[c], tir_emit(k, OP_LANE, tir_scalar(DT_F32), c, &all, 1));
	tir_end_for(k, sum, SIDE);
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

/* Over dims: how many units have the same elements, each some pieces: so many that one has no more than it reads at once, if there are. */
static ExprId
count_shares(Roles *r)
{
	Graph *g = r->l.g;
	RolesPieces x;
	roles_count_pieces(r, &r->tile, &x);
	ExprId shares = expr_int(g, DT_I64, UNITS);
	for (int64_t n = UNITS / 2; n > 0; n /= 2)
		shares = expr_select(g, expr_binary(g, OP_LE, x.pieces, expr_int(g, DT_I64, n * AT_ONCE)), expr_int(g, DT_I64, n), shares);
	return shares;
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
	ExprId shares = count_shares(r);
	kernel->ntask = launch_ceil_div(g, expr_binary(g, OP_MUL, launch_ceil_div(g, quads, LANES), shares), UNITS);
	j.shares = point_launch_expr(&r->l, shares);
	j.across = point_launch_expr(&r->l, across);
	j.quads = point_launch_expr(&r->l, quads);
	roles_bind_pieces(r, kernel);
	point_say_same_memory(&r->l);
	bind_staged(&j);
	place_thread(&j);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId sum[SIDE];
	enter(&j, tir_for(k, lo, hi, roles_int(r, 1), NULL, 0));
	add_pieces(&j, sum);
	add_units(&j, sum);
	ValId all = tir_emit(k, OP_JOIN, tir_vector(DT_F32, SIDE), 0, sum, SIDE);
	tir_store(k, j.staged, all, (ValId[]){j.warp, roles_op(r, OP_MUL, j.lane, roles_int(r, SIDE))}, 0, TIR_LANES_ALONG(1));
	if (!BUG(pieces_meet_nobody))
		barrier(&j);
	tir_if(k, tir_binary(k, OP_AND, j.there, roles_op(r, OP_EQ, j.share, roles_int(r, 0))));
	finish(&j);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	barrier(&j);
	tir_end_for(k, NULL, 0);
}
