/* near.c: folds of positions along a long loop of vectors, in parts of it in which positions have 32 bits (rows.h). */
#include "passes/schedule/rows/build.h"

enum { NEAR_TERMS = 1 << 30 /* of a part: a multiple of all copies' lanes */ };

bool
rows_may_be_near(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < rows_carried_folds(b, phase, k); c++) {
			const Reduction *f = &b->fold[k][c];
			if (f->position && (!f->range_tells || f->may_fail || f->may_cut || dtype_info[f->type].bits != 32))
				return false;
		}
	return rows_wants_position(b, phase) && !b->r->lanes_by_row;
}

static bool
folds_position(const RowBuild *b, unsigned phase, unsigned k)
{
	return rows_carried_folds(b, phase, k) && b->fold[k][0].position;
}

/* Of the folds of copies side by side, which have no term yet, the first alone goes on. */
static void
leave_first_copy(RowBuild *b, unsigned k)
{
	for (unsigned c = 1; c < b->ncopy; c++)
		b->fold[k][c].re = b->fold[k][c].position = 0;
}

static void
begin_near(RowBuild *b, unsigned k)
{
	for (unsigned c = 0; c < b->ncopy; c++) {
		Reduction *f = &b->fold[k][c];
		f->re = point_widen(b->l, reduction_of(b->l, f->monoid, f->type).re);
		f->position = point_widen(b->l, tir_int(b->l->tir, DT_I32, 0));
	}
}

/* Puts what the part folded to what was folded before it. */
static void
join_near(RowBuild *b, unsigned k, ValId first, const Reduction *before)
{
	TirKernel *t = b->l->tir;
	Reduction part = b->fold[k][0];
	for (unsigned c = 1; c < b->ncopy; c++) {
		Reduction *f = &b->fold[k][c];
		f->position = tir_binary(t, OP_ADD, f->position, tir_int(t, DT_I32, (int64_t)(c * b->l->lanes)));
		reduction_merge(b->l, &part, f);
	}
	part.position = tir_binary(t, OP_ADD, tir_cast(t, DT_I64, part.position), first);
	b->fold[k][0] = *before;
	reduction_merge(b->l, &b->fold[k][0], &part);
	leave_first_copy(b, k);
}

/* Positions as numbers of 32 bits within a part of the loop, those of the first copy's lanes: a mask of a term is then
 * one of its position. A part begins anew. */
void
rows_run_near(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer)
{
	TirKernel *t = b->l->tir;
	ValId carried[ROWS_MAX_CARRIED], size = rows_int(b, NEAR_TERMS);
	Reduction before[ROWS_MAX_MEMBERS];
	b->ncopy = copies;
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (folds_position(b, phase, k))
			leave_first_copy(b, k);
	unsigned n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(b->l);
	b->near = tir_for(t, range[0], range[1], size, carried, n);
	rows_unpack_phase(b, phase, carried);
	ValId end = tir_binary(t, OP_MIN, tir_binary(t, OP_ADD, b->near, size), range[1]);
	const ValId part[4] = {b->near, end, range[2], range[3]};
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (folds_position(b, phase, k)) {
			before[k] = b->fold[k][0];
			begin_near(b, k);
		}
	rows_vector_loop(b, phase, axis, part, copies, outer, false);
	ValId first = rows_next_position(b, phase, outer, b->near, range[2], range[3]);
	b->near = 0;
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (folds_position(b, phase, k))
			join_near(b, k, first, &before[k]);
	rows_pack_phase(b, phase, carried);
	tir_end_for(t, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(b->l, mark);
}
