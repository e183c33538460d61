/* steps.c: scans down columns of a block's threads, several steps at a time.
 *
 * A step waits for the one before, but what it reads does not. So the terms of all steps of a turn are asked for first, and come
 * from memory together; then the steps are taken one after another. A thread has the more steps on their way the fewer
 * columns it has side by side. */
#include "passes/schedule/rows/build.h"

enum { STEP_WORDS = 32, LEAST_STEPS = 4, MOST_STEPS = 32 }; /* of a thread: terms of 32 bits that are on their way */

typedef struct {
	PointVal factor, term;
} StepTerm;

unsigned
rows_steps_at_once(const RowBuild *b, unsigned phase, unsigned level)
{
	const RowPhase *p = &b->r->phase[phase];
	unsigned members = 0;
	if (!b->kernel->plan.threads || !b->r->lanes_by_row || !b->r->scans || level + 1u != p->nloop)
		return 1;
	for (unsigned k = 0; k < b->r->nmember; k++) {
		const RowMember *m = &b->r->member[k];
		if (m->phase != phase)
			continue;
		members++;
		const Reduction *f = &b->fold[k][0];
		if (!m->scans || !expr_is_true(b->l->g, m->node.guard) || f->position || f->fma || f->may_fail || f->may_cut)
			return 1;
	}
	unsigned lanes = b->l->lanes / b->l->tir->threads, steps = STEP_WORDS / (lanes * members);
	return steps < LEAST_STEPS ? LEAST_STEPS : steps > MOST_STEPS ? MOST_STEPS : steps;
}

static void
read_step(RowBuild *b, unsigned phase, StepTerm *to)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		RowMember *m = &b->r->member[k];
		if (m->phase != phase)
			continue;
		bool always = expr_is_true(b->l->g, m->node.domain);
		rows_enter(b, m);
		to->factor = m->node.factor ? point_value(b->l, m->node.factor, always) : (PointVal){0};
		to++->term = point_value(b->l, m->node.body, always);
	}
}

static void
take_step(RowBuild *b, unsigned phase, const StepTerm *from)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		RowMember *m = &b->r->member[k];
		if (m->phase != phase)
			continue;
		rows_enter(b, m);
		rows_scan_term(b, m, &b->fold[k][0], from->factor, from->term);
		from++;
	}
}

void
rows_run_steps(RowBuild *b, unsigned phase, unsigned level, const ValId *range, unsigned steps)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	ValId carried[ROWS_MAX_CARRIED], at[MOST_STEPS];
	StepTerm *term = ARENA_ARRAY(l->scratch, StepTerm, (size_t)steps * b->r->nmember);
	unsigned axis = b->r->phase[phase].loop[level], n = rows_pack_phase(b, phase, carried);
	uint32_t mark = point_mark(l);
	ValId first = tir_for(k, range[0], range[1], rows_int(b, steps), carried, n);
	rows_unpack_phase(b, phase, carried);
	l->axis[rows_lane_axis(b)] = b->base;
	for (unsigned s = 0; s < steps; s++) {
		uint32_t step = point_mark(l);
		at[s] = s ? tir_binary(k, OP_ADD, first, rows_int(b, s)) : first;
		if (b->r->phase[phase].dir < 0)
			at[s] = tir_binary(k, OP_SUB, tir_binary(k, OP_SUB, tir_binary(k, OP_ADD, range[2], range[3]), rows_int(b, 1)), at[s]);
		l->axis[axis] = at[s];
		read_step(b, phase, term + (size_t)s * b->r->nmember);
		point_release(l, step);
	}
	for (unsigned s = 0; s < steps; s++) {
		uint32_t step = point_mark(l);
		l->axis[axis] = at[s];
		take_step(b, phase, term + (size_t)s * b->r->nmember);
		point_release(l, step);
	}
	rows_pack_phase(b, phase, carried);
	tir_end_for(k, carried, n);
	rows_unpack_phase(b, phase, carried);
	point_release(l, mark);
}
