/* blake2b.c: see blake2b.h. Plain C, as RFC 7693 has it in section 3; tests/cache holds it against
 * published digests. All bytes are at hand, so that there is no state to carry between calls. */
#include "driver/cache/blake2b.h"

#include <string.h>

enum { BLOCK = 128, ROUNDS = 12 };

static const uint64_t initial[8] = {
	UINT64_C(0x6a09e667f3bcc908), UINT64_C(0xbb67ae8584caa73b), UINT64_C(0x3c6ef372fe94f82b), UINT64_C(0xa54ff53a5f1d36f1),
	UINT64_C(0x510e527fade682d1), UINT64_C(0x9b05688c2b3e6c1f), UINT64_C(0x1f83d9abfb41bd6b), UINT64_C(0x5be0cd19137e2179),
};

/* Which word of the block each step takes; the last two rounds are the first two again. */
static const uint8_t schedule[10][16] = {
	{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15},
	{14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3},
	{11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4},
	{7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8},
	{9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13},
	{2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9},
	{12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11},
	{13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10},
	{6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5},
	{10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0},
};

static inline uint64_t
turn_right(uint64_t v, unsigned by)
{
	return v >> by | v << (64 - by);
}

static inline void
mix(uint64_t v[16], unsigned a, unsigned b, unsigned c, unsigned d, uint64_t x, uint64_t y)
{
	v[a] += v[b] + x;
	v[d] = turn_right(v[d] ^ v[a], 32);
	v[c] += v[d];
	v[b] = turn_right(v[b] ^ v[c], 24);
	v[a] += v[b] + y;
	v[d] = turn_right(v[d] ^ v[a], 16);
	v[c] += v[d];
	v[b] = turn_right(v[b] ^ v[c], 63);
}

/* `before` bytes end with this block. */
static void
compress(uint64_t h[8], const uint8_t *block, uint64_t before, int last)
{
	uint64_t v[16], m[16];
	memcpy(m, block, sizeof m); /* little-endian, as every machine of ours is */
	memcpy(v, h, 8 * sizeof *v);
	memcpy(v + 8, initial, sizeof initial);
	v[12] ^= before;
	if (last)
		v[14] = ~v[14];
	for (unsigned r = 0; r < ROUNDS; r++) {
		const uint8_t *s = schedule[r % 10];
		mix(v, 0, 4, 8, 12, m[s[0]], m[s[1]]);
		mix(v, 1, 5, 9, 13, m[s[2]], m[s[3]]);
		mix(v, 2, 6, 10, 14, m[s[4]], m[s[5]]);
		mix(v, 3, 7, 11, 15, m[s[6]], m[s[7]]);
		mix(v, 0, 5, 10, 15, m[s[8]], m[s[9]]);
		mix(v, 1, 6, 11, 12, m[s[10]], m[s[11]]);
		mix(v, 2, 7, 8, 13, m[s[12]], m[s[13]]);
		mix(v, 3, 4, 9, 14, m[s[14]], m[s[15]]);
	}
	for (unsigned i = 0; i < 8; i++)
		h[i] ^= v[i] ^ v[i + 8];
}

void
blake2b(const void *bytes, size_t n, uint8_t digest[BLAKE2B_BYTES])
{
	uint64_t h[8];
	uint8_t end[BLOCK] = {0};
	const uint8_t *at = bytes;
	size_t left = n;
	memcpy(h, initial, sizeof h);
	h[0] ^= 0x01010000 ^ BLAKE2B_BYTES;
	for (; left > BLOCK; at += BLOCK, left -= BLOCK)
		compress(h, at, n - left + BLOCK, 0);
	if (left)
		memcpy(end, at, left);
	compress(h, end, n, 1);
	memcpy(digest, h, BLAKE2B_BYTES);
}
