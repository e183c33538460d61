/* expr_map.c: see expr_map.h. */
#include "passes/expr_map.h"

#include <string.h>

void
node_each_root(Graph *g, Node *n, RootFn *f, void *user)
{
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		f(user, g, &n->axis[k].lo);
		f(user, g, &n->axis[k].hi);
		f(user, g, &n->axis[k].clamp);
	}
	f(user, g, &n->domain);
	f(user, g, &n->guard);
	f(user, g, &n->body);
	f(user, g, &n->finish);
	for (unsigned a = 0; a < TG_MAX_RANK; a++)
		f(user, g, &n->target[a]);
	f(user, g, &n->init);
	f(user, g, &n->factor);
	f(user, g, &n->expanded);
	f(user, g, &n->when);
}

void
node_walk(const Graph *g, Arena *scratch, const Node *n, void (*visit)(void *user, ExprId e), void *user)
{
	const ExprId single[] = {n->domain, n->guard, n->body, n->finish, n->init, n->factor, n->expanded, n->when};
	for (unsigned k = 0; k < sizeof single / sizeof *single; k++)
		expr_walk(g, scratch, single[k], visit, user);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		expr_walk(g, scratch, n->axis[a].lo, visit, user);
		expr_walk(g, scratch, n->axis[a].hi, visit, user);
		expr_walk(g, scratch, n->axis[a].clamp, visit, user);
	}
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		expr_walk(g, scratch, n->target[a], visit, user);
}

typedef struct {
	const Graph *g;
	TensorId t;
	void (*visit)(void *user, ExprId e);
	void *user;
} Reads;

static void
visit_read(void *user, ExprId e)
{
	const Reads *r = user;
	const Expr *p = expr_get(r->g, e);
	if (p->op == OP_READ && p->ref == r->t)
		r->visit(r->user, e);
}

void
node_each_read(const Graph *g, Arena *scratch, const Node *n, TensorId t, void (*visit)(void *user, ExprId e), void *user)
{
	Reads r = {g, t, visit, user};
	node_walk(g, scratch, n, visit_read, &r);
}

static void
found_read(void *user, ExprId e)
{
	(void)e;
	*(bool *)user = true;
}

bool
node_reads(const Graph *g, Arena *scratch, const Node *n, TensorId t)
{
	bool found = false;
	node_each_read(g, scratch, n, t, found_read, &found);
	return found;
}

/* Tables may grow while f runs, so nothing is held across a call but indices. */
typedef struct {
	RootFn *f;
	void *user;
} Forward;

static void
forward(void *user, Graph *g, ExprId *root)
{
	Forward *w = user;
	ExprId e = *root;
	if (e)
		w->f(w->user, g, &e);
	*root = e;
}

void
graph_each_root(Graph *g, RootFn *f, void *user)
{
	Forward w = {f, user};
	for (TensorId t = 1; t < g->tensor.n; t++)
		for (unsigned a = 0; a < g->tensor.at[t].rank; a++)
			forward(&w, g, &g->tensor.at[t].extent[a]);
	for (uint32_t k = 0; k < g->check.n; k++)
		forward(&w, g, &g->check.at[k].cond);
	for (uint32_t i = 0; i < g->node.n; i++)
		node_each_root(g, &g->node.at[i], forward, &w);
}

/* e with each operand replaced by what it became. */
static ExprId
rebuild(Graph *g, ExprId e, const ExprId *to)
{
	Expr p = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES];
	bool changed = false;
	for (unsigned k = 0; k < p.narg; k++) {
		arg[k] = to[g->arg.at[p.arg + k]];
		changed |= arg[k] != g->arg.at[p.arg + k];
	}
	return changed ? expr_make(g, (Op)p.op, (DType)p.dtype, p.ref, p.access, arg, p.narg) : e;
}

typedef struct {
	ExprId *to; /* by ExprId; while marking: not 0 is wanted */
} Map;

static void
mark_root(void *user, Graph *g, ExprId *root)
{
	(void)g;
	((Map *)user)->to[*root] = 1;
}

static void
set_root(void *user, Graph *g, ExprId *root)
{
	(void)g;
	*root = ((Map *)user)->to[*root];
}

/* Operands have smaller ids: what is wanted is found downwards, rewritten upwards. */
static void
run_map(Graph *g, Map *m, uint32_t n, ExprStepFn *step, void *user)
{
	for (ExprId e = n; e-- > 1;)
		for (unsigned k = 0; m->to[e] && k < expr_get(g, e)->narg; k++)
			m->to[expr_arg(g, e, k)] = 1;
	for (ExprId e = 1; e < n; e++)
		if (m->to[e])
			m->to[e] = step(user, g, rebuild(g, e, m->to));
}

void
graph_map(Graph *g, Arena *scratch, ExprStepFn *step, void *user)
{
	uint32_t n = g->expr.n;
	Map m = {ARENA_ARRAY(scratch, ExprId, n)};
	graph_each_root(g, mark_root, &m);
	run_map(g, &m, n, step, user);
	graph_each_root(g, set_root, &m);
}

/* What one expression visits and what it becomes: a hash table of its own size, as there may be many
 * expressions in one large pool. */
typedef struct {
	VEC(ExprId) order;
	Arena *scratch;
	ExprId *from, *to;
	uint32_t mask;
} Listing;

static void
list_expr(void *user, ExprId e)
{
	Listing *l = user;
	vec_push(l->scratch, &l->order, e);
}

static uint32_t
slot_of(const Listing *l, ExprId e)
{
	uint32_t s = e * 2654435761u & l->mask;
	while (l->from[s] && l->from[s] != e)
		s = (s + 1) & l->mask;
	return s;
}

static ExprId
rebuild_listed(Graph *g, ExprId e, const Listing *l)
{
	Expr p = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES];
	bool changed = false;
	for (unsigned k = 0; k < p.narg; k++) {
		ExprId x = g->arg.at[p.arg + k];
		arg[k] = l->to[slot_of(l, x)];
		changed |= arg[k] != x;
	}
	return changed ? expr_make(g, (Op)p.op, (DType)p.dtype, p.ref, p.access, arg, p.narg) : e;
}

ExprId
expr_map(Graph *g, Arena *scratch, ExprId e, ExprStepFn *step, void *user)
{
	if (!e)
		return 0;
	Listing l = {.scratch = scratch, .mask = 15};
	expr_walk(g, scratch, e, list_expr, &l);
	while (l.mask < 2 * l.order.n)
		l.mask = l.mask * 2 + 1;
	l.from = ARENA_ARRAY(scratch, ExprId, l.mask + 1);
	l.to = ARENA_ARRAY(scratch, ExprId, l.mask + 1);
	for (uint32_t k = 0; k < l.order.n; k++) {
		ExprId x = l.order.at[k], to = step(user, g, rebuild_listed(g, x, &l));
		uint32_t s = slot_of(&l, x);
		l.from[s] = x;
		l.to[s] = to;
	}
	return l.to[slot_of(&l, e)];
}

static ExprId
replace(void *user, Graph *g, ExprId e)
{
	const ExprId *pair = user;
	(void)g;
	return e == pair[0] ? pair[1] : e;
}

ExprId
expr_replace(Graph *g, Arena *scratch, ExprId e, ExprId from, ExprId to)
{
	ExprId pair[2] = {from, to};
	return expr_map(g, scratch, e, replace, pair);
}

typedef struct {
	ExprId part;
	bool met;
} Search;

static void
compare(void *user, ExprId e)
{
	Search *s = user;
	s->met |= e == s->part;
}

bool
expr_contains(const Graph *g, Arena *scratch, ExprId e, ExprId part)
{
	Search s = {part, false};
	if (e >= part)
		expr_walk(g, scratch, e, compare, &s);
	return s.met;
}

typedef struct {
	const Graph *g;
	const bool *faulty;
	bool fault, index, ivar;
	uint32_t axes;
} Facet;

static bool
is_index_op(const Expr *p)
{
	switch (p->op) {
	case OP_CONST: case OP_AXIS: case OP_IVAR: case OP_DIM: case OP_ADD: case OP_SUB: case OP_MUL:
	case OP_NEG: case OP_IDIV: case OP_IMOD: case OP_MIN: case OP_MAX:
		return p->dtype == DT_I64;
	}
	return false;
}

static void
look(void *user, ExprId e)
{
	Facet *f = user;
	const Expr *p = expr_get(f->g, e);
	if (p->op == OP_READ)
		f->fault |= p->access != 0 || (f->faulty && f->faulty[p->ref]);
	if (p->op == OP_AXIS && p->ref < 32)
		f->axes |= 1u << p->ref;
	f->index &= is_index_op(p);
	f->ivar |= p->op == OP_IVAR;
}

static Facet
facet(const Graph *g, Arena *scratch, const bool *faulty, ExprId e)
{
	Facet f = {.g = g, .faulty = faulty, .index = true};
	if (e && expr_get(g, e)->narg == 0)
		look(&f, e);
	else if (e)
		expr_walk(g, scratch, e, look, &f);
	return f;
}

bool
expr_can_fault(const Graph *g, Arena *scratch, const bool *faulty, ExprId e)
{
	return facet(g, scratch, faulty, e).fault;
}

uint32_t
expr_axes(const Graph *g, Arena *scratch, ExprId e)
{
	return facet(g, scratch, NULL, e).axes;
}

typedef struct {
	const Graph *g;
	const bool *faulty;
	const ExprId *extent; /* by axis */
	bool yes;
} Whole;

static void
look_whole(void *user, ExprId e)
{
	Whole *w = user;
	const Expr *p = expr_get(w->g, e);
	w->yes &= p->op != OP_ACC && p->op != OP_TOUCHED && p->op != OP_IVAR;
	if (p->op != OP_READ)
		return;
	w->yes &= !p->access && !w->faulty[p->ref];
	for (unsigned k = 0; k < p->narg && w->yes; k++) {
		const Expr *sub = expr_get(w->g, expr_arg(w->g, e, k));
		w->yes = sub->op == OP_AXIS && w->extent[sub->ref] == w->g->tensor.at[p->ref].extent[k];
	}
}

bool
expr_is_whole(const Graph *g, Arena *scratch, const bool *faulty, ExprId e, const ExprId *extent)
{
	Whole w = {g, faulty, extent, true};
	expr_walk(g, scratch, e, look_whole, &w);
	return w.yes;
}

bool
expr_is_index(const Graph *g, Arena *scratch, ExprId e)
{
	return facet(g, scratch, NULL, e).index;
}

bool
expr_is_of_launch(const Graph *g, Arena *scratch, ExprId e)
{
	Facet f = facet(g, scratch, NULL, e);
	return f.index && !f.axes && !f.ivar;
}

unsigned
expr_multiple(const Graph *g, ExprId e, unsigned most)
{
	const Expr *p = expr_get(g, e);
	if (p->dtype != DT_I64)
		return 1;
	if (p->op == OP_CONST) {
		unsigned n = most;
		while (p->imm.i % (int64_t)n)
			n /= 2;
		return n;
	}
	if (p->op != OP_ADD && p->op != OP_SUB && p->op != OP_MIN && p->op != OP_MAX && p->op != OP_MUL)
		return 1;
	unsigned a = expr_multiple(g, expr_arg(g, e, 0), most), b = expr_multiple(g, expr_arg(g, e, 1), most);
	if (p->op == OP_MUL)
		return a > most / b ? most : a * b;
	return a < b ? a : b;
}
