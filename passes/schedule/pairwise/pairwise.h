/* pairwise.h: the PAIRWISE template for a GPU: folds over all pairs of a row and an element, of terms that are computed
 * of what rows have and what elements have, with few components each. pairwise.c says how it works.
 *
 *     out[row, own] = fold[element]( body(what the row has, what the element has) )
 *
 * In the body a sum over few components of both, such as a squared distance, is written out. Results may have a short
 * axis of their own, which is written out too. */
#ifndef TEXO_PASSES_SCHEDULE_PAIRWISE_PAIRWISE_H
#define TEXO_PASSES_SCHEDULE_PAIRWISE_PAIRWISE_H

#include "passes/schedule/schedule.h"

enum {
	PAIRWISE_SHORT = 8,       /* a short axis has at most so many values */
	PAIRWISE_MEMBERS = 8,
	PAIRWISE_VALUES = 16,     /* what a row has, and an element, at most */
	PAIRWISE_FOLDS = 16,      /* a row's, at most */
	PAIRWISE_PLANS = 4,
	/* IVARs: + k, what a row has, and an element; + member * PAIRWISE_SHORT + value of the short axis, a result */
	PAIRWISE_OF_ROW = 7u << 20, PAIRWISE_OF_ELEMENT = 8u << 20, PAIRWISE_RESULT = 9u << 20
};

/* A fold, or a pointwise node of folds at the same point. Expressions are by value of the short axis, over the axes of the
 * kernel: those of a row, then the one of elements. */
typedef struct {
	TensorId t;
	Monoid monoid;           /* MON_NONE: pointwise */
	DType type;              /* in which it folds */
	int8_t axis[TG_MAX_RANK]; /* of the row, by axis of the tensor; -1: its short one */
	unsigned count;          /* values of the short axis; 1 without */
	ExprId beyond;           /* its extent, where that is known at launch alone and some of the values may not exist; else 0 */
	ExprId body[PAIRWISE_SHORT], keep[PAIRWISE_SHORT]; /* keep: whether the term exists; 0: it does */
	ExprId finish[PAIRWISE_SHORT], domain[PAIRWISE_SHORT]; /* 0: what is folded; everywhere */
} PairwiseMember;

typedef struct {
	unsigned nrow;
	ExprId extent[TG_MAX_RANK]; /* of the row axes; rows along the last one are a block's */
	ExprId lo, hi;              /* of elements: over dims */
	ExprId some;                /* a short extent that is known at launch alone; 0: there is none */
	unsigned least, most;       /* it is taken to be within these */
	bool long_sums, shortened;  /* sums are long; and some power is shorter for that */
	unsigned nmember;           /* folds first */
	PairwiseMember member[PAIRWISE_MEMBERS];
	unsigned nfold;             /* values that are folded, of all members */
	unsigned nrow_value, nelement_value;
	ExprId row_value[PAIRWISE_VALUES], element_value[PAIRWISE_VALUES];
} Pairwise;

/* Plans the kernel of these nodes, in topological order, with a short extent that only the launch knows within least ..
 * most, for sums that are long (point/long_sums.h), or for any; false: the template does not take them. */
bool pairwise_plan(Graph *g, Arena *scratch, const Places *places, const TensorId *node, unsigned n, unsigned least,
                   unsigned most, bool long_sums, Pairwise *out);
/* Plans of kernels that go before the others of these nodes: how many. */
unsigned pairwise_take(Graph *g, Arena *scratch, const Places *places, const TensorId *node, unsigned n, const PassOptions *o,
                       KernelPlan *plan);
void pairwise_build(Graph *g, Arena *scratch, const Places *places, const PassOptions *o, Kernel *kernel);

/* The placeholder of a value. */
static inline ExprId
pairwise_ivar(Graph *g, uint32_t base, unsigned k, DType t)
{
	return expr_make(g, OP_IVAR, t, base + k, 0, NULL, 0);
}

#endif
