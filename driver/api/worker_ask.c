/* worker_ask.c: a request as a message, and a worker's answer as a status. The files that the program
 * uses travel along, since a worker opens none. A context that has a worker keeps it while it answers. */
#include "driver/api/objects.h"
#include "driver/api/worker.h"

#include <signal.h>
#include <string.h>

/* All but the program itself and the standard library, which a worker has. */
static void
put_files(const Diags *d, Text *out)
{
	uint32_t n = 0;
	for (uint32_t k = 1; k < d->files.n; k++)
		n += d->files.at[k].text != std_text;
	part_put_number(out, n);
	for (uint32_t k = 1; k < d->files.n; k++) {
		if (d->files.at[k].text == std_text)
			continue;
		part_put_text(out, d->files.at[k].path);
		part_put(out, d->files.at[k].text, d->files.at[k].n);
	}
}

/* The parts that driver/worker_serve.c reads, in its order: how much it may use; */
static void
begin_request(const texo_ctx *ctx, Arena *a, unsigned seconds, const char *kind, Text *out)
{
	message_begin(out, a);
	part_put_number(out, seconds);
	part_put_number(out, ctx->held ? WORKER_LIFE : seconds + 1);
	part_put_number(out, ctx->worker_mib);
	part_put_number(out, ctx->compile_bytes);
	part_put_text(out, kind);
}

/* and what is to be compiled, and how. */
static void
put_options(const char *target, const Request *r, Text *out)
{
	part_put_text(out, target);
	part_put_text(out, r->fuse);
	part_put_number(out, r->fp);
	part_put_number(out, r->flags);
	part_put_number(out, r->nstatics);
	for (uint32_t k = 0; k < r->nstatics; k++)
		part_put_text(out, r->statics[k]);
	part_put_text(out, r->name);
	part_put(out, r->text, r->n);
}

/* --- the answer --- */

static texo_status
is_late(const char *name, unsigned seconds)
{
	return texo_private_fail(TEXO_LIMIT, "%s: the worker was given %u second%s and needs more", name, seconds,
	                         seconds == 1 ? "" : "s");
}

static texo_status
is_full(const texo_ctx *ctx, const char *name)
{
	return texo_private_fail(TEXO_LIMIT, "%s: the worker was given %u MiB and needs more", name, ctx->worker_mib);
}

static texo_status
makes_no_sense(const char *name)
{
	return texo_private_fail(TEXO_INTERNAL, "%s: the worker's answer makes no sense", name);
}

static texo_status
has_died(const texo_ctx *ctx, const char *name, const WorkerOutcome *o)
{
	const char *colon = *o->words ? ": " : "";
	if (strstr(o->words, "out of memory") || strstr(o->words, "bad_alloc")) /* LLVM's words, and C++'s, before they end a process */
		return is_full(ctx, name);
	if (!o->signal)
		return texo_private_fail(TEXO_INTERNAL, "%s: the worker ended without an answer%s%s", name, colon, o->words);
	return texo_private_fail(TEXO_INTERNAL, "%s: the worker ended without an answer (signal %d)%s%s", name, o->signal, colon,
	                         o->words);
}

static texo_status
read_answer(const texo_ctx *ctx, const char *name, PartReader *answer, const char **bytes, size_t *n)
{
	uint64_t status = part_get_number(answer);
	const char *why = part_get_text(answer);
	*bytes = part_get(answer, n);
	if (answer->bad || answer->left || status > TEXO_INTERNAL || (status && !*why))
		return makes_no_sense(name);
	if (status == TEXO_NO_MEMORY)
		return is_full(ctx, name);
	return status ? texo_private_fail((texo_status)status, "%s", why) : TEXO_OK;
}

static texo_status
ask(texo_ctx *ctx, Arena *a, const char *name, unsigned seconds, const Text *request, const char **bytes, size_t *n)
{
	Worker once, *w = ctx->held ? ctx->held : &once;
	PartReader answer;
	/* a lasting one may have to wait for a processor as long as it computes */
	WorkerTime time = {seconds, ctx->held ? WORKER_PATIENCE * seconds : seconds};
	int code = ctx->held && w->pid ? 0 : worker_start(ctx->worker, w);
	if (code)
		return texo_private_fail(TEXO_NO_DEVICE, "options: worker: can't start %s: %s", ctx->worker, strerror(code));
	WorkerOutcome o = worker_exchange(w, a, text_get(request), request->n, time, ctx->held != NULL, &answer);
	switch (o.end) {
	case WORKER_OK:
		return read_answer(ctx, name, &answer, bytes, n);
	case WORKER_LATE:
		return is_late(name, seconds);
	case WORKER_GARBAGE:
		return makes_no_sense(name);
	case WORKER_DIED:
		break;
	}
	return o.signal == SIGXCPU ? is_late(name, seconds) : has_died(ctx, name, &o);
}

texo_status
worker_ask(Compilation *x, const char *kind, const char **bytes, size_t *n)
{
	Text request;
	const char *target = x->gpu ? arena_text(&x->arena, "cuda:%s", x->cpu) : x->request->target;
	begin_request(x->ctx, &x->arena, x->ctx->worker_seconds, kind, &request);
	put_options(target, x->request, &request);
	put_files(&x->unit.diags, &request);
	message_end(&request);
	return ask(x->ctx, &x->arena, x->request->name, x->ctx->worker_seconds, &request, bytes, n);
}

texo_status
worker_ask_job(texo_ctx *ctx, Arena *a, const char *name, const CodegenJob *job, const char **bytes, size_t *n)
{
	Text request;
	const Request r = {.fuse = "all", .name = name, .text = job->bytes, .n = job->n, .fp = FP_RELAXED};
	uint64_t seconds = (uint64_t)ctx->worker_seconds * (job->kernels ? job->kernels : 1);
	if (seconds >= WORKER_LIFE)
		seconds = WORKER_LIFE - 1;
	begin_request(ctx, a, (unsigned)seconds, WORKER_JOB, &request);
	put_options("", &r, &request);
	part_put_number(&request, 0); /* files */
	message_end(&request);
	return ask(ctx, a, name, (unsigned)seconds, &request, bytes, n);
}
