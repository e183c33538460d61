/* contract.h: what the files of the CONTRACT template share. contract.c says how it works. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_CONTRACT_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_CONTRACT_H

#include "passes/schedule/schedule.h"

enum { CONTRACT_MAX_TILE = 64, CONTRACT_AHEAD_PIECES = 4 }; /* accumulators; columns that a task ahead packs */

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

/* A node's body as a product: which factor gives rows of the output, which columns. Or, in a pair, which values of rows and of columns
 * the terms are made of (pair_terms.c). */
typedef struct {
	ExprId row, column;
	uint32_t row_axes, column_axes; /* as bits */
	bool rows_along_terms;    /* the row factor's memory runs along the last reduced axis */
	bool columns_along_terms; /* the column factor's */
	bool pair;
} Factors;

/* Whether the node's reduced ranges are the same for all elements. */
bool contract_ranges_are_fixed(const Graph *g, Arena *scratch, const Node *n);
/* Whether a value with these axes of its own runs along the last reduced axis in memory. */
bool contract_runs_along_terms(const Graph *g, Arena *scratch, const Node *n, ExprId e, uint32_t own);

typedef struct {
	Point l;
	const KernelPlan *plan;
	Factors factors;
	Space batch, rows, columns, terms;
	Reduction fold;
	ValId start;              /* what accumulators start from: a vector */
	ValId some;               /* bool: there are terms */
	ValId shares;             /* bool: all columns are packed ahead */
	/* how many blocks, and tasks along the rows; at most how many pieces a block has */
	ExprId nrow_task, ncolumn_block, nterm_block, row_pieces, column_pieces, term_pieces, nslot, ntask;
	/* Whether tasks ahead pack all columns for all others, 1 or 0; how many tasks; how many pieces of columns are kept */
	ExprId ahead, nahead, kept_pieces;
	ValId packed_rows, packed_columns, tiles; /* views of scratch memory; with plan->pairs no packed columns */
	ValId square;             /* where columns' memory runs along the terms, there too: lanes by lanes */
	ValId row_pairs, column_pairs, row_least, column_least; /* with plan->pairs, there too: pairs.c */
	ValId word; /* there too: 1 + the group whose columns are packed; 0: none */
	/* of the task and of its present block of terms; kept0: the first piece of columns that is kept */
	ValId row0, row1, column0, column1, kept0, term0, term1, slot, first_block, last_block;
} Contract;

/* Leave to build, or why not; factors of the node. */
bool contract_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, RemarkId *why);

/* The same of a sum whose terms may be absent, and all of which the factors then have (absent.h). */
bool contract_all_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, RemarkId *why);

/* As contract_factors, for one axis each of rows, columns and terms, these from 0 on, summed in f32. */
bool contract_is_plain(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f);
/* The same of the sum, whatever its factors are. */
bool contract_is_plain_sum(const Graph *g, Arena *scratch, const bool *faulty, TensorId t);
/* The type of x in the factor f32(x), if it is one that matrix instructions multiply: 16 bits; else DT_NONE. */
DType contract_narrow_type(const Graph *g, ExprId e);
/* The same or, in fast mode, of a factor of f32 its own: then they round it (tf32). */
DType contract_matrix_type(const Graph *g, ExprId e);
/* What is of that type: x, or the factor. */
ExprId contract_matrix_value(const Graph *g, ExprId e);

/* --- spaces and memory (space.c) --- */
/* How the spaces and blocks are cut, as launch expressions: of l.g's l.node, by the plan and the factors; there need be no
 * kernel. */
void contract_count(Contract *c);
/* How many indices a space has. */
ExprId contract_space_size(Graph *g, const Space *s);
/* As contract_count says. */
void contract_bind_spaces(Contract *c);
void contract_bind_blocks(Contract *c);
void contract_bind_scratch(Contract *c);
/* Sets the outer axes of a piece; its first index along the inner one. */
ValId space_enter(Point *l, const Space *s, ValId piece);
/* Sets the inner axis, or all of a flat space, to index i. */
void space_at(Point *l, const Space *s, ValId i);

/* --- terms --- */
/* The pieces lo..hi-1 of the present outer terms; piece q is number q + base of the block. */
typedef struct {
	ValId lo, hi, base;
} Run;
Run contract_open_run(Contract *c);        /* pack.c: a loop, where there are outer terms */
void contract_close_run(Contract *c);
/* How many terms ahead of its use a factor's memory is fetched, where it runs along the terms and where they lie apart:
 * what is packed in the time of a fetch. 0: it is not fetched. */
enum { CONTRACT_TERMS_ALONG = 128, CONTRACT_TERMS_APART = 12 };
void contract_look_ahead(Contract *c, unsigned terms); /* pack.c */
/* A factor at the point, a vector of it; reads nothing where the mask, if there is one, fails. */
ValId contract_factor(Contract *c, ExprId factor, ValId mask);
/* A term's products, added to a tile's sums: of the packed rows at (row, piece, 0.., term) with each of the columns'
 * vectors: tile.c. */
void contract_add_products(Contract *c, ValId *acc, unsigned rows, unsigned vectors, ValId row, ValId piece, ValId term,
                           const ValId *column);

/* --- stages of a task --- */
void contract_pack_rows(Contract *c);      /* pack.c */
void contract_pack_columns(Contract *c);
void contract_tiles(Contract *c);          /* tile.c */
/* What is made of the block's sums, if the last block of terms is in. */
void contract_finish(Contract *c);
/* few.c: columns and tiles in another way, if there are few rows; whether the code for that is worth it, and,
 * as the kernel runs, whether there are few. That depends on the sizes alone where it says which way the terms are summed. */
bool contract_reads_columns(const Contract *c);
ValId contract_has_few_rows(Contract *c);
void contract_few_rows(Contract *c);
/* where plan->pairs: either panel */
void contract_pack_pairs(Contract *c, bool columns); /* pairs.c */
void contract_dot_tiles(Contract *c);      /* dot.c */
/* So many tasks are a call (contract.c). */
ExprId contract_grain(Contract *c);
/* Terms in a piece of them. */
unsigned contract_term_width(const KernelPlan *p);

ValId contract_int(Contract *c, int64_t v);
/* i + 0, 1, … < end, a mask of the lanes */
ValId contract_mask(Contract *c, ValId i, ValId end);

#endif
