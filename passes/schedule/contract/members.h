/* members.h: several sums that one kernel of roles has, and what it makes of them, at a point: members.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_MEMBERS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_MEMBERS_H

#include "passes/schedule/contract/side.h"

enum { MEMBERS_MOST = 12, MEMBERS_MOST_SUMS = 3, MEMBERS_MOST_RESULTS = 4 };

/* Nodes with the same axes, in an order in which each comes after those that it reads: sums of products, and pointwise
 * nodes of them. What one reads of another is its element at the point. */
typedef struct {
	unsigned n, nsum, nresult;
	TensorId node[MEMBERS_MOST];
	int8_t sum[MEMBERS_MOST];    /* which of the sums it is; -1: none */
	int8_t result[MEMBERS_MOST]; /* which of those that are stored, since others need them; -1: none */
} Members;

/* n nodes; false: they are too many, or too many are stored. */
bool members_find(const Graph *g, Arena *scratch, const TensorId *node, unsigned n, Members *to);
/* The sums; how many. */
unsigned members_sums(const Members *m, TensorId *sum);
/* Before any expression: what is stored, what is not, and all that they read. */
void members_declare(Point *l, const Members *m);
void members_begin(Side *s, Point *l, const Members *m, unsigned side, unsigned column_axis);
/* From elements side by side of each sum, MOST_SIDE apart, those of each result at the point, as far apart. */
void members_finish(const Members *m, const Side *s, const ValId *sum, PointVal *done);
void members_store(const Members *m, const Side *s, const PointVal *done);
/* Instructions for an element of all. */
unsigned members_cost(Point *l, const Members *m);
/* The flags (ir/ops.def) that any operation of those has. */
unsigned members_flags(const Point *l, const Members *m);
/* Over dims: bytes that each on its own writes and reads, and together they do not. */
ExprId members_saved(Graph *g, Arena *scratch, const Members *m);
/* Whether several elements side by side of each result can be stored at once. */
bool members_side_possible(const Graph *g, const Members *m, unsigned column_axis);

#endif
