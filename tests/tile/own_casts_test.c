/* own_casts_test.c: which casts of narrow floats stay for a GPU's threads, and which for a processor. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

static TirKernel *
cast_kernel(Fixture *f, const char *form, const char *from, const char *to)
{
	const char *text = arena_text(&f->arena, "kernel k%s\nbuffer 0 x : %s\nbuffer 1 y : %s written\n{\n"
	                              "  %%1:i64 = const 1\n  %%2:i64 = const 0\n  %%3 = buffer 0\n  %%4:%s = view %%3, %%1, %%1\n"
	                              "  %%5 = buffer 1\n  %%6:%s = view %%5, %%1, %%1\n  %%7:%s = load %%4, %%2\n"
	                              "  %%8:%s = cast %%7\n  %%9 = store %%6, %%8, %%2\n}\n", form, from, to, from, to, from, to);
	TirKernel *k = fixture_read(f, text);
	fixture_verify(f, k);
	return k;
}

static unsigned
count_casts(const TirKernel *k, const char *from, const char *to)
{
	unsigned n = 0;
	for (ValId v = 1; v < k->inst.n; v++) {
		const TirInst *p = tir_inst(k, v);
		n += p->op == OP_CAST && (p->type.dtype == dtype_named(to, strlen(to))) &&
		     tir_inst(k, tir_arg(k, v, 0))->type.dtype == dtype_named(from, strlen(from));
	}
	return n;
}

static unsigned
casts_left(Fixture *f, const char *form, const char *from, const char *to, bool own)
{
	TirKernel *k = cast_kernel(f, form, from, to);
	if (own)
		k = tile_own_casts(k, &f->arena);
	assert_int_equal(tile_own_casts(k, &f->arena) == k, own || k->form != TIR_SPREAD);
	k = tile_legalize(k, &f->arena);
	fixture_round_trip(f, k);
	fixture_verify(f, k);
	assert_int_equal(k->fp8, own && k->form == TIR_SPREAD);
	return count_casts(k, from, to);
}

static void
stays(void **state)
{
	static const struct {
		const char *form, *from, *to;
		bool own;
		unsigned left;
	} row[] = {
		{" threads 32 by 1", "f32", "f8e4m3", true, 1}, {" threads 32 by 1", "f32", "f8e5m2", true, 1},
		{" threads 32 by 1", "f8e4m3", "f32", true, 1}, {" threads 32 by 1", "f8e5m2", "f32", true, 0},
		{" threads 32 by 1", "f32", "f8e4m3", false, 0}, {" threads 32 by 1", "f8e4m3", "f32", false, 0},
		{" threads 32 by 1", "f64", "f8e4m3", true, 0}, {" threads 32 by 1", "f32", "f4e2m1", true, 0},
		{" threads 32 by 1", "f32", "bf16", false, 1}, {"", "f32", "f8e4m3", true, 0}, {"", "f32", "bf16", true, 0},
	};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++)
		if (casts_left(f, row[n].form, row[n].from, row[n].to, row[n].own) != row[n].left)
			fail_msg("%s to %s on '%s'", row[n].from, row[n].to, row[n].form);
}

/* f16 goes to f32 and back by itself, and from there to others. */
static void
halves_stay(void **state)
{
	static const struct {
		const char *form, *from, *to;
		bool halves;
		unsigned left;
	} row[] = {
		{"", "f32", "f16", true, 1}, {"", "f16", "f32", true, 1}, {"", "f32", "f16", false, 0}, {"", "f16", "f32", false, 0},
		{"", "f32", "bf16", true, 0}, {"", "f64", "f16", true, 0}, {"", "f16", "i32", true, 0}, {"", "f16", "bf16", true, 0},
		{" threads 32 by 1", "f64", "f16", true, 0},
	};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		TirKernel *k = cast_kernel(f, row[n].form, row[n].from, row[n].to);
		if (row[n].halves)
			k = tile_half_casts(k, &f->arena);
		k = tile_legalize(k, &f->arena);
		fixture_round_trip(f, k);
		fixture_verify(f, k);
		assert_int_equal(k->halves, row[n].halves && k->form == TIR_TASKS);
		if (count_casts(k, row[n].from, row[n].to) != row[n].left)
			fail_msg("%s to %s on '%s'", row[n].from, row[n].to, row[n].form);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(stays), TEST(halves_stay)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
