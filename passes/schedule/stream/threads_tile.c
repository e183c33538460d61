/* threads_tile.c: the products of a tile of a stream, by a block's threads (threads.c): scores, of which the
 * factors are brought some terms at a time, and columns, of weights and values.
 *
 * In shared memory a term has all rows, then all elements; a weight's element all rows, a value's all columns. A thread reads
 * its rows in quads, which all that share them read as well, and its elements, or columns, side by side. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/stream/threads.h"

#include "ir/bugs.h"

enum { QUAD_BYTES = 16, UNROLL = 4 };

/* --- factors --- */

/* Whether the last subscript of what e reads is this axis, so that memory runs along it. */
typedef struct {
	const Graph *g;
	unsigned axis;
	bool along;
} Runs;

static void
note_run(void *user, ExprId e)
{
	Runs *r = user;
	const Expr *p = expr_get(r->g, e);
	if (p->op != OP_READ || !p->narg || r->g->tensor.at[p->ref].kind == TENSOR_SCALAR)
		return;
	const Expr *last = expr_get(r->g, expr_arg(r->g, e, p->narg - 1u));
	r->along |= last->op == OP_AXIS && last->ref == r->axis;
}

static bool
runs_along(StreamBuild *b, ExprId e, unsigned axis)
{
	Runs r = {.g = b->l.g, .axis = axis};
	expr_walk(b->l.g, b->l.scratch, e, note_run, &r);
	return r.along;
}

static ValId
factor_value(StreamThreads *x, ExprId e)
{
	StreamBuild *b = &x->s.b;
	uint32_t mark = point_mark(&b->l);
	ValId v = point_value(&b->l, e, !b->s->ragged && !b->s->rest).re;
	point_release(&b->l, mark);
	return v;
}

/* A factor of a score: of rows, or of elements. */
typedef struct {
	ExprId e;
	unsigned own, size, at;  /* its axis; how many a tile has; where they are in a term's row of shared memory */
	ValId first, last;
	double none;             /* for a term that is none: the product of both is -0, which no sum notices */
} Factor;

/* So many terms of it, from `term` on. */
static void
stage_factor(StreamThreads *x, const Factor *f, unsigned score, ValId term, unsigned pitch)
{
	StreamBuild *b = &x->s.b;
	Point *l = &b->l;
	TirKernel *k = l->tir;
	bool along = runs_along(b, f->e, b->s->score[score].term);
	unsigned inner = along ? ST_TERMS : f->size, step = ST_THREADS / inner, n = f->size * ST_TERMS / ST_THREADS;
	ValId value[ST_ROWS * ST_TERMS / ST_THREADS], at[ST_ROWS * ST_TERMS / ST_THREADS], place;
	ValId outer = raster_divide(k, x->thread, st_int(x, inner), &place), terms = point_launch_expr(l, b->terms[score]);
	stream_at_group(b);
	for (unsigned i = 0; i < n; i++) {
		ValId down = st_op(x, OP_ADD, outer, st_int(x, i * step));
		ValId own = along ? down : place, t = along ? place : down, from = st_op(x, OP_ADD, term, t);
		ValId there = st_op(x, OP_LT, from, terms);
		l->axis[b->s->score[score].term] = stream_term_at(b, score, tir_select(k, there, from, st_int(x, 0)));
		l->axis[f->own] = st_op(x, OP_MIN, st_op(x, OP_ADD, f->first, own), f->last);
		value[i] = factor_value(x, f->e);
		if (!BUG(panel_tail_taken))
			value[i] = tir_select(k, there, value[i], tir_float(k, b->s->type, f->none));
		at[i] = st_op(x, OP_ADD, st_op(x, OP_MUL, t, st_int(x, pitch)), st_op(x, OP_ADD, own, st_int(x, f->at)));
	}
	for (unsigned i = 0; i < n; i++)
		tir_store(k, x->panel, value[i], &at[i], 0, 0);
}

/* --- what a thread reads of shared memory --- */

/* n numbers side by side, from `at` on. */
static void
load_run(StreamThreads *x, ValId view, ValId at, unsigned n, ValId *out)
{
	TirKernel *k = x->s.b.l.tir;
	DType t = x->s.b.s->type;
	unsigned most = QUAD_BYTES / (dtype_info[t].bits / 8u);
	for (unsigned i = 0; i < n; i += most) {
		unsigned m = n - i < most ? n - i : most;
		ValId from = st_op(x, OP_ADD, at, st_int(x, i)), all = tir_load(k, view, &from, 0, TIR_LANES_ALONG(0), m);
		for (unsigned j = 0; j < m; j++)
			out[i + j] = tir_emit(k, OP_LANE, tir_scalar(t), j, &all, 1);
	}
}

static void
add_products(StreamThreads *x, const ValId *row, const ValId *other, unsigned n, ValId *acc)
{
	for (unsigned r = 0; r < ST_THREAD_ROWS; r++)
		for (unsigned c = 0; c < n; c++)
			acc[r * n + c] = st_op(x, OP_ADD, acc[r * n + c], st_op(x, OP_MUL, row[r], other[c]));
}

/* --- scores --- */

static void
add_terms(StreamThreads *x, unsigned pitch, ValId *acc)
{
	unsigned n = x->s.nelement;
	ValId right = st_op(x, OP_ADD, st_op(x, OP_MUL, x->right, st_int(x, n)), st_int(x, ST_PITCH));
	for (unsigned t = 0; t < ST_TERMS; t++) {
		ValId row[ST_THREAD_ROWS], key[SLOTS_MAX_ELEMENTS], at = st_int(x, (int64_t)t * pitch);
		load_run(x, x->panel, st_op(x, OP_ADD, at, x->down), ST_THREAD_ROWS, row);
		load_run(x, x->panel, st_op(x, OP_ADD, at, right), n, key);
		add_products(x, row, key, n, acc);
	}
}

void
st_scores(StreamThreads *x)
{
	StreamBuild *b = &x->s.b;
	TirKernel *k = b->l.tir;
	unsigned pitch = ST_PITCH + x->elements + 4, n = ST_THREAD_ROWS * x->s.nelement;
	ValId zero = st_int(x, 0), last = st_op(x, OP_SUB, b->end, st_int(x, 1));
	for (unsigned s = 0; s < b->s->nscore; s++) {
		ValId terms = point_launch_expr(&b->l, b->terms[s]), *acc = x->sum[s];
		ValId start = tir_select(k, st_op(x, OP_LT, zero, terms), tir_float(k, b->s->type, -0.0), tir_float(k, b->s->type, 0));
		for (unsigned i = 0; i < n; i++)
			acc[i] = start;
		const Factor query = {b->s->score[s].query, b->s->lane, ST_ROWS, 0, b->row0, x->row_last, 0};
		const Factor key = {b->s->score[s].key, b->s->stream, x->elements, ST_PITCH, b->first, last, -0.0};
		ValId term = tir_for(k, zero, terms, st_int(x, ST_TERMS), acc, n);
		uint32_t mark = point_mark(&b->l);
		stage_factor(x, &query, s, term, pitch);
		stage_factor(x, &key, s, term, pitch);
		st_barrier(x);
		add_terms(x, pitch, acc);
		st_barrier(x);
		point_release(&b->l, mark);
		tir_end_for(k, acc, n);
	}
}

/* --- columns --- */

/* A row of weights for each element, by all rows. */
static void
stage_weights(StreamThreads *x, unsigned acc)
{
	TirKernel *k = x->s.b.l.tir;
	DType t = x->s.b.s->type;
	unsigned most = QUAD_BYTES / (dtype_info[t].bits / 8u), n = x->s.nelement;
	for (unsigned e = 0; e < n; e++) {
		ValId element = st_op(x, OP_ADD, st_op(x, OP_MUL, x->right, st_int(x, n)), st_int(x, e));
		ValId at = st_op(x, OP_ADD, st_op(x, OP_MUL, element, st_int(x, ST_PITCH)), x->down);
		for (unsigned r = 0; r < ST_THREAD_ROWS; r += most) {
			ValId some[ST_THREAD_ROWS], to = st_op(x, OP_ADD, at, st_int(x, r));
			for (unsigned i = 0; i < most; i++)
				some[i] = x->s.weight[acc][(r + i) * n + e];
			tir_store(k, x->work, tir_emit(k, OP_JOIN, tir_vector(t, most), 0, some, most), &to, 0, TIR_LANES_ALONG(0));
		}
	}
}

/* The tile's values, by element; 0 for those that are none. */
static void
stage_values(StreamThreads *x, unsigned acc)
{
	StreamBuild *b = &x->s.b;
	Point *l = &b->l;
	TirKernel *k = l->tir;
	ExprId e = b->s->acc[acc].value;
	bool along = !runs_along(b, e, b->s->stream);
	unsigned inner = along ? ST_COLUMNS : x->elements, step = ST_THREADS / inner, n = ST_COLUMNS * x->elements / ST_THREADS;
	ValId place, outer = raster_divide(k, x->thread, st_int(x, inner), &place), one = st_int(x, 1);
	ValId last = st_op(x, OP_SUB, b->end, one), last_column = st_op(x, OP_SUB, point_launch_expr(l, b->columns), one);
	ValId turn = tir_for(k, st_int(x, 0), st_int(x, n), st_int(x, UNROLL), NULL, 0), value[UNROLL], at[UNROLL];
	uint32_t mark = point_mark(l);
	stream_at_group(b);
	for (unsigned i = 0; i < UNROLL; i++) {
		ValId down = st_op(x, OP_ADD, outer, st_op(x, OP_MUL, st_op(x, OP_ADD, turn, st_int(x, i)), st_int(x, step)));
		ValId element = along ? down : place, column = along ? place : down, j = st_op(x, OP_ADD, b->first, element);
		l->axis[b->s->stream] = st_op(x, OP_MIN, j, last);
		l->axis[b->s->wide] = st_op(x, OP_MIN, st_op(x, OP_ADD, x->column0, column), last_column);
		value[i] = tir_select(k, st_op(x, OP_LT, j, b->end), factor_value(x, e), tir_float(k, b->s->type, 0));
		at[i] = st_op(x, OP_ADD, st_op(x, OP_MUL, element, st_int(x, ST_COLUMNS)), column);
		at[i] = st_op(x, OP_ADD, at[i], st_int(x, (int64_t)x->elements * ST_PITCH));
	}
	for (unsigned i = 0; i < UNROLL; i++)
		tir_store(k, x->work, value[i], &at[i], 0, 0);
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

void
st_columns(StreamThreads *x, unsigned acc)
{
	TirKernel *k = x->s.b.l.tir;
	ValId *sum = x->wide[acc];
	stage_weights(x, acc);
	stage_values(x, acc);
	st_barrier(x);
	ValId element = tir_for(k, st_int(x, 0), st_int(x, x->elements), st_int(x, UNROLL), sum, ST_THREAD_ROWS * ST_THREAD_COLUMNS);
	for (unsigned i = 0; i < UNROLL; i++) {
		ValId row[ST_THREAD_ROWS], value[ST_THREAD_COLUMNS], e = st_op(x, OP_ADD, element, st_int(x, i));
		ValId of_value = st_op(x, OP_ADD, st_op(x, OP_MUL, e, st_int(x, ST_COLUMNS)), st_int(x, (int64_t)x->elements * ST_PITCH));
		of_value = st_op(x, OP_ADD, of_value, st_op(x, OP_MUL, x->right, st_int(x, ST_THREAD_COLUMNS)));
		load_run(x, x->work, st_op(x, OP_ADD, st_op(x, OP_MUL, e, st_int(x, ST_PITCH)), x->down), ST_THREAD_ROWS, row);
		load_run(x, x->work, of_value, ST_THREAD_COLUMNS, value);
		add_products(x, row, value, ST_THREAD_COLUMNS, sum);
	}
	tir_end_for(k, sum, ST_THREAD_ROWS * ST_THREAD_COLUMNS);
	st_barrier(x);
}
