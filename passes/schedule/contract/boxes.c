/* boxes.c: see boxes.h. */
#include "passes/schedule/contract/boxes.h"

bool
box_find(const Graph *g, ExprId read, unsigned own, unsigned term, BoxFactor *to)
{
	const Expr *p = expr_get(g, read);
	if (p->op != OP_READ || p->access || p->narg < 2 || p->narg > 5)
		return false;
	uint32_t seen = 0;
	*to = (BoxFactor){.tensor = p->ref, .dtype = (DType)p->dtype, .naxis = p->narg};
	for (unsigned n = 0; n < p->narg; n++) {
		const Expr *sub = expr_get(g, expr_arg(g, read, n));
		if (sub->op != OP_AXIS || seen >> sub->ref & 1)
			return false;
		to->axis[n] = (uint8_t)sub->ref;
		seen |= 1u << sub->ref;
	}
	unsigned last = to->axis[p->narg - 1];
	to->turned = last == own;
	return (seen >> own & 1) && (seen >> term & 1) && (last == own || last == term);
}

/* The tensor's axes in the order of the view: those of a batch, then the two of a box, the last one last. */
static void
axes_in_order(const BoxFactor *e, unsigned own, unsigned term, uint8_t *order)
{
	unsigned n = 0, other = e->turned ? term : own;
	for (unsigned a = 0; a + 1 < e->naxis; a++)
		if (e->axis[a] != other)
			order[n++] = (uint8_t)a;
	for (unsigned a = 0; a + 1 < e->naxis; a++)
		if (e->axis[a] == other)
			order[n++] = (uint8_t)a;
	order[n] = (uint8_t)(e->naxis - 1);
}

/* Axes that are summed over begin at 0. */
static ExprId
extent_of(const Point *l, unsigned axis)
{
	return axis < l->node->npar ? l->g->tensor.at[l->node->out].extent[axis] : l->node->axis[axis].hi;
}

ValId
box_view(Point *l, const BoxFactor *e, unsigned own, unsigned term)
{
	uint8_t order[TG_MAX_RANK];
	ValId extent[TG_MAX_RANK], stride[TG_MAX_RANK];
	axes_in_order(e, own, term, order);
	for (unsigned n = 0; n < e->naxis; n++) {
		extent[n] = point_launch_expr(l, extent_of(l, e->axis[order[n]]));
		stride[n] = point_tensor(l, e->tensor)->stride[order[n]];
	}
	ValId buffer = tir_arg(l->tir, point_tensor(l, e->tensor)->data, 0);
	return tir_view(l->tir, (unsigned)tir_inst(l->tir, buffer)->imm.i, e->naxis, extent, stride);
}

void
box_copy(Point *l, int64_t part, ValId view, const BoxFactor *e, unsigned own, unsigned term, const ValId *at, ValId third, ValId fill)
{
	uint8_t order[TG_MAX_RANK];
	ValId index[TG_MAX_RANK];
	axes_in_order(e, own, term, order);
	for (unsigned n = 0; n < e->naxis; n++)
		index[n] = at[e->axis[order[n]]];
	tir_copy_third(l->tir, part, view, fill, index, third);
}
