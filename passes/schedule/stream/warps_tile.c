/* warps_tile.c: the products of a tile of a stream by a block's warps (warps.c). What a warp loads of keys or values is multiplied by
 * all of its rows. */
#include "passes/schedule/contract/warps.h"
#include "passes/schedule/stream/warps.h"

#include "ir/bugs.h"

enum { CHAINS = 2, HALVES = 2 }; /* of a block's 16 columns */

static ValId
zero_of(StreamWarps *x)
{
	return tir_float(x->s.b.l.tir, DT_F32, 0);
}

static void
clear(StreamWarps *x, ValId *sum, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		sum[i] = zero_of(x);
}

/* Where a sum of the warp's is: element e of the lane's, of a block of rows and a tile of 8 columns, where a row has `across`. */
static unsigned
slot_of(unsigned block, unsigned tile, unsigned e, unsigned across)
{
	return (2 * block + e / 2) * across + 2 * tile + e % 2;
}

/* --- scores: in two chains, of every other block of terms --- */

/* The warp's queries of a block of terms. */
static void
load_queries(StreamWarps *x, unsigned part, ValId (*to)[SW_LANE])
{
	for (unsigned i = 0; i < x->down; i++)
		sw_load_block(x, &x->panel[OF_QUERY], i, part, to[i]);
}

/* Those by 16 elements, added to sums. */
static void
add_terms(StreamWarps *x, unsigned part, ValId (*query)[SW_LANE], unsigned j, ValId (*sum)[HALVES][WARP_MMA_C])
{
	ValId key[SW_LANE];
	sw_load_block(x, &x->panel[OF_KEY], j, part, key);
	for (unsigned i = 0; i < x->down; i++)
		for (unsigned h = 0; h < HALVES; h++)
			warps_multiply(x->s.b.l.tir, query[i], key, h, sum[i][h]);
}

void
sw_scores(StreamWarps *x)
{
	ValId sum[CHAINS][SW_TILES / HALVES][SW_DOWN][HALVES][WARP_MMA_C], query[SW_DOWN][SW_LANE];
	unsigned n = x->elements / SW_BLOCK;
	clear(x, **sum[0][0], sizeof sum / sizeof(ValId));
	for (unsigned part = 0; part < x->terms / SW_BLOCK; part++) {
		load_queries(x, part, query);
		for (unsigned j = 0; j < n; j++)
			add_terms(x, part, query, j, sum[part % CHAINS][j]);
	}
	for (unsigned j = 0; j < n; j++)
		for (unsigned i = 0; i < x->down; i++)
			for (unsigned h = 0; h < HALVES; h++)
				for (unsigned e = 0; e < WARP_MMA_C; e++)
					x->sum[slot_of(i, HALVES * j + h, e, x->s.nelement)] = sw_op(x, OP_ADD, sum[0][j][i][h][e], sum[1][j][i][h][e]);
}

/* --- columns --- */

/* The weights of a block of rows and 16 elements, as WARP_MMA takes them. */
static void
round_weights(StreamWarps *x, unsigned block, unsigned step, ValId *to)
{
	TirKernel *k = x->s.b.l.tir;
	const ValId *weight = x->s.weight[x->acc];
	for (unsigned e = 0; e < SW_LANE; e++) {
		unsigned word = e / 2, tile = HALVES * step + word / 2;
		to[e] = tir_cast(k, x->of[OF_VALUE].dtype, weight[slot_of(block, tile, word % 2 * 2 + e % 2, x->s.nelement)]);
	}
}

/* To the anchors as they are now. */
static void
move_columns(StreamWarps *x)
{
	unsigned n = x->columns / 4;
	for (unsigned i = 0; i < x->s.b.vectors * n; i++) {
		ValId factor = x->s.factor[x->acc][i / n];
		x->wide[i] = factor ? sw_op(x, OP_MUL, x->wide[i], factor) : x->wide[i];
	}
}

/* A product added to the warp's sums of a block of rows and a tile of 8 columns. */
static void
add_product(StreamWarps *x, unsigned block, unsigned tile, const ValId *weight, const ValId *value)
{
	ValId sum[WARP_MMA_C];
	for (unsigned e = 0; e < WARP_MMA_C; e++)
		sum[e] = x->wide[slot_of(block, tile, e, x->columns / 4)];
	warps_multiply(x->s.b.l.tir, weight, value, tile % HALVES, sum);
	for (unsigned e = 0; e < WARP_MMA_C; e++)
		x->wide[slot_of(block, tile, e, x->columns / 4)] = sum[e];
}

void
sw_columns(StreamWarps *x)
{
	move_columns(x);
	for (unsigned step = 0; step < x->elements / SW_BLOCK; step++) {
		ValId weight[SW_DOWN][SW_LANE], value[SW_LANE];
		for (unsigned i = 0; i < x->down; i++)
			round_weights(x, i, step, weight[i]);
		for (unsigned c = 0; c < x->columns / SW_BLOCK; c++) {
			sw_load_block(x, &x->panel[OF_VALUE], c, step, value);
			for (unsigned i = 0; i < x->down; i++)
				for (unsigned h = 0; h < HALVES; h++)
					add_product(x, i, HALVES * c + h, weight[i], value);
		}
	}
}
