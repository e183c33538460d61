/* assembler.c: see assembler.h. Text and code travel in files without a name, so that nothing is left
 * behind whatever happens, and what the assembler notes in the code of how it was called stays the
 * same. */
#define _GNU_SOURCE /* memfd_create */
#include "driver/assembler.h"

#include <errno.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { MAX_SAID = 600 };

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

/* Waits for its end; 0 when it did its work, else why not. */
static const char *
run(Arena *a, const char *path, const char *sm, const Files *f)
{
	char *argv[] = {arena_text(a, "%s", path), arena_text(a, "-arch=%s", sm), arena_text(a, "-o"),
	                arena_text(a, "/proc/self/fd/%d", f->out), arena_text(a, "/proc/self/fd/%d", f->in), NULL};
	posix_spawn_file_actions_t actions;
	pid_t child;
	int status;
	if (posix_spawn_file_actions_init(&actions) != 0)
		return "out of memory";
	posix_spawn_file_actions_adddup2(&actions, f->said, 1);
	posix_spawn_file_actions_adddup2(&actions, f->said, 2);
	int code = posix_spawn(&child, path, &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (code)
		return arena_text(a, "cannot run %s: %s", path, strerror(code));
	while (waitpid(child, &status, 0) < 0)
		if (errno != EINTR)
			return arena_text(a, "cannot wait for %s: %s", path, strerror(errno));
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return NULL;
	char said[MAX_SAID + 1] = "";
	ssize_t n = pread(f->said, said, MAX_SAID, 0);
	said[n > 0 ? n : 0] = 0;
	return arena_text(a, "%s can't assemble the code: %s", path, said);
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

static const char *
assemble_files(Arena *a, const char *path, const char *ptx, const char *sm, const Files *f, const void **bytes, size_t *n)
{
	size_t left = strlen(ptx);
	if (f->in < 0 || f->out < 0 || f->said < 0)
		return arena_text(a, "no room for the code: %s", strerror(errno));
	while (left) {
		ssize_t put = write(f->in, ptx, left);
		if (put < 0 && errno != EINTR)
			return arena_text(a, "no room for the code: %s", strerror(errno));
		ptx += put > 0 ? put : 0;
		left -= put > 0 ? (size_t)put : 0;
	}
	const char *why = run(a, path, sm, f);
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
	o->assemble = assemble;
	o->user = arena_text(&s->arena, "%s", path);
	return true;
}

const char *
assembler_version(Arena *a, const CodegenOptions *o)
{
	struct stat st;
	if (!o->assemble || stat(o->user, &st) != 0)
		return "";
	return arena_text(a, "%s, %lld bytes, %lld.%09ld", (const char *)o->user, (long long)st.st_size,
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
