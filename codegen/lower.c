/* lower.c: one TIR kernel to one LLVM function: its signature, its regions as blocks with phis, and
 * the dispatch of instructions to the other lower*.c files. The kernel has passed kernel_legal and
 * tir_verify. */
#include "codegen/lower.h"

#include <string.h>

LLVMTypeRef
lower_dtype(Lower *l, DType t)
{
	if (t == DT_F32)
		return LLVMFloatTypeInContext(l->ctx);
	if (t == DT_F64)
		return LLVMDoubleTypeInContext(l->ctx);
	if (t == DT_BOOL)
		return LLVMInt1TypeInContext(l->ctx);
	unsigned bits = dtype_info[t].bits;
	return LLVMIntTypeInContext(l->ctx, bits < 8 ? 8 : bits);
}

LLVMTypeRef
lower_type(Lower *l, TirType t)
{
	LLVMTypeRef e = lower_dtype(l, (DType)t.dtype);
	return t.lanes ? LLVMVectorType(e, t.lanes) : e;
}

Val
lower_splat(Lower *l, Val scalar, unsigned lanes)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	LLVMTypeRef vec = LLVMVectorType(LLVMTypeOf(scalar), lanes);
	Val one = LLVMBuildInsertElement(l->b, LLVMGetPoison(vec), scalar, LLVMConstInt(i32, 0, 0), "");
	return LLVMBuildShuffleVector(l->b, one, LLVMGetPoison(vec),
	                              LLVMConstNull(LLVMVectorType(i32, lanes)), "");
}

Val
lower_int(Lower *l, LLVMTypeRef t, uint64_t c)
{
	if (LLVMGetTypeKind(t) != LLVMVectorTypeKind)
		return LLVMConstInt(t, c, 0);
	unsigned n = LLVMGetVectorSize(t);
	Val *lane = ARENA_ARRAY(l->arena, Val, n);
	for (unsigned i = 0; i < n; i++)
		lane[i] = LLVMConstInt(LLVMGetElementType(t), c, 0);
	return LLVMConstVector(lane, n);
}

Val
lower_call(Lower *l, const char *intrinsic, LLVMTypeRef *overload, unsigned noverload, const Val *arg,
           unsigned narg)
{
	unsigned id = LLVMLookupIntrinsicID(intrinsic, strlen(intrinsic));
	if (!id)
		bug(l->arena, "LLVM has no intrinsic %s", intrinsic);
	Val f = LLVMGetIntrinsicDeclaration(l->module, id, overload, noverload);
	Val own[6];
	for (unsigned n = 0; n < narg; n++)
		own[n] = arg[n];
	return LLVMBuildCall2(l->b, LLVMGlobalGetValueType(f), f, own, narg, "");
}

Val
lower_lanes_from(Lower *l, Val x, Val beyond, unsigned at, unsigned n)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	unsigned have = LLVMGetVectorSize(LLVMTypeOf(x));
	Val number[TIR_MAX_LANES];
	for (unsigned k = 0; k < n; k++)
		number[k] = LLVMConstInt(i32, at + k < have ? at + k : have, 0);
	return LLVMBuildShuffleVector(l->b, x, beyond, LLVMConstVector(number, n), "");
}

Val
lower_put_lanes(Lower *l, Val all, Val part, unsigned at, unsigned n)
{
	Val number[TIR_MAX_LANES], r = lower_lanes_from(l, part, LLVMGetPoison(LLVMTypeOf(part)), 0, n);
	for (unsigned k = 0; k < n; k++)
		number[k] = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), k < at ? k : n + (k - at) % n, 0);
	return all ? LLVMBuildShuffleVector(l->b, all, r, LLVMConstVector(number, n), "") : r;
}

static LLVMBasicBlockRef
new_block(Lower *l)
{
	return LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
}

/* --- regions --- */

/* Lowers a region with these block arguments; the operands of its YIELD go to out. */
static void
lower_region(Lower *l, uint32_t region, const Val *block_arg, Val *out)
{
	const TirRegion *r = &l->k->region.at[region];
	const Val *outer = l->block_arg;
	bool waits = l->target->arch == ARCH_NVPTX && lower_may_wait(l, r);
	if (l->target->arch == ARCH_NVPTX && !waits)
		lower_hold_region(l, r);
	for (uint32_t i = 0; i < r->inst.n; i++) {
		ValId v = r->inst.at[i];
		const TirInst *x = lower_inst(l, v);
		l->block_arg = block_arg;
		if (l->val[v] || (l->target->arch == ARCH_NVPTX && lower_waits(l, r, i, waits)))
			continue;
		lower_hold(l, v);
		if (!lower_stream_passes(l, v))
			lower_stream_flush(l);
		if (x->op == OP_YIELD) {
			for (uint32_t n = 0; n < x->narg; n++)
				out[n] = lower_arg(l, v, n);
			continue;
		}
		if (l->target->arch != ARCH_NVPTX || !lower_posted(l, r, i))
			l->val[v] = lower_value(l, v);
	}
	lower_stream_flush(l);
	l->block_arg = outer;
}

static uint32_t
yield_count(const TirKernel *k, uint32_t region)
{
	const TirRegion *r = &k->region.at[region];
	if (r->inst.n == 0)
		return 0;
	const TirInst *last = &k->inst.at[r->inst.at[r->inst.n - 1]];
	return last->op == OP_YIELD ? last->narg : 0;
}

static bool
is_const_one(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return x->op == OP_CONST && x->imm.i == 1;
}

/* Whether another turn follows index: without overflow even where index + step has it. */
static Val
another_turn(Lower *l, ValId v, Val index, Val next)
{
	Val hi = lower_arg(l, v, 1), step = lower_arg(l, v, 2);
	if (is_const_one(l, lower_arg_id(l, v, 2)))
		return LLVMBuildICmp(l->b, LLVMIntSLT, next, hi, "");
	Val left = LLVMBuildSub(l->b, hi, index, ""); /* > 0, as unsigned */
	return LLVMBuildICmp(l->b, LLVMIntUGT, left, step, "");
}

/* Whether all that a region does is to load, compute without branches, and store. */
static bool
is_straight(const Lower *l, const TirRegion *r)
{
	for (uint32_t i = 0; i < r->inst.n; i++) {
		const TirInst *x = lower_inst(l, r->inst.at[i]);
		if (x->op == OP_FOR && x->imm.i == TIR_ROLLED && is_straight(l, &l->k->region.at[x->region]))
			continue;
		if (x->nregion || x->op == OP_BARRIER || x->op == OP_SHUFFLE || lower_is_quotient(l, r->inst.at[i]))
			return false;
	}
	return true;
}

/* Whether it goes from the task to the next one, where there is a loop over tasks already: the assembler unrolls loops that go
 * round once, where they are short. What branches it places worse without this one (a chain of operations with quotients took
 * 7 % longer, an addition of transposes 3 %), but where its step is TASK_STEP: there what such a loop keeps has no registers. */
static bool
is_own_task(const Lower *l, ValId v)
{
	bool says = lower_inst(l, lower_arg_id(l, v, 2))->op == OP_TASK_STEP;
	if (!l->one_task || (!says && !is_straight(l, &l->k->region.at[lower_inst(l, v)->region])))
		return false;
	return lower_inst(l, lower_arg_id(l, v, 0))->op == OP_TASK_LO && lower_inst(l, lower_arg_id(l, v, 1))->op == OP_TASK_HI;
}

/* As what loop x carries it. In one that stays rolled a GPU's lanes of less than a register are in words, so that what takes them apart
 * in the loop is combined with them as with what is loaded. In others a load would become one of the turn that wants it. */
static Val
as_carried(Lower *l, const TirInst *x, Val v)
{
	LLVMTypeRef t = LLVMTypeOf(v);
	if (l->target->arch != ARCH_NVPTX || x->imm.i != TIR_ROLLED || LLVMGetTypeKind(t) != LLVMVectorTypeKind)
		return v;
	LLVMTypeRef lane = LLVMGetElementType(t), word = LLVMInt32TypeInContext(l->ctx);
	LLVMTypeKind kind = LLVMGetTypeKind(lane);
	unsigned bits = kind == LLVMIntegerTypeKind ? LLVMGetIntTypeWidth(lane) : kind == LLVMHalfTypeKind || kind == LLVMBFloatTypeKind ? 16 : 32;
	bool words = (bits == 8 || bits == 16) && LLVMGetVectorSize(t) * bits % 32 == 0;
	return words ? LLVMBuildBitCast(l->b, v, LLVMVectorType(word, LLVMGetVectorSize(t) * bits / 32), "") : v;
}

static void
lower_for(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	unsigned n = x->narg - 3;
	Val *phi = ARENA_ARRAY(l->arena, Val, n + 1), *next = ARENA_ARRAY(l->arena, Val, n);
	if (is_own_task(l, v)) {
		for (unsigned i = 0; i <= n; i++)
			phi[i] = lower_arg(l, v, i ? i + 2 : 0);
		lower_region(l, x->region, phi, next);
		l->result[v] = next;
		return;
	}
	Val *after = ARENA_ARRAY(l->arena, Val, n), *first = ARENA_ARRAY(l->arena, Val, n), *carried = ARENA_ARRAY(l->arena, Val, n + 1);
	for (unsigned i = 0; i < n; i++)
		first[i] = as_carried(l, x, lower_arg(l, v, i + 3));
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), body = new_block(l), exit = new_block(l);
	Val some = LLVMBuildICmp(l->b, LLVMIntSLT, lower_arg(l, v, 0), lower_arg(l, v, 1), "");
	LLVMBuildCondBr(l->b, some, body, exit);
	LLVMPositionBuilderAtEnd(l->b, body);
	carried[0] = phi[0] = LLVMBuildPhi(l->b, lower_i64(l), "");
	for (unsigned i = 0; i < n; i++)
		carried[i + 1] = LLVMBuildPhi(l->b, LLVMTypeOf(first[i]), "");
	for (unsigned i = 0; i < n; i++)
		phi[i + 1] = LLVMBuildBitCast(l->b, carried[i + 1], LLVMTypeOf(lower_arg(l, v, i + 3)), "");
	lower_region(l, x->region, phi, next);
	for (unsigned i = 0; i < n; i++)
		next[i] = as_carried(l, x, next[i]);
	Val index = LLVMBuildAdd(l->b, phi[0], lower_arg(l, v, 2), "");
	Val more = another_turn(l, v, phi[0], index);
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	lower_keep_rolled(l, v, LLVMBuildCondBr(l->b, more, body, exit));
	Val lo = lower_arg(l, v, 0);
	LLVMAddIncoming(phi[0], (Val[]){lo, index}, (LLVMBasicBlockRef[]){before, latch}, 2);
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (unsigned i = 0; i < n; i++) {
		Val in[2] = {first[i], next[i]};
		LLVMAddIncoming(carried[i + 1], in, (LLVMBasicBlockRef[]){before, latch}, 2);
		after[i] = LLVMBuildPhi(l->b, LLVMTypeOf(in[0]), "");
		LLVMAddIncoming(after[i], in, (LLVMBasicBlockRef[]){before, latch}, 2);
	}
	for (unsigned i = 0; i < n; i++)
		after[i] = LLVMBuildBitCast(l->b, after[i], LLVMTypeOf(lower_arg(l, v, i + 3)), "");
	l->result[v] = after;
}

/* Of a GPU, an arm that is one store: where it goes is computed before, or each of several such in a row would do so behind its
 * condition. */
static void
tell_address(Lower *l, const TirRegion *arm)
{
	const TirInst *x = lower_inst(l, arm->inst.at[0]);
	bool only = arm->inst.n == 2 && x->op == OP_STORE && !(x->imm.i & TIR_MASKED);
	if (!only || l->target->arch != ARCH_NVPTX)
		return;
	const TirBuffer *b = &l->k->buffer.at[lower_inst(l, lower_arg_id(l, lower_arg_id(l, arm->inst.at[0], 0), 0))->imm.i];
	if (!b->wide && dtype_info[b->dtype].bits >= 8)
		lower_tell_address(l, arm->inst.at[0]);
}

static void
lower_if(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	unsigned n = yield_count(l->k, x->region);
	Val *value[2], *after = ARENA_ARRAY(l->arena, Val, n);
	LLVMBasicBlockRef arm[2] = {new_block(l), new_block(l)}, exit = new_block(l), end[2];
	tell_address(l, &l->k->region.at[x->region]);
	LLVMBuildCondBr(l->b, lower_arg(l, v, 0), arm[0], arm[1]);
	for (unsigned i = 0; i < 2; i++) {
		value[i] = ARENA_ARRAY(l->arena, Val, n);
		LLVMPositionBuilderAtEnd(l->b, arm[i]);
		if (!lower_apart(l, &l->k->region.at[x->region + i], value[i]))
			lower_region(l, x->region + i, NULL, value[i]);
		end[i] = LLVMGetInsertBlock(l->b);
		LLVMBuildBr(l->b, exit);
	}
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (unsigned i = 0; i < n; i++) {
		after[i] = LLVMBuildPhi(l->b, LLVMTypeOf(value[0][i]), "");
		LLVMAddIncoming(after[i], (Val[]){value[0][i], value[1][i]}, end, 2);
	}
	l->result[v] = after;
}

/* --- leaves --- */

static Val
lower_iota(Lower *l, TirType t, unsigned step)
{
	LLVMTypeRef e = lower_dtype(l, (DType)t.dtype);
	Val *lane = ARENA_ARRAY(l->arena, Val, t.lanes + 1u);
	for (unsigned i = 0; i < t.lanes; i++)
		lane[i] = LLVMConstInt(e, step ? i & ~(step - 1) : i, 0);
	return t.lanes ? LLVMConstVector(lane, t.lanes) : LLVMConstInt(e, 0, 0);
}

static Val
lower_join(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	Val all = lower_join_fp8(l, v);
	if (all)
		return all;
	all = LLVMGetPoison(lower_type(l, x->type));
	for (unsigned k = 0; k < x->narg; k++)
		all = LLVMBuildInsertElement(l->b, all, lower_arg(l, v, k), LLVMConstInt(lower_i64(l), k, 0), "");
	return all;
}

static DType
operand_dtype(const Lower *l, ValId v)
{
	return (DType)lower_inst(l, lower_arg_id(l, v, 0))->type.dtype;
}

static Val
cast_of(Lower *l, ValId v)
{
	Val bounded = lower_bounded(l, v);
	return bounded ? bounded : lower_cast(l, lower_arg(l, v, 0), operand_dtype(l, v), lower_inst(l, v)->type);
}

Val
lower_value(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	switch ((Op)x->op) {
	case OP_CONST: return lower_const(l, x);
	case OP_SCALAR: return l->scalar[x->imm.i];
	case OP_TASK_LO: return l->task_lo;
	case OP_TASK_HI: return l->task_hi;
	case OP_BLOCKARG: return l->block_arg[x->imm.i];
	case OP_RESULT: return l->result[lower_arg_id(l, v, 0)][x->imm.i];
	case OP_IOTA: return lower_iota(l, x->type, (unsigned)x->imm.i);
	case OP_SPLAT: return lower_splat(l, lower_arg(l, v, 0), x->type.lanes);
	case OP_LANE: return lower_lane(l, v);
	case OP_SLIDE: return lower_slide(l, v);
	case OP_HALF: return lower_half(l, v);
	case OP_WEAVE: case OP_PICK: return x->op == OP_WEAVE ? lower_weave(l, v) : lower_pick(l, v);
	case OP_JOIN: case OP_ANY: return x->op == OP_JOIN ? lower_join(l, v) : lower_any(l, v);
	case OP_THREAD: return lower_inst(l, v)->imm.i ? lower_thread_anew(l) : lower_thread(l);
	case OP_SHUFFLE: return lower_shuffle(l, v);
	case OP_WARP_MMA: return lower_warp_mma(l, v);
	case OP_LOAD_MATRIX: case OP_STORE_MATRIX: case OP_ASYNC_COPY: case OP_ASYNC_WAIT: return lower_meanwhile(l, v);
	case OP_RANK: return lower_rank(l);
	case OP_BARRIER:
		if (l->k->channel.n)
			lower_role_barrier(l, x->imm.i);
		else if (v != l->last)
			lower_barrier(l, x->imm.i);
		return NULL;
	case OP_TASK_STEP: return l->task_step;
	case OP_ACQUIRE: lower_acquire(l, v); return NULL;
	case OP_COPY: lower_copy(l, v); return NULL;
	case OP_WAIT: lower_wait(l, v); return NULL;
	case OP_RELEASE: lower_release(l, v); return NULL;
	case OP_MMA: lower_mma(l, v); return NULL;
	case OP_PRODUCT: case OP_KEEP: case OP_PUT: case OP_SETTLE: lower_registers(l, v); return NULL;
	case OP_TURN: lower_turn(l, v); return NULL;
	case OP_PIECE: case OP_HELD: case OP_TAKE: return lower_piece(l, v);
	case OP_ROLES: lower_roles(l, v); return NULL;
	case OP_CAST: return cast_of(l, v);
	case OP_BITCAST: return lower_bitcast(l, lower_arg(l, v, 0), operand_dtype(l, v), x->type);
	case OP_ADD: return lower_plain(l, v, LLVMAdd, LLVMFAdd);
	case OP_SUB: return lower_plain(l, v, LLVMSub, LLVMFSub);
	case OP_MUL: return lower_plain(l, v, LLVMMul, LLVMFMul);
	case OP_FDIV: return lower_is_middle(l, v) ? lower_middle_quotient(l, v) : lower_plain(l, v, LLVMFDiv, LLVMFDiv);
	case OP_AND: case OP_BAND: return lower_plain(l, v, LLVMAnd, LLVMAnd);
	case OP_OR: case OP_BOR: return lower_plain(l, v, LLVMOr, LLVMOr);
	case OP_BXOR: return lower_plain(l, v, LLVMXor, LLVMXor);
	case OP_NOT: return LLVMBuildNot(l->b, lower_arg(l, v, 0), "");
	case OP_IDIV: case OP_IMOD: return lower_divide(l, v, x->op == OP_IDIV);
	case OP_SHL: case OP_SHR: return lower_shift(l, v, x->op == OP_SHL);
	case OP_NEG: return lower_negate(l, v);
	case OP_ABS: return lower_abs(l, v);
	case OP_SIGN: return lower_sign(l, v);
	case OP_MIN: case OP_MAX: return lower_extreme(l, v, x->op == OP_MIN);
	case OP_FLOOR: case OP_CEIL: case OP_ROUND: case OP_TRUNC: return lower_round(l, v);
	case OP_SQRT: return lower_intrinsic(l, v, "llvm.sqrt");
	case OP_FMA: return lower_intrinsic(l, v, "llvm.fma");
	case OP_SCALE: return lower_scale(l, v);
	case OP_EX2: case OP_RCP: case OP_LG2: case OP_NEAR_DIV: case OP_NEAR_SQRT: case OP_NEAR_RSQRT: case OP_NEAR_TANH: case OP_NEAR_SIN: case OP_NEAR_COS: case OP_FLUSH_MUL: return lower_unit(l, v);
	case OP_EQ: case OP_NE: case OP_LT: case OP_LE: return lower_compare(l, v);
	case OP_ISNAN: return lower_isnan(l, v);
	case OP_SELECT:
		return LLVMBuildSelect(l->b, lower_arg(l, v, 0), lower_arg(l, v, 1), lower_arg(l, v, 2), "");
	case OP_LOAD: return lower_tile_load(l, v);
	case OP_STORE: lower_tile_store(l, v); return NULL;
	case OP_FETCH: lower_fetch(l, v); return NULL;
	case OP_DOT: lower_dot(l, v); return NULL;
	case OP_FAULT: lower_fault(l, v); return NULL;
	case OP_FOR: lower_for(l, v); return NULL;
	case OP_IF: lower_if(l, v); return NULL;
	case OP_VIEW: return lower_view(l, v);
	case OP_BUFFER: return NULL; /* read where it is used */
	/* kernel_legal has refused these, and lower_region takes the yields */
	case OP_NONE: case OP_YIELD:
	case OP_POW: case OP_RSQRT: case OP_EXP: case OP_EXP2: case OP_EXPM1: case OP_LOG:
	case OP_LOG2: case OP_LOG1P: case OP_TANH: case OP_ERF: case OP_SIN: case OP_COS:
	case OP_IVAR: case OP_AXIS: case OP_DIM: case OP_ACC: case OP_TOUCHED: case OP_READ:
	case OP_CPLX: case OP_RE: case OP_IM: case OP_CONJ: case OP_ROOT: case OP_RAND:
	case OP_RANDN:
		break;
	}
	bug(l->arena, "lower: '%s' was taken for legal", op_info[x->op].text);
}

/* --- the function --- */

void
lower_attribute(Lower *l, const char *name, const char *value)
{
	LLVMAttributeRef s = LLVMCreateStringAttribute(l->ctx, name, (unsigned)strlen(name), value,
	                                               (unsigned)strlen(value));
	LLVMAddAttributeAtIndex(l->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, s);
}

void
lower_flag(Lower *l, const char *name, uint64_t value)
{
	unsigned kind = LLVMGetEnumAttributeKindForName(name, strlen(name));
	LLVMAddAttributeAtIndex(l->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, LLVMCreateEnumAttribute(l->ctx, kind, value));
}

void
lower_function_attributes(Lower *l)
{
	if (l->target->arch == ARCH_X86)
		lower_attribute(l, "tune-cpu", l->target->tune);
	if (l->target->arch == ARCH_X86 && target_has(l->target, FEATURE_AVX512F))
		lower_attribute(l, "prefer-vector-width", "512");
	lower_flag(l, "nounwind", 0);
	lower_attribute(l, "no-builtins", "");
}

static void
new_function(Lower *l, const char *symbol)
{
	LLVMTypeRef ptr = LLVMPointerTypeInContext(l->ctx, 0), i64 = lower_i64(l);
	LLVMTypeRef param[5] = {ptr, ptr, i64, i64, ptr};
	l->fn = LLVMAddFunction(l->module, symbol,
	                        LLVMFunctionType(LLVMVoidTypeInContext(l->ctx), param, 5, 0));
	LLVMPositionBuilderAtEnd(l->b, new_block(l));
	l->task_lo = LLVMGetParam(l->fn, 2);
	l->task_hi = LLVMGetParam(l->fn, 3);
	l->status = LLVMGetParam(l->fn, 4);
}

static Val
load_slot(Lower *l, Val array, uint32_t n, LLVMTypeRef t)
{
	Val at = LLVMConstInt(lower_i64(l), n, 0);
	Val p = LLVMBuildGEP2(l->b, lower_i64(l), array, &at, 1, "");
	Val v = LLVMBuildLoad2(l->b, t, p, "");
	LLVMSetAlignment(v, 8);
	return v;
}

Val
lower_scalar(Lower *l, uint32_t n, Val word)
{
	DType t = l->k->scalar.at[n].dtype;
	LLVMTypeRef i8 = LLVMInt8TypeInContext(l->ctx);
	if (t == DT_BOOL)
		return LLVMBuildICmp(l->b, LLVMIntNE, LLVMBuildTrunc(l->b, word, i8, ""),
		                     LLVMConstInt(i8, 0, 0), "");
	unsigned bits = dtype_info[t].bits;
	Val v = LLVMBuildTrunc(l->b, word, LLVMIntTypeInContext(l->ctx, bits), "");
	if (bits < 8)
		return t == DT_I4 ? LLVMBuildSExt(l->b, v, i8, "") : LLVMBuildZExt(l->b, v, i8, "");
	return LLVMBuildBitCast(l->b, v, lower_dtype(l, t), "");
}

void
lower_role(Lower *l, uint32_t region)
{
	lower_region(l, region, NULL, NULL);
}

void
lower_body(Lower *l)
{
	lower_region(l, 0, NULL, NULL);
}

static void
lower_cpu_kernel(Lower *l, const char *symbol)
{
	new_function(l, symbol);
	for (uint32_t n = 0; n < l->k->buffer.n; n++)
		l->buffer[n] = load_slot(l, LLVMGetParam(l->fn, 0), n, LLVMPointerTypeInContext(l->ctx, 0));
	for (uint32_t n = 0; n < l->k->scalar.n; n++)
		l->scalar[n] = lower_scalar(l, n, load_slot(l, LLVMGetParam(l->fn, 1), n, lower_i64(l)));
	lower_tiles_begin(l);
	lower_body(l);
	lower_stream_end(l);
	lower_tiles_end(l);
}

void
lower_kernel(Arena *a, LLVMModuleRef m, LLVMBuilderRef b, const Target *t, const TirKernel *k,
             const char *symbol, bool serial)
{
	Lower l = {.arena = a, .ctx = LLVMGetModuleContext(m), .module = m, .b = b, .target = t, .k = k};
	l.val = ARENA_ARRAY(a, Val, k->inst.n);
	l.result = ARENA_ARRAY(a, Val *, k->inst.n);
	l.buffer = ARENA_ARRAY(a, Val, k->buffer.n);
	l.scalar = ARENA_ARRAY(a, Val, k->scalar.n);
	if (t->arch == ARCH_NVPTX)
		lower_nvptx_kernel(&l, symbol, serial);
	else
		lower_cpu_kernel(&l, symbol);
	lower_function_attributes(&l);
	LLVMBuildRetVoid(l.b);
}
