/* points.h: the inputs at which the functions are measured. Point i does not depend on how many there
 * are, so what a short run sees, a long one sees too. */
#ifndef TEXO_TESTS_MATH_POINTS_H
#define TEXO_TESTS_MATH_POINTS_H

#include <stdint.h>

#include "ir/op.h"

/* Writes inputs first .. first + n - 1 of type t; y only for operations of two operands. Of f16 and
 * bf16 unary operations, point i is code i. Of f32 and f64, every other point is spread evenly over
 * all bit patterns (so over all exponents), the rest over 2^-14 <= |x| < 2^10. Two operands: half of
 * the first ones lie within [0.7, 1.5]; the second is chosen so that |x|^y spreads evenly over all
 * exponents of results. */
void points(Op op, DType t, uint64_t first, uint64_t n, void *x, void *y);

#endif
