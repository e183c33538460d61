/* sema_block.c: the definitions of a graph: collected, ordered by what they read, elaborated; calls
 * of other graphs, inlined as instances with names of their own. */
#include "frontend/sema.h"

#include <string.h>

/* A statement and the names it defines. */
typedef struct {
	AstId stmt;
	VEC(Def *) def;
	VEC(uint32_t) reads; /* units */
	uint32_t index, low; /* Tarjan; 0 = not met */
	uint32_t next;       /* of reads, while walking */
	bool on_stack, self;
} DefUnit;

typedef VEC(DefUnit) Units;

static const char *
text_of(Sema *s, Name n)
{
	return name_text(s->names, n);
}

/* --- collecting --- */

static Def *
new_def(Sema *s, Scope *sc, Entity *e, AstId stmt)
{
	Def *d = ARENA_NEW(s->arena, Def);
	*d = (Def){.entity = e, .stmt = stmt, .scope = sc, .result = -1, .order = sc->def.n};
	for (uint32_t r = 0; r < sc->result.n; r++)
		if (sc->result.at[r].entity == e) {
			d->result = (int32_t)r;
			d->dtype = sc->result.at[r].dtype;
		}
	if (e->inout)
		d->dtype = s->g->tensor.at[e->tensor].dtype;
	e->def = d;
	vec_push(s->arena, &sc->def, d);
	return d;
}

/* The definition a name gets here; NULL with an error. */
static Def *
define(Sema *s, Scope *sc, Name name, Span at, AstId stmt)
{
	Entity *e = scope_find(sc, name);
	if (!e)
		e = scope_add(s, sc, ENT_DEF, name, at);
	if (e->def) {
		Diag *d = diag_add(s->diags, DIAG_E0224, at, "`%s` is defined twice", text_of(s, name));
		diag_note(s->diags, d, ast_get(s->ast, e->def->stmt)->at, "first defined here");
		d->help = "a definition is an equation: give the second value another name";
		return NULL;
	}
	if (e->kind != ENT_DEF && !e->inout) {
		Diag *d = diag_add(s->diags, DIAG_E0227, at, "`%s` is a %s and can't be defined", text_of(s, name),
		                   e->kind == ENT_DIM ? "dim" : "parameter");
		if (e->kind == ENT_TENSOR)
			d->help = arena_text(s->arena, "declare it `inout %s: …` to overwrite it", text_of(s, name));
		return NULL;
	}
	return new_def(s, sc, e, stmt);
}

static void
declared_type(Sema *s, Def *d, AstId stmt)
{
	AstNode n = *ast_get(s->ast, stmt);
	if (!n.num.text)
		return;
	const char *text = text_of(s, n.num.text);
	DType t = dtype_named(text, strlen(text));
	if (t == DT_NONE)
		diag_add(s->diags, DIAG_E0509, n.at, "`%s` is not a dtype", text);
	else if (d->dtype && d->dtype != t)
		diag_add(s->diags, DIAG_E0510, n.at, "`%s` is declared %s in the signature", text_of(s, n.name),
		         dtype_info[d->dtype].text);
	else
		d->dtype = t;
}

static void
add_unit(Sema *s, Scope *sc, Units *u, AstId stmt)
{
	AstNode n = *ast_get(s->ast, stmt);
	DefUnit unit = {.stmt = stmt};
	if (n.kind == AST_DEFINE) {
		Def *d = define(s, sc, n.name, n.name_at, stmt);
		if (!d)
			return;
		declared_type(s, d, stmt);
		vec_push(s->arena, &unit.def, d);
	} else {
		AstId names = ast_kid(s->ast, stmt, 0);
		for (unsigned k = 0; k < ast_get(s->ast, names)->nkid; k++) {
			const AstNode *x = ast_get(s->ast, ast_kid(s->ast, names, k));
			Def *d = define(s, sc, x->name, x->at, stmt);
			if (!d)
				return;
			vec_push(s->arena, &unit.def, d);
		}
	}
	vec_push(s->arena, u, unit);
}

/* --- what reads what --- */

typedef struct {
	Sema *s;
	Scope *sc;
	Units *u;
	uint32_t *unit_of; /* by Def.order */
	uint32_t from;
} Reads;

static void
find_reads(Reads *r, AstId id)
{
	Ast *t = r->s->ast;
	const AstNode *n = ast_get(t, id);
	if (n->kind == AST_NAME || n->kind == AST_READ) {
		Entity *e = scope_find(r->sc, n->name);
		if (e && e->kind == ENT_DEF && e->def) {
			DefUnit *unit = &r->u->at[r->from];
			uint32_t to = r->unit_of[e->def->order];
			unit->self |= to == r->from;
			vec_push(r->s->arena, &unit->reads, to);
		}
	}
	for (unsigned k = 0; k < n->nkid; k++)
		find_reads(r, ast_kid(t, id, k));
}

static void
all_reads(Sema *s, Scope *sc, Units *u)
{
	Reads r = {.s = s, .sc = sc, .u = u, .unit_of = ARENA_ARRAY(s->arena, uint32_t, sc->def.n + 1)};
	for (uint32_t i = 0; i < u->n; i++)
		for (uint32_t k = 0; k < u->at[i].def.n; k++)
			r.unit_of[u->at[i].def.at[k]->order] = i;
	for (r.from = 0; r.from < u->n; r.from++) {
		AstId stmt = u->at[r.from].stmt;
		bool call = ast_get(s->ast, stmt)->kind == AST_CALLDEF;
		for (unsigned k = call ? 1 : 0; k < ast_get(s->ast, stmt)->nkid; k++)
			find_reads(&r, ast_kid(s->ast, stmt, k));
	}
}

/* --- elaboration, a strongly connected component at a time --- */

static bool
is_scatter(const Sema *s, const DefUnit *u)
{
	const AstNode *n = ast_get(s->ast, u->stmt);
	return n->kind == AST_DEFINE && n->op != AB_SET;
}

static void
fail_all(DefUnit *u)
{
	for (uint32_t k = 0; k < u->def.n; k++)
		u->def.at[k]->failed = true;
}

static void
elab_component(Sema *s, Scope *sc, Units *u, const uint32_t *at, uint32_t n)
{
	DefUnit *first = &u->at[at[0]];
	if (n == 1 && !first->self) {
		if (ast_get(s->ast, first->stmt)->kind == AST_CALLDEF) {
			if (!call_graph(s, sc, first->stmt))
				fail_all(first);
		} else if (is_scatter(s, first)) {
			scatter_elab(s, first->def.at[0]);
		} else {
			def_ranges(s, first->def.at[0]);
			if (!first->def.at[0]->failed)
				def_elab(s, first->def.at[0]);
		}
		return;
	}
	Def **member = ARENA_ARRAY(s->arena, Def *, n);
	bool ok = true;
	for (uint32_t i = 0; i < n; i++) {
		DefUnit *x = &u->at[at[i]];
		member[i] = x->def.at[0];
		if (is_scatter(s, x) || ast_get(s->ast, x->stmt)->kind == AST_CALLDEF) {
			diag_add(s->diags, DIAG_E0605, ast_get(s->ast, x->stmt)->at, "%s can't be part of a recurrence",
			         is_scatter(s, x) ? "a scatter" : "a graph call");
			ok = false;
		}
	}
	if (ok)
		group_elab(s, member, n);
	for (uint32_t i = 0; !ok && i < n; i++)
		member[i]->failed = true;
}

/* Definitions in the order of the file. */
static void
sort_component(uint32_t *at, uint32_t n)
{
	for (uint32_t i = 1; i < n; i++)
		for (uint32_t k = i; k > 0 && at[k] < at[k - 1]; k--) {
			uint32_t t = at[k];
			at[k] = at[k - 1];
			at[k - 1] = t;
		}
}

/* Tarjan's strongly connected components, with a stack of its own; they come out readers last. */
static void
components(Sema *s, Scope *sc, Units *u)
{
	VEC(uint32_t) walk = {0}, open = {0};
	uint32_t counter = 0;
	for (uint32_t root = 0; root < u->n && !diags_full(s->diags); root++) {
		if (u->at[root].index)
			continue;
		vec_push(s->arena, &walk, root);
		while (walk.n) {
			uint32_t v = walk.at[walk.n - 1];
			DefUnit *x = &u->at[v];
			if (!x->index) {
				x->index = x->low = ++counter;
				x->on_stack = true;
				vec_push(s->arena, &open, v);
			}
			bool down = false;
			while (x->next < x->reads.n && !down) {
				DefUnit *w = &u->at[x->reads.at[x->next]];
				if (!w->index) {
					vec_push(s->arena, &walk, x->reads.at[x->next]);
					down = true;
				} else {
					if (w->on_stack && w->low < x->low)
						x->low = w->low;
					x->next++;
				}
			}
			if (down)
				continue;
			walk.n--;
			if (x->low != x->index)
				continue;
			uint32_t start = open.n;
			while (open.at[--start] != v)
				;
			for (uint32_t i = start; i < open.n; i++)
				u->at[open.at[i]].on_stack = false;
			sort_component(open.at + start, open.n - start);
			elab_component(s, sc, u, open.at + start, open.n - start);
			open.n = start;
		}
	}
}

static void
warn_unused(Sema *s, Scope *sc)
{
	for (uint32_t i = 0; i < sc->def.n; i++) {
		const Def *d = sc->def.at[i];
		if (!d->entity->used && !d->failed)
			diag_add(s->diags, DIAG_W0202, ast_get(s->ast, d->stmt)->kind == AST_DEFINE ? ast_get(s->ast, d->stmt)->name_at
			                                                                        : d->entity->at,
			         "`%s` is never used", text_of(s, d->entity->name));
	}
}

bool
scope_definitions(Sema *s, Scope *sc)
{
	AstId block = ast_kid(s->ast, sc->graph, 4);
	Units u = {0};
	for (unsigned k = 0; k < ast_get(s->ast, block)->nkid; k++)
		add_unit(s, sc, &u, ast_kid(s->ast, block, k));
	all_reads(s, sc, &u);
	components(s, sc, &u);
	bool ok = true;
	for (uint32_t i = 0; i < sc->def.n; i++)
		ok &= !sc->def.at[i]->failed;
	if (ok && sc->depth == 0)
		warn_unused(s, sc);
	return ok;
}

/* --- graph calls --- */

static void
must_equal(Sema *s, ExprId have, ExprId want, Span at, Name param, unsigned axis)
{
	ExprId same = expr_binary(s->g, OP_EQ, have, want);
	if (have == want || prove(s->facts, same))
		return;
	if (prove(s->facts, cond_not(s, same))) {
		diag_add(s->diags, DIAG_E0607, at, "axis %u of `%s` has another extent than the graph declares", axis,
		         text_of(s, param));
		return;
	}
	add_check(s, same, at, DIAG_E0705,
	          arena_text(s->arena, "axis %u of `%s` has the extent the called graph declares", axis, text_of(s, param)));
}

static bool
pass_tensor(Sema *s, Scope *sc, Scope *inner, AstId param, AstId arg)
{
	AstNode p = *ast_get(s->ast, param), a = *ast_get(s->ast, arg);
	Entity *have = a.kind == AST_NAME ? scope_find(sc, a.name) : NULL;
	unsigned rank;
	const ExprId *extent;
	if (!have || !entity_shape(s, have, &rank, &extent)) {
		if (!have || have->kind != ENT_DEF || (have->def && !have->def->failed))
			diag_add(s->diags, DIAG_E0608, a.at, "the called graph takes a whole tensor here: give its name");
		return false;
	}
	have->used = true;
	TensorId t = have->kind == ENT_DEF ? have->def->tensor : have->tensor;
	if (!t || (have->kind == ENT_DEF && have->def->dom.n)) {
		diag_add(s->diags, DIAG_E0608, a.at, "`%s` must have a value at every index to be passed", text_of(s, a.name));
		return false;
	}
	DType want = ast_dtype(s, param);
	if (rank != p.nkid || want != s->g->tensor.at[t].dtype) {
		diag_add(s->diags, DIAG_E0609, a.at, "`%s` is %s with %u axes; the graph takes %s with %u", text_of(s, a.name),
		         dtype_info[s->g->tensor.at[t].dtype].text, rank, text_of(s, p.num.text), p.nkid);
		return false;
	}
	Entity *e = declare(s, inner, ENT_TENSOR, p.name, p.name_at);
	if (!e)
		return false;
	e->tensor = t;
	e->used = true;
	return true;
}

static bool
pass_scalar(Sema *s, Scope *sc, Scope *inner, AstId param, AstId arg)
{
	AstNode p = *ast_get(s->ast, param);
	DType t = ast_dtype(s, param);
	Val v = elab(s, arg, sc->env);
	ExprId e = t == DT_NONE ? 0 : val_store(s, &v, t, ast_get(s->ast, arg)->at);
	Entity *x = e ? declare(s, inner, ENT_SCALAR, p.name, p.name_at) : NULL;
	if (!x)
		return false;
	x->dim = dtype_is_int(t) ? tidy_index(s, expr_cast(s->g, DT_I64, e)) : e;
	x->used = true;
	return true;
}

/* The one unbound name of an axis, so that a line through its values at 0 and 1 meets what is passed;
 * must_equal holds the axis against it after. */
static bool
solve_inner(Sema *s, Scope *inner, AstId dim, AstId name, ExprId have)
{
	Graph *g = s->g;
	AstNode n = *ast_get(s->ast, name);
	Entity *e = scope_add(s, inner, ENT_DIM, n.name, n.at);
	ExprId at[2];
	Dom none = dom_none;
	for (int x = 0; x < 2; x++) {
		e->dim = expr_int(g, DT_I64, x);
		at[x] = elab_index(s, dim, inner->env, &none, "a dim");
		if (!at[x])
			return false;
	}
	ExprId step = index_norm(g, expr_binary(g, OP_SUB, at[1], at[0]));
	if (step == expr_int(g, DT_I64, 0)) {
		diag_add(s->diags, DIAG_E0229, ast_get(s->ast, dim)->at, "the dim `%s` can't be found from this axis",
		         text_of(s, n.name));
		return false;
	}
	e->dim = index_norm(g, expr_binary(g, OP_IDIV, expr_binary(g, OP_SUB, have, at[0]), step));
	ExprId fact = expr_binary(g, OP_LE, expr_int(g, DT_I64, 0), e->dim);
	add_check(s, fact, ast_get(s->ast, dim)->at, DIAG_E0705,
	          arena_text(s->arena, "`%s` of the called graph is at least 0", text_of(s, n.name)));
	facts_push(s->facts, fact);
	s->base = facts_mark(s->facts);
	return true;
}

typedef struct {
	Name name; /* of the parameter */
	Span at;
	unsigned axis;
	AstId dim;
	ExprId have;
} PassedAxis;

/* Calls f for every axis of the tensors passed; true where one said so. */
static bool
each_axis(Sema *s, Scope *inner, AstId params, bool (*f)(Sema *, Scope *, const PassedAxis *))
{
	bool any = false;
	for (unsigned k = 0; k < ast_get(s->ast, params)->nkid; k++) {
		AstNode p = *ast_get(s->ast, ast_kid(s->ast, params, k));
		const Entity *e = scope_find(inner, p.name);
		for (unsigned a = 0; a < p.nkid && e->kind == ENT_TENSOR; a++) {
			PassedAxis x = {p.name, p.at, a, ast_kid(s->ast, ast_kid(s->ast, params, k), a),
			                s->g->tensor.at[e->tensor].extent[a]};
			any |= f(s, inner, &x);
		}
	}
	return any;
}

static bool
bind_alone(Sema *s, Scope *inner, const PassedAxis *x)
{
	AstNode d = *ast_get(s->ast, x->dim);
	if (d.kind == AST_NAME && !scope_find(inner, d.name) && !item_find(s, inner->module, d.name))
		scope_add(s, inner, ENT_DIM, d.name, d.at)->dim = x->have;
	return false;
}

static bool
bind_solved(Sema *s, Scope *inner, const PassedAxis *x)
{
	AstId name = 0;
	return dim_unbound(s, inner, x->dim, &name) == 1 && solve_inner(s, inner, x->dim, name, x->have);
}

/* True when the axis can't be what is passed. */
static bool
axis_differs(Sema *s, Scope *inner, const PassedAxis *x)
{
	Dom none = dom_none;
	ExprId want = elab_index(s, x->dim, inner->env, &none, "a dim");
	if (want)
		must_equal(s, x->have, want, x->at, x->name, x->axis);
	return !want;
}

/* The callee's dims, from the extents of what is passed: names alone first, then what is solved, as long
 * as something new gets bound. */
static bool
inner_dims(Sema *s, Scope *inner, AstId params)
{
	uint32_t before = s->diags->nerror;
	each_axis(s, inner, params, bind_alone);
	while (s->diags->nerror == before && each_axis(s, inner, params, bind_solved))
		continue;
	return s->diags->nerror == before && !each_axis(s, inner, params, axis_differs);
}

static bool
bind_results(Sema *s, Scope *sc, Scope *inner, AstId names)
{
	for (uint32_t r = 0; r < inner->result.n; r++) {
		Entity *e = scope_find(sc, ast_get(s->ast, ast_kid(s->ast, names, r))->name);
		const Def *from = inner->result.at[r].entity ? inner->result.at[r].entity->def : NULL;
		if (!from || from->failed)
			return false;
		Def *d = e->def;
		if (d->result >= 0 && (sc->result.at[d->result].dtype != inner->result.at[r].dtype ||
		                       sc->result.at[d->result].rank != from->rank)) {
			diag_add(s->diags, DIAG_E0609, ast_get(s->ast, d->stmt)->at, "`%s` is declared with another dtype or rank",
			         text_of(s, e->name));
			return false;
		}
		for (unsigned a = 0; d->result >= 0 && a < from->rank; a++)
			must_equal(s, from->extent[a], sc->result.at[d->result].extent[a], ast_get(s->ast, d->stmt)->at, e->name, a);
		d->rank = from->rank;
		memcpy(d->extent, from->extent, sizeof d->extent);
		d->tensor = from->tensor;
		d->ranged = d->done = true;
	}
	return true;
}

bool
call_graph(Sema *s, Scope *sc, AstId stmt)
{
	AstNode n = *ast_get(s->ast, stmt);
	AstId names = ast_kid(s->ast, stmt, 0), args = ast_kid(s->ast, stmt, 1);
	Item *item = item_find(s, sc->module, n.name);
	if (!item || ast_get(s->ast, item->ast)->kind != AST_GRAPH) {
		diag_add(s->diags, DIAG_E0610, n.name_at, "there is no graph `%s` to call", text_of(s, n.name));
		return false;
	}
	AstId g = item->ast, params = ast_kid(s->ast, g, 1);
	if (sc->depth + 1 > MAX_INLINE_DEPTH || item->active) {
		diag_add(s->diags, DIAG_E0210, n.name_at, "the graph `%s` calls itself", text_of(s, n.name));
		return false;
	}
	if (ast_get(s->ast, params)->nkid != ast_get(s->ast, args)->nkid ||
	    ast_get(s->ast, ast_kid(s->ast, g, 2))->nkid != ast_get(s->ast, names)->nkid) {
		diag_add(s->diags, DIAG_E0206, n.at, "`%s` takes %u arguments and gives %u results", text_of(s, n.name),
		         ast_get(s->ast, params)->nkid, ast_get(s->ast, ast_kid(s->ast, g, 2))->nkid);
		return false;
	}
	Scope *inner = ARENA_NEW(s->arena, Scope);
	*inner = (Scope){.graph = g, .module = item->module, .depth = sc->depth + 1};
	inner->env = ARENA_NEW(s->arena, Env);
	*inner->env = (Env){.scope = inner, .file = item->module};
	bool ok = true;
	for (unsigned k = 0; k < ast_get(s->ast, params)->nkid; k++) {
		AstId param = ast_kid(s->ast, params, k), arg = ast_kid(s->ast, args, k);
		if (ast_get(s->ast, param)->flag) {
			diag_add(s->diags, DIAG_E0611, n.at, "`%s` overwrites its parameter, so it can't be called", text_of(s, n.name));
			return false;
		}
		ok &= ast_get(s->ast, param)->op ? pass_tensor(s, sc, inner, param, arg) : pass_scalar(s, sc, inner, param, arg);
	}
	uint32_t index = (uint32_t)(item - s->item.at);
	s->item.at[index].active = true;
	ok = ok && inner_dims(s, inner, params) && add_results(s, inner, ast_kid(s->ast, g, 2));
	if (ok) {
		add_facts(s, inner, ast_kid(s->ast, g, 3));
		result_extents(s, inner);
		ok = scope_definitions(s, inner) && bind_results(s, sc, inner, names);
	}
	s->item.at[index].active = false;
	return ok;
}
