/* tir_threads.h: what the files of the interpreter of threads share: the state of the block, or cluster, that runs. */
#ifndef TEXO_IR_TIR_THREADS_H
#define TEXO_IR_TIR_THREADS_H

#include "ir/tir_interp.h"

/* In the place of a thread: several; several of group n: SEVERAL_OF_GROUP + n. */
enum { SEVERAL = 0xfffe, SEVERAL_OF_GROUP = 0xff00 };

/* Who has touched a byte since the last barrier, in which `epoch` began; which blocks did since the cluster's. */
typedef struct {
	uint32_t wrote_at, read_at, block_read_at;
	uint16_t writer, reader, reader_block;
	bool filled;
} Shadow;

typedef struct {
	uint8_t *data;
	int64_t bytes;
	Shadow *shadow;
	bool own; /* each block has so many bytes for itself */
} Memory;

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	TirRun *run;
	const StepProgram *program;
	uint64_t *slot;   /* of slot s: threads values from s * threads on */
	unsigned threads; /* of all blocks */
	Memory *memory;   /* by buffer */
	uint32_t epoch, cluster_epoch, handed_epoch; /* handed: of wide buffers alone */
	uint32_t reached_epoch;  /* in which the memory of another block was reached last */
	unsigned from, to;       /* the threads at work: values are computed for all of them */
	uint32_t roles_epoch;    /* not 0: the roles began then, or all groups of the cluster met, and groups have barriers of their own: */
	uint32_t *group_epoch;   /* the last one of each */
	int64_t left;
	const char *error;
} Block;

static inline uint64_t *
at(const Block *x, uint32_t slot)
{
	return x->slot + (size_t)slot * x->threads;
}
bool threads_violation(Block *x, const Step *s, const char *what);
/* The steps from .. to; the threads among x->from .. x->to that are active. */
bool threads_run(Block *x, const Step *from, const Step *to, const bool *active);
/* tir_warp.c: what all threads of each warp multiply. */
void threads_warp_mma(Block *x, const Step *s);
void threads_move(Block *x, const Step *s, const bool *active);
/* tir_roles.c: all of ROLES, whose second role ends at `after`. */
bool roles_run(Block *x, const Step *s, const Step *after);

#endif
