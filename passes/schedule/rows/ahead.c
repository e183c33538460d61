/* ahead.c: what blocks that hold rows or columns (blocks.c) read, and how much of it may be on its way while they fold what they
 * have: the next rows of a cluster's in the second level's cache; or, where the blocks of a cluster go through several of them, one
 * after another, the next one in shared memory (tile/spread_next.c).
 *
 * Of rows that is so of the longest ones alone, of which two clusters share processors: on an H200 softmax of 131072 elements takes
 * 147 us of 155. Of shorter ones more clusters are at work, which hide what each waits for: 143 of 136 at 32768. */
#include "passes/schedule/rows/blocks.h"

#include "ir/gpu_facts.h"
#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "passes/schedule/rows/held.h"

enum {
	NEXT_BYTES = 128 << 10,        /* of a multiprocessor's shared memory, for what is to come; */
	NEXT_STRIP_BYTES = 64 << 10,   /* of columns as many as a quarter of its registers, since threads that hold more have none left for a loop */
	GROUP = 16,                    /* processors, at least, among which a cluster's blocks are */
	FEW_CLUSTERS = 2,              /* on the same processors, of those that go through several rows */
	MOST_STRIPS = 2, STRIP_WAVES = 4
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

/* Whether threads wait for one another, as they do where lanes are folded: else there is no need. */
static bool
joins(const Rows *r)
{
	for (unsigned m = 0; m < r->nmember; m++)
		if (rows_is_folded(&r->member[m]) && (r->lanes_by_row || r->phase[r->member[m].phase].lanes))
			return true;
	return false;
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

/* A cluster that begins has nothing on its way, so that tasks have many rows; but how many clusters there are at once is not known for
 * certain, and some are faster than others. So the first round of tasks has half of all rows, the second one half of what is left, and
 * the others are short: whichever round is the last one, little is left over for it. */
static BlockTurns
turns_of_rows(Graph *g, const KernelPlan *p, ExprId rows)
{
	static const unsigned share[BLOCK_ROUNDS] = {2, 4, 16};
	BlockTurns t = {0};
	ExprId at_once = clusters_at_once(g, p), before = 0, each = ceil_div(g, rows, at_once);
	for (t.n = 0; t.n < BLOCK_ROUNDS; t.n++) {
		ExprId some = expr_binary(g, OP_IDIV, each, expr_int(g, DT_I64, share[t.n]));
		ExprId size = t.size[t.n] = expr_binary(g, OP_ADD, some, expr_int(g, DT_I64, 1));
		if (before) /* each round before has a task of each cluster */
			t.from[t.n] = expr_binary(g, OP_MUL, at_once, expr_binary(g, OP_SUB, before, expr_binary(g, OP_MUL, size, expr_int(g, DT_I64, t.n))));
		before = before ? expr_binary(g, OP_ADD, before, size) : size;
	}
	return t;
}

/* Two, where there are so many that clusters have much the same to do: more leave some without work at the end. */
static BlockTurns
turns_of_strips(Graph *g, const KernelPlan *p, ExprId strips)
{
	unsigned at_once = cost_machine(true, 0)->threads * p->resident / p->cluster;
	ExprId some = expr_binary(g, OP_IDIV, strips, expr_int(g, DT_I64, (int64_t)at_once * STRIP_WAVES));
	some = expr_binary(g, OP_MAX, expr_int(g, DT_I64, 1), expr_binary(g, OP_MIN, some, expr_int(g, DT_I64, MOST_STRIPS)));
	return (BlockTurns){.n = 1, .size = {some}};
}

BlockTurns
block_turns(Graph *g, Arena *scratch, const Rows *r, const KernelPlan *p, ExprId rows)
{
	BlockTurns none = {0};
	unsigned n;
	if (!p->cluster || !p->held || r->across || r->scans || !joins(r) || p->resident * GROUP < p->cluster)
		return none;
	if (!p->columns && (p->cluster < TIR_MAX_CLUSTER || p->resident > FEW_CLUSTERS))
		return none;
	uint32_t axes = p->columns ? ((1u << r->nloop) - 1) << r->nrow : (1u << r->nrow) - 1;
	unsigned bytes = block_bytes_read(g, scratch, r, axes, &n);
	if (!bytes || bytes * p->lanes / p->cluster * p->resident > (p->columns ? NEXT_STRIP_BYTES : NEXT_BYTES))
		return none;
	return p->columns ? turns_of_strips(g, p, rows) : turns_of_rows(g, p, rows);
}

ExprId
block_turn_tasks(Graph *g, const BlockTurns *t, ExprId rows)
{
	ExprId tasks = ceil_div(g, rows, t->size[0]);
	for (unsigned k = 1; k < t->n; k++)
		tasks = expr_binary(g, OP_MAX, tasks, ceil_div(g, expr_binary(g, OP_SUB, rows, t->from[k]), t->size[k]));
	return tasks;
}
