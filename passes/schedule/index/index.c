/* index.c: the INDEX template: a scatter whose elements are divided among tasks (index.h). Vectors run along
 * an own axis, if that is the output's last; with threads alone a task may be a single column of own axes.
 *
 * To look whether a term is a task's costs little beside a row of elements that it goes to, so ranges of the
 * aimed axis, or classes, are made as far as there are not enough tasks without. */
#include "passes/schedule/index/index.h"

#include "passes/cost/cost.h"
#include "passes/expr_map.h"
#include "ir/bugs.h"

enum {
	STRIP_POINTS = 4096,               /* of a processor's task, along the lanes */
	LARGE_BLOCK = 512, LARGE_BLOCKS = 2, /* threads, and blocks of a multiprocessor */
	SMALL_BLOCK = 128, SMALL_BLOCKS = 8, /* fewer, as each looks at all terms, whose rows are short */
	SIDE_BY_SIDE = 4,
	CPU_RANGES = 16, ROW_POINTS = 64,  /* a range for so many elements that a term goes to */
	GPU_THREADS = 4096
};

/* --- axes --- */

static bool
is_whole(const Graph *g, const Axis *a, ExprId extent)
{
	const Expr *lo = expr_get(g, a->lo);
	return lo->op == OP_CONST && lo->imm.i == 0 && a->hi == extent && !a->clamp && !a->cut;
}

static bool
is_taken(const IndexAxes *x, unsigned before, unsigned axis)
{
	for (unsigned a = 0; a < before; a++)
		if (x->own[a] == axis)
			return true;
	return false;
}

/* Whether the ranges of all loops are known without data. Else what a range meets as it is evaluated goes to the launch
 * though no task has elements. */
static bool
ranges_known(const Graph *g, Arena *scratch, const Node *n)
{
	for (unsigned a = n->npar; a < (unsigned)n->npar + n->nred; a++)
		if (!expr_is_index(g, scratch, n->axis[a].lo) || !expr_is_index(g, scratch, n->axis[a].hi))
			return false;
	return true;
}

static IndexAxes
find_axes(const Graph *g, Arena *scratch, TensorId t)
{
	const Node *n = tensor_node(g, t);
	const Tensor *out = &g->tensor.at[t];
	IndexAxes x = {.lane = -1, .divided = -1};
	bool known = ranges_known(g, scratch, n);
	for (unsigned a = 0; a < n->npar; a++) {
		const Expr *e = expr_get(g, n->target[a]);
		bool own = known && e->op == OP_AXIS && e->ref >= n->npar && !n->target_access[a] && !is_taken(&x, a, e->ref) &&
		           is_whole(g, &n->axis[e->ref], out->extent[a]);
		x.own[a] = own ? (uint8_t)e->ref : INDEX_AIMED;
		if (!own && x.divided < 0)
			x.divided = (int)a;
	}
	if (n->npar && x.own[n->npar - 1] != INDEX_AIMED)
		x.lane = n->npar - 1;
	return x;
}

/* Whether an aimed subscript differs from lane to lane. */
static bool
aims_by_lane(const Graph *g, Arena *scratch, const Node *n, const IndexAxes *x)
{
	for (unsigned a = 0; a < n->npar; a++)
		if (x->own[a] == INDEX_AIMED && expr_axes(g, scratch, n->target[a]) >> x->own[x->lane] & 1)
			return true;
	return false;
}

/* --- whether --- */

/* Whether a task's terms read what another task writes over. */
static bool
terms_read_old(const Graph *g, Arena *scratch, const Places *places, TensorId t)
{
	uint32_t r = places->result[t];
	TensorId old = r ? g->result.at[r - 1].inout : 0;
	Node terms = *tensor_node(g, t);
	terms.init = terms.finish = terms.domain = 0;
	return old && node_reads(g, scratch, &terms, old);
}

/* --- blocks of threads --- */

static unsigned
group_of(const Graph *g, Arena *scratch, TensorId t, const IndexAxes *x)
{
	const Node *n = tensor_node(g, t);
	LaneAccess along = {.g = g, .scratch = scratch, .lanes = 1u << x->lane | 1u << x->own[x->lane],
	                    .widest = dtype_info[g->tensor.at[t].dtype].bits / 8u};
	lane_access_reads(&along, n);
	return lane_access_group(&along);
}

static void
add_shape(BlockShapes *out, unsigned threads, unsigned group)
{
	out->at[out->n++] = (BlockShape){.threads = (uint16_t)threads, .group = (uint16_t)group, .lanes = threads * (group > SIDE_BY_SIDE ? group : SIDE_BY_SIDE),
	                                 .resident = threads == LARGE_BLOCK ? LARGE_BLOCKS : SMALL_BLOCKS};
}

bool
index_takes(Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan,
            BlockShapes *shapes)
{
	const Node *n = tensor_node(g, t);
	if (!n->scatter || dtype_info[g->tensor.at[t].dtype].bits < 8 || terms_read_old(g, scratch, places, t))
		return false;
	IndexAxes x = find_axes(g, scratch, t);
	bool lanes = x.lane >= 0 && o->lanes > 1 && !aims_by_lane(g, scratch, n, &x);
	if (!lanes && !o->blocks)
		return false;
	plan->tmpl = TMPL_INDEX;
	plan->lanes = lanes ? o->lanes : 0;
	plan->unroll = 1;
	if (!lanes || !o->blocks)
		return true;
	unsigned group = group_of(g, scratch, t, &x);
	if (group > 1) {
		add_shape(shapes, LARGE_BLOCK, group);
		add_shape(shapes, SMALL_BLOCK, group);
	}
	add_shape(shapes, SMALL_BLOCK, 1);
	return true;
}

/* --- tasks --- */

typedef struct {
	Graph *g;
	const KernelPlan *plan;
	TensorId t;
	IndexAxes axes;
	ExprId strips, ranges; /* how many */
	ExprId range;          /* elements of the divided axis in each */
} Division;

static ExprId
times(Graph *g, ExprId a, ExprId b)
{
	return expr_binary(g, OP_MUL, a, b);
}

static ExprId
clamped(Graph *g, ExprId e, int64_t most)
{
	return expr_binary(g, OP_MAX, expr_int(g, DT_I64, 1), expr_binary(g, OP_MIN, e, expr_int(g, DT_I64, most)));
}

static int64_t
strip_points(const KernelPlan *p)
{
	return p->threads ? p->lanes : STRIP_POINTS;
}

/* The values of own axes that tasks have one each of; points: those along the lanes too. */
static ExprId
own_count(const Division *d, bool points)
{
	ExprId count = expr_int(d->g, DT_I64, 1);
	for (unsigned a = 0; a < tensor_node(d->g, d->t)->npar; a++)
		if (d->axes.own[a] != INDEX_AIMED && (points || (int)a != d->axes.lane))
			count = times(d->g, count, d->g->tensor.at[d->t].extent[a]);
	return count;
}

/* The most classes of `extent` values, a power of two, that make up to `most` tasks of `tasks` times as many. */
static ExprId
class_count(Graph *g, ExprId tasks, ExprId extent, int64_t most)
{
	ExprId classes = expr_int(g, DT_I64, 1), zero = expr_int(g, DT_I64, 0);
	for (int64_t n = 2; n <= most; n *= 2) {
		ExprId count = expr_int(g, DT_I64, n);
		ExprId few = expr_binary(g, OP_LE, times(g, tasks, count), expr_int(g, DT_I64, most));
		ExprId fits = expr_binary(g, OP_AND, few, expr_binary(g, OP_LE, count, extent));
		classes = expr_binary(g, OP_ADD, classes, expr_select(g, fits, expr_int(g, DT_I64, n / 2), zero));
	}
	return classes;
}

/* Ranges enough for a device, but on a processor none so short that looking is what takes the time. */
static ExprId
range_count(const Division *d)
{
	Graph *g = d->g;
	ExprId tasks = times(g, own_count(d, false), d->strips);
	if (d->axes.divided < 0)
		return expr_int(g, DT_I64, 1);
	if (d->plan->lanes && !d->plan->threads)
		return clamped(g, expr_binary(g, OP_IDIV, own_count(d, true), expr_int(g, DT_I64, ROW_POINTS)), CPU_RANGES);
	if (d->plan->threads)
		return class_count(g, tasks, g->tensor.at[d->t].extent[d->axes.divided], (int64_t)d->plan->resident * cost_machine(true, 0)->threads);
	int64_t most = GPU_THREADS;
	return clamped(g, expr_binary(g, OP_IDIV, expr_int(g, DT_I64, most), clamped(g, tasks, most)), most);
}

static Division
divide(Graph *g, Arena *scratch, const KernelPlan *plan, TensorId t)
{
	Division d = {.g = g, .plan = plan, .t = t, .axes = find_axes(g, scratch, t), .strips = expr_int(g, DT_I64, 1)};
	if (!plan->lanes)
		d.axes.lane = -1;
	if (d.axes.lane >= 0)
		d.strips = launch_ceil_div(g, g->tensor.at[t].extent[d.axes.lane], strip_points(plan));
	d.ranges = range_count(&d);
	if (d.axes.divided >= 0) {
		ExprId one = expr_int(g, DT_I64, 1), up = expr_binary(g, OP_SUB, d.ranges, one);
		d.range = expr_binary(g, OP_IDIV, expr_binary(g, OP_ADD, g->tensor.at[t].extent[d.axes.divided], up), d.ranges);
	}
	return d;
}

/* How many elements the aimed axes have. */
static ExprId
aimed_count(const Division *d)
{
	ExprId count = expr_int(d->g, DT_I64, 1);
	for (unsigned a = 0; a < tensor_node(d->g, d->t)->npar; a++)
		if (d->axes.own[a] == INDEX_AIMED)
			count = times(d->g, count, d->g->tensor.at[d->t].extent[a]);
	return count;
}

/* None where blocks have groups and the rows aren't made of whole ones, or more of them than 32 bits number, or are
 * large and the rows are too short for their threads. */
static ExprId
task_count(const Division *d)
{
	Graph *g = d->g;
	ExprId count = times(g, times(g, d->strips, own_count(d, false)), d->ranges);
	ExprId row = d->axes.lane >= 0 ? g->tensor.at[d->t].extent[d->axes.lane] : 0;
	unsigned group = d->plan->group;
	ExprId zero = expr_int(g, DT_I64, 0);
	if (d->plan->threads == LARGE_BLOCK)
		count = expr_select(g, expr_binary(g, OP_LE, expr_int(g, DT_I64, d->plan->lanes), row), count, zero);
	if (group > 1)
		count = expr_select(g, expr_binary(g, OP_LE, aimed_count(d), expr_int(g, DT_I64, INT32_MAX)), count, zero);
	if (group <= 1 || expr_multiple(g, row, group) >= group || BUG(index_cuts_groups))
		return count;
	ExprId rest = expr_binary(g, OP_IMOD, row, expr_int(g, DT_I64, group));
	return expr_select(g, expr_binary(g, OP_EQ, rest, zero), count, zero);
}

/* number mod e, and number becomes number div e. */
static ValId
take_digit(Point *l, ValId *number, ExprId e)
{
	const Expr *p = expr_get(l->g, e);
	if (p->op == OP_CONST && p->imm.i == 1)
		return tir_int(l->tir, DT_I64, 0);
	ValId n = point_launch_expr(l, e), digit = tir_binary(l->tir, OP_IMOD, *number, n);
	*number = tir_binary(l->tir, OP_IDIV, *number, n);
	return digit;
}

static void
open_task(Point *l, const Division *d, IndexTask *task, ValId number)
{
	TirKernel *k = l->tir;
	const Tensor *out = &l->g->tensor.at[d->t];
	ValId strip = take_digit(l, &number, d->strips);
	for (unsigned a = l->node->npar; a-- > 0;)
		if (d->axes.own[a] != INDEX_AIMED && (int)a != d->axes.lane)
			l->axis[d->axes.own[a]] = take_digit(l, &number, out->extent[a]);
	if (d->axes.lane >= 0) {
		ValId size = tir_int(k, DT_I64, strip_points(d->plan));
		task->begin = tir_binary(k, OP_MUL, strip, size);
		task->end = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, task->begin, size), point_launch_expr(l, out->extent[d->axes.lane]));
	}
	if (d->axes.divided >= 0 && d->plan->threads) {
		task->classes = point_launch_expr(l, d->ranges);
		task->lo = number;
		task->hi = point_launch_expr(l, out->extent[d->axes.divided]);
	} else if (d->axes.divided >= 0) {
		ValId size = point_launch_expr(l, d->range), extent = point_launch_expr(l, out->extent[d->axes.divided]);
		task->lo = tir_binary(k, OP_MIN, tir_binary(k, OP_MUL, number, size), extent);
		task->hi = tir_binary(k, OP_MIN, tir_binary(k, OP_ADD, task->lo, size), extent);
	}
}

/* What open_task takes, before the loop over tasks. */
static void
declare_launch(Point *l, const Division *d)
{
	point_launch_expr(l, d->strips);
	for (unsigned a = 0; a < l->node->npar; a++)
		point_launch_expr(l, l->g->tensor.at[d->t].extent[a]);
	if (d->range)
		point_launch_expr(l, d->plan->threads ? d->ranges : d->range);
}

void
index_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel)
{
	Point l;
	const KernelPlan *plan = &kernel->plan;
	TensorId t = plan->node[0];
	Division d = divide(g, scratch, plan, t);
	IndexTask task = {.axes = d.axes};
	point_begin(&l, g, scratch, places, kernel);
	if (d.axes.lane >= 0) {
		l.lanes = plan->lanes;
		l.lane_axes = 1u << d.axes.lane | 1u << d.axes.own[d.axes.lane];
		l.unit = true;
	}
	point_declare_node(&l, t);
	point_enter_node(&l, t);
	declare_launch(&l, &d);
	kernel->ntask = task_count(&d);
	kernel->grain = expr_int(g, DT_I64, 1);
	ValId lo = tir_emit(l.tir, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(l.tir, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId number = tir_for(l.tir, lo, hi, tir_int(l.tir, DT_I64, 1), NULL, 0);
	uint32_t mark = point_mark(&l);
	open_task(&l, &d, &task, number);
	scatter_build(&l, t, &task);
	point_release(&l, mark);
	tir_end_for(l.tir, NULL, 0);
	if (plan->threads)
		point_say_same_memory(&l);
}
