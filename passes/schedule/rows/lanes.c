/* lanes.c: which axes the vectors of a kernel by rows run along: its template (rows.h). */
#include "passes/schedule/rows/plan.h"

#include "passes/expr_map.h"

static bool
is_short(const RowsPlan *p, ExprId extent)
{
	const Expr *e = expr_get(p->g, extent);
	return e->op == OP_CONST && e->imm.i < p->facts->lanes;
}

/* Vectors by row run along the last row axis: not one that is known to be shorter than they are, such as
 * that of coordinates, while there is another. */
void
rows_order_axes(RowsPlan *p)
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
strides_along(const RowsPlan *p, const Node *n, unsigned lane, uint32_t loops)
{
	Strides s = {.g = p->g, .scratch = p->scratch, .lane = lane, .loops = loops};
	expr_walk(p->g, p->scratch, n->guard, note_stride, &s);
	expr_walk(p->g, p->scratch, n->body, note_stride, &s);
	return s;
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

bool
rows_may_fold_by_lane(const RowsPlan *p, unsigned m)
{
	return rows_may_regroup(p->g, p->scratch, &p->r->member[m].node, p->facts->faulty);
}

bool
rows_may_regroup(const Graph *g, Arena *scratch, const Node *n, const bool *faulty)
{
	DType body = (DType)expr_get(g, n->body)->dtype, t = dtype_info[body].arith;
	bool rounds = dtype_is_float(t) || t == DT_C64;
	Faults f = {g, faulty, false};
	node_walk(g, scratch, n, note_fault, &f);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		f.found |= n->axis[a].cut != 0;
	if (f.found || (monoid_info[n->monoid].index && n->nred > 1) || (t == DT_C64 && n->monoid != MON_SUM))
		return false;
	if (g->fp == FP_STRICT && rounds && (n->monoid == MON_SUM || n->monoid == MON_PROD))
		return false;
	return true;
}

/* Whether a range of member m depends on this axis of its node: then vectors can't run along it. */
static bool
ranges_differ_by(const RowsPlan *p, unsigned m, unsigned axis)
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

typedef struct {
	const RowsPlan *p;
	unsigned m;
	uint32_t ranges; /* of the node, along which it reads other members' rows as these have their lanes */
} FoldedRows;

static void
note_folded_row(void *user, ExprId e)
{
	FoldedRows *f = user;
	const Graph *g = f->p->g;
	const Expr *p = expr_get(g, e);
	int from = p->op == OP_READ ? rows_member_of(f->p->r, p->ref) : -1;
	if (from < 0 || from >= (int)f->m)
		return;
	unsigned lane = f->p->inner_lane[from];
	if (lane >= p->narg || rows_is_row_axis(f->p->r, (unsigned)from, lane))
		return;
	const Expr *sub = expr_get(g, expr_arg(g, e, lane));
	if (sub->op == OP_AXIS && sub->ref >= f->p->r->member[f->m].node.npar)
		f->ranges |= 1u << sub->ref;
}

/* The one of these ranges of member m that vectors can run along and most reads lie along; ROWS_NO_AXIS: none. */
static unsigned
best_range(const RowsPlan *p, unsigned m, uint32_t ranges)
{
	const Node *n = &p->r->member[m].node;
	unsigned best = ROWS_NO_AXIS, most = 0;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		unsigned found = strides_along(p, n, a, UINT32_MAX).contiguous;
		if ((ranges >> a & 1) && !ranges_differ_by(p, m, a) && (best == ROWS_NO_AXIS || found >= most))
			best = a, most = found;
	}
	return best;
}

/* The range along which a row of folds has its lanes, `own` being the axis that they would run along
 * otherwise; ROWS_NO_AXIS: along that one. */
static unsigned
range_for_lanes(const RowsPlan *p, unsigned m, unsigned own)
{
	const Node *n = &p->r->member[m].node;
	ExprId extent = p->g->tensor.at[p->r->member[m].t].extent[own];
	FoldedRows f = {.p = p, .m = m};
	if (n->nred == 0 || !rows_may_fold_by_lane(p, m))
		return ROWS_NO_AXIS;
	if (expr_get(p->g, extent)->op == OP_CONST && !is_short(p, extent))
		return ROWS_NO_AXIS;
	node_walk(p->g, p->scratch, n, note_folded_row, &f);
	for (unsigned a = n->npar; is_short(p, extent) && a < (unsigned)n->npar + n->nred; a++)
		if (!is_short(p, n->axis[a].hi))
			f.ranges |= 1u << a;
	return best_range(p, m, f.ranges);
}

/* Members before m have theirs. */
static unsigned
find_inner_lane(const RowsPlan *p, unsigned m)
{
	const Rows *r = p->r;
	const Node *n = &r->member[m].node;
	unsigned own = ROWS_NO_AXIS;
	for (unsigned a = 0; a < n->npar; a++)
		if (!rows_is_row_axis(r, m, a))
			own = a;
	if (r->member[m].steps)
		return ROWS_NO_AXIS;
	if (r->member[m].across)
		return n->npar - 1u;
	if (r->member[m].scans)
		return rows_may_fold_by_lane(p, m) ? own : ROWS_NO_AXIS;
	if (own == ROWS_NO_AXIS)
		return rows_may_fold_by_lane(p, m) ? best_range(p, m, UINT32_MAX) : ROWS_NO_AXIS;
	unsigned range = range_for_lanes(p, m, own);
	if (range != ROWS_NO_AXIS)
		return range;
	return ranges_differ_by(p, m, own) ? ROWS_NO_AXIS : own;
}

void
rows_find_inner_lanes(RowsPlan *p)
{
	for (unsigned m = 0; m < p->r->nmember; m++)
		p->inner_lane[m] = (uint8_t)find_inner_lane(p, m);
}

enum { STRIDED_COST = 8, SCALAR_COST = 12 };

/* Compares what reads cost with vectors along the last row axis and along the inner loops. */
void
rows_choose_template(RowsPlan *p)
{
	Rows *r = p->r;
	unsigned by_row = 0, by_loop = 0;
	bool loops = false;
	r->tmpl = r->scans ? TMPL_SCAN : r->nrow ? TMPL_ROWRED : TMPL_FULLRED;
	r->lanes_by_row = false;
	if (r->nrow == 0)
		return;
	for (unsigned m = 0; m < r->nmember; m++) {
		const Node *n = &r->member[m].node;
		if (r->member[m].across)
			continue;
		unsigned last = r->row_axis[m][r->nrow - 1], lane = p->inner_lane[m];
		uint32_t inner = 0;
		for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++)
			if (!rows_is_row_axis(r, m, a))
				inner |= 1u << a;
		if (ranges_differ_by(p, m, last))
			return;
		if (!inner)
			continue;
		loops = true;
		by_row += STRIDED_COST * strides_along(p, n, last, inner).strided;
		if (rows_own_axes(r, m) && last + 1u != n->npar && r->member[m].stored)
			by_row += STRIDED_COST;
		by_loop += lane == ROWS_NO_AXIS ? SCALAR_COST : STRIDED_COST * strides_along(p, n, lane, inner).strided;
		if (rows_own_axes(r, m) && lane < n->npar && lane + 1u != n->npar && r->member[m].stored)
			by_loop += STRIDED_COST;
	}
	r->lanes_by_row = !r->across && (!loops || by_row < by_loop);
	if (r->lanes_by_row && !r->scans)
		r->tmpl = loops ? TMPL_COLRED : TMPL_MAP;
}
