/* gpu_rows.h: the figures of gpus.def by number, and what a row is. Plain data, for the runtime as well. */
#ifndef TEXO_IR_GPU_ROWS_H
#define TEXO_IR_GPU_ROWS_H

#include <stdint.h>

typedef enum {
#define FACT(id, text, unit, what) GPU_##id,
#include "ir/gpus.def"
	GPU_FACTS
} GpuFact;

typedef struct {
	const char *name;
	int sm;
	int64_t fact[GPU_FACTS];
} GpuRow;

/* What says which figure a fixed dim is: the axis that it is at. */
enum { GPU_FACT_AXIS = -2 }; /* of the first; less by one for each behind it */

#endif
