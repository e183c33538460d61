/* eval_fold.h: one reduction in progress (eval_fold.c), inside ir/eval*.c only. */
#ifndef TEXO_IR_EVAL_FOLD_H
#define TEXO_IR_EVAL_FOLD_H

#include "ir/eval_value.h"

/* A float sum in any order: what is needed for gamma_n * sum|x| and for knowing it exact. */
typedef struct {
	long double sum, abs, pos, neg; /* pos, neg: how far up and down partial sums may reach */
	double err;
	int quantum; /* every exact term is a multiple of 2^quantum */
	bool inexact, unknown, nan, pinf, ninf;
	bool pover, nover; /* a product that overflows if it is rounded before it is added */
} FoldSum;

typedef struct {
	Monoid monoid;
	DType dtype;     /* of the accumulator */
	FpMode fp;
	bool ordered;    /* one step a term, in the order of fold_term */
	bool contracts;  /* terms are products of f32 in fast mode, whose factors may be rounded to tf32 */
	unsigned moved;  /* roundings that a term may have more in another order of its factors; 0: they have none */
	int64_t n;
	Val acc;         /* the first term, then the running value of what is not a free sum */
	FoldSum re, im;  /* free sums */
	long double big, small, odd; /* free products: of the factors above 1, below 1, of odd parts */
	double rival, rival_err;     /* arg: the upper end of what did not win */
	int64_t index;
	bool maybe_empty; /* acc holds only if a term arrived, and none may have; no unit then */
	bool uncertain;  /* arg */
	Val touched;     /* bool: a term arrived */
	AccessId fault, cut;
	bool ambiguous, absent;
} Fold;

/* dtype is the body's; the accumulator may be wider. products: terms are. */
void fold_start(Fold *f, Monoid m, FpMode fp, DType dtype, bool ordered, bool products);
/* The value that the fold starts from; it does not count as a term. */
void fold_init(Fold *f, Val v);
/* The factors of the next term, where it contracts: sums of what their rounding changes are not exact. */
void fold_factors(Fold *f, const Val *a, const Val *b);
/* present: bool, whether the term is there; an uncertain one is bounded both ways. */
void fold_term(Fold *f, const Val *present, const Val *term, int64_t index);
/* Absent when nothing arrived and the monoid has no unit. */
Val fold_result(const Fold *f);
/* The type of fold_result. */
DType fold_dtype(const Fold *f);
/* The accumulator's type for a body of type t. */
DType fold_accumulator(Monoid m, DType t);

#endif
