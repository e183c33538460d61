/* sema_recur.c: recurrences. Definitions that read one another, and the reductions between them, form
 * one group. Some of its axes, in one order and one direction each, must make every read within the
 * group earlier; on those axes a read is at the index plus a constant.
 *
 * An axis of the first member is followed through the reads to an axis of every node of the group.
 * Axes are then taken greedily: any axis along which no open read looks forward, and some look back,
 * in some direction; what looks strictly back is settled. This finds an order when there is one. What
 * is open at the end happens within one step and must be acyclic. */
#include "frontend/sema.h"

#include <string.h>

typedef struct {
	uint32_t from, to;   /* group positions: `from` reads `to` */
	ExprId read;
	bool settled;
} Edge;

typedef struct {
	Sema *s;
	TensorId first;
	uint32_t ntensor;
	uint32_t *position;  /* by tensor - first: 1 + position in node, or 0 */
	VEC(TensorId) node;
	VEC(Edge) edge;
	uint32_t from;       /* while scanning */
	bool reaches;
} Group;

static void
node_parts(const Node *n, void (*f)(void *, ExprId), void *user)
{
	f(user, n->domain);
	f(user, n->guard);
	f(user, n->body);
	f(user, n->finish);
	f(user, n->init);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		f(user, n->axis[a].lo);
		f(user, n->axis[a].hi);
	}
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		f(user, n->target[a]);
}

static void
visit_reaches(void *user, ExprId e)
{
	Group *r = user;
	const Expr *p = expr_get(r->s->g, e);
	if (p->op == OP_READ && p->ref >= r->first && p->ref - r->first < r->ntensor && r->position[p->ref - r->first])
		r->reaches = true;
}

static void
part_reaches(void *user, ExprId e)
{
	Group *r = user;
	expr_walk(r->s->g, r->s->arena, e, visit_reaches, r);
}

static void
visit_edge(void *user, ExprId e)
{
	Group *r = user;
	const Expr *p = expr_get(r->s->g, e);
	if (p->op == OP_READ && p->ref >= r->first && p->ref - r->first < r->ntensor && r->position[p->ref - r->first])
		vec_push(r->s->arena, &r->edge, ((Edge){r->from, r->position[p->ref - r->first] - 1, e, false}));
}

static void
part_edges(void *user, ExprId e)
{
	Group *r = user;
	expr_walk(r->s->g, r->s->arena, e, visit_edge, r);
}

static void
add_position(Group *r, TensorId t)
{
	vec_push(r->s->arena, &r->node, t);
	r->position[t - r->first] = r->node.n;
}

/* The members, and every node made for them that reads the group. */
static void
collect(Group *r, Def **m, uint32_t n)
{
	Graph *g = r->s->g;
	for (uint32_t i = 0; i < n; i++)
		if (m[i]->tensor)
			add_position(r, m[i]->tensor);
	for (bool more = true; more;) {
		more = false;
		for (TensorId t = r->first; t < g->tensor.n; t++) {
			if (r->position[t - r->first])
				continue;
			r->reaches = false;
			node_parts(tensor_node(g, t), part_reaches, r);
			if (r->reaches) {
				add_position(r, t);
				more = true;
			}
		}
	}
	for (r->from = 0; r->from < r->node.n; r->from++)
		node_parts(tensor_node(g, r->node.at[r->from]), part_edges, r);
}

/* Drops nodes of the group that no member needs, and their reads. */
static void
prune(Group *r, uint32_t nmember)
{
	uint8_t *needed = ARENA_ARRAY(r->s->arena, uint8_t, r->node.n);
	memset(needed, 1, nmember);
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < r->edge.n; i++)
			if (needed[r->edge.at[i].from] && !needed[r->edge.at[i].to]) {
				needed[r->edge.at[i].to] = 1;
				more = true;
			}
	}
	uint32_t n = 0, *moved = ARENA_ARRAY(r->s->arena, uint32_t, r->node.n);
	for (uint32_t i = 0; i < r->node.n; i++)
		if (needed[i]) {
			moved[i] = n;
			r->node.at[n++] = r->node.at[i];
		}
	r->node.n = n;
	n = 0;
	for (uint32_t i = 0; i < r->edge.n; i++)
		if (needed[r->edge.at[i].from]) {
			Edge e = r->edge.at[i];
			e.from = moved[e.from];
			e.to = moved[e.to];
			r->edge.at[n++] = e;
		}
	r->edge.n = n;
}

/* The axis of the reader and the constant if the subscript is axis + constant; -1 if it is not. */
static int
shift_of(Sema *s, const Node *reader, ExprId sub, int64_t *delta)
{
	int64_t coef[TG_MAX_AXES];
	ExprId rest;
	int axis = -1;
	if (!index_affine(s->g, sub, reader->npar, coef, &rest))
		return -1;
	for (unsigned a = 0; a < reader->npar; a++)
		if (coef[a] != 0) {
			if (coef[a] != 1 || axis >= 0)
				return -1;
			axis = (int)a;
		}
	const Expr *r = rest ? expr_get(s->g, rest) : NULL;
	if (r && r->op != OP_CONST)
		return -1;
	*delta = r ? r->imm.i : 0;
	return axis;
}

/* Follows axis a of the first member to every node; false where some read is not axis + constant. */
static bool
follow(Group *r, unsigned a, int *axis_of)
{
	Sema *s = r->s;
	for (uint32_t i = 0; i < r->node.n; i++)
		axis_of[i] = -1;
	axis_of[0] = (int)a;
	for (bool more = true; more;) {
		more = false;
		for (uint32_t i = 0; i < r->edge.n; i++) {
			const Edge *e = &r->edge.at[i];
			const Node *reader = tensor_node(s->g, r->node.at[e->from]);
			unsigned rank = tensor_node(s->g, r->node.at[e->to])->npar;
			int64_t delta;
			if (axis_of[e->to] >= 0 && axis_of[e->from] < 0) {
				axis_of[e->from] = shift_of(s, reader, expr_arg(s->g, e->read, (unsigned)axis_of[e->to]), &delta);
				if (axis_of[e->from] < 0)
					return false;
				more = true;
			} else if (axis_of[e->from] >= 0 && axis_of[e->to] < 0) {
				for (unsigned b = 0; b < rank && axis_of[e->to] < 0; b++)
					if (shift_of(s, reader, expr_arg(s->g, e->read, b), &delta) == axis_of[e->from])
						axis_of[e->to] = (int)b;
				if (axis_of[e->to] < 0)
					return false;
				more = true;
			}
		}
	}
	for (uint32_t i = 0; i < r->node.n; i++)
		if (axis_of[i] < 0)
			return false;
	return true;
}

static bool
edge_delta(Group *r, const Edge *e, const int *axis_of, int64_t *delta)
{
	const Node *reader = tensor_node(r->s->g, r->node.at[e->from]);
	ExprId sub = expr_arg(r->s->g, e->read, (unsigned)axis_of[e->to]);
	return shift_of(r->s, reader, sub, delta) == axis_of[e->from];
}

/* The direction in which every open read looks back or stays, and one looks back; 0 if none. */
static int
direction(Group *r, const int *axis_of)
{
	bool up = true, down = true, back = false;
	for (uint32_t i = 0; i < r->edge.n; i++) {
		int64_t delta;
		if (!edge_delta(r, &r->edge.at[i], axis_of, &delta))
			return 0;
		if (r->edge.at[i].settled)
			continue;
		up &= delta <= 0;
		down &= delta >= 0;
		back |= delta != 0;
	}
	return !back ? 0 : up ? 1 : down ? -1 : 0;
}

static void
settle(Group *r, const int *axis_of)
{
	for (uint32_t i = 0; i < r->edge.n; i++) {
		int64_t delta;
		if (edge_delta(r, &r->edge.at[i], axis_of, &delta) && delta != 0)
			r->edge.at[i].settled = true;
	}
}

/* The nodes in an order in which the open reads go to earlier ones; false if there is none. */
static bool
step_order(Group *r, uint32_t *order)
{
	uint8_t *placed = ARENA_ARRAY(r->s->arena, uint8_t, r->node.n);
	for (uint32_t n = 0; n < r->node.n;) {
		uint32_t before = n;
		for (uint32_t v = 0; v < r->node.n; v++) {
			bool ready = !placed[v];
			for (uint32_t i = 0; ready && i < r->edge.n; i++)
				ready = r->edge.at[i].settled || r->edge.at[i].from != v || placed[r->edge.at[i].to];
			if (ready) {
				placed[v] = 1;
				order[n++] = v;
			}
		}
		if (n == before)
			return false;
	}
	return true;
}

static AstId
find_read(const Sema *s, AstId id, Def **m, uint32_t n)
{
	if (!id)
		return 0;
	const AstNode *x = ast_get(s->ast, id);
	for (uint32_t i = 0; i < n && (x->kind == AST_READ || x->kind == AST_NAME); i++)
		if (m[i]->entity->name == x->name)
			return id;
	for (unsigned k = 0; k < x->nkid; k++) {
		AstId f = find_read(s, ast_kid(s->ast, id, k), m, n);
		if (f)
			return f;
	}
	return 0;
}

static bool
refuse(Group *r, Def **m, uint32_t n)
{
	Sema *s = r->s;
	Def *d = m[0];
	for (uint32_t i = 0; i < r->edge.n; i++)
		for (uint32_t k = 0; k < n && !r->edge.at[i].settled; k++)
			if (r->node.at[r->edge.at[i].from] == m[k]->tensor) {
				d = m[k];
				i = r->edge.n - 1;
				break;
			}
	AstId read = find_read(s, ast_kid(s->ast, d->stmt, 1), m, n);
	Span at = ast_get(s->ast, read ? read : d->stmt)->at;
	Diag *g = diag_add(s->diags, DIAG_E0603, at, "`%s` reads `%s` where it may not be known yet",
	                   name_text(s->names, d->entity->name), source_text(s, at));
	g->label = "this read is not earlier along any axis";
	g->help = "a recurrence reads itself at an index plus a constant, such as `h?[t - 1, …] ?? 0`, "
	          "so that some order of its axes makes every read earlier";
	return false;
}

static bool
extents_equal(Group *r, const int *axis_of, Def **m)
{
	Sema *s = r->s;
	ExprId e = s->g->tensor.at[r->node.at[0]].extent[axis_of[0]];
	for (uint32_t i = 1; i < r->node.n; i++) {
		ExprId x = s->g->tensor.at[r->node.at[i]].extent[axis_of[i]];
		if (x != e && !prove(s->facts, expr_binary(s->g, OP_EQ, x, e))) {
			diag_add(s->diags, DIAG_E0604, m[0]->entity->at,
			         "the definitions of one recurrence have different extents along the axis it runs over");
			return false;
		}
	}
	return true;
}

bool
recur_build(Sema *s, Def **m, uint32_t n, uint32_t first)
{
	Graph *g = s->g;
	Group r = {.s = s, .first = first, .ntensor = g->tensor.n - first};
	r.position = ARENA_ARRAY(s->arena, uint32_t, r.ntensor);
	collect(&r, m, n);
	uint32_t nmember = 0;
	for (uint32_t i = 0; i < n; i++)
		nmember += m[i]->tensor != 0;
	if (!nmember)
		return true;
	prune(&r, nmember);
	Recur rec = {0};
	int *axis_of = ARENA_ARRAY(s->arena, int, r.node.n);
	unsigned rank = tensor_node(g, r.node.at[0])->npar;
	uint32_t *order = ARENA_ARRAY(s->arena, uint32_t, r.node.n);
	uint8_t (*axis)[TG_MAX_SEQ] = arena_array(s->arena, sizeof *axis, r.node.n);
	bool used[TG_MAX_RANK] = {false};
	while (!step_order(&r, order)) {
		bool took = false;
		for (unsigned a = 0; a < rank && !took && rec.nseq < TG_MAX_SEQ; a++) {
			int dir = used[a] || !follow(&r, a, axis_of) ? 0 : direction(&r, axis_of);
			if (!dir)
				continue;
			if (!extents_equal(&r, axis_of, m))
				return false;
			settle(&r, axis_of);
			rec.dir[rec.nseq] = (int8_t)dir;
			for (uint32_t i = 0; i < r.node.n; i++)
				axis[i][rec.nseq] = (uint8_t)axis_of[i];
			rec.nseq++;
			used[a] = took = true;
		}
		if (!took)
			return refuse(&r, m, n);
	}
	if (rec.nseq == 0)
		return true; /* no real cycle: the order of the file did not matter */
	vec_push(s->arena, &g->recur, rec);
	RecurId id = g->recur.n - 1;
	for (uint32_t i = 0; i < r.node.n; i++) {
		TensorId t = r.node.at[order[i]];
		vec_push(s->arena, &g->recur.at[id].member, t);
		Node *node = tensor_node(g, t);
		node->recur = id;
		memcpy(node->seq, axis[order[i]], sizeof node->seq);
	}
	return true;
}
