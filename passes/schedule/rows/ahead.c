/* ahead.c: what blocks that hold rows or columns (blocks.c) read, and how much of it may be on its way while they fold what they
 * have: the next rows of a cluster's in the second level's cache, the next strip of its columns in shared memory. */
#include "passes/schedule/rows/blocks.h"

#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "passes/schedule/rows/held.h"

enum {
	NEXT_BYTES = 64 << 10, /* of a multiprocessor's shared memory, for what is to come: as many as a quarter of its registers, since
	                        * threads that hold more have none left for a loop */
	MOST_TURNS = 2, TURN_WAVES = 4
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

/* What the rows at work at once have, what they leave, and the rows to come are to be in the second level's cache, of
 * which a multiprocessor has the nearer half. */
unsigned
block_rows_ahead(const Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p)
{
	const Machine *m = cost_machine(true, 0);
	if (r->across) /* a block's next row is its own */
		return 1;
	unsigned at_once = p->cluster ? m->threads * p->resident / p->cluster : 0, n;
	unsigned bytes = block_bytes_read(g, scratch, r, (UINT32_C(1) << r->nrow) - 1, &n);
	bool fits = 3.0 * bytes * p->lanes * at_once <= m->cache * m->threads / 2;
	return !fits ? 0 : at_once > TIR_MAX_AHEAD ? TIR_MAX_AHEAD : at_once;
}

/* The strips of columns that the blocks of a cluster hold one after another, where what they read of the next one has room in shared
 * memory meanwhile (tile/spread_next.c): a few, where there are so many that clusters have much the same to do; 0: one. Rows that a cluster
 * holds are fetched to the second level's cache as well, and gain nothing more; nor do more turns, which leave clusters without work at the end. */
ExprId
block_turns(Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p, ExprId strips)
{
	const Machine *m = cost_machine(true, 0);
	unsigned n, at_once = p->cluster ? m->threads * p->resident / p->cluster : 0;
	if (!at_once || !p->held || !p->columns)
		return 0;
	unsigned bytes = block_bytes_read(g, scratch, r, ((1u << r->nloop) - 1) << r->nrow, &n);
	if (!bytes || bytes * p->lanes / p->cluster * p->resident > NEXT_BYTES)
		return 0;
	ExprId some = expr_binary(g, OP_IDIV, strips, expr_int(g, DT_I64, (int64_t)at_once * TURN_WAVES));
	return expr_binary(g, OP_MAX, expr_int(g, DT_I64, 1), expr_binary(g, OP_MIN, some, expr_int(g, DT_I64, MOST_TURNS)));
}
