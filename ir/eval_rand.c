/* eval_rand.c: rand and randn, to the bit of LANGUAGE.md: Philox-4x32-10 with the seed as key and
 * the indices as counter. */
#include "ir/eval_value.h"

void
philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
	uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
	uint32_t k0 = key[0], k1 = key[1];
	for (int round = 0; round < 10; round++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
		uint32_t n0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0, n2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c1 = (uint32_t)p1;
		c3 = (uint32_t)p0;
		c0 = n0;
		c2 = n2;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* The four words that hold the value of these indices. The last index counts four words a step;
 * its floor division and remainder, so that negative indices have values as well. */
static unsigned
words(uint64_t seed, const int64_t *index, unsigned n, uint32_t out[4])
{
	uint32_t key[2] = {(uint32_t)seed, (uint32_t)(seed >> 32)}, counter[4] = {0};
	uint64_t last = (uint64_t)index[n - 1];
	counter[0] = (uint32_t)(last >> 2);
	for (unsigned k = 0; k + 1 < n; k++)
		counter[k + 1] = (uint32_t)(uint64_t)index[k];
	philox4x32(counter, key, out);
	return (unsigned)(last & 3);
}

static long double
uniform(uint32_t word)
{
	return ldexpl((long double)(word >> 8), -24);
}

Val
rand_uniform(uint64_t seed, const int64_t *index, unsigned n)
{
	uint32_t w[4];
	unsigned lane = words(seed, index, n, w);
	return val_float(uniform(w[lane]));
}

/* Every step is an f32 operation; 2 pi v may use 2 pi rounded to f32 or exact, so the angle has a
 * bound of its own. */
Val
rand_normal(FpMode fp, uint64_t seed, const int64_t *index, unsigned n)
{
	uint32_t w[4];
	unsigned lane = words(seed, index, n, w);
	Val u = val_float(1 - uniform(w[lane & 2])), v = val_float(uniform(w[(lane & 2) + 1]));
	Val radius = math_unary(fp, OP_LOG, DT_F32, DT_NONE, u);
	radius = arith_mul(fp, DT_F32, val_float(-2), radius);
	radius = math_unary(fp, OP_SQRT, DT_F32, DT_NONE, radius);
	Val angle = val_float(6.283185307179586476925286766559L * v.re);
	angle.err = (double)v.re * 0x1.8p-22 + number_ulp(DT_F32, (double)angle.re);
	Val turn = math_unary(fp, lane % 2 ? OP_SIN : OP_COS, DT_F32, DT_NONE, angle);
	return val_hard(arith_mul(fp, DT_F32, radius, turn));
}
