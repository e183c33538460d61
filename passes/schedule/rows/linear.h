/* linear.h: a recurrence whose step is linear in what it reads of itself, as a scan.
 *
 *     y[p] = factor(p) * y[p with p[a] one step earlier] + term(p)
 *
 * Steps compose, (f, t) after (g, s) being (f g, f s + t), so they can be joined in any grouping (Blelloch 1990, "Prefix sums
 * and their applications", 1.4): a row needs not go step by step. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_LINEAR_H
#define TEXO_PASSES_SCHEDULE_ROWS_LINEAR_H

#include "passes/schedule/rows/prefixes.h"

/* Whether n is such a recurrence, and its mode lets steps be grouped; then Scan.node folds the terms, and its factor is what
 * a step multiplies by, 0 for the first step. Why not is REMARK_NONE where n is no recurrence of one node. */
bool linear_derive(Graph *g, Arena *scratch, const Node *n, Scan *out, RemarkId *why);

#endif
