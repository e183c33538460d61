/* pack.c: evaluates the factors of a stream's products into panels (stream.h): those of rows
 * once a task, by vectors of rows; those of elements once a tile, by vectors of terms and of columns.
 * A factor is any expression; what a cast or another operation costs is paid here, once for all rows.
 *
 * The last piece of elements is filled up with the last element, columns with 0. Where terms may be
 * absent, the values of a tile are asked whether they are finite: then an absent term may be a product
 * with 0. */
#include "passes/schedule/stream/stream.h"

/* --- factors --- */

static ValId
factor_vector(StreamBuild *b, ExprId e, ValId mask)
{
	Point *l = &b->l;
	uint32_t mark = point_mark(l);
	l->mask = mask;
	ValId v = stream_vector(b, point_value(l, e, !b->s->ragged && !b->s->rest).re);
	l->mask = 0;
	point_release(l, mark);
	return v;
}

ValId
stream_below(StreamBuild *b, ValId i, ValId end)
{
	TirKernel *k = b->l.tir;
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, b->l.lanes), 0, NULL, 0);
	return tir_binary(k, OP_LT, tir_binary(k, OP_ADD, i, iota), end);
}

ValId
stream_term_at(StreamBuild *b, unsigned n, ValId t)
{
	const StreamScore *s = &b->s->score[n];
	ValId lo = point_launch_expr(&b->l, s->node.axis[s->node.npar].lo);
	return tir_binary(b->l.tir, OP_ADD, lo, t);
}

/* --- rows --- */

/* By vectors of rows. */
static void
pack_rows(StreamBuild *b, unsigned n)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	const StreamScore *s = &b->s->score[n];
	ValId one = stream_int(b, 1), zero = stream_int(b, 0);
	ValId t = tir_for(k, zero, point_launch_expr(l, b->terms[n]), one, NULL, 0);
	l->axis[s->term] = stream_term_at(b, n, t);
	for (unsigned v = 0; v < b->vectors; v++) {
		stream_at_vector(b, v);
		const ValId at[3] = {b->strip, t, stream_int(b, v * l->lanes)};
		tir_store(k, b->query[n], factor_vector(b, s->query, l->mask), at, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
}

/* A vector of terms of the strip's row r. */
static void
pack_row_terms(StreamBuild *b, unsigned n, ValId r, ValId chunk, bool masked)
{
	Point *l = &b->l;
	const StreamScore *s = &b->s->score[n];
	ValId t = tir_binary(l->tir, OP_MUL, chunk, stream_int(b, l->lanes));
	ValId mask = masked ? stream_below(b, t, point_launch_expr(l, b->terms[n])) : 0;
	l->axis[s->term] = stream_term_at(b, n, t);
	const ValId at[2] = {r, t};
	tir_store(l->tir, b->unturned[n], factor_vector(b, s->query, mask), at, 0, TIR_LANES_ALONG(1));
}

/* By vectors of terms, for each row; a row that is not there is the last one again. */
static void
pack_turned(StreamBuild *b, unsigned n)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0), width = stream_int(b, b->plan->tile_columns);
	ValId terms = point_launch_expr(l, b->terms[n]), last = tir_binary(k, OP_SUB, b->row1, one);
	ValId whole = tir_binary(k, OP_IDIV, terms, stream_int(b, l->lanes));
	ValId first = tir_binary(k, OP_ADD, b->row0, tir_binary(k, OP_MUL, b->strip, width));
	ValId r = tir_for(k, zero, width, one, NULL, 0);
	l->axis[b->s->lane] = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, first, r), last);
	ValId chunk = tir_for(k, zero, whole, one, NULL, 0);
	pack_row_terms(b, n, r, chunk, false);
	tir_end_for(k, NULL, 0);
	tir_if(k, tir_binary(k, OP_LT, tir_binary(k, OP_MUL, whole, stream_int(b, l->lanes)), terms));
	pack_row_terms(b, n, r, whole, true);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	stream_turn_query(b, n);
}

void
stream_pack_queries(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	for (unsigned n = 0; n < b->s->nscore; n++) {
		point_set_lanes(&b->l, b->plan->lanes, b->unturned[n] ? b->s->score[n].term : b->s->lane);
		b->strip = tir_for(k, stream_int(b, 0), b->nstrip, stream_int(b, 1), NULL, 0);
		if (b->unturned[n])
			pack_turned(b, n);
		else
			pack_rows(b, n);
		if (b->plan->pairs)
			stream_pair_queries(b, n);
		tir_end_for(k, NULL, 0);
	}
	stream_by_rows(b);
}

/* --- elements: keys --- */

typedef struct {
	ValId piece, row;
} Key;

static void
pack_terms(StreamBuild *b, unsigned n, Key at_key, ValId chunk, bool masked)
{
	Point *l = &b->l;
	const StreamScore *s = &b->s->score[n];
	ValId t = tir_binary(l->tir, OP_MUL, chunk, stream_int(b, l->lanes));
	ValId mask = masked ? stream_below(b, t, point_launch_expr(l, b->terms[n])) : 0;
	l->axis[s->term] = stream_term_at(b, n, t);
	const ValId at[4] = {at_key.piece, chunk, at_key.row, stream_int(b, 0)};
	tir_store(l->tir, b->key[n], factor_vector(b, s->key, mask), at, 0, TIR_LANES_ALONG(3));
}

static void
pack_key(StreamBuild *b, unsigned n)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0), rows = stream_int(b, b->plan->tile_rows);
	ValId terms = point_launch_expr(l, b->terms[n]), last = tir_binary(k, OP_SUB, b->count, one);
	ValId whole = tir_binary(k, OP_IDIV, terms, stream_int(b, l->lanes));
	ValId pieces = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, last, rows), rows);
	Key key;
	key.piece = tir_for(k, zero, pieces, one, NULL, 0);
	key.row = tir_for(k, zero, rows, one, NULL, 0);
	ValId c = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, key.piece, rows), key.row);
	l->axis[b->s->stream] = tir_binary(k, OP_ADD, b->first, tir_binary(k, OP_MIN, c, last));
	ValId chunk = tir_for(k, zero, whole, one, NULL, 0);
	pack_terms(b, n, key, chunk, false);
	tir_end_for(k, NULL, 0);
	tir_if(k, tir_binary(k, OP_LT, tir_binary(k, OP_MUL, whole, stream_int(b, l->lanes)), terms));
	pack_terms(b, n, key, whole, true);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

void
stream_pack_keys(StreamBuild *b)
{
	for (unsigned n = 0; n < b->s->nscore; n++) {
		point_set_lanes(&b->l, b->plan->lanes, b->s->score[n].term);
		if (b->plan->pairs)
			stream_pair_keys(b, n);
		else
			pack_key(b, n);
	}
}

/* --- elements: values --- */

/* One vector of columns. */
static ValId
pack_columns(StreamBuild *b, unsigned acc, ValId c, ValId chunk, bool tail)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId column = tir_binary(k, OP_MUL, chunk, stream_int(b, l->lanes)), mask = 0;
	l->axis[b->s->wide] = column;
	if (tail)
		mask = stream_below(b, column, point_launch_expr(l, b->columns));
	ValId v = factor_vector(b, b->s->acc[acc].value, mask), none = tir_float(k, b->s->type, 0);
	if (tail)
		v = tir_select(k, mask, v, stream_vector(b, none));
	const ValId at[2] = {c, column};
	tir_store(k, b->value[acc], v, at, 0, TIR_LANES_ALONG(1));
	return v;
}

/* What is joined, if it is asked, is 0 as long as all of it is finite. */
static void
join_columns(StreamBuild *b, unsigned acc, ValId c, ValId from, ValId to, bool tail, ValId *joined)
{
	TirKernel *k = b->l.tir;
	unsigned asked = stream_may_lack_terms(b);
	ValId chunk = tir_for(k, from, to, stream_int(b, 1), joined, asked);
	ValId v = pack_columns(b, acc, c, chunk, tail), none = stream_vector(b, tir_float(k, b->s->type, 0));
	if (asked)
		*joined = tir_binary(k, OP_ADD, *joined, tir_binary(k, OP_MUL, v, none));
	tir_end_for(k, joined, asked);
}

/* Whether no lane is a NaN. */
static ValId
none_is_nan(StreamBuild *b, ValId v)
{
	TirKernel *k = b->l.tir;
	for (unsigned n = b->l.lanes / 2; n; n /= 2) {
		TirType half = n > 1 ? tir_vector(b->s->type, n) : tir_scalar(b->s->type);
		ValId low = tir_emit(k, OP_LANE, half, 0, &v, 1), high = tir_emit(k, OP_LANE, half, (int64_t)n, &v, 1);
		v = tir_binary(k, OP_ADD, low, high);
	}
	return tir_binary(k, OP_EQ, v, v);
}

static void
pack_value(StreamBuild *b, unsigned acc)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0), lanes = stream_int(b, l->lanes);
	ValId columns = point_launch_expr(l, b->columns), whole = tir_binary(k, OP_IDIV, columns, lanes);
	ValId all = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, columns, tir_binary(k, OP_SUB, lanes, one)), lanes);
	ValId joined = stream_vector(b, tir_float(k, b->s->type, 0));
	unsigned asked = stream_may_lack_terms(b);
	ValId c = tir_for(k, zero, b->count, one, &joined, asked);
	l->axis[b->s->stream] = tir_binary(k, OP_ADD, b->first, c);
	join_columns(b, acc, c, zero, whole, false, &joined);
	join_columns(b, acc, c, whole, all, true, &joined);
	tir_end_for(k, &joined, asked);
	if (!asked)
		return;
	ValId finite = none_is_nan(b, joined), before = tir_load(k, b->finite, &zero, 0, 0, 0);
	tir_store(k, b->finite, tir_binary(k, OP_AND, before, finite), &zero, 0, 0);
}

/* Vectors of columns that no value is in: tiles read them. */
void
stream_clear_values(StreamBuild *b)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0), lanes = stream_int(b, b->plan->lanes);
	ValId none = stream_vector(b, tir_float(k, b->s->type, 0)), columns = point_launch_expr(l, b->columns);
	ValId from = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, columns, tir_binary(k, OP_SUB, lanes, one)), lanes);
	ValId to = tir_binary(k, OP_IDIV, point_launch_expr(l, b->padded), lanes);
	for (unsigned n = 0; n < b->s->pass->nacc; n++) {
		if (!b->s->acc[n].wide)
			continue;
		ValId c = tir_for(k, zero, stream_int(b, b->plan->block_terms), one, NULL, 0);
		ValId chunk = tir_for(k, from, to, one, NULL, 0);
		const ValId at[2] = {c, tir_binary(k, OP_MUL, chunk, lanes)};
		tir_store(k, b->value[n], none, at, 0, TIR_LANES_ALONG(1));
		tir_end_for(k, NULL, 0);
		tir_end_for(k, NULL, 0);
	}
}

void
stream_pack_values(StreamBuild *b)
{
	ValId zero = stream_int(b, 0);
	if (stream_may_lack_terms(b))
		tir_store(b->l.tir, b->finite, tir_int(b->l.tir, DT_BOOL, 1), &zero, 0, 0);
	for (unsigned k = 0; k < b->s->pass->nacc; k++) {
		if (!b->s->acc[k].wide)
			continue;
		point_set_lanes(&b->l, b->plan->lanes, (unsigned)b->s->wide);
		pack_value(b, k);
		if (b->plan->pairs)
			stream_pair_values(b, k);
	}
}
