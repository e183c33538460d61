/* isolation.h: the command's worker (driver/api/worker.h): LLVM runs there, and what ends it does not end the command. It
 * lasts while one file is worked on, and answers all that LLVM is asked for then. */
#ifndef TEXO_DRIVER_ISOLATION_H
#define TEXO_DRIVER_ISOLATION_H

#include "driver/api/objects.h"
#include "driver/api/worker.h"
#include "driver/session.h"

struct Isolation {
	texo_ctx ctx;        /* as much of one as asking needs */
	Worker worker;
	Elsewhere elsewhere;
};

/* With the worker at `path`, by the session's options; none with --in-process. *i must outlive what the session does. */
void isolation_begin(Session *s, Isolation *i, const char *path);
/* There will be a request soon: a worker starts, if none runs. */
void isolation_expect(Session *s);
/* The next request has a worker of its own: what follows is of another file, or there is nothing more. */
void isolation_end(Isolation *i);
/* Where LLVM runs; NULL: in this process. Failures are the session's problem. */
const Elsewhere *isolation_elsewhere(Session *s);
/* The same for code that libtexo's parts make late. */
void isolation_lend(const Session *s, texo_ctx *ctx);
/* What a user can do about a status of a worker; NULL: nothing. */
const char *isolation_help(const Session *s, texo_status status);

#endif
