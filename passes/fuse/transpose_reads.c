/* transpose_reads.c: what a kernel by rows reads across its lanes, again and again, is read from a copy that
 * has these elements in a row: the coordinates of points, when vectors run along the points.
 *
 * in     groups of nodes, each with a kernel by rows (group.c)
 * out    a copy is a node with a kernel of its own, which all groups share; their reads are of it
 * fp     exact: elements are moved
 * tests  tests/fuse/phases_test.c, tests/fuse/kernels.tex, tests/random
 *
 * A copy reads a tensor once and writes it once, with vectors along its rows or its columns; a read across
 * lanes costs as much for every vector. So the reads must come again: an axis of the node, not known to be
 * short, is none of their subscripts. A copy is of the whole tensor, so a subscript is an axis that runs
 * along the tensor's own extent. What may carry faults has none.
 *
 * On a processor the copy stays a kernel of its own. Of exponentials of the distances of all pairs of n points in 3 dimensions,
 * times a vector, it takes 1.3 us of 8.6 for 64 points, 2.4 of 84 for 256, and less than can be measured for 1024 (one thread
 * of AVX2): as one of n parts of the work it is not worth rows along lanes, which would have to keep a copy for each task. */
#include "passes/fuse/group.h"
#include "passes/fuse/last_axis.h"

#include "passes/expr_map.h"
#include "passes/schedule/pairwise/pairwise.h"
#include "passes/schedule/rows/rows.h"
#include "passes/schedule/schedule.h"

enum { FEW_READS = 8 };

typedef struct {
	Graph *g;
	PassCtx *cx;
	const RowsFacts *facts;
	LastAxisCopies copies;
	/* the member at work */
	const Rows *r;
	const RowMember *m;
	uint32_t changed;
} Transpose;

/* The region's axis along which member m's vectors run; ROWS_NO_AXIS: none. */
static unsigned
lane_axis(const Rows *r, const RowMember *m)
{
	const RowPhase *phase = &r->phase[m->phase];
	if (r->lanes_by_row)
		return r->nrow - 1u;
	return phase->lanes ? phase->loop[phase->nloop - 1] : ROWS_NO_AXIS;
}

/* How many values the region's axis takes, from 0; 0: not known. */
static ExprId
axis_extent(const Transpose *s, unsigned axis)
{
	if (axis < s->r->nrow)
		return s->r->extent[axis];
	const RowLoop *loop = &s->r->loop[axis - s->r->nrow];
	const Expr *lo = expr_get(s->g, loop->lo);
	return lo->op == OP_CONST && lo->imm.i == 0 ? loop->hi : 0;
}

static bool
is_few(const Graph *g, ExprId extent)
{
	const Expr *p = expr_get(g, extent);
	return p->op == OP_CONST && p->imm.i < FEW_READS;
}

/* Whether the elements at these axes of the node are read for many values of another one. */
static bool
comes_again(const Transpose *s, uint32_t axes)
{
	const Node *n = &s->m->node;
	for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++) {
		unsigned axis = s->m->axis[a];
		ExprId extent = axis < s->r->nrow ? s->r->extent[axis] : s->r->loop[axis - s->r->nrow].hi;
		if (!(axes >> a & 1) && !is_few(s->g, extent))
			return true;
	}
	return false;
}

/* The subscript of a read along which its lanes run, if the read is worth a copy; -1: it is not. Axes are
 * the node's. */
static int
lane_worth_copy(const Transpose *s, ExprId e)
{
	const Graph *g = s->g;
	const Expr *p = expr_get(g, e);
	const Tensor *t = &g->tensor.at[p->ref];
	unsigned lane = lane_axis(s->r, s->m);
	uint32_t axes = 0;
	int along = -1;
	if (p->op != OP_READ || p->access || t->rank < 2 || s->facts->faulty[p->ref] || t->dtype == DT_C64 ||
	    dtype_info[t->dtype].bits < 8)
		return -1;
	for (unsigned k = 0; k < s->r->nmember; k++)
		if (s->r->member[k].t == p->ref)
			return -1;
	for (unsigned k = 0; k < p->narg; k++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, k));
		if (sub->op != OP_AXIS || (axes >> sub->ref & 1) || axis_extent(s, s->m->axis[sub->ref]) != t->extent[k])
			return -1;
		axes |= 1u << sub->ref;
		along = s->m->axis[sub->ref] == lane ? (int)k : along;
	}
	return along >= 0 && along + 1 < (int)t->rank && comes_again(s, axes) ? along : -1;
}

static ExprId
read_copy(void *user, Graph *g, ExprId e)
{
	Transpose *s = user;
	int lane = expr_get(g, e)->op == OP_READ ? lane_worth_copy(s, e) : -1;
	if (lane < 0 || !spend(s->cx))
		return e;
	s->changed++;
	return last_axis_read(g, s->cx->scratch, &s->copies, e, (unsigned)lane);
}

static bool
plan(const Transpose *s, const Group *group, Rows *rows)
{
	RemarkId why = REMARK_NONE;
	return rows_plan(s->g, s->cx->scratch, s->facts, group->member.at, group->member.n, TMPL_NONE, rows, &why);
}

/* Whether lanes run as before: then what was read across them no longer is. */
static bool
same_lanes(const Rows *a, const Rows *b)
{
	bool same = a->tmpl == b->tmpl && a->nrow == b->nrow && a->nphase == b->nphase;
	for (unsigned m = 0; same && m < a->nmember; m++)
		same = lane_axis(a, &a->member[m]) == lane_axis(b, &b->member[m]) && a->member[m].phase == b->member[m].phase;
	return same;
}

typedef struct {
	Transpose *s;
	Groups *groups;
	TensorId reader;
} Edges;

static void
note_edge(void *user, ExprId e)
{
	Edges *x = user;
	const Expr *p = expr_get(x->s->g, e);
	for (uint32_t k = 0; p->op == OP_READ && k < x->s->copies.n; k++)
		if (x->s->copies.at[k].to == p->ref)
			vec_push(x->s->cx->scratch, &x->groups->unfused, ((Unfused){.from = p->ref, .to = x->reader, .why = REMARK_rows_transposed}));
}

/* Whether there is a kernel for all sizes of which threads have rows of their own, and elements lie in shared memory. */
static bool
is_pairwise(Transpose *s, const Group *group)
{
	const Places places = {.stored = s->facts->stored, .faulty = s->facts->faulty};
	KernelPlan *plan = ARENA_ARRAY(s->cx->scratch, KernelPlan, PAIRWISE_PLANS);
	unsigned n = pairwise_take(s->g, s->cx->scratch, &places, group->member.at, group->member.n, s->cx->options, plan);
	return n > 0 && !plan[n - 1].long_sums && n <= 2;
}

static void
transpose_group(Transpose *s, Groups *groups, uint32_t index)
{
	const Group *group = &groups->group.at[index];
	Graph *g = s->g;
	Rows *rows = ARENA_NEW(s->cx->scratch, Rows), *after = ARENA_NEW(s->cx->scratch, Rows);
	ExprId body[ROWS_MAX_MEMBERS], guard[ROWS_MAX_MEMBERS];
	uint32_t ncopy = s->copies.n, nnode = g->node.n, ntensor = g->tensor.n;
	s->changed = 0;
	if (is_pairwise(s, group) || !plan(s, group, rows))
		return;
	s->r = rows;
	for (unsigned m = 0; m < rows->nmember; m++) {
		uint32_t at = g->tensor.at[rows->member[m].t].node;
		body[m] = g->node.at[at].body;
		guard[m] = g->node.at[at].guard;
		s->m = &rows->member[m];
		if (s->m->scans || s->m->steps)
			continue;
		ExprId to = expr_map(g, s->cx->scratch, body[m], read_copy, s);
		g->node.at[at].body = to;
		to = guard[m] ? expr_map(g, s->cx->scratch, guard[m], read_copy, s) : 0;
		g->node.at[at].guard = to;
	}
	if (s->changed && plan(s, group, after) && same_lanes(rows, after)) {
		for (uint32_t m = 0; m < group->member.n; m++) {
			Edges x = {s, groups, group->member.at[m]};
			node_walk(g, s->cx->scratch, tensor_node(g, x.reader), note_edge, &x);
		}
		return;
	}
	if (!s->changed)
		return;
	for (unsigned m = 0; m < rows->nmember; m++) {
		Node *n = tensor_node(g, rows->member[m].t);
		n->body = body[m];
		n->guard = guard[m];
	}
	s->copies.n = ncopy;
	g->node.n = nnode;
	g->tensor.n = ntensor;
}

void
transpose_reads_of_groups(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *groups)
{
	uint32_t n = g->tensor.n, room = n * TG_MAX_RANK;
	bool *stored = group_stored(g, cx->scratch, groups, results, room);
	RowsFacts facts = {.stored = stored, .faulty = group_facts(cx->scratch, faulty, n, room), .streams = group_facts(cx->scratch, results, n, room),
	                   .lanes = cx->options->lanes};
	Transpose s = {.g = g, .cx = cx, .facts = &facts};
	for (uint32_t k = 0; k < groups->group.n; k++)
		if (!group_is_closed(&groups->group.at[k]))
			transpose_group(&s, groups, k);
	group_members(g, cx->scratch, groups);
}
