/* sema_finish.c: the graph as the passes want it: only nodes that results or checks need, in
 * topological order, the members of a recurrence together and in the order of one step. */
#include "frontend/sema.h"

#include <string.h>

typedef struct {
	Graph *g;
	Arena *arena;
	uint8_t *state;      /* by TensorId: 0 new, 1 open, 2 placed */
	TensorId *moved;     /* old id -> new id */
	VEC(TensorId) order; /* old ids of nodes, in their new order */
	VEC(TensorId) stack;
	TensorId self;
	bool ready;
} Finish;

static void
visit_read(void *user, ExprId e)
{
	Finish *f = user;
	const Expr *p = expr_get(f->g, e);
	if (p->op != OP_READ || f->g->tensor.at[p->ref].kind != TENSOR_NODE || f->state[p->ref] == 2)
		return;
	const Node *self = tensor_node(f->g, f->self), *other = tensor_node(f->g, p->ref);
	if (self->recur && self->recur == other->recur)
		return;
	vec_push(f->arena, &f->stack, p->ref);
	f->ready = false;
}

static void
visit_part(Finish *f, ExprId e)
{
	expr_walk(f->g, f->arena, e, visit_read, f);
}

static void
visit_node(Finish *f, TensorId t)
{
	f->self = t;
	const Node *n = tensor_node(f->g, t);
	const Tensor *x = &f->g->tensor.at[t];
	visit_part(f, n->domain);
	visit_part(f, n->guard);
	visit_part(f, n->body);
	visit_part(f, n->finish);
	visit_part(f, n->init);
	for (unsigned a = 0; a < x->rank; a++)
		visit_part(f, x->extent[a]);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		visit_part(f, n->axis[a].lo);
		visit_part(f, n->axis[a].hi);
	}
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		visit_part(f, n->target[a]);
}

/* Places t, or the whole recurrence it belongs to, once everything it reads is placed. */
static void
place(Finish *f, TensorId t)
{
	RecurId r = tensor_node(f->g, t)->recur;
	f->ready = true;
	if (!r) {
		visit_node(f, t);
	} else {
		for (uint32_t i = 0; i < f->g->recur.at[r].member.n; i++)
			visit_node(f, f->g->recur.at[r].member.at[i]);
	}
	if (!f->ready)
		return;
	for (uint32_t i = 0; r && i < f->g->recur.at[r].member.n; i++) {
		TensorId m = f->g->recur.at[r].member.at[i];
		vec_push(f->arena, &f->order, m);
		f->state[m] = 2;
	}
	if (!r) {
		vec_push(f->arena, &f->order, t);
		f->state[t] = 2;
	}
}

static ExprId
move_read(void *user, Graph *g, ExprId e)
{
	const Finish *f = user;
	Expr p = *expr_get(g, e);
	if (p.op != OP_READ || f->moved[p.ref] == p.ref)
		return e;
	ExprId arg[TG_MAX_AXES];
	memcpy(arg, g->arg.at + p.arg, p.narg * sizeof *arg);
	return expr_make(g, OP_READ, (DType)p.dtype, f->moved[p.ref], p.access, arg, p.narg);
}

static void
move_expr(Finish *f, ExprId *e)
{
	*e = expr_rewrite(f->g, *e, move_read, f);
}

static void
move_node(Finish *f, Node *n, Tensor *x)
{
	move_expr(f, &n->domain);
	move_expr(f, &n->guard);
	move_expr(f, &n->body);
	move_expr(f, &n->finish);
	move_expr(f, &n->init);
	for (unsigned a = 0; a < x->rank; a++)
		move_expr(f, &x->extent[a]);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		move_expr(f, &n->axis[a].lo);
		move_expr(f, &n->axis[a].hi);
	}
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		move_expr(f, &n->target[a]);
	n->out = f->moved[n->out];
}

static void
renumber(Finish *f, uint32_t ninput)
{
	Graph *g = f->g;
	for (TensorId t = 0; t < g->tensor.n; t++)
		f->moved[t] = t;
	bool same = true;
	for (uint32_t i = 0; i < f->order.n; i++) {
		f->moved[f->order.at[i]] = ninput + i;
		same &= f->order.at[i] == ninput + i;
	}
	Tensor *tensor = ARENA_ARRAY(f->arena, Tensor, ninput + f->order.n);
	Node *node = ARENA_ARRAY(f->arena, Node, f->order.n + 1);
	memcpy(tensor, g->tensor.at, ninput * sizeof *tensor);
	for (uint32_t i = 0; i < f->order.n; i++) {
		tensor[ninput + i] = g->tensor.at[f->order.at[i]];
		node[i] = *tensor_node(g, f->order.at[i]);
		tensor[ninput + i].node = i;
		if (!same)
			move_node(f, &node[i], &tensor[ninput + i]);
	}
	for (uint32_t r = 1; r < g->recur.n; r++)
		for (uint32_t i = 0; i < g->recur.at[r].member.n; i++)
			g->recur.at[r].member.at[i] = f->moved[g->recur.at[r].member.at[i]];
	for (uint32_t i = 0; i < g->result.n; i++)
		g->result.at[i].tensor = f->moved[g->result.at[i].tensor];
	g->tensor.at = tensor;
	g->tensor.n = g->tensor.cap = ninput + f->order.n;
	g->node.at = node;
	g->node.n = f->order.n;
	g->node.cap = f->order.n + 1;
}

/* A recurrence none of whose members is placed is gone; the others keep their order. */
static void
drop_recurs(Finish *f)
{
	Graph *g = f->g;
	uint32_t n = 1;
	for (uint32_t r = 1; r < g->recur.n; r++) {
		if (f->state[g->recur.at[r].member.at[0]] != 2)
			continue;
		for (uint32_t i = 0; i < g->recur.at[r].member.n; i++)
			tensor_node(g, g->recur.at[r].member.at[i])->recur = n;
		g->recur.at[n++] = g->recur.at[r];
	}
	g->recur.n = n;
}

void
graph_finish(Sema *s)
{
	Graph *g = s->g;
	Finish f = {.g = g, .arena = s->arena};
	uint32_t ninput = 1;
	while (ninput < g->tensor.n && g->tensor.at[ninput].kind != TENSOR_NODE)
		ninput++;
	f.state = ARENA_ARRAY(s->arena, uint8_t, g->tensor.n);
	f.moved = ARENA_ARRAY(s->arena, TensorId, g->tensor.n);
	for (uint32_t i = 0; i < g->result.n; i++) {
		if (g->tensor.at[g->result.at[i].tensor].kind != TENSOR_NODE)
			continue;
		vec_push(s->arena, &f.stack, g->result.at[i].tensor);
		while (f.stack.n) {
			TensorId t = f.stack.at[f.stack.n - 1];
			if (f.state[t] != 2)
				place(&f, t);
			if (f.state[t] == 2)
				f.stack.n = f.stack.n && f.stack.at[f.stack.n - 1] == t ? f.stack.n - 1 : f.stack.n;
		}
	}
	drop_recurs(&f);
	renumber(&f, ninput);
}
