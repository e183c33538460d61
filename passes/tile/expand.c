/* expand.c: the shared steps of expand.h. The error-free transformations are Dekker's and Knuth's:
 * they hold because TIR's operations round once and nothing reorders them. */
#include "passes/tile/expand.h"

#include "ir/bugs.h"

#include <string.h>

Ex
ex_of(TirKernel *k, TirType t)
{
	Ex x = {.k = k, .f = (DType)t.dtype, .lanes = t.lanes};
	if (x.f != DT_F32 && x.f != DT_F64)
		bug(k->arena, "an expansion in %s", dtype_info[x.f].text);
	x.wide = x.f == DT_F64;
	x.u = x.wide ? DT_U64 : DT_U32;
	x.mant = x.wide ? 52 : 23;
	x.bias = x.wide ? 1023 : 127;
	return x;
}

static ValId
constant(const Ex *x, DType t, int64_t imm)
{
	TirType type = {(uint8_t)t, x->lanes};
	return tir_emit(x->k, OP_CONST, type, imm, NULL, 0);
}

ValId
ex_float(const Ex *x, double v)
{
	double rounded = x->wide ? v : (double)(float)v;
	int64_t imm;
	memcpy(&imm, &rounded, sizeof imm);
	return constant(x, x->f, imm);
}

ValId
ex_bits(const Ex *x, uint64_t v)
{
	return constant(x, x->u, (int64_t)(x->wide ? v : v & 0xffffffffu));
}

ValId
ex_sum(const Ex *x, const ExSum *s, unsigned part)
{
	return ex_float(x, s->c[x->wide][part]);
}

ValId
ex_poly(const Ex *x, const ExPoly *p, ValId at)
{
	unsigned n = p->n[x->wide];
	ValId v = ex_float(x, p->c[x->wide][n - 1]);
	for (unsigned i = n - 1; i-- > 0;)
		v = ex_fma(x, v, at, ex_float(x, p->c[x->wide][i]));
	return v;
}

const TirInst *
ex_constant(const TirKernel *k, ValId v)
{
	const TirInst *p = tir_inst(k, v);
	if (p->op == OP_SPLAT)
		p = tir_inst(k, tir_arg(k, v, 0));
	return p->op == OP_CONST ? p : NULL;
}

double
ex_magic(const Ex *x)
{
	return x->wide ? 0x1.8p52 : 0x1.8p23;
}

ValId
ex_at_least(const Ex *x, ValId a, double low)
{
	ValId bottom = ex_float(x, low);
	return ex_select(x, ex_lt(x, a, bottom), bottom, a);
}

ValId
ex_between(const Ex *x, ValId a, double low, double high)
{
	ValId top = ex_float(x, high);
	a = ex_at_least(x, a, low);
	return BUG(exp_overflows_to_zero) ? a : ex_select(x, ex_lt(x, top, a), top, a);
}

ValId
ex_any(const Ex *x, ValId cond)
{
	return x->lanes ? tir_emit(x->k, OP_ANY, tir_scalar(DT_BOOL), 0, &cond, 1) : cond;
}

Ex2
ex_fast_sum(const Ex *x, ValId a, ValId b)
{
	ValId hi = ex_add(x, a, b);
	return (Ex2){hi, ex_sub(x, b, ex_sub(x, hi, a))};
}

Ex2
ex_two_sum(const Ex *x, ValId a, ValId b)
{
	ValId hi = ex_add(x, a, b);
	ValId b1 = ex_sub(x, hi, a);
	ValId a1 = ex_sub(x, hi, b1);
	return (Ex2){hi, ex_add(x, ex_sub(x, a, a1), ex_sub(x, b, b1))};
}

Ex2
ex_two_mul(const Ex *x, ValId a, ValId b)
{
	ValId hi = ex_mul(x, a, b);
	return (Ex2){hi, ex_fma(x, a, b, ex_neg(x, hi))};
}

Ex2
ex_mul2(const Ex *x, Ex2 a, Ex2 b)
{
	Ex2 p = ex_two_mul(x, a.hi, b.hi);
	ValId cross = ex_fma(x, a.lo, b.hi, ex_mul(x, a.hi, b.lo));
	return (Ex2){p.hi, ex_add(x, p.lo, cross)};
}

ValId
ex_sign_bit(const Ex *x, ValId a)
{
	return ex_and(x, ex_to_bits(x, a), ex_bits(x, UINT64_C(1) << (x->mant + (x->wide ? 11 : 8))));
}

ValId
ex_flip(const Ex *x, ValId a, ValId sign)
{
	return ex_from_bits(x, tir_binary(x->k, OP_BXOR, ex_to_bits(x, a), sign));
}
