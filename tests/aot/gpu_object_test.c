/* gpu_object_test.c: the functions of an object with code for a processor and GPUs (gpu.tex), with
 * tests/runtime/fake_cuda.c as the driver, which computes nothing: what they load, allocate, launch and
 * refuse. What was loaded stays until the process ends, as it is meant to. With the argument `absent`
 * there is no driver, with `maps` one that makes no tensor maps. malloc is the test's own (--wrap), to have none. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "gpu.h"
#include "ir/image.h"
#include "texo_rt.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/refused.h"

static char first_context, second_context, third_context, stream;

/* How many more times there is memory. */
static int allowed = INT32_MAX;
void *__real_malloc(size_t n);
void *__wrap_malloc(size_t n);

void *
__wrap_malloc(size_t n)
{
	return allowed > 0 && allowed-- ? __real_malloc(n) : NULL;
}

static void
reset(void *context)
{
	int contexts = fake->contexts, modules = fake->modules, allocations = fake->allocations;
	fake_clear();
	fake->host_context = context;
	fake->current = context != NULL;
	fake->contexts = contexts;
	fake->modules = modules;
	fake->allocations = allocations;
}

/* Addresses that nothing reads. */
static float *
device(uintptr_t at)
{
	return (float *)at;
}

static void
words(void **state)
{
	(void)state;
	reset(NULL);
	assert_int_equal(gpu_twice_workspace(1000), 0);
	assert_int_equal(gpu_twice_cuda(device(0x10000), device(0x20000), 1000, NULL, &stream), 0);
	assert_ptr_equal(fake->stream, &stream);
	assert_int_equal(fake->launches, 1);
	assert_int_equal(fake->loads, 1);
	assert_int_equal(fake->contexts, 1); /* the first device's own */
	int calls = fake->calls;
	assert_int_equal(gpu_twice_cuda(device(0x10000), device(0x20000), 1000, NULL, NULL), 0);
	assert_int_equal(fake->loads, 1);
	assert_int_equal(fake->calls - calls, 4); /* whose context, in, launch, out: nothing can fail, so no status is cleared */
	assert_int_equal(gpu_twice_cuda_status(), 0);
	REFUSED(gpu_twice_cuda(NULL, device(0x20000), 1000, NULL, NULL), TEXO_INVALID, "argument x: the data is NULL");
	REFUSED(gpu_twice_cuda(device(0x10000), device(0x10004), 1000, NULL, NULL), TEXO_INVALID, "argument y is written and shares");
	REFUSED(gpu_twice_cuda(device(0x10000), device(0x20000), -1, NULL, NULL), TEXO_INVALID, "the dim N is -1");
	size_t bytes = gpu_pair_workspace(8, 16);
	assert_true(bytes > 0 && bytes != (size_t)-1);
	REFUSED(gpu_pair_cuda(device(0x10000), 2, device(0x20000), 8, 16, NULL, NULL), TEXO_INVALID, "the workspace is NULL");
	assert_int_equal(gpu_pair_cuda(device(0x10000), 2, device(0x20000), 8, 16, device(0x40000), NULL), 0);
	assert_int_equal(fake->misuse, 0);
}

/* Rows of 510 bytes are copied to where they begin with lines, in memory that is asked for in advance. */
static void
maps(void **state)
{
	enum { N = 255, COPIES = 2 * N * 512 };
	size_t bytes = gpu_product_workspace(N, N, N);
	const void *x = device(0x100000), *w = device(0x200000);
	(void)state;
	reset(NULL);
	assert_true(bytes >= COPIES && bytes != (size_t)-1);
	assert_int_equal(gpu_product_cuda(x, w, (void *)device(0x300000), N, N, N, device(0x400000), NULL), 0);
	assert_int_equal(fake->launches, 2);
	assert_int_equal(fake->maps, 2);
	assert_true(fake->map.at >= 0x400000 && fake->map.at + COPIES / 2 <= 0x400000 + bytes);
	assert_int_equal(fake->map.stride[1], 512);
	assert_int_equal(gpu_product_cuda(x, w, (void *)device(0x300000), N + 1, N + 1, N + 1, device(0x400000), NULL), 0);
	assert_int_equal(fake->maps, 4); /* rows of lines are not copied */
	assert_int_equal(fake->map.at, 0x200000);
	assert_int_equal(fake->launches, 3);
	assert_int_equal(fake->misuse, 0);
}

/* Another kernel does the same. */
static void
no_maps(void **state)
{
	enum { N = 256 };
	const void *x = device(0x100000), *w = device(0x200000);
	(void)state;
	reset(NULL);
	assert_int_equal(gpu_product_cuda(x, w, (void *)device(0x300000), N, N, N, device(0x400000), NULL), 0);
	assert_int_equal(fake->launches, 1);
	assert_int_equal(fake->maps, 0);
	assert_int_equal(fake->early, 0);
	assert_int_equal(fake->misuse, 0);
}

static void
faults(void **state)
{
	(void)state;
	reset(NULL);
	assert_int_equal(gpu_pick_cuda(device(0x10000), (int64_t *)device(0x20000), device(0x30000), 8, 4, NULL, NULL), 0);
	assert_int_equal(gpu_pick_cuda_status(), 0);
	fake->fault = 1;
	assert_int_equal(gpu_pick_cuda(device(0x10000), (int64_t *)device(0x20000), device(0x30000), 8, 4, NULL, NULL), 0);
	REFUSED(gpu_pick_cuda_status(), TEXO_FAULT, "the access x[at[i]] went outside");
	assert_int_equal(gpu_pick_cuda(device(0x10000), (int64_t *)device(0x20000), device(0x30000), 8, 4, NULL, NULL), 0);
	assert_int_equal(gpu_pick_cuda_status(), 0);
}

/* What no object of ours is. */
static void
objects_of_others(void **state)
{
	ImageObject other = {.version = IMAGE_VERSION};
	void *loaded = NULL;
	uint64_t word[2];
	int64_t n = 4;
	(void)state;
	reset(NULL);
	other.loaded = &loaded;
	const texo_object *o = (const texo_object *)(const void *)&other;
	REFUSED(texo_object_call_cuda(o, 0, word, &n, NULL, NULL, NULL), TEXO_NO_DEVICE, "the object has no code for GPUs");
	other.version++;
	REFUSED(texo_object_call_cuda(o, 0, word, &n, NULL, NULL, NULL), TEXO_BAD_ARTEFACT, "for another version of libtexo-rt");
}

/* On the processor the same object runs as ever. */
static void
processor(void **state)
{
	float x[3] = {1, 2, 3}, y[3];
	(void)state;
	assert_int_equal(gpu_twice(x, y, 3, NULL), 0);
	assert_true(y[0] == 2 && y[1] == 4 && y[2] == 6);
}

typedef struct {
	int64_t shape[2];
	float value;
	DLTensor x, s, y;
	const DLTensor *arg[3];
} Pair;

static void
pair_init(Pair *p, DLDeviceType type, void *x, void *y)
{
	p->shape[0] = 8;
	p->shape[1] = 16;
	p->value = 2;
	p->x = (DLTensor){.data = x, .device = {type, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = p->shape};
	p->y = p->x;
	p->y.data = y;
	p->s = (DLTensor){.data = &p->value, .device = {kDLCPU, 0}, .dtype = {kDLFloat, 32, 1}};
	p->arg[0] = &p->x;
	p->arg[1] = &p->s;
	p->arg[2] = &p->y;
}

static void
tensors(void **state)
{
	Pair p;
	float x[128] = {1}, y[128];
	(void)state;
	reset(&second_context);
	pair_init(&p, kDLCUDA, device(0x10000), device(0x20000));
	assert_int_equal(gpu_pair_dl(p.arg, 3, &stream), 0);
	assert_true(fake->launches > 0);
	assert_ptr_equal(fake->stream, &stream);
	int alive = fake->allocations;
	fake->capturing = 1; /* again: what was loaded stays, and the workspace is the stream's */
	assert_int_equal(gpu_pair_dl(p.arg, 3, &stream), 0);
	assert_int_equal(fake->allocations, alive);
	assert_int_equal(fake->misuse, 0);
	fake->capturing = 0;
	fake->null_at = fake->calls + 5; /* whose context, in and out, in */
	REFUSED(gpu_pair_dl(p.arg, 3, &stream), TEXO_INTERNAL, "CUDA gives no memory");
	p.x.device.device_id = 1;
	REFUSED(gpu_pair_dl(p.arg, 3, NULL), TEXO_INVALID, "argument x: the tensor is not in the device's memory");
	REFUSED(gpu_pair_dl(p.arg, 2, NULL), TEXO_INVALID, "graph gpu_pair takes 3 arguments, not 2");
	pair_init(&p, kDLCPU, x, y);
	assert_int_equal(gpu_pair_dl(p.arg, 3, NULL), 0);
	REFUSED(gpu_pair_dl(p.arg, 3, &stream), TEXO_INVALID, "the stream must be NULL on the CPU");
}

/* Each context has programs of its own, on its own device. */
static void
contexts(void **state)
{
	(void)state;
	reset(&first_context);
	fake->devices = 2;
	fake->host_device = 1;
	fake->major = 8;
	assert_int_equal(gpu_twice_cuda(device(0x10000), device(0x20000), 1000, NULL, NULL), 0);
	assert_int_equal(fake->loads, 1);
	assert_int_equal(gpu_twice_cuda(device(0x10000), device(0x20000), 1000, NULL, NULL), 0);
	assert_int_equal(fake->loads, 1);
	reset(&third_context);
	fake->major = 7;
	REFUSED(gpu_twice_cuda(device(0x10000), device(0x20000), 1000, NULL, NULL), TEXO_BAD_ARTEFACT, "8.0 and later; Fake has 7.0");
	REFUSED(gpu_twice_cuda_status(), TEXO_BAD_ARTEFACT, "8.0 and later");
}

/* Every call of the driver fails once, on a context that nothing was loaded for. */
static void
every_call_fails(void **state)
{
	static char context[4096];
	static const int with[] = {2, 100, 1};
	Pair p;
	unsigned used = 0, failures = 0;
	(void)state;
	for (unsigned c = 0; c < sizeof with / sizeof *with; c++)
		for (int n = 1;; n++) {
			reset(&context[used++]);
			assert_true(used < sizeof context);
			int alive = fake->allocations, modules = fake->modules;
			fake->fail_at = n;
			fake->fail_with = with[c];
			pair_init(&p, kDLCUDA, device(0x10000), device(0x20000));
			int status = gpu_pair_dl(p.arg, 3, &stream);
			if (!fake->failed)
				break;
			if (status && !strstr(texo_last_error(), "CUDA"))
				fail_msg("call %d, %s, gives %d: %s", n, fake->failed, with[c], texo_last_error());
			if (!status && strcmp(fake->failed, "cuModuleUnload") != 0)
				fail_msg("call %d, %s, gives %d, and nobody says so", n, fake->failed, with[c]);
			assert_int_equal(fake->pushed, 0);
			assert_int_equal(fake->misuse, 0);
			fake->fail_at = 0;
			if (gpu_pair_dl(p.arg, 3, &stream)) /* and then all is well */
				fail_msg("call %d gives %d, and later: %s", n, with[c], texo_last_error());
			if (fake->allocations - alive != 4 || fake->modules - modules != 2) /* words of four graphs, two kernels */
				fail_msg("call %d gives %d: %d allocations, %d modules", n, with[c], fake->allocations - alive,
				         fake->modules - modules);
			failures++;
		}
	assert_true(failures > 40);
}

/* On a new context, memory ends ever later: that is said, nothing is left behind, and then all is well. */
static void
no_memory(void **state)
{
	static char context[256];
	unsigned failures = 0;
	Pair p;
	(void)state;
	for (int status = TEXO_NO_MEMORY; status; failures++) {
		assert_true(failures < sizeof context);
		reset(&context[failures]);
		int alive = fake->allocations, modules = fake->modules;
		pair_init(&p, kDLCUDA, device(0x10000), device(0x20000));
		allowed = (int)failures;
		status = gpu_pair_dl(p.arg, 3, &stream);
		allowed = INT32_MAX;
		if (status)
			assert_int_equal(status, TEXO_NO_MEMORY);
		assert_int_equal(fake->pushed, 0);
		assert_int_equal(fake->misuse, 0);
		assert_int_equal(gpu_pair_dl(p.arg, 3, &stream), 0);
		assert_int_equal(fake->allocations - alive, 4);
		assert_int_equal(fake->modules - modules, 2);
	}
	assert_true(failures > 10);
}

static void
absent(void **state)
{
	float x[3] = {1, 2, 3}, y[3];
	(void)state;
	assert_int_equal(gpu_twice(x, y, 3, NULL), 0);
	assert_true(y[2] == 6);
	REFUSED(gpu_twice_cuda(device(0x10000), device(0x20000), 1000, NULL, NULL), TEXO_NO_DEVICE, "there is no NVIDIA driver");
	REFUSED(gpu_twice_cuda_status(), TEXO_NO_DEVICE, "there is no NVIDIA driver");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest absent_tests[] = {cmocka_unit_test(absent)}, maps_tests[] = {cmocka_unit_test(no_maps)};
	const struct CMUnitTest tests[] = {cmocka_unit_test(words), cmocka_unit_test(maps), cmocka_unit_test(faults), cmocka_unit_test(objects_of_others),
	                                   cmocka_unit_test(processor), cmocka_unit_test(tensors), cmocka_unit_test(contexts),
	                                   cmocka_unit_test(every_call_fails), cmocka_unit_test(no_memory)};
	if (argc > 1 && strcmp(argv[1], "absent") == 0) {
		if (any_driver()) {
			printf("skipped: there is a driver\n");
			return 77;
		}
		return cmocka_run_group_tests_name("absent", absent_tests, NULL, NULL);
	}
	if (argc > 1)
		return !fake_find() || cmocka_run_group_tests_name("maps", maps_tests, NULL, NULL);
	return !fake_find() || cmocka_run_group_tests(tests, NULL, NULL);
}
