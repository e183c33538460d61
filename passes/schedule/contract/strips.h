/* strips.h: a contraction with few rows, or few columns, by the matrix instructions of a GPU's warps:
 * strips.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_STRIPS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_STRIPS_H

#include "passes/schedule/contract/boxes.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/point/early_reads.h"

/* Whether node t is of that kind, wherever its tensors will live, for some sizes at least. */
bool contract_strips_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* The factor of node t that is read once, and computed at once where it is read, as the other one is known to have few rows;
 * 0: there is none. */
ExprId contract_strips_long(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
enum { STRIPS_MOST_PLANS = 3 + 16 };
/* How many kernels of strips compute node t, each where its sizes and memory suit; plan then has their parameters. */
unsigned contract_strips_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan);
void contract_strips_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o);
static inline bool
contract_is_strips(const KernelPlan *p)
{
	return p->threads && p->pairs && p->lanes;
}

/* --- for the files of this template --- */

enum {
	STRIPS_ROWS = 8,      /* of the long side, that a lane has a share of: 64 of a warp */
	STRIPS_MOST_TERMS = 16, /* of a lane, of a chunk */
	STRIPS_MOST_FEW_TILES = 4,
	STRIPS_MOST_SUMS = STRIPS_ROWS / 2 * STRIPS_MOST_FEW_TILES * 4,
	STRIPS_SCALES = 4,
	STRIPS_FACTORS = STRIPS_SCALES + 2, /* of a term */
	STRIPS_GROUP = 64,    /* terms that have a scale in common, at least; */
	STRIPS_RING_GROUP = 32, /* where they come through a ring */
	STRIPS_MOST_VALUES = STRIPS_ROWS * STRIPS_MOST_TERMS
};

/* The long side's factor as a product: one that the matrix instructions take, exactly, and what is the same for a group of
 * terms, by which sums of them are multiplied. */
typedef struct {
	ExprId exact;
	unsigned n, group;     /* group: so many terms, from a multiple on, have the scales in common */
	ExprId at[STRIPS_SCALES], made[STRIPS_SCALES]; /* made: with stand-ins for what is read */
	EarlyReads reads;
} StripScales;

/* A factor: of the long side or of the few. A lane has elements (row, term) of it, in groups along the terms or along
 * its own axis. */
typedef struct {
	ExprId value, made;    /* with stand-ins for what is read, of 16 bits */
	DType dtype;
	unsigned own_axis, rows;
	bool along_terms;
	bool once;             /* no other block reads it */
	EarlyReads reads;
	ValId own[STRIPS_ROWS]; /* the own index of each row, inside the tensor */
	ValId raw[EARLY_READS][STRIPS_MOST_VALUES]; /* by row and term */
} StripFactor;

typedef struct StripRing StripRing;

/* What of memory a lane's rows take beside their elements, that terms have in common (strips_beside.c). */
typedef struct {
	unsigned groups, axis; /* of terms, that are read at once: along this axis, if they are more than one */
	ExprId of[2][EARLY_READS]; /* by scales, by the factor: the read along it; 0: as it is */
} StripBeside;
enum { STRIPS_MOST_GROUPS = 4 };
typedef ValId StripBesideValues[2][EARLY_READS][STRIPS_ROWS][STRIPS_MOST_GROUPS];

typedef struct {
	Point l;
	const KernelPlan *plan;
	StripFactor side[2];   /* the long one, the few */
	StripScales scales;
	StripBeside beside;
	unsigned term_axis, terms; /* terms of a lane, of a chunk */
	bool nibbles;          /* two of a word's, of a pair that is multiplied together, are half a word apart */
	unsigned tiles, few_tiles; /* of a warp: of 16 and of 8 */
	ExprId nlong, nfew, nterm; /* extents */
	ValId thread, lane, warp, quad, lane_row; /* of a lane: its number in its quad, the quad's */
	ValId long_row;        /* of the long side's 8 rows side by side, which is the quad's */
	ValId first, few0, across, down; /* of the task's strip, and of the few; which of its warps along the long side, along the terms */
	/* Warps that join their sums: along the long side, along the terms; of how many there is room for them in shared memory */
	unsigned width, depth, room;
	unsigned blocks;       /* which join theirs; else 1 */
	unsigned together, finishers; /* of the long side, so much is finished by so many threads, among which this one has a number */
	ValId finisher, rank, group;  /* of the block among those; of the thread's, where there is a ring */
	ValId staged;          /* a view of it */
	StripRing *ring;       /* NULL: factors are read where they are */
} Strips;

/* The factors of a node by its axes, as strips take them (strips.c). */
typedef struct {
	StripFactor side[2];
	StripScales scales;
	Factors f;             /* the long one is 0 where it is some factors of the term, which stand apart */
	bool few_columns;
	unsigned nlong;
	ExprId of_long[STRIPS_FACTORS];
} StripProduct;

static inline ValId
strips_int(Strips *s, int64_t v)
{
	return tir_int(s->l.tir, DT_I64, v);
}
static inline ValId
strips_op(Strips *s, Op o, ValId a, ValId b)
{
	return tir_binary(s->l.tir, o, a, b);
}

/* Of a task: the strip's place and the batch's; with those of the warp's rows in it. */
void strips_place_task(Strips *s, ValId task);
void strips_enter_task(Strips *s, ValId task);
/* Over dims: 1 where the sizes are some that the plan takes, else 0; how many strips there are, those of each tile of the few. */
ExprId strips_suit(Strips *s);
/* Over dims: 1 where e is a multiple of so many, and where it is more, else 0. */
ExprId strips_are_multiple(Graph *g, ExprId e, int64_t of);
ExprId strips_are_more(Graph *g, ExprId e, ExprId than);
ExprId strips_count(Strips *s);
/* What tasks are counted by, as numbers of the launch, before any region wants one. */
void strips_launch(Strips *s);
/* What was read of a chunk, whose lane's terms begin at `from`, multiplied and added to the sums. `there`: if it is not 0, where it
 * holds, and the others are 0; some: the chunk has a term, if it is not 0. */
void strips_multiply(Strips *s, ValId from, ValId there, const ValId *scale, ValId some, ValId *acc);

/* --- through a ring (strips_ring.c) --- */
bool strips_ring_could(const Graph *g, const Node *n, const PassOptions *o, const StripProduct *p);
/* Whether whatever number of terms suits it: the long side's factor is a finite number of what is beyond the last one, which is 0.
 * Then it takes all that would be read where it is. */
bool strips_ring_takes_any(const Graph *g, const StripProduct *p);
unsigned strips_ring_take(const Graph *g, Arena *scratch, TensorId t, const StripProduct *p, KernelPlan *plan);
static inline bool
strips_have_ring(const KernelPlan *p)
{
	return p->threads / TIR_GROUP % 2 == 1; /* with one group that loads */
}
/* The node is entered, and what all strips have is set. */
void strips_ring_build(Strips *s, Kernel *kernel, const StripProduct *p);
/* Elements side by side of the factor's row, from this term of the lane's on, of the present chunk of the fill: a vector. */
ValId strips_ring_elements(Strips *s, const StripFactor *f, unsigned row, unsigned term, unsigned n);

/* --- scales (strips_scale.c) --- */
/* Whether these factors are one that is exact in type t, and scales, at least one, which terms have in common. */
bool strip_scales_find(const Graph *g, Arena *scratch, const ExprId *factor, unsigned n, unsigned term_axis, DType t, StripScales *out);
/* Appends e's factors, or e itself; false: they are too many. */
bool strip_factors_list(const Graph *g, ExprId e, ExprId *at, unsigned *n);
void strip_scales_declare(Strips *s);
/* The scales of the lane's rows for the chunk that begins with this term. */
void strip_scales_read(Strips *s, ValId term, ValId *scale);
/* One row's, from the values of what they read. */
ValId strip_scale_of(Strips *s, unsigned row, ValId term, const ValId *read);
/* Adds a tile's sums of the chunk, by the scales of its two rows of the lane's, to those of all; where `there` is not 0, if it holds. */
void strip_scales_add(Strips *s, const ValId *scale, const ValId *sums, ValId there, ValId *acc);

/* --- what stands beside (strips_beside.c) --- */
/* Whether all that is read beside the elements goes by the same groups of terms, which lie one behind another, and so many of
 * them fill no more than one access. */
bool strip_beside_goes_by_groups(const Graph *g, Arena *scratch, const StripProduct *p, unsigned term_axis, unsigned groups);
void strip_beside_declare(Strips *s, unsigned groups);
/* Of so many groups from the one that this term is in. `from`: the lane's own first term. */
void strip_beside_read(Strips *s, ValId term, ValId from, StripBesideValues to);

/* --- factors (strips_factor.c) --- */
/* The factor `value` of node n, as type t, which has this axis of its own; whether it can be had in groups along the terms
 * or, with `turns`, along that axis. */
bool strip_factor_find(const Graph *g, Arena *scratch, const Node *n, ExprId value, DType t, unsigned own_axis, bool turns, StripFactor *f);
bool strip_factor_has_nibbles(const Graph *g, const StripFactor *f);
/* Terms of a lane that fill its accesses. */
unsigned strip_factor_terms(const Graph *g, const StripFactor *f);
void strip_factor_declare(Strips *s, StripFactor *f);
/* Where the lane's rows are, whose first one is `first` among `count`. */
void strip_factor_enter(Strips *s, StripFactor *f, ValId first, ExprId count);
/* Reads all that the chunk at the point takes; its terms begin at `term`. */
void strip_factor_read(Strips *s, StripFactor *f, ValId term);
/* The same where the elements come through a ring; of what is read where it is, this group's. */
void strip_factor_take(Strips *s, StripFactor *f, ValId from, ValId once[][STRIPS_ROWS][STRIPS_MOST_GROUPS], unsigned group);
/* Of a factor along the terms, 8 terms of each row: those from 8 n on. */
void strip_factor_read_word(Strips *s, StripFactor *f, unsigned n, ValId term);
/* Element (row, term) of what was read; `there`, if it is not 0: else 0. */
ValId strip_factor_element(Strips *s, StripFactor *f, unsigned row, unsigned term, ValId from, ValId there);

/* What is made of the warps' sums (strips_finish.c): by tile, few tile, element of a lane. */
void strips_bind_staged(Strips *s);
uint32_t strips_staged_bytes(const Strips *s);
void strips_finish(Strips *s, ValId *acc);

#endif
