/* contract_roles_tile.c: which tile a block of roles has, by the sizes of a launch: each tile is a kernel of its own, which
 * runs where it is predicted to take the least time.
 *
 * Tiles come in waves of one on each processor. A tile's step takes what was measured on an H200, in cycles of 1.4 GHz, to
 * which large products bring it: the largest is at the rate of the multipliers, the others are at that of the L2 cache, or
 * wait. Elements are finished at the instructions of a group's four warps, while other sums go on where a processor has more
 * tiles at a time than one. */
#include "passes/schedule/contract_roles_build.h"
#include "passes/schedule/op_cost.h"

enum {
	PROCESSORS = 132,     /* of an H100 or H200 with all that they are sold with */
	LANES_A_CYCLE = 128,
	PLAIN_ELEMENT = 12,   /* instructions to bring a sum to where it is stored, and what they wait */
	START = 1500,         /* cycles until the first products go on, and for what is left behind the last */
	SIDE = 4
};

static const RolesTile tile[] = {
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .turns = true, .side = SIDE, .step = 768},
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .turns = true, .side = SIDE, .step = 541},
	{.rows = 128, .columns = 192, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .side = SIDE, .step = 780},
	{.rows = 64, .columns = 128, .groups = 1, .registers = 208, .rest = 24, .resident = 2, .side = SIDE, .step = 313},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 128, .rest = 24, .resident = 3, .side = SIDE, .step = 290},
	/* where the output's rows do not begin at multiples of 16 bytes */
	{.rows = 128, .columns = 128, .groups = 2, .registers = 240, .rest = 24, .resident = 1, .turns = true, .side = 1, .step = 541},
	{.rows = 64, .columns = 64, .groups = 1, .registers = 128, .rest = 24, .resident = 3, .side = 1, .step = 290},
};

unsigned
roles_tiles(void)
{
	return sizeof tile / sizeof *tile;
}

RolesTile
roles_tile(unsigned n)
{
	return tile[n];
}

unsigned
roles_tile_of(const KernelPlan *p)
{
	unsigned n = 0;
	while (tile[n].rows != p->tile_rows || tile[n].columns != p->tile_columns || tile[n].side != p->group ||
	       tile[n].turns != p->turns)
		n++;
	return n;
}

ExprId
roles_tile_count(Roles *r, const RolesTile *t)
{
	Graph *g = r->l.g;
	const Node *n = r->l.node;
	ExprId count = expr_binary(g, OP_MUL, launch_ceil_div(g, r->nrow, t->rows), launch_ceil_div(g, r->ncolumn, t->columns));
	for (unsigned a = 0; a < n->npar; a++)
		if (a != r->of.row_axis && a != r->of.column_axis)
			count = expr_binary(g, OP_MUL, count, g->tensor.at[n->out].extent[a]);
	return count;
}

static void
add_cost(void *user, ExprId e)
{
	struct { const Graph *g; unsigned cost; } *x = user;
	x->cost += op_cost((Op)expr_get(x->g, e)->op).vector;
}

unsigned
roles_finish_cost(Roles *r)
{
	struct { const Graph *g; unsigned cost; } x = {r->l.g, PLAIN_ELEMENT};
	if (r->l.node->finish)
		expr_walk(r->l.g, r->l.scratch, r->l.node->finish, add_cost, &x);
	return x.cost;
}

/* Over dims: cycles, about. */
static ExprId
cycles(Roles *r, const RolesTile *t)
{
	Graph *g = r->l.g;
	unsigned each_group = (unsigned)t->rows * t->columns / (t->turns ? 1u : t->groups);
	unsigned finish = each_group / LANES_A_CYCLE * roles_finish_cost(r);
	bool hidden = t->turns || t->resident > 1;
	ExprId waves = launch_ceil_div(g, roles_tile_count(r, t), PROCESSORS);
	ExprId each = expr_binary(g, OP_MUL, launch_ceil_div(g, r->nterm, TIR_PART_TERMS), expr_int(g, DT_I64, t->step));
	/* what goes on beside products hides behind them, as far as they take longer */
	ExprId finished = expr_int(g, DT_I64, finish);
	each = hidden ? expr_binary(g, OP_MAX, each, finished) : expr_binary(g, OP_ADD, each, finished);
	return expr_binary(g, OP_ADD, expr_binary(g, OP_MUL, waves, each), expr_int(g, DT_I64, (hidden ? finish : 0) + START));
}

ExprId
roles_tile_suits(Roles *r, unsigned n, unsigned only)
{
	Graph *g = r->l.g;
	ExprId one = expr_int(g, DT_I64, 1), rest = expr_binary(g, OP_IMOD, r->ncolumn, expr_int(g, DT_I64, tile[n].side));
	ExprId suits = expr_binary(g, OP_SUB, one, expr_binary(g, OP_MIN, one, rest)), own = only ? 0 : expr_binary(g, OP_ADD, cycles(r, &tile[n]), one);
	for (unsigned k = n + 1; k < roles_tiles() && !only; k++) {
		if (tile[k].side != tile[n].side)
			continue;
		ExprId other = expr_binary(g, OP_ADD, cycles(r, &tile[k]), one);
		suits = expr_binary(g, OP_MIN, suits, expr_binary(g, OP_IDIV, other, own));
	}
	return suits;
}
