/* letters.h: a product whose tensors have their axes by letters, as in "mk" and "kn". */
#ifndef TEXO_TESTS_PASSES_LETTERS_H
#define TEXO_TESTS_PASSES_LETTERS_H

#include "graph_case.h"

/* Sizes by letter, such as {SIZE('m') = 3}. */
#define SIZE(letter) [(letter) - 'a']
#define SIZES(m, n, k) {SIZE('m') = (m), SIZE('n') = (n), SIZE('k') = (k)}

typedef struct {
	const char *out, *terms; /* the axes of its node: the output's, and those that it sums over */
	const int64_t *size;
	ExprId dim[26]; /* by letter, where there is one already */
} Letters;

ExprId letters_extent(Case *c, Letters *l, char letter);
/* Of each; how many. */
unsigned letters_extents(Case *c, Letters *l, const char *letters, ExprId *e);
ExprId letters_index(Case *c, const Letters *l, char letter);
/* The tensor's at the node's point, in the type that it is computed in. */
ExprId letters_element(Case *c, const Letters *l, TensorId t, const char *letters);
/* The same of a product some of whose terms are absent: the first term's index is moved by that of letter `by`, and may then
 * be outside of the tensor; and when it is not. */
ExprId letters_moved(Case *c, Letters *l, TensorId t, const char *letters, char by);
ExprId letters_inside(Case *c, Letters *l, char by);
/* Numbers of type t for these letters' tensor, some of which are infinite. */
const void *letters_infinite(Case *c, const Letters *l, const char *letters, DType t);
TensorId letters_operand(Case *c, Letters *l, const char *letters, const char *name, DType t);

#endif
