/* hard_dividends.h: the dividends whose quotients are next to the middle between two floats, where a way to divide that is
 * wrong by little is wrong. Significands are integers of 24 bits. */
#ifndef TEXO_TESTS_MATH_HARD_DIVIDENDS_H
#define TEXO_TESTS_MATH_HARD_DIVIDENDS_H

#include <stdint.h>

enum { HARD_MOST = 64, HARD_FIRST = 1 << 23, HARD_END = 1 << 24 };

/* The significands whose quotients by b are within 16 / (2 b) ulp of a middle; how many there are, fewer than HARD_MOST. By
 * a power of two none is, or by a multiple of a large one. */
unsigned hard_dividends(uint32_t b, uint64_t *hard);

#endif
