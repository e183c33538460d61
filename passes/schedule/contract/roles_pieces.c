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
 * A piece that is not its tile's last is posted; who has the last one, of fewer steps, adds those before it, in the order of the
 * terms, and finishes the tile. It waits for tasks before it alone, which have begun before and wait for none:
 * however many run at a time, none waits for ever. What is added to what, the sizes and the number of processors say alone.
 *
 * Sums are handed over in memory, as threads have them: those who add them have the same elements. A group posts a word when
 * all its threads have stored theirs (ir/channel.h).
 *
 * What is posted is added by one addition a piece; a piece has at least a step of terms, which the bound on the error in roles.c
 * has room for: its own products leave 0.34 u S of each term. */
#include "ir/bugs.h"
#include "ir/gpu_facts.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	STEPS_A_PIECE = 2, /* that go on elsewhere while a task adds one */
	QUAD = 4,      /* elements that a thread stores or loads at once */
	MOST_QUADS = 16 /* of a thread, which has those of two pieces beside its own */
};

/* --- the launch --- */

void
roles_count_pieces(Roles *r, const RolesTile *t, RolesPieces *to)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1);
	to->tiles = roles_tile_count(r, t);
	ExprId room = expr_binary(g, OP_IDIV, gpu_fact(g, GPU_PROCESSORS), expr_binary(g, OP_MAX, to->tiles, one));
	to->steps = launch_ceil_div(g, r->nterm, TIR_PART_TERMS);
	to->pieces = expr_binary(g, OP_MIN, expr_binary(g, OP_MIN, room, expr_int(g, DT_I64, t->pieces)), to->steps);
	to->pieces = expr_binary(g, OP_MAX, to->pieces, one);
	ExprId others = expr_binary(g, OP_SUB, to->pieces, one), least = expr_binary(g, OP_SUB, expr_binary(g, OP_IDIV, to->steps, to->pieces), one);
	to->less = expr_binary(g, OP_MUL, others, expr_int(g, DT_I64, STEPS_A_PIECE));
	to->less = expr_binary(g, OP_MAX, expr_binary(g, OP_MIN, to->less, least), expr_int(g, DT_I64, 0));
}

static unsigned
pieces_of_thread(const Roles *r)
{
	return roles_repeats(r) * r->tile.columns / 2;
}

static unsigned
bind(Roles *r, Kernel *kernel, BindKind kind, DType t, ExprId elements)
{
	vec_push(r->l.g->arena, &kernel->buffer, ((BufferBind){.kind = kind, .tensor = r->plan->node[0], .elements = elements}));
	return tir_add_buffer(r->l.tir, r->l.g->tensor.at[r->plan->node[0]].name, t, true);
}

void
roles_bind_pieces(Roles *r, Kernel *kernel)
{
	Graph *g = r->l.g;
	RolesPieces x;
	roles_count_pieces(r, &r->tile, &x);
	ExprId groups = expr_binary(g, OP_MUL, expr_binary(g, OP_MUL, x.tiles, x.pieces), expr_int(g, DT_I64, r->tile.groups));
	unsigned quads = pieces_of_thread(r) / QUAD, row = TIR_GROUP * QUAD;
	ExprId rows = expr_binary(g, OP_MUL, groups, expr_int(g, DT_I64, quads));
	unsigned sums = bind(r, kernel, BIND_PASSED, DT_F32, expr_binary(g, OP_MUL, rows, expr_int(g, DT_I64, row)));
	unsigned words = bind(r, kernel, BIND_CLEARED, DT_U64, groups);
	r->l.tir->buffer.at[words].posted = true;
	const ValId extent[2] = {point_launch_expr(&r->l, rows), roles_int(r, row)}, stride[2] = {extent[1], roles_int(r, 1)};
	const ValId all = point_launch_expr(&r->l, groups);
	r->pieces = (PieceValues){.sums = tir_view(r->l.tir, sums, 2, extent, stride), .posted = tir_view(r->l.tir, words, 1, &all, stride + 1)};
	r->pieces.tiles = point_launch_expr(&r->l, x.tiles);
	r->pieces.pieces = point_launch_expr(&r->l, x.pieces);
	r->pieces.less = point_launch_expr(&r->l, x.less);
}

/* --- which piece a task has --- */

/* The first step of a piece: as if there were a few more steps, which the last piece does not have. */
static ValId
first_step(Roles *r, ValId piece)
{
	ValId rest, all = roles_op(r, OP_ADD, r->steps, r->pieces.less);
	return roles_op(r, OP_MIN, roles_divide(r, roles_op(r, OP_MUL, all, piece), r->pieces.pieces, &rest), r->steps);
}

void
roles_enter_piece(Roles *r)
{
	PieceValues *x = &r->pieces;
	x->task = r->task;
	ValId piece = roles_divide(r, x->task, x->tiles, &r->task), next = roles_op(r, OP_ADD, piece, roles_int(r, 1));
	r->step0 = first_step(r, piece);
	r->step_end = first_step(r, next);
	if (BUG(piece_step_missing))
		r->step0 = roles_op(r, OP_MIN, roles_op(r, OP_ADD, r->step0, piece), roles_op(r, OP_SUB, r->step_end, roles_int(r, 1)));
}

/* --- what is handed over --- */

/* Where a task's group has its word, and its sums from quad 0 on. */
static ValId
place_of(Roles *r, ValId task)
{
	return roles_op(r, OP_ADD, roles_op(r, OP_MUL, task, roles_int(r, r->tile.groups)), r->group);
}

static ValId
row_of(Roles *r, ValId place, unsigned quad)
{
	unsigned quads = pieces_of_thread(r) / QUAD;
	return roles_op(r, OP_ADD, roles_op(r, OP_MUL, place, roles_int(r, quads)), roles_int(r, quad));
}

static ValId
thread_of_group(Roles *r)
{
	ValId thread;
	roles_divide(r, r->thread, roles_int(r, TIR_GROUP), &thread);
	return thread;
}

static ValId
is_first_thread(Roles *r)
{
	return roles_op(r, OP_EQ, thread_of_group(r), roles_int(r, 0));
}

static void
meet(Roles *r)
{
	tir_emit(r->l.tir, OP_BARRIER, (TirType){0}, TIR_GROUP_BARRIER, NULL, 0);
}

static void
post(Roles *r)
{
	TirKernel *k = r->l.tir;
	ValId place = place_of(r, r->pieces.task), column = roles_op(r, OP_MUL, thread_of_group(r), roles_int(r, QUAD));
	for (unsigned quad = 0; quad < pieces_of_thread(r) / QUAD; quad++) {
		ValId sum[QUAD];
		for (unsigned n = 0; n < QUAD; n++)
			sum[n] = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), QUAD * quad + n, NULL, 0);
		ValId all = tir_emit(k, OP_JOIN, tir_vector(DT_F32, QUAD), 0, sum, QUAD);
		tir_store(k, r->pieces.sums, all, (ValId[]){row_of(r, place, quad), column}, 0, TIR_LANES_ALONG(1));
	}
	if (!BUG(piece_posted_early))
		meet(r);
	tir_store(k, r->pieces.posted, tir_int(k, DT_U64, 1), &place, is_first_thread(r), 0);
}

/* What the thread's group of a task has posted, where `there` holds. */
static void
load(Roles *r, ValId task, ValId there, ValId *quad)
{
	ValId place = place_of(r, task), column = roles_op(r, OP_MUL, thread_of_group(r), roles_int(r, QUAD));
	for (unsigned n = 0; n < pieces_of_thread(r) / QUAD; n++)
		quad[n] = tir_load(r->l.tir, r->pieces.sums, (ValId[]){row_of(r, place, n), column}, there, TIR_LANES_ALONG(1), QUAD);
}

static void
add(Roles *r, const ValId *quad)
{
	TirKernel *k = r->l.tir;
	for (unsigned e = 0; e < pieces_of_thread(r); e++) {
		ValId own = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), e, NULL, 0);
		ValId other = tir_emit(k, OP_LANE, tir_scalar(DT_F32), e % QUAD, &quad[e / QUAD], 1), all = roles_op(r, OP_ADD, own, other);
		tir_emit(k, OP_PUT, (TirType){0}, e, &all, 1);
	}
}

/* What tasks before this one have of the tile. Each of the first threads waits for one of them; what the next one has is on its
 * way while one is added. */
static void
take_pieces(Roles *r)
{
	TirKernel *k = r->l.tir;
	ValId own = r->pieces.task, step = r->pieces.tiles, first = r->task, quad[MOST_QUADS], next[MOST_QUADS];
	if (BUG(piece_forgotten))
		first = roles_op(r, OP_ADD, first, step);
	ValId waited = roles_op(r, OP_ADD, r->task, roles_op(r, OP_MUL, thread_of_group(r), step)), place = place_of(r, waited);
	tir_load(k, r->pieces.posted, &place, roles_op(r, OP_LT, waited, own), 0, 0);
	if (!BUG(piece_taken_early))
		meet(r);
	load(r, first, roles_op(r, OP_LT, first, own), quad);
	ValId task = tir_for(k, first, own, step, quad, pieces_of_thread(r) / QUAD), behind = roles_op(r, OP_ADD, task, step);
	load(r, behind, roles_op(r, OP_LT, behind, own), next);
	add(r, quad);
	tir_end_for(k, next, pieces_of_thread(r) / QUAD);
}

void
roles_open_finish(Roles *r)
{
	TirKernel *k = r->l.tir;
	tir_if(k, roles_op(r, OP_EQ, r->step_end, r->steps));
	take_pieces(r);
}

void
roles_end_finish(Roles *r)
{
	TirKernel *k = r->l.tir;
	tir_else(k, NULL, 0);
	post(r);
	tir_end_if(k, NULL, 0);
}
