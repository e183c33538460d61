/* sema_frame.c: frames and the accesses that wait in them.
 *
 * Inside a frame the facts are those of the graph, the ranges of all indices in scope, and the
 * conditions met since the frame began. Conditions from outside stay hidden at first: what is proved
 * without them makes a node that stands on its own, and is shared with every equal one. */
#include "frontend/sema.h"
#include "ir/bugs.h"

static void
push_range(Sema *s, IvarId id)
{
	Ivar v = s->ivar.at[id];
	ExprId e = expr_ivar(s->g, id);
	if (!v.lo)
		return;
	facts_push_range(s->facts, e, v.lo, v.hi);
	if (v.clamp) {
		facts_push(s->facts, expr_binary(s->g, OP_LE, expr_int(s->g, DT_I64, 0), e));
		facts_push(s->facts, expr_binary(s->g, OP_LT, e, v.clamp));
	}
}

static void
push_ranges(Sema *s, const Frame *f)
{
	if (!f)
		return;
	push_ranges(s, f->up);
	for (uint32_t i = 0; i < f->ivar.n; i++)
		push_range(s, f->ivar.at[i]);
}

static void
push_path(Sema *s, Dom path)
{
	for (uint32_t i = 0; i < path.n; i++)
		facts_push(s->facts, path.at[i]);
}

/* All that is known in the frame beyond the facts of the graph. */
static void
push_all(Sema *s, Frame *f)
{
	push_ranges(s, f->up);
	f->inner = facts_mark(s->facts);
	for (uint32_t i = 0; i < f->ivar.n; i++)
		push_range(s, f->ivar.at[i]);
	push_path(s, f->path);
}

void
frame_push(Sema *s, Frame *f, Def *def)
{
	*f = (Frame){.up = s->frame, .def = def ? def : s->frame ? s->frame->def : NULL};
	facts_pop(s->facts, s->base);
	push_ranges(s, s->frame);
	f->inner = facts_mark(s->facts);
	s->frame = f;
}

void
frame_pop(Sema *s)
{
	Frame *f = s->frame->up;
	s->frame = f;
	facts_pop(s->facts, s->base);
	if (f)
		push_all(s, f);
}

void
frame_bind(Sema *s, IvarId v)
{
	vec_push(s->arena, &s->frame->ivar, v);
	push_range(s, v);
}

PathMark
path_mark(const Sema *s)
{
	return (PathMark){s->frame->path, s->frame->branch, facts_mark(s->facts), s->frame->duty.n};
}

static Dom
and_one_more(Sema *s, Dom d, ExprId cond)
{
	ExprId *at = ARENA_ARRAY(s->arena, ExprId, d.n + 1);
	for (uint32_t i = 0; i < d.n; i++)
		at[i] = d.at[i];
	at[d.n] = cond;
	return (Dom){d.n + 1, at};
}

void
path_push_dom(Sema *s, Dom d)
{
	Frame *f = s->frame;
	for (uint32_t i = 0; i < d.n; i++)
		f->path = and_one_more(s, f->path, d.at[i]);
	push_path(s, d);
}

void
path_push(Sema *s, ExprId cond)
{
	path_push_dom(s, (Dom){1, &cond});
	s->frame->branch = and_one_more(s, s->frame->branch, cond);
}

void
path_reset(Sema *s, PathMark mark)
{
	s->frame->path = mark.path;
	s->frame->branch = mark.branch;
	facts_pop(s->facts, mark.facts);
}

void
duties_limit(Sema *s, PathMark mark, Dom dom)
{
	for (uint32_t i = mark.duty; dom.n && i < s->frame->duty.n; i++)
		s->frame->duty.at[i].path = dom_join(s, s->frame->duty.at[i].path, dom);
}

static Dom
path_from(Sema *s, const Frame *f)
{
	Dom d = dom_none;
	for (; f; f = f->up)
		for (uint32_t i = 0; i < f->path.n; i++)
			d = dom_append(s, d, f->path.at[i]);
	return d;
}

Dom
outer_path(Sema *s)
{
	return path_from(s, s->frame);
}

static ExprId
in_bounds(Sema *s, const Obligation *o)
{
	Graph *g = s->g;
	return expr_binary(g, OP_AND, expr_binary(g, OP_LE, expr_int(g, DT_I64, 0), o->sub),
	                   expr_binary(g, OP_LT, o->sub, o->extent));
}

bool
frame_prove(Sema *s, ExprId cond)
{
	Frame *f = s->frame;
	bool ok = prove(s->facts, cond);
	if (ok && !f->leans && f->inner > s->base)
		f->leans = !prove_without(s->facts, s->base, f->inner, cond);
	return ok;
}

/* A reduction's frame: a conjunct without one of its indices goes on outward. */
static bool
is_of_reduction(const Frame *f)
{
	return f->up && f->up->def == f->def;
}

static bool
binds_one_of(const Frame *f, const IvarSet *set)
{
	for (uint32_t i = 0; i < f->ivar.n; i++)
		if (ivar_set_has(set, f->ivar.at[i]))
			return true;
	return false;
}

/* Where a conjunct that is met now stops on its way outward. */
static Frame *
absorbing_frame(Sema *s, ExprId cond)
{
	Frame *f = s->frame;
	IvarSet set = {0};
	expr_ivars(s, cond, &set);
	for (uint32_t i = 0; i < f->branch.n; i++)
		expr_ivars(s, f->branch.at[i], &set);
	while (is_of_reduction(f) && !binds_one_of(f, &set))
		f = f->up;
	return f;
}

/* Without what is known of the indices of the frames up to this one. */
static bool
holds_from(Sema *s, Frame *stop, ExprId cond)
{
	Frame *f = s->frame;
	uint32_t all = facts_mark(s->facts);
	facts_pop(s->facts, s->base);
	push_ranges(s, stop);
	f->inner = facts_mark(s->facts);
	for (uint32_t i = 0; i < f->path.n; i++) {
		bool inside = false;
		for (const Frame *k = f; k != stop && !inside; k = k->up)
			inside = expr_has_ivar(s, f->path.at[i], k->ivar.at, k->ivar.n);
		if (!inside)
			facts_push(s->facts, f->path.at[i]);
	}
	bool ok = frame_prove(s, cond);
	facts_pop(s->facts, s->base);
	push_all(s, f);
	if (facts_mark(s->facts) != all)
		bug(s->arena, "the facts of a frame are not what it was made of");
	return ok;
}

/* Inside of sum[l where l < d](…) d is at least 1; outside, where a conjunct on d goes, it is not. */
bool
conjunct_holds(Sema *s, ExprId cond)
{
	Frame *stop = absorbing_frame(s, cond);
	if (stop == s->frame || BUG(facts_of_own_index))
		return frame_prove(s, cond);
	return prove(s->facts, cond) && holds_from(s, stop, cond);
}

static bool
duty_holds(Sema *s, const Obligation *o, Dom more)
{
	uint32_t mark = facts_mark(s->facts);
	push_path(s, more);
	push_path(s, o->path);
	bool ok = frame_prove(s, in_bounds(s, o));
	facts_pop(s->facts, mark);
	return ok;
}

/* Any index of the subscript with an empty range: then nothing is accessed. */
static ExprId
some_range_empty(Sema *s, ExprId sub)
{
	IvarSet set = {0};
	ExprId any = 0;
	expr_ivars(s, sub, &set);
	for (uint32_t i = 0; i < set.n; i++) {
		Ivar v = s->ivar.at[set.at[i]];
		if (v.in_range)
			continue;
		ExprId c = expr_binary(s->g, OP_LE, v.hi, v.lo);
		any = any ? expr_binary(s->g, OP_OR, any, c) : c;
	}
	return any;
}

/* One side of the bound as a condition on dims: the extreme of the subscript over the ranges. */
static bool
side_check(Sema *s, const Obligation *o, bool upper, ExprId empty)
{
	Graph *g = s->g;
	ExprId zero = expr_int(g, DT_I64, 0);
	ExprId side = upper ? expr_binary(g, OP_LT, o->sub, o->extent) : expr_binary(g, OP_LE, zero, o->sub);
	if (frame_prove(s, side))
		return true;
	ExprId end = prove_bound(s->facts, o->sub, upper);
	if (!end || expr_has_real(s, end))
		return false;
	ExprId cond = upper ? expr_binary(g, OP_LT, end, o->extent) : expr_binary(g, OP_LE, zero, end);
	if (prove(s->facts, cond_not(s, cond)))
		return false;
	if (empty)
		cond = expr_binary(g, OP_OR, empty, cond);
	add_check(s, cond, o->at, DIAG_E0704,
	          arena_text(s->arena, "`%s` is within axis %u of `%s`", o->text, o->axis,
	                     name_text(s->names, o->tensor)));
	return true;
}

static void
refuse(Sema *s, const Obligation *o)
{
	Diag *d = diag_add(s->diags, DIAG_E0401, o->at, "`%s` can't be shown to stay within axis %u of `%s`",
	                   o->text, o->axis, name_text(s->names, o->tensor));
	d->label = "this subscript may leave the axis";
	d->help = arena_text(s->arena,
	                     "read it as `%s?[…]` where it may be absent, restrict the index with `where`, or state a "
	                     "fact about the dims after the signature",
	                     name_text(s->names, o->tensor));
}

static void
settle_duty(Sema *s, const Obligation *o, Dom dom)
{
	uint32_t mark = facts_mark(s->facts);
	push_path(s, dom);
	push_path(s, o->path);
	ExprId empty = some_range_empty(s, o->sub);
	if (!side_check(s, o, false, empty) || !side_check(s, o, true, empty))
		refuse(s, o);
	facts_pop(s->facts, mark);
}

bool
frame_settle(Sema *s, Dom dom)
{
	Frame *f = s->frame;
	bool outside = false;
	Dom outer = path_from(s, f->up);
	for (uint32_t i = 0; i < f->duty.n; i++) {
		Obligation o = f->duty.at[i];
		if (duty_holds(s, &o, dom))
			continue;
		if (outer.n && duty_holds(s, &o, dom_join(s, outer, dom)))
			outside = true;
		else
			settle_duty(s, &o, dom);
	}
	f->duty.n = 0;
	return outside;
}
