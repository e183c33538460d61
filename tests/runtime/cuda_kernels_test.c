/* cuda_kernels_test.c: artefacts whose tables say other things of their kernels (cuda_fixture.h): which of them run, in
 * what grid, and what memory they are given. */
#include <stdlib.h>

#include "tests/runtime/cuda_fixture.h"

/* What can't fail has no status to clear; the memory of one is as it was. */
static void
nothing_is_cleared_for_nothing(void **state)
{
	(void)state;
	char *copy = image_of_rows();
	ImageHeader *h = (ImageHeader *)(void *)copy;
	((ImageGraph *)(void *)(copy + h->graph.at))->naccess = 0;
	image_seal(copy);
	texo_rt_options o = cuda_options();
	for (int with = 0; with < 2; with++) {
		Whole w = {.image = with ? NULL : copy};
		first_init(&w.f);
		fake->cleared = 0;
		assert_int_equal(whole_launch(&w, &o), TEXO_OK);
		results_are_right(&w);
		assert_int_equal(fake->cleared != 0, with);
		assert_false(w.fault.failed || w.fault.cut);
		whole_end(&w);
	}
	nothing_alive();
	free(copy);
}

/* What tasks post is cleared before its kernel, in the workspace, also of a launch that is captured; what they only pass on is as
 * large, and left as it is. */
static void
posts_are_cleared(void **state)
{
	(void)state;
	char *copy = image_of_rows();
	ImageHeader *h = (ImageHeader *)(void *)copy;
	ImageKernel *kernel = (ImageKernel *)(void *)(copy + h->kernel.at) + 1;
	ImageBind *bind = (ImageBind *)(void *)(copy + h->bind.at) + kernel->bind0 + 4; /* the words of y: as large as 4 of 64 bits */
	assert_int_equal(bind->kind, IMG_BIND_TENSOR);
	*bind = (ImageBind){.kind = IMG_BIND_CLEARED, .a = kernel->ntask, .b = DT_U64};
	texo_rt_options o = cuda_options();
	size_t all[4];
	for (int with = 0; with < 4; with++) {
		bind->kind = with < 2 ? IMG_BIND_CLEARED : IMG_BIND_PASSED;
		if (with == 3) { /* accessed by groups: it begins with a line, whatever tensors do */
			bind->group = IMG_GROUPS;
			kernel->when = IMG_ALIGNED;
		}
		image_seal(copy);
		Whole w = {.image = with ? copy : NULL};
		first_init(&w.f);
		size_t bytes;
		assert_int_equal(whole_launch(&w, &o), TEXO_OK);
		results_are_right(&w);
		assert_int_equal(texo_kernel_workspace(w.kernel, w.f.arg, FIRST_ARGS, &bytes), TEXO_OK);
		fake->cleared = 0;
		fake->capturing = 1;
		assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, &w), TEXO_OK);
		fake->capturing = 0;
		uintptr_t at = fake->cleared - (uintptr_t)w.workspace;
		assert_int_equal(at < bytes, with == 1);
		assert_true(with != 1 || at == bytes - 64);
		all[with] = bytes;
		whole_end(&w);
	}
	assert_int_equal(all[1], all[2]);
	assert_int_equal(all[1], all[3]);
	assert_int_not_equal(texo_rt_load(host_rt, copy, image_size, &(texo_program *){NULL}), TEXO_OK);
	nothing_alive();
	free(copy);
}

/* Behind a kernel that runs whatever the memory is like, those that do the same have no tensors in the workspace; where it
 * asks for alignment, they have. */
static void
what_never_runs_has_no_memory(void **state)
{
	(void)state;
	char *copy = image_of_rows();
	ImageHeader *h = (ImageHeader *)(void *)copy;
	ImageKernel *kernel = (ImageKernel *)(void *)(copy + h->kernel.at);
	size_t bytes[3];
	texo_rt_options o = cuda_options();
	for (int with = 0; with < 3; with++) {
		Whole w = {.image = copy};
		first_init(&w.f);
		if (with == 1) {
			kernel[0].when = kernel[1].when = IMG_ALIGNED;
			kernel[2].when = IMG_ELSE;
		}
		if (with == 2) {
			ImageBind *group = (ImageBind *)(void *)(copy + h->bind.at) + kernel->bind0;
			group->group = 1;
		}
		image_seal(copy);
		if (whole_start(&w, &o) || whole_move_in(&w))
			fail_msg("%d: %s", with, texo_last_error());
		assert_int_equal(texo_kernel_workspace(w.kernel, w.f.arg, FIRST_ARGS, &bytes[with]), TEXO_OK);
		whole_end(&w);
	}
	assert_true(bytes[1] < bytes[0]);
	assert_int_equal(bytes[2], bytes[0]);
	nothing_alive();
	free(copy);
}

/* A kernel that runs stands for so many behind it, one without tasks for none; there are so many at most. */
static void
what_is_covered_does_not_run(void **state)
{
	(void)state;
	char *copy = image_of_rows();
	ImageHeader *h = (ImageHeader *)(void *)copy;
	ImageKernel *kernel = (ImageKernel *)(void *)(copy + h->kernel.at);
	texo_rt_options o = cuda_options();
	for (uint32_t covers = 0; covers < 4; covers++) {
		kernel->covers = covers;
		image_seal(copy);
		for (int rows = 0; rows < 2; rows++) {
			Whole w = {.image = copy};
			first_init(&w.f);
			if (!rows) { /* only the last kernel has tasks */
				w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 0;
				w.f.shape_acc[0] = 1;
			}
			int s = whole_start(&w, &o);
			assert_int_equal(s != TEXO_OK, covers == 3);
			if (!s) {
				assert_int_equal(whole_move_in(&w), TEXO_OK);
				fake->launches = 0;
				assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
				assert_int_equal(fake->launches, rows ? 3 - covers : 1);
			}
			whole_end(&w);
		}
	}
	nothing_alive();
	free(copy);
}

/* A kernel that follows another one runs where that one does: where that has its tasks and its alignment, and where what follows has
 * its own. There is one before it. */
static void
what_follows_runs_after(void **state)
{
	enum { RUNS, NO_TASKS, NOT_ALIGNED, AFTER_NOT_ALIGNED, FIRST, WAYS };
	static const int launches[WAYS] = {3, 1, 1, 1, -1};
	(void)state;
	texo_rt_options o = cuda_options();
	for (int way = 0; way < WAYS; way++) {
		char *copy = image_of_rows();
		ImageHeader *h = (ImageHeader *)(void *)copy;
		ImageKernel *kernel = (ImageKernel *)(void *)(copy + h->kernel.at);
		ImageBind *bind = (ImageBind *)(void *)(copy + h->bind.at);
		kernel[0].when = way == FIRST ? IMG_AFTER : IMG_ALIGNED;
		kernel[1].when = IMG_AFTER;
		if (way == NOT_ALIGNED || way == AFTER_NOT_ALIGNED)
			bind[kernel[way == AFTER_NOT_ALIGNED].bind0].group = IMG_GROUPS;
		image_seal(copy);
		Whole w = {.image = copy};
		first_init(&w.f);
		if (way == NO_TASKS) {
			w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 0;
			w.f.shape_acc[0] = 1;
		}
		int s = whole_start(&w, &o);
		assert_int_equal(s != TEXO_OK, way == FIRST);
		if (!s) {
			assert_int_equal(whole_move_in(&w), TEXO_OK);
			fake->launches = 0;
			assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
			if (fake->launches != launches[way])
				fail_msg("way %d: %d launches", way, fake->launches);
		}
		whole_end(&w);
		nothing_alive();
		free(copy);
	}
}

/* Kernels whose tasks are a thread each, as many as keep all processors busy (nothing is computed: there is no such
 * memory). The last kernel has 2N + 1 tasks. */
static void
a_thread_a_task(void **state)
{
	static const struct {
		int64_t n;
		int processors;
		unsigned blocks, threads;
	} row[] = {
		{4, 132, 1, 32}, {10000, 132, 157, 128}, {1 << 20, 132, 8193, 256}, {1 << 21, 132, 132 * 64, 256}, {1 << 20, 0, 64, 256},
	};
	char *copy = image_of_rows();
	const ImageHeader *h = (const ImageHeader *)(void *)copy;
	texo_rt_options o = cuda_options();
	(void)state;
	for (unsigned k = 0; k < 3; k++)
		((ImageKernel *)(void *)(copy + h->kernel.at))[k].serial = 0;
	image_seal(copy);
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		Whole w = {.image = copy};
		first_init(&w.f);
		fake->processors = row[n].processors;
		fake->run = NULL;
		assert_int_equal(whole_start(&w, &o), TEXO_OK);
		w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = row[n].n;
		w.f.shape_acc[0] = 2 * row[n].n + 1;
		for (int t = 0; t < TENSORS; t++) {
			w.f.tensor[t].device = (DLDevice){kDLCUDA, 0};
			w.f.tensor[t].data = (void *)(uintptr_t)((uint64_t)(t + 1) << 32);
		}
		assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, (void *)((uintptr_t)1 << 40), NULL), TEXO_OK);
		assert_int_equal(fake->blocks, row[n].blocks);
		assert_int_equal(fake->threads, row[n].threads);
		whole_end(&w);
	}
	nothing_alive();
	free(copy);
}

/* A kernel that accesses an intermediate tensor by groups runs where its rows are whole ones: of 4 elements, not of 3. */
static void
intermediates_in_groups(void **state)
{
	char *copy = image_of_rows();
	const ImageHeader *h = (const ImageHeader *)(void *)copy;
	ImageKernel *gather = (ImageKernel *)(void *)(copy + h->kernel.at) + 1;
	ImageBind *t = (ImageBind *)(void *)(copy + h->bind.at) + gather->bind0;
	texo_rt_options o = cuda_options();
	(void)state;
	assert_int_equal(t->kind, IMG_BIND_TENSOR);
	t->group = 1;
	gather->when = IMG_ALIGNED;
	image_seal(copy);
	for (int fours = 0; fours < 2; fours++) {
		Whole w = {.image = copy};
		first_init(&w.f);
		if (fours) {
			w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 2;
			w.f.shape_x[1] = w.f.shape_y[1] = 4;
			w.f.shape_acc[0] = 5;
		}
		if (whole_start(&w, &o) || whole_move_in(&w))
			fail_msg("%s", texo_last_error());
		fake->launches = 0;
		assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
		assert_int_equal(fake->launches, fours ? 3 : 2);
		whole_end(&w);
	}
	nothing_alive();
	free(copy);
}

/* A kernel that takes a tensor's rows for one runs where they lie one after another, from a multiple of 16 bytes on. */
static void
rows_that_are_one(void **state)
{
	static int64_t dense[] = {3, 1}, apart[] = {4, 1};
	static const struct {
		int64_t *strides;
		uint64_t offset;
		int launches;
	} cases[] = {{NULL, 0, 3}, {dense, 0, 3}, {apart, 0, 2}, {dense, 16, 3}, {dense, 8, 2}};
	char *copy = image_of_rows();
	const ImageHeader *h = (const ImageHeader *)(void *)copy;
	ImageKernel *kernel = (ImageKernel *)(void *)(copy + h->kernel.at);
	ImageBind *bind = (ImageBind *)(void *)(copy + h->bind.at) + kernel->bind0;
	texo_rt_options o = cuda_options();
	(void)state;
	for (uint32_t b = 0; b < kernel->nbuffer; b++)
		bind[b].group = IMG_ROW_MAJOR;
	kernel->when = IMG_ALIGNED;
	image_seal(copy);
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		Whole w = {.image = copy};
		first_init(&w.f);
		w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = 2;
		w.f.shape_acc[0] = 5;
		if (whole_start(&w, &o) || whole_move_in(&w))
			fail_msg("%s", texo_last_error());
		w.f.tensor[0].strides = cases[c].strides;
		w.f.tensor[0].byte_offset = cases[c].offset;
		fake->launches = 0;
		assert_int_equal(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_OK);
		assert_int_equal(fake->launches, cases[c].launches);
		whole_end(&w);
	}
	bind->group = IMG_GROUP_KINDS;
	image_seal(copy);
	Whole w = {.image = copy};
	first_init(&w.f);
	assert_int_equal(whole_start(&w, &o), TEXO_BAD_ARTEFACT);
	whole_end(&w);
	nothing_alive();
	free(copy);
}

/* A graph may have no kernels, as one whose result is nothing. */
static void
no_kernels(void **state)
{
	(void)state;
	char *copy = image_of_rows();
	ImageHeader *h = (ImageHeader *)(void *)copy;
	((ImageGraph *)(void *)(copy + h->graph.at))->nkernel = 0;
	image_seal(copy);
	Whole w = {.image = copy};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	assert_int_equal(whole_run(&w), TEXO_OK);
	assert_int_equal(fake->launches, 0);
	whole_end(&w);
	nothing_alive();
	free(copy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(nothing_is_cleared_for_nothing, set_up),
		cmocka_unit_test_setup(posts_are_cleared, set_up),
		cmocka_unit_test_setup(what_never_runs_has_no_memory, set_up),
		cmocka_unit_test_setup(what_is_covered_does_not_run, set_up),
		cmocka_unit_test_setup(what_follows_runs_after, set_up),
		cmocka_unit_test_setup(a_thread_a_task, set_up),
		cmocka_unit_test_setup(intermediates_in_groups, set_up),
		cmocka_unit_test_setup(rows_that_are_one, set_up),
		cmocka_unit_test_setup(no_kernels, set_up),
	};
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
