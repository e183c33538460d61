/* exponent.h: exponentials of a difference, inside passes/fuse only. */
#ifndef TEXO_PASSES_FUSE_EXPONENT_H
#define TEXO_PASSES_FUSE_EXPONENT_H

#include "passes/fuse/frame.h"

enum { MAX_ATOMS = 8 };

typedef struct {
	unsigned n;
	ExprId at[MAX_ATOMS];
} Atoms;

/* An exponential factor, kept at anchors: exp(p(x) + q(y)) = term(x, anchor) * exp(q(y) - q(anchor)) * rest(y). */
typedef struct {
	ExprId term;      /* over ANCHOR_NEW */
	ExprId rest;      /* over reads of members */
	Atoms kept;       /* the parts of y that have an anchor, and it */
	int anchor[MAX_ATOMS];
	Product q;        /* the exponents that move with the anchors; nexponent 0: none, the term is bounded */
} ExpPlan;

/* -1: the atom, of maxima that arg^power falls with, may be an anchor, kept above; 1: of minima, kept below; 0: none. */
int clamp_of(const Frame *f, ExprId arg, double power, ExprId atom);
/* At most what power * arg is where each member is what it is of this element alone. */
double most_alone(Frame *f, const Algebra *a, ExprId arg, double power);
/* The largest parts of e that vary with y alone; `flat`: the parts of their sums. */
bool atoms_of(const Algebra *a, ExprId e, bool flat, Atoms *out);
/* Decides what is kept and what is hoisted, and adds anchors. */
bool exponent_plan(Frame *f, Algebra *a, const Factor *x, ExpPlan *out);
/* exp(q(to) - q(from)), each difference taken first; from and to give a value for each kept atom. */
ExprId exponent_shift(Frame *f, Algebra *a, const ExpPlan *p, const ExprId *from, const ExprId *to);

#endif
