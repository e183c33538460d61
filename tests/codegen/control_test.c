/* control_test.c: loops, branches and fault words, against the interpreter; offsets beyond 2^32. */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "tests/codegen/rig.h"

enum { COUNT = 64 };

static ValId
int64(Rig *r, int64_t v)
{
	return tir_int(r->k, DT_I64, v);
}

static ValId
view_of(Rig *r, DType t, bool written)
{
	ValId n = int64(r, COUNT), one = int64(r, 1);
	unsigned b = tir_add_buffer(r->k, name_cstr(r->names, arena_text(&r->arena, "b%u", r->k->buffer.n)), t, written);
	return tir_view(r->k, b, 1, &n, &one);
}

/* A loop over the tasks; returns the task. */
static ValId
open_tasks(Rig *r)
{
	ValId lo = tir_emit(r->k, OP_TASK_LO, tir_scalar(DT_I64), 0, NULL, 0);
	ValId hi = tir_emit(r->k, OP_TASK_HI, tir_scalar(DT_I64), 0, NULL, 0);
	return tir_for(r->k, lo, hi, int64(r, 1), NULL, 0);
}

/* Runs with in[] in the first buffer and compares the second, i64 both. */
static void
check(Rig *r, const int64_t *in, int64_t ntask, int64_t *out)
{
	int64_t x[COUNT], y[COUNT] = {0}, want[COUNT] = {0};
	memcpy(x, in, sizeof x);
	RigRun run = {.data = {x, y}, .count = {COUNT, COUNT}, .ntask = ntask};
	rig_load(r, "host", ntask);
	rig_launch(r, &run);
	RigRun other = run;
	other.data[1] = want;
	rig_interpret(r, &other);
	assert_memory_equal(y, want, sizeof y);
	assert_int_equal(run.fault, other.fault);
	assert_int_equal(run.cut, other.cut);
	if (out)
		memcpy(out, y, sizeof y);
}

/* y[t] = sum over i from x[t] to x[t+32] by step of i*i, times a count. */
static void
a_loop(Rig *r, const void *arg)
{
	const int64_t *step = arg;
	int64_t in[COUNT], out[COUNT];
	ValId x = view_of(r, DT_I64, false), y = view_of(r, DT_I64, true), t = open_tasks(r);
	ValId next = tir_binary(r->k, OP_ADD, t, int64(r, 32));
	ValId carried[2] = {int64(r, 0), int64(r, 1000)};
	ValId lo = tir_load(r->k, x, &t, 0, 0, 0), hi = tir_load(r->k, x, &next, 0, 0, 0);
	ValId i = tir_for(r->k, lo, hi, int64(r, *step), carried, 2);
	carried[0] = tir_binary(r->k, OP_ADD, carried[0], tir_binary(r->k, OP_MUL, i, i));
	carried[1] = tir_binary(r->k, OP_ADD, carried[1], int64(r, 1));
	tir_end_for(r->k, carried, 2);
	tir_store(r->k, y, tir_binary(r->k, OP_MUL, carried[0], carried[1]), &t, 0, 0);
	tir_end_for(r->k, NULL, 0);
	for (int k = 0; k < COUNT; k++)
		in[k] = (k * 37) % 50 - 20;
	in[10] = INT64_MAX - 17; /* near the ends of the type */
	in[32 + 10] = INT64_MAX - 10;
	in[20] = INT64_MIN;
	in[32 + 20] = INT64_MIN + 9;
	in[21] = INT64_MAX; /* empty, and hi - lo overflows */
	in[32 + 21] = INT64_MIN;
	in[1] = 9;
	in[32 + 1] = 9;
	check(r, in, 32, out);
	assert_int_equal(out[1], 0);
	assert_int_not_equal(out[10], 0);
}

static void
loops(void **state)
{
	(void)state;
	for (int64_t step = 1; step < 5; step++)
		rig_run("loops", a_loop, &step);
}

/* Nested: a loop whose carried value is decided by a branch with two results, and a store in an arm. */
static void
nested(Rig *r, const void *arg)
{
	(void)arg;
	int64_t in[COUNT], out[COUNT];
	ValId x = view_of(r, DT_I64, false), y = view_of(r, DT_I64, true), t = open_tasks(r);
	ValId carried[2] = {int64(r, 1), int64(r, 0)};
	ValId v = tir_load(r->k, x, &t, 0, 0, 0), three = int64(r, 3);
	ValId i = tir_for(r->k, int64(r, 0), v, int64(r, 1), carried, 2);
	ValId rest = tir_binary(r->k, OP_IMOD, i, three);
	tir_if(r->k, tir_binary(r->k, OP_EQ, rest, int64(r, 0)));
	ValId then[2] = {tir_binary(r->k, OP_MUL, carried[0], three), tir_binary(r->k, OP_ADD, carried[1], i)};
	tir_else(r->k, then, 2);
	ValId other[2] = {tir_binary(r->k, OP_SUB, carried[0], i), carried[0]};
	tir_if(r->k, tir_binary(r->k, OP_LT, other[0], int64(r, 0)));
	tir_store(r->k, y, i, &i, 0, 0);
	tir_else(r->k, NULL, 0);
	tir_end_if(r->k, NULL, 0);
	tir_end_if(r->k, other, 2);
	tir_end_for(r->k, other, 2);
	tir_store(r->k, y, tir_binary(r->k, OP_ADD, other[0], other[1]), &t, 0, 0);
	tir_end_for(r->k, NULL, 0);
	for (int k = 0; k < COUNT; k++)
		in[k] = k - 5;
	check(r, in, COUNT, out);
	assert_int_not_equal(out[40], out[41]);
}

static void
nesting(void **state)
{
	(void)state;
	rig_run("nesting", nested, NULL);
}

/* --- faults --- */

typedef struct {
	unsigned lanes;
	int64_t word[COUNT];
} Faults;

/* FAULT of word[t * lanes ..]. */
static void
raise(Rig *r, const void *arg)
{
	const Faults *f = arg;
	unsigned lanes = f->lanes ? f->lanes : 1;
	ValId x = view_of(r, DT_I64, false), y = view_of(r, DT_I64, true), t = open_tasks(r);
	ValId at = tir_binary(r->k, OP_MUL, t, int64(r, lanes));
	ValId w = tir_load(r->k, x, &at, 0, f->lanes ? TIR_LANES_ALONG(0) : 0, f->lanes);
	tir_fault(r->k, tir_cast(r->k, DT_U32, w));
	tir_store(r->k, y, t, &t, 0, 0);
	tir_end_for(r->k, NULL, 0);
	check(r, f->word, COUNT / lanes, NULL);
}

static void
faults(void **state)
{
	(void)state;
	for (unsigned lanes = 0; lanes <= 8; lanes += 4)
		for (unsigned n = 0; n < 5; n++) {
			Faults f = {.lanes = lanes};
			if (n == 1 || n == 2)
				f.word[19] = n == 1 ? 7 : 9 << 16; /* a failure; a cut */
			if (n == 3) { /* two of each, a cut first */
				f.word[17] = 3 << 16;
				f.word[18] = 5 << 16 | 4;
				f.word[19] = 6;
			}
			if (n == 4)
				f.word[63] = 65534;
			rig_run("faults", raise, &f);
		}
}

/* The status names the failure by its place, and it is gone after the next launch. */
static void
report(Rig *r, const void *arg)
{
	(void)arg;
	int64_t x[COUNT] = {0}, y[COUNT];
	texo_fault fault = {.struct_size = sizeof fault};
	ValId view = view_of(r, DT_I64, false), out = view_of(r, DT_I64, true), t = open_tasks(r);
	tir_fault(r->k, tir_cast(r->k, DT_U32, tir_load(r->k, view, &t, 0, 0, 0)));
	tir_store(r->k, out, t, &t, 0, 0);
	tir_end_for(r->k, NULL, 0);
	rig_load(r, "host", COUNT);
	x[5] = 12;
	RigRun run = {.data = {x, y}, .count = {COUNT, COUNT}, .ntask = COUNT};
	rig_launch(r, &run);
	assert_int_equal(run.fault, 12);
	assert_string_equal(texo_last_error(), "12:1: the access t[i] went outside");
	assert_int_equal(y[COUNT - 1], COUNT - 1); /* the launch finished */
	x[5] = 13 << 16;
	rig_launch(r, &run);
	assert_int_equal(run.cut, 13);
	x[5] = 0;
	rig_launch(r, &run);
	assert_int_equal(texo_kernel_status(r->kernel, &fault), TEXO_OK);
	assert_true(!fault.failed && !fault.cut && fault.line == 0);
	assert_string_equal(fault.access, "");
}

static void
fault_report(void **state)
{
	(void)state;
	rig_run("report", report, NULL);
}

/* --- more than 2^32 elements --- */

/* y[t] = x[t * 2^30 + t], as scalars and with strides that only their product makes large. */
static void
far_apart(Rig *r, const void *arg)
{
	(void)arg;
	const int64_t count = (INT64_C(1) << 32) + COUNT, gib = INT64_C(1) << 30;
	uint8_t y[COUNT] = {0};
	ValId n = int64(r, count), one = int64(r, 1), five = int64(r, 5);
	unsigned x = tir_add_buffer(r->k, name_cstr(r->names, "x"), DT_U8, false);
	ValId from = tir_view(r->k, x, 2, (ValId[]){five, n}, (ValId[]){int64(r, gib), one});
	ValId to = view_of(r, DT_U8, true), t = open_tasks(r);
	ValId lanes = tir_emit(r->k, OP_IOTA, tir_vector(DT_I64, 4), 0, NULL, 0);
	ValId at = tir_binary(r->k, OP_ADD, tir_emit(r->k, OP_SPLAT, tir_vector(DT_I64, 4), 0, &one, 1), lanes);
	tir_store(r->k, to, tir_load(r->k, from, (ValId[]){t, t}, 0, 0, 0), &t, 0, 0);
	tir_store(r->k, to, tir_load(r->k, from, (ValId[]){at, at}, 0, 0, 4), &five, 0, TIR_LANES_ALONG(0));
	tir_end_for(r->k, NULL, 0);
	rig_load(r, "host", 5);
	uint8_t *p = mmap(NULL, (size_t)count, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (p == MAP_FAILED)
		skip();
	for (int64_t k = 0; k < 5; k++)
		p[k * gib + k] = (uint8_t)(40 + k);
	RigRun run = {.data = {p, y}, .count = {count, COUNT}, .ntask = 5};
	rig_launch(r, &run);
	assert_memory_equal(y, "\50\51\52\53\54\51\52\53\54", 9);
	munmap(p, (size_t)count);
}

static void
large_tensors(void **state)
{
	(void)state;
	rig_run("large", far_apart, NULL);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(loops),
		cmocka_unit_test(nesting),
		cmocka_unit_test(faults),
		cmocka_unit_test(fault_report),
		cmocka_unit_test(large_tensors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
