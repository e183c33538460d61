/* tile.c: a contraction's arithmetic: register tiles that stay in registers for a block of
 * terms, and what is made of them once the last term is in.
 *
 * Each accumulator takes its terms one by one in ascending order, in the type of the fold, and goes
 * to memory unrounded between blocks of terms; so the sum is the one that NEST computes, to the bit
 * in strict mode. */
#include "passes/schedule/contract/contract.h"

#include "ir/bugs.h"

enum {
	TERMS = 4, /* of a turn of the innermost loop */
	LINE = 64  /* bytes of a cache's line */
};

typedef struct {
	Contract *c;
	unsigned rows, vectors;
	ValId row, kept, tile; /* numbers of the pieces in their blocks, and of the tile in its */
	ValId piece;           /* of terms, at present */
	ValId acc[CONTRACT_MAX_TILE];
} Tile;

/* --- accumulators in memory --- */

static void
tile_at(const Tile *t, unsigned n, ValId *at)
{
	Contract *c = t->c;
	at[0] = t->tile;
	at[1] = contract_int(c, n / t->vectors);
	at[2] = contract_int(c, n % t->vectors * c->plan->lanes);
}

/* Puts the start where the tile waits, if no block of terms came before: so the registers take their values from
 * one place, which costs less than the code to choose. */
static void
start_tile(const Tile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	tir_if(k, BUG(block_starts_afresh) ? tir_int(k, DT_BOOL, 1) : c->first_block);
	ValId row = tir_for(k, contract_int(c, 0), contract_int(c, t->rows), contract_int(c, 1), NULL, 0);
	for (unsigned v = 0; v < t->vectors; v++) {
		const ValId at[3] = {t->tile, row, contract_int(c, v * c->plan->lanes)};
		tir_store(k, c->tiles, c->start, at, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

static void
load_tile(Tile *t)
{
	ValId at[3];
	for (unsigned k = 0; k < t->rows * t->vectors; k++) {
		tile_at(t, k, at);
		t->acc[k] = tir_load(t->c->l.tir, t->c->tiles, at, 0, TIR_LANES_ALONG(2), t->c->plan->lanes);
	}
}

static void
store_tile(const Tile *t)
{
	ValId at[3];
	for (unsigned k = 0; k < t->rows * t->vectors; k++) {
		tile_at(t, k, at);
		tir_store(t->c->l.tir, t->c->tiles, t->acc[k], at, 0, TIR_LANES_ALONG(2));
	}
}

/* --- terms --- */

static ValId
add_term(Contract *c, ValId acc, ValId row, ValId column)
{
	TirKernel *k = c->l.tir;
	if (c->fold.fma)
		return tir_fma(k, row, column, acc);
	return tir_binary(k, OP_ADD, acc, tir_binary(k, OP_MUL, row, column));
}

void
contract_add_products(Contract *c, ValId *acc, unsigned rows, unsigned vectors, ValId row, ValId piece, ValId term,
                      const ValId *column)
{
	TirKernel *k = c->l.tir;
	for (unsigned r = 0; r < rows; r++) {
		const ValId at[4] = {row, piece, contract_int(c, r), term};
		ValId x = tir_load(k, c->packed_rows, at, 0, 0, 0);
		x = tir_emit(k, OP_SPLAT, tir_vector(c->fold.type, c->plan->lanes), 0, &x, 1);
		for (unsigned v = 0; v < vectors; v++)
			acc[r * vectors + v] = add_term(c, acc[r * vectors + v], x, column[v]);
	}
}

/* One term: a column of the tile's rows times a row of its columns. The columns of the next tile are fetched
 * meanwhile, a line at a time: they may lie in a cache that many share. */
static void
add_product(Tile *t, ValId term)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	unsigned lanes = c->plan->lanes;
	ValId column[CONTRACT_MAX_TILE];
	for (unsigned v = 0; v < t->vectors; v++) {
		const ValId at[5] = {c->slot, t->kept, t->piece, term, contract_int(c, v * lanes)};
		bool line = v * lanes * dtype_info[c->fold.type].bits / 8u % LINE == 0;
		column[v] = tir_load(k, c->packed_columns, at, 0, TIR_LANES_ALONG(4) | (line ? TIR_AHEAD(1) : 0), lanes);
	}
	contract_add_products(c, t->acc, t->rows, t->vectors, t->row, t->piece, term, column);
}

/* So many terms of the present piece, `step` of them in a turn of the loop. What a turn costs for itself counts where two
 * threads share a core. */
static void
add_piece(Tile *t, ValId terms, unsigned step)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	unsigned n = t->rows * t->vectors;
	ValId term = tir_for(k, contract_int(c, 0), terms, contract_int(c, step), t->acc, n);
	for (unsigned s = 0; s < step; s++)
		add_product(t, s ? tir_binary(k, OP_ADD, term, contract_int(c, s)) : term);
	tir_end_for(k, t->acc, n);
}

/* A line of the next tile, which is far away if those that wait are many: a line for each piece of terms, since all
 * at once would be waited for. */
static void
fetch_next(Tile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	ValId line = tir_binary(k, OP_MUL, t->piece, contract_int(c, c->plan->lanes));
	tir_fetch(k, c->tiles, (ValId[]){tir_binary(k, OP_ADD, t->tile, contract_int(c, 1)), contract_int(c, 0), line});
}

/* The block's terms, where several ranges are reduced: the last piece of the innermost may be short; carried along is the
 * piece's number in that range. */
static void
add_ranges(Tile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	const Space *s = &c->terms;
	unsigned n = t->rows * t->vectors;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), width = contract_int(c, s->width);
	t->acc[n] = tir_binary(k, OP_IMOD, c->term0, s->per);
	t->piece = tir_for(k, zero, tir_binary(k, OP_SUB, c->term1, c->term0), one, t->acc, n + 1);
	ValId number = t->acc[n];
	fetch_next(t);
	ValId rest = tir_binary(k, OP_SUB, s->inner, tir_binary(k, OP_MUL, number, width));
	add_piece(t, tir_binary(k, OP_MIN, rest, width), 1);
	number = tir_binary(k, OP_ADD, number, one);
	t->acc[n] = tir_select(k, tir_binary(k, OP_EQ, number, s->per), zero, number);
	tir_end_for(k, t->acc, n + 1);
}

/* The block's terms, where one range is: pieces that are whole, and then what is left, of one piece. */
static void
add_terms(Tile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	const Space *s = &c->terms;
	unsigned n = t->rows * t->vectors;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), width = contract_int(c, s->width);
	ValId left = tir_binary(k, OP_SUB, s->inner, tir_binary(k, OP_MUL, c->term0, width));
	ValId pieces = tir_binary(k, OP_SUB, c->term1, c->term0);
	ValId whole = tir_binary(k, OP_MIN, pieces, tir_binary(k, OP_IDIV, left, width));
	t->piece = tir_for(k, zero, whole, one, t->acc, n);
	fetch_next(t);
	add_piece(t, width, s->width < TERMS ? s->width : TERMS);
	tir_end_for(k, t->acc, n);
	ValId rest = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, left, tir_binary(k, OP_MUL, whole, width)), width);
	t->piece = whole;
	add_piece(t, tir_select(k, tir_binary(k, OP_LT, whole, pieces), rest, zero), 1);
}

/* --- finished elements --- */

/* A vector of finished sums, at column n of the tile, as elements of the output. */
static void
finish_vector(Contract *c, ValId tile, ValId row, ValId n, ValId first, bool masked)
{
	Point *l = &c->l;
	uint32_t mark = point_mark(l);
	const ValId at[3] = {tile, row, n};
	ValId i = tir_binary(l->tir, OP_ADD, first, n);
	PointVal sum = {.re = tir_load(l->tir, c->tiles, at, 0, TIR_LANES_ALONG(2), l->lanes)};
	space_at(l, &c->columns, i);
	l->mask = masked ? contract_mask(c, i, c->columns.inner) : 0;
	point_store(l, l->node->out, element_finish(l, sum, c->some, true), l->axis, point_lane_axis(l));
	l->mask = 0;
	point_release(l, mark);
}

/* The row that the point is at, row r of its tile, in piece `column` of the block. */
static void
finish_columns(Contract *c, ValId r, ValId column, ValId tile)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId lanes = contract_int(c, l->lanes), zero = contract_int(c, 0);
	ValId column0 = space_enter(l, &c->columns, tir_binary(k, OP_ADD, c->column0, column));
	ValId columns = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, c->columns.inner, column0),
	                           contract_int(c, c->columns.width));
	ValId whole = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, columns, lanes), lanes);
	ValId n = tir_for(k, zero, whole, lanes, NULL, 0);
	finish_vector(c, tile, r, n, column0, false);
	tir_end_for(k, NULL, 0);
	tir_if(k, tir_binary(k, OP_LT, whole, columns));
	finish_vector(c, tile, r, whole, column0, true);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* Opens the loop over the rows of piece `row` that exist; the point is at row r of it. */
static ValId
open_rows(Contract *c, ValId row)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId row0 = space_enter(l, &c->rows, tir_binary(k, OP_ADD, c->row0, row));
	ValId rows = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, c->rows.inner, row0),
	                        contract_int(c, c->rows.width));
	ValId r = tir_for(k, contract_int(c, 0), rows, contract_int(c, 1), NULL, 0);
	space_at(l, &c->rows, tir_binary(k, OP_ADD, row0, r));
	return r;
}

/* Row by row through the block: so what finish reads, and the output, are met as they lie in memory. */
void
contract_finish(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0);
	ValId nrow = tir_binary(k, OP_SUB, c->row1, c->row0);
	point_set_lanes(&c->l, c->plan->lanes, c->columns.axis[c->columns.naxis - 1]);
	tir_if(k, c->last_block);
	ValId row = tir_for(k, zero, nrow, one, NULL, 0), r = open_rows(c, row);
	ValId column = tir_for(k, zero, tir_binary(k, OP_SUB, c->column1, c->column0), one, NULL, 0);
	finish_columns(c, r, column, tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, column, nrow), row));
	for (unsigned n = 0; n < 3; n++)
		tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- the block --- */

void
contract_tiles(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0);
	ValId nrow = tir_binary(k, OP_SUB, c->row1, c->row0);
	Tile t = {.c = c, .rows = c->rows.width, .vectors = c->columns.width / c->plan->lanes};
	ValId column = tir_for(k, zero, tir_binary(k, OP_SUB, c->column1, c->column0), one, NULL, 0);
	t.kept = tir_binary(k, OP_ADD, column, tir_binary(k, OP_SUB, c->column0, c->kept0));
	t.row = tir_for(k, zero, nrow, one, NULL, 0);
	t.tile = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, column, nrow), t.row);
	start_tile(&t);
	load_tile(&t);
	(c->terms.naxis > 1 ? add_ranges : add_terms)(&t);
	store_tile(&t);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}
