/* sema_reduce.c: reductions, each a node of its own over the indices it depends on.
 *
 * A reduction absorbs the conjuncts in which one of its indices occurs and passes the others on; what
 * has its value only within the range is passed on as asked for where there is a term. A
 * max, min, mean or arg of nothing is absent: it adds the conjunct nonempty, a READ of an ANY node
 * over the same range and conditions. */
#include "frontend/sema.h"
#include "ir/bugs.h"

#include <string.h>

typedef enum { RED_sum, RED_prod, RED_max, RED_min, RED_any, RED_all, RED_mean, RED_argmax, RED_argmin, RED_count } RedKind;

static const struct {
	const char *name;
	Monoid monoid;
	bool may_be_absent;
} red_row[] = {
	[RED_sum] = {"sum", MON_SUM, false},       [RED_prod] = {"prod", MON_PROD, false},
	[RED_max] = {"max", MON_MAX, true},        [RED_min] = {"min", MON_MIN, true},
	[RED_any] = {"any", MON_ANY, false},       [RED_all] = {"all", MON_ALL, false},
	[RED_mean] = {"mean", MON_SUM, true},      [RED_argmax] = {"argmax", MON_ARGMAX, true},
	[RED_argmin] = {"argmin", MON_ARGMIN, true}, [RED_count] = {"count", MON_SUM, false},
};

enum { NRED = sizeof red_row / sizeof *red_row, MAX_BOUND = 12 };

static int
reduction_named(const char *text)
{
	for (int i = 0; i < NRED; i++)
		if (strcmp(red_row[i].name, text) == 0)
			return i;
	return -1;
}

void
near_reductions(NearName *n)
{
	for (int i = 0; i < NRED; i++)
		near_offer_name(n, red_row[i].name);
}

bool
is_reduction(Sema *s, Name name)
{
	return reduction_named(name_text(s->names, name)) >= 0;
}

/* --- binders --- */

typedef struct {
	IvarId ivar[MAX_BOUND];
	unsigned n;
	Env *env;      /* inside */
	Dom outward;   /* of the ranges' own expressions */
	bool failed;
} Binder;

static bool
name_is_taken(Sema *s, Env *env, const AstNode *n)
{
	const Entity *e = scope_find(env->scope, n->name);
	if (!e)
		return false;
	Diag *d = diag_add(s->diags, DIAG_E0218, n->at, "the index `%s` has the name of a %s", name_text(s->names, n->name),
	                   e->kind == ENT_DIM ? "dim" : e->kind == ENT_SCALAR ? "scalar" : "tensor");
	diag_note(s->diags, d, e->at, "defined here");
	d->help = "give the index another name";
	return true;
}

static void
bind_name(Sema *s, Binder *b, AstId name, Env *outer)
{
	AstNode n = *ast_get(s->ast, name);
	const Env *before = env_find(outer, n.name);
	bool formal = before && (before->what == BIND_INDEX || before->what == BIND_UNBOUND) && !outer->scope;
	uint32_t group = formal && before->ngroup ? before->ngroup : 1;
	b->failed |= name_is_taken(s, outer, &n);
	if (b->n + group > MAX_BOUND)
		arena_unwind(s->arena, UNWIND_LIMIT, "more than %d indices bound at once", MAX_BOUND);
	IvarId v[MAX_GROUP];
	for (uint32_t k = 0; k < group; k++)
		v[k] = b->ivar[b->n + k] = ivar_new(s, n.name, n.at);
	b->n += group;
	b->env = env_index(s, b->env, n.name, v, group);
	if (formal) {
		b->env->range_lo = before->range_lo;
		b->env->range_hi = before->range_hi;
		b->env->range_env = before->range_env;
	}
}

static bool
reads_outside(Sema *s, ExprId e)
{
	IvarSet set = {0};
	expr_ivars(s, e, &set);
	return set.n > 0 || expr_has_read(s, e);
}

static void
written_range(Sema *s, Binder *b, IvarId id, AstId lo, AstId hi, Env *env)
{
	ExprId l = elab_index(s, lo, env, &b->outward, "the start of a range");
	ExprId h = elab_index(s, hi, env, &b->outward, "the end of a range");
	if (!l || !h) {
		b->failed = true;
		return;
	}
	Ivar *v = &s->ivar.at[id];
	v->lo = l;
	v->hi = h;
	v->in_range = reads_outside(s, l) || reads_outside(s, h);
}

/* Ranges that are written or given by a call; elaborated outside the binder. */
static void
written_ranges(Sema *s, Binder *b, AstId subs, Env *outer)
{
	unsigned at = 0;
	for (unsigned k = 0; k < ast_get(s->ast, subs)->nkid; k++) {
		AstId sub = ast_kid(s->ast, subs, k);
		bool range = ast_get(s->ast, sub)->kind == AST_RANGE;
		AstId name = range ? ast_kid(s->ast, sub, 0) : sub;
		const Env *e = env_find(b->env, ast_get(s->ast, name)->name);
		if (range)
			written_range(s, b, b->ivar[at], ast_kid(s->ast, sub, 1), ast_kid(s->ast, sub, 2), outer);
		else if (e->range_lo)
			written_range(s, b, b->ivar[at], e->range_lo, e->range_hi, e->range_env);
		at += e->n;
	}
}

static bool
has_data(Sema *s, const Ivar *v)
{
	return expr_has_read(s, v->lo) || expr_has_read(s, v->hi);
}

/* What the indices subscript alone: the range of those without one, and what data ranges are cut to. */
static void
inferred_ranges(Sema *s, Binder *b, AstId where, AstId args)
{
	for (unsigned k = 0; k < b->n; k++) {
		IvarId id = b->ivar[k];
		Ivar v = s->ivar.at[id];
		if (v.lo && !has_data(s, &v))
			continue;
		AxisUses uses = {0};
		range_scan(s, where, b->env, id, &uses);
		for (unsigned a = 0; a < ast_get(s->ast, args)->nkid; a++)
			range_scan(s, ast_kid(s->ast, args, a), b->env, id, &uses);
		if (!v.lo) {
			b->failed |= !range_infer(s, id, &uses);
			continue;
		}
		ExprId cut = 0;
		for (uint32_t u = 0; u < uses.alone.n; u++)
			if (!uses.alone.at[u].optional && uses.alone.at[u].extent && uses.alone.at[u].extent != cut)
				cut = cut ? expr_binary(s->g, OP_MIN, cut, uses.alone.at[u].extent) : uses.alone.at[u].extent;
		s->ivar.at[id].clamp = cut;
		if (cut)
			s->ivar.at[id].cut = access_new(s, ACCESS_CUT, v.at);
	}
}

static bool
bind_all(Sema *s, AstId id, Env *env, Binder *b)
{
	AstId subs = ast_kid(s->ast, id, 0);
	unsigned n = ast_get(s->ast, subs)->nkid;
	*b = (Binder){.env = env};
	for (unsigned k = 0; k < n; k++) {
		AstId sub = ast_kid(s->ast, subs, k);
		AstId name = ast_get(s->ast, sub)->kind == AST_RANGE ? ast_kid(s->ast, sub, 0) : sub;
		if (ast_get(s->ast, name)->kind != AST_NAME) {
			diag_add(s->diags, DIAG_E0209, ast_get(s->ast, name)->at, "the brackets of a function hold names of indices")
				->help = "write `sum[i](…)` or `sum[i in lo..hi](…)`";
			return false;
		}
		for (unsigned j = 0; j < k; j++) {
			AstId before = ast_kid(s->ast, subs, j);
			if (ast_get(s->ast, before)->kind == AST_RANGE)
				before = ast_kid(s->ast, before, 0);
			if (ast_get(s->ast, before)->name == ast_get(s->ast, name)->name) {
				diag_add(s->diags, DIAG_E0219, ast_get(s->ast, name)->at, "the index `%s` is bound twice",
				         name_text(s->names, ast_get(s->ast, name)->name));
				return false;
			}
		}
		bind_name(s, b, name, env);
	}
	written_ranges(s, b, subs, env);
	if (!b->failed)
		inferred_ranges(s, b, ast_kid(s->ast, id, 1), ast_kid(s->ast, id, 2));
	return !b->failed;
}

/* --- the reduction itself --- */

static DType
accumulator(RedKind kind, DType t)
{
	DType a = dtype_info[t].arith;
	if (kind == RED_mean && dtype_is_int(a))
		return DT_I64;
	return a;
}

typedef struct {
	RedKind kind;
	Span at;
	Binder b;
	Val v;
	Dom conds;  /* absorbed */
	Dom outward, path;
	bool need_all, leans;
} Red;

static ExprId
one_node(Sema *s, const Red *r, Monoid m, ExprId body, DType t)
{
	Reduction x = {.monoid = m, .body = body, .dtype = t, .bound = r->b.ivar, .nbound = r->b.n, .guard = r->conds,
	               .outward = r->outward, .path = r->path, .need_all = r->need_all,
	               .leans = r->leans, .at = r->at};
	return hoist(s, &x);
}

/* nonempty: whether any term is present. */
static ExprId
nonempty_cond(Sema *s, const Red *r)
{
	ExprId e = one_node(s, r, MON_ANY, expr_int(s->g, DT_BOOL, 1), DT_BOOL);
	if (!e)
		return 0;
	TensorId t = expr_get(s->g, e)->ref;
	if (s->nonempty.n <= t)
		vec_grow(s->arena, &s->nonempty, t + 1 - s->nonempty.n);
	s->nonempty.at[t] = 1;
	return e;
}

static ExprId
count_node(Sema *s, const Red *r)
{
	Graph *g = s->g;
	bool box = r->conds.n == 0;
	ExprId n = expr_int(g, DT_I64, 1);
	for (unsigned k = 0; k < r->b.n; k++) {
		const Ivar *v = &s->ivar.at[r->b.ivar[k]];
		box &= !v->in_range;
	}
	if (!box)
		return one_node(s, r, MON_SUM, n, DT_I64);
	for (unsigned k = 0; k < r->b.n; k++) {
		Ivar v = s->ivar.at[r->b.ivar[k]];
		n = expr_binary(g, OP_MUL, n, at_least_zero(s, expr_binary(g, OP_SUB, v.hi, v.lo)));
	}
	return index_norm(g, n);
}

/* What an arg of one index says is the index itself, where a node counts from the lower end of its range, or of what is
 * left of it within the axis. Of several indices it is the position that the node has. */
static ExprId
index_of_position(Sema *s, const Red *r, ExprId position)
{
	Graph *g = s->g;
	if (r->b.n != 1 || !position)
		return position;
	const Ivar *v = &s->ivar.at[r->b.ivar[0]];
	ExprId low = v->clamp ? at_least_zero(s, v->lo) : index_norm(g, v->lo);
	bool zero = expr_get(g, low)->op == OP_CONST && expr_get(g, low)->imm.i == 0;
	return zero ? position : expr_binary(g, OP_ADD, position, low);
}

static bool
bool_argument(Sema *s, const Red *r, AstId arg)
{
	if (!r->v.lit && val_dtype(s, &r->v) == DT_BOOL)
		return true;
	diag_add(s->diags, DIAG_E0507, ast_get(s->ast, arg)->at, "`%s` takes a bool", red_row[r->kind].name)->help =
		"compare it: `… != 0`";
	return false;
}

static ExprId
reduce_value(Sema *s, Red *r, AstId arg)
{
	Graph *g = s->g;
	Span at = ast_get(s->ast, arg)->at;
	if (r->kind == RED_count)
		return count_node(s, r);
	r->v = val_typed(s, r->v);
	DType t = val_dtype(s, &r->v);
	if (r->kind == RED_any || r->kind == RED_all)
		return bool_argument(s, r, arg) ? one_node(s, r, red_row[r->kind].monoid, r->v.e, DT_BOOL) : 0;
	if (t == DT_C64 && r->kind != RED_sum && r->kind != RED_prod && r->kind != RED_mean) {
		diag_add(s->diags, DIAG_E0504, at, "complex numbers have no order");
		return 0;
	}
	DType acc = accumulator(r->kind, t);
	Monoid m = red_row[r->kind].monoid;
	ExprId e = one_node(s, r, m, val_as(s, &r->v, acc, at), monoid_info[m].index ? DT_I64 : acc);
	if (monoid_info[m].index)
		return index_of_position(s, r, e);
	if (!e || r->kind != RED_mean)
		return e;
	ExprId n = count_node(s, r);
	DType f = dtype_is_int(acc) ? DT_F32 : acc;
	if (!n)
		return 0;
	Val count = val_expr(n, dom_none);
	ExprId divisor = f == DT_C64 ? expr_binary(g, OP_CPLX, expr_cast(g, DT_F32, n), expr_float(g, DT_F32, 0))
	                             : val_as(s, &count, f, at);
	return expr_binary(g, OP_FDIV, expr_cast(g, f, e), divisor);
}

/* Whether the condition, as written, names one of the bound indices. */
static bool
names_bound(const Sema *s, AstId id, const Binder *b)
{
	const AstNode *n = ast_get(s->ast, id);
	for (unsigned k = 0; k < b->n && n->kind == AST_NAME; k++)
		if (s->ivar.at[b->ivar[k]].name == n->name)
			return true;
	for (unsigned k = 0; k < n->nkid; k++)
		if (names_bound(s, ast_kid(s->ast, id, k), b))
			return true;
	return false;
}

/* A condition that came out false for every value of the index it names, as in (2*i) mod 2 == 1. */
static bool
is_false(Sema *s, ExprId c)
{
	IvarSet set = {0};
	expr_ivars(s, c, &set);
	return set.n == 0 && !expr_has_read(s, c) && prove(s->facts, cond_not(s, c));
}

/* That no value of the bound indices meets what has been absorbed so far. */
static ExprId
no_term(Sema *s, const Red *r)
{
	ExprId any = 0;
	bool plain = r->conds.n == 0;
	for (unsigned k = 0; k < r->b.n; k++) {
		Ivar v = s->ivar.at[r->b.ivar[k]];
		plain &= !v.in_range;
		ExprId empty = expr_binary(s->g, OP_LE, v.hi, v.lo);
		any = any ? expr_binary(s->g, OP_OR, any, empty) : empty;
	}
	if (plain)
		return any;
	any = one_node(s, r, MON_ANY, expr_int(s->g, DT_BOOL, 1), DT_BOOL);
	return any ? cond_not(s, any) : 0;
}

typedef struct {
	Sema *s;
	bool ok;
} Outside;

static void
read_outside(void *user, ExprId e)
{
	Outside *c = user;
	Graph *g = c->s->g;
	Expr p = *expr_get(g, e);
	if (p.op != OP_READ || p.access)
		return;
	for (unsigned a = 0; a < p.narg && c->ok; a++) {
		ExprId sub = expr_arg(g, e, a), zero = expr_int(g, DT_I64, 0);
		c->ok = prove(c->s->facts, expr_binary(g, OP_LE, zero, sub)) &&
		        prove(c->s->facts, expr_binary(g, OP_LT, sub, g->tensor.at[p.ref].extent[a]));
	}
	const Node *n = tensor_node(g, p.ref);
	if (c->ok && n && n->domain)
		c->ok = prove(c->s->facts, expr_at_read(g, n->domain, e));
}

/* Every read of the conjunct has its value outside of the reduction too, where those before it hold. */
static bool
has_value_outside(Sema *s, ExprId cond, Dom before)
{
	Outside c = {s, true};
	uint32_t mark = facts_mark(s->facts);
	for (uint32_t i = 0; i < before.n; i++)
		facts_push(s->facts, before.at[i]);
	expr_walk(s->g, s->arena, cond, read_outside, &c);
	facts_pop(s->facts, mark);
	return c.ok;
}

/* Splits the term's conjuncts into those with a bound index and the others. What of those has its value only inside
 * of the range, as x[0] where an index runs over x, is asked where there is a term. */
static void
absorb(Sema *s, Red *r, Dom all, AstId where)
{
	bool named = where && names_bound(s, where, &r->b);
	r->outward = r->b.outward;
	for (uint32_t i = 0; i < all.n; i++) {
		ExprId c = all.at[i];
		bool own = expr_has_ivar(s, c, r->b.ivar, r->b.n) || (named && is_false(s, c));
		if (own ? !BUG(conjunct_dropped) : BUG(outward_absorbed))
			r->conds = dom_append(s, r->conds, c);
		if (own ? !BUG(absorbed_outward) : BUG(outward_absorbed))
			continue;
		if (!own && !has_value_outside(s, c, r->outward)) {
			ExprId none = no_term(s, r);
			c = none ? expr_binary(s->g, OP_OR, none, c) : c;
		}
		r->outward = dom_join(s, r->outward, dom_append(s, dom_none, c));
	}
}

Val
elab_reduce(Sema *s, AstId id, Env *env)
{
	AstNode n = *ast_get(s->ast, id);
	AstId where = ast_kid(s->ast, id, 1), args = ast_kid(s->ast, id, 2);
	Red r = {.kind = (RedKind)reduction_named(name_text(s->names, n.name)), .at = n.at};
	if (ast_get(s->ast, args)->nkid != 1) {
		diag_add(s->diags, DIAG_E0206, n.at, "`%s` takes 1 argument, not %u", name_text(s->names, n.name),
		         ast_get(s->ast, args)->nkid);
		return val_error;
	}
	if (!bind_all(s, id, env, &r.b))
		return val_error;
	Frame f;
	frame_push(s, &f, NULL);
	for (unsigned k = 0; k < r.b.n; k++)
		frame_bind(s, r.b.ivar[k]);
	Dom all = dom_none;
	ExprId cond = where ? elab_cond(s, where, r.b.env, &all) : 0;
	if (cond) {
		all = dom_add(s, all, cond);
		path_push_dom(s, all);
	}
	AstId arg = ast_kid(s->ast, args, 0);
	r.v = elab(s, arg, r.b.env);
	bool bad = val_bad(&r.v) || (where && !cond);
	all = bad ? all : dom_join(s, all, r.v.dom);
	r.need_all = !bad && frame_settle(s, all);
	r.leans = f.leans;
	frame_pop(s);
	if (bad)
		return val_error;
	r.path = outer_path(s);
	absorb(s, &r, all, where);
	Dom outward = r.outward;
	ExprId e = reduce_value(s, &r, arg);
	if (!e)
		return val_error;
	if (red_row[r.kind].may_be_absent) {
		ExprId some = nonempty_cond(s, &r);
		if (!some)
			return val_error;
		outward = dom_add(s, outward, some);
	}
	return val_expr(e, outward);
}
