/* dot.c: the tensor graph for Graphviz. Parameters are ellipses, nodes boxes that say how they reduce;
 * an arrow is "is read by", dashed where it closes a recurrence. */
#include "driver/stages.h"

typedef struct {
	const Graph *g;
	Text *out;
	TensorId reader;
	bool *seen; /* by tensor: an arrow to this reader exists */
} Dot;

static void
label(const Graph *g, TensorId t, Text *out)
{
	const Tensor *x = &g->tensor.at[t];
	const Node *n = tensor_node(g, t);
	text_printf(out, "%%%u %s\\n%s", t, name_text(g->names, x->name), dtype_info[x->dtype].text);
	if (n && n->monoid)
		text_printf(out, "\\n%s%s over", n->scatter ? "scatter " : "", monoid_info[n->monoid].text);
	for (unsigned k = 0; n && k < n->nred; k++)
		text_printf(out, " %s", name_text(g->names, n->axis[n->npar + k].name));
}

static void
visit(void *user, ExprId e)
{
	Dot *d = user;
	const Expr *x = expr_get(d->g, e);
	if (x->op != OP_READ || d->seen[x->ref])
		return;
	d->seen[x->ref] = true;
	text_printf(d->out, "\tt%u -> t%u%s;\n", x->ref, d->reader, x->ref >= d->reader ? " [style=dashed]" : "");
}

static void
arrows(const Graph *g, Text *out, const Node *n)
{
	Arena *a = out->arena;
	Dot d = {g, out, n->out, ARENA_ARRAY(a, bool, g->tensor.n)};
	const ExprId part[] = {n->body, n->guard, n->domain, n->finish, n->init};
	for (unsigned k = 0; k < sizeof part / sizeof part[0]; k++)
		if (part[k])
			expr_walk(g, a, part[k], visit, &d);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		expr_walk(g, a, n->axis[k].lo, visit, &d);
		expr_walk(g, a, n->axis[k].hi, visit, &d);
	}
	for (unsigned k = 0; n->scatter && k < n->npar; k++)
		expr_walk(g, a, n->target[k], visit, &d);
}

void
dot_print(const Graph *g, Text *out)
{
	text_printf(out, "digraph \"%s\" {\n\trankdir=TB;\n", name_text(g->names, g->name));
	for (TensorId t = 1; t < g->tensor.n; t++) {
		text_printf(out, "\tt%u [shape=%s, label=\"", t, g->tensor.at[t].kind == TENSOR_NODE ? "box" : "ellipse");
		label(g, t, out);
		text_printf(out, "\"];\n");
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		text_printf(out, "\tt%u [peripheries=2];\n", g->result.at[k].tensor);
	for (uint32_t k = 0; k < g->node.n; k++)
		arrows(g, out, &g->node.at[k]);
	text_printf(out, "}\n");
}
