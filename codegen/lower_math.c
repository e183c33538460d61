/* lower_math.c: arithmetic, comparison, logic and bits, total as ops.def defines them: where LLVM's
 * instruction is undefined for some input, that input is replaced before and the result selected
 * after. */
#include "codegen/lower.h"
#include "ir/bugs.h"

typedef struct {
	Val a, b;
	LLVMTypeRef type;
	DType dtype; /* of the operands */
	unsigned bits;
	bool is_float, is_signed;
} Pair;

static Val
constant(Lower *l, const Pair *p, double v)
{
	if (!p->is_float)
		return lower_int(l, p->type, (uint64_t)(int64_t)v);
	TirInst c = {.op = OP_CONST, .imm.f = v};
	bool vector = LLVMGetTypeKind(p->type) == LLVMVectorTypeKind;
	c.type = (TirType){(uint8_t)p->dtype, vector ? (uint16_t)LLVMGetVectorSize(p->type) : 0};
	return lower_const(l, &c);
}

static Val
unary_call(Lower *l, const Pair *p, const char *intrinsic)
{
	LLVMTypeRef over = p->type;
	return lower_call(l, intrinsic, &over, 1, &p->a, 1);
}

static Val
binary_call(Lower *l, const Pair *p, const char *intrinsic)
{
	LLVMTypeRef over = p->type;
	return lower_call(l, intrinsic, &over, 1, (Val[]){p->a, p->b}, 2);
}

static Val
equal(Lower *l, Val a, Val b)
{
	return LLVMBuildICmp(l->b, LLVMIntEQ, a, b, "");
}

/* --- integers --- */

/* Quotient and remainder towards zero of a by a divisor that can't trap, then towards minus
 * infinity. by_zero and INT_MIN / -1 divide by 1, which gives the wrapped INT_MIN and remainder 0. */
static void
floor_divide(Lower *l, const Pair *p, Val by_zero, Val *quotient, Val *remainder)
{
	Val one = lower_int(l, p->type, 1), zero = lower_int(l, p->type, 0), unsafe = by_zero;
	if (p->is_signed) {
		Val least = lower_int(l, p->type, UINT64_C(1) << (p->bits - 1));
		Val overflow = LLVMBuildAnd(l->b, equal(l, p->a, least),
		                            equal(l, p->b, lower_int(l, p->type, UINT64_MAX)), "");
		unsafe = LLVMBuildOr(l->b, by_zero, overflow, "");
	}
	Val divisor = BUG(division_by_zero_traps) ? p->b : LLVMBuildSelect(l->b, unsafe, one, p->b, "");
	Val q = p->is_signed ? LLVMBuildSDiv(l->b, p->a, divisor, "") : LLVMBuildUDiv(l->b, p->a, divisor, "");
	Val r = LLVMBuildSub(l->b, p->a, LLVMBuildMul(l->b, q, divisor, ""), "");
	if (p->is_signed) {
		Val inexact = LLVMBuildICmp(l->b, LLVMIntNE, r, zero, "");
		Val opposed = LLVMBuildICmp(l->b, LLVMIntSLT, LLVMBuildXor(l->b, r, divisor, ""), zero, "");
		Val below = LLVMBuildAnd(l->b, inexact, opposed, "");
		q = LLVMBuildSelect(l->b, below, LLVMBuildSub(l->b, q, one, ""), q, "");
		r = LLVMBuildSelect(l->b, below, LLVMBuildAdd(l->b, r, divisor, ""), r, "");
	}
	*quotient = q;
	*remainder = r;
}

/* The logarithm of a divisor that is a power of two, of signed numbers; -1: it is none. Unsigned ones LLVM shifts by itself. */
static int
log_of(const Pair *p)
{
	uint64_t by = LLVMIsAConstantInt(p->b) ? LLVMConstIntGetZExtValue(p->b) : 0;
	bool power = p->is_signed && by && !(by & (by - 1)) && !(by >> (p->bits - 1));
	return power ? __builtin_ctzll(by) : -1;
}

/* Bits that move out are floored away. LLVM finds that of a quotient towards zero only where it knows that nothing is negative. */
static Val
divide_by_power(Lower *l, const Pair *p, unsigned log, bool want_quotient)
{
	Val by = lower_int(l, p->type, log), rest = lower_int(l, p->type, (UINT64_C(1) << log) - 1);
	if (!want_quotient)
		return LLVMBuildAnd(l->b, p->a, rest, "");
	return BUG(quotient_unsigned) ? LLVMBuildLShr(l->b, p->a, by, "") : LLVMBuildAShr(l->b, p->a, by, "");
}

static Val
divide(Lower *l, const Pair *p, bool want_quotient)
{
	int log = log_of(p);
	if (log >= 0)
		return divide_by_power(l, p, (unsigned)log, want_quotient);
	Val q, r, by_zero = equal(l, p->b, lower_int(l, p->type, 0));
	floor_divide(l, p, by_zero, &q, &r);
	return want_quotient ? LLVMBuildSelect(l->b, by_zero, lower_int(l, p->type, UINT64_MAX), q, "")
	                     : LLVMBuildSelect(l->b, by_zero, p->a, r, "");
}

static Val
shift(Lower *l, const Pair *p, bool left)
{
	Val within = LLVMBuildICmp(l->b, LLVMIntULT, p->b, lower_int(l, p->type, p->bits), "");
	Val zero = lower_int(l, p->type, 0), by = LLVMBuildSelect(l->b, within, p->b, zero, "");
	Val r = left ? LLVMBuildShl(l->b, p->a, by, "") : LLVMBuildLShr(l->b, p->a, by, "");
	return LLVMBuildSelect(l->b, within, r, zero, "");
}

/* --- either --- */

static Val
absolute(Lower *l, const Pair *p)
{
	if (p->is_float)
		return unary_call(l, p, "llvm.fabs");
	if (!p->is_signed)
		return p->a;
	LLVMTypeRef over = p->type;
	Val wraps = LLVMConstInt(LLVMInt1TypeInContext(l->ctx), 0, 0);
	return lower_call(l, "llvm.abs", &over, 1, (Val[]){p->a, wraps}, 2);
}

static Val
compare(Lower *l, const Pair *p, Op op)
{
	if (p->is_float) {
		LLVMRealPredicate f = op == OP_EQ   ? LLVMRealOEQ
		                      : op == OP_NE ? LLVMRealUNE
		                      : op == OP_LT ? LLVMRealOLT
		                                    : LLVMRealOLE;
		return LLVMBuildFCmp(l->b, f, p->a, p->b, "");
	}
	LLVMIntPredicate i = op == OP_EQ   ? LLVMIntEQ
	                     : op == OP_NE ? LLVMIntNE
	                     : op == OP_LT ? (p->is_signed || BUG(unsigned_compared_signed) ? LLVMIntSLT : LLVMIntULT)
	                                   : (p->is_signed ? LLVMIntSLE : LLVMIntULE);
	return LLVMBuildICmp(l->b, i, p->a, p->b, "");
}

/* -1, 0, 1; +0 for a float -0; NaN stays. */
static Val
sign_of(Lower *l, const Pair *p)
{
	Pair zero = *p;
	zero.b = constant(l, p, 0);
	Val above = p->is_float ? LLVMBuildFCmp(l->b, LLVMRealOGT, p->a, zero.b, "")
	                        : LLVMBuildICmp(l->b, p->is_signed ? LLVMIntSGT : LLVMIntUGT, p->a, zero.b, "");
	Val rest = zero.b;
	if (p->is_float)
		rest = LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealUNO, p->a, p->a, ""), p->a, zero.b, "");
	if (p->is_float || p->is_signed)
		rest = LLVMBuildSelect(l->b, compare(l, &zero, OP_LT), constant(l, p, -1), rest, "");
	return LLVMBuildSelect(l->b, above, constant(l, p, 1), rest, "");
}

/* Whether AVX-512's range instruction takes them. Next to a constant LLVM knows better. */
static bool
has_range(const Lower *l, const Pair *p)
{
	return l->target->arch == ARCH_X86 && target_has(l->target, FEATURE_AVX512DQ) &&
	       LLVMGetTypeKind(p->type) == LLVMVectorTypeKind && LLVMGetVectorSize(p->type) * p->bits == 512 &&
	       !LLVMIsConstant(p->a) && !LLVMIsConstant(p->b);
}

/* It orders zeros by their signs, and gives the other operand of a NaN: three instructions, where LLVM makes
 * six of llvm.maximum. */
static Val
extreme_by_range(Lower *l, const Pair *p, bool smaller)
{
	bool wide = p->dtype == DT_F64;
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	LLVMTypeRef mask = wide ? LLVMInt8TypeInContext(l->ctx) : LLVMInt16TypeInContext(l->ctx);
	enum { LEAST = 4, MOST = 5, AS_SET = 4 };
	const Val arg[6] = {p->a, p->b, lower_int(l, i32, smaller ? LEAST : MOST), p->a, lower_int(l, mask, UINT64_MAX),
	                    lower_int(l, i32, AS_SET)};
	Val r = lower_call(l, wide ? "llvm.x86.avx512.mask.range.pd.512" : "llvm.x86.avx512.mask.range.ps.512", NULL, 0, arg, 6);
	Val nan = LLVMBuildFCmp(l->b, LLVMRealUNO, p->a, p->b, "");
	return BUG(min_drops_nan) ? r : LLVMBuildSelect(l->b, nan, LLVMBuildFAdd(l->b, p->a, p->b, ""), r, "");
}

static Val
extreme(Lower *l, const Pair *p, bool smaller)
{
	if (p->is_float && has_range(l, p))
		return extreme_by_range(l, p, smaller);
	if (p->is_float)
		return BUG(min_drops_nan) ? binary_call(l, p, smaller ? "llvm.minnum" : "llvm.maxnum")
		                          : binary_call(l, p, smaller ? "llvm.minimum" : "llvm.maximum");
	if (p->is_signed)
		return binary_call(l, p, smaller ? "llvm.smin" : "llvm.smax");
	return binary_call(l, p, smaller ? "llvm.umin" : "llvm.umax");
}

/* --- rounding to integers --- */

/* Nearest even by adding and taking away 2^(fraction bits); exact for smaller |a|, and larger ones
 * are integers, infinite or NaN already. The sign is put back, so that -0 stays. */
static Val
round_magic(Lower *l, const Pair *p, Val a)
{
	double big = p->dtype == DT_F32 ? 8388608.0 : 4503599627370496.0;
	Val c = constant(l, p, big);
	Pair q = *p;
	q.a = a;
	Val size = unary_call(l, &q, "llvm.fabs");
	Val near = LLVMBuildFSub(l->b, LLVMBuildFAdd(l->b, size, c, ""), c, "");
	q.b = a;
	q.a = near;
	Val r = binary_call(l, &q, "llvm.copysign");
	return LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, LLVMRealOLT, size, c, ""), r, a, "");
}

/* r moved by one towards where `beyond` says it went too far, with a's sign. */
static Val
step_back(Lower *l, const Pair *p, Val r, LLVMRealPredicate beyond, Val a, double by)
{
	Val moved = LLVMBuildFAdd(l->b, r, constant(l, p, by), "");
	Pair q = *p;
	q.a = LLVMBuildSelect(l->b, LLVMBuildFCmp(l->b, beyond, r, a, ""), moved, r, "");
	q.b = p->a;
	return binary_call(l, &q, "llvm.copysign");
}

/* Without SSE4.1 LLVM would call libm. */
static Val
round_by_hand(Lower *l, const Pair *p, Op op)
{
	Val r = round_magic(l, p, p->a);
	if (op == OP_ROUND)
		return r;
	if (op == OP_FLOOR)
		return step_back(l, p, r, LLVMRealOGT, p->a, -1);
	if (op == OP_CEIL)
		return step_back(l, p, r, LLVMRealOLT, p->a, 1);
	Val size = unary_call(l, p, "llvm.fabs");
	return step_back(l, p, round_magic(l, p, size), LLVMRealOGT, size, -1);
}

static Val
round_to_integer(Lower *l, const Pair *p, Op op)
{
	if (l->target->arch == ARCH_X86 && !target_has(l->target, FEATURE_SSE4_1))
		return round_by_hand(l, p, op);
	return unary_call(l, p, op == OP_FLOOR  ? "llvm.floor"
	                        : op == OP_CEIL ? "llvm.ceil"
	                        : op == OP_TRUNC ? "llvm.trunc"
	                                         : "llvm.roundeven");
}

/* --- families --- */

static Pair
operands(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	Pair p = {.a = lower_arg(l, v, 0), .b = x->narg > 1 ? lower_arg(l, v, 1) : NULL};
	p.type = LLVMTypeOf(p.a);
	p.dtype = (DType)lower_inst(l, lower_arg_id(l, v, 0))->type.dtype;
	p.bits = dtype_info[p.dtype].bits;
	p.is_float = dtype_is_float(p.dtype);
	p.is_signed = dtype_info[p.dtype].kind == KIND_INT;
	return p;
}

Val
lower_plain(Lower *l, ValId v, LLVMOpcode on_ints, LLVMOpcode on_floats)
{
	Pair p = operands(l, v);
	return LLVMBuildBinOp(l->b, p.is_float ? on_floats : on_ints, p.a, p.b, "");
}

Val
lower_divide(Lower *l, ValId v, bool want_quotient)
{
	Pair p = operands(l, v);
	return lower_divides_indices(l, v) ? lower_divide_indices(l, v, want_quotient) : divide(l, &p, want_quotient);
}

Val
lower_shift(Lower *l, ValId v, bool left)
{
	Val rounded = left ? lower_rounded_bf16(l, v) : NULL;
	Pair p = operands(l, v);
	return rounded ? rounded : shift(l, &p, left);
}

Val
lower_negate(Lower *l, ValId v)
{
	Pair p = operands(l, v);
	return p.is_float ? LLVMBuildFNeg(l->b, p.a, "") : LLVMBuildNeg(l->b, p.a, "");
}

Val
lower_abs(Lower *l, ValId v)
{
	Pair p = operands(l, v);
	return absolute(l, &p);
}

Val
lower_sign(Lower *l, ValId v)
{
	Pair p = operands(l, v);
	return sign_of(l, &p);
}

Val
lower_extreme(Lower *l, ValId v, bool smaller)
{
	Pair p = operands(l, v);
	return extreme(l, &p, smaller);
}

Val
lower_round(Lower *l, ValId v)
{
	Pair p = operands(l, v);
	return round_to_integer(l, &p, (Op)lower_inst(l, v)->op);
}

Val
lower_compare(Lower *l, ValId v)
{
	Pair p = operands(l, v);
	return compare(l, &p, (Op)lower_inst(l, v)->op);
}

Val
lower_isnan(Lower *l, ValId v)
{
	return LLVMBuildFCmp(l->b, LLVMRealUNO, lower_arg(l, v, 0), lower_arg(l, v, 0), "");
}

/* a 2^floor(b) of one whole register. */
static Val
scale_register(Lower *l, Val a, Val b, unsigned bits)
{
	LLVMTypeRef type = LLVMTypeOf(a), i32 = LLVMInt32TypeInContext(l->ctx);
	unsigned lanes = LLVMGetVectorSize(type);
	LLVMTypeRef mask = LLVMIntTypeInContext(l->ctx, lanes < 8 ? 8 : lanes);
	const Val arg[5] = {a, b, LLVMConstNull(type), LLVMConstAllOnes(mask), LLVMConstInt(i32, 4, 0)};
	const char *name = arena_text(l->arena, "llvm.x86.avx512.mask.scalef.p%c.%u", bits == 32 ? 's' : 'd', lanes * bits);
	return lower_call(l, name, NULL, 0, arg, lanes * bits == 512 ? 5 : 4); /* 4: the rounding of the moment */
}

Val
lower_scale(Lower *l, ValId v)
{
	const TirInst *x = lower_inst(l, v);
	unsigned bits = dtype_info[x->type.dtype].bits, n = x->type.lanes ? x->type.lanes : 1, part = 128 / bits;
	Val a = lower_arg(l, v, 0), b = lower_arg(l, v, 1), all = NULL;
	if (!x->type.lanes) {
		a = lower_splat(l, a, part);
		b = lower_splat(l, b, part);
	}
	while (part < n && part < 512 / bits)
		part *= 2;
	for (unsigned at = 0; at < n; at += part) {
		Val none = LLVMGetPoison(LLVMTypeOf(a));
		Val r = scale_register(l, lower_lanes_from(l, a, none, at, part), lower_lanes_from(l, b, none, at, part), bits);
		if (!x->type.lanes)
			return LLVMBuildExtractElement(l->b, r, lower_int(l, lower_i64(l), 0), "");
		all = lower_put_lanes(l, all, r, at, n);
	}
	return all;
}

Val
lower_intrinsic(Lower *l, ValId v, const char *name)
{
	const TirInst *x = lower_inst(l, v);
	Val arg[3];
	for (uint32_t n = 0; n < x->narg; n++)
		arg[n] = lower_arg(l, v, n);
	LLVMTypeRef over = LLVMTypeOf(arg[0]);
	return lower_call(l, name, &over, 1, arg, x->narg);
}
