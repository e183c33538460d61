/* contract_roles.c: the CONTRACT template for a GPU with wgmma: a sum of products of two bf16 or f16 factors, each an
 * element of a tensor, by a block whose groups multiply while one loads (ir/channel.h).
 *
 * A task is a tile of the output. The block goes from one to the next; the loading role runs ahead, as far as the ring has
 * room, also into the next tile. Each multiplying group keeps one product going while it waits for the next slot. Sums are
 * finished a panel of columns at a time, through shared memory: lanes have pieces of the accumulator where the hardware
 * puts them, and read what they are to finish along a row of the output. A warp's rows stay with the warp.
 *
 * Tiles go in groups of GROUP_ROWS rows of tiles, so that those at work at the same time share factors in the cache.
 * Elements outside of a factor are 0 to the copy, so only what is stored is masked. The copies want rows that begin at
 * multiples of 16 bytes: a launch takes another kernel for any others, and for sizes that do not fill a fraction of a tile.
 *
 * The order of the sums is the hardware's, which the strict mode does not allow. An instruction adds 16 exact products to
 * the accumulator in one go: it aligns the 17 to the largest, keeps 2 bits more than a significand's 24 and cuts off what
 * lies below, the sum's last bits too (Khattak and Mikaitis, "Accurate Models of NVIDIA Tensor Cores", 2025;
 * scripts/gpu-library.py looks whether the bits are there). Where S is the sum of the magnitudes and u = 2^-24, that is an
 * error of at most (17/2 + 2) u S for 16 terms, below the n u S which the oracle allows n terms in any order, n >= 64
 * (eval_fold.c); an instruction whose terms are all beyond the end is exact. */
#include "passes/schedule/contract_roles.h"

#include "ir/bugs.h"
#include "passes/schedule/contract.h"

enum {
	TILE_ROWS = 128,
	TILE_COLUMNS = 256,
	SLOTS = 4,
	GROUPS = 2,
	REGISTERS = 240,
	REST = 24,
	GROUP_ROWS = 8,
	PANEL = 32,   /* columns that are finished at a time: a lane's each */
	PITCH = 40,   /* of a panel's rows in shared memory: pairs of 8 lanes meet all banks */
	AT_ONCE = 4,  /* rows that are finished side by side */
	LEAST = 64    /* rows, columns and terms that are worth a tile */
};

/* A factor: an element of a tensor. */
typedef struct {
	TensorId tensor;
	DType dtype;
	unsigned naxis;
	uint8_t axis[TG_MAX_RANK]; /* of the node, by the tensor's axes */
	bool turned;               /* memory runs along its own axis, not along the terms */
} Element;

typedef struct {
	Element row, column;
	unsigned row_axis, column_axis, term_axis;
} Product;

typedef struct {
	Point l;
	const KernelPlan *plan;
	Product of;
	ExprId nrow, ncolumn, nterm;  /* extents */
	ValId rows, columns, steps;   /* of tiles; of terms */
	ValId view[2], staged;
	ValId task, thread;
	ValId row0, column0, coord[TG_MAX_AXES]; /* of the tile; the batch axes' */
} Roles;

/* --- whether --- */

/* e as a bf16 or f16 element that is widened, with one plain index for each axis of its tensor. */
static bool
find_element(const Graph *g, ExprId e, unsigned own, unsigned term, Element *to)
{
	const Expr *cast = expr_get(g, e);
	if (cast->op != OP_CAST || cast->dtype != DT_F32)
		return false;
	ExprId read = expr_arg(g, e, 0);
	const Expr *p = expr_get(g, read);
	if (p->op != OP_READ || p->access || p->narg < 2 || p->narg > 5 || (p->dtype != DT_BF16 && p->dtype != DT_F16))
		return false;
	uint32_t seen = 0;
	*to = (Element){.tensor = p->ref, .dtype = (DType)p->dtype, .naxis = p->narg};
	for (unsigned n = 0; n < p->narg; n++) {
		const Expr *sub = expr_get(g, expr_arg(g, read, n));
		if (sub->op != OP_AXIS || seen >> sub->ref & 1)
			return false;
		to->axis[n] = (uint8_t)sub->ref;
		seen |= 1u << sub->ref;
	}
	unsigned last = to->axis[p->narg - 1];
	to->turned = last == own;
	return (seen >> own & 1) && (seen >> term & 1) && (last == own || last == term);
}

static bool
is_single(uint32_t axes)
{
	return axes && !(axes & (axes - 1));
}

static bool
find_elements(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Product *r)
{
	const Node *n = tensor_node(g, t);
	Factors f;
	RemarkId why;
	if (!contract_factors(g, scratch, faulty, t, &f, &why) || n->nred != 1 || !is_single(f.row_axes) || !is_single(f.column_axes))
		return false;
	const Expr *lo = expr_get(g, n->axis[n->npar].lo);
	if (lo->op != OP_CONST || lo->imm.i != 0 || reduction_type(g, n) != DT_F32)
		return false;
	r->row_axis = (unsigned)__builtin_ctz(f.row_axes);
	r->column_axis = (unsigned)__builtin_ctz(f.column_axes);
	r->term_axis = n->npar;
	return find_element(g, f.row, r->row_axis, r->term_axis, &r->row) &&
	       find_element(g, f.column, r->column_axis, r->term_axis, &r->column) && r->row.dtype == r->column.dtype;
}

/* The tensor whose memory t has. */
static TensorId
memory_of(const Graph *g, const Places *places, TensorId t)
{
	uint32_t r = places->result[t];
	return r && g->result.at[r - 1].inout ? g->result.at[r - 1].inout : t;
}

bool
contract_roles_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	Product p;
	if (!o->roles || !o->blocks || g->fp == FP_STRICT || !contract_is_sum_of_products(g, t) || !find_elements(g, scratch, faulty, t, &p))
		return false;
	const Node *n = tensor_node(g, t);
	return !n->finish || !expr_can_fault(g, scratch, faulty, n->finish);
}

bool
contract_roles_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *p)
{
	Product x;
	if (!contract_roles_could(g, scratch, places->faulty, t, o) || places->faulty[t] || !find_elements(g, scratch, places->faulty, t, &x))
		return false;
	TensorId out = memory_of(g, places, t);
	if (out == memory_of(g, places, x.row.tensor) || out == memory_of(g, places, x.column.tensor))
		return false;
	*p = (KernelPlan){.tmpl = TMPL_CONTRACT, .unroll = 1, .threads = (GROUPS + 1) * TIR_GROUP, .group = 1, .resident = 1,
	                  .tile_rows = TILE_ROWS, .tile_columns = TILE_COLUMNS, .block_terms = TIR_PART_TERMS,
	                  .block_rows = TILE_ROWS, .block_columns = TILE_COLUMNS, .block_tasks = 1, .nnode = 1, .node = {t}};
	return true;
}

/* --- numbers --- */

static ValId
number(Roles *r, int64_t v)
{
	return tir_int(r->l.tir, DT_I64, v);
}

static ValId
op(Roles *r, Op o, ValId a, ValId b)
{
	return tir_binary(r->l.tir, o, a, b);
}

/* Quotient and remainder of what is below 2^32: of 64 bits they are calls. */
static ValId
divide(Roles *r, ValId a, ValId b, ValId *rest)
{
	TirKernel *k = r->l.tir;
	ValId x = tir_cast(k, DT_U32, a), y = tir_cast(k, DT_U32, b);
	*rest = tir_cast(k, DT_I64, tir_binary(k, OP_IMOD, x, y));
	return tir_cast(k, DT_I64, tir_binary(k, OP_IDIV, x, y));
}

/* --- the launch --- */

static ExprId
reaches_least(Graph *g, ExprId e)
{
	ExprId least = expr_int(g, DT_I64, LEAST), one = expr_int(g, DT_I64, 1);
	return expr_binary(g, OP_MIN, expr_binary(g, OP_IDIV, e, least), one);
}

static void
count_tasks(Roles *r, Kernel *kernel)
{
	Graph *g = r->l.g;
	const Node *n = r->l.node;
	const Tensor out = g->tensor.at[n->out];
	r->nrow = out.extent[r->of.row_axis];
	r->ncolumn = out.extent[r->of.column_axis];
	r->nterm = n->axis[r->of.term_axis].hi;
	ExprId rows = launch_ceil_div(g, r->nrow, r->plan->tile_rows), columns = launch_ceil_div(g, r->ncolumn, r->plan->tile_columns);
	ExprId ntask = expr_binary(g, OP_MUL, rows, columns);
	for (unsigned a = 0; a < n->npar; a++)
		if (a != r->of.row_axis && a != r->of.column_axis)
			ntask = expr_binary(g, OP_MUL, ntask, out.extent[a]);
	ExprId worth = expr_binary(g, OP_MUL, reaches_least(g, r->nrow), reaches_least(g, r->ncolumn));
	worth = expr_binary(g, OP_MUL, worth, reaches_least(g, r->nterm));
	kernel->ntask = expr_binary(g, OP_MUL, ntask, worth);
	r->rows = point_launch_expr(&r->l, rows);
	r->columns = point_launch_expr(&r->l, columns);
	r->steps = point_launch_expr(&r->l, launch_ceil_div(g, r->nterm, r->plan->block_terms));
}

/* --- factors --- */

static ExprId
axis_extent(const Roles *r, unsigned axis)
{
	return axis == r->of.term_axis ? r->nterm : r->l.g->tensor.at[r->l.node->out].extent[axis];
}

/* The tensor's axes in the order of the view: those of a batch, then the two of a box, the last one last. */
static void
axes_in_order(const Roles *r, const Element *e, unsigned own, uint8_t *order)
{
	unsigned n = 0, other = e->turned ? r->of.term_axis : own;
	for (unsigned a = 0; a + 1 < e->naxis; a++)
		if (e->axis[a] != other)
			order[n++] = (uint8_t)a;
	for (unsigned a = 0; a + 1 < e->naxis; a++)
		if (e->axis[a] == other)
			order[n++] = (uint8_t)a;
	order[n] = (uint8_t)(e->naxis - 1);
}

/* As far as the node reads it: what a copy takes beyond is 0. */
static ValId
factor_view(Roles *r, const Element *e, unsigned own)
{
	Point *l = &r->l;
	uint8_t order[TG_MAX_RANK];
	ValId extent[TG_MAX_RANK], stride[TG_MAX_RANK];
	axes_in_order(r, e, own, order);
	for (unsigned n = 0; n < e->naxis; n++) {
		extent[n] = point_launch_expr(l, axis_extent(r, e->axis[order[n]]));
		stride[n] = point_tensor(l, e->tensor)->stride[order[n]];
	}
	ValId buffer = tir_arg(l->tir, point_tensor(l, e->tensor)->data, 0);
	return tir_view(l->tir, (unsigned)tir_inst(l->tir, buffer)->imm.i, e->naxis, extent, stride);
}

static void
copy_factor(Roles *r, unsigned part, const Element *e, unsigned own, ValId own0, ValId term, ValId fill)
{
	uint8_t order[TG_MAX_RANK];
	ValId at[TG_MAX_RANK];
	axes_in_order(r, e, own, order);
	for (unsigned n = 0; n < e->naxis; n++) {
		unsigned axis = e->axis[order[n]];
		at[n] = axis == own ? own0 : axis == r->of.term_axis ? term : r->coord[axis];
	}
	tir_copy(r->l.tir, TIR_COPY(0, part), r->view[part], fill, at);
}

/* --- tiles --- */

/* Of the task: groups of rows of tiles, row by row in a column, column by column in a group. */
static void
enter_tile(Roles *r)
{
	const Node *n = r->l.node;
	ValId rest, inside, column, row;
	ValId batch = divide(r, r->task, op(r, OP_MUL, r->rows, r->columns), &rest);
	ValId size = number(r, GROUP_ROWS), group = divide(r, rest, op(r, OP_MUL, size, r->columns), &inside);
	ValId first = op(r, OP_MUL, group, size);
	column = divide(r, inside, op(r, OP_MIN, op(r, OP_SUB, r->rows, first), size), &row);
	r->row0 = op(r, OP_MUL, op(r, OP_ADD, first, row), number(r, r->plan->tile_rows));
	r->column0 = op(r, OP_MUL, column, number(r, r->plan->tile_columns));
	for (unsigned a = n->npar; a-- > 0;)
		if (a != r->of.row_axis && a != r->of.column_axis)
			batch = divide(r, batch, point_launch_expr(&r->l, axis_extent(r, a)), &r->coord[a]);
}

static ValId
open_tasks(Roles *r, ValId *fill)
{
	TirKernel *k = r->l.tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId step = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0);
	*fill = number(r, 0);
	return tir_for(k, lo, hi, step, fill, 1);
}

static void
load(Roles *r)
{
	TirKernel *k = r->l.tir;
	ValId fill, one = number(r, 1);
	r->task = open_tasks(r, &fill);
	enter_tile(r);
	ValId step = tir_for(k, number(r, 0), r->steps, one, &fill, 1);
	ValId term = op(r, OP_MUL, step, number(r, r->plan->block_terms));
	tir_emit(k, OP_ACQUIRE, (TirType){0}, 0, &fill, 1);
	copy_factor(r, 0, &r->of.row, r->of.row_axis, r->row0, term, fill);
	copy_factor(r, 1, &r->of.column, r->of.column_axis, r->column0, term, fill);
	fill = op(r, OP_ADD, fill, one);
	tir_end_for(k, &fill, 1);
	tir_end_for(k, &fill, 1);
}

static void
release(Roles *r, ValId fill, ValId cond)
{
	tir_emit(r->l.tir, OP_RELEASE, (TirType){0}, 0, (ValId[]){op(r, OP_SUB, fill, number(r, 1)), cond}, 2);
}

/* All steps of a tile. One product goes on while the next slot is waited for. */
static void
multiply(Roles *r, ValId *fill)
{
	TirKernel *k = r->l.tir;
	ValId one = number(r, 1), zero = number(r, 0), step = tir_for(k, zero, r->steps, one, fill, 1);
	ValId more = op(r, OP_LT, zero, step);
	tir_emit(k, OP_WAIT, (TirType){0}, 0, fill, 1);
	tir_emit(k, OP_MMA, (TirType){0}, TIR_MMA(0, 0, 1), (ValId[]){*fill, more}, 2);
	tir_emit(k, OP_SETTLE, (TirType){0}, 1, NULL, 0);
	release(r, *fill, more);
	*fill = op(r, OP_ADD, *fill, one);
	tir_end_for(k, fill, 1);
	tir_emit(k, OP_SETTLE, (TirType){0}, 0, NULL, 0);
	release(r, *fill, tir_int(k, DT_BOOL, 1));
}

/* --- finished elements --- */

typedef struct {
	ValId lane, warp, group; /* of the thread: in its warp, in its group, in the block */
	ValId first;             /* the first row of the warp in what is staged */
} Own;

static Own
own_place(Roles *r)
{
	Own own;
	ValId in_group;
	own.group = divide(r, r->thread, number(r, TIR_GROUP), &in_group);
	own.warp = divide(r, in_group, number(r, TIR_WARP), &own.lane);
	own.first = op(r, OP_MUL, divide(r, r->thread, number(r, TIR_WARP), &in_group), number(r, 16));
	return own;
}

/* What the lanes hold of a panel, to where its rows are: two elements side by side at a time. */
static void
stage_panel(Roles *r, const Own *own, unsigned panel)
{
	TirKernel *k = r->l.tir;
	ValId quad, row = op(r, OP_ADD, own->first, divide(r, own->lane, number(r, 4), &quad));
	ValId column = op(r, OP_MUL, quad, number(r, 2));
	for (unsigned n = 0; n < PANEL / 2; n += 2) {
		unsigned piece = panel * PANEL / 2 + n;
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), piece + i, NULL, 0);
		ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
		unsigned down = tir_piece_row(piece, 0, TILE_COLUMNS), right = tir_piece_column(piece, 0, TILE_COLUMNS) % PANEL;
		const ValId at[2] = {op(r, OP_ADD, row, number(r, down)), op(r, OP_ADD, column, number(r, right))};
		tir_store(k, r->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
}

/* Which panel is known as the code runs; which registers it has is not. */
static void
stage_any_panel(Roles *r, const Own *own, ValId panel)
{
	TirKernel *k = r->l.tir;
	unsigned n = TILE_COLUMNS / PANEL;
	for (unsigned p = 0; p + 1 < n; p++) {
		tir_if(k, op(r, OP_EQ, panel, number(r, p)));
		stage_panel(r, own, p);
		tir_else(k, NULL, 0);
	}
	stage_panel(r, own, n - 1);
	for (unsigned p = 0; p + 1 < n; p++)
		tir_end_if(k, NULL, 0);
}

/* The element at this row of the warp's, in the lane's column. */
static void
finish_element(Roles *r, const Own *own, ValId row)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	uint32_t mark = point_mark(l);
	const ValId at[2] = {op(r, OP_ADD, own->first, row), own->lane};
	PointVal sum = {.re = tir_load(k, r->staged, at, 0, 0, 0)};
	l->axis[r->of.row_axis] = op(r, OP_ADD, r->row0, at[0]);
	point_store(l, l->node->out, element_finish(l, sum, tir_int(k, DT_BOOL, 1), true), l->axis, -1);
	point_release(l, mark);
}

static void
finish_whole(Roles *r, const Own *own)
{
	TirKernel *k = r->l.tir;
	ValId row = tir_for(k, number(r, 0), number(r, 16), number(r, AT_ONCE), NULL, 0);
	for (unsigned n = 0; n < AT_ONCE; n++)
		finish_element(r, own, op(r, OP_ADD, row, number(r, n)));
	tir_end_for(k, NULL, 0);
}

static void
finish_rest(Roles *r, const Own *own)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	ValId row = tir_for(k, number(r, 0), number(r, 16), number(r, 1), NULL, 0);
	ValId inside = op(r, OP_LT, op(r, OP_ADD, r->row0, op(r, OP_ADD, own->first, row)), point_launch_expr(l, r->nrow));
	inside = op(r, OP_AND, inside, op(r, OP_LT, l->axis[r->of.column_axis], point_launch_expr(l, r->ncolumn)));
	if (!BUG(tile_ends_unmasked))
		tir_if(k, inside);
	finish_element(r, own, row);
	if (!BUG(tile_ends_unmasked)) {
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	tir_end_for(k, NULL, 0);
}

static void
finish(Roles *r)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	Own own = own_place(r);
	ValId row1 = op(r, OP_ADD, r->row0, number(r, r->plan->tile_rows));
	ValId column1 = op(r, OP_ADD, r->column0, number(r, r->plan->tile_columns));
	ValId whole = op(r, OP_AND, op(r, OP_LE, row1, point_launch_expr(l, r->nrow)), op(r, OP_LE, column1, point_launch_expr(l, r->ncolumn)));
	for (unsigned a = 0; a < l->node->npar; a++)
		l->axis[a] = r->coord[a];
	ValId panel = tir_for(k, number(r, 0), number(r, TILE_COLUMNS / PANEL), number(r, 1), NULL, 0);
	stage_any_panel(r, &own, panel);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_GROUP_BARRIER, NULL, 0);
	l->axis[r->of.column_axis] = op(r, OP_ADD, op(r, OP_ADD, r->column0, op(r, OP_MUL, panel, number(r, PANEL))), own.lane);
	tir_if(k, whole);
	finish_whole(r, &own);
	tir_else(k, NULL, 0);
	finish_rest(r, &own);
	tir_end_if(k, NULL, 0);
	tir_emit(k, OP_BARRIER, (TirType){0}, TIR_GROUP_BARRIER, NULL, 0);
	tir_end_for(k, NULL, 0);
}

/* --- the kernel --- */

static void
bind_staged(Roles *r)
{
	TirKernel *k = r->l.tir;
	unsigned rows = r->plan->tile_rows, buffer = tir_add_buffer(k, 0, DT_F32, true);
	k->buffer.at[buffer].shared = rows * PITCH;
	r->staged = tir_view(k, buffer, 2, (ValId[]){number(r, rows), number(r, PITCH)}, (ValId[]){number(r, PITCH), number(r, 1)});
}

void
contract_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Roles *r = ARENA_NEW(scratch, Roles);
	Point *l = &r->l;
	TirKernel *k = kernel->tir;
	TensorId t = kernel->plan.node[0];
	r->plan = &kernel->plan;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	k->form = TIR_SPREAD;
	k->threads = kernel->plan.threads;
	k->group = kernel->plan.group;
	k->resident = kernel->plan.resident;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_elements(g, scratch, places->faulty, t, &r->of))
		bug(g->arena, "%%%u is no contraction for roles", t);
	TirChannel c = {.slots = SLOTS, .nparts = 2};
	c.part[0] = (TirPart){r->of.row.dtype, r->plan->tile_rows, TIR_PART_TERMS, r->of.row.turned};
	c.part[1] = (TirPart){r->of.row.dtype, r->plan->tile_columns, TIR_PART_TERMS, r->of.column.turned};
	tir_add_channel(k, &c);
	count_tasks(r, kernel);
	for (unsigned a = 0; a < l->node->npar; a++) /* so that both roles see them */
		point_launch_expr(l, axis_extent(r, a));
	r->view[0] = factor_view(r, &r->of.row, r->of.row_axis);
	r->view[1] = factor_view(r, &r->of.column, r->of.column_axis);
	r->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	point_say_same_memory(l);
	bind_staged(r);
	tir_open_roles(k, TIR_ROLES(GROUPS, REGISTERS, REST));
	ValId fill;
	r->task = open_tasks(r, &fill);
	multiply(r, &fill);
	enter_tile(r);
	finish(r);
	tir_end_for(k, &fill, 1);
	tir_other_role(k);
	load(r);
	tir_end_roles(k);
}
