/* side.h: elements of a contraction's output side by side, which a lane finishes: it reads and stores them at once. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_SIDE_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_SIDE_H

#include "passes/schedule/schedule.h"

enum { MOST_SIDE = 4, MOST_WIDE = 8 };

typedef struct {
	Point *l;
	unsigned side, column_axis; /* so many elements along this axis of the node */
	/* Tensors that finish reads along their memory as the column goes on, and by which axes. */
	unsigned n;
	struct {
		TensorId tensor;
		uint8_t axis[TG_MAX_RANK];
		ValId ahead; /* its elements at the point, where they are there already, else 0 */
	} at[MOST_WIDE];
} Side;

/* Of the node entered. */
void side_begin(Side *s, Point *l, unsigned side, unsigned column_axis);
/* What e reads as well; what the tensors that are read along memory have at the point, and whether that is meant. */
void side_note(Side *s, ExprId e);
void side_load_wide(const Side *s);
/* Those of number n of these tensors, as they lie in memory; where mask, if it is not 0, fails, zeros. */
ValId side_read(const Side *s, unsigned n, ValId mask);
void side_say_where(const Side *s, bool value);
/* Elements side by side from here on, of a view. */
void side_load(const Side *s, ValId view, const ValId *at, unsigned rank, DType t, ValId *to);
/* Those at the point, finished. */
void side_finish(const Side *s, const ValId *sum, PointVal *done);
/* Those as a vector. */
ValId side_join(const Side *s, const PointVal *done);
/* The output of the node entered, by where a row is in it, and column of so many. */
ValId side_flat_output(Point *l, ValId columns);
/* Stores those at the point. */
void side_store(const Side *s, const PointVal *done);
/* Instructions that finish an element of the node entered; of e. */
unsigned side_cost(Point *l);
unsigned side_expr_cost(const Graph *g, Arena *scratch, ExprId e);
/* The flags (ir/ops.def) that any operation of e has. */
unsigned side_expr_flags(const Graph *g, Arena *scratch, ExprId e);
/* Whether several elements side by side of the node's output can be stored at once. */
bool side_possible(const Graph *g, const Node *n, unsigned column_axis);

#endif
