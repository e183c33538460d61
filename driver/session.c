/* session.c: see session.h. */
#include "driver/session.h"
#include "driver/diag_entries.h"
#include "driver/output_file.h"
#include "driver/source.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
vsay(Session *s, const char *before, const char *fmt, va_list ap)
{
	char text[2048];
	size_t n = (size_t)snprintf(text, sizeof text, "%s", before);
	int k = vsnprintf(text + n, sizeof text - n - 1, fmt, ap);
	n = k < 0 ? n : n + (size_t)k;
	if (n > sizeof text - 2)
		n = sizeof text - 2;
	text[n++] = '\n';
	write_fully(&s->host->files, 2, text, n);
}

void
say_text(Session *s, const char *text)
{
	write_fully(&s->host->files, 2, text, strlen(text));
}

void
say_error(Session *s, const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	vsay(s, "texo: ", fmt, ap);
	va_end(ap);
}

/* As a diagnostic that has no place. */
__attribute__((format(printf, 2, 3))) static void
say_limit(Session *s, const char *fmt, ...)
{
	char before[32];
	va_list ap;
	snprintf(before, sizeof before, "error[%s]: ", code_info[DIAG_E0990].id);
	va_start(ap, fmt);
	vsay(s, before, fmt, ap);
	va_end(ap);
}

void
say_note(Session *s, const char *fmt, ...)
{
	if (option_on(s->options, OPT_QUIET))
		return;
	va_list ap;
	va_start(ap, fmt);
	vsay(s, "texo: ", fmt, ap);
	va_end(ap);
}

void
say_detail(Session *s, const char *fmt, ...)
{
	if (!option_on(s->options, OPT_VERBOSE))
		return;
	va_list ap;
	va_start(ap, fmt);
	vsay(s, "texo: ", fmt, ap);
	va_end(ap);
}

/* Those before it have been shown, or are no error. */
static void
say_placed(Session *s)
{
	const Diags *d = s->problem.diags;
	Diags last = *d;
	last.list.at = d->list.at + d->list.n - 1;
	last.list.n = 1;
	session_diags(s, &last);
	if (option_on(s->options, OPT_JSON))
		s->reported = diags_json(d, &s->arena);
}

ExitCode
session_fail(Session *s)
{
	if (s->problem.diags) {
		say_placed(s);
		return s->problem.exit;
	}
	s->failed = true;
	say_error(s, "%s", s->problem.text);
	if (s->problem.help)
		say_text(s, arena_text(&s->arena, "  help: %s\n", s->problem.help));
	return s->problem.exit;
}

bool
session_colour(const Session *s)
{
	const char *when = option_value(s->options, OPT_COLOUR), *term = getenv("TERM"), *no = getenv("NO_COLOR");
	if (when && strcmp(when, "auto") != 0)
		return strcmp(when, "always") == 0;
	return isatty(2) && !(no && *no) && !(term && strcmp(term, "dumb") == 0);
}

void
session_diags(Session *s, const Diags *d)
{
	if (d->list.n && option_on(s->options, OPT_JSON))
		s->reported = diags_json(d, &s->arena);
	if (d->list.n == 0 || (option_on(s->options, OPT_QUIET) && d->nerror == 0))
		return;
	say_text(s, diags_render(d, &s->arena, session_colour(s)));
}

void
session_failure_json(Session *s, ExitCode code)
{
	if (code == EXIT_OK || s->out.n || !option_on(s->options, OPT_JSON))
		return;
	Text entries;
	text_init(&entries, &s->arena);
	if (s->reported)
		diag_entries_add(&entries, s->reported);
	if (s->failed)
		diag_entries_plain(&entries, "", s->options->operand.n ? s->options->operand.at[0] : "", s->problem.text,
		                   s->problem.help);
	text_printf(&s->out, "{\"diagnostics\":[%s]}\n", text_get(&entries));
}

/* What an unwinding means to the user. The arena may be full, so only the stack is used. */
static ExitCode
unwound(Session *s)
{
	const char *subject = s->subject ? s->subject : "", *colon = s->subject ? ": " : "";
	output_abandon(&s->host->files);
	if (s->why)
		*s->why = s->unwind.why == UNWIND_LIMIT ? "a limit of the compiler was reached" : "texo ended early";
	switch (s->unwind.why) {
	case UNWIND_LIMIT:
		say_limit(s, "%s%s%s\n   = note: texo explain %s", subject, colon, s->unwind.text, code_info[DIAG_E0990].id);
		return EXIT_INPUT;
	case UNWIND_NO_MEMORY:
		say_error(s, "%s%s%s", subject, colon, s->unwind.text);
		say_text(s, "  help: smaller sizes (name=value, or input files) need less\n");
		return EXIT_IO;
	case UNWIND_NONE:
	case UNWIND_BUG:
		break;
	}
	say_error(s, "%s%sinternal error: %s", subject, colon, s->unwind.text);
	say_text(s, "This is a bug of texo, whatever the input. Please report it with the file, the command line and\n"
	            "the output of 'texo doctor'.\n");
	return EXIT_BUG;
}

static ExitCode
flush(Session *s, ExitCode code)
{
	if (s->out.n == 0 || write_fully(&s->host->files, 1, s->out.at, s->out.n))
		return code;
	say_error(s, "cannot write standard output: %s", strerror(errno));
	return EXIT_IO;
}

/* Apart, so that no local lives across the longjmp. */
static ExitCode
guarded(Session *s, SessionFn *body, void *arg)
{
	if (setjmp(s->unwind.env) == 0)
		return flush(s, body(s, arg));
	return unwound(s);
}

ExitCode
session_run(const Host *host, const Options *o, size_t limit, SessionFn *body, void *arg, const char **why)
{
	Session s = {.host = host, .options = o};
	arena_init(&s.arena, &host->memory, &s.unwind);
	arena_init(&s.data, &host->memory, &s.unwind);
	s.arena.limit = limit;
	s.problem.arena = &s.arena;
	text_init(&s.out, &s.arena);
	s.why = why;
	ExitCode code = guarded(&s, body, arg);
	output_abandon(&host->files);
	arena_free(&s.data);
	arena_free(&s.arena);
	return code;
}
