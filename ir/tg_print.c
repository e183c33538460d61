/* tg_print.c: the text form of tensor graphs; ir/README.md describes it, tg_read.c reads it back.
 *
 * An expression stands where it is used; but what a statement uses several times and is more than a
 * few symbols, or is nested deep, is named by a `let` in front of it. So the text is never much larger
 * than the graph, and its nesting is bounded. What gets a name depends on the structure alone, not on
 * ids: a graph that was read prints the same. */
#include <inttypes.h>
#include <string.h>

#include "ir/tg.h"
#include "ir/tg_types.h"

typedef struct {
	uint32_t statement; /* for which the rest holds */
	uint32_t uses, size, height;
	uint32_t let; /* 1 + its number, or 0 */
} Shape;

typedef struct {
	const Graph *g;
	Text *out;
	Shape *shape; /* by ExprId */
	uint32_t statement;
	VEC(ExprId) order; /* what the statement uses, operands first */
} Printer;

enum { SMALL = 4, DEEP = 60 };

static void
add(Printer *p, const char *s)
{
	text_add(p->out, s, strlen(s));
}

static bool
is_plain(const char *s)
{
	if (!*s || (*s >= '0' && *s <= '9') || strcmp(s, "_") == 0)
		return false;
	for (; *s; s++)
		if (*s != '_' && !(*s >= '0' && *s <= '9') && !(*s >= 'a' && *s <= 'z') && !(*s >= 'A' && *s <= 'Z'))
			return false;
	return true;
}

static void
print_name(Printer *p, Name name)
{
	const char *s = name_text(p->g->names, name);
	if (!name)
		add(p, "_");
	else if (is_plain(s))
		add(p, s);
	else
		text_json(p->out, s, strlen(s));
}

static void
print_quoted(Printer *p, const char *s)
{
	text_json(p->out, s ? s : "", s ? strlen(s) : 0);
}

/* --- which parts get names --- */

static void
meet(void *user, ExprId e)
{
	Printer *p = user;
	const Expr *q = expr_get(p->g, e);
	if (p->shape[e].statement == p->statement)
		return;
	p->shape[e] = (Shape){.statement = p->statement};
	for (unsigned k = 0; k < q->narg; k++)
		p->shape[expr_arg(p->g, e, k)].uses++;
	vec_push(p->out->arena, &p->order, e);
}

static void
print_expr(Printer *p, ExprId e, bool whole);

static void
print_lets(Printer *p)
{
	uint32_t nlet = 0;
	for (uint32_t i = 0; i < p->order.n; i++) {
		ExprId e = p->order.at[i];
		Shape *s = &p->shape[e];
		const Expr *q = expr_get(p->g, e);
		s->size = 1;
		for (unsigned k = 0; k < q->narg; k++) {
			const Shape *a = &p->shape[expr_arg(p->g, e, k)];
			s->size += a->size;
			s->height = a->height + 1 > s->height ? a->height + 1 : s->height;
		}
		if (q->narg == 0 || !((s->uses > 1 && s->size > SMALL) || s->height > DEEP))
			continue;
		text_printf(p->out, "let ^%" PRIu32 " = ", nlet);
		print_expr(p, e, true);
		add(p, "\n");
		s->let = ++nlet;
		s->size = 1;
		s->height = 0;
	}
}

/* Starts a statement that uses these expressions (0: none), printing what it names. */
static void
begin_statement(Printer *p, const ExprId *root, unsigned n)
{
	p->statement++;
	p->order.n = 0;
	for (unsigned k = 0; k < n; k++)
		if (root[k]) {
			expr_walk(p->g, p->out->arena, root[k], meet, p);
			p->shape[root[k]].uses++;
		}
	print_lets(p);
}

/* --- expressions --- */

static void
print_const(Printer *p, const Expr *q)
{
	DType t = (DType)q->dtype;
	if (t == DT_BOOL) {
		add(p, q->imm.i ? "true" : "false");
		return;
	}
	if (dtype_is_float(t))
		text_double(p->out, q->imm.f);
	else if (t == DT_U64)
		text_printf(p->out, "%" PRIu64, (uint64_t)q->imm.i);
	else
		text_printf(p->out, "%" PRId64, q->imm.i);
	if (t != DT_I64)
		text_printf(p->out, ":%s", dtype_info[t].text);
}

static void
print_dim(Printer *p, DimId d)
{
	const Graph *g = p->g;
	DimId first = 1;
	while (first < g->dim.n && g->dim.at[first].name != g->dim.at[d].name)
		first++;
	add(p, "$");
	if (first == d && is_plain(name_text(g->names, g->dim.at[d].name)))
		print_name(p, g->dim.at[d].name);
	else
		text_printf(p->out, "%" PRIu32, d);
}

static void
print_operation(Printer *p, ExprId e)
{
	const Expr *q = expr_get(p->g, e);
	DType arg[TG_MAX_AXES];
	for (unsigned k = 0; k < q->narg; k++)
		arg[k] = (DType)expr_get(p->g, expr_arg(p->g, e, k))->dtype;
	text_printf(p->out, "(%s", op_info[q->op].text);
	if (expr_narrow_type(p->g, e) != DT_NONE)
		text_printf(p->out, "~%s", dtype_info[q->ref].text);
	if (tg_result_type((Op)q->op, arg, q->narg) != q->dtype)
		text_printf(p->out, ":%s%s", dtype_info[q->dtype].text, expr_is_free_cast(p->g, e) ? "?" : "");
	for (unsigned k = 0; k < q->narg; k++) {
		add(p, " ");
		print_expr(p, expr_arg(p->g, e, k), false);
	}
	add(p, ")");
}

static void
print_read(Printer *p, ExprId e)
{
	const Expr *q = expr_get(p->g, e);
	text_printf(p->out, "%%%" PRIu32 "[", q->ref);
	for (unsigned k = 0; k < q->narg; k++) {
		add(p, k ? ", " : "");
		print_expr(p, expr_arg(p->g, e, k), false);
	}
	add(p, "]");
	if (q->access)
		text_printf(p->out, "!%" PRIu32, q->access);
}

static void
print_expr(Printer *p, ExprId e, bool whole)
{
	const Expr *q = expr_get(p->g, e);
	if (p->shape[e].let && !whole)
		text_printf(p->out, "^%" PRIu32, p->shape[e].let - 1);
	else if (q->op == OP_CONST)
		print_const(p, q);
	else if (q->op == OP_AXIS)
		text_printf(p->out, "@%" PRIu32, q->ref);
	else if (q->op == OP_IVAR)
		text_printf(p->out, "?%" PRIu32, q->ref);
	else if (q->op == OP_DIM)
		print_dim(p, q->ref);
	else if (q->op == OP_ACC)
		text_printf(p->out, "acc:%s", dtype_info[q->dtype].text);
	else if (q->op == OP_TOUCHED)
		add(p, "touched");
	else if (q->op == OP_READ)
		print_read(p, e);
	else
		print_operation(p, e);
}

/* --- statements --- */

static void
print_dims(Printer *p)
{
	for (DimId d = 1; d < p->g->dim.n; d++) {
		const Dim *q = &p->g->dim.at[d];
		add(p, "dim ");
		print_name(p, q->name);
		text_printf(p->out, " param %" PRId32 " axis %" PRId32, q->param, q->axis);
		if (q->turn)
			text_printf(p->out, " turn %" PRIu32, q->turn);
		else
			text_printf(p->out, " scale %" PRId64 " offset %" PRId64, q->scale, q->offset);
		if (q->fixed)
			text_printf(p->out, " fixed %" PRId64, q->value);
		if (q->hint)
			text_printf(p->out, " hint %" PRId64, q->hint);
		add(p, "\n");
	}
}

static void
print_tensors(Printer *p)
{
	static const char *const kind[] = {"none", "input", "inout", "scalar", "tensor"};
	for (TensorId t = 1; t < p->g->tensor.n; t++) {
		const Tensor *q = &p->g->tensor.at[t];
		begin_statement(p, q->extent, q->rank);
		text_printf(p->out, "%s %%%" PRIu32 " ", kind[q->kind], t);
		print_name(p, q->name);
		text_printf(p->out, " : %s[", dtype_info[q->dtype].text);
		for (unsigned a = 0; a < q->rank; a++) {
			add(p, a ? ", " : "");
			print_expr(p, q->extent[a], false);
		}
		add(p, "]\n");
	}
}

static void
print_accesses(Printer *p)
{
	static const char *const kind[] = {"gather", "scatter", "cut"};
	for (AccessId a = 1; a < p->g->access.n; a++) {
		text_printf(p->out, "access %" PRIu32 " %s ", a, kind[p->g->access.at[a].kind]);
		print_quoted(p, p->g->access.at[a].text);
		add(p, "\n");
	}
}

static void
print_checks(Printer *p)
{
	for (uint32_t k = 0; k < p->g->check.n; k++) {
		const Check *c = &p->g->check.at[k];
		begin_statement(p, &c->cond, 1);
		text_printf(p->out, "check %s ", c->code ? code_info[c->code].id : "_");
		print_expr(p, c->cond, false);
		add(p, " ");
		print_quoted(p, c->text);
		add(p, "\n");
	}
}

static void
print_part(Printer *p, const char *what, ExprId e)
{
	if (!e)
		return;
	text_printf(p->out, "%s ", what);
	print_expr(p, e, false);
}

static void
print_axes(Printer *p, const Node *n)
{
	if (n->npar) {
		add(p, "  par");
		for (unsigned k = 0; k < n->npar; k++) {
			add(p, " ");
			print_name(p, n->axis[k].name);
		}
		add(p, "\n");
	}
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		const Axis *a = &n->axis[k];
		add(p, "  red ");
		print_name(p, a->name);
		print_part(p, "", a->lo);
		print_part(p, " ..", a->hi);
		print_part(p, " clamp", a->clamp);
		if (a->cut)
			text_printf(p->out, " cut %" PRIu32, a->cut);
		add(p, "\n");
	}
}

static void
print_line(Printer *p, const char *what, ExprId e, AccessId access)
{
	if (!e)
		return;
	print_part(p, what, e);
	if (access)
		text_printf(p->out, " access %" PRIu32, access);
	add(p, "\n");
}

static void
print_node(Printer *p, const Node *n)
{
	ExprId root[3 * TG_MAX_AXES + TG_MAX_RANK + 7];
	unsigned m = 0;
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		root[m++] = n->axis[k].lo;
		root[m++] = n->axis[k].hi;
		root[m++] = n->axis[k].clamp;
	}
	root[m++] = n->domain;
	root[m++] = n->guard;
	root[m++] = n->body;
	root[m++] = n->finish;
	for (unsigned a = 0; a < TG_MAX_RANK; a++)
		root[m++] = n->target[a];
	root[m++] = n->init;
	root[m++] = n->expanded;
	root[m++] = n->when;
	begin_statement(p, root, m);
	text_printf(p->out, "node %%%" PRIu32 " %s%s%s\n", n->out, monoid_info[n->monoid].text,
	            n->scatter ? " scatter" : "", n->reports ? " reports" : n->parts ? " parts" : "");
	print_axes(p, n);
	print_line(p, "  domain", n->domain, 0);
	print_line(p, "  guard", n->guard, 0);
	print_line(p, "  body", n->body, 0);
	print_line(p, "  finish", n->finish, 0);
	for (unsigned a = 0; a < TG_MAX_RANK; a++)
		print_line(p, "  target", n->target[a], n->target_access[a]);
	print_line(p, "  init", n->init, 0);
	print_line(p, "  expanded", n->expanded, 0);
	print_line(p, "  when", n->when, 0);
	if (!n->recur)
		return;
	text_printf(p->out, "  recur %" PRIu32 " seq", n->recur);
	for (unsigned k = 0; k < p->g->recur.at[n->recur].nseq; k++)
		text_printf(p->out, " %u", n->seq[k]);
	add(p, "\n");
}

static void
print_recurs(Printer *p)
{
	for (RecurId r = 1; r < p->g->recur.n; r++) {
		const Recur *q = &p->g->recur.at[r];
		text_printf(p->out, "recur %" PRIu32 " seq", r);
		for (unsigned k = 0; k < q->nseq; k++)
			add(p, q->dir[k] < 0 ? " down" : " up");
		add(p, " members");
		for (uint32_t m = 0; m < q->member.n; m++)
			text_printf(p->out, " %%%" PRIu32, q->member.at[m]);
		add(p, "\n");
	}
}

void
graph_print(const Graph *g, Text *out)
{
	static const char *const fp[] = {"strict", "relaxed", "fast"};
	Printer p = {.g = g, .out = out, .shape = ARENA_ARRAY(out->arena, Shape, g->expr.n)};
	add(&p, "graph ");
	print_name(&p, g->name);
	text_printf(out, " %s\n", fp[g->fp]);
	print_dims(&p);
	print_accesses(&p);
	print_tensors(&p);
	print_checks(&p);
	print_recurs(&p);
	for (uint32_t i = 0; i < g->node.n; i++)
		print_node(&p, &g->node.at[i]);
	for (uint32_t k = 0; k < g->result.n; k++) {
		add(&p, "result ");
		print_name(&p, g->result.at[k].name);
		text_printf(out, " %%%" PRIu32, g->result.at[k].tensor);
		if (g->result.at[k].inout)
			text_printf(out, " overwrites %%%" PRIu32, g->result.at[k].inout);
		add(&p, "\n");
	}
}
