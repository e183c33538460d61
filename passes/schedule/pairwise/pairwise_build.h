/* pairwise_build.h: a kernel of the PAIRWISE template while it is built: pairwise.c. */
#ifndef TEXO_PASSES_SCHEDULE_PAIRWISE_PAIRWISE_BUILD_H
#define TEXO_PASSES_SCHEDULE_PAIRWISE_PAIRWISE_BUILD_H

#include "passes/schedule/pairwise/pairwise.h"

enum {
	PW_WARPS = 8, PW_THREADS = PW_WARPS * TIR_WARP,
	PW_ROWS = 4, PW_ROW_WORDS = 32,             /* of a lane, and registers of all that they hold */
	PW_TILE = 512,                              /* elements */
	PW_SIDE = 4, PW_ROUND = PW_WARPS * PW_SIDE  /* that a warp folds side by side; and all of them */
};

typedef struct {
	Point l;
	Pairwise *w;
	const PassOptions *o;
	ExprId blocks; /* of rows along the last axis */
	ValId thread, lane, warp, row0, row_last, lo, hi;
	unsigned lane_rows, rows; /* of a lane, and of the block */
	ValId row[PW_ROWS];
	ValId of_row[PAIRWISE_VALUES][PW_ROWS];
	ValId element[PAIRWISE_VALUES]; /* views of shared memory: by element of the tile */
	ValId part[PAIRWISE_FOLDS];     /* by warp and row */
	ValId run[PAIRWISE_FOLDS * PW_ROWS];
	ValId first;                    /* the tile's first element */
} PairwiseBuild;

static inline ValId
pw_int(PairwiseBuild *b, int64_t v)
{
	return tir_int(b->l.tir, DT_I64, v);
}
static inline ValId
pw_op(PairwiseBuild *b, Op o, ValId x, ValId y)
{
	return tir_binary(b->l.tir, o, x, y);
}
static inline void
pw_barrier(PairwiseBuild *b)
{
	tir_emit(b->l.tir, OP_BARRIER, (TirType){0}, 0, NULL, 0);
}

/* Looks the thread's number up, anew for each number that is given, so that nothing which is made of it is held from one place
 * to the next. */
void pairwise_find_thread(PairwiseBuild *b, int64_t anew);
/* Two folds of a member's as one. */
ValId pairwise_joined(PairwiseBuild *b, const PairwiseMember *m, ValId x, ValId y);
/* Whether all conditions hold for the block's rows and the tile's elements; 0: it is not known, or there are none, which
 * *any says (pairwise_whole.c). */
ValId pairwise_all_hold(PairwiseBuild *b, bool *any);
/* Joins what the warps have of the rows, and stores what is made of it (pairwise_finish.c). */
void pairwise_finish(PairwiseBuild *b);

#endif
