/* nvptx_exact.c: a quotient or a root of f32 of a thread, whatever the exponents, rounded to nearest: by way of f64.
 *
 * PTX's div.rn, rcp.rn and sqrt.rn are a routine each that the assembler adds to a kernel and colours registers around: a tenth to
 * three tenths of what it takes for a softmax, an rms norm or a chain of operations. That of f64 is a dozen instructions in a row, as f64 has
 * exponents for all that two f32 give.
 *
 * A quotient a / b, with r near 1 / b to 2^-19 at least (the GPU's is to 2^-20): q = a r is as near, q' = q + r (a - b q) to 2^-38,
 * and q' + r (a - b q') to 2^-57 but for one rounding to 53 bits. A root, with r near 1 / sqrt(a): s = a r, s' = s + r / 2 (a - s s)
 * and s' + r / 2 (a - s' s') alike. Rounding to f32 after that is right: a / b or sqrt(a) of 24 bits is in the middle of two floats,
 * or of two subnormal ones, where 53 bits have it, or 2^-51 away at least.
 *
 * A quotient that comes out as 0 or NaN is of a 0, an infinity or a NaN: a r is what it should be, with its sign. What is its own
 * square is its own root: 0 and infinity, which the steps make NaN of, and 1.
 *
 * It is for what has no quick way. Where a GPU has few units for f64 it is slower than the routine. */
#include "codegen/lower.h"
#include "ir/bugs.h"

enum { STEPS = 2 };

static Val
fma_wide(Lower *l, Val a, Val b, Val c)
{
	LLVMTypeRef f64 = LLVMDoubleTypeInContext(l->ctx);
	return lower_call(l, "llvm.fma", &f64, 1, (Val[]){a, b, c}, 3);
}

static Val
wide(Lower *l, Val a)
{
	return LLVMBuildFPExt(l->b, a, LLVMDoubleTypeInContext(l->ctx), "");
}

static Val
narrow(Lower *l, Val a)
{
	return LLVMBuildFPTrunc(l->b, a, LLVMFloatTypeInContext(l->ctx), "");
}

static Val
number(Lower *l, double v)
{
	return LLVMConstReal(LLVMDoubleTypeInContext(l->ctx), v);
}

Val
lower_exact_quotient(Lower *l, Val dividend, Val divisor)
{
	Val a = wide(l, dividend), b = wide(l, divisor), less = LLVMBuildFNeg(l->b, b, "");
	Val r = lower_call(l, "llvm.nvvm.rcp.approx.ftz.d", NULL, 0, &b, 1), first = LLVMBuildFMul(l->b, a, r, ""), q = first;
	for (unsigned n = 0; n < STEPS; n++)
		q = fma_wide(l, r, fma_wide(l, less, q, a), q);
	if (BUG(quotient_of_zero))
		return narrow(l, q);
	Val is_some = LLVMBuildFCmp(l->b, LLVMRealONE, q, number(l, 0), "");
	return narrow(l, LLVMBuildSelect(l->b, is_some, q, first, ""));
}

Val
lower_exact_root(Lower *l, Val of)
{
	Val a = wide(l, of), r = lower_call(l, "llvm.nvvm.rsqrt.approx.ftz.d", NULL, 0, &a, 1);
	Val s = LLVMBuildFMul(l->b, a, r, ""), half = LLVMBuildFMul(l->b, r, number(l, 0.5), "");
	for (unsigned n = 0; n < STEPS; n++)
		s = fma_wide(l, half, fma_wide(l, LLVMBuildFNeg(l->b, s, ""), s, a), s);
	Val own = LLVMBuildFCmp(l->b, LLVMRealOEQ, LLVMBuildFMul(l->b, a, a, ""), a, "");
	return narrow(l, LLVMBuildSelect(l->b, own, a, s, ""));
}
