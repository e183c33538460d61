/* job_test.c: LLVM's jobs as another process would do them: the same artefact and object; and bytes on the way that are cut off
 * anywhere, or changed: no job, a reason, or code, and nothing worse.
 *
 *     job_test FILE... */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include "codegen/object_file.h"
#include "driver/source.h"
#include "driver/stages.h"

typedef struct {
	Arena arena;
	Unwind unwind;
	CodegenMachines machines;
	const CodegenJob *job; /* the last that was asked for */
	size_t answer_bytes;   /* of which so many are given back */
	unsigned asked, bad;
} Test;

static bool
serve(void *user, Arena *a, const CodegenJob *job, const char **answer, size_t *n)
{
	Test *t = user;
	Text out;
	CodegenJob *copy = ARENA_NEW(a, CodegenJob);
	*copy = *job;
	text_init(&out, a);
	t->asked++;
	t->job = copy;
	bool done = codegen_serve(a, job->bytes, job->n, &t->machines, &out);
	*answer = text_get(&out);
	*n = out.n < t->answer_bytes ? out.n : t->answer_bytes;
	return done;
}

static bool
check(Test *t, bool right, const char *path, const char *what)
{
	t->bad += !right;
	if (!right)
		printf("%s: %s\n", path, what);
	return right;
}

static const Program **
programs(Test *t, const char *path, const char *cpu, uint32_t *n)
{
	const char *text;
	size_t size;
	Problem problem = {.arena = &t->arena};
	Text log;
	SourceUnit u;
	PassOptions po;
	FrontendOptions fo = {.fp = FP_RELAXED, .host = host_default()};
	if (!source_read(&host_default()->files, &t->arena, path, MAX_SOURCE, &text, &size, &problem))
		return NULL;
	unit_begin(&t->arena, path, text, size, &u);
	unit_check(&t->arena, &u, &fo, false);
	text_init(&log, &t->arena);
	pass_options_for(cpu, host_default(), &po);
	*n = u.failed ? 0 : u.unit->graph.n;
	return u.failed ? NULL : programs_of(&t->arena, u.unit, &po, &log);
}

/* --- the same --- */

static void
same_artefact(Test *t, const char *path, const char *cpu, const Elsewhere *to)
{
	uint32_t n;
	const Program **p = programs(t, path, cpu, &n);
	CodegenResult here, there;
	CodegenOptions o = {.cpu = cpu, .want_llvm = true, .want_asm = true, .opt_level = 2};
	if (!check(t, p && codegen_cpu(&t->arena, p, n, &o, &here) == CODEGEN_OK, path, "can't be compiled"))
		return;
	o.elsewhere = to;
	unsigned before = t->asked;
	check(t, codegen_cpu(&t->arena, p, n, &o, &there) == CODEGEN_OK && t->asked > before, path, "can't be compiled elsewhere");
	check(t, here.image_size == there.image_size && memcmp(here.image, there.image, here.image_size) == 0, path, "the artefacts differ");
	check(t, strcmp(here.llvm, there.llvm) == 0 && strcmp(here.assembly, there.assembly) == 0, path, "the texts differ");
}

static void
same_object(Test *t, const char *path, const Elsewhere *to)
{
	ObjectLevel level[2] = {{.cpu = "x86-64"}, {.cpu = "x86-64-v3"}}, gpu = {.cpu = "sm_80"};
	uint32_t n = 0;
	for (unsigned k = 0; k < 2; k++)
		level[k].program = programs(t, path, level[k].cpu, &n);
	gpu.program = programs(t, path, gpu.cpu, &n);
	ObjectInput in = {.level = level, .nlevel = 2, .nprogram = n, .gpu = &gpu, .ngpu = 1, .opt_level = 2};
	ObjectResult here, there;
	if (!check(t, n && codegen_object(&t->arena, &in, &here) == CODEGEN_OK, path, "there is no object"))
		return;
	in.elsewhere = to;
	check(t, codegen_object(&t->arena, &in, &there) == CODEGEN_OK, path, "there is no object elsewhere");
	check(t, here.size == there.size && memcmp(here.object, there.object, here.size) == 0, path, "the objects differ");
}

/* --- what arrives otherwise --- */

/* The answer's first part. */
static bool
is_done(const Text *answer)
{
	return answer->at[sizeof(uint64_t)] != 0;
}

static void
damage(Test *t, const char *path, const Elsewhere *to)
{
	enum { STEPS = 400 };
	uint32_t n;
	const Program **p = programs(t, path, "x86-64", &n);
	CodegenResult r;
	CodegenOptions o = {.cpu = "x86-64", .no_code = false, .opt_level = 2, .elsewhere = to};
	if (!check(t, p && codegen_cpu(&t->arena, p, n, &o, &r) == CODEGEN_OK, path, "can't be compiled"))
		return;
	const CodegenJob job = *t->job;
	size_t step = job.n / STEPS + 1, made = 0, refused = 0;
	for (size_t cut = 0; cut < job.n; cut += step) {
		Text out;
		text_init(&out, &t->arena);
		check(t, !codegen_serve(&t->arena, job.bytes, cut, &t->machines, &out) || !is_done(&out), path, "half of a job is done");
	}
	char *bytes = arena_copy(&t->arena, job.bytes, job.n);
	for (size_t at = 0; at < job.n; at += step) {
		Text out;
		text_init(&out, &t->arena);
		bytes[at] ^= 1 + (int)(at % 31);
		*(codegen_serve(&t->arena, bytes, job.n, &t->machines, &out) && is_done(&out) ? &made : &refused) += 1;
		bytes[at] = ((const char *)job.bytes)[at];
	}
	check(t, made > 10 && refused > 10, path, "no damage is seen");
	for (t->answer_bytes = 0; t->answer_bytes < 64; t->answer_bytes++)
		check(t, codegen_cpu(&t->arena, p, n, &o, &r) == CODEGEN_FAILED && !r.unanswered && r.message, path, "half of an answer is taken");
	t->answer_bytes = SIZE_MAX;
}

/* Apart, so that no local lives across the longjmp. */
static void
one_file(Test *t, const char *path)
{
	const Elsewhere to = {serve, t};
	arena_init(&t->arena, &host_default()->memory, &t->unwind);
	if (setjmp(t->unwind.env)) {
		printf("%s: %s\n", path, t->unwind.text);
		t->bad++;
	} else {
		same_artefact(t, path, "x86-64-v3", &to);
		same_artefact(t, path, "sm_90a", &to);
		same_object(t, path, &to);
		damage(t, path, &to);
	}
	arena_free(&t->arena);
}

int
main(int argc, char **argv)
{
	Test t = {.answer_bytes = SIZE_MAX};
	codegen_machines_init(&t.machines);
	for (int k = 1; k < argc; k++)
		one_file(&t, argv[k]);
	codegen_machines_free(&t.machines);
	printf("%u jobs, %u bad\n", t.asked, t.bad);
	return t.bad || !t.asked;
}
