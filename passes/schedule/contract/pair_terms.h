/* pair_terms.h: folds whose terms are made of a value of the rows and one of the columns, in any way: pair_terms.c. */
#ifndef TEXO_PASSES_SCHEDULE_CONTRACT_PAIR_TERMS_H
#define TEXO_PASSES_SCHEDULE_CONTRACT_PAIR_TERMS_H

#include "passes/schedule/contract/contract.h"

/* Whether t is such a fold, which is no product of factors of its own; f then has the two values. */
bool pair_values(const Graph *g, Arena *scratch, const bool *faulty, TensorId t, Factors *f);
/* What stands for the value of the rows, or of the columns, in a term. */
ExprId pair_stand_in(Graph *g, const Factors *f, bool column);
/* The term with both. */
ExprId pair_term(Graph *g, Arena *scratch, const Factors *f, ExprId body);
/* What the term takes beside its values, in units of op_cost.h: of a vector. */
unsigned pair_cost(const Graph *g, Arena *scratch, const Factors *f, ExprId body);

#endif
