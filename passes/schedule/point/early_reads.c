/* early_reads.c: what of a value is read ahead of the rest (early_reads.h). */
#include "passes/schedule/point/early_reads.h"

#include "passes/expr_map.h"

static bool
is_early(const Graph *g, Arena *scratch, ExprId read)
{
	const Expr *x = expr_get(g, read);
	if (g->tensor.at[x->ref].kind == TENSOR_SCALAR || x->access || x->dtype == DT_C64)
		return false;
	for (unsigned k = 0; k < x->narg; k++)
		if (!expr_is_index(g, scratch, expr_arg(g, read, k)))
			return false;
	return true;
}

void
early_reads_find(const Graph *g, Arena *scratch, ExprId value, EarlyWalk how, void *user, EarlyReads *out)
{
	VEC(ExprId) stack = {0};
	bool *seen = ARENA_ARRAY(scratch, bool, g->expr.n);
	out->n = 0;
	vec_push(scratch, &stack, value);
	while (stack.n) {
		ExprId e = stack.at[--stack.n];
		const Expr *x = expr_get(g, e);
		if (seen[e])
			continue;
		seen[e] = true;
		if (x->op == OP_READ && out->n < EARLY_READS && is_early(g, scratch, e)) {
			out->at[out->n++] = (EarlyRead){e, how(user, g, scratch, e)};
			continue;
		}
		unsigned n = op_info[x->op].flags & F_LAZY ? 1 : x->narg;
		for (unsigned k = 0; k < n; k++)
			vec_push(scratch, &stack, expr_arg(g, e, k));
	}
}

ExprId
early_stand_in(Graph *g, const EarlyReads *e, unsigned n)
{
	return expr_make(g, OP_IVAR, (DType)expr_get(g, e->at[n].read)->dtype, e->stand_in + n, 0, NULL, 0);
}

static ExprId
replace_read(void *user, Graph *g, ExprId e)
{
	const EarlyReads *early = user;
	for (unsigned n = 0; n < early->n; n++)
		if (early->at[n].read == e)
			return early_stand_in(g, early, n);
	return e;
}

ExprId
early_reads_replace(Graph *g, Arena *scratch, ExprId value, EarlyReads *e)
{
	return expr_map(g, scratch, value, replace_read, e);
}

ValId
early_value(Point *l, ExprId e, bool always)
{
	uint32_t mark = point_mark(l);
	ValId v = point_value(l, e, always).re;
	point_release(l, mark);
	return v;
}

ValId
early_group(Point *l, ExprId e, unsigned n, unsigned axis, ValId *out)
{
	point_set_lanes(l, n, axis);
	ValId all = early_value(l, e, true);
	point_set_lanes(l, 0, axis);
	for (unsigned k = 0; k < n; k++)
		out[k] = tir_emit(l->tir, OP_LANE, tir_scalar((DType)expr_get(l->g, e)->dtype), k, &all, 1);
	return all;
}
