/* schedule.c: from a tensor graph to a program: which kernels there are, in which order they run,
 * where their tensors live, and their TIR.
 *
 * One live node is one kernel, a recurrence's members share one. A kernel follows the kernels of all
 * it reads; copies into inouts come last. CONTRACT and MAP build what they take, NEST the rest. */
#include <string.h>

#include "passes/fuse/group.h"
#include "passes/schedule/schedule.h"

#include "passes/schedule/alternatives.h"
#include "passes/schedule/contract/halo.h"
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/roles.h"
#include "passes/schedule/contract/strips.h"
#include "passes/schedule/contract/threads.h"
#include "passes/schedule/contract/warps.h"
#include "passes/schedule/contract/window.h"
#include "passes/schedule/index/index.h"
#include "passes/schedule/pairwise/pairwise.h"
#include "passes/schedule/rows/held_columns.h"
#include "passes/schedule/rows/linear.h"
#include "passes/schedule/rows/rows.h"
#include "passes/schedule/stream/roles.h"
#include "passes/schedule/stream/threads.h"
#include "passes/schedule/stream/warps.h"
#include "passes/scratch.h"

enum { ACCESS_MAX = 0xffff }; /* a fault word has 16 bits for each of two */

typedef struct {
	Graph *g;
	PassCtx *cx;
	Groups groups;
	uint32_t *unit;        /* by TensorId: place in order; UINT32_MAX: not a live node */
	VEC(TensorId) order;   /* by place: the unit's first node */
	/* by node index: reads.at[first[i] .. first[i + 1]) are the tensors it reads */
	uint32_t ngrouped;     /* tensors there were when nodes were grouped */
	uint32_t *first;
	VEC(TensorId) reads;
	bool apart;            /* while siblings get kernels of their own, each node by itself */
} Schedule;

/* --- order --- */

static void
note_tensor(void *user, ExprId e)
{
	Schedule *s = user;
	const Expr *p = expr_get(s->g, e);
	if (p->op == OP_READ)
		vec_push(s->cx->scratch, &s->reads, p->ref);
}

static void
collect_reads(Schedule *s)
{
	s->first = ARENA_ARRAY(s->cx->scratch, uint32_t, (size_t)s->g->node.n + 1);
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		s->first[i] = s->reads.n;
		node_walk(s->g, s->cx->scratch, &s->g->node.at[i], note_tensor, s);
	}
	s->first[s->g->node.n] = s->reads.n;
}

/* The nodes of the unit of node t. */
static const TensorId *
members(const Schedule *s, const TensorId *t, uint32_t *n)
{
	const Graph *g = s->g;
	RecurId r = tensor_node(g, *t)->recur;
	uint32_t group = *t < s->ngrouped && !s->apart ? s->groups.of[*t] : 0;
	if (group) {
		*n = s->groups.group.at[group - 1].member.n;
		return s->groups.group.at[group - 1].member.at;
	}
	*n = r ? g->recur.at[r].member.n : 1;
	return r ? g->recur.at[r].member.at : t;
}

static void
place_unit(Schedule *s, TensorId t)
{
	uint32_t n;
	const TensorId *m = members(s, &t, &n);
	for (uint32_t k = 0; k < n; k++)
		s->unit[m[k]] = s->order.n;
	vec_push(s->cx->scratch, &s->order, m[0]);
}

/* Puts what t's unit reads on the stack, as far as it has no place yet; false when nothing. */
static bool
push_needed(Schedule *s, TensorId t, const bool *waiting, TensorId **stack, uint32_t *nstack, uint32_t *cap)
{
	uint32_t n, before = *nstack;
	const TensorId *m = members(s, &t, &n);
	for (uint32_t k = 0; k < n; k++) {
		uint32_t i = s->g->tensor.at[m[k]].node;
		for (uint32_t r = s->first[i]; r < s->first[i + 1]; r++) {
			TensorId x = s->reads.at[r];
			if (s->g->tensor.at[x].kind != TENSOR_NODE || s->unit[x] != UINT32_MAX || waiting[x])
				continue;
			*stack = arena_grow(s->cx->scratch, *stack, sizeof **stack, *nstack, cap, 1);
			(*stack)[(*nstack)++] = x;
		}
	}
	return *nstack > before;
}

static void
order_from(Schedule *s, TensorId root, bool *waiting)
{
	TensorId *stack = NULL;
	uint32_t n = 0, cap = 0;
	stack = arena_grow(s->cx->scratch, stack, sizeof *stack, n, &cap, 1);
	stack[n++] = root;
	while (n) {
		TensorId t = stack[n - 1];
		uint32_t count;
		const TensorId *m = members(s, &t, &count);
		for (uint32_t k = 0; k < count; k++)
			waiting[m[k]] = true;
		if (s->unit[t] == UINT32_MAX && push_needed(s, t, waiting, &stack, &n, &cap))
			continue;
		n--;
		if (s->unit[t] == UINT32_MAX)
			place_unit(s, t);
	}
}

static void
order_units(Schedule *s)
{
	Arena *scratch = s->cx->scratch;
	bool *waiting = ARENA_ARRAY(scratch, bool, s->g->tensor.n);
	s->unit = ARENA_ARRAY(scratch, uint32_t, s->g->tensor.n);
	for (uint32_t t = 0; t < s->g->tensor.n; t++)
		s->unit[t] = UINT32_MAX;
	for (uint32_t r = 0; r < s->g->result.n; r++)
		order_from(s, s->g->result.at[r].tensor, waiting);
	for (uint32_t i = 0; i < s->g->node.n; i++)
		if (s->g->node.at[i].reports)
			order_from(s, s->g->node.at[i].out, waiting);
}

/* --- places --- */

/* Whether t is a sibling, which has a kernel of its own too. */
static bool
is_sibling(const Schedule *s, TensorId t)
{
	uint32_t group = t < s->ngrouped ? s->groups.of[t] : 0;
	return group && s->groups.group.at[group - 1].siblings;
}

static Places
find_places(const Schedule *s)
{
	bool *apart = ARENA_ARRAY(s->cx->scratch, bool, s->g->tensor.n);
	for (TensorId t = 0; t < s->ngrouped; t++)
		apart[t] = is_sibling(s, t);
	return places_find(s->g, s->cx->scratch, s->unit, s->ngrouped, apart);
}

typedef struct {
	Schedule *s;
	RowsFacts facts;
} InPlace;

/* The order in which a stream's tasks read what others write is not looked at. */
static bool
write_in_place(void *user, const Result *r)
{
	const InPlace *p = user;
	TensorId t = r->tensor;
	if (!p->s->groups.of[t])
		return false;
	const Group *group = &p->s->groups.group.at[p->s->groups.of[t] - 1];
	return !group_is_closed(group) && rows_write_in_place(p->s->g, p->s->cx->scratch, &p->facts, group->member.at, group->member.n, r);
}

static void
place_inouts(Schedule *s)
{
	Places places = find_places(s);
	InPlace p = {s, {.stored = places.stored, .faulty = places.faulty, .streams = places.streams,
	                  .lanes = s->cx->options->lanes, .blocks = s->cx->options->blocks}};
	stage_inouts(s->g, s->cx, s->unit, write_in_place, &p);
}

/* --- kernels --- */

static Name
kernel_name(const Schedule *s, uint32_t index, TensorId t)
{
	const char *graph = name_text(s->g->names, s->g->name), *node = name_text(s->g->names, s->g->tensor.at[t].name);
	return name_cstr(s->g->names, arena_text(s->cx->scratch, "%s_k%u_%s", graph, index, node));
}

/* The shape of a kernel by rows; false when t is not for one. */
static bool
choose_rows(Schedule *s, const Places *places, TensorId t, KernelPlan *plan, BlockShapes *shapes, RemarkId *why)
{
	uint16_t lanes = s->cx->options->lanes;
	RowsFacts facts = {.stored = places->stored, .faulty = places->faulty, .streams = places->streams,
	                   .lanes = lanes, .blocks = s->cx->options->blocks};
	Rows *rows = ARENA_NEW(s->cx->scratch, Rows);
	Scan scan;
	if (facts.blocks && !linear_derive(s->g, s->cx->scratch, tensor_node(s->g, t), &scan, why) && *why)
		remark(s->cx, *why, t);
	if (!rows_plan(s->g, s->cx->scratch, &facts, plan->node, plan->nnode, TMPL_NONE, rows, why)) {
		if (tensor_node(s->g, t)->recur)
			remark(s->cx, *why, t);
		return false;
	}
	plan->tmpl = (uint8_t)rows->tmpl;
	plan->lanes = lanes;
	plan->unroll = (uint16_t)rows->copies;
	if (facts.blocks)
		*shapes = block_shapes(s->g, s->cx->scratch, s->cx->options, rows, places->faulty);
	return true;
}

/* The stream of the unit of t, whose plan then says how; NULL: it was not made to be streamed. */
static Stream *
choose_stream(Schedule *s, const Places *places, TensorId t, KernelPlan *plan)
{
	Refusal why;
	uint32_t group = t < s->ngrouped ? s->groups.of[t] : 0;
	RowsFacts facts = {.stored = places->stored, .faulty = places->faulty, .lanes = s->cx->options->lanes, .blocks = s->cx->options->blocks};
	if (!group || !s->groups.group.at[group - 1].stream)
		return NULL;
	Stream *stream = ARENA_NEW(s->cx->scratch, Stream);
	if (!stream_plan(s->g, s->cx->scratch, &facts, plan->node, plan->nnode, stream, &why) ||
	    !stream_size(s->g, s->cx->scratch, stream, s->cx->options, plan))
		bug(s->g->arena, "the stream of %%%u has no kernel", t);
	return stream;
}

/* tiles: kernels of tiles go before it. */
static void
choose_plan(Schedule *s, const Places *places, TensorId t, bool tiles, KernelPlan *plan, BlockShapes *shapes)
{
	uint32_t n;
	const TensorId *m = members(s, &t, &n);
	RemarkId why = REMARK_NONE;
	if (n > KP_MAX_NODES)
		arena_unwind(s->g->arena, UNWIND_LIMIT, "a recurrence of %u definitions; %u are possible", n,
		             (unsigned)KP_MAX_NODES);
	*plan = (KernelPlan){.tmpl = TMPL_NEST, .unroll = 1, .nnode = (uint16_t)n};
	for (uint32_t k = 0; k < n; k++)
		plan->node[k] = m[k];
	if (n == 1 && !tiles && contract_is_sum_of_products(s->g, t)) {
		if (contract_takes(s->g, s->cx->scratch, places->faulty, t, s->cx->options, plan, &why))
			return;
		remark(s->cx, why, t);
	}
	if (n == 1 && index_takes(s->g, s->cx->scratch, places, t, s->cx->options, plan, shapes))
		return;
	if (choose_stream(s, places, t, plan))
		return;
	if (!choose_rows(s, places, t, plan, shapes, &why) && n > 1 && !tensor_node(s->g, t)->recur)
		bug(s->g->arena, "the group of %%%u has no kernel: %s", t, remark_info[why].text);
}

/* The blocks of a kernel are its plan's: what a template writes for lanes becomes their threads' code in passes/tile/spread.c, what it
 * writes for threads is so from the start. */
static void
lay_out(TirKernel *k, const KernelPlan *p)
{
	if (!p->threads)
		return;
	bool by_lanes = p->tmpl != TMPL_CONTRACT && p->tmpl != TMPL_STREAM && p->tmpl != TMPL_PAIRWISE;
	k->form = by_lanes ? TIR_BLOCK : TIR_SPREAD;
	k->threads = p->threads;
	k->group = p->group;
	k->anywhere = by_lanes && p->anywhere;
	k->cluster = p->cluster;
	k->columns = by_lanes ? p->columns : 0;
	k->resident = p->resident;
}

static void
build_from_plan(Schedule *s, Program *p, const Places *places, const KernelPlan *plan, Arena *scratch)
{
	vec_grow(s->g->arena, &p->kernel, 1);
	uint32_t index = p->kernel.n - 1;
	Kernel *k = &p->kernel.at[index];
	TensorId t = plan->node[0];
	k->plan = *plan;
	k->tir = tir_new(s->g->arena, s->g->names, kernel_name(s, index, t));
	lay_out(k->tir, plan);
	switch ((Template)k->plan.tmpl) {
	case TMPL_NEST: nest_build(s->g, scratch, places, k); break;
	case TMPL_MAP: case TMPL_ROWRED: case TMPL_COLRED: case TMPL_FULLRED: case TMPL_SCAN:
		rows_build(s->g, scratch, places, k);
		break;
	case TMPL_INDEX: index_build(s->g, scratch, places, k); break;
	case TMPL_CONTRACT:
		if (k->plan.joins)
			contract_join_build(s->g, scratch, places, k);
		else if (contract_is_strips(&k->plan))
			contract_strips_build(s->g, scratch, places, k, s->cx->options);
		else if (k->plan.halo)
			contract_halo_build(s->g, scratch, places, s->cx->options, k);
		else if (contract_is_warps(&k->plan))
			contract_warps_build(s->g, scratch, places, s->cx->options, k);
		else if (k->plan.threads && k->plan.lanes)
			contract_threads_build(s->g, scratch, places, s->cx->options, k);
		else if (k->plan.threads && contract_window_could(s->g, scratch, places->faulty, t, s->cx->options))
			contract_window_build(s->g, scratch, places, k, s->cx->options);
		else if (k->plan.threads)
			contract_roles_build(s->g, scratch, places, k, s->cx->options);
		else
			contract_build(s->g, scratch, places, k);
		break;
	case TMPL_STREAM:
		if (stream_is_warps(&k->plan))
			stream_warps_build(s->g, scratch, places, s->cx->options, k);
		else if (k->plan.threads > ST_THREADS)
			stream_roles_build(s->g, scratch, places, k);
		else if (k->plan.threads)
			stream_threads_build(s->g, scratch, places, k);
		else
			stream_build(s->g, scratch, places, k);
		break;
	case TMPL_PAIRWISE: pairwise_build(s->g, scratch, places, s->cx->options, k); break;
	case TMPL_NONE: case TMPL_BUNDLE: bug(s->g->arena, "%%%u has no template", t);
	}
	if (tensor_node(s->g, t)->when)
		k->ntask = expr_binary(s->g, OP_MUL, k->ntask, tensor_node(s->g, t)->when);
}

/* The plans by matrix instructions; roles take whatever warps would. */
static unsigned
take_stream_units(Schedule *s, const Places *places, const Stream *stream, KernelPlan *plan)
{
	unsigned n = stream_roles_take(s->g, s->cx->scratch, stream, places->stored, s->cx->options, plan);
	return n ? n : stream_warps_take(s->g, s->cx->scratch, stream, places->stored, s->cx->options, plan);
}

/* Those of a unit that was made to be streamed. */
static unsigned
take_stream(Schedule *s, const Places *places, TensorId t, KernelPlan *plan)
{
	KernelPlan whole = {0};
	uint32_t n;
	const TensorId *m = members(s, &t, &n);
	whole.nnode = (uint16_t)n;
	memcpy(whole.node, m, n * sizeof *m);
	const Stream *stream = s->cx->options->blocks ? choose_stream(s, places, t, &whole) : NULL;
	if (!stream)
		return 0;
	unsigned count = take_stream_units(s, places, stream, plan);
	for (unsigned k = 0; k < count; k++) {
		plan[k].nnode = whole.nnode;
		memcpy(plan[k].node, whole.node, sizeof whole.node);
	}
	return count;
}

/* The kernels of tiles that go before the others of node t: how many. */
static unsigned
build_tiles(Schedule *s, Program *p, const Places *places, TensorId t, Arena *scratch)
{
	KernelPlan plan[STRIPS_MOST_PLANS + ROLES_MOST_PLANS + WINDOW_MOST_PLANS + WARPS_MOST_PLANS + HALO_MOST_PLANS + CONTRACT_THREADS_PLANS + PAIRWISE_PLANS];
	uint32_t n;
	unsigned count = 0;
	const TensorId *m = members(s, &t, &n);
	if (n != 1)
		count = take_stream(s, places, t, plan);
	if (!count && (n != 1 || !contract_is_sum_of_products(s->g, t)))
		count = pairwise_take(s->g, s->cx->scratch, places, m, n, s->cx->options, plan);
	if (!count && n == 1) {
		unsigned strips = contract_strips_take(s->g, s->cx->scratch, places, t, s->cx->options, plan);
		unsigned roles = contract_roles_take(s->g, s->cx->scratch, places, t, s->cx->options, plan + strips);
		count = strips + roles;
		count += contract_window_take(s->g, s->cx->scratch, places, t, s->cx->options, plan + count);
		unsigned thirds = roles && plan[strips].thirds ? roles : 0; /* which do not leave small sizes to whatever takes all */
		if (!roles || thirds) /* others of which take whatever those of warps would */
			count += contract_warps_take(s->g, s->cx->scratch, places, t, s->cx->options, count > strips + thirds, plan + count);
		count += contract_halo_take(s->g, s->cx->scratch, places, t, s->cx->options, plan + count);
		count += contract_threads_take(s->g, s->cx->scratch, places, t, s->cx->options, count > strips + thirds, plan + count);
	}
	for (unsigned k = 0; k < count; k++) {
		build_from_plan(s, p, places, &plan[k], scratch);
		p->kernel.at[p->kernel.n - 1].aligned = true;
		p->kernel.at[p->kernel.n - 1].follows = plan[k].joins;
		p->kernel.at[p->kernel.n - 1].alternative = k > 0;
		arena_free(scratch);
	}
	return count;
}

/* Behind kernels of tiles, what is left has few rows or columns, or few terms: none of its rows needs several blocks. Nor does what is
 * made for such kernels (Node.when). */
static void
drop_clusters(BlockShapes *shapes)
{
	unsigned n = 0;
	for (unsigned k = 0; k < shapes->n; k++)
		if (!shapes->at[k].cluster)
			shapes->at[n++] = shapes->at[k];
	shapes->n = n;
}

/* The kernel of a plan that takes any size; on a processor, with what tuning files have in its place for some. */
static void
build_plan(Schedule *s, Program *p, const Places *places, const KernelPlan *plan, Arena *scratch)
{
	KernelPlan other[PLAN_VARIANTS];
	build_from_plan(s, p, places, plan, scratch);
	unsigned n = s->cx->options->blocks ? 0 : plan_variants(plan, other);
	uint64_t unit = n && s->cx->options->nchoice ? unit_digest(s->g, scratch, plan->node, plan->nnode) : 0;
	for (unsigned k = 0; k < n && unit; k++)
		if (plan_is_chosen(s->cx->options, s->g, scratch, unit, &other[k])) {
			build_from_plan(s, p, places, &other[k], scratch);
			alternative_set_aside(p);
		}
}

static void
take_shape(KernelPlan *plan, const BlockShape *b)
{
	plan->threads = b->threads;
	plan->group = b->group;
	plan->anywhere = b->anywhere;
	plan->lanes = b->lanes;
	plan->cluster = b->cluster;
	plan->columns = b->columns;
	plan->resident = b->resident;
	plan->held = b->held;
	plan->filled = b->filled;
	plan->short_axis = b->short_axis;
	plan->flat = b->flat;
	plan->once = b->once;
	plan->posts = b->posts;
	plan->long_sums = b->long_sums;
	plan->unroll = 1;
}

static void
build_kernel(Schedule *s, Program *p, const Places *places, TensorId t, Arena *scratch)
{
	KernelPlan plan;
	BlockShapes shapes = {0};
	uint32_t first = p->kernel.n;
	bool tiles = build_tiles(s, p, places, t, scratch) > 0;
	choose_plan(s, places, t, tiles, &plan, &shapes);
	if (tiles || tensor_node(s->g, t)->when)
		drop_clusters(&shapes);
	if (!shapes.n) {
		uint32_t any = p->kernel.n;
		build_plan(s, p, places, &plan, scratch);
		p->kernel.at[any].otherwise = p->kernel.at[any].alternative = tiles;
	}
	for (unsigned n = 0; n < shapes.n; n++) {
		take_shape(&plan, &shapes.at[n]);
		build_from_plan(s, p, places, &plan, scratch);
		Kernel *k = &p->kernel.at[p->kernel.n - 1];
		k->aligned = n + 1 < shapes.n;
		k->otherwise = (n > 0 || tiles) && n + 1 == shapes.n;
		k->alternative = n > 0 || tiles;
		arena_free(scratch);
	}
	unit_choose(p, s->cx, scratch, first, false);
}

/* A stream whose folds are whole: of many rows. */
static void
build_whole_stream(Schedule *s, Program *p, HeldColumns *c, Arena *scratch)
{
	KernelPlan plan[STREAM_ROLES_PLANS + 1];
	uint32_t first = p->kernel.n;
	unsigned tiles = take_stream_units(s, &c->places, c->stream, plan);
	plan[tiles] = c->plan;
	for (unsigned k = 0; k <= tiles; k++) {
		plan[k].nnode = c->plan.nnode;
		memcpy(plan[k].node, c->plan.node, sizeof plan[k].node);
		build_from_plan(s, p, &c->places, &plan[k], scratch);
		Kernel *x = &p->kernel.at[p->kernel.n - 1];
		ExprId many = expr_binary(s->g, OP_LE, expr_int(s->g, DT_I64, 2), c->parts);
		x->ntask = expr_select(s->g, many, expr_int(s->g, DT_I64, 0), x->ntask);
		x->aligned = k < tiles;
		x->otherwise = tiles && k == tiles;
		x->alternative = k > 0;
		arena_free(scratch);
	}
	unit_choose(p, s->cx, scratch, first, false);
}

/* Folds of columns and what reads them: by those who hold the columns, where these are short enough, else in parts. Streams of
 * many rows likewise. */
static unsigned
build_columns(Schedule *s, Program *p, const Places *places, uint32_t place, Arena *scratch)
{
	HeldColumns c;
	unsigned units = columns_find(s->g, s->cx, places, s->unit, s->order.n, place, &c);
	if (!units)
		return 0;
	columns_swap(s->g, &c);
	if (c.stream)
		build_whole_stream(s, p, &c, scratch);
	for (unsigned k = 0; !c.stream && k < c.shapes.n; k++) {
		take_shape(&c.plan, &c.shapes.at[k]);
		build_from_plan(s, p, &c.places, &c.plan, scratch);
		p->kernel.at[p->kernel.n - 1].aligned = true;
		p->kernel.at[p->kernel.n - 1].alternative = k > 0;
		arena_free(scratch);
	}
	columns_swap(s->g, &c);
	uint32_t first = p->kernel.n;
	for (unsigned k = 0; k < units; k++) {
		build_kernel(s, p, places, s->order.at[place + k], scratch);
		arena_free(scratch);
	}
	for (uint32_t k = first; k < p->kernel.n; k++) {
		Kernel *x = &p->kernel.at[k];
		x->covered = true;
		x->room = c.stream ? raster_reaches(s->g, c.parts, 2) : 0;
		if (x->room) /* where whole folds have no task, there is none in parts either */
			x->ntask = expr_binary(s->g, OP_MUL, x->ntask, x->room);
	}
	return units;
}

/* Sums that share a factor: together, where a kernel suits the sizes, else each node on its own. */
static void
build_siblings(Schedule *s, Program *p, const Places *places, TensorId t, Arena *scratch)
{
	KernelPlan plan[ROLES_MOST_PLANS];
	uint32_t n, first;
	const TensorId *m = members(s, &t, &n);
	unsigned count = contract_siblings_take(s->g, s->cx->scratch, places, m, n, s->cx->options, plan);
	for (unsigned k = 0; k < count; k++) {
		build_from_plan(s, p, places, &plan[k], scratch);
		p->kernel.at[p->kernel.n - 1].aligned = true;
		p->kernel.at[p->kernel.n - 1].alternative = k > 0;
		arena_free(scratch);
	}
	if (count)
		unit_choose(p, s->cx, scratch, p->kernel.n - count, true);
	first = p->kernel.n;
	s->apart = true;
	for (uint32_t k = 0; k < n; k++)
		build_kernel(s, p, places, m[k], scratch);
	s->apart = false;
	for (uint32_t k = first; count && k < p->kernel.n; k++)
		p->kernel.at[k].covered = true;
}

static void
check_limits(const Graph *g)
{
	if (g->access.n > ACCESS_MAX + 1u)
		arena_unwind(g->arena, UNWIND_LIMIT, "%u accesses are checked as they run; %u are possible",
		             g->access.n - 1, (unsigned)ACCESS_MAX);
}

static const bool *
find_results(const Schedule *s)
{
	bool *results = ARENA_ARRAY(s->cx->scratch, bool, s->g->tensor.n);
	for (uint32_t r = 0; r < s->g->result.n; r++)
		results[s->g->result.at[r].tensor] = true;
	return results;
}

/* Computes nodes in several kernels, if these are then predicted to take less. */
static bool
recompute(Schedule *s, const bool *results, bool inside)
{
	Graph *g = s->g;
	Node *before = ARENA_ARRAY(s->cx->scratch, Node, g->node.n);
	for (uint32_t i = 0; i < g->node.n; i++)
		before[i] = g->node.at[i];
	if (recompute_points(g, s->cx, &s->groups, results, inside) == 0)
		return false;
	Groups after = group_nodes(g, s->cx, graph_may_fault(g, s->cx->scratch), results);
	if (after.us < s->groups.us * (1 - 1e-9))
		return true;
	for (uint32_t i = 0; i < g->node.n; i++)
		g->node.at[i] = before[i];
	return false;
}

/* What is known of the nodes as they stand. */
typedef struct {
	const bool *faulty, *results;
} Known;

static Known
group_all(Schedule *s)
{
	Known k = {graph_may_fault(s->g, s->cx->scratch), find_results(s)};
	s->groups = group_nodes(s->g, s->cx, k.faulty, k.results);
	return k;
}

/* Without what is not used; tensors get other numbers. */
static Known
group_again(Schedule *s)
{
	pass_dce(s->g, s->cx);
	return group_all(s);
}

/* On a processor: computes pointwise nodes as panels are filled, what depends on fewer axes ahead of that. */
static Known
fill(Schedule *s, Known k)
{
	const bool *part = factor_parts(s->g, s->cx, k.faulty, k.results, &s->groups);
	if (part)
		k = group_all(s);
	uint32_t done = fill_panels(s->g, s->cx, k.faulty, k.results, &s->groups);
	if (part)
		done += factor_parts_back(s->g, part);
	while (done) {
		k = group_again(s);
		done = fill_panels(s->g, s->cx, k.faulty, k.results, &s->groups);
	}
	return k;
}

static void
group(Schedule *s)
{
	Known k = group_all(s);
	if (s->cx->options->fuse == FUSE_ALL && (recompute(s, k.results, false) || recompute(s, k.results, true)))
		k = group_again(s);
	if (s->cx->options->fuse == FUSE_ALL && !s->cx->options->blocks)
		k = fill(s, k);
	for (uint32_t n = 0; n < s->groups.note.n; n++)
		remark_text(s->cx, s->groups.note.at[n].why, s->groups.note.at[n].about, s->groups.note.at[n].text);
	share_in_groups(s->g, s->cx, k.faulty, k.results, &s->groups);
	k.faulty = graph_may_fault(s->g, s->cx->scratch);
	transpose_reads_of_groups(s->g, s->cx, k.faulty, find_results(s), &s->groups);
	s->ngrouped = s->g->tensor.n;
}

Program *
plan_schedule(Graph *g, PassCtx *cx)
{
	Schedule s = {.g = g, .cx = cx};
	Program *p = ARENA_NEW(g->arena, Program);
	ScratchPool pool;
	Arena scratch;
	p->graph = g;
	p->tuned = cx->options->nchoice ? ARENA_ARRAY(g->arena, uint8_t, cx->options->nchoice) : NULL;
	check_limits(g);
	own_results(g, cx);
	group(&s);
	collect_reads(&s);
	order_units(&s);
	uint32_t nnode = g->node.n;
	place_inouts(&s);
	Places places = find_places(&s);
	scratch_pool_init(&pool, cx->scratch);
	scratch_arena_init(&pool, &scratch);
	for (uint32_t k = 0; k < s.groups.unfused.n; k++) {
		Unfused u = s.groups.unfused.at[k];
		vec_push(g->arena, &p->unfused, ((UnfusedEdge){u.from, u.to, remark_info[u.why].id, unfused_text(g->arena, &u)}));
	}
	for (uint32_t k = 0; k < s.order.n; k++) {
		unsigned units = build_columns(&s, p, &places, k, &scratch);
		if (units)
			k += units - 1;
		else if (is_sibling(&s, s.order.at[k]))
			build_siblings(&s, p, &places, s.order.at[k], &scratch);
		else
			build_kernel(&s, p, &places, s.order.at[k], &scratch);
		arena_free(&scratch);
	}
	for (uint32_t i = nnode; i < g->node.n; i++) {
		build_kernel(&s, p, &places, g->node.at[i].out, &scratch);
		arena_free(&scratch);
	}
	if (cx->options->blocks && cx->options->fuse == FUSE_ALL)
		bundle_kernels(p, &scratch);
	arena_free(&scratch);
	return p;
}
