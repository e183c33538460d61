/* reference.c: see reference.h. */
#include "tests/math/reference.h"

#include <math.h>
#include <string.h>

typedef struct {
	int digits, least, most; /* bits of the significand; exponents of frexp of the normal numbers */
} Form;

static Form
form_of(DType t)
{
	if (t == DT_F64)
		return (Form){53, -1021, 1024};
	if (t == DT_F32)
		return (Form){24, -125, 128};
	return t == DT_F16 ? (Form){11, -13, 16} : (Form){8, -125, 128};
}

typedef struct {
	Op op;
	double (*narrow)(double);
	long double (*wide)(long double);
} Unary;

static double
rsqrt(double x)
{
	return 1 / sqrt(x);
}

static long double
rsqrtl(long double x)
{
	return 1 / sqrtl(x);
}

static const Unary unary[] = {
	{OP_EXP, exp, expl}, {OP_EXP2, exp2, exp2l}, {OP_EXPM1, expm1, expm1l}, {OP_LOG, log, logl},
	{OP_LOG2, log2, log2l}, {OP_LOG1P, log1p, log1pl}, {OP_TANH, tanh, tanhl}, {OP_ERF, erf, erfl},
	{OP_SIN, sin, sinl}, {OP_COS, cos, cosl}, {OP_RSQRT, rsqrt, rsqrtl},
};

double
reference_narrow(Op op, double x, double y)
{
	if (op == OP_POW)
		return pow(x, y);
	for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++)
		if (unary[i].op == op)
			return unary[i].narrow(x);
	return (double)NAN;
}

long double
reference(Op op, bool wide, double x, double y)
{
	if (!wide)
		return (long double)reference_narrow(op, x, y);
	if (op == OP_POW)
		return powl(x, y);
	for (size_t i = 0; i < sizeof unary / sizeof unary[0]; i++)
		if (unary[i].op == op)
			return unary[i].wide(x);
	return (long double)NAN;
}

static double
small_element(DType t, uint16_t bits)
{
	int digits = form_of(t).digits, field = 16 - digits, bias = (1 << (field - 1)) - 1;
	int e = (bits >> (digits - 1)) & ((1 << field) - 1), m = bits & ((1 << (digits - 1)) - 1);
	double size;
	if (e == (1 << field) - 1)
		size = m ? (double)NAN : (double)INFINITY;
	else if (e == 0)
		size = ldexp(m, 1 - bias - (digits - 1));
	else
		size = ldexp(m + (1 << (digits - 1)), e - bias - (digits - 1));
	return bits >> 15 ? -size : size;
}

double
number_at(DType t, const void *data, size_t i)
{
	if (t == DT_F64)
		return ((const double *)data)[i];
	if (t == DT_F32)
		return (double)((const float *)data)[i];
	return small_element(t, ((const uint16_t *)data)[i]);
}

static int
exponent_of(Form f, long double v)
{
	int e;
	frexpl(v, &e);
	return e < f.least ? f.least : e;
}

bool
is_subnormal(DType t, long double v)
{
	long double least = t == DT_F64 ? 0x1p-1022L : t == DT_F16 ? 0x1p-14L : 0x1p-126L;
	return v != 0 && fabsl(v) < least;
}

/* A number of f32's range is one of f64's, whose exponent field is all that its unit depends on; differences
 * of near ones and quotients by powers of two are exact, so this is what the long way gives. */
bool
finite_distance(double got, double want, double *d)
{
	const Form f = {24, -125, 128};
	uint64_t bits;
	memcpy(&bits, &want, sizeof bits);
	int e = (int)(bits >> 52 & 0x7ff) - 1022; /* as frexp has it */
	if (want == 0 || e >= f.most || (got == 0 && (e >= f.least || !signbit(got) != !signbit(want))) || !isfinite(got))
		return false;
	if (e < f.least)
		e = f.least;
	uint64_t scale = (uint64_t)(1023 + f.digits - e) << 52;
	double per_unit;
	memcpy(&per_unit, &scale, sizeof per_unit);
	*d = fabs(got - want) * per_unit;
	return true;
}

double
distance(DType t, double got, long double want)
{
	double near;
	if (t == DT_F32 && (long double)(double)want == want && finite_distance(got, (double)want, &near))
		return near;
	Form f = form_of(t);
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got) ? 0 : (double)INFINITY;
	if (isinf(want))
		return got == (double)want ? 0 : (double)INFINITY;
	if (want == 0 || got == 0) {
		if (!signbit(got) != !signbit(want) || (want == 0 && got != 0))
			return (double)INFINITY;
		if (want == 0)
			return 0;
	}
	/* Infinity is right from the middle of the largest number and the next power of two. */
	if (isinf(got) && fabsl(want) >= ldexpl(1 - ldexpl(1, -f.digits - 1), f.most))
		return !signbit(got) == !signbit(want) ? 0 : (double)INFINITY;
	long double v = isinf(got) ? copysignl(ldexpl(1, f.most), got) : (long double)got;
	return (double)(fabsl(v - want) / ldexpl(1, exponent_of(f, want) - f.digits));
}

bool
is_nearest(DType t, double got, long double want)
{
	Form f = form_of(t);
	if (isnan(want) || isnan(got))
		return isnan(want) && isnan(got);
	if (!isinf(want)) {
		long double unit = ldexpl(1, exponent_of(f, want) - f.digits);
		want = copysignl(rintl(want / unit) * unit, want);
		if (fabsl(want) >= ldexpl(1, f.most))
			want = copysignl((long double)INFINITY, want);
	}
	return (long double)got == want && !signbit(got) == !signbit(want);
}
