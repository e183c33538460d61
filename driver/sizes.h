/* sizes.h: dims that nothing gives. */
#ifndef TEXO_DRIVER_SIZES_H
#define TEXO_DRIVER_SIZES_H

#include "ir/launch_expr.h"
#include "driver/problem.h"

typedef struct {
	bool *dim;    /* by DimId: chosen here */
	bool *scalar; /* by TensorId */
} SizesChosen;

/* Solves dims from the lengths of given axes: extent e has the value length. Each call may make more
 * dims known; false when e can't have this length. */
bool sizes_solve_axis(LaunchEnv *env, ExprId e, int64_t length);

/* Chooses what is still unknown among the dims, and the integer scalars that extents and checks
 * read: small sizes with which every extent is >= 0, every launch check that can be decided holds, the
 * last axis of 4-bit tensors is even, and no tensor that depends on them has more than 2^22 elements. With hints, a dim's hint (M ~ 4096)
 * is tried first and tensors may be of any size. The search goes through a fixed order of candidates,
 * so the result depends on the graph alone. EXIT_INPUT naming the dims when nothing is found. */
bool sizes_choose(LaunchEnv *env, bool hints, Arena *a, SizesChosen *chosen, Problem *p);

#endif
