/* dtype.c: the table behind dtype.h. */
#include "ir/dtype.h"

#include <string.h>

const DTypeInfo dtype_info[DT_COUNT] = {
	[DT_NONE] = {"none", KIND_INT, 0, DT_NONE, ""},
#define DTYPE(id, text, kind, bits, arith, npy) [DT_##id] = {text, kind, bits, DT_##arith, npy},
#include "ir/dtype.def"
};

DType
dtype_named(const char *text, size_t n)
{
	for (int t = 1; t < DT_COUNT; t++)
		if (strlen(dtype_info[t].text) == n && memcmp(dtype_info[t].text, text, n) == 0)
			return (DType)t;
	return DT_NONE;
}

bool
dtype_bytes(DType t, int64_t n, int64_t *bytes)
{
	int64_t bits;
	if (n < 0 || __builtin_mul_overflow(n, (int64_t)dtype_info[t].bits, &bits))
		return false;
	*bytes = bits / 8 + (bits % 8 != 0);
	return true;
}
