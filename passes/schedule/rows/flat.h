/* flat.h: pointwise rows whose axes can be one: flat.c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_FLAT_H
#define TEXO_PASSES_SCHEDULE_ROWS_FLAT_H

#include "passes/schedule/rows/rows.h"

/* `faulty`: by TensorId. */
bool rows_may_be_flat(const Graph *g, Arena *scratch, const Rows *r, const bool *faulty);
/* How many elements there are. */
ExprId rows_flat_extent(Graph *g, const Rows *r);
/* All axes but the last have one value. */
void rows_make_flat(Graph *g, Rows *r);

#endif
