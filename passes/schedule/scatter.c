/* scatter.c: NEST's scatters: elements get their start, then each term in ascending order of its
 * indices is folded into the element it goes to, then finish makes the elements of the output.
 *
 * The fold runs in a plane of its own, in the type in which the monoid accumulates, unless the
 * output can hold it as it is; an inout that starts from its old value in place then needs no start
 * at all. What a term's body met is kept with the element it went to; a guard, range or target that
 * met a fault, or a target outside, is no one element's and goes to the launch. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

typedef struct {
	Point *l;
	TensorId t;
	DType type;               /* of the accumulators */
	bool direct;
	ValId acc, acc_im, touched, words; /* views; all but acc may be 0 */
} Scatter;

bool
scatter_is_direct(const Graph *g, const Node *n)
{
	return n->scatter && !n->finish && !n->domain && reduction_type(g, n) == g->tensor.at[n->out].dtype;
}

bool
reads_own_point(const Graph *g, ExprId e, TensorId t)
{
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || p->ref != t || p->access)
		return false;
	for (unsigned a = 0; a < p->narg; a++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, a));
		if (sub->op != OP_AXIS || sub->ref != a)
			return false;
	}
	return true;
}

/* Loops over all elements; l->axis is the point inside. */
static void
open_points(Scatter *s)
{
	const TensorArg *arg = point_tensor(s->l, s->t);
	for (unsigned a = 0; a < s->l->node->npar; a++)
		s->l->axis[a] = tir_for(s->l->tir, tir_int(s->l->tir, DT_I64, 0), arg->extent[a],
		                        tir_int(s->l->tir, DT_I64, 1), NULL, 0);
}

static void
close_points(Scatter *s, uint32_t mark)
{
	point_release(s->l, mark);
	for (unsigned a = s->l->node->npar; a-- > 0;) {
		tir_end_for(s->l->tir, NULL, 0);
		s->l->axis[a] = 0;
	}
}

static unsigned
rank_of(const Scatter *s)
{
	return s->l->node->npar;
}

static PointVal
load_acc(Scatter *s, const ValId *p)
{
	if (s->direct || s->type != DT_C64)
		return point_load(s->l, s->acc, s->type, p, rank_of(s), 0, 0, 0);
	return (PointVal){.re = tir_load(s->l->tir, s->acc, p, 0, 0, 0),
	                .im = tir_load(s->l->tir, s->acc_im, p, 0, 0, 0)};
}

static void
put_acc(Scatter *s, PointVal v, const ValId *p)
{
	if (s->direct || s->type != DT_C64) {
		point_put(s->l, s->acc, s->type, v, p, rank_of(s), 0, 0);
		return;
	}
	tir_store(s->l->tir, s->acc, v.re, p, 0, 0);
	tir_store(s->l->tir, s->acc_im, v.im, p, 0, 0);
}

/* --- the start --- */

static bool
starts_in_place(const Scatter *s)
{
	uint32_t r = s->l->places->result[s->t];
	TensorId old = r ? s->l->g->result.at[r - 1].inout : 0;
	return s->direct && old && s->l->node->init && reads_own_point(s->l->g, s->l->node->init, old);
}

static PointVal
start_value(Scatter *s)
{
	Point *l = s->l;
	if (!l->node->init || BUG(scatter_start_dropped)) {
		Reduction f = reduction_begin(l);
		if (f.monoid == MON_SUM)
			return point_zero(l, s->type);
		return (PointVal){.re = f.re, .im = f.im};
	}
	PointVal v = point_value(l, l->node->init, true);
	if (s->type != DT_C64)
		v.re = tir_cast(l->tir, s->type, v.re);
	return v;
}

static void
build_start(Scatter *s)
{
	Point *l = s->l;
	if (starts_in_place(s) && !s->touched && !s->words)
		return;
	uint32_t mark = point_mark(l);
	open_points(s);
	PointVal v = start_value(s);
	if (!starts_in_place(s))
		put_acc(s, v, l->axis);
	if (s->touched)
		tir_store(l->tir, s->touched, tir_int(l->tir, DT_BOOL, 0), l->axis, 0, 0);
	if (s->words) {
		ValId w = point_pack(l, v);
		tir_store(l->tir, s->words, w ? w : tir_int(l->tir, DT_U32, 0), l->axis, 0, 0);
	}
	close_points(s, mark);
}

/* --- the terms --- */

static void
report(Point *l, PointVal words)
{
	ValId w = point_pack(l, words);
	if (w)
		tir_fault(l->tir, w);
}

static PointVal
unpack_words(Point *l, ValId w)
{
	return (PointVal){.fail = tir_binary(l->tir, OP_BAND, w, tir_int(l->tir, DT_U32, 0xffff)),
	                .cut = tir_binary(l->tir, OP_SHR, w, tir_int(l->tir, DT_U32, 16))};
}

/* Folds the body into the element at `to`. */
static void
build_update(Scatter *s, const ValId *to)
{
	Point *l = s->l;
	Reduction f = reduction_begin(l);
	PointVal old = load_acc(s, to);
	f.re = old.re;
	f.im = old.im;
	f.fail = f.cut = 0;
	f.wants_touched = false;
	reduction_term(l, &f, 0, true);
	put_acc(s, (PointVal){.re = f.re, .im = f.im}, to);
	if (s->touched && !BUG(arrival_forgotten))
		tir_store(l->tir, s->touched, tir_int(l->tir, DT_BOOL, 1), to, 0, 0);
	if (f.fail || f.cut) {
		PointVal words = unpack_words(l, tir_load(l->tir, s->words, to, 0, 0, 0));
		point_join(l, &words, (PointVal){.fail = f.fail, .cut = f.cut});
		tir_store(l->tir, s->words, point_pack(l, words), to, 0, 0);
	}
}

/* Where the term goes; the condition that it is inside, or 0 when that is known. */
static ValId
build_target(Scatter *s, ValId *to)
{
	Point *l = s->l;
	const TensorArg *arg = point_tensor(l, s->t);
	PointVal words = {0};
	ValId ok = 0;
	for (unsigned a = 0; a < rank_of(s); a++) {
		PointVal v = point_value(l, l->node->target[a], true);
		point_join(l, &words, v);
		to[a] = v.re;
		if (!l->node->target_access[a])
			continue;
		ValId here = tir_binary(l->tir, OP_LT, tir_cast(l->tir, DT_U64, v.re),
		                        tir_cast(l->tir, DT_U64, arg->extent[a]));
		ValId id = tir_select(l->tir, here, tir_int(l->tir, DT_U32, 0),
		                      tir_int(l->tir, DT_U32, l->node->target_access[a]));
		words.fail = point_word(l, words.fail, id);
		ok = ok ? tir_binary(l->tir, OP_AND, ok, here) : here;
	}
	report(l, words);
	return ok;
}

static void
open_if(Point *l, ValId cond)
{
	if (cond)
		tir_if(l->tir, cond);
}

static void
close_if(Point *l, ValId cond)
{
	if (!cond)
		return;
	tir_else(l->tir, NULL, 0);
	tir_end_if(l->tir, NULL, 0);
}

static void
build_term(Scatter *s)
{
	Point *l = s->l;
	ValId to[TG_MAX_RANK], present = 0;
	if (!expr_is_true(l->g, l->node->guard)) {
		PointVal guard = point_value(l, l->node->guard, true);
		report(l, guard);
		present = guard.re;
	}
	open_if(l, present);
	ValId inside = build_target(s, to);
	open_if(l, inside);
	build_update(s, to);
	close_if(l, inside);
	close_if(l, present);
}

static void
build_terms(Scatter *s)
{
	Point *l = s->l;
	const Node *n = l->node;
	uint32_t mark = point_mark(l);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		ValId lo, hi;
		PointVal words = {0};
		element_range(l, a, &lo, &hi, &words, true);
		report(l, words);
		l->axis[a] = tir_for(l->tir, lo, hi, tir_int(l->tir, DT_I64, 1), NULL, 0);
		if (BUG(scatter_reversed))
			l->axis[a] = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, lo, hi),
			                        tir_binary(l->tir, OP_ADD, l->axis[a], tir_int(l->tir, DT_I64, 1)));
	}
	build_term(s);
	point_release(l, mark);
	for (unsigned a = n->npar + n->nred; a-- > n->npar;) {
		tir_end_for(l->tir, NULL, 0);
		l->axis[a] = 0;
	}
}

/* --- the end --- */

static PointVal
end_value(Scatter *s)
{
	Point *l = s->l;
	PointVal v = load_acc(s, l->axis);
	ValId touched = s->touched ? tir_load(l->tir, s->touched, l->axis, 0, 0, 0) : 0;
	if (s->words)
		point_join(l, &v, unpack_words(l, tir_load(l->tir, s->words, l->axis, 0, 0, 0)));
	return element_finish(l, v, touched, true);
}

static void
build_end(Scatter *s)
{
	Point *l = s->l;
	if (s->direct && !s->words && !point_tensor(l, s->t)->fault)
		return;
	uint32_t mark = point_mark(l);
	open_points(s);
	if (expr_is_true(l->g, l->node->domain)) {
		point_store(l, s->t, end_value(s), l->axis, -1);
	} else {
		PointVal domain = point_value(l, l->node->domain, true);
		Branch b = branch_open(l, domain.re);
		PointVal v = branch_close(l, b, l->g->tensor.at[s->t].dtype, end_value(s));
		point_store(l, s->t, v, l->axis, -1);
	}
	close_points(s, mark);
}

static void
open_planes(Scatter *s, TensorId t, const Reduction *needs)
{
	Point *l = s->l;
	if (s->direct)
		s->acc = point_tensor(l, t)->data;
	else
		s->acc = point_plane(l, t, s->type == DT_C64 ? DT_F32 : s->type);
	if (!s->direct && s->type == DT_C64)
		s->acc_im = point_plane(l, t, DT_F32);
	if (needs->asks_touched)
		s->touched = point_plane(l, t, DT_BOOL);
	if (needs->may_fail || needs->may_cut)
		s->words = point_plane(l, t, DT_U32);
}

void
scatter_build(Point *l, TensorId t)
{
	Scatter s = {.l = l, .t = t, .type = reduction_type(l->g, l->node), .direct = scatter_is_direct(l->g, l->node)};
	Reduction needs = reduction_begin(l);
	open_planes(&s, t, &needs);
	build_start(&s);
	build_terms(&s);
	build_end(&s);
}
