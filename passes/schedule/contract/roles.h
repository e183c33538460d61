/* roles.h: a contraction of 16-bit factors by roles (ir/channel.h): roles.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_H

#include "passes/schedule/schedule.h"

/* Whether node t is of that kind, wherever its tensors will live. */
bool contract_roles_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* Whether it would be if some factors were elements of tensors; factor[k] is such a one, f32(x) with x of 16 bits, or 0. */
bool contract_roles_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, ExprId *factor);
enum { ROLES_MOST_PLANS = 16 };
/* How many kernels of roles compute it, each where its sizes and memory suit; plan then has their parameters. */
unsigned contract_roles_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan);
void contract_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o);

#endif
