/* lower_cast.c: casts between the types that arithmetic is done in, bool and the 4-bit integers, and
 * reinterpretation of bits. Casts of narrow floats have been expanded before.
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

Val
lower_cast(Lower *l, Val a, DType from, TirType to)
{
	DType t = (DType)to.dtype;
	LLVMTypeRef type = lower_type(l, to);
	if (from == t)
		return a;
	if (t == DT_BOOL)
		return is_nonzero(l, a, from);
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
