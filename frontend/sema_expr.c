/* sema_expr.c: expressions: the dispatch over syntax, names and conditionals. */
#include "frontend/sema.h"
#include "ir/bugs.h"

#include <math.h>
#include <string.h>

enum { QUOTED = 120 }; /* bytes of a program that a message quotes */

/* On one line: blanks in a row are one, and comments are left out. */
const char *
source_text(Sema *s, Span at)
{
	if (!at.file || at.end <= at.begin)
		return "";
	const SourceFile *f = &s->diags->files.at[at.file - 1];
	if (at.end > f->n)
		return "";
	char t[QUOTED + sizeof " ..."];
	uint32_t n = 0, k = at.begin;
	for (bool blank = false; k < at.end && n + blank < QUOTED; k++) {
		if (f->text[k] == '#')
			while (k + 1 < at.end && f->text[k] != '\n')
				k++;
		if ((unsigned char)f->text[k] <= ' ') {
			blank = true;
			continue;
		}
		if (blank)
			t[n++] = ' ';
		t[n++] = f->text[k];
		blank = false;
	}
	if (k < at.end) {
		memcpy(t + n, " ...", sizeof " ..." - 1);
		n += sizeof " ..." - 1;
	}
	return arena_copy(s->arena, t, n);
}

static bool
named_constant(Sema *s, const char *text, Val *v)
{
	static const struct { const char *name; double value; } row[] = {
		{"inf", INFINITY}, {"nan", NAN}, {"pi", 3.14159265358979323846},
	};
	for (size_t i = 0; i < sizeof row / sizeof *row; i++)
		if (strcmp(text, row[i].name) == 0) {
			*v = (Val){.lit = LIT_FLOAT, .f = row[i].value};
			return true;
		}
	bool yes = strcmp(text, "true") == 0;
	if (!yes && strcmp(text, "false") != 0)
		return false;
	*v = val_expr(expr_int(s->g, DT_BOOL, yes), dom_none);
	return true;
}

static Val
elab_const(Sema *s, Item *item, Span at)
{
	if (item->known)
		return item->value;
	if (item->active) {
		diag_add(s->diags, DIAG_E0201, at, "the constant `%s` is defined by itself",
		         name_text(s->names, item->name));
		return val_error;
	}
	item->active = true;
	Env *env = ARENA_NEW(s->arena, Env);
	env->file = item->module;
	uint32_t index = (uint32_t)(item - s->item.at);
	Val v = elab(s, ast_kid(s->ast, item->ast, 0), env);
	item = &s->item.at[index];
	item->active = false;
	item->known = true;
	if (!val_bad(&v) && !v.lit) {
		const Expr *e = expr_get(s->g, v.e);
		if (e->op != OP_CONST) {
			diag_add(s->diags, DIAG_E0505, ast_get(s->ast, item->ast)->at,
			         "the constant `%s` is not a number known now", name_text(s->names, item->name));
			v = val_error;
		} else {
			item->known = false; /* an expression belongs to one graph's pool */
		}
	}
	item->value = v;
	return v;
}

static void
unknown_name(Sema *s, const AstNode *n, Env *env)
{
	Diag *d = diag_add(s->diags, DIAG_E0202, n->name_at, "`%s` is not defined here", name_text(s->names, n->name));
	const char *near = near_name(s, env, n->name);
	if (near)
		d->help = arena_text(s->arena, "did you mean `%s`?", near);
	else
		d->help = "an index is known only where it is bound: on the left of `=`, or in the brackets of a function";
}

static Val
elab_name(Sema *s, AstId id, Env *env)
{
	AstNode n = *ast_get(s->ast, id);
	Env *b = env_find(env, n.name);
	if (b)
		switch (b->what) {
		case BIND_INDEX:
			if (b->n == 1)
				return val_expr(expr_ivar(s->g, b->ivar[0]), dom_none);
			diag_add(s->diags, DIAG_E0203, n.at,
			         "the function is called with several indices for `%s`, which it uses as one value",
			         name_text(s->names, n.name));
			return val_error;
		case BIND_VALUE:
			return val_expr(b->value, dom_none);
		case BIND_UNBOUND:
			diag_add(s->diags, DIAG_E0204, n.at, "the index `%s` is used outside what binds it",
			         name_text(s->names, n.name))->help =
				"the function's result depends on this index: bind it on the left of `=` or around the call";
			return val_error;
		case BIND_PARAM:
			return elab_param(s, b, env, n.at);
		case BIND_LOCAL:
			return elab_local_read(s, b, id, env);
		}
	Entity *e = scope_find(env->scope, n.name);
	if (e) {
		e->used = true;
		if (e->kind == ENT_DIM || e->kind == ENT_SCALAR)
			return val_expr(e->dim, dom_none);
		return elab_read(s, id, env);
	}
	Val v;
	if (named_constant(s, name_text(s->names, n.name), &v))
		return v;
	Item *item = item_find(s, env->file, n.name);
	if (item && ast_get(s->ast, item->ast)->kind == AST_CONST)
		return elab_const(s, item, n.at);
	if (env->scope && (e = static_dim(s, env->scope, n.name, n.name_at)))
		return val_expr(e->dim, dom_none);
	unknown_name(s, &n, env);
	return val_error;
}

static Val
elab_conditional(Sema *s, AstId id, Env *env)
{
	Dom dc = dom_none;
	ExprId c = elab_cond(s, ast_kid(s->ast, id, 0), env, &dc);
	Val arm[2];
	PathMark mark = path_mark(s);
	for (int k = 0; k < 2; k++) {
		mark = path_mark(s);
		path_push_dom(s, dc);
		if (c)
			path_push(s, (k == 0) != BUG(facts_of_other_arm) ? c : cond_not(s, c));
		arm[k] = elab(s, ast_kid(s->ast, id, 1 + (unsigned)k), env);
		path_reset(s, mark);
		duties_limit(s, mark, arm[k].dom);
	}
	if (!c || val_bad(&arm[0]) || val_bad(&arm[1]))
		return val_error;
	DType t0 = val_dtype(s, &arm[0]), t1 = val_dtype(s, &arm[1]);
	if ((t0 == DT_BOOL) != (t1 == DT_BOOL)) {
		diag_add(s->diags, DIAG_E0506, ast_get(s->ast, id)->at, "one arm is bool, the other is a number");
		return val_error;
	}
	Dom d = dom_join(s, dom_join(s, dc, dom_imply(s, c, false, arm[0].dom)), dom_imply(s, c, true, arm[1].dom));
	if (is_number(&arm[0]) && is_number(&arm[1]))
		return number_choice(s, c, arm, d, ast_get(s->ast, id)->at);
	DType t = !arm[0].lit && t0 == t1 ? t0 : common_type(s, &arm[0], &arm[1]);
	ExprId a = val_as(s, &arm[0], t, ast_get(s->ast, ast_kid(s->ast, id, 1))->at);
	ExprId b = val_as(s, &arm[1], t, ast_get(s->ast, ast_kid(s->ast, id, 2))->at);
	if (!a || !b)
		return val_error;
	return val_expr(expr_select(s->g, c, a, b), d);
}

static Val
elab_kind(Sema *s, AstId id, Env *env)
{
	const AstNode *n = ast_get(s->ast, id);
	switch ((AstKind)n->kind) {
	case AST_NUM:
		return number_node(s, n);
	case AST_NAME:
		return elab_name(s, id, env);
	case AST_CALL:
		return elab_call(s, id, env);
	case AST_READ:
		return elab_read(s, id, env);
	case AST_APPLY:
		return elab_apply(s, id, env);
	case AST_BINARY:
		return elab_binary(s, id, env);
	case AST_UNARY:
		return elab_unary(s, id, env);
	case AST_COND:
		return elab_conditional(s, id, env);
	case AST_NONE: case AST_FILE: case AST_GRAPH: case AST_DERIVED: case AST_FN: case AST_CONST: case AST_USE:
	case AST_MESH: case AST_ATTRS: case AST_ATTR: case AST_NAMES: case AST_PARAMS: case AST_PARAM:
	case AST_DEVICE: case AST_FACTS: case AST_HINT: case AST_BLOCK: case AST_DEFINE: case AST_CALLDEF:
	case AST_RETURN: case AST_SUBS: case AST_RANGE: case AST_ARGS:
		break;
	}
	return val_error;
}

enum { MAX_DEPTH = 4000, MAX_STEPS = 3000000 };

/* What is found after this would be said of half a graph (sema_graph leaves it out). */
static void
give_up(Sema *s, const char *what)
{
	Span at = s->call_at.file ? s->call_at : s->g->at;
	diag_add(s->diags, DIAG_E0921, at, "functions expand %s", what)->help =
		"a definition is computed once, however often it is read: give what the calls repeat a name of its own";
	s->spent = (Spent){true, s->diags->list.n, s->diags->nerror, s->diags->nwarning};
}

/* Functions are inlined, so a short program can stand for a long one, and a flat one for a deep one. */
bool
elab_enter(Sema *s)
{
	if (s->spent.is)
		return false;
	if (s->depth == MAX_DEPTH)
		give_up(s, arena_text(s->arena, "more than %d expressions deep from this call on", MAX_DEPTH));
	else if (++s->steps > MAX_STEPS)
		give_up(s, arena_text(s->arena, "to more than %d expressions, up to this call", MAX_STEPS));
	else
		s->depth++;
	return !s->spent.is;
}

/* The value of an expression; an error has been reported when val_bad. */
Val
elab(Sema *s, AstId id, Env *env)
{
	if (!id || !elab_enter(s))
		return val_error;
	Val v = elab_kind(s, id, env);
	s->depth--;
	return v;
}

ExprId
elab_cond(Sema *s, AstId id, Env *env, Dom *dom)
{
	Val v = elab(s, id, env);
	if (val_bad(&v))
		return 0;
	*dom = dom_join(s, *dom, v.dom);
	if (!v.lit && val_dtype(s, &v) == DT_BOOL)
		return v.e;
	Span at = ast_get(s->ast, id)->at;
	Diag *d = diag_add(s->diags, DIAG_E0507, at, "a condition must be a bool");
	d->label = v.lit ? "this is a number" : arena_text(s->arena, "this is %s", dtype_info[val_dtype(s, &v)].text);
	d->help = "compare it: `… != 0`";
	return 0;
}

ExprId
elab_index(Sema *s, AstId id, Env *env, Dom *dom, const char *what)
{
	Val v = elab(s, id, env);
	if (val_bad(&v))
		return 0;
	*dom = dom_join(s, *dom, v.dom);
	Span at = ast_get(s->ast, id)->at;
	if (v.lit == LIT_INT || v.whole)
		return literal_as(s, &v, DT_I64, at);
	if (!v.lit && dtype_is_int(val_dtype(s, &v)))
		return tidy_index(s, expr_cast(s->g, DT_I64, v.e));
	Diag *d = diag_add(s->diags, DIAG_E0508, at, "%s must be an integer", what);
	d->label = v.lit ? "this has a point" : arena_text(s->arena, "this is %s", dtype_info[val_dtype(s, &v)].text);
	d->help = "use `div` for whole division, or a cast such as `i64(…)`";
	return 0;
}
