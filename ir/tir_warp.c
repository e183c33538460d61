/* tir_warp.c: runs WARP_MMA: the warps of a block one after the other, term after term. */
#include <math.h>

#include "ir/tir_slot.h"
#include "ir/tir_threads.h"
#include "ir/warp_mma.h"

typedef struct {
	float a[WARP_MMA_ROWS][WARP_MMA_TERMS], b[WARP_MMA_TERMS][WARP_MMA_COLUMNS], c[WARP_MMA_ROWS][WARP_MMA_COLUMNS];
} Matrices;

static float
element(const Block *x, const Step *s, unsigned operand, unsigned thread)
{
	DType t = operand < WARP_MMA_A + WARP_MMA_B ? (DType)s->from : DT_F32;
	return (float)slot_decode(t, at(x, s->src[0] + operand)[thread]);
}

static void
gather(const Block *x, const Step *s, unsigned first, Matrices *m)
{
	for (unsigned lane = 0; lane < TIR_WARP; lane++) {
		for (unsigned e = 0; e < WARP_MMA_A; e++)
			m->a[warp_mma_row(e, lane)][warp_mma_a_term(e, lane)] = element(x, s, e, first + lane);
		for (unsigned e = 0; e < WARP_MMA_B; e++)
			m->b[warp_mma_b_term(e, lane)][warp_mma_b_column(lane)] = element(x, s, WARP_MMA_A + e, first + lane);
		for (unsigned e = 0; e < WARP_MMA_C; e++)
			m->c[warp_mma_row(e, lane)][warp_mma_c_column(e, lane)] = element(x, s, WARP_MMA_A + WARP_MMA_B + e, first + lane);
	}
}

void
threads_warp_mma(Block *x, const Step *s)
{
	Matrices m;
	for (unsigned first = x->from; first < x->to; first += TIR_WARP) {
		gather(x, s, first, &m);
		for (unsigned i = 0; i < WARP_MMA_ROWS; i++)
			for (unsigned j = 0; j < WARP_MMA_COLUMNS; j++)
				for (unsigned t = 0; t < WARP_MMA_TERMS; t++)
					m.c[i][j] = fmaf(m.a[i][t], m.b[t][j], m.c[i][j]);
		for (unsigned lane = 0; lane < TIR_WARP; lane++)
			for (unsigned e = 0; e < WARP_MMA_C; e++)
				at(x, s->dst + e)[first + lane] = slot_encode(DT_F32, (double)m.c[warp_mma_row(e, lane)][warp_mma_c_column(e, lane)]);
	}
}
