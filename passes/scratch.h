/* scratch.h: memory for scratch arenas, taken from an arena and used again after each release, so
 * that an unwind at any place leaks nothing. */
#ifndef TEXO_PASSES_SCRATCH_H
#define TEXO_PASSES_SCRATCH_H

#include "ir/arena.h"

typedef struct ScratchBlock ScratchBlock;

typedef struct {
	Arena *from;
	ScratchBlock *idle;
	HostMemory memory; /* what the scratch arena allocates with */
} ScratchPool;

/* The pool must stay where it is while scratch arenas use it. */
void scratch_pool_init(ScratchPool *p, Arena *from);
/* A scratch arena that unwinds where `from` does. Free it with arena_free. */
void scratch_arena_init(ScratchPool *p, Arena *scratch);

#endif
