/* layout_split.h: two register layouts of one shape, cut into the same digits.
 *
 * Where the digits of both nest, every digit of radix 2 whose step is one bit counts as a bit, also those
 * that a layout keeps as a repeat; what remains are the same mixed digits in both, and both keep these in
 * registers. So a conversion is a problem over bits, once for every value of the mixed digits. */
#ifndef TEXO_IR_LAYOUT_SPLIT_H
#define TEXO_IR_LAYOUT_SPLIT_H

#include "ir/layout.h"

typedef struct {
	uint8_t dim;
	uint32_t count, stride, weight; /* weight: of one step in the register's number */
} SplitDigit;

typedef struct {
	unsigned nreg;
	uint64_t reg[2 * LAYOUT_BITS];
	uint32_t weight[2 * LAYOUT_BITS]; /* of each in the register's number */
	unsigned ndigit;
	SplitDigit digit[LAYOUT_REPEATS * 2]; /* by dimension, then stride */
} Split;

/* False when the shapes differ, memory offsets are in one of them, or the digits do not nest. */
bool layout_split(const Layout *a, const Layout *b, Split *sa, Split *sb);
#endif
