/* narrow_divide_test.c: where tile_narrow_divide fires, where it must not, and how far its quotients are from the exact
 * ones, for divisors up to both ends of f32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

enum { N = 512 };

/* z[i] = exp(x[i]) / b[0], b[0] read before the loop. */
#define HEAD "kernel k\nbuffer 0 x : f32\nbuffer 1 b : f32\nbuffer 2 z : f32 written\nscalar 0 n : i64\n{\n" \
	"  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 0\n  %5:f32 = view %4, %1, %3\n" \
	"  %6 = buffer 1\n  %7:f32 = view %6, %1, %3\n  %8 = buffer 2\n  %9:f32 = view %8, %1, %3\n"
#define OUTSIDE HEAD "  %10:f32 = load %7, %2\n  %11 = for %2, %1, %3 {\n    %12:i64 = blockarg 0\n    %13:f32 = load %5, %12\n"
#define TAIL "    %16 = store %9, %15, %12\n    %17 = yield\n  }\n}\n"

static const char marked[] = OUTSIDE "    %14:f32 = exp~f16 %13\n    %15:f32 = / %14, %10\n" TAIL;
static const char near[] = OUTSIDE "    %14:f32 = exp~f16 %13\n    %15:f32 = / near %14, %10\n" TAIL;
static const char plain[] = OUTSIDE "    %14:f32 = exp %13\n    %15:f32 = / %14, %10\n" TAIL;
static const char below[] = OUTSIDE "    %14:f32 = exp~f16 %13\n    %15:f32 = / %10, %14\n" TAIL;
static const char inside[] = HEAD "  %10 = for %2, %1, %3 {\n    %11:i64 = blockarg 0\n    %12:f32 = load %5, %11\n"
	"    %13:f32 = load %7, %11\n    %14:f32 = exp~f16 %12\n    %15:f32 = / %14, %13\n    %16 = store %9, %15, %11\n"
	"    %17 = yield\n  }\n}\n";
/* The divisor of two powers of each turn. */
static const char twice[] = HEAD "  %10 = for %2, %1, %3 {\n    %11:i64 = blockarg 0\n    %12:f32 = load %5, %11\n"
	"    %13:f32 = load %7, %11\n    %14:f32 = exp~bf16 %12\n    %15:f32 = / %14, %13\n    %16:f32 = exp2~bf16 %12\n"
	"    %17:f32 = / %16, %13\n    %18:f32 = + %15, %17\n    %19 = store %9, %18, %11\n    %20 = yield\n  }\n}\n";
static const char lanes[] = HEAD "  %10:f32 = load %7, %2\n  %11:f32x4 = splat %10\n  %12:i64 = const 4\n"
	"  %13 = for %2, %1, %12 {\n    %14:i64 = blockarg 0\n    %15:f32x4 = load %5, %14 along 0\n"
	"    %16:f32x4 = exp~f16 %15\n    %17:f32x4 = / %16, %11\n    %18 = store %9, %17, %14 along 0\n    %19 = yield\n  }\n}\n";

/* z[i] = (c ? e : 1) / (k + e), of a thread's i; e is a power of x[i], or of its magnitude negated. */
#define SUM(form, from, k, compare, of, power, choice, sum) "kernel k" form "\nbuffer 0 x : f32\nbuffer 1 b : f32\nbuffer 2 z : f32 written\n" \
	"scalar 0 n : i64\n{\n  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 0\n  %5:f32 = view %4, %1, %3\n" \
	"  %6 = buffer 2\n  %7:f32 = view %6, %1, %3\n  %8:f32 = const 0\n  %9:f32 = const 1\n  %10:f32 = const " k "\n" \
	"  %11:i64 = const 32\n  %12:i64 = " from "\n  %13 = for %2, %1, %11 {\n    %14:i64 = blockarg 0\n    %15:i64 = + %14, %12\n    %16:f32 = load %5, %15\n" \
	"    %17:bool = < " compare "\n    %18:f32 = neg %16\n    %19:f32 = select %17, %16, %18\n    %20:f32 = " power " " of "\n" \
	"    %21:f32 = select %17, " choice "\n    %22:f32 = + " sum "\n    %23:f32 = / %21, %22\n    %24 = store %7, %23, %15\n" \
	"    %25 = yield\n  }\n}\n"
#define THREADS " threads 32 by 1"

/* `below`: c ? e : 1 is e where x < 0, else where it is not; `folded`: e is the power of -|x|. */
static const struct {
	const char *text;
	double k;
	bool below, folded;
} sums[] = {
	{SUM(THREADS, "thread", "0x1p0", "%16, %8", "%19", "exp~bf16", "%20, %9", "%9, %20"), 1, true, true},
	{SUM(THREADS, "thread", "0x1p0", "%16, %8", "%16", "exp~bf16", "%9, %20", "%20, %10"), 1, false, false},
	{SUM(THREADS, "thread", "0x1p0", "%8, %16", "%16", "exp~bf16", "%20, %9", "%10, %20"), 1, false, false},
	{SUM(THREADS, "thread", "0x1p64", "%8, %16", "%16", "exp~bf16", "%20, %9", "%10, %20"), 0x1p64, false, false},
	{SUM(THREADS, "thread", "0x1p-64", "%16, %8", "%16", "exp~bf16", "%20, %9", "%20, %10"), 0x1p-64, true, false},
	{SUM(THREADS, "thread", "0x1p0", "%16, %8", "%19", "exp~bf16 low", "%20, %9", "%9, %20"), 1, true, true},
	{SUM(THREADS, "thread", "0x1p-64", "%16, %8", "%19", "exp~bf16 low", "%20, %9", "%20, %10"), 0x1p-64, true, true},
};
static const char *const others[] = {
	SUM("", "const 0", "0x1p0", "%16, %8", "%19", "exp~bf16", "%20, %9", "%9, %20"),
	SUM(THREADS, "thread", "0x1p0", "%16, %8", "%19", "exp", "%20, %9", "%9, %20"),
	SUM(THREADS, "thread", "0x1p65", "%16, %8", "%19", "exp~bf16", "%20, %9", "%10, %20"),
	SUM(THREADS, "thread", "-0x1p0", "%16, %8", "%19", "exp~bf16", "%20, %9", "%10, %20"),
	SUM(THREADS, "thread", "0x1p0", "%16, %8", "%19", "exp~bf16", "%20, %8", "%9, %20"),
	SUM(THREADS, "thread", "0x1p0", "%16, %8", "%19", "exp~bf16", "%20, %9", "%9, %16"),
	SUM(THREADS, "thread", "0x1p0", "%16, %8", "%19", "tanh~bf16", "%20, %9", "%9, %20"), /* near -1 the sum is near 0 */
};

static unsigned
count(const TirKernel *k, Op op, bool scalars)
{
	unsigned n = 0;
	for (ValId v = 1; v < k->inst.n; v++)
		n += tir_inst(k, v)->op == op && !(scalars && tir_inst(k, v)->type.lanes);
	return n;
}

static TirKernel *
divided(Fixture *f, const char *text)
{
	TirKernel *k = fixture_read(f, text);
	fixture_verify(f, k);
	TirKernel *to = tile_narrow_divide(k, &f->arena);
	fixture_verify(f, to);
	return to;
}

/* The quotients of powers are products, and those left are of 1; middle ones where a power is at most 1. */
static void
fires(Fixture *f, const char *text, unsigned products)
{
	TirKernel *k = divided(f, text);
	for (ValId v = 1; v < k->inst.n; v++) {
		if (tir_inst(k, v)->op != OP_FDIV)
			continue;
		const TirInst *one = tir_inst(k, tir_arg(k, v, 0));
		assert_true(one->op == OP_CONST && one->imm.f == 1 && !tir_inst(k, v)->type.lanes);
		assert_int_equal(tir_inst(k, v)->imm.i == TIR_MIDDLE, strstr(text, " low ") != NULL);
	}
	assert_int_equal(count(k, OP_MUL, false), products);
}

static void
test_fires(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	fires(f, marked, 3); /* one for the divisor */
	fires(f, twice, 6);
	fires(f, lanes, 3);
	fires(f, near, 1); /* whose reciprocal is that of the divisor as it is */
	TirKernel *k = tile_cleanup(divided(f, twice), &f->arena);
	assert_int_equal(count(k, OP_FDIV, false), 1); /* which both have in common */
}

static void
test_keeps_off(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char *const text[] = {plain, below, inside};
	for (unsigned n = 0; n < 3; n++) {
		TirKernel *k = fixture_read(f, text[n]);
		assert_ptr_equal(tile_narrow_divide(k, &f->arena), k);
	}
}

/* Where a power, or 1, is divided by a sum with one, all that is divided is 1. */
static void
test_sums(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof sums / sizeof *sums; n++)
		fires(f, sums[n].text, 1);
	for (unsigned n = 0; n < sizeof others / sizeof *others; n++) {
		TirKernel *k = fixture_read(f, others[n]);
		fixture_verify(f, k);
		assert_ptr_equal(tile_narrow_divide(k, &f->arena), k);
	}
}

/* What a power marked for f16 may be wrong by; over b, and rounded. */
static double
bound(double power, double b, double quotient)
{
	int ex, q;
	frexp(power, &ex);
	frexp(quotient, &q);
	return (ldexp(1, ex - 11 - 4) + 0x1p-149) / fabs(b) + ldexp(1, (q < -125 ? -125 : q) - 25);
}

/* A power next to an end of f32 may be 0, or infinite, and so its quotient by 0, or infinity, be NaN. */
static void
check(double x, double b, double got)
{
	double power = exp(x), most = 0x1.ffffffp127;
	if (power > most)
		power = INFINITY;
	double want = power / b;
	if (power > 0 && power < 0x1p-148 && b == 0)
		return;
	if (isnan(want) || isnan(x))
		assert_true(isnan(got));
	else if (isinf(want) || want == 0)
		assert_true(got == want && signbit(got) == signbit(want));
	else if (fabs(want) + bound(power, b, want) < most && power < most)
		assert_true(fabs(got - want) <= bound(power, b, want));
	else if (fabs(want) - bound(power, b, want) > most)
		assert_true(isinf(got) && signbit(got) == signbit(want));
}

static void
test_quotients(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const float divisor[] = {1, 3, -7, 0x1.fffffep10f, 0x1p64f, 0x1.8p64f, -0x1p-64f, 0x1.fp-65f, 0x1p126f, 0x1.fffffep127f,
	                                0x1p-126f, 0x1.4p-128f, -0x1.8p-130f, 0x1p-148f, 0x1p-149f, 0, -0.0f, INFINITY, -INFINITY, NAN};
	static float x[N], b[N], z[N];
	int64_t n = N;
	for (int i = 0; i < N; i++)
		x[i] = (float)(i - N / 2) * 0.40625f + (float)(i % 7) * 0x1p-9f;
	x[0] = -INFINITY, x[1] = INFINITY, x[2] = NAN, x[3] = 0, x[4] = -0.0f;
	TirKernel *k = tile_narrow_short(divided(f, marked), &f->arena);
	for (unsigned d = 0; d < sizeof divisor / sizeof *divisor; d++) {
		TirMemory memory[3] = {{x, sizeof x}, {b, sizeof b}, {z, sizeof z}};
		const void *scalar[1] = {&n};
		TirRun run = {.buffer = memory, .scalar = scalar, .task_hi = 1};
		const char *error = "";
		b[0] = divisor[d];
		if (!tir_interpret(k, &f->arena, &run, &error))
			fail_msg("%s", error);
		for (int i = 0; i < N; i++)
			check(x[i], b[0], z[i]);
	}
}

/* A quotient of a power may be wrong by what that is, by its sum's, and two roundings; one of 1, by the sum's and a rounding. */
static void
check_sum(double x, unsigned n, double got)
{
	double e = exp(sums[n].folded ? -fabs(x) : x), b = sums[n].k + e, most = 0x1.ffffffp127;
	bool takes_e = sums[n].below ? x < 0 : x >= 0;
	if (isnan(x) || (e > most && takes_e)) {
		assert_true(isnan(got));
		return;
	}
	if (e > most) {
		assert_true(got == 0);
		return;
	}
	int ex, q;
	frexp(e, &ex);
	double want = (takes_e ? e : 1) / b, own = ldexp(1, ex - 8 - 4) + 0x1p-149;
	frexp(want, &q);
	double rounding = ldexp(1, (q < -125 ? -125 : q) - 25);
	double may = (takes_e ? 2 * own / b + 2 * rounding : own * want / b + rounding) * (1 + 0x1p-20) + want * 0x1p-24;
	assert_true(fabs(got - want) <= may);
}

static void
test_quotients_by_sums(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static float x[N], b[1], z[N];
	int64_t n = N;
	for (int i = 0; i < N; i++)
		x[i] = (float)(i - N / 2) * 0.40625f + (float)(i % 7) * 0x1p-9f;
	x[0] = -INFINITY, x[1] = INFINITY, x[2] = NAN, x[3] = 0, x[4] = -0.0f;
	for (unsigned s = 0; s < sizeof sums / sizeof *sums; s++) {
		TirKernel *k = tile_narrow_short(divided(f, sums[s].text), &f->arena);
		TirMemory memory[3] = {{x, sizeof x}, {b, sizeof b}, {z, sizeof z}};
		const void *scalar[1] = {&n};
		TirRun run = {.buffer = memory, .scalar = scalar, .task_hi = 1};
		const char *error = "";
		if (!tir_interpret(k, &f->arena, &run, &error))
			fail_msg("%s", error);
		for (int i = 0; i < N; i++)
			check_sum(x[i], s, z[i]);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(test_fires), TEST(test_sums), TEST(test_keeps_off), TEST(test_quotients), TEST(test_quotients_by_sums)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
