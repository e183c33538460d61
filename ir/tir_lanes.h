/* tir_lanes.h: the operations of CLASS_MAP on slots (ir/tir_slot.h), lane by lane: what the
 * interpreter calls. */
#ifndef TEXO_IR_TIR_LANES_H
#define TEXO_IR_TIR_LANES_H

#include "ir/op.h"

/* d[l] = op(a[l], b[l], c[l]) for l < n; operands the operation does not have are not touched. */
typedef void LaneFn(uint64_t *d, const uint64_t *a, const uint64_t *b, const uint64_t *c, unsigned n);

/* The operation on operands of a type; NULL where it is not defined. CAST, BITCAST, SPLAT, LANE and
 * SELECT, which work on any type, are not here. */
LaneFn *lane_function(Op op, DType operand);

/* An element of one group of DOT: f32 slot c plus a[p] by b[p * step] for p < n; and where it is chained. */
uint64_t lane_dot(uint64_t c, const uint32_t *a, const uint32_t *b, unsigned step, unsigned n);
uint64_t lane_dot_chained(uint64_t c, const uint32_t *a, const uint32_t *b, unsigned step, unsigned n);

#endif
