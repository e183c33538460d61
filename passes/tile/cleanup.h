/* cleanup.h: the parts of tile_cleanup. Each returns the kernel it was given when it found nothing. */
#ifndef TEXO_PASSES_TILE_CLEANUP_H
#define TEXO_PASSES_TILE_CLEANUP_H

#include "ir/tir.h"

/* Without effects, reading no memory, defined for every input, and depending on its operands alone. */
bool cleanup_is_pure(Op op);
/* A kernel with lists of instructions of its own, the rest shared. */
TirKernel *cleanup_copy_lists(const TirKernel *k, Arena *a);
/* What a loop carries without changing it, or several times, is taken from where it comes, or from the first. */
const TirKernel *cleanup_carried(const TirKernel *k, Arena *a);
/* Pure instructions whose operands come from outside a FOR stand before it. The ids stay, so they no
 * longer ascend in the order of the text: only for what follows here. */
const TirKernel *cleanup_hoist(const TirKernel *k, Arena *a);
/* Whether the IDIV or IMOD p is by a power of two of a sum that is a multiple of it, or of a quotient's smaller one, *rounded,
 * and *rest, which is less: the quotient is that of *rounded. What *rounded takes is made by emit. */
typedef ValId CleanupEmitFn(void *user, TirKernel *to, const TirInst *p, const ValId *arg);
bool cleanup_split_multiple(TirKernel *to, const TirInst *p, const ValId *arg, CleanupEmitFn *emit, void *user, ValId *rounded,
                            int64_t *rest);
/* Operations on constants computed; equal pure instructions as one, where the first is in scope. With
 * renumber, a new kernel in any case. */
const TirKernel *cleanup_share(const TirKernel *k, Arena *a, bool renumber);
/* Without what no effect needs. */
const TirKernel *cleanup_drop_dead(const TirKernel *k, Arena *a);

#endif
