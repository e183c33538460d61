/* warp_mma.h: what a thread of a warp has of the matrices of WARP_MMA (tir.h), as numbers: element e of its lane's. The
 * rows MMA_A16, MMA_B16, MMA_A32, MMA_B32 and MMA_C of fragments.def say the same as layouts, and tests compare the two.
 * Factors come in words of 32 bits, of two elements or one: `word` is how many. */
#ifndef TEXO_IR_WARP_MMA_H
#define TEXO_IR_WARP_MMA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "ir/dtype.h"

enum {
	WARP_MMA_ROWS = 16,
	WARP_MMA_COLUMNS = 8,
	WARP_MMA_TERM_WORDS = 8,
	WARP_MMA_A_WORDS = 4, /* of a thread */
	WARP_MMA_B_WORDS = 2,
	WARP_MMA_C = 4,       /* elements of a thread */
	/* at most, which is of 16 bits */
	WARP_MMA_TERMS = 2 * WARP_MMA_TERM_WORDS,
	WARP_MMA_A = 2 * WARP_MMA_A_WORDS,
	WARP_MMA_B = 2 * WARP_MMA_B_WORDS,
	WARP_MMA_OPERANDS = WARP_MMA_A + WARP_MMA_B + WARP_MMA_C,
	WARP_MMA_DIGITS = 11  /* bits of a factor of f32, the leading one included */
};

static inline unsigned
warp_mma_word(DType t)
{
	return 32u / dtype_info[t].bits;
}
/* Operands where factors have so many elements a word. */
static inline unsigned
warp_mma_operands(unsigned word)
{
	return (WARP_MMA_A_WORDS + WARP_MMA_B_WORDS) * word + WARP_MMA_C;
}
static inline unsigned
warp_mma_a_row(unsigned e, unsigned lane, unsigned word)
{
	return lane / 4 + 8 * (e / word % 2);
}
static inline unsigned
warp_mma_a_term(unsigned e, unsigned lane, unsigned word)
{
	return (lane % 4 + 4 * (e / word / 2)) * word + e % word;
}
static inline unsigned
warp_mma_b_term(unsigned e, unsigned lane, unsigned word)
{
	return (lane % 4 + 4 * (e / word)) * word + e % word;
}
static inline unsigned
warp_mma_b_column(unsigned lane)
{
	return lane / 4;
}
static inline unsigned
warp_mma_c_row(unsigned e, unsigned lane)
{
	return lane / 4 + 8 * (e / 2 % 2);
}
static inline unsigned
warp_mma_c_column(unsigned e, unsigned lane)
{
	return lane % 4 * 2 + e % 2;
}

/* A factor of f32 as it is multiplied: to the nearest of WARP_MMA_DIGITS bits, away from 0 in the middle of two. */
static inline float
warp_mma_rounded(float x)
{
	uint32_t bits, low = (UINT32_C(1) << (24 - WARP_MMA_DIGITS)) - 1;
	if (!isfinite(x))
		return x;
	memcpy(&bits, &x, sizeof bits);
	bits = (bits + (low + 1) / 2) & ~low;
	memcpy(&x, &bits, sizeof x);
	return x;
}

#endif
