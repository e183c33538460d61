/* int_power.c: pow on integers, wrapping, by repeated squaring over all bits of the exponent. A
 * negative exponent is 1 over the positive power, truncated: 1 and -1 keep their size, 0 gives what
 * a division by 0 gives (all ones), all else 0. */
#include "passes/tile/expand.h"

enum { LARGEST_CONSTANT = 64 }; /* beyond that the loop is shorter */

static ValId
negative_power(TirKernel *k, DType dtype, ValId a, ValId b)
{
	ValId one = tir_int(k, dtype, 1), minus = tir_int(k, dtype, -1), zero = tir_int(k, dtype, 0);
	ValId odd = tir_binary(k, OP_EQ, tir_binary(k, OP_IMOD, b, tir_int(k, dtype, 2)), one);
	ValId v = tir_select(k, tir_binary(k, OP_EQ, a, zero), minus, zero);
	v = tir_select(k, tir_binary(k, OP_EQ, a, minus), tir_select(k, odd, minus, one), v);
	return tir_select(k, tir_binary(k, OP_EQ, a, one), one, v);
}

/* a^b, b > 0, by the bits that b has. */
static ValId
constant_power(TirKernel *k, ValId a, int64_t b)
{
	ValId v = 0;
	for (uint64_t left = (uint64_t)b; left; left >>= 1) {
		if (left & 1)
			v = v ? tir_binary(k, OP_MUL, v, a) : a;
		if (left > 1)
			a = tir_binary(k, OP_MUL, a, a);
	}
	return v;
}

ValId
ex_int_pow(TirKernel *k, TirType t, ValId a, ValId b)
{
	DType dtype = (DType)t.dtype, bits = dtype_info[dtype].bits == 64 ? DT_U64 : DT_U32;
	TirType wide = {(uint8_t)bits, t.lanes};
	const TirInst *constant = ex_constant(k, b);
	if (constant && constant->imm.i > 0 && constant->imm.i <= LARGEST_CONSTANT)
		return tir_cast(k, dtype, constant_power(k, tir_cast(k, bits, a), constant->imm.i));
	ValId carried[3] = {tir_emit(k, OP_CONST, wide, 1, NULL, 0), tir_cast(k, bits, a), tir_cast(k, bits, b)};
	ValId one = tir_int(k, bits, 1), zero = tir_int(k, bits, 0);
	tir_for(k, tir_int(k, DT_I64, 0), tir_int(k, DT_I64, dtype_info[dtype].bits), tir_int(k, DT_I64, 1),
	        carried, 3);
	ValId set = tir_binary(k, OP_NE, tir_binary(k, OP_BAND, carried[2], one), zero);
	carried[0] = tir_select(k, set, tir_binary(k, OP_MUL, carried[0], carried[1]), carried[0]);
	carried[1] = tir_binary(k, OP_MUL, carried[1], carried[1]);
	carried[2] = tir_binary(k, OP_SHR, carried[2], one);
	tir_end_for(k, carried, 3);
	ValId v = tir_cast(k, dtype, carried[0]);
	if (dtype_info[dtype].kind == KIND_UINT)
		return v;
	ValId negative = tir_binary(k, OP_LT, b, tir_int(k, dtype, 0));
	return tir_select(k, negative, negative_power(k, dtype, a, b), v);
}
