/* convert_test.c: conversion plans, run element by element on the machine of model.c: pairs of all small
 * layouts, and random larger ones. usage: convert_test [all]
 * With `all` every pair of small layouts is tried instead of a sample, and more random ones. */
#include "model.h"

#include "ir/layout_split.h"

static bool all_pairs;

/* Every register of dst is some register of src in all lanes, warps and blocks. */
static bool
only_renames(const Layout *src, const Layout *dst)
{
	Table s = table_of(src), d = table_of(dst);
	bool all = true;
	for (uint32_t to = 0; all && to < d.size[0]; to++) {
		bool found = false;
		for (uint32_t from = 0; !found && from < s.size[0]; from++) {
			found = true;
			for (uint32_t place = 0; found && place < s.n / s.size[0]; place++)
				found = d.coord[place * d.size[0] + to] == s.coord[place * s.size[0] + from];
		}
		all = found;
	}
	table_free(&s);
	table_free(&d);
	return all;
}

typedef struct {
	unsigned cls[CONVERT_MEMORY + 1], passes, refused;
} Count;

static void
check_conflicts(const ConvertPlan *p, const Layout *src, const Layout *dst)
{
	Split a, b;
	if (p->cls != CONVERT_MEMORY || !layout_split(src, dst, &a, &b))
		return;
	for (uint32_t i = 0; i < p->step.n; i++)
		assert_int_equal(p->step.at[i].wavefronts, p->step.at[i].groups);
}

static void
check_pair(const Layout *src, const Layout *dst, const ConvertMeans *means, Count *count)
{
	Fixture x;
	const char *error;
	START(&x);
	const ConvertPlan *p = layout_convert(&x.arena, src, dst, means, &error);
	if (!p)
		fail_msg("%s to %s: %s", layout_text(&x.arena, src), layout_text(&x.arena, dst), error);
	plan_run(p, src, dst, means->bits);
	check_conflicts(p, src, dst);
	assert_int_equal(p->cls == CONVERT_RENAME, only_renames(src, dst));
	assert_int_equal(p->cls >= CONVERT_MATRIX, p->scratch > 0);
	count->cls[p->cls]++;
	unsigned barriers = 0;
	for (uint32_t i = 0; i < p->step.n; i++)
		barriers += p->step.at[i].kind == STEP_BARRIER;
	count->passes += barriers > 1;
	arena_free(&x.arena);
}

/* --- all small ones --- */

static bool
same_places(const Layout *a, const Layout *b)
{
	bool same = a->rank == b->rank;
	for (unsigned d = 0; same && d < a->rank; d++)
		same = a->shape[d] == b->shape[d];
	return same && a->nbit[AXIS_LANE] == b->nbit[AXIS_LANE] && a->nbit[AXIS_WARP] == b->nbit[AXIS_WARP];
}

/* One pair in `every`, at random. */
static void
check_pairs(const LayoutList *list, unsigned every, Count *count)
{
	static const unsigned bits[] = {8, 16, 32, 64};
	uint64_t seed = list->n;
	for (unsigned i = 0; i < list->n; i++)
		for (unsigned k = 0; k < list->n; k++) {
			if ((random_below(&seed, every) && !all_pairs) || !same_places(&list->at[i], &list->at[k]))
				continue;
			ConvertMeans means = {.bits = bits[random_below(&seed, 4)], .shuffle = random_below(&seed, 2)};
			check_pair(&list->at[i], &list->at[k], &means, count);
		}
}

static void
small_bits(void **state)
{
	static const Family families[] = {
		{1, 1, 1, 3, 0, 1, 0, 0}, {1, 2, 1, 3, 0, 0, 0, 0}, {1, 1, 2, 3, 0, 0, 0, 0}, {2, 1, 1, 1, 0, 1, 0, 0},
		{2, 2, 1, 1, 0, 0, 0, 0},
	};
	Count count = {0};
	(void)state;
	for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++) {
		Family f = families[i];
		LayoutList list = {0};
		f.visit = layout_collect;
		f.user = &list;
		layouts_of_family(&f);
		check_pairs(&list, list.n > 200 ? 24 : 1, &count);
		free(list.at);
	}
	for (unsigned i = 0; i <= CONVERT_MEMORY; i++)
		assert_int_equal(count.cls[i] > 500, i != CONVERT_MATRIX);
}

/* Each element is held by several places, in registers, lanes and warps. */
static void
small_duplicates(void **state)
{
	Family f = {1, 1, 1, 2, 0, 1, 0, 0};
	LayoutList list = {0};
	Count count = {0};
	(void)state;
	f.visit = layout_collect;
	f.user = &list;
	layouts_of_family(&f);
	f.nreg = 2;
	layouts_of_family(&f);
	check_pairs(&list, 8, &count);
	free(list.at);
	for (unsigned i = 0; i <= CONVERT_MEMORY; i++)
		assert_int_equal(count.cls[i] > 100, i != CONVERT_MATRIX);
}

static void
small_repeats(void **state)
{
	static const Family families[] = {
		{1, 0, 1, 2, 2, 0, 0, 0}, {2, 0, 1, 1, 2, 0, 0, 0}, {1, 1, 1, 2, 1, 0, 0, 0}, {1, 0, 0, 1, 3, 0, 0, 0},
	};
	Count count = {0};
	(void)state;
	for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++) {
		Family f = families[i];
		LayoutList list = {0};
		f.visit = layout_collect;
		f.user = &list;
		layouts_of_family(&f);
		check_pairs(&list, 3, &count);
		free(list.at);
	}
	for (unsigned i = 0; i <= CONVERT_MEMORY; i++)
		assert_int_equal(count.cls[i] > 100, i != CONVERT_MATRIX);
}

/* --- larger ones at random --- */

typedef struct {
	unsigned src[AXIS_COUNT], dst[AXIS_COUNT], rank, bits[LAYOUT_RANK], odd[LAYOUT_RANK];
} Shape;

static Shape
random_shape(uint64_t *seed)
{
	static const unsigned odds[] = {1, 1, 1, 3, 5, 6, 11};
	Shape s = {.rank = 1 + random_below(seed, 3)};
	unsigned lanes = random_below(seed, 4) ? 5 : 1 + random_below(seed, 4), warps = random_below(seed, 3);
	s.src[AXIS_LANE] = s.dst[AXIS_LANE] = lanes;
	s.src[AXIS_WARP] = s.dst[AXIS_WARP] = warps;
	s.src[AXIS_REG] = random_below(seed, 6);
	s.dst[AXIS_REG] = random_below(seed, 3) ? s.src[AXIS_REG] : random_below(seed, 6);
	unsigned least = s.src[AXIS_REG] < s.dst[AXIS_REG] ? s.src[AXIS_REG] : s.dst[AXIS_REG];
	unsigned n = lanes + warps + least, spare = random_below(seed, 3) ? 0 : random_below(seed, 4);
	for (unsigned i = spare; i < n; i++)
		s.bits[random_below(seed, s.rank)]++;
	for (unsigned d = 0; d < s.rank; d++)
		s.odd[d] = random_below(seed, 3) || n > 9 ? 1 : odds[random_below(seed, 7)];
	return s;
}

/* dst with a few columns of src, so that the cheap classes occur. */
static void
make_alike(uint64_t *seed, const Layout *src, Layout *dst)
{
	const char *error;
	Layout l = *src;
	if (random_below(seed, 2))
		return;
	for (unsigned n = random_below(seed, 4); n > 0; n--) {
		unsigned a = random_below(seed, 3), b = random_below(seed, 3);
		if (a == AXIS_WARP || b == AXIS_WARP ? random_below(seed, 3) : 0)
			continue;
		if (!l.nbit[a] || !l.nbit[b])
			continue;
		uint64_t *x = &l.col[a][random_below(seed, l.nbit[a])], *y = &l.col[b][random_below(seed, l.nbit[b])], v = *x;
		if (x == y)
			continue;
		*x = random_below(seed, 2) ? *y : *x ^ *y;
		*y = *x == *y ? v : *y;
	}
	if (layout_verify(&l, &error))
		*dst = l;
}

static void
large_random(void **state)
{
	Count count = {0};
	uint64_t seed = 11;
	(void)state;
	for (unsigned round = 0; round < (all_pairs ? 3000 : 1000); round++) {
		Shape s = random_shape(&seed);
		Layout src = layout_random(&seed, s.src, s.rank, s.bits, s.odd);
		Layout dst = layout_random(&seed, s.dst, s.rank, s.bits, s.odd);
		ConvertMeans means = {.bits = 8u << random_below(&seed, 4), .shuffle = random_below(&seed, 4) > 0,
		                      .store_matrix = random_below(&seed, 2), .load_matrix = random_below(&seed, 2),
		                      .scratch_bytes = 256u << random_below(&seed, 10)};
		make_alike(&seed, &src, &dst);
		check_pair(&src, &dst, &means, &count);
	}
	for (unsigned i = 0; i <= CONVERT_MEMORY; i++)
		assert_true(count.cls[i] > 10);
	assert_true(count.passes > 20);
}

/* --- blocks, and what is refused --- */

static bool
refused(const Layout *src, const Layout *dst, unsigned bits)
{
	Fixture x;
	const char *error;
	START(&x);
	const ConvertMeans means = {.bits = bits, .shuffle = true};
	bool none = !layout_convert(&x.arena, src, dst, &means, &error);
	assert_int_equal(none, error != NULL);
	arena_free(&x.arena);
	return none;
}

/* Each block has a part of the tile and keeps it: the other axes are mixed, the blocks' columns stay; or
 * an element would have to leave, and that is refused. */
static void
blocks_keep_their_part(void **state)
{
	uint64_t seed = 17;
	Count count = {0};
	unsigned none = 0;
	(void)state;
	for (unsigned round = 0; round < 400; round++) {
		Shape s = random_shape(&seed);
		s.src[AXIS_BLOCK] = 1 + random_below(&seed, 2);
		s.bits[0] += s.src[AXIS_BLOCK];
		Layout src = layout_random(&seed, s.src, s.rank, s.bits, s.odd), dst = src;
		ConvertMeans means = {.bits = 32, .shuffle = random_below(&seed, 2), .scratch_bytes = 4096};
		make_alike(&seed, &src, &dst);
		if (random_below(&seed, 3) == 0)
			dst.col[AXIS_BLOCK][0] ^= random_below(&seed, 2) ? src.col[AXIS_LANE][0] : 1;
		const char *error;
		if (!layout_verify(&dst, &error))
			continue;
		if (refused(&src, &dst, 32))
			none++;
		else
			check_pair(&src, &dst, &means, &count);
	}
	assert_true(none > 20);
	assert_true(count.cls[CONVERT_RENAME] > 20 && count.cls[CONVERT_SHUFFLE] + count.cls[CONVERT_MEMORY] > 20);
}

static void
refusals(void **state)
{
	static const char *const pairs[][2] = {
		{"8 reg i1 lane i2 i4", "16 reg i1 i8 lane i2 i4"},
		{"8x1 reg i1 lane i2 i4", "8 reg i1 lane i2 i4"},
		{"8 reg i1 lane i2 i4", "8 reg i1 i2 lane i4"},
		{"8 reg i1 lane i2 warp i4", "8 reg i1 i2 lane i4"},
		{"8 reg i1 lane i2 i4", "8 lane i2 i4 offset i1"},
		{"8 reg i1 lane i2 block i4", "8 reg i4 lane i2 block i1"},
		{"8 reg i1 lane i2 i4 block 0", "8 reg i1 lane i2 i4"},
	};
	Fixture x;
	(void)state;
	START(&x);
	for (unsigned i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
		Layout a = layout_of(&x.arena, pairs[i][0]), b = layout_of(&x.arena, pairs[i][1]);
		assert_true(refused(&a, &b, 32) && refused(&b, &a, 32));
		assert_false(refused(&a, &a, 32));
	}
	Layout l = layout_of(&x.arena, "8 reg i1 lane i2 i4");
	assert_true(refused(&l, &l, 4) && refused(&l, &l, 0));
	arena_free(&x.arena);
}

int
main(int argc, char **argv)
{
	all_pairs = argc > 1 && strcmp(argv[1], "all") == 0;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(small_bits),
		cmocka_unit_test(small_duplicates),
		cmocka_unit_test(small_repeats),
		cmocka_unit_test(large_random),
		cmocka_unit_test(blocks_keep_their_part),
		cmocka_unit_test(refusals),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
