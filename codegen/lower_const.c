/* lower_const.c: constants. Narrow floats are held as their bits; their constants are exactly values
 * of their type, so encoding never rounds. */
#include <math.h>
#include <string.h>

#include "codegen/lower.h"

typedef struct {
	int mant, bias; /* fraction bits; exponent bias */
	uint32_t sign, nan, inf;
} NarrowFormat;

static NarrowFormat
narrow_format(DType t)
{
	if (t == DT_F16)
		return (NarrowFormat){10, 15, 0x8000, 0x7e00, 0x7c00};
	if (t == DT_BF16)
		return (NarrowFormat){7, 127, 0x8000, 0x7fc0, 0x7f80};
	if (t == DT_F8E4M3)
		return (NarrowFormat){3, 7, 0x80, 0x7f, 0x7e};
	if (t == DT_F8E5M2)
		return (NarrowFormat){2, 15, 0x80, 0x7e, 0x7c};
	return (NarrowFormat){1, 1, 0x8, 0, 0x7}; /* f4e2m1 has neither NaN nor infinity */
}

uint32_t
narrow_bits(DType t, double v)
{
	int e;
	if (t == DT_E8M0) /* 2^(bits - 127) */
		return isnan(v) ? 0xff : (uint32_t)(frexp(v, &e) > 0 ? e - 1 + 127 : 0);
	NarrowFormat f = narrow_format(t);
	uint32_t sign = signbit(v) ? f.sign : 0;
	if (isnan(v))
		return f.nan;
	if (isinf(v))
		return sign | f.inf;
	double m = frexp(fabs(v), &e); /* [0.5, 1) */
	if (m == 0)
		return sign;
	int field = e - 1 + f.bias;
	if (field <= 0) /* subnormal: in units of 2^(1 - bias - mant) */
		return sign | (uint32_t)ldexp(m, e - 1 + f.bias + f.mant);
	uint32_t frac = (uint32_t)ldexp(m * 2 - 1, f.mant);
	return sign | (uint32_t)field << f.mant | frac;
}

static bool
is_carried_float(DType t)
{
	return dtype_is_float(t) && t != DT_F32 && t != DT_F64;
}

/* An integer constant as it is held: 4-bit ones extended to 8 bits. */
static uint64_t
held_int(DType t, int64_t v)
{
	if (t == DT_BOOL)
		return v != 0;
	if (t == DT_U4)
		return (uint64_t)v & 15;
	if (t == DT_I4)
		return (uint64_t)((((v & 15) ^ 8) - 8));
	return (uint64_t)v;
}

Val
lower_const(Lower *l, const TirInst *x)
{
	DType t = (DType)x->type.dtype;
	LLVMTypeRef type = lower_type(l, x->type);
	if (is_carried_float(t))
		return lower_int(l, type, narrow_bits(t, x->imm.f));
	if (!dtype_is_float(t))
		return lower_int(l, type, held_int(t, x->imm.i));
	Val c = LLVMConstReal(lower_dtype(l, t), x->imm.f);
	if (x->type.lanes == 0)
		return c;
	Val *lane = ARENA_ARRAY(l->arena, Val, x->type.lanes);
	for (unsigned i = 0; i < x->type.lanes; i++)
		lane[i] = c;
	return LLVMConstVector(lane, x->type.lanes);
}
