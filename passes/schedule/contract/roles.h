/* roles.h: a contraction of factors of 16 bits, or of f32, by roles (ir/channel.h): roles.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ROLES_H

#include "passes/schedule/schedule.h"

/* Whether node t is of that kind, wherever its tensors will live. */
bool contract_roles_could(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o);
/* Whether it would be if some factors were elements of tensors; factor[k] is such a one, f32(x) with x of 16 bits, or 0. */
bool contract_roles_would(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, const PassOptions *o, ExprId *factor);
enum { ROLES_MOST_PLANS = 48 };
/* How many kernels of roles compute it, each where its sizes and memory suit; plan then has their parameters. */
unsigned contract_roles_take(const Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan);
void contract_roles_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel, const PassOptions *o);

/* Over dims: 1 where the product that node t is expanded to (Node.expanded), with what makes its factors, is predicted to take no
 * longer than the node by threads, else 0. */
ExprId contract_expanded_pays(Graph *g, Arena *scratch, TensorId t, const PassOptions *o);

/* The kernel of a plan that joins the pieces of the one before it (roles_join.c). */
void contract_join_build(Graph *g, Arena *scratch, const Places *places, Kernel *kernel);

/* How long the plan's kernel is predicted to take, over dims, in cycles of 1.4 GHz: all; the steps that a processor goes through,
 * and a step, of which `products` is what the multipliers need. False: it is no kernel of roles, or one with a window. */
typedef struct {
	ExprId cycles, steps, step, products;
} RolesTime;
bool contract_roles_time(Graph *g, Arena *scratch, const bool *faulty, const KernelPlan *plan, RolesTime *to);

/* --- several sums in one kernel (roles_siblings.c) --- */
/* Whether these sums, 2 at least, can have kernels of roles together, else why not. */
bool contract_siblings_could(const Graph *g, Arena *scratch, const bool *faulty, const TensorId *sum, unsigned n, const PassOptions *o,
                             RemarkId *why);
/* Over dims: cycles that these nodes are predicted to take in one kernel, and in one each. They are sums that could, and
 * pointwise nodes of them (members.h); false: there is no such kernel. */
bool contract_siblings_cycles(Graph *g, Arena *scratch, const bool *faulty, const TensorId *node, unsigned n, const PassOptions *o,
                              ExprId *together, ExprId *apart);
/* As contract_roles_take. */
unsigned contract_siblings_take(Graph *g, Arena *scratch, const Places *places, const TensorId *node, unsigned n, const PassOptions *o,
                                KernelPlan *plan);

#endif
