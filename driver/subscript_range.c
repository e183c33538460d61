/* subscript_range.c: see subscript_range.h. Every subscript that depends on the input is evaluated
 * over intervals, with the input in 0..h; the largest h that stays inside the axis is taken. Other
 * integer inputs count as 0; beyond MAX_STEPS an interval is everything. */
#include "driver/subscript_range.h"

enum { MAX_DEPTH = 64, MAX_STEPS = 10 * 1000 };

typedef struct {
	int64_t lo, hi; /* inclusive */
} Interval;

typedef struct {
	const LaunchEnv *env;
	const Graph *graph;
	Arena *scratch;
	TensorId input;
	int64_t trial;     /* the input is taken to lie in 0..trial */
	const Node *node;  /* whose axes count */
	int64_t steps;
	ValueRange out;
	bool bounded, compared;
	int64_t compared_hi;
} Uses;

static const int64_t FAR = INT64_C(1) << 40;

static Interval interval(Uses *u, const Node *node, ExprId e, unsigned depth);

static int64_t
clamp(__int128 v)
{
	return v > FAR ? FAR : v < -FAR ? -FAR : (int64_t)v;
}

static Interval
hull4(__int128 a, __int128 b, __int128 c, __int128 d)
{
	__int128 lo = a, hi = a, v[3] = {b, c, d};
	for (int i = 0; i < 3; i++) {
		lo = v[i] < lo ? v[i] : lo;
		hi = v[i] > hi ? v[i] : hi;
	}
	return (Interval){clamp(lo), clamp(hi)};
}

static Interval
axis_interval(Uses *u, const Node *node, unsigned k, unsigned depth)
{
	int64_t n;
	if (k < node->npar) {
		const Tensor *t = &u->graph->tensor.at[node->out];
		return launch_value(u->env, t->extent[k], &n) ? (Interval){0, n > 0 ? n - 1 : 0} : (Interval){0, FAR};
	}
	const Axis *a = &node->axis[k];
	Interval lo = interval(u, node, a->lo, depth), hi = interval(u, node, a->hi, depth);
	Interval r = {lo.lo, hi.hi > lo.lo ? hi.hi - 1 : lo.lo};
	if (a->clamp && launch_value(u->env, a->clamp, &n)) {
		r.lo = r.lo < 0 ? 0 : r.lo;
		r.hi = r.hi >= n && n > 0 ? n - 1 : r.hi;
	}
	return r;
}

static Interval
read_interval(Uses *u, const Expr *x, unsigned depth)
{
	int64_t v;
	const Tensor *t = &u->graph->tensor.at[x->ref];
	const Node *n = tensor_node(u->graph, x->ref);
	if (x->ref == u->input)
		return (Interval){0, u->trial};
	if (t->rank == 0 && u->env->scalar_known[x->ref] && launch_value(u->env, (ExprId)(x - u->graph->expr.at), &v))
		return (Interval){v, v};
	if (n && !n->monoid && !n->finish)
		return interval(u, n, n->body, depth);
	return (Interval){0, 0};
}

static Interval
divide(Interval a, Interval b, bool modulo)
{
	if (b.lo <= 0)
		return (Interval){-FAR, FAR};
	if (modulo)
		return a.lo >= 0 && a.hi < b.lo ? a : (Interval){0, b.hi - 1};
	return hull4(a.lo / b.lo - (a.lo < 0), a.lo / b.hi - (a.lo < 0), a.hi / b.lo, a.hi / b.hi);
}

static Interval
interval(Uses *u, const Node *node, ExprId e, unsigned depth)
{
	const Expr *x = expr_get(u->graph, e);
	Interval a = {0, 0}, b = {0, 0};
	int64_t v;
	if (depth > MAX_DEPTH || u->steps++ > MAX_STEPS || !dtype_is_int((DType)x->dtype))
		return (Interval){-FAR, FAR};
	if (x->op == OP_AXIS)
		return axis_interval(u, node, x->ref, depth + 1);
	if (x->op == OP_READ)
		return read_interval(u, x, depth + 1);
	if (x->op == OP_CONST || x->op == OP_DIM)
		return launch_value(u->env, e, &v) ? (Interval){clamp(v), clamp(v)} : (Interval){-FAR, FAR};
	unsigned first = x->op == OP_SELECT;
	if (x->narg > first && x->narg <= 3)
		a = interval(u, node, expr_arg(u->graph, e, first), depth + 1);
	if (x->narg > first + 1)
		b = interval(u, node, expr_arg(u->graph, e, first + 1), depth + 1);
	switch (x->op) {
	case OP_CAST: return a;
	case OP_NEG: return (Interval){-a.hi, -a.lo};
	case OP_ADD: return (Interval){clamp((__int128)a.lo + b.lo), clamp((__int128)a.hi + b.hi)};
	case OP_SUB: return (Interval){clamp((__int128)a.lo - b.hi), clamp((__int128)a.hi - b.lo)};
	case OP_MUL:
		return hull4((__int128)a.lo * b.lo, (__int128)a.lo * b.hi, (__int128)a.hi * b.lo, (__int128)a.hi * b.hi);
	case OP_IDIV: return divide(a, b, false);
	case OP_IMOD: return divide(a, b, true);
	case OP_MIN: return (Interval){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
	case OP_MAX: return (Interval){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
	case OP_SELECT: return (Interval){a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
	}
	return (Interval){-FAR, FAR};
}

/* The interval of a subscript when the input lies in 0..trial. */
static Interval
at_trial(Uses *u, ExprId e, int64_t trial)
{
	u->trial = trial;
	u->steps = 0;
	return interval(u, u->node, e, 0);
}

/* Narrows the range so that subscript e of an axis of this length stays inside. */
static void
constrain(Uses *u, ExprId e, int64_t length)
{
	Interval none = at_trial(u, e, 0), all = at_trial(u, e, FAR);
	if (none.lo == all.lo && none.hi == all.hi)
		return; /* does not depend on the input */
	int64_t good = -1, bad = FAR;
	while (bad - good > 1) {
		int64_t mid = good + (bad - good) / 2;
		Interval r = at_trial(u, e, mid);
		if (r.lo >= 0 && r.hi < length)
			good = mid;
		else
			bad = mid;
	}
	int64_t hi = good >= 0 ? good + 1 : length;
	if (hi < 1)
		hi = 1;
	if (!u->bounded || hi < u->out.hi)
		u->out.hi = hi;
	u->bounded = true;
}

/* j < len[b]: the values of len lie in 0..extent of j. */
static void
compare(Uses *u, ExprId e)
{
	for (unsigned k = 0; k < 2; k++) {
		ExprId mine = expr_arg(u->graph, e, k), other = expr_arg(u->graph, e, 1 - k);
		Interval m0 = at_trial(u, mine, 0), o = at_trial(u, other, 0), m1 = at_trial(u, mine, 1);
		if (m0.hi == m1.hi || o.hi >= FAR || o.hi <= o.lo)
			continue;
		if (!u->compared || o.hi + 2 < u->compared_hi)
			u->compared_hi = o.hi + 2;
		u->compared = true;
	}
}

static void
visit(void *user, ExprId e)
{
	Uses *u = user;
	const Expr *x = expr_get(u->graph, e);
	int64_t n;
	if (x->op == OP_LT || x->op == OP_LE || x->op == OP_EQ)
		compare(u, e);
	if (x->op != OP_READ)
		return;
	const Tensor *t = &u->graph->tensor.at[x->ref];
	for (unsigned k = 0; k < t->rank && k < x->narg; k++)
		if (launch_value(u->env, t->extent[k], &n))
			constrain(u, expr_arg(u->graph, e, k), n);
}

/* The read of the input under casts, or 0. */
static ExprId
read_under_casts(const Uses *u, ExprId e)
{
	while (e && expr_get(u->graph, e)->op == OP_CAST)
		e = expr_arg(u->graph, e, 0);
	const Expr *x = expr_get(u->graph, e);
	return e && x->op == OP_READ && x->ref == u->input ? e : 0;
}

static void
look_for_cuts(Uses *u, const Axis *a)
{
	ExprId lo = a->lo ? read_under_casts(u, a->lo) : 0, hi = a->hi ? read_under_casts(u, a->hi) : 0;
	int64_t n;
	if (!lo || !hi || !a->clamp || !launch_value(u->env, a->clamp, &n))
		return;
	unsigned rank = u->graph->tensor.at[u->input].rank;
	u->out.cuts = true;
	u->out.cut_axis = rank ? rank - 1 : 0;
	for (unsigned k = 0; k < rank; k++)
		if (expr_arg(u->graph, lo, k) != expr_arg(u->graph, hi, k))
			u->out.cut_axis = k;
	if (!u->bounded || n + 1 < u->out.hi)
		u->out.hi = n + 1;
	u->bounded = true;
}

static void
walk(Uses *u, ExprId e)
{
	if (e)
		expr_walk(u->graph, u->scratch, e, visit, u);
}

static void
visit_node(Uses *u, const Node *n)
{
	int64_t length;
	u->node = n;
	walk(u, n->body);
	walk(u, n->guard);
	walk(u, n->finish);
	walk(u, n->init);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		walk(u, n->axis[k].lo);
		walk(u, n->axis[k].hi);
		look_for_cuts(u, &n->axis[k]);
	}
	for (unsigned k = 0; n->scatter && k < n->npar; k++) {
		walk(u, n->target[k]);
		if (launch_value(u->env, u->graph->tensor.at[n->out].extent[k], &length))
			constrain(u, n->target[k], length);
	}
}

/* For an input that no subscript reads: all values of a narrow type, some of a wide one. */
static void
unconstrained(Uses *u, DType t)
{
	unsigned bits = dtype_info[t].bits;
	bool is_signed = dtype_info[t].kind == KIND_INT, wide = bits > 8;
	u->out.lo = is_signed ? (wide ? -64 : -(INT64_C(1) << (bits - 1))) : 0;
	u->out.hi = wide ? 64 : INT64_C(1) << (bits - is_signed);
	if (u->compared) {
		u->out.lo = 0;
		u->out.hi = u->compared_hi;
	} else if (u->graph->tensor.at[u->input].rank == 0) {
		u->out.lo = 1;
		u->out.hi = 8;
	}
}

ValueRange
subscript_range(const LaunchEnv *env, Arena *scratch, TensorId t)
{
	Uses u = {.env = env, .graph = env->graph, .scratch = scratch, .input = t};
	DType type = env->graph->tensor.at[t].dtype;
	for (uint32_t i = 0; i < env->graph->node.n; i++)
		visit_node(&u, &env->graph->node.at[i]);
	if (!u.bounded)
		unconstrained(&u, type);
	unsigned bits = dtype_info[type].bits - (dtype_info[type].kind == KIND_INT);
	if (bits < 62 && u.out.hi > INT64_C(1) << bits)
		u.out.hi = INT64_C(1) << bits;
	return u.out;
}
