/* warp_mma.h: what a thread of a warp has of the matrices of WARP_MMA (tir.h), as numbers: element e of its lane's. The
 * rows MMA_A16, MMA_B16 and MMA_C of fragments.def say the same as layouts, and tests compare the two. */
#ifndef TEXO_IR_WARP_MMA_H
#define TEXO_IR_WARP_MMA_H

enum {
	WARP_MMA_ROWS = 16,
	WARP_MMA_COLUMNS = 8,
	WARP_MMA_TERMS = 16,
	WARP_MMA_A = 8, /* elements of a thread */
	WARP_MMA_B = 4,
	WARP_MMA_C = 4,
	WARP_MMA_OPERANDS = WARP_MMA_A + WARP_MMA_B + WARP_MMA_C
};

/* Of a and c: the row. */
static inline unsigned
warp_mma_row(unsigned e, unsigned lane)
{
	return lane / 4 + 8 * (e / 2 % 2);
}
static inline unsigned
warp_mma_a_term(unsigned e, unsigned lane)
{
	return lane % 4 * 2 + e % 2 + 8 * (e / 4);
}
static inline unsigned
warp_mma_b_term(unsigned e, unsigned lane)
{
	return lane % 4 * 2 + e % 2 + 8 * (e / 2);
}
static inline unsigned
warp_mma_b_column(unsigned lane)
{
	return lane / 4;
}
static inline unsigned
warp_mma_c_column(unsigned e, unsigned lane)
{
	return lane % 4 * 2 + e % 2;
}

#endif
