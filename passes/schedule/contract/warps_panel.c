/* warps_panel.c: the panels of warps.c: how they come to shared memory, and from there to registers.
 *
 * A panel has its rows or columns one after the other with the terms of each in a row of 128 bytes or, where memory runs
 * along its own axes, its terms, with the rows or columns of each in a row of 128 or 256 bytes. Rows are cut into chunks
 * of 16 bytes, which change places: the last bits of a chunk's number are combined with those of the row's, so that the 8
 * chunks that are loaded together, of 8 rows, meet no bank twice, nor do the 8 that are copied together, of one.
 *
 * Rows and columns beyond the last one are that one again, or those before it; nothing of them is stored. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/warps.h"

#include "ir/bugs.h"
#include "passes/expr_map.h"

enum {
	CHUNK_WORDS = WARPS_CHUNK / WARPS_WORD,
	ROW_CHUNKS = WARPS_TERMS / WARPS_CHUNK, /* of a row of terms */
	ROW_WORDS = WARPS_TERMS / WARPS_WORD,
	HALF = 8 /* rows of a matrix: a block has two by two */
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

bool
warps_side_find(const Graph *g, Arena *scratch, const Node *n, ExprId factor, uint32_t own_axes, WarpsSide *s)
{
	*s = (WarpsSide){.dtype = contract_narrow_type(g, factor)};
	if (s->dtype == DT_NONE)
		return false;
	s->read = expr_arg(g, factor, 0);
	const Expr *read = expr_get(g, s->read);
	if (read->op != OP_READ || !read->narg || read->access || g->tensor.at[read->ref].kind == TENSOR_SCALAR)
		return false;
	const Expr *last = expr_get(g, expr_arg(g, s->read, read->narg - 1u));
	unsigned term = n->npar + n->nred - 1u, own = 31u - (unsigned)__builtin_clz(own_axes);
	if (last->op != OP_AXIS || (last->ref != term && last->ref != own) || !is_in_a_row(g, scratch, s->read, last->ref))
		return false;
	const Expr *lo = expr_get(g, n->axis[term].lo);
	s->turned = last->ref == own;
	return s->turned || (lo->op == OP_CONST && lo->imm.i % WARPS_CHUNK == 0);
}

/* --- places --- */

static ValId
xor_of(Warps *x, ValId a, ValId b)
{
	TirKernel *k = x->l.tir;
	return tir_cast(k, DT_I64, tir_binary(k, OP_BXOR, tir_cast(k, DT_U32, a), tir_cast(k, DT_U32, b)));
}

/* The row's number among 8. */
static ValId
last_bits(Warps *x, ValId row)
{
	ValId rest;
	raster_divide(x->l.tir, row, warps_int(x, HALF), &rest);
	return rest;
}

/* Word of a row of so many, from `first` on: where chunk `chunk` begins. */
static ValId
word_of(Warps *x, const WarpsSide *s, ValId row, unsigned words, ValId chunk)
{
	ValId at = warps_op(x, OP_ADD, warps_int(x, s->first), warps_op(x, OP_MUL, row, warps_int(x, words)));
	return warps_op(x, OP_ADD, at, warps_op(x, OP_MUL, chunk, warps_int(x, CHUNK_WORDS)));
}

static void
place_copies(Warps *x, WarpsSide *s)
{
	TirKernel *k = x->l.tir;
	unsigned per = s->turned ? s->own / WARPS_CHUNK : ROW_CHUNKS, words = s->turned ? s->own / WARPS_WORD : ROW_WORDS;
	ValId chunk, row = raster_divide(k, x->thread, warps_int(x, per), &chunk), at = warps_op(x, OP_MUL, chunk, warps_int(x, WARPS_CHUNK));
	s->step = WARPS_THREADS / per;
	s->chunks = (s->turned ? (unsigned)WARPS_TERMS : s->own) / s->step;
	s->to_step = s->step * words;
	s->own_at = s->turned ? at : row;
	s->term_at = s->turned ? row : at;
	s->to = word_of(x, s, row, words, xor_of(x, chunk, last_bits(x, row)));
}

/* The matrices of a block are those of its first 8 terms, its own first 8 rows or columns before the others, then those of the
 * other terms. */
static void
place_loads(Warps *x, WarpsSide *s, ValId part)
{
	TirKernel *k = x->l.tir;
	unsigned share = s->own / WARPS_ACROSS;
	ValId in_matrix, odd, quarter = raster_divide(k, x->lane, warps_int(x, HALF), &in_matrix);
	ValId half = raster_divide(k, quarter, warps_int(x, 2), &odd);
	ValId own = warps_op(x, OP_ADD, in_matrix, warps_op(x, OP_MUL, odd, warps_int(x, HALF)));
	if (!s->turned) {
		ValId row = warps_op(x, OP_ADD, warps_op(x, OP_MUL, part, warps_int(x, share)), own);
		ValId chunk = warps_op(x, OP_ADD, warps_op(x, OP_MUL, x->slice, warps_int(x, WARPS_SHARE / WARPS_CHUNK)), half);
		chunk = xor_of(x, chunk, in_matrix);
		for (unsigned n = 0; n < WARPS_PARTS; n++)
			s->from[n] = word_of(x, s, row, ROW_WORDS, xor_of(x, chunk, warps_int(x, n * WARPS_BLOCK / WARPS_CHUNK)));
		return;
	}
	ValId term = warps_op(x, OP_ADD, in_matrix, warps_op(x, OP_MUL, half, warps_int(x, HALF)));
	term = warps_op(x, OP_ADD, term, warps_op(x, OP_MUL, x->slice, warps_int(x, WARPS_SHARE)));
	ValId chunk = warps_op(x, OP_ADD, warps_op(x, OP_MUL, part, warps_int(x, share / WARPS_CHUNK)), odd);
	chunk = xor_of(x, chunk, in_matrix);
	for (unsigned n = 0; n < warps_blocks(s); n++)
		s->from[n] = word_of(x, s, term, s->own / WARPS_WORD, xor_of(x, chunk, warps_int(x, n * WARPS_BLOCK / WARPS_CHUNK)));
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
	ValId last = warps_op(x, OP_SUB, s->indices->all, warps_int(x, s->turned ? WARPS_CHUNK : 1)), own = warps_op(x, OP_ADD, first, s->own_at);
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

ValId
warps_side_load(Warps *x, const WarpsSide *s, ValId slot, unsigned n, unsigned part)
{
	unsigned step = s->turned ? part * WARPS_BLOCK * (s->own / WARPS_WORD) : n * WARPS_BLOCK * ROW_WORDS;
	ValId at[2] = {slot, warps_op(x, OP_ADD, s->from[s->turned ? n : part], warps_int(x, step))};
	return tir_load_matrix(x->l.tir, s->dtype, x->ring, at, s->turned);
}
