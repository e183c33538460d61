/* explain.c: what passes/fuse found and refused, as text for people: formulas with the names of the
 * tensors, shortened where they are deep. */
#include <inttypes.h>
#include <string.h>

#include "passes/expr_map.h"
#include "passes/fuse/algebra.h"

enum { MAX_DEPTH = 7 };

/* Who is spoken to of what: names of axes, NULL where they are numbers. */
typedef struct {
	const Graph *g;
	const Name *axis;
	Text *out;
} Speech;

static void
print_formula(const Speech *s, ExprId e, unsigned depth);
/* Without brackets around all of it. */
static void
print_bare(const Speech *s, ExprId e, unsigned depth);

static void
print_leaf(const Speech *s, const Expr *p)
{
	const Graph *g = s->g;
	Text *out = s->out;
	unsigned kind = p->ref >> 20, number = p->ref & ((1u << 20) - 1);
	static const char *const state[] = {"?", "a", "b", "old", "anchor"};
	switch ((int)p->op) {
	case OP_CONST:
		if (dtype_is_float((DType)p->dtype) && s->axis)
			text_printf(out, "%.6g", p->imm.f);
		else if (dtype_is_float((DType)p->dtype))
			text_double(out, p->imm.f);
		else
			text_printf(out, "%" PRId64, p->imm.i);
		return;
	case OP_AXIS:
		if (s->axis && p->ref < TG_MAX_AXES && s->axis[p->ref])
			text_printf(out, "%s", name_text(g->names, s->axis[p->ref]));
		else
			text_printf(out, "@%" PRIu32, p->ref);
		return;
	case OP_DIM: text_printf(out, "%s", name_text(g->names, g->dim.at[p->ref].name)); return;
	case OP_IVAR: text_printf(out, "%s%u", state[kind < 5 ? kind : 0], number); return;
	}
	text_printf(out, "%s", op_info[p->op].text);
}

/* "max[j]", of a fold without a name: there is one of each row. */
static void
print_fold(const Speech *s, const Node *n)
{
	const char *sep = "[";
	text_printf(s->out, "%s", monoid_info[n->monoid].text);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		if (n->axis[k].name)
			text_printf(s->out, "%s%s", sep, name_text(s->g->names, n->axis[k].name));
		sep = n->axis[k].name ? ", " : sep;
	}
	text_printf(s->out, "%s", *sep == ',' ? "]" : "");
}

typedef struct {
	const Graph *g;
	const bool *behind; /* by TensorId */
	bool reads;
} Behind;

static void
note_behind(void *user, ExprId e)
{
	Behind *b = user;
	const Expr *p = expr_get(b->g, e);
	b->reads |= p->op == OP_READ && b->behind[p->ref];
}

/* The first name of what reads t, or reads what does; 0: none. */
static Name
name_behind(const Graph *g, TensorId t, Arena *scratch)
{
	bool *behind = ARENA_ARRAY(scratch, bool, g->tensor.n);
	behind[t] = true;
	for (uint32_t i = 0; i < g->node.n; i++) {
		const Node *n = &g->node.at[i];
		Behind b = {g, behind, false};
		node_walk(g, scratch, n, note_behind, &b);
		if (b.reads && g->tensor.at[n->out].name)
			return g->tensor.at[n->out].name;
		behind[n->out] |= b.reads;
	}
	return 0;
}

/* What a pass made of a definition without a name of its own. */
static void
print_part_of(const Speech *s, TensorId t)
{
	Name whose = name_behind(s->g, t, s->out->arena);
	text_printf(s->out, whose ? "part of %s" : "part", name_text(s->g->names, whose));
}

/* Whether it was that; then its subscripts go without saying. */
static bool
print_name(const Speech *s, TensorId t)
{
	const Node *n = tensor_node(s->g, t);
	Name name = s->g->tensor.at[t].name;
	bool fold = !name && n && n->monoid != MON_NONE && !n->scatter;
	const Expr *body = n ? expr_get(s->g, n->body) : NULL;
	if (fold)
		print_fold(s, n);
	else if (!name && n && body->op == OP_READ && s->g->tensor.at[body->ref].name)
		text_printf(s->out, "copy of %s", name_text(s->g->names, s->g->tensor.at[body->ref].name));
	else if (name)
		text_printf(s->out, "%s", name_text(s->g->names, name));
	else if (n)
		print_part_of(s, t);
	else
		text_printf(s->out, "%%%" PRIu32, t);
	return fold;
}

static void
print_read(const Speech *s, ExprId e)
{
	const Expr *p = expr_get(s->g, e);
	unsigned n = print_name(s, p->ref) ? 0 : p->narg;
	for (unsigned k = 0; k < n; k++) {
		text_printf(s->out, k ? ", " : "[");
		print_bare(s, expr_arg(s->g, e, k), MAX_DEPTH - 2);
	}
	text_printf(s->out, n ? "]" : "");
}

static bool
is_infix(const Expr *p)
{
	return p->narg == 2 && op_info[p->op].arity == 2 &&
	       (op_info[p->op].sig == SIG_SAME || op_info[p->op].sig == SIG_CMP || op_info[p->op].sig == SIG_LOGIC ||
	        op_info[p->op].sig == SIG_INT);
}

static void
print_bare(const Speech *s, ExprId e, unsigned depth)
{
	const Expr *p = expr_get(s->g, e);
	if (!is_infix(p) || depth >= MAX_DEPTH) {
		print_formula(s, e, depth);
		return;
	}
	print_formula(s, expr_arg(s->g, e, 0), depth + 1);
	text_printf(s->out, " %s ", op_info[p->op].text);
	print_formula(s, expr_arg(s->g, e, 1), depth + 1);
}

static void
print_formula(const Speech *s, ExprId e, unsigned depth)
{
	const Expr *p = expr_get(s->g, e);
	Text *out = s->out;
	if (p->op == OP_READ) {
		print_read(s, e);
		return;
	}
	if (p->narg == 0) {
		print_leaf(s, p);
		return;
	}
	if (depth >= MAX_DEPTH) {
		text_printf(out, "..");
		return;
	}
	if (is_infix(p)) {
		text_printf(out, "(");
		print_bare(s, e, depth);
		text_printf(out, ")");
		return;
	}
	text_printf(out, "%s(", p->op == OP_CAST ? dtype_info[p->dtype].text : op_info[p->op].text);
	for (unsigned k = 0; k < p->narg; k++) {
		text_printf(out, k ? ", " : "");
		print_bare(s, expr_arg(s->g, e, k), depth + 1);
	}
	text_printf(out, ")");
}

void
refusal_print(const Graph *g, const Refusal *r, Text *out)
{
	Speech s = {g, r->axis, out};
	if (r->member) {
		print_name(&s, r->member);
		text_printf(out, ": ");
	}
	if (r->at) {
		const Expr *p = expr_get(g, r->at);
		text_printf(out, "\"%s%s%s\" in ", op_info[p->op].text, p->op == OP_CAST ? ":" : "",
		            p->op == OP_CAST ? dtype_info[p->dtype].text : "");
		print_bare(&s, r->at, 0);
		text_printf(out, " ");
	}
	text_printf(out, "%s", remark_info[r->why].text);
}

static void
print_part(const Graph *g, const char *label, ExprId e, Text *out)
{
	Speech s = {g, NULL, out};
	if (!e)
		return;
	text_printf(out, "%s", label);
	print_formula(&s, e, 0);
}

static const char *const policy[] = {"plain", "hoisted", "streamed", "moments"};

static void
print_member(const Graph *g, const CascadeMember *m, Text *out)
{
	Name name = g->tensor.at[m->tensor].name;
	text_printf(out, name ? "  %s (%%%" PRIu32 ")" : "  %s%%%" PRIu32, name ? name_text(g->names, name) : "", m->tensor);
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

/* --- for people --- */

static void
say(const Speech *s, const char *label, ExprId e)
{
	if (!e)
		return;
	text_printf(s->out, "%s", label);
	print_bare(s, e, 0);
}

static const char *
axis_names(const Graph *g, const Cascade *c, Text *t)
{
	for (unsigned k = c->npar; k < c->npar + c->nred; k++)
		text_printf(t, "%s%s", k > c->npar ? ", " : "", c->name[k] ? name_text(g->names, c->name[k]) : "an index");
	return text_get(t);
}

/* The operator that keeps a member from the pass of what it reads. */
static void
explain_member(const Speech *s, const CascadeMember *m, const char *const *title, const char *margin)
{
	text_printf(s->out, "%s  %s: %s, rank %u", margin, title[m->tensor], policy[m->policy], m->rank);
	for (unsigned k = 0; k < m->nterms; k++) {
		text_printf(s->out, k ? " + " : ": ");
		print_formula(s, m->terms_g[k], 0);
		text_printf(s->out, " * ");
		print_formula(s, m->terms_h[k], 0);
	}
	text_printf(s->out, "\n");
	if (m->late.why == REMARK_NONE)
		return;
	text_printf(s->out, "%s    a pass later: ", margin);
	refusal_print(s->g, &m->late, s->out);
	text_printf(s->out, "\n");
}

static void
explain_pass(const Speech *s, const CascadePass *p, const char *margin)
{
	for (unsigned k = 0; k < p->nanchor; k++) {
		text_printf(s->out, "%s    anchor%u", margin, k);
		say(s, " = ", p->anchor[k].value);
		text_printf(s->out, "\n");
	}
	for (unsigned k = 0; k < p->nacc; k++) {
		if (p->acc[k].monoid == MON_ANY && expr_get(s->g, p->acc[k].term)->op == OP_CONST)
			continue; /* whether there was an element */
		text_printf(s->out, "%s    a%u = %s", margin, k, monoid_info[p->acc[k].monoid].text);
		say(s, " of ", p->acc[k].term);
		say(s, "; when its anchor moves, ", p->acc[k].rebase);
		text_printf(s->out, "\n");
	}
}

void
cascade_explain(const Graph *g, const Cascade *c, const char *const *title, const char *margin, Text *out)
{
	Speech s = {g, c->name, out};
	for (unsigned n = 0; n < c->npass; n++) {
		Text names;
		text_init(&names, out->arena);
		text_printf(out, "%sfolded in %s over %s:\n", margin, c->npass == 1 ? "one pass" : n ? "another pass" : "a pass", axis_names(g, c, &names));
		for (unsigned k = 0; k < c->nmember; k++)
			if (c->member[k].pass == n)
				explain_member(&s, &c->member[k], title, margin);
		explain_pass(&s, &c->pass[n], margin);
	}
}

static void
json_text(const char *label, const Text *t, Text *out)
{
	text_printf(out, "%s", label);
	text_json(out, text_get(t), t->n);
}

static void
json_formula(const Speech *s, const char *label, ExprId e)
{
	Text t;
	text_init(&t, s->out->arena);
	Speech own = {s->g, s->axis, &t};
	if (e)
		print_bare(&own, e, 0);
	json_text(label, &t, s->out);
}

static void
json_state(const Speech *s, const Cascade *c)
{
	const char *sep = "";
	text_printf(s->out, "],\"state\":[");
	for (unsigned n = 0; n < c->npass; n++)
		for (unsigned k = 0; k < c->pass[n].nacc; k++) {
			const CascadeAcc *a = &c->pass[n].acc[k];
			text_printf(s->out, "%s{\"name\":\"a%u\",\"pass\":%u,\"fold\":\"%s\"", sep, k, n, monoid_info[a->monoid].text);
			json_formula(s, ",\"term\":", a->term);
			json_formula(s, ",\"moved\":", a->rebase);
			text_printf(s->out, "}");
			sep = ",";
		}
	text_printf(s->out, "],\"anchors\":[");
	sep = "";
	for (unsigned n = 0; n < c->npass; n++)
		for (unsigned k = 0; k < c->pass[n].nanchor; k++) {
			text_printf(s->out, "%s{\"name\":\"anchor%u\",\"pass\":%u", sep, k, n);
			json_formula(s, ",\"value\":", c->pass[n].anchor[k].value);
			text_printf(s->out, "}");
			sep = ",";
		}
	text_printf(s->out, "]");
}

void
cascade_json(const Graph *g, const Cascade *c, const char *const *title, Text *out)
{
	Speech s = {g, c->name, out};
	Text names;
	text_init(&names, out->arena);
	axis_names(g, c, &names);
	json_text("\"over\":", &names, out);
	text_printf(out, ",\"folds\":[");
	for (unsigned k = 0; k < c->nmember; k++) {
		const CascadeMember *m = &c->member[k];
		text_printf(out, "%s{\"def\":", k ? "," : "");
		text_json(out, title[m->tensor], strlen(title[m->tensor]));
		text_printf(out, ",\"pass\":%u,\"rule\":\"%s\",\"rank\":%u", m->pass, policy[m->policy], m->rank);
		json_formula(&s, ",\"value\":", m->value);
		text_printf(out, "}");
	}
	json_state(&s, c);
}
