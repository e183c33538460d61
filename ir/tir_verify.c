/* tir_verify.c: whether a kernel is well formed, and else which rule is broken where. Structure is
 * established first (each region has one owner, each instruction one place), so that the walk that
 * checks the rest ends; nothing of the kernel is trusted before it is checked. */
#include "ir/tir.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "ir/tir_inside.h"
#include "ir/tir_slot.h"
#include "ir/warp_mma.h"

typedef struct {
	const TirKernel *k;
	Arena *scratch;
	const char *error;
	uint32_t *home;    /* by ValId: the region it was seen in, plus one */
	bool *open;        /* by region */
} Verify;

const char *
tir_broken(const TirKernel *k, Arena *a, ValId v, const char *fmt, va_list ap)
{
	char what[256];
	vsnprintf(what, sizeof what, fmt, ap);
	const char *kernel = name_text(k->names, k->name);
	return v ? arena_text(a, "kernel %s: %%%u %s: %s", kernel, v, op_info[tir_inst(k, v)->op].text, what)
	         : arena_text(a, "kernel %s: %s", kernel, what);
}

static bool __attribute__((format(printf, 3, 4)))
fail(Verify *x, ValId v, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	x->error = tir_broken(x->k, x->scratch, v, fmt, ap);
	va_end(ap);
	return false;
}

#define NEED(cond, ...)                         \
	do {                                    \
		if (!(cond))                    \
			return fail(x, v, __VA_ARGS__); \
	} while (0)

/* --- types --- */

static const TirInst *
operand(const Verify *x, ValId v, unsigned n)
{
	return tir_inst(x->k, tir_arg(x->k, v, n));
}

static bool
same_type(TirType a, TirType b)
{
	return a.dtype == b.dtype && a.lanes == b.lanes;
}

static bool
is_storable(unsigned dtype)
{
	return dtype > DT_NONE && dtype < DT_COUNT && dtype != DT_C64;
}

/* Whether arithmetic happens in it. */
static bool
is_arithmetic(unsigned dtype)
{
	return is_storable(dtype) && dtype != DT_BOOL && dtype_info[dtype].arith == dtype;
}

static bool
is_bits(unsigned dtype)
{
	return is_storable(dtype) && dtype_info[dtype].kind == KIND_UINT && dtype_info[dtype].bits >= 8;
}

static bool
is_value(const TirInst *p)
{
	return p->type.dtype != DT_NONE && p->op != OP_VIEW;
}

/* What the operands of an operation with this signature may be. */
static bool
dtype_fits(OpSig sig, Op op, unsigned t)
{
	switch (sig) {
	case SIG_SAME:
		return is_arithmetic(t) && (op != OP_FDIV || dtype_is_float((DType)t));
	case SIG_FLOAT:
		return is_arithmetic(t) && dtype_is_float((DType)t);
	case SIG_INT:
		return is_arithmetic(t) && dtype_is_int((DType)t);
	case SIG_ORDERED:
		return is_arithmetic(t);
	case SIG_CMP:
		return is_arithmetic(t) || t == DT_BOOL;
	case SIG_LOGIC:
		return t == DT_BOOL;
	case SIG_BITS:
		return is_bits(t);
	case SIG_SELECT:
	case SIG_FREE:
		break;
	}
	return is_storable(t);
}

static bool
check_signature(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	OpSig sig = (OpSig)op_info[p->op].sig;
	unsigned first = sig == SIG_SELECT; /* the first operand of the type in common */
	TirType t = operand(x, v, first)->type;
	if (sig == SIG_SELECT) {
		TirType c = operand(x, v, 0)->type;
		NEED(c.dtype == DT_BOOL, "the condition is no bool");
		NEED(c.lanes == t.lanes, "the condition has %u lanes, not %u", c.lanes, t.lanes);
	}
	bool near = p->op == OP_NEAR_DIV, any = (p->op != OP_FDIV && !near) || p->imm.i == 0 || p->imm.i == TIR_FROM_1;
	NEED(any || (!near && (p->imm.i == TIR_MIDDLE || p->imm.i == TIR_NEAR)), "is neither any quotient nor one of the middle, or by what is near or from 1 on");
	NEED(!(op_info[p->op].flags & F_UNIT) || t.dtype == DT_F32, "not defined on %s", dtype_info[t.dtype].text);
	DType narrow = op_info[p->op].flags & F_NARROW ? TIR_NARROW(p->imm.i) : DT_NONE;
	NEED(narrow == DT_NONE || ((narrow == DT_BF16 || narrow == DT_F16) && t.dtype == DT_F32),
	     "narrowed, not of f32 or to no narrow float");
	NEED(dtype_fits(sig, (Op)p->op, t.dtype), "not defined on %s", dtype_info[t.dtype].text);
	for (unsigned n = first + 1; n < p->narg; n++)
		NEED(same_type(operand(x, v, n)->type, t), "operand %u has another type", n);
	TirType want = t;
	if (sig == SIG_CMP)
		want.dtype = DT_BOOL;
	NEED(same_type(p->type, want), "the result must be %s of %u lanes", dtype_info[want.dtype].text, want.lanes);
	return true;
}

static bool
check_const(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	DType t = (DType)p->type.dtype;
	NEED(is_storable(t), "has no type");
	if (!dtype_is_float(t)) {
		NEED(slot_wrap(t, p->imm.i) == p->imm.i, "does not fit %s", dtype_info[t].text);
		return true;
	}
	double f = slot_decode(t, slot_encode(t, p->imm.f));
	NEED(memcmp(&f, &p->imm.f, sizeof f) == 0 || (f != f && p->imm.f != p->imm.f),
	     "is no value of %s", dtype_info[t].text);
	return true;
}

static bool
is_index_scalar(const TirInst *p)
{
	return is_value(p) && p->type.dtype == DT_I64 && p->type.lanes == 0;
}

static bool
is_const(const TirInst *p, int64_t value)
{
	return p->op == OP_CONST && p->imm.i == value;
}

/* A view of what the blocks of a cluster reach of each other: by rank, then by element. */
static bool
check_wide(Verify *x, ValId v, const TirBuffer *b)
{
	NEED(tir_inst(x->k, v)->imm.i == 2 && is_const(operand(x, v, 1), x->k->cluster) && is_const(operand(x, v, 2), b->shared) &&
	     is_const(operand(x, v, 3), b->shared) && is_const(operand(x, v, 4), 1), "is not by rank and element");
	return true;
}

static bool
check_view(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->imm.i >= 0 && p->imm.i <= TIR_MAX_RANK, "rank out of range");
	NEED(p->narg == 1 + 2 * (uint64_t)p->imm.i, "rank %d takes %d operands, not %u", (int)p->imm.i,
	     1 + 2 * (int)p->imm.i, p->narg);
	const TirInst *b = operand(x, v, 0);
	NEED(b->op == OP_BUFFER, "operand 0 is no buffer");
	for (unsigned n = 1; n < p->narg; n++)
		NEED(is_index_scalar(operand(x, v, n)), "operand %u is no i64 scalar", n);
	NEED(p->type.dtype == x->k->buffer.at[b->imm.i].dtype && p->type.lanes == 0, "has not the buffer's type");
	return !x->k->buffer.at[b->imm.i].wide || check_wide(x, v, &x->k->buffer.at[b->imm.i]);
}

/* LOAD and STORE; value: 1 when the second operand is what to store. */
static bool
check_access(Verify *x, ValId v, unsigned value)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->narg >= 1 + value && operand(x, v, 0)->op == OP_VIEW, "operand 0 is no view");
	const TirInst *view = operand(x, v, 0);
	unsigned rank = (unsigned)view->imm.i, masked = p->imm.i & TIR_MASKED;
	int64_t known = TIR_MASKED | TIR_STREAM | (value ? 0 : 0xf0);
	NEED((p->imm.i & ~known & 0xff) == 0 && TIR_LANE_AXIS(p->imm.i) < (int)rank && p->imm.i >= 0 &&
	         p->imm.i >> 12 <= TIR_MAX_AHEAD,
	     "flags out of range");
	NEED(p->narg == 1 + value + rank + masked, "rank %u%s takes %u operands, not %u", rank,
	     masked ? " masked" : "", 1 + value + rank + masked, p->narg);
	TirType t = value ? operand(x, v, 1)->type : p->type;
	NEED(!value || is_value(operand(x, v, 1)), "operand 1 is no value");
	NEED(t.dtype == view->type.dtype, "is %s, the view %s", dtype_info[t.dtype].text, dtype_info[view->type.dtype].text);
	int along = TIR_LANE_AXIS(p->imm.i);
	NEED(along < 0 || t.lanes, "lanes along an axis, but no vector");
	NEED(along >= 0 || !(p->imm.i & ((value || t.lanes ? TIR_STREAM : 0) | 0xf0)), "a hint without lanes along an axis");
	NEED(TIR_AHEAD_AXIS(p->imm.i) < (int)rank, "looks ahead along an axis that does not exist");
	NEED(TIR_AHEAD_AXIS(p->imm.i) >= 0 || TIR_AHEAD_COUNT(p->imm.i) == 1, "looks ahead along no axis");
	for (unsigned a = 0; a < rank; a++) {
		const TirInst *index = operand(x, v, 1 + value + a);
		unsigned lanes = index->type.lanes;
		NEED(is_value(index) && index->type.dtype == DT_I64, "index %u is no i64", a);
		NEED(lanes == 0 || lanes == t.lanes, "index %u has %u lanes, not %u", a, lanes, t.lanes);
		NEED(lanes == 0 || along != (int)a, "index %u is a vector and has lanes along it", a);
	}
	if (masked) {
		TirType m = operand(x, v, p->narg - 1)->type;
		NEED(m.dtype == DT_BOOL && m.lanes == t.lanes, "the mask is no bool of %u lanes", t.lanes);
	}
	return true;
}

static bool
check_store(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	if (!check_access(x, v, 1))
		return false;
	ValId view = tir_arg(x->k, v, 0);
	NEED(x->k->buffer.at[operand(x, view, 0)->imm.i].written, "the buffer is not marked written");
	NEED(!x->k->buffer.at[operand(x, view, 0)->imm.i].posted || !operand(x, v, 1)->type.lanes, "posts a vector");
	NEED(p->type.dtype == DT_NONE && p->type.lanes == 0, "has a type");
	return true;
}

static bool
check_fetch(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->narg >= 1 && operand(x, v, 0)->op == OP_VIEW, "operand 0 is no view");
	NEED(p->narg == 1 + (uint64_t)operand(x, v, 0)->imm.i, "rank %d takes %d operands, not %u",
	     (int)operand(x, v, 0)->imm.i, 1 + (int)operand(x, v, 0)->imm.i, p->narg);
	for (unsigned n = 1; n < p->narg; n++)
		NEED(is_index_scalar(operand(x, v, n)), "operand %u is no i64 scalar", n);
	NEED(p->imm.i == 0 && p->type.dtype == DT_NONE && p->type.lanes == 0, "has flags or a type");
	return true;
}

/* A view of DOT, its leading indices from operand `at` on. */
static bool
check_matrix(Verify *x, ValId v, unsigned n, DType t, unsigned inner, uint64_t *at)
{
	const TirInst *p = tir_inst(x->k, v), *view = operand(x, v, n);
	NEED(view->op == OP_VIEW && view->type.dtype == t, "operand %u is no view of %s", n, dtype_info[t].text);
	NEED(view->imm.i >= (int64_t)inner, "operand %u has fewer than %u axes", n, inner);
	for (int64_t k = (int64_t)inner; k < view->imm.i; k++, ++*at)
		NEED(*at < p->narg && is_index_scalar(operand(x, v, (unsigned)*at)), "operand %u is no index",
		     (unsigned)*at);
	return true;
}

static bool
check_dot(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	TirDot d = tir_dot_shape(p->imm.i);
	uint64_t at = 4;
	NEED((p->imm.i & ~(TIR_DOT_CHAINED | TIR_DOT_ANEW)) == TIR_DOT(d.rows, d.columns, d.pairs) && d.rows && d.columns && d.pairs &&
	     d.rows <= TIR_MAX_DOT && d.columns <= TIR_MAX_DOT && d.pairs <= TIR_MAX_DOT, "shape out of range");
	NEED(p->narg >= 4 && is_index_scalar(operand(x, v, 3)), "takes c, a, b and the number of groups");
	if (!check_matrix(x, v, 0, DT_F32, 2, &at) || !check_matrix(x, v, 1, DT_U32, 3, &at) ||
	    !check_matrix(x, v, 2, DT_U32, 3, &at))
		return false;
	NEED(at == p->narg, "takes %u operands, not %u", (unsigned)at, p->narg);
	int64_t c = operand(x, tir_arg(x->k, v, 0), 0)->imm.i;
	NEED(x->k->buffer.at[c].written, "the buffer is not marked written");
	for (unsigned n = 1; n < 3; n++)
		NEED(operand(x, tir_arg(x->k, v, n), 0)->imm.i != c, "reads the buffer it writes");
	NEED(p->type.dtype == DT_NONE && p->type.lanes == 0, "has a type");
	return true;
}

static bool
check_fault(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->narg == 1, "takes one operand");
	NEED(is_value(operand(x, v, 0)) && operand(x, v, 0)->type.dtype == DT_U32, "the id is no u32");
	NEED(p->type.dtype == DT_NONE, "has a type");
	return true;
}

static bool
check_for(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->narg >= 3, "takes lo, hi and step");
	NEED(p->imm.i == 0 || p->imm.i == TIR_ROLLED, "imm is %d", (int)p->imm.i);
	for (unsigned n = 0; n < 3; n++)
		NEED(is_index_scalar(operand(x, v, n)), "operand %u is no i64 scalar", n);
	for (unsigned n = 3; n < p->narg; n++)
		NEED(is_value(operand(x, v, n)), "operand %u is no value", n);
	NEED(p->type.dtype == DT_NONE, "has a type");
	const TirRegion *r = &x->k->region.at[p->region];
	for (unsigned n = 0; n + 2 < p->narg; n++) {
		NEED(n < r->inst.n && tir_inst(x->k, r->inst.at[n])->op == OP_BLOCKARG, "the body has no block argument %u", n);
		const TirInst *arg = tir_inst(x->k, r->inst.at[n]);
		TirType want = n ? operand(x, v, 2 + n)->type : tir_scalar(DT_I64);
		NEED(arg->imm.i == n, "block argument %u says %d", n, (int)arg->imm.i);
		NEED(same_type(arg->type, want), "block argument %u has another type", n);
	}
	return true;
}

/* A block argument's place and type are FOR's business; here: that it belongs to one. */
static bool
check_blockarg(Verify *x, ValId v, ValId owner, uint32_t position)
{
	NEED(owner && tir_inst(x->k, owner)->op == OP_FOR, "outside a for");
	NEED(position < tir_inst(x->k, owner)->narg - 2, "more than the loop carries");
	return true;
}

static bool
check_yield(Verify *x, ValId v, ValId owner, uint16_t nth)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(owner, "in the kernel's body");
	for (unsigned n = 0; n < p->narg; n++)
		NEED(is_value(operand(x, v, n)), "operand %u is no value", n);
	NEED(p->type.dtype == DT_NONE, "has a type");
	if (tir_inst(x->k, owner)->op == OP_ROLES)
		NEED(p->narg == 0, "a role has no values");
	if (tir_inst(x->k, owner)->op == OP_IF && nth == 0)
		return true; /* `then` sets what `else` must match */
	unsigned want = tir_nresult(x->k, owner);
	NEED(p->narg == want, "%u values, not %u", p->narg, want);
	for (unsigned n = 0; n < want; n++)
		NEED(same_type(operand(x, v, n)->type, tir_inst(x->k, tir_result_model(x->k, owner, n))->type),
		     "value %u has another type", n);
	return true;
}

static bool
check_result(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v), *owner = operand(x, v, 0);
	ValId at = tir_arg(x->k, v, 0);
	NEED(owner->op == OP_FOR || owner->op == OP_IF, "operand 0 is no for or if");
	NEED(!x->open[owner->region] && !x->open[owner->region + owner->nregion - 1], "inside its own region");
	NEED(p->imm.i >= 0 && p->imm.i < (int64_t)tir_nresult(x->k, at), "there are %u",
	     tir_nresult(x->k, at));
	TirType want = tir_inst(x->k, tir_result_model(x->k, at, (unsigned)p->imm.i))->type;
	NEED(same_type(p->type, want), "has another type than the value yielded");
	return true;
}

static bool
check_convert(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v), *a = operand(x, v, 0);
	NEED(is_value(a), "operand 0 is no value");
	NEED(is_storable(p->type.dtype), "to %s", dtype_info[p->type.dtype].text);
	unsigned bits = dtype_info[p->type.dtype].bits, from = dtype_info[a->type.dtype].bits;
	bool regrouped = p->op == OP_BITCAST && p->type.lanes && a->type.lanes && bits >= 8 && from >= 8;
	NEED(p->type.lanes == a->type.lanes || regrouped, "changes the number of lanes");
	if (p->op != OP_BITCAST)
		return true;
	NEED(p->type.dtype != DT_BOOL && a->type.dtype != DT_BOOL, "not defined on bool");
	if (p->type.lanes != a->type.lanes) {
		NEED(bits * p->type.lanes == from * a->type.lanes, "%u bits as %u", from * a->type.lanes,
		     bits * p->type.lanes);
		return true;
	}
	NEED(dtype_info[p->type.dtype].bits == dtype_info[a->type.dtype].bits, "%s is not as wide as %s",
	     dtype_info[p->type.dtype].text, dtype_info[a->type.dtype].text);
	return true;
}

static bool
check_lanes(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	if (p->op == OP_IOTA) {
		NEED(is_arithmetic(p->type.dtype) && dtype_is_int((DType)p->type.dtype), "of %s",
		     dtype_info[p->type.dtype].text);
		NEED(p->type.lanes, "is no vector");
		NEED(p->imm.i >= 0 && p->imm.i <= TIR_MAX_LANES && (p->imm.i & (p->imm.i - 1)) == 0,
		     "rounds to %d, which is no power of two", (int)p->imm.i);
		return true;
	}
	NEED(p->narg, "takes nothing");
	bool wide = x->k->cluster && x->k->form == TIR_BLOCK, weaves = p->op == OP_WEAVE && x->k->columns;
	NEED(!wide || weaves || (p->op != OP_SLIDE && p->op != OP_WEAVE && p->op != OP_JOIN), "in a kernel of clusters");
	NEED(!weaves || tir_arg(x->k, v, 0) == tir_arg(x->k, v, 1), "weaves different rows");
	const TirInst *a = operand(x, v, 0);
	NEED(is_value(a) && p->type.dtype == a->type.dtype, "changes the type");
	if (p->op == OP_JOIN) {
		NEED(p->narg > 1 && p->narg == p->type.lanes, "has %u lanes of %u", p->type.lanes, p->narg);
		for (unsigned n = 0; n < p->narg; n++)
			NEED(same_type(operand(x, v, n)->type, tir_scalar((DType)p->type.dtype)), "operand %u has another type", n);
		return true;
	}
	if (p->op == OP_SLIDE) {
		NEED(same_type(p->type, a->type) && same_type(a->type, operand(x, v, 1)->type), "is of two types");
		unsigned by = TIR_SLIDE_BY(p->imm.i), m = TIR_SLIDE_SEGMENT(p->imm.i) ? TIR_SLIDE_SEGMENT(p->imm.i) : p->type.lanes;
		NEED(p->imm.i > 0 && by && by < m, "by no number of lanes that leaves some of both");
		NEED(p->type.lanes % m == 0, "in segments of %u of %u lanes", m, p->type.lanes);
		return true;
	}
	if (p->op == OP_ANY) {
		NEED(x->k->form == TIR_TASKS, "in a kernel of blocks");
		NEED(a->type.dtype == DT_BOOL && a->type.lanes && !p->type.lanes, "goes from a vector of bool to one");
		return true;
	}
	if (p->op == OP_PICK) {
		NEED(x->k->form == TIR_TASKS, "in a kernel of blocks");
		NEED(dtype_info[p->type.dtype].bits == 32, "of %s", dtype_info[p->type.dtype].text);
		NEED(a->type.lanes > 1 && (a->type.lanes & (a->type.lanes - 1)) == 0, "from %u lanes", a->type.lanes);
		NEED(same_type(operand(x, v, 1)->type, (TirType){DT_U32, p->type.lanes}), "by numbers of another type");
		return true;
	}
	if (p->op == OP_SPLAT) {
		NEED(a->type.lanes == 0 && p->type.lanes, "goes from a scalar to a vector");
		return true;
	}
	if (p->op == OP_WEAVE) {
		NEED(same_type(a->type, operand(x, v, 1)->type) && a->type.lanes > 1, "is of two types");
		NEED(p->type.lanes == 2 * a->type.lanes, "has not twice the lanes");
		NEED(p->imm.i >= 0 && p->imm.i < 64 && p->imm.i % 2 == 0 && p->type.lanes % (2u << (p->imm.i / 2)) == 0,
		     "by a bit that does not halve");
		return true;
	}
	if (p->op == OP_HALF) {
		NEED(p->type.lanes > 1 && a->type.lanes == 2 * p->type.lanes, "has not half the lanes");
		NEED(p->imm.i >= 0 && p->imm.i < 64 && a->type.lanes >> (p->imm.i / 2) > 1 &&
		     a->type.lanes % (2u << (p->imm.i / 2)) == 0, "by a bit that does not halve");
		return true;
	}
	unsigned n = p->type.lanes ? p->type.lanes : 1;
	NEED(n < a->type.lanes, "takes fewer lanes than its vector has");
	NEED(p->imm.i >= 0 && p->imm.i <= (int64_t)a->type.lanes - n, "there are %u lanes", a->type.lanes);
	return true;
}

static bool
check_leaf(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	if (p->op == OP_BUFFER) {
		NEED(p->imm.i >= 0 && p->imm.i < (int64_t)x->k->buffer.n, "there are %u", x->k->buffer.n);
		NEED(p->type.dtype == DT_NONE, "has a type");
		return true;
	}
	if (p->op == OP_SCALAR) {
		NEED(p->imm.i >= 0 && p->imm.i < (int64_t)x->k->scalar.n, "there are %u", x->k->scalar.n);
		NEED(same_type(p->type, tir_scalar(x->k->scalar.at[p->imm.i].dtype)),
		     "has not the scalar's type");
		return true;
	}
	NEED((p->op != OP_THREAD && p->op != OP_RANK) || x->k->form == TIR_SPREAD, "outside a kernel of threads");
	NEED(p->op != OP_THREAD || p->imm.i >= 0, "is looked up for a negative number");
	NEED(same_type(p->type, tir_scalar(DT_I64)), "is no i64 scalar");
	return true;
}

static bool
is_multiplied(DType t)
{
	return t == DT_BF16 || t == DT_F16 || t == DT_F32;
}

static bool
check_warp_mma(Verify *x, ValId v)
{
	NEED(tir_inst(x->k, v)->narg, "has no operands");
	TirType factor = operand(x, v, 0)->type, sum = tir_scalar(DT_F32);
	NEED(!factor.lanes && is_multiplied(factor.dtype), "multiplies no scalars of bf16, f16 or f32");
	unsigned operands = warp_mma_operands(warp_mma_word(factor.dtype));
	NEED(tir_inst(x->k, v)->narg == operands, "takes %u operands", operands);
	NEED(same_type(tir_inst(x->k, v)->type, tir_vector(DT_F32, WARP_MMA_C)), "gives no vector of %u f32", (unsigned)WARP_MMA_C);
	for (unsigned n = 0; n < operands; n++)
		NEED(same_type(operand(x, v, n)->type, n < operands - WARP_MMA_C ? factor : sum), "operand %u is of another type", n);
	return true;
}

/* Operand n: a view whose elements are side by side along its last axis, with an index for each axis from operand `at` on. */
static bool
check_row(Verify *x, ValId v, unsigned n, unsigned at)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(n < p->narg && operand(x, v, n)->op == OP_VIEW, "operand %u is no view", n);
	const TirInst *view = operand(x, v, n);
	NEED(view->imm.i > 0 && is_const(operand(x, tir_arg(x->k, v, n), 2 * (unsigned)view->imm.i), 1), "the last stride of operand %u is not 1", n);
	NEED(dtype_info[view->type.dtype].bits >= 8, "operand %u has parts of bytes", n);
	for (unsigned a = 0; a < (unsigned)view->imm.i; a++)
		NEED(at + a < p->narg && is_index_scalar(operand(x, v, at + a)), "operand %u is no i64 scalar", at + a);
	return true;
}

static const TirBuffer *
buffer_of(const Verify *x, ValId view)
{
	return &x->k->buffer.at[operand(x, view, 0)->imm.i];
}

static bool
check_matrices(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	bool stores = p->op == OP_STORE_MATRIX;
	if (!check_row(x, v, 0, 1 + stores))
		return false;
	const TirBuffer *b = buffer_of(x, tir_arg(x->k, v, 0));
	TirType t = stores ? operand(x, v, 1)->type : p->type;
	NEED(p->narg == 1u + stores + (uint64_t)operand(x, v, 0)->imm.i, "takes an index for each axis");
	NEED(b->shared && !b->wide, "of no buffer of the block's own");
	NEED(is_multiplied((DType)t.dtype) && t.lanes * dtype_info[t.dtype].bits == TIR_MATRIX_BITS, "has no vector of 8 bf16 or f16, or 4 f32");
	NEED(!stores || (t.dtype != DT_F32 && p->type.dtype == DT_NONE && !p->type.lanes), "stores f32, or has a type");
	NEED(p->imm.i == 0 || (p->imm.i == 1 && t.dtype != DT_F32), "is turned or not");
	return true;
}

static bool
check_async_copy(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	if (!check_row(x, v, 0, 3) || !check_row(x, v, 1, 3 + (unsigned)operand(x, v, 0)->imm.i))
		return false;
	const TirBuffer *to = buffer_of(x, tir_arg(x->k, v, 0)), *from = buffer_of(x, tir_arg(x->k, v, 1));
	NEED(p->narg == 3 + (uint64_t)operand(x, v, 0)->imm.i + (uint64_t)operand(x, v, 1)->imm.i, "takes an index for each axis");
	NEED(same_type(operand(x, v, 2)->type, tir_scalar(DT_BOOL)), "the condition is no bool scalar");
	NEED(to->shared && !to->wide && to->written, "to no buffer of the block's own");
	NEED(!from->written && !from->shared && !from->same && !from->posted, "of a buffer that is written");
	NEED(p->imm.i == 0 && p->type.dtype == DT_NONE && p->type.lanes == 0, "has flags or a type");
	return true;
}

/* What the threads of a warp load and store together, and what each copies meanwhile. */
static bool
check_meanwhile(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(x->k->form == TIR_SPREAD && (!x->k->channel.n || p->op == OP_STORE_MATRIX), "outside a kernel of threads without roles");
	if (p->op == OP_LOAD_MATRIX || p->op == OP_STORE_MATRIX)
		return check_matrices(x, v);
	if (p->op == OP_ASYNC_COPY)
		return check_async_copy(x, v);
	NEED(p->imm.i >= 0 && p->imm.i <= TIR_MAX_ASYNC, "waits for all but %u at least", (unsigned)TIR_MAX_ASYNC);
	NEED(p->type.dtype == DT_NONE && p->type.lanes == 0, "has a type");
	return true;
}

static bool
check_together(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(x->k->form == TIR_SPREAD, "outside a kernel of threads");
	if (p->op == OP_BARRIER) {
		NEED(p->type.dtype == DT_NONE && p->type.lanes == 0, "has a type");
		if (p->imm.i == TIR_GROUP_BARRIER || p->imm.i == TIR_WARP_BARRIER)
			return true; /* tir_verify_roles */
		NEED(p->imm.i == 0 || (p->imm.i > 0 && x->k->cluster), "is of no cluster");
		int64_t k = TIR_HANDED_BUFFER(p->imm.i);
		NEED(k < (int64_t)x->k->buffer.n, "is for no buffer");
		const TirBuffer *b = k < 0 ? NULL : &x->k->buffer.at[k];
		NEED(!b || (b->wide && b->shared % x->k->cluster == 0 && dtype_info[b->dtype].bits >= 8 && dtype_info[b->dtype].bits <= 32 && !x->k->channel.n),
		     "is for no elements of blocks");
		return true;
	}
	if (p->op == OP_WARP_MMA)
		return check_warp_mma(x, v);
	NEED(is_value(operand(x, v, 0)) && same_type(p->type, operand(x, v, 0)->type), "changes the type");
	NEED(!p->type.lanes, "is no scalar");
	if (p->imm.i == TIR_SAME)
		NEED(dtype_info[p->type.dtype].bits == 32, "is not of 32 bits");
	else
		NEED(p->imm.i > 0 && p->imm.i < 3 * TIR_WARP && p->imm.i % TIR_WARP, "leaves the warp");
	return true;
}

static bool
check_isnan(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	TirType t = operand(x, v, 0)->type;
	NEED(t.dtype == DT_F32 || t.dtype == DT_F64, "not defined on %s", dtype_info[t.dtype].text);
	TirType want = {DT_BOOL, t.lanes};
	NEED(same_type(p->type, want), "the result is no bool of %u lanes", t.lanes);
	return true;
}

/* --- structure --- */

static bool
check_placed(Verify *x, uint32_t region, uint32_t position)
{
	const TirKernel *k = x->k;
	const TirRegion *r = &k->region.at[region];
	ValId v = r->inst.at[position];
	if (v == 0 || v >= k->inst.n)
		return fail(x, 0, "region %u holds %%%u of %u", region, v, k->inst.n);
	const TirInst *p = tir_inst(k, v);
	if (p->op == OP_NONE || p->op >= OP_COUNT || !(op_info[p->op].level & LEVEL_L))
		return fail(x, 0, "%%%u: no operation of the tile IR", v);
	NEED(!x->home[v], "stands in two places");
	x->home[v] = region + 1;
	NEED(p->narg <= k->arg.n && p->arg <= k->arg.n - p->narg, "operands outside the table");
	NEED(op_info[p->op].arity < 0 || p->narg == (uint32_t)op_info[p->op].arity, "takes %d operands, not %u",
	     op_info[p->op].arity, p->narg);
	for (unsigned n = 0; n < p->narg; n++)
		NEED(tir_arg(k, v, n) && tir_arg(k, v, n) < v, "operand %u is %%%u", n, tir_arg(k, v, n));
	NEED(p->nregion == (p->op == OP_FOR ? 1 : p->op == OP_IF || p->op == OP_ROLES ? 2 : 0), "has %u regions", p->nregion);
	NEED(p->type.lanes <= (k->form == TIR_BLOCK ? TIR_MAX_BLOCK_LANES * tir_blocks(k) : TIR_MAX_LANES), "has %u lanes",
	     p->type.lanes);
	NEED(p->type.dtype < DT_COUNT, "has type number %u", p->type.dtype);
	NEED((p->op == OP_YIELD) == (region && position + 1 == r->inst.n),
	     p->op == OP_YIELD ? "is not the last of its region" : "is the last of its region");
	return true;
}

static bool
check_owned(Verify *x, bool *owned, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	NEED(p->nregion <= x->k->region.n && p->region <= x->k->region.n - p->nregion,
	     "regions outside the table");
	for (unsigned n = 0; n < p->nregion; n++) {
		NEED(!owned[p->region + n], "region %u has two owners", p->region + n);
		NEED(x->k->region.at[p->region + n].inst.n, "region %u is empty", p->region + n);
		owned[p->region + n] = true;
	}
	return true;
}

static bool
check_structure(Verify *x)
{
	const TirKernel *k = x->k;
	bool *owned = ARENA_ARRAY(x->scratch, bool, k->region.n + 1);
	if (k->region.n == 0 || k->inst.n == 0)
		return fail(x, 0, "has no body");
	owned[0] = true;
	for (uint32_t r = 0; r < k->region.n; r++)
		for (uint32_t i = 0; i < k->region.at[r].inst.n; i++)
			if (!check_placed(x, r, i))
				return false;
	for (ValId v = 1; v < k->inst.n; v++)
		if (x->home[v] && !check_owned(x, owned, v))
			return false;
	return true;
}

static bool
check_header(Verify *x)
{
	const TirKernel *k = x->k;
	bool groups = k->channel.n && k->form == TIR_SPREAD && k->threads % TIR_GROUP == 0;
	bool threads = k->threads >= TIR_WARP && k->threads <= TIR_MAX_THREADS && ((k->threads & (k->threads - 1)) == 0 || groups);
	if (k->form == TIR_TASKS ? k->threads || k->group : !threads)
		return fail(x, 0, "a block of %u threads", k->threads);
	if (k->form == TIR_TASKS ? k->anywhere : !k->group || (k->group & (k->group - 1)))
		return fail(x, 0, "groups of %u lanes", k->group);
	if (k->form == TIR_TASKS ? k->cluster : k->cluster > TIR_MAX_CLUSTER || (!k->channel.n && (k->cluster & (k->cluster - 1))))
		return fail(x, 0, "a cluster of %u blocks", k->cluster);
	if (k->columns && (k->form != TIR_BLOCK || k->sets || (k->columns & (k->columns - 1)) || k->columns < k->group ||
	                   k->columns < TIR_WARP || k->columns * (k->cluster ? k->cluster : 1u) > k->threads))
		return fail(x, 0, "rows of %u columns", k->columns);
	if (k->tight && k->form != TIR_BLOCK)
		return fail(x, 0, "a thread's number is looked up anew outside a kernel of blocks");
	if (k->sets && (k->sets > TIR_MAX_SETS || k->form == TIR_TASKS || k->cluster || k->channel.n || tir_posts(k)))
		return fail(x, 0, "%u sets of buffers and scalars", k->sets);
	for (uint32_t i = 0; i < k->buffer.n; i++)
		if (k->buffer.at[i].same > i)
			return fail(x, 0, "buffer %u has the memory of a later one", i);
		else if (k->buffer.at[i].shared && k->form == TIR_TASKS)
			return fail(x, 0, "buffer %u is shared outside a kernel of a block", i);
		else if (k->buffer.at[i].wide && (!k->buffer.at[i].shared || !k->cluster || k->form != TIR_SPREAD))
			return fail(x, 0, "buffer %u is of no cluster", i);
		else if (k->buffer.at[i].posted && (k->form == TIR_TASKS || k->cluster || k->buffer.at[i].dtype != DT_U64 ||
		                                    k->buffer.at[i].shared || k->buffer.at[i].same || !k->buffer.at[i].written))
			return fail(x, 0, "buffer %u is not for words that blocks post", i);
	for (uint32_t i = 0; i < x->k->buffer.n; i++)
		if (!is_storable(x->k->buffer.at[i].dtype))
			return fail(x, 0, "buffer %u has no type of the tile IR", i);
	for (uint32_t i = 0; i < x->k->scalar.n; i++)
		if (!is_storable(x->k->scalar.at[i].dtype))
			return fail(x, 0, "scalar %u has no type of the tile IR", i);
	return true;
}

/* --- the walk --- */

static bool
check_scope(Verify *x, ValId v)
{
	const TirInst *p = tir_inst(x->k, v);
	for (unsigned n = 0; n < p->narg; n++) {
		ValId a = tir_arg(x->k, v, n);
		NEED(x->home[a] && x->open[x->home[a] - 1], "operand %u, %%%u, is not in scope", n, a);
		NEED(op_info[p->op].cls != CLASS_MAP || is_value(tir_inst(x->k, a)), "operand %u is no value", n);
	}
	return true;
}

static bool
check_inst(Verify *x, const Walk *w)
{
	ValId v = w->value;
	const WalkFrame *f = &w->frame.at[w->frame.n - 1];
	switch ((Op)tir_inst(x->k, v)->op) {
	case OP_CONST:
		return check_const(x, v);
	case OP_BUFFER: case OP_SCALAR: case OP_TASK_LO: case OP_TASK_HI: case OP_TASK_STEP: case OP_THREAD: case OP_RANK:
		return check_leaf(x, v);
	case OP_SHUFFLE: case OP_WARP_MMA: case OP_BARRIER:
		return check_together(x, v);
	case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT:
		return check_meanwhile(x, v);
	case OP_ADD: case OP_SUB: case OP_MUL: case OP_FDIV: case OP_IDIV: case OP_IMOD: case OP_POW:
	case OP_NEG: case OP_ABS: case OP_SIGN: case OP_MIN: case OP_MAX: case OP_FLOOR: case OP_CEIL:
	case OP_ROUND: case OP_TRUNC: case OP_SQRT: case OP_RSQRT: case OP_EXP: case OP_EXP2:
	case OP_EXPM1: case OP_LOG: case OP_LOG2: case OP_LOG1P: case OP_TANH: case OP_ERF: case OP_SIN:
	case OP_COS: case OP_EQ: case OP_NE: case OP_LT: case OP_LE: case OP_AND: case OP_OR: case OP_NOT: case OP_SELECT: case OP_FMA: case OP_SCALE: case OP_SHL: case OP_SHR: case OP_BAND: case OP_BOR: case OP_BXOR: case OP_EX2: case OP_RCP: case OP_LG2: case OP_NEAR_DIV: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL:
		return check_signature(x, v);
	case OP_ISNAN:
		return check_isnan(x, v);
	case OP_CAST: case OP_BITCAST:
		return check_convert(x, v);
	case OP_IOTA: case OP_SPLAT: case OP_LANE: case OP_SLIDE: case OP_HALF: case OP_WEAVE: case OP_JOIN: case OP_PICK: case OP_ANY:
		return check_lanes(x, v);
	case OP_VIEW:
		return check_view(x, v);
	case OP_LOAD:
		return check_access(x, v, 0);
	case OP_STORE:
		return check_store(x, v);
	case OP_FETCH:
		return check_fetch(x, v);
	case OP_DOT:
		return check_dot(x, v);
	case OP_ACQUIRE: case OP_COPY: case OP_WAIT: case OP_RELEASE: case OP_MMA: case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: case OP_TURN: case OP_ROLES:
		NEED(tir_inst(x->k, v)->type.dtype == DT_NONE && tir_inst(x->k, v)->type.lanes == 0, "has a type");
		return true; /* the rest: tir_verify_roles */
	case OP_PIECE: case OP_HELD: case OP_TAKE:
		NEED(tir_inst(x->k, v)->op != OP_PIECE || same_type(tir_inst(x->k, v)->type, tir_scalar(DT_F32)), "is no f32");
		return true;
	case OP_FAULT:
		return check_fault(x, v);
	case OP_FOR:
		return check_for(x, v);
	case OP_IF:
		NEED(same_type(operand(x, v, 0)->type, tir_scalar(DT_BOOL)), "the condition is no bool scalar");
		NEED(tir_inst(x->k, v)->type.dtype == DT_NONE, "has a type");
		return true;
	case OP_BLOCKARG:
		return check_blockarg(x, v, f->owner, f->next - 1);
	case OP_YIELD:
		return check_yield(x, v, f->owner, f->nth);
	case OP_RESULT:
		return check_result(x, v);
	case OP_NONE: case OP_IVAR: case OP_AXIS: case OP_DIM: case OP_ACC: case OP_TOUCHED: case OP_READ:
	case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ: case OP_ROOT: case OP_RAND: case OP_RANDN:
		break;
	}
	return fail(x, v, "no operation of the tile IR");
}

bool
tir_verify(const TirKernel *k, Arena *scratch, const char **error)
{
	Verify own = {.k = k, .scratch = scratch}, *x = &own;
	x->home = ARENA_ARRAY(scratch, uint32_t, k->inst.n + 1);
	x->open = ARENA_ARRAY(scratch, bool, k->region.n + 1);
	bool ok = check_header(x) && check_structure(x);
	Walk w;
	walk_init(&w, k, scratch);
	x->open[0] = true;
	ValId last = 0;
	for (WalkEvent e; ok && (e = walk_next(&w)) != WALK_END;) {
		if (e != WALK_INST) {
			x->open[w.region] = e == WALK_OPEN;
			continue;
		}
		if (w.value <= last)
			ok = fail(x, w.value, "stands after %%%u", last);
		last = w.value;
		ok = ok && check_scope(x, w.value) && check_inst(x, &w);
	}
	if (!ok)
		*error = x->error;
	return ok && tir_verify_roles(k, scratch, error) && tir_verify_handed(k, scratch, error);
}
