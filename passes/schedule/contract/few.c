/* few.c: a contraction with few rows. Its columns are used once, and packing them would cost
 * several times what reading them does. So they are read where they lie: a piece of terms at a time
 * through all columns of the task, as memory has them, while the sums wait in scratch memory near by.
 *
 * Each sum takes its terms in ascending order, as in tile.c, so its bits are the same; those of DOT
 * are not, which the sizes alone choose between. */
#include "passes/schedule/contract/contract.h"

#include "ir/bugs.h"

enum { FEW_ROWS = 8 };

static unsigned
few_rows(const Contract *c)
{
	return c->plan->tile_rows < FEW_ROWS ? c->plan->tile_rows : FEW_ROWS;
}

bool
contract_reads_columns(const Contract *c)
{
	return contract_term_width(c->plan) == c->plan->lanes && !c->factors.columns_along_terms;
}

ValId
contract_has_few_rows(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId few = tir_binary(k, OP_LE, c->rows.inner, contract_int(c, few_rows(c)));
	/* of outer axes there may be more in a block; how the sums are rounded must not depend on what is in one */
	ValId pieces = c->plan->pairs ? c->rows.pieces : tir_binary(k, OP_SUB, c->row1, c->row0);
	return tir_binary(k, OP_AND, few, tir_binary(k, OP_EQ, pieces, contract_int(c, 1)));
}

/* --- a tile --- */

typedef struct {
	Contract *c;
	unsigned rows, vectors;
	ValId column, first;      /* the piece in its block; its first column */
	ValId piece, term, terms; /* the piece of terms in its block; its first term; how many it has */
	ValId acc[CONTRACT_MAX_TILE];
} FewTile;

static void
sum_at(const FewTile *t, unsigned n, ValId *at)
{
	Contract *c = t->c;
	at[0] = t->column;
	at[1] = contract_int(c, n / t->vectors);
	at[2] = contract_int(c, n % t->vectors * c->plan->lanes);
}

static void
add_product(FewTile *t, ValId term, bool masked)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	unsigned lanes = c->plan->lanes;
	ValId column[CONTRACT_MAX_TILE];
	space_at(&c->l, &c->terms, tir_binary(k, OP_ADD, t->term, term));
	for (unsigned v = 0; v < t->vectors; v++) {
		ValId i = tir_binary(k, OP_ADD, t->first, contract_int(c, v * lanes));
		space_at(&c->l, &c->columns, i);
		column[v] = contract_factor(c, c->factors.column, masked ? contract_mask(c, i, c->columns.inner) : 0);
	}
	contract_add_products(c, t->acc, t->rows, t->vectors, contract_int(c, 0), t->piece, term, column);
}

/* A piece of terms for a piece of columns. */
static void
add_terms(FewTile *t, bool masked)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	unsigned n = t->rows * t->vectors;
	ValId at[3];
	for (unsigned i = 0; i < n; i++) {
		sum_at(t, i, at);
		t->acc[i] = tir_load(k, c->tiles, at, 0, TIR_LANES_ALONG(2), c->plan->lanes);
	}
	ValId term = tir_for(k, contract_int(c, 0), t->terms, contract_int(c, 1), t->acc, n);
	add_product(t, term, masked);
	tir_end_for(k, t->acc, n);
	for (unsigned i = 0; i < n; i++) {
		sum_at(t, i, at);
		tir_store(k, c->tiles, t->acc[i], at, 0, TIR_LANES_ALONG(2));
	}
}

/* --- the task --- */

static ValId
open_columns(FewTile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	ValId p = tir_for(k, c->column0, c->column1, contract_int(c, 1), NULL, 0);
	t->column = tir_binary(k, OP_SUB, p, c->column0);
	return p;
}

/* The sums at their start, if no block of terms came before. */
static void
start(FewTile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	ValId at[3];
	tir_if(k, BUG(block_starts_afresh) ? tir_int(k, DT_BOOL, 1) : c->first_block);
	open_columns(t);
	for (unsigned i = 0; i < t->rows * t->vectors; i++) {
		sum_at(t, i, at);
		tir_store(k, c->tiles, c->start, at, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* A piece of columns. A mask that no term changes costs nothing where masks have registers of their own, and a second
 * loop costs a tenth of the compilation. */
static void
add_columns(FewTile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	if (c->plan->free_masks) {
		add_terms(t, true);
		return;
	}
	ValId end = tir_binary(k, OP_ADD, t->first, contract_int(c, c->columns.width));
	tir_if(k, tir_binary(k, OP_LE, end, c->columns.inner));
	add_terms(t, false);
	tir_else(k, NULL, 0);
	add_terms(t, true);
	tir_end_if(k, NULL, 0);
}

void
contract_few_rows(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId width = contract_int(c, c->terms.width), one = contract_int(c, 1);
	FewTile t = {.c = c, .rows = few_rows(c), .vectors = c->columns.width / c->plan->lanes};
	point_set_lanes(&c->l, c->plan->lanes, c->columns.axis[c->columns.naxis - 1]);
	start(&t);
	contract_look_ahead(c, c->terms.width);
	Run run = contract_open_run(c);
	ValId q = tir_for(k, run.lo, run.hi, one, NULL, 0);
	t.piece = tir_binary(k, OP_ADD, q, run.base);
	t.term = tir_binary(k, OP_MUL, q, width);
	t.terms = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, c->terms.inner, t.term), width);
	t.first = space_enter(&c->l, &c->columns, open_columns(&t));
	add_columns(&t);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	contract_close_run(c);
	contract_look_ahead(c, 0);
}
