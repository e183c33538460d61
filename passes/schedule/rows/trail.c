/* trail.c: what a row ends with is done while the next row runs, on a processor (rows.h).
 *
 * A row's last phase, where it only computes and stores, waits for memory while nothing else is done, and what comes
 * before it computes. So it is left for the next row: pieces of it run in turns with those of that row's phase
 * `leads`, which has the same loop. What the last phase reads of its own row are values, which the loop over the rows
 * carries, and panels. A panel is of one row: the phase that fills it, or an earlier one, leads, and a piece is read
 * before the next row's goes there.
 *
 * Of each call's rows the last has no next one, so its last phase is on its own. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/plan.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

#include <string.h>

/* --- the plan --- */

typedef struct {
	const RowsPlan *p;
	unsigned first; /* of the phases that fill a panel which is read, the first */
	bool other;     /* a panel is read elsewhere than at the point */
} Reads;

static void
note_read(void *user, ExprId e)
{
	Reads *s = user;
	const Graph *g = s->p->g;
	const Rows *r = s->p->r;
	const Expr *x = expr_get(g, e);
	int from = x->op == OP_READ ? rows_member_of(r, x->ref) : -1;
	if (from < 0 || !r->member[from].panel)
		return;
	const RowMember *m = &r->member[from];
	s->first = m->phase < s->first && !BUG(trail_panel_lost) ? m->phase : s->first;
	for (unsigned k = 0; k < x->narg; k++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, k));
		s->other |= sub->op != OP_AXIS || sub->ref != m->axis[k];
	}
}

static bool
is_plain_loop(const Rows *r, unsigned phase)
{
	const RowPhase *p = &r->phase[phase];
	return p->lanes && p->nloop == 1 && p->nown == 0 && p->dir >= 0 && !p->late;
}

static bool
may_trail(const RowsPlan *p, unsigned phase, unsigned *first)
{
	Reads s = {.p = p, .first = phase - 1u};
	if (!is_plain_loop(p->r, phase))
		return false;
	for (unsigned k = 0; k < p->r->nmember; k++) {
		const RowMember *m = &p->r->member[k];
		if (m->phase != phase)
			continue;
		if (m->node.nred > 0 || !m->stored || m->panel)
			return false;
		node_walk(p->g, p->scratch, &m->node, note_read, &s);
	}
	*first = s.first;
	return !s.other || BUG(trail_reads_elsewhere);
}

static bool
may_lead(const RowsPlan *p, unsigned phase, unsigned trails)
{
	const Rows *r = p->r;
	if (!is_plain_loop(r, phase) || r->phase[phase].loop[0] != r->phase[trails].loop[0])
		return false;
	for (unsigned k = 0; k < r->nmember; k++) {
		const Node *n = &r->member[k].node;
		if (r->member[k].phase == phase && (monoid_info[n->monoid].index || !expr_is_true(p->g, n->guard) || !expr_is_true(p->g, n->domain)))
			return false;
	}
	return true;
}

void
rows_find_trail(RowsPlan *p)
{
	Rows *r = p->r;
	unsigned first = 0, last = r->nphase - 1u;
	if (p->facts->blocks || r->tmpl != TMPL_ROWRED || r->lanes_by_row || r->scans || r->across || r->nrow == 0 || r->nphase < 2)
		return;
	for (unsigned k = 0; k < r->nmember; k++)
		if (p->facts->faulty[r->member[k].t])
			return;
	if (!may_trail(p, last, &first))
		return;
	for (unsigned f = first + 1u; f-- > 0 && !r->trails;)
		if (may_lead(p, f, last)) {
			r->trails = (uint8_t)last;
			r->leads = (uint8_t)f;
		}
}

/* --- the kernel --- */

bool
rows_trail(const RowBuild *b)
{
	return b->r->trails && !b->once && !b->kernel->plan.threads;
}

typedef struct {
	const RowBuild *b;
	bool read[ROWS_MAX_MEMBERS]; /* by member: a value of the row, which the last phase reads */
} Values;

static void
note_value(void *user, ExprId e)
{
	Values *v = user;
	const Expr *x = expr_get(v->b->l->g, e);
	int m = x->op == OP_READ ? rows_member_of(v->b->r, x->ref) : -1;
	if (m >= 0 && !v->b->r->member[m].is_row)
		v->read[m] = true;
}

static Values
find_values(const RowBuild *b)
{
	Values v = {.b = b};
	for (unsigned k = 0; k < b->r->nmember; k++)
		if (b->r->member[k].phase == b->r->trails)
			node_walk(b->l->g, b->l->scratch, &b->r->member[k].node, note_value, &v);
	return v;
}

/* The row's values as what its loop carries, and back to where the last phase finds them. */
static unsigned
pack_values(const Values *v, const PointVal *from, ValId *carried)
{
	unsigned n = 0;
	for (unsigned m = 0; m < v->b->r->nmember; m++) {
		if (!v->read[m])
			continue;
		carried[n++] = from[m].re;
		if (from[m].im)
			carried[n++] = from[m].im;
	}
	return n;
}

static void
unpack_values(const Values *v, PointVal *to, const ValId *carried)
{
	for (unsigned m = 0; m < v->b->r->nmember; m++) {
		if (!v->read[m])
			continue;
		to[m].re = *carried++;
		if (to[m].im)
			to[m].im = *carried++;
	}
}

static void
place_values(RowBuild *b, const Values *v)
{
	for (unsigned m = 0; m < b->r->nmember; m++)
		for (unsigned c = 0; v->read[m] && c < POINT_MAX_COPIES; c++)
			point_tensor(b->l, b->r->member[m].t)->value[c] = b->trail_value[m];
}

/* The state of a point, so that another one takes its place for a while. */
typedef struct {
	PointHidden hidden;
	ValId axis[TG_MAX_AXES];
	Where where[ROWS_MAX_MEMBERS];
	PointVal value[ROWS_MAX_MEMBERS][POINT_MAX_COPIES];
	unsigned copy, ncopy, ahead;
} Place;

static void
leave(RowBuild *b, Place *p)
{
	Point *l = b->l;
	*p = (Place){.hidden = point_hide(l), .copy = l->copy, .ncopy = b->ncopy, .ahead = l->ahead};
	memcpy(p->axis, l->axis, sizeof p->axis);
	for (unsigned m = 0; m < b->r->nmember; m++) {
		const TensorArg *arg = point_tensor(l, b->r->member[m].t);
		p->where[m] = arg->where;
		memcpy(p->value[m], arg->value, sizeof p->value[m]);
	}
}

static void
come_back(RowBuild *b, const Place *p)
{
	Point *l = b->l;
	point_show(l, &p->hidden);
	l->copy = p->copy;
	l->ahead = p->ahead;
	b->ncopy = p->ncopy;
	memcpy(l->axis, p->axis, sizeof p->axis);
	for (unsigned m = 0; m < b->r->nmember; m++) {
		TensorArg *arg = point_tensor(l, b->r->member[m].t);
		arg->where = p->where[m];
		memcpy(arg->value, p->value[m], sizeof p->value[m]);
	}
}

/* The row before, as it is when all of its phases but the last are done. */
static void
enter_behind(RowBuild *b)
{
	const Values v = find_values(b);
	memcpy(b->l->axis, b->trail_row, b->r->nrow * sizeof *b->trail_row);
	for (unsigned f = 0; f < b->r->trails; f++)
		rows_set_where(b, f, false);
	rows_set_where(b, b->r->trails, true);
	if (!BUG(trail_takes_next))
		place_values(b, &v);
	b->l->ahead = 0;
}

void
rows_run_behind(RowBuild *b, ValId from, ValId to, bool end)
{
	Place here;
	leave(b, &here);
	enter_behind(b);
	rows_run_vectors(b, b->r->trails, from, tir_select(b->l->tir, b->trail_there, to, from), end);
	come_back(b, &here);
}

void
rows_run_trail(RowBuild *b, ValId lo, ValId hi)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	const Values v = find_values(b);
	PointVal value[ROWS_MAX_MEMBERS] = {0};
	ValId carried[2 * ROWS_MAX_MEMBERS], one = rows_int(b, 1);
	for (unsigned m = 0; m < b->r->nmember; m++)
		b->trail_value[m] = v.read[m] ? point_zero(l, l->g->tensor.at[b->r->member[m].t].dtype) : (PointVal){0};
	unsigned n = pack_values(&v, b->trail_value, carried);
	ValId row = tir_for(k, lo, hi, one, carried, n);
	unpack_values(&v, b->trail_value, carried);
	uint32_t mark = point_mark(l);
	b->trail_there = tir_binary(k, OP_LT, lo, row);
	rows_go_to(b, tir_binary(k, OP_SUB, row, one), b->r->nrow);
	memcpy(b->trail_row, l->axis, sizeof b->trail_row);
	rows_go_to(b, row, b->r->nrow);
	b->trailing = true;
	rows_run_phases(b, 1);
	b->trailing = false;
	for (unsigned m = 0; m < b->r->nmember; m++)
		value[m] = point_tensor(l, b->r->member[m].t)->value[0];
	point_release(l, mark);
	pack_values(&v, value, carried);
	tir_end_for(k, carried, n);
	unpack_values(&v, b->trail_value, carried);
	tir_if(k, tir_binary(k, OP_LT, lo, hi));
	rows_go_to(b, tir_binary(k, OP_SUB, hi, one), b->r->nrow);
	place_values(b, &v);
	if (!BUG(trail_last_missing))
		rows_run_phase(b, b->r->trails);
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}
