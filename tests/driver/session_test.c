/* session_test.c: how a session ends: exit codes and words for each kind of unwinding, and outputs. */
#include "driver/output_file.h"
#include "driver/session.h"
#include "tests/driver/arena_fixture.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* What the session wrote to standard output and error. */
typedef struct {
	char text[2][4096];
	size_t n[2];
	bool full; /* standard output takes nothing */
} Written;

static ptrdiff_t
catch_write(void *user, int fd, const void *p, size_t n)
{
	Written *w = user;
	if (fd != 1 && fd != 2)
		return host_default()->files.write(NULL, fd, p, n);
	if (fd == 1 && w->full)
		return errno = ENOSPC, -1;
	if (n > sizeof w->text[0] - 1 - w->n[fd - 1])
		n = sizeof w->text[0] - 1 - w->n[fd - 1];
	memcpy(w->text[fd - 1] + w->n[fd - 1], p, n);
	w->n[fd - 1] += n;
	return (ptrdiff_t)n;
}

static ExitCode
run(SessionFn *body, size_t limit, Written *w, const char **why)
{
	Host host = *host_default();
	Options none = {0};
	host.files.write = catch_write;
	host.files.user = w;
	return session_run(&host, &none, limit, body, NULL, why);
}

static ExitCode
answers(Session *s, void *arg)
{
	(void)arg;
	text_printf(&s->out, "42\n");
	say_note(s, "a note");
	say_detail(s, "a detail");
	return EXIT_OK;
}

static ExitCode
refuses(Session *s, void *arg)
{
	(void)arg;
	problem(&s->problem, EXIT_DEVICE, "no such device");
	problem_help(&s->problem, "buy one");
	return session_fail(s);
}

static ExitCode
breaks(Session *s, void *arg)
{
	(void)arg;
	text_printf(&s->out, "half a result");
	bug(&s->arena, "node %%%d has no body", 7);
}

static ExitCode
grows(Session *s, void *arg)
{
	(void)arg;
	s->subject = "big.tex";
	for (int k = 0; k < 100000; k++)
		arena_alloc(&s->arena, 1000);
	return EXIT_OK;
}

static const char target[] = "/tmp/texo-session-test.npy";

static ExitCode
leaves_a_file(Session *s, void *arg)
{
	(void)arg;
	if (!output_add(&s->host->files, target, "x", 1, &s->problem))
		return session_fail(s);
	bug(&s->data, "after writing");
}

static ExitCode
forgets_a_file(Session *s, void *arg)
{
	(void)arg;
	return output_add(&s->host->files, target, "x", 1, &s->problem) ? EXIT_DIFFERS : EXIT_IO;
}

static void
ordinary_ends(void **state)
{
	(void)state;
	Written w = {0};
	const char *why = NULL;
	assert_int_equal(run(answers, 0, &w, &why), EXIT_OK);
	assert_string_equal(w.text[0], "42\n");
	assert_string_equal(w.text[1], "texo: a note\n");
	assert_null(why);
	w = (Written){0};
	assert_int_equal(run(refuses, 0, &w, &why), EXIT_DEVICE);
	assert_string_equal(w.text[1], "texo: no such device\n  help: buy one\n");
	w = (Written){.full = true};
	assert_int_equal(run(answers, 0, &w, NULL), EXIT_IO);
	assert_non_null(strstr(w.text[1], "cannot write standard output: No space left"));
}

static void
unwindings(void **state)
{
	(void)state;
	Written w = {0};
	const char *why = NULL;
	assert_int_equal(run(breaks, 0, &w, &why), EXIT_BUG);
	assert_non_null(strstr(w.text[1], "internal error: node %7 has no body"));
	assert_non_null(strstr(w.text[1], "report"));
	assert_string_equal(w.text[0], "");
	assert_non_null(why);
	w = (Written){0};
	why = NULL;
	assert_int_equal(run(grows, 1 << 20, &w, &why), EXIT_INPUT);
	assert_non_null(strstr(w.text[1], "error[E0990]: big.tex: the memory limit of 1 MiB was reached"));
	assert_non_null(why);
}

static void
no_file_left(void **state)
{
	(void)state;
	Written w = {0};
	assert_int_equal(run(leaves_a_file, 0, &w, NULL), EXIT_BUG);
	assert_int_equal(access(target, F_OK), -1);
	assert_int_equal(run(forgets_a_file, 0, &w, NULL), EXIT_DIFFERS);
	assert_int_equal(access(target, F_OK), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(ordinary_ends),
		ARENA_TEST(unwindings),
		ARENA_TEST(no_file_left),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
