/* narrow_coefficients.h: printed by coefficients/fit_narrow.sollya; do not edit. Polynomials as in coefficients.h,
 * of f32 alone. */
#ifndef TEXO_PASSES_TILE_NARROW_COEFFICIENTS_H
#define TEXO_PASSES_TILE_NARROW_COEFFICIENTS_H

#include "passes/tile/coefficients.h"

/* 2^x for |x| <= 1/2, where bf16 is enough: within 2^-13.70703125 of it */
static const ExPoly exp2_bf16_poly = {
	{4, 0},
	{{
		0x1.fff692p-1,
		0x1.62f31ap-1,
		0x1.f0de26p-3,
		0x1.c3f798p-5,
	}, {0}},
};

/* 2^x for |x| <= 1/2, where f16 is enough: within 2^-18.546875 of it */
static const ExPoly exp2_f16_poly = {
	{5, 0},
	{{
		0x1.ffffe8p-1,
		0x1.62e0dcp-1,
		0x1.ec06a6p-3,
		0x1.ca147ep-5,
		0x1.39a2a2p-7,
	}, {0}},
};

#endif
