/* nvptx_divide.c: quotients and remainders of indices of 64 bits, on a GPU.
 *
 * The hardware has no such division, and the assembler adds a routine of 96 instructions to each kernel that may need one:
 * a quarter of the time that it takes for an addition. But indices are small: where a is in [0, 2^31) and b in [1, 2^31],
 * 32 bits say all. Others go bit by bit, in a loop that is a few instructions to assemble, and which no tensor that fits in a
 * GPU's memory takes more than once a task. What depends on data, or on a difference and so may be negative at many
 * elements, is divided as ever.
 *
 * Of numbers of tasks that are known to be few (TirScalar.few) there are no others.
 *
 * Bit by bit: of the magnitudes, which are at most 2^63, so that a remainder below the divisor has room to double. A
 * divisor of 0 leaves all ones, as it should; the remainder is what the wrapped product lacks, so that it is right for
 * 0 and for the least number over -1 as well. */
#include "codegen/lower.h"
#include "ir/bugs.h"

enum { MOST_OPERANDS = 64 };

typedef struct {
	Val quotient, remainder;
	LLVMBasicBlockRef from; /* where they are known */
} Parts;

static bool
is_index(const Lower *l, ValId v, unsigned *left)
{
	const TirInst *x = lower_inst(l, v);
	if (x->type.lanes || *left == 0)
		return false;
	--*left;
	switch ((Op)x->op) {
	case OP_SCALAR: case OP_TASK_LO: case OP_TASK_HI: case OP_TASK_STEP: case OP_THREAD: case OP_RANK:
		return true;
	case OP_CONST:
		return x->imm.i >= 0;
	case OP_BLOCKARG: /* of a loop: where it is at, before what it carries */
		return x->imm.i == 0;
	case OP_ADD: case OP_MUL: case OP_IDIV: case OP_IMOD: case OP_MIN: case OP_MAX:
		for (unsigned n = 0; n < x->narg; n++)
			if (!is_index(l, lower_arg_id(l, v, n), left))
				return false;
		return true;
	default:
		return false;
	}
}

bool
lower_divides_indices(const Lower *l, ValId v)
{
	unsigned left = MOST_OPERANDS;
	const TirInst *by = lower_inst(l, lower_arg_id(l, v, 1));
	return l->target->arch == ARCH_NVPTX && lower_inst(l, v)->type.dtype == DT_I64 && by->op != OP_CONST && is_index(l, v, &left);
}

/* Whether v is the index of a loop over tasks. */
static bool
is_task(const Lower *l, ValId v)
{
	for (ValId f = 1; f < l->k->inst.n; f++) {
		const TirInst *x = lower_inst(l, f);
		if (x->op == OP_FOR && l->k->region.at[x->region].inst.at[0] == v)
			return lower_inst(l, lower_arg_id(l, f, 0))->op == OP_TASK_LO && lower_inst(l, lower_arg_id(l, f, 1))->op == OP_TASK_HI;
	}
	return false;
}

bool
lower_divides_few(const Lower *l, ValId v)
{
	while (lower_inst(l, v)->op == OP_IDIV || lower_inst(l, v)->op == OP_IMOD) {
		const TirInst *by = lower_inst(l, lower_arg_id(l, v, 1));
		if (by->op != OP_SCALAR || !l->k->scalar.at[by->imm.i].few)
			return false;
		v = lower_arg_id(l, v, 0);
	}
	return is_task(l, v);
}

static LLVMBasicBlockRef
block_before(Lower *l, LLVMBasicBlockRef next)
{
	return LLVMInsertBasicBlockInContext(l->ctx, next, "");
}

static Parts
short_parts(Lower *l, Val a, Val b)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), i64 = lower_i64(l);
	Val n = LLVMBuildTrunc(l->b, a, i32, ""), by = LLVMBuildTrunc(l->b, b, i32, ""), q = LLVMBuildUDiv(l->b, n, by, "");
	Val r = LLVMBuildSub(l->b, n, LLVMBuildMul(l->b, q, by, ""), "");
	return (Parts){LLVMBuildZExt(l->b, q, i64, ""), LLVMBuildZExt(l->b, r, i64, ""), LLVMGetInsertBlock(l->b)};
}

static Val
magnitude(Lower *l, Val a, Val zero)
{
	return LLVMBuildSelect(l->b, LLVMBuildICmp(l->b, LLVMIntSLT, a, zero, ""), LLVMBuildSub(l->b, zero, a, ""), a, "");
}

/* The quotient moves in where the dividend moves out. */
static Parts
long_parts(Lower *l, Val a, Val b, LLVMBasicBlockRef exit)
{
	enum { BITS = 64 };
	LLVMTypeRef i64 = lower_i64(l), i32 = LLVMInt32TypeInContext(l->ctx);
	Val zero = lower_int(l, i64, 0), one = lower_int(l, i64, 1), by = magnitude(l, b, zero), n = magnitude(l, a, zero);
	Val differ = LLVMBuildICmp(l->b, LLVMIntSLT, LLVMBuildXor(l->b, a, b, ""), zero, "");
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = block_before(l, exit), after = block_before(l, exit);
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	Val left = LLVMBuildPhi(l->b, i32, ""), q = LLVMBuildPhi(l->b, i64, ""), r = LLVMBuildPhi(l->b, i64, "");
	Val top = LLVMBuildLShr(l->b, q, lower_int(l, i64, BITS - 1), "");
	Val wide = LLVMBuildOr(l->b, LLVMBuildShl(l->b, r, one, ""), top, ""), fits = LLVMBuildICmp(l->b, LLVMIntUGE, wide, by, "");
	Val next_r = LLVMBuildSelect(l->b, fits, LLVMBuildSub(l->b, wide, by, ""), wide, "");
	Val next_q = LLVMBuildOr(l->b, LLVMBuildShl(l->b, q, one, ""), LLVMBuildZExt(l->b, fits, i64, ""), "");
	Val next_left = LLVMBuildSub(l->b, left, lower_int(l, i32, 1), "");
	Val more = LLVMBuildICmp(l->b, LLVMIntNE, next_left, lower_int(l, i32, 0), "");
	LLVMAddIncoming(left, (Val[]){lower_int(l, i32, BITS), next_left}, (LLVMBasicBlockRef[]){before, loop}, 2);
	LLVMAddIncoming(q, (Val[]){n, next_q}, (LLVMBasicBlockRef[]){before, loop}, 2);
	LLVMAddIncoming(r, (Val[]){zero, next_r}, (LLVMBasicBlockRef[]){before, loop}, 2);
	lower_rolled(l, LLVMBuildCondBr(l->b, more, loop, after));
	LLVMPositionBuilderAtEnd(l->b, after);
	Val inexact = LLVMBuildZExt(l->b, LLVMBuildICmp(l->b, LLVMIntNE, next_r, zero, ""), i64, "");
	Val below = LLVMBuildSub(l->b, LLVMBuildSub(l->b, zero, next_q, ""), inexact, "");
	Val by_zero = LLVMBuildICmp(l->b, LLVMIntEQ, b, zero, "");
	Val towards_minus = LLVMBuildAnd(l->b, differ, LLVMBuildNot(l->b, by_zero, ""), "");
	Val quotient = LLVMBuildSelect(l->b, towards_minus, below, next_q, "");
	return (Parts){quotient, LLVMBuildSub(l->b, a, LLVMBuildMul(l->b, quotient, b, ""), ""), LLVMGetInsertBlock(l->b)};
}

static Val
either(Lower *l, Val a, LLVMBasicBlockRef from_a, Val b, LLVMBasicBlockRef from_b)
{
	Val v = LLVMBuildPhi(l->b, lower_i64(l), "");
	LLVMAddIncoming(v, (Val[]){a, b}, (LLVMBasicBlockRef[]){from_a, from_b}, 2);
	return v;
}

static void
remember(Lower *l, Val a, Val b, Val quotient, Val remainder)
{
	l->divided.a = a;
	l->divided.b = b;
	l->divided.quotient = quotient;
	l->divided.remainder = remainder;
	l->divided.known = LLVMGetInsertBlock(l->b);
}

static void
divide(Lower *l, Val a, Val b)
{
	LLVMTypeRef i64 = lower_i64(l);
	Val all = LLVMBuildOr(l->b, a, LLVMBuildSub(l->b, b, lower_int(l, i64, BUG(division_by_zero_traps) ? 0 : 1), ""), "");
	Val small = LLVMBuildICmp(l->b, LLVMIntULT, all, lower_int(l, i64, UINT64_C(1) << 31), "");
	LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, ""), quick = block_before(l, exit), slow = block_before(l, exit);
	lower_expect_first(l, LLVMBuildCondBr(l->b, small, quick, slow));
	LLVMPositionBuilderAtEnd(l->b, quick);
	Parts near = short_parts(l, a, b);
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, slow);
	Parts far = long_parts(l, a, b, exit);
	LLVMBuildBr(l->b, exit);
	LLVMPositionBuilderAtEnd(l->b, exit);
	Val quotient = either(l, near.quotient, near.from, far.quotient, far.from);
	remember(l, a, b, quotient, either(l, near.remainder, near.from, far.remainder, far.from));
}

Val
lower_divide_indices(Lower *l, ValId v, bool want_quotient)
{
	Val a = lower_arg(l, v, 0), b = lower_arg(l, v, 1);
	bool known = l->divided.a == a && l->divided.b == b && l->divided.known == LLVMGetInsertBlock(l->b);
	if (!known && lower_divides_few(l, v)) {
		Parts all = short_parts(l, a, b);
		remember(l, a, b, all.quotient, all.remainder);
	} else if (!known) {
		divide(l, a, b);
	}
	return want_quotient ? l->divided.quotient : l->divided.remainder;
}
