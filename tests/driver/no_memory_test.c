/* no_memory_test.c: every allocation of the command made to fail in turn, by the host's table, and the
 * arena's limit set to ever more bytes. Each time the session must end with the exit code for it,
 * write no output file and leave no memory. */
#include "driver/options.h"
#include "driver/session.h"
#include "tests/driver/arena_fixture.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
	int64_t left; /* allocations that still succeed */
	int64_t live;
	bool failed;
} Counted;

static Counted counted;

static bool
refuse(void)
{
	if (counted.left-- > 0)
		return false;
	counted.failed = true;
	return true;
}

static void *
counted_alloc(void *user, size_t n)
{
	(void)user;
	if (refuse())
		return NULL;
	__atomic_fetch_add(&counted.live, 1, __ATOMIC_RELAXED);
	return host_default()->memory.alloc(NULL, n);
}

static void *
counted_resize(void *user, void *p, size_t n)
{
	(void)user;
	if (refuse())
		return NULL;
	if (!p)
		__atomic_fetch_add(&counted.live, 1, __ATOMIC_RELAXED);
	return host_default()->memory.resize(NULL, p, n);
}

static void
counted_release(void *user, void *p)
{
	(void)user;
	if (p)
		__atomic_fetch_sub(&counted.live, 1, __ATOMIC_RELAXED);
	host_default()->memory.release(NULL, p);
}

/* Standard output and error are not the subject. */
static ptrdiff_t
quiet_write(void *user, int fd, const void *p, size_t n)
{
	return fd < 3 ? (ptrdiff_t)n : host_default()->files.write(user, fd, p, n);
}

static const char *
no_env(const char *name)
{
	(void)name;
	return NULL;
}

static char program[] = "/tmp/texo-no-memory-XXXXXX", output[64], save[80];

static void
parse(const char *const *words, Options *o)
{
	int n = 0;
	while (words[n])
		n++;
	assert_true(options_parse(&arena, n, (char *const *)words, no_env, o, &problem_met));
}

static ExitCode
run(SessionFn *command, const Options *o, int64_t allocations, size_t limit)
{
	Host host = *host_default();
	host.memory = (HostMemory){counted_alloc, counted_resize, counted_release, NULL};
	host.files.write = quiet_write;
	counted = (Counted){.left = allocations};
	ExitCode code = session_run(&host, o, limit, command, NULL, NULL);
	assert_int_equal(counted.live, 0);
	if (code != EXIT_OK)
		assert_int_equal(access(output, F_OK), -1);
	unlink(output);
	return code;
}

/* Fails allocation 0, 1, 2, ... until a run needs fewer. */
static void
fail_each_allocation(SessionFn *command, const Options *o)
{
	int k = 0;
	for (; k < 100000; k++) {
		ExitCode code = run(command, o, k, SESSION_LIMIT);
		if (!counted.failed) {
			assert_int_equal(code, EXIT_OK);
			break;
		}
		assert_int_equal(code, EXIT_IO);
	}
	assert_in_range(k, 2, 99999);
}

/* Raises the limit until a run fits: it meets the limit at places all along the way. */
static void
meet_the_limit(SessionFn *command, const Options *o)
{
	unsigned met = 0;
	ExitCode code = EXIT_INPUT;
	for (size_t limit = 1024; limit < SESSION_LIMIT && code != EXIT_OK; limit += 3000 + limit / 50, met++) {
		code = run(command, o, INT64_MAX, limit);
		assert_true(code == EXIT_OK || code == EXIT_INPUT);
	}
	assert_int_equal(code, EXIT_OK);
	assert_in_range(met, 10, 10000);
}

static void
survives(SessionFn *command, const char *const *words)
{
	Options o;
	parse(words, &o);
	fail_each_allocation(command, &o);
	meet_the_limit(command, &o);
}

#define SURVIVES(command, ...) survives((command), (const char *const[]){"texo", __VA_ARGS__, NULL})

static void
check_survives(void **state)
{
	(void)state;
	SURVIVES(command_check, "check", program);
}

static void
interp_survives(void **state)
{
	(void)state;
	SURVIVES(command_run, "run", program, "--device=interp", "--out", save);
}

static void
cpu_survives(void **state)
{
	(void)state;
	SURVIVES(command_run, "run", program, "--compare=interp", "-j2", "--out", save);
}

static void
explain_survives(void **state)
{
	(void)state;
	SURVIVES(command_explain, "explain", program, "--json");
}

static int
write_program(void **state)
{
	static const char text[] = "use \"std\"\n"
	                           "graph g(x: f32[M, N], ids: i32[T]) -> (y: f32[T, N]) {\n"
	                           "  s[i, j] = softmax[j](x[i, j])\n"
	                           "  y[t, j] = s[ids[t], j]\n"
	                           "}\n";
	(void)state;
	int fd = mkstemp(program);
	snprintf(output, sizeof output, "%s.npy", program);
	snprintf(save, sizeof save, "y=%s", output);
	if (fd < 0 || write(fd, text, sizeof text - 1) != (ssize_t)(sizeof text - 1))
		return -1;
	return close(fd);
}

static int
remove_program(void **state)
{
	(void)state;
	return unlink(program);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(check_survives),
		ARENA_TEST(interp_survives),
		ARENA_TEST(cpu_survives),
		ARENA_TEST(explain_survives),
	};
	return cmocka_run_group_tests(tests, write_program, remove_program);
}
