/* pairs.c: packs the factors of a contraction of bf16 as DOT takes them: u32 of two terms that
 * follow one another, the earlier one low. Rows are packed (piece, group, row, pair), columns (slot,
 * piece, group, pair, column); a group is a piece of terms, filled up with 0.
 *
 * Each piece keeps the least magnitude that is in it, or was in it in the blocks of terms before, or one
 * that is less: point/dot_product.h says what for. */
#include "passes/schedule/contract/contract.h"

#include "passes/schedule/point/dot_product.h"

/* Either factor. */
typedef struct {
	Contract *c;
	ExprId narrow;           /* the bf16 expression under the factor's widening */
	const Space *space;
	bool columns, along_terms;
	ValId piece0, piece1, base; /* base: the first piece that is kept */
} Side;

static Side
side_of(Contract *c, bool columns)
{
	const Factors *f = &c->factors;
	return (Side){
		.c = c,
		.narrow = expr_arg(c->l.g, columns ? f->column : f->row, 0),
		.space = columns ? &c->columns : &c->rows,
		.columns = columns,
		.along_terms = columns ? f->columns_along_terms : f->rows_along_terms,
		.piece0 = columns ? c->column0 : c->row0,
		.piece1 = columns ? c->column1 : c->row1,
		.base = columns ? c->kept0 : c->row0};
}

/* --- values --- */

/* The factor at the point, 0 in the lanes where mask fails; reads nothing where `read` fails. */
static ValId
narrow_vector(const Side *s, ValId read, ValId mask)
{
	Point *l = &s->c->l;
	TirKernel *k = l->tir;
	uint32_t mark = point_mark(l);
	l->mask = read;
	ValId v = point_value(l, s->narrow, true).re;
	l->mask = 0;
	point_release(l, mark);
	if (!tir_inst(k, v)->type.lanes)
		v = tir_emit(k, OP_SPLAT, tir_vector(DT_BF16, l->lanes), 0, &v, 1);
	return mask ? tir_select(k, mask, v, tir_float(k, DT_BF16, 0)) : v;
}

/* Stores a vector of pairs; the least of it and of `least`. */
static ValId
put_pairs(const Side *s, ValId piece, ValId group, ValId n, ValId pair, ValId v, unsigned along, ValId least)
{
	Contract *c = s->c;
	const ValId row[4] = {piece, group, n, pair}, column[5] = {c->slot, piece, group, pair, n};
	bool short_piece = along == 2 && s->space->width % c->l.lanes; /* rows that are no whole vectors */
	ValId mask = short_piece ? contract_mask(c, n, contract_int(c, s->space->width)) : 0;
	tir_store(c->l.tir, s->columns ? c->column_pairs : c->row_pairs, v, s->columns ? column : row, mask,
	          TIR_LANES_ALONG(along));
	return tir_binary(c->l.tir, OP_MIN, least, dot_lesser(c->l.tir, v));
}

/* --- the least magnitudes --- */

/* What the piece had before this block of terms; blocks that are packed ahead know of none but themselves. */
static ValId
least_before(const Side *s, ValId piece)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId least = tir_int(k, DT_U32, UINT32_MAX), zero = contract_int(c, 0);
	ValId before = tir_binary(k, OP_MAX, tir_binary(k, OP_SUB, c->slot, contract_int(c, 1)), zero);
	const ValId column[2] = {before, piece};
	tir_if(k, s->columns ? tir_binary(k, OP_OR, c->first_block, c->shares) : c->first_block);
	tir_else(k, &least, 1);
	least = s->columns ? tir_load(k, c->column_least, column, 0, 0, 0) : tir_load(k, c->row_least, &piece, 0, 0, 0);
	tir_end_if(k, &least, 1);
	return least;
}

/* Of vectors of so many pairs. */
static ValId
least_of_none(const Side *s, unsigned lanes)
{
	ValId most = tir_int(s->c->l.tir, DT_U32, UINT32_MAX);
	return tir_emit(s->c->l.tir, OP_SPLAT, tir_vector(DT_U32, lanes), 0, &most, 1);
}

static void
keep_least(const Side *s, ValId piece, ValId least)
{
	TirKernel *k = s->c->l.tir;
	const ValId column[2] = {s->c->slot, piece};
	least = tir_binary(k, OP_MIN, least, least_before(s, piece));
	tir_store(k, s->columns ? s->c->column_least : s->c->row_least, least, s->columns ? column : &piece, 0, 0);
}

/* --- memory along the terms: a group of a row or column at once --- */

/* Group q of every row, or column, of piece p, which begins at `first`. */
static ValId
pack_group(const Side *s, ValId p, ValId first, ValId q, bool masked, ValId least)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), last = tir_binary(k, OP_SUB, s->space->inner, one);
	ValId i = tir_binary(k, OP_MUL, q, contract_int(c, c->terms.width));
	ValId mask = masked ? contract_mask(c, i, c->terms.inner) : 0;
	space_at(&c->l, &c->terms, i);
	ValId n = tir_for(k, zero, contract_int(c, s->space->width), one, &least, 1);
	space_at(&c->l, s->space, tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, n), last));
	ValId v = tir_recast(k, DT_U32, narrow_vector(s, mask, mask));
	least = put_pairs(s, tir_binary(k, OP_SUB, p, s->base), tir_binary(k, OP_SUB, q, c->term0), n, zero, v, 3, least);
	tir_end_for(k, &least, 1);
	return least;
}

static void
pack_along_terms(const Side *s)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1);
	ValId whole = tir_binary(k, OP_IDIV, c->terms.inner, contract_int(c, c->terms.width));
	ValId p = tir_for(k, s->piece0, s->piece1, one, NULL, 0), first = space_enter(&c->l, s->space, p);
	ValId least = least_of_none(s, c->terms.width / 2), q;
	q = tir_for(k, c->term0, tir_binary(k, OP_MIN, whole, c->term1), one, &least, 1);
	least = pack_group(s, p, first, q, false, least);
	tir_end_for(k, &least, 1);
	tir_if(k, tir_binary(k, OP_LT, whole, c->term1));
	ValId all = pack_group(s, p, first, whole, true, least);
	tir_else(k, &all, 1);
	all = least;
	tir_end_if(k, &all, 1);
	keep_least(s, tir_binary(k, OP_SUB, p, s->base), dot_across(k, OP_MIN, all));
	tir_end_for(k, NULL, 0);
}

/* --- memory along the rows or columns: a pair of terms of a vector of them --- */

/* The bits of term i in u32, lanes from `at` on. A term behind the last is 0, and not evaluated. */
static ValId
term_bits(const Side *s, ValId i, ValId at, bool masked)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId read = 0, mask = 0;
	if (masked) {
		ValId exists = tir_binary(k, OP_LT, i, c->terms.inner);
		ValId last = tir_binary(k, OP_SUB, c->terms.inner, contract_int(c, 1));
		read = contract_mask(c, at, s->space->inner);
		mask = tir_binary(k, OP_AND, read, exists);
		i = tir_binary(k, OP_MIN, i, last);
	}
	space_at(&c->l, &c->terms, i);
	return tir_cast(k, DT_U32, tir_bitcast(k, DT_U16, narrow_vector(s, read, mask)));
}

static ValId
pack_pair(const Side *s, ValId p, ValId first, ValId q, ValId pair, bool masked, ValId least)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), i = tir_binary(k, OP_MUL, q, contract_int(c, c->terms.width));
	i = tir_binary(k, OP_ADD, i, tir_binary(k, OP_MUL, pair, contract_int(c, 2)));
	for (unsigned v = 0; v < s->space->width; v += c->l.lanes) {
		ValId n = contract_int(c, v), at = tir_binary(k, OP_ADD, first, n);
		space_at(&c->l, s->space, at);
		ValId low = term_bits(s, i, at, masked), high = term_bits(s, tir_binary(k, OP_ADD, i, one), at, masked);
		high = tir_binary(k, OP_SHL, high, tir_int(k, DT_U32, 16));
		least = put_pairs(s, tir_binary(k, OP_SUB, p, s->base), tir_binary(k, OP_SUB, q, c->term0), n, pair,
		                  tir_binary(k, OP_BOR, low, high), s->columns ? 4 : 2, least);
	}
	return least;
}

static ValId
pack_pair_either(const Side *s, ValId p, ValId first, ValId q, ValId pair, ValId least)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	unsigned vectors = (s->space->width + c->l.lanes - 1) / c->l.lanes;
	ValId n1 = tir_binary(k, OP_ADD, first, contract_int(c, vectors * c->l.lanes));
	ValId i1 = tir_binary(k, OP_MUL, tir_binary(k, OP_ADD, q, contract_int(c, 1)), contract_int(c, c->terms.width));
	tir_if(k, tir_binary(k, OP_AND, tir_binary(k, OP_LE, n1, s->space->inner),
	                     tir_binary(k, OP_LE, i1, c->terms.inner)));
	ValId both = pack_pair(s, p, first, q, pair, false, least);
	tir_else(k, &both, 1);
	both = pack_pair(s, p, first, q, pair, true, least);
	tir_end_if(k, &both, 1);
	return both;
}

/* Pair by pair through all pieces, as the factor lies in memory, or piece by piece. In the first way the pieces have
 * one least in common. */
static void
pack_along_lanes(const Side *s)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	bool by_term = s->space->naxis == 1;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), pairs = contract_int(c, c->plan->pairs), p = 0;
	if (!by_term)
		p = tir_for(k, s->piece0, s->piece1, one, NULL, 0);
	ValId least = least_of_none(s, c->plan->lanes);
	ValId q = tir_for(k, c->term0, c->term1, one, &least, 1), pair = tir_for(k, zero, pairs, one, &least, 1);
	if (by_term)
		p = tir_for(k, s->piece0, s->piece1, one, &least, 1);
	least = pack_pair_either(s, p, space_enter(&c->l, s->space, p), q, pair, least);
	for (unsigned n = 0; n < 2u + by_term; n++)
		tir_end_for(k, &least, 1);
	least = dot_across(k, OP_MIN, least);
	if (by_term)
		p = tir_for(k, s->piece0, s->piece1, one, NULL, 0);
	keep_least(s, tir_binary(k, OP_SUB, p, s->base), least);
	tir_end_for(k, NULL, 0);
}

/* --- both --- */

void
contract_pack_pairs(Contract *c, bool columns)
{
	Point *l = &c->l;
	Side s = side_of(c, columns);
	const Space *along = s.along_terms ? &c->terms : s.space;
	point_set_lanes(l, s.along_terms ? c->terms.width : c->plan->lanes, along->axis[along->naxis - 1]);
	contract_look_ahead(c, s.along_terms ? CONTRACT_TERMS_ALONG : CONTRACT_TERMS_APART);
	(s.along_terms ? pack_along_terms : pack_along_lanes)(&s);
	contract_look_ahead(c, 0);
}
