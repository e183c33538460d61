/* tir_takes.h: a kernel of roles whose threads TAKE (ir/channel.h) all elements of tiles, each its own rows and terms, and store
 * them; or with one thing wrong. For tests of the interpreter and of codegen. */
#ifndef TEXO_TESTS_TIR_TAKES_H
#define TEXO_TESTS_TIR_TAKES_H

#include "ir/tir.h"

enum { TAKES_PARTS = 2, TAKES_ROWS = 32, TAKES_BUFFERS = 2, TAKES_SCALARS = 4 }; /* parts of a tile, below each other, and their rows */

typedef enum {
	TAKES_RIGHT,
	TAKES_BEFORE_WAIT,
	TAKES_AFTER_RELEASE,
	TAKES_ROW_BEYOND,
	TAKES_ROW_BEFORE,
	TAKES_TERM_BEYOND,
	TAKES_BETWEEN,     /* terms that are no multiple of its lanes */
	TAKES_BY_SOME,     /* of the group's threads */
	TAKES_WHILE_LOADING,
	TAKES_OF_NO_ROW,   /* but of a condition */
	TAKES_IN_I32,      /* the term's number */
	TAKES_A_PRODUCT,
	TAKES_WHAT_IS_HELD,
	TAKES_COPIES_FROM_1, /* the first tile begins with term 1 */
} TakesWrong;

/* A place that all threads take from, in the first of one slot, with no arithmetic left to do. */
typedef struct {
	unsigned part, row, term;
} TakesPlace;

typedef struct {
	DType t;
	unsigned bytes, groups, slots; /* bytes: of a vector */
	const TakesPlace *place;       /* NULL: all places */
	TakesWrong wrong;
	int64_t before;                /* terms from which on the first tile is, below the first of x: a negative index */
} Takes;

/* Into an empty kernel. Buffers: x[rows, terms] and z[tile, row, term], of tiles of all parts' rows by 128 bytes; scalars: rows,
 * terms, tiles along the terms, tiles. */
void takes_build(TirKernel *k, Names *names, const Takes *x);

static inline unsigned
takes_terms(DType t)
{
	return 1024u / dtype_info[t].bits;
}

#endif
