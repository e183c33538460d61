/* siblings.c: which sums of products share a kernel because they share a factor (schedule/contract/roles_siblings.c).
 *
 * in     a graph whose streams are grouped
 * out    groups of two or three sums over one range of terms that have a factor in common, with the pointwise nodes of
 *        the same elements that read them; why others are none
 * fp     exact: an element is made of the same sums, each rounded where it was
 * tests  tests/passes/contract_siblings_test.c, tests/fuse/siblings.tex
 *
 * A factor is in common where it is one expression of the axes. All sums that have it are one group or none: where they are
 * many, a choice among them would say nothing of the others. What reads a member does so at the point itself, and no kernel
 * outside may have to run between two members. It is done where the one kernel is predicted to take less time than those
 * of its nodes, at the sizes that stand for those of a launch; a launch asks again with its own. */
#include "passes/fuse/regions.h"
#include "passes/schedule/contract/contract.h"
#include "passes/schedule/contract/members.h"
#include "passes/schedule/contract/roles.h"

#include <string.h>

typedef struct {
	Regions *r;
	Groups *out;
	const bool *live;
	Factors *factors; /* by index of node: of a sum of products */
	bool *is_sum, *seen; /* by index of node */
} Siblings;

/* --- sums --- */

static void
find_sums(Siblings *s)
{
	const Graph *g = s->r->g;
	Arena *a = s->r->cx->scratch;
	RemarkId why;
	s->factors = ARENA_ARRAY(a, Factors, g->node.n);
	s->is_sum = ARENA_ARRAY(a, bool, g->node.n);
	s->seen = ARENA_ARRAY(a, bool, g->node.n);
	for (uint32_t i = 0; i < g->node.n; i++) {
		TensorId t = g->node.at[i].out;
		s->is_sum[i] = s->live[t] && !s->out->of[t] && contract_is_sum_of_products(g, t) &&
		               contract_factors(g, a, s->r->facts.faulty, t, &s->factors[i], &why);
	}
}

static bool
share_factor(const Siblings *s, uint32_t i, uint32_t j)
{
	const Factors *a = &s->factors[i], *b = &s->factors[j];
	return a->row == b->row || a->column == b->column || a->row == b->column || a->column == b->row;
}

/* Those that share a factor with node i, itself first. */
static uint32_t
gather(Siblings *s, uint32_t i, TensorId *sum, uint32_t most)
{
	const Graph *g = s->r->g;
	uint32_t n = 0;
	for (uint32_t j = i; j < g->node.n; j++) {
		if (!s->is_sum[j] || (j > i && !share_factor(s, i, j)))
			continue;
		s->seen[j] = true;
		if (n < most)
			sum[n] = g->node.at[j].out;
		n++;
	}
	return n;
}

/* --- what reads them --- */

typedef struct {
	const Graph *g;
	const TensorId *node;
	unsigned n;
	bool inside, elsewhere; /* members are read at the point; and at another one, or checked */
} Reads;

static void
note_read(void *user, ExprId e)
{
	Reads *r = user;
	const Expr *p = expr_get(r->g, e);
	for (unsigned k = 0; p->op == OP_READ && k < r->n; k++) {
		if (p->ref != r->node[k])
			continue;
		if (reads_own_point(r->g, e, p->ref) && !p->access)
			r->inside = true;
		else
			r->elsewhere = true;
	}
}

static Reads
reads_of(const Siblings *s, ExprId e, const TensorId *node, unsigned n)
{
	Reads r = {.g = s->r->g, .node = node, .n = n};
	if (e)
		expr_walk(s->r->g, s->r->cx->scratch, e, note_read, &r);
	return r;
}

/* Whether the sums need nothing of one another but where they are finished. */
static bool
are_apart(const Siblings *s, const TensorId *sum, unsigned n)
{
	for (unsigned k = 0; k < n; k++) {
		const Node *x = tensor_node(s->r->g, sum[k]);
		Reads body = reads_of(s, x->body, sum, n), finish = reads_of(s, x->finish, sum, n);
		if (body.inside || body.elsewhere || finish.elsewhere)
			return false;
	}
	return true;
}

static bool
same_extents(const Graph *g, TensorId a, TensorId b)
{
	const Tensor *x = &g->tensor.at[a], *y = &g->tensor.at[b];
	for (unsigned k = 0; x->rank == y->rank && k < x->rank; k++)
		if (x->extent[k] != y->extent[k])
			return false;
	return x->rank == y->rank;
}

/* Whether t is a pointwise node of the members, finished where they are. */
static bool
is_point(const Siblings *s, TensorId t, const TensorId *node, unsigned n)
{
	const Graph *g = s->r->g;
	const Node *x = tensor_node(g, t);
	DType type = (DType)g->tensor.at[t].dtype;
	if (!s->live[t] || s->out->of[t] || x->monoid != MON_NONE || x->recur || x->scatter || x->finish || x->reports ||
	    !expr_is_true(g, x->domain) || !same_extents(g, t, node[0]) || type == DT_C64 || dtype_info[type].bits < 8 ||
	    expr_can_fault(g, s->r->cx->scratch, s->r->facts.faulty, x->body))
		return false;
	Reads r = reads_of(s, x->body, node, n);
	return r.inside && !r.elsewhere;
}

/* Adds the pointwise nodes, in the graph's order, as far as they leave a kernel. */
static unsigned
add_points(Siblings *s, TensorId *node, unsigned n)
{
	const Graph *g = s->r->g;
	Members m;
	for (uint32_t i = 0; i < g->node.n && n < MEMBERS_MOST; i++) {
		TensorId t = g->node.at[i].out, more[MEMBERS_MOST];
		unsigned at = n;
		if (!is_point(s, t, node, n))
			continue;
		memcpy(more, node, n * sizeof *node);
		for (; at > 0 && g->tensor.at[more[at - 1]].node > i; at--)
			more[at] = more[at - 1];
		more[at] = t;
		if (regions_has_between(s->r, more, n + 1) || !members_find(g, s->r->cx->scratch, more, n + 1, &m))
			continue;
		memcpy(node, more, ++n * sizeof *node);
	}
	return n;
}

/* --- groups --- */

/* Whether one kernel is predicted to take less time; and says so for the sizes that stand for a launch's. */
static bool
takes_less(Siblings *s, const TensorId *node, unsigned n)
{
	ExprId together, apart;
	int64_t a, b;
	return contract_siblings_cycles(s->r->g, s->r->cx->scratch, s->r->facts.faulty, node, n, s->r->cx->options, &together, &apart) &&
	       launch_value(&s->r->env, together, &a) && launch_value(&s->r->env, apart, &b) && a < b;
}

static RemarkId
try_group(Siblings *s, const TensorId *sum, uint32_t n, TensorId *node, unsigned *count)
{
	Regions *r = s->r;
	RemarkId why;
	if (n > MEMBERS_MOST_SUMS)
		return REMARK_siblings_many;
	if (!contract_siblings_could(r->g, r->cx->scratch, r->facts.faulty, sum, n, r->cx->options, &why))
		return why;
	if (!are_apart(s, sum, n) || regions_has_between(r, sum, n))
		return REMARK_siblings_order;
	memcpy(node, sum, n * sizeof *sum);
	*count = add_points(s, node, n);
	return takes_less(s, node, *count) ? REMARK_NONE : REMARK_siblings_cost;
}

static void
take(Siblings *s, const TensorId *node, unsigned n)
{
	Arena *a = s->r->cx->scratch;
	vec_push(a, &s->out->group, ((Group){.siblings = true}));
	Group *group = &s->out->group.at[s->out->group.n - 1];
	for (unsigned k = 0; k < n; k++) {
		vec_push(a, &group->member, node[k]);
		s->out->of[node[k]] = s->out->group.n;
	}
	regions_merge(s->r, node, n);
	regions_order(s->r);
}

const Sibling *
group_siblings(Regions *r, Groups *out, const bool *live)
{
	enum { MOST_SEEN = 64 };
	Siblings s = {.r = r, .out = out, .live = live};
	Sibling *said = ARENA_ARRAY(r->cx->scratch, Sibling, r->g->tensor.n);
	if (r->cx->options->fuse != FUSE_ALL)
		return said;
	find_sums(&s);
	for (uint32_t i = 0; i < r->g->node.n; i++) {
		TensorId sum[MOST_SEEN], node[MEMBERS_MOST];
		unsigned count = 0;
		uint32_t n = s.is_sum[i] && !s.seen[i] ? gather(&s, i, sum, MOST_SEEN) : 0;
		if (n < 2)
			continue;
		RemarkId why = try_group(&s, sum, n, node, &count);
		if (!why)
			take(&s, node, count);
		for (uint32_t k = 0; why && k < n && k < MOST_SEEN; k++)
			said[sum[k]] = (Sibling){sum[0], why};
	}
	return said;
}
