/* cuda_facts_test.c: what is known of a GPU where one plan of several is chosen: the row that a device takes, and launch
 * expressions that ask for its figures. */
#include <stdlib.h>
#include <string.h>

#include "tests/runtime/cuda_fixture.h"

static void
rows_by_name_and_capability(void **state)
{
	static const struct {
		const char *device;
		int sm;
		const char *row;
	} known[] = {
		{"NVIDIA H100 80GB HBM3", 90, "H100"}, {"NVIDIA H100 PCIe", 90, "H100"}, {"NVIDIA H200", 90, "H200"},
		{"NVIDIA A100-SXM4-80GB", 80, "A100"}, {"NVIDIA H20", 90, "H100"}, {"NVIDIA A10G", 83, "A100"},
		{"NVIDIA B200", 100, "H100"}, {"NVIDIA GeForce RTX 5090", 120, "H100"}, {"A100, as it calls itself", 90, "H100"},
		{"", 80, "A100"}};
	(void)state;
	for (unsigned k = 0; k < sizeof known / sizeof *known; k++)
		assert_string_equal(cuda_row(known[k].device, known[k].sm)->name, known[k].row);
}

static void
figures_that_are_possible(void **state)
{
	int64_t fact[GPU_FACTS];
	(void)state;
	cuda_row_facts(cuda_row("H200", 90), 66, fact);
	assert_int_equal(fact[GPU_PROCESSORS], 66);
	assert_int_equal(fact[GPU_MEMORY], cuda_row("H200", 90)->fact[GPU_MEMORY]);
	assert_true(cuda_facts_possible(fact));
	for (unsigned k = 0; k < GPU_FACTS; k++) {
		int64_t was = fact[k];
		fact[k] = 0;
		assert_false(cuda_facts_possible(fact));
		fact[k] = INT64_C(1) << 40;
		assert_false(cuda_facts_possible(fact));
		fact[k] = was;
	}
}

/* Of a launch on a GPU with so many processors; usual: with GRAPH_workspace's room. */
static size_t
workspace_of(const void *measured, size_t n, int processors, bool usual)
{
	texo_rt_options o = cuda_options();
	texo_rt *rt;
	texo_program *p;
	texo_kernel *k;
	First f;
	size_t bytes = 0;
	fake->processors = processors;
	first_init(&f);
	for (unsigned t = 0; t < sizeof f.tensor / sizeof *f.tensor; t++)
		f.tensor[t].device = (DLDevice){kDLCUDA, 0};
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	rt->usual_room = usual;
	assert_int_equal(texo_rt_load(rt, measured, n, &p), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(p, "first", &k), TEXO_OK);
	assert_int_equal(texo_kernel_workspace(k, f.arg, FIRST_ARGS, &bytes), TEXO_OK);
	texo_program_destroy(p);
	texo_rt_destroy(rt);
	return bytes;
}

static void
launches_ask_for_figures(void **state)
{
	size_t n;
	void *measured = fixture_image_measured("sm_90a", &n);
	(void)state;
	size_t all = workspace_of(measured, n, 132, false), more = workspace_of(measured, n, 1320, false);
	assert_true(more >= all + 9 * 4 * 3 * sizeof(float) - 64);
	/* with the room for 132: as the device would have it where that is no more */
	assert_int_equal(workspace_of(measured, n, 132, true), all);
	assert_int_equal(workspace_of(measured, n, 1320, true), all);
	assert_true(workspace_of(measured, n, 1, true) < all);
	assert_int_equal(workspace_of(measured, n, 1, true), workspace_of(measured, n, 1, false));
	free(measured);
	nothing_alive();
}

/* A figure that there is not is no artefact's. */
static void
figures_are_checked(void **state)
{
	size_t n;
	uint8_t *measured = fixture_image_measured("sm_90a", &n);
	texo_rt_options o = cuda_options();
	texo_rt *rt;
	texo_program *p;
	ImageHeader *h = (void *)measured;
	ImageDim *dim = (void *)(measured + h->dim.at);
	(void)state;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	for (int last = 1; last >= 0; last--) {
		for (unsigned k = 0; k < h->dim.n; k++)
			if (dim[k].param < 0)
				dim[k].axis = GPU_FACT_AXIS - GPU_FACTS + last;
		image_seal(measured);
		assert_int_equal(texo_rt_load(rt, measured, n, &p), last ? TEXO_OK : TEXO_BAD_ARTEFACT);
		texo_program_destroy(last ? p : NULL);
	}
	texo_rt_destroy(rt);
	free(measured);
	nothing_alive();
}

/* Figures that were measured take the place of the row's where they are of such a device. */
static void
measured_figures_are_taken(void **state)
{
	texo_rt_options o = cuda_options();
	texo_rt *rt;
	int64_t fact[GPU_FACTS];
	(void)state;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	memcpy(fact, rt->cuda->fact, sizeof fact);
	fact[GPU_MEMORY]++;
	REFUSED(texo_private_take_figures(rt, fact, GPU_FACTS - 1), TEXO_INVALID, "no such device's");
	fact[GPU_PROCESSORS]++;
	REFUSED(texo_private_take_figures(rt, fact, GPU_FACTS), TEXO_INVALID, "no such device's");
	fact[GPU_PROCESSORS] = 0;
	REFUSED(texo_private_take_figures(rt, fact, GPU_FACTS), TEXO_INVALID, "no such device's");
	fact[GPU_PROCESSORS] = rt->cuda->processors;
	REFUSED(texo_private_take_figures(host_rt, fact, GPU_FACTS), TEXO_INVALID, "no such device's");
	assert_int_not_equal(rt->cuda->fact[GPU_MEMORY], fact[GPU_MEMORY]);
	assert_int_equal(texo_private_take_figures(rt, fact, GPU_FACTS), TEXO_OK);
	assert_int_equal(rt->cuda->fact[GPU_MEMORY], fact[GPU_MEMORY]);
	texo_rt_destroy(rt);
	nothing_alive();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_by_name_and_capability),
		cmocka_unit_test(figures_that_are_possible),
		cmocka_unit_test_setup(launches_ask_for_figures, set_up),
		cmocka_unit_test_setup(figures_are_checked, set_up),
		cmocka_unit_test_setup(measured_figures_are_taken, set_up),
	};
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
