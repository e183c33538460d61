/* strips.h: a contraction with few rows, or few columns, by the matrix instructions of a GPU's warps:
 * strips.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_STRIPS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_STRIPS_H

#include "passes/schedule/contract/contract.h"
#include "passes/schedule/point/early_reads.h"

/* Whether node t is of that kind, wherever its tensors will live, for some sizes at least. */
bool contract_strips_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* The factor of node t that is read once, and computed at once where it is read, as the other one is known to have few rows;
 * 0: there is none. */
ExprId contract_strips_long(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
enum { STRIPS_MOST_PLANS = 3 };
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
	STRIPS_GROUP = 64,    /* terms that have a scale in common */
	STRIPS_MOST_VALUES = STRIPS_ROWS * STRIPS_MOST_TERMS
};

/* The long side's factor as a product: one that the matrix instructions take, exactly, and what is the same for a group of
 * terms, by which sums of them are multiplied. */
typedef struct {
	ExprId exact;
	unsigned n;
	ExprId at[STRIPS_SCALES];
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

typedef struct {
	Point l;
	const KernelPlan *plan;
	StripFactor side[2];   /* the long one, the few */
	StripScales scales;
	unsigned term_axis, terms; /* terms of a lane, of a chunk */
	bool nibbles;          /* two of a word's, of a pair that is multiplied together, are half a word apart */
	unsigned tiles, few_tiles; /* of a warp: of 16 and of 8 */
	ExprId nlong, nfew, nterm;
	ValId thread, lane, warp, quad, lane_row; /* of a lane: its number in its quad, the quad's */
	ValId first, across, down; /* of the task's strip; which of its warps along the long side, along the terms */
	ValId staged;          /* a view of shared memory */
} Strips;

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
/* Warps of a block along the long side, and along the terms. */
static inline unsigned
strips_width(const Strips *s)
{
	return s->plan->block_columns / (STRIPS_ROWS * 8);
}
static inline unsigned
strips_depth(const Strips *s)
{
	return s->plan->threads / (unsigned)TIR_WARP / strips_width(s);
}

/* Whether the factor is a product of one that is exact in type t, and scales, at least one (strips_scale.c). */
bool strip_scales_find(const Graph *g, Arena *scratch, ExprId factor, unsigned term_axis, DType t, StripScales *out);
/* The scales of the lane's rows for the chunk that begins with this term. */
void strip_scales_read(Strips *s, ValId term, ValId *scale);
/* Adds the chunk's sums, by their scales, to those of all; where `there` is not 0, if it holds. */
void strip_scales_add(Strips *s, const ValId *scale, const ValId *sums, ValId there, ValId *acc);

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
/* Element (row, term) of what was read; `there`, if it is not 0: else 0. */
ValId strip_factor_element(Strips *s, StripFactor *f, unsigned row, unsigned term, ValId from, ValId there);

/* What is made of the warps' sums (strips_finish.c): by tile, few tile, element of a lane. */
void strips_bind_staged(Strips *s);
void strips_finish(Strips *s, ValId *acc);

#endif
