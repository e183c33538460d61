/* formula.h: making expressions over the reals, for passes/fuse alone. Numbers are folded and what adds
 * or multiplies nothing is dropped, which reassociates: not for a graph in strict mode. */
#ifndef TEXO_PASSES_FUSE_FORMULA_H
#define TEXO_PASSES_FUSE_FORMULA_H

#include "ir/tg.h"

bool formula_number_of(const Graph *g, ExprId e, double *v); /* a float constant */
/* v rounded once to the float type t. */
ExprId formula_number(Graph *g, DType t, double v);
ExprId formula_neg(Graph *g, ExprId a);
ExprId formula_add(Graph *g, ExprId a, ExprId b);
ExprId formula_sub(Graph *g, ExprId a, ExprId b);
ExprId formula_mul(Graph *g, ExprId a, ExprId b);
ExprId formula_div(Graph *g, ExprId a, ExprId b);
ExprId formula_scale(Graph *g, double c, ExprId a);
/* a^p: products for small whole p, sqrt for halves, else pow. */
ExprId formula_power(Graph *g, ExprId a, double p);
ExprId formula_exp(Graph *g, Op op, ExprId a); /* OP_EXP or OP_EXP2 */
ExprId formula_select(Graph *g, ExprId c, ExprId a, ExprId b);
/* The operation with these operands, folded where one of the functions above is it; narrowed if it was. */
ExprId formula_rebuild(Graph *g, const Expr *p, const ExprId *arg);

/* Replaces whole subexpressions, the outermost that match; the rest is rebuilt and folded. */
typedef struct {
	ExprId from, to;
} Swap;
ExprId formula_swap(Graph *g, Arena *scratch, ExprId e, const Swap *swap, unsigned n);

#endif
