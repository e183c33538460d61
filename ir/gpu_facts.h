/* gpu_facts.h: what launch expressions know of the GPU that they are evaluated on: the figures of gpus.def. In a graph each
 * is a dim that is fixed, to the figure of the first row, at an axis that nothing has: a runtime for a GPU puts its own in
 * place of that, so that one artefact chooses right on several. No user sees those dims. */
#ifndef TEXO_IR_GPU_FACTS_H
#define TEXO_IR_GPU_FACTS_H

#include "ir/gpu_rows.h"
#include "ir/tg.h"

typedef struct {
	const char *text, *unit, *what;
} GpuFactInfo;
extern const GpuFactInfo gpu_fact_info[GPU_FACTS];

/* The first row: where no device is known. */
const GpuRow *gpu_row_usual(void);

ExprId gpu_fact(Graph *g, GpuFact f);

/* Which figure the dim is, or -1. */
static inline int
gpu_fact_of(const Dim *d)
{
	return d->fixed && d->param < 0 && d->axis <= GPU_FACT_AXIS ? GPU_FACT_AXIS - d->axis : -1;
}

static inline bool
dim_is_users(const Graph *g, DimId d)
{
	return gpu_fact_of(&g->dim.at[d]) < 0;
}

#endif
