/* reduction.c: the monoids as carried values of a loop, one term at a time in ascending order.
 *
 * A sum starts from -0 (-0 + x is x to the bit, for every x) and an empty one is mended to +0 at the
 * end. max and min start from an infinity, or the extreme integer: what they make of nothing is
 * never demanded. The first NaN wins an arg, and then the smallest position of the extreme. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

#include <math.h>
#include <string.h>

static bool
is_arg(Monoid m)
{
	return monoid_info[m].index;
}

/* Terms are folded in the type that arithmetic on the body widens to. */
static DType
term_type(const Graph *g, const Node *n)
{
	DType body = (DType)expr_get(g, n->body)->dtype;
	return n->monoid == MON_ANY || n->monoid == MON_ALL ? DT_BOOL : dtype_info[body].arith;
}

DType
reduction_type(const Graph *g, const Node *n)
{
	return is_arg(n->monoid) ? DT_I64 : term_type(g, n);
}

/* --- what a node can carry --- */

typedef struct {
	const Point *l;
	bool fail, touched;
} Needs;

static void
note_needs(void *user, ExprId e)
{
	Needs *n = user;
	const Expr *p = expr_get(n->l->g, e);
	if (p->op == OP_READ)
		n->fail |= p->access != 0 || n->l->places->faulty[p->ref];
	n->touched |= p->op == OP_TOUCHED;
}

static bool
is_product_sum(const Graph *g, const Node *n)
{
	const Expr *p = expr_get(g, n->body);
	return g->fp == FP_STRICT && n->monoid == MON_SUM && p->op == OP_MUL && dtype_is_float((DType)p->dtype);
}

static ValId
extreme(Point *l, DType t, bool lowest)
{
	if (dtype_is_float(t))
		return tir_float(l->tir, t, lowest ? -INFINITY : INFINITY);
	unsigned bits = dtype_info[t].bits;
	if (t == DT_BOOL)
		return tir_int(l->tir, t, !lowest);
	if (dtype_info[t].kind == KIND_UINT)
		return tir_int(l->tir, t, lowest ? 0 : -1);
	int64_t max = (int64_t)(~0ull >> (65 - bits));
	return tir_int(l->tir, t, lowest ? -max - 1 : max);
}

static void
set_start(Point *l, Reduction *f)
{
	DType t = f->type == DT_C64 ? DT_F32 : f->type;
	bool real = dtype_is_float(t);
	switch (f->monoid) {
	case MON_NONE: break;
	case MON_SUM:
		f->re = real ? tir_float(l->tir, t, -0.0) : tir_int(l->tir, t, 0);
		if (f->type == DT_C64)
			f->im = f->re;
		break;
	case MON_PROD:
		f->re = real ? tir_float(l->tir, t, 1) : tir_int(l->tir, t, 1);
		if (f->type == DT_C64)
			f->im = tir_float(l->tir, t, 0);
		break;
	case MON_MAX: case MON_ARGMAX: f->re = BUG(unit_of_max) ? point_zero(l, t).re : extreme(l, t, true); break;
	case MON_MIN: case MON_ARGMIN: f->re = extreme(l, t, false); break;
	case MON_ANY: f->re = tir_int(l->tir, t, 0); break;
	case MON_ALL: f->re = tir_int(l->tir, t, 1); break;
	}
}

Reduction
reduction_of(Point *l, Monoid m, DType t)
{
	Reduction f = {.monoid = m, .type = t};
	set_start(l, &f);
	return f;
}

Reduction
reduction_begin(Point *l)
{
	const Node *n = l->node;
	Needs needs = {.l = l};
	node_walk(l->g, l->scratch, n, note_needs, &needs);
	Reduction f = {.monoid = n->monoid, .type = term_type(l->g, n), .fma = is_product_sum(l->g, n),
	          .asks_touched = needs.touched,
	          .may_fail = needs.fail, .may_cut = needs.fail && l->places->cuts};
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		f.may_cut |= n->axis[a].cut != 0;
	bool real_sum = n->monoid == MON_SUM && (dtype_is_float(f.type) || f.type == DT_C64);
	f.wants_touched = needs.touched || real_sum || is_arg(n->monoid) ||
	                  (n->monoid == MON_PROD && f.type == DT_C64);
	set_start(l, &f);
	if (is_arg(n->monoid))
		f.position = tir_int(l->tir, DT_I64, 0);
	if (f.wants_touched)
		f.touched = tir_int(l->tir, DT_BOOL, 0);
	if (f.may_fail)
		f.fail = tir_int(l->tir, DT_U32, 0);
	if (f.may_cut)
		f.cut = tir_int(l->tir, DT_U32, 0);
	return f;
}

void
reduction_each(Reduction *f, ValId **all)
{
	ValId *const own[REDUCTION_MAX_CARRIED] = {&f->re, &f->im, &f->position, &f->touched, &f->fail, &f->cut,
	                                           &f->other, &f->third, &f->factor};
	memcpy(all, own, sizeof own);
}

unsigned
reduction_pack(const Reduction *f, ValId *carried)
{
	Reduction from = *f;
	ValId *all[REDUCTION_MAX_CARRIED];
	unsigned n = 0;
	reduction_each(&from, all);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++)
		if (*all[k])
			carried[n++] = *all[k];
	return n;
}

void
reduction_unpack(Reduction *f, const ValId *carried)
{
	ValId *all[REDUCTION_MAX_CARRIED];
	unsigned n = 0;
	reduction_each(f, all);
	for (unsigned k = 0; k < REDUCTION_MAX_CARRIED; k++)
		if (*all[k])
			*all[k] = carried[n++];
}

void
reduction_join(Point *l, Reduction *f, PointVal from)
{
	if ((from.fail && !f->may_fail) || (from.cut && !f->may_cut))
		bug(l->g->arena, "a fold met a fault that its node can't have");
	f->fail = point_word(l, f->fail, from.fail);
	f->cut = point_word(l, f->cut, from.cut);
}

/* --- terms --- */

/* Whether x takes the place of the winner so far: of numbers, if it is not x's equal or beyond it, which no number and no
 * NaN is to a NaN. */
static ValId
beats(Point *l, const Reduction *f, ValId x)
{
	bool max = f->monoid == MON_ARGMAX;
	ValId low = max ? f->re : x, high = max ? x : f->re, better;
	if (dtype_is_float(f->type)) {
		better = tir_unary(l->tir, OP_NOT, tir_binary(l->tir, BUG(arg_takes_last) ? OP_LT : OP_LE, high, low));
		ValId held = tir_unary(l->tir, OP_NOT, tir_unary(l->tir, OP_ISNAN, f->re));
		better = BUG(arg_takes_last_nan) ? better : tir_binary(l->tir, OP_AND, better, held);
	} else
		better = tir_binary(l->tir, BUG(arg_takes_last) ? OP_LE : OP_LT, low, high);
	return f->touched ? tir_binary(l->tir, OP_OR, tir_unary(l->tir, OP_NOT, f->touched), better) : better;
}

static void
take_arg(Point *l, Reduction *f, ValId x, ValId position)
{
	ValId wins = beats(l, f, x);
	f->re = tir_select(l->tir, wins, x, f->re);
	f->position = tir_select(l->tir, wins, position, f->position);
}

static void
take_complex(Point *l, Reduction *f, PointVal x)
{
	PointVal acc = {.re = f->re, .im = f->im};
	PointVal v = point_complex(l, f->monoid == MON_SUM ? OP_ADD : OP_MUL, acc, x);
	if (f->monoid == MON_PROD) { /* 1 * x is not x where x is not finite */
		v.re = tir_select(l->tir, f->touched, v.re, x.re);
		v.im = tir_select(l->tir, f->touched, v.im, x.im);
	}
	f->re = v.re;
	f->im = v.im;
}

void
reduction_value(Point *l, Reduction *f, PointVal v, ValId position)
{
	reduction_join(l, f, v);
	if (f->type == DT_C64) {
		take_complex(l, f, v);
	} else if (f->other) {
		reduction_rank_term(l, f, tir_cast(l->tir, f->type, v.re));
	} else if (f->searched) {
		f->re = tir_cast(l->tir, f->type, v.re);
	} else {
		ValId x = tir_cast(l->tir, f->type, v.re);
		switch (f->monoid) {
		case MON_NONE: f->re = x; break;
		case MON_SUM: f->re = tir_binary(l->tir, OP_ADD, f->re, x); break;
		case MON_PROD: f->re = tir_binary(l->tir, OP_MUL, f->re, x); break;
		case MON_MAX: f->re = tir_binary(l->tir, OP_MAX, f->re, x); break;
		case MON_MIN: f->re = tir_binary(l->tir, OP_MIN, f->re, x); break;
		case MON_ANY: f->re = tir_binary(l->tir, OP_OR, f->re, x); break;
		case MON_ALL: f->re = tir_binary(l->tir, OP_AND, f->re, x); break;
		case MON_ARGMAX: case MON_ARGMIN: take_arg(l, f, x, position); break;
		}
	}
	if (f->wants_touched)
		f->touched = tir_int(l->tir, DT_BOOL, 1);
}

void
reduction_term(Point *l, Reduction *f, ValId position, bool always)
{
	reduction_term_of(l, f, l->node->body, position, always);
}

void
reduction_term_of(Point *l, Reduction *f, ExprId body, ValId position, bool always)
{
	if (!f->fma) {
		reduction_value(l, f, point_value(l, body, always), position);
		return;
	}
	PointVal a = point_value(l, expr_arg(l->g, body, 0), always);
	PointVal b = point_value(l, expr_arg(l->g, body, 1), always);
	reduction_join(l, f, a);
	reduction_join(l, f, b);
	f->re = tir_fma(l->tir, a.re, b.re, f->re);
	if (f->wants_touched)
		f->touched = tir_int(l->tir, DT_BOOL, 1);
}

PointVal
reduction_end(Point *l, const Reduction *f)
{
	if (f->other)
		return (PointVal){.re = reduction_rank_end(l, f), .fail = f->fail, .cut = f->cut};
	PointVal v = {.re = is_arg(f->monoid) ? f->position : f->re, .im = f->im, .fail = f->fail, .cut = f->cut};
	bool real_sum = f->monoid == MON_SUM && (dtype_is_float(f->type) || f->type == DT_C64);
	if (real_sum) {
		ValId zero = tir_float(l->tir, f->type == DT_C64 ? DT_F32 : f->type, 0);
		v.re = tir_select(l->tir, f->touched, v.re, zero);
		if (v.im)
			v.im = tir_select(l->tir, f->touched, v.im, zero);
	}
	return v;
}
