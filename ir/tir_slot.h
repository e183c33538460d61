/* tir_slot.h: numbers as the tile IR's interpreter holds them, and their conversion.
 *
 * A slot is 64 bits: a signed integer sign-extended, an unsigned one and bool zero-extended, f64 and
 * f32 by their bits, a narrower float by its code. Equal values of a type have equal slots, but for
 * NaNs. */
#ifndef TEXO_IR_TIR_SLOT_H
#define TEXO_IR_TIR_SLOT_H

#include "ir/dtype.h"

/* Wraps to the width of an integer type; bool: v != 0. */
int64_t slot_wrap(DType t, int64_t v);
/* A float slot's value, exactly; and the slot nearest to v, ties to even (LANGUAGE.md's casts). */
double slot_decode(DType t, uint64_t slot);
uint64_t slot_encode(DType t, double v);
/* CAST: any type but c64 to any. Rounds once. */
uint64_t slot_cast(DType to, DType from, uint64_t slot);
void slot_cast_all(DType to, DType from, const uint64_t *slot, uint64_t *out, unsigned n);

/* Element n of packed storage; 4-bit types take the low nibble first, bool any byte but 0 as true. */
uint64_t slot_load(DType t, const void *packed, int64_t n);
void slot_store(DType t, void *packed, int64_t n, uint64_t slot);

#endif
