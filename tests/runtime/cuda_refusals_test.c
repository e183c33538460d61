/* cuda_refusals_test.c: what is refused on a GPU (cuda_fixture.h): devices, contexts, artefacts, the driver's own
 * refusals, arguments, damage. */
#include <stdlib.h>
#include <string.h>

#include "ir/dtype.h"
#include "tests/runtime/cuda_fixture.h"

static void
devices(void **state)
{
	static const char *const wrong[] = {"cuda:", "cudax", "cuda:x", "cuda:-1", "cuda:0x1", "cuda:99999999", "cuda: 1"};
	texo_rt_options o = cuda_options();
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
	o.device = "gpu";
	REFUSED(texo_rt_create(&o, &rt), TEXO_INVALID, "there is no device 'gpu'");
	fake->devices = 0;
	o.device = "cuda";
	REFUSED(texo_rt_create(&o, &rt), TEXO_NO_DEVICE, "has no device");
	nothing_alive();
}

static void
the_hosts_context(void **state)
{
	texo_rt_options o = cuda_options();
	texo_device d = TEXO_INIT(texo_device);
	texo_rt *rt;
	Whole w = {0};
	(void)state;
	fake->host_context = &w;
	o.context = &w;
	first_init(&w.f);
	if (whole_launch(&w, &o))
		fail_msg("%s", texo_last_error());
	results_are_right(&w);
	assert_int_equal(fake->contexts, 0); /* it is the one that is used, and no other is held */
	whole_end(&w);
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	assert_int_equal(texo_rt_get_device(rt, &d), TEXO_OK);
	assert_int_equal(d.device.device_type, kDLCUDA);
	assert_int_equal(d.device.device_id, 0);
	assert_int_equal(d.capability, 90);
	assert_int_equal(d.processors, 132);
	assert_string_equal(d.name, "Fake");
	texo_rt_destroy(rt);
	fake->host_device = 1;
	REFUSED(texo_rt_create(&o, &rt), TEXO_INVALID, "context is not one of the device cuda:0");
	o.device = "cpu";
	REFUSED(texo_rt_create(&o, &rt), TEXO_INVALID, "context is given, and device is not cuda");
	nothing_alive();
	assert_int_equal(texo_rt_get_device(host_rt, &d), TEXO_OK);
	assert_int_equal(d.device.device_type, kDLCPU);
	REFUSED(texo_rt_get_device(NULL, &d), TEXO_INVALID, "rt is NULL");
	d.struct_size = 1;
	REFUSED(texo_rt_get_device(host_rt, &d), TEXO_INVALID, "struct_size is 1");
}

static void
artefacts(void **state)
{
	texo_rt_options o = cuda_options();
	texo_rt *rt;
	texo_program *p;
	(void)state;
	REFUSED(texo_rt_load(host_rt, image, image_size, &p), TEXO_BAD_ARTEFACT, "for another kind of device");
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, host_image, host_size, &p), TEXO_BAD_ARTEFACT, "for another kind of device");
	texo_rt_destroy(rt);
	fake_reset();
	fake->major = 10;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, image, image_size, &p), TEXO_BAD_ARTEFACT, "9.0 alone; Fake has 10.0");
	assert_int_equal(texo_rt_load(rt, portable, portable_size, &p), TEXO_OK);
	texo_program_destroy(p);
	texo_rt_destroy(rt);
	fake_reset();
	fake->major = 7, fake->minor = 5;
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	REFUSED(texo_rt_load(rt, portable, portable_size, &p), TEXO_BAD_ARTEFACT, "8.0 and later; Fake has 7.5");
	texo_rt_destroy(rt);
	nothing_alive();
}

static void
text_that_the_driver_refuses(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = cuda_options();
	first_init(&w.f);
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	fake->log = "line 7: what is this";
	REFUSED(texo_kernel_prepare(w.kernel, w.f.arg, FIRST_ARGS), TEXO_INVALID, "argument x");
	REFUSED(whole_move_in(&w), TEXO_BAD_ARTEFACT, "line 7: what is this");
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.f.workspace, NULL), TEXO_BAD_ARTEFACT, "line 7: what is this");
	whole_end(&w);
	nothing_alive();
}

static void
arguments(void **state)
{
	(void)state;
	Whole w = {0};
	texo_rt_options o = cuda_options();
	First on_host;
	first_init(&w.f);
	first_init(&on_host);
	assert_int_equal(whole_start(&w, &o), TEXO_OK);
	REFUSED(texo_kernel_launch(w.kernel, on_host.arg, FIRST_ARGS, on_host.workspace, NULL), TEXO_INVALID,
	        "argument x: the tensor is not in the device's memory");
	assert_int_equal(whole_move_in(&w), TEXO_OK);
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, NULL, NULL), TEXO_INVALID, "the workspace is NULL");
	w.f.tensor[1].device.device_id = 1;
	REFUSED(texo_kernel_launch(w.kernel, w.f.arg, FIRST_ARGS, w.workspace, NULL), TEXO_INVALID, "argument ids");
	w.f.shape_x[0] = w.f.shape_y[0] = w.f.shape_ids[0] = INT64_C(1) << 47;
	w.f.shape_acc[0] = (INT64_C(1) << 48) + 1;
	w.f.tensor[1].device.device_id = 0;
	REFUSED(texo_kernel_prepare(w.kernel, w.f.arg, FIRST_ARGS), TEXO_LIMIT, "a kernel has 140737488355328 tasks");
	assert_int_equal(fake->launches, 0);
	whole_end(&w);
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
	texo_rt_options o = cuda_options();
	texo_rt *rt;
	texo_program *p;
	First f;
	const ImageHeader *h = image;
	char *copy = malloc(image_size);
	unsigned refused = 0;
	assert_non_null(copy);
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	assert_int_equal(load_damaged(rt, copy, h->code.at + h->code.n - 1, ' ', &p), TEXO_BAD_ARTEFACT);
	assert_non_null(strstr(texo_last_error(), "no code for a GPU"));
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

/* --- tensor maps --- */

static void map_is_right(ImageKernel *k, ImageMap *m) { k->resident = 1, m->step[1] = -(int64_t)k->nscalar; }
static void of_no_buffer(ImageKernel *k, ImageMap *m) { m->buffer = k->nbuffer; }
static void of_one_axis(ImageKernel *k, ImageMap *m) { (void)k, m->rank = 1; }
static void of_many_axes(ImageKernel *k, ImageMap *m) { (void)k, m->rank = IMAGE_MAP_RANK + 1; }
static void of_words(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_F32; }
static void of_long_words(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_I64; }
static void of_pairs_of_words(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_C64; }
static void of_none(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_NONE; }
static void of_no_type(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = 99; }
static void extent_of_no_scalar(ImageKernel *k, ImageMap *m) { m->extent[0] = -1 - (int64_t)k->nscalar; }
static void stride_of_no_scalar(ImageKernel *k, ImageMap *m) { (void)k, m->stride[1] = INT64_MIN; }
static void box_of_no_scalar(ImageKernel *k, ImageMap *m) { m->box[1] = -1 - (int64_t)k->nscalar; }
static void step_of_no_scalar(ImageKernel *k, ImageMap *m) { m->step[0] = -1 - (int64_t)k->nscalar; }
static void of_fourths(ImageKernel *k, ImageMap *m) { (void)k, m->thirds = 2; }
static void thirds_of_f16(ImageKernel *k, ImageMap *m) { (void)k, m->thirds = 1, m->dtype = DT_F16; }
static void thirds_of_nibbles(ImageKernel *k, ImageMap *m) { (void)k, m->thirds = 1, m->dtype = DT_U4; }
static void of_nibbles(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_U4; }
static void of_bytes(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_F8E4M3; }
static void of_halves(ImageKernel *k, ImageMap *m) { (void)k, m->dtype = DT_I16; }
static void thirds_of_many_axes(ImageKernel *k, ImageMap *m) { (void)k, m->thirds = 1, m->rank = IMAGE_MAP_RANK; }
static void not_there(ImageKernel *k, ImageMap *m) { (void)m, k->map0 = 1; }
static void too_many_maps(ImageKernel *k, ImageMap *m) { (void)m, k->nmap = IMAGE_CUDA_MAX_MAPS + 1; }
static void too_much_shared(ImageKernel *k, ImageMap *m) { (void)m, k->shared = IMAGE_CUDA_MAX_SHARED + 1; }
static void too_many_resident(ImageKernel *k, ImageMap *m) { (void)m, k->resident = IMAGE_CUDA_MAX_RESIDENT + 1; }
static void none_resident(ImageKernel *k, ImageMap *m) { (void)m, k->resident = 0; }

/* The artefact with a map of its first kernel behind all else. */
static void
maps_in_tables(void **state)
{
	enum { RIGHT = 4 }; /* the first ones */
	static void (*const change[])(ImageKernel *, ImageMap *) = {
		map_is_right, of_nibbles, of_bytes, of_halves, of_no_buffer, of_one_axis, of_many_axes, of_words, of_long_words, of_pairs_of_words, of_none, of_no_type, extent_of_no_scalar, stride_of_no_scalar,
		box_of_no_scalar, step_of_no_scalar, of_fourths, thirds_of_f16, thirds_of_nibbles, thirds_of_many_axes, not_there, too_many_maps, too_much_shared, too_many_resident, none_resident,
	};
	texo_rt_options o = cuda_options();
	texo_rt *rt;
	texo_program *p;
	size_t at = (image_size + 7) / 8 * 8, bytes = at + sizeof(ImageMap);
	char *copy = calloc(1, bytes);
	(void)state;
	assert_non_null(copy);
	assert_int_equal(texo_rt_create(&o, &rt), TEXO_OK);
	for (unsigned n = 0; n < sizeof change / sizeof *change; n++) {
		memcpy(copy, image, image_size);
		ImageHeader *h = (ImageHeader *)(void *)copy;
		ImageKernel *k = (ImageKernel *)(void *)(copy + h->kernel.at);
		ImageMap *m = (ImageMap *)(void *)(copy + at);
		*m = (ImageMap){.dtype = DT_BF16, .rank = 2, .extent = {8, 3}, .stride = {1, 8}, .box = {8, 3}, .step = {1, 1}};
		h->map.at = at;
		h->map.n = 1;
		h->bytes = bytes;
		k->nmap = 1;
		map_is_right(k, m);
		change[n](k, m);
		image_seal(copy);
		texo_status s = texo_rt_load(rt, copy, bytes, &p);
		if (s != (n < RIGHT ? TEXO_OK : TEXO_BAD_ARTEFACT))
			fail_msg("%u: %s", n, texo_status_name(s));
		texo_program_destroy(p);
	}
	texo_rt_destroy(rt);
	free(copy);
	nothing_alive();
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(devices, set_up),
		cmocka_unit_test_setup(the_hosts_context, set_up),
		cmocka_unit_test_setup(artefacts, set_up),
		cmocka_unit_test_setup(arguments, set_up),
		cmocka_unit_test_setup(text_that_the_driver_refuses, set_up),
		cmocka_unit_test_setup(damage, set_up),
		cmocka_unit_test_setup(maps_in_tables, set_up),
	};
	return open_fake() || cmocka_run_group_tests(tests, NULL, NULL);
}
