/* group.c: which nodes share a kernel by rows (passes/schedule/rows/rows.h).
 *
 * Nodes that the rows take, and that are linked, are divided into regions so that the predicted time of their
 * kernels is least (partition.c). Two are linked when one reads the other, or both read the same. What fuses
 * saves a start and the bytes between; what it may cost are rows that could have run at once, and memory
 * that a task has to keep (regions.c).
 *
 * The kernels must have an order. What is linked is divided at once, in an order in which all kernels found so
 * far could run, so nothing comes out of order within it; and no region is a kernel when another would
 * have to run in the middle of it. */
#include "passes/fuse/regions.h"
#include "passes/schedule/rows/prefixes.h"
#include "passes/schedule/schedule.h"

#include <math.h>

typedef struct {
	Graph *g;
	PassCtx *cx;
	Groups out;
	Regions r;
	RemarkId *alone;  /* by TensorId: why it has a kernel of its own */
	Unstreamed *unstreamed; /* by TensorId */
	const Sibling *sibling; /* by TensorId */
	bool *open;       /* by TensorId: it may share a kernel by rows */
	uint32_t *linked; /* by TensorId of an open node: another that is linked with it, on the way to the first of all */
} Grouping;

static bool
is_node(const Grouping *s, TensorId t)
{
	return s->g->tensor.at[t].kind == TENSOR_NODE;
}

/* --- what is divided together --- */

/* Pairs that are folded on are not stored where rows have them, but what nobody reads is. */
static bool
has_tiles(const Grouping *s, TensorId t)
{
	Arena *a = s->cx->scratch;
	return contract_has_tiles(s->g, a, s->r.facts.faulty, t, s->cx->options) ||
	       (s->r.readers[t].list.n == 0 && contract_pairs_have_tiles(s->g, a, s->r.facts.faulty, t, s->cx->options));
}

/* Of a node that is in no stream: whether it is open, else why it is alone. */
static void
classify(Grouping *s, TensorId t)
{
	RemarkId why = REMARK_NONE;
	s->open[t] = rows_takes(s->g, t, s->cx->options->lanes, &why) && !has_tiles(s, t);
	if (!s->open[t] && (why || !s->alone[t]))
		s->alone[t] = why ? why : s->cx->options->blocks ? REMARK_group_contraction : REMARK_group_panels;
}

static TensorId
first_linked(Grouping *s, TensorId t)
{
	while (s->linked[t] != t)
		t = s->linked[t] = s->linked[s->linked[t]];
	return t;
}

static void
link(Grouping *s, TensorId a, TensorId b)
{
	if (!s->open[a] || !s->open[b])
		return;
	a = first_linked(s, a);
	b = first_linked(s, b);
	s->linked[a > b ? a : b] = a > b ? b : a;
}

/* What stands for a tensor among those that are read together: of a kernel's, its first. */
static TensorId
read_key(const Grouping *s, TensorId t)
{
	return is_node(s, t) ? s->r.unit.at[s->r.unit_of[t]].member.list.at[0] : t;
}

static void
find_links(Grouping *s)
{
	TensorId *reader = ARENA_ARRAY(s->cx->scratch, TensorId, s->g->tensor.n);
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		TensorId t = s->g->node.at[i].out;
		const TensorList *reads = &s->r.reads[t];
		for (uint32_t k = 0; s->open[t] && k < reads->list.n; k++) {
			TensorId x = reads->list.at[k], key = read_key(s, x);
			if (is_node(s, x))
				link(s, x, t);
			if (reader[key])
				link(s, reader[key], t);
			reader[key] = t;
		}
	}
}

/* Adds the node to a list, where it belongs in the graph's order; there is room. */
static void
add_in_order(const Graph *g, TensorId *node, uint32_t n, TensorId t)
{
	for (; n > 0 && g->tensor.at[node[n - 1]].node > g->tensor.at[t].node; n--)
		node[n] = node[n - 1];
	node[n] = t;
}

/* --- one division --- */

typedef struct {
	Grouping *s;
	TensorList item;
	uint32_t *index;   /* by TensorId: 1 + its place in item */
	VEC(PartitionLink) link;
} Component;

static double
cost(void *user, const uint32_t *item, uint32_t n, double enough)
{
	const Component *c = user;
	TensorId node[PARTITION_REGION];
	RemarkId why;
	for (uint32_t k = 0; k < n; k++)
		add_in_order(c->s->g, node, k, c->item.list.at[item[k]]);
	return regions_us(&c->s->r, node, n, enough, &why);
}

static void
add_link(Component *c, TensorId from, uint32_t to)
{
	uint32_t a = c->index[from] - 1;
	for (uint32_t l = c->link.n; l-- > 0 && c->link.at[l].b == to;)
		if (c->link.at[l].a == a)
			return;
	vec_push(c->s->cx->scratch, &c->link, ((PartitionLink){a, to}));
}

/* What stands for what an item reads: of a region's nodes, the first. */
static TensorId
item_key(const Component *c, TensorId t, const uint32_t *region)
{
	uint32_t k = 0;
	if (!c->index[t] || !region)
		return read_key(c->s, t);
	while (region[k] != region[c->index[t] - 1])
		k++;
	return c->item.list.at[k];
}

/* Of many readers of one tensor, or of one region, each is linked with the last before it; of a few, with all. */
static void
link_items(Component *c, const uint32_t *region)
{
	c->link.n = 0;
	const Grouping *s = c->s;
	TensorList *reader = ARENA_ARRAY(s->cx->scratch, TensorList, s->g->tensor.n);
	for (uint32_t k = 0; k < c->item.list.n; k++) {
		const TensorList *reads = &s->r.reads[c->item.list.at[k]];
		for (uint32_t j = 0; j < reads->list.n; j++) {
			TensorId t = reads->list.at[j];
			TensorList *others = &reader[item_key(c, t, region)];
			if (c->index[t])
				add_link(c, t, k);
			bool all = c->item.list.n <= PARTITION_MAX;
			for (uint32_t o = all || !others->list.n ? 0 : others->list.n - 1; o < others->list.n; o++)
				if (others->list.at[o] != c->item.list.at[k])
					add_link(c, others->list.at[o], k);
			vec_push(s->cx->scratch, &others->list, c->item.list.at[k]);
		}
	}
}

/* Every region is a unit from now on, but for one of which each node would have to wait for another region, and
 * that for the rest: both could be kernels, but not one beside the other. */
static void
merge_regions(Component *c, const uint32_t *region)
{
	TensorId node[PARTITION_REGION];
	for (uint32_t k = 0; k < c->item.list.n; k++) {
		uint32_t n = 0;
		for (uint32_t j = 0; j < c->item.list.n; j++)
			if (region[j] == region[k])
				add_in_order(c->s->g, node, n++, c->item.list.at[j]);
		if (n < 2 || node[0] != c->item.list.at[k] || regions_has_between(&c->s->r, node, n))
			continue;
		regions_merge(&c->s->r, node, n);
		regions_order(&c->s->r);
	}
}

/* Two orders in which the kernels could run: as the nodes stand in the graph, where a chain stays together, and
 * by depth, where those that read the same do. */
static bool
comes_before(const Regions *r, TensorId a, TensorId b, bool by_depth)
{
	uint32_t x = r->unit_of[a], y = r->unit_of[b];
	if (by_depth && r->depth[x] != r->depth[y])
		return r->depth[x] < r->depth[y];
	return r->place[x] < r->place[y];
}

static void
put_in_order(Component *c, bool by_depth)
{
	TensorId *t = c->item.list.at;
	for (uint32_t k = 1; k < c->item.list.n; k++) {
		TensorId x = t[k];
		uint32_t j = k;
		for (; j > 0 && comes_before(&c->s->r, x, t[j - 1], by_depth); j--)
			t[j] = t[j - 1];
		t[j] = x;
	}
}

static bool
is_one(const uint32_t *region, uint32_t n)
{
	for (uint32_t k = 1; k < n; k++)
		if (region[k] != region[0])
			return false;
	return true;
}

/* The best division with its items in one of the orders: what it costs. */
static double
divide_in_order(Component *c, bool by_depth, uint32_t *region)
{
	Arena *a = c->s->cx->scratch;
	put_in_order(c, by_depth);
	for (uint32_t k = 0; k < c->item.list.n; k++)
		c->index[c->item.list.at[k]] = k + 1;
	link_items(c, NULL);
	PartitionItems p = {.n = c->item.list.n, .link = c->link.at, .nlink = c->link.n, .cost = cost, .user = c};
	partition(&p, a, region);
	if (is_one(region, p.n))
		return partition_cost(&p, a, region);
	link_items(c, region); /* those that read one region */
	p.link = c->link.at;
	p.nlink = c->link.n;
	partition_refine(&p, a, region);
	return partition_cost(&p, a, region);
}

/* What is linked with t, which is the first of it. */
static void
divide(Grouping *s, TensorId t, uint32_t *index)
{
	Component c = {.s = s, .index = index};
	Arena *a = s->cx->scratch;
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		TensorId x = s->g->node.at[i].out;
		if (s->open[x] && first_linked(s, x) == t)
			vec_push(a, &c.item.list, x);
	}
	uint32_t n = c.item.list.n;
	if (n < 2)
		return;
	uint32_t *region = ARENA_ARRAY(a, uint32_t, n);
	double us = divide_in_order(&c, false, region);
	if (n <= PARTITION_MAX && !is_one(region, n) && divide_in_order(&c, true, region) >= us * (1 - 1e-9))
		divide_in_order(&c, false, region);
	merge_regions(&c, region);
	for (uint32_t k = 0; k < n; k++)
		index[c.item.list.at[k]] = 0;
}

/* --- edges --- */

/* Why two units that are both open have stayed apart. */
static Unfused
unmerged(Grouping *s, TensorId from, TensorId to)
{
	const TensorList *a = &s->r.unit.at[s->r.unit_of[from]].member, *b = &s->r.unit.at[s->r.unit_of[to]].member;
	Unfused u = {.from = from, .to = to, .why = REMARK_NONE};
	TensorId *node = ARENA_ARRAY(s->cx->scratch, TensorId, a->list.n + b->list.n);
	uint32_t n = 0;
	for (uint32_t k = 0; k < a->list.n; k++)
		add_in_order(s->g, node, n++, a->list.at[k]);
	for (uint32_t k = 0; k < b->list.n; k++)
		add_in_order(s->g, node, n++, b->list.at[k]);
	RemarkId none;
	u.together = regions_us(&s->r, node, n, INFINITY, &u.why);
	if (!u.why) {
		u.why = REMARK_group_cost;
		u.apart = regions_us(&s->r, a->list.at, a->list.n, INFINITY, &none) +
		          regions_us(&s->r, b->list.at, b->list.n, INFINITY, &none);
	}
	return u;
}

/* Why a node has a kernel of its own, in words where the stream that it is not in has some. */
static const char *
alone_text(const Grouping *s, TensorId t)
{
	return s->alone[t] == s->unstreamed[t].why ? s->unstreamed[t].text : NULL;
}

static Unfused
why_unfused(Grouping *s, TensorId from, TensorId to)
{
	Unfused u = {.from = from, .to = to, .why = REMARK_group_other};
	TensorId source = s->unstreamed[to].source;
	if (s->cx->options->fuse == FUSE_OFF)
		u.why = REMARK_group_off;
	else if (s->sibling[to].first && s->sibling[to].first == s->sibling[from].first)
		u.why = s->sibling[to].why;
	else if (source && source == s->unstreamed[from].source && !(s->open[from] && s->open[to])) {
		u.why = s->unstreamed[to].why;
		u.text = s->unstreamed[to].text;
	} else if (s->alone[to] || s->alone[from]) {
		TensorId t = s->alone[to] ? to : from;
		u.why = s->alone[t];
		u.text = alone_text(s, t);
	} else if (s->open[from] && s->open[to])
		u = unmerged(s, from, to);
	return u;
}

static void
note(Grouping *s, TensorId t, RemarkId why, const char *text)
{
	vec_push(s->cx->scratch, &s->out.note, ((GroupNote){t, why, text ? text : remark_info[why].text}));
}

/* The edges that end in the node and come from other kernels. */
static void
note_edges(Grouping *s, TensorId t)
{
	for (uint32_t k = 0; k < s->r.reads[t].list.n; k++) {
		TensorId x = s->r.reads[t].list.at[k];
		if (!is_node(s, x) || s->r.unit_of[x] == s->r.unit_of[t])
			continue;
		Unfused u = why_unfused(s, x, t);
		vec_push(s->cx->scratch, &s->out.unfused, u);
		if (u.why != s->alone[t] && u.why != s->sibling[t].why)
			note(s, t, u.why, unfused_text(s->cx->scratch, &u));
	}
}

const char *
unfused_text(Arena *a, const Unfused *u)
{
	const char *text = u->text ? arena_text(a, "%s", u->text) : remark_info[u->why].text;
	return u->why == REMARK_group_cost ? arena_text(a, "%s: %.3g us together, %.3g apart", text, u->together, u->apart) : text;
}

/* A range that ends at an axis of the result, and costs a fold for each element all the same. */
static void
note_missed_scan(Grouping *s, TensorId t)
{
	Scan scan;
	RemarkId why;
	if (!scan_derive(s->g, s->cx->scratch, tensor_node(s->g, t), &scan, &why) && why)
		note(s, t, why, NULL);
}

/* --- all of it --- */

/* Streams and siblings are first, then every region, a single node's too. */
static void
list_groups(Grouping *s)
{
	uint32_t *group = ARENA_ARRAY(s->cx->scratch, uint32_t, s->r.unit.n + 1);
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		TensorId t = s->g->node.at[i].out;
		uint32_t unit = s->r.unit_of[t];
		if (!s->open[t])
			continue;
		if (!group[unit]) {
			vec_push(s->cx->scratch, &s->out.group, ((Group){0}));
			group[unit] = s->out.group.n;
		}
		vec_push(s->cx->scratch, &s->out.group.at[group[unit] - 1].member, t);
		s->out.of[t] = group[unit];
	}
}

/* The nodes that results need; recompute.c leaves others. */
static const bool *
find_live(Grouping *s, const bool *results)
{
	bool *live = ARENA_ARRAY(s->cx->scratch, bool, s->g->tensor.n);
	TensorList wait = {0};
	for (uint32_t i = 0; i < s->g->node.n; i++)
		if (results[s->g->node.at[i].out] || s->g->node.at[i].reports)
			vec_push(s->cx->scratch, &wait.list, s->g->node.at[i].out);
	while (wait.list.n) {
		TensorId t = wait.list.at[--wait.list.n];
		const Unit *u = &s->r.unit.at[s->r.unit_of[t]];
		for (uint32_t m = 0; !live[t] && m < u->member.list.n; m++) {
			const TensorList *reads = &s->r.reads[u->member.list.at[m]];
			for (uint32_t k = 0; k < reads->list.n; k++)
				if (is_node(s, reads->list.at[k]) && s->r.unit_of[reads->list.at[k]] != s->r.unit_of[t])
					vec_push(s->cx->scratch, &wait.list, reads->list.at[k]);
		}
		for (uint32_t m = 0; m < u->member.list.n; m++)
			live[u->member.list.at[m]] = true;
	}
	return live;
}

static double
predict(Grouping *s)
{
	double us = 0;
	RemarkId why;
	for (uint32_t k = 0; k < s->out.group.n; k++)
		if (!group_is_closed(&s->out.group.at[k]))
			us += regions_us(&s->r, s->out.group.at[k].member.at, s->out.group.at[k].member.n, INFINITY, &why);
	return us;
}

static void
divide_all(Grouping *s)
{
	uint32_t *index = ARENA_ARRAY(s->cx->scratch, uint32_t, s->g->tensor.n);
	find_links(s);
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		TensorId t = s->g->node.at[i].out;
		if (s->open[t] && first_linked(s, t) == t)
			divide(s, t, index);
	}
}

bool *
group_facts(Arena *scratch, const bool *from, uint32_t n, uint32_t room)
{
	bool *to = ARENA_ARRAY(scratch, bool, n + room);
	for (uint32_t t = 0; t < n; t++)
		to[t] = from[t];
	return to;
}

typedef struct {
	const Graph *g;
	const Groups *groups;
	uint32_t group; /* of the reader */
	bool *stored;
} OtherReads;

static void
note_other_read(void *user, ExprId e)
{
	OtherReads *o = user;
	const Expr *p = expr_get(o->g, e);
	if (p->op == OP_READ && (!o->group || o->groups->of[p->ref] != o->group))
		o->stored[p->ref] = true;
}

bool *
group_stored(const Graph *g, Arena *scratch, const Groups *groups, const bool *results, uint32_t room)
{
	OtherReads o = {.g = g, .groups = groups, .stored = group_facts(scratch, results, g->tensor.n, room)};
	for (uint32_t i = 0; i < g->node.n; i++) {
		o.group = groups->of[g->node.at[i].out];
		node_walk(g, scratch, &g->node.at[i], note_other_read, &o);
	}
	return o.stored;
}

void
group_members(const Graph *g, Arena *scratch, Groups *groups)
{
	groups->of = ARENA_ARRAY(scratch, uint32_t, g->tensor.n);
	for (uint32_t k = 0; k < groups->group.n; k++)
		for (uint32_t m = 0; m < groups->group.at[k].member.n; m++)
			groups->of[groups->group.at[k].member.at[m]] = k + 1;
}

Groups
group_nodes(Graph *g, PassCtx *cx, const bool *faulty, const bool *results)
{
	Grouping s = {.g = g, .cx = cx};
	RowsFacts facts = {.stored = results, .faulty = faulty, .streams = results, .lanes = cx->options->lanes,
	                   .blocks = cx->options->blocks};
	s.out.of = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n);
	s.alone = ARENA_ARRAY(cx->scratch, RemarkId, g->tensor.n);
	s.open = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	s.linked = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n);
	s.unstreamed = ARENA_ARRAY(cx->scratch, Unstreamed, g->tensor.n);
	group_streams(g, cx, faulty, results, &s.out, s.unstreamed);
	for (TensorId t = 0; t < g->tensor.n; t++)
		s.alone[t] = s.unstreamed[t].source == t ? s.unstreamed[t].why : REMARK_NONE;
	regions_init(&s.r, g, cx, &facts, &s.out);
	const bool *live = find_live(&s, results);
	s.sibling = group_siblings(&s.r, &s.out, live);
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		s.linked[t] = t;
		if (!s.out.of[t] && live[t])
			classify(&s, t);
	}
	if (cx->options->fuse != FUSE_OFF)
		divide_all(&s);
	list_groups(&s);
	s.out.us = predict(&s);
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		if (!live[t])
			continue;
		bool streamed = s.out.of[t] && group_is_closed(&s.out.group.at[s.out.of[t] - 1]);
		if (!streamed)
			note_missed_scan(&s, t);
		if (s.alone[t] && !s.open[t] && !streamed && s.alone[t] != REMARK_group_contraction &&
		    s.alone[t] != REMARK_group_panels)
			note(&s, t, s.alone[t], alone_text(&s, t));
		if (s.sibling[t].why && s.sibling[t].first != t)
			note(&s, t, s.sibling[t].why, NULL);
		note_edges(&s, t);
	}
	return s.out;
}
