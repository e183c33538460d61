/* narrow_test.c: functions whose results end in narrow floats stay within 1/16 ulp of those, in every form that a
 * processor has; the forms agree to the bit; infinities, NaN and subnormal results are what they were. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/codegen.h"
#include "tests/math/narrow.h"
#include "tests/math/points.h"
#include "tests/math/reference.h"

enum { N = 4096, LOG2_POINTS = 20 };

static void
within_a_sixteenth(void **state)
{
	(void)state;
	for (int k = 0; k < NNARROW; k++) {
		NarrowMeasure m = narrow_measure(&narrow_rows[k], kernel_lower_narrow, LOG2_POINTS);
		if (!(m.worst <= 1))
			fail_msg("%s: %.3f at %a", narrow_name(&narrow_rows[k]), m.worst, m.at);
		assert_true(m.worst > 0.05); /* the form is not longer than it need be */
		assert_true(m.absolute < 0x1p-21);
	}
}

/* As far as it is the processor's arithmetic: scripts/gpu-exact.py asks the unit itself. */
static void
with_a_unit(void **state)
{
	(void)state;
	for (int k = 0; k < NNARROW; k++) {
		NarrowMeasure m = narrow_measure(&narrow_rows[k], kernel_lower_narrow_ex2, 16);
		if (!(m.worst <= 0.5))
			fail_msg("%s: %.3f at %a", narrow_name(&narrow_rows[k]), m.worst, m.at);
		assert_true(m.absolute < 0x1p-21);
	}
}

/* erf with EX2, whose 2 ulp, of what is a sixth of the result at most, are half an ulp of it beside what is found here;
 * the bound is 1.5. */
static void
erf_with_a_unit(void **state)
{
	static float x[N], y[N], z[N];
	int64_t n = N;
	volatile double worst = 0;
	Rig r;
	(void)state;
	rig_open(&r, "f");
	kernel_map(&r, OP_ERF, DT_F32, DT_F32, DT_F32, 16);
	kernel_lower_ex2(&r);
	unsigned units = 0;
	for (ValId v = 1; v < r.k->inst.n; v++)
		units += tir_inst(r.k, v)->op == OP_EX2;
	assert_int_equal(units, 1);
	RigRun run = {.data = {x, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	for (uint64_t first = 0; first < UINT64_C(1) << LOG2_POINTS; first += N) {
		points(OP_ERF, DT_F32, first, N, x, y);
		rig_interpret(&r, &run);
		for (int i = 0; i < N; i++) {
			int ex;
			double want = (double)reference(OP_ERF, false, x[i], 0);
			frexp(want, &ex);
			double e = isnan(x[i]) ? !isnan(z[i]) * 9.0 : fabs(z[i] - want) / ldexp(1, (ex < -125 ? -125 : ex) - 24);
			worst = e > worst ? e : worst;
		}
	}
	rig_close(&r);
	if (!(worst <= 1.02))
		fail_msg("%.3f", worst);
}

static void
run_form(const NarrowRow *row, NarrowLower *lower, float *x, float *z)
{
	Rig r;
	int64_t n = N;
	rig_open(&r, "f");
	kernel_map(&r, row->op, DT_F32, DT_F32, DT_F32, 8);
	for (ValId v = 1; v < r.k->inst.n; v++)
		if (tir_inst(r.k, v)->op == row->op)
			r.k->inst.at[v].imm.i = row->to;
	lower(&r);
	rig_load(&r, "host", 1);
	RigRun run = {.data = {x, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	rig_launch(&r, &run);
	rig_close(&r);
}

static void
agrees(const NarrowRow *row, NarrowLower *lower, float *x)
{
	static float a[N], b[N];
	run_form(row, kernel_lower_narrow, x, a);
	run_form(row, lower, x, b);
	for (int i = 0; i < N; i++)
		if (memcmp(&a[i], &b[i], sizeof a[i]) != 0 && !(isnan(a[i]) && isnan(b[i])))
			fail_msg("%s at %a: %a and %a", narrow_name(row), (double)x[i], (double)a[i], (double)b[i]);
}

static void
lower_low(Rig *r)
{
	kernel_mark_low(r);
	kernel_lower_narrow(r);
}

static void
lower_low_scaled(Rig *r)
{
	kernel_mark_low(r);
	kernel_lower_narrow_scaled(r);
}

static void
forms_agree(void **state)
{
	static float x[N], y[N];
	(void)state;
	if (!codegen_target_offer("host").scale)
		skip();
	for (int k = 0; k < NNARROW; k++) {
		points(narrow_rows[k].op, DT_F32, 0, N, x, y);
		agrees(&narrow_rows[k], kernel_lower_narrow_scaled, x);
	}
}

/* Those of arguments that are known to be no more than 0. */
static void
low_forms_agree(void **state)
{
	static float x[N], y[N];
	(void)state;
	for (int k = 0; k < NNARROW; k++) {
		points(narrow_rows[k].op, DT_F32, 0, N, x, y);
		for (int i = 0; i < N; i++)
			x[i] = i % 2 ? -160 * (float)i / N : -fabsf(x[i]); /* results beside 0 as well */
		agrees(&narrow_rows[k], lower_low, x);
		if (codegen_target_offer("host").scale)
			agrees(&narrow_rows[k], lower_low_scaled, x);
	}
}

static void
specials_of_tanh(const float *z)
{
	assert_true(z[0] == 1 && z[1] == -1 && isnan(z[2]) && z[3] == 0 && !signbit(z[3]) && z[4] == 0 && signbit(z[4]));
	assert_true(z[5] == 1 && z[6] == -1 && z[7] == 1 && z[8] == -1);
}

static void
specials(void **state)
{
	static float x[N] = {INFINITY, -INFINITY, NAN, 0, -0.0f, 1000, -1000, 129, -140}, z[N];
	(void)state;
	for (int k = 0; k < NNARROW; k++) {
		run_form(&narrow_rows[k], kernel_lower_narrow, x, z);
		if (narrow_rows[k].op == OP_TANH) {
			specials_of_tanh(z);
			continue;
		}
		assert_true(isinf(z[0]) && z[0] > 0 && z[1] == 0 && !signbit(z[1]) && isnan(z[2]));
		assert_true(fabsf(z[3] - 1) < 0x1p-12f && z[3] == z[4] && isinf(z[5]) && z[6] == 0 && isinf(z[7]));
		assert_true(narrow_rows[k].op == OP_EXP ? z[8] == 0 : fabs((double)z[8] * 0x1p140 - 1) <= 0x1p-8); /* 2^-140 is subnormal */
	}
}

/* a^b for whole b, of bases around 1, far from it and special, with either sign. */
static void
fill_powers(float *x, float *y)
{
	static const float special[] = {0, -0.0f, INFINITY, -INFINITY, NAN, 1, -1, 0x1p-140f, -0x1p127f, 2};
	for (int i = 0; i < N; i++) {
		int way = i % 4, b = i / 4 % 341 - 170;
		float size = way == 0 ? 1 + (float)(i % 97 - 48) / 512 : way == 1 ? expf((float)(i % 83 - 41) / 8) : 1 - 0x1p-20f * (float)(i % 31);
		x[i] = way == 3 ? special[i / 4 % 10] : i % 3 ? size : -size;
		y[i] = way == 2 ? (float)(b * 60000) : (float)b;
	}
}

static void
check_powers(NarrowLower *lower, DType to, bool native)
{
	static float x[N], y[N], z[N];
	int64_t n = N;
	Rig r;
	fill_powers(x, y);
	rig_open(&r, "f");
	kernel_map(&r, OP_POW, DT_F32, DT_F32, DT_F32, 8);
	for (ValId v = 1; v < r.k->inst.n; v++)
		if (tir_inst(r.k, v)->op == OP_POW)
			r.k->inst.at[v].imm.i = to;
	lower(&r);
	RigRun run = {.data = {x, y, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	if (native) {
		rig_load(&r, "host", 1);
		rig_launch(&r, &run);
	} else
		rig_interpret(&r, &run);
	rig_close(&r);
	for (int i = 0; i < N; i++) {
		long double want = powl(x[i], y[i]), off = fabsl(z[i] - want), most = (to == DT_F16 ? 0x1p-15L : 0x1p-12L) * fabsl(want) + 0x1p-148L;
		bool over = fabsl(want) > 0x1p128L * (1 - 0x1p-12L) && isinf(z[i]) && !signbit(z[i]) == !signbit(want);
		bool same = isnan(want) ? isnan(z[i]) : ((off <= most || z[i] == want) && !signbit(z[i]) == !signbit(want)) || over;
		if (!same)
			fail_msg("%a to the power %a: %a for %La", (double)x[i], (double)y[i], (double)z[i], want);
	}
}

static void
powers(void **state)
{
	(void)state;
	for (int k = 0; k < 2; k++) {
		DType to = k ? DT_F16 : DT_BF16;
		check_powers(kernel_lower_narrow, to, true);
		check_powers(kernel_lower_narrow_ex2, to, false);
		if (codegen_target_offer("host").scale)
			check_powers(kernel_lower_narrow_scaled, to, true);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(within_a_sixteenth), cmocka_unit_test(with_a_unit), cmocka_unit_test(erf_with_a_unit), cmocka_unit_test(forms_agree), cmocka_unit_test(low_forms_agree), cmocka_unit_test(powers),
	                                   cmocka_unit_test(specials)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
