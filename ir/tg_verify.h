/* tg_verify.h: the two halves of the graph verifier; graph_verify (tg.h) is the way in. */
#ifndef TEXO_IR_TG_VERIFY_H
#define TEXO_IR_TG_VERIFY_H

#include "ir/tg.h"

/* Where an expression stands, which decides what it may mention. */
typedef struct {
	const char *part;          /* "body" */
	const Node *node;          /* NULL: an extent or a launch check */
	unsigned axis_lo, axis_hi; /* AXIS k with axis_lo <= k < axis_hi */
	DType acc;                 /* DT_NONE: no ACC and no TOUCHED */
} Place;

typedef struct {
	const Graph *g;
	Arena *scratch;
	const char *error;
	const char *where; /* of what is being looked at: "node %5 (s)" */
	bool *typed;       /* by ExprId: its types were found right */
	TensorId *recur_step; /* by TensorId: 1 + place among the members of its Recur, 0 for others */
} Verify;

bool verify_fail(Verify *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Operands have smaller ids, all over the pool; nothing may be followed before this. */
bool verify_pool(Verify *x);
/* e is there, well typed of this type (DT_NONE: any) and mentions only what it may. */
bool verify_expr(Verify *x, ExprId e, DType want, const Place *p);

#endif
