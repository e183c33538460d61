/* regions.c: see regions.h. A region is a kernel if no kernel outside of it would have to run between two of
 * its nodes, and if rows_plan finds one. Its time is the cost model's, for as many tasks as it has rows: a
 * region that loses rows computes less at once. What is known at launch alone is taken to be of some size. */
#include "passes/fuse/regions.h"

#include <math.h>
#include <string.h>

#include "passes/schedule/rows/prefixes.h"
#include "passes/schedule/schedule.h"

/* --- who reads whom --- */

typedef struct {
	Regions *r;
	TensorId node;
} Reading;

static void
note_read(void *user, ExprId e)
{
	const Reading *x = user;
	Regions *r = x->r;
	const Expr *p = expr_get(r->g, e);
	TensorList *reads = &r->reads[x->node];
	if (p->op != OP_READ || r->g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return;
	for (uint32_t k = 0; k < reads->list.n; k++)
		if (reads->list.at[k] == p->ref)
			return;
	vec_push(r->cx->scratch, &reads->list, p->ref);
	vec_push(r->cx->scratch, &r->readers[p->ref].list, x->node);
}

static bool
is_node(const Regions *r, TensorId t)
{
	return r->g->tensor.at[t].kind == TENSOR_NODE;
}

/* --- units and their order --- */

static uint32_t
new_unit(Regions *r, TensorId t)
{
	vec_push(r->cx->scratch, &r->unit, ((Unit){0}));
	vec_push(r->cx->scratch, &r->unit.at[r->unit.n - 1].member.list, t);
	return r->unit.n - 1;
}

void
regions_merge(Regions *r, const TensorId *node, uint32_t n)
{
	uint32_t into = r->unit_of[node[0]];
	for (uint32_t k = 1; k < n; k++) {
		Unit *from = &r->unit.at[r->unit_of[node[k]]], *to = &r->unit.at[into];
		if (from == to)
			continue;
		for (uint32_t m = 0; m < from->member.list.n; m++) {
			r->unit_of[from->member.list.at[m]] = into;
			vec_push(r->cx->scratch, &to->member.list, from->member.list.at[m]);
		}
		from->member.list.n = 0;
	}
}

/* Whether all that the unit reads has its place. */
static bool
is_ready(const Regions *r, uint32_t unit, const bool *placed)
{
	const Unit *u = &r->unit.at[unit];
	for (uint32_t m = 0; m < u->member.list.n; m++) {
		const TensorList *reads = &r->reads[u->member.list.at[m]];
		for (uint32_t k = 0; k < reads->list.n; k++) {
			TensorId t = reads->list.at[k];
			if (is_node(r, t) && r->unit_of[t] != unit && !placed[r->unit_of[t]])
				return false;
		}
	}
	return true;
}

/* One more than that of all it reads. */
static uint32_t
depth_of(const Regions *r, uint32_t unit)
{
	const Unit *u = &r->unit.at[unit];
	uint32_t depth = 0;
	for (uint32_t m = 0; m < u->member.list.n; m++) {
		const TensorList *reads = &r->reads[u->member.list.at[m]];
		for (uint32_t k = 0; k < reads->list.n; k++) {
			TensorId t = reads->list.at[k];
			if (is_node(r, t) && r->unit_of[t] != unit && r->depth[r->unit_of[t]] >= depth)
				depth = r->depth[r->unit_of[t]] + 1;
		}
	}
	return depth;
}

/* In the graph's order, but for what has to wait until a unit is complete: that is taken the next time round. */
void
regions_order(Regions *r)
{
	bool *placed = ARENA_ARRAY(r->cx->scratch, bool, r->unit.n + 1), more = true;
	uint32_t n = 0;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < r->g->node.n; i++) {
			uint32_t u = r->unit_of[r->g->node.at[i].out];
			if (placed[u] || !is_ready(r, u, placed))
				continue;
			placed[u] = more = true;
			r->place[u] = n++;
			r->depth[u] = depth_of(r, u);
		}
	}
	for (uint32_t i = 0; i < r->g->node.n; i++)
		if (!placed[r->unit_of[r->g->node.at[i].out]])
			bug(r->g->arena, "%%%u has no place", r->g->node.at[i].out);
}

/* --- whether kernels outside would have to run between two of the nodes --- */

typedef struct {
	Regions *r;
	VEC(uint32_t) waiting; /* units */
	uint32_t last;         /* place of the region's last unit */
} Search;

/* Puts what reads the unit, and may come before one of the region, on the list; true: one of the region does. */
static bool
look_behind(Search *s, uint32_t unit, bool own)
{
	Regions *r = s->r;
	for (uint32_t m = 0; m < r->unit.at[unit].member.list.n; m++) {
		const TensorList *readers = &r->readers[r->unit.at[unit].member.list.at[m]];
		for (uint32_t k = 0; k < readers->list.n; k++) {
			uint32_t u = r->unit_of[readers->list.at[k]];
			if (r->seen[u] == r->stamp && !own)
				return true;
			if (r->seen[u] >= r->stamp || r->place[u] > s->last)
				continue;
			r->seen[u] = r->stamp + 1;
			vec_push(r->cx->scratch, &s->waiting, u);
		}
	}
	return false;
}

bool
regions_has_between(Regions *r, const TensorId *node, uint32_t n)
{
	Search s = {.r = r};
	r->stamp += 2; /* stamp: of the region; stamp + 1: was on the list */
	for (uint32_t k = 0; k < n; k++) {
		uint32_t u = r->unit_of[node[k]];
		r->seen[u] = r->stamp;
		s.last = r->place[u] > s.last ? r->place[u] : s.last;
	}
	for (uint32_t k = 0; k < n; k++)
		look_behind(&s, r->unit_of[node[k]], true);
	while (s.waiting.n)
		if (look_behind(&s, s.waiting.at[--s.waiting.n], false))
			return true;
	return false;
}

/* --- time --- */

static double
extent(const Regions *r, ExprId e)
{
	int64_t v;
	return launch_value(&r->env, e, &v) && v > 0 ? (double)v : 1;
}

static KernelShape
shape_of(const Regions *r, const Rows *rows)
{
	KernelShape s = {.tmpl = rows->tmpl, .vectors = true, .tasks = 1};
	double side = !rows->lanes_by_row ? 1 : r->facts.blocks ? BLOCK_COLUMNS : r->facts.lanes;
	for (unsigned k = 0; k < rows->nrow; k++)
		s.tasks *= extent(r, rows->extent[k]);
	if (rows->across)
		s.tasks = extent(r, rows->loop[rows->across - rows->nrow].hi);
	s.tasks /= side;
	for (unsigned m = 0; m < rows->nmember; m++) {
		const RowMember *x = &rows->member[m];
		double bytes = dtype_info[r->g->tensor.at[x->t].dtype].bits / 8.0 * side;
		for (unsigned k = 0; x->panel && k < x->npanel; k++)
			bytes *= extent(r, r->g->tensor.at[x->t].extent[x->panel_axis[k]]);
		s.kept += x->panel ? bytes : 0;
	}
	return s;
}

static bool
all_pointwise(const Regions *r, const TensorId *node, uint32_t n)
{
	for (uint32_t k = 0; k < n; k++)
		if (tensor_node(r->g, node[k])->monoid != MON_NONE)
			return false;
	return true;
}

/* Whether two of more nodes, of which one reads the other, have no row in common: then neither have all. */
static bool
has_strangers(Regions *r, const TensorId *node, uint32_t n)
{
	for (uint32_t k = 1; k < n && n > 2; k++) {
		const TensorList *reads = &r->reads[node[k]];
		for (uint32_t j = 0; j < k; j++) {
			TensorId pair[2] = {node[j], node[k]};
			RemarkId why = REMARK_NONE;
			for (uint32_t i = 0; i < reads->list.n && !why; i++)
				if (reads->list.at[i] == node[j])
					regions_us(r, pair, 2, INFINITY, &why);
			if (why == REMARK_rows_differ)
				return true;
		}
	}
	return false;
}

/* Whether a node that is not among these reads t. */
static bool
is_read_outside(const Regions *r, const TensorId *node, uint32_t n, TensorId t)
{
	for (uint32_t k = 0; k < r->readers[t].list.n; k++) {
		bool inside = false;
		for (uint32_t m = 0; m < n; m++)
			inside |= node[m] == r->readers[t].list.at[k];
		if (!inside)
			return true;
	}
	return false;
}

/* The rows of the nodes as a kernel's: what others read of them is stored. */
static bool
plan_region(Regions *r, const TensorId *node, uint32_t n, Rows *rows, RemarkId *why)
{
	RowsFacts facts = r->facts;
	facts.stored = r->stored;
	for (uint32_t k = 0; k < n; k++)
		r->stored[node[k]] = r->facts.stored[node[k]] || is_read_outside(r, node, n, node[k]);
	bool ok = rows_plan(r->g, r->cx->scratch, &facts, node, n, TMPL_NONE, rows, why);
	for (uint32_t k = 0; k < n; k++)
		r->stored[node[k]] = r->facts.stored[node[k]];
	return ok;
}

static double
time_region(Regions *r, const TensorId *node, uint32_t n, double enough, RemarkId *why, bool *known)
{
	Arena *a = r->cx->scratch;
	*why = REMARK_NONE;
	if (n > ROWS_MAX_MEMBERS)
		*why = REMARK_rows_many_members;
	else if (n > 1 && r->cx->options->fuse == FUSE_ELEMENTWISE && !all_pointwise(r, node, n))
		*why = REMARK_group_elementwise;
	else if (n > 1 && regions_has_between(r, node, n))
		*why = REMARK_group_order;
	else if (has_strangers(r, node, n))
		*why = REMARK_rows_differ;
	if (*why)
		return INFINITY;
	Work w = work_count(&r->env, &r->uses, node, n);
	KernelShape best = {.vectors = true, .tasks = INFINITY};
	double least = cost_shape_us(r->machine, &best, &w, r->machine->threads);
	*known = least < enough;
	if (!*known)
		return least;
	Rows *rows = ARENA_NEW(a, Rows);
	if (!plan_region(r, node, n, rows, why)) {
		KernelShape nest = {.tmpl = TMPL_NEST, .tasks = INFINITY};
		return n > 1 ? INFINITY : cost_shape_us(r->machine, &nest, &w, r->machine->threads);
	}
	KernelShape s = shape_of(r, rows);
	return cost_shape_us(r->machine, &s, &w, r->machine->threads);
}

/* --- what was asked before --- */

static uint64_t
hash_of(const TensorId *node, uint32_t n)
{
	uint64_t h = 0x9e3779b97f4a7c15u + n;
	for (uint32_t k = 0; k < n; k++)
		h = (h ^ node[k]) * 0xff51afd7ed558ccdu, h ^= h >> 32;
	return h;
}

/* Where in the table the region is, or would be. */
static uint32_t *
slot_of(Regions *r, uint64_t hash, const TensorId *node, uint32_t n)
{
	for (uint32_t at = (uint32_t)hash & (r->nslot - 1);; at = (at + 1) & (r->nslot - 1)) {
		uint32_t *slot = &r->slot[at];
		const KnownRegion *x = *slot ? &r->known.at[*slot - 1] : NULL;
		if (!x || (x->hash == hash && x->n == n && memcmp(&r->node.at[x->first], node, n * sizeof *node) == 0))
			return slot;
	}
}

static void
grow_table(Regions *r)
{
	if (r->nslot > 2 * r->known.n)
		return;
	r->nslot = r->nslot ? 2 * r->nslot : 64;
	r->slot = ARENA_ARRAY(r->cx->scratch, uint32_t, r->nslot);
	for (uint32_t k = 0; k < r->known.n; k++) {
		const KnownRegion *x = &r->known.at[k];
		*slot_of(r, x->hash, &r->node.at[x->first], x->n) = k + 1;
	}
}

double
regions_us(Regions *r, const TensorId *node, uint32_t n, double enough, RemarkId *why)
{
	uint64_t hash = hash_of(node, n);
	bool known = true;
	uint32_t seen = r->nslot ? *slot_of(r, hash, node, n) : 0;
	if (seen) {
		*why = r->known.at[seen - 1].why;
		return r->known.at[seen - 1].us;
	}
	double us = time_region(r, node, n, enough, why, &known);
	if (!known)
		return us;
	vec_push(r->cx->scratch, &r->known, ((KnownRegion){hash, r->node.n, n, us, *why}));
	for (uint32_t k = 0; k < n; k++)
		vec_push(r->cx->scratch, &r->node, node[k]);
	grow_table(r);
	*slot_of(r, hash, node, n) = r->known.n;
	return us;
}

double
regions_contraction_us(Regions *r, TensorId t)
{
	Work w = work_count(&r->env, &r->uses, &t, 1);
	KernelShape s = {.tmpl = TMPL_CONTRACT, .vectors = true, .tasks = INFINITY};
	return cost_shape_us(r->machine, &s, &w, r->machine->threads);
}

/* --- the start --- */

/* Sizes that stand for those of a launch. */
void
regions_take_sizes(Regions *r, int64_t size)
{
	r->known.n = r->node.n = r->nslot = 0;
	launch_env_init(&r->env, r->g, r->cx->scratch);
	for (DimId d = 1; d < r->g->dim.n; d++) {
		const Dim *x = &r->g->dim.at[d];
		r->env.dim[d] = x->fixed ? x->value : x->hint > 0 ? x->hint : size;
		r->env.dim_known[d] = true;
	}
	for (uint32_t k = 0; k < r->g->param.n; k++)
		if (r->g->tensor.at[r->g->param.at[k]].kind == TENSOR_SCALAR) {
			r->env.scalar[r->g->param.at[k]] = REGION_SIZE;
			r->env.scalar_known[r->g->param.at[k]] = true;
		}
}

static void
make_units(Regions *r, const Groups *streams)
{
	for (uint32_t i = 0; i < r->g->node.n; i++)
		r->unit_of[r->g->node.at[i].out] = new_unit(r, r->g->node.at[i].out);
	for (uint32_t k = 0; k < streams->group.n; k++)
		regions_merge(r, streams->group.at[k].member.at, streams->group.at[k].member.n);
	for (RecurId k = 1; k < r->g->recur.n; k++)
		if (r->g->recur.at[k].member.n)
			regions_merge(r, r->g->recur.at[k].member.at, r->g->recur.at[k].member.n);
	r->place = ARENA_ARRAY(r->cx->scratch, uint32_t, r->unit.n + 1);
	r->depth = ARENA_ARRAY(r->cx->scratch, uint32_t, r->unit.n + 1);
	r->seen = ARENA_ARRAY(r->cx->scratch, uint32_t, r->unit.n + 1);
	regions_order(r);
}

void
regions_init(Regions *r, Graph *g, PassCtx *cx, const RowsFacts *facts, const Groups *streams)
{
	Arena *a = cx->scratch;
	*r = (Regions){.g = g, .cx = cx, .facts = *facts};
	r->machine = cost_machine(cx->options->blocks, cx->options->lanes);
	r->reads = ARENA_ARRAY(a, TensorList, g->tensor.n);
	r->readers = ARENA_ARRAY(a, TensorList, g->tensor.n);
	r->unit_of = ARENA_ARRAY(a, uint32_t, g->tensor.n);
	r->stored = group_facts(a, facts->stored, g->tensor.n, 0);
	for (uint32_t i = 0; i < g->node.n; i++) {
		Reading x = {r, g->node.at[i].out};
		node_walk(g, a, &g->node.at[i], note_read, &x);
	}
	make_units(r, streams);
	regions_take_sizes(r, r->facts.blocks ? REGION_GPU_SIZE : REGION_SIZE);
	use_table_init(&r->uses, g, a);
	for (uint32_t i = 0; i < g->node.n; i++) {
		Scan scan;
		RemarkId why;
		r->uses.steps[g->node.at[i].out] = scan_derive(g, a, &g->node.at[i], &scan, &why);
	}
	cost_note_panels(&r->uses, g, facts->faulty, cx->options);
}
