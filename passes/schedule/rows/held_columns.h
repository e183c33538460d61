/* held_columns.h: folds of columns, or of what is streamed, that were to be done in parts, and what reads them, as one kernel:
 * held_columns.c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_HELD_COLUMNS_H
#define TEXO_PASSES_SCHEDULE_ROWS_HELD_COLUMNS_H

#include "passes/schedule/rows/blocks.h"
#include "passes/schedule/stream/stream.h"

typedef struct {
	KernelPlan plan;
	BlockShapes shapes;
	Places places;  /* where its nodes are one kernel's */
	Stream *stream; /* of what is streamed; NULL: of columns */
	ExprId parts;   /* then: how many there are, of which one is no gain */
	uint32_t nfold; /* of its nodes: folds that are in parts, and what they are in the graph now, or are not */
	Node fold[KP_MAX_NODES];
} HeldColumns;

/* How many units, from this place in the launch order on, a kernel that holds columns, or streams, can do as well; 0: none. unit[t]: the
 * place of node t's; there are `units_there` of them. */
unsigned columns_find(Graph *g, PassCtx *cx, const Places *places, const uint32_t *unit, uint32_t units_there, uint32_t place,
                      HeldColumns *out);
/* Makes the folds whole in the graph, or, again, what they were. */
void columns_swap(Graph *g, HeldColumns *c);

#endif
