/* exact.h: numbers of a program that have not met a type: quotients of whole numbers, as long as these stay short. */
#ifndef TEXO_FRONTEND_EXACT_H
#define TEXO_FRONTEND_EXACT_H

#include "frontend/big.h"
#include "ir/arena.h"
#include "ir/op.h"

/* Exact integers have room for those of u64 and what leads to one, such as 2**64 - 1. */
__extension__ typedef __int128 Whole;
#define WHOLE_MAX ((Whole)((unsigned __int128)-1 >> 1))

typedef struct Exact Exact;

/* All of these give NULL where the quotient is not short, or there is none. */
const Exact *exact_decimal(Arena *a, const char *text, size_t n); /* a number as it is written */
const Exact *exact_whole(Arena *a, Whole i);
const Exact *exact_negated(Arena *a, const Exact *x);
const Exact *exact_arith(Arena *a, Op op, const Exact *x, const Exact *y); /* OP_ADD, OP_SUB, OP_MUL, OP_FDIV, OP_IDIV, OP_IMOD */
const Exact *exact_power(Arena *a, const Exact *x, Whole times);

bool exact_is_zero(const Exact *x);
bool exact_as_whole(const Exact *x, Whole *out); /* false where it is none, or does not fit by a bit */
int exact_compare(const Exact *x, const Exact *y); /* below, at or above 0 */
Whole exact_truncated(Arena *a, const Exact *x, Whole least, Whole most); /* towards 0, the nearer end where that is beyond one; 0 lies between */
double exact_double(const Exact *x, BigRounding how); /* infinite beyond the doubles */

#endif
