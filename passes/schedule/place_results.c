/* place_results.c: sees to it that every result is a node that can be computed where it is wanted.
 *
 * A result's node lives in the result's buffer, an inout's in the parameter's, whose old value every
 * definition reads. Such a node may be written in place when nothing launched later reads the old
 * value, and its own kernel reads it only at the element it is about to write, or in an order that has been
 * looked at (rows_in_place.c). Then no reader can see a new value. All others are computed in the
 * workspace and copied when everything has run. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

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
	bool reads, elsewhere; /* old at all; old at another place than the point */
} OldReads;

static void
note_read(void *user, ExprId e)
{
	OldReads *o = user;
	const Expr *p = expr_get(o->g, e);
	if (p->op != OP_READ || p->ref != o->old)
		return;
	o->reads = true;
	o->elsewhere |= !reads_own_point(o->g, e, o->old);
}

static OldReads
reads_in(const Graph *g, Arena *scratch, TensorId old, ExprId e)
{
	OldReads o = {g, old, false, false};
	expr_walk(g, scratch, e, note_read, &o);
	return o;
}

static OldReads
reads_of(const Graph *g, Arena *scratch, TensorId old, const Node *n)
{
	OldReads o = {g, old, false, false};
	node_walk(g, scratch, n, note_read, &o);
	return o;
}

/* A scatter that folds aside reads everything but finish and domain before it writes anything; one
 * that folds in place may only start from the old value. */
static bool
scatter_reads_safely(const Graph *g, Arena *scratch, TensorId old, const Node *n)
{
	if (!scatter_is_direct(g, n))
		return !reads_in(g, scratch, old, n->finish).elsewhere && !reads_in(g, scratch, old, n->domain).elsewhere;
	Node rest = *n;
	rest.init = 0;
	return !reads_in(g, scratch, old, n->init).elsewhere && !reads_of(g, scratch, old, &rest).reads;
}

static bool
reads_safely(const Graph *g, Arena *scratch, TensorId old, const Node *n)
{
	if (n->scatter)
		return scatter_reads_safely(g, scratch, old, n);
	OldReads o = reads_of(g, scratch, old, n);
	return !o.elsewhere && !(n->recur && o.reads);
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
		if (at == own && n->out != r->tensor && !n->recur && reads_of(g, scratch, r->inout, n).reads)
			return false;
		if (at > own ? reads_of(g, scratch, r->inout, n).reads : !reads_safely(g, scratch, r->inout, n))
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
