/* worker_serve.c: a worker's whole life: take a request, put up the walls, compile, answer; then the next one, until the
 * other side closes. A request comes from the library or command of the same release that started us; it is
 * checked all the same. */
#include "driver/worker_serve.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "driver/api/objects.h"
#include "driver/api/worker.h"
#include "driver/worker_confine.h"

enum { SOCKET = 0, FIRST_FILE = 3 };

/* What requests leave for later ones. */
typedef struct {
	texo_ctx ctx; /* as much of one as a compilation needs */
	bool confined;
} Serving;

typedef struct {
	const char *path, *text;
	size_t n, read;
} File;

typedef struct {
	Serving *serving;
	Arena arena; /* of the request and the answer */
	Unwind unwind;
	PartReader message;
	uint64_t seconds, life, mib;
	const char *kind;
	Request request;
	File *file;
	size_t nfile;
	Text form;
	texo_status status;
} Job;

/* --- the files that came along, as the compiler reads files --- */

static File *
file_named(Job *j, const char *path)
{
	for (size_t k = 0; k < j->nfile; k++)
		if (strcmp(j->file[k].path, path) == 0)
			return &j->file[k];
	errno = ENOENT;
	return NULL;
}

static int
file_open(void *user, const char *path, int flags, unsigned mode)
{
	Job *j = user;
	File *f = file_named(j, path);
	(void)flags;
	(void)mode;
	if (!f)
		return -1;
	f->read = 0;
	return FIRST_FILE + (int)(f - j->file);
}

static ptrdiff_t
file_read(void *user, int fd, void *p, size_t n)
{
	File *f = &((Job *)user)->file[fd - FIRST_FILE];
	if (n > f->n - f->read)
		n = f->n - f->read;
	memcpy(p, f->text + f->read, n);
	f->read += n;
	return (ptrdiff_t)n;
}

static int
file_close(void *user, int fd)
{
	(void)user;
	(void)fd;
	return 0;
}

static int
file_stat(void *user, const char *path, int64_t *size, int *regular)
{
	const File *f = file_named(user, path);
	if (!f)
		return -1;
	*size = (int64_t)f->n;
	*regular = 1;
	return 0;
}

/* --- the request --- */

/* In the order of driver/api/worker_ask.c. */
static bool
read_request(Job *j)
{
	Request *r = &j->request;
	j->seconds = part_get_number(&j->message);
	j->life = part_get_number(&j->message);
	j->mib = part_get_number(&j->message);
	j->serving->ctx.compile_bytes = (size_t)part_get_number(&j->message);
	j->kind = part_get_text(&j->message);
	r->target = part_get_text(&j->message);
	r->fuse = part_get_text(&j->message);
	uint64_t fp = part_get_number(&j->message);
	r->fp = fp == FP_STRICT ? FP_STRICT : fp == FP_FAST ? FP_FAST : FP_RELAXED;
	r->flags = (uint32_t)part_get_number(&j->message);
	r->nstatics = part_get_count(&j->message);
	const char **statics = ARENA_ARRAY(&j->arena, const char *, r->nstatics + 1);
	for (uint32_t k = 0; k < r->nstatics; k++)
		statics[k] = part_get_text(&j->message);
	r->statics = statics;
	r->name = part_get_text(&j->message);
	r->text = part_get(&j->message, &r->n);
	j->nfile = part_get_count(&j->message);
	j->file = ARENA_ARRAY(&j->arena, File, j->nfile + 1);
	for (size_t k = 0; k < j->nfile; k++) {
		j->file[k].path = part_get_text(&j->message);
		j->file[k].text = part_get(&j->message, &j->file[k].n);
	}
	return !j->message.bad && j->message.left == 0 && j->seconds > 0 && j->seconds < j->life && j->life <= WORKER_LIFE &&
	       j->mib > 0 && j->mib <= UINT32_MAX;
}

/* --- the work --- */

static texo_status
serve_job(Compilation *x, Text *out)
{
	if (codegen_serve(&x->arena, x->request->text, x->request->n, &x->ctx->machines, out))
		return TEXO_OK;
	return texo_private_fail(TEXO_INTERNAL, "%s: what the worker is asked for makes no sense", x->request->name);
}

static texo_status
compile(Compilation *x)
{
	Job *j = x->user;
	Text form;
	text_init(&form, &x->arena);
	texo_status s = strcmp(j->kind, WORKER_JOB) == 0 ? serve_job(x, &form) : form_write(x, j->kind, &form);
	text_init(&j->form, &j->arena);
	if (!s)
		text_add(&j->form, text_get(&form), form.n);
	return s;
}

static bool
answer(Job *j)
{
	Text out;
	message_begin(&out, &j->arena);
	part_put_number(&out, j->status);
	part_put_text(&out, j->status ? texo_last_error() : "");
	part_put(&out, text_get(&j->form), j->form.n);
	message_end(&out);
	return message_send(SOCKET, out.at, out.n, INT64_MAX);
}

/* The walls stay. */
static bool
is_confined(Job *j)
{
	Serving *s = j->serving;
	s->confined = s->confined || worker_confine((unsigned)j->seconds, (unsigned)j->life, (size_t)j->mib << 20);
	return s->confined;
}

/* False when there is nothing more to do. Without an answer: nothing that we know is there to read it. */
static bool
work(Job *j)
{
	texo_ctx *ctx = &j->serving->ctx;
	ctx->host = *host_default();
	ctx->host.files = (HostFiles){.open = file_open, .read = file_read, .close = file_close, .stat = file_stat, .user = j};
	text_init(&j->form, &j->arena);
	if (message_receive(SOCKET, &j->arena, INT64_MAX, &j->message) != MESSAGE_WHOLE || !read_request(j))
		return false; /* nothing ends the wait but the other side */
	if (is_confined(j)) {
		Compilation x = {.ctx = ctx, .request = &j->request, .user = j};
		j->status = compilation_run(&x, compile, &j->arena);
	} else {
		j->status = texo_private_fail(TEXO_NO_DEVICE, "options: isolation: the system can't confine a worker");
	}
	j->arena.unwind = &j->unwind;
	return answer(j);
}

/* Apart, so that no local lives across the longjmp. */
static bool
guarded(Job *j)
{
	if (setjmp(j->unwind.env) != 0)
		return false; /* out of memory with nothing to answer */
	return work(j);
}

int
worker_serve(void)
{
	Serving serving;
	Job job;
	bool more;
	memset(&serving, 0, sizeof serving);
	codegen_machines_init(&serving.ctx.machines);
	signal(SIGINT, SIG_IGN); /* who is interrupted is the one who asks, and with it we end */
	do {
		memset(&job, 0, sizeof job);
		job.serving = &serving;
		arena_init(&job.arena, &host_default()->memory, &job.unwind);
		more = guarded(&job);
		arena_free(&job.arena);
	} while (more);
	codegen_machines_free(&serving.ctx.machines);
	return 0;
}
