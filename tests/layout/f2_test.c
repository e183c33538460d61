/* f2_test.c: linear algebra over two elements, on all small maps and spaces. */
#include "model.h"

enum { IN = 3, OUT = 3, WIDE = 4 };

static F2Map
map_numbered(unsigned n, unsigned bits, unsigned number)
{
	F2Map m = {.n = n};
	for (unsigned i = 0; i < n; i++, number >>= bits)
		m.col[i] = number % (1u << bits);
	return m;
}

static uint64_t
image_of(const F2Map *m, unsigned x)
{
	uint64_t y = 0;
	for (unsigned i = 0; i < m->n; i++)
		y ^= (x >> i & 1) * m->col[i];
	return y;
}

static void
maps(void **state)
{
	(void)state;
	for (unsigned number = 0; number < 1u << (IN * OUT); number++) {
		F2Map m = map_numbered(IN, OUT, number);
		uint64_t kernel[F2_MAX];
		unsigned image = 0, zeros = 0, n = f2_kernel(&m, kernel);
		for (unsigned x = 0; x < 1u << IN; x++) {
			image |= 1u << image_of(&m, x);
			zeros += image_of(&m, x) == 0;
		}
		assert_int_equal(1u << f2_rank(m.col, m.n), f2_weight(image));
		assert_int_equal(1u << n, zeros);
		assert_int_equal(f2_rank(kernel, n), n);
		for (unsigned i = 0; i < n; i++)
			assert_int_equal(image_of(&m, (unsigned)kernel[i]), 0);
	}
}

/* The set of sums, as a bit for each vector. */
static unsigned
span(const uint64_t *v, unsigned n)
{
	unsigned set = 1;
	for (unsigned i = 0; i < n; i++)
		for (unsigned x = 0; x < 1u << WIDE; x++)
			if (set >> x & 1)
				set |= 1u << (x ^ v[i]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned x = 0; x < 1u << WIDE; x++)
			if (set >> x & 1)
				set |= 1u << (x ^ v[i]);
	return set;
}

static void
meet_of(const uint64_t *a, const uint64_t *b, uint64_t z)
{
	F2Basis modulo = {0};
	uint64_t out[F2_MAX], az[3] = {a[0], a[1], z}, bz[3] = {b[0], b[1], z};
	f2_add(&modulo, z, 0);
	unsigned n = f2_meet(&modulo, a, 2, b, 2, out);
	for (unsigned i = 0; i < n; i++)
		assert_true(span(a, 2) >> out[i] & 1);
	out[n] = z;
	assert_int_equal(span(out, n + 1), span(az, 3) & span(bz, 3));
	assert_int_equal(f2_rank(out, n + 1), n + modulo.n);
}

static void
meets(void **state)
{
	(void)state;
	for (unsigned x = 0; x < 1u << (4 * WIDE); x++) {
		uint64_t a[2] = {x % 16, x / 16 % 16}, b[2] = {x / 256 % 16, x / 4096 % 16};
		meet_of(a, b, x * 7 % 16);
	}
}

/* A basis remembers what made each of its rows. */
static void
memory(void **state)
{
	(void)state;
	for (unsigned number = 0; number < 1u << (3 * WIDE); number++) {
		F2Map m = map_numbered(3, WIDE, number);
		F2Basis b = {0};
		for (unsigned i = 0; i < 3; i++)
			f2_add(&b, m.col[i], UINT64_C(1) << i);
		for (unsigned y = 0; y < 1u << WIDE; y++) {
			uint64_t how = 0, left = f2_reduce(&b, y, &how);
			assert_int_equal(left == 0, span(m.col, 3) >> y & 1);
			assert_int_equal(image_of(&m, (unsigned)how) ^ left, y);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(maps),
		cmocka_unit_test(meets),
		cmocka_unit_test(memory),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
