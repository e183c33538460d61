/* pack.c: evaluates the factors of a contraction into panels, in the order in which the
 * register tiles read them. A factor is any expression, so what else a kernel before this one would
 * have computed is computed here, once for each block that needs it.
 *
 * Rows are packed (piece, piece of terms, row, term), the last two in the order in which the factor
 * lies in memory, columns (piece, piece of terms, term, column), whichever way the factor lies. The
 * last piece of rows is filled up with its last row, vectors along columns and terms with anything:
 * tiles compute with the former and never store what comes of it, and do not read the latter. */
#include "passes/schedule/contract/contract.h"

#include "passes/schedule/point/read.h"

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

/* --- terms --- */

Run
contract_open_run(Contract *c)
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

void
contract_close_run(Contract *c)
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
	Run run = contract_open_run(c);
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
	contract_close_run(c);
}

/* --- values --- */

ValId
contract_factor(Contract *c, ExprId factor, ValId mask)
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

/* What factors read is fetched so many terms ahead of the point, until this is called with 0. */
void
contract_look_ahead(Contract *c, unsigned terms)
{
	c->l.ahead = terms ? 1u + c->terms.axis[c->terms.naxis - 1] : 0;
	c->l.ahead_by = terms;
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
	tir_store(k, c->packed_rows, contract_factor(c, c->factors.row, mask), at, 0, TIR_LANES_ALONG(3));
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
	Run run = contract_open_run(c);
	ValId whole = tir_binary(k, OP_IDIV, c->terms.inner, contract_int(c, c->terms.width));
	ValId q = tir_for(k, run.lo, tir_binary(k, OP_MIN, whole, run.hi), contract_int(c, 1), NULL, 0);
	pack_terms_of_rows(c, p, first, q, run.base, false);
	tir_end_for(k, NULL, 0);
	tir_if(k, tir_binary(k, OP_LT, whole, run.hi));
	pack_terms_of_rows(c, p, first, whole, run.base, true);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	contract_close_run(c);
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
		ValId v = contract_factor(c, c->factors.row, contract_mask(c, i, c->rows.inner));
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
	contract_look_ahead(c, along ? CONTRACT_TERMS_ALONG : CONTRACT_TERMS_APART);
	(along ? pack_rows_along_terms : pack_rows_along_rows)(c);
	contract_look_ahead(c, 0);
}

/* --- columns --- */

static ValId
open_column_pieces(Contract *c, ValId *first)
{
	TirKernel *k = c->l.tir;
	ValId p = tir_for(k, c->column0, c->column1, contract_int(c, 1), NULL, 0);
	*first = space_enter(&c->l, &c->columns, p);
	return tir_binary(k, OP_SUB, p, c->kept0);
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
		tir_store(k, c->packed_columns, contract_factor(c, c->factors.column, mask), at, 0,
		          TIR_LANES_ALONG(4));
	}
}

static void
pack_column_piece(Contract *c, ValId p, ValId first, Term t)
{
	TirKernel *k = c->l.tir;
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
	if (c->columns.naxis == 1) {
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

/* --- columns whose memory runs along the terms --- */

/* As many terms as lanes of the columns from piece p's column v on; of a column that is not there, the last one's. */
static void
fill_square(Contract *c, ValId first, ValId v, ValId q, bool masked)
{
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), i = tir_binary(k, OP_MUL, q, contract_int(c, c->terms.width));
	ValId last = tir_binary(k, OP_SUB, c->columns.inner, one);
	ValId mask = masked ? contract_mask(c, i, c->terms.inner) : 0;
	space_at(&c->l, &c->terms, i);
	ValId n = tir_for(k, contract_int(c, 0), contract_int(c, c->l.lanes), one, NULL, 0);
	ValId column = tir_binary(k, OP_ADD, tir_binary(k, OP_ADD, first, v), n);
	space_at(&c->l, &c->columns, tir_binary(k, OP_MIN, column, last));
	const ValId at[2] = {n, contract_int(c, 0)};
	tir_store(k, c->square, contract_factor(c, c->factors.column, mask), at, 0, TIR_LANES_ALONG(1));
	tir_end_for(k, NULL, 0);
}

/* Swaps rows and lanes of a square of vectors: in each step, two rows the blocks of s by s that lie off its diagonal. */
static void
transpose(TirKernel *k, ValId *row, unsigned lanes)
{
	ValId lane = tir_cast(k, DT_U64, tir_emit(k, OP_IOTA, tir_vector(DT_I64, lanes), 0, NULL, 0));
	for (unsigned s = 1; s < lanes; s *= 2) {
		ValId low = tir_binary(k, OP_EQ, tir_binary(k, OP_BAND, lane, tir_int(k, DT_U64, s)), tir_int(k, DT_U64, 0));
		for (unsigned r = 0; r < lanes; r++) {
			if (r & s)
				continue;
			const ValId up[2] = {row[r], row[r]}, down[2] = {row[r + s], row[r + s]};
			TirType type = tir_inst(k, row[r])->type;
			ValId later = tir_emit(k, OP_SLIDE, type, s, up, 2);
			ValId earlier = tir_emit(k, OP_SLIDE, type, lanes - s, down, 2);
			ValId upper = tir_select(k, low, row[r], earlier);
			row[r + s] = tir_select(k, low, later, row[r + s]);
			row[r] = upper;
		}
	}
}

static void
store_square(Contract *c, ValId p, ValId v, ValId piece)
{
	TirKernel *k = c->l.tir;
	unsigned lanes = c->l.lanes;
	ValId row[TIR_MAX_LANES];
	for (unsigned n = 0; n < lanes; n++) {
		const ValId at[2] = {contract_int(c, n), contract_int(c, 0)};
		row[n] = tir_load(k, c->square, at, 0, TIR_LANES_ALONG(1), lanes);
	}
	transpose(k, row, lanes);
	for (unsigned n = 0; n < lanes; n++) {
		const ValId at[5] = {c->slot, p, piece, contract_int(c, n), v};
		tir_store(k, c->packed_columns, row[n], at, 0, TIR_LANES_ALONG(4));
	}
}

static void
pack_turned_columns(Contract *c)
{
	TirKernel *k = c->l.tir;
	ValId first, p = open_column_pieces(c, &first);
	Run run = contract_open_run(c);
	ValId one = contract_int(c, 1), whole = tir_binary(k, OP_IDIV, c->terms.inner, contract_int(c, c->terms.width));
	ValId q = tir_for(k, run.lo, run.hi, one, NULL, 0);
	ValId v = tir_for(k, contract_int(c, 0), contract_int(c, c->columns.width), contract_int(c, c->l.lanes), NULL, 0);
	tir_if(k, tir_binary(k, OP_LT, q, whole));
	fill_square(c, first, v, q, false);
	tir_else(k, NULL, 0);
	fill_square(c, first, v, q, true);
	tir_end_if(k, NULL, 0);
	store_square(c, p, v, tir_binary(k, OP_ADD, q, run.base));
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	contract_close_run(c);
	tir_end_for(k, NULL, 0);
}

void
contract_pack_columns(Contract *c)
{
	bool along = c->factors.columns_along_terms;
	const Space *s = along ? &c->terms : &c->columns;
	point_set_lanes(&c->l, c->plan->lanes, s->axis[s->naxis - 1]);
	contract_look_ahead(c, along ? CONTRACT_TERMS_ALONG : CONTRACT_TERMS_APART);
	(along ? pack_turned_columns : pack_columns)(c);
	contract_look_ahead(c, 0);
}
