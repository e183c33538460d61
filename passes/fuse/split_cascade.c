/* split_cascade.c: folds of which later ones read earlier ones, in parts that are computed at the same time.
 *
 * in     folds over one range, each of which would be done in parts (split_folds.c), and that fold together
 *        (algebra.h): terms of a later one are kept at a value of an earlier one, and can be moved to another
 * out    q_k[p] is the k-th accumulator of part p, with its terms at that part's own anchors; r_k = (+)_p q_k[p], moved
 *        from the part's anchors to those of all; a member is its value over the r_k
 *
 * So parts of a sum of exp(x - max) take the part's maximum, and need not wait for the maximum of all: all parts
 * are one kernel, in which a later fold finds in the cache what an earlier one brought, and what joins them is another.
 * Parts have terms, all of them, and there is a part if there is a term at all; or a row has those between two ends, and a join
 * takes the parts that have some. So whether there was an element is known of parts and needs no accumulator.
 *
 * Accumulators may have an axis more than others, as the columns of a sum of vectors do. Then what such members need is joined at
 * each column anew: all of it is folds of columns, which are one kernel, whose threads each have theirs. */
#include "passes/fuse/split.h"

#include "passes/fuse/formula.h"
#include "ir/bugs.h"
#include "passes/expr_map.h"

enum { MAX_SWAPS = MAX_ACCS + 2 * MAX_ANCHORS };

/* The axes of a tensor, as those of the cascade. */
typedef struct {
	unsigned n;
	uint8_t axis[TG_MAX_RANK];
} Axes;

/* Joins for members of rows; for those of columns. */
enum { OF_ROWS, OF_COLUMNS, NSET };

typedef struct {
	Split *s;
	const SplitChain *c;
	const CascadePass *pass;
	bool part[MAX_ACCS], joined[NSET][MAX_ACCS];     /* are wanted */
	TensorId part_at[MAX_ACCS], joined_at[NSET][MAX_ACCS];
	TensorId own[MAX_ACCS]; /* the member that accumulator is; 0: none */
	Axes parts_of[MAX_ACCS], joins_of[NSET][MAX_ACCS]; /* behind the axis of the parts; of all */
	unsigned set;           /* of the joins at work */
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
	TensorId member[MAX_MEMBERS];
	Cascade *more = ARENA_NEW(s->cx->scratch, Cascade);
	Refusal why;
	if (c->n == MAX_MEMBERS)
		return false;
	for (unsigned k = 0; k < c->n; k++)
		member[k] = s->g->node.at[c->at[k]].out;
	member[c->n] = s->g->node.at[at].out;
	if (!cascade_derive(s->g, s->cx->scratch, member, c->n + 1, NULL, more, &why) || !split_is_chain(s->g, more) ||
	    more->member[c->n].policy == FOLD_PLAIN)
		return false;
	c->cascade = *more;
	c->base = (1u << more->npar) - 1;
	c->at[c->n++] = at;
	return true;
}

/* --- axes --- */

static uint32_t
axes_in(const Graph *g, const CascadeMember *m)
{
	uint32_t axes = 0;
	for (unsigned a = 0; a < g->tensor.at[m->tensor].rank; a++)
		axes |= 1u << m->axis[a];
	return axes;
}

static unsigned
set_of(const Chained *x, uint32_t axes)
{
	return axes & ~x->c->base ? OF_COLUMNS : OF_ROWS;
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
	if (x->joined[x->set][k] || (int)k == x->pass->seen)
		return;
	x->joined[x->set][k] = true;
	want_part(x, k);
	if (!x->pass->acc[k].rebase)
		return;
	want(x, x->pass->acc[k].rebase, false);
	want_anchors(x, k, false);
	want_anchors(x, k, true);
}

/* --- expressions, in the cascade's axes; the part is one more --- */

static ExprId
part_index(const Chained *x)
{
	return expr_axis(x->s->g, x->c->cascade.npar + 1u);
}

/* At an element of a node with these axes from `first` on. */
static ExprId
over_axes(const Chained *x, ExprId e, const Axes *axes, unsigned first, ExprId element, ExprId part)
{
	ExprId sub[TG_MAX_AXES];
	unsigned npar = x->c->cascade.npar;
	for (unsigned a = 0; a < npar; a++)
		sub[a] = expr_axis(x->s->g, a);
	for (unsigned k = 0; k < axes->n; k++)
		sub[axes->axis[k]] = expr_axis(x->s->g, first + k);
	sub[npar] = element;
	sub[npar + 1] = part;
	return e ? expr_subst_axes(x->s->g, e, sub, npar + 2) : 0;
}

static ExprId
read_at(const Chained *x, TensorId t, ExprId part, const Axes *axes)
{
	ExprId at[TG_MAX_RANK];
	unsigned n = 0;
	if (part)
		at[n++] = part;
	for (unsigned k = 0; k < axes->n; k++)
		at[n++] = expr_axis(x->s->g, axes->axis[k]);
	return expr_read(x->s->g, t, at, n, 0);
}

static const Axis *
cut_of(const Chained *x)
{
	return &x->c->cascade.axis[x->c->cascade.npar];
}

static ExprId
part_begin(const Chained *x, ExprId p)
{
	Graph *g = x->s->g;
	ExprId from = cut_of(x)->lo, begin = expr_binary(g, OP_MUL, p, x->s->chunk);
	return expr_get(g, from)->op != OP_CONST || expr_get(g, from)->imm.i != 0 ? expr_binary(g, OP_ADD, from, begin) : begin;
}

/* How many terms a row with ends has: in all, or in part p. */
static ExprId
terms_between(const Chained *x, ExprId p)
{
	Graph *g = x->s->g;
	ExprId lo = x->c->lo, hi = x->c->hi;
	if (p) {
		ExprId begin = part_begin(x, p);
		lo = expr_binary(g, OP_MAX, lo, begin);
		hi = expr_binary(g, OP_MIN, hi, expr_binary(g, OP_ADD, begin, x->s->chunk));
	}
	return expr_binary(g, OP_MAX, expr_binary(g, OP_SUB, hi, lo), expr_int(g, DT_I64, 0));
}

/* How many terms there are: in all, or in part p. */
static ExprId
terms(const Chained *x, ExprId p)
{
	Graph *g = x->s->g;
	const Axis *cut = cut_of(x);
	if (x->c->hi)
		return terms_between(x, p);
	ExprId all = expr_binary(g, OP_MAX, index_norm(g, expr_binary(g, OP_SUB, cut->hi, cut->lo)), expr_int(g, DT_I64, 0));
	ExprId before = p ? expr_binary(g, OP_MUL, p, x->s->chunk) : 0;
	return !p ? all : expr_binary(g, OP_MIN, expr_binary(g, OP_SUB, all, before), x->s->chunk);
}

static ExprId
has_terms(const Chained *x, ExprId p)
{
	return expr_binary(x->s->g, OP_LT, expr_int(x->s->g, DT_I64, 0), terms(x, p));
}

/* The accumulators that there are, in place of a state: of part p, or of all. */
static unsigned
state_swaps(const Chained *x, ExprId p, Swap *out)
{
	Graph *g = x->s->g;
	const TensorId *from = p ? x->part_at : x->joined_at[x->set];
	unsigned n = 0;
	for (unsigned k = 0; k < x->pass->nacc; k++) {
		ExprId state = cascade_state(g, x->pass, STATE_A, k);
		if ((int)k == x->pass->seen && x->pass->counted)
			out[n++] = (Swap){state, terms(x, p)};
		else if ((int)k == x->pass->seen)
			out[n++] = (Swap){state, p && !x->c->hi ? expr_int(g, DT_BOOL, 1) : has_terms(x, p)};
		else if (from[k])
			out[n++] = (Swap){state, read_at(x, from[k], p, p ? &x->parts_of[k] : &x->joins_of[x->set][k])};
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
put_before_reader(const Chained *x, const Node *n)
{
	After a = {x->s, 0};
	unsigned m = 0;
	node_walk(x->s->g, x->s->cx->scratch, n, note_after, &a);
	while (m + 1 < x->c->n && x->c->at[m] < a.after)
		m++;
	x->s->at = x->c->at[m];
}

static const char *
numbered(const Chained *x, const char *what, unsigned k)
{
	return k ? arena_text(x->s->cx->scratch, "%s_%u", what, k) : what;
}

/* Parallel axes of a node, from `first` on, and the extents of its tensor, as a member has them. */
static void
take_axes(const Chained *x, const Axes *axes, unsigned first, Node *n, ExprId *extent)
{
	const Graph *g = x->s->g;
	for (unsigned k = 0; k < axes->n; k++)
		for (unsigned q = x->c->cascade.nmember; q-- > 0;) {
			const CascadeMember *m = &x->c->cascade.member[q];
			for (unsigned a = 0; a < g->tensor.at[m->tensor].rank; a++)
				if (m->axis[a] == axes->axis[k]) {
					n->axis[first + k] = tensor_node(g, m->tensor)->axis[a];
					extent[first + k] = g->tensor.at[m->tensor].extent[a];
				}
		}
}

static void
add_parts(Chained *x, unsigned k)
{
	Graph *g = x->s->g;
	Arena *scratch = x->s->cx->scratch;
	const CascadeAcc *acc = &x->pass->acc[k];
	const Axes *axes = &x->parts_of[k];
	Swap state[MAX_ACCS], anchor[MAX_ANCHORS];
	ExprId p = part_index(x), zero = expr_axis(g, 0), element = expr_axis(g, axes->n + 1), extent[TG_MAX_RANK];
	unsigned nstate = state_swaps(x, p, state), nanchor = anchor_swaps(x, k, ANCHOR_NEW, state, nstate, anchor);
	Node n = {.npar = (uint8_t)(axes->n + 1), .parts = true, .nred = 1, .monoid = acc->monoid};
	n.body = over_axes(x, formula_swap(g, scratch, acc->term, anchor, nanchor), axes, 1, element, zero);
	n.guard = over_axes(x, x->c->cascade.guard, axes, 1, element, zero);
	take_axes(x, axes, 1, &n, extent);
	extent[0] = x->s->count;
	Axis *cut = &n.axis[axes->n + 1];
	cut->name = cut_of(x)->name;
	cut->lo = over_axes(x, part_begin(x, p), axes, 1, element, zero);
	cut->hi = expr_binary(g, OP_MIN, cut_of(x)->hi, expr_binary(g, OP_ADD, cut->lo, x->s->chunk));
	/* to the parts' own anchors a sum that is no contraction would look as one */
	ExprId narrowed = acc->narrowed || BUG(part_rounded) ? narrowed_contraction(g, scratch, &n) : 0;
	n.body = narrowed ? narrowed : n.body;
	put_before_reader(x, &n);
	x->part_at[k] = split_add_node(x->s, &n, numbered(x, "parts", k), acc->dtype, extent);
}

/* Accumulator k of all: the fold of its parts, each moved to the anchors of all. */
static Node
join_of(const Chained *x, unsigned k, ExprId *extent)
{
	Graph *g = x->s->g;
	const CascadeAcc *acc = &x->pass->acc[k];
	const Axes *axes = &x->joins_of[x->set][k];
	Swap state[MAX_ACCS], all[MAX_ACCS], swap[MAX_SWAPS];
	ExprId p = part_index(x), at = expr_axis(g, axes->n), body = read_at(x, x->part_at[k], p, &x->parts_of[k]);
	unsigned nstate = state_swaps(x, p, state), nall = state_swaps(x, 0, all), n = 0;
	Node node = {.npar = (uint8_t)axes->n, .nred = 1, .monoid = acc->monoid};
	take_axes(x, axes, 0, &node, extent);
	node.axis[axes->n] = (Axis){.name = cut_of(x)->name, .lo = expr_int(g, DT_I64, 0), .hi = x->s->count};
	node.guard = x->c->hi ? over_axes(x, has_terms(x, p), axes, 0, at, at) : 0;
	if (acc->rebase && !BUG(part_not_moved)) {
		for (; n < nstate; n++)
			swap[n] = state[n];
		n += anchor_swaps(x, k, ANCHOR_OLD, state, nstate, swap + n);
		n += anchor_swaps(x, k, ANCHOR_NEW, all, nall, swap + n);
		body = formula_swap(g, x->s->cx->scratch, acc->rebase, swap, n);
	}
	node.body = over_axes(x, body, axes, 0, at, at);
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
	ExprId extent[TG_MAX_RANK];
	Node n = join_of(x, k, extent);
	if (x->own[k] && x->set == set_of(x, x->pass->acc[k].axes)) {
		x->joined_at[x->set][k] = x->own[k];
		replace(x, x->own[k], n);
		return;
	}
	put_before_reader(x, &n);
	x->joined_at[x->set][k] = split_add_node(x->s, &n, numbered(x, "joined", k), x->pass->acc[k].dtype, extent);
}

static Axes
axes_of_member(const Chained *x, const CascadeMember *m)
{
	Axes axes = {.n = x->s->g->tensor.at[m->tensor].rank};
	for (unsigned a = 0; a < axes.n; a++)
		axes.axis[a] = m->axis[a];
	return axes;
}

/* A member that is no accumulator itself. */
static void
set_value(const Chained *x, const CascadeMember *m)
{
	Graph *g = x->s->g;
	Swap all[MAX_ACCS];
	ExprId extent[TG_MAX_RANK], zero = expr_int(g, DT_I64, 0);
	Axes axes = axes_of_member(x, m);
	unsigned n = state_swaps(x, 0, all);
	Node node = {.npar = (uint8_t)axes.n};
	take_axes(x, &axes, 0, &node, extent);
	ExprId value = over_axes(x, formula_swap(g, x->s->cx->scratch, m->value, all, n), &axes, 0, zero, zero);
	node.body = expr_cast(g, (DType)g->tensor.at[m->tensor].dtype, value);
	replace(x, m->tensor, node);
}

/* Of the accumulators; joins for columns have all axes, in the order of a member with them. */
static void
find_axes(Chained *x)
{
	Axes columns = {0};
	for (unsigned q = 0; q < x->c->cascade.nmember; q++)
		if (set_of(x, axes_in(x->s->g, &x->c->cascade.member[q])) == OF_COLUMNS)
			columns = axes_of_member(x, &x->c->cascade.member[q]);
	for (unsigned k = 0; k < x->pass->nacc; k++) {
		uint32_t bits = x->pass->acc[k].axes | x->c->base;
		for (unsigned a = 0; a < x->c->cascade.npar; a++)
			if (bits >> a & 1)
				x->parts_of[k].axis[x->parts_of[k].n++] = (uint8_t)a;
		x->joins_of[OF_COLUMNS][k] = columns;
		x->joins_of[OF_ROWS][k] = x->parts_of[k];
		for (unsigned q = 0; q < x->c->cascade.nmember; q++)
			if (x->own[k] == x->c->cascade.member[q].tensor)
				x->joins_of[set_of(x, bits)][k] = axes_of_member(x, &x->c->cascade.member[q]);
	}
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
	for (unsigned q = 0; q < c->n && !c->always; q++)
		split_keep_whole(s, &s->g->node.at[c->at[q]]);
	for (unsigned q = 0; q < c->cascade.nmember; q++) {
		const CascadeMember *m = &c->cascade.member[q];
		x.set = set_of(&x, axes_in(s->g, m));
		want(&x, m->value, true);
		for (unsigned k = 0; k < p->nacc; k++)
			if (!x.own[k] && m->value == cascade_state(s->g, p, STATE_A, k) && p->acc[k].dtype == s->g->tensor.at[m->tensor].dtype &&
			    axes_in(s->g, m) == (p->acc[k].axes | c->base))
				x.own[k] = m->tensor;
	}
	find_axes(&x);
	for (unsigned k = 0; k < p->nacc; k++)
		if (x.part[k])
			add_parts(&x, k);
	for (x.set = 0; x.set < NSET; x.set++) {
		for (unsigned k = 0; k < p->nacc; k++)
			if (x.joined[x.set][k])
				add_joined(&x, k);
		for (unsigned q = 0; q < c->cascade.nmember; q++)
			if (!is_own(&x, &c->cascade.member[q]) && set_of(&x, axes_in(s->g, &c->cascade.member[q])) == x.set)
				set_value(&x, &c->cascade.member[q]);
	}
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
