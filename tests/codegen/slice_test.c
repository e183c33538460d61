/* slice_test.c: one kernel from tile IR to a launched result. */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"

/* z[i] = x[i] + y[i] over tasks. */
static void
build_add(Rig *r)
{
	TirKernel *k = r->k;
	const char *const name[3] = {"x", "y", "z"};
	ValId view[3], one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 1000);
	for (unsigned b = 0; b < 3; b++) {
		tir_add_buffer(k, name_cstr(r->names, name[b]), DT_F32, b == 2);
		view[b] = tir_view(k, b, 1, &n, &one);
	}
	ValId lo = tir_emit(k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId i = tir_for(k, lo, hi, one, NULL, 0);
	ValId x = tir_load(k, view[0], &i, 0, 0, 0), y = tir_load(k, view[1], &i, 0, 0, 0);
	tir_store(k, view[2], tir_binary(k, OP_ADD, x, y), &i, 0, 0);
	tir_end_for(k, NULL, 0);
}

static void
adds_two_vectors(Rig *r, const void *arg)
{
	(void)arg;
	static float x[1000], y[1000], z[1000], want[1000];
	build_add(r);
	rig_load(r, "host", 1000);
	for (int i = 0; i < 1000; i++) {
		x[i] = (float)i * 0.37f;
		y[i] = 1.0f / (float)(i + 1);
	}
	RigRun run = {.data = {x, y, z}, .count = {1000, 1000, 1000}, .ntask = 1000};
	rig_launch(r, &run);
	run.data[2] = want;
	rig_interpret(r, &run);
	assert_memory_equal(z, want, sizeof z);
	assert_true(z[999] == x[999] + y[999]);
}

static void
signature_is_json(Rig *r, const void *arg)
{
	(void)arg;
	const char *json;
	build_add(r);
	rig_load(r, "host", 1000);
	assert_int_equal(texo_kernel_get_signature(r->kernel, &json), TEXO_OK);
	assert_string_equal(json,
	                    "{\"graph\":\"add\",\"params\":["
	                    "{\"name\":\"x\",\"kind\":\"input\",\"dtype\":\"f32\",\"shape\":[\"n0\"]},"
	                    "{\"name\":\"y\",\"kind\":\"input\",\"dtype\":\"f32\",\"shape\":[\"n1\"]},"
	                    "{\"name\":\"z\",\"kind\":\"inout\",\"dtype\":\"f32\",\"shape\":[\"n2\"]}],"
	                    "\"results\":[],\"dims\":[\"n0\",\"n1\",\"n2\"]}");
}

static void
add(void **state)
{
	(void)state;
	rig_run("add", adds_two_vectors, NULL);
}

static void
signature(void **state)
{
	(void)state;
	rig_run("add", signature_is_json, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(add),
		cmocka_unit_test(signature),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
