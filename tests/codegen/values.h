/* values.h: operands worth trying: every type's edges, then random bits. */
#ifndef TEXO_TESTS_CODEGEN_VALUES_H
#define TEXO_TESTS_CODEGEN_VALUES_H

#include "ir/dtype.h"

/* Fills count packed elements. With round 0, 1, 2, element i is edge number i / n^round mod n, so that
 * arrays of different rounds go through all combinations of edges; from n^2 on, random bits and random
 * edges by turns. */
void fill_values(DType t, void *packed, int64_t count, unsigned round, uint64_t seed);

#endif
