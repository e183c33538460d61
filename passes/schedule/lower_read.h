/* lower_read.h: reads of tensors, for lower_expr.c alone. */
#ifndef TEXO_PASSES_SCHEDULE_LOWER_READ_H
#define TEXO_PASSES_SCHEDULE_LOWER_READ_H

#include "passes/schedule/lower.h"

/* The subscript of a READ along which its lanes lie in a row, the others being the same in all
 * lanes; -1 when there is none. */
int lower_lane_subscript(Lower *l, ExprId e);
/* A READ with its subscripts lowered; their words included. */
LowVal lower_read(Lower *l, ExprId e, const LowVal *sub, LowerAt at);

#endif
