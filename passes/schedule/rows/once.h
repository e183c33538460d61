/* once.h: folds of a row that are gone through together: once.c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_ONCE_H
#define TEXO_PASSES_SCHEDULE_ROWS_ONCE_H

#include "passes/fuse/algebra.h"
#include "passes/schedule/rows/rows.h"

/* The expressions of the cascade's only pass, over the region's axes. */
typedef struct RowsOnce {
	Cascade c;
	const CascadePass *pass;
	unsigned last_stage, axis;     /* axis: of the region, along the lanes */
	uint32_t phases;               /* those of its members, as bits */
	unsigned member[MAX_MEMBERS];  /* of Rows, by the cascade's number */
	ExprId value[MAX_MEMBERS];     /* by the cascade's number, over STATE_A */
	ExprId term[MAX_ACCS], rebase[MAX_ACCS], anchor[MAX_ANCHORS];
} RowsOnce;

/* Whether all folds along the lanes are a cascade of one pass, and there are such that wait for others. */
bool rows_once_plan(Graph *g, Arena *scratch, const Rows *r, const bool *faulty, RowsOnce *out);

#endif
