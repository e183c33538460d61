/* roof.c: what this machine can do, measured in the run that times the rest: a triad over as many
 * bytes as a case touches, and multiply-adds that never leave the registers.
 *
 * A shared library for the bench harness. Every function runs `threads` threads, the caller being one
 * of them, which meet at a spinning barrier, and writes the seconds that the caller saw. */
#define _GNU_SOURCE
#include <immintrin.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

enum { MOST_THREADS = 64, ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };

typedef enum { STORE_PLAIN, STORE_STREAMING } Store;

typedef struct Team Team;
typedef void Part(const Team *team, unsigned part);

struct Team {
	Part *part;
	unsigned threads;
	int repeats;
	double *seconds;
	float *a, *b, *c;
	size_t n; /* elements of each array; a multiple of 16 a thread */
	_Atomic unsigned arrived;
};

typedef struct {
	Team *team;
	unsigned part;
} Member;

static clockid_t which_clock = CLOCK_MONOTONIC;

/* Seconds are from now on those that the calling thread spends on a processor. */
void
roof_count_processor_time(void)
{
	which_clock = CLOCK_THREAD_CPUTIME_ID;
}

static double
now(void)
{
	struct timespec t;
	clock_gettime(which_clock, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* The k-th meeting of the team. */
static void
meet(Team *t, unsigned k)
{
	atomic_fetch_add(&t->arrived, 1);
	while (atomic_load(&t->arrived) < k * t->threads)
		_mm_pause();
}

static void *
member_run(void *arg)
{
	Member *m = arg;
	Team *t = m->team;
	for (int k = 0; k < t->repeats; k++) {
		meet(t, 2 * (unsigned)k + 1);
		double start = now();
		t->part(t, m->part);
		meet(t, 2 * (unsigned)k + 2);
		if (m->part == 0)
			t->seconds[k] = now() - start;
	}
	return NULL;
}

/* 0, or -1 when a thread can't be had. */
static int
team_run(Team *t)
{
	pthread_t id[MOST_THREADS];
	Member m[MOST_THREADS];
	if (t->threads < 1 || t->threads > MOST_THREADS)
		return -1;
	for (unsigned k = 0; k < t->threads; k++)
		m[k] = (Member){t, k};
	for (unsigned k = 1; k < t->threads; k++)
		if (pthread_create(&id[k], NULL, member_run, &m[k]) != 0)
			return -1; /* the others wait for ever: the harness gives up */
	member_run(&m[0]);
	for (unsigned k = 1; k < t->threads; k++)
		pthread_join(id[k], NULL);
	return 0;
}

static void
part_range(const Team *t, unsigned part, size_t *from, size_t *to)
{
	size_t share = t->n / t->threads / 64 * 64;
	*from = part * share;
	*to = part + 1 == t->threads ? t->n : *from + share;
}

__attribute__((target_clones("avx512f", "avx2", "default"), optimize("O3"))) static void
triad_loop(float *restrict a, const float *restrict b, const float *restrict c, size_t n)
{
	for (size_t i = 0; i < n; i++)
		a[i] = b[i] + 0.5f * c[i];
}

static void
triad_plain(const Team *t, unsigned part)
{
	size_t from, to;
	part_range(t, part, &from, &to);
	triad_loop(t->a + from, t->b + from, t->c + from, to - from);
}

__attribute__((target("avx512f"))) static void
triad_stream_512(float *a, const float *b, const float *c, size_t n)
{
	__m512 half = _mm512_set1_ps(0.5f);
	for (size_t i = 0; i + 16 <= n; i += 16)
		_mm512_stream_ps(a + i, _mm512_fmadd_ps(half, _mm512_load_ps(c + i), _mm512_load_ps(b + i)));
	_mm_sfence();
}

static void
triad_stream_128(float *a, const float *b, const float *c, size_t n)
{
	__m128 half = _mm_set1_ps(0.5f);
	for (size_t i = 0; i + 4 <= n; i += 4)
		_mm_stream_ps(a + i, _mm_add_ps(_mm_load_ps(b + i), _mm_mul_ps(half, _mm_load_ps(c + i))));
	_mm_sfence();
}

static void
triad_stream(const Team *t, unsigned part)
{
	size_t from, to;
	part_range(t, part, &from, &to);
	if (__builtin_cpu_supports("avx512f"))
		triad_stream_512(t->a + from, t->b + from, t->c + from, to - from);
	else
		triad_stream_128(t->a + from, t->b + from, t->c + from, to - from);
}

/* The three arrays of a triad over `bytes` bytes, on huge pages where there are any; NULL: no memory.
 * Their starts are a few lines apart within a page, so that they do not share cache sets. */
void *
roof_new(size_t bytes, size_t *elements)
{
	size_t n = bytes / 12 / 256 * 256;
	size_t room = (n * 4 + 4096) * 3;
	float *a = NULL;
	if (n == 0 || posix_memalign((void **)&a, (size_t)2 << 20, room) != 0)
		return NULL;
	madvise(a, room, MADV_HUGEPAGE);
	for (size_t i = 0; i < room / 4; i++)
		a[i] = (float)(i % 1021) * 0.001f;
	*elements = n;
	return a;
}

void
roof_free(void *arrays)
{
	free(arrays);
}

/* Seconds of each of `repeats` triads. 0, or -1. */
int
roof_triad(void *arrays, size_t elements, unsigned threads, int store, int repeats, double *seconds)
{
	float *a = arrays;
	Team t = {.part = (Store)store == STORE_PLAIN ? triad_plain : triad_stream, .threads = threads,
	          .repeats = repeats, .seconds = seconds, .a = a, .b = a + elements + 320, .c = a + 2 * (elements + 320),
	          .n = elements};
	return team_run(&t);
}

enum { ROUNDS = 4000000, CHAINS = 16, LANES_512 = 16, LANES_256 = 8 };

__attribute__((target("avx512f"), optimize("O2"))) static float
multiply_add_512(long rounds)
{
	__m512 x[CHAINS], f = _mm512_set1_ps(0.999f), g = _mm512_set1_ps(0.001f);
	for (int k = 0; k < CHAINS; k++)
		x[k] = _mm512_set1_ps((float)k);
	for (long r = 0; r < rounds; r++)
#pragma GCC unroll 16
		for (int k = 0; k < CHAINS; k++)
			x[k] = _mm512_fmadd_ps(x[k], f, g);
	for (int k = 1; k < CHAINS; k++)
		x[0] = _mm512_add_ps(x[0], x[k]);
	return _mm512_reduce_add_ps(x[0]);
}

/* Twelve chains: two ports times four to five cycles, within sixteen registers. */
enum { CHAINS_256 = 12 };

__attribute__((target("avx2,fma"), optimize("O2"))) static float
multiply_add_256(long rounds)
{
	__m256 x[CHAINS_256], f = _mm256_set1_ps(0.999f), g = _mm256_set1_ps(0.001f);
	float out[LANES_256];
	for (int k = 0; k < CHAINS_256; k++)
		x[k] = _mm256_set1_ps((float)k);
	for (long r = 0; r < rounds; r++)
#pragma GCC unroll 12
		for (int k = 0; k < CHAINS_256; k++)
			x[k] = _mm256_fmadd_ps(x[k], f, g);
	for (int k = 1; k < CHAINS_256; k++)
		x[0] = _mm256_add_ps(x[0], x[k]);
	_mm256_storeu_ps(out, x[0]);
	return out[0];
}

static volatile float sink;

static void
part_f32(const Team *t, unsigned part)
{
	(void)t, (void)part;
	sink = __builtin_cpu_supports("avx512f") ? multiply_add_512(ROUNDS) : multiply_add_256(ROUNDS);
}

/* GFLOP/s of f32 multiply-adds, the best of five; 0 where there is neither AVX-512 nor AVX2. */
double
roof_f32(unsigned threads)
{
	double s[5], least = 1e9;
	Team t = {.part = part_f32, .threads = threads, .repeats = 5, .seconds = s};
	int wide = __builtin_cpu_supports("avx512f") != 0;
	if ((!wide && !(__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))) || team_run(&t) != 0)
		return 0;
	for (int k = 0; k < 5; k++)
		least = s[k] < least ? s[k] : least;
	double each = wide ? 2.0 * CHAINS * LANES_512 : 2.0 * CHAINS_256 * LANES_256;
	return each * ROUNDS * threads / least * 1e-9;
}

enum { TILE_ROUNDS = 400000, TILE_FLOP = 2 * 16 * 16 * 32 };

__attribute__((target("amx-tile,amx-bf16"))) static void
part_tiles(const Team *t, unsigned part)
{
	struct __attribute__((packed)) {
		uint8_t palette, start, reserved[14];
		uint16_t width[16];
		uint8_t rows[16];
	} shape = {.palette = 1};
	(void)t, (void)part;
	for (int k = 0; k < 8; k++) {
		shape.width[k] = 64;
		shape.rows[k] = 16;
	}
	__asm__ volatile("" : : "r"(&shape) : "memory"); /* gcc takes the next line to read eight bytes */
	_tile_loadconfig(&shape);
	_tile_zero(0);
	_tile_zero(1);
	_tile_zero(2);
	_tile_zero(3);
	_tile_zero(4);
	_tile_zero(5);
	_tile_zero(6);
	_tile_zero(7);
	for (long r = 0; r < TILE_ROUNDS; r++) {
		_tile_dpbf16ps(0, 4, 6);
		_tile_dpbf16ps(1, 4, 7);
		_tile_dpbf16ps(2, 5, 6);
		_tile_dpbf16ps(3, 5, 7);
	}
	_tile_release();
}

static int
has_tiles(void)
{
	unsigned a, b, c, d;
	__asm__ volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "0"(7), "2"(0));
	if (!(d >> 22 & 1) || !(d >> 24 & 1)) /* AMX-BF16, AMX-TILE */
		return 0;
	return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

/* GFLOP/s of bf16 tile products without a load; 0 where there are no tiles. */
double
roof_bf16(unsigned threads)
{
	double s[5], least = 1e9;
	Team t = {.part = part_tiles, .threads = threads, .repeats = 5, .seconds = s};
	if (!has_tiles() || team_run(&t) != 0)
		return 0;
	for (int k = 0; k < 5; k++)
		least = s[k] < least ? s[k] : least;
	return 4.0 * TILE_FLOP * TILE_ROUNDS * threads / least * 1e-9;
}
