/* dtype.h: element types, expanded from dtype.def. */
#ifndef TEXO_IR_DTYPE_H
#define TEXO_IR_DTYPE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum { KIND_FLOAT, KIND_INT, KIND_UINT, KIND_BOOL, KIND_COMPLEX } DTypeKind;

typedef enum {
	DT_NONE = 0,
#define DTYPE(id, text, kind, bits, arith, npy) DT_##id,
#include "ir/dtype.def"
} DType;

enum {
	DT_COUNT = 1
#define DTYPE(id, text, kind, bits, arith, npy) +1
#include "ir/dtype.def"
};

typedef struct {
	const char *text;
	DTypeKind kind;
	uint8_t bits;
	DType arith;
	const char *npy;
} DTypeInfo;

extern const DTypeInfo dtype_info[DT_COUNT];

/* The type spelled by text[0..n), or DT_NONE. */
DType dtype_named(const char *text, size_t n);
/* Bytes that n packed elements take; false when the product overflows int64. */
bool dtype_bytes(DType t, int64_t n, int64_t *bytes);

static inline bool
dtype_is_float(DType t)
{
	return t != DT_NONE && dtype_info[t].kind == KIND_FLOAT;
}

static inline bool
dtype_is_int(DType t)
{
	return t != DT_NONE && (dtype_info[t].kind == KIND_INT || dtype_info[t].kind == KIND_UINT);
}

#endif
