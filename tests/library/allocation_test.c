/* allocation_test.c: every allocation of every public function made to fail, alone and with all that come
 * after it. Each time: a status, nothing leaked, no file left open, and the context works. */
#include "tests/library/fixture.h"
#include "tests/library/process.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static Allocator heap;
static texo_ctx *ctx;
static texo_module *module; /* made before, for what asks a module */
static const void *image;   /* what the module is as an artefact */
static size_t image_bytes;
static char path[] = "/tmp/texo-memory-XXXXXX";
static const char small_text[] = "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 2 * x[i, j] }\n";
static const char wrong_text[] = "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + bais[i] }\n";

/* --- what is tried; each leaves nothing behind --- */

static texo_status
end(texo_status s, texo_status good, texo_module *m)
{
	if (s != TEXO_OK && s != TEXO_COMPILE_ERROR)
		assert_null(m);
	else
		assert_non_null(m);
	texo_module_destroy(m);
	return s == good ? TEXO_OK : s;
}

static texo_status
makes_a_context(void)
{
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	Allocator ignored;
	texo_ctx *made;
	texo_ctx_options counted = fixture_options(&ignored);
	o.alloc = counted.alloc;
	o.resize = counted.resize;
	o.release = counted.release;
	o.user = &heap;
	texo_status s = texo_ctx_create(&o, &made);
	assert_true(!s == !!made);
	texo_ctx_destroy(made);
	return s;
}

static texo_status
compiles(void)
{
	static const char *const statics[] = {"M=8"};
	texo_options o = TEXO_INIT(texo_options);
	texo_module *m;
	o.flags = TEXO_NO_CACHE;
	o.statics = statics;
	o.nstatics = 1;
	texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, &o, &m);
	return end(s, TEXO_OK, m);
}

/* The cache is empty before each try, so that it is filled here, and then asked. */
static texo_status
caches(void)
{
	texo_module *first = NULL, *second = NULL;
	texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, NULL, &first);
	if (!s)
		s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, NULL, &second);
	texo_module_destroy(first);
	return end(s, TEXO_OK, second);
}

static texo_status
compiles_what_is_wrong(void)
{
	texo_module *m;
	texo_status s = texo_compile_string(ctx, wrong_text, strlen(wrong_text), NULL, NULL, &m);
	return end(s, TEXO_COMPILE_ERROR, m);
}

static texo_status
compiles_a_file(void)
{
	texo_options o = TEXO_INIT(texo_options);
	texo_module *m;
	o.flags = TEXO_NO_CACHE;
	texo_status s = texo_compile_file(ctx, path, &o, &m);
	return end(s, TEXO_OK, m);
}

static const char *kind;

static texo_status
emits(void)
{
	const void *bytes = &bytes;
	size_t n = 1;
	texo_options o = TEXO_INIT(texo_options);
	texo_module *m;
	o.flags = TEXO_NO_CACHE;
	texo_status s = texo_compile_string(ctx, small_text, strlen(small_text), NULL, &o, &m);
	if (s)
		return s;
	s = texo_module_emit(m, kind, &bytes, &n);
	assert_true(s ? !bytes && !n : n > 0);
	texo_module_destroy(m);
	return s;
}

static texo_status
launches(void)
{
	float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
	long before = heap.calls;
	texo_status s = fixture_launch(module, x, y, 2, 3);
	assert_int_equal(heap.calls, before); /* a launch never allocates */
	return s;
}

/* All of the runtime, from an artefact that was made before, with two threads. */
static texo_status
runs_an_artefact(void)
{
	texo_rt_options o = TEXO_INIT(texo_rt_options);
	texo_device device = TEXO_INIT(texo_device);
	texo_fault fault = TEXO_INIT(texo_fault);
	Allocator ignored;
	texo_ctx_options counted = fixture_options(&ignored);
	texo_rt *rt = NULL;
	texo_program *p = NULL;
	texo_kernel *k = NULL;
	const char *json;
	static float x[64 * 512], y[64 * 512];
	_Alignas(64) static char workspace[1 << 16];
	int64_t shape[2] = {64, 512};
	DLTensor tx = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape}, ty = tx;
	texo_arg arg[2] = {{.tensor = &tx}, {.tensor = &ty}};
	size_t need;
	ty.data = y;
	o.alloc = counted.alloc;
	o.resize = counted.resize;
	o.release = counted.release;
	o.user = &heap;
	o.threads = 2;
	texo_status s = texo_rt_create(&o, &rt);
	assert_true(!s == !!rt);
	s = s ? s : texo_rt_get_device(rt, &device);
	s = s ? s : texo_rt_load(rt, image, image_bytes, &p);
	assert_true(!s == !!p);
	s = s ? s : texo_program_get_kernel(p, NULL, &k);
	s = s ? s : texo_kernel_get_signature(k, &json);
	s = s ? s : texo_kernel_workspace(k, arg, 2, &need);
	assert_true(s || need <= sizeof workspace);
	s = s ? s : texo_kernel_prepare(k, arg, 2);
	s = s ? s : texo_kernel_launch(k, arg, 2, workspace, NULL);
	s = s ? s : texo_kernel_status(k, &fault);
	texo_program_destroy(p);
	texo_rt_destroy(rt);
	return s;
}

/* What is wrong with a program, and the forms that it has nevertheless. */
static texo_status
asks_a_module_in_error(void)
{
	texo_diagnostic d = TEXO_INIT(texo_diagnostic);
	texo_module *m;
	texo_kernel *k;
	const void *bytes;
	size_t n;
	texo_status s = texo_compile_string(ctx, wrong_text, strlen(wrong_text), NULL, NULL, &m);
	if (s != TEXO_COMPILE_ERROR)
		return s;
	assert_int_equal(texo_module_diagnostic_count(m), 1);
	assert_int_equal(texo_module_get_diagnostic(m, 0, &d), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_COMPILE_ERROR);
	s = texo_module_emit(m, "tokens", &bytes, &n);
	texo_module_destroy(m);
	return s;
}

/* --- the sweep --- */

static void
works(void)
{
	float x[6] = {1, 2, 3, 4, 5, 6}, y[6];
	texo_module *m = fixture_compile(ctx, small_text);
	assert_int_equal(fixture_launch(m, x, y, 2, 3), TEXO_OK);
	assert_true(y[5] == 12);
	texo_module_destroy(m);
}

/* Returns how many allocations there were. */
static unsigned
sweep(texo_status (*act)(void), bool on, bool with_context)
{
	for (unsigned n = 0; n < 10000; n++) {
		texo_ctx_options o = fixture_options(&heap);
		if (with_context)
			assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
		unsigned files = process_open_files();
		long live = heap.live;
		heap.fail_at = heap.calls + n;
		heap.fail_on = on;
		texo_status s = act();
		heap.fail_at = -1;
		assert_int_equal(process_open_files(), files);
		assert_int_equal(s, heap.failed ? TEXO_NO_MEMORY : TEXO_OK);
		if (s)
			assert_string_equal(texo_last_error(), "out of memory");
		if (act != caches) /* the runtime keeps the handle of a kernel that was handed out, for a while */
			assert_in_range(heap.live - live, 0, 1);
		if (with_context) {
			works();
			texo_ctx_destroy(ctx);
		}
		assert_int_equal(heap.live, 0);
		if (!heap.failed)
			return n;
	}
	fail_msg("no end of allocations");
	return 0;
}

static void
each_fails(texo_status (*act)(void), bool with_context, unsigned least)
{
	unsigned once = sweep(act, false, with_context), on = sweep(act, true, with_context);
	assert_int_equal(once, on);
	assert_in_range(once, least, 10000);
	print_message("%u allocations, each failed twice\n", once);
}

static void create_fails(void **state) { (void)state; each_fails(makes_a_context, false, 2); }
static void compile_fails(void **state) { (void)state; each_fails(compiles, true, 15); }
static void cache_fails(void **state) { (void)state; each_fails(caches, true, 15); }
static void wrong_program_fails(void **state) { (void)state; each_fails(compiles_what_is_wrong, true, 5); }
static void error_fails(void **state) { (void)state; each_fails(asks_a_module_in_error, true, 5); }
static void file_fails(void **state) { (void)state; each_fails(compiles_a_file, true, 15); }

static void
emit_fails(void **state)
{
	static const char *const kinds[] = {"tokens", "ast", "tg", "dot", "plan", "tir", "llvm", "asm", "image", "obj", "header", "manifest"};
	(void)state;
	for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		kind = kinds[k];
		each_fails(emits, true, 15);
	}
}

static void
runtime_fails(void **state)
{
	(void)state;
	texo_ctx *own;
	assert_int_equal(texo_ctx_create(NULL, &own), TEXO_OK);
	module = fixture_compile(own, softmax_text);
	assert_int_equal(texo_module_emit(module, "image", &image, &image_bytes), TEXO_OK);
	each_fails(runs_an_artefact, false, 5);
	texo_module_destroy(module);
	texo_ctx_destroy(own);
}

static void
launch_takes_nothing(void **state)
{
	(void)state;
	texo_ctx_options o = fixture_options(&heap);
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	module = fixture_compile(ctx, softmax_text);
	heap.fail_at = 0;
	heap.fail_on = true;
	assert_int_equal(launches(), TEXO_OK);
	heap.fail_at = -1;
	texo_module_destroy(module);
	texo_ctx_destroy(ctx);
	assert_int_equal(heap.live, 0);
}

/* Few bytes for a compilation: its own status, whatever the place where they ran out. */
static void
limit_is_met(void **state)
{
	(void)state;
	unsigned met = 0;
	for (size_t limit = 1000; limit < 64 << 20; limit += limit / 4) {
		texo_module *m;
		texo_ctx_options o = fixture_options(&heap);
		o.compile_bytes = limit;
		assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
		texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), "big.tex", NULL, &m);
		assert_true(s == TEXO_OK || s == TEXO_LIMIT);
		if (s == TEXO_LIMIT)
			assert_non_null(strstr(texo_last_error(), "big.tex: the memory limit"));
		met += s == TEXO_LIMIT;
		texo_module_destroy(m);
		texo_ctx_destroy(ctx);
		assert_int_equal(heap.live, 0);
	}
	assert_in_range(met, 3, 40);
}

static int
write_program(void **state)
{
	(void)state;
	int fd = mkstemp(path);
	ssize_t n = (ssize_t)strlen(softmax_text);
	return fd < 0 || write(fd, softmax_text, (size_t)n) != n || close(fd) != 0;
}

static int
remove_program(void **state)
{
	(void)state;
	return unlink(path);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(create_fails),
		cmocka_unit_test(compile_fails),
		cmocka_unit_test(cache_fails),
		cmocka_unit_test(wrong_program_fails),
		cmocka_unit_test(file_fails),
		cmocka_unit_test(error_fails),
		cmocka_unit_test(emit_fails),
		cmocka_unit_test(runtime_fails),
		cmocka_unit_test(launch_takes_nothing),
		cmocka_unit_test(limit_is_met),
	};
	return cmocka_run_group_tests(tests, write_program, remove_program);
}
