/* plan_print.c: programs as text for people and tests: one line a kernel for --emit=plan, and the
 * kernels' TIR for --emit=tir. */
#include "passes/pass.h"

/* Launch expressions are shallow: sums and products of extents. */
static void
print_launch_expr(const Graph *g, ExprId e, Text *out)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_CONST) {
		text_printf(out, "%lld", (long long)p->imm.i);
	} else if (p->op == OP_DIM) {
		text_printf(out, "%s", name_text(g->names, g->dim.at[p->ref].name));
	} else if (p->op == OP_READ) {
		text_printf(out, "%s", name_text(g->names, g->tensor.at[p->ref].name));
	} else {
		text_printf(out, "(%s", op_info[p->op].text);
		for (unsigned k = 0; k < p->narg; k++) {
			text_add(out, " ", 1);
			print_launch_expr(g, expr_arg(g, e, k), out);
		}
		text_add(out, ")", 1);
	}
}

static void
print_names(const Program *p, const Kernel *k, Text *out)
{
	for (unsigned i = 0; i < k->plan.nnode; i++) {
		Name n = p->graph->tensor.at[k->plan.node[i]].name;
		text_printf(out, "%s%s", i ? "," : "", n ? name_text(p->graph->names, n) : "-");
	}
}

void
program_print_plan(const Program *p, Text *out)
{
	text_printf(out, "graph %s: %u kernels\n", name_text(p->graph->names, p->graph->name), program_kernels(p));
	for (uint32_t i = 0; i < p->kernel.n; i++) {
		const Kernel *k = &p->kernel.at[i];
		text_printf(out, "k%u ", i);
		kp_print(&k->plan, out);
		text_printf(out, " # ");
		print_names(p, k, out);
		text_printf(out, " tasks=");
		print_launch_expr(p->graph, k->ntask, out);
		text_printf(out, " buffers=%u scalars=%u%s%s%s%s\n", k->buffer.n, k->scalar.n, k->serial ? " serial" : "",
		            k->follows ? " follows" : k->aligned ? " aligned" : k->otherwise ? " otherwise" : "", k->covered ? " covered" : "", k->tuned ? " tuned" : "");
	}
}

void
program_print_tir(const Program *p, Text *out)
{
	for (uint32_t i = 0; i < p->kernel.n; i++)
		tir_print(p->kernel.at[i].tir, out);
}
