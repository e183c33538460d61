/* op_cost.h: what an operation costs, in units of 1/16 ns for one element: the one place that says so.
 * Good within a factor of some, which is all that those who ask need. */
#ifndef TEXO_PASSES_SCHEDULE_OP_COST_H
#define TEXO_PASSES_SCHEDULE_OP_COST_H

#include "ir/tg.h"

enum {
	UNITS_A_NS = 16,
	CALL_NS = 20000 /* of work are worth handing to a thread */
};

typedef struct {
	uint16_t scalar, vector; /* on its own; as one of a vector's */
} OpCost;

/* A load of something near, or a store. */
static const OpCost op_cost_read = {8, 4};

static inline OpCost
op_cost(Op op)
{
	static const OpCost none = {0, 0}, cheap = {4, 1}, dear = {48, 4}, math = {160, 16};
	static const OpCost root = {1600, 160}; /* both parts in f64, of an exact remainder */
	const OpInfo *info = &op_info[op];
	if (op == OP_READ)
		return op_cost_read;
	if (info->flags & F_MATH)
		return op == OP_ROOT ? root : math;
	if (info->cls != CLASS_MAP)
		return none;
	return info->flags & F_CHEAP ? cheap : dear;
}

/* What expression e costs, which may be less than its operation does by itself. */
OpCost expr_cost(const Graph *g, ExprId e);

#endif
