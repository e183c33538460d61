/* index.h: how a canonical i64 expression (index_norm) is built up, for those who compute with it.
 *
 * A canonical expression is a sum of terms coef * mono, mono a product of atoms or 0 for the constant
 * term. An atom is an i64 expression that is not a constant, sum, difference, product or negation.
 * Terms with positive coefficients come first, then the negative ones subtracted, the constant last;
 * atoms and monos are ordered by index_before. A sum of more than INDEX_MAX_TERMS terms, or a product
 * of more than INDEX_MAX_FACTORS atoms, is one atom to the outside. */
#ifndef TEXO_IR_INDEX_H
#define TEXO_IR_INDEX_H

#include "ir/tg.h"

enum { INDEX_MAX_TERMS = 64, INDEX_MAX_FACTORS = 16 };

typedef struct {
	int64_t coef;
	ExprId mono; /* 0: the constant term */
} IndexTerm;

/* The terms of a canonical expression, in the order of index_before, the constant first; at most
 * INDEX_MAX_TERMS. */
unsigned index_terms(const Graph *g, ExprId e, IndexTerm *out);
/* The atoms of a mono, in order, with repetition; at most INDEX_MAX_FACTORS. */
unsigned index_factors(const Graph *g, ExprId mono, ExprId *out);
/* The canonical expression with these terms (any order, each mono at most once, zeros allowed). */
ExprId index_from_terms(Graph *g, const IndexTerm *term, unsigned n);
/* The product of two monos; 0 when it has too many factors. The quotient when b divides a, else 0;
 * dividing a by itself gives 0 too. */
ExprId index_mono_mul(Graph *g, ExprId a, ExprId b);
ExprId index_mono_div(Graph *g, ExprId a, ExprId b);
/* a over c > 0, rounded down; the greatest divisor of both, not negative. */
int64_t index_floor_div(int64_t a, int64_t c);
int64_t index_gcd(int64_t a, int64_t b);
/* A total order: AXIS, IVAR, DIM by number, then the rest by id. */
bool index_before(const Graph *g, ExprId a, ExprId b);

#endif
