/* tg_read.c: reads the text form of tensor graphs (ir/README.md), statement by statement. What is read
 * need not be a graph that verifies; the ids in it are such that printing and verifying are safe. */
#include "ir/tg_read.h"

#include <string.h>

static const char *const tensor_kind[] = {"none", "input", "inout", "scalar", "tensor"};
static const char *const access_kind[] = {"gather", "scatter", "cut"};
static const char *const fp_mode[] = {"strict", "relaxed", "fast"};

/* The number of the word that comes next; a mistake when none does. */
static unsigned
read_choice(Reader *r, const char *const *word, unsigned first, unsigned n)
{
	for (unsigned k = first; k < n; k++)
		if (reader_accept(r, word[k]))
			return k;
	reader_fail(r, "expected one of: %s … %s", word[first], word[n - 1]);
	return first;
}

static void
read_dim(Reader *r)
{
	Dim d = {.name = reader_name(r)};
	reader_expect(r, "param");
	d.param = (int32_t)reader_int(r, INT32_MIN, INT32_MAX);
	reader_expect(r, "axis");
	d.axis = (int32_t)reader_int(r, INT32_MIN, INT32_MAX);
	if (reader_accept(r, "turn")) {
		d.turn = (uint32_t)reader_int(r, 1, UINT32_MAX);
	} else {
		reader_expect(r, "scale");
		d.scale = reader_int(r, INT64_MIN, INT64_MAX);
		reader_expect(r, "offset");
		d.offset = reader_int(r, INT64_MIN, INT64_MAX);
	}
	d.fixed = reader_accept(r, "fixed");
	if (d.fixed)
		d.value = reader_int(r, INT64_MIN, INT64_MAX);
	if (reader_accept(r, "hint"))
		d.hint = reader_int(r, INT64_MIN, INT64_MAX);
	vec_push(r->g->arena, &r->g->dim, d);
}

static void
read_access(Reader *r)
{
	size_t n;
	Access a = {0};
	if (reader_int(r, 0, UINT32_MAX) != r->g->access.n)
		reader_fail(r, "accesses are numbered in order");
	a.kind = (AccessKind)read_choice(r, access_kind, 0, 3);
	a.text = reader_quoted(r, &n);
	vec_push(r->g->arena, &r->g->access, a);
}

static void
read_check(Reader *r)
{
	size_t n;
	char id[16] = {0};
	Check c = {0};
	const char *s = reader_word(r, &n);
	if (n == 0 || n >= sizeof id)
		reader_fail(r, "expected a code");
	else
		memcpy(id, s, n);
	c.code = r->error ? DIAG_NONE : code_named(id);
	if (c.code == DIAG_NONE && strcmp(id, "_") != 0)
		reader_fail(r, "no such code");
	c.cond = reader_expr(r);
	c.text = reader_quoted(r, &n);
	vec_push(r->g->arena, &r->g->check, c);
}

static void
read_tensor(Reader *r, TensorKind kind)
{
	Graph *g = r->g;
	ExprId extent[TG_MAX_RANK];
	unsigned rank = 0;
	if (reader_id(r, '%', UINT32_MAX) != g->tensor.n)
		reader_fail(r, "tensors are numbered in order");
	Name name = reader_name(r);
	reader_expect(r, ":");
	DType t = reader_dtype(r);
	reader_expect(r, "[");
	while (!r->error && !reader_accept(r, "]")) {
		if (rank == TG_MAX_RANK)
			reader_fail(r, "more than %d axes", TG_MAX_RANK);
		else
			extent[rank++] = reader_expr(r);
	}
	if (r->error)
		return;
	TensorId id = tensor_new(g, kind, name, (Span){0}, t, rank, extent);
	g->tensor.at[id].node = UINT32_MAX; /* until its node comes */
	if (kind != TENSOR_NODE)
		vec_push(g->arena, &g->param, id);
}

/* --- nodes --- */

static void
read_red(Reader *r, Node *n)
{
	unsigned k = n->npar + n->nred;
	if (k == TG_MAX_AXES) {
		reader_fail(r, "more than %d axes", TG_MAX_AXES);
		return;
	}
	Axis *a = &n->axis[k];
	n->nred++;
	a->name = reader_name(r);
	a->lo = reader_expr(r);
	reader_expect(r, "..");
	a->hi = reader_expr(r);
	if (reader_accept(r, "clamp"))
		a->clamp = reader_expr(r);
	if (reader_accept(r, "cut"))
		a->cut = (AccessId)reader_int(r, 1, UINT32_MAX);
}

static void
read_par(Reader *r, Node *n)
{
	for (unsigned k = 0; k < n->npar; k++)
		n->axis[k].name = reader_name(r);
}

static void
read_target(Reader *r, Node *n, unsigned *ntarget)
{
	if (*ntarget == TG_MAX_RANK) {
		reader_fail(r, "more than %d targets", TG_MAX_RANK);
		return;
	}
	n->target[*ntarget] = reader_expr(r);
	if (reader_accept(r, "access"))
		n->target_access[*ntarget] = (AccessId)reader_int(r, 1, UINT32_MAX);
	++*ntarget;
}

static void
read_node_recur(Reader *r, Node *n)
{
	n->recur = (RecurId)reader_int(r, 1, (int64_t)r->g->recur.n - 1);
	reader_expect(r, "seq");
	for (unsigned k = 0; !r->error && k < r->g->recur.at[n->recur].nseq; k++)
		n->seq[k] = (uint8_t)reader_int(r, 0, 255);
}

static bool
read_node_part(Reader *r, Node *n, unsigned *ntarget)
{
	if (reader_accept(r, "par"))
		read_par(r, n);
	else if (reader_accept(r, "red"))
		read_red(r, n);
	else if (reader_accept(r, "domain"))
		n->domain = reader_expr(r);
	else if (reader_accept(r, "guard"))
		n->guard = reader_expr(r);
	else if (reader_accept(r, "body"))
		n->body = reader_expr(r);
	else if (reader_accept(r, "finish"))
		n->finish = reader_expr(r);
	else if (reader_accept(r, "target"))
		read_target(r, n, ntarget);
	else if (reader_accept(r, "init"))
		n->init = reader_expr(r);
	else if (reader_accept(r, "expanded"))
		n->expanded = reader_expr(r);
	else if (reader_accept(r, "when"))
		n->when = reader_expr(r);
	else
		return false;
	return !r->error;
}

static Monoid
read_monoid(Reader *r)
{
	size_t n;
	const char *s = reader_word(r, &n);
	Monoid m = monoid_named(s, n);
	if (m == MON_NONE && (n != 4 || memcmp(s, "none", 4) != 0))
		reader_fail(r, "no such monoid");
	return m;
}

/* `recur` begins a part of a node and a statement alike: within a node it is the part. */
static void
read_node(Reader *r)
{
	Graph *g = r->g;
	Node n = {0};
	unsigned ntarget = 0;
	n.out = reader_id(r, '%', g->tensor.n - 1);
	if (!r->error && (n.out == 0 || g->tensor.at[n.out].kind != TENSOR_NODE || g->tensor.at[n.out].node != UINT32_MAX))
		reader_fail(r, "%%%u is not a tensor without a node", n.out);
	if (r->error)
		return;
	n.npar = g->tensor.at[n.out].rank;
	n.monoid = read_monoid(r);
	n.scatter = reader_accept(r, "scatter");
	n.reports = reader_accept(r, "reports");
	n.parts = !n.reports && reader_accept(r, "parts");
	while (read_node_part(r, &n, &ntarget))
		;
	if (reader_accept(r, "recur"))
		read_node_recur(r, &n);
	if (!n.body)
		reader_fail(r, "a node without a body");
	g->tensor.at[n.out].node = g->node.n;
	vec_push(g->arena, &g->node, n);
}

static void
read_recur(Reader *r)
{
	Graph *g = r->g;
	Recur q = {0};
	if (reader_int(r, 0, UINT32_MAX) != g->recur.n)
		reader_fail(r, "recurrences are numbered in order, before nodes");
	reader_expect(r, "seq");
	while (!r->error && !reader_accept(r, "members")) {
		static const char *const way[] = {"up", "down"};
		int8_t dir = read_choice(r, way, 0, 2) == 0 ? 1 : -1;
		if (q.nseq == TG_MAX_SEQ)
			reader_fail(r, "more than %d sequential axes", TG_MAX_SEQ);
		else
			q.dir[q.nseq++] = dir;
	}
	while (reader_more(r) && *r->at == '%') {
		TensorId t = reader_id(r, '%', g->tensor.n - 1);
		vec_push(g->arena, &q.member, t);
	}
	vec_push(g->arena, &g->recur, q);
}

static void
read_result(Reader *r)
{
	Result q = {.name = reader_name(r)};
	q.tensor = reader_id(r, '%', r->g->tensor.n - 1);
	if (reader_accept(r, "overwrites"))
		q.inout = reader_id(r, '%', r->g->tensor.n - 1);
	vec_push(r->g->arena, &r->g->result, q);
}

static void
read_let(Reader *r)
{
	uint32_t id = reader_id(r, '^', UINT32_MAX);
	if (id == 0)
		r->let.n = 0; /* names of another statement begin */
	if (!r->error && id != r->let.n)
		reader_fail(r, "names are numbered in order");
	reader_expect(r, "=");
	ExprId e = reader_expr(r);
	vec_push(r->g->arena, &r->let, e);
}

static void
read_statement(Reader *r)
{
	if (reader_accept(r, "let"))
		read_let(r);
	else if (reader_accept(r, "dim"))
		read_dim(r);
	else if (reader_accept(r, "access"))
		read_access(r);
	else if (reader_accept(r, "check"))
		read_check(r);
	else if (reader_accept(r, "node"))
		read_node(r);
	else if (reader_accept(r, "recur"))
		read_recur(r);
	else if (reader_accept(r, "result"))
		read_result(r);
	else
		read_tensor(r, (TensorKind)read_choice(r, tensor_kind, 1, 5));
}

Graph *
graph_read(Arena *a, Names *names, const char *text, size_t n, const char **error)
{
	Graph *g = graph_new(a, names);
	const char *copy = arena_copy(a, text, n); /* with a NUL, which strtod wants */
	Reader r = {.g = g, .at = copy, .end = copy + n, .line = 1};
	reader_expect(&r, "graph");
	g->name = reader_name(&r);
	g->fp = (FpMode)read_choice(&r, fp_mode, 0, 3);
	while (!r.error && reader_more(&r))
		read_statement(&r);
	for (TensorId t = 1; t < g->tensor.n && !r.error; t++)
		if (g->tensor.at[t].kind == TENSOR_NODE && g->tensor.at[t].node == UINT32_MAX)
			reader_fail(&r, "%%%u has no node", t);
	*error = r.error;
	return r.error ? NULL : g;
}
