/* retarget.c: see retarget.h. */
#include "passes/retarget.h"

#include "passes/expr_map.h"

static ExprId
retarget_leaf(void *user, Graph *g, ExprId e)
{
	const TensorId *to = user;
	Expr p = *expr_get(g, e);
	if (p.op != OP_READ || to[p.ref] == p.ref)
		return e;
	return expr_read(g, to[p.ref], g->arg.at + p.arg, p.narg, p.access);
}

ExprId
expr_retarget(Graph *g, ExprId e, const TensorId *to)
{
	return e ? expr_rewrite(g, e, retarget_leaf, (void *)to) : 0;
}

typedef struct {
	const TensorId *to;
} Retarget;

static void
retarget_root(void *user, Graph *g, ExprId *root)
{
	*root = expr_retarget(g, *root, ((Retarget *)user)->to);
}

void
node_retarget(Graph *g, uint32_t node, const TensorId *to)
{
	Retarget r = {to};
	Node n = g->node.at[node];
	node_each_root(g, &n, retarget_root, &r);
	g->node.at[node] = n;
}
