/* arg_search_test.c: argmax and argmin of a block's vector, before and after tile_spread, against a plain search: the
 * first NaN wins, then the first of equals, -0 equals 0, and lanes without a term are not found. */
#include "passes/schedule/schedule.h"
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

#include <math.h>

enum { MOST = 1024, ROUNDS = 12 };

typedef struct {
	unsigned threads, group, lanes, cluster;
	bool by_group;
} Shape;

static const Shape shapes[] = {
	{32, 1, 32, 0, true}, {32, 4, 512, 0, true}, {32, 4, 512, 0, false}, {64, 8, 512, 0, true}, {64, 2, 256, 0, false},
	{128, 8, 1024, 0, true}, {32, 4, 1024, 8, true}, {64, 2, 512, 4, false},
};

/* y[0] = arg of x[0 .. n), y[1] = whether there is any. */
static TirKernel *
arg_kernel(Fixture *f, const Shape *s, Monoid m, DType t)
{
	TirKernel *k = tir_new(&f->arena, f->names, name_cstr(f->names, "k"));
	k->form = TIR_BLOCK;
	k->threads = (uint16_t)s->threads;
	k->group = (uint16_t)s->group;
	k->cluster = (uint16_t)s->cluster;
	Point l = {.tir = k, .lanes = s->lanes};
	tir_add_buffer(k, name_cstr(f->names, "x"), t, false);
	tir_add_buffer(k, name_cstr(f->names, "y"), DT_I64, true);
	tir_add_scalar(k, name_cstr(f->names, "n"), DT_I64);
	ValId n = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), 0, NULL, 0), one = tir_int(k, DT_I64, 1), zero = tir_int(k, DT_I64, 0);
	ValId two = tir_int(k, DT_I64, 2), in = tir_view(k, 0, 1, &n, &one), out = tir_view(k, 1, 1, &two, &one);
	ValId iota = tir_emit(k, OP_IOTA, tir_vector(DT_I32, s->lanes), s->by_group && s->group > 1 ? s->group : 0, NULL, 0);
	ValId mask = tir_binary(k, OP_LT, iota, tir_cast(k, DT_I32, n));
	Reduction a = {.monoid = m, .type = t, .by_group = s->by_group, .touched = mask};
	reduction_search(&a);
	assert_true(a.searched);
	a.re = tir_load(k, in, &zero, mask, TIR_LANES_ALONG(0), s->lanes);
	reduction_across(&l, &a);
	tir_store(k, out, reduction_end(&l, &a).re, &zero, 0, 0);
	tir_store(k, out, tir_cast(k, DT_I64, a.touched), &one, 0, 0);
	fixture_verify(f, k);
	return k;
}

static void
run(Fixture *f, const TirKernel *k, void *x, int64_t n, int64_t *y)
{
	const char *error = NULL;
	TirMemory memory[8] = {{x, (size_t)n * 4}, {y, 16}};
	const void *scalar[1] = {&n};
	TirRun r = {.buffer = memory, .scalar = scalar, .task_lo = 0, .task_hi = 1};
	y[0] = y[1] = -1;
	if (!tir_interpret(k, &f->arena, &r, &error))
		fail_msg("%s", error);
}

static bool
beats(bool max, double x, double best)
{
	return isnan(best) ? false : isnan(x) || (max ? x > best : x < best);
}

static int64_t
search(bool max, const double *x, int64_t n)
{
	int64_t best = 0;
	for (int64_t i = 1; i < n; i++)
		if (beats(max, x[i], x[best]))
			best = i;
	return best;
}

static uint32_t
next(uint32_t *seed)
{
	return *seed = *seed * 1664525u + 1013904223u, *seed >> 16;
}

/* Rows of a few values that are easily confused, with `kinds` of them: the more, the likelier a NaN. */
static void
fill(uint32_t *seed, DType t, unsigned kinds, void *to, double *as_double)
{
	static const float floats[] = {-1, 0.0f, -0.0f, -INFINITY, -3e38f, 0x1p-149f, -0x1p-149f, 1, INFINITY, NAN, -NAN};
	static const int32_t ints[] = {0, -1, INT32_MIN, -7, 7, 1, 8, -2, 2, INT32_MAX, 9};
	float *x = to;
	int32_t *u = to;
	for (unsigned i = 0; i < MOST; i++) {
		unsigned which = next(seed) % kinds;
		if (t == DT_F32)
			x[i] = floats[which];
		else
			u[i] = ints[which];
		as_double[i] = t == DT_F32 ? (double)x[i] : (double)u[i];
	}
}

static void
rounds_of(void **state, const Shape *s, Monoid m, DType t)
{
	static float x[MOST];
	static double as_double[MOST];
	fixture_teardown(state);
	fixture_setup(state);
	Fixture *f = *state;
	GUARD(f);
	uint32_t seed = s->threads + s->lanes + s->cluster;
	const TirKernel *k = arg_kernel(f, s, m, t), *spread = tile_spread(k, &f->arena);
	const TirKernel *form[3] = {k, spread, tile_cleanup(spread, &f->arena)};
	fixture_verify(f, spread);
	for (unsigned round = 0; round < ROUNDS; round++) {
		int64_t n = round ? next(&seed) % (s->lanes + 1) : 0, y[2];
		n -= s->by_group ? n % s->group : 0;
		fill(&seed, t, 1 + next(&seed) % 11, x, as_double);
		for (unsigned i = 0; i < 3; i++) {
			run(f, form[i], x, n, y);
			assert_int_equal(y[0], n ? search(m == MON_ARGMAX, as_double, n) : 0);
			assert_int_equal(y[1], n > 0);
		}
	}
}

static void
each(void **state, Monoid m, DType t)
{
	for (unsigned s = 0; s < sizeof shapes / sizeof *shapes; s++)
		rounds_of(state, &shapes[s], m, t);
}

static void of_floats(void **state) { each(state, MON_ARGMAX, DT_F32); }
static void of_floats_least(void **state) { each(state, MON_ARGMIN, DT_F32); }
static void of_ints(void **state) { each(state, MON_ARGMAX, DT_I32); }
static void of_ints_least(void **state) { each(state, MON_ARGMIN, DT_I32); }

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(of_floats), TEST(of_floats_least), TEST(of_ints), TEST(of_ints_least),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
