/* side.c: see side.h. */
#include "passes/schedule/contract/side.h"

#include "passes/expr_map.h"
#include "passes/schedule/op_cost.h"

static bool
is_wide(const Graph *g, TensorId t)
{
	DType dtype = (DType)g->tensor.at[t].dtype;
	return dtype != DT_C64 && dtype_info[dtype].bits >= 8 && dtype_info[dtype].bits <= 32;
}

/* A tensor that is read along its memory as the column goes on. */
static void
note_wide(void *user, ExprId e)
{
	Side *s = user;
	const Graph *g = s->l->g;
	const Expr *p = expr_get(g, e);
	if (p->op != OP_READ || p->access || !p->narg || g->tensor.at[p->ref].kind == TENSOR_SCALAR || !is_wide(g, p->ref) ||
	    s->n == MOST_WIDE)
		return;
	for (unsigned k = 0; k < s->n; k++)
		if (s->at[k].tensor == p->ref)
			return;
	for (unsigned a = 0; a < p->narg; a++) {
		const Expr *sub = expr_get(g, expr_arg(g, e, a));
		if (sub->op != OP_AXIS || (sub->ref == s->column_axis) != (a + 1u == p->narg))
			return;
		s->at[s->n].axis[a] = (uint8_t)sub->ref;
	}
	s->at[s->n++].tensor = p->ref;
}

void
side_begin(Side *s, Point *l, unsigned side, unsigned column_axis)
{
	*s = (Side){.l = l, .side = side, .column_axis = column_axis};
	side_note(s, l->node->finish);
}

void
side_note(Side *s, ExprId e)
{
	if (s->side > 1 && e)
		expr_walk(s->l->g, s->l->scratch, e, note_wide, s);
}

static ValId
load(const Side *s, ValId view, const ValId *at, unsigned rank, ValId mask)
{
	return tir_load(s->l->tir, view, at, mask, s->side > 1 ? TIR_LANES_ALONG(rank - 1) : 0, s->side > 1 ? s->side : 0);
}

static void
divide(const Side *s, ValId x, DType t, ValId *to)
{
	for (unsigned c = 0; c < s->side; c++)
		to[c] = s->side > 1 ? tir_emit(s->l->tir, OP_LANE, tir_scalar(t), c, &x, 1) : x;
}

void
side_load(const Side *s, ValId view, const ValId *at, unsigned rank, DType t, ValId *to)
{
	divide(s, load(s, view, at, rank, 0), t, to);
}

ValId
side_read(const Side *s, unsigned n, ValId mask)
{
	Point *l = s->l;
	TensorArg *arg = point_tensor(l, s->at[n].tensor);
	unsigned rank = l->g->tensor.at[arg->tensor].rank;
	ValId at[TG_MAX_RANK];
	for (unsigned a = 0; a < rank; a++)
		at[a] = l->axis[s->at[n].axis[a]];
	return load(s, arg->data, at, rank, mask);
}

/* The values of the wide tensors at the point, a copy for each of the elements side by side. */
void
side_load_wide(const Side *s)
{
	Point *l = s->l;
	for (unsigned n = 0; n < s->n; n++) {
		TensorArg *arg = point_tensor(l, s->at[n].tensor);
		const Tensor *t = &l->g->tensor.at[arg->tensor];
		ValId value[MOST_SIDE];
		for (unsigned a = 0; a < t->rank; a++)
			arg->point_axis[a] = s->at[n].axis[a];
		divide(s, s->at[n].ahead ? s->at[n].ahead : side_read(s, n, 0), (DType)t->dtype, value);
		for (unsigned c = 0; c < s->side; c++)
			arg->value[c] = (PointVal){.re = value[c]};
	}
}

void
side_say_where(const Side *s, bool value)
{
	for (unsigned n = 0; n < s->n; n++) {
		TensorArg *arg = point_tensor(s->l, s->at[n].tensor);
		arg->where = value ? IN_VALUE : IN_MEMORY;
		arg->steps = value;
	}
}

void
side_finish(const Side *s, const ValId *sum, PointVal *done)
{
	Point *l = s->l;
	ValId column = l->axis[s->column_axis];
	side_load_wide(s);
	side_say_where(s, true);
	for (l->copy = 0; l->copy < s->side; l->copy++) {
		uint32_t mark = point_mark(l);
		l->axis[s->column_axis] = l->copy ? tir_binary(l->tir, OP_ADD, column, tir_int(l->tir, DT_I64, l->copy)) : column;
		done[l->copy] = element_finish(l, (PointVal){.re = sum[l->copy]}, tir_int(l->tir, DT_BOOL, 1), true);
		point_release(l, mark);
	}
	side_say_where(s, false);
	l->copy = 0;
	l->axis[s->column_axis] = column;
}

ValId
side_join(const Side *s, const PointVal *done)
{
	ValId value[MOST_SIDE];
	for (unsigned c = 0; c < s->side; c++)
		value[c] = done[c].re;
	DType t = (DType)s->l->g->tensor.at[s->l->node->out].dtype;
	return tir_emit(s->l->tir, OP_JOIN, tir_vector(t, s->side), 0, value, s->side);
}

void
side_store(const Side *s, const PointVal *done)
{
	Point *l = s->l;
	if (s->side == 1) {
		point_store(l, l->node->out, *done, l->axis, -1);
		return;
	}
	unsigned rank = l->g->tensor.at[l->node->out].rank;
	tir_store(l->tir, point_tensor(l, l->node->out)->data, side_join(s, done), l->axis, 0, TIR_LANES_ALONG(rank - 1));
}

ValId
side_flat_output(Point *l, ValId columns)
{
	TirKernel *k = l->tir;
	ValId one = tir_int(k, DT_I64, 1), far = tir_int(k, DT_I64, INT64_C(1) << 40);
	unsigned buffer = (unsigned)tir_inst(k, tir_arg(k, point_tensor(l, l->node->out)->data, 0))->imm.i;
	return tir_view(k, buffer, 2, (ValId[]){far, columns}, (ValId[]){one, one});
}

static void
add_cost(void *user, ExprId e)
{
	struct { const Graph *g; unsigned cost; } *x = user;
	x->cost += expr_cost(x->g, e).vector;
}

unsigned
side_expr_cost(const Graph *g, Arena *scratch, ExprId e)
{
	struct { const Graph *g; unsigned cost; } x = {g, 0};
	if (e)
		expr_walk(g, scratch, e, add_cost, &x);
	return x.cost;
}

unsigned
side_cost(Point *l)
{
	enum { PLAIN_ELEMENT = 12 }; /* to bring a sum to where it is stored */
	return PLAIN_ELEMENT + side_expr_cost(l->g, l->scratch, l->node->finish);
}

static void
add_flags(void *user, ExprId e)
{
	struct { const Graph *g; unsigned flags; } *x = user;
	x->flags |= op_info[expr_get(x->g, e)->op].flags;
}

unsigned
side_expr_flags(const Graph *g, Arena *scratch, ExprId e)
{
	struct { const Graph *g; unsigned flags; } x = {g, 0};
	if (e)
		expr_walk(g, scratch, e, add_flags, &x);
	return x.flags;
}

bool
side_possible(const Graph *g, const Node *n, unsigned column_axis)
{
	return is_wide(g, n->out) && column_axis + 1 == g->tensor.at[n->out].rank;
}
