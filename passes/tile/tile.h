/* tile.h: the passes over the tile IR. Each takes a verified kernel and returns a new one in the
 * arena, or the same one when there is nothing to do, with the same buffers, scalars and meaning.
 * tir_interpret of the result equals that of the argument to the bit, but for tile_contract, and for
 * tile_approximate, tile_narrow_*, tile_expand_*, which give the transcendentals their meaning. Passes run in the order below. */
#ifndef TEXO_PASSES_TILE_TILE_H
#define TEXO_PASSES_TILE_TILE_H

#include "ir/tir.h"

/* A kernel of blocks as one of threads. */
TirKernel *tile_spread(const TirKernel *k, Arena *a);
/* a * b + c as FMA where nothing else uses the product. */
TirKernel *tile_contract(const TirKernel *k, Arena *a);
/* Functions and quotients of f32 by the target's units, as near as fast mode asks. */
TirKernel *tile_approximate(const TirKernel *k, Arena *a);
/* Narrowed powers over what others are divided by too, times its reciprocal. */
TirKernel *tile_narrow_divide(const TirKernel *k, Arena *a);
/* Narrowed functions (tir.h) as short arithmetic: with EX2 and RCP or with SCALE, for targets that have them, or without. */
TirKernel *tile_narrow_ex2(const TirKernel *k, Arena *a);
TirKernel *tile_narrow_scaled(const TirKernel *k, Arena *a);
TirKernel *tile_narrow_short(const TirKernel *k, Arena *a);
/* EXP, EXP2, TANH and ERF as core arithmetic, to 1 or 1.5 ulp. */
TirKernel *tile_expand_ex2(const TirKernel *k, Arena *a);    /* with EX2 */
TirKernel *tile_expand_pick_scaled(const TirKernel *k, Arena *a); /* of f32, but for TANH; with PICK and SCALE */
TirKernel *tile_expand_pick(const TirKernel *k, Arena *a);
TirKernel *tile_expand_scaled(const TirKernel *k, Arena *a); /* with SCALE, for targets that have it */
TirKernel *tile_expand_near(const TirKernel *k, Arena *a);
/* Every operation flagged F_MATH as core arithmetic: afterwards none is left. */
TirKernel *tile_expand_math(const TirKernel *k, Arena *a);
/* Quotients by what a loop does not change, with the same bits, for targets whose comparisons are masks. */
TirKernel *tile_divide_often(const TirKernel *k, Arena *a);
/* The kernel with TirKernel.fp8, if it is one of threads: for targets whose threads have these casts. */
TirKernel *tile_own_casts(const TirKernel *k, Arena *a);
/* The kernel with TirKernel.halves, if it is one of tasks: for processors that have these casts. */
TirKernel *tile_half_casts(const TirKernel *k, Arena *a);
/* Every cast from or to a narrow float as bit arithmetic; the casts left are code generation's. */
TirKernel *tile_legalize(const TirKernel *k, Arena *a);
/* Invariants before their loops, constants computed, equal values shared, unused ones dropped. */
TirKernel *tile_cleanup(const TirKernel *k, Arena *a);
/* Of a kernel of threads, what is computed in the same way of each of their groups of lanes once, in a loop. */
TirKernel *tile_roll(const TirKernel *k, Arena *a);
/* Of a kernel of threads, what an iteration loads before what it computes. */
TirKernel *tile_early_loads(const TirKernel *k, Arena *a);
/* Of a kernel of threads, fewer resident blocks where the share of a thread's registers is too small for what it holds. */
TirKernel *tile_fit(const TirKernel *k, Arena *a);

#endif
