/* plan.h: what the files that plan a kernel by rows (rows.h) share. plan.c finds the rows, then
 * asks the others, in this order: lanes.c which axes vectors run along, work.c how much is done
 * side by side, order.c the loops, the phases, and what is kept between them. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_PLAN_H
#define TEXO_PASSES_SCHEDULE_ROWS_PLAN_H

#include "passes/schedule/rows/rows.h"
#include "passes/schedule/schedule.h"

typedef struct {
	Graph *g;
	Arena *scratch;
	const RowsFacts *facts;
	Rows *r;
	RemarkId why;
	/* by member: the node's axis along which its loops would be vectors, its own or one of its ranges;
	 * ROWS_NO_AXIS: none */
	uint8_t inner_lane[ROWS_MAX_MEMBERS];
} RowsPlan;

static inline bool
rows_refuse(RowsPlan *p, RemarkId why)
{
	p->why = why;
	return false;
}

/* The member that computes t; -1: none. */
static inline int
rows_member_of(const Rows *r, TensorId t)
{
	for (unsigned m = 0; m < r->nmember; m++)
		if (r->member[m].t == t)
			return (int)m;
	return -1;
}

/* The row axis that is axis a of member m's node; nrow: none. */
static inline unsigned
rows_axis_of(const Rows *r, unsigned m, unsigned a)
{
	unsigned k = 0;
	while (k < r->nrow && r->row_axis[m][k] != a)
		k++;
	return k;
}

/* Whether member m's lanes would be along one of its ranges. */
static inline bool
rows_folds_inner_lane(const RowsPlan *p, unsigned m)
{
	return p->inner_lane[m] != ROWS_NO_AXIS && p->inner_lane[m] >= p->r->member[m].node.npar;
}

static inline bool
rows_is_row_axis(const Rows *r, unsigned m, unsigned a)
{
	return rows_axis_of(r, m, a) < r->nrow;
}

/* The axes of member m that are loops inside the row. */
static inline unsigned
rows_own_axes(const Rows *r, unsigned m)
{
	return r->member[m].node.npar - (unsigned)r->nrow;
}

/* --- recurrences (recur.c) --- */
/* The rows of the members of a recurrence. */
bool rows_find_recurrence(RowsPlan *p);

/* --- folds across rows (across.c) --- */
/* Puts the members last that may be such folds, and says how many they are. */
unsigned rows_part_across(RowsPlan *p);
/* Whether they are, now that the other members' rows are known. */
bool rows_find_across(RowsPlan *p);

/* --- lanes (lanes.c) --- */
/* Whether the folded terms of member m may be joined by lane: in any order, and without faults. */
bool rows_may_fold_by_lane(const RowsPlan *p, unsigned m);
/* The same of the terms of n. */
bool rows_may_regroup(const Graph *g, Arena *scratch, const Node *n, const bool *faulty);
/* Puts the row axis last that vectors by row run along. */
void rows_order_axes(RowsPlan *p);
/* The template whose reads cost least. */
void rows_choose_template(RowsPlan *p);
/* RowsPlan.inner_lane, while the members' expressions are still over their nodes' axes. */
void rows_find_inner_lanes(RowsPlan *p);

/* --- work (work.c) --- */
/* Rows.block, and, once the phases are known, Rows.copies and Rows.turns. */
unsigned rows_choose_block(const RowsPlan *p);
void rows_choose_copies(const RowsPlan *p);
unsigned rows_choose_turns(const RowsPlan *p);
unsigned rows_choose_ahead(const RowsPlan *p);

/* --- tiles (tile.c) --- */
/* Rows.tile, once the members' expressions are over the region's axes. */
void rows_find_tiles(RowsPlan *p);
/* Whether e is a read that may be done before it is known to be wanted. */
bool rows_may_read_early(const RowsPlan *p, ExprId e);

/* --- what rows share (keep.c) --- */
/* Rows.kept and Rows.block, after the tiles. */
void rows_find_kept(RowsPlan *p);

/* --- a row's last phase (trail.c) --- */
/* Rows.trails and Rows.leads, once all else is known. */
void rows_find_trail(RowsPlan *p);

/* --- order (order.c) --- */
/* The loops of every member, its expressions over the region's axes, its phase, and the panels. */
bool rows_order_members(RowsPlan *p);

#endif
