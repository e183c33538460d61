/* lower_lanes.c: operations that move lanes of vectors: LANE, SLIDE, HALF and WEAVE, each by one shuffle, and PICK; whether
 * any lane is true. */
#include "codegen/lower.h"

enum { PIECE_BITS = 128 /* of an x86's vector: shorter ones are no register */ };

/* One of the two halves of a word, for a group of a GPU that was loaded by words: where f32 is made of a bf16, that
 * and its shift become one operation. Else NULL. */
static Val
half_of_word(Lower *l, Val x, uint64_t lane)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	if (l->target->arch != ARCH_NVPTX || !LLVMIsABitCastInst(x))
		return NULL;
	Val words = LLVMGetOperand(x, 0);
	if (LLVMGetElementType(LLVMTypeOf(words)) != i32 || LLVMGetVectorSize(LLVMTypeOf(x)) != 2 * LLVMGetVectorSize(LLVMTypeOf(words)))
		return NULL;
	Val word = LLVMBuildExtractElement(l->b, words, LLVMConstInt(lower_i64(l), lane / 2, 0), "");
	if (lane % 2)
		word = LLVMBuildLShr(l->b, word, LLVMConstInt(i32, 16, 0), "");
	return LLVMBuildTrunc(l->b, word, LLVMGetElementType(LLVMTypeOf(x)), "");
}

Val
lower_lane(Lower *l, ValId v)
{
	uint64_t lane = (uint64_t)lower_inst(l, v)->imm.i;
	unsigned n = lower_inst(l, v)->type.lanes;
	Val number[TIR_MAX_LANES], x = lower_arg(l, v, 0);
	for (unsigned k = 0; k < n; k++)
		number[k] = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), lane + k, 0);
	if (n)
		return LLVMBuildShuffleVector(l->b, x, x, LLVMConstVector(number, n), "");
	Val half = half_of_word(l, x, lane);
	return half ? half : LLVMBuildExtractElement(l->b, x, LLVMConstInt(lower_i64(l), lane, 0), "");
}

/* One comparison: of a condition that is an || of lanes LLVM would make a branch, and a block, for each. */
Val
lower_any(Lower *l, ValId v)
{
	unsigned n = lower_inst(l, lower_arg_id(l, v, 0))->type.lanes;
	Val bits = LLVMBuildBitCast(l->b, lower_arg(l, v, 0), LLVMIntTypeInContext(l->ctx, n), "");
	return LLVMBuildICmp(l->b, LLVMIntNE, bits, LLVMConstNull(LLVMTypeOf(bits)), "");
}

Val
lower_slide(Lower *l, ValId v)
{
	int64_t imm = lower_inst(l, v)->imm.i;
	unsigned by = TIR_SLIDE_BY(imm), n = lower_inst(l, v)->type.lanes, m = TIR_SLIDE_SEGMENT(imm) ? TIR_SLIDE_SEGMENT(imm) : n;
	Val number[TIR_MAX_LANES];
	for (unsigned k = 0; k < n; k++)
		number[k] = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), k % m + by < m ? k + by : k + by + n - m, 0);
	return LLVMBuildShuffleVector(l->b, lower_arg(l, v, 0), lower_arg(l, v, 1), LLVMConstVector(number, n), "");
}

/* The lane of its operand that a HALF has as its k-th. */
static unsigned
lane_of_half(const TirInst *half, unsigned k)
{
	unsigned bit = (unsigned)half->imm.i / 2, low = (1u << bit) - 1, side = half->imm.i & 1;
	return (k & ~low) << 1 | side << bit | (k & low);
}

Val
lower_half(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	Val number[TIR_MAX_LANES], whole = lower_arg(l, v, 0);
	for (unsigned k = 0; k < x->type.lanes; k++)
		number[k] = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), lane_of_half(x, k), 0);
	return LLVMBuildShuffleVector(l->b, whole, whole, LLVMConstVector(number, x->type.lanes), "");
}

/* What v has; if that was woven, so that LLVM does not see how. It would look for one shuffle that does what several do,
 * which takes it longer than all else, and there is none. */
static Val
hide_weave(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	unsigned bits = dtype_info[x->type.dtype].bits * x->type.lanes;
	bool whole = x->type.dtype != DT_BOOL && dtype_info[x->type.dtype].bits >= 8 && bits >= PIECE_BITS;
	if (l->target->arch != ARCH_X86 || x->op != OP_WEAVE || !whole)
		return l->val[v];
	LLVMTypeRef over = LLVMVectorType(LLVMFloatTypeInContext(l->ctx), bits / 32);
	Val words = LLVMBuildBitCast(l->b, l->val[v], over, "");
	return LLVMBuildBitCast(l->b, lower_call(l, "llvm.arithmetic.fence", &over, 1, &words, 1), LLVMTypeOf(l->val[v]), "");
}

/* Halves of two vectors by one bit are woven by one shuffle of the whole vectors, which is an instruction where the two
 * shuffles of a half would be several. */
Val
lower_weave(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v), *a = lower_inst(l, lower_arg_id(l, v, 0)), *b = lower_inst(l, lower_arg_id(l, v, 1));
	unsigned bit = (unsigned)x->imm.i / 2, low = (1u << bit) - 1, n = x->type.lanes;
	bool halves = a->op == OP_HALF && b->op == OP_HALF && a->imm.i == b->imm.i;
	ValId from[2] = {lower_arg_id(l, v, 0), lower_arg_id(l, v, 1)};
	Val number[TIR_MAX_LANES];
	for (unsigned k = 0; k < n; k++) {
		unsigned second = k >> bit & 1, lane = (k >> 1 & ~low) + (k & low);
		unsigned at = halves ? second * n + lane_of_half(a, lane) : second * n / 2 + lane;
		number[k] = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), at, 0);
	}
	Val part[2] = {l->val[from[0]], l->val[from[1]]};
	for (unsigned k = 0; k < 2 && halves; k++)
		part[k] = hide_weave(l, lower_arg_id(l, from[k], 0));
	return LLVMBuildShuffleVector(l->b, part[0], part[1], LLVMConstVector(number, n), "");
}

/* The lanes of x again and again, as n floats. */
static Val
repeated(Lower *l, Val x, unsigned n)
{
	unsigned have = LLVMGetVectorSize(LLVMTypeOf(x));
	Val number[TIR_MAX_LANES];
	for (unsigned k = 0; k < n; k++)
		number[k] = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), k % have, 0);
	Val all = LLVMBuildShuffleVector(l->b, x, LLVMGetPoison(LLVMTypeOf(x)), LLVMConstVector(number, n), "");
	return LLVMBuildBitCast(l->b, all, LLVMVectorType(LLVMFloatTypeInContext(l->ctx), n), "");
}

static Val
pick_lane(Lower *l, Val from, Val number)
{
	Val last = LLVMConstInt(LLVMInt32TypeInContext(l->ctx), LLVMGetVectorSize(LLVMTypeOf(from)) - 1, 0);
	return LLVMBuildExtractElement(l->b, from, LLVMBuildAnd(l->b, number, last, ""), "");
}

static Val
pick_lane_by_lane(Lower *l, const TirInst *x, Val from, Val number)
{
	if (!x->type.lanes)
		return pick_lane(l, from, number);
	Val all = LLVMGetPoison(lower_type(l, x->type));
	for (unsigned k = 0; k < x->type.lanes; k++) {
		Val lane = LLVMConstInt(lower_i64(l), k, 0), one = LLVMBuildExtractElement(l->b, number, lane, "");
		all = LLVMBuildInsertElement(l->b, all, pick_lane(l, from, one), lane, "");
	}
	return all;
}

/* A register's lanes are picked by one instruction, which takes a number modulo how many there are. */
Val
lower_pick(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	Val from = lower_arg(l, v, 0), number = lower_arg(l, v, 1), all = NULL;
	unsigned n = x->type.lanes ? x->type.lanes : 1, part = n > 8 && target_has(l->target, FEATURE_AVX512F) ? 16 : 8;
	if (!target_has(l->target, FEATURE_AVX2) || LLVMGetVectorSize(LLVMTypeOf(from)) > part)
		return pick_lane_by_lane(l, x, from, number);
	from = repeated(l, from, part);
	if (!x->type.lanes)
		number = lower_splat(l, number, part);
	for (unsigned at = 0; at < n; at += part) {
		const Val arg[2] = {from, lower_lanes_from(l, number, LLVMGetPoison(LLVMTypeOf(number)), at, part)};
		Val r = lower_call(l, part == 16 ? "llvm.x86.avx512.permvar.sf.512" : "llvm.x86.avx2.permps", NULL, 0, arg, 2);
		r = LLVMBuildBitCast(l->b, r, LLVMVectorType(lower_type(l, tir_scalar((DType)x->type.dtype)), part), "");
		if (!x->type.lanes)
			return LLVMBuildExtractElement(l->b, r, lower_int(l, lower_i64(l), 0), "");
		all = lower_put_lanes(l, all, r, at, n);
	}
	return all;
}
