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
TensorId letters_operand(Case *c, Letters *l, const char *letters, const char *name, DType t);

#endif
