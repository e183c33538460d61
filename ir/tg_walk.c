/* tg_walk.c: walks over expressions: visiting and rewriting.
 *
 * Expressions may be deep, so a walk keeps its own stack; shared parts are met once, by a memo over
 * expression ids. Memo and stack stay with the graph and serve the next walk: a stamp tells this
 * walk's entries from older ones. */
#include <string.h>

#include "ir/tg_walk.h"

struct ExprMemo {
	ExprMemo *next;
	uint32_t *stamp, now, cap;
	ExprId *to;
	VEC(ExprId) stack;
};

static ExprMemo *
memo_take(const Graph *g, ExprId most)
{
	ExprMemo *m = g->memos->free;
	if (m)
		g->memos->free = m->next;
	else
		m = ARENA_NEW(g->arena, ExprMemo);
	if (most >= m->cap) {
		m->cap = most < 256 ? 512 : most * 2;
		m->stamp = ARENA_ARRAY(g->arena, uint32_t, m->cap);
		m->to = ARENA_ARRAY(g->arena, ExprId, m->cap);
		m->now = 0;
	}
	if (++m->now == 0) {
		memset(m->stamp, 0, m->cap * sizeof *m->stamp);
		m->now = 1;
	}
	m->stack.n = 0;
	return m;
}

static void
memo_give(const Graph *g, ExprMemo *m)
{
	m->next = g->memos->free;
	g->memos->free = m;
}

static ExprId
memo_get(const ExprMemo *m, ExprId e)
{
	return m->stamp[e] == m->now ? m->to[e] : 0;
}

static void
memo_put(ExprMemo *m, ExprId e, ExprId to)
{
	m->stamp[e] = m->now;
	m->to[e] = to;
}

/* Pushes the operands of e that were not met; true when there are none. */
static bool
push_operands(const Graph *g, ExprMemo *m, ExprId e)
{
	const Expr *p = expr_get(g, e);
	bool ready = true;
	for (unsigned k = p->narg; k-- > 0;) {
		ExprId operand = g->arg.at[p->arg + k];
		if (memo_get(m, operand))
			continue;
		vec_push(g->arena, &m->stack, operand);
		ready = false;
	}
	return ready;
}

void
expr_walk(const Graph *g, Arena *scratch, ExprId e, void (*visit)(void *user, ExprId e), void *user)
{
	(void)scratch;
	if (!e)
		return;
	ExprMemo *m = memo_take(g, e);
	vec_push(g->arena, &m->stack, e);
	while (m->stack.n) {
		ExprId x = m->stack.at[m->stack.n - 1];
		if (memo_get(m, x)) {
			m->stack.n--;
		} else if (push_operands(g, m, x)) {
			m->stack.n--;
			memo_put(m, x, x);
			visit(user, x);
		}
	}
	memo_give(g, m);
}

typedef struct {
	const Graph *g;
	TensorId from;
	bool found;
} ReadsFrom;

static void
visit_read(void *user, ExprId e)
{
	ReadsFrom *r = user;
	const Expr *p = expr_get(r->g, e);
	r->found |= p->op == OP_READ && p->ref >= r->from;
}

bool
expr_reads_from(const Graph *g, ExprId e, TensorId t)
{
	ReadsFrom r = {g, t, false};
	expr_walk(g, g->arena, e, visit_read, &r);
	return r.found;
}

static bool
is_leaf(Op op)
{
	return op == OP_AXIS || op == OP_IVAR || op == OP_DIM || op == OP_READ || op == OP_ACC || op == OP_TOUCHED;
}

static ExprId
rewrite_one(Graph *g, const ExprMemo *m, ExprId e, ExprLeafFn *leaf, void *user)
{
	Expr p = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES];
	bool changed = false;
	for (unsigned k = 0; k < p.narg; k++) {
		ExprId operand = g->arg.at[p.arg + k];
		arg[k] = memo_get(m, operand);
		changed |= arg[k] != operand;
	}
	if (changed) {
		p.arg = 0;
		e = expr_intern(g, p, arg);
	}
	return is_leaf((Op)p.op) ? leaf(user, g, e) : e;
}

ExprId
expr_rewrite(Graph *g, ExprId e, ExprLeafFn *leaf, void *user)
{
	if (!e)
		return 0;
	ExprMemo *m = memo_take(g, e);
	vec_push(g->arena, &m->stack, e);
	while (m->stack.n) {
		ExprId x = m->stack.at[m->stack.n - 1];
		if (memo_get(m, x)) {
			m->stack.n--;
		} else if (push_operands(g, m, x)) {
			m->stack.n--;
			memo_put(m, x, rewrite_one(g, m, x, leaf, user));
		}
	}
	ExprId to = memo_get(m, e);
	memo_give(g, m);
	return to;
}

typedef struct {
	const ExprId *sub;
	unsigned nsub;
} SubstAxes;

static ExprId
subst_leaf(void *user, Graph *g, ExprId e)
{
	const SubstAxes *s = user;
	const Expr *p = expr_get(g, e);
	return p->op == OP_AXIS && p->ref < s->nsub && s->sub[p->ref] ? s->sub[p->ref] : e;
}

ExprId
expr_subst_axes(Graph *g, ExprId e, const ExprId *sub, unsigned nsub)
{
	SubstAxes s = {sub, nsub};
	return expr_rewrite(g, e, subst_leaf, &s);
}

ExprId
expr_at_read(Graph *g, ExprId e, ExprId read)
{
	const Expr p = *expr_get(g, read);
	ExprId sub[TG_MAX_RANK];
	for (unsigned k = 0; k < p.narg; k++)
		sub[k] = expr_arg(g, read, k);
	return expr_subst_axes(g, e, sub, p.narg);
}
