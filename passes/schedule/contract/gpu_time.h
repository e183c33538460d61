/* gpu_time.h: how long parts of a contraction take on a GPU, over its figures (ir/gpus.def), in cycles of 1.4 GHz, to which
 * large products bring an H100. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_GPU_TIME_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_GPU_TIME_H

#include "ir/gpu_facts.h"

enum {
	GPU_ALL = 132,    /* the processors of the first row */
	GPU_TERMS = 64,   /* of a step */
	GPU_CYCLES_10_US = 14 * 1000
};

/* Waves of so many tasks, where as many can run at once as `each` is of GPU_ALL. */
ExprId gpu_waves(Graph *g, ExprId tasks, unsigned each);
/* A step of a tile: at the rate of the multipliers, or where that is longer what was measured, by how fast the cache is. */
ExprId gpu_products_step(Graph *g, unsigned rows, unsigned columns); /* the former alone */
ExprId gpu_step(Graph *g, unsigned rows, unsigned columns, unsigned measured);
/* What was measured, by how fast multiply-adds of f32 are. */
ExprId gpu_arithmetic(Graph *g, ExprId measured);
/* So many bytes, read and written, at the rate of memory. */
ExprId gpu_moving(Graph *g, ExprId bytes);
/* From one kernel to the next. */
ExprId gpu_launch(Graph *g);

#endif
