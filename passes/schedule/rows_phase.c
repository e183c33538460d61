/* rows_phase.c: the loops of a phase, and the phases of a row (rows.h).
 *
 * A fold by lane keeps an accumulator for each lane of each copy; they are joined after the loops, in
 * ascending order of copies. */
#include "passes/schedule/rows_build.h"

/* For how many copies member k of the phase carries what it folds. */
static unsigned
carried_copies(const RowBuild *b, unsigned phase, unsigned k)
{
	const RowMember *m = &b->r->member[k];
	if (m->phase != phase)
		return 0;
	if (m->scans && !b->r->lanes_by_row)
		return 1;
	return m->scans || rows_is_folded(m) ? b->ncopy : 0;
}

/* All accumulators of a phase as the values that its loops carry, and back. */
static unsigned
pack_phase(RowBuild *b, unsigned phase, ValId *carried)
{
	unsigned n = 0;
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < carried_copies(b, phase, k); c++)
			n += reduction_pack(&b->fold[k][c], carried + n);
	return n;
}

static void
unpack_phase(RowBuild *b, unsigned phase, ValId *carried)
{
	ValId scratch[REDUCTION_MAX_CARRIED];
	for (unsigned k = 0; k < b->r->nmember; k++)
		for (unsigned c = 0; c < carried_copies(b, phase, k); c++) {
			reduction_unpack(&b->fold[k][c], carried);
			carried += reduction_pack(&b->fold[k][c], scratch);
		}
}

/* The first member of a phase, and its own number of one of the phase's loops. */
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
		for (unsigned c = 0; b->r->member[k].phase == phase && rows_is_folded(&b->r->member[k]) && c < b->ncopy; c++)
			reduction_join(b->l, &b->fold[k][c], words);
}

/* One iteration: every member, for each of the copies. */
static void
phase_point(RowBuild *b, unsigned phase, unsigned lane_axis, ValId base, ValId position)
{
	Point *l = b->l;
	for (unsigned c = 0; c < b->ncopy; c++) {
		uint32_t mark = point_mark(l);
		ValId at = position;
		l->copy = c;
		if (lane_axis != ROWS_NO_AXIS)
			l->axis[lane_axis] = c ? tir_binary(l->tir, OP_ADD, base, rows_int(b, (int64_t)(c * l->lanes))) : base;
		if (position && lane_axis != ROWS_NO_AXIS && !b->r->lanes_by_row) {
			ValId iota = tir_emit(l->tir, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
			ValId first = c ? tir_binary(l->tir, OP_ADD, position, rows_int(b, (int64_t)(c * l->lanes))) : position;
			at = tir_binary(l->tir, OP_ADD, first, iota);
		}
		for (unsigned k = 0; k < b->r->nmember; k++) {
			RowMember *m = &b->r->member[k];
			if (m->phase != phase)
				continue;
			rows_enter(b, m);
			if (m->scans)
				rows_scan(b, m, &b->fold[k][b->r->lanes_by_row ? c : 0]);
			else if (rows_is_folded(m))
				rows_take_term(b, m, &b->fold[k][c], at);
			else
				rows_element(b, m);
		}
		point_release(l, mark);
	}
}

static bool
wants_position(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase && b->fold[k][0].position && rows_is_folded(&b->r->member[k]))
			return true;
	return false;
}

static void phase_loops_from(RowBuild *b, unsigned phase, unsigned level, ValId position);

/* Row-major over the loops so far. */
static ValId
next_position(RowBuild *b, unsigned phase, ValId outer, ValId i, ValId lo, ValId hi)
{
	Point *l = b->l;
	if (!wants_position(b, phase))
		return 0;
	ValId inner = tir_binary(l->tir, OP_SUB, i, lo);
	return outer ? tir_binary(l->tir, OP_ADD, tir_binary(l->tir, OP_MUL, outer, tir_binary(l->tir, OP_SUB, hi, lo)), inner)
	             : inner;
}

static void
scalar_loop(RowBuild *b, unsigned phase, unsigned level, ValId position)
{
	Point *l = b->l;
	ValId carried[ROWS_MAX_MEMBERS * POINT_MAX_COPIES * REDUCTION_MAX_CARRIED], lo, hi;
	unsigned axis = b->r->phase[phase].loop[level];
	loop_ends(b, phase, axis, &lo, &hi);
	unsigned n = pack_phase(b, phase, carried);
	uint32_t mark = point_mark(l);
	ValId i = tir_for(l->tir, lo, hi, rows_int(b, 1), carried, n);
	if (b->r->phase[phase].dir < 0)
		i = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, lo, hi), rows_int(b, 1)), i);
	l->axis[axis] = i;
	unpack_phase(b, phase, carried);
	phase_loops_from(b, phase, level + 1, next_position(b, phase, position, i, lo, hi));
	pack_phase(b, phase, carried);
	tir_end_for(l->tir, carried, n);
	unpack_phase(b, phase, carried);
	point_release(l, mark);
}

/* Iterations from..to in steps of `copies` vectors. */
static void
vector_loop(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, unsigned copies, ValId outer, bool masked)
{
	Point *l = b->l;
	ValId carried[ROWS_MAX_MEMBERS * POINT_MAX_COPIES * REDUCTION_MAX_CARRIED];
	ValId from = range[0], to = range[1], lo = range[2], hi = range[3];
	b->ncopy = copies;
	unsigned n = pack_phase(b, phase, carried);
	uint32_t mark = point_mark(l);
	ValId base = tir_for(l->tir, from, to, rows_int(b, (int64_t)(copies * l->lanes)), carried, n);
	if (b->r->phase[phase].dir < 0 && !masked)
		base = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, from, to), rows_int(b, l->lanes)), base);
	unpack_phase(b, phase, carried);
	if (masked) {
		ValId iota = tir_emit(l->tir, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
		l->mask = tir_binary(l->tir, OP_LT, tir_binary(l->tir, OP_ADD, base, iota), to);
	}
	phase_point(b, phase, axis, base, next_position(b, phase, outer, base, lo, hi));
	l->mask = 0;
	pack_phase(b, phase, carried);
	tir_end_for(l->tir, carried, n);
	unpack_phase(b, phase, carried);
	point_release(l, mark);
}

static bool
phase_folds(const RowBuild *b, unsigned phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == phase && rows_is_folded(&b->r->member[k]))
			return true;
	return false;
}

static void
lane_loop(RowBuild *b, unsigned phase, unsigned level, ValId position)
{
	Point *l = b->l;
	unsigned axis = b->r->phase[phase].loop[level];
	ValId lo, hi;
	loop_ends(b, phase, axis, &lo, &hi);
	hi = tir_binary(l->tir, OP_MAX, hi, lo);
	unsigned copies = phase_folds(b, phase) ? b->copies : 1; /* else its iterations overlap by themselves */
	ValId step = rows_int(b, (int64_t)(copies * l->lanes));
	ValId whole = tir_binary(l->tir, OP_IDIV, tir_binary(l->tir, OP_SUB, hi, lo), step);
	ValId rest = tir_binary(l->tir, OP_ADD, lo, tir_binary(l->tir, OP_MUL, whole, step));
	const ValId vectors[4] = {lo, rest, lo, hi}, tail[4] = {rest, hi, lo, hi};
	bool down = b->r->phase[phase].dir < 0;
	vector_loop(b, phase, axis, down ? tail : vectors, copies, position, down);
	vector_loop(b, phase, axis, down ? vectors : tail, 1, position, !down);
	b->ncopy = b->copies;
}

static void
phase_loops_from(RowBuild *b, unsigned phase, unsigned level, ValId position)
{
	const RowPhase *p = &b->r->phase[phase];
	if (level == p->nloop)
		phase_point(b, phase, b->r->lanes_by_row ? rows_lane_axis(b) : ROWS_NO_AXIS, b->base, position);
	else if (p->lanes && level + 1u == p->nloop)
		lane_loop(b, phase, level, position);
	else
		scalar_loop(b, phase, level, position);
}

static void
finish_fold(RowBuild *b, unsigned k)
{
	RowMember *m = &b->r->member[k];
	Point *l = b->l;
	bool by_lane = rows_folds_by_lane(b, m);
	for (unsigned c = 1; by_lane && c < b->ncopy; c++)
		reduction_merge(l, &b->fold[k][0], &b->fold[k][c]);
	if (by_lane)
		reduction_across(l, &b->fold[k][0]);
	for (unsigned c = 0; c < (by_lane ? 1 : b->ncopy); c++) {
		uint32_t mark = point_mark(l);
		l->copy = c;
		if (b->r->lanes_by_row)
			l->axis[rows_lane_axis(b)] = c ? tir_binary(l->tir, OP_ADD, b->base, rows_int(b, (int64_t)(c * l->lanes))) : b->base;
		rows_enter(b, m);
		rows_finish_member(b, m, reduction_end(l, &b->fold[k][c]), b->fold[k][c].touched);
		point_release(l, mark);
	}
	TensorArg *arg = point_tensor(l, m->t);
	for (unsigned c = 1; by_lane && c < POINT_MAX_COPIES; c++)
		arg->value[c] = arg->value[0];
}

static void
set_where(RowBuild *b, unsigned phase, bool inside)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		const RowMember *m = &b->r->member[k];
		if (m->phase == phase)
			point_tensor(b->l, m->t)->where = inside || !m->is_row ? IN_VALUE : m->panel ? IN_PANEL : IN_MEMORY;
	}
}

static void
run_phase(RowBuild *b, unsigned phase)
{
	Rows *r = b->r;
	unsigned ncopy = b->ncopy;
	if (r->phase[phase].lanes)
		b->ncopy = b->copies;
	for (unsigned k = 0; k < r->nmember; k++)
		for (unsigned c = 0; c < carried_copies(b, phase, k); c++)
			b->fold[k][c] = rows_begin_fold(b, &r->member[k]);
	set_where(b, phase, true);
	/* the first phase waits for memory, the others compute on what it brought */
	b->l->ahead = phase > 0 && r->phase[phase].lanes && !r->lanes_by_row ? r->nrow : 0;
	phase_loops_from(b, phase, 0, 0);
	b->l->ahead = 0;
	for (unsigned k = 0; k < r->nmember; k++)
		if (r->member[k].phase == phase && rows_is_folded(&r->member[k]))
			finish_fold(b, k);
	set_where(b, phase, false);
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
		run_phase(b, f);
		share_values(b, f);
	}
	point_release(b->l, mark);
}
