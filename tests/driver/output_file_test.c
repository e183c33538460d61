/* output_file_test.c: outputs appear whole or not at all, whichever call fails. */
#include "driver/output_file.h"
#include "driver/source.h"
#include "tests/driver/arena_fixture.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { FAIL_NOTHING, FAIL_OPEN, FAIL_WRITE, FAIL_SYNC, FAIL_CLOSE, FAIL_RENAME } FailAt;

typedef struct {
	FailAt at;
	int left; /* the failing call is the one after `left` good ones */
} Faults;

static bool
fails(void *user, FailAt at)
{
	Faults *f = user;
	return f->at == at && f->left-- <= 0;
}

static int
faulty_open(void *user, const char *path, int flags, unsigned mode)
{
	const HostFiles *real = &host_default()->files;
	return fails(user, FAIL_OPEN) ? (errno = EACCES, -1) : real->open(NULL, path, flags, mode);
}

static ptrdiff_t
faulty_write(void *user, int fd, const void *p, size_t n)
{
	const HostFiles *real = &host_default()->files;
	return fails(user, FAIL_WRITE) ? (errno = ENOSPC, -1) : real->write(NULL, fd, p, n > 3 ? 3 : n);
}

static int
faulty_sync(void *user, int fd)
{
	return fails(user, FAIL_SYNC) ? (errno = EIO, -1) : host_default()->files.sync(NULL, fd);
}

static int
faulty_close(void *user, int fd)
{
	int r = host_default()->files.close(NULL, fd);
	return fails(user, FAIL_CLOSE) ? (errno = EDQUOT, -1) : r;
}

static int
faulty_rename(void *user, const char *from, const char *to)
{
	return fails(user, FAIL_RENAME) ? (errno = EXDEV, -1) : host_default()->files.rename(NULL, from, to);
}

static HostFiles
faulty(Faults *f)
{
	HostFiles host = host_default()->files;
	host.open = faulty_open;
	host.write = faulty_write;
	host.sync = faulty_sync;
	host.close = faulty_close;
	host.rename = faulty_rename;
	host.user = f;
	return host;
}

static char dir[] = "/tmp/texo-output-XXXXXX";

static const char *
in_dir(const char *name)
{
	return arena_text(&arena, "%s/%s", dir, name);
}

/* How many entries the directory has. */
static int
entries(void)
{
	const char *list = in_dir("../texo-list");
	char command[256];
	int n = -1;
	snprintf(command, sizeof command, "ls -A %s | wc -l > %s", dir, list);
	if (system(command) == 0) {
		FILE *f = fopen(list, "r");
		if (f && fscanf(f, "%d", &n) != 1)
			n = -1;
		if (f)
			fclose(f);
	}
	unlink(list);
	return n;
}

static void
written_and_renamed(void **state)
{
	(void)state;
	const HostFiles *files = &host_default()->files;
	const char *text;
	size_t n;
	assert_true(output_add(files, in_dir("a"), "hello, world", 12, &problem_met));
	assert_int_equal(access(in_dir("a"), F_OK), -1);
	assert_true(output_commit(files, &problem_met));
	assert_int_equal(entries(), 1);
	assert_true(source_read(files, &arena, in_dir("a"), 1 << 20, &text, &n, &problem_met));
	assert_true(n == 12 && strcmp(text, "hello, world") == 0);
	unlink(in_dir("a"));
}

static void
every_fault(void **state)
{
	(void)state;
	for (FailAt at = FAIL_OPEN; at <= FAIL_RENAME; at++) {
		Faults f = {at, at == FAIL_WRITE ? 2 : 0};
		HostFiles host = faulty(&f);
		bool ok = output_add(&host, in_dir("a"), "hello, world", 12, &problem_met) &&
		          output_commit(&host, &problem_met);
		assert_false(ok);
		assert_int_equal(problem_met.exit, EXIT_IO);
		assert_non_null(strstr(problem_met.text, in_dir("a")));
		assert_int_equal(entries(), 0);
	}
}

static void
abandoned(void **state)
{
	(void)state;
	const HostFiles *files = &host_default()->files;
	assert_true(output_add(files, in_dir("a"), "x", 1, &problem_met));
	assert_true(output_add(files, in_dir("b"), "y", 1, &problem_met));
	assert_int_equal(entries(), 2);
	output_abandon(files);
	assert_int_equal(entries(), 0);
	assert_true(output_add(files, in_dir("a"), "x", 1, &problem_met));
	assert_false(output_add(files, in_dir("a"), "x", 1, &problem_met));
	assert_int_equal(problem_met.exit, EXIT_USAGE);
	output_abandon(files);
	assert_int_equal(entries(), 0);
}

static void
not_regular(void **state)
{
	(void)state;
	const HostFiles *files = &host_default()->files;
	assert_false(output_add(files, "/dev/full", "x", 1, &problem_met));
	assert_non_null(strstr(problem_met.text, strerror(ENOSPC)));
	assert_false(output_add(files, dir, "x", 1, &problem_met));
	assert_int_equal(problem_met.exit, EXIT_IO);
	assert_true(output_add(files, "/dev/null", "x", 1, &problem_met));
	assert_false(output_add(files, "/nowhere/at/all", "x", 1, &problem_met));
	assert_true(output_commit(files, &problem_met));
}

static void
reading(void **state)
{
	(void)state;
	const HostFiles *files = &host_default()->files;
	const char *text;
	size_t n;
	assert_false(source_read(files, &arena, dir, 1 << 20, &text, &n, &problem_met));
	assert_int_equal(problem_met.exit, EXIT_IO);
	assert_non_null(strstr(problem_met.text, "directory"));
	assert_false(source_read(files, &arena, in_dir("none"), 1 << 20, &text, &n, &problem_met));
	assert_non_null(strstr(problem_met.text, strerror(ENOENT)));
	assert_true(source_read(files, &arena, "/dev/zero", 100000, &text, &n, &problem_met));
	assert_int_equal(n, 100001);
}

static int
make_dir(void **state)
{
	(void)state;
	return mkdtemp(dir) ? 0 : -1;
}

static int
remove_dir(void **state)
{
	(void)state;
	return rmdir(dir);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		ARENA_TEST(written_and_renamed), ARENA_TEST(every_fault), ARENA_TEST(abandoned),
		ARENA_TEST(not_regular),         ARENA_TEST(reading),
	};
	return cmocka_run_group_tests(tests, make_dir, remove_dir);
}
