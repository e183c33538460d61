/* lone_elements.c: elements of a sum of products that are read alone, beside folds that need not store it.
 *
 * in     a sum of products z that reductions fold along an axis, of which others read an element or few: at computed
 *        indices, over fewer axes than z has, as a loss reads the score of each row's label
 * out    where the reductions are then streamed (stream_group.c), such an element is a node of its own, the same sum with the
 *        indices put in, and z is never stored. Where an index may lie outside, and nobody asks for the element then, the sum
 *        has no terms there; where it is checked as it is read, the factors are
 * needs  FACT_FAULTS
 * fp     exact: the terms are the same, and in relaxed mode their order is nobody's
 * tests  tests/text/pass_lone_elements.tex, tests/fuse/scores.tex
 *
 * The elements take as many terms as they have, beside those of all of z, which are computed anyway. An index that is checked
 * must be so where there are no terms to read for it: so there must be some. */
#include "passes/expr_map.h"
#include "passes/fuse/group.h"
#include "passes/pass_ctx.h"
#include "passes/retarget.h"
#include "passes/schedule/schedule.h"

#include "ir/prove.h"

enum { MAX_READS = 8 };

typedef struct {
	uint32_t node;
	ExprId read;
} Lone;

typedef struct {
	Graph *g;
	PassCtx *cx;
	TensorId z;
	const Node *product;
	uint32_t node;       /* of the reader that is looked at */
	bool alone;          /* it reads elements alone, as far as is known */
	bool elsewhere;      /* somebody reads z as nothing here can be done about */
	bool checked;
	unsigned nlone, nfold;
	Lone lone[MAX_READS];
	VEC(uint32_t) owner; /* of new nodes, as nodes_in_order has them */
} Search;

/* --- who reads z, and how --- */

static bool
is_plain(const Graph *g, ExprId sub)
{
	return expr_get(g, sub)->op == OP_AXIS;
}

static bool
is_zero(const Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_CONST && expr_get(g, e)->imm.i == 0;
}

/* Whether the reader's axis a is counted through from 0 to what a launch knows. */
static bool
is_counted(const Search *s, const Node *n, unsigned a)
{
	if (a < n->npar)
		return true;
	const Axis *x = &n->axis[a];
	return !x->clamp && is_zero(s->g, x->lo) && expr_is_of_launch(s->g, s->cx->scratch, x->hi);
}

static void
note_read(void *user, ExprId e)
{
	Search *s = user;
	const Expr *p = expr_get(s->g, e);
	const Node *n = &s->g->node.at[s->node];
	if (p->op != OP_READ || p->ref != s->z)
		return;
	uint32_t axes = expr_axes(s->g, s->cx->scratch, e);
	bool fewer = (unsigned)n->npar + n->nred < s->product->npar && !n->scatter && !n->recur && s->nlone < MAX_READS;
	for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++)
		fewer = fewer && (!(axes >> a & 1) || is_counted(s, n, a));
	s->checked |= p->access != 0;
	if (fewer)
		s->lone[s->nlone++] = (Lone){s->node, e};
	else
		s->alone = false;
}

static void
note_elsewhere(void *user, ExprId e)
{
	Search *s = user;
	const Expr *p = expr_get(s->g, e);
	s->elsewhere |= p->op == OP_READ && p->ref == s->z;
}

/* All readers are folds, or read elements alone in their bodies. */
static bool
find_readers(Search *s)
{
	Graph *g = s->g;
	Arena *scratch = s->cx->scratch;
	s->nlone = s->nfold = 0;
	s->elsewhere = s->checked = false;
	for (s->node = 0; s->node < g->node.n && !s->elsewhere; s->node++) {
		Node n = g->node.at[s->node];
		unsigned before = s->nlone;
		s->alone = true;
		expr_walk(g, scratch, n.body, note_read, s);
		if (!s->alone) {
			s->elsewhere = n.monoid == MON_NONE || s->nlone > before;
			s->nfold++;
			continue;
		}
		n.body = 0;
		node_walk(g, scratch, &n, note_elsewhere, s);
	}
	for (uint32_t r = 0; r < g->result.n; r++)
		s->elsewhere |= g->result.at[r].tensor == s->z;
	return !s->elsewhere && s->nlone > 0 && s->nfold > 0;
}

/* --- whether --- */

/* Whether z is streamed when nobody reads its elements alone. */
static bool
would_stream(Search *s)
{
	Graph *g = s->g;
	ExprId body[MAX_READS], none = expr_float(g, (DType)g->tensor.at[s->z].dtype, 0);
	for (unsigned k = 0; k < s->nlone; k++) {
		Node *n = &g->node.at[s->lone[k].node];
		body[k] = n->body;
		n->body = expr_replace(g, s->cx->scratch, body[k], s->lone[k].read, none);
	}
	if (s->owner.n)
		s->cx->faulty = graph_may_fault(g, s->cx->scratch);
	bool yes = stream_members(g, s->cx)[s->z];
	for (unsigned k = s->nlone; k-- > 0;)
		g->node.at[s->lone[k].node].body = body[k];
	return yes;
}

typedef struct {
	const Search *s;
	uint32_t computed; /* z's axes that are put in other than as axes, as bits */
	AccessId access;
	bool other;        /* is read at something else than the axis itself, or in another range */
} Factor;

static void
note_factor(void *user, ExprId e)
{
	Factor *f = user;
	Graph *g = f->s->g;
	const Expr p = *expr_get(g, e);
	for (unsigned k = 0; p.op == OP_READ && k < p.narg; k++) {
		ExprId sub = expr_arg(g, e, k), extent = g->tensor.at[p.ref].extent[k];
		if (!(expr_axes(g, f->s->cx->scratch, sub) & f->computed))
			continue;
		f->other |= !is_plain(g, sub) || p.access != 0;
		if (is_plain(g, sub))
			f->other |= index_norm(g, extent) != index_norm(g, g->tensor.at[f->s->z].extent[expr_get(g, sub)->ref]);
	}
}

static uint32_t
computed_of(const Search *s, ExprId read)
{
	uint32_t computed = 0;
	for (unsigned k = 0; k < s->product->npar; k++)
		if (!is_plain(s->g, expr_arg(s->g, read, k)))
			computed |= 1u << k;
	return computed;
}

/* Whether there are terms, from what a launch checks. */
static bool
has_terms(const Search *s)
{
	Facts *f = facts_new(s->g, s->cx->scratch);
	const Axis *x = &s->product->axis[s->product->npar];
	for (uint32_t k = 0; k < s->g->check.n; k++)
		facts_push(f, s->g->check.at[k].cond);
	return prove(f, expr_binary(s->g, OP_LT, x->lo, x->hi));
}

static bool
is_possible(Search *s)
{
	const Node *n = s->product;
	const Axis *x = &n->axis[n->npar];
	if (n->nred != 1 || n->guard || n->domain || x->clamp || expr_axes(s->g, s->cx->scratch, x->lo) || expr_axes(s->g, s->cx->scratch, x->hi))
		return false;
	for (unsigned k = 0; k < s->nlone; k++) {
		Factor f = {.s = s, .computed = computed_of(s, s->lone[k].read)};
		expr_walk(s->g, s->cx->scratch, n->body, note_factor, &f);
		if (f.other)
			return false;
	}
	if (s->checked && !has_terms(s)) {
		remark(s->cx, REMARK_lone_checked, s->z);
		return false;
	}
	return true;
}

/* --- the nodes --- */

static ExprId
check_factor(void *user, Graph *g, ExprId e)
{
	const Factor *f = user;
	const Expr p = *expr_get(g, e);
	ExprId sub[TG_MAX_RANK];
	bool computed = false;
	for (unsigned k = 0; p.op == OP_READ && k < p.narg; k++) {
		sub[k] = expr_arg(g, e, k);
		computed |= (expr_axes(g, f->s->cx->scratch, sub[k]) & f->computed) != 0;
	}
	return computed ? expr_read(g, p.ref, sub, p.narg, f->access) : e;
}

/* 0 <= sub < extent, for all subscripts that are computed. */
static ExprId
inside(const Search *s, uint32_t computed, const ExprId *sub)
{
	Graph *g = s->g;
	ExprId in = 0;
	for (unsigned k = 0; k < s->product->npar; k++) {
		if (!(computed >> k & 1))
			continue;
		in = expr_and(g, in, expr_binary(g, OP_LE, expr_int(g, DT_I64, 0), sub[k]));
		in = expr_and(g, in, expr_binary(g, OP_LT, sub[k], g->tensor.at[s->z].extent[k]));
	}
	return in;
}

/* The element as a node over the axes that its subscripts have, as one part, so that who reads it is another kernel: that one's
 * rows are no terms of the element. How its reader reads it. */
static ExprId
add_element(Search *s, const Lone *l)
{
	Graph *g = s->g;
	const Node reader = g->node.at[l->node], n = *s->product;
	const Tensor z = g->tensor.at[s->z], out = g->tensor.at[reader.out];
	uint32_t axes = expr_axes(g, s->cx->scratch, l->read);
	ExprId own[TG_MAX_AXES], at[TG_MAX_RANK], extent[TG_MAX_RANK], sub[TG_MAX_AXES];
	Node e = {.npar = 1, .nred = 1, .monoid = n.monoid, .parts = true};
	extent[0] = expr_int(g, DT_I64, 1);
	at[0] = expr_int(g, DT_I64, 0);
	for (unsigned a = 0; a < (unsigned)reader.npar + reader.nred; a++) {
		own[a] = expr_axis(g, e.npar);
		if (!(axes >> a & 1))
			continue;
		extent[e.npar] = a < reader.npar ? out.extent[a] : reader.axis[a].hi;
		at[e.npar] = expr_axis(g, a);
		e.axis[e.npar++] = (Axis){.name = reader.axis[a].name};
	}
	Factor f = {.s = s, .computed = computed_of(s, l->read), .access = expr_get(g, l->read)->access};
	for (unsigned k = 0; k < n.npar; k++)
		sub[k] = expr_subst_axes(g, expr_arg(g, l->read, k), own, reader.npar + reader.nred);
	sub[n.npar] = expr_axis(g, e.npar);
	e.axis[e.npar] = n.axis[n.npar];
	e.guard = f.access ? 0 : inside(s, f.computed, sub);
	ExprId body = f.access ? expr_map(g, s->cx->scratch, n.body, check_factor, &f) : n.body;
	e.body = expr_subst_axes(g, body, sub, n.npar + 1u);
	e.finish = n.finish ? expr_subst_axes(g, n.finish, sub, n.npar) : 0;
	vec_push(s->cx->scratch, &s->owner, l->node);
	return expr_read(g, node_add(g, &e, 0, z.at, (DType)z.dtype, extent), at, e.npar, 0);
}

uint32_t
pass_lone_elements(Graph *g, PassCtx *cx)
{
	Search s = {.g = g, .cx = cx};
	uint32_t nnode = g->node.n, done = 0;
	if (cx->options->fuse != FUSE_ALL || g->fp == FP_STRICT)
		return 0;
	for (uint32_t i = 0; i < nnode; i++) {
		s.z = g->node.at[i].out;
		if (!contract_is_sum_of_products(g, s.z))
			continue;
		Node product = g->node.at[i];
		s.product = &product;
		if (!find_readers(&s) || !would_stream(&s) || !is_possible(&s) || !spend(cx))
			continue;
		for (unsigned k = 0; k < s.nlone; k++) {
			ExprId element = add_element(&s, &s.lone[k]);
			ExprId body = expr_replace(g, cx->scratch, g->node.at[s.lone[k].node].body, s.lone[k].read, element);
			g->node.at[s.lone[k].node].body = body;
		}
		done++;
	}
	if (s.owner.n)
		nodes_in_order(g, cx->scratch, nnode, s.owner.at, s.owner.n);
	return done;
}
