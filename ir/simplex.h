/* simplex.h: whether linear inequalities over the rationals have a solution, exactly. */
#ifndef TEXO_IR_SIMPLEX_H
#define TEXO_IR_SIMPLEX_H

#include "ir/arena.h"

/* Row r says: sum over k < cols of at[r * (cols + 1) + k] * x[k] + at[r * (cols + 1) + cols] >= 0, or
 * == 0 where eq[r]. The variables are free. Both arrays are overwritten. */
typedef struct {
	unsigned rows, cols;
	int64_t *at;
	bool *eq;
	uint32_t *row_id, *col_id; /* rows and cols entries of work space */
} Simplex;

/* True only if there is no solution; false also when the numbers outgrow int64 or too many steps
 * would be needed. */
bool simplex_infeasible(Simplex *s);

#endif
