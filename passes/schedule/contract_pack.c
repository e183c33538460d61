/* contract_pack.c: evaluates the factors of a contraction into panels, in the order in which the
 * register tiles read them. A factor is any expression, so what else a kernel before this one would
 * have computed is computed here, once for each block that needs it.
 *
 * Rows are packed (piece, piece of terms, row, term), the last two in the order in which the factor
 * lies in memory, columns (piece, piece of terms, term, column). The last piece of rows is filled up
 * with its last row, vectors along columns and terms with anything: tiles compute with the former
 * and never store what comes of it, and do not read the latter. */
#include "passes/schedule/contract.h"

#include "passes/schedule/point_read.h"

ValId
contract_int(Contract *c, int64_t v)
{
	return tir_int(c->l.tir, DT_I64, v);
}

ValId
contract_mask(Contract *c, ValId i, ValId end)
{
	TirKernel *k = c->l.tir;
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, c->l.lanes), 0, NULL, 0);
	return tir_binary(k, OP_LT, tir_binary(k, OP_ADD, i, iota), end);
}

/* --- contiguous memory --- */

typedef struct {
	Contract *c;
	ValId all;
} Dense;

static void
ask_stride(Dense *d, const TensorArg *arg)
{
	TirKernel *k = d->c->l.tir;
	unsigned last = d->c->l.g->tensor.at[arg->tensor].rank - 1u;
	ValId is = tir_binary(k, OP_EQ, arg->stride[last], contract_int(d->c, 1));
	d->all = d->all ? tir_binary(k, OP_AND, d->all, is) : is;
}

static void
note_dense(void *user, ExprId e)
{
	Dense *d = user;
	Point *l = &d->c->l;
	const Expr *p = expr_get(l->g, e);
	if (p->op != OP_READ || p->narg == 0)
		return;
	const TensorArg *arg = point_tensor(l, p->ref);
	if (arg->dense && point_lane_subscript(l, e) == (int)p->narg - 1)
		ask_stride(d, arg);
}

ValId
contract_dense(Contract *c, ExprId e, bool with_output)
{
	Dense d = {.c = c};
	Point *l = &c->l;
	expr_walk(l->g, l->scratch, e, note_dense, &d);
	TensorId out = l->node->out;
	if (with_output && point_tensor(l, out)->dense && l->lane_axes >> (l->g->tensor.at[out].rank - 1u) & 1)
		ask_stride(&d, point_tensor(l, out));
	return d.all;
}

/* --- terms --- */

/* The pieces lo..hi-1 of the present outer terms; piece q is number q + base of the block. */
typedef struct {
	ValId lo, hi, base;
} Run;

static Run
open_run(Contract *c)
{
	Point *l = &c->l;
	TirKernel *k = l->tir;
	const Space *s = &c->terms;
	ValId zero = contract_int(c, 0), one = contract_int(c, 1);
	if (s->naxis == 1)
		return (Run){c->term0, c->term1, tir_binary(k, OP_SUB, zero, c->term0)};
	ValId end = tir_binary(k, OP_ADD, c->term1, tir_binary(k, OP_SUB, s->per, one));
	ValId o = tir_for(k, tir_binary(k, OP_IDIV, c->term0, s->per), tir_binary(k, OP_IDIV, end, s->per), one,
	                  NULL, 0);
	ValId first = tir_binary(k, OP_MUL, o, s->per);
	space_enter(l, s, first);
	return (Run){
		.lo = tir_binary(k, OP_MAX, tir_binary(k, OP_SUB, c->term0, first), zero),
		.hi = tir_binary(k, OP_MIN, tir_binary(k, OP_SUB, c->term1, first), s->per),
		.base = tir_binary(k, OP_SUB, first, c->term0)};
}

static void
close_run(Contract *c)
{
	if (c->terms.naxis > 1)
		tir_end_for(c->l.tir, NULL, 0);
}

/* A term at a time: the loops over a run and over the terms of a piece. */
typedef struct {
	ValId piece, term; /* of the block; of the piece */
} Term;

static Term
open_terms(Contract *c)
{
	TirKernel *k = c->l.tir;
	Run run = open_run(c);
	ValId width = contract_int(c, c->terms.width), one = contract_int(c, 1);
	ValId q = tir_for(k, run.lo, run.hi, one, NULL, 0);
	ValId first = tir_binary(k, OP_MUL, q, width);
	ValId rest = tir_binary(k, OP_SUB, c->terms.inner, first);
	Term t = {.piece = tir_binary(k, OP_ADD, q, run.base)};
	t.term = tir_for(k, contract_int(c, 0), tir_binary(k, OP_MIN, rest, width), one, NULL, 0);
	space_at(&c->l, &c->terms, tir_binary(k, OP_ADD, first, t.term));
	return t;
}

static void
close_terms(Contract *c)
{
	tir_end_for(c->l.tir, NULL, 0);
	tir_end_for(c->l.tir, NULL, 0);
	close_run(c);
}

/* --- values --- */

static ValId
factor_vector(Contract *c, ExprId factor, ValId mask)
{
	Point *l = &c->l;
	uint32_t mark = point_mark(l);
	l->mask = mask;
	ValId v = point_value(l, factor, true).re;
	l->mask = 0;
	point_release(l, mark);
	if (!tir_inst(l->tir, v)->type.lanes)
		v = tir_emit(l->tir, OP_SPLAT, tir_vector(c->fold.type, l->lanes), 0, &v, 1);
	return v;
}

/* Builds `pack` for memory that is contiguous along the lanes, and for any. */
static void
either_way(Contract *c, ExprId factor, void (*pack)(Contract *c))
{
	Point *l = &c->l;
	ValId dense = contract_dense(c, factor, false);
	l->dense = false;
	if (!dense) {
		pack(c);
		return;
	}
	tir_if(l->tir, dense);
	l->dense = true;
	pack(c);
	tir_else(l->tir, NULL, 0);
	l->dense = false;
	c->strided = true;
	pack(c);
	c->strided = false;
	tir_end_if(l->tir, NULL, 0);
}

/* --- rows --- */

/* Piece q of the terms, for all rows of piece p, which begins with row `first`. Rows are side by side, so
 * that it is written as one run. */
static void
pack_terms_of_rows(Contract *c, ValId p, ValId first, ValId q, ValId base, bool masked)
{
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), i = tir_binary(k, OP_MUL, q, contract_int(c, c->terms.width));
	ValId last = tir_binary(k, OP_SUB, c->rows.inner, one);
	ValId mask = masked ? contract_mask(c, i, c->terms.inner) : 0;
	space_at(&c->l, &c->terms, i);
	ValId r = tir_for(k, contract_int(c, 0), contract_int(c, c->rows.width), one, NULL, 0);
	space_at(&c->l, &c->rows, tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, r), last));
	const ValId at[4] = {p, tir_binary(k, OP_ADD, q, base), r, contract_int(c, 0)};
	tir_store(k, c->packed_rows, factor_vector(c, c->factors.row, mask), at, 0, TIR_LANES_ALONG(3));
	tir_end_for(k, NULL, 0);
}

static ValId
open_row_pieces(Contract *c, ValId *first)
{
	TirKernel *k = c->l.tir;
	ValId p = tir_for(k, c->row0, c->row1, contract_int(c, 1), NULL, 0);
	*first = space_enter(&c->l, &c->rows, p);
	return tir_binary(k, OP_SUB, p, c->row0);
}

static void
pack_rows_along_terms(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId first, p = open_row_pieces(c, &first);
	Run run = open_run(c);
	ValId whole = tir_binary(k, OP_IDIV, c->terms.inner, contract_int(c, c->terms.width));
	ValId hi = c->strided ? run.hi : tir_binary(k, OP_MIN, whole, run.hi);
	ValId q = tir_for(k, run.lo, hi, contract_int(c, 1), NULL, 0);
	pack_terms_of_rows(c, p, first, q, run.base, c->strided);
	tir_end_for(k, NULL, 0);
	if (!c->strided) {
		tir_if(k, tir_binary(k, OP_LT, whole, run.hi));
		pack_terms_of_rows(c, p, first, whole, run.base, true);
		tir_else(k, NULL, 0);
		tir_end_if(k, NULL, 0);
	}
	close_run(c);
	tir_end_for(k, NULL, 0);
}

/* The rows of a piece as vectors. Lanes beyond the last row compute nothing and store 0. */
static void
pack_rows_of_term(Contract *c, ValId p, ValId first, Term t)
{
	TirKernel *k = c->l.tir;
	for (unsigned r = 0; r < c->rows.width; r += c->l.lanes) {
		ValId row = contract_int(c, r), i = tir_binary(k, OP_ADD, first, row);
		space_at(&c->l, &c->rows, i);
		ValId v = factor_vector(c, c->factors.row, contract_mask(c, i, c->rows.inner));
		ValId mask = r + c->l.lanes > c->rows.width
		                     ? contract_mask(c, row, contract_int(c, c->rows.width)) : 0;
		const ValId at[4] = {p, t.piece, row, t.term};
		tir_store(k, c->packed_rows, v, at, mask, TIR_LANES_ALONG(2));
	}
}

/* Term by term through all rows, as the factor lies in memory, or piece by piece. */
static void
pack_rows_along_rows(Contract *c)
{
	ValId first, p;
	if (c->rows.naxis == 1) {
		Term t = open_terms(c);
		p = open_row_pieces(c, &first);
		pack_rows_of_term(c, p, first, t);
		tir_end_for(c->l.tir, NULL, 0);
		close_terms(c);
		return;
	}
	p = open_row_pieces(c, &first);
	Term t = open_terms(c);
	pack_rows_of_term(c, p, first, t);
	close_terms(c);
	tir_end_for(c->l.tir, NULL, 0);
}

void
contract_pack_rows(Contract *c)
{
	bool along = c->factors.rows_along_terms;
	const Space *s = along ? &c->terms : &c->rows;
	point_set_lanes(&c->l, c->plan->lanes, s->axis[s->naxis - 1]);
	either_way(c, c->factors.row, along ? pack_rows_along_terms : pack_rows_along_rows);
}

/* --- columns --- */

static ValId
open_column_pieces(Contract *c, ValId *first)
{
	TirKernel *k = c->l.tir;
	ValId p = tir_for(k, c->column0, c->column1, contract_int(c, 1), NULL, 0);
	*first = space_enter(&c->l, &c->columns, p);
	return tir_binary(k, OP_SUB, p, c->column0);
}

static void
pack_vectors(Contract *c, ValId p, ValId first, Term t, bool masked)
{
	TirKernel *k = c->l.tir;
	for (unsigned v = 0; v < c->columns.width; v += c->l.lanes) {
		ValId column = contract_int(c, v), i = tir_binary(k, OP_ADD, first, column);
		space_at(&c->l, &c->columns, i);
		ValId mask = masked ? contract_mask(c, i, c->columns.inner) : 0;
		const ValId at[5] = {c->slot, p, t.piece, t.term, column};
		tir_store(k, c->packed_columns, factor_vector(c, c->factors.column, mask), at, 0,
		          TIR_LANES_ALONG(4));
	}
}

static void
pack_column_piece(Contract *c, ValId p, ValId first, Term t)
{
	TirKernel *k = c->l.tir;
	if (c->strided) {
		pack_vectors(c, p, first, t, true);
		return;
	}
	ValId end = tir_binary(k, OP_ADD, first, contract_int(c, c->columns.width));
	tir_if(k, tir_binary(k, OP_LE, end, c->columns.inner));
	pack_vectors(c, p, first, t, false);
	tir_else(k, NULL, 0);
	pack_vectors(c, p, first, t, true);
	tir_end_if(k, NULL, 0);
}

/* Term by term through all columns, as the factor lies in memory, or piece by piece. */
static void
pack_columns(Contract *c)
{
	ValId first, p;
	Term t;
	bool by_term = !c->factors.columns_along_terms && c->columns.naxis == 1;
	if (by_term) {
		t = open_terms(c);
		p = open_column_pieces(c, &first);
		pack_column_piece(c, p, first, t);
		tir_end_for(c->l.tir, NULL, 0);
		close_terms(c);
		return;
	}
	p = open_column_pieces(c, &first);
	t = open_terms(c);
	pack_column_piece(c, p, first, t);
	close_terms(c);
	tir_end_for(c->l.tir, NULL, 0);
}

void
contract_pack_columns(Contract *c)
{
	const Space *s = &c->columns;
	point_set_lanes(&c->l, c->plan->lanes, s->axis[s->naxis - 1]);
	either_way(c, c->factors.column, pack_columns);
}
