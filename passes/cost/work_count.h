/* work_count.h: bytes and operations of sets of nodes, and what the operations cost. */
#ifndef TEXO_PASSES_COST_WORK_COUNT_H
#define TEXO_PASSES_COST_WORK_COUNT_H

#include "ir/launch_expr.h"

typedef struct {
	double bytes, flops;
	double steps; /* operations, where each is one of each term of its node, be it the same for many */
	/* of the operations, one at a time and in vectors (op_cost.h): what does not vary along the innermost
	 * axis is computed outside of its loop, what does not among values that are folded side by side for all of
	 * them, and what several nodes of the set have in common once */
	double scalar_ns, vector_ns;
	/* of these, what fills panels: operations, in vectors; and the bytes that it reads again */
	double panel_flops, panel_ns, again;
} Work;

/* A factor of a contraction, whose elements are evaluated ahead of the products that they are in, as launch expressions:
 * elements of the output that each is needed for, and how often it is evaluated for these. */
typedef struct {
	ExprId factor, others, times;
} WorkPanel;

typedef struct {
	WorkPanel of[2];
} WorkPanels;

typedef struct {
	TensorId reader, read;
} TensorUse;

typedef enum { WORK_INNERMOST, WORK_SIDE, WORK_AXES } WorkAlong;

/* Every read of a tensor by a node, in both directions, and the room that counting needs. */
typedef struct {
	const Graph *graph;
	Arena *arena;
	VEC(TensorUse) use;     /* by reader, with repetitions */
	uint32_t *start;        /* by tensor: its readers are user[start[t] .. start[t + 1]) */
	TensorId *user;
	bool *result;           /* by tensor */
	bool *steps;            /* by tensor: its kernel takes one term for an element, as a step from the one before */
	uint32_t *axes;         /* by expression: those of its node that it varies with, as bits */
	const WorkPanels **panels;  /* by tensor: a contraction whose factors are evaluated into panels; else NULL */
	uint32_t stamp;         /* of the set being counted; marks below are compared with it */
	uint32_t *inside, *seen; /* by tensor */
	double *asked;          /* by tensor: elements asked for through data, below 0 for all */
	uint32_t nexpr;
	uint32_t *counted;      /* by expression: the set that last took its cost */
	uint32_t walk;          /* the walk at work: */
	uint32_t *varies[WORK_AXES]; /* by expression: the last walk along whose axis of that kind it varies */
} UseTable;

void use_table_init(UseTable *t, const Graph *g, Arena *a);

/* The work of node[0..n) as one kernel, with every dim known in env. Bytes: each tensor that comes
 * from outside once, one that is reached only through subscripts read from data as many elements as
 * are asked for, at most its size; each tensor that leaves once. Flops: floating-point operations of
 * the bodies, one for each arithmetic operation and each function, at each point of the axes that it varies with, and one to
 * combine a term: a weight of attention is computed once, for all columns. Terms
 * under a guard all count, and so does a range read from data up to where it is cut; of a factor in a
 * panel, as many as are evaluated. Takes time and
 * memory of the set's size, not of the graph's. */
Work work_count(const LaunchEnv *env, UseTable *table, const TensorId *node, uint32_t n);
/* The flops of the whole graph, and the bytes that its signature makes every schedule move: each input
 * once (one that is reached only through data as above), each result once, an inout twice. */
Work work_of_signature(const LaunchEnv *env, UseTable *table);

#endif
