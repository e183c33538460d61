/* tir_random.h: random well-typed kernels of the tile IR with inputs to run them on, for comparing two
 * ways of running one kernel bit for bit. A kernel is a function of its seed and options.
 *
 * Kernels verify, end, and never leave a view or a buffer. Bits of NaNs never reach an integer, so all
 * integer buffers, the faults, and floats up to which NaN must agree. */
#ifndef TEXO_TESTS_TIR_RANDOM_H
#define TEXO_TESTS_TIR_RANDOM_H

#include "ir/tir.h"

typedef struct {
	bool math;      /* with operations of F_MATH, which agree only after they are expanded */
	bool ex2;       /* with EX2 and RCP, whose bits are a target's own */
	bool scale;     /* with SCALE, by powers that are not infinite */
	uint16_t lanes; /* of vectors; 0: chosen by the seed */
} RandomOptions;

typedef struct {
	TirKernel *kernel;
	TirMemory *buffer;         /* one per kernel buffer, exactly as large as its views reach */
	const void *const *scalar; /* one per kernel scalar */
	int64_t task_lo, task_hi;
} RandomCase;

RandomCase tir_random(Arena *a, Names *names, uint64_t seed, RandomOptions o);

/* Copies of a case's buffers, to run it again. */
TirMemory *random_copy_buffers(Arena *a, const RandomCase *c);
/* Whether two runs left the same: bytes of integer buffers, values of float buffers where all NaNs are
 * one. Else says where. */
bool random_same(Arena *a, const RandomCase *c, const TirMemory *x, const TirMemory *y, const char **where);

#endif
