/* differentiate.h: derivatives of polynomials, inside passes/fuse only. */
#ifndef TEXO_PASSES_FUSE_DIFFERENTIATE_H
#define TEXO_PASSES_FUSE_DIFFERENTIATE_H

#include "passes/fuse/product.h"

/* The derivative of a sum of closed products by the subexpression t, the other parts of which are taken
 * not to change; false where some part that holds t is no polynomial in it. */
bool sum_derivative(Algebra *a, const Sum *s, ExprId t, Sum *out);
/* A product with its closed factors, and whether with its number. */
ExprId closed_expr(const Algebra *a, const Product *p);

#endif
