/* layout_derive_test.c: products, compositions, permuted, grown, projected and relabelled layouts, against
 * tables, for all small layouts or pairs of them. */
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

/* --- products --- */

static void
check_product(const Layout *a, const Layout *b, const Layout *out)
{
	Table s = table_of(a), t = table_of(b), u = table_of(out);
	const char *error;
	assert_true(layout_verify(out, &error));
	assert_int_equal(u.n, s.n * t.n);
	for (uint32_t i = 0; i < u.n; i++) {
		Place p = table_place(&u, i), low, high;
		for (unsigned x = 0; x < AXIS_COUNT; x++) {
			low.at[x] = p.at[x] % s.size[x];
			high.at[x] = p.at[x] / s.size[x];
		}
		uint64_t c = layout_at(a, &low), step = layout_at(b, &high);
		for (unsigned d = 0; d < a->rank; d++)
			c += coord_along(d, coord_get(step, d) * a->shape[d]);
		assert_int_equal(u.coord[i], c);
	}
	table_free(&s);
	table_free(&t);
	table_free(&u);
}

static bool
only_bits(const Layout *l)
{
	Layout form = *l;
	layout_canonical(&form);
	return form.nrepeat == 0;
}

static void
products(void **state)
{
	LayoutList list = {0};
	unsigned made = 0;
	uint64_t seed = 3;
	(void)state;
	COLLECT(mixed, &list);
	for (unsigned i = 0; i < list.n; i++)
		for (unsigned k = 0; k < list.n; k++) {
			const Layout *a = &list.at[i], *b = &list.at[k];
			Layout out;
			if (a->rank != b->rank || random_below(&seed, 16))
				continue;
			bool ok = layout_product(a, b, &out);
			if (!ok && only_bits(a))
				layout_fail("no product", a, b);
			if (ok)
				check_product(a, b, &out);
			made += ok;
		}
	assert_true(made > 1000);
	free(list.at);
}

/* --- compositions --- */

static Layout
as_memory(const Layout *l)
{
	Layout m = *l;
	m.nbit[AXIS_OFFSET] = m.nbit[AXIS_REG];
	memcpy(m.col[AXIS_OFFSET], m.col[AXIS_REG], sizeof m.col[0]);
	m.nbit[AXIS_REG] = 0;
	for (unsigned i = 0; i < m.nrepeat; i++)
		m.repeat[i].axis = AXIS_OFFSET;
	return m;
}

static void
check_composition(const Layout *outer, const Layout *inner, const Layout *out)
{
	Table s = table_of(outer), t = table_of(inner), u = table_of(out);
	const char *error;
	assert_true(layout_verify(out, &error));
	assert_memory_equal(t.size, u.size, sizeof t.size);
	for (uint32_t i = 0; i < u.n; i++)
		assert_int_equal(u.coord[i], s.coord[t.coord[i]]);
	table_free(&s);
	table_free(&t);
	table_free(&u);
}

static void
compositions(void **state)
{
	static const Family memories[] = {
		{1, 3, 0, 3, 0, 0, 0, 0}, {2, 2, 0, 1, 1, 0, 0, 0}, {2, 0, 0, 1, 3, 0, 0, 0}, {1, 1, 0, 1, 2, 0, 0, 0},
		{2, 1, 0, 1, 2, 0, 0, 0},
	};
	static const Family patterns[] = {
		{1, 1, 2, 3, 0, 0, 0, 0}, {1, 1, 1, 2, 1, 0, 0, 0}, {1, 0, 1, 1, 2, 0, 0, 0}, {1, 0, 2, 2, 1, 0, 0, 0},
		{1, 0, 0, 1, 3, 0, 0, 0},
	};
	LayoutList outer = {0}, inner = {0};
	unsigned made = 0, refused = 0;
	(void)state;
	COLLECT(memories, &outer);
	COLLECT(patterns, &inner);
	for (unsigned i = 0; i < outer.n; i++)
		for (unsigned k = 0; k < inner.n; k++) {
			Layout memory = as_memory(&outer.at[i]), out;
			uint32_t size = layout_size(&memory, AXIS_OFFSET);
			bool ok = layout_compose(&memory, &inner.at[k], &out);
			assert_true(!ok || inner.at[k].shape[0] == size);
			if (ok)
				check_composition(&memory, &inner.at[k], &out);
			else
				assert_true(inner.at[k].shape[0] != size || !only_bits(&memory) || !only_bits(&inner.at[k]));
			made += ok;
			refused += !ok && inner.at[k].shape[0] == size;
		}
	assert_true(made > 5000 && refused > 10);
	free(outer.at);
	free(inner.at);
}

/* --- dimensions --- */

static void
check_permuted(const Layout *l)
{
	unsigned order[] = {1, 0};
	Layout out = layout_permute(l, order), back = layout_permute(&out, order);
	Table t = table_of(l), u = table_of(&out);
	const char *error;
	assert_true(layout_verify(&out, &error));
	assert_true(layout_equal(l, &back));
	for (uint32_t i = 0; i < t.n; i++)
		assert_int_equal(u.coord[i], coord_along(0, coord_get(t.coord[i], 1)) | coord_along(1, coord_get(t.coord[i], 0)));
	table_free(&t);
	table_free(&u);
}

/* Each lane holds the projections of what it held, each in one register. */
static void
check_projected(const Layout *l, unsigned dim)
{
	Layout out = layout_project(l, dim);
	Table t = table_of(l), u = table_of(&out);
	const char *error;
	assert_true(layout_verify(&out, &error));
	assert_int_equal(t.size[AXIS_LANE], u.size[AXIS_LANE]);
	for (uint32_t lane = 0; lane < t.n / t.size[0]; lane++) {
		uint64_t was = 0, is = 0;
		for (uint32_t r = 0; r < t.size[0]; r++)
			was |= UINT64_C(1) << (l->rank == 1 ? 0 : coord_get(t.coord[lane * t.size[0] + r], 1 - dim));
		for (uint32_t r = 0; r < u.size[0]; r++) {
			assert_false(is >> u.coord[lane * u.size[0] + r] & 1);
			is |= UINT64_C(1) << u.coord[lane * u.size[0] + r];
		}
		assert_int_equal(was, is);
	}
	table_free(&t);
	table_free(&u);
}

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
dimensions(void **state)
{
	LayoutList list = {0};
	(void)state;
	COLLECT(mixed, &list);
	for (unsigned i = 0; i < list.n; i++) {
		const Layout *l = &list.at[i];
		for (unsigned d = 0; d < l->rank; d++) {
			check_projected(l, d);
			for (unsigned count = 1; count <= 6; count++)
				check_grown(l, d, count);
		}
		if (l->rank == 2)
			check_permuted(l);
	}
	assert_true(list.n > 300);
	free(list.at);
}

/* --- relabelling --- */

/* Each lane and warp of a holds what it holds in b. */
static bool
lanes_have(const Layout *a, const Layout *b)
{
	Table s = table_of(a), t = table_of(b);
	bool same = true;
	for (uint32_t place = 0; place < s.n / s.size[0]; place++) {
		uint64_t x = 0, y = 0;
		for (uint32_t r = 0; r < s.size[0]; r++)
			x |= UINT64_C(1) << (s.coord[place * s.size[0] + r] % 8 + 8 * coord_get(s.coord[place * s.size[0] + r], 1));
		for (uint32_t r = 0; r < t.size[0]; r++)
			y |= UINT64_C(1) << (t.coord[place * t.size[0] + r] % 8 + 8 * coord_get(t.coord[place * t.size[0] + r], 1));
		same = same && (y & ~x) == 0;
	}
	table_free(&s);
	table_free(&t);
	return same;
}

static bool
unit_columns(const Layout *l)
{
	F2Map m = layout_bits(l);
	bool unit = true;
	for (unsigned i = 0; i < m.n; i++)
		unit = unit && f2_weight(m.col[i]) == 1;
	return unit && f2_rank(m.col, m.n) == m.n;
}

static bool
some_map_serves(const Layout *src, const Layout *dst)
{
	for (unsigned number = 0; number < 16; number++) {
		F2Map m = {2, {number % 4, number / 4}};
		Layout moved;
		if (f2_rank(m.col, 2) == 2 && layout_relabelled(dst, 1, &m, &moved) && lanes_have(src, &moved))
			return true;
	}
	return false;
}

/* Found whenever some bijection serves, for layouts whose places each add along one dimension; for
 * others what is found serves. */
static void
relabellings(void **state)
{
	static const Family families[] = {{2, 1, 1, 2, 0, 1, 0, 0}, {2, 2, 1, 2, 0, 0, 0, 0}, {2, 1, 2, 2, 0, 0, 0, 0}};
	LayoutList list = {0};
	unsigned found = 0, none = 0;
	uint64_t seed = 5;
	(void)state;
	COLLECT(families, &list);
	for (unsigned i = 0; i < list.n; i++)
		for (unsigned k = 0; k < list.n; k++) {
			const Layout *a = &list.at[i], *b = &list.at[k];
			F2Map map;
			Layout moved;
			if (a->shape[0] != b->shape[0] || a->shape[1] != 4 || b->shape[1] != 4 || random_below(&seed, 64) ||
			    a->nbit[AXIS_LANE] != b->nbit[AXIS_LANE] || a->nbit[AXIS_WARP] != b->nbit[AXIS_WARP])
				continue;
			bool ok = layout_relabel(a, b, 1, &map);
			if (ok) {
				assert_int_equal(map.n, 2);
				assert_int_equal(f2_rank(map.col, 2), 2);
				assert_true(layout_relabelled(b, 1, &map, &moved));
				assert_true(lanes_have(a, &moved));
			} else if (unit_columns(a) && unit_columns(b)) {
				assert_false(some_map_serves(a, b));
			}
			found += ok;
			none += !ok;
		}
	assert_true(found > 100 && none > 100);
	free(list.at);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products),
		cmocka_unit_test(compositions),
		cmocka_unit_test(dimensions),
		cmocka_unit_test(relabellings),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
