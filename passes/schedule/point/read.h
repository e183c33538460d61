/* read.h: reads of tensors, for expr.c alone. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_READ_H
#define TEXO_PASSES_SCHEDULE_POINT_READ_H

#include "passes/schedule/point/point.h"

/* The subscript of a READ along which its lanes lie in a row, the others being the same in all
 * lanes; -1 when there is none. */
int point_lane_subscript(Point *l, ExprId e);
/* A READ with its subscripts lowered; their words included. */
PointVal point_read(Point *l, ExprId e, const PointVal *sub, PointAt at);

#endif
