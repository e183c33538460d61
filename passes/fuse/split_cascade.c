/* split_cascade.c: folds of which later ones read earlier ones, in parts that are computed at the same time.
 *
 * in     folds over one range, each of which would be done in parts (split_folds.c), and that fold together
 *        (algebra.h): terms of a later one are kept at a value of an earlier one, and can be moved to another
 * out    q_k[p] is the k-th accumulator of part p, with its terms at that part's own anchors; r_k = (+)_p q_k[p], moved
 *        from the part's anchors to those of all; a member is its value over the r_k
 *
 * So parts of a sum of exp(x - max) take the part's maximum, and need not wait for the maximum of all: all parts
 * are one kernel, in which a later fold finds in the cache what an earlier one brought, and what joins them is another.
 * Parts have terms, all of them, and there is a part if there is a term at all: whether there was an element is
 * known of parts and needs no accumulator. */
#include "passes/fuse/split.h"

#include "passes/fuse/formula.h"
#include "ir/bugs.h"

enum { MAX_SWAPS = MAX_ACCS + 2 * MAX_ANCHORS };

typedef struct {
	Split *s;
	const SplitChain *c;
	const CascadePass *pass;
	bool part[MAX_ACCS], joined[MAX_ACCS];     /* are wanted */
	TensorId part_at[MAX_ACCS], joined_at[MAX_ACCS];
	TensorId own[MAX_ACCS]; /* the member that accumulator is; 0: none */
} Chained;

/* --- which --- */

bool
split_is_chain(const Graph *g, const Cascade *c)
{
	if (c->npass != 1 || c->guard)
		return false;
	for (unsigned q = 0; q < c->nmember; q++)
		for (unsigned k = 0; k < c->npar; k++)
			if (tensor_node(g, c->member[q].tensor)->npar != c->npar || c->member[q].axis[k] != k)
				return false;
	return true;
}

/* Whether node `at` folds together with those of the chain, and reads one; then it is one of them. */
static bool
extend(Split *s, SplitChain *c, uint32_t at)
{
	static const CascadeOptions options = {.anchor_linear = true};
	TensorId member[MAX_MEMBERS];
	Cascade *more = ARENA_NEW(s->cx->scratch, Cascade);
	Refusal why;
	if (c->n == MAX_MEMBERS)
		return false;
	for (unsigned k = 0; k < c->n; k++)
		member[k] = s->g->node.at[c->at[k]].out;
	member[c->n] = s->g->node.at[at].out;
	if (!cascade_derive(s->g, s->cx->scratch, member, c->n + 1, &options, more, &why) || !split_is_chain(s->g, more) ||
	    more->member[c->n].policy == FOLD_PLAIN)
		return false;
	c->cascade = *more;
	c->at[c->n++] = at;
	return true;
}

/* --- what is wanted --- */

static void want_part(Chained *x, unsigned k);
static void want_joined(Chained *x, unsigned k);

typedef struct {
	Chained *x;
	bool joined;
} Want;

static void
note_state(void *user, ExprId e)
{
	Want *w = user;
	const Expr *p = expr_get(w->x->s->g, e);
	if (p->op != OP_IVAR || p->ref < STATE_A || p->ref >= STATE_B)
		return;
	if (w->joined)
		want_joined(w->x, p->ref - STATE_A);
	else
		want_part(w->x, p->ref - STATE_A);
}

/* Of an expression over a state: of a part's, or of that of all. */
static void
want(Chained *x, ExprId e, bool joined)
{
	Want w = {x, joined};
	expr_walk(x->s->g, x->s->cx->scratch, e, note_state, &w);
}

static void
want_anchors(Chained *x, unsigned k, bool joined)
{
	for (unsigned a = 0; a < x->pass->nanchor; a++)
		if (x->pass->acc[k].anchors >> a & 1)
			want(x, x->pass->anchor[a].value, joined);
}

static void
want_part(Chained *x, unsigned k)
{
	if (x->part[k] || (int)k == x->pass->seen)
		return;
	x->part[k] = true;
	want_anchors(x, k, false);
}

static void
want_joined(Chained *x, unsigned k)
{
	if (x->joined[k] || (int)k == x->pass->seen)
		return;
	x->joined[k] = true;
	want_part(x, k);
	if (!x->pass->acc[k].rebase)
		return;
	want(x, x->pass->acc[k].rebase, false);
	want_anchors(x, k, false);
	want_anchors(x, k, true);
}

/* --- expressions --- */

/* How many terms there are: in all, or in part p. */
static ExprId
terms(const Chained *x, ExprId p)
{
	Graph *g = x->s->g;
	const Axis *cut = &x->s->n.axis[x->s->cut];
	ExprId all = expr_binary(g, OP_MAX, index_norm(g, expr_binary(g, OP_SUB, cut->hi, cut->lo)), expr_int(g, DT_I64, 0));
	ExprId before = p ? expr_binary(g, OP_MUL, p, x->s->chunk) : 0;
	return !p ? all : expr_binary(g, OP_MIN, expr_binary(g, OP_SUB, all, before), x->s->chunk);
}

/* The accumulators that there are, read at these axes, in place of a state: of part p, or of all. */
static unsigned
state_swaps(const Chained *x, ExprId p, const ExprId *at, unsigned nat, Swap *out)
{
	Graph *g = x->s->g;
	const TensorId *from = p ? x->part_at : x->joined_at;
	unsigned n = 0;
	for (unsigned k = 0; k < x->pass->nacc; k++) {
		ExprId state = cascade_state(g, x->pass, STATE_A, k), some = p ? 0 : terms(x, 0);
		if ((int)k == x->pass->seen && x->pass->counted)
			out[n++] = (Swap){state, terms(x, p)};
		else if ((int)k == x->pass->seen)
			out[n++] = (Swap){state, p ? expr_int(g, DT_BOOL, 1) : expr_binary(g, OP_LT, expr_int(g, DT_I64, 0), some)};
		else if (from[k])
			out[n++] = (Swap){state, expr_read(g, from[k], at, nat, 0)};
	}
	return n;
}

/* And anchors k made of them. */
static unsigned
anchor_swaps(const Chained *x, unsigned k, uint32_t base, const Swap *state, unsigned nstate, Swap *out)
{
	Graph *g = x->s->g;
	unsigned n = 0;
	for (unsigned a = 0; a < x->pass->nanchor; a++) {
		const CascadeAnchor *v = &x->pass->anchor[a];
		if (x->pass->acc[k].anchors >> a & 1)
			out[n++] = (Swap){expr_make(g, OP_IVAR, v->dtype, base + a, 0, NULL, 0),
			                  formula_swap(g, x->s->cx->scratch, v->value, state, nstate)};
	}
	return n;
}

static unsigned
axes_from(Graph *g, unsigned first, unsigned n, ExprId *out)
{
	for (unsigned k = 0; k < n; k++)
		out[k] = expr_axis(g, first + k);
	return n;
}

/* --- nodes --- */

/* The first node of the chain that comes after all that this one reads, and may so read it. */
typedef struct {
	const Split *s;
	uint32_t after; /* nodes below this one are read */
} After;

static void
note_after(void *user, ExprId e)
{
	After *a = user;
	const Graph *g = a->s->g;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || g->tensor.at[p->ref].kind != TENSOR_NODE)
		return;
	uint32_t node = g->tensor.at[p->ref].node;
	uint32_t after = node < a->s->nnode ? node + 1 : a->s->owner.at[node - a->s->nnode];
	a->after = after > a->after ? after : a->after;
}

static void
put_before_reader(const Chained *x, ExprId body)
{
	After a = {x->s, 0};
	unsigned m = 0;
	expr_walk(x->s->g, x->s->cx->scratch, body, note_after, &a);
	while (m + 1 < x->c->n && x->c->at[m] < a.after)
		m++;
	x->s->at = x->c->at[m];
}

static const char *
numbered(const Chained *x, const char *what, unsigned k)
{
	return k ? arena_text(x->s->cx->scratch, "%s_%u", what, k) : what;
}

static void
add_parts(Chained *x, unsigned k)
{
	Graph *g = x->s->g;
	const CascadeAcc *acc = &x->pass->acc[k];
	Swap state[MAX_ACCS], anchor[MAX_ANCHORS];
	ExprId at[TG_MAX_RANK];
	unsigned nat = axes_from(g, 0, x->c->cascade.npar + 1u, at), nstate = state_swaps(x, at[0], at, nat, state);
	unsigned nanchor = anchor_swaps(x, k, ANCHOR_NEW, state, nstate, anchor);
	ExprId body = formula_swap(g, x->s->cx->scratch, split_moved(x->s, acc->term), anchor, nanchor);
	put_before_reader(x, body);
	x->part_at[k] = split_add_part(x->s, acc->monoid, body, acc->dtype, 0, numbered(x, "parts", k));
}

/* Accumulator k of all: the fold of its parts, each moved to the anchors of all. */
static Node
join_of(const Chained *x, unsigned k)
{
	Graph *g = x->s->g;
	const CascadeAcc *acc = &x->pass->acc[k];
	unsigned npar = x->c->cascade.npar;
	Swap state[MAX_ACCS], all[MAX_ACCS], swap[MAX_SWAPS];
	ExprId at[TG_MAX_RANK + 1], out[TG_MAX_RANK];
	at[0] = expr_axis(g, npar);
	axes_from(g, 0, npar, at + 1);
	axes_from(g, 0, npar, out);
	unsigned nstate = state_swaps(x, at[0], at, npar + 1, state), nall = state_swaps(x, 0, out, npar, all), n = 0;
	Node node = {.npar = (uint8_t)npar, .nred = 1, .monoid = acc->monoid};
	for (unsigned a = 0; a < npar; a++)
		node.axis[a] = x->s->n.axis[a];
	node.axis[npar] = (Axis){.name = x->s->n.axis[npar].name, .lo = expr_int(g, DT_I64, 0), .hi = x->s->count};
	node.body = expr_read(g, x->part_at[k], at, npar + 1u, 0);
	if (!acc->rebase || BUG(part_not_moved))
		return node;
	for (; n < nstate; n++)
		swap[n] = state[n];
	n += anchor_swaps(x, k, ANCHOR_OLD, state, nstate, swap + n);
	n += anchor_swaps(x, k, ANCHOR_NEW, all, nall, swap + n);
	node.body = formula_swap(g, x->s->cx->scratch, acc->rebase, swap, n);
	return node;
}

static void
replace(const Chained *x, TensorId t, Node n)
{
	Graph *g = x->s->g;
	n.out = t;
	g->node.at[g->tensor.at[t].node] = n;
}

static void
add_joined(Chained *x, unsigned k)
{
	Node n = join_of(x, k);
	const Tensor first = x->s->g->tensor.at[x->s->n.out];
	if (x->own[k]) {
		x->joined_at[k] = x->own[k];
		replace(x, x->own[k], n);
		return;
	}
	put_before_reader(x, n.body);
	x->joined_at[k] = split_add_node(x->s, &n, numbered(x, "joined", k), x->pass->acc[k].dtype, first.extent);
}

/* A member that is no accumulator itself. */
static void
set_value(const Chained *x, const CascadeMember *m)
{
	Graph *g = x->s->g;
	unsigned npar = x->c->cascade.npar;
	Swap all[MAX_ACCS];
	ExprId at[TG_MAX_RANK];
	axes_from(g, 0, npar, at);
	unsigned n = state_swaps(x, 0, at, npar, all);
	Node node = {.npar = (uint8_t)npar};
	for (unsigned a = 0; a < npar; a++)
		node.axis[a] = x->s->n.axis[a];
	node.body = expr_cast(g, (DType)g->tensor.at[m->tensor].dtype, formula_swap(g, x->s->cx->scratch, m->value, all, n));
	replace(x, m->tensor, node);
}

static bool
is_own(const Chained *x, const CascadeMember *m)
{
	for (unsigned k = 0; k < x->pass->nacc; k++)
		if (x->own[k] == m->tensor)
			return true;
	return false;
}

void
split_chain(Split *s, const SplitChain *c)
{
	Chained x = {.s = s, .c = c, .pass = &c->cascade.pass[0]};
	const CascadePass *p = x.pass;
	for (unsigned q = 0; q < c->n; q++)
		split_keep_whole(s, &s->g->node.at[c->at[q]]);
	for (unsigned q = 0; q < c->cascade.nmember; q++) {
		const CascadeMember *m = &c->cascade.member[q];
		want(&x, m->value, true);
		for (unsigned k = 0; k < p->nacc; k++)
			if (!x.own[k] && m->value == cascade_state(s->g, p, STATE_A, k) && p->acc[k].dtype == s->g->tensor.at[m->tensor].dtype)
				x.own[k] = m->tensor;
	}
	for (unsigned k = 0; k < p->nacc; k++)
		if (x.part[k])
			add_parts(&x, k);
	for (unsigned k = 0; k < p->nacc; k++)
		if (x.joined[k])
			add_joined(&x, k);
	for (unsigned q = 0; q < c->cascade.nmember; q++)
		if (!is_own(&x, &c->cascade.member[q]))
			set_value(&x, &c->cascade.member[q]);
}

static void
choose_parts(Split *s, const SplitChain *c)
{
	s->at = c->at[0];
	if (!split_has_full_parts(s))
		bug(s->g->arena, "split_cascades: node %u", c->at[0]);
	s->again = c->cascade.pass[0].nacc > 1;
	split_choose_parts(s);
	s->again = false;
}

/* Each fold joins the first chain that it reads and folds with, or begins one. */
uint32_t
split_cascades(Split *s, bool *taken)
{
	VEC(SplitChain) chain = {0};
	uint32_t done = 0;
	for (s->at = 0; s->at < s->nnode; s->at++) {
		bool found = false;
		if (taken[s->at] || !split_has_full_parts(s))
			continue;
		for (uint32_t k = 0; k < chain.n && !found; k++)
			found = extend(s, &chain.at[k], s->at);
		if (!found) {
			vec_push(s->cx->scratch, &chain, ((SplitChain){0}));
			SplitChain *c = &chain.at[chain.n - 1];
			c->at[c->n++] = s->at;
		}
	}
	for (uint32_t k = 0; k < chain.n; k++) {
		const SplitChain *c = &chain.at[k];
		if (c->n < 2)
			continue;
		if (!spend(s->cx))
			break;
		choose_parts(s, c);
		split_chain(s, c);
		for (unsigned q = 0; q < c->n; q++)
			taken[c->at[q]] = true;
		done++;
	}
	return done;
}
