/* hard_dividends.c: solves 2^e A - (2 M + 1) B = distance for small distances. */
#include "tests/math/hard_dividends.h"

enum { NEAREST = 16 };

/* half of v modulo an odd m */
static uint64_t
half(uint64_t v, uint64_t m)
{
	return (v & 1 ? v + m : v) / 2;
}

/* The A of 24 bits with 2^e A - (2 M + 1) B = distance, A < B where e is 25, else not, B = 2^twos odd, and `inverse` times 2^(e - twos)
 * 1 modulo it: how many, of which the first are in `hard`. The distance is less than odd. */
static unsigned
hard_at(uint32_t b, int64_t distance, unsigned e, uint64_t inverse, uint64_t *hard, unsigned n)
{
	unsigned twos = (unsigned)__builtin_ctz(b);
	int64_t odd = b >> twos, part = distance / ((int64_t)1 << twos);
	uint64_t a = (uint64_t)(part < 0 ? part + odd : part) * inverse % (uint64_t)odd;
	for (; a < HARD_END; a += (uint64_t)odd) {
		if (a < HARD_FIRST || (e == 25) != (a < b))
			continue;
		int64_t middle = ((int64_t)(a << e) - distance) / (int64_t)b;
		if (middle * (int64_t)b == (int64_t)(a << e) - distance && middle % 2 && n < HARD_MOST)
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
	uint64_t odd = b >> twos, inverse = 1;
	for (unsigned e = twos; e < 24; e++)
		inverse = half(inverse, odd);
	for (int64_t distance = 1 << twos; distance <= NEAREST; distance += 2 << twos)
		for (unsigned side = 0; side < 4; side++)
			n = hard_at(b, side % 2 ? -distance : distance, 24 + side / 2, side < 2 ? inverse : half(inverse, odd), hard, n);
	return n;
}
