/* panels.c: how often a contraction's panels on a processor evaluate an element of a factor, before there is a kernel:
 * what contract.c and pack.c do, for the cost model.
 *
 * Rows are packed for each block of columns anew. Columns are packed once where tasks ahead do it for all; else by
 * each call that has tasks of theirs, and where they are too many to be kept, for each block of rows. */
#include "passes/schedule/contract/contract.h"

static ExprId
at_least_one(Graph *g, ExprId e)
{
	return expr_binary(g, OP_MAX, e, expr_int(g, DT_I64, 1));
}

/* a over b, rounded up, whatever they are. */
static ExprId
divide_up(Graph *g, ExprId a, ExprId b)
{
	b = at_least_one(g, b);
	ExprId more = expr_binary(g, OP_SUB, b, expr_int(g, DT_I64, 1));
	return expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, a, more), b);
}

static ExprId
column_times(Contract *c)
{
	Graph *g = c->l.g;
	ExprId one = expr_int(g, DT_I64, 1);
	ExprId partial = expr_binary(g, OP_MIN, expr_binary(g, OP_SUB, c->nterm_block, c->nslot), one);
	ExprId blocks = expr_binary(g, OP_MUL, divide_up(g, c->nrow_task, c->row_pieces), partial);
	ExprId times = expr_binary(g, OP_MAX, divide_up(g, c->nrow_task, contract_grain(c)), blocks);
	return at_least_one(g, expr_binary(g, OP_MUL, times, expr_binary(g, OP_SUB, one, c->ahead)));
}

const WorkPanels *
contract_panels(Graph *g, Arena *a, const bool *faulty, TensorId t, const KernelPlan *plan)
{
	Contract *c = ARENA_NEW(a, Contract);
	WorkPanels *p = ARENA_NEW(a, WorkPanels);
	RemarkId why;
	c->plan = plan;
	c->l.g = g;
	c->l.node = tensor_node(g, t);
	if (!contract_factors(g, a, faulty, t, &c->factors, &why))
		return NULL;
	contract_count(c);
	p->of[0] = (WorkPanel){c->factors.row, contract_space_size(g, &c->columns), at_least_one(g, c->ncolumn_block)};
	p->of[1] = (WorkPanel){c->factors.column, contract_space_size(g, &c->rows), column_times(c)};
	return p;
}
