/* roll_test.c: kernels of threads before and after tile_roll, by their text and by what they compute. */
#include "passes/tile/tile.h"
#include "tests/ir/tir/tir_fixture.h"

enum { BLOCK = 32, MOST = 4, ELEMENTS = BLOCK * MOST };

/* Of so many groups, each of one element that so many operations are made of. */
typedef struct {
	unsigned groups, work;
	bool squared;    /* what has been computed halfway is stored too, behind the rest, squared */
	bool wanted;     /* the last group's is an operand of a sum that is stored ahead of all */
	bool other;      /* the last group's last operation is another */
} Shape;

static ValId
view(TirKernel *k, unsigned buffer)
{
	ValId n = tir_int(k, DT_I64, ELEMENTS), one = tir_int(k, DT_I64, 1);
	return tir_view(k, buffer, 1, &n, &one);
}

static TirKernel *
build(Fixture *f, Shape s)
{
	static const char *const name[] = {"x", "y", "z"};
	ValId value[MOST], index[MOST], half[MOST], view_of[3];
	TirKernel *k = fixture_kernel(f);
	k->form = TIR_SPREAD;
	k->threads = BLOCK;
	k->group = 1;
	for (unsigned n = 0; n < 3; n++)
		tir_add_buffer(k, name_cstr(k->names, name[n]), DT_F32, n > 0);
	for (unsigned n = 0; n < 3; n++)
		view_of[n] = view(k, n);
	ValId thread = tir_emit(k, OP_THREAD, tir_scalar(DT_I64), 0, NULL, 0);
	for (unsigned g = 0; g < s.groups; g++) {
		index[g] = g ? tir_binary(k, OP_ADD, thread, tir_int(k, DT_I64, (int64_t)g * BLOCK)) : thread;
		value[g] = tir_load(k, view_of[0], &index[g], 0, 0, 0);
	}
	for (unsigned n = 0; n < s.work; n++) {
		ValId c = tir_float(k, DT_F32, 1 + 0x1p-8 * n);
		for (unsigned g = 0; g < s.groups; g++) {
			bool odd = s.other && n + 1 == s.work && g + 1 == s.groups;
			value[g] = tir_binary(k, n % 2 != odd ? OP_ADD : OP_MUL, value[g], c);
			if (n == s.work / 2)
				half[g] = value[g];
		}
	}
	if (s.wanted) {
		ValId sum = tir_binary(k, OP_ADD, half[0], half[s.groups - 1]);
		tir_store(k, view_of[2], sum, &thread, 0, 0);
	}
	for (unsigned g = 0; g < s.groups; g++)
		tir_store(k, view_of[1], value[g], &index[g], 0, 0);
	for (unsigned g = 0; s.squared && g < s.groups; g++)
		tir_store(k, view_of[2], tir_binary(k, OP_MUL, half[g], half[g]), &index[g], 0, 0);
	return k;
}

static unsigned
count(Fixture *f, const TirKernel *k, const char *word)
{
	unsigned n = 0;
	for (const char *s = fixture_print(f, k); (s = strstr(s, word)); s += strlen(word))
		n++;
	return n;
}

static void
run(Fixture *f, const TirKernel *k, float out[2][ELEMENTS])
{
	const char *error = "";
	float *x = ARENA_ARRAY(&f->arena, float, ELEMENTS);
	for (unsigned i = 0; i < ELEMENTS; i++)
		x[i] = (float)i / 3 - 20;
	memset(out, 0, 2 * sizeof out[0]);
	TirMemory memory[] = {{x, ELEMENTS * 4}, {out[0], ELEMENTS * 4}, {out[1], ELEMENTS * 4}};
	TirRun r = {.buffer = memory, .task_hi = 1, .max_steps = 1 << 20};
	if (!tir_interpret(k, &f->arena, &r, &error))
		fail_msg("%s\n%s", error, fixture_print(f, k));
}

/* Rolled, it does the same. */
static TirKernel *
rolled(Fixture *f, Shape s)
{
	static float before[2][ELEMENTS], after[2][ELEMENTS];
	TirKernel *k = build(f, s);
	fixture_verify(f, k);
	TirKernel *to = tile_roll(k, &f->arena);
	fixture_round_trip(f, to);
	run(f, k, before);
	run(f, to, after);
	assert_memory_equal(before, after, sizeof before);
	return to;
}

static void
groups_are_turns(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = rolled(f, (Shape){.groups = 2, .work = 100});
	assert_int_equal(count(f, k, "for rolled"), 1);
	assert_int_equal(count(f, k, "= store"), 1);
	assert_int_equal(count(f, k, "= load"), 2);
	assert_int_equal(count(f, k, "* "), 50);
}

/* A turn hands on what all later ones have: of four groups, two turns of two are less to hand on. */
static void
turns_have_groups(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = rolled(f, (Shape){.groups = 4, .work = 60});
	assert_int_equal(count(f, k, "for rolled"), 1);
	assert_int_equal(count(f, k, "= store"), 2);
	k = rolled(f, (Shape){.groups = 4, .work = 100});
	assert_int_equal(count(f, k, "= store"), 1);
}

/* Results of several views are stored by one loop, which computes what they have in common once. */
static void
views_share_a_loop(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = rolled(f, (Shape){.groups = 2, .work = 100, .squared = true});
	assert_int_equal(count(f, k, "for rolled"), 1);
	assert_int_equal(count(f, k, "= store"), 2);
	assert_int_equal(count(f, k, "* "), 51);
}

/* What is wanted elsewhere too is computed before the loop, once. */
static void
what_is_wanted_stays(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = rolled(f, (Shape){.groups = 2, .work = 300, .wanted = true});
	assert_int_equal(count(f, k, "for rolled"), 1);
	assert_int_equal(count(f, k, "* "), 2 * 76 + 74);
}

static void
others_stay(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	const Shape shape[] = {{.groups = 2, .work = 20}, {.groups = 1, .work = 200}, {.groups = 2, .work = 200, .other = true}};
	for (unsigned n = 0; n < sizeof shape / sizeof *shape; n++) {
		TirKernel *k = build(f, shape[n]);
		assert_ptr_equal(tile_roll(k, &f->arena), k);
	}
	TirKernel *k = build(f, (Shape){.groups = 2, .work = 100});
	k->form = TIR_TASKS;
	assert_ptr_equal(tile_roll(k, &f->arena), k);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {TEST(groups_are_turns), TEST(turns_have_groups), TEST(views_share_a_loop),
	                                   TEST(what_is_wanted_stays), TEST(others_stay)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
