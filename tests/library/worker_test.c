/* worker_test.c: code generated in a worker: the same results, and the walls; and workers that misbehave in
 * every way: a status, in time, and nothing left behind. usage: worker_test TEXO FALSE_WORKER */
#define _DEFAULT_SOURCE /* MAP_ANONYMOUS */
#include "driver/api/worker.h"
#include "driver/worker_confine.h"
#include "tests/library/fixture.h"
#include "tests/library/process.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const char *texo, *false_worker;
static Allocator heap;

static texo_ctx *
context(const char *worker, unsigned seconds)
{
	texo_ctx_options o = fixture_options(&heap);
	texo_ctx *ctx;
	o.isolation = TEXO_WORKER;
	o.worker = worker;
	o.worker_seconds = seconds;
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	return ctx;
}

static void
no_child_is_left(void)
{
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
	assert_int_equal(errno, ECHILD);
}

static void
same_results(void **state)
{
	(void)state;
	static const char *const kinds[] = {"image", "llvm", "asm", "obj", "header"};
	texo_ctx *ctx = context(texo, 0), *plain;
	float x[33], y[33];
	unsigned files = process_open_files();
	assert_int_equal(texo_ctx_create(NULL, &plain), TEXO_OK);
	texo_module *m = fixture_compile(ctx, softmax_text), *own = fixture_compile(plain, softmax_text);
	fixture_fill(x, 33);
	assert_int_equal(fixture_launch(m, x, y, 3, 11), TEXO_OK);
	fixture_check_softmax(x, y, 3, 11);
	for (unsigned k = 0; k < sizeof kinds / sizeof *kinds; k++) {
		const void *a, *b;
		size_t n, p;
		assert_int_equal(texo_module_emit(m, kinds[k], &a, &n), TEXO_OK);
		assert_int_equal(texo_module_emit(own, kinds[k], &b, &p), TEXO_OK);
		assert_int_equal(n, p);
		assert_memory_equal(a, b, n);
	}
	assert_int_equal(process_open_files(), files);
	no_child_is_left();
	texo_module_destroy(own);
	texo_module_destroy(m);
	texo_ctx_destroy(plain);
	texo_ctx_destroy(ctx);
	assert_int_equal(heap.live, 0);
}

static void
write_text(const char *path, const char *text)
{
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	fclose(f);
}

static void
used_files_travel(void **state)
{
	(void)state;
	char folder[] = "/tmp/texo-worker-XXXXXX", path[64], used[64];
	float x[1] = {5}, y[1];
	texo_module *m;
	texo_ctx *ctx = context(texo, 0);
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof path, "%s/main.tex", folder);
	snprintf(used, sizeof used, "%s/used.tex", folder);
	write_text(path, "use \"std\"\nuse \"used.tex\"\n"
	                 "graph g(x: f32[N, M]) -> (y: f32[N, M]) { y[i, j] = relu(thrice(x[i, j])) }\n");
	write_text(used, "fn thrice(x) = 3 * x\n");
	assert_int_equal(texo_compile_file(ctx, path, NULL, &m), TEXO_OK);
	assert_int_equal(fixture_launch(m, x, y, 1, 1), TEXO_OK);
	assert_true(y[0] == 15);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	unlink(used);
	unlink(path);
	rmdir(folder);
}

static void
errors_come_back(void **state)
{
	(void)state;
	texo_options o = TEXO_INIT(texo_options);
	texo_ctx *ctx = context(texo, 0);
	texo_module *m;
	const char wrong[] = "graph g(x: f32[N]) -> (y: f32[N]) { y[i] = z[i] }";
	assert_int_equal(texo_compile_string(ctx, wrong, sizeof wrong - 1, NULL, NULL, &m), TEXO_COMPILE_ERROR);
	assert_int_equal(texo_module_diagnostic_count(m), 1);
	texo_module_destroy(m);
	o.target = "cuda:sm_1";
	assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, &o, &m), TEXO_INVALID);
	texo_ctx_destroy(ctx);
	ctx = context("/nowhere/texo", 0);
	assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, NULL, &m), TEXO_NO_DEVICE);
	assert_non_null(strstr(texo_last_error(), "options: worker: can't start /nowhere/texo: No such file"));
	texo_ctx_destroy(ctx);
	assert_int_equal(heap.live, 0);
}

/* --- the walls --- */

/* Runs in a process that is confined; 0, or the number of the wall that has a hole. */
static int
try_walls(void)
{
	int pair[2];
	size_t big = (size_t)WORKER_MIB << 20;
	if (!worker_confine(5, 6, big))
		return 100;
	char *p = malloc(1 << 20);
	if (!p)
		return 1;
	memset(p, 1, 1 << 20);
	free(p);
	if (open("/etc/passwd", O_RDONLY) >= 0 || errno != EPERM)
		return 2;
	if (open("/tmp/texo-walls", O_WRONLY | O_CREAT, 0600) >= 0)
		return 3;
	if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 || socket(AF_INET, SOCK_STREAM, 0) >= 0)
		return 4;
	if (fork() >= 0)
		return 5;
	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 6;
	void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (page == MAP_FAILED || mprotect(page, 4096, PROT_READ | PROT_EXEC) == 0 || mprotect(page, 4096, PROT_READ) != 0)
		return 7;
	if (mmap(NULL, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
		return 8;
	if (kill(getppid(), 0) == 0 || execl("/bin/true", "true", (char *)NULL) != -1)
		return 9;
	return 0;
}

static void
walls_stand(void **state)
{
	(void)state;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0)
		_exit(try_walls());
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
processor_time_ends(void **state)
{
	(void)state;
	int status = 0;
	pid_t pid = fork();
	if (pid == 0) {
		volatile unsigned n = 0;
		if (!worker_confine(1, 2, (size_t)WORKER_MIB << 20))
			_exit(100);
		while (n < UINT_MAX || n == 0)
			n += 2;
		_exit(1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(WTERMSIG(status), SIGXCPU);
}

/* --- workers that misbehave --- */

static const struct {
	const char *act;
	texo_status status;
	const char *words;
} acts[] = {
	{"garbage", TEXO_INTERNAL, "the worker's answer makes no sense"},
	{"huge", TEXO_INTERNAL, "the worker's answer makes no sense"},
	{"parts", TEXO_INTERNAL, "the worker's answer makes no sense"},
	{"flood", TEXO_INTERNAL, "the worker's answer makes no sense"},
	{"half", TEXO_INTERNAL, "the worker ended without an answer"},
	{"leave", TEXO_INTERNAL, "the worker ended without an answer"},
	{"crash", TEXO_INTERNAL, "the worker ended without an answer (signal 6)"},
	{"hang", TEXO_LIMIT, "the worker was given 1 second and"},
	{"deaf", TEXO_LIMIT, "the worker was given 1 second and"},
};

static void
misbehaviour(void **state)
{
	(void)state;
	char folder[] = "/tmp/texo-false-XXXXXX", path[64];
	assert_non_null(mkdtemp(folder));
	for (unsigned k = 0; k < sizeof acts / sizeof *acts; k++) {
		snprintf(path, sizeof path, "%s/%s", folder, acts[k].act);
		process_copy_program(false_worker, path);
		unsigned files = process_open_files();
		texo_ctx *ctx = context(path, 1);
		texo_module *m;
		time_t start = time(NULL);
		assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), "a.tex", NULL, &m), acts[k].status);
		if (!strstr(texo_last_error(), acts[k].words))
			fail_msg("%s: %s", acts[k].act, texo_last_error());
		assert_null(m);
		assert_true(time(NULL) - start <= 20); /* a second, on a machine that may be busy */
		texo_ctx_destroy(ctx);
		assert_int_equal(heap.live, 0);
		assert_int_equal(process_open_files(), files);
		no_child_is_left();
		unlink(path);
	}
	rmdir(folder);
}

/* --- memory --- */

static void
allocations_fail(void **state)
{
	(void)state;
	unsigned n = 0;
	for (bool failed = true; failed; n++) {
		texo_module *m;
		texo_ctx *ctx = context(texo, 0);
		unsigned files = process_open_files();
		heap.fail_at = heap.calls + n;
		texo_status s = texo_compile_string(ctx, softmax_text, strlen(softmax_text), NULL, NULL, &m);
		heap.fail_at = -1;
		failed = heap.failed;
		assert_int_equal(s, failed ? TEXO_NO_MEMORY : TEXO_OK);
		assert_int_equal(process_open_files(), files);
		no_child_is_left();
		texo_module_destroy(m);
		texo_ctx_destroy(ctx);
		assert_int_equal(heap.live, 0);
	}
	assert_in_range(n, 10, 100);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_results),
		cmocka_unit_test(used_files_travel),
		cmocka_unit_test(errors_come_back),
		cmocka_unit_test(walls_stand),
		cmocka_unit_test(processor_time_ends),
		cmocka_unit_test(misbehaviour),
		cmocka_unit_test(allocations_fail),
	};
	if (argc != 3)
		return 2;
	texo = argv[1];
	false_worker = argv[2];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
