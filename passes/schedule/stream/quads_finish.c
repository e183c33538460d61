/* quads_finish.c: what a block makes of the state of its rows (quads.h), where lanes don't store it as they have it
 * (quads_direct.c). The state of rows goes through shared memory; columns do a panel of QUADS_PANEL at a time, from where the
 * hardware has them to where a lane has some side by side, which it stores at once where the results' memory has them so. A
 * warp's rows stay with the warp; a lane's go side by side, so that what one waits for is another's time. */
#include <string.h>

#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/quads.h"

#include "ir/bugs.h"

static ValId
bind(StreamQuads *x, DType t, unsigned rows, unsigned columns)
{
	TirKernel *k = x->s->b.l.tir;
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = rows * columns;
	return tir_view(k, buffer, 2, (ValId[]){quads_int(x, rows), quads_int(x, columns)}, (ValId[]){quads_int(x, columns), quads_int(x, 1)});
}

void
quads_bind_shared(StreamQuads *x)
{
	StreamBuild *b = &x->s->b;
	if (quads_are_direct(x))
		return;
	x->staged = x->staged ? x->staged : bind(x, DT_F32, x->rows, QUADS_PITCH);
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		if (!b->s->acc[n].wide)
			x->state[n] = bind(x, b->s->pass->acc[n].dtype, x->rows, 1);
	x->some = bind(x, DT_BOOL, x->rows, 1);
}

static void
barrier(StreamQuads *x)
{
	tir_emit(x->s->b.l.tir, OP_BARRIER, (TirType){0}, x->barrier, NULL, 0);
}

/* --- to shared memory --- */

/* A row of the warp's, in the block. */
static ValId
warp_row(StreamQuads *x, ValId row)
{
	return quads_op(x, OP_ADD, x->warp_row, row);
}

static void
stage_state(StreamQuads *x)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	ValId quad, row = raster_divide(k, x->lane, quads_int(x, 4), &quad);
	row = warp_row(x, row);
	tir_if(k, quads_op(x, OP_EQ, quad, quads_int(x, 0)));
	for (unsigned v = 0; v < b->vectors; v++) {
		const ValId at[2] = {quads_op(x, OP_ADD, row, quads_int(x, QUADS_STEP * v)), quads_int(x, 0)};
		for (unsigned n = 0; n < b->s->pass->nacc; n++)
			if (!b->s->acc[n].wide)
				tir_store(k, x->state[n], b->run[n][v], at, 0, 0);
		if (b->some[v])
			tir_store(k, x->some, b->some[v], at, 0, 0);
	}
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

static void
stage_panel(StreamQuads *x, unsigned panel)
{
	const StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	ValId quad, row = raster_divide(k, x->lane, quads_int(x, 4), &quad);
	row = warp_row(x, row);
	ValId column = quads_op(x, OP_MUL, quad, quads_int(x, 2));
	for (unsigned n = 0; n < QUADS_PANEL / QUADS_BLOCK * b->vectors; n++) {
		unsigned block = n / b->vectors, nth = n % b->vectors, first = (panel * QUADS_PANEL / QUADS_BLOCK + block) * 2;
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = slots_lowered(x->s, x->acc, x->sum(x, nth, first + i));
		ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
		const ValId at[2] = {quads_op(x, OP_ADD, row, quads_int(x, QUADS_STEP * nth)), quads_op(x, OP_ADD, column, quads_int(x, QUADS_BLOCK * block))};
		tir_store(k, x->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
}

/* One of n panels from `first` on: which one is known as the code runs; which registers it has is not. */
static void
stage_one_of(StreamQuads *x, ValId panel, unsigned first, unsigned n)
{
	TirKernel *k = x->s->b.l.tir;
	if (n == 1) {
		stage_panel(x, first);
		return;
	}
	tir_if(k, quads_op(x, OP_LT, panel, quads_int(x, first + n / 2)));
	stage_one_of(x, panel, first, n / 2);
	tir_else(k, NULL, 0);
	stage_one_of(x, panel, first + n / 2, n - n / 2);
	tir_end_if(k, NULL, 0);
}

/* --- from there --- */

/* The state of a row of the block's becomes that of the point. */
static void
enter_row(StreamQuads *x, ValId row, bool asked)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	const ValId at[2] = {row, quads_int(x, 0)};
	b->row_of[0] = quads_op(x, OP_ADD, b->row0, row);
	stream_at_vector(b, 0);
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		if (!b->s->acc[n].wide)
			b->run[n][0] = tir_load(k, x->state[n], at, 0, 0, 0);
	b->some[0] = asked ? tir_load(k, x->some, at, 0, 0, 0) : 0;
}

enum { MOST_ROWS = 8 }; /* of a lane at a time */

typedef struct {
	ValId first, last; /* the lane's first row, and the warp's last one, in the block */
	ValId right;       /* the lane's first column in the panel */
	unsigned side, down; /* columns side by side; from one row of the lane's to its next */
	bool asked;
} Own;

static Own
own_place(StreamQuads *x, bool asked)
{
	Own own = {.side = x->side, .down = TIR_WARP / (QUADS_PANEL / x->side), .asked = asked};
	ValId below = raster_divide(x->s->b.l.tir, x->lane, quads_int(x, QUADS_PANEL / x->side), &own.right);
	own.right = quads_op(x, OP_MUL, own.right, quads_int(x, x->side));
	own.first = warp_row(x, below);
	own.last = warp_row(x, quads_int(x, quads_rows(x) - 1));
	return own;
}

/* The sums of a row of the lane's, side by side. */
static void
load_sums(StreamQuads *x, const Own *own, ValId row, ValId *sum)
{
	TirKernel *k = x->s->b.l.tir;
	const ValId at[2] = {row, own->right};
	ValId all = tir_load(k, x->staged, at, 0, own->side > 1 ? TIR_LANES_ALONG(1) : 0, own->side > 1 ? own->side : 0);
	for (unsigned c = 0; c < own->side; c++)
		sum[c] = own->side > 1 ? tir_emit(k, OP_LANE, tir_scalar(DT_F32), c, &all, 1) : all;
}

static ValId
is_there(StreamQuads *x, ValId row)
{
	return quads_op(x, OP_LE, quads_op(x, OP_ADD, x->s->b.row0, row), x->row_last);
}

/* Whether one of the lane's sums in the panel is no number. */
static ValId
some_is_none(StreamQuads *x, const Own *own)
{
	TirKernel *k = x->s->b.l.tir;
	ValId none = 0;
	for (unsigned i = 0; i < quads_rows(x); i += own->down) {
		ValId sum[SLOTS_SIDE];
		load_sums(x, own, quads_op(x, OP_ADD, own->first, quads_int(x, i)), sum);
		for (unsigned c = 0; c < own->side; c++) {
			ValId is = tir_unary(k, OP_ISNAN, sum[c]);
			none = none ? quads_op(x, OP_OR, none, is) : is;
		}
	}
	return none;
}

/* Makes those anew, where they are staged. */
static void
mend_sums(StreamQuads *x, const Own *own)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	ValId column = b->l.axis[b->s->wide];
	tir_if(k, some_is_none(x, own));
	ValId i = tir_for(k, quads_int(x, 0), quads_int(x, quads_rows(x)), quads_int(x, own->down), NULL, 0), row = quads_op(x, OP_ADD, own->first, i);
	tir_if(k, is_there(x, row));
	ValId c = tir_for(k, quads_int(x, 0), quads_int(x, own->side), quads_int(x, 1), NULL, 0);
	const ValId at[2] = {row, quads_op(x, OP_ADD, own->right, c)};
	uint32_t mark = point_mark(&b->l);
	enter_row(x, row, own->asked);
	b->l.axis[b->s->wide] = quads_op(x, OP_ADD, column, c);
	tir_store(k, x->staged, slots_wide(b, x->acc, tir_load(k, x->staged, at, 0, 0, 0)), at, 0, 0);
	point_release(&b->l, mark);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	b->l.axis[b->s->wide] = column;
}

/* So many of the lane's rows from this one on. */
static void
finish_rows(StreamQuads *x, const Own *own, ValId row, unsigned n)
{
	StreamBuild *b = &x->s->b;
	ValId at[MOST_ROWS], done[MOST_ROWS][STREAM_MAX_OUT * SLOTS_SIDE];
	unsigned count = 0;
	for (unsigned i = 0; i < n; i++) {
		ValId sum[SLOTS_SIDE], down = quads_op(x, OP_ADD, row, quads_int(x, i * own->down));
		uint32_t mark = point_mark(&b->l);
		enter_row(x, down, own->asked);
		load_sums(x, own, down, sum);
		count = slots_out_values(b, x->acc, sum, own->side, done[i]);
		at[i] = b->row_of[0];
		point_release(&b->l, mark);
	}
	for (unsigned i = 0; i < n; i++) {
		uint32_t mark = point_mark(&b->l);
		b->row_of[0] = at[i];
		stream_at_vector(b, 0);
		slots_store_side(b, done[i], count, own->side);
		point_release(&b->l, mark);
	}
}

static void
finish_panel(StreamQuads *x, const Own *own, ValId panel)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	unsigned all = quads_rows(x) / own->down, n = all < MOST_ROWS ? all : MOST_ROWS;
	ValId column = quads_op(x, OP_ADD, quads_op(x, OP_MUL, panel, quads_int(x, QUADS_PANEL)), own->right);
	b->l.axis[b->s->wide] = column;
	tir_if(k, quads_op(x, OP_LT, column, point_launch_expr(&b->l, b->columns)));
	if (slots_may_be_none(b))
		mend_sums(x, own);
	tir_if(k, is_there(x, own->last));
	for (unsigned i = 0; i < all; i += n)
		finish_rows(x, own, quads_op(x, OP_ADD, own->first, quads_int(x, i * own->down)), n);
	tir_else(k, NULL, 0);
	ValId i = tir_for(k, quads_int(x, 0), quads_int(x, quads_rows(x)), quads_int(x, own->down), NULL, 0), row = quads_op(x, OP_ADD, own->first, i);
	tir_if(k, is_there(x, row));
	finish_rows(x, own, row, 1);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

void
quads_finish(StreamQuads *x)
{
	StreamBuild *b = &x->s->b;
	TirKernel *k = b->l.tir;
	bool asked = b->some[0] != 0;
	unsigned panels = x->columns / QUADS_PANEL;
	if (!quads_are_direct(x))
		stage_state(x);
	quads_finish_direct(x);
	if (quads_are_direct(x))
		return;
	barrier(x);
	Own own = own_place(x, asked);
	ValId panel = tir_for(k, quads_int(x, 0), quads_int(x, panels), quads_int(x, 1), NULL, 0);
	stage_one_of(x, panel, 0, panels);
	barrier(x);
	finish_panel(x, &own, panel);
	barrier(x);
	tir_end_for(k, NULL, 0);
}
