/* arena_fixture.h: an arena and a problem for each test; an unwinding fails the test. */
#ifndef TEXO_TESTS_DRIVER_ARENA_FIXTURE_H
#define TEXO_TESTS_DRIVER_ARENA_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "driver/problem.h"

static Arena arena;
static Unwind unwind;
static Problem problem_met;

static int
arena_setup(void **state)
{
	(void)state;
	arena_init(&arena, &host_default()->memory, &unwind);
	problem_met = (Problem){.arena = &arena};
	return setjmp(unwind.env);
}

static int
arena_teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

#define ARENA_TEST(f) cmocka_unit_test_setup_teardown(f, arena_setup, arena_teardown)

#endif
