/* roles_tasks.c: how many tasks a launch has, and which of them a block takes (roles.c).
 *
 * Where data says which elements a row has, whoever wants a task's waits for memory, behind all that copies have on their way. So it is
 * asked ahead, of the next task: by the role that loads, as a warp, once slots are full; by those that fold before the last tile's
 * columns are there. What the loop carries is then the task itself. On an H200, 16384 tokens in documents of 2048, 16 heads of 128 of
 * bf16, us: 425 where one thread asked row after row, 335 by a warp, 328 with turns there and back, 318 asked ahead behind the first
 * tile, 308 behind as many as fill the slots. */
#include <string.h>

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

/* Blocks take a turn's tasks in their order and the next turn's in the other one: where data says what a row has, as the
 * documents of a text, tasks a turn apart often are at like places of some such, and the same block would have the long ones. */
static ValId
back_and_forth(StreamRoles *x, ValId task)
{
	TirKernel *k = x->s.b.l.tir;
	ValId of_turn, odd, turn = raster_divide(k, task, x->step, &of_turn), first = sr_op(x, OP_SUB, task, of_turn);
	raster_divide(k, turn, sr_int(x, 2), &odd);
	ValId last = sr_op(x, OP_SUB, sr_op(x, OP_MIN, x->step, sr_op(x, OP_SUB, x->hi, first)), sr_int(x, 1));
	ValId back = sr_op(x, OP_ADD, first, sr_op(x, OP_SUB, last, of_turn));
	return tir_select(k, sr_op(x, OP_EQ, odd, sr_int(x, 1)), back, task);
}

/* The thread's rows; with their ranges. */
static void
enter_rows(StreamRoles *x, bool ranges)
{
	StreamBuild *b = &x->s.b;
	ValId rest, row = raster_divide(b->l.tir, x->lane, sr_int(x, 4), &rest);
	row = sr_op(x, OP_ADD, row, sr_op(x, OP_MUL, x->warp, sr_int(x, 16)));
	row = sr_op(x, OP_ADD, sr_op(x, OP_ADD, b->row0, sr_op(x, OP_MUL, x->group, sr_int(x, TIR_MMA_ROWS))), row);
	for (unsigned v = 0; v < b->vectors; v++) {
		b->row_of[v] = sr_op(x, OP_MIN, sr_op(x, OP_ADD, row, sr_int(x, 8 * v)), x->row_last);
		if (!ranges)
			continue;
		uint32_t mark = point_mark(&b->l);
		stream_at_vector(b, v);
		b->lo[v] = b->s->ragged ? point_value(&b->l, b->s->lo, true).re : 0;
		b->hi[v] = b->s->ragged ? point_value(&b->l, b->s->hi, true).re : 0;
		point_release(&b->l, mark);
	}
}

static void
open_task(StreamRoles *x, ValId task)
{
	StreamBuild *b = &x->s.b;
	task = x->asks ? back_and_forth(x, task) : task;
	if (goes_by_raster(x))
		slots_open_raster(b, task, x->rows);
	else
		slots_open_task(b, task, x->rows, one_strip(b));
	x->row_last = sr_op(x, OP_SUB, b->row1, sr_int(x, 1));
	if (x->ahead && x->folds)
		enter_rows(x, true);
	slots_hull(b, b->row0, x->row_last, x->rows, x->lane, &b->begin, &b->end);
	if (x->ahead && x->folds)
		slots_core(b, b->row0, x->row_last, x->rows, x->lane, &x->core[0], &x->core[1]);
}

/* What a task is, and has: how many values. */
static unsigned
of_task(StreamRoles *x, ValId **at)
{
	StreamBuild *b = &x->s.b;
	unsigned n = 0;
	for (unsigned a = 0; a < b->s->c.npar; a++)
		if (a != b->s->lane && b->s->base >> a & 1)
			at[n++] = &b->l.axis[a];
	ValId *own[] = {&b->row0, &b->row1, &b->begin, &b->end};
	for (unsigned i = 0; i < sizeof own / sizeof *own; i++)
		at[n++] = own[i];
	for (unsigned v = 0; x->folds && b->s->ragged && v < b->vectors; v++) {
		at[n++] = &b->lo[v];
		at[n++] = &b->hi[v];
	}
	for (unsigned i = 0; x->folds && x->core[0] && i < 2; i++)
		at[n++] = &x->core[i];
	return n;
}

static unsigned
copy_task(StreamRoles *x, ValId *v, bool back)
{
	ValId *at[SR_MOST_OF_TASK];
	unsigned n = of_task(x, at);
	for (unsigned i = 0; i < n; i++) {
		if (back)
			*at[i] = v[i];
		else
			v[i] = *at[i];
	}
	return n;
}

/* The first one, of a block that has any. */
static void
find_first(StreamRoles *x, ValId lo)
{
	Point *l = &x->s.b.l;
	ValId none[SR_MOST_OF_TASK];
	tir_if(l->tir, sr_op(x, OP_LT, lo, x->hi));
	uint32_t mark = point_mark(l);
	open_task(x, lo);
	x->nnext = copy_task(x, x->next, false);
	point_release(l, mark);
	tir_else(l->tir, x->next, x->nnext);
	for (unsigned i = 0; i < x->nnext; i++)
		none[i] = sr_int(x, 0);
	tir_end_if(l->tir, none, x->nnext);
	memcpy(x->next, none, sizeof none);
}

void
sr_open_tasks(StreamRoles *x, ValId *fills, unsigned n, bool folds)
{
	TirKernel *k = x->s.b.l.tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), carried[2 + SR_MOST_OF_TASK];
	x->hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	x->step = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0);
	x->folds = folds;
	x->nnext = 0;
	if (x->ahead)
		find_first(x, lo);
	for (unsigned i = 0; i < n + x->nnext; i++)
		carried[i] = i < n ? sr_int(x, 0) : x->next[i - n];
	x->task = tir_for(k, lo, x->hi, x->step, carried, n + x->nnext);
	memcpy(fills, carried, n * sizeof *fills);
	if (x->ahead) {
		copy_task(x, carried + n, true);
		x->row_last = sr_op(x, OP_SUB, x->s.b.row1, sr_int(x, 1));
	} else
		open_task(x, x->task);
	if (folds)
		enter_rows(x, !x->ahead);
}

/* Who has none looks at the last of all again. */
void
sr_find_next(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	ValId own[SR_MOST_OF_TASK], row_last = x->row_last, row_of[STREAM_MAX_VECTORS];
	if (!x->ahead)
		return;
	PointHidden hidden = point_hide(&b->l);
	memcpy(row_of, b->row_of, sizeof row_of);
	copy_task(x, own, false);
	ValId task = sr_op(x, OP_MIN, sr_op(x, OP_ADD, x->task, x->step), sr_op(x, OP_SUB, x->hi, sr_int(x, 1)));
	open_task(x, task);
	copy_task(x, x->next, false);
	copy_task(x, own, true);
	memcpy(b->row_of, row_of, sizeof row_of);
	x->row_last = row_last;
	point_show(&b->l, &hidden);
}

void
sr_close_tasks(StreamRoles *x, ValId *fills, unsigned n)
{
	ValId carried[2 + SR_MOST_OF_TASK];
	for (unsigned i = 0; i < n + x->nnext; i++)
		carried[i] = i < n ? fills[i] : x->next[i - n];
	tir_end_for(x->s.b.l.tir, carried, n + x->nnext);
}

void
sr_core(StreamRoles *x, ValId *begin, ValId *end)
{
	StreamBuild *b = &x->s.b;
	if (!x->ahead) {
		slots_core(b, b->row0, x->row_last, x->rows, x->lane, begin, end);
		return;
	}
	*begin = x->core[0];
	*end = x->core[1];
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
