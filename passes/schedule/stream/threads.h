/* threads.h: the STREAM template for a GPU, by multiply-adds of a block's threads: threads.c. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_THREADS_H
#define TEXO_PASSES_SCHEDULE_STREAM_THREADS_H

#include "passes/schedule/stream/slots.h"

/* The plan's tiles, where a block can take the stream. */
bool stream_threads_size(const Graph *g, Arena *scratch, const Stream *s, KernelPlan *p);
void stream_threads_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);

/* --- for the files of this template --- */

enum {
	ST_ROWS = 64, ST_COLUMNS = 64, ST_TERMS = 16, /* of a tile, and terms of a score at a time */
	ST_THREADS = 128, ST_ACROSS = 16,             /* threads; those of them that share rows */
	ST_THREAD_ROWS = ST_ROWS / (ST_THREADS / ST_ACROSS), ST_THREAD_COLUMNS = ST_COLUMNS / ST_ACROSS,
	ST_PITCH = ST_ROWS + 4                        /* of rows in shared memory */
};

typedef struct {
	StreamSlots s;
	unsigned elements;             /* of a tile */
	ValId thread, lane, down, right; /* down: the thread's first row, in the tile; right: its place among those that share it */
	ValId panel, work;             /* views of shared memory: of factors; of weights and, behind them, values */
	ValId state[MAX_ACCS], some;   /* there too, for what is made of the state: by row */
	ValId column0, row_last;       /* of the task: its first column; the last row that it has */
	ValId sum[STREAM_MAX_SCORES][SLOTS_MAX]; /* scores of the tile, unfinished */
	ValId wide[MAX_ACCS][ST_THREAD_ROWS * ST_THREAD_COLUMNS];
} StreamThreads;

static inline ValId
st_int(StreamThreads *x, int64_t v)
{
	return tir_int(x->s.b.l.tir, DT_I64, v);
}
static inline ValId
st_op(StreamThreads *x, Op o, ValId a, ValId b)
{
	return tir_binary(x->s.b.l.tir, o, a, b);
}
static inline void
st_barrier(StreamThreads *x)
{
	tir_emit(x->s.b.l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
}

/* --- products (threads_tile.c) --- */
/* The scores of the tile that begins at b.first. */
void st_scores(StreamThreads *x);
/* The tile's columns, by the weights of the thread's slots. */
void st_columns(StreamThreads *x, unsigned acc);

/* --- what is made of the state, by the block (threads_finish.c) --- */
void st_finish(StreamThreads *x, ValId first_column);

#endif
