/* place_results.c: sees to it that every result is a node that can be computed where it is wanted.
 *
 * A result's node lives in the result's buffer, an inout's in the parameter's, whose old value every
 * definition reads. Such a node may be written in place when nothing launched later reads the old
 * value, and its own kernel reads it only at the element it is about to write, or in an order that has been
 * looked at (rows/in_place.c). Then no reader can see a new value. All others are computed in the
 * workspace and copied when everything has run. */
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

/* A node that is t again. */
static TensorId
copy_of(Graph *g, TensorId t, Name name, Span at)
{
	const Tensor from = g->tensor.at[t];
	ExprId sub[TG_MAX_RANK];
	Node n = {.npar = from.rank};
	for (unsigned a = 0; a < from.rank; a++)
		sub[a] = expr_axis(g, a);
	n.body = expr_read(g, t, sub, from.rank, 0);
	return node_add(g, &n, name, at, from.dtype, from.extent);
}

void
own_results(Graph *g, PassCtx *cx)
{
	bool *taken = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	for (uint32_t r = 0; r < g->result.n; r++) {
		Result *result = &g->result.at[r];
		TensorId t = result->tensor;
		if (g->tensor.at[t].kind == TENSOR_NODE && !taken[t]) {
			taken[t] = true;
			continue;
		}
		remark(cx, REMARK_result_copied, t);
		result->tensor = copy_of(g, t, result->name, result->at);
	}
}

/* --- inouts --- */

typedef struct {
	const Graph *g;
	TensorId old;
	bool found;
} Elsewhere;

static void
note_elsewhere(void *user, ExprId e)
{
	Elsewhere *x = user;
	x->found |= !reads_own_point(x->g, e, x->old);
}

/* Whether n reads old at another place than the point. */
static bool
reads_elsewhere(const Graph *g, Arena *scratch, const Node *n, TensorId old)
{
	Elsewhere x = {g, old, false};
	node_each_read(g, scratch, n, old, note_elsewhere, &x);
	return x.found;
}

/* A scatter that folds aside reads everything but finish and domain before it writes anything; one
 * that folds in place may only start from the old value. */
static bool
scatter_reads_safely(const Graph *g, Arena *scratch, TensorId old, const Node *n)
{
	Node last = {.finish = n->finish, .domain = n->domain}, start = {.init = n->init}, rest = *n;
	rest.init = 0;
	if (!scatter_is_direct(g, n))
		return !reads_elsewhere(g, scratch, &last, old);
	return !reads_elsewhere(g, scratch, &start, old) && !node_reads(g, scratch, &rest, old);
}

static bool
reads_safely(const Graph *g, Arena *scratch, TensorId old, const Node *n)
{
	if (n->scatter)
		return scatter_reads_safely(g, scratch, old, n);
	return n->recur ? !node_reads(g, scratch, n, old) : !reads_elsewhere(g, scratch, n, old);
}

static bool
may_write_in_place(const Graph *g, Arena *scratch, const Result *r, const uint32_t *unit, bool ordered)
{
	uint32_t own = unit[r->tensor];
	for (uint32_t i = 0; i < g->node.n; i++) {
		const Node *n = &g->node.at[i];
		uint32_t at = unit[n->out];
		if (at == UINT32_MAX || at < own)
			continue;
		if (at == own && ordered)
			continue;
		if (at == own && n->out != r->tensor && !n->recur && node_reads(g, scratch, n, r->inout))
			return false;
		if (at > own ? node_reads(g, scratch, n, r->inout) : !reads_safely(g, scratch, r->inout, n))
			return false;
	}
	return true;
}

void
stage_inouts(Graph *g, PassCtx *cx, const uint32_t *unit, InPlaceFn *in_place, void *user)
{
	uint32_t nresult = g->result.n;
	bool *copy = ARENA_ARRAY(cx->scratch, bool, nresult);
	for (uint32_t r = 0; r < nresult; r++)
		copy[r] = g->result.at[r].inout && !BUG(inout_written_early) &&
		          !may_write_in_place(g, cx->scratch, &g->result.at[r], unit, in_place(user, &g->result.at[r]));
	for (uint32_t r = 0; r < nresult; r++) {
		Result *result = &g->result.at[r];
		if (!copy[r])
			continue;
		remark(cx, REMARK_inout_copied, result->tensor);
		result->tensor = copy_of(g, result->tensor, result->name, result->at);
	}
}
