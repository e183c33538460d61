/* load_test.c: loading: no page is ever writable and executable, a processor that lacks a feature is
 * told so, memory running out at any place leaks nothing, programs and runtimes end in any order. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ir/image.h"
#include "tests/runtime/fixture.h"

static uint8_t *image;
static size_t bytes;

static int
make(void **state)
{
	(void)state;
	image = fixture_image(&bytes);
	return 0;
}

static int
drop(void **state)
{
	(void)state;
	free(image);
	return 0;
}

/* --- pages --- */

typedef struct {
	int both, code; /* writable and executable; executable without a file behind */
} Pages;

static Pages
count_pages(void)
{
	char line[512], flags[5], path[256];
	Pages p = {0};
	FILE *f = fopen("/proc/self/maps", "r");
	assert_non_null(f);
	while (fgets(line, sizeof line, f)) {
		path[0] = 0;
		if (sscanf(line, "%*s %4s %*s %*s %*s %255s", flags, path) < 1)
			continue;
		p.both += flags[1] == 'w' && flags[2] == 'x';
		p.code += flags[2] == 'x' && path[0] == 0;
	}
	fclose(f);
	return p;
}

static void
pages_are_written_or_run(void **state)
{
	(void)state;
	texo_rt *rt;
	texo_program *program;
	Pages before = count_pages();
	assert_int_equal(texo_rt_create(NULL, &rt), TEXO_OK);
	assert_int_equal(texo_rt_load(rt, image, bytes, &program), TEXO_OK);
	Pages loaded = count_pages();
	assert_int_equal(loaded.both, before.both);
	assert_int_equal(loaded.code, before.code + 1);
	texo_program_destroy(program);
	assert_int_equal(count_pages().code, before.code);
	texo_rt_destroy(rt);
}

/* --- features --- */

static void
redigest(void)
{
	size_t from = offsetof(ImageHeader, digest) + 8;
	uint64_t h = image_digest(image + from, bytes - from);
	memcpy(image + from - 8, &h, 8);
}

static texo_status
load_with_needs(texo_rt *rt, uint64_t low, uint64_t high)
{
	texo_program *program;
	ImageHeader h;
	memcpy(&h, image, sizeof h);
	uint64_t old[2] = {h.needs[0], h.needs[1]};
	h.needs[0] = low;
	h.needs[1] = high;
	memcpy(image, &h, sizeof h);
	redigest();
	texo_status s = texo_rt_load(rt, image, bytes, &program);
	texo_program_destroy(program);
	memcpy(h.needs, old, sizeof old);
	memcpy(image, &h, sizeof h);
	redigest();
	return s;
}

static void
features_are_asked_for(void **state)
{
	(void)state;
	static const char *const feature[] = {
#define FEATURE(id, text, leaf, sub, reg, bit, state) text,
#include "ir/cpu_features.def"
	};
	enum { COUNT = sizeof feature / sizeof *feature };
	char list[8192] = " ", line[8192], want[128];
	texo_rt *rt;
	FILE *f = fopen("/proc/cpuinfo", "r"); /* an independent opinion */
	assert_non_null(f);
	while (fgets(line, sizeof line, f))
		if (strncmp(line, "flags", 5) == 0)
			snprintf(list, sizeof list, "%s ", strchr(line, ':') + 1);
	fclose(f);
	assert_int_equal(texo_rt_create(NULL, &rt), TEXO_OK);
	for (unsigned k = 0; k < COUNT; k++) {
		texo_status s = load_with_needs(rt, UINT64_C(1) << k, 0);
		assert_true(s == TEXO_OK || s == TEXO_BAD_ARTEFACT);
		snprintf(want, sizeof want, "the artefact needs %s, which this processor lacks", feature[k]);
		if (s)
			assert_string_equal(texo_last_error(), want);
		if (strcmp(feature[k], "avx512f") == 0 || strcmp(feature[k], "avx2") == 0 || strcmp(feature[k], "fma") == 0) {
			snprintf(want, sizeof want, " %s ", feature[k]);
			assert_int_equal(s == TEXO_OK, strstr(list, want) != NULL);
		}
	}
	assert_int_equal(load_with_needs(rt, UINT64_C(1) << 63, 0), TEXO_BAD_ARTEFACT);
	assert_int_equal(load_with_needs(rt, 0, 1), TEXO_BAD_ARTEFACT);
	assert_int_equal(load_with_needs(rt, 0, 0), TEXO_OK);
	texo_rt_destroy(rt);
}

/* --- memory --- */

typedef struct {
	long left, live; /* allocations until failure; not freed */
} Memory;

static void *
take(void *user, size_t n)
{
	Memory *m = user;
	if (m->left-- <= 0)
		return NULL;
	m->live++;
	return malloc(n);
}

static void *
retake(void *user, void *p, size_t n)
{
	(void)user;
	return realloc(p, n);
}

static void
give(void *user, void *p)
{
	Memory *m = user;
	m->live -= p != NULL;
	free(p);
}

static void
memory_may_run_out(void **state)
{
	(void)state;
	long failures = 0;
	for (long n = 0;; n++) {
		Memory m = {n, 0};
		texo_rt_options o = {.struct_size = sizeof o, .alloc = take, .resize = retake, .release = give, .user = &m};
		texo_rt *rt = NULL;
		texo_program *program = NULL;
		texo_status s = texo_rt_create(&o, &rt);
		if (!s)
			s = texo_rt_load(rt, image, bytes, &program);
		assert_true(s == TEXO_OK || s == TEXO_NO_MEMORY);
		if (s)
			assert_null(program);
		texo_rt_destroy(rt);
		texo_program_destroy(program);
		assert_int_equal(m.live, 0);
		failures += s != TEXO_OK;
		if (s == TEXO_OK)
			break;
	}
	assert_true(failures > 10);
}

/* A launch allocates nothing. */
static void
launches_take_no_memory(void **state)
{
	(void)state;
	Memory m = {1000, 0};
	texo_rt_options o = {.struct_size = sizeof o, .alloc = take, .resize = retake, .release = give, .user = &m};
	texo_rt *rt;
	texo_program *program;
	texo_kernel *k;
	First f;
	first_init(&f);
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	assert_int_equal(texo_rt_load(rt, image, bytes, &program), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(program, "first", &k), TEXO_OK);
	m.left = 0;
	assert_int_equal(texo_kernel_launch(k, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
	assert_true(f.acc[0] == 10.25f);
	texo_program_destroy(program);
	texo_rt_destroy(rt);
	assert_int_equal(m.live, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_are_written_or_run),
		cmocka_unit_test(features_are_asked_for),
		cmocka_unit_test(memory_may_run_out),
		cmocka_unit_test(launches_take_no_memory),
	};
	return cmocka_run_group_tests(tests, make, drop);
}
