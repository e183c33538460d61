/* simplify_arms.c: a select of two results of one operation becomes that operation on what is selected, where
 * this saves one that is not cheap; see simplify.c. Lanes compute both arms of a select:
 *
 *     c ? exp(a) : exp(b)                    exp(c ? a : b)
 *     c ? p / (1 + p) : 1 / (1 + exp(b))     (c ? e : 1) / (1 + e), where p = exp(a), e = exp(c ? a : b)
 *
 * An arm, and what is now selected within, are evaluated under the same condition as before, so nothing
 * else is demanded; and where it holds, e is p. */
#include "passes/expr_map.h"
#include "passes/simplify.h"

enum { MOST_DEPTH = 6, MOST_PAIRS = 16 };

/* What stands for `first` under the condition and for `second` under its opposite. */
typedef struct {
	ExprId first, second, both;
} Pair;

typedef struct {
	Simplify *s;
	Graph *g;
	ExprId condition;
	Pair pair[MOST_PAIRS];
	unsigned npair;
	bool second; /* which arm is rewritten */
} Arms;

static bool
is_dear(const Expr *p)
{
	return dtype_is_float((DType)p->dtype) && !(op_info[p->op].flags & F_CHEAP);
}

static bool
is_one_operation(const Graph *g, ExprId a, ExprId b)
{
	const Expr *p = expr_get(g, a), *q = expr_get(g, b);
	const OpInfo *info = &op_info[p->op];
	if (p->op != q->op || p->dtype != q->dtype || p->narg != q->narg || p->ref != q->ref ||
	    p->narg == 0 || p->narg > TG_MAX_RANK || info->cls != CLASS_MAP || (info->flags & F_LAZY))
		return false;
	for (unsigned k = 0; k < p->narg; k++)
		if (expr_get(g, expr_arg(g, a, k))->dtype != expr_get(g, expr_arg(g, b, k))->dtype)
			return false;
	return true;
}

/* The dear operations that joining a and b saves. */
static unsigned
saved(const Graph *g, ExprId a, ExprId b, unsigned depth)
{
	if (a == b || depth == 0 || !is_one_operation(g, a, b))
		return 0;
	unsigned n = is_dear(expr_get(g, a));
	for (unsigned k = 0; k < expr_get(g, a)->narg; k++)
		n += saved(g, expr_arg(g, a, k), expr_arg(g, b, k), depth - 1);
	return n;
}

static ExprId
joined_step(void *user, Graph *g, ExprId e)
{
	const Arms *m = user;
	(void)g;
	for (unsigned k = 0; k < m->npair; k++)
		if (e == (m->second ? m->pair[k].second : m->pair[k].first))
			return m->pair[k].both;
	return e;
}

/* An arm with what is joined already in the place of its own. */
static ExprId
arm(Arms *m, ExprId e, bool second)
{
	m->second = second;
	return expr_map(m->g, m->s->cx->scratch, e, joined_step, m);
}

/* a under the condition, b under its opposite, which are one operation that saves something. */
static ExprId
join(Arms *m, ExprId a, ExprId b, unsigned depth)
{
	Expr p = *expr_get(m->g, a);
	ExprId to[TG_MAX_RANK] = {0};
	for (unsigned k = 0; k < p.narg; k++) {
		ExprId x = expr_arg(m->g, a, k), y = expr_arg(m->g, b, k);
		if (x == y)
			to[k] = x;
		else if (saved(m->g, x, y, depth - 1))
			to[k] = join(m, x, y, depth - 1);
	}
	for (unsigned k = 0; k < p.narg; k++) {
		if (to[k])
			continue;
		ExprId x = arm(m, expr_arg(m->g, a, k), false), y = arm(m, expr_arg(m->g, b, k), true);
		to[k] = x == y ? x : expr_select(m->g, m->condition, x, y);
	}
	ExprId both = expr_make(m->g, (Op)p.op, (DType)p.dtype, p.ref, p.access, to, p.narg);
	if (m->npair < MOST_PAIRS)
		m->pair[m->npair++] = (Pair){a, b, both};
	return both;
}

ExprId
simplify_arms(Simplify *s, Graph *g, ExprId e)
{
	if (expr_get(g, e)->op != OP_SELECT)
		return e;
	ExprId c = expr_arg(g, e, 0), a = expr_arg(g, e, 1), b = expr_arg(g, e, 2);
	if (!saved(g, a, b, MOST_DEPTH))
		return e;
	Arms m = {.s = s, .g = g, .condition = c};
	return join(&m, a, b, MOST_DEPTH);
}
