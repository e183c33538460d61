/* contract_roles.h: a contraction of 16-bit factors by roles (ir/channel.h): contract_roles.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_H

#include "passes/schedule/schedule.h"

/* Whether node t is of that kind, wherever its tensors will live. */
bool contract_roles_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* Whether a kernel of roles computes it where its sizes and memory suit; p then has its parameters. */
bool contract_roles_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *p);
void contract_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);

#endif
