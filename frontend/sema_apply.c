/* sema_apply.c: index functions, inlined by name.
 *
 * In `softmax[j](x)`, x is an expression over j, and each [j] inside the function binds it afresh. So
 * an argument is a closure: its expression, the caller's environment, and for each index in the
 * brackets the formal that it follows. Evaluating it inside the body looks up what the formal is
 * bound to there. Names of the body that are not formals are invisible to the argument. */
#include "frontend/sema.h"

#include <string.h>

/* The AST_NAME of a binder, plain or with a range; 0 if it is neither. */
static AstId
binder_name(const Ast *t, AstId sub)
{
	if (ast_get(t, sub)->kind == AST_RANGE)
		sub = ast_kid(t, sub, 0);
	return ast_get(t, sub)->kind == AST_NAME ? sub : 0;
}

static bool
bad_call(Sema *s, bool quiet, Span at, const Item *fn, const char *what, unsigned want, unsigned got)
{
	if (!quiet) {
		Diag *d = diag_add(s->diags, DIAG_E0206, at, "`%s` takes %u %s, not %u", name_text(s->names, fn->name),
		                   want, what, got);
		diag_note(s->diags, d, ast_get(s->ast, fn->ast)->name_at, "defined here");
	}
	return false;
}

static Env *
body_env(Sema *s, Env *up, Name name, BindWhat what)
{
	Env *e = ARENA_NEW(s->arena, Env);
	*e = (Env){.up = up, .name = name, .what = what, .file = up->file, .depth = up->depth};
	return e;
}

/* The size of the group a caller's index name stands for. */
static uint32_t
caller_group(Env *env, Name name)
{
	const Env *b = env_find(env, name);
	return b && (b->what == BIND_INDEX || b->what == BIND_UNBOUND) && b->ngroup ? b->ngroup : 1;
}

/* Binds one formal to the caller's indices subs[first .. first+count). */
static Env *
bind_formal(Sema *s, Env *up, Env *caller, Name formal, AstId subs, unsigned first, unsigned count)
{
	Env *e = body_env(s, up, formal, BIND_INDEX);
	for (unsigned k = first; k < first + count; k++) {
		AstId sub = ast_kid(s->ast, subs, k);
		Name name = ast_get(s->ast, binder_name(s->ast, sub))->name;
		const Env *b = env_find(caller, name);
		uint32_t group = caller_group(caller, name);
		if (e->ngroup + group > MAX_GROUP)
			arena_unwind(s->arena, UNWIND_LIMIT, "more than %d indices in one group", MAX_GROUP);
		if (b && b->what == BIND_INDEX)
			memcpy(e->ivar + e->ngroup, b->ivar, group * sizeof *b->ivar);
		else
			e->what = BIND_UNBOUND;
		e->ngroup += group;
		if (ast_get(s->ast, sub)->kind == AST_RANGE && count == 1) {
			e->range_lo = ast_kid(s->ast, sub, 1);
			e->range_hi = ast_kid(s->ast, sub, 2);
			e->range_env = caller;
		} else if (b && count == 1 && b->range_lo) {
			e->range_lo = b->range_lo;
			e->range_hi = b->range_hi;
			e->range_env = b->range_env;
		}
	}
	e->n = e->what == BIND_INDEX ? e->ngroup : 0;
	return e;
}

static void
add_follow(Sema *s, Follow *f, Env *caller, AstId subs, unsigned first, unsigned count, Name formal)
{
	uint32_t part = 0;
	for (unsigned k = 0; k < count; k++) {
		Name name = ast_get(s->ast, binder_name(s->ast, ast_kid(s->ast, subs, first + k)))->name;
		uint32_t group = caller_group(caller, name);
		f[k] = (Follow){name, formal, part, group};
		part += group;
	}
}

/* Local definitions see one another, so their closures are pointed at the finished chain. */
static Env *
bind_locals(Sema *s, Env *env, AstId block)
{
	unsigned n = ast_get(s->ast, block)->nkid;
	Env *base = env;
	for (unsigned k = 0; k < n; k++) {
		AstId stmt = ast_kid(s->ast, block, k);
		const AstNode *d = ast_get(s->ast, stmt);
		if (d->kind != AST_DEFINE)
			continue;
		env = body_env(s, env, d->name, BIND_LOCAL);
		env->closure = ARENA_NEW(s->arena, Closure);
		env->closure->expr = stmt;
	}
	for (Env *e = env; e != base; e = e->up)
		e->closure->env = env;
	return env;
}

static bool
check_binders(Sema *s, AstId subs, bool quiet)
{
	unsigned n = subs ? ast_get(s->ast, subs)->nkid : 0;
	for (unsigned k = 0; k < n; k++)
		if (!binder_name(s->ast, ast_kid(s->ast, subs, k))) {
			if (!quiet)
				diag_add(s->diags, DIAG_E0209, ast_get(s->ast, ast_kid(s->ast, subs, k))->at,
				         "the brackets of a function hold names of indices")->help =
					"write `f[i](…)` or `f[i in lo..hi](…)`";
			return false;
		}
	return true;
}

bool
inline_function(Sema *s, AstId call, Item *fn, Env *env, bool quiet, Inlined *out)
{
	const Ast *t = s->ast;
	AstNode n = *ast_get(t, call);
	bool apply = n.kind == AST_APPLY;
	if (env->depth == 0)
		s->call_at = n.at;
	AstId subs = apply ? ast_kid(t, call, 0) : 0, where = apply ? ast_kid(t, call, 1) : 0;
	AstId args = ast_kid(t, call, apply ? 2 : 0);
	AstId formals = ast_kid(t, fn->ast, 0), params = ast_kid(t, fn->ast, 1), body = ast_kid(t, fn->ast, 2);
	unsigned nsub = subs ? ast_get(t, subs)->nkid : 0, nformal = ast_get(t, formals)->nkid;
	unsigned nparam = ast_get(t, params)->nkid, narg = ast_get(t, args)->nkid;
	if (!check_binders(s, subs, quiet))
		return false;
	if (nsub != nformal && !(nformal == 1 && nsub > 1))
		return bad_call(s, quiet, n.at, fn, nformal == 1 ? "index" : "indices", nformal, nsub);
	if (narg != nparam)
		return bad_call(s, quiet, n.at, fn, nparam == 1 ? "argument" : "arguments", nparam, narg);
	if (env->depth >= MAX_INLINE_DEPTH) {
		if (!quiet)
			diag_add(s->diags, DIAG_E0210, n.at, "`%s` is called inside itself, or %d functions deep",
			         name_text(s->names, fn->name), MAX_INLINE_DEPTH);
		return false;
	}
	Env *e = ARENA_NEW(s->arena, Env);
	*e = (Env){.file = fn->module, .depth = env->depth + 1};
	Follow *follow = ARENA_ARRAY(s->arena, Follow, nsub);
	for (unsigned k = 0; k < nformal; k++) {
		unsigned count = nformal == 1 ? nsub : 1;
		Name formal = ast_get(t, ast_kid(t, formals, k))->name;
		e = bind_formal(s, e, env, formal, subs, k, count);
		add_follow(s, follow + k, env, subs, k, count, formal);
	}
	for (unsigned k = 0; k < nparam; k++) {
		e = body_env(s, e, ast_get(t, ast_kid(t, params, k))->name, BIND_PARAM);
		e->closure = ARENA_NEW(s->arena, Closure);
		*e->closure = (Closure){ast_kid(t, args, k), where, env, nsub, follow};
	}
	out->fn = fn;
	out->at = n.at;
	out->result = body;
	if (ast_get(t, body)->kind == AST_BLOCK) {
		e = bind_locals(s, e, body);
		AstId last = ast_kid(t, body, ast_get(t, body)->nkid - 1);
		out->result = ast_kid(t, last, 0);
	}
	out->env = e;
	return true;
}

Val
elab_body(Sema *s, const Inlined *in)
{
	DiagCall call = {s->diags->call, in->at};
	s->diags->call = &call;
	Val v = elab(s, in->result, in->env);
	s->diags->call = call.up;
	return v;
}

Env *
closure_env(Sema *s, const Closure *c, Env *body)
{
	Env *e = c->env;
	for (uint32_t k = 0; k < c->nfollow; k++) {
		const Follow *f = &c->follow[k];
		const Env *b = env_find(body, f->formal);
		if (b && b->what == BIND_INDEX) {
			e = env_index(s, e, f->caller, b->ivar + f->part, f->count);
		} else {
			Env *u = ARENA_NEW(s->arena, Env);
			*u = (Env){.up = e, .scope = e->scope, .name = f->caller, .what = BIND_UNBOUND, .ngroup = f->count,
			           .file = e->file, .depth = e->depth};
			e = u;
		}
	}
	return e;
}

Val
elab_param(Sema *s, const Env *bind, Env *env, Span at)
{
	const Closure *c = bind->closure;
	Env *e = closure_env(s, c, env);
	(void)at;
	if (!c->where)
		return elab(s, c->expr, e);
	Dom d = dom_none;
	PathMark mark = path_mark(s);
	ExprId cond = elab_cond(s, c->where, e, &d);
	if (cond) {
		d = dom_add(s, d, cond);
		path_push_dom(s, d);
	}
	Val v = elab(s, c->expr, e);
	path_reset(s, mark);
	duties_limit(s, mark, d);
	v.dom = dom_join(s, d, v.dom);
	return cond ? v : val_error;
}

/* A read of a function's local definition: its right side, with its indices at the subscripts. */
Val
elab_local_read(Sema *s, const Env *bind, AstId id, Env *env)
{
	AstNode n = *ast_get(s->ast, id);
	AstId stmt = bind->closure->expr, lhs = ast_kid(s->ast, stmt, 0);
	AstId subs = n.kind == AST_READ ? ast_kid(s->ast, id, 0) : 0;
	unsigned rank = ast_get(s->ast, lhs)->nkid, nsub = subs ? ast_get(s->ast, subs)->nkid : 0;
	if (rank != nsub) {
		diag_add(s->diags, DIAG_E0211, n.at, "`%s` has %u ind%s, not %u", name_text(s->names, n.name), rank,
		         rank == 1 ? "ex" : "ices", nsub);
		return val_error;
	}
	if (env->depth >= MAX_INLINE_DEPTH) {
		diag_add(s->diags, DIAG_E0210, n.at, "the local definition `%s` reads itself", name_text(s->names, n.name));
		return val_error;
	}
	Env *e = body_env(s, bind->closure->env, 0, BIND_UNBOUND);
	e->depth = env->depth + 1;
	Dom d = dom_none;
	for (unsigned k = 0; k < rank; k++) {
		AstId left = ast_kid(s->ast, lhs, k), name = binder_name(s->ast, left);
		ExprId sub = elab_index(s, ast_kid(s->ast, subs, k), env, &d, "a subscript");
		if (!sub || !name)
			return val_error;
		if (ast_get(s->ast, left)->kind == AST_RANGE) {
			ExprId hi = elab_index(s, ast_kid(s->ast, left, 2), bind->closure->env, &d, "the end of a range");
			if (hi)
				must_be_within(s, sub, hi, n.at, n.name, k);
		}
		Env *b = body_env(s, e, ast_get(s->ast, name)->name, BIND_VALUE);
		if (expr_get(s->g, sub)->op == OP_IVAR) {
			b->what = BIND_INDEX;
			b->n = b->ngroup = 1;
			b->ivar[0] = expr_get(s->g, sub)->ref;
		}
		b->value = sub;
		e = b;
	}
	Name type = ast_get(s->ast, stmt)->num.text;
	DType t = type ? dtype_named(name_text(s->names, type), strlen(name_text(s->names, type))) : DT_NONE;
	Val v = elab_rhs(s, stmt, e, t);
	v.dom = dom_join(s, d, v.dom);
	return v;
}

Val
elab_apply(Sema *s, AstId id, Env *env)
{
	AstNode n = *ast_get(s->ast, id);
	if (is_reduction(s, n.name))
		return elab_reduce(s, id, env);
	Item *fn = item_find(s, env->file, n.name);
	if (fn && ast_get(s->ast, fn->ast)->kind == AST_FN) {
		Inlined in;
		return inline_function(s, id, fn, env, false, &in) ? elab_body(s, &in) : val_error;
	}
	Diag *d = diag_add(s->diags, DIAG_E0207, n.name_at, "there is no index function `%s`",
	                   name_text(s->names, n.name));
	const char *hint = item_std_hint(s, env->file, n.name);
	d->help = hint ? hint : near_function(s, env->file, n.name, true);
	return val_error;
}
