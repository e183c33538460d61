/* pair_terms.c: folds whose terms are made of a value of the rows and one of the columns, in any way, for tiles of threads (threads.c):
 *
 *     k[i, j] = exp(-gamma * sum[d](sq(x[i, d] - z[j, d])))      c[i, j] = min[k](a[i, k] + b[k, j])
 *
 * As factors of a product do, the values come to shared memory once for a whole tile; a thread makes the term of each pair that it
 * has of them, and takes it into the pair's fold. Both values are as much of the term as depends on one side alone, where that is one
 * expression for each side; else what the term reads, widened or not: abs(x - z) / (abs(x) + abs(z)) is made of x and z. What depends on
 * neither side is the same for all terms. */
#include "passes/schedule/contract/pair_terms.h"

#include "passes/expr_map.h"
#include "passes/schedule/op_cost.h"
#include "passes/schedule/point/early_reads.h"

enum { LEAST_BITS = 32, FIRST_STAND_IN = 2 * EARLY_READS /* behind those of the panels */ };

typedef struct {
	const Graph *g;
	Arena *scratch;
	uint32_t parallel, side[2]; /* axes: of the node; of what is read for either side, and then its own alone */
	DType type;
	bool reads; /* values are what is read */
	ExprId value[2];
} Pair;

static uint32_t
parallel_axes(const Pair *p, ExprId e)
{
	return expr_axes(p->g, p->scratch, e) & p->parallel;
}

/* The axes of the first read, and those of the first that has others and lacks some of them. */
static void
note_side(void *user, ExprId e)
{
	Pair *p = user;
	uint32_t axes = expr_get(p->g, e)->op == OP_READ ? parallel_axes(p, e) : 0;
	if (!p->side[0])
		p->side[0] = axes;
	else if (!p->side[1] && (axes & ~p->side[0]) && (p->side[0] & ~axes))
		p->side[1] = axes;
}

static bool
is_read(const Graph *g, ExprId e)
{
	const Expr *x = expr_get(g, e);
	return (x->op == OP_CAST ? expr_get(g, expr_arg(g, e, 0)) : x)->op == OP_READ;
}

static bool
take_value(Pair *p, ExprId e, bool column)
{
	if ((p->value[column] && p->value[column] != e) || expr_get(p->g, e)->dtype != p->type)
		return false;
	p->value[column] = e;
	return true;
}

/* Whether e is made of one value for each side, and of what is the same for all terms. */
static bool
find_values(Pair *p, ExprId e)
{
	const Expr *x = expr_get(p->g, e);
	uint32_t axes = parallel_axes(p, e);
	bool row = axes & p->side[0], column = axes & p->side[1];
	if (row != column && (!p->reads || is_read(p->g, e)))
		return take_value(p, e, column);
	if (x->op == OP_CONST)
		return true;
	if (x->op == OP_READ)
		return p->g->tensor.at[x->ref].kind == TENSOR_SCALAR;
	bool all = op_info[x->op].cls == CLASS_MAP;
	for (unsigned k = 0; all && k < x->narg; k++)
		all = find_values(p, expr_arg(p->g, e, k));
	return all;
}

static bool
is_plain_fold(const Graph *g, Arena *scratch, const bool *faulty, const Node *n)
{
	bool takes = n->monoid == MON_SUM || n->monoid == MON_PROD || n->monoid == MON_MAX || n->monoid == MON_MIN;
	DType type = takes ? reduction_type(g, n) : DT_NONE, out = (DType)g->tensor.at[n->out].dtype;
	return takes && !n->scatter && !n->recur && type != DT_C64 && type != DT_BOOL && dtype_info[type].bits >= LEAST_BITS && out != DT_C64 &&
	       dtype_info[out].bits >= 8 && expr_is_true(g, n->domain) && expr_is_true(g, n->guard) && contract_ranges_are_fixed(g, scratch, n) &&
	       !expr_can_fault(g, scratch, faulty, n->body);
}

bool
pair_values(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f)
{
	const Node *n = tensor_node(g, t);
	if (!is_plain_fold(g, scratch, faulty, n))
		return false;
	Pair p = {.g = g, .scratch = scratch, .parallel = (UINT32_C(1) << n->npar) - 1, .type = reduction_type(g, n)};
	expr_walk(g, scratch, n->body, note_side, &p);
	uint32_t both = p.side[0] & p.side[1];
	if (!p.side[1])
		return false;
	p.side[0] &= ~both;
	p.side[1] &= ~both;
	bool found = find_values(&p, n->body);
	if (!found) {
		p.reads = true;
		p.value[0] = p.value[1] = 0;
		found = find_values(&p, n->body);
	}
	if (!found || !p.value[0] || !p.value[1])
		return false;
	unsigned columns = p.side[0] < p.side[1]; /* which has the innermost */
	*f = (Factors){.row = p.value[!columns], .column = p.value[columns], .row_axes = p.side[!columns], .column_axes = p.side[columns], .pair = true};
	f->rows_along_terms = contract_runs_along_terms(g, scratch, n, f->row, f->row_axes);
	f->columns_along_terms = contract_runs_along_terms(g, scratch, n, f->column, f->column_axes);
	return true;
}

ExprId
pair_stand_in(Graph *g, const Factors *f, bool column)
{
	DType t = (DType)expr_get(g, column ? f->column : f->row)->dtype;
	return expr_make(g, OP_IVAR, t, FIRST_STAND_IN + column, 0, NULL, 0);
}

ExprId
pair_term(Graph *g, Arena *scratch, const Factors *f, ExprId body)
{
	ExprId term = expr_replace(g, scratch, body, f->row, pair_stand_in(g, f, false));
	return expr_replace(g, scratch, term, f->column, pair_stand_in(g, f, true));
}

typedef struct {
	const Graph *g;
	unsigned units;
} Cost;

static void
add_cost(void *user, ExprId e)
{
	Cost *c = user;
	c->units += op_cost((Op)expr_get(c->g, e)->op).vector;
}

unsigned
pair_cost(const Graph *g, Arena *scratch, const Factors *f, ExprId body)
{
	const ExprId part[3] = {body, f->row, f->column};
	Cost cost[3];
	for (unsigned k = 0; k < 3; k++) {
		cost[k] = (Cost){.g = g};
		expr_walk(g, scratch, part[k], add_cost, &cost[k]);
	}
	return cost[0].units - cost[1].units - cost[2].units;
}
