/* tir_warp.c: runs WARP_MMA: the warps of a block one after the other, term after term. */
#include <math.h>

#include "ir/tir_slot.h"
#include "ir/tir_threads.h"
#include "ir/warp_mma.h"

typedef struct {
	float a[WARP_MMA_ROWS][WARP_MMA_TERMS], b[WARP_MMA_TERMS][WARP_MMA_COLUMNS], c[WARP_MMA_ROWS][WARP_MMA_COLUMNS];
} Matrices;

static float
element(const Block *x, const Step *s, DType t, unsigned operand, unsigned thread)
{
	return (float)slot_decode(t, at(x, s->src[0] + operand)[thread]);
}

static float
factor(const Block *x, const Step *s, unsigned operand, unsigned thread)
{
	float f = element(x, s, (DType)s->from, operand, thread);
	return s->from == DT_F32 ? warp_mma_rounded(f) : f;
}

static void
gather(const Block *x, const Step *s, unsigned first, Matrices *m)
{
	unsigned word = warp_mma_word((DType)s->from), b = WARP_MMA_A_WORDS * word, c = b + WARP_MMA_B_WORDS * word;
	for (unsigned lane = 0; lane < TIR_WARP; lane++) {
		for (unsigned e = 0; e < b; e++)
			m->a[warp_mma_a_row(e, lane, word)][warp_mma_a_term(e, lane, word)] = factor(x, s, e, first + lane);
		for (unsigned e = 0; e < c - b; e++)
			m->b[warp_mma_b_term(e, lane, word)][warp_mma_b_column(lane)] = factor(x, s, b + e, first + lane);
		for (unsigned e = 0; e < WARP_MMA_C; e++)
			m->c[warp_mma_c_row(e, lane)][warp_mma_c_column(e, lane)] = element(x, s, DT_F32, c + e, first + lane);
	}
}

void
threads_warp_mma(Block *x, const Step *s)
{
	Matrices m;
	unsigned terms = WARP_MMA_TERM_WORDS * warp_mma_word((DType)s->from);
	for (unsigned first = x->from; first < x->to; first += TIR_WARP) {
		gather(x, s, first, &m);
		for (unsigned i = 0; i < WARP_MMA_ROWS; i++)
			for (unsigned j = 0; j < WARP_MMA_COLUMNS; j++)
				for (unsigned t = 0; t < terms; t++)
					m.c[i][j] = fmaf(m.a[i][t], m.b[t][j], m.c[i][j]);
		for (unsigned lane = 0; lane < TIR_WARP; lane++)
			for (unsigned e = 0; e < WARP_MMA_C; e++)
				at(x, s->dst + e)[first + lane] = slot_encode(DT_F32, (double)m.c[warp_mma_c_row(e, lane)][warp_mma_c_column(e, lane)]);
	}
}
