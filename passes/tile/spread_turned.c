/* spread_turned.c: loads and stores of lanes that begin anywhere (TirKernel.anywhere), by warps (spread.c).
 *
 * A thread's lanes side by side would be accessed one at a time, each far from those of the threads beside it: a store of 4 bytes
 * takes as long as one of 32. So a warp's threads access its lanes in turns, as they lie in memory, and hand them to those whose
 * they are through shared memory, where a thread has a row with a gap of 16 bytes behind it, so that rows begin in different
 * banks. Threads of a warp wait for one another alone.
 *
 * What is loaded is handed over where more than computing wants it, so that all loads before are on their way together; what is
 * computed of it waits as well (spread.c). */
#include "passes/tile/spread.h"

#include "ir/bugs.h"

enum { GAP_BYTES = 16, MASK_DEPTH = 6, CONSTANT_DEPTH = 4 };

/* --- which --- */

/* Whether mask m can be made for another lane: of the lanes' numbers and scalars, by few operations. */
static bool
is_of_numbers(const TirKernel *k, ValId m, unsigned depth)
{
	const TirInst *p = tir_inst(k, m);
	if (!p->type.lanes || p->op == OP_CONST || p->op == OP_SPLAT)
		return true;
	if (p->op == OP_IOTA)
		return p->imm.i <= 1;
	bool all = depth > 0 && op_info[p->op].cls == CLASS_MAP && !(op_info[p->op].flags & F_EFFECT);
	for (unsigned n = 0; all && n < p->narg; n++)
		all = is_of_numbers(k, tir_arg(k, m, n), depth - 1);
	return all;
}

bool
spread_turns(const Spread *s, ValId v)
{
	const TirKernel *k = s->from;
	const TirInst *p = tir_inst(k, v);
	unsigned first = p->op == OP_STORE ? 2 : 1, lanes = tir_inst(k, p->op == OP_STORE ? tir_arg(k, v, 1) : v)->type.lanes;
	ValId view = tir_arg(k, v, 0);
	unsigned rank = (unsigned)tir_inst(k, view)->imm.i;
	const TirBuffer *b = &k->buffer.at[tir_inst(k, tir_arg(k, view, 0))->imm.i];
	int along = TIR_LANE_AXIS(p->imm.i);
	if (!k->anywhere || s->columns || s->blocks > 1 || along < 0 || b->shared || b->posted || b->dtype == DT_BOOL || dtype_info[b->dtype].bits < 8)
		return false;
	if (lanes < s->threads || spread_group(s, lanes) < 2 || spread_group(s, lanes) > TIR_WARP)
		return false;
	const TirInst *stride = tir_inst(k, tir_arg(k, view, 1 + rank + (unsigned)along));
	bool ok = stride->op == OP_CONST && stride->imm.i == 1;
	for (unsigned n = 0; n < rank; n++)
		ok = ok && !tir_inst(k, tir_arg(k, v, first + n))->type.lanes;
	return ok && (!(p->imm.i & TIR_MASKED) || is_of_numbers(k, tir_arg(k, v, first + rank), MASK_DEPTH));
}

/* --- a thread's turns --- */

/* A vector of an access: `group` lanes a thread, that many times. */
typedef struct {
	ValId v;
	unsigned lanes, group, parts, first; /* first: of its operands, the first index */
	DType dtype;
} Turned;

static Turned
turned(const Spread *s, ValId v)
{
	const TirInst *p = tir_inst(s->from, v);
	ValId value = p->op == OP_STORE ? tir_arg(s->from, v, 1) : v;
	Turned t = {.v = v, .lanes = tir_inst(s->from, value)->type.lanes, .first = p->op == OP_STORE ? 2 : 1};
	t.dtype = (DType)tir_inst(s->from, value)->type.dtype;
	t.group = spread_group(s, t.lanes);
	t.parts = spread_registers(s, t.lanes) / t.group;
	return t;
}

/* Of the thread in its warp, and of the first thread of that. */
static ValId
in_warp(Spread *s)
{
	return tir_binary(s->to, OP_IMOD, spread_thread(s), spread_int(s, TIR_WARP));
}

static ValId
before_warp(Spread *s)
{
	return tir_binary(s->to, OP_SUB, spread_thread(s), in_warp(s));
}

/* The scalar v without the constants that it adds up, which go to *known; 0: there is nothing else. */
static ValId
without_constants(Spread *s, ValId v, int64_t sign, unsigned depth, int64_t *known)
{
	const TirInst *p = tir_inst(s->to, v);
	if (p->op == OP_CONST) {
		*known += sign * p->imm.i;
		return 0;
	}
	if (!depth || (p->op != OP_ADD && p->op != OP_SUB))
		return v;
	Op op = (Op)p->op;
	ValId left = tir_arg(s->to, v, 0), right = tir_arg(s->to, v, 1), a = without_constants(s, left, sign, depth - 1, known);
	ValId b = without_constants(s, right, op == OP_SUB ? -sign : sign, depth - 1, known);
	if (a == left && b == right)
		return v;
	return !b ? a : a || op == OP_SUB ? tir_binary(s->to, op, a ? a : spread_int(s, 0), b) : b;
}

/* The lane that is this thread's r'th turn, as an integer of type t, which is added to `from` if that is not 0: constants come last,
 * so that addresses have all else in common. */
static ValId
turn_number(Spread *s, const Turned *x, ValId from, unsigned r, DType t)
{
	TirKernel *k = s->to;
	int64_t more = r / x->group * s->threads * x->group + r % x->group * TIR_WARP;
	ValId first = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, before_warp(s), spread_int(s, x->group)), in_warp(s));
	first = tir_cast(k, t, first);
	from = from ? without_constants(s, from, 1, CONSTANT_DEPTH, &more) : 0;
	return tir_binary(k, OP_ADD, from ? tir_binary(k, OP_ADD, from, first) : first, tir_int(k, t, more));
}

static ValId
mask_of_turn(Spread *s, const Turned *x, ValId m, unsigned r)
{
	const TirInst *p = tir_inst(s->from, m);
	ValId arg[3];
	if (!p->type.lanes)
		return s->map[m].reg[0];
	if (p->op == OP_CONST || p->op == OP_SPLAT)
		return s->map[m].reg[0];
	if (p->op == OP_IOTA)
		return turn_number(s, x, 0, r, (DType)p->type.dtype);
	for (unsigned n = 0; n < p->narg; n++)
		arg[n] = mask_of_turn(s, x, tir_arg(s->from, m, n), r);
	return tir_emit(s->to, (Op)p->op, tir_scalar((DType)p->type.dtype), p->imm.i, arg, p->narg);
}

/* The indices of that turn; its mask, or 0. */
static ValId
turn_at(Spread *s, const Turned *x, unsigned r, ValId *index)
{
	const TirInst *p = tir_inst(s->from, x->v);
	unsigned rank = (unsigned)tir_inst(s->from, tir_arg(s->from, x->v, 0))->imm.i;
	for (unsigned n = 0; n < rank; n++) {
		index[n] = s->map[tir_arg(s->from, x->v, x->first + n)].reg[0];
		if (TIR_LANE_AXIS(p->imm.i) == (int)n)
			index[n] = turn_number(s, x, index[n], r, DT_I64);
	}
	return p->imm.i & TIR_MASKED ? mask_of_turn(s, x, tir_arg(s->from, x->v, x->first + rank), r) : 0;
}

/* --- handing over --- */

/* The elements from a thread's row to the next one's. */
static unsigned
pitch_of(const Turned *x)
{
	return x->group + GAP_BYTES / (dtype_info[x->dtype].bits / 8u);
}

/* As what elements are handed over: those of one size in one buffer. */
static DType
carrier_of(const Turned *x)
{
	unsigned bits = dtype_info[x->dtype].bits;
	return bits == 8 ? DT_U8 : bits == 16 ? DT_U16 : bits == 32 ? DT_U32 : DT_U64;
}

static unsigned
buffer_of(Spread *s, const Turned *x)
{
	return spread_warps_buffer(s, carrier_of(x), s->threads * pitch_of(x));
}

/* Where in it the element of this thread's turn is, of a part. */
static ValId
place_of_turn(Spread *s, const Turned *x, unsigned turn)
{
	TirKernel *k = s->to;
	ValId lane = in_warp(s), group = spread_int(s, x->group), pitch = spread_int(s, pitch_of(x));
	ValId row = tir_binary(k, OP_ADD, before_warp(s), tir_binary(k, OP_IDIV, lane, group));
	ValId at = tir_binary(k, OP_ADD, tir_binary(k, OP_MUL, row, pitch), tir_binary(k, OP_IMOD, lane, group));
	return tir_binary(k, OP_ADD, at, spread_int(s, (int64_t)turn * (TIR_WARP / x->group) * pitch_of(x)));
}

static ValId
row_of_thread(Spread *s, const Turned *x)
{
	return tir_binary(s->to, OP_MUL, spread_thread(s), spread_int(s, pitch_of(x)));
}

static void
wait_for_warp(Spread *s)
{
	if (!BUG(turns_unordered))
		tir_emit(s->to, OP_BARRIER, (TirType){0}, TIR_WARP_BARRIER, NULL, 0);
}

/* The part's elements of this thread, of what each had in its turns. */
static void
hand_loaded(Spread *s, const Turned *x, const ValId *had, ValId *own)
{
	unsigned buffer = buffer_of(s, x);
	wait_for_warp(s);
	for (unsigned r = 0; r < x->group; r++)
		spread_put(s, buffer, 0, place_of_turn(s, x, r), tir_bitcast(s->to, carrier_of(x), had[r]), 0);
	wait_for_warp(s);
	Regs row = spread_get_row(s, buffer, row_of_thread(s, x), x->group);
	for (unsigned r = 0; r < x->group; r++)
		own[r] = tir_bitcast(s->to, x->dtype, row.reg[r]);
}

Regs
spread_load_turned(Spread *s, ValId v)
{
	Turned x = turned(s, v);
	Regs had = spread_regs(s, x.parts * x.group), own = spread_regs(s, had.n);
	ValId view = s->map[tir_arg(s->from, v, 0)].reg[0], index[TIR_MAX_RANK];
	for (unsigned r = 0; r < had.n; r++) {
		ValId mask = turn_at(s, &x, r, index);
		had.reg[r] = tir_load(s->to, view, index, mask, tir_inst(s->from, v)->imm.i & TIR_STREAM, 0);
	}
	vec_push(s->arena, &s->loaded, ((Loaded){v, had, own}));
	s->late[v] = true;
	return own;
}

void
spread_hand_loaded(Spread *s)
{
	for (uint32_t n = 0; n < s->loaded.n; n++) {
		const Loaded *l = &s->loaded.at[n];
		Turned x = turned(s, l->v);
		s->late[l->v] = false;
		for (unsigned p = 0; p < x.parts; p++)
			hand_loaded(s, &x, l->had.reg + (size_t)p * x.group, l->own.reg + (size_t)p * x.group);
	}
	s->loaded.n = 0;
}

/* Masks and places are made anew: those of what was loaded would be kept in registers that there are not. */
void
spread_store_turned(Spread *s, ValId v)
{
	Turned x = turned(s, v);
	unsigned anew = s->anew;
	s->anew = anew ? anew : 1;
	const Regs *from = &s->map[tir_arg(s->from, v, 1)];
	unsigned buffer = buffer_of(s, &x);
	Regs row = spread_regs(s, x.group);
	ValId view = s->map[tir_arg(s->from, v, 0)].reg[0], index[TIR_MAX_RANK];
	for (unsigned p = 0; p < x.parts; p++) {
		for (unsigned r = 0; r < x.group; r++)
			row.reg[r] = tir_bitcast(s->to, carrier_of(&x), from->reg[p * x.group + r]);
		wait_for_warp(s);
		spread_put_row(s, buffer, row_of_thread(s, &x), &row);
		wait_for_warp(s);
		for (unsigned r = 0; r < x.group; r++) {
			ValId value = spread_get(s, buffer, 0, place_of_turn(s, &x, r)), mask = turn_at(s, &x, p * x.group + r, index);
			tir_store(s->to, view, tir_bitcast(s->to, x.dtype, value), index, mask, 0);
		}
	}
	s->anew = anew;
}
