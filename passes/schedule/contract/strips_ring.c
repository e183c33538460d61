/* strips_ring.c: strips of weights of 4 and of 8 bits (strips.c), which come through a ring in shared memory (ir/channel.h).
 *
 * A lane that reads such weights where they are has few bytes of each row, of few rows at a time, and waits for them with all that
 * it then has to do before it asks for the next. Here one thread asks for boxes of the weights and of the few, as far ahead as the
 * ring has room; warps take from there what their lanes multiply, and do nothing but to widen and to multiply. A row's box
 * is 128 bytes: memory gives less where it is asked for less of a row at a time (an H200, 65536 rows of 4096 bytes: boxes of 64 bytes
 * 78.5 us, of 128 66.2, of 256 61.8; in another run lanes that read them and nothing else 85.9).
 *
 * The long side's rows of a quad of lanes are 2 from the next one's: the swizzle has 16 bytes of such rows 32 apart, so that 8 bytes
 * of each of 4 meet all banks.
 *
 * A block's groups have a part of the strip's rows each, whose warps share those of a group along the rows and along the terms of a
 * fill. Chunks are as in strips.c, as long as terms have scales in common. What lies beyond the ends is 0 to the
 * copies. More rows than a task has are other tasks', beside each other, so that they find the weights in the cache. Where there are
 * fewer strips than processors the blocks of a cluster have a strip, and each a part of its terms; their sums meet when all is
 * multiplied (strips_finish.c). */
#include <string.h>

#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/strips.h"

#include "ir/bugs.h"
#include "ir/gpu_facts.h"
#include "ir/warp_mma.h"

enum {
	GROUPS = 2,
	GROUP_WARPS = TIR_GROUP / TIR_WARP,
	REGISTERS = 232, REST = 40,
	STRIP = STRIPS_ROWS * 8,
	WIDE = 4 * STRIP, NARROW = 2 * STRIP, /* rows of a block */
	LANE_BITS = 64,     /* of terms of a row, with which no access meets a bank twice */
	LANE_VALUES = 512, SCALED_VALUES = 256, /* of the few: more take registers that there are not, where sums have scales, too */
	FEW = 2 * WARP_MMA_COLUMNS, MORE = 4 * WARP_MMA_COLUMNS,
	PROCESSOR = 227 << 10, BARRIERS = 1 << 9 /* bytes of shared memory; what a block takes of it besides */
};

struct StripRing {
	BoxFactor of[2];
	ValId view[2];
	unsigned terms;        /* of a fill */
	ValId step0, step_end; /* the block's fills of a task */
	ValId fill, chunk;     /* the present one; where the lane's terms of a chunk begin in it */
};

/* Blocks of a cluster, and for how many clusters on 132 processors, for so many rows of a block. */
typedef struct {
	uint16_t rows, parts, clusters;
} Shape;

/* In the order in which a launch asks. The last one is for what has all registers. */
static const Shape shape[] = {{NARROW, 4, 30}, {NARROW, 2, 66}, {NARROW, 1, 132}, {WIDE, 1, 132}};
enum { SHAPES = sizeof shape / sizeof *shape, H200 = 132 };

/* How many of them there are. What stands beside the weights, read group by group, takes the registers of a wide block's indices, and
 * as much time (an H200, 16 rows of 8192 terms by 65536 columns: with zero points, in groups of 32, 297 us in wide ones and 224 in
 * the others, with a scale for 128 terms 110 and 111). */
static unsigned
shapes(const StripProduct *p, bool by_groups)
{
	return (p->scales.n || p->side[0].reads.n > 1) && !by_groups ? SHAPES - 1 : SHAPES;
}

/* Terms of a fill, whose rows are TIR_PART_TERMS of 16 bits; a warp's share of them. */
static unsigned
fill_terms(unsigned bits)
{
	return TIR_PART_TERMS * 16 / bits;
}
static unsigned
share_of(const Shape *of, unsigned bits)
{
	return fill_terms(bits) / (GROUPS * GROUP_WARPS * STRIP / of->rows);
}

/* --- whether --- */

/* The read of the long side's weights that comes through the ring: the only one along the terms. */
static ExprId
weights_of(const Graph *g, const StripFactor *f)
{
	ExprId read = 0;
	for (unsigned r = 0; r < f->reads.n; r++) {
		if (f->reads.at[r].how == EARLY_EACH || (f->reads.at[r].how == EARLY_GROUP && read))
			return 0;
		if (f->reads.at[r].how == EARLY_GROUP)
			read = f->reads.at[r].read;
	}
	return read && dtype_info[expr_get(g, read)->dtype].bits <= 8 ? read : 0;
}

static bool
find_boxes(const Graph *g, const Node *n, const StripFactor *side, BoxFactor *of)
{
	ExprId weights = weights_of(g, &side[0]);
	return side[0].along_terms && side[1].along_terms && weights && expr_get(g, side[1].value)->op == OP_READ &&
	       box_find(g, weights, side[0].own_axis, n->npar, &of[0]) && box_find(g, side[1].value, side[1].own_axis, n->npar, &of[1]) &&
	       !of[0].turned && !of[1].turned;
}

bool
strips_ring_could(const Graph *g, const Node *n, const PassOptions *o, const StripProduct *p)
{
	BoxFactor of[2];
	return o->roles && find_boxes(g, n, p->side, of);
}

/* Groups of terms that a warp reads at once what stands beside of; 1: what it takes, chunk by chunk. */
static unsigned
groups_of(const Graph *g, Arena *scratch, const StripProduct *p, unsigned term_axis, unsigned share)
{
	unsigned groups = p->scales.n ? share / p->scales.group : 1;
	groups = groups < STRIPS_MOST_GROUPS ? groups : STRIPS_MOST_GROUPS;
	return groups > 1 && strip_beside_goes_by_groups(g, scratch, p, term_axis, groups) ? groups : 1;
}

bool
strips_ring_takes_any(const Graph *g, const StripProduct *p)
{
	const Expr *value = expr_get(g, p->side[0].value), *of = value->op == OP_CAST ? expr_get(g, expr_arg(g, p->side[0].value, 0)) : NULL;
	return p->scales.n || (of && (dtype_is_int((DType)of->dtype) || of->op == OP_READ));
}

unsigned
strips_ring_take(const Graph *g, Arena *scratch, TensorId t, const StripProduct *p, KernelPlan *plan)
{
	unsigned n = 0, bits = dtype_info[expr_get(g, weights_of(g, &p->side[0]))->dtype].bits, terms = LANE_BITS / bits;
	terms = p->scales.n && p->scales.group < 4 * terms ? p->scales.group / 4 : terms;
	for (unsigned few = FEW; few <= MORE; few *= 2)
		for (unsigned k = 0; k < 2 * SHAPES; k++) {
			const Shape *of = &shape[k % SHAPES];
			bool by_groups = k < SHAPES; /* they go first */
			unsigned share = share_of(of, bits), groups = by_groups ? groups_of(g, scratch, p, tensor_node(g, t)->npar, share) : 1;
			unsigned most = (p->scales.n ? SCALED_VALUES : LANE_VALUES) / few;
			if (k % SHAPES >= shapes(p, by_groups) || (by_groups && groups == 1))
				continue;
			most = share / 4 < most ? share / 4 : most;
			plan[n++] = (KernelPlan){.tmpl = TMPL_CONTRACT, .lanes = WARP_MMA_C, .unroll = (uint16_t)groups, .pairs = WARP_MMA_TERMS / 2,
			                         .threads = (GROUPS + 1) * TIR_GROUP, .group = (uint16_t)(terms < most ? terms : most), .resident = 1,
			                         .cluster = (uint16_t)(of->parts > 1 ? of->parts : 0),
			                         .tile_rows = (uint16_t)(p->few_columns ? STRIP : few), .tile_columns = (uint16_t)(p->few_columns ? few : STRIP),
			                         .block_rows = few, .block_columns = of->rows, .block_terms = (uint16_t)fill_terms(bits),
			                         .block_tasks = 1, .nnode = 1, .node = {t}};
		}
	return n;
}

/* --- the launch --- */

static const Shape *
shape_of(const KernelPlan *p)
{
	for (unsigned k = 0; k < SHAPES; k++)
		if (shape[k].rows == p->block_columns && shape[k].parts == (p->cluster ? p->cluster : 1))
			return &shape[k];
	return &shape[SHAPES - 1];
}

/* Where the shape has no more than one cluster for each place that there is; the last one, if it is wide, where narrow ones have more. */
static void
count_tasks(Strips *s, Kernel *kernel, const StripProduct *p)
{
	Graph *g = s->l.g;
	const Shape *of = shape_of(s->plan);
	bool last = of == &shape[shapes(p, s->beside.groups > 1) - 1];
	ExprId strips = strips_count(s), suits = strips_suit(s), one = expr_int(g, DT_I64, 1);
	if (!strips_ring_takes_any(s->l.g, p)) /* else terms beyond the last one are 0, by what the few then have */
		suits = expr_binary(g, OP_MUL, suits, strips_are_multiple(g, s->nterm, s->ring->terms));
	ExprId places = expr_binary(g, OP_IDIV, expr_binary(g, OP_MUL, gpu_fact(g, GPU_PROCESSORS), expr_int(g, DT_I64, of->clusters)), expr_int(g, DT_I64, H200));
	if (!last)
		suits = expr_binary(g, OP_MUL, suits, expr_binary(g, OP_SUB, one, strips_are_more(g, strips, places)));
	else if (of->rows == WIDE) /* there may be no narrow ones before it */
		suits = expr_binary(g, OP_MUL, suits, strips_are_more(g, expr_binary(g, OP_MUL, strips, expr_int(g, DT_I64, WIDE / NARROW)), places));
	kernel->ntask = expr_binary(g, OP_MUL, strips, suits);
}

/* --- a fill --- */

static void
load(Strips *s)
{
	TirKernel *k = s->l.tir;
	StripRing *r = s->ring;
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId by = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0), fill = strips_int(s, 0), one = strips_int(s, 1), at[TG_MAX_AXES];
	strips_place_task(s, tir_for(k, lo, hi, by, &fill, 1));
	ValId step = tir_for(k, r->step0, r->step_end, one, &fill, 1), first = strips_op(s, OP_MUL, step, strips_int(s, r->terms));
	memcpy(at, s->l.axis, sizeof at);
	tir_emit(k, OP_ACQUIRE, (TirType){0}, 0, &fill, 1);
	at[s->side[0].own_axis] = s->first;
	at[s->term_axis] = first;
	box_copy(&s->l, TIR_COPY(0, 0), r->view[0], &r->of[0], s->side[0].own_axis, s->term_axis, at, 0, fill);
	at[s->side[1].own_axis] = s->few0;
	for (unsigned p = 0; p * TIR_PART_TERMS < r->terms; p++) {
		at[s->term_axis] = strips_op(s, OP_ADD, first, strips_int(s, p * TIR_PART_TERMS));
		box_copy(&s->l, TIR_COPY(0, 1 + p), r->view[1], &r->of[1], s->side[1].own_axis, s->term_axis, at, 0, fill);
	}
	fill = strips_op(s, OP_ADD, fill, one);
	tir_end_for(k, &fill, 1);
	tir_end_for(k, &fill, 1);
}

ValId
strips_ring_elements(Strips *s, const StripFactor *f, unsigned row, unsigned term, unsigned n)
{
	bool few = f == &s->side[1];
	ValId own = few ? s->lane_row : strips_op(s, OP_ADD, s->long_row, strips_op(s, OP_MUL, s->across, strips_int(s, STRIP)));
	const ValId arg[3] = {s->ring->fill, strips_op(s, OP_ADD, own, strips_int(s, 8 * row)), strips_op(s, OP_ADD, s->ring->chunk, strips_int(s, term))};
	return tir_emit(s->l.tir, OP_TAKE, tir_vector(s->ring->of[few].dtype, n), TIR_COPY(0, few), arg, 3);
}

/* The lane's first term of the chunk whose terms begin at `at`; *some: it has one. Beyond the end those of the first one. */
static ValId
lane_from(Strips *s, ValId at, ValId *some)
{
	TirKernel *k = s->l.tir;
	ValId end = point_launch_expr(&s->l, s->nterm), lane = strips_op(s, OP_ADD, at, strips_op(s, OP_MUL, s->quad, strips_int(s, s->terms)));
	*some = strips_op(s, OP_LT, at, end);
	return tir_select(k, strips_op(s, OP_LT, lane, end), lane, strips_int(s, 0));
}

/* The warp's chunks of a fill, whose terms begin at `first`; what the first ones take beside is asked for before the fill is waited
 * for. */
static void
add_fill(Strips *s, ValId first, ValId *acc)
{
	StripRing *r = s->ring;
	TirKernel *k = s->l.tir;
	StripBesideValues beside;
	unsigned share = r->terms / s->depth, chunk = 4 * s->terms, reach = s->beside.groups > 1 ? s->beside.groups * s->scales.group : chunk;
	ValId own = strips_op(s, OP_MUL, s->down, strips_int(s, share)), quad = strips_op(s, OP_MUL, s->quad, strips_int(s, s->terms));
	for (unsigned at = 0; at < share; at += chunk) {
		unsigned group = s->scales.n ? at % reach / s->scales.group : 0;
		ValId place = strips_op(s, OP_ADD, own, strips_int(s, at)), term = strips_op(s, OP_ADD, first, place), scale[STRIPS_ROWS], some;
		ValId from = lane_from(s, term, &some);
		term = tir_select(k, some, term, strips_int(s, 0));
		if (at % reach == 0)
			strip_beside_read(s, term, from, beside);
		if (!at)
			tir_emit(k, OP_WAIT, (TirType){0}, 0, &r->fill, 1);
		for (unsigned row = 0; s->scales.n && row < s->side[0].rows; row++) { /* which may be infinite */
			ValId read[EARLY_READS];
			for (unsigned n = 0; n < s->scales.reads.n; n++)
				read[n] = beside[0][n][row][BUG(strip_groups_alike) ? 0 : group];
			scale[row] = tir_select(k, some, strip_scale_of(s, row, term, read), tir_float(k, DT_F32, 0));
		}
		r->chunk = strips_op(s, OP_ADD, place, quad);
		strip_factor_take(s, &s->side[0], from, beside[1], group);
		strips_multiply(s, from, 0, scale, 0, acc);
	}
	tir_emit(k, OP_RELEASE, (TirType){0}, 0, (ValId[]){r->fill, tir_int(k, DT_BOOL, 1)}, 2);
}

/* anew: another number for each time that it is looked up. */
static void
place_threads(Strips *s, int64_t anew)
{
	TirKernel *k = s->l.tir;
	ValId in_group;
	s->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), anew, NULL, 0);
	s->group = raster_divide(k, s->thread, strips_int(s, TIR_GROUP), &in_group);
	s->warp = raster_divide(k, in_group, strips_int(s, TIR_WARP), &s->lane);
	s->lane_row = raster_divide(k, s->lane, strips_int(s, 4), &s->quad);
	ValId upper = raster_divide(k, s->lane_row, strips_int(s, 4), &s->long_row);
	s->long_row = strips_op(s, OP_ADD, strips_op(s, OP_MUL, s->long_row, strips_int(s, 2)), upper);
	s->across = raster_divide(k, s->warp, strips_int(s, s->depth), &s->down);
	s->across = strips_op(s, OP_ADD, s->across, strips_op(s, OP_MUL, s->group, strips_int(s, s->width / GROUPS)));
	s->finisher = in_group;
	if (s->blocks > 1)
		s->finisher = strips_op(s, OP_ADD, s->thread, strips_op(s, OP_MUL, s->rank, strips_int(s, GROUPS * TIR_GROUP)));
}

static void
multiply(Strips *s)
{
	TirKernel *k = s->l.tir;
	StripRing *r = s->ring;
	unsigned n = s->tiles * s->few_tiles * WARP_MMA_C;
	ValId acc[STRIPS_MOST_SUMS + 1], one = strips_int(s, 1), fill = strips_int(s, 0);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId by = tir_emit(k, OP_TASK_STEP, tir_scalar(DT_I64), 0, NULL, 0);
	ValId task = tir_for(k, lo, hi, by, &fill, 1);
	place_threads(s, 0);
	strips_enter_task(s, task);
	for (unsigned i = 0; i < n; i++)
		acc[i] = tir_float(k, DT_F32, 0);
	acc[n] = fill;
	ValId step = tir_for(k, r->step0, r->step_end, one, acc, n + 1);
	r->fill = acc[n];
	add_fill(s, strips_op(s, OP_MUL, step, strips_int(s, r->terms)), acc);
	acc[n] = strips_op(s, OP_ADD, r->fill, one);
	tir_end_for(k, acc, n + 1);
	fill = acc[n];
	place_threads(s, 1); /* anew: what is made of a thread's number then waits in no registers while it multiplies */
	strips_finish(s, acc);
	tir_end_for(k, &fill, 1);
}

/* --- the kernel --- */

static void
bind_warps(Strips *s)
{
	const KernelPlan *p = s->plan;
	s->blocks = p->cluster ? p->cluster : 1;
	s->width = p->block_columns / STRIP;
	s->depth = GROUPS * GROUP_WARPS / s->width;
	s->room = GROUPS * GROUP_WARPS;
	if (s->few_tiles > 2 || s->depth == 2)
		s->room /= 2; /* which leaves the ring what it takes */
	s->together = s->blocks > 1 ? p->block_columns : p->block_columns / GROUPS;
	s->finishers = s->blocks > 1 ? s->blocks * GROUPS * TIR_GROUP : TIR_GROUP;
}

static void
add_channel(Strips *s)
{
	StripRing *r = s->ring;
	TirChannel c = {.nparts = 1};
	c.part[0] = (TirPart){.dtype = r->of[0].dtype, .rows = (uint16_t)s->plan->block_columns, .terms = (uint16_t)r->terms};
	for (unsigned p = 0; p * TIR_PART_TERMS < r->terms; p++)
		c.part[c.nparts++] = (TirPart){.dtype = r->of[1].dtype, .rows = (uint16_t)s->plan->block_rows, .terms = TIR_PART_TERMS};
	unsigned slots = (PROCESSOR - BARRIERS - strips_staged_bytes(s)) / tir_slot_bytes(&c);
	c.slots = (uint16_t)(slots < TIR_MAX_SLOTS ? slots : TIR_MAX_SLOTS);
	tir_add_channel(s->l.tir, &c);
}

/* The block's part of the fills of a task, before roles are opened. */
static void
divide_terms(Strips *s)
{
	StripRing *r = s->ring;
	ValId steps = point_launch_expr(&s->l, launch_ceil_div(s->l.g, s->nterm, r->terms)), rest;
	r->step0 = strips_int(s, 0);
	r->step_end = steps;
	if (s->blocks == 1)
		return;
	ValId parts = strips_int(s, s->blocks);
	s->rank = tir_emit(s->l.tir, OP_RANK, tir_scalar(DT_I64), 0, NULL, 0);
	r->step0 = raster_divide(s->l.tir, strips_op(s, OP_MUL, steps, s->rank), parts, &rest);
	r->step_end = raster_divide(s->l.tir, strips_op(s, OP_MUL, steps, strips_op(s, OP_ADD, s->rank, strips_int(s, 1))), parts, &rest);
}

void
strips_ring_build(Strips *s, Kernel *kernel, const StripProduct *p)
{
	Point *l = &s->l;
	TirKernel *k = l->tir;
	StripRing *r = s->ring = ARENA_NEW(l->scratch, StripRing);
	r->terms = s->plan->block_terms;
	find_boxes(l->g, l->node, s->side, r->of);
	strip_beside_declare(s, s->plan->unroll);
	bind_warps(s);
	add_channel(s);
	count_tasks(s, kernel, p);
	strips_launch(s); /* so that both roles see them */
	for (unsigned n = 0; n < 2; n++)
		r->view[n] = box_view(l, &r->of[n], s->side[n].own_axis, s->term_axis);
	divide_terms(s);
	point_say_same_memory(l);
	strips_bind_staged(s);
	tir_open_roles(k, TIR_ROLES(GROUPS, REGISTERS, REST));
	multiply(s);
	tir_other_role(k);
	load(s);
	tir_end_roles(k);
}
