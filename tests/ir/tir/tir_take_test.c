/* tir_take_test.c: TAKE: threads have elements of a fill side by side, of parts of 16, 8 and 4 bits, in vectors of 4, 8 and 16
 * bytes; in text, verified and run; and what is wrong with it when one thing is changed. */
#include <math.h>
#include <stdlib.h>

#include "ir/tir_slot.h"
#include "tir_fixture.h"
#include "tir_takes.h"

static const DType types[] = {DT_BF16, DT_F16, DT_I16, DT_U16, DT_F8E4M3, DT_F8E5M2, DT_E8M0, DT_I8, DT_U8, DT_F4E2M1, DT_I4, DT_U4};
enum { TYPES = sizeof types / sizeof *types };

static TirKernel *
kernel_of(Fixture *f, Takes of)
{
	TirKernel *k = fixture_kernel(f);
	takes_build(k, f->names, &of);
	return k;
}

/* --- text and rules --- */

static void
the_text_is_read_back(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < TYPES; n++)
		for (unsigned bytes = 4; bytes <= 16; bytes *= 2)
			fixture_round_trip(f, kernel_of(f, (Takes){types[n], bytes, 1 + n % 2, 2, NULL, TAKES_RIGHT, 0}));
	const char *text = fixture_print(f, kernel_of(f, (Takes){DT_I4, 16, 1, 2, NULL, TAKES_RIGHT, 0}));
	assert_non_null(strstr(text, "channel 0 slots 2 part i4 32 by 256 part i4 32 by 256\n"));
	assert_non_null(strstr(text, ":i4x32 = take 0 part 0 %"));
	assert_non_null(strstr(text, ":i4x32 = take 0 part 1 %"));
}

static void
is_refused(Fixture *f, const TirKernel *k, const char *what, const char *want)
{
	const char *error = "accepted";
	size_t behind;
	if (tir_verify(k, &f->arena, &error) || (behind = strlen(error)) < strlen(want) || strcmp(error + behind - strlen(want), want) != 0)
		fail_msg("%s\n gives: %s\n wants: %s", what, error, want);
}

/* What a part may be, and what is taken of which. */
static void
rules(void **state)
{
	static const struct {
		DType t;
		const char *what, *by, *error;
	} row[] = {
		{DT_I4, "part i4 32 by 256 part", "part i4 32 by 64 part", "part 0 of channel 0 is none that copies bring"},
		{DT_I4, "part i4 32 by 256\n", "part i4 32 by 128\n", "part 1 of channel 0 is none that copies bring"},
		{DT_I4, "part i4 32 by 256 part", "part i4 36 by 256 part", "part 0 of channel 0 is none that copies bring"},
		{DT_I4, "part i4 32 by 256 part", "part i4 264 by 256 part", "part 0 of channel 0 is none that copies bring"},
		{DT_I4, "part i4 32 by 256 part", "part i4 32 by 256 turned part", "part 0 of channel 0 is none that copies bring"},
		{DT_I8, "part i8 32 by 128 part", "part i8 32 by 128 turned part", "part 0 of channel 0 is none that copies bring"},
		{DT_I16, "part i16 32 by 64 part", "part i16 32 by 64 turned part", "part 0 of channel 0 is none that copies bring"},
		{DT_I8, "part i8 32 by 128 part", "part i8 32 by 64 part", "part 0 of channel 0 is none that copies bring"},
		{DT_I8, "part i8 32 by 128 part", "part bool 32 by 128 part", "part 0 of channel 0 is none that copies bring"},
		{DT_BF16, "part bf16 32 by 64 part", "part f32 32 by 32 part", "part 0 of channel 0 is none that copies bring"},
		{DT_BF16, "part bf16 32 by 64 part", "part bf16 32 by 64 turned part", " take: of a part that is turned"},
		{DT_BF16, "part bf16 32 by 64 part", "part f16 32 by 64 part", " take: is no vector of 4, 8 or 16 bytes of the part's type"},
		{DT_U4, "part u4 32 by 256 part", "part i4 32 by 256 part", " take: is no vector of 4, 8 or 16 bytes of the part's type"},
		{DT_I4, "take 0 part 1", "take 0 part 2", " take: there are 2 parts"},
		{DT_I4, "take 0 part 0", "take 1 part 0", " take: there are 1 channels"},
		{DT_I4, "x8", "x4", " take: is no vector of 4, 8 or 16 bytes of the part's type"},
		{DT_I4, "x8", "x64", " take: is no vector of 4, 8 or 16 bytes of the part's type"},
		{DT_BF16, "x2", "x16", " take: is no vector of 4, 8 or 16 bytes of the part's type"},
	};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		const char *text = fixture_print(f, kernel_of(f, (Takes){row[n].t, 4, 1, 1, NULL, TAKES_RIGHT, 0})), *at;
		Text t;
		text_init(&t, &f->arena);
		assert_non_null(strstr(text, row[n].what));
		for (; (at = strstr(text, row[n].what)) != NULL; text = at + strlen(row[n].what)) {
			text_add(&t, text, (size_t)(at - text));
			text_add(&t, row[n].by, strlen(row[n].by));
		}
		text_add(&t, text, strlen(text));
		is_refused(f, fixture_read(f, text_get(&t)), arena_text(&f->arena, "%s -> %s", row[n].what, row[n].by), row[n].error);
	}
}

static void
wrong_kernels_are_refused(void **state)
{
	static const struct {
		TakesWrong wrong;
		DType t;
		const char *error;
	} row[] = {
		{TAKES_WHILE_LOADING, DT_I4, " take: stands in another role"},
		{TAKES_OF_NO_ROW, DT_I4, " take: takes a row and a term"},
		{TAKES_IN_I32, DT_I4, " take: takes a row and a term"},
		{TAKES_A_PRODUCT, DT_I4, " mma: of what is not multiplied"},
		{TAKES_A_PRODUCT, DT_F8E4M3, " mma: of what is not multiplied"},
		{TAKES_A_PRODUCT, DT_I16, " mma: of what is not multiplied"},
		{TAKES_WHAT_IS_HELD, DT_I4, " held: of parts that are not multiplied"},
		{TAKES_WHAT_IS_HELD, DT_F8E4M3, " held: of parts that are not multiplied"},
		{TAKES_WHAT_IS_HELD, DT_I16, " held: of parts that are not multiplied"},
	};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++)
		is_refused(f, kernel_of(f, (Takes){row[n].t, 8, 1, 1, NULL, row[n].wrong, 0}), arena_text(&f->arena, "%u", n), row[n].error);
}

/* --- runs --- */

typedef struct {
	int64_t rows, terms, across, tiles;
	uint8_t *x, *z;
} Data;

static int64_t
packed(DType t, int64_t elements)
{
	return (elements * dtype_info[t].bits + 7) / 8;
}

/* All bits that there are but those of NaNs, which are one. */
static void
fill(Fixture *f, DType t, const Takes *of, Data *d)
{
	unsigned whole = takes_terms(t);
	uint32_t seed = 7 * t + of->bytes;
	d->across = (d->terms + of->before + whole - 1) / whole;
	d->tiles = (d->rows + TAKES_PARTS * TAKES_ROWS - 1) / (TAKES_PARTS * TAKES_ROWS) * d->across;
	d->x = arena_alloc(&f->arena, (size_t)packed(t, d->rows * d->terms));
	d->z = arena_alloc(&f->arena, (size_t)packed(t, d->tiles * TAKES_PARTS * TAKES_ROWS * whole));
	for (int64_t n = 0; n < d->rows * d->terms; n++) {
		seed = seed * 1664525 + 1013904223;
		uint64_t bits = seed >> 16 & ((1u << dtype_info[t].bits) - 1);
		slot_store(t, d->x, n, dtype_info[t].kind == KIND_FLOAT && isnan(slot_decode(t, bits)) ? 1 : bits);
	}
}

static const char *
run(Fixture *f, const Takes *of, Data *d, int64_t step)
{
	const char *error = NULL;
	fill(f, of->t, of, d);
	TirMemory buffer[TAKES_BUFFERS] = {{d->x, packed(of->t, d->rows * d->terms)},
	                                   {d->z, packed(of->t, d->tiles * TAKES_PARTS * TAKES_ROWS * takes_terms(of->t))}};
	const void *scalar[TAKES_SCALARS] = {&d->rows, &d->terms, &d->across, &d->tiles};
	const TirKernel *k = kernel_of(f, *of);
	fixture_verify(f, k);
	for (int64_t first = 0; first < step; first++) {
		TirRun r = {.buffer = buffer, .scalar = scalar, .task_lo = first, .task_hi = d->tiles, .task_step = step, .max_steps = 1 << 24};
		if (!tir_interpret(k, &f->arena, &r, &error))
			return error;
	}
	return NULL;
}

/* Every element of every tile is memory's; 0 outside of x. */
static void
check(const Takes *of, const Data *d)
{
	enum { ROWS = TAKES_PARTS * TAKES_ROWS };
	int64_t terms = takes_terms(of->t);
	for (int64_t n = 0; n < d->tiles * ROWS * terms; n++) {
		int64_t tile = n / terms / ROWS, i = tile / d->across * ROWS + n / terms % ROWS, j = tile % d->across * terms + n % terms - of->before;
		bool inside = i < d->rows && j >= 0 && j < d->terms;
		uint64_t got = slot_load(of->t, d->z, n), want = inside ? slot_load(of->t, d->x, i * d->terms + j) : 0;
		if (got != want)
			fail_msg("%s by %u bytes, %u groups: [%d, %d] is %x, not %x", dtype_info[of->t].text, of->bytes, of->groups, (int)i, (int)j,
			         (unsigned)got, (unsigned)want);
	}
}

/* Tiles that are full and that are not, more than the channel has slots, and that begin before the first term. */
static void
elements_are_the_memorys(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < TYPES; n++)
		for (unsigned bytes = 4; bytes <= 16; bytes *= 2)
			for (unsigned groups = 1; groups <= 2; groups++) {
				int64_t unit = 16 / dtype_info[types[n]].bits;
				Takes of = {types[n], bytes, groups, 1 + n % 3, NULL, TAKES_RIGHT, bytes == 8 ? 5 * unit : 0};
				Data d = {.rows = 150, .terms = takes_terms(types[n]) + 13 * unit};
				const char *error = run(f, &of, &d, groups);
				if (error)
					fail_msg("%s by %u bytes, %u groups: %s", dtype_info[types[n]].text, bytes, groups, error);
				assert_int_equal(d.tiles, 3 * 2);
				check(&of, &d);
			}
}

static void
what_is_wrong_is_found(void **state)
{
	static const struct {
		TakesWrong wrong;
		const char *error;
	} row[] = {
		{TAKES_BEFORE_WAIT, " take: of fill 0, which the group does not have"},
		{TAKES_AFTER_RELEASE, " take: of fill 0, which the group does not have"},
		{TAKES_ROW_BEYOND, " take: row 32, term 0 of 32 by 512"},
		{TAKES_ROW_BEFORE, " take: row -1, term 0 of 32 by 512"},
		{TAKES_TERM_BEYOND, " take: row 0, term 256 of 32 by 256"},
		{TAKES_BETWEEN, " take: row 0, term 1 of 32 by 512"},
		{TAKES_BY_SOME, " take: not all threads of the group take the same way here"},
		{TAKES_COPIES_FROM_1, " copy: the box begins within 16 bits"},
	};
	Fixture *f = *state;
	GUARD(f);
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++)
		for (unsigned groups = 1; groups <= 2; groups++) {
			Data d = {.rows = 64, .terms = 256};
			const char *error = run(f, &(Takes){DT_U4, 16, groups, 2, NULL, row[n].wrong, 0}, &d, 1), *want = row[n].error;
			if (!error || strlen(error) < strlen(want) || strcmp(error + strlen(error) - strlen(want), want) != 0)
				fail_msg("%u: gives: %s\n wants: %s", n, error ? error : "nothing", want);
		}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_text_is_read_back),
		TEST(rules),
		TEST(wrong_kernels_are_refused),
		TEST(elements_are_the_memorys),
		TEST(what_is_wrong_is_found),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
