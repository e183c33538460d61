/* tg_types.h: the types of expressions, for the graph's reader and verifier. */
#ifndef TEXO_IR_TG_TYPES_H
#define TEXO_IR_TG_TYPES_H

#include "ir/tg.h"

/* The type an operation's value has on operands of these types, as its signature in ops.def says it;
 * DT_NONE where the operation does not decide (CONST, CAST, ACC) or has no such operands. */
DType tg_result_type(Op op, const DType *arg, unsigned narg);
/* NULL, or what is wrong with an operation of this arity and these types. */
const char *tg_type_error(Op op, DType dtype, const DType *arg, unsigned narg);
/* The type of what a monoid gathers from bodies of type t. */
DType tg_monoid_type(Monoid m, DType t);
/* Whether a monoid takes bodies of type t. */
bool tg_monoid_takes(Monoid m, DType t);
/* Whether v is exactly a value of the type: integers in range, floats without rounding. */
bool tg_is_value(DType t, const Expr *constant);

/* v rounded once to the float type t, by the table of casts in ir/README.md. */
double tg_round(DType t, double v);

#endif
