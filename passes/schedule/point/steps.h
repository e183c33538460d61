/* steps.h: short loops of arithmetic, which take several indices in a turn while there are so many: what a turn costs for
 * itself is then small, on a processor that two threads share too. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_STEPS_H
#define TEXO_PASSES_SCHEDULE_POINT_STEPS_H

#include "ir/tir.h"

/* Does index i: takes the carried values, and leaves those after it. */
typedef void StepsBody(void *user, ValId i, ValId *carried);

/* i = 0 .. hi-1, hi an i64 that is not negative, in ascending order, with n carried values; `step`, a power of 2, at once. */
void steps_for(TirKernel *k, ValId hi, unsigned step, ValId *carried, unsigned n, StepsBody *body, void *user);

#endif
