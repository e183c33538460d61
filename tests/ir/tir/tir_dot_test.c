/* tir_dot_test.c: DOT and BITCAST to other lanes: what the verifier refuses, and what they compute. */
#include <math.h>

#include "tir_fixture.h"

/* c (f32, written) is (tile, row, column), a and b (u32) are (group, row, pair) and (group, pair, column);
 * %11 %12 %13 their views of 1 x 2 x 3, 2 x 2 x 2 and 2 x 2 x 3 elements, %14 a view of c of rank 1. */
static const char prelude[] =
	"kernel k\n"
	"buffer 0 c : f32 written\n"
	"buffer 1 a : u32\n"
	"buffer 2 b : u32\n"
	"scalar 0 n : i64\n"
	"{\n"
	"%1:i64 = const 1 %2:i64 = const 2 %3:i64 = const 3 %4:i64 = const 0 %5:i64 = scalar 0\n"
	"%6 = buffer 0 %7 = buffer 1 %8 = buffer 2 %9:i64 = const 6 %10:i64 = const 4\n"
	"%11:f32 = view %6, %1, %2, %3, %9, %3, %1\n"
	"%12:u32 = view %7, %2, %2, %2, %10, %2, %1\n"
	"%13:u32 = view %8, %2, %2, %3, %9, %3, %1\n"
	"%14:f32 = view %6, %9, %1 %15:u32 = const 7 %16:u32x4 = splat %15\n";

static const struct {
	const char *text, *error;
} rows[] = {
	{"%17 = dot 2 3 2 %11, %12, %13, %5", "%17 dot: operand 4 is no index"},
	{"%17 = dot 2 3 0 chained %11, %12, %13, %5, %4", "%17 dot: shape out of range"},
	{"%17 = dot 2 3 2 %11, %12, %13, %5, %4, %4", "%17 dot: takes 5 operands, not 6"},
	{"%17 = dot 0 3 2 %11, %12, %13, %5, %4", "%17 dot: shape out of range"},
	{"%17 = dot 2 3 2 %11, %12, %13", "%17 dot: takes c, a, b and the number of groups"},
	{"%17 = dot 2 3 2 %11, %12, %13, %15, %4", "%17 dot: takes c, a, b and the number of groups"},
	{"%17 = dot 2 3 2 %14, %12, %13, %5, %4", "%17 dot: operand 0 has fewer than 2 axes"},
	{"%17 = dot 2 3 2 %12, %12, %13, %5, %4", "%17 dot: operand 0 is no view of f32"},
	{"%17 = dot 2 3 2 %11, %11, %13, %5, %4", "%17 dot: operand 1 is no view of u32"},
	{"%17 = dot 2 3 2 %11, %12, %15, %5, %4", "%17 dot: operand 2 is no view of u32"},
	{"%17:f32 = dot 2 3 2 %11, %12, %13, %5, %4", "%17 dot: has a type"},
	{"%17:u16x6 = bitcast %16", "%17 bitcast: 128 bits as 96"},
	{"%17:u16 = bitcast %16", "%17 bitcast: changes the number of lanes"},
	{"%17:u4x32 = bitcast %16", "%17 bitcast: changes the number of lanes"},
	{"%17:boolx16 = bitcast %16", "%17 bitcast: not defined on bool"},
};

static void
refusals(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *error = "accepted";
		TirKernel *k = fixture_read(f, arena_text(&f->arena, "%s%s\n}", prelude, rows[i].text));
		const char *want = arena_text(&f->arena, "kernel k: %s", rows[i].error);
		if (tir_verify(k, &f->arena, &error) || strcmp(error, want) != 0)
			fail_msg("%s\n gives: %s\n wants: %s", rows[i].text, error, want);
	}
}

static const char *const shapes[] = {"dot 65 3 2 %11", "dot 2 3 %11", "dot %11", "dot chained 2 3 2 %11"};

static void
unreadable(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
		const char *error = NULL, *text = arena_text(&f->arena, "%s%%17 = %s, %%12, %%13, %%5, %%4\n}", prelude, shapes[i]);
		assert_null(tir_read(&f->arena, f->names, text, strlen(text), &error));
	}
}

typedef struct {
	float c[6];
	uint32_t a[8], b[12];
	int64_t n;
	bool chained, anew;
} Product;

static bool
run(Fixture *f, Product *p, const char **error)
{
	TirKernel *k = fixture_read(f, arena_text(&f->arena, "%s%%17 = dot 2 3 2%s %%11, %%12, %%13, %%5, %%4\n}", prelude,
	                                          p->chained ? p->anew ? " chained anew" : " chained" : p->anew ? " anew" : ""));
	fixture_round_trip(f, k);
	TirMemory buffer[] = {{p->c, sizeof p->c}, {p->a, sizeof p->a}, {p->b, sizeof p->b}};
	const void *scalar[] = {&p->n};
	TirRun r = {.buffer = buffer, .scalar = scalar, .task_hi = 1};
	return tir_interpret(k, &f->arena, &r, error);
}

static uint32_t
pair(float low, float high)
{
	uint32_t bits[2];
	memcpy(&bits[0], &low, 4);
	memcpy(&bits[1], &high, 4);
	return bits[0] >> 16 | (bits[1] & 0xffff0000);
}

/* c[r][j] += the sum over g, p and both halves, or = it, anew; integers, so that nothing is rounded. */
static void
sums(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (int64_t n = 0; n <= 11; n++) {
		Product p = {.n = n / 4, .chained = n % 2, .anew = n / 2 % 2};
		float want[6], x[2][2][4], y[2][4][3];
		for (int k = 0; k < 16; k++)
			x[k / 8][k / 4 % 2][k % 4] = (float)(k * 7 % 11 - 4);
		for (int k = 0; k < 24; k++)
			y[k / 12][k / 3 % 4][k % 3] = (float)(k * 5 % 13 - 6);
		for (int k = 0; k < 8; k++)
			p.a[k] = pair(x[k / 4][k / 2 % 2][k % 2 * 2], x[k / 4][k / 2 % 2][k % 2 * 2 + 1]);
		for (int k = 0; k < 12; k++)
			p.b[k] = pair(y[k / 6][k / 3 % 2 * 2][k % 3], y[k / 6][k / 3 % 2 * 2 + 1][k % 3]);
		for (int k = 0; k < 6; k++) {
			p.c[k] = p.anew && k == 0 ? NAN : (float)k;
			want[k] = p.anew ? 0 : (float)k;
			for (int t = 0; t < 4 * p.n; t++)
				want[k] += x[t / 4][k / 3][t % 4] * y[t / 4][t % 4][k % 3];
		}
		const char *error = "";
		if (!run(f, &p, &error))
			fail_msg("%s", error);
		assert_memory_equal(p.c, want, sizeof want);
	}
}

/* The order of the sums, and what becomes of subnormals. */
static void
roundings(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const struct {
		float c, a[4], b[4], want, chained;
	} row[] = {
		/* (low half 0, high half 0, low half 1, high half 1): each half is summed by itself; chained, c takes
		 * high half 0 first, then low half 0 */
		{0, {0x1p24f, 1, 1, 0x1p24f}, {1, 1, 1, -1}, 1, 1},
		{0x1p-30f, {1, 0, 0, -1}, {1, 0, 0, 1}, 0x1p-30f, 0},
		{1, {0x1p-24f, 0x1p-24f, 0, 0}, {1, 1, 0, 0}, 1 + 0x1p-23f, 1},
		{0x1p-30f, {-1, 1, 0, 0}, {1, 1, 0, 0}, 0x1p-30f, 0},
		{0x1p24f, {-0x1p24f, 1, 1, 1}, {1, 1, 1, 1}, 3, 2},
		{0x1p-127f, {0}, {0}, 0, 0},
		{0, {0x1p-130f, 0, 0, 0}, {0x1p120f, 0, 0, 0}, 0, 0},
		{0, {0x1p-70f, 0, 0, 0}, {0x1p-60f, 0, 0, 0}, 0, 0},
		{0, {0x1p-70f, 0, 0, 0}, {0x1p-56f, 0, 0, 0}, 0x1p-126f, 0x1p-126f},
		{-0.0f, {0}, {0}, 0, 0},
		{0, {INFINITY, 0, 0, 0}, {0, 0, 0, 0}, NAN, NAN},
	};
	for (unsigned i = 0; i < 2 * sizeof row / sizeof row[0]; i++) {
		unsigned k = i / 2;
		Product p = {.n = 1, .c = {row[k].c}, .chained = i % 2};
		float want = p.chained ? row[k].chained : row[k].want;
		const char *error = "";
		for (int n = 0; n < 2; n++) {
			p.a[n] = pair(row[k].a[2 * n], row[k].a[2 * n + 1]);
			p.b[3 * n] = pair(row[k].b[2 * n], row[k].b[2 * n + 1]);
		}
		if (!run(f, &p, &error))
			fail_msg("%s", error);
		if (isnan(want) ? !isnan(p.c[0]) : memcmp(&p.c[0], &want, 4) != 0)
			fail_msg("row %u%s gives %a", k, p.chained ? ", chained," : "", (double)p.c[0]);
	}
}

static void
outside(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Product p = {.n = 3};
	const char *error = "";
	assert_false(run(f, &p, &error));
	assert_string_equal(error, "kernel k: %17 dot: index 0 of lane 0 is 2, the extent 2");
}

/* The lower lane is the lower half, both ways. */
static void
regrouped(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char text[] =
		"kernel k\nbuffer 0 x : u32\nbuffer 1 y : bf16 written\nbuffer 2 z : u64 written\n{\n"
		"%1:i64 = const 0 %2:i64 = const 1 %3:i64 = const 8\n"
		"%4 = buffer 0 %5:u32 = view %4, %3, %2 %6 = buffer 1 %7:bf16 = view %6, %3, %2\n"
		"%8 = buffer 2 %9:u64 = view %8, %3, %2\n"
		"%10:u32x4 = load %5, %1 along 0 %11:bf16x8 = bitcast %10 %12:u64x2 = bitcast %11\n"
		"%13 = store %7, %11, %1 along 0 %14 = store %9, %12, %1 along 0\n}\n";
	uint32_t x[4] = {0x00020001, 0x00040003, 0x00060005, 0x80000007};
	uint16_t y[8] = {0};
	uint64_t z[2] = {0};
	TirMemory buffer[] = {{x, sizeof x}, {y, sizeof y}, {z, sizeof z}};
	TirRun r = {.buffer = buffer, .task_hi = 1};
	TirKernel *k = fixture_read(f, text);
	const char *error = "";
	fixture_round_trip(f, k);
	if (!tir_interpret(k, &f->arena, &r, &error))
		fail_msg("%s", error);
	assert_memory_equal(y, x, sizeof x);
	assert_memory_equal(z, x, sizeof x);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(refusals), TEST(unreadable), TEST(sums), TEST(roundings), TEST(outside), TEST(regrouped),
	};
	return cmocka_run_group_tests_name("tir_dot", tests, NULL, NULL);
}
