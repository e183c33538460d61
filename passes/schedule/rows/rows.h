/* rows.h: how several nodes share a kernel that computes them row by row.
 *
 * A row is a point of some axes that all members have, their row axes. What is left of a member's
 * axes, and its reduced ranges, are loops inside the row. A member without loops of its own is a value
 * of the row; a reduction over them too, once they have run; any other member is a row of values.
 *
 * A fold whose range ends at an axis of its own result is a scan of that axis (prefixes.h): a row of values,
 * each one term more than the one before, so that its loop carries what is folded so far.
 *
 * So is a linear recurrence of blocks of threads (linear.h), whose fold so far is multiplied before each term.
 *
 * The members of any other recurrence with one sequential axis take its steps together: the rest of their axes are
 * rows, so what they read of earlier steps is in memory, in their own rows. They share a kernel with
 * nothing else.
 *
 * Members are computed in phases. A phase is a nest of loops shared by its members; within an
 * iteration a member may read what another computed for the same point. What needs a member's
 * complete row or its folded value comes in a later phase.
 *
 * A row of values with ranges of its own folds each of them in a loop of its own, inside the phase's. But
 * where another member's row is folded, or the values are known to be few, vectors run along that range: then
 * it is a loop of the phase, inside those of the row's own axes. Values known to be very few are folded side
 * by side, in one loop, which is then that of a folded value and can be shared with the row that is folded.
 *
 * A fold over parts of the rows (Node.parts), of blocks of threads, shares a kernel with them: a task is then a
 * part, and takes all of its rows in turn (across.c).
 *
 * On a processor the last phase of a row may run while the next row does (trail.c).
 *
 * Vectors run along the innermost loop of a phase, with sums kept by lane and joined at its end; or
 * along the last row axis, each lane a row. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_ROWS_H
#define TEXO_PASSES_SCHEDULE_ROWS_ROWS_H

#include "ir/kp.h"
#include "passes/pass_ctx.h"

enum { ROWS_MAX_MEMBERS = 24, ROWS_MAX_PHASES = 32, ROWS_MAX_SIDE = 4, ROWS_NO_AXIS = 0xff, ROWS_BLOCK_LANES = 32,
       ROWS_MAX_TILES = 4, ROWS_MAX_KEPT = 4 };

typedef struct {
	ExprId lo, hi;   /* over row axes; of a member's own axis 0 and its extent */
	uint8_t nth;     /* among the loops with these ends of one member */
	bool lanes;
} RowLoop;

typedef struct {
	TensorId t;
	Node node;                   /* its expressions are over the region's axes: the rows', then the loops' */
	uint8_t axis[TG_MAX_AXES];   /* the region's axis of each of the node's */
	uint8_t phase;
	bool is_row;                 /* a row of values: it has axes of its own */
	bool folds_along;            /* whose ranges are loops of the phase */
	uint8_t side, side_axis;     /* of its one own axis so many values side by side; 0: it is a loop */
	bool scans, reverse;         /* along its one own axis, up or down */
	bool steps;                  /* a recurrence along it, which `reverse` tells as well */
	bool across;                 /* folds over the rows of its task */
	ExprId position, first;      /* of a scan's terms: their index, and where it counts from */
	bool stored;                 /* has a place in memory: a result, or read by another kernel */
	bool parked;                 /* which is for later phases alone */
	bool panel;                  /* is kept for later phases in memory of the call's own */
	bool streams;                /* no later phase reads what is stored */
	uint8_t npanel, panel_axis[TG_MAX_RANK];
} RowMember;

typedef struct {
	uint8_t nloop;
	uint8_t loop[TG_MAX_AXES];   /* the region's axes, outermost first; with lanes the last */
	uint8_t nown;                /* the first loops, at each of whose points its members fold anew */
	bool lanes;
	bool late;                   /* runs when its task's rows are done, and goes through them again */
	int8_t dir;                  /* of its loops: 1 up, -1 down, 0: its members take any */
	uint8_t copies;              /* vectors side by side, where they run along its last loop */
} RowPhase;

typedef struct {
	uint8_t nrow, nloop;
	ExprId extent[TG_MAX_RANK];  /* of the row axes */
	uint8_t row_axis[ROWS_MAX_MEMBERS][TG_MAX_RANK]; /* by member: its axis that is the k-th of the row */
	Template tmpl;               /* MAP, ROWRED, COLRED, FULLRED or SCAN, by its shape */
	bool lanes_by_row;           /* vectors run along the last row axis: MAP, COLRED, some of SCAN */
	RowLoop loop[TG_MAX_AXES];   /* region axis nrow + k */
	uint8_t block;               /* MAP: 1 + the row axis of which a task takes several values, or 0 */
	uint8_t ntile, tile_group;   /* with it: reads across the lanes that go through shared memory, or are turned in */
	ExprId tile[ROWS_MAX_TILES]; /* registers; how many lanes side by side a thread of a block then has */
	uint8_t large_side, large_group; /* the side of a large tile, 0: none; and the same of those that have one */
	uint8_t nkept;               /* of blocks of threads: reads that the blocked axis' values share, or, with tiles, */
	ExprId kept[ROWS_MAX_KEPT];  /* other reads: they come before the stores of several of its values */
	bool less_kept;              /* no more bits of an element than are read beside them */
	unsigned copies;             /* vectors side by side, the most of any phase's */
	unsigned turns;              /* COLRED of blocks: rows side by side */
	uint8_t trails, leads;       /* of a processor: a phase that a row runs while the next row runs phase `leads`; 0: none */
	unsigned ahead;              /* MAP: elements along the lanes that are fetched ahead; 0: none are */
	bool scans;                  /* some member does, or all are of a recurrence */
	uint8_t across;              /* the region's axis of the parts, if members fold across rows; else 0 */
	unsigned nmember, nphase;
	RowMember member[ROWS_MAX_MEMBERS];
	RowPhase phase[ROWS_MAX_PHASES];
} Rows;

/* Whether the loops of its phase fold m: into a value of the row, or into each of a row's. */
static inline bool
rows_is_folded(const RowMember *m)
{
	return m->node.nred > 0 && (!m->is_row || m->folds_along);
}

/* What the planner may ask of the graph and its use. By TensorId. */
typedef struct {
	const bool *stored; /* must be in memory */
	const bool *faulty;
	const bool *streams; /* if stored, better past the caches */
	uint16_t lanes;     /* vector lanes; 0: none */
	bool blocks, held;  /* of a GPU; KernelPlan.held */
} RowsFacts;

/* Whether the phase is one vector, of a row or of rows of columns: what it reads and computes is there for the next ones. */
static inline bool
rows_phase_is_held(const Rows *r, bool held, unsigned phase)
{
	return held && (r->phase[phase].lanes || r->lanes_by_row) && r->phase[phase].nloop == 1;
}

/* Whether node t can be a member at all. */
bool rows_takes(const Graph *g, TensorId t, uint16_t lanes, RemarkId *why);
/* Plans the kernel of these nodes, in topological order, for this template, or for the best of them
 * (TMPL_NONE); false with the reason. */
bool rows_plan(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n, Template tmpl,
               Rows *out, RemarkId *why);
/* Whether the kernel of these nodes, in this order, may write the result over the inout's old value. */
bool rows_write_in_place(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n,
                         const Result *result);

#endif
