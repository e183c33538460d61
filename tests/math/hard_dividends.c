/* hard_dividends.c: solves 2^e A - (2 M + 1) B = distance for small distances. */
#include "tests/math/hard_dividends.h"

enum { NEAREST = 16 };

/* 2^-n modulo an odd m > 1 */
static uint64_t
half_power(unsigned n, uint64_t m)
{
	uint64_t v = 1, half = (m + 1) / 2;
	while (n-- > 0)
		v = v * half % m;
	return v;
}

/* The A of 24 bits with 2^e A - (2 M + 1) B = distance, A < B where e is 25, else not: how many, of which the first are in `hard`. */
static unsigned
hard_at(uint32_t b, int64_t distance, unsigned e, uint64_t *hard, unsigned n)
{
	unsigned twos = (unsigned)__builtin_ctz(b);
	int64_t odd = b >> twos, part = distance / ((int64_t)1 << twos) % odd;
	uint64_t a = (uint64_t)(part < 0 ? part + odd : part) * half_power(e - twos, (uint64_t)odd) % (uint64_t)odd;
	for (; a < HARD_END; a += (uint64_t)odd) {
		int64_t middle = ((int64_t)(a << e) - distance) / (int64_t)b;
		if (a >= HARD_FIRST && (e == 25) == (a < b) && middle * (int64_t)b == (int64_t)(a << e) - distance && middle % 2 && n < HARD_MOST)
			hard[n++] = a;
	}
	return n;
}

unsigned
hard_dividends(uint32_t b, uint64_t *hard)
{
	unsigned n = 0, twos = (unsigned)__builtin_ctz(b);
	if (1 << twos > NEAREST)
		return 0;
	for (int64_t distance = 1 << twos; distance <= NEAREST; distance += 2 << twos)
		for (unsigned side = 0; side < 4; side++)
			n = hard_at(b, side % 2 ? -distance : distance, 24 + side / 2, hard, n);
	return n;
}
