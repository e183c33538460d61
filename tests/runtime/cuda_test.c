/* cuda_test.c: the runtime on a GPU that is none: fake_cuda.c stands in for the driver, and runs what is
 * launched with the same graphs' code for the processor. First what works and what is refused; then
 * every call of the driver failing in turn, in several ways, and every allocation: a status, the
 * driver's words, and nothing left alive. With the argument `absent` there is no driver, with `old`
 * one that lacks a function. */
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "runtime/cuda.h"
#include "tests/runtime/fake_cuda.h"
#include "tests/runtime/fixture.h"

static FakeCuda *fake;
static void *image, *portable, *host_image; /* for sm_90a, sm_80, this processor */
static size_t image_size, portable_size, host_size;

/* --- what the fake runs --- */

typedef struct {
	Image image;
	Code code;
} HostCode;

static HostCode host;
static texo_rt *host_rt;

static uint32_t
least(uint64_t *word, uint32_t status)
{
	if (status && status < *word)
		*word = status; /* task 0 */
	return status;
}

/* "first_0_1": kernel 1 of graph first. */
static void
run_on_host(void *user, const char *name, void *const *parameter)
{
	const HostCode *h = user;
	const Image *im = &h->image;
	uint32_t status[2] = {0, 0};
	size_t n = strcspn(name, "_");
	for (uint64_t g = 0; g < im->header->graph.n; g++) {
		const char *graph = im->text + im->graph[g].name;
		if (strlen(graph) != n || memcmp(graph, name, n) != 0)
			continue;
		const ImageKernel *k = &im->kernel[im->graph[g].kernel0 + strtoul(strrchr(name, '_') + 1, NULL, 10)];
		void *buffer[16];
		uint64_t scalar[16], words;
		int64_t ntask;
		for (uint32_t b = 0; b < k->nbuffer; b++)
			memcpy(&buffer[b], *parameter++, 8);
		for (uint32_t s = 0; s < k->nscalar; s++)
			memcpy(&scalar[s], *parameter++, 8);
		memcpy(&ntask, *parameter++, 8);
		memcpy(&words, *parameter, 8);
		code_symbol(&h->code, im->text + k->entry)(buffer, scalar, 0, ntask, status);
		least((uint64_t *)(uintptr_t)words, status[0]);
		least((uint64_t *)(uintptr_t)words + 1, status[1]);
		return;
	}
	fail_msg("the driver was asked for %s", name);
}

static void
reset(void)
{
	*fake = (FakeCuda){.devices = 1, .major = 9, .processors = 132, .run = run_on_host, .user = &host};
}

static void
nothing_alive(void)
{
	assert_int_equal(fake->contexts, 0);
	assert_int_equal(fake->pushed, 0);
	assert_int_equal(fake->modules, 0);
	assert_int_equal(fake->allocations, 0);
	assert_int_equal(fake->misuse, 0);
}

/* --- a launch of `first` from beginning to end --- */

enum { TENSORS = 5 };

typedef struct {
	texo_rt *rt;
	texo_program *program;
	texo_kernel *kernel;
	First f;
	void *memory[TENSORS], *workspace, *stream;
	texo_fault fault;
} Whole;

static size_t
bytes_of(const DLTensor *t)
{
	size_t n = t->dtype.bits / 8u;
	for (int32_t k = 0; k < t->ndim; k++)
		n *= (size_t)t->shape[k];
	return n;
}

static texo_status
start(Whole *w, const texo_rt_options *o)
{
	texo_status s = texo_rt_create(o, &w->rt);
	if (!s)
		s = texo_rt_load(w->rt, image, image_size, &w->program);
	return s ? s : texo_program_get_kernel(w->program, "first", &w->kernel);
}

static texo_status
move_in(Whole *w)
{
	texo_status s = TEXO_OK;
	size_t bytes = 0;
	for (int t = 0; !s && t < TENSORS; t++) {
		DLTensor *x = &w->f.tensor[t];
		s = cuda_memory_alloc(w->rt, bytes_of(x), &w->memory[t]);
		if (!s)
			s = cuda_copy_in(w->rt, w->memory[t], x->data, bytes_of(x));
		x->device = (DLDevice){kDLCUDA, 0};
		x->data = w->memory[t];
	}
	if (!s)
		s = texo_kernel_prepare(w->kernel, w->f.arg, FIRST_ARGS);
	if (!s)
		s = texo_kernel_workspace(w->kernel, w->f.arg, FIRST_ARGS, &bytes);
	return s ? s : cuda_memory_alloc(w->rt, bytes, &w->workspace);
}

static texo_status
launch(Whole *w)
{
	texo_status s = texo_kernel_launch(w->kernel, w->f.arg, FIRST_ARGS, w->workspace, w->stream);
	if (!s)
		s = cuda_wait(w->rt, w->stream);
	w->fault = (texo_fault){.struct_size = sizeof w->fault};
	if (!s)
		s = texo_kernel_status(w->kernel, &w->fault);
	if (!s)
		s = cuda_copy_out(w->rt, w->f.acc, w->memory[3], sizeof w->f.acc);
	return s ? s : cuda_copy_out(w->rt, w->f.y, w->memory[4], sizeof w->f.y);
}

static void
end(Whole *w)
{
	for (int t = 0; w->rt && t < TENSORS; t++)
		cuda_memory_free(w->rt, w->memory[t]);
	if (w->rt)
		cuda_memory_free(w->rt, w->workspace);
	texo_program_destroy(w->program);
	texo_rt_destroy(w->rt);
}

static texo_status
whole_launch(Whole *w, const texo_rt_options *o)
{
	texo_status s = start(w, o);
	if (!s)
		s = move_in(w);
	return s ? s : launch(w);
}

static texo_rt_options
options(void)
{
	texo_rt_options o = TEXO_INIT(texo_rt_options);
	o.device = "cuda";
	return o;
}

/* --- what works --- */

static void
results_are_right(const Whole *w)
{
	First want;
	texo_program *p;
	texo_kernel *k;
	first_init(&want);
	assert_int_equal(texo_rt_load(host_rt, host_image, host_size, &p), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(p, "first", &k), TEXO_OK);
	assert_int_equal(texo_kernel_launch(k, want.arg, FIRST_ARGS, want.workspace, NULL), TEXO_OK);
	assert_memory_equal(w->f.y, want.y, sizeof want.y);
	assert_memory_equal(w->f.acc, want.acc, sizeof want.acc);
	texo_program_destroy(p);
}

static void
launches(void **state)
{
	(void)state;
	Whole w = {.stream = &w};
	texo_rt_options o = options();
	first_init(&w.f);
	if (whole_launch(&w, &o))
		fail_msg("%s", texo_last_error());
	results_are_right(&w);
	assert_false(w.fault.failed || w.fault.cut);
	assert_ptr_equal(fake->stream, &w);
	assert_int_equal(fake->launches, 3);
	assert_true(fake->blocks >= 1 && fake->threads >= 1 && fake->threads <= IMAGE_CUDA_BLOCK);
	end(&w);
	nothing_alive();
}

static void
a_fault_is_told(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = options();
	first_init(&w.f);
	w.f.ids[2] = 5;
	assert_int_equal(whole_launch(&w, &o), TEXO_OK);
	assert_true(w.fault.failed);
	assert_int_equal(w.fault.line, 7);
	assert_int_equal(w.fault.col, 5);
	assert_string_equal(w.fault.access, "table[ids[i]]");
	int64_t good[4] = {0, 1, 2, 3}; /* and not for ever */
	assert_int_equal(cuda_copy_in(w.rt, w.memory[1], good, sizeof good), TEXO_OK);
	assert_int_equal(launch(&w), TEXO_OK);
	assert_false(w.fault.failed);
	end(&w);
	nothing_alive();
}

static void
status_before_a_launch(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = options();
	assert_int_equal(start(&w, &o), TEXO_OK);
	w.fault = (texo_fault){.struct_size = sizeof w.fault};
	assert_int_equal(texo_kernel_status(w.kernel, &w.fault), TEXO_OK);
	assert_false(w.fault.failed || w.fault.cut);
	end(&w);
	nothing_alive();
}

/* --- what is refused --- */

#define REFUSED(call, status, words)                                           \
	do {                                                                   \
		assert_int_equal(call, status);                                \
		if (!strstr(texo_last_error(), words))                         \
			fail_msg("no '%s' in: %s", words, texo_last_error());  \
	} while (0)

static void
devices(void **state)
{
	static const char *const wrong[] = {"cuda:", "cudax", "cuda:x", "cuda:-1", "cuda:0x1", "cuda:99999999", "cuda: 1"};
	texo_rt_options o = options();
	texo_rt *rt;
	(void)state;
	for (unsigned n = 0; n < sizeof wrong / sizeof *wrong; n++) {
		o.device = wrong[n];
		REFUSED(texo_rt_create(&o, &rt), TEXO_INVALID, "there is no device");
		assert_null(rt);
	}
	o.device = "cuda:1";
	REFUSED(texo_rt_create(&o, &rt), TEXO_NO_DEVICE, "there is no device cuda:1; there are 1");
	fake->devices = 2;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_share(rt), TEXO_INVALID, "runs on the processor");
	texo_rt_destroy(rt);
	fake->devices = 0;
	o.device = "cuda";
	REFUSED(texo_rt_create(&o, &rt), TEXO_NO_DEVICE, "has no device");
	nothing_alive();
}

static void
artefacts(void **state)
{
	texo_rt_options o = options();
	texo_rt *rt;
	texo_program *p;
	(void)state;
	REFUSED(texo_rt_load(host_rt, image, image_size, &p), TEXO_BAD_ARTEFACT, "for another kind of device");
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, host_image, host_size, &p), TEXO_BAD_ARTEFACT, "for another kind of device");
	fake->log = "line 7: what is this";
	REFUSED(texo_rt_load(rt, image, image_size, &p), TEXO_BAD_ARTEFACT, "line 7: what is this");
	texo_rt_destroy(rt);
	reset();
	fake->major = 10;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, image, image_size, &p), TEXO_BAD_ARTEFACT, "9.0 alone; Fake has 10.0");
	assert_int_equal(texo_rt_load(rt, portable, portable_size, &p), TEXO_OK);
	texo_program_destroy(p);
	texo_rt_destroy(rt);
	reset();
	fake->major = 7, fake->minor = 5;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, portable, portable_size, &p), TEXO_BAD_ARTEFACT, "8.0 and later; Fake has 7.5");
	texo_rt_destroy(rt);
	nothing_alive();
}

static void
arguments(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = options();
	First on_host;
	first_init(&w.f);
	first_init(&on_host);
	assert_int_equal(start(&w, &o), TEXO_OK);
	REFUSED(texo_kernel_launch(w.kernel, on_host.arg, FIRST_ARGS, on_host.workspace, NULL), TEXO_INVALID,
	        "argument x: the tensor is not in the device's memory");
	assert_int_equal(move_in(&w), TEXO_OK);
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, NULL, NULL), TEXO_INVALID, "the workspace is NULL");
	w.f.tensor[1].device.device_id = 1;
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_INVALID, "argument ids");
	assert_int_equal(fake->launches, 0);
	end(&w);
	nothing_alive();
}

/* The artefact with one byte changed, and a digest that doesn't see it. */
static texo_status
load_damaged(texo_rt *rt, char *copy, size_t at, int by, texo_program **p)
{
	memcpy(copy, image, image_size);
	copy[at] = (char)(copy[at] ^ by);
	ImageHeader *h = (ImageHeader *)(void *)copy;
	size_t from = offsetof(ImageHeader, digest) + sizeof h->digest;
	h->digest = image_digest((const uint8_t *)copy + from, image_size - from);
	return texo_rt_load(rt, copy, image_size, p);
}

static void
damage(void **state)
{
	(void)state;
	texo_rt_options o = options();
	texo_rt *rt;
	texo_program *p;
	First f;
	const ImageHeader *h = image;
	char *copy = malloc(image_size);
	unsigned refused = 0;
	assert_non_null(copy);
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	assert_int_equal(load_damaged(rt, copy, h->code.at + h->code.n - 1, ' ', &p), TEXO_BAD_ARTEFACT);
	assert_non_null(strstr(texo_last_error(), "no text for a GPU"));
	for (size_t at = 0; at < h->code.at; at++)
		for (int by = 1; by < 256; by *= 15) { /* the tables, and what a launch makes of them */
			texo_kernel *k;
			size_t bytes;
			texo_status s = load_damaged(rt, copy, at, by, &p);
			refused += s == TEXO_BAD_ARTEFACT;
			assert_true(s == TEXO_OK || s == TEXO_BAD_ARTEFACT);
			first_init(&f);
			if (!s && texo_program_get_kernel(p, "first", &k) == TEXO_OK)
				texo_kernel_workspace(k, f.arg, FIRST_ARGS, &bytes);
			texo_program_destroy(p);
		}
	assert_true(refused > 1000);
	texo_rt_destroy(rt);
	free(copy);
	nothing_alive();
}

/* --- a lost device --- */

static void
lost(void **state)
{
	(void)state;
	Whole w = {0}, again = {0};
	texo_rt_options o = options();
	first_init(&w.f);
	assert_int_equal(start(&w, &o), TEXO_OK);
	assert_int_equal(move_in(&w), TEXO_OK);
	fake->fail_at = fake->calls + 7; /* enter, clear, three launches, leave; the wait's own enter */
	fake->fail_with = 700;
	REFUSED(launch(&w), TEXO_DEVICE_LOST, "CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	int calls = fake->calls;
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_DEVICE_LOST,
	        "an earlier failure, CUDA_ERROR_ILLEGAL_ADDRESS (700)");
	REFUSED(cuda_wait(w.rt, NULL), TEXO_DEVICE_LOST, "an earlier failure");
	REFUSED(texo_kernel_status(w.kernel, &w.fault), TEXO_DEVICE_LOST, "an earlier failure");
	assert_int_equal(fake->calls, calls); /* the driver is left in peace */
	end(&w);
	assert_int_equal(fake->contexts, 0);
	assert_int_equal(fake->allocations, 0);
	fake->fail_at = 0;
	first_init(&again.f);
	assert_int_equal(whole_launch(&again, &o), TEXO_OK);
	results_are_right(&again);
	end(&again);
	nothing_alive();
}

/* --- everything fails once --- */

/* What ends things can't fail: its results are not looked at. */
static bool
only_ends(const char *call)
{
	return strcmp(call, "cuMemFree_v2") == 0 || strcmp(call, "cuModuleUnload") == 0 ||
	       strcmp(call, "cuDevicePrimaryCtxRelease_v2") == 0;
}

static bool
gives_a_handle(const char *call)
{
	return strstr(call, "Retain") || strstr(call, "LoadData") || strstr(call, "GetFunction") || strstr(call, "Alloc");
}

/* A launch with call n failing; false when there are fewer. */
static bool
fails_at(int n, int with, texo_status *status)
{
	Whole w = {0};
	texo_rt_options o = options();
	reset();
	first_init(&w.f);
	fake->fail_at = with ? n : 0;
	fake->null_at = with ? 0 : n;
	fake->fail_with = with;
	*status = whole_launch(&w, &o);
	bool early = fake->failed != NULL;
	if (*status && !strstr(texo_last_error(), "CUDA"))
		fail_msg("call %d, %s, gives %d: %s", n, fake->failed, with, texo_last_error());
	if (!*status && early && with && !only_ends(fake->failed))
		fail_msg("call %d, %s, gives %d, and nobody says so", n, fake->failed, with);
	if (!*status && with)
		results_are_right(&w);
	end(&w);
	nothing_alive();
	return fake->failed != NULL;
}

static void
every_call_fails(void **state)
{
	static const int with[] = {1, 2, 100, 218, 700, 719, 999};
	texo_status status, seen = TEXO_OK;
	(void)state;
	for (unsigned c = 0; c < sizeof with / sizeof *with; c++) {
		int n = 1;
		for (; fails_at(n, with[c], &status); n++) {
			seen = status ? status : seen;
			if (with[c] == 2 && status && status != TEXO_NO_MEMORY)
				fail_msg("call %d is out of memory, and the status is %s", n, texo_status_name(status));
			if (with[c] >= 700 && with[c] < 900 && status && status != TEXO_DEVICE_LOST)
				fail_msg("call %d loses the device, and the status is %s", n, texo_status_name(status));
		}
		assert_true(n > 50);
		assert_int_not_equal(seen, TEXO_OK);
	}
}

static void
every_handle_is_null(void **state)
{
	texo_status status;
	int found = 0;
	(void)state;
	reset();
	for (int n = 1;; n++) {
		Whole w = {0};
		texo_rt_options o = options();
		reset();
		first_init(&w.f);
		fake->null_at = n;
		status = start(&w, &o);
		if (!status && !fake->failed) {
			end(&w);
			break;
		}
		if (fake->failed && gives_a_handle(fake->failed)) {
			found++;
			if (status != TEXO_INTERNAL || !strstr(texo_last_error(), "CUDA gives no"))
				fail_msg("%s gives nothing: %s", fake->failed, texo_last_error());
		}
		texo_program_destroy(w.program);
		texo_rt_destroy(w.rt);
	}
	assert_true(found >= 7); /* a context, a module, functions, memory of two graphs */
}

static int allowed;

static void *
rationed(void *user, size_t n)
{
	(void)user;
	return allowed-- > 0 ? malloc(n) : NULL;
}

static void *
rationed_resize(void *user, void *p, size_t n)
{
	(void)user;
	return allowed-- > 0 ? realloc(p, n) : NULL;
}

static void
release(void *user, void *p)
{
	(void)user;
	free(p);
}

static void
every_allocation_fails(void **state)
{
	texo_rt_options o = options();
	texo_status s = TEXO_NO_MEMORY;
	(void)state;
	o.alloc = rationed;
	o.resize = rationed_resize;
	o.release = release;
	for (int n = 0; s; n++) {
		Whole w = {0};
		first_init(&w.f);
		allowed = n;
		s = whole_launch(&w, &o);
		assert_true(s == TEXO_OK || s == TEXO_NO_MEMORY);
		allowed = 1000;
		end(&w);
		nothing_alive();
	}
}

/* --- main --- */

static int
set_up(void **state)
{
	(void)state;
	reset();
	return 0;
}

static void
no_driver(const char *words)
{
	texo_rt_options o = options();
	texo_rt *rt;
	REFUSED(texo_rt_create(&o, &rt), TEXO_NO_DEVICE, words);
	assert_null(rt);
}

static void
absent(void **state)
{
	(void)state;
	no_driver("there is no NVIDIA driver: libcuda.so.1");
}

static void
old(void **state)
{
	(void)state;
	no_driver("the NVIDIA driver is too old: libcuda.so.1 has no cuLaunchKernel");
}

static int
open_fake(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *f = library ? dlsym(library, "fake_cuda") : NULL;
	FakeCudaFn *get;
	memcpy(&get, &f, sizeof get);
	if (!f) {
		printf("libcuda.so.1 is not the one for tests\n");
		return 1;
	}
	fake = get();
	image = fixture_image_without_scratch("sm_90a", &image_size);
	portable = fixture_image_without_scratch("sm_80", &portable_size);
	host_image = fixture_image_without_scratch("x86-64-v3", &host_size);
	host.image.bytes = host_image;
	return texo_rt_create(NULL, &host_rt) || image_read(&host.image, host_size) ||
	       code_load(host_rt, host.image.code, (size_t)host.image.header->code.n, &host.code);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest absent_tests[] = {cmocka_unit_test(absent)}, old_tests[] = {cmocka_unit_test(old)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(launches, set_up),       cmocka_unit_test_setup(a_fault_is_told, set_up),
		cmocka_unit_test_setup(status_before_a_launch, set_up), cmocka_unit_test_setup(devices, set_up),
		cmocka_unit_test_setup(artefacts, set_up),      cmocka_unit_test_setup(arguments, set_up),
		cmocka_unit_test_setup(damage, set_up),         cmocka_unit_test_setup(lost, set_up),
		cmocka_unit_test_setup(every_call_fails, set_up), cmocka_unit_test_setup(every_handle_is_null, set_up),
		cmocka_unit_test_setup(every_allocation_fails, set_up),
	};
	if (argc > 1 && strcmp(argv[1], "absent") == 0) {
		if (dlopen("libcuda.so.1", RTLD_NOW)) {
			printf("skipped: there is a driver\n");
			return 77;
		}
		return cmocka_run_group_tests_name("absent", absent_tests, NULL, NULL);
	}
	if (argc > 1)
		return cmocka_run_group_tests_name("old", old_tests, NULL, NULL);
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
