/* subscript_range.h: which values of an integer input make sense, from how the graph uses it. */
#ifndef TEXO_DRIVER_SUBSCRIPT_RANGE_H
#define TEXO_DRIVER_SUBSCRIPT_RANGE_H

#include "ir/launch_expr.h"

typedef struct {
	int64_t lo, hi;    /* lo <= value < hi */
	bool cuts;         /* used as off[b]..off[b+1]: ascending along cut_axis, from 0 to hi - 1 */
	unsigned cut_axis;
} ValueRange;

/* For the integer parameter t, with every dim known in env: values that keep each subscript it
 * occurs in inside its axis as far as intervals show; else, where it is compared with an index, the
 * index's range; else a small range of the type. */
ValueRange subscript_range(const LaunchEnv *env, Arena *scratch, TensorId t);

#endif
