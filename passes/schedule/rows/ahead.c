/* ahead.c: what blocks that hold rows or columns (blocks.c) read, and how many of them the blocks of a cluster go through, one after
 * another: what they read of the next one is on its way to shared memory while they fold what they have (tile/spread_next.c). */
#include "passes/schedule/rows/blocks.h"

#include "ir/gpu_facts.h"
#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "passes/schedule/rows/held.h"

enum {
	NEXT_BYTES = 128 << 10, /* of a multiprocessor's shared memory, for what is to come: as many as a quarter of its registers, since
	                        * threads that hold more have none left for a loop */
	GROUP = 16,                     /* processors, at least, among which a cluster's blocks are */
	MOST_ROWS = 16, MOST_STRIPS = 2
};

bool
block_has_member(const Rows *r, TensorId t)
{
	for (unsigned m = 0; m < r->nmember; m++)
		if (r->member[m].t == t)
			return true;
	return false;
}

typedef struct {
	const Graph *g;
	Arena *scratch;
	uint32_t rows, lanes; /* axes */
	bool *read;           /* by tensor: along both */
} RowReads;

static void
note_row_read(void *user, ExprId e)
{
	RowReads *a = user;
	const Expr *p = expr_get(a->g, e);
	uint32_t axes = p->op == OP_READ ? expr_axes(a->g, a->scratch, e) : 0;
	if ((axes & a->rows) && (axes & a->lanes))
		a->read[p->ref] = true;
}

unsigned
block_bytes_read(const Graph *g, Arena *scratch, const Rows *r, uint32_t axes, unsigned *n)
{
	RowReads a = {g, scratch, axes, held_lane_axes(r), ARENA_ARRAY(scratch, bool, g->tensor.n)};
	unsigned bytes = *n = 0;
	for (unsigned m = 0; m < r->nmember; m++)
		node_walk(g, scratch, &r->member[m].node, note_row_read, &a);
	for (TensorId t = 0; t < g->tensor.n; t++)
		if (a.read[t] && !block_has_member(r, t)) {
			bytes += dtype_info[g->tensor.at[t].dtype].bits / 8u;
			*n += 1;
		}
	return bytes;
}

static ExprId
ceil_div(Graph *g, ExprId a, ExprId b)
{
	ExprId up = expr_binary(g, OP_SUB, b, expr_int(g, DT_I64, 1));
	return expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, a, up), b);
}

/* How many clusters are at work at once: a group of processors has whole ones. */
static ExprId
clusters_at_once(Graph *g, const KernelPlan *p)
{
	ExprId groups = expr_binary(g, OP_IDIV, gpu_fact(g, GPU_PROCESSORS), expr_int(g, DT_I64, GROUP));
	return expr_binary(g, OP_MUL, expr_binary(g, OP_MAX, groups, expr_int(g, DT_I64, 1)), expr_int(g, DT_I64, GROUP * p->resident / p->cluster));
}

/* The rows, or strips of columns, that the blocks of a cluster hold one after another, where what they read of the next one has room
 * in shared memory meanwhile (tile/spread_next.c); 0: one. As many as make whole rounds of all clusters that are at work at once, each
 * of a few: clusters that begin have nothing on its way, and in what is left over of a round most processors have nothing to do. */
ExprId
block_turns(Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p, ExprId tasks)
{
	unsigned n;
	if (!p->cluster || !p->held || r->across || r->scans || p->resident * GROUP < p->cluster)
		return 0;
	uint32_t rows = p->columns ? ((1u << r->nloop) - 1) << r->nrow : (1u << r->nrow) - 1;
	unsigned bytes = block_bytes_read(g, scratch, r, rows, &n);
	if (!bytes || bytes * p->lanes / p->cluster * p->resident > NEXT_BYTES)
		return 0;
	ExprId one = expr_int(g, DT_I64, 1), at_once = clusters_at_once(g, p);
	ExprId rounds = ceil_div(g, tasks, expr_binary(g, OP_MUL, at_once, expr_int(g, DT_I64, p->columns ? MOST_STRIPS : MOST_ROWS)));
	ExprId turns = ceil_div(g, tasks, expr_binary(g, OP_MUL, at_once, expr_binary(g, OP_MAX, rounds, one)));
	return expr_binary(g, OP_MAX, turns, one);
}
