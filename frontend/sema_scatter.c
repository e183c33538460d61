/* sema_scatter.c: `g[ids[t], d] += e`. The statement's indices, the unbound names of its left side in
 * order, become the reduced axes of a node whose parallel axes are the target's. */
#include "frontend/sema.h"

typedef struct {
	Def *def;
	AstId subs;
	Env *env;
	IvarId ivar[TG_MAX_AXES - TG_MAX_RANK];
	unsigned n;
	ExprId extent[TG_MAX_RANK];
} Scatter;

static void
collect_names(Sema *s, AstId id, Scatter *c)
{
	const AstNode *n = ast_get(s->ast, id);
	if (n->kind == AST_NAME) {
		bool known = scope_find(c->def->scope, n->name) || item_find(s, c->env->file, n->name);
		const Env *b = env_find(c->env, n->name);
		if (known || b)
			return;
		if (c->n == TG_MAX_AXES - TG_MAX_RANK)
			arena_unwind(s->arena, UNWIND_LIMIT, "more than %d indices of one scatter", TG_MAX_AXES - TG_MAX_RANK);
		c->ivar[c->n] = ivar_new(s, n->name, n->at);
		c->env = env_index(s, c->env, n->name, &c->ivar[c->n], 1);
		c->n++;
		return;
	}
	if (n->kind == AST_APPLY) {
		diag_add(s->diags, DIAG_E0601, n->at, "a target's subscript can't hold an index function")->help =
			"define the position as a tensor of its own and subscript that";
		c->def->failed = true;
		return;
	}
	for (unsigned k = 0; k < n->nkid; k++)
		collect_names(s, ast_kid(s->ast, id, k), c);
}

static AstId
target_sub(const Sema *s, const Scatter *c, unsigned a)
{
	AstId sub = ast_kid(s->ast, c->subs, a);
	return ast_get(s->ast, sub)->kind == AST_RANGE ? ast_kid(s->ast, sub, 0) : sub;
}

/* The index that subscripts axis a of the target alone, or 0. */
static IvarId
plain_index(const Sema *s, const Scatter *c, unsigned a)
{
	const AstNode *n = ast_get(s->ast, target_sub(s, c, a));
	const Env *b = n->kind == AST_NAME ? env_find(c->env, n->name) : NULL;
	return b && b->what == BIND_INDEX ? b->ivar[0] : 0;
}

/* The target's shape: declared, or written with `in`. */
static bool
target_shape(Sema *s, Scatter *c)
{
	Def *d = c->def;
	const ExprId *declared = d->entity->inout ? s->g->tensor.at[d->entity->tensor].extent
	                         : d->result >= 0 ? d->scope->result.at[d->result].extent
	                                          : NULL;
	unsigned rank = d->entity->inout ? s->g->tensor.at[d->entity->tensor].rank
	                : d->result >= 0 ? d->scope->result.at[d->result].rank
	                                 : d->rank;
	if (rank != d->rank) {
		diag_add(s->diags, DIAG_E0220, ast_get(s->ast, d->stmt)->name_at, "`%s` has %u axes and %u subscripts",
		         name_text(s->names, d->entity->name), rank, d->rank);
		return false;
	}
	for (unsigned a = 0; a < rank; a++) {
		AstId sub = ast_kid(s->ast, c->subs, a);
		Dom none = dom_none;
		c->extent[a] = declared ? declared[a] : 0;
		if (!declared && ast_get(s->ast, sub)->kind == AST_RANGE) {
			c->extent[a] = elab_index(s, ast_kid(s->ast, sub, 2), d->scope->env, &none, "the end of a range");
			if (!c->extent[a])
				return false;
		}
		if (!declared && ast_get(s->ast, sub)->kind != AST_RANGE && !plain_index(s, c, a)) {
			diag_add(s->diags, DIAG_E0602, ast_get(s->ast, sub)->at, "the extent of this axis of `%s` is not known",
			         name_text(s->names, d->entity->name))->help =
				"write it: `a[ids[t] in 0..V] += …`";
			return false;
		}
	}
	return true;
}

static bool
index_ranges(Sema *s, Scatter *c)
{
	for (unsigned k = 0; k < c->n; k++) {
		AxisUses uses = {0};
		bool declared = false;
		for (unsigned a = 0; a < c->def->rank && !declared; a++)
			if (plain_index(s, c, a) == c->ivar[k] && c->extent[a]) {
				s->ivar.at[c->ivar[k]].lo = expr_int(s->g, DT_I64, 0);
				s->ivar.at[c->ivar[k]].hi = c->extent[a];
				declared = true;
			}
		for (unsigned a = 0; a < c->def->rank; a++)
			range_scan(s, target_sub(s, c, a), c->env, c->ivar[k], &uses);
		for (unsigned p = 1; p < 3; p++)
			range_scan(s, ast_kid(s->ast, c->def->stmt, p), c->env, c->ivar[k], &uses);
		if (!declared && !range_infer(s, c->ivar[k], &uses))
			return false;
	}
	for (unsigned a = 0; a < c->def->rank; a++)
		if (!c->extent[a] && plain_index(s, c, a))
			c->extent[a] = s->ivar.at[plain_index(s, c, a)].hi;
	return true;
}

static Monoid
scatter_monoid(AstOp op)
{
	return op == AB_ADDSET ? MON_SUM : op == AB_MAXSET ? MON_MAX : MON_MIN;
}

/* The value of untouched targets, over the target's axes. */
static ExprId
else_value(Sema *s, Scatter *c, DType t, ExprId acc)
{
	AstId other = ast_kid(s->ast, c->def->stmt, 3);
	IvarId own[TG_MAX_RANK];
	ExprId to[TG_MAX_RANK];
	Env *env = c->def->scope->env;
	Frame f;
	frame_push(s, &f, c->def);
	for (unsigned a = 0; a < c->def->rank; a++) {
		AstNode n = *ast_get(s->ast, target_sub(s, c, a));
		own[a] = ivar_new(s, n.kind == AST_NAME ? n.name : 0, n.at);
		s->ivar.at[own[a]].lo = expr_int(s->g, DT_I64, 0);
		s->ivar.at[own[a]].hi = c->extent[a];
		to[a] = expr_axis(s->g, a);
		frame_bind(s, own[a]);
		if (plain_index(s, c, a))
			env = env_index(s, env, n.name, &own[a], 1);
	}
	Val v = elab(s, other, env);
	ExprId e = val_bad(&v) ? 0 : val_store(s, &v, t, ast_get(s->ast, other)->at);
	if (e) {
		frame_settle(s, v.dom);
		Dom d = dom_settle(s, v.dom);
		if (d.n)
			diag_add(s->diags, DIAG_E0302, ast_get(s->ast, other)->at, "the default is absent at some indices");
	}
	frame_pop(s);
	if (!e)
		return 0;
	e = expr_ivars_to_axes(s, e, own, to, c->def->rank);
	return expr_select(s->g, expr_make(s->g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0), acc, e);
}

static void
untouched(Sema *s, Scatter *c, const Node *n)
{
	Def *d = c->def;
	if (d->result >= 0) {
		AstNode stmt = *ast_get(s->ast, d->stmt);
		diag_add(s->diags, DIAG_E0302, stmt.name_at, "the result `%s` is absent where no term arrives",
		         name_text(s->names, stmt.name))->help = "say what it is there: `… else 0`";
		d->failed = true;
		return;
	}
	Node any = *n;
	ExprId sub[TG_MAX_RANK];
	any.monoid = MON_ANY;
	any.body = expr_int(s->g, DT_BOOL, 1);
	any.finish = any.init = 0;
	TensorId t = node_shared(s, &any, 0, d->entity->at, DT_BOOL, c->extent);
	for (unsigned a = 0; a < d->rank; a++)
		sub[a] = expr_axis(s->g, a);
	d->dom = dom_append(s, dom_none, expr_read(s->g, t, sub, d->rank, 0));
}

static bool
make_node(Sema *s, Scatter *c, const Val *v, Dom dom, const ExprId *target, const bool *checked)
{
	Def *d = c->def;
	Graph *g = s->g;
	AstNode stmt = *ast_get(s->ast, d->stmt);
	Val typed = val_typed(s, *v);
	DType natural = dtype_info[val_dtype(s, &typed)].arith;
	DType store = d->dtype ? d->dtype : natural, acc = dtype_info[store].arith;
	if (!d->dtype)
		store = acc;
	ExprId body = val_store(s, v, acc, ast_get(s->ast, ast_kid(s->ast, d->stmt, 1))->at);
	if (!body)
		return false;
	Node n = {.npar = (uint8_t)d->rank, .nred = (uint8_t)c->n, .scatter = true, .monoid = scatter_monoid((AstOp)stmt.op)};
	ExprId to[TG_MAX_AXES], sub[TG_MAX_RANK];
	for (unsigned k = 0; k < c->n; k++) {
		Ivar iv = s->ivar.at[c->ivar[k]];
		to[k] = expr_axis(g, d->rank + k);
		n.axis[d->rank + k] = (Axis){.name = iv.name, .lo = iv.lo, .hi = iv.hi};
	}
	n.body = expr_ivars_to_axes(s, body, c->ivar, to, c->n);
	n.guard = expr_ivars_to_axes(s, dom_expr(s, dom), c->ivar, to, c->n);
	for (unsigned a = 0; a < d->rank; a++) {
		sub[a] = expr_axis(g, a);
		n.target[a] = expr_ivars_to_axes(s, target[a], c->ivar, to, c->n);
		if (checked[a])
			n.target_access[a] = access_new(s, ACCESS_SCATTER, stmt.at);
	}
	if (d->entity->inout)
		n.init = expr_cast(g, acc, expr_read(g, d->entity->tensor, sub, d->rank, 0));
	ExprId result = expr_cast(g, store, expr_make(g, OP_ACC, acc, 0, 0, NULL, 0));
	if (ast_kid(s->ast, d->stmt, 3))
		result = else_value(s, c, store, result);
	else if (!n.init && monoid_info[n.monoid].unit == UNIT_NONE)
		untouched(s, c, &n);
	if (!result || d->failed)
		return false;
	n.finish = expr_get(g, result)->op == OP_ACC ? 0 : result;
	d->tensor = node_add(g, &n, stmt.name, stmt.name_at, store, c->extent);
	for (unsigned a = 0; a < d->rank; a++)
		d->extent[a] = c->extent[a];
	return true;
}

static bool
terms(Sema *s, Scatter *c)
{
	Def *d = c->def;
	AstId where = ast_kid(s->ast, d->stmt, 2);
	ExprId target[TG_MAX_RANK];
	bool checked[TG_MAX_RANK] = {false}, ok = true;
	Frame f;
	frame_push(s, &f, d);
	for (unsigned k = 0; k < c->n; k++)
		frame_bind(s, c->ivar[k]);
	Dom dom = dom_none;
	ExprId cond = where ? elab_cond(s, where, c->env, &dom) : 0;
	if (cond) {
		dom = dom_add(s, dom, cond);
		path_push_dom(s, dom);
	}
	Val v = elab(s, ast_kid(s->ast, d->stmt, 1), c->env);
	ok = !val_bad(&v) && (!where || cond);
	for (unsigned a = 0; a < d->rank; a++) {
		target[a] = elab_index(s, target_sub(s, c, a), c->env, &dom, "a target's subscript");
		ok &= target[a] != 0;
	}
	if (ok) {
		dom = dom_join(s, dom, v.dom);
		frame_settle(s, dom);
		path_push_dom(s, dom);
		for (unsigned a = 0; a < d->rank; a++) {
			ExprId low = expr_binary(s->g, OP_LE, expr_int(s->g, DT_I64, 0), target[a]);
			checked[a] = !prove(s->facts, low) || !prove(s->facts, expr_binary(s->g, OP_LT, target[a], c->extent[a]));
		}
	}
	frame_pop(s);
	return ok && make_node(s, c, &v, dom, target, checked);
}

void
scatter_elab(Sema *s, Def *d)
{
	Scatter c = {.def = d, .subs = ast_kid(s->ast, d->stmt, 0), .env = d->scope->env};
	d->rank = ast_get(s->ast, c.subs)->nkid;
	if (d->rank > TG_MAX_RANK) {
		diag_add(s->diags, DIAG_E0920, ast_get(s->ast, d->stmt)->at, "a tensor has at most %d axes", TG_MAX_RANK);
		d->failed = true;
		return;
	}
	for (unsigned a = 0; a < d->rank; a++)
		collect_names(s, target_sub(s, &c, a), &c);
	if (d->failed || !target_shape(s, &c) || !index_ranges(s, &c) || !terms(s, &c)) {
		d->failed = true;
		return;
	}
	d->ranged = d->done = true;
}
