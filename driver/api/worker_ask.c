/* worker_ask.c: a request as a message, and a worker's answer as a status. The files that the program
 * uses travel along, since a worker opens none. */
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
	message_put_number(out, n);
	for (uint32_t k = 1; k < d->files.n; k++) {
		if (d->files.at[k].text == std_text)
			continue;
		message_put_text(out, d->files.at[k].path);
		message_put(out, d->files.at[k].text, d->files.at[k].n);
	}
}

/* The parts that driver/worker_serve.c reads, in its order. */
static void
write_request(Compilation *x, const char *kind, Text *out)
{
	const Request *r = x->request;
	message_begin(out, &x->arena);
	message_put_number(out, x->ctx->worker_seconds);
	message_put_number(out, x->ctx->compile_bytes);
	message_put_text(out, kind);
	message_put_text(out, x->gpu ? arena_text(&x->arena, "cuda:%s", x->cpu) : r->target);
	message_put_text(out, r->fuse);
	message_put_number(out, r->fp);
	message_put_number(out, r->flags);
	message_put_number(out, r->nstatics);
	for (uint32_t k = 0; k < r->nstatics; k++)
		message_put_text(out, r->statics[k]);
	message_put_text(out, r->name);
	message_put(out, r->text, r->n);
	put_files(&x->unit.diags, out);
	message_end(out);
}

static texo_status
without_answer(const Compilation *x, WorkerEnd end, int signal)
{
	const char *name = x->request->name;
	switch (end) {
	case WORKER_LATE:
		return texo_private_fail(TEXO_LIMIT, "%s: the worker was given %u seconds and needs more", name,
		                         x->ctx->worker_seconds);
	case WORKER_OK:
	case WORKER_GARBAGE:
		return texo_private_fail(TEXO_INTERNAL, "%s: the worker's answer makes no sense", name);
	case WORKER_DIED:
		break;
	}
	if (signal == SIGXCPU)
		return without_answer(x, WORKER_LATE, 0);
	if (!signal)
		return texo_private_fail(TEXO_INTERNAL, "%s: the worker ended without an answer", name);
	return texo_private_fail(TEXO_INTERNAL, "%s: the worker ended without an answer (signal %d)", name, signal);
}

texo_status
worker_ask(Compilation *x, const char *kind, const char **bytes, size_t *n)
{
	Text request;
	Worker worker;
	MessageReader answer;
	int signal;
	size_t length;
	write_request(x, kind, &request);
	int code = worker_start(x->ctx->worker, &worker);
	if (code)
		return texo_private_fail(TEXO_NO_DEVICE, "options: worker: can't start %s: %s", x->ctx->worker, strerror(code));
	WorkerEnd end = worker_exchange(&worker, &x->arena, text_get(&request), request.n, x->ctx->worker_seconds, &answer,
	                                &signal);
	if (end != WORKER_OK)
		return without_answer(x, end, signal);
	uint64_t status = message_get_number(&answer);
	const char *why = message_get(&answer, &length);
	*bytes = message_get(&answer, n);
	if (answer.bad || answer.left || status > TEXO_INTERNAL)
		return without_answer(x, WORKER_GARBAGE, 0);
	return status ? texo_private_fail((texo_status)status, "%s", why) : TEXO_OK;
}
