/* sema_range.c: the range of an index that has none written: the extent of the axes it subscripts
 * alone. The scan follows arguments into functions, as they are inlined by name. */
#include "frontend/sema.h"
#include "ir/bugs.h"

#include <string.h>

static bool
is_alone(const Sema *s, AstId sub, Env *env, IvarId v)
{
	const AstNode *n = ast_get(s->ast, sub);
	if (n->kind != AST_NAME)
		return false;
	const Env *b = env_find(env, n->name);
	return b && b->what == BIND_INDEX && b->n == 1 && b->ivar[0] == v;
}

static void
scan_kids(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses)
{
	for (unsigned k = 0; k < ast_get(s->ast, id)->nkid; k++)
		range_scan(s, ast_kid(s->ast, id, k), env, v, uses);
}

/* A local definition of a function, read with these subscripts (0: none). */
static void
scan_local(Sema *s, const Env *b, AstId subs, Env *env, IvarId v, AxisUses *uses)
{
	AstId stmt = b->closure->expr, lhs = ast_kid(s->ast, stmt, 0);
	if (env->depth >= MAX_INLINE_DEPTH)
		return;
	Env *e = ARENA_NEW(s->arena, Env);
	*e = (Env){.up = b->closure->env, .what = BIND_UNBOUND, .file = b->closure->env->file, .depth = env->depth + 1};
	for (unsigned k = 0; subs && k < ast_get(s->ast, lhs)->nkid && k < ast_get(s->ast, subs)->nkid; k++) {
		AstId left = ast_kid(s->ast, lhs, k);
		if (ast_get(s->ast, left)->kind == AST_RANGE)
			left = ast_kid(s->ast, left, 0);
		IvarId bound = is_alone(s, ast_kid(s->ast, subs, k), env, v) ? v : 0;
		e = env_index(s, e, ast_get(s->ast, left)->name, &bound, 1);
	}
	for (unsigned k = 1; k < ast_get(s->ast, stmt)->nkid; k++)
		range_scan(s, ast_kid(s->ast, stmt, k), e, v, uses);
}

static void
scan_read(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses)
{
	AstNode n = *ast_get(s->ast, id);
	AstId subs = ast_kid(s->ast, id, 0);
	const Env *b = env_find(env, n.name);
	scan_kids(s, subs, env, v, uses);
	if (b && b->what == BIND_LOCAL) {
		scan_local(s, b, subs, env, v, uses);
		return;
	}
	Entity *e = resolve_tensor(s, n.name, n.at, env, true);
	unsigned rank = TG_MAX_RANK;
	const ExprId *extent = NULL;
	if (e && !entity_shape(s, e, &rank, &extent)) {
		if (e->kind == ENT_DEF && e->def && !e->def->failed)
			return; /* not known yet */
		extent = NULL;
	}
	for (unsigned a = 0; a < rank && a < ast_get(s->ast, subs)->nkid; a++) {
		AstId sub = ast_kid(s->ast, subs, a);
		AxisUse use = {.at = ast_get(s->ast, sub)->at, .optional = n.flag};
		if (extent)
			use.extent = extent[a], use.tensor = e, use.axis = a;
		else
			use.read = id, use.env = env;
		if (is_alone(s, sub, env, v))
			vec_push(s->arena, &uses->alone, use);
		else if (ast_get(s->ast, sub)->kind != AST_NUM)
			vec_push(s->arena, &uses->other, use);
	}
}

/* A reduction: its names hide outer ones. */
static void
scan_reduction(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses)
{
	AstId subs = ast_kid(s->ast, id, 0);
	Env *inner = env;
	for (unsigned k = 0; k < ast_get(s->ast, subs)->nkid; k++) {
		AstId sub = ast_kid(s->ast, subs, k);
		if (ast_get(s->ast, sub)->kind == AST_RANGE) {
			range_scan(s, ast_kid(s->ast, sub, 1), env, v, uses);
			range_scan(s, ast_kid(s->ast, sub, 2), env, v, uses);
			sub = ast_kid(s->ast, sub, 0);
		}
		const AstNode *n = ast_get(s->ast, sub);
		IvarId none[MAX_GROUP] = {0};
		const Env *b = env_find(env, n->name);
		uint32_t group = b && b->ngroup ? b->ngroup : 1;
		if (n->kind == AST_NAME)
			inner = env_index(s, inner, n->name, none, group);
	}
	range_scan(s, ast_kid(s->ast, id, 1), inner, v, uses);
	scan_kids(s, ast_kid(s->ast, id, 2), inner, v, uses);
}

static void
scan_function(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses)
{
	Item *fn = item_find(s, env->file, ast_get(s->ast, id)->name);
	Inlined in;
	if (fn && ast_get(s->ast, fn->ast)->kind == AST_FN && inline_function(s, id, fn, env, true, &in))
		range_scan(s, in.result, in.env, v, uses);
}

static void
scan_name(Sema *s, const AstNode *n, Env *env, IvarId v, AxisUses *uses)
{
	const Env *b = env_find(env, n->name);
	if (b && b->what == BIND_PARAM) {
		Env *e = closure_env(s, b->closure, env);
		range_scan(s, b->closure->expr, e, v, uses);
		range_scan(s, b->closure->where, e, v, uses);
	} else if (b && b->what == BIND_LOCAL) {
		scan_local(s, b, 0, env, v, uses);
	}
}

static void
scan_kind(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses)
{
	const AstNode *n = ast_get(s->ast, id);
	switch ((AstKind)n->kind) {
	case AST_NAME:
		scan_name(s, n, env, v, uses);
		return;
	case AST_READ:
		scan_read(s, id, env, v, uses);
		return;
	case AST_APPLY:
		if (is_reduction(s, n->name))
			scan_reduction(s, id, env, v, uses);
		else
			scan_function(s, id, env, v, uses);
		return;
	case AST_CALL:
		if (is_builtin_call(s, n->name))
			scan_kids(s, ast_kid(s->ast, id, 0), env, v, uses);
		else
			scan_function(s, id, env, v, uses);
		return;
	case AST_RANGE: case AST_SUBS: case AST_ARGS: case AST_BINARY: case AST_UNARY: case AST_COND:
		scan_kids(s, id, env, v, uses);
		return;
	case AST_NUM: case AST_NONE: case AST_FILE: case AST_GRAPH: case AST_DERIVED: case AST_FN: case AST_CONST:
	case AST_USE: case AST_MESH: case AST_ATTRS: case AST_ATTR: case AST_NAMES: case AST_PARAMS: case AST_PARAM:
	case AST_DEVICE: case AST_FACTS: case AST_HINT: case AST_BLOCK: case AST_DEFINE: case AST_CALLDEF:
	case AST_RETURN:
		return;
	}
}

void
range_scan(Sema *s, AstId id, Env *env, IvarId v, AxisUses *uses)
{
	if (!id || !elab_enter(s))
		return;
	scan_kind(s, id, env, v, uses);
	s->depth--;
}

static ExprId
first_use(const AxisUses *uses, bool optional)
{
	for (uint32_t i = 0; i < uses->alone.n; i++)
		if (uses->alone.at[i].optional == optional && uses->alone.at[i].extent)
			return uses->alone.at[i].extent;
	return 0;
}

void
extents_agree(Sema *s, const AxisUses *uses, Name index)
{
	Graph *g = s->g;
	const AxisUse *first = NULL;
	for (uint32_t i = 0; i < uses->alone.n; i++) {
		const AxisUse *u = &uses->alone.at[i];
		if (u->optional || !u->extent)
			continue;
		if (!first)
			first = u;
		if (u->extent == first->extent)
			continue;
		ExprId same = expr_binary(g, OP_EQ, first->extent, u->extent);
		if (prove(s->facts, same))
			continue;
		if (prove(s->facts, cond_not(s, same))) {
			Diag *d = diag_add(s->diags, DIAG_E0212, u->at, "the index `%s` has two different extents",
			                   name_text(s->names, index));
			d->label = "this axis is of another extent";
			diag_note(s->diags, d, first->at, "than this one");
			d->help = arena_text(s->arena, "give `%s` a range where it is bound, such as `%s in 0..N`",
			                     name_text(s->names, index), name_text(s->names, index));
			return;
		}
		add_check(s, same, u->at, DIAG_E0705,
		          arena_text(s->arena, "both axes that `%s` subscripts have one extent", name_text(s->names, index)));
	}
}

/* Says what is wrong with the tensors that were to give the range, where that was not said before;
 * false when there are none. */
static bool
blame_tensors(Sema *s, const AxisUses *uses)
{
	bool any = false;
	for (uint32_t i = 0; i < uses->alone.n; i++) {
		const AxisUse *u = &uses->alone.at[i];
		if (u->extent)
			continue;
		const AstNode *n = ast_get(s->ast, u->read);
		resolve_tensor(s, n->name, n->name_at, u->env, false);
		any = true;
	}
	return any && s->diags->nerror;
}

bool
range_infer(Sema *s, IvarId v, const AxisUses *uses)
{
	Ivar *i = &s->ivar.at[v];
	ExprId e = first_use(uses, false);
	if (!e)
		e = first_use(uses, true);
	if (!e) {
		const char *name = name_text(s->names, i->name);
		i->lo = i->hi = expr_int(s->g, DT_I64, 0);
		if (blame_tensors(s, uses))
			return false;
		Diag *d = diag_add(s->diags, DIAG_E0213, i->at, "the range of the index `%s` can't be inferred", name);
		d->label = "it subscripts no axis alone";
		d->help = arena_text(s->arena, "write its range: `%s in 0..N`", name);
		return false;
	}
	i->lo = expr_int(s->g, DT_I64, 0);
	i->hi = BUG(range_short_by_one) ? expr_binary(s->g, OP_SUB, e, expr_int(s->g, DT_I64, 1)) : e;
	extents_agree(s, uses, i->name);
	return true;
}
