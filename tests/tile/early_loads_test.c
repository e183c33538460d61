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
		cmocka_unit_test_setup_teardown(stores_stay, fixture_setup, fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
