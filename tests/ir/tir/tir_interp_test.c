/* tir_interp_test.c: kernels with known results; accesses outside views and buffers are found. */
#include "tir_fixture.h"

/* Runs a kernel of the given text; each buffer as large as the array behind it. */
static bool
run_text(Fixture *f, const char *text, TirMemory *buffer, const void *const *scalar, TirRun *run,
         const char **error)
{
	TirKernel *k = fixture_read(f, text);
	fixture_round_trip(f, k);
	run->buffer = buffer;
	run->scalar = scalar;
	return tir_interpret(k, &f->arena, run, error);
}

#define RUNS(f, text, buffer, scalar, run)                                   \
	do {                                                                 \
		const char *error_ = "";                                     \
		if (!run_text(f, text, buffer, scalar, run, &error_))        \
			fail_msg("%s", error_);                              \
	} while (0)

#define STOPS(f, text, buffer, scalar, run, expected)                        \
	do {                                                                 \
		const char *error_ = "";                                     \
		assert_false(run_text(f, text, buffer, scalar, run, &error_)); \
		assert_string_equal(error_, expected);                       \
	} while (0)

/* y[i] = the sum of x[0..i], for the tasks i. */
static const char prefix_sums[] =
	"kernel k\n"
	"buffer 0 x : f16\n"
	"buffer 1 y : f32 written\n"
	"scalar 0 n : i64\n"
	"{\n"
	"%1:i64 = scalar 0  %2:i64 = const 1  %3:i64 = const 0  %4:f32 = const 0\n"
	"%5 = buffer 0  %6:f16 = view %5, %1, %2\n"
	"%7 = buffer 1  %8:f32 = view %7, %1, %2\n"
	"%9:i64 = task_lo  %10:i64 = task_hi\n"
	"%11 = for %9, %10, %2 {\n"
	"  %12:i64 = blockarg 0\n"
	"  %13:i64 = + %12, %2\n"
	"  %14 = for %3, %13, %2, %4 {\n"
	"    %15:i64 = blockarg 0 %16:f32 = blockarg 1\n"
	"    %17:f16 = load %6, %15 %18:f32 = cast %17 %19:f32 = + %16, %18\n"
	"    %20 = yield %19\n"
	"  }\n"
	"  %21:f32 = result 0 %14\n"
	"  %22 = store %8, %21, %12\n"
	"  %23 = yield\n"
	"}\n"
	"}\n";

static void
loops(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	uint16_t x[4] = {0x3c00, 0x4000, 0x4200, 0xc400}; /* 1 2 3 -4 */
	float y[4] = {9, 9, 9, 9};
	int64_t n = 4;
	const void *scalar[] = {&n};
	TirMemory buffer[] = {{x, sizeof x}, {y, sizeof y}};
	TirRun run = {.task_lo = 1, .task_hi = 4};
	RUNS(f, prefix_sums, buffer, scalar, &run);
	const float want[4] = {9, 3, 6, 2};
	assert_memory_equal(y, want, sizeof y);
	run.max_steps = 20;
	STOPS(f, prefix_sums, buffer, scalar, &run, "kernel k: %14 for: runs too long");
}

static void
outside(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	uint16_t x[4] = {0};
	float y[4] = {0};
	int64_t n = 4;
	const void *scalar[] = {&n};
	TirMemory buffer[] = {{x, sizeof x}, {y, sizeof y}};
	TirRun run = {.task_lo = 3, .task_hi = 5};
	STOPS(f, prefix_sums, buffer, scalar, &run,
	      "kernel k: %17 load: index 0 of lane 0 is 4, the extent 4");
	run.task_lo = -1;
	run.task_hi = 1;
	STOPS(f, prefix_sums, buffer, scalar, &run,
	      "kernel k: %22 store: index 0 of lane 0 is -1, the extent 4");
	buffer[0].bytes = 7;
	run.task_lo = 0;
	run.task_hi = 4;
	STOPS(f, prefix_sums, buffer, scalar, &run,
	      "kernel k: %17 load: lane 0 lies outside the 7 bytes of buffer x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(loops),
		TEST(outside),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
