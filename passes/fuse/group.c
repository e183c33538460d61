/* group.c: which nodes share a kernel by rows (passes/schedule/rows.h).
 *
 * Nodes are taken in the graph's order. A node joins the group of a node it reads, the deepest first,
 * else one that reads an input, or what another kernel computes, with it, when rows_plan finds a kernel
 * for all of them; else it starts a group. Fusing is worth it whenever it is possible: what is read from a row just computed, or twice,
 * is read from the nearest cache instead of from memory, and nothing is computed twice.
 *
 * Two rules keep it so. Rows that are lost (because the node reads across them) cost parallel work: only
 * a node that folds them away, or scans them, may do that. And the kernels must have an order: a group
 * takes a node only if all kernels that the node reads come before the group anyway, which their depths
 * show. */
#include "passes/fuse/group.h"

#include "passes/schedule/rows.h"
#include "passes/schedule/scan.h"
#include "passes/schedule/schedule.h"

typedef struct {
	Graph *g;
	PassCtx *cx;
	Groups out;
	RowsFacts facts;
	uint32_t *depth;      /* by TensorId: the kernels before its own on the longest way */
	VEC(uint32_t) gdepth; /* by group */
	uint32_t *last_reader; /* by read_key: 1 + the group of the last node that reads it */
	RemarkId *alone;      /* by TensorId: why it has a kernel of its own */
	/* the node at work */
	TensorId node;
	VEC(TensorId) reads;
	RemarkId *refused;    /* by place in reads: why it did not join that one's group */
} Grouping;

static void
note_read(void *user, ExprId e)
{
	Grouping *s = user;
	const Expr *p = expr_get(s->g, e);
	if (p->op != OP_READ || s->g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return;
	for (uint32_t k = 0; k < s->reads.n; k++)
		if (s->reads.at[k] == p->ref)
			return;
	vec_push(s->cx->scratch, &s->reads, p->ref);
}

static bool
is_node(const Grouping *s, TensorId t)
{
	return s->g->tensor.at[t].kind == TENSOR_NODE;
}

static bool
is_pointwise(const Grouping *s, TensorId t)
{
	return tensor_node(s->g, t)->monoid == MON_NONE;
}

/* Whether every kernel that the node reads, beside the group's, runs before the group. */
static bool
comes_after(const Grouping *s, uint32_t group)
{
	for (uint32_t k = 0; k < s->reads.n; k++) {
		TensorId t = s->reads.at[k];
		if (is_node(s, t) && s->out.of[t] != group + 1 && s->depth[t] >= s->gdepth.at[group])
			return false;
	}
	return true;
}

static bool
plan_with(Grouping *s, const Group *group, Rows *rows, RemarkId *why)
{
	TensorId node[ROWS_MAX_MEMBERS + 1];
	unsigned n = 0;
	if (group->member.n >= ROWS_MAX_MEMBERS) {
		*why = REMARK_rows_many_members;
		return false;
	}
	for (uint32_t k = 0; k < group->member.n; k++)
		node[n++] = group->member.at[k];
	node[n++] = s->node;
	return rows_plan(s->g, s->cx->scratch, &s->facts, node, n, TMPL_NONE, rows, why);
}

/* Whether the node may join; linked: it reads a member. */
static bool
may_join(Grouping *s, uint32_t index, bool linked, RemarkId *why)
{
	const Group *group = &s->out.group.at[index];
	if (group->stream) {
		*why = REMARK_group_other;
		return false;
	}
	Rows *before = ARENA_NEW(s->cx->scratch, Rows), *after = ARENA_NEW(s->cx->scratch, Rows);
	if (!comes_after(s, index)) {
		*why = REMARK_group_order;
		return false;
	}
	if (s->cx->options->fuse == FUSE_ELEMENTWISE && (!is_pointwise(s, s->node) || !is_pointwise(s, group->member.at[0]))) {
		*why = REMARK_group_elementwise;
		return false;
	}
	if (!rows_plan(s->g, s->cx->scratch, &s->facts, group->member.at, group->member.n, TMPL_NONE, before, why) ||
	    !plan_with(s, group, after, why))
		return false;
	const RowMember *last = &after->member[after->nmember - 1];
	bool folds = linked && (!last->is_row || last->scans);
	if (after->nrow < before->nrow && !folds) {
		*why = REMARK_group_loses_rows;
		return false;
	}
	return true;
}

static void
join(Grouping *s, uint32_t index)
{
	vec_push(s->cx->scratch, &s->out.group.at[index].member, s->node);
	s->out.of[s->node] = index + 1;
	s->depth[s->node] = s->gdepth.at[index];
}

static void
start_group(Grouping *s)
{
	vec_push(s->cx->scratch, &s->out.group, ((Group){0}));
	vec_push(s->cx->scratch, &s->gdepth, s->depth[s->node]);
	join(s, s->out.group.n - 1);
}

/* The deepest group that the node reads and that is before `below`; UINT32_MAX: none. */
static uint32_t
next_read_group(const Grouping *s, const bool *tried)
{
	uint32_t best = UINT32_MAX;
	for (uint32_t k = 0; k < s->reads.n; k++) {
		uint32_t of = s->out.of[s->reads.at[k]];
		if (!of || tried[k])
			continue;
		if (best == UINT32_MAX || s->gdepth.at[of - 1] > s->gdepth.at[s->out.of[s->reads.at[best]] - 1])
			best = k;
	}
	return best;
}

static bool
join_what_it_reads(Grouping *s)
{
	bool *tried = ARENA_ARRAY(s->cx->scratch, bool, s->reads.n + 1);
	for (uint32_t k = next_read_group(s, tried); k != UINT32_MAX; k = next_read_group(s, tried)) {
		RemarkId why = REMARK_NONE;
		tried[k] = true;
		uint32_t of = s->out.of[s->reads.at[k]];
		if (may_join(s, of - 1, true, &why)) {
			join(s, of - 1);
			return true;
		}
		for (uint32_t j = 0; j < s->reads.n; j++)
			if (s->out.of[s->reads.at[j]] == of)
				s->refused[j] = why, tried[j] = true;
	}
	return false;
}

/* What stands for a tensor among those that are read together: of a kernel's, its first. */
static TensorId
read_key(const Grouping *s, TensorId t)
{
	uint32_t of = s->out.of[t];
	return of ? s->out.group.at[of - 1].member.at[0] : t;
}

static bool
join_sibling(Grouping *s)
{
	for (uint32_t k = 0; k < s->reads.n; k++) {
		RemarkId why = REMARK_NONE;
		uint32_t of = s->last_reader[read_key(s, s->reads.at[k])];
		if (of && may_join(s, of - 1, false, &why)) {
			join(s, of - 1);
			return true;
		}
	}
	return false;
}

/* Streams are grouped before all else. */
static bool
in_own_stream(const Grouping *s, TensorId t)
{
	return s->out.of[t] && s->out.of[t] == s->out.of[s->node];
}

static void
find_depth(Grouping *s)
{
	const Node *n = tensor_node(s->g, s->node);
	uint32_t depth = 1;
	s->reads.n = 0;
	node_walk(s->g, s->cx->scratch, n, note_read, s);
	for (uint32_t m = 0; n->recur && m < s->g->recur.at[n->recur].member.n; m++)
		node_walk(s->g, s->cx->scratch, tensor_node(s->g, s->g->recur.at[n->recur].member.at[m]), note_read, s);
	for (uint32_t k = 0; k < s->reads.n; k++)
		if (is_node(s, s->reads.at[k]) && !in_own_stream(s, s->reads.at[k]) && s->depth[s->reads.at[k]] >= depth)
			depth = s->depth[s->reads.at[k]] + 1;
	s->depth[s->node] = depth;
}

/* The edges that end in the node and come from other kernels. */
static void
note_edges(Grouping *s)
{
	for (uint32_t k = 0; k < s->reads.n; k++) {
		TensorId t = s->reads.at[k];
		RemarkId why = s->refused[k];
		if (!is_node(s, t) || (s->out.of[t] && s->out.of[t] == s->out.of[s->node]))
			continue;
		if (tensor_node(s->g, t)->recur && tensor_node(s->g, t)->recur == tensor_node(s->g, s->node)->recur)
			continue;
		if (s->cx->options->fuse == FUSE_OFF)
			why = REMARK_group_off;
		else if (s->alone[s->node])
			why = s->alone[s->node];
		else if (s->alone[t])
			why = s->alone[t];
		else if (!why)
			why = REMARK_group_other;
		vec_push(s->cx->scratch, &s->out.unfused, ((Unfused){t, s->node, why}));
		if (why != s->alone[s->node])
			remark(s->cx, why, s->node);
	}
}

static bool
is_contraction(Grouping *s)
{
	KernelPlan plan = {0};
	RemarkId why = REMARK_NONE;
	return contract_is_sum_of_products(s->g, s->node) &&
	       contract_takes(s->g, s->cx->scratch, s->facts.faulty, s->node, s->cx->options, &plan, &why);
}

/* A range that ends at an axis of the result, and costs a fold for each element all the same. */
static void
note_missed_scan(Grouping *s)
{
	Scan scan;
	RemarkId why;
	if (!scan_derive(s->g, s->cx->scratch, tensor_node(s->g, s->node), &scan, &why) && why)
		remark(s->cx, why, s->node);
}

/* A node that is in no stream. */
static void
group_node(Grouping *s)
{
	RemarkId why = REMARK_NONE, streamed = s->alone[s->node];
	const PassOptions *o = s->cx->options;
	find_depth(s);
	s->refused = ARENA_ARRAY(s->cx->scratch, RemarkId, s->reads.n + 1);
	note_missed_scan(s);
	if (!rows_takes(s->g, s->node, o->lanes, &why) || is_contraction(s)) {
		s->alone[s->node] = why ? why : streamed ? streamed : REMARK_group_contraction;
		if (why || streamed)
			remark(s->cx, why ? why : streamed, s->node);
		note_edges(s);
		return;
	}
	if (o->fuse == FUSE_OFF || !(join_what_it_reads(s) || join_sibling(s)))
		start_group(s);
	note_edges(s);
	for (uint32_t k = 0; k < s->reads.n; k++)
		if (s->out.of[s->reads.at[k]] != s->out.of[s->node])
			s->last_reader[read_key(s, s->reads.at[k])] = s->out.of[s->node];
}

static void
place_stream(Grouping *s, uint32_t index)
{
	const Group *group = &s->out.group.at[index];
	uint32_t depth = 1;
	for (uint32_t k = 0; k < group->member.n; k++) {
		s->node = group->member.at[k];
		find_depth(s);
		depth = s->depth[s->node] > depth ? s->depth[s->node] : depth;
		s->refused = ARENA_ARRAY(s->cx->scratch, RemarkId, s->reads.n + 1);
		note_edges(s);
	}
	for (uint32_t k = 0; k < group->member.n; k++)
		s->depth[group->member.at[k]] = depth;
	s->gdepth.at[index] = depth;
}

/* Whether what the node reads has its place, but for what shares its kernel anyway. */
static bool
is_ready(Grouping *s, TensorId t, const bool *placed)
{
	const Node *n = tensor_node(s->g, t);
	s->node = t;
	s->reads.n = 0;
	node_walk(s->g, s->cx->scratch, n, note_read, s);
	for (uint32_t k = 0; k < s->reads.n; k++) {
		TensorId x = s->reads.at[k];
		bool same = is_node(s, x) && n->recur && tensor_node(s->g, x)->recur == n->recur;
		if (is_node(s, x) && !placed[x] && !same && !in_own_stream(s, x))
			return false;
	}
	return true;
}

static bool
stream_is_ready(Grouping *s, uint32_t index, const bool *placed)
{
	const Group *group = &s->out.group.at[index];
	for (uint32_t k = 0; k < group->member.n; k++)
		if (!is_ready(s, group->member.at[k], placed))
			return false;
	return true;
}

/* The node, and with it its stream, if what they need has a place. */
static bool
place_node(Grouping *s, TensorId t, bool *placed)
{
	uint32_t of = s->out.of[t];
	if (placed[t] || !(of ? stream_is_ready(s, of - 1, placed) : is_ready(s, t, placed)))
		return false;
	s->node = t;
	placed[t] = true;
	if (!of) {
		group_node(s);
		return true;
	}
	place_stream(s, of - 1);
	for (uint32_t k = 0; k < s->out.group.at[of - 1].member.n; k++)
		placed[s->out.group.at[of - 1].member.at[k]] = true;
	return true;
}

/* In the graph's order, but for what has to wait until a stream is complete: that is taken the next time round. */
static void
place_nodes(Grouping *s)
{
	bool *placed = ARENA_ARRAY(s->cx->scratch, bool, s->g->tensor.n), more = true;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < s->g->node.n; i++)
			more = place_node(s, s->g->node.at[i].out, placed) || more;
	}
	for (uint32_t i = 0; i < s->g->node.n; i++)
		if (!placed[s->g->node.at[i].out])
			bug(s->g->arena, "%%%u has no place", s->g->node.at[i].out);
}

Groups
group_nodes(Graph *g, PassCtx *cx, const bool *faulty, const bool *results)
{
	Grouping s = {.g = g, .cx = cx};
	s.facts = (RowsFacts){.stored = results, .faulty = faulty, .streams = results, .lanes = cx->options->lanes};
	s.out.of = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n);
	s.depth = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n);
	s.alone = ARENA_ARRAY(cx->scratch, RemarkId, g->tensor.n);
	s.last_reader = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n);
	group_streams(g, cx, faulty, results, &s.out, s.alone);
	for (uint32_t k = 0; k < s.out.group.n; k++)
		vec_push(cx->scratch, &s.gdepth, 0);
	place_nodes(&s);
	return s.out;
}
