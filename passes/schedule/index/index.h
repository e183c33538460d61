/* index.h: which elements of a scatter are a task's, and so which terms it takes.
 *
 * An axis of the output is *own* where its subscript is a reduced axis over just its extent: at one value
 * of that axis a term goes to that value of the output's axis alone. The others are *aimed*: computed.
 * Tasks have each their values of the own axes, and a range of the first aimed one; a block's task has a class
 * of it instead: the values that leave the same rest by the number of classes, a power of two, so that where
 * many terms go to few neighbours they don't all go to one task. A task meets
 * all terms in their order and takes those that go to its elements, so that an element's terms have the
 * order that they have in one task, and so the same bits. */
#ifndef TEXO_PASSES_SCHEDULE_INDEX_INDEX_H
#define TEXO_PASSES_SCHEDULE_INDEX_INDEX_H

#include "passes/schedule/rows/blocks.h"

enum { INDEX_AIMED = 0xff };

typedef struct {
	uint8_t own[TG_MAX_RANK]; /* by axis of the output: the reduced axis that it is, or INDEX_AIMED */
	int lane;                 /* the output's axis along the lanes, an own one; -1: none */
	int divided;              /* the aimed axis of which a task has a range; -1: it has all */
} IndexAxes;

typedef struct IndexTask {
	IndexAxes axes;
	ValId lo, hi;     /* of the divided axis: lo <= i < hi; with classes: i mod classes = lo */
	ValId classes;    /* 0: none */
	ValId begin, end; /* of the axis along the lanes */
} IndexTask;

/* Whether scatter t is worth more tasks than one; the plan then says its vectors, and shapes its blocks. */
bool index_takes(Graph *g, Arena *scratch, const Places *places, TensorId t, const PassOptions *o, KernelPlan *plan,
                 BlockShapes *shapes);

#endif
