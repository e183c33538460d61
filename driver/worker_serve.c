/* worker_serve.c: a worker's whole life: take a request, put up the walls, compile, answer, end. The
 * request comes from the library of the same release that started us; it is checked all the same. */
#include "driver/worker_serve.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "driver/api/objects.h"
#include "driver/api/worker.h"
#include "driver/worker_confine.h"

enum { SOCKET = 0, FIRST_FILE = 3, PATIENCE = 3600 }; /* seconds for the other side; it ends us before */

typedef struct {
	const char *path, *text;
	size_t n, read;
} File;

typedef struct {
	Arena arena; /* of the request and the answer */
	Unwind unwind;
	MessageReader message;
	uint64_t seconds;
	const char *kind;
	Request request;
	File *file;
	size_t nfile;
	texo_ctx ctx; /* as much of one as a compilation needs */
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

static bool
receive(Job *j)
{
	char head[MESSAGE_HEAD];
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	int64_t deadline = ((int64_t)t.tv_sec + PATIENCE) * 1000000000, n;
	if (!message_receive(SOCKET, head, sizeof head, deadline) || (n = message_length(head)) < 0)
		return false;
	char *body = arena_alloc(&j->arena, (size_t)n + 1);
	j->message = (MessageReader){body, (size_t)n, false};
	return message_receive(SOCKET, body, (size_t)n, deadline);
}

static const char *
get_text(Job *j)
{
	size_t n;
	return message_get(&j->message, &n);
}

/* A number of parts that can't be more than there are bytes. */
static size_t
get_count(Job *j)
{
	uint64_t n = message_get_number(&j->message);
	if (n > j->message.left)
		j->message.bad = true;
	return j->message.bad ? 0 : (size_t)n;
}

/* In the order of driver/api/worker_ask.c. */
static bool
read_request(Job *j)
{
	Request *r = &j->request;
	j->seconds = message_get_number(&j->message);
	j->ctx.compile_bytes = (size_t)message_get_number(&j->message);
	j->kind = get_text(j);
	r->target = get_text(j);
	r->fuse = get_text(j);
	uint64_t fp = message_get_number(&j->message);
	r->fp = fp == FP_STRICT ? FP_STRICT : fp == FP_FAST ? FP_FAST : FP_RELAXED;
	r->flags = (uint32_t)message_get_number(&j->message);
	r->nstatics = (uint32_t)get_count(j);
	const char **statics = ARENA_ARRAY(&j->arena, const char *, r->nstatics + 1);
	for (uint32_t k = 0; k < r->nstatics; k++)
		statics[k] = get_text(j);
	r->statics = statics;
	r->name = get_text(j);
	r->text = message_get(&j->message, &r->n);
	j->nfile = get_count(j);
	j->file = ARENA_ARRAY(&j->arena, File, j->nfile + 1);
	for (size_t k = 0; k < j->nfile; k++) {
		j->file[k].path = get_text(j);
		j->file[k].text = message_get(&j->message, &j->file[k].n);
	}
	return !j->message.bad && j->message.left == 0 && j->seconds > 0 && j->seconds < PATIENCE;
}

/* --- the work --- */

static texo_status
compile(Compilation *x)
{
	Job *j = x->user;
	Text form;
	text_init(&form, &x->arena);
	texo_status s = form_write(x, j->kind, &form);
	text_init(&j->form, &j->arena);
	if (!s)
		text_add(&j->form, text_get(&form), form.n);
	return s;
}

static void
answer(Job *j)
{
	Text out;
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	message_begin(&out, &j->arena);
	message_put_number(&out, j->status);
	message_put_text(&out, j->status ? texo_last_error() : "");
	message_put(&out, text_get(&j->form), j->form.n);
	message_end(&out);
	message_send(SOCKET, out.at, out.n, ((int64_t)t.tv_sec + PATIENCE) * 1000000000);
}

static void
work(Job *j)
{
	j->ctx.host = *host_default();
	j->ctx.host.files = (HostFiles){.open = file_open, .read = file_read, .close = file_close, .stat = file_stat, .user = j};
	text_init(&j->form, &j->arena);
	if (!receive(j) || !read_request(j))
		return; /* without an answer: nothing that we know is there to read it */
	if (worker_confine((unsigned)j->seconds, (size_t)WORKER_MIB << 20)) {
		Compilation x = {.ctx = &j->ctx, .request = &j->request, .user = j};
		j->status = compilation_run(&x, compile, &j->arena);
	} else {
		j->status = texo_private_fail(TEXO_NO_DEVICE, "options: isolation: the system can't confine a worker");
	}
	j->arena.unwind = &j->unwind;
	answer(j);
}

/* Apart, so that no local lives across the longjmp. */
static int
guarded(Job *j)
{
	if (setjmp(j->unwind.env) != 0)
		return 1; /* out of memory with nothing to answer */
	work(j);
	return 0;
}

int
worker_serve(void)
{
	Job job;
	memset(&job, 0, sizeof job);
	arena_init(&job.arena, &host_default()->memory, &job.unwind);
	return guarded(&job);
}
