/* job_elsewhere.c: jobs sent to another process; their answers. */
#include "codegen/job.h"

/* In the order of serve.c. What isn't one is the other process's fault. */
static CodegenStatus
read_answer(Arena *a, const char *answer, size_t n, JobMade *out, const char **message)
{
	PartReader r = {answer, n, false};
	size_t size;
	bool done = part_get_number(&r) != 0;
	const char *why = part_get_text(&r), *llvm = part_get(&r, &size);
	out->llvm = size ? llvm : NULL;
	const char *assembly = part_get(&r, &size);
	out->assembly = size ? assembly : NULL;
	out->code = part_get(&r, &out->n);
	if (r.bad || r.left)
		*message = "the worker's answer makes no sense";
	else if (!done)
		*message = arena_text(a, "%s", why);
	return *message ? CODEGEN_FAILED : CODEGEN_OK;
}

static CodegenStatus
ask(Arena *a, const Elsewhere *to, const CodegenJob *job, JobMade *out, const char **message)
{
	const char *answer;
	size_t n;
	*message = NULL;
	return to->ask(to->user, a, job, &answer, &n) ? read_answer(a, answer, n, out, message) : CODEGEN_FAILED;
}

CodegenStatus
module_elsewhere(Arena *a, const Elsewhere *to, const ModuleJob *j, JobMade *out, const char **message)
{
	Text text;
	text_init(&text, a);
	module_write(j, &text);
	CodegenJob job = {j->kernel.n == 1 ? j->kernel.at[0].symbol : NULL, j->kernel.n, text.at, text.n};
	return ask(a, to, &job, out, message);
}

CodegenStatus
object_elsewhere(Arena *a, const Elsewhere *to, const ObjectJob *j, JobMade *out, const char **message)
{
	Text text;
	CodegenJob job = {NULL, 0, NULL, 0};
	text_init(&text, a);
	object_write(j, &text);
	for (uint32_t n = 0; n < j->level.n; n++)
		job.kernels += j->level.at[n].kernel.n;
	job.bytes = text.at;
	job.n = text.n;
	return ask(a, to, &job, out, message);
}
