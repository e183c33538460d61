/* contract_dot.c: a contraction's tiles by DOT, out of the panels that contract_pairs.c packs. A tile
 * waits in scratch memory between blocks of terms, and DOT works on it there.
 *
 * Where DOT might meet a subnormal, vectors multiply the same panels, as IEEE says: term by term in
 * ascending order. Whichever it is, the sum is one that the graph's mode allows. */
#include "passes/schedule/contract.h"

#include "ir/bugs.h"

enum { VECTOR_ROWS = 8, START_ROWS = 4 };

typedef struct {
	Contract *c;
	ValId row, column, tile; /* numbers of the pieces in their blocks, and of the tile in its */
	ValId groups;
	unsigned vectors;
} DotTile;

static ValId
vector_at(const DotTile *t, ValId row, unsigned r, unsigned v, ValId *at)
{
	Contract *c = t->c;
	at[0] = t->tile;
	at[1] = tir_binary(c->l.tir, OP_ADD, row, contract_int(c, r));
	at[2] = contract_int(c, v * c->plan->lanes);
	return c->tiles;
}

static void
start_tile(const DotTile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	ValId at[3];
	tir_if(k, c->first_block);
	ValId row = tir_for(k, contract_int(c, 0), contract_int(c, c->rows.width), contract_int(c, START_ROWS), NULL, 0);
	for (unsigned n = 0; n < START_ROWS * t->vectors; n++) {
		ValId view = vector_at(t, row, n / t->vectors, n % t->vectors, at);
		tir_store(k, view, c->start, at, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* --- by vectors --- */

/* The terms of a pair, as f32. */
static void
split_pair(TirKernel *k, ValId pair, ValId *term)
{
	term[0] = tir_bitcast(k, DT_F32, tir_binary(k, OP_SHL, pair, tir_int(k, DT_U32, 16)));
	term[1] = tir_bitcast(k, DT_F32, tir_binary(k, OP_BAND, pair, tir_int(k, DT_U32, 0xffff0000)));
}

static void
add_pair(const DotTile *t, ValId row, ValId group, ValId pair, ValId *acc)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	unsigned lanes = c->plan->lanes;
	ValId column[CONTRACT_MAX_TILE][2], x[2];
	for (unsigned v = 0; v < t->vectors; v++) {
		const ValId at[5] = {c->slot, t->column, group, pair, contract_int(c, v * lanes)};
		split_pair(k, tir_load(k, c->packed_columns, at, 0, TIR_LANES_ALONG(4), lanes), column[v]);
	}
	for (unsigned r = 0; r < VECTOR_ROWS; r++) {
		const ValId at[4] = {t->row, group, tir_binary(k, OP_ADD, row, contract_int(c, r)), pair};
		split_pair(k, tir_load(k, c->packed_rows, at, 0, 0, 0), x);
		for (unsigned n = 0; n < 2 * t->vectors; n++) {
			ValId *to = &acc[r * t->vectors + n / 2];
			ValId term = tir_binary(k, OP_MUL, x[n % 2], column[n / 2][n % 2]);
			if (!BUG(dot_half_pairs) || n % 2 == 0)
				*to = tir_binary(k, OP_ADD, *to, term);
		}
	}
}

static void
add_by_vectors(const DotTile *t)
{
	Contract *c = t->c;
	TirKernel *k = c->l.tir;
	ValId acc[CONTRACT_MAX_TILE], at[3], zero = contract_int(c, 0), one = contract_int(c, 1);
	unsigned n = VECTOR_ROWS * t->vectors;
	ValId row = tir_for(k, zero, contract_int(c, c->rows.width), contract_int(c, VECTOR_ROWS), NULL, 0);
	for (unsigned i = 0; i < n; i++) {
		ValId view = vector_at(t, row, i / t->vectors, i % t->vectors, at);
		acc[i] = tir_load(k, view, at, 0, TIR_LANES_ALONG(2), c->plan->lanes);
	}
	ValId group = tir_for(k, zero, t->groups, one, acc, n);
	ValId pair = tir_for(k, zero, contract_int(c, c->plan->pairs), one, acc, n);
	add_pair(t, row, group, pair, acc);
	tir_end_for(k, acc, n);
	tir_end_for(k, acc, n);
	for (unsigned i = 0; i < n; i++) {
		ValId view = vector_at(t, row, i / t->vectors, i % t->vectors, at);
		tir_store(k, view, acc[i], at, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
}

/* --- the block --- */

void
contract_dot_tiles(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0);
	ValId nrow = tir_binary(k, OP_SUB, c->row1, c->row0);
	int64_t shape = TIR_DOT(c->rows.width, c->columns.width, c->plan->pairs);
	DotTile t = {.c = c, .vectors = c->columns.width / c->plan->lanes};
	t.groups = tir_binary(k, OP_SUB, c->term1, c->term0);
	t.column = tir_for(k, zero, tir_binary(k, OP_SUB, c->column1, c->column0), one, NULL, 0);
	t.row = tir_for(k, zero, nrow, one, NULL, 0);
	t.tile = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, t.column, nrow), t.row);
	start_tile(&t);
	tir_if(k, contract_dot_is_exact(c, t.row, t.column));
	tir_dot(k, shape, c->tiles, c->packed_rows, c->packed_columns, t.groups,
	        (ValId[]){t.tile, t.row, c->slot, t.column});
	tir_else(k, NULL, 0);
	add_by_vectors(&t);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}
