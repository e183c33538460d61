/* accumulate.c: the accumulators and anchors of the pass being derived. Equal terms share one. */
#include "passes/fuse/formula.h"
#include "passes/fuse/frame.h"
#include "passes/expr_map.h"

#include <float.h>

ExprId
placeholder(Graph *g, uint32_t base, unsigned k, DType t)
{
	return expr_make(g, OP_IVAR, t, base + k, 0, NULL, 0);
}

static CascadePass *
pass_of(Frame *f)
{
	return &f->out->pass[f->pass];
}

typedef struct {
	Frame *f;
	uint32_t anchors, axes;
	unsigned stage;
} Uses;

/* What a term or an anchor's value is made of: axes, anchors, accumulators. */
static void
note_use(void *user, ExprId e)
{
	Uses *u = user;
	const Expr *p = expr_get(u->f->g, e);
	const CascadePass *s = pass_of(u->f);
	if (p->op == OP_AXIS && p->ref < u->f->out->npar)
		u->axes |= 1u << p->ref;
	if (p->op != OP_IVAR)
		return;
	if (p->ref >= ANCHOR_NEW) {
		unsigned k = p->ref - ANCHOR_NEW;
		u->anchors |= 1u << k;
		u->axes |= s->anchor[k].axes;
		u->stage = s->anchor[k].stage + 1 > u->stage ? s->anchor[k].stage + 1 : u->stage;
	} else if (p->ref >= STATE_A && p->ref < STATE_B) {
		unsigned k = p->ref - STATE_A;
		u->axes |= s->acc[k].axes;
		u->stage = s->acc[k].stage > u->stage ? s->acc[k].stage : u->stage;
	}
}

static Uses
uses_of(Frame *f, ExprId e)
{
	Uses u = {.f = f};
	expr_walk(f->g, f->scratch, e, note_use, &u);
	return u;
}

/* Which elements there are may depend on the parallel axes too. */
static uint32_t
axes_of_domain(Frame *f)
{
	const Cascade *c = f->out;
	uint32_t axes = c->guard ? expr_axes(f->g, f->scratch, c->guard) : 0;
	for (unsigned k = c->npar; k < c->npar + c->nred; k++) {
		axes |= expr_axes(f->g, f->scratch, c->axis[k].lo) | expr_axes(f->g, f->scratch, c->axis[k].hi);
		if (c->axis[k].clamp)
			axes |= expr_axes(f->g, f->scratch, c->axis[k].clamp);
	}
	return axes & ((1u << c->npar) - 1);
}

ExprId
add_acc(Frame *f, Algebra *a, Monoid monoid, DType t, ExprId term)
{
	CascadePass *p = pass_of(f);
	unsigned max = f->options->max_accs ? f->options->max_accs : MAX_ACCS;
	for (unsigned k = 0; k < p->nacc; k++)
		if (p->acc[k].monoid == monoid && p->acc[k].dtype == t && p->acc[k].term == term) {
			p->acc[k].narrowed &= f->narrowed[f->member];
			return placeholder(f->g, STATE_A, k, t);
		}
	if (p->nacc >= max || p->nacc == MAX_ACCS) {
		algebra_refuse(a, REMARK_cascade_wide, term);
		return 0;
	}
	Uses u = uses_of(f, term);
	p->acc[p->nacc] = (CascadeAcc){.monoid = monoid, .dtype = t, .term = term, .anchors = u.anchors,
	                               .axes = u.axes | axes_of_domain(f), .stage = u.stage, .narrowed = f->narrowed[f->member]};
	return placeholder(f->g, STATE_A, p->nacc++, t);
}

void
set_rebase(Frame *f, ExprId acc, ExprId rebase)
{
	CascadeAcc *a = &pass_of(f)->acc[expr_get(f->g, acc)->ref - STATE_A];
	if (!a->rebase) /* a shared one moves already: what its term is decides how */
		a->rebase = rebase;
}

ExprId
count_of(Frame *f, Algebra *a)
{
	CascadePass *p = pass_of(f);
	ExprId acc = add_acc(f, a, MON_SUM, DT_I64, expr_int(f->g, DT_I64, 1));
	if (acc) {
		p->seen = (int)(expr_get(f->g, acc)->ref - STATE_A);
		p->counted = true;
	}
	return acc;
}

ExprId
seen_of(Frame *f, Algebra *a)
{
	CascadePass *p = pass_of(f);
	if (p->counted)
		return expr_binary(f->g, OP_LT, expr_int(f->g, DT_I64, 0), placeholder(f->g, STATE_A, (unsigned)p->seen, DT_I64));
	ExprId acc = add_acc(f, a, MON_ANY, DT_BOOL, expr_int(f->g, DT_BOOL, 1));
	if (acc)
		p->seen = (int)(expr_get(f->g, acc)->ref - STATE_A);
	return acc;
}

static ExprId
swap_reads(Frame *f, ExprId e, const ExprId *value)
{
	Swap swap[MAX_MEMBERS];
	unsigned n = 0;
	for (unsigned k = 0; k < f->member; k++)
		if (f->out->member[k].pass == f->pass)
			swap[n++] = (Swap){f->read[k], value[k]};
	return formula_swap(f->g, f->scratch, e, swap, n);
}

ExprId
with_values(Frame *f, ExprId e)
{
	ExprId value[MAX_MEMBERS];
	for (unsigned k = 0; k < f->member; k++)
		value[k] = f->out->member[k].value;
	return swap_reads(f, e, value);
}

/* The number of elements there will be; 0 where a guard or a ragged range hides it. */
static ExprId
total_count(Frame *f)
{
	const Cascade *c = f->out;
	ExprId n = 0;
	if (c->guard)
		return 0;
	for (unsigned k = c->npar; k < c->npar + c->nred; k++) {
		const Axis *x = &c->axis[k];
		uint32_t axes = expr_axes(f->g, f->scratch, x->lo) | expr_axes(f->g, f->scratch, x->hi);
		if (x->clamp || axes >> c->npar)
			return 0;
		ExprId size = index_norm(f->g, expr_binary(f->g, OP_SUB, x->hi, x->lo));
		n = n ? expr_binary(f->g, OP_MUL, n, size) : size;
	}
	return n;
}

/* Of some of the elements, the number of all stands for theirs: a mean is the mean of what was seen. */
static ExprId
foreseen(Frame *f, Algebra *a, ExprId value)
{
	DType t = (DType)expr_get(f->g, value)->dtype;
	ExprId total = total_count(f), all = total ? expr_cast(f->g, t, total) : 0;
	if (!total || !expr_contains(f->g, f->scratch, value, all))
		return value;
	ExprId count = count_of(f, a);
	Swap swap = {all, count ? expr_cast(f->g, t, count) : 0};
	return count ? formula_swap(f->g, f->scratch, value, &swap, 1) : 0;
}

int
add_anchor(Frame *f, Algebra *a, ExprId t, AnchorEnd end)
{
	CascadePass *p = pass_of(f);
	DType type = (DType)expr_get(f->g, t)->dtype;
	ExprId value = foreseen(f, a, with_values(f, t));
	if (!value || !seen_of(f, a))
		return -1;
	double most = type == DT_F32 ? FLT_MAX : DBL_MAX;
	ExprId last = end ? expr_float(f->g, type, end == END_ABOVE ? most : -most) : 0, plain = value;
	if (end == END_UNKNOWN)
		value = formula_select(f->g, expr_binary(f->g, OP_LT, last, value), value, last);
	else if (end)
		value = expr_binary(f->g, end == END_BELOW ? OP_MAX : OP_MIN, value, last);
	for (unsigned k = 0; k < p->nanchor; k++) {
		ExprId same = p->anchor[k].value;
		if (same == value || (!end && (same == plain || (expr_get(f->g, same)->narg == 2 && expr_arg(f->g, same, 0) == plain &&
		                                                   expr_get(f->g, expr_arg(f->g, same, 1))->op == OP_CONST))))
			return (int)k;
	}
	if (p->nanchor == MAX_ANCHORS) {
		algebra_refuse(a, REMARK_cascade_wide, t);
		return -1;
	}
	Uses u = uses_of(f, value);
	p->anchor[p->nanchor] = (CascadeAnchor){type, value, u.axes, u.stage};
	return (int)p->nanchor++;
}
