/* contract_tile.c: a contraction's arithmetic: register tiles that stay in registers for a block of
 * terms, and what is made of them once the last term is in.
 *
 * Each accumulator takes its terms one by one in ascending order, in the type of the fold, and goes
 * to memory unrounded between blocks of terms; so the sum is the one that NEST computes, to the bit
 * in strict mode. */
#include "passes/schedule/contract.h"

#include "ir/bugs.h"

enum { UNROLLED = 4 }; /* terms: so that the loop's own instructions take few turns from the products */

typedef struct {
	Contract *c;
	unsigned rows, vectors;
	ValId row, column, tile; /* numbers of the pieces in their blocks, and of the tile in its */
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

/* From the block of terms before, or the start. */
static void
load_tile(Tile *t)
{
	Contract *c = t->c;
	unsigned n = t->rows * t->vectors;
	ValId at[3];
	for (unsigned k = 0; k < n; k++)
		t->acc[k] = c->start;
	tir_if(c->l.tir, c->first_block);
	tir_else(c->l.tir, t->acc, n);
	for (unsigned k = 0; k < n; k++) {
		tile_at(t, k, at);
		if (!BUG(block_starts_afresh))
			t->acc[k] = tir_load(c->l.tir, c->tiles, at, 0, TIR_LANES_ALONG(2), c->plan->lanes);
	}
	tir_end_if(c->l.tir, t->acc, n);
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

/* One term: a column of the tile's rows times a row of its columns. */
static void
add_product(Tile *t, ValId piece, ValId term)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	unsigned lanes = c->plan->lanes;
	ValId column[CONTRACT_MAX_TILE];
	for (unsigned v = 0; v < t->vectors; v++) {
		const ValId at[5] = {c->slot, t->column, piece, term, contract_int(c, v * lanes)};
		column[v] = tir_load(k, c->packed_columns, at, 0, TIR_LANES_ALONG(4), lanes);
	}
	for (unsigned r = 0; r < t->rows; r++) {
		const ValId at[4] = {t->row, piece, contract_int(c, r), term};
		ValId x = tir_load(k, c->packed_rows, at, 0, 0, 0);
		x = tir_emit(k, OP_SPLAT, tir_vector(c->fold.type, lanes), 0, &x, 1);
		for (unsigned v = 0; v < t->vectors; v++) {
			ValId *acc = &t->acc[r * t->vectors + v];
			*acc = add_term(c, *acc, x, column[v]);
		}
	}
}

/* The block's terms. A piece of terms that ends the innermost reduced range may be short; carried
 * along is the piece's number in its range. */
static void
add_terms(Tile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	const Space *s = &c->terms;
	unsigned n = t->rows * t->vectors;
	bool ranges = s->naxis > 1;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), width = contract_int(c, s->width);
	t->acc[n] = ranges ? tir_binary(k, OP_IMOD, c->term0, s->per) : c->term0;
	ValId piece = tir_for(k, zero, tir_binary(k, OP_SUB, c->term1, c->term0), one, t->acc, n + 1);
	ValId number = t->acc[n];
	ValId rest = tir_binary(k, OP_SUB, s->inner, tir_binary(k, OP_MUL, number, width));
	ValId terms = tir_binary(k, OP_MIN, rest, width), step = contract_int(c, UNROLLED);
	ValId whole = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, terms, step), step);
	ValId term = tir_for(k, zero, whole, step, t->acc, n);
	for (unsigned i = 0; i < UNROLLED; i++)
		add_product(t, piece, tir_binary(k, OP_ADD, term, contract_int(c, i)));
	tir_end_for(k, t->acc, n);
	term = tir_for(k, whole, terms, one, t->acc, n);
	add_product(t, piece, term);
	tir_end_for(k, t->acc, n);
	number = tir_binary(k, OP_ADD, number, one);
	if (ranges)
		number = tir_select(k, tir_binary(k, OP_EQ, number, s->per), zero, number);
	t->acc[n] = number;
	tir_end_for(k, t->acc, n + 1);
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

/* The row that the point is at, row r of piece `row`, in one piece of columns. */
static void
finish_columns(Contract *c, ValId row, ValId r, ValId column, ValId nrow)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId lanes = contract_int(c, l->lanes), zero = contract_int(c, 0);
	ValId tile = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, column, nrow), row);
	ValId column0 = space_enter(l, &c->columns, tir_binary(k, OP_ADD, c->column0, column));
	ValId columns = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, c->columns.inner, column0),
	                           contract_int(c, c->columns.width));
	ValId whole = tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, columns, lanes), lanes);
	ValId n = tir_for(k, zero, c->strided ? columns : whole, lanes, NULL, 0);
	finish_vector(c, tile, r, n, column0, c->strided);
	tir_end_for(k, NULL, 0);
	if (c->strided)
		return;
	tir_if(k, tir_binary(k, OP_LT, whole, columns));
	finish_vector(c, tile, r, whole, column0, true);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* The whole block, row by row: so what finish reads, and the output, are met as they lie in memory. */
static void
finish_block(Contract *c)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0);
	ValId nrow = tir_binary(k, OP_SUB, c->row1, c->row0);
	ValId row = tir_for(k, zero, nrow, one, NULL, 0);
	ValId row0 = space_enter(l, &c->rows, tir_binary(k, OP_ADD, c->row0, row));
	ValId rows = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, c->rows.inner, row0),
	                        contract_int(c, c->rows.width));
	ValId r = tir_for(k, zero, rows, one, NULL, 0);
	space_at(l, &c->rows, tir_binary(k, OP_ADD, row0, r));
	ValId column = tir_for(k, zero, tir_binary(k, OP_SUB, c->column1, c->column0), one, NULL, 0);
	finish_columns(c, row, r, column, nrow);
	for (unsigned n = 0; n < 3; n++)
		tir_end_for(k, NULL, 0);
}

static void
finish(Contract *c)
{
	Point *l = &c->l;
	point_set_lanes(l, c->plan->lanes, c->columns.axis[c->columns.naxis - 1]);
	tir_if(l->tir, c->last_block);
	ValId dense = contract_dense(c, l->node->finish, true);
	l->dense = dense != 0;
	if (dense)
		tir_if(l->tir, dense);
	finish_block(c);
	if (dense) {
		tir_else(l->tir, NULL, 0);
		l->dense = false;
		c->strided = true;
		finish_block(c);
		c->strided = false;
		tir_end_if(l->tir, NULL, 0);
	}
	tir_else(l->tir, NULL, 0);
	tir_end_if(l->tir, NULL, 0);
}

/* --- the block --- */

static void
vector_tiles(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0);
	ValId nrow = tir_binary(k, OP_SUB, c->row1, c->row0);
	Tile t = {.c = c, .rows = c->rows.width, .vectors = c->columns.width / c->plan->lanes};
	t.column = tir_for(k, zero, tir_binary(k, OP_SUB, c->column1, c->column0), one, NULL, 0);
	t.row = tir_for(k, zero, nrow, one, NULL, 0);
	t.tile = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, t.column, nrow), t.row);
	load_tile(&t);
	add_terms(&t);
	store_tile(&t);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

void
contract_tiles(Contract *c)
{
	if (c->plan->pairs)
		contract_dot_tiles(c);
	else
		vector_tiles(c);
	finish(c);
}
