/* prove.h: what follows from what is known about dims and indices.
 *
 * Facts is a stack of boolean expressions taken to be true, over i64 expressions in IVAR, AXIS and
 * DIM; every other i64 subexpression (a read, a product with a non-constant) is an opaque unknown
 * that equals itself. A proof is a refutation: the negated goal and the facts, with pairwise
 * products of facts and negated goal, are shown to have no solution over the rationals (Farkas,
 * Handelman), after integers have been tightened. div and mod bring their defining inequalities,
 * once their divisor is proved positive. Sound, not complete, bounded in time. */
#ifndef TEXO_IR_PROVE_H
#define TEXO_IR_PROVE_H

#include "ir/tg.h"

typedef struct Facts Facts;

Facts *facts_new(Graph *g, Arena *a);
/* Pushes lo <= v < hi for an index (v an IVAR or AXIS expression), remembered as its range too. */
void facts_push_range(Facts *f, ExprId v, ExprId lo, ExprId hi);
/* Pushes a fact; && splits, ! is pushed inwards; what is not about integers is ignored. */
void facts_push(Facts *f, ExprId cond);
uint32_t facts_mark(const Facts *f);
void facts_pop(Facts *f, uint32_t mark);

/* True only if cond (comparisons of integers under && || !) holds wherever the facts do. */
bool prove(Facts *f, ExprId cond);
/* The same without the facts pushed between the two marks. */
bool prove_without(Facts *f, uint32_t from, uint32_t to, ExprId cond);
/* True only if the facts contradict one another. */
bool prove_absurd(Facts *f);
/* An expression without IVAR, AXIS and reads (but of rank-0 parameters) that is >= e (upper) or <= e
 * over the whole box of the ranges pushed, and equal to the extreme of e where e is affine in the indices; 0 when none is
 * found. For launch checks. */
ExprId prove_bound(Facts *f, ExprId e, bool upper);

#endif
