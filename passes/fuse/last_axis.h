/* last_axis.h: copies of tensors that have another of their axes last, for passes that read along it: last_axis.c. */
#ifndef TEXO_PASSES_FUSE_LAST_AXIS_H
#define TEXO_PASSES_FUSE_LAST_AXIS_H

#include "ir/tg.h"

typedef struct {
	TensorId from, to;
	unsigned last; /* the axis of `from` that `to` has last */
} LastAxisCopy;
typedef VEC(LastAxisCopy) LastAxisCopies;

/* Where axis `at` is when axis `last` of the first `end` has gone behind the others of them. */
unsigned last_axis_place(unsigned at, unsigned last, unsigned end);
/* A read as one of its tensor's copy with axis `last` last: of one of these, or of a new node, behind all others. */
ExprId last_axis_read(Graph *g, Arena *scratch, LastAxisCopies *copies, ExprId read, unsigned last);

#endif
