/* session.h: one piece of work of the command, with memory of its own and an end that is certain:
 * whatever unwinds ends in an exit code and a message, and leaves no output file. */
#ifndef TEXO_DRIVER_SESSION_H
#define TEXO_DRIVER_SESSION_H

#include "driver/options.h"
#include "ir/diag.h"

typedef struct Isolation Isolation;

typedef struct {
	const Host *host;
	const Options *options;
	Isolation *isolation; /* NULL: LLVM runs in this process */
	Arena arena;  /* the program and what is small; bounded */
	Arena data;   /* tensors */
	Unwind unwind;
	Problem problem;
	Text out;     /* for standard output; written when the session ends */
	const char *reported; /* with --json: the diagnostics that session_diags() had, as an object; may be NULL */
	bool failed;          /* session_fail() was called */
	const char *device, *gpu; /* --device=cuda[:N] and what to generate code for there; NULL: the processor */
	const char *subject; /* what messages of limits name, such as the file; may be NULL */
	const char **why;    /* set when the session unwinds; may be NULL */
} Session;

typedef ExitCode SessionFn(Session *s, void *arg);

/* Bytes of a session's arena: for commands that check and for those that generate code too. */
#define SESSION_LIMIT ((size_t)256 << 20)
#define LOWERING_LIMIT ((size_t)2048 << 20)

/* Runs body in a fresh session whose arena is limited to `limit` bytes (0: none), writes its output,
 * removes output files that were not committed and frees its memory. When it unwinds, *why (if not
 * NULL) gets a few words. */
ExitCode session_run(const Host *host, const Options *o, size_t limit, SessionFn *body, void *arg, const char **why);

/* To standard error: always; and unless -q; and only with -v. */
void say_error(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_note(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void say_detail(Session *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Raw text to standard error. */
void say_text(Session *s, const char *text);
/* Reports s->problem and returns its exit code. */
ExitCode session_fail(Session *s);
/* The diagnostics collected, on standard error; with -q errors alone are not enough to print. */
void session_diags(Session *s, const Diags *d);
bool session_colour(const Session *s);
/* With --json, of a command that ends with `code`, not 0, and has printed no object: the diagnostics, and why it ended,
 * as one. */
void session_failure_json(Session *s, ExitCode code);

/* The commands. */
SessionFn command_check, command_run, command_test, command_explain, command_build, command_bench, command_targets,
	command_doctor, command_fmt, command_inspect, command_cache, command_completion, command_tune,
	command_calibrate;

#endif
