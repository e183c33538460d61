/* kept_test.c: contexts that share a folder of compiled code: what the second one need not compile, what is always
 * compiled, damage, and every allocation of a hit made to fail. */
#define _XOPEN_SOURCE 700
#include "tests/library/fixture.h"
#include "tests/library/process.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 3, COLS = 5 };

static char folder[] = "/tmp/texo-kept-XXXXXX";
static Allocator heap;
static unsigned hits, warnings;

static void
note(void *user, texo_log_level level, const char *text)
{
	(void)user;
	hits += strstr(text, "was in the cache") != NULL;
	warnings += level == TEXO_LOG_WARNING;
}

static texo_ctx *
context(const char *path)
{
	texo_ctx_options o = fixture_options(&heap);
	texo_ctx *ctx;
	o.log = note;
	o.cache = path;
	hits = warnings = 0;
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	return ctx;
}

/* The files in the folder; *one is one of them. */
static unsigned
entries(char one[512])
{
	unsigned n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; (e = readdir(d));)
		if (e->d_name[0] != '.') {
			n++;
			snprintf(one, 512, "%s/%s", folder, e->d_name);
		}
	closedir(d);
	return n;
}

static void
clear(void)
{
	char one[512];
	while (entries(one))
		assert_int_equal(unlink(one), 0);
}

/* Compiles in a context of its own, runs, and says whether code was generated. */
static bool
compiles(const char *path, const char *text, const texo_options *options)
{
	float x[ROWS * COLS], y[ROWS * COLS];
	texo_ctx *ctx = context(path);
	texo_module *m;
	assert_int_equal(texo_compile_string(ctx, text, strlen(text), "test.tex", options, &m), TEXO_OK);
	fixture_fill(x, ROWS * COLS);
	assert_int_equal(fixture_launch(m, x, y, ROWS, COLS), TEXO_OK);
	fixture_check_softmax(x, y, ROWS, COLS);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	assert_int_equal(heap.live, 0);
	return hits == 0;
}

static void
another_context_has_it(void **state)
{
	static const char *const statics[] = {"M=5"};
	texo_options o[6];
	char one[512];
	(void)state;
	clear();
	assert_true(compiles(folder, softmax_text, NULL));
	assert_int_equal(entries(one), 1);
	assert_false(compiles(folder, softmax_text, NULL));
	for (unsigned k = 0; k < 6; k++)
		o[k] = (texo_options)TEXO_INIT(texo_options);
	o[0].fp = "strict";
	o[1].fuse = "off";
	o[2].target = "cpu:x86-64-v2";
	o[3].statics = statics, o[3].nstatics = 1;
	for (unsigned k = 0; k < 4; k++) {
		assert_true(compiles(folder, softmax_text, &o[k]));
		assert_false(compiles(folder, softmax_text, &o[k]));
	}
	o[4].flags = TEXO_NO_CACHE;
	o[5].flags = TEXO_VERIFY; /* asks for the passes */
	assert_true(compiles(folder, softmax_text, &o[4]) && compiles(folder, softmax_text, &o[5]));
	assert_true(compiles(NULL, softmax_text, NULL));
	assert_int_equal(entries(one), 5);
	assert_int_equal(warnings, 0);
}

static void
what_is_damaged_is_made_anew(void **state)
{
	char one[512], byte;
	(void)state;
	clear();
	assert_true(compiles(folder, softmax_text, NULL));
	assert_int_equal(entries(one), 1);
	int fd = open(one, O_RDWR);
	assert_int_equal(pread(fd, &byte, 1, 500), 1);
	byte ^= 1;
	assert_int_equal(pwrite(fd, &byte, 1, 500), 1);
	close(fd);
	assert_true(compiles(folder, softmax_text, NULL));
	assert_int_equal(warnings, 1);
	assert_false(compiles(folder, softmax_text, NULL));
}

static void
a_folder_that_is_no_use(void **state)
{
	texo_ctx_options o = fixture_options(&heap);
	texo_ctx *ctx;
	(void)state;
	assert_true(compiles("/proc/nowhere/texo", softmax_text, NULL));
	assert_int_equal(warnings, 1);
	assert_int_equal(chmod(folder, 0777), 0);
	assert_true(compiles(folder, softmax_text, NULL));
	assert_int_equal(warnings, 2); /* not read, not written */
	assert_int_equal(chmod(folder, 0700), 0);
	o.cache = "";
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_INVALID);
}

/* A worker generates code, and where there is code there is nothing for it to do. */
static texo_status
compiles_without_a_worker(void)
{
	texo_ctx_options o = fixture_options(&heap);
	texo_ctx *ctx;
	texo_module *m;
	o.isolation = TEXO_WORKER;
	o.worker = "/nowhere/texo";
	o.cache = folder;
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), "test.tex", NULL, &m);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	return s;
}

static void
a_hit_needs_no_worker(void **state)
{
	(void)state;
	clear();
	assert_int_equal(compiles_without_a_worker(), TEXO_NO_DEVICE);
	assert_true(compiles(folder, softmax_text, NULL));
	assert_int_equal(compiles_without_a_worker(), TEXO_OK);
}

static void
memory_that_ends_in_a_hit(void **state)
{
	(void)state;
	clear();
	assert_true(compiles(folder, softmax_text, NULL));
	unsigned files = process_open_files();
	bool failed = true;
	for (long at = 0; failed; at++) {
		texo_ctx *ctx = context(folder);
		texo_module *m = NULL;
		heap.calls = 0;
		heap.fail_at = at;
		texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), "test.tex", NULL, &m);
		failed = heap.failed;
		heap.fail_at = -1;
		assert_true(s == TEXO_OK || (s == TEXO_NO_MEMORY && !m));
		assert_true(failed || hits);
		texo_module_destroy(m);
		texo_ctx_destroy(ctx);
		assert_int_equal(heap.live, 0);
		assert_int_equal(process_open_files(), files);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_context_has_it), cmocka_unit_test(what_is_damaged_is_made_anew),
		cmocka_unit_test(a_folder_that_is_no_use), cmocka_unit_test(a_hit_needs_no_worker),
		cmocka_unit_test(memory_that_ends_in_a_hit),
	};
	if (!mkdtemp(folder))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	clear();
	rmdir(folder);
	return failed;
}
