/* threads_finish.c: what a block makes of the state of its rows (threads.c). It goes through shared memory, so
 * that a thread can take any element of it: then there is one piece of code for all elements, and they are stored along
 * memory. */
#include <string.h>

#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/threads.h"

#include "ir/bugs.h"

/* --- to shared memory --- */

static void
stage_state(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	tir_if(k, st_op(x, OP_EQ, x->right, st_int(x, 0)));
	for (unsigned r = 0; r < ST_THREAD_ROWS; r++) {
		ValId at = st_op(x, OP_ADD, x->down, st_int(x, r));
		for (unsigned n = 0; n < b->s->pass->nacc; n++)
			if (!b->s->acc[n].wide)
				tir_store(k, x->state[n], b->run[n][r], &at, 0, 0);
		if (b->some[r])
			tir_store(k, x->some, b->some[r], &at, 0, 0);
	}
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* The wide accumulators of so many rows, from this one of the tile on: those of some threads. */
static void
stage_wide(StreamThreads *x, unsigned first, unsigned rows)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId in = st_op(x, OP_AND, st_op(x, OP_LE, st_int(x, first), x->down), st_op(x, OP_LT, x->down, st_int(x, first + rows)));
	ValId column = st_op(x, OP_MUL, x->right, st_int(x, ST_THREAD_COLUMNS));
	unsigned nth = 0;
	tir_if(k, in);
	for (unsigned n = 0; n < b->s->pass->nacc; n++) {
		for (unsigned i = 0; b->s->acc[n].wide && i < ST_THREAD_ROWS * ST_THREAD_COLUMNS; i++) {
			ValId row = st_op(x, OP_ADD, x->down, st_int(x, (int64_t)(i / ST_THREAD_COLUMNS) - first + nth * rows));
			ValId at = st_op(x, OP_ADD, st_op(x, OP_MUL, row, st_int(x, ST_COLUMNS)), st_op(x, OP_ADD, column, st_int(x, i % ST_THREAD_COLUMNS)));
			tir_store(k, x->work, x->wide[n][i], &at, 0, 0);
		}
		nth += b->s->acc[n].wide;
	}
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- from there --- */

/* The state of a row of the tile becomes that of the point. */
static void
enter_row(StreamThreads *x, ValId row, bool asked)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	b->row_of[0] = st_op(x, OP_ADD, b->row0, row);
	stream_at_vector(b, 0);
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		if (!b->s->acc[n].wide)
			b->run[n][0] = tir_load(k, x->state[n], &row, 0, 0, 0);
	b->some[0] = asked ? tir_load(k, x->some, &row, 0, 0, 0) : 0;
}

/* What is of a row, by a thread each, of the tasks that have the first columns. */
static void
finish_narrow(StreamThreads *x, bool asked, ValId first_column)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId row = st_op(x, OP_ADD, b->row0, x->thread), cond = st_op(x, OP_LE, row, x->row_last);
	cond = st_op(x, OP_AND, cond, st_op(x, OP_LT, x->thread, st_int(x, ST_ROWS)));
	tir_if(k, st_op(x, OP_AND, cond, st_op(x, OP_EQ, first_column, st_int(x, 0))));
	uint32_t mark = point_mark(&b->l);
	enter_row(x, x->thread, asked);
	slots_store_outs(b, false, 0);
	point_release(&b->l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

static void
finish_wide(StreamThreads *x, unsigned first, unsigned rows, bool asked)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId column, i = tir_for(k, st_int(x, 0), st_int(x, (int64_t)rows * ST_COLUMNS), st_int(x, ST_THREADS), NULL, 0);
	i = st_op(x, OP_ADD, i, x->thread);
	ValId down = raster_divide(k, i, st_int(x, ST_COLUMNS), &column), row = st_op(x, OP_ADD, down, st_int(x, first));
	ValId there = st_op(x, OP_LE, st_op(x, OP_ADD, b->row0, row), x->row_last);
	column = st_op(x, OP_ADD, x->column0, column);
	there = st_op(x, OP_AND, there, st_op(x, OP_LT, column, point_launch_expr(&b->l, b->columns)));
	tir_if(k, there);
	uint32_t mark = point_mark(&b->l);
	unsigned nth = 0;
	enter_row(x, row, asked);
	b->l.axis[b->s->wide] = column;
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		if (b->s->acc[n].wide) {
			ValId at = st_op(x, OP_ADD, i, st_int(x, (int64_t)nth++ * rows * ST_COLUMNS));
			b->column[n] = slots_wide(b, n, tir_load(k, x->work, &at, 0, 0, 0));
		}
	slots_store_outs(b, true, column);
	memset(b->column, 0, sizeof b->column);
	point_release(&b->l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

void
st_finish(StreamThreads *x, ValId first_column)
{
	StreamBuild *b = &x->s.b;
	bool asked = b->some[0] != 0;
	unsigned nwide = 0, rows = ST_ROWS;
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		nwide += b->s->acc[n].wide;
	while (nwide * rows * ST_COLUMNS > x->elements * (ST_PITCH + ST_COLUMNS))
		rows /= 2;
	stage_state(x);
	for (unsigned first = 0; first < ST_ROWS; first += rows) {
		if (slots_stores(b, true))
			stage_wide(x, first, rows);
		st_barrier(x);
		if (!first && slots_stores(b, false))
			finish_narrow(x, asked, first_column);
		if (slots_stores(b, true))
			finish_wide(x, first, rows, asked);
		st_barrier(x);
		if (!slots_stores(b, true))
			break;
	}
}
