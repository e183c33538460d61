/* prefixes.h: a fold over the indices up to, or from, one of the result's own, as one term a step along it.
 *
 *     y[p] = (+)_{lo <= k < hi, k <= p[a] + c} body(p without a, k)
 *
 * y at p[a] is y at p[a] - 1 and one term more: that of k = p[a] + c. */
#ifndef TEXO_PASSES_SCHEDULE_ROWS_PREFIXES_H
#define TEXO_PASSES_SCHEDULE_ROWS_PREFIXES_H

#include "passes/pass_ctx.h"

typedef struct {
	Node node;       /* without reduced axes: its body and guard are those of a step's one term */
	uint8_t axis;    /* of the node: along which steps run */
	bool reverse;    /* from its end to 0 */
	ExprId position; /* of a step's term: its index */
	ExprId first;    /* from which positions count in the result */
} Scan;

/* Whether n is such a fold, and can be computed so to the bit that its mode asks for. Why not is
 * REMARK_NONE where no range of n ends at an axis of its result. */
bool scan_derive(Graph *g, Arena *scratch, const Node *n, Scan *out, RemarkId *why);

#endif
