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
 * fractions. What is known to pass it (TIR_MIDDLE) has neither.
 *
 * Quotients by one b share r', and of each the result alone is asked: whether its magnitude is 2^-100 max(1, |r'|) and more.
 * Then |b q| is 2^-101 and more, and a - b q a multiple of the product of their last places, which is above 2^-48 |b q|, so 2^-148
 * at least: exact, as all above 2^-149 are. All else fails. Of 0, a subnormal, infinity and NaN for b the result is NaN; of |b|
 * beyond 2^126 r is 0 and the result with it, or r is 2^-126 still, and r' has all its bits; of an infinite or NaN a, or an a r'
 * that overflows, it is NaN; of an a that is 0 or too small it is too small as well, being near a / b even then. A result that
 * overflows by its last rounding is infinite, and right (tests/codegen/quotients_test.c). Those of a group of lanes go by one
 * branch, with one comparison each. A form that asked of the divisor too took 98.1 us on an H200 where pairs took 102.4, of 16384 x
 * 8192 of bf16 in 8-bit floats with a scale for each row. A thread of products has no groups, and no registers for eight scores that
 * are divided together. The slow way is one operation in a loop: written out that of eight was a third of such a kernel's instructions,
 * and of what the assembler takes; eight quotients and eight roots in pairs were twice the instructions that they are in two groups.
 * What goes slowly is most often a 0 among others, so that the loop knows what that gives. The slow way itself is nvptx_exact.c's, where
 * there are units for it; there also of what is alone. */
#include "codegen/lower.h"

#include <math.h>

#define LOW 0x1p-100

enum {
	PAIR = 2,       /* so many together, of several divisors outside of a loop over groups */
	SIDE = 8,       /* at most so many: those of a group of lanes */
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
reciprocal(Lower *l, Val b)
{
	Val one = LLVMConstReal(LLVMTypeOf(b), 1), r = approximate(l, "llvm.nvvm.rcp.approx.ftz.f", b);
	return fma_of(l, r, fma_of(l, LLVMBuildFNeg(l->b, b, ""), r, one), r);
}

static Val
quick_quotient(Lower *l, Val a, Val b, Val r)
{
	Val q = LLVMBuildFMul(l->b, a, r, "");
	return fma_of(l, r, fma_of(l, LLVMBuildFNeg(l->b, b, ""), q, a), q);
}

Val
lower_middle_quotient(Lower *l, ValId v)
{
	Val b = lower_arg(l, v, 1);
	return quick_quotient(l, lower_arg(l, v, 0), b, reciprocal(l, b));
}

static Val
quick_root(Lower *l, Val a)
{
	Val r = approximate(l, "llvm.nvvm.rsqrt.approx.ftz.f", a), s = LLVMBuildFMul(l->b, a, r, "");
	Val half = LLVMBuildFMul(l->b, r, LLVMConstReal(LLVMTypeOf(a), 0.5), "");
	return fma_of(l, fma_of(l, LLVMBuildFNeg(l->b, s, ""), s, a), half, s);
}

/* Whether the slow way has f64's units and the registers beside them: a loop over groups, or what is the only one of a kernel without
 * roles. Of two a block of 64 registers a thread spilled. Zeros, which are many in some data, go the slow way too. */
static bool
goes_wide(Lower *l, bool turn)
{
	for (ValId v = l->nquotient ? l->k->inst.n : 1; v < l->k->inst.n; v++)
		l->nquotient += lower_is_quotient(l, v);
	return l->target->doubles && (turn || (l->nquotient == 1 && !l->roles));
}

static Val
slow_value(Lower *l, Val a, Val b, bool wide)
{
	if (!wide)
		return b ? LLVMBuildFDiv(l->b, a, b, "") : intrinsic(l, "llvm.sqrt", &a, 1);
	return b ? lower_exact_quotient(l, a, b) : lower_exact_root(l, a);
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

/* Of two quotients or two roots. */
static bool
have_one_divisor(const Lower *l, ValId v, ValId w)
{
	return lower_inst(l, v)->op == OP_FDIV && lower_arg_id(l, v, 1) == lower_arg_id(l, w, 1);
}

/* What the magnitudes of all quotients by b must be at least, r being 1 / b. */
static Val
least_quotient(Lower *l, Val b, Val r)
{
	Val low = LLVMConstReal(LLVMTypeOf(b), LOW);
	if (is_large(b))
		return low;
	Val most = intrinsic(l, "llvm.maximum", (Val[]){magnitude(l, r), LLVMConstReal(LLVMTypeOf(b), 1)}, 2);
	return LLVMBuildFMul(l->b, most, low, "");
}

typedef struct {
	Val a[SIDE], b[SIDE]; /* b without a value: roots of a */
	unsigned n;
	bool one; /* b, of all */
	bool turn; /* of a loop over groups, beside which little else is in registers */
} Together;

/* What is 0 by a number that is not 0, or the root of 0. */
static Val
is_nothing(Lower *l, Val a, Val b)
{
	Val zero = LLVMConstReal(LLVMTypeOf(a), 0), nothing = LLVMBuildFCmp(l->b, LLVMRealOEQ, a, zero, "");
	return b ? LLVMBuildAnd(l->b, nothing, LLVMBuildFCmp(l->b, LLVMRealOGT, magnitude(l, b), zero, ""), "") : nothing;
}

/* 0 with its sign: a with that of b. */
static Val
nothing_by(Lower *l, Val a, Val b)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), f32 = LLVMTypeOf(a);
	if (!b)
		return a;
	Val differ = LLVMBuildXor(l->b, LLVMBuildBitCast(l->b, a, i32, ""), LLVMBuildBitCast(l->b, b, i32, ""), "");
	return LLVMBuildBitCast(l->b, LLVMBuildAnd(l->b, differ, lower_int(l, i32, UINT32_C(1) << 31), ""), f32, "");
}

/* What is computed of it in a loop is not computed before, for registers. */
static Val
not_in_advance(Lower *l, Val a)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), type = LLVMFunctionType(i32, &i32, 1, 0);
	Val same = LLVMGetInlineAsm(type, "", 0, "=r,0", 4, 1, 0, LLVMInlineAsmDialectATT, 0), bits = LLVMBuildBitCast(l->b, a, i32, "");
	return LLVMBuildBitCast(l->b, LLVMBuildCall2(l->b, type, same, &bits, 1, ""), LLVMTypeOf(a), "");
}

/* Zeros are what is met most often of what has no quick way: threads that have one wait for those that ask the routine. */
static Val
slow_in_turn(Lower *l, Val a, Val b, bool wide, LLVMBasicBlockRef exit)
{
	Val known = nothing_by(l, a, b);
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b), asks = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	LLVMBasicBlockRef after = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	lower_expect_first(l, LLVMBuildCondBr(l->b, is_nothing(l, a, b), after, asks));
	LLVMPositionBuilderAtEnd(l->b, asks);
	Val made = slow_value(l, a, b, wide);
	LLVMBuildBr(l->b, after);
	LLVMPositionBuilderAtEnd(l->b, after);
	Val v = LLVMBuildPhi(l->b, LLVMTypeOf(a), "");
	LLVMAddIncoming(v, (Val[]){known, made}, (LLVMBasicBlockRef[]){from, asks}, 2);
	return v;
}

/* One slow operation in a loop that turns as often as there are values: results move in where operands move out. What goes on behind
 * it is where the loop begins, so that nothing is in two places. */
static void
slow_in_turns(Lower *l, const Together *t, Val *slow, LLVMBasicBlockRef exit)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	LLVMBasicBlockRef before = LLVMGetInsertBlock(l->b), loop = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	LLVMBasicBlockRef turn = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	LLVMBuildBr(l->b, loop);
	LLVMPositionBuilderAtEnd(l->b, loop);
	Val left = LLVMBuildPhi(l->b, i32, "");
	Val by[SIDE];
	bool apart = !t->one && t->b[0];
	for (unsigned k = 0; k < t->n; k++) {
		slow[k] = LLVMBuildPhi(l->b, LLVMTypeOf(t->a[k]), "");
		by[k] = apart ? LLVMBuildPhi(l->b, LLVMTypeOf(t->b[k]), "") : t->b[k];
	}
	LLVMBuildCondBr(l->b, LLVMBuildICmp(l->b, LLVMIntEQ, left, lower_int(l, i32, 0), ""), exit, turn);
	LLVMPositionBuilderAtEnd(l->b, turn);
	bool wide = goes_wide(l, t->turn);
	Val divisor = t->one && wide ? not_in_advance(l, by[0]) : by[0];
	Val made = t->turn ? slow_in_turn(l, slow[0], divisor, wide, exit) : slow_value(l, slow[0], divisor, wide);
	Val next_left = LLVMBuildSub(l->b, left, lower_int(l, i32, 1), "");
	turn = LLVMGetInsertBlock(l->b);
	lower_rolled(l, LLVMBuildBr(l->b, loop));
	LLVMAddIncoming(left, (Val[]){lower_int(l, i32, t->n), next_left}, (LLVMBasicBlockRef[]){before, turn}, 2);
	for (unsigned k = 0; k < t->n; k++) {
		Val next = k + 1 < t->n ? slow[k + 1] : made;
		LLVMAddIncoming(slow[k], (Val[]){t->a[k], next}, (LLVMBasicBlockRef[]){before, turn}, 2);
		if (apart)
			LLVMAddIncoming(by[k], (Val[]){t->b[k], k + 1 < t->n ? by[k + 1] : t->b[k]}, (LLVMBasicBlockRef[]){before, turn}, 2);
	}
	LLVMPositionBuilderAtEnd(l->b, loop);
}

/* A loop has a count as well, and hands operands on: not where so many blocks a multiprocessor leave a thread no register. */
static void
slow_values(Lower *l, const Together *t, Val *slow, LLVMBasicBlockRef exit)
{
	if (!l->k->resident && (t->turn || (t->one && t->n > PAIR))) {
		slow_in_turns(l, t, slow, exit);
		return;
	}
	for (unsigned k = 0; k < t->n; k++)
		slow[k] = slow_value(l, t->a[k], t->b[k], goes_wide(l, false));
	LLVMBuildBr(l->b, exit);
}

/* The magnitudes of all that must be at least as large as *least_low. */
static Val
quick_values(Lower *l, const Together *t, Val *quick, Val *least_low)
{
	Val low = NULL, r = NULL;
	*least_low = LLVMConstReal(LLVMFloatTypeInContext(l->ctx), LOW);
	if (t->one) {
		r = reciprocal(l, t->b[0]);
		*least_low = least_quotient(l, t->b[0], r);
	}
	for (unsigned k = 0; k < t->n; k++) {
		Val a = t->a[k], b = t->b[k];
		quick[k] = b ? quick_quotient(l, a, b, t->one ? r : reciprocal(l, b)) : quick_root(l, a);
		if (!t->one && !is_large(a))
			low = least(l, low, b ? magnitude(l, a) : a);
		low = least(l, low, b ? magnitude(l, quick[k]) : quick[k]);
	}
	return low;
}

static void
lower_together(Lower *l, const ValId *v, unsigned n, bool turn)
{
	Together t = {.n = n, .turn = turn && n > 1, .one = n > 1 && have_one_divisor(l, v[0], v[1])};
	Val quick[SIDE], slow[SIDE], least_low;
	for (unsigned k = 0; k < n; k++) {
		t.a[k] = lower_arg(l, v[k], 0);
		t.b[k] = lower_inst(l, v[k])->op == OP_FDIV ? lower_arg(l, v[k], 1) : NULL;
	}
	Val low = quick_values(l, &t, quick, &least_low), fine = LLVMBuildFCmp(l->b, LLVMRealOGE, low, least_low, "");
	LLVMBasicBlockRef from = LLVMGetInsertBlock(l->b), exit = LLVMAppendBasicBlockInContext(l->ctx, l->fn, "");
	LLVMBasicBlockRef again = LLVMInsertBasicBlockInContext(l->ctx, exit, "");
	lower_expect_first(l, LLVMBuildCondBr(l->b, fine, exit, again));
	LLVMPositionBuilderAtEnd(l->b, again);
	slow_values(l, &t, slow, exit);
	again = LLVMGetInsertBlock(l->b);
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

/* Whether it is the body of a loop over a thread's groups (passes/tile/roll.c), which has registers to spare. */
static bool
is_turn(const Lower *l, const TirRegion *r)
{
	for (ValId v = 1; v < l->k->inst.n && !l->k->resident; v++) {
		const TirInst *x = lower_inst(l, v);
		if (x->op == OP_FOR && x->imm.i == TIR_ROLLED && &l->k->region.at[x->region] == r)
			return true;
	}
	return false;
}

bool
lower_quotients(Lower *l, const TirRegion *r, ValId first)
{
	ValId found[SIDE];
	unsigned n = 0, group = l->k->group < SIDE ? l->k->group : SIDE, most = group < PAIR ? PAIR : group;
	bool turn = is_turn(l, r);
	uint32_t at = 0;
	while (at < r->inst.n && r->inst.at[at] != first)
		at++;
	for (uint32_t i = at; i < r->inst.n && i < at + REACH && n < most; i++) {
		ValId v = r->inst.at[i];
		if (!goes_with(l, v, first) || (!turn && n >= PAIR && !have_one_divisor(l, v, first)))
			continue;
		found[n++] = v;
		if (!turn && n == PAIR && !have_one_divisor(l, v, first))
			break;
	}
	if (n < 2 ? !goes_wide(l, false) : l->k->cluster != 0) /* whose blocks have no registers to spare */
		return false;
	for (unsigned k = 0; k < n; k++)
		for (unsigned j = 0; j < lower_inst(l, found[k])->narg; j++)
			lower_now(l, r, lower_arg_id(l, found[k], j));
	lower_together(l, found, n, turn);
	return true;
}
