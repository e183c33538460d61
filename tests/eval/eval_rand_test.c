/* rand and randn: the published known answers of Philox-4x32-10, the language's counter and lane
 * layout, and the range and moments of what comes out. */
#include "bench.h"

#include <math.h>
#include <string.h>

#include "ir/eval_value.h"

/* Random123's kat_vectors for philox4x32 10. */
static void
known_answers(void **state)
{
	(void)state;
	static const struct { uint32_t counter[4], key[2], want[4]; } rows[] = {
		{{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
		{{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff},
		 {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
		{{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0},
		 {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++) {
		uint32_t out[4];
		philox4x32(rows[k].counter, rows[k].key, out);
		assert_memory_equal(out, rows[k].want, sizeof out);
	}
}

static double
from_word(uint32_t word)
{
	return (double)(word >> 8) * 0x1p-24;
}

/* The last index counts words, the others follow it in source order; the seed's low half is first. */
static void
indices_make_the_counter(void **state)
{
	(void)state;
	uint64_t seed = UINT64_C(0x299f31d0a4093822);
	int64_t index[4] = {0x85a308d3, 0x13198a2e, 0x03707344, INT64_C(0x243f6a88) * 4};
	static const uint32_t want[4] = {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1};
	for (int lane = 0; lane < 4; lane++, index[3]++) {
		Val v = rand_uniform(seed, index, 4);
		assert_true((double)v.re == from_word(want[lane]) && v.err == 0);
	}
	int64_t one[1] = {2};
	assert_true((double)rand_uniform(0, one, 1).re == from_word(0xbc57ac4c));
}

/* Box-Muller on words 0, 1 for lanes 0, 1 and on words 2, 3 for lanes 2, 3. */
static void
normals_come_in_pairs(void **state)
{
	(void)state;
	static const uint32_t w[4] = {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8};
	for (int64_t lane = 0; lane < 4; lane++) {
		double u = from_word(w[lane & 2]), v = from_word(w[(lane & 2) + 1]);
		double radius = sqrt(-2 * log(1 - u)), angle = 6.283185307179586 * v;
		double want = radius * (lane % 2 ? sin(angle) : cos(angle));
		Val got = rand_normal(FP_STRICT, 0, &lane, 1);
		assert_true(fabs((double)got.re - want) < 1e-12);
		assert_true(got.err > 0 && got.err < 2e-6);
		/* the same in f32, step by step */
		float r32 = sqrtf(-2.0f * logf(1.0f - (float)u)), a32 = 6.2831853f * (float)v;
		float f32 = r32 * (lane % 2 ? sinf(a32) : cosf(a32));
		assert_true(fabs((double)got.re - f32) <= got.err);
	}
}

static void
moments(void **state)
{
	(void)state;
	double sum = 0, square = 0, mean = 0;
	enum { N = 20000 };
	for (int64_t k = 0; k < N; k++) {
		double u = (double)rand_uniform(7, &k, 1).re, x = (double)rand_normal(FP_RELAXED, 7, &k, 1).re;
		assert_true(u >= 0 && u < 1);
		mean += u / N;
		sum += x / N;
		square += x * x / N;
	}
	assert_true(fabs(mean - 0.5) < 0.01 && fabs(sum) < 0.03 && fabs(square - 1) < 0.05);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(indices_make_the_counter),
		cmocka_unit_test(normals_come_in_pairs),
		cmocka_unit_test(moments),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
