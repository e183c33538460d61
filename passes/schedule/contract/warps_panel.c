/* warps_panel.c: the panels of warps.c: how they come to shared memory, and from there to registers.
 *
 * A panel has its rows or columns one after the other with the terms of each in a row of 128 bytes or, where memory runs
 * along its own axes, its terms, with the rows or columns of each in a row of 128 to 512 bytes. Rows are cut into chunks
 * of 16 bytes, which change places: the last bits of a chunk's number are combined with those of the row's, so that the 8
 * chunks that are loaded together, of 8 rows, meet no bank twice, nor do the 8 that are copied together, of one.
 *
 * Matrices of f32 can't be turned as they are loaded: there a lane loads its elements one by one. A warp meets those of 8 rows
 * or columns, which are two chunks, of 4 terms, whose pairs of chunks lie apart where the last two bits of a term's number
 * are combined with those behind the chunk's last one.
 *
 * Rows and columns beyond the last one are that one again, or those before it; nothing of them is stored. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/warps.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

enum {
	ROW_CHUNKS = WARPS_TERMS / WARPS_CHUNK, /* of a row of terms */
	HALF = 8, /* rows of a matrix: a block has two by two */
	QUAD = 4  /* lanes of a row of it */
};

/* --- which element --- */

/* Whether elements side by side along the axis are side by side in memory, wherever they are. */
static bool
is_in_a_row(const Graph *g, Arena *scratch, ExprId read, unsigned axis)
{
	unsigned n = expr_get(g, read)->narg;
	for (unsigned k = 0; k < n; k++) {
		ExprId sub = expr_arg(g, read, k);
		if (!expr_is_index(g, scratch, sub) || (k + 1 < n && expr_axes(g, scratch, sub) >> axis & 1))
			return false;
	}
	return true;
}

/* Whether the elements of a chunk, which lie along this axis, are absent together. */
static bool
absent_together(const Graph *g, Arena *scratch, const Absent *a, bool column, unsigned axis)
{
	for (unsigned n = 0; n < a->n; n++)
		if (absent_asks(a, n, column) && expr_axes(g, scratch, a->part[n]) >> axis & 1)
			return false;
	return true;
}

bool
warps_side_find(const Graph *g, Arena *scratch, const Node *n, const Factors *f, const Absent *a, bool column, WarpsSide *s)
{
	ExprId factor = column ? f->column : f->row;
	*s = (WarpsSide){.dtype = contract_matrix_type(g, factor)};
	if (s->dtype == DT_NONE)
		return false;
	s->word = warp_mma_word(s->dtype);
	s->read = contract_matrix_value(g, factor);
	const Expr *read = expr_get(g, s->read);
	if (read->op != OP_READ || !read->narg || read->access || g->tensor.at[read->ref].kind == TENSOR_SCALAR)
		return false;
	const Expr *last = expr_get(g, expr_arg(g, s->read, read->narg - 1u));
	unsigned term = n->npar + n->nred - 1u, own = 31u - (unsigned)__builtin_clz(column ? f->column_axes : f->row_axes);
	if (last->op != OP_AXIS || (last->ref != term && last->ref != own) || !is_in_a_row(g, scratch, s->read, last->ref) ||
	    !absent_together(g, scratch, a, column, last->ref))
		return false;
	const Expr *lo = expr_get(g, n->axis[term].lo);
	s->turned = last->ref == own;
	return s->turned || (lo->op == OP_CONST && lo->imm.i % (WARPS_CHUNK * s->word) == 0);
}

/* --- places --- */

static ValId
xor_of(Warps *x, ValId a, ValId b)
{
	TirKernel *k = x->l.tir;
	return tir_cast(k, DT_I64, tir_binary(k, OP_BXOR, tir_cast(k, DT_U32, a), tir_cast(k, DT_U32, b)));
}

/* Whether its elements are loaded one by one. */
static bool
is_single(const WarpsSide *s)
{
	return s->turned && s->word == 1;
}

/* Where a chunk of a row is found among its chunks. */
static ValId
chunk_place(Warps *x, const WarpsSide *s, ValId row, ValId chunk)
{
	ValId rest;
	raster_divide(x->l.tir, row, warps_int(x, is_single(s) ? QUAD : HALF), &rest);
	return xor_of(x, chunk, is_single(s) ? warps_op(x, OP_MUL, rest, warps_int(x, 2)) : rest);
}

/* Words of a row. */
static unsigned
row_words(const WarpsSide *s)
{
	return s->turned ? s->own / s->word : (unsigned)WARPS_TERMS;
}

/* Where what is at this chunk's place in a row begins in a slot. */
static ValId
word_of(Warps *x, const WarpsSide *s, ValId row, ValId chunk)
{
	ValId at = warps_op(x, OP_ADD, warps_int(x, s->first), warps_op(x, OP_MUL, row, warps_int(x, row_words(s))));
	return warps_op(x, OP_ADD, at, warps_op(x, OP_MUL, chunk, warps_int(x, WARPS_CHUNK)));
}

static void
place_copies(Warps *x, WarpsSide *s)
{
	TirKernel *k = x->l.tir;
	unsigned per = row_words(s) / WARPS_CHUNK;
	ValId chunk, row = raster_divide(k, x->thread, warps_int(x, per), &chunk);
	ValId at = warps_op(x, OP_MUL, chunk, warps_int(x, WARPS_CHUNK * s->word));
	s->step = WARPS_THREADS / per;
	s->chunks = (s->turned ? warps_terms(x) : s->own) / s->step;
	s->to_step = s->step * row_words(s);
	s->own_at = s->turned ? at : row;
	s->term_at = s->turned ? row : at;
	s->to = word_of(x, s, row, chunk_place(x, s, row, chunk));
}

/* By term of a quad, and by row or column among 8: the four pairs of chunks that are a bank's apart. */
static void
place_single_loads(Warps *x, WarpsSide *s, ValId part)
{
	TirKernel *k = x->l.tir;
	ValId quad, in_chunk, own = raster_divide(k, x->lane, warps_int(x, QUAD), &quad);
	ValId chunk = raster_divide(k, own, warps_int(x, WARPS_CHUNK), &in_chunk);
	chunk = warps_op(x, OP_ADD, chunk, warps_op(x, OP_MUL, part, warps_int(x, s->own / WARPS_ACROSS / WARPS_CHUNK)));
	ValId term = warps_op(x, OP_ADD, quad, warps_op(x, OP_MUL, x->slice, warps_int(x, WARPS_SHARE)));
	chunk = chunk_place(x, s, term, chunk);
	for (unsigned n = 0; n < WARPS_FROM; n++)
		s->from[n] = warps_op(x, OP_ADD, word_of(x, s, term, xor_of(x, chunk, warps_int(x, n * HALF / WARPS_CHUNK))), in_chunk);
}

/* By part of the terms or, turned, by block: the lane's row of its matrices. These are the ones of its first terms, its own first
 * 8 rows or columns before the others, then those of the other terms. */
static void
place_loads(Warps *x, WarpsSide *s, ValId part)
{
	TirKernel *k = x->l.tir;
	unsigned share = s->own / WARPS_ACROSS;
	if (is_single(s)) {
		place_single_loads(x, s, part);
		return;
	}
	ValId in_matrix, odd, quarter = raster_divide(k, x->lane, warps_int(x, HALF), &in_matrix);
	ValId half = raster_divide(k, quarter, warps_int(x, 2), &odd);
	ValId own = warps_op(x, OP_ADD, in_matrix, warps_op(x, OP_MUL, odd, warps_int(x, HALF)));
	if (!s->turned) {
		ValId row = warps_op(x, OP_ADD, warps_op(x, OP_MUL, part, warps_int(x, share)), own);
		ValId chunk = warps_op(x, OP_ADD, warps_op(x, OP_MUL, x->slice, warps_int(x, WARPS_SHARE / WARPS_CHUNK)), half);
		chunk = xor_of(x, chunk, in_matrix);
		for (unsigned n = 0; n < WARPS_PARTS; n++)
			s->from[n] = word_of(x, s, row, xor_of(x, chunk, warps_int(x, n * WARPS_DEPTH / WARPS_CHUNK)));
		return;
	}
	ValId term = warps_op(x, OP_ADD, in_matrix, warps_op(x, OP_MUL, half, warps_int(x, HALF)));
	term = warps_op(x, OP_ADD, term, warps_op(x, OP_MUL, x->slice, warps_int(x, WARPS_SHARE * s->word)));
	ValId chunk = warps_op(x, OP_ADD, warps_op(x, OP_MUL, part, warps_int(x, share / s->word / WARPS_CHUNK)), odd);
	chunk = xor_of(x, chunk, in_matrix);
	for (unsigned n = 0; n < warps_blocks(s); n++)
		s->from[n] = word_of(x, s, term, xor_of(x, chunk, warps_int(x, n * WARPS_BLOCK / s->word / WARPS_CHUNK)));
}

void
warps_side_place(Warps *x, WarpsSide *s, ValId part)
{
	place_copies(x, s);
	place_loads(x, s, part);
}

void
warps_side_enter(Warps *x, WarpsSide *s, ValId first)
{
	Point *l = &x->l;
	ValId last = warps_op(x, OP_SUB, s->indices->all, warps_int(x, s->turned ? WARPS_CHUNK * s->word : 1)), own = warps_op(x, OP_ADD, first, s->own_at);
	for (unsigned n = 0; n < (s->turned ? 1 : s->chunks); n++) {
		indices_at(l, s->indices, warps_op(x, OP_MIN, warps_op(x, OP_ADD, own, warps_int(x, n * s->step)), last));
		for (unsigned k = 0; k < s->indices->naxis; k++)
			s->at[n][k] = l->axis[s->indices->axis[k]];
	}
}

/* --- copies --- */

static void
copy_chunk(Warps *x, const WarpsSide *s, unsigned n, ValId slot, ValId there)
{
	Point *l = &x->l;
	const Expr read = *expr_get(l->g, s->read);
	ValId index[TG_MAX_RANK], at[2] = {slot, warps_op(x, OP_ADD, s->to, warps_int(x, n * s->to_step))};
	uint32_t mark = point_mark(l);
	for (unsigned k = 0; k < s->indices->naxis; k++)
		l->axis[s->indices->axis[k]] = s->at[s->turned ? 0 : n][k];
	for (unsigned k = 0; k < read.narg; k++)
		index[k] = point_value(l, expr_arg(l->g, s->read, k), true).re;
	if (s->there)
		there = warps_op(x, OP_AND, there, point_value(l, s->there, true).re);
	point_release(l, mark);
	tir_async_copy(l->tir, x->ring, at, point_tensor(l, read.ref)->data, index, there);
}

void
warps_side_copy(Warps *x, const WarpsSide *s, ValId slot, ValId term)
{
	ValId first = warps_op(x, OP_ADD, term, s->term_at), there = 0;
	for (unsigned n = 0; n < s->chunks; n++) {
		if (!n || s->turned) {
			ValId t = s->turned ? warps_op(x, OP_ADD, first, warps_int(x, n * s->step)) : first;
			there = BUG(panel_end_copied) ? tir_int(x->l.tir, DT_BOOL, 1) : warps_op(x, OP_LT, t, x->terms.all);
			indices_at(&x->l, &x->terms, t);
		}
		copy_chunk(x, s, n, slot, there);
	}
}

/* --- loads --- */

/* Those of a block of matrices one by one: of its first terms, of its own first 8 rows or columns, of the other 8; of the others. */
static void
load_single(Warps *x, const WarpsSide *s, ValId slot, unsigned n, unsigned part, ValId *out)
{
	for (unsigned e = 0; e < WARPS_ELEMENTS; e++) {
		unsigned eight = 2 * n + e % 2, term = part * WARPS_DEPTH + e / 2 * QUAD;
		unsigned step = eight / WARPS_FROM * (WARPS_FROM * HALF) + term * row_words(s);
		ValId at[2] = {slot, warps_op(x, OP_ADD, s->from[eight % WARPS_FROM], warps_int(x, step))};
		out[e] = tir_load(x->l.tir, x->ring, at, 0, 0, 0);
	}
}

void
warps_side_load(Warps *x, const WarpsSide *s, ValId slot, unsigned n, unsigned part, ValId *out)
{
	if (is_single(s)) {
		load_single(x, s, slot, n, part, out);
		return;
	}
	unsigned step = s->turned ? part * WARPS_DEPTH * s->word * row_words(s) : n * WARPS_BLOCK * row_words(s);
	ValId at[2] = {slot, warps_op(x, OP_ADD, s->from[s->turned ? n : part], warps_int(x, step))};
	ValId all = tir_load_matrix(x->l.tir, s->dtype, x->ring, at, s->turned);
	for (unsigned e = 0; e < WARPS_ELEMENTS * s->word; e++)
		out[e] = tir_emit(x->l.tir, OP_LANE, tir_scalar(s->dtype), e, &all, 1);
}
