/* random_passes_test.c: random kernels give the same before and after each exact pass over the tile IR.
 * Usage: random_passes_test [count [first seed]] */
#include <stdlib.h>

#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"
#include "tir_random.h"

static uint64_t count = 400, first = 1;

static TirMemory *
interpret(Fixture *f, const RandomCase *c, const TirKernel *k, TirRun *run)
{
	const char *error = "";
	TirMemory *memory = random_copy_buffers(&f->arena, c);
	*run = (TirRun){.buffer = memory, .scalar = c->scalar, .task_lo = c->task_lo, .task_hi = c->task_hi,
	                .max_steps = 100000000};
	if (!tir_interpret(k, &f->arena, run, &error))
		fail_msg("%s\n%s", error, fixture_print(f, k));
	return memory;
}

static TirKernel *
same_after(Fixture *f, const RandomCase *c, const char *pass, TirKernel *run_pass(const TirKernel *, Arena *), TirKernel *k)
{
	const char *where = "";
	TirRun before, after;
	TirKernel *to = run_pass(k, &f->arena);
	fixture_verify(f, to);
	TirMemory *x = interpret(f, c, k, &before), *y = interpret(f, c, to, &after);
	if (!random_same(&f->arena, c, x, y, &where))
		fail_msg("%s: %s\n%s\n%s", pass, where, fixture_print(f, k), fixture_print(f, to));
	assert_int_equal(before.fault, after.fault);
	assert_int_equal(before.cut, after.cut);
	return to;
}

static void
check_seed(Fixture *f, uint64_t seed, uint64_t *smaller)
{
	if (setjmp(f->unwind.env))
		fail_msg("seed %llu: %s", (unsigned long long)seed, f->unwind.text);
	RandomCase c = tir_random(&f->arena, f->names, seed, (RandomOptions){.math = seed % 4 == 0, .scale = true, .ex2 = true});
	same_after(f, &c, "cleanup", tile_cleanup, c.kernel);
	TirKernel *k = tile_expand_math(c.kernel, &f->arena);
	k = same_after(f, &c, "legalize", tile_legalize, k);
	TirKernel *to = same_after(f, &c, "cleanup", tile_cleanup, k);
	*smaller += to->inst.n < k->inst.n;
	assert_true(to->inst.n <= k->inst.n);
	assert_ptr_equal(tile_legalize(to, &f->arena), to);
	assert_ptr_equal(tile_expand_math(to, &f->arena), to);
}

static void
random_passes(void **state)
{
	(void)state;
	uint64_t smaller = 0;
	for (uint64_t i = 0; i < count; i++) {
		void *at = NULL;
		fixture_setup(&at);
		check_seed(at, first + i, &smaller);
		fixture_teardown(&at);
	}
	assert_true(smaller > count / 2);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(random_passes)};
	if (argc > 1)
		count = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
