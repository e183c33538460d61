/* isolation_test.c: the command with workers that misbehave in every way: the exit code and the words for it, in time,
 * no output file, no process and no descriptor left. usage: isolation_test TEXO FALSE_WORKER */
#define _DEFAULT_SOURCE /* mkdtemp */
#include "driver/isolation.h"
#include "tests/driver/arena_fixture.h"
#include "tests/library/process.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *texo, *false_worker;
static char folder[] = "/tmp/texo-isolation-XXXXXX", program[64], output[64], save[80];
static char said[8192]; /* on standard error */
static size_t nsaid;

static ptrdiff_t
keep_write(void *user, int fd, const void *p, size_t n)
{
	if (fd >= 3)
		return host_default()->files.write(user, fd, p, n);
	for (size_t k = 0; fd == 2 && k < n && nsaid + 1 < sizeof said; k++)
		said[nsaid++] = ((const char *)p)[k];
	said[nsaid] = 0;
	return (ptrdiff_t)n;
}

static const char *
no_env(const char *name)
{
	(void)name;
	return NULL;
}

typedef struct {
	SessionFn *command;
	Isolation *isolation;
	const char *worker;
} Body;

static ExitCode
body(Session *s, void *arg)
{
	Body *b = arg;
	isolation_begin(s, b->isolation, b->worker);
	return b->command(s, NULL);
}

static ExitCode
run(const char *worker, SessionFn *command, const char *const *words)
{
	Options o;
	Isolation isolation;
	Host host = *host_default();
	int n = 0;
	host.files.write = keep_write;
	memset(&isolation, 0, sizeof isolation);
	nsaid = 0;
	said[0] = 0;
	while (words[n])
		n++;
	assert_true(options_parse(&arena, n, (char *const *)words, no_env, &o, &problem_met));
	Body b = {command, &isolation, worker};
	ExitCode code = session_run(&host, &o, LOWERING_LIMIT, body, &b, NULL);
	isolation_end(&isolation);
	return code;
}

#define RUN(worker, command, ...) run((worker), (command), (const char *const[]){"texo", __VA_ARGS__, NULL})

static void
nothing_is_left(unsigned files)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
	assert_int_equal(process_open_files(), files);
	DIR *d = opendir(folder);
	assert_non_null(d);
	for (const struct dirent *e; (e = readdir(d));)
		if (strncmp(e->d_name, "made", 4) == 0)
			fail_msg("%s was left", e->d_name);
	closedir(d);
}

static void
its_own_works(void **state)
{
	(void)state;
	unsigned files = process_open_files();
	assert_int_equal(RUN(texo, command_run, "run", program, "--device=cpu", "--compare=interp", "--no-cache"), EXIT_OK);
	assert_int_equal(RUN(texo, command_test, "test", program, program, "--device=cpu"), EXIT_OK);
	nothing_is_left(files);
	assert_int_equal(RUN(texo, command_build, "build", program, "-o", output), EXIT_OK);
	assert_int_equal(RUN(texo, command_build, "build", program, "--emit=llvm,asm,ptx", "--target=cuda", "-o", output), EXIT_OK);
	for (unsigned k = 0; k < 3; k++) {
		char path[80];
		snprintf(path, sizeof path, "%s%s", output, (const char *[]){".o", ".h", ""}[k]);
		assert_int_equal(unlink(path), 0);
	}
	nothing_is_left(files);
}

static void
none_can_be_started(void **state)
{
	(void)state;
	unsigned files = process_open_files();
	assert_int_equal(RUN("/nowhere/texo", command_run, "run", program, "--device=cpu", "--no-cache"), EXIT_DEVICE);
	assert_non_null(strstr(said, "can't start /nowhere/texo: No such file"));
	assert_non_null(strstr(said, "help: --in-process"));
	assert_int_equal(RUN("/nowhere/texo", command_run, "run", program, "--device=cpu", "--no-cache", "--in-process"), EXIT_OK);
	assert_int_equal(RUN("/nowhere/texo", command_test, "test", program, "--device=cpu"), EXIT_DEVICE);
	assert_non_null(strstr(said, "test 'two' failed: options: worker: can't start /nowhere/texo: No such file"));
	assert_non_null(strstr(said, "; --in-process"));
	nothing_is_left(files);
}

static const struct {
	const char *act;
	ExitCode exit;
	const char *words, *help;
} acts[] = {
	{"garbage", EXIT_BUG, "the worker's answer makes no sense", "a bug of texo"},
	{"huge", EXIT_BUG, "the worker's answer makes no sense", "a bug of texo"},
	{"parts", EXIT_BUG, "the worker's answer makes no sense", "a bug of texo"},
	{"flood", EXIT_BUG, "the worker's answer makes no sense", "a bug of texo"},
	{"half", EXIT_BUG, "the worker ended without an answer", "a bug of texo"},
	{"leave", EXIT_BUG, "the worker ended without an answer", "a bug of texo"},
	{"crash", EXIT_BUG, "the worker ended without an answer (signal 6): LLVM ERROR: ?[2Jtired", "a bug of texo"},
	{"full", EXIT_INPUT, "the worker was given 1024 MiB and needs more", "--worker-memory"},
	{"burn", EXIT_INPUT, "the worker was given 1 second and needs more", "--worker-seconds"},
	{"hang", EXIT_INPUT, "the worker was given 1 second and needs more", "--worker-seconds"},
	{"deaf", EXIT_INPUT, "the worker was given 1 second and needs more", "--worker-seconds"},
};

static void
has_said(unsigned k)
{
	if (!strstr(said, acts[k].words) || !strstr(said, acts[k].help) || !strstr(said, program))
		fail_msg("%s: %s", acts[k].act, said);
}

static void
misbehaviour(void **state)
{
	(void)state;
	char path[64];
	unsigned files = process_open_files();
	for (unsigned k = 0; k < sizeof acts / sizeof *acts; k++) {
		time_t start = time(NULL);
		snprintf(path, sizeof path, "%s/%s", folder, acts[k].act);
		process_copy_program(false_worker, path);
		assert_int_equal(RUN(path, command_run, "run", program, "--device=cpu", "--no-cache", "--worker-seconds=1", "--out", save),
		                 acts[k].exit);
		has_said(k);
		nothing_is_left(files);
		assert_int_equal(RUN(path, command_build, "build", program, "--target=cpu:x86-64", "--worker-seconds=1", "-o", output),
		                 acts[k].exit);
		has_said(k);
		nothing_is_left(files);
		assert_true(time(NULL) - start <= 40); /* twice four seconds, on a machine that may be busy */
		unlink(path);
	}
}

/* Tests go on, each with a worker of its own after one that died. */
static void
tests_go_on(void **state)
{
	(void)state;
	char path[64];
	unsigned files = process_open_files();
	snprintf(path, sizeof path, "%s/crash", folder);
	process_copy_program(false_worker, path);
	assert_int_equal(RUN(path, command_test, "test", program, "--device=cpu"), EXIT_DIFFERS);
	assert_non_null(strstr(said, "test 'one' failed: "));
	assert_non_null(strstr(said, "test 'two' failed: "));
	nothing_is_left(files);
	unlink(path);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(its_own_works),
		ARENA_TEST(none_can_be_started),
		ARENA_TEST(misbehaviour),
		ARENA_TEST(tests_go_on),
	};
	static const char text[] = "# test: one\n#   x = [1, 2]\n#   expect y = [2, 4]\n\n# test: two\n#   x = [1]\n#   expect y = [2]\n\n"
	                           "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = 2 * x[i] }\n";
	if (argc != 3 || !mkdtemp(folder))
		return 2;
	texo = argv[1];
	false_worker = argv[2];
	snprintf(program, sizeof program, "%s/twice.tex", folder);
	snprintf(output, sizeof output, "%s/made", folder);
	snprintf(save, sizeof save, "y=%s.npy", output);
	int fd = open(program, O_WRONLY | O_CREAT, 0600);
	if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)(sizeof text - 1) || close(fd) != 0)
		return 2;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	unlink(program);
	rmdir(folder);
	return failed;
}
