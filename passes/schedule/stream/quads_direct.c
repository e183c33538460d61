/* quads_direct.c: what lanes store of their rows as they have it in registers (quads.h): what is of rows, and, where that is made
 * of the state alone, what is of rows and columns. A row's four lanes have two columns each of a block of eight. Pairs of
 * 16 bits change places with those of the lane beside, so that a lane has four columns of every other block: a row's lanes
 * store whole sectors then.
 *
 * A row of which a sum is no number, as an absent element's value may make it (exact.c), is made anew as a whole. */
#include <string.h>

#include "passes/schedule/contract/raster.h"
#include "passes/schedule/convert_emit.h"
#include "passes/schedule/stream/quads.h"

#include "ir/bugs.h"

enum { QUAD = 4, PAIR = 2, BLOCK = QUADS_BLOCK, TOGETHER = 2 /* blocks */ };

typedef struct {
	StreamQuads *x;
	ValId in_warp, quad, odd; /* the lane's number; its place in its rows, and whether that is odd */
	const ConvertPlan *pairs; /* how pairs of 16 bits change lanes */
	ValId first;     /* its first row */
	ValId run[MAX_ACCS][STREAM_MAX_VECTORS], some[STREAM_MAX_VECTORS];
} Lane;

typedef struct {
	const Lane *lane;
	StreamQuads *x;
	unsigned nth; /* of the lane's rows */
	ValId there;  /* whether the row is one of the task's */
} Row;

bool
quads_are_direct(const StreamQuads *x)
{
	return !slots_stores(&x->s->b, true) || (x->side == SLOTS_SIDE && slots_leave_pieces(&x->s->b));
}

static Layout
layout_of(Arena *a, const char *text)
{
	Layout l;
	const char *error;
	if (!layout_read(a, text, strlen(text), &l, &error))
		bug(a, "%s: %s", text, error);
	return l;
}

/* Of eight rows' pairs of two blocks: from a lane's pair of each block to two of one block. */
static const ConvertPlan *
pairs_of_lanes(Arena *a)
{
	const ConvertMeans means = {.bits = 32, .shuffle = true};
	const Layout src = layout_of(a, "8x8 reg j4 lane j1 j2 i1 i2 i4"), dst = layout_of(a, "8x8 reg j1 lane j4 j2 i1 i2 i4");
	const char *error;
	const ConvertPlan *p = layout_convert(a, &src, &dst, &means, &error);
	if (!p)
		bug(a, "pairs of two blocks: %s", error);
	return p;
}

/* The thread's number is looked up anew: registers that tiles need would keep what is made of it. */
static Lane
enter_lane(StreamQuads *x)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	Lane own = {.x = x, .pairs = pairs_of_lanes(b->l.scratch)};
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 1, NULL, 0), odd;
	ValId warp = raster_divide(k, thread, quads_int(x, TIR_WARP), &own.in_warp), down = raster_divide(k, own.in_warp, quads_int(x, QUAD), &own.quad);
	raster_divide(k, own.in_warp, quads_int(x, 2), &odd);
	own.odd = quads_op(x, OP_EQ, odd, quads_int(x, 1));
	own.first = quads_op(x, OP_ADD, quads_op(x, OP_ADD, b->row0, quads_op(x, OP_MUL, warp, quads_int(x, quads_rows(x)))), down);
	memcpy(own.run, b->run, sizeof own.run);
	memcpy(own.some, b->some, sizeof own.some);
	return own;
}

/* The row's state becomes that of the point. */
static Row
enter_row(const Lane *lane, unsigned nth)
{
	StreamQuads *x = lane->x;
	StreamBuild *b = &x->s->b;
	ValId row = quads_op(x, OP_ADD, lane->first, quads_int(x, QUADS_STEP * nth));
	b->row_of[nth] = quads_op(x, OP_MIN, row, x->row_last);
	stream_at_vector(b, nth);
	b->some[0] = lane->some[nth];
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		b->run[n][0] = lane->run[n][nth];
	return (Row){.lane = lane, .x = x, .nth = nth, .there = quads_op(x, OP_LE, row, x->row_last)};
}

static void
end_if(StreamQuads *x)
{
	tir_else(x->s->b.l.tir, NULL, 0);
	tir_end_if(x->s->b.l.tir, NULL, 0);
}

/* --- sums --- */

/* Column i of the lane's pair in the block. */
static ValId
sum_at(const Row *r, unsigned block, unsigned i)
{
	return r->x->sum(r->x, r->nth, block * PAIR + i);
}

/* Whether all of the row's sums are numbers. */
static ValId
is_whole(const Row *r)
{
	TirKernel *k = r->x->s->b.l.tir;
	ValId none = 0, one = tir_int(k, DT_U32, 1), zero = tir_int(k, DT_U32, 0);
	for (unsigned n = 0; n < r->x->columns / QUAD; n++) {
		ValId is = tir_unary(k, OP_ISNAN, sum_at(r, n / PAIR, n % PAIR));
		none = none ? tir_binary(k, OP_OR, none, is) : is;
	}
	none = tir_select(k, none, one, zero);
	for (unsigned bit = 1; bit < QUAD; bit *= 2)
		none = tir_binary(k, OP_BOR, none, tir_emit(k, OP_SHUFFLE, tir_scalar(DT_U32), bit, &none, 1));
	return tir_binary(k, OP_EQ, none, zero);
}

/* --- rows and columns --- */

static ValId
is_column(StreamQuads *x, ValId column)
{
	return quads_op(x, OP_LT, column, point_launch_expr(&x->s->b.l, x->s->b.columns));
}

/* The lane's first column in the block. */
static ValId
column_of(const Row *r, unsigned block)
{
	return quads_op(r->x, OP_ADD, quads_op(r->x, OP_MUL, r->lane->quad, quads_int(r->x, PAIR)), quads_int(r->x, block * BLOCK));
}

typedef struct {
	unsigned nth; /* result */
	ValId column, vector;
} Element;

static ValId
words_of(const Row *r, const ValId *v)
{
	TirKernel *k = r->x->s->b.l.tir;
	DType t = (DType)tir_inst(k, *v)->type.dtype;
	return tir_recast(k, DT_U32, tir_emit(k, OP_JOIN, tir_vector(t, 2 * PAIR), 0, v, 2 * PAIR));
}

/* The selection that v is, or that is rounded to it; 0: neither. */
static ValId
selection_of(const TirKernel *k, ValId v)
{
	if (tir_inst(k, v)->op == OP_CAST)
		v = tir_arg(k, v, 0);
	return tir_inst(k, v)->op == OP_SELECT ? v : 0;
}

/* Four values of 16 bits as two words; what all of them choose by the same condition is chosen for words. */
static void
pack(const Row *r, const ValId *v, ValId *word)
{
	TirKernel *k = r->x->s->b.l.tir;
	ValId of[2][2 * PAIR], both[2] = {0}, condition = 0;
	bool chosen = true;
	for (unsigned i = 0; i < 2 * PAIR; i++) {
		ValId select = selection_of(k, v[i]);
		chosen &= select && (!i || tir_arg(k, select, 0) == condition);
		condition = select ? tir_arg(k, select, 0) : 0;
		for (unsigned n = 0; n < 2 && chosen; n++) {
			ValId arm = tir_arg(k, select, 1 + n);
			of[n][i] = select == v[i] ? arm : tir_cast(k, (DType)tir_inst(k, v[i])->type.dtype, arm);
		}
	}
	for (unsigned n = 0; n < (chosen ? 2 : 1); n++)
		both[n] = words_of(r, chosen ? of[n] : v);
	for (unsigned i = 0; i < 2; i++) {
		word[i] = tir_emit(k, OP_LANE, tir_scalar(DT_U32), i, &both[0], 1);
		if (chosen)
			word[i] = tir_select(k, condition, word[i], tir_emit(k, OP_LANE, tir_scalar(DT_U32), i, &both[1], 1));
	}
}

/* Two pairs of 16 bits, of this block and of the next: in even lanes the four columns of this one, of which the lane beside has
 * the last two; in odd ones those of the next. */
static Element
exchange(const Row *r, unsigned block, unsigned nth, const ValId *first, const ValId *second)
{
	StreamQuads *x = r->x;
	TirKernel *k = x->s->b.l.tir;
	DType t = (DType)tir_inst(k, *first)->type.dtype;
	const ValId four[2 * PAIR] = {first[0], first[1], second[0], second[1]};
	ValId own[2], got[2];
	pack(r, four, own);
	own[1] = own[!BUG(stream_pairs_kept)];
	convert_in_registers(k, x->s->b.l.scratch, r->lane->pairs, r->lane->in_warp, own, got);
	ValId right = tir_select(k, r->lane->odd, quads_int(x, BLOCK - PAIR), quads_int(x, 0));
	return (Element){nth, quads_op(x, OP_ADD, column_of(r, block), right), tir_recast(k, t, tir_emit(k, OP_JOIN, tir_vector(DT_U32, 2), 0, got, 2))};
}

/* What the lane stores of two blocks side by side; how many. */
static unsigned
finish_blocks(const Row *r, unsigned block, Element *to)
{
	StreamQuads *x = r->x;
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	ValId done[TOGETHER][STREAM_MAX_OUT * PAIR];
	unsigned count = 0, n = 0;
	for (unsigned i = 0; i < TOGETHER; i++) {
		ValId sum[PAIR];
		for (unsigned c = 0; c < PAIR; c++)
			sum[c] = slots_lowered(x->s, x->acc, sum_at(r, block + i, c));
		b->l.axis[b->s->wide] = column_of(r, block + i);
		count = slots_out_values(b, x->acc, sum, PAIR, done[i]);
	}
	for (unsigned m = 0; m < count; m++) {
		DType t = (DType)tir_inst(k, done[0][m * PAIR])->type.dtype;
		if (dtype_info[t].bits == 16) {
			to[n++] = exchange(r, block, m, done[0] + m * PAIR, done[1] + m * PAIR);
			continue;
		}
		for (unsigned i = 0; i < TOGETHER; i++)
			to[n++] = (Element){m, column_of(r, block + i), tir_emit(k, OP_JOIN, tir_vector(t, PAIR), 0, done[i] + m * PAIR, PAIR)};
	}
	return n;
}

/* What is known to be among the results' columns, or, if it is asked, what is. */
static void
store_elements(StreamQuads *x, const Element *e, unsigned n, bool asked)
{
	StreamBuild *b = &x->s->b;
	for (unsigned i = 0; i < n; i++) {
		if (asked)
			tir_if(b->l.tir, is_column(x, e[i].column));
		b->l.axis[b->s->wide] = e[i].column;
		slots_store_nth(b, e[i].nth, e[i].vector);
		if (asked)
			end_if(x);
	}
}

static void
store_columns(const Row *r, ValId whole)
{
	StreamQuads *x = r->x;
	StreamBuild *b = &x->s->b;
	Element *e = arena_alloc(b->l.scratch, STREAM_MAX_OUT * x->columns / QUAD * sizeof *e);
	unsigned n = 0;
	for (unsigned block = 0; block < x->columns / BLOCK; block += TOGETHER)
		n += finish_blocks(r, block, e + n);
	tir_if(b->l.tir, whole ? quads_op(x, OP_AND, r->there, whole) : r->there);
	tir_if(b->l.tir, quads_op(x, OP_LE, quads_int(x, x->columns), point_launch_expr(&b->l, b->columns)));
	store_elements(x, e, n, false);
	tir_else(b->l.tir, NULL, 0);
	store_elements(x, e, n, true);
	tir_end_if(b->l.tir, NULL, 0);
	end_if(x);
}

/* The lane's columns of a row that is not whole. */
static void
store_anew(const Row *r)
{
	StreamQuads *x = r->x;
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	ValId right, i = tir_for(k, quads_int(x, 0), quads_int(x, x->columns / QUAD), quads_int(x, 1), NULL, 0);
	ValId block = raster_divide(k, i, quads_int(x, PAIR), &right), column = quads_op(x, OP_ADD, column_of(r, 0), right);
	b->l.axis[b->s->wide] = quads_op(x, OP_ADD, column, quads_op(x, OP_MUL, block, quads_int(x, BLOCK)));
	tir_if(k, is_column(x, b->l.axis[b->s->wide]));
	b->column[x->acc] = slots_wide_anew(b, x->acc);
	slots_store_outs(b, true, b->l.axis[b->s->wide]);
	b->column[x->acc] = 0;
	end_if(x);
	tir_end_for(k, NULL, 0);
}

/* --- */

void
quads_finish_direct(StreamQuads *x)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	bool wide = slots_stores(b, true) && quads_are_direct(x);
	ValId whole[STREAM_MAX_VECTORS] = {0};
	Lane lane = enter_lane(x);
	for (unsigned nth = 0; nth < b->vectors; nth++) {
		uint32_t mark = point_mark(&b->l);
		Row r = enter_row(&lane, nth);
		if (slots_stores(b, false)) {
			tir_if(k, quads_op(x, OP_AND, r.there, quads_op(x, OP_EQ, lane.quad, quads_int(x, 0))));
			slots_store_outs(b, false, 0);
			end_if(x);
		}
		if (wide) {
			whole[nth] = slots_may_be_none(b) ? is_whole(&r) : 0;
			store_columns(&r, whole[nth]);
		}
		point_release(&b->l, mark);
	}
	for (unsigned nth = 0; nth < b->vectors; nth++) {
		if (!whole[nth])
			continue;
		uint32_t mark = point_mark(&b->l);
		Row r = enter_row(&lane, nth);
		tir_if(k, quads_op(x, OP_AND, r.there, tir_unary(k, OP_NOT, whole[nth])));
		store_anew(&r);
		end_if(x);
		point_release(&b->l, mark);
	}
}
