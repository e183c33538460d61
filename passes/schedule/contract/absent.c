/* absent.c: contractions some of whose terms may be absent, by tiles that multiply all there are (threads.c):
 *
 *     y[n, o, p, q] = sum[c, r, s](x?[n, c, p + r - 1, q + s - 1] * w[o, c, r, s])
 *
 * A condition asks of the axes of one factor, of the batch and of the terms, or else there are no tiles: then the panel of
 * that factor has a 0 where a term is absent. What it reads there is read as far as it exists.
 *
 * The other factor of an absent term exists, but nobody asked for it: 0 times an infinity is no number. So a sum that is no
 * number is folded again, of the terms that are there. And a product with 0 may be +0, which a sum of -0 alone does not
 * stay: the strict mode folds sums that are 0 again. */
#include "passes/schedule/contract/absent.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

/* Notes the conditions that all have to hold for e to. */
static bool
add_parts(const Graph *g, Arena *scratch, const bool *faulty, const Factors *f, uint32_t par, ExprId e, Absent *a)
{
	if (expr_is_true(g, e))
		return true;
	if (expr_get(g, e)->op == OP_AND)
		return add_parts(g, scratch, faulty, f, par, expr_arg(g, e, 0), a) && add_parts(g, scratch, faulty, f, par, expr_arg(g, e, 1), a);
	uint32_t axes = expr_axes(g, scratch, e) & par;
	bool row = axes & f->row_axes, column = axes & f->column_axes;
	if ((row && column) || a->n == ABSENT_MOST || expr_can_fault(g, scratch, faulty, e))
		return false;
	a->column[a->n] = column;
	a->part[a->n++] = e;
	return true;
}

bool
absent_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, Absent *a)
{
	const Node *n = tensor_node(g, t);
	RemarkId why;
	*a = (Absent){0};
	return contract_all_factors(g, scratch, faulty, t, f, &why) &&
	       add_parts(g, scratch, faulty, f, (UINT32_C(1) << n->npar) - 1, n->guard, a);
}

bool
absent_is(const Absent *a, bool column)
{
	for (unsigned n = 0; n < a->n; n++)
		if (a->column[n] == column)
			return true;
	return false;
}

ExprId
absent_condition(Graph *g, const Absent *a, bool column)
{
	ExprId there = 0;
	for (unsigned n = 0; n < a->n && !BUG(absent_terms_taken); n++)
		if (a->column[n] == column)
			there = there ? expr_binary(g, OP_AND, there, a->part[n]) : a->part[n];
	return there;
}

ExprId
absent_value(Graph *g, const Absent *a, bool column, ExprId value)
{
	DType t = (DType)expr_get(g, value)->dtype;
	ExprId there = absent_condition(g, a, column);
	return there ? expr_select(g, there, value, dtype_is_float(t) ? expr_float(g, t, 0) : expr_int(g, t, 0)) : value;
}

bool
absent_spoils(const Absent *a)
{
	return a->n || a->others;
}

void
absent_mend(Point *l, const Absent *a, ValId view, const ValId *at)
{
	TirKernel *k = l->tir;
	ValId sum = tir_load(k, view, at, 0, 0, 0);
	DType t = (DType)tir_inst(k, sum)->type.dtype;
	if (!absent_spoils(a) || !dtype_is_float(t) || BUG(absent_sums_kept))
		return;
	ValId wrong = tir_binary(k, OP_NE, sum, sum);
	if (l->g->fp == FP_STRICT)
		wrong = tir_binary(k, OP_OR, wrong, tir_binary(k, OP_EQ, sum, tir_float(k, t, 0)));
	uint32_t mark = point_mark(l);
	tir_if(k, wrong);
	tir_store(k, view, element_fold(l).re, at, 0, 0);
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}
