/* order.c: the loops of a kernel by rows, the phases they run in, and what is kept from one phase
 * for the next (rows.h). */
#include "passes/schedule/rows/plan.h"

#include "passes/expr_map.h"

#include <string.h>

enum { ACROSS_NTH = 200 }; /* of RowLoop: the parts are no loop */

/* --- loops: the region's axes --- */

static bool
add_loop(RowsPlan *p, ExprId lo, ExprId hi, unsigned nth, bool lanes, uint8_t *axis)
{
	Rows *r = p->r;
	for (unsigned k = 0; k < r->nloop; k++) {
		const RowLoop *have = &r->loop[k];
		if (have->lo == lo && have->hi == hi && have->nth == nth && have->lanes == lanes) {
			*axis = (uint8_t)(r->nrow + k);
			return true;
		}
	}
	if (r->nrow + r->nloop == TG_MAX_AXES)
		return rows_refuse(p, REMARK_rows_many_loops);
	*axis = (uint8_t)(r->nrow + r->nloop);
	r->loop[r->nloop++] = (RowLoop){.lo = lo, .hi = hi, .nth = (uint8_t)nth, .lanes = lanes};
	return true;
}

static ExprId
over_region(RowsPlan *p, const RowMember *m, ExprId e)
{
	ExprId sub[TG_MAX_AXES];
	unsigned n = (unsigned)m->node.npar + m->node.nred;
	for (unsigned k = 0; k < n; k++)
		sub[k] = expr_axis(p->g, m->axis[k]);
	return e ? expr_subst_axes(p->g, e, sub, n) : 0;
}

/* The loops of member m, its ranges in the order of its axes, and its expressions over them. Range
 * ends use only axes before theirs, which have their place by then. */
static bool
place_axes(RowsPlan *p, unsigned index)
{
	Rows *r = p->r;
	RowMember *m = &r->member[index];
	Node *n = &m->node;
	unsigned lane = r->lanes_by_row ? ROWS_NO_AXIS : p->inner_lane[index], all = (unsigned)n->npar + n->nred;
	ExprId lo[TG_MAX_AXES], hi[TG_MAX_AXES], zero = expr_int(p->g, DT_I64, 0);
	for (unsigned k = 0; k < r->nrow && !m->across; k++)
		m->axis[r->row_axis[index][k]] = (uint8_t)k;
	for (unsigned a = 0; a < all; a++) {
		if (a < n->npar && rows_is_row_axis(r, index, a))
			continue;
		if (m->across && a == n->npar) { /* the rows of the part */
			m->axis[a] = 0;
			n->axis[a].lo = over_region(p, m, n->axis[a].lo);
			n->axis[a].hi = over_region(p, m, n->axis[a].hi);
			continue;
		}
		bool own = a < n->npar;
		lo[a] = own ? zero : over_region(p, m, n->axis[a].lo);
		hi[a] = own ? p->g->tensor.at[m->t].extent[a] : over_region(p, m, n->axis[a].hi);
		unsigned nth = 0;
		for (unsigned b = 0; b < a; b++)
			if (!(b < n->npar && rows_is_row_axis(r, index, b)) && lo[b] == lo[a] && hi[b] == hi[a])
				nth++;
		if (n->axis[a].clamp && !own)
			nth = 100 + index; /* a cut range is its member's alone */
		if (m->across && a == 0)
			nth = ACROSS_NTH;
		if (!add_loop(p, lo[a], hi[a], nth, a == lane, &m->axis[a]))
			return false;
		if (m->across && a == 0)
			r->across = m->axis[a];
		if (!own) {
			n->axis[a].lo = lo[a];
			n->axis[a].hi = hi[a];
			n->axis[a].clamp = over_region(p, m, n->axis[a].clamp);
		}
	}
	for (unsigned a = 0; a < n->npar; a++)
		m->side_axis = rows_is_row_axis(r, index, a) ? m->side_axis : m->axis[a];
	n->domain = over_region(p, m, n->domain);
	n->guard = over_region(p, m, n->guard);
	n->body = over_region(p, m, n->body);
	n->finish = over_region(p, m, n->finish);
	n->factor = over_region(p, m, n->factor);
	m->position = over_region(p, m, m->position);
	m->first = over_region(p, m, m->first);
	return true;
}

/* --- phases --- */

/* The loops that member m shares with its phase: its own axes or, without, its ranges; both where it folds
 * along them. */
static void
phase_loops(const Rows *r, unsigned index, RowPhase *out)
{
	const RowMember *m = &r->member[index];
	bool folds = rows_is_folded(m);
	unsigned lo = m->across ? 1 : m->is_row && !m->side ? 0 : m->node.npar, hi = folds ? (unsigned)m->node.npar + m->node.nred : m->node.npar;
	*out = (RowPhase){0};
	for (int lanes = 0; lanes < 2; lanes++)
		for (unsigned a = lo; a < hi; a++) {
			if (m->axis[a] < r->nrow || r->loop[m->axis[a] - r->nrow].lanes != (bool)lanes)
				continue;
			out->loop[out->nloop++] = m->axis[a];
			out->nown += m->folds_along && a < m->node.npar;
			out->lanes = lanes;
		}
	if (m->scans || m->steps)
		out->dir = m->reverse ? -1 : 1;
	else if (folds && out->nloop)
		out->dir = 1;
}

/* Whether a member with these loops can share the phase. */
static bool
shares_loops(const RowPhase *phase, const RowPhase *loops)
{
	return phase->late == loops->late && phase->nloop == loops->nloop && phase->nown == loops->nown && memcmp(phase->loop, loops->loop, loops->nloop) == 0 &&
	       (!phase->dir || !loops->dir || phase->dir == loops->dir);
}

typedef struct {
	RowsPlan *p;
	unsigned m;
	unsigned earliest; /* phase */
} Order;

/* Whether the read is of the element that its own tensor's member computes at the same point. */
static bool
reads_same_point(const Graph *g, const RowMember *from, ExprId e)
{
	const Expr *p = expr_get(g, e);
	for (unsigned k = 0; k < p->narg; k++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, k));
		if (sub->op != OP_AXIS || sub->ref != from->axis[k])
			return false;
	}
	return true;
}

static void
order_read(void *user, ExprId e)
{
	Order *o = user;
	Rows *r = o->p->r;
	const Expr *p = expr_get(o->p->g, e);
	int at = p->op == OP_READ ? rows_member_of(r, p->ref) : -1;
	if (at < 0 || at >= (int)o->m)
		return;
	RowMember *from = &r->member[at];
	if (from->steps) /* of earlier steps, or by an earlier member of the step */
		return;
	bool same = !rows_is_folded(from) && !p->access && reads_same_point(o->p->g, from, e);
	unsigned phase = from->phase + (same ? 0u : 1u);
	if (phase > o->earliest)
		o->earliest = phase;
}

static bool
place_member(RowsPlan *p, unsigned index)
{
	Rows *r = p->r;
	RowPhase loops;
	Order o = {p, index, 0};
	phase_loops(r, index, &loops);
	loops.late = r->member[index].across && !p->facts->held;
	node_walk(p->g, p->scratch, &r->member[index].node, order_read, &o);
	for (unsigned f = o.earliest; f < r->nphase; f++)
		if (shares_loops(&r->phase[f], &loops)) {
			r->member[index].phase = (uint8_t)f;
			r->phase[f].dir = loops.dir ? loops.dir : r->phase[f].dir;
			return true;
		}
	if (r->nphase == ROWS_MAX_PHASES)
		return rows_refuse(p, REMARK_rows_many_phases);
	r->member[index].phase = (uint8_t)r->nphase;
	r->phase[r->nphase++] = loops;
	return true;
}

/* --- what must be kept for later --- */

/* What goes past the caches must be kept beside for who reads it again: if it can. */
static bool
may_stream(const RowsPlan *p, unsigned m)
{
	TensorId t = p->r->member[m].t;
	return p->facts->streams[t] && !p->facts->faulty[t] && rows_own_axes(p->r, m) <= 1;
}

static void
keep_read(void *user, ExprId e)
{
	Order *o = user;
	Rows *r = o->p->r;
	const Expr *p = expr_get(o->p->g, e);
	int at = p->op == OP_READ ? rows_member_of(r, p->ref) : -1;
	if (at < 0)
		return;
	RowMember *from = &r->member[at];
	bool late = r->phase[r->member[o->m].phase].late && !r->phase[from->phase].late;
	from->panel |= late; /* of other rows than the last one, too */
	if (!from->is_row)
		return;
	if (rows_phase_is_held(r, o->p->facts->held, from->phase) && reads_same_point(o->p->g, from, e))
		return;
	if (from->phase != r->member[o->m].phase && (!from->stored || may_stream(o->p, (unsigned)at)))
		from->panel = true;
	else if (from->phase != r->member[o->m].phase)
		from->streams = false;
}

static bool
find_panels(RowsPlan *p)
{
	Rows *r = p->r;
	for (unsigned m = 0; m < r->nmember; m++)
		r->member[m].streams = p->facts->streams[r->member[m].t] && !r->member[m].steps;
	for (unsigned m = 0; m < r->nmember; m++) {
		Order o = {p, m, 0};
		node_walk(p->g, p->scratch, &r->member[m].node, keep_read, &o);
	}
	for (unsigned index = 0; index < r->nmember; index++) {
		RowMember *m = &r->member[index];
		if (!m->panel)
			continue;
		if (p->facts->blocks) { /* threads have no memory of their own: it has a place as if another kernel read it */
			m->panel = false;
			m->parked = !m->stored;
			m->stored = true;
			continue;
		}
		if (rows_own_axes(r, index) > 1)
			return rows_refuse(p, REMARK_rows_large_panel);
		if (p->facts->faulty[m->t])
			return rows_refuse(p, REMARK_rows_faulty_panel);
		for (unsigned a = 0; a < m->node.npar; a++)
			if (!rows_is_row_axis(r, index, a))
				m->panel_axis[m->npanel++] = (uint8_t)a;
	}
	return true;
}

/* How many values of its own axis member m folds side by side; 0: it has other axes, or it is a loop. */
static unsigned
count_side(const RowsPlan *p, unsigned index)
{
	const Rows *r = p->r;
	const RowMember *m = &r->member[index];
	if (!m->folds_along || rows_own_axes(r, index) != 1)
		return 0;
	unsigned own = 0;
	while (rows_is_row_axis(r, index, own))
		own++;
	const Expr *extent = expr_get(p->g, p->g->tensor.at[m->t].extent[own]);
	return extent->op == OP_CONST && extent->imm.i > 0 && extent->imm.i <= ROWS_MAX_SIDE ? (unsigned)extent->imm.i : 0;
}

bool
rows_order_members(RowsPlan *p)
{
	Rows *r = p->r;
	for (unsigned m = 0; m < r->nmember; m++) {
		r->member[m].is_row = rows_own_axes(r, m) > 0;
		r->member[m].folds_along = r->member[m].is_row && !r->lanes_by_row && rows_folds_inner_lane(p, m);
		r->member[m].side = (uint8_t)count_side(p, m);
		if (!place_axes(p, m))
			return false;
	}
	for (unsigned m = 0; m < r->nmember; m++)
		if (!place_member(p, m))
			return false;
	if (r->nrow == 0 && r->scans && r->nphase > 1) /* more could run at once in a kernel of its own */
		return rows_refuse(p, REMARK_rows_differ);
	return find_panels(p);
}
