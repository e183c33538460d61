/* main.c: texo. Reads the command line, arranges for signals, runs the command's session, ends with
 * its exit code. */
#define _XOPEN_SOURCE 700 /* sigaltstack */
#include "driver/isolation.h"
#include "driver/output_file.h"
#include "driver/sanitized.h"
#include "driver/session.h"
#include "driver/worker_serve.h"

#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static SessionFn *const command_table[CMD_END] = {
	[CMD_CHECK] = command_check,     [CMD_RUN] = command_run,         [CMD_TEST] = command_test,
	[CMD_EXPLAIN] = command_explain, [CMD_BUILD] = command_build,     [CMD_TARGETS] = command_targets,
	[CMD_DOCTOR] = command_doctor,   [CMD_BENCH] = command_bench,
	[CMD_FMT] = command_fmt,         [CMD_INSPECT] = command_inspect, [CMD_CACHE] = command_cache,
	[CMD_COMPLETION] = command_completion, [CMD_TUNE] = command_tune, [CMD_CALIBRATE] = command_calibrate,
};

/* Only unlink and _exit, which a handler may call. */
static void
interrupted(int sig)
{
	output_abandon(&host_default()->files);
	_exit(sig == SIGINT ? EXIT_INTERRUPTED : 128 + sig);
}

/* LLVM ends the process when it meets memory's end or a bug of its own; and a bug of ours may too. Either
 * is reported as one, and leaves no file. */
static void
crashed(int sig)
{
	static const char text[] = "texo: internal error: the process was ended from inside\n"
	                           "This is a bug of texo, whatever the input. Please report it with the file, the command line "
	                           "and\nthe output of 'texo doctor'.\n";
	(void)sig;
	output_abandon(&host_default()->files);
	_exit(write(2, text, sizeof text - 1) < 0 ? EXIT_IO : EXIT_BUG);
}

/* On a stack of its own, since the usual one may be what ran out. */
static void
arrange_crashes(void)
{
	static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE};
	static char stack[64 * 1024];
	stack_t apart = {.ss_sp = stack, .ss_size = sizeof stack};
	struct sigaction crash = {.sa_handler = crashed, .sa_flags = SA_ONSTACK | SA_RESETHAND};
	if (IS_SANITIZED || sigaltstack(&apart, NULL) != 0)
		return;
	for (unsigned k = 0; k < sizeof fatal / sizeof *fatal; k++)
		sigaction(fatal[k], &crash, NULL);
}

static void
arrange_signals(void)
{
	struct sigaction stop = {.sa_handler = interrupted}, ignore = {.sa_handler = SIG_IGN};
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	sigaction(SIGHUP, &stop, NULL);
	sigaction(SIGPIPE, &ignore, NULL); /* a closed pipe is a failed write */
	sigaction(SIGXFSZ, &ignore, NULL); /* so is the limit of a file's size */
}

/* An output file must not become descriptor 0, 1 or 2. */
static void
hold_standard_descriptors(void)
{
	for (int fd = 0; fd < 3; fd++)
		if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", fd ? O_WRONLY : O_RDONLY) < 0)
			_exit(EXIT_IO);
}

static const char *
read_variable(const char *name)
{
	return getenv(name);
}

typedef struct {
	int argc;
	char **argv;
	Options options;
	Isolation isolation;
} CommandLine;

static ExitCode
help(Session *s, void *arg)
{
	const Options *o = arg;
	if (option_on(o, OPT_VERSION))
		text_printf(&s->out, "texo %s\n", TEXO_VERSION);
	else if (option_on(o, OPT_MAN))
		manual_print(&s->out);
	else
		help_print(o->command, &s->out);
	return EXIT_OK;
}

static ExitCode
not_built(Session *s, void *arg)
{
	const Options *o = arg;
	problem(&s->problem, EXIT_INPUT, "'texo %s' is not built yet", command_name(o->command));
	return session_fail(s);
}

static ExitCode
command(Session *s, void *arg)
{
	CommandLine *line = arg;
	Options *o = &line->options;
	if (!options_parse(&s->arena, line->argc, line->argv, read_variable, o, &s->problem))
		return session_fail(s);
	s->options = o;
	if (option_on(o, OPT_HELP) || option_on(o, OPT_VERSION) || option_on(o, OPT_MAN))
		return help(s, o);
	if (!command_built(o->command))
		return not_built(s, o);
	if (!command_operands(o, &s->problem))
		return session_fail(s);
	if (o->command != CMD_CHECK && o->command != CMD_FMT)
		s->arena.limit = LOWERING_LIMIT;
	isolation_begin(s, &line->isolation, "/proc/self/exe");
	ExitCode code = command_table[o->command](s, NULL);
	return code == EXIT_DEVICE && option_on(o, OPT_SKIP_IF_MISSING) ? EXIT_MISSING : code;
}

static ExitCode
dispatch(Session *s, void *arg)
{
	ExitCode code = command(s, arg);
	session_failure_json(s, code);
	return code;
}

int
main(int argc, char **argv)
{
	CommandLine line = {.argc = argc, .argv = argv};
	if (argc == 2 && strcmp(argv[1], WORKER_WORD) == 0)
		return worker_serve();
	hold_standard_descriptors();
	arrange_signals();
	arrange_crashes();
	ExitCode code = session_run(host_default(), &line.options, SESSION_LIMIT, dispatch, &line, NULL);
	isolation_end(&line.isolation);
	return (int)code;
}
