/* interval.h: where the values of an expression lie, NaN aside; for passes/fuse and passes/narrow_math.c. */
#ifndef TEXO_PASSES_FUSE_INTERVAL_H
#define TEXO_PASSES_FUSE_INTERVAL_H

#include "ir/tg.h"

typedef struct {
	double lo, hi;
} Interval;

Interval interval_of(const Graph *g, ExprId e);
/* How e changes as `of` grows, all else fixed: 1 not down, -1 not up, 0 not at all, 2 unknown. */
int direction_of(const Graph *g, ExprId e, ExprId of);

#endif
