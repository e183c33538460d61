/* scan.c: a member of a kernel by rows that is a scan (prefixes.h), at a point or a vector of points.
 *
 * Points, and vectors of rows, take their term into the fold so far, which is the element then. A vector
 * along the scanned axis folds its own lanes first, each with those before it, and joins the fold so far
 * to each; so one vector waits for the one before for a single join. That regroups terms, never reorders
 * them, and is chosen only where the mode allows it (lanes.c).
 *
 * A reverse scan meets the terms from the last to the first: an arg then decides by positions. */
#include "passes/schedule/rows/build.h"

#include "ir/bugs.h"

void
rows_finish_scan(RowBuild *b, RowMember *m, const Reduction *f)
{
	Point *l = b->l;
	Reduction all = *f;
	if (!all.touched)
		all.touched = tir_int(l->tir, DT_BOOL, 1);
	PointVal v = reduction_end(l, &all);
	if (f->position)
		v.re = tir_binary(l->tir, OP_SUB, v.re, point_value(l, m->first, true).re);
	rows_finish_member(b, m, v, all.touched);
}

Reduction
rows_scan_steps(RowBuild *b, RowMember *m, const Reduction *unit, ValId position)
{
	Point *l = b->l;
	Reduction terms = *unit;
	if (!m->node.factor) {
		reduction_widen(l, &terms);
		rows_take_term(b, m, &terms, position);
		return terms;
	}
	ValId keep = rows_keeps_terms(b, m);
	PointVal factor = point_value(l, m->node.factor, true), term = point_value(l, m->node.body, true);
	DType t = (DType)expr_get(l->g, m->node.body)->dtype;
	terms = (Reduction){.monoid = unit->monoid, .type = t, .re = point_widen(l, term.re), .factor = point_widen(l, factor.re)};
	if (keep) {
		bool real = dtype_is_float(t);
		terms.re = tir_select(l->tir, keep, terms.re, real ? tir_float(l->tir, t, -0.0) : tir_int(l->tir, t, 0));
		terms.factor = tir_select(l->tir, keep, terms.factor, real ? tir_float(l->tir, t, 1) : tir_int(l->tir, t, 1));
	}
	return terms;
}

/* A vector of a block, which keeps the fold so far as scalars. */
static void
take_block(RowBuild *b, RowMember *m, Reduction *carry, ValId position)
{
	Point *l = b->l;
	Reduction unit = rows_begin_fold(b, m), terms = rows_scan_steps(b, m, &unit, position);
	reduction_prefix_block(l, &terms, &unit, carry, m->reverse);
	rows_finish_scan(b, m, &terms);
}

/* A vector that is known by itself before what it begins with is: of a row that others, of other tasks, are before; or all
 * of the row. */
static void
take_tile(RowBuild *b, RowMember *m, ValId position)
{
	ReductionTile *t = b->vectors[m - b->r->member];
	Reduction unit = rows_begin_fold(b, m), terms = rows_scan_steps(b, m, &unit, position);
	reduction_tile_begin(t, &terms, &unit, m->reverse);
	Reduction before = b->kernel->plan.posts ? rows_before_vector(b, m, &unit, &t->all) : unit;
	terms = reduction_tile_end(t, &before);
	rows_finish_scan(b, m, &terms);
}

static void
take_vector(RowBuild *b, RowMember *m, Reduction *carry, ValId position)
{
	Point *l = b->l;
	Reduction unit = rows_begin_fold(b, m), terms = unit, value = *carry;
	rows_take_term(b, m, &terms, position);
	reduction_prefix(l, &terms, &unit, m->reverse);
	reduction_merge(l, &value, &terms);
	Reduction all = reduction_spread(l, &terms, m->reverse ? 0 : l->lanes - 1u);
	if (!BUG(scan_forgets))
		reduction_merge(l, carry, &all);
	rows_finish_scan(b, m, &value);
}

static void
take_reverse(RowBuild *b, RowMember *m, Reduction *carry, ValId position)
{
	Reduction term = rows_begin_fold(b, m);
	rows_take_term(b, m, &term, position);
	reduction_merge(b->l, &term, carry);
	*carry = term;
}

void
rows_scan_term(RowBuild *b, RowMember *m, Reduction *carry, PointVal factor, PointVal term)
{
	if (m->node.factor)
		reduction_linear_step(b->l, carry, factor, term);
	else
		reduction_value(b->l, carry, term, 0);
	if (b->r->lanes_by_row)
		reduction_widen(b->l, carry);
	rows_finish_scan(b, m, carry);
}

bool
rows_scans_tiles(const RowBuild *b)
{
	return b->kernel->plan.posts || (b->r->scans && b->kernel->plan.held);
}

bool
rows_scans_alone(const RowBuild *b)
{
	bool folds = b->r->nphase > 1;
	for (unsigned k = 0; k < b->r->nmember; k++)
		folds |= rows_is_folded(&b->r->member[k]);
	return b->kernel->plan.posts || (b->r->scans && b->kernel->plan.held && !folds);
}

/* The end of a row, which a launch has found to be of whole units. */
static ValId
in_units(RowBuild *b, ValId end)
{
	const KernelPlan *p = &b->kernel->plan;
	TirKernel *k = b->l->tir;
	const TirInst *e = tir_inst(k, end);
	unsigned unit = p->anywhere ? 1 : p->group;
	if (e->op == OP_SCALAR && unit > 1 && k->scalar.at[e->imm.i].multiple < unit)
		k->scalar.at[e->imm.i].multiple = unit;
	return end;
}

/* The only vector of a task, where nothing comes after it: that with the row's last steps alone needs a mask. Of a row that goes
 * back these come first in memory, so that its vectors begin at its end. */
void
rows_scan_vector(RowBuild *b, unsigned phase, unsigned axis, const ValId *range, ValId outer)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	bool back = b->r->phase[phase].dir < 0;
	ValId before = rows_before_lanes(b), lanes = rows_int(b, l->lanes);
	ValId end = tir_binary(k, OP_ADD, before, lanes), base = tir_binary(k, OP_ADD, range[0], before);
	if (back)
		base = tir_binary(k, OP_SUB, in_units(b, range[1]), end);
	tir_if(k, back ? tir_binary(k, OP_LE, range[0], base) : tir_binary(k, OP_LE, tir_binary(k, OP_ADD, base, lanes), range[1]));
	uint32_t mark = point_mark(l);
	rows_phase_point(b, phase, axis, base, rows_next_position(b, phase, outer, base, range[0], range[1]));
	point_release(l, mark);
	tir_else(k, NULL, 0);
	l->mask = back ? tir_unary(k, OP_NOT, point_block_mask(l, base, range[0])) : point_block_mask(l, base, range[1]);
	rows_phase_point(b, phase, axis, base, rows_next_position(b, phase, outer, base, range[0], range[1]));
	l->mask = 0;
	point_release(l, mark);
	tir_end_if(k, NULL, 0);
}

void
rows_declare_scans(RowBuild *b)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		if (!b->r->member[k].scans)
			continue;
		Reduction unit = rows_begin_fold(b, &b->r->member[k]);
		b->vectors[k] = ARENA_NEW(b->l->scratch, ReductionTile);
		reduction_tile_declare(b->l, &unit, b->vectors[k]);
	}
}

void
rows_scan(RowBuild *b, RowMember *m, Reduction *carry)
{
	ValId position = carry->position ? point_value(b->l, m->position, true).re : 0;
	if (rows_scans_tiles(b)) {
		take_tile(b, m, position);
		return;
	}
	if (rows_folds_by_lane(b, m) && b->kernel->plan.threads) {
		take_block(b, m, carry, position);
		return;
	}
	if (rows_folds_by_lane(b, m)) {
		take_vector(b, m, carry, position);
		return;
	}
	if (m->node.factor) {
		PointVal factor = point_value(b->l, m->node.factor, true);
		rows_scan_term(b, m, carry, factor, point_value(b->l, m->node.body, true));
		return;
	}
	if (m->reverse && position)
		take_reverse(b, m, carry, position);
	else
		rows_take_term(b, m, carry, position);
	rows_finish_scan(b, m, carry);
}
