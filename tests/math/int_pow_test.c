/* int_pow_test.c: pow on integers as written out and compiled, against the interpreter's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/math/kernel.h"

enum { EDGE = 9, POINTS = 4096 };

static void
fill(DType t, void *x, void *y)
{
	static const int64_t edge[EDGE] = {0, 1, -1, 2, -2, 3, INT64_MIN, INT64_MAX, 63};
	size_t size = dtype_info[t].bits / 8u;
	for (size_t i = 0; i < POINTS; i++) {
		uint64_t h = mix_bits(i), g = mix_bits(h);
		int64_t a = i < EDGE * EDGE ? edge[i / EDGE] : (int64_t)(h >> (g % 64));
		int64_t b = i < EDGE * EDGE ? edge[i % EDGE] : (int64_t)(g >> (i % 2 ? 58 : h % 64));
		if (i < EDGE * EDGE && size == 4) { /* the extremes of the type */
			a = a == INT64_MIN ? INT32_MIN : a == INT64_MAX ? INT32_MAX : a;
			b = b == INT64_MIN ? INT32_MIN : b == INT64_MAX ? INT32_MAX : b;
		}
		memcpy((char *)x + i * size, &a, size);
		memcpy((char *)y + i * size, &b, size);
	}
}

static void
check(DType t, unsigned lanes)
{
	static uint64_t x[POINTS], y[POINTS], want[POINTS], got[POINTS];
	int64_t n = POINTS;
	Rig r;
	fill(t, x, y);
	rig_open(&r, "pow");
	kernel_map(&r, OP_POW, t, t, t, lanes);
	RigRun run = {.data = {x, y, want}, .count = {n, n, n}, .scalar = {&n}, .ntask = 1};
	rig_interpret(&r, &run);
	kernel_lower(&r);
	run.data[2] = got;
	rig_load(&r, "host", 1);
	rig_launch(&r, &run);
	int64_t at = rig_differ(t, want, got, n);
	if (at >= 0)
		fail_msg("pow of %s: element %lld", dtype_info[t].text, (long long)at);
	rig_close(&r);
}

static void
test_int_pow(void **state)
{
	(void)state;
	static const DType type[] = {DT_I32, DT_I64, DT_U32, DT_U64};
	for (size_t i = 0; i < sizeof type / sizeof type[0]; i++) {
		check(type[i], 0);
		check(type[i], 8);
	}
}

/* With a constant exponent only its own bits are looked at. */
static void
test_constant(void **state)
{
	(void)state;
	Rig r;
	rig_open(&r, "pow");
	TirKernel *k = r.k;
	int32_t out[4] = {0}, want[4] = {-7 * -7 * -7 * -7 * -7, 1, 0, 0};
	const int64_t exponent[4] = {5, 0, -3, INT32_MIN};
	ValId one = tir_int(k, DT_I64, 1), four = tir_int(k, DT_I64, 4);
	tir_add_buffer(k, name_cstr(r.names, "z"), DT_I32, true);
	ValId view = tir_view(k, 0, 1, &four, &one);
	for (int i = 0; i < 4; i++) {
		ValId at = tir_int(k, DT_I64, i);
		ValId v = tir_binary(k, OP_POW, tir_int(k, DT_I32, -7), tir_int(k, DT_I32, exponent[i]));
		tir_store(k, view, v, &at, 0, 0);
	}
	kernel_lower(&r);
	RigRun run = {.data = {out}, .count = {4}, .ntask = 1};
	rig_interpret(&r, &run);
	assert_memory_equal(out, want, sizeof want);
	rig_close(&r);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_int_pow), cmocka_unit_test(test_constant)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
