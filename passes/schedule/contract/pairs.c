/* pairs.c: packs the factors of a contraction of bf16 as DOT takes them: u32 of two terms that
 * follow one another, the earlier one low. Rows are packed (piece, group, row, pair), columns (slot,
 * piece, group, pair, column); a group is a piece of terms, filled up with 0.
 *
 * Each piece keeps the least magnitude that is in it, or was in it in the blocks of terms before:
 * point/dot_product.h says what for. */
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

static void
put_pairs(const Side *s, ValId piece, ValId group, ValId n, ValId pair, ValId v, unsigned along)
{
	Contract *c = s->c;
	const ValId row[4] = {piece, group, n, pair}, column[5] = {c->slot, piece, group, pair, n};
	bool short_piece = along == 2 && s->space->width % c->l.lanes; /* rows that are no whole vectors */
	ValId mask = short_piece ? contract_mask(c, n, contract_int(c, s->space->width)) : 0;
	tir_store(c->l.tir, s->columns ? c->column_pairs : c->row_pairs, v, s->columns ? column : row, mask,
	          TIR_LANES_ALONG(along));
}

/* --- memory along the terms: a group of a row or column at once --- */

/* Group q of every row, or column, of piece p, which begins at `first`. */
static void
pack_group(const Side *s, ValId p, ValId first, ValId q, bool masked)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), last = tir_binary(k, OP_SUB, s->space->inner, one);
	ValId i = tir_binary(k, OP_MUL, q, contract_int(c, c->terms.width));
	ValId mask = masked ? contract_mask(c, i, c->terms.inner) : 0;
	space_at(&c->l, &c->terms, i);
	ValId n = tir_for(k, zero, contract_int(c, s->space->width), one, NULL, 0);
	space_at(&c->l, s->space, tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, n), last));
	ValId v = tir_recast(k, DT_U32, narrow_vector(s, mask, mask));
	put_pairs(s, tir_binary(k, OP_SUB, p, s->base), tir_binary(k, OP_SUB, q, c->term0), n, zero, v, 3);
	tir_end_for(k, NULL, 0);
}

static void
pack_along_terms(const Side *s)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1);
	ValId whole = tir_binary(k, OP_IDIV, c->terms.inner, contract_int(c, c->terms.width));
	ValId p = tir_for(k, s->piece0, s->piece1, one, NULL, 0), first = space_enter(&c->l, s->space, p);
	ValId q = tir_for(k, c->term0, tir_binary(k, OP_MIN, whole, c->term1), one, NULL, 0);
	pack_group(s, p, first, q, false);
	tir_end_for(k, NULL, 0);
	tir_if(k, tir_binary(k, OP_LT, whole, c->term1));
	pack_group(s, p, first, whole, true);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
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

static void
pack_pair(const Side *s, ValId p, ValId first, ValId q, ValId pair, bool masked)
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
		put_pairs(s, tir_binary(k, OP_SUB, p, s->base), tir_binary(k, OP_SUB, q, c->term0), n, pair,
		          tir_binary(k, OP_BOR, low, high), s->columns ? 4 : 2);
	}
}

static void
pack_pair_either(const Side *s, ValId p, ValId first, ValId q, ValId pair)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	unsigned vectors = (s->space->width + c->l.lanes - 1) / c->l.lanes;
	ValId n1 = tir_binary(k, OP_ADD, first, contract_int(c, vectors * c->l.lanes));
	ValId i1 = tir_binary(k, OP_MUL, tir_binary(k, OP_ADD, q, contract_int(c, 1)), contract_int(c, c->terms.width));
	tir_if(k, tir_binary(k, OP_AND, tir_binary(k, OP_LE, n1, s->space->inner),
	                     tir_binary(k, OP_LE, i1, c->terms.inner)));
	pack_pair(s, p, first, q, pair, false);
	tir_else(k, NULL, 0);
	pack_pair(s, p, first, q, pair, true);
	tir_end_if(k, NULL, 0);
}

/* Pair by pair through all pieces, as the factor lies in memory, or piece by piece. */
static void
pack_along_lanes(const Side *s)
{
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	bool by_term = s->space->naxis == 1;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), pairs = contract_int(c, c->plan->pairs), p, q, pair;
	if (!by_term)
		p = tir_for(k, s->piece0, s->piece1, one, NULL, 0);
	q = tir_for(k, c->term0, c->term1, one, NULL, 0);
	pair = tir_for(k, zero, pairs, one, NULL, 0);
	if (by_term)
		p = tir_for(k, s->piece0, s->piece1, one, NULL, 0);
	pack_pair_either(s, p, space_enter(&c->l, s->space, p), q, pair);
	for (unsigned n = 0; n < 3; n++)
		tir_end_for(k, NULL, 0);
}

/* --- the least magnitudes --- */

/* Of the vectors that run along the columns, or along the pairs of a row. */
static unsigned
lanes_of(const Side *s)
{
	const KernelPlan *p = s->c->plan;
	return !s->columns && p->pairs < p->lanes ? p->pairs : p->lanes;
}

/* The least of the vectors of pairs of row n, or pair n, of a group, and of `least`. */
static ValId
least_of(const Side *s, ValId piece, ValId group, ValId n, ValId least)
{
	Contract *c = s->c;
	unsigned lanes = lanes_of(s);
	for (unsigned v = 0; v < (s->columns ? c->columns.width : c->plan->pairs); v += lanes) {
		ValId i = contract_int(c, v);
		const ValId row[4] = {piece, group, n, i}, column[5] = {c->slot, piece, group, n, i};
		ValId x = tir_load(c->l.tir, s->columns ? c->column_pairs : c->row_pairs, s->columns ? column : row, 0,
		                   TIR_LANES_ALONG(s->columns ? 4 : 3), lanes);
		least = tir_binary(c->l.tir, OP_MIN, least, dot_lesser(c->l.tir, x));
	}
	return least;
}

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

static void
keep_least(const Side *s)
{
	enum { AT_ONCE = 2 };
	Contract *c = s->c;
	TirKernel *k = c->l.tir;
	ValId one = contract_int(c, 1), zero = contract_int(c, 0), lines = contract_int(c, s->columns ? c->plan->pairs
	                                                                                          : c->rows.width);
	ValId p = tir_for(k, tir_binary(k, OP_SUB, s->piece0, s->base), tir_binary(k, OP_SUB, s->piece1, s->base), one, NULL, 0);
	ValId most = tir_int(k, DT_U32, UINT32_MAX);
	ValId least = tir_emit(k, OP_SPLAT, tir_vector(DT_U32, lanes_of(s)), 0, &most, 1);
	ValId q = tir_for(k, zero, tir_binary(k, OP_SUB, c->term1, c->term0), one, &least, 1);
	ValId n = tir_for(k, zero, lines, contract_int(c, AT_ONCE), &least, 1);
	for (unsigned i = 0; i < AT_ONCE; i++)
		least = least_of(s, p, q, tir_binary(k, OP_ADD, n, contract_int(c, i)), least);
	tir_end_for(k, &least, 1);
	tir_end_for(k, &least, 1);
	least = dot_across(k, least, lanes_of(s));
	least = tir_binary(k, OP_MIN, least, least_before(s, p));
	const ValId column[2] = {c->slot, p};
	tir_store(k, s->columns ? c->column_least : c->row_least, least, s->columns ? column : &p, 0, 0);
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
	keep_least(&s);
}
