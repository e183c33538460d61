/* partition_test.c: divisions cost what they should: intervals are the best there are, what is found by gain
 * need not be, a sweep finds what lies apart in the line, and nothing is in a region that there can't be. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <math.h>

#include "ir/host.h"
#include "passes/fuse/partition.h"

enum { MOST = 100 };

static Arena arena;

/* What a case's regions cost: each item 10, less what two neighbours save; of at most `most` items. */
typedef struct {
	double saves[MOST]; /* by item: when it is in a region with the one before it */
	uint32_t most;
	uint64_t seed;      /* not 0: chance says what intervals cost */
	uint32_t asked;
} Prices;

static double
price(void *user, const uint32_t *item, uint32_t n, double enough)
{
	Prices *p = user;
	double all = 0;
	(void)enough;
	p->asked++;
	if (n > p->most)
		return INFINITY;
	if (p->seed && n > 1)
		return (double)((p->seed * (item[0] * 31u + item[n - 1] * 17u + n)) >> 7 & 31) + 3;
	for (uint32_t k = 0; k < n; k++)
		all += 10 - (k && item[k - 1] + 1 == item[k] ? p->saves[item[k]] : 0);
	return all;
}

static PartitionItems
line(Prices *p, uint32_t n)
{
	PartitionLink *link = ARENA_ARRAY(&arena, PartitionLink, n);
	for (uint32_t k = 0; k + 1 < n; k++)
		link[k] = (PartitionLink){k, k + 1};
	return (PartitionItems){.n = n, .link = link, .nlink = n - 1, .cost = price, .user = p};
}

/* The two in the middle save most, but then those at the ends are alone. */
static void
the_greatest_gain_is_not_the_best(void **state)
{
	Prices p = {.saves = {0, 5, 6, 5}, .most = 2};
	PartitionItems items = line(&p, 4);
	uint32_t best[4], greedy[4];
	(void)state;
	partition_intervals(&items, &arena, best);
	partition_by_gain(&items, &arena, greedy);
	assert_int_equal(greedy[1], greedy[2]);
	assert_int_not_equal(greedy[0], greedy[1]);
	assert_int_equal(best[0], best[1]);
	assert_int_equal(best[2], best[3]);
	assert_int_not_equal(best[1], best[2]);
	assert_true(partition_cost(&items, &arena, best) == 30 && partition_cost(&items, &arena, greedy) == 34);
}

/* The least that the line's first n items can cost, in all ways. */
static double
least(Prices *p, uint32_t n)
{
	uint32_t item[MOST];
	double best = n ? INFINITY : 0;
	for (uint32_t start = 0; start < n; start++) {
		for (uint32_t k = start; k < n; k++)
			item[k - start] = k;
		double all = least(p, start) + price(p, item, n - start, INFINITY);
		best = all < best ? all : best;
	}
	return best;
}

static void
intervals_are_the_best(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed < 200; seed++) {
		Prices p = {.most = 5, .seed = seed * 0x9e3779b97f4a7c15u | 1};
		PartitionItems items = line(&p, 9);
		uint32_t region[9], again[9];
		partition_intervals(&items, &arena, region);
		double cost = partition_cost(&items, &arena, region);
		assert_true(cost < least(&p, 9) + 1e-6);
		partition_intervals(&items, &arena, again);
		assert_memory_equal(region, again, sizeof region);
		partition_refine(&items, &arena, region);
		assert_true(partition_cost(&items, &arena, region) <= cost);
	}
}

/* Two readers of one thing, with something that nothing may share between them. */
static double
price_apart(void *user, const uint32_t *item, uint32_t n, double enough)
{
	(void)user;
	(void)enough;
	for (uint32_t k = 0; k < n && n > 1; k++)
		if (item[k] == 1)
			return INFINITY;
	return n == 2 ? 12 : 10;
}

static void
a_sweep_finds_what_lies_apart(void **state)
{
	const PartitionLink link[] = {{0, 1}, {0, 2}};
	PartitionItems items = {.n = 3, .link = link, .nlink = 2, .cost = price_apart};
	uint32_t region[3];
	(void)state;
	partition_intervals(&items, &arena, region);
	assert_true(partition_cost(&items, &arena, region) == 30);
	partition(&items, &arena, region);
	assert_int_equal(region[0], region[2]);
	assert_int_not_equal(region[0], region[1]);
	assert_true(partition_cost(&items, &arena, region) == 22);
}

/* One thing that five read: it pays only when all of them are with it. */
static double
price_of_star(void *user, const uint32_t *item, uint32_t n, double enough)
{
	(void)user;
	(void)enough;
	return n == 6 ? 20 : n > 1 && item[0] == 0 ? 10 * n + 5 : n > 1 ? INFINITY : 10;
}

static void
all_readers_at_once(void **state)
{
	PartitionLink link[5];
	PartitionItems items = {.n = 6, .link = link, .nlink = 5, .cost = price_of_star};
	uint32_t region[6];
	(void)state;
	for (uint32_t k = 0; k < 5; k++)
		link[k] = (PartitionLink){0, k + 1};
	partition_by_gain(&items, &arena, region);
	for (uint32_t k = 1; k < 6; k++)
		assert_int_equal(region[0], region[k]);
}

/* What is not linked is in no region together; and long lines are divided in time that grows with them. */
static void
links_and_lengths(void **state)
{
	Prices p = {.most = MOST};
	PartitionItems items = line(&p, MOST);
	uint32_t region[MOST];
	(void)state;
	for (uint32_t k = 0; k < MOST; k++)
		p.saves[k] = 1 + k % 7;
	partition(&items, &arena, region);
	assert_true(p.asked < 100 * MOST);
	assert_true(partition_cost(&items, &arena, region) < 10 * MOST - 300);
	for (uint32_t k = 0, n = 0; k < MOST; k++) {
		n = k && region[k] == region[k - 1] ? n + 1 : 1;
		assert_true(n <= PARTITION_REGION);
	}
	items.n = 10;
	items.nlink = 0;
	partition(&items, &arena, region);
	for (uint32_t k = 1; k < 10; k++)
		assert_int_not_equal(region[k], region[k - 1]);
}

int
main(void)
{
	Unwind u = {0};
	arena_init(&arena, &host_default()->memory, &u);
	if (setjmp(u.env))
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_greatest_gain_is_not_the_best), cmocka_unit_test(intervals_are_the_best),
		cmocka_unit_test(a_sweep_finds_what_lies_apart), cmocka_unit_test(all_readers_at_once),
		cmocka_unit_test(links_and_lengths),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);
	arena_free(&arena);
	return failed;
}
