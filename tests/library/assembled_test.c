/* assembled_test.c: what the driver's assembler makes of kernels, kept in a context's folder: taken by the next process
 * with that driver and device, by no other; what becomes of it when it is damaged, refused, or can't be written.
 * tests/runtime/fake_cuda.c is the driver, whose machine code tells the text it is of. */
#define _XOPEN_SOURCE 700
#include "tests/library/fixture.h"
#include "tests/runtime/fake_driver.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

enum { MOST = 8, SIDE = 256 };

static char folder[] = "/tmp/texo-assembled-XXXXXX";
static Allocator heap;
static int generated, found, warnings;

static const char twice[] = "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + x[i] }\n",
                  thrice[] = "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = 3 * x[i] }\n";

static void
note(void *user, texo_log_level level, const char *text)
{
	(void)user;
	generated += strstr(text, "generated the code of kernel") != NULL;
	found += strstr(text, "the machine code of kernel") != NULL;
	warnings += level == TEXO_LOG_WARNING;
}

/* --- a process --- */

typedef struct {
	const char *text, *cache, *target;
	uint32_t flags;
	int linked_local;
	int version, major; /* of the driver, of the device; 0: the usual */
	int fail_at, fail_with;
	char loaded[1 << 14]; /* the text of the kernel that is loaded at the end, also as machine code */
} Process;

/* The fake computes nothing, so that any address will do. */
static void
prepare(const texo_module *m)
{
	int64_t n = 1000;
	DLTensor x = {.data = (void *)(uintptr_t)0x100000, .device = {kDLCUDA, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &n}, y = x;
	texo_arg arg[2] = {{&x, NULL}, {&y, NULL}};
	texo_kernel *k;
	y.data = (void *)(uintptr_t)0x90000000;
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_OK);
	if (texo_kernel_prepare(k, arg, 2))
		fail_msg("%s", texo_last_error());
}

/* But for what the runtime adds for a link. */
static void
keep_text(Process *p)
{
	static const char word[] = "\n.minnctapersm ";
	snprintf(p->loaded, sizeof p->loaded, "%s", fake->text ? fake->text : "");
	char *at = strstr(p->loaded, word);
	if (at)
		memmove(at, strchr(at + 1, '\n'), strlen(strchr(at + 1, '\n')) + 1);
}

static void
run(Process *p, void (*body)(const texo_module *))
{
	texo_ctx_options o = fixture_options(&heap);
	texo_options to = TEXO_INIT(texo_options);
	texo_ctx *ctx;
	texo_module *m;
	fake_clear();
	fake->version = p->version ? p->version : fake->version;
	fake->major = p->major ? p->major : fake->major;
	fake->linked_local = p->linked_local;
	generated = found = warnings = 0;
	o.log = note;
	o.cache = p->cache;
	to.target = p->target ? p->target : "cuda";
	to.flags = p->flags;
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	assert_int_equal(texo_compile_string(ctx, p->text, strlen(p->text), "test.tex", &to, &m), TEXO_OK);
	fake->fail_at = p->fail_at ? fake->calls + p->fail_at : 0;
	fake->fail_with = p->fail_with;
	body(m);
	assert_int_equal(fake->modules, 1);
	keep_text(p);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	assert_int_equal(heap.live, 0);
	nothing_alive();
}

/* What is loaded is the kernel of its text, whatever the folder has. */
static void
runs_right(Process p)
{
	Process without = {.text = p.text, .target = p.target, .major = p.major};
	Process with = p;
	run(&without, prepare);
	assert_int_equal(fake->assembled, 0); /* in one step */
	run(&with, prepare);
	assert_true(with.loaded[0]);
	assert_string_equal(with.loaded, without.loaded);
}

/* --- the folder --- */

typedef struct {
	char path[MOST][512];
	unsigned n;
} Entries;

/* With `machine` those that have machine code alone. */
static Entries
entries(bool machine)
{
	static char bytes[1 << 16];
	Entries e = {.n = 0};
	DIR *d = opendir(folder);
	for (struct dirent *at; (at = readdir(d));) {
		if (at->d_name[0] == '.')
			continue;
		assert_true(e.n < MOST);
		snprintf(e.path[e.n], sizeof *e.path, "%s/%s", folder, at->d_name);
		FILE *f = fopen(e.path[e.n], "r");
		size_t n = fread(bytes, 1, sizeof bytes - 1, f);
		bool is_machine = false;
		fclose(f);
		for (size_t k = 0; k + 8 < n; k++)
			is_machine = is_machine || memcmp(bytes + k, "\177ELFfake", 8) == 0;
		e.n += is_machine || !machine;
	}
	closedir(d);
	return e;
}

static int
clear(void **state)
{
	Entries e = entries(false);
	(void)state;
	while (e.n)
		assert_int_equal(unlink(e.path[--e.n]), 0);
	return 0;
}

static void
flip(const char *path, long at)
{
	FILE *f = fopen(path, "r+");
	assert_non_null(f);
	fseek(f, at, SEEK_SET);
	int byte = fgetc(f);
	fseek(f, at, SEEK_SET);
	fputc(byte ^ 1, f);
	fclose(f);
}

/* --- tests --- */

static void
the_next_process_has_it(void **state)
{
	(void)state;
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(generated == 1 && fake->assembled == 1 && found == 0);
	assert_int_equal(entries(false).n, 3); /* tables, text, machine code */
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(generated == 0 && fake->assembled == 0 && found == 1);
	runs_right((Process){.text = thrice, .cache = folder}); /* another kernel of that name */
	assert_true(generated == 1 && fake->assembled == 1);
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(generated == 0 && fake->assembled == 0);
	runs_right((Process){.text = twice, .cache = folder, .flags = TEXO_NO_CACHE});
	assert_true(generated == 1 && fake->assembled == 0);
	assert_int_equal(entries(true).n, 2);
	assert_int_equal(warnings, 0);
}

/* Drivers and devices have their own; the text is for all of them. */
static void
another_driver_assembles(void **state)
{
	static const struct {
		int version, major;
	} row[] = {{13000, 9}, {13010, 9}, {12080, 9}, {13000, 8}, {13000, 10}};
	(void)state;
	for (unsigned turn = 0; turn < 2; turn++)
		for (unsigned k = 0; k < sizeof row / sizeof *row; k++) {
			runs_right((Process){.text = twice, .cache = folder, .target = "cuda:sm_80", .version = row[k].version, .major = row[k].major});
			assert_int_equal(generated, k == 0 && turn == 0);
			assert_int_equal(fake->assembled, turn == 0);
			assert_int_equal(entries(true).n, turn ? sizeof row / sizeof *row : k + 1);
		}
	assert_int_equal(warnings, 0);
}

static void
damage(void **state)
{
	(void)state;
	runs_right((Process){.text = twice, .cache = folder});
	Entries e = entries(true);
	assert_int_equal(e.n, 1);
	FILE *f = fopen(e.path[0], "r");
	fseek(f, 0, SEEK_END);
	long bytes = ftell(f);
	fclose(f);
	for (long at = 0; at < bytes; at += 173) {
		flip(e.path[0], at);
		runs_right((Process){.text = twice, .cache = folder});
		assert_true(generated == 0 && fake->assembled == 1 && warnings == 1);
		runs_right((Process){.text = twice, .cache = folder}); /* which was written anew */
		assert_true(fake->assembled == 0 && warnings == 0);
	}
	assert_int_equal(truncate(e.path[0], bytes / 2), 0);
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(fake->assembled == 1 && warnings == 1);
	runs_right((Process){.text = thrice, .cache = folder});
	Entries both = entries(true);
	assert_int_equal(both.n, 2);
	const char *other = both.path[strcmp(both.path[0], e.path[0]) == 0];
	assert_int_equal(rename(other, e.path[0]), 0); /* whole, of another kernel */
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(fake->assembled == 1 && warnings == 1);
}

/* What is worse when it is linked is linked once. */
static void
worse_code(void **state)
{
	(void)state;
	for (int turn = 0; turn < 3; turn++) {
		runs_right((Process){.text = twice, .cache = folder, .linked_local = 8});
		assert_true(generated == (turn == 0) && fake->assembled == (turn == 0) && found == 0 && warnings == 0);
		assert_int_equal(entries(true).n, 0);
		assert_int_equal(entries(false).n, 3);
	}
}

/* A driver that refuses what is kept gets the text. */
static void
refusals(void **state)
{
	enum { LOAD = 2 }; /* the first is the context's */
	(void)state;
	runs_right((Process){.text = twice, .cache = folder});
	runs_right((Process){.text = twice, .cache = folder, .fail_at = LOAD, .fail_with = 209});
	assert_string_equal(fake->failed, "cuModuleLoadDataEx");
	assert_true(found == 1 && fake->assembled == 0 && warnings == 0);
	assert_int_equal(entries(true).n, 1);
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(found == 1 && fake->assembled == 0);
}

/* Where nothing can be written, each process assembles. */
static void
no_place(void **state)
{
	struct rlimit before, none;
	char file[600];
	(void)state;
	snprintf(file, sizeof file, "%s/.file", folder);
	FILE *f = fopen(file, "w");
	fclose(f);
	for (int k = 0; k < 2; k++) {
		runs_right((Process){.text = twice, .cache = file});
		assert_true(generated == 1 && fake->assembled == 1 && warnings > 0);
	}
	assert_int_equal(unlink(file), 0);
	runs_right((Process){.text = twice, .cache = folder});
	assert_int_equal(unlink(entries(true).path[0]), 0);
	signal(SIGXFSZ, SIG_IGN);
	getrlimit(RLIMIT_FSIZE, &before);
	none = before;
	none.rlim_cur = 100; /* as a full disk is */
	for (int k = 0; k < 2; k++) {
		setrlimit(RLIMIT_FSIZE, &none);
		Process p = {.text = twice, .cache = folder};
		run(&p, prepare);
		setrlimit(RLIMIT_FSIZE, &before);
		assert_true(generated == 0 && fake->assembled == 1 && warnings == 1);
		assert_int_equal(entries(false).n, 2);
	}
	runs_right((Process){.text = twice, .cache = folder});
	assert_true(fake->assembled == 1 && warnings == 0);
}

static void
prepare_product(const texo_module *m)
{
	int64_t shape[2] = {SIDE, SIDE};
	DLTensor t[3];
	texo_arg arg[3];
	texo_kernel *k;
	for (int n = 0; n < 3; n++) {
		t[n] = (DLTensor){.data = (void *)(uintptr_t)(0x100000u << (4 * n)), .device = {kDLCUDA, 0}, .ndim = 2, .dtype = {kDLBfloat, 16, 1}, .shape = shape};
		arg[n] = (texo_arg){&t[n], NULL};
	}
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_OK);
	assert_int_equal(texo_kernel_prepare(k, arg, 3), TEXO_OK);
}

/* The driver's linker forgets what groups of threads hand over. */
static void
registers_that_are_handed_over(void **state)
{
	static const char product[] =
		"@fp(fast) graph product(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y[m, n] = sum[k](x[m, k] * w[k, n]) }\n";
	(void)state;
	for (int turn = 0; turn < 2; turn++) {
		Process p = {.text = product, .cache = folder};
		run(&p, prepare_product);
		assert_non_null(strstr(p.loaded, "setmaxnreg"));
		assert_int_equal(fake->assembled, 0);
		assert_int_equal(generated, turn == 0);
		assert_int_equal(entries(true).n, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(the_next_process_has_it, clear), cmocka_unit_test_setup(another_driver_assembles, clear),
		cmocka_unit_test_setup(damage, clear), cmocka_unit_test_setup(refusals, clear), cmocka_unit_test_setup(worse_code, clear),
		cmocka_unit_test_setup(no_place, clear), cmocka_unit_test_setup(registers_that_are_handed_over, clear),
	};
	if (!fake_find() || !mkdtemp(folder))
		return 1;
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	clear(NULL);
	rmdir(folder);
	return failed;
}
