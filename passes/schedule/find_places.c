/* find_places.c: which tensors must be in memory, by which kernels there are (point/point.h). */
#include "passes/schedule/schedule.h"

typedef struct {
	const Graph *g;
	const uint32_t *unit;
	const bool *apart;
	uint32_t own; /* unit of the node at work; UINT32_MAX: a kernel of its own, added last */
	bool *read, *stored, *streams;
} Uses;

static void
note_use(void *user, ExprId e)
{
	Uses *u = user;
	const Expr *p = expr_get(u->g, e);
	if (p->op != OP_READ)
		return;
	u->read[p->ref] = true;
	bool elsewhere = u->own == UINT32_MAX || u->own != u->unit[p->ref] || u->apart[p->ref];
	u->stored[p->ref] |= elsewhere;
	u->streams[p->ref] &= !elsewhere;
}

Places
places_find(const Graph *g, Arena *scratch, const uint32_t *unit, uint32_t nunit, const bool *apart)
{
	Uses uses = {.g = g, .unit = unit, .apart = apart, .read = ARENA_ARRAY(scratch, bool, g->tensor.n),
	             .stored = ARENA_ARRAY(scratch, bool, g->tensor.n), .streams = ARENA_ARRAY(scratch, bool, g->tensor.n)};
	uint32_t *result = ARENA_ARRAY(scratch, uint32_t, g->tensor.n);
	Places p = {.faulty = graph_may_fault(g, scratch), .read = uses.read, .stored = uses.stored,
	            .streams = uses.streams, .result = result};
	for (uint32_t r = 0; r < g->result.n; r++) /* an inout's lines were read, so they are near */
		uses.streams[g->result.at[r].tensor] = !g->result.at[r].inout;
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		uses.own = t < nunit ? unit[t] : UINT32_MAX;
		node_walk(g, scratch, &g->node.at[i], note_use, &uses);
	}
	for (uint32_t r = 0; r < g->result.n; r++) {
		result[g->result.at[r].tensor] = r + 1;
		uses.stored[g->result.at[r].tensor] = true;
	}
	for (uint32_t a = 1; a < g->access.n; a++)
		p.cuts |= g->access.at[a].kind == ACCESS_CUT;
	return p;
}
