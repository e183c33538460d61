/* indices.h: the indices of a contraction's tiles: of several axes each, counted through as if they were one. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_INDICES_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_INDICES_H

#include "passes/schedule/contract/contract.h"

typedef struct {
	unsigned naxis;
	uint8_t axis[TG_MAX_AXES];                      /* of the node, outermost first */
	ExprId count;                                   /* how many there are */
	ExprId inner;                                   /* of the innermost axis */
	ValId extent[TG_MAX_AXES], from[TG_MAX_AXES], all; /* from: 0 where the first index is 0 */
} Indices;

/* Whether so many indices of the node's axes may be at least `least`: they are, or are not known. */
bool indices_may_reach(const Graph *g, const Node *n, uint32_t axes, int64_t least);
/* Those of the node entered, which is a product of these factors. */
void indices_bind(Point *l, const Factors *f, Indices *batch, Indices *rows, Indices *columns, Indices *terms);
/* Sets the axes to index i, which is below 2^32. */
void indices_at(Point *l, const Indices *s, ValId i);

#endif
