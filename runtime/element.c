/* element.c: element types, from ir/dtype.def, with their DLPack names. */
#include <string.h>

#include "runtime/inside.h"

enum { KIND_FLOAT, KIND_INT, KIND_UINT, KIND_BOOL, KIND_COMPLEX };
enum {
	NO_ELEMENT = 0,
#define DTYPE(id, text, kind, bits, arith, npy) EL_##id,
#include "ir/dtype.def"
};

/* What DLPack calls each. */
enum {
	DL_F64 = kDLFloat,
	DL_F32 = kDLFloat,
	DL_F16 = kDLFloat,
	DL_BF16 = kDLBfloat,
	DL_F8E4M3 = kDLFloat8_e4m3fn,
	DL_F8E5M2 = kDLFloat8_e5m2,
	DL_F4E2M1 = kDLFloat4_e2m1fn,
	DL_E8M0 = kDLFloat8_e8m0fnu,
	DL_I64 = kDLInt,
	DL_I32 = kDLInt,
	DL_I16 = kDLInt,
	DL_I8 = kDLInt,
	DL_I4 = kDLInt,
	DL_U64 = kDLUInt,
	DL_U32 = kDLUInt,
	DL_U16 = kDLUInt,
	DL_U8 = kDLUInt,
	DL_U4 = kDLUInt,
	DL_BOOL = kDLBool,
	DL_C64 = kDLComplex,
};

/* A complex number is aligned as its parts. */
static const Element element[ELEMENT_COUNT] = {
#define DTYPE(id, text, kind, bits, arith, npy) \
	[EL_##id] = {text, bits, (bits) < 8 ? 1 : (kind) == KIND_COMPLEX ? (bits) / 16 : (bits) / 8, \
	             {DL_##id, bits, 1}, (kind) == KIND_INT || (kind) == KIND_UINT || (kind) == KIND_BOOL, \
	             (kind) == KIND_INT},
#include "ir/dtype.def"
};

const Element *
element_of(uint32_t dtype)
{
	return dtype > NO_ELEMENT && dtype < ELEMENT_COUNT ? &element[dtype] : NULL;
}

int64_t
element_int(const Element *e, const void *p)
{
	uint64_t v = 0;
	memcpy(&v, p, e->bits < 8 ? 1 : e->bits / 8);
	if (e->dl.code == kDLBool)
		return v != 0;
	if (e->bits == 64)
		return (int64_t)v;
	uint64_t sign = UINT64_C(1) << (e->bits - 1);
	v &= (sign << 1) - 1;
	return e->is_signed ? (int64_t)((v ^ sign) - sign) : (int64_t)v;
}

bool
element_bytes(const Element *e, int64_t count, int64_t *bytes)
{
	if (e->bits < 8) {
		*bytes = count / 2 + count % 2;
		return true;
	}
	return checked_mul(count, e->bits / 8, bytes);
}
