/* cuda_late_test.c: artefacts whose kernels' code is made when it is first wanted (cuda_fixture.h): by whom, how
 * often, and what becomes of a failure. The code is that of the artefact that has it all. */
#include <stdio.h>
#include <string.h>

#include "tests/runtime/cuda_fixture.h"

static void *late_image;
static size_t late_size;

typedef struct {
	int made, released;
	texo_status fails;
	bool machine; /* beside the text */
} Maker;

static const char *
text_of(const char *symbol)
{
	const ImageHeader *h = image;
	const ImageModule *m = (const void *)((const char *)image + h->module.at);
	char entry[64];
	snprintf(entry, sizeof entry, ".entry %s(", symbol);
	for (uint64_t n = 0; n < h->module.n; n++) {
		const char *text = (const char *)image + h->code.at + m[n].at;
		if (m[n].form == IMG_PTX && strstr(text, entry))
			return text;
	}
	return NULL;
}

static texo_status
make(void *user, const char *symbol, int serial, const char *tir, size_t n, texo_private_code *out)
{
	static const char code[64] = "\177ELF";
	Maker *m = user;
	assert_true(serial == 1 && strncmp(tir, "kernel ", 7) == 0 && strlen(tir) == n);
	m->made++;
	if (m->fails)
		return texo_private_fail(m->fails, "this is no day for %s", symbol);
	*out = (texo_private_code){m->machine ? code : NULL, text_of(symbol), m};
	return TEXO_OK;
}

static void
release(void *user, texo_private_code *code)
{
	assert_ptr_equal(code->memory, user);
	((Maker *)user)->released++;
}

static texo_status
start_late(Whole *w, Maker *m)
{
	texo_rt_options o = cuda_options();
	const texo_private_maker maker = {make, release, m};
	first_init(&w->f);
	assert_int_equal(texo_rt_create(&o, &w->rt), TEXO_OK);
	texo_status s = texo_private_load(w->rt, late_image, late_size, m ? &maker : NULL, &w->program);
	return s ? s : texo_program_get_kernel(w->program, "first", &w->kernel);
}

static void
each_is_made_once(void **state)
{
	(void)state;
	for (int machine = 0; machine < 4; machine++) { /* code that the driver takes, and that it doesn't */
		Maker m = {.machine = machine & 1};
		Whole w = {0};
		fake_reset();
		fake->cubins = machine >> 1;
		assert_int_equal(start_late(&w, &m), TEXO_OK);
		assert_int_equal(m.made, 0);
		assert_int_equal(whole_move_in(&w), TEXO_OK); /* prepares */
		assert_int_equal(m.made, 3);
		assert_int_equal(m.released, 3);
		assert_int_equal(fake->loads, 3);
		fake->capturing = 1;
		assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
		fake->capturing = 0;
		assert_int_equal(whole_run(&w), TEXO_OK);
		assert_int_equal(m.made, 3);
		whole_end(&w);
		nothing_alive();
	}
}

static void
results(void **state)
{
	Maker m = {0};
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(whole_run(&w), TEXO_OK);
	results_are_right(&w);
	whole_end(&w);
	nothing_alive();
}

/* N = 0: two of three kernels have no tasks. */
static void
what_does_not_run_is_not_made(void **state)
{
	Maker m = {0};
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 0;
	w.f.shape_acc[0] = 1;
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(m.made, 1);
	whole_end(&w);
	nothing_alive();
}

static void
failures_are_statuses(void **state)
{
	static const texo_status status[] = {TEXO_NO_MEMORY, TEXO_NO_DEVICE, TEXO_LIMIT, TEXO_BAD_ARTEFACT, TEXO_INTERNAL};
	(void)state;
	for (unsigned k = 0; k < sizeof status / sizeof *status; k++) {
		Maker m = {.fails = status[k]};
		Whole w = {0};
		fake_reset();
		assert_int_equal(start_late(&w, &m), TEXO_OK);
		REFUSED(whole_move_in(&w), status[k], "this is no day for first_0_0");
		assert_int_equal(m.made, 1);
		assert_int_equal(m.released, 0);
		assert_int_equal(fake->loads, 0);
		whole_end(&w);
		nothing_alive();
	}
}

static void
nobody_makes_it(void **state)
{
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, NULL), TEXO_OK);
	REFUSED(whole_move_in(&w), TEXO_BAD_ARTEFACT, "the artefact has no code for kernel scale on Fake");
	whole_end(&w);
	nothing_alive();
}

static void
a_capture_loads_nothing(void **state)
{
	static const char words[] = "the stream is being captured, and code that this launch needs is not loaded";
	Maker m = {0};
	Whole w = {0};
	(void)state;
	assert_int_equal(start_late(&w, &m), TEXO_OK);
	m.fails = TEXO_LIMIT;
	REFUSED(whole_move_in(&w), TEXO_LIMIT, "this is no day"); /* all is there but the code, and the workspace */
	m = (Maker){0};
	assert_int_equal(cuda_memory_alloc(w.rt, 4096, &w.workspace), TEXO_OK);
	fake->cleared = 0;
	fake->capturing = 1;
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, &w), TEXO_INVALID, words);
	fake->capturing = 0;
	assert_int_equal(m.made, 0);
	assert_int_equal(fake->launches, 0);
	assert_int_equal(fake->cleared, 0); /* nothing is on the stream */
	assert_int_equal(whole_run(&w), TEXO_OK);
	assert_int_equal(m.made, 3);
	whole_end(&w);
	nothing_alive();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(each_is_made_once, set_up),
		cmocka_unit_test_setup(results, set_up),
		cmocka_unit_test_setup(what_does_not_run_is_not_made, set_up),
		cmocka_unit_test_setup(failures_are_statuses, set_up),
		cmocka_unit_test_setup(nobody_makes_it, set_up),
		cmocka_unit_test_setup(a_capture_loads_nothing, set_up),
	};
	late_image = fixture_image_late("sm_90a", &late_size);
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
