/* retarget.h: reads sent to other tensors; for passes that replace tensors. */
#ifndef TEXO_PASSES_RETARGET_H
#define TEXO_PASSES_RETARGET_H

#include "ir/tg.h"

/* Every read of t in e becomes one of to[t]. */
ExprId expr_retarget(Graph *g, ExprId e, const TensorId *to);
/* The same in all expressions of a node. */
void node_retarget(Graph *g, uint32_t node, const TensorId *to);

#endif
