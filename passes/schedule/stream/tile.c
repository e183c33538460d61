/* tile.c: a stream's two products as register tiles (stream.h): elements by rows for scores,
 * columns by rows for wide accumulators. Vectors run along the rows; the other operand is one number
 * for a whole vector. Terms are added one by one in ascending order. */
#include "passes/schedule/stream/stream.h"

#include "ir/bugs.h"

enum { MAX_TILE = 64 };

/* The tile's next term: a vector of rows for each of `row`, times its number along `axis`. */
static void
add_product(StreamBuild *b, ValId *acc, const ValId *row, ValId view, ValId *at, unsigned axis, unsigned n)
{
	TirKernel *k = b->l.tir;
	for (unsigned r = 0; r < n; r++) {
		at[axis] = stream_int(b, r);
		ValId x = stream_vector(b, tir_load(k, view, at, 0, 0, 0));
		for (unsigned v = 0; v < b->vectors; v++) {
			ValId *a = &acc[r * b->vectors + v];
			*a = tir_binary(k, OP_ADD, *a, tir_binary(k, OP_MUL, x, row[v]));
		}
	}
}

static void
load_rows(StreamBuild *b, ValId view, ValId *at, unsigned axis, ValId *row)
{
	for (unsigned v = 0; v < b->vectors; v++) {
		at[axis] = stream_int(b, v * b->plan->lanes);
		row[v] = tir_load(b->l.tir, view, at, 0, TIR_LANES_ALONG(axis), b->plan->lanes);
	}
}

/* --- scores --- */

/* The terms of a chunk. */
static void
add_chunk(StreamBuild *b, unsigned s, ValId piece, ValId chunk, ValId *acc)
{
	TirKernel *k = b->l.tir;
	unsigned rows = b->plan->tile_rows, n = rows * b->vectors;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1), lanes = stream_int(b, b->plan->lanes);
	ValId first = tir_binary(k, OP_MUL, chunk, lanes);
	ValId rest = tir_binary(k, OP_SUB, point_launch_expr(&b->l, b->terms[s]), first), row[STREAM_MAX_VECTORS];
	ValId t = tir_for(k, zero, tir_binary(k, OP_MIN, rest, lanes), one, acc, n);
	ValId of_row[3] = {b->strip, tir_binary(k, OP_ADD, first, t), 0}, of_key[4] = {piece, chunk, zero, t};
	load_rows(b, b->query[s], of_row, 2, row);
	add_product(b, acc, row, b->key[s], of_key, 2, rows);
	tir_end_for(k, acc, n);
}

static void
build_scores(StreamBuild *b, unsigned s)
{
	TirKernel *k = b->l.tir;
	unsigned rows = b->plan->tile_rows, n = rows * b->vectors;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0), width = stream_int(b, rows), acc[MAX_TILE];
	ValId pieces = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, b->count, stream_int(b, rows - 1)), width);
	ValId lanes = stream_int(b, b->plan->lanes), terms = point_launch_expr(&b->l, b->terms[s]);
	ValId chunks = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, terms, tir_binary(k, OP_SUB, lanes, one)), lanes);
	ValId some = tir_binary(k, OP_LT, zero, terms);
	ValId start = tir_select(k, some, tir_float(k, b->s->type, -0.0), tir_float(k, b->s->type, 0));
	ValId piece = tir_for(k, zero, pieces, one, NULL, 0);
	for (unsigned r = 0; r < n; r++)
		acc[r] = stream_vector(b, start);
	ValId chunk = tir_for(k, zero, chunks, one, acc, n);
	add_chunk(b, s, piece, chunk, acc);
	tir_end_for(k, acc, n);
	ValId first = tir_binary(k, OP_MUL, piece, width);
	for (unsigned r = 0; r < n; r++) {
		const ValId at[2] = {tir_binary(k, OP_ADD, first, stream_int(b, r / b->vectors)),
		                     stream_int(b, r % b->vectors * b->plan->lanes)};
		tir_store(k, b->panel[s], acc[r], at, 0, TIR_LANES_ALONG(1));
	}
	tir_end_for(k, NULL, 0);
}

void
stream_scores(StreamBuild *b)
{
	for (unsigned s = 0; s < b->s->nscore; s++) {
		if (b->plan->pairs)
			stream_dot_scores(b, s);
		else
			build_scores(b, s);
	}
}

/* --- columns --- */

static void
tile_of_columns(const StreamBuild *b, ValId piece, unsigned r, ValId *at)
{
	at[0] = b->strip;
	at[1] = piece;
	at[2] = stream_int(b, r / b->vectors);
	at[3] = stream_int(b, r % b->vectors * b->plan->lanes);
}

unsigned
stream_vector_rows(const KernelPlan *p)
{
	enum { MOST = 14 };
	unsigned rows = p->tile_rows < MOST ? p->tile_rows : MOST;
	while (p->tile_rows % rows)
		rows--;
	return rows;
}

void
stream_vector_columns(StreamBuild *b, unsigned a)
{
	TirKernel *k = b->l.tir;
	unsigned rows = stream_vector_rows(b->plan), n = rows * b->vectors, lanes = b->plan->lanes;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1), acc[MAX_TILE], at[4], row[STREAM_MAX_VECTORS];
	ValId columns = point_launch_expr(&b->l, b->columns);
	ValId pieces = tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, columns, stream_int(b, rows - 1)), stream_int(b, rows));
	ValId factor[STREAM_MAX_VECTORS];
	for (unsigned v = 0; b->factor[a] && v < b->vectors; v++)
		factor[v] = stream_factor(b, a, v);
	ValId piece = tir_for(k, zero, pieces, one, NULL, 0);
	for (unsigned r = 0; r < n; r++) {
		tile_of_columns(b, piece, r, at);
		acc[r] = tir_load(k, b->state_tiles[a], at, 0, TIR_LANES_ALONG(3), lanes);
		if (b->factor[a])
			acc[r] = tir_binary(k, OP_MUL, acc[r], factor[r % b->vectors]);
	}
	ValId count = BUG(stream_element_missing) ? tir_binary(k, OP_SUB, b->count, one) : b->count;
	ValId c = tir_for(k, zero, count, one, acc, n);
	ValId of_row[2] = {c, 0}, of_value[3] = {c, piece, zero};
	load_rows(b, b->weight[a], of_row, 1, row);
	add_product(b, acc, row, b->value_tiles[a], of_value, 2, rows);
	tir_end_for(k, acc, n);
	for (unsigned r = 0; r < n; r++) {
		tile_of_columns(b, piece, r, at);
		tir_store(k, b->state_tiles[a], acc[r], at, 0, TIR_LANES_ALONG(3));
	}
	tir_end_for(k, NULL, 0);
}

void
stream_columns(StreamBuild *b, unsigned acc)
{
	if (b->plan->pairs)
		stream_dot_columns(b, acc);
	else
		stream_vector_columns(b, acc);
}
