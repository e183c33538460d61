/* vary.h: the numbers of a kernel's expressions, and how each varies along the lane axis. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_VARY_H
#define TEXO_PASSES_SCHEDULE_POINT_VARY_H

#include "passes/schedule/point/point.h"

enum {
	VARY_NOT,  /* the same in all lanes */
	VARY_UNIT, /* lane l has the value of lane 0 plus l, or plus its column */
	VARY_ROWS, /* the same in all columns of a row of lanes */
	VARY_ANY
};

/* False when e had a number already; its operands must have one. */
bool number_add(Point *l, ExprId e);
uint32_t number_of(Point *l, ExprId e); /* a bug when it has none */

#endif
