/* work_count.c: see work_count.h. */
#include "driver/work_count.h"

typedef struct {
	const LaunchEnv *env;
	const Graph *g;
	Arena *scratch;
	bool *inside;    /* by tensor: a node of the set */
	double *asked;   /* by tensor: elements asked for through data, or below 0 for all */
	bool *read;      /* by tensor */
	double terms;    /* of the node at work */
	double ops;      /* operations of the expression at work */
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

static void
visit(void *user, ExprId e)
{
	Count *c = user;
	const Expr *x = expr_get(c->g, e);
	bool data = false;
	DTypeKind kind = dtype_info[x->dtype].kind;
	if (op_info[x->op].cls == CLASS_MAP && (kind == KIND_FLOAT || kind == KIND_COMPLEX) && x->op != OP_CAST &&
	    x->op != OP_SELECT && x->op != OP_NEG)
		c->ops++;
	if (x->op != OP_READ)
		return;
	for (unsigned k = 0; k < x->narg; k++)
		data |= has_read(c, expr_arg(c->g, e, k));
	if (!data)
		c->asked[x->ref] = -1;
	else if (!c->read[x->ref] || c->asked[x->ref] >= 0)
		c->asked[x->ref] += c->terms;
	c->read[x->ref] = true;
}

static double
operations(Count *c, ExprId e, double terms)
{
	if (!e)
		return 0;
	c->ops = 0;
	c->terms = terms;
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

static double
node_flops(Count *c, const Node *n)
{
	double points = elements(c, n->out), terms = (n->scatter ? 1 : points) * reduced_terms(c, n);
	DTypeKind kind = dtype_info[c->g->tensor.at[n->out].dtype].kind;
	double flops = operations(c, n->body, terms) + operations(c, n->finish, points) + operations(c, n->init, points);
	if (n->monoid && (kind == KIND_FLOAT || kind == KIND_COMPLEX))
		flops += terms;
	operations(c, n->guard, terms);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		operations(c, n->axis[k].lo, points);
		operations(c, n->axis[k].hi, points);
	}
	for (unsigned k = 0; n->scatter && k < n->npar; k++)
		operations(c, n->target[k], terms);
	return flops;
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

void
use_table_init(UseTable *t, const Graph *g, Arena *a)
{
	*t = (UseTable){.graph = g, .arena = a};
	for (uint32_t i = 0; i < g->node.n; i++) {
		const Node *n = &g->node.at[i];
		UseVisit v = {t, n->out};
		const ExprId part[] = {n->body, n->guard, n->domain, n->finish, n->init};
		for (unsigned k = 0; k < sizeof part / sizeof part[0]; k++)
			if (part[k])
				expr_walk(g, a, part[k], visit_use, &v);
		for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
			expr_walk(g, a, n->axis[k].lo, visit_use, &v);
			expr_walk(g, a, n->axis[k].hi, visit_use, &v);
		}
		for (unsigned k = 0; n->scatter && k < n->npar; k++)
			expr_walk(g, a, n->target[k], visit_use, &v);
	}
}

/* Whether anything but the set reads the tensor, or it is a result. */
static void
mark_leaving(Count *c, const UseTable *table)
{
	const Graph *g = c->g;
	for (TensorId t = 0; t < g->tensor.n; t++)
		c->read[t] = false;
	for (uint32_t i = 0; i < g->result.n; i++)
		c->read[g->result.at[i].tensor] = true;
	for (uint32_t i = 0; i < table->use.n; i++)
		if (!c->inside[table->use.at[i].reader])
			c->read[table->use.at[i].read] = true;
}

Work
work_count(const LaunchEnv *env, const UseTable *table, Arena *scratch, const TensorId *node, uint32_t n)
{
	const Graph *g = env->graph;
	Count c = {.env = env, .g = g, .scratch = scratch};
	Work w = {0, 0};
	c.inside = ARENA_ARRAY(scratch, bool, g->tensor.n);
	c.asked = ARENA_ARRAY(scratch, double, g->tensor.n);
	c.read = ARENA_ARRAY(scratch, bool, g->tensor.n);
	for (uint32_t i = 0; i < n; i++)
		c.inside[node[i]] = true;
	for (uint32_t i = 0; i < n; i++)
		w.flops += node_flops(&c, tensor_node(g, node[i]));
	for (TensorId t = 1; t < g->tensor.n; t++) {
		double all = elements(&c, t);
		if (c.read[t] && !c.inside[t])
			w.bytes += bytes_of(&c, t, c.asked[t] >= 0 && c.asked[t] < all ? c.asked[t] : all);
	}
	mark_leaving(&c, table);
	for (uint32_t i = 0; i < n; i++)
		if (c.read[node[i]])
			w.bytes += bytes_of(&c, node[i], elements(&c, node[i]));
	return w;
}
