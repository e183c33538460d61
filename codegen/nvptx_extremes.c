/* nvptx_extremes.c: greater and smaller integers of 32 bits and fewer as a comparison and a selection.
 *
 * ptxas 13.0 (sm_90: VIMNMX3) and the driver's assembler of that version turn max(max(a, -b), c) into one
 * instruction of three operands and lose the minus: found on an H200 by a random program whose fold of
 * negated bytes came out positive. Comparisons and selections are not merged in this way. Done after
 * LLVM's passes, which would make the same intrinsics of selections again. And its selection of
 * instructions would make them of a < c || b < c, so such an || is one that it does not see into. */
#include <stdio.h>
#include <string.h>

#include "codegen/emit.h"

static const struct {
	const char *intrinsic, *compare;
	bool is_signed;
} row[] = {
	{"llvm.smax.", "gt.s32", true},
	{"llvm.smin.", "lt.s32", true},
	{"llvm.umax.", "gt.u32", false},
	{"llvm.umin.", "lt.u32", false},
};

enum { ROWS = sizeof row / sizeof *row };

/* The row of a call that has to go, or ROWS. */
static unsigned
row_of(LLVMValueRef inst)
{
	size_t n = 0;
	LLVMTypeRef t = LLVMTypeOf(inst);
	if (!LLVMIsACallInst(inst) || LLVMGetTypeKind(t) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(t) > 32)
		return ROWS;
	const char *name = LLVMGetValueName2(LLVMGetCalledValue(inst), &n);
	unsigned r = 0;
	while (r < ROWS && strncmp(name, row[r].intrinsic, strlen(row[r].intrinsic)) != 0)
		r++;
	return r;
}

static LLVMValueRef
compare_and_select(Emit *e, LLVMValueRef inst, unsigned r)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(e->ctx), own = LLVMTypeOf(inst), pair[2] = {i32, i32};
	LLVMValueRef x[2];
	char text[96];
	for (unsigned k = 0; k < 2; k++)
		x[k] = LLVMBuildIntCast2(e->builder, LLVMGetOperand(inst, k), i32, row[r].is_signed, "");
	int n = snprintf(text, sizeof text, "{ .reg .pred p; setp.%s p, $1, $2; selp.b32 $0, $1, $2, p; }", row[r].compare);
	LLVMTypeRef type = LLVMFunctionType(i32, pair, 2, false);
	LLVMValueRef code = LLVMGetInlineAsm(type, text, (size_t)n, "=r,r,r", 7, false, false, LLVMInlineAsmDialectATT, false);
	return LLVMBuildIntCast2(e->builder, LLVMBuildCall2(e->builder, type, code, x, 2, ""), own, row[r].is_signed, "");
}

/* An order of integers of 32 bits or fewer. */
static bool
is_order(LLVMValueRef v)
{
	if (!LLVMIsAICmpInst(v) || LLVMGetICmpPredicate(v) == LLVMIntEQ || LLVMGetICmpPredicate(v) == LLVMIntNE)
		return false;
	LLVMTypeRef t = LLVMTypeOf(LLVMGetOperand(v, 0));
	return LLVMGetTypeKind(t) == LLVMIntegerTypeKind && LLVMGetIntTypeWidth(t) <= 32;
}

/* An and or an or of truth values in which two orders may meet, at once or when its like are regrouped. */
static bool
joins_orders(LLVMValueRef inst)
{
	LLVMTypeRef t = LLVMTypeOf(inst);
	if (!LLVMIsABinaryOperator(inst) || LLVMGetTypeKind(t) != LLVMIntegerTypeKind || LLVMGetIntTypeWidth(t) != 1)
		return false;
	LLVMOpcode op = LLVMGetInstructionOpcode(inst);
	return (op == LLVMOr || op == LLVMAnd) && (is_order(LLVMGetOperand(inst, 0)) || is_order(LLVMGetOperand(inst, 1)));
}

static LLVMValueRef
join(Emit *e, LLVMValueRef inst)
{
	LLVMTypeRef i1 = LLVMTypeOf(inst), pair[2] = {i1, i1};
	LLVMValueRef x[2] = {LLVMGetOperand(inst, 0), LLVMGetOperand(inst, 1)};
	char text[32];
	int n = snprintf(text, sizeof text, "%s.pred $0, $1, $2;", LLVMGetInstructionOpcode(inst) == LLVMOr ? "or" : "and");
	LLVMTypeRef type = LLVMFunctionType(i1, pair, 2, false);
	LLVMValueRef code = LLVMGetInlineAsm(type, text, (size_t)n, "=b,b,b", 7, false, false, LLVMInlineAsmDialectATT, false);
	return LLVMBuildCall2(e->builder, type, code, x, 2, "");
}

static void
in_block(Emit *e, LLVMBasicBlockRef b)
{
	LLVMValueRef next;
	for (LLVMValueRef inst = LLVMGetFirstInstruction(b); inst; inst = next) {
		next = LLVMGetNextInstruction(inst);
		unsigned r = row_of(inst);
		bool joins = joins_orders(inst);
		if (r == ROWS && !joins)
			continue;
		LLVMPositionBuilderBefore(e->builder, inst);
		LLVMReplaceAllUsesWith(inst, joins ? join(e, inst) : compare_and_select(e, inst, r));
		LLVMInstructionEraseFromParent(inst);
	}
}

void
emit_without_extremes(Emit *e)
{
	for (LLVMValueRef f = LLVMGetFirstFunction(e->module); f; f = LLVMGetNextFunction(f))
		for (LLVMBasicBlockRef b = LLVMGetFirstBasicBlock(f); b; b = LLVMGetNextBasicBlock(b))
			in_block(e, b);
}
