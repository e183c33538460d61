/* early_loads_test.c: kernels before and after tile_early_loads, as text. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

#define HEAD(threads) \
	"kernel k threads " threads " by 1\nbuffer 0 x : f32\nbuffer 1 y : f32 written\nscalar 0 n : i64\n{\n" \
	"  %1:i64 = scalar 0\n  %2:i64 = const 0\n  %3:i64 = const 1\n  %4 = buffer 0\n  %5:f32 = view %4, %1, %3\n" \
	"  %6:f32 = const 0.0\n"

#define TAIL "  %17:f32 = result 0 %7\n  %18 = buffer 1\n  %19:f32 = view %18, %1, %3\n  %20 = store %19, %17, %2\n}\n"

static const char apart[] = HEAD("32")
	"  %7 = for %2, %1, %3, %6 {\n    %8:i64 = blockarg 0\n    %9:f32 = blockarg 1\n"
	"    %10:f32 = load %5, %8\n    %11:f32 = + %9, %10\n    %12:f32 = * %11, %10\n"
	"    %13:i64 = + %8, %3\n    %14:f32 = load %5, %13\n    %15:f32 = + %12, %14\n    %16 = yield %15\n  }\n" TAIL;

/* The second load comes before the sum with the first, and its address before it. */
static const char together[] = HEAD("32")
	"  %7 = for %2, %1, %3, %6 {\n    %8:i64 = blockarg 0\n    %9:f32 = blockarg 1\n"
	"    %10:f32 = load %5, %8\n    %11:i64 = + %8, %3\n    %12:f32 = load %5, %11\n"
	"    %13:f32 = + %9, %10\n    %14:f32 = * %13, %10\n    %15:f32 = + %14, %12\n    %16 = yield %15\n  }\n" TAIL;

static void
loads_come_first(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_read(f, apart);
	fixture_verify(f, k);
	TirKernel *to = tile_early_loads(k, &f->arena);
	fixture_round_trip(f, to);
	assert_string_equal(fixture_print(f, to), fixture_print(f, fixture_read(f, together)));
}

/* As many as half of a thread's registers take, where so many blocks are to fill a multiprocessor. */
static void
room_is_limited(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_read(f, apart);
	k->threads = 1024;
	k->resident = 32;
	assert_string_equal(fixture_print(f, tile_early_loads(k, &f->arena)), fixture_print(f, k));
}

/* What an iteration loads with the same mask is loaded once; with another mask, or in another iteration, it is something else. */
static void
equal_loads_are_one(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char often[] = HEAD("32")
		"  %7:i64 = thread\n  %8:bool = < %7, %1\n  %9:bool = < %2, %1\n  %10 = for %2, %1, %3, %6 {\n"
		"    %11:i64 = blockarg 0\n    %12:f32 = blockarg 1\n    %13:f32 = load %5, %7, %8 masked\n"
		"    %14:f32 = + %12, %13\n    %15:f32 = load %5, %7, %8 masked\n    %16:f32 = * %14, %15\n"
		"    %17:f32 = load %5, %7, %9 masked\n    %18:f32 = + %16, %17\n    %19 = yield %18\n  }\n"
		"  %20:f32 = load %5, %7, %8 masked\n  %21:f32 = result 0 %10\n  %22:f32 = + %20, %21\n"
		"  %23 = buffer 1\n  %24:f32 = view %23, %1, %3\n  %25 = store %24, %22, %2\n}\n";
	static const char once[] = HEAD("32")
		"  %7:i64 = thread\n  %8:bool = < %7, %1\n  %9:bool = < %2, %1\n  %10 = for %2, %1, %3, %6 {\n"
		"    %11:i64 = blockarg 0\n    %12:f32 = blockarg 1\n    %13:f32 = load %5, %7, %8 masked\n"
		"    %14:f32 = load %5, %7, %9 masked\n    %15:f32 = + %12, %13\n    %16:f32 = * %15, %13\n"
		"    %17:f32 = + %16, %14\n    %18 = yield %17\n  }\n"
		"  %19:f32 = load %5, %7, %8 masked\n  %20:f32 = result 0 %10\n  %21:f32 = + %19, %20\n"
		"  %22 = buffer 1\n  %23:f32 = view %22, %1, %3\n  %24 = store %23, %21, %2\n}\n";
	TirKernel *k = fixture_read(f, often);
	fixture_verify(f, k);
	TirKernel *to = tile_early_loads(k, &f->arena);
	fixture_round_trip(f, to);
	assert_string_equal(fixture_print(f, to), fixture_print(f, fixture_read(f, once)));
}

/* A store may change what is loaded after it. */
static void
stores_stay(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_read(f, HEAD("32")
		"  %7 = for %2, %1, %3 {\n    %8:i64 = blockarg 0\n    %9:f32 = load %5, %8\n    %10:f32 = + %9, %9\n"
		"    %11 = store %5, %10, %8\n    %12:f32 = load %5, %2\n    %13 = store %5, %12, %8\n    %14 = yield\n  }\n}\n");
	assert_ptr_equal(tile_early_loads(k, &f->arena), k);
	k = fixture_read(f, apart);
	k->form = TIR_TASKS;
	assert_ptr_equal(tile_early_loads(k, &f->arena), k);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(loads_come_first, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(room_is_limited, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(equal_loads_are_one, fixture_setup, fixture_teardown),
		cmocka_unit_test_setup_teardown(stores_stay, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
