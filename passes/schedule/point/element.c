/* element.c: one element of a node at a point:
 *
 *     domain ? finish(fold over the reduced ranges of the body where the guard holds) : 0
 *
 * Ranges are evaluated at each level, as they may depend on what is outside of them; the guard is a
 * branch around the body, so that absent terms cost their test. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

/* --- branches --- */

Branch
branch_open(Point *l, ValId cond)
{
	tir_if(l->tir, cond);
	return (Branch){point_mark(l)};
}

static unsigned
list_of(PointVal v, ValId *list)
{
	const ValId all[4] = {v.re, v.im, v.fail, v.cut};
	unsigned n = 0;
	for (unsigned k = 0; k < 4; k++)
		if (all[k])
			list[n++] = all[k];
	return n;
}

PointVal
branch_close(Point *l, Branch b, DType dtype, PointVal v)
{
	ValId list[4];
	unsigned n = list_of(v, list);
	point_release(l, b.mark);
	tir_else(l->tir, list, n);
	PointVal none = point_zero(l, dtype);
	none.fail = v.fail ? tir_int(l->tir, DT_U32, 0) : 0;
	none.cut = v.cut ? tir_int(l->tir, DT_U32, 0) : 0;
	list_of(none, list);
	tir_end_if(l->tir, list, n);
	ValId *const all[4] = {&v.re, &v.im, &v.fail, &v.cut};
	n = 0;
	for (unsigned k = 0; k < 4; k++)
		if (*all[k])
			*all[k] = list[n++];
	return v;
}

/* --- the fold --- */

bool
expr_is_true(const Graph *g, ExprId e)
{
	return !e || (expr_get(g, e)->op == OP_CONST && expr_get(g, e)->imm.i);
}

void
element_term(Point *l, Reduction *f, ValId position, bool always)
{
	if (expr_is_true(l->g, l->node->guard) || BUG(guard_dropped)) {
		reduction_term(l, f, position, always);
		return;
	}
	ValId carried[REDUCTION_MAX_CARRIED], before[REDUCTION_MAX_CARRIED];
	PointVal guard = point_value(l, l->node->guard, always);
	reduction_join(l, f, guard);
	unsigned n = reduction_pack(f, before);
	Branch b = branch_open(l, guard.re);
	reduction_term(l, f, position, always);
	reduction_pack(f, carried);
	point_release(l, b.mark);
	tir_else(l->tir, carried, n);
	tir_end_if(l->tir, before, n);
	reduction_unpack(f, before);
}

void
element_range(Point *l, unsigned a, ValId *lo, ValId *hi, PointVal *words, bool always)
{
	const Axis *axis = &l->node->axis[a];
	PointVal from = point_value(l, axis->lo, always), to = point_value(l, axis->hi, always);
	point_join(l, words, from);
	point_join(l, words, to);
	*lo = from.re;
	*hi = BUG(last_term_missing) ? tir_binary(l->tir, OP_SUB, to.re, tir_int(l->tir, DT_I64, 1)) : to.re;
	if (!axis->clamp)
		return;
	PointVal clamp = point_value(l, axis->clamp, always);
	point_join(l, words, clamp);
	ValId zero = tir_int(l->tir, DT_I64, 0);
	ValId outside = tir_binary(l->tir, OP_OR, tir_binary(l->tir, OP_LT, *lo, zero),
	                           tir_binary(l->tir, OP_LT, clamp.re, *hi));
	ValId removed = tir_binary(l->tir, OP_AND, tir_binary(l->tir, OP_LT, *lo, *hi), outside);
	*lo = tir_binary(l->tir, OP_MAX, *lo, zero);
	*hi = tir_binary(l->tir, OP_MIN, *hi, clamp.re);
	if (axis->cut && !BUG(cut_unreported))
		point_join(l, words, (PointVal){.cut = tir_select(l->tir, removed, tir_int(l->tir, DT_U32, axis->cut),
		                                                tir_int(l->tir, DT_U32, 0))});
}

typedef struct {
	ValId carried[REDUCTION_MAX_CARRIED];
	unsigned n;
	uint32_t mark;
} Level;

/* The loops over the reduced axes, outermost first. The position of a term is that of its indices,
 * each counted from the lower end of its range, in row-major order of the ranges. */
static void
fold_ranges(Point *l, Reduction *f)
{
	const Node *n = l->node;
	Level level[TG_MAX_AXES];
	ValId position = f->position;
	for (unsigned k = 0; k < n->nred; k++) {
		unsigned a = n->npar + k;
		ValId lo, hi;
		PointVal words = {0};
		element_range(l, a, &lo, &hi, &words, true);
		reduction_join(l, f, words);
		Level *at = &level[k];
		at->n = reduction_pack(f, at->carried);
		at->mark = point_mark(l);
		l->axis[a] = tir_for(l->tir, lo, hi, tir_int(l->tir, DT_I64, 1), at->carried, at->n);
		reduction_unpack(f, at->carried);
		if (!position)
			continue;
		ValId outer = tir_binary(l->tir, OP_MUL, position, tir_binary(l->tir, OP_SUB, hi, lo));
		position = tir_binary(l->tir, OP_ADD, outer, tir_binary(l->tir, OP_SUB, l->axis[a], lo));
	}
	element_term(l, f, position, true);
	for (unsigned k = n->nred; k-- > 0;) {
		reduction_pack(f, level[k].carried);
		tir_end_for(l->tir, level[k].carried, level[k].n);
		reduction_unpack(f, level[k].carried);
		point_release(l, level[k].mark);
		l->axis[n->npar + k] = 0;
	}
}

/* --- the element --- */

PointVal
element_finish(Point *l, PointVal folded, ValId touched, bool always)
{
	const Node *n = l->node;
	const Tensor *t = &l->g->tensor.at[n->out];
	if (n->finish) {
		l->acc = folded;
		l->acc_type = n->monoid == MON_NONE ? (DType)expr_get(l->g, n->body)->dtype : reduction_type(l->g, n);
		l->touched = touched;
		PointVal v = point_value(l, n->finish, always);
		point_join(l, &v, folded); /* the fold was demanded, whatever finish does with it */
		return v;
	}
	if (t->dtype != DT_C64)
		folded.re = tir_cast(l->tir, t->dtype, folded.re);
	return folded;
}

PointVal
element_fold(Point *l)
{
	Reduction f = reduction_begin(l);
	fold_ranges(l, &f);
	return reduction_end(l, &f);
}

static PointVal
demanded_value(Point *l)
{
	const Node *n = l->node;
	if (n->monoid == MON_NONE)
		return element_finish(l, point_value(l, n->body, true), tir_int(l->tir, DT_BOOL, 1), true);
	Reduction f = reduction_begin(l);
	fold_ranges(l, &f);
	return element_finish(l, reduction_end(l, &f), f.touched, true);
}

PointVal
element_value(Point *l)
{
	const Node *n = l->node;
	if (expr_is_true(l->g, n->domain) || BUG(domain_dropped))
		return demanded_value(l);
	PointVal domain = point_value(l, n->domain, true);
	Branch b = branch_open(l, domain.re);
	return branch_close(l, b, l->g->tensor.at[n->out].dtype, demanded_value(l));
}

PointVal
element_where(Point *l, PointVal v)
{
	ValId domain = point_value(l, l->node->domain, true).re, none = tir_int(l->tir, DT_U32, 0);
	PointVal zero = point_zero(l, l->g->tensor.at[l->node->out].dtype);
	v.re = tir_select(l->tir, domain, v.re, zero.re);
	v.im = v.im ? tir_select(l->tir, domain, v.im, zero.im) : 0;
	v.fail = v.fail ? tir_select(l->tir, domain, v.fail, none) : 0;
	v.cut = v.cut ? tir_select(l->tir, domain, v.cut, none) : 0;
	return v;
}
