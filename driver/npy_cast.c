/* npy_cast.c: see npy_cast.h. Rounding is the evaluator's. */
#include "driver/npy_cast.h"
#include "ir/eval.h"

bool
npy_can_cast(const Npy *npy, DType t)
{
	DType from = npy_plain_dtype(npy->descr);
	return (dtype_is_float(from) && dtype_is_float(t)) || (dtype_is_int(from) && dtype_is_int(t));
}

static bool
fits(DType from, DType t, int64_t v)
{
	unsigned bits = dtype_info[t].bits;
	bool is_signed = dtype_info[t].kind == KIND_INT, big = from == DT_U64 && v < 0;
	if (!is_signed)
		return big ? bits == 64 : v >= 0 && (bits == 64 || v >> bits == 0);
	return !big && (bits == 64 || (v >= -(INT64_C(1) << (bits - 1)) && v < INT64_C(1) << (bits - 1)));
}

bool
npy_cast(const Npy *npy, DType t, void *to, const char *path, Problem *p)
{
	DType from = npy_plain_dtype(npy->descr);
	for (int64_t n = 0; n < npy->count; n++) {
		EvalValue v = eval_load(from, npy->data, n);
		if (dtype_is_int(t) && !fits(from, t, v.i))
			return problem(p, EXIT_INPUT, "%s: element %lld is %lld, no value of %s", path, (long long)n, (long long)v.i,
			               dtype_info[t].text);
		eval_store(t, to, n, v);
	}
	return true;
}
