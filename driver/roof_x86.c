/* roof_x86.c: the two loops of roof.h. The triad stores as ordinary code does, past no cache. The
 * multiply-adds go to as many registers as hide their latency. */
#include "driver/roof.h"

#include <immintrin.h>

enum { CHAINS = 12 };

void
roof_triad(double *a, const double *b, const double *c, double s, size_t n)
{
	const __m128d factor = _mm_set1_pd(s);
	for (size_t i = 0; i + 2 <= n; i += 2)
		_mm_storeu_pd(a + i, _mm_add_pd(_mm_loadu_pd(b + i), _mm_mul_pd(factor, _mm_loadu_pd(c + i))));
}

/* x = x * 0.5 + 1 stays near 2. */
#define LOOP(name, features, type, set1, multiply_add, store, lanes)                     \
	__attribute__((target(features))) static double name(size_t rounds, float *sink) \
	{                                                                                \
		type half = set1(0.5f), one = set1(1.0f), chain[CHAINS];                 \
		float out[lanes];                                                        \
		for (int k = 0; k < CHAINS; k++)                                         \
			chain[k] = set1((float)k);                                       \
		for (size_t n = 0; n < rounds; n++)                                      \
			_Pragma("GCC unroll 12")                                         \
			for (int k = 0; k < CHAINS; k++)                                 \
				chain[k] = multiply_add(chain[k], half, one);            \
		for (int k = 0; k < CHAINS; k++) {                                       \
			store(out, chain[k]);                                            \
			*sink += out[0];                                                 \
		}                                                                        \
		return 2.0 * CHAINS * (lanes) * (double)rounds;                          \
	}
#define MULTIPLY_ADD_128(a, b, c) _mm_add_ps(_mm_mul_ps(a, b), c)

LOOP(loop_512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_storeu_ps, 16)
LOOP(loop_256, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_storeu_ps, 8)
LOOP(loop_128, "sse2", __m128, _mm_set1_ps, MULTIPLY_ADD_128, _mm_storeu_ps, 4)

double
roof_multiply_add(size_t rounds, float *sink)
{
	if (__builtin_cpu_supports("avx512f"))
		return loop_512(rounds, sink);
	if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
		return loop_256(rounds, sink);
	return loop_128(rounds, sink);
}
