/* tir_random.c: builds a kernel forwards from a pool of the values in scope. Every operand is taken
 * from the pool or made; an index is brought into its extent, or masked where it lies outside. */
#include "tir_random.h"

#include <math.h>
#include <string.h>

#include "ir/tir_lanes.h"
#include "ir/tir_slot.h"

enum { MAX_BUFFERS = 5, MAX_VIEWS = 8, MAX_DEPTH = 3 };

typedef struct {
	ValId view;
	unsigned buffer, rank;
	int64_t extent[TIR_MAX_RANK];
	ValId extent_value[TIR_MAX_RANK];
} View;

typedef struct {
	TirKernel *k;
	uint64_t state;
	RandomOptions o;
	unsigned lanes, depth, budget;
	VEC(ValId) pool;
	View view[MAX_VIEWS];
	unsigned nview;
	int64_t reach[MAX_BUFFERS]; /* elements */
	int64_t small[4];           /* values of the i64 scalars */
	unsigned nsmall;
} Gen;

/* --- choices --- */

static uint64_t
next(Gen *g)
{
	g->state += UINT64_C(0x9e3779b97f4a7c15);
	uint64_t z = g->state;
	z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
	return z ^ z >> 31;
}

static unsigned
below(Gen *g, unsigned n)
{
	return (unsigned)(next(g) % n);
}

static bool
chance(Gen *g, unsigned percent)
{
	return below(g, 100) < percent;
}

static DType
any_dtype(Gen *g)
{
	static const DType wide[] = {DT_F32, DT_F32, DT_F64, DT_I64, DT_I32, DT_U64, DT_U32, DT_BOOL};
	if (chance(g, 70))
		return wide[below(g, sizeof wide / sizeof wide[0])];
	return (DType)(1 + below(g, DT_C64 - 1));
}

static TirType
any_type(Gen *g)
{
	return (TirType){(uint8_t)any_dtype(g), (uint16_t)(chance(g, 40) ? g->lanes : 0)};
}

static double
any_double(Gen *g)
{
	static const double special[] = {0, -0.0, 1, -1, 0.5, 2, 1.5, 2.5, -2.5, 1e-40, -1e-310, 65504, 448, 3e38,
	                                 1e308, (double)INFINITY, -(double)INFINITY, (double)NAN};
	if (chance(g, 40))
		return special[below(g, sizeof special / sizeof special[0])];
	double v = (double)(int64_t)next(g) * 0x1p-63;
	return ldexp(v, (int)below(g, chance(g, 80) ? 8 : 200));
}

static int64_t
any_int(Gen *g, DType t)
{
	unsigned bits = dtype_info[t].bits;
	switch (below(g, 4)) {
	case 0: return (int64_t)below(g, 20) - 6;
	case 1: return (int64_t)((UINT64_C(1) << (bits - 1)) + below(g, 3) - 1);
	case 2: return (int64_t)below(g, 1000);
	default: return (int64_t)next(g);
	}
}

/* A slot of packed storage: any bits, or a value worth having. */
static uint64_t
any_slot(Gen *g, DType t)
{
	if (!dtype_is_float(t))
		return (uint64_t)slot_wrap(t, any_int(g, t));
	if (chance(g, 10))
		return next(g) >> (64 - dtype_info[t].bits);
	return slot_encode(t, any_double(g));
}

/* --- values --- */

static Name
name_numbered(Gen *g, const char *what, unsigned n)
{
	return name_cstr(g->k->names, arena_text(g->k->arena, "%s%u", what, n));
}

static ValId
keep(Gen *g, ValId v)
{
	vec_push(g->k->arena, &g->pool, v);
	return v;
}

static ValId
constant(Gen *g, TirType t)
{
	int64_t imm;
	if (dtype_is_float((DType)t.dtype)) {
		double v = slot_decode((DType)t.dtype, slot_encode((DType)t.dtype, any_double(g)));
		memcpy(&imm, &v, sizeof imm);
	} else {
		imm = slot_wrap((DType)t.dtype, any_int(g, (DType)t.dtype));
	}
	return tir_emit(g->k, OP_CONST, t, imm, NULL, 0);
}

/* One of the pool with this type, or 0. */
static ValId
find(Gen *g, TirType t)
{
	for (unsigned tries = 0; tries < 12 && g->pool.n; tries++) {
		ValId v = g->pool.at[g->pool.n - 1 - below(g, g->pool.n < 24 || chance(g, 30) ? g->pool.n : 24)];
		const TirInst *p = tir_inst(g->k, v);
		if (p->type.dtype == t.dtype && p->type.lanes == t.lanes)
			return v;
	}
	return 0;
}

static ValId
value(Gen *g, TirType t)
{
	ValId v = chance(g, 85) ? find(g, t) : 0;
	if (v)
		return v;
	if (t.lanes && chance(g, 40)) {
		ValId s = find(g, (TirType){t.dtype, 0});
		if (s)
			return tir_emit(g->k, OP_SPLAT, t, 0, &s, 1);
	}
	if (t.lanes && chance(g, 40) && dtype_is_int((DType)t.dtype) && lane_function(OP_IDIV, (DType)t.dtype))
		return keep(g, tir_emit(g->k, OP_IOTA, t, 0, NULL, 0));
	if (g->pool.n && chance(g, 50)) {
		ValId s = g->pool.at[below(g, g->pool.n)];
		if (tir_inst(g->k, s)->type.lanes == t.lanes)
			return tir_cast(g->k, (DType)t.dtype, s);
	}
	return constant(g, t);
}

/* x where it is no NaN, else 1: its bits may be looked at. */
static ValId
without_nan(Gen *g, ValId x)
{
	DType t = (DType)tir_inst(g->k, x)->type.dtype;
	if (!dtype_is_float(t))
		return x;
	if (t == DT_F32 || t == DT_F64)
		return tir_select(g->k, tir_unary(g->k, OP_ISNAN, x), tir_float(g->k, t, 1), x);
	ValId f = tir_cast(g->k, DT_F32, x);
	return tir_cast(g->k, t, without_nan(g, f));
}

/* --- accesses --- */

/* An index into 0..extent: scalar or a vector. */
static ValId
index_within(Gen *g, ValId extent, unsigned lanes)
{
	ValId any = value(g, (TirType){DT_I64, (uint16_t)lanes});
	return tir_binary(g->k, OP_IMOD, any, extent);
}

static ValId
inside(Gen *g, ValId index, ValId extent)
{
	ValId zero = tir_int(g->k, DT_I64, 0);
	return tir_binary(g->k, OP_AND, tir_binary(g->k, OP_LE, zero, index), tir_binary(g->k, OP_LT, index, extent));
}

static ValId
both(Gen *g, ValId a, ValId b)
{
	return a && b ? tir_binary(g->k, OP_AND, a, b) : a ? a : b;
}

/* Indices of an access with these lanes; flags and a mask (0: none) that keep it inside. */
static int64_t
indices(Gen *g, const View *v, unsigned lanes, ValId *index, ValId *mask)
{
	int64_t flags = 0;
	unsigned along = lanes && v->rank && chance(g, 60) ? below(g, v->rank) : TIR_MAX_RANK;
	*mask = chance(g, 25) ? value(g, (TirType){DT_BOOL, (uint16_t)(chance(g, 50) ? lanes : 0)}) : 0;
	for (unsigned a = 0; a < v->rank; a++) {
		ValId extent = v->extent_value[a];
		if (a == along) {
			ValId iota = tir_emit(g->k, OP_IOTA, tir_vector(DT_I64, lanes), 0, NULL, 0);
			flags = TIR_LANES_ALONG(a);
			index[a] = chance(g, 80) ? index_within(g, extent, 0) : value(g, tir_scalar(DT_I64));
			ValId reached = tir_binary(g->k, OP_ADD, index[a], iota);
			*mask = both(g, *mask, inside(g, reached, extent));
		} else {
			index[a] = index_within(g, extent, chance(g, 30) ? lanes : 0);
			if (chance(g, 15)) {
				index[a] = value(g, (TirType){DT_I64, (uint16_t)(chance(g, 50) ? lanes : 0)});
				*mask = both(g, *mask, inside(g, index[a], extent));
			}
		}
	}
	return flags;
}

static void
emit_load(Gen *g)
{
	const View *v = &g->view[below(g, g->nview)];
	unsigned lanes = chance(g, 45) ? g->lanes : 0;
	ValId index[TIR_MAX_RANK], mask;
	int64_t flags = indices(g, v, lanes, index, &mask);
	if (lanes == 0 && chance(g, 30))
		tir_fetch(g->k, v->view, index);
	keep(g, tir_load(g->k, v->view, index, mask, flags, lanes));
}

static void
emit_store(Gen *g)
{
	const View *v = &g->view[below(g, g->nview)];
	const TirBuffer *b = &g->k->buffer.at[v->buffer];
	unsigned lanes = chance(g, 45) ? g->lanes : 0;
	ValId index[TIR_MAX_RANK], mask;
	if (!b->written)
		return;
	int64_t flags = indices(g, v, lanes, index, &mask);
	ValId x = value(g, (TirType){(uint8_t)b->dtype, (uint16_t)lanes});
	tir_store(g->k, v->view, x, index, mask, flags);
}

static ValId emit_size(Gen *g, int64_t n);

static void
add_view(Gen *g, unsigned buffer)
{
	View *v = &g->view[g->nview++];
	ValId stride[TIR_MAX_RANK];
	unsigned order[TIR_MAX_RANK];
	int64_t step = 1 + (chance(g, 20) ? below(g, 3) : 0), reach = 1;
	*v = (View){.buffer = buffer, .rank = below(g, 100) < 90 ? below(g, 4) : below(g, TIR_MAX_RANK + 1)};
	for (unsigned a = 0; a < v->rank; a++) {
		unsigned at = chance(g, 70) ? 0 : below(g, a + 1); /* mostly row-major, built from the last axis */
		memmove(order + at + 1, order + at, (a - at) * sizeof *order);
		order[at] = a;
		v->extent[a] = 1 + below(g, v->rank > 3 ? 2 : v->rank == 1 ? 40 : 9);
	}
	for (unsigned n = v->rank; n-- > 0;) {
		unsigned a = order[v->rank - 1 - n];
		bool still = chance(g, 5);
		v->extent_value[a] = emit_size(g, v->extent[a]);
		stride[a] = emit_size(g, still ? 0 : step);
		reach += still ? 0 : (v->extent[a] - 1) * step;
		step *= v->extent[a];
		step += chance(g, 10);
	}
	v->view = tir_view(g->k, buffer, v->rank, v->extent_value, stride);
	if (reach > g->reach[buffer])
		g->reach[buffer] = reach;
}

/* --- instructions --- */

static void
emit_map(Gen *g)
{
	for (unsigned tries = 0; tries < 100; tries++) {
		Op op = (Op)(1 + below(g, OP_COUNT - 1));
		DType t = any_dtype(g);
		if (!lane_function(op, t) || (!g->o.math && (op_info[op].flags & F_MATH)) || (op == OP_SCALE && !g->o.scale)
		    || ((op_info[op].flags & F_UNIT) && !g->o.ex2))
			continue;
		TirType type = {(uint8_t)t, (uint16_t)(chance(g, 40) ? g->lanes : 0)};
		ValId arg[3];
		for (int n = 0; n < op_info[op].arity; n++)
			arg[n] = value(g, type);
		if (op == OP_SCALE)
			arg[1] = tir_binary(g->k, OP_MAX, tir_float(g->k, t, -300), tir_binary(g->k, OP_MIN, arg[1], tir_float(g->k, t, 300.5)));
		if (op_info[op].sig == SIG_CMP || op == OP_ISNAN)
			type.dtype = DT_BOOL;
		keep(g, tir_emit(g->k, op, type, 0, arg, (unsigned)op_info[op].arity));
		return;
	}
}

static void
emit_bitcast(Gen *g)
{
	TirType from = any_type(g);
	DType to = any_dtype(g);
	if (from.dtype == DT_BOOL || to == DT_BOOL || dtype_info[from.dtype].bits != dtype_info[to].bits)
		return;
	ValId x = value(g, from);
	if (!dtype_is_float(to))
		x = without_nan(g, x);
	keep(g, tir_bitcast(g->k, to, x));
}

static void
emit_convert(Gen *g)
{
	ValId x;
	TirType t = any_type(g);
	switch (below(g, 5)) {
	case 0:
		emit_bitcast(g);
		return;
	case 1:
		x = value(g, tir_scalar((DType)t.dtype));
		keep(g, tir_emit(g->k, OP_SPLAT, tir_vector((DType)t.dtype, g->lanes), 0, &x, 1));
		return;
	case 2:
		x = value(g, tir_vector((DType)t.dtype, g->lanes));
		if (g->lanes > 1 && below(g, 3) == 0) {
			ValId both[2] = {x, value(g, tir_vector((DType)t.dtype, g->lanes))};
			keep(g, tir_emit(g->k, OP_SLIDE, tir_vector((DType)t.dtype, g->lanes), 1 + below(g, g->lanes - 1), both, 2));
			return;
		}
		if (g->lanes > 1 && (g->lanes & (g->lanes - 1)) == 0 && dtype_info[t.dtype].bits == 32 && below(g, 3) == 0) {
			ValId both[2] = {x, value(g, tir_vector(DT_U32, g->lanes))};
			if (below(g, 2)) {
				x = tir_binary(g->k, OP_LT, both[1], value(g, tir_vector(DT_U32, g->lanes)));
				keep(g, tir_emit(g->k, OP_ANY, tir_scalar(DT_BOOL), 0, &x, 1));
				return;
			}
			keep(g, tir_emit(g->k, OP_PICK, tir_vector((DType)t.dtype, g->lanes), 0, both, 2));
			return;
		}
		if (g->lanes > 3 && g->lanes % 4 == 0 && below(g, 4) == 0) { /* lanes in pairs, halves change places */
			ValId half[2];
			for (unsigned side = 0; side < 2; side++)
				half[!side] = tir_emit(g->k, OP_HALF, tir_vector((DType)t.dtype, g->lanes / 2), 2 + side, &x, 1);
			x = tir_emit(g->k, OP_WEAVE, tir_vector((DType)t.dtype, g->lanes), 2 * below(g, 2), half, 2);
			keep(g, tir_emit(g->k, OP_SLIDE, tir_vector((DType)t.dtype, g->lanes), TIR_SLIDE(1, 2), (ValId[]){x, x}, 2));
			return;
		}
		if (g->lanes > 3 && g->lanes % 2 == 0 && below(g, 3) == 0) { /* every other lane, and some of them joined */
			ValId half[2];
			for (unsigned side = 0; side < 2; side++) {
				half[side] = tir_emit(g->k, OP_HALF, tir_vector((DType)t.dtype, g->lanes / 2), side, &x, 1);
				half[side] = tir_emit(g->k, OP_LANE, tir_scalar((DType)t.dtype), below(g, g->lanes / 2), &half[side], 1);
			}
			x = tir_emit(g->k, OP_JOIN, tir_vector((DType)t.dtype, 2), 0, half, 2);
			keep(g, tir_emit(g->k, OP_LANE, tir_scalar((DType)t.dtype), 1, &x, 1));
			return;
		}
		if (g->lanes > 3 && below(g, 2)) { /* a half, and one of its lanes */
			x = tir_emit(g->k, OP_LANE, tir_vector((DType)t.dtype, g->lanes / 2), below(g, g->lanes / 2 + 1), &x, 1);
			keep(g, tir_emit(g->k, OP_LANE, tir_scalar((DType)t.dtype), below(g, g->lanes / 2), &x, 1));
			return;
		}
		keep(g, tir_emit(g->k, OP_LANE, tir_scalar((DType)t.dtype), below(g, g->lanes), &x, 1));
		return;
	case 3:
		x = value(g, (TirType){DT_BOOL, t.lanes});
		keep(g, tir_select(g->k, x, value(g, t), value(g, t)));
		return;
	default:
		keep(g, tir_cast(g->k, any_dtype(g), value(g, t)));
	}
}

static void
emit_fault(Gen *g)
{
	ValId id = value(g, (TirType){DT_U32, (uint16_t)(chance(g, 40) ? g->lanes : 0)});
	ValId when = value(g, (TirType){DT_BOOL, (uint16_t)tir_inst(g->k, id)->type.lanes});
	ValId none = tir_int(g->k, DT_U32, 0);
	tir_fault(g->k, chance(g, 60) ? tir_select(g->k, when, id, none) : id);
}

static void emit_block(Gen *g, unsigned n);

enum { MAX_CARRIED = 4 };

static unsigned
carried_values(Gen *g, ValId *v)
{
	unsigned n = below(g, MAX_CARRIED + 1);
	for (unsigned i = 0; i < n; i++)
		v[i] = value(g, any_type(g));
	return n;
}

static void
values_like(Gen *g, const ValId *model, ValId *v, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		v[i] = value(g, tir_inst(g->k, model[i])->type);
}

static void
emit_for(Gen *g)
{
	ValId carried[MAX_CARRIED], next_value[MAX_CARRIED];
	unsigned n = carried_values(g, carried), mark;
	ValId lo = tir_int(g->k, DT_I64, (int64_t)below(g, 7) - 3), hi;
	if (chance(g, 20)) {
		lo = tir_emit(g->k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
		hi = tir_emit(g->k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	} else {
		hi = tir_binary(g->k, OP_ADD, lo, index_within(g, emit_size(g, 6), 0));
	}
	mark = g->pool.n;
	ValId index = tir_for(g->k, lo, hi, tir_int(g->k, DT_I64, 1 + below(g, 3)), carried, n);
	keep(g, index);
	for (unsigned i = 0; i < n; i++)
		keep(g, carried[i]);
	emit_block(g, 2 + below(g, 10));
	values_like(g, carried, next_value, n);
	g->pool.n = mark;
	tir_end_for(g->k, next_value, n);
	for (unsigned i = 0; i < n; i++)
		keep(g, next_value[i]);
}

static void
emit_if(Gen *g)
{
	ValId then[MAX_CARRIED], other[MAX_CARRIED];
	unsigned mark = g->pool.n, n;
	tir_if(g->k, value(g, tir_scalar(DT_BOOL)));
	emit_block(g, below(g, 8));
	n = carried_values(g, then);
	g->pool.n = mark;
	tir_else(g->k, then, n);
	emit_block(g, below(g, 8));
	values_like(g, then, other, n);
	g->pool.n = mark;
	tir_end_if(g->k, other, n);
	for (unsigned i = 0; i < n; i++)
		keep(g, other[i]);
}

static void
emit_block(Gen *g, unsigned n)
{
	g->depth++;
	for (; n && g->budget; n--, g->budget--) {
		unsigned kind = below(g, 100);
		if (kind < 50)
			emit_map(g);
		else if (kind < 66)
			emit_convert(g);
		else if (kind < 76)
			emit_load(g);
		else if (kind < 88)
			emit_store(g);
		else if (kind < 90)
			emit_fault(g);
		else if (kind < 95 && g->depth <= MAX_DEPTH)
			emit_for(g);
		else if (g->depth <= MAX_DEPTH)
			emit_if(g);
	}
	g->depth--;
}

/* --- the kernel and its inputs --- */

/* An i64 of value n, as a constant or through a scalar argument. */
static ValId
emit_size(Gen *g, int64_t n)
{
	for (unsigned i = 0; i < g->nsmall; i++)
		if (g->small[i] == n && chance(g, 70))
			return tir_emit(g->k, OP_SCALAR, tir_scalar(DT_I64), i, NULL, 0);
	return tir_int(g->k, DT_I64, n);
}

static void
add_scalars(Gen *g)
{
	g->nsmall = below(g, 5);
	for (unsigned i = 0; i < g->nsmall; i++) {
		g->small[i] = 1 + below(g, 9);
		tir_add_scalar(g->k, name_numbered(g, "size", i), DT_I64);
	}
	for (unsigned n = below(g, 3); n; n--) {
		DType t = any_dtype(g);
		unsigned i = tir_add_scalar(g->k, name_numbered(g, "scalar", n), t);
		keep(g, tir_emit(g->k, OP_SCALAR, tir_scalar(t), i, NULL, 0));
	}
}

static void
add_memory(Gen *g)
{
	unsigned n = 1 + below(g, MAX_BUFFERS);
	for (unsigned i = 0; i < n; i++)
		tir_add_buffer(g->k, name_numbered(g, "buffer", i), any_dtype(g), i == 0 || chance(g, 50));
	for (unsigned i = 0; i < n; i++)
		add_view(g, i);
	while (g->nview < MAX_VIEWS && chance(g, 40))
		add_view(g, below(g, n));
}

/* What was computed last must be seen: some of the pool is stored. */
static void
store_results(Gen *g)
{
	for (unsigned i = 0; i < g->nview; i++)
		for (unsigned n = 0; n < 2; n++) {
			unsigned stores = 4;
			while (stores--)
				emit_store(g);
		}
}

static const void *const *
fill_scalars(Gen *g, Arena *a)
{
	const void **scalar = ARENA_ARRAY(a, const void *, g->k->scalar.n + 1);
	for (uint32_t i = 0; i < g->k->scalar.n; i++) {
		DType t = g->k->scalar.at[i].dtype;
		void *p = arena_alloc(a, 8);
		slot_store(t, p, 0, i < g->nsmall ? (uint64_t)g->small[i] : any_slot(g, t));
		scalar[i] = p;
	}
	return scalar;
}

static TirMemory *
fill_buffers(Gen *g, Arena *a)
{
	TirMemory *memory = ARENA_ARRAY(a, TirMemory, g->k->buffer.n);
	for (uint32_t i = 0; i < g->k->buffer.n; i++) {
		DType t = g->k->buffer.at[i].dtype;
		dtype_bytes(t, g->reach[i], &memory[i].bytes);
		memory[i].data = arena_alloc(a, (size_t)memory[i].bytes);
		for (int64_t n = 0; n < g->reach[i]; n++)
			slot_store(t, memory[i].data, n, any_slot(g, t));
	}
	return memory;
}

RandomCase
tir_random(Arena *a, Names *names, uint64_t seed, RandomOptions o)
{
	static const uint16_t lanes[] = {4, 8, 16, 2, 8, 16, 3, 32};
	Gen g = {.state = seed, .o = o};
	RandomCase c;
	g.k = c.kernel = tir_new(a, names, name_cstr(names, "random"));
	g.lanes = o.lanes ? o.lanes : lanes[below(&g, sizeof lanes / sizeof lanes[0])];
	g.budget = 20 + below(&g, 80);
	c.task_lo = 0; /* as a launch that runs all tasks in one call */
	c.task_hi = 1 + below(&g, 5);
	add_scalars(&g);
	add_memory(&g);
	emit_block(&g, g.budget);
	store_results(&g);
	c.scalar = fill_scalars(&g, a);
	c.buffer = fill_buffers(&g, a);
	return c;
}

/* --- comparison --- */

TirMemory *
random_copy_buffers(Arena *a, const RandomCase *c)
{
	TirMemory *copy = ARENA_ARRAY(a, TirMemory, c->kernel->buffer.n);
	for (uint32_t i = 0; i < c->kernel->buffer.n; i++) {
		copy[i] = c->buffer[i];
		copy[i].data = arena_copy(a, c->buffer[i].data, (size_t)c->buffer[i].bytes);
	}
	return copy;
}

bool
random_same(Arena *a, const RandomCase *c, const TirMemory *x, const TirMemory *y, const char **where)
{
	for (uint32_t i = 0; i < c->kernel->buffer.n; i++) {
		DType t = c->kernel->buffer.at[i].dtype;
		int64_t n = x[i].bytes * 8 / dtype_info[t].bits;
		for (int64_t e = 0; e < n; e++) {
			uint64_t p = slot_load(t, x[i].data, e), q = slot_load(t, y[i].data, e);
			if (p == q || (dtype_is_float(t) && isnan(slot_decode(t, p)) && isnan(slot_decode(t, q))))
				continue;
			*where = arena_text(a, "buffer %u (%s), element %lld: %#llx and %#llx", i, dtype_info[t].text,
			                    (long long)e, (unsigned long long)p, (unsigned long long)q);
			return false;
		}
	}
	return true;
}
