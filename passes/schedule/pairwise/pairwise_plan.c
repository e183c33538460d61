/* pairwise_plan.c: which nodes are folds over pairs of rows and elements, and what is computed of a pair (pairwise.h).
 *
 * Members are told apart by who reads them. What a fold reads at the pair is inner: its value is written out where it
 * is read, a sum over a short range term by term. What is folded, and read by pointwise nodes at most, are the folds; these
 * nodes are computed when all is folded. Then every read is of the row or of the element; one of both would have to come
 * from memory for each pair, and is for other templates.
 *
 * What depends on the row alone, or on the element and what all of a block's rows have in common, is found once for each: the
 * largest such parts of the bodies become values. Sums are written out in their order, but a strict one takes an fma a term: strict graphs are not taken. */
#include "passes/schedule/pairwise/pairwise.h"

#include <string.h>

#include "ir/bugs.h"
#include "passes/schedule/point/long_sums.h"

enum { MAX_SIZE = 256 }; /* operations of a body: it is written out for several pairs */

typedef enum { ROLE_NONE, INNER, FOLD, AFTER } Role;

typedef struct {
	Graph *g;
	Arena *scratch;
	const Places *places;
	const TensorId *node;
	unsigned n;
	Role role[KP_MAX_NODES];
	ExprId inner[KP_MAX_NODES]; /* of an inner node: its value over its own axes */
	Pairwise *out;
} Plan;

static int
index_of(const Plan *p, TensorId t)
{
	for (unsigned k = 0; k < p->n; k++)
		if (p->node[k] == t)
			return (int)k;
	return -1;
}

static int
member_of(const Pairwise *w, TensorId t)
{
	for (unsigned m = 0; m < w->nmember; m++)
		if (w->member[m].t == t)
			return (int)m;
	return -1;
}

static int64_t
known(const Graph *g, ExprId e)
{
	const Expr *x = expr_get(g, e);
	return x->op == OP_CONST ? x->imm.i : -1;
}

/* --- roles --- */

static bool
is_plain(const Plan *p, TensorId t)
{
	const Node *n = tensor_node(p->g, t);
	if (n->recur || n->scatter || n->parts || n->nred > 1 || p->places->faulty[t])
		return false;
	if (monoid_info[n->monoid].index || p->g->tensor.at[t].dtype == DT_C64 || dtype_info[p->g->tensor.at[t].dtype].bits < 8)
		return false;
	return n->nred == 0 || (!n->axis[n->npar].clamp && !n->axis[n->npar].cut);
}

/* What reads reductions has come by then. */
static bool
find_roles(Plan *p)
{
	for (unsigned k = p->n; k-- > 0;) {
		bool folded = false, after = false;
		const Node *own = tensor_node(p->g, p->node[k]);
		if (!own || !is_plain(p, p->node[k]))
			return false;
		for (unsigned j = k + 1; j < p->n; j++)
			if (node_reads(p->g, p->scratch, tensor_node(p->g, p->node[j]), p->node[k])) {
				folded |= p->role[j] == FOLD || p->role[j] == INNER;
				after |= p->role[j] == AFTER;
			}
		bool point = own->monoid == MON_NONE;
		p->role[k] = folded ? INNER : point ? AFTER : FOLD;
		if (folded && (after || p->places->stored[p->node[k]]))
			return false;
	}
	return true;
}

/* --- inner nodes --- */

typedef struct {
	Plan *p;
	const ExprId *sub; /* by axis */
	unsigned nsub;
	ExprId acc;        /* in place of ACC */
	bool after, failed;
} Inline;

/* What a pointwise node of the folds reads of them: at its own point. */
static ExprId
result_read(Inline *in, ExprId e)
{
	Graph *g = in->p->g;
	const Expr x = *expr_get(g, e);
	int m = member_of(in->p->out, x.ref);
	unsigned value = 0;
	if (m < 0 || !in->after) {
		in->failed = true;
		return e;
	}
	const PairwiseMember *of = &in->p->out->member[m];
	for (unsigned a = 0; a < x.narg; a++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, a));
		if (of->axis[a] >= 0)
			in->failed |= sub->op != OP_AXIS || sub->ref != (unsigned)of->axis[a];
		else if (sub->op == OP_CONST && sub->imm.i >= 0 && sub->imm.i < of->count)
			value = (unsigned)sub->imm.i;
		else
			in->failed = true;
	}
	return pairwise_ivar(g, PAIRWISE_RESULT, (unsigned)m * PAIRWISE_SHORT + value, (DType)x.dtype);
}

static ExprId
inline_leaf(void *user, Graph *g, ExprId e)
{
	Inline *in = user;
	const Expr x = *expr_get(g, e);
	if (x.op == OP_AXIS)
		return x.ref < in->nsub ? in->sub[x.ref] : e;
	if (x.op == OP_ACC)
		return in->acc ? in->acc : e;
	in->failed |= x.op == OP_TOUCHED || x.dtype == DT_C64 || (x.op == OP_READ && x.access);
	int k = x.op == OP_READ ? index_of(in->p, x.ref) : -1;
	if (k < 0)
		return e;
	if (in->p->role[k] != INNER)
		return result_read(in, e);
	return expr_at_read(g, in->p->inner[k], e);
}

/* e with these in place of its axes and inner nodes; 0 stays. */
static ExprId
inlined(Inline *in, ExprId e)
{
	return e ? expr_rewrite(in->p->g, e, inline_leaf, in) : 0;
}

static Op
op_of(Monoid m)
{
	switch (m) {
	case MON_SUM: return OP_ADD;
	case MON_PROD: return OP_MUL;
	case MON_MAX: return OP_MAX;
	case MON_MIN: return OP_MIN;
	case MON_ANY: return OP_OR;
	case MON_ALL: return OP_AND;
	case MON_NONE: case MON_ARGMAX: case MON_ARGMIN: break;
	}
	return OP_NONE;
}

/* How many values there are at most below this extent of a short axis; 0: it is none. It may become the one that only the
 * launch knows. */
static unsigned
short_count(Plan *p, ExprId extent)
{
	int64_t n = known(p->g, extent);
	if (n >= 0)
		return n <= PAIRWISE_SHORT ? (unsigned)n : 0;
	if (!p->out->some)
		p->out->some = extent;
	return extent == p->out->some ? p->out->most : 0;
}

/* The fold over a short range, written out. */
static ExprId
written_out(Plan *p, const Node *n, Inline *in, ExprId *sub)
{
	Graph *g = p->g;
	const Axis *range = &n->axis[n->npar];
	unsigned count = known(g, range->lo) == 0 ? short_count(p, range->hi) : 0;
	ExprId acc = 0;
	if (!count || !expr_is_true(g, n->guard) || op_of(n->monoid) == OP_NONE)
		return 0;
	for (unsigned d = 0; d < count; d++) {
		sub[n->npar] = expr_int(g, DT_I64, d);
		ExprId term = expr_cast(g, reduction_type(g, n), inlined(in, n->body));
		ExprId next = acc ? expr_binary(g, op_of(n->monoid), acc, term) : term;
		bool may_lack = range->hi == p->out->some && d >= p->out->least && !BUG(pairwise_extent_padded);
		acc = may_lack ? expr_select(g, expr_binary(g, OP_LT, expr_int(g, DT_I64, d), range->hi), next, acc) : next;
	}
	return acc;
}

static bool
find_inner(Plan *p, unsigned k)
{
	Graph *g = p->g;
	const Node n = *tensor_node(g, p->node[k]);
	ExprId sub[TG_MAX_AXES];
	Inline in = {.p = p, .sub = sub, .nsub = n.npar + n.nred};
	for (unsigned a = 0; a < n.npar; a++)
		sub[a] = expr_axis(g, a);
	ExprId v = n.nred ? written_out(p, &n, &in, sub) : inlined(&in, n.body);
	if (!v)
		return false;
	in.acc = v;
	if (n.finish)
		v = inlined(&in, n.finish);
	p->inner[k] = expr_cast(g, g->tensor.at[p->node[k]].dtype, v);
	return !in.failed;
}

/* --- folds --- */

typedef struct {
	const Plan *p;
	unsigned axis;
	bool found;
} Handed;

static void
note_handed(void *user, ExprId e)
{
	Handed *h = user;
	const Graph *g = h->p->g;
	const Expr *x = expr_get(g, e);
	if (x->op == OP_READ && index_of(h->p, x->ref) >= 0 && h->p->role[index_of(h->p, x->ref)] == INNER)
		h->found |= expr_axes(g, h->p->scratch, e) >> h->axis & 1;
}

/* The member's short axis, which inner nodes do not have; -1: none. */
static int
short_axis(const Plan *p, const Node *n)
{
	const Tensor *t = &p->g->tensor.at[n->out];
	int a = n->npar - 1;
	Handed h = {.p = p, .axis = (unsigned)a};
	if (n->npar < 2)
		return -1;
	int64_t extent = known(p->g, t->extent[a]);
	if (t->extent[a] != p->out->some && (extent < 1 || extent > PAIRWISE_SHORT))
		return -1;
	node_walk(p->g, p->scratch, n, note_handed, &h);
	return h.found ? -1 : a;
}

/* Rows are the same for all members. */
static bool
find_rows(Pairwise *w, const Tensor *t, PairwiseMember *m, int own)
{
	unsigned nrow = 0;
	for (unsigned a = 0; a < t->rank; a++) {
		m->axis[a] = (int)a == own ? -1 : (int8_t)nrow;
		if ((int)a == own)
			continue;
		if (w->nmember == 0)
			w->extent[nrow] = t->extent[a];
		else if (nrow >= w->nrow || w->extent[nrow] != t->extent[a])
			return false;
		nrow++;
	}
	w->nrow = w->nmember ? w->nrow : nrow;
	return nrow == w->nrow && nrow > 0;
}

static bool
find_range(Pairwise *w, const Graph *g, Arena *scratch, const Axis *range)
{
	if (w->nmember && (w->lo != range->lo || w->hi != range->hi))
		return false;
	w->lo = range->lo;
	w->hi = range->hi;
	return expr_is_of_launch(g, scratch, w->lo) && expr_is_of_launch(g, scratch, w->hi);
}

/* A term of a long sum. Of n terms a warp adds an eighth and less than a round more, then all eight are joined: no term goes
 * through more than n / 8 + 20 additions, which leaves of the bound what long_sums.c asks for from 1200 terms on. */
static ExprId
shortened(Pairwise *w, Graph *g, ExprId term)
{
	ExprId v = long_sums_term(g, term);
	w->shortened |= v != term;
	return v;
}

static bool
add_member(Plan *p, unsigned k)
{
	Graph *g = p->g;
	Pairwise *w = p->out;
	const Node n = *tensor_node(g, p->node[k]);
	const Tensor t = g->tensor.at[p->node[k]];
	int own = short_axis(p, &n);
	ExprId sub[TG_MAX_AXES];
	if (w->nmember == PAIRWISE_MEMBERS)
		return false;
	PairwiseMember *m = &w->member[w->nmember];
	*m = (PairwiseMember){.t = p->node[k], .monoid = n.monoid, .count = own < 0 ? 1 : short_count(p, t.extent[own])};
	if (!find_rows(w, &t, m, own) || (n.nred && !find_range(w, g, p->scratch, &n.axis[n.npar])))
		return false;
	m->type = n.nred ? reduction_type(g, &n) : t.dtype;
	m->beyond = own >= 0 && t.extent[own] == w->some ? w->some : 0;
	Inline in = {.p = p, .sub = sub, .nsub = n.npar + n.nred, .after = !n.nred};
	for (unsigned c = 0; c < m->count; c++) {
		for (unsigned a = 0; a < n.npar; a++)
			sub[a] = m->axis[a] < 0 ? expr_int(g, DT_I64, c) : expr_axis(g, (unsigned)m->axis[a]);
		sub[n.npar] = expr_axis(g, w->nrow);
		m->body[c] = inlined(&in, n.body);
		m->keep[c] = expr_is_true(g, n.guard) ? 0 : inlined(&in, n.guard);
		if (w->long_sums && n.monoid == MON_SUM && !m->keep[c])
			m->body[c] = shortened(w, g, m->body[c]);
		in.acc = n.nred ? 0 : m->body[c];
		m->finish[c] = inlined(&in, n.finish);
		m->domain[c] = expr_is_true(g, n.domain) ? 0 : inlined(&in, n.domain);
		in.acc = 0;
		if (!n.nred && n.finish) {
			m->body[c] = m->finish[c];
			m->finish[c] = 0;
		}
	}
	w->nfold += n.nred ? m->count : 0;
	w->nmember++;
	return !in.failed && m->count > 0 && w->nfold <= PAIRWISE_FOLDS;
}

/* --- what rows have, and elements --- */

typedef struct {
	Plan *p;
	ExprId *to; /* by ExprId */
	uint32_t n; /* that there were */
	bool failed;
} Split;

typedef struct {
	const Graph *g;
	unsigned n;
	bool computes; /* reads, or is no arithmetic of indices */
} Size;

static void
note_size(void *user, ExprId e)
{
	Size *s = user;
	const Expr *x = expr_get(s->g, e);
	s->n++;
	s->computes |= x->op == OP_READ || (x->narg && x->dtype != DT_I64);
}

static Size
size_of(const Plan *p, ExprId e)
{
	Size s = {.g = p->g};
	expr_walk(p->g, p->scratch, e, note_size, &s);
	return s;
}

static ExprId
named(Split *s, ExprId e, bool of_row)
{
	Pairwise *w = s->p->out;
	ExprId *list = of_row ? w->row_value : w->element_value;
	unsigned *n = of_row ? &w->nrow_value : &w->nelement_value, k = 0;
	DType t = (DType)expr_get(s->p->g, e)->dtype;
	if (!size_of(s->p, e).computes)
		return e;
	while (k < *n && list[k] != e)
		k++;
	if (k == PAIRWISE_VALUES || dtype_info[t].bits < 8 || t == DT_C64) {
		s->failed = true;
		return e;
	}
	list[k] = e;
	*n += k == *n;
	return pairwise_ivar(s->p->g, of_row ? PAIRWISE_OF_ROW : PAIRWISE_OF_ELEMENT, k, t);
}

/* As deep as a body is at most. */
static ExprId
split(Split *s, ExprId e)
{
	Graph *g = s->p->g;
	uint32_t axes = expr_axes(g, s->p->scratch, e), element = UINT32_C(1) << s->p->out->nrow, lane = element >> 1;
	const Expr x = *expr_get(g, e);
	ExprId arg[TG_MAX_AXES];
	if (s->failed || !axes)
		return e;
	if (e < s->n && s->to[e])
		return s->to[e];
	ExprId v = e;
	if (!(axes & element) || !(axes & lane)) {
		v = named(s, e, !(axes & element));
	} else {
		s->failed |= x.op == OP_READ || x.op == OP_RAND || x.op == OP_RANDN;
		for (unsigned k = 0; k < x.narg; k++)
			arg[k] = split(s, expr_arg(g, e, k));
		v = expr_make(g, (Op)x.op, (DType)x.dtype, x.ref, x.access, arg, x.narg);
	}
	if (e < s->n)
		s->to[e] = v;
	return v;
}

static bool
split_bodies(Plan *p)
{
	Pairwise *w = p->out;
	Split s = {.p = p, .n = p->g->expr.n, .to = ARENA_ARRAY(p->scratch, ExprId, p->g->expr.n)};
	for (unsigned m = 0; m < w->nmember && w->member[m].monoid; m++)
		for (unsigned c = 0; c < w->member[m].count; c++) {
			PairwiseMember *x = &w->member[m];
			if (size_of(p, x->body[c]).n > MAX_SIZE)
				return false;
			x->body[c] = split(&s, x->body[c]);
			x->keep[c] = x->keep[c] ? split(&s, x->keep[c]) : 0;
		}
	return !s.failed && w->nrow_value && w->nelement_value;
}

bool
pairwise_plan(Graph *g, Arena *scratch, const Places *places, const TensorId *node, unsigned n, unsigned least,
              unsigned most, bool long_sums, Pairwise *out)
{
	Plan *p = ARENA_NEW(scratch, Plan);
	*p = (Plan){.g = g, .scratch = scratch, .places = places, .node = node, .n = n, .out = out};
	memset(out, 0, sizeof *out);
	out->least = least;
	out->most = most;
	out->long_sums = long_sums;
	if (g->fp == FP_STRICT || n > KP_MAX_NODES || !find_roles(p))
		return false;
	for (unsigned k = 0; k < n; k++)
		if (p->role[k] == INNER && !find_inner(p, k))
			return false;
	for (unsigned role = FOLD; role <= AFTER; role++)
		for (unsigned k = 0; k < n; k++)
			if (p->role[k] == role && !add_member(p, k))
				return false;
	return out->nmember && out->member[0].monoid && split_bodies(p);
}
