/* tile.h: the passes over the tile IR. Each takes a verified kernel and returns a new one in the
 * arena, with the same buffers, scalars and meaning. tir_interpret of the result equals that of the
 * argument to the bit, but for tile_expand_math, which gives the transcendentals their meaning, and
 * tile_contract.
 *
 * Order: tile_contract (relaxed mode only), tile_expand_math, tile_legalize, tile_cleanup. */
#ifndef TEXO_PASSES_TILE_TILE_H
#define TEXO_PASSES_TILE_TILE_H

#include "ir/tir.h"

/* Every operation flagged F_MATH as core arithmetic: afterwards none is left. */
TirKernel *tile_expand_math(const TirKernel *k, Arena *a);
/* Every cast from or to a narrow float as bit arithmetic; the casts left are code generation's. */
TirKernel *tile_legalize(const TirKernel *k, Arena *a);

#endif
