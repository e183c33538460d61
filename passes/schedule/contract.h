/* contract.h: what the files of the CONTRACT template share. contract.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_H

#include "passes/schedule/schedule.h"

enum { CONTRACT_MAX_TILE = 64 }; /* accumulators */

/* The indices of some axes, in pieces of `width` for the registers: every index of the outer axes has
 * its own pieces of the innermost axis; where flat, all axes are counted through as if they were one. */
typedef struct {
	unsigned naxis, width;
	uint8_t axis[TG_MAX_AXES];   /* of the node, outermost first */
	bool flat;
	ExprId count[TG_MAX_AXES];   /* how many indices each has */
	ExprId npiece;
	/* as scalars of the kernel */
	ValId extent[TG_MAX_AXES], inner, per, pieces; /* inner: indices cut into `per` pieces */
	ValId from[TG_MAX_AXES];     /* of reduced axes: the first index */
} Space;

/* A node's body as a product: which factor gives rows of the output, which columns. */
typedef struct {
	ExprId row, column;
	uint32_t row_axes, column_axes; /* as bits */
	bool rows_along_terms;    /* the row factor's memory runs along the last reduced axis */
	bool columns_along_terms; /* the column factor's */
} Factors;

typedef struct {
	Point l;
	const KernelPlan *plan;
	Factors factors;
	Space batch, rows, columns, terms;
	Reduction fold;
	ValId start;              /* what accumulators start from: a vector */
	ValId some;               /* bool: there are terms */
	bool strided;             /* this code is for memory that does not run along the lanes: keep it short */
	/* how many blocks, and tasks along the rows; at most how many pieces a block has */
	ExprId nrow_task, ncolumn_block, nterm_block, row_pieces, column_pieces, term_pieces, nslot;
	ValId packed_rows, packed_columns, tiles; /* views of scratch memory */
	ValId row_least, column_least; /* with plan->pairs, there too: contract_pairs.c */
	ValId word; /* there too: 1 + the group whose columns are packed; 0: none */
	/* of the task and of its present block of terms */
	ValId row0, row1, column0, column1, term0, term1, slot, first_block, last_block;
} Contract;

/* Leave to build, or why not; factors of the node. */
bool contract_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, RemarkId *why);

/* --- spaces and memory (contract_space.c) --- */
void contract_bind_spaces(Contract *c);
void contract_bind_blocks(Contract *c);
void contract_bind_scratch(Contract *c);
/* Sets the outer axes of a piece; its first index along the inner one. */
ValId space_enter(Point *l, const Space *s, ValId piece);
/* Sets the inner axis, or all of a flat space, to index i. */
void space_at(Point *l, const Space *s, ValId i);

/* --- stages of a task --- */
void contract_pack_rows(Contract *c);      /* contract_pack.c */
void contract_pack_columns(Contract *c);
void contract_tiles(Contract *c);          /* contract_tile.c */
/* where plan->pairs: either panel, and whether DOT computes this tile as IEEE does (contract_pairs.c) */
void contract_pack_pairs(Contract *c, bool columns);
ValId contract_dot_is_exact(Contract *c, ValId row, ValId column);
void contract_dot_tiles(Contract *c);      /* contract_dot.c */
/* Terms in a piece of them. */
unsigned contract_term_width(const KernelPlan *p);

/* Whether what e reads along the lanes is contiguous, as a test to run; 0 when that is not in question. */
ValId contract_dense(Contract *c, ExprId e, bool with_output);
ValId contract_int(Contract *c, int64_t v);
/* i + 0, 1, … < end, a mask of the lanes */
ValId contract_mask(Contract *c, ValId i, ValId end);

#endif
