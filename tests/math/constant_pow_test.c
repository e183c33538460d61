/* constant_pow_test.c: pow with a constant exponent, as written out for strict and for relaxed mode, against
 * the C library's, and that whole exponents and 1/2 take a few operations in relaxed mode alone: in strict
 * mode the bits must not depend on whether an exponent was found to be a constant. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "passes/tile/tile.h"
#include "tests/math/kernel.h"
#include "tests/math/reference.h"

enum { POINTS = 8192, MOST_OPERATIONS = 90 };

static const double exponents[] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  11, 13, 15,  16, 23,  31,  63, 64,
                                   -1, -2, -3, -4, -5, -6, -7, -8, -12, -15, -31, -64, 0.5, -0.0, 65, -0.5, 2.5};

/* 0: it takes the way of any exponent. */
static bool
is_short(double n)
{
	return n == 0.5 || (n == floor(n) && fabs(n) <= 64);
}

/* Bases of all kinds; most of those behind have powers that are no infinity and no zero. */
static void
fill(DType t, double n, void *data)
{
	static const double edge[] = {0.0, 1, 2, 0.5, 3, INFINITY, NAN, 0x1p-149, 0x1.8p-148, 0x1p-126, 0x1.fffffep-127,
	                              0x1.fffffep127, 0x1.000002p0, 0x1.fffffep-1, 0x1p64, 0x1p-64, 0x1p18, 1e-5, 1.5};
	enum { NEDGE = sizeof edge / sizeof edge[0] };
	int most = t == DT_F64 ? 1074 : 149;
	for (size_t i = 0; i < POINTS; i++) {
		uint64_t h = mix_bits(i);
		double part = 1 + (double)(h >> 12) * 0x1p-52, reach = (most + 4) / fmax(fabs(n), 1);
		double x = ldexp(part, (int)(reach * ((double)(mix_bits(h) >> 11) * 0x1p-52 - 1)));
		if (i < 2 * NEDGE)
			x = edge[i / 2];
		else if (i % 8 == 0)
			memcpy(&x, &h, sizeof x);
		x = i & 1 ? -x : x;
		float narrow = (float)x;
		memcpy((char *)data + i * (t == DT_F64 ? 8 : 4), t == DT_F64 ? (void *)&x : (void *)&narrow, t == DT_F64 ? 8 : 4);
	}
}

/* z[i] = pow(x[i], n), eight at a time; how many instructions it became. */
static uint32_t
run(DType t, double n, bool near, void *x, void *z)
{
	Rig r;
	int64_t count = POINTS;
	rig_open(&r, "pow");
	TirKernel *k = r.k;
	tir_add_buffer(k, name_cstr(r.names, "x"), t, false);
	tir_add_buffer(k, name_cstr(r.names, "z"), t, true);
	ValId size = tir_int(k, DT_I64, POINTS), one = tir_int(k, DT_I64, 1), eight = tir_int(k, DT_I64, 8);
	ValId from = tir_view(k, 0, 1, &size, &one), to = tir_view(k, 1, 1, &size, &one);
	ValId i = tir_for(k, tir_int(k, DT_I64, 0), size, eight, NULL, 0);
	ValId v = tir_load(k, from, &i, 0, TIR_LANES_ALONG(0), 8);
	tir_store(k, to, tir_binary(k, OP_POW, v, tir_float(k, t, n)), &i, 0, TIR_LANES_ALONG(0));
	tir_end_for(k, NULL, 0);
	(near ? kernel_lower_near : kernel_lower)(&r);
	uint32_t operations = r.k->inst.n;
	rig_load(&r, "host", 1);
	RigRun a = {.data = {x, z}, .count = {count, count}, .ntask = 1};
	rig_launch(&r, &a);
	rig_close(&r);
	return operations;
}

static void
check(DType t, double n, bool near)
{
	static double x[POINTS], z[POINTS];
	double budget = near ? 2 : 1;
	fill(t, n, x);
	uint32_t operations = run(t, n, near, x, z);
	assert_int_equal(operations < MOST_OPERATIONS, near && is_short(n));
	for (size_t i = 0; i < POINTS; i++) {
		double a = number_at(t, x, i), got = number_at(t, z, i);
		long double want = reference(OP_POW, t == DT_F64, a, n);
		double d = distance(t, got, want);
		if (!(d <= budget + (is_subnormal(t, want) ? 0.5 : 0)))
			fail_msg("pow(%a, %g) of %s%s: %a, not %La: %.3f ulp", a, n, dtype_info[t].text, near ? ", relaxed" : "", got,
			         want, d);
	}
}

static void
test_exponents(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof exponents / sizeof exponents[0]; i++) {
		for (int k = 0; k < 4; k++)
			check(k & 1 ? DT_F64 : DT_F32, exponents[i], k & 2);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_exponents)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
