/* linear.c: folds that are linear recurrences (rows/linear.h), y = factor * y + term at each step.
 *
 * A state alone, `re`, takes a step by one multiplication and addition. Steps that are joined are a Reduction whose `re` is
 * what they make of 0 and whose `factor` is the product of their factors; a thread's own lanes stay steps until it is known
 * what they begin with, and then are gone through one after another. So joined steps only tell where threads begin.
 *
 * Joined steps of floats are in f64, so much finer than f32 that where a thread begins is rounded once. A product of factors that
 * leaves the range of f64 stays an infinity, 0 or NaN, as the state does: one that is not 0 is beyond f32 long before, at either
 * end, and stays there step by step too. But a state of 0 is 0 whatever it grows by, so what joined steps begin with is asked
 * for being 0. An infinite factor makes NaN of 0; since that question takes it for one that is too large, such a step's term is NaN
 * already. Integers wrap, as their steps do. */
#include "passes/schedule/schedule.h"

#include "ir/bugs.h"

static ValId
joined_cast(Point *l, const Reduction *f, ValId v)
{
	return tir_cast(l->tir, f->type, v);
}

Reduction
reduction_linear_begin(Point *l, const Reduction *state)
{
	TirKernel *k = l->tir;
	bool real = dtype_is_float(state->type);
	Reduction f = {.monoid = state->monoid, .type = real ? DT_F64 : state->type};
	f.re = real ? tir_float(k, DT_F64, -0.0) : tir_int(k, f.type, 0);
	f.factor = real ? tir_float(k, DT_F64, 1) : tir_int(k, f.type, 1);
	return f;
}

static ValId
times_plus(Point *l, ValId a, ValId b, ValId c)
{
	DType t = (DType)tir_inst(l->tir, a)->type.dtype;
	return dtype_is_float(t) ? tir_fma(l->tir, a, b, c) : tir_binary(l->tir, OP_ADD, tir_binary(l->tir, OP_MUL, a, b), c);
}

void
reduction_linear_step(Point *l, Reduction *state, PointVal factor, PointVal term)
{
	reduction_join(l, state, term);
	reduction_join(l, state, factor);
	state->re = times_plus(l, factor.re, state->re, term.re);
}

void
reduction_linear_merge(Point *l, Reduction *f, const Reduction *g)
{
	TirKernel *k = l->tir;
	ValId all = times_plus(l, f->factor, g->re, f->re);
	if (dtype_is_float(f->type) && !BUG(zero_grows))
		all = tir_select(k, tir_binary(k, OP_EQ, g->re, tir_float(k, f->type, 0)), f->re, all);
	f->re = all;
	f->factor = tir_binary(k, OP_MUL, f->factor, g->factor);
	f->fail = point_word(l, f->fail, g->fail);
	f->cut = point_word(l, f->cut, g->cut);
}

/* --- a thread's own lanes --- */

Reduction
reduction_linear_join(Point *l, const Reduction *unit, const Reduction *step, unsigned n, bool reverse)
{
	TirKernel *k = l->tir;
	Reduction f = *unit;
	for (unsigned i = 0; i < n; i++) {
		const Reduction *s = &step[reverse ? n - 1 - i : i];
		ValId factor = joined_cast(l, &f, s->factor), term = joined_cast(l, &f, s->re);
		f.re = times_plus(l, factor, f.re, term); /* NaN of 0 times an infinity */
		f.factor = i ? tir_binary(k, OP_MUL, factor, f.factor) : factor;
	}
	return f;
}

void
reduction_linear_steps(Point *l, const Reduction *begin, Reduction *step, unsigned n, bool reverse)
{
	ValId y = tir_cast(l->tir, step->type, begin->re);
	for (unsigned i = 0; i < n; i++) {
		Reduction *s = &step[reverse ? n - 1 - i : i];
		y = times_plus(l, s->factor, y, s->re);
		*s = (Reduction){.monoid = s->monoid, .type = s->type, .re = y};
	}
}
