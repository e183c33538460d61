/* launch_expr.h: integer expressions over dims and scalar parameters (extents, launch checks),
 * evaluated while only some of the dims may be known. */
#ifndef TEXO_IR_LAUNCH_EXPR_H
#define TEXO_IR_LAUNCH_EXPR_H

#include "ir/tg.h"

typedef struct {
	const Graph *graph;
	int64_t *dim;      /* by DimId */
	bool *dim_known;
	int64_t *scalar;   /* by TensorId, for integer and bool parameters of rank 0 */
	bool *scalar_known;
	const int64_t *axis; /* values of AXIS 0..naxis-1, where an estimate wants them; else NULL */
	unsigned naxis;
	const int64_t *fact; /* of the GPU (gpus.def) */
} LaunchEnv;

void launch_env_init(LaunchEnv *env, const Graph *g, Arena *a);
/* False when it needs something unknown, or anything but integers. */
bool launch_value(const LaunchEnv *env, ExprId e, int64_t *out);

#endif
