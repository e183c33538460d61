/* assembler.c: see assembler.h. Text and code travel in files without a name, so that nothing is left
 * behind whatever happens, and what the assembler notes in the code of how it was called stays the
 * same. It has a worker's time and memory (isolation.h), and no network. */
#define _GNU_SOURCE /* memfd_create, vfork */
#include "driver/assembler.h"
#include "driver/isolation.h"
#include "driver/worker_confine.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { MAX_SAID = 600, CANT_CONFINE = 126, CANT_RUN = 127 };

typedef struct {
	const char *path;
	unsigned seconds; /* for each kernel; 0: there is no limit */
	size_t bytes;
} Assembler;

/* --- where it is --- */

const char *
assembler_find(Arena *a)
{
	for (const char *path = getenv("PATH"); path && *path;) {
		size_t n = strcspn(path, ":");
		const char *file = arena_text(a, "%.*s/ptxas", (int)n, path);
		if (n && access(file, X_OK) == 0)
			return file;
		path += n + (path[n] == ':');
	}
	return NULL;
}

/* --- running it --- */

typedef struct {
	int in, out, said; /* text, code, messages */
} Files;

/* In a process that shares our memory until it is another program: system calls alone. *code tells why it is none. */
static _Noreturn void
become(char *const *argv, const Files *f, unsigned seconds, size_t bytes, volatile int *code)
{
	int exit_code = CANT_CONFINE;
	if (dup2(f->said, 1) >= 0 && dup2(f->said, 2) >= 0 && (!seconds || program_confine(seconds, bytes))) {
		execv(argv[0], argv);
		exit_code = CANT_RUN;
	}
	*code = errno;
	_exit(exit_code);
}

static int64_t
now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Its end; false when it took longer than `seconds` (0: it may), and was ended. */
static bool
wait_for(pid_t child, unsigned seconds, int *status)
{
	int64_t deadline = now_ns() + (int64_t)seconds * 1000000000;
	struct timespec nap = {0, 100000};
	pid_t got;
	while ((got = waitpid(child, status, seconds ? WNOHANG : 0)) != child) {
		if (got < 0 && errno != EINTR)
			return false;
		if (got == 0 && now_ns() > deadline) {
			kill(child, SIGKILL);
			waitpid(child, status, 0);
			return false;
		}
		if (got == 0)
			nanosleep(&nap, NULL);
		nap.tv_nsec = nap.tv_nsec < 2000000 ? nap.tv_nsec * 2 : nap.tv_nsec;
	}
	return true;
}

/* Waits for its end; 0 when it did its work, else why not. */
static const char *
run(Arena *a, const Assembler *x, unsigned kernels, const char *sm, const Files *f)
{
	char *argv[] = {arena_text(a, "%s", x->path), arena_text(a, "-arch=%s", sm), arena_text(a, "-o"),
	                arena_text(a, "/proc/self/fd/%d", f->out), arena_text(a, "/proc/self/fd/%d", f->in), NULL};
	unsigned seconds = x->seconds * kernels;
	volatile int code = 0;
	int status = 0;
	pid_t child = vfork();
	if (child == 0)
		become(argv, f, seconds, x->bytes, &code);
	if (child < 0)
		return arena_text(a, "cannot run %s: %s", x->path, strerror(errno));
	bool ended = wait_for(child, WORKER_PATIENCE * seconds, &status);
	if (ended && WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	if (!ended || (WIFSIGNALED(status) && WTERMSIG(status) == SIGXCPU))
		return arena_text(a, "%s was given %u second%s and needs more; --worker-seconds=N gives N for each kernel", x->path, seconds,
		                  seconds == 1 ? "" : "s");
	if (code && WEXITSTATUS(status) == CANT_CONFINE)
		return arena_text(a, "the system can't limit what %s may do: %s; --in-process runs it without limits", x->path, strerror(code));
	if (code)
		return arena_text(a, "cannot run %s: %s", x->path, strerror(code));
	char said[MAX_SAID + 1] = "";
	ssize_t n = pread(f->said, said, MAX_SAID, 0);
	said[n > 0 ? n : 0] = 0;
	return arena_text(a, "%s can't assemble the code: %s", x->path, said);
}

/* All of the file, in a. */
static const char *
read_code(Arena *a, int fd, const void **bytes, size_t *n)
{
	struct stat st;
	if (fstat(fd, &st) != 0 || st.st_size == 0)
		return "the assembler made no code";
	char *at = arena_alloc(a, (size_t)st.st_size);
	*n = 0;
	while (*n < (size_t)st.st_size) {
		ssize_t got = pread(fd, at + *n, (size_t)st.st_size - *n, (off_t)*n);
		if (got <= 0)
			return "the assembler's code can't be read";
		*n += (size_t)got;
	}
	*bytes = at;
	return NULL;
}

static unsigned
count_kernels(const char *ptx)
{
	unsigned n = 0;
	for (const char *at = ptx; (at = strstr(at, "\n.visible .entry ")); at++)
		n++;
	return n ? n : 1;
}

static const char *
assemble_files(Arena *a, const Assembler *x, const char *ptx, const char *sm, const Files *f, const void **bytes, size_t *n)
{
	size_t left = strlen(ptx);
	unsigned kernels = count_kernels(ptx);
	if (f->in < 0 || f->out < 0 || f->said < 0)
		return arena_text(a, "no room for the code: %s", strerror(errno));
	while (left) {
		ssize_t put = write(f->in, ptx, left);
		if (put < 0 && errno != EINTR)
			return arena_text(a, "no room for the code: %s", strerror(errno));
		ptx += put > 0 ? put : 0;
		left -= put > 0 ? (size_t)put : 0;
	}
	const char *why = run(a, x, kernels, sm, f);
	return why ? why : read_code(a, f->out, bytes, n);
}

static bool
assemble(void *user, Arena *a, const char *ptx, const char *sm, const void **bytes, size_t *n, const char **why)
{
	const Files f = {memfd_create("ptx", 0), memfd_create("code", 0), memfd_create("messages", 0)};
	const int fd[] = {f.in, f.out, f.said};
	*why = assemble_files(a, user, ptx, sm, &f, bytes, n);
	for (unsigned k = 0; k < sizeof fd / sizeof *fd; k++)
		if (fd[k] >= 0)
			close(fd[k]);
	return !*why;
}

/* --- whether it is wanted --- */

bool
assembler_need(Session *s, CodegenOptions *o)
{
	const char *path = assembler_find(&s->arena);
	if (!path) {
		problem(&s->problem, EXIT_DEVICE, "there is no assembler for GPUs: no ptxas on PATH");
		return problem_help(&s->problem, "install the CUDA toolkit, or pip's nvidia-cuda-nvcc, and put its bin on PATH; without it "
		                                 "the GPU's driver assembles what is loaded");
	}
	Assembler *x = ARENA_NEW(&s->arena, Assembler);
	*x = (Assembler){.path = path};
	if (s->isolation) {
		x->seconds = s->isolation->ctx.worker_seconds;
		x->bytes = (size_t)s->isolation->ctx.worker_mib << 20;
	}
	o->assemble = assemble;
	o->user = x;
	return true;
}

const char *
assembler_version(Arena *a, const CodegenOptions *o)
{
	struct stat st;
	const Assembler *x = o->user;
	if (!o->assemble || stat(x->path, &st) != 0)
		return "";
	return arena_text(a, "%s, %lld bytes, %lld.%09ld", x->path, (long long)st.st_size,
	                  (long long)st.st_mtim.tv_sec, st.st_mtim.tv_nsec);
}

bool
assembler_choose(Session *s, bool usual, CodegenOptions *o)
{
	const char *choice = option_value(s->options, OPT_ASSEMBLER);
	if (choice ? strcmp(choice, "ptxas") != 0 : !usual || !assembler_find(&s->arena))
		return true;
	return assembler_need(s, o);
}
