/* lower_cast.c: casts between the types that arithmetic is done in, bool and the 4-bit integers, and
 * reinterpretation of bits. Casts of narrow floats have been expanded before, but for those that the target has.
 *
 * Float to integer truncates and saturates, NaN gives 0 (llvm.fpto*i.sat); integer to integer wraps;
 * to bool is != 0; f64 to f32 rounds to nearest even, as LLVM does without flags. */
#include "codegen/lower.h"

static LLVMTypeRef
with_lanes(Lower *l, unsigned bits, unsigned lanes)
{
	LLVMTypeRef e = LLVMIntTypeInContext(l->ctx, bits);
	return lanes ? LLVMVectorType(e, lanes) : e;
}

/* The low nibble, extended to the held form of a 4-bit type. */
static Val
hold_nibble(Lower *l, Val a, DType t)
{
	LLVMTypeRef type = LLVMTypeOf(a);
	if (t != DT_I4)
		return LLVMBuildAnd(l->b, a, lower_int(l, type, 15), "");
	Val four = lower_int(l, type, 4);
	return LLVMBuildAShr(l->b, LLVMBuildShl(l->b, a, four, ""), four, "");
}

static Val
is_nonzero(Lower *l, Val a, DType from)
{
	if (dtype_is_float(from))
		return LLVMBuildFCmp(l->b, LLVMRealUNE, a, LLVMConstNull(LLVMTypeOf(a)), "");
	return LLVMBuildICmp(l->b, LLVMIntNE, a, LLVMConstNull(LLVMTypeOf(a)), "");
}

static Val
int_to_int(Lower *l, Val a, DType from, TirType to)
{
	DType t = (DType)to.dtype;
	LLVMTypeRef type = lower_type(l, to);
	unsigned have = dtype_info[from].bits < 8 ? 8 : dtype_info[from].bits;
	unsigned want = dtype_info[t].bits < 8 ? 8 : dtype_info[t].bits;
	if (l->target->arch == ARCH_NVPTX && want == 32 && have == 16 && dtype_info[from].kind == KIND_UINT && LLVMIsATruncInst(a) &&
	    LLVMTypeOf(LLVMGetOperand(a, 0)) == type) /* of a word (lower_lane): LLVM would take it apart again */
		return LLVMBuildAnd(l->b, LLVMGetOperand(a, 0), lower_int(l, type, 0xffff), "");
	if (from == DT_BOOL)
		return dtype_info[t].bits < 8 ? hold_nibble(l, LLVMBuildZExt(l->b, a, type, ""), t)
		                              : LLVMBuildZExt(l->b, a, type, "");
	Val r = a;
	if (want < have)
		r = LLVMBuildTrunc(l->b, a, type, "");
	else if (want > have && dtype_info[from].kind == KIND_INT)
		r = LLVMBuildSExt(l->b, a, type, "");
	else if (want > have)
		r = LLVMBuildZExt(l->b, a, type, "");
	return dtype_info[t].bits < 8 ? hold_nibble(l, r, t) : r;
}

/* Saturation to 4 bits goes through saturation to 8. */
static Val
float_to_int(Lower *l, Val a, TirType to)
{
	DType t = (DType)to.dtype;
	bool is_signed = dtype_info[t].kind == KIND_INT;
	LLVMTypeRef over[2] = {lower_type(l, to), LLVMTypeOf(a)};
	Val r = lower_call(l, is_signed ? "llvm.fptosi.sat" : "llvm.fptoui.sat", over, 2, &a, 1);
	if (dtype_info[t].bits >= 8)
		return r;
	uint64_t top = is_signed ? 7 : 15;
	r = lower_call(l, is_signed ? "llvm.smin" : "llvm.umin", over, 1,
	               (Val[]){r, lower_int(l, over[0], top)}, 2);
	if (is_signed)
		r = lower_call(l, "llvm.smax", over, 1, (Val[]){r, lower_int(l, over[0], (uint64_t)-8)}, 2);
	return r;
}

static LLVMTypeRef
half_float(Lower *l, DType t, unsigned lanes)
{
	LLVMTypeRef e = t == DT_F16 ? LLVMHalfTypeInContext(l->ctx) : LLVMBFloatTypeInContext(l->ctx);
	return lanes ? LLVMVectorType(e, lanes) : e;
}

/* The codes of a, in the low byte, and b. */
static Val
two_fp8(Lower *l, Val a, Val b, DType t)
{
	return lower_call(l, t == DT_F8E4M3 ? "llvm.nvvm.ff.to.e4m3x2.rn" : "llvm.nvvm.ff.to.e5m2x2.rn", NULL, 0, (Val[]){b, a}, 2);
}

static bool
is_to_e4m3(const Lower *l, ValId v)
{
	const TirInst *p = lower_inst(l, v);
	return p->op == OP_CAST && p->type.dtype == DT_F8E4M3 && lower_inst(l, lower_arg_id(l, v, 0))->type.dtype == DT_F32;
}

Val
lower_join_fp8(Lower *l, ValId v)
{
	unsigned n = lower_inst(l, v)->narg;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	if (l->target->arch != ARCH_NVPTX || n % 4)
		return NULL;
	for (unsigned k = 0; k < n; k++)
		if (!is_to_e4m3(l, lower_arg_id(l, v, k)))
			return NULL;
	Val all = LLVMGetPoison(LLVMVectorType(i32, n / 4));
	for (unsigned k = 0; k < n; k += 4) {
		Val pair[2];
		for (unsigned i = 0; i < 2; i++) {
			Val a = lower_arg(l, lower_arg_id(l, v, k + 2 * i), 0), b = lower_arg(l, lower_arg_id(l, v, k + 2 * i + 1), 0);
			pair[i] = LLVMBuildZExt(l->b, two_fp8(l, a, b, DT_F8E4M3), i32, "");
		}
		Val word = LLVMBuildOr(l->b, pair[0], LLVMBuildShl(l->b, pair[1], lower_int(l, i32, 16), ""), "");
		all = LLVMBuildInsertElement(l->b, all, word, lower_int(l, lower_i64(l), k / 4), "");
	}
	return LLVMBuildBitCast(l->b, all, LLVMVectorType(LLVMInt8TypeInContext(l->ctx), n), "");
}

static bool
is_made_by(const Lower *l, ValId v, Op op, DType t)
{
	return lower_inst(l, v)->op == op && lower_inst(l, v)->type.dtype == t && !lower_inst(l, v)->type.lanes;
}

/* What was rounded to bf16 and is wanted as f32 again, which has its bits in the upper half: as the upper one of two that
 * a thread rounds at once, the other one being 0. That takes less than to round one, and no half is moved. */
Val
lower_rounded_bf16(Lower *l, ValId v)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	if (l->target->arch != ARCH_NVPTX || !is_made_by(l, v, OP_SHL, DT_U32))
		return NULL;
	const TirInst *by = lower_inst(l, lower_arg_id(l, v, 1));
	ValId wide = lower_arg_id(l, v, 0);
	if (by->op != OP_CONST || by->imm.i != 16 || !is_made_by(l, wide, OP_CAST, DT_U32))
		return NULL;
	ValId half = lower_arg_id(l, wide, 0);
	if (!is_made_by(l, half, OP_BITCAST, DT_U16) || !is_made_by(l, lower_arg_id(l, half, 0), OP_CAST, DT_BF16))
		return NULL;
	ValId exact = lower_arg_id(l, lower_arg_id(l, half, 0), 0);
	if (lower_inst(l, exact)->type.dtype != DT_F32)
		return NULL;
	const Val both[2] = {l->val[exact], LLVMConstNull(LLVMFloatTypeInContext(l->ctx))};
	return LLVMBuildBitCast(l->b, lower_call(l, "llvm.nvvm.ff2bf16x2.rn", NULL, 0, both, 2), i32, "");
}

/* What bounds keep within 32 bits, and a cast then has in as many, so that it is compared in one instruction and not in two: LLVM would
 * leave the bounds out of an order and compare all 64. So the cast is one that it does not see into. In a kernel with roles, whose
 * threads have many elements to compare; of the few that others have the bounds take as long. */
Val
lower_bounded(Lower *l, ValId v)
{
	ValId wide = lower_arg_id(l, v, 0);
	if (!l->k->channel.n || !is_made_by(l, v, OP_CAST, DT_I32) || !is_made_by(l, wide, OP_MIN, DT_I64))
		return NULL;
	if (!is_made_by(l, lower_arg_id(l, wide, 0), OP_MAX, DT_I64) || lower_inst(l, lower_arg_id(l, wide, 1))->op != OP_CONST)
		return NULL;
	static const char code[] = "cvt.u32.u64 $0, $1;", constraints[] = "=r,l";
	LLVMTypeRef i64 = lower_i64(l), f = LLVMFunctionType(LLVMInt32TypeInContext(l->ctx), &i64, 1, 0);
	Val text = LLVMGetInlineAsm(f, code, sizeof code - 1, constraints, sizeof constraints - 1, 0, 0, LLVMInlineAsmDialectATT, 0);
	Val a = lower_arg(l, v, 0);
	return LLVMBuildCall2(l->b, f, text, &a, 1, "");
}

/* To 8 bits. The instruction makes two of them at once, and saturates: infinities of f8e5m2 are put in, from the
 * middle between the largest number and what would be next. */
static Val
fp8_of_f32(Lower *l, Val a, DType t)
{
	LLVMTypeRef type = LLVMInt8TypeInContext(l->ctx), f32 = LLVMTypeOf(a);
	Val code = LLVMBuildTrunc(l->b, two_fp8(l, a, LLVMConstNull(f32), t), type, "");
	if (t == DT_F8E4M3)
		return code;
	LLVMTypeRef over = f32;
	Val size = lower_call(l, "llvm.fabs", &over, 1, &a, 1);
	Val beyond = LLVMBuildFCmp(l->b, LLVMRealOGE, size, LLVMConstReal(f32, 61440), "");
	Val sign = LLVMBuildAnd(l->b, code, lower_int(l, type, 0x80), "");
	return LLVMBuildSelect(l->b, beyond, LLVMBuildOr(l->b, sign, lower_int(l, type, 0x7c), ""), code, "");
}

/* By f16, which has every f8e4m3. */
static Val
f32_of_fp8(Lower *l, Val a, LLVMTypeRef type)
{
	LLVMTypeRef both = LLVMInt16TypeInContext(l->ctx), i32 = LLVMInt32TypeInContext(l->ctx);
	Val wide = LLVMBuildZExt(l->b, a, both, "");
	Val halves = lower_call(l, "llvm.nvvm.e4m3x2.to.f16x2.rn", NULL, 0, &wide, 1);
	return LLVMBuildFPExt(l->b, LLVMBuildExtractElement(l->b, halves, LLVMConstNull(i32), ""), type, "");
}

Val
lower_cast(Lower *l, Val a, DType from, TirType to)
{
	DType t = (DType)to.dtype;
	LLVMTypeRef type = lower_type(l, to);
	if (from == t)
		return a;
	if (t == DT_BOOL)
		return is_nonzero(l, a, from);
	if (from == DT_F32 && (t == DT_F8E4M3 || t == DT_F8E5M2))
		return fp8_of_f32(l, a, t);
	if (from == DT_F8E4M3)
		return f32_of_fp8(l, a, type);
	if (from == DT_F16)
		return LLVMBuildFPExt(l->b, LLVMBuildBitCast(l->b, a, half_float(l, from, to.lanes), ""), type, "");
	if (t == DT_F16 || t == DT_BF16)
		return LLVMBuildBitCast(l->b, LLVMBuildFPTrunc(l->b, a, half_float(l, t, to.lanes), ""), type, "");
	if (dtype_is_float(from) && dtype_is_float(t))
		return t == DT_F64 ? LLVMBuildFPExt(l->b, a, type, "") : LLVMBuildFPTrunc(l->b, a, type, "");
	if (dtype_is_float(from))
		return float_to_int(l, a, to);
	if (!dtype_is_float(t))
		return int_to_int(l, a, from, to);
	if (dtype_info[from].kind == KIND_INT)
		return LLVMBuildSIToFP(l->b, a, type, "");
	return LLVMBuildUIToFP(l->b, a, type, "");
}

Val
lower_bitcast(Lower *l, Val a, DType from, TirType to)
{
	DType t = (DType)to.dtype;
	if (from == t)
		return a;
	if (dtype_info[t].bits < 8)
		return hold_nibble(l, a, t);
	if (from == DT_BOOL)
		return LLVMBuildZExt(l->b, a, with_lanes(l, 8, to.lanes), "");
	if (t == DT_BOOL)
		return is_nonzero(l, a, DT_U8);
	return LLVMBuildBitCast(l->b, a, lower_type(l, to), "");
}
