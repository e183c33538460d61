/* dce.c: delete what no result needs.
 *
 * in     any graph
 * out    every node is reached from a result, every expression is used; their ids are new. Parameters,
 *        dims and launch checks stay, they are the contract; so do accesses, whose ids a launch reports
 * fp     exact
 * tests  tests/passes/dce_test.c
 *
 * What Node.reports stays. A recurrence lives or dies as a whole. Readers come after what they read, but for recurrences, so one
 * walk from the last node to the first finds what is needed. */
#include <string.h>

#include "passes/expr_map.h"
#include "passes/pass_ctx.h"
#include "passes/retarget.h"

typedef struct {
	const Graph *g;
	Arena *scratch;
	bool *tensor;  /* needed */
	uint8_t *expr; /* seen already */
	bool all;      /* of what is walked */
	bool more;     /* there is news */
} Need;

/* Marks what e and its operands mention; each expression once. */
static void
need_expr(Need *n, ExprId e)
{
	const Graph *g = n->g;
	VEC(ExprId) stack = {0};
	vec_push(n->scratch, &stack, e);
	while (stack.n) {
		ExprId x = stack.at[--stack.n];
		const Expr *p = expr_get(g, x);
		if (n->expr[x])
			continue;
		n->expr[x] = 1;
		if (p->op == OP_READ)
			n->tensor[p->ref] = true;
		for (unsigned k = 0; k < p->narg; k++)
			vec_push(n->scratch, &stack, expr_arg(g, x, k));
	}
}

static void
need_root(void *user, Graph *g, ExprId *root)
{
	(void)g;
	if (*root)
		need_expr(user, *root);
}

static void
need_node(Need *n, Graph *g, uint32_t i)
{
	Node *p = &g->node.at[i];
	node_each_root(g, p, need_root, n);
	for (unsigned a = 0; a < g->tensor.at[p->out].rank; a++)
		need_expr(n, g->tensor.at[p->out].extent[a]);
	for (uint32_t m = 0; p->recur && m < g->recur.at[p->recur].member.n; m++)
		n->tensor[g->recur.at[p->recur].member.at[m]] = true;
}

/* A member found late may lie behind the walk, so it is repeated until nothing is added. */
static void
find_needed(Need *n, Graph *g)
{
	bool *walked = ARENA_ARRAY(n->scratch, bool, g->node.n + 1);
	for (uint32_t k = 0; k < g->result.n; k++)
		n->tensor[g->result.at[k].tensor] = true;
	for (uint32_t i = 0; i < g->node.n; i++)
		if (g->node.at[i].reports)
			n->tensor[g->node.at[i].out] = true;
	for (TensorId t = 1; t < g->tensor.n; t++)
		if (g->tensor.at[t].kind != TENSOR_NODE) {
			n->tensor[t] = true;
			for (unsigned a = 0; a < g->tensor.at[t].rank; a++)
				need_expr(n, g->tensor.at[t].extent[a]);
		}
	for (uint32_t k = 0; k < g->check.n; k++)
		need_expr(n, g->check.at[k].cond);
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = g->node.n; i-- > 0;)
			if (n->tensor[g->node.at[i].out] && !walked[i]) {
				need_node(n, g, i);
				walked[i] = more = true;
			}
	}
}

/* --- folds as they were before they were split --- */

static void
ask_needed(void *user, ExprId e)
{
	Need *n = user;
	const Expr *p = expr_get(n->g, e);
	n->all &= p->op != OP_READ || n->tensor[p->ref] || whole_node(n->g, p->ref);
}

static void
need_read(void *user, ExprId e)
{
	Need *n = user;
	const Expr *p = expr_get(n->g, e);
	if (p->op == OP_READ && !n->tensor[p->ref])
		n->tensor[p->ref] = n->more = true;
}

/* They stay where all that they read does anyway, or was split as well. */
static void
keep_whole(Graph *g, Need *n)
{
	uint32_t kept = 0;
	do {
		n->more = false;
		for (uint32_t k = 0; k < g->whole.n; k++) {
			n->all = n->tensor[g->whole.at[k].out];
			node_walk(g, n->scratch, &g->whole.at[k], ask_needed, n);
			if (n->all)
				node_walk(g, n->scratch, &g->whole.at[k], need_read, n);
		}
		if (n->more)
			find_needed(n, g);
	} while (n->more);
	for (uint32_t k = 0; k < g->whole.n; k++) {
		Node w = g->whole.at[k];
		n->all = n->tensor[w.out];
		node_walk(g, n->scratch, &w, ask_needed, n);
		if (!n->all)
			continue;
		node_each_root(g, &w, need_root, n);
		g->whole.at[kept++] = w;
	}
	g->whole.n = kept;
}

/* --- compaction --- */

typedef struct {
	TensorId *tensor;
	ExprId *expr;
} Renumber;

/* The pool anew, with what is needed in its old order. */
static void
compact_exprs(Graph *g, const Need *n, Renumber *r)
{
	uint32_t count = g->expr.n;
	const Expr *old = arena_copy(n->scratch, g->expr.at, count * sizeof *old);
	const ExprId *arg = arena_copy(n->scratch, g->arg.at, g->arg.n * sizeof *arg);
	g->expr.n = 1;
	g->arg.n = 0;
	g->norm.n = 0;
	if (g->norm.cap)
		memset(g->norm.at, 0, g->norm.cap * sizeof *g->norm.at);
	memset(g->cons, 0, g->ncons * sizeof *g->cons);
	for (ExprId e = 1; e < count; e++) {
		const Expr *p = &old[e];
		ExprId to[TG_MAX_AXES];
		if (!n->expr[e])
			continue;
		for (unsigned k = 0; k < p->narg; k++)
			to[k] = r->expr[arg[p->arg + k]];
		if (p->op == OP_CONST)
			r->expr[e] = dtype_is_float((DType)p->dtype) ? expr_float(g, (DType)p->dtype, p->imm.f)
			                                             : expr_int(g, (DType)p->dtype, p->imm.i);
		else
			r->expr[e] = expr_make(g, (Op)p->op, (DType)p->dtype, p->op == OP_READ ? r->tensor[p->ref] : p->ref,
			                       p->access, to, p->narg);
	}
}

static void
renumber_root(void *user, Graph *g, ExprId *root)
{
	(void)g;
	*root = ((const Renumber *)user)->expr[*root];
}

static void
compact_tensors(Graph *g, const Need *n, Renumber *r)
{
	TensorId to = 1;
	uint32_t node = 0;
	for (TensorId t = 1; t < g->tensor.n; t++) {
		if (!n->tensor[t])
			continue;
		if (g->tensor.at[t].kind == TENSOR_NODE) {
			g->node.at[node] = g->node.at[g->tensor.at[t].node];
			g->node.at[node].out = to;
			g->tensor.at[t].node = node++;
		}
		r->tensor[t] = to;
		g->tensor.at[to++] = g->tensor.at[t];
	}
	g->tensor.n = to;
	g->node.n = node;
}

static void
compact_recurs(Graph *g, const Need *n, const Renumber *r)
{
	RecurId to = 1, *id = ARENA_ARRAY(n->scratch, RecurId, g->recur.n);
	for (RecurId k = 1; k < g->recur.n; k++) {
		Recur q = g->recur.at[k];
		if (!n->tensor[q.member.at[0]])
			continue;
		for (uint32_t m = 0; m < q.member.n; m++)
			q.member.at[m] = r->tensor[q.member.at[m]];
		id[k] = to;
		g->recur.at[to++] = q;
	}
	g->recur.n = to;
	for (uint32_t i = 0; i < g->node.n; i++)
		g->node.at[i].recur = id[g->node.at[i].recur];
}

static void
compact(Graph *g, const Need *n)
{
	Arena *a = n->scratch;
	Renumber r = {ARENA_ARRAY(a, TensorId, g->tensor.n), ARENA_ARRAY(a, ExprId, g->expr.n)};
	compact_tensors(g, n, &r);
	compact_recurs(g, n, &r);
	compact_exprs(g, n, &r);
	graph_each_root(g, renumber_root, &r);
	for (uint32_t k = 0; k < g->whole.n; k++) {
		g->whole.at[k].out = r.tensor[g->whole.at[k].out];
		node_each_root(g, &g->whole.at[k], renumber_root, &r);
	}
	for (uint32_t k = 0; k < g->param.n; k++)
		g->param.at[k] = r.tensor[g->param.at[k]];
	for (uint32_t k = 0; k < g->result.n; k++) {
		g->result.at[k].tensor = r.tensor[g->result.at[k].tensor];
		g->result.at[k].inout = r.tensor[g->result.at[k].inout];
	}
}

void
graph_mark_reports(Graph *g, Arena *scratch)
{
	Need n = {g, scratch, ARENA_ARRAY(scratch, bool, g->tensor.n), ARENA_ARRAY(scratch, uint8_t, g->expr.n), .all = true};
	const bool *faulty = graph_may_fault(g, scratch);
	find_needed(&n, g);
	for (uint32_t i = 0; i < g->node.n; i++) {
		Node *p = &g->node.at[i];
		p->reports = p->scatter && faulty[p->out] && n.tensor[p->out];
	}
}

/* Fuel counts deleted nodes: what it does not allow stays, with all it needs. */
uint32_t
pass_dce(Graph *g, PassCtx *cx)
{
	Need n = {g, cx->scratch, ARENA_ARRAY(cx->scratch, bool, g->tensor.n), ARENA_ARRAY(cx->scratch, uint8_t, g->expr.n), .all = true};
	uint32_t done = 0, dead = 0;
	find_needed(&n, g);
	for (uint32_t i = 0; i < g->node.n; i++)
		if (!n.tensor[g->node.at[i].out] && !spend(cx))
			n.tensor[g->node.at[i].out] = true;
	if (cx->fuel == 0)
		find_needed(&n, g);
	for (uint32_t i = 0; i < g->node.n; i++)
		done += !n.tensor[g->node.at[i].out];
	for (ExprId e = 1; e < g->expr.n; e++)
		dead += !n.expr[e];
	if (done > 0 || dead > g->expr.n / 2) {
		keep_whole(g, &n);
		compact(g, &n);
	}
	return done;
}
