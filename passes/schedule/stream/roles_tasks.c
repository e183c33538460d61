/* roles_tasks.c: how many tasks a launch has, and which of them a block takes (roles.c). */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/stream/roles.h"

enum { RAGGED_BLOCKS = 16 };

/* --- the launch --- */

static ExprId
is_in(Graph *g, ExprId e, int64_t least, int64_t most)
{
	ExprId one = expr_int(g, DT_I64, 1);
	return expr_binary(g, OP_MUL, raster_reaches(g, e, least), expr_binary(g, OP_SUB, one, raster_reaches(g, e, most + 1)));
}

static ExprId
one_strip(StreamBuild *b)
{
	return expr_int(b->l.g, DT_I64, 1);
}

/* Three groups fold a tile in 5/6 of the time that two take for as many rows (measured on an H200), and leave more of it unused: rows
 * that the last task lacks and, where rows have different elements, those that others of the task alone have. So they
 * take what leaves up to a ninth: of such rows, in sixteen blocks or more. */
static ExprId
rows_fill_tasks(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	Graph *g = b->l.g;
	ExprId one = expr_int(g, DT_I64, 1), blocks = slots_blocks(b, SR_ROWS);
	ExprId few = expr_binary(g, OP_MUL, blocks, expr_int(g, DT_I64, SR_ROWS * 9));
	ExprId more = expr_binary(g, OP_MUL, slots_blocks(b, x->rows), expr_int(g, DT_I64, x->rows * 8));
	ExprId fill = expr_binary(g, OP_MIN, expr_binary(g, OP_IDIV, few, expr_binary(g, OP_MAX, more, one)), one);
	return b->s->ragged ? expr_binary(g, OP_MUL, fill, raster_reaches(g, blocks, RAGGED_BLOCKS)) : fill;
}

/* One group takes what two would leave one of without rows. */
static ExprId
rows_are_few(StreamRoles *x)
{
	Graph *g = x->s.b.l.g;
	ExprId one = expr_int(g, DT_I64, 1), blocks = slots_blocks(&x->s.b, x->rows);
	return expr_binary(g, OP_IDIV, slots_blocks(&x->s.b, SR_ROWS), expr_binary(g, OP_MAX, blocks, one));
}

/* The axes that its elements do not have. */
static uint32_t
axes_without(StreamRoles *x, const StreamElement *e)
{
	uint32_t axes = 0;
	for (unsigned n = 0; n < e->rank; n++)
		axes |= expr_axes(x->s.b.l.g, x->s.b.l.scratch, e->sub[n]);
	return ~axes;
}

/* What blocks read and don't keep are queries that come piece by piece, or a tensor of rows and elements that comes so. Where later
 * rows have more elements, blocks are in an order of their own. */
static bool
goes_by_raster(StreamRoles *x)
{
	return x->pieces || (x->s.b.shared && !slots_grow(&x->s.b));
}

void
sr_bind_tasks(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	if (x->pieces)
		b->shared = axes_without(x, &x->of[OF_QUERY]);
	else if (b->plan->beside)
		b->shared = axes_without(x, &x->of[OF_BESIDE]);
	b->shared &= b->s->base;
	slots_bind_tasks(b, x->rows, one_strip(b));
	if (goes_by_raster(x))
		slots_bind_raster(b);
}

void
sr_count_tasks(StreamRoles *x, Kernel *kernel)
{
	StreamBuild *b = &x->s.b;
	Graph *g = b->l.g;
	ExprId suits = is_in(g, b->terms[0], x->s.least, x->s.most);
	ExprId n = expr_binary(g, OP_MUL, slots_task_count(b, x->rows, one_strip(b)), suits);
	if (x->rows > SR_ROWS)
		n = expr_binary(g, OP_MUL, n, rows_fill_tasks(x));
	if (x->rows < SR_ROWS)
		n = expr_binary(g, OP_MUL, n, rows_are_few(x));
	if (b->plan->long_sums)
		n = expr_binary(g, OP_MUL, n, raster_reaches(g, stream_least_elements(b), LONG_SUM_TERMS));
	const StreamElement *key = &x->of[OF_KEY];
	if (b->apart[0] || b->apart[1]) {
		ExprId most = expr_binary(g, OP_MAX, b->s->c.extent[b->s->lane], g->tensor.at[key->tensor].extent[key->own]);
		n = expr_binary(g, OP_MUL, n, expr_binary(g, OP_SUB, expr_int(g, DT_I64, 1), raster_reaches(g, most, SR_MOST_APART)));
	}
	n = expr_binary(g, OP_MUL, n, raster_reaches(g, g->tensor.at[key->tensor].extent[key->own], 1));
	kernel->ntask = x->columns ? expr_binary(g, OP_MUL, n, is_in(g, b->columns, 1, x->columns)) : n;
}

/* --- a task --- */

static void
open_task(StreamRoles *x, ValId task)
{
	StreamBuild *b = &x->s.b;
	if (goes_by_raster(x))
		slots_open_raster(b, task, x->rows);
	else
		slots_open_task(b, task, x->rows, one_strip(b));
	x->row_last = sr_op(x, OP_SUB, b->row1, sr_int(x, 1));
	slots_hull(b, b->row0, x->row_last, x->rows, x->lane, &b->begin, &b->end);
}

/* Blocks take a turn's tasks in their order and the next turn's in the other one: where data says what a row has, as the
 * documents of a text, tasks a turn apart often are at like places of some such, and the same block would have the long ones. */
static ValId
back_and_forth(StreamRoles *x, ValId task, ValId hi, ValId step)
{
	TirKernel *k = x->s.b.l.tir;
	ValId of_turn, odd, turn = raster_divide(k, task, step, &of_turn), first = sr_op(x, OP_SUB, task, of_turn);
	raster_divide(k, turn, sr_int(x, 2), &odd);
	ValId last = sr_op(x, OP_SUB, sr_op(x, OP_MIN, step, sr_op(x, OP_SUB, hi, first)), sr_int(x, 1));
	ValId back = sr_op(x, OP_ADD, first, sr_op(x, OP_SUB, last, of_turn));
	return tir_select(k, sr_op(x, OP_EQ, odd, sr_int(x, 1)), back, task);
}

void
sr_open_tasks(StreamRoles *x, ValId *fills, unsigned n)
{
	TirKernel *k = x->s.b.l.tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId step = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0);
	for (unsigned i = 0; i < n; i++)
		fills[i] = sr_int(x, 0);
	ValId task = tir_for(k, lo, hi, step, fills, n);
	open_task(x, slots_ask_all(&x->s.b) ? back_and_forth(x, task, hi, step) : task);
}

/* Where the last tile of the task begins, if it has one: tiles begin where its elements do. */
ValId
sr_last_tile(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	ValId end = sr_op(x, OP_SUB, b->end, sr_int(x, 1)), rest;
	raster_divide(b->l.tir, sr_op(x, OP_SUB, end, b->begin), sr_int(x, x->elements), &rest);
	return sr_op(x, OP_SUB, end, rest);
}
