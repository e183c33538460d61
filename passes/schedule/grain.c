/* grain.c: how many tasks are worth a call of their own, so that handing work to a second thread costs
 * little of what it saves: about CALL_NS of work. The estimate takes the operations of the nodes'
 * expressions by kind, the elements that a task computes and the terms of each; it need only be right
 * within a factor of some. What is known at launch alone stays an expression over dims; a range
 * that depends on data or on an index counts as its clamp, or as SOME_TERMS.
 *
 * Factors are kept below 2^31, so that no product wraps. */
#include "passes/schedule/op_cost.h"
#include "passes/schedule/rows/prefixes.h"
#include "passes/schedule/schedule.h"

enum { SOME_TERMS = 16, TASK_UNITS = 64 };

typedef struct {
	const Graph *g;
	bool vector;
	int64_t units;
	bool launch; /* the expression at work is known at launch */
} Estimate;

static void
add_cost(void *user, ExprId e)
{
	Estimate *s = user;
	OpCost c = expr_cost(s->g, e);
	s->units += s->vector ? c.vector : c.scalar;
}

static void
ask_launch(void *user, ExprId e)
{
	Estimate *s = user;
	const Expr *p = expr_get(s->g, e);
	if (p->op == OP_AXIS || p->op == OP_READ)
		s->launch = false;
}

static bool
known_at_launch(Estimate *s, Arena *scratch, ExprId e)
{
	s->launch = e != 0;
	expr_walk(s->g, scratch, e, ask_launch, s);
	return s->launch;
}

/* a * b, each below 2^31, and so is what comes out. */
static ExprId
times(Graph *g, ExprId a, ExprId b)
{
	ExprId most = expr_int(g, DT_I64, INT32_MAX);
	return expr_binary(g, OP_MIN, expr_binary(g, OP_MUL, a, expr_binary(g, OP_MIN, b, most)), most);
}

/* hi - lo, where that is known at launch: of a range cut at an end the whole length; 0: not known. */
static ExprId
known_span(Graph *g, Arena *scratch, Estimate *s, const Axis *a)
{
	ExprId end[3] = {a->hi};
	unsigned n = 1;
	if (expr_get(g, a->hi)->op == OP_MIN)
		for (unsigned k = 0; k < 2; k++)
			end[n++] = expr_arg(g, a->hi, k);
	for (unsigned k = 0; k < n; k++) {
		ExprId span = index_norm(g, expr_binary(g, OP_SUB, end[k], a->lo));
		if (known_at_launch(s, scratch, span))
			return span;
	}
	return 0;
}

/* The terms of one element of node n. */
static ExprId
terms(Graph *g, Arena *scratch, Estimate *s, const Node *n)
{
	ExprId all = expr_int(g, DT_I64, 1);
	for (unsigned k = n->npar; k < (unsigned)n->npar + n->nred; k++) {
		const Axis a = n->axis[k];
		ExprId span = known_span(g, scratch, s, &a);
		if (!span)
			span = known_at_launch(s, scratch, a.clamp) ? a.clamp : expr_int(g, DT_I64, SOME_TERMS);
		all = times(g, all, span);
	}
	return all;
}

ExprId
task_grain(Graph *g, Arena *scratch, const KernelPlan *plan, ExprId elements)
{
	ExprId sum = expr_int(g, DT_I64, 0), one = expr_int(g, DT_I64, 1);
	for (unsigned k = 0; k < plan->nnode; k++) {
		Node n = *tensor_node(g, plan->node[k]);
		Scan scan;
		RemarkId why;
		if (plan->tmpl == TMPL_SCAN && scan_derive(g, scratch, &n, &scan, &why))
			n = scan.node;
		Estimate s = {.g = g, .vector = plan->lanes > 1, .units = op_cost_read.scalar};
		node_walk(g, scratch, &n, add_cost, &s);
		ExprId cost = expr_int(g, DT_I64, s.units < INT32_MAX ? s.units : INT32_MAX);
		sum = expr_binary(g, OP_ADD, sum, times(g, cost, terms(g, scratch, &s, &n)));
	}
	ExprId task = expr_binary(g, OP_ADD, times(g, elements, sum), expr_int(g, DT_I64, TASK_UNITS));
	ExprId budget = expr_int(g, DT_I64, CALL_NS * UNITS_A_NS);
	return expr_binary(g, OP_MAX, one, expr_binary(g, OP_IDIV, budget, task));
}
