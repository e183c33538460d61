/* window_rows.h: rows of a contraction that are the indices of several axes, which a factor is read by windows of: a tile has a box
 * of them, of which the last axis runs first. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_WINDOW_ROWS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_WINDOW_ROWS_H

#include "passes/schedule/schedule.h"

enum { WINDOW_AXES = 4 };
typedef struct {
	TensorId tensor;
	DType dtype;
	unsigned rank, naxis;
	ExprId sub[TG_MAX_RANK];       /* the tensor's subscripts */
	uint8_t place[WINDOW_AXES];    /* by axis of the box: in which subscript it is, */
	uint8_t axis[WINDOW_AXES];     /* which axis of the node it is, */
	uint8_t step[WINDOW_AXES];     /* and its factor there */
	bool even;                     /* no subscript has an axis of the terms that it grows with and one that it falls with */
	/* what window_bind_rows sets, and window_enter_tile of these the last two */
	Point *l;
	unsigned rows;                 /* of a tile */
	ValId box[WINDOW_AXES];        /* how many indices of each the box has, */
	ValId log[WINDOW_AXES];        /* and its logarithm: u32 */
	ValId count;                   /* of boxes */
	ValId first[WINDOW_AXES];      /* of the tile */
	ValId whole;                   /* bool: the output has all of the tile's rows */
} Window;

/* Notes the axis of these rows, if there is one, that subscript k has, with these factors of axes: each has one at most, times
 * `most` at most, that none before has; seen: those. False: it has others. */
bool window_add_axis(Window *w, const Node *n, unsigned k, const int64_t *coef, uint32_t rows, int64_t most, uint32_t *seen);
/* Whether e asks that subscripts of the window be in range, and for nothing else. */
bool window_asks_for_range(const Graph *g, Arena *scratch, const Window *w, ExprId e);
/* Whether all reduced axes of the node go from 0 to what is known at a launch. */
bool window_ranges_are_plain(const Graph *g, Arena *scratch, const Node *n);
/* Chooses the box for tiles of so many rows, and how many indices of each axis it has, over dims; how many boxes there are,
 * over dims. near: what windows reach beyond it is to be little. */
ExprId window_bind_rows(Window *w, Point *l, unsigned rows, bool near, ExprId *box);
void window_enter_tile(Window *w, ValId tile);
/* Where a row of a tile is in its box, by axis. */
void window_row_at(const Window *w, ValId row, ValId *at);
/* Makes a row of the tile the point; the same, and whether the output has it. */
void window_enter_row(const Window *w, ValId row);
ValId window_has_row(const Window *w, ValId row);

#endif
