/* suits.c: which sizes each of the kernels suits that blocks.c has forms for: a launch runs the first whose tasks are not none. */
#include "passes/schedule/rows/blocks.h"

#include "passes/cost/cost.h"
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/rows/flat.h"

enum {
	FILLED_PART = 8,  /* of a form's lanes, that may be masked where those that are not make up for them */
	COLUMN_WARPS = 4, /* of a multiprocessor, up to which each may be a block */
	STEP_WARPS = 8,   /* of a multiprocessor, each with several rows of its columns on their way */
	SPLIT_BLOCKS = 2  /* of a multiprocessor, up to which rows of lanes split a recurrence's steps */
};

bool
block_lengths_known(const Graph *g, Arena *scratch, const Rows *r)
{
	for (unsigned k = 0; k < r->nloop; k++) {
		const Expr *lo = expr_get(g, r->loop[k].lo);
		if (!r->loop[k].lanes)
			continue;
		if (lo->op != OP_CONST || lo->imm.i != 0 || !expr_is_of_launch(g, scratch, r->loop[k].hi))
			return false;
	}
	return true;
}

bool
block_is_multiple(Graph *g, Arena *scratch, ExprId e, unsigned n, ExprId *cond)
{
	const Expr *p = expr_get(g, e);
	if (expr_multiple(g, e, n) >= n)
		return true;
	if (expr_is_of_launch(g, scratch, e)) {
		ExprId rest = expr_binary(g, OP_IMOD, e, expr_int(g, DT_I64, n));
		ExprId whole = expr_binary(g, OP_EQ, rest, expr_int(g, DT_I64, 0));
		*cond = *cond ? expr_binary(g, OP_AND, *cond, whole) : whole;
		return true;
	}
	return (p->op == OP_MIN || p->op == OP_MAX || p->op == OP_ADD || p->op == OP_SUB) &&
	       block_is_multiple(g, scratch, expr_arg(g, e, 0), n, cond) && block_is_multiple(g, scratch, expr_arg(g, e, 1), n, cond);
}

bool
block_ends_are_multiples(Graph *g, Arena *scratch, const Rows *r, unsigned n, ExprId *cond)
{
	bool ok = !r->lanes_by_row || block_is_multiple(g, scratch, r->extent[r->nrow - 1], n, cond);
	ok = ok && (!r->ntile || block_is_multiple(g, scratch, r->extent[r->block - 1], n, cond));
	for (unsigned k = 0; ok && k < r->nloop; k++)
		if (r->loop[k].lanes)
			ok = block_is_multiple(g, scratch, r->loop[k].lo, n, cond) && block_is_multiple(g, scratch, r->loop[k].hi, n, cond);
	return ok;
}

static ExprId
row_count(Graph *g, const Rows *r)
{
	ExprId rows = expr_int(g, DT_I64, 1);
	for (unsigned k = 0; k < r->nrow; k++)
		rows = expr_binary(g, OP_MUL, rows, r->extent[k]);
	return rows;
}

static ExprId
longest_row(Graph *g, const Rows *r)
{
	ExprId longest = expr_int(g, DT_I64, 0);
	for (unsigned k = 0; k < r->nloop; k++)
		if (r->loop[k].lanes)
			longest = expr_binary(g, OP_MAX, longest, r->loop[k].hi);
	return longest;
}

/* No launch has a larger one. */
static int64_t
most(const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_CONST)
		return p->imm.i;
	if (p->op != OP_MIN && p->op != OP_MAX)
		return INT64_MAX;
	int64_t a = most(g, expr_arg(g, e, 0)), b = most(g, expr_arg(g, e, 1));
	return (a < b) == (p->op == OP_MIN) ? a : b;
}

bool
block_lengths_reach(Graph *g, const Rows *r, int64_t n)
{
	return n <= most(g, longest_row(g, r));
}

/* Whether a scan is done by a warp a row: rows are many, or each is one vector. */
static ExprId
suits_warps(Graph *g, Arena *scratch, const Rows *r, ExprId lanes)
{
	ExprId rows = row_count(g, r), longest = longest_row(g, r), zero = expr_int(g, DT_I64, 0);
	ExprId over = expr_binary(g, OP_SUB, rows, expr_int(g, DT_I64, (int64_t)BUSY_WARPS * cost_machine(true, 0)->threads));
	if (block_lengths_known(g, scratch, r)) /* launch expressions have no || */
		over = expr_binary(g, OP_MAX, over, expr_binary(g, OP_SUB, lanes, longest));
	return expr_binary(g, OP_LE, zero, over);
}

bool
block_has_row(const Rows *r, const KernelPlan *p)
{
	return p->short_axis && (r->tmpl != TMPL_COLRED || p->group > 1);
}

/* Whether a warp takes a strip: there is one alone, or of columns, one a thread, there are so few that each can have a
 * multiprocessor nearly to itself. */
static ExprId
suits_short(Graph *g, const Rows *r, const KernelPlan *p, ExprId lanes, ExprId ntask)
{
	ExprId beyond = expr_binary(g, OP_SUB, r->extent[r->nrow - 1], lanes), zero = expr_int(g, DT_I64, 0);
	if (!block_has_row(r, p)) { /* launch expressions have no || */
		ExprId most = expr_int(g, DT_I64, (int64_t)COLUMN_WARPS * cost_machine(true, 0)->threads);
		beyond = expr_binary(g, OP_MIN, beyond, expr_binary(g, OP_SUB, ntask, most));
		return expr_binary(g, OP_LE, beyond, zero);
	}
	ExprId some = expr_binary(g, OP_LE, expr_int(g, DT_I64, 1), r->extent[r->nrow - 1]); /* strips are not counted */
	return expr_binary(g, OP_AND, some, expr_binary(g, OP_LE, beyond, zero));
}

/* Whether the rows of lanes hold all rows, of which there are some, and their columns are not most of them missing. */
static ExprId
suits_columns(Graph *g, const Rows *r, const KernelPlan *p)
{
	ExprId one = expr_int(g, DT_I64, 1), half = expr_int(g, DT_I64, p->columns / 2);
	ExprId cond = expr_binary(g, OP_LE, half, r->extent[r->nrow - 1]);
	for (unsigned k = 0; k < r->nloop; k++) {
		ExprId fits = expr_binary(g, OP_LE, r->loop[k].hi, expr_int(g, DT_I64, p->lanes / p->columns));
		cond = expr_binary(g, OP_AND, cond, expr_binary(g, OP_AND, fits, expr_binary(g, OP_LE, one, r->loop[k].hi)));
	}
	return cond;
}

/* Whether columns are so few that warps alone would not keep memory busy. */
static ExprId
suits_split(Graph *g, ExprId ntask)
{
	return expr_binary(g, OP_LE, ntask, expr_int(g, DT_I64, (int64_t)SPLIT_BLOCKS * cost_machine(true, 0)->threads));
}

/* Whether there is a whole tile. */
static ExprId
suits_tiles(Graph *g, const Rows *r, const KernelPlan *p)
{
	ExprId side = expr_int(g, DT_I64, p->columns);
	return expr_binary(g, OP_AND, expr_binary(g, OP_LE, side, r->extent[r->nrow - 1]), expr_binary(g, OP_LE, side, r->extent[r->block - 1]));
}

ExprId
block_tasks(Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p, ExprId ntask, bool *few)
{
	ExprId cond = 0, lanes = expr_int(g, DT_I64, p->lanes);
	if (p->short_axis)
		cond = suits_short(g, r, p, lanes, ntask);
	for (unsigned k = 0; p->held && k < r->nloop; k++)
		if (r->loop[k].lanes) {
			ExprId fits = expr_binary(g, OP_LE, r->loop[k].hi, lanes);
			cond = cond ? expr_binary(g, OP_AND, cond, fits) : fits;
		}
	for (unsigned k = 0; p->long_sums && k < r->nloop; k++)
		if (r->loop[k].lanes) {
			ExprId many = expr_binary(g, OP_LE, expr_int(g, DT_I64, LONG_SUM_TERMS), r->loop[k].hi);
			cond = cond ? expr_binary(g, OP_AND, cond, many) : many;
		}
	if (p->filled || (r->scans && p->held)) {
		unsigned least = p->lanes - p->lanes / (p->filled ? FILLED_PART : 2) + 1;
		cond = expr_binary(g, OP_AND, cond, expr_binary(g, OP_LE, expr_int(g, DT_I64, least), longest_row(g, r)));
	}
	if (r->scans && !r->lanes_by_row && !p->held && p->threads == TIR_WARP)
		cond = suits_warps(g, scratch, r, lanes);
	if (r->scans && r->lanes_by_row && p->group > 1)
		cond = expr_binary(g, OP_LE, expr_int(g, DT_I64, (int64_t)STEP_WARPS * cost_machine(true, 0)->threads), ntask);
	if (p->posts)
		cond = expr_binary(g, OP_LE, expr_int(g, DT_I64, p->posts), longest_row(g, r));
	if (p->columns)
		cond = r->ntile ? suits_tiles(g, r, p) : r->scans ? suits_split(g, ntask) : suits_columns(g, r, p);
	if (p->once) {
		ExprId many = expr_binary(g, OP_LE, expr_int(g, DT_I64, p->once), row_count(g, r));
		cond = cond ? expr_binary(g, OP_AND, cond, many) : many;
	}
	unsigned unit = p->anywhere ? 1 : p->group;
	if (unit > 1 && !(p->flat ? block_is_multiple(g, scratch, rows_flat_extent(g, r), unit, &cond)
	                          : block_ends_are_multiples(g, scratch, r, unit, &cond)))
		bug(scratch, "blocks: groups of %u", unit);
	if (cond && *few)
		cond = expr_binary(g, OP_AND, cond, expr_binary(g, OP_LE, ntask, expr_int(g, DT_I64, INT32_MAX)));
	*few = *few && cond;
	return cond ? expr_select(g, cond, ntask, expr_int(g, DT_I64, 0)) : ntask;
}
