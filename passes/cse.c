/* cse.c: equal nodes become one.
 *
 * in     any graph
 * out    of nodes that compute the same, the first is read; the others stay for dce, asked for nowhere
 * fp     exact
 * tests  tests/passes/cse_test.c
 *
 * Expressions are equal when their ids are. Two nodes are equal when all that decides their values is;
 * names are not compared, and neither are domains: the one that stays must be computed wherever either
 * was, and its reads are in bounds at each such point by the proof of the node that had it. Where the
 * later domain depends on what comes after the first node, perhaps on its own value, both stay. Accesses
 * are part of an expression, so a check never changes the name it is reported under. Nodes of
 * recurrences are left alone. */
#include <string.h>

#include "passes/pass_ctx.h"
#include "ir/bugs.h"
#include "passes/retarget.h"

static uint32_t
mix(uint32_t h, uint32_t v)
{
	h = (h ^ v) * 0x9e3779b1u;
	return h ^ h >> 15;
}

static uint32_t
hash_node(const Graph *g, const Node *n)
{
	uint32_t h = mix(mix(n->monoid, n->npar), n->nred);
	h = mix(mix(mix(h, n->guard), n->body), BUG(cse_ignores_finish) ? 0 : n->finish);
	h = mix(mix(h, n->init), g->tensor.at[n->out].dtype);
	for (unsigned k = 0; k < n->npar; k++)
		h = mix(mix(h, g->tensor.at[n->out].extent[k]), n->target[k]);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++)
		h = mix(mix(h, n->axis[k].lo), n->axis[k].hi);
	return h;
}

static bool
same_axes(const Node *a, const Node *b)
{
	for (unsigned k = a->npar; k < (unsigned)a->npar + a->nred; k++) {
		const Axis *x = &a->axis[k], *y = &b->axis[k];
		if (x->lo != y->lo || x->hi != y->hi || x->clamp != y->clamp || x->cut != y->cut)
			return false;
	}
	return true;
}

static bool
same_node(const Graph *g, const Node *a, const Node *b)
{
	const Tensor *x = &g->tensor.at[a->out], *y = &g->tensor.at[b->out];
	return a->npar == b->npar && a->nred == b->nred && a->monoid == b->monoid && a->guard == b->guard &&
	       a->body == b->body && (a->finish == b->finish || BUG(cse_ignores_finish)) &&
	       a->scatter == b->scatter && a->init == b->init &&
	       memcmp(a->target, b->target, sizeof a->target) == 0 &&
	       memcmp(a->target_access, b->target_access, sizeof a->target_access) == 0 && x->dtype == y->dtype &&
	       memcmp(x->extent, y->extent, x->rank * sizeof *x->extent) == 0 && same_axes(a, b);
}

/* a || b, where 0 is true. */
static ExprId
either(Graph *g, ExprId a, ExprId b)
{
	return a == b ? a : a && b ? expr_binary(g, OP_OR, a, b) : 0;
}

/* Whether a node may be asked for wherever `more` holds too. */
static bool
may_widen(const Graph *g, const Node *n, ExprId more)
{
	return !n->domain || n->domain == more || !expr_reads_from(g, more, n->out);
}

/* Asked for nowhere: replaced before. */
static bool
is_retired(const Graph *g, const Node *n)
{
	const Expr *p = n->domain ? expr_get(g, n->domain) : NULL;
	return p && p->op == OP_CONST && !p->imm.i;
}

typedef struct {
	uint32_t *slot; /* 1 + node */
	uint32_t nslot;
} Table;

/* The node before i that equals it, or i, which is put into the table. */
static uint32_t
find_node(const Graph *g, Table *t, uint32_t i)
{
	uint32_t s = hash_node(g, &g->node.at[i]) & (t->nslot - 1);
	for (; t->slot[s]; s = (s + 1) & (t->nslot - 1))
		if (same_node(g, &g->node.at[t->slot[s] - 1], &g->node.at[i]))
			return t->slot[s] - 1;
	t->slot[s] = i + 1;
	return i;
}

uint32_t
pass_cse(Graph *g, PassCtx *cx)
{
	uint32_t done = 0;
	TensorId *to = ARENA_ARRAY(cx->scratch, TensorId, g->tensor.n);
	Table t = {.nslot = 64};
	while (t.nslot < 2 * g->node.n)
		t.nslot *= 2;
	t.slot = ARENA_ARRAY(cx->scratch, uint32_t, t.nslot);
	for (TensorId k = 0; k < g->tensor.n; k++)
		to[k] = k;
	for (uint32_t i = 0; i < g->node.n; i++) {
		if (done)
			node_retarget(g, i, to);
		if (g->node.at[i].recur || is_retired(g, &g->node.at[i]))
			continue;
		uint32_t first = find_node(g, &t, i);
		if (first == i || !may_widen(g, &g->node.at[first], g->node.at[i].domain) || !spend(cx))
			continue;
		g->node.at[first].domain = either(g, g->node.at[first].domain, g->node.at[i].domain);
		g->node.at[first].reports |= g->node.at[i].reports;
		g->node.at[i].reports = false;
		g->node.at[i].domain = expr_int(g, DT_BOOL, 0);
		to[g->node.at[i].out] = g->node.at[first].out;
		done++;
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		g->result.at[k].tensor = to[g->result.at[k].tensor];
	return done;
}
