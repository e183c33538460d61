/* lower_async.c: LOAD_MATRIX, STORE_MATRIX, ASYNC_COPY and ASYNC_WAIT: ldmatrix and cp.async, which a GPU has from sm_80 on, and
 * stmatrix, from sm_90 on. A copy goes past the first cache; where nothing is to be read it has a source of no bytes, for which it
 * puts zeros. */
#include "codegen/lower.h"

enum { WORDS = 4 };

/* Words of two elements, of which WARP_MMA takes some as they are. */
static Val
load_matrix(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	Val p = lower_address(l, lower_arg_id(l, v, 0), l->k->arg.at + x->arg + 1), all = LLVMGetPoison(LLVMVectorType(i32, WORDS));
	LLVMTypeRef place = LLVMTypeOf(p);
	const char *name = x->imm.i ? "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16" : "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16";
	Val four = lower_call(l, name, &place, 1, &p, 1);
	for (unsigned n = 0; n < WORDS; n++)
		all = LLVMBuildInsertElement(l->b, all, LLVMBuildExtractValue(l->b, four, n, ""), LLVMConstInt(i32, n, 0), "");
	return LLVMBuildBitCast(l->b, all, lower_type(l, x->type), "");
}

/* Each word is made of two elements as they are: one instruction rounds both. */
static void
store_matrix(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	Val value = lower_arg(l, v, 1), arg[1 + WORDS] = {lower_address(l, lower_arg_id(l, v, 0), l->k->arg.at + x->arg + 2)};
	LLVMTypeRef place = LLVMTypeOf(arg[0]);
	for (unsigned n = 0; n < WORDS; n++) {
		const Val two[2] = {LLVMConstInt(i32, 2 * n, 0), LLVMConstInt(i32, 2 * n + 1, 0)};
		Val pair = LLVMBuildShuffleVector(l->b, value, LLVMGetPoison(LLVMTypeOf(value)), LLVMConstVector((Val *)two, 2), "");
		arg[1 + n] = LLVMBuildBitCast(l->b, pair, i32, "");
	}
	const char *name = x->imm.i ? "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.trans.b16" : "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16";
	lower_call(l, name, &place, 1, arg, 1 + WORDS);
}

static void
async_copy(Lower *l, ValId v)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	ValId to = lower_arg_id(l, v, 0), from = lower_arg_id(l, v, 1);
	const ValId *index = l->k->arg.at + lower_inst(l, v)->arg + 3;
	Val bytes = LLVMBuildSelect(l->b, lower_arg(l, v, 2), LLVMConstInt(i32, TIR_ASYNC_BYTES, 0), LLVMConstInt(i32, 0, 0), "");
	const Val arg[3] = {lower_address(l, to, index), lower_address(l, from, index + lower_inst(l, to)->imm.i), bytes};
	lower_call(l, "llvm.nvvm.cp.async.cg.shared.global.16.s", NULL, 0, arg, 3);
}

static void
async_wait(Lower *l, ValId v)
{
	Val most = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), (uint64_t)lower_inst(l, v)->imm.i, 0);
	lower_call(l, "llvm.nvvm.cp.async.commit.group", NULL, 0, NULL, 0);
	lower_call(l, "llvm.nvvm.cp.async.wait.group", NULL, 0, &most, 1);
}

Val
lower_meanwhile(Lower *l, ValId v)
{
	if (lower_inst(l, v)->op == OP_LOAD_MATRIX)
		return load_matrix(l, v);
	if (lower_inst(l, v)->op == OP_STORE_MATRIX)
		store_matrix(l, v);
	else if (lower_inst(l, v)->op == OP_ASYNC_COPY)
		async_copy(l, v);
	else
		async_wait(l, v);
	return NULL;
}
