/* threads.c: the STREAM template for a GPU, by multiply-adds of a block's threads: for any type of float, any sizes
 * and any factors.
 *
 * A task is ST_ROWS rows by ST_COLUMNS columns; its block goes through the elements that some of its rows have, a tile at a
 * time. A thread has slots of rows by elements (slots.h) and, of each wide accumulator, as many rows by some columns.
 * Factors go through shared memory, some terms at a time, and so do weights and values. More columns are tasks of their own,
 * which find the scores anew.
 *
 * Rows and elements that are not there are the last ones again: nothing of them is stored, or folded. */
#include "passes/schedule/stream/threads.h"

#include <string.h>

#include "ir/bugs.h"
#include "passes/schedule/contract/raster.h"

typedef struct {
	const Graph *g;
	TensorId sum;
	bool casts, any;
} More;

static void
note_more(void *user, ExprId e)
{
	More *m = user;
	const Expr *p = expr_get(m->g, e);
	m->any |= (op_info[p->op].flags & F_MATH) || (m->casts && p->op == OP_READ && p->ref != m->sum);
}

/* Whether a score is a transcendental of its sum, or, where factors are cast, made of other elements too: then what all slots are
 * computed with, or where these are, has no registers beside what they hold. */
static bool
scores_take_more(const Graph *g, Arena *scratch, const Stream *s)
{
	More m = {.g = g, .casts = s->factors};
	for (unsigned k = 0; k < s->nscore; k++) {
		m.sum = s->score[k].source;
		if (s->score[k].node.finish)
			expr_walk(g, scratch, s->score[k].node.finish, note_more, &m);
	}
	return m.any;
}

static bool
has_columns(const Stream *s)
{
	bool any = false;
	for (unsigned k = 0; k < s->pass->nacc; k++)
		any |= s->acc[k].wide;
	return any;
}

bool
stream_threads_size(const Graph *g, Arena *scratch, const Stream *s, KernelPlan *p)
{
	p->tmpl = TMPL_STREAM;
	p->lanes = 0;
	p->threads = ST_THREADS;
	p->group = 1;
	/* casts take registers, and so do addresses of states; where there are no columns the assembler spills to have four blocks */
	p->resident = s->factors || stream_is_parts(g, s) || !has_columns(s) ? 2 : 0;
	p->tile_rows = ST_THREAD_ROWS;
	p->tile_columns = ST_THREAD_COLUMNS;
	p->block_rows = ST_ROWS;
	p->block_columns = ST_COLUMNS;
	p->block_terms = dtype_info[s->type].bits > 32 || scores_take_more(g, scratch, s) ? 32 : 64;
	p->block_tasks = 1;
	return true;
}

/* --- tasks --- */

/* Whether rows have results of their own, which they have without a column too. */
static bool
may_lack_columns(const StreamBuild *b)
{
	return b->s->wide >= 0 && slots_stores(b, false) && expr_get(b->l.g, b->columns)->op != OP_CONST;
}

static ExprId
strips(StreamBuild *b)
{
	ExprId n = launch_ceil_div(b->l.g, b->columns, ST_COLUMNS);
	return slots_stores(b, false) ? expr_binary(b->l.g, OP_MAX, n, expr_int(b->l.g, DT_I64, 1)) : n;
}

static void
open_task(StreamThreads *x, ValId task)
{
	StreamBuild *b = &x->s.b;
	ValId strip = slots_open_task(b, task, ST_ROWS, strips(b));
	x->column0 = st_op(x, OP_MUL, strip, st_int(x, ST_COLUMNS));
	x->row_last = st_op(x, OP_SUB, b->row1, st_int(x, 1));
	for (unsigned r = 0; r < b->vectors; r++)
		b->row_of[r] = st_op(x, OP_MIN, st_op(x, OP_ADD, st_op(x, OP_ADD, b->row0, x->down), st_int(x, r)), x->row_last);
	slots_hull(b, b->row0, x->row_last, ST_ROWS, x->lane, &b->begin, &b->end);
}

/* The ranges of the thread's rows. */
static void
find_ends(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	for (unsigned r = 0; b->s->ragged && r < b->vectors; r++) {
		uint32_t mark = point_mark(&b->l);
		stream_at_vector(b, r);
		b->lo[r] = point_value(&b->l, b->s->lo, true).re;
		b->hi[r] = point_value(&b->l, b->s->hi, true).re;
		point_release(&b->l, mark);
	}
}

/* --- the state --- */

enum {
	CARRIED_WIDE = STREAM_MAX_WIDE * ST_THREAD_ROWS * ST_THREAD_COLUMNS,
	CARRIED = MAX_ACCS * STREAM_MAX_VECTORS + CARRIED_WIDE
};

static unsigned
carry_wide(StreamThreads *x, ValId *carried, bool back)
{
	StreamBuild *b = &x->s.b;
	unsigned n = 0;
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		for (unsigned i = 0; b->s->acc[k].wide && i < ST_THREAD_ROWS * ST_THREAD_COLUMNS; i++, n++) {
			if (back)
				x->wide[k][i] = carried[n];
			else
				carried[n] = x->wide[k][i];
		}
	return n;
}

static unsigned
carry(StreamThreads *x, ValId *carried, bool back)
{
	unsigned n = slots_carry(&x->s, carried, back);
	return n + carry_wide(x, carried + n, back);
}

static void
start(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	for (unsigned k = 0; k < b->s->pass->nacc; k++) {
		ValId unit = stream_unit(b, k);
		for (unsigned r = 0; r < b->vectors; r++)
			b->run[k][r] = unit;
		for (unsigned i = 0; i < ST_THREAD_ROWS * ST_THREAD_COLUMNS; i++)
			x->wide[k][i] = unit;
	}
}

/* Wide accumulators to the anchors as they are now, each by what all were before. */
static void
move_wide(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	const Stream *s = b->s;
	ValId column[ST_THREAD_COLUMNS], last = st_op(x, OP_SUB, point_launch_expr(&b->l, b->columns), st_int(x, 1));
	for (unsigned c = 0; s->wide >= 0 && c < ST_THREAD_COLUMNS; c++) {
		ValId at = st_op(x, OP_ADD, st_op(x, OP_MUL, x->right, st_int(x, ST_THREAD_COLUMNS)), st_int(x, c));
		column[c] = st_op(x, OP_MIN, st_op(x, OP_ADD, x->column0, at), last);
	}
	for (unsigned i = 0; s->wide >= 0 && i < ST_THREAD_ROWS * ST_THREAD_COLUMNS; i++) {
		ValId moved[MAX_ACCS];
		b->l.axis[s->wide] = column[i % ST_THREAD_COLUMNS];
		for (unsigned k = 0; k < s->pass->nacc; k++)
			b->column[k] = s->acc[k].wide ? x->wide[k][i] : 0;
		for (unsigned k = 0; k < s->pass->nacc; k++)
			moved[k] = s->acc[k].wide ? slots_moved(&x->s, k, i / ST_THREAD_COLUMNS) : 0;
		for (unsigned k = 0; k < s->pass->nacc; k++)
			x->wide[k][i] = s->acc[k].wide ? moved[k] : x->wide[k][i];
	}
	memset(b->column, 0, sizeof b->column);
}

/* --- tiles --- */

static ValId
sum_of(StreamSlots *s, unsigned score, unsigned row, unsigned element)
{
	return ((StreamThreads *)(void *)s)->sum[score][row * s->nelement + element];
}

static void
enter_tile(StreamThreads *x)
{
	slots_enter(&x->s, st_op(x, OP_ADD, x->s.b.first, st_op(x, OP_MUL, x->right, st_int(x, x->s.nelement))));
}

static void
add_columns(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	move_wide(x);
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		if (b->s->acc[k].wide)
			st_columns(x, k);
}

static void
run_tile(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId before[CARRIED_WIDE], after[CARRIED_WIDE];
	enter_tile(x);
	st_scores(x);
	x->s.exact = BUG(stream_edge_unmasked);
	slots_fold(&x->s, sum_of);
	if (!may_lack_columns(b)) {
		add_columns(x);
		return;
	}
	uint32_t mark = point_mark(&b->l);
	carry_wide(x, before, false);
	tir_if(k, st_op(x, OP_LT, st_int(x, 0), point_launch_expr(&b->l, b->columns)));
	add_columns(x);
	unsigned n = carry_wide(x, after, false);
	point_release(&b->l, mark);
	tir_else(k, after, n);
	tir_end_if(k, before, n);
	carry_wide(x, before, true);
}

static void
run_task(StreamThreads *x, ValId task)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	ValId carried[CARRIED];
	uint32_t mark = point_mark(&b->l);
	open_task(x, task);
	find_ends(x);
	start(x);
	unsigned n = carry(x, carried, false);
	b->first = tir_for(k, b->begin, b->end, st_int(x, x->elements), carried, n);
	uint32_t of_tile = point_mark(&b->l);
	carry(x, carried, true);
	run_tile(x);
	carry(x, carried, false);
	point_release(&b->l, of_tile);
	tir_end_for(k, carried, n);
	carry(x, carried, true);
	slots_join(&x->s);
	stream_find_some(b);
	st_finish(x, x->column0);
	point_release(&b->l, mark);
}

/* --- the kernel --- */

static ValId
bind_shared(StreamThreads *x, DType t, unsigned elements)
{
	TirKernel *k = x->s.b.l.tir;
	unsigned buffer = tir_add_buffer(k, 0, t, true);
	k->buffer.at[buffer].shared = elements;
	return tir_view(k, buffer, 1, (ValId[]){st_int(x, elements)}, (ValId[]){st_int(x, 1)});
}

static void
bind_memory(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	x->panel = bind_shared(x, b->s->type, ST_TERMS * (ST_PITCH + x->elements + 4));
	x->work = bind_shared(x, b->s->type, x->elements * (ST_PITCH + ST_COLUMNS));
	for (unsigned k = 0; k < b->s->pass->nacc; k++)
		if (!b->s->acc[k].wide)
			x->state[k] = bind_shared(x, b->s->pass->acc[k].dtype, ST_ROWS);
	x->some = bind_shared(x, DT_BOOL, ST_ROWS);
}

static void
place_thread(StreamThreads *x)
{
	TirKernel *k = x->s.b.l.tir;
	ValId rest;
	x->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	raster_divide(k, x->thread, st_int(x, TIR_WARP), &x->lane);
	rest = raster_divide(k, x->thread, st_int(x, ST_ACROSS), &x->right);
	x->down = st_op(x, OP_MUL, rest, st_int(x, ST_THREAD_ROWS));
}

void
stream_threads_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	StreamThreads *x = ARENA_NEW(scratch, StreamThreads);
	StreamBuild *b = &x->s.b;
	TirKernel *k = kernel->tir;
	Stream *s = stream_begin(b, g, scratch, places, kernel);
	b->vectors = ST_THREAD_ROWS;
	x->elements = kernel->plan.block_terms;
	x->s.nelement = x->elements / ST_ACROSS;
	x->s.across = ST_ACROSS - 1;
	for (unsigned e = 0; e < x->s.nelement; e++)
		x->s.offset[e] = e;
	slots_begin(&x->s, s);
	stream_bind_sizes(b);
	slots_bind_tasks(b, ST_ROWS, strips(b));
	stream_bind_launch(b);
	kernel->ntask = slots_task_count(b, ST_ROWS, strips(b));
	stream_bind_divisors(b);
	place_thread(x);
	point_say_same_memory(&b->l);
	bind_memory(x);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	run_task(x, tir_for(k, lo, hi, st_int(x, 1), NULL, 0));
	tir_end_for(k, NULL, 0);
}
