/* late_test.c: programs for CUDA, whose kernels' code is made when a prepare or a launch first wants it. The log
 * tells how often code was generated and how often the folder had it; tests/runtime/fake_cuda.c stands in for the
 * driver, counts what is loaded, and calls it misuse when that is done in a capture.
 *
 *     late_test TEXO      the command, as worker
 *     late_test threads   threads that race, alone */
#define _XOPEN_SOURCE 700
#include "tests/library/fixture.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/refused.h"

#include <dirent.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { THREADS = 8, TURNS = 12, SIZES = 4 };

static const char *command;
static char folder[] = "/tmp/texo-late-XXXXXX";
static Allocator heap;
static atomic_int generated, found, warnings;

static const char twice[] = "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + x[i] }\n";

static void
note(void *user, texo_log_level level, const char *text)
{
	(void)user;
	atomic_fetch_add(&generated, strstr(text, "generated the code of kernel") != NULL);
	atomic_fetch_add(&found, strstr(text, "the code of kernel") && strstr(text, "was in the cache"));
	atomic_fetch_add(&warnings, level == TEXO_LOG_WARNING);
}

static void
forget(void)
{
	atomic_store(&generated, 0);
	atomic_store(&found, 0);
	atomic_store(&warnings, 0);
}

static int
set_up(void **state)
{
	(void)state;
	fake_clear();
	forget();
	return 0;
}

/* --- a module, and what its launches take --- */

typedef struct {
	texo_ctx *ctx;
	texo_module *module;
	texo_kernel *kernel;
} Whole;

typedef struct {
	int64_t shape[2], stride[2];
	DLTensor x, y;
	texo_arg arg[2];
} Arguments;

static texo_ctx_options
options(const char *cache)
{
	texo_ctx_options o = fixture_options(&heap);
	o.log = note;
	o.cache = cache;
	return o;
}

static texo_status
open_with(Whole *w, const texo_ctx_options *o, const char *text, uint32_t flags)
{
	texo_options to = TEXO_INIT(texo_options);
	to.target = "cuda";
	to.flags = flags;
	*w = (Whole){0};
	assert_int_equal(texo_ctx_create(o, &w->ctx), TEXO_OK);
	texo_status s = texo_compile_string(w->ctx, text, strlen(text), "test.tex", &to, &w->module);
	if (!s)
		s = texo_module_get_kernel(w->module, NULL, &w->kernel);
	return s;
}

static void
open_whole(Whole *w, const char *cache, const char *text)
{
	texo_ctx_options o = options(cache);
	assert_int_equal(open_with(w, &o, text, 0), TEXO_OK);
}

static void
end(Whole *w)
{
	texo_module_destroy(w->module);
	texo_ctx_destroy(w->ctx);
	assert_int_equal(heap.live, 0);
	nothing_alive();
}

/* The fake computes nothing, so that any address will do. */
#define ROOM ((void *)(uintptr_t)0x200000000)

static void
arguments(Arguments *a, int32_t rank, int64_t rows, int64_t n, uint64_t offset)
{
	*a = (Arguments){.shape = {rank == 1 ? n : rows, n}, .stride = {rank == 1 ? 1 : n, 1}};
	a->x = (DLTensor){.data = (void *)(uintptr_t)0x100000, .device = {kDLCUDA, 0}, .ndim = rank, .dtype = {kDLFloat, 32, 1},
	                  .shape = a->shape, .strides = a->stride, .byte_offset = offset};
	a->y = a->x;
	a->y.data = (void *)(uintptr_t)0x90000000;
	a->arg[0].tensor = &a->x;
	a->arg[1].tensor = &a->y;
}

static texo_status
prepare(const Whole *w, int64_t n, uint64_t offset)
{
	Arguments a;
	arguments(&a, 1, 0, n, offset);
	return texo_kernel_prepare(w->kernel, a.arg, 2);
}

static texo_status
launch(const Whole *w, int64_t n, uint64_t offset)
{
	Arguments a;
	arguments(&a, 1, 0, n, offset);
	return texo_kernel_launch(w->kernel, a.arg, 2, NULL, NULL);
}

/* --- what is made when --- */

static void
what_runs_is_made(void **state)
{
	Whole w;
	(void)state;
	open_whole(&w, NULL, twice);
	assert_int_equal(generated, 0);
	assert_int_equal(fake->loads, 0);
	assert_int_equal(prepare(&w, 1 << 20, 0), TEXO_OK);
	assert_int_equal(generated, 1);
	assert_int_equal(fake->loads, 1);
	fake->capturing = 1;
	for (int k = 0; k < 3; k++)
		assert_int_equal(launch(&w, (1 << 20) - 8 * k, 0), TEXO_OK);
	fake->capturing = 0;
	assert_int_equal(prepare(&w, 1 << 20, 0), TEXO_OK);
	assert_int_equal(generated, 1);
	assert_int_equal(launch(&w, (1 << 20) - 1, 4), TEXO_OK); /* a launch makes what was not prepared */
	assert_int_equal(generated, 2);
	assert_int_equal(launch(&w, (1 << 20) - 3, 8), TEXO_OK);
	assert_int_equal(prepare(&w, 0, 0), TEXO_OK); /* no task */
	assert_int_equal(generated, 2);
	assert_int_equal(fake->loads, 2);
	assert_int_equal(fake->launches, 5);
	end(&w);
}

/* In an artefact that is made at once. */
static unsigned
codes_of(const char *text)
{
	static const char word[] = ".entry ";
	const char *bytes;
	size_t size;
	unsigned n = 0;
	Whole w;
	open_whole(&w, NULL, text);
	assert_int_equal(texo_module_emit(w.module, "image", (const void **)&bytes, &size), TEXO_OK);
	for (size_t at = 0; at + sizeof word <= size; at++)
		n += memcmp(bytes + at, word, sizeof word - 1) == 0;
	end(&w);
	return n;
}

/* Kernels that differ in names and sizes alone are made once and loaded once, and each has its own arguments. One that
 * is another is another. */
static void
equal_kernels_are_one(void **state)
{
	static const char text[] = "graph steps(x: f32[N], v: f32[K], u: f32[M]) -> (y: f32[N], z: f32[K], w: f32[M])\n"
	                           "{ y[i] = x[i] + x[i]\n  z[i] = v[i] * v[i]\n  w[j] = u[j] + u[j] }\n";
	enum { KINDS = 3 };
	Arguments a[KINDS];
	texo_arg arg[2 * KINDS];
	Whole w;
	(void)state;
	for (int k = 0; k < KINDS; k++) {
		arguments(&a[k], 1, 0, 1000 << k, 0);
		a[k].y.data = (void *)(uintptr_t)(0x90000000 + 0x100000 * (k + 1));
		arg[k].tensor = &a[k].x;
		arg[KINDS + k].tensor = &a[k].y;
		arg[k].scalar = arg[KINDS + k].scalar = NULL;
	}
	open_whole(&w, NULL, text);
	assert_int_equal(texo_kernel_prepare(w.kernel, arg, 2 * KINDS), TEXO_OK);
	assert_int_equal(generated, 2);
	assert_int_equal(fake->loads, 2);
	if (texo_kernel_launch(w.kernel, arg, 2 * KINDS, NULL, NULL))
		fail_msg("%s", texo_last_error());
	assert_int_equal(fake->launches, KINDS);
	assert_int_equal(fake->loads, 2);
	end(&w);
	assert_int_equal(codes_of(text), codes_of(twice) + codes_of("graph s(v: f32[N]) -> (z: f32[N]) { z[i] = v[i] * v[i] }\n"));
}

/* Kernels of one code that follow one another have one launch, which hands over what each of them has; where one of them is
 * not aligned, each has its own. */
static void
sets_are_one_launch(void **state)
{
	static const char text[] = "graph steps(x: f32[N], u: f32[M], v: f32[K]) -> (y: f32[N], w: f32[M], z: f32[K])\n"
	                           "{ y[i] = x[i] + x[i]\n  w[j] = u[j] + u[j]\n  z[i] = v[i] + v[i] }\n";
	enum { SETS = 3 };
	Arguments a[SETS];
	texo_arg arg[2 * SETS];
	Whole w;
	(void)state;
	for (int k = 0; k < SETS; k++) {
		arguments(&a[k], 1, 0, 1000 << k, 0);
		a[k].y.data = (void *)(uintptr_t)(0x90000000 + 0x100000 * (k + 1));
		arg[k].tensor = &a[k].x;
		arg[SETS + k].tensor = &a[k].y;
		arg[k].scalar = arg[SETS + k].scalar = NULL;
	}
	open_whole(&w, NULL, text);
	assert_int_equal(texo_kernel_launch(w.kernel, arg, 2 * SETS, NULL, NULL), TEXO_OK);
	assert_int_equal(generated, 1);
	assert_int_equal(fake->launches, 1);
	a[1].shape[0]--;
	assert_int_equal(texo_kernel_launch(w.kernel, arg, 2 * SETS, NULL, NULL), TEXO_OK);
	assert_int_equal(generated, 3);
	assert_int_equal(fake->launches, 1 + SETS);
	end(&w);
}

/* Each size is one form; over all of them no more is made than is loaded. */
static void
rows_of_several_sizes(void **state)
{
	static const int64_t n[] = {64, 100, 1000, 4096, 4096, 4100, 100000, 64};
	Whole w;
	(void)state;
	open_whole(&w, NULL, softmax_text);
	for (unsigned k = 0; k < sizeof n / sizeof *n; k++) {
		Arguments a;
		int before = generated;
		arguments(&a, 2, 3, n[k], 0);
		assert_int_equal(texo_kernel_prepare(w.kernel, a.arg, 2), TEXO_OK);
		assert_true(generated <= before + 1 && generated == fake->loads);
		fake->capturing = 1;
		fake->launches = 0;
		if (texo_kernel_launch(w.kernel, a.arg, 2, ROOM, NULL))
			fail_msg("%s", texo_last_error());
		fake->capturing = 0;
		assert_int_equal(fake->launches, 1);
	}
	assert_true(generated > 1);
	end(&w);
}

/* The text is the one that an artefact would have that is made at once. */
static void
the_same_code(void **state)
{
	const void *bytes;
	size_t n;
	Whole w;
	(void)state;
	open_whole(&w, NULL, twice);
	assert_int_equal(texo_module_emit(w.module, "image", &bytes, &n), TEXO_OK);
	for (int64_t size = 1000; size < 1003; size++) {
		fake->text = NULL;
		assert_int_equal(prepare(&w, size, 0), TEXO_OK);
		bool have = !fake->text;
		for (size_t at = 0; !have && at + strlen(fake->text) < n; at++)
			have = memcmp((const char *)bytes + at, fake->text, strlen(fake->text) + 1) == 0;
		assert_true(have);
	}
	assert_true(fake->loads > 1);
	end(&w);
}

/* --- captures --- */

static void
a_capture_makes_nothing(void **state)
{
	static const char words[] = "the stream is being captured, and code that this launch needs is not loaded";
	Arguments a;
	Whole w;
	(void)state;
	open_whole(&w, NULL, twice);
	fake->capturing = 1;
	REFUSED(launch(&w, 1000, 0), TEXO_INVALID, words);
	assert_int_equal(fake->launches, 0);
	assert_int_equal(fake->cleared, 0); /* nothing is on the stream */
	fake->capturing = 0;
	fake->fail_at = fake->calls + 2; /* after the context's: another stream is captured, and this one may not be asked */
	fake->fail_with = 906;
	REFUSED(launch(&w, 1000, 0), TEXO_INVALID, words);
	fake->fail_at = fake->sticky = 0;
	assert_int_equal(generated, 0);
	assert_int_equal(launch(&w, 1000, 0), TEXO_OK);
	arguments(&a, 1, 0, 1000, 0);
	a.stride[0] = 3; /* so that the runtime's own copies are wanted */
	size_t bytes;
	assert_int_equal(texo_kernel_workspace(w.kernel, a.arg, 2, &bytes), TEXO_OK);
	if (bytes) {
		fake->capturing = 1;
		REFUSED(texo_kernel_launch(w.kernel, a.arg, 2, ROOM, NULL), TEXO_INVALID, words);
		fake->capturing = 0;
	}
	end(&w);
}

/* --- threads --- */

static Whole shared;
static pthread_barrier_t together;

static void *
launch_all(void *arg)
{
	unsigned turn = (unsigned)(uintptr_t)arg;
	pthread_barrier_wait(&together);
	for (unsigned k = 0; k < TURNS; k++, turn++)
		if (turn % 3 ? launch(&shared, 1000 + turn % SIZES, 0) : prepare(&shared, 1000 + turn % SIZES, 0))
			return (void *)(uintptr_t)1;
	return NULL;
}

static void
threads_race(void **state)
{
	pthread_t thread[THREADS];
	int makings, loads;
	(void)state;
	open_whole(&shared, NULL, twice);
	for (int64_t n = 1000; n < 1000 + SIZES; n++)
		assert_int_equal(prepare(&shared, n, 0), TEXO_OK);
	makings = generated;
	loads = fake->loads;
	end(&shared);
	set_up(NULL);
	open_whole(&shared, NULL, twice);
	pthread_barrier_init(&together, NULL, THREADS);
	for (uintptr_t k = 0; k < THREADS; k++)
		assert_int_equal(pthread_create(&thread[k], NULL, launch_all, (void *)k), 0);
	for (unsigned k = 0; k < THREADS; k++) {
		void *failed;
		pthread_join(thread[k], &failed);
		assert_null(failed);
	}
	pthread_barrier_destroy(&together);
	assert_true(makings > 1);
	assert_int_equal(generated, makings);
	assert_int_equal(fake->loads, loads);
	end(&shared);
}

/* --- the folder --- */

/* The files in it; *last is one of those that were not counted in `known`. */
static unsigned
entries(char last[512], unsigned known, char name[][512])
{
	unsigned n = 0;
	DIR *d = opendir(folder);
	for (struct dirent *e; (e = readdir(d));) {
		char path[512];
		bool old = e->d_name[0] == '.';
		snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
		n += !old;
		for (unsigned k = 0; k < known; k++)
			old = old || strcmp(name[k], path) == 0;
		if (!old)
			memcpy(last, path, sizeof path);
	}
	closedir(d);
	return n;
}

static bool
is_machine_code(const char *path)
{
	char bytes[1 << 14];
	bool found_it = false;
	FILE *f = fopen(path, "r");
	size_t n = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	for (size_t k = 0; k + 8 < n; k++)
		found_it = found_it || memcmp(bytes + k, "\177ELFfake", 8) == 0;
	return found_it;
}

static void
clear(void)
{
	char one[512];
	while (entries(one, 0, NULL))
		assert_int_equal(unlink(one), 0);
}

/* Prepares for a size in a context of its own; how many kernels were generated. */
static int
generations_of(const char *text, const char *cache, int64_t n, uint32_t flags)
{
	Whole w;
	texo_ctx_options o = options(cache);
	forget();
	assert_int_equal(open_with(&w, &o, text, flags), TEXO_OK);
	assert_int_equal(prepare(&w, n, 0), TEXO_OK);
	end(&w);
	assert_int_equal(generated + found, 1);
	return generated;
}

static int
generations(const char *cache, int64_t n, uint32_t flags)
{
	return generations_of(twice, cache, n, flags);
}

/* A kernel's code is that of programs that have the kernel, and of no other. */
static void
programs_that_share_kernels(void **state)
{
	static const char again[] = "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + x[i] }\n# and a comment\n",
	                  other[] = "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = 3 * x[i] }\n";
	(void)state;
	clear();
	assert_int_equal(generations(folder, 1000, 0), 1);
	assert_int_equal(generations_of(other, folder, 1000, 0), 1);
	assert_int_equal(generations_of(again, folder, 1000, 0), 0);
	assert_int_equal(generations_of(other, folder, 1000, 0), 0);
}

static void
a_folder_that_lacks_a_form(void **state)
{
	char name[4][512], byte;
	(void)state;
	clear();
	assert_int_equal(generations(folder, 1000, 0), 1);
	assert_int_equal(entries(name[0], 0, NULL), 3); /* the tables, and a kernel's text and machine code */
	assert_int_equal(generations(folder, 1000, 0), 0);
	entries(name[0], 0, NULL);
	entries(name[1], 1, name);
	entries(name[2], 2, name);
	assert_int_equal(generations(folder, 1001, 0), 1); /* the tables are there, that kernel is not */
	char kernel[512];
	assert_int_equal(entries(kernel, 3, name), 5);
	if (is_machine_code(kernel)) {
		memcpy(name[3], kernel, sizeof kernel);
		entries(kernel, 4, name);
	}
	assert_false(is_machine_code(kernel));
	assert_int_equal(generations(folder, 1001, 0), 0);
	assert_int_equal(generations(folder, 1000, 0), 0);
	assert_int_equal(warnings, 0);
	FILE *f = fopen(kernel, "r+");
	assert_non_null(f);
	fseek(f, 300, SEEK_SET);
	byte = (char)fgetc(f);
	fseek(f, 300, SEEK_SET);
	fputc(byte ^ 1, f);
	fclose(f);
	assert_int_equal(generations(folder, 1001, 0), 1);
	assert_int_equal(warnings, 1);
	assert_int_equal(generations(folder, 1001, 0), 0);
	assert_int_equal(unlink(kernel), 0);
	assert_int_equal(generations(folder, 1001, TEXO_NO_CACHE), 1);
	assert_int_equal(entries(kernel, 0, NULL), 4);
	assert_int_equal(generations(NULL, 1000, 0), 1);
}

/* --- what goes wrong --- */

static void
memory_ends(void **state)
{
	bool failed = true;
	(void)state;
	clear();
	for (long at = 0; failed; at++) {
		Whole w;
		open_whole(&w, at % 2 ? folder : NULL, twice);
		heap.calls = 0;
		heap.fail_at = at;
		texo_status s = at % 3 ? prepare(&w, 1000, 0) : launch(&w, 1000, 0);
		failed = heap.failed;
		heap.fail_at = -1;
		assert_true(s == TEXO_OK || s == TEXO_NO_MEMORY);
		assert_int_equal(fake->modules, s == TEXO_OK);
		assert_int_equal(launch(&w, 1000, 0), TEXO_OK); /* nothing of it stays */
		assert_int_equal(fake->modules, 1);
		end(&w);
		set_up(NULL);
		clear();
	}
}

/* The driver refuses the text: the words are the driver's, and the next launch tries again. */
static void
the_driver_refuses(void **state)
{
	Whole w;
	(void)state;
	open_whole(&w, NULL, twice);
	fake->log = "ptxas fatal: what is this";
	REFUSED(prepare(&w, 1000, 0), TEXO_BAD_ARTEFACT, "what is this");
	REFUSED(launch(&w, 1000, 0), TEXO_BAD_ARTEFACT, "what is this");
	fake->log = NULL;
	assert_int_equal(launch(&w, 1000, 0), TEXO_OK);
	end(&w);
}

static void
workers(void **state)
{
	char link[600];
	texo_ctx_options o = options(NULL);
	Whole w;
	(void)state;
	snprintf(link, sizeof link, "%s/worker", folder);
	assert_int_equal(symlink(command, link), 0);
	o.isolation = TEXO_WORKER;
	o.worker = link;
	assert_int_equal(open_with(&w, &o, twice, 0), TEXO_OK);
	assert_int_equal(generated, 0);
	assert_int_equal(prepare(&w, 1000, 0), TEXO_OK);
	assert_int_equal(generated, 1);
	assert_int_equal(unlink(link), 0);
	REFUSED(prepare(&w, 1001, 0), TEXO_NO_DEVICE, "can't start");
	assert_int_equal(symlink("/bin/false", link), 0);
	REFUSED(launch(&w, 1001, 0), TEXO_INTERNAL, "ended without an answer");
	assert_int_equal(launch(&w, 1000, 0), TEXO_OK);
	assert_int_equal(unlink(link), 0);
	assert_int_equal(symlink(command, link), 0);
	assert_int_equal(launch(&w, 1001, 0), TEXO_OK);
	assert_int_equal(generated, 2);
	assert_int_equal(unlink(link), 0);
	end(&w);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(what_runs_is_made, set_up),
		cmocka_unit_test_setup(equal_kernels_are_one, set_up),
		cmocka_unit_test_setup(sets_are_one_launch, set_up),
		cmocka_unit_test_setup(rows_of_several_sizes, set_up),
		cmocka_unit_test_setup(the_same_code, set_up),
		cmocka_unit_test_setup(a_capture_makes_nothing, set_up),
		cmocka_unit_test_setup(threads_race, set_up),
		cmocka_unit_test_setup(a_folder_that_lacks_a_form, set_up),
		cmocka_unit_test_setup(programs_that_share_kernels, set_up),
		cmocka_unit_test_setup(memory_ends, set_up),
		cmocka_unit_test_setup(the_driver_refuses, set_up),
		cmocka_unit_test_setup(workers, set_up),
	};
	const struct CMUnitTest race[] = {cmocka_unit_test_setup(threads_race, set_up)};
	command = argc > 1 ? argv[1] : "";
	if (!fake_find() || !mkdtemp(folder))
		return 1;
	int failed = strcmp(command, "threads") == 0 ? cmocka_run_group_tests_name("race", race, NULL, NULL)
	                                             : cmocka_run_group_tests(tests, NULL, NULL);
	clear();
	rmdir(folder);
	return failed;
}
