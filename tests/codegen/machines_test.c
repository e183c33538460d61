/* machines_test.c: a compilation with a machine that served others makes the bytes that it makes with its own, for any
 * processor or GPU, in any order; and no more machines are kept than may be.
 *
 *     machines_test FILE... */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "codegen/codegen.h"
#include "driver/source.h"
#include "driver/stages.h"

typedef struct {
	Arena arena;
	Unwind unwind;
	CodegenMachines machines;
	unsigned compared, bad;
} Test;

/* The host is a processor by its name, and so is none of the levels. */
static const char *const target[] = {"host", "x86-64-v3", "sm_90a", "x86-64-v2", "x86-64-v3", "sm_80", "host"};
static const char *const processor[] = {"x86-64", "x86-64-v2", "x86-64-v3", "x86-64-v4", "haswell", "skylake-avx512",
                                        "icelake-server", "sapphirerapids", "znver3", "znver4", "znver5"};
enum { TARGETS = sizeof target / sizeof *target, PROCESSORS = sizeof processor / sizeof *processor };

/* From the text: passes change a graph. */
static bool
code_of(Test *t, const char *path, const char *cpu, CodegenMachines *machines, CodegenResult *out)
{
	const char *text;
	size_t bytes;
	SourceUnit u;
	PassOptions po;
	Text log;
	Problem problem = {.arena = &t->arena};
	FrontendOptions fo = {.fp = FP_RELAXED, .host = host_default()};
	CodegenOptions co = {.cpu = cpu, .opt_level = 2, .machines = machines};
	if (!source_read(&host_default()->files, &t->arena, path, MAX_SOURCE, &text, &bytes, &problem))
		return false;
	unit_begin(&t->arena, path, text, bytes, &u);
	unit_check(&t->arena, &u, &fo, false);
	if (u.failed)
		return false;
	text_init(&log, &t->arena);
	pass_options_for(cpu, host_default(), &po);
	const Program **program = programs_of(&t->arena, u.unit, &po, &log);
	return codegen_cpu(&t->arena, program, u.unit->graph.n, &co, out) == CODEGEN_OK;
}

static void
compare(Test *t, const char *path, const char *cpu)
{
	CodegenResult own, kept;
	bool same = code_of(t, path, cpu, NULL, &own) && code_of(t, path, cpu, &t->machines, &kept) &&
	            own.image_size == kept.image_size && memcmp(own.image, kept.image, own.image_size) == 0;
	t->compared++;
	t->bad += !same;
	if (!same)
		printf("%s for %s: other bytes with a kept machine\n", path, cpu);
}

/* Apart, so that no local lives across the longjmp. */
static void
run(Test *t, const char *path, const char *const *cpu, unsigned n)
{
	for (unsigned k = 0; k < n; k++)
		compare(t, path, cpu[k]);
}

static void
one_file(Test *t, const char *path, const char *const *cpu, unsigned n)
{
	arena_init(&t->arena, &host_default()->memory, &t->unwind);
	if (setjmp(t->unwind.env)) {
		printf("%s: %s\n", path, t->unwind.text);
		t->bad++;
	} else {
		run(t, path, cpu, n);
	}
	arena_free(&t->arena);
}

static void
expect_idle(Test *t, unsigned n)
{
	t->bad += t->machines.n != n;
	if (t->machines.n != n)
		printf("%u machines are kept, not %u\n", t->machines.n, n);
}

int
main(int argc, char **argv)
{
	static Test t;
	codegen_machines_init(&t.machines);
	for (int k = 1; k < argc; k++) {
		one_file(&t, argv[k], target, TARGETS);
		expect_idle(&t, 5); /* one of each target, however often it served */
	}
	one_file(&t, argv[1], processor, PROCESSORS);
	expect_idle(&t, CODEGEN_MACHINES);
	codegen_machines_free(&t.machines);
	printf("%u compilations, %u things wrong\n", t.compared, t.bad);
	return t.bad || !t.compared;
}
