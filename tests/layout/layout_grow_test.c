/* layout_grow_test.c: layouts several times along a dimension, against tables, for all small layouts. */
#include "model.h"

static void
collect_families(const Family *families, unsigned n, LayoutList *list)
{
	for (unsigned i = 0; i < n; i++) {
		Family f = families[i];
		f.visit = layout_collect;
		f.user = list;
		layouts_of_family(&f);
	}
}

#define COLLECT(families, list) collect_families(families, sizeof(families) / sizeof(families)[0], list)

static const Family mixed[] = {
	{1, 1, 1, 2, 1, 0, 0, 0}, {2, 1, 1, 1, 1, 0, 0, 0}, {2, 0, 1, 1, 2, 0, 0, 0}, {1, 0, 0, 1, 2, 0, 0, 0},
	{2, 2, 1, 1, 0, 0, 0, 0},
};

static void
check_grown(const Layout *l, unsigned dim, unsigned count)
{
	Layout out = *l;
	assert_true(layout_grow(&out, AXIS_REG, dim, count));
	Table t = table_of(l), u = table_of(&out);
	assert_int_equal(u.size[0], t.size[0] * count);
	for (uint32_t i = 0; i < u.n; i++) {
		uint32_t r = i % u.size[0], place = i / u.size[0];
		uint64_t c = t.coord[place * t.size[0] + r % t.size[0]];
		assert_int_equal(u.coord[i], c + coord_along(dim, (uint64_t)(r / t.size[0]) * l->shape[dim]));
	}
	table_free(&t);
	table_free(&u);
	out = *l;
	bool power = count == 1 || (!(count & (count - 1)) && !(l->shape[dim] & (l->shape[dim] - 1)));
	assert_int_equal(layout_grow(&out, AXIS_LANE, dim, count), power);
}

static void
grown(void **state)
{
	LayoutList list = {0};
	(void)state;
	COLLECT(mixed, &list);
	for (unsigned i = 0; i < list.n; i++) {
		const Layout *l = &list.at[i];
		for (unsigned d = 0; d < l->rank; d++)
			for (unsigned count = 1; count <= 6; count++)
				check_grown(l, d, count);
	}
	assert_true(list.n > 300);
	free(list.at);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(grown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
