/* epilogue.c: a contraction takes the pointwise node that alone reads it into its finish.
 *
 * in     any graph
 * out    y[p] = B(x[p], …), where x is a sum of products that nothing else reads: y is that sum, finished
 *        by B of what x's finish made of it; x stays, unused, for dce
 * fp     exact: B gets x's element as it would have been stored, in x's type
 * tests  tests/fuse/epilogue_test.c
 *
 * x is not computed for elements that y does not need: both have the same axes, and y is defined
 * everywhere. A contraction cannot fault, so nothing is lost where B does not look at it. */
#include "passes/expr_map.h"
#include "passes/pass_ctx.h"
#include "passes/schedule/schedule.h"

typedef struct {
	PassCtx *cx;
	uint32_t *readers; /* by TensorId: how many nodes read it */
	uint32_t *last;    /* by TensorId: 1 + the node counted last */
	bool *result;      /* by TensorId */
	uint32_t node;
} Readers;

/* What one expression reads of the contractions. */
typedef struct {
	const Graph *g;
	const Readers *readers;
	TensorId x, elsewhere; /* read at the point itself; one that is read at another place too */
} Reads;

static void
count_reader(void *user, ExprId e)
{
	Readers *r = user;
	const Expr *p = expr_get(r->cx->graph, e);
	if (p->op != OP_READ || r->last[p->ref] == r->node + 1)
		return;
	r->last[p->ref] = r->node + 1;
	r->readers[p->ref]++;
}

static void
count_root(void *user, Graph *g, ExprId *root)
{
	Readers *r = user;
	if (*root)
		expr_walk(g, r->cx->scratch, *root, count_reader, r);
}

static void
count_readers(Readers *r, Graph *g)
{
	for (r->node = 0; r->node < g->node.n; r->node++) {
		Node n = g->node.at[r->node];
		node_each_root(g, &n, count_root, r);
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		r->result[g->result.at[k].tensor] = true;
}

static bool
is_contraction(const Graph *g, const PassCtx *cx, TensorId t)
{
	return tensor_node(g, t) && (contract_has_tiles(g, cx->scratch, cx->faulty, t, cx->options) ||
	                             contract_pairs_have_tiles(g, cx->scratch, cx->faulty, t, cx->options));
}

static bool
same_extents(const Graph *g, TensorId a, TensorId b)
{
	const Tensor *x = &g->tensor.at[a], *y = &g->tensor.at[b];
	for (unsigned k = 0; k < y->rank; k++)
		if (x->rank != y->rank || x->extent[k] != y->extent[k])
			return false;
	return x->rank == y->rank;
}

static void
note_read(void *user, ExprId e)
{
	Reads *r = user;
	const Expr *p = expr_get(r->g, e);
	if (p->op != OP_READ || !tensor_node(r->g, p->ref) || !is_contraction(r->g, r->readers->cx, p->ref))
		return;
	if (reads_own_point(r->g, e, p->ref) && !p->access && r->readers->readers[p->ref] == 1 &&
	    !r->readers->result[p->ref])
		r->x = r->x ? r->x : p->ref;
	else
		r->elsewhere = p->ref;
}

/* The contraction that y may take over, or 0. */
static TensorId
find_contraction(Graph *g, const Readers *readers, const Node *y)
{
	Reads r = {.g = g, .readers = readers};
	if (y->monoid != MON_NONE || y->recur || y->scatter || y->finish || y->reports || !expr_is_true(g, y->domain))
		return 0;
	expr_walk(g, readers->cx->scratch, y->body, note_read, &r);
	if (!r.x || r.x == r.elsewhere || !same_extents(g, r.x, y->out) || !is_contraction(g, readers->cx, r.x))
		return 0;
	return r.x;
}

typedef struct {
	TensorId x;
	ExprId value;
} Taken;

static ExprId
take_value(void *user, Graph *g, ExprId e)
{
	const Taken *t = user;
	const Expr *p = expr_get(g, e);
	return p->op == OP_READ && p->ref == t->x ? t->value : e;
}

Node
epilogue_finished(Graph *g, Arena *scratch, TensorId x, const Node *y)
{
	Node n = *tensor_node(g, x);
	DType sum = (DType)expr_get(g, n.body)->dtype, stored = g->tensor.at[x].dtype;
	ExprId acc = expr_make(g, OP_ACC, sum, 0, 0, NULL, 0);
	Taken t = {x, n.finish ? n.finish : expr_cast(g, stored, acc)};
	n.finish = expr_map(g, scratch, y->body, take_value, &t);
	n.out = y->out;
	return n;
}

uint32_t
pass_epilogue(Graph *g, PassCtx *cx)
{
	Arena *a = cx->scratch;
	uint32_t nt = g->tensor.n, done = 0;
	Readers r = {.cx = cx, .readers = ARENA_ARRAY(a, uint32_t, nt), .last = ARENA_ARRAY(a, uint32_t, nt),
	             .result = ARENA_ARRAY(a, bool, nt)};
	if (cx->options->fuse != FUSE_ALL)
		return 0;
	count_readers(&r, g);
	for (uint32_t i = 0; i < g->node.n; i++) {
		const Node y = g->node.at[i];
		TensorId x = find_contraction(g, &r, &y);
		if (!x)
			continue;
		g->node.at[i] = epilogue_finished(g, cx->scratch, x, &y);
		if (!is_contraction(g, cx, y.out) || !spend(cx)) {
			g->node.at[i] = y;
			continue;
		}
		done++;
	}
	return done;
}
