/* affine.h: integer expressions as sums of axes and of other terms, each times a constant: affine.c. */
#ifndef TEXO_PASSES_SCHEDULE_POINT_AFFINE_H
#define TEXO_PASSES_SCHEDULE_POINT_AFFINE_H

#include "ir/tg.h"

enum { AFFINE_MOST_TERMS = 6 };

typedef struct {
	int64_t axis[TG_MAX_AXES], constant;
	unsigned nterm;
	struct {
		ExprId e; /* reads no axis; each once */
		int64_t times;
	} term[AFFINE_MOST_TERMS];
} Affine;

/* Adds e, times a constant, where it is of that kind and no number in it is large. */
bool affine_add(const Graph *g, Arena *scratch, Affine *a, ExprId e, int64_t times);
/* Whether both are the same sum. */
bool affine_same(const Affine *a, const Affine *b);

#endif
