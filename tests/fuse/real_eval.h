/* real_eval.h: expressions with leaves given by the test: over the reals, which is to say in double, or
 * with f32 operations rounded to f32. Shares nothing with passes/fuse. Casts to types narrower than f32
 * round in either. */
#ifndef TEXO_TESTS_FUSE_REAL_EVAL_H
#define TEXO_TESTS_FUSE_REAL_EVAL_H

#include "ir/tg.h"

typedef double LeafFn(void *user, const Graph *g, ExprId leaf);
double real_eval(const Graph *g, ExprId e, LeafFn *leaf, void *user);
double typed_eval(const Graph *g, ExprId e, LeafFn *leaf, void *user);

#endif
