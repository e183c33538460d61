/* narrow.h: how exact the functions are whose results end in narrow floats. */
#ifndef TEXO_TESTS_MATH_NARROW_H
#define TEXO_TESTS_MATH_NARROW_H

#include "tests/math/kernel.h"

typedef struct {
	Op op;
	DType to; /* the mark */
} NarrowRow;
enum { NNARROW = 6 };
extern const NarrowRow narrow_rows[NNARROW];

typedef struct {
	double worst, at;    /* before the last rounding, in 1/16 ulp of the type, with f32's exponents */
	double absolute;     /* the largest error of all, of a function whose results are of -1 .. 1; else 0 */
	int64_t not_nearest; /* of all 65,536 inputs of the type, rounded to it at last */
} NarrowMeasure;

typedef void NarrowLower(Rig *r);
/* At 2^log2_points arguments of f32 and at all of the type; lower is one of
 * kernel_lower_narrow_*; with EX2 the interpreter runs it. */
NarrowMeasure narrow_measure(const NarrowRow *row, NarrowLower *lower, int log2_points);
/* "exp to bf16" */
const char *narrow_name(const NarrowRow *row);

#endif
