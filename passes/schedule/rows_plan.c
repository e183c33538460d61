/* rows_plan.c: whether nodes can share a kernel by rows, and its rows, loops and phases (rows.h). */
#include "passes/schedule/rows.h"

#include "passes/expr_map.h"
#include "passes/schedule/schedule.h"

#include <string.h>

typedef struct {
	Graph *g;
	Arena *scratch;
	const RowsFacts *facts;
	Rows *r;
	RemarkId why;
} Plan;

bool
rows_takes(const Graph *g, TensorId t, uint16_t lanes, RemarkId *why)
{
	const Node *n = tensor_node(g, t);
	if (n->recur)
		*why = REMARK_rows_recurs;
	else if (n->scatter)
		*why = REMARK_rows_scatters;
	else if (dtype_info[g->tensor.at[t].dtype].bits < 8)
		*why = REMARK_rows_nibbles;
	else if (lanes < 2)
		*why = REMARK_rows_scalar;
	else
		return true;
	return false;
}

static bool
refuse(Plan *p, RemarkId why)
{
	p->why = why;
	return false;
}

static int
member_of(const Rows *r, TensorId t)
{
	for (unsigned m = 0; m < r->nmember; m++)
		if (r->member[m].t == t)
			return (int)m;
	return -1;
}

/* --- rows: the axes that every read of a member hands on as they are --- */

typedef struct {
	Plan *p;
	unsigned m;      /* the member at work; its axes are those of its node */
	bool linked;     /* it reads a member */
	uint32_t broken; /* row axes that a read does not hand on, as bits */
} Link;

static void
link_read(void *user, ExprId e)
{
	Link *l = user;
	Rows *r = l->p->r;
	const Graph *g = l->p->g;
	const Expr *p = expr_get(g, e);
	int from = p->op == OP_READ ? member_of(r, p->ref) : -1;
	if (from < 0 || from >= (int)l->m)
		return;
	l->linked = true;
	for (unsigned k = 0; k < r->nrow; k++) {
		unsigned a = r->row_axis[from][k];
		const Expr *sub = expr_get(g, expr_arg(g, e, a));
		uint8_t *axis = &r->row_axis[l->m][k];
		bool same = sub->op == OP_AXIS && sub->ref < r->member[l->m].node.npar &&
		            g->tensor.at[r->member[l->m].t].extent[sub->ref] == g->tensor.at[p->ref].extent[a] &&
		            (*axis == ROWS_NO_AXIS || *axis == sub->ref);
		if (same)
			*axis = (uint8_t)sub->ref;
		else
			l->broken |= 1u << k;
	}
}

/* A member that reads no other has the row axes in the same places. */
static void
link_sibling(Link *l)
{
	Rows *r = l->p->r;
	const Tensor *t = &l->p->g->tensor.at[r->member[l->m].t];
	for (unsigned k = 0; k < r->nrow; k++) {
		unsigned a = r->row_axis[0][k];
		if (a < t->rank && t->extent[a] == r->extent[k])
			r->row_axis[l->m][k] = (uint8_t)a;
		else
			l->broken |= 1u << k;
	}
}

static void
drop_rows(Rows *r, uint32_t broken, unsigned upto)
{
	unsigned kept = 0;
	for (unsigned k = 0; k < r->nrow; k++) {
		if (broken >> k & 1)
			continue;
		r->extent[kept] = r->extent[k];
		for (unsigned m = 0; m <= upto; m++)
			r->row_axis[m][kept] = r->row_axis[m][k];
		kept++;
	}
	r->nrow = (uint8_t)kept;
}

static bool
find_rows(Plan *p)
{
	Rows *r = p->r;
	const Tensor *first = &p->g->tensor.at[r->member[0].t];
	r->nrow = first->rank;
	for (unsigned k = 0; k < r->nrow; k++) {
		r->extent[k] = first->extent[k];
		r->row_axis[0][k] = (uint8_t)k;
	}
	for (unsigned m = 1; m < r->nmember; m++) {
		Link l = {.p = p, .m = m};
		memset(r->row_axis[m], ROWS_NO_AXIS, sizeof r->row_axis[m]);
		node_walk(p->g, p->scratch, &r->member[m].node, link_read, &l);
		if (!l.linked)
			link_sibling(&l);
		for (unsigned k = 0; k < r->nrow; k++)
			for (unsigned j = 0; j < k; j++)
				if (r->row_axis[m][j] == r->row_axis[m][k])
					l.broken |= 1u << k;
		drop_rows(r, l.broken, m);
	}
	for (unsigned m = 0; m < r->nmember && r->nmember > 1; m++)
		if (r->nrow == 0 && r->member[m].node.npar > 0)
			return refuse(p, REMARK_rows_differ);
	return true;
}

/* --- lanes --- */

static bool
is_short(const Plan *p, ExprId extent)
{
	const Expr *e = expr_get(p->g, extent);
	return e->op == OP_CONST && e->imm.i < p->facts->lanes;
}

/* Vectors by row run along the last row axis: not one that is known to be shorter than they are, such as
 * that of coordinates, while there is another. */
static void
order_rows(Plan *p)
{
	Rows *r = p->r;
	if (r->nrow < 2)
		return;
	unsigned last = r->nrow - 1u, k = last;
	while (k > 0 && is_short(p, r->extent[k]))
		k--;
	if (k == last || is_short(p, r->extent[k]))
		return;
	ExprId extent = r->extent[k];
	r->extent[k] = r->extent[last];
	r->extent[last] = extent;
	for (unsigned m = 0; m < r->nmember; m++) {
		uint8_t axis = r->row_axis[m][k];
		r->row_axis[m][k] = r->row_axis[m][last];
		r->row_axis[m][last] = axis;
	}
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	unsigned lane;         /* the node's axis that the lanes would run along */
	uint32_t loops;        /* the axes of loops: what does not depend on them costs little */
	unsigned strided, contiguous;
} Strides;

static void
note_stride(void *user, ExprId e)
{
	Strides *s = user;
	const Expr *p = expr_get(s->g, e);
	bool strided = false, along = false;
	uint32_t axes = 0;
	if (p->op != OP_READ)
		return;
	for (unsigned k = 0; k < p->narg; k++) {
		uint32_t in = expr_axes(s->g, s->scratch, expr_arg(s->g, e, k));
		axes |= in;
		if (!(in >> s->lane & 1))
			continue;
		if (k + 1 == p->narg)
			along = true;
		else
			strided = true;
	}
	if (!(axes & s->loops))
		return;
	s->strided += strided;
	s->contiguous += along && !strided;
}

static Strides
strides_along(const Plan *p, const Node *n, unsigned lane, uint32_t loops)
{
	Strides s = {.g = p->g, .scratch = p->scratch, .lane = lane, .loops = loops};
	expr_walk(p->g, p->scratch, n->guard, note_stride, &s);
	expr_walk(p->g, p->scratch, n->body, note_stride, &s);
	return s;
}

static bool
is_row_axis(const Rows *r, unsigned m, unsigned a)
{
	for (unsigned k = 0; k < r->nrow; k++)
		if (r->row_axis[m][k] == a)
			return true;
	return false;
}

static unsigned
own_axes(const Rows *r, unsigned m)
{
	return r->member[m].node.npar - (unsigned)r->nrow;
}

typedef struct {
	const Graph *g;
	const bool *faulty;
	bool found;
} Faults;

static void
note_fault(void *user, ExprId e)
{
	Faults *f = user;
	const Expr *p = expr_get(f->g, e);
	f->found |= p->op == OP_READ && (p->access || f->faulty[p->ref]);
}

/* Whether the folded terms of member m may be joined by lane: in any order, and without faults. */
static bool
may_fold_by_lane(const Plan *p, unsigned m)
{
	const Node *n = &p->r->member[m].node;
	DType body = (DType)expr_get(p->g, n->body)->dtype, t = dtype_info[body].arith;
	bool rounds = dtype_is_float(t) || t == DT_C64;
	Faults f = {p->g, p->facts->faulty, false};
	node_walk(p->g, p->scratch, n, note_fault, &f);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		f.found |= n->axis[a].cut != 0;
	if (f.found || (monoid_info[n->monoid].index && n->nred > 1) || (t == DT_C64 && n->monoid != MON_SUM))
		return false;
	if (p->g->fp == FP_STRICT && rounds && (n->monoid == MON_SUM || n->monoid == MON_PROD))
		return false;
	return true;
}

/* Whether a range of member m depends on this axis of its node: then vectors can't run along it. */
static bool
ranges_differ_by(const Plan *p, unsigned m, unsigned axis)
{
	const Node *n = &p->r->member[m].node;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		uint32_t in = expr_axes(p->g, p->scratch, n->axis[a].lo) | expr_axes(p->g, p->scratch, n->axis[a].hi);
		if (n->axis[a].clamp)
			in |= expr_axes(p->g, p->scratch, n->axis[a].clamp);
		if (in >> axis & 1)
			return true;
	}
	return false;
}

/* The node's axis along which member m's own loops would be vectors; ROWS_NO_AXIS: none. */
static unsigned
inner_lane(const Plan *p, unsigned m)
{
	const Rows *r = p->r;
	const Node *n = &r->member[m].node;
	unsigned best = ROWS_NO_AXIS;
	for (unsigned a = 0; a < n->npar; a++)
		if (!is_row_axis(r, m, a))
			best = a;
	if (best != ROWS_NO_AXIS && ranges_differ_by(p, m, best))
		return ROWS_NO_AXIS;
	if (best != ROWS_NO_AXIS || n->nred == 0 || !may_fold_by_lane(p, m))
		return best;
	unsigned most = 0;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		unsigned found = strides_along(p, n, a, UINT32_MAX).contiguous;
		if (!ranges_differ_by(p, m, a) && (best == ROWS_NO_AXIS || found >= most))
			best = a, most = found;
	}
	return best;
}

enum { STRIDED_COST = 8, SCALAR_COST = 12 };

/* Compares what reads cost with vectors along the last row axis and along the inner loops. */
static void
choose_template(Plan *p)
{
	Rows *r = p->r;
	unsigned by_row = 0, by_loop = 0;
	bool loops = false;
	r->tmpl = r->nrow ? TMPL_ROWRED : TMPL_FULLRED;
	if (r->nrow == 0)
		return;
	for (unsigned m = 0; m < r->nmember; m++) {
		const Node *n = &r->member[m].node;
		unsigned last = r->row_axis[m][r->nrow - 1], lane = inner_lane(p, m);
		uint32_t inner = 0;
		for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++)
			if (!is_row_axis(r, m, a))
				inner |= 1u << a;
		if (ranges_differ_by(p, m, last))
			return;
		if (!inner)
			continue;
		loops = true;
		by_row += STRIDED_COST * strides_along(p, n, last, inner).strided;
		if (own_axes(r, m) && last + 1u != n->npar && r->member[m].stored)
			by_row += STRIDED_COST;
		by_loop += lane == ROWS_NO_AXIS ? SCALAR_COST : STRIDED_COST * strides_along(p, n, lane, inner).strided;
		if (own_axes(r, m) && lane + 1u != n->npar && r->member[m].stored)
			by_loop += STRIDED_COST;
	}
	if (!loops || by_row < by_loop)
		r->tmpl = loops ? TMPL_COLRED : TMPL_MAP;
}

/* --- blocks --- */

typedef struct {
	const Plan *p;
	unsigned m;
	unsigned votes[TG_MAX_RANK]; /* by row axis */
} Block;

/* The row axis that is axis a of member m; nrow: none. */
static unsigned
row_of(const Rows *r, unsigned m, unsigned a)
{
	unsigned k = 0;
	while (k < r->nrow && r->row_axis[m][k] != a)
		k++;
	return k;
}

static void
vote(void *user, ExprId e)
{
	Block *b = user;
	const Rows *r = b->p->r;
	const Graph *g = b->p->g;
	const Expr *p = expr_get(g, e);
	uint32_t lane = 1u << r->row_axis[b->m][r->nrow - 1];
	if (p->op != OP_READ || p->narg < 2)
		return;
	uint32_t last = expr_axes(g, b->p->scratch, expr_arg(g, e, p->narg - 1u)), before = 0;
	for (unsigned k = 0; k + 1u < p->narg; k++)
		before |= expr_axes(g, b->p->scratch, expr_arg(g, e, k));
	if (!(before & lane) || (last & lane))
		return;
	for (unsigned a = 0; a < b->p->r->member[b->m].node.npar; a++)
		if ((last >> a & 1) && row_of(r, b->m, a) < r->nrow)
			b->votes[row_of(r, b->m, a)]++;
}

/* What is read across the lanes brings a cache line for each lane: the next values of the axis that runs
 * along those lines come next. */
static unsigned
choose_block(const Plan *p)
{
	Rows *r = p->r;
	Block b = {.p = p};
	unsigned best = 0;
	if (r->tmpl != TMPL_MAP || r->nrow < 2)
		return 0;
	for (b.m = 0; b.m < r->nmember; b.m++)
		node_walk(p->g, p->scratch, &r->member[b.m].node, vote, &b);
	for (unsigned k = 0; k + 1u < r->nrow; k++)
		if (b.votes[k] > (best ? b.votes[best - 1] : 0))
			best = k + 1;
	return best;
}

/* --- copies --- */

typedef struct {
	const Graph *g;
	unsigned ops;
} BodyOps;

static void
count_op(void *user, ExprId e)
{
	BodyOps *c = user;
	const Expr *p = expr_get(c->g, e);
	if (op_info[p->op].flags & F_MATH)
		c->ops += 12;
	else if (op_info[p->op].cls == CLASS_MAP && p->dtype != DT_I64)
		c->ops++;
}

enum { FEW_OPS = 6, SOME_OPS = 14 };

/* An addition takes four cycles, and its next one waits for it: a body of few operations needs four
 * accumulators to keep the machine busy, a long one none but its own. Columns also share what they read
 * from rows. */
static unsigned
choose_copies(const Plan *p)
{
	const Rows *r = p->r;
	BodyOps c = {.g = p->g};
	if (r->tmpl == TMPL_MAP)
		return 1;
	for (unsigned m = 0; m < r->nmember; m++)
		if (r->member[m].node.nred)
			expr_walk(p->g, p->scratch, r->member[m].node.body, count_op, &c);
	if (r->tmpl == TMPL_COLRED && c.ops <= FEW_OPS)
		return 8;
	return c.ops <= FEW_OPS ? 4 : c.ops <= SOME_OPS || r->tmpl == TMPL_COLRED ? 2 : 1;
}

/* --- loops: the region's axes --- */

static bool
add_loop(Plan *p, ExprId lo, ExprId hi, unsigned nth, bool lanes, uint8_t *axis)
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
		return refuse(p, REMARK_rows_many_loops);
	*axis = (uint8_t)(r->nrow + r->nloop);
	r->loop[r->nloop++] = (RowLoop){.lo = lo, .hi = hi, .nth = (uint8_t)nth, .lanes = lanes};
	return true;
}

static ExprId
over_region(Plan *p, const RowMember *m, ExprId e)
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
place_axes(Plan *p, unsigned index)
{
	Rows *r = p->r;
	RowMember *m = &r->member[index];
	Node *n = &m->node;
	unsigned lane = r->lanes_by_row ? ROWS_NO_AXIS : inner_lane(p, index), all = (unsigned)n->npar + n->nred;
	ExprId lo[TG_MAX_AXES], hi[TG_MAX_AXES], zero = expr_int(p->g, DT_I64, 0);
	for (unsigned k = 0; k < r->nrow; k++)
		m->axis[r->row_axis[index][k]] = (uint8_t)k;
	for (unsigned a = 0; a < all; a++) {
		if (a < n->npar && is_row_axis(r, index, a))
			continue;
		bool own = a < n->npar;
		lo[a] = own ? zero : over_region(p, m, n->axis[a].lo);
		hi[a] = own ? p->g->tensor.at[m->t].extent[a] : over_region(p, m, n->axis[a].hi);
		unsigned nth = 0;
		for (unsigned b = 0; b < a; b++)
			if (!(b < n->npar && is_row_axis(r, index, b)) && lo[b] == lo[a] && hi[b] == hi[a])
				nth++;
		if (n->axis[a].clamp && !own)
			nth = 100 + index; /* a cut range is its member's alone */
		if (!add_loop(p, lo[a], hi[a], nth, a == lane, &m->axis[a]))
			return false;
		if (!own) {
			n->axis[a].lo = lo[a];
			n->axis[a].hi = hi[a];
			n->axis[a].clamp = over_region(p, m, n->axis[a].clamp);
		}
	}
	n->domain = over_region(p, m, n->domain);
	n->guard = over_region(p, m, n->guard);
	n->body = over_region(p, m, n->body);
	n->finish = over_region(p, m, n->finish);
	return true;
}

/* --- phases --- */

/* The loops that member m shares with its phase: its own axes or, without, its ranges. */
static void
phase_loops(const Rows *r, unsigned index, RowPhase *out)
{
	const RowMember *m = &r->member[index];
	unsigned lo = m->is_row ? 0 : m->node.npar, hi = m->is_row ? m->node.npar : (unsigned)m->node.npar + m->node.nred;
	*out = (RowPhase){0};
	for (int lanes = 0; lanes < 2; lanes++)
		for (unsigned a = lo; a < hi; a++) {
			if (m->axis[a] < r->nrow || r->loop[m->axis[a] - r->nrow].lanes != (bool)lanes)
				continue;
			out->loop[out->nloop++] = m->axis[a];
			out->lanes = lanes;
		}
}

typedef struct {
	Plan *p;
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
	int at = p->op == OP_READ ? member_of(r, p->ref) : -1;
	if (at < 0 || at >= (int)o->m)
		return;
	RowMember *from = &r->member[at];
	bool folded = !from->is_row && from->node.nred > 0;
	bool same = !folded && !p->access && reads_same_point(o->p->g, from, e);
	unsigned phase = from->phase + (same ? 0u : 1u);
	if (phase > o->earliest)
		o->earliest = phase;
}

static bool
place_member(Plan *p, unsigned index)
{
	Rows *r = p->r;
	RowPhase loops;
	Order o = {p, index, 0};
	phase_loops(r, index, &loops);
	node_walk(p->g, p->scratch, &r->member[index].node, order_read, &o);
	for (unsigned f = o.earliest; f < r->nphase; f++)
		if (r->phase[f].nloop == loops.nloop && memcmp(r->phase[f].loop, loops.loop, loops.nloop) == 0) {
			r->member[index].phase = (uint8_t)f;
			return true;
		}
	if (r->nphase == ROWS_MAX_PHASES)
		return refuse(p, REMARK_rows_many_phases);
	r->member[index].phase = (uint8_t)r->nphase;
	r->phase[r->nphase++] = loops;
	return true;
}

/* --- what must be kept for later --- */

static void
keep_read(void *user, ExprId e)
{
	Order *o = user;
	Rows *r = o->p->r;
	const Expr *p = expr_get(o->p->g, e);
	int at = p->op == OP_READ ? member_of(r, p->ref) : -1;
	if (at < 0 || !r->member[at].is_row)
		return;
	RowMember *from = &r->member[at];
	if (from->phase != r->member[o->m].phase && !from->stored)
		from->panel = true;
}

static bool
find_panels(Plan *p)
{
	Rows *r = p->r;
	for (unsigned m = 0; m < r->nmember; m++) {
		Order o = {p, m, 0};
		node_walk(p->g, p->scratch, &r->member[m].node, keep_read, &o);
	}
	for (unsigned index = 0; index < r->nmember; index++) {
		RowMember *m = &r->member[index];
		if (!m->panel)
			continue;
		if (own_axes(r, index) > 1)
			return refuse(p, REMARK_rows_large_panel);
		if (p->facts->faulty[m->t])
			return refuse(p, REMARK_rows_faulty_panel);
		for (unsigned a = 0; a < m->node.npar; a++)
			if (!is_row_axis(r, index, a))
				m->panel_axis[m->npanel++] = (uint8_t)a;
	}
	return true;
}

bool
rows_plan(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n, Template tmpl,
          Rows *out, RemarkId *why)
{
	Plan p = {.g = g, .scratch = scratch, .facts = facts, .r = out};
	memset(out, 0, sizeof *out);
	out->nmember = n;
	bool ok = n <= ROWS_MAX_MEMBERS || refuse(&p, REMARK_rows_many_members);
	for (unsigned m = 0; ok && m < n; m++) {
		out->member[m] = (RowMember){.t = node[m], .node = *tensor_node(g, node[m]), .stored = facts->stored[node[m]]};
		ok = rows_takes(g, node[m], facts->lanes, &p.why);
	}
	ok = ok && find_rows(&p);
	if (ok)
		order_rows(&p);
	if (ok && tmpl == TMPL_NONE)
		choose_template(&p);
	else
		out->tmpl = tmpl;
	out->lanes_by_row = out->tmpl == TMPL_MAP || out->tmpl == TMPL_COLRED;
	if (ok) {
		out->copies = choose_copies(&p);
		out->block = (uint8_t)choose_block(&p);
	}
	for (unsigned m = 0; ok && m < n; m++) {
		out->member[m].is_row = own_axes(out, m) > 0;
		ok = place_axes(&p, m);
	}
	for (unsigned m = 0; ok && m < n; m++)
		ok = place_member(&p, m);
	ok = ok && find_panels(&p);
	*why = p.why;
	return ok;
}
