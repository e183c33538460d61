/* convert.h: moving a tile from one register layout to another, as a plan of steps.
 *
 * A plan is for every lane of a block alike. A lane has `nreg` element registers: the source's by their
 * numbers from 0, then the result's from `result`; steps run in order, and each reads before it writes.
 * Lanes and warps enter only by xor: what a step says for lane l of warp w is
 *     xor of lane[i] over the bits of l, xor of warp[i] over the bits of w, xor the entry's own number.
 *
 * Classes, cheapest first:
 *   RENAME   every lane has its elements already
 *   SHUFFLE  the elements stay in their warp: exchanges among registers, then one shuffle a register of
 *            the result, then exchanges. C = dst^-1 src as [A B; C D] over register and lane bits factors
 *            into these three because E can be chosen so that D + C E is as regular as can be.
 *   MATRIX   through shared memory, by stmatrix or ldmatrix on at least one side
 *   MEMORY   through shared memory by vectors
 *
 * The scratch is a basis of the tile's coordinates in the order vector, bank, segment: the vector is what
 * both sides have in registers (or a row of an 8 x 8 matrix), and the segments, which share banks, are
 * chosen away from what the lanes of one access reach: sums of one coordinate that only the source's
 * lanes have and one that only the result's have. Registers common to both sides, and the mixed digits,
 * are gone through in passes, so the scratch holds `scratch` elements only. */
#ifndef TEXO_IR_CONVERT_H
#define TEXO_IR_CONVERT_H

#include "ir/layout.h"

typedef enum { CONVERT_RENAME, CONVERT_SHUFFLE, CONVERT_MATRIX, CONVERT_MEMORY } ConvertClass;

typedef enum {
	STEP_MOVE,        /* reg[i] = from[i] */
	STEP_EXCHANGE,    /* reg[2i] and reg[2i + 1] change places in lanes with an odd number of `mask` bits */
	STEP_SHUFFLE,     /* reg[i] = from[i] of the lane that the step says, at[i] the entry's number */
	STEP_STORE,       /* scratch[offset ..+ width] = reg[i * width ..+ width] */
	STEP_LOAD,
	STEP_STORE_MATRIX, /* width 8 x 8 matrices of 16-bit items an entry; lane 8 m + r says where row r of */
	STEP_LOAD_MATRIX,  /* matrix m is: 16 bytes. reg: for each matrix the elements of one 32-bit register */
	STEP_BARRIER      /* what was stored is there, what was loaded may be overwritten */
} ConvertStepKind;

typedef struct {
	ConvertStepKind kind;
	uint32_t n;     /* entries */
	uint32_t width; /* STORE, LOAD: elements; the matrix moves: matrices, 1, 2 or 4 */
	uint32_t *reg;
	uint32_t *from; /* MOVE, SHUFFLE */
	uint32_t *at;   /* SHUFFLE, and the moves to and from scratch (offsets in elements) */
	uint32_t lane[LAYOUT_BITS], warp[LAYOUT_BITS];
	uint32_t mask;  /* EXCHANGE */
	bool trans;     /* the matrix moves */
	bool block;     /* BARRIER: of the block, else of the warp */
	uint32_t wavefronts, groups; /* of one entry in one warp: as predicted, and the least there could be */
} ConvertStep;

typedef struct {
	unsigned bits;          /* of an element: 8, 16, 32 or 64 */
	bool shuffle;           /* there are lane shuffles */
	bool store_matrix, load_matrix;
	uint32_t scratch_bytes; /* how much the scratch may take; passes keep it below where they can */
} ConvertMeans;

typedef struct {
	ConvertClass cls;
	uint32_t cost;          /* estimated quarter-cycles a warp */
	uint32_t nreg, result;
	uint32_t scratch;       /* elements */
	VEC(ConvertStep) step;
} ConvertPlan;

/* NULL, with the reason, when there is none: other shapes, an axis of another size, elements that
 * must change blocks. Both layouts verify and keep their elements in registers. */
const ConvertPlan *layout_convert(Arena *a, const Layout *src, const Layout *dst, const ConvertMeans *means,
                                  const char **error);

#endif
