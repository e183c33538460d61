/* phase.c: the loops of a phase, and the phases of a row (rows.h).
 *
 * A fold by lane keeps an accumulator for each lane of each copy; they are joined after the loops, in
 * ascending order of copies. */
#include "passes/schedule/rows/blocks.h"
#include "passes/schedule/rows/build.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

enum {
	PIECE = 128, /* elements of a row in a row, of two that run in turns */
	ROWS_AHEAD = 32 /* rows of some hundred bytes each: what takes the time of a fetch from memory, and fits into a cache */
};

/* The values that m folds at once. */
static unsigned
folded_values(const RowMember *m)
{
	return !rows_is_folded(m) ? 0 : m->side ? m->side : 1;
}

/* How many folds of member k the phase carries. */
unsigned
rows_carried_folds(const RowBuild *b, unsigned phase, unsigned k)
{
	const RowMember *m = &b->r->member[k];
	if (m->phase != phase)
		return 0;
	if (m->scans && !b->r->lanes_by_row)
		return 1;
	return b->ncopy * (m->scans ? 1 : folded_values(m));
}

/* All accumulators of a phase as the values that its loops carry, and back. */
unsigned
rows_pack_phase(RowBuild *b, unsigned phase, ValId *carried)
{
	unsigned n = 0;
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < rows_carried_folds(b, phase, k); c++)
			n += reduction_pack(&b->fold[k][c], carried + n);
	return n;
}

void
rows_unpack_phase(RowBuild *b, unsigned phase, ValId *carried)
{
	ValId scratch[REDUCTION_MAX_CARRIED];
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < rows_carried_folds(b, phase, k); c++) {
			reduction_unpack(&b->fold[k][c], carried);
			carried += reduction_pack(&b->fold[k][c], scratch);
		}
}

/* The first member of a phase, and its own number of one of the phase's loops. */
enum { FEW_TURNS = 8, LAST_TURNS = 4 }; /* of a loop that may run seldom; of what is left of it */

static RowMember *
loop_owner(const RowBuild *b, unsigned phase, unsigned axis, unsigned *own)
{
	Rows *r = b->r;
	for (unsigned k = 0; k < r->nmember; k++)
		for (unsigned a = 0; r->member[k].phase == phase && a < (unsigned)r->member[k].node.npar + r->member[k].node.nred; a++)
			if (r->member[k].axis[a] == axis) {
				*own = a;
				return &r->member[k];
			}
	bug(b->l->g->arena, "rows: a loop that no member has");
}

/* The ends of a phase's loop; what evaluating them met joins every fold inside. */
static void
loop_ends(RowBuild *b, unsigned phase, unsigned axis, ValId *lo, ValId *hi)
{
	unsigned own;
	RowMember *m = loop_owner(b, phase, axis, &own);
	PointVal words = {0};
	rows_enter(b, m);
	if (own < m->node.npar) {
		*lo = rows_int(b, 0);
		*hi = point_launch_expr(b->l, b->l->g->tensor.at[m->t].extent[own]);
		return;
	}
	element_range(b->l, own, lo, hi, &words, expr_is_true(b->l->g, m->node.domain));
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; rows_is_folded(&b->r->member[k]) && c < rows_carried_folds(b, phase, k); c++)
			reduction_join(b->l, &b->fold[k][c], words);
}

/* Whether what m folds side by side takes its terms from the same points: then one of them knows if there were
 * any. */
static bool
touched_together(const RowBuild *b, const RowMember *m)
{
	return m->side && m->node.monoid == MON_SUM && !(expr_axes(b->l->g, b->l->scratch, m->node.guard) >> m->side_axis & 1);
}

/* Whether there was a term is known of those that nothing leaves out, and needs no fold. */
static bool
range_tells(const RowBuild *b, const RowMember *m, const Reduction *f)
{
	const RowPhase *p = &b->r->phase[m->phase];
	bool in_terms = (monoid_info[m->node.monoid].index && b->kernel->plan.threads) || (m->node.monoid == MON_PROD && f->type == DT_C64);
	return f->touched && p->nloop == p->nown + 1u && !m->scans && !m->side && !in_terms &&
	       expr_is_true(b->l->g, m->node.guard);
}

/* A term of each of a member's values side by side. What they have in common is lowered once. */
static void
take_terms(RowBuild *b, unsigned k, ValId position)
{
	RowMember *m = &b->r->member[k];
	uint32_t mark = point_mark(b->l);
	for (unsigned v = 0; v < m->side; v++) {
		b->l->axis[m->side_axis] = rows_int(b, v);
		rows_take_term(b, m, rows_fold(b, k, b->l->copy, v), position);
		if (!BUG(side_value_kept))
			point_release_axis(b->l, mark, m->side_axis);
	}
}

static bool
is_held(const RowBuild *b, unsigned phase)
{
	return rows_phase_is_held(b->r, b->kernel->plan.held, phase);
}

void
rows_phase_point(RowBuild *b, unsigned phase, unsigned lane_axis, ValId base, ValId position)
{
	Point *l = b->l;
	for (unsigned c = 0; c < b->ncopy; c++) {
		uint32_t mark = point_mark(l);
		ValId at = position;
		l->copy = c;
		if (lane_axis != ROWS_NO_AXIS)
			l->axis[lane_axis] = c ? tir_binary(l->tir, OP_ADD, base, rows_int(b, (int64_t)(c * l->lanes))) : base;
		if (position && lane_axis != ROWS_NO_AXIS && !b->r->lanes_by_row) {
			DType t = (DType)tir_inst(l->tir, position)->type.dtype;
			ValId iota = tir_emit(l->tir, OP_IOTA, tir_vector(t, l->lanes), 0, NULL, 0);
			bool own = c && !b->near;
			ValId first = own ? tir_binary(l->tir, OP_ADD, position, rows_int(b, (int64_t)(c * l->lanes))) : position;
			at = tir_binary(l->tir, OP_ADD, first, iota);
		}
		for (unsigned k = 0; k < b->r->nmember; k++) {
			RowMember *m = &b->r->member[k];
			if (m->phase != phase)
				continue;
			rows_enter(b, m);
			if (m->across)
				rows_take_term(b, m, &b->fold[k][0], 0);
			else if (m->scans)
				rows_scan(b, m, &b->fold[k][b->r->lanes_by_row ? c : 0]);
			else if (m->side)
				take_terms(b, k, at);
			else if (rows_is_folded(m))
				rows_take_term(b, m, &b->fold[k][c], at);
			else
				rows_element(b, m);
		}
		if (!is_held(b, phase))
			point_release(l, mark);
	}
}

/* Nor is what the range tells carried: it is put in when the loop is behind. */
void
rows_put_touched(RowBuild *b, unsigned phase, ValId lo, ValId hi)
{
	ValId some = 0;
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < rows_carried_folds(b, phase, k); c++)
			if (b->fold[k][c].range_tells) {
				some = some ? some : BUG(range_untold) ? tir_int(b->l->tir, DT_BOOL, 1) : tir_binary(b->l->tir, OP_LT, lo, hi);
				b->fold[k][c].touched = some;
			}
}

bool
rows_wants_position(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase && b->fold[k][0].position && rows_is_folded(&b->r->member[k]))
			return true;
	return false;
}

static void phase_loops_from(RowBuild *b, unsigned phase, unsigned level, ValId position);

/* Row-major over the loops so far. */
ValId
rows_next_position(RowBuild *b, unsigned phase, ValId outer, ValId i, ValId lo, ValId hi)
{
	Point *l = b->l;
	if (!rows_wants_position(b, phase))
		return 0;
	ValId inner = tir_binary(l->tir, OP_SUB, i, lo);
	return outer ? tir_binary(l->tir, OP_ADD, tir_binary(l->tir, OP_MUL, outer, tir_binary(l->tir, OP_SUB, hi, lo)), inner)
	             : inner;
}

/* Columns side by side that are gone through row by row: a row's piece is short and the next one far away,
 * so that processors don't see the pattern. */
static void
look_ahead(RowBuild *b, unsigned phase, unsigned level)
{
	const RowPhase *p = &b->r->phase[phase];
	if (!b->r->lanes_by_row || b->kernel->plan.threads || p->dir < 0 || level + 1u != p->nloop || b->l->mask)
		return;
	b->l->ahead = 1u + p->loop[level];
	b->l->ahead_by = ROWS_AHEAD;
	b->l->ahead_rows = b->rows_ahead;
}

/* Whether how often the loop runs is known without data: else it may well be seldom. */
static bool
range_known(RowBuild *b, unsigned phase, unsigned axis)
{
	unsigned own;
	const Point *l = b->l;
	const RowMember *m = loop_owner(b, phase, axis, &own);
	const Axis *a = &m->node.axis[own];
	return own < m->node.npar || (expr_is_index(l->g, l->scratch, a->lo) && expr_is_index(l->g, l->scratch, a->hi));
}

/* How many iterations of a loop are lowered side by side: of columns of a block, the rows that a thread has on
 * their way at once. */
static unsigned
turns_at_once(RowBuild *b, unsigned phase, unsigned level)
{
	const RowPhase *p = &b->r->phase[phase];
	bool columns = b->kernel->plan.threads && b->r->lanes_by_row && !b->r->scans;
	bool few = b->kernel->plan.threads == TIR_WARP && b->kernel->plan.group == 1; /* warps, and many registers */
	unsigned some = few ? 4 * b->r->turns : b->r->turns;
	if (!columns || p->dir < 0 || level + 1u < p->nloop)
		return 1;
	return some < FEW_TURNS || range_known(b, phase, p->loop[level]) ? some : FEW_TURNS;
}

static bool
only_folds(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase && !rows_is_folded(&b->r->member[k]))
			return false;
	return true;
}

/* Where there is a turn, what the phase carries after it; else what it carried before. */
static void
choose_turn(RowBuild *b, unsigned phase, ValId there, const ValId *before)
{
	ValId after[ROWS_MAX_CARRIED];
	unsigned n = rows_pack_phase(b, phase, after);
	for (unsigned k = 0; k < n; k++)
		after[k] = after[k] == before[k] ? after[k] : tir_select(b->l->tir, there, after[k], before[k]);
	rows_unpack_phase(b, phase, after);
}

/* Iterations from..to of a loop from lo to hi, some at a time. Where these may be more than there are, those that are
 * missing do what the last one does, for nothing. */
static void
scalar_turns(RowBuild *b, unsigned phase, unsigned level, ValId position, const ValId *range, unsigned turns, bool missing)
{
	Point *l = b->l;
	ValId carried[ROWS_MAX_CARRIED], before[ROWS_MAX_CARRIED], lo = range[2], hi = range[3];
	unsigned axis = b->r->phase[phase].loop[level], n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(l);
	ValId first = tir_for(l->tir, range[0], range[1], rows_int(b, turns), carried, n);
	rows_unpack_phase(b, phase, carried);
	for (unsigned t = 0; t < turns; t++) {
		uint32_t turn = point_mark(l);
		ValId i = t && !BUG(turns_alike) ? tir_binary(l->tir, OP_ADD, first, rows_int(b, t)) : first;
		if (b->r->phase[phase].dir < 0)
			i = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, lo, hi), rows_int(b, 1)), i);
		ValId there = missing && t ? tir_binary(l->tir, OP_LT, i, hi) : 0;
		if (there) {
			i = tir_binary(l->tir, OP_MIN, i, tir_binary(l->tir, OP_SUB, hi, rows_int(b, 1)));
			rows_pack_phase(b, phase, before);
		}
		l->axis[axis] = i;
		unsigned ahead = l->ahead;
		look_ahead(b, phase, level);
		phase_loops_from(b, phase, level + 1, rows_next_position(b, phase, position, i, lo, hi));
		l->ahead = ahead;
		l->ahead_rows = 0;
		if (there && !BUG(missing_turns_count))
			choose_turn(b, phase, there, before);
		point_release(l, turn);
	}
	rows_pack_phase(b, phase, carried);
	tir_end_for(l->tir, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(l, mark);
}

/* Iterations from..to of a loop over lo..hi, as many at once as there may be. */
static void
scalar_part(RowBuild *b, unsigned phase, unsigned level, ValId position, const ValId *range)
{
	TirKernel *k = b->l->tir;
	unsigned steps = rows_steps_at_once(b, phase, level), turns = steps > 1 ? 1 : turns_at_once(b, phase, level);
	unsigned some = steps > 1 ? steps : turns;
	ValId from = range[0], to = range[1], rest = from;
	if (some > 1) {
		ValId step = rows_int(b, some), count = tir_binary(k, OP_SUB, tir_binary(k, OP_MAX, to, from), from);
		rest = tir_binary(k, OP_ADD, from, tir_binary(k, OP_MUL, tir_binary(k, OP_IDIV, count, step), step));
		const ValId whole[4] = {from, rest, range[2], range[3]};
		if (steps > 1)
			rows_run_steps(b, phase, level, whole, steps);
		else
			scalar_turns(b, phase, level, position, whole, turns, false);
	}
	const ValId last[4] = {rest, to, range[2], range[3]};
	bool seldom = turns <= LAST_TURNS || !range_known(b, phase, b->r->phase[phase].loop[level]);
	bool few = turns > 1 && turns <= FEW_TURNS && seldom && only_folds(b, phase); /* which would wait for one another */
	scalar_turns(b, phase, level, position, last, few ? LAST_TURNS : 1, few);
}

static void
scalar_loop(RowBuild *b, unsigned phase, unsigned level, ValId position)
{
	const RowPhase *p = &b->r->phase[phase];
	ValId lo, hi;
	loop_ends(b, phase, p->loop[level], &lo, &hi);
	const ValId all[4] = {lo, hi, lo, hi};
	if (level + 1u == p->nloop && rows_has_lists(b, phase))
		rows_run_lists(b, phase, position, lo, hi, scalar_part);
	else
		scalar_part(b, phase, level, position, all);
	rows_put_touched(b, phase, lo, hi);
}

/* One vector, of all iterations or at the place of a loop. */
static void
block_point(RowBuild *b, unsigned phase, unsigned axis, ValId base, const ValId *range, ValId outer)
{
	b->l->mask = point_block_mask(b->l, base, range[1]);
	rows_phase_point(b, phase, axis, base, rows_next_position(b, phase, outer, base, range[0], range[1]));
	b->l->mask = 0;
}

/* With blocks: the vectors of from..to, of a loop over range; back: from the last, which is whole, to the first. */
static void
block_vectors(RowBuild *b, unsigned phase, unsigned axis, ValId from, ValId to, const ValId *range, ValId outer, bool masked,
              bool back)
{
	Point *l = b->l;
	ValId carried[ROWS_MAX_MEMBERS * POINT_MAX_COPIES * REDUCTION_MAX_CARRIED];
	unsigned n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(l);
	ValId step = rows_int(b, l->lanes), base = tir_for(l->tir, from, to, step, carried, n);
	rows_unpack_phase(b, phase, carried);
	if (back)
		base = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, from, to), step), base);
	if (masked)
		block_point(b, phase, axis, base, range, outer);
	else
		rows_phase_point(b, phase, axis, base, rows_next_position(b, phase, outer, base, range[0], range[1]));
	rows_pack_phase(b, phase, carried);
	tir_end_for(l->tir, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(l, mark);
}

/* Whole vectors without a mask, and what is left; back: that first, then they from the last to the first. */
static void
block_parts(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, ValId outer, bool back)
{
	TirKernel *k = b->l->tir;
	ValId step = rows_int(b, b->l->lanes), lo = range[0], hi = range[1];
	ValId count = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, tir_binary(k, OP_MAX, hi, lo), lo), step);
	ValId rest = tir_binary(k, OP_ADD, lo, tir_binary(k, OP_MUL, count, step));
	if (back && !BUG(last_block_missing))
		block_vectors(b, phase, axis, rest, hi, range, outer, true, false);
	block_vectors(b, phase, axis, lo, rest, range, outer, false, back);
	if (!back && !BUG(last_block_missing))
		block_vectors(b, phase, axis, rest, hi, range, outer, true, false);
}

/* With blocks: by vectors, or the only one. */
static void
block_loop(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, ValId outer)
{
	ValId lo = range[0], hi = range[1];
	bool back = b->r->scans && b->r->phase[phase].dir < 0;
	if (rows_scans_alone(b)) {
		rows_scan_vector(b, phase, axis, range, outer);
	} else if (b->kernel->plan.held) {
		block_point(b, phase, axis, lo, range, outer);
		rows_read_next(b, phase, axis, lo, hi);
	} else if (b->r->scans && b->kernel->plan.group == 1 && !back) { /* two loops would take more registers than masks do time */
		block_vectors(b, phase, axis, lo, hi, range, outer, true, false);
	} else {
		block_parts(b, phase, axis, range, outer, back);
	}
	rows_put_touched(b, phase, lo, hi);
}

/* Iterations from..to in steps of `copies` vectors. */
void
rows_vector_loop(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer, bool masked)
{
	Point *l = b->l;
	ValId carried[ROWS_MAX_CARRIED];
	ValId from = range[0], to = range[1], lo = range[2], hi = range[3];
	b->ncopy = copies;
	unsigned n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(l);
	ValId base = tir_for(l->tir, from, to, rows_int(b, (int64_t)(copies * l->lanes)), carried, n);
	if (b->r->phase[phase].dir < 0 && !masked)
		base = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, from, to), rows_int(b, l->lanes)), base);
	rows_unpack_phase(b, phase, carried);
	if (masked) {
		ValId iota = tir_emit(l->tir, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
		l->mask = tir_binary(l->tir, OP_LT, tir_binary(l->tir, OP_ADD, base, iota), to);
	}
	ValId position = b->near ? tir_cast(l->tir, DT_I32, tir_binary(l->tir, OP_SUB, base, b->near))
	                         : rows_next_position(b, phase, outer, base, lo, hi);
	rows_phase_point(b, phase, axis, base, position);
	l->mask = 0;
	rows_pack_phase(b, phase, carried);
	tir_end_for(l->tir, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(l, mark);
}

static void
whole_vectors(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer)
{
	if (rows_may_be_near(b, phase))
		rows_run_near(b, phase, axis, range, copies, outer);
	else
		rows_vector_loop(b, phase, axis, range, copies, outer, false);
}

static bool
phase_folds(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase && rows_is_folded(&b->r->member[k]))
			return true;
	return false;
}

/* As vectors of the range and a masked end, twice: up to the vectors that hold the hole, which are the first
 * part's end, and beyond. */
static void
loop_around(RowBuild *b, unsigned phase, unsigned axis, ExprId hole, const ValId *range, unsigned copies, ValId outer)
{
	TirKernel *k = b->l->tir;
	ValId carried[ROWS_MAX_CARRIED], lo = range[0], rest = range[1], hi = range[3], zero = rows_int(b, 0);
	RowConditions kept;
	ValId step = rows_int(b, (int64_t)(copies * b->l->lanes));
	ValId at = tir_binary(k, OP_MIN, tir_binary(k, OP_MAX, point_value(b->l, hole, true).re, lo), rest);
	ValId whole = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, at, lo), step);
	ValId first = tir_binary(k, OP_ADD, lo, tir_binary(k, OP_MUL, whole, step));
	ValId next = BUG(hole_filled) ? first : tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, step), rest);
	b->ncopy = copies;
	unsigned n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(b->l);
	ValId before = tir_binary(k, OP_EQ, tir_for(k, zero, rows_int(b, 2), rows_int(b, 1), carried, n), zero);
	rows_unpack_phase(b, phase, carried);
	ValId from = tir_select(k, before, lo, next), to = tir_select(k, before, first, rest);
	const ValId vectors[4] = {from, to, lo, hi}, end[4] = {to, tir_select(k, before, next, hi), lo, hi};
	rows_leave_hole(b, phase, axis, hole, &kept);
	rows_vector_loop(b, phase, axis, vectors, copies, outer, false);
	rows_mind_hole(b, &kept);
	rows_vector_loop(b, phase, axis, end, 1, outer, true);
	b->ncopy = copies;
	rows_pack_phase(b, phase, carried);
	tir_end_for(k, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(b->l, mark);
}

/* How many vectors are side by side: in a block of threads one, whatever the phase is. */
unsigned
rows_phase_copies(const RowBuild *b, unsigned phase)
{
	unsigned own = b->r->phase[phase].copies;
	return own < b->copies ? own : b->copies;
}

/* Where the vectors of lo..hi end of which so many are side by side. */
static ValId
whole_end(RowBuild *b, ValId lo, ValId hi, unsigned copies)
{
	TirKernel *t = b->l->tir;
	ValId step = rows_int(b, (int64_t)(copies * b->l->lanes)), whole = tir_binary(t, OP_IDIV, tir_binary(t, OP_SUB, hi, lo), step);
	return tir_binary(t, OP_ADD, lo, tir_binary(t, OP_MUL, whole, step));
}

/* Whether the phase has elements to put somewhere. */
static bool
phase_stores(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		const RowMember *m = &b->r->member[k];
		if (m->phase == phase && m->is_row && !m->side && (m->stored || m->panel))
			return true;
	}
	return false;
}

/* What vectors side by side leave: under masks, of which stores take long, so that whole vectors are stored without. */
static void
end_vectors(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer)
{
	ValId rest = range[0];
	if (copies > 1 && phase_stores(b, phase)) {
		rest = whole_end(b, range[0], range[1], 1);
		const ValId whole[4] = {range[0], rest, range[2], range[3]};
		rows_vector_loop(b, phase, axis, whole, 1, outer, false);
	}
	const ValId tail[4] = {rest, range[1], range[2], range[3]};
	rows_vector_loop(b, phase, axis, tail, 1, outer, true);
}

/* Vectors of the row at work in turns with those that the row before has to do yet, pieces of both. What memory has to do
 * for the one it does while the other computes. */
static void
leading_loop(RowBuild *b, unsigned phase, unsigned axis, ValId lo, ValId hi)
{
	TirKernel *t = b->l->tir;
	unsigned own = rows_phase_copies(b, phase), behind = rows_phase_copies(b, b->r->trails), most = own > behind ? own : behind;
	unsigned piece = most * b->l->lanes > PIECE ? most * b->l->lanes : PIECE;
	ValId carried[ROWS_MAX_CARRIED], own_end = whole_end(b, lo, hi, own), behind_end = whole_end(b, lo, hi, behind);
	rows_run_behind(b, behind_end, hi, true);
	b->ncopy = own;
	unsigned n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(b->l);
	ValId from = tir_for(t, lo, hi, rows_int(b, piece), carried, n), to = tir_binary(t, OP_ADD, from, rows_int(b, piece));
	rows_unpack_phase(b, phase, carried);
	rows_run_behind(b, from, tir_binary(t, OP_MIN, to, behind_end), false);
	const ValId range[4] = {from, tir_binary(t, OP_MIN, to, own_end), lo, hi}, tail[4] = {own_end, hi, lo, hi};
	rows_vector_loop(b, phase, axis, range, own, 0, false);
	rows_pack_phase(b, phase, carried);
	tir_end_for(t, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(b->l, mark);
	end_vectors(b, phase, axis, tail, own, 0);
}

static void
lane_loop(RowBuild *b, unsigned phase, unsigned level, ValId position)
{
	Point *l = b->l;
	unsigned axis = b->r->phase[phase].loop[level];
	ValId lo, hi;
	loop_ends(b, phase, axis, &lo, &hi);
	if (b->kernel->plan.threads) {
		const ValId range[2] = {lo, hi};
		block_loop(b, phase, axis, range, position);
		return;
	}
	hi = tir_binary(l->tir, OP_MAX, hi, lo);
	bool scans = b->r->phase[phase].dir && !phase_folds(b, phase); /* its vectors wait for one another */
	unsigned copies = scans ? 1 : rows_phase_copies(b, phase);
	ValId rest = whole_end(b, lo, hi, copies);
	const ValId vectors[4] = {lo, rest, lo, hi}, tail[4] = {rest, hi, lo, hi};
	bool down = b->r->phase[phase].dir < 0;
	ExprId hole = down ? 0 : rows_hole(b, phase, axis);
	if (b->trailing && phase == b->r->leads) {
		leading_loop(b, phase, axis, lo, hi);
	} else if (hole) {
		loop_around(b, phase, axis, hole, vectors, copies, position);
	} else if (down) {
		rows_vector_loop(b, phase, axis, tail, copies, position, true);
		rows_vector_loop(b, phase, axis, vectors, 1, position, false);
	} else {
		whole_vectors(b, phase, axis, vectors, copies, position);
		end_vectors(b, phase, axis, tail, copies, position);
	}
	b->ncopy = rows_phase_copies(b, phase);
	rows_put_touched(b, phase, lo, hi);
}

static void
phase_loops_from(RowBuild *b, unsigned phase, unsigned level, ValId position)
{
	const RowPhase *p = &b->r->phase[phase];
	if (level == p->nloop)
		rows_phase_point(b, phase, b->r->lanes_by_row ? rows_lane_axis(b) : ROWS_NO_AXIS, b->base, position);
	else if (p->lanes && level + 1u == p->nloop)
		lane_loop(b, phase, level, position);
	else if (b->kernel->plan.columns && b->r->scans)
		rows_run_split(b);
	else if (b->kernel->plan.columns)
		rows_run_columns(b, phase);
	else
		scalar_loop(b, phase, level, position);
}

/* The value'th of those side by side, if there are several. */
static void
finish_fold(RowBuild *b, unsigned k, unsigned value)
{
	RowMember *m = &b->r->member[k];
	Point *l = b->l;
	bool by_lane = rows_folds_by_lane(b, m);
	for (unsigned c = 1; by_lane && c < b->ncopy; c++)
		if (rows_fold(b, k, c, value)->re) /* else the first has its terms already */
			reduction_merge(l, rows_fold(b, k, 0, value), rows_fold(b, k, c, value));
	if (by_lane)
		reduction_across(l, rows_fold(b, k, 0, value));
	if (b->kernel->plan.columns)
		reduction_across_rows(l, rows_fold(b, k, 0, value));
	if (value && touched_together(b, m))
		rows_fold(b, k, 0, value)->touched = rows_fold(b, k, 0, 0)->touched;
	for (unsigned c = 0; c < (by_lane ? 1 : b->ncopy); c++) {
		uint32_t mark = point_mark(l);
		const Reduction *f = rows_fold(b, k, c, value);
		l->copy = c;
		if (m->side)
			l->axis[m->side_axis] = rows_int(b, value);
		if (b->r->lanes_by_row)
			l->axis[rows_lane_axis(b)] = c ? tir_binary(l->tir, OP_ADD, b->base, rows_int(b, (int64_t)(c * l->lanes))) : b->base;
		rows_enter(b, m);
		l->one = !b->r->lanes_by_row;
		rows_finish_member(b, m, reduction_end(l, f), f->touched);
		l->one = false;
		point_release(l, mark);
	}
	TensorArg *arg = point_tensor(l, m->t);
	for (unsigned c = 1; by_lane && c < POINT_MAX_COPIES; c++)
		arg->value[c] = arg->value[0];
}

void
rows_begin_folds(RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < rows_carried_folds(b, phase, k); c++) {
			RowMember *m = &b->r->member[k];
			Reduction *f = &b->fold[k][c];
			*f = rows_begin_fold(b, m);
			f->range_tells = range_tells(b, m, f);
			if (f->range_tells || (touched_together(b, m) && c % m->side)) {
				f->wants_touched = false;
				f->touched = 0;
			}
		}
}

static void
finish_folds(RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned v = 0; v < folded_values(&b->r->member[k]) && b->r->member[k].phase == phase; v++)
			finish_fold(b, k, v);
}

/* The folds of a phase, at one point of its outer loops. */
static void
run_folds(RowBuild *b, unsigned phase)
{
	rows_begin_folds(b, phase);
	phase_loops_from(b, phase, b->r->phase[phase].nown, 0);
	finish_folds(b, phase);
}

/* The loops at each of whose points a phase folds anew, from this one on. */
static void
own_loops_from(RowBuild *b, unsigned phase, unsigned level)
{
	Point *l = b->l;
	ValId lo, hi;
	if (level == b->r->phase[phase].nown) {
		run_folds(b, phase);
		return;
	}
	unsigned axis = b->r->phase[phase].loop[level];
	loop_ends(b, phase, axis, &lo, &hi);
	uint32_t mark = point_mark(l);
	l->axis[axis] = tir_for(l->tir, lo, hi, rows_int(b, 1), NULL, 0);
	own_loops_from(b, phase, level + 1);
	tir_end_for(l->tir, NULL, 0);
	point_release(l, mark);
}

void
rows_set_where(RowBuild *b, unsigned phase, bool inside)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		const RowMember *m = &b->r->member[k];
		bool value = inside || !m->is_row || is_held(b, phase);
		if (m->phase == phase)
			point_tensor(b->l, m->t)->where = value ? IN_VALUE : m->panel ? IN_PANEL : IN_MEMORY;
	}
}

void
rows_run_phase(RowBuild *b, unsigned phase)
{
	Rows *r = b->r;
	unsigned ncopy = b->ncopy;
	if (r->phase[phase].lanes)
		b->ncopy = rows_phase_copies(b, phase);
	rows_set_where(b, phase, true);
	/* the first phase waits for memory, the others compute on what it brought */
	b->l->ahead_by = 1;
	b->l->ahead = phase > 0 && r->phase[phase].lanes && !r->lanes_by_row && !b->kernel->plan.threads ? r->nrow : 0;
	bool rows = is_held(b, phase) && !r->lanes_by_row;
	unsigned by = !rows ? 0 : b->turns.n ? 1 : block_rows_ahead(b->l->g, b->l->scratch, r, &b->kernel->plan); /* 1: the same blocks' */
	if (by) {
		b->l->ahead = r->nrow;
		b->l->ahead_by = by;
	}
	if (r->ahead) {
		b->l->ahead = 1u + rows_lane_axis(b);
		b->l->ahead_by = r->ahead;
	}
	if (rows_goes_by(b, phase))
		rows_run_once(b, phase);
	else
		own_loops_from(b, phase, 0);
	b->l->ahead = 0;
	rows_set_where(b, phase, false);
	b->l->copy = 0;
	b->ncopy = ncopy;
}

/* Values of the row that one copy made are everyone's where vectors run inside the row. */
static void
share_values(RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		const RowMember *m = &b->r->member[k];
		TensorArg *arg = point_tensor(b->l, m->t);
		if (m->phase == phase && !m->is_row && !b->r->lanes_by_row)
			for (unsigned c = 1; c < POINT_MAX_COPIES; c++)
				arg->value[c] = arg->value[0];
	}
}

void
rows_run_phases(RowBuild *b, unsigned ncopy)
{
	uint32_t mark = point_mark(b->l);
	b->ncopy = ncopy;
	for (unsigned f = 0; f < b->r->nphase; f++) {
		if (b->r->phase[f].late || (b->trailing && f == b->r->trails))
			continue;
		rows_run_phase(b, f);
		share_values(b, f);
	}
	point_release(b->l, mark);
}

void
rows_run_vectors(RowBuild *b, unsigned phase, ValId from, ValId to, bool end)
{
	const ValId range[4] = {from, to, from, to};
	unsigned axis = b->r->phase[phase].loop[0], copies = rows_phase_copies(b, phase);
	if (end)
		end_vectors(b, phase, axis, range, copies, 0);
	else
		rows_vector_loop(b, phase, axis, range, copies, 0, false);
}

void
rows_loop_ends(RowBuild *b, unsigned phase, ValId *lo, ValId *hi)
{
	loop_ends(b, phase, b->r->phase[phase].loop[0], lo, hi);
}

void
rows_fold_turns(RowBuild *b, unsigned phase, const ValId *range)
{
	rows_set_where(b, phase, true);
	scalar_turns(b, phase, 0, 0, range, 1, false);
}

void
rows_finish_folds(RowBuild *b, unsigned phase, ValId lo, ValId hi)
{
	rows_put_touched(b, phase, lo, hi);
	finish_folds(b, phase);
}
