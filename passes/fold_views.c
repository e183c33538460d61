/* fold_views.c: a node that only re-indexes another tensor is read through.
 *
 * in     any graph
 * out    no plain read of a node whose body is one plain read; such nodes stay, unused but as results,
 *        for dce
 * fp     exact
 * tests  tests/passes/fold_views_test.c
 *
 * v[p] = t[A(p)] read at s is t[A(s)]. A reader may read v only where v's domain holds, and there
 * t[A(s)] is in bounds and demanded already, so the value and its fault are the same. A read that is
 * checked as it runs (with an access) is left: its check is against the extents of what it names. */
#include "passes/expr_map.h"
#include "passes/pass_ctx.h"

typedef struct {
	PassCtx *cx;
	ExprId *view;   /* by TensorId: the body of a view */
	bool *refused;  /* without fuel */
	bool *counted;
	uint32_t done;
} Views;

static bool
is_view(const Graph *g, const Node *n)
{
	const Expr *p = expr_get(g, n->body);
	return n->monoid == MON_NONE && !n->recur && p->op == OP_READ && p->access == 0;
}

static ExprId
canonical(Graph *g, Arena *scratch, ExprId e)
{
	return expr_is_index(g, scratch, e) ? index_norm(g, e) : e;
}

static ExprId
read_through(void *user, Graph *g, ExprId e)
{
	Views *v = user;
	Expr p = *expr_get(g, e);
	if (p.op != OP_READ || p.access || !v->view[p.ref] || v->refused[p.ref])
		return e;
	if (!v->counted[p.ref] && !spend(v->cx)) {
		v->refused[p.ref] = true;
		return e;
	}
	v->done += !v->counted[p.ref];
	v->counted[p.ref] = true;
	ExprId sub[TG_MAX_RANK];
	ExprId to = expr_at_read(g, v->view[p.ref], e);
	Expr q = *expr_get(g, to);
	for (unsigned k = 0; k < q.narg; k++)
		sub[k] = canonical(g, v->cx->scratch, g->arg.at[q.arg + k]);
	return expr_read(g, q.ref, sub, q.narg, 0);
}

static void
fold_root(void *user, Graph *g, ExprId *root)
{
	if (*root)
		*root = expr_rewrite(g, *root, read_through, user);
}

/* In order, so that a view of a view is already a view of what that shows. */
uint32_t
pass_fold_views(Graph *g, PassCtx *cx)
{
	Arena *a = cx->scratch;
	Views v = {cx, ARENA_ARRAY(a, ExprId, g->tensor.n), ARENA_ARRAY(a, bool, g->tensor.n),
	           ARENA_ARRAY(a, bool, g->tensor.n), 0};
	bool any = false;
	for (uint32_t i = 0; i < g->node.n; i++) {
		Node n = g->node.at[i];
		if (any)
			node_each_root(g, &n, fold_root, &v);
		g->node.at[i] = n;
		if (is_view(g, &n)) {
			v.view[n.out] = n.body;
			any = true;
		}
	}
	return v.done;
}
