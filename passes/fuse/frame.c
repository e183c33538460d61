/* frame.c: the members of a cascade in common axes.
 *
 * in     reduction nodes, each after those it reads
 * out    the cascade's axes: parallel ones are matched by what reads what (a member that reads %7[@0, @2]
 *        has %7's axes there), else by position and extent; reduced ones by position. All members have
 *        the same ranges (P1). Guards that are not all the same become selects in the terms, where the monoid
 *        has a unit. Pointwise nodes between members are inlined. */
#include "passes/fuse/frame.h"

#include <string.h>

#include "passes/expr_map.h"
#include "passes/fuse/formula.h"

enum { MEETS_UNKNOWN, MEETS_NONE, MEETS_INLINED, MEETS_MEMBER, MEETS_BETWEEN };

bool
frame_refuse(Frame *f, RemarkId why, ExprId at, TensorId member)
{
	if (f->why.why == REMARK_NONE)
		f->why = (Refusal){.why = why, .at = at, .member = member};
	return false;
}

static int
member_of(const Frame *f, TensorId t)
{
	for (unsigned k = 0; k < f->out->nmember; k++)
		if (f->out->member[k].tensor == t)
			return (int)k;
	return -1;
}

int
frame_member_read(const Frame *f, ExprId e)
{
	const Expr *p = expr_get(f->g, e);
	return p->op == OP_READ ? member_of(f, p->ref) : -1;
}

/* --- what depends on members --- */

static uint8_t
meets(Frame *f, TensorId t);

typedef struct {
	Frame *f;
	bool met;
} Meet;

static void
meet_read(void *user, ExprId e)
{
	Meet *m = user;
	const Expr *p = expr_get(m->f->g, e);
	if (p->op == OP_READ)
		m->met |= meets(m->f, p->ref) != MEETS_NONE;
}

static bool
expr_meets(Frame *f, ExprId e)
{
	Meet m = {f, false};
	if (e)
		expr_walk(f->g, f->scratch, e, meet_read, &m);
	return m.met;
}

static bool
is_pointwise(const Node *n)
{
	return n->monoid == MON_NONE && !n->scatter && !n->recur;
}

/* Nodes of a recurrence read one another: they are taken not to depend on members, none of which is one. */
static uint8_t
meets(Frame *f, TensorId t)
{
	if (f->meets[t] != MEETS_UNKNOWN)
		return f->meets[t];
	const Node *n = tensor_node(f->g, t);
	f->meets[t] = MEETS_NONE;
	if (member_of(f, t) >= 0)
		return f->meets[t] = MEETS_MEMBER;
	if (!n)
		return MEETS_NONE;
	bool any = expr_meets(f, n->body) || expr_meets(f, n->guard) || expr_meets(f, n->finish) || expr_meets(f, n->init);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++)
		any = any || expr_meets(f, n->axis[k].lo) || expr_meets(f, n->axis[k].hi) || expr_meets(f, n->axis[k].clamp);
	for (unsigned k = 0; n->scatter && k < n->npar; k++)
		any = any || expr_meets(f, n->target[k]);
	return f->meets[t] = !any ? MEETS_NONE : is_pointwise(n) ? MEETS_INLINED : MEETS_BETWEEN;
}

static ExprId
inline_read(void *user, Graph *g, ExprId e)
{
	Frame *f = user;
	Expr p = *expr_get(g, e);
	if (p.op != OP_READ)
		return e;
	uint8_t how = meets(f, p.ref);
	if (how == MEETS_BETWEEN || (how != MEETS_NONE && p.access))
		frame_refuse(f, REMARK_cascade_between, e, f->out->member[f->member].tensor);
	if (how != MEETS_INLINED || p.access)
		return e;
	return expr_at_read(g, expr_rewrite(g, tensor_node(g, p.ref)->body, inline_read, f), e);
}

static ExprId
inlined(Frame *f, ExprId e)
{
	return e ? expr_rewrite(f->g, e, inline_read, f) : 0;
}

/* --- axes --- */

/* Matches the axes of the member being built by this read of an earlier one. */
static void
match_axes(void *user, ExprId e)
{
	Frame *f = user;
	const Expr *p = expr_get(f->g, e);
	int r = frame_member_read(f, e);
	TensorId self = f->out->member[f->member].tensor;
	const Node *n = tensor_node(f->g, self);
	if (r < 0)
		return;
	if ((unsigned)r >= f->member) {
		frame_refuse(f, REMARK_cascade_group, e, self);
		return;
	}
	for (unsigned k = 0; k < p->narg; k++) {
		const Expr *s = expr_get(f->g, expr_arg(f->g, e, k));
		if (s->op != OP_AXIS || s->ref >= n->npar) {
			frame_refuse(f, REMARK_cascade_subscript, e, self);
			return;
		}
		int8_t *at = &f->index[f->member][s->ref], axis = f->index[r][k];
		if (*at >= 0 && *at != axis)
			frame_refuse(f, REMARK_cascade_subscript, e, self);
		*at = axis;
	}
}

static unsigned
times_taken(const Frame *f, unsigned member, int axis)
{
	unsigned n = 0;
	for (unsigned k = 0; k < TG_MAX_AXES; k++)
		n += f->index[member][k] == axis;
	return n;
}

/* Axes that no read matches: those of a member that reads none by position, others are new. */
static bool
name_axes(Frame *f, unsigned q, bool reads)
{
	Cascade *c = f->out;
	TensorId t = c->member[q].tensor;
	for (unsigned k = 0; k < tensor_node(f->g, t)->npar; k++) {
		ExprId extent = index_norm(f->g, f->g->tensor.at[t].extent[k]);
		if (times_taken(f, q, f->index[q][k]) > 1 && f->index[q][k] >= 0)
			return frame_refuse(f, REMARK_cascade_subscript, 0, t);
		if (f->index[q][k] >= 0)
			continue;
		if (!reads && k < c->npar && c->extent[k] == extent && times_taken(f, q, (int)k) == 0) {
			f->index[q][k] = (int8_t)k;
			continue;
		}
		if (c->npar + c->nred == TG_MAX_AXES)
			return frame_refuse(f, REMARK_cascade_group, 0, t);
		f->index[q][k] = (int8_t)c->npar;
		c->extent[c->npar++] = extent;
	}
	return true;
}

static bool
is_reduction(const Node *n)
{
	return n && n->monoid != MON_NONE && !n->scatter && !n->recur && n->nred > 0;
}

static void
find_read(void *user, ExprId e)
{
	Meet *m = user;
	m->met |= frame_member_read(m->f, e) >= 0;
}

/* What may be rounded is not: a state is wide, and the factors that move it come last. */
static ExprId
keep_wide(void *user, Graph *g, ExprId e)
{
	bool *narrowed = user;
	if (expr_get(g, e)->op != OP_CAST || !expr_is_free_cast(g, expr_arg(g, e, 0)))
		return e;
	*narrowed = true;
	return expr_arg(g, expr_arg(g, e, 0), 0);
}

static bool
build_member(Frame *f, unsigned q)
{
	TensorId t = f->out->member[q].tensor;
	const Node *n = tensor_node(f->g, t);
	if (!is_reduction(n) || n->nred != tensor_node(f->g, f->out->member[0].tensor)->nred)
		return frame_refuse(f, REMARK_cascade_group, 0, t);
	if (monoid_info[n->monoid].index)
		return frame_refuse(f, REMARK_cascade_position, 0, t);
	f->member = q;
	memset(f->index[q], -1, sizeof f->index[q]);
	f->narrowed[q] = false;
	ExprId body = expr_map(f->g, f->scratch, n->body, keep_wide, &f->narrowed[q]), finish = n->finish;
	f->body[q] = inlined(f, body);
	f->finish[q] = inlined(f, finish);
	Meet m = {f, false};
	expr_walk(f->g, f->scratch, f->body[q], match_axes, f);
	expr_walk(f->g, f->scratch, f->body[q], find_read, &m);
	if (f->finish[q]) {
		expr_walk(f->g, f->scratch, f->finish[q], match_axes, f);
		expr_walk(f->g, f->scratch, f->finish[q], find_read, &m);
	}
	return f->why.why == REMARK_NONE && name_axes(f, q, m.met);
}

/* --- into the common axes --- */

static ExprId
relabelled(Frame *f, unsigned q, ExprId e)
{
	const Node *n = tensor_node(f->g, f->out->member[q].tensor);
	unsigned npar = n->npar, naxis = npar + n->nred;
	ExprId sub[TG_MAX_AXES];
	for (unsigned k = 0; k < naxis; k++)
		sub[k] = expr_axis(f->g, k < npar ? (unsigned)f->index[q][k] : f->out->npar + k - npar);
	return e ? expr_subst_axes(f->g, e, sub, naxis) : 0;
}

static ExprId
end_of_range(Frame *f, unsigned q, ExprId e)
{
	return e ? index_norm(f->g, relabelled(f, q, e)) : 0;
}

static bool
relabel_ranges(Frame *f, unsigned q)
{
	Cascade *c = f->out;
	Node n = *tensor_node(f->g, c->member[q].tensor);
	bool met = expr_meets(f, n.guard);
	for (unsigned k = 0; k < n.nred; k++) {
		Axis *mine = &c->axis[c->npar + k], theirs = n.axis[n.npar + k];
		met = met || expr_meets(f, theirs.lo) || expr_meets(f, theirs.hi) || expr_meets(f, theirs.clamp);
		theirs.lo = end_of_range(f, q, theirs.lo);
		theirs.hi = end_of_range(f, q, theirs.hi);
		theirs.clamp = end_of_range(f, q, theirs.clamp);
		if (q == 0)
			*mine = theirs;
		else if (mine->lo != theirs.lo || mine->hi != theirs.hi || mine->clamp != theirs.clamp)
			return frame_refuse(f, REMARK_cascade_range, 0, c->member[q].tensor);
	}
	if (met)
		return frame_refuse(f, REMARK_cascade_range, 0, c->member[q].tensor);
	return true;
}

static void
find_touched(void *user, ExprId e)
{
	Meet *m = user;
	m->met |= expr_get(m->f->g, e)->op == OP_TOUCHED;
}

/* Under no common guard: where its own guard fails a term is the unit, if there is one and nobody asks
 * whether there was a term. */
static bool
guard_terms(Frame *f, unsigned q, ExprId guard)
{
	TensorId t = f->out->member[q].tensor;
	DType type = (DType)expr_get(f->g, f->body[q])->dtype;
	MonoidUnit unit = (MonoidUnit)monoid_info[tensor_node(f->g, t)->monoid].unit;
	Meet touched = {f, false};
	if (!guard)
		return true;
	if (f->finish[q])
		expr_walk(f->g, f->scratch, f->finish[q], find_touched, &touched);
	if (unit == UNIT_NONE || touched.met || type == DT_C64)
		return frame_refuse(f, REMARK_cascade_range, guard, t);
	int v = unit == UNIT_ONE || unit == UNIT_TRUE;
	ExprId e = dtype_is_float(type) ? expr_float(f->g, type, v) : expr_int(f->g, type, v);
	f->body[q] = expr_select(f->g, guard, f->body[q], e);
	return true;
}

static bool
share_guard(Frame *f)
{
	Cascade *c = f->out;
	ExprId guard[MAX_MEMBERS];
	bool same = true;
	for (unsigned q = 0; q < c->nmember; q++) {
		guard[q] = relabelled(f, q, tensor_node(f->g, c->member[q].tensor)->guard);
		same = same && guard[q] == guard[0];
	}
	c->guard = same ? guard[0] : 0;
	for (unsigned q = 0; !same && q < c->nmember; q++)
		if (!guard_terms(f, q, guard[q]))
			return false;
	return true;
}

static void
relabel_member(Frame *f, unsigned q)
{
	CascadeMember *m = &f->out->member[q];
	unsigned npar = tensor_node(f->g, m->tensor)->npar;
	ExprId sub[TG_MAX_AXES];
	for (unsigned k = 0; k < npar; k++) {
		m->axis[k] = (uint8_t)f->index[q][k];
		sub[k] = expr_axis(f->g, m->axis[k]);
	}
	f->read[q] = expr_read(f->g, m->tensor, sub, npar, 0);
	f->body[q] = relabelled(f, q, f->body[q]);
	f->finish[q] = relabelled(f, q, f->finish[q]);
}

/* What people call the axes, as far as they are known yet. */
static void
name_all(Frame *f)
{
	Cascade *c = f->out;
	for (unsigned q = c->nmember; q-- > 0;) {
		const Node *n = tensor_node(f->g, c->member[q].tensor);
		for (unsigned k = 0; n && k < n->npar; k++)
			if (f->index[q][k] >= 0 && n->axis[k].name)
				c->name[f->index[q][k]] = n->axis[k].name;
		for (unsigned k = 0; n && k < n->nred && c->npar + k < TG_MAX_AXES; k++)
			if (n->axis[n->npar + k].name)
				c->name[c->npar + k] = n->axis[n->npar + k].name;
	}
}

bool
frame_build(Frame *f, const TensorId *members, unsigned n)
{
	if (n == 0 || n > MAX_MEMBERS)
		return frame_refuse(f, REMARK_cascade_group, 0, n ? members[0] : 0);
	f->meets = ARENA_ARRAY(f->scratch, uint8_t, f->g->tensor.n);
	f->out->nmember = n;
	for (unsigned q = 0; q < n; q++)
		f->out->member[q].tensor = members[q];
	for (unsigned q = 0; q < n; q++) {
		if (!build_member(f, q))
			return false;
		f->out->nred = tensor_node(f->g, members[0])->nred;
	}
	name_all(f);
	for (unsigned q = 0; q < n; q++)
		if (!relabel_ranges(f, q))
			return false;
	for (unsigned q = 0; q < n; q++)
		relabel_member(f, q);
	return share_guard(f);
}
