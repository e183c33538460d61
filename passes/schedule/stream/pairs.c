/* pairs.c: a stream's two products by DOT (point/dot_product.h), of pairs of bf16: elements by rows for
 * scores, in pairs of terms; columns by rows for wide accumulators, in pairs of elements.
 *
 * Keys, values and queries are bf16 that were widened, so their upper halves are all of them. Weights are
 * rounded, which the mode leaves open (narrow_contract.c), and only where DOT is taken: it is not where one is no
 * normal number or a NaN, and then vectors multiply what was not rounded. A tile's product starts from 0 and is
 * added to the state by vectors: what is there already has no least magnitude that is known. */
#include "passes/schedule/point/dot_product.h"
#include "passes/schedule/stream/stream.h"

#include "ir/bugs.h"

unsigned
stream_element_pairs(const StreamBuild *b)
{
	return b->plan->chained ? 1 : b->plan->pairs;
}

unsigned
stream_group_terms(const StreamBuild *b)
{
	return 2u * b->plan->pairs;
}

static ValId
word(const StreamBuild *b, uint32_t v)
{
	return tir_int(b->l.tir, DT_U32, v);
}

static ValId
splat(StreamBuild *b, ValId v, unsigned lanes)
{
	TirType t = tir_inst(b->l.tir, v)->type;
	return t.lanes ? v : tir_emit(b->l.tir, OP_SPLAT, tir_vector((DType)t.dtype, lanes), 0, &v, 1);
}

/* (n + step - 1) div step */
static ValId
pieces_of(StreamBuild *b, ValId n, unsigned step)
{
	TirKernel *k = b->l.tir;
	return tir_binary(k, OP_IDIV, tir_binary(k, OP_ADD, n, stream_int(b, step - 1)), stream_int(b, step));
}

/* --- pairs of f32 --- */

/* Twice the bits, without the sign. */
static ValId
magnitude(StreamBuild *b, ValId x)
{
	return tir_binary(b->l.tir, OP_SHL, tir_bitcast(b->l.tir, DT_U32, x), word(b, 1));
}

/* The least so far and a magnitude, as dot_lesser counts: 0 is the most. */
static ValId
lesser_of(StreamBuild *b, ValId least, ValId magnitude)
{
	TirKernel *k = b->l.tir;
	return tir_binary(k, OP_MIN, least, tir_binary(k, OP_SUB, magnitude, word(b, 1)));
}

/* The upper halves of two vectors. */
static ValId
pair_of(StreamBuild *b, ValId low, ValId high)
{
	TirKernel *k = b->l.tir;
	low = tir_binary(k, OP_SHR, low, word(b, 16));
	return tir_binary(k, OP_BOR, low, tir_binary(k, OP_BAND, high, word(b, 0xffff0000)));
}

static ValId
load_f32(StreamBuild *b, ValId view, const ValId *at, unsigned along)
{
	return tir_load(b->l.tir, view, at, 0, TIR_LANES_ALONG(along), b->plan->lanes);
}

/* x, or 0 where the scalar condition, if there is one, fails. */
static ValId
where(StreamBuild *b, ValId exists, ValId x)
{
	return exists ? tir_select(b->l.tir, splat(b, exists, b->plan->lanes), x, tir_float(b->l.tir, b->s->type, 0)) : x;
}

static ValId
least_of_none(StreamBuild *b, unsigned lanes)
{
	return splat(b, word(b, UINT32_MAX), lanes);
}

/* --- queries --- */

static ValId
pair_query_terms(StreamBuild *b, unsigned n, ValId q, ValId pair, ValId least)
{
	TirKernel *k = b->l.tir;
	ValId one = stream_int(b, 1), last = tir_binary(k, OP_SUB, point_launch_expr(&b->l, b->terms[n]), one);
	ValId t = tir_binary(k, OP_MUL, q, stream_int(b, stream_group_terms(b)));
	t = tir_binary(k, OP_ADD, t, tir_binary(k, OP_MUL, pair, stream_int(b, 2)));
	for (unsigned v = 0; v < b->vectors; v++) {
		ValId at[3] = {b->strip, 0, stream_int(b, v * b->plan->lanes)}, half[2];
		for (unsigned h = 0; h < 2; h++) {
			ValId i = h ? tir_binary(k, OP_ADD, t, one) : t, exists = tir_binary(k, OP_LE, i, last);
			at[1] = tir_binary(k, OP_MIN, i, last);
			ValId x = where(b, exists, load_f32(b, b->query[n], at, 2));
			least = lesser_of(b, least, magnitude(b, x));
			half[h] = tir_bitcast(k, DT_U32, x);
		}
		const ValId to[4] = {b->strip, q, pair, at[2]};
		tir_store(k, b->query_pairs[n], pair_of(b, half[0], half[1]), to, 0, TIR_LANES_ALONG(3));
	}
	return least;
}

void
stream_pair_queries(StreamBuild *b, unsigned n)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1), least = least_of_none(b, b->plan->lanes);
	ValId groups = pieces_of(b, point_launch_expr(&b->l, b->terms[n]), stream_group_terms(b));
	ValId q = tir_for(k, zero, groups, one, &least, 1);
	ValId pair = tir_for(k, zero, stream_int(b, b->plan->pairs), one, &least, 1);
	least = pair_query_terms(b, n, q, pair, least);
	tir_end_for(k, &least, 1);
	tir_end_for(k, &least, 1);
	tir_store(k, b->query_least[n], dot_across(k, OP_MIN, least), &b->strip, 0, 0);
}

/* --- keys --- */

/* A group of terms of one element, from memory as it is. */
static ValId
pair_key_terms(StreamBuild *b, unsigned n, ValId piece, ValId row, ValId chunk, bool masked, ValId least)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	const StreamScore *s = &b->s->score[n];
	ValId t = tir_binary(k, OP_MUL, chunk, stream_int(b, l->lanes));
	ValId mask = masked ? stream_below(b, t, point_launch_expr(l, b->terms[n])) : 0;
	uint32_t mark = point_mark(l);
	l->axis[s->term] = stream_term_at(b, n, t);
	l->mask = mask;
	ValId v = splat(b, point_value(l, expr_arg(l->g, s->key, 0), !b->s->ragged && !b->s->rest).re, l->lanes);
	l->mask = 0;
	point_release(l, mark);
	v = tir_recast(k, DT_U32, mask ? tir_select(k, mask, v, tir_float(k, DT_BF16, 0)) : v);
	const ValId at[4] = {piece, chunk, row, stream_int(b, 0)};
	tir_store(k, b->key_pairs[n], v, at, 0, TIR_LANES_ALONG(3));
	return tir_binary(k, OP_MIN, least, dot_lesser(k, v));
}

void
stream_pair_keys(StreamBuild *b, unsigned n)
{
	Point *l = &b->l;
	TirKernel *k = l->tir;
	unsigned pairs = b->plan->pairs;
	ValId one = stream_int(b, 1), zero = stream_int(b, 0), rows = stream_int(b, b->plan->tile_rows);
	ValId last = tir_binary(k, OP_SUB, b->count, one), least = least_of_none(b, pairs);
	point_set_lanes(l, stream_group_terms(b), b->s->score[n].term);
	ValId whole = tir_binary(k, OP_IDIV, point_launch_expr(l, b->terms[n]), stream_int(b, l->lanes));
	ValId all = pieces_of(b, point_launch_expr(l, b->terms[n]), l->lanes);
	ValId piece = tir_for(k, zero, pieces_of(b, b->count, b->plan->tile_rows), one, &least, 1);
	ValId row = tir_for(k, zero, rows, one, &least, 1);
	ValId c = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, piece, rows), row);
	l->axis[b->s->stream] = tir_binary(k, OP_ADD, b->first, tir_binary(k, OP_MIN, c, last));
	ValId chunk = tir_for(k, zero, whole, one, &least, 1);
	least = pair_key_terms(b, n, piece, row, chunk, false, least);
	tir_end_for(k, &least, 1);
	chunk = tir_for(k, whole, all, one, &least, 1);
	least = pair_key_terms(b, n, piece, row, chunk, true, least);
	tir_end_for(k, &least, 1);
	tir_end_for(k, &least, 1);
	tir_end_for(k, &least, 1);
	tir_store(k, b->key_least[n], dot_across(k, OP_MIN, least), &zero, 0, 0);
}

/* --- pairs of elements --- */

/* Elements 2 * pair and the next, for a loop over pairs: those of which both exist, and what fills up a group, of
 * which at most the first does. */
typedef struct {
	ValId whole, end; /* of the pairs */
} Pairs;

static Pairs
pairs_of_elements(StreamBuild *b)
{
	TirKernel *k = b->l.tir;
	unsigned group = stream_element_pairs(b);
	ValId groups = pieces_of(b, b->count, 2 * group);
	return (Pairs){tir_binary(k, OP_IDIV, b->count, stream_int(b, 2)), tir_binary(k, OP_MUL, groups, stream_int(b, group))};
}

/* Loads both halves of a pair of elements, (element, lanes at i). */
static void
load_elements(StreamBuild *b, ValId view, ValId pair, ValId i, bool tail, ValId *half)
{
	TirKernel *k = b->l.tir;
	ValId at[2] = {tir_binary(k, OP_MUL, pair, stream_int(b, 2)), i};
	if (tail) {
		ValId last = tir_binary(k, OP_SUB, b->count, stream_int(b, 1)), exists = tir_binary(k, OP_LE, at[0], last);
		at[0] = tir_binary(k, OP_MIN, at[0], last);
		half[0] = where(b, exists, load_f32(b, view, at, 1));
		half[1] = splat(b, tir_float(k, b->s->type, 0), b->plan->lanes);
		return;
	}
	half[0] = load_f32(b, view, at, 1);
	at[0] = tir_binary(k, OP_ADD, at[0], stream_int(b, 1));
	half[1] = load_f32(b, view, at, 1);
}

/* --- values --- */

static void
store_values(StreamBuild *b, unsigned acc, ValId pair, ValId column, ValId x)
{
	TirKernel *k = b->l.tir;
	ValId rows = stream_int(b, b->plan->tile_rows), group = stream_int(b, stream_element_pairs(b));
	if (b->plan->chained) {
		const ValId at[2] = {pair, column};
		tir_store(k, b->value_pairs[acc], x, at, 0, TIR_LANES_ALONG(1));
		return;
	}
	const ValId at[4] = {tir_binary(k, OP_IDIV, column, rows), tir_binary(k, OP_IDIV, pair, group),
	                     tir_binary(k, OP_IMOD, column, rows), tir_binary(k, OP_IMOD, pair, group)};
	tir_store(k, b->value_pairs[acc], x, at, 0, TIR_LANES_ALONG(2));
}

static void
pair_values(StreamBuild *b, unsigned acc, ValId from, ValId to, bool tail, ValId *least)
{
	TirKernel *k = b->l.tir;
	unsigned lanes = b->plan->lanes;
	ValId one = stream_int(b, 1), half[2];
	ValId pair = tir_for(k, from, to, one, least, 1);
	ValId column = tir_for(k, stream_int(b, 0), point_launch_expr(&b->l, b->padded), stream_int(b, lanes), least, 1);
	load_elements(b, b->value[acc], pair, column, tail, half);
	for (unsigned h = 0; h < 2; h++) {
		*least = lesser_of(b, *least, magnitude(b, half[h]));
		half[h] = tir_bitcast(k, DT_U32, half[h]);
	}
	store_values(b, acc, pair, column, pair_of(b, half[0], half[1]));
	tir_end_for(k, least, 1);
	tir_end_for(k, least, 1);
}

void
stream_pair_values(StreamBuild *b, unsigned acc)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), least = least_of_none(b, b->plan->lanes);
	Pairs p = pairs_of_elements(b);
	pair_values(b, acc, zero, p.whole, false, &least);
	pair_values(b, acc, p.whole, p.end, true, &least);
	tir_store(k, b->value_least[acc], dot_across(k, OP_MIN, least), &zero, 0, 0);
}

/* --- weights --- */

enum { LEAST, MOST, NBOUND }; /* of the magnitudes, the least as lesser_of counts */

/* The nearest bf16, the even one of two, as a cast has it, in the upper half; no NaN, nor what is beyond the largest. */
static ValId
rounded(StreamBuild *b, ValId x)
{
	TirKernel *k = b->l.tir;
	ValId odd = tir_binary(k, OP_BAND, tir_binary(k, OP_SHR, x, word(b, 16)), word(b, 1));
	return tir_binary(k, OP_ADD, tir_binary(k, OP_ADD, x, word(b, 0x7fff)), odd);
}

static void
pair_weights(StreamBuild *b, unsigned acc, ValId from, ValId to, bool tail, ValId *bound)
{
	TirKernel *k = b->l.tir;
	ValId pair = tir_for(k, from, to, stream_int(b, 1), bound, NBOUND), half[2];
	for (unsigned v = 0; v < b->vectors; v++) {
		const ValId at[2] = {pair, stream_int(b, v * b->plan->lanes)};
		load_elements(b, b->weight[acc], pair, at[1], tail, half);
		for (unsigned h = 0; h < 2; h++) {
			ValId size = magnitude(b, half[h]);
			bound[LEAST] = lesser_of(b, bound[LEAST], size);
			bound[MOST] = tir_binary(k, OP_MAX, bound[MOST], size);
			half[h] = rounded(b, tir_bitcast(k, DT_U32, half[h]));
		}
		tir_store(k, b->weight_pairs, pair_of(b, half[0], half[1]), at, 0, TIR_LANES_ALONG(1));
	}
	tir_end_for(k, bound, NBOUND);
}

/* Whether DOT takes them with the tile's values. */
static ValId
pair_all_weights(StreamBuild *b, unsigned acc)
{
	enum { LARGEST = 0xfeff0000 }; /* twice the bits of the number from which on the largest bf16 is not the nearest */
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), bound[NBOUND];
	Pairs p = pairs_of_elements(b);
	bound[LEAST] = least_of_none(b, b->plan->lanes);
	bound[MOST] = splat(b, word(b, 0), b->plan->lanes);
	pair_weights(b, acc, zero, p.whole, false, bound);
	pair_weights(b, acc, p.whole, p.end, true, bound);
	ValId least = dot_across(k, OP_MIN, bound[LEAST]), most = dot_across(k, OP_MAX, bound[MOST]);
	ValId exact = dot_is_exact(k, tir_load(k, b->value_least[acc], &zero, 0, 0, 0), least);
	return tir_binary(k, OP_AND, exact, tir_binary(k, OP_LT, most, word(b, LARGEST)));
}

/* --- products --- */

static DotProduct
tile_of(const StreamBuild *b, unsigned pairs)
{
	const KernelPlan *p = b->plan;
	return (DotProduct){.rows = p->tile_rows, .columns = p->tile_columns, .pairs = pairs, .lanes = p->lanes,
	                    .chained = p->chained, .anew = tir_int(b->l.tir, DT_BOOL, 1)};
}

void
stream_dot_scores(StreamBuild *b, unsigned n)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1);
	DotProduct p = tile_of(b, b->plan->pairs);
	p.groups = pieces_of(b, point_launch_expr(&b->l, b->terms[n]), stream_group_terms(b));
	p.least_a = tir_load(k, b->key_least[n], &zero, 0, 0, 0);
	p.least_b = tir_load(k, b->query_least[n], &b->strip, 0, 0, 0);
	ValId piece = tir_for(k, zero, pieces_of(b, b->count, b->plan->tile_rows), one, NULL, 0);
	p.c = (DotMatrix){b->panel_tiles[n], 1, {piece}};
	p.a = (DotMatrix){b->key_pairs[n], 1, {piece}};
	p.b = (DotMatrix){b->query_pairs[n], 1, {b->strip}};
	dot_product(k, &p);
	tir_end_for(k, NULL, 0);
}

/* The product of a tile into the columns of this piece. */
static void
add_to_state(StreamBuild *b, unsigned acc, ValId piece, const ValId *factor)
{
	TirKernel *k = b->l.tir;
	unsigned lanes = b->plan->lanes;
	ValId first = tir_binary(k, OP_MUL, piece, stream_int(b, b->plan->tile_rows));
	ValId r = tir_for(k, stream_int(b, 0), stream_int(b, b->plan->tile_rows), stream_int(b, 1), NULL, 0);
	for (unsigned v = 0; v < b->vectors; v++) {
		const ValId at[3] = {b->strip, tir_binary(k, OP_ADD, first, r), stream_int(b, v * lanes)}, from[2] = {r, at[2]};
		ValId x = load_f32(b, b->state[acc], at, 2);
		x = factor[v] ? tir_binary(k, OP_MUL, x, factor[v]) : x;
		x = tir_binary(k, OP_ADD, x, load_f32(b, b->product, from, 1));
		tir_store(k, b->state[acc], x, at, 0, TIR_LANES_ALONG(2));
	}
	tir_end_for(k, NULL, 0);
}

void
stream_dot_columns(StreamBuild *b, unsigned acc)
{
	TirKernel *k = b->l.tir;
	ValId zero = stream_int(b, 0), one = stream_int(b, 1), factor[STREAM_MAX_VECTORS] = {0};
	unsigned group = stream_element_pairs(b);
	DotProduct p = tile_of(b, group);
	tir_if(k, pair_all_weights(b, acc));
	for (unsigned v = 0; b->factor[acc] && v < b->vectors; v++)
		factor[v] = stream_factor(b, acc, v);
	ValId count = BUG(stream_element_missing) ? tir_binary(k, OP_SUB, b->count, stream_int(b, 2)) : b->count;
	p.groups = pieces_of(b, count, 2 * group);
	ValId piece = tir_for(k, zero, pieces_of(b, point_launch_expr(&b->l, b->columns), b->plan->tile_rows), one, NULL, 0);
	p.c = (DotMatrix){b->product, 0, {0}};
	p.a = (DotMatrix){b->value_dot[acc], 1, {piece}};
	p.b = (DotMatrix){b->weight_dot, 0, {0}};
	dot_emit(k, &p);
	add_to_state(b, acc, piece, factor);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	stream_vector_columns(b, acc);
	tir_end_if(k, NULL, 0);
}
