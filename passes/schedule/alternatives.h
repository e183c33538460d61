/* alternatives.h: what else a unit's kernel could be, and what a tuning file says of that.
 *
 * A unit is the nodes that a kernel computes. Its digest is of what they say: their expressions, types, extents, axes and
 * the graph's mode; of a tensor that they read the type and extents, of a parameter the name too. So it stays what it is
 * while other statements change, and units that say the same have one digest and one choice.
 *
 * On a GPU a unit's alternatives are its kernels, of which a launch runs the first that suits. On a processor it has one
 * kernel; other blocks of a product and other grains are built where they are chosen.
 * A choice holds in a bucket of sizes: there the kernels before the chosen one have no tasks, and it has those that it
 * could have. Elsewhere all is as it was, and where it can't run (its factors are not aligned) those behind it do. */
#ifndef TEXO_PASSES_SCHEDULE_ALTERNATIVES_H
#define TEXO_PASSES_SCHEDULE_ALTERNATIVES_H

#include "passes/pass_ctx.h"

enum { PLAN_VARIANTS = 6 };

/* As a line, without its nodes. */
const char *plan_text(Arena *a, const KernelPlan *plan);
uint64_t unit_digest(const Graph *g, Arena *scratch, const TensorId *node, uint32_t n);
/* Other plans for a processor, as far as there are any; how many. */
unsigned plan_variants(const KernelPlan *plan, KernelPlan variant[PLAN_VARIANTS]);
/* Whether a choice for this unit names the plan. */
bool plan_is_chosen(const PassOptions *o, const Graph *g, Arena *scratch, uint64_t unit, const KernelPlan *plan);
/* The last kernel runs where it is chosen alone. */
void alternative_set_aside(Program *p);
/* The choices about the unit whose kernels are those from `first` on; apart: those of its nodes, each on its own, will
 * follow. And, where they are wanted, its alternatives. */
void unit_choose(Program *p, PassCtx *cx, Arena *scratch, uint32_t first, bool apart);

#endif
