/* layout_form_test.c: the rules, the one form, the inverse, the text and the questions, on all small
 * layouts, against tables. */
#include "model.h"

static void
every_layout(LayoutVisitFn *visit, void *user)
{
	static const Family families[] = {
		{1, 2, 2, 3, 0, 0, 0, 0}, {2, 2, 1, 2, 0, 0, 0, 0}, {2, 1, 1, 1, 2, 0, 0, 0},
		{1, 1, 1, 2, 2, 0, 0, 0}, {1, 0, 1, 2, 3, 0, 0, 0}, {2, 0, 0, 1, 3, 0, 0, 0}, {1, 0, 2, 2, 1, 0, 0, 0},
	};
	for (unsigned i = 0; i < sizeof families / sizeof families[0]; i++) {
		Family f = families[i];
		f.visit = visit;
		f.user = user;
		layouts_of_family(&f);
	}
}

typedef struct {
	unsigned tiles, others;
} Count;

static bool
columns_fill_their_mask(const Layout *l)
{
	F2Map m = layout_bits(l);
	uint64_t mask = 0;
	for (unsigned i = 0; i < m.n; i++)
		mask |= m.col[i];
	return f2_rank(m.col, m.n) == f2_weight(mask);
}

static void
check_rules(void *user, const Layout *l)
{
	Count *count = user;
	const char *error;
	Table t = table_of(l);
	bool tile = table_is_tile(&t, l);
	if (layout_verify(l, &error) != (tile && columns_fill_their_mask(l)))
		layout_fail(error ? error : "accepted", l, NULL);
	*(!error ? &count->tiles : &count->others) += 1;
	table_free(&t);
}

/* Verified exactly when every element is held, equally often, by columns alone more than once, and the
 * columns reach every coordinate over the bits they have. */
static void
rules(void **state)
{
	Count count = {0};
	(void)state;
	every_layout(check_rules, &count);
	assert_true(count.tiles > 2000 && count.others > 20000);
}

/* layout_find has a place for each element, and none for what is no element. */
static void
check_holders(const Layout *l, const Table *t)
{
	Place first;
	for (uint32_t i = 0; i < t->n; i++) {
		Place p = table_place(t, i);
		assert_int_equal(layout_at(l, &p), t->coord[i]);
		assert_true(layout_find(l, t->coord[i], &first));
		assert_int_equal(layout_at(l, &first), t->coord[i]);
	}
	for (unsigned d = 0; d < LAYOUT_RANK; d++)
		assert_false(layout_find(l, coord_along(d, d < l->rank ? l->shape[d] : 1), &first));
}

static void
check_sizes(const Layout *l, const Table *t)
{
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		assert_int_equal(layout_size(l, (LayoutAxis)a), t->size[a]);
}

static void
check_one(void *user, const Layout *l)
{
	Fixture *x = user;
	const char *error;
	if (!layout_verify(l, &error))
		return;
	Table t = table_of(l);
	Layout form = *l;
	layout_canonical(&form);
	assert_true(layout_verify(&form, &error));
	Table again = table_of(&form);
	assert_true(table_equal(&t, &again));
	check_holders(l, &t);
	check_holders(&form, &t);
	check_sizes(&form, &t);
	check_sizes(l, &t);
	const char *text = layout_text(&x->arena, l);
	Layout read = layout_of(&x->arena, text);
	assert_string_equal(layout_text(&x->arena, &read), text);
	Table third = table_of(&read);
	assert_true(table_equal(&t, &third));
	table_free(&t);
	table_free(&again);
	table_free(&third);
}

static void
map_text_and_sizes(void **state)
{
	Fixture x;
	(void)state;
	START(&x);
	every_layout(check_one, &x);
	arena_free(&x.arena);
}

typedef struct {
	uint64_t hash;
	unsigned nth;
} Key;

static int
by_hash(const void *a, const void *b)
{
	const Key *x = a, *y = b;
	return x->hash < y->hash ? -1 : x->hash > y->hash ? 1 : (x->nth > y->nth) - (x->nth < y->nth);
}

static Key
key_of_table(const Layout *l, unsigned nth)
{
	Table t = table_of(l);
	uint64_t h = l->rank;
	for (unsigned a = 0; a < AXIS_COUNT; a++)
		h = h * 1000003 + t.size[a];
	for (uint32_t i = 0; i < t.n; i++)
		h = (h ^ h >> 29) * UINT64_C(0x9e3779b97f4a7c15) + t.coord[i];
	table_free(&t);
	return (Key){h, nth};
}

/* Neighbours in the order of tables: layouts are equal exactly when their tables are. */
static void
equality(void **state)
{
	LayoutList list = {0};
	unsigned alike = 0;
	(void)state;
	every_layout(layout_collect, &list);
	Key *key = malloc(list.n * sizeof *key);
	assert_non_null(key);
	for (unsigned i = 0; i < list.n; i++)
		key[i] = key_of_table(&list.at[i], i);
	qsort(key, list.n, sizeof *key, by_hash);
	for (unsigned i = 1; i < list.n; i++)
		for (unsigned k = i > 40 ? i - 40 : 0; k < i; k++) {
			bool same = key[i].hash == key[k].hash;
			assert_int_equal(layout_equal(&list.at[key[i].nth], &list.at[key[k].nth]), same);
			alike += same;
		}
	assert_true(alike > 200);
	free(key);
	free(list.at);
}

static void
refused_text(void **state)
{
	static const char *const text[] = {
		"", "x", "8x", "8x8x8x8x8", "0 reg i1", "8", "70000 reg i1", "8 reg", "8 i1 i2 i4", "8 reg i1 i2",
		"8 reg i1 i2 i4 reg 0", "8 reg i1 i2 i4 i8", "8 lane i1*8", "8 reg i1*8 i1", "8 reg i1*2 i4", "8 regi1",
		"8 reg i3 i4 i1", "8 reg i1^i1 i2 i4", "8 reg j1 i1 i2 i4", "8 reg i1 i2 i4^", "8 lanes i1", "12 reg i1*6",
		"12 reg i4*3 lane i1", "8 reg i1 i2 i4 tail", "8 reg i1 i1^i2 i2", "8 reg i1*", "99999999999 reg i1",
		"4x4 reg i1 j1 lane i2 i1^j1", "8 reg 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 i1 i2 i4",
	};
	Fixture x;
	(void)state;
	START(&x);
	for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++) {
		Layout l;
		const char *error = NULL;
		if (layout_read(&x.arena, text[i], strlen(text[i]), &l, &error))
			fail_msg("taken: %s", text[i]);
		assert_non_null(error);
		assert_non_null(strstr(error, "byte "));
	}
	arena_free(&x.arena);
}

static void
accepted_text(void **state)
{
	static const char *const text[][2] = {
		{"64x176 reg j1 i8 j8 j16*11 lane j2 j4 i1 i2 i4 warp i16 i32", NULL},
		{"  8x64\toffset j1 j2 j4 j8 j16 j32 # rows\n i1^j8 i2^j16 i4^j32 ",
		 "8x64 offset j1 j2 j4 j8 j16 j32 i1^j8 i2^j16 i4^j32"},
		{"1", NULL}, {"1x1x1x1 lane 0", NULL}, {"2x2x2x2 lane l1 k1 reg j1 i1", "2x2x2x2 reg j1 i1 lane l1 k1"},
		{"14x32 reg i1*14 j16*2 lane j1 j2 j4 j8", NULL},
	};
	Fixture x;
	(void)state;
	START(&x);
	for (unsigned i = 0; i < sizeof text / sizeof text[0]; i++) {
		Layout l = layout_of(&x.arena, text[i][0]);
		assert_string_equal(layout_text(&x.arena, &l), text[i][1] ? text[i][1] : text[i][0]);
	}
	arena_free(&x.arena);
}

static bool
read_any(const char *text, size_t n)
{
	Fixture x;
	const char *error;
	Layout l;
	START(&x);
	bool taken = layout_read(&x.arena, text, n, &l, &error);
	if (taken) {
		Layout again = layout_of(&x.arena, layout_text(&x.arena, &l));
		assert_true(layout_equal(&l, &again));
	}
	arena_free(&x.arena);
	return taken;
}

/* Texts changed at random: read or refused, never worse, and what is read prints and reads alike. */
static void
hostile_text(void **state)
{
	static const char base[] = "64x176 reg j1 i8 j8 j16*11 lane j2 j4^i8 i1 i2 i4 warp i16 i32 offset 0";
	static const char bytes[] = "ijkl0123456789*^x #\nregwarplanoffst";
	uint64_t seed = 7;
	unsigned taken = 0;
	(void)state;
	for (unsigned round = 0; round < 20000; round++) {
		char text[sizeof base];
		memcpy(text, base, sizeof base);
		for (unsigned k = 1 + random_below(&seed, 3); k > 0; k--)
			text[random_below(&seed, sizeof base - 1)] = bytes[random_below(&seed, sizeof bytes - 1)];
		taken += read_any(text, random_below(&seed, 2) ? sizeof base - 1 : random_below(&seed, sizeof base));
	}
	assert_true(taken > 20);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules),         cmocka_unit_test(map_text_and_sizes),
		cmocka_unit_test(equality),      cmocka_unit_test(refused_text),
		cmocka_unit_test(accepted_text), cmocka_unit_test(hostile_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
