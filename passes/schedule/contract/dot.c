/* dot.c: a contraction's tiles by DOT (point/dot_product.h), out of the panels that pairs.c
 * packs. A tile waits in scratch memory between blocks of terms, and DOT works on it there. */
#include "passes/schedule/contract/contract.h"

#include "passes/schedule/point/dot_product.h"

/* The least of the piece in the blocks of terms so far. */
static ValId
column_least(Contract *c, ValId piece)
{
	TirKernel *k = c->l.tir;
	ValId least = tir_int(k, DT_U32, UINT32_MAX), one = contract_int(c, 1);
	ValId first = tir_select(k, c->shares, contract_int(c, 0), c->slot);
	ValId slot = tir_for(k, first, tir_binary(k, OP_ADD, c->slot, one), one, &least, 1);
	const ValId at[2] = {slot, piece};
	least = tir_binary(k, OP_MIN, least, tir_load(k, c->column_least, at, 0, 0, 0));
	tir_end_for(k, &least, 1);
	return least;
}

void
contract_dot_tiles(Contract *c)
{
	TirKernel *k = c->l.tir;
	const KernelPlan *p = c->plan;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0);
	ValId nrow = tir_binary(k, OP_SUB, c->row1, c->row0);
	ValId column = tir_for(k, zero, tir_binary(k, OP_SUB, c->column1, c->column0), one, NULL, 0);
	ValId kept = tir_binary(k, OP_ADD, column, tir_binary(k, OP_SUB, c->column0, c->kept0));
	ValId least = column_least(c, kept), row = tir_for(k, zero, nrow, one, NULL, 0);
	ValId tile = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, column, nrow), row);
	dot_product(k, &(DotProduct){
		.rows = c->rows.width, .columns = c->columns.width, .pairs = p->pairs, .lanes = p->lanes, .chained = p->chained,
		.c = {c->tiles, 1, {tile}}, .a = {c->row_pairs, 1, {row}}, .b = {c->column_pairs, 2, {c->slot, kept}},
		.groups = tir_binary(k, OP_SUB, c->term1, c->term0), .anew = c->first_block,
		.least_a = tir_load(k, c->row_least, &row, 0, 0, 0), .least_b = least});
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}
