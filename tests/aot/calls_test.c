/* calls_test.c: the C functions of graphs compiled ahead of time: every kind of argument, wrong sizes and
 * wrong memory, faults, facts, tensors, and many threads at once. Built twice: with the launch in the
 * object (alone), and with libtexo-rt. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <pthread.h>
#include <xmmintrin.h>

#include "calls.h"

enum { OK, INVALID = 1, CHECK_FAILED = 3, FAULT = 4, LIMIT = 11 }; /* as the header says */

/* --- arguments --- */

static void
every_type_by_value(void **state)
{
	(void)state;
	const float x[3] = {1, 2, -4};
	double y[3];
	texo_c64 z[3];
	_Alignas(64) unsigned char workspace[4096];
	assert_true(mixed_workspace(3) <= sizeof workspace);
	/* 1.5 in f16, 2.5 in bf16 */
	double sum = 0.5 + 0.25 - 100 + 60000 + 123456789012. + 1.5 + 1e15 - 7 + 2.5 + 1 + 2 + 3 + 4 + 5;
	assert_int_equal(mixed(0.5f, 0.25, -100, 60000, 123456789012, true, 0x3e00, (texo_c64){2, -3}, 1000000000000000u, x,
	                       -7, 0x4020, 1, 2, 3, 4, 5, (texo_c64){10, 20}, y, z, 3, workspace), OK);
	for (int k = 0; k < 3; k++) {
		assert_true(y[k] == sum + (double)x[k]);
		assert_true(z[k].re == 2 * x[k] + 10 && z[k].im == -3 * x[k] + 20);
	}
	assert_int_equal(mixed(0.5f, 0.25, -100, 60000, 123456789012, false, 0x3e00, (texo_c64){0, 0}, 1000000000000000u, x,
	                       -7, 0x4020, 1, 2, 3, 4, 5, (texo_c64){0, 0}, y, z, 3, workspace), OK);
	assert_true(y[0] == -sum);
}

static void
narrow_arrays(void **state)
{
	(void)state;
	const uint16_t h[2] = {0x3c00, 0x4000}, b[2] = {0x3f80, 0x4040}; /* 1, 2; 1, 3 */
	const uint8_t q[2] = {0x78, 0xf1};                               /* -8, 7; 1, -1 */
	const bool m[2] = {true, false};
	uint16_t y[2];
	uint8_t p[2];
	assert_int_equal(narrow(h, b, q, m, y, p, 2, 2, NULL), OK);
	assert_int_equal(y[0], 0x4000);
	assert_int_equal(y[1], 0);
	assert_int_equal(p[0], 0xf0);
	assert_int_equal(p[1], 0x79);
}

static void
inout_and_renamed(void **state)
{
	(void)state;
	float x[2] = {1, 2}, old[2], y[2];
	size_t bytes = bump_workspace(2);
	assert_true(bytes < 4096 && bytes % 64 == 0);
	_Alignas(64) unsigned char workspace[4096];
	assert_int_equal(bump(x, 0.5f, old, 2, workspace), OK);
	assert_true(x[0] == 1.5f && x[1] == 2.5f && old[0] == 1 && old[1] == 2);
	assert_int_equal(words(x, 1, y, 2, NULL), OK);
	assert_true(y[0] == 2.5f && y[1] == 3.5f);
}

/* --- sizes --- */

static void
sizes_from_scalars(void **state)
{
	(void)state;
	const float x[3] = {1, 2, 3};
	float y[9];
	_Alignas(64) unsigned char workspace[4096];
	assert_int_equal(square(3, x, y, 3, NULL), OK);
	for (int k = 0; k < 9; k++)
		assert_true(y[k] == x[k % 3]);
	assert_int_equal(square(0, x, y, 3, NULL), OK);
	assert_int_equal(square(-1, x, y, 3, NULL), INVALID);
	assert_int_equal(square(INT64_C(1) << 32, x, y, 3, NULL), LIMIT);
	assert_int_equal(square_workspace(INT64_C(1) << 32, 3), SIZE_MAX);
	size_t few = windows_workspace(0, 3), more = windows_workspace(100, 3);
	assert_true(few <= more && more <= sizeof workspace);
	assert_int_equal(windows(x, 2, y, 3, workspace), OK);
	assert_true(y[0] == 3 + (1 + 2 + 3 + 7 + 7) + 2 - 2 + 0 * y[1]);
	assert_int_equal(windows(x, -1, y, 3, workspace), CHECK_FAILED);
}

static void
wrong_sizes(void **state)
{
	(void)state;
	float x[4] = {0}, y[4];
	assert_int_equal(scale(x, 1, y, -1, 2, NULL), INVALID);
	assert_int_equal(scale(x, 1, y, 2, INT64_MIN, NULL), INVALID);
	assert_int_equal(scale(x, 1, y, INT64_C(1) << 40, INT64_C(1) << 40, NULL), INVALID);
	assert_int_equal(scale(x, 1, y, INT64_MAX, INT64_MAX, NULL), INVALID);
	assert_int_equal(scale(x, 1, y, INT64_MAX, 1, NULL), INVALID); /* the bytes pass 2^63 */
	assert_int_equal(normalise_workspace(-1, 2), SIZE_MAX);
	assert_int_equal(normalise_workspace(INT64_MAX, 2), SIZE_MAX);
	assert_int_equal(scale(x, 1, y, 0, 5, NULL), OK);
	assert_int_equal(scale(NULL, 1, NULL, 0, 5, NULL), OK);
	uint8_t q[2] = {0}, p[2];
	assert_int_equal(narrow(NULL, NULL, q, NULL, NULL, p, 0, INT64_MAX / 2 + 1, NULL), LIMIT); /* 2 * M */
}

/* --- memory --- */

static void
wrong_memory(void **state)
{
	(void)state;
	float x[9] = {0}, y[8];
	_Alignas(64) unsigned char workspace[4096];
	assert_int_equal(scale(NULL, 1, y, 2, 2, NULL), INVALID);
	assert_int_equal(scale(x, 1, NULL, 2, 2, NULL), INVALID);
	assert_int_equal(scale(x, 1, x + 1, 2, 2, NULL), INVALID); /* overlap */
	assert_int_equal(scale((float *)(void *)((char *)x + 1), 1, y, 2, 2, NULL), INVALID);
	if (normalise_workspace(2, 2)) {
		assert_int_equal(normalise(x, y, 2, 2, NULL), INVALID);
		assert_int_equal(normalise(x, y, 2, 2, workspace + 4), INVALID);
	}
	assert_int_equal(normalise(x, y, 2, 2, workspace), OK);
}

static void
facts_and_faults(void **state)
{
	(void)state;
	const float x[8] = {0, 1, 2, 3, 4, 5, 6, 7}, table[4] = {1, 2, 3, 4};
	float y[4], e[4];
	int32_t ids[2] = {1, 0};
	_Alignas(64) unsigned char workspace[4096];
	assert_int_equal(quarter(x, y, 8, NULL), OK);
	assert_true(y[0] == 0 && y[1] == 4);
	assert_int_equal(quarter(x, y, 7, NULL), CHECK_FAILED);
	assert_true(embed_workspace(2, 2, 2) <= sizeof workspace);
	assert_int_equal(embed(table, ids, e, 2, 2, 2, workspace), OK);
	assert_true(e[0] == 3 && e[1] == 4 && e[2] == 1 && e[3] == 2);
	ids[1] = 2;
	assert_int_equal(embed(table, ids, e, 2, 2, 2, workspace), FAULT);
	ids[1] = -1;
	assert_int_equal(embed(table, ids, e, 2, 2, 2, workspace), FAULT);
	ids[1] = 1;
	assert_int_equal(embed(table, ids, e, 2, 2, 2, workspace), OK); /* nothing stays */
}

/* --- tensors --- */

static DLTensor
tensor(void *data, int64_t *shape, int ndim, int code, int bits)
{
	return (DLTensor){.data = data, .device = {kDLCPU, 0}, .ndim = ndim,
	                  .dtype = {(uint8_t)code, (uint8_t)bits, 1}, .shape = shape};
}

static void
tensors(void **state)
{
	(void)state;
	float x[6] = {0, 1, 2, 3, 4, 5}, y[6], a = 2;
	int64_t shape[2] = {2, 3}, turned[2] = {1, 2};
	DLTensor tx = tensor(x, shape, 2, kDLFloat, 32), ta = tensor(&a, NULL, 0, kDLFloat, 32);
	DLTensor ty = tensor(y, shape, 2, kDLFloat, 32);
	const DLTensor *args[3] = {&tx, &ta, &ty};
	tx.strides = turned;
	assert_int_equal(scale_dl(args, 3, NULL), OK);
	for (int i = 0; i < 2; i++)
		for (int j = 0; j < 3; j++)
			assert_true(y[i * 3 + j] == 2 * x[j * 2 + i]);
	assert_int_equal(scale_dl(args, 2, NULL), INVALID);
	assert_int_equal(scale_dl(NULL, 3, NULL), INVALID);
	assert_int_equal(scale_dl(args, 3, &a), INVALID);
	ta.ndim = 1;
	assert_int_equal(scale_dl(args, 3, NULL), INVALID);
	ta.ndim = 0;
	ta.dtype.code = kDLInt;
	assert_int_equal(scale_dl(args, 3, NULL), INVALID);
	args[1] = NULL;
	assert_int_equal(scale_dl(args, 3, NULL), INVALID);
	tx.strides = NULL;
	const DLTensor *two[2] = {&tx, &ty};
	assert_int_equal(normalise_dl(two, 2, NULL), OK); /* takes its own workspace */
	assert_true(y[0] == -1 && y[1] == 0 && y[2] == 1 && y[5] == 1);
}

/* --- threads, and the state of the caller --- */

enum { THREADS = 8, TURNS = 400, ROWS = 16, COLUMNS = 37 };

static void *
call_often(void *arg)
{
	unsigned seed = *(unsigned *)arg;
	static const size_t room = 1 << 16;
	float x[ROWS * COLUMNS], y[ROWS * COLUMNS];
	void *workspace = aligned_alloc(64, room);
	for (int t = 0; t < TURNS; t++) {
		int64_t rows = 1 + (int64_t)((seed + (unsigned)t) % ROWS);
		for (int k = 0; k < rows * COLUMNS; k++)
			x[k] = (float)(seed * 3 + (unsigned)k);
		if (normalise_workspace(rows, COLUMNS) > room || normalise(x, y, rows, COLUMNS, workspace))
			goto wrong;
		for (int k = 0; k < rows * COLUMNS; k++)
			if (y[k] != (float)(k % COLUMNS - COLUMNS / 2))
				goto wrong;
	}
	free(workspace);
	return NULL;
wrong:
	free(workspace);
	return arg;
}

static void
many_threads(void **state)
{
	(void)state;
	pthread_t thread[THREADS];
	unsigned seed[THREADS];
	void *wrong;
	for (unsigned k = 0; k < THREADS; k++) {
		seed[k] = k;
		assert_int_equal(pthread_create(&thread[k], NULL, call_often, &seed[k]), 0);
	}
	for (unsigned k = 0; k < THREADS; k++) {
		assert_int_equal(pthread_join(thread[k], &wrong), 0);
		assert_null(wrong);
	}
}

static void
float_state_is_kept(void **state)
{
	(void)state;
	const float x[1] = {1e-39f};
	float y[1];
	unsigned before = _mm_getcsr(), flushing = before | 0x8040;
	_mm_setcsr(flushing);
	int status = scale(x, 1, y, 1, 1, NULL);
	unsigned after = _mm_getcsr();
	_mm_setcsr(before);
	assert_int_equal(status, OK);
	assert_int_equal(after & 0xffc0, flushing & 0xffc0);
	assert_memory_equal(x, y, sizeof x); /* a subnormal is not flushed */
}

static void
signatures(void **state)
{
	(void)state;
	assert_string_equal(scale_signature_json,
	                    "{\"graph\":\"scale\",\"params\":[{\"name\":\"x\",\"kind\":\"input\",\"dtype\":\"f32\",\"shape\":[\"N\",\"M\"]},"
	                    "{\"name\":\"a\",\"kind\":\"scalar\",\"dtype\":\"f32\",\"shape\":[]}],\"results\":[{\"name\":\"y\","
	                    "\"kind\":\"result\",\"dtype\":\"f32\",\"shape\":[\"N\",\"M\"]}],\"dims\":[\"N\",\"M\"]}");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_type_by_value), cmocka_unit_test(narrow_arrays),
		cmocka_unit_test(inout_and_renamed),   cmocka_unit_test(sizes_from_scalars),
		cmocka_unit_test(wrong_sizes),         cmocka_unit_test(wrong_memory),
		cmocka_unit_test(facts_and_faults),    cmocka_unit_test(tensors),
		cmocka_unit_test(many_threads),        cmocka_unit_test(float_state_is_kept),
		cmocka_unit_test(signatures),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
