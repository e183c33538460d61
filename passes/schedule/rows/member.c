/* member.c: one member of a kernel by rows, at a point or a vector of points: its terms, its
 * element, and where that goes (rows.h). */
#include "passes/schedule/rows/build.h"

#include "ir/bugs.h"

/* --- points --- */

/* The axes of member m, by its own numbers. */
static void
member_point(const RowBuild *b, const RowMember *m, ValId *p)
{
	for (unsigned a = 0; a < m->node.npar; a++)
		p[a] = b->l->axis[m->axis[a]];
}

/* The member's axis along the lanes; -1: none. */
static int
member_lane(const RowBuild *b, const RowMember *m)
{
	for (unsigned a = 0; b->l->lanes && a < m->node.npar; a++)
		if (b->l->lane_axes >> m->axis[a] & 1)
			return (int)a;
	return -1;
}

void
rows_enter(RowBuild *b, RowMember *m)
{
	b->l->node = &m->node;
	b->l->acc = (PointVal){0};
	b->l->touched = 0;
}

void
rows_deliver(RowBuild *b, RowMember *m, PointVal v)
{
	Point *l = b->l;
	TensorArg *arg = point_tensor(l, m->t);
	ValId p[TG_MAX_RANK];
	arg->value[l->copy] = v;
	member_point(b, m, p);
	ValId mask = l->mask;
	if (b->kernel->plan.columns && !b->r->ntile && !m->is_row)
		l->mask = rows_first_row(b);
	if (m->stored)
		point_store(l, m->t, v, p, member_lane(b, m));
	l->mask = mask;
	if (m->panel)
		point_put_panel(l, m->t, v, p, member_lane(b, m));
}

void
rows_finish_member(RowBuild *b, RowMember *m, PointVal folded, ValId touched)
{
	bool always = expr_is_true(b->l->g, m->node.domain);
	PointVal v = element_finish(b->l, folded, touched, always);
	rows_deliver(b, m, always ? v : element_where(b->l, v));
}

/* --- folds --- */

/* Whether vectors run where member m is computed. */
static bool
has_lanes(const RowBuild *b, const RowMember *m)
{
	return b->l->lanes && (b->r->lanes_by_row || b->r->phase[m->phase].lanes);
}

bool
rows_folds_by_lane(const RowBuild *b, const RowMember *m)
{
	return (rows_is_folded(m) || m->scans) && b->r->phase[m->phase].lanes;
}

enum { GROUP_WORDS = 4 }; /* of a group of lanes: 16 bytes */

/* Whether lanes that a row lacks come after all that it has, so that what they fold is nobody's: of a scan whose task has one
 * vector of it, or of one that holds it, from the first term on. Selects would keep each lane's test until its group has come from memory, for which a thread
 * has too few: groups would come one after another. Elements of 32 bits and more have no registers to come together. */
static bool
ends_behind(const RowBuild *b, const RowMember *m)
{
	const KernelPlan *p = &b->kernel->plan;
	return m->scans && p->group > GROUP_WORDS && (rows_scans_alone(b) || (p->held && !m->reverse));
}

ValId
rows_keeps_terms(const RowBuild *b, const RowMember *m)
{
	bool by_lane = rows_folds_by_lane(b, m) || b->kernel->plan.columns;
	return by_lane && !ends_behind(b, m) && !BUG(row_tail_terms) ? b->l->mask : 0;
}

/* One term of the node entered, at the point. Vectors take it by selects, points by a branch. */
void
rows_take_term(RowBuild *b, RowMember *m, Reduction *f, ValId position)
{
	Point *l = b->l;
	bool always = expr_is_true(l->g, m->node.domain), all = expr_is_true(l->g, m->node.guard);
	if (!has_lanes(b, m)) {
		element_term(l, f, position, always);
		return;
	}
	ValId keep = rows_keeps_terms(b, m);
	if (!all) {
		PointVal guard = point_value(l, m->node.guard, always);
		reduction_join(l, f, guard);
		keep = keep ? tir_binary(l->tir, OP_AND, keep, guard.re) : guard.re;
	}
	reduction_term_where(l, f, position, keep, always && all);
}

Reduction
rows_begin_fold(RowBuild *b, RowMember *m)
{
	rows_enter(b, m);
	Reduction f = reduction_begin(b->l);
	bool begins = m->node.monoid == MON_PROD && f.type == DT_C64; /* with its first term, not with 1 times that */
	if (m->scans && expr_is_true(b->l->g, m->node.guard) && !f.position && !begins) { /* each element has the term of its own step */
		f.wants_touched = false;
		f.touched = 0;
	}
	if (m->node.factor && rows_folds_by_lane(b, m))
		f = reduction_linear_begin(b->l, &f);
	if (has_lanes(b, m)) {
		/* GPUs have such a max and min; of columns there are more side by side than registers for several parts of each,
		 * and a scan joins all parts at every vector */
		if (!b->kernel->plan.threads && !b->r->lanes_by_row && !m->scans)
			reduction_rank(b->l, &f);
		else if (rows_is_folded(m) && !m->scans && !m->side && rows_phase_is_held(b->r, b->kernel->plan.held, m->phase))
			reduction_search(&f); /* positions are numbers of lanes */
		f.by_group = expr_is_true(b->l->g, m->node.guard);
		if (!(m->scans && rows_folds_by_lane(b, m) && b->kernel->plan.threads)) /* a block carries scalars */
			reduction_widen(b->l, &f);
	}
	return f;
}

static void fold_inside(RowBuild *b, RowMember *m, Reduction *f, unsigned a, ValId position);

/* Whether a range is known to have very few terms. */
static bool
is_unrolled(const RowBuild *b, ValId lo, ValId hi)
{
	const TirInst *from = tir_inst(b->l->tir, lo), *to = tir_inst(b->l->tir, hi);
	return from->op == OP_CONST && to->op == OP_CONST && from->imm.i >= 0 && to->imm.i <= ROWS_MAX_SIDE;
}

static void
unroll_inside(RowBuild *b, RowMember *m, Reduction *f, unsigned a, ValId lo, ValId hi)
{
	Point *l = b->l;
	int64_t end = tir_inst(l->tir, hi)->imm.i;
	for (int64_t i = tir_inst(l->tir, lo)->imm.i; i < end; i++) {
		uint32_t mark = point_mark(l);
		l->axis[m->axis[a]] = rows_int(b, i);
		fold_inside(b, m, f, a + 1, 0);
		point_release(l, mark);
	}
}

/* The value of a row's element with reduced axes of its own, whose loops are inside the phase's. */
static void
fold_inside(RowBuild *b, RowMember *m, Reduction *f, unsigned a, ValId position)
{
	Point *l = b->l;
	ValId carried[REDUCTION_MAX_CARRIED], lo, hi;
	PointVal words = {0};
	if (a == (unsigned)m->node.npar + m->node.nred) {
		rows_take_term(b, m, f, position);
		return;
	}
	element_range(l, a, &lo, &hi, &words, expr_is_true(l->g, m->node.domain));
	reduction_join(l, f, words);
	if (is_unrolled(b, lo, hi) && !f->position) {
		unroll_inside(b, m, f, a, lo, hi);
		return;
	}
	unsigned n = reduction_pack(f, carried);
	uint32_t mark = point_mark(l);
	ValId i = tir_for(l->tir, lo, hi, rows_int(b, 1), carried, n);
	l->axis[m->axis[a]] = i;
	reduction_unpack(f, carried);
	if (f->position) {
		ValId outer = position ? tir_binary(l->tir, OP_MUL, position, tir_binary(l->tir, OP_SUB, hi, lo)) : 0;
		position = tir_binary(l->tir, OP_SUB, i, lo);
		position = outer ? tir_binary(l->tir, OP_ADD, outer, position) : position;
	}
	fold_inside(b, m, f, a + 1, position);
	reduction_pack(f, carried);
	tir_end_for(l->tir, carried, n);
	reduction_unpack(f, carried);
	point_release(l, mark);
}

void
rows_element(RowBuild *b, RowMember *m)
{
	Point *l = b->l;
	bool always = expr_is_true(l->g, m->node.domain);
	rows_enter(b, m);
	if (m->node.monoid == MON_NONE) {
		rows_finish_member(b, m, point_value(l, m->node.body, always), tir_int(l->tir, DT_BOOL, 1));
		return;
	}
	Reduction f = rows_begin_fold(b, m);
	fold_inside(b, m, &f, m->node.npar, 0);
	rows_finish_member(b, m, reduction_end(l, &f), f.touched);
}
