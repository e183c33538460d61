/* early_reads.h: what a value reads of memory at indices that are known without memory. That is read ahead of the rest, so
 * that all reads wait together, or while something else is computed; the rest is computed from stand-ins for what was read. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_EARLY_READS_H
#define TEXO_PASSES_SCHEDULE_POINT_EARLY_READS_H

#include "passes/schedule/point/point.h"

enum { EARLY_READS = 4 };

/* How a read goes along a group of a value's elements: once for all of them, for each of them, or, where they lie side by
 * side in memory, of all of them at once. */
typedef enum { EARLY_ONCE, EARLY_EACH, EARLY_GROUP } EarlyHow;
typedef struct {
	ExprId read;
	EarlyHow how;
} EarlyRead;
typedef struct {
	unsigned n, stand_in; /* the number of the first stand-in: its user's to set */
	EarlyRead at[EARLY_READS];
} EarlyReads;

typedef EarlyHow (*EarlyWalk)(void *user, const Graph *g, Arena *scratch, ExprId read);

/* The reads, EARLY_READS at most, that whoever wants the value wants, in an order that depends on the value alone; `how` is
 * asked once of each. What is behind a condition isn't wanted, but the condition is. */
void early_reads_find(const Graph *g, Arena *scratch, ExprId value, EarlyWalk how, void *user, EarlyReads *out);
ExprId early_stand_in(Graph *g, const EarlyReads *e, unsigned n);
/* The value with stand-ins for its early reads. */
ExprId early_reads_replace(Graph *g, Arena *scratch, ExprId value, EarlyReads *e);
/* The value at the point, of which nothing is kept for others. always: it is wanted, so that what it reads is there. */
ValId early_value(Point *l, ExprId e, bool always);
/* The same of n elements side by side along the axis, each in out. The value of all of them. */
ValId early_group(Point *l, ExprId e, unsigned n, unsigned axis, ValId *out);

#endif
