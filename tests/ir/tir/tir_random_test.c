/* tir_random_test.c: random kernels verify, run, read back and copy to the same; every operation of
 * the tile IR occurs among them. Usage: tir_random_test [count [first seed]] */
#include <stdio.h>
#include <stdlib.h>

#include "tir_fixture.h"
#include "tir_random.h"

static uint64_t count = 500, first = 1;
static unsigned long occurs[OP_COUNT];

static void
count_ops(const TirKernel *k)
{
	for (ValId v = 1; v < k->inst.n; v++)
		occurs[tir_inst(k, v)->op]++;
}

static TirMemory *
interpret(Fixture *f, const RandomCase *c, const TirKernel *k, TirRun *run)
{
	TirMemory *memory = random_copy_buffers(&f->arena, c);
	const char *error = "";
	*run = (TirRun){.buffer = memory, .scalar = c->scalar, .task_lo = c->task_lo, .task_hi = c->task_hi,
	                .max_steps = 10000000};
	if (!tir_interpret(k, &f->arena, run, &error))
		fail_msg("%s\n%s", error, fixture_print(f, k));
	return memory;
}

static bool
changed(const RandomCase *c, const TirMemory *m)
{
	for (uint32_t i = 0; i < c->kernel->buffer.n; i++)
		if (memcmp(m[i].data, c->buffer[i].data, (size_t)m[i].bytes) != 0)
			return true;
	return false;
}

/* The interpreter's result; that of the kernel as read back must be the same. */
static bool
check_seed(Fixture *f, uint64_t seed)
{
	GUARD(f);
	RandomCase c = tir_random(&f->arena, f->names, seed, (RandomOptions){.math = seed % 2, .scale = true, .ex2 = true});
	fixture_round_trip(f, c.kernel);
	count_ops(c.kernel);
	TirRun run, again;
	const char *where = "";
	TirMemory *x = interpret(f, &c, c.kernel, &run);
	TirMemory *y = interpret(f, &c, fixture_read(f, fixture_print(f, c.kernel)), &again);
	if (!random_same(&f->arena, &c, x, y, &where) || run.fault != again.fault || run.cut != again.cut)
		fail_msg("%s\n%s", where, fixture_print(f, c.kernel));
	return changed(&c, x);
}

static void
random_kernels(void **state)
{
	uint64_t seen = 0;
	print_message("seeds %llu to %llu\n", (unsigned long long)first, (unsigned long long)(first + count - 1));
	for (uint64_t i = 0; i < count; i++) {
		fixture_teardown(state);
		fixture_setup(state);
		seen += check_seed(*state, first + i);
	}
	assert_true(seen * 10 > count * 9);
	for (int op = 1; op < OP_COUNT; op++) /* DOT is not made on every processor: tir_dot_test, dot_test; threads: spread_test; roles: tir_roles_test; warps: tir_warp_test, tir_async_test */
		if (op != OP_DOT && (op < OP_THREAD || op > OP_BARRIER) && (op < OP_TASK_STEP || op > OP_ROLES) && (op_info[op].level & LEVEL_L) && count >= 500 && !occurs[op])
			fail_msg("no random kernel has %s", op_info[op].text);
}

/* The same seed gives the same kernel and inputs. */
static void
repeatable(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (uint64_t seed = 1; seed < 20; seed++) {
		RandomCase a = tir_random(&f->arena, f->names, seed, (RandomOptions){0});
		RandomCase b = tir_random(&f->arena, f->names, seed, (RandomOptions){0});
		const char *where = "";
		assert_string_equal(fixture_print(f, a.kernel), fixture_print(f, b.kernel));
		assert_true(random_same(&f->arena, &a, a.buffer, b.buffer, &where));
	}
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		TEST(random_kernels),
		TEST(repeatable),
	};
	if (argc > 1)
		count = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
