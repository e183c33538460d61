/* divide_often_test.c [all]: where tile_divide_often fires, where it must not, and that its quotients are the nearest floats: of all
 * dividends whose quotients are next to the middle between two floats, by some divisors (all: by every one), at both ends of f32, and
 * with a lane among others that the reciprocal is not for. */
#include <math.h>
#include <string.h>

#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"
#include "tests/math/hard_dividends.h"

enum { N = 1024, LANES = 8, ROUNDS = 400 };

/* z[i] = x[i] / b[0], b[0] read before the loop; or x[i] / b[i]. */
#define HEAD "kernel k\nbuffer 0 x : f32\nbuffer 1 b : f32\nbuffer 2 z : f32 written\nscalar 0 n : i64\n{\n" \
	"  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 0\n  %5:f32 = view %4, %1, %3\n" \
	"  %6 = buffer 1\n  %7:f32 = view %6, %1, %3\n  %8 = buffer 2\n  %9:f32 = view %8, %1, %3\n  %10:i64 = const 8\n"
#define LOOP "  %13 = for %2, %1, %10 {\n    %14:i64 = blockarg 0\n    %15:f32x8 = load %5, %14 along 0\n"
#define TAIL "    %17 = store %9, %16, %14 along 0\n    %18 = yield\n  }\n}\n"

static const char often[] = HEAD "  %11:f32 = load %7, %2\n  %12:f32x8 = splat %11\n" LOOP "    %16:f32x8 = / %15, %12\n" TAIL;
static const char *const others[] = {
	HEAD "  %11:f32 = load %7, %2\n  %12:f32x8 = splat %11\n" LOOP "    %16:f32x8 = / %12, %15\n" TAIL,
	HEAD "  %11:f32 = load %7, %2\n  %12:f32x8 = splat %11\n  %13 = for %2, %1, %10 {\n    %14:i64 = blockarg 0\n"
	     "    %15:f32 = load %7, %14\n    %16:f32x8 = splat %15\n    %17:f32x8 = / %12, %16\n"
	     "    %18 = store %9, %17, %14 along 0\n    %19 = yield\n  }\n}\n",
	HEAD "  %11:f32 = load %7, %2\n  %12:f32x8 = splat %11\n  %13:f32x8 = load %5, %2 along 0\n  %14:f32x8 = / %13, %12\n"
	     "  %15 = store %9, %14, %2 along 0\n}\n",
};

static TirKernel *
read_kernel(Fixture *f, const char *text)
{
	TirKernel *k = fixture_read(f, text);
	fixture_verify(f, k);
	return k;
}

/* One quotient of lanes is left, in the arm for what is beyond; what comes of b leaves the loop. */
static void
test_fires(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = tile_divide_often(read_kernel(f, often), &f->arena);
	fixture_verify(f, k);
	k = tile_cleanup(k, &f->arena);
	unsigned quotients[2] = {0}, splats = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		quotients[tir_inst(k, v)->type.lanes > 0] += tir_inst(k, v)->op == OP_FDIV;
	for (ValId v = 1; v < k->inst.n && tir_inst(k, v)->op != OP_FOR; v++)
		splats += tir_inst(k, v)->op == OP_SPLAT;
	assert_int_equal(quotients[0], 1);
	assert_int_equal(quotients[1], 1);
	assert_int_equal(splats, 4); /* of b, -b, 1/b, the range of a */
}

static void
test_keeps_off(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof others / sizeof *others; n++) {
		TirKernel *k = read_kernel(f, others[n]);
		assert_ptr_equal(tile_divide_often(k, &f->arena), k);
	}
}

static uint32_t seed = 1;

static uint32_t
next(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 8;
}

static float
number(uint32_t significand, int exponent, bool negative)
{
	float v = ldexpf((float)(0x800000 | (significand & 0x7fffff)), exponent - 23);
	return negative ? -v : v;
}

/* Numbers that the reciprocal is for, hard ones among them; in the last vectors each a lane that it is not for. Some of those are hard too,
 * so small that a remainder would lose bits. */
static void
fill(float *x, float b, unsigned round)
{
	static const float ends[] = {0, -0.0f, 0x1p-149f, -0x1p-126f, 0x1.fffffep-71f, 0x1p-70f, 0x1.fffffep89f, 0x1p90f, 0x1.fffffep127f,
	                             INFINITY, -INFINITY, NAN};
	uint64_t hard[HARD_MOST];
	int place;
	unsigned n = isnormal(b) ? hard_dividends((uint32_t)ldexpf(frexpf(fabsf(b), &place), 24), hard) : 0;
	for (unsigned i = 0; i < N; i++) {
		bool small = i / LANES % 8 == 0;
		x[i] = number(n && i % 2 ? (uint32_t)hard[i / 2 % n] : next(), small ? -126 + (int)(next() % 50) : (int)(next() % 150) - 65, next() & 1);
	}
	for (unsigned i = 0; i < sizeof ends / sizeof *ends; i++)
		x[N - LANES * (i + 1) + round % LANES] = ends[i];
}

static void
check_all(Fixture *f, const TirKernel *k, float b, unsigned round)
{
	static float x[N], z[N], divisor[N];
	int64_t n = N;
	TirMemory memory[3] = {{x, sizeof x}, {divisor, sizeof divisor}, {z, sizeof z}};
	const void *scalar[1] = {&n};
	TirRun run = {.buffer = memory, .scalar = scalar, .task_hi = 1};
	const char *error = "";
	fill(x, b, round);
	divisor[0] = b;
	if (!tir_interpret(k, &f->arena, &run, &error))
		fail_msg("%s", error);
	for (unsigned i = 0; i < N; i++) {
		float want = x[i] / b;
		if (memcmp(&z[i], &want, sizeof want) != 0 && !(isnan(z[i]) && isnan(want)))
			fail_msg("%a / %a: %a, not %a", (double)x[i], (double)b, (double)z[i], (double)want);
	}
}

static void
test_quotients(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const float ends[] = {1, -1, 0x1.fffffep0f, 0x1.000002p0f, 0x1p-30f, 0x1.fffffep-31f, 0x1p30f, 0x1.000002p30f, 0x1p-126f, 0x1p-149f,
	                             0x1.fffffep127f, 0, -0.0f, INFINITY, -INFINITY, NAN};
	enum { ENDS = sizeof ends / sizeof *ends };
	TirKernel *k = tile_cleanup(tile_divide_often(read_kernel(f, often), &f->arena), &f->arena);
	for (unsigned round = 0; round < ROUNDS; round++) {
		uint32_t edge = round % 4 == 0 ? 0x7fffff - round : round % 4 == 1 ? round : next();
		check_all(f, k, round < ENDS ? ends[round] : number(edge, (int)(next() % 70) - 35, next() & 1), round);
	}
}

static uint32_t divisors = 509; /* one of so many */

/* The same steps, without a loop around them. */
static void
test_hard(void **state)
{
	(void)state;
	uint64_t hard[HARD_MOST], tried = 0;
	for (uint32_t significand = HARD_FIRST; significand < HARD_END; significand += divisors) {
		float b = number(significand, 0, false), y = 1 / b;
		unsigned n = hard_dividends(significand, hard);
		assert_true(n < HARD_MOST);
		tried += n;
		for (unsigned k = 0; k < n; k++) {
			float a = number((uint32_t)hard[k], 0, false), q = a * y, result = fmaf(fmaf(-b, q, a), y, q);
			if (result != a / b)
				fail_msg("%a / %a: %a, not %a", (double)a, (double)b, (double)result, (double)(a / b));
		}
	}
	print_message("%llu dividends\n", (unsigned long long)tried);
	assert_true(tried > (HARD_END - HARD_FIRST) / divisors * 8);
}

int
main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "all") == 0)
		divisors = 1;
	const struct CMUnitTest tests[] = {TEST(test_fires), TEST(test_keeps_off), TEST(test_quotients), TEST(test_hard)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
