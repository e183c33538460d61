/* tir_interp_decode.c: flattens a kernel into steps.
 *
 * FOR and IF own slots for their results. A loop keeps its carried values there between iterations:
 * the initial values are moved in by STEP_FOR, from there to the block arguments by STEP_HEAD, and
 * the yielded ones back by STEP_NEXT, so that a yielded block argument is read before it is written.
 * RESULT is an alias. VIEW is nothing but its operands' slots, which stand unchanged from the view to
 * every access it dominates. */
#include <string.h>

#include "ir/tir_inside.h"
#include "ir/tir_interp.h"
#include "ir/tir_slot.h"

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	StepProgram *out;
	uint32_t *home;  /* by ValId: the first slot; FOR and IF: of the results */
	uint32_t *patch; /* by ValId of FOR and IF: the step whose target is still open */
} Decode;

static uint32_t
slots_of(const TirKernel *k, ValId v)
{
	unsigned lanes = tir_inst(k, v)->type.lanes;
	return lanes ? lanes : 1;
}

static uint32_t
new_slots(Decode *d, uint32_t n)
{
	uint32_t first = d->out->nslot;
	if (n > UINT32_MAX - first)
		arena_unwind(d->scratch, UNWIND_LIMIT, "a kernel of more than 2^32 lanes");
	d->out->nslot = first + n;
	return first;
}

static Step *
add_step(Decode *d, StepKind kind, ValId v)
{
	Step s = {.kind = (uint8_t)kind, .inst = v};
	vec_push(d->scratch, &d->out->step, s);
	return &d->out->step.at[d->out->step.n - 1];
}

/* A step that computes v from its operands. */
static Step *
add_value(Decode *d, StepKind kind, ValId v)
{
	const TirInst *p = tir_inst(d->k, v);
	Step *s = add_step(d, kind, v);
	d->home[v] = new_slots(d, slots_of(d->k, v));
	s->dst = d->home[v];
	s->lanes = slots_of(d->k, v);
	s->dtype = p->type.dtype;
	for (unsigned n = 0; n < p->narg && n < 3; n++)
		s->src[n] = d->home[tir_arg(d->k, v, n)];
	if (p->narg)
		s->from = tir_inst(d->k, tir_arg(d->k, v, 0))->type.dtype;
	return s;
}

static void
add_lanes(Decode *d, ValId v)
{
	Step *s = add_value(d, STEP_LANES, v);
	Op op = (Op)tir_inst(d->k, v)->op;
	s->fn = lane_function(op, (DType)s->from);
	if (!s->fn)
		bug(d->scratch, "tir_interpret: no %s on %s", op_info[op].text, dtype_info[s->from].text);
}

/* The lanes of each operand that stay. */
static void
add_slide(Decode *d, ValId v)
{
	int64_t imm = tir_inst(d->k, v)->imm.i;
	uint32_t by = TIR_SLIDE_BY(imm), n = slots_of(d->k, v), m = TIR_SLIDE_SEGMENT(imm) ? TIR_SLIDE_SEGMENT(imm) : n;
	uint32_t a = d->home[tir_arg(d->k, v, 0)], b = d->home[tir_arg(d->k, v, 1)];
	d->home[v] = new_slots(d, n);
	for (uint32_t s = 0; s < n; s += m) {
		Step *low = add_step(d, STEP_COPY, v);
		*low = (Step){.kind = STEP_COPY, .inst = v, .dst = d->home[v] + s, .lanes = m - by, .src = {a + s + by}};
		Step *high = add_step(d, STEP_COPY, v);
		*high = (Step){.kind = STEP_COPY, .inst = v, .dst = d->home[v] + s + m - by, .lanes = by, .src = {b + s}};
	}
}

/* Lanes of its operands, by a number of the instruction, or of as many lanes as the first has. */
static void
add_moved(Decode *d, ValId v)
{
	const TirInst *p = tir_inst(d->k, v);
	Step *s = add_value(d, p->op == OP_HALF ? STEP_HALF : p->op == OP_WEAVE ? STEP_WEAVE : p->op == OP_PICK ? STEP_PICK : STEP_ANY, v);
	s->src[2] = p->op == OP_HALF || p->op == OP_WEAVE ? (uint32_t)p->imm.i : slots_of(d->k, tir_arg(d->k, v, 0));
}

/* The scalars that v takes, side by side from slot `to` on. */
static void
copy_operands(Decode *d, ValId v, uint32_t to)
{
	for (uint32_t l = 0; l < tir_inst(d->k, v)->narg; l++) {
		Step *s = add_step(d, STEP_COPY, v);
		*s = (Step){.kind = STEP_COPY, .inst = v, .dst = to + l, .lanes = 1, .src = {d->home[tir_arg(d->k, v, l)]}};
	}
}

static void
add_join(Decode *d, ValId v)
{
	d->home[v] = new_slots(d, tir_inst(d->k, v)->narg);
	copy_operands(d, v, d->home[v]);
}

static void
add_warp_mma(Decode *d, ValId v)
{
	uint32_t operands = new_slots(d, tir_inst(d->k, v)->narg);
	copy_operands(d, v, operands);
	add_value(d, STEP_WARP_MMA, v)->src[0] = operands;
}

static void
add_access(Decode *d, StepKind kind, ValId v)
{
	const TirInst *p = tir_inst(d->k, v);
	ValId view = tir_arg(d->k, v, 0);
	const TirInst *w = tir_inst(d->k, view);
	unsigned rank = (unsigned)w->imm.i, first = kind == STEP_STORE ? 2 : 1;
	ValId value = kind == STEP_STORE ? tir_arg(d->k, v, 1) : v;
	if (kind == STEP_LOAD)
		d->home[v] = new_slots(d, slots_of(d->k, v));
	StepAccess a = {.rank = (uint8_t)rank, .dtype = w->type.dtype, .value = d->home[value]};
	a.buffer = (uint32_t)tir_inst(d->k, tir_arg(d->k, view, 0))->imm.i;
	if (p->imm.i & TIR_MASKED)
		a.mask = d->home[tir_arg(d->k, v, first + rank)];
	for (unsigned n = 0; n < rank; n++) {
		ValId index = tir_arg(d->k, v, first + n);
		a.axis[n] = (StepAxis){.extent = d->home[tir_arg(d->k, view, 1 + n)],
		                       .stride = d->home[tir_arg(d->k, view, 1 + rank + n)],
		                       .index = d->home[index],
		                       .each_lane = tir_inst(d->k, index)->type.lanes != 0,
		                       .along = TIR_LANE_AXIS(p->imm.i) == (int)n};
	}
	vec_push(d->scratch, &d->out->access, a);
	Step *s = add_step(d, kind, v);
	s->lanes = slots_of(d->k, value);
	s->access = d->out->access.n - 1;
}

/* Operand n of a DOT, its leading indices from operand `at` on; the inner ones get slots. */
static void
add_matrix(Decode *d, ValId v, unsigned n, unsigned inner, unsigned *at)
{
	ValId view = tir_arg(d->k, v, n);
	unsigned rank = (unsigned)tir_inst(d->k, view)->imm.i;
	StepAccess a = {.rank = (uint8_t)rank, .dtype = tir_inst(d->k, view)->type.dtype};
	a.buffer = (uint32_t)tir_inst(d->k, tir_arg(d->k, view, 0))->imm.i;
	for (unsigned k = 0; k < rank; k++)
		a.axis[k] = (StepAxis){.extent = d->home[tir_arg(d->k, view, 1 + k)],
		                       .stride = d->home[tir_arg(d->k, view, 1 + rank + k)],
		                       .index = k + inner < rank ? d->home[tir_arg(d->k, v, (*at)++)] : new_slots(d, 1)};
	vec_push(d->scratch, &d->out->access, a);
}

static void
add_dot(Decode *d, ValId v)
{
	unsigned at = 4;
	Step *s = add_step(d, STEP_DOT, v);
	s->access = d->out->access.n;
	s->src[0] = d->home[tir_arg(d->k, v, 3)];
	add_matrix(d, v, 0, 2, &at);
	add_matrix(d, v, 1, 3, &at);
	add_matrix(d, v, 2, 3, &at);
}

/* Of operand n, a view, with an index for each axis from operand `at` on. */
static void
add_row(Decode *d, ValId v, unsigned n, unsigned at)
{
	ValId view = tir_arg(d->k, v, n);
	unsigned rank = (unsigned)tir_inst(d->k, view)->imm.i;
	StepAccess a = {.rank = (uint8_t)rank, .dtype = tir_inst(d->k, view)->type.dtype};
	a.buffer = (uint32_t)tir_inst(d->k, tir_arg(d->k, view, 0))->imm.i;
	for (unsigned k = 0; k < rank; k++)
		a.axis[k] = (StepAxis){.extent = d->home[tir_arg(d->k, view, 1 + k)],
		                       .stride = d->home[tir_arg(d->k, view, 1 + rank + k)],
		                       .index = d->home[tir_arg(d->k, v, at + k)],
		                       .along = k + 1 == rank};
	vec_push(d->scratch, &d->out->access, a);
}

static void
decode_meanwhile(Decode *d, ValId v)
{
	Op op = (Op)tir_inst(d->k, v)->op;
	Step *s = add_value(d, op == OP_LOAD_MATRIX ? STEP_LOAD_MATRIX : op == OP_STORE_MATRIX ? STEP_STORE_MATRIX : op == OP_ASYNC_COPY ? STEP_ASYNC_COPY : STEP_ASYNC_WAIT, v);
	s->access = d->out->access.n;
	if (op == OP_LOAD_MATRIX)
		add_row(d, v, 0, 1);
	if (op == OP_STORE_MATRIX) {
		s->src[0] = d->home[tir_arg(d->k, v, 1)];
		add_row(d, v, 0, 2);
	}
	if (op == OP_ASYNC_COPY) {
		add_row(d, v, 0, 3);
		add_row(d, v, 1, 3 + (unsigned)tir_inst(d->k, tir_arg(d->k, v, 0))->imm.i);
	}
}

/* What is copied: its axes begin at the indices. */
static void
add_box(Decode *d, ValId v)
{
	ValId view = tir_arg(d->k, v, 0);
	unsigned rank = (unsigned)tir_inst(d->k, view)->imm.i;
	StepAccess a = {.rank = (uint8_t)rank, .dtype = tir_inst(d->k, view)->type.dtype};
	a.buffer = (uint32_t)tir_inst(d->k, tir_arg(d->k, view, 0))->imm.i;
	for (unsigned n = 0; n < rank; n++) {
		ValId count = tir_box_count(d->k, v, n), step = tir_box_step(d->k, v, n);
		a.axis[n] = (StepAxis){.extent = d->home[tir_arg(d->k, view, 1 + n)],
		                       .stride = d->home[tir_arg(d->k, view, 1 + rank + n)],
		                       .index = d->home[tir_arg(d->k, v, 2 + n)],
		                       .count = count ? d->home[count] : 0,
		                       .step = step ? d->home[step] : 0};
	}
	vec_push(d->scratch, &d->out->access, a);
	Step *s = add_step(d, STEP_BOX, v);
	s->src[0] = d->home[tir_arg(d->k, v, 1)];
	s->src[1] = tir_copies_thirds(d->k, v) ? d->home[tir_arg(d->k, v, 2 + rank)] : 0;
	s->access = d->out->access.n - 1;
}

/* --- regions --- */

static void
begin_moves(Decode *d, Step *s)
{
	s->move = d->out->move.n;
}

static void
add_move(Decode *d, Step *s, uint32_t dst, uint32_t src, uint32_t lanes)
{
	vec_push(d->scratch, &d->out->move, ((StepMove){dst, src, lanes}));
	s->nmove++;
}

/* Moves operands [first, first + n) of v to where the results of owner lie. */
static void
move_to_results(Decode *d, Step *s, ValId v, unsigned first, ValId owner)
{
	const TirInst *p = tir_inst(d->k, v);
	uint32_t at = d->home[owner];
	begin_moves(d, s);
	for (unsigned n = first; n < p->narg; n++) {
		ValId x = tir_arg(d->k, v, n);
		add_move(d, s, at, d->home[x], slots_of(d->k, x));
		at += slots_of(d->k, x);
	}
}

static void
open_for(Decode *d, ValId v)
{
	const TirInst *p = tir_inst(d->k, v);
	uint32_t n = 0;
	for (unsigned i = 3; i < p->narg; i++)
		n += slots_of(d->k, tir_arg(d->k, v, i));
	d->home[v] = new_slots(d, n);
	const TirRegion *body = &d->k->region.at[p->region];
	uint32_t index = d->home[body->inst.at[0]] = new_slots(d, 1);
	Step *s = add_step(d, STEP_FOR, v);
	for (unsigned i = 0; i < 3; i++)
		s->src[i] = d->home[tir_arg(d->k, v, i)];
	s->dst = index;
	move_to_results(d, s, v, 3, v);
	d->patch[v] = d->out->step.n;
	s = add_step(d, STEP_HEAD, v);
	s->src[1] = d->home[tir_arg(d->k, v, 1)];
	s->dst = index;
	begin_moves(d, s);
	uint32_t at = d->home[v];
	for (unsigned i = 1; i + 2 < p->narg; i++) {
		ValId arg = body->inst.at[i];
		uint32_t lanes = slots_of(d->k, arg);
		d->home[arg] = new_slots(d, lanes);
		add_move(d, s, d->home[arg], at, lanes);
		at += lanes;
	}
}

static void
close_for(Decode *d, ValId v, ValId yield)
{
	Step *s = add_step(d, STEP_NEXT, v);
	s->dst = d->out->step.at[d->patch[v]].dst;
	s->src[2] = d->home[tir_arg(d->k, v, 2)];
	s->target = d->patch[v];
	move_to_results(d, s, yield, 0, v);
	d->out->step.at[d->patch[v]].target = d->out->step.n;
}

static void
open_roles(Decode *d, ValId v)
{
	d->patch[v] = d->out->step.n;
	add_step(d, STEP_ROLES, v);
}

static void
open_if(Decode *d, ValId v)
{
	uint32_t n = 0;
	for (unsigned i = 0; i < tir_nresult(d->k, v); i++)
		n += slots_of(d->k, tir_result_model(d->k, v, i));
	d->home[v] = new_slots(d, n);
	d->patch[v] = d->out->step.n;
	add_step(d, STEP_IF, v)->src[0] = d->home[tir_arg(d->k, v, 0)];
}

/* The end of `then` jumps over `else`, whose end jumps to what follows. */
static void
close_branch(Decode *d, ValId v, ValId yield, unsigned nth)
{
	Step *s = add_step(d, STEP_JUMP, v);
	move_to_results(d, s, yield, 0, v);
	if (nth) {
		s->target = d->out->step.at[d->patch[v]].target = d->out->step.n;
		return;
	}
	d->out->step.at[d->patch[v]].target = d->out->step.n;
	d->patch[v] = d->out->step.n - 1;
}

static void
decode_yield(Decode *d, ValId v, const WalkFrame *f)
{
	if (tir_inst(d->k, f->owner)->op == OP_FOR)
		close_for(d, f->owner, v);
	else
		close_branch(d, f->owner, v, f->nth);
}

static void
decode_result(Decode *d, ValId v)
{
	ValId owner = tir_arg(d->k, v, 0);
	d->home[v] = d->home[owner];
	for (unsigned i = 0; i < (unsigned)tir_inst(d->k, v)->imm.i; i++)
		d->home[v] += slots_of(d->k, tir_result_model(d->k, owner, i));
}

/* Which differs from thread to thread, or from block to block. */
static void
decode_number(Decode *d, ValId v)
{
	d->home[v] = new_slots(d, 1);
	if (tir_inst(d->k, v)->op == OP_RANK)
		vec_push(d->scratch, &d->out->rank, d->home[v]);
	else
		vec_push(d->scratch, &d->out->thread, d->home[v]);
}

/* Of ir/channel.h. */
static void
decode_role(Decode *d, ValId v)
{
	switch ((int)tir_inst(d->k, v)->op) {
	case OP_ACQUIRE: add_value(d, STEP_ACQUIRE, v); break;
	case OP_WAIT: add_value(d, STEP_WAIT, v); break;
	case OP_RELEASE: add_value(d, STEP_RELEASE, v); break;
	case OP_MMA: add_value(d, STEP_MMA, v); break;
	case OP_PRODUCT: add_value(d, STEP_PRODUCT, v); break;
	case OP_KEEP: add_value(d, STEP_KEEP, v); break;
	case OP_PUT: add_value(d, STEP_PUT, v); break;
	case OP_SETTLE: add_value(d, STEP_SETTLE, v); break;
	case OP_TURN: add_value(d, STEP_TURN, v); break;
	case OP_PIECE: add_value(d, STEP_PIECE, v); break;
	case OP_HELD: add_value(d, STEP_HELD, v); break;
	case OP_TAKE: add_value(d, STEP_TAKE, v); break;
	case OP_COPY: add_box(d, v); break;
	default: open_roles(d, v); break;
	}
}

static void
decode_inst(Decode *d, ValId v, const WalkFrame *f)
{
	const TirInst *p = tir_inst(d->k, v);
	switch ((Op)p->op) {
	case OP_CONST: case OP_IOTA: case OP_SCALAR: case OP_TASK_LO: case OP_TASK_HI: case OP_TASK_STEP:
		d->home[v] = new_slots(d, slots_of(d->k, v));
		return;
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_FDIV: case OP_IDIV: case OP_IMOD: case OP_POW:
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_MIN: case OP_MAX: case OP_FLOOR: case OP_CEIL:
	case OP_ROUND: case OP_TRUNC: case OP_SQRT: case OP_RSQRT: case OP_EXP: case OP_EXP2:
	case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_LOG1P: case OP_TANH: case OP_ERF: case OP_SIN:
	case OP_COS: case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_AND: case OP_OR: case OP_NOT:
	case OP_ISNAN: case OP_FMA: case OP_SCALE: case OP_EX2: case OP_RCP:
	case OP_LG2: case OP_NEAR_DIV: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL:
	case OP_SHL: case OP_SHR: case OP_BAND: case OP_BOR: case OP_BXOR:
		add_lanes(d, v);
		return;
	case OP_SELECT: case OP_CAST:
		add_value(d, p->op == OP_SELECT ? STEP_SELECT : STEP_CAST, v);
		return;
	case OP_BITCAST:
		add_value(d, tir_inst(d->k, tir_arg(d->k, v, 0))->type.lanes == p->type.lanes ? STEP_BITCAST : STEP_REGROUP,
		          v);
		return;
	case OP_SPLAT: case OP_SHUFFLE:
		add_value(d, p->op == OP_SPLAT ? STEP_SPLAT : STEP_SHUFFLE, v);
		return;
	case OP_LANE:
		add_value(d, STEP_COPY, v)->src[0] += (uint32_t)p->imm.i;
		return;
	case OP_SLIDE:
		add_slide(d, v);
		return;
	case OP_THREAD: case OP_RANK:
		decode_number(d, v);
		return;
	case OP_BARRIER:
		add_step(d, STEP_BARRIER, v);
		return;
	case OP_JOIN: case OP_WARP_MMA:
		(p->op == OP_JOIN ? add_join : add_warp_mma)(d, v);
		return;
	case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT:
		decode_meanwhile(d, v);
		return;
	case OP_HALF: case OP_WEAVE: case OP_PICK: case OP_ANY:
		add_moved(d, v);
		return;
	case OP_LOAD:
		add_access(d, STEP_LOAD, v);
		return;
	case OP_STORE:
		add_access(d, STEP_STORE, v);
		return;
	case OP_DOT:
		add_dot(d, v);
		return;
	case OP_ACQUIRE: case OP_COPY: case OP_WAIT: case OP_RELEASE: case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_TURN: case OP_PIECE: case OP_HELD: case OP_TAKE: case OP_ROLES:
		decode_role(d, v);
		return;
	case OP_FAULT:
		add_value(d, STEP_FAULT, v)->lanes = slots_of(d->k, tir_arg(d->k, v, 0));
		return;
	case OP_FOR:
		open_for(d, v);
		return;
	case OP_IF:
		open_if(d, v);
		return;
	case OP_YIELD:
		decode_yield(d, v, f);
		return;
	case OP_RESULT:
		decode_result(d, v);
		return;
	case OP_BUFFER: case OP_VIEW: case OP_BLOCKARG: case OP_FETCH:
		return;
	case OP_NONE: case OP_IVAR: case OP_AXIS: case OP_DIM: case OP_ACC: case OP_TOUCHED: case OP_READ:
	case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ: case OP_ROOT: case OP_RAND: case OP_RANDN:
		break;
	}
	bug(d->scratch, "tir_interpret: %s", op_info[p->op].text);
}

/* --- what does not change --- */

static uint64_t
const_slot(const TirInst *p)
{
	DType t = (DType)p->type.dtype;
	return dtype_is_float(t) ? slot_encode(t, p->imm.f) : (uint64_t)p->imm.i;
}

static void
fill_leaf(Decode *d, ValId v, const TirRun *run)
{
	const TirInst *p = tir_inst(d->k, v);
	uint64_t *slot = d->out->slot + d->home[v];
	if (p->op == OP_SCALAR)
		*slot = slot_load((DType)p->type.dtype, run->scalar[p->imm.i], 0);
	else if (p->op == OP_TASK_STEP)
		*slot = (uint64_t)(run->task_step > 0 ? run->task_step : 1);
	else if (p->op == OP_TASK_LO || p->op == OP_TASK_HI)
		*slot = (uint64_t)(p->op == OP_TASK_LO ? run->task_lo : run->task_hi);
	else if (p->op == OP_CONST || p->op == OP_IOTA)
		for (unsigned l = 0; l < slots_of(d->k, v); l++)
			slot[l] = p->op != OP_IOTA ? const_slot(p) : p->imm.i ? l & ~(uint64_t)(p->imm.i - 1) : l;
}

void
interp_decode(const TirKernel *k, Arena *scratch, const TirRun *run, StepProgram *out)
{
	*out = (StepProgram){.nslot = 1};
	Decode d = {.k = k, .scratch = scratch, .out = out};
	d.home = ARENA_ARRAY(scratch, uint32_t, k->inst.n);
	d.patch = ARENA_ARRAY(scratch, uint32_t, k->inst.n);
	Walk w;
	walk_init(&w, k, scratch);
	for (WalkEvent e; (e = walk_next(&w)) != WALK_END;)
		if (e == WALK_INST)
			decode_inst(&d, w.value, &w.frame.at[w.frame.n - 1]);
	add_step(&d, STEP_END, 0);
	out->slot = ARENA_ARRAY(scratch, uint64_t, out->nslot);
	for (ValId v = 1; v < k->inst.n; v++)
		if (d.home[v])
			fill_leaf(&d, v, run);
}
