/* cache_test.c: the memory cache: what is the same program and what is not, how long a hit takes, what
 * is dropped; and one context used by many threads. usage: cache_test [THREADS ROUNDS] */
#define _POSIX_C_SOURCE 200809L
#include "tests/library/fixture.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static Allocator heap;
static texo_ctx *ctx;
static int threads = 8, rounds = 6;
static unsigned often = 4; /* one compilation in so many passes the cache by, one more asks for any text */

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

static texo_kernel *
kernel_of(const char *text, const char *name, const texo_options *o)
{
	texo_module *m;
	texo_kernel *k;
	assert_int_equal(texo_compile_string(ctx, text, strlen(text), name, o, &m), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(m, NULL, &k), TEXO_OK);
	texo_module_destroy(m);
	return k;
}

/* --- what is the same --- */

static void
same_request_same_kernel(void **state)
{
	(void)state;
	texo_options o = TEXO_INIT(texo_options);
	char copy[512];
	snprintf(copy, sizeof copy, "%s", softmax_text);
	texo_kernel *k = kernel_of(softmax_text, "a.tex", NULL);
	assert_ptr_equal(kernel_of(copy, "a.tex", NULL), k);
	assert_ptr_equal(kernel_of(softmax_text, "a.tex", &o), k);
	o.target = "cpu"; /* what is the default is not another request */
	o.fp = "relaxed";
	o.fuse = "all";
	assert_ptr_equal(kernel_of(softmax_text, "a.tex", &o), k);
}

static void
every_part_counts(void **state)
{
	(void)state;
	static const char *const four[] = {"M=4"}, *const five[] = {"M=5"};
	const texo_options plain = TEXO_INIT(texo_options);
	texo_options o[7];
	for (unsigned n = 0; n < 7; n++)
		o[n] = plain;
	o[0].target = "cpu:x86-64-v3";
	o[1].fp = "strict";
	o[2].fuse = "off";
	o[3].statics = four, o[3].nstatics = 1;
	o[4].statics = five, o[4].nstatics = 1;
	o[5].flags = TEXO_WERROR;
	o[6].flags = TEXO_NO_FILES;
	texo_kernel *seen[10] = {kernel_of(softmax_text, "a.tex", NULL), kernel_of(softmax_text, "b.tex", NULL)};
	char other[512];
	snprintf(other, sizeof other, "%s\n", softmax_text);
	seen[2] = kernel_of(other, "a.tex", NULL);
	for (unsigned n = 0; n < 7; n++)
		seen[n + 3] = kernel_of(softmax_text, "a.tex", &o[n]);
	for (unsigned a = 0; a < 10; a++)
		for (unsigned b = 0; b < a; b++)
			assert_ptr_not_equal(seen[a], seen[b]);
}

static void
can_be_left_out(void **state)
{
	(void)state;
	texo_options o = TEXO_INIT(texo_options);
	texo_module *a, *b;
	texo_kernel *ka, *kb;
	o.flags = TEXO_NO_CACHE;
	assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), "a.tex", &o, &a), TEXO_OK);
	assert_int_equal(texo_compile_string(ctx, softmax_text, strlen(softmax_text), "a.tex", &o, &b), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(a, NULL, &ka), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(b, NULL, &kb), TEXO_OK);
	assert_ptr_not_equal(ka, kb);
	texo_module_destroy(a);
	texo_module_destroy(b);
}

/* --- how long, how much --- */

static int64_t
now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* The least of many, which other work on the machine can't make longer. */
static void
a_hit_is_quick(void **state)
{
	(void)state;
	int64_t least = INT64_MAX;
	kernel_of(softmax_text, "a.tex", NULL);
	for (int n = 0; n < 2000; n++) {
		texo_module *m;
		texo_kernel *k;
		int64_t start = now();
		texo_compile_string(ctx, softmax_text, strlen(softmax_text), "a.tex", NULL, &m);
		texo_module_get_kernel(m, NULL, &k);
		int64_t took = now() - start;
		texo_module_destroy(m);
		least = took < least ? took : least;
	}
	print_message("a hit: %lld ns\n", (long long)least);
	assert_in_range(least, 1, 5000);
}

static void
drops_the_oldest(void **state)
{
	(void)state;
	Allocator own;
	texo_ctx_options o = fixture_options(&own);
	texo_ctx *before = ctx;
	char text[8][600];
	texo_kernel *k[8];
	texo_module *held;
	o.cache_bytes = 60 << 10; /* room for a few of them */
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	for (unsigned n = 0; n < 8; n++)
		snprintf(text[n], sizeof text[n], "# %u\n%s", n, softmax_text);
	assert_int_equal(texo_compile_string(ctx, text[0], strlen(text[0]), "a.tex", NULL, &held), TEXO_OK);
	assert_int_equal(texo_module_get_kernel(held, NULL, &k[0]), TEXO_OK);
	for (unsigned n = 1; n < 8; n++)
		k[n] = kernel_of(text[n], "a.tex", NULL);
	assert_ptr_equal(kernel_of(text[7], "a.tex", NULL), k[7]);
	assert_ptr_not_equal(kernel_of(text[0], "a.tex", NULL), k[0]); /* dropped; k[0] lives, held by its module */
	float x[4] = {1, 2, 3, 4}, y[4];
	assert_int_equal(fixture_launch(held, x, y, 2, 2), TEXO_OK);
	fixture_check_softmax(x, y, 2, 2);
	texo_module_destroy(held);
	texo_ctx_destroy(ctx);
	assert_int_equal(own.live, 0);
	ctx = before;
}

/* --- threads --- */

enum { TEXTS = 6, ROWS = 3, COLS = 19 };

typedef struct {
	char text[TEXTS][600];
	float x[ROWS * COLS], want[TEXTS][ROWS * COLS];
	const void *image[TEXTS];
	size_t bytes[TEXTS];
} Shared;

static Shared shared;

/* Like asserts, which cmocka has for its own thread only. */
static bool
same_result(const texo_module *m, int n)
{
	float y[ROWS * COLS];
	const void *image;
	size_t bytes;
	if (fixture_launch(m, shared.x, y, ROWS, COLS) != TEXO_OK || memcmp(y, shared.want[n], sizeof y) != 0)
		return false;
	return n > 0 || (texo_module_emit(m, "image", &image, &bytes) == TEXO_OK && bytes == shared.bytes[n] &&
	                 memcmp(image, shared.image[n], bytes) == 0);
}

static void *
compile_many(void *arg)
{
	texo_options o = TEXO_INIT(texo_options);
	unsigned seed = (unsigned)(uintptr_t)arg;
	for (int r = 0; r < rounds; r++) {
		seed = seed * 1103515245 + 12345;
		unsigned pick = seed >> 16;
		int n = (int)(pick % often == 0 ? pick / often % TEXTS : pick % 2);
		texo_module *m;
		o.flags = pick % often == 1 ? TEXO_NO_CACHE : 0;
		bool good = texo_compile_string(ctx, shared.text[n], strlen(shared.text[n]), "t.tex", &o, &m) == TEXO_OK &&
		            same_result(m, n);
		texo_module_destroy(m);
		if (!good)
			return shared.text[n];
	}
	return NULL;
}

static void
threads_agree(void **state)
{
	(void)state;
	Allocator own;
	texo_ctx_options o = fixture_options(&own);
	texo_ctx *before = ctx;
	texo_module *first[TEXTS];
	pthread_t id[64];
	o.cache_bytes = 40 << 10; /* two or three of them, so that threads drop what others use */
	assert_int_equal(texo_ctx_create(&o, &ctx), TEXO_OK);
	fixture_fill(shared.x, ROWS * COLS);
	for (int n = 0; n < TEXTS; n++) {
		snprintf(shared.text[n], sizeof shared.text[n], "graph g(x: f32[N, M]) -> (y: f32[N, M]) {\n"
		         "  t[i, j] = x[i, j] * %d + sum[k](x[i, k])\n  y[i, j] = t[i, j] / (1 + max[k](abs(t[i, k])))\n}\n", n);
		first[n] = fixture_compile(ctx, shared.text[n]);
		assert_int_equal(fixture_launch(first[n], shared.x, shared.want[n], ROWS, COLS), TEXO_OK);
		assert_int_equal(texo_module_emit(first[n], "image", &shared.image[n], &shared.bytes[n]), TEXO_OK);
	}
	for (int t = 0; t < threads; t++)
		assert_int_equal(pthread_create(&id[t], NULL, compile_many, (void *)(uintptr_t)(t + 1)), 0);
	for (int t = 0; t < threads; t++) {
		void *wrong;
		pthread_join(id[t], &wrong);
		assert_null(wrong);
	}
	for (int n = 0; n < TEXTS; n++)
		texo_module_destroy(first[n]);
	texo_ctx_destroy(ctx);
	assert_int_equal(own.live, 0);
	ctx = before;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(same_request_same_kernel),
		cmocka_unit_test(every_part_counts),
		cmocka_unit_test(can_be_left_out),
		cmocka_unit_test(a_hit_is_quick),
		cmocka_unit_test(drops_the_oldest),
		cmocka_unit_test(threads_agree),
	};
	if (argc == 3) { /* the threads alone */
		threads = atoi(argv[1]);
		rounds = atoi(argv[2]);
		often = 128;
		if (threads < 1 || threads > 64 || rounds < 1)
			return 2;
		return cmocka_run_group_tests_name("threads", ((const struct CMUnitTest[]){tests[5]}), setup, teardown);
	}
	return cmocka_run_group_tests(tests, setup, teardown);
}
