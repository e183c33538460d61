/* tir_threads.h: what the files of the interpreter of threads share: the state of the block, or cluster, that runs. */
#ifndef TEXO_IR_TIR_THREADS_H
#define TEXO_IR_TIR_THREADS_H

#include "ir/tir_interp.h"

/* In the place of a thread: several; several of group n: SEVERAL_OF_GROUP + n; of warp n: SEVERAL_OF_WARP + n. */
enum { SEVERAL = 0xfffe, SEVERAL_OF_GROUP = 0xff00, SEVERAL_OF_WARP = 0xf000 };

/* Who has touched a grain of memory since the last barrier, in which `epoch` began; which blocks did since the cluster's. */
typedef struct {
	uint32_t wrote_at, read_at, block_read_at;
	uint16_t writer, reader, reader_block;
	bool filled;
	bool coming; /* the writer copies there, and has not waited for it */
} Shadow;

typedef struct {
	uint8_t *data;
	int64_t bytes;
	Shadow *shadow; /* of each grain */
	unsigned grain; /* bytes: of the smallest elements that lie there, so that all of a grain is touched at once */
	unsigned shift; /* of the number of a byte, to that of its grain */
	bool own; /* each block has so many bytes for itself */
} Memory;

/* Of a buffer that is waited for: when it last was, and was read; of what is stored for the next wait, how many grains, and
 * which epoch the last barrier of the block before the first of them began. */
typedef struct {
	bool waited;
	uint32_t waited_at, read_at, stored, behind;
} Handed;

/* What a thread copies meanwhile: to so many grains, in its n-th group. */
typedef struct {
	const Step *s;
	Shadow *place;
	unsigned grains;
	uint32_t group;
	uint16_t thread;
} Coming;

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	TirRun *run;
	const StepProgram *program;
	uint64_t *slot;   /* of slot s: threads values from s * threads on */
	unsigned threads; /* of all blocks */
	Memory *memory;   /* by buffer */
	uint32_t epoch, block_epoch, cluster_epoch; /* the last one, and which began at the last barrier of the block, and of the cluster */
	uint32_t warp_epoch;     /* the same of all warps */
	uint32_t handed_epoch;   /* all blocks know that what was read of wide buffers before it has been read */
	Handed *handed;          /* by buffer */
	uint32_t reached_epoch;  /* in which the memory of another block was reached last */
	unsigned from, to;       /* the threads at work: values are computed for all of them */
	uint32_t roles_epoch;    /* not 0: the roles began then, or all groups of the cluster met, and groups have barriers of their own: */
	uint32_t *group_epoch;   /* the last one of each, */
	uint32_t *group_warp_epoch; /* and of its warps */
	struct Roles *roles;     /* while they run */
	struct Posts *posts;     /* of roles, whose tasks post; else NULL */
	VEC(Coming) coming;
	uint32_t *groups;        /* by thread: how many groups of copies it has ended */
	VEC(bool *) taken;       /* by how deep an IF lies: the threads that take its branch */
	uint32_t nested;         /* IFs at work */
	int64_t left;
	const char *error;
} Block;

/* Where the numbers of an axis are, thread after thread; from the index of a lane to that of the next one, 0: all have one. */
typedef struct {
	const uint64_t *index, *extent, *stride;
	size_t lanes;
	bool along;
} AxisSlots;

/* What a step does at one place for one thread. */
typedef struct {
	const Step *s;
	const StepAccess *a;
	AxisSlots axis[TIR_MAX_RANK];
	unsigned thread, block;
	bool writes, shared; /* shared: the memory */
	bool blocks;         /* there are several */
	bool waited;         /* the buffer is waited for */
	bool ruled;          /* more than races between a block's threads is looked for */
	uint32_t since;      /* the last barrier that parts them here */
	uint32_t all;        /* none that parts threads of a block is older */
	unsigned bits;
	int64_t count;       /* elements in the memory */
} Access;

static inline uint64_t *
at(const Block *x, uint32_t slot)
{
	return x->slot + (size_t)slot * x->threads;
}
bool threads_violation(Block *x, const Step *s, const char *what);
/* PIECE and PUT, of those of a group's threads that are active. */
bool roles_piece(Block *x, const Step *s, const bool *active);
/* What the access does to this byte, `which ...`. */
bool threads_race(Block *x, const Access *c, int64_t byte, const char *which);
/* Of any thread of the first block. */
Access threads_access(const Block *x, const Step *s, const StepAccess *a, bool writes);
/* Where lane l of the access lies, in elements. */
bool threads_locate(Block *x, const Access *c, unsigned l, int64_t *element);
/* The thread reads or writes the grain that begins with this byte, of which h tells. */
bool threads_touch(Block *x, const Access *c, int64_t byte, Shadow *h);
/* A SHUFFLE between the threads of those warps among x->from .. x->to that are active. */
bool threads_shuffle(Block *x, const Step *s, const bool *active);
/* The steps from .. to; the threads among x->from .. x->to that are active. */
bool threads_run(Block *x, const Step *from, const Step *to, const bool *active);
/* tir_handed.c: the same as threads_touch of buffers that are waited for; the wait; whether all that was handed over has been. */
void threads_handed_begin(Block *x);
bool threads_touch_handed(Block *x, const Access *c, int64_t byte, Shadow *h);
bool threads_wait_handed(Block *x, const Step *s, uint32_t buffer);
bool threads_handed_end(Block *x);
/* tir_posts.c: of a kernel of roles whose tasks post. The thread posts this word, or has loaded it; a group meets; whether it
 * sees what was stored to a byte. */
void threads_posts_begin(Block *x);
void threads_post(Block *x, unsigned thread, bool posts, Shadow *word);
void threads_posts_met(Block *x, unsigned group);
bool threads_was_handed(const Block *x, unsigned thread, const Shadow *h);
/* tir_warp.c: what all threads of each warp multiply. */
void threads_warp_mma(Block *x, const Step *s);
/* tir_async.c */
bool threads_matrix(Block *x, const Step *s);
bool threads_async_copy(Block *x, const Step *s, const bool *active);
void threads_async_wait(Block *x, const Step *s, const bool *active);
/* Whether all copies have been waited for. */
bool threads_async_end(Block *x);
void threads_move(Block *x, const Step *s, const bool *active);
/* tir_roles.c: all of ROLES, whose second role ends at `after`. */
bool roles_run(Block *x, const Step *s, const Step *after);

#endif
