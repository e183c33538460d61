/* retarget.h: reads sent to other tensors; for passes that replace tensors, or add nodes. */
#ifndef TEXO_PASSES_RETARGET_H
#define TEXO_PASSES_RETARGET_H

#include "ir/tg.h"

/* Every read of t in e becomes one of to[t]. */
ExprId expr_retarget(Graph *g, ExprId e, const TensorId *to);
/* The same in all expressions of a node. */
void node_retarget(Graph *g, uint32_t node, const TensorId *to);
/* e, of node n, as an element of a pointwise node over the axes that e has, each from 0 on: of a new one behind all others, or
 * of one from index `first` on. */
ExprId expr_apart(Graph *g, Arena *scratch, const Node *n, ExprId e, uint32_t first, bool *fresh);
/* Puts the nodes behind the first nnode, which were added, before those that read them: the k-th of them before the
 * owner[k]-th of the first. Tensors get other numbers. */
void nodes_in_order(Graph *g, Arena *scratch, uint32_t nnode, const uint32_t *owner, uint32_t nowner);

#endif
