/* sizes.c: see sizes.h. A depth-first search over the unknowns; a check prunes as soon as it can be
 * decided. Candidates are ordinary small sizes, started at another one for each dim so that a
 * transposed access shows, then what the constants of the graph suggest. */
#include "driver/sizes.h"

enum { MAX_CANDIDATES = 192, MAX_STEPS = 200 * 1000, MAX_ELEMENTS = 1 << 22 };

typedef struct {
	bool is_dim;
	uint32_t id; /* DimId or TensorId */
	int64_t candidate[MAX_CANDIDATES];
	unsigned ncandidate;
} Unknown;

typedef struct {
	LaunchEnv *env;
	Arena *arena;
	VEC(Unknown) unknown;
	VEC(ExprId) check;  /* conditions that were open before the search */
	VEC(TensorId) open; /* tensors with an extent that was open */
	bool hints;
	TensorId large;     /* one that no size was found small enough for; 0: none */
	int64_t steps;
} Search;

bool
sizes_solve_axis(LaunchEnv *env, ExprId e, int64_t length)
{
	int64_t v, v0, v1, v2;
	if (launch_value(env, e, &v))
		return v == length;
	for (DimId d = 1; d < env->graph->dim.n; d++) {
		if (env->dim_known[d])
			continue;
		env->dim_known[d] = true;
		bool known = (env->dim[d] = 0, launch_value(env, e, &v0)) && (env->dim[d] = 1, launch_value(env, e, &v1)) &&
		             (env->dim[d] = 2, launch_value(env, e, &v2));
		env->dim_known[d] = false;
		__int128 step = known ? (__int128)v1 - v0 : 0, rest = known ? (__int128)length - v0 : 0;
		if (step == 0 || (__int128)v2 - v1 != step)
			continue;
		if (rest % step != 0 || rest / step < 0 || rest / step > INT64_MAX)
			return false;
		env->dim[d] = (int64_t)(rest / step);
		env->dim_known[d] = true;
		/* only if it is linear all the way; else the search decides */
		if (!launch_value(env, e, &v) || v != length)
			env->dim_known[d] = false;
		return true;
	}
	return true;
}

static void
offer(Unknown *u, int64_t v)
{
	for (unsigned i = 0; i < u->ncandidate; i++)
		if (u->candidate[i] == v)
			return;
	if (u->ncandidate < MAX_CANDIDATES && v >= 0 && v <= 1 << 20)
		u->candidate[u->ncandidate++] = v;
}

static void
offer_constants(const Graph *g, Unknown *u)
{
	for (ExprId e = 1; e < g->expr.n && u->ncandidate < MAX_CANDIDATES; e++) {
		const Expr *x = expr_get(g, e);
		if (x->op != OP_CONST || x->dtype != DT_I64 || x->imm.i < 2 || x->imm.i > 1 << 16)
			continue;
		offer(u, x->imm.i);
		offer(u, x->imm.i + 1);
		offer(u, 2 * x->imm.i);
		offer(u, 4 * x->imm.i);
	}
}

static void
fill_candidates(const Search *s, Unknown *u, unsigned turn)
{
	static const int64_t first[] = {8, 4, 6, 5, 7, 3};
	static const int64_t rest[] = {16, 2,  12, 10, 32, 9,  1,  24, 64, 48, 128, 256, 20,  40,  96,
	                               11, 13, 14, 15, 17, 18, 19, 21, 22, 23, 25,  27,  28,  30,  36,
	                               60, 80, 72, 49, 81, 192, 512, 1024, 0};
	const Graph *g = s->env->graph;
	if (s->hints && u->is_dim && g->dim.at[u->id].hint > 0)
		u->candidate[u->ncandidate++] = g->dim.at[u->id].hint;
	if (!u->is_dim) /* a scalar such as a stride or a window: 1 and 2 are the safest */
		for (int64_t v = 1; v <= 3; v++)
			offer(u, v);
	for (unsigned i = 0; i < sizeof first / sizeof first[0]; i++)
		offer(u, first[(i + turn) % (sizeof first / sizeof first[0])]);
	for (unsigned i = 0; i < sizeof rest / sizeof rest[0]; i++)
		offer(u, rest[i]);
	offer_constants(g, u);
}

static void
add_unknown(Search *s, bool is_dim, uint32_t id)
{
	for (uint32_t i = 0; i < s->unknown.n; i++)
		if (s->unknown.at[i].is_dim == is_dim && s->unknown.at[i].id == id)
			return;
	vec_grow(s->arena, &s->unknown, 1);
	Unknown *u = &s->unknown.at[s->unknown.n - 1];
	u->is_dim = is_dim;
	u->id = id;
	fill_candidates(s, u, s->unknown.n - 1);
}

static void
visit_scalar(void *user, ExprId e)
{
	Search *s = user;
	const Graph *g = s->env->graph;
	const Expr *x = expr_get(g, e);
	if (x->op != OP_READ || s->env->scalar_known[x->ref] || g->tensor.at[x->ref].rank != 0 ||
	    g->tensor.at[x->ref].kind == TENSOR_NODE || !dtype_is_int((DType)x->dtype))
		return;
	add_unknown(s, false, x->ref);
}

/* A dim bound by a scalar parameter is the same unknown as the parameter. */
static TensorId
scalar_of_dim(const Graph *g, DimId d)
{
	const Dim *dim = &g->dim.at[d];
	return !dim->fixed && dim->axis == -1 && dim->param >= 0 ? g->param.at[dim->param] : 0;
}

static void
set(Search *s, const Unknown *u, bool known, int64_t v)
{
	const Graph *g = s->env->graph;
	for (DimId d = 1; d < g->dim.n; d++)
		if (u->is_dim ? d == u->id : scalar_of_dim(g, d) == u->id) {
			s->env->dim[d] = v;
			s->env->dim_known[d] = known;
		}
	TensorId t = u->is_dim ? scalar_of_dim(g, u->id) : u->id;
	if (t) {
		s->env->scalar[t] = v;
		s->env->scalar_known[t] = known;
	}
}

/* Whether nothing that can be decided now speaks against the sizes. */
static bool
holds(Search *s)
{
	const Graph *g = s->env->graph;
	int64_t v;
	for (uint32_t i = 0; i < s->check.n; i++) {
		s->steps++;
		if (launch_value(s->env, s->check.at[i], &v) && !v)
			return false;
	}
	for (uint32_t i = 0; i < s->open.n; i++) {
		const Tensor *t = &g->tensor.at[s->open.at[i]];
		double count = 1;
		for (unsigned k = 0; k < t->rank; k++) {
			s->steps++;
			if (!launch_value(s->env, t->extent[k], &v))
				continue;
			if (v < 0)
				return false;
			count *= v > 0 ? (double)v : 1;
			if (k + 1u == t->rank && dtype_info[t->dtype].bits == 4 && v % 2 != 0)
				return false; /* two to a byte */
		}
		if (!s->hints && count > MAX_ELEMENTS) {
			s->large = s->open.at[i];
			return false;
		}
	}
	return true;
}

static bool
search(Search *s, uint32_t at)
{
	if (at == s->unknown.n)
		return true;
	const Unknown *u = &s->unknown.at[at];
	for (unsigned i = 0; i < u->ncandidate && s->steps < MAX_STEPS; i++) {
		set(s, u, true, u->candidate[i]);
		if (holds(s) && search(s, at + 1))
			return true;
	}
	set(s, u, false, 0);
	return false;
}

static void
collect(Search *s)
{
	const Graph *g = s->env->graph;
	int64_t v;
	for (DimId d = 1; d < g->dim.n; d++)
		if (!s->env->dim_known[d] && !scalar_of_dim(g, d))
			add_unknown(s, true, d);
	for (DimId d = 1; d < g->dim.n; d++)
		if (!s->env->dim_known[d] && scalar_of_dim(g, d))
			add_unknown(s, false, scalar_of_dim(g, d));
	for (uint32_t i = 0; i < g->check.n; i++)
		if (!launch_value(s->env, g->check.at[i].cond, &v)) {
			vec_push(s->arena, &s->check, g->check.at[i].cond);
			expr_walk(g, s->arena, g->check.at[i].cond, visit_scalar, s);
		}
	for (TensorId t = 1; t < g->tensor.n; t++) {
		bool open = false;
		for (unsigned k = 0; k < g->tensor.at[t].rank; k++)
			if (!launch_value(s->env, g->tensor.at[t].extent[k], &v)) {
				open = true;
				expr_walk(g, s->arena, g->tensor.at[t].extent[k], visit_scalar, s);
			}
		if (open)
			vec_push(s->arena, &s->open, t);
	}
}

typedef struct {
	const Search *search;
	bool *named; /* by DimId */
} NamedDims;

static void
visit_named(void *user, ExprId e)
{
	NamedDims *x = user;
	const Expr *p = expr_get(x->search->env->graph, e);
	if (p->op == OP_DIM)
		x->named[p->ref] = true;
}

/* The facts may hold, and the elements be too many. */
static bool
is_large(const Search *s, const char *names, const char *first, Problem *p)
{
	const Graph *g = s->env->graph;
	const Tensor *t = &g->tensor.at[s->large];
	NamedDims x = {s, ARENA_ARRAY(s->arena, bool, g->dim.n + 1)};
	const char *with = "";
	for (unsigned k = 0; k < t->rank; k++)
		expr_walk(g, s->arena, t->extent[k], visit_named, &x);
	for (DimId d = 1; d < g->dim.n; d++)
		if (x.named[d] && s->env->dim_known[d])
			with = arena_text(s->arena, "%s%s%s = %lld", with, *with ? ", " : " with ", name_text(g->names, g->dim.at[d].name),
			                  (long long)s->env->dim[d]);
	problem(p, EXIT_INPUT, "%s has too many elements%s, whatever small size %s has",
	        t->name ? name_text(g->names, t->name) : "a tensor", with, names);
	return problem_help(p, "give a smaller size, or all sizes: %s=... on the command line, or input files", first);
}

static bool
not_found(const Search *s, Problem *p)
{
	const Graph *g = s->env->graph;
	const char *names = "", *first = "";
	for (uint32_t i = 0; i < s->unknown.n; i++) {
		const Unknown *u = &s->unknown.at[i];
		const char *name = name_text(g->names, u->is_dim ? g->dim.at[u->id].name : g->tensor.at[u->id].name);
		names = arena_text(s->arena, "%s%s%s", names, i ? ", " : "", name);
		first = i ? first : name;
	}
	if (s->large)
		return is_large(s, names, first, p);
	problem(p, EXIT_INPUT, "no small sizes for %s satisfy the facts of graph %s", names, name_text(g->names, g->name));
	return problem_help(p, "give them: %s=... on the command line, or input files", first);
}

bool
sizes_choose(LaunchEnv *env, bool hints, Arena *a, SizesChosen *chosen, Problem *p)
{
	Search s = {.env = env, .arena = a, .hints = hints};
	const Graph *g = env->graph;
	chosen->dim = ARENA_ARRAY(a, bool, g->dim.n + 1);
	chosen->scalar = ARENA_ARRAY(a, bool, g->tensor.n + 1);
	collect(&s);
	if (!search(&s, 0))
		return not_found(&s, p);
	for (uint32_t i = 0; i < s.unknown.n; i++) {
		const Unknown *u = &s.unknown.at[i];
		(u->is_dim ? chosen->dim : chosen->scalar)[u->id] = true;
	}
	return true;
}
