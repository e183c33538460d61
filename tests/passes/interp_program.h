/* interp_program.h: runs a whole program with the tile interpreter, as a runtime would: memory for
 * everything, launch expressions, arguments, task ranges, the fault words. */
#ifndef TEXO_TESTS_PASSES_INTERP_PROGRAM_H
#define TEXO_TESTS_PASSES_INTERP_PROGRAM_H

#include "ir/eval.h"
#include "ir/kp.h"

typedef struct {
	unsigned stride;   /* innermost stride of parameters and results; 0 stands for 1 */
	uint64_t split;    /* seed of how tasks are split and ordered, 0: all in one call; and, if it is 1 mod 5, of which runs of
	                    * the kernels that do the same, not the first */
	bool rows;         /* aligned kernels run where rows that lie one after another let them, as in a launch; else always */
	unsigned blocks;   /* of kernels with roles: that take every so many-th task, each in a call; 0 stands for 1 */
} InterpOptions;

typedef struct {
	const void **result; /* packed row-major, one per Graph.result */
	uint32_t fault, cut;
	bool follows;        /* a kernel ran that joins what the one before it has */
	bool posts;          /* tasks of a kernel that ran waited for others */
	unsigned threads;    /* of a block of the kernel that ran last */
	const Kernel *ran, *last; /* the first kernel that ran, and the last; NULL: none did */
	int64_t tasks;       /* of the first */
	uint32_t tiles;      /* how many ran that are tiles of a GPU's threads */
	uint32_t roles;      /* and of groups of threads with channels between them */
	const char *error;   /* NULL when all kernels ran and nothing outside their memory changed */
} InterpRun;

/* Whether it is a contraction by tiles of a GPU's threads. */
bool interp_is_tiles(const Kernel *k);
/* The graph's dims must have the given values (by DimId). */
InterpRun interp_program(const Program *p, Arena *a, const EvalInputs *in, const int64_t *dim,
                         const InterpOptions *o);

#endif
