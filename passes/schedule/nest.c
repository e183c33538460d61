/* nest.c: the NEST template: any node. One task computes one element, with loops inside; scatters
 * and recurrences are one task, as are 4-bit outputs, two of whose elements share a byte.
 *
 * A recurrence runs its sequential axes outermost, in their order and direction, and in each step
 * its members in order, each over its other axes; so every self-read finds its element stored. */
#include "passes/schedule/index/index.h"
#include "ir/bugs.h"

#include <string.h>

ExprId
element_count(Graph *g, TensorId t)
{
	const Tensor tensor = g->tensor.at[t];
	ExprId count = expr_int(g, DT_I64, 1);
	for (unsigned a = 0; a < tensor.rank; a++)
		count = a ? expr_binary(g, OP_MUL, count, tensor.extent[a]) : tensor.extent[a];
	return count;
}

static ValId
open_tasks(Point *l)
{
	ValId lo = tir_emit(l->tir, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(l->tir, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	return tir_for(l->tir, lo, hi, tir_int(l->tir, DT_I64, 1), NULL, 0);
}

static void
store_element(Point *l, TensorId t)
{
	point_store(l, t, element_value(l), l->axis, -1);
}

/* --- elements --- */

/* The parallel axes from the number of an element in row-major order. */
static void
set_point(Point *l, TensorId t, ValId number)
{
	const TensorArg *arg = point_tensor(l, t);
	unsigned rank = l->g->tensor.at[t].rank;
	for (unsigned a = rank; a-- > 0;) {
		l->axis[a] = a ? tir_binary(l->tir, OP_IMOD, number, arg->extent[a]) : number;
		if (a)
			number = tir_binary(l->tir, OP_IDIV, number, arg->extent[a]);
	}
}

static void
build_elements(Point *l, TensorId t)
{
	point_declare_node(l, t);
	point_enter_node(l, t);
	ValId task = open_tasks(l);
	uint32_t mark = point_mark(l);
	set_point(l, t, task);
	store_element(l, t);
	point_release(l, mark);
	tir_end_for(l->tir, NULL, 0);
	l->kernel->ntask = element_count(l->g, t);
	l->kernel->grain = task_grain(l->g, l->scratch, &l->kernel->plan, expr_int(l->g, DT_I64, 1));
	l->kernel->serial = dtype_info[l->g->tensor.at[t].dtype].bits < 8;
}

/* --- recurrences --- */

static bool
is_sequential(const Point *l, unsigned nseq, unsigned axis)
{
	for (unsigned s = 0; s < nseq; s++)
		if (l->node->seq[s] == axis)
			return true;
	return false;
}

/* A member's axes inside a step: a loop for each that is not sequential. */
static void
build_member_loops(Point *l, TensorId t, unsigned nseq)
{
	const TensorArg *arg = point_tensor(l, t);
	unsigned rank = l->g->tensor.at[t].rank, opened = 0;
	uint32_t mark = point_mark(l);
	for (unsigned a = 0; a < rank; a++)
		if (!is_sequential(l, nseq, a)) {
			l->axis[a] = tir_for(l->tir, tir_int(l->tir, DT_I64, 0), arg->extent[a],
			                     tir_int(l->tir, DT_I64, 1), NULL, 0);
			opened++;
		}
	store_element(l, t);
	point_release(l, mark);
	while (opened--)
		tir_end_for(l->tir, NULL, 0);
}

/* Steps run to the largest extent of any member; a shorter member sits out the steps beyond its own. */
static void
build_member(Point *l, TensorId t, const ValId *step, const ValId *steps, unsigned nseq)
{
	const TensorArg *arg = point_tensor(l, t);
	ValId inside = 0;
	point_enter_node(l, t);
	for (unsigned s = 0; s < nseq; s++) {
		ValId extent = arg->extent[l->node->seq[s]];
		l->axis[l->node->seq[s]] = step[s];
		if (extent == steps[s])
			continue;
		ValId here = tir_binary(l->tir, OP_LT, step[s], extent);
		inside = inside ? tir_binary(l->tir, OP_AND, inside, here) : here;
	}
	if (!inside) {
		build_member_loops(l, t, nseq);
		return;
	}
	tir_if(l->tir, inside);
	build_member_loops(l, t, nseq);
	tir_else(l->tir, NULL, 0);
	tir_end_if(l->tir, NULL, 0);
}

static ValId
most_steps(Point *l, const Recur *r, unsigned s)
{
	ValId most = 0;
	for (uint32_t m = 0; m < r->member.n; m++) {
		TensorId t = r->member.at[m];
		ValId extent = point_tensor(l, t)->extent[tensor_node(l->g, t)->seq[s]];
		if (!most)
			most = extent;
		else if (most != extent)
			most = tir_binary(l->tir, OP_MAX, most, extent);
	}
	return most;
}

static void
build_recurrence(Point *l, const Recur *r)
{
	ValId step[TG_MAX_SEQ], steps[TG_MAX_SEQ], one = tir_int(l->tir, DT_I64, 1);
	for (uint32_t m = 0; m < r->member.n; m++)
		point_declare_output(l, r->member.at[m]);
	for (uint32_t m = 0; m < r->member.n; m++)
		point_declare_node(l, r->member.at[m]);
	for (unsigned s = 0; s < r->nseq; s++)
		steps[s] = most_steps(l, r, s);
	open_tasks(l);
	for (unsigned s = 0; s < r->nseq; s++) {
		step[s] = tir_for(l->tir, tir_int(l->tir, DT_I64, 0), steps[s], one, NULL, 0);
		if (r->dir[s] < 0 && !BUG(recurrence_forward))
			step[s] = tir_binary(l->tir, OP_SUB, tir_binary(l->tir, OP_SUB, steps[s], one), step[s]);
	}
	for (uint32_t m = 0; m < r->member.n; m++)
		build_member(l, r->member.at[BUG(members_reversed) ? r->member.n - 1 - m : m], step, steps, r->nseq);
	for (unsigned s = 0; s < r->nseq; s++)
		tir_end_for(l->tir, NULL, 0);
	tir_end_for(l->tir, NULL, 0);
}

void
nest_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Point l;
	TensorId t = kernel->plan.node[0];
	const Node *n = tensor_node(g, t);
	point_begin(&l, g, scratch, places, kernel);
	if (!n->recur && !n->scatter) {
		build_elements(&l, t);
		return;
	}
	IndexTask all = {.axes = {.lane = -1, .divided = -1}};
	memset(all.axes.own, INDEX_AIMED, sizeof all.axes.own);
	kernel->ntask = expr_int(g, DT_I64, 1);
	kernel->serial = true;
	if (n->recur) {
		build_recurrence(&l, &g->recur.at[n->recur]);
		return;
	}
	point_declare_node(&l, t);
	point_enter_node(&l, t);
	open_tasks(&l);
	scatter_build(&l, t, &all);
	tir_end_for(l.tir, NULL, 0);
}
