/* kernel.h: kernels that apply one operation to every element of an array. */
#ifndef TEXO_TESTS_MATH_KERNEL_H
#define TEXO_TESTS_MATH_KERNEL_H

#include "tests/codegen/rig.h"

/* z[i] = op(x[i]) or op(x[i], y[i]) for i < n, n a scalar argument; lanes elements at a time (0: one),
 * the rest masked. The inputs have dtype `from`; they are cast to `arith`, the result to `to`. With
 * op NONE there are only the casts. Buffers: the inputs, then z. */
void kernel_map(Rig *r, Op op, DType from, DType arith, DType to, unsigned lanes);

/* r->k through the passes that code generation needs. */
void kernel_lower(Rig *r);
/* The same as in relaxed mode, for targets without SCALE and with it. */
void kernel_lower_near(Rig *r);
void kernel_lower_scaled(Rig *r);
void kernel_lower_pick(Rig *r);
void kernel_lower_pick_scaled(Rig *r);
/* The same for narrowed functions. */
void kernel_lower_narrow(Rig *r);
void kernel_lower_narrow_scaled(Rig *r);
void kernel_lower_narrow_ex2(Rig *r);
void kernel_lower_ex2(Rig *r); /* for the interpreter alone */

/* Says of exp and exp2 that their arguments are no more than 0. */
void kernel_mark_low(Rig *r);

/* 64 bits from a counter, evenly spread. */
uint64_t mix_bits(uint64_t n);

#endif
