/* members.c: see members.h. Each member's element is what it would be if the member were stored and read back: finish is
 * evaluated, and rounded to the member's type, before another reads it. */
#include "passes/schedule/contract/members.h"

#include "ir/bugs.h"

static bool
has_result(const Graph *g, TensorId t)
{
	for (uint32_t r = 0; r < g->result.n; r++)
		if (g->result.at[r].tensor == t)
			return true;
	return false;
}

static bool
is_member(const Members *m, TensorId t)
{
	for (unsigned k = 0; k < m->n; k++)
		if (m->node[k] == t)
			return true;
	return false;
}

static bool
is_needed(const Graph *g, Arena *scratch, const Members *m, TensorId t)
{
	if (has_result(g, t))
		return true;
	for (uint32_t i = 0; i < g->node.n; i++)
		if (!is_member(m, g->node.at[i].out) && node_reads(g, scratch, &g->node.at[i], t))
			return true;
	return false;
}

bool
members_find(const Graph *g, Arena *scratch, const TensorId *node, unsigned n, Members *to)
{
	*to = (Members){.n = n};
	for (unsigned k = 0; k < n && n <= MEMBERS_MOST; k++)
		to->node[k] = node[k];
	for (unsigned k = 0; k < n && n <= MEMBERS_MOST; k++) {
		to->sum[k] = tensor_node(g, node[k])->monoid == MON_NONE ? -1 : (int8_t)to->nsum++;
		to->result[k] = is_needed(g, scratch, to, node[k]) ? (int8_t)to->nresult++ : -1;
	}
	return n <= MEMBERS_MOST && to->nsum <= MEMBERS_MOST_SUMS && to->nresult <= MEMBERS_MOST_RESULTS;
}

unsigned
members_sums(const Members *m, TensorId *sum)
{
	for (unsigned k = 0; k < m->n; k++)
		if (m->sum[k] >= 0)
			sum[m->sum[k]] = m->node[k];
	return m->nsum;
}

void
members_declare(Point *l, const Members *m)
{
	for (unsigned k = 0; k < m->n; k++) {
		if (m->result[k] >= 0)
			point_declare_output(l, m->node[k]);
		else
			point_declare_local(l, m->node[k]);
	}
	for (unsigned k = 0; k < m->n; k++) {
		const Node n = *tensor_node(l->g, m->node[k]);
		point_declare_exprs(l, &n);
	}
}

static void
enter(Point *l, TensorId t)
{
	l->node = tensor_node(l->g, t);
	l->acc = (PointVal){0};
	l->touched = 0;
}

/* What is made of the sum, or of the point. */
static ExprId
formula(const Node *n)
{
	return n->monoid == MON_NONE ? n->body : n->finish;
}

void
members_begin(Side *s, Point *l, const Members *m, unsigned side, unsigned column_axis)
{
	*s = (Side){.l = l, .side = side, .column_axis = column_axis};
	for (unsigned k = 0; k < m->n; k++)
		side_note(s, formula(tensor_node(l->g, m->node[k])));
	unsigned kept = 0;
	for (unsigned k = 0; k < s->n; k++)
		if (!is_member(m, s->at[k].tensor))
			s->at[kept++] = s->at[k];
	s->n = kept;
}

/* The element of member k at the point, which others then find there. */
static PointVal
element(const Members *m, Point *l, unsigned k, const ValId *sum)
{
	uint32_t mark = point_mark(l);
	enter(l, m->node[k]);
	unsigned s = m->sum[k] < 0 || BUG(sums_alike) ? 0 : (unsigned)m->sum[k];
	PointVal folded = m->sum[k] >= 0 ? (PointVal){.re = sum[s * MOST_SIDE]} : point_value(l, l->node->body, true);
	PointVal v = element_finish(l, folded, tir_int(l->tir, DT_BOOL, 1), true);
	point_release(l, mark); /* the next one's sum is another */
	TensorArg *arg = point_tensor(l, m->node[k]);
	for (unsigned a = 0; a < l->node->npar; a++)
		arg->point_axis[a] = (uint8_t)a;
	arg->where = IN_VALUE;
	arg->steps = true;
	arg->value[l->copy] = v;
	return v;
}

void
members_finish(const Members *m, const Side *s, const ValId *sum, PointVal *done)
{
	Point *l = s->l;
	const Node *entered = l->node;
	ValId column = l->axis[s->column_axis];
	side_load_wide(s);
	side_say_where(s, true);
	for (l->copy = 0; l->copy < s->side; l->copy++) {
		l->axis[s->column_axis] = l->copy ? tir_binary(l->tir, OP_ADD, column, tir_int(l->tir, DT_I64, l->copy)) : column;
		for (unsigned k = 0; k < m->n; k++) {
			PointVal v = element(m, l, k, sum + l->copy);
			if (m->result[k] >= 0)
				done[m->result[k] * MOST_SIDE + l->copy] = v;
		}
	}
	side_say_where(s, false);
	l->copy = 0;
	l->axis[s->column_axis] = column;
	l->node = entered;
}

void
members_store(const Members *m, const Side *s, const PointVal *done)
{
	const Node *entered = s->l->node;
	for (unsigned k = 0; k < m->n; k++) {
		s->l->node = tensor_node(s->l->g, m->node[k]);
		if (m->result[k] >= 0)
			side_store(s, done + m->result[k] * MOST_SIDE);
	}
	s->l->node = entered;
}

unsigned
members_cost(Point *l, const Members *m)
{
	const Node *entered = l->node;
	unsigned cost = 0;
	for (unsigned k = 0; k < m->n; k++) {
		l->node = tensor_node(l->g, m->node[k]);
		cost += m->sum[k] >= 0 ? side_cost(l) : side_expr_cost(l->g, l->scratch, l->node->body);
	}
	l->node = entered;
	return cost;
}

unsigned
members_flags(const Point *l, const Members *m)
{
	unsigned flags = 0;
	for (unsigned k = 0; k < m->n; k++) {
		const Node *n = tensor_node(l->g, m->node[k]);
		flags |= side_expr_flags(l->g, l->scratch, m->sum[k] >= 0 ? n->finish : n->body);
	}
	return flags;
}

ExprId
members_saved(Graph *g, Arena *scratch, const Members *m)
{
	ExprId all = expr_int(g, DT_I64, 0);
	for (unsigned k = 0; k < m->n; k++) {
		int64_t times = m->result[k] < 0;
		for (unsigned j = 0; j < m->n; j++)
			times += j != k && node_reads(g, scratch, tensor_node(g, m->node[j]), m->node[k]);
		ExprId bytes = expr_int(g, DT_I64, times * dtype_info[g->tensor.at[m->node[k]].dtype].bits / 8);
		all = expr_binary(g, OP_ADD, all, expr_binary(g, OP_MUL, element_count(g, m->node[k]), bytes));
	}
	return all;
}

bool
members_side_possible(const Graph *g, const Members *m, unsigned column_axis)
{
	for (unsigned k = 0; k < m->n; k++)
		if (m->result[k] >= 0 && !side_possible(g, tensor_node(g, m->node[k]), column_axis))
			return false;
	return true;
}
