/* object_test.c: codegen_object by itself: memory running out anywhere in it, the same bytes for the same
 * kernels, and what it refuses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "codegen/object_file.h"
#include "runtime/alone/bitcode.h"
#include "tests/codegen/rig.h"

static const char twice[] =
	"kernel k\nbuffer 0 x : f32\nbuffer 1 y : f32 written\n"
	"{ %1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4 = buffer 0 %5:f32 = view %4, %2, %3\n"
	"  %6 = buffer 1 %7:f32 = view %6, %2, %3\n"
	"  %8 = for %1, %2, %3 { %9:i64 = blockarg 0 %10:f32 = load %5, %9 %11:f32 = fma %10, %10, %10\n"
	"    %12 = store %7, %11, %9 %13 = yield } }\n";
static const char unexpanded[] =
	"kernel k\nbuffer 0 x : f32\nbuffer 1 y : f32 written\n{ %1:f32 = const 1 %2:f32 = exp %1 }\n";

typedef struct {
	ObjectResult out;
	CodegenStatus status;
	const Program *one[1];
} Made;

/* For two processors, in the wrong order. */
static void
make(Rig *r, const char *text, const char *graph, bool alone, Made *m)
{
	const char *error = NULL;
	r->names = names_new(&r->arena);
	r->k = tir_read(&r->arena, r->names, text, strlen(text), &error);
	assert_non_null(r->k);
	m->one[0] = rig_program(r, 1);
	r->graph->name = name_cstr(r->names, graph);
	uint32_t n = 0;
	while (runtime_bitcode[n].n)
		n++;
	ObjectBitcode *launch = ARENA_ARRAY(&r->arena, ObjectBitcode, n + 1);
	for (uint32_t k = 0; k < n; k++)
		launch[k] = (ObjectBitcode){runtime_bitcode[k].bytes, runtime_bitcode[k].n};
	const ObjectLevel level[2] = {{"x86-64", m->one}, {"x86-64-v3", m->one}};
	const ObjectInput in = {.level = level, .nlevel = 2, .nprogram = 1, .launch = alone ? launch : NULL, .opt_level = 1};
	m->status = codegen_object(&r->arena, &in, &m->out);
}

/* Whether an object can be made in an arena that may grow by `limit` bytes. */
static bool
made_within(size_t limit, bool alone)
{
	Rig *r = calloc(1, sizeof *r);
	Made *m = calloc(1, sizeof *m);
	assert_true(r && m);
	volatile bool done = false;
	arena_init(&r->arena, &host_default()->memory, &r->unwind);
	r->arena.limit = limit;
	if (setjmp(r->unwind.env) == 0) {
		make(r, twice, "g", alone, m);
		assert_int_equal(m->status, CODEGEN_OK);
		done = true;
	} else {
		assert_int_equal(r->unwind.why, UNWIND_LIMIT);
	}
	assert_ptr_equal(r->arena.unwind, &r->unwind);
	arena_free(&r->arena);
	free(m);
	free(r);
	return done;
}

static void
any_allocation_may_fail(void **state)
{
	(void)state;
	size_t limit = 12000, steps = 0;
	for (; !made_within(limit, false); limit = limit * 11 / 10)
		steps++;
	assert_true(steps > 5);
	for (limit = limit / 2, steps = 0; !made_within(limit, true); limit = limit * 3 / 2)
		steps++;
	assert_true(steps > 1);
}

static void
same_kernels_same_bytes(void **state)
{
	(void)state;
	Rig *r = calloc(2, sizeof *r);
	Made *m = calloc(2, sizeof *m);
	assert_true(r && m);
	for (int k = 0; k < 2; k++) {
		arena_init(&r[k].arena, &host_default()->memory, &r[k].unwind);
		if (setjmp(r[k].unwind.env))
			fail_msg("unwound: %s", r[k].unwind.text);
		make(&r[k], twice, "g", true, &m[k]);
		assert_int_equal(m[k].status, CODEGEN_OK);
	}
	assert_int_equal(m[0].out.size, m[1].out.size);
	assert_memory_equal(m[0].out.object, m[1].out.object, m[0].out.size);
	assert_string_equal(m[0].out.header, m[1].out.header);
	assert_non_null(strstr(m[0].out.header, "Made by texo, for x86-64-v3, x86-64."));
	assert_int_equal(m[0].out.nsymbol, 4);
	for (int k = 0; k < 2; k++)
		arena_free(&r[k].arena);
	free(m);
	free(r);
}

static void
refused(const char *text, const char *graph, const char *message)
{
	Rig *r = calloc(1, sizeof *r);
	Made *m = calloc(1, sizeof *m);
	assert_true(r && m);
	arena_init(&r->arena, &host_default()->memory, &r->unwind);
	if (setjmp(r->unwind.env))
		fail_msg("unwound: %s", r->unwind.text);
	make(r, text, graph, false, m);
	assert_int_equal(m->status, CODEGEN_ILLEGAL);
	assert_string_equal(m->out.message, message);
	arena_free(&r->arena);
	free(m);
	free(r);
}

static void
refusals(void **state)
{
	(void)state;
	refused(unexpanded, "g", "kernel k, %2: 'exp' on f32 must be expanded before code generation");
	refused(twice, "int", "no C function can be called 'int'; give the graph another name");
	refused(twice, "fmaf", "no C function can be called 'fmaf'; give the graph another name");
	refused(twice, "texo_object_call", "no C function can be called 'texo_object_call'; give the graph another name");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(any_allocation_may_fail),
		cmocka_unit_test(same_kernels_same_bytes),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
