/* int_value.c: see int_value.h. */
#include "int_value.h"

static int64_t
floor_div(int64_t a, int64_t b)
{
	if (b == 0)
		return -1;
	return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

static int64_t
fit(IntEnv *env, __int128 v)
{
	if (v < INT64_MIN / 4 || v > INT64_MAX / 4)
		env->overflow = true;
	return env->overflow ? 1 : (int64_t)v;
}

static int64_t
leaf_value(const Graph *g, IntEnv *env, const Expr *p)
{
	(void)g;
	switch (p->op) {
	case OP_CONST: return p->imm.i;
	case OP_AXIS: return env->axis[p->ref];
	case OP_IVAR: return env->ivar[p->ref];
	case OP_DIM: return env->dim[p->ref];
	}
	return 0;
}

static int64_t
map_value(const Graph *g, IntEnv *env, const Expr *p, const int64_t *v)
{
	switch (p->op) {
	case OP_ADD: return fit(env, (__int128)v[0] + v[1]);
	case OP_SUB: return fit(env, (__int128)v[0] - v[1]);
	case OP_MUL: return fit(env, (__int128)v[0] * v[1]);
	case OP_NEG: return -v[0];
	case OP_IDIV: return floor_div(v[0], v[1]);
	case OP_IMOD: return v[1] == 0 ? v[0] : v[0] - v[1] * floor_div(v[0], v[1]);
	case OP_MIN: return v[0] < v[1] ? v[0] : v[1];
	case OP_MAX: return v[0] > v[1] ? v[0] : v[1];
	case OP_ABS: return v[0] < 0 ? -v[0] : v[0];
	case OP_EQ: return v[0] == v[1];
	case OP_NE: return v[0] != v[1];
	case OP_LT: return v[0] < v[1];
	case OP_LE: return v[0] <= v[1];
	case OP_AND: return v[0] && v[1];
	case OP_OR: return v[0] || v[1];
	case OP_NOT: return !v[0];
	case OP_SELECT: return v[0] ? v[1] : v[2];
	case OP_CAST: return v[0];
	case OP_READ: return env->read(v, p->narg, p->ref);
	}
	(void)g;
	env->overflow = true;
	return 0;
}

int64_t
int_value(const Graph *g, IntEnv *env, ExprId e)
{
	const Expr *p = expr_get(g, e);
	int64_t v[4] = {0};
	for (unsigned k = 0; k < p->narg && k < 4; k++)
		v[k] = int_value(g, env, g->arg.at[p->arg + k]);
	return p->narg == 0 && p->op != OP_READ ? leaf_value(g, env, p) : map_value(g, env, p, v);
}

uint32_t
random_below(Random *r, uint32_t n)
{
	r->state = r->state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)((r->state >> 33) % n);
}
