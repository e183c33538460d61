/* split_folds.c: a fold to a single element becomes a fold of parts, and a fold of these, so that the
 * parts can run at the same time.
 *
 * in     any graph in relaxed or fast mode
 * out    r = (+)_k B(k), without a parallel axis, is r = (+)_p q[p] where q[p] folds the p-th part of one
 *        of the ranges. The number of parts and their lengths are functions of the ranges alone: the same
 *        bits on any number of threads
 * fp     reassociates; q has the type that r was folded in, so nothing else is rounded
 * tests  tests/passes/split_test.c, tests/fuse/kernels.tex, tests/random
 *
 * No part is empty but where a guard, or a range inside, leaves nothing. Then one more fold says which parts
 * have a term, and r takes those alone. An arg folds the extremes of the parts and, beside them, their
 * positions; r is the position in the part that wins. Parts are in the order of the terms, so the first of
 * equals stays the first.
 *
 * New nodes must come before the nodes that read them: at the end all are put in order. */
#include "passes/expr_map.h"
#include "passes/pass_ctx.h"
#include "passes/retarget.h"

#include "ir/bugs.h"

enum {
	PART_TERMS = 1 << 15,  /* some ten microseconds of the cheapest terms */
	MOST_PARTS = 256,      /* more than there are threads */
	PART_MULTIPLE = 64,    /* elements: whole vectors */
	SOME_TERMS = 16,       /* of a range that is not known at launch */
	SHORT_RANGE = 16,      /* known to be shorter: another is cut, if there is one */
	SPAN_LIMIT = 1 << 30
};

typedef struct {
	Graph *g;
	PassCtx *cx;
	uint32_t nnode;        /* that there were */
	VEC(uint32_t) owner;   /* by new node: the node that reads it */
	/* the fold at work */
	uint32_t at;
	Node n;
	unsigned cut;          /* the axis of which parts are made */
	ExprId chunk, count;   /* its terms in a part; the parts */
	bool maybe_empty;
	bool reads, reads_more; /* tensors; others than folds */
} Split;

/* --- sizes, as expressions over dims --- */

static ExprId
num(const Split *s, int64_t v)
{
	return expr_int(s->g, DT_I64, v);
}

static bool
is_number(const Split *s, ExprId e, int64_t *v)
{
	ExprId norm = index_norm(s->g, e);
	const Expr *p = expr_get(s->g, norm);
	*v = p->imm.i;
	return p->op == OP_CONST;
}

static bool
known_at_launch(const Split *s, unsigned a)
{
	const Axis *x = &s->n.axis[a];
	ExprId both = expr_binary(s->g, OP_SUB, x->hi, x->lo);
	return expr_is_index(s->g, s->cx->scratch, both) && expr_axes(s->g, s->cx->scratch, both) == 0;
}

static ExprId
span(const Split *s, unsigned a)
{
	ExprId size = expr_binary(s->g, OP_SUB, s->n.axis[a].hi, s->n.axis[a].lo);
	return expr_binary(s->g, OP_MAX, index_norm(s->g, size), num(s, 0));
}

/* The terms for each index of the axis that is cut. */
static ExprId
terms_inside(Split *s)
{
	ExprId all = num(s, 1);
	for (unsigned a = 0; a < s->n.nred; a++) {
		if (a == s->cut)
			continue;
		bool known = known_at_launch(s, a);
		s->maybe_empty |= !known;
		all = expr_binary(s->g, OP_MUL, all, known ? span(s, a) : num(s, SOME_TERMS));
		all = expr_binary(s->g, OP_MIN, all, num(s, SPAN_LIMIT));
	}
	return all;
}

static ExprId
quotient_up(const Split *s, ExprId a, ExprId b)
{
	ExprId more = BUG(last_part_missing) ? num(s, 0) : expr_binary(s->g, OP_SUB, b, num(s, 1));
	return expr_binary(s->g, OP_IDIV, expr_binary(s->g, OP_ADD, a, more), b);
}

static int64_t
part_terms(const Split *s)
{
	return s->cx->options->part_terms ? s->cx->options->part_terms : PART_TERMS;
}

static bool
is_small(const Split *s)
{
	int64_t all = 1, v;
	for (unsigned a = 0; a < s->n.nred; a++) {
		if (!known_at_launch(s, a) || !is_number(s, expr_binary(s->g, OP_SUB, s->n.axis[a].hi, s->n.axis[a].lo), &v))
			return false;
		all = v <= 0 ? 0 : v > part_terms(s) ? part_terms(s) + 1 : all * v;
		if (all > part_terms(s))
			return false;
	}
	return true;
}

/* The outermost range that is known, but for one that is known to be short. */
static bool
choose_cut(Split *s)
{
	bool found = false;
	for (unsigned a = s->n.nred; a-- > 0;) {
		int64_t v;
		if (!known_at_launch(s, a))
			continue;
		bool is_short = is_number(s, expr_binary(s->g, OP_SUB, s->n.axis[a].hi, s->n.axis[a].lo), &v) && v < SHORT_RANGE;
		if (!found || !is_short)
			s->cut = a;
		found = true;
	}
	return found;
}

/* A chunk is the terms worth a task, but more where there would be too many parts. */
static void
choose_parts(Split *s)
{
	Graph *g = s->g;
	ExprId one = num(s, 1), whole = span(s, s->cut), least = num(s, part_terms(s)), inside = 0;
	if (s->n.nred > 1) {
		inside = terms_inside(s);
		least = expr_binary(g, OP_IDIV, least, expr_binary(g, OP_MAX, inside, one));
		least = expr_binary(g, OP_MAX, least, one);
	}
	ExprId most = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, whole, num(s, MOST_PARTS - 1)), num(s, MOST_PARTS));
	if (!inside && part_terms(s) >= PART_MULTIPLE) {
		ExprId up = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, most, num(s, PART_MULTIPLE - 1)), num(s, PART_MULTIPLE));
		most = expr_binary(g, OP_MUL, up, num(s, PART_MULTIPLE));
	}
	s->chunk = expr_binary(g, OP_MAX, least, most);
	s->count = expr_binary(g, OP_MIN, quotient_up(s, whole, s->chunk), num(s, MOST_PARTS)); /* which it is anyway */
	if (inside) /* no part of nothing */
		s->count = expr_binary(g, OP_MIN, s->count, expr_binary(g, OP_MUL, inside, num(s, MOST_PARTS)));
}

/* --- what is asked --- */

static void
ask_touched(void *user, ExprId e)
{
	const Graph **g = user;
	if (*g && expr_get(*g, e)->op == OP_TOUCHED)
		*g = NULL;
}

static bool
asks_touched(const Split *s)
{
	const Graph *g = s->g;
	expr_walk(s->g, s->cx->scratch, s->n.finish, ask_touched, &g);
	return !g;
}

static bool
is_arg(const Split *s)
{
	return monoid_info[s->n.monoid].index;
}

/* In which terms are folded. */
static DType
folded_type(const Split *s)
{
	DType body = (DType)expr_get(s->g, s->n.body)->dtype;
	return s->n.monoid == MON_ANY || s->n.monoid == MON_ALL ? DT_BOOL : dtype_info[body].arith;
}

static bool
is_always(const Graph *g, ExprId e)
{
	return !e || (expr_get(g, e)->op == OP_CONST && expr_get(g, e)->imm.i);
}

/* Whether an empty part must be left out, rather than taken as its fold of nothing. */
static bool
needs_presence(const Split *s)
{
	bool exact = dtype_is_int(folded_type(s));
	bool unit = s->n.monoid == MON_ANY || s->n.monoid == MON_ALL ||
	            (exact && (s->n.monoid == MON_SUM || s->n.monoid == MON_PROD));
	return (s->maybe_empty || !is_always(s->g, s->n.guard)) && (!unit || asks_touched(s));
}

static bool
is_single_fold(const Split *s)
{
	const Node *n = &s->n;
	bool counts = expr_get(s->g, n->body)->op == OP_CONST && is_always(s->g, n->guard); /* its terms alone */
	return n->npar == 0 && n->nred > 0 && n->monoid != MON_NONE && !n->recur && !n->scatter && !counts &&
	       is_always(s->g, n->domain);
}

/* What it folds was folded before: elements that are few beside what they were made of. */
static void
ask_folded(void *user, ExprId e)
{
	Split *s = user;
	const Expr *p = expr_get(s->g, e);
	if (p->op != OP_READ || s->g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return;
	s->reads = true;
	s->reads_more |= !tensor_node(s->g, p->ref) || tensor_node(s->g, p->ref)->nred == 0;
}

static bool
folds_folded(Split *s)
{
	s->reads = s->reads_more = false;
	expr_walk(s->g, s->cx->scratch, s->n.body, ask_folded, s);
	return s->reads && !s->reads_more;
}

static RemarkId
refusal(Split *s)
{
	for (unsigned a = 0; a < s->n.nred; a++)
		if (s->n.axis[a].clamp)
			return REMARK_split_range;
	if (!choose_cut(s))
		return REMARK_split_range;
	if (is_arg(s) && s->n.nred > 1)
		return REMARK_split_position;
	if (folded_type(s) == DT_C64 && s->n.monoid != MON_SUM)
		return REMARK_split_complex;
	return s->n.nred == TG_MAX_AXES - 1 ? REMARK_split_range : REMARK_NONE;
}

/* --- the nodes --- */

static ExprId
moved(const Split *s, ExprId e)
{
	ExprId sub[TG_MAX_AXES];
	for (unsigned k = 0; k < s->n.nred; k++)
		sub[k] = expr_axis(s->g, k + 1);
	return e ? expr_subst_axes(s->g, e, sub, s->n.nred) : 0;
}

/* The fold of this body over each part; present: which parts have a term, 0 for those that all have. */
static TensorId
add_part(Split *s, Monoid monoid, ExprId body, DType t, TensorId present, const char *what)
{
	Graph *g = s->g;
	const Tensor whole = g->tensor.at[s->n.out];
	ExprId p = expr_axis(g, 0), from = s->n.axis[s->cut].lo;
	Node n = {.npar = 1, .nred = s->n.nred, .monoid = monoid, .guard = moved(s, s->n.guard), .body = moved(s, body)};
	for (unsigned k = 0; k < s->n.nred; k++) {
		n.axis[k + 1] = s->n.axis[k];
		n.axis[k + 1].lo = moved(s, s->n.axis[k].lo);
		n.axis[k + 1].hi = moved(s, s->n.axis[k].hi);
	}
	Axis *cut = &n.axis[s->cut + 1];
	cut->lo = expr_binary(g, OP_MUL, p, s->chunk);
	if (expr_get(g, from)->op != OP_CONST || expr_get(g, from)->imm.i != 0)
		cut->lo = expr_binary(g, OP_ADD, from, cut->lo);
	cut->hi = expr_binary(g, OP_MIN, cut->hi, expr_binary(g, OP_ADD, cut->lo, s->chunk));
	if (present)
		n.domain = expr_read(g, present, &p, 1, 0);
	Name name = whole.name ? name_cstr(g->names, arena_text(s->cx->scratch, "%s_%s", name_text(g->names, whole.name), what)) : 0;
	vec_push(s->cx->scratch, &s->owner, s->at);
	return node_add(g, &n, name, whole.at, t, &s->count);
}

typedef struct {
	ExprId acc;
} Acc;

static ExprId
swap_acc(void *user, Graph *g, ExprId e)
{
	return expr_get(g, e)->op == OP_ACC ? ((Acc *)user)->acc : e;
}

/* The position in the part that wins, counted from the first one; there may be no part. */
static ExprId
position_of(Split *s, TensorId positions)
{
	Graph *g = s->g;
	ExprId part = expr_make(g, OP_ACC, DT_I64, 0, 0, NULL, 0);
	ExprId at = expr_binary(g, OP_ADD, expr_read(g, positions, &part, 1, 0), expr_binary(g, OP_MUL, part, s->chunk));
	return expr_select(g, expr_make(g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0), at, num(s, 0));
}

static void
split(Split *s)
{
	Graph *g = s->g;
	Node n = s->n;
	ExprId p = expr_axis(g, 0), yes = expr_int(g, DT_BOOL, 1);
	DType t = folded_type(s);
	Monoid extreme = n.monoid == MON_ARGMAX ? MON_MAX : n.monoid == MON_ARGMIN ? MON_MIN : n.monoid;
	TensorId present = needs_presence(s) ? add_part(s, MON_ANY, yes, DT_BOOL, 0, "present") : 0;
	TensorId parts = add_part(s, extreme, n.body, t, present, "parts");
	if (is_arg(s)) {
		Acc a = {position_of(s, add_part(s, n.monoid, n.body, DT_I64, present, "positions"))};
		n.finish = n.finish ? expr_rewrite(g, n.finish, swap_acc, &a) : a.acc;
	}
	n.nred = 1;
	n.axis[0] = (Axis){.name = n.axis[s->cut].name, .lo = num(s, 0), .hi = s->count};
	n.guard = present ? expr_read(g, present, &p, 1, 0) : 0;
	n.body = expr_read(g, parts, &p, 1, 0);
	g->node.at[s->at] = n;
}

/* --- order --- */

static void
place(Graph *g, const Node *node, const Tensor *tensor, uint32_t from, uint32_t *to, TensorId *id, TensorId first)
{
	TensorId was = node[from].out, now = first + *to;
	g->node.at[*to] = node[from];
	g->node.at[*to].out = now;
	g->tensor.at[now] = tensor[was];
	g->tensor.at[now].node = (*to)++;
	id[was] = now;
}

/* New nodes before their owners; nodes have the last tensors of the graph. */
static void
put_in_order(Split *s)
{
	Graph *g = s->g;
	Arena *a = s->cx->scratch;
	const Node *node = arena_copy(a, g->node.at, g->node.n * sizeof *node);
	const Tensor *tensor = arena_copy(a, g->tensor.at, g->tensor.n * sizeof *tensor);
	TensorId first = g->tensor.n - g->node.n, *id = ARENA_ARRAY(a, TensorId, g->tensor.n);
	uint32_t to = 0, added = 0;
	for (TensorId t = 0; t < first; t++)
		id[t] = t;
	for (uint32_t i = 0; i < s->nnode; i++) {
		for (; added < s->owner.n && s->owner.at[added] == i; added++)
			place(g, node, tensor, s->nnode + added, &to, id, first);
		place(g, node, tensor, i, &to, id, first);
	}
	for (uint32_t i = 0; i < g->node.n; i++)
		node_retarget(g, i, id);
	for (RecurId k = 1; k < g->recur.n; k++)
		for (uint32_t m = 0; m < g->recur.at[k].member.n; m++)
			g->recur.at[k].member.at[m] = id[g->recur.at[k].member.at[m]];
	for (uint32_t k = 0; k < g->result.n; k++)
		g->result.at[k].tensor = id[g->result.at[k].tensor];
}

uint32_t
pass_split_folds(Graph *g, PassCtx *cx)
{
	Split s = {.g = g, .cx = cx, .nnode = g->node.n};
	uint32_t done = 0;
	if (cx->options->fuse == FUSE_OFF)
		return 0;
	for (s.at = 0; s.at < s.nnode; s.at++) {
		s.n = g->node.at[s.at];
		s.maybe_empty = false;
		if (!is_single_fold(&s) || is_small(&s) || folds_folded(&s))
			continue;
		RemarkId why = refusal(&s);
		if (why) {
			remark(cx, why, s.n.out);
			continue;
		}
		if (!spend(cx))
			break;
		choose_parts(&s);
		split(&s);
		done++;
	}
	if (done)
		put_in_order(&s);
	return done;
}
