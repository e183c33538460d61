/* warps_panel.c: the panels of warps.c: how they come to shared memory, and from there to registers.
 *
 * Lines lie along memory: a row's, an element's or a column's terms or, where memory runs along their own axis, a term's rows,
 * elements or columns. They are cut into chunks of 16 bytes, which change places: of lines of a multiple of eight chunks the last
 * bits of a chunk's number are combined with those of the line's, of others, whose lines begin in the middle of the banks every
 * other time, two of them with those of half the line's. So the 8 chunks that are loaded together, of 8 lines, meet no bank twice,
 * nor do those that are copied together. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/warps.h"

#include "ir/bugs.h"

enum { HALF = 8 }; /* rows of a matrix: a block has two by two */

static unsigned
line_words(const SwPanel *p)
{
	return p->line * SW_CHUNK_WORDS;
}

static unsigned
lines(const SwPanel *p)
{
	return p->of->turned ? p->terms : p->own;
}

void
sw_shape_panel(SwPanel *p)
{
	p->line = (p->of->turned ? p->own : p->terms) / SW_CHUNK;
	p->unit = p->line % HALF ? HALF / 2 : HALF;
}

/* --- places --- */

static ValId
xor_of(StreamWarps *x, ValId a, ValId b)
{
	TirKernel *k = x->s.b.l.tir;
	return tir_cast(k, DT_I64, tir_binary(k, OP_BXOR, tir_cast(k, DT_U32, a), tir_cast(k, DT_U32, b)));
}

/* Where a chunk of a line is found among its chunks. */
static ValId
chunk_place(StreamWarps *x, const SwPanel *p, ValId line, ValId chunk)
{
	TirKernel *k = x->s.b.l.tir;
	ValId rest;
	if (p->unit < HALF)
		line = raster_divide(k, line, sw_int(x, 2), &rest);
	raster_divide(k, line, sw_int(x, p->unit), &rest);
	return xor_of(x, chunk, rest);
}

static ValId
word_of(StreamWarps *x, const SwPanel *p, ValId line, ValId chunk)
{
	ValId at = sw_op(x, OP_ADD, sw_int(x, p->first), sw_op(x, OP_MUL, line, sw_int(x, line_words(p))));
	return sw_op(x, OP_ADD, at, sw_op(x, OP_MUL, chunk, sw_int(x, SW_CHUNK_WORDS)));
}

/* Looked up anew in each tile: nothing that is made of it is kept then, but for what is a number apart. */
static ValId
thread_at(StreamWarps *x, int64_t time)
{
	return tir_emit(x->s.b.l.tir, OP_THREAD, tir_scalar(DT_I64), time, NULL, 0);
}

void
sw_place_copies(StreamWarps *x, SwPanel *p, int64_t time)
{
	p->down = raster_divide(x->s.b.l.tir, thread_at(x, time), sw_int(x, p->unit), &p->right);
	p->to = word_of(x, p, p->down, chunk_place(x, p, p->down, p->right));
}

/* By pair of chunks, of those that change places: the lane's row of its matrices. These are the ones of its first terms, its own
 * first 8 indices before the others, then those of the other terms. */
void
sw_place_loads(StreamWarps *x, SwPanel *p, unsigned blocks, int64_t time)
{
	TirKernel *k = x->s.b.l.tir;
	ValId lane, warp = raster_divide(k, thread_at(x, time), sw_int(x, TIR_WARP), &lane), in_matrix, odd;
	ValId quarter = raster_divide(k, lane, sw_int(x, HALF), &in_matrix), half = raster_divide(k, quarter, sw_int(x, 2), &odd);
	ValId line = p->of->turned ? half : odd, chunk = p->of->turned ? odd : half;
	line = sw_op(x, OP_ADD, in_matrix, sw_op(x, OP_MUL, line, sw_int(x, HALF)));
	if (blocks && p->of->turned)
		chunk = sw_op(x, OP_ADD, chunk, sw_op(x, OP_MUL, warp, sw_int(x, blocks * SW_BLOCK / SW_CHUNK)));
	else if (blocks)
		line = sw_op(x, OP_ADD, line, sw_op(x, OP_MUL, warp, sw_int(x, blocks * SW_BLOCK)));
	chunk = chunk_place(x, p, line, chunk);
	for (unsigned n = 0; n < p->unit / 2; n++)
		p->from[n] = word_of(x, p, line, xor_of(x, chunk, sw_int(x, n * SW_BLOCK / SW_CHUNK)));
}

/* --- copies --- */

static ValId
and_of(StreamWarps *x, ValId a, ValId b)
{
	return a && b ? sw_op(x, OP_AND, a, b) : a ? a : b;
}

static ValId
is_below(StreamWarps *x, ValId at, ValId end)
{
	return end ? sw_op(x, OP_LT, at, end) : 0;
}

void
sw_copy_panel(StreamWarps *x, const SwPanel *p, SwRange own, SwRange terms)
{
	Point *l = &x->s.b.l;
	const StreamElement *e = p->of;
	unsigned step = SW_WARPS * TIR_WARP / p->unit;
	SwRange down = e->turned ? terms : own, right = e->turned ? own : terms;
	ValId index[TG_MAX_RANK], yes = tir_int(l->tir, DT_BOOL, 1);
	uint32_t mark = point_mark(l);
	if (e != &x->of[OF_QUERY])
		stream_at_group(&x->s.b);
	for (unsigned n = 0; n < e->rank; n++)
		index[n] = n == e->own || n == e->term ? 0 : point_value(l, e->sub[n], true).re;
	for (unsigned i = 0; i < lines(p); i += step) {
		ValId line = sw_op(x, OP_ADD, down.first, sw_op(x, OP_ADD, p->down, sw_int(x, i))), there = is_below(x, line, down.end);
		for (unsigned j = 0; j < p->line; j += p->unit) {
			ValId along = sw_op(x, OP_MUL, sw_op(x, OP_ADD, p->right, sw_int(x, j)), sw_int(x, SW_CHUNK));
			ValId to = sw_op(x, OP_ADD, p->to, sw_int(x, i * line_words(p) + j * SW_CHUNK_WORDS));
			along = sw_op(x, OP_ADD, right.first, along);
			ValId own_there = and_of(x, there, is_below(x, along, right.end));
			index[e->own] = e->turned ? along : line;
			index[e->term] = e->turned ? line : along;
			tir_async_copy(l->tir, x->memory, &to, point_tensor(l, e->tensor)->data, index, own_there ? own_there : yes);
		}
	}
	point_release(l, mark);
}

/* --- loads --- */

void
sw_load_block(StreamWarps *x, const SwPanel *p, unsigned n, unsigned part, ValId *out)
{
	TirKernel *k = x->s.b.l.tir;
	unsigned line = p->of->turned ? part : n, chunk = p->of->turned ? n : part, pairs = p->unit / 2;
	unsigned step = line * SW_BLOCK * line_words(p) + chunk / pairs * p->unit * SW_CHUNK_WORDS;
	ValId at = sw_op(x, OP_ADD, p->from[chunk % pairs], sw_int(x, step));
	ValId all = tir_load_matrix(k, p->of->dtype, x->memory, &at, p->of->turned);
	for (unsigned e = 0; e < SW_LANE; e++)
		out[e] = tir_emit(k, OP_LANE, tir_scalar(p->of->dtype), e, &all, 1);
}
