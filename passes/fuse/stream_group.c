/* stream_group.c: which nodes are streamed together (passes/schedule/stream/stream.h).
 *
 * A sum of products that only reductions read, each along what it folds, need not be stored when all of
 * them can be folded as it is computed. They are its readers: a group with it, and with what else of the
 * kind they alone read. Read by one reduction alone it is stored: then it is a chain of two products,
 * whose blocks are better chosen apart.
 *
 * Pointwise nodes of what is reduced come along: those that lie between two reductions, and those behind
 * them, as long as the template takes them.
 *
 * Kernels must have an order: nothing outside may come between two members of a group. */
#include "passes/fuse/group.h"

#include "ir/bugs.h"
#include "passes/schedule/stream/roles.h"

enum { MAX_GROUP = STREAM_MAX_OUT + 2 * STREAM_MAX_SCORES };

typedef struct {
	VEC(TensorId) list;
} Neighbours;

typedef struct {
	Graph *g;
	PassCtx *cx;
	Groups *out;
	const bool *results;
	RowsFacts facts;
	Neighbours *reads, *readers; /* by index of node, and by TensorId: the nodes */
	uint32_t node;
} Streams;

typedef struct {
	TensorId member[MAX_GROUP]; /* by ascending index of node */
	unsigned n;
} Candidate;

/* --- who reads whom --- */

static void
note_read(void *user, ExprId e)
{
	Streams *s = user;
	const Expr *p = expr_get(s->g, e);
	Neighbours *reads = &s->reads[s->node];
	if (p->op != OP_READ || s->g->tensor.at[p->ref].kind != TENSOR_NODE)
		return;
	for (uint32_t k = 0; k < reads->list.n; k++)
		if (reads->list.at[k] == p->ref)
			return;
	vec_push(s->cx->scratch, &reads->list, p->ref);
	vec_push(s->cx->scratch, &s->readers[p->ref].list, s->g->node.at[s->node].out);
}

static void
find_neighbours(Streams *s)
{
	s->reads = ARENA_ARRAY(s->cx->scratch, Neighbours, s->g->node.n);
	s->readers = ARENA_ARRAY(s->cx->scratch, Neighbours, s->g->tensor.n);
	for (s->node = 0; s->node < s->g->node.n; s->node++)
		node_walk(s->g, s->cx->scratch, &s->g->node.at[s->node], note_read, s);
}

/* --- candidates --- */

static bool
has(const Candidate *c, TensorId t)
{
	for (unsigned k = 0; k < c->n; k++)
		if (c->member[k] == t)
			return true;
	return false;
}

static bool
add(const Streams *s, Candidate *c, TensorId t)
{
	unsigned at = c->n;
	if (has(c, t))
		return true;
	if (c->n == MAX_GROUP)
		return false;
	for (; at > 0 && s->g->tensor.at[c->member[at - 1]].node > s->g->tensor.at[t].node; at--)
		c->member[at] = c->member[at - 1];
	c->member[at] = t;
	c->n++;
	return true;
}

static bool
may_be_score(const Streams *s, TensorId t)
{
	return tensor_node(s->g, t) && contract_is_sum_of_products(s->g, t) && !s->out->of[t] && !s->results[t];
}

static bool
is_reduction(const Streams *s, TensorId t)
{
	const Node *n = tensor_node(s->g, t);
	return n->monoid != MON_NONE && !n->scatter && !n->recur && !s->out->of[t];
}

/* All readers are in the group. */
static bool
is_inside(const Streams *s, const Candidate *c, TensorId t)
{
	for (uint32_t k = 0; k < s->readers[t].list.n; k++)
		if (!has(c, s->readers[t].list.at[k]))
			return false;
	return true;
}

/* What is read in place of the sum of products: itself, or the pointwise node that alone reads it. */
static TensorId
score_of(const Streams *s, TensorId source)
{
	const Neighbours *r = &s->readers[source];
	TensorId t = r->list.n == 1 ? r->list.at[0] : 0;
	if (!t || s->results[t] || s->out->of[t] || !stream_reads_source(s->g, s->cx->scratch, t, source))
		return source;
	return t;
}

/* A score, if only the readers read it. */
static bool
add_score(const Streams *s, const Candidate *readers, TensorId source, Candidate *c)
{
	TensorId t = score_of(s, source);
	return !is_inside(s, readers, t) || (add(s, c, source) && add(s, c, t));
}

typedef struct {
	const Graph *g;
	TensorId t;
	bool read;
} Folded;

static void
note_term(void *user, ExprId e)
{
	Folded *t = user;
	const Expr *p = expr_get(t->g, e);
	t->read |= p->op == OP_READ && p->ref == t->t;
}

/* Whether what the reader folds takes t: not only what it makes of the fold. */
static bool
folds(const Streams *s, TensorId reader, TensorId t)
{
	const Node *n = tensor_node(s->g, reader);
	Folded terms = {.g = s->g, .t = t};
	expr_walk(s->g, s->cx->scratch, n->body, note_term, &terms);
	if (n->guard)
		expr_walk(s->g, s->cx->scratch, n->guard, note_term, &terms);
	return terms.read;
}

/* The sums of products that make what this reader reads. */
static bool
add_scores(const Streams *s, const Candidate *readers, TensorId reader, Candidate *c)
{
	const Neighbours *reads = &s->reads[s->g->tensor.at[reader].node];
	for (uint32_t j = 0; j < reads->list.n; j++) {
		TensorId t = reads->list.at[j];
		const Neighbours *below = &s->reads[s->g->tensor.at[t].node];
		if (has(readers, t) || !folds(s, reader, t))
			continue;
		if (may_be_score(s, t) && !add_score(s, readers, t, c))
			return false;
		for (uint32_t i = 0; i < below->list.n; i++)
			if (may_be_score(s, below->list.at[i]) && score_of(s, below->list.at[i]) == t &&
			    !add_score(s, readers, below->list.at[i], c))
				return false;
	}
	return true;
}

/* Whether a fold asks for other elements for each of its rows, as below a diagonal, on a GPU: the others would be products that
 * are stored and that nobody reads. */
static bool
folds_part(const Streams *s, TensorId t)
{
	const Node *n = tensor_node(s->g, t);
	uint32_t rows = (1u << n->npar) - 1;
	return s->cx->options->blocks && n->nred == 1 && n->guard && (expr_axes(s->g, s->cx->scratch, n->guard) & rows);
}

/* The score's readers, and the scores that they alone read. */
static bool
gather(const Streams *s, TensorId source, Candidate *c)
{
	const Neighbours *r = &s->readers[score_of(s, source)];
	*c = (Candidate){0};
	for (uint32_t k = 0; k < r->list.n; k++)
		if (!is_reduction(s, r->list.at[k]) || !add(s, c, r->list.at[k]))
			return false;
	Candidate readers = *c;
	for (unsigned k = 0; k < readers.n; k++)
		if (!add_scores(s, &readers, readers.member[k], c))
			return false;
	return readers.n > 1 || (readers.n == 1 && folds_part(s, readers.member[0]));
}

/* --- pointwise nodes --- */

static bool
is_read_inside(const Streams *s, const Candidate *c, TensorId t)
{
	for (uint32_t k = 0; k < s->readers[t].list.n; k++)
		if (has(c, s->readers[t].list.at[k]))
			return true;
	return false;
}

static bool
reads_inside(const Streams *s, const Candidate *c, TensorId t)
{
	const Neighbours *reads = &s->reads[s->g->tensor.at[t].node];
	for (uint32_t k = 0; k < reads->list.n; k++)
		if (has(c, reads->list.at[k]))
			return true;
	return false;
}

static bool
is_free_point(const Streams *s, const Candidate *c, TensorId t)
{
	return tensor_node(s->g, t)->monoid == MON_NONE && !s->out->of[t] && !has(c, t);
}

/* Pointwise nodes that members read and that read members. */
static bool
add_between(const Streams *s, Candidate *c)
{
	for (uint32_t i = s->g->node.n; i-- > 0;) {
		TensorId t = s->g->node.at[i].out;
		if (is_free_point(s, c, t) && reads_inside(s, c, t) && is_read_inside(s, c, t) && !add(s, c, t))
			return false;
	}
	return true;
}

/* --- order --- */

/* Whether a tensor in `after` feeds node i. */
static bool
is_fed(const Streams *s, uint32_t i, const bool *after)
{
	for (uint32_t k = 0; k < s->reads[i].list.n; k++)
		if (after[s->reads[i].list.at[k]])
			return true;
	return false;
}

/* Marks all of t's kernel; whether that was news. */
static bool
mark(const Streams *s, TensorId t, bool *after)
{
	uint32_t group = s->out->of[t];
	RecurId recur = tensor_node(s->g, t)->recur;
	if (after[t])
		return false;
	after[t] = true;
	for (uint32_t k = 0; group && k < s->out->group.at[group - 1].member.n; k++)
		after[s->out->group.at[group - 1].member.at[k]] = true;
	for (uint32_t k = 0; recur && k < s->g->recur.at[recur].member.n; k++)
		after[s->g->recur.at[recur].member.at[k]] = true;
	return true;
}

/* Whether no kernel outside would have to run between members. */
static bool
is_convex(const Streams *s, const Candidate *c)
{
	bool *after = ARENA_ARRAY(s->cx->scratch, bool, s->g->tensor.n), more = true;
	for (unsigned k = 0; k < c->n; k++)
		after[c->member[k]] = true;
	while (more) {
		more = false;
		for (uint32_t i = 0; i < s->g->node.n; i++) {
			TensorId t = s->g->node.at[i].out;
			if (!after[t] && is_fed(s, i, after))
				more = mark(s, t, after) || more;
		}
	}
	for (unsigned k = 0; k < c->n; k++)
		after[c->member[k]] = false;
	for (unsigned k = 0; k < c->n && !BUG(stream_order); k++)
		if (is_fed(s, s->g->tensor.at[c->member[k]].node, after))
			return false;
	return true;
}

/* --- groups --- */

static void
take(Streams *s, const Candidate *c)
{
	vec_push(s->cx->scratch, &s->out->group, ((Group){.stream = true}));
	Group *group = &s->out->group.at[s->out->group.n - 1];
	for (unsigned k = 0; k < c->n; k++) {
		vec_push(s->cx->scratch, &group->member, c->member[k]);
		s->out->of[c->member[k]] = s->out->group.n;
	}
}

/* Matrix units that take the products apart take them streamed as well: those of 16 bits, and of f32 the first of a chain of two. */
static bool
keeps_units(const Streams *s, const Stream *stream)
{
	KernelPlan plan[STREAM_ROLES_PLANS];
	const PassOptions *o = s->cx->options;
	if (o->blocks && o->roles && !stream->factors)
		return stream->c.nmember > 1;
	return !o->blocks || !o->roles || stream_roles_take(s->g, s->cx->scratch, stream, NULL, o, plan) > 0;
}

/* Whether there is a kernel for the candidate. */
static bool
has_kernel(const Streams *s, const Candidate *c, Refusal *why)
{
	Stream *stream = ARENA_NEW(s->cx->scratch, Stream);
	KernelPlan plan = {0};
	*why = (Refusal){.why = REMARK_NONE};
	if (!is_convex(s, c))
		why->why = REMARK_group_order;
	else if (stream_plan(s->g, s->cx->scratch, &s->facts, c->member, c->n, stream, why)) {
		if (!stream_size(s->g, s->cx->scratch, stream, s->cx->options, &plan))
			why->why = REMARK_stream_type;
		else if (!keeps_units(s, stream))
			why->why = REMARK_stream_units;
	}
	return why->why == REMARK_NONE;
}

/* Pointwise nodes behind what is reduced, one by one. */
static void
add_behind(const Streams *s, Candidate *c)
{
	for (uint32_t i = 0; i < s->g->node.n; i++) {
		TensorId t = s->g->node.at[i].out;
		Candidate more = *c;
		Refusal why;
		if (is_free_point(s, c, t) && reads_inside(s, c, t) && add(s, &more, t) && has_kernel(s, &more, &why))
			*c = more;
	}
}

/* Says of all members why they are not streamed; the operator in the way, where there is one. */
static void
note_refusal(const Streams *s, const Candidate *c, TensorId source, const Refusal *why, Unstreamed *out)
{
	Text text;
	text_init(&text, s->cx->scratch);
	if (why->member) {
		text_printf(&text, "is not folded as it comes: ");
		refusal_print(s->g, why, &text);
	} else
		text_printf(&text, "%s", remark_info[why->why].text);
	for (unsigned k = 0; k < c->n; k++)
		if (!out[c->member[k]].source || c->member[k] == source)
			out[c->member[k]] = (Unstreamed){source, why->why, text_get(&text)};
}

/* Of a sum of products that some readers fold: one that keeps the others from it, as it does anything else. */
static void
note_other_reader(const Streams *s, TensorId source, Unstreamed *out)
{
	const Neighbours *r = &s->readers[score_of(s, source)];
	Candidate c = {.member = {source}, .n = 1};
	TensorId other = 0;
	for (uint32_t k = 0; k < r->list.n && c.n < MAX_GROUP; k++) {
		if (!is_reduction(s, r->list.at[k]))
			other = r->list.at[k];
		add(s, &c, r->list.at[k]);
	}
	bool folded = false;
	for (unsigned k = 0; k < c.n; k++)
		folded |= c.member[k] != source && is_reduction(s, c.member[k]);
	if (other && folded)
		note_refusal(s, &c, source, &(Refusal){.why = REMARK_stream_reader, .member = other}, out);
}

Groups
stream_groups(Graph *g, PassCtx *cx)
{
	bool *results = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	Groups groups = {.of = ARENA_ARRAY(cx->scratch, uint32_t, g->tensor.n)};
	for (uint32_t r = 0; r < g->result.n; r++)
		results[g->result.at[r].tensor] = true;
	group_streams(g, cx, cx->faulty, results, &groups, ARENA_ARRAY(cx->scratch, Unstreamed, g->tensor.n));
	return groups;
}

const bool *
stream_members(Graph *g, PassCtx *cx)
{
	bool *in = ARENA_ARRAY(cx->scratch, bool, g->tensor.n);
	Groups groups = stream_groups(g, cx);
	for (uint32_t t = 0; t < g->tensor.n; t++)
		in[t] = groups.of[t] != 0;
	return in;
}

void
group_streams(Graph *g, PassCtx *cx, const bool *faulty, const bool *results, Groups *out, Unstreamed *unstreamed)
{
	Streams s = {.g = g, .cx = cx, .out = out, .results = results};
	s.facts = (RowsFacts){.stored = results, .faulty = faulty, .lanes = cx->options->lanes, .blocks = cx->options->blocks};
	if (cx->options->fuse != FUSE_ALL || g->fp == FP_STRICT)
		return;
	find_neighbours(&s);
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		Refusal why;
		Candidate c;
		if (!may_be_score(&s, t))
			continue;
		if (!gather(&s, t, &c) || !add_between(&s, &c)) {
			note_other_reader(&s, t, unstreamed);
			continue;
		}
		if (!has_kernel(&s, &c, &why)) {
			note_refusal(&s, &c, t, &why, unstreamed);
			continue;
		}
		add_behind(&s, &c);
		take(&s, &c);
	}
}
