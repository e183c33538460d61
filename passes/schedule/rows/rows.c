/* rows.c: the templates MAP, ROWRED, COLRED, FULLRED and SCAN: nodes that share their rows (rows.h), in one
 * kernel. A pointwise node is a row of its own for each element; a full reduction is a single row.
 *
 * A task is a row or, with lanes along the last row axis, a strip of it. Inside, the phases run one
 * after the other. Where vectors run, several are lowered side by side (copies), so that their
 * operations overlap; what a whole number of them leaves is done one masked vector at a time. */
#include "passes/schedule/rows/apart.h"
#include "passes/schedule/rows/blocks.h"
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/flat.h"
#include "passes/schedule/rows/held.h"

#include "ir/bugs.h"

enum {
	STRIP_POINTS = 4096,  /* elements of a strip without loops: some microseconds of work */
	BLOCK_ROWS = 16,      /* values of the blocked axis a task: a cache line of the narrowest common type */
	BLOCK_POINTS = 512,   /* and of its strip */
	SQUARE_POINTS = 64,   /* of the strip, where squares are turned: lines that follow one another */
	SQUARE_ROWS = 1024,   /* and of the blocked axis, */
	SQUARE_BYTES = 4096   /* along which they are read: long pieces of rows, no more than so many bytes */
};

/* --- tasks --- */

static int64_t
strip_points(const RowBuild *b)
{
	if (b->kernel->plan.threads)
		return b->kernel->plan.columns ? b->kernel->plan.columns : b->kernel->plan.lanes;
	if (b->r->ntile)
		return SQUARE_POINTS;
	return b->r->block ? BLOCK_POINTS : b->r->tmpl == TMPL_MAP ? STRIP_POINTS : (int64_t)b->kernel->plan.unroll * b->kernel->plan.lanes;
}

static ExprId
strip_count(RowBuild *b)
{
	Graph *g = b->l->g;
	if (block_has_row(b->r, &b->kernel->plan))
		return expr_int(g, DT_I64, 1);
	ExprId size = expr_int(g, DT_I64, strip_points(b)), one_less = expr_int(g, DT_I64, BUG(last_chunk_missing) ? 0 : strip_points(b) - 1);
	return expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, b->r->extent[rows_lane_axis(b)], one_less), size);
}

static int64_t
square_rows(const RowBuild *b)
{
	int64_t rows = SQUARE_ROWS;
	for (unsigned k = 0; k < b->r->ntile; k++) {
		int64_t most = SQUARE_BYTES / (dtype_info[expr_get(b->l->g, b->r->tile[k])->dtype].bits / 8u);
		rows = most < rows ? most : rows;
	}
	return rows;
}

/* The values of the blocked axis that a task has. */
static ExprId
block_rows(RowBuild *b)
{
	if (b->r->nkept && !b->r->ntile)
		return rows_kept_rows(b->l->g, b->r, strip_count(b));
	int64_t squares = b->kernel->plan.threads ? strip_points(b) : square_rows(b);
	return expr_int(b->l->g, DT_I64, b->r->ntile ? squares : BLOCK_ROWS);
}

/* The values of row axis k that tasks are made for. */
static ExprId
task_extent(RowBuild *b, unsigned k)
{
	Graph *g = b->l->g;
	if (b->r->block != k + 1)
		return b->r->extent[k];
	ExprId rows = block_rows(b), up = expr_binary(g, OP_ADD, b->r->extent[k], expr_binary(g, OP_SUB, rows, expr_int(g, DT_I64, 1)));
	return expr_binary(g, OP_IDIV, up, rows);
}

/* The rows, or groups of rows, or with lanes along a row axis strips of them. */
static ExprId
row_count(RowBuild *b)
{
	Graph *g = b->l->g;
	unsigned whole = b->r->nrow - (b->r->lanes_by_row ? 1u : 0u);
	ExprId count = b->r->lanes_by_row ? strip_count(b) : expr_int(g, DT_I64, 1);
	for (unsigned k = 0; k < whole; k++)
		count = expr_binary(g, OP_MUL, count, task_extent(b, k));
	return count;
}

static ExprId
task_count(RowBuild *b)
{
	Graph *g = b->l->g;
	if (b->r->across)
		return b->r->loop[b->r->across - b->r->nrow].hi;
	if (b->turns.n)
		return block_turn_tasks(g, &b->turns, row_count(b));
	return b->kernel->plan.posts ? rows_posted_tasks(b, row_count(b)) : row_count(b);
}

/* Of a task, of the nodes with the most: the grain need not be exact. */
static ExprId
task_elements(RowBuild *b)
{
	Graph *g = b->l->g;
	ExprId most = expr_int(g, DT_I64, 1);
	for (unsigned k = 0; k < b->r->nloop; k++)
		for (unsigned m = 0; m < b->r->nmember; m++)
			for (unsigned a = 0; a < b->r->member[m].node.npar; a++)
				if (b->r->member[m].axis[a] == b->r->nrow + k)
					most = expr_binary(g, OP_MAX, most, b->r->loop[k].hi);
	if (!b->r->lanes_by_row)
		return most;
	ExprId strip = expr_binary(g, OP_MIN, expr_int(g, DT_I64, strip_points(b)), b->r->extent[rows_lane_axis(b)]);
	strip = expr_binary(g, OP_MUL, strip, most);
	return b->r->block ? expr_binary(g, OP_MUL, strip, block_rows(b)) : strip;
}

/* Whether strips are of one row, so that all tasks are. Columns that are held take all registers: the assembler has a word
 * too few where no row is looked for, and none where one is. */
static bool
is_one_row(const RowBuild *b)
{
	bool one = b->kernel->plan.threads > 0 && (!b->kernel->plan.columns || b->turns.n);
	for (unsigned k = 0; k < rows_lane_axis(b); k++) {
		const Expr *e = expr_get(b->l->g, b->r->extent[k]);
		one = one && e->op == OP_CONST && e->imm.i == 1;
	}
	return one;
}

/* A factor of the number of tasks, which divides numbers of theirs. */
static ValId
task_factor(RowBuild *b, ExprId e)
{
	ValId v = point_launch_expr(b->l, e);
	if (b->few && tir_inst(b->l->tir, v)->op == OP_SCALAR)
		b->l->tir->scalar.at[tir_inst(b->l->tir, v)->imm.i].few = true;
	return v;
}

/* Whether numbers of tasks are divided, all by factors of how many there are. Where threads count on a share of the registers the long
 * way, which is a branch that others never take, leaves them one more. */
static bool
are_divided(const RowBuild *b)
{
	return b->kernel->plan.threads && !b->kernel->plan.posts && !b->kernel->plan.resident && !b->r->across && !b->turns.n && b->r->nrow > 1 && !is_one_row(b);
}

void
rows_go_to(RowBuild *b, ValId row, unsigned naxis)
{
	Point *l = b->l;
	for (unsigned k = naxis; k-- > 0;) {
		ValId extent = task_factor(b, task_extent(b, k));
		l->axis[k] = k ? tir_binary(l->tir, OP_IMOD, row, extent) : row;
		if (k)
			row = tir_binary(l->tir, OP_IDIV, row, extent);
	}
}

/* To a task's row, where lanes are along its last axis, and the number of its strip there. */
static ValId
go_to_strip(RowBuild *b, ValId task, ValId strips)
{
	TirKernel *k = b->l->tir;
	bool whole = block_has_row(b->r, &b->kernel->plan), one = is_one_row(b);
	rows_go_to(b, one ? rows_int(b, 0) : whole ? task : tir_binary(k, OP_IDIV, task, strips), rows_lane_axis(b));
	return whole ? rows_int(b, 0) : one ? task : tir_binary(k, OP_IMOD, task, strips);
}

/* All of a vector's rows: one, or those of a block. */
static void
run_rows(RowBuild *b, unsigned ncopy)
{
	Point *l = b->l;
	if (!b->r->block) {
		rows_run_phases(b, ncopy);
		return;
	}
	l->axis[b->r->block - 1] = tir_for(l->tir, b->block_lo, b->block_hi, rows_int(b, 1), NULL, 0);
	rows_run_phases(b, ncopy);
	tir_end_for(l->tir, NULL, 0);
}

static void
open_block(RowBuild *b)
{
	Point *l = b->l;
	if (!b->r->block)
		return;
	unsigned k = b->r->block - 1u;
	ValId rows = point_launch_expr(l, block_rows(b));
	b->block_lo = tir_binary(l->tir, OP_MUL, l->axis[k], rows);
	b->block_hi = tir_binary(l->tir, OP_MIN, tir_binary(l->tir, OP_ADD, b->block_lo, rows),
	                         point_launch_expr(l, b->r->extent[k]));
}

/* The vectors of a strip: several side by side, then one masked. */
static void
run_strip(RowBuild *b, ValId begin, ValId end)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	if (b->kernel->plan.threads) {
		b->base = begin;
		if (b->r->ntile) {
			rows_run_tile(b, begin, end);
			return;
		}
		l->mask = b->kernel->plan.columns ? rows_columns_of(b, begin, end) : point_block_mask(l, begin, end);
		if (b->r->nkept)
			rows_load_kept(b);
		run_rows(b, 1);
		l->mask = 0;
		return;
	}
	if (b->r->ntile) {
		rows_run_squares(b, begin, end);
		return;
	}
	rows_read_early(b);
	ValId step = rows_int(b, (int64_t)(b->copies * l->lanes));
	ValId whole = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, end, begin), step);
	ValId rest = tir_binary(k, OP_ADD, begin, tir_binary(k, OP_MUL, whole, step));
	if (b->nwide) {
		rows_run_wide(b, begin, rest);
	} else {
		b->base = tir_for(k, begin, rest, step, NULL, 0);
		rows_fetch_gathered(b);
		run_rows(b, b->copies);
		tir_end_for(k, NULL, 0);
	}
	b->base = tir_for(k, rest, end, rows_int(b, l->lanes), NULL, 0);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
	l->mask = tir_binary(k, BUG(tail_mask) ? OP_LE : OP_LT, tir_binary(k, OP_ADD, b->base, iota), end);
	run_rows(b, 1);
	l->mask = 0;
	tir_end_for(k, NULL, 0);
}

/* Row by row what the call has of it as one strip. */
static void
run_rows_of_call(RowBuild *b, ValId strips, ValId lo, ValId hi)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId zero = rows_int(b, 0), size = rows_int(b, strip_points(b));
	ValId up = tir_binary(k, OP_ADD, hi, tir_binary(k, OP_SUB, strips, rows_int(b, 1)));
	ValId row = tir_for(k, tir_binary(k, OP_IDIV, lo, strips), tir_binary(k, OP_IDIV, up, strips), rows_int(b, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	ValId first = tir_binary(k, OP_MUL, row, strips);
	ValId begin = tir_binary(k, OP_MAX, tir_binary(k, OP_SUB, lo, first), zero);
	ValId end = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, hi, first), strips);
	rows_go_to(b, row, rows_lane_axis(b));
	run_strip(b, tir_binary(k, OP_MUL, begin, size),
	          tir_binary(k, OP_MIN, tir_binary(k, OP_MUL, end, size), point_launch_expr(l, b->r->extent[rows_lane_axis(b)])));
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

/* Where the rows of a task begin. */
static ValId
first_turn(RowBuild *b, ValId task)
{
	TirKernel *k = b->l->tir;
	ValId first = tir_binary(k, OP_MUL, task, point_launch_expr(b->l, b->turns.size[0]));
	for (unsigned n = 1; n < b->turns.n; n++) {
		ValId all = tir_binary(k, OP_MUL, task, point_launch_expr(b->l, b->turns.size[n]));
		all = tir_binary(k, OP_ADD, all, point_launch_expr(b->l, b->turns.from[n]));
		first = BUG(turns_of_first_round) ? all : tir_binary(k, OP_MIN, first, all);
	}
	return tir_binary(k, OP_MIN, first, point_launch_expr(b->l, row_count(b)));
}

static void
run_tasks(RowBuild *b)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId strips = b->r->lanes_by_row && !is_one_row(b) ? task_factor(b, strip_count(b)) : 0;
	if (b->nwide) {
		run_rows_of_call(b, strips, lo, hi);
		return;
	}
	if (rows_trail(b)) {
		rows_run_trail(b, lo, hi);
		return;
	}
	if (b->turns.n) { /* rows, or strips, of tasks, from now on */
		lo = first_turn(b, lo);
		hi = first_turn(b, hi);
	}
	ValId task = tir_for(k, lo, hi, rows_int(b, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	if (b->r->lanes_by_row) {
		ValId size = rows_int(b, strip_points(b)), begin = tir_binary(k, OP_MUL, go_to_strip(b, task, strips), size);
		ValId end = tir_binary(k, OP_ADD, begin, size), extent = point_launch_expr(l, b->r->extent[rows_lane_axis(b)]);
		open_block(b);
		run_strip(b, begin, tir_binary(k, OP_MIN, end, extent));
	} else if (b->r->across) {
		rows_run_across(b, task);
	} else {
		rows_go_to(b, b->kernel->plan.posts ? rows_enter_vector(b, task) : task, b->r->nrow);
		rows_run_phases(b, 1);
	}
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

/* --- the kernel --- */

static void
declare_stored(Point *l, const RowMember *m)
{
	point_declare_output(l, m->t);
	point_tensor(l, m->t)->streams = m->streams;
}

static void
declare_steps(RowBuild *b, const RowMember *m)
{
	Point *l = b->l;
	TensorArg *arg = point_tensor(l, m->t);
	arg->steps = m->steps || (b->kernel->plan.held && m->is_row);
	for (unsigned a = 0; a < m->node.npar; a++)
		arg->point_axis[a] = m->axis[a];
}

static void
declare(RowBuild *b)
{
	Point *l = b->l;
	Rows *r = b->r;
	rows_replace_reads(b);
	if (r->lanes_by_row)
		l->lane_axes = 1u << rows_lane_axis(b);
	for (unsigned k = 0; k < r->nloop; k++) {
		const Expr *lo = expr_get(l->g, r->loop[k].lo);
		l->lane_axes |= r->loop[k].lanes ? 1u << (r->nrow + k) : 0;
		if (lo->op == OP_CONST && lo->imm.i >= 0)
			l->run[r->nrow + k] = r->loop[k].hi;
	}
	if (b->kernel->plan.columns)
		l->row_axes = ((1u << r->nloop) - 1) << r->nrow;
	for (unsigned k = 0; k < r->nrow; k++) {
		l->run[k] = r->extent[k];
		point_launch_expr(l, r->extent[k]);
		point_launch_expr(l, task_extent(b, k));
	}
	if (r->block)
		point_launch_expr(l, block_rows(b));
	for (unsigned k = 0; k < b->turns.n; k++) {
		point_launch_expr(l, b->turns.size[k]);
		if (k)
			point_launch_expr(l, b->turns.from[k]);
		point_launch_expr(l, row_count(b));
	}
	for (unsigned k = 0; k < r->nmember; k++) {
		RowMember *m = &r->member[k];
		if (m->stored)
			declare_stored(l, m);
		else
			point_declare_local(l, m->t);
	}
	for (unsigned k = 0; k < r->nmember; k++) {
		point_declare_exprs(l, &r->member[k].node);
		declare_steps(b, &r->member[k]);
		point_declare(l, r->member[k].position);
		point_declare(l, r->member[k].first);
		if (r->member[k].panel)
			point_bind_panel(l, r->member[k].t, r->member[k].panel_axis, r->member[k].npanel,
			                 r->lanes_by_row ? b->copies : 0);
	}
	for (unsigned k = 0; k < r->nmember; k++)
		for (unsigned a = 0; a < r->member[k].node.npar; a++)
			point_launch_expr(l, point_extent(l, r->member[k].t, a));
	rows_declare_tiles(b);
	if (b->kernel->plan.posts)
		rows_declare_posts(b, row_count(b), b->kernel->ntask);
	if (rows_scans_tiles(b))
		rows_declare_scans(b);
	rows_declare_early(b);
	rows_declare_wide(b);
	rows_declare_once(b);
	rows_declare_lists(b);
	if (b->kernel->plan.columns && r->scans)
		rows_declare_split(b);
}

/* Whether registers are short. Of columns they are. Where each lane of held rows has a number or an address of its own, which all
 * rows have in common, those would be held over them, in two registers each; and where several phases go through several
 * vectors each, what finds those would be held through all of them. Blocks of clusters have room for that, and for addresses. */
static bool
is_tight(const Graph *g, Arena *scratch, const Rows *r, const KernelPlan *plan)
{
	unsigned several = 0;
	if (!plan->threads || r->ntile || r->scans)
		return false;
	for (unsigned f = 0; f < r->nphase; f++)
		several += r->phase[f].lanes && r->phase[f].nloop > 1;
	bool addresses, numbers = apart_by_number(g, scratch, r, held_lane_axes(r), &addresses);
	bool found = plan->cluster ? numbers && !addresses : several > 1 || numbers || addresses;
	return plan->columns || (plan->held && found);
}

void
rows_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Point l;
	Rows *r = ARENA_NEW(scratch, Rows);
	RemarkId why = REMARK_NONE;
	const KernelPlan *plan = &kernel->plan;
	RowsFacts facts = {.stored = places->stored, .faulty = places->faulty, .streams = places->streams,
	                   .lanes = plan->lanes, .blocks = plan->threads > 0, .held = plan->held};
	if (facts.blocks)
		facts.lanes = ROWS_BLOCK_LANES;
	if (!rows_plan(g, scratch, &facts, plan->node, plan->nnode, (Template)plan->tmpl, r, &why))
		bug(g->arena, "rows: %%%u %s", plan->node[0], remark_info[why].text);
	RowsOnce *once = plan->once ? ARENA_NEW(scratch, RowsOnce) : NULL;
	if (once && !rows_once_plan(g, scratch, r, places->faulty, once))
		bug(g->arena, "rows: %%%u goes by more than once", plan->node[0]);
	if (plan->long_sums)
		long_sums_mark(g, r);
	for (unsigned k = 0; once && plan->long_sums && k < once->pass->nacc; k++)
		if (once->pass->acc[k].monoid == MON_SUM)
			once->term[k] = long_sums_term(g, once->term[k]);
	if (plan->flat)
		rows_make_flat(g, r);
	point_begin(&l, g, scratch, places, kernel);
	l.flat = plan->flat ? r->extent[r->nrow - 1] : 0;
	l.lanes = plan->lanes;
	l.unit = true;
	kernel->tir->tight = is_tight(g, scratch, r, plan);
	RowBuild *b = ARENA_NEW(scratch, RowBuild);
	*b = (RowBuild){.l = &l, .r = r, .kernel = kernel, .copies = plan->unroll, .once = once};
	if (plan->threads && !plan->posts)
		b->turns = block_turns(g, scratch, r, plan, row_count(b));
	kernel->ntask = task_count(b);
	b->few = are_divided(b);
	if (plan->threads)
		kernel->ntask = block_tasks(g, scratch, r, plan, kernel->ntask, &b->few);
	declare(b);
	kernel->grain = task_grain(g, scratch, plan, task_elements(b));
	run_tasks(b);
	if (plan->threads)
		point_say_same_memory(&l);
}
