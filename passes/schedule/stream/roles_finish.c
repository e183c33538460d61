/* roles_finish.c: what a group makes of the state of its rows (roles.c). The state of rows goes through shared
 * memory; columns do a panel of SR_PANEL at a time, from where the hardware has them to where a lane has one each. A warp's
 * rows stay with the warp. */
#include <string.h>

#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/roles.h"

#include "ir/bugs.h"

enum { WARP_ROWS = 16 };

static ValId
bind(StreamRoles *x, DType t, unsigned rows, unsigned columns)
{
	TirKernel *k = x->s.b.l.tir;
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = rows * columns;
	return tir_view(k, buffer, 2, (ValId[]){sr_int(x, rows), sr_int(x, columns)}, (ValId[]){sr_int(x, columns), sr_int(x, 1)});
}

void
sr_bind_shared(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	if (x->columns)
		x->staged = bind(x, DT_F32, SR_ROWS, SR_PITCH);
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		if (!b->s->acc[n].wide)
			x->state[n] = bind(x, b->s->pass->acc[n].dtype, SR_ROWS, 1);
	x->some = bind(x, DT_BOOL, SR_ROWS, 1);
}

static void
group_barrier(StreamRoles *x)
{
	tir_emit(x->s.b.l.tir, OP_BARRIER, (TirType){0}, TIR_GROUP_BARRIER, NULL, 0);
}

/* --- to shared memory --- */

static ValId
group_row(StreamRoles *x, ValId row)
{
	return sr_op(x, OP_ADD, sr_op(x, OP_MUL, x->group, sr_int(x, TIR_MMA_ROWS)), row);
}

static void
stage_state(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId quad, row = raster_divide(k, x->lane, sr_int(x, 4), &quad);
	row = group_row(x, sr_op(x, OP_ADD, row, sr_op(x, OP_MUL, x->warp, sr_int(x, WARP_ROWS))));
	tir_if(k, sr_op(x, OP_EQ, quad, sr_int(x, 0)));
	for (unsigned v = 0; v < b->vectors; v++) {
		const ValId at[2] = {sr_op(x, OP_ADD, row, sr_int(x, 8 * v)), sr_int(x, 0)};
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
stage_panel(StreamRoles *x, unsigned panel)
{
	TirKernel *k = x->s.b.l.tir;
	ValId quad, row = raster_divide(k, x->lane, sr_int(x, 4), &quad);
	row = group_row(x, sr_op(x, OP_ADD, row, sr_op(x, OP_MUL, x->warp, sr_int(x, WARP_ROWS))));
	ValId column = sr_op(x, OP_MUL, quad, sr_int(x, 2));
	for (unsigned n = 0; n < SR_PANEL / 2; n += 2) {
		unsigned piece = panel * SR_PANEL / 2 + n;
		ValId pair[2];
		for (unsigned i = 0; i < 2; i++)
			pair[i] = tir_emit(k, OP_PIECE, tir_scalar(DT_F32), TIR_PIECE(piece + i, 1), NULL, 0);
		ValId both = tir_emit(k, OP_JOIN, tir_vector(DT_F32, 2), 0, pair, 2);
		unsigned down = tir_piece_row(piece, 0, x->columns), right = tir_piece_column(piece, 0, x->columns) % SR_PANEL;
		const ValId at[2] = {sr_op(x, OP_ADD, row, sr_int(x, down)), sr_op(x, OP_ADD, column, sr_int(x, right))};
		tir_store(k, x->staged, both, at, 0, TIR_LANES_ALONG(1));
	}
}

/* One of n panels from `first` on: which one is known as the code runs; which registers it has is not. */
static void
stage_one_of(StreamRoles *x, ValId panel, unsigned first, unsigned n)
{
	TirKernel *k = x->s.b.l.tir;
	if (n == 1) {
		stage_panel(x, first);
		return;
	}
	tir_if(k, sr_op(x, OP_LT, panel, sr_int(x, first + n / 2)));
	stage_one_of(x, panel, first, n / 2);
	tir_else(k, NULL, 0);
	stage_one_of(x, panel, first + n / 2, n - n / 2);
	tir_end_if(k, NULL, 0);
}

/* --- from there --- */

/* The state of a row of the block's becomes that of the point. */
static void
enter_row(StreamRoles *x, ValId row, bool asked)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	const ValId at[2] = {row, sr_int(x, 0)};
	b->row_of[0] = sr_op(x, OP_ADD, b->row0, row);
	stream_at_vector(b, 0);
	for (unsigned n = 0; n < b->s->pass->nacc; n++)
		if (!b->s->acc[n].wide)
			b->run[n][0] = tir_load(k, x->state[n], at, 0, 0, 0);
	b->some[0] = asked ? tir_load(k, x->some, at, 0, 0, 0) : 0;
}

static void
finish_narrow(StreamRoles *x, bool asked)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId row = group_row(x, x->in_group), there = sr_op(x, OP_LE, sr_op(x, OP_ADD, b->row0, row), x->row_last);
	tir_if(k, sr_op(x, OP_AND, there, sr_op(x, OP_LT, x->in_group, sr_int(x, TIR_MMA_ROWS))));
	uint32_t mark = point_mark(&b->l);
	enter_row(x, row, asked);
	slots_store_outs(b, false, 0);
	point_release(&b->l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

/* A column of the warp's rows, which a lane has. */
static void
finish_panel(StreamRoles *x, ValId panel, bool asked)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId i = tir_for(k, sr_int(x, 0), sr_int(x, WARP_ROWS), sr_int(x, 1), NULL, 0);
	ValId row = group_row(x, sr_op(x, OP_ADD, i, sr_op(x, OP_MUL, x->warp, sr_int(x, WARP_ROWS))));
	ValId column = sr_op(x, OP_ADD, sr_op(x, OP_MUL, panel, sr_int(x, SR_PANEL)), x->lane);
	ValId there = sr_op(x, OP_LE, sr_op(x, OP_ADD, b->row0, row), x->row_last);
	tir_if(k, sr_op(x, OP_AND, there, sr_op(x, OP_LT, column, point_launch_expr(&b->l, b->columns))));
	uint32_t mark = point_mark(&b->l);
	enter_row(x, row, asked);
	b->l.axis[b->s->wide] = column;
	const ValId at[2] = {row, x->lane};
	b->column[x->acc] = slots_wide(b, x->acc, tir_load(k, x->staged, at, 0, 0, 0));
	slots_store_outs(b, true, column);
	b->column[x->acc] = 0;
	point_release(&b->l, mark);
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
	tir_end_for(k, NULL, 0);
}

void
sr_finish(StreamRoles *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	bool asked = b->some[0] != 0;
	unsigned panels = x->columns / SR_PANEL;
	stage_state(x);
	group_barrier(x);
	if (slots_stores(b, false))
		finish_narrow(x, asked);
	if (slots_stores(b, true)) {
		ValId panel = tir_for(k, sr_int(x, 0), sr_int(x, panels), sr_int(x, 1), NULL, 0);
		stage_one_of(x, panel, 0, panels);
		group_barrier(x);
		finish_panel(x, panel, asked);
		group_barrier(x);
		tir_end_for(k, NULL, 0);
	} else
		group_barrier(x);
}
