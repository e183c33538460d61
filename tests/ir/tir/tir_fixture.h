/* tir_fixture.h: an arena, a table of names and the way out of a bug, for tests of the tile IR. */
#ifndef TEXO_TESTS_TIR_FIXTURE_H
#define TEXO_TESTS_TIR_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

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

#endif
