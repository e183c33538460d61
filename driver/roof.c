/* roof.c: see roof.h. Every thread has its own part of the arrays, which it touches first; all start
 * each turn together, and the fastest turn counts, since nothing but the machine can make a loop
 * faster. The arrays together are several times the last cache. */
#include "driver/roof.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "driver/source.h"

enum { TURNS = 6, ROUNDS = 1 << 18, LEAST = 32 << 20, MOST = 768 << 20, ENOUGH = 256 };

typedef struct {
	const Host *host;
	pthread_mutex_t gate;
	bool all;       /* threads were started; behind the gate */
	pthread_barrier_t barrier;
	uint32_t threads;
	size_t n;       /* elements of an array, a multiple of 2 * threads */
	double *array;  /* three, one after another */
	double *flops;  /* by thread */
	double triad_s, flops_s;
} Measure;

typedef struct {
	Measure *m;
	uint32_t index;
	pthread_t thread;
	float sink;
} Worker;

static double
now(const Host *h)
{
	return (double)h->clock.now_ns(h->clock.user) * 1e-9;
}

/* The seconds of one turn, as the first thread sees it; all wait for one another on both sides. */
static double
turn(Worker *w, void (*body)(Worker *w))
{
	pthread_barrier_wait(&w->m->barrier);
	double start = now(w->m->host);
	body(w);
	pthread_barrier_wait(&w->m->barrier);
	return now(w->m->host) - start;
}

static void
triad(Worker *w)
{
	const Measure *m = w->m;
	size_t part = m->n / m->threads, at = w->index * part;
	roof_triad(m->array + at, m->array + m->n + at, m->array + 2 * m->n + at, 0.5, part);
}

static void
multiply_add(Worker *w)
{
	w->m->flops[w->index] = roof_multiply_add(ROUNDS, &w->sink);
}

static void *
work(void *arg)
{
	Worker *w = arg;
	Measure *m = w->m;
	pthread_mutex_lock(&m->gate);
	bool all = m->all;
	pthread_mutex_unlock(&m->gate);
	if (!all)
		return NULL;
	size_t part = m->n / m->threads, at = w->index * part;
	for (size_t i = 0; i < part; i++)
		m->array[at + i] = m->array[m->n + at + i] = m->array[2 * m->n + at + i] = (double)(i % 64);
	for (int k = 0; k < TURNS; k++) {
		double t = turn(w, triad), f = turn(w, multiply_add);
		if (w->index > 0)
			continue;
		m->triad_s = k == 0 || t < m->triad_s ? t : m->triad_s;
		m->flops_s = k == 0 || f < m->flops_s ? f : m->flops_s;
	}
	return NULL;
}

/* Nobody goes to the barrier before it is known that all are there. */
static bool
run_workers(Session *s, Measure *m)
{
	Worker *w = ARENA_ARRAY(&s->arena, Worker, m->threads);
	uint32_t n = 1;
	w[0] = (Worker){.m = m};
	pthread_mutex_lock(&m->gate);
	for (; n < m->threads; n++) {
		w[n] = (Worker){.m = m, .index = n};
		if (pthread_create(&w[n].thread, NULL, work, &w[n]) != 0)
			break;
	}
	m->all = n == m->threads;
	pthread_mutex_unlock(&m->gate);
	work(&w[0]);
	for (uint32_t k = 1; k < n; k++)
		pthread_join(w[k].thread, NULL);
	return m->all || problem(&s->problem, EXIT_IO, "%u threads can't be started", m->threads);
}

/* What the system says of a processor's third cache; false: nothing. */
static bool
read_cache(const Session *s, long processor, const char *what, char text[ENOUGH + 1])
{
	char path[ENOUGH];
	const HostFiles *f = &s->host->files;
	snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%ld/cache/index3/%s", processor, what);
	int fd = f->open(f->user, path, O_RDONLY, 0);
	if (fd < 0)
		return false;
	ptrdiff_t n = read_fully(f, fd, text, ENOUGH);
	f->close(f->user, fd);
	text[n > 0 ? n : 0] = 0;
	return n > 0;
}

/* The bytes of all third caches, each counted at the first of the processors that share it; 0: not known. The C library is asked
 * where the system has no list of them: of some processors it says ten times what there is. */
static size_t
last_cache(const Session *s)
{
	char text[ENOUGH + 1];
	size_t bytes = 0;
	long processors = sysconf(_SC_NPROCESSORS_CONF), said = sysconf(_SC_LEVEL3_CACHE_SIZE);
	for (long p = 0; p < processors; p++) {
		if (!read_cache(s, p, "shared_cpu_list", text) || strtol(text, NULL, 10) != p || !read_cache(s, p, "size", text))
			continue;
		char *unit;
		size_t n = strtoul(text, &unit, 10);
		bytes += *unit == 'K' ? n << 10 : *unit == 'M' ? n << 20 : n;
	}
	return bytes ? bytes : said > 0 ? (size_t)said : 0;
}

/* Memory for the arrays: eight times the last cache, or what of it can be had. */
static bool
take_arrays(Session *s, Measure *m)
{
	const HostMemory *h = &s->host->memory;
	size_t bytes = 8 * last_cache(s);
	bytes = bytes < LEAST ? LEAST : bytes > MOST ? MOST : bytes;
	for (; bytes >= LEAST; bytes /= 2) {
		m->n = bytes / (3 * sizeof *m->array) / (2 * m->threads) * (2 * m->threads);
		m->array = h->alloc(h->user, 3 * m->n * sizeof *m->array);
		if (m->array)
			return true;
	}
	return problem(&s->problem, EXIT_IO, "no memory to measure the machine's with");
}

bool
roof_measure(Session *s, uint32_t threads, Roof *out)
{
	const HostMemory *h = &s->host->memory;
	Measure m = {.host = s->host, .threads = threads, .flops = ARENA_ARRAY(&s->arena, double, threads)};
	double flops = 0;
	if (!take_arrays(s, &m))
		return false;
	bool ok = pthread_mutex_init(&m.gate, NULL) == 0 && pthread_barrier_init(&m.barrier, NULL, threads) == 0;
	ok = ok ? run_workers(s, &m) : problem(&s->problem, EXIT_IO, "the system has no locks to give");
	h->release(h->user, m.array);
	for (uint32_t k = 0; k < threads; k++)
		flops += m.flops[k];
	*out = (Roof){.gbps = (double)(3 * m.n * sizeof *m.array) / m.triad_s * 1e-9, .tflops = flops / m.flops_s * 1e-12};
	return ok;
}
