/* launch_expr.c: see launch_expr.h. Arithmetic is LANGUAGE.md's: it wraps, div and mod floor, by 0
 * they give -1 and the dividend. Launch expressions are small; one that is deeper than MAX_DEPTH or
 * takes more than MAX_STEPS (shared parts count each time) stays undecided. */
#include "ir/launch_expr.h"

#include "ir/gpu_facts.h"

enum { MAX_DEPTH = 1000, MAX_STEPS = 100 * 1000 };

typedef struct {
	const LaunchEnv *env;
	const Graph *graph;
	int64_t steps;
} Evaluation;

static bool value(Evaluation *s, ExprId e, int64_t *out, unsigned depth);

void
launch_env_init(LaunchEnv *env, const Graph *g, Arena *a)
{
	env->graph = g;
	env->dim = ARENA_ARRAY(a, int64_t, g->dim.n + 1);
	env->dim_known = ARENA_ARRAY(a, bool, g->dim.n + 1);
	env->scalar = ARENA_ARRAY(a, int64_t, g->tensor.n + 1);
	env->scalar_known = ARENA_ARRAY(a, bool, g->tensor.n + 1);
	env->fact = gpu_row_usual()->fact;
}

static int64_t
floor_div(int64_t a, int64_t b)
{
	if (b == 0)
		return -1;
	if (b == -1)
		return (int64_t)(0 - (uint64_t)a);
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
floor_mod(int64_t a, int64_t b)
{
	if (b == 0)
		return a;
	return (int64_t)((uint64_t)a - (uint64_t)floor_div(a, b) * (uint64_t)b);
}

static int64_t
power(int64_t a, int64_t n)
{
	uint64_t r = 1, x = (uint64_t)a;
	if (n < 0)
		return a == 1 ? 1 : a == -1 ? (n % 2 ? -1 : 1) : 0;
	for (; n; n >>= 1, x *= x)
		if (n & 1)
			r *= x;
	return (int64_t)r;
}

/* The integer as the narrower type holds it. */
static int64_t
wrap(DType t, int64_t v)
{
	unsigned bits = dtype_info[t].bits;
	if (dtype_info[t].kind == KIND_BOOL)
		return v != 0;
	if (bits >= 64)
		return v;
	uint64_t u = (uint64_t)v & ((UINT64_C(1) << bits) - 1);
	if (dtype_info[t].kind == KIND_INT && u >> (bits - 1))
		u |= ~UINT64_C(0) << bits;
	return (int64_t)u;
}

static bool
binary(Evaluation *s, ExprId e, int64_t *out, unsigned depth)
{
	int64_t a, b;
	if (!value(s, expr_arg(s->graph, e, 0), &a, depth) || !value(s, expr_arg(s->graph, e, 1), &b, depth))
		return false;
	bool is_u64 = expr_get(s->graph, expr_arg(s->graph, e, 0))->dtype == DT_U64;
	bool less = is_u64 ? (uint64_t)a < (uint64_t)b : a < b;
	switch (expr_get(s->graph, e)->op) {
	case OP_ADD: *out = (int64_t)((uint64_t)a + (uint64_t)b); return true;
	case OP_SUB: *out = (int64_t)((uint64_t)a - (uint64_t)b); return true;
	case OP_MUL: *out = (int64_t)((uint64_t)a * (uint64_t)b); return true;
	case OP_IDIV: *out = floor_div(a, b); return !is_u64;
	case OP_IMOD: *out = floor_mod(a, b); return !is_u64;
	case OP_POW: *out = power(a, b); return true;
	case OP_MIN: *out = less ? a : b; return true;
	case OP_MAX: *out = less ? b : a; return true;
	case OP_EQ: *out = a == b; return true;
	case OP_NE: *out = a != b; return true;
	case OP_LT: *out = less; return true;
	case OP_LE: *out = less || a == b; return true;
	}
	return false;
}

static bool
unary(Evaluation *s, ExprId e, int64_t *out, unsigned depth)
{
	int64_t a;
	if (!value(s, expr_arg(s->graph, e, 0), &a, depth))
		return false;
	switch (expr_get(s->graph, e)->op) {
	case OP_NEG: *out = (int64_t)(0 - (uint64_t)a); return true;
	case OP_ABS: *out = a < 0 ? (int64_t)(0 - (uint64_t)a) : a; return true;
	case OP_SIGN: *out = (a > 0) - (a < 0); return true;
	case OP_NOT: *out = !a; return true;
	case OP_CAST: *out = a; return true;
	}
	return false;
}

/* && and || are decided by either side, as far as it is known. */
static bool
logic(Evaluation *s, ExprId e, int64_t *out, unsigned depth)
{
	int64_t a = 0, b = 0, decides = expr_get(s->graph, e)->op == OP_OR;
	bool has_a = value(s, expr_arg(s->graph, e, 0), &a, depth);
	if (has_a && (a != 0) == decides) {
		*out = decides;
		return true;
	}
	bool has_b = value(s, expr_arg(s->graph, e, 1), &b, depth);
	*out = has_b && (b != 0) == decides ? decides : !decides;
	return (has_a && has_b) || *out == decides;
}

static bool
dim_value(const LaunchEnv *env, DimId d, int64_t *out)
{
	int fact = gpu_fact_of(&env->graph->dim.at[d]);
	*out = fact >= 0 ? env->fact[fact] : env->dim[d]; /* a figure's dim may be newer than the environment */
	return fact >= 0 || env->dim_known[d];
}

static bool
leaf(const LaunchEnv *env, const Expr *x, int64_t *out)
{
	switch (x->op) {
	case OP_CONST:
		*out = x->imm.i;
		return true;
	case OP_DIM:
		return dim_value(env, x->ref, out);
	case OP_AXIS:
		*out = x->ref < env->naxis ? env->axis[x->ref] : 0;
		return x->ref < env->naxis;
	case OP_READ:
		*out = env->scalar[x->ref];
		return env->scalar_known[x->ref];
	}
	return false;
}

static bool
value(Evaluation *s, ExprId e, int64_t *out, unsigned depth)
{
	const Expr *x = expr_get(s->graph, e);
	int64_t c;
	if (depth > MAX_DEPTH || s->steps++ > MAX_STEPS || !(dtype_is_int((DType)x->dtype) || x->dtype == DT_BOOL))
		return false;
	bool ok = false;
	if (x->op == OP_CONST || x->op == OP_DIM || x->op == OP_READ || x->op == OP_AXIS)
		return leaf(s->env, x, out);
	if (x->op == OP_AND || x->op == OP_OR)
		return logic(s, e, out, depth + 1);
	if (x->op == OP_SELECT)
		return value(s, expr_arg(s->graph, e, 0), &c, depth + 1) &&
		       value(s, expr_arg(s->graph, e, c ? 1 : 2), out, depth + 1);
	if (x->narg == 1)
		ok = unary(s, e, out, depth + 1);
	else if (x->narg == 2)
		ok = binary(s, e, out, depth + 1);
	*out = ok ? wrap((DType)x->dtype, *out) : 0;
	return ok;
}

bool
launch_value(const LaunchEnv *env, ExprId e, int64_t *out)
{
	Evaluation s = {env, env->graph, 0};
	return value(&s, e, out, 0);
}
