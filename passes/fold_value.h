/* fold_value.h: one operation on constants. */
#ifndef TEXO_PASSES_FOLD_VALUE_H
#define TEXO_PASSES_FOLD_VALUE_H

#include "ir/tg.h"

/* The constant that the operation of type t gives on these constants, to the bit as every device
 * computes it (ir/README.md); 0 where it is not that exactly defined, or not known here. */
ExprId fold_value(Graph *g, Op op, DType t, const Expr *const *a, unsigned n);

#endif
