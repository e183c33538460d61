/* explain.c: what passes/fuse found and refused, as text for people: formulas with the names of the
 * tensors, shortened where they are deep. */
#include <inttypes.h>

#include "passes/fuse/algebra.h"

enum { MAX_DEPTH = 7 };

static void
print_formula(const Graph *g, ExprId e, unsigned depth, Text *out);

static void
print_leaf(const Graph *g, const Expr *p, Text *out)
{
	unsigned kind = p->ref >> 20, number = p->ref & ((1u << 20) - 1);
	static const char *const state[] = {"?", "a", "b", "old", "new"};
	switch ((int)p->op) {
	case OP_CONST:
		if (dtype_is_float((DType)p->dtype))
			text_double(out, p->imm.f);
		else
			text_printf(out, "%" PRId64, p->imm.i);
		return;
	case OP_AXIS: text_printf(out, "@%" PRIu32, p->ref); return;
	case OP_DIM: text_printf(out, "%s", name_text(g->names, g->dim.at[p->ref].name)); return;
	case OP_IVAR: text_printf(out, "%s%u", state[kind < 5 ? kind : 0], number); return;
	}
	text_printf(out, "%s", op_info[p->op].text);
}

static void
print_read(const Graph *g, ExprId e, Text *out)
{
	const Expr *p = expr_get(g, e);
	Name name = g->tensor.at[p->ref].name;
	if (name)
		text_printf(out, "%s", name_text(g->names, name));
	else
		text_printf(out, "%%%" PRIu32, p->ref);
	for (unsigned k = 0; k < p->narg; k++) {
		text_printf(out, k ? ", " : "[");
		print_formula(g, expr_arg(g, e, k), MAX_DEPTH - 2, out);
	}
	if (p->narg)
		text_printf(out, "]");
}

static bool
is_infix(const Expr *p)
{
	return p->narg == 2 && op_info[p->op].arity == 2 &&
	       (op_info[p->op].sig == SIG_SAME || op_info[p->op].sig == SIG_CMP || op_info[p->op].sig == SIG_LOGIC ||
	        op_info[p->op].sig == SIG_INT);
}

static void
print_formula(const Graph *g, ExprId e, unsigned depth, Text *out)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_READ) {
		print_read(g, e, out);
		return;
	}
	if (p->narg == 0) {
		print_leaf(g, p, out);
		return;
	}
	if (depth >= MAX_DEPTH) {
		text_printf(out, "..");
		return;
	}
	if (is_infix(p)) {
		text_printf(out, "(");
		print_formula(g, expr_arg(g, e, 0), depth + 1, out);
		text_printf(out, " %s ", op_info[p->op].text);
		print_formula(g, expr_arg(g, e, 1), depth + 1, out);
		text_printf(out, ")");
		return;
	}
	text_printf(out, "%s(", p->op == OP_CAST ? dtype_info[p->dtype].text : op_info[p->op].text);
	for (unsigned k = 0; k < p->narg; k++) {
		text_printf(out, k ? ", " : "");
		print_formula(g, expr_arg(g, e, k), depth + 1, out);
	}
	text_printf(out, ")");
}

static void
print_tensor(const Graph *g, TensorId t, Text *out)
{
	Name name = g->tensor.at[t].name;
	if (name)
		text_printf(out, "%s (%%%" PRIu32 ")", name_text(g->names, name), t);
	else
		text_printf(out, "%%%" PRIu32, t);
}

void
refusal_print(const Graph *g, const Refusal *r, Text *out)
{
	if (r->member) {
		print_tensor(g, r->member, out);
		text_printf(out, ": ");
	}
	if (r->at) {
		const Expr *p = expr_get(g, r->at);
		text_printf(out, "\"%s%s%s\" in ", op_info[p->op].text, p->op == OP_CAST ? ":" : "",
		            p->op == OP_CAST ? dtype_info[p->dtype].text : "");
		print_formula(g, r->at, 0, out);
		text_printf(out, " ");
	}
	text_printf(out, "%s", remark_info[r->why].text);
}

static void
print_part(const Graph *g, const char *label, ExprId e, Text *out)
{
	if (!e)
		return;
	text_printf(out, "%s", label);
	print_formula(g, e, 0, out);
}

static void
print_member(const Graph *g, const CascadeMember *m, Text *out)
{
	static const char *const policy[] = {"plain", "hoisted", "streamed", "moments"};
	text_printf(out, "  ");
	print_tensor(g, m->tensor, out);
	text_printf(out, ": pass %u, %s, rank %u\n", m->pass, policy[m->policy], m->rank);
	for (unsigned k = 0; k < m->nterms; k++) {
		print_part(g, "    term ", m->terms_g[k], out);
		print_part(g, " * ", m->terms_h[k], out);
		text_printf(out, "\n");
	}
	print_part(g, "    value ", m->value, out);
	text_printf(out, "\n");
	if (m->late.why != REMARK_NONE) {
		text_printf(out, "    late: ");
		refusal_print(g, &m->late, out);
		text_printf(out, "\n");
	}
}

static void
print_pass(const Graph *g, const CascadePass *p, unsigned number, Text *out)
{
	text_printf(out, "  pass %u%s\n", number, p->ordered ? ", terms in ascending order" : "");
	for (unsigned k = 0; k < p->nanchor; k++) {
		text_printf(out, "    anchor %u", k);
		print_part(g, " = ", p->anchor[k].value, out);
		text_printf(out, "\n");
	}
	for (unsigned k = 0; k < p->nacc; k++) {
		text_printf(out, "    a%u : %s = %s", k, dtype_info[p->acc[k].dtype].text, monoid_info[p->acc[k].monoid].text);
		print_part(g, " of ", p->acc[k].term, out);
		print_part(g, ", moved ", p->acc[k].rebase, out);
		text_printf(out, "%s\n", (int)k != p->seen ? "" : p->counted ? ", the number of elements" : ", whether any");
	}
}

void
cascade_print(const Graph *g, const Cascade *c, Text *out)
{
	text_printf(out, "cascade of %u reductions in %u %s\n", c->nmember, c->npass, c->npass == 1 ? "pass" : "passes");
	for (unsigned k = 0; k < c->nmember; k++)
		print_member(g, &c->member[k], out);
	for (unsigned k = 0; k < c->npass; k++)
		print_pass(g, &c->pass[k], k, out);
}
