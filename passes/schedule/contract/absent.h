/* absent.h: a contraction some of whose terms may be absent, as those of a convolution that lie outside of its image, as a sum
 * over all: absent.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_ABSENT_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_ABSENT_H

#include "passes/schedule/contract/contract.h"

enum { ABSENT_MOST = 8 };

/* The conditions under which a term is there, each with the factors whose panels ask for it: rows' and columns', as bits. */
typedef struct {
	unsigned n;
	ExprId part[ABSENT_MOST];
	uint8_t of[ABSENT_MOST];
	bool others; /* what is no term of a sum, in either factor, is multiplied by 0 as well (halo.c) */
} Absent;

/* The factors of t, as contract_factors, and when its terms are there; false also where a condition is neither factor's, and where
 * a factor's elements may lie outside of their tensors although its own conditions hold. */
bool absent_factors(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f, Absent *a);
/* Whether this factor's panel asks for condition n. */
bool absent_asks(const Absent *a, unsigned n, bool column);
/* Whether it asks for any. */
bool absent_is(const Absent *a, bool column);
/* Whether a term is there, as far as this factor's axes say; 0: it always is. */
ExprId absent_condition(Graph *g, const Absent *a, bool column);
/* The factor's value, or 0 where its terms are absent. */
ExprId absent_value(Graph *g, const Absent *a, bool column, ExprId value);
/* Whether a sum may have met what spoils it. */
bool absent_spoils(const Absent *a);
/* The sum of all terms at the point, which is this element of a view of two axes: where an absent one's other factor was no
 * number, it is folded again. */
void absent_mend(Point *l, const Absent *a, ValId view, const ValId *at);

#endif
