/* literal.h: tensors written out: [[1, 2.5], [-inf, nan]], true, (re, im) pairs, or one number. */
#ifndef TEXO_DRIVER_LITERAL_H
#define TEXO_DRIVER_LITERAL_H

#include "ir/arena.h"
#include "ir/dtype.h"
#include "ir/tg.h"

typedef enum { LITERAL_INT, LITERAL_REAL, LITERAL_BOOL, LITERAL_COMPLEX } LiteralKind;

typedef struct {
	LiteralKind kind;
	bool negative;     /* INT: the magnitude in u counts as negative */
	uint64_t u;        /* INT and BOOL */
	double re, im;     /* every kind, as f64 */
	double half, ihalf; /* half a unit of the last digit written; 0 for integers, inf and nan */
} LiteralItem;

typedef struct {
	unsigned rank; /* 0: one item without brackets */
	int64_t shape[TG_MAX_RANK];
	VEC(LiteralItem) item; /* row-major */
} Literal;

/* Parses at the start of text[0..n); *used bytes were taken. False with what is wrong and *used at
 * the place. */
bool literal_parse(Arena *a, const char *text, size_t n, size_t *used, Literal *out, const char **error);
/* Packs the items as elements of t; false with what does not fit. */
bool literal_pack(Arena *a, const Literal *lit, DType t, void *packed, const char **error);

#endif
