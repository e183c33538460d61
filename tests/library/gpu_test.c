/* gpu_test.c: programs compiled for CUDA through the library. tests/runtime/fake_cuda.c stands in for the
 * driver: it computes nothing, so what is looked at is which calls are made, on which stream, and what
 * is refused. With the argument `absent` there is no driver: programs are compiled all the same. */
#include "tests/library/fixture.h"
#include "tests/runtime/fake_driver.h"
#include "tests/runtime/refused.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char host_context;

static const char twice[] = "graph twice(x: f32[N]) -> (y: f32[N]) { y[i] = x[i] + x[i] }\n"
                            "graph pick(x: f32[N], at: i64[K]) -> (y: f32[K]) { y[i] = x[at[i]] }\n";

static texo_status
compile(texo_ctx *ctx, const char *target, texo_module **out)
{
	texo_options o = TEXO_INIT(texo_options);
	o.target = target;
	return texo_compile_string(ctx, twice, strlen(twice), NULL, &o, out);
}

static bool
has(const texo_module *m, const char *kind, const char *words)
{
	const void *bytes;
	size_t n;
	assert_int_equal(texo_module_emit(m, kind, &bytes, &n), TEXO_OK);
	return strstr(bytes, words) != NULL;
}

/* --- launches --- */

static uint64_t
device_memory(size_t bytes)
{
	int (*alloc)(uint64_t *, size_t) = (int (*)(uint64_t *, size_t))fake_function("cuMemAlloc_v2");
	uint64_t at = 0;
	fake->pushed++; /* the context of the host's own code */
	assert_int_equal(alloc(&at, bytes), 0);
	fake->pushed--;
	return at;
}

static void
free_device_memory(uint64_t at)
{
	((int (*)(uint64_t))fake_function("cuMemFree_v2"))(at); /* also of a device that is lost */
}

typedef struct {
	int64_t n;
	DLTensor x, y;
	texo_arg arg[2];
} Twice;

static void
twice_init(Twice *t)
{
	t->n = 1000;
	t->x = (DLTensor){.device = {kDLCUDA, 0}, .ndim = 1, .dtype = {kDLFloat, 32, 1}, .shape = &t->n};
	t->y = t->x;
	t->x.data = (void *)(uintptr_t)device_memory(4000);
	t->y.data = (void *)(uintptr_t)device_memory(4000);
	t->arg[0] = (texo_arg){&t->x, NULL};
	t->arg[1] = (texo_arg){&t->y, NULL};
}

static void
twice_free(Twice *t)
{
	free_device_memory((uintptr_t)t->x.data);
	free_device_memory((uintptr_t)t->y.data);
}

static void
launch_and_look(const texo_module *m, void *stream)
{
	texo_kernel *k;
	texo_fault fault = TEXO_INIT(texo_fault);
	Twice t;
	size_t bytes = 1;
	twice_init(&t);
	assert_int_equal(texo_module_get_kernel(m, "twice", &k), TEXO_OK);
	assert_int_equal(texo_kernel_workspace(k, t.arg, 2, &bytes), TEXO_OK);
	assert_int_equal(bytes, 0);
	assert_int_equal(texo_kernel_prepare(k, t.arg, 2), TEXO_OK);
	fake->capturing = 1;
	fake->launches = 0;
	assert_int_equal(texo_kernel_launch(k, t.arg, 2, NULL, stream), TEXO_OK);
	fake->capturing = 0;
	assert_int_equal(fake->launches, 1);
	assert_ptr_equal(fake->stream, stream);
	assert_int_equal(texo_kernel_status(k, &fault), TEXO_OK);
	assert_int_equal(fault.failed, 0);
	t.x.device = (DLDevice){kDLCPU, 0};
	REFUSED(texo_kernel_launch(k, t.arg, 2, NULL, stream), TEXO_INVALID, "argument x: the tensor is not in the device's memory");
	t.x.device = (DLDevice){kDLCUDA, 1};
	REFUSED(texo_kernel_launch(k, t.arg, 2, NULL, stream), TEXO_INVALID, "argument x");
	assert_int_equal(fake->launches, 1);
	twice_free(&t);
}

/* --- tensor maps --- */

static const char product[] = "@fp(fast) graph product(x: bf16[M, K], w: bf16[K, N]) -> (y: bf16[M, N]) { y[m, n] = sum[k](x[m, k] * w[k, n]) }\n";

static const char product_of_f32[] = "graph product(x: f32[M, K], w: f32[K, N]) -> (y: f32[M, N]) { y[m, n] = sum[k](x[m, k] * w[k, n]) }\n";

typedef struct {
	int64_t x_shape[2], w_shape[2], y_shape[2], x_stride[2], w_stride[2];
	DLTensor x, w, y;
	texo_arg arg[3];
} Factors;

static DLTensor
factor(const int64_t *shape)
{
	return (DLTensor){.data = (void *)(uintptr_t)device_memory(4 << 20), .device = {kDLCUDA, 0}, .ndim = 2,
	                  .dtype = {kDLBfloat, 16, 1}, .shape = (int64_t *)(uintptr_t)shape};
}

/* x is rows of 80 in memory of 88 a row; 300 x 80 by 80 x 264. */
static void
factors_init(Factors *f)
{
	*f = (Factors){.x_shape = {300, 80}, .w_shape = {80, 264}, .y_shape = {300, 264}, .x_stride = {88, 1}, .w_stride = {264, 1}};
	f->x = factor(f->x_shape);
	f->w = factor(f->w_shape);
	f->y = factor(f->y_shape);
	f->x.strides = f->x_stride;
	f->w.strides = f->w_stride;
	DLTensor *all[3] = {&f->x, &f->w, &f->y};
	for (unsigned n = 0; n < 3; n++)
		f->arg[n] = (texo_arg){all[n], NULL};
}

typedef struct {
	texo_ctx *ctx;
	texo_module *m;
	texo_kernel *k;
	Allocator heap;
	Factors f;
	char *workspace;
	size_t bytes; /* of it */
} Product;

static void
product_of(Product *p, const char *text, const char *gpu)
{
	texo_options target = TEXO_INIT(texo_options);
	texo_ctx_options o = fixture_options(&p->heap);
	target.target = gpu;
	assert_int_equal(texo_ctx_create(&o, &p->ctx), TEXO_OK);
	assert_int_equal(texo_compile_string(p->ctx, text, strlen(text), NULL, &target, &p->m), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(p->m, "product", &p->k), TEXO_OK);
	factors_init(&p->f);
	p->workspace = (char *)(uintptr_t)device_memory(1 << 20);
}

static void
product_init(Product *p)
{
	product_of(p, product, "cuda:sm_90a");
}

static void
product_free(Product *p)
{
	assert_int_equal(fake->misuse, 0);
	DLTensor *all[3] = {&p->f.x, &p->f.w, &p->f.y};
	for (unsigned n = 0; n < 3; n++)
		free_device_memory((uintptr_t)all[n]->data);
	free_device_memory((uintptr_t)p->workspace);
	texo_module_destroy(p->m);
	texo_ctx_destroy(p->ctx);
}

/* How many tensor maps a launch makes; all of its workspace is at the end of what there is, as far as 64 bytes let it. */
static int
launch_product(Product *p)
{
	int before = fake->maps;
	assert_int_equal(texo_kernel_workspace(p->k, p->f.arg, 3, &p->bytes), TEXO_OK);
	assert_true(p->bytes <= 1 << 20);
	char *at = p->bytes ? p->workspace + (1 << 20) - p->bytes : NULL;
	assert_int_equal(texo_kernel_launch(p->k, p->f.arg, 3, at, NULL), TEXO_OK);
	return fake->maps - before;
}

static void
products_have_maps(void **state)
{
	Product p = {0};
	(void)state;
	product_init(&p);
	assert_int_equal(launch_product(&p), 2);
	assert_int_equal(p.bytes, 300 * 256 + 128); /* for x, were it to begin elsewhere */
	assert_int_equal(fake->launches, 1);
	assert_int_equal(fake->early, 1);
	assert_int_equal(fake->threads, 256);
	assert_int_equal(fake->blocks, 25); /* tiles of 64 x 64 */
	assert_int_equal(fake->shared, 8 * 2 * 8192 + 8 * 2 * 8 + 64 * 64 * 2);
	assert_int_equal(fake->map.at, (uintptr_t)p.f.w.data);
	assert_int_equal(fake->map.extent[0], 264);
	assert_int_equal(fake->map.extent[1], 80);
	assert_int_equal(fake->map.stride[1], 528);
	assert_int_equal(fake->map.box[0], 64);
	assert_int_equal(fake->map.box[1], 64);
	p.f.w.byte_offset = 2; /* no memory is kept for rows without gaps: another kernel */
	assert_int_equal(launch_product(&p), 0);
	assert_int_equal(p.bytes, 300 * 256 + 128);
	assert_int_equal(fake->early, 2);
	assert_int_equal(fake->shared, 0);
	product_free(&p);
}

/* Of so many rows, columns and terms. */
static void
take_sizes(Product *p, int64_t m, int64_t n, int64_t terms)
{
	p->f.x_shape[0] = p->f.y_shape[0] = m;
	p->f.w_shape[1] = p->f.y_shape[1] = p->f.w_stride[0] = n;
	p->f.x_shape[1] = p->f.w_shape[0] = terms;
}

/* Tiles of 96 columns, of a factor that lies along them: boxes of 32, with the swizzle that goes with those (fake_cuda.c). */
static void
products_of_narrow_boxes(void **state)
{
	Product p = {0};
	(void)state;
	product_init(&p);
	take_sizes(&p, 1440, 1440, 80);
	assert_int_equal(launch_product(&p), 2);
	assert_int_equal(fake->threads, 512);
	assert_int_equal(fake->blocks, 120); /* tiles of 192 x 96 */
	assert_int_equal(fake->shared, 4 * (192 + 96) * 128 + 4 * 2 * 8 + 192 * 128 * 2);
	assert_int_equal(fake->map.at, (uintptr_t)p.f.w.data);
	assert_int_equal(fake->map.box[0], 32);
	assert_int_equal(fake->map.box[1], 64);
	product_free(&p);
}

/* Without roles: tiles of warps, with more shared memory than their code may say; where rows do not begin at multiples of 16
 * bytes, of threads. */
static void
products_of_warps(void **state)
{
	Product p = {0};
	(void)state;
	product_of(&p, product, "cuda:sm_80");
	take_sizes(&p, 1024, 1024, 80);
	assert_int_equal(launch_product(&p), 0);
	assert_int_equal(fake->launches, 1);
	assert_int_equal(fake->early, 0);
	assert_int_equal(fake->threads, 256);
	assert_int_equal(fake->blocks, 128); /* tiles of 128 x 64 */
	assert_int_equal(fake->shared, 3 * (128 + 64) * 64 * 2);
	p.f.w.byte_offset = 2;
	assert_int_equal(launch_product(&p), 0);
	assert_int_equal(fake->threads, 128);
	assert_int_equal(fake->shared, 0);
	product_free(&p);
}

/* The runtime's own copies, as cuda_boxes.c has them, from their parameters alone. */
typedef struct {
	uint64_t to, from, lo, hi, pitch, row;
	uint32_t pieces, all, axes, pad, extent[4];
	uint64_t stride[4], each;
} Job;
typedef struct {
	uint32_t jobs, pad;
	Job job[8];
} Jobs;

static void
copy_job(const Job *j)
{
	for (uint32_t n = 0; n < j->all; n++) {
		uint64_t piece = n % j->pieces * 16, row = n / j->pieces, from = j->from + piece, rest = row;
		uint64_t bytes = j->row - piece < 16 ? j->row - piece : 16;
		for (uint32_t a = 0; a < j->axes; a++) {
			from += (a + 1 == j->axes ? rest : rest % j->extent[a]) * j->stride[a];
			rest /= j->extent[a];
		}
		assert_true(from >= j->lo && from + bytes <= j->hi);
		memcpy((void *)(uintptr_t)(j->to + row * j->pitch + piece), (const void *)(uintptr_t)from, bytes);
	}
}

static void
copy_boxes(void *user, const char *name, void *const *parameter)
{
	Jobs *jobs = user;
	uint32_t most = 0;
	bool thirds = strcmp(name, "texo_thirds") == 0;
	if (strcmp(name, "texo_boxes") != 0 && !thirds)
		return;
	memcpy(jobs, parameter[0], sizeof *jobs);
	for (uint32_t n = 0; n < jobs->jobs; n++) {
		if (!thirds)
			copy_job(&jobs->job[n]);
		most = jobs->job[n].all > most ? jobs->job[n].all : most;
	}
	assert_int_equal(fake->threads, 256);
	assert_int_equal(fake->blocks, (most + 255) / 256 * jobs->jobs);
}

/* Factors of f32 are cut into thirds, one after the other in the workspace, whatever their rows are. */
static void
products_of_thirds(void **state)
{
	enum { M = 1024, N = 1020, K = 64, LINE = 128 };
	Product p = {0};
	Jobs jobs = {0};
	(void)state;
	product_of(&p, product_of_f32, "cuda:sm_90a");
	DLTensor *all[3] = {&p.f.x, &p.f.w, &p.f.y};
	for (unsigned n = 0; n < 3; n++)
		all[n]->dtype = (DLDataType){kDLFloat, 32, 1};
	take_sizes(&p, M, N, K);
	p.f.x_stride[0] = K + 1;
	p.f.x.byte_offset = 4;
	fake->run = copy_boxes;
	fake->user = &jobs;
	assert_int_equal(launch_product(&p), 2);
	assert_int_equal(fake->launches, 2);
	assert_int_equal(jobs.jobs, 2);
	enum { X_ROW = LINE, W_ROW = 16 * LINE };
	assert_int_equal(p.bytes, 3 * (M * X_ROW + K * W_ROW) + LINE);
	const Job *x = &jobs.job[0], *w = &jobs.job[1];
	assert_int_equal(x->from, (uintptr_t)p.f.x.data + 4);
	assert_int_equal(x->row, K * sizeof(float));
	assert_int_equal(x->pieces, K / 8);
	assert_int_equal(x->all, M * x->pieces);
	assert_int_equal(x->stride[0], (K + 1) * sizeof(float));
	assert_int_equal(x->pitch, X_ROW);
	assert_int_equal(x->each, M * X_ROW);
	assert_int_equal(w->to, x->to + 3 * x->each);
	assert_int_equal(w->pieces, (N + 7) / 8);
	assert_int_equal(fake->map.at, w->to);
	assert_int_equal(fake->map.rank, 3);
	static const uint64_t extent[3] = {N, K, 3}, stride[3] = {0, W_ROW, K * W_ROW}, box[3] = {64, 64, 1};
	for (unsigned a = 0; a < 3; a++) {
		assert_int_equal(fake->map.extent[a], extent[a]);
		assert_int_equal(fake->map.stride[a], stride[a]);
		assert_int_equal(fake->map.box[a], box[a]);
	}
	fake->run = NULL;
	product_free(&p);
}

static void
rows_are_copied(const Job *j, const DLTensor *t)
{
	for (int64_t row = 0; row < t->shape[0]; row++)
		assert_memory_equal((const char *)(uintptr_t)j->to + (size_t)row * j->pitch,
		                    (const char *)t->data + t->byte_offset + 2 * row * t->strides[0], 2 * (size_t)t->shape[1]);
}

/* Rows that begin at no multiples of 16 bytes are copied to where they do, in the workspace. */
static void
products_of_other_rows(void **state)
{
	Product p = {0};
	Jobs jobs;
	(void)state;
	product_init(&p);
	for (int n = 0; n < 1 << 20; n++)
		((unsigned char *)p.f.x.data)[n] = ((unsigned char *)p.f.w.data)[n] = (unsigned char)(n * 151 >> 3);
	fake->run = copy_boxes;
	fake->user = &jobs;
	p.f.x.byte_offset = 2; /* a slice of columns */
	assert_int_equal(launch_product(&p), 2);
	assert_int_equal(p.bytes, 300 * 256 + 128);
	assert_int_equal(jobs.jobs, 1);
	rows_are_copied(&jobs.job[0], &p.f.x);
	assert_int_equal(fake->map.at, (uintptr_t)p.f.w.data);
	p.f.x.byte_offset = 0;
	p.f.w_stride[0] = 267;
	assert_int_equal(launch_product(&p), 2);
	assert_int_equal(p.bytes, 300 * 256 + 80 * 640 + 128);
	assert_int_equal(jobs.jobs, 1);
	rows_are_copied(&jobs.job[0], &p.f.w);
	assert_int_equal(fake->map.at, jobs.job[0].to);
	assert_int_equal(fake->map.at % 128, 0);
	assert_int_equal(fake->map.extent[0], 264);
	assert_int_equal(fake->map.extent[1], 80);
	assert_int_equal(fake->map.stride[1], 640);
	p.f.x_stride[0] = 81;
	p.f.x.byte_offset = p.f.w.byte_offset = 6;
	fake->capturing = 1;
	assert_int_equal(launch_product(&p), 2);
	fake->capturing = 0;
	assert_int_equal(p.bytes, 300 * 256 + 80 * 640 + 128);
	assert_int_equal(jobs.jobs, 2);
	rows_are_copied(&jobs.job[0], &p.f.x);
	rows_are_copied(&jobs.job[1], &p.f.w);
	assert_true(jobs.job[0].to + 300 * 256 <= jobs.job[1].to);
	assert_true(jobs.job[1].to + 80 * 640 <= (uintptr_t)p.workspace + (1 << 20));
	fake->run = NULL;
	product_free(&p);
}

static void
a_target(void **state)
{
	static const char *const target[] = {"cuda", "cuda:sm_90a", "cuda:sm_80"};
	(void)state;
	for (unsigned n = 0; n < sizeof target / sizeof *target; n++) {
		Allocator heap;
		texo_ctx_options o = fixture_options(&heap);
		texo_ctx *ctx;
		texo_module *m;
		assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
		assert_int_equal(compile(ctx, target[n], &m), TEXO_OK);
		launch_and_look(m, &heap);
		assert_true(has(m, "header", "int twice_cuda(const float *x, float *y, int64_t N, void *workspace, void *stream);"));
		assert_true(has(m, "ptx", n == 2 ? ".target sm_80\n" : ".target sm_90a\n"));
		texo_module_destroy(m);
		texo_ctx_destroy(ctx);
		assert_int_equal(heap.live, 0);
		nothing_alive();
	}
}

/* Kernels may come in forms for sizes and alignments, of which a launch takes one: the one that was prepared. */
static void
alignments(void **state)
{
	static const uint64_t offset[] = {0, 4, 8, 16};
	texo_ctx *ctx;
	texo_module *m;
	texo_kernel *k;
	Twice t;
	(void)state;
	assert_int_equal(texo_ctx_create(NULL, &ctx), TEXO_OK);
	assert_int_equal(compile(ctx, "cuda", &m), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, "twice", &k), TEXO_OK);
	twice_init(&t);
	for (int64_t n = 992; n < 996; n++)
		for (unsigned o = 0; o < sizeof offset / sizeof *offset; o++) {
			t.n = n;
			t.x.byte_offset = offset[o];
			assert_int_equal(texo_kernel_prepare(k, t.arg, 2), TEXO_OK);
			fake->capturing = 1;
			fake->launches = 0;
			assert_int_equal(texo_kernel_launch(k, t.arg, 2, NULL, NULL), TEXO_OK);
			fake->capturing = 0;
			assert_int_equal(fake->launches, 1);
			assert_int_equal(fake->misuse, 0);
		}
	assert_true(fake->loads > 1);
	twice_free(&t);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	nothing_alive();
}

/* "cuda" is the GPU that is here; and what a program is for that names no target. */
static void
the_contexts_device(void **state)
{
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	texo_ctx *ctx;
	texo_module *m;
	const void *bytes;
	size_t n;
	(void)state;
	fake->major = 8;
	o.device = "cuda";
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	assert_int_equal(compile(ctx, NULL, &m), TEXO_OK);
	assert_true(has(m, "ptx", ".target sm_80\n"));
	launch_and_look(m, NULL);
	texo_module_destroy(m);
	assert_int_equal(compile(ctx, "cpu", &m), TEXO_OK);
	REFUSED(texo_module_emit(m, "ptx", &bytes, &n), TEXO_INVALID, "kind is 'ptx', and the target is no GPU");
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	fake->devices = 2;
	fake->host_context = &host_context;
	o.context = &host_context;
	REFUSED((o.device = "cuda:1", texo_ctx_create(&o, &ctx)), TEXO_INVALID, "context is not one of the device cuda:1");
	o.device = "cuda";
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	assert_int_equal(fake->contexts, 0);
	assert_int_equal(compile(ctx, NULL, &m), TEXO_OK);
	launch_and_look(m, NULL);
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	o.device = NULL;
	REFUSED(texo_ctx_create(&o, &ctx), TEXO_INVALID, "context is given, and device is not cuda");
	o.context = NULL;
	o.device = "gpu";
	REFUSED(texo_ctx_create(&o, &ctx), TEXO_INVALID, "there is no device 'gpu'");
	o.device = "cuda:7";
	REFUSED(texo_ctx_create(&o, &ctx), TEXO_NO_DEVICE, "there is no device cuda:7; there are 2");
	nothing_alive();
}

/* Code for another GPU has its forms, and no kernels. */
static void
another_gpu(void **state)
{
	texo_ctx *ctx;
	texo_module *m;
	texo_kernel *k;
	(void)state;
	fake->major = 8;
	assert_int_equal(texo_ctx_create(NULL, &ctx), TEXO_OK);
	assert_int_equal(compile(ctx, "cuda:sm_90a", &m), TEXO_OK);
	assert_true(has(m, "ptx", ".target sm_90a\n"));
	REFUSED(texo_module_get_kernel(m, "twice", &k), TEXO_BAD_ARTEFACT, "compute capability 9.0 alone; Fake has 8.0");
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	nothing_alive();
}

/* Each call of the driver fails in turn while a program is compiled, prepared and launched. */
static bool
fails_at(int n, int with)
{
	texo_ctx *ctx = NULL;
	texo_module *m = NULL;
	texo_kernel *k;
	Twice t;
	fake_clear();
	twice_init(&t);
	fake->fail_at = fake->calls + n;
	fake->fail_with = with;
	texo_status s = texo_ctx_create(NULL, &ctx);
	if (!s)
		s = compile(ctx, "cuda", &m);
	if (!s)
		s = texo_module_get_kernel(m, "twice", &k);
	if (!s)
		s = texo_kernel_prepare(k, t.arg, 2);
	if (!s)
		s = texo_kernel_launch(k, t.arg, 2, NULL, NULL);
	if (s && !strstr(texo_last_error(), "CUDA"))
		fail_msg("call %d gives %d: %s", n, with, texo_last_error());
	bool reached = fake->failed != NULL;
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	fake->fail_at = 0;
	twice_free(&t);
	nothing_alive();
	return reached;
}

static void
every_call_fails(void **state)
{
	(void)state;
	for (int n = 1; fails_at(n, n % 2 ? 2 : 999); n++)
		;
	for (int n = 1; fails_at(n, n % 2 ? 100 : 700); n++)
		;
}

/* The same of a launch that makes maps of copies. */
static bool
copies_fail_at(int n, int with)
{
	Product p = {0};
	product_init(&p);
	p.f.x_stride[0] = 81;
	assert_int_equal(texo_kernel_workspace(p.k, p.f.arg, 3, &p.bytes), TEXO_OK);
	fake->failed = NULL;
	fake->fail_at = fake->calls + n;
	fake->fail_with = with;
	texo_status s = texo_kernel_launch(p.k, p.f.arg, 3, p.workspace, NULL);
	if (s && !strstr(texo_last_error(), "CUDA"))
		fail_msg("call %d gives %d: %s", n, with, texo_last_error());
	bool reached = fake->failed != NULL;
	assert_true(s || !reached);
	fake->fail_at = 0;
	if (texo_kernel_launch(p.k, p.f.arg, 3, p.workspace, NULL)) /* and then all is well */
		fail_msg("call %d gives %d, and later: %s", n, with, texo_last_error());
	product_free(&p);
	nothing_alive();
	return reached;
}

static void
every_call_of_copies_fails(void **state)
{
	int n = 1;
	(void)state;
	while (copies_fail_at(n, 2))
		n++;
	assert_true(n > 8);
}

static int
set_up(void **state)
{
	(void)state;
	fake_clear();
	return 0;
}

/* --- without a driver --- */

static void
absent(void **state)
{
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	texo_ctx *ctx;
	texo_module *m;
	texo_kernel *k;
	const void *bytes;
	size_t n;
	(void)state;
	assert_int_equal(texo_ctx_create(NULL, &ctx), TEXO_OK);
	assert_int_equal(compile(ctx, "cuda", &m), TEXO_OK);
	assert_true(has(m, "ptx", ".target sm_90a\n"));
	assert_int_equal(texo_module_emit(m, "image", &bytes, &n), TEXO_OK);
	REFUSED(texo_module_get_kernel(m, NULL, &k), TEXO_NO_DEVICE, "there is no NVIDIA driver");
	texo_module_destroy(m);
	texo_ctx_destroy(ctx);
	o.device = "cuda";
	REFUSED(texo_ctx_create(&o, &ctx), TEXO_NO_DEVICE, "there is no NVIDIA driver");
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest absent_tests[] = {cmocka_unit_test(absent)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(a_target, set_up),
		cmocka_unit_test_setup(products_have_maps, set_up),
		cmocka_unit_test_setup(products_of_narrow_boxes, set_up),
		cmocka_unit_test_setup(products_of_warps, set_up),
		cmocka_unit_test_setup(products_of_other_rows, set_up),
		cmocka_unit_test_setup(products_of_thirds, set_up),
		cmocka_unit_test_setup(alignments, set_up),
		cmocka_unit_test_setup(the_contexts_device, set_up),
		cmocka_unit_test_setup(another_gpu, set_up),
		cmocka_unit_test_setup(every_call_fails, set_up),
		cmocka_unit_test_setup(every_call_of_copies_fails, set_up),
	};
	if (argc > 1 && strcmp(argv[1], "absent") == 0) {
		if (any_driver()) {
			printf("skipped: there is a driver\n");
			return 77;
		}
		return cmocka_run_group_tests_name("absent", absent_tests, NULL, NULL);
	}
	return !fake_find() || cmocka_run_group_tests(tests, NULL, NULL);
}
