/* sema_access.c: reads of tensors. A subscript is proved in bounds at once, or waits in its frame for
 * what the whole term knows (sema_frame.c), or, read from data, is checked as it runs. */
#include "frontend/sema.h"
#include "ir/bugs.h"

AccessId
access_new(Sema *s, AccessKind kind, Span at)
{
	Graph *g = s->g;
	const char *text = source_text(s, at);
	for (uint32_t i = 1; i < g->access.n; i++)
		if (g->access.at[i].kind == kind && g->access.at[i].at.begin == at.begin && g->access.at[i].at.file == at.file)
			return i;
	if (g->access.n > 0x7fff)
		arena_unwind(s->arena, UNWIND_LIMIT, "more than 32767 accesses of one graph are checked as they run");
	vec_push(s->arena, &g->access, ((Access){kind, at, text}));
	return g->access.n - 1;
}

void
add_check(Sema *s, ExprId cond, Span at, DiagCode code, const char *text)
{
	Graph *g = s->g;
	for (uint32_t i = 0; i < g->check.n; i++)
		if (g->check.at[i].cond == cond)
			return;
	if (prove(s->facts, cond))
		return;
	vec_push(s->arena, &g->check, ((Check){cond, at, code, text}));
}

/* False, quietly, where the definition or an extent was in error. */
bool
entity_shape(Sema *s, const Entity *e, unsigned *rank, const ExprId **extent)
{
	if (e->kind == ENT_TENSOR) {
		const Tensor *t = &s->g->tensor.at[e->tensor];
		*rank = t->rank;
		*extent = t->extent;
	} else if (e->kind == ENT_DEF && e->def && e->def->ranged) {
		*rank = e->def->rank;
		*extent = e->def->extent;
	} else {
		return false;
	}
	for (unsigned a = 0; a < *rank; a++)
		if (!(*extent)[a])
			return false;
	return true;
}

static void
not_a_tensor(Sema *s, Name name, Span at, const char *why)
{
	diag_add(s->diags, DIAG_E0214, at, "`%s` can't be subscripted: %s", name_text(s->names, name), why);
}

Entity *
resolve_tensor(Sema *s, Name name, Span at, Env *env, bool quiet)
{
	for (unsigned hop = 0; hop < MAX_INLINE_DEPTH + 1u; hop++) {
		const Env *b = env_find(env, name);
		if (!b)
			break;
		if (b->what != BIND_PARAM) {
			if (!quiet)
				not_a_tensor(s, name, at, "it is an index");
			return NULL;
		}
		const AstNode *arg = ast_get(s->ast, b->closure->expr);
		if (arg->kind != AST_NAME) {
			if (!quiet) {
				Diag *d = diag_add(s->diags, DIAG_E0215, arg->at,
				                   "the function subscripts its parameter `%s`, so it needs the name of a tensor here",
				                   name_text(s->names, name));
				d->help = "define the expression as a tensor of its own and pass its name";
			}
			return NULL;
		}
		name = arg->name;
		env = b->closure->env;
	}
	Entity *e = scope_find(env->scope, name);
	if (e && (e->kind == ENT_TENSOR || e->kind == ENT_DEF))
		return e;
	if (quiet)
		return NULL;
	if (e) {
		not_a_tensor(s, name, at, e->kind == ENT_DIM ? "it is a dim" : "it is a scalar");
		return NULL;
	}
	Diag *d = diag_add(s->diags, DIAG_E0202, at, "`%s` is not defined here", name_text(s->names, name));
	const char *near = near_name(s, env, name);
	if (near)
		d->help = arena_text(s->arena, "did you mean `%s`?", near);
	return NULL;
}

void
must_be_within(Sema *s, ExprId sub, ExprId extent, Span at, Name tensor, unsigned axis)
{
	Obligation o = {at, tensor, axis, sub, extent, s->frame->path, source_text(s, at)};
	vec_push(s->arena, &s->frame->duty, o);
}

static bool
covers(const Sema *s, ExprId sub, ExprId extent)
{
	const Expr *e = expr_get(s->g, sub);
	if (e->op != OP_IVAR)
		return false;
	const Ivar *v = &s->ivar.at[e->ref];
	if (!v->lo || expr_get(s->g, v->lo)->op != OP_CONST || expr_get(s->g, v->lo)->imm.i < 0)
		return false;
	return (!v->in_range && v->hi == extent) || v->clamp == extent;
}

static ExprId
low_cond(Sema *s, ExprId sub)
{
	return expr_binary(s->g, OP_LE, expr_int(s->g, DT_I64, 0), sub);
}

/* One subscript: proved, optional (a conjunct), checked as it runs (the check is added to *checked),
 * or a duty. */
static Dom
one_axis(Sema *s, ExprId sub, ExprId extent, Span at, Name name, unsigned axis, bool optional, ExprId *checked)
{
	Graph *g = s->g;
	if (covers(s, sub, extent))
		return dom_none;
	ExprId low = low_cond(s, sub), high = expr_binary(g, OP_LT, sub, extent);
	bool (*const holds)(Sema *, ExprId) = optional ? conjunct_holds : frame_prove;
	bool low_ok = holds(s, low), high_ok = BUG(upper_bound_unproved) || holds(s, high);
	if (low_ok && high_ok)
		return dom_none;
	if (optional) {
		ExprId both = low_ok ? high : high_ok ? low : expr_binary(g, OP_AND, low, high);
		return dom_append(s, dom_none, both);
	}
	if (expr_has_read(s, sub))
		*checked = expr_and(g, *checked, expr_binary(g, OP_AND, low, high));
	else
		must_be_within(s, sub, extent, at, name, axis);
	return dom_none;
}

static bool
plain_subscripts(Sema *s, AstId id)
{
	AstId subs = ast_kid(s->ast, id, 0), where = ast_kid(s->ast, id, 1);
	AstId bad = where;
	for (unsigned k = 0; k < ast_get(s->ast, subs)->nkid && !bad; k++)
		if (ast_get(s->ast, ast_kid(s->ast, subs, k))->kind == AST_RANGE)
			bad = ast_kid(s->ast, subs, k);
	if (bad)
		diag_add(s->diags, DIAG_E0216, ast_get(s->ast, bad)->at,
		         "`%s` belongs where an index is bound, not in a subscript", bad == where ? "where" : "in")->help =
			"put the range on the left of `=` or in the brackets of a function";
	return !bad;
}

static bool
rank_agrees(Sema *s, const AstNode *n, const Entity *e, unsigned rank, unsigned nsub)
{
	if (rank == nsub)
		return true;
	Diag *d = diag_add(s->diags, DIAG_E0217, n->at, "`%s` has %u ax%s, but %u subscript%s", name_text(s->names, e->name),
	                   rank, rank == 1 ? "is" : "es", nsub, nsub == 1 ? " is given" : "s are given");
	if (nsub == 0)
		d->help = "a tensor is read at subscripts; whole tensors go only to functions that subscript them and to graphs";
	diag_note(s->diags, d, e->at, "defined here");
	return false;
}

static bool
def_ready(const Def *d)
{
	return !d->failed && (d->done || d->tensor);
}

Val
elab_read(Sema *s, AstId id, Env *env)
{
	AstNode n = *ast_get(s->ast, id);
	const Env *b = env_find(env, n.name);
	if (n.kind == AST_READ && !plain_subscripts(s, id))
		return val_error;
	if (b && b->what == BIND_LOCAL)
		return elab_local_read(s, b, id, env);
	Entity *e = resolve_tensor(s, n.name, n.name_at, env, false);
	if (!e)
		return val_error;
	e->used = true;
	AstId subs = n.kind == AST_READ ? ast_kid(s->ast, id, 0) : 0;
	unsigned rank, nsub = subs ? ast_get(s->ast, subs)->nkid : 0;
	const ExprId *shape;
	bool shaped = entity_shape(s, e, &rank, &shape);
	if (!shaped && e->kind == ENT_TENSOR)
		diag_add(s->diags, DIAG_E0229, n.name_at, "the tensor `%s` has no shape yet where this dim is needed",
		         name_text(s->names, n.name))->help = "a dim is made of other dims, scalar parameters and constants";
	if (!shaped || (e->def && e->kind == ENT_DEF && !def_ready(e->def))) {
		if (e->kind == ENT_DEF && e->def && !e->def->failed)
			diag_add(s->diags, DIAG_E0603, n.name_at, "`%s` is read where its own shape is being found",
			         name_text(s->names, n.name))->help =
				"the ranges at the left of a recurrence are made of dims, scalars and constants";
		return val_error;
	}
	if (!rank_agrees(s, &n, e, rank, nsub))
		return val_error;
	ExprId sub[TG_MAX_RANK], extent[TG_MAX_RANK];
	for (unsigned a = 0; a < rank; a++)
		extent[a] = shape[a]; /* the table it lies in may move */
	Dom inner = dom_none, bounds = dom_none;
	ExprId checked = 0;
	for (unsigned a = 0; a < rank; a++) {
		AstId x = ast_kid(s->ast, subs, a);
		sub[a] = elab_index(s, x, env, &inner, "a subscript");
		if (!sub[a])
			return val_error;
		bounds = dom_join(s, bounds,
		                  one_axis(s, sub[a], extent[a], ast_get(s->ast, x)->at, e->name, a, n.flag, &checked));
	}
	Dom d = dom_join(s, inner, bounds);
	if (e->kind == ENT_DEF) {
		if (e->def->literal.lit) {
			Val v = e->def->literal;
			v.dom = d;
			return v;
		}
		PathMark mark = path_mark(s);
		path_push_dom(s, d);
		if (checked)
			path_push(s, checked);
		Dom own = dom_subst_axes(s, e->def->dom, sub, rank);
		if (checked) /* outside, it is the read that must be met, and reported */
			own = dom_imply(s, checked, false, own);
		path_reset(s, mark);
		d = dom_join(s, d, own);
	}
	TensorId t = e->kind == ENT_DEF ? e->def->tensor : e->tensor;
	AccessId access = checked ? access_new(s, ACCESS_GATHER, n.at) : 0;
	return val_expr(expr_read(s->g, t, sub, rank, access), d);
}
