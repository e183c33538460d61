/* tir_fixture.h: an arena, a table of names and the way out of a bug, for tests of the tile IR. */
#ifndef TEXO_TESTS_TIR_FIXTURE_H
#define TEXO_TESTS_TIR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ir/tir.h"

typedef struct {
	Unwind unwind;
	Arena arena;
	Names *names;
} Fixture;

static inline int
fixture_setup(void **state)
{
	static Fixture f;
	f = (Fixture){0};
	arena_init(&f.arena, &host_default()->memory, &f.unwind);
	f.names = names_new(&f.arena);
	*state = &f;
	return 0;
}

static inline int
fixture_teardown(void **state)
{
	arena_free(&((Fixture *)*state)->arena);
	return 0;
}

#define GUARD(f)                    \
	if (setjmp((f)->unwind.env)) \
	fail_msg("%s", (f)->unwind.text)

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

static inline TirKernel *
fixture_kernel(Fixture *f)
{
	return tir_new(&f->arena, f->names, name_cstr(f->names, "k"));
}

static inline const char *
fixture_print(Fixture *f, const TirKernel *k)
{
	Text t;
	text_init(&t, &f->arena);
	tir_print(k, &t);
	return text_get(&t);
}

static inline void
fixture_verify(Fixture *f, const TirKernel *k)
{
	const char *error = "";
	if (!tir_verify(k, &f->arena, &error))
		fail_msg("%s\n%s", error, fixture_print(f, k));
}

static inline ValId
fixture_copy(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	return tir_copy_inst(to, from, v, arg);
}

static inline TirKernel *
fixture_read(Fixture *f, const char *text)
{
	const char *error = "";
	TirKernel *k = tir_read(&f->arena, f->names, text, strlen(text), &error);
	if (!k)
		fail_msg("%s\n%s", error, text);
	return k;
}

/* The kernel verifies; what it prints reads back and prints the same; so does its identical copy. */
static inline void
fixture_round_trip(Fixture *f, const TirKernel *k)
{
	fixture_verify(f, k);
	const char *text = fixture_print(f, k);
	TirKernel *again = fixture_read(f, text);
	fixture_verify(f, again);
	assert_string_equal(fixture_print(f, again), text);
	TirKernel *copy = tir_rewrite(k, &f->arena, fixture_copy, NULL);
	fixture_verify(f, copy);
	assert_string_equal(fixture_print(f, copy), text);
}

#endif
