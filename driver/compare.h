/* compare.h: results against the evaluator, a file, or a literal. */
#ifndef TEXO_DRIVER_COMPARE_H
#define TEXO_DRIVER_COMPARE_H

#include "driver/results.h"

typedef struct {
	bool differs;
	const char *text; /* one line: how many differ, the worst element, both values, bound, ulp */
} Comparison;

/* Within the derived bounds. More than one element in a hundred decided by a comparison inside its
 * own bounds counts as a difference too: such a program can't be tested on these inputs. */
Comparison compare_oracle(Arena *a, const ResultTensor *got, const EvalTensor *want);
/* With a file: |got - want| <= atol + rtol * |want|, NaN equals NaN; integers and bools are equal.
 * A float result may be compared with a file of a wider float type. False with a problem when the
 * file can't be read or does not fit. */
bool compare_file(Session *s, const ResultTensor *got, const char *path, double rtol, double atol,
                  Comparison *out);
/* With a literal, which is exact for integers and has been rounded to its last digit otherwise: it
 * must lie within the evaluator's bound plus that rounding. */
bool compare_literal(Session *s, const EvalTensor *want, const ResultTensor *shape, const Literal *lit,
                     Comparison *out);

#endif
