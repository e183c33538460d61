/* product.h: expressions as sums of products, inside passes/fuse only. */
#ifndef TEXO_PASSES_FUSE_PRODUCT_H
#define TEXO_PASSES_FUSE_PRODUCT_H

#include "passes/fuse/algebra.h"

enum { MAX_FACTORS = 14, MAX_EXPONENTS = 10, MAX_PRODUCTS = 20 };

typedef struct {
	ExprId base;
	double power;
	Side side; /* BOTH: a sum to a whole positive power, or an exponential, maybe under a widening cast */
} Factor;

/* coef * atom, in the exponent of e or, with two, of 2. */
typedef struct {
	ExprId atom;
	double coef;
	Side side;
	bool two;
} Exponent;

/* coef * product of base^power * exp(sum of coef * atom), where both conditions hold, else 0. */
typedef struct {
	double coef;
	ExprId xcond, ycond; /* 0: always */
	DType narrow;        /* what the factors with these bases were rounded to; DT_NONE: nothing was */
	unsigned ninside;
	ExprId inside[MAX_FACTORS];
	unsigned nfactor, nexponent;
	Factor factor[MAX_FACTORS];         /* ascending bases; a base and its inverse stay two: x / x is no 1 at 0 */
	Exponent exponent[MAX_EXPONENTS];   /* ascending (two, atom) */
} Product;

typedef struct {
	unsigned n;
	Product at[MAX_PRODUCTS];
} Sum;

typedef struct {
	Graph *g;
	Arena *scratch;
	SideFn *side;
	void *user;
	DType type;    /* of the whole expression */
	bool move_narrowed;
	bool deep;     /* open sums of one side too */
	unsigned steps; /* left */
	Refusal why;
} Algebra;

void algebra_init(Algebra *f, Graph *g, Arena *scratch, SideFn *side, void *user, ExprId e);
Side side_of(const Algebra *f, ExprId e);
bool algebra_refuse(Algebra *f, RemarkId why, ExprId at); /* false */

/* e as a sum of products whose mixed factors stay closed: (x - y)^2 is one factor. */
bool sum_of(Algebra *f, ExprId e, Sum *out);
/* A product with its mixed factors opened: every factor and exponent has one side. */
bool product_open(Algebra *f, const Product *p, Sum *out);
/* An exponent's argument as a sum of atoms of one side each. */
bool exponents_of(Algebra *f, ExprId arg, bool two, double scale, Product *into);
Product product_one(double coef);
bool product_is_unconditional(const Product *p);
/* What its factors and exponents depend on, together. */
Side product_side(const Product *p);
Sum *sum_new(Algebra *f);
bool sum_add(Algebra *f, Sum *s, const Product *p);
bool sum_product(Algebra *f, const Sum *a, const Sum *b, Sum *out);
bool product_times(Algebra *f, Product *p, const Product *q);
bool product_factor(Algebra *f, Product *p, ExprId base, double power, Side side);
bool product_exponent(Algebra *f, Product *p, Exponent x);
/* The factors of these sides as an expression; coef with SIDE_Y among them. */
ExprId product_expr(const Algebra *f, const Product *p, bool x_part);
bool cast_widens(DType from, DType to);
/* The exponential in e, under casts that widen; 0 when it is none. */
ExprId exponential_of(const Graph *g, ExprId e);

/* factor, where the rounding of a contraction's operand may come after a factor of y is taken out. */
bool factor_moving(Graph *g, Arena *scratch, ExprId e, SideFn *side, void *user, bool move_narrowed, Terms *out,
                   Refusal *why);

#endif
