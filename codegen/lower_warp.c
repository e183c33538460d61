/* lower_warp.c: WARP_MMA: mma.sync, whose factors come in words of two elements. Elements that were loaded side by side
 * are in their word already (lower_lane). A factor of f32 is a word of its own, rounded: the instruction cuts off what it
 * does not take, which would be twice the error. */
#include <llvm-c/DebugInfo.h>
#include <string.h>

#include "codegen/lower.h"
#include "ir/warp_mma.h"

enum { WORDS = WARP_MMA_A_WORDS + WARP_MMA_B_WORDS };

/* The word whose halves these are, or NULL. */
static Val
common_word(Val low, Val high)
{
	if (!LLVMIsATruncInst(low) || !LLVMIsATruncInst(high))
		return NULL;
	Val word = LLVMGetOperand(low, 0), shifted = LLVMGetOperand(high, 0);
	bool halves = LLVMIsAInstruction(shifted) && LLVMGetInstructionOpcode(shifted) == LLVMLShr && LLVMGetOperand(shifted, 0) == word;
	return halves ? word : NULL; /* a half is shifted by 16 alone (lower_lane) */
}

/* What x was rounded from, an f32, or NULL. */
static Val
before_rounding(Lower *l, Val x)
{
	Val narrow = LLVMIsABitCastInst(x) ? LLVMGetOperand(x, 0) : NULL;
	Val wide = narrow && LLVMIsAFPTruncInst(narrow) ? LLVMGetOperand(narrow, 0) : NULL;
	return wide && LLVMTypeOf(wide) == LLVMFloatTypeInContext(l->ctx) ? wide : NULL;
}

/* Both rounded at once, by the instruction that does two; or NULL. */
static Val
rounded(Lower *l, DType t, Val low, Val high)
{
	const Val both[2] = {before_rounding(l, high), before_rounding(l, low)};
	return both[0] && both[1] ? lower_call(l, t == DT_BF16 ? "llvm.nvvm.ff2bf16x2.rn" : "llvm.nvvm.ff2f16x2.rn", NULL, 0, both, 2) : NULL;
}

/* --- whole numbers of 4 bits --- */

typedef struct {
	Val word;
	uint64_t at; /* the bit in it that they begin with */
	bool is_signed;
} Nibble;

/* Lane `number` of a vector that was made of its lanes, as load_nibble_group does it; or NULL. */
static Val
lane_put(Val all, Val number)
{
	while (LLVMIsAInsertElementInst(all) && LLVMConstIntGetZExtValue(LLVMGetOperand(all, 2)) != LLVMConstIntGetZExtValue(number))
		all = LLVMGetOperand(all, 0);
	return LLVMIsAInsertElementInst(all) ? LLVMGetOperand(all, 1) : NULL;
}

/* Whether `wide`, an f32, is such a number: 4 bits of a word that were moved to its top and back. */
static bool
is_nibble(Val wide, Nibble *n)
{
	bool number = LLVMIsASIToFPInst(wide) || LLVMIsAUIToFPInst(wide);
	Val lane = number ? LLVMGetOperand(wide, 0) : NULL;
	if (lane && LLVMIsAExtractElementInst(lane))
		lane = lane_put(LLVMGetOperand(lane, 0), LLVMGetOperand(lane, 1));
	Val down = lane && LLVMIsATruncInst(lane) ? LLVMGetOperand(lane, 0) : NULL;
	if (!down || !LLVMIsABinaryOperator(down) || !LLVMIsAConstantInt(LLVMGetOperand(down, 1)) || LLVMConstIntGetZExtValue(LLVMGetOperand(down, 1)) != 28)
		return false;
	Val up = LLVMGetOperand(down, 0);
	n->is_signed = LLVMGetInstructionOpcode(down) == LLVMAShr;
	if (!LLVMIsABinaryOperator(up) || LLVMGetInstructionOpcode(up) != LLVMShl || !LLVMIsAConstantInt(LLVMGetOperand(up, 1)))
		return false;
	n->word = LLVMGetOperand(up, 0);
	n->at = 28 - LLVMConstIntGetZExtValue(LLVMGetOperand(up, 1));
	return n->is_signed == (LLVMIsASIToFPInst(wide) != NULL);
}

/* What is taken from `wide`, a difference: a whole number of 8 bits, of f32; or NULL. */
static Val
taken_from(Lower *l, Val wide)
{
	bool less = LLVMIsABinaryOperator(wide) && LLVMGetInstructionOpcode(wide) == LLVMFSub;
	Val b = less ? LLVMGetOperand(wide, 1) : NULL;
	bool number = b && (LLVMIsASIToFPInst(b) || LLVMIsAUIToFPInst(b));
	return number && LLVMTypeOf(LLVMGetOperand(b, 0)) == LLVMInt8TypeInContext(l->ctx) ? b : NULL;
}

/* x's 16 bits, twice. */
static Val
both_halves(Lower *l, Val x, LLVMTypeRef half)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	Val one = LLVMBuildInsertElement(l->b, LLVMGetPoison(LLVMVectorType(half, 2)), x, LLVMConstInt(i32, 0, 0), "");
	return LLVMBuildInsertElement(l->b, one, x, LLVMConstInt(i32, 1, 0), "");
}

/* (x & mask) ^ onto: one instruction, of which the assembler makes two where both are constants. */
static Val
masked_onto(Lower *l, Val x, uint32_t mask, uint32_t onto)
{
	static const char constraints[] = "=r,r", memory[] = "memory"; /* of which it touches none: equal ones are one */
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), f = LLVMFunctionType(i32, &i32, 1, 0);
	const char *code = arena_text(l->arena, "lop3.b32 $0, $1, 0x%08x, 0x%08x, 0x6a;", (unsigned)mask, (unsigned)onto);
	Val text = LLVMGetInlineAsm(f, code, strlen(code), constraints, sizeof constraints - 1, 0, 0, LLVMInlineAsmDialectATT, 0);
	Val call = LLVMBuildCall2(l->b, f, text, &x, 1, "");
	LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
	                         LLVMCreateEnumAttribute(l->ctx, LLVMGetEnumAttributeKindForName(memory, sizeof memory - 1), 0));
	return call;
}

/* Between which `number`, a whole number of 8 bits as an f32, is. */
static void
limits_of(Val number, int *lo, int *hi)
{
	Nibble n;
	bool is_signed = LLVMIsASIToFPInst(number) != NULL, few = is_nibble(number, &n);
	Val x = LLVMGetOperand(number, 0), by = LLVMIsABinaryOperator(x) ? LLVMGetOperand(x, 1) : NULL;
	uint64_t c = by && LLVMIsAConstantInt(by) ? LLVMConstIntGetZExtValue(by) : 0;
	LLVMOpcode op = c ? LLVMGetInstructionOpcode(x) : (LLVMOpcode)0;
	few |= is_signed ? op == LLVMAShr && c == 4 : (op == LLVMAnd && c == 15) || (op == LLVMLShr && c == 4);
	int bits = few ? 4 : 8;
	*lo = is_signed ? -(1 << (bits - 1)) : 0;
	*hi = (1 << (bits - is_signed)) - 1;
}

/* Two of a word that are half of it apart, as the last bits of a number whose unit they are, from which that number is taken:
 * no conversion takes as little. Signed ones count from -8. less: a whole number that is taken from both, or NULL; then
 * with that number, if it is in the last bits of one as well. */
static Val
widened(Lower *l, DType t, const Nibble *n, Val less)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), half = t == DT_BF16 ? LLVMBFloatTypeInContext(l->ctx) : LLVMHalfTypeInContext(l->ctx);
	uint64_t unit = t == DT_BF16 ? 0x4300 : 0x6400, one = t == DT_BF16 ? 0x3f80 : 0x3c00, base = unit | (n->is_signed ? 8 : 0); /* 128, 1024 */
	Val bits = n->at ? LLVMBuildLShr(l->b, n->word, LLVMConstInt(i32, n->at, 0), "") : n->word;
	bits = masked_onto(l, bits, 0x000f000f, (uint32_t)(base << 16 | base));
	uint64_t minus = base | 0x8000;
	int lo = 0, hi = 0, from = n->is_signed ? 8 : 0, room = t == DT_BF16 ? 128 : 1024;
	if (less)
		limits_of(less, &lo, &hi);
	bool at_once = less && lo + from >= 0 && hi + from < room;
	Val arg[3] = {bits, LLVMConstInt(i32, one << 16 | one, 0), LLVMConstInt(i32, minus << 16 | minus, 0)};
	if (at_once) {
		Val number = LLVMGetOperand(less, 0), whole = LLVMIsASIToFPInst(less) ? LLVMBuildSExt(l->b, number, i32, "") : LLVMBuildZExt(l->b, number, i32, "");
		arg[2] = LLVMBuildAdd(l->b, LLVMBuildMul(l->b, whole, LLVMConstInt(i32, 0x10001, 0), ""), arg[2], "");
	}
	for (unsigned k = 0; k < 3; k++)
		arg[k] = LLVMBuildBitCast(l->b, arg[k], LLVMVectorType(half, 2), "");
	Val two = lower_call(l, t == DT_BF16 ? "llvm.nvvm.fma.rn.bf16x2" : "llvm.nvvm.fma.rn.f16x2", NULL, 0, arg, 3);
	return less && !at_once ? LLVMBuildFSub(l->b, two, both_halves(l, LLVMBuildFPTrunc(l->b, less, half, ""), half), "") : two;
}

/* Such numbers, or those less one that they have in common: of 8 bits at most, so that what is rounded is the same. NULL for others. */
static Val
from_nibbles(Lower *l, DType t, Val low, Val high)
{
	Val wide[2] = {before_rounding(l, low), before_rounding(l, high)}, less = wide[0] ? taken_from(l, wide[0]) : NULL;
	Nibble n[2];
	if (!wide[0] || !wide[1] || (less && taken_from(l, wide[1]) != less))
		return NULL;
	for (unsigned k = 0; k < 2; k++)
		if (!is_nibble(less ? LLVMGetOperand(wide[k], 0) : wide[k], &n[k]))
			return NULL;
	if (n[0].word != n[1].word || n[1].at != n[0].at + 16 || n[0].is_signed != n[1].is_signed)
		return NULL;
	return LLVMBuildBitCast(l->b, widened(l, t, &n[0], less), LLVMInt32TypeInContext(l->ctx), "");
}

/* --- whole numbers of 8 bits --- */

typedef struct {
	Val words;   /* one, or a vector of them, */
	unsigned at; /* of which it is this byte */
	bool is_signed;
} Byte;

/* Whether `lane` is a byte of a vector that came as words. */
static bool
is_of_words(Lower *l, Val lane, Byte *b)
{
	Val all = lane && LLVMIsAExtractElementInst(lane) ? LLVMGetOperand(lane, 0) : NULL;
	if (!all || !LLVMIsABitCastInst(all) || LLVMTypeOf(lane) != LLVMInt8TypeInContext(l->ctx))
		return false;
	b->words = LLVMGetOperand(all, 0);
	b->at = (unsigned)LLVMConstIntGetZExtValue(LLVMGetOperand(lane, 1));
	LLVMTypeRef type = LLVMTypeOf(b->words);
	return (LLVMGetTypeKind(type) == LLVMVectorTypeKind ? LLVMGetElementType(type) : type) == LLVMInt32TypeInContext(l->ctx);
}

static Val
word_with(Lower *l, const Byte *b)
{
	bool several = LLVMGetTypeKind(LLVMTypeOf(b->words)) == LLVMVectorTypeKind;
	return several ? LLVMBuildExtractElement(l->b, b->words, LLVMConstInt(LLVMInt32TypeInContext(l->ctx), b->at / 4, 0), "") : b->words;
}

static bool
share_word(const Byte *b)
{
	return b[0].words == b[1].words && b[0].at / 4 == b[1].at / 4;
}

/* Whether `wide`, an f32, is such a number. */
static bool
is_byte(Lower *l, Val wide, Byte *b)
{
	b->is_signed = LLVMIsASIToFPInst(wide) != NULL;
	return (b->is_signed || LLVMIsAUIToFPInst(wide)) && is_of_words(l, LLVMGetOperand(wide, 0), b);
}

static Val
permuted(Lower *l, Val a, Val b, uint64_t bytes)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx);
	return lower_call(l, "llvm.nvvm.prmt", NULL, 0, (Val[]){a, b, LLVMConstInt(i32, bytes, 0)}, 3);
}

/* Signed ones count from -128. */
static Val
unsigned_word(Lower *l, const Byte *b)
{
	Val word = word_with(l, b);
	return b->is_signed ? LLVMBuildXor(l->b, word, LLVMConstInt(LLVMInt32TypeInContext(l->ctx), 0x80808080, 0), "") : word;
}

/* Number b as the last bits of 2^23, less that number. less: or NULL. */
static Val
from_byte(Lower *l, const Byte *b, Val less)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), f32 = LLVMFloatTypeInContext(l->ctx);
	Val word = unsigned_word(l, b), from = LLVMConstReal(f32, b->is_signed ? 0x1p23 + 128 : 0x1p23);
	Val bits = permuted(l, word, LLVMConstInt(i32, 0x4b000000, 0), 0x7440 | b->at % 4);
	return LLVMBuildFSub(l->b, LLVMBuildBitCast(l->b, bits, f32, ""), less ? LLVMBuildFAdd(l->b, less, from, "") : from, "");
}

/* Whether bf16 has all that such numbers are, less another. */
static bool
is_difference_exact(const Byte *b, Val less)
{
	int lo, hi, least = b->is_signed ? -128 : 0;
	limits_of(less, &lo, &hi);
	return least - hi >= -256 && least + 255 - lo <= 256;
}

/* Two of them, or these less one of 8 bits that they have in common, where 16 bits have that exactly: the upper half of an f32 is the
 * bf16, and an f16 has them as the last bits of 1024. NULL for others. Conversions have a quarter of the rate. */
static Val
from_bytes(Lower *l, DType t, Val low, Val high)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), two = LLVMVectorType(LLVMHalfTypeInContext(l->ctx), 2);
	Val wide[2] = {before_rounding(l, low), before_rounding(l, high)}, less = wide[0] ? taken_from(l, wide[0]) : NULL;
	Byte b[2];
	if (!wide[0] || !wide[1] || taken_from(l, wide[1]) != less)
		return NULL;
	for (unsigned k = 0; k < 2; k++)
		if (!is_byte(l, less ? LLVMGetOperand(wide[k], 0) : wide[k], &b[k]) || (less && !is_difference_exact(&b[k], less)))
			return NULL;
	if (t == DT_BF16)
		return permuted(l, LLVMBuildBitCast(l->b, from_byte(l, &b[0], less), i32, ""), LLVMBuildBitCast(l->b, from_byte(l, &b[1], less), i32, ""), 0x7632);
	if (less || !share_word(b) || b[0].is_signed != b[1].is_signed)
		return NULL;
	uint64_t base = b[0].is_signed ? 0x6480 : 0x6400;
	Val bits = permuted(l, unsigned_word(l, b), LLVMConstInt(i32, 0x64, 0), 0x4040 | b[1].at % 4 << 8 | b[0].at % 4);
	Val from = LLVMBuildBitCast(l->b, LLVMConstInt(i32, base << 16 | base, 0), two, "");
	return LLVMBuildBitCast(l->b, LLVMBuildFSub(l->b, LLVMBuildBitCast(l->b, bits, two, ""), from, ""), i32, "");
}

/* --- floats of 8 bits --- */

/* Whether `wide`, an f32, is an f8e4m3 that threads widened (lower_cast.c). */
static bool
is_float8(Lower *l, Val wide, Byte *b)
{
	Val half = LLVMIsAFPExtInst(wide) ? LLVMGetOperand(wide, 0) : NULL, call = half && LLVMIsAExtractElementInst(half) ? LLVMGetOperand(half, 0) : NULL;
	Val code = call && LLVMIsACallInst(call) && LLVMGetNumArgOperands(call) == 1 ? LLVMGetOperand(call, 0) : NULL;
	return code && LLVMIsAZExtInst(code) && is_of_words(l, LLVMGetOperand(code, 0), b);
}

/* Two of them that one conversion widens, exactly: to f16, of which the upper half of an f32 has all. NULL for others. */
static Val
from_floats8(Lower *l, DType t, Val low, Val high)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), i16 = LLVMInt16TypeInContext(l->ctx), f32 = LLVMFloatTypeInContext(l->ctx);
	Val wide[2] = {before_rounding(l, low), before_rounding(l, high)}, word[2];
	Byte b[2];
	if (!wide[0] || !wide[1] || !is_float8(l, wide[0], &b[0]) || !is_float8(l, wide[1], &b[1]))
		return NULL;
	if (!share_word(b) || b[0].at % 2 || b[1].at != b[0].at + 1)
		return NULL;
	Val code = LLVMBuildTrunc(l->b, LLVMBuildLShr(l->b, word_with(l, &b[0]), LLVMConstInt(i32, b[0].at % 4 * 8, 0), ""), i16, "");
	Val halves = lower_call(l, "llvm.nvvm.e4m3x2.to.f16x2.rn", NULL, 0, &code, 1);
	if (t == DT_F16)
		return LLVMBuildBitCast(l->b, halves, i32, "");
	for (unsigned k = 0; k < 2; k++)
		word[k] = LLVMBuildBitCast(l->b, LLVMBuildFPExt(l->b, LLVMBuildExtractElement(l->b, halves, LLVMConstInt(i32, k, 0), ""), f32, ""), i32, "");
	return permuted(l, word[0], word[1], 0x7632);
}

/* Two elements of 16 bits, the first one low. */
static Val
word_of(Lower *l, DType t, Val low, Val high)
{
	LLVMTypeRef i32 = LLVMInt32TypeInContext(l->ctx), pair = LLVMVectorType(LLVMInt16TypeInContext(l->ctx), 2);
	Val word = common_word(low, high);
	word = word ? word : from_nibbles(l, t, low, high);
	word = word ? word : from_bytes(l, t, low, high);
	word = word ? word : from_floats8(l, t, low, high);
	Val two = word ? NULL : rounded(l, t, low, high);
	if (word || two)
		return word ? word : LLVMBuildBitCast(l->b, two, i32, "");
	Val both = LLVMBuildInsertElement(l->b, LLVMGetPoison(pair), low, LLVMConstInt(i32, 0, 0), "");
	return LLVMBuildBitCast(l->b, LLVMBuildInsertElement(l->b, both, high, LLVMConstInt(i32, 1, 0), ""), i32, "");
}

static Val
rounded_word(Lower *l, Val x)
{
	return lower_call(l, "llvm.nvvm.f2tf32.rna", NULL, 0, &x, 1);
}

Val
lower_warp_mma(Lower *l, ValId v)
{
	LLVMTypeRef f32 = LLVMFloatTypeInContext(l->ctx), part[WARP_MMA_C], type[WORDS + WARP_MMA_C];
	Val arg[WORDS + WARP_MMA_C], all = LLVMGetPoison(lower_type(l, lower_inst(l, v)->type));
	DType t = (DType)lower_inst(l, lower_arg_id(l, v, 0))->type.dtype;
	bool pairs = t != DT_F32;
	const char *factor = pairs ? dtype_info[t].text : "tf32";
	for (unsigned n = 0; n < WORDS; n++)
		arg[n] = pairs ? word_of(l, t, lower_arg(l, v, 2 * n), lower_arg(l, v, 2 * n + 1)) : rounded_word(l, lower_arg(l, v, n));
	for (unsigned n = 0; n < WARP_MMA_C; n++) {
		arg[WORDS + n] = lower_arg(l, v, WORDS * warp_mma_word(t) + n);
		part[n] = f32;
	}
	for (unsigned n = 0; n < WORDS + WARP_MMA_C; n++)
		type[n] = LLVMTypeOf(arg[n]);
	const char *code = arena_text(l->arena, "mma.sync.aligned.m16n8k%u.row.col.f32.%s.%s.f32 {$0, $1, $2, $3}, {$4, $5, $6, $7}, "
	                                        "{$8, $9}, {$10, $11, $12, $13};", WARP_MMA_TERM_WORDS * warp_mma_word(t), factor, factor);
	static const char constraints[] = "=f,=f,=f,=f,r,r,r,r,r,r,f,f,f,f";
	LLVMTypeRef f = LLVMFunctionType(LLVMStructTypeInContext(l->ctx, part, WARP_MMA_C, 0), type, WORDS + WARP_MMA_C, 0);
	Val call = LLVMBuildCall2(l->b, f, LLVMGetInlineAsm(f, code, strlen(code), constraints, strlen(constraints), 0, 0, LLVMInlineAsmDialectATT, 0),
	                          arg, WORDS + WARP_MMA_C, "");
	LLVMAddCallSiteAttribute(call, (LLVMAttributeIndex)LLVMAttributeFunctionIndex,
	                         LLVMCreateEnumAttribute(l->ctx, LLVMGetEnumAttributeKindForName("convergent", 10), 0));
	for (unsigned n = 0; n < WARP_MMA_C; n++)
		all = LLVMBuildInsertElement(l->b, all, LLVMBuildExtractValue(l->b, call, n, ""), LLVMConstInt(lower_i64(l), n, 0), "");
	return all;
}

void
lower_rolled(Lower *l, Val back)
{
	static const char name[] = "llvm.loop.unroll.disable", loop[] = "llvm.loop";
	LLVMMetadataRef text = LLVMMDStringInContext2(l->ctx, name, sizeof name - 1), own = LLVMTemporaryMDNode(l->ctx, NULL, 0);
	LLVMMetadataRef disable = LLVMMDNodeInContext2(l->ctx, &text, 1), node = LLVMMDNodeInContext2(l->ctx, (LLVMMetadataRef[]){own, disable}, 2);
	LLVMMetadataReplaceAllUsesWith(own, node);
	LLVMSetMetadata(back, LLVMGetMDKindIDInContext(l->ctx, loop, sizeof loop - 1), LLVMMetadataAsValue(l->ctx, node));
}

/* Loop v stays one if it is to, or if its turns have matrix instructions: of those the assembler makes several, and keeps in memory
 * what it then has no registers for; and the loads of one turn are enough to wait for. */
void
lower_keep_rolled(Lower *l, ValId v, Val back)
{
	const TirRegion *body = &l->k->region.at[lower_inst(l, v)->region];
	bool stays = lower_inst(l, v)->imm.i == TIR_ROLLED;
	for (uint32_t i = 0; i < body->inst.n; i++)
		stays |= lower_inst(l, body->inst.at[i])->op == OP_WARP_MMA;
	if (stays)
		lower_rolled(l, back);
}
