/* arena_setup.h: an arena for all tests of a program. */
#ifndef TEXO_TESTS_FUSE_ARENA_SETUP_H
#define TEXO_TESTS_FUSE_ARENA_SETUP_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ir/arena.h"

static Arena arena;
static Unwind unwind;

static int
setup(void **state)
{
	(void)state;
	arena_init(&arena, &host_default()->memory, &unwind);
	if (setjmp(unwind.env)) {
		fprintf(stderr, "unwound: %s\n", unwind.text);
		return 1;
	}
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	arena_free(&arena);
	return 0;
}

#endif
