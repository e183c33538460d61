/* indices.c: see indices.h. */
#include "passes/schedule/contract/indices.h"

#include "passes/schedule/contract/raster.h"

bool
indices_may_reach(const Graph *g, const Node *n, uint32_t axes, int64_t least)
{
	int64_t count = 1;
	for (unsigned a = 0; a < TG_MAX_AXES; a++) {
		if (!(axes >> a & 1))
			continue;
		const Expr *hi = expr_get(g, a < n->npar ? g->tensor.at[n->out].extent[a] : n->axis[a].hi);
		const Expr *lo = a < n->npar ? NULL : expr_get(g, n->axis[a].lo);
		if (hi->op != OP_CONST || (lo && lo->op != OP_CONST))
			return true;
		int64_t extent = hi->imm.i - (lo ? lo->imm.i : 0);
		count = extent <= 0 ? 0 : count > least ? count : count * (extent < least ? extent : least);
	}
	return count >= least;
}

static void
add_axis(Point *l, Indices *s, unsigned a)
{
	Graph *g = l->g;
	const Node *n = l->node;
	ExprId count = a < n->npar ? g->tensor.at[n->out].extent[a] : n->axis[a].hi;
	if (a >= n->npar) {
		const Expr *lo = expr_get(g, n->axis[a].lo);
		if (lo->op != OP_CONST || lo->imm.i != 0) {
			s->from[s->naxis] = point_launch_expr(l, n->axis[a].lo);
			count = expr_binary(g, OP_SUB, count, n->axis[a].lo);
		}
		count = expr_binary(g, OP_MAX, count, expr_int(g, DT_I64, 0));
	}
	s->extent[s->naxis] = point_launch_expr(l, count);
	s->axis[s->naxis++] = (uint8_t)a;
	s->count = s->naxis > 1 ? expr_binary(g, OP_MUL, s->count, count) : count;
	s->inner = count;
}

void
indices_bind(Point *l, const Factors *f, Indices *batch, Indices *rows, Indices *columns, Indices *terms)
{
	const Node *n = l->node;
	Indices *const all[] = {batch, rows, columns, terms};
	for (unsigned a = 0; a < (unsigned)n->npar + n->nred; a++) {
		bool row = f->row_axes >> a & 1, column = f->column_axes >> a & 1;
		add_axis(l, a >= n->npar ? terms : row ? rows : column ? columns : batch, a);
	}
	for (unsigned k = 0; k < 4; k++)
		all[k]->all = all[k]->naxis ? point_launch_expr(l, all[k]->count) : 0;
}

void
indices_at(Point *l, const Indices *s, ValId i)
{
	for (unsigned k = s->naxis; k-- > 0;) {
		ValId at = i;
		if (k)
			i = raster_divide(l->tir, i, s->extent[k], &at);
		l->axis[s->axis[k]] = s->from[k] ? tir_binary(l->tir, OP_ADD, s->from[k], at) : at;
	}
}
