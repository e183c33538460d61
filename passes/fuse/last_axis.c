/* last_axis.c: see last_axis.h. */
#include "passes/fuse/last_axis.h"

unsigned
last_axis_place(unsigned at, unsigned last, unsigned end)
{
	return at < last || at >= end ? at : at == last ? end - 1 : at - 1;
}

static TensorId
copy_of(Graph *g, Arena *scratch, LastAxisCopies *copies, TensorId from, unsigned last)
{
	for (uint32_t k = 0; k < copies->n; k++)
		if (copies->at[k].from == from && copies->at[k].last == last)
			return copies->at[k].to;
	const Tensor t = g->tensor.at[from];
	ExprId sub[TG_MAX_RANK], extent[TG_MAX_RANK];
	Node n = {.npar = t.rank};
	for (unsigned k = 0; k < t.rank; k++) {
		unsigned to = last_axis_place(k, last, t.rank);
		sub[k] = expr_axis(g, to);
		extent[to] = t.extent[k];
	}
	n.body = expr_read(g, from, sub, t.rank, 0);
	TensorId to = node_add(g, &n, 0, t.at, t.dtype, extent);
	vec_push(scratch, copies, ((LastAxisCopy){from, to, last}));
	return to;
}

ExprId
last_axis_read(Graph *g, Arena *scratch, LastAxisCopies *copies, ExprId read, unsigned last)
{
	const Expr p = *expr_get(g, read);
	ExprId sub[TG_MAX_RANK];
	for (unsigned k = 0; k < p.narg; k++)
		sub[last_axis_place(k, last, p.narg)] = expr_arg(g, read, k);
	return expr_read(g, copy_of(g, scratch, copies, p.ref, last), sub, p.narg, 0);
}
