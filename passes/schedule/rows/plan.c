/* plan.c: whether nodes can share a kernel by rows, and its rows (rows.h). */
#include "passes/schedule/rows/plan.h"
#include "passes/schedule/rows/linear.h"

#include <string.h>

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

/* --- rows: the axes that every read of a member hands on as they are --- */

typedef struct {
	RowsPlan *p;
	unsigned m;      /* the member at work; its axes are those of its node */
	bool linked;     /* it reads a member */
	bool parts;      /* that is parts, and others than its own */
	uint32_t broken; /* row axes that a read does not hand on, as bits */
} Link;

static bool
hands_on(const Link *l, ExprId sub)
{
	const Expr *p = expr_get(l->p->g, sub);
	return p->op == OP_AXIS && p->ref < l->p->r->member[l->m].node.npar;
}

static void
link_read(void *user, ExprId e)
{
	Link *l = user;
	Rows *r = l->p->r;
	const Graph *g = l->p->g;
	const Expr *p = expr_get(g, e);
	int from = p->op == OP_READ ? rows_member_of(r, p->ref) : -1;
	if (from < 0 || from >= (int)l->m)
		return;
	l->linked = true;
	l->parts |= r->member[from].node.parts && !hands_on(l, expr_arg(g, e, 0));
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

/* The row axes that are member m's scanned one: its steps are a loop of the row. */
static uint32_t
scanned_rows(const Rows *r, unsigned m, unsigned scanned)
{
	unsigned k = r->member[m].scans ? rows_axis_of(r, m, scanned) : r->nrow;
	return k < r->nrow ? 1u << k : 0;
}

static bool
find_rows(RowsPlan *p, const uint8_t *scanned, unsigned nrows)
{
	Rows *r = p->r;
	const Tensor *first = &p->g->tensor.at[r->member[0].t];
	const unsigned rank = first->rank;
	if (rank > TG_MAX_RANK)
		bug(p->scratch, "find_rows: rank %u", rank);
	r->nrow = (uint8_t)rank;
	for (unsigned k = 0; k < rank; k++) {
		r->extent[k] = first->extent[k];
		r->row_axis[0][k] = (uint8_t)k;
	}
	drop_rows(r, scanned_rows(r, 0, scanned[0]), 0);
	for (unsigned m = 1; m < nrows; m++) {
		Link l = {.p = p, .m = m};
		memset(r->row_axis[m], ROWS_NO_AXIS, sizeof r->row_axis[m]);
		node_walk(p->g, p->scratch, &r->member[m].node, link_read, &l);
		if (l.parts)
			return rows_refuse(p, REMARK_rows_parts);
		if (!l.linked)
			link_sibling(&l);
		for (unsigned k = 0; k < r->nrow; k++)
			for (unsigned j = 0; j < k; j++)
				if (r->row_axis[m][j] == r->row_axis[m][k])
					l.broken |= 1u << k;
		drop_rows(r, l.broken | scanned_rows(r, m, scanned[m]), m);
	}
	if (nrows < r->nmember) /* one row at a time */
		drop_rows(r, ~UINT32_C(1), nrows - 1);
	for (unsigned m = 0; m < nrows; m++) {
		if (r->member[m].node.parts && !rows_is_row_axis(r, m, 0))
			return rows_refuse(p, REMARK_rows_parts);
		if (r->member[m].scans && rows_own_axes(r, m) > 1)
			return rows_refuse(p, REMARK_rows_scan_inside);
		if (r->nrow == 0 && r->nmember > 1 && r->member[m].node.npar > 0 && !r->scans)
			return rows_refuse(p, REMARK_rows_differ);
	}
	for (unsigned m = nrows; m < r->nmember; m++)
		memset(r->row_axis[m], ROWS_NO_AXIS, sizeof r->row_axis[m]);
	return nrows == r->nmember || rows_find_across(p);
}

/* A recurrence is one only with all of its nodes, and as rows_find_recurrence finds it. */
static bool
takes(RowsPlan *p, TensorId t)
{
	RemarkId why = REMARK_NONE;
	if (rows_takes(p->g, t, p->facts->lanes, &why))
		return true;
	bool steps = why == REMARK_rows_recurs && p->facts->lanes >= 2 && dtype_info[p->g->tensor.at[t].dtype].bits >= 8;
	return steps || rows_refuse(p, why);
}

/* The member for node t; *scanned is its axis along which it is scanned, if it is. */
static RowMember
new_member(RowsPlan *p, TensorId t, uint8_t *scanned)
{
	RowMember m = {.t = t, .node = *tensor_node(p->g, t), .stored = p->facts->stored[t]};
	Scan s;
	RemarkId why;
	bool linear = p->facts->blocks && linear_derive(p->g, p->scratch, &m.node, &s, &why);
	if (!linear && !scan_derive(p->g, p->scratch, &m.node, &s, &why))
		return m;
	*scanned = s.axis;
	m.node = s.node;
	m.scans = true;
	m.reverse = s.reverse;
	m.position = s.position;
	m.first = s.first;
	p->r->scans = true;
	return m;
}

bool
rows_plan(Graph *g, Arena *scratch, const RowsFacts *facts, const TensorId *node, unsigned n, Template tmpl,
          Rows *out, RemarkId *why)
{
	RowsPlan p = {.g = g, .scratch = scratch, .facts = facts, .r = out};
	uint8_t scanned[ROWS_MAX_MEMBERS] = {0};
	memset(out, 0, sizeof *out);
	out->nmember = n;
	bool ok = n <= ROWS_MAX_MEMBERS || rows_refuse(&p, REMARK_rows_many_members);
	for (unsigned m = 0; ok && m < n; m++) {
		ok = takes(&p, node[m]);
		if (ok)
			out->member[m] = new_member(&p, node[m], &scanned[m]);
	}
	unsigned nrows = ok ? n - rows_part_across(&p) : 0;
	ok = ok && (out->member[0].node.recur ? rows_find_recurrence(&p) : find_rows(&p, scanned, nrows));
	if (ok) {
		rows_order_axes(&p);
		rows_find_inner_lanes(&p);
	}
	out->tmpl = tmpl;
	out->lanes_by_row = out->tmpl == TMPL_MAP || out->tmpl == TMPL_COLRED;
	if (ok && (tmpl == TMPL_NONE || tmpl == TMPL_SCAN))
		rows_choose_template(&p);
	if (ok)
		out->block = (uint8_t)rows_choose_block(&p);
	ok = ok && rows_order_members(&p);
	if (ok) {
		rows_choose_copies(&p);
		out->turns = rows_choose_turns(&p);
		rows_find_tiles(&p);
		rows_find_kept(&p);
		out->ahead = rows_choose_ahead(&p);
		rows_find_trail(&p);
	}
	*why = p.why;
	return ok;
}
