/* sema_def.c: definitions: the ranges of their indices, their right sides, their nodes. */
#include "frontend/sema.h"
#include "ir/bugs.h"

#include <string.h>

/* --- nodes shared by content: one value per expression --- */

static uint32_t
mix(uint32_t h, uint32_t v)
{
	return (h ^ v) * 2654435761u + (h >> 15);
}

static uint32_t
hash_node(const Node *n, DType t, const ExprId *extent)
{
	uint32_t h = mix(mix(n->monoid, n->npar), mix(n->nred, t));
	h = mix(mix(h, n->body), mix(BUG(unequal_shared) ? 0 : n->guard, n->finish));
	for (unsigned a = 0; a < n->npar; a++)
		h = mix(mix(h, extent[a]), n->scatter ? n->target[a] : 0);
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		h = mix(mix(h, n->axis[a].lo), n->axis[a].hi);
	return h;
}

static bool
same_node(const Graph *g, TensorId t, const Node *n, DType type, const ExprId *extent)
{
	const Node *m = tensor_node(g, t);
	const Tensor *x = &g->tensor.at[t];
	if (m->monoid != n->monoid || m->npar != n->npar || m->nred != n->nred || m->body != n->body ||
	    (m->guard != n->guard && !BUG(unequal_shared)) || m->finish != n->finish || m->scatter != n->scatter ||
	    m->init != n->init || x->dtype != type || memcmp(x->extent, extent, n->npar * sizeof *extent) != 0)
		return false;
	for (unsigned a = 0; n->scatter && a < n->npar; a++)
		if (m->target[a] != n->target[a] || m->target_access[a] != n->target_access[a])
			return false;
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		if (m->axis[a].lo != n->axis[a].lo || m->axis[a].hi != n->axis[a].hi || m->axis[a].clamp != n->axis[a].clamp)
			return false;
	return true;
}

static void
grow_slots(Sema *s)
{
	NodeSlot *old = s->node_slot;
	uint32_t n = s->nnode_slot;
	s->nnode_slot = n ? n * 2 : 64;
	s->node_slot = ARENA_ARRAY(s->arena, NodeSlot, s->nnode_slot);
	for (uint32_t i = 0; i < n; i++)
		if (old[i].tensor) {
			uint32_t k = old[i].hash & (s->nnode_slot - 1);
			while (s->node_slot[k].tensor)
				k = (k + 1) & (s->nnode_slot - 1);
			s->node_slot[k] = old[i];
		}
}

/* The tensor of a node with this content; a new one, or the one there is, asked for in both places. */
TensorId
node_shared(Sema *s, const Node *n, Name name, Span at, DType dtype, const ExprId *extent)
{
	if (s->nnode_used * 2 >= s->nnode_slot)
		grow_slots(s);
	uint32_t h = hash_node(n, dtype, extent), k = h & (s->nnode_slot - 1);
	for (; s->node_slot[k].tensor; k = (k + 1) & (s->nnode_slot - 1)) {
		TensorId t = s->node_slot[k].tensor;
		if (s->node_slot[k].hash != h || !same_node(s->g, t, n, dtype, extent))
			continue;
		Node *m = tensor_node(s->g, t);
		/* not where that depends on what came after it, perhaps on itself */
		if (m->domain != n->domain && m->domain && expr_reads_from(s->g, n->domain, t))
			continue;
		if (m->domain != n->domain && !BUG(domain_of_first_use))
			m->domain = m->domain && n->domain ? expr_binary(s->g, OP_OR, m->domain, n->domain) : 0;
		return t;
	}
	TensorId t = node_add(s->g, n, name, at, dtype, extent);
	s->node_slot[k] = (NodeSlot){h, t};
	s->nnode_used++;
	return t;
}

/* --- ranges --- */

static AstId
lhs_name(const Sema *s, AstId sub)
{
	if (ast_get(s->ast, sub)->kind == AST_RANGE)
		sub = ast_kid(s->ast, sub, 0);
	return ast_get(s->ast, sub)->kind == AST_NAME ? sub : 0;
}

static bool
lhs_names_ok(Sema *s, Def *d, AstId subs)
{
	for (unsigned k = 0; k < d->rank; k++) {
		AstId sub = ast_kid(s->ast, subs, k), name = lhs_name(s, sub);
		if (!name) {
			diag_add(s->diags, DIAG_E0221, ast_get(s->ast, sub)->at, "the left side of `=` has plain distinct indices only")
				->help = "for a target computed from an index use `+=`, `max=` or `min=`";
			return false;
		}
		const AstNode *n = ast_get(s->ast, name);
		for (unsigned j = 0; j < k; j++)
			if (ast_get(s->ast, lhs_name(s, ast_kid(s->ast, subs, j)))->name == n->name) {
				diag_add(s->diags, DIAG_E0219, n->at, "the index `%s` stands twice on the left side",
				         name_text(s->names, n->name));
				return false;
			}
		const Entity *e = scope_find(d->scope, n->name);
		if (e) {
			Diag *g = diag_add(s->diags, DIAG_E0218, n->at, "the index `%s` has the name of a %s",
			                   name_text(s->names, n->name),
			                   e->kind == ENT_DIM ? "dim" : e->kind == ENT_SCALAR ? "scalar" : "tensor");
			diag_note(s->diags, g, e->at, "defined here");
			g->help = "give the index another name";
			return false;
		}
	}
	return true;
}

/* A range on the left: 0 .. an expression of dims and scalars. */
static ExprId
left_range(Sema *s, Def *d, AstId sub)
{
	Dom none = dom_none;
	AstId lo = ast_kid(s->ast, sub, 1), hi = ast_kid(s->ast, sub, 2);
	ExprId l = elab_index(s, lo, d->scope->env, &none, "the start of a range");
	ExprId h = elab_index(s, hi, d->scope->env, &none, "the end of a range");
	if (!l || !h)
		return 0;
	if (expr_get(s->g, l)->op != OP_CONST || expr_get(s->g, l)->imm.i != 0) {
		diag_add(s->diags, DIAG_E0222, ast_get(s->ast, lo)->at, "a range on the left side starts at 0")->help =
			"shift the index where it is used, or restrict it with `where`";
		return 0;
	}
	if (expr_has_real(s, h)) {
		diag_add(s->diags, DIAG_E0508, ast_get(s->ast, hi)->at, "an extent is computed from integers alone");
		return 0;
	}
	if (expr_has_read(s, h)) {
		diag_add(s->diags, DIAG_E0223, ast_get(s->ast, hi)->at,
		         "a range on the left side reads dims and scalars only")->help =
			"give the tensor its full extent and say where it is present: `… where i < n[…]`";
		return 0;
	}
	return h;
}

static Env *
def_env(Sema *s, const Def *d)
{
	Env *e = d->scope->env;
	AstId subs = ast_kid(s->ast, d->stmt, 0);
	for (unsigned k = 0; k < d->rank; k++)
		e = env_index(s, e, ast_get(s->ast, lhs_name(s, ast_kid(s->ast, subs, k)))->name, &d->ivar[k], 1);
	return e;
}

static void
set_range(Sema *s, Def *d, unsigned k, ExprId extent)
{
	Ivar *v = &s->ivar.at[d->ivar[k]];
	v->lo = expr_int(s->g, DT_I64, 0);
	v->hi = d->extent[k] = extent;
}

static void
scan_rhs(Sema *s, Def *d, unsigned k, AxisUses *uses)
{
	Env *env = def_env(s, d);
	for (unsigned p = 1; p < ast_get(s->ast, d->stmt)->nkid; p++)
		range_scan(s, ast_kid(s->ast, d->stmt, p), env, d->ivar[k], uses);
}

static bool
is_read_otherwise(const AxisUses *uses, const AxisUse *u)
{
	for (uint32_t i = 0; i < uses->other.n; i++)
		if (uses->other.at[i].tensor == u->tensor && uses->other.at[i].axis == u->axis)
			return true;
	return false;
}

/* A declared range wins, with a warning where it leaves part of an axis unread; but of x[i + 1] - x[i]
 * neither reads all. */
static void
warn_smaller(Sema *s, Def *d, unsigned k, const AxisUses *uses)
{
	for (uint32_t i = 0; i < uses->alone.n; i++) {
		const AxisUse *u = &uses->alone.at[i];
		if (u->optional || !u->extent || u->extent == d->extent[k] || is_read_otherwise(uses, u)
		    || !prove(s->facts, expr_binary(s->g, OP_LT, d->extent[k], u->extent)))
			continue;
		Diag *g = diag_add(s->diags, DIAG_W0201, u->at, "`%s` covers only a part of this axis",
		                   name_text(s->names, s->ivar.at[d->ivar[k]].name));
		diag_note(s->diags, g, s->ivar.at[d->ivar[k]].at, "its range is declared here");
		return;
	}
}

/* One index: declared, written, or inferred. False if it can't be known yet (quiet) or at all. */
static bool
range_one(Sema *s, Def *d, unsigned k, const ExprId *declared, bool quiet)
{
	AstId sub = ast_kid(s->ast, ast_kid(s->ast, d->stmt, 0), k);
	ExprId written = 0;
	if (ast_get(s->ast, sub)->kind == AST_RANGE && !(written = left_range(s, d, sub)))
		return false;
	AxisUses uses = {0};
	if (declared || written) {
		if (declared && written)
			vec_push(s->arena, &uses.alone, ((AxisUse){.extent = declared[k], .at = ast_get(s->ast, sub)->at}));
		if (declared && written)
			vec_push(s->arena, &uses.alone, ((AxisUse){.extent = written, .at = ast_get(s->ast, sub)->at}));
		extents_agree(s, &uses, s->ivar.at[d->ivar[k]].name);
		set_range(s, d, k, declared ? declared[k] : written);
		uses.alone.n = 0;
		scan_rhs(s, d, k, &uses);
		warn_smaller(s, d, k, &uses);
		return true;
	}
	scan_rhs(s, d, k, &uses);
	if (quiet && uses.alone.n == 0)
		return false; /* a later round may know more */
	bool ok = range_infer(s, d->ivar[k], &uses);
	d->extent[k] = s->ivar.at[d->ivar[k]].hi;
	return ok;
}

static const ExprId *
declared_shape(Sema *s, Def *d)
{
	if (d->entity && d->entity->inout)
		return s->g->tensor.at[d->entity->tensor].extent;
	return d->result >= 0 ? d->scope->result.at[d->result].extent : NULL;
}

static bool
declared_rank_ok(Sema *s, Def *d)
{
	unsigned want = d->entity && d->entity->inout ? s->g->tensor.at[d->entity->tensor].rank
	                                              : d->scope->result.at[d->result].rank;
	if (want == d->rank)
		return true;
	Diag *g = diag_add(s->diags, DIAG_E0220, ast_get(s->ast, d->stmt)->name_at,
	                   "`%s` is declared with %u ax%s and defined with %u ind%s",
	                   name_text(s->names, d->entity->name), want, want == 1 ? "is" : "es", d->rank,
	                   d->rank == 1 ? "ex" : "ices");
	diag_note(s->diags, g, d->entity->at, "declared here");
	return false;
}

static bool
try_ranges(Sema *s, Def *d, bool quiet)
{
	ExprId own[TG_MAX_RANK];
	const ExprId *declared = declared_shape(s, d);
	if (declared)
		memcpy(own, declared, sizeof own);
	bool ok = true;
	for (unsigned k = 0; k < d->rank; k++)
		if (!s->ivar.at[d->ivar[k]].lo)
			ok &= range_one(s, d, k, declared ? own : NULL, quiet);
	d->ranged = ok;
	return ok;
}

static bool
start_ranges(Sema *s, Def *d)
{
	AstId subs = ast_kid(s->ast, d->stmt, 0);
	d->rank = ast_get(s->ast, subs)->nkid;
	if (d->rank > TG_MAX_RANK) {
		Diag *g = diag_add(s->diags, DIAG_E0920, ast_get(s->ast, d->stmt)->at, "a tensor has at most %d axes", TG_MAX_RANK);
		g->help = "make two neighbouring axes one: with i of N and j of M, `i*M + j` of N*M";
		return false;
	}
	if (!lhs_names_ok(s, d, subs) || (declared_shape(s, d) && !declared_rank_ok(s, d)))
		return false;
	for (unsigned k = 0; k < d->rank; k++) {
		const AstNode *n = ast_get(s->ast, lhs_name(s, ast_kid(s->ast, subs, k)));
		d->ivar[k] = ivar_new(s, n->name, n->at);
	}
	return true;
}

void
def_ranges(Sema *s, Def *d)
{
	if (!start_ranges(s, d) || !try_ranges(s, d, false))
		d->failed = true;
}

/* --- right sides --- */

Val
elab_rhs(Sema *s, AstId stmt, Env *env, DType store)
{
	AstId rhs = ast_kid(s->ast, stmt, 1), where = ast_kid(s->ast, stmt, 2), other = ast_kid(s->ast, stmt, 3);
	Dom d = dom_none;
	PathMark mark = path_mark(s);
	ExprId cond = where ? elab_cond(s, where, env, &d) : 0;
	if (cond)
		d = dom_add(s, d, cond);
	path_push_dom(s, d);
	Val v = elab(s, rhs, env);
	path_reset(s, mark);
	if ((where && !cond) || val_bad(&v))
		return val_error;
	d = dom_join(s, d, v.dom);
	duties_limit(s, mark, d);
	Span at = ast_get(s->ast, rhs)->at;
	if (v.lit && !store && !where && !other)
		return v;
	ExprId e = store ? val_store(s, &v, store, at) : (v = val_typed(s, v), v.e);
	if (!e || !other)
		return e ? val_expr(e, d) : val_error;
	ExprId present = dom_expr(s, d);
	if (!present) {
		diag_add(s->diags, DIAG_W0301, ast_get(s->ast, other)->at,
		         "the value is present everywhere: this default is never used");
		return val_expr(e, d);
	}
	mark = path_mark(s);
	path_push(s, cond_not(s, present));
	Val w = elab(s, other, env);
	path_reset(s, mark);
	if (val_bad(&w))
		return val_error;
	duties_limit(s, mark, w.dom);
	ExprId x = val_store(s, &w, (DType)expr_get(s->g, e)->dtype, ast_get(s->ast, other)->at);
	if (!x)
		return val_error;
	Dom rest = dom_none;
	if (w.dom.n)
		rest = dom_add(s, rest, expr_binary(s->g, OP_OR, present, dom_expr(s, w.dom)));
	return val_expr(expr_select(s->g, present, e, x), rest);
}

/* Results, and what a recurrence reads of itself, have a value everywhere. */
static void
absent_result(Sema *s, const Def *d)
{
	AstNode n = *ast_get(s->ast, d->stmt);
	AstId where = ast_kid(s->ast, d->stmt, 2);
	Diag *g = diag_add(s->diags, DIAG_E0302, n.name_at, "the %s `%s` is absent at some indices",
	                   d->recurrent ? "recurrence" : "result", name_text(s->names, n.name));
	g->label = "must have a value everywhere";
	if (where)
		diag_note(s->diags, g, ast_get(s->ast, where)->at, "absent where this is false");
	g->help = "say what it is there: `… else 0`";
}

/* A definition that is just one reduction gives that node its name instead of copying it. */
static bool
names_node(Sema *s, Def *d, const Val *v)
{
	Expr e = *expr_get(s->g, v->e);
	if (e.op != OP_READ || e.access || v->dom.n || d->recurrent || e.narg != d->rank)
		return false;
	Tensor *t = &s->g->tensor.at[e.ref];
	if (t->kind != TENSOR_NODE || t->name || tensor_node(s->g, e.ref)->domain)
		return false;
	for (unsigned k = 0; k < d->rank; k++)
		if (expr_arg(s->g, v->e, k) != expr_ivar(s->g, d->ivar[k]) || t->extent[k] != d->extent[k])
			return false;
	AstNode stmt = *ast_get(s->ast, d->stmt);
	t->name = stmt.name;
	t->at = stmt.name_at;
	d->tensor = e.ref;
	return true;
}

static void
fill_node(Sema *s, Def *d, const Val *v)
{
	if (names_node(s, d, v))
		return;
	ExprId to[TG_MAX_AXES];
	Node n = {.npar = (uint8_t)d->rank};
	for (unsigned k = 0; k < d->rank; k++) {
		to[k] = expr_axis(s->g, k);
		n.axis[k].name = s->ivar.at[d->ivar[k]].name;
	}
	n.body = expr_ivars_to_axes(s, v->e, d->ivar, to, d->rank);
	d->dom = dom_to_axes(s, v->dom, d->ivar, d->rank);
	n.domain = dom_expr(s, d->dom);
	if (d->recurrent) {
		n.out = d->tensor;
		*tensor_node(s->g, d->tensor) = n;
		return;
	}
	AstNode stmt = *ast_get(s->ast, d->stmt);
	d->tensor = node_add(s->g, &n, stmt.name, stmt.name_at, (DType)expr_get(s->g, v->e)->dtype, d->extent);
}

/* The right side, in a frame of its own; its dom is settled. */
static Val
elab_in_frame(Sema *s, Def *d)
{
	Frame f;
	frame_push(s, &f, d);
	for (unsigned k = 0; k < d->rank; k++)
		frame_bind(s, d->ivar[k]);
	Val v = elab_rhs(s, d->stmt, def_env(s, d), d->dtype);
	if (!val_bad(&v)) {
		frame_settle(s, v.dom);
		v.dom = dom_settle(s, v.dom);
	}
	frame_pop(s);
	return v;
}

void
def_elab(Sema *s, Def *d)
{
	Val v = elab_in_frame(s, d);
	bool wanted = d->result >= 0 || d->entity->inout;
	if (val_bad(&v)) {
		d->failed = true;
		return;
	}
	if (v.lit && !wanted) {
		d->literal = v;
		d->done = true;
		return;
	}
	v = val_typed(s, v);
	if (v.dom.n && (wanted || d->recurrent)) {
		absent_result(s, d);
		d->failed = true;
		return;
	}
	fill_node(s, d, &v);
	d->done = true;
}

/* --- definitions that read each other --- */

static void
group_ranges(Sema *s, Def **m, uint32_t n)
{
	bool failed = false;
	for (uint32_t i = 0; i < n; i++)
		failed |= !start_ranges(s, m[i]);
	for (uint32_t round = 0; !failed && round < n; round++)
		for (uint32_t i = 0; i < n; i++)
			if (!m[i]->ranged)
				try_ranges(s, m[i], true);
	for (uint32_t i = 0; !failed && i < n; i++)
		if (!m[i]->ranged)
			failed |= !try_ranges(s, m[i], false);
	for (uint32_t i = 0; failed && i < n; i++)
		m[i]->failed = true;
}

static void
placeholder(Sema *s, Def *d, DType t)
{
	Node n = {.npar = (uint8_t)d->rank};
	AstNode stmt = *ast_get(s->ast, d->stmt);
	n.body = dtype_is_float(t) ? expr_float(s->g, t, 0) : expr_int(s->g, t, 0);
	d->tensor = node_add(s->g, &n, stmt.name, stmt.name_at, t, d->extent);
}

/* Elaborates all members once, reading each other with the types in `guess`; `came` gets those that came out, DT_NONE
 * of a member that failed. True if they are the same. */
static bool
group_round(Sema *s, Def **m, uint32_t n, const DType *guess, DType *came)
{
	bool stable = true;
	for (uint32_t i = 0; i < n; i++) {
		m[i]->done = m[i]->failed = false;
		placeholder(s, m[i], guess[i]);
	}
	for (uint32_t i = 0; i < n; i++) {
		def_elab(s, m[i]);
		came[i] = m[i]->failed ? DT_NONE : guess[i];
		if (!m[i]->failed && !m[i]->literal.lit)
			came[i] = (DType)expr_get(s->g, tensor_node(s->g, m[i]->tensor)->body)->dtype;
		stable &= came[i] == guess[i];
	}
	return stable;
}

/* The next types to try: those that came out; where none is another, wider ones of what failed, as a number is no bool
 * and only integers have `mod`. */
static bool
widen(Def *const *m, uint32_t n, DType *guess, const DType *came)
{
	bool other = false, wider = false;
	for (uint32_t i = 0; i < n; i++) {
		if (!came[i] || came[i] == guess[i])
			continue;
		guess[i] = came[i];
		other = true;
	}
	for (uint32_t i = 0; !other && i < n; i++) {
		if (came[i] || m[i]->dtype || (guess[i] != DT_BOOL && guess[i] != DT_I32))
			continue;
		guess[i] = guess[i] == DT_BOOL ? DT_I32 : DT_F32;
		wider = true;
	}
	return other || wider;
}

/* Elaborates the members with the narrowest types that agree, from bool on: what is read is nothing that would make a
 * sum of integers one of floats. Where none agree, with those that leave least to complain of. The group's nodes
 * begin at the result. */
static uint32_t
group_types(Sema *s, Def **m, uint32_t n)
{
	Diags *d = s->diags;
	DType *guess = ARENA_ARRAY(s->arena, DType, n), *came = ARENA_ARRAY(s->arena, DType, n), *best = ARENA_ARRAY(s->arena, DType, n);
	uint32_t ncheck = s->g->check.n, ndiag = d->list.n, nerror = d->nerror, nwarning = d->nwarning, least = UINT32_MAX;
	for (uint32_t i = 0; i < n; i++)
		guess[i] = m[i]->dtype ? m[i]->dtype : DT_BOOL;
	for (uint32_t round = 0, more = true;; round++) {
		uint32_t first = s->g->tensor.n;
		if (group_round(s, m, n, more ? guess : best, came) || !more || s->spent.is)
			return first;
		for (uint32_t i = 0; i < n; i++) {
			if (came[i] || d->nerror - nerror > least)
				continue;
			least = d->nerror - nerror;
			memcpy(best, guess, n * sizeof *guess);
		}
		more = round < n * DT_COUNT && widen(m, n, guess, came);
		if (!more && least == UINT32_MAX)
			bug(s->arena, "the types of a recurrence do not settle");
		s->g->check.n = ncheck;
		d->list.n = ndiag;
		d->nerror = nerror;
		d->nwarning = nwarning;
	}
}

void
group_elab(Sema *s, Def **m, uint32_t n)
{
	group_ranges(s, m, n);
	for (uint32_t i = 0; i < n; i++) {
		m[i]->recurrent = true;
		if (m[i]->failed)
			return;
	}
	uint32_t first = group_types(s, m, n);
	bool failed = false;
	for (uint32_t i = 0; i < n; i++)
		failed |= m[i]->failed;
	failed = failed || !recur_build(s, m, n, first);
	for (uint32_t i = 0; failed && i < n; i++)
		m[i]->failed = true;
}
