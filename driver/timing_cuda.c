/* timing_cuda.c: launches in batches that the GPU works off while nobody waits, each between two events. */
#include "driver/timing.h"
#include "runtime/cuda.h"

enum { BATCH = 16, CACHES = 2 };
static const double LONG_US = 50e3;
static const size_t LEAST_FLUSH = (size_t)32 << 20;

typedef struct {
	CpuLaunch *l;
	void *from[BATCH], *to[BATCH]; /* events */
	void *flush;                   /* memory that fills the cache */
	size_t flush_bytes;
	void **saved;                  /* by tensor: an inout's first values, on the device */
	double us[BATCH], *all;        /* the times of a batch; of all that count */
	int n;                         /* launches of a batch: fewer of those that are long */
} Batch;

static double
now_us(const Session *s)
{
	return (double)s->host->clock.now_ns(s->host->clock.user) * 1e-3;
}

static bool
is_inout(const DeviceMemory *m)
{
	return m->in && m->out;
}

static texo_status
begin(Batch *b)
{
	texo_rt *rt = b->l->rt;
	size_t cache;
	texo_status st = cuda_cache_bytes(rt, &cache);
	b->flush_bytes = cache * CACHES > LEAST_FLUSH ? cache * CACHES : LEAST_FLUSH;
	if (!st)
		st = cuda_memory_alloc(rt, b->flush_bytes, &b->flush);
	for (int k = 0; !st && k < BATCH; k++) {
		st = cuda_event_new(rt, &b->from[k]);
		if (!st)
			st = cuda_event_new(rt, &b->to[k]);
	}
	for (uint32_t k = 0; !st && k < b->l->ntensor; k++) {
		const DeviceMemory *m = &b->l->memory[k];
		if (!is_inout(m))
			continue;
		st = cuda_memory_alloc(rt, m->bytes, &b->saved[k]);
		if (!st && m->bytes)
			st = cuda_copy_inside(rt, b->saved[k], b->l->tensor[k].data, m->bytes, NULL);
	}
	return st;
}

static void
end(Batch *b)
{
	texo_rt *rt = b->l->rt;
	for (int k = 0; k < BATCH; k++) {
		cuda_event_free(rt, b->from[k]);
		cuda_event_free(rt, b->to[k]);
	}
	for (uint32_t k = 0; k < b->l->ntensor; k++)
		cuda_memory_free(rt, b->saved[k]);
	cuda_memory_free(rt, b->flush);
}

static texo_status
launch(Batch *b, int n)
{
	CpuLaunch *l = b->l;
	texo_status st = TEXO_OK;
	for (uint32_t k = 0; !st && k < l->ntensor; k++)
		if (b->saved[k] && l->memory[k].bytes)
			st = cuda_copy_inside(l->rt, l->tensor[k].data, b->saved[k], l->memory[k].bytes, NULL);
	if (!st)
		st = cuda_fill(l->rt, b->flush, 0, b->flush_bytes, NULL);
	if (!st)
		st = cuda_event_record(l->rt, b->from[n], NULL);
	if (!st)
		st = texo_kernel_launch(l->kernel, l->arg, l->narg, l->workspace, NULL);
	return st ? st : cuda_event_record(l->rt, b->to[n], NULL);
}

/* The times of a batch, in b->us. */
static texo_status
run(Batch *b)
{
	texo_status st = TEXO_OK;
	for (int n = 0; !st && n < b->n; n++)
		st = launch(b, n);
	for (int n = 0; !st && n < b->n; n++)
		st = cuda_event_between(b->l->rt, b->from[n], b->to[n], &b->us[n]);
	return st;
}

static texo_status
take(Session *s, Batch *b, Timing *out)
{
	double start = now_us(s);
	uint32_t n = 1;
	b->n = 1;
	texo_status st = run(b);
	b->n = b->us[0] < LONG_US ? BATCH : 1;
	for (; !st && !timing_is_warm(n, now_us(s) - start); n += (uint32_t)b->n)
		st = run(b);
	start = now_us(s);
	for (n = 0; !st && n < TIMING_MOST && !timing_is_enough(n, now_us(s) - start);) {
		st = run(b);
		for (int k = 0; !st && k < b->n; k++)
			b->all[n++] = b->us[k];
	}
	if (!st)
		timing_summarise(b->all, n, out);
	return st;
}

texo_status
timing_take_cuda(Session *s, CpuLaunch *l, const Binding *binding, Timing *out)
{
	(void)binding;
	Batch *b = ARENA_NEW(&s->arena, Batch); /* all memory of ours first: nothing unwinds while the device's is held */
	*b = (Batch){.l = l, .saved = ARENA_ARRAY(&s->arena, void *, l->ntensor + 1),
	             .all = ARENA_ARRAY(&s->arena, double, TIMING_MOST + BATCH)};
	texo_status st = begin(b);
	if (!st)
		st = take(s, b, out);
	end(b);
	return st;
}
