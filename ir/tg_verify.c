/* tg_verify.c: whether a graph is what tg.h says one is. Ids and table entries first, so that the
 * rest may follow them; then tensors, nodes, recurrences, checks, parameters and results. */
#include "ir/tg_verify.h"

#include <string.h>

#include "ir/tg_types.h"

#define NEED(cond, ...)                             \
	do {                                        \
		if (!(cond))                        \
			return verify_fail(x, __VA_ARGS__); \
	} while (0)

static const char *
tensor_text(const Verify *x, TensorId t)
{
	const char *name = name_text(x->g->names, x->g->tensor.at[t].name);
	return arena_text(x->scratch, *name ? "%%%u (%s)" : "%%%u", t, name);
}

static bool
verify_tables(Verify *x)
{
	const Graph *g = x->g;
	x->where = "the graph";
	NEED(g->expr.n && g->tensor.n && g->recur.n && g->dim.n && g->access.n, "a table lacks its entry 0");
	for (DimId d = 1; d < g->dim.n; d++) {
		const Dim *p = &g->dim.at[d];
		x->where = arena_text(x->scratch, "dim %u (%s)", d, name_text(g->names, p->name));
		if (p->fixed)
			continue;
		NEED(p->param >= 0 && (uint32_t)p->param < g->param.n, "found at a parameter that does not exist");
		TensorId t = g->param.at[p->param];
		NEED(t > 0 && t < g->tensor.n, "found at a parameter that does not exist");
		NEED(p->axis >= -1 && p->axis < g->tensor.at[t].rank, "found at an axis that does not exist");
		NEED(p->axis >= 0 || (g->tensor.at[t].kind == TENSOR_SCALAR && dtype_is_int(g->tensor.at[t].dtype)),
		     "found at a parameter that is no integer scalar");
		NEED((p->scale != 0) != (p->turn != 0), p->turn ? "has a scale and a turn" : "has scale 0");
	}
	for (AccessId a = 1; a < g->access.n; a++) {
		x->where = arena_text(x->scratch, "access %u", a);
		NEED(g->access.at[a].kind <= ACCESS_CUT && g->access.at[a].text, "has no kind or text");
	}
	return true;
}

static bool
verify_tensor(Verify *x, TensorId t, bool *nodes_began)
{
	const Graph *g = x->g;
	const Tensor *p = &g->tensor.at[t];
	Place at = {.part = "an extent"};
	x->where = arena_text(x->scratch, "tensor %s", tensor_text(x, t));
	NEED(p->kind > TENSOR_NONE && p->kind <= TENSOR_NODE, "has no kind");
	NEED(p->dtype > DT_NONE && (int)p->dtype < DT_COUNT, "has no type");
	NEED(p->rank <= TG_MAX_RANK, "has rank %u", p->rank);
	NEED(p->kind != TENSOR_SCALAR || p->rank == 0, "a scalar has rank %u", p->rank);
	NEED(p->kind == TENSOR_NODE || !*nodes_began, "a parameter comes after a node");
	if (p->kind == TENSOR_NODE) {
		*nodes_began = true;
		NEED(p->node < g->node.n && g->node.at[p->node].out == t, "is not the output of its node");
	}
	for (unsigned a = 0; a < p->rank; a++)
		if (!verify_expr(x, p->extent[a], DT_I64, &at))
			return false;
	return true;
}

/* --- nodes --- */

static bool
verify_axes(Verify *x, const Node *n, unsigned first)
{
	const Graph *g = x->g;
	for (unsigned k = 0; k < (unsigned)n->npar + n->nred; k++) {
		const Axis *a = &n->axis[k];
		Place lo = {"a lower end", n, first, k, DT_NONE}, hi = {"an upper end", n, first, k, DT_NONE};
		Place clamp = {"a clamp", n, first, k, DT_NONE};
		if (k < n->npar) {
			NEED(!a->lo && !a->hi && !a->clamp && !a->cut, "parallel axis %u has a range", k);
			continue;
		}
		if (!verify_expr(x, a->lo, DT_I64, &lo) || !verify_expr(x, a->hi, DT_I64, &hi) ||
		    (a->clamp && !verify_expr(x, a->clamp, DT_I64, &clamp)))
			return false;
		NEED(!a->cut || a->clamp, "axis %u reports a cut without a clamp", k);
		NEED(!a->cut || (a->cut < g->access.n && g->access.at[a->cut].kind == ACCESS_CUT),
		     "axis %u names an access that is no cut", k);
	}
	return true;
}

static bool
verify_scatter(Verify *x, const Node *n, DType acc)
{
	const Graph *g = x->g;
	unsigned all = (unsigned)n->npar + n->nred;
	Place target = {"a target", n, n->npar, all, DT_NONE}, init = {"init", n, 0, n->npar, DT_NONE};
	if (!n->scatter) {
		for (unsigned a = 0; a < TG_MAX_RANK; a++)
			NEED(!n->target[a] && !n->target_access[a], "has targets without being a scatter");
		NEED(!n->init, "has init without being a scatter");
		return true;
	}
	NEED(n->monoid != MON_NONE && !monoid_info[n->monoid].index, "scatters with a monoid that can't");
	NEED(!n->recur, "a scatter in a recurrence");
	for (unsigned a = 0; a < n->npar; a++) {
		if (!verify_expr(x, n->target[a], DT_I64, &target))
			return false;
		NEED(!n->target_access[a] || (n->target_access[a] < g->access.n &&
		                              g->access.at[n->target_access[a]].kind == ACCESS_SCATTER),
		     "target %u names an access that is no scatter", a);
	}
	return !n->init || verify_expr(x, n->init, acc, &init);
}

static bool
verify_values(Verify *x, const Node *n)
{
	const Graph *g = x->g;
	unsigned all = (unsigned)n->npar + n->nred, first = n->scatter ? n->npar : 0;
	Place domain = {"domain", n, 0, n->npar, DT_NONE}, guard = {"guard", n, first, all, DT_NONE};
	Place body = {"body", n, first, all, DT_NONE}, finish = {"finish", n, 0, n->npar, DT_NONE};
	DType want = g->tensor.at[n->out].dtype;
	if (!verify_axes(x, n, first) || !verify_expr(x, n->body, DT_NONE, &body))
		return false;
	DType t = (DType)expr_get(g, n->body)->dtype, acc = tg_monoid_type(n->monoid, t);
	NEED(tg_monoid_takes(n->monoid, t), "%s of %s", monoid_info[n->monoid].text, dtype_info[t].text);
	if (n->monoid == MON_NONE) {
		NEED(n->nred == 0 && !n->guard && !n->finish, "without a monoid, yet it reduces");
	} else
		finish.acc = acc;
	if ((n->domain && !verify_expr(x, n->domain, DT_BOOL, &domain)) ||
	    (n->guard && !verify_expr(x, n->guard, DT_BOOL, &guard)) ||
	    (n->finish && !verify_expr(x, n->finish, DT_NONE, &finish)))
		return false;
	Place expanded = {"expanded", n, 0, all, DT_NONE}, when = {"when", n, 0, 0, DT_NONE};
	NEED(!n->expanded || (n->monoid == MON_SUM && !n->domain && !n->guard && !n->scatter && !n->recur), "expanded, yet no plain sum");
	if ((n->expanded && !verify_expr(x, n->expanded, t, &expanded)) || (n->when && !verify_expr(x, n->when, DT_I64, &when)))
		return false;
	DType got = n->finish ? (DType)expr_get(g, n->finish)->dtype : acc;
	NEED(got == want, "gives %s, its tensor is %s", dtype_info[got].text, dtype_info[want].text);
	return verify_scatter(x, n, acc);
}

static bool
verify_node(Verify *x, uint32_t i)
{
	const Graph *g = x->g;
	const Node *n = &g->node.at[i];
	x->where = arena_text(x->scratch, "node %u", i);
	NEED(n->out > 0 && n->out < g->tensor.n && g->tensor.at[n->out].kind == TENSOR_NODE &&
	             g->tensor.at[n->out].node == i,
	     "has no tensor of its own");
	x->where = arena_text(x->scratch, "node %s", tensor_text(x, n->out));
	NEED(i == 0 || g->node.at[i - 1].out < n->out, "nodes and their tensors are not in the same order");
	NEED(n->npar == g->tensor.at[n->out].rank, "has %u parallel axes, its tensor rank %u", n->npar,
	     g->tensor.at[n->out].rank);
	NEED((unsigned)n->npar + n->nred <= TG_MAX_AXES, "has too many axes");
	NEED((int)n->monoid < MON_COUNT, "has no such monoid");
	NEED(n->recur < g->recur.n, "is in a recurrence that does not exist");
	NEED(!n->recur || x->recur_step[n->out], "is not among the members of its recurrence");
	return verify_values(x, n);
}

/* --- recurrences --- */

static bool
verify_recur(Verify *x, RecurId id)
{
	const Graph *g = x->g;
	const Recur *r = &g->recur.at[id];
	x->where = arena_text(x->scratch, "recurrence %u", id);
	NEED(r->member.n > 0, "has no members");
	NEED(r->nseq >= 1 && r->nseq <= TG_MAX_SEQ, "has %u sequential axes", r->nseq);
	for (unsigned k = 0; k < r->nseq; k++)
		NEED(r->dir[k] == 1 || r->dir[k] == -1, "sequential axis %u has no direction", k);
	for (uint32_t m = 0; m < r->member.n; m++) {
		TensorId t = r->member.at[m];
		NEED(t > 0 && t < g->tensor.n && g->tensor.at[t].kind == TENSOR_NODE && g->tensor.at[t].node < g->node.n,
		     "member %u is not a node", m);
		NEED(!x->recur_step[t], "%%%u is a member twice", t);
		x->recur_step[t] = m + 1;
		const Node *n = tensor_node(g, t);
		NEED(n->recur == id, "%%%u does not know that it is a member", t);
		NEED(n->npar == g->tensor.at[t].rank && n->npar <= TG_MAX_RANK, "%%%u has not one axis for each of its tensor", t);
		for (unsigned k = 0; k < r->nseq; k++) {
			NEED(n->seq[k] < n->npar, "sequential axis %u of %%%u is no parallel axis", k, t);
			for (unsigned j = 0; j < k; j++)
				NEED(n->seq[j] != n->seq[k], "two sequential axes of %%%u are one", t);
		}
	}
	return true;
}

/* --- the outside --- */

static bool
verify_params(Verify *x)
{
	const Graph *g = x->g;
	uint32_t n = 0;
	x->where = "the signature";
	for (TensorId t = 1; t < g->tensor.n; t++)
		if (g->tensor.at[t].kind != TENSOR_NODE) {
			NEED(n < g->param.n && g->param.at[n] == t, "%%%u is not parameter %u", t, n);
			n++;
		}
	NEED(n == g->param.n, "lists more parameters than there are");
	bool *written = ARENA_ARRAY(x->scratch, bool, g->tensor.n);
	for (uint32_t k = 0; k < g->result.n; k++) {
		const Result *r = &g->result.at[k];
		x->where = arena_text(x->scratch, "result %u (%s)", k, name_text(g->names, r->name));
		NEED(r->tensor > 0 && r->tensor < g->tensor.n, "a tensor that does not exist");
		if (!r->inout)
			continue;
		NEED(r->inout < g->tensor.n && g->tensor.at[r->inout].kind == TENSOR_INOUT, "overwrites what is no inout");
		NEED(!written[r->inout], "overwrites %%%u a second time", r->inout);
		written[r->inout] = true;
		const Tensor *a = &g->tensor.at[r->tensor], *b = &g->tensor.at[r->inout];
		NEED(a->dtype == b->dtype && a->rank == b->rank, "overwrites a tensor of another type or rank");
	}
	return true;
}

static bool
verify_checks(Verify *x)
{
	const Graph *g = x->g;
	Place at = {.part = "a check"};
	for (uint32_t k = 0; k < g->check.n; k++) {
		x->where = arena_text(x->scratch, "check %u", k);
		NEED(g->check.at[k].text, "has no text");
		if (!verify_expr(x, g->check.at[k].cond, DT_BOOL, &at))
			return false;
	}
	return true;
}

typedef struct {
	const Graph *g;
	DimId dim;
	bool itself, early; /* the dim is read; and else only dims of lower turns, no data */
} TurnCheck;

static void
visit_turn(void *user, ExprId e)
{
	TurnCheck *c = user;
	const Expr *p = expr_get(c->g, e);
	if (p->op == OP_DIM && p->ref == c->dim)
		c->itself = true;
	else if (p->op == OP_READ)
		c->early = false;
	else if (p->op == OP_DIM)
		c->early &= p->ref < c->g->dim.n && c->g->dim.at[p->ref].turn < c->g->dim.at[c->dim].turn;
}

/* After the tensors: their extents are walked. */
static bool
verify_turn(Verify *x, DimId d)
{
	const Graph *g = x->g;
	const Dim *p = &g->dim.at[d];
	x->where = arena_text(x->scratch, "dim %u (%s)", d, name_text(g->names, p->name));
	const Tensor *t = &g->tensor.at[g->param.at[p->param]];
	NEED(p->turn < g->dim.n && p->axis >= 0, "has a turn and no axis, or a turn too high");
	TurnCheck c = {g, d, false, true};
	expr_walk(g, x->scratch, t->extent[p->axis], visit_turn, &c);
	NEED(c.itself && c.early, "is not solved from what is known at its turn");
	return true;
}

static bool
verify_all(Verify *x)
{
	const Graph *g = x->g;
	bool nodes_began = false;
	if (!verify_tables(x) || !verify_pool(x))
		return false;
	x->typed = ARENA_ARRAY(x->scratch, bool, g->expr.n);
	x->recur_step = ARENA_ARRAY(x->scratch, TensorId, g->tensor.n);
	for (TensorId t = 1; t < g->tensor.n; t++)
		if (!verify_tensor(x, t, &nodes_began))
			return false;
	for (DimId d = 1; d < g->dim.n; d++)
		if (g->dim.at[d].turn && !g->dim.at[d].fixed && !verify_turn(x, d))
			return false;
	for (RecurId r = 1; r < g->recur.n; r++)
		if (!verify_recur(x, r))
			return false;
	for (uint32_t i = 0; i < g->node.n; i++)
		if (!verify_node(x, i))
			return false;
	return verify_checks(x) && verify_params(x);
}

bool
graph_verify(const Graph *g, Arena *scratch, const char **error)
{
	Verify x = {.g = g, .scratch = scratch};
	bool ok = verify_all(&x);
	*error = x.error;
	return ok;
}
