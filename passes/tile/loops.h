/* loops.h: in which loops and regions the instructions of a kernel stand. */
#ifndef TEXO_PASSES_TILE_LOOPS_H
#define TEXO_PASSES_TILE_LOOPS_H

#include "ir/tir.h"

typedef struct {
	ValId *owner; /* by ValId: whose region it stands in; 0: the kernel's */
	ValId *loop;  /* by ValId: the innermost FOR around it; 0: none */
} Loops;

Loops loops_find(const TirKernel *k, Arena *a);

/* Whether v changes with the turns of a loop: stands in it, however deep. */
static inline bool
loops_has(const Loops *l, ValId loop, ValId v)
{
	ValId o = l->loop[v];
	while (o && o != loop)
		o = l->loop[o];
	return o == loop;
}

#endif
