/* convert_emit.h: what a thread does of a conversion between register layouts (ir/convert.h): the steps of a plan as TIR, of
 * one whose elements stay in their warp, which has a scratch of its own.
 *
 * A lane's offset is a sum, by xor, of what the bits of its number add. Whatever an entry adds to bits that lanes do not reach is
 * added behind that, so that accesses have it in themselves; what it changes among the others makes another place, of which
 * entries have few. */
#ifndef TEXO_PASSES_SCHEDULE_CONVERT_EMIT_H
#define TEXO_PASSES_SCHEDULE_CONVERT_EMIT_H

#include "ir/convert.h"
#include "ir/tir.h"

typedef struct {
	TirKernel *k;
	const ConvertStep *step;
	ValId scratch, warp; /* a view by warp and offset; which warp: i64 */
	ValId own;           /* u32: what the lane adds to an offset, */
	uint32_t reach;      /* and bits that lanes do */
	unsigned n;
	uint32_t *bits;      /* which of those an entry changes: */
	ValId *from;         /* i64: where the lane is then */
} ConvertPlace;

/* Of a step that moves elements to the scratch or from it; lane: i64. */
ConvertPlace convert_place(TirKernel *k, Arena *a, const ConvertStep *step, ValId scratch, ValId warp, ValId lane);
/* Entry e of a STORE, or of a STORE_MATRIX of four at once, of the plan's registers. */
void convert_put(const ConvertPlace *p, unsigned e, const ValId *reg);
/* Entry e of a LOAD: a vector. Of one whose number is known as the code runs: i64. */
ValId convert_take(const ConvertPlace *p, unsigned e);
ValId convert_take_any(const ConvertPlace *p, ValId e);

/* All of a plan without memory, of 32-bit elements, whose shuffles are between lanes that differ in bits that are known: from the
 * source's registers to the result's. */
void convert_in_registers(TirKernel *k, Arena *a, const ConvertPlan *p, ValId lane, const ValId *from, ValId *to);

#endif
