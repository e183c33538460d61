/* legalize: write every cast from or to a narrow float as bit arithmetic.
 *
 * in     a kernel with any casts
 * out    narrow floats only in LOAD, STORE, BITCAST, SELECT, SPLAT, LANE, CONST and as carried values;
 *        the casts left are among f32, f64, bool and integers, which code generation has
 * fp     exact: each cast is still rounded once
 * tests  tests/math/cast_test.c, against the interpreter's own casts; where the kernel's threads, or the processor, have a cast, it stays
 *
 * Every narrow format lies within f32, so a cast from one goes by its exact f32. A cast to one starts
 * from f32 as well. Where the source has more than f32 (f64, integers of 32 and 64 bits) it is
 * first rounded to odd: cut off, with the last bit set if anything was lost. The 24 bits of an f32
 * are at least two more than any narrow format keeps, so rounding that to nearest equals rounding
 * the source (Boldo and Melquiond). */
#include "passes/tile/expand.h"
#include "ir/bugs.h"
#include "passes/tile/tile.h"

enum { NONE = -1 };

/* Narrow floats but e8m0. Codes are without the sign bit, which stands above. */
typedef struct {
	int mant, bias;     /* bits of the significand, exponent bias */
	int top;            /* the largest code rounding may give: infinity, or the largest number */
	int infinity;       /* the code of infinity, above it NaNs; NONE: no infinity */
	int nan;            /* the code a NaN gets (without sign) */
	int nan_above;      /* codes above are NaN where there is no infinity; NONE: no NaN */
	DType bits;         /* the unsigned type of its width */
} Narrow;

static const Narrow narrow[DT_COUNT] = {
	[DT_F16] = {10, 15, 0x7c00, 0x7c00, 0x7e00, NONE, DT_U16},
	[DT_BF16] = {7, 127, 0x7f80, 0x7f80, 0x7fc0, NONE, DT_U16},
	[DT_F8E5M2] = {2, 15, 0x7c, 0x7c, 0x7e, NONE, DT_U8},
	[DT_F8E4M3] = {3, 7, 0x7e, NONE, 0x7f, 0x7e, DT_U8},
	[DT_F4E2M1] = {1, 1, 0x7, NONE, 0, NONE, DT_U4},
};

enum { F32_BIAS = 127, F32_MANT = 23, E8M0_TOP = 254, E8M0_NAN = 255 };
static const uint32_t f32_infinity = 0x7f800000u;

static bool
is_narrow(DType t)
{
	return dtype_is_float(t) && t != DT_F32 && t != DT_F64;
}

/* 2^e as the bits of an f32, e normal. */
static uint32_t
power_bits(int e)
{
	return (uint32_t)(e + F32_BIAS) << F32_MANT;
}

/* --- to f32 --- */

static ValId
decode_e8m0(const Ex *x, ValId code)
{
	ValId bits = ex_shl(x, code, F32_MANT);
	bits = ex_select(x, ex_eq(x, code, ex_bits(x, 0)), ex_bits(x, 0x00400000u), bits);
	bits = ex_select(x, ex_eq(x, code, ex_bits(x, E8M0_NAN)), ex_bits(x, 0x7fc00000u), bits);
	return ex_from_bits(x, bits);
}

/* Of exponents shorter than f32's. Codes below the least normal are counts of the least number: added to a power of two whose last bit
 * weighs as much, then taken off that power. */
static ValId
decode_ieee(const Ex *x, const Narrow *f, unsigned width, ValId code)
{
	ValId size = ex_and(x, code, ex_bits(x, (1u << (width - 1)) - 1));
	ValId sign = ex_shl(x, tir_binary(x->k, OP_BXOR, code, size), 32 - width);
	ValId bits = ex_shl(x, size, (unsigned)(F32_MANT - f->mant));
	bits = ex_add(x, bits, ex_bits(x, (uint32_t)(F32_BIAS - f->bias) << F32_MANT));
	ValId unit = ex_bits(x, power_bits(F32_MANT + 1 - f->bias - f->mant));
	ValId sum = ex_from_bits(x, ex_add(x, size, unit));
	ValId few = ex_to_bits(x, ex_sub(x, sum, ex_from_bits(x, unit)));
	bits = ex_select(x, ex_lt(x, size, ex_bits(x, 1u << f->mant)), few, bits);
	if (f->infinity != NONE) {
		ValId special = ex_or(x, ex_shl(x, size, (unsigned)(F32_MANT - f->mant)),
		                      ex_bits(x, f32_infinity));
		bits = ex_select(x, ex_lt(x, size, ex_bits(x, (uint32_t)f->infinity)), bits, special);
	}
	if (f->nan_above != NONE)
		bits = ex_select(x, ex_lt(x, ex_bits(x, (uint32_t)f->nan_above), size),
		                 ex_bits(x, 0x7fc00000u), bits);
	return ex_from_bits(x, ex_or(x, bits, sign));
}

static ValId
to_f32(const Ex *x, ValId a, DType from)
{
	DType bits = from == DT_E8M0 ? DT_U8 : narrow[from].bits;
	ValId code = tir_cast(x->k, DT_U32, tir_bitcast(x->k, bits, a));
	if (from == DT_E8M0)
		return decode_e8m0(x, code);
	if (from == DT_BF16) /* the upper half of an f32 */
		return ex_from_bits(x, ex_shl(x, code, 16));
	return decode_ieee(x, &narrow[from], dtype_info[from].bits, code);
}

/* --- from f32 --- */

/* The nearest power of two, in the middle the one with the even field. Fields 0 and 1 stand for
 * 2^-127 and 2^-126, so below 2^-126 the middle is not where the bits have it. */
static ValId
encode_e8m0(const Ex *x, ValId bits)
{
	ValId one = ex_bits(x, 1);
	ValId odd = ex_and(x, ex_shr(x, bits, F32_MANT), one);
	ValId code = ex_shr(x, ex_add(x, bits, ex_add(x, odd, ex_bits(x, 0x3fffffu))), F32_MANT);
	ValId above = ex_lt(x, ex_bits(x, 0x600000u), bits);
	ValId low = ex_select(x, above, one, ex_bits(x, 0));
	code = ex_select(x, ex_lt(x, bits, ex_bits(x, 1u << F32_MANT)), low, code);
	ValId top = ex_bits(x, E8M0_TOP);
	code = ex_select(x, ex_lt(x, top, code), top, code);
	/* As integers, NaNs lie above infinity, and negative numbers above both; -0 is 0. */
	ValId none = ex_lt(x, ex_bits(x, f32_infinity), bits);
	code = ex_select(x, none, ex_bits(x, E8M0_NAN), code);
	return ex_select(x, ex_eq(x, bits, ex_bits(x, 0x80000000u)), ex_bits(x, 0), code);
}

/* Normal results: the exponent moved, then the usual addition of just below half of the last place,
 * one more where that place is odd. Subnormal ones: the sum with a power of two whose last place is
 * the least number rounds there. */
static ValId
encode_ieee(const Ex *x, const Narrow *f, unsigned width, ValId bits)
{
	unsigned drop = (unsigned)(F32_MANT - f->mant);
	ValId size = ex_and(x, bits, ex_bits(x, 0x7fffffffu));
	ValId moved = ex_sub(x, size, ex_bits(x, (uint32_t)(F32_BIAS - f->bias) << F32_MANT));
	ValId odd = ex_and(x, ex_shr(x, moved, drop), ex_bits(x, 1));
	ValId half = ex_bits(x, (1u << (drop - 1)) - 1);
	ValId code = ex_shr(x, ex_add(x, ex_add(x, moved, half), BUG(narrow_ties_up) ? ex_bits(x, 1) : odd), drop);
	if (f->bias != F32_BIAS) {
		ValId unit = ex_bits(x, power_bits(F32_MANT + 1 - f->bias - f->mant));
		ValId sum = ex_add(x, ex_from_bits(x, size), ex_from_bits(x, unit));
		ValId few = ex_sub(x, ex_to_bits(x, sum), unit);
		ValId least = ex_bits(x, power_bits(1 - f->bias));
		code = ex_select(x, ex_lt(x, size, least), few, code);
	}
	ValId top = ex_bits(x, (uint32_t)f->top);
	if (!BUG(narrow_overflows))
		code = ex_select(x, ex_lt(x, top, code), top, code);
	ValId sign = ex_shr(x, tir_binary(x->k, OP_BXOR, bits, size), 32 - width);
	ValId nan = ex_lt(x, ex_bits(x, f32_infinity), size);
	return ex_select(x, nan, ex_bits(x, (uint32_t)f->nan), ex_or(x, code, sign));
}

/* The upper half, to which the lower one carries; no carry reaches the sign but a NaN's. */
static ValId
encode_bf16(const Ex *x, ValId a, ValId bits)
{
	ValId odd = BUG(narrow_ties_up) ? ex_bits(x, 1) : ex_and(x, ex_shr(x, bits, 16), ex_bits(x, 1));
	ValId code = ex_shr(x, ex_add(x, ex_add(x, bits, ex_bits(x, 0x7fff)), odd), 16);
	return ex_select(x, tir_binary(x->k, OP_EQ, a, a), code, ex_bits(x, (uint32_t)narrow[DT_BF16].nan));
}

static ValId
from_f32(const Ex *x, ValId a, DType to)
{
	ValId bits = ex_to_bits(x, a), code;
	if (to == DT_E8M0)
		code = encode_e8m0(x, bits);
	else if (to == DT_BF16)
		code = encode_bf16(x, a, bits);
	else
		code = encode_ieee(x, &narrow[to], dtype_info[to].bits, bits);
	DType width = to == DT_E8M0 ? DT_U8 : narrow[to].bits;
	return tir_bitcast(x->k, to, tir_cast(x->k, width, code));
}

/* --- to f32, rounded to odd --- */

static ValId
odd_of_f64(const Ex *x, ValId a)
{
	TirKernel *k = x->k;
	ValId near = tir_cast(k, DT_F32, a), back = tir_cast(k, DT_F64, near);
	ValId size = tir_unary(k, OP_ABS, a), near_size = tir_unary(k, OP_ABS, back);
	/* NaN compares false throughout: it stays. */
	ValId over = tir_binary(k, OP_LT, size, near_size);
	ValId under = tir_binary(k, OP_LT, near_size, size);
	ValId bits = ex_to_bits(x, near), one = ex_bits(x, 1);
	bits = ex_select(x, over, ex_sub(x, bits, one), bits);
	ValId inexact = tir_binary(k, OP_OR, over, under);
	return ex_from_bits(x, ex_select(x, inexact, ex_or(x, bits, one), bits));
}

/* 64-bit integers of more than 52 bits: the low 12 become one bit, which then is exact in f64. */
static ValId
f64_of_int(const Ex *x, ValId a, DType from)
{
	TirKernel *k = x->k;
	if (dtype_info[from].bits < 64)
		return tir_cast(k, DT_F64, a);
	ValId bits = tir_bitcast(k, DT_U64, a);
	ValId low = tir_binary(k, OP_BAND, bits, tir_int(k, DT_U64, 0xfff));
	ValId high = tir_binary(k, OP_BXOR, bits, low);
	ValId lost = tir_binary(k, OP_NE, low, tir_int(k, DT_U64, 0));
	ValId bit = tir_select(k, lost, tir_int(k, DT_U64, 0x1000), tir_int(k, DT_U64, 0));
	ValId cut = tir_bitcast(k, from, tir_binary(k, OP_BOR, high, bit));
	ValId limit = tir_int(k, from, INT64_C(1) << 52);
	ValId big = tir_binary(k, OP_LT, limit, a);
	if (dtype_info[from].kind == KIND_INT) {
		ValId least = tir_int(k, from, -(INT64_C(1) << 52));
		big = tir_binary(k, OP_OR, big, tir_binary(k, OP_LT, a, least));
	}
	return tir_cast(k, DT_F64, tir_select(k, big, cut, a));
}

static ValId
widen_to_f32(const Ex *x, ValId a, DType from)
{
	if (is_narrow(from))
		return to_f32(x, a, from);
	if (from == DT_F32)
		return a;
	if (from == DT_F64)
		return BUG(rounded_twice) ? tir_cast(x->k, DT_F32, a) : odd_of_f64(x, a);
	if (dtype_info[from].bits <= 16)
		return tir_cast(x->k, DT_F32, a);
	return odd_of_f64(x, f64_of_int(x, a, from));
}

static bool
is_narrow_cast(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	if (p->op != OP_CAST)
		return false;
	DType target = (DType)p->type.dtype, source = (DType)tir_inst(k, tir_arg(k, v, 0))->type.dtype;
	return source != target && (is_narrow(source) || is_narrow(target));
}

/* Threads of a GPU round f32 to f16 and bf16, and widen f16, themselves; those of own_casts 8-bit floats too. Processors
 * of half_casts round f32 to f16, and widen that. */
static bool
is_own(const TirKernel *k, ValId v)
{
	DType target = (DType)tir_inst(k, v)->type.dtype, source = (DType)tir_inst(k, tir_arg(k, v, 0))->type.dtype;
	bool rounds = source == DT_F32 && (target == DT_F16 || target == DT_BF16);
	if (k->fp8 && ((source == DT_F32 && (target == DT_F8E4M3 || target == DT_F8E5M2)) || (source == DT_F8E4M3 && target == DT_F32)))
		return true;
	if (k->halves)
		return (source == DT_F32 && target == DT_F16) || (source == DT_F16 && target == DT_F32);
	return k->form == TIR_SPREAD && (rounds || (source == DT_F16 && target == DT_F32));
}

/* Of a float that is widened by f16: it, or what its upper half is: f8e5m2. */
static ValId
widen_by_f16(TirKernel *k, ValId a, DType from)
{
	if (from == DT_F8E5M2) {
		ValId code = tir_cast(k, DT_U16, tir_bitcast(k, DT_U8, a));
		a = tir_bitcast(k, DT_F16, tir_binary(k, OP_SHL, code, tir_int(k, DT_U16, 8)));
	}
	return tir_cast(k, DT_F32, a);
}

static ValId
legalize(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	if (!is_narrow_cast(from, v) || is_own(from, v))
		return tir_copy_inst(to, from, v, arg);
	DType target = (DType)tir_inst(from, v)->type.dtype;
	DType source = (DType)tir_inst(from, tir_arg(from, v, 0))->type.dtype;
	Ex x = ex_of(to, (TirType){DT_F32, tir_inst(from, v)->type.lanes});
	bool widens = (from->form == TIR_SPREAD || from->halves) && (source == DT_F16 || source == DT_F8E5M2);
	bool at_once = from->fp8 && source == DT_F8E4M3;
	ValId exact = widens ? widen_by_f16(to, arg[0], source) : at_once ? tir_cast(to, DT_F32, arg[0]) : widen_to_f32(&x, arg[0], source);
	if (from->fp8 && (target == DT_F8E4M3 || target == DT_F8E5M2))
		return tir_cast(to, target, exact);
	if (from->form == TIR_SPREAD && (target == DT_F16 || target == DT_BF16))
		return tir_cast(to, target, exact);
	if (from->halves && target == DT_F16)
		return tir_cast(to, target, exact);
	return is_narrow(target) ? from_f32(&x, exact, target) : tir_cast(to, target, exact);
}

/* Marks kernels whose threads do what legalize need not write then. */
TirKernel *
tile_own_casts(const TirKernel *k, Arena *a)
{
	if (k->form != TIR_SPREAD || k->fp8)
		return (TirKernel *)(uintptr_t)k;
	TirKernel *to = arena_copy(a, k, sizeof *k);
	to->fp8 = true;
	return to;
}

TirKernel *
tile_half_casts(const TirKernel *k, Arena *a)
{
	if (k->form != TIR_TASKS || k->halves)
		return (TirKernel *)(uintptr_t)k;
	TirKernel *to = arena_copy(a, k, sizeof *k);
	to->halves = true;
	return to;
}

TirKernel *
tile_legalize(const TirKernel *k, Arena *a)
{
	for (ValId v = 1; v < k->inst.n; v++)
		if (is_narrow_cast(k, v))
			return tir_rewrite(k, a, legalize, NULL);
	return (TirKernel *)(uintptr_t)k;
}
