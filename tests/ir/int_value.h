/* int_value.h: integer and boolean expressions over small values, evaluated directly; and random ones.
 * What index_norm and the prover are compared with. Arithmetic is exact (128 bits). */
#ifndef TEXO_TESTS_IR_INT_VALUE_H
#define TEXO_TESTS_IR_INT_VALUE_H

#include "ir/tg.h"

enum { INT_VARS = 8 };

typedef struct {
	int64_t axis[INT_VARS], ivar[INT_VARS], dim[INT_VARS]; /* by number, dims from 1 */
	int64_t (*read)(const int64_t *sub, unsigned nsub, TensorId t);
	bool overflow; /* a value left i64: the result means nothing */
} IntEnv;

int64_t int_value(const Graph *g, IntEnv *env, ExprId e);

typedef struct {
	uint64_t state;
} Random;

uint32_t random_below(Random *r, uint32_t n);

#endif
