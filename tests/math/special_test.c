/* special_test.c: exact values (special.def), the thresholds of overflow and underflow, and that the
 * interpreter, compiled vectors and compiled scalars give the same bits. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "passes/tile/tile.h"
#include "tests/math/kernel.h"
#include "tests/math/points.h"

typedef struct {
	Op op;
	double x, y, want;
} Special;

static const Special specials[] = {
#define POINT(op, x, want) {OP_##op, (double)x, 0, (double)want},
#define PAIR(op, x, y, want) {OP_##op, (double)x, (double)y, (double)want},
#include "tests/math/special.def"
};
enum { NSPECIAL = sizeof specials / sizeof specials[0], AGREE = 8192, LOW = 1 << 16 };

/* Elements are held as f64 in memory of either type. */
static void
put(DType t, void *at, size_t i, double v)
{
	if (t == DT_F64)
		((double *)at)[i] = v;
	else
		((float *)at)[i] = (float)v;
}

static double
get(DType t, const void *at, size_t i)
{
	return t == DT_F64 ? ((const double *)at)[i] : (double)((const float *)at)[i];
}

typedef enum { INTERPRETED, COMPILED } How;

static void (*lower)(Rig *) = kernel_lower; /* strict mode's functions, or relaxed mode's */

static void
run(Op op, DType t, unsigned lanes, How how, void *x, void *y, void *z, int64_t n)
{
	Rig r;
	rig_open(&r, "f");
	kernel_map(&r, op, t, t, t, lanes);
	lower(&r);
	RigRun a = {.data = {x, z}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	if (op_info[op].arity == 2) {
		a.data[1] = y;
		a.data[2] = z;
	}
	if (how == INTERPRETED) {
		rig_interpret(&r, &a);
	} else {
		rig_load(&r, "host", 1);
		rig_launch(&r, &a);
	}
	rig_close(&r);
}

static bool
same(double a, double b)
{
	return isnan(a) ? isnan(b) : a == b && !signbit(a) == !signbit(b);
}

static int64_t
specials_of(Op op, DType t, double *x, double *y, double *want)
{
	int64_t n = 0;
	for (size_t i = 0; i < NSPECIAL; i++) {
		if (specials[i].op != op)
			continue;
		put(t, x, (size_t)n, specials[i].x);
		put(t, y, (size_t)n, specials[i].y);
		want[n++] = specials[i].want;
	}
	return n;
}

static void
check_specials(Op op, DType t, unsigned lanes, How how)
{
	double x[NSPECIAL], y[NSPECIAL], z[NSPECIAL], want[NSPECIAL];
	int64_t n = specials_of(op, t, x, y, want);
	assert_true(n > 0);
	run(op, t, lanes, how, x, y, z, n);
	for (size_t i = 0; i < (size_t)n; i++)
		if (!same(get(t, z, i), want[i]))
			fail_msg("%s of %s (%s, %u lanes) at %a, %a: %a, not %a", op_info[op].text,
			         dtype_info[t].text, how == COMPILED ? "compiled" : "interpreted", lanes,
			         get(t, x, i), get(t, y, i), get(t, z, i), want[i]);
}

static bool
is_function(int op)
{
	return (op_info[op].flags & F_MATH) && (op_info[op].level & LEVEL_L);
}

static void
test_specials(void **state)
{
	(void)state;
	for (int op = 1; op < OP_COUNT; op++) {
		for (int wide = 0; is_function(op) && wide < 2; wide++) {
			check_specials((Op)op, wide ? DT_F64 : DT_F32, 0, INTERPRETED);
			check_specials((Op)op, wide ? DT_F64 : DT_F32, 0, COMPILED);
			check_specials((Op)op, wide ? DT_F64 : DT_F32, 4, COMPILED);
		}
	}
}

static void
check_agreement(Op op, DType t)
{
	double *x = calloc(AGREE, 8), *y = calloc(AGREE, 8);
	double *z[3] = {calloc(AGREE, 8), calloc(AGREE, 8), calloc(AGREE, 8)};
	points(op, t, 0, AGREE, x, y);
	run(op, t, 8, INTERPRETED, x, y, z[0], AGREE);
	run(op, t, 8, COMPILED, x, y, z[1], AGREE);
	run(op, t, 0, COMPILED, x, y, z[2], AGREE);
	for (int k = 1; k < 3; k++) {
		int64_t at = rig_differ(t, z[0], z[k], AGREE);
		if (at >= 0)
			fail_msg("%s of %s at %a: interpreted %a, compiled (%s) %a", op_info[op].text, dtype_info[t].text,
			         get(t, x, (size_t)at), get(t, z[0], (size_t)at), k == 1 ? "vector" : "scalar",
			         get(t, z[k], (size_t)at));
	}
	for (int k = 0; k < 3; k++)
		free(z[k]);
	free(x);
	free(y);
}

static void
test_agreement(void **state)
{
	(void)state;
	for (int op = 1; op < OP_COUNT; op++) {
		for (int wide = 0; is_function(op) && wide < 2; wide++)
			check_agreement((Op)op, wide ? DT_F64 : DT_F32);
	}
}

/* With SCALE and without, relaxed mode's functions have the same bits. */
static void
test_scaled(void **state)
{
	static double x[AGREE], y[AGREE], z[2][AGREE];
	(void)state;
	for (int op = 1; op < OP_COUNT; op++)
		for (int wide = 0; is_function(op) && op != OP_POW && wide < 2; wide++) {
			DType t = wide ? DT_F64 : DT_F32;
			points((Op)op, t, 0, AGREE, x, y);
			for (int picks = 0; picks < 2; picks++) {
				lower = picks ? kernel_lower_pick : kernel_lower_near;
				run((Op)op, t, 8, INTERPRETED, x, y, z[0], AGREE);
				lower = picks ? kernel_lower_pick_scaled : kernel_lower_scaled;
				run((Op)op, t, 8, INTERPRETED, x, y, z[1], AGREE);
				int64_t at = rig_differ(t, z[0], z[1], AGREE);
				if (at >= 0)
					fail_msg("%s of %s at %a: %a, with scale %a", op_info[op].text, dtype_info[t].text,
					         get(t, x, (size_t)at), get(t, z[0], (size_t)at), get(t, z[1], (size_t)at));
			}
		}
}

static void
lower_low(Rig *r)
{
	kernel_mark_low(r);
	kernel_lower_pick(r);
}

static void
lower_low_scaled(Rig *r)
{
	kernel_mark_low(r);
	kernel_lower_pick_scaled(r);
}

/* Of arguments that are known to be no more than 0, and NaN, powers have the same bits as of any. */
static void
test_low(void **state)
{
	static float x[LOW], z[3][LOW];
	static const Op ops[2] = {OP_EXP, OP_EXP2};
	(void)state;
	for (uint32_t i = 0; i < LOW; i++) { /* all exponents; every second one where results are beside 0 too */
		uint32_t bits = 0x80000000 + i * (0x80000000 / LOW) + (uint32_t)mix_bits(i) % (0x80000000 / LOW);
		memcpy(&x[i], &bits, sizeof bits);
		if (i % 2)
			x[i] = -160 * (float)i / LOW;
	}
	x[0] = 0;
	for (unsigned k = 0; k < 2; k++) {
		lower = kernel_lower_pick;
		run(ops[k], DT_F32, 8, INTERPRETED, x, NULL, z[0], LOW);
		lower = lower_low;
		run(ops[k], DT_F32, 8, COMPILED, x, NULL, z[1], LOW);
		lower = lower_low_scaled;
		run(ops[k], DT_F32, 8, INTERPRETED, x, NULL, z[2], LOW);
		for (unsigned by = 1; by < 3; by++) {
			int64_t at = rig_differ(DT_F32, z[0], z[by], LOW);
			if (at >= 0)
				fail_msg("%s%s at %a: %a, not %a", op_info[ops[k]].text, by == 2 ? ", scaled" : "", (double)x[at],
				         (double)z[by][at], (double)z[0][at]);
		}
	}
}

/* The last argument with a finite exponential, and the first without; the same for a nonzero one. */
static void
check_threshold(Op op, DType t, double x, double beyond, bool overflow)
{
	double in[2], out[2];
	put(t, in, 0, x);
	put(t, in, 1, beyond);
	run(op, t, 0, COMPILED, in, NULL, out, 2);
	bool inside = overflow ? isfinite(get(t, out, 0)) : get(t, out, 0) > 0;
	bool outside = overflow ? isinf(get(t, out, 1)) : get(t, out, 1) == 0;
	if (!inside || !outside)
		fail_msg("%s of %s: %a at %a, %a at %a", op_info[op].text, dtype_info[t].text, get(t, out, 0), x,
		         get(t, out, 1), beyond);
}

static void
test_thresholds(void **state)
{
	(void)state;
	check_threshold(OP_EXP, DT_F32, 0x1.62e42ep6, 0x1.62e430p6, true);
	check_threshold(OP_EXP, DT_F32, -0x1.9fe368p6, -0x1.9fe36ap6, false);
	check_threshold(OP_EXP, DT_F64, 0x1.62e42fefa39efp9, 0x1.62e42fefa39f0p9, true);
	check_threshold(OP_EXP, DT_F64, -0x1.74910d52d3051p9, -0x1.74910d52d3053p9, false);
	check_threshold(OP_EXP2, DT_F32, 0x1.fffffep6, 0x1p7, true);
	check_threshold(OP_EXP2, DT_F32, -0x1.2bfffep7, -0x1.2cp7, false);
	check_threshold(OP_EXP2, DT_F64, 0x1.fffffffffffffp9, 0x1p10, true);
	check_threshold(OP_EXP2, DT_F64, -0x1.0cbffffffffffp10, -0x1.0ccp10, false);
	check_threshold(OP_EXPM1, DT_F32, 0x1.62e42ep6, 0x1.62e430p6, true);
	check_threshold(OP_EXPM1, DT_F64, 0x1.62e42fefa39efp9, 0x1.62e42fefa39f0p9, true);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_specials),
		cmocka_unit_test(test_agreement),
		cmocka_unit_test(test_thresholds),
	};
	const struct CMUnitTest both[] = {cmocka_unit_test(test_scaled), cmocka_unit_test(test_low)};
	int failed = cmocka_run_group_tests(tests, NULL, NULL) | cmocka_run_group_tests(both, NULL, NULL);
	lower = kernel_lower_near;
	failed |= cmocka_run_group_tests(tests, NULL, NULL);
	lower = kernel_lower_pick;
	failed |= cmocka_run_group_tests(tests, NULL, NULL);
	for (int picks = 0; codegen_target_offer("host").scale && picks < 2; picks++) {
		lower = picks ? kernel_lower_pick_scaled : kernel_lower_scaled;
		failed |= cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
