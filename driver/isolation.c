/* isolation.c: see isolation.h. */
#include "driver/isolation.h"
#include "driver/sanitized.h"

#include <stdlib.h>

static unsigned
count_of(const Options *o, OptionId id, unsigned otherwise)
{
	const char *value = option_value(o, id);
	return value ? (unsigned)strtoul(value, NULL, 10) : otherwise;
}

const char *
isolation_help(const Session *s, texo_status status)
{
	if (!s->isolation)
		return NULL;
	if (status == TEXO_NO_DEVICE)
		return "--in-process generates code without a worker, for programs that you trust";
	if (status == TEXO_LIMIT)
		return "--worker-seconds=N gives it more time for a kernel, --worker-memory=MIB more memory; --in-process has no limit";
	return status == TEXO_INTERNAL ? "this is a bug of texo, whatever the input; please report it" : NULL;
}

static bool
refused(Session *s, texo_status status)
{
	static const struct {
		texo_status status;
		ExitCode exit;
	} exits[] = {{TEXO_LIMIT, EXIT_INPUT}, {TEXO_NO_DEVICE, EXIT_DEVICE}, {TEXO_NO_MEMORY, EXIT_IO}};
	ExitCode code = EXIT_BUG;
	for (unsigned k = 0; k < sizeof exits / sizeof *exits; k++)
		if (exits[k].status == status)
			code = exits[k].exit;
	problem(&s->problem, code, "%s", texo_last_error());
	const char *help = isolation_help(s, status);
	return help && problem_help(&s->problem, "%s", help);
}

static bool
ask(void *user, Arena *a, const CodegenJob *job, const char **answer, size_t *n)
{
	Session *s = user;
	const char *name = s->subject ? s->subject : "";
	if (job->what)
		name = arena_text(a, "%s: kernel %s", name, job->what);
	texo_status status = worker_ask_job(&s->isolation->ctx, a, name, job, answer, n);
	return status == TEXO_OK || refused(s, status);
}

void
isolation_begin(Session *s, Isolation *i, const char *path)
{
	const Options *o = s->options;
	s->isolation = NULL;
	if (option_on(o, OPT_IN_PROCESS))
		return;
	i->ctx.host = *s->host;
	i->ctx.compile_bytes = LOWERING_LIMIT;
	i->ctx.isolation = TEXO_WORKER;
	i->ctx.worker_seconds = count_of(o, OPT_WORKER_SECONDS, IS_SANITIZED ? 10 * WORKER_SECONDS : WORKER_SECONDS); /* so much slower */
	i->ctx.worker_mib = count_of(o, OPT_WORKER_MEMORY, WORKER_MIB);
	i->ctx.worker = path;
	i->ctx.held = &i->worker;
	s->isolation = i;
}

/* Should it fail, the request says so. */
void
isolation_expect(Session *s)
{
	if (s->isolation && !s->isolation->worker.pid)
		worker_start(s->isolation->ctx.worker, &s->isolation->worker);
}

void
isolation_end(Isolation *i)
{
	if (i)
		worker_end(&i->worker);
}

const Elsewhere *
isolation_elsewhere(Session *s)
{
	if (!s->isolation)
		return NULL;
	s->isolation->elsewhere = (Elsewhere){ask, s};
	return &s->isolation->elsewhere;
}

void
isolation_lend(const Session *s, texo_ctx *ctx)
{
	if (!s->isolation)
		return;
	ctx->isolation = TEXO_WORKER;
	ctx->worker = s->isolation->ctx.worker;
	ctx->worker_seconds = s->isolation->ctx.worker_seconds;
	ctx->worker_mib = s->isolation->ctx.worker_mib;
	ctx->held = s->isolation->ctx.held;
}
