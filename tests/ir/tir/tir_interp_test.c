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

/* Fibonacci by swapping carried values: each is read before either is written. */
static void
carried_values_swap(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	int64_t y[3] = {0};
	TirMemory buffer[] = {{y, sizeof y}};
	TirRun run = {.task_hi = 10};
	RUNS(f,
	     "kernel k buffer 0 y : i64 written {\n"
	     "%1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0 %5:i64 = const 3\n"
	     "%6 = buffer 0 %7:i64 = view %6, %5, %3 %8:i64 = const 2\n"
	     "%9 = for %1, %2, %3, %4, %3, %4 {\n"
	     "%10:i64 = blockarg 0 %11:i64 = blockarg 1 %12:i64 = blockarg 2 %13:i64 = blockarg 3\n"
	     "%14:i64 = + %11, %12 %15 = yield %12, %14, %10 }\n"
	     "%16:i64 = result 1 %9 %17:i64 = result 0 %9 %18:i64 = result 2 %9\n"
	     "%19 = store %7, %17, %4 %20 = store %7, %16, %3 %21 = store %7, %18, %8 }",
	     buffer, NULL, &run);
	assert_int_equal(y[0], 55);
	assert_int_equal(y[1], 89);
	assert_int_equal(y[2], 9);
	run.task_hi = -5; /* no iteration: the initial values */
	assert_true(run_text(f,
	                     "kernel k buffer 0 y : i64 written {\n"
	                     "%1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 7 %4 = buffer 0 %5:i64 = view %4\n"
	                     "%6 = for %1, %2, %3, %3 { %7:i64 = blockarg 0 %8:i64 = blockarg 1 %9 = yield %7 }\n"
	                     "%10:i64 = result 0 %6 %11 = store %5, %10 }",
	                     buffer, NULL, &run, &(const char *){NULL}));
	assert_int_equal(y[0], 7);
}

/* Nested branches in a loop, both arms, with results of several types and vectors. */
static void
branches(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	float y[6][2];
	TirMemory buffer[] = {{y, sizeof y}};
	TirRun run = {.task_hi = 6};
	RUNS(f,
	     "kernel k buffer 0 y : f32 written {\n"
	     "%1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4:i64 = const 0 %5:i64 = const 2\n"
	     "%6 = buffer 0 %7:f32 = view %6, %2, %5, %5, %3 %8:f32x2 = const 10 %9:f32 = const -1\n"
	     "%10:i64x2 = iota %11:f32x2 = cast %10\n"
	     "%12 = for %1, %2, %3 { %13:i64 = blockarg 0 %14:i64 = mod %13, %5 %15:bool = == %14, %4\n"
	     "%16 = if %15 {\n"
	     "  %17:i64 = const 3 %18:bool = < %13, %17\n"
	     "  %19 = if %18 { %20 = yield %11 } else { %21:f32x2 = + %11, %8 %22 = yield %21 }\n"
	     "  %23:f32x2 = result 0 %19 %24 = yield %9, %23\n"
	     "} else { %25:f32 = cast %13 %26 = yield %25, %8 }\n"
	     "%27:f32 = result 0 %16 %28:f32x2 = result 1 %16 %29:f32x2 = splat %27 %30:f32x2 = * %28, %29\n"
	     "%31 = store %7, %30, %13, %4 along 1 %32 = yield }}",
	     buffer, NULL, &run);
	const float want[6][2] = {{-0.0f, -1}, {10, 10}, {-0.0f, -1}, {30, 30}, {-10, -11}, {50, 50}};
	assert_memory_equal(y, want, sizeof y);
}

/* Carried vectors change places; a lane masked off is 0 even where it held something before. */
static void
carried_vectors(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	int32_t x[3] = {7, 8, 9}, y[9];
	TirMemory buffer[] = {{x, sizeof x}, {y, sizeof y}};
	TirRun run = {.task_hi = 3};
	RUNS(f,
	     "kernel k buffer 0 x : i32 buffer 1 y : i32 written {\n"
	     "%1:i64 = task_lo %2:i64 = task_hi %3:i64 = const 1 %4 = buffer 0 %5:i32 = view %4, %2, %3\n"
	     "%6:i32x3 = iota %7:i32x3 = const 5 %8:i32x3 = const 0\n"
	     "%9 = for %1, %2, %3, %6, %7, %8 { %10:i64 = blockarg 0\n"
	     "  %11:i32x3 = blockarg 1 %12:i32x3 = blockarg 2 %13:i32x3 = blockarg 3 %14:i64x3 = iota %15:i64x3 = splat %10\n"
	     "  %16:boolx3 = <= %15, %14 %17:i64 = const 0 %18:i32x3 = load %5, %17, %16 masked along 0\n"
	     "  %19:i32x3 = + %13, %18 %20 = yield %12, %11, %19 }\n"
	     "%21:i32x3 = result 0 %9 %22:i32x3 = result 1 %9 %23:i32x3 = result 2 %9\n"
	     "%24 = buffer 1 %25:i32 = view %24, %2, %2, %2, %3 %26:i64 = const 0 %27:i64 = const 2\n"
	     "%28 = store %25, %21, %26, %26 along 1 %29 = store %25, %22, %3, %26 along 1\n"
	     "%30 = store %25, %23, %27, %26 along 1 }",
	     buffer, NULL, &run);
	const int32_t want[9] = {5, 5, 5, 0, 1, 2, 7, 16, 27};
	assert_memory_equal(y, want, sizeof y);
}

/* A transposed view, gathers and scatters by vector indices, masks. */
static void
vectors(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	int32_t x[2][3] = {{1, 2, 3}, {4, 5, 6}}, y[4] = {-7, -7, -7, -7};
	TirMemory buffer[] = {{x, sizeof x}, {y, sizeof y}};
	TirRun run = {0};
	RUNS(f,
	     "kernel k buffer 0 x : i32 buffer 1 y : i32 written {\n"
	     "%1:i64 = const 1 %2:i64 = const 2 %3:i64 = const 3 %4:i64 = const 4\n"
	     "%5 = buffer 0 %6:i32 = view %5, %3, %2, %1, %3 %7 = buffer 1 %8:i32 = view %7, %4, %1\n"
	     "%9:i64x4 = iota %10:i64x4 = splat %3 %11:i64x4 = - %10, %9 %12:boolx4 = < %11, %10\n"
	     "%13:i32x4 = load %6, %11, %1, %12 masked\n" /* lanes 3 2 1 0: none, 6, 5, 4 */
	     "%14:i64x4 = splat %2 %15:boolx4 = != %9, %14\n"
	     "%16 = store %8, %13, %11, %15 masked }", /* y[3] = 0, y[2] = 6, y[0] = 4 */
	     buffer, NULL, &run);
	const int32_t want[4] = {4, -7, 6, 0};
	assert_memory_equal(y, want, sizeof y);
}

/* 4-bit elements keep their neighbour; stores of several lanes to one element: the last wins. */
static void
nibbles(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	unsigned char y[3] = {0xab, 0xcd, 0xef};
	TirMemory buffer[] = {{y, 2}};
	TirRun run = {0};
	static const char text[] =
		"kernel k buffer 0 y : i4 written scalar 0 at : i64 {\n"
		"%1:i64 = const 1 %2:i64 = const 5 %3 = buffer 0 %4:i4 = view %3, %2, %1\n"
		"%5:i64 = scalar 0 %6:i4 = load %4, %5 %7:i32 = cast %6 %8:i32 = neg %7 %9:i4 = cast %8\n"
		"%10 = store %4, %9, %5\n"
		"%11:i64x4 = const 3 %12:i64x4 = iota %13:i4x4 = cast %12 %14 = store %4, %13, %11 }";
	int64_t at = 1;
	const void *scalar[] = {&at};
	RUNS(f, text, buffer, scalar, &run); /* -6 at 1 becomes 6; 3 at 3 */
	assert_int_equal(y[0], 0x6b);
	assert_int_equal(y[1], 0x3d);
	assert_int_equal(y[2], 0xef);
	at = 4; /* inside the view, outside the buffer */
	STOPS(f, text, buffer, scalar, &run, "kernel k: %6 load: lane 0 lies outside the 2 bytes of buffer y");
}

/* The first nonzero half of each word is kept, lanes in order, and both are reset by the next run. */
static void
faults(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirRun run = {.fault = 99, .cut = 99};
	RUNS(f,
	     "kernel k {\n"
	     "%1:u32 = const 0 %2:u32 = const 196608 %3:u32 = const 5 %4:u32 = const 458761\n"
	     "%5 = fault %1 %6 = fault %2 %7 = fault %3 %8 = fault %4 }",
	     NULL, NULL, &run);
	assert_int_equal(run.fault, 5);
	assert_int_equal(run.cut, 3);
	RUNS(f,
	     "kernel k {\n"
	     "%1:u32x4 = iota %2:u32x4 = const 17 %3:u32x4 = shl %1, %2 %4:u32x4 = - %2, %1\n"
	     "%5:u32x4 = bor %3, %4 %6 = fault %5 }",
	     NULL, NULL, &run);
	assert_int_equal(run.fault, 17);
	assert_int_equal(run.cut, 2);
}

/* Casts, bitcasts, splats and lanes, on a few values; tir_slot_test.c has the rest. */
static void
conversions(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	uint32_t y[6];
	TirMemory buffer[] = {{y, sizeof y}};
	uint8_t flag = 200;
	double big = 1e10;
	const void *scalar[] = {&flag, &big};
	TirRun run = {0};
	RUNS(f,
	     "kernel k buffer 0 y : u32 written scalar 0 p : bool scalar 1 b : f64 {\n"
	     "%1:i64 = const 6 %2:i64 = const 1 %3 = buffer 0 %4:u32 = view %3, %1, %2\n"
	     "%5:bool = scalar 0 %6:u32 = cast %5 %7:f64 = scalar 1 %8:i32 = cast %7 %9:u32 = bitcast %8\n"
	     "%10:f32 = const -1 %11:u32 = bitcast %10 %12:f16 = cast %10 %13:u16 = bitcast %12 %14:u32 = cast %13\n"
	     "%15:i16 = bitcast %12 %16:u32 = cast %15\n"
	     "%17:u32x4 = iota %18:u32 = lane 3 %17\n"
	     "%19:i64 = const 0 %20 = store %4, %6, %19 %21 = store %4, %9, %2 %22:i64 = const 2 %23:i64 = const 3\n"
	     "%24:i64 = const 4 %25:i64 = const 5 %26 = store %4, %11, %22 %27 = store %4, %14, %23\n"
	     "%28 = store %4, %16, %24 %29 = store %4, %18, %25 }",
	     buffer, scalar, &run);
	const uint32_t want[6] = {1, 0x7fffffff, 0xbf800000, 0xbc00, 0xffffbc00, 3};
	assert_memory_equal(y, want, sizeof y);
}

/* What the rules leave to the run: steps, overflowing indices, addresses beyond 64 bits. */
static void
bad_runs(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirRun run = {.task_lo = 1, .task_hi = 0};
	static const char step[] = "kernel k { %1:i64 = task_lo %2:i64 = task_hi\n"
				   "%3 = for %2, %1, %2 { %4:i64 = blockarg 0 %5 = yield } }";
	STOPS(f, step, NULL, NULL, &run, "kernel k: %3 for: the step is not positive");
	static const char overflow[] = "kernel k { %1:i64 = task_lo %2:i64 = task_hi\n"
				       "%3 = for %1, %2, %1 { %4:i64 = blockarg 0 %5 = yield } }";
	run.task_lo = INT64_MAX / 2;
	run.task_hi = INT64_MAX;
	STOPS(f, overflow, NULL, NULL, &run, "kernel k: %3 for: the index overflows");
	run.task_lo = 1;
	run.max_steps = 1000;
	STOPS(f, overflow, NULL, NULL, &run, "kernel k: %3 for: runs too long");
	static const char address[] = "kernel k buffer 0 x : u8 { %1:i64 = task_lo %2 = buffer 0\n"
				      "%3:u8 = view %2, %1, %1 %4:i64 = const 1 %5:i64 = - %1, %4 %6:u8 = load %3, %5 }";
	unsigned char x = 0;
	TirMemory buffer[] = {{&x, 1}};
	run.task_lo = INT64_MAX;
	STOPS(f, address, buffer, NULL, &run, "kernel k: %6 load: lane 0 lies outside the 1 bytes of buffer x");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(loops),   TEST(outside), TEST(carried_values_swap), TEST(branches), TEST(vectors),
		TEST(nibbles), TEST(faults),  TEST(conversions),         TEST(bad_runs),
		TEST(carried_vectors),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
