/* rows_lanes.c: which axes the vectors of a kernel by rows run along: its template (rows.h). */
#include "passes/schedule/rows_plan.h"

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

/* Whether the folded terms of member m may be joined by lane: in any order, and without faults. */
static bool
may_fold_by_lane(const RowsPlan *p, unsigned m)
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

unsigned
rows_inner_lane(const RowsPlan *p, unsigned m)
{
	const Rows *r = p->r;
	const Node *n = &r->member[m].node;
	unsigned best = ROWS_NO_AXIS;
	for (unsigned a = 0; a < n->npar; a++)
		if (!rows_is_row_axis(r, m, a))
			best = a;
	if (r->member[m].steps)
		return ROWS_NO_AXIS;
	if (r->member[m].scans)
		return may_fold_by_lane(p, m) ? best : ROWS_NO_AXIS;
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
		unsigned last = r->row_axis[m][r->nrow - 1], lane = rows_inner_lane(p, m);
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
		if (rows_own_axes(r, m) && lane != ROWS_NO_AXIS && lane + 1u != n->npar && r->member[m].stored)
			by_loop += STRIDED_COST;
	}
	r->lanes_by_row = !loops || by_row < by_loop;
	if (r->lanes_by_row && !r->scans)
		r->tmpl = loops ? TMPL_COLRED : TMPL_MAP;
}
