/* boxes.h: factors of a contraction that a loading role (ir/channel.h) brings box by box: elements of tensors. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_BOXES_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_BOXES_H

#include "passes/schedule/schedule.h"

typedef struct {
	TensorId tensor;
	DType dtype;
	unsigned naxis;
	uint8_t axis[TG_MAX_RANK]; /* of the node, by the tensor's axes */
	bool turned;               /* memory runs along its own axis, not along the terms */
} BoxFactor;

/* Whether `read` is an element with one plain index for each axis of its tensor, along the last of which are its own or the terms. */
bool box_find(const Graph *g, ExprId read, unsigned own, unsigned term, BoxFactor *to);
/* The factor as far as the node at the point reads it: what a copy takes beyond is 0. */
ValId box_view(Point *l, const BoxFactor *e, unsigned own, unsigned term);
/* Begins to copy a box of that view to part TIR_COPY(channel, part) of the fill; at: where it begins, by the node's axes. third: 0, or
 * which of its elements'. */
void box_copy(Point *l, int64_t part, ValId view, const BoxFactor *e, unsigned own, unsigned term, const ValId *at, ValId third, ValId fill);

#endif
