/* tile.h: the passes over the tile IR. Each takes a verified kernel and returns a new one in the
 * arena, or the same one when there is nothing to do, with the same buffers, scalars and meaning.
 * tir_interpret of the result equals that of the argument to the bit, but for tile_contract, and for
 * tile_expand_near and tile_expand_math, which give the transcendentals their meaning. Passes run in the order below. */
#ifndef TEXO_PASSES_TILE_TILE_H
#define TEXO_PASSES_TILE_TILE_H

#include "ir/tir.h"

/* a * b + c as FMA where nothing else uses the product. */
TirKernel *tile_contract(const TirKernel *k, Arena *a);
/* EXP, EXP2, TANH and ERF as core arithmetic, to 1 or 1.5 ulp. */
TirKernel *tile_expand_near(const TirKernel *k, Arena *a);
/* Every operation flagged F_MATH as core arithmetic: afterwards none is left. */
TirKernel *tile_expand_math(const TirKernel *k, Arena *a);
/* Every cast from or to a narrow float as bit arithmetic; the casts left are code generation's. */
TirKernel *tile_legalize(const TirKernel *k, Arena *a);
/* Invariants before their loops, constants computed, equal values shared, unused ones dropped. */
TirKernel *tile_cleanup(const TirKernel *k, Arena *a);

#endif
