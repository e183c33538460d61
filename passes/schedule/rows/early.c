/* early.c: what the vectors of a strip have in common, in a MAP kernel of a processor (rows.h): whatever is the
 * same in all lanes and reads elements, such as the number of a gathered row, is done before them. Later stages can't
 * do that, as a vector's stores may change what is read again, for all they know.
 *
 * A gathered row may lie anywhere, so that processors don't see it coming. While one is gone through, that of a later
 * row of the result is fetched, as many rows on as AHEAD_BYTES are. What is read for that is an element that there is,
 * and the number in it may be any: a fetch of what is not there does nothing.
 *
 * Like all that is read early it is read under a test of its bounds, unless whoever runs the kernel wants it. */
#include "passes/schedule/rows/build.h"
#include "passes/schedule/rows/plan.h"

#include "passes/expr_map.h"
#include "passes/schedule/point/read.h"
#include "passes/schedule/point/vary.h"

enum { AHEAD_BYTES = 4096, MOST_ROWS_AHEAD = 16, LAZY = 1, STRICT = 2 };

typedef struct {
	const RowBuild *b;
	uint32_t later; /* the axis of later rows, as a bit; 0: there are none */
	bool reads, later_reads, own; /* of tensors; such that differ in later rows; what is there for a vector alone */
} Parts;

static void
note_part(void *user, ExprId e)
{
	Parts *p = user;
	const Graph *g = p->b->l->g;
	const Expr *x = expr_get(g, e);
	p->own |= x->op == OP_ACC || x->op == OP_TOUCHED || x->op == OP_IVAR;
	if (x->op != OP_READ || g->tensor.at[x->ref].kind == TENSOR_SCALAR)
		return;
	p->own |= rows_member_of(p->b->r, x->ref) >= 0;
	p->reads = true;
	p->later_reads |= (expr_axes(g, p->b->l->scratch, e) & p->later) != 0;
}

static Parts
parts_of(const RowBuild *b, ExprId e)
{
	Parts p = {.b = b, .later = b->r->nrow > 1 ? 1u << (b->r->nrow - 2u) : 0};
	expr_walk(b->l->g, b->l->scratch, e, note_part, &p);
	return p;
}

static bool
is_same_in_all(const RowBuild *b, ExprId e)
{
	return b->l->varies.at[number_of(b->l, e)] == VARY_NOT;
}

/* --- gathered rows --- */

/* How many rows further on those are that are fetched. */
static ExprId
rows_ahead(RowBuild *b, const Expr *read)
{
	Graph *g = b->l->g;
	ExprId bytes = expr_binary(g, OP_MUL, b->r->extent[rows_lane_axis(b)], expr_int(g, DT_I64, dtype_info[read->dtype].bits / 8u));
	ExprId some = expr_int(g, DT_I64, AHEAD_BYTES), one = expr_int(g, DT_I64, 1);
	ExprId rows = expr_binary(g, OP_IDIV, some, expr_binary(g, OP_MAX, one, expr_binary(g, OP_MIN, bytes, some)));
	return expr_binary(g, OP_MIN, rows, expr_int(g, DT_I64, MOST_ROWS_AHEAD));
}

/* Whether the read takes vectors from a row whose number is read. */
static bool
is_gathered(const RowBuild *b, ExprId e)
{
	const Graph *g = b->l->g;
	const Expr *x = expr_get(g, e);
	bool found = false;
	if (x->op != OP_READ || x->narg < 2 || x->dtype == DT_C64 || dtype_info[x->dtype].bits < 8 ||
	    point_lane_subscript(b->l, e) != (int)x->narg - 1)
		return false;
	for (unsigned k = 0; k < x->narg; k++) {
		Parts p = parts_of(b, expr_arg(g, e, k));
		if (p.own || (k + 1u == x->narg && p.reads))
			return false;
		found |= p.later_reads;
	}
	return found && rows_member_of(b->r, x->ref) < 0;
}

static void
note_gathered(RowBuild *b, ExprId e)
{
	for (unsigned k = 0; k < b->ngathered; k++)
		if (b->gathered[k].read == e)
			return;
	if (b->ngathered < ROWS_MAX_GATHERED && is_gathered(b, e))
		b->gathered[b->ngathered++].read = e;
}

/* Where later rows take theirs from. */
static void
find_later(RowBuild *b)
{
	Point *l = b->l;
	TirKernel *k = l->tir;
	for (unsigned n = 0; n < b->ngathered; n++) {
		RowsGathered *to = &b->gathered[n];
		const Expr read = *expr_get(l->g, to->read);
		ValId *row = &l->axis[b->r->nrow - 2u], here = *row;
		ValId last = tir_binary(k, OP_SUB, point_launch_expr(l, b->r->extent[b->r->nrow - 2u]), rows_int(b, 1));
		uint32_t mark = point_mark(l);
		*row = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, here, point_launch_expr(l, rows_ahead(b, &read))), last);
		for (unsigned a = 0; a + 1u < read.narg; a++)
			to->index[a] = point_value(l, expr_arg(l->g, to->read, a), false).re;
		point_release(l, mark);
		*row = here;
	}
}

void
rows_fetch_gathered(RowBuild *b)
{
	Point *l = b->l;
	for (unsigned n = 0; n < b->ngathered; n++) {
		RowsGathered *to = &b->gathered[n];
		const Expr read = *expr_get(l->g, to->read);
		uint32_t mark = point_mark(l);
		l->axis[rows_lane_axis(b)] = b->base;
		l->one = true;
		to->index[read.narg - 1u] = point_value(l, expr_arg(l->g, to->read, read.narg - 1u), false).re;
		l->one = false;
		point_release(l, mark);
		tir_fetch(l->tir, point_tensor(l, read.ref)->data, to->index);
	}
}

/* --- expressions --- */

typedef struct {
	ExprId e;
	uint8_t how; /* LAZY, STRICT */
} Part;

typedef struct {
	RowBuild *b;
	uint8_t *seen; /* by number */
	VEC(Part) stack, found;
} Search;

static void
push(Search *s, ExprId e, uint8_t how)
{
	uint8_t *seen = &s->seen[number_of(s->b->l, e)];
	if (*seen >= how)
		return;
	*seen = how;
	vec_push(s->b->l->scratch, &s->stack, ((Part){e, how}));
}

/* The largest parts of e that are the same in all lanes and read elements; what is gathered by them. */
static void
search(Search *s, ExprId e, bool always)
{
	Point *l = s->b->l;
	push(s, e, always ? STRICT : LAZY);
	while (s->stack.n) {
		Part at = s->stack.at[--s->stack.n];
		const Expr *x = expr_get(l->g, at.e);
		if (is_same_in_all(s->b, at.e)) {
			Parts parts = parts_of(s->b, at.e);
			if (parts.reads && !parts.own)
				vec_push(l->scratch, &s->found, at);
			continue;
		}
		note_gathered(s->b, at.e);
		for (unsigned k = 0; k < x->narg; k++)
			push(s, expr_arg(l->g, at.e, k), k && (op_info[x->op].flags & F_LAZY) ? LAZY : at.how);
	}
}

static void
search_members(Search *s)
{
	RowBuild *b = s->b;
	s->seen = ARENA_ARRAY(b->l->scratch, uint8_t, (size_t)b->l->nnumber + 1);
	for (unsigned m = 0; m < b->r->nmember; m++) {
		const Node *n = &b->r->member[m].node;
		bool always = expr_is_true(b->l->g, n->domain);
		search(s, n->body, always);
		if (!always)
			search(s, n->domain, true);
	}
}

static bool
reads_early(const RowBuild *b)
{
	return b->r->tmpl == TMPL_MAP && b->r->lanes_by_row && !b->kernel->plan.threads && !b->r->block;
}

/* Before anything runs: what is fetched is known, and what says how far ahead is declared. */
void
rows_declare_early(RowBuild *b)
{
	Search s = {.b = b};
	if (!reads_early(b))
		return;
	search_members(&s);
	for (unsigned n = 0; n < b->ngathered; n++)
		point_launch_expr(b->l, rows_ahead(b, expr_get(b->l->g, b->gathered[n].read)));
}

void
rows_read_early(RowBuild *b)
{
	Search s = {.b = b};
	if (!reads_early(b))
		return;
	search_members(&s);
	find_later(b);
	for (uint32_t k = 0; k < s.found.n; k++)
		point_value(b->l, s.found.at[k].e, s.found.at[k].how == STRICT);
}
