/* strips_finish.c: what is made of a strip's sums (strips.c): each warp has those of its chunks, in the
 * lanes' order. They are joined through shared memory, a lane's elements WARP lanes apart, so that no bank is met twice: half
 * of the warps hand theirs to the other half until there is room for those of all; then each thread joins the sums of its
 * elements, which are side by side along the output's memory, and finishes them. Where the blocks of a cluster have parts of the
 * terms (strips_ring.c), they do the last in common: each thread of any of them joins the sums of all. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/strips.h"

#include "ir/bugs.h"
#include "ir/warp_mma.h"

enum { SIDE_BY_SIDE = 4 /* elements of a thread */ };

static unsigned
sums_of(const Strips *s)
{
	return s->tiles * s->few_tiles * WARP_MMA_C;
}

/* Of what a warp puts there. */
static unsigned
slot_elements(const Strips *s)
{
	return sums_of(s) * TIR_WARP;
}

uint32_t
strips_staged_bytes(const Strips *s)
{
	return s->room * slot_elements(s) * (uint32_t)sizeof(float);
}

void
strips_bind_staged(Strips *s)
{
	TirKernel *k = s->l.tir;
	unsigned buffer = tir_add_buffer(k, 0, DT_F32, true), all = s->room * slot_elements(s);
	k->buffer.at[buffer].shared = all;
	k->buffer.at[buffer].wide = s->blocks > 1;
	s->staged = tir_view(k, buffer, 2, (ValId[]){strips_int(s, s->blocks), strips_int(s, all)}, (ValId[]){strips_int(s, all), strips_int(s, 1)});
}

/* Sum n of the lane, in a slot. */
static ValId
staged_at(Strips *s, ValId slot, ValId n, ValId lane)
{
	ValId at = strips_op(s, OP_ADD, strips_op(s, OP_MUL, slot, strips_int(s, slot_elements(s))), lane);
	return strips_op(s, OP_ADD, at, strips_op(s, OP_MUL, n, strips_int(s, TIR_WARP)));
}

static ValId
own_block(Strips *s)
{
	return s->blocks > 1 ? s->rank : strips_int(s, 0);
}

/* Where all meet who join sums; `wide`: of all blocks. */
static void
meet(Strips *s, bool wide)
{
	int64_t kind = wide && s->blocks > 1 ? 1 : s->ring ? TIR_GROUP_BARRIER : 0;
	tir_emit(s->l.tir, OP_BARRIER, (TirType){0}, kind, NULL, 0);
}

/* The slot of the warp that is number `down` of `depth` along the terms. */
static ValId
slot_of(Strips *s, ValId down, unsigned depth)
{
	return strips_op(s, OP_ADD, strips_op(s, OP_MUL, s->across, strips_int(s, depth)), down);
}

static void
put_sums(Strips *s, ValId slot, const ValId *acc)
{
	for (unsigned n = 0; n < sums_of(s); n++)
		tir_store(s->l.tir, s->staged, acc[n], (ValId[]){own_block(s), staged_at(s, slot, strips_int(s, n), s->lane)}, 0, 0);
}

/* The warps of the second half of 2 depth hand their sums to the first half. */
static void
join_halves(Strips *s, unsigned depth, ValId *acc)
{
	TirKernel *k = s->l.tir;
	unsigned n = sums_of(s);
	ValId half = strips_int(s, depth), twice = strips_int(s, 2 * depth);
	ValId gives = strips_op(s, OP_AND, strips_op(s, OP_LE, half, s->down), strips_op(s, OP_LT, s->down, twice));
	tir_if(k, gives);
	put_sums(s, slot_of(s, strips_op(s, OP_SUB, s->down, half), depth), acc);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	if (!BUG(strip_halves_unparted))
		meet(s, false);
	ValId joined[STRIPS_MOST_SUMS];
	tir_if(k, strips_op(s, OP_LT, s->down, half));
	for (unsigned i = 0; i < n; i++) {
		const ValId at[2] = {own_block(s), staged_at(s, slot_of(s, s->down, depth), strips_int(s, i), s->lane)};
		joined[i] = strips_op(s, OP_ADD, acc[i], tir_load(k, s->staged, at, 0, 0, 0));
	}
	tir_else(k, joined, n);
	for (unsigned i = 0; i < n; i++)
		joined[i] = acc[i];
	tir_end_if(k, joined, n);
	for (unsigned i = 0; i < n; i++)
		acc[i] = joined[i];
	meet(s, false);
}

/* The sum of element (row, few) of the strip's 64 of warps `across`, from all slots. */
static ValId
sum_at(Strips *s, ValId across, ValId at, ValId few, unsigned depth)
{
	TirKernel *k = s->l.tir;
	ValId row, own, column, of_tile, odd, eight = strips_int(s, 8), sum = 0;
	own = raster_divide(k, at, eight, &row); /* rows are 8 apart along the terms, else a lane's are side by side */
	if (s->side[0].along_terms) {
		ValId lane_row = row;
		row = own;
		own = lane_row;
	}
	if (s->ring) { /* as their rows lie (strips_ring.c) */
		ValId odd_row, half_row = raster_divide(k, own, strips_int(s, 2), &odd_row);
		own = strips_op(s, OP_ADD, half_row, strips_op(s, OP_MUL, odd_row, strips_int(s, 4)));
	}
	ValId few_tile = raster_divide(k, few, eight, &column), half = raster_divide(k, column, strips_int(s, 2), &of_tile);
	ValId tile = raster_divide(k, row, strips_int(s, 2), &odd);
	ValId n = strips_op(s, OP_ADD, strips_op(s, OP_MUL, tile, strips_int(s, s->few_tiles)), few_tile);
	n = strips_op(s, OP_ADD, strips_op(s, OP_MUL, n, strips_int(s, WARP_MMA_C)), strips_op(s, OP_ADD, strips_op(s, OP_MUL, odd, strips_int(s, 2)), of_tile));
	ValId lane = strips_op(s, OP_ADD, strips_op(s, OP_MUL, own, strips_int(s, 4)), half);
	ValId slot = strips_op(s, OP_MUL, across, strips_int(s, depth));
	for (unsigned b = 0; b < (BUG(strip_parts_left) ? 1 : s->blocks); b++)
		for (unsigned d = 0; d < depth; d++) {
			const ValId where[2] = {strips_int(s, b), staged_at(s, strips_op(s, OP_ADD, slot, strips_int(s, d)), n, lane)};
			ValId part = tir_load(k, s->staged, where, 0, 0, 0);
			sum = sum ? strips_op(s, OP_ADD, sum, part) : part;
		}
	return sum;
}

/* Element i of what is finished together: its place along the long side, and which of the few it is. */
static void
place_of(Strips *s, ValId i, ValId *at, ValId *few)
{
	bool by_long = s->side[0].own_axis > s->side[1].own_axis;
	ValId inner, outer = raster_divide(s->l.tir, i, strips_int(s, by_long ? s->together : s->plan->block_rows), &inner);
	*at = by_long ? inner : outer;
	*few = by_long ? outer : inner;
	if (s->together < s->plan->block_columns)
		*at = strips_op(s, OP_ADD, *at, strips_op(s, OP_MUL, s->group, strips_int(s, s->together)));
}

/* What the block's warps have of it. */
static ValId
block_sum(Strips *s, ValId at, ValId few, unsigned depth)
{
	ValId inside, across = raster_divide(s->l.tir, at, strips_int(s, STRIPS_ROWS * 8), &inside);
	return sum_at(s, across, inside, few, depth);
}

/* The thread's n-th element, if the output has it. */
static void
finish_element(Strips *s, ValId n, unsigned depth)
{
	Point *l = &s->l;
	TirKernel *k = l->tir;
	ValId at, few, in_tile;
	place_of(s, strips_op(s, OP_ADD, s->finisher, strips_op(s, OP_MUL, n, strips_int(s, s->finishers))), &at, &in_tile);
	uint32_t mark = point_mark(l);
	l->axis[s->side[0].own_axis] = strips_op(s, OP_ADD, s->first, at);
	few = strips_op(s, OP_ADD, s->few0, in_tile);
	l->axis[s->side[1].own_axis] = few;
	ValId in_long = strips_op(s, OP_LT, l->axis[s->side[0].own_axis], point_launch_expr(l, s->nlong));
	ValId there = strips_op(s, OP_AND, in_long, strips_op(s, OP_LT, few, point_launch_expr(l, s->nfew)));
	tir_if(k, BUG(strip_ends_unmasked) ? tir_int(k, DT_BOOL, 1) : there);
	PointVal sum = {.re = block_sum(s, at, in_tile, depth)};
	point_store(l, l->node->out, element_finish(l, sum, tir_int(k, DT_BOOL, 1), true), l->axis, -1);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	point_release(l, mark);
}

/* All of the thread's. Each waits for its own sums behind a branch: many side by side take no less time than in turns, but as long to
 * assemble as all else. */
static void
finish_elements(Strips *s, unsigned all, unsigned depth)
{
	if (all <= SIDE_BY_SIDE) {
		for (unsigned n = 0; n < all; n++)
			finish_element(s, strips_int(s, n), depth);
		return;
	}
	ValId n = tir_for(s->l.tir, strips_int(s, 0), strips_int(s, all), strips_int(s, 1), NULL, 0);
	s->l.tir->inst.at[n - 1].imm.i = TIR_ROLLED;
	finish_element(s, n, depth);
	tir_end_for(s->l.tir, NULL, 0);
}

void
strips_finish(Strips *s, ValId *acc)
{
	unsigned depth = s->depth;
	for (; depth * s->width > s->room; depth /= 2)
		join_halves(s, depth / 2, acc);
	ValId warp_is_left = strips_op(s, OP_LT, s->down, strips_int(s, depth));
	tir_if(s->l.tir, warp_is_left);
	put_sums(s, slot_of(s, s->down, depth), acc);
	tir_else(s->l.tir, NULL, 0);
	tir_end_if(s->l.tir, NULL, 0);
	meet(s, true);
	finish_elements(s, s->together * s->plan->block_rows / s->finishers, depth);
	meet(s, true);
}
