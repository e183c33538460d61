/* timing.c: see timing.h. */
#include "driver/timing.h"

#include <stdlib.h>
#include <string.h>

enum { RUNS = 20, LEAST_RUNS = 3, WARM_RUNS = 3 };
static const double LEAST_US = 0.5e6, ENOUGH_US = 2e6, MOST_US = 10e6, WARM_US = 0.1e6, WARM_MOST_US = 0.5e6;

typedef struct {
	Session *s;
	CpuLaunch *l;
	const Binding *binding;
	void **saved; /* by parameter: an inout's first values */
} Repeat;

static double
now_us(const Session *s)
{
	return (double)s->host->clock.now_ns(s->host->clock.user) * 1e-3;
}

static bool
is_inout(const Repeat *r, uint32_t k)
{
	const Graph *g = r->binding->graph;
	return g->tensor.at[g->param.at[k]].kind == TENSOR_INOUT;
}

static void
save_inouts(Repeat *r)
{
	r->saved = ARENA_ARRAY(&r->s->arena, void *, r->binding->nparam + 1);
	for (uint32_t k = 0; k < r->binding->nparam; k++)
		if (is_inout(r, k)) {
			size_t bytes = (size_t)r->binding->param[k].bytes;
			r->saved[k] = arena_alloc(&r->s->data, bytes + 1);
			memcpy(r->saved[k], r->binding->param[k].data, bytes);
		}
}

/* One launch; what it took, in *us. */
static texo_status
launch(Repeat *r, double *us)
{
	for (uint32_t k = 0; k < r->binding->nparam; k++)
		if (r->saved[k])
			memcpy(r->binding->param[k].data, r->saved[k], (size_t)r->binding->param[k].bytes);
	double start = now_us(r->s);
	texo_status st = cpu_launch(r->l);
	*us = now_us(r->s) - start;
	return st;
}

static int
by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

void
timing_summarise(double *us, uint32_t n, Timing *out)
{
	qsort(us, n, sizeof *us, by_size);
	*out = (Timing){.median = n % 2 ? us[n / 2] : (us[n / 2 - 1] + us[n / 2]) / 2, .min = us[0], .max = us[n - 1], .n = n};
}

bool
timing_is_warm(uint32_t n, double us)
{
	return (n >= WARM_RUNS && us > WARM_US) || us > WARM_MOST_US;
}

bool
timing_is_enough(uint32_t n, double us)
{
	return (n >= RUNS && us > LEAST_US) || (n >= LEAST_RUNS && us > ENOUGH_US) || us > MOST_US || n == TIMING_MOST;
}

texo_status
timing_take(Session *s, CpuLaunch *l, const Binding *b, Timing *out)
{
	Repeat r = {s, l, b, NULL};
	double *us = ARENA_ARRAY(&s->arena, double, TIMING_MOST), took, start = now_us(s);
	texo_status st = TEXO_OK;
	save_inouts(&r);
	uint32_t n = 0;
	while (st == TEXO_OK && !timing_is_warm(n++, now_us(s) - start))
		st = launch(&r, &took);
	n = 0;
	start = now_us(s);
	while (st == TEXO_OK && !timing_is_enough(n, now_us(s) - start))
		st = launch(&r, &us[n++]);
	if (st == TEXO_OK)
		timing_summarise(us, n, out);
	return st;
}
