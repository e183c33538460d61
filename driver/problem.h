/* problem.h: how a part of the command reports that it can't go on: which exit code the process
 * would end with, what is wrong, and the mend. Parts return false with a Problem; only main.c and
 * the command files turn one into output. */
#ifndef TEXO_DRIVER_PROBLEM_H
#define TEXO_DRIVER_PROBLEM_H

#include "ir/arena.h"

/* INTERFACE.md's exit codes. Out of memory on the host is EXIT_IO (the surroundings lack something,
 * neither program nor usage is wrong); a named compiler limit is EXIT_INPUT. */
typedef enum {
	EXIT_OK = 0,
	EXIT_INPUT = 1,
	EXIT_USAGE = 2,
	EXIT_IO = 3,
	EXIT_DEVICE = 4,
	EXIT_DIFFERS = 5,
	EXIT_BUG = 70,
	EXIT_MISSING = 77,
	EXIT_INTERRUPTED = 130
} ExitCode;

typedef struct {
	Arena *arena;
	ExitCode exit;
	const char *text; /* without "texo:" and without a final newline */
	const char *help; /* may be NULL */
	const struct Diags *diags; /* whose last one is this, with its code and place; NULL: it has none */
} Problem;

/* Fills p and returns false, so that `return problem(...)` reads well. */
bool problem(Problem *p, ExitCode e, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Adds the mend. Returns false too. */
bool problem_help(Problem *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
