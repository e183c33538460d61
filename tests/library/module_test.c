/* module_test.c: compile, launch, diagnostics, forms; and that nothing of the caller's state is touched. */
#include "tests/library/fixture.h"

#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static Allocator heap;
static texo_ctx *ctx;

static int
setup(void **state)
{
	(void)state;
	texo_ctx_options o = fixture_options(&heap);
	return texo_ctx_create(&o, &ctx) != TEXO_OK;
}

static int
teardown(void **state)
{
	(void)state;
	texo_ctx_destroy(ctx);
	assert_int_equal(heap.live, 0);
	return 0;
}

/* --- kernels --- */

static void
compiles_and_runs(void **state)
{
	(void)state;
	float x[5 * 37], y[5 * 37];
	texo_module *m = fixture_compile(ctx, softmax_text);
	assert_int_equal(texo_module_diagnostic_count(m), 0);
	fixture_fill(x, 5 * 37);
	assert_int_equal(fixture_launch(m, x, y, 5, 37), TEXO_OK);
	fixture_check_softmax(x, y, 5, 37);
	assert_int_equal(fixture_launch(m, x, y, 1, 1), TEXO_OK);
	assert_true(y[0] == 1);
	texo_module_destroy(m);
}

static void
has_a_kernel_for_each_graph(void **state)
{
	(void)state;
	static const char text[] = "graph twice(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 2 * x[i, j] }\n"
	                           "graph thrice(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 3 * x[i, j] }\n";
	texo_module *m = fixture_compile(ctx, text);
	texo_kernel *first, *last, *other;
	const char *json;
	float x[2] = {1, 2}, y[2];
	assert_int_equal(texo_module_get_kernel(m, "twice", &first), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, "thrice", &last), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, NULL, &other), TEXO_OK);
	assert_ptr_equal(last, other);
	assert_ptr_not_equal(first, last);
	assert_int_equal(texo_kernel_get_signature(first, &json), TEXO_OK);
	assert_non_null(strstr(json, "\"graph\":\"twice\""));
	assert_int_equal(fixture_launch(m, x, y, 1, 2), TEXO_OK);
	assert_true(y[0] == 3 && y[1] == 6);
	assert_int_equal(texo_module_get_kernel(m, "nothing", &other), TEXO_NOT_FOUND);
	assert_null(other);
	texo_module_destroy(m);
}

static void
outlives_its_context(void **state)
{
	(void)state;
	Allocator own;
	texo_ctx_options o = fixture_options(&own);
	texo_ctx *short_lived;
	float x[6], y[6];
	assert_int_equal(texo_ctx_create(&o, &short_lived), TEXO_OK);
	texo_module *m = fixture_compile(short_lived, softmax_text);
	texo_ctx_destroy(short_lived);
	fixture_fill(x, 6);
	assert_int_equal(fixture_launch(m, x, y, 2, 3), TEXO_OK);
	fixture_check_softmax(x, y, 2, 3);
	texo_module_destroy(m);
	assert_int_equal(own.live, 0);
}

static void
takes_options(void **state)
{
	(void)state;
	const char *statics[] = {"M=4"};
	texo_options o = TEXO_INIT(texo_options);
	o.target = "cpu:x86-64-v3";
	o.fp = "strict";
	o.fuse = "off";
	o.statics = statics;
	o.nstatics = 1;
	texo_module *m;
	float x[12], y[12];
	assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, &o, &m), TEXO_OK);
	fixture_fill(x, 12);
	assert_int_equal(fixture_launch(m, x, y, 3, 4), TEXO_OK);
	fixture_check_softmax(x, y, 3, 4);
	assert_int_equal(fixture_launch(m, x, y, 4, 3), TEXO_INVALID);
	assert_non_null(strstr(texo_last_error(), "argument x: axis 1 has 3 elements, 4 are expected"));
	texo_module_destroy(m);
}

static unsigned
kernels_in(const char *fuse)
{
	texo_options o = TEXO_INIT(texo_options);
	texo_module *m;
	const void *tir;
	size_t n;
	unsigned found = 0;
	o.fuse = fuse;
	assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, &o, &m), TEXO_OK);
	assert_int_equal(texo_module_emit(m, "tir", &tir, &n), TEXO_OK);
	for (const char *at = tir; (at = strstr(at, "kernel ")) != NULL; at++)
		found += at == (const char *)tir || at[-1] == '\n';
	texo_module_destroy(m);
	return found;
}

static void
fuses(void **state)
{
	(void)state;
	assert_int_equal(kernels_in(NULL), 1);
	assert_int_equal(kernels_in("all"), 1);
	assert_int_equal(kernels_in("off"), 4);
	assert_in_range(kernels_in("elementwise"), 2, 4);
}

static void
compiles_a_text_without_graphs(void **state)
{
	(void)state;
	texo_module *m = fixture_compile(ctx, "fn twice(x) = 2 * x\n");
	texo_kernel *k;
	const void *bytes;
	size_t n;
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_NOT_FOUND);
	assert_int_equal(texo_module_emit(m, "asm", &bytes, &n), TEXO_NOT_FOUND);
	assert_int_equal(texo_module_emit(m, "tg", &bytes, &n), TEXO_OK);
	assert_int_equal(n, 0);
	texo_module_destroy(m);
}

static void
run_in_turn(void *user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg)
{
	*(uint32_t *)user += n;
	while (n-- > 0)
		body(arg, n);
}

static void
uses_the_hosts_threads(void **state)
{
	(void)state;
	enum { ROWS = 4096, COLS = 64 };
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	uint32_t parts = 0;
	texo_ctx *own;
	float *x = malloc(sizeof *x * ROWS * COLS), *y = malloc(sizeof *y * ROWS * COLS);
	o.threads = 4;
	o.parallel_for = run_in_turn;
	o.parallel_user = &parts;
	assert_int_equal(texo_ctx_create(&o, &own), TEXO_OK);
	texo_module *m = fixture_compile(own, softmax_text);
	fixture_fill(x, ROWS * COLS);
	assert_int_equal(fixture_launch(m, x, y, ROWS, COLS), TEXO_OK);
	fixture_check_softmax(x, y, ROWS, COLS);
	assert_in_range(parts, 4, 1000);
	texo_module_destroy(m);
	texo_ctx_destroy(own);
	free(x);
	free(y);
	o.threads = 1000000;
	assert_int_equal(texo_ctx_create(&o, &own), TEXO_INVALID);
	assert_null(own);
	assert_non_null(strstr(texo_last_error(), "options: 1000000 threads"));
}

/* --- diagnostics --- */

static void
reports_errors(void **state)
{
	(void)state;
	static const char text[] = "graph g(x: f32[N]) -> (y: f32[N]) {\n  y[i] = x[i] + bais[i]\n}\n";
	texo_module *m = NULL;
	texo_kernel *k = NULL;
	texo_diagnostic d = TEXO_INIT(texo_diagnostic);
	const void *bytes;
	size_t n;
	assert_int_equal(texo_compile_string(ctx, text, sizeof text - 1, "a.tex", NULL, &m), TEXO_COMPILE_ERROR);
	assert_non_null(m);
	assert_int_equal(texo_module_diagnostic_count(m), 1);
	assert_int_equal(texo_module_get_diagnostic(m, 0, &d), TEXO_OK);
	assert_int_equal(d.severity, TEXO_SEVERITY_ERROR);
	assert_string_equal(d.code, "E0202");
	assert_string_equal(d.file, "a.tex");
	assert_int_equal(d.line, 2);
	assert_int_equal(d.column, 17);
	assert_int_equal(d.end_line, 2);
	assert_int_equal(d.end_column, 21);
	assert_string_equal(d.message, "`bais` is not defined here");
	assert_non_null(strstr(d.rendered, "error[E0202]: `bais` is not defined here\n  --> a.tex:2:17\n"));
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_COMPILE_ERROR);
	assert_null(k);
	assert_int_equal(texo_module_emit(m, "tokens", &bytes, &n), TEXO_OK);
	assert_int_equal(texo_module_emit(m, "tg", &bytes, &n), TEXO_COMPILE_ERROR);
	texo_module_destroy(m);
}

static void
lists_every_error_apart(void **state)
{
	(void)state;
	char text[4096] = "graph g(x: f32[N]) -> (y: f32[N]) {\n";
	for (int k = 0; k < 30; k++)
		snprintf(text + strlen(text), 64, "  t%d[i] = nothing%d[i]\n", k, k);
	strcat(text, "  y[i] = x[i]\n}\n");
	texo_module *m;
	texo_diagnostic d = TEXO_INIT(texo_diagnostic);
	assert_int_equal(texo_compile_string(ctx, text, strlen(text), NULL, NULL, &m), TEXO_COMPILE_ERROR);
	assert_int_equal(texo_module_diagnostic_count(m), 20);
	for (unsigned k = 0; k < 20; k++) {
		char want[64];
		assert_int_equal(texo_module_get_diagnostic(m, k, &d), TEXO_OK);
		assert_int_equal(d.line, k + 2);
		assert_string_equal(d.file, "<string>");
		snprintf(want, sizeof want, "error[%s]: `nothing%u`", d.code, k);
		assert_int_equal(strncmp(d.rendered, want, strlen(want)), 0);
		assert_null(strstr(d.rendered, "stopped after"));
	}
	texo_module_destroy(m);
}

static void
warns(void **state)
{
	(void)state;
	static const char text[] = "graph g(x: f32[N], z: f32[N]) -> (y: f32[N]) { t[i] = z[i] + x[i]; y[i] = x[i] }\n";
	texo_options o = TEXO_INIT(texo_options);
	texo_diagnostic d = TEXO_INIT(texo_diagnostic);
	texo_module *m = fixture_compile(ctx, text);
	assert_int_equal(texo_module_diagnostic_count(m), 1);
	assert_int_equal(texo_module_get_diagnostic(m, 0, &d), TEXO_OK);
	assert_int_equal(d.severity, TEXO_SEVERITY_WARNING);
	texo_module_destroy(m);
	o.flags = TEXO_WERROR;
	assert_int_equal(texo_compile_string(ctx, text, sizeof text - 1, NULL, &o, &m), TEXO_COMPILE_ERROR);
	assert_int_equal(texo_module_diagnostic_count(m), 1);
	texo_module_destroy(m);
}

/* --- forms --- */

static void
emits_forms(void **state)
{
	(void)state;
	static const struct {
		const char *kind, *has;
	} form[] = {{"tokens", "graph"}, {"ast", "rows"}, {"tg", "graph rows"}, {"dot", "digraph"}, {"plan", "rows"},
	            {"tir", "kernel"}, {"llvm", "define"}, {"asm", ".text"}, {"image", ""}, {"obj", "\177ELF"},
	            {"header", "int rows("}, {"manifest", "\"rows\""}};
	texo_module *m = fixture_compile(ctx, softmax_text);
	for (unsigned k = 0; k < sizeof form / sizeof *form; k++) {
		const void *bytes, *again;
		size_t n, same;
		assert_int_equal(texo_module_emit(m, form[k].kind, &bytes, &n), TEXO_OK);
		assert_true(n > 0 && ((const char *)bytes)[n] == 0);
		assert_non_null(strstr(bytes, form[k].has));
		assert_int_equal(texo_module_emit(m, form[k].kind, &again, &same), TEXO_OK);
		assert_ptr_equal(bytes, again);
		assert_int_equal(n, same);
	}
	texo_module_destroy(m);
}

static void
image_is_an_artefact(void **state)
{
	(void)state;
	texo_module *m = fixture_compile(ctx, softmax_text);
	const void *bytes;
	size_t n;
	texo_rt *rt;
	texo_program *p;
	texo_kernel *k;
	assert_int_equal(texo_module_emit(m, "image", &bytes, &n), TEXO_OK);
	assert_int_equal(texo_rt_create(NULL, &rt), TEXO_OK);
	assert_int_equal(texo_rt_load(rt, bytes, n, &p), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(p, "rows", &k), TEXO_OK);
	texo_program_destroy(p);
	texo_rt_destroy(rt);
	texo_module_destroy(m);
}

/* --- files --- */

static void
write_file(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void
compiles_files(void **state)
{
	(void)state;
	char folder[] = "/tmp/texo-library-XXXXXX", main_path[64], used[64];
	assert_non_null(mkdtemp(folder));
	snprintf(main_path, sizeof main_path, "%s/main.tex", folder);
	snprintf(used, sizeof used, "%s/used.tex", folder);
	write_file(main_path, "use \"used.tex\"\ngraph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = scaled(x[i, j]) }\n");
	float x[1] = {1}, y[1];
	texo_module *m;
	for (int factor = 2; factor < 4; factor++) { /* a used file that changed is seen */
		char text[64];
		snprintf(text, sizeof text, "fn scaled(x) = %d * x\n", factor);
		write_file(used, text);
		assert_int_equal(texo_compile_file(ctx, main_path, NULL, &m), TEXO_OK);
		assert_int_equal(fixture_launch(m, x, y, 1, 1), TEXO_OK);
		assert_true(y[0] == (float)factor);
		texo_module_destroy(m);
	}
	texo_options o = TEXO_INIT(texo_options);
	o.flags = TEXO_NO_FILES;
	assert_int_equal(texo_compile_file(ctx, main_path, &o, &m), TEXO_COMPILE_ERROR);
	texo_module_destroy(m);
	unlink(used);
	assert_int_equal(texo_compile_file(ctx, main_path, NULL, &m), TEXO_COMPILE_ERROR);
	texo_module_destroy(m);
	unlink(main_path);
	assert_int_equal(texo_compile_file(ctx, main_path, NULL, &m), TEXO_IO);
	assert_null(m);
	assert_non_null(strstr(texo_last_error(), "No such file"));
	assert_int_equal(texo_compile_file(ctx, folder, NULL, &m), TEXO_IO);
	rmdir(folder);
}

/* --- small stacks --- */

static char deep_text[64 * 1024];

static void *
compile_deep(void *arg)
{
	texo_module *m = NULL;
	(void)arg;
	texo_status s = texo_compile_string(ctx, deep_text, strlen(deep_text), NULL, NULL, &m);
	texo_module_destroy(m);
	s = s ? s : texo_compile_string(ctx, deep_text, SIZE_MAX, NULL, NULL, &m);
	return s == TEXO_LIMIT && strstr(texo_last_error(), "len is") ? NULL : deep_text;
}

static void
needs_little_stack(void **state)
{
	(void)state;
	pthread_attr_t attr;
	pthread_t thread;
	void *failed;
	strcpy(deep_text, "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i]");
	for (int k = 0; k < 900; k++)
		strcat(deep_text, " + x[i] * x[i]");
	strcat(deep_text, " }\n");
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	assert_int_equal(pthread_create(&thread, &attr, compile_deep, NULL), 0);
	pthread_join(thread, &failed);
	pthread_attr_destroy(&attr);
	assert_null(failed);
}

/* What is said on the other stack is heard here. */
static void *
compile_wrong(void *arg)
{
	texo_options o = TEXO_INIT(texo_options);
	texo_module *m = NULL;
	(void)arg;
	o.target = "cpu:z80";
	texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, &o, &m);
	return s == TEXO_INVALID && strstr(texo_last_error(), "options: target is 'cpu:z80'") ? NULL : deep_text;
}

static void
hears_errors_of_the_other_stack(void **state)
{
	(void)state;
	pthread_attr_t attr;
	pthread_t thread;
	void *failed;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 64 * 1024);
	assert_int_equal(pthread_create(&thread, &attr, compile_wrong, NULL), 0);
	pthread_join(thread, &failed);
	pthread_attr_destroy(&attr);
	assert_null(failed);
}

/* --- the caller's state --- */

static void
keeps_the_callers_state(void **state)
{
	(void)state;
	static const char text[] = "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + 0.1 * 0.7 + 1.5e-3 }\n";
	const void *want, *got;
	size_t n, m;
	texo_options o = TEXO_INIT(texo_options);
	o.flags = TEXO_NO_CACHE;
	texo_module *plain = fixture_compile(ctx, text), *odd;
	assert_int_equal(texo_module_emit(plain, "llvm", &want, &n), TEXO_OK);
	assert_non_null(setlocale(LC_ALL, "C.UTF-8"));
	fesetround(FE_UPWARD);
	assert_int_equal(texo_compile_string(ctx, text, sizeof text - 1, "test.tex", &o, &odd), TEXO_OK);
	assert_int_equal(texo_module_emit(odd, "llvm", &got, &m), TEXO_OK);
	assert_int_equal(fegetround(), FE_UPWARD);
	fesetround(FE_TONEAREST);
	assert_string_equal(setlocale(LC_ALL, NULL), "C.UTF-8");
	setlocale(LC_ALL, "C");
	assert_int_equal(n, m);
	assert_memory_equal(want, got, n);
	texo_module_destroy(odd);
	texo_module_destroy(plain);
}

/* A child of fork() goes on with the context and the modules that it has. */
static void
works_after_fork(void **state)
{
	(void)state;
	static const char text[] = "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = 4 * x[i, j] }\n";
	texo_module *before = fixture_compile(ctx, softmax_text), *m = NULL;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		float x[2] = {1, 2}, y[2] = {0, 0}, z[2] = {0, 0};
		bool good = texo_compile_string(ctx, text, sizeof text - 1, NULL, NULL, &m) == TEXO_OK &&
		            fixture_launch(m, x, y, 1, 2) == TEXO_OK && fixture_launch(before, x, z, 2, 1) == TEXO_OK;
		_exit(good && y[1] == 8 && z[0] == 1 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	texo_module_destroy(before);
}

typedef struct {
	unsigned lines[4];
	char last[256];
} Log;

static void
take_line(void *user, texo_log_level level, const char *text)
{
	Log *log = user;
	log->lines[level]++;
	snprintf(log->last, sizeof log->last, "%s", text);
}

static void
logs(void **state)
{
	(void)state;
	Log log = {0};
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	o.log = take_line;
	o.log_user = &log;
	texo_ctx *own;
	assert_int_equal(texo_ctx_create(&o, &own), TEXO_OK);
	texo_module *m = fixture_compile(own, "graph g(x: f32[N], z: f32[N]) -> (y: f32[N]) { t[i] = z[i] + x[i]; y[i] = x[i] }\n");
	assert_int_equal(log.lines[TEXO_LOG_WARNING], 1);
	assert_int_equal(log.lines[TEXO_LOG_DETAIL], 1);
	assert_non_null(strstr(log.last, "compiled test.tex in "));
	texo_module_destroy(m);
	texo_ctx_destroy(own);
}

static void
knows_its_version(void **state)
{
	(void)state;
	assert_int_equal(texo_api_version(), TEXO_API_VERSION);
	assert_true(strlen(texo_version()) >= 5);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(compiles_and_runs),
		cmocka_unit_test(has_a_kernel_for_each_graph),
		cmocka_unit_test(outlives_its_context),
		cmocka_unit_test(takes_options),
		cmocka_unit_test(uses_the_hosts_threads),
		cmocka_unit_test(fuses),
		cmocka_unit_test(compiles_a_text_without_graphs),
		cmocka_unit_test(reports_errors),
		cmocka_unit_test(lists_every_error_apart),
		cmocka_unit_test(warns),
		cmocka_unit_test(emits_forms),
		cmocka_unit_test(image_is_an_artefact),
		cmocka_unit_test(compiles_files),
		cmocka_unit_test(needs_little_stack),
		cmocka_unit_test(hears_errors_of_the_other_stack),
		cmocka_unit_test(keeps_the_callers_state),
		cmocka_unit_test(works_after_fork),
		cmocka_unit_test(logs),
		cmocka_unit_test(knows_its_version),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
