/* apart_test.c: arms of an IF that compute much become functions, equal arms one; whether any lane is true. Against the
 * interpreter.
 *
 *     apart_test [PROCESSOR...] */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"

enum { LANES = 8, TASKS = 16, COUNT = LANES * TASKS, STEPS = 40 };

typedef struct {
	ValId x, among, flags, constant; /* what arms take from outside */
} Outside;

static const char *cpu = "host";

static ValId
u32(Rig *r, int64_t v)
{
	return tir_emit(r->k, OP_CONST, tir_vector(DT_U32, LANES), v, NULL, 0);
}

static ValId
view_of(Rig *r, const char *name, bool written)
{
	ValId n = tir_int(r->k, DT_I64, COUNT), one = tir_int(r->k, DT_I64, 1);
	return tir_view(r->k, tir_add_buffer(r->k, name_cstr(r->names, name), DT_U32, written), 1, &n, &one);
}

/* The same steps for the same `odd`; so many of them. */
static void
compute(Rig *r, const Outside *o, int64_t odd, unsigned steps, ValId out[2])
{
	ValId a = tir_binary(r->k, OP_MUL, o->x, u32(r, odd)), b = o->among;
	for (unsigned k = 0; k < steps; k++) {
		ValId sum = tir_binary(r->k, k % 3 ? OP_ADD : OP_BXOR, a, k % 5 ? b : o->constant);
		b = tir_select(r->k, o->flags, a, tir_binary(r->k, OP_SHR, b, u32(r, k % 7)));
		a = tir_binary(r->k, OP_MUL, sum, u32(r, 2 * k + 3));
	}
	out[0] = a;
	out[1] = b;
}

static ValId
any_lane(Rig *r, ValId flags)
{
	return tir_emit(r->k, OP_ANY, tir_scalar(DT_BOOL), 0, &flags, 1);
}

/* x, which becomes what the arm makes of it where a lane is more than `most`. */
static void
a_branch(Rig *r, Outside *o, int64_t most, int64_t odd, unsigned steps)
{
	ValId v[2] = {o->x, o->among}, arm[2];
	o->flags = tir_binary(r->k, OP_LT, u32(r, most), o->x);
	tir_if(r->k, any_lane(r, o->flags));
	compute(r, o, odd, steps, arm);
	tir_else(r->k, arm, 2);
	tir_end_if(r->k, v, 2);
	o->x = v[0];
	o->among = v[1];
}

static void
build(Rig *r)
{
	Outside o;
	ValId x = view_of(r, "x", false), y = view_of(r, "y", true);
	o.constant = u32(r, 77);
	ValId lo = tir_emit(r->k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(r->k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	ValId t = tir_for(r->k, lo, hi, tir_int(r->k, DT_I64, 1), NULL, 0);
	ValId at = tir_binary(r->k, OP_MUL, t, tir_int(r->k, DT_I64, LANES));
	o.x = tir_load(r->k, x, &at, 0, TIR_LANES_ALONG(0), LANES);
	o.among = tir_binary(r->k, OP_ADD, o.x, u32(r, 1));
	a_branch(r, &o, 100, 5, STEPS);
	a_branch(r, &o, 1u << 31, 5, STEPS); /* equal */
	a_branch(r, &o, 1u << 30, 7, STEPS); /* another constant */
	a_branch(r, &o, 1u << 30, 5, 2);     /* short */
	a_branch(r, &o, 1000, 5, STEPS);
	tir_store(r->k, y, tir_binary(r->k, OP_ADD, o.x, o.among), &at, 0, TIR_LANES_ALONG(0));
	tir_end_for(r->k, NULL, 0);
}

static unsigned
occurrences(const char *text, const char *word)
{
	unsigned n = 0;
	for (const char *p = text; (p = strstr(p, word)) != NULL; p++)
		n++;
	return n;
}

static void
equal_arms(Rig *r, const void *arg)
{
	(void)arg;
	build(r);
	Program *p = rig_program(r, TASKS);
	CodegenOptions o = {.cpu = cpu, .want_llvm = true, .no_code = true};
	assert_int_equal(codegen_cpu(&r->arena, (const Program *const *)&p, 1, &o, &r->out), CODEGEN_OK);
	assert_int_equal(occurrences(r->out.llvm, "define private void @part"), 2);
	assert_int_equal(occurrences(r->out.llvm, "call void @part"), 4);
	assert_int_equal(occurrences(r->out.llvm, "alloca"), 2);
}

/* In every task but the first one lane is large, another in each; no lane is in the first. */
static void
the_values(Rig *r, const void *arg)
{
	(void)arg;
	uint32_t x[COUNT], y[COUNT] = {0}, want[COUNT] = {0};
	build(r);
	for (unsigned k = 0; k < COUNT; k++) {
		unsigned task = k / LANES;
		x[k] = task && k % LANES == task % LANES ? 0x91234567u * (k + 1) : k % 90;
	}
	RigRun run = {.data = {x, y}, .count = {COUNT, COUNT}, .ntask = TASKS};
	rig_load(r, cpu, TASKS);
	rig_launch(r, &run);
	run.data[1] = want;
	rig_interpret(r, &run);
	assert_memory_equal(y, want, sizeof y);
	assert_memory_equal(y, ((uint32_t[LANES]){1, 3, 5, 7, 9, 11, 13, 15}), LANES * sizeof *y);
}

static void
functions(void **state)
{
	(void)state;
	rig_run("functions", equal_arms, NULL);
}

static void
values(void **state)
{
	(void)state;
	rig_run("values", the_values, NULL);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(functions), cmocka_unit_test(values)};
	int failed = 0;
	for (int k = 1; k < argc; k++) {
		cpu = argv[k];
		if (rig_can_run(cpu))
			failed += cmocka_run_group_tests(tests, NULL, NULL);
	}
	return failed;
}
