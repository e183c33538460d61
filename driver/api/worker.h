/* worker.h: code generation in a process of its own: what LLVM does when it meets memory's end or a bug
 * of its own ends that process and no other. A worker answers one request after another until the other side
 * closes: libtexo's gets one, the command's all of a file.
 *
 * A message is a magic word, the number of bytes that follow, their digest, and the bytes, which are parts
 * (ir/parts.h). What a worker sends is not trusted: every length is checked, and no byte is another than was sent. */
#ifndef TEXO_DRIVER_API_WORKER_H
#define TEXO_DRIVER_API_WORKER_H

#include <sys/types.h>

#include "ir/parts.h"

enum { WORKER_SECONDS = 10, WORKER_MIB = 1024, WORKER_MOST = 256 << 20 }; /* of a message */
enum { WORKER_PATIENCE = 4, WORKER_LIFE = 24 * 3600 }; /* seconds: of the clock for one of a lasting worker's processor;
 * of processor for all its requests, more than for any */
#define WORKER_WORD "--worker" /* the command's only argument when it is one */
/* What a worker makes beside the forms of forms.def: an artefact whose kernels' code is made late, and that code, of a
 * kernel whose tile IR is the request's text and whose symbol is its name. */
#define WORKER_TABLES "tables"
#define WORKER_KERNEL "kernel"
#define WORKER_SERIAL_KERNEL "serial kernel"
/* Or whatever LLVM is asked for: the text is a CodegenJob's bytes, and so is the answer. */
#define WORKER_JOB "job"

/* --- worker_message.c --- */

void message_begin(Text *t, Arena *a);
void message_end(Text *t);

enum { MESSAGE_HEAD = 24 };
typedef enum { MESSAGE_WHOLE, MESSAGE_GARBAGE, MESSAGE_NONE } MessageEnd;
/* All of n bytes; false when the other end has closed, or deadline (of CLOCK_MONOTONIC, in ns) has passed. */
bool message_send(int fd, const void *p, size_t n, int64_t deadline);
/* A message's bytes, in a. NONE: the other end has closed before all of them, or the deadline has passed. GARBAGE: no message,
 * more than WORKER_MOST, or not the bytes that were sent. */
MessageEnd message_receive(int fd, Arena *a, int64_t deadline, PartReader *out);

/* --- worker_exchange.c --- */

typedef struct Worker {
	pid_t pid;     /* 0: none runs */
	int fd;        /* a socket */
	int words;     /* a pipe: what it writes to standard error */
	bool answered; /* a request */
} Worker;

/* How long a request may take: seconds of processor, which a worker counts itself for its first request and the one who
 * asks sets for each later one, and of the clock. */
typedef struct {
	unsigned processor, clock;
} WorkerTime;

typedef struct {
	enum { WORKER_OK, WORKER_LATE, WORKER_DIED, WORKER_GARBAGE } end;
	int signal;      /* what ended one that DIED, or 0 */
	char words[160]; /* the first line of what it wrote to standard error */
} WorkerOutcome;

/* Where the command lies that was installed with this library; "" when that can't be told. */
void worker_default_path(char *out, size_t size);
/* Starts path as a worker, with no other descriptor, argument or variable than it needs. Returns 0, or errno. */
int worker_start(const char *path, Worker *out);
/* Sends the request, reads the answer into the arena. The worker is ended and collected, unless it is OK and kept; also
 * when the arena unwinds. */
WorkerOutcome worker_exchange(Worker *w, Arena *a, const void *request, size_t n, WorkerTime time, bool keep,
                              PartReader *answer);
/* Ends one that runs. */
void worker_end(Worker *w);

#endif
