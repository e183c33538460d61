/* big.h: natural numbers of a bounded length, and quotients of them as doubles. What is written in a program, and what is
 * computed of such numbers alone, is exact in here until it meets a type. */
#ifndef TEXO_FRONTEND_BIG_H
#define TEXO_FRONTEND_BIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { BIG_WORDS = 192 }; /* 6144 bits: 10^(800 + 400) and a little */

typedef struct {
	uint32_t w[BIG_WORDS]; /* low first */
	uint32_t n;            /* no leading zero words: 0 has none */
} Big;

void big_mul_add(Big *b, uint32_t m, uint32_t add); /* b = b*m + add */
int big_compare(const Big *a, const Big *b);
void big_add(Big *a, const Big *b);
void big_subtract(Big *a, const Big *b);            /* for a >= b */
/* num / den, of a den that is not 0; num becomes the remainder. */
void big_divide(Big *num, const Big *den, Big *quotient);
/* out, another one than a and b, is a*b; where that takes BIG_WORDS or more it is false. */
bool big_product(const Big *a, const Big *b, Big *out);

typedef enum { ROUND_NEAREST, ROUND_ODD } BigRounding;
/* num / den, neither 0, both shorter than BIG_WORDS by a word; they are used up. Nearest, ties to even; or, where it will
 * be rounded again to fewer digits, of the two neighbours the one whose last bit is 1. False: beyond the doubles. */
bool big_quotient(Big *num, Big *den, BigRounding how, double *out);

/* number.c: digits as lexer.l matches them, as num / den; false where these are not short. */
bool number_quotient(const char *s, size_t n, Big *num, Big *den);

#endif
