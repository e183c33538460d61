/* build.h: what the files of the ROWS templates share while a kernel is built. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_BUILD_H
#define TEXO_PASSES_SCHEDULE_ROWS_BUILD_H

#include "passes/schedule/rows/blocks.h"
#include "passes/schedule/rows/rows.h"
#include "passes/schedule/rows/once.h"
#include "passes/schedule/schedule.h"

enum { ROWS_MAX_GATHERED = 4, ROWS_MAX_WIDE = 6, ROWS_MAX_LISTS = 4,
       ROWS_MAX_CARRIED = ROWS_MAX_MEMBERS * POINT_MAX_COPIES * ROWS_MAX_SIDE * REDUCTION_MAX_CARRIED };

/* A read of rows whose numbers are read, and where a later row of the result takes its own from. */
typedef struct {
	ExprId read;
	ValId index[TG_MAX_RANK];
} RowsGathered;

/* What the turns of a phase's last loop read from shared memory. */
typedef struct {
	ExprId read;
	unsigned phase;
	ValId view;
} RowsList;

typedef struct {
	Point *l;
	Rows *r;
	Kernel *kernel;
	unsigned copies;              /* points or vectors side by side, where vectors run */
	unsigned ncopy;               /* of them, at the place at work */
	bool few;                     /* a launch of this form has fewer than 2^31 tasks */
	BlockTurns turns;             /* which rows, or strips of columns, each task has, one after another */
	ValId block_lo, block_hi;     /* the values of the blocked axis of the task */
	ValId tile[ROWS_MAX_TILES];   /* the shared memory of Rows.tile, or the scratch memory of its squares */
	ValId tile_rows[ROWS_MAX_TILES]; /* the same by a row's place and a column, where words of rows are written */
	ValId base;                   /* with lanes by row: the first of the strip's vectors at work */
	ValId row, vector;            /* where tasks post: the row, and which of its vectors in the order of the scan */
	ValId post[ROWS_MAX_MEMBERS]; /* views of what they post */
	ReductionTile *vectors[ROWS_MAX_MEMBERS];
	ValId split[ROWS_MAX_MEMBERS][2]; /* of scans whose steps are split: views of what they come to */
	ValId near;                   /* of a loop's part: where it begins, from which positions count; 0: from their own start */
	unsigned nwide;               /* views of what columns fold so far; 0: only registers have it */
	ValId wide[ROWS_MAX_WIDE];
	ValId rows_ahead;             /* with them: how many rows further on those are that are fetched */
	unsigned ngathered;
	RowsGathered gathered[ROWS_MAX_GATHERED];
	unsigned nlist;
	RowsList list[ROWS_MAX_LISTS];
	bool trailing;                /* the rows' phases but the last run (trail.c) */
	ValId trail_there;            /* then, whether there is a row before, its axes, and its values that are read */
	ValId trail_row[TG_MAX_AXES];
	PointVal trail_value[ROWS_MAX_MEMBERS];
	const RowsOnce *once;         /* of folds that are gone through together; NULL: none are */
	ValId once_value[MAX_MEMBERS]; /* what they come to, by the cascade's number */
	/* of what is folded, by copy and, of values side by side, by value (rows_fold); of a scan the fold so
	 * far, by copy with lanes by row */
	Reduction fold[ROWS_MAX_MEMBERS][POINT_MAX_COPIES * ROWS_MAX_SIDE];
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

/* The fold of member k in a copy, of the value'th side by side. */
static inline Reduction *
rows_fold(RowBuild *b, unsigned k, unsigned copy, unsigned value)
{
	unsigned side = b->r->member[k].side;
	return &b->fold[k][side ? copy * side + value : copy];
}


/* --- rows (rows.c) --- */
/* The axes of the row of this number, the first naxis. */
void rows_go_to(RowBuild *b, ValId row, unsigned naxis);

/* --- members at a point (member.c) --- */
/* Makes m the node whose expressions are meant. */
void rows_enter(RowBuild *b, RowMember *m);
/* Whether it has an accumulator for each lane. */
bool rows_folds_by_lane(const RowBuild *b, const RowMember *m);
Reduction rows_begin_fold(RowBuild *b, RowMember *m);
/* Which lanes fold what they have at the point, where vectors run; 0: all. */
ValId rows_keeps_terms(const RowBuild *b, const RowMember *m);
/* One term of the member entered, at the point. */
void rows_take_term(RowBuild *b, RowMember *m, Reduction *f, ValId position);
/* The next element of a scan, at the point: the fold so far and one term more, or a vector of them. */
void rows_scan(RowBuild *b, RowMember *m, Reduction *carry);
/* The same where the step's term, and of a linear recurrence its factor, are known already. */
void rows_scan_term(RowBuild *b, RowMember *m, Reduction *carry, PointVal factor, PointVal term);
/* At a vector of points the terms of the member entered, each by itself, or of a linear recurrence its steps; in lanes without one,
 * what changes nothing. unit: a fold of nothing. */
Reduction rows_scan_steps(RowBuild *b, RowMember *m, const Reduction *unit, ValId position);
/* The element at the point, of the member entered, from what is folded up to it. */
void rows_finish_scan(RowBuild *b, RowMember *m, const Reduction *f);
/* Whether a task has one vector of a row: of several, each another's, or of all of it. Its shared memory comes after all
 * other buffers. */
bool rows_scans_tiles(const RowBuild *b);
/* Whether nothing is left to do when it is done. */
bool rows_scans_alone(const RowBuild *b);
void rows_declare_scans(RowBuild *b);
/* Then the task's vector of the phase's one loop, over range[0] to range[1]; outer: the position of those outside. */
void rows_scan_vector(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, ValId outer);
/* What is left to do with m's folded value: finish, domain, and to wherever it is wanted. */
void rows_finish_member(RowBuild *b, RowMember *m, PointVal folded, ValId touched);
/* The element of a row, or the value of one, at the point. */
void rows_element(RowBuild *b, RowMember *m);
/* Hands a member's value at the point on: to memory, to the panel, to later members. */
void rows_deliver(RowBuild *b, RowMember *m, PointVal v);

/* --- tiles (tile.c) --- */
/* What is read by tiles, or kept for several rows, gets a name that stands for it, before anything is declared; then
 * what it reads is declared, and the shared memory, which comes after all other buffers. */
void rows_replace_reads(RowBuild *b);
void rows_declare_tiles(RowBuild *b);
void rows_declare_squares(RowBuild *b);
/* What stands for the k-th of them; of what is kept, from ROWS_MAX_TILES on. */
ExprId rows_stand_in(Graph *g, const Rows *r, unsigned k);
/* A task, whose lanes are [begin, end): of a block of threads; of a processor (turn.c). */
void rows_run_squares(RowBuild *b, ValId begin, ValId end);
void rows_run_tile(RowBuild *b, ValId begin, ValId end);

/* --- what rows share (keep.c) --- */
/* How many values of the blocked axis a task has, of so many strips a row. */
ExprId rows_kept_rows(Graph *g, const Rows *r, ExprId strips);
/* Loads it, at the strip's vector. */
void rows_load_kept(RowBuild *b);

/* --- many columns at once (wide.c) --- */
/* Before anything runs, says whether columns are folded that way. */
void rows_declare_wide(RowBuild *b);
/* All phases of the row's columns begin..end, which are whole groups of vectors. */
void rows_run_wide(RowBuild *b, ValId begin, ValId end);

/* --- what a strip's vectors share (early.c) --- */
/* Before anything runs; before the vectors, with the row at its place; at a vector. */
void rows_declare_early(RowBuild *b);
void rows_read_early(RowBuild *b);
void rows_fetch_gathered(RowBuild *b);

/* --- numbers of gathered rows (lists.c) --- */
/* Before anything runs, after all other buffers. */
void rows_declare_lists(RowBuild *b);
bool rows_has_lists(const RowBuild *b, unsigned phase);
/* The phase's last loop by parts, whose turns read from lists: part runs iterations range[0]..range[1] of lo..hi. */
typedef void RowsPartFn(RowBuild *b, unsigned phase, unsigned level, ValId position, const ValId *range);
void rows_run_lists(RowBuild *b, unsigned phase, ValId position, ValId lo, ValId hi, RowsPartFn *part);

/* --- conditions that leave out one index (hole.c) --- */
/* The index of the loop over this axis that some fold of the phase leaves out; 0: none. */
ExprId rows_hole(const RowBuild *b, unsigned phase, unsigned axis);
/* The phase's conditions become what they are elsewhere; `kept` has them for later. */
typedef struct {
	ExprId guard[ROWS_MAX_MEMBERS], domain[ROWS_MAX_MEMBERS];
} RowConditions;
void rows_leave_hole(RowBuild *b, unsigned phase, unsigned axis, ExprId hole, RowConditions *kept);
void rows_mind_hole(RowBuild *b, const RowConditions *kept);

/* --- folds that are gone through together (once.c) --- */
void rows_declare_once(RowBuild *b);
/* Whether the phase is of such; then all of it, with the first of them all others' folds. */
bool rows_goes_by(const RowBuild *b, unsigned phase);
void rows_run_once(RowBuild *b, unsigned phase);

/* --- a row's last phase (trail.c) --- */
/* Whether rows are left with it to do while the next ones run. */
bool rows_trail(const RowBuild *b);
/* Rows lo..hi. */
void rows_run_trail(RowBuild *b, ValId lo, ValId hi);
/* Of the row before, if there is one, the elements from..to of its last phase: whole vectors side by side, or the end, which they
 * leave. */
void rows_run_behind(RowBuild *b, ValId from, ValId to, bool end);

/* --- folds across rows (across.c) --- */
/* All rows of a part, which is the task. */
void rows_run_across(RowBuild *b, ValId part);

/* --- vectors of a row as tasks (post.c) --- */
ExprId rows_posted_tasks(const RowBuild *b, ExprId rows);
/* The memory for it, of a kernel of so many tasks. */
void rows_declare_posts(RowBuild *b, ExprId rows, ExprId ntask);
/* Goes to the task's vector; returns its row. */
ValId rows_enter_vector(RowBuild *b, ValId task);
/* The steps before the task's vector; 0 where it has all. */
ValId rows_before_lanes(const RowBuild *b);
/* What the vectors before the task's have of m, whose own fold is posted; all are scalars. */
Reduction rows_before_vector(RowBuild *b, const RowMember *m, const Reduction *unit, const Reduction *own);

/* --- scans down columns (steps.c) --- */
/* How many steps of the phase's loop at this level are taken at once; 1: one, like all other loops' iterations. */
unsigned rows_steps_at_once(const RowBuild *b, unsigned phase, unsigned level);
/* Iterations range[0] to range[1] of range[2] to range[3], which are a multiple of so many steps. */
void rows_run_steps(RowBuild *b, unsigned phase, unsigned level, const ValId *range, unsigned steps);

/* --- scans down few columns (split_steps.c) --- */
/* The shared memory, after all other buffers; then all steps of the one phase's one loop. */
void rows_declare_split(RowBuild *b);
void rows_run_split(RowBuild *b);

/* --- reads in advance (next.c) --- */
/* Behind the terms of a held row's phase, whose one loop, over this axis, goes from base to end: the reads of those up to
 * the next that folds. */
void rows_read_next(RowBuild *b, unsigned phase, unsigned axis, ValId base, ValId end);

/* --- positions of 32 bits (near.c) --- */
/* Whether each position that the phase folds is that of a term of 32 bits, and known to be there; then the loop, in parts. */
bool rows_may_be_near(const RowBuild *b, unsigned phase);
void rows_run_near(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer);

/* --- columns that are held (columns.c) --- */
/* The lanes whose columns, of those from `begin` on, are before `end`. */
ValId rows_columns_of(RowBuild *b, ValId begin, ValId end);
/* A phase's one loop, as one vector of all rows. */
void rows_run_columns(RowBuild *b, unsigned phase);
/* Those lanes that store what a column has one of. */
ValId rows_first_row(RowBuild *b);
/* Of each lane, which of the rows of lanes it is in. */
ValId rows_lane_row(RowBuild *b);

/* --- phases (phase.c) --- */
/* One iteration: every member, for each of the copies. What the range tells, behind the loop. */
void rows_phase_point(RowBuild *b, unsigned phase, unsigned lane_axis, ValId base, ValId position);
void rows_put_touched(RowBuild *b, unsigned phase, ValId lo, ValId hi);
/* All phases of the row, or of ncopy vectors of rows, at the point; but for the last one, where rows trail. */
void rows_run_phases(RowBuild *b, unsigned ncopy);
void rows_run_phase(RowBuild *b, unsigned phase);
/* How many vectors of a phase are side by side; where its members' values are, while it runs or after; from..to of its one
 * loop, which carries nothing: whole vectors side by side, or the end, which they leave. */
unsigned rows_phase_copies(const RowBuild *b, unsigned phase);
void rows_set_where(RowBuild *b, unsigned phase, bool inside);
void rows_run_vectors(RowBuild *b, unsigned phase, ValId from, ValId to, bool end);
/* The parts of a phase with one loop, of folds only, at the point: the ends of its loop; some of its iterations, range[0]
 * to range[1] of range[2] to range[3]; what comes after the last. */
void rows_loop_ends(RowBuild *b, unsigned phase, ValId *lo, ValId *hi);
/* How many folds of member k the phase carries; all its accumulators as the values that its loops carry, and back. */
unsigned rows_carried_folds(const RowBuild *b, unsigned phase, unsigned k);
unsigned rows_pack_phase(RowBuild *b, unsigned phase, ValId *carried);
void rows_unpack_phase(RowBuild *b, unsigned phase, ValId *carried);
/* Iterations range[0] to range[1] of range[2] to range[3], in steps of `copies` vectors; outer: the position of the loops
 * outside. */
void rows_vector_loop(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer, bool masked);
/* Whether some fold of the phase wants positions; that of an iteration i of lo..hi, row-major over the loops so far. */
bool rows_wants_position(const RowBuild *b, unsigned phase);
ValId rows_next_position(RowBuild *b, unsigned phase, ValId outer, ValId i, ValId lo, ValId hi);
void rows_begin_folds(RowBuild *b, unsigned phase);
void rows_fold_turns(RowBuild *b, unsigned phase, const ValId *range);
void rows_finish_folds(RowBuild *b, unsigned phase, ValId lo, ValId hi);

#endif
