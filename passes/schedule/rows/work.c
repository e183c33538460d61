/* work.c: how much of a kernel by rows is done side by side: the block of a task, the copies of a
 * vector (rows.h). */
#include "passes/schedule/rows/plan.h"

#include "passes/expr_map.h"

/* --- blocks --- */

typedef struct {
	const RowsPlan *p;
	unsigned m;
	unsigned votes[TG_MAX_RANK]; /* by row axis */
} Block;

static void
vote(void *user, ExprId e)
{
	Block *b = user;
	const Rows *r = b->p->r;
	const Graph *g = b->p->g;
	const Expr *p = expr_get(g, e);
	uint32_t lane = 1u << r->row_axis[b->m][r->nrow - 1];
	if (p->op != OP_READ || p->narg < 2)
		return;
	uint32_t last = expr_axes(g, b->p->scratch, expr_arg(g, e, p->narg - 1u)), before = 0;
	for (unsigned k = 0; k + 1u < p->narg; k++)
		before |= expr_axes(g, b->p->scratch, expr_arg(g, e, k));
	if (!(before & lane) || (last & lane))
		return;
	for (unsigned a = 0; a < b->p->r->member[b->m].node.npar; a++)
		if ((last >> a & 1) && rows_axis_of(r, b->m, a) < r->nrow)
			b->votes[rows_axis_of(r, b->m, a)]++;
}

/* What is read across the lanes brings a cache line for each lane: the next values of the axis that runs
 * along those lines come next. */
unsigned
rows_choose_block(const RowsPlan *p)
{
	Rows *r = p->r;
	Block b = {.p = p};
	unsigned best = 0;
	if (r->tmpl != TMPL_MAP || r->nrow < 2)
		return 0;
	for (b.m = 0; b.m < r->nmember; b.m++)
		node_walk(p->g, p->scratch, &r->member[b.m].node, vote, &b);
	for (unsigned k = 0; k + 1u < r->nrow; k++)
		if (b.votes[k] > (best ? b.votes[best - 1] : 0))
			best = k + 1;
	return best;
}

/* --- copies --- */

enum { FUNCTION_OPS = 12 };

typedef struct {
	const Graph *g;
	unsigned ops;
	bool folds;
} BodyOps;

static void
count_op(void *user, ExprId e)
{
	BodyOps *c = user;
	const Expr *p = expr_get(c->g, e);
	if (op_info[p->op].flags & F_MATH)
		c->ops += FUNCTION_OPS;
	else if (op_info[p->op].cls == CLASS_MAP && p->dtype != DT_I64)
		c->ops++;
}

/* The operations of an iteration of the phase, if it folds. */
static BodyOps
phase_body(const RowsPlan *p, unsigned phase)
{
	BodyOps c = {.g = p->g};
	for (unsigned m = 0; m < p->r->nmember; m++) {
		const RowMember *member = &p->r->member[m];
		if (member->phase != phase)
			continue;
		c.folds |= member->node.nred > 0 || member->scans || member->steps;
		expr_walk(p->g, p->scratch, member->node.body, count_op, &c);
	}
	return c.folds ? c : (BodyOps){.g = p->g};
}

static unsigned
phase_ops(const RowsPlan *p, unsigned phase)
{
	return phase_body(p, phase).ops;
}

enum { FEW_OPS = 6, MANY_OPS = 10, SOME_OPS = 14, SHORT_LOOP = 256, AHEAD_ELEMENTS = 512, MANY_TURNS = 8,
       SOME_TURNS = 4, FEW_LANES = 8 };

static bool
is_at_most(const Graph *g, ExprId e, int64_t most)
{
	const Expr *p = expr_get(g, e);
	if (p->op == OP_MIN)
		return is_at_most(g, expr_arg(g, e, 0), most) || is_at_most(g, expr_arg(g, e, 1), most);
	return p->op == OP_CONST && p->imm.i <= most;
}

/* Whether the kernel is one row that folds a few elements: its code takes longer to compile than to run. */
static bool
is_brief(const RowsPlan *p)
{
	const Rows *r = p->r;
	for (unsigned k = 0; k < r->nloop; k++) {
		const Expr *lo = expr_get(p->g, r->loop[k].lo);
		if (lo->op != OP_CONST || lo->imm.i < 0 || !is_at_most(p->g, r->loop[k].hi, SHORT_LOOP))
			return false;
	}
	return r->nrow == 0 && r->nloop == 1;
}

/* Vectors of a phase that only stores: whole lines, for whose stores one question is asked (codegen/lower_stream.c). */
static unsigned
stores_lines(const RowsPlan *p, unsigned phase)
{
	BodyOps c = {.g = p->g};
	bool streams = false;
	for (unsigned m = 0; m < p->r->nmember; m++) {
		const RowMember *member = &p->r->member[m];
		if (member->phase != phase)
			continue;
		streams |= member->stored && member->streams;
		expr_walk(p->g, p->scratch, member->node.body, count_op, &c);
	}
	unsigned some = p->facts->lanes <= FEW_LANES ? 4 : 2; /* two lines of f32 */
	return !streams ? 1 : c.ops <= FEW_OPS ? some : c.ops <= SOME_OPS ? some / 2 : 1;
}

/* An addition takes four cycles, and its next one waits for it: a body of few operations needs four
 * accumulators to keep the machine busy, a long one none but its own. Two vectors of a function fill 16 registers, which is
 * what processors with vectors of FEW_LANES have: with anything beside it they are moved about. */
static unsigned
phase_copies(const RowsPlan *p, unsigned phase)
{
	BodyOps c = phase_body(p, phase);
	unsigned some = p->facts->lanes <= FEW_LANES ? FUNCTION_OPS : SOME_OPS;
	if (!c.folds)
		return stores_lines(p, phase);
	return c.ops <= FEW_OPS ? 4 : c.ops <= some ? 2 : 1;
}

/* Columns also share what they read from rows, and have one number of copies for all phases. */
void
rows_choose_copies(const RowsPlan *p)
{
	Rows *r = p->r;
	bool one = r->tmpl == TMPL_MAP || is_brief(p);
	unsigned ops = 0;
	for (unsigned f = 0; f < r->nphase; f++)
		ops = phase_ops(p, f) > ops ? phase_ops(p, f) : ops;
	unsigned all = ops <= FEW_OPS ? 8 : 2;
	r->copies = 1;
	for (unsigned f = 0; f < r->nphase; f++) {
		unsigned copies = one ? 1 : r->lanes_by_row ? all : phase_copies(p, f);
		r->phase[f].copies = (uint8_t)copies;
		r->copies = copies > r->copies ? copies : r->copies;
	}
}

/* A thread waits for memory about as long as it takes to add a hundred times: so many rows of its columns are on their
 * way at once, fewer where what is made of each has to be kept. */
unsigned
rows_choose_turns(const RowsPlan *p)
{
	unsigned ops = 0;
	for (unsigned f = 0; f < p->r->nphase; f++)
		ops = phase_ops(p, f) > ops ? phase_ops(p, f) : ops;
	return ops <= SOME_OPS ? MANY_TURNS : SOME_TURNS;
}

/* Of a body that computes, few iterations are begun at a time, and what they fetch covers no more than a part of the
 * way to memory. */
unsigned
rows_choose_ahead(const RowsPlan *p)
{
	const Rows *r = p->r;
	BodyOps c = {.g = p->g};
	if (r->tmpl != TMPL_MAP || !r->lanes_by_row || p->facts->blocks || r->ntile)
		return 0;
	for (unsigned m = 0; m < r->nmember; m++)
		expr_walk(p->g, p->scratch, r->member[m].node.body, count_op, &c);
	return c.ops >= MANY_OPS ? AHEAD_ELEMENTS : 0;
}
