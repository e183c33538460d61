/* fixture.c: see fixture.h. The counts are relaxed, so that they order nothing between threads: a race that
 * they hid would not be found. */
#include "tests/library/fixture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char softmax_text[] = "graph rows(x: f32[N, M]) -> (y: f32[N, M]) {\n"
                            "  m[i] = max[j](x[i, j])\n"
                            "  e[i, j] = exp(x[i, j] - m[i])\n"
                            "  y[i, j] = e[i, j] / sum[k](e[i, k])\n"
                            "}\n";

static bool
refuse(Allocator *a)
{
	long n = atomic_fetch_add_explicit(&a->calls, 1, memory_order_relaxed);
	if (a->fail_at < 0 || (a->fail_on ? n < a->fail_at : n != a->fail_at))
		return false;
	a->failed = true;
	return true;
}

static void *
counted_alloc(void *user, size_t n)
{
	Allocator *a = user;
	void *p = refuse(a) ? NULL : malloc(n ? n : 1);
	if (p)
		atomic_fetch_add_explicit(&a->live, 1, memory_order_relaxed);
	return p;
}

static void *
counted_resize(void *user, void *p, size_t n)
{
	Allocator *a = user;
	void *q = refuse(a) ? NULL : realloc(p, n ? n : 1);
	if (q && !p)
		atomic_fetch_add_explicit(&a->live, 1, memory_order_relaxed);
	return q;
}

static void
counted_release(void *user, void *p)
{
	Allocator *a = user;
	assert_non_null(p);
	atomic_fetch_sub_explicit(&a->live, 1, memory_order_relaxed);
	free(p);
}

texo_ctx_options
fixture_options(Allocator *a)
{
	texo_ctx_options o = TEXO_INIT(texo_ctx_options);
	memset(a, 0, sizeof *a);
	a->fail_at = -1;
	o.alloc = counted_alloc;
	o.resize = counted_resize;
	o.release = counted_release;
	o.user = a;
	o.threads = 1;
	return o;
}

texo_module *
fixture_compile(texo_ctx *ctx, const char *text)
{
	texo_module *m = NULL;
	texo_status s = texo_compile_string(ctx, text, strlen(text), "test.tex", NULL, &m);
	if (s)
		fail_msg("%s: %s", texo_status_name(s), texo_last_error());
	return m;
}

texo_status
fixture_launch(const texo_module *m, const float *x, float *y, int64_t rows, int64_t cols)
{
	texo_kernel *k;
	int64_t shape[2] = {rows, cols};
	DLTensor in = {.data = (void *)(uintptr_t)x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape};
	DLTensor out = in;
	out.data = y;
	texo_arg args[2] = {{.tensor = &in}, {.tensor = &out}};
	size_t bytes;
	texo_status s = texo_module_get_kernel(m, NULL, &k);
	if (!s)
		s = texo_kernel_workspace(k, args, 2, &bytes);
	if (s)
		return s;
	void *workspace = aligned_alloc(64, (bytes + 63) / 64 * 64 + 64);
	s = texo_kernel_launch(k, args, 2, workspace, NULL);
	free(workspace);
	return s;
}

void
fixture_fill(float *x, int64_t n)
{
	for (int64_t i = 0; i < n; i++)
		x[i] = (float)(i * 7 % 23) / 8.0f - 1.0f;
}

void
fixture_check_softmax(const float *x, const float *y, int64_t rows, int64_t cols)
{
	for (int64_t i = 0; i < rows; i++) {
		double sum = 0, most = -INFINITY;
		for (int64_t j = 0; j < cols; j++)
			most = fmax(most, x[i * cols + j]);
		for (int64_t j = 0; j < cols; j++)
			sum += exp(x[i * cols + j] - most);
		for (int64_t j = 0; j < cols; j++) {
			double want = exp(x[i * cols + j] - most) / sum, got = y[i * cols + j];
			assert_true(fabs(got - want) <= 1e-6 * want); /* 8 roundings of f32 are 5e-7 */
		}
	}
}
