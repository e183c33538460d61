/* hole.c: folds whose condition leaves out one index of the loop that vectors run along, as that of all
 * others does, j != i (rows.h).
 *
 * Vectors before the one that holds the index, and after it, need no mask for that: so the loop comes in two
 * parts, each of vectors without it and a masked end. The terms and their order are the same. */
#include "passes/schedule/rows/build.h"

#include "passes/expr_map.h"

/* Whether x is known before the loop over the axis: an index of the rows, and of the loops outside. */
static bool
is_known(const RowBuild *b, unsigned phase, ExprId x)
{
	const Rows *r = b->r;
	const RowPhase *p = &r->phase[phase];
	uint32_t axes = (1u << r->nrow) - 1u;
	for (unsigned k = 0; k + 1u < p->nloop; k++)
		axes |= 1u << p->loop[k];
	return expr_is_index(b->l->g, b->l->scratch, x) && !(expr_axes(b->l->g, b->l->scratch, x) & ~axes);
}

/* What the axis must not be for `cond`, a conjunction; 0: there is no such index. */
static ExprId
left_out(const RowBuild *b, unsigned phase, unsigned axis, ExprId cond)
{
	Graph *g = b->l->g;
	if (!cond)
		return 0;
	const Op op = (Op)expr_get(g, cond)->op;
	if (op != OP_AND && op != OP_NE)
		return 0;
	for (unsigned k = 0; k < 2; k++) {
		ExprId x = expr_arg(g, cond, k), other = expr_arg(g, cond, 1 - k), hole = 0;
		if (op == OP_AND)
			hole = left_out(b, phase, axis, x);
		else if (x == expr_axis(g, axis) && is_known(b, phase, other))
			hole = other;
		if (hole)
			return hole;
	}
	return 0;
}

/* `cond` where the axis is not the hole. */
static ExprId
elsewhere(Graph *g, ExprId cond, unsigned axis, ExprId hole)
{
	if (!cond)
		return 0;
	const Expr *p = expr_get(g, cond);
	ExprId self = expr_axis(g, axis);
	if (p->op == OP_AND) {
		ExprId a = expr_arg(g, cond, 0), b = expr_arg(g, cond, 1);
		a = elsewhere(g, a, axis, hole);
		return expr_and(g, a, elsewhere(g, b, axis, hole));
	}
	if (p->op != OP_NE)
		return cond;
	ExprId a = expr_arg(g, cond, 0), b = expr_arg(g, cond, 1);
	return (a == self && b == hole) || (a == hole && b == self) ? 0 : cond;
}

/* Whether what is left of `cond` there is a part of it: a kernel knows the expressions of its nodes alone. */
static bool
leaves_a_part(Graph *g, ExprId cond, unsigned axis, ExprId hole)
{
	if (!cond || expr_get(g, cond)->op != OP_AND)
		return true;
	ExprId a = expr_arg(g, cond, 0), b = expr_arg(g, cond, 1), rest = elsewhere(g, cond, axis, hole);
	return !rest || rest == cond || (rest == elsewhere(g, a, axis, hole) && leaves_a_part(g, a, axis, hole)) ||
	       (rest == elsewhere(g, b, axis, hole) && leaves_a_part(g, b, axis, hole));
}

ExprId
rows_hole(const RowBuild *b, unsigned phase, unsigned axis)
{
	ExprId hole = 0;
	for (unsigned k = 0; k < b->r->nmember && !hole; k++) {
		const RowMember *m = &b->r->member[k];
		hole = m->phase == phase && rows_is_folded(m) ? left_out(b, phase, axis, m->node.guard) : 0;
	}
	for (unsigned k = 0; k < b->r->nmember && hole; k++) {
		const RowMember *m = &b->r->member[k];
		if (m->phase == phase && (!leaves_a_part(b->l->g, m->node.guard, axis, hole) ||
		                          !leaves_a_part(b->l->g, m->node.domain, axis, hole)))
			return 0;
	}
	return hole;
}

void
rows_leave_hole(RowBuild *b, unsigned phase, unsigned axis, ExprId hole, RowConditions *kept)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		RowMember *m = &b->r->member[k];
		kept->guard[k] = m->node.guard;
		kept->domain[k] = m->node.domain;
		if (m->phase != phase)
			continue;
		m->node.guard = elsewhere(b->l->g, m->node.guard, axis, hole);
		m->node.domain = elsewhere(b->l->g, m->node.domain, axis, hole);
	}
}

void
rows_mind_hole(RowBuild *b, const RowConditions *kept)
{
	for (unsigned k = 0; k < b->r->nmember; k++) {
		b->r->member[k].node.guard = kept->guard[k];
		b->r->member[k].node.domain = kept->domain[k];
	}
}
