/* simplify.h: the local identities of passes/simplify.c. */
#ifndef TEXO_PASSES_SIMPLIFY_H
#define TEXO_PASSES_SIMPLIFY_H

#include "passes/pass_ctx.h"

typedef struct {
	PassCtx *cx;
	const bool *faulty; /* by TensorId */
	uint32_t done;
} Simplify;

/* One identity at the top of e, whose operands are simplified; e itself when none applies. */
ExprId simplify_arith(Simplify *s, Graph *g, ExprId e);
ExprId simplify_logic(Simplify *s, Graph *g, ExprId e);
ExprId simplify_cast(Graph *g, ExprId e);
/* A select of what one operation gives: the operation of a select. */
ExprId simplify_arms(Simplify *s, Graph *g, ExprId e);
/* Canonical subscripts, extents and ends of ranges. */
ExprId simplify_index(Simplify *s, Graph *g, ExprId e);
/* Drops from guards, domains and selects what the ranges decide. */
void simplify_decided(Simplify *s, Graph *g);

#endif
