/* random_fill.c: see random_fill.h. */
#include "driver/random_fill.h"
#include "ir/eval.h"

#include <math.h>

typedef struct {
	uint64_t key;
} Draws;

static uint64_t
mix(uint64_t x)
{
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

static Draws
draws_of(const InputSpec *spec)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (const char *c = spec->name; *c; c++)
		h = (h ^ (unsigned char)*c) * UINT64_C(0x100000001b3);
	return (Draws){mix(spec->seed ^ h)};
}

static double
uniform(Draws d, uint64_t k)
{
	return (double)(mix(d.key + (k + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 11) * 0x1p-53;
}

static double
normal(Draws d, uint64_t n)
{
	return sqrt(-2 * log1p(-uniform(d, 2 * n))) * cos(6.283185307179586 * uniform(d, 2 * n + 1));
}

static double
random_real(Draws d, const InputSpec *spec, DType t, unsigned rank, uint64_t n)
{
	if (t == DT_E8M0)
		return ldexp(1.0, (int)(uniform(d, n) * 7) - 3);
	if (spec->kind == INPUT_NORMAL)
		return normal(d, n);
	return rank == 0 ? uniform(d, n) : 2 * uniform(d, n) - 1;
}

/* The low bits that the type keeps, with its sign. */
static int64_t
wrap(DType t, uint64_t v)
{
	unsigned bits = dtype_info[t].bits;
	if (bits == 64)
		return (int64_t)v;
	v &= (UINT64_C(1) << bits) - 1;
	if (dtype_info[t].kind == KIND_INT && v >> (bits - 1))
		v |= ~UINT64_C(0) << bits;
	return (int64_t)v;
}

static EvalValue
element(Draws d, const InputSpec *spec, DType t, unsigned rank, const ValueRange *range, uint64_t n)
{
	EvalValue v = {0};
	if (spec->kind == INPUT_ONES || spec->kind == INPUT_IOTA) {
		uint64_t i = spec->kind == INPUT_ONES ? 1 : n;
		v.re = (double)i;
		v.i = t == DT_BOOL ? i != 0 : wrap(t, i);
		return v;
	}
	switch (dtype_info[t].kind) {
	case KIND_BOOL:
		v.i = uniform(d, n) >= 0.5;
		break;
	case KIND_INT:
	case KIND_UINT:
		v.i = range->lo + (int64_t)(uniform(d, n) * (double)(range->hi - range->lo));
		break;
	case KIND_COMPLEX:
		v.re = spec->kind == INPUT_NORMAL ? normal(d, 2 * n) : 2 * uniform(d, 2 * n) - 1;
		v.im = spec->kind == INPUT_NORMAL ? normal(d, 2 * n + 1) : 2 * uniform(d, 2 * n + 1) - 1;
		break;
	case KIND_FLOAT:
		v.re = random_real(d, spec, t, rank, n);
		break;
	}
	return v;
}

/* Sorts the line of n integers at start, stride apart, by heap sort in place. */
static void
sift(DType t, void *p, int64_t start, int64_t stride, int64_t at, int64_t n)
{
	for (int64_t child; (child = 2 * at + 1) < n; at = child) {
		EvalValue c = eval_load(t, p, start + child * stride);
		if (child + 1 < n) {
			EvalValue r = eval_load(t, p, start + (child + 1) * stride);
			if (r.i > c.i) {
				c = r;
				child++;
			}
		}
		EvalValue here = eval_load(t, p, start + at * stride);
		if (here.i >= c.i)
			return;
		eval_store(t, p, start + at * stride, c);
		eval_store(t, p, start + child * stride, here);
	}
}

static void
sort_line(DType t, void *p, int64_t start, int64_t stride, int64_t n)
{
	for (int64_t i = n / 2; i-- > 0;)
		sift(t, p, start, stride, i, n);
	for (int64_t last = n; last-- > 1;) {
		EvalValue a = eval_load(t, p, start), b = eval_load(t, p, start + last * stride);
		eval_store(t, p, start, b);
		eval_store(t, p, start + last * stride, a);
		sift(t, p, start, stride, 0, last);
	}
}

static void
make_cuts(DType t, unsigned rank, const int64_t *shape, int64_t count, const ValueRange *range, void *packed)
{
	int64_t inner = 1, n = rank ? shape[range->cut_axis] : 1;
	if (count == 0 || rank == 0)
		return;
	for (unsigned k = range->cut_axis + 1; k < rank; k++)
		inner *= shape[k];
	for (int64_t line = 0; line < count / n; line++) {
		int64_t start = line / inner * inner * n + line % inner;
		EvalValue lo = {.i = range->lo}, hi = {.i = range->hi - 1};
		sort_line(t, packed, start, inner, n);
		eval_store(t, packed, start, lo);
		if (n > 1)
			eval_store(t, packed, start + (n - 1) * inner, hi);
	}
}

void
random_fill(const InputSpec *spec, DType t, unsigned rank, const int64_t *shape, int64_t count,
            const ValueRange *range, void *packed)
{
	Draws d = draws_of(spec);
	if (spec->kind == INPUT_ZEROS)
		return;
	for (int64_t n = 0; n < count; n++)
		eval_store(t, packed, n, element(d, spec, t, rank, range, (uint64_t)n));
	if (range->cuts && spec->kind == INPUT_RANDOM)
		make_cuts(t, rank, shape, count, range, packed);
}
