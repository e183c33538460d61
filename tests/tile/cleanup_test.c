/* cleanup_test.c: kernels before and after tile_cleanup, as text. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

static void
becomes(Fixture *f, const char *before, const char *after)
{
	TirKernel *k = fixture_read(f, before);
	fixture_verify(f, k);
	TirKernel *to = tile_cleanup(k, &f->arena);
	fixture_round_trip(f, to);
	assert_string_equal(fixture_print(f, to), after);
	assert_ptr_equal(tile_cleanup(to, &f->arena), to); /* nothing is left to do */
}

#define HEAD "kernel k\nbuffer 0 x : f32\nbuffer 1 y : f32 written\nscalar 0 n : i64\n{\n"

/* The square of n is computed once, before the loop; the product with i stays. */
static void
hoists(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n"
	        "  %4 = for %2, %1, %3 {\n"
	        "    %5:i64 = blockarg 0\n    %6:i64 = scalar 0\n    %7:i64 = * %6, %6\n    %8:i64 = * %5, %7\n"
	        "    %9 = buffer 1\n    %10:f32 = view %9, %7, %3\n    %11:f32 = cast %8\n"
	        "    %12 = store %10, %11, %5\n    %13 = yield\n  }\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n"
	        "  %4:i64 = * %1, %1\n  %5 = buffer 1\n  %6:f32 = view %5, %4, %3\n"
	        "  %7 = for %2, %1, %3 {\n"
	        "    %8:i64 = blockarg 0\n    %9:i64 = * %8, %4\n    %10:f32 = cast %9\n"
	        "    %11 = store %6, %10, %8\n    %12 = yield\n  }\n}\n");
}

/* Out of two loops at once. */
static void
hoists_twice(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 1\n"
	        "  %5:f32 = view %4, %1, %3\n"
	        "  %6 = for %2, %1, %3 {\n    %7:i64 = blockarg 0\n"
	        "    %8 = for %2, %7, %3 {\n      %9:i64 = blockarg 0\n      %10:f32 = cast %1\n"
	        "      %11:f32 = cast %7\n      %12:f32 = * %10, %11\n      %13 = store %5, %12, %9\n"
	        "      %14 = yield\n    }\n    %15 = yield\n  }\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 1\n"
	        "  %5:f32 = view %4, %1, %3\n  %6:f32 = cast %1\n"
	        "  %7 = for %2, %1, %3 {\n    %8:i64 = blockarg 0\n"
	        "    %9:f32 = cast %8\n    %10:f32 = * %6, %9\n"
	        "    %11 = for %2, %8, %3 {\n      %12:i64 = blockarg 0\n"
	        "      %13 = store %5, %10, %12\n"
	        "      %14 = yield\n    }\n    %15 = yield\n  }\n}\n");
}

/* What is known of a task need not be said again. */
static void
faults_once(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD "  %1:i64 = scalar 0\n  %2:u32 = cast %1\n  %3 = fault %2\n  %4 = fault %2\n}\n",
	        HEAD "  %1:i64 = scalar 0\n  %2:u32 = cast %1\n  %3 = fault %2\n}\n");
}

static void
computes_constants(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = const 3\n  %2:i64 = const 5\n  %3:i64 = * %1, %2\n  %4 = buffer 1\n"
	        "  %5:f32 = view %4, %3, %1\n  %6:f32 = cast %2\n  %7:f32x4 = splat %6\n  %8:f32x4 = / %7, %7\n"
	        "  %9:f32 = lane 2 %8\n  %10:u32 = bitcast %9\n  %11:bool = < %1, %2\n"
	        "  %12:i64 = select %11, %1, %2\n  %13:f32 = cast %10\n  %14 = store %5, %13, %12\n}\n",
	        HEAD
	        "  %1:i64 = const 3\n  %2:i64 = const 15\n  %3 = buffer 1\n  %4:f32 = view %3, %2, %1\n"
	        "  %5:f32 = const 1065353216\n  %6 = store %4, %5, %1\n}\n");
}

/* Equal values: in the same region and below, but not from one branch to the other; loads never. */
static void
shares(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3 = buffer 0\n  %4:f32 = view %3, %1, %2\n"
	        "  %5 = buffer 1\n  %6:f32 = view %5, %1, %2\n  %7:i64 = - %1, %2\n  %8:bool = < %7, %1\n"
	        "  %9 = if %8 {\n    %10:i64 = - %1, %2\n    %11:f32 = load %4, %10\n    %12:f32 = sqrt %11\n"
	        "    %13:f32 = load %4, %10\n    %14:f32 = + %12, %13\n    %15:f32 = cast %1\n"
	        "    %16:f32 = + %14, %15\n    %17 = yield %16\n"
	        "  } else {\n    %18:f32 = cast %1\n    %19 = yield %18\n  }\n"
	        "  %20:f32 = result 0 %9\n  %21 = store %6, %20, %7\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3 = buffer 0\n  %4:f32 = view %3, %1, %2\n"
	        "  %5 = buffer 1\n  %6:f32 = view %5, %1, %2\n  %7:i64 = - %1, %2\n  %8:bool = < %7, %1\n"
	        "  %9 = if %8 {\n    %10:f32 = load %4, %7\n    %11:f32 = sqrt %10\n"
	        "    %12:f32 = load %4, %7\n    %13:f32 = + %11, %12\n    %14:f32 = cast %1\n"
	        "    %15:f32 = + %13, %14\n    %16 = yield %15\n"
	        "  } else {\n    %17:f32 = cast %1\n    %18 = yield %17\n  }\n"
	        "  %19:f32 = result 0 %9\n  %20 = store %6, %19, %7\n}\n");
}

/* What nothing needs goes, operands of it too; -0 is not 0, and a NaN has no bits to compute with. */
static void
drops(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3 = buffer 1\n  %4:f32 = view %3, %1, %2\n"
	        "  %5:f32 = cast %1\n  %6:f32 = * %5, %5\n  %7:f32 = const nan\n  %8:u32 = bitcast %7\n"
	        "  %9:f32 = const 0\n  %10:f32 = const -0\n  %11:f32 = cast %8\n  %12:f32 = fma %9, %10, %11\n"
	        "  %13 = store %4, %9, %2\n  %14 = store %4, %10, %2\n  %15 = store %4, %11, %2\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3 = buffer 1\n  %4:f32 = view %3, %1, %2\n"
	        "  %5:f32 = const nan\n  %6:u32 = bitcast %5\n"
	        "  %7:f32 = const 0\n  %8:f32 = const -0\n  %9:f32 = cast %6\n"
	        "  %10 = store %4, %7, %2\n  %11 = store %4, %8, %2\n  %12 = store %4, %9, %2\n}\n");
}

/* By 4, of multiples of 8 and constants: 8n + 3 and 8n + 1 have the quotient of 8n, and 8n - 1 that of 8n - 4;
 * 6n is no multiple. */
static void
splits_multiples(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3:i64 = const 3\n  %4:i64 = const 4\n  %5:i64 = const 8\n"
	        "  %6:i64 = const 6\n  %7:i64 = const -1\n  %8 = buffer 1\n  %9:f32 = view %8, %1, %2\n"
	        "  %10:i64 = * %1, %5\n  %11:i64 = + %10, %3\n  %12:i64 = div %11, %4\n  %13:i64 = + %2, %10\n"
	        "  %14:i64 = div %13, %4\n  %15:i64 = mod %11, %4\n  %16:i64 = + %10, %7\n  %17:i64 = div %16, %4\n"
	        "  %18:i64 = * %1, %6\n  %19:i64 = div %18, %4\n  %20:i64 = + %12, %14\n  %21:i64 = + %17, %19\n"
	        "  %22:i64 = + %20, %21\n  %23:f32 = cast %22\n  %24 = store %9, %23, %15\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3:i64 = const 3\n  %4:i64 = const 4\n  %5:i64 = const 8\n"
	        "  %6:i64 = const 6\n  %7 = buffer 1\n  %8:f32 = view %7, %1, %2\n"
	        "  %9:i64 = * %1, %5\n  %10:i64 = div %9, %4\n  %11:i64 = const -4\n  %12:i64 = + %9, %11\n"
	        "  %13:i64 = div %12, %4\n  %14:i64 = * %1, %6\n  %15:i64 = div %14, %4\n  %16:i64 = + %10, %10\n"
	        "  %17:i64 = + %13, %15\n  %18:i64 = + %16, %17\n  %19:f32 = cast %18\n  %20 = store %8, %19, %3\n}\n");
}

/* By 8, of a loop's index from 16 on by 4, less 4: 1 and 3 beyond have its quotient, and 6 beyond that of 4 beyond; one from 1 on is
 * no multiple, and remainders stay. */
static void
splits_steps(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3:i64 = const 16\n  %4:i64 = const 4\n  %5:i64 = const 8\n"
	        "  %6:i64 = const 3\n  %7:i64 = const 6\n  %8 = buffer 1\n  %9:f32 = view %8, %1, %2\n"
	        "  %10 = for %3, %1, %4 {\n    %11:i64 = blockarg 0\n    %12:i64 = - %11, %4\n    %13:i64 = + %12, %2\n    %14:i64 = + %12, %6\n"
	        "    %15:i64 = + %12, %7\n    %16:i64 = div %13, %5\n    %17:i64 = div %14, %5\n    %18:i64 = div %15, %5\n    %19:i64 = mod %13, %5\n"
	        "    %20:i64 = + %16, %17\n    %21:i64 = + %18, %19\n    %22:i64 = + %20, %21\n    %23:f32 = cast %22\n    %24 = store %9, %23, %11\n"
	        "    %25 = yield\n  }\n"
	        "  %26 = for %2, %1, %4 {\n    %27:i64 = blockarg 0\n    %28:i64 = + %27, %2\n    %29:i64 = div %28, %5\n    %30:f32 = cast %29\n"
	        "    %31 = store %9, %30, %27\n    %32 = yield\n  }\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3:i64 = const 16\n  %4:i64 = const 4\n  %5:i64 = const 8\n"
	        "  %6 = buffer 1\n  %7:f32 = view %6, %1, %2\n"
	        "  %8 = for %3, %1, %4 {\n    %9:i64 = blockarg 0\n    %10:i64 = - %9, %4\n    %11:i64 = + %10, %2\n    %12:i64 = div %10, %5\n"
	        "    %13:i64 = + %10, %4\n    %14:i64 = div %13, %5\n    %15:i64 = mod %11, %5\n    %16:i64 = + %12, %12\n    %17:i64 = + %14, %15\n"
	        "    %18:i64 = + %16, %17\n    %19:f32 = cast %18\n    %20 = store %7, %19, %9\n    %21 = yield\n  }\n"
	        "  %22 = for %2, %1, %4 {\n    %23:i64 = blockarg 0\n    %24:i64 = + %23, %2\n    %25:i64 = div %24, %5\n    %26:f32 = cast %25\n"
	        "    %27 = store %7, %26, %23\n    %28 = yield\n  }\n}\n");
}

/* Of a thread of a block: x cut off at 4 above and at -4 below is MIN and MAX. Not what a NaN would become the limit of, nor at zero. */
static void
cuts_off(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	const char *head = "kernel k threads 128 by 1\nbuffer 0 x : f32\nbuffer 1 y : f32 written\nscalar 0 n : i64\n{\n"
	                   "  %1:i64 = scalar 0\n  %2:i64 = const 1\n  %3 = buffer 0\n  %4:f32 = view %3, %1, %2\n  %5 = buffer 1\n"
	                   "  %6:f32 = view %5, %1, %2\n  %7:f32 = const 4\n  %8:f32 = const -4\n  %9:f32 = const 0\n  %10:f32 = load %4, %1\n";
	becomes(f,
	        arena_text(&f->arena, "%s"
	        "  %%11:bool = < %%7, %%10\n  %%12:f32 = select %%11, %%7, %%10\n  %%13:bool = < %%12, %%8\n  %%14:f32 = select %%13, %%8, %%12\n"
	        "  %%15 = store %%6, %%14, %%1\n  %%16:bool = < %%10, %%7\n  %%17:f32 = select %%16, %%10, %%7\n  %%18 = store %%6, %%17, %%1\n"
	        "  %%19:bool = < %%10, %%9\n  %%20:f32 = select %%19, %%9, %%10\n  %%21 = store %%6, %%20, %%1\n}\n", head),
	        arena_text(&f->arena, "%s"
	        "  %%11:f32 = min %%7, %%10\n  %%12:f32 = max %%8, %%11\n"
	        "  %%13 = store %%6, %%12, %%1\n  %%14:bool = < %%10, %%7\n  %%15:f32 = select %%14, %%10, %%7\n  %%16 = store %%6, %%15, %%1\n"
	        "  %%17:bool = < %%10, %%9\n  %%18:f32 = select %%17, %%9, %%10\n  %%19 = store %%6, %%18, %%1\n}\n", head));
}

/* Of four carried values the second is the first, as is what a branch makes of either; the third never changes, the fourth
 * only begins like the first. */
static void
carries_once(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	becomes(f,
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 1\n  %5:f32 = view %4, %1, %3\n"
	        "  %6 = for %2, %1, %3, %2, %2, %1, %2 {\n    %7:i64 = blockarg 0\n    %8:i64 = blockarg 1\n"
	        "    %9:i64 = blockarg 2\n    %10:i64 = blockarg 3\n    %11:i64 = blockarg 4\n    %12:bool = < %8, %7\n"
	        "    %13 = if %12 {\n      %14:i64 = + %8, %10\n      %15:i64 = + %9, %10\n      %16 = yield %14, %15\n"
	        "    } else {\n      %17 = yield %7, %7\n    }\n    %18:i64 = result 0 %13\n    %19:i64 = result 1 %13\n"
	        "    %20:i64 = + %11, %3\n    %21 = yield %18, %19, %10, %20\n  }\n"
	        "  %22:i64 = result 0 %6\n  %23:i64 = result 1 %6\n  %24:i64 = result 2 %6\n  %25:i64 = result 3 %6\n"
	        "  %26:i64 = - %22, %23\n  %27:i64 = + %26, %24\n  %28:i64 = * %27, %25\n"
	        "  %29:f32 = cast %28\n  %30 = store %5, %29, %2\n}\n",
	        HEAD
	        "  %1:i64 = scalar 0\n  %2:i64 = const 0\n"
	        "  %3:i64 = const 1\n  %4 = buffer 1\n"
	        "  %5:f32 = view %4, %1, %3\n  %6 = for %2, %1, %3, %2, %2, %1, %2 {\n"
	        "    %7:i64 = blockarg 0\n    %8:i64 = blockarg 1\n"
	        "    %9:i64 = blockarg 2\n    %10:i64 = blockarg 3\n"
	        "    %11:i64 = blockarg 4\n    %12:bool = < %8, %7\n"
	        "    %13 = if %12 {\n      %14:i64 = + %8, %1\n"
	        "      %15 = yield %14, %14\n    } else {\n"
	        "      %16 = yield %7, %7\n    }\n"
	        "    %17:i64 = result 0 %13\n    %18:i64 = result 1 %13\n"
	        "    %19:i64 = + %11, %3\n    %20 = yield %17, %17, %1, %19\n"
	        "  }\n  %21:i64 = result 0 %6\n"
	        "  %22:i64 = result 1 %6\n  %23:i64 = result 2 %6\n"
	        "  %24:i64 = result 3 %6\n  %25:i64 = - %21, %21\n"
	        "  %26:i64 = + %25, %1\n  %27:i64 = * %26, %24\n"
	        "  %28:f32 = cast %27\n  %29 = store %5, %28, %2\n"
	        "}\n");
}

/* A load of what other tasks post waits for them, though nobody wants the word. */
static void
waits(void **state)
{
	static const char kernel[] =
		"kernel k threads 32 by 1\nbuffer 0 w : u64 written posted\n{\n"
		"  %1:i64 = const 1\n  %2 = buffer 0\n  %3:u64 = view %2, %1, %1\n  %4:i64 = const 0\n  %5:u64 = load %3, %4\n}\n";
	Fixture *f = *state;
	GUARD(f);
	becomes(f, kernel, kernel);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(hoists), TEST(hoists_twice), TEST(computes_constants), TEST(faults_once), TEST(shares), TEST(drops),
		TEST(splits_multiples), TEST(splits_steps), TEST(cuts_off), TEST(carries_once), TEST(waits),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
