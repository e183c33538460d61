/* random_graph_test.c: random graphs, each compiled in one of the configurations of graph_case.c and
 * compared with the oracle. Arguments: how many, and the first seed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "random_graph.h"

static Unwind unwind;
static Arena arena;
static uint64_t seed, first = 1, count = 300;
static RandomCounts counts;

static void
build(Case *c)
{
	random_graph(c, seed, &counts);
}

static void
run_seed(CaseRun *total)
{
	CaseRun out = {0};
	Asked *asked = NULL;
	case_run_one(&arena, build, (unsigned)(seed % case_configs), &asked, &out);
	total->compared += out.compared;
	total->fault += out.fault != 0;
	total->cut += out.cut != 0;
	total->map |= out.map;
}

static void
test_random_graphs(void **state)
{
	(void)state;
	static CaseRun total;
	for (seed = first; seed < first + count; seed++) {
		arena_init(&arena, &host_default()->memory, &unwind);
		if (setjmp(unwind.env))
			fail_msg("seed %llu: %s", (unsigned long long)seed, unwind.text);
		run_seed(&total);
		arena_free(&arena);
	}
	print_message("seeds %llu..%llu: %lld elements, %u faults, %u cuts; %u pointwise, %u reductions, %u scatters, "
	              "%u recurrences, %u domains, %u gathers, %u optional reads, %u ranges, %u inouts, %u empty dims\n",
	              (unsigned long long)first, (unsigned long long)(first + count - 1), (long long)total.compared,
	              total.fault, total.cut, counts.pointwise, counts.reductions, counts.scatters,
	              counts.recurrences, counts.domains, counts.gathers, counts.optional, counts.ranges,
	              counts.inouts, counts.empty);
	assert_true(total.compared > (int64_t)count && total.fault && total.cut && total.map);
}

/* Runs after a failure too. */
static int
say_where(void **state)
{
	(void)state;
	if (seed < first + count)
		print_message("seed %llu, configuration %u\n", (unsigned long long)seed, (unsigned)(seed % case_configs));
	return 0;
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test_teardown(test_random_graphs, say_where)};
	if (argc > 1)
		count = strtoull(argv[1], NULL, 10);
	if (argc > 2)
		first = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
