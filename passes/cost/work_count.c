/* work_count.c: see work_count.h. */
#include "passes/cost/work_count.h"

#include "passes/schedule/op_cost.h"
#include "passes/schedule/rows/rows.h"

typedef struct {
	unsigned axis;
	double span; /* how many values it takes */
} WorkAxis;

typedef struct {
	const LaunchEnv *env;
	const Graph *g;
	Arena *scratch;
	UseTable *table;
	VEC(TensorId) read; /* tensors that the set reads, once each */
	double terms;    /* of the node at work */
	double ops;      /* operations of the expression at work */
	const Node *node;      /* the node at work */
	double span[TG_MAX_AXES], each; /* of its parallel axes; its terms at a point */
	double once;           /* operations of the expression at work, of all points that they differ at */
	WorkAxis along[WORK_AXES]; /* of the node at work */
	double taken;          /* of its terms, the part that its kernel takes */
	double again;          /* of a panel's element, evaluations after the first */
	Work work;
	bool through_data;
} Count;

static double
elements(const Count *c, TensorId t)
{
	double n = 1;
	int64_t v;
	for (unsigned k = 0; k < c->g->tensor.at[t].rank; k++)
		n *= launch_value(c->env, c->g->tensor.at[t].extent[k], &v) && v > 0 ? (double)v : 0;
	return n;
}

static double
bytes_of(const Count *c, TensorId t, double n)
{
	return n * dtype_info[c->g->tensor.at[t].dtype].bits / 8;
}

static void
visit_read(void *user, ExprId e)
{
	Count *c = user;
	c->through_data |= expr_get(c->g, e)->op == OP_READ;
}

static bool
has_read(Count *c, ExprId e)
{
	c->through_data = false;
	expr_walk(c->g, c->scratch, e, visit_read, c);
	return c->through_data;
}

/* Along one of the axes at work. Operands come first, so that their marks are there. */
static bool
varies(const Count *c, ExprId e, unsigned along)
{
	const Expr *x = expr_get(c->g, e);
	uint32_t *mark = c->table->varies[along];
	bool yes = x->op == OP_ACC || x->op == OP_TOUCHED || (x->op == OP_AXIS && x->ref == c->along[along].axis);
	for (unsigned k = 0; k < x->narg && !yes; k++) {
		ExprId a = expr_arg(c->g, e, k);
		yes = a >= c->table->nexpr || mark[a] == c->table->walk;
	}
	if (yes && e < c->table->nexpr)
		mark[e] = c->table->walk;
	return yes;
}

static void
add_cost(Count *c, ExprId e)
{
	const Expr *x = expr_get(c->g, e);
	OpCost cost = expr_cost(c->g, e);
	double times = c->terms * c->taken;
	for (unsigned k = 0; k < WORK_AXES; k++)
		times /= varies(c, e, k) ? 1 : c->along[k].span;
	/* bytes count apart; what vectors read is a load from the nearest cache, and indices are a vector's */
	double vector = x->op == OP_READ ? op_cost(OP_ADD).vector : x->dtype == DT_I64 ? 0 : cost.vector;
	if (e < c->table->nexpr && c->table->counted[e] == c->table->stamp)
		return;
	if (e < c->table->nexpr)
		c->table->counted[e] = c->table->stamp;
	c->work.scalar_ns += cost.scalar * times / UNITS_A_NS;
	c->work.vector_ns += vector * times / UNITS_A_NS;
}

/* The axes of the node that e varies with. Operands come first, so that theirs are there. */
static uint32_t
axes_of(const Count *c, ExprId e)
{
	const Expr *x = expr_get(c->g, e);
	uint32_t axes = x->op == OP_AXIS ? 1u << x->ref : x->op == OP_ACC || x->op == OP_TOUCHED ? ~0u : 0;
	if (e >= c->table->nexpr)
		return ~0u;
	for (unsigned k = 0; k < x->narg; k++) {
		ExprId a = expr_arg(c->g, e, k);
		axes |= a < c->table->nexpr ? c->table->axes[a] : ~0u;
	}
	return c->table->axes[e] = axes;
}

/* How many values it has. */
static double
values_of(const Count *c, uint32_t axes)
{
	double n = axes >> c->node->npar ? c->each : 1;
	for (unsigned k = 0; k < c->node->npar; k++)
		n *= axes >> k & 1 ? c->span[k] : 1;
	return n;
}

static void
visit(void *user, ExprId e)
{
	Count *c = user;
	const Expr *x = expr_get(c->g, e);
	bool data = false;
	DTypeKind kind = dtype_info[x->dtype].kind;
	uint32_t axes = axes_of(c, e);
	if (op_info[x->op].cls == CLASS_MAP && (kind == KIND_FLOAT || kind == KIND_COMPLEX) && x->op != OP_CAST &&
	    x->op != OP_SELECT && x->op != OP_NEG) {
		c->ops++;
		c->once += values_of(c, axes);
	}
	add_cost(c, e);
	if (x->op != OP_READ)
		return;
	for (unsigned k = 0; k < x->narg; k++)
		data |= has_read(c, expr_arg(c->g, e, k));
	if (c->table->seen[x->ref] != c->table->stamp) {
		c->table->seen[x->ref] = c->table->stamp;
		c->table->asked[x->ref] = 0;
		vec_push(c->scratch, &c->read, x->ref);
	}
	c->work.again += c->again * bytes_of(c, x->ref, data ? 0 : elements(c, x->ref));
	double *asked = &c->table->asked[x->ref];
	if (!data)
		*asked = -1;
	else if (*asked >= 0)
		*asked += c->terms;
}

static double
operations(Count *c, ExprId e, double terms)
{
	c->once = 0;
	if (!e)
		return 0;
	c->ops = c->once = 0;
	c->terms = terms;
	c->table->walk++;
	expr_walk(c->g, c->scratch, e, visit, c);
	return c->ops * terms;
}

static void
visit_axis(void *user, ExprId e)
{
	bool *used = ((void **)user)[0];
	const Graph *g = ((void **)user)[1];
	if (expr_get(g, e)->op == OP_AXIS)
		used[expr_get(g, e)->ref] = true;
}

/* A range read from data: the pieces of all parallel positions together fill the cut. */
static double
ragged(const Count *c, const Node *n, const Axis *a)
{
	bool used[TG_MAX_AXES] = {false};
	void *user[2] = {used, (void *)c->g};
	int64_t v, clamp = 1;
	double terms;
	expr_walk(c->g, c->scratch, a->lo, visit_axis, user);
	expr_walk(c->g, c->scratch, a->hi, visit_axis, user);
	terms = a->clamp && launch_value(c->env, a->clamp, &clamp) && clamp > 0 ? (double)clamp : 1;
	for (unsigned k = 0; k < n->npar; k++)
		if (used[k] && launch_value(c->env, c->g->tensor.at[n->out].extent[k], &v) && v > 0)
			terms /= (double)v;
	return terms;
}

/* Terms of one output element; a range that depends on an index counts at that index's middle. */
static double
reduced_terms(Count *c, const Node *n)
{
	int64_t middle[TG_MAX_AXES], lo, hi;
	LaunchEnv env = *c->env;
	double terms = 1;
	env.axis = middle;
	for (unsigned k = 0; k < n->npar; k++)
		middle[k] = launch_value(c->env, c->g->tensor.at[n->out].extent[k], &hi) ? hi / 2 : 0;
	env.naxis = n->npar;
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		const Axis *a = &n->axis[k];
		bool known = launch_value(&env, a->lo, &lo) && launch_value(&env, a->hi, &hi);
		if (known)
			terms *= hi > lo ? (double)(hi - lo) : 0;
		else
			terms *= ragged(c, n, a);
		middle[k] = known && hi > lo ? lo + (hi - lo) / 2 : 0;
		env.naxis = k + 1;
	}
	return terms;
}

static void
set_along(Count *c, WorkAlong along, unsigned axis, double span)
{
	c->along[along] = (WorkAxis){axis, span > 1 ? span : 1};
}

/* How many values of the last parallel axis are folded side by side. */
static double
side_by_side(const Count *c, const Node *n)
{
	if (!n->monoid || !n->nred || !n->npar || n->scatter)
		return 1;
	const Expr *last = expr_get(c->g, c->g->tensor.at[n->out].extent[n->npar - 1]);
	return last->op == OP_CONST && last->imm.i <= ROWS_MAX_SIDE ? (double)last->imm.i : 1;
}

static double
launch_count(const Count *c, ExprId e)
{
	int64_t v;
	return launch_value(c->env, e, &v) && v > 0 ? (double)v : 1;
}

/* Products, and the factors of so many terms, which are evaluated into panels. */
static double
panel_operations(Count *c, const WorkPanels *p, double terms)
{
	double before = c->work.vector_ns, flops = 0;
	set_along(c, WORK_INNERMOST, 0, 1);
	set_along(c, WORK_SIDE, 0, 1);
	for (unsigned k = 0; k < sizeof p->of / sizeof *p->of; k++) {
		double times = launch_count(c, p->of[k].times);
		c->again = times - 1;
		flops += operations(c, p->of[k].factor, terms / launch_count(c, p->of[k].others) * times);
	}
	c->again = 0;
	c->work.panel_flops += flops;
	c->work.panel_ns += c->work.vector_ns - before;
	c->work.scalar_ns += op_cost(OP_MUL).scalar * terms / UNITS_A_NS;
	c->work.vector_ns += op_cost(OP_MUL).vector * terms / UNITS_A_NS;
	return flops + terms;
}

static void
count_node(Count *c, const Node *n)
{
	const WorkPanels *panels = c->table->panels[n->out];
	double points = elements(c, n->out), each = reduced_terms(c, n), terms = (n->scatter ? 1 : points) * each;
	DTypeKind kind = dtype_info[c->g->tensor.at[n->out].dtype].kind;
	int64_t last;
	bool some = n->npar && launch_value(c->env, c->g->tensor.at[n->out].extent[n->npar - 1], &last) && last > 0;
	double line = some ? (double)last : 1;
	c->node = n;
	for (unsigned k = 0; k < n->npar; k++)
		c->span[k] = launch_value(c->env, c->g->tensor.at[n->out].extent[k], &last) && last > 0 ? (double)last : 0;
	c->taken = 1;
	set_along(c, WORK_INNERMOST, n->npar - 1u, line);
	set_along(c, WORK_SIDE, n->npar - 1u, 1);
	c->each = 1;
	double steps = operations(c, n->finish, points), flops = c->once;
	steps += operations(c, n->init, points);
	flops += c->once;
	c->each = each;
	if (c->table->steps[n->out] && each > 1)
		c->taken = 1 / each;
	set_along(c, WORK_INNERMOST, (unsigned)n->npar + n->nred - 1u, n->nred ? each : line);
	set_along(c, WORK_SIDE, n->npar - 1u, side_by_side(c, n));
	double body = panels ? panel_operations(c, panels, terms) : operations(c, n->body, terms);
	double joins = n->monoid && (kind == KIND_FLOAT || kind == KIND_COMPLEX) ? terms : 0;
	c->work.flops += flops + (panels || n->scatter ? body : c->once) + joins;
	c->work.steps += steps + body + joins;
	operations(c, n->guard, terms);
	if (n->monoid) {
		c->work.scalar_ns += op_cost(OP_ADD).scalar * terms * c->taken / UNITS_A_NS;
		c->work.vector_ns += op_cost(OP_ADD).vector * terms * c->taken / UNITS_A_NS;
	}
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		operations(c, n->axis[k].lo, points);
		operations(c, n->axis[k].hi, points);
	}
	for (unsigned k = 0; n->scatter && k < n->npar; k++)
		operations(c, n->target[k], terms);
}

typedef struct {
	UseTable *table;
	TensorId reader;
} UseVisit;

static void
visit_use(void *user, ExprId e)
{
	UseVisit *v = user;
	const Expr *x = expr_get(v->table->graph, e);
	if (x->op == OP_READ)
		vec_push(v->table->arena, &v->table->use, ((TensorUse){v->reader, x->ref}));
}

/* The readers of each tensor, from the tensors that each node reads. */
static void
invert(UseTable *t)
{
	uint32_t n = t->graph->tensor.n;
	uint32_t *at = ARENA_ARRAY(t->arena, uint32_t, n + 1);
	t->start = ARENA_ARRAY(t->arena, uint32_t, n + 1);
	t->user = ARENA_ARRAY(t->arena, TensorId, t->use.n + 1);
	for (uint32_t i = 0; i < t->use.n; i++)
		t->start[t->use.at[i].read + 1]++;
	for (uint32_t k = 0; k < n; k++)
		at[k + 1] = t->start[k + 1] += t->start[k];
	for (uint32_t i = 0; i < t->use.n; i++)
		t->user[at[t->use.at[i].read]++] = t->use.at[i].reader;
}

static void
add_node(UseTable *t, const Node *n)
{
	const Graph *g = t->graph;
	UseVisit v = {t, n->out};
	const ExprId part[] = {n->body, n->guard, n->domain, n->finish, n->init};
	for (unsigned k = 0; k < sizeof part / sizeof part[0]; k++)
		if (part[k])
			expr_walk(g, t->arena, part[k], visit_use, &v);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		expr_walk(g, t->arena, n->axis[k].lo, visit_use, &v);
		expr_walk(g, t->arena, n->axis[k].hi, visit_use, &v);
	}
	for (unsigned k = 0; n->scatter && k < n->npar; k++)
		expr_walk(g, t->arena, n->target[k], visit_use, &v);
}

void
use_table_init(UseTable *t, const Graph *g, Arena *a)
{
	uint32_t n = g->tensor.n;
	*t = (UseTable){.graph = g, .arena = a};
	t->result = ARENA_ARRAY(a, bool, n);
	t->steps = ARENA_ARRAY(a, bool, n);
	t->panels = ARENA_ARRAY(a, const WorkPanels *, n);
	t->inside = ARENA_ARRAY(a, uint32_t, n);
	t->seen = ARENA_ARRAY(a, uint32_t, n);
	t->asked = ARENA_ARRAY(a, double, n);
	t->nexpr = g->expr.n;
	t->axes = ARENA_ARRAY(a, uint32_t, t->nexpr);
	t->counted = ARENA_ARRAY(a, uint32_t, t->nexpr);
	for (unsigned k = 0; k < WORK_AXES; k++)
		t->varies[k] = ARENA_ARRAY(a, uint32_t, t->nexpr);
	for (uint32_t i = 0; i < g->node.n; i++)
		add_node(t, &g->node.at[i]);
	for (uint32_t i = 0; i < g->result.n; i++)
		t->result[g->result.at[i].tensor] = true;
	invert(t);
}

/* Whether anything but the set reads the tensor, or it is a result. */
static bool
leaves(const UseTable *t, TensorId id)
{
	bool outside = t->result[id];
	for (uint32_t i = t->start[id]; i < t->start[id + 1] && !outside; i++)
		outside = t->inside[t->user[i]] != t->stamp;
	return outside;
}

Work
work_count(const LaunchEnv *env, UseTable *table, const TensorId *node, uint32_t n)
{
	Count c = {.env = env, .g = env->graph, .scratch = table->arena, .table = table};
	Work w = {0};
	table->stamp++;
	for (uint32_t i = 0; i < n; i++)
		table->inside[node[i]] = table->stamp;
	for (uint32_t i = 0; i < n; i++)
		count_node(&c, tensor_node(c.g, node[i]));
	w = c.work;
	for (uint32_t i = 0; i < c.read.n; i++) {
		TensorId t = c.read.at[i];
		double all = elements(&c, t), asked = table->asked[t];
		if (table->inside[t] != table->stamp)
			w.bytes += bytes_of(&c, t, asked >= 0 && asked < all ? asked : all);
	}
	for (uint32_t i = 0; i < n; i++)
		if (leaves(table, node[i]))
			w.bytes += bytes_of(&c, node[i], elements(&c, node[i]));
	return w;
}

Work
work_of_signature(const LaunchEnv *env, UseTable *table)
{
	const Graph *g = env->graph;
	Count c = {.env = env, .g = g, .table = table};
	TensorId *all = ARENA_ARRAY(table->arena, TensorId, g->node.n + 1);
	for (uint32_t i = 0; i < g->node.n; i++)
		all[i] = g->node.at[i].out;
	Work w = work_count(env, table, all, g->node.n);
	w.bytes = 0;
	for (uint32_t k = 0; k < g->param.n; k++) {
		TensorId t = g->param.at[k];
		double size = elements(&c, t), asked = table->seen[t] == table->stamp ? table->asked[t] : -1;
		if (g->tensor.at[t].kind == TENSOR_INOUT)
			w.bytes += 2 * bytes_of(&c, t, size);
		else if (g->tensor.at[t].kind == TENSOR_INPUT)
			w.bytes += bytes_of(&c, t, asked >= 0 && asked < size ? asked : size);
	}
	for (uint32_t k = 0; k < g->result.n; k++)
		if (!g->result.at[k].inout)
			w.bytes += bytes_of(&c, g->result.at[k].tensor, elements(&c, g->result.at[k].tensor));
	return w;
}
