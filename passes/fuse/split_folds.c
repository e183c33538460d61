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
 * equals stays the first. Folds that read one another are folded together (split_cascade.c); so are those of sums of
 * products that are never stored (split_stream.c).
 *
 * New nodes must come before the nodes that read them: at the end all are put in order. */
#include "passes/fuse/split.h"

#include "passes/expr_map.h"
#include "passes/retarget.h"
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"

enum {
	PART_TERMS = 1 << 15,  /* some ten microseconds of the cheapest terms */
	MOST_PARTS = 256,      /* more than there are threads */
	GPU_PARTS = 1024,      /* blocks of a GPU, several for each of its processors */
	COLUMN_TERMS = 32,     /* of a part of columns, beside which there are others */
	COLUMN_PARTS = 64,
	AGAIN_PARTS = 128,     /* whose terms are gone through twice: those at work at once fit into a GPU's cache */
	ROW_PARTS = 256,       /* tasks that take whole rows: two for each processor of a GPU */
	ROW_TERMS = 8,
	PART_MULTIPLE = 64,    /* elements: whole vectors */
	SOME_TERMS = 16,       /* of a range that is not known at launch */
	SHORT_RANGE = 16,      /* known to be shorter: another is cut, if there is one */
	SPAN_LIMIT = 1 << 30
};

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
	return expr_is_of_launch(s->g, s->cx->scratch, both);
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
	for (unsigned a = s->n.npar; a < (unsigned)s->n.npar + s->n.nred; a++) {
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
	if (s->n.npar)
		return s->with_rows ? ROW_TERMS : COLUMN_TERMS;
	return s->cx->options->part_terms ? s->cx->options->part_terms : PART_TERMS;
}

static bool
is_small(const Split *s)
{
	int64_t all = 1, v;
	for (unsigned a = s->n.npar; a < (unsigned)s->n.npar + s->n.nred; a++) {
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
	for (unsigned a = (unsigned)s->n.npar + s->n.nred; a-- > s->n.npar;) {
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
void
split_choose_parts(Split *s)
{
	Graph *g = s->g;
	ExprId one = num(s, 1), whole = span(s, s->cut), least = num(s, part_terms(s)), inside = 0;
	if (s->n.nred > 1) {
		inside = terms_inside(s);
		least = expr_binary(g, OP_IDIV, least, expr_binary(g, OP_MAX, inside, one));
		least = expr_binary(g, OP_MAX, least, one);
	}
	int64_t parts = s->n.npar ? s->with_rows ? ROW_PARTS : s->again ? AGAIN_PARTS : COLUMN_PARTS : s->cx->options->blocks ? GPU_PARTS : MOST_PARTS;
	ExprId most = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, whole, num(s, parts - 1)), num(s, parts));
	if (!inside && part_terms(s) >= PART_MULTIPLE) {
		ExprId up = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, most, num(s, PART_MULTIPLE - 1)), num(s, PART_MULTIPLE));
		most = expr_binary(g, OP_MUL, up, num(s, PART_MULTIPLE));
	}
	s->chunk = expr_binary(g, OP_MAX, least, most);
	s->count = expr_binary(g, OP_MIN, quotient_up(s, whole, s->chunk), num(s, parts)); /* which it is anyway */
	if (inside) /* no part of nothing */
		s->count = expr_binary(g, OP_MIN, s->count, expr_binary(g, OP_MUL, inside, num(s, parts)));
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

typedef struct {
	const Split *s;
	bool columns, other; /* reads whose last subscript runs with the last parallel axis, and with a reduced one */
} Columns;

static void
ask_columns(void *user, ExprId e)
{
	Columns *c = user;
	const Graph *g = c->s->g;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || !p->narg)
		return;
	uint32_t last = expr_axes(g, c->s->cx->scratch, expr_arg(g, e, p->narg - 1u)), all = 0;
	for (unsigned k = 0; k < p->narg; k++)
		all |= expr_axes(g, c->s->cx->scratch, expr_arg(g, e, k));
	if (!(all >> c->s->n.npar) || !(all & ((1u << c->s->n.npar) - 1))) /* of a row alone: the same for all columns */
		return;
	c->other |= last >> c->s->n.npar != 0;
	c->columns |= last >> (c->s->n.npar - 1) & 1;
}

/* Whether it folds so few terms that a thread does for all. */
static bool
has_few_terms(const Split *s)
{
	enum { FEW = 16 };
	const Expr *end = expr_get(s->g, s->n.axis[s->n.npar].hi);
	for (unsigned k = 0; end->op == OP_MIN && k < 2; k++) {
		const Expr *p = expr_get(s->g, s->g->arg.at[end->arg + k]);
		if (p->op == OP_CONST)
			end = p;
	}
	return end->op == OP_CONST && end->imm.i <= FEW;
}

/* A fold of columns, whose rows lie apart: a GPU has more threads than there are columns. Without an answer for
 * parts of nothing. Products of matrices have tiles. */
static bool
splits_columns(const Split *s)
{
	Columns c = {.s = s};
	if (!s->cx->options->blocks || s->n.npar >= TG_MAX_RANK || s->n.nred != 1 || is_arg(s) || !is_always(s->g, s->n.guard) || has_few_terms(s))
		return false;
	if (contract_has_tiles(s->g, s->cx->scratch, s->cx->faulty, s->n.out, s->cx->options) ||
	    contract_pairs_have_tiles(s->g, s->cx->scratch, s->cx->faulty, s->n.out, s->cx->options))
		return false;
	expr_walk(s->g, s->cx->scratch, s->n.body, ask_columns, &c);
	return c.columns && !c.other;
}

/* --- columns of what is folded along its rows as well --- */

/* Marks what e reads with a last subscript that runs with a reduced axis of the node, or e's reads all. */
typedef struct {
	const Split *s;
	const Node *n;
	bool *marked;
} RowReads;

static void
mark_read(void *user, ExprId e)
{
	RowReads *r = user;
	const Graph *g = r->s->g;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || p->narg < 2)
		return;
	if (r->n->nred == 0 || expr_axes(g, r->s->cx->scratch, expr_arg(g, e, p->narg - 1u)) >> r->n->npar)
		r->marked[p->ref] = true;
}

static void
mark_reader(void *user, ExprId e)
{
	RowReads *r = user;
	const Expr *p = expr_get(r->s->g, e);
	r->marked[r->n->out] |= p->op == OP_READ && p->narg > 1 && r->marked[p->ref];
}

/* What folds along rows read, of themselves or through pointwise nodes, and what those make of it. */
static const bool *
find_row_reads(Split *s)
{
	const Graph *g = s->g;
	RowReads r = {.s = s, .marked = ARENA_ARRAY(s->cx->scratch, bool, g->tensor.n)};
	for (uint32_t i = s->nnode; i-- > 0;) { /* readers come later */
		r.n = &g->node.at[i];
		if (r.n->nred > 0 ? r.n->npar > 0 : r.marked[r.n->out])
			expr_walk(g, s->cx->scratch, r.n->body, mark_read, &r);
	}
	for (uint32_t i = 0; i < s->nnode; i++) {
		r.n = &g->node.at[i];
		if (r.n->nred == 0 && r.n->npar > 1)
			expr_walk(g, s->cx->scratch, r.n->body, mark_reader, &r);
	}
	return r.marked;
}

static void
ask_row_read(void *user, ExprId e)
{
	Split *s = user;
	const Expr *p = expr_get(s->g, e);
	s->with_rows |= p->op == OP_READ && p->narg > 1 && s->row_reads[p->ref];
}

/* A fold that is done in parts: to a single element, or of columns. */
static bool
is_single_fold(const Split *s)
{
	const Node *n = &s->n;
	bool parallel = n->npar > 0 && !splits_columns(s);
	bool counts = expr_get(s->g, n->body)->op == OP_CONST && is_always(s->g, n->guard); /* its terms alone */
	return !parallel && n->nred > 0 && n->monoid != MON_NONE && !n->recur && !n->scatter && !counts &&
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
	for (unsigned a = s->n.npar; a < (unsigned)s->n.npar + s->n.nred; a++)
		if (s->n.axis[a].clamp)
			return REMARK_split_range;
	if (!choose_cut(s))
		return REMARK_split_range;
	if (is_arg(s) && s->n.nred > 1)
		return REMARK_split_position;
	if (folded_type(s) == DT_C64 && s->n.monoid != MON_SUM)
		return REMARK_split_complex;
	return s->n.npar + s->n.nred == TG_MAX_AXES - 1 ? REMARK_split_range : REMARK_NONE;
}

/* --- the nodes --- */

ExprId
split_moved(const Split *s, ExprId e)
{
	ExprId sub[TG_MAX_AXES];
	unsigned n = (unsigned)s->n.npar + s->n.nred;
	for (unsigned k = 0; k < n; k++)
		sub[k] = expr_axis(s->g, k + 1);
	return e ? expr_subst_axes(s->g, e, sub, n) : 0;
}

TensorId
split_add_part(Split *s, Monoid monoid, ExprId body, DType t, TensorId present, const char *what)
{
	Graph *g = s->g;
	const Tensor whole = g->tensor.at[s->n.out];
	ExprId p = expr_axis(g, 0), from = s->n.axis[s->cut].lo, extent[TG_MAX_RANK];
	extent[0] = s->count;
	for (unsigned k = 0; k < s->n.npar; k++)
		extent[k + 1] = whole.extent[k];
	Node n = {.npar = (uint8_t)(s->n.npar + 1), .parts = true, .nred = s->n.nred, .monoid = monoid, .guard = split_moved(s, s->n.guard), .body = body};
	for (unsigned k = 0; k < (unsigned)s->n.npar + s->n.nred; k++) {
		n.axis[k + 1] = s->n.axis[k];
		n.axis[k + 1].lo = split_moved(s, s->n.axis[k].lo);
		n.axis[k + 1].hi = split_moved(s, s->n.axis[k].hi);
	}
	Axis *cut = &n.axis[s->cut + 1];
	cut->lo = expr_binary(g, OP_MUL, p, s->chunk);
	if (expr_get(g, from)->op != OP_CONST || expr_get(g, from)->imm.i != 0)
		cut->lo = expr_binary(g, OP_ADD, from, cut->lo);
	cut->hi = expr_binary(g, OP_MIN, cut->hi, expr_binary(g, OP_ADD, cut->lo, s->chunk));
	if (present)
		n.domain = expr_read(g, present, &p, 1, 0);
	return split_add_node(s, &n, what, t, extent);
}

TensorId
split_add_node(Split *s, const Node *n, const char *what, DType t, const ExprId *extent)
{
	Graph *g = s->g;
	const Tensor whole = g->tensor.at[s->n.out];
	Name name = whole.name ? name_cstr(g->names, arena_text(s->cx->scratch, "%s_%s", name_text(g->names, whole.name), what)) : 0;
	vec_push(s->cx->scratch, &s->owner, s->at);
	return node_add(g, n, name, whole.at, t, extent);
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

void
split_keep_whole(Split *s, const Node *n)
{
	if (n->npar > 0)
		vec_push(s->g->arena, &s->g->whole, *n);
}

static void
split(Split *s)
{
	Graph *g = s->g;
	Node n = s->n;
	split_keep_whole(s, &n);
	ExprId p = expr_axis(g, n.npar), yes = expr_int(g, DT_BOOL, 1), at[TG_MAX_RANK];
	DType t = folded_type(s);
	Monoid extreme = n.monoid == MON_ARGMAX ? MON_MAX : n.monoid == MON_ARGMIN ? MON_MIN : n.monoid;
	TensorId present = needs_presence(s) ? split_add_part(s, MON_ANY, yes, DT_BOOL, 0, "present") : 0;
	TensorId parts = split_add_part(s, extreme, split_moved(s, n.body), t, present, "parts");
	if (is_arg(s)) {
		Acc a = {position_of(s, split_add_part(s, n.monoid, split_moved(s, n.body), DT_I64, present, "positions"))};
		n.finish = n.finish ? expr_rewrite(g, n.finish, swap_acc, &a) : a.acc;
	}
	at[0] = p;
	for (unsigned k = 0; k < n.npar; k++)
		at[k + 1] = expr_axis(g, k);
	n.nred = 1;
	n.axis[n.npar] = (Axis){.name = n.axis[s->cut].name, .lo = num(s, 0), .hi = s->count};
	n.guard = present ? expr_read(g, present, &p, 1, 0) : 0;
	n.body = expr_read(g, parts, at, n.npar + 1u, 0);
	g->node.at[s->at] = n;
}

/* Whether node s->at is folded in parts, which it is worth; *why not, where it is worth it and can't be. */
static bool
takes_parts(Split *s, RemarkId *why)
{
	s->n = s->g->node.at[s->at];
	s->maybe_empty = s->with_rows = false;
	*why = REMARK_NONE;
	if (!is_single_fold(s) || is_small(s) || folds_folded(s))
		return false;
	*why = refusal(s);
	if (s->n.npar > 0)
		expr_walk(s->g, s->cx->scratch, s->n.body, ask_row_read, s);
	return *why == REMARK_NONE;
}

bool
split_has_full_parts(Split *s)
{
	RemarkId why;
	return takes_parts(s, &why) && s->n.nred == 1 && is_always(s->g, s->n.guard);
}

uint32_t
pass_split_folds(Graph *g, PassCtx *cx)
{
	Split s = {.g = g, .cx = cx, .nnode = g->node.n};
	if (cx->options->fuse == FUSE_OFF)
		return 0;
	s.row_reads = find_row_reads(&s);
	bool *taken = ARENA_ARRAY(cx->scratch, bool, g->node.n + 1);
	uint32_t done = split_streams(&s, taken);
	done += split_cascades(&s, taken);
	for (s.at = 0; s.at < s.nnode; s.at++) {
		RemarkId why;
		if (taken[s.at])
			continue;
		if (!takes_parts(&s, &why)) {
			if (why)
				remark(cx, why, s.n.out);
			continue;
		}
		if (!spend(cx))
			break;
		split_choose_parts(&s);
		split(&s);
		done++;
	}
	if (done)
		nodes_in_order(g, cx->scratch, s.nnode, s.owner.at, s.owner.n);
	return done;
}
