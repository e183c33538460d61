/* recur.c: the rows of a recurrence (rows.h): all axes but the sequential one, when its members never
 * leave their own row. So rows are independent, and the order of the steps within one is all the order
 * that there is. Members have their axes in the same places. */
#include "passes/schedule/rows/plan.h"

typedef struct {
	RowsPlan *p;
	unsigned m;
	bool leaves;
} Leaves;

static void
note_leaving(void *user, ExprId e)
{
	Leaves *l = user;
	const Rows *r = l->p->r;
	const Graph *g = l->p->g;
	const Expr *p = expr_get(g, e);
	int from = p->op == OP_READ ? rows_member_of(r, p->ref) : -1;
	for (unsigned k = 0; from >= 0 && k < r->nrow; k++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, r->row_axis[from][k]));
		l->leaves |= sub->op != OP_AXIS || sub->ref != r->row_axis[l->m][k];
	}
}

/* The row axes of member m, which must be as long as those of the first; so must be its steps. */
static bool
take_axes(RowsPlan *p, unsigned m)
{
	Rows *r = p->r;
	const Graph *g = p->g;
	const Tensor *t = &g->tensor.at[r->member[m].t], *first = &g->tensor.at[r->member[0].t];
	unsigned seq = r->member[m].node.seq[0], k = 0;
	if (t->rank != first->rank || t->extent[seq] != first->extent[r->member[0].node.seq[0]])
		return false;
	for (unsigned a = 0; a < t->rank; a++) {
		if (a == seq)
			continue;
		if (m == 0)
			r->extent[k] = t->extent[a];
		if (t->extent[a] != r->extent[k])
			return false;
		r->row_axis[m][k++] = (uint8_t)a;
	}
	return true;
}

bool
rows_find_recurrence(RowsPlan *p)
{
	Rows *r = p->r;
	const Recur *recur = &p->g->recur.at[r->member[0].node.recur];
	if (recur->nseq != 1 || recur->member.n != r->nmember || r->member[0].node.npar < 2)
		return rows_refuse(p, REMARK_recurs_single);
	r->nrow = (uint8_t)(r->member[0].node.npar - 1);
	r->scans = true;
	for (unsigned m = 0; m < r->nmember; m++) {
		if (!take_axes(p, m))
			return rows_refuse(p, REMARK_recurs_across);
		r->member[m].steps = r->member[m].stored = true;
		r->member[m].reverse = recur->dir[0] < 0;
	}
	for (unsigned m = 0; m < r->nmember; m++) {
		Leaves l = {.p = p, .m = m};
		node_walk(p->g, p->scratch, &r->member[m].node, note_leaving, &l);
		if (l.leaves)
			return rows_refuse(p, REMARK_recurs_across);
	}
	return true;
}
