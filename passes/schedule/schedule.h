/* schedule.h: the templates and what they share of a node: its fold and its loops. */
#ifndef TEXO_PASSES_SCHEDULE_SCHEDULE_H
#define TEXO_PASSES_SCHEDULE_SCHEDULE_H

#include "passes/cost/work_count.h"
#include "passes/expr_map.h"
#include "passes/pass_ctx.h"
#include "passes/schedule/point/point.h"

/* Each template fills kernel->tir (made by the caller), its binds, ntask, serial and grain, from
 * kernel->plan. */
void nest_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
struct IndexTask;
void scatter_build(Point *l, TensorId t, const struct IndexTask *task);
void index_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
void rows_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
void contract_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);
void stream_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);

bool contract_is_sum_of_products(const Graph *g, TensorId t);
/* Whether CONTRACT takes such a node t, and p then has its parameters; else why not. */
bool contract_takes(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o,
                    KernelPlan *p, RemarkId *why);
/* How often the panels of CONTRACT's kernel of node t by this plan evaluate its factors: contract/panels.c. NULL: it has no
 * two factors. */
const WorkPanels *contract_panels(Graph *g, Arena *a, const bool *faulty, TensorId t, const KernelPlan *plan);
/* Whether the plan's products are of f32 that is rounded (tf32). */
bool contract_rounds(const KernelPlan *plan);
/* Whether a sum of products has a kernel of tiles on this target, for some sizes at least. */
bool contract_has_tiles(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* The same of a fold of pairs (contract/pair_terms.c) of what the program is given: of what it computes, and where pairs are folded on,
 * a kernel with the rest may be better. */
bool contract_pairs_have_tiles(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* The pointwise node y, which reads x at its own point, as the reduction x with a longer finish (passes/fuse/epilogue.c). */
Node epilogue_finished(Graph *g, Arena *scratch, TensorId x, const Node *y);
/* Whether a scatter folds into its output itself, rather than into a plane aside. */
bool scatter_is_direct(const Graph *g, const Node *n);
/* Whether e reads t at the point itself: t[axis 0, axis 1, ...]. */
bool reads_own_point(const Graph *g, ExprId e, TensorId t);

/* Where tensors live when node t is computed by kernel unit[t], those from nunit on by one of their own; apart[t]: what another
 * node reads of t it reads from memory, though they share a kernel (find_places.c). */
Places places_find(const Graph *g, Arena *scratch, const uint32_t *unit, uint32_t nunit, const bool *apart);

/* Before ordering (place_results.c): every result gets a node of its own. */
void own_results(Graph *g, PassCtx *cx);
/* After: unit[t] is the place in launch order of the kernel that computes node t; in_place says of a
 * kernel of several nodes whether it may write a result over the inout's old value. Adds a copy node, to be
 * launched after all units, for each inout that can't be written where it is computed. */
typedef bool InPlaceFn(void *user, const Result *r);
void stage_inouts(Graph *g, PassCtx *cx, const uint32_t *unit, InPlaceFn *in_place, void *user);

/* Kernels that do not depend on one another become one (bundle.c). */
void bundle_kernels(Program *p, Arena *scratch);

/* Kernel.grain where a task computes `elements` elements of each of the plan's nodes: tasks that are some
 * 20 microseconds of work together (grain.c). */
ExprId task_grain(Graph *g, Arena *scratch, const KernelPlan *plan, ExprId elements);
/* a over b, rounded up: contract/space.c. */
ExprId launch_ceil_div(Graph *g, ExprId a, int64_t b);
/* The product of t's extents. */
ExprId element_count(Graph *g, TensorId t);

/* --- folds (reduction/reduction.c) --- */
typedef struct {
	Monoid monoid;
	DType type;       /* in which it accumulates */
	bool fma;         /* strict mode: a sum of products takes one fma a term */
	bool asks_touched;  /* finish asks whether a term arrived */
	bool wants_touched, may_fail, may_cut;
	bool range_tells; /* touched is what the range says: nothing carries it (rows/phase.c) */
	ValId re, im, position, touched, fail, cut;
	bool searched;    /* re is the lanes' terms, and touched whether they have one (reduction/search.c) */
	bool by_group;    /* a thread's lanes side by side have terms together */
	ValId other, third; /* of an extreme by rank.c, beside re; else 0 */
	ValId factor;        /* of steps of a linear recurrence (reduction/linear.c), beside re; else 0 */
} Reduction;

enum { REDUCTION_MAX_CARRIED = 9 };
/* Where what f carries is, or may be: 0 where it does not. */
void reduction_each(Reduction *f, ValId **all);

/* What a fold of no node carries, at its start: nothing but the value. */
Reduction reduction_of(Point *l, Monoid m, DType t);
/* What folding the entered node carries, at its start. */
Reduction reduction_begin(Point *l);
unsigned reduction_pack(const Reduction *f, ValId *carried);
void reduction_unpack(Reduction *f, const ValId *carried);
/* Joins the words of a value that the fold demanded. */
void reduction_join(Point *l, Reduction *f, PointVal from);
/* Takes the body at the current point as one more term, at this position; always as for point_value. */
void reduction_term(Point *l, Reduction *f, ValId position, bool always);
/* The same of a body that stands for the node's. */
void reduction_term_of(Point *l, Reduction *f, ExprId body, ValId position, bool always);
/* --- the same for vectors (reduction/lanes.c): an accumulator a lane --- */
/* Makes every accumulator a vector of the point's lanes. */
void reduction_widen(Point *l, Reduction *f);
/* A term in the lanes where keep holds; keep 0: in all. */
void reduction_term_where(Point *l, Reduction *f, ValId position, ValId keep, bool always);
/* f joined with g, whose terms are others, before f's if that matters: to steps of a linear recurrence alone; for max, min and
 * arg their positions decide between equals. */
void reduction_merge(Point *l, Reduction *f, const Reduction *g);
/* The lanes of f joined into one accumulator. */
void reduction_across(Point *l, Reduction *f);
/* Those of rows of columns into one row, which all rows then have. */
void reduction_across_rows(Point *l, Reduction *f);
/* The same where they have so many lanes. */
void reduction_join_lanes(Point *l, Reduction *f, unsigned lanes);
/* Of a block's threads, those of each into one: what is left has a lane for each thread. */
void reduction_join_in_threads(Point *l, Reduction *f, unsigned lanes);
/* Lanes of a block's threads, one each, into one, in their order; unit is a scalar, which those behind `lanes` have all
 * (reduction/block.c). */
void reduction_join_in_order(Point *l, Reduction *f, const Reduction *unit, unsigned lanes);
/* The lanes of f as folds of themselves and all lanes before them, or after them with reverse; unit is
 * f without terms. */
void reduction_prefix(Point *l, Reduction *f, const Reduction *unit, bool reverse);
/* The same of a block's vector, from what came before it, `carry`, on, which becomes what came in all; carry and unit
 * are scalars (reduction/block.c). */
void reduction_prefix_block(Point *l, Reduction *f, const Reduction *unit, Reduction *carry, bool reverse);
/* The same in two steps, where what came before is known later than what the vector has: `all`, as scalars. Of few
 * lanes a thread; its buffers are declared after all that are handed over. */
enum { REDUCTION_TILE_LANES = 32, REDUCTION_TILE_SUMS = 16 }; /* a thread's; those that it adds up */
typedef struct {
	Point *l;
	unsigned parts, group, sums, carried; /* sums: of a part's warps, one each */
	bool reverse;
	Reduction units, own[REDUCTION_TILE_LANES], before[REDUCTION_TILE_LANES], all;
	ValId sum[REDUCTION_MAX_CARRIED], start[REDUCTION_MAX_CARRIED]; /* views of shared memory */
} ReductionTile;
void reduction_tile_declare(Point *l, const Reduction *unit, ReductionTile *t);
void reduction_tile_begin(ReductionTile *t, const Reduction *f, const Reduction *unit, bool reverse);
Reduction reduction_tile_end(ReductionTile *t, const Reduction *before);
/* Lane k of every accumulator; and in all lanes. */
Reduction reduction_lane(Point *l, const Reduction *f, unsigned k);
Reduction reduction_spread(Point *l, const Reduction *f, unsigned k);
/* --- linear recurrences (reduction/linear.c) --- */
/* Steps that are joined, at the start: none. `state` has the monoid and the type of a state. */
Reduction reduction_linear_begin(Point *l, const Reduction *state);
/* A step of a state. */
void reduction_linear_step(Point *l, Reduction *state, PointVal factor, PointVal term);
void reduction_linear_merge(Point *l, Reduction *f, const Reduction *g);
/* n steps in a row, the last first with reverse, joined; and the state after each, in its place, from one before them. */
Reduction reduction_linear_join(Point *l, const Reduction *unit, const Reduction *step, unsigned n, bool reverse);
void reduction_linear_steps(Point *l, const Reduction *begin, Reduction *step, unsigned n, bool reverse);
/* --- max and min of floats in parts that take an operation a term (reduction/rank.c) --- */
/* Makes the fold, at its start, one of those, if it is of that kind. */
void reduction_rank(Point *l, Reduction *f);
void reduction_rank_term(Point *l, Reduction *f, ValId x);
void reduction_rank_merge(Point *l, Reduction *f, const Reduction *g);
ValId reduction_rank_end(Point *l, const Reduction *f);

/* --- arg by a search for the extreme (reduction/search.c) --- */
/* Makes the fold, at its start, one that searches, if it is an arg: of a block's lanes that have a term each at most,
 * at the position that is the lane's number. */
void reduction_search(Reduction *f);
void reduction_search_across(Point *l, Reduction *f);

/* Takes v as one more term. */
void reduction_value(Point *l, Reduction *f, PointVal v, ValId position);
/* The folded value, in the type of reduction_type. */
PointVal reduction_end(Point *l, const Reduction *f);
DType reduction_type(const Graph *g, const Node *n);

/* --- one element (point/element.c) --- */
/* The value of the node entered, at the point l->axis[0..npar): domain, loops, guard, fold, finish. */
PointVal element_value(Point *l);
/* The fold alone of a node that has one, whatever its domain is. */
PointVal element_fold(Point *l);
/* What finish makes of the folded value, which has the type of reduction_type (of the body without a
 * monoid); always as for point_value. */
PointVal element_finish(Point *l, PointVal folded, ValId touched, bool always);
/* The range of reduced axis a, cut where it must be; words joins what evaluating it met; always as for
 * point_value. */
void element_range(Point *l, unsigned a, ValId *lo, ValId *hi, PointVal *words, bool always);
/* One term at the current point, where the guard holds: a branch. always: the guard is demanded. */
void element_term(Point *l, Reduction *f, ValId position, bool always);
/* 0, or the constant true. */
bool expr_is_true(const Graph *g, ExprId e);
/* c ? v : nothing, for values that only exist inside: opens a region; `end` closes it. */
typedef struct {
	uint32_t mark;
} Branch;
Branch branch_open(Point *l, ValId cond);
/* v of the branch, or zero of the dtype without a fault. */
PointVal branch_close(Point *l, Branch b, DType dtype, PointVal v);
/* v of the node entered where its domain holds, else zero: for vectors. */
PointVal element_where(Point *l, PointVal v);

#endif
