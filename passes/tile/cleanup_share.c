/* cleanup_share.c: constants and common values, see cleanup.h. A vector CONST has the same number in
 * every lane, so an operation on constants is one on numbers. */
#include "passes/tile/cleanup.h"
#include "ir/bugs.h"

#include <math.h>
#include <string.h>

#include "ir/tir_lanes.h"
#include "ir/tir_slot.h"

typedef struct {
	uint32_t *table;   /* hash -> ValId of the new kernel, 0: free */
	uint32_t mask;
	VEC(uint32_t) home; /* by ValId of the new kernel: the region it stands in */
	Arena *arena;
	bool changed;
} Share;

/* --- constants --- */

static uint64_t
slot_of(const TirInst *p)
{
	DType t = (DType)p->type.dtype;
	return dtype_is_float(t) ? slot_encode(t, p->imm.f) : (uint64_t)p->imm.i;
}

static int64_t
imm_of(DType t, uint64_t slot)
{
	int64_t imm;
	if (!dtype_is_float(t))
		return slot_wrap(t, (int64_t)slot);
	double v = slot_decode(t, slot);
	memcpy(&imm, &v, sizeof imm);
	return imm;
}

static bool
is_nan_const(const TirInst *p)
{
	return dtype_is_float((DType)p->type.dtype) && isnan(p->imm.f);
}

/* Whether p on these operands is a constant, and which. The bits of a NaN are not known. */
static bool
fold(const TirKernel *to, const TirInst *p, const ValId *arg, int64_t *imm)
{
	uint64_t in[3] = {0}, out = 0;
	if (p->narg == 0 || p->narg > 3)
		return false;
	for (unsigned n = 0; n < p->narg; n++) {
		if (tir_inst(to, arg[n])->op != OP_CONST)
			return false;
		in[n] = slot_of(tir_inst(to, arg[n]));
	}
	const TirInst *first = tir_inst(to, arg[0]);
	if (p->op == OP_BITCAST && p->type.lanes != first->type.lanes)
		return false;
	DType from = (DType)first->type.dtype, t = (DType)p->type.dtype;
	LaneFn *f = lane_function((Op)p->op, from);
	if (p->op == OP_SPLAT || p->op == OP_LANE)
		out = in[0];
	else if (p->op == OP_CAST)
		out = slot_cast(t, from, in[0]);
	else if (p->op == OP_BITCAST && !is_nan_const(first)) /* a signed slot has more bits than a narrow float's */
		out = dtype_is_float(t) ? in[0] & UINT64_MAX >> (64 - dtype_info[t].bits) : (uint64_t)slot_wrap(t, (int64_t)in[0]);
	else if (f && !(op_info[p->op].flags & F_MATH))
		f(&out, &in[0], &in[1], &in[2], 1);
	else
		return false;
	*imm = imm_of(t, out);
	return true;
}

/* --- equal values --- */

static uint32_t
hash_of(const TirInst *p, const ValId *arg)
{
	uint64_t h = ((uint64_t)p->op << 32 | (uint64_t)p->type.dtype << 24 | p->type.lanes) ^
	             (uint64_t)p->imm.i * UINT64_C(0x9e3779b97f4a7c15);
	for (unsigned n = 0; n < p->narg; n++)
		h = ((h ^ arg[n]) * UINT64_C(0xff51afd7ed558ccd)) ^ h >> 29;
	return (uint32_t)(h ^ h >> 32);
}

static bool
is_same(const TirKernel *to, ValId v, const TirInst *p, const ValId *arg)
{
	const TirInst *q = tir_inst(to, v);
	if (q->op != p->op || q->type.dtype != p->type.dtype || q->type.lanes != p->type.lanes ||
	    q->imm.i != p->imm.i || q->narg != p->narg)
		return false;
	return p->narg == 0 || memcmp(&to->arg.at[q->arg], arg, p->narg * sizeof *arg) == 0;
}

static bool
in_scope(const Share *s, const TirKernel *to, ValId v)
{
	for (uint32_t n = 0; n < to->open.n; n++)
		if (to->open.at[n] == s->home.at[v])
			return true;
	return false;
}

/* The value that p has on these operands: one known already, else a new one. */
static ValId
value_of(Share *s, TirKernel *to, const TirInst *p, const ValId *arg)
{
	uint32_t at = hash_of(p, arg) & s->mask;
	while (s->table[at] && !is_same(to, s->table[at], p, arg))
		at = (at + 1) & s->mask;
	ValId known = s->table[at];
	if (known && (in_scope(s, to, known) || BUG(shared_from_closed_region))) {
		s->changed = true;
		return known;
	}
	/* Where its region is closed, this one takes its place. */
	ValId made = tir_emit(to, (Op)p->op, p->type, p->imm.i, arg, p->narg);
	s->table[at] = made;
	vec_grow(s->arena, &s->home, made + 1 - s->home.n);
	s->home.at[made] = to->open.at[to->open.n - 1];
	return made;
}

static ValId
emit_shared(void *user, TirKernel *to, const TirInst *p, const ValId *arg)
{
	return value_of(user, to, p, arg);
}

/* --- limits --- */

/* The operation that this selection is, of a number and a constant that it is cut off at; OP_NONE: it is none. A NaN is no less and
 * stays where the number is what comes otherwise; zeros are told apart by MIN and MAX alone. Only a GPU has both in one instruction. */
static Op
limit_of(const TirKernel *to, const TirInst *p, const ValId *arg)
{
	if (to->form != TIR_SPREAD || p->op != OP_SELECT || p->type.dtype != DT_F32 || p->type.lanes || tir_inst(to, arg[0])->op != OP_LT)
		return OP_NONE;
	const TirInst *limit = tir_inst(to, BUG(limit_for_nan) && tir_inst(to, arg[1])->op != OP_CONST ? arg[2] : arg[1]);
	if (limit->op != OP_CONST || limit->imm.f == 0 || is_nan_const(limit))
		return OP_NONE;
	ValId a = tir_arg(to, arg[0], 0), b = tir_arg(to, arg[0], 1);
	return arg[1] == a && arg[2] == b ? OP_MIN : arg[1] == b && arg[2] == a ? OP_MAX : OP_NONE;
}

static ValId
share(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	Share *s = user;
	const TirInst *p = tir_inst(from, v);
	if (p->op == OP_FAULT) /* said once, a task's fault is known */
		return value_of(s, to, p, arg);
	if (!cleanup_is_pure((Op)p->op))
		return tir_copy_inst(to, from, v, arg);
	if (p->op == OP_SELECT && tir_inst(to, arg[0])->op == OP_CONST) {
		s->changed = true;
		return arg[tir_inst(to, arg[0])->imm.i ? 1 : 2];
	}
	Op limit = limit_of(to, p, arg);
	if (limit != OP_NONE) {
		s->changed = true;
		return value_of(s, to, &(TirInst){.op = limit, .type = p->type, .narg = 2}, (ValId[]){arg[1], arg[2]});
	}
	TirInst number = {.op = OP_CONST, .type = p->type};
	ValId rounded;
	bool changed = s->changed; /* a sum found again is none */
	if (cleanup_split_multiple(to, p, arg, emit_shared, s, &rounded, &number.imm.i)) {
		s->changed = changed || p->op == OP_IMOD || rounded != arg[0];
		return p->op == OP_IMOD ? value_of(s, to, &number, NULL) : value_of(s, to, p, (ValId[]){rounded, arg[1]});
	}
	if (!fold(to, p, arg, &number.imm.i))
		return value_of(s, to, p, arg);
	s->changed = true;
	return value_of(s, to, &number, NULL);
}

const TirKernel *
cleanup_share(const TirKernel *k, Arena *a, bool renumber)
{
	Share s = {.arena = a, .mask = 63, .changed = renumber};
	while (s.mask < 2 * k->inst.n)
		s.mask = 2 * s.mask + 1;
	s.table = ARENA_ARRAY(a, uint32_t, s.mask + 1);
	const TirKernel *to = tir_rewrite(k, a, share, &s);
	return s.changed ? to : k;
}
