/* cost.h: how long kernels take, in microseconds, as `texo explain` and `texo bench` predict it. A pure
 * function of the plan, the target and the dims: nothing is measured here. What an operation costs is
 * op_cost.h's to say, for this as for fusing and for the size of tasks. */
#ifndef TEXO_PASSES_COST_COST_H
#define TEXO_PASSES_COST_COST_H

#include "ir/kp.h"
#include "passes/cost/work_count.h"
#include "passes/pass.h"

/* A row of machines.def. */
typedef struct {
	bool gpu;
	uint16_t lanes;
	double slower, gflops, cache, near, far, most, launch_ns, split_ns, part_ns;
	unsigned threads, registers;
	double products;
} Machine;

/* A kernel that is only thought of. */
typedef struct {
	Template tmpl;
	bool vectors;
	bool products; /* its sums of products are on tensor cores, */
	bool rounded;  /* of f32 that they round: at half the rate */
	double tasks; /* that can run at once */
	double kept;  /* bytes that one task keeps for itself and reads again */
} KernelShape;

/* What a kernel waits for longest. */
typedef enum { COST_START, COST_MEMORY, COST_CACHE, COST_ARITHMETIC, COST_PRODUCTS, COST_ROUNDED, COST_BOUNDS } CostBound;
extern const char *const cost_bound_text[COST_BOUNDS];

/* The machine that these targets are: a GPU, or vectors of so many lanes; NULL: no time is predicted. */
const Machine *cost_machine(bool gpu, uint16_t lanes);
/* The GPU with these figures (ir/gpus.def). */
Machine cost_gpu(const int64_t *fact);
/* A kernel of this shape, whose nodes have this work, by so many threads. */
double cost_shape_us(const Machine *m, const KernelShape *shape, const Work *w, unsigned threads);
/* The kernel of this plan, whose nodes have this work, by so many threads; and what it waits for. */
double cost_kernel_bound(const Machine *m, const KernelPlan *plan, const Work *w, unsigned threads, CostBound *bound);
/* Each definition as a kernel of its own: node t with this work. */
double cost_alone_us(const Machine *m, const Graph *g, TensorId t, const Work *w, unsigned threads);
/* Tells the counting which folds of p are scans, and what its contractions on a processor evaluate into panels. */
void cost_note_plans(UseTable *uses, const Program *p);
/* Tells it what contractions on a processor would evaluate into panels: all of them, or node t. */
void cost_note_panels(UseTable *uses, Graph *g, const bool *faulty, const PassOptions *o);
void cost_note_panels_of(UseTable *uses, Graph *g, const bool *faulty, TensorId t, const PassOptions *o);
/* All kernels one after another, with every dim known in env. */
double cost_program_us(const Machine *m, const Program *p, const LaunchEnv *env, Arena *scratch, unsigned threads);

#endif
