/* spread.h: what the files of the spread pass share; spread.c says what it does. */
#ifndef TEXO_PASSES_TILE_SPREAD_H
#define TEXO_PASSES_TILE_SPREAD_H

#include "ir/tir.h"

/* A value of the block as a thread has it: a scalar is one register. */
typedef struct {
	ValId *reg;
	unsigned n;
} Regs;

/* How lanes meet memory: along this axis of the view, from this index on (of from; the same value, the same lanes). Of
 * accesses that are made in one way an element is always the same thread's, whatever the other indices are. */
typedef struct {
	ValId view, index;
	unsigned lanes;
	int along;
	bool turned; /* by warps (spread_turned.c) */
} Way;

/* What may have been done to memory since the last barrier, by memory; way: 1 + that of all of it in Spread.way, or 0. */
typedef struct {
	bool *read, *written;
	uint32_t *way;
} Accesses;

/* Who reaches memory: the block's threads; those of the cluster; those of the cluster, in shared buffers, where blocks that
 * have handed elements to each other know what they read before. */
typedef enum { REACH_BLOCK, REACH_CLUSTER, REACH_HANDED, REACHES } Reach;

/* The region at work, and those around it. */
typedef struct Flow {
	Accesses since;   /* since a barrier that was certainly met */
	Accesses exposed; /* before the first barrier that is certainly met */
	bool closed[REACHES];   /* such a barrier stands in the region, by whom memory is reached by */
	bool brings;            /* groups of narrow lanes were loaded in the region, and no thread has met others since */
	struct Flow *outer;
} Flow;

/* A vector that a warp's threads have loaded in turns, and have not handed over yet. */
typedef struct {
	ValId v; /* of from */
	Regs had, own;
} Loaded;

enum { EXCHANGES = 6 * DT_COUNT }; /* shared buffers: two of each dtype, in turns, of a block, of its cluster, or handed over in it */

typedef struct {
	const TirKernel *from;
	TirKernel *to;
	Arena *arena;
	unsigned blocks, threads, warps; /* all that take a task together */
	unsigned columns;  /* as TirKernel has them */
	unsigned anew;     /* not 0: a thread looks its number up anew behind each barrier; 1 + how many there were */
	Regs *map;         /* by ValId of from */
	Regs *whole;       /* by ValId: all lanes, where every thread was given them */
	Flow *flow;
	VEC(Way) way;
	unsigned nmemory;
	int exchange[EXCHANGES]; /* its buffer, or -1 */
	uint8_t turn[3 * DT_COUNT];
	int of_warps[DT_COUNT];  /* a buffer in which warps hand over elements of this type, or -1 */
	VEC(Loaded) loaded;
	bool *late;              /* by ValId of from: it is one of these, or computed of one and not made yet */
	VEC(ValId) computed;     /* the latter */
} Spread;

/* --- which lanes a thread has (spread_lanes.c) --- */
/* The registers that a vector of n lanes has; how many lanes side by side are a group. */
unsigned spread_registers(const Spread *s, unsigned lanes);
unsigned spread_group(const Spread *s, unsigned lanes);
/* The lane that register r has, rounded down to a multiple of `step` (0: not), as an integer of type t. */
ValId spread_number(Spread *s, unsigned lanes, unsigned r, unsigned step, DType t);
/* Whether this thread is the one, of those with the same lanes, that stores them; 0: always. */
ValId spread_holds(Spread *s, unsigned lanes);
/* HALF, LANE, SLIDE (segment 0: none), WEAVE, and JOIN of scalars that all threads have. */
Regs spread_half(Spread *s, ValId v, unsigned bit, unsigned side);
Regs spread_lane(Spread *s, ValId v, uint64_t first, unsigned n);
Regs spread_slide(Spread *s, ValId a, ValId b, unsigned by, unsigned segment);
Regs spread_weave(Spread *s, ValId a, ValId b, unsigned bit);
Regs spread_join(Spread *s, const Regs *scalars);

/* --- the same of rows of columns (spread_columns.c) --- */
unsigned spread_columns_registers(const Spread *s, unsigned lanes);
Regs spread_columns_half(Spread *s, ValId v, unsigned side);
Regs spread_columns_weave(Spread *s, ValId a, unsigned lanes);

/* --- memory (spread_memory.c) --- */
Regs spread_load(Spread *s, ValId v);
void spread_store(Spread *s, ValId v);
/* A shared buffer for `elements` of type t, in turns. */
unsigned spread_exchange(Spread *s, DType t, unsigned elements);
/* One that the blocks of the cluster reach, with so many elements from each of them; handed: by spread_hand_over. */
unsigned spread_cluster_exchange(Spread *s, DType t, unsigned each, bool handed);
/* One element of a shared buffer; mask 0: in all threads; rank 0: of the block's own, which no other one reaches. */
void spread_put(Spread *s, unsigned buffer, ValId rank, ValId at, ValId value, ValId mask);
/* The same, by each block for each of them all of its elements, once: then all that are for the own one are there. */
void spread_hand_over(Spread *s, unsigned buffer, ValId rank, ValId at, ValId value, ValId mask);
ValId spread_get(Spread *s, unsigned buffer, ValId rank, ValId at);
/* All of the registers v, or so many more of them, from element `at` of the block's own on, a multiple of their number. */
void spread_put_row(Spread *s, unsigned buffer, ValId at, const Regs *v);
Regs spread_get_row(Spread *s, unsigned buffer, ValId at, unsigned n);
/* A shared buffer of at least so many elements, which those of one warp alone access; barriers are the caller's. */
unsigned spread_warps_buffer(Spread *s, DType t, unsigned elements);
/* A barrier that the loop's body would begin with stands before the loop. */
void spread_before_loop(Spread *s, ValId loop);
/* Around a region; at the end of what is run again and again, where it is known if it will be (more, or 0). */
void spread_enter(Spread *s);
void spread_leave(Spread *s);
void spread_loop_ends(Spread *s, ValId loop, ValId more); /* loop: of from; 0: the kernel */

/* --- lanes that begin anywhere (spread_turned.c) --- */
/* Whether LOAD or STORE v of from is such; then that. */
bool spread_turns(const Spread *s, ValId v);
Regs spread_load_turned(Spread *s, ValId v);
void spread_store_turned(Spread *s, ValId v);
void spread_hand_loaded(Spread *s);

/* --- what the next turn of a loop loads (spread_next.c) --- */
TirKernel *spread_bring_next(TirKernel *k, bool tight, Arena *a);

static inline ValId
spread_int(Spread *s, int64_t v)
{
	return tir_int(s->to, DT_I64, v);
}
/* The thread in its block, the block in its cluster, the thread in that. */
static inline ValId
spread_thread(Spread *s)
{
	return tir_emit(s->to, OP_THREAD, tir_scalar(DT_I64), s->anew, NULL, 0);
}
static inline ValId
spread_rank(Spread *s)
{
	return tir_emit(s->to, OP_RANK, tir_scalar(DT_I64), 0, NULL, 0);
}
static inline ValId
spread_place(Spread *s)
{
	if (s->blocks == 1)
		return spread_thread(s);
	ValId before = tir_binary(s->to, OP_MUL, spread_rank(s), spread_int(s, s->threads / s->blocks));
	return tir_binary(s->to, OP_ADD, before, spread_thread(s));
}
static inline Regs
spread_regs(Spread *s, unsigned n)
{
	return (Regs){ARENA_ARRAY(s->arena, ValId, n), n};
}

#endif
