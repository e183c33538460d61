/* retarget.c: see retarget.h. */
#include "passes/retarget.h"

#include <string.h>

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

/* --- more nodes --- */

/* The node from index `first` on that is this one already, in t; 0: none. */
static TensorId
find_node(const Graph *g, uint32_t first, const Node *own, DType t, const ExprId *extent)
{
	for (uint32_t i = first; i < g->node.n; i++) {
		const Tensor *x = &g->tensor.at[g->node.at[i].out];
		if (g->node.at[i].body == own->body && x->dtype == t && x->rank == own->npar &&
		    memcmp(x->extent, extent, own->npar * sizeof *extent) == 0)
			return g->node.at[i].out;
	}
	return 0;
}

ExprId
expr_apart(Graph *g, Arena *scratch, const Node *n, ExprId e, uint32_t first, bool *fresh)
{
	ExprId own[TG_MAX_AXES] = {0}, sub[TG_MAX_RANK], extent[TG_MAX_RANK];
	uint32_t axes = expr_axes(g, scratch, e);
	unsigned naxis = (unsigned)n->npar + n->nred;
	const Tensor out = g->tensor.at[n->out];
	DType t = (DType)expr_get(g, e)->dtype;
	Node element = {0};
	for (unsigned a = 0; a < naxis; a++) {
		if (!(axes >> a & 1))
			continue;
		own[a] = expr_axis(g, element.npar);
		extent[element.npar] = a < n->npar ? out.extent[a] : n->axis[a].hi;
		sub[element.npar++] = expr_axis(g, a);
	}
	element.body = expr_subst_axes(g, e, own, naxis);
	TensorId to = find_node(g, first, &element, t, extent);
	*fresh = !to;
	if (!to)
		to = node_add(g, &element, 0, out.at, t, extent);
	return expr_read(g, to, sub, element.npar, 0);
}

/* --- order --- */

/* Nodes have the last tensors of the graph. */
static void
place(Graph *g, const Node *node, const Tensor *tensor, uint32_t from, uint32_t *to, TensorId *id, TensorId first)
{
	TensorId was = node[from].out, now = first + *to;
	g->node.at[*to] = node[from];
	g->node.at[*to].out = now;
	g->tensor.at[now] = tensor[was];
	g->tensor.at[now].node = (*to)++;
	id[was] = now;
}

void
nodes_in_order(Graph *g, Arena *a, uint32_t nnode, const uint32_t *owner, uint32_t nowner)
{
	const Node *node = arena_copy(a, g->node.at, g->node.n * sizeof *node);
	const Tensor *tensor = arena_copy(a, g->tensor.at, g->tensor.n * sizeof *tensor);
	TensorId first = g->tensor.n - g->node.n, *id = ARENA_ARRAY(a, TensorId, g->tensor.n);
	uint32_t to = 0;
	for (TensorId t = 0; t < first; t++)
		id[t] = t;
	for (uint32_t i = 0; i < nnode; i++) {
		for (uint32_t added = 0; added < nowner; added++)
			if (owner[added] == i)
				place(g, node, tensor, nnode + added, &to, id, first);
		place(g, node, tensor, i, &to, id, first);
	}
	for (uint32_t i = 0; i < g->node.n; i++)
		node_retarget(g, i, id);
	for (uint32_t k = 0; k < g->whole.n; k++) {
		Retarget r = {id};
		Node n = g->whole.at[k];
		n.out = id[n.out];
		node_each_root(g, &n, retarget_root, &r);
		g->whole.at[k] = n;
	}
	for (RecurId k = 1; k < g->recur.n; k++)
		for (uint32_t m = 0; m < g->recur.at[k].member.n; m++)
			g->recur.at[k].member.at[m] = id[g->recur.at[k].member.at[m]];
	for (uint32_t k = 0; k < g->result.n; k++)
		g->result.at[k].tensor = id[g->result.at[k].tensor];
}
