/* quads.h: rows of a stream whose sums the lanes of warps have as matrix instructions leave them: four lanes, a quad, have a row, and of
 * each block of 8 columns two each. A lane's rows are QUADS_STEP apart. */
#ifndef TEXO_PASSES_SCHEDULE_STREAM_QUADS_H
#define TEXO_PASSES_SCHEDULE_STREAM_QUADS_H

#include "passes/schedule/stream/slots.h"

enum { QUADS_BLOCK = 8, QUADS_STEP = 8, QUADS_PITCH = 40, QUADS_PANEL = 32 };

typedef struct StreamQuads {
	StreamSlots *s;            /* b.vectors: a lane's rows */
	unsigned rows, columns;    /* of a block; of its columns, which are so many */
	unsigned acc;              /* the wide accumulator, if there is one */
	unsigned side;             /* columns that a thread stores at once */
	ValId lane;                /* the thread's number in its warp */
	ValId warp_row;            /* the warp's first row, in the block */
	ValId row_last;            /* of the task */
	int64_t barrier;           /* BARRIER's imm, of those who share a panel */
	ValId (*sum)(struct StreamQuads *x, unsigned nth, unsigned column); /* of the nth row of the lane's, of its columns: a quarter of all */
	ValId staged, state[MAX_ACCS], some; /* views of shared memory: (row, column) of a panel; by row */
} StreamQuads;

static inline ValId
quads_int(const StreamQuads *x, int64_t v)
{
	return tir_int(x->s->b.l.tir, DT_I64, v);
}
static inline ValId
quads_op(const StreamQuads *x, Op o, ValId a, ValId b)
{
	return tir_binary(x->s->b.l.tir, o, a, b);
}
/* Rows of a warp. */
static inline unsigned
quads_rows(const StreamQuads *x)
{
	return QUADS_STEP * x->s->b.vectors;
}

/* --- what is made of the state of rows (quads_finish.c) --- */
/* Declares what that takes of shared memory; `staged` may have a place already. */
void quads_bind_shared(StreamQuads *x);
void quads_finish(StreamQuads *x);
/* --- by the lanes that have it in registers (quads_direct.c) --- */
/* Whether what is of rows and columns is stored so. */
bool quads_are_direct(const StreamQuads *x);
/* What is of rows, always; and, if they are, what is of rows and columns. */
void quads_finish_direct(StreamQuads *x);

#endif
