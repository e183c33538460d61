/* sema_dom.c: sets of conjuncts, the algebra of where a value is present.
 *
 * A conjunct "nonempty(C)" is a READ of an ANY node whose guard is C; Sema.nonempty marks it. It is
 * dropped once another conjunct, an index in scope or the first or last value of the range shows
 * that C holds somewhere. */
#include "frontend/sema.h"
#include "ir/bugs.h"

#include <string.h>

const Dom dom_none;

Dom
dom_append(Sema *s, Dom d, ExprId cond)
{
	for (uint32_t i = 0; i < d.n; i++)
		if (d.at[i] == cond)
			return d;
	ExprId *at = ARENA_ARRAY(s->arena, ExprId, d.n + 1);
	if (d.n)
		memcpy(at, d.at, d.n * sizeof *at);
	at[d.n] = cond;
	return (Dom){d.n + 1, at};
}

static bool
is_int_compare(const Graph *g, ExprId c)
{
	Op op = (Op)expr_get(g, c)->op;
	return (op == OP_EQ || op == OP_NE || op == OP_LT || op == OP_LE) &&
	       dtype_is_int((DType)expr_get(g, expr_arg(g, c, 0))->dtype);
}

/* !c with the negation pushed inwards as far as it keeps the meaning (NaN compares false). */
ExprId
cond_not(Sema *s, ExprId c)
{
	Graph *g = s->g;
	Op op = (Op)expr_get(g, c)->op;
	if (op == OP_CONST)
		return expr_int(g, DT_BOOL, !expr_get(g, c)->imm.i);
	if (op == OP_NOT)
		return expr_arg(g, c, 0);
	if (op == OP_AND || op == OP_OR)
		return expr_binary(g, op == OP_AND ? OP_OR : OP_AND, cond_not(s, expr_arg(g, c, 0)),
		                   cond_not(s, expr_arg(g, c, 1)));
	if (op == OP_EQ || op == OP_NE)
		return expr_binary(g, op == OP_EQ ? OP_NE : OP_EQ, expr_arg(g, c, 0), expr_arg(g, c, 1));
	if (is_int_compare(g, c))
		return expr_binary(g, op == OP_LT && !BUG(negation_loses_equality) ? OP_LE : OP_LT, expr_arg(g, c, 1),
		                   expr_arg(g, c, 0));
	return expr_unary(g, OP_NOT, c);
}

/* Comparisons of indices in canonical form, so that equal conditions have equal ids. */
static ExprId
cond_norm(Sema *s, ExprId c)
{
	Graph *g = s->g;
	Op op = (Op)expr_get(g, c)->op;
	if (op == OP_AND || op == OP_OR)
		return expr_binary(g, op, cond_norm(s, expr_arg(g, c, 0)), cond_norm(s, expr_arg(g, c, 1)));
	if (op == OP_NOT)
		return expr_unary(g, op, cond_norm(s, expr_arg(g, c, 0)));
	if (is_int_compare(g, c) && expr_get(g, expr_arg(g, c, 0))->dtype == DT_I64)
		return expr_binary(g, op, tidy_index(s, expr_arg(g, c, 0)), tidy_index(s, expr_arg(g, c, 1)));
	return c;
}

/* Replaces axes of an ANY node: parallel ones by the read's subscripts, reduced ones by witnesses. */
static ExprId
instance(Sema *s, const Node *n, ExprId e, ExprId read, const ExprId *witness)
{
	ExprId sub[TG_MAX_AXES];
	for (unsigned a = 0; a < n->npar; a++)
		sub[a] = expr_arg(s->g, read, a);
	for (unsigned r = 0; r < n->nred; r++)
		sub[n->npar + r] = witness[r];
	return expr_subst_axes(s->g, e, sub, (unsigned)n->npar + n->nred);
}

static bool
holds(Sema *s, ExprId cond, Dom known)
{
	cond = cond_norm(s, cond);
	for (uint32_t i = 0; i < known.n; i++)
		if (known.at[i] == cond)
			return true;
	if (expr_get(s->g, cond)->op == OP_AND)
		return holds(s, expr_arg(s->g, cond, 0), known) && holds(s, expr_arg(s->g, cond, 1), known);
	return frame_prove(s, cond);
}

static bool
witness_holds(Sema *s, const Node *node, ExprId read, const ExprId *witness, Dom known)
{
	Graph *g = s->g;
	Node n = *node; /* the pool may move */
	for (unsigned r = 0; r < n.nred; r++) {
		const Axis *x = &n.axis[n.npar + r];
		ExprId lo = instance(s, &n, x->lo, read, witness), hi = instance(s, &n, x->hi, read, witness);
		if (!holds(s, expr_binary(g, OP_LE, lo, witness[r]), known) ||
		    !holds(s, expr_binary(g, OP_LT, witness[r], hi), known))
			return false;
	}
	return !n.guard || holds(s, instance(s, &n, n.guard, read, witness), known);
}

enum { MAX_WITNESS = 24 };

/* An index in scope that bears the name, else 0. */
static ExprId
same_name(Sema *s, Name name)
{
	for (const Frame *f = s->frame; f; f = f->up)
		for (uint32_t i = f->ivar.n; i-- > 0;)
			if (s->ivar.at[f->ivar.at[i]].name == name)
				return expr_ivar(s->g, f->ivar.at[i]);
	return 0;
}

static bool
nonempty_holds(Sema *s, ExprId read, Dom known)
{
	Graph *g = s->g;
	const Node *n = tensor_node(g, expr_get(g, read)->ref);
	Node node = *n;
	ExprId first[TG_MAX_AXES], last[TG_MAX_AXES], named[TG_MAX_AXES];
	bool all_named = true;
	ExprId one = expr_int(g, DT_I64, 1);
	for (unsigned r = 0; r < node.nred; r++) {
		const Axis *x = &node.axis[node.npar + r];
		first[r] = tidy_index(s, instance(s, &node, x->lo, read, first));
		last[r] = tidy_index(s, expr_binary(g, OP_SUB, instance(s, &node, x->hi, read, last), one));
		named[r] = same_name(s, x->name);
		all_named &= named[r] != 0;
	}
	if ((all_named && witness_holds(s, &node, read, named, known)) ||
	    witness_holds(s, &node, read, first, known) || witness_holds(s, &node, read, last, known))
		return true;
	if (node.nred != 1)
		return false;
	unsigned tried = 0;
	for (const Frame *f = s->frame; f; f = f->up)
		for (uint32_t i = f->ivar.n; i-- > 0 && tried < MAX_WITNESS; tried++) {
			ExprId v = expr_ivar(g, f->ivar.at[i]);
			if (v != named[0] && witness_holds(s, &node, read, &v, known))
				return true;
		}
	return false;
}

static bool
is_nonempty(const Sema *s, ExprId c)
{
	const Expr *e = expr_get(s->g, c);
	return e->op == OP_READ && e->ref < s->nonempty.n && s->nonempty.at[e->ref];
}

/* Drops the nonempty conjuncts that the others, or the facts, imply. */
static Dom
discharge(Sema *s, Dom d)
{
	for (uint32_t i = 0; i < d.n;) {
		bool drop = false;
		if (is_nonempty(s, d.at[i])) {
			uint32_t mark = facts_mark(s->facts);
			for (uint32_t k = 0; k < d.n; k++)
				if (k != i && !is_nonempty(s, d.at[k]))
					facts_push(s->facts, d.at[k]);
			drop = BUG(nonempty_discharged) || nonempty_holds(s, d.at[i], d);
			facts_pop(s->facts, mark);
		}
		if (!drop) {
			i++;
			continue;
		}
		ExprId *at = ARENA_ARRAY(s->arena, ExprId, d.n);
		memcpy(at, d.at, i * sizeof *at);
		memcpy(at + i, d.at + i + 1, (d.n - i - 1) * sizeof *at);
		d = (Dom){d.n - 1, at};
	}
	return d;
}

static Dom
add_split(Sema *s, Dom d, ExprId c)
{
	Graph *g = s->g;
	const Expr *e = expr_get(g, c);
	if (e->op == OP_CONST && e->imm.i)
		return d;
	if (e->op == OP_AND) {
		ExprId right = expr_arg(g, c, 1);
		return add_split(s, add_split(s, d, expr_arg(g, c, 0)), right);
	}
	if (e->op == OP_NOT) {
		ExprId inner = expr_arg(g, c, 0), pushed = cond_not(s, inner);
		if (pushed != c)
			return add_split(s, d, pushed);
	}
	c = cond_norm(s, c);
	return conjunct_holds(s, c) ? d : dom_append(s, d, c);
}

Dom
dom_add(Sema *s, Dom d, ExprId cond)
{
	return cond ? discharge(s, add_split(s, d, cond)) : d;
}

Dom
dom_join(Sema *s, Dom a, Dom b)
{
	if (b.n == 0)
		return a;
	if (a.n == 0)
		return b;
	for (uint32_t i = 0; i < b.n; i++)
		a = dom_append(s, a, b.at[i]);
	return discharge(s, a);
}

Dom
dom_imply(Sema *s, ExprId cond, bool negate, Dom d)
{
	Dom out = dom_none;
	ExprId open = negate != BUG(mask_of_other_arm) ? cond : cond_not(s, cond); /* where nothing is asked */
	for (uint32_t i = 0; i < d.n; i++)
		out = dom_append(s, out, expr_binary(s->g, OP_OR, open, d.at[i]));
	return out;
}

ExprId
dom_expr(Sema *s, Dom d)
{
	ExprId e = 0;
	for (uint32_t i = d.n; i-- > 0;)
		e = e ? expr_binary(s->g, OP_AND, d.at[i], e) : d.at[i];
	return e;
}

Dom
dom_subst_axes(Sema *s, Dom d, const ExprId *sub, unsigned n)
{
	Dom out = dom_none;
	for (uint32_t i = 0; i < d.n; i++)
		out = dom_add(s, out, expr_subst_axes(s->g, d.at[i], sub, n));
	return out;
}

Dom
dom_to_axes(Sema *s, Dom d, const IvarId *ivar, unsigned n)
{
	Dom out = dom_none;
	ExprId to[TG_MAX_AXES];
	for (unsigned k = 0; k < n; k++)
		to[k] = expr_axis(s->g, k);
	for (uint32_t i = 0; i < d.n; i++)
		out = dom_append(s, out, expr_ivars_to_axes(s, d.at[i], ivar, to, n));
	return out;
}

/* nonempty(C) that depends on dims alone: as a check on the first or the last value of the range. */
static bool
nonempty_check(Sema *s, ExprId read)
{
	Graph *g = s->g;
	Node n = *tensor_node(g, expr_get(g, read)->ref);
	if (n.npar || expr_has_read(s, n.guard) || expr_has_real(s, n.guard))
		return false;
	ExprId either = 0;
	for (int end = 0; end < (n.guard ? 2 : 1); end++) {
		ExprId w[TG_MAX_AXES], c = 0;
		for (unsigned r = 0; r < n.nred; r++) {
			ExprId lo = instance(s, &n, n.axis[r].lo, read, w), hi = instance(s, &n, n.axis[r].hi, read, w);
			if (expr_has_read(s, lo) || expr_has_read(s, hi) || expr_has_real(s, lo) || expr_has_real(s, hi))
				return false;
			w[r] = end == 0 ? lo : index_norm(g, expr_binary(g, OP_SUB, hi, expr_int(g, DT_I64, 1)));
			c = expr_and(g, c, expr_binary(g, OP_LT, lo, hi));
		}
		if (n.guard)
			c = expr_and(g, c, instance(s, &n, n.guard, read, w));
		either = either ? expr_binary(g, OP_OR, either, c) : c;
	}
	const Tensor *t = &g->tensor.at[expr_get(g, read)->ref];
	add_check(s, either, t->at, DIAG_E0703,
	          arena_text(s->arena, "the range of `%s` in `%s` is not empty",
	                     name_text(s->names, n.axis[0].name), source_text(s, t->at)));
	return true;
}

Dom
dom_settle(Sema *s, Dom d)
{
	Dom out = dom_none;
	d = discharge(s, d);
	for (uint32_t i = 0; i < d.n; i++)
		if (!prove(s->facts, d.at[i]) && !(is_nonempty(s, d.at[i]) && nonempty_check(s, d.at[i])))
			out = dom_append(s, out, d.at[i]);
	return out;
}

/* --- the indices of an expression --- */

typedef struct {
	Sema *s;
	IvarSet *set;
	bool read, real;
} Scan;

static void
scan_visit(void *user, ExprId e)
{
	Scan *c = user;
	const Expr *p = expr_get(c->s->g, e);
	c->real |= dtype_is_float((DType)p->dtype) || p->dtype == DT_C64;
	if (p->op == OP_READ)
		c->read |= c->s->g->tensor.at[p->ref].kind != TENSOR_SCALAR;
	if (p->op != OP_IVAR || !c->set)
		return;
	uint32_t i = 0;
	while (i < c->set->n && c->set->at[i] < p->ref)
		i++;
	if (i < c->set->n && c->set->at[i] == p->ref)
		return;
	vec_push(c->s->arena, c->set, 0);
	memmove(c->set->at + i + 1, c->set->at + i, (c->set->n - 1 - i) * sizeof *c->set->at);
	c->set->at[i] = p->ref;
}

void
expr_ivars(Sema *s, ExprId e, IvarSet *set)
{
	Scan c = {s, set, false, false};
	expr_walk(s->g, s->arena, e, scan_visit, &c);
}

bool
ivar_set_has(const IvarSet *set, IvarId v)
{
	for (uint32_t i = 0; i < set->n; i++)
		if (set->at[i] == v)
			return true;
	return false;
}

bool
expr_has_ivar(Sema *s, ExprId e, const IvarId *ivar, unsigned n)
{
	IvarSet set = {0};
	expr_ivars(s, e, &set);
	for (unsigned k = 0; k < n; k++)
		if (ivar_set_has(&set, ivar[k]))
			return true;
	return false;
}

bool
expr_has_read(Sema *s, ExprId e)
{
	Scan c = {s, NULL, false, false};
	expr_walk(s->g, s->arena, e, scan_visit, &c);
	return c.read;
}

bool
expr_has_real(Sema *s, ExprId e)
{
	Scan c = {s, NULL, false, false};
	expr_walk(s->g, s->arena, e, scan_visit, &c);
	return c.real;
}

typedef struct {
	const IvarId *ivar;
	const ExprId *to;
	unsigned n;
} ToAxes;

static ExprId
axis_leaf(void *user, Graph *g, ExprId e)
{
	const ToAxes *t = user;
	const Expr *p = expr_get(g, e);
	if (p->op == OP_IVAR)
		for (unsigned k = 0; k < t->n; k++)
			if (t->ivar[k] == p->ref)
				return t->to[k];
	return e;
}

ExprId
expr_ivars_to_axes(Sema *s, ExprId e, const IvarId *ivar, const ExprId *to, unsigned n)
{
	ToAxes t = {ivar, to, n};
	return expr_rewrite(s->g, e, axis_leaf, &t);
}
