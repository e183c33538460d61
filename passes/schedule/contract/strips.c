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
 * Weights of 4 and of 8 bits along the terms, which are an access or less to each lane, come through a ring in shared memory instead
 * where the GPU has roles (strips_ring.c).
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
	SLOTS = 8,          /* warps whose sums there is room for */
	LEAST_LONG = 64,
	LEAST_TERMS = 128,
	TERM_BITS = 30      /* of an index, so that a chunk beyond the last one has 32 bits too */
};

/* --- whether --- */

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
most_few(const Graph *g, const StripProduct *p)
{
	return expr_get(g, p->side[0].value)->op == OP_READ && !p->scales.n ? MORE : FEW;
}

/* Whether the long side has elements of 4 bits, and nothing is done with them but to widen them: then registers suffice for twice the
 * threads, and with as many of them at work the time is less (an H200, us, 16 rows of 8192 terms by 8192 columns: 22.8 and 35.5, by
 * 65536 134 and 203). */
static bool
widens_nibbles(const Graph *g, const StripProduct *p)
{
	const Expr *value = expr_get(g, p->side[0].value);
	return !p->scales.n && value->op == OP_CAST && expr_get(g, expr_arg(g, p->side[0].value, 0))->op == OP_READ &&
	       strip_factor_has_nibbles(g, &p->side[0]);
}

/* The long side's factor: of 16 bits itself, or by scales. */
static bool
find_long(const Graph *g, Arena *scratch, const Node *n, DType t, unsigned axis, StripProduct *p)
{
	p->scales = (StripScales){0};
	ExprId value = p->nlong == 1 && contract_narrow_type(g, p->of_long[0]) == t ? expr_arg(g, p->of_long[0], 0) : 0;
	if (!value && strip_scales_find(g, scratch, p->of_long, p->nlong, n->npar, t, &p->scales))
		value = p->scales.exact;
	return value && strip_factor_find(g, scratch, n, value, t, axis, true, &p->side[0]);
}

/* x[m, k] * q[n, k] * s[n, k div 32], in whatever order: one factor has an axis that the others have not, and they one that it
 * has not. */
static bool
find_apart(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, StripProduct *p)
{
	const Node *n = tensor_node(g, t);
	uint32_t par = ((uint32_t)1 << n->npar) - 1, axes[STRIPS_FACTORS];
	ExprId at[STRIPS_FACTORS];
	unsigned all = 0;
	if (!contract_is_plain_sum(g, scratch, faulty, t) || !strip_factors_list(g, n->body, at, &all))
		return false;
	for (unsigned k = 0; k < all; k++)
		axes[k] = expr_axes(g, scratch, at[k]) & par;
	for (unsigned few = 0; few < all; few++) {
		uint32_t others = 0;
		p->nlong = 0;
		for (unsigned k = 0; k < all; k++)
			if (k != few) {
				others |= axes[k];
				p->of_long[p->nlong++] = at[k];
			}
		uint32_t own = axes[few] & ~others, of_others = others & ~axes[few];
		if (!own || own & (own - 1) || !of_others || of_others & (of_others - 1) || contract_narrow_type(g, at[few]) == DT_NONE)
			continue;
		p->f = own < of_others ? (Factors){.row = at[few], .row_axes = own, .column_axes = of_others}
		                       : (Factors){.column = at[few], .column_axes = own, .row_axes = of_others};
		return true;
	}
	return false;
}

/* Whether lanes read both factors where they are, of so many. */
static bool
is_direct(const Graph *g, const Node *n, const StripProduct *p)
{
	return (!p->scales.n || p->scales.group >= STRIPS_GROUP) && may_be_few(g, n, p->side[1].own_axis, most_few(g, p));
}

/* With the few as columns of the output, or as rows. */
static bool
find_sides(const Graph *g, Arena *scratch, const Node *n, const PassOptions *o, bool few_columns, StripProduct *p)
{
	unsigned row = (unsigned)__builtin_ctz(p->f.row_axes), column = (unsigned)__builtin_ctz(p->f.column_axes);
	ExprId of_long = few_columns ? p->f.row : p->f.column, of_few = few_columns ? p->f.column : p->f.row;
	unsigned axis = few_columns ? row : column, few = few_columns ? column : row;
	DType type = contract_narrow_type(g, of_few);
	if (of_long) /* else its factors stand apart */
		p->nlong = 0;
	p->few_columns = few_columns;
	if (type == DT_NONE || (of_long && !strip_factors_list(g, of_long, p->of_long, &p->nlong)))
		return false;
	strip_factor_find(g, scratch, n, expr_arg(g, of_few, 0), type, few, false, &p->side[1]); /* few are not worth groups of their own */
	return find_long(g, scratch, n, type, axis, p) && (is_direct(g, n, p) || strips_ring_could(g, n, o, p));
}

static bool
find_product(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, StripProduct *p)
{
	const Node *n = tensor_node(g, t);
	if (!contract_is_plain(g, scratch, faulty, t, &p->f))
		return find_apart(g, scratch, faulty, t, p) && find_sides(g, scratch, n, o, p->f.column != 0, p);
	unsigned row = (unsigned)__builtin_ctz(p->f.row_axes), column = (unsigned)__builtin_ctz(p->f.column_axes);
	bool few_columns = is_few(g, n, column, MORE) && !is_few(g, n, row, MORE);
	return find_sides(g, scratch, n, o, few_columns, p) || (find_sides(g, scratch, n, o, !few_columns, p) && strips_ring_could(g, n, o, p));
}

/* Terms of a lane, of a chunk, which has scales in common. */
static unsigned
lane_terms(const Graph *g, const StripProduct *p)
{
	unsigned most = p->scales.n ? STRIPS_GROUP / 4 : STRIPS_MOST_TERMS, terms = strip_factor_terms(g, &p->side[0]);
	return terms < most ? terms : most;
}

static bool
could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, StripProduct *p)
{
	const Node *n = tensor_node(g, t);
	return o->warp_mma && o->blocks && g->fp != FP_STRICT && contract_is_sum_of_products(g, t) &&
	       !(n->finish && expr_can_fault(g, scratch, faulty, n->finish)) && find_product(g, scratch, faulty, t, o, p);
}

bool
contract_strips_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	StripProduct *p = ARENA_NEW(scratch, StripProduct);
	return could(g, scratch, faulty, t, o, p);
}

ExprId
contract_strips_long(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o)
{
	StripProduct *p = ARENA_NEW(scratch, StripProduct);
	if (!could(g, scratch, faulty, t, o, p) || !is_few(g, tensor_node(g, t), p->side[1].own_axis, most_few(g, p)))
		return 0;
	return p->few_columns ? p->f.row : p->f.column; /* 0: it is no one factor */
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
roles_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, const StripProduct *p)
{
	return !p->few_columns && contract_roles_could(g, scratch, faulty, t, o);
}

unsigned
contract_strips_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan)
{
	StripProduct *p = ARENA_NEW(scratch, StripProduct);
	if (places->faulty[t] || !could(g, scratch, places->faulty, t, o, p))
		return 0;
	Overlap overlap = {.g = g, .places = places, .out = places_memory(g, places, t)};
	expr_walk(g, scratch, tensor_node(g, t)->body, note_overlap, &overlap);
	if (overlap.found)
		return 0;
	const Node *node = tensor_node(g, t);
	unsigned most = most_few(g, p), n = strips_ring_could(g, node, o, p) ? strips_ring_take(g, scratch, t, p, plan) : 0;
	bool direct = is_direct(g, node, p) && !(n && strips_ring_takes_any(g, p));
	for (unsigned few = FEW; direct && few <= most; few += MORE - FEW) {
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

ExprId
strips_are_more(Graph *g, ExprId e, ExprId than)
{
	ExprId more = expr_binary(g, OP_MAX, expr_binary(g, OP_SUB, e, than), expr_int(g, DT_I64, 0));
	return expr_binary(g, OP_MIN, more, expr_int(g, DT_I64, 1));
}

ExprId
strips_are_multiple(Graph *g, ExprId e, int64_t of)
{
	ExprId one = expr_int(g, DT_I64, 1), rest = expr_binary(g, OP_IMOD, e, expr_int(g, DT_I64, of));
	return expr_binary(g, OP_SUB, one, expr_binary(g, OP_MIN, one, rest));
}

/* Tiles of the few: where factors are read where they are, all of them are one. */
static ExprId
few_count(Strips *s)
{
	return s->ring ? launch_ceil_div(s->l.g, s->nfew, s->plan->block_rows) : expr_int(s->l.g, DT_I64, 1);
}

ExprId
strips_count(Strips *s)
{
	Graph *g = s->l.g;
	const Node *n = s->l.node;
	const Tensor out = g->tensor.at[n->out];
	ExprId strips = launch_ceil_div(g, s->nlong, s->plan->block_columns);
	strips = expr_binary(g, OP_MUL, strips, few_count(s));
	for (unsigned a = 0; a < n->npar; a++)
		if (a != s->side[0].own_axis && a != s->side[1].own_axis)
			strips = expr_binary(g, OP_MUL, strips, out.extent[a]);
	return strips;
}

void
strips_launch(Strips *s)
{
	Point *l = &s->l;
	for (unsigned a = 0; a < l->node->npar; a++)
		point_launch_expr(l, l->g->tensor.at[l->node->out].extent[a]);
	point_launch_expr(l, s->nterm);
	point_launch_expr(l, launch_ceil_div(l->g, s->nlong, s->plan->block_columns));
	point_launch_expr(l, few_count(s));
}

ExprId
strips_suit(Strips *s)
{
	Graph *g = s->l.g;
	ExprId worth = expr_binary(g, OP_MUL, raster_reaches(g, s->nlong, LEAST_LONG), raster_reaches(g, s->nterm, LEAST_TERMS));
	if (!s->ring || s->plan->block_rows == FEW)
		worth = expr_binary(g, OP_MUL, worth, unless_reaches(g, s->nfew, s->plan->block_rows + 1));
	return expr_binary(g, OP_MUL, worth, unless_reaches(g, s->nterm, INT64_C(1) << TERM_BITS));
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
	ExprId strips = strips_count(s), worth = expr_binary(g, OP_MUL, strips_suit(s), strips_are_multiple(g, s->nterm, s->terms));
	if (roles) {
		ExprId one = expr_int(g, DT_I64, 1), one_wave = expr_binary(g, OP_SUB, one, strips_are_more(g, strips, gpu_fact(g, GPU_PROCESSORS)));
		ExprId sectors = strips_are_multiple(g, s->side[0].along_terms ? s->nterm : s->nlong, SECTOR);
		if (s->plan->block_rows == FEW)
			sectors = expr_binary(g, OP_MUL, sectors, expr_binary(g, OP_MUL, raster_reaches(g, s->nfew, FEW / 2 + 1), one_wave));
		worth = expr_binary(g, OP_MUL, worth, expr_binary(g, OP_SUB, one, sectors));
	}
	if (!s->side[0].along_terms)
		worth = expr_binary(g, OP_MUL, worth, strips_are_multiple(g, s->nlong, STRIPS_ROWS));
	if (s->plan->resident == TWICE)
		worth = expr_binary(g, OP_MUL, worth, strips_are_more(g, strips, gpu_fact(g, GPU_PROCESSORS)));
	kernel->ntask = expr_binary(g, OP_MUL, strips, worth);
}

/* --- a task --- */

void
strips_place_task(Strips *s, ValId task)
{
	Point *l = &s->l;
	const Node *n = l->node;
	ValId strips = point_launch_expr(l, launch_ceil_div(l->g, s->nlong, s->plan->block_columns)), strip;
	s->few0 = strips_int(s, 0);
	if (s->ring) {
		task = raster_divide(l->tir, task, point_launch_expr(l, few_count(s)), &s->few0);
		s->few0 = strips_op(s, OP_MUL, s->few0, strips_int(s, BUG(strip_few_first) ? 0 : s->plan->block_rows));
	}
	ValId batch = raster_divide(l->tir, task, strips, &strip);
	for (unsigned a = n->npar; a-- > 0;)
		if (a != s->side[0].own_axis && a != s->side[1].own_axis)
			batch = raster_divide(l->tir, batch, point_launch_expr(l, l->g->tensor.at[n->out].extent[a]), &l->axis[a]);
	s->first = strips_op(s, OP_MUL, strip, strips_int(s, s->plan->block_columns));
}

void
strips_enter_task(Strips *s, ValId task)
{
	strips_place_task(s, task);
	strip_factor_enter(s, &s->side[0], strips_op(s, OP_ADD, s->first, strips_op(s, OP_MUL, s->across, strips_int(s, STRIP))), s->nlong);
	strip_factor_enter(s, &s->side[1], s->few0, s->nfew);
}

/* Of the few, what an instruction takes, by tile. */
typedef struct {
	ValId at[STRIPS_MOST_FEW_TILES][WARP_MMA_B];
} FewTerms;

/* The terms of a lane that instruction `part` of a chunk takes, by their places in it: pairs of two, one behind the other or,
 * where those of a word are half of it apart, in the halves of one. */
static unsigned
term_of(const Strips *s, unsigned part, unsigned place)
{
	return s->nibbles ? part / 2 * 8 + part % 2 * 2 + place / 2 + place % 2 * 4 : part * 4 + place;
}

static void
add_tile(Strips *s, unsigned part, unsigned tile, ValId from, ValId there, const FewTerms *few, ValId *acc)
{
	TirKernel *k = s->l.tir;
	ValId arg[WARP_MMA_OPERANDS];
	for (unsigned e = 0; e < WARP_MMA_A; e++)
		arg[e] = strip_factor_element(s, &s->side[0], 2 * tile + e / 2 % 2, term_of(s, part, e / 4 * 2 + e % 2), from, there);
	for (unsigned t = 0; t < s->few_tiles; t++) {
		ValId *sum = acc + t * WARP_MMA_C;
		for (unsigned e = 0; e < WARP_MMA_B; e++)
			arg[WARP_MMA_A + e] = few->at[t][e];
		for (unsigned e = 0; e < WARP_MMA_C; e++)
			arg[WARP_MMA_A + WARP_MMA_B + e] = sum[e];
		ValId all = tir_emit(k, OP_WARP_MMA, tir_vector(DT_F32, WARP_MMA_C), 0, arg, WARP_MMA_OPERANDS);
		for (unsigned e = 0; e < WARP_MMA_C; e++)
			sum[e] = tir_emit(k, OP_LANE, tir_scalar(DT_F32), e, &all, 1);
	}
}

static void
read_few(Strips *s, unsigned part, ValId from, ValId there, FewTerms *few)
{
	if (s->ring && part % 2 == 0)
		strip_factor_read_word(s, &s->side[1], part / 2, from);
	for (unsigned t = 0; t < s->few_tiles; t++)
		for (unsigned e = 0; e < WARP_MMA_B; e++)
			few->at[t][e] = strip_factor_element(s, &s->side[1], t, term_of(s, part, e), from, there);
}

/* What was read of the chunk, whose lane's terms begin at `from`, multiplied and added to the sums. */
static void
multiply(Strips *s, ValId from, ValId there, ValId *acc)
{
	for (unsigned part = 0; part < s->terms / 4; part++) {
		FewTerms few;
		read_few(s, part, from, there, &few);
		for (unsigned tile = 0; tile < s->tiles; tile++)
			add_tile(s, part, tile, from, there, &few, acc + tile * s->few_tiles * WARP_MMA_C);
	}
}

/* The same, where a chunk's sums are multiplied by its scales: tile by tile, so that few registers have sums of a chunk. */
static void
multiply_by_scales(Strips *s, ValId from, ValId there, const ValId *scale, ValId some, ValId *acc)
{
	FewTerms few[STRIPS_MOST_TERMS / 4];
	unsigned n = s->few_tiles * WARP_MMA_C;
	for (unsigned part = 0; part < s->terms / 4; part++)
		read_few(s, part, from, there, &few[part]);
	for (unsigned tile = 0; tile < s->tiles; tile++) {
		ValId sums[STRIPS_MOST_FEW_TILES * WARP_MMA_C];
		for (unsigned i = 0; i < n; i++)
			sums[i] = tir_float(s->l.tir, DT_F32, 0);
		for (unsigned part = 0; part < s->terms / 4; part++)
			add_tile(s, part, tile, from, there, &few[part], sums);
		strip_scales_add(s, scale + 2 * tile, sums, some, acc + tile * n);
	}
}

void
strips_multiply(Strips *s, ValId from, ValId there, const ValId *scale, ValId some, ValId *acc)
{
	if (s->scales.n)
		multiply_by_scales(s, from, there, scale, some, acc);
	else
		multiply(s, from, there, acc);
}

/* The warp's chunk of this round; masked: it may have fewer terms, or none. */
static void
add_chunk(Strips *s, ValId round, bool masked, ValId *acc)
{
	TirKernel *k = s->l.tir;
	ValId zero = strips_int(s, 0), end = point_launch_expr(&s->l, s->nterm), scale[STRIPS_ROWS], there = 0, some = 0;
	ValId chunk = strips_op(s, OP_ADD, strips_op(s, OP_MUL, round, strips_int(s, s->depth)), s->down);
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
	strips_multiply(s, from, there, scale, some, acc);
}

/* All terms, added to the warp's sums: whole rounds of chunks, and what is left. */
static void
add_terms(Strips *s, ValId *acc)
{
	Graph *g = s->l.g;
	TirKernel *k = s->l.tir;
	unsigned n = s->tiles * s->few_tiles * WARP_MMA_C;
	int64_t each = (int64_t)s->depth * s->plan->block_terms;
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
	s->across = raster_divide(k, s->warp, strips_int(s, s->depth), &s->down);
	s->finisher = s->thread;
	s->long_row = s->lane_row;
}

/* What all kernels of strips have of the product, whose node is at the point. */
static void
bind_sides(Strips *s, const StripProduct *p, const KernelPlan *plan)
{
	for (unsigned n = 0; n < 2; n++) {
		s->side[n] = p->side[n];
		s->side[n].reads.stand_in = n * EARLY_READS;
		s->side[n].once = n == 0;
		s->side[n].rows = n ? plan->block_rows / WARP_MMA_COLUMNS : STRIPS_ROWS;
		strip_factor_declare(s, &s->side[n]);
	}
	s->scales = p->scales;
	strip_scales_declare(s);
	s->nibbles = strip_factor_has_nibbles(s->l.g, &s->side[0]);
	s->tiles = STRIPS_ROWS / 2;
	s->few_tiles = plan->block_rows / WARP_MMA_COLUMNS;
	s->terms = plan->group;
	const Tensor out = s->l.g->tensor.at[s->l.node->out];
	s->term_axis = s->l.node->npar;
	s->nlong = out.extent[s->side[0].own_axis];
	s->nfew = out.extent[s->side[1].own_axis];
	s->nterm = s->l.node->axis[s->term_axis].hi;
}

static void
bind_warps(Strips *s, const KernelPlan *plan)
{
	s->width = plan->block_columns / STRIP;
	s->depth = plan->threads / (unsigned)TIR_WARP / s->width;
	s->room = SLOTS;
	s->blocks = 1;
	s->together = plan->block_columns;
	s->finishers = plan->threads;
}

void
contract_strips_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o)
{
	Strips *s = ARENA_NEW(scratch, Strips);
	StripProduct *p = ARENA_NEW(scratch, StripProduct);
	Point *l = &s->l;
	TirKernel *k = kernel->tir;
	TensorId t = kernel->plan.node[0];
	ValId acc[STRIPS_MOST_SUMS];
	s->plan = &kernel->plan;
	point_begin(l, g, scratch, places, kernel);
	l->unit = true;
	point_declare_node(l, t);
	point_enter_node(l, t);
	if (!find_product(g, scratch, places->faulty, t, o, p))
		bug(g->arena, "%%%u is no contraction for strips", t);
	bind_sides(s, p, s->plan);
	if (strips_have_ring(s->plan)) {
		strips_ring_build(s, kernel, p);
		return;
	}
	bind_warps(s, s->plan);
	count_tasks(s, kernel, roles_would(g, scratch, places->faulty, t, o, p));
	strips_launch(s);
	place_threads(s);
	point_say_same_memory(l);
	strips_bind_staged(s);
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0), hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	strips_enter_task(s, tir_for(k, lo, hi, strips_int(s, 1), NULL, 0));
	add_terms(s, acc);
	strips_finish(s, acc);
	tir_end_for(k, NULL, 0);
}
