/* launch_test.c: right and wrong launches of the fixture's graphs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>
#include <xmmintrin.h>

#include <cmocka.h>

#include "tests/runtime/fixture.h"

static void *image;
static size_t image_bytes;
static texo_rt *rt;
static texo_program *program;
static texo_kernel *first, *second, *turn;

static int
load(void **state)
{
	(void)state;
	image = fixture_image(&image_bytes);
	if (texo_rt_create(NULL, &rt) || texo_rt_load(rt, image, image_bytes, &program))
		fail_msg("%s", texo_last_error());
	texo_rt_destroy(rt); /* the program keeps it */
	assert_int_equal(texo_program_get_kernel(program, "first", &first), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(program, "turn", &turn), TEXO_OK);
	assert_int_equal(texo_program_get_kernel(program, NULL, &second), TEXO_OK);
	return 0;
}

static int
unload(void **state)
{
	(void)state;
	texo_program_destroy(program);
	free(image);
	return 0;
}

/* --- results --- */

static void
expect_results(const First *f)
{
	for (int i = 0; i < 4; i++)
		for (int j = 0; j < 3; j++)
			assert_true(f->y[3 * i + j] == (float)(3 * i + j) * 0.5f + 100.0f * (float)(4 - i));
	for (int i = 0; i < 9; i++)
		assert_true(f->acc[i] == 10.25f - (float)i);
}

static void
runs(void **state)
{
	(void)state;
	size_t bytes;
	First f;
	first_init(&f);
	assert_int_equal(texo_kernel_prepare(first, f.arg, FIRST_ARGS), TEXO_OK);
	assert_int_equal(texo_kernel_workspace(first, f.arg, FIRST_ARGS, &bytes), TEXO_OK);
	assert_int_equal(bytes, 128); /* t and the fault plane of y, 48 bytes each */
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
	expect_results(&f);
}

/* x transposed, table reversed, y in every second element, an offset in bytes. */
static void
takes_strides(void **state)
{
	(void)state;
	First f;
	float xt[12], wide[24], y[12];
	first_init(&f);
	for (int i = 0; i < 12; i++)
		xt[i % 3 * 4 + i / 3] = f.x[i];
	int64_t stride_x[2] = {1, 4}, stride_table[1] = {-1}, stride_y[2] = {6, 2};
	f.tensor[0].data = xt;
	f.tensor[0].strides = stride_x;
	f.tensor[2].data = f.table;
	f.tensor[2].byte_offset = 4 * sizeof(float);
	f.tensor[2].strides = stride_table;
	f.tensor[4].data = wide;
	f.tensor[4].strides = stride_y;
	for (int i = 0; i < 24; i++)
		wide[i] = -7;
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
	for (int i = 0; i < 12; i++) {
		y[i] = wide[2 * i];
		assert_true(wide[2 * i + 1] == -7);
		assert_true(y[i] == (float)i * 0.5f + 100.0f * (float)(i / 3)); /* ids 4 - i, reversed */
	}
}

/* What sizes decide is kept between launches, and only that. */
static void
sees_what_changes(void **state)
{
	(void)state;
	First f;
	int64_t apart[1] = {-1}, rows[2] = {3, 1}, twice[2] = {0, 1};
	first_init(&f);
	for (int round = 0; round < 3; round++) {
		first_init(&f);
		assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
		expect_results(&f);
		f.a = 2; /* a float, by which nothing is sized */
		f.k = 10 + round;
		assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
		assert_true(f.y[11] == 11 * 2 + 100 && f.acc[8] == 20.5f + (float)round - 8);
		f.tensor[0].strides = rows; /* the same, said otherwise */
		f.tensor[2].strides = apart;
		f.tensor[2].byte_offset = 4 * sizeof(float);
		assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
		assert_true(f.y[11] == 11 * 2 + 300);
		f.k = -1; /* refused as often as it is tried */
		for (int again = 0; again < 2; again++)
			assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_CHECK_FAILED);
		f.k = 1;
		f.shape_x[0] = 2; /* as x says; ids has no rank to say so */
		f.tensor[1].ndim = 0;
		assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_INVALID);
		f.tensor[1].ndim = 1;
		assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_INVALID);
		f.tensor[4].strides = twice;
		f.shape_x[0] = 4;
		for (int again = 0; again < 2; again++)
			assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_INVALID);
	}
}

static void
takes_zero_strides(void **state)
{
	(void)state;
	First f;
	int64_t stride[2] = {0, 0};
	first_init(&f);
	f.tensor[0].strides = stride;
	f.x[0] = 8;
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
	assert_true(f.y[0] == 404 && f.y[11] == 104);
}

static void
takes_empty_tensors(void **state)
{
	(void)state;
	First f;
	size_t bytes;
	first_init(&f);
	f.shape_x[0] = f.shape_y[0] = f.shape_ids[0] = 0;
	f.shape_acc[0] = 1;
	f.tensor[0].data = f.tensor[1].data = f.tensor[4].data = NULL;
	assert_int_equal(texo_kernel_workspace(first, f.arg, FIRST_ARGS, &bytes), TEXO_OK);
	assert_int_equal(bytes, 0);
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, NULL, NULL), TEXO_OK);
	assert_true(f.acc[0] == 10.25f && f.acc[1] == -1);
}

static void
reports_faults(void **state)
{
	(void)state;
	First f;
	texo_fault fault = {.struct_size = sizeof fault};
	first_init(&f);
	f.ids[2] = 5;
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_FAULT);
	assert_string_equal(texo_last_error(), "7:5: the access table[ids[i]] went outside");
	assert_int_equal(texo_kernel_status(first, &fault), TEXO_OK);
	assert_int_equal(fault.failed, 1);
	assert_int_equal(fault.line, 7);
	assert_string_equal(fault.access, "table[ids[i]]");
	assert_true(f.acc[8] == 2.25f); /* it finished */
	f.ids[2] = 2;
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
}

static void
runs_packed(void **state)
{
	(void)state;
	uint8_t z[7] = {0x21, 0x43, 0x65, 0x87, 0xa9, 0xcb, 0xed}, w[3] = {0xff, 0xff, 0xff}, flag = 2;
	int64_t shape_z[2] = {7, 2}, shape_w[2] = {3, 2};
	DLTensor tz = {.data = z, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 4, 1}, .shape = shape_z};
	DLTensor tw = {.data = w, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLInt, 4, 1}, .shape = shape_w};
	texo_arg arg[SECOND_ARGS] = {{.tensor = &tz}, {.scalar = &flag}, {.tensor = &tw}};
	assert_int_equal(texo_kernel_launch(second, arg, SECOND_ARGS, NULL, NULL), TEXO_OK);
	assert_memory_equal(w, z, 3);
	flag = 0;
	assert_int_equal(texo_kernel_launch(second, arg, SECOND_ARGS, NULL, NULL), TEXO_OK);
	assert_memory_equal(w, "\0\0\0", 3);
	shape_z[0] = 8;
	assert_int_equal(texo_kernel_launch(second, arg, SECOND_ARGS, NULL, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "argument z: axis 0 has length 8, which is not 3*K + -2 for any K >= 0");
	shape_z[0] = 7;
	int64_t turned[2] = {1, 7};
	tz.strides = turned;
	assert_int_equal(texo_kernel_launch(second, arg, SECOND_ARGS, NULL, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "argument z: two elements share a byte, so it must be contiguous");
	tz.strides = NULL;
	shape_z[1] = shape_w[1] = 1;
	assert_int_equal(texo_kernel_launch(second, arg, SECOND_ARGS, NULL, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "argument z: two elements share a byte, so the last axis must be even");
}

/* Scratch is there, aligned, outside of all else, and begins with zeros for the first call. */
static void
uses_scratch(void **state)
{
	(void)state;
	enum { ROWS = 9, COLUMNS = 21, CANARY = 0x5a };
	float x[ROWS * COLUMNS], y[ROWS * (COLUMNS + 1)];
	uint32_t code[ROWS] = {0};
	int64_t shape_x[2] = {ROWS, COLUMNS}, shape_y[2] = {ROWS, COLUMNS + 1};
	DLTensor tx = {.data = x, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape_x};
	DLTensor tc = {.data = code, .device = {kDLCPU, 0}, .ndim = 1, .dtype = {kDLUInt, 32, 1}, .shape = shape_x};
	DLTensor ty = {.data = y, .device = {kDLCPU, 0}, .ndim = 2, .dtype = {kDLFloat, 32, 1}, .shape = shape_y};
	texo_arg arg[TURN_ARGS] = {{.tensor = &tx}, {.tensor = &tc}, {.tensor = &ty}};
	size_t bytes;
	assert_int_equal(texo_kernel_workspace(turn, arg, TURN_ARGS, &bytes), TEXO_OK);
	assert_true(bytes >= 192 && bytes % 192 == 0); /* 84 bytes take 128, 8 take 64; once for each call */
	uint8_t *room = aligned_alloc(64, bytes + 64);
	assert_non_null(room);
	memset(room, CANARY, bytes + 64);
	for (int i = 0; i < ROWS * COLUMNS; i++)
		x[i] = (float)i;
	assert_int_equal(texo_kernel_launch(turn, arg, TURN_ARGS, room, NULL), TEXO_OK);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < COLUMNS; j++)
			assert_true(y[i * (COLUMNS + 1) + j] == x[i * COLUMNS + COLUMNS - 1 - j]);
	for (int i = 0; i < 64; i++)
		assert_int_equal(room[bytes + (size_t)i], CANARY);
	for (int i = 128 + 8; i < 192; i++) /* of the second, what the kernel does not write */
		assert_int_equal(room[i], 0);
	free(room);
}

/* Inputs may share memory with one another. */
static void
takes_shared_inputs(void **state)
{
	(void)state;
	First f;
	first_init(&f);
	f.tensor[2].data = f.x;
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_OK);
	assert_true(f.y[0] == 4 && f.y[11] == 5.5f + 1);
}

/* Rounding and subnormals are as documented whatever the caller has set, which is kept. */
static void
keeps_the_float_environment(void **state)
{
	(void)state;
	enum { FLUSH = 0x8040, UPWARDS = 0x4000, MASKS = 0x1f80 };
	First f;
	first_init(&f);
	memset(f.table, 0, sizeof f.table);
	f.x[0] = 1e-39f; /* a half of it is subnormal too */
	f.x[1] = 16777217.0f;
	f.acc[0] = 1e8f; /* + 10.25 rounds down */
	unsigned before = _mm_getcsr();
	_mm_setcsr(MASKS | FLUSH | UPWARDS);
	texo_status s = texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL);
	unsigned after = _mm_getcsr();
	_mm_setcsr(before);
	assert_int_equal(s, TEXO_OK);
	assert_int_equal(after, MASKS | FLUSH | UPWARDS);
	assert_true(f.y[0] > 0);
	assert_true(f.acc[0] == 100000008.0f);
}

static void *
launch_often(void *user)
{
	long wrong = 0;
	(void)user;
	for (int n = 0; n < 300; n++) {
		First *f = aligned_alloc(64, (sizeof *f + 63) / 64 * 64);
		if (!f)
			return (void *)1;
		first_init(f);
		f->a = (float)n;
		wrong += texo_kernel_launch(first, f->arg, FIRST_ARGS, f->workspace, NULL) != TEXO_OK;
		for (int i = 0; i < 12; i++)
			wrong += f->y[i] != (float)i * (float)n + 100.0f * (float)(4 - i / 3);
		free(f);
	}
	return wrong ? (void *)1 : NULL;
}

static void
runs_from_many_threads(void **state)
{
	(void)state;
	pthread_t thread[4];
	for (int t = 0; t < 4; t++)
		assert_int_equal(pthread_create(&thread[t], NULL, launch_often, NULL), 0);
	for (int t = 0; t < 4; t++) {
		void *wrong;
		assert_int_equal(pthread_join(thread[t], &wrong), 0);
		assert_null(wrong);
	}
}

/* --- wrong arguments --- */

static int64_t far_stride[2] = {INT64_MAX / 2, 1}, up_stride[2] = {INT64_MAX / 8, 1}, zero_stride[2] = {0, 1},
               close_stride[2] = {2, 1};
static int64_t huge_shape[2] = {INT64_MAX / 2, 3};

static void wrong_dtype(First *f) { f->tensor[0].dtype.code = kDLInt; }
static void wrong_bits(First *f) { f->tensor[0].dtype.bits = 33; }
static void wrong_lanes(First *f) { f->tensor[0].dtype.lanes = 2; }
static void wrong_rank(First *f) { f->tensor[0].ndim = 1; }
static void negative_rank(First *f) { f->tensor[0].ndim = -1; }
static void wrong_device(First *f) { f->tensor[0].device.device_type = kDLCUDA; }
static void null_shape(First *f) { f->tensor[0].shape = NULL; }
static void negative_extent(First *f) { f->shape_x[1] = -3; }
static void wrong_extent(First *f) { f->shape_ids[0] = 5; }
static void wrong_inout(First *f) { f->shape_acc[0] = 8; }
static void wrong_result(First *f) { f->shape_y[1] = 4; }
static void null_data(First *f) { f->tensor[2].data = NULL; }
static void unaligned(First *f) { f->tensor[1].byte_offset = 4; }
static void null_tensor(First *f) { f->arg[0].tensor = NULL; }
static void tensor_for_scalar(First *f) { f->arg[3].tensor = &f->tensor[0]; }
static void null_scalar(First *f) { f->arg[4].scalar = NULL; }
static void scalar_for_tensor(First *f) { f->arg[1] = (texo_arg){.scalar = &f->k}; }
static void odd_rows(First *f) { f->shape_x[0] = f->shape_y[0] = f->shape_ids[0] = 3, f->shape_acc[0] = 7; }
static void low_count(First *f) { f->k = -1; }
static void result_over_input(First *f) { f->tensor[4].data = f->x; }
static void result_inside_inout(First *f) { f->tensor[4].data = &f->acc[8]; }
static void outside(First *f) { f->tensor[0].strides = far_stride; }
static void at_the_end(First *f) { f->tensor[0].data = (void *)(UINTPTR_MAX - 15); }
static void around(First *f) { f->tensor[0].strides = up_stride; }
static void same_row(First *f) { f->tensor[4].strides = zero_stride; }
static void close_rows(First *f) { f->tensor[4].strides = close_stride; }
static void workspace_over_input(First *f) { f->tensor[0].data = f->workspace; }
static void too_many(First *f) { f->tensor[0].shape = f->tensor[4].shape = huge_shape; }

static const struct {
	void (*spoil)(First *f);
	texo_status status;
	const char *text;
} wrong[] = {
	{wrong_dtype, TEXO_INVALID, "argument x: the dtype is i32, f32 is expected"},
	{wrong_bits, TEXO_INVALID, "argument x: the dtype is DLPack code 2 with 33 bits and 1 lanes, f32 is expected"},
	{wrong_lanes, TEXO_INVALID, "argument x: the dtype is DLPack code 2 with 32 bits and 2 lanes, f32 is expected"},
	{wrong_rank, TEXO_INVALID, "argument x: the rank is 1, 2 is expected"},
	{negative_rank, TEXO_INVALID, "argument x: the rank is -1, 2 is expected"},
	{wrong_device, TEXO_INVALID, "argument x: the tensor is not in this processor's memory"},
	{null_shape, TEXO_INVALID, "argument x: the shape is NULL"},
	{negative_extent, TEXO_INVALID, "argument x: axis 1 has -3 elements"},
	{wrong_extent, TEXO_INVALID, "argument ids: axis 0 has 5 elements, 4 are expected"},
	{wrong_inout, TEXO_INVALID, "argument acc: axis 0 has 8 elements, 9 are expected"},
	{wrong_result, TEXO_INVALID, "argument y: axis 1 has 4 elements, 3 are expected"},
	{null_data, TEXO_INVALID, "argument table: the data is NULL"},
	{unaligned, TEXO_INVALID, "argument ids: the data is not aligned to 8 bytes"},
	{null_tensor, TEXO_INVALID, "argument x: a tensor is expected"},
	{tensor_for_scalar, TEXO_INVALID, "argument a: a scalar is expected"},
	{null_scalar, TEXO_INVALID, "argument k: a scalar is expected"},
	{scalar_for_tensor, TEXO_INVALID, "argument ids: a tensor is expected"},
	{odd_rows, TEXO_CHECK_FAILED, "4:3: this doesn't hold: N mod 2 == 0"},
	{low_count, TEXO_CHECK_FAILED, "5:3: this doesn't hold: k > 0"},
	{result_over_input, TEXO_INVALID, "argument y is written and shares memory with argument x"},
	{result_inside_inout, TEXO_INVALID, "argument acc is written and shares memory with argument y"},
	{outside, TEXO_INVALID, "argument x: its strides reach outside of all memory"},
	{at_the_end, TEXO_INVALID, "argument x: its strides reach outside of all memory"},
	{around, TEXO_INVALID, "argument x: its strides reach outside of all memory"},
	{same_row, TEXO_INVALID, "argument y: it is written, and its strides let elements overlap"},
	{close_rows, TEXO_INVALID, "argument y: it is written, and its strides let elements overlap"},
	{workspace_over_input, TEXO_INVALID, "argument x shares memory with the workspace"},
	{too_many, TEXO_INVALID, "argument x: the number of elements overflows"},
};

static void
refuses_arguments(void **state)
{
	(void)state;
	for (unsigned n = 0; n < sizeof wrong / sizeof *wrong; n++) {
		First f;
		first_init(&f);
		wrong[n].spoil(&f);
		assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, NULL), wrong[n].status);
		assert_string_equal(texo_last_error(), wrong[n].text);
		for (int i = 0; i < 9; i++)
			assert_true(f.acc[i] == (float)-i); /* nothing ran */
	}
}

static void
refuses_calls(void **state)
{
	(void)state;
	First f;
	texo_kernel *k;
	texo_fault fault = {.struct_size = 4};
	first_init(&f);
	assert_int_equal(texo_kernel_launch(first, f.arg, 6, f.workspace, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "graph first takes 7 arguments, not 6");
	assert_int_equal(texo_kernel_launch(first, NULL, FIRST_ARGS, f.workspace, NULL), TEXO_INVALID);
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, NULL, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "the workspace is NULL, and 128 bytes are needed");
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace + 8, NULL), TEXO_INVALID);
	assert_string_equal(texo_last_error(), "the workspace is not aligned to 64 bytes");
	assert_int_equal(texo_kernel_launch(first, f.arg, FIRST_ARGS, f.workspace, &f), TEXO_INVALID);
	assert_int_equal(texo_kernel_launch(NULL, f.arg, FIRST_ARGS, f.workspace, NULL), TEXO_INVALID);
	assert_int_equal(texo_kernel_status(first, &fault), TEXO_INVALID);
	assert_int_equal(texo_program_get_kernel(program, "third", &k), TEXO_NOT_FOUND);
	assert_null(k);
}

static void
statuses_have_names(void **state)
{
	static const char *const name[] = {
		[TEXO_OK] = "OK", [TEXO_INVALID] = "INVALID", [TEXO_COMPILE_ERROR] = "COMPILE_ERROR", [TEXO_CHECK_FAILED] = "CHECK_FAILED",
		[TEXO_FAULT] = "FAULT", [TEXO_NO_MEMORY] = "NO_MEMORY", [TEXO_NO_DEVICE] = "NO_DEVICE", [TEXO_DEVICE_LOST] = "DEVICE_LOST",
		[TEXO_BAD_ARTEFACT] = "BAD_ARTEFACT", [TEXO_NOT_FOUND] = "NOT_FOUND", [TEXO_NOT_BUILT] = "NOT_BUILT", [TEXO_LIMIT] = "LIMIT",
		[TEXO_IO] = "IO", [TEXO_INTERNAL] = "INTERNAL"};
	(void)state;
	for (unsigned n = 0; n < sizeof name / sizeof *name; n++)
		assert_string_equal(texo_status_name((texo_status)n), name[n]);
	assert_string_equal(texo_status_name((texo_status)99), "unknown status");
}

static void
refuses_options(void **state)
{
	(void)state;
	texo_rt *other;
	texo_rt_options o = {.struct_size = sizeof o, .device = "cuda:x"};
	assert_int_equal(texo_rt_create(&o, &other), TEXO_INVALID);
	o.device = "tpu";
	assert_int_equal(texo_rt_create(&o, &other), TEXO_INVALID);
	o.device = "cpu";
	o.alloc = (void *(*)(void *, size_t))1;
	assert_int_equal(texo_rt_create(&o, &other), TEXO_INVALID);
	o.alloc = NULL;
	o.struct_size = 8;
	assert_int_equal(texo_rt_create(&o, &other), TEXO_INVALID);
	assert_null(other);
}

/* --- the signature, and the same bytes each time --- */

static void
describes_itself(void **state)
{
	(void)state;
	const char *json;
	assert_int_equal(texo_kernel_get_signature(first, &json), TEXO_OK);
	assert_string_equal(json,
	                    "{\"graph\":\"first\",\"params\":["
	                    "{\"name\":\"x\",\"kind\":\"input\",\"dtype\":\"f32\",\"shape\":[\"N\",\"M\"]},"
	                    "{\"name\":\"ids\",\"kind\":\"input\",\"dtype\":\"i64\",\"shape\":[\"N\"]},"
	                    "{\"name\":\"table\",\"kind\":\"input\",\"dtype\":\"f32\",\"shape\":[\"V\"]},"
	                    "{\"name\":\"a\",\"kind\":\"scalar\",\"dtype\":\"f32\",\"shape\":[]},"
	                    "{\"name\":\"k\",\"kind\":\"scalar\",\"dtype\":\"i32\",\"shape\":[]},"
	                    "{\"name\":\"acc\",\"kind\":\"inout\",\"dtype\":\"f32\",\"shape\":[\"(2 * N) + 1\"]}],"
	                    "\"results\":[{\"name\":\"y\",\"kind\":\"result\",\"dtype\":\"f32\",\"shape\":[\"N\",\"M\"]}],"
	                    "\"dims\":[\"N\",\"M\",\"V\"]}");
}

static void
is_deterministic(void **state)
{
	(void)state;
	size_t n;
	void *again = fixture_image(&n);
	assert_int_equal(n, image_bytes);
	assert_memory_equal(again, image, n);
	free(again);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(runs),
		cmocka_unit_test(takes_strides),
		cmocka_unit_test(takes_zero_strides),
		cmocka_unit_test(sees_what_changes),
		cmocka_unit_test(takes_empty_tensors),
		cmocka_unit_test(reports_faults),
		cmocka_unit_test(runs_packed),
		cmocka_unit_test(uses_scratch),
		cmocka_unit_test(takes_shared_inputs),
		cmocka_unit_test(keeps_the_float_environment),
		cmocka_unit_test(runs_from_many_threads),
		cmocka_unit_test(refuses_arguments),
		cmocka_unit_test(refuses_calls),
		cmocka_unit_test(refuses_options),
		cmocka_unit_test(statuses_have_names),
		cmocka_unit_test(describes_itself),
		cmocka_unit_test(is_deterministic),
	};
	return cmocka_run_group_tests(tests, load, unload);
}
