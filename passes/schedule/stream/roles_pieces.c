/* roles_pieces.c: scores of more terms than the rows' queries can stay in shared memory for (roles.c).
 *
 * Queries and keys come piece by piece through one ring, TIR_PART_TERMS terms of a tile's rows and elements at a time, and a
 * group adds their products up as those of CONTRACT do (contract/roles.c): one goes on while the next slot is waited for.
 * Queries are read again for each tile of elements, from the second level's cache, where the order of the tasks leaves them: blocks
 * that are at work at the same time are some of rows by some of elements (tasks.c). */
#include "passes/schedule/stream/roles.h"

enum { PIECES, SLOTS = 5 };

void
sr_add_piece_channel(StreamRoles *x)
{
	const StreamElement *query = &x->of[OF_QUERY], *key = &x->of[OF_KEY];
	TirChannel c = {.slots = SLOTS, .nparts = 2};
	c.part[0] = (TirPart){.dtype = query->dtype, .rows = x->rows, .terms = TIR_PART_TERMS, .turned = query->turned};
	c.part[1] = (TirPart){.dtype = key->dtype, .rows = (uint16_t)x->elements, .terms = TIR_PART_TERMS, .turned = key->turned};
	tir_add_channel(x->s.b.l.tir, &c);
	x->steps = point_launch_expr(&x->s.b.l, launch_ceil_div(x->s.b.l.g, x->s.b.terms[0], TIR_PART_TERMS));
}

void
sr_load_pieces(StreamRoles *x, ValId *fill)
{
	TirKernel *k = x->s.b.l.tir;
	ValId one = sr_int(x, 1), step = tir_for(k, sr_int(x, 0), x->steps, one, fill, 1);
	ValId term = sr_op(x, OP_MUL, step, sr_int(x, TIR_PART_TERMS));
	sr_acquire(x, PIECES, *fill);
	sr_copy_part(x, PIECES, 0, OF_QUERY, x->s.b.row0, term, *fill);
	sr_copy_part(x, PIECES, 1, OF_KEY, x->s.b.first, term, *fill);
	*fill = sr_op(x, OP_ADD, *fill, one);
	tir_end_for(k, fill, 1);
}

static void
release(StreamRoles *x, ValId fill, ValId cond)
{
	tir_emit(x->s.b.l.tir, OP_RELEASE, (TirType){0}, PIECES, (ValId[]){sr_op(x, OP_SUB, fill, sr_int(x, 1)), cond}, 2);
}

void
sr_multiply_pieces(StreamRoles *x, ValId *fill)
{
	TirKernel *k = x->s.b.l.tir;
	ValId zero = sr_int(x, 0), one = sr_int(x, 1), step = tir_for(k, zero, x->steps, one, fill, 1), more = sr_op(x, OP_LT, zero, step);
	tir_emit(k, OP_WAIT, (TirType){0}, PIECES, fill, 1);
	tir_emit(k, OP_MMA, (TirType){0}, TIR_MMA(PIECES, 0, 1), (ValId[]){*fill, more}, 2);
	tir_emit(k, OP_SETTLE, (TirType){0}, 1, NULL, 0);
	release(x, *fill, more);
	*fill = sr_op(x, OP_ADD, *fill, one);
	tir_end_for(k, fill, 1);
	tir_emit(k, OP_SETTLE, (TirType){0}, 0, NULL, 0);
	release(x, *fill, tir_int(k, DT_BOOL, 1));
}
