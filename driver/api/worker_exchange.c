/* worker_exchange.c: the side that asks. Whatever the worker does, and however this side ends, the socket
 * is closed and the process collected; nothing waits for longer than the deadline. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np, dladdr, pipe2, prlimit */
#include "driver/api/worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

void
worker_default_path(char *out, size_t size)
{
	static const char place = 0; /* any address in this library */
	Dl_info info;
	const char *slash = NULL;
	if (dladdr(&place, &info) && info.dli_fname)
		slash = strrchr(info.dli_fname, '/');
	if (!slash || snprintf(out, size, "%.*s/" TEXO_COMMAND_PATH, (int)(slash - info.dli_fname), info.dli_fname) >= (int)size)
		out[0] = 0;
}

static int64_t
now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- start --- */

/* A program that has closed its standard descriptors gets theirs for others. */
static int
above_standard(int *fd)
{
	int above = *fd < 3 ? fcntl(*fd, F_DUPFD_CLOEXEC, 3) : *fd;
	if (above < 0)
		return errno;
	if (above != *fd)
		close(*fd);
	*fd = above;
	return 0;
}

static int
spawn(const char *path, int fd, int words, pid_t *pid)
{
	posix_spawn_file_actions_t actions;
	char word[] = WORKER_WORD, name[] = "texo";
	char *argv[] = {name, word, NULL}, *envp[] = {NULL};
	int code = posix_spawn_file_actions_init(&actions);
	if (code)
		return code;
	code = posix_spawn_file_actions_adddup2(&actions, fd, 0);
	if (!code)
		code = posix_spawn_file_actions_addopen(&actions, 1, "/dev/null", O_WRONLY, 0);
	if (!code)
		code = posix_spawn_file_actions_adddup2(&actions, words, 2);
	if (!code)
		code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (!code)
		code = posix_spawn(pid, path, &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	return code;
}

static int
start(const char *path, int *pair, int *words, Worker *out)
{
	int code = above_standard(&pair[1]);
	if (!code)
		code = above_standard(&words[1]);
	if (!code && fcntl(words[0], F_SETFL, O_NONBLOCK) != 0)
		code = errno;
	return code ? code : spawn(path, pair[1], words[1], &out->pid);
}

int
worker_start(const char *path, Worker *out)
{
	int pair[2], words[2];
	*out = (Worker){.pid = 0};
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	if (pipe2(words, O_CLOEXEC) != 0) {
		int code = errno;
		close(pair[0]);
		close(pair[1]);
		return code;
	}
	int code = start(path, pair, words, out);
	close(pair[1]);
	close(words[1]);
	out->fd = pair[0];
	out->words = words[0];
	if (code) {
		close(pair[0]);
		close(words[0]);
		out->pid = 0;
	}
	return code;
}

/* --- end --- */

/* Ends the worker if it has not ended, and returns the signal that ended it before, or 0. A process that
 * somebody else has collected is left alone: its number may be another's by now. */
static int
collect(Worker *w, bool give_time, int64_t deadline)
{
	int status = 0;
	pid_t got = 0, pid = w->pid;
	close(w->fd);
	w->pid = 0;
	while (give_time && (got = waitpid(pid, &status, WNOHANG)) == 0) {
		struct timespec nap = {0, 200000};
		if (now_ns() > deadline)
			break;
		nanosleep(&nap, NULL);
	}
	if (got == 0 && (got = waitpid(pid, &status, WNOHANG)) == 0) {
		kill(pid, SIGKILL);
		while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
			;
		return 0;
	}
	return got == pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

/* The line is another process's: what could move a terminal's cursor is not passed on. */
static void
take_words(Worker *w, WorkerOutcome *out)
{
	ssize_t n = read(w->words, out->words, sizeof out->words - 1);
	out->words[n > 0 ? n : 0] = 0;
	out->words[strcspn(out->words, "\n")] = 0;
	for (char *c = out->words; *c; c++)
		if (*c < ' ' || *c > '~')
			*c = '?';
	close(w->words);
}

void
worker_end(Worker *w)
{
	if (!w->pid)
		return;
	close(w->words);
	collect(w, false, 0);
}

/* --- one request --- */

typedef struct {
	Worker *worker;
	Arena *arena;
	const void *request;
	size_t n;
	int64_t deadline;
	PartReader *answer;
	Unwind unwind;
} Exchange;

static int
late_or_dead(const Exchange *x)
{
	return now_ns() >= x->deadline ? WORKER_LATE : WORKER_DIED;
}

static int
converse(Exchange *x)
{
	int fd = x->worker->fd;
	if (!message_send(fd, x->request, x->n, x->deadline))
		return late_or_dead(x);
	switch (message_receive(fd, x->arena, x->deadline, x->answer)) {
	case MESSAGE_WHOLE:
		return WORKER_OK;
	case MESSAGE_GARBAGE:
		return WORKER_GARBAGE;
	case MESSAGE_NONE:
		break;
	}
	return late_or_dead(x);
}

/* Apart, so that no local lives across the longjmp. */
static int
guarded(Exchange *x, Unwind *outer)
{
	if (setjmp(x->unwind.env)) {
		worker_end(x->worker);
		x->arena->unwind = outer;
		arena_unwind(x->arena, x->unwind.why, "%s", x->unwind.text);
	}
	x->arena->unwind = &x->unwind;
	int end = converse(x);
	x->arena->unwind = outer;
	return end;
}

/* The seconds are counted from what it has used. It can't undo that: worker_confine takes the call away. */
static bool
allow(const Worker *w, unsigned seconds)
{
	clockid_t clock;
	struct timespec used;
	struct rlimit r;
	if (clock_getcpuclockid(w->pid, &clock) != 0 || clock_gettime(clock, &used) != 0 ||
	    prlimit(w->pid, RLIMIT_CPU, NULL, &r) != 0)
		return false;
	rlim_t most = (rlim_t)used.tv_sec + 1 + seconds;
	r.rlim_cur = most < r.rlim_max ? most : r.rlim_max;
	return prlimit(w->pid, RLIMIT_CPU, &r, NULL) == 0;
}

WorkerOutcome
worker_exchange(Worker *w, Arena *a, const void *request, size_t n, WorkerTime time, bool keep, PartReader *answer)
{
	WorkerOutcome out = {.end = WORKER_DIED};
	Exchange x = {.worker = w, .arena = a, .request = request, .n = n, .answer = answer};
	x.deadline = now_ns() + (int64_t)time.clock * 1000000000;
	if (!w->answered || allow(w, time.processor))
		out.end = guarded(&x, a->unwind);
	w->answered = true;
	if (keep && out.end == WORKER_OK)
		return out;
	out.signal = collect(w, out.end == WORKER_DIED, x.deadline);
	take_words(w, &out);
	return out;
}
