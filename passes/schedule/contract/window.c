/* window.c: the kernels of roles (roles.c) for a contraction whose rows are the indices of several axes:
 *
 *     y[n, p, q, o] = sum[r, s, c](x[n, 2*p + r - 1, 2*q + s - 1, c] * w[r, s, c, o]),   terms absent outside of x
 *
 * Each subscript of x has one axis of the rows at most, times a small number, and any of the axes of the batch and of the
 * terms; the last one is an axis of the terms alone. So the rows of a tile are a box of pixels, one of each of the row axes'
 * indices, and what they read of x for one r and s is a box too, with steps: a copy brings it, and it is a part of a product
 * like any other. The sum goes over r and s, and over c by TIR_PART_TERMS.
 *
 * A term is absent where x has no such element, and nowhere else: the copy brings a 0 there, and what that is multiplied by
 * is an element of w that exists. That is 0 as long as it is finite; else the sum is no number, and is folded again from
 * the terms that are there (window_finish.c). A sum that is a number met no such factor.
 *
 * Boxes are powers of two (window_rows.c). */
#include "passes/schedule/contract/window.h"

#include "passes/schedule/point/affine.h"
#include "passes/schedule/contract/gpu_time.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	SIDE = 4,
	LEAST_ROWS = 64, /* that are worth a tile, */
	LEAST_COLUMNS = 16,
	LEAST_TERMS = 16, /* of the last axis */
	LANES_A_CYCLE = 128,
	WAITING = 7,      /* quarters of the cycles in which elements could be finished */
	TILE_START = 250,
	START = 1500
};

/* Steps take what was measured on an H200 where boxes are small: longer than those of plain products (roles_tile.c). */
static const RolesTile tiles[] = {
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 6, .panel = 32, .turns = true, .side = SIDE, .step = 541},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 208, .rest = 24, .resident = 2, .slots = 4, .panel = 32, .side = SIDE, .step = 419},
	{.rows = 128, .columns = 64, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .slots = 8, .panel = 32, .turns = true, .side = SIDE, .step = 410},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 208, .rest = 24, .resident = 2, .slots = 4, .panel = 32, .side = SIDE, .step = 330},
	/* where the output's columns are not along its memory, or not a multiple of SIDE */
	{.rows = 64, .columns = 64, .groups = 1, .registers = 208, .rest = 24, .resident = 2, .slots = 4, .panel = 32, .side = 1, .step = 330},
};

unsigned
contract_window_tiles(void)
{
	return sizeof tiles / sizeof *tiles;
}

static unsigned
tile_of(const KernelPlan *p)
{
	unsigned n = 0;
	while (tiles[n].rows != p->tile_rows || tiles[n].columns != p->tile_columns || tiles[n].side != p->group ||
	       tiles[n].turns != p->turns)
		n++;
	return n;
}

/* --- whether --- */

/* Notes subscript k of the window, which is not the last; seen: row axes that there were in those before. */
static bool
add_subscript(const Graph *g, Arena *scratch, const Node *n, Window *w, unsigned k, uint32_t rows, unsigned term, uint32_t *seen)
{
	Affine sum = {0};
	const int64_t *coef = sum.axis;
	bool down = false, up = false;
	if (!affine_add(g, scratch, &sum, w->sub[k], 1) || coef[term])
		return false;
	if (!window_add_axis(w, n, k, coef, rows, TIR_MAX_BOX_STEP, seen))
		return false;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		down |= coef[a] < 0;
		up |= coef[a] > 0;
	}
	w->even &= !(down && up);
	return true;
}

/* e as an element that is read by windows, for these axes of the rows; term: the axis of the last subscript. */
static bool
find_window(const Graph *g, Arena *scratch, const Node *n, ExprId e, uint32_t rows, Window *w, unsigned *term)
{
	const Expr *cast = expr_get(g, e);
	if (cast->op != OP_CAST || cast->dtype != DT_F32)
		return false;
	ExprId read = expr_arg(g, e, 0);
	const Expr *p = expr_get(g, read);
	if (p->op != OP_READ || p->access || p->narg < 2 || p->narg > 5 || (p->dtype != DT_BF16 && p->dtype != DT_F16))
		return false;
	const Expr *last = expr_get(g, expr_arg(g, read, p->narg - 1u));
	if (last->op != OP_AXIS || last->ref < n->npar)
		return false;
	uint32_t seen = 0;
	*term = last->ref;
	*w = (Window){.tensor = p->ref, .dtype = (DType)p->dtype, .rank = p->narg, .even = true};
	for (unsigned k = 0; k < p->narg; k++)
		w->sub[k] = expr_arg(g, read, k);
	for (unsigned k = 0; k + 1 < w->rank; k++)
		if (!add_subscript(g, scratch, n, w, k, rows, *term, &seen))
			return false;
	return seen == rows;
}

static bool
find_factors(const Graph *g, Arena *scratch, const Node *n, ExprId rows, ExprId columns, RolesProduct *of, Window *w)
{
	uint32_t par = (UINT32_C(1) << n->npar) - 1;
	uint32_t inrow = expr_axes(g, scratch, rows) & par, incolumn = expr_axes(g, scratch, columns) & par;
	uint32_t own = incolumn & ~inrow;
	if (!own || own & (own - 1) || (inrow | incolumn) != par || !(inrow & ~incolumn))
		return false;
	of->column_axis = (unsigned)__builtin_ctz(own);
	return find_window(g, scratch, n, rows, inrow & ~incolumn, w, &of->term_axis) &&
	       roles_element(g, columns, of->column_axis, of->term_axis, &of->column) && of->column.dtype == w->dtype;
}

static bool
find_product(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, RolesProduct *of, Window *w)
{
	const Node *n = tensor_node(g, t);
	if (!expr_is_true(g, n->domain) || !window_ranges_are_plain(g, scratch, n) || reduction_type(g, n) != DT_F32 ||
	    expr_can_fault(g, scratch, faulty, n->body))
		return false;
	ExprId a = expr_arg(g, n->body, 0), b = expr_arg(g, n->body, 1);
	if (!find_factors(g, scratch, n, a, b, of, w) && !find_factors(g, scratch, n, b, a, of, w))
		return false;
	return !n->guard || window_asks_for_range(g, scratch, w, n->guard);
}

static bool
is_window(const Graph *g, Arena *scratch, const Node *n, ExprId read)
{
	const Expr *p = expr_get(g, read);
	uint32_t par = (UINT32_C(1) << n->npar) - 1;
	bool window = false;
	for (unsigned k = 0; p->op == OP_READ && !p->access && k < p->narg; k++) {
		uint32_t axes = expr_axes(g, scratch, expr_arg(g, read, k));
		window |= (axes & par) && (axes & ~par);
	}
	return window;
}

unsigned
contract_window_reads(const Graph *g, Arena *scratch, const Node *n, const PassOptions *o, ExprId *read)
{
	unsigned count = 0;
	if (!o->blocks || !(o->roles || o->warp_mma) || g->fp == FP_STRICT || n->monoid != MON_SUM || n->scatter || n->recur ||
	    expr_get(g, n->body)->op != OP_MUL)
		return 0;
	ExprId a = expr_arg(g, n->body, 0), b = expr_arg(g, n->body, 1);
	uint32_t par = (UINT32_C(1) << n->npar) - 1, ina = expr_axes(g, scratch, a) & par, inb = expr_axes(g, scratch, b) & par;
	if (contract_narrow_type(g, a) == DT_NONE || contract_narrow_type(g, b) == DT_NONE || !(ina & ~inb) || !(inb & ~ina))
		return 0;
	for (unsigned k = 0; k < 2; k++)
		if (is_window(g, scratch, n, expr_arg(g, expr_arg(g, n->body, k), 0)))
			read[count++] = expr_arg(g, expr_arg(g, n->body, k), 0);
	return count;
}

int
contract_window_columns(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	RolesProduct of;
	Window w;
	bool could = roles_possible(g, scratch, faulty, t, o) && !contract_roles_could(g, scratch, faulty, t, o) &&
	             find_product(g, scratch, faulty, t, &of, &w);
	return could ? (int)of.column_axis : -1;
}

bool
contract_window_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	return contract_window_columns(g, scratch, faulty, t, o) >= 0;
}

unsigned
contract_window_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan)
{
	RolesProduct of;
	Window w;
	if (!contract_window_could(g, scratch, places->faulty, t, o) || places->faulty[t] ||
	    !find_product(g, scratch, places->faulty, t, &of, &w))
		return 0;
	TensorId out = places_memory(g, places, t);
	if (out == places_memory(g, places, w.tensor) || out == places_memory(g, places, of.column.tensor))
		return 0;
	unsigned n = 0;
	for (unsigned k = 0; k < contract_window_tiles(); k++) {
		RolesTile tile = tiles[k];
		if ((o->roles_tile && o->roles_tile != k + 1) || (tile.side > 1 && !side_possible(g, tensor_node(g, t), of.column_axis)))
			continue;
		plan[n++] = (KernelPlan){.tmpl = TMPL_CONTRACT, .unroll = 1, .threads = (uint16_t)((tile.groups + 1) * TIR_GROUP), .group = tile.side,
		                         .resident = tile.resident, .tile_rows = tile.rows, .tile_columns = tile.columns,
		                         .block_terms = TIR_PART_TERMS, .block_rows = tile.rows, .block_columns = tile.columns,
		                         .block_tasks = 1, .turns = tile.turns, .nnode = 1, .node = {t}};
	}
	return n;
}

/* --- the launch --- */

/* The product of the extents of these axes of the node. */
static ExprId
extents(const Roles *r, uint32_t axes)
{
	Graph *g = r->l.g;
	ExprId all = expr_int(g, DT_I64, 1);
	for (unsigned a = 0; a < TG_MAX_AXES; a++)
		if (axes >> a & 1)
			all = expr_binary(g, OP_MUL, all, roles_extent(r, a));
	return all;
}

typedef struct {
	uint32_t rows, batch, taps; /* axes as bits */
	ExprId nstep;
} Extents;

static Extents
find_extents(const Roles *r)
{
	const Node *n = r->l.node;
	Extents e = {0};
	for (unsigned k = 0; k < r->window->naxis; k++)
		e.rows |= UINT32_C(1) << r->window->axis[k];
	e.batch = ((UINT32_C(1) << n->npar) - 1) & ~e.rows & ~(UINT32_C(1) << r->of.column_axis);
	e.taps = ((UINT32_C(1) << n->nred) - 1) << n->npar & ~(UINT32_C(1) << r->of.term_axis);
	e.nstep = expr_binary(r->l.g, OP_MUL, extents(r, e.taps), launch_ceil_div(r->l.g, r->nterm, TIR_PART_TERMS));
	return e;
}

/* Over dims: cycles of all tiles of a kind, about, as if no tile had rows that the output does not have. What goes on beside
 * products hides behind them, as far as they take longer. */
static ExprId
cycles(Roles *r, const Extents *e, const RolesTile *t)
{
	Graph *g = r->l.g;
	unsigned lane = (unsigned)t->rows * t->columns / (t->turns ? 1u : t->groups) / LANES_A_CYCLE;
	ExprId finish = expr_int(g, DT_I64, lane * side_cost(&r->l) * WAITING / 4 + TILE_START);
	ExprId count = launch_ceil_div(g, extents(r, e->rows), t->rows);
	count = expr_binary(g, OP_MUL, count, launch_ceil_div(g, r->ncolumn, t->columns));
	count = expr_binary(g, OP_MUL, count, extents(r, e->batch));
	ExprId each = expr_binary(g, OP_MAX, expr_binary(g, OP_MUL, e->nstep, gpu_step(g, t->rows, t->columns, t->step)), finish);
	ExprId all = expr_binary(g, OP_MUL, gpu_waves(g, count, GPU_ALL), each);
	return expr_binary(g, OP_ADD, expr_binary(g, OP_ADD, all, finish), expr_int(g, DT_I64, START));
}

/* Over dims: 1 where tile n can be used and is predicted to take no longer than those behind it. */
static ExprId
suits(Roles *r, const Extents *e, unsigned n, unsigned only)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1), rest = expr_binary(g, OP_IMOD, r->ncolumn, expr_int(g, DT_I64, tiles[n].side));
	ExprId suits = expr_binary(g, OP_SUB, one, expr_binary(g, OP_MIN, one, rest)), own = only ? 0 : cycles(r, e, &tiles[n]);
	for (unsigned k = n + 1; k < contract_window_tiles() && !only; k++)
		if (tiles[k].side == tiles[n].side)
			suits = expr_binary(g, OP_MIN, suits, expr_binary(g, OP_IDIV, cycles(r, e, &tiles[k]), own));
	return suits;
}

static void
count_tasks(Roles *r, Kernel *kernel, unsigned only)
{
	Graph *g = r->l.g;
	const Node *n = r->l.node;
	r->ncolumn = roles_extent(r, r->of.column_axis);
	r->nterm = roles_extent(r, r->of.term_axis);
	Extents e = find_extents(r);
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, extents(r, e.rows), LEAST_ROWS), raster_reaches(g, r->ncolumn, LEAST_COLUMNS));
	worth = expr_binary(g, OP_MUL, worth, raster_reaches(g, r->nterm, LEAST_TERMS));
	worth = expr_binary(g, OP_MUL, worth, raster_reaches(g, extents(r, e.taps), 1));
	ExprId right = expr_binary(g, OP_MUL, worth, suits(r, &e, tile_of(r->plan), 1));
	worth = expr_binary(g, OP_MUL, worth, suits(r, &e, tile_of(r->plan), only));
	ExprId columns = launch_ceil_div(g, r->ncolumn, r->tile.columns), box[WINDOW_AXES];
	ExprId count = expr_binary(g, OP_MUL, expr_binary(g, OP_MUL, window_bind_rows(r->window, &r->l, r->tile.rows, false, box), columns), extents(r, e.batch));
	kernel->ntask = expr_binary(g, OP_MUL, count, worth);
	kernel->could = expr_binary(g, OP_MUL, count, right);
	r->rows = r->window->count;
	r->columns = point_launch_expr(&r->l, columns);
	r->steps = point_launch_expr(&r->l, e.nstep);
	for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++) /* so that both roles see them */
		point_launch_expr(&r->l, roles_extent(r, a));
	point_launch_expr(&r->l, launch_ceil_div(g, r->nterm, TIR_PART_TERMS));
}

/* --- what is copied --- */

static ValId
window_view(Roles *r)
{
	Point *l = &r->l;
	const Window *w = r->window;
	const TensorArg *arg = point_tensor(l, w->tensor);
	ValId extent[TG_MAX_RANK];
	for (unsigned a = 0; a < w->rank; a++)
		extent[a] = a + 1 < w->rank ? arg->extent[a] : point_launch_expr(l, r->nterm);
	ValId buffer = tir_arg(l->tir, arg->data, 0);
	return tir_view(l->tir, (unsigned)tir_inst(l->tir, buffer)->imm.i, w->rank, extent, arg->stride);
}

/* From the tile's first row on, at the point of the other axes. */
static void
copy_window(Roles *r, ValId term, ValId fill)
{
	Point *l = &r->l;
	const Window *w = r->window;
	ValId at[TG_MAX_RANK], count[TG_MAX_RANK], step[TG_MAX_RANK];
	uint32_t mark = point_mark(l);
	for (unsigned k = 0; k < w->naxis; k++)
		l->axis[w->axis[k]] = w->first[k];
	for (unsigned k = 0; k < w->rank; k++) {
		bool last = k + 1 == w->rank;
		at[k] = last ? term : point_value(l, w->sub[k], true).re;
		count[k] = roles_int(r, last ? TIR_PART_TERMS : 1);
		step[k] = roles_int(r, 1);
	}
	for (unsigned k = 0; k < w->naxis; k++) {
		count[w->place[k]] = w->box[k];
		step[w->place[k]] = roles_int(r, w->step[k]);
	}
	point_release(l, mark);
	tir_copy_box(l->tir, TIR_COPY(0, 0), r->view[0], fill, at, count, step);
}

/* --- tiles --- */

static void
enter_tile(Roles *r)
{
	const Node *n = r->l.node;
	RasterTile tile = raster_tile(r->l.tir, r->task, r->rows, r->columns);
	r->row0 = roles_int(r, 0);
	r->column0 = roles_op(r, OP_MUL, tile.column, roles_int(r, r->tile.columns));
	window_enter_tile(r->window, tile.row);
	uint32_t others = find_extents(r).batch;
	for (unsigned a = n->npar; a-- > 0;)
		if (others >> a & 1) {
			tile.batch = roles_divide(r, tile.batch, point_launch_expr(&r->l, roles_extent(r, a)), &r->coord[a]);
			r->l.axis[a] = r->coord[a];
		}
}

static void
load(Roles *r)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	const Node *n = l->node;
	ValId fill, one = roles_int(r, 1), zero = roles_int(r, 0);
	ValId nterm = point_launch_expr(l, launch_ceil_div(l->g, r->nterm, TIR_PART_TERMS));
	r->task = roles_open_tasks(r, &fill, false);
	enter_tile(r);
	unsigned end = (unsigned)n->npar + n->nred;
	for (unsigned a = n->npar; a < end; a++)
		if (a != r->of.term_axis)
			l->axis[a] = r->coord[a] = tir_for(k, zero, point_launch_expr(l, roles_extent(r, a)), one, &fill, 1);
	ValId step = tir_for(k, zero, nterm, one, &fill, 1);
	ValId term = roles_op(r, OP_MUL, step, roles_int(r, r->plan->block_terms));
	tir_emit(k, OP_ACQUIRE, (TirType){0}, 0, &fill, 1);
	copy_window(r, term, fill);
	roles_copy(r, 1, &r->of.column, r->of.column_axis, r->column0, term, 0, fill);
	fill = roles_op(r, OP_ADD, fill, one);
	for (unsigned a = n->npar; a < end; a++)
		tir_end_for(k, &fill, 1);
	tir_end_for(k, &fill, 1);
}

/* --- the kernel --- */

static void
add_channel(Roles *r)
{
	TirChannel c = {.slots = r->tile.slots, .nparts = 2};
	c.part[0] = (TirPart){.dtype = r->window->dtype, .rows = r->tile.rows, .terms = TIR_PART_TERMS};
	c.part[1] = (TirPart){.dtype = r->window->dtype, .rows = r->tile.columns, .terms = TIR_PART_TERMS, .turned = r->of.column.turned};
	tir_add_channel(r->l.tir, &c);
}

void
contract_window_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Point *l = &r->l;
	TirKernel *k = kernel->tir;
	TensorId t = kernel->plan.node[0];
	r->plan = &kernel->plan;
	r->tile = tiles[tile_of(r->plan)];
	r->window = ARENA_NEW(scratch, Window);
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_product(g, scratch, places->faulty, t, &r->of, r->window))
		bug(g->arena, "%%%u is no contraction by windows", t);
	add_channel(r);
	count_tasks(r, kernel, o->roles_tile);
	r->view[0] = window_view(r);
	r->view[1] = roles_view(r, &r->of.column, r->of.column_axis);
	r->flat = r->tile.side > 1 ? side_flat_output(l, point_launch_expr(l, r->ncolumn)) : 0;
	r->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	roles_divide_terms(r);
	point_say_same_memory(l);
	window_bind_staged(r);
	tir_open_roles(k, TIR_ROLES(r->tile.groups, r->tile.registers, r->tile.rest) | (r->tile.turns ? TIR_ROLES_TURNS : 0));
	ValId fill, rest;
	r->group = roles_divide(r, r->thread, roles_int(r, TIR_GROUP), &rest);
	r->task = roles_open_tasks(r, &fill, true);
	roles_multiply(r, &fill);
	enter_tile(r);
	window_finish(r);
	tir_end_for(k, &fill, 1);
	tir_other_role(k);
	load(r);
	tir_end_roles(k);
}
