/* once.c: a row's folds while it goes by, where some of them wait for others' results (once_plan.c).
 *
 * Each thread of a block has a state of its own, of the lanes that it took. A vector of the row goes into it by ascending
 * stages: what is folded at anchors is moved to where they are now, once for all of a thread's lanes, then takes the terms
 * of these. When the row has gone by the threads' states are moved to the anchors of all and joined.
 *
 * So nothing is kept of a row, nothing is read twice, and threads wait for one another at the row's end alone. A state of
 * nothing has units, which no term changes; what moves it may not be for it, so a move asks whether there was a term where
 * the state says so. */
#include "passes/schedule/rows/once.h"

#include "ir/bugs.h"
#include "passes/schedule/point/long_sums.h"
#include "passes/schedule/rows/build.h"

typedef struct {
	RowBuild *b;
	Point *l;
	TirKernel *k;
	const RowsOnce *o;
	const CascadePass *p;
	unsigned threads;
	ValId run[MAX_ACCS], old[MAX_ACCS];
	ValId anchor_old[MAX_ANCHORS], anchor_new[MAX_ANCHORS];
} Once;

static ExprId
ivar(const Once *x, uint32_t base, unsigned k, DType t)
{
	return expr_make(x->l->g, OP_IVAR, t, base + k, 0, NULL, 0);
}

void
rows_declare_once(RowBuild *b)
{
	const RowsOnce *o = b->once;
	if (!o)
		return;
	for (unsigned k = 0; k < o->pass->nacc; k++) {
		point_declare(b->l, o->term[k]);
		point_declare(b->l, o->rebase[k]);
	}
	for (unsigned k = 0; k < o->pass->nanchor; k++)
		point_declare(b->l, o->anchor[k]);
	for (unsigned q = 0; q < o->c.nmember; q++)
		point_declare(b->l, o->value[q]);
}

/* --- a thread's lanes --- */

static ValId
unit(const Once *x, unsigned k)
{
	return reduction_of(x->l, x->p->acc[k].monoid, x->p->acc[k].dtype).re;
}

static ValId
joined(const Once *x, unsigned k, ValId v, ValId w)
{
	Reduction f = {.monoid = x->p->acc[k].monoid, .type = x->p->acc[k].dtype, .re = v}, g = f;
	g.re = w;
	reduction_merge(x->l, &f, &g);
	return f.re;
}

/* Of the point's lanes one for each thread. */
static ValId
join_in_threads(const Once *x, unsigned k, ValId v)
{
	Reduction f = {.monoid = x->p->acc[k].monoid, .type = x->p->acc[k].dtype, .re = v};
	reduction_join_in_threads(x->l, &f, x->l->lanes);
	return f.re;
}

static ValId
join_threads(const Once *x, unsigned k, ValId v)
{
	Reduction f = {.monoid = x->p->acc[k].monoid, .type = x->p->acc[k].dtype, .re = v};
	reduction_join_lanes(x->l, &f, x->threads);
	return f.re;
}

/* What each thread has, in all of its lanes. */
static ValId
in_lanes(const Once *x, ValId v)
{
	DType t = (DType)tir_inst(x->k, v)->type.dtype;
	unsigned each = x->threads * x->k->group;
	for (unsigned lanes = x->threads; lanes < x->l->lanes; lanes *= 2) {
		int64_t bit = lanes < each ? 0 : __builtin_ctz(lanes);
		const ValId both[2] = {v, v};
		v = tir_emit(x->k, OP_WEAVE, tir_vector(t, 2 * lanes), 2 * bit, both, 2);
	}
	return v;
}

/* --- the state --- */

static void
place_state(const Once *x, const ValId *state)
{
	for (unsigned k = 0; k < x->p->nacc; k++)
		point_place(x->l, ivar(x, STATE_A, k, x->p->acc[k].dtype), state[k]);
}

static void
place_anchors(const Once *x, uint32_t base, const ValId *anchor, bool lanes)
{
	for (unsigned k = 0; k < x->p->nanchor; k++)
		if (anchor[k])
			point_place(x->l, ivar(x, base, k, x->p->anchor[k].dtype), lanes ? in_lanes(x, anchor[k]) : anchor[k]);
}

/* e over what was placed, a value for each thread or, of scalars, one. */
static ValId
value_of(const Once *x, ExprId e)
{
	uint32_t mark = point_mark(x->l);
	unsigned lanes = x->l->lanes;
	x->l->lanes = x->threads;
	ValId v = point_value(x->l, e, true).re;
	x->l->lanes = lanes;
	point_release(x->l, mark);
	return v;
}

/* Accumulator k of the old state at the new anchors. */
static ValId
moved(const Once *x, unsigned k)
{
	if (!x->o->rebase[k] || BUG(once_not_moved))
		return x->old[k];
	place_state(x, x->old);
	place_anchors(x, ANCHOR_OLD, x->anchor_old, false);
	place_anchors(x, ANCHOR_NEW, x->anchor_new, false);
	ValId v = value_of(x, x->o->rebase[k]);
	return x->p->seen < 0 ? v : tir_select(x->k, x->old[x->p->seen], v, x->old[k]);
}

static void
make_anchors(Once *x, unsigned stage)
{
	for (unsigned k = 0; k < x->p->nanchor; k++) {
		if (x->p->anchor[k].stage != stage)
			continue;
		place_state(x, x->old);
		x->anchor_old[k] = value_of(x, x->o->anchor[k]);
		place_state(x, x->run);
		x->anchor_new[k] = value_of(x, x->o->anchor[k]);
	}
}

static void
begin_stages(Once *x)
{
	for (unsigned k = 0; k < x->p->nacc; k++)
		x->old[k] = x->run[k];
	for (unsigned k = 0; k < x->p->nanchor; k++)
		x->anchor_old[k] = x->anchor_new[k] = 0;
}

/* The terms of a vector's lanes, joined for each thread. */
static ValId
terms(Once *x, unsigned k)
{
	Point *l = x->l;
	uint32_t mark = point_mark(l);
	place_anchors(x, ANCHOR_NEW, x->anchor_new, true);
	ValId v = point_widen(l, point_value(l, x->o->term[k], true).re);
	if (l->mask && !BUG(once_absent_terms))
		v = tir_select(x->k, l->mask, v, unit(x, k));
	if (x->p->acc[k].anchors) /* else later stages find there what was read */
		point_release(l, mark);
	return join_in_threads(x, k, v);
}

static void
take_vector(Once *x)
{
	begin_stages(x);
	for (unsigned stage = 0; stage <= x->o->last_stage; stage++) {
		for (unsigned k = 0; k < x->p->nacc; k++)
			if (x->p->acc[k].stage == stage) {
				ValId before = moved(x, k);
				x->run[k] = joined(x, k, before, terms(x, k));
			}
		make_anchors(x, stage);
	}
}

/* The vectors of from..to; the last one of the row is masked. */
static void
take_vectors(Once *x, ValId from, ValId to, bool masked)
{
	Point *l = x->l;
	unsigned n = x->p->nacc;
	uint32_t mark = point_mark(l);
	ValId carried[MAX_ACCS];
	for (unsigned k = 0; k < n; k++)
		carried[k] = x->run[k];
	l->axis[x->o->axis] = tir_for(x->k, from, to, rows_int(x->b, l->lanes), carried, n);
	for (unsigned k = 0; k < n; k++)
		x->run[k] = carried[k];
	l->mask = masked ? point_block_mask(l, l->axis[x->o->axis], to) : 0;
	take_vector(x);
	l->mask = 0;
	for (unsigned k = 0; k < n; k++)
		carried[k] = x->run[k];
	tir_end_for(x->k, carried, n);
	for (unsigned k = 0; k < n; k++)
		x->run[k] = carried[k];
	point_release(l, mark);
}

/* All threads' states as one, of scalars. */
static void
join_states(Once *x)
{
	begin_stages(x);
	for (unsigned stage = 0; stage <= x->o->last_stage; stage++) {
		ValId own[MAX_ACCS];
		for (unsigned k = 0; k < x->p->nacc; k++)
			own[k] = x->p->acc[k].stage == stage ? moved(x, k) : 0;
		for (unsigned k = 0; k < x->p->nacc; k++)
			if (own[k])
				x->run[k] = join_threads(x, k, own[k]);
		make_anchors(x, stage);
	}
}

/* A sum of no terms is +0. */
static void
complete(Once *x, ValId some)
{
	for (unsigned k = 0; k < x->p->nacc; k++)
		if (x->p->acc[k].monoid == MON_SUM)
			x->run[k] = tir_select(x->k, some, x->run[k], tir_float(x->k, x->p->acc[k].dtype, 0));
}

/* The results of all folds, as scalars. */
static void
fold_row(Once *x, unsigned phase)
{
	RowBuild *b = x->b;
	TirKernel *k = x->k;
	ValId lo, hi, step = rows_int(b, x->l->lanes);
	rows_loop_ends(b, phase, &lo, &hi);
	for (unsigned n = 0; n < x->p->nacc; n++) {
		ValId one = unit(x, n);
		x->run[n] = tir_emit(k, OP_SPLAT, tir_vector(x->p->acc[n].dtype, x->threads), 0, &one, 1);
	}
	ValId count = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, tir_binary(k, OP_MAX, hi, lo), lo), step);
	ValId rest = tir_binary(k, OP_ADD, lo, tir_binary(k, OP_MUL, count, step));
	take_vectors(x, lo, rest, false);
	take_vectors(x, rest, hi, true);
	join_states(x);
	complete(x, tir_binary(k, OP_LT, lo, hi));
	place_state(x, x->run);
	for (unsigned q = 0; q < x->o->c.nmember; q++)
		b->once_value[q] = value_of(x, x->o->value[q]);
}

bool
rows_goes_by(const RowBuild *b, unsigned phase)
{
	return b->once && (b->once->phases >> phase & 1);
}

void
rows_run_once(RowBuild *b, unsigned phase)
{
	const RowsOnce *o = b->once;
	if (!(o->phases & ((UINT32_C(1) << phase) - 1))) { /* the first of them */
		Once *x = ARENA_NEW(b->l->scratch, Once);
		*x = (Once){.b = b, .l = b->l, .k = b->l->tir, .o = o, .p = o->pass, .threads = tir_all_threads(b->l->tir)};
		fold_row(x, phase);
	}
	for (unsigned q = 0; q < o->c.nmember; q++)
		if (b->r->member[o->member[q]].phase == phase)
			rows_deliver(b, &b->r->member[o->member[q]], (PointVal){.re = b->once_value[q]});
}
