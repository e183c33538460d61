/* nvptx_entry.c: what the function of a kernel is on a GPU: an entry whose threads take tasks one at a
 * time, so that threads side by side have tasks side by side.
 *
 * Its parameters are 8 bytes each: the kernel's buffers, its scalars, the number of tasks, and where two
 * status words of 64 bits are. Any grid of one dimension computes all tasks; tasks that must run as one
 * call have one thread, which takes them all. A status word is the least of (task << 16 | access) that
 * any thread met, or all ones: of a task the first that it met, as on a processor. */
#include "codegen/lower.h"
#include "ir/image.h"

#include <stdio.h>

enum { PTX_KERNEL = 71, GLOBAL = 1 };

static Val
special_register(Lower *l, const char *name)
{
	return LLVMBuildZExt(l->b, lower_call(l, name, NULL, 0, NULL, 0), lower_i64(l), "");
}

static void
new_entry(Lower *l, const char *symbol, unsigned threads)
{
	const TirKernel *k = l->k;
	unsigned n = k->buffer.n + k->scalar.n + 2;
	LLVMTypeRef *param = ARENA_ARRAY(l->arena, LLVMTypeRef, n);
	for (unsigned p = 0; p < n; p++)
		param[p] = p < k->buffer.n || p == n - 1 ? LLVMPointerTypeInContext(l->ctx, GLOBAL) : lower_i64(l);
	l->fn = LLVMAddFunction(l->module, symbol, LLVMFunctionType(LLVMVoidTypeInContext(l->ctx), param, n, 0));
	LLVMSetFunctionCallConv(l->fn, PTX_KERNEL);
	char limit[32];
	snprintf(limit, sizeof limit, "%u", threads);
	lower_attribute(l, "nvvm.maxntid", limit);
	LLVMPositionBuilderAtEnd(l->b, LLVMAppendBasicBlockInContext(l->ctx, l->fn, ""));
	for (unsigned b = 0; b < k->buffer.n; b++)
		l->buffer[b] = LLVMGetParam(l->fn, b);
	for (unsigned s = 0; s < k->scalar.n; s++)
		l->scalar[s] = lower_scalar(l, s, LLVMGetParam(l->fn, k->buffer.n + s));
	l->status = LLVMGetParam(l->fn, n - 1);
}

static void
all_tasks(Lower *l, Val ntask)
{
	l->task_lo = LLVMConstInt(lower_i64(l), 0, 0);
	l->task_hi = ntask;
	lower_body(l);
}

/* task = thread; task < ntask; task += threads. A task's number is far below 2^63, so nothing wraps. */
static void
own_tasks(Lower *l, Val ntask)
{
	Val block = special_register(l, "llvm.nvvm.read.ptx.sreg.ctaid.x");
	Val blocks = special_register(l, "llvm.nvvm.read.ptx.sreg.nctaid.x");
	Val thread = special_register(l, "llvm.nvvm.read.ptx.sreg.tid.x");
	Val threads = special_register(l, "llvm.nvvm.read.ptx.sreg.ntid.x");
	Val first = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, block, threads, ""), thread, "");
	Val step = LLVMBuildMul(l->b, blocks, threads, "");
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b);
	LLVMBasicBlockRef body = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, first, ntask, ""), body, exit);
	LLVMPositionBuilderAtEnd(l->b, body);
	l->task_lo = LLVMBuildPhi(l->b, lower_i64(l), "");
	l->task_hi = LLVMBuildNSWAdd(l->b, l->task_lo, LLVMConstInt(lower_i64(l), 1, 0), "");
	Val task = l->task_lo;
	lower_body(l);
	Val next = LLVMBuildNSWAdd(l->b, task, step, "");
	LLVMBasicBlockRef latch = LLVMGetInsertBlock(l->b);
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, next, ntask, ""), body, exit);
	LLVMAddIncoming(task, (Val[]){first, next}, (LLVMBasicBlockRef[]){before, latch}, 2);
	LLVMPositionBuilderAtEnd(l->b, exit);
}

void
lower_nvptx_kernel(Lower *l, const char *symbol, bool serial)
{
	new_entry(l, symbol, serial ? 1 : IMAGE_CUDA_BLOCK);
	Val ntask = LLVMGetParam(l->fn, l->k->buffer.n + l->k->scalar.n);
	if (serial)
		all_tasks(l, ntask);
	else
		own_tasks(l, ntask);
}

/* --- faults --- */

static LLVMBasicBlockRef
branch_if(Lower *l, Val cond)
{
	LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef then = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	LLVMBuildCondBr(l->b, cond, then, exit);
	LLVMPositionBuilderAtEnd(l->b, then);
	return exit;
}

static void
keep_least(Lower *l, unsigned n, Val id)
{
	LLVMTypeRef i64 = lower_i64(l);
	LLVMBasicBlockRef exit = branch_if(l, LLVMBuildICmp(l->b, LLVMIntNE, id, LLVMConstNull(LLVMTypeOf(id)), ""));
	Val at = LLVMConstInt(i64, n, 0), sixteen = LLVMConstInt(i64, 16, 0);
	Val p = LLVMBuildGEP2(l->b, i64, l->status, &at, 1, "");
	Val old = LLVMBuildLoad2(l->b, i64, p, "");
	LLVMSetAlignment(old, 8);
	LLVMSetOrdering(old, LLVMAtomicOrderingMonotonic);
	Val other = LLVMBuildICmp(l->b, LLVMIntNE, LLVMBuildLShr(l->b, old, sixteen, ""), l->task_lo, "");
	LLVMBasicBlockRef done = branch_if(l, other);
	Val word = LLVMBuildOr(l->b, LLVMBuildShl(l->b, l->task_lo, sixteen, ""), LLVMBuildZExt(l->b, id, i64, ""), "");
	LLVMBuildAtomicRMW(l->b, LLVMAtomicRMWBinOpUMin, p, word, LLVMAtomicOrderingMonotonic, 0);
	LLVMBuildBr(l->b, done);
	LLVMPositionBuilderAtEnd(l->b, done);
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
}

void
lower_nvptx_fault(Lower *l, Val word)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	keep_least(l, 0, LLVMBuildAnd(l->b, word, LLVMConstInt(i32, 0xffff, 0), ""));
	keep_least(l, 1, LLVMBuildLShr(l->b, word, LLVMConstInt(i32, 16, 0), ""));
}
