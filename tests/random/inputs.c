#include "inputs.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PATTERN = 0xc3, PATTERN_BYTES = 4096 };

int64_t
rp_count(const RandomProgram *p, const RpTensor *t)
{
	int64_t n = 1;
	for (unsigned a = 0; a < t->rank; a++)
		n *= p->size[t->dim[a]];
	return n;
}

static double
float_value(const RandomProgram *p, const RpTensor *t, uint64_t *rng)
{
	if (t->dtype == DT_E8M0)
		return ldexp(1, (int)rp_below(rng, 5) - 2);
	if (p->exact)
		return (double)rp_below(rng, 7) - 3;
	double v = (double)rp_next(rng) / 18446744073709551616.0;
	return rp_below(rng, 40) == 0 ? 0 : 4 * v - 2;
}

static int64_t
int_value(const RandomProgram *p, const RpTensor *t, uint64_t *rng)
{
	if (t->into >= 0) {
		int64_t n = p->size[t->into];
		if (n == 0 || (p->stray && rp_below(rng, 5) == 0))
			return (int64_t)rp_below(rng, 60) - 20;
		return rp_below(rng, (unsigned)n);
	}
	unsigned kind = rp_below(rng, 4);
	return kind < 2 ? (int64_t)rp_below(rng, 9) - 4 : kind == 2 ? (int64_t)rp_below(rng, 2000) - 1000 : (int64_t)rp_next(rng);
}

void *
rp_fill(const RandomProgram *p, const RpTensor *t, Arena *a, uint64_t *rng)
{
	int64_t n = rp_count(p, t), bytes;
	if (!dtype_bytes(t->dtype, n, &bytes))
		return NULL;
	void *data = arena_alloc(a, (size_t)bytes + 8);
	for (int64_t k = 0; k < n; k++) {
		EvalValue v = {0};
		if (t->dtype == DT_BOOL) {
			v.i = rp_below(rng, 2);
		} else if (t->dtype == DT_C64) {
			v.re = float_value(p, t, rng);
			v.im = float_value(p, t, rng);
		} else if (dtype_is_float(t->dtype)) {
			v.re = float_value(p, t, rng);
		} else {
			v.i = int_value(p, t, rng);
		}
		eval_store(t->dtype, data, k, v);
	}
	return data;
}

static size_t
slot_stride(const Fence *f)
{
	return FENCE_BYTES + 2 * f->page;
}

void
fence_open(Fence *f)
{
	f->page = (size_t)sysconf(_SC_PAGESIZE);
	size_t all = FENCE_SLOTS * slot_stride(f);
	f->base = mmap(NULL, all, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	for (unsigned s = 0; f->base != MAP_FAILED && s < FENCE_SLOTS; s++)
		mprotect(f->base + s * slot_stride(f) + f->page, FENCE_BYTES, PROT_READ | PROT_WRITE);
}

static uint8_t *
slot_start(const Fence *f, unsigned slot)
{
	return f->base + slot * slot_stride(f) + f->page;
}

void *
fence_place(Fence *f, unsigned slot, size_t n, size_t align, bool at_end, uint8_t fill)
{
	if (slot >= FENCE_SLOTS || n > FENCE_BYTES - 2 * PATTERN_BYTES)
		return NULL;
	uint8_t *start = slot_start(f, slot), *data = start;
	if (at_end)
		data = start + (FENCE_BYTES - n) / align * align;
	memset(at_end ? data - PATTERN_BYTES : data + n, PATTERN, PATTERN_BYTES);
	if (at_end)
		memset(data + n, PATTERN, (size_t)(start + FENCE_BYTES - data) - n);
	memset(data, fill, n);
	return data;
}

static bool
all_pattern(const uint8_t *p, size_t n)
{
	for (size_t k = 0; k < n; k++)
		if (p[k] != PATTERN)
			return false;
	return true;
}

bool
fence_intact(const Fence *f, unsigned slot, const void *data, size_t n)
{
	const uint8_t *start = slot_start(f, slot), *d = data;
	if (d == start)
		return all_pattern(d + n, PATTERN_BYTES);
	return all_pattern(d - PATTERN_BYTES, PATTERN_BYTES) && all_pattern(d + n, (size_t)(start + FENCE_BYTES - d) - n);
}
