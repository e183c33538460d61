/* cast_test.c: every cast from and to a narrow float, as written out by tile_legalize, or left to the processor, and compiled,
 * against the interpreter's own casts: all codes of sources up to 16 bits; of wider ones all numbers of
 * the target, the middles between them, their neighbours on both sides, and 65,536 others. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "passes/tile/tile.h"
#include "tests/math/kernel.h"

enum { RANDOM = 65536 };

typedef struct {
	void *data;
	int64_t n, cap;
	DType t;
} Inputs;

static void
put_bits(Inputs *in, uint64_t bits)
{
	unsigned width = dtype_info[in->t].bits;
	if (in->n == in->cap) {
		in->cap = in->cap ? 2 * in->cap : 1024;
		in->data = realloc(in->data, (size_t)in->cap * 8);
		assert_non_null(in->data);
	}
	if (width == 4) {
		uint8_t *p = (uint8_t *)in->data + in->n / 2;
		*p = (uint8_t)(in->n % 2 ? (*p & 15) | bits << 4 : bits & 15);
	} else {
		memcpy((uint8_t *)in->data + in->n * (width / 8), &bits, width / 8);
	}
	in->n++;
}

/* v and its neighbours in the source's type. */
static void
put_near(Inputs *in, double v)
{
	for (int d = -2; d <= 2; d++) {
		if (in->t == DT_F64) {
			uint64_t bits;
			memcpy(&bits, &v, 8);
			put_bits(in, bits + (uint64_t)d);
		} else if (in->t == DT_F32) {
			float f = (float)v;
			uint32_t bits;
			memcpy(&bits, &f, 4);
			put_bits(in, bits + (uint32_t)d);
		} else if (fabs(v) < 0x1p63) {
			put_bits(in, (uint64_t)((int64_t)v + d));
		} else if (v > 0 && v < 0x1p64) {
			put_bits(in, (uint64_t)v + (uint64_t)d);
		}
	}
}

/* Every finite number of a narrow float, by the interpreter's cast to f64. */
static int64_t
numbers_of(DType t, double *out)
{
	Rig r;
	rig_open(&r, "numbers");
	kernel_map(&r, OP_NONE, t, DT_F64, DT_F64, 0);
	int64_t n = INT64_C(1) << dtype_info[t].bits, kept = 0;
	Inputs in = {.t = t};
	for (int64_t c = 0; c < n; c++)
		put_bits(&in, (uint64_t)c);
	RigRun run = {.data = {in.data, out}, .count = {n, n}, .scalar = {&n}, .ntask = 1};
	rig_interpret(&r, &run);
	rig_close(&r);
	free(in.data);
	for (int64_t c = 0; c < n; c++)
		if (isfinite(out[c]))
			out[kept++] = out[c];
	return kept;
}

static int
ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

/* From a wide source to a narrow float: around every decision. */
static void
put_decisions(Inputs *in, DType to)
{
	double *v = malloc(65536 * sizeof *v);
	assert_non_null(v);
	int64_t n = numbers_of(to, v);
	qsort(v, (size_t)n, sizeof *v, ascending);
	for (int64_t i = 0; i < n; i++) {
		put_near(in, v[i]);
		if (i)
			put_near(in, v[i - 1] / 2 + v[i] / 2);
	}
	put_near(in, v[n - 1] * 1.5);
	put_near(in, v[n - 1] + (v[n - 1] - v[n - 2]) / 2);
	free(v);
}

static bool
is_narrow(DType t)
{
	return dtype_is_float(t) && t != DT_F32 && t != DT_F64;
}

static Inputs
inputs(DType from, DType to)
{
	Inputs in = {.t = from};
	unsigned width = dtype_info[from].bits;
	if (width <= 16) {
		for (uint64_t c = 0; c < UINT64_C(1) << width; c++)
			put_bits(&in, c);
		return in;
	}
	if (is_narrow(to))
		put_decisions(&in, to);
	for (uint64_t i = 0; i < RANDOM; i++) {
		uint64_t h = mix_bits(i);
		put_bits(&in, dtype_is_int(from) ? h >> i % width : h >> (64 - width));
	}
	if (in.n % 2) /* 4-bit results come in pairs */
		put_bits(&in, 0);
	static const double edge[] = {0, INFINITY, -INFINITY, NAN, 0x1p63, -0x1p63, 0x1p-149, 0x1p-1074};
	for (size_t i = 0; i < sizeof edge / sizeof edge[0]; i++) {
		put_near(&in, edge[i]);
		put_near(&in, -edge[i]);
	}
	return in;
}

/* NaN codes of a narrow float are equal to one another. */
static bool
same_code(DType t, uint64_t a, uint64_t b)
{
	static const uint16_t least_nan[DT_COUNT] = {[DT_F16] = 0x7c01, [DT_BF16] = 0x7f81,
	                                             [DT_F8E5M2] = 0x7d, [DT_F8E4M3] = 0x7f};
	uint64_t mask = (UINT64_C(1) << (dtype_info[t].bits - 1)) - 1;
	if (a == b)
		return true;
	return least_nan[t] && (a & mask) >= least_nan[t] && (b & mask) >= least_nan[t];
}

static void
compare(DType from, DType to, const void *want, const void *got, int64_t n)
{
	unsigned size = dtype_info[to].bits / 8u;
	if (!is_narrow(to) || size == 0) {
		int64_t at = rig_differ(to, want, got, n);
		if (at >= 0)
			fail_msg("%s -> %s: element %lld", dtype_info[from].text, dtype_info[to].text, (long long)at);
		return;
	}
	for (int64_t i = 0; i < n; i++) {
		uint64_t a = 0, b = 0;
		memcpy(&a, (const uint8_t *)want + i * size, size);
		memcpy(&b, (const uint8_t *)got + i * size, size);
		if (!same_code(to, a, b))
			fail_msg("%s -> %s: element %lld is %llx, not %llx", dtype_info[from].text,
			         dtype_info[to].text, (long long)i, (unsigned long long)b, (unsigned long long)a);
	}
}

static void
check_pair_as(DType from, DType to, unsigned lanes, bool halves)
{
	Rig r;
	Inputs in = inputs(from, to);
	uint8_t *want = calloc((size_t)in.n + 8, 8), *got = calloc((size_t)in.n + 8, 8);
	rig_open(&r, "cast");
	kernel_map(&r, OP_NONE, from, to, to, lanes);
	RigRun run = {.data = {in.data, want}, .count = {in.n, in.n}, .scalar = {&in.n}, .ntask = 1};
	rig_interpret(&r, &run);
	if (halves)
		r.k = tile_half_casts(r.k, &r.arena);
	kernel_lower(&r);
	run.data[1] = got;
	rig_load(&r, "host", 1);
	rig_launch(&r, &run);
	compare(from, to, want, got, in.n);
	rig_close(&r);
	free(in.data);
	free(want);
	free(got);
}

/* By the processor's own casts too, where it has such. */
static void
check_pair(DType from, DType to, unsigned lanes)
{
	check_pair_as(from, to, lanes, false);
	if (codegen_target_offer("host").halves && (from == DT_F16 || to == DT_F16))
		check_pair_as(from, to, lanes, true);
}

static void
test_casts(unsigned lanes)
{
	for (int from = 1; from < DT_COUNT; from++)
		for (int to = 1; to < DT_COUNT; to++)
			if (from != to && from != DT_C64 && to != DT_C64 && (is_narrow((DType)from) || is_narrow((DType)to)))
				check_pair((DType)from, (DType)to, lanes);
}

static void
test_vectors(void **state)
{
	(void)state;
	test_casts(8);
}

static void
test_scalars(void **state)
{
	(void)state;
	check_pair(DT_F32, DT_BF16, 0);
	check_pair(DT_BF16, DT_F32, 0);
	check_pair(DT_F64, DT_F16, 0);
	check_pair(DT_F16, DT_F32, 0);
	check_pair(DT_F32, DT_F16, 0);
	check_pair(DT_I64, DT_BF16, 0);
	check_pair(DT_F32, DT_F4E2M1, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_vectors),
		cmocka_unit_test(test_scalars),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
