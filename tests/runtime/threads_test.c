/* threads_test.c: launches on several threads: the same results and the same fault on any number of
 * them, in the default floating-point environment; scratch is a call's own; a host's own threads do
 * as well; kernels run from several host threads at once; a child of fork() goes on. Built a second
 * time with the runtime under the thread sanitizer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>
#include <xmmintrin.h>

#include "tests/runtime/fixture.h"

enum { ROWS = 600, COLUMNS = 5, WIDE = COLUMNS + 1, LIMIT = 8 };

static void *image;
static size_t image_bytes;

static int
load(void **state)
{
	(void)state;
	image = fixture_image(&image_bytes);
	return 0;
}

static int
unload(void **state)
{
	(void)state;
	free(image);
	return 0;
}

typedef struct {
	float x[ROWS * COLUMNS], y[ROWS * WIDE];
	uint32_t code[ROWS];
	int64_t shape_x[2], shape_code[1], shape_y[2];
	DLTensor tensor[3];
	texo_arg arg[TURN_ARGS];
	texo_program *program;
	texo_kernel *turn;
	void *workspace;
} Turn;

static DLTensor
tensor(void *data, uint8_t code, int32_t rank, int64_t *shape)
{
	return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = rank, .dtype = {code, 32, 1}, .shape = shape};
}

static Turn *
turn_open(texo_rt_options o)
{
	texo_rt *rt;
	size_t bytes;
	Turn *t = calloc(1, sizeof *t);
	assert_non_null(t);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		t->x[i] = (float)i;
	t->shape_x[0] = t->shape_y[0] = t->shape_code[0] = ROWS;
	t->shape_x[1] = COLUMNS;
	t->shape_y[1] = WIDE;
	t->tensor[0] = tensor(t->x, kDLFloat, 2, t->shape_x);
	t->tensor[1] = tensor(t->code, kDLUInt, 1, t->shape_code);
	t->tensor[2] = tensor(t->y, kDLFloat, 2, t->shape_y);
	for (int k = 0; k < TURN_ARGS; k++)
		t->arg[k].tensor = &t->tensor[k];
	o.struct_size = sizeof o;
	if (texo_rt_create(&o, &rt) || texo_rt_load(rt, image, image_bytes, &t->program))
		fail_msg("%s", texo_last_error());
	texo_rt_destroy(rt);
	assert_int_equal(texo_program_get_kernel(t->program, "turn", &t->turn), TEXO_OK);
	assert_int_equal(texo_kernel_workspace(t->turn, t->arg, TURN_ARGS, &bytes), TEXO_OK);
	if (o.threads)
		assert_int_equal(bytes, o.threads * 128); /* two binds of less than 64 bytes a call */
	t->workspace = aligned_alloc(64, bytes);
	assert_non_null(t->workspace);
	return t;
}

static void
turn_close(Turn *t)
{
	texo_program_destroy(t->program);
	free(t->workspace);
	free(t);
}

static texo_status
turn_launch(Turn *t)
{
	memset(t->y, 0xff, sizeof t->y);
	return texo_kernel_launch(t->turn, t->arg, TURN_ARGS, t->workspace, NULL);
}

/* The number of calls it took, by the count that each begins again; each has a grain of 2 tasks. */
static uint32_t
turn_check(const Turn *t)
{
	uint32_t calls = 0;
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			assert_true(t->y[i * WIDE + j] == t->x[i * COLUMNS + COLUMNS - 1 - j]);
	for (int i = 0; i < ROWS; i++) {
		float count = t->y[i * WIDE + COLUMNS];
		if (count == 1) {
			calls++;
			assert_true(i + 1 < ROWS && t->y[(i + 1) * WIDE + COLUMNS] == 2);
		} else {
			assert_true(i > 0 && count == t->y[(i - 1) * WIDE + COLUMNS] + 1);
		}
	}
	return calls;
}

/* --- results --- */

static void
splits_and_agrees(void **state)
{
	(void)state;
	for (uint32_t threads = 1; threads <= LIMIT; threads++) {
		Turn *t = turn_open((texo_rt_options){.threads = threads});
		assert_int_equal(texo_kernel_prepare(t->turn, t->arg, TURN_ARGS), TEXO_OK);
		for (int k = 0; k < 20; k++) {
			assert_int_equal(turn_launch(t), TEXO_OK);
			uint32_t calls = turn_check(t);
			assert_true(threads == 1 ? calls == 1 : calls >= 2 * threads);
		}
		turn_close(t);
	}
}

static void
keeps_small_launches_whole(void **state)
{
	(void)state;
	Turn *t = turn_open((texo_rt_options){.threads = 4});
	for (int64_t rows = 0; rows < 9; rows++) {
		uint32_t calls = 0;
		t->shape_x[0] = t->shape_y[0] = t->shape_code[0] = rows;
		assert_int_equal(turn_launch(t), TEXO_OK);
		for (int64_t i = 0; i < rows; i++)
			calls += t->y[i * WIDE + COLUMNS] == 1;
		assert_int_equal(calls, rows < 4 ? rows > 0 : rows / 2);
	}
	turn_close(t);
}

/* --- faults --- */

static void
first_fault_wins(void **state)
{
	(void)state;
	static const struct {
		int at[4];
		uint32_t code[4];
		texo_status status;
		const char *access;
	} row[] = {
		{{20, 590, 30, 40}, {1, 2, 2, 2}, TEXO_FAULT, "one"},
		{{20, 590, 30, 40}, {2, 1, 1, 1}, TEXO_FAULT, "two"},
		{{599, 0, 1, 300}, {1, 2 << 16, 1 << 16, 1 << 16}, TEXO_FAULT, "one"},
		{{10, 0, 599, 300}, {1 << 16, 2 << 16, 1 << 16, 1 << 16}, TEXO_OK, "two"},
		{{300, 301, 302, 303}, {2 << 16, 1 << 16, 1 << 16, 1 << 16}, TEXO_OK, "two"},
	};
	for (uint32_t threads = 1; threads <= LIMIT; threads += 3) {
		Turn *t = turn_open((texo_rt_options){.threads = threads});
		for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
			texo_fault fault = {.struct_size = sizeof fault};
			memset(t->code, 0, sizeof t->code);
			for (int k = 0; k < 4; k++)
				t->code[row[n].at[k]] = row[n].code[k];
			for (int k = 0; k < 30; k++) {
				assert_int_equal(turn_launch(t), row[n].status);
				turn_check(t);
				assert_int_equal(texo_kernel_status(t->turn, &fault), TEXO_OK);
				assert_string_equal(fault.access, row[n].access);
				assert_int_equal(fault.failed, row[n].status == TEXO_FAULT);
			}
		}
		turn_close(t);
	}
}

/* --- a host's own threads --- */

typedef struct {
	uint32_t calls, most;
	bool backwards;
} HostPool;

typedef struct {
	void (*body)(void *arg, uint32_t k);
	void *arg;
	uint32_t k;
	unsigned csr;
} HostCall;

static void *
host_thread(void *arg)
{
	HostCall *c = arg;
	_mm_setcsr(0x1f80 | 0x8040);
	c->body(c->arg, c->k);
	c->csr = _mm_getcsr();
	return NULL;
}

static void
host_for(void *user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg)
{
	HostPool *h = user;
	pthread_t thread[LIMIT];
	HostCall call[LIMIT];
	h->calls++;
	h->most = n > h->most ? n : h->most;
	if (h->backwards) {
		while (n-- > 0)
			body(arg, n);
		return;
	}
	for (uint32_t k = 0; k < n; k++) {
		call[k] = (HostCall){body, arg, k, 0};
		assert_int_equal(pthread_create(&thread[k], NULL, host_thread, &call[k]), 0);
	}
	for (uint32_t k = 0; k < n; k++) {
		pthread_join(thread[k], NULL);
		assert_int_equal(call[k].csr & ~0x3fu, 0x1f80 | 0x8040);
	}
}

static void
takes_the_hosts_threads(void **state)
{
	(void)state;
	for (int way = 0; way < 2; way++) {
		HostPool h = {.backwards = way};
		Turn *t = turn_open((texo_rt_options){.threads = 3, .parallel_for = host_for, .parallel_user = &h});
		t->code[500] = 2;
		t->code[501] = 1;
		for (int k = 0; k < 10; k++) {
			assert_int_equal(turn_launch(t), TEXO_FAULT);
			assert_string_equal(texo_last_error(), "3:1: the access two went outside");
			assert_true(turn_check(t) >= 3);
		}
		assert_int_equal(h.calls, 10);
		assert_int_equal(h.most, 3);
		turn_close(t);
	}
}

/* --- scratch --- */

static pthread_barrier_t gate;

static void *
gated_thread(void *arg)
{
	HostCall *c = arg;
	pthread_barrier_wait(&gate);
	c->body(c->arg, c->k);
	return NULL;
}

/* Two threads that begin at the same moment. */
static void
two_at_once(void *user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg)
{
	(void)user;
	pthread_t thread[2];
	HostCall call[2];
	assert_int_equal(n, 2);
	for (uint32_t k = 0; k < 2; k++) {
		call[k] = (HostCall){body, arg, k, 0};
		assert_int_equal(pthread_create(&thread[k], NULL, gated_thread, &call[k]), 0);
	}
	for (uint32_t k = 0; k < 2; k++)
		pthread_join(thread[k], NULL);
}

/* Rows so long that calls overlap on a busy machine as well: one that used another's scratch would turn its row. */
static void
scratch_is_a_calls_own(void **state)
{
	(void)state;
	enum { LONG = 65536, MANY = 128 };
	Turn *t = turn_open((texo_rt_options){.threads = 2, .parallel_for = two_at_once});
	float *x = malloc(sizeof *x * LONG * MANY), *y = malloc(sizeof *y * (LONG + 1) * MANY);
	size_t bytes;
	assert_true(x && y && pthread_barrier_init(&gate, NULL, 2) == 0);
	t->shape_x[0] = t->shape_y[0] = t->shape_code[0] = MANY;
	t->shape_x[1] = LONG;
	t->shape_y[1] = LONG + 1;
	t->tensor[0].data = x;
	t->tensor[2].data = y;
	assert_int_equal(texo_kernel_workspace(t->turn, t->arg, TURN_ARGS, &bytes), TEXO_OK);
	void *workspace = aligned_alloc(64, bytes);
	assert_non_null(workspace);
	for (int i = 0; i < LONG * MANY; i++)
		x[i] = (float)i;
	for (int turns = 0; turns < 5; turns++) {
		memset(y, 0xff, sizeof *y * (LONG + 1) * MANY);
		assert_int_equal(texo_kernel_launch(t->turn, t->arg, TURN_ARGS, workspace, NULL), TEXO_OK);
		for (int i = 0; i < MANY; i++)
			for (int j = 0; j < LONG; j++)
				assert_true(y[i * (LONG + 1) + j] == x[i * LONG + LONG - 1 - j]);
	}
	pthread_barrier_destroy(&gate);
	free(workspace);
	free(x);
	free(y);
	turn_close(t);
}

/* The sum, of one number again and again, takes so long that the other thread gets a processor meanwhile, however
 * busy the machine is, and finds rows to do. */
static void
tasks_ahead_come_first(void **state)
{
	(void)state;
	enum { LONG = 1 << 18, MANY = 64 };
	for (uint32_t threads = 1; threads <= 2; threads++) {
		Turn *t = turn_open((texo_rt_options){.threads = threads, .parallel_for = threads > 1 ? two_at_once : NULL});
		float x = 1, y[MANY];
		int64_t shape[2] = {MANY, LONG}, still[2] = {0, 0};
		DLTensor from = tensor(&x, kDLFloat, 2, shape), to = tensor(y, kDLFloat, 1, shape);
		const texo_arg arg[AFTER_ARGS] = {{.tensor = &from}, {.tensor = &to}};
		texo_kernel *after;
		size_t bytes;
		from.strides = still;
		assert_int_equal(pthread_barrier_init(&gate, NULL, 2), 0);
		assert_int_equal(texo_program_get_kernel(t->program, "after", &after), TEXO_OK);
		assert_int_equal(texo_kernel_workspace(after, arg, AFTER_ARGS, &bytes), TEXO_OK);
		assert_int_equal(bytes, 64); /* one piece for all */
		for (int turns = 0; turns < 4; turns++) {
			memset(y, 0xff, sizeof y);
			memset(t->workspace, 0xff, bytes);
			assert_int_equal(texo_kernel_launch(after, arg, AFTER_ARGS, t->workspace, NULL), TEXO_OK);
			for (int i = 0; i < MANY; i++)
				assert_true(y[i] == LONG * MANY);
		}
		pthread_barrier_destroy(&gate);
		turn_close(t);
	}
}

/* --- several host threads --- */

static texo_rt *shared;

/* NULL when all went well; cmocka's own checks are for one thread. */
static void *
host_launches(void *arg)
{
	(void)arg;
	texo_program *program;
	texo_kernel *turn;
	Turn *t = calloc(1, sizeof *t);
	if (!t || texo_rt_load(shared, image, image_bytes, &program) || texo_program_get_kernel(program, "turn", &turn))
		return shared;
	t->shape_x[0] = t->shape_y[0] = t->shape_code[0] = ROWS;
	t->shape_x[1] = COLUMNS;
	t->shape_y[1] = WIDE;
	t->tensor[0] = tensor(t->x, kDLFloat, 2, t->shape_x);
	t->tensor[1] = tensor(t->code, kDLUInt, 1, t->shape_code);
	t->tensor[2] = tensor(t->y, kDLFloat, 2, t->shape_y);
	for (int k = 0; k < TURN_ARGS; k++)
		t->arg[k].tensor = &t->tensor[k];
	t->workspace = aligned_alloc(64, 3 * 128);
	void *failed = t->workspace ? NULL : shared;
	for (int k = 0; k < 100 && !failed; k++) {
		for (int i = 0; i < ROWS * COLUMNS; i++)
			t->x[i] = (float)(k + i);
		if (texo_kernel_launch(turn, t->arg, TURN_ARGS, t->workspace, NULL))
			failed = shared;
		for (int i = 0; i < ROWS * COLUMNS; i++)
			if (t->y[i / COLUMNS * WIDE + COLUMNS - 1 - i % COLUMNS] != (float)(k + i))
				failed = shared;
	}
	texo_program_destroy(program);
	free(t->workspace);
	free(t);
	return failed;
}

static void
launches_at_once(void **state)
{
	(void)state;
	enum { HOSTS = 4 };
	texo_rt_options o = {.struct_size = sizeof o, .threads = 3};
	pthread_t host[HOSTS];
	void *failed;
	assert_int_equal(texo_rt_create(&o, &shared), TEXO_OK);
	for (int k = 0; k < HOSTS; k++)
		assert_int_equal(pthread_create(&host[k], NULL, host_launches, NULL), 0);
	for (int k = 0; k < HOSTS; k++) {
		pthread_join(host[k], &failed);
		assert_null(failed);
	}
	texo_rt_destroy(shared);
}

/* --- options --- */

static void
counts_threads(void **state)
{
	(void)state;
	texo_rt *rt;
	texo_rt_options o = {.struct_size = sizeof o, .threads = 1025};
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "options: 1025 threads are asked for; 1024 are possible");
	o.threads = 1024;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	texo_rt_destroy(rt);
	Turn *t = turn_open((texo_rt_options){.threads = 0});
	assert_int_equal(turn_launch(t), TEXO_OK);
	turn_check(t);
	turn_close(t);
}

#ifndef NO_FORK
static void
goes_on_in_a_child(void **state)
{
	(void)state;
	int status;
	Turn *t = turn_open((texo_rt_options){.threads = 4});
	assert_int_equal(turn_launch(t), TEXO_OK);
	pid_t child = fork();
	if (child == 0) {
		alarm(20);
		bool ok = turn_launch(t) == TEXO_OK && t->y[0] == COLUMNS - 1 && t->y[ROWS * WIDE - 2] == (ROWS - 1) * COLUMNS;
		texo_program_destroy(t->program);
		_exit(ok ? 0 : 1);
	}
	assert_true(child > 0);
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
	assert_int_equal(turn_launch(t), TEXO_OK);
	turn_check(t);
	turn_close(t);
}
#endif

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(splits_and_agrees),
		cmocka_unit_test(keeps_small_launches_whole),
		cmocka_unit_test(first_fault_wins),
		cmocka_unit_test(takes_the_hosts_threads),
		cmocka_unit_test(scratch_is_a_calls_own),
		cmocka_unit_test(tasks_ahead_come_first),
		cmocka_unit_test(launches_at_once),
		cmocka_unit_test(counts_threads),
#ifndef NO_FORK
		cmocka_unit_test(goes_on_in_a_child),
#endif
	};
	return cmocka_run_group_tests(tests, load, unload);
}
