/* cleanup.h: the parts of tile_cleanup. Each returns the kernel it was given when it found nothing. */
#ifndef TEXO_PASSES_TILE_CLEANUP_H
#define TEXO_PASSES_TILE_CLEANUP_H

#include "ir/tir.h"

/* Without effects, reading no memory, defined for every input, and depending on its operands alone. */
bool cleanup_is_pure(Op op);
/* A kernel with lists of instructions of its own, the rest shared. */
TirKernel *cleanup_copy_lists(const TirKernel *k, Arena *a);
/* Pure instructions whose operands come from outside a FOR stand before it. The ids stay, so they no
 * longer ascend in the order of the text: only for what follows here. */
const TirKernel *cleanup_hoist(const TirKernel *k, Arena *a);
/* Operations on constants computed; equal pure instructions as one, where the first is in scope. With
 * renumber, a new kernel in any case. */
const TirKernel *cleanup_share(const TirKernel *k, Arena *a, bool renumber);

#endif
