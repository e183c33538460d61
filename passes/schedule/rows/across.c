/* across.c: folds over parts of the rows, such as a gradient's sums along columns, in the kernel that has the
 * rows' own phases (rows.h). A task is a part. It takes the part's rows one after the other, so that an element has the
 * terms and the order that a kernel of its own would give it.
 *
 * Where a row is held, the folds are carried from row to row, a vector of accumulators each. Where it is gone through by
 * vectors, its columns are folded when the rows are done, vector by vector, from what the caches still have. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/plan.h"

#include "ir/bugs.h"

/* --- which folds --- */

static bool
may_be_across(const RowMember *m)
{
	return m->node.parts && m->node.npar == 2 && m->node.nred == 1 && !m->node.axis[2].clamp && !m->scans;
}

unsigned
rows_part_across(RowsPlan *p)
{
	Rows *r = p->r;
	RowMember last[ROWS_MAX_MEMBERS];
	unsigned n = 0, kept = 0;
	for (unsigned m = 0; p->facts->blocks && m < r->nmember; m++)
		n += may_be_across(&r->member[m]);
	if (n == 0 || n == r->nmember || r->scans)
		return 0;
	n = 0;
	for (unsigned m = 0; m < r->nmember; m++)
		if (may_be_across(&r->member[m]))
			last[n++] = r->member[m];
		else
			r->member[kept++] = r->member[m];
	for (unsigned m = 0; m < n; m++) {
		r->member[kept + m] = last[m];
		r->member[kept + m].across = true;
	}
	return n;
}

/* Whether the range of the node is the rows of its part: all parts together have each row once. */
static bool
ranges_over_rows(const RowsPlan *p, const Node *n)
{
	Graph *g = p->g;
	const Axis *a = &n->axis[2];
	const Expr *lo = expr_get(g, a->lo);
	ExprId part = expr_axis(g, 0);
	if (lo->op != OP_MUL || (expr_arg(g, a->lo, 0) != part && expr_arg(g, a->lo, 1) != part))
		return false;
	ExprId length = expr_arg(g, a->lo, expr_arg(g, a->lo, 0) == part);
	return a->hi == expr_binary(g, OP_MIN, p->r->extent[0], expr_binary(g, OP_ADD, a->lo, length));
}

typedef struct {
	const RowsPlan *p;
	unsigned m;
	bool other; /* a read of another row than that of the term, or of what is folded across rows */
} RowReads;

static void
note_row_read(void *user, ExprId e)
{
	RowReads *x = user;
	const Graph *g = x->p->g;
	const Rows *r = x->p->r;
	const Expr *p = expr_get(g, e);
	int from = p->op == OP_READ ? rows_member_of(r, p->ref) : -1;
	if (from < 0)
		return;
	if (r->member[from].across) {
		x->other = true;
		return;
	}
	const Expr *sub = expr_get(g, expr_arg(g, e, r->row_axis[from][0]));
	x->other |= r->member[x->m].across && (sub->op != OP_AXIS || sub->ref != r->member[x->m].node.npar);
}

bool
rows_find_across(RowsPlan *p)
{
	Rows *r = p->r;
	ExprId parts = 0;
	for (unsigned m = 0; m < r->nmember && r->nrow == 1; m++) {
		const Node *n = &r->member[m].node;
		RowReads reads = {.p = p, .m = m};
		node_walk(p->g, p->scratch, n, note_row_read, &reads);
		if (reads.other)
			return rows_refuse(p, REMARK_rows_parts);
		if (!r->member[m].across)
			continue;
		ExprId count = p->g->tensor.at[r->member[m].t].extent[0];
		bool one = !parts || (count == parts && n->axis[2].lo == r->member[m - 1].node.axis[2].lo);
		parts = count;
		if (!one || !expr_is_true(p->g, n->guard) || !expr_is_true(p->g, n->domain) || monoid_info[n->monoid].index ||
		    !ranges_over_rows(p, n) || !rows_may_fold_by_lane(p, m))
			return rows_refuse(p, REMARK_rows_parts);
	}
	return r->nrow == 1 || rows_refuse(p, REMARK_rows_parts);
}

/* --- their code --- */

static bool
is_of(const RowBuild *b, unsigned k, int phase)
{
	const RowMember *m = &b->r->member[k];
	return m->across && (phase < 0 || m->phase == phase);
}

/* Begins the folds of a phase, or of all (-1); whether there is a term is known of a part. */
static void
begin(RowBuild *b, int phase)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		if (!is_of(b, k, phase))
			continue;
		Reduction *f = &b->fold[k][0];
		*f = rows_begin_fold(b, &b->r->member[k]);
		f->range_tells = f->touched != 0;
		f->wants_touched = false;
		f->touched = 0;
	}
}

static unsigned
pack(RowBuild *b, int phase, ValId *carried)
{
	unsigned n = 0;
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (is_of(b, k, phase))
			n += reduction_pack(&b->fold[k][0], carried + n);
	return n;
}

static void
unpack(RowBuild *b, int phase, const ValId *carried)
{
	ValId scratch[REDUCTION_MAX_CARRIED];
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (is_of(b, k, phase)) {
			reduction_unpack(&b->fold[k][0], carried);
			carried += reduction_pack(&b->fold[k][0], scratch);
		}
}

static void
finish(RowBuild *b, int phase, const ValId *rows)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		Reduction *f = &b->fold[k][0];
		if (!is_of(b, k, phase))
			continue;
		uint32_t mark = point_mark(b->l);
		if (f->range_tells)
			f->touched = tir_binary(b->l->tir, OP_LT, rows[0], rows[1]);
		rows_enter(b, &b->r->member[k]);
		rows_finish_member(b, &b->r->member[k], reduction_end(b->l, f), f->touched);
		point_release(b->l, mark);
	}
}

static unsigned
lane_axis(const RowPhase *p)
{
	return p->loop[p->nloop - 1u];
}

static ValId
length_of(RowBuild *b, unsigned axis)
{
	return point_launch_expr(b->l, b->r->loop[axis - b->r->nrow].hi);
}

/* The columns of a late phase: a vector of them, all rows, then the next. */
static void
run_late(RowBuild *b, unsigned phase, const ValId *rows)
{
	Point *l = b->l;
	ValId carried[ROWS_MAX_MEMBERS * REDUCTION_MAX_CARRIED];
	unsigned axis = lane_axis(&b->r->phase[phase]);
	ValId end = length_of(b, axis);
	uint32_t mark = point_mark(l);
	l->axis[axis] = tir_for(l->tir, rows_int(b, 0), end, rows_int(b, l->lanes), NULL, 0);
	l->mask = point_block_mask(l, l->axis[axis], end);
	begin(b, (int)phase);
	unsigned n = pack(b, (int)phase, carried);
	uint32_t row = point_mark(l);
	l->axis[0] = tir_for(l->tir, rows[0], rows[1], rows_int(b, 1), carried, n);
	unpack(b, (int)phase, carried);
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (is_of(b, k, (int)phase)) {
			rows_enter(b, &b->r->member[k]);
			rows_take_term(b, &b->r->member[k], &b->fold[k][0], 0);
		}
	pack(b, (int)phase, carried);
	tir_end_for(l->tir, carried, n);
	unpack(b, (int)phase, carried);
	point_release(l, row);
	finish(b, (int)phase, rows);
	l->mask = 0;
	tir_end_for(l->tir, NULL, 0);
	point_release(l, mark);
}

/* Those that were carried with the rows, which one vector holds. */
static void
finish_held(RowBuild *b, const ValId *rows)
{
	Point *l = b->l;
	for (unsigned f = 0; f < b->r->nphase; f++) {
		unsigned axis = b->r->phase[f].nloop ? lane_axis(&b->r->phase[f]) : 0;
		if (!axis)
			continue;
		uint32_t mark = point_mark(l);
		l->axis[axis] = rows_int(b, 0);
		l->mask = point_block_mask(l, l->axis[axis], length_of(b, axis));
		finish(b, (int)f, rows);
		l->mask = 0;
		point_release(l, mark);
	}
}

/* What late phases read is what was stored, of all rows. */
static void
look_in_memory(RowBuild *b)
{
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].stored)
			point_tensor(b->l, b->r->member[k].t)->where = IN_MEMORY;
}

void
rows_run_across(RowBuild *b, ValId part)
{
	Point *l = b->l;
	Rows *r = b->r;
	RowMember *last = &r->member[r->nmember - 1];
	ValId carried[ROWS_MAX_MEMBERS * REDUCTION_MAX_CARRIED], rows[2];
	PointVal words = {0};
	bool held = b->kernel->plan.held;
	l->axis[r->across] = part;
	rows_enter(b, last);
	element_range(l, last->node.npar, &rows[0], &rows[1], &words, true);
	if (held)
		begin(b, -1);
	unsigned n = held ? pack(b, -1, carried) : 0;
	uint32_t mark = point_mark(l);
	l->axis[0] = tir_for(l->tir, rows[0], rows[1], rows_int(b, 1), carried, n);
	if (held)
		unpack(b, -1, carried);
	rows_run_phases(b, 1);
	if (held && !BUG(rows_start_anew))
		pack(b, -1, carried);
	tir_end_for(l->tir, carried, n);
	if (held)
		unpack(b, -1, carried);
	point_release(l, mark);
	if (held) {
		finish_held(b, rows);
		return;
	}
	look_in_memory(b);
	for (unsigned f = 0; f < r->nphase; f++)
		if (r->phase[f].late)
			run_late(b, f, rows);
}
