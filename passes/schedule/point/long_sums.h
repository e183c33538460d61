/* long_sums.h: powers that are terms of long sums: long_sums.c. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_LONG_SUMS_H
#define TEXO_PASSES_SCHEDULE_POINT_LONG_SUMS_H

#include "passes/schedule/rows/rows.h"

/* Terms of a sum that is long. */
enum { LONG_SUM_TERMS = 2048 };

/* Whether a kernel of blocks of these rows computes less where its one loop along the lanes is so long. */
bool long_sums_gain(Graph *g, const Rows *r);
/* A term of a sum in such a kernel. */
ExprId long_sums_term(Graph *g, ExprId e);
/* Makes the rows those of such a kernel. */
void long_sums_mark(Graph *g, Rows *r);

#endif
