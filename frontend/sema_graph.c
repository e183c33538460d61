/* sema_graph.c: a graph's signature: parameters, dims and how each is bound, facts, results. */
#include "frontend/sema.h"

#include <stdlib.h>
#include <string.h>

static const char *
text_of(Sema *s, Name n)
{
	return name_text(s->names, n);
}

DType
ast_dtype(Sema *s, AstId id)
{
	const AstNode *n = ast_get(s->ast, id);
	const char *t = text_of(s, n->num.text);
	DType d = dtype_named(t, strlen(t));
	if (d == DT_NONE) {
		Diag *g = diag_add(s->diags, DIAG_E0509, n->at, "`%s` is not a dtype", t);
		g->help = "the dtypes are f64 f32 f16 bf16 f8e4m3 f8e5m2 f4e2m1 e8m0 i64 i32 i16 i8 i4 u64 u32 u16 u8 u4 bool c64";
	}
	return d;
}

/* A name of the graph's one name space; NULL with an error when it is taken. */
Entity *
declare(Sema *s, Scope *sc, EntityKind kind, Name name, Span at)
{
	Entity *e = scope_find(sc, name);
	if (!e)
		return scope_add(s, sc, kind, name, at);
	Diag *d = diag_add(s->diags, DIAG_E0224, at, "`%s` is defined twice", text_of(s, name));
	diag_note(s->diags, d, e->at, "first defined here");
	d->help = "dims, scalars, tensors and indices of a graph share one name space";
	return NULL;
}

/* --- dims --- */

static const char *
static_value(Sema *s, Name name)
{
	const char *want = text_of(s, name);
	size_t n = strlen(want);
	for (uint32_t i = 0; i < s->options->nstatics; i++)
		if (strncmp(s->options->statics[i], want, n) == 0 && s->options->statics[i][n] == '=')
			return s->options->statics[i] + n + 1;
	return NULL;
}

static DimId
dim_new(Sema *s, Name name, Span at)
{
	vec_push(s->arena, &s->g->dim, ((Dim){.name = name, .at = at, .param = -1, .axis = -1, .scale = 1}));
	return s->g->dim.n - 1;
}

static void
know_dim(Sema *s, Entity *e)
{
	facts_push(s->facts, expr_binary(s->g, OP_LE, expr_int(s->g, DT_I64, 0), e->dim));
	s->base = facts_mark(s->facts);
}

static Entity *
bind_dim(Sema *s, Scope *sc, Name name, Span at, int32_t param, int32_t axis, int64_t scale, int64_t offset)
{
	Entity *e = scope_add(s, sc, ENT_DIM, name, at);
	DimId d = dim_new(s, name, at);
	Dim *p = &s->g->dim.at[d];
	const char *fixed = static_value(s, name);
	p->param = param;
	p->axis = axis;
	p->scale = scale;
	p->offset = offset;
	e->dim = expr_dim(s->g, d);
	if (fixed) {
		p->fixed = true;
		p->value = strtoll(fixed, NULL, 10);
		e->dim = expr_int(s->g, DT_I64, p->value);
	}
	know_dim(s, e);
	return e;
}

/* A dim that no input has, where an option gives it: a number. NULL where none does. */
Entity *
static_dim(Sema *s, Scope *sc, Name name, Span at)
{
	const char *fixed = static_value(s, name);
	if (!fixed)
		return NULL;
	Entity *e = scope_add(s, sc, ENT_DIM, name, at);
	e->dim = expr_int(s->g, DT_I64, strtoll(fixed, NULL, 10));
	vec_push(s->arena, &s->static_dim, name);
	return e;
}

/* A scalar parameter used as a dim: its value as i64, known to be at least 0. */
static void
scalar_as_dim(Sema *s, Scope *sc, Name name)
{
	Entity *e = scope_find(sc, name);
	if (!e || e->kind != ENT_SCALAR || (e->dim && expr_get(s->g, e->dim)->op == OP_DIM) || !e->tensor)
		return;
	if (!dtype_is_int(s->g->tensor.at[e->tensor].dtype))
		return;
	int32_t param = 0;
	while (s->g->param.at[param] != e->tensor)
		param++;
	DimId d = dim_new(s, name, e->at);
	s->g->dim.at[d].param = param;
	e->dim = expr_dim(s->g, d);
	know_dim(s, e);
}

static void
scalar_dims(Sema *s, Scope *sc, AstId id)
{
	const AstNode *n = ast_get(s->ast, id);
	if (n->kind == AST_NAME)
		scalar_as_dim(s, sc, n->name);
	for (unsigned k = 0; k < n->nkid; k++)
		scalar_dims(s, sc, ast_kid(s->ast, id, k));
}

unsigned
dim_unbound(Sema *s, Scope *sc, AstId id, AstId *name)
{
	const AstNode *n = ast_get(s->ast, id);
	if (n->kind == AST_NAME) {
		if (scope_find(sc, n->name) || item_find(s, sc->module, n->name))
			return 0;
		unsigned same = *name && ast_get(s->ast, *name)->name == n->name ? 0 : 1;
		*name = id;
		return same;
	}
	unsigned c = 0;
	for (unsigned k = 0; k < n->nkid; k++)
		c += dim_unbound(s, sc, ast_kid(s->ast, id, k), name);
	return c;
}

typedef struct {
	DimId dim;
	ExprId to;
} DimSubst;

static ExprId
subst_dim(void *user, Graph *g, ExprId e)
{
	const DimSubst *d = user;
	const Expr *p = expr_get(g, e);
	return p->op == OP_DIM && p->ref == d->dim ? d->to : e;
}

static ExprId
with_dim(Sema *s, ExprId e, DimId d, int64_t x)
{
	DimSubst sub = {d, expr_int(s->g, DT_I64, x)};
	return expr_rewrite(s->g, e, subst_dim, &sub);
}

static bool
value_at(Sema *s, ExprId e, DimId d, int64_t x, int64_t *out)
{
	ExprId r = index_norm(s->g, with_dim(s, e, d, x));
	*out = expr_get(s->g, r)->imm.i;
	return expr_get(s->g, r)->op == OP_CONST;
}

typedef struct {
	const Graph *g;
	DimId but;
	uint32_t most;
} TurnSearch;

static void
visit_turn(void *user, ExprId e)
{
	TurnSearch *t = user;
	const Expr *p = expr_get(t->g, e);
	if (p->op == OP_DIM && p->ref != t->but && t->g->dim.at[p->ref].turn > t->most)
		t->most = t->g->dim.at[p->ref].turn;
}

/* Whether e is f*d + r with f and r over other dims and f not always 0; d then is found after those. */
static bool
solve_linear(Sema *s, ExprId e, DimId d)
{
	Graph *g = s->g;
	if (expr_get(g, e)->dtype != DT_I64 || expr_has_read(s, e) || expr_has_real(s, e))
		return false;
	ExprId rest = with_dim(s, e, d, 0);
	ExprId factor = index_norm(g, expr_binary(g, OP_SUB, with_dim(s, e, d, 1), rest));
	ExprId line = expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, factor, expr_dim(g, d)), rest);
	ExprId zero = expr_int(g, DT_I64, 0);
	if (factor == zero || index_norm(g, expr_binary(g, OP_SUB, e, line)) != zero)
		return false;
	TurnSearch t = {g, d, 0};
	expr_walk(g, s->arena, e, visit_turn, &t);
	Dim *p = &g->dim.at[d];
	p->turn = t.most + 1;
	p->scale = p->offset = 0;
	return true;
}

/* An axis linear in one unbound name binds it. */
static bool
solve_axis(Sema *s, Scope *sc, AstId axis_ast, AstId name, int32_t param, int32_t axis)
{
	AstNode n = *ast_get(s->ast, name);
	Entity *e = bind_dim(s, sc, n.name, n.at, param, axis, 1, 0);
	DimId d = s->g->dim.n - 1;
	Dom none = dom_none;
	int64_t v[3];
	ExprId whole = elab_index(s, axis_ast, sc->env, &none, "a dim");
	bool linear = whole != 0 && !s->g->dim.at[d].fixed;
	for (int64_t x = 0; linear && x < 3; x++)
		linear = value_at(s, whole, d, x, &v[x]);
	(void)e;
	if (s->g->dim.at[d].fixed)
		return whole != 0;
	if (!linear && whole && solve_linear(s, whole, d))
		return true;
	if (!linear || v[2] - v[1] != v[1] - v[0] || v[1] == v[0]) {
		diag_add(s->diags, DIAG_E0229, ast_get(s->ast, axis_ast)->at,
		         "the dim `%s` can't be found from this axis", text_of(s, n.name))->help =
			"a dim is bound by an axis that is that name alone, by a scalar parameter, or by an axis that is a "
			"multiple of it plus what other dims make";
		return false;
	}
	s->g->dim.at[d].scale = v[1] - v[0];
	s->g->dim.at[d].offset = v[0];
	return true;
}

static bool
refuse_device(Sema *s, Scope *sc, AstId dim)
{
	AstNode n = *ast_get(s->ast, dim);
	if (n.kind != AST_DEVICE)
		return false;
	Item *m = item_find(s, sc->module, n.name);
	if (!m || ast_get(s->ast, m->ast)->kind != AST_MESH)
		diag_add(s->diags, DIAG_E0228, n.at, "there is no mesh `%s`", text_of(s, n.name))->help =
			arena_text(s->arena, "declare it: `mesh %s[4]`", text_of(s, n.name));
	else
		diag_add(s->diags, DIAG_E0911, n.at, "meshes are not built yet");
	return true;
}

/* Names alone first, then what is left, as long as something new gets bound. */
static void
bind_axes(Sema *s, Scope *sc, AstId params, unsigned nparam)
{
	for (unsigned p = 0; p < nparam; p++) {
		AstId param = ast_kid(s->ast, params, p);
		for (unsigned a = 0; a < ast_get(s->ast, param)->nkid; a++) {
			AstNode n = *ast_get(s->ast, ast_kid(s->ast, param, a));
			if (n.kind == AST_NAME && !scope_find(sc, n.name) && !item_find(s, sc->module, n.name))
				bind_dim(s, sc, n.name, n.at, (int32_t)p, (int32_t)a, 1, 0);
		}
	}
	for (bool more = true; more;) {
		more = false;
		for (unsigned p = 0; p < nparam; p++) {
			AstId param = ast_kid(s->ast, params, p);
			for (unsigned a = 0; a < ast_get(s->ast, param)->nkid; a++) {
				AstId name = 0, dim = ast_kid(s->ast, param, a);
				if (ast_get(s->ast, dim)->kind != AST_DEVICE && dim_unbound(s, sc, dim, &name) == 1)
					more |= solve_axis(s, sc, dim, name, (int32_t)p, (int32_t)a);
			}
		}
	}
}

static bool
shape_of(Sema *s, Scope *sc, AstId param, ExprId *extent)
{
	bool ok = true;
	for (unsigned a = 0; a < ast_get(s->ast, param)->nkid; a++) {
		AstId dim = ast_kid(s->ast, param, a), name = 0;
		Dom none = dom_none;
		extent[a] = 0;
		if (refuse_device(s, sc, dim)) {
			ok = false;
			continue;
		}
		while (dim_unbound(s, sc, dim, &name) && static_dim(s, sc, ast_get(s->ast, name)->name, ast_get(s->ast, name)->at))
			name = 0;
		if (name) {
			diag_add(s->diags, DIAG_E0229, ast_get(s->ast, name)->at, "the dim `%s` is bound by no input axis",
			         text_of(s, ast_get(s->ast, name)->name))->help =
				arena_text(s->arena, "make it an axis of an input, alone, or a scalar parameter, `%s: i64`; or give it: -D %s=4096",
				           text_of(s, ast_get(s->ast, name)->name), text_of(s, ast_get(s->ast, name)->name));
			ok = false;
			continue;
		}
		extent[a] = elab_index(s, dim, sc->env, &none, "a dim");
		if (extent[a] && expr_has_real(s, extent[a])) {
			diag_add(s->diags, DIAG_E0508, ast_get(s->ast, dim)->at, "a dim is computed from integers alone");
			extent[a] = 0;
		}
		ok &= extent[a] != 0;
	}
	return ok;
}

static ExprId
at_least_0(Sema *s, ExprId extent)
{
	return expr_binary(s->g, OP_LE, expr_int(s->g, DT_I64, 0), extent);
}

static void
know(Sema *s, ExprId fact)
{
	facts_push(s->facts, fact);
	s->base = facts_mark(s->facts);
}

/* --- parameters --- */

static bool
rank_ok(Sema *s, AstId param)
{
	if (ast_get(s->ast, param)->nkid <= TG_MAX_RANK)
		return true;
	Diag *g = diag_add(s->diags, DIAG_E0920, ast_get(s->ast, param)->at, "a tensor has at most %d axes", TG_MAX_RANK);
	g->help = "make two neighbouring axes one: with i of N and j of M, `i*M + j` of N*M";
	return false;
}

static bool
add_params(Sema *s, Scope *sc, AstId params)
{
	unsigned n = ast_get(s->ast, params)->nkid;
	bool ok = true;
	for (unsigned p = 0; p < n; p++) {
		AstId id = ast_kid(s->ast, params, p);
		AstNode a = *ast_get(s->ast, id);
		bool scalar = a.op == 0;
		DType t = ast_dtype(s, id);
		Entity *e = declare(s, sc, scalar ? ENT_SCALAR : ENT_TENSOR, a.name, a.name_at);
		if (!e || t == DT_NONE || !rank_ok(s, id)) {
			ok = false;
			continue;
		}
		if (scalar && a.flag) {
			diag_add(s->diags, DIAG_E0606, a.at, "a scalar parameter can't be inout")->help = "make it a tensor of one element";
			ok = false;
		}
		ExprId none[TG_MAX_RANK] = {0};
		e->inout = a.flag;
		e->used = a.flag;
		e->tensor = tensor_new(s->g, scalar ? TENSOR_SCALAR : a.flag ? TENSOR_INOUT : TENSOR_INPUT, a.name, a.name_at, t,
		                       a.nkid, none);
		if (scalar)
			e->dim = expr_read(s->g, e->tensor, NULL, 0, 0);
		vec_push(s->arena, &s->g->param, e->tensor);
	}
	return ok;
}

static bool
add_shapes(Sema *s, Scope *sc, AstId params, AstId results)
{
	unsigned n = ast_get(s->ast, params)->nkid;
	bool ok = true;
	scalar_dims(s, sc, params);
	scalar_dims(s, sc, results);
	bind_axes(s, sc, params, n);
	for (unsigned p = 0; p < n; p++) {
		ExprId extent[TG_MAX_RANK];
		if (!shape_of(s, sc, ast_kid(s->ast, params, p), extent)) {
			ok = false;
			continue;
		}
		Tensor *t = &s->g->tensor.at[s->g->param.at[p]];
		memcpy(t->extent, extent, t->rank * sizeof *extent);
		for (unsigned a = 0; a < t->rank; a++) /* the argument has so many */
			know(s, at_least_0(s, extent[a]));
	}
	return ok;
}

bool
add_results(Sema *s, Scope *sc, AstId results)
{
	bool ok = true;
	for (unsigned r = 0; r < ast_get(s->ast, results)->nkid; r++) {
		AstId id = ast_kid(s->ast, results, r);
		AstNode a = *ast_get(s->ast, id);
		ResultDecl d = {.name = a.name, .at = a.name_at, .param = id, .dtype = ast_dtype(s, id), .rank = a.nkid};
		if (a.flag)
			diag_add(s->diags, DIAG_E0606, a.at, "inout belongs to a parameter, not to a result")->help =
				"an inout parameter is handed out without being named as a result";
		if (d.dtype == DT_NONE || !rank_ok(s, id) || a.flag || !shape_of(s, sc, id, d.extent)) {
			ok = false;
			continue;
		}
		d.entity = declare(s, sc, ENT_DEF, a.name, a.name_at);
		ok &= d.entity != NULL;
		if (d.entity)
			d.entity->used = true;
		vec_push(s->arena, &sc->result, d);
	}
	return ok;
}

/* --- facts --- */

void
result_extents(Sema *s, Scope *sc)
{
	for (uint32_t r = 0; r < sc->result.n; r++)
		for (unsigned a = 0; a < sc->result.at[r].rank; a++) {
			ExprId fact = at_least_0(s, sc->result.at[r].extent[a]);
			Span at = ast_get(s->ast, ast_kid(s->ast, sc->result.at[r].param, a))->at;
			add_check(s, fact, at, DIAG_E0707, arena_text(s->arena, "%s >= 0", source_text(s, at)));
			know(s, fact);
		}
}

void
add_facts(Sema *s, Scope *sc, AstId facts)
{
	for (unsigned k = 0; k < ast_get(s->ast, facts)->nkid; k++) {
		AstId id = ast_kid(s->ast, facts, k);
		AstNode n = *ast_get(s->ast, id);
		if (n.kind == AST_HINT) {
			Entity *e = scope_find(sc, n.name);
			if (!e || (e->kind != ENT_DIM && e->kind != ENT_SCALAR))
				diag_add(s->diags, DIAG_E0230, n.at, "a hint names a dim; `%s` is none", text_of(s, n.name));
			else if (expr_get(s->g, e->dim)->op == OP_DIM)
				s->g->dim.at[expr_get(s->g, e->dim)->ref].hint = n.num.i;
			continue;
		}
		Dom d = dom_none;
		ExprId c = elab_cond(s, id, sc->env, &d);
		if (!c)
			continue;
		if (expr_has_read(s, c) || d.n) {
			diag_add(s->diags, DIAG_E0231, n.at, "a fact speaks of dims and scalars only");
			continue;
		}
		if (expr_has_real(s, c)) {
			diag_add(s->diags, DIAG_E0231, n.at, "a fact compares integers");
			continue;
		}
		if (prove(s->facts, cond_not(s, c))) { /* believed, it would prove that the next can't hold either */
			diag_add(s->diags, DIAG_E0701, n.at, "this can't hold with the dims given");
			continue;
		}
		add_check(s, c, n.at, DIAG_E0702, source_text(s, n.at));
		know(s, c);
	}
}

/* --- attributes --- */

static void
add_attributes(Sema *s, AstId attrs)
{
	static const struct { const char *name; FpMode mode; } mode[] = {
		{"strict", FP_STRICT}, {"relaxed", FP_RELAXED}, {"fast", FP_FAST},
	};
	for (unsigned k = 0; k < ast_get(s->ast, attrs)->nkid; k++) {
		AstId id = ast_kid(s->ast, attrs, k);
		AstNode n = *ast_get(s->ast, id);
		const AstNode *arg = n.nkid == 1 ? ast_get(s->ast, ast_kid(s->ast, id, 0)) : NULL;
		bool known = false;
		for (size_t m = 0; arg && arg->kind == AST_NAME && m < sizeof mode / sizeof *mode; m++)
			if (strcmp(text_of(s, n.name), "fp") == 0 && strcmp(text_of(s, arg->name), mode[m].name) == 0) {
				s->g->fp = mode[m].mode;
				known = true;
			}
		if (!known)
			diag_add(s->diags, DIAG_E0232, n.at, "there is no such attribute")->help =
				"a graph can have `@fp(strict)`, `@fp(relaxed)` or `@fp(fast)`";
	}
}

static void
all_defined(Sema *s, const Scope *sc)
{
	for (uint32_t r = 0; r < sc->result.n; r++) {
		const ResultDecl *d = &sc->result.at[r];
		if (d->entity && !d->entity->def)
			diag_add(s->diags, DIAG_E0233, d->at, "the result `%s` is never defined", text_of(s, d->name));
	}
}

static void
hand_out(Sema *s, Scope *sc)
{
	Graph *g = s->g;
	for (uint32_t p = 0; p < g->param.n; p++) {
		Entity *e = scope_find(sc, g->tensor.at[g->param.at[p]].name);
		if (!e || !e->inout)
			continue;
		if (e->def && e->def->tensor)
			vec_push(s->arena, &g->result, ((Result){e->name, e->at, e->def->tensor, e->tensor}));
		else if (!e->def)
			diag_add(s->diags, DIAG_W0203, e->at, "the inout `%s` is never written", text_of(s, e->name));
	}
	for (uint32_t r = 0; r < sc->result.n; r++) {
		const ResultDecl *d = &sc->result.at[r];
		if (d->entity && d->entity->def && d->entity->def->tensor)
			vec_push(s->arena, &g->result, ((Result){d->name, d->at, d->entity->def->tensor, 0}));
	}
}

static void
start_graph(Sema *s)
{
	s->g = graph_new(s->arena, s->names);
	s->g->fp = s->options->fp;
	s->facts = facts_new(s->g, s->arena);
	s->base = facts_mark(s->facts);
	s->ivar.n = 0;
	vec_push(s->arena, &s->ivar, (Ivar){0});
	s->node_slot = NULL;
	s->nnode_slot = s->nnode_used = 0;
	s->nonempty.n = 0;
	s->frame = NULL;
	s->steps = 0;
	s->call_at = (Span){0};
	s->spent = (Spent){0};
}

static void
end_graph(Sema *s)
{
	Diags *d = s->diags;
	s->frame = NULL;
	if (!s->spent.is)
		return;
	d->list.n = s->spent.ndiag;
	d->nerror = s->spent.nerror;
	d->nwarning = s->spent.nwarning;
}

Graph *
sema_graph(Sema *s, AstId id, uint32_t module)
{
	AstNode n = *ast_get(s->ast, id);
	AstId params = ast_kid(s->ast, id, 1), results = ast_kid(s->ast, id, 2);
	uint32_t before = s->diags->nerror;
	Frame root;
	start_graph(s);
	s->g->name = n.name;
	s->g->at = n.name_at;
	Scope *sc = ARENA_NEW(s->arena, Scope);
	sc->graph = id;
	sc->module = module;
	sc->env = ARENA_NEW(s->arena, Env);
	*sc->env = (Env){.scope = sc, .file = module};
	frame_push(s, &root, NULL);
	add_attributes(s, ast_kid(s->ast, id, 0));
	bool ok = add_params(s, sc, params);
	ok = ok && add_shapes(s, sc, params, results);
	ok = ok && add_results(s, sc, results);
	if (ok) {
		add_facts(s, sc, ast_kid(s->ast, id, 3));
		result_extents(s, sc);
		ok = scope_definitions(s, sc);
		all_defined(s, sc); /* also where a reader of such a result failed: this is why */
	}
	if (ok)
		hand_out(s, sc);
	end_graph(s);
	if (!ok || s->diags->nerror != before)
		return NULL;
	graph_finish(s);
	return s->g;
}
