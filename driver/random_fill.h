/* random_fill.h: the data of inputs that come from no file.
 *
 * The generator: draw k of parameter NAME with seed S is
 *     mix(mix(S ^ fnv1a64(NAME)) + (k + 1) * 0x9e3779b97f4a7c15),
 * mix being the finaliser of splitmix64. Element n takes draw n (complex and normal: draws 2n and
 * 2n + 1), whatever the shape. With u the top 53 bits of a draw over 2^53:
 *     floats           2u - 1, rounded to the type (e8m0: a power of two from 2^-3 to 2^3)
 *     scalar floats    u, so that rates and epsilons are not negative
 *     normal           sqrt(-2 log(1 - u)) cos(2 pi v)
 *     bool             the top bit
 *     integers         lo + floor(u (hi - lo)) of their ValueRange; cut points are drawn so, then
 *                      sorted along their axis, the first set to lo and the last to hi - 1 */
#ifndef TEXO_DRIVER_RANDOM_FILL_H
#define TEXO_DRIVER_RANDOM_FILL_H

#include "driver/input_spec.h"
#include "driver/subscript_range.h"

/* Fills packed (zeroed) storage of count elements of shape[0..rank). */
void random_fill(const InputSpec *spec, DType t, unsigned rank, const int64_t *shape, int64_t count,
                 const ValueRange *range, void *packed);

#endif
