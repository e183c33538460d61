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
#include "ir/parts.h"

typedef struct {
	Arena arena;
	Unwind unwind;
	CodegenMachines machines;
	const CodegenJob *job; /* the last that was asked for */
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
	*n = out.n;
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

enum { MOST_BYTES = 1 << 30, MANY_BYTES = 2000 };

/* The answer's first part. */
static bool
is_done(const Text *answer)
{
	return answer->at[sizeof(uint64_t)] != 0;
}

/* Does what arrives: 1 with code, 0 with a reason or as no job. */
static int
arrives(Test *t, const char *path, const void *bytes, size_t n)
{
	Arena a;
	Unwind unwind;
	Text out;
	volatile int made = 0;
	arena_init(&a, &host_default()->memory, &unwind);
	a.limit = MOST_BYTES;
	if (setjmp(unwind.env)) {
		check(t, unwind.why == UNWIND_LIMIT, path, unwind.text);
	} else {
		text_init(&out, &a);
		if (codegen_serve(&a, bytes, n, &t->machines, &out)) {
			made = is_done(&out);
			PartReader r = {text_get(&out), out.n, false};
			part_get_number(&r);
			check(t, made || *part_get_text(&r), path, "a job fails without a reason");
		}
	}
	arena_free(&a);
	return made;
}

typedef struct {
	const char *at;
	size_t n;
} Answer;

static bool
give(void *user, Arena *a, const CodegenJob *job, const char **answer, size_t *n)
{
	const Answer *x = user;
	(void)a;
	(void)job;
	*answer = x->at;
	*n = x->n;
	return true;
}

/* Of so much of an answer. */
static CodegenStatus
hears(Test *t, const char *path, const Program **p, uint32_t n, const Answer *answer)
{
	Arena a;
	Unwind unwind;
	CodegenResult r;
	const Elsewhere to = {give, (void *)(uintptr_t)answer};
	CodegenOptions o = {.cpu = "x86-64", .opt_level = 2, .elsewhere = &to};
	volatile CodegenStatus status = CODEGEN_ILLEGAL;
	arena_init(&a, &host_default()->memory, &unwind);
	if (setjmp(unwind.env)) {
		check(t, false, path, unwind.text);
	} else {
		status = codegen_cpu(&a, p, n, &o, &r);
		check(t, status == CODEGEN_OK || (!r.unanswered && *r.message), path, "it ends without a reason");
	}
	arena_free(&a);
	return status;
}

static void
half_answers(Test *t, const char *path, const Program **p, uint32_t n, const CodegenJob *job)
{
	Text whole;
	text_init(&whole, &t->arena);
	if (!check(t, codegen_serve(&t->arena, job->bytes, job->n, &t->machines, &whole), path, "is no job"))
		return;
	Answer answer = {text_get(&whole), whole.n};
	check(t, hears(t, path, p, n, &answer) == CODEGEN_OK, path, "an answer is not taken");
	for (answer.n = 0; answer.n < whole.n; answer.n++)
		check(t, hears(t, path, p, n, &answer) == CODEGEN_FAILED, path, "half of an answer is taken");
}

/* Every byte in several ways, and every length; of a long job some. */
static void
damage(Test *t, const char *path, const Elsewhere *to)
{
	uint32_t n;
	const Program **p = programs(t, path, "x86-64", &n);
	CodegenResult r;
	CodegenOptions o = {.cpu = "x86-64", .no_code = false, .opt_level = 2, .elsewhere = to};
	if (!check(t, p && codegen_cpu(&t->arena, p, n, &o, &r) == CODEGEN_OK, path, "can't be compiled"))
		return;
	const CodegenJob job = *t->job;
	const char *sent = job.bytes;
	char *bytes = arena_copy(&t->arena, job.bytes, job.n);
	size_t tried = 0, made = 0, step = job.n / MANY_BYTES + 1;
	for (size_t cut = 0; cut < job.n; cut += step)
		check(t, !arrives(t, path, bytes, cut), path, "half of a job is done");
	for (size_t at = 0; at < job.n; at += step) {
		const char to_what[] = {(char)(sent[at] ^ 1), (char)(sent[at] ^ 0x80), 0, ' ', '9'};
		for (size_t k = 0; k < sizeof to_what; k++) {
			if (to_what[k] == sent[at])
				continue;
			bytes[at] = to_what[k];
			tried++;
			made += (size_t)arrives(t, path, bytes, job.n);
		}
		bytes[at] = sent[at];
	}
	printf("%s: %zu bytes, %zu of %zu changes give code\n", path, job.n, made, tried);
	check(t, made > 10 && tried - made > job.n / step, path, "no damage is seen");
	half_answers(t, path, p, n, &job);
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
	Test t = {.asked = 0};
	codegen_machines_init(&t.machines);
	for (int k = 1; k < argc; k++)
		one_file(&t, argv[k]);
	codegen_machines_free(&t.machines);
	printf("%u jobs, %u bad\n", t.asked, t.bad);
	return t.bad || !t.asked;
}
