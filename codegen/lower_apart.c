/* lower_apart.c: on a processor, an arm of an IF that computes much and touches no memory is a function of its own, and
 * equal arms are one. Such an arm is there because it is seldom taken; written out at every place, the reduction of huge
 * angles was nine tenths of what a sine took to compile.
 *
 * Arms are equal if they have the same operations on the same values of their own, on constants of equal bits, and on
 * values from outside of equal types, by the order in which they first occur: then what is made for one computes the
 * other. Those values, and the results, are handed over in memory of the caller. A call is cold, so that registers are
 * saved where it is made and nowhere else. */
#include "codegen/lower.h"

#include <string.h>

enum { WORTH_IT = 32 /* operations that are no constants: more than handing over takes */ };

typedef VEC(int64_t) Words;

/* A function. */
typedef struct {
	Words key;
	Val fn, room; /* room: in the caller's frame */
	LLVMTypeRef layout, signature;
} Apart;

struct LowerApart {
	VEC(Apart) made;
	uint32_t *number; /* by ValId, of the arm in hand: 1 + its place in `all`, or in `from` beyond OUTSIDE; 0: none */
};

enum { OUTSIDE = 1u << 30 };

/* An arm. */
typedef struct {
	VEC(ValId) all;  /* what it computes, in order, constants from outside before their users */
	VEC(ValId) from; /* what it takes from outside */
	ValId yield;
	Words key;
} Arm;

static bool
computes_much(const Lower *l, const TirRegion *r)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < r->inst.n; i++) {
		const TirInst *x = lower_inst(l, r->inst.at[i]);
		if (x->op != OP_CONST && x->op != OP_YIELD && op_info[x->op].cls != CLASS_MAP)
			return false;
		n += x->op != OP_CONST;
	}
	return n >= WORTH_IT;
}

static void
add_inst(Lower *l, Arm *m, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	int64_t bits;
	memcpy(&bits, &x->imm, sizeof bits);
	vec_push(l->arena, &m->all, v);
	l->apart->number[v] = m->all.n;
	vec_push(l->arena, &m->key, x->op);
	vec_push(l->arena, &m->key, (int64_t)x->type.dtype << 32 | x->type.lanes);
	vec_push(l->arena, &m->key, bits);
}

static void
add_operand(Lower *l, Arm *m, ValId v)
{
	uint32_t *number = &l->apart->number[v];
	if (!*number && lower_inst(l, v)->op == OP_CONST)
		add_inst(l, m, v);
	if (!*number) {
		TirType t = lower_inst(l, v)->type;
		vec_push(l->arena, &m->from, v);
		*number = OUTSIDE + m->from.n;
		vec_push(l->arena, &m->key, -1 - ((int64_t)t.dtype << 32 | t.lanes));
	}
}

/* Its operands first, as far as they are new. */
static void
add(Lower *l, Arm *m, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	for (uint32_t n = 0; n < x->narg; n++)
		add_operand(l, m, lower_arg_id(l, v, n));
	if (x->op == OP_YIELD)
		m->yield = v;
	else
		add_inst(l, m, v);
	for (uint32_t n = 0; n < x->narg; n++)
		vec_push(l->arena, &m->key, l->apart->number[lower_arg_id(l, v, n)]);
}

static void
read_arm(Lower *l, const TirRegion *r, Arm *m)
{
	for (uint32_t i = 0; i < r->inst.n; i++)
		add(l, m, r->inst.at[i]);
	for (uint32_t i = 0; i < m->all.n; i++)
		l->apart->number[m->all.at[i]] = 0;
	for (uint32_t i = 0; i < m->from.n; i++)
		l->apart->number[m->from.at[i]] = 0;
}

/* --- values in memory: lanes of bool, which have no bytes there, are words --- */

static bool
is_bools(TirType t)
{
	return t.dtype == DT_BOOL;
}

static LLVMTypeRef
held_type(Lower *l, TirType t)
{
	return lower_type(l, is_bools(t) ? (TirType){DT_I32, t.lanes} : t);
}

static Val
place(Lower *l, const Apart *f, Val room, uint32_t n)
{
	return LLVMBuildStructGEP2(l->b, f->layout, room, n, "");
}

static void
put(Lower *l, const Apart *f, Val room, uint32_t n, ValId v)
{
	TirType t = lower_inst(l, v)->type;
	Val x = l->val[v];
	LLVMBuildStore(l->b, is_bools(t) ? LLVMBuildSExt(l->b, x, held_type(l, t), "") : x, place(l, f, room, n));
}

static Val
take(Lower *l, const Apart *f, Val room, uint32_t n, ValId v)
{
	TirType t = lower_inst(l, v)->type;
	LLVMTypeRef type = held_type(l, t);
	Val x = LLVMBuildLoad2(l->b, type, place(l, f, room, n), "");
	return is_bools(t) ? LLVMBuildICmp(l->b, LLVMIntNE, x, LLVMConstNull(type), "") : x;
}

/* --- the function --- */

static void
declare(Lower *l, const Arm *m, Apart *f)
{
	uint32_t nout = lower_inst(l, m->yield)->narg;
	LLVMTypeRef *part = ARENA_ARRAY(l->arena, LLVMTypeRef, m->from.n + nout), ptr = LLVMPointerTypeInContext(l->ctx, 0);
	for (uint32_t n = 0; n < m->from.n; n++)
		part[n] = held_type(l, lower_inst(l, m->from.at[n])->type);
	for (uint32_t n = 0; n < nout; n++)
		part[m->from.n + n] = held_type(l, lower_inst(l, lower_arg_id(l, m->yield, n))->type);
	f->layout = LLVMStructTypeInContext(l->ctx, part, m->from.n + nout, 0);
	f->signature = LLVMFunctionType(LLVMVoidTypeInContext(l->ctx), &ptr, 1, 0);
	f->fn = LLVMAddFunction(l->module, "part", f->signature);
	LLVMSetLinkage(f->fn, LLVMPrivateLinkage);
}

static void
add_attributes(Lower *l)
{
	enum { ONLY_WHAT_ITS_ARGUMENTS_POINT_TO = 3 }; /* reads and writes it: llvm/Support/ModRef.h */
	lower_function_attributes(l);
	lower_flag(l, "noinline", 0);
	lower_flag(l, "willreturn", 0);
	lower_flag(l, "memory", ONLY_WHAT_ITS_ARGUMENTS_POINT_TO);
}

/* Values outside of the arm stand for the function's own while its body is made. */
static void
define(Lower *l, const Arm *m, const Apart *f)
{
	Val outer = l->fn, room = LLVMGetParam(f->fn, 0), *before = ARENA_ARRAY(l->arena, Val, m->from.n + m->all.n);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b);
	l->fn = f->fn;
	LLVMPositionBuilderAtEnd(l->b, LLVMAppendBasicBlockInContext(l->ctx, f->fn, ""));
	for (uint32_t n = 0; n < m->from.n; n++) {
		before[n] = l->val[m->from.at[n]];
		l->val[m->from.at[n]] = take(l, f, room, n, m->from.at[n]);
	}
	for (uint32_t n = 0; n < m->all.n; n++) {
		before[m->from.n + n] = l->val[m->all.at[n]];
		l->val[m->all.at[n]] = lower_value(l, m->all.at[n]);
	}
	for (uint32_t n = 0; n < lower_inst(l, m->yield)->narg; n++)
		put(l, f, room, m->from.n + n, lower_arg_id(l, m->yield, n));
	LLVMBuildRetVoid(l->b);
	add_attributes(l);
	for (uint32_t n = 0; n < m->from.n; n++)
		l->val[m->from.at[n]] = before[n];
	for (uint32_t n = 0; n < m->all.n; n++)
		l->val[m->all.at[n]] = before[m->from.n + n];
	l->fn = outer;
	LLVMPositionBuilderAtEnd(l->b, from);
}

/* Once in a frame, however often the function is called. */
static Val
make_room(Lower *l, LLVMTypeRef layout)
{
	LLVMBasicBlockRef at = LLVMGetInsertBlock(l->b), entry = LLVMGetEntryBasicBlock(l->fn);
	Val first = LLVMGetFirstInstruction(entry);
	if (first)
		LLVMPositionBuilderBefore(l->b, first);
	else
		LLVMPositionBuilderAtEnd(l->b, entry);
	Val room = LLVMBuildAlloca(l->b, layout, "");
	LLVMPositionBuilderAtEnd(l->b, at);
	return room;
}

static const Apart *
function_of(Lower *l, const Arm *m)
{
	for (uint32_t k = 0; k < l->apart->made.n; k++) {
		const Apart *f = &l->apart->made.at[k];
		if (f->key.n == m->key.n && memcmp(f->key.at, m->key.at, m->key.n * sizeof *m->key.at) == 0)
			return f;
	}
	Apart f = {.key = m->key};
	declare(l, m, &f);
	define(l, m, &f);
	f.room = make_room(l, f.layout);
	vec_push(l->arena, &l->apart->made, f);
	return &l->apart->made.at[l->apart->made.n - 1];
}

bool
lower_apart(Lower *l, const TirRegion *r, Val *out)
{
	if (l->target->arch != ARCH_X86 || !computes_much(l, r))
		return false;
	if (!l->apart) {
		l->apart = ARENA_NEW(l->arena, struct LowerApart);
		l->apart->number = ARENA_ARRAY(l->arena, uint32_t, l->k->inst.n);
	}
	Arm m = {.yield = 0};
	read_arm(l, r, &m);
	const Apart *f = function_of(l, &m);
	for (uint32_t n = 0; n < m.from.n; n++)
		put(l, f, f->room, n, m.from.at[n]);
	Val call = LLVMBuildCall2(l->b, f->signature, f->fn, (Val[]){f->room}, 1, "");
	unsigned cold = LLVMGetEnumAttributeKindForName("cold", 4);
	LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(l->ctx, cold, 0));
	for (uint32_t n = 0; n < lower_inst(l, m.yield)->narg; n++)
		out[n] = take(l, f, f->room, m.from.n + n, lower_arg_id(l, m.yield, n));
	return true;
}
