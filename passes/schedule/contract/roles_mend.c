/* roles_mend.c: sums of a panel that is staged which are folded again, term by term, as the body says: those of thirds that came out as
 * no finite numbers (roles_thirds.c), and those that cancel (roles_expanded.c). Others of the panel stay as they are, whatever their
 * neighbours are.
 *
 * Lanes fold all elements that they have of a panel, which read what rows and columns have once for all. Where few cancel, as of points
 * that are also among the others, or near one of them, a warp folds these alone, one after the other, and its lanes share the terms:
 * their reads lie side by side then. Where all lanes fold all, they read four terms at a time: an access looks each of its lines up. */
#include "passes/schedule/contract/roles_own.h"

#include "passes/expr_map.h"
#include "passes/schedule/point/early_reads.h"

/* --- all of a panel --- */

enum {
	CHEAP = 12, /* what two reads, a difference and a square cost (op_cost.h), of which all rows are folded at once; */
	FEW_ROWS = 2 /* how many of others */
};

/* The last one that the output has, where it does not have i. */
static ValId
inside(Roles *r, ValId i, ValId end)
{
	return roles_op(r, OP_MIN, i, roles_op(r, OP_SUB, end, roles_int(r, 1)));
}

/* How all of a panel is folded: so many of the lane's rows at once, and so many terms, that lie side by side wherever they are read. */
typedef struct {
	unsigned rows, terms;
	EarlyReads reads; /* of several terms, each at once */
	ExprId value;     /* what a term is made of those */
} How;

/* Whether all reads have terms side by side. */
static EarlyHow
how_read(void *user, const Graph *g, Arena *scratch, ExprId read)
{
	struct { const Roles *r; bool along; } *x = user;
	const Expr *p = expr_get(g, read);
	unsigned term = x->r->of.term_axis;
	x->along &= p->narg > 0;
	for (unsigned k = 0; k < p->narg; k++) {
		ExprId sub = expr_arg(g, read, k);
		bool is_term = expr_get(g, sub)->op == OP_AXIS && expr_get(g, sub)->ref == term;
		x->along &= k + 1u == p->narg ? is_term : !(expr_axes(g, scratch, sub) >> term & 1);
	}
	return EARLY_GROUP;
}

static How
how_folded(Roles *r, const Own *own)
{
	struct { const Roles *r; bool along; } terms = {r, true};
	Point *l = &r->l;
	How how = {.rows = own->end / own->down, .terms = 1};
	if (side_expr_cost(l->g, l->scratch, l->node->body) > CHEAP) {
		how.rows = how.rows < FEW_ROWS ? how.rows : FEW_ROWS;
		return how;
	}
	early_reads_find(l->g, l->scratch, l->node->body, how_read, &terms, &how.reads);
	if (!r->of.of_row || r->tile.side == 1 || !terms.along || how.reads.n == EARLY_READS)
		return how;
	how.rows = (how.rows + 1) / 2; /* there are no registers for more */
	how.terms = MOST_SIDE;
	how.value = early_reads_replace(l->g, l->scratch, l->node->body, &how.reads);
	point_declare(l, how.value);
	return how;
}

/* The values of the terms at the point, from its own on. */
static void
terms_at(Roles *r, const How *how, unsigned terms, ValId *value)
{
	Point *l = &r->l;
	ValId raw[EARLY_READS][MOST_SIDE];
	if (terms == 1) {
		value[0] = early_value(l, l->node->body, true);
		return;
	}
	for (unsigned n = 0; n < how->reads.n; n++)
		early_group(l, how->reads.at[n].read, terms, r->of.term_axis, raw[n]);
	for (unsigned t = 0; t < terms; t++) {
		for (unsigned n = 0; n < how->reads.n; n++)
			point_place(l, early_stand_in(l->g, &how->reads, n), raw[n][t]);
		value[t] = early_value(l, how->value, true);
	}
}

/* Adds so many terms, from `term` on, to the sums of the lane's rows, from the one that is `down` behind the first on. */
static void
add_terms(Roles *r, const Own *own, ValId down, const How *how, ValId term, unsigned terms, ValId *sum)
{
	Point *l = &r->l;
	ValId column = l->axis[r->of.column_axis], row0 = roles_op(r, OP_ADD, own->row0, down);
	unsigned side = r->tile.side;
	for (unsigned i = 0; i < how->rows * side; i++) {
		ValId value[MOST_SIDE];
		l->axis[r->of.row_axis] = inside(r, roles_op(r, OP_ADD, row0, roles_int(r, (int64_t)(i / side) * own->down)), own->row_end);
		l->axis[r->of.column_axis] = inside(r, roles_op(r, OP_ADD, column, roles_int(r, i % side)), own->column_end);
		l->axis[r->of.term_axis] = term;
		terms_at(r, how, terms, value);
		for (unsigned t = 0; t < terms; t++)
			sum[i] = roles_op(r, OP_ADD, sum[i], value[t]);
	}
	l->axis[r->of.column_axis] = column;
}

/* Those sums, in ascending order of the terms. */
static void
fold_rows(Roles *r, const Own *own, ValId down, const How *how, ValId *sum)
{
	TirKernel *k = r->l.tir;
	unsigned n = how->rows * r->tile.side;
	ValId end = point_launch_expr(&r->l, r->nterm), some = roles_int(r, 0), rest;
	for (unsigned i = 0; i < n; i++)
		sum[i] = tir_float(k, DT_F32, 0);
	if (how->terms > 1) {
		roles_divide(r, end, roles_int(r, how->terms), &rest);
		some = roles_op(r, OP_SUB, end, rest);
		add_terms(r, own, down, how, tir_for(k, roles_int(r, 0), some, roles_int(r, how->terms), sum, n), how->terms, sum);
		tir_end_for(k, sum, n);
	}
	add_terms(r, own, down, how, tir_for(k, some, end, roles_int(r, 1), sum, n), 1, sum);
	tir_end_for(k, sum, n);
}

/* Whether the sum of this element may stay. */
static ValId
may_stay(Roles *r, ValId row, ValId column, ValId sum)
{
	Point *l = &r->l;
	ValId was = l->axis[r->of.column_axis];
	if (!r->of.of_row)
		return roles_is_finite(r, sum);
	l->axis[r->of.row_axis] = row;
	l->axis[r->of.column_axis] = column;
	ValId holds = roles_expanded_holds(r, sum);
	l->axis[r->of.column_axis] = was;
	return holds;
}

static void
mend_all(Roles *r, const Own *own)
{
	enum { MOST = WARP_ROWS * MOST_SIDE };
	TirKernel *k = r->l.tir;
	unsigned side = r->tile.side;
	How how = how_folded(r, own);
	ValId again[MOST];
	ValId down = tir_for(k, roles_int(r, 0), roles_int(r, own->end), roles_int(r, (int64_t)how.rows * own->down), NULL, 0);
	fold_rows(r, own, down, &how, again);
	for (unsigned i = 0; i < how.rows * side; i++) {
		ValId below = roles_op(r, OP_ADD, down, roles_int(r, (int64_t)(i / side) * own->down)), right = roles_int(r, i % side);
		const ValId at[2] = {roles_op(r, OP_ADD, own->first, below), roles_op(r, OP_ADD, own->right, right)};
		ValId sum = tir_load(k, r->staged, at, 0, 0, 0);
		ValId stays = may_stay(r, roles_op(r, OP_ADD, own->row0, below), roles_op(r, OP_ADD, r->l.axis[r->of.column_axis], right), sum);
		tir_store(k, r->staged, tir_select(k, stays, sum, again[i]), at, 0, 0);
	}
	tir_end_for(k, NULL, 0);
}

/* --- few of a panel --- */

enum { FEW = 32, TERMS_AT_ONCE = 4 }; /* of a panel that are no more work one by one */

/* The warp's panel: its first element, where it is staged and in the output. */
typedef struct {
	const Own *own;
	ValId first, row0, column0;
	unsigned across; /* times as many columns as there are lanes */
} Warp;

static Warp
warp_panel(Roles *r, const Own *own)
{
	Warp w = {.own = own, .across = roles_panel(&r->tile, false) / TIR_WARP};
	ValId right, below = roles_divide(r, own->lane, roles_int(r, TIR_WARP / own->down), &right);
	w.first = roles_op(r, OP_SUB, own->first, below);
	w.row0 = roles_op(r, OP_SUB, own->row0, below);
	w.column0 = roles_op(r, OP_SUB, own->column, own->right);
	return w;
}

static ValId
over_warp(Roles *r, Op op, ValId v)
{
	for (unsigned lanes = 1; lanes < TIR_WARP; lanes *= 2)
		v = tir_binary(r->l.tir, op, v, tir_emit(r->l.tir, OP_SHUFFLE, tir_inst(r->l.tir, v)->type, lanes, &v, 1));
	return v;
}

/* Whether the lane's element of part i of the panel cancels: the row, and the column of the first lane. */
static ValId
cancels(Roles *r, const Warp *w, ValId i, ValId *row, ValId *column)
{
	TirKernel *k = r->l.tir;
	*row = roles_divide(r, i, roles_int(r, w->across), column);
	*column = roles_op(r, OP_MUL, *column, roles_int(r, TIR_WARP));
	ValId own = roles_op(r, OP_ADD, *column, w->own->lane), at[2] = {roles_op(r, OP_ADD, w->first, *row), own};
	ValId down = roles_op(r, OP_ADD, w->row0, *row), right = roles_op(r, OP_ADD, w->column0, own);
	ValId there = roles_op(r, OP_AND, roles_op(r, OP_LT, down, w->own->row_end), roles_op(r, OP_LT, right, w->own->column_end));
	ValId stays = may_stay(r, down, right, tir_load(k, r->staged, at, 0, 0, 0));
	return roles_op(r, OP_AND, there, roles_op(r, OP_EQ, stays, tir_int(k, DT_BOOL, 0)));
}

/* How many of the warp's do. */
static ValId
count(Roles *r, const Warp *w)
{
	TirKernel *k = r->l.tir;
	ValId n = tir_int(k, DT_U32, 0), row, column;
	ValId i = tir_for(k, roles_int(r, 0), roles_int(r, (int64_t)WARP_ROWS * w->across), roles_int(r, 1), &n, 1);
	n = tir_binary(k, OP_ADD, n, tir_cast(k, DT_U32, cancels(r, w, i, &row, &column)));
	tir_end_for(k, &n, 1);
	return over_warp(r, OP_ADD, n);
}

/* The element at the point, of which each lane adds every 32nd term. */
static ValId
fold_element(Roles *r, const Warp *w)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	ValId sum = tir_float(k, DT_F32, 0), none = sum, end = point_launch_expr(l, r->nterm);
	ValId first = tir_for(k, roles_int(r, 0), end, roles_int(r, (int64_t)TIR_WARP * TERMS_AT_ONCE), &sum, 1);
	for (unsigned n = 0; n < TERMS_AT_ONCE; n++) {
		ValId term = roles_op(r, OP_ADD, first, roles_op(r, OP_ADD, w->own->lane, roles_int(r, (int64_t)n * TIR_WARP)));
		l->axis[r->of.term_axis] = inside(r, term, end);
		ValId one = early_value(l, l->node->body, true);
		sum = roles_op(r, OP_ADD, sum, tir_select(k, roles_op(r, OP_LT, term, end), one, none));
	}
	tir_end_for(k, &sum, 1);
	return over_warp(r, OP_ADD, sum);
}

static void
mend_few(Roles *r, const Warp *w)
{
	Point *l = &r->l;
	TirKernel *k = l->tir;
	ValId row, column, was = l->axis[r->of.column_axis], zero = tir_int(k, DT_U32, 0), one = tir_int(k, DT_U32, 1);
	ValId i = tir_for(k, roles_int(r, 0), roles_int(r, (int64_t)WARP_ROWS * w->across), roles_int(r, 1), NULL, 0);
	ValId own = tir_binary(k, OP_SHL, one, tir_cast(k, DT_U32, w->own->lane));
	ValId set = over_warp(r, OP_BOR, tir_select(k, cancels(r, w, i, &row, &column), own, zero));
	tir_if(k, roles_op(r, OP_NE, set, zero));
	ValId n = tir_for(k, roles_int(r, 0), roles_int(r, TIR_WARP), roles_int(r, 1), NULL, 0);
	ValId bit = tir_binary(k, OP_BAND, tir_binary(k, OP_SHR, set, tir_cast(k, DT_U32, n)), one);
	tir_if(k, roles_op(r, OP_NE, bit, zero));
	const ValId at[2] = {roles_op(r, OP_ADD, w->first, row), roles_op(r, OP_ADD, column, n)};
	l->axis[r->of.row_axis] = roles_op(r, OP_ADD, w->row0, row);
	l->axis[r->of.column_axis] = roles_op(r, OP_ADD, w->column0, at[1]);
	ValId sum = fold_element(r, w);
	tir_if(k, roles_op(r, OP_EQ, w->own->lane, n)); /* who has looked at it */
	tir_store(k, r->staged, sum, at, 0, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	l->axis[r->of.column_axis] = was;
}

/* As many as are to be folded again. */
static void
mend(Roles *r, const Own *own, const Warp *w, ValId n)
{
	TirKernel *k = r->l.tir;
	tir_if(k, roles_op(r, OP_LE, n, tir_int(k, DT_U32, FEW)));
	mend_few(r, w);
	tir_else(k, NULL, 0);
	mend_all(r, own);
	tir_end_if(k, NULL, 0);
}

void
roles_mend(Roles *r, const Own *own, ValId holds)
{
	TirKernel *k = r->l.tir;
	ValId none = tir_int(k, DT_U32, 0), n = none;
	bool expanded = r->of.of_row;
	const Warp w = warp_panel(r, own);
	if (expanded) {
		tir_if(k, holds);
		tir_else(k, &none, 1);
		n = count(r, &w);
		tir_end_if(k, &n, 1);
		tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0); /* who mends all has other elements than it has counted */
		holds = roles_op(r, OP_EQ, n, none);
	}
	tir_if(k, holds);
	tir_else(k, NULL, 0);
	if (expanded)
		mend(r, own, &w, n);
	else
		mend_all(r, own);
	tir_end_if(k, NULL, 0);
	if (expanded)
		tir_emit(k, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
}
