/* rows_build.h: what the files of the ROWS templates share while a kernel is built. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_BUILD_H
#define TEXO_PASSES_SCHEDULE_ROWS_BUILD_H

#include "passes/schedule/rows.h"
#include "passes/schedule/schedule.h"

typedef struct {
	Point *l;
	Rows *r;
	Kernel *kernel;
	unsigned copies;              /* points or vectors side by side, where vectors run */
	unsigned ncopy;               /* of them, at the place at work */
	ValId block_lo, block_hi;     /* the values of the blocked axis of the task */
	ValId base;                   /* with lanes by row: the first of the strip's vectors at work */
	/* of what is folded, by copy; of a scan the fold so far, by copy with lanes by row */
	Reduction fold[ROWS_MAX_MEMBERS][POINT_MAX_COPIES];
} RowBuild;

static inline ValId
rows_int(const RowBuild *b, int64_t v)
{
	return tir_int(b->l->tir, DT_I64, v);
}

/* The row axis along the lanes, with lanes by row. */
static inline unsigned
rows_lane_axis(const RowBuild *b)
{
	return b->r->nrow - 1u;
}

/* --- members at a point (rows_member.c) --- */
/* Makes m the node whose expressions are meant. */
void rows_enter(RowBuild *b, RowMember *m);
/* Whether m is folded by the loops of its phase into a value of the row. */
bool rows_is_folded(const RowMember *m);
/* Whether it has an accumulator for each lane. */
bool rows_folds_by_lane(const RowBuild *b, const RowMember *m);
Reduction rows_begin_fold(RowBuild *b, RowMember *m);
/* One term of the member entered, at the point. */
void rows_take_term(RowBuild *b, RowMember *m, Reduction *f, ValId position);
/* The next element of a scan, at the point: the fold so far and one term more, or a vector of them. */
void rows_scan(RowBuild *b, RowMember *m, Reduction *carry);
/* What is left to do with m's folded value: finish, domain, and to wherever it is wanted. */
void rows_finish_member(RowBuild *b, RowMember *m, PointVal folded, ValId touched);
/* The element of a row, or the value of one, at the point. */
void rows_element(RowBuild *b, RowMember *m);

/* --- phases (rows_phase.c) --- */
/* All phases of the row, or of ncopy vectors of rows, at the point. */
void rows_run_phases(RowBuild *b, unsigned ncopy);

#endif
