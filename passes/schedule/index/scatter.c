/* scatter.c: scatters: elements get their start, then each term in ascending order of its indices is
 * folded into the element it goes to, then finish makes the elements of the output. NEST does that in
 * one task; of INDEX (index.c) each task does it for the elements that are its own.
 *
 * Whether a term goes there is asked of SKIMMED terms side by side, whose loads overlap; where one may,
 * they are taken one by one. A block makes lists (scatter_list.c).
 *
 * The fold runs in a plane of its own, in the type in which the monoid accumulates, unless the
 * output can hold it as it is; an inout that starts from its old value in place then needs no start
 * at all. What a term's body met is kept with the element it went to; a guard, range or target that
 * met a fault, or a target outside, is no one element's and goes to the launch. */
#include "passes/schedule/index/scatter.h"
#include "passes/schedule/point/vary.h"
#include "ir/bugs.h"

enum { SKIMMED = 8 };

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

static unsigned
rank_of(const Scatter *s)
{
	return s->l->node->npar;
}

/* --- elements and vectors --- */

typedef void AtFn(Scatter *s);

static void
at_vector(Scatter *s, ValId base, ValId mask, AtFn *at)
{
	Point *l = s->l;
	int lane = s->task->axes.lane;
	uint32_t mark = point_mark(l);
	l->axis[lane] = l->axis[s->task->axes.own[lane]] = s->to[lane] = base;
	l->mask = mask;
	at(s);
	l->mask = 0;
	point_release(l, mark);
}

/* At the point, or at each vector of the task's strip. */
static void
each_vector(Scatter *s, AtFn *at)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	if (s->task->axes.lane < 0) {
		at(s);
		return;
	}
	ValId begin = s->task->begin, end = s->task->end;
	if (k->form == TIR_BLOCK) {
		at_vector(s, begin, point_block_mask(l, begin, end), at);
		return;
	}
	ValId step = scatter_int(s, l->lanes), whole = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, end, begin), step);
	ValId rest = tir_binary(k, OP_ADD, begin, tir_binary(k, OP_MUL, whole, step));
	at_vector(s, tir_for(k, begin, rest, step, NULL, 0), 0, at);
	tir_end_for(k, NULL, 0);
	ValId base = tir_for(k, rest, end, step, NULL, 0), iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
	at_vector(s, base, tir_binary(k, OP_LT, tir_binary(k, OP_ADD, base, iota), end), at);
	tir_end_for(k, NULL, 0);
}

/* At each of the task's elements; l->axis is the point. */
static void
each_element(Scatter *s, AtFn *at)
{
	const TensorArg *arg = point_tensor(s->l, s->t);
	const IndexAxes *x = &s->task->axes;
	unsigned rank = rank_of(s), opened = 0;
	uint32_t mark = point_mark(s->l);
	for (unsigned a = 0; a < rank; a++) {
		if (x->own[a] != INDEX_AIMED) {
			s->l->axis[a] = s->l->axis[x->own[a]];
			continue;
		}
		bool part = (int)a == x->divided;
		s->l->axis[a] = tir_for(s->l->tir, part ? s->task->lo : scatter_int(s, 0), part ? s->task->hi : arg->extent[a],
		                        part && s->task->classes ? s->task->classes : scatter_int(s, 1), NULL, 0);
		opened++;
	}
	each_vector(s, at);
	point_release(s->l, mark);
	while (opened--)
		tir_end_for(s->l->tir, NULL, 0);
	for (unsigned a = 0; a < rank; a++)
		s->l->axis[a] = 0;
}

/* --- accumulators: at `p`, or from there on along the lanes --- */

static int64_t
lane_flags(const Scatter *s)
{
	return s->task->axes.lane >= 0 ? TIR_LANES_ALONG(s->task->axes.lane) : 0;
}

static ValId
load_plane(Scatter *s, ValId view, const ValId *p)
{
	return tir_load(s->l->tir, view, p, s->l->mask, lane_flags(s), s->task->axes.lane >= 0 ? s->l->lanes : 0);
}

/* mask: of the lanes that are stored, 0: all. */
static void
store_plane(Scatter *s, ValId view, ValId v, const ValId *p, ValId mask)
{
	tir_store(s->l->tir, view, s->task->axes.lane >= 0 ? point_widen(s->l, v) : v, p, mask, lane_flags(s));
}

static PointVal
load_acc(Scatter *s, const ValId *p)
{
	unsigned lanes = s->task->axes.lane >= 0 ? s->l->lanes : 0;
	if (s->direct || s->type != DT_C64)
		return point_load(s->l, s->acc, s->type, p, rank_of(s), s->l->mask, lane_flags(s), lanes);
	return (PointVal){.re = load_plane(s, s->acc, p), .im = load_plane(s, s->acc_im, p)};
}

static void
put_acc(Scatter *s, PointVal v, const ValId *p)
{
	if (s->direct || s->type != DT_C64) {
		if (lane_flags(s)) {
			v.re = point_widen(s->l, v.re);
			v.im = point_widen(s->l, v.im);
		}
		point_put(s->l, s->acc, s->type, v, p, rank_of(s), s->l->mask, lane_flags(s));
		return;
	}
	store_plane(s, s->acc, v.re, p, s->l->mask);
	store_plane(s, s->acc_im, v.im, p, s->l->mask);
}

/* --- the start --- */

/* Whether elements start with what the output's memory has, in the type in which they accumulate. */
static bool
starts_from_old(const Scatter *s)
{
	const Graph *g = s->l->g;
	uint32_t r = s->l->places->result[s->t];
	TensorId old = r ? g->result.at[r - 1].inout : 0;
	ExprId init = s->l->node->init;
	if (!old || !init)
		return false;
	if (expr_get(g, init)->op == OP_CAST && expr_get(g, init)->dtype == s->type)
		init = expr_arg(g, init, 0);
	return reads_own_point(g, init, old);
}

static bool
starts_in_place(const Scatter *s)
{
	return s->direct && starts_from_old(s);
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
start_at(Scatter *s)
{
	Point *l = s->l;
	PointVal v = start_value(s);
	if (!starts_in_place(s))
		put_acc(s, v, l->axis);
	if (s->touched)
		store_plane(s, s->touched, tir_int(l->tir, DT_BOOL, 0), l->axis, l->mask);
	if (s->words) {
		ValId w = point_pack(l, v);
		store_plane(s, s->words, w ? w : tir_int(l->tir, DT_U32, 0), l->axis, l->mask);
	}
}

static void
build_start(Scatter *s)
{
	if (!starts_in_place(s) || s->touched || s->words)
		each_element(s, start_at);
}

/* --- the terms --- */

static void
report(Point *l, PointVal words)
{
	ValId w = point_pack(l, words), none = tir_int(l->tir, DT_U32, 0);
	if (w)
		tir_fault(l->tir, l->mask ? tir_select(l->tir, l->mask, w, none) : w);
}

static PointVal
unpack_words(Point *l, ValId w)
{
	return (PointVal){.fail = tir_binary(l->tir, OP_BAND, w, tir_int(l->tir, DT_U32, 0xffff)),
	                .cut = tir_binary(l->tir, OP_SHR, w, tir_int(l->tir, DT_U32, 16))};
}

/* Whether the guard is asked of every lane. */
static bool
guard_varies(const Scatter *s)
{
	ExprId guard = s->l->node->guard;
	return !expr_is_true(s->l->g, guard) && s->l->varies.at[number_of(s->l, guard)] != VARY_NOT;
}

/* Folds the body into the element, or the vector of them, that the term goes to. */
static void
update_at(Scatter *s)
{
	Point *l = s->l;
	Reduction f = reduction_begin(l);
	bool vector = s->task->axes.lane >= 0;
	ValId keep = 0;
	if (vector && guard_varies(s)) {
		PointVal guard = point_value(l, l->node->guard, true);
		report(l, guard);
		keep = guard.re;
	}
	PointVal old = load_acc(s, s->to);
	f.re = old.re;
	f.im = old.im;
	f.wants_touched = false;
	if (vector) {
		reduction_widen(l, &f);
		reduction_term_where(l, &f, 0, keep, !keep);
	} else {
		f.fail = f.cut = 0;
		reduction_term(l, &f, 0, true);
	}
	put_acc(s, (PointVal){.re = f.re, .im = f.im}, s->to);
	ValId taken = keep && l->mask ? tir_binary(l->tir, OP_AND, keep, l->mask) : keep ? keep : l->mask;
	if (s->touched && !BUG(arrival_forgotten))
		store_plane(s, s->touched, tir_int(l->tir, DT_BOOL, 1), s->to, taken);
	if (f.fail || f.cut) {
		PointVal words = unpack_words(l, load_plane(s, s->words, s->to));
		point_join(l, &words, (PointVal){.fail = f.fail, .cut = f.cut});
		store_plane(s, s->words, point_pack(l, words), s->to, l->mask);
	}
}

/* What the guard met, and in the lanes that have the term what the subscripts did. */
static void
report_at(Scatter *s)
{
	Point *l = s->l;
	PointVal guard = point_value(l, l->node->guard, true);
	report(l, guard);
	ValId none = tir_int(l->tir, DT_U32, 0), met = tir_select(l->tir, guard.re, s->met, none);
	tir_fault(l->tir, l->mask ? tir_select(l->tir, l->mask, met, none) : met);
}

/* What the subscripts met of a term that is there. */
static void
report_target(Scatter *s, PointVal words)
{
	Point *l = s->l;
	ValId none = tir_int(l->tir, DT_U32, 0), any = s->away;
	s->met = s->task->axes.lane >= 0 && guard_varies(s) ? point_pack(l, words) : 0;
	if (!s->met && !any) {
		report(l, words);
		return;
	}
	if (s->met)
		any = any ? tir_binary(l->tir, OP_OR, any, tir_binary(l->tir, OP_NE, s->met, none)) : tir_binary(l->tir, OP_NE, s->met, none);
	else
		s->met = none;
	tir_if(l->tir, any);
	each_vector(s, report_at);
	tir_else(l->tir, NULL, 0);
	tir_end_if(l->tir, NULL, 0);
}

/* lo <= v < hi */
static ValId
within(Scatter *s, ValId v, ValId lo, ValId hi)
{
	TirKernel *k = s->l->tir;
	return tir_binary(k, OP_LT, tir_cast(k, DT_U64, tir_binary(k, OP_SUB, v, lo)),
	                  tir_cast(k, DT_U64, tir_binary(k, OP_SUB, hi, lo)));
}

/* Whether v, of the divided axis, is the task's. */
static ValId
is_own(Scatter *s, ValId v)
{
	TirKernel *k = s->l->tir;
	if (!s->task->classes)
		return within(s, v, s->task->lo, s->task->hi);
	ValId mask = tir_binary(k, OP_SUB, tir_cast(k, DT_U64, s->task->classes), tir_int(k, DT_U64, 1));
	ValId rest = tir_binary(k, OP_BAND, tir_cast(k, DT_U64, v), mask);
	return tir_binary(k, OP_EQ, rest, tir_cast(k, DT_U64, s->task->lo));
}

ValId
scatter_aim(Scatter *s, PointVal *words)
{
	Point *l = s->l;
	const TensorArg *arg = point_tensor(l, s->t);
	ValId ok = 0;
	for (unsigned a = 0; a < rank_of(s); a++) {
		if (s->task->axes.own[a] != INDEX_AIMED) {
			s->to[a] = l->axis[s->task->axes.own[a]];
			continue;
		}
		PointVal v = point_value(l, l->node->target[a], true);
		point_join(l, words, v);
		s->to[a] = v.re;
		ValId here = (int)a == s->task->axes.divided ? is_own(s, v.re) : 0;
		if (here && !BUG(owner_ignored))
			ok = ok ? tir_binary(l->tir, OP_AND, ok, here) : here;
		if (!l->node->target_access[a])
			continue;
		here = within(s, v.re, scatter_int(s, 0), arg->extent[a]);
		ValId id = tir_select(l->tir, here, tir_int(l->tir, DT_U32, 0),
		                      tir_int(l->tir, DT_U32, l->node->target_access[a]));
		words->fail = point_word(l, words->fail, id);
		ok = ok ? tir_binary(l->tir, OP_AND, ok, here) : here;
	}
	return ok;
}

/* Where each lane asks the guard, which says that targets are in the output: whether they are, so that no element is
 * touched of a term that is in no lane; 0: they are known to be. */
static ValId
inside_by_guard(Scatter *s)
{
	Point *l = s->l;
	ValId all = 0;
	for (unsigned a = 0; s->task->axes.lane >= 0 && guard_varies(s) && a < rank_of(s); a++) {
		if (s->task->axes.own[a] != INDEX_AIMED || l->node->target_access[a])
			continue;
		ValId here = within(s, s->to[a], scatter_int(s, 0), point_tensor(l, s->t)->extent[a]);
		all = all ? tir_binary(l->tir, OP_AND, all, here) : here;
	}
	return all;
}

ValId
scatter_target(Scatter *s)
{
	PointVal words = {0};
	ValId ok = scatter_aim(s, &words), here = inside_by_guard(s);
	s->away = here ? tir_unary(s->l->tir, OP_NOT, here) : 0;
	report_target(s, words);
	return ok && here ? tir_binary(s->l->tir, OP_AND, ok, here) : ok ? ok : here;
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

void
scatter_term(Scatter *s)
{
	Point *l = s->l;
	ValId present = 0;
	if (!expr_is_true(l->g, l->node->guard) && !guard_varies(s)) {
		PointVal guard = point_value(l, l->node->guard, true);
		report(l, guard);
		present = guard.re;
	}
	open_if(l, present);
	ValId inside = scatter_target(s);
	open_if(l, inside);
	each_vector(s, update_at);
	close_if(l, inside);
	close_if(l, present);
}

ValId
scatter_may_take(Scatter *s)
{
	Point *l = s->l;
	int a = s->task->axes.divided;
	PointVal v = point_value(l, l->node->target[a], expr_is_true(l->g, l->node->guard));
	ValId wanted = is_own(s, v.re), none = tir_int(l->tir, DT_U32, 0), words = point_pack(l, v);
	if (l->node->target_access[a]) {
		ValId outside = tir_unary(l->tir, OP_NOT, within(s, v.re, scatter_int(s, 0), point_tensor(l, s->t)->extent[a]));
		wanted = tir_binary(l->tir, OP_OR, wanted, outside);
	}
	return words ? tir_binary(l->tir, OP_OR, wanted, tir_binary(l->tir, OP_NE, words, none)) : wanted;
}

/* The innermost loop's terms from lo to hi, one after the other. */
static void
take_terms(Scatter *s, unsigned axis, ValId lo, ValId hi)
{
	Point *l = s->l;
	uint32_t mark = point_mark(l);
	l->axis[axis] = tir_for(l->tir, lo, hi, scatter_int(s, 1), NULL, 0);
	if (BUG(scatter_reversed))
		l->axis[axis] = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_ADD, lo, hi),
		                           tir_binary(l->tir, OP_ADD, l->axis[axis], scatter_int(s, 1)));
	scatter_term(s);
	point_release(l, mark);
	tir_end_for(l->tir, NULL, 0);
}

/* The same, SKIMMED at a time; fewer than these, at the end, are taken without a look. */
static void
skim_terms(Scatter *s, unsigned axis, ValId lo, ValId hi)
{
	Point *l = s->l;
	TirKernel *k = l->tir;
	ValId some = 0, yes = tir_int(k, DT_BOOL, 1);
	ValId from = tir_for(k, lo, hi, scatter_int(s, SKIMMED), NULL, 0), to = tir_binary(k, OP_ADD, from, scatter_int(s, SKIMMED));
	tir_if(k, tir_binary(k, OP_LE, to, hi));
	for (int64_t n = 0; n < SKIMMED; n++) {
		uint32_t mark = point_mark(l);
		l->axis[axis] = n ? tir_binary(k, OP_ADD, from, scatter_int(s, n)) : from;
		ValId one = scatter_may_take(s);
		some = some ? tir_binary(k, OP_OR, some, one) : one;
		point_release(l, mark);
	}
	tir_else(k, &some, 1);
	tir_end_if(k, &yes, 1);
	tir_if(k, yes);
	take_terms(s, axis, from, tir_binary(k, OP_MIN, to, hi));
	close_if(l, yes);
	tir_end_for(k, NULL, 0);
}

unsigned
scatter_loops(const Scatter *s, unsigned *loop)
{
	const Node *n = s->l->node;
	unsigned count = 0;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++) {
		bool own = false;
		for (unsigned p = 0; p < n->npar; p++)
			own |= s->task->axes.own[p] == a;
		if (!own)
			loop[count++] = a;
	}
	return count;
}

static void
build_terms(Scatter *s)
{
	Point *l = s->l;
	unsigned loop[TG_MAX_AXES], n = scatter_loops(s, loop);
	uint32_t mark = point_mark(l);
	for (unsigned k = 0; k < n; k++) {
		ValId lo, hi;
		PointVal words = {0};
		element_range(l, loop[k], &lo, &hi, &words, true);
		report(l, words);
		if (k + 1 == n && s->list.asked)
			scatter_take_lists(s, loop[k], lo, hi);
		else if (k + 1 == n && s->task->axes.divided >= 0)
			skim_terms(s, loop[k], lo, hi);
		else if (k + 1 == n)
			take_terms(s, loop[k], lo, hi);
		else
			l->axis[loop[k]] = tir_for(l->tir, lo, hi, scatter_int(s, 1), NULL, 0);
	}
	if (n == 0)
		scatter_term(s);
	point_release(l, mark);
	for (unsigned k = n; k-- > 1;)
		tir_end_for(l->tir, NULL, 0);
	for (unsigned k = 0; k < n; k++)
		l->axis[loop[k]] = 0;
}

/* --- the end --- */

static PointVal
end_value(Scatter *s)
{
	Point *l = s->l;
	bool always = expr_is_true(l->g, l->node->domain) || s->task->axes.lane < 0;
	PointVal v = load_acc(s, l->axis);
	ValId touched = s->touched ? load_plane(s, s->touched, l->axis) : 0;
	if (s->words)
		point_join(l, &v, unpack_words(l, load_plane(s, s->words, l->axis)));
	return element_finish(l, v, touched, always);
}

static void
end_at(Scatter *s)
{
	Point *l = s->l;
	DType dtype = l->g->tensor.at[s->t].dtype;
	PointVal v;
	if (expr_is_true(l->g, l->node->domain)) {
		v = end_value(s);
	} else if (s->task->axes.lane >= 0) {
		v = element_where(l, end_value(s));
	} else {
		Branch b = branch_open(l, point_value(l, l->node->domain, true).re);
		v = branch_close(l, b, dtype, end_value(s));
	}
	point_store(l, s->t, v, l->axis, s->task->axes.lane);
}

static void
build_end(Scatter *s)
{
	if (!s->direct || s->words || point_tensor(s->l, s->t)->fault)
		each_element(s, end_at);
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

static void
build_by_terms(Scatter *s)
{
	build_start(s);
	build_terms(s);
	build_end(s);
}

/* Whether the output can hold what elements start with, and a task's terms are those of one loop. */
static bool
one_list(const Scatter *s)
{
	unsigned loop[TG_MAX_AXES];
	const Node *n = s->l->node;
	return scatter_loops(s, loop) == 1 && (starts_from_old(s) || (!n->init && n->monoid == MON_SUM));
}

static void
zero_at(Scatter *s)
{
	PointVal zero = point_zero(s->l, s->l->g->tensor.at[s->t].dtype);
	point_put(s->l, point_tensor(s->l, s->t)->data, DT_NONE, (PointVal){.re = point_widen(s->l, zero.re)}, s->l->axis, rank_of(s),
	          s->l->mask, lane_flags(s));
}

/* With accumulators in registers, if a list holds all of the task's terms. */
static void
build_by_list(Scatter *s)
{
	Point *l = s->l;
	unsigned loop[TG_MAX_AXES];
	ValId lo, hi, fits;
	PointVal words = {0};
	uint32_t mark = point_mark(l);
	scatter_loops(s, loop);
	element_range(l, loop[0], &lo, &hi, &words, true);
	report(l, words);
	ValId n = scatter_list_all(s, loop[0], lo, hi, &fits);
	tir_if(l->tir, fits);
	uint32_t inner = point_mark(l);
	if (!starts_from_old(s))
		each_element(s, zero_at);
	scatter_take_runs(s, loop[0], lo, n);
	point_release(l, inner);
	tir_else(l->tir, NULL, 0);
	s->runs = false;
	build_by_terms(s);
	point_release(l, inner);
	tir_end_if(l->tir, NULL, 0);
	point_release(l, mark);
}

void
scatter_build(Point *l, TensorId t, const IndexTask *task)
{
	Scatter s = {.l = l, .task = task, .t = t, .type = reduction_type(l->g, l->node),
	             .direct = scatter_is_direct(l->g, l->node)};
	Reduction needs = reduction_begin(l);
	if (l->tir->form == TIR_BLOCK && task->axes.divided >= 0)
		s.list = scatter_list_size(l->tir->threads);
	open_planes(&s, t, &needs);
	s.runs = scatter_has_runs(&s) && (s.direct || one_list(&s));
	if (s.list.asked)
		scatter_open_list(&s);
	if (s.runs && !s.direct)
		build_by_list(&s);
	else
		build_by_terms(&s);
}
