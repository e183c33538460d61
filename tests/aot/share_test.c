/* share_test.c: code compiled ahead of time runs on the runtime that the host program gives it, and only the
 * first one counts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "calls.h"
#include "ir/image.h"
#include "texo_rt.h"

enum { ROWS = 4096, COLUMNS = 256 };

/* The host's own way to run places: here, one after another. */
static void
in_turn(void *user, uint32_t n, void (*body)(void *arg, uint32_t k), void *arg)
{
	unsigned *turns = user;
	*turns += 1;
	for (uint32_t k = n; k-- > 0;)
		body(arg, k);
}

static void
the_hosts_runtime(void **state)
{
	(void)state;
	unsigned turns = 0;
	texo_rt *rt, *other;
	texo_rt_options o = TEXO_INIT(texo_rt_options);
	o.threads = 4;
	o.parallel_for = in_turn;
	o.parallel_user = &turns;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	assert_int_equal(texo_rt_share(NULL), TEXO_INVALID);
	assert_int_equal(texo_rt_share(rt), TEXO_OK);
	texo_rt_destroy(rt);
	assert_int_equal(texo_rt_create(NULL, &other), TEXO_OK);
	assert_int_equal(texo_rt_share(other), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "the code that was compiled ahead of time has a runtime already");
	texo_rt_destroy(other);
	float *x = malloc(sizeof(float[ROWS * COLUMNS])), *y = malloc(sizeof(float[ROWS * COLUMNS]));
	assert_true(x && y);
	for (int k = 0; k < ROWS * COLUMNS; k++)
		x[k] = (float)k;
	assert_int_equal(scale(x, 2, y, ROWS, COLUMNS, NULL), TEXO_OK);
	for (int k = 0; k < ROWS * COLUMNS; k++)
		assert_true(y[k] == 2 * (float)k);
	assert_true(turns > 0);
	assert_int_equal(scale(x, 2, x, ROWS, COLUMNS, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "argument y is written and shares memory with argument x");
	free(x);
	free(y);
}

/* An object for a processor, or a runtime, that isn't here. */
static void
objects_of_others(void **state)
{
	(void)state;
	ImageHeader tables = {.needs = {UINT64_C(1) << 62, 0}};
	ImageLevel level = {&tables, NULL};
	ImageObject object = {IMAGE_VERSION, 1, &level, 0, NULL, NULL};
	const texo_object *o = (const texo_object *)(const void *)&object;
	const char *unknown = "the code needs a processor feature that this runtime doesn't know, which this processor lacks";
	for (int n = 0; n < 2; n++) {
		assert_int_equal(texo_object_room(o, 0), 0);
		assert_int_equal(texo_object_call(o, 0, NULL, NULL, NULL, NULL), TEXO_NO_DEVICE);
		assert_string_equal(texo_last_error(), unknown);
		assert_int_equal(texo_object_call_dl(o, 0, NULL, 0, NULL, NULL), TEXO_NO_DEVICE);
		assert_int_equal(texo_object_workspace(o, 0, NULL, NULL, NULL), SIZE_MAX);
		tables.needs[0] = 0;
		tables.needs[1] = 1;
	}
	tables.needs[1] = 0;
	object.version++;
	assert_int_equal(texo_object_call(o, 0, NULL, NULL, NULL, NULL), TEXO_BAD_ARTEFACT);
	assert_string_equal(texo_last_error(), "the code is for another version of libtexo-rt");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(the_hosts_runtime), cmocka_unit_test(objects_of_others)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
