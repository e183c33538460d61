/* sema_hoist.c: makes a reduction a node of its own and reads it where it stood.
 *
 * The node's axes are the free indices of the reduction, and those that their ranges depend on; an axis is
 * a box around its index's values, as long as the dims alone say. Its domain is where the value is asked for. */
#include "frontend/sema.h"

typedef struct {
	ExprId value;  /* the index, over AXIS k */
	ExprId sub;    /* the subscript that reads it, over ivars */
	ExprId extent;
} Box;

ExprId
at_least_zero(Sema *s, ExprId e)
{
	ExprId zero = expr_int(s->g, DT_I64, 0);
	e = index_norm(s->g, e);
	if (prove(s->facts, expr_binary(s->g, OP_LE, zero, e)))
		return e;
	return expr_binary(s->g, OP_MAX, zero, e);
}

/* The axis that stands for index v: where it starts and how long it is. */
static bool
make_box(Sema *s, IvarId id, unsigned axis, Box *out)
{
	Graph *g = s->g;
	Ivar v = s->ivar.at[id];
	ExprId self = expr_ivar(g, id), low = v.lo, high = v.hi;
	if (v.in_range && v.clamp) {
		low = expr_int(g, DT_I64, 0);
		high = v.clamp;
	} else if (v.in_range || expr_has_real(s, low) || expr_has_real(s, high)) {
		high = prove_bound(s->facts, v.hi, true);
		low = prove_bound(s->facts, v.lo, false);
		if (!low || !high || expr_has_real(s, low) || expr_has_real(s, high)) {
			Diag *d = diag_add(s->diags, DIAG_E0912, v.at,
			                   "the range of `%s` has no bound known from the dims, and a reduction inside depends on it",
			                   name_text(s->names, v.name));
			d->help = "let the index subscript an axis alone, so that its range is cut to that axis, or end it at min(…, N)";
			return false;
		}
	}
	bool zero = expr_get(g, low)->op == OP_CONST && expr_get(g, low)->imm.i == 0;
	ExprId k = expr_axis(g, axis);
	out->value = zero ? k : expr_binary(g, OP_ADD, k, low);
	out->sub = zero ? self : index_norm(g, expr_binary(g, OP_SUB, self, low));
	out->extent = at_least_zero(s, zero ? high : expr_binary(g, OP_SUB, high, low));
	return true;
}

static bool
is_bound(const Reduction *r, IvarId v)
{
	for (unsigned k = 0; k < r->nbound; k++)
		if (r->bound[k] == v)
			return true;
	return false;
}

/* The free indices of the reduction, and of the ranges of those. */
static void
free_ivars(Sema *s, const Reduction *r, IvarSet *set)
{
	IvarSet all = {0};
	expr_ivars(s, r->body, &all);
	for (uint32_t i = 0; i < r->guard.n; i++)
		expr_ivars(s, r->guard.at[i], &all);
	for (uint32_t i = 0; i < r->outward.n; i++)
		expr_ivars(s, r->outward.at[i], &all);
	for (uint32_t i = 0; r->need_all && i < r->path.n; i++)
		expr_ivars(s, r->path.at[i], &all);
	for (unsigned k = 0; k < r->nbound; k++) {
		Ivar v = s->ivar.at[r->bound[k]];
		expr_ivars(s, v.lo, &all);
		expr_ivars(s, v.hi, &all);
	}
	for (const Frame *f = r->leans ? s->frame : NULL; f; f = f->up)
		for (uint32_t i = 0; i < f->ivar.n; i++) {
			Ivar v = s->ivar.at[f->ivar.at[i]];
			if (v.in_range) {
				expr_ivars(s, v.lo, &all);
				expr_ivars(s, v.hi, &all);
			}
		}
	for (uint32_t n = 0; n != all.n;) {
		n = all.n;
		for (uint32_t i = 0; i < n; i++) {
			Ivar v = s->ivar.at[all.at[i]];
			if (v.in_range && !is_bound(r, all.at[i])) {
				expr_ivars(s, v.lo, &all);
				expr_ivars(s, v.hi, &all);
			}
		}
	}
	for (uint32_t i = 0; i < all.n; i++)
		if (!is_bound(r, all.at[i]))
			vec_push(s->arena, set, all.at[i]);
}

static bool
within(Sema *s, ExprId e, const IvarSet *set)
{
	IvarSet own = {0};
	expr_ivars(s, e, &own);
	for (uint32_t i = 0; i < own.n; i++)
		if (!ivar_set_has(set, own.at[i]))
			return false;
	return true;
}

/* The conditions, as far as the axes can say them. One may read only where those before it hold, so
 * once one is left out no later one that reads is kept. */
static ExprId
and_within(Sema *s, ExprId d, Dom conds, const IvarSet *set)
{
	bool all = true;
	for (uint32_t i = 0; i < conds.n; i++) {
		if (within(s, conds.at[i], set) && (all || !expr_has_read(s, conds.at[i])))
			d = expr_and(s->g, d, conds.at[i]);
		else
			all = false;
	}
	return d;
}

static bool
same_range(const Sema *s, IvarId a, IvarId b)
{
	return s->ivar.at[a].lo == s->ivar.at[b].lo && s->ivar.at[a].hi == s->ivar.at[b].hi;
}

/* That the range of an outer index is not empty; 0 where that is known, or one of the node's own
 * indices has that range, so that nothing is evaluated when it is. */
static ExprId
has_value(Sema *s, const Reduction *r, const IvarSet *set, IvarId id)
{
	Ivar v = s->ivar.at[id];
	for (unsigned k = 0; k < r->nbound; k++)
		if (same_range(s, r->bound[k], id))
			return 0;
	for (uint32_t i = 0; i < set->n; i++)
		if (same_range(s, set->at[i], id))
			return 0;
	const Expr *lo = expr_get(s->g, v.lo), *hi = expr_get(s->g, v.hi);
	if (lo->op == OP_CONST && hi->op == OP_CONST && lo->imm.i < hi->imm.i)
		return 0;
	return expr_binary(s->g, OP_LT, v.lo, v.hi);
}

/* Where the node's value is asked for. */
static ExprId
domain_of(Sema *s, const Reduction *r, const IvarSet *set)
{
	ExprId d = 0;
	for (uint32_t i = 0; i < set->n; i++) {
		Ivar v = s->ivar.at[set->at[i]];
		if (!v.in_range)
			continue;
		ExprId self = expr_ivar(s->g, set->at[i]);
		d = expr_and(s->g, d, expr_binary(s->g, OP_LE, v.lo, self));
		d = expr_and(s->g, d, expr_binary(s->g, OP_LT, self, v.hi));
	}
	for (const Frame *f = r->leans ? s->frame : NULL; f; f = f->up)
		for (uint32_t i = 0; i < f->ivar.n; i++)
			if (!ivar_set_has(set, f->ivar.at[i]))
				d = expr_and(s->g, d, has_value(s, r, set, f->ivar.at[i]));
	if (r->need_all)
		d = and_within(s, d, r->path, set);
	d = and_within(s, d, r->outward, set);
	return r->need_all ? d : and_within(s, d, r->path, set);
}

ExprId
hoist(Sema *s, const Reduction *r)
{
	Graph *g = s->g;
	IvarSet set = {0};
	free_ivars(s, r, &set);
	if (set.n > TG_MAX_RANK) {
		diag_add(s->diags, DIAG_E0920, r->at, "this reduction depends on %u indices; at most %d can be kept", set.n,
		         TG_MAX_RANK)->help = "define a part of it that depends on fewer, and use its name here";
		return 0;
	}
	Node n = {.npar = (uint8_t)set.n, .nred = (uint8_t)r->nbound, .monoid = r->monoid};
	IvarId ivar[TG_MAX_AXES];
	ExprId to[TG_MAX_AXES], sub[TG_MAX_RANK], extent[TG_MAX_RANK];
	for (unsigned k = 0; k < set.n; k++) {
		Box b;
		if (!make_box(s, set.at[k], k, &b))
			return 0;
		ivar[k] = set.at[k];
		to[k] = b.value;
		sub[k] = b.sub;
		extent[k] = b.extent;
		n.axis[k].name = s->ivar.at[set.at[k]].name;
	}
	unsigned nall = set.n + r->nbound;
	for (unsigned k = 0; k < r->nbound; k++) {
		ivar[set.n + k] = r->bound[k];
		to[set.n + k] = expr_axis(g, set.n + k);
	}
	for (unsigned k = 0; k < r->nbound; k++) {
		Ivar v = s->ivar.at[r->bound[k]];
		Axis *x = &n.axis[set.n + k];
		x->name = v.name;
		x->lo = expr_ivars_to_axes(s, v.lo, ivar, to, nall);
		x->hi = expr_ivars_to_axes(s, v.hi, ivar, to, nall);
		x->clamp = v.clamp;
		x->cut = v.cut;
	}
	n.body = expr_ivars_to_axes(s, r->body, ivar, to, nall);
	n.guard = expr_ivars_to_axes(s, dom_expr(s, r->guard), ivar, to, nall);
	n.domain = expr_ivars_to_axes(s, domain_of(s, r, &set), ivar, to, nall);
	TensorId t = node_shared(s, &n, r->name, r->at, r->dtype, extent);
	return expr_read(g, t, sub, set.n, 0);
}
