/* tir.c: builds tile IR. Instructions are appended to the region on top of the stack of open ones,
 * so that ids ascend in text order and operands have smaller ids by construction. A call that can't
 * be typed is a mistake of the caller and unwinds as a bug, here rather than in the verifier, where
 * the culprit is gone. */
#include "ir/tir.h"

#include <string.h>

#include "ir/tir_inside.h"
#include "ir/tir_slot.h"

TirKernel *
tir_new(Arena *a, Names *names, Name name)
{
	TirKernel *k = ARENA_NEW(a, TirKernel);
	k->arena = a;
	k->names = names;
	k->name = name;
	vec_grow(a, &k->inst, 1);
	vec_grow(a, &k->region, 1);
	tir_enter(k, 0);
	return k;
}

unsigned
tir_add_buffer(TirKernel *k, Name name, DType t, bool written)
{
	vec_push(k->arena, &k->buffer, ((TirBuffer){.name = name, .dtype = t, .written = written}));
	return k->buffer.n - 1;
}

unsigned
tir_add_scalar(TirKernel *k, Name name, DType t)
{
	vec_push(k->arena, &k->scalar, ((TirScalar){.name = name, .dtype = t}));
	return k->scalar.n - 1;
}

void
tir_add_regions(TirKernel *k, ValId v, unsigned n)
{
	uint32_t first = k->region.n;
	vec_grow(k->arena, &k->region, n);
	k->inst.at[v].region = first;
	k->inst.at[v].nregion = (uint16_t)n;
}

void
tir_enter(TirKernel *k, uint32_t region)
{
	vec_push(k->arena, &k->open, region);
}

void
tir_leave(TirKernel *k)
{
	if (k->open.n < 2)
		bug(k->arena, "tir: no region is open");
	k->open.n--;
}

/* Member by member, in its place: a whole one would be read again by more bytes at once than were written, for which a processor
 * waits. That was half of the time of adding an instruction. */
static ValId
add_inst(TirKernel *k, Op op, TirType type, int64_t imm, uint32_t arg, unsigned narg)
{
	if (k->inst.n == k->inst.cap)
		vec_room(k->arena, &k->inst, 1);
	TirInst *p = &k->inst.at[k->inst.n];
	p->op = (uint8_t)op;
	p->type = type;
	p->nregion = 0;
	p->narg = narg;
	p->arg = arg;
	p->region = 0;
	p->imm.i = imm;
	return k->inst.n++;
}

ValId
tir_emit(TirKernel *k, Op op, TirType type, int64_t imm, const ValId *arg, unsigned narg)
{
	if (!k->open.n)
		bug(k->arena, "tir_emit %s: no region is open", op_info[op].text);
	uint32_t first = k->arg.n;
	for (unsigned n = 0; n < narg; n++)
		if (arg[n] == 0 || arg[n] >= k->inst.n)
			bug(k->arena, "tir_emit %s: operand %u is %%%u of %u", op_info[op].text, n, arg[n],
			    k->inst.n);
	if (k->arg.cap - first < narg)
		vec_room(k->arena, &k->arg, narg);
	for (unsigned n = 0; n < narg; n++) /* arg may lie in k->arg as it was before, which the arena still has */
		k->arg.at[first + n] = arg[n];
	k->arg.n += narg;
	ValId v = add_inst(k, op, type, imm, first, narg);
	vec_push(k->arena, &k->region.at[k->open.at[k->open.n - 1]].inst, v);
	return v;
}

/* --- values --- */

ValId
tir_int(TirKernel *k, DType t, int64_t v)
{
	if (dtype_is_float(t))
		bug(k->arena, "tir_int of type %s", dtype_info[t].text);
	return tir_emit(k, OP_CONST, tir_scalar(t), slot_wrap(t, v), NULL, 0);
}

ValId
tir_float(TirKernel *k, DType t, double v)
{
	if (!dtype_is_float(t))
		bug(k->arena, "tir_float of type %s", dtype_info[t].text);
	double rounded = slot_decode(t, slot_encode(t, v));
	int64_t imm;
	memcpy(&imm, &rounded, sizeof imm);
	return tir_emit(k, OP_CONST, tir_scalar(t), imm, NULL, 0);
}

static unsigned
lanes_of(const TirKernel *k, ValId v)
{
	return tir_inst(k, v)->type.lanes;
}

static DType
dtype_of(const TirKernel *k, ValId v)
{
	return (DType)tir_inst(k, v)->type.dtype;
}

static ValId
splat_to(TirKernel *k, ValId v, unsigned lanes)
{
	if (lanes_of(k, v) == lanes)
		return v;
	if (lanes_of(k, v))
		bug(k->arena, "tir: %%%u has %u lanes, not %u", v, lanes_of(k, v), lanes);
	return tir_emit(k, OP_SPLAT, tir_vector(dtype_of(k, v), lanes), 0, &v, 1);
}

/* Makes all operands as wide as the widest and returns that width. */
static unsigned
splat_all(TirKernel *k, ValId *arg, unsigned narg)
{
	unsigned lanes = 0;
	for (unsigned n = 0; n < narg; n++)
		if (lanes_of(k, arg[n]) > lanes)
			lanes = lanes_of(k, arg[n]);
	for (unsigned n = 0; n < narg; n++)
		arg[n] = splat_to(k, arg[n], lanes);
	return lanes;
}

static TirType
as_wide(DType t, unsigned lanes)
{
	return (TirType){t, lanes};
}

static void
need_equal(TirKernel *k, Op op, ValId a, ValId b)
{
	if (dtype_of(k, a) != dtype_of(k, b))
		bug(k->arena, "tir %s: %%%u is %s and %%%u is %s", op_info[op].text, a,
		    dtype_info[dtype_of(k, a)].text, b, dtype_info[dtype_of(k, b)].text);
}

static DType
result_dtype(Op op, DType operand)
{
	return op_info[op].sig == SIG_CMP || op == OP_ISNAN ? DT_BOOL : operand;
}

ValId
tir_unary(TirKernel *k, Op op, ValId a)
{
	return tir_emit(k, op, as_wide(result_dtype(op, dtype_of(k, a)), lanes_of(k, a)), 0, &a, 1);
}

ValId
tir_binary(TirKernel *k, Op op, ValId a, ValId b)
{
	ValId arg[2] = {a, b};
	need_equal(k, op, a, b);
	unsigned lanes = splat_all(k, arg, 2);
	return tir_emit(k, op, as_wide(result_dtype(op, dtype_of(k, a)), lanes), 0, arg, 2);
}

ValId
tir_select(TirKernel *k, ValId c, ValId a, ValId b)
{
	ValId arg[3] = {c, a, b};
	need_equal(k, OP_SELECT, a, b);
	unsigned lanes = splat_all(k, arg, 3);
	return tir_emit(k, OP_SELECT, as_wide(dtype_of(k, a), lanes), 0, arg, 3);
}

ValId
tir_cast(TirKernel *k, DType to, ValId a)
{
	if (dtype_of(k, a) == to)
		return a;
	return tir_emit(k, OP_CAST, as_wide(to, lanes_of(k, a)), 0, &a, 1);
}

ValId
tir_bitcast(TirKernel *k, DType to, ValId a)
{
	if (dtype_of(k, a) == to)
		return a;
	if (dtype_info[to].bits != dtype_info[dtype_of(k, a)].bits)
		bug(k->arena, "tir bitcast: %%%u is %s, not as wide as %s", a,
		    dtype_info[dtype_of(k, a)].text, dtype_info[to].text);
	return tir_emit(k, OP_BITCAST, as_wide(to, lanes_of(k, a)), 0, &a, 1);
}

ValId
tir_fma(TirKernel *k, ValId a, ValId b, ValId c)
{
	ValId arg[3] = {a, b, c};
	need_equal(k, OP_FMA, a, b);
	need_equal(k, OP_FMA, a, c);
	unsigned lanes = splat_all(k, arg, 3);
	return tir_emit(k, OP_FMA, as_wide(dtype_of(k, a), lanes), 0, arg, 3);
}

/* The bit of lane numbers by which a vector of n lanes is halved. In a block (tir.h) the numbers of lanes are, from
 * the lowest bit: lanes of a group, threads of a warp, warps, blocks of a cluster, repeats of all these; fewer lanes
 * lack repeats first, then places in the group, then threads, then warps. Of rows of columns they lack repeats first, then
 * the lowest rows. */
static unsigned
halving_bit(const TirKernel *k, unsigned n)
{
	unsigned threads = tir_all_threads(k), warps = threads / TIR_WARP, blocks = tir_blocks(k);
	unsigned top = n > 1 ? (unsigned)__builtin_ctz(n) - 1 : 0;
	if (k->form != TIR_BLOCK || n > threads * k->group || (n <= blocks && !k->columns))
		return top;
	if (k->columns)
		return (unsigned)__builtin_ctz(k->columns);
	unsigned held = n > threads ? threads : n > warps ? warps : blocks;
	return (unsigned)__builtin_ctz(n / held) - 1;
}

void
tir_halves(TirKernel *k, ValId v, ValId *lo, ValId *hi)
{
	unsigned n = lanes_of(k, v), bit = halving_bit(k, n);
	TirType t = n > 2 ? tir_vector(dtype_of(k, v), n / 2) : tir_scalar(dtype_of(k, v));
	bool whole = n == 2 || 2u << bit == n;
	*lo = tir_emit(k, whole ? OP_LANE : OP_HALF, t, whole ? 0 : 2 * (int64_t)bit, &v, 1);
	*hi = tir_emit(k, whole ? OP_LANE : OP_HALF, t, whole ? n / 2 : 2 * (int64_t)bit + 1, &v, 1);
}

/* --- memory --- */

ValId
tir_view(TirKernel *k, unsigned buffer, unsigned rank, const ValId *extent, const ValId *stride)
{
	ValId arg[1 + 2 * TIR_MAX_RANK];
	if (rank > TIR_MAX_RANK || buffer >= k->buffer.n)
		bug(k->arena, "tir_view: buffer %u of %u, rank %u", buffer, k->buffer.n, rank);
	arg[0] = tir_emit(k, OP_BUFFER, (TirType){0}, buffer, NULL, 0);
	for (unsigned a = 0; a < rank; a++) {
		arg[1 + a] = extent[a];
		arg[1 + rank + a] = stride[a];
	}
	return tir_emit(k, OP_VIEW, tir_scalar(k->buffer.at[buffer].dtype), rank, arg, 1 + 2 * rank);
}

/* The rank of a view, checked as far as building an access on it needs. */
static unsigned
view_rank(const TirKernel *k, ValId view)
{
	const TirInst *p = tir_inst(k, view);
	if (p->op != OP_VIEW || p->imm.i < 0 || p->imm.i > TIR_MAX_RANK)
		bug(k->arena, "tir: %%%u is no view", view);
	return (unsigned)p->imm.i;
}

static int64_t
access_flags(int64_t flags, ValId mask)
{
	return mask ? flags | TIR_MASKED : flags & ~(int64_t)TIR_MASKED;
}

ValId
tir_load(TirKernel *k, ValId view, const ValId *index, ValId mask, int64_t flags, unsigned lanes)
{
	ValId arg[2 + TIR_MAX_RANK];
	unsigned rank = view_rank(k, view), n = 0;
	if (mask)
		mask = splat_to(k, mask, lanes);
	arg[n++] = view;
	for (unsigned a = 0; a < rank; a++)
		arg[n++] = index[a];
	if (mask)
		arg[n++] = mask;
	return tir_emit(k, OP_LOAD, as_wide(dtype_of(k, view), lanes), access_flags(flags, mask), arg, n);
}

void
tir_store(TirKernel *k, ValId view, ValId value, const ValId *index, ValId mask, int64_t flags)
{
	ValId arg[3 + TIR_MAX_RANK];
	unsigned rank = view_rank(k, view), n = 0, lanes = lanes_of(k, value);
	for (unsigned a = 0; a < rank; a++)
		if (lanes_of(k, index[a]) > lanes)
			lanes = lanes_of(k, index[a]);
	if (mask && lanes_of(k, mask) > lanes)
		lanes = lanes_of(k, mask);
	value = splat_to(k, value, lanes);
	if (mask)
		mask = splat_to(k, mask, lanes);
	arg[n++] = view;
	arg[n++] = value;
	for (unsigned a = 0; a < rank; a++)
		arg[n++] = index[a];
	if (mask)
		arg[n++] = mask;
	tir_emit(k, OP_STORE, (TirType){0}, access_flags(flags, mask), arg, n);
}

void
tir_fetch(TirKernel *k, ValId view, const ValId *index)
{
	ValId arg[1 + TIR_MAX_RANK] = {view};
	unsigned rank = view_rank(k, view);
	for (unsigned a = 0; a < rank; a++)
		arg[1 + a] = index[a];
	tir_emit(k, OP_FETCH, (TirType){0}, 0, arg, 1 + rank);
}

void
tir_fault(TirKernel *k, ValId id)
{
	tir_emit(k, OP_FAULT, (TirType){0}, 0, &id, 1);
}

void
tir_dot(TirKernel *k, int64_t shape, ValId c, ValId a, ValId b, ValId n, const ValId *index)
{
	ValId arg[4 + 3 * TIR_MAX_RANK] = {c, a, b, n};
	unsigned count = view_rank(k, c) + view_rank(k, a) + view_rank(k, b) - 8;
	for (unsigned i = 0; i < count; i++)
		arg[4 + i] = index[i];
	tir_emit(k, OP_DOT, (TirType){0}, shape, arg, 4 + count);
}

ValId
tir_load_matrix(TirKernel *k, DType t, ValId view, const ValId *index, bool turned)
{
	ValId arg[1 + TIR_MAX_RANK] = {view};
	unsigned rank = view_rank(k, view);
	for (unsigned a = 0; a < rank; a++)
		arg[1 + a] = index[a];
	return tir_emit(k, OP_LOAD_MATRIX, tir_vector(t, TIR_MATRIX_BITS / dtype_info[t].bits), turned, arg, 1 + rank);
}

void
tir_store_matrix(TirKernel *k, ValId view, ValId value, const ValId *index, bool turned)
{
	ValId arg[2 + TIR_MAX_RANK] = {view, value};
	unsigned rank = view_rank(k, view);
	for (unsigned a = 0; a < rank; a++)
		arg[2 + a] = index[a];
	tir_emit(k, OP_STORE_MATRIX, (TirType){0}, turned, arg, 2 + rank);
}

void
tir_async_copy(TirKernel *k, ValId to, const ValId *at, ValId from, const ValId *index, ValId there)
{
	ValId arg[3 + 2 * TIR_MAX_RANK] = {to, from, there};
	unsigned rank = view_rank(k, to), other = view_rank(k, from);
	for (unsigned a = 0; a < rank; a++)
		arg[3 + a] = at[a];
	for (unsigned a = 0; a < other; a++)
		arg[3 + rank + a] = index[a];
	tir_emit(k, OP_ASYNC_COPY, (TirType){0}, 0, arg, 3 + rank + other);
}

void
tir_async_wait(TirKernel *k, unsigned most)
{
	tir_emit(k, OP_ASYNC_WAIT, (TirType){0}, most, NULL, 0);
}

ValId
tir_recast(TirKernel *k, DType to, ValId a)
{
	const TirInst *p = tir_inst(k, a);
	unsigned bits = dtype_info[p->type.dtype].bits * p->type.lanes;
	return tir_emit(k, OP_BITCAST, tir_vector(to, bits / dtype_info[to].bits), 0, &a, 1);
}

void
tir_copy_third(TirKernel *k, int64_t part, ValId view, ValId n, const ValId *index, ValId third)
{
	ValId arg[2 + TIR_MAX_RANK + 1] = {view, n};
	unsigned rank = view_rank(k, view);
	for (unsigned a = 0; a < rank; a++)
		arg[2 + a] = index[a];
	arg[2 + rank] = third;
	tir_emit(k, OP_COPY, (TirType){0}, part, arg, 2 + rank + (third != 0));
}

void
tir_copy(TirKernel *k, int64_t part, ValId view, ValId n, const ValId *index)
{
	tir_copy_third(k, part, view, n, index, 0);
}

bool
tir_copies_thirds(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	return p->op == OP_COPY && p->narg == 2 + view_rank(k, tir_arg(k, v, 0)) + 1;
}

void
tir_copy_box(TirKernel *k, int64_t part, ValId view, ValId n, const ValId *index, const ValId *count, const ValId *step)
{
	ValId arg[2 + 3 * TIR_MAX_RANK] = {view, n};
	unsigned rank = view_rank(k, view);
	for (unsigned a = 0; a < rank; a++) {
		arg[2 + a] = index[a];
		arg[2 + rank + a] = count[a];
		arg[2 + 2 * rank + a] = step[a];
	}
	tir_emit(k, OP_COPY, (TirType){0}, part, arg, 2 + 3 * rank);
}

ValId
tir_box_count(const TirKernel *k, ValId copy, unsigned a)
{
	unsigned rank = view_rank(k, tir_arg(k, copy, 0));
	return tir_inst(k, copy)->narg == 2 + 3 * rank ? tir_arg(k, copy, 2 + rank + a) : 0;
}

ValId
tir_box_step(const TirKernel *k, ValId copy, unsigned a)
{
	unsigned rank = view_rank(k, tir_arg(k, copy, 0));
	return tir_inst(k, copy)->narg == 2 + 3 * rank ? tir_arg(k, copy, 2 + 2 * rank + a) : 0;
}

/* --- regions --- */

/* The FOR or IF whose region is being filled: nothing followed it yet in the region around. */
static ValId
open_owner(TirKernel *k, Op op)
{
	if (k->open.n < 2)
		bug(k->arena, "tir: no %s is open", op_info[op].text);
	const TirRegion *around = &k->region.at[k->open.at[k->open.n - 2]];
	ValId v = around->inst.at[around->inst.n - 1];
	if (tir_inst(k, v)->op != op)
		bug(k->arena, "tir: %s is open, not %s", op_info[tir_inst(k, v)->op].text, op_info[op].text);
	return v;
}

static void
emit_results(TirKernel *k, ValId owner, ValId *value, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		value[i] = tir_emit(k, OP_RESULT, tir_inst(k, value[i])->type, i, &owner, 1);
}

ValId
tir_for(TirKernel *k, ValId lo, ValId hi, ValId step, ValId *carried, unsigned n)
{
	ValId *arg = ARENA_ARRAY(k->arena, ValId, 3 + (size_t)n);
	arg[0] = lo;
	arg[1] = hi;
	arg[2] = step;
	for (unsigned i = 0; i < n; i++)
		arg[3 + i] = carried[i];
	ValId v = tir_emit(k, OP_FOR, (TirType){0}, 0, arg, 3 + n);
	tir_add_regions(k, v, 1);
	tir_enter(k, tir_inst(k, v)->region);
	ValId index = tir_emit(k, OP_BLOCKARG, tir_scalar(DT_I64), 0, NULL, 0);
	for (unsigned i = 0; i < n; i++)
		carried[i] = tir_emit(k, OP_BLOCKARG, tir_inst(k, carried[i])->type, 1 + (int64_t)i, NULL, 0);
	return index;
}

void
tir_end_for(TirKernel *k, ValId *carried, unsigned n)
{
	ValId v = open_owner(k, OP_FOR);
	if (tir_inst(k, v)->narg != 3 + n)
		bug(k->arena, "tir_end_for: %u values, %u are carried", n, tir_inst(k, v)->narg - 3);
	tir_emit(k, OP_YIELD, (TirType){0}, 0, carried, n);
	tir_leave(k);
	emit_results(k, v, carried, n);
}

void
tir_if(TirKernel *k, ValId cond)
{
	ValId v = tir_emit(k, OP_IF, (TirType){0}, 0, &cond, 1);
	tir_add_regions(k, v, 2);
	tir_enter(k, tir_inst(k, v)->region);
}

void
tir_else(TirKernel *k, const ValId *value, unsigned n)
{
	ValId v = open_owner(k, OP_IF);
	if (k->open.at[k->open.n - 1] != tir_inst(k, v)->region)
		bug(k->arena, "tir_else: the else part is open already");
	tir_emit(k, OP_YIELD, (TirType){0}, 0, value, n);
	tir_leave(k);
	tir_enter(k, tir_inst(k, v)->region + 1);
}

void
tir_end_if(TirKernel *k, ValId *value, unsigned n)
{
	ValId v = open_owner(k, OP_IF);
	if (k->open.at[k->open.n - 1] == tir_inst(k, v)->region)
		bug(k->arena, "tir_end_if before tir_else");
	if (tir_nresult(k, v) != n)
		bug(k->arena, "tir_end_if: %u values, then has %u", n, tir_nresult(k, v));
	tir_emit(k, OP_YIELD, (TirType){0}, 0, value, n);
	tir_leave(k);
	emit_results(k, v, value, n);
}

unsigned
tir_add_channel(TirKernel *k, const TirChannel *c)
{
	vec_push(k->arena, &k->channel, *c);
	return k->channel.n - 1;
}

void
tir_open_roles(TirKernel *k, int64_t roles)
{
	ValId v = tir_emit(k, OP_ROLES, (TirType){0}, roles, NULL, 0);
	tir_add_regions(k, v, 2);
	tir_enter(k, tir_inst(k, v)->region);
}

void
tir_other_role(TirKernel *k)
{
	ValId v = open_owner(k, OP_ROLES);
	tir_emit(k, OP_YIELD, (TirType){0}, 0, NULL, 0);
	tir_leave(k);
	tir_enter(k, tir_inst(k, v)->region + 1);
}

void
tir_end_roles(TirKernel *k)
{
	open_owner(k, OP_ROLES);
	tir_emit(k, OP_YIELD, (TirType){0}, 0, NULL, 0);
	tir_leave(k);
}

/* Whether two copies are of the same view, by boxes of the same shape. */
static bool
same_map(const TirKernel *k, ValId v, ValId w)
{
	int64_t a = tir_inst(k, v)->imm.i, b = tir_inst(k, w)->imm.i;
	const TirPart *p = &k->channel.at[TIR_CHANNEL_OF(a)].part[TIR_PART_OF(a)], *q = &k->channel.at[TIR_CHANNEL_OF(b)].part[TIR_PART_OF(b)];
	bool same = tir_arg(k, v, 0) == tir_arg(k, w, 0) && p->rows == q->rows && p->terms == q->terms && p->turned == q->turned &&
	            p->joint == q->joint;
	for (unsigned n = 0; same && n < view_rank(k, tir_arg(k, v, 0)); n++)
		same = tir_box_count(k, v, n) == tir_box_count(k, w, n) && tir_box_step(k, v, n) == tir_box_step(k, w, n);
	return same;
}

/* The first copy by the map of copy v. */
static ValId
first_copy(const TirKernel *k, ValId v)
{
	ValId w = 1;
	while (tir_inst(k, w)->op != OP_COPY || !same_map(k, v, w))
		w++;
	return w;
}

bool
tir_makes_map(const TirKernel *k, ValId v)
{
	return tir_inst(k, v)->op == OP_COPY && first_copy(k, v) == v;
}

unsigned
tir_map_of(const TirKernel *k, ValId copy)
{
	unsigned n = 0;
	ValId first = first_copy(k, copy);
	for (ValId v = 1; v < first; v++)
		n += tir_makes_map(k, v);
	return n;
}

unsigned
tir_maps(const TirKernel *k)
{
	unsigned n = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		n += tir_makes_map(k, v);
	return n;
}

bool
tir_has_joint(const TirKernel *k)
{
	for (uint32_t c = 0; c < k->channel.n; c++)
		if (tir_is_joint(&k->channel.at[c]))
			return true;
	return false;
}

uint32_t
tir_ring_bytes(const TirKernel *k)
{
	uint32_t bytes = 0;
	for (uint32_t c = 0; c < k->channel.n; c++)
		bytes += k->channel.at[c].slots * (tir_slot_bytes(&k->channel.at[c]) + 2 * 8);
	return bytes;
}

uint32_t
tir_shared_at(const TirKernel *k, uint32_t b)
{
	uint32_t at = tir_ring_bytes(k), unit = 16;
	for (uint32_t n = 0; n < b; n++) {
		const TirBuffer *buffer = &k->buffer.at[n];
		unsigned bits = dtype_info[buffer->dtype].bits;
		bool handed = buffer->wide && bits <= 32 && !k->channel.n; /* with what counts them */
		at = (at + (handed ? tir_handed_word(buffer) + 8 : buffer->shared * ((bits + 7u) / 8u)) + unit - 1) / unit * unit;
	}
	return at;
}

unsigned
tir_nresult(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	if (p->op == OP_FOR)
		return p->narg - 3;
	const TirRegion *then = &k->region.at[p->region];
	return tir_inst(k, then->inst.at[then->inst.n - 1])->narg;
}

ValId
tir_result_model(const TirKernel *k, ValId v, unsigned n)
{
	const TirInst *p = tir_inst(k, v);
	if (p->op == OP_FOR)
		return tir_arg(k, v, 3 + n);
	const TirRegion *then = &k->region.at[p->region];
	return tir_arg(k, then->inst.at[then->inst.n - 1], n);
}
