/* map.c: the MAP template: pointwise nodes, a vector of elements along the innermost axis at a time.
 *
 * A task is a chunk of a row. It runs whole vectors, then one masked vector for what is left. Where
 * the innermost strides of all parameters and results are 1, which one test finds at run time,
 * accesses along the row are contiguous; else the same code runs with strided ones. */
#include "passes/schedule/schedule.h"
#include "ir/bugs.h"

enum { CHUNK = 4096 }; /* elements: some microseconds of work, and a multiple of every lane count */

bool
map_takes(const Graph *g, TensorId t, uint16_t lanes, RemarkId *why)
{
	const Tensor *tensor = &g->tensor.at[t];
	const Node *n = tensor_node(g, t);
	if (n->recur)
		*why = REMARK_map_recurs;
	else if (n->scatter)
		*why = REMARK_map_scatters;
	else if (n->monoid != MON_NONE)
		*why = REMARK_map_reduces;
	else if (tensor->rank == 0)
		*why = REMARK_map_rank_0;
	else if (dtype_info[tensor->dtype].bits < 8)
		*why = REMARK_map_nibbles;
	else if (lanes < 2)
		*why = REMARK_map_scalar;
	else
		return true;
	return false;
}

/* ceil(innermost extent / CHUNK) */
static ExprId
chunk_count(Graph *g, TensorId t)
{
	ExprId n = g->tensor.at[t].extent[g->tensor.at[t].rank - 1];
	ExprId up = expr_binary(g, OP_ADD, n, expr_int(g, DT_I64, BUG(last_chunk_missing) ? 0 : CHUNK - 1));
	return expr_binary(g, OP_IDIV, up, expr_int(g, DT_I64, CHUNK));
}

static ExprId
task_count(Graph *g, TensorId t)
{
	const Tensor tensor = g->tensor.at[t];
	ExprId count = chunk_count(g, t);
	for (unsigned a = 0; a + 1 < tensor.rank; a++)
		count = expr_binary(g, OP_MUL, count, tensor.extent[a]);
	return count;
}

static PointVal
vector_value(Point *l)
{
	const Node *n = l->node;
	bool always = expr_is_true(l->g, n->domain);
	PointVal v = element_finish(l, point_value(l, n->body, always), tir_int(l->tir, DT_BOOL, 1), always);
	if (always)
		return v;
	ValId domain = point_value(l, n->domain, true).re, none = tir_int(l->tir, DT_U32, 0);
	PointVal zero = point_zero(l, l->g->tensor.at[n->out].dtype);
	v.re = tir_select(l->tir, domain, v.re, zero.re);
	v.im = v.im ? tir_select(l->tir, domain, v.im, zero.im) : 0;
	v.fail = v.fail ? tir_select(l->tir, domain, v.fail, none) : 0;
	v.cut = v.cut ? tir_select(l->tir, domain, v.cut, none) : 0;
	return v;
}

/* The vector whose first element is the point l->axis. */
static void
build_vector(Point *l, TensorId t, ValId mask)
{
	uint32_t mark = point_mark(l);
	l->mask = mask;
	point_store(l, t, vector_value(l), l->axis);
	l->mask = 0;
	point_release(l, mark);
}

static void
set_row(Point *l, TensorId t, ValId row)
{
	const TensorArg *arg = point_tensor(l, t);
	for (unsigned a = l->lane_axis; a-- > 0;) {
		l->axis[a] = a ? tir_binary(l->tir, OP_IMOD, row, arg->extent[a]) : row;
		if (a)
			row = tir_binary(l->tir, OP_IDIV, row, arg->extent[a]);
	}
}

static void
build_row(Point *l, TensorId t, ValId begin, ValId end)
{
	TirKernel *k = l->tir;
	ValId lanes = tir_int(k, DT_I64, l->lanes);
	ValId whole = tir_binary(k, OP_IDIV, tir_binary(k, OP_SUB, end, begin), lanes);
	ValId rest = tir_binary(k, OP_ADD, begin, tir_binary(k, OP_MUL, whole, lanes));
	l->axis[l->lane_axis] = tir_for(k, begin, rest, lanes, NULL, 0);
	build_vector(l, t, 0);
	tir_end_for(k, NULL, 0);
	l->axis[l->lane_axis] = rest;
	tir_if(k, tir_binary(k, OP_LT, rest, end));
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I64, l->lanes), 0, NULL, 0);
	build_vector(l, t, tir_binary(k, BUG(tail_mask) ? OP_LE : OP_LT, tir_binary(k, OP_ADD, rest, iota), end));
	tir_else(k, NULL, 0);
	tir_end_if(k, NULL, 0);
}

static void
build_tasks(Point *l, TensorId t, ValId chunks)
{
	TirKernel *k = l->tir;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId task = tir_for(k, lo, hi, tir_int(k, DT_I64, 1), NULL, 0);
	uint32_t mark = point_mark(l);
	ValId size = tir_int(k, DT_I64, CHUNK);
	ValId begin = tir_binary(k, OP_MUL, tir_binary(k, OP_IMOD, task, chunks), size);
	ValId end = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, begin, size),
	                       point_tensor(l, t)->extent[l->lane_axis]);
	set_row(l, t, tir_binary(k, OP_IDIV, task, chunks));
	build_row(l, t, begin, end);
	point_release(l, mark);
	tir_end_for(k, NULL, 0);
}

/* Whether every view that a dense one stands for has it; 0 when none is in question. */
static ValId
all_dense(Point *l)
{
	ValId all = 0, one = tir_int(l->tir, DT_I64, 1);
	for (uint32_t k = 0; k < l->arg.n; k++) {
		const TensorArg *arg = &l->arg.at[k];
		if (!arg->dense)
			continue;
		unsigned last = l->g->tensor.at[arg->tensor].rank - 1u;
		ValId is = tir_binary(l->tir, OP_EQ, arg->stride[last], one);
		all = all ? tir_binary(l->tir, OP_AND, all, is) : is;
	}
	return all;
}

void
map_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Point l;
	TensorId t = kernel->plan.node[0];
	point_begin(&l, g, scratch, places, kernel);
	l.lanes = kernel->plan.lanes;
	l.lane_axis = g->tensor.at[t].rank - 1u;
	point_declare_node(&l, t);
	point_enter_node(&l, t);
	ValId chunks = point_launch_expr(&l, chunk_count(g, t));
	ValId dense = all_dense(&l);
	kernel->ntask = task_count(g, t);
	if (!dense) {
		build_tasks(&l, t, chunks);
		return;
	}
	tir_if(l.tir, dense);
	l.dense = true;
	build_tasks(&l, t, chunks);
	tir_else(l.tir, NULL, 0);
	l.dense = false;
	build_tasks(&l, t, chunks);
	tir_end_if(l.tir, NULL, 0);
}
