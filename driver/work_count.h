/* work_count.h: bytes and operations of sets of nodes, as `texo explain` reports them. */
#ifndef TEXO_DRIVER_WORK_COUNT_H
#define TEXO_DRIVER_WORK_COUNT_H

#include "driver/launch_expr.h"

typedef struct {
	double bytes, flops;
} Work;

typedef struct {
	TensorId reader, read;
} TensorUse;

/* Every read of a tensor by a node, with repetitions. */
typedef struct {
	const Graph *graph;
	Arena *arena;
	VEC(TensorUse) use;
} UseTable;

void use_table_init(UseTable *t, const Graph *g, Arena *a);

/* The work of node[0..n) as one kernel, with every dim known in env. Bytes: each tensor that comes
 * from outside once, one that is reached only through subscripts read from data as many elements as
 * are asked for, at most its size; each tensor that leaves once. Flops: floating-point operations of
 * the bodies, one for each arithmetic operation and each function, and one to combine a term; terms
 * under a guard all count, and so does a range read from data up to where it is cut. */
Work work_count(const LaunchEnv *env, const UseTable *table, Arena *scratch, const TensorId *node, uint32_t n);

#endif
