/* worker.h: code generation in a process of its own: what LLVM does when it meets memory's end or a bug
 * of its own ends that process and no other. A worker gets one request, gives one answer, and ends.
 *
 * A message is a magic word, the number of bytes that follow, and parts, each its length, its bytes and
 * a NUL. What a worker sends is not trusted: every length is checked. */
#ifndef TEXO_DRIVER_API_WORKER_H
#define TEXO_DRIVER_API_WORKER_H

#include <sys/types.h>

#include "ir/text.h"

enum { WORKER_SECONDS = 10, WORKER_MIB = 1024, WORKER_MOST = 256 << 20 }; /* of a message */
#define WORKER_WORD "--worker" /* the command's only argument when it is one */
/* What a worker makes beside the forms of forms.def: an artefact whose kernels' code is made late, and that code, of a
 * kernel whose tile IR is the request's text and whose symbol is its name. */
#define WORKER_TABLES "tables"
#define WORKER_KERNEL "kernel"
#define WORKER_SERIAL_KERNEL "serial kernel"

/* --- worker_message.c --- */

void message_begin(Text *t, Arena *a);
void message_put(Text *t, const void *p, size_t n);
void message_put_text(Text *t, const char *s); /* NULL as "" */
void message_put_number(Text *t, uint64_t v);
void message_end(Text *t);

typedef struct {
	const char *at;
	size_t left;
	bool bad; /* a part that isn't there or has another size; the rest reads as "" and 0 */
} MessageReader;

enum { MESSAGE_HEAD = 16 };
/* The bytes that follow the head, or -1 for no head of ours or more than WORKER_MOST. */
int64_t message_length(const char head[MESSAGE_HEAD]);
/* The next part; a NUL follows it. */
const char *message_get(MessageReader *r, size_t *n);
uint64_t message_get_number(MessageReader *r);
/* All of n bytes; false when the other end has closed, or deadline (of CLOCK_MONOTONIC, in ns) has passed. */
bool message_send(int fd, const void *p, size_t n, int64_t deadline);
bool message_receive(int fd, void *p, size_t n, int64_t deadline);

/* --- worker_exchange.c --- */

typedef enum { WORKER_OK, WORKER_LATE, WORKER_DIED, WORKER_GARBAGE } WorkerEnd;

typedef struct {
	pid_t pid;
	int fd; /* a socket */
} Worker;

/* Where the command lies that was installed with this library; "" when that can't be told. */
void worker_default_path(char *out, size_t size);
/* Starts path as a worker, with no other descriptor, argument or variable than it needs. Returns 0, or errno. */
int worker_start(const char *path, Worker *out);
/* Sends the request (n 0: none), reads the answer into the arena, ends and collects the worker, also when the
 * arena unwinds. *signal is what ended a worker that DIED, or 0. */
WorkerEnd worker_exchange(const Worker *w, Arena *a, const void *request, size_t n, unsigned seconds,
                          MessageReader *answer, int *signal);

#endif
