/* dot_product.h: a tile of a product of bf16 by TIR's DOT, or by vectors where DOT would meet a subnormal.
 *
 * DOT takes subnormal operands for 0 and makes subnormal results 0, which the graph's mode does not
 * allow. So who packs the factors keeps the least magnitude that is in each piece, or was in it in the
 * blocks of terms before: with a from one piece and b from the other, each sum is a multiple of the
 * last bit of the least a times that of the least b, and rounding keeps it one. Where that is no less
 * than 2^-126, no operand, product or sum on the way is subnormal, and DOT rounds as IEEE says. Where it
 * is less, vectors multiply the same panels: term by term in ascending order. Whichever it is, the sum is
 * one that the relaxed mode allows. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_DOT_PRODUCT_H
#define TEXO_PASSES_SCHEDULE_POINT_DOT_PRODUCT_H

#include "ir/tir.h"
#include "passes/pass.h"

enum { DOT_MAX_AT = 5 };

/* A matrix in memory: its view and the leading indices of DOT. */
typedef struct {
	ValId view;
	unsigned n;
	ValId at[DOT_MAX_AT];
} DotMatrix;

typedef struct {
	unsigned rows, columns, pairs, lanes; /* lanes: of a vector of f32 */
	bool chained;
	DotMatrix c, a, b; /* c: (row, column); a: (group, row, pair); b: (group, pair, column) */
	ValId groups;
	ValId anew;             /* bool: c becomes the product, whatever is there; 0: it is added to */
	ValId least_a, least_b; /* of the pieces, as dot_lesser makes it */
} DotProduct;

/* c += a b, or c = a b */
void dot_product(TirKernel *k, const DotProduct *p);
/* The same by DOT alone, and whether that is as IEEE says, for who has another way than vectors of the pairs. */
void dot_emit(TirKernel *k, const DotProduct *p);
ValId dot_is_exact(TirKernel *k, ValId least_a, ValId least_b);

/* --- least magnitudes --- */
/* Of vectors of pairs: of either of a pair, as a u32 that is UINT32_MAX for 0, which does not count; the least,
 * or the most, of the lanes of integers. */
ValId dot_lesser(TirKernel *k, ValId pairs);
ValId dot_across(TirKernel *k, Op op, ValId v);

#endif
