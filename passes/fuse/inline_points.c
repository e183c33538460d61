/* inline_points.c: a pointwise node is computed where it is read, instead of being stored.
 *
 * in     any graph
 * out    no plain read of a pointwise node that its readers can compute at no more than its own cost;
 *        such nodes stay, unused, for dce
 * fp     exact: an element is the same expression, rounded to the same type, wherever it is computed
 * tests  tests/fuse/kernels.tex, tests/random
 *
 * p[a] = B(a) read at s is B(s). A reader may read p only where p's domain holds, and evaluation is by
 * demand, so value and fault are the same (fold_views.c). A result is stored anyway and is read back. A
 * read checked as it runs is left: it is checked against the extents of what it names.
 *
 * What is computed again must cost no more than storing it and reading it back (op_cost.h), or be read at one place,
 * by a reader that evaluates each element once, because every index it runs over appears in the subscripts: a chain of
 * nodes that each read the last at two places would be computed twice as often with each. In
 * strict mode a sum takes one fma a term when its body is a product: a body that is just the read must not
 * become one. What a GPU's matrix units are brought by windows stays an element (schedule/contract/window.c). */
#include "passes/expr_map.h"
#include "passes/fuse/group.h"
#include "passes/pass_ctx.h"
#include "passes/schedule/contract/window.h"
#include "passes/schedule/op_cost.h"

enum { MAX_SIZE = 1000 }; /* expressions of a body, beyond which it takes in no more */

typedef struct {
	uint32_t size;  /* distinct expressions */
	uint32_t units; /* of op_cost.h, of its operations on elements and its reads */
} BodyCost;

typedef struct {
	PassCtx *cx;
	BodyCost *cost;    /* by TensorId, of the nodes that may be inlined; size 0: none such */
	uint32_t *reads;   /* by TensorId: places that nodes read it at; the same one of two nodes is two */
	uint32_t *last;    /* by ExprId of a read: 1 + the node counted last */
	bool *refused;     /* by TensorId: without fuel */
	bool *counted;
	uint32_t reader;   /* index of the node at work */
	bool whole_sum;    /* the expression at work is the body of a strict sum */
	ExprId root;
	unsigned nwindow;  /* reads of the reader's that stay */
	ExprId window[2];
	uint32_t over;     /* the axes that it is evaluated for each value of, as bits */
	uint32_t size;     /* of the reader, so far */
	uint32_t done;
} Inline;

/* --- what a body costs, and who reads it --- */

typedef struct {
	const Graph *g;
	BodyCost cost;
} Counting;

static void
count_expr(void *user, ExprId e)
{
	Counting *c = user;
	const Expr *p = expr_get(c->g, e);
	c->cost.size++;
	bool element = p->op == OP_READ ? c->g->tensor.at[p->ref].kind != TENSOR_SCALAR : p->dtype != DT_I64;
	if (element)
		c->cost.units += expr_cost(c->g, e).vector;
}

static BodyCost
body_cost(const Graph *g, Arena *scratch, ExprId body)
{
	Counting c = {.g = g};
	expr_walk(g, scratch, body, count_expr, &c);
	return c.cost;
}

bool
point_may_move(const Graph *g, const Node *n)
{
	return n->monoid == MON_NONE && !n->recur && !n->scatter && !n->finish && !n->reports && n->npar < 32 &&
	       g->tensor.at[n->out].rank == n->npar;
}

static void
note_read(void *user, ExprId e)
{
	Inline *in = user;
	const Expr *p = expr_get(in->cx->graph, e);
	if (p->op != OP_READ || in->last[e] == in->reader + 1)
		return;
	in->last[e] = in->reader + 1;
	in->reads[p->ref]++;
}

static void
note_root(void *user, Graph *g, ExprId *root)
{
	Inline *in = user;
	if (*root)
		expr_walk(g, in->cx->scratch, *root, note_read, in);
}

static void
count_reads(Inline *in, Graph *g)
{
	for (in->reader = 0; in->reader < g->node.n; in->reader++) {
		Node n = g->node.at[in->reader];
		node_each_root(g, &n, note_root, in);
	}
}

/* --- the rewrite --- */

static bool
pays(const Inline *in, Graph *g, ExprId read)
{
	const Expr p = *expr_get(g, read);
	const BodyCost *c = &in->cost[p.ref];
	if (c->units <= 2u * op_cost_read.vector)
		return true;
	uint32_t axes = 0;
	for (unsigned k = 0; k < p.narg; k++)
		axes |= expr_axes(g, in->cx->scratch, expr_arg(g, read, k));
	return in->reads[p.ref] == 1 && (in->over & ~axes) == 0;
}

static bool
may_inline(Inline *in, Graph *g, ExprId read)
{
	const Expr p = *expr_get(g, read);
	if (p.op != OP_READ || p.access || !in->cost[p.ref].size || in->refused[p.ref])
		return false;
	if (in->whole_sum && read == in->root && expr_get(g, tensor_node(g, p.ref)->body)->op == OP_MUL)
		return false;
	for (unsigned k = 0; k < in->nwindow; k++)
		if (in->window[k] == read)
			return false;
	if (in->size + in->cost[p.ref].size > MAX_SIZE || !pays(in, g, read))
		return false;
	if (in->counted[p.ref] || spend(in->cx))
		return true;
	in->refused[p.ref] = true;
	return false;
}

static ExprId
inline_read(void *user, Graph *g, ExprId e)
{
	Inline *in = user;
	if (!may_inline(in, g, e))
		return e;
	const Expr p = *expr_get(g, e);
	in->done += !in->counted[p.ref];
	in->counted[p.ref] = true;
	in->size += in->cost[p.ref].size;
	return expr_at_read(g, tensor_node(g, p.ref)->body, e);
}

static ExprId
inline_in(Inline *in, Graph *g, ExprId root, uint32_t over)
{
	in->root = root;
	in->over = over;
	return root ? expr_rewrite(g, root, inline_read, in) : 0;
}

static uint32_t
low_bits(unsigned n)
{
	return n >= 32 ? UINT32_MAX : (1u << n) - 1;
}

static void
inline_node(Inline *in, Graph *g, uint32_t i)
{
	Node n = g->node.at[i];
	uint32_t all = low_bits((unsigned)n.npar + n.nred), par = low_bits(n.npar);
	in->size = body_cost(g, in->cx->scratch, n.body).size;
	in->nwindow = contract_window_reads(g, in->cx->scratch, &n, in->cx->options, in->window);
	n.guard = inline_in(in, g, n.guard, n.scatter ? all & ~par : all);
	in->whole_sum = g->fp == FP_STRICT && n.monoid == MON_SUM;
	n.body = inline_in(in, g, n.body, n.scatter ? all & ~par : all);
	in->whole_sum = false;
	n.finish = inline_in(in, g, n.finish, par);
	n.domain = inline_in(in, g, n.domain, par);
	n.init = inline_in(in, g, n.init, par);
	g->node.at[i] = n;
}

/* In order, so that what is inlined has taken in what it reads. */
uint32_t
pass_inline_points(Graph *g, PassCtx *cx)
{
	Arena *a = cx->scratch;
	uint32_t nt = g->tensor.n;
	Inline in = {.cx = cx, .cost = ARENA_ARRAY(a, BodyCost, nt), .reads = ARENA_ARRAY(a, uint32_t, nt),
	             .last = ARENA_ARRAY(a, uint32_t, g->expr.n), .refused = ARENA_ARRAY(a, bool, nt),
	             .counted = ARENA_ARRAY(a, bool, nt)};
	if (cx->options->fuse == FUSE_OFF)
		return 0;
	bool *result = ARENA_ARRAY(a, bool, nt);
	for (uint32_t r = 0; r < g->result.n; r++)
		result[g->result.at[r].tensor] = true;
	count_reads(&in, g);
	for (uint32_t i = 0; i < g->node.n; i++) {
		inline_node(&in, g, i);
		const Node *n = &g->node.at[i];
		if (point_may_move(g, n) && !result[n->out])
			in.cost[n->out] = body_cost(g, a, n->body);
	}
	return in.done;
}
