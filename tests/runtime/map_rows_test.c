/* map_rows_test.c: of which tensors there can be a tensor map, of which there is one of a copy, and how large that is. */
#include "tests/runtime/refused.h"

#include "ir/dtype.h"
#include "runtime/inside.h"

enum { LARGEST = 1 << 30, SCALARS = 2 };

typedef struct {
	uint32_t rank;
	int64_t extent[IMAGE_MAP_RANK], stride[IMAGE_MAP_RANK]; /* elements of two bytes, from the second axis on */
	int64_t pitch; /* that the kernel asks for */
} Rows;

static uint64_t scalar[SCALARS];

/* A map of boxes of one index, whose first axis lies side by side. */
static ImageMap
map_of(const Rows *r)
{
	ImageMap m = {.rank = r->rank, .dtype = DT_BF16};
	for (uint32_t a = 0; a < r->rank; a++) {
		m.extent[a] = r->extent[a];
		m.stride[a] = a ? r->stride[a] : 1;
		m.box[a] = m.step[a] = 1;
	}
	return m;
}

static texo_kernel
kernel_of(void)
{
	return (texo_kernel){.frame.scalar = scalar};
}

static void
copies_are_as_large_as_needed(void **state)
{
	static const struct {
		Rows rows;
		bool there, direct, wanted;
		int64_t room, piece; /* bytes of the copy, and pieces of a row of it */
	} row[] = {
		{{2, {8, 3}, {0, 8}, 0}, true, true, true, 0, 0},
		{{2, {7, 3}, {0, 7}, 0}, false, false, false, 0, 0}, /* rows of 14 bytes, and nobody copies */
		{{2, {7, 3}, {0, 7}, 16}, true, false, false, 3 * 128, 1},
		{{2, {7, 3}, {0, 8}, 16}, true, true, true, 3 * 128, 1}, /* a slice of columns: the first may begin anywhere */
		{{2, {72, 3}, {0, 72}, 128}, true, true, false, 3 * 256, 9}, /* no whole lines */
		{{2, {64, 3}, {0, 64}, 128}, true, true, true, 0, 0},
		{{2, {7, 1}, {0, 7}, 16}, true, true, true, 0, 0}, /* of one row no stride counts */
		{{3, {7, 3, 5}, {0, 7, 21}, 16}, true, false, false, 15 * 128, 1},
		{{2, {8, 3}, {0, 0}, 0}, false, false, false, 0, 0}, /* one row for all */
		{{2, {8, 0}, {0, 8}, 0}, false, false, false, 0, 0},
		{{2, {8, INT64_C(1) << 31}, {0, 8}, 0}, true, true, true, 0, 0}, /* as many as a copy counts */
		{{2, {8, (INT64_C(1) << 31) + 1}, {0, 8}, 0}, false, false, false, 0, 0},
		{{2, {8, 3}, {0, -8}, 0}, false, false, false, 0, 0},
		{{2, {8, 3}, {0, INT64_C(1) << 37}, 0}, false, false, false, 0, 0},
		{{2, {8, 3}, {0, (INT64_C(1) << 37) - 8}, 0}, true, true, true, 0, 0},
		/* more pieces than a launch numbers; more rows than are counted */
		{{2, {9, LARGEST}, {0, 9}, 16}, false, false, false, 0, 0},
		{{2, {7, LARGEST}, {0, 7}, 16}, true, false, false, LARGEST * INT64_C(128), 1},
		{{4, {7, LARGEST, LARGEST, LARGEST}, {0, 7, 7, 7}, 16}, false, false, false, 0, 0},
		/* where the rows do as they are, none is made */
		{{4, {8, LARGEST, LARGEST, LARGEST}, {0, 16, 16, 16}, 16}, true, true, true, 0, 0},
	};
	texo_kernel k = kernel_of();
	(void)state;
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		MapRows r;
		ImageMap m = map_of(&row[n].rows);
		assert_int_equal(map_rows(&k, &m, row[n].rows.pitch, &r), row[n].there);
		if (!row[n].there)
			continue;
		assert_int_equal(r.direct, row[n].direct);
		assert_int_equal(r.wanted, row[n].wanted);
		assert_int_equal(r.room, row[n].room);
		assert_true(!row[n].room || r.pieces == row[n].piece);
	}
}

/* Of elements of four bytes, three copies of two, which are the map's whatever the rows are. */
static void
thirds_are_copies(void **state)
{
	static const struct {
		Rows rows;
		bool there;
		int64_t each, pitch, piece;
	} row[] = {
		{{2, {8, 3}, {0, 8}, 0}, true, 3 * 128, 128, 1},
		{{2, {65, 3}, {0, 67}, 16}, true, 3 * 256, 256, 9},
		{{3, {7, 3, 5}, {0, 7, 21}, 0}, true, 15 * 128, 128, 1},
		{{2, {8, 3}, {0, 0}, 0}, false, 0, 0, 0},
		{{2, {7, LARGEST}, {0, 7}, 0}, true, LARGEST * INT64_C(128), 128, 1},
		{{2, {9, LARGEST}, {0, 9}, 0}, false, 0, 0, 0}, /* more pieces than a launch numbers */
	};
	texo_kernel k = kernel_of();
	(void)state;
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		MapRows r;
		ImageMap m = map_of(&row[n].rows);
		m.thirds = 1;
		assert_int_equal(map_rows(&k, &m, row[n].rows.pitch, &r), row[n].there);
		if (!row[n].there)
			continue;
		assert_true(map_is_of_copy(&r, NULL));
		assert_int_equal(r.stride[1], 4 * row[n].rows.stride[1]);
		assert_int_equal(r.each, row[n].each);
		assert_int_equal(r.room, 3 * row[n].each);
		assert_int_equal(r.pitch, row[n].pitch);
		assert_int_equal(r.pieces, row[n].piece);
	}
}

/* Elements of 8 and 4 bits are 2 and 4 of each of the map's; which has none where a row ends within one, or begins. */
static void
units_of_narrow_elements(void **state)
{
	static const struct {
		DType t;
		Rows rows;
		bool there, direct, wanted;
		int64_t extent, stride, room, piece; /* of a row, in the map's elements; bytes from one to the next, and of the copy; pieces of a row */
	} row[] = {
		{DT_I8, {2, {128, 3}, {0, 128}, 0}, true, true, true, 64, 128, 0, 0},
		{DT_I8, {2, {126, 3}, {0, 128}, 0}, true, true, true, 63, 128, 0, 0},
		{DT_I8, {2, {127, 3}, {0, 128}, 16}, false, false, false, 0, 0, 0, 0},
		{DT_I8, {2, {126, 3}, {0, 127}, 16}, false, false, false, 0, 0, 0, 0},
		{DT_F8E4M3, {2, {126, 3}, {0, 126}, 0}, false, false, false, 0, 0, 0, 0}, /* rows of 126 bytes, and nobody copies */
		{DT_F8E4M3, {2, {126, 3}, {0, 126}, 16}, true, false, false, 63, 126, 3 * 128, 8},
		{DT_F8E4M3, {2, {130, 3}, {0, 130}, 16}, true, false, false, 65, 130, 3 * 256, 9},
		{DT_U8, {2, {144, 3}, {0, 144}, 128}, true, true, false, 72, 144, 3 * 256, 9}, /* no whole lines */
		{DT_U8, {2, {112, 3}, {0, 144}, 16}, true, true, true, 56, 144, 3 * 128, 7}, /* a slice: the first may begin anywhere */
		{DT_U8, {2, {2, 3}, {0, 16}, 0}, true, true, true, 1, 16, 0, 0},
		{DT_I4, {2, {256, 3}, {0, 256}, 0}, true, true, true, 64, 128, 0, 0},
		{DT_I4, {2, {252, 3}, {0, 256}, 0}, true, true, true, 63, 128, 0, 0},
		{DT_I4, {2, {254, 3}, {0, 256}, 16}, false, false, false, 0, 0, 0, 0},
		{DT_I4, {2, {253, 3}, {0, 256}, 16}, false, false, false, 0, 0, 0, 0},
		{DT_I4, {2, {252, 3}, {0, 254}, 16}, false, false, false, 0, 0, 0, 0},
		{DT_I4, {2, {252, 1}, {0, 254}, 0}, true, true, true, 63, 16, 0, 0}, /* of one row no stride counts */
		{DT_U4, {2, {252, 3}, {0, 252}, 0}, false, false, false, 0, 0, 0, 0},
		{DT_U4, {2, {252, 3}, {0, 252}, 16}, true, false, false, 63, 126, 3 * 128, 8},
		{DT_U4, {2, {288, 3}, {0, 288}, 128}, true, true, false, 72, 144, 3 * 256, 9},
		{DT_F4E2M1, {3, {28, 3, 5}, {0, 28, 84}, 16}, true, false, false, 7, 14, 15 * 128, 1},
		{DT_F4E2M1, {3, {32, 3, 5}, {0, 32, 98}, 16}, false, false, false, 0, 0, 0, 0},
		{DT_F4E2M1, {2, {4, 3}, {0, 32}, 0}, true, true, true, 1, 16, 0, 0},
		/* as far as a map's rows are from one another, in elements of any type */
		{DT_I4, {2, {32, 3}, {0, (INT64_C(1) << 37) - 32}, 0}, true, true, true, 8, (INT64_C(1) << 36) - 16, 0, 0},
		{DT_I4, {2, {32, 3}, {0, INT64_C(1) << 37}, 0}, false, false, false, 0, 0, 0, 0},
	};
	texo_kernel k = kernel_of();
	(void)state;
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		MapRows r;
		ImageMap m = map_of(&row[n].rows);
		m.dtype = row[n].t;
		m.box[0] = 1024 / element_of(row[n].t)->bits;
		if (map_rows(&k, &m, row[n].rows.pitch, &r) != row[n].there)
			fail_msg("row %u: %d", n, row[n].there);
		if (!row[n].there)
			continue;
		assert_int_equal(r.direct, row[n].direct);
		assert_int_equal(r.wanted, row[n].wanted);
		assert_int_equal(r.extent[0], row[n].extent);
		assert_int_equal(r.stride[0], 2);
		assert_int_equal(r.stride[1], row[n].stride);
		assert_int_equal(r.box[0], 64);
		assert_int_equal(r.box[1], 1);
		assert_int_equal(r.extent[1], row[n].rows.extent[1]);
		assert_int_equal(r.room, row[n].room);
		assert_true(!row[n].room || r.pieces == row[n].piece);
	}
}

/* A first axis that does not lie side by side has none; a number below 0 is one of the kernel's scalars. */
static void
numbers_of_the_launch(void **state)
{
	texo_kernel k = kernel_of();
	ImageMap m = map_of(&(Rows){2, {8, 3}, {0, 8}, 0});
	MapRows r;
	(void)state;
	m.stride[0] = 2;
	assert_false(map_rows(&k, &m, 0, &r));
	m.dtype = DT_I4; /* nor where all of it is one of the map's */
	m.extent[0] = m.box[0] = 4;
	m.stride[1] = 32;
	assert_false(map_rows(&k, &m, 0, &r));
	m.stride[0] = -1;
	m.extent[1] = -2;
	scalar[0] = 2;
	scalar[1] = 5;
	assert_false(map_rows(&k, &m, 0, &r));
	scalar[0] = 1;
	assert_true(map_rows(&k, &m, 0, &r));
	assert_int_equal(r.extent[1], 5);
	scalar[1] = 0;
	assert_false(map_rows(&k, &m, 0, &r));
}

/* Boxes have at most 256 places along an axis, steps of at most 8 between them. */
static void
boxes(void **state)
{
	static const struct {
		int64_t box, step;
		bool there;
	} row[] = {{1, 1, true}, {256, 1, true}, {257, 1, false}, {32, 8, true}, {33, 8, false}, {1, 9, false}, {0, 1, false}, {1, 0, false}, {-1, 1, false}};
	texo_kernel k = kernel_of();
	(void)state;
	scalar[0] = (uint64_t)INT64_C(-5); /* what -1 is */
	for (unsigned n = 0; n < sizeof row / sizeof *row; n++) {
		MapRows r;
		ImageMap m = map_of(&(Rows){2, {8, 3}, {0, 8}, 0});
		m.box[1] = row[n].box;
		m.step[1] = row[n].step;
		assert_int_equal(map_rows(&k, &m, 0, &r), row[n].there);
	}
}

/* All copies of a kernel, and as much as they need to begin with a line; nothing where there are none. */
static void
room_for_all(void **state)
{
	static const Rows rows[] = {{2, {7, 3}, {0, 7}, 16}, {2, {8, 3}, {0, 8}, 16}, {2, {100, 5}, {0, 101}, 16}, {2, {8, 0}, {0, 8}, 16}};
	enum { MAPS = sizeof rows / sizeof *rows };
	ImageMap map[MAPS];
	texo_program p = {.image.map = map};
	texo_kernel k = kernel_of();
	int64_t bytes;
	(void)state;
	k.program = &p;
	for (unsigned n = 0; n < MAPS; n++)
		map[n] = map_of(&rows[n]);
	assert_true(map_rows_bytes(&k, &(ImageKernel){.nmap = MAPS}, 16, &bytes));
	assert_int_equal(bytes, 3 * 128 + 5 * 256 + 128);
	assert_true(map_rows_bytes(&k, &(ImageKernel){.map0 = 1, .nmap = 1}, 16, &bytes));
	assert_int_equal(bytes, 0);
	assert_true(map_rows_bytes(&k, &(ImageKernel){.nmap = MAPS}, 0, &bytes));
	assert_int_equal(bytes, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(copies_are_as_large_as_needed), cmocka_unit_test(thirds_are_copies), cmocka_unit_test(units_of_narrow_elements),
	                                   cmocka_unit_test(numbers_of_the_launch), cmocka_unit_test(boxes), cmocka_unit_test(room_for_all)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
