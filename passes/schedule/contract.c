/* contract.c: the CONTRACT template: sums of products of two factors, each with parallel axes of its
 * own: rows and columns of the output.
 *
 *     out[batch, row, column] = finish( sum[terms]( row factor * column factor ) )
 *
 * A task is a block of the output. It evaluates its factors into panels (contract_pack.c), a block of
 * terms at a time, and multiplies these by register tiles (contract_tile.c). Tasks that share a block
 * of columns follow one another, and find it packed by the task before where the whole block is kept;
 * so may later calls.
 *
 * Axes of neither factor or of both are batch axes. The factor with the innermost of the others gives
 * the columns, along which the vectors run. Reduced ranges are the same for every element, and there
 * is no guard and no domain: an absent term must not become a product with 0. */
#include "passes/schedule/contract.h"

#include <string.h>

#include "ir/bugs.h"
#include "passes/expr_map.h"

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

static bool
runs_along_terms(const Graph *g, Arena *scratch, const Node *n, ExprId e, uint32_t own)
{
	unsigned term = n->npar + n->nred - 1u;
	return reads_along(g, scratch, e, term) >= reads_along(g, scratch, e, last_axis(own)) &&
	       reads_along(g, scratch, e, term) > 0;
}

static bool
ranges_are_fixed(const Graph *g, Arena *scratch, const Node *n)
{
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		const Axis *x = &n->axis[a];
		if (x->clamp || !expr_is_index(g, scratch, x->lo) || !expr_is_index(g, scratch, x->hi) ||
		    (expr_axes(g, scratch, x->lo) | expr_axes(g, scratch, x->hi)))
			return false;
	}
	return n->nred > 0;
}

static bool
is_present(const Graph *g, const Node *n)
{
	return expr_is_true(g, n->guard) && expr_is_true(g, n->domain);
}

static RemarkId
find_factors(const Graph *g, Arena *scratch, const bool *faulty, const Node *n, Factors *f)
{
	const Expr *body = expr_get(g, n->body);
	DType type = (DType)body->dtype;
	if (type == DT_C64 || dtype_info[g->tensor.at[n->out].dtype].bits < 8 || g->tensor.at[n->out].dtype == DT_C64)
		return REMARK_contract_type;
	if (!is_present(g, n))
		return REMARK_contract_absent;
	if (!ranges_are_fixed(g, scratch, n))
		return REMARK_contract_range;
	if (expr_can_fault(g, scratch, faulty, n->body))
		return REMARK_contract_checked;
	ExprId a = expr_arg(g, n->body, 0), b = expr_arg(g, n->body, 1);
	uint32_t par = ((uint32_t)1 << n->npar) - 1;
	uint32_t ina = expr_axes(g, scratch, a) & par, inb = expr_axes(g, scratch, b) & par;
	uint32_t ofa = ina & ~inb, ofb = inb & ~ina;
	if (!ofa || !ofb)
		return REMARK_contract_sides;
	bool a_rows = ofa < ofb; /* b has the innermost */
	*f = a_rows ? (Factors){a, b, ofa, ofb, false, false} : (Factors){b, a, ofb, ofa, false, false};
	f->rows_along_terms = runs_along_terms(g, scratch, n, f->row, f->row_axes);
	f->columns_along_terms = runs_along_terms(g, scratch, n, f->column, f->column_axes);
	return REMARK_NONE;
}

bool
contract_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, RemarkId *why)
{
	const Node *n = tensor_node(g, t);
	RemarkId no = find_factors(g, scratch, faulty, n, f);
	if (no)
		*why = no;
	return !no;
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
	if (!o->has_dot || g->fp == FP_STRICT || n->nred != 1 || expr_get(g, n->body)->dtype != DT_F32)
		return false;
	for (unsigned k = 0; k < 2; k++)
		if (expr_get(g, factor[k])->op != OP_CAST ||
		    expr_get(g, expr_arg(g, factor[k], 0))->dtype != DT_BF16)
			return false;
	return true;
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
	if (lanes < 2) {
		*why = REMARK_rows_scalar;
		return false;
	}
	if (!contract_factors(g, scratch, faulty, t, &f, why))
		return false;
	p->tmpl = TMPL_CONTRACT;
	p->lanes = (uint16_t)lanes;
	choose_tile(p, o->lanes >= 16, o->has_fma && dtype_is_float(type));
	if (takes_pairs(g, tensor_node(g, t), &f, o)) {
		p->pairs = 16;
		p->tile_rows = p->tile_columns = 32;
	}
	/* a block's tiles in a cache of 2 MB; DOT is fast enough to wait for them, vectors are not */
	p->block_terms = 512;
	p->block_rows = p->tile_rows * (p->pairs ? 16u : 24u);
	p->block_columns = p->tile_columns * (p->pairs ? 16u : 32u);
	p->block_tasks = 4;
	return true;
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

/* The rows of `task` and of those behind it, up to the end of the call, of the group and of what a block
 * takes; the first task that is left. */
static ValId
take_rows(Contract *c, ValId task, ValId hi, ValId nrow)
{
	TirKernel *k = c->l.tir;
	ValId row = tir_binary(k, OP_IMOD, task, nrow);
	ValId n = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, nrow, row), tir_binary(k, OP_SUB, hi, task));
	n = tir_binary(k, OP_MIN, n, contract_int(c, c->plan->block_tasks));
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
}

/* A block of terms: packs what is not there yet, and adds it to all tiles. */
static void
build_block(Contract *c, ValId block, ValId fresh)
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
	bool pairs = c->plan->pairs != 0;
	tir_if(k, fresh);
	if (pairs)
		contract_pack_pairs(c, true);
	else
		contract_pack_columns(c);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	if (pairs)
		contract_pack_pairs(c, false);
	else
		contract_pack_rows(c);
	contract_tiles(c);
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
	ValId block = tir_for(k, zero, nblock, one, NULL, 0);
	build_block(c, block, fresh);
	tir_end_for(k, NULL, 0);
	carried[PACKED] = group;
}

static void
build_tasks(Contract *c)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId zero = contract_int(c, 0), one = contract_int(c, 1);
	ValId packed = tir_binary(k, OP_SUB, tir_load(k, c->word, &zero, 0, 0, 0), one);
	ValId carried[NCARRIED] = {packed, lo}, done[NCARRIED];
	ValId task = tir_for(k, lo, hi, contract_int(c, 1), carried, NCARRIED);
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

/* So many tasks that a call has enough rows that packing the columns for each call costs little, as long
 * as there are some calls; and some work. */
static ExprId
grain(Contract *c)
{
	enum { WORK = 8 << 20, ROWS = 512, CALLS = 4 }; /* WORK: products */
	Graph *g = c->l.g;
	const KernelPlan *p = c->plan;
	int64_t tasks = (int64_t)p->block_tasks * ROWS / p->block_rows;
	ExprId few = launch_ceil_div(g, c->l.kernel->ntask, CALLS), one = expr_int(g, DT_I64, 1);
	/* of one piece of rows: no task has less */
	ExprId work = expr_binary(g, OP_MUL, c->columns.npiece, c->terms.npiece);
	int64_t enough = WORK / ((int64_t)p->tile_rows * p->tile_columns * contract_term_width(p));
	ExprId least = expr_binary(g, OP_IDIV, expr_int(g, DT_I64, enough), expr_binary(g, OP_ADD, work, one));
	return expr_binary(g, OP_MAX, expr_binary(g, OP_MIN, expr_int(g, DT_I64, tasks), few), least);
}

void
contract_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Contract c = {.plan = &kernel->plan};
	Point *l = &c.l;
	TensorId t = kernel->plan.node[0];
	RemarkId why;
	point_begin(l, g, scratch, places, kernel);
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!contract_factors(g, scratch, places->faulty, t, &c.factors, &why))
		bug(g->arena, "%%%u is no contraction", t);
	c.fold = reduction_begin(l);
	contract_bind_spaces(&c);
	contract_bind_blocks(&c);
	contract_bind_scratch(&c);
	bind_start(&c);
	kernel->ntask = expr_binary(g, OP_MUL, expr_binary(g, OP_MUL, c.batch.npiece, c.ncolumn_block), c.nrow_task);
	kernel->grain = grain(&c);
	build_tasks(&c);
}
