/* points.c: see points.h. */
#include "tests/math/points.h"

#include <math.h>
#include <string.h>

#include "tests/math/kernel.h"

static double
from_bits(DType t, uint64_t bits)
{
	double d;
	float f;
	uint32_t half = (uint32_t)(bits >> 32);
	memcpy(&d, &bits, 8);
	memcpy(&f, &half, 4);
	return t == DT_F64 ? d : (double)f;
}

static double
unary_point(DType t, uint64_t i)
{
	uint64_t h = mix_bits(i);
	if (i % 2 == 0) /* i / 2 times the golden ratio, of one turn: even for every count */
		return from_bits(t, (i / 2) * UINT64_C(0x9e3779b97f4a7c15) + (t == DT_F64 ? h >> 24 : 0));
	double v = (1 + (double)(h >> 11) * 0x1p-53) * ((double)(UINT64_C(1) << h % 24) * 0x1p-14);
	return h >> 10 & 1 ? -v : v;
}

static void
power_point(DType t, uint64_t i, double *x, double *y)
{
	uint64_t h = mix_bits(i), g = mix_bits(h);
	*x = i % 2 ? 0.7 + 0.8 * (double)(h >> 11) * 0x1p-53 : fabs(from_bits(t, h));
	if (t != DT_F64)
		*x = (double)(float)*x;
	double range = t == DT_F64 ? 1080 : 152, l = log2(*x);
	double e = ((double)(g >> 11) * 0x1p-52 - 1) * range;
	*y = l == 0 || !isfinite(l) ? e : e / l;
}

static void
store(DType t, void *at, uint64_t i, double v)
{
	if (t == DT_F64)
		((double *)at)[i] = v;
	else
		((float *)at)[i] = (float)v;
}

void
points(Op op, DType t, uint64_t first, uint64_t n, void *x, void *y)
{
	for (uint64_t i = 0; i < n; i++) {
		uint64_t p = first + i;
		if (t == DT_F16 || t == DT_BF16) {
			uint64_t h = op == OP_POW ? mix_bits(p) : p;
			((uint16_t *)x)[i] = (uint16_t)h;
			if (op == OP_POW)
				((uint16_t *)y)[i] = (uint16_t)(h >> 16);
		} else if (op == OP_POW) {
			double a, b;
			power_point(t, p, &a, &b);
			store(t, x, i, a);
			store(t, y, i, b);
		} else {
			store(t, x, i, unary_point(t, p));
		}
	}
}
