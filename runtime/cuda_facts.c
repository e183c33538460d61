/* cuda_facts.c: what is known of a GPU where one plan of several is chosen, by its name and capability: ir/gpus.def. */
#include <stdio.h>
#include <string.h>

#include "runtime/cuda.h"

enum { MOST = 1 << 30, MOST_PROCESSORS = 1 << 16 };

static const GpuRow row[] = {
#define GPU(name, sm, ...) {name, sm, {__VA_ARGS__}},
#include "ir/gpus.def"
};

static int
apart(int a, int b)
{
	return a < b ? b - a : a - b;
}

const GpuRow *
cuda_row(const char *name, int sm)
{
	const GpuRow *best = &row[0];
	for (unsigned k = 0; k < sizeof row / sizeof *row; k++) {
		if (row[k].sm == sm && strstr(name, row[k].name))
			return &row[k];
		if (apart(row[k].sm, sm) < apart(best->sm, sm))
			best = &row[k];
	}
	return best;
}

void
cuda_row_facts(const GpuRow *of, int processors, int64_t fact[GPU_FACTS])
{
	memcpy(fact, of->fact, sizeof of->fact);
	if (processors > 0)
		fact[GPU_PROCESSORS] = processors;
}

bool
cuda_facts_possible(const int64_t fact[GPU_FACTS])
{
	for (unsigned k = 0; k < GPU_FACTS; k++)
		if (fact[k] < 1 || fact[k] > MOST)
			return false;
	return fact[GPU_PROCESSORS] <= MOST_PROCESSORS;
}

void
texo_private_device(const texo_rt *rt, char *text, size_t n)
{
	const Cuda *c = rt->cuda;
	text[0] = 0;
	if (c)
		snprintf(text, n, "%s, %d.%d, %d processors, %s", c->name, c->sm / 10, c->sm % 10, c->processors, c->assembler);
}

texo_status
texo_private_take_figures(texo_rt *rt, const int64_t *fact, size_t n)
{
	if (!rt->cuda || n != GPU_FACTS || !cuda_facts_possible(fact) || fact[GPU_PROCESSORS] != rt->cuda->processors)
		return rt_fail(TEXO_INVALID, "the figures are no such device's");
	memcpy(rt->cuda->fact, fact, sizeof rt->cuda->fact);
	return TEXO_OK;
}
