/* tg_types.c: see tg_types.h; ir/README.md has the table. */
#include "ir/tg_types.h"

#include <math.h>

DType
tg_result_type(Op op, const DType *arg, unsigned narg)
{
	if (op == OP_SELECT)
		return narg == 3 ? arg[1] : DT_NONE;
	if (op_info[op].sig == SIG_CMP || op == OP_ISNAN || op == OP_TOUCHED)
		return DT_BOOL;
	if (op == OP_RE || op == OP_IM || op == OP_RAND || op == OP_RANDN)
		return DT_F32;
	if (op == OP_CPLX || op == OP_ROOT)
		return DT_C64;
	if (op == OP_AXIS || op == OP_IVAR || op == OP_DIM)
		return DT_I64;
	if (op == OP_CONST || op == OP_CAST || op == OP_ACC || op == OP_READ)
		return DT_NONE;
	return narg > 0 ? arg[0] : DT_NONE;
}

static bool
is_wide_int(DType t)
{
	return t == DT_I32 || t == DT_I64 || t == DT_U32 || t == DT_U64;
}

static bool
is_wide_float(DType t)
{
	return t == DT_F32 || t == DT_F64;
}

static bool
all_same(const DType *arg, unsigned narg)
{
	for (unsigned k = 1; k < narg; k++)
		if (arg[k] != arg[0])
			return false;
	return true;
}

static const char *
free_error(Op op, DType dtype, const DType *arg, unsigned narg)
{
	switch (op) {
	case OP_AXIS: case OP_IVAR: case OP_DIM:
		return dtype == DT_I64 ? NULL : "an index is i64";
	case OP_TOUCHED:
		return dtype == DT_BOOL ? NULL : "touched is bool";
	case OP_CONST:
		return dtype != DT_NONE && dtype != DT_C64 ? NULL : "no constants of this type";
	case OP_ISNAN:
		return is_wide_float(arg[0]) && dtype == DT_BOOL ? NULL : "isnan takes f32 or f64 to bool";
	case OP_CAST:
		return arg[0] != DT_C64 && dtype != DT_C64 && dtype != DT_NONE ? NULL : "no casts of this type";
	case OP_CPLX:
		return arg[0] == DT_F32 && arg[1] == DT_F32 && dtype == DT_C64 ? NULL : "cplx takes f32, f32 to c64";
	case OP_RE: case OP_IM:
		return arg[0] == DT_C64 && dtype == DT_F32 ? NULL : "takes c64 to f32";
	case OP_CONJ:
		return arg[0] == DT_C64 && dtype == DT_C64 ? NULL : "conj takes c64 to c64";
	case OP_ROOT:
		return arg[0] == DT_I64 && arg[1] == DT_I64 && dtype == DT_C64 ? NULL : "root takes i64, i64 to c64";
	case OP_RAND: case OP_RANDN:
		if (narg < 2 || narg > 5)
			return "a seed and one to four indices are wanted";
		for (unsigned k = 0; k < narg; k++)
			if (arg[k] != (k ? DT_I64 : DT_U64))
				return "the seed is u64, indices are i64";
		return dtype == DT_F32 ? NULL : "gives f32";
	default: /* READ, ACC: their types come from elsewhere; the rest is not of this level */
		return NULL;
	}
}

const char *
tg_type_error(Op op, DType dtype, const DType *arg, unsigned narg)
{
	const OpInfo *p = &op_info[op];
	if (!(p->level & LEVEL_G))
		return "not an operation of the tensor graph";
	if (p->arity >= 0 && narg != (unsigned)p->arity)
		return "wrong number of operands";
	if (p->sig != SIG_FREE && p->sig != SIG_SELECT && !all_same(arg, narg))
		return "operands of different types";
	if (p->sig != SIG_FREE && tg_result_type(op, arg, narg) != dtype)
		return "its type is not what its operands give";
	DType t = narg ? arg[0] : DT_NONE;
	switch ((OpSig)p->sig) {
	case SIG_SAME:
		if (op == OP_FDIV && is_wide_int(t))
			return "/ takes floats or c64";
		return is_wide_int(t) || is_wide_float(t) || t == DT_C64 ? NULL : "no arithmetic on this type";
	case SIG_ORDERED:
		return is_wide_int(t) || is_wide_float(t) ? NULL : "no arithmetic on this type";
	case SIG_FLOAT:
		return is_wide_float(t) ? NULL : "takes f32 or f64";
	case SIG_INT:
		return is_wide_int(t) ? NULL : "takes i32, i64, u32 or u64";
	case SIG_CMP:
		if (t == DT_C64)
			return op == OP_EQ || op == OP_NE ? NULL : "c64 has no order";
		return is_wide_int(t) || is_wide_float(t) || t == DT_BOOL ? NULL : "no comparison of this type";
	case SIG_LOGIC:
		return t == DT_BOOL ? NULL : "takes bool";
	case SIG_SELECT:
		return t == DT_BOOL && arg[1] == arg[2] && dtype == arg[1] ? NULL : "select takes bool, T, T to T";
	case SIG_BITS:
		return "not an operation of the tensor graph";
	case SIG_FREE:
		return free_error(op, dtype, arg, narg);
	}
	return NULL;
}

DType
tg_monoid_type(Monoid m, DType t)
{
	return monoid_info[m].index ? DT_I64 : t;
}

bool
tg_monoid_takes(Monoid m, DType t)
{
	switch (m) {
	case MON_NONE:
		return t != DT_NONE;
	case MON_SUM: case MON_PROD:
		return is_wide_int(t) || is_wide_float(t) || t == DT_C64;
	case MON_MAX: case MON_MIN: case MON_ARGMAX: case MON_ARGMIN:
		return t != DT_NONE && t != DT_C64;
	case MON_ANY: case MON_ALL:
		return t == DT_BOOL;
	}
	return false;
}

typedef struct {
	int digits, least; /* significant bits; exponent of the least bit */
	double largest;    /* finite */
	bool infinite, nan, sign;
} FloatShape;

static FloatShape
float_shape(DType t)
{
	switch (t) {
	case DT_F32: return (FloatShape){24, -149, 3.4028234663852886e38, true, true, true};
	case DT_F16: return (FloatShape){11, -24, 65504, true, true, true};
	case DT_BF16: return (FloatShape){8, -133, 3.3895313892515355e38, true, true, true};
	case DT_F8E4M3: return (FloatShape){4, -9, 448, false, true, true};
	case DT_F8E5M2: return (FloatShape){3, -16, 57344, true, true, true};
	case DT_F4E2M1: return (FloatShape){2, -1, 6, false, false, true};
	case DT_E8M0: return (FloatShape){1, -127, 0x1p127, false, true, false};
	default: return (FloatShape){53, -1074, INFINITY, true, true, true};
	}
}

static bool
is_float_value(DType t, double v)
{
	FloatShape s = float_shape(t);
	if (isnan(v))
		return s.nan;
	if (isinf(v))
		return s.infinite;
	if (t == DT_F64 || (v == 0 && s.sign))
		return true;
	if (fabs(v) > s.largest || (!s.sign && !(v > 0)))
		return false;
	int e;
	frexp(v, &e); /* |v| in [2^(e-1), 2^e) */
	int unit = e - s.digits > s.least ? e - s.digits : s.least;
	double scaled = ldexp(v, -unit);
	return scaled == nearbyint(scaled);
}

bool
tg_is_value(DType t, const Expr *constant)
{
	if (dtype_is_float(t))
		return is_float_value(t, constant->imm.f);
	int64_t v = constant->imm.i;
	if (t == DT_BOOL)
		return v == 0 || v == 1;
	unsigned bits = dtype_info[t].bits;
	if (!dtype_is_int(t) || bits == 64)
		return dtype_is_int(t);
	if (dtype_info[t].kind == KIND_UINT)
		return v >= 0 && v < 1ll << bits;
	return v >= -(1ll << (bits - 1)) && v < 1ll << (bits - 1);
}

/* The nearest power of two; in the middle the one with the even exponent field. */
static double
round_e8m0(double v)
{
	int e;
	if (isnan(v) || v < 0)
		return NAN;
	double m = frexp(v, &e); /* v = 2m * 2^(e-1), 2m in [1, 2) */
	e--;
	if (v == 0 || e < -127)
		return 0x1p-127;
	if (isinf(v) || e >= 127)
		return 0x1p127;
	bool up = m > 0.75 || (m == 0.75 && (e + 127) % 2 != 0);
	return ldexp(1, up ? e + 1 : e);
}

double
tg_round(DType t, double v)
{
	FloatShape s = float_shape(t);
	if (t == DT_F64)
		return v;
	if (t == DT_E8M0)
		return round_e8m0(v);
	if (isnan(v))
		return s.nan ? v : 0;
	if (isinf(v))
		return s.infinite ? v : copysign(s.largest, v);
	if (v == 0)
		return v;
	int e;
	frexp(v, &e);
	int unit = e - s.digits > s.least ? e - s.digits : s.least;
	double r = ldexp(nearbyint(ldexp(v, -unit)), unit);
	if (fabs(r) > s.largest)
		r = s.infinite ? INFINITY : s.largest;
	return copysign(r, v);
}
