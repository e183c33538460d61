/* nvptx_quotients.c: quotients and square roots of f32 of a thread, several with one slow path, rounded to nearest.
 *
 * PTX's div.rn and sqrt.rn are each an approximation, corrected, and a branch around a routine for what would
 * overflow or underflow on the way: with the branches, one follows the other. Those of neighbouring lanes need not
 * wait. Here the same corrections are done side by side, and one branch asks for all of them.
 *
 * A quotient a / b, with r near 1 / b: d = 1 - b r and r' = r + r d, then q = a r' and q + r' (a - b q). Where |a| and
 * |result| are 2^-100 and more no step loses bits to an exponent, and the residue is exact; an infinite or zero r makes
 * the result NaN, or 0. A root, with r near 1 / sqrt(a): s = a r and s + r / 2 (a - s s), where a is 2^-100 and more;
 * infinity makes NaN. Both are what ptxas makes of div.rn and sqrt.rn (sm_80 to sm_120), which is right for all
 * fractions; what fails a test takes those. What is known to pass it (TIR_MIDDLE) has neither. TIR's RCP is the approximation itself. */
#include "codegen/lower.h"

#include <math.h>

enum {
	SIDE = 2,       /* at most so many together */
	REACH = 512,    /* instructions ahead in which others are looked for */
	LIKELY = 2000,
	MOST_WORK = 400 /* operations that one of them may wait for */
};

bool
lower_is_quotient(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return (x->op == OP_FDIV || x->op == OP_SQRT) && x->type.dtype == DT_F32 && !x->type.lanes && !lower_is_middle(l, v);
}

bool
lower_is_middle(const Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	return x->op == OP_FDIV && x->imm.i == TIR_MIDDLE && x->type.dtype == DT_F32 && !x->type.lanes && l->target->arch == ARCH_NVPTX;
}

static Val
intrinsic(Lower *l, const char *name, const Val *arg, unsigned narg)
{
	LLVMTypeRef f32 = LLVMFloatTypeInContext(l->ctx);
	return lower_call(l, name, &f32, 1, arg, narg);
}

static Val
fma_of(Lower *l, Val a, Val b, Val c)
{
	return intrinsic(l, "llvm.fma", (Val[]){a, b, c}, 3);
}

static Val
approximate(Lower *l, const char *name, Val a)
{
	return lower_call(l, name, NULL, 0, &a, 1);
}

Val
lower_unit(Lower *l, ValId v)
{
	if (lower_inst(l, v)->op == OP_EX2)
		return lower_intrinsic(l, v, "llvm.nvvm.ex2.approx.ftz");
	return approximate(l, "llvm.nvvm.rcp.approx.ftz.f", lower_arg(l, v, 0));
}

/* The least so far; NaN stays. */
static Val
least(Lower *l, Val so_far, Val a)
{
	return so_far ? intrinsic(l, "llvm.minimum", (Val[]){so_far, a}, 2) : a;
}

static Val
magnitude(Lower *l, Val a)
{
	return intrinsic(l, "llvm.fabs", &a, 1);
}

static Val
quick_quotient(Lower *l, Val a, Val b)
{
	Val one = LLVMConstReal(LLVMTypeOf(a), 1), minus = LLVMBuildFNeg(l->b, b, "");
	Val r = approximate(l, "llvm.nvvm.rcp.approx.ftz.f", b);
	r = fma_of(l, r, fma_of(l, minus, r, one), r);
	Val q = LLVMBuildFMul(l->b, a, r, "");
	return fma_of(l, r, fma_of(l, minus, q, a), q);
}

Val
lower_middle_quotient(Lower *l, ValId v)
{
	return quick_quotient(l, lower_arg(l, v, 0), lower_arg(l, v, 1));
}

static Val
quick_root(Lower *l, Val a)
{
	Val r = approximate(l, "llvm.nvvm.rsqrt.approx.ftz.f", a), s = LLVMBuildFMul(l->b, a, r, "");
	Val half = LLVMBuildFMul(l->b, r, LLVMConstReal(LLVMTypeOf(a), 0.5), "");
	return fma_of(l, fma_of(l, LLVMBuildFNeg(l->b, s, ""), s, a), half, s);
}

static Val
slow_value(Lower *l, ValId v)
{
	return lower_inst(l, v)->op == OP_FDIV ? lower_plain(l, v, LLVMFDiv, LLVMFDiv) : lower_intrinsic(l, v, "llvm.sqrt");
}

/* Without this LLVM takes a root for something to compute in advance. */
void
lower_expect_first(Lower *l, Val branch)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	LLVMMetadataRef weights[3] = {LLVMMDStringInContext2(l->ctx, "branch_weights", 14),
	                              LLVMValueAsMetadata(LLVMConstInt(i32, LIKELY, 0)), LLVMValueAsMetadata(LLVMConstInt(i32, 1, 0))};
	Val node = LLVMMetadataAsValue(l->ctx, LLVMMDNodeInContext2(l->ctx, weights, 3));
	LLVMSetMetadata(branch, LLVMGetMDKindIDInContext(l->ctx, "prof", 4), node);
}

/* A constant that no step loses bits of. */
static bool
is_large(Val a)
{
	LLVMBool loses;
	double v = LLVMIsAConstantFP(a) ? LLVMConstRealGetDouble(a, &loses) : 0;
	return fabs(v) >= 1 && !isinf(v);
}

static void
lower_together(Lower *l, const ValId *v, unsigned n)
{
	bool divides = lower_inst(l, v[0])->op == OP_FDIV;
	Val quick[SIDE], slow[SIDE], low = NULL;
	for (unsigned k = 0; k < n; k++) {
		Val a = lower_arg(l, v[k], 0);
		quick[k] = divides ? quick_quotient(l, a, lower_arg(l, v[k], 1)) : quick_root(l, a);
		if (!is_large(a))
			low = least(l, low, divides ? magnitude(l, a) : a);
		low = least(l, low, divides ? magnitude(l, quick[k]) : quick[k]);
	}
	Val fine = LLVMBuildFCmp(l->b, LLVMRealOGE, low, LLVMConstReal(LLVMTypeOf(low), 0x1p-100), "");
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b), exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef again = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	lower_expect_first(l, LLVMBuildCondBr(l->b, fine, exit, again));
	LLVMPositionBuilderAtEnd(l->b, again);
	for (unsigned k = 0; k < n; k++)
		slow[k] = slow_value(l, v[k]);
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
	for (unsigned k = 0; k < n; k++) {
		l->val[v[k]] = LLVMBuildPhi(l->b, LLVMTypeOf(quick[k]), "");
		LLVMAddIncoming(l->val[v[k]], (Val[]){quick[k], slow[k]}, (LLVMBasicBlockRef[]){from, again}, 2);
	}
}

/* Whether v is like `first`, and what it needs is there or only waits. */
static bool
goes_with(const Lower *l, ValId v, ValId first)
{
	unsigned work = MOST_WORK;
	bool ready = lower_is_quotient(l, v) && lower_inst(l, v)->op == lower_inst(l, first)->op && !l->val[v];
	for (unsigned n = 0; ready && n < lower_inst(l, v)->narg; n++)
		ready = lower_only_waits(l, lower_arg_id(l, v, n), &work);
	return ready;
}

bool
lower_quotients(Lower *l, const TirRegion *r, ValId first)
{
	ValId found[SIDE];
	unsigned n = 0;
	uint32_t at = 0;
	while (at < r->inst.n && r->inst.at[at] != first)
		at++;
	for (uint32_t i = at; i < r->inst.n && i < at + REACH && n < SIDE; i++)
		if (goes_with(l, r->inst.at[i], first))
			found[n++] = r->inst.at[i];
	if (n < 2 || l->k->cluster) /* whose blocks have no registers to spare */
		return false;
	for (unsigned k = 0; k < n; k++)
		for (unsigned j = 0; j < lower_inst(l, found[k])->narg; j++)
			lower_now(l, r, lower_arg_id(l, found[k], j));
	lower_together(l, found, n);
	return true;
}
