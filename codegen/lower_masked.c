/* lower_masked.c: lanes in a row under a mask, on a processor with AVX and without the masks of AVX-512: its own
 * instructions, register by register, which take a lane's mask from the sign of an element of its width.
 *
 * LLVM 22's masked.load does the same, but where a half of a vector's mask is known to be false and the mask has other
 * uses, it may read that half as if it were true (known_half_of_a_mask of tests/codegen/random_kernels_test.c). Elements of 8
 * and 16 bits have no such instruction; LLVM asks for each of their lanes in turn, and is left to. */
#include "codegen/lower.h"

static unsigned
element_bits(LLVMTypeRef vector)
{
	LLVMTypeRef element = LLVMGetElementType(vector);
	switch (LLVMGetTypeKind(element)) {
	case LLVMFloatTypeKind: return 32;
	case LLVMDoubleTypeKind: return 64;
	case LLVMIntegerTypeKind: return LLVMGetIntTypeWidth(element);
	default: return 16;
	}
}

bool
lower_masks_by_sign(const Lower *l, LLVMTypeRef vector)
{
	return target_has(l->target, FEATURE_AVX) && !target_has(l->target, FEATURE_AVX512F) && element_bits(vector) >= 32;
}

/* One access, cut into registers. */
typedef struct {
	LLVMTypeRef floats; /* a register */
	unsigned bits, lanes, part; /* of an element; of the vector; of a register */
	Val mask;           /* integers of an element's width */
} Cut;

static Cut
cut(Lower *l, LLVMTypeRef vector, Val mask)
{
	unsigned bits = element_bits(vector), lanes = LLVMGetVectorSize(vector);
	Cut c = {.bits = bits, .lanes = lanes, .part = (lanes * bits <= 128 ? 128 : 256) / bits};
	c.floats = LLVMVectorType(bits == 32 ? LLVMFloatTypeInContext(l->ctx) : LLVMDoubleTypeInContext(l->ctx), c.part);
	c.mask = LLVMBuildSExt(l->b, mask, LLVMVectorType(LLVMIntTypeInContext(l->ctx, bits), lanes), "");
	return c;
}

static Val
call(Lower *l, const Cut *c, const char *name, Val p, unsigned at, Val value)
{
	Val none = LLVMConstNull(LLVMTypeOf(c->mask)), by = lower_int(l, lower_i64(l), at * c->bits / 8);
	Val arg[3] = {LLVMBuildGEP2(l->b, LLVMInt8TypeInContext(l->ctx), p, &by, 1, ""), lower_lanes_from(l, c->mask, none, at, c->part), value};
	name = arena_text(l->arena, "llvm.x86.avx.%s.p%c%s", name, c->bits == 32 ? 's' : 'd', c->bits * c->part == 256 ? ".256" : "");
	return lower_call(l, name, NULL, 0, arg, value ? 3 : 2);
}

/* Zero where the mask is false. */
Val
lower_masked_load(Lower *l, LLVMTypeRef vector, Val p, Val mask)
{
	Cut c = cut(l, vector, mask);
	Val all = NULL;
	for (unsigned at = 0; at < c.lanes; at += c.part)
		all = lower_put_lanes(l, all, call(l, &c, "maskload", p, at, NULL), at, c.lanes);
	return LLVMBuildBitCast(l->b, all, vector, "");
}

void
lower_masked_store(Lower *l, Val value, Val p, Val mask)
{
	Cut c = cut(l, LLVMTypeOf(value), mask);
	value = LLVMBuildBitCast(l->b, value, LLVMVectorType(LLVMGetElementType(c.floats), c.lanes), "");
	for (unsigned at = 0; at < c.lanes; at += c.part)
		call(l, &c, "maskstore", p, at, lower_lanes_from(l, value, LLVMGetPoison(LLVMTypeOf(value)), at, c.part));
}
