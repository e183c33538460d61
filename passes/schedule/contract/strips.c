/* strips.c: the CONTRACT template for a GPU where one side of the output has few indices, as a layer of a model has
 * that is asked for a few tokens: a sum of products of two factors of 16 bits, at the rate at which memory gives the longer
 * one, which is read once.
 *
 * A task is a strip of the long side with all of the few, of one batch. Its warps share the terms: each goes through every
 * so manieth chunk of them, reads what its lanes multiply straight from memory into registers, and multiplies by WARP_MMA,
 * the long side as its 16 rows, the few as its 8 columns, of two or four instructions. Nothing but the sums goes through shared memory
 * (strips_finish.c), so no warp waits for another before its last chunk, and all their reads are on the way at
 * the same time: THREADS lanes with eight accesses of 16 bytes each have 64 KB. Memory's first cache is left to the few. Where there
 * are more strips than processors, and memory runs along the long side, two blocks of half as many lanes share one, so that one
 * reads while the other hands over its sums and begins anew (an H200, us, 16 rows of 8192 terms by 28672 columns: 127.1, where one
 * block takes 139.2, by 10240 58.2 and 65.0; with terms along memory 143.0 and 135.4).
 *
 * Which term is which of an instruction's is up to both factors alone. A lane has the terms of its quarter of a chunk: as many
 * as its accesses take side by side, in four of them for each instruction. So elements that are side by side in memory are in
 * their registers when they arrive; where memory runs along the long side, two of them are put together from two accesses.
 *
 * Rows and columns beyond the last one are that one again, and are not stored; terms beyond the last one are 0 in both
 * factors. The order of the sums is the hardware's, in parts of the warps' chunks, which the strict mode does not allow;
 * of its rounding holds what roles.c and warps.c say: a warp has at most an eighth of the terms, and a chunk. */
#include "passes/schedule/contract/raster.h"
#include "passes/schedule/contract/roles.h"
#include "passes/schedule/contract/strips.h"

#include "ir/bugs.h"
#include "ir/gpu_facts.h"
#include "ir/warp_mma.h"

enum {
	THREADS = 512,      /* 128 registers each: of elements, and of those that are widened from 4 bits, which have half as many on their way; */
	SECTOR = 16,        /* elements */
	FEW_THREADS = 256,  /* 256, for what is computed of weights, for MORE, and for assemblers of GPUs without roles, who take more */
	TWICE = 2,          /* blocks of so many, of a processor */
	FEW = 16,           /* rows, of two instructions, */
	MORE = 32,          /* or of four */
	STRIP = 64,         /* of a warp */
	LEAST_LONG = 64,
	LEAST_TERMS = 128,
	TERM_BITS = 30      /* of an index, so that a chunk beyond the last one has 32 bits too */
};

/* --- whether --- */

typedef struct {
	StripFactor side[2];
	StripScales scales;
	Factors f;
	bool few_columns;
} Product;

/* Whether the axis has no more than so many indices; they are known. */
static bool
is_few(const Graph *g, const Node *n, unsigned axis, unsigned most)
{
	const Expr *e = expr_get(g, g->tensor.at[n->out].extent[axis]);
	return e->op == OP_CONST && e->imm.i <= most;
}

/* Whether it may have so few. */
static bool
may_be_few(const Graph *g, const Node *n, unsigned axis, unsigned most)
{
	return expr_get(g, g->tensor.at[n->out].extent[axis])->op != OP_CONST || is_few(g, n, axis, most);
}

/* How many the few are at most: what is computed of weights takes the registers of the other sums. */
static unsigned
most_few(const Graph *g, const Product *p)
{
	return expr_get(g, p->side[0].value)->op == OP_READ && !p->scales.n ? MORE : FEW;
}

/* Whether the long side has elements of 4 bits, and nothing is done with them but to widen them: then registers suffice for twice the
 * threads, and with as many of them at work the time is less (an H200, us, 16 rows of 8192 terms by 8192 columns: 22.8 and 35.5, by
 * 65536 134 and 203). */
static bool
widens_nibbles(const Graph *g, const Product *p)
{
	const Expr *value = expr_get(g, p->side[0].value);
	return !p->scales.n && value->op == OP_CAST && expr_get(g, expr_arg(g, p->side[0].value, 0))->op == OP_READ &&
	       strip_factor_has_nibbles(g, &p->side[0]);
}

/* The long side's factor: of 16 bits itself, or by scales. */
static bool
find_long(const Graph *g, Arena *scratch, const Node *n, ExprId factor, DType t, unsigned axis, Product *p)
{
	p->scales = (StripScales){0};
	ExprId value = contract_narrow_type(g, factor) == t ? expr_arg(g, factor, 0) : 0;
	if (!value && strip_scales_find(g, scratch, factor, n->npar, t, &p->scales))
		value = p->scales.exact;
	return value && strip_factor_find(g, scratch, n, value, t, axis, true, &p->side[0]);
}

static bool
find_product(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Product *p)
{
	const Node *n = tensor_node(g, t);
	if (!contract_is_plain(g, scratch, faulty, t, &p->f))
		return false;
	unsigned row = (unsigned)__builtin_ctz(p->f.row_axes), column = (unsigned)__builtin_ctz(p->f.column_axes);
	p->few_columns = is_few(g, n, column, MORE) && !is_few(g, n, row, MORE);
	ExprId of_long = p->few_columns ? p->f.row : p->f.column, of_few = p->few_columns ? p->f.column : p->f.row;
	unsigned axis = p->few_columns ? row : column, few = p->few_columns ? column : row;
	DType type = contract_narrow_type(g, of_few);
	if (type == DT_NONE)
		return false;
	strip_factor_find(g, scratch, n, expr_arg(g, of_few, 0), type, few, false, &p->side[1]); /* few are not worth groups of their own */
	return find_long(g, scratch, n, of_long, type, axis, p) && may_be_few(g, n, few, most_few(g, p));
}

/* Terms of a lane, of a chunk, which has scales in common. */
static unsigned
lane_terms(const Graph *g, const Product *p)
{
	unsigned most = p->scales.n ? STRIPS_GROUP / 4 : STRIPS_MOST_TERMS, terms = strip_factor_terms(g, &p->side[0]);
	return terms < most ? terms : most;
}

static bool
could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, Product *p)
{
	const Node *n = tensor_node(g, t);
	return o->warp_mma && o->blocks && g->fp != FP_STRICT && contract_is_sum_of_products(g, t) &&
	       !(n->finish && expr_can_fault(g, scratch, faulty, n->finish)) && find_product(g, scratch, faulty, t, p);
}

bool
contract_strips_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	Product *p = ARENA_NEW(scratch, Product);
	return could(g, scratch, faulty, t, o, p);
}

ExprId
contract_strips_long(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	Product *p = ARENA_NEW(scratch, Product);
	if (!could(g, scratch, faulty, t, o, p) || !is_few(g, tensor_node(g, t), p->side[1].own_axis, most_few(g, p)))
		return 0;
	return p->few_columns ? p->f.row : p->f.column;
}

typedef struct {
	const Graph *g;
	const Places *places;
	TensorId out;
	bool found;
} Overlap;

static void
note_overlap(void *user, ExprId e)
{
	Overlap *o = user;
	const Expr *p = expr_get(o->g, e);
	o->found |= p->op == OP_READ && places_memory(o->g, o->places, p->ref) == o->out;
}

/* Whether there are kernels of roles for the same, with the few as rows. */
static bool
roles_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, const Product *p)
{
	return !p->few_columns && contract_roles_could(g, scratch, faulty, t, o);
}

unsigned
contract_strips_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan)
{
	Product *p = ARENA_NEW(scratch, Product);
	if (places->faulty[t] || !could(g, scratch, places->faulty, t, o, p))
		return 0;
	Overlap overlap = {.g = g, .places = places, .out = places_memory(g, places, t)};
	expr_walk(g, scratch, tensor_node(g, t)->body, note_overlap, &overlap);
	if (overlap.found)
		return 0;
	unsigned n = 0, most = most_few(g, p);
	for (unsigned few = FEW; few <= most; few += MORE - FEW) {
		unsigned threads = (few == most && !widens_nibbles(g, p)) || !o->roles ? FEW_THREADS : THREADS, terms = lane_terms(g, p), first = n;
		if (few == MORE && 2 * terms <= STRIPS_MOST_TERMS)
			terms *= 2; /* so that fewer threads ask for as much */
		if (few == MORE && p->side[0].along_terms && terms % SECTOR == 0 && roles_would(g, scratch, places->faulty, t, o, p))
			break; /* whatever sizes it takes, roles do (count_tasks) */
		plan[n++] = (KernelPlan){.tmpl = TMPL_CONTRACT, .lanes = WARP_MMA_C, .unroll = 1, .pairs = WARP_MMA_TERMS / 2, .threads = (uint16_t)threads,
		                         .group = (uint16_t)terms, .resident = 1,
		                         .tile_rows = (uint16_t)(p->few_columns ? STRIP : few), .tile_columns = (uint16_t)(p->few_columns ? few : STRIP),
		                         .block_rows = few, .block_columns = STRIP,
		                         .block_terms = 4 * terms, .block_tasks = 1, .nnode = 1, .node = {t}};
		if (threads == THREADS && !p->side[0].along_terms) {
			plan[n++] = plan[first]; /* goes after the one of many strips */
			plan[first].threads = FEW_THREADS;
			plan[first].resident = TWICE;
		}
	}
	return n;
}

/* --- the launch --- */

static ExprId
unless_reaches(Graph *g, ExprId e, int64_t least)
{
	return expr_binary(g, OP_SUB, expr_int(g, DT_I64, 1), raster_reaches(g, e, least));
}

static ExprId
is_more(Graph *g, ExprId e, ExprId than)
{
	ExprId more = expr_binary(g, OP_MAX, expr_binary(g, OP_SUB, e, than), expr_int(g, DT_I64, 0));
	return expr_binary(g, OP_MIN, more, expr_int(g, DT_I64, 1));
}

static ExprId
is_multiple(Graph *g, ExprId e, int64_t of)
{
	ExprId one = expr_int(g, DT_I64, 1), rest = expr_binary(g, OP_IMOD, e, expr_int(g, DT_I64, of));
	return expr_binary(g, OP_SUB, one, expr_binary(g, OP_MIN, one, rest));
}

/* `roles`: there are kernels of roles for the same, of which that with a tile of 32 rows takes less time than the wider strips
 * where what it copies begins with sectors of the cache (an H200, us, 24 rows of 8192 terms by 8192 columns: 34.6 and 37.4, with
 * terms along memory 34.8 and 43.8); and, of more than eight rows, than the others where each processor has one strip at most (16 rows
 * of 8192 terms by 8192 columns: 33.5 and 35.3, with terms along memory 34.8 and 36.0; by 28672 columns 133.0 and 117.2, 135.5 and
 * 120.6). */
static void
count_tasks(Strips *s, Kernel *kernel, bool roles)
{
	Graph *g = s->l.g;
	const Node *n = s->l.node;
	const Tensor out = g->tensor.at[n->out];
	s->nlong = out.extent[s->side[0].own_axis];
	s->nfew = out.extent[s->side[1].own_axis];
	s->nterm = n->axis[s->term_axis].hi;
	ExprId strips = launch_ceil_div(g, s->nlong, s->plan->block_columns);
	for (unsigned a = 0; a < n->npar; a++)
		if (a != s->side[0].own_axis && a != s->side[1].own_axis)
			strips = expr_binary(g, OP_MUL, strips, out.extent[a]);
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, s->nlong, LEAST_LONG), raster_reaches(g, s->nterm, LEAST_TERMS));
	worth = expr_binary(g, OP_MUL, worth, expr_binary(g, OP_MUL, unless_reaches(g, s->nfew, s->plan->block_rows + 1), unless_reaches(g, s->nterm, INT64_C(1) << TERM_BITS)));
	worth = expr_binary(g, OP_MUL, worth, is_multiple(g, s->nterm, s->terms));
	if (roles) {
		ExprId one = expr_int(g, DT_I64, 1), one_wave = expr_binary(g, OP_SUB, one, is_more(g, strips, gpu_fact(g, GPU_PROCESSORS)));
		ExprId sectors = is_multiple(g, s->side[0].along_terms ? s->nterm : s->nlong, SECTOR);
		if (s->plan->block_rows == FEW)
			sectors = expr_binary(g, OP_MUL, sectors, expr_binary(g, OP_MUL, raster_reaches(g, s->nfew, FEW / 2 + 1), one_wave));
		worth = expr_binary(g, OP_MUL, worth, expr_binary(g, OP_SUB, one, sectors));
	}
	if (!s->side[0].along_terms)
		worth = expr_binary(g, OP_MUL, worth, is_multiple(g, s->nlong, STRIPS_ROWS));
	if (s->plan->resident == TWICE)
		worth = expr_binary(g, OP_MUL, worth, is_more(g, strips, gpu_fact(g, GPU_PROCESSORS)));
	kernel->ntask = expr_binary(g, OP_MUL, strips, worth);
}

/* --- a task --- */

static void
enter_task(Strips *s, ValId task)
{
	Point *l = &s->l;
	const Node *n = l->node;
	ValId strips = point_launch_expr(l, launch_ceil_div(l->g, s->nlong, s->plan->block_columns)), strip;
	ValId batch = raster_divide(l->tir, task, strips, &strip);
	for (unsigned a = n->npar; a-- > 0;)
		if (a != s->side[0].own_axis && a != s->side[1].own_axis)
			batch = raster_divide(l->tir, batch, point_launch_expr(l, l->g->tensor.at[n->out].extent[a]), &l->axis[a]);
	s->first = strips_op(s, OP_MUL, strip, strips_int(s, s->plan->block_columns));
	strip_factor_enter(s, &s->side[0], strips_op(s, OP_ADD, s->first, strips_op(s, OP_MUL, s->across, strips_int(s, STRIP))), s->nlong);
	strip_factor_enter(s, &s->side[1], strips_int(s, 0), s->nfew);
}

/* The terms of a lane that instruction `part` of a chunk takes, by their places in it: pairs of two, one behind the other or,
 * where those of a word are half of it apart, in the halves of one. */
static unsigned
term_of(const Strips *s, unsigned part, unsigned place)
{
	return s->nibbles ? part / 2 * 8 + part % 2 * 2 + place / 2 + place % 2 * 4 : part * 4 + place;
}

static void
add_tile(Strips *s, unsigned part, unsigned tile, ValId from, ValId there, ValId few[][WARP_MMA_B], ValId *acc)
{
	TirKernel *k = s->l.tir;
	ValId arg[WARP_MMA_OPERANDS];
	for (unsigned e = 0; e < WARP_MMA_A; e++)
		arg[e] = strip_factor_element(s, &s->side[0], 2 * tile + e / 2 % 2, term_of(s, part, e / 4 * 2 + e % 2), from, there);
	for (unsigned t = 0; t < s->few_tiles; t++) {
		ValId *sum = acc + (tile * s->few_tiles + t) * WARP_MMA_C;
		for (unsigned e = 0; e < WARP_MMA_B; e++)
			arg[WARP_MMA_A + e] = few[t][e];
		for (unsigned e = 0; e < WARP_MMA_C; e++)
			arg[WARP_MMA_A + WARP_MMA_B + e] = sum[e];
		ValId all = tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, WARP_MMA_C), 0, arg, WARP_MMA_OPERANDS);
		for (unsigned e = 0; e < WARP_MMA_C; e++)
			sum[e] = tir_emit(k, OP_LANE, tir_scalar(DT_F32), e, &all, 1);
	}
}

/* What was read of the chunk, whose lane's terms begin at `from`, multiplied and added to the sums. */
static void
multiply(Strips *s, ValId from, ValId there, ValId *acc)
{
	for (unsigned part = 0; part < s->terms / 4; part++) {
		ValId few[STRIPS_MOST_FEW_TILES][WARP_MMA_B];
		for (unsigned t = 0; t < s->few_tiles; t++)
			for (unsigned e = 0; e < WARP_MMA_B; e++)
				few[t][e] = strip_factor_element(s, &s->side[1], t, term_of(s, part, e), from, there);
		for (unsigned tile = 0; tile < s->tiles; tile++)
			add_tile(s, part, tile, from, there, few, acc);
	}
}

/* The same, where sums of a chunk are multiplied by its scales; some: the chunk has a term, if it is not 0. */
static void
multiply_by_scales(Strips *s, ValId from, ValId there, const ValId *scale, ValId some, ValId *acc)
{
	ValId sums[STRIPS_MOST_SUMS];
	for (unsigned n = 0; n < s->tiles * s->few_tiles * WARP_MMA_C; n++)
		sums[n] = tir_float(s->l.tir, DT_F32, 0);
	multiply(s, from, there, sums);
	strip_scales_add(s, scale, sums, some, acc);
}

/* The warp's chunk of this round; masked: it may have fewer terms, or none. */
static void
add_chunk(Strips *s, ValId round, bool masked, ValId *acc)
{
	TirKernel *k = s->l.tir;
	ValId zero = strips_int(s, 0), end = point_launch_expr(&s->l, s->nterm), scale[STRIPS_ROWS], there = 0, some = 0;
	ValId chunk = strips_op(s, OP_ADD, strips_op(s, OP_MUL, round, strips_int(s, strips_depth(s))), s->down);
	ValId first = strips_op(s, OP_MUL, chunk, strips_int(s, s->plan->block_terms));
	ValId from = strips_op(s, OP_ADD, first, strips_op(s, OP_MUL, s->quad, strips_int(s, s->terms)));
	if (masked) {
		some = strips_op(s, OP_LT, first, end);
		first = tir_select(k, some, first, zero);
	}
	if (s->scales.n)
		strip_scales_read(s, first, scale);
	if (masked) { /* the first elements of all are read for those that are not there */
		there = strips_op(s, OP_LT, from, end);
		from = tir_select(k, there, from, zero);
		for (unsigned row = 0; row < s->side[0].rows; row++)
			s->side[0].own[row] = tir_select(k, there, s->side[0].own[row], strips_int(s, s->side[0].along_terms ? 0 : row));
	}
	for (unsigned n = 0; n < 2; n++)
		strip_factor_read(s, &s->side[n], from);
	if (s->scales.n)
		multiply_by_scales(s, from, there, scale, some, acc);
	else
		multiply(s, from, there, acc);
}

/* All terms, added to the warp's sums: whole rounds of chunks, and what is left. */
static void
add_terms(Strips *s, ValId *acc)
{
	Graph *g = s->l.g;
	TirKernel *k = s->l.tir;
	unsigned n = s->tiles * s->few_tiles * WARP_MMA_C;
	int64_t each = (int64_t)strips_depth(s) * s->plan->block_terms;
	ValId zero = strips_int(s, 0), rounds = point_launch_expr(&s->l, expr_binary(g, OP_IDIV, s->nterm, expr_int(g, DT_I64, each)));
	ValId all = point_launch_expr(&s->l, launch_ceil_div(g, s->nterm, each));
	for (unsigned i = 0; i < n; i++)
		acc[i] = tir_float(k, DT_F32, 0);
	add_chunk(s, tir_for(k, zero, rounds, strips_int(s, 1), acc, n), false, acc);
	tir_end_for(k, acc, n);
	add_chunk(s, tir_for(k, rounds, all, strips_int(s, 1), acc, n), true, acc);
	tir_end_for(k, acc, n);
}

/* --- the kernel --- */

static void
place_threads(Strips *s)
{
	TirKernel *k = s->l.tir;
	s->thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	s->warp = raster_divide(k, s->thread, strips_int(s, TIR_WARP), &s->lane);
	s->lane_row = raster_divide(k, s->lane, strips_int(s, 4), &s->quad);
	s->across = raster_divide(k, s->warp, strips_int(s, strips_depth(s)), &s->down);
}

static void
bind_sides(Strips *s, const Product *p, const KernelPlan *plan)
{
	for (unsigned n = 0; n < 2; n++) {
		s->side[n] = p->side[n];
		s->side[n].reads.stand_in = n * EARLY_READS;
		s->side[n].once = n == 0;
		s->side[n].rows = n ? plan->block_rows / WARP_MMA_COLUMNS : STRIPS_ROWS;
		strip_factor_declare(s, &s->side[n]);
	}
	s->scales = p->scales;
	for (unsigned n = 0; n < s->scales.n; n++)
		point_declare(&s->l, s->scales.at[n]);
	s->nibbles = strip_factor_has_nibbles(s->l.g, &s->side[0]);
	s->tiles = STRIPS_ROWS / 2;
	s->few_tiles = plan->block_rows / WARP_MMA_COLUMNS;
	s->terms = plan->block_terms / 4;
}

void
contract_strips_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o)
{
	Strips *s = ARENA_NEW(scratch, Strips);
	Product *p = ARENA_NEW(scratch, Product);
	Point *l = &s->l;
	TirKernel *k = kernel->tir;
	TensorId t = kernel->plan.node[0];
	ValId acc[STRIPS_MOST_SUMS];
	s->plan = &kernel->plan;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_product(g, scratch, places->faulty, t, p))
		bug(g->arena, "%%%u is no contraction for strips", t);
	s->term_axis = l->node->npar;
	bind_sides(s, p, s->plan);
	count_tasks(s, kernel, roles_would(g, scratch, places->faulty, t, o, p));
	for (unsigned a = 0; a < l->node->npar; a++) /* before the first region that wants one */
		point_launch_expr(l, g->tensor.at[t].extent[a]);
	point_launch_expr(l, s->nterm);
	place_threads(s);
	point_say_same_memory(l);
	strips_bind_staged(s);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	enter_task(s, tir_for(k, lo, hi, strips_int(s, 1), NULL, 0));
	add_terms(s, acc);
	strips_finish(s, acc);
	tir_end_for(k, NULL, 0);
}
