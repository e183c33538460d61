/* roles.c: the CONTRACT template for a GPU with wgmma: a sum of products of two bf16 or f16 factors, or of f32 (roles_thirds.c), each
 * an element of a tensor, by a block whose groups multiply while one loads (ir/channel.h).
 *
 * A task is a tile of the output; there are kernels of several tiles, of which a launch takes one (roles_tile.c).
 * The block goes from one tile to the next; the loading role runs ahead, as far as the ring has room, also into the next
 * tile. A multiplying group keeps one product going while it waits for the next slot. Groups share a tile's rows, or take
 * turns with a tile each: then one finishes its elements (roles_finish.c) while the other multiplies. Where rows of factors
 * begin at places that copies are slow to bring, two blocks bring the factor of columns for both of their tiles, which lie
 * below each other: a task is both. Where there
 * are fewer tiles than processors the blocks of a cluster have a tile, and each a part of its terms: they add up their sums
 * in the order of the terms, and each finishes a part of the rows. Or tasks are pieces of terms (roles_pieces.c), which another
 * kernel adds (roles_join.c).
 *
 * Elements outside of a factor are 0 to the copy, so only what is stored is masked. The copies want rows that begin at
 * multiples of 16 bytes, and take less of the cache where they begin with its sectors: a launch brings others to memory where
 * they do (Kernel.pitch). Sizes that do not fill a fraction of a tile are another kernel's.
 *
 * The order of the sums is the hardware's, which the strict mode does not allow. An instruction adds 16 exact products to
 * the accumulator in one go: it aligns the 17 to the largest, keeps 2 bits more than a significand's 24 and cuts off what
 * lies below, the sum's last bits too (Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", 2025;
 * scripts/gpu-products.py looks whether the bits are there). Where S is the sum of the magnitudes and u = 2^-24, that is an
 * error of at most (17/2 + 2) u S for 16 terms, below the n u S which the oracle allows n terms in any order, n >= 64
 * (eval_fold.c); an instruction whose terms are all beyond the end is exact. Sums of up to 8 parts are added by 7 additions
 * more, each within u S, which the n u S have room for too. */
#include <string.h>

#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/roles_build.h"

enum {
	LEAST = 16,     /* rows and columns that are worth a tile: reading the other factor takes longer than multiplying what is not there */
	COPY_UNIT = 8   /* elements, at multiples of which a copy of what lies along its own axis begins: or the GPU knows no such instruction */
};

/* --- whether --- */

/* e as a bf16 or f16 element that is widened. */
bool
roles_element(const Graph *g, ExprId e, unsigned own, unsigned term, BoxFactor *to)
{
	return contract_narrow_type(g, e) != DT_NONE && box_find(g, expr_arg(g, e, 0), own, term, to);
}

/* e as an element of f32, which a map of its thirds has an axis more for. */
static bool
has_thirds(const Graph *g, ExprId e, unsigned own, unsigned term, BoxFactor *to)
{
	if (expr_get(g, e)->dtype != DT_F32 || !box_find(g, e, own, term, to) || to->naxis > 4)
		return false;
	to->dtype = DT_BF16;
	return true;
}

/* The axis of the node that element e has, and element other has not. */
static unsigned
own_axis(const Graph *g, const Node *n, ExprId e, ExprId other)
{
	uint32_t has[2] = {0};
	for (unsigned k = 0; k < 2; k++)
		for (unsigned a = 0; a < expr_get(g, k ? other : e)->narg; a++)
			has[k] |= UINT32_C(1) << expr_get(g, expr_arg(g, k ? other : e, a))->ref;
	return (unsigned)__builtin_ctz((has[0] & ~has[1]) | UINT32_C(1) << n->npar);
}

/* A product along one axis each of rows, columns and terms. */
static bool
find_axes(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, RolesProduct *r, Factors *f)
{
	const Node *n = tensor_node(g, t);
	if (!contract_is_plain(g, scratch, faulty, t, f))
		return false;
	r->row_axis = (unsigned)__builtin_ctz(f->row_axes);
	r->column_axis = (unsigned)__builtin_ctz(f->column_axes);
	r->term_axis = n->npar;
	return true;
}

/* The same of two factors of a 16-bit type. */
static bool
find_product(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, RolesProduct *r, Factors *f)
{
	return find_axes(g, scratch, faulty, t, r, f) && contract_narrow_type(g, f->row) != DT_NONE &&
	       contract_narrow_type(g, f->row) == contract_narrow_type(g, f->column);
}

/* The product that a sum is expanded to. */
static bool
find_expanded(const Graph *g, const Node *n, RolesProduct *r)
{
	ExprId both = expr_arg(g, n->expanded, 0), product = expr_arg(g, n->expanded, 1), factor[2], of[2];
	for (unsigned k = 0; k < 2; k++) {
		factor[k] = expr_arg(g, product, k);
		of[k] = expr_arg(g, both, k);
	}
	unsigned axis[2] = {own_axis(g, n, factor[0], factor[1]), own_axis(g, n, factor[1], factor[0])}, column = axis[0] < axis[1];
	r->row_axis = axis[!column];
	r->column_axis = axis[column];
	r->term_axis = n->npar;
	r->thirds = TIR_THIRDS;
	r->of_row = of[!column];
	r->of_column = of[column];
	return has_thirds(g, factor[!column], r->row_axis, r->term_axis, &r->row) &&
	       has_thirds(g, factor[column], r->column_axis, r->term_axis, &r->column);
}

bool
roles_find_elements(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, RolesProduct *r)
{
	Factors f;
	*r = (RolesProduct){0};
	if (tensor_node(g, t)->expanded)
		return find_expanded(g, tensor_node(g, t), r);
	if (find_product(g, scratch, faulty, t, r, &f))
		return roles_element(g, f.row, r->row_axis, r->term_axis, &r->row) && roles_element(g, f.column, r->column_axis, r->term_axis, &r->column);
	r->thirds = g->fp == FP_FAST ? TIR_THIRDS - 1 : TIR_THIRDS;
	return find_axes(g, scratch, faulty, t, r, &f) && has_thirds(g, f.row, r->row_axis, r->term_axis, &r->row) &&
	       has_thirds(g, f.column, r->column_axis, r->term_axis, &r->column);
}

bool
roles_possible(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	if (!o->roles || !o->blocks || g->fp == FP_STRICT || (!contract_is_sum_of_products(g, t) && !tensor_node(g, t)->expanded))
		return false;
	const Node *n = tensor_node(g, t);
	return !n->finish || !expr_can_fault(g, scratch, faulty, n->finish);
}

bool
contract_roles_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	RolesProduct p;
	return roles_possible(g, scratch, faulty, t, o) && roles_find_elements(g, scratch, faulty, t, &p);
}

bool
contract_roles_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, ExprId *factor)
{
	RolesProduct p;
	Factors f;
	if (!roles_possible(g, scratch, faulty, t, o) || !find_product(g, scratch, faulty, t, &p, &f))
		return false;
	factor[0] = roles_element(g, f.row, p.row_axis, p.term_axis, &p.row) ? 0 : f.row;
	factor[1] = roles_element(g, f.column, p.column_axis, p.term_axis, &p.column) ? 0 : f.column;
	return true;
}

KernelPlan
roles_plan(const RolesTile *tile, const TensorId *node, unsigned n)
{
	KernelPlan plan = {.tmpl = TMPL_CONTRACT, .unroll = 1, .threads = (uint16_t)((tile->groups + 1) * TIR_GROUP), .group = tile->side,
	                   .cluster = tile->parts ? tile->parts : tile->joint, .resident = tile->resident, .tile_rows = tile->rows, .tile_columns = tile->columns,
	                   .block_terms = TIR_PART_TERMS, .block_rows = tile->rows, .block_columns = tile->columns,
	                   .block_tasks = 1, .turns = tile->turns, .pieces = tile->pieces > 0, .thirds = tile->thirds, .joint = tile->joint > 0,
	                   .sums = tile->sums, .nnode = (uint16_t)n};
	for (unsigned k = 0; k < n; k++)
		plan.node[k] = node[k];
	return plan;
}

unsigned
contract_roles_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan)
{
	RolesProduct x;
	if (!contract_roles_could(g, scratch, places->faulty, t, o) || places->faulty[t] || !roles_find_elements(g, scratch, places->faulty, t, &x))
		return 0;
	TensorId out = places_memory(g, places, t);
	if (out == places_memory(g, places, x.row.tensor) || out == places_memory(g, places, x.column.tensor))
		return 0;
	unsigned n = 0;
	for (unsigned k = 0; k < roles_tiles(); k++) {
		RolesTile tile = roles_tile(k);
		if (tile.sums || tile.thirds != x.thirds || (tile.pieces && x.of_row) || (o->roles_tile && o->roles_tile != k + 1) ||
		    (tile.side > 1 && !side_possible(g, tensor_node(g, t), x.column_axis)))
			continue;
		plan[n++] = roles_plan(&tile, &t, 1);
		if (!tile.pieces)
			continue;
		plan[n] = plan[n - 1];
		plan[n].joins = true;
		plan[n++].threads = ROLES_JOIN_THREADS;
	}
	return n;
}

ValId
roles_divide(Roles *r, ValId a, ValId b, ValId *rest)
{
	return raster_divide(r->l.tir, a, b, rest);
}

/* --- the launch --- */

void
roles_find_sizes(Roles *r)
{
	r->nrow = roles_extent(r, r->of.row_axis);
	r->ncolumn = roles_extent(r, r->of.column_axis);
	r->nterm = roles_extent(r, r->of.term_axis);
}

/* Whether a tile that would end beyond the output begins before. Those that are there where there are many lose more by the few
 * instructions that this takes. */
static bool
begins_inside(const RolesTile *t)
{
	return !t->turns;
}

/* Where the last one of so many begins that end inside, or 0. */
static ExprId
last_inside(Graph *g, ExprId end, unsigned size)
{
	ExprId unit = expr_int(g, DT_I64, COPY_UNIT);
	ExprId first = expr_binary(g, OP_MAX, expr_binary(g, OP_SUB, end, expr_int(g, DT_I64, size)), expr_int(g, DT_I64, 0));
	return expr_binary(g, OP_MUL, launch_ceil_div(g, first, COPY_UNIT), unit);
}

static void
count_tasks(Roles *r, Kernel *kernel, const PassOptions *o)
{
	Graph *g = r->l.g;
	unsigned only = o->roles_tile;
	roles_find_sizes(r);
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, r->nrow, LEAST), raster_reaches(g, r->ncolumn, LEAST));
	int64_t parts = r->tile.parts ? r->tile.parts : 1;
	worth = expr_binary(g, OP_MUL, worth, raster_reaches(g, r->nterm, parts * TIR_PART_TERMS));
	ExprId count = roles_tile_count(r, &r->tile), right = roles_tile_suits(r, roles_tile_of(r->plan), 1);
	if (r->tile.pieces) {
		RolesPieces x;
		roles_count_pieces(r, &r->tile, &x);
		count = expr_binary(g, OP_MUL, count, x.pieces);
	}
	if (r->of.of_row) /* whoever makes the factors does so then alone */
		worth = expr_binary(g, OP_MUL, worth, tensor_node(g, expr_get(g, r->of.of_row)->ref)->when);
	kernel->could = expr_binary(g, OP_MUL, count, expr_binary(g, OP_MUL, worth, right));
	worth = expr_binary(g, OP_MUL, worth, roles_tile_suits(r, roles_tile_of(r->plan), only));
	if (r->tile.thirds && !r->of.of_row && !only)
		worth = expr_binary(g, OP_MUL, worth, roles_thirds_pay(r, o));
	if (r->members && !only)
		worth = expr_binary(g, OP_MUL, worth, roles_together_suits(r));
	kernel->ntask = expr_binary(g, OP_MUL, count, worth);
	kernel->pitch = roles_pitch(r);
	r->rows = point_launch_expr(&r->l, launch_ceil_div(g, r->nrow, roles_task_rows(&r->tile)));
	r->columns = point_launch_expr(&r->l, launch_ceil_div(g, r->ncolumn, r->tile.columns));
	r->steps = point_launch_expr(&r->l, launch_ceil_div(g, r->nterm, r->plan->block_terms));
	if (begins_inside(&r->tile)) { /* so that both roles see them */
		point_launch_expr(&r->l, last_inside(g, r->nrow, r->tile.rows));
		point_launch_expr(&r->l, last_inside(g, r->ncolumn, r->tile.columns));
	}
}

const BoxFactor *
roles_part(const Roles *r, unsigned p, unsigned *own)
{
	unsigned rows = 1 + (r->of.columns ? 0 : r->of.beside), k = p < rows ? p : p - rows;
	*own = p < rows ? r->of.row_axis : r->of.column_axis;
	return k ? &r->of.own[k - 1] : p < rows ? &r->of.row : &r->of.column;
}

void
roles_divide_terms(Roles *r)
{
	r->step0 = roles_int(r, 0);
	r->step_end = r->steps;
	if (r->tile.parts || r->tile.joint)
		r->rank = tir_emit(r->l.tir, OP_RANK, tir_scalar(DT_I64), 0, NULL, 0);
	if (!r->tile.parts)
		return;
	ValId parts = roles_int(r, r->tile.parts), rest;
	r->step0 = roles_divide(r, roles_op(r, OP_MUL, r->steps, r->rank), parts, &rest);
	r->step_end = roles_divide(r, roles_op(r, OP_MUL, r->steps, roles_op(r, OP_ADD, r->rank, roles_int(r, 1))), parts, &rest);
}

/* --- factors --- */

ValId
roles_view(Roles *r, const BoxFactor *e, unsigned own)
{
	return box_view(&r->l, e, own, r->of.term_axis);
}

void
roles_copy(Roles *r, unsigned part, const BoxFactor *e, unsigned own, ValId own0, ValId term, ValId third, ValId fill)
{
	ValId at[TG_MAX_AXES];
	memcpy(at, r->coord, sizeof at);
	at[own] = own0;
	at[r->of.term_axis] = term;
	box_copy(&r->l, TIR_COPY(0, part), r->view[part], e, own, r->of.term_axis, at, third, fill);
}

/* --- tiles --- */

/* Where a tile begins whose own first row or column this is: so many before it, if it would end beyond the last. Copies that reach
 * beyond take longer (an H100: 129 rows of 8192 terms by 8192 columns took 101.8 us, and 56.4 so). */
static ValId
begin_inside(Roles *r, ValId own, ExprId end, unsigned size, ValId *skip)
{
	*skip = tir_int(r->l.tir, DT_U32, 0);
	if (!begins_inside(&r->tile))
		return own;
	ValId first = roles_op(r, OP_MIN, own, point_launch_expr(&r->l, last_inside(r->l.g, end, size)));
	*skip = tir_cast(r->l.tir, DT_U32, roles_op(r, OP_SUB, own, first));
	return first;
}

static void
enter_tile(Roles *r)
{
	const Node *n = r->l.node;
	RasterTile tile = raster_tile(r->l.tir, r->task, r->rows, r->columns);
	if (r->tile.joint)
		tile.row = roles_op(r, OP_ADD, roles_op(r, OP_MUL, tile.row, roles_int(r, r->tile.joint)), r->rank);
	ValId row0 = roles_op(r, OP_MUL, tile.row, roles_int(r, r->tile.rows)), column0 = roles_op(r, OP_MUL, tile.column, roles_int(r, r->tile.columns));
	r->row0 = begin_inside(r, row0, r->nrow, r->tile.rows, &r->skip_rows);
	r->column0 = begin_inside(r, column0, r->ncolumn, r->tile.columns, &r->skip_columns);
	for (unsigned a = n->npar; a-- > 0;)
		if (a != r->of.row_axis && a != r->of.column_axis)
			tile.batch = roles_divide(r, tile.batch, point_launch_expr(&r->l, roles_extent(r, a)), &r->coord[a]);
}

ValId
roles_open_tasks(Roles *r, ValId *fill, bool own)
{
	TirKernel *k = r->l.tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId step = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0);
	*fill = roles_int(r, 0);
	if (own && r->tile.turns) {
		lo = roles_op(r, OP_ADD, lo, roles_op(r, OP_MUL, r->group, step));
		step = roles_op(r, OP_MUL, step, roles_int(r, r->tile.groups));
		*fill = roles_op(r, OP_MUL, r->group, r->steps);
	}
	return tir_for(k, lo, hi, step, fill, 1);
}

static void
turn(Roles *r, bool gives)
{
	if (r->tile.turns)
		tir_emit(r->l.tir, OP_TURN, (TirType){0}, gives, NULL, 0);
}

void
roles_load_step(Roles *r, ValId step, ValId fill, const ValId *third)
{
	ValId term = roles_op(r, OP_MUL, step, roles_int(r, r->plan->block_terms));
	tir_emit(r->l.tir, OP_ACQUIRE, (TirType){0}, 0, &fill, 1);
	for (unsigned p = 0; p < 2 + r->of.beside; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		bool rows = own == r->of.row_axis;
		roles_copy(r, p, e, own, rows ? r->row0 : r->column0, term, third[!rows], fill);
	}
}

static void
load(Roles *r)
{
	TirKernel *k = r->l.tir;
	ValId fill, one = roles_int(r, 1);
	r->task = roles_open_tasks(r, &fill, false);
	if (r->tile.pieces)
		roles_enter_piece(r);
	enter_tile(r);
	if (r->tile.thirds) {
		roles_load_thirds(r, &fill);
	} else {
		ValId step = tir_for(k, r->step0, r->step_end, one, &fill, 1);
		roles_load_step(r, step, fill, (const ValId[2]){0, 0});
		fill = roles_op(r, OP_ADD, fill, one);
		tir_end_for(k, &fill, 1);
	}
	tir_end_for(k, &fill, 1);
}

void
roles_release(Roles *r, ValId fill, ValId cond)
{
	tir_emit(r->l.tir, OP_RELEASE, (TirType){0}, 0, (ValId[]){roles_op(r, OP_SUB, fill, roles_int(r, 1)), cond}, 2);
}

/* Sums that share a factor are one product: with their other factors one after another. */
static void
multiply_parts(Roles *r, ValId fill, ValId more)
{
	int64_t n = 1 + r->of.beside, imm = r->of.columns ? TIR_PRODUCT(0, 0, 0, 1, 0) | TIR_PRODUCT_COLUMNS(n)
	                                                  : TIR_PRODUCT(0, 0, 0, n, 0) | TIR_PRODUCT_ROWS(n);
	if (n == 1)
		tir_emit(r->l.tir, OP_MMA, (TirType){0}, TIR_MMA(0, 0, 1), (ValId[]){fill, more}, 2);
	else
		tir_emit(r->l.tir, OP_PRODUCT, (TirType){0}, imm, (ValId[]){fill, fill, more}, 3);
}

void
roles_multiply(Roles *r, ValId *fill)
{
	TirKernel *k = r->l.tir;
	turn(r, false);
	ValId one = roles_int(r, 1), step = tir_for(k, r->step0, r->step_end, one, fill, 1);
	ValId more = roles_op(r, OP_LT, r->step0, step);
	tir_emit(k, OP_WAIT, (TirType){0}, 0, fill, 1);
	multiply_parts(r, *fill, more);
	tir_emit(k, OP_SETTLE, (TirType){0}, 1, NULL, 0);
	roles_release(r, *fill, more);
	*fill = roles_op(r, OP_ADD, *fill, one);
	tir_end_for(k, fill, 1);
	turn(r, true);
	tir_emit(k, OP_SETTLE, (TirType){0}, 0, NULL, 0);
	roles_release(r, *fill, tir_int(k, DT_BOOL, 1));
	if (r->tile.turns)
		*fill = roles_op(r, OP_ADD, *fill, r->steps);
}

/* --- the kernel --- */

/* The node entered, of several sums, is the first. */
static void
declare_nodes(Roles *r, const Places *places)
{
	Point *l = &r->l;
	TensorId t = r->plan->node[0];
	RemarkId why;
	if (r->plan->sums) {
		Members *m = ARENA_NEW(l->scratch, Members);
		TensorId sum[MEMBERS_MOST_SUMS];
		if (!members_find(l->g, l->scratch, r->plan->node, r->plan->nnode, m) || members_sums(m, sum) != r->plan->sums ||
		    !roles_find_siblings(l->g, l->scratch, places->faulty, sum, m->nsum, &r->of, &why))
			bug(l->g->arena, "the kernel of %%%u has no sums that share a factor", t);
		members_declare(l, m);
		point_enter_node(l, sum[0]);
		r->members = m;
		return;
	}
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!roles_find_elements(l->g, l->scratch, places->faulty, t, &r->of))
		bug(l->g->arena, "%%%u is no contraction for roles", t);
	if (r->of.of_row)
		point_declare(l, l->node->expanded);
}

/* The multiplying role's part of a task. */
static void
multiply(Roles *r, ValId *fill)
{
	if (r->tile.pieces)
		roles_enter_piece(r);
	enter_tile(r); /* while the group waits for what it multiplies */
	(r->tile.thirds ? roles_multiply_thirds : roles_multiply)(r, fill);
	(r->tile.pieces ? roles_hand_over : roles_finish)(r);
}

/* As many as the tile has, where there is memory for them: several factors of rows take more of a slot than several of columns. */
static uint16_t
slots(const Roles *r, const TirChannel *c)
{
	enum { PROCESSOR = 228 << 10, LAUNCH = 1 << 10, BARRIERS = 1 << 9 }; /* of a processor's bytes, what a block takes besides */
	uint32_t room = PROCESSOR / r->tile.resident - LAUNCH - BARRIERS, n = r->tile.slots;
	while (r->of.beside && n > 2 && n * tir_slot_bytes(c) + roles_staged_bytes(r) > room)
		n--;
	return (uint16_t)n;
}

/* The tile's rows or columns; rows that are turned come 64 at a time. */
static uint16_t
rows_of_part(const Roles *r, const BoxFactor *e, unsigned own)
{
	if (own != r->of.row_axis)
		return r->tile.columns;
	return e->turned && r->tile.rows < TIR_MMA_ROWS ? TIR_MMA_ROWS : r->tile.rows;
}

void
contract_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Point *l = &r->l;
	TirKernel *k = kernel->tir;
	r->plan = &kernel->plan;
	r->tile = roles_tile(roles_tile_of(r->plan));
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	declare_nodes(r, places);
	r->packed = roles_packs(r, &r->tile);
	TirChannel c = {.nparts = (uint16_t)(2 + r->of.beside)};
	for (unsigned p = 0; p < c.nparts; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		bool joint = r->tile.joint && own == r->of.column_axis;
		c.part[p] = (TirPart){.dtype = e->dtype, .rows = rows_of_part(r, e, own), .terms = TIR_PART_TERMS, .turned = e->turned, .joint = joint};
	}
	c.slots = slots(r, &c);
	tir_add_channel(k, &c);
	count_tasks(r, kernel, o);
	for (unsigned a = 0; a < l->node->npar; a++) /* so that both roles see them */
		point_launch_expr(l, roles_extent(r, a));
	for (unsigned p = 0; p < c.nparts; p++) {
		unsigned own;
		const BoxFactor *e = roles_part(r, p, &own);
		r->view[p] = roles_view(r, e, own);
	}
	r->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	roles_divide_terms(r);
	if (r->tile.pieces)
		roles_bind_pieces(r, kernel);
	point_say_same_memory(l);
	if (!r->tile.pieces)
		roles_bind_staged(r);
	tir_open_roles(k, TIR_ROLES(r->tile.groups, r->tile.registers, r->tile.rest) | (r->tile.turns ? TIR_ROLES_TURNS : 0) |
	                      (r->tile.thirds ? TIR_ROLES_ANEW : 0)); /* whose sums leave no register to spare */
	ValId fill, rest;
	r->group = roles_divide(r, r->thread, roles_int(r, TIR_GROUP), &rest);
	r->task = roles_open_tasks(r, &fill, true);
	multiply(r, &fill);
	tir_end_for(k, &fill, 1);
	tir_other_role(k);
	load(r);
	tir_end_roles(k);
}
