/* cuda_test.c: what works on a GPU (cuda_fixture.h). With the argument `absent` there is no driver, with `old`
 * one that lacks a function. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/cuda_fixture.h"

/* --- what works --- */

static void
launches(void **state)
{
	(void)state;
	Whole w = {.stream = &w};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	if (whole_launch(&w, &o))
		fail_msg("%s", texo_last_error());
	results_are_right(&w);
	assert_false(w.fault.failed || w.fault.cut);
	assert_ptr_equal(fake->stream, &w);
	assert_int_equal(fake->launches, 3);
	assert_int_equal(fake->loads, 3);
	assert_true(fake->blocks >= 1 && fake->threads >= 1 && fake->threads <= IMAGE_CUDA_BLOCK);
	whole_end(&w);
	nothing_alive();
}

static void
a_fault_is_told(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	w.f.ids[2] = 5;
	assert_int_equal(whole_launch(&w, &o), TEXO_OK);
	assert_true(w.fault.failed);
	assert_int_equal(w.fault.line, 7);
	assert_int_equal(w.fault.col, 5);
	assert_string_equal(w.fault.access, "table[ids[i]]");
	int64_t good[4] = {0, 1, 2, 3}; /* and not for ever */
	assert_int_equal(cuda_copy_in(w.rt, w.memory[1], good, sizeof good), TEXO_OK);
	assert_int_equal(whole_run(&w), TEXO_OK);
	assert_false(w.fault.failed);
	whole_end(&w);
	nothing_alive();
}

/* N = 0: two of three kernels have no tasks. */
static void
only_what_runs_is_loaded(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 0;
	w.f.shape_acc[0] = 1;
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	assert_int_equal(fake->loads, 0);
	assert_int_equal(whole_move_in(&w), TEXO_OK); /* prepares */
	assert_int_equal(fake->loads, 1);
	assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
	assert_int_equal(fake->launches, 1);
	assert_int_equal(fake->loads, 1);
	whole_end(&w);
	nothing_alive();
}

static void
a_prepared_launch_can_be_captured(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(fake->loads, 3);
	fake->capturing = 1;
	assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, &w), TEXO_OK);
	assert_int_equal(texo_kernel_prepare(w.kernel, w.f.arg, FIRST_ARGS), TEXO_OK); /* again: nothing is left to do */
	fake->capturing = 0;
	assert_int_equal(fake->launches, 3);
	assert_int_equal(whole_run(&w), TEXO_OK);
	whole_end(&w);
	nothing_alive();
}

static void
strided_rows(void **state)
{
	int64_t columns[2], backwards;
	texo_rt_options o = cuda_options();
	Whole w = {.image = rows_image, .stream = &w}, plain = {.image = rows_image};
	(void)state;
	strided_init(&w, columns, &backwards);
	if (whole_start(&w, &o) || whole_move_in(&w))
		fail_msg("%s", texo_last_error());
	assert_int_equal(fake->loads, 4); /* three kernels, the copies */
	fake->capturing = 1;
	assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, &w), TEXO_OK);
	fake->capturing = 0;
	assert_int_equal(fake->copies, 4); /* x and acc in; acc and y out */
	assert_int_equal(fake->launches, 7);
	whole_end(&w);
	w = (Whole){.image = rows_image};
	strided_init(&w, columns, &backwards);
	assert_int_equal(whole_launch(&w, &o), TEXO_OK);
	strided_results(&w);
	whole_end(&w);
	fake_reset();
	first_init(&plain.f); /* and nothing of that where rows are rows */
	assert_int_equal(whole_launch(&plain, &o), TEXO_OK);
	results_are_right(&plain);
	assert_int_equal(fake->copies, 0);
	assert_int_equal(fake->loads, 3);
	whole_end(&plain);
	nothing_alive();
}

/* Machine code comes first; a driver that doesn't take it is given the text. */
static void
machine_code(void **state)
{
	texo_rt_options o = cuda_options();
	(void)state;
	for (int cubins = 0; cubins < 3; cubins++) {
		Whole w = {.image = assembled};
		first_init(&w.f);
		fake->cubins = cubins;
		assert_int_equal(whole_launch(&w, &o), TEXO_OK);
		results_are_right(&w);
		whole_end(&w);
	}
	fake->cubins = 1;
	Whole older = {0}; /* sm_80's is for no 9.0: there is the text */
	size_t n;
	void *portable_code = fixture_image_assembled("sm_80", &n);
	first_init(&older.f);
	assert_int_equal(texo_rt_create(&o, &older.rt), TEXO_OK);
	assert_int_equal(texo_rt_load(older.rt, portable_code, n, &older.program), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(older.program, "first", &older.kernel), TEXO_OK);
	if (whole_move_in(&older) || whole_run(&older))
		fail_msg("%s", texo_last_error());
	assert_non_null(fake->text);
	results_are_right(&older);
	whole_end(&older);
	free(portable_code);
	fake->major = 10; /* sm_90a's is for no other */
	texo_rt *rt;
	texo_program *p;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, assembled, assembled_size, &p), TEXO_BAD_ARTEFACT, "9.0 alone");
	texo_rt_destroy(rt);
	nothing_alive();
}

static void
status_before_a_launch(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = cuda_options();
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	w.fault = (texo_fault){.struct_size = sizeof w.fault};
	assert_int_equal(texo_kernel_status(w.kernel, &w.fault), TEXO_OK);
	assert_false(w.fault.failed || w.fault.cut);
	whole_end(&w);
	nothing_alive();
}

/* --- main --- */

static void
no_driver(const char *words)
{
	texo_rt_options o = cuda_options();
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

int
main(int argc, char **argv)
{
	const struct CMUnitTest absent_tests[] = {cmocka_unit_test(absent)}, old_tests[] = {cmocka_unit_test(old)};
	const struct CMUnitTest strided_tests[] = {cmocka_unit_test_setup(strided_rows, set_up)};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(launches, set_up),
		cmocka_unit_test_setup(a_fault_is_told, set_up),
		cmocka_unit_test_setup(only_what_runs_is_loaded, set_up),
		cmocka_unit_test_setup(a_prepared_launch_can_be_captured, set_up),
		cmocka_unit_test_setup(strided_rows, set_up),
		cmocka_unit_test_setup(machine_code, set_up),
		cmocka_unit_test_setup(status_before_a_launch, set_up),
	};
	if (argc > 1 && strcmp(argv[1], "absent") == 0) {
		if (dlopen("libcuda.so.1", RTLD_NOW)) {
			printf("skipped: there is a driver\n");
			return 77;
		}
		return cmocka_run_group_tests_name("absent", absent_tests, NULL, NULL);
	}
	if (argc > 1 && strcmp(argv[1], "strided") == 0)
		return open_fake() || cmocka_run_group_tests_name("strided", strided_tests, NULL, NULL);
	if (argc > 1)
		return cmocka_run_group_tests_name("old", old_tests, NULL, NULL);
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
