/* flat.c: pointwise rows whose axes can be one. Where a tensor's rows lie one after another, its elements are a row of
 * their product, and so the same code does what has no row to know of: nothing is divided to find one, no vector is cut where a
 * row ends, and rows may be as short as they like.
 *
 * Every tensor of such a kernel has the rows' axes, all of them and in their order, and is read at the point itself; nothing
 * else depends on an axis. Whether tensors lie so a launch asks (IMG_ROW_MAJOR). */
#include "passes/schedule/rows/flat.h"

#include "passes/expr_map.h"

typedef struct {
	const Graph *g;
	const Rows *r;
	bool ok;
} Points;

static bool
has_extents(const Graph *g, const Rows *r, TensorId t)
{
	const Tensor *x = &g->tensor.at[t];
	bool same = x->rank == r->nrow && dtype_info[x->dtype].bits >= 8 && x->dtype != DT_C64;
	for (unsigned k = 0; same && k < r->nrow; k++)
		same = x->extent[k] == r->extent[k];
	return same;
}

static bool
is_axis(const Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_AXIS;
}

static void
see(void *user, ExprId e)
{
	Points *p = user;
	const Expr *x = expr_get(p->g, e);
	bool reads = x->op == OP_READ && x->narg;
	p->ok = p->ok && (!reads || (!x->access && has_extents(p->g, p->r, x->ref)));
	for (unsigned k = 0; k < x->narg && p->ok; k++) {
		ExprId a = expr_arg(p->g, e, k);
		p->ok = reads ? is_axis(p->g, a) && expr_get(p->g, a)->ref == k : !is_axis(p->g, a);
	}
}

bool
rows_may_be_flat(const Graph *g, Arena *scratch, const Rows *r, const bool *faulty)
{
	Points p = {g, r, r->tmpl == TMPL_MAP && r->nrow > 1 && !r->nloop && !r->block};
	for (unsigned m = 0; m < r->nmember && p.ok; m++) {
		const RowMember *x = &r->member[m];
		p.ok = !faulty[x->t] && has_extents(g, r, x->t) && x->node.npar == r->nrow && !is_axis(g, x->node.body);
		for (unsigned a = 0; a < x->node.npar && p.ok; a++)
			p.ok = x->axis[a] == a;
		node_walk(g, scratch, &x->node, see, &p);
	}
	return p.ok;
}

ExprId
rows_flat_extent(Graph *g, const Rows *r)
{
	ExprId all = r->extent[r->nrow - 1], one = expr_int(g, DT_I64, 1);
	for (unsigned k = r->nrow - 1u; k-- > 0;)
		if (r->extent[k] != one)
			all = expr_binary(g, OP_MUL, r->extent[k], all);
	return all;
}

void
rows_make_flat(Graph *g, Rows *r)
{
	r->extent[r->nrow - 1] = rows_flat_extent(g, r);
	for (unsigned k = 0; k + 1 < r->nrow; k++)
		r->extent[k] = expr_int(g, DT_I64, 1);
}
