/* contract.c: the CONTRACT template: sums of products of two factors, each with parallel axes of its
 * own: rows and columns of the output.
 *
 *     out[batch, row, column] = finish( sum[terms]( row factor * column factor ) )
 *
 * A task is a piece of the output's rows in a block of its columns; tasks in a row that a call has are one
 * block. It evaluates its factors into panels (pack.c), a block of terms at a time, and multiplies
 * these by register tiles (tile.c). The panels of the columns are made by tasks ahead of the others,
 * for all of them; or, where they would take too much memory, and of several batches, by each thread. Then
 * tasks that share a block of columns follow one another, and find it packed by the task before where the
 * whole block is kept; so may later calls.
 *
 * Axes of neither factor or of both are batch axes. The factor with the innermost of the others gives
 * the columns, along which the vectors run. Reduced ranges are the same for every element, and there
 * is no guard and no domain: an absent term must not become a product with 0 (but absent.c). */
#include "passes/schedule/contract/contract.h"

#include <string.h>

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/contract/absent.h"
#include "passes/schedule/contract/pair_terms.h"
#include "passes/schedule/contract/roles.h"
#include "passes/schedule/contract/strips.h"
#include "passes/schedule/contract/threads.h"
#include "passes/schedule/contract/warps.h"
#include "passes/schedule/contract/window.h"

/* --- factors --- */

typedef struct {
	const Graph *g;
	Arena *scratch;
	uint32_t inner;
	unsigned n;
} Along;

static void
note_last_subscript(void *user, ExprId e)
{
	Along *a = user;
	const Expr *p = expr_get(a->g, e);
	if (p->op == OP_READ && p->narg)
		a->n += (expr_axes(a->g, a->scratch, expr_arg(a->g, e, p->narg - 1u)) & a->inner) != 0;
}

/* In how many reads the last subscript goes with this axis. */
static unsigned
reads_along(const Graph *g, Arena *scratch, ExprId e, unsigned axis)
{
	Along a = {g, scratch, (uint32_t)1 << axis, 0};
	expr_walk(g, scratch, e, note_last_subscript, &a);
	return a.n;
}

static unsigned
last_axis(uint32_t axes)
{
	unsigned a = 31;
	while (a && !(axes >> a & 1))
		a--;
	return a;
}

bool
contract_runs_along_terms(const Graph *g, Arena *scratch, const Node *n, ExprId e, uint32_t own)
{
	unsigned term = n->npar + n->nred - 1u;
	return reads_along(g, scratch, e, term) >= reads_along(g, scratch, e, last_axis(own)) &&
	       reads_along(g, scratch, e, term) > 0;
}

bool
contract_ranges_are_fixed(const Graph *g, Arena *scratch, const Node *n)
{
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		const Axis *x = &n->axis[a];
		if (x->clamp || !expr_is_of_launch(g, scratch, x->lo) || !expr_is_of_launch(g, scratch, x->hi))
			return false;
	}
	return n->nred > 0;
}

/* Whether the node is a sum that tiles take, but for its factors. */
static RemarkId
is_sum(const Graph *g, Arena *scratch, const bool *faulty, const Node *n)
{
	const Expr *body = expr_get(g, n->body);
	DType type = (DType)body->dtype;
	if (type == DT_C64 || dtype_info[g->tensor.at[n->out].dtype].bits < 8 || g->tensor.at[n->out].dtype == DT_C64)
		return REMARK_contract_type;
	if (!expr_is_true(g, n->domain))
		return REMARK_contract_absent;
	if (!contract_ranges_are_fixed(g, scratch, n))
		return REMARK_contract_range;
	if (expr_can_fault(g, scratch, faulty, n->body))
		return REMARK_contract_checked;
	return REMARK_NONE;
}

static RemarkId
find_factors(const Graph *g, Arena *scratch, const bool *faulty, const Node *n, Factors *f)
{
	RemarkId why = is_sum(g, scratch, faulty, n);
	if (why)
		return why;
	ExprId a = expr_arg(g, n->body, 0), b = expr_arg(g, n->body, 1);
	uint32_t par = ((uint32_t)1 << n->npar) - 1;
	uint32_t ina = expr_axes(g, scratch, a) & par, inb = expr_axes(g, scratch, b) & par;
	uint32_t ofa = ina & ~inb, ofb = inb & ~ina;
	if (!ofa || !ofb)
		return REMARK_contract_sides;
	bool a_rows = ofa < ofb; /* b has the innermost */
	*f = a_rows ? (Factors){.row = a, .column = b, .row_axes = ofa, .column_axes = ofb} : (Factors){.row = b, .column = a, .row_axes = ofb, .column_axes = ofa};
	f->rows_along_terms = contract_runs_along_terms(g, scratch, n, f->row, f->row_axes);
	f->columns_along_terms = contract_runs_along_terms(g, scratch, n, f->column, f->column_axes);
	return REMARK_NONE;
}

bool
contract_all_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, RemarkId *why)
{
	RemarkId no = find_factors(g, scratch, faulty, tensor_node(g, t), f);
	if (no)
		*why = no;
	return !no;
}

bool
contract_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, RemarkId *why)
{
	bool present = expr_is_true(g, tensor_node(g, t)->guard);
	if (!present)
		*why = REMARK_contract_absent;
	return present && contract_all_factors(g, scratch, faulty, t, f, why);
}

static bool
is_single(uint32_t axes)
{
	return axes && !(axes & (axes - 1));
}

/* Whether terms go along one axis, from 0 on, and are summed in f32. */
static bool
has_plain_terms(const Graph *g, const Node *n)
{
	const Expr *lo = expr_get(g, n->axis[n->npar].lo);
	return n->nred == 1 && lo->op == OP_CONST && lo->imm.i == 0 && reduction_type(g, n) == DT_F32;
}

bool
contract_is_plain(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f)
{
	RemarkId why;
	return contract_factors(g, scratch, faulty, t, f, &why) && is_single(f->row_axes) && is_single(f->column_axes) &&
	       has_plain_terms(g, tensor_node(g, t));
}

bool
contract_is_plain_sum(const Graph *g, Arena *scratch, const bool *faulty, TensorId t)
{
	const Node *n = tensor_node(g, t);
	return expr_is_true(g, n->guard) && !is_sum(g, scratch, faulty, n) && has_plain_terms(g, n);
}

DType
contract_narrow_type(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	DType t = p->op == OP_CAST && p->dtype == DT_F32 ? (DType)expr_get(g, expr_arg(g, e, 0))->dtype : DT_NONE;
	return t == DT_BF16 || t == DT_F16 ? t : DT_NONE;
}

DType
contract_matrix_type(const Graph *g, ExprId e)
{
	DType t = contract_narrow_type(g, e);
	return t == DT_NONE && g->fp == FP_FAST && expr_get(g, e)->dtype == DT_F32 ? DT_F32 : t;
}

ExprId
contract_matrix_value(const Graph *g, ExprId e)
{
	return contract_narrow_type(g, e) == DT_NONE ? e : expr_arg(g, e, 0);
}

/* --- the plan --- */

bool
contract_is_sum_of_products(const Graph *g, TensorId t)
{
	const Node *n = tensor_node(g, t);
	return n->monoid == MON_SUM && !n->scatter && !n->recur && expr_get(g, n->body)->op == OP_MUL;
}

/* Accumulators fill the registers, but for two vectors of columns and one of a row's element; without
 * a fused operation a product needs one more. */
static void
choose_tile(KernelPlan *p, bool wide, bool fused)
{
	p->tile_columns = (uint16_t)(2 * p->lanes);
	p->tile_rows = wide ? (fused ? 14 : 13) : (fused ? 6 : 4);
}

/* Tiles of DOT: whether both factors are bf16 that are widened to be multiplied, along one range of terms.
 * Its sums are in no order that strict mode has. */
static bool
takes_pairs(const Graph *g, const Node *n, const Factors *f, const PassOptions *o)
{
	const ExprId factor[2] = {f->row, f->column};
	if (!o->dot || g->fp == FP_STRICT || n->nred != 1 || expr_get(g, n->body)->dtype != DT_F32)
		return false;
	for (unsigned k = 0; k < 2; k++)
		if (expr_get(g, factor[k])->op != OP_CAST ||
		    expr_get(g, expr_arg(g, factor[k], 0))->dtype != DT_BF16)
			return false;
	return true;
}

/* Tiles take what they take; vectors are chained, with accumulators as otherwise, and a group of as many terms as
 * lanes. */
static void
choose_pairs(KernelPlan *p, TirDotUnit unit)
{
	p->chained = unit == TIR_DOT_VECTORS;
	p->pairs = p->chained ? (uint8_t)(p->lanes / 2) : 16;
	if (!p->chained)
		p->tile_rows = p->tile_columns = 32;
}

/* Of one block of terms, a piece of packed columns is near a thread, and rows are in a cache of 2 MB, from which longer
 * blocks drive them. Tiles that wait may be further away: one at a time is fetched, and the more columns a block has, the
 * less often are rows packed.
 * Tiles of DOT take their factors at several times that rate: a piece of either is in the nearest cache while the
 * other's pieces pass by, and all that wait, half of it, in the next. */
static void
choose_blocks(KernelPlan *p, unsigned bytes)
{
	enum { ROWS = 336, COLUMNS = 4096, TERM_BYTES = 2048, DOT_TERMS = 256, DOT_ROWS = 8, DOT_COLUMNS = 32 };
	bool tiles = p->pairs && !p->chained;
	bytes = p->chained ? bytes / 2 : bytes;
	p->block_terms = tiles ? DOT_TERMS : TERM_BYTES / bytes;
	p->block_rows = p->tile_rows * (tiles ? DOT_ROWS : ROWS / p->tile_rows);
	p->block_tasks = (uint16_t)(p->block_rows / p->tile_rows);
	p->block_columns = p->tile_columns * (tiles ? DOT_COLUMNS : COLUMNS * 4 / bytes / p->tile_columns);
}

unsigned
contract_term_width(const KernelPlan *p)
{
	return p->pairs ? 2u * p->pairs : p->lanes;
}

bool
contract_takes(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o,
               KernelPlan *p, RemarkId *why)
{
	Factors f;
	DType type = (DType)expr_get(g, tensor_node(g, t)->body)->dtype;
	unsigned lanes = o->lanes * 32u / dtype_info[type].bits;
	if (lanes < 2 && !o->blocks) {
		*why = REMARK_rows_scalar;
		return false;
	}
	if (!contract_factors(g, scratch, faulty, t, &f, why))
		return false;
	*why = REMARK_contract_small;
	if (o->blocks)
		return false;
	p->tmpl = TMPL_CONTRACT;
	p->lanes = (uint16_t)lanes;
	p->free_masks = o->lanes >= 16;
	choose_tile(p, o->lanes >= 16, o->has_fma && dtype_is_float(type));
	if (takes_pairs(g, tensor_node(g, t), &f, o))
		choose_pairs(p, o->dot);
	choose_blocks(p, dtype_info[type].bits / 8u);
	return true;
}

/* Whether it is no product by its form, or has no factors. */
static bool
is_of_pairs(const Graph *g, Arena *scratch, const bool *faulty, TensorId t)
{
	Factors f;
	Absent a;
	return (!contract_is_sum_of_products(g, t) || !absent_factors(g, scratch, faulty, t, &f, &a)) && pair_values(g, scratch, faulty, t, &f);
}

bool
contract_has_tiles(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	KernelPlan plan = {0};
	RemarkId why;
	if (tensor_node(g, t)->expanded)
		return contract_roles_could(g, scratch, faulty, t, o);
	return contract_is_sum_of_products(g, t) && (contract_takes(g, scratch, faulty, t, o, &plan, &why) ||
	                                             contract_roles_could(g, scratch, faulty, t, o) ||
	                                             contract_strips_could(g, scratch, faulty, t, o) ||
	                                             contract_window_could(g, scratch, faulty, t, o) ||
	                                             contract_warps_could(g, scratch, faulty, t, o) ||
	                                             (contract_threads_could(g, scratch, faulty, t, o) && !is_of_pairs(g, scratch, faulty, t)));
}

typedef struct {
	const Graph *g;
	bool nodes;
} Sources;

static void
note_source(void *user, ExprId e)
{
	Sources *s = user;
	const Expr *p = expr_get(s->g, e);
	s->nodes |= p->op == OP_READ && s->g->tensor.at[p->ref].kind == TENSOR_NODE;
}

bool
contract_pairs_have_tiles(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	Sources s = {.g = g};
	expr_walk(g, scratch, tensor_node(g, t)->body, note_source, &s);
	return !s.nodes && is_of_pairs(g, scratch, faulty, t) && contract_threads_could(g, scratch, faulty, t, o);
}

bool
contract_rounds(const KernelPlan *plan)
{
	return plan->tmpl == TMPL_CONTRACT && plan->threads && !plan->lanes && plan->block_terms == WARPS_TERMS;
}

/* --- the kernel --- */

static ValId
block_start(Contract *c, ValId b, ValId pieces, ValId blocks)
{
	TirKernel *k = c->l.tir;
	return tir_binary(k, OP_IDIV, tir_binary(k, OP_MUL, b, pieces), blocks);
}

/* What the loop over tasks carries. */
enum { PACKED, UNTIL, NCARRIED }; /* the group whose columns are packed; the first task not yet computed */

static ValId
divide_up(TirKernel *k, ValId a, ValId b, ValId one)
{
	return tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, a, tir_binary(k, OP_SUB, b, one)), b);
}

/* The rows of `task` and of those behind it, up to the end of the call and of the group, in blocks of equal size; the
 * first task that is left. */
static ValId
take_rows(Contract *c, ValId task, ValId hi, ValId nrow)
{
	TirKernel *k = c->l.tir;
	ValId row = tir_binary(k, OP_IMOD, task, nrow);
	ValId one = contract_int(c, 1), most = contract_int(c, c->plan->block_tasks);
	ValId n = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, nrow, row), tir_binary(k, OP_SUB, hi, task));
	n = divide_up(k, n, divide_up(k, n, most, one), one);
	c->row0 = block_start(c, row, c->rows.pieces, nrow);
	c->row1 = block_start(c, tir_binary(k, OP_ADD, row, n), c->rows.pieces, nrow);
	return tir_binary(k, OP_ADD, task, n);
}

/* The columns and the batch of a group: all tasks that differ in their rows alone. */
static void
take_columns(Contract *c, ValId group)
{
	TirKernel *k = c->l.tir;
	ValId ncolumn = point_launch_expr(&c->l, c->ncolumn_block);
	ValId column = tir_binary(k, OP_IMOD, group, ncolumn);
	space_at(&c->l, &c->batch, tir_binary(k, OP_IDIV, group, ncolumn));
	c->column0 = block_start(c, column, c->columns.pieces, ncolumn);
	c->column1 = block_start(c, tir_binary(k, OP_ADD, column, contract_int(c, 1)), c->columns.pieces, ncolumn);
	c->kept0 = tir_select(k, c->shares, contract_int(c, 0), c->column0);
}

/* Makes a block of terms the present one. */
static void
enter_terms(Contract *c, ValId block)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId one = contract_int(c, 1), pieces = point_launch_expr(l, c->term_pieces);
	ValId last = tir_binary(k, OP_SUB, point_launch_expr(l, c->nterm_block), one);
	c->term0 = tir_binary(k, OP_MUL, block, pieces);
	c->term1 = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, c->term0, pieces), c->terms.pieces);
	c->slot = tir_binary(k, OP_MIN, block, tir_binary(k, OP_SUB, point_launch_expr(l, c->nslot), one));
	c->first_block = tir_binary(k, OP_EQ, block, contract_int(c, 0));
	c->last_block = tir_binary(k, OP_EQ, block, last);
}

static void
pack_columns(Contract *c)
{
	if (c->plan->pairs)
		contract_pack_pairs(c, true);
	else
		contract_pack_columns(c);
}

/* Packs the present block of terms, as far as it is not there yet, and adds it to all tiles. */
static void
add_block(Contract *c, ValId fresh)
{
	TirKernel *k = c->l.tir;
	tir_if(k, fresh);
	pack_columns(c);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	if (c->plan->pairs)
		contract_dot_tiles(c);
	else
		contract_tiles(c);
}

/* A block of terms: added to all tiles; and what is made of these after the last one. */
static void
build_block(Contract *c, ValId block, ValId fresh)
{
	TirKernel *k = c->l.tir;
	bool few = contract_reads_columns(c);
	bool pairs = c->plan->pairs != 0;
	enter_terms(c, block);
	if (!pairs)
		contract_pack_rows(c);
	if (few) {
		tir_if(k, contract_has_few_rows(c));
		if (pairs)
			contract_pack_rows(c);
		contract_few_rows(c);
		tir_else(k, NULL, 0);
	}
	if (pairs)
		contract_pack_pairs(c, false);
	add_block(c, fresh);
	if (few)
		tir_end_if(k, NULL, 0);
	contract_finish(c);
}

/* The block of rows that begins with this task. */
static void
build_rows(Contract *c, ValId task, ValId hi, ValId *carried)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), nrow = point_launch_expr(l, c->nrow_task);
	ValId nblock = point_launch_expr(l, c->nterm_block);
	ValId partial = tir_binary(k, OP_LT, point_launch_expr(l, c->nslot), nblock);
	ValId group = tir_binary(k, OP_IDIV, task, nrow);
	take_columns(c, group);
	carried[UNTIL] = take_rows(c, task, hi, nrow);
	ValId other = BUG(columns_kept_too_long) ? tir_binary(k, OP_LT, carried[PACKED], zero)
	                                         : tir_binary(k, OP_NE, group, carried[PACKED]);
	ValId fresh = tir_binary(k, OP_OR, partial, other);
	fresh = tir_select(k, c->shares, tir_int(k, DT_BOOL, 0), fresh);
	build_block(c, tir_for(k, zero, nblock, one, NULL, 0), fresh);
	tir_end_for(k, NULL, 0);
	/* few rows leave what is packed as it is */
	carried[PACKED] = contract_reads_columns(c) ? tir_select(k, contract_has_few_rows(c), carried[PACKED], group) : group;
}

/* A task ahead: a strip of columns in one block of terms, packed for all. */
static void
build_strip(Contract *c, ValId task)
{
	TirKernel *k = c->l.tir;
	ValId width = contract_int(c, CONTRACT_AHEAD_PIECES), one = contract_int(c, 1);
	ValId strips = divide_up(k, c->columns.pieces, width, one);
	c->column0 = tir_binary(k, OP_MUL, tir_binary(k, OP_IMOD, task, strips), width);
	c->column1 = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, c->column0, width), c->columns.pieces);
	c->kept0 = contract_int(c, 0);
	space_at(&c->l, &c->batch, c->kept0); /* there is one */
	enter_terms(c, tir_binary(k, OP_IDIV, task, strips));
	pack_columns(c);
}

static void
build_tasks(Contract *c)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId zero = contract_int(c, 0), one = contract_int(c, 1), nahead = point_launch_expr(l, c->nahead);
	build_strip(c, tir_for(k, lo, tir_binary(k, OP_MIN, hi, nahead), one, NULL, 0));
	tir_end_for(k, NULL, 0);
	lo = tir_binary(k, OP_MAX, tir_binary(k, OP_SUB, lo, nahead), zero);
	hi = tir_binary(k, OP_SUB, hi, nahead);
	ValId packed = tir_binary(k, OP_SUB, tir_load(k, c->word, &zero, 0, 0, 0), one);
	ValId carried[NCARRIED] = {packed, lo}, done[NCARRIED];
	ValId task = tir_for(k, lo, hi, one, carried, NCARRIED);
	memcpy(done, carried, sizeof done);
	tir_if(k, tir_binary(k, OP_LE, carried[UNTIL], task));
	build_rows(c, task, hi, carried);
	tir_else(k, carried, NCARRIED);
	tir_end_if(k, done, NCARRIED);
	tir_end_for(k, done, NCARRIED);
	tir_store(k, c->word, tir_binary(k, OP_ADD, done[PACKED], one), &zero, 0, 0);
}

/* -0, to which adding x gives x to the bit, and where there are no terms the sum of nothing. */
static void
bind_start(Contract *c)
{
	TirKernel *k = c->l.tir;
	DType type = c->fold.type;
	ValId none = dtype_is_float(type) ? tir_float(k, type, 0) : tir_int(k, type, 0);
	c->some = tir_binary(k, OP_LT, contract_int(c, 0), c->terms.pieces);
	ValId start = tir_select(k, c->some, c->fold.re, none);
	c->start = tir_emit(k, OP_SPLAT, tir_vector(type, c->plan->lanes), 0, &start, 1);
}

/* So many tasks that a call has some work, but no more: threads are to end together. And, where it packs columns itself,
 * enough rows that these cost little, as long as there are some calls. */
ExprId
contract_grain(Contract *c)
{
	enum { WORK = 2 << 20, ROWS = 512, CALLS = 4 }; /* WORK: products */
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	ExprId few = launch_ceil_div(g, c->ntask, CALLS), one = expr_int(g, DT_I64, 1);
	ExprId packs = expr_binary(g, OP_MIN, expr_int(g, DT_I64, ROWS / p->tile_rows), few);
	packs = expr_binary(g, OP_MUL, packs, expr_binary(g, OP_SUB, one, c->ahead));
	/* of one piece of rows: no task has less */
	ExprId work = expr_binary(g, OP_MUL, c->columns.npiece, c->terms.npiece);
	int64_t enough = WORK / ((int64_t)p->tile_rows * p->tile_columns * contract_term_width(p));
	ExprId least = expr_binary(g, OP_IDIV, expr_int(g, DT_I64, enough), expr_binary(g, OP_ADD, work, one));
	return expr_binary(g, OP_MAX, packs, least);
}

void
contract_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Contract c = {.plan = &kernel->plan};
	Point *l = &c.l;
	TensorId t = kernel->plan.node[0];
	RemarkId why;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!contract_factors(g, scratch, places->faulty, t, &c.factors, &why))
		bug(g->arena, "%%%u is no contraction", t);
	c.fold = reduction_begin(l);
	contract_count(&c);
	contract_bind_spaces(&c);
	contract_bind_blocks(&c);
	contract_bind_scratch(&c);
	bind_start(&c);
	kernel->grain = contract_grain(&c);
	kernel->ntask = expr_binary(g, OP_ADD, c.nahead, c.ntask);
	kernel->ahead = c.nahead;
	build_tasks(&c);
}
