/* worker_exchange.c: the side that asks. Whatever the worker does, and however this side ends, the socket
 * is closed and the process collected; nothing waits for longer than the deadline. */
#define _GNU_SOURCE /* posix_spawn_file_actions_addclosefrom_np, dladdr */
#include "driver/api/worker.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
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

static int
spawn(const char *path, int fd, pid_t *pid)
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
		code = posix_spawn_file_actions_adddup2(&actions, 1, 2);
	if (!code)
		code = posix_spawn_file_actions_addclosefrom_np(&actions, 3);
	if (!code)
		code = posix_spawn(pid, path, &actions, NULL, argv, envp);
	posix_spawn_file_actions_destroy(&actions);
	return code;
}

int
worker_start(const char *path, Worker *out)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return errno;
	int code = spawn(path, pair[1], &out->pid);
	close(pair[1]);
	out->fd = pair[0];
	if (code)
		close(pair[0]);
	return code;
}

/* Ends the worker if it has not ended, and returns the signal that ended it before, or 0. A process that
 * somebody else has collected is left alone: its number may be another's by now. */
static int
collect(const Worker *w, bool give_time, int64_t deadline)
{
	int status = 0;
	pid_t got = 0;
	close(w->fd);
	while (give_time && (got = waitpid(w->pid, &status, WNOHANG)) == 0) {
		struct timespec now, nap = {0, 200000};
		clock_gettime(CLOCK_MONOTONIC, &now);
		if ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec > deadline)
			break;
		nanosleep(&nap, NULL);
	}
	if (got == 0 && (got = waitpid(w->pid, &status, WNOHANG)) == 0) {
		kill(w->pid, SIGKILL);
		while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
			;
		return 0;
	}
	return got == w->pid && WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

typedef struct {
	const Worker *worker;
	Arena *arena;
	const void *request;
	size_t n;
	int64_t deadline;
	MessageReader *answer;
	Unwind unwind;
} Exchange;

static WorkerEnd
late_or_dead(const Exchange *x)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec >= x->deadline ? WORKER_LATE : WORKER_DIED;
}

static WorkerEnd
converse(Exchange *x)
{
	char head[MESSAGE_HEAD];
	int fd = x->worker->fd;
	if (!message_send(fd, x->request, x->n, x->deadline) || !message_receive(fd, head, sizeof head, x->deadline))
		return late_or_dead(x);
	int64_t n = message_length(head);
	if (n < 0)
		return WORKER_GARBAGE;
	char *body = arena_alloc(x->arena, (size_t)n + 1);
	if (!message_receive(fd, body, (size_t)n, x->deadline))
		return late_or_dead(x);
	*x->answer = (MessageReader){body, (size_t)n, false};
	return WORKER_OK;
}

/* Apart, so that no local lives across the longjmp. */
static WorkerEnd
guarded(Exchange *x, Unwind *outer)
{
	if (setjmp(x->unwind.env)) {
		collect(x->worker, false, 0);
		x->arena->unwind = outer;
		arena_unwind(x->arena, x->unwind.why, "%s", x->unwind.text);
	}
	x->arena->unwind = &x->unwind;
	WorkerEnd end = converse(x);
	x->arena->unwind = outer;
	return end;
}

WorkerEnd
worker_exchange(const Worker *w, Arena *a, const void *request, size_t n, unsigned seconds, MessageReader *answer,
                int *signal)
{
	struct timespec t;
	Exchange x = {.worker = w, .arena = a, .request = request, .n = n, .answer = answer};
	clock_gettime(CLOCK_MONOTONIC, &t);
	x.deadline = (int64_t)t.tv_sec * 1000000000 + t.tv_nsec + (int64_t)seconds * 1000000000;
	WorkerEnd end = guarded(&x, a->unwind);
	*signal = collect(w, end == WORKER_DIED, x.deadline);
	return end;
}
