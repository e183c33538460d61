/* blocks.h: the forms that a kernel by rows has for a GPU: blocks.c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_BLOCKS_H
#define TEXO_PASSES_SCHEDULE_ROWS_BLOCKS_H

#include "passes/schedule/rows/rows.h"
#include "passes/schedule/schedule.h"

typedef struct {
	uint32_t lanes;
	uint16_t threads, group, cluster, columns, resident;
	bool anywhere, held, filled, short_axis, flat, long_sums; /* as in KernelPlan */
	uint32_t once, posts;
} BlockShape;

enum { BLOCK_SHAPES = 16 };

typedef struct {
	unsigned n;
	BlockShape at[BLOCK_SHAPES];
} BlockShapes;

/* Which rows tasks have: those of task t begin at the least of size * t + from, where from[0] is 0. n 0: each has one. */
enum { BLOCK_ROUNDS = 3 };
typedef struct {
	unsigned n;
	ExprId size[BLOCK_ROUNDS], from[BLOCK_ROUNDS];
} BlockTurns;

/* What is accessed along the lanes, for how many of them a thread has side by side. */
typedef struct {
	const Graph *g;
	Arena *scratch;
	const Rows *rows; /* reads of its members, and kept ones, don't count; NULL: all do */
	uint32_t lanes;   /* the axes along them */
	uint32_t also;    /* not 0: what is accessed along one of these axes too */
	unsigned widest;  /* bytes of the widest element so far, at least 1 */
} LaneAccess;

void lane_access_reads(LaneAccess *a, const Node *n);
/* As many as fill 16 bytes. */
unsigned lane_access_group(const LaneAccess *a);

/* The shapes for planned rows, in the order in which a launch asks for one that suits; the last takes any
 * sizes and strides. `faulty`: by TensorId. */
BlockShapes block_shapes(Graph *g, Arena *scratch, const PassOptions *o, const Rows *r, const bool *faulty);
/* The same for columns that are held: none where they can't be. */
BlockShapes block_column_shapes(Graph *g, Arena *scratch, const PassOptions *o, const Rows *r);

/* --- what they read, and what may come ahead (ahead.c) --- */
bool block_has_member(const Rows *r, TensorId t);
/* The bytes of an element of all tensors that are read along these axes and the lanes; n: how many such tensors there are. */
unsigned block_bytes_read(const Graph *g, Arena *scratch, const Rows *r, uint32_t axes, unsigned *n);
/* Of blocks of a cluster that hold rows: how many rows further on the one is that is fetched ahead; 0: none is. */
unsigned block_rows_ahead(const Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p);
/* Of so many rows, or strips of columns, those that each task has, one after another, where what blocks of a cluster read of the next
 * one has room in shared memory meanwhile (tile/spread_next.c); and how many tasks there are. */
BlockTurns block_turns(Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p, ExprId rows);
ExprId block_turn_tasks(Graph *g, const BlockTurns *t, ExprId rows);

/* --- when a kernel of them runs (suits.c) --- */
enum { BUSY_WARPS = 16 }; /* of a multiprocessor: as many as keep it busy */
/* Whether every lane loop runs from 0 to what is known at launch. */
bool block_lengths_known(const Graph *g, Arena *scratch, const Rows *r);
/* Whether rows of lanes may be as long as n. */
bool block_lengths_reach(Graph *g, const Rows *r, int64_t n);
/* Whether e is a multiple of n; where that is for a launch to say, *cond asks it too. */
bool block_is_multiple(Graph *g, Arena *scratch, ExprId e, unsigned n, ExprId *cond);
/* The same of all ends of vectors. */
bool block_ends_are_multiples(Graph *g, Arena *scratch, const Rows *r, unsigned n, ExprId *cond);
/* Whether it runs only where one strip has all columns. */
bool block_has_row(const Rows *r, const KernelPlan *p);
/* The tasks of the kernel of this plan: none where the sizes don't suit it. */
ExprId block_tasks(Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p, ExprId ntask, bool *few);

#endif
