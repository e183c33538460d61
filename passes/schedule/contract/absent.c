/* absent.c: contractions some of whose terms may be absent, by tiles that multiply all there are (threads.c):
 *
 *     y[n, o, p, q] = sum[c, r, s](x?[n, c, p + r - 1, q + s - 1] * w[o, c, r, s])
 *
 * A condition asks of the axes of one factor, of the batch and of the terms, or else there are no tiles: then the panel of
 * that factor has a 0 where a term is absent. One that asks of no factor's axes is that one's which may read outside of its
 * tensors where it fails, and may be both's. A factor that may do so where the other's condition fails has no tiles either.
 *
 * The other factor of an absent term exists, but nobody asked for it: 0 times an infinity is no number. So a sum that is no
 * number is folded again, of the terms that are there. And a product with 0 may be +0, which a sum of -0 alone does not
 * stay: the strict mode folds sums that are 0 again. */
#include "passes/schedule/contract/absent.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"
#include "passes/schedule/point/affine.h"

enum { ROWS = 1, COLUMNS = 2 };
#define OPEN (UINT32_C(1) << 31)

typedef struct {
	const Graph *g;
	Arena *scratch;
	const Node *n;
	const Absent *given; /* whose conditions of this factor hold */
	bool column;
	uint32_t axes;
} OpenWalk;

/* The least that a sum is over the ranges of the node's axes. */
static bool
find_least(const OpenWalk *w, const Affine *of, Affine *least)
{
	const Node *n = w->n;
	*least = *of;
	for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++) {
		int64_t c = of->axis[a];
		bool parallel = a < n->npar;
		least->axis[a] -= c;
		least->constant -= c < 0 ? c : 0;
		if (c > 0 && !parallel && !affine_add(w->g, w->scratch, least, n->axis[a].lo, c))
			return false;
		if (c < 0 && !affine_add(w->g, w->scratch, least, parallel ? w->g->tensor.at[n->out].extent[a] : n->axis[a].hi, c))
			return false;
	}
	return true;
}

/* Whether it is a constant, and at least 0. */
static bool
is_natural(const Affine *a)
{
	Affine constant = {.constant = a->constant};
	return affine_same(a, &constant) && a->constant >= 0;
}

/* Whether a sum is at least 0, as the ranges say or a condition. */
static bool
is_at_least_0(const OpenWalk *w, const Affine *a)
{
	Affine least;
	if (find_least(w, a, &least) && is_natural(&least))
		return true;
	for (unsigned k = 0; w->given && k < w->given->n; k++) {
		const Expr *p = expr_get(w->g, w->given->part[k]);
		least = *a;
		least.constant += p->op == OP_LT;
		if (absent_asks(w->given, k, w->column) && (p->op == OP_LE || p->op == OP_LT) &&
		    affine_add(w->g, w->scratch, &least, expr_arg(w->g, w->given->part[k], 0), 1) &&
		    affine_add(w->g, w->scratch, &least, expr_arg(w->g, w->given->part[k], 1), -1) && is_natural(&least))
			return true;
	}
	return false;
}

static void
note_open(void *user, ExprId e)
{
	OpenWalk *w = user;
	const Expr *p = expr_get(w->g, e);
	for (unsigned k = 0; p->op == OP_READ && k < p->narg; k++) {
		ExprId sub = expr_arg(w->g, e, k);
		Affine at = {0}, room = {.constant = -1};
		if (!affine_add(w->g, w->scratch, &at, sub, 1) || !affine_add(w->g, w->scratch, &room, sub, -1) ||
		    !affine_add(w->g, w->scratch, &room, w->g->tensor.at[p->ref].extent[k], 1) || !is_at_least_0(w, &at) || !is_at_least_0(w, &room))
			w->axes |= OPEN | expr_axes(w->g, w->scratch, sub);
	}
}

/* The axes of those subscripts in a factor that the ranges, and the factor's conditions where they are given, need not keep inside of
 * their tensors; OPEN: there are any. */
static uint32_t
open_axes(const Graph *g, Arena *scratch, const Node *n, const Factors *f, bool column, const Absent *given)
{
	OpenWalk w = {g, scratch, n, given, column, 0};
	expr_walk(g, scratch, column ? f->column : f->row, note_open, &w);
	return w.axes;
}

/* Notes the conditions that all have to hold for e to. open: whether the rows' factor, and the columns', has such subscripts. */
static bool
add_parts(const Graph *g, Arena *scratch, const bool *faulty, const Factors *f, const bool *open, ExprId e, Absent *a)
{
	if (expr_is_true(g, e))
		return true;
	if (expr_get(g, e)->op == OP_AND)
		return add_parts(g, scratch, faulty, f, open, expr_arg(g, e, 0), a) && add_parts(g, scratch, faulty, f, open, expr_arg(g, e, 1), a);
	uint32_t axes = expr_axes(g, scratch, e);
	bool row = axes & f->row_axes, column = axes & f->column_axes;
	if ((row && column) || a->n == ABSENT_MOST || expr_can_fault(g, scratch, faulty, e))
		return false;
	bool both = !row && !column && !BUG(absent_reads_unasked);
	row |= both && open[0];
	column |= both && open[1];
	a->of[a->n] = (uint8_t)(column ? row ? ROWS | COLUMNS : COLUMNS : ROWS);
	a->part[a->n++] = e;
	return true;
}

/* Whether a factor reads nothing outside of its tensors where its conditions hold: as they say, or else no other condition has to
 * do with the axes that it is about, by itself or by what it has in common with further ones. */
static bool
has_its_conditions(const Graph *g, Arena *scratch, const Node *n, const Factors *f, bool column, const Absent *a)
{
	uint32_t reach = 0, before = 1;
	for (unsigned k = 0; k < a->n; k++)
		reach |= absent_asks(a, k, column) ? 0 : expr_axes(g, scratch, a->part[k]);
	while (reach != before) {
		before = reach;
		for (unsigned k = 0; k < a->n; k++) {
			uint32_t axes = expr_axes(g, scratch, a->part[k]);
			reach |= axes & reach ? axes : 0;
		}
	}
	return !(open_axes(g, scratch, n, f, column, a) & reach);
}

bool
absent_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, Absent *a)
{
	const Node *n = tensor_node(g, t);
	RemarkId why;
	*a = (Absent){0};
	if (!contract_all_factors(g, scratch, faulty, t, f, &why))
		return false;
	if (expr_is_true(g, n->guard))
		return true;
	bool open[2] = {open_axes(g, scratch, n, f, false, NULL), open_axes(g, scratch, n, f, true, NULL)};
	return add_parts(g, scratch, faulty, f, open, n->guard, a) && has_its_conditions(g, scratch, n, f, false, a) &&
	       has_its_conditions(g, scratch, n, f, true, a);
}

bool
absent_asks(const Absent *a, unsigned n, bool column)
{
	return a->of[n] & (column ? COLUMNS : ROWS);
}

bool
absent_is(const Absent *a, bool column)
{
	for (unsigned n = 0; n < a->n; n++)
		if (absent_asks(a, n, column))
			return true;
	return false;
}

ExprId
absent_condition(Graph *g, const Absent *a, bool column)
{
	ExprId there = 0;
	for (unsigned n = 0; n < a->n && !BUG(absent_terms_taken); n++)
		if (absent_asks(a, n, column))
			there = there ? expr_binary(g, OP_AND, there, a->part[n]) : a->part[n];
	return there;
}

ExprId
absent_value(Graph *g, const Absent *a, bool column, ExprId value)
{
	DType t = (DType)expr_get(g, value)->dtype;
	ExprId there = absent_condition(g, a, column);
	return there ? expr_select(g, there, value, dtype_is_float(t) ? expr_float(g, t, 0) : expr_int(g, t, 0)) : value;
}

bool
absent_spoils(const Absent *a)
{
	return a->n || a->others;
}

void
absent_mend(Point *l, const Absent *a, ValId view, const ValId *at)
{
	TirKernel *k = l->tir;
	ValId sum = tir_load(k, view, at, 0, 0, 0);
	DType t = (DType)tir_inst(k, sum)->type.dtype;
	if (!absent_spoils(a) || !dtype_is_float(t) || BUG(absent_sums_kept))
		return;
	ValId wrong = tir_binary(k, OP_NE, sum, sum);
	if (l->g->fp == FP_STRICT)
		wrong = tir_binary(k, OP_OR, wrong, tir_binary(k, OP_EQ, sum, tir_float(k, t, 0)));
	uint32_t mark = point_mark(l);
	tir_if(k, wrong);
	tir_store(k, view, element_fold(l).re, at, 0, 0);
	point_release(l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}
