/* signature.c: a graph's signature as JSON, what a caller needs to know without the source:
 * {"graph","params":[{"name","kind","dtype","shape":[…]}],"results":[…],"dims":[…]}. An axis of a
 * shape is a number, or a text over the dims. */
#include "codegen/image_write.h"
#include "ir/gpu_facts.h"
#include "ir/text.h"

#include <string.h>

static void put_expr(const Graph *g, ExprId e, unsigned depth, Text *out);

static void
put_operands(const Graph *g, ExprId e, unsigned depth, const char *between, Text *out)
{
	const Expr *x = expr_get(g, e);
	for (unsigned k = 0; k < x->narg; k++) {
		if (k)
			text_printf(out, "%s", between);
		put_expr(g, expr_arg(g, e, k), depth + 1, out);
	}
}

static bool
is_infix(Op op)
{
	return op_info[op].arity == 2 && op != OP_MIN && op != OP_MAX && op != OP_POW;
}

/* As in the source, with every inner operation in parentheses. */
static void
put_expr(const Graph *g, ExprId e, unsigned depth, Text *out)
{
	const Expr *x = expr_get(g, e);
	if (depth > 64)
		text_printf(out, "...");
	else if (x->op == OP_CONST)
		text_printf(out, "%lld", (long long)x->imm.i);
	else if (x->op == OP_DIM)
		text_printf(out, "%s", name_text(g->names, g->dim.at[x->ref].name));
	else if (x->op == OP_READ)
		text_printf(out, "%s", name_text(g->names, g->tensor.at[x->ref].name));
	else if (is_infix((Op)x->op)) {
		text_printf(out, depth ? "(" : "");
		put_operands(g, e, depth, arena_text(out->arena, " %s ", op_info[x->op].text), out);
		text_printf(out, depth ? ")" : "");
	} else {
		text_printf(out, "%s(", x->op == OP_CAST ? dtype_info[x->dtype].text : op_info[x->op].text);
		put_operands(g, e, depth, ", ", out);
		text_printf(out, ")");
	}
}

static void
put_name(const Graph *g, Name n, Text *out)
{
	const char *s = name_text(g->names, n);
	text_json(out, s, strlen(s));
}

static void
put_shape(const Graph *g, const Tensor *t, Text *out)
{
	text_printf(out, "[");
	for (unsigned k = 0; k < t->rank; k++) {
		Text axis;
		text_init(&axis, out->arena);
		put_expr(g, t->extent[k], 0, &axis);
		text_printf(out, k ? "," : "");
		if (expr_get(g, t->extent[k])->op == OP_CONST)
			text_printf(out, "%s", text_get(&axis));
		else
			text_json(out, text_get(&axis), axis.n);
	}
	text_printf(out, "]");
}

void
signature_shape(const Graph *g, const Tensor *t, Text *out)
{
	for (unsigned k = 0; k < t->rank; k++) {
		text_printf(out, k ? ", " : "[");
		put_expr(g, t->extent[k], 0, out);
	}
	text_printf(out, t->rank ? "]" : "");
}

static void
put_tensor(const Graph *g, Name name, const char *kind, TensorId id, bool first, Text *out)
{
	const Tensor *t = &g->tensor.at[id];
	text_printf(out, first ? "{\"name\":" : ",{\"name\":");
	put_name(g, name, out);
	text_printf(out, ",\"kind\":\"%s\",\"dtype\":\"%s\",\"shape\":", kind, dtype_info[t->dtype].text);
	put_shape(g, t, out);
	text_printf(out, "}");
}

const char *
signature_json(Arena *a, const Graph *g)
{
	Text out;
	bool first = true;
	text_init(&out, a);
	text_printf(&out, "{\"graph\":");
	put_name(g, g->name, &out);
	text_printf(&out, ",\"params\":[");
	for (uint32_t k = 0; k < g->param.n; k++) {
		const Tensor *t = &g->tensor.at[g->param.at[k]];
		const char *kind = t->kind == TENSOR_SCALAR ? "scalar" : t->kind == TENSOR_INOUT ? "inout" : "input";
		put_tensor(g, t->name, kind, g->param.at[k], k == 0, &out);
	}
	text_printf(&out, "],\"results\":[");
	for (uint32_t k = 0; k < g->result.n; k++) {
		const Result *r = &g->result.at[k];
		if (r->inout)
			continue;
		put_tensor(g, r->name, "result", r->tensor, first, &out);
		first = false;
	}
	text_printf(&out, "],\"dims\":[");
	for (DimId d = 1; d < g->dim.n && dim_is_users(g, d); d++) {
		text_printf(&out, d > 1 ? "," : "");
		put_name(g, g->dim.at[d].name, &out);
	}
	text_printf(&out, "]}");
	return text_get(&out);
}
