/* interval.h: where the values of an expression lie, NaN aside; for passes/fuse and passes/narrow_math.c. */
#ifndef TEXO_PASSES_FUSE_INTERVAL_H
#define TEXO_PASSES_FUSE_INTERVAL_H

#include "ir/tg.h"

typedef struct {
	double lo, hi;
} Interval;

Interval interval_of(const Graph *g, ExprId e);
/* Whether `read` is of a sum of powers of the differences between some values and the greatest of them: then it is from 1 to as many as
 * there are, 0 where there is none, or no number. */
bool is_sum_of_powers(const Graph *g, ExprId read);
/* How e changes as `of` grows, all else fixed: 1 not down, -1 not up, 0 not at all, 2 unknown. */
int direction_of(const Graph *g, ExprId e, ExprId of);

#endif
