/* tir_slot_test.c: every cast from every 16-, 8- and 4-bit code, and from wide values at and around
 * every boundary, against a reference that decodes by the definition and searches the nearest code. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "ir/tir_slot.h"
#include "tir_fixture.h"

/* --- the reference --- */

typedef struct {
	int exponent, mantissa, bias; /* bits, bits, offset */
	bool ieee;                    /* the top exponent is infinity and NaN */
} Shape;

static const Shape shapes[DT_COUNT] = {
	[DT_F16] = {5, 10, 15, true}, [DT_BF16] = {8, 7, 127, true},    [DT_F8E4M3] = {4, 3, 7, false},
	[DT_F8E5M2] = {5, 2, 15, true}, [DT_F4E2M1] = {2, 1, 1, false},
};

static const DType narrow[] = {DT_F16, DT_BF16, DT_F8E4M3, DT_F8E5M2, DT_F4E2M1, DT_E8M0};
static const DType all[] = {DT_F64, DT_F32, DT_F16, DT_BF16, DT_F8E4M3, DT_F8E5M2, DT_F4E2M1, DT_E8M0,
                            DT_I64, DT_I32, DT_I16, DT_I8, DT_I4, DT_U64, DT_U32, DT_U16, DT_U8, DT_U4,
                            DT_BOOL};
enum { NNARROW = sizeof narrow / sizeof narrow[0], NALL = sizeof all / sizeof all[0] };

static long double
ref_decode(DType t, unsigned code)
{
	if (t == DT_E8M0)
		return code == 255 ? NAN : ldexpl(1, (int)code - 127);
	const Shape *s = &shapes[t];
	unsigned m = code & ((1u << s->mantissa) - 1), e = code >> s->mantissa & ((1u << s->exponent) - 1);
	unsigned top = (1u << s->exponent) - 1;
	long double sign = code >> (s->mantissa + s->exponent) ? -1 : 1;
	if (s->ieee && e == top)
		return m ? NAN : sign * INFINITY;
	if (t == DT_F8E4M3 && e == top && m == 7)
		return NAN;
	long double fraction = (long double)m / (1u << s->mantissa);
	return e ? sign * ldexpl(1 + fraction, (int)e - s->bias) : sign * ldexpl(fraction, 1 - s->bias);
}

static long double table[DT_COUNT][65536]; /* values of the non-negative codes, ascending */
static unsigned finite[DT_COUNT];          /* how many are finite */

static void
fill_tables(void)
{
	for (unsigned i = 0; i < NNARROW; i++) {
		DType t = narrow[i];
		unsigned n = t == DT_E8M0 ? 256 : 1u << (dtype_info[t].bits - 1);
		for (unsigned c = 0; c < n; c++)
			table[t][c] = ref_decode(t, c);
		while (finite[t] < n && isfinite(table[t][finite[t]]))
			finite[t]++;
	}
}

/* The index of the value nearest to m >= 0 among n ascending ones, the even index on ties. */
static unsigned
nearest(const long double *v, unsigned n, long double m)
{
	unsigned lo = 0, hi = n - 1; /* v[lo] <= m < v[hi], or at an end */
	if (m <= v[0] || m >= v[n - 1])
		return m <= v[0] ? 0 : n - 1;
	while (hi - lo > 1) {
		unsigned mid = (lo + hi) / 2;
		if (v[mid] <= m)
			lo = mid;
		else
			hi = mid;
	}
	long double below = m - v[lo], above = v[hi] - m;
	return below < above || (below == above && lo % 2 == 0) ? lo : hi;
}

enum { ANY_NAN = 1 << 20 };

static unsigned
ref_encode(DType t, long double v)
{
	unsigned n = finite[t], sign = signbit(v) ? 1u << (dtype_info[t].bits - 1) : 0;
	if (t == DT_E8M0)
		return isnan(v) || v < 0 ? ANY_NAN : nearest(table[t], n, fabsl(v));
	if (isnan(v))
		return t == DT_F4E2M1 ? 0 : ANY_NAN;
	long double m = fabsl(v), last = table[t][n - 1], beyond = last + (last - table[t][n - 2]) / 2;
	if (shapes[t].ieee && m >= beyond)
		return n | sign;
	return nearest(table[t], n, m) | sign;
}

/* --- comparison --- */

static long double
value_of(DType t, uint64_t slot)
{
	if (t == DT_F64 || t == DT_F32) {
		double d;
		float s;
		uint32_t low = (uint32_t)slot;
		memcpy(&d, &slot, sizeof d);
		memcpy(&s, &low, sizeof s);
		return t == DT_F64 ? d : s;
	}
	if (dtype_is_float(t))
		return ref_decode(t, (unsigned)slot);
	return dtype_info[t].kind == KIND_INT ? (long double)(int64_t)slot : (long double)slot;
}

/* Modulo 2^bits, in the type's range. */
static long double
ref_wrap(DType t, long double v)
{
	long double span = ldexpl(1, dtype_info[t].bits), r = fmodl(v, span);
	if (r < 0)
		r += span;
	return dtype_info[t].kind == KIND_INT && r >= span / 2 ? r - span : r;
}

static long double
ref_int(DType to, DType from, long double v)
{
	if (dtype_info[to].kind == KIND_BOOL)
		return !(v == 0);
	if (!dtype_is_float(from))
		return ref_wrap(to, v);
	bool is_signed = dtype_info[to].kind == KIND_INT;
	long double hi = ldexpl(1, dtype_info[to].bits - is_signed) - 1;
	long double lo = is_signed ? -hi - 1 : 0;
	v = isnan(v) ? 0 : truncl(v);
	return v < lo ? lo : v > hi ? hi : v;
}

static void
check(DType to, DType from, uint64_t slot)
{
	long double v = value_of(from, slot), want;
	uint64_t got = slot_cast(to, from, slot);
	bool ok;
	if (to == from) {
		ok = got == slot;
	} else if (to == DT_F64 || to == DT_F32) {
		want = to == DT_F64 ? (long double)(double)v : (long double)(float)v;
		long double is = value_of(to, got);
		ok = isnan(want) ? isnan(is) : is == want && !signbit(is) == !signbit(want);
	} else if (dtype_is_float(to)) {
		unsigned code = ref_encode(to, v);
		ok = code == ANY_NAN ? isnan(ref_decode(to, (unsigned)got)) : got == code;
	} else {
		ok = value_of(to, got) == ref_int(to, from, v);
	}
	if (!ok)
		fail_msg("%s(%s %.20Lg) is %#llx", dtype_info[to].text, dtype_info[from].text, v,
		         (unsigned long long)got);
}

static void
check_all_targets(DType from, uint64_t slot)
{
	for (unsigned i = 0; i < NALL; i++)
		check(all[i], from, slot);
}

/* --- tests --- */

static void
every_narrow_code(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NALL; i++) {
		DType from = all[i];
		if (dtype_info[from].bits > 16)
			continue;
		unsigned n = from == DT_BOOL ? 2 : 1u << dtype_info[from].bits;
		for (unsigned c = 0; c < n; c++) {
			uint64_t slot = dtype_is_float(from) ? c : (uint64_t)slot_wrap(from, (int64_t)c);
			check_all_targets(from, slot);
		}
	}
}

static uint64_t
double_slot(double v)
{
	uint64_t s;
	memcpy(&s, &v, sizeof s);
	return s;
}

static uint64_t
float_slot(float v)
{
	uint32_t s;
	memcpy(&s, &v, sizeof s);
	return s;
}

/* v and its neighbours, of both signs, from f64 and f32. */
static void
around(DType to, double v)
{
	for (int sign = 0; sign < 2; sign++) {
		double x = sign ? -v : v;
		float y = (float)x;
		check(to, DT_F64, double_slot(x));
		check(to, DT_F64, double_slot(nextafter(x, INFINITY)));
		check(to, DT_F64, double_slot(nextafter(x, -INFINITY)));
		check(to, DT_F32, float_slot(y));
		check(to, DT_F32, float_slot(nextafterf(y, INFINITY)));
		check(to, DT_F32, float_slot(nextafterf(y, -INFINITY)));
	}
}

/* Every code and the middle between any two. */
static void
every_boundary(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NNARROW; i++) {
		DType to = narrow[i];
		const long double *v = table[to];
		for (unsigned c = 0; c < finite[to]; c++) {
			around(to, (double)v[c]);
			around(to, (double)(c + 1 < finite[to] ? (v[c] + v[c + 1]) / 2
			                                       : v[c] + (v[c] - v[c - 1]) / 2));
		}
		around(to, INFINITY);
		around(to, NAN);
		around(to, 0x1p-1074);
		around(to, 0x1p1000);
	}
}

/* Where integers end, and where rounding an integer twice would show. */
static void
wide_integers(void **state)
{
	(void)state;
	for (int bit = 0; bit < 64; bit++)
		for (int low = 0; low < 64; low++)
			for (int d = -1; d <= 1; d++) {
				uint64_t v = (UINT64_C(1) << bit) + (UINT64_C(1) << low) + (uint64_t)d;
				check_all_targets(DT_I64, v);
				check_all_targets(DT_U64, v);
				check_all_targets(DT_I64, 0 - v);
				check_all_targets(DT_I32, (uint64_t)slot_wrap(DT_I32, (int64_t)v));
				check_all_targets(DT_U32, (uint64_t)slot_wrap(DT_U32, (int64_t)v));
			}
}

static void
wide_floats(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NALL; i++) {
		if (dtype_is_float(all[i]))
			continue;
		for (int e = -3; e < 70; e++)
			for (int d = -3; d <= 3; d++) {
				around(all[i], ldexp(1, e) + d * 0.5);
				around(all[i], ldexp(1 + d / 64., e));
			}
		around(all[i], NAN);
		around(all[i], INFINITY);
	}
	for (int e = -1074; e < 1024; e++) {
		around(DT_F32, ldexp(1, e));
		around(DT_F32, ldexp(1 + 0x1p-24, e));
		around(DT_F32, ldexp(1 + 0x3p-24, e));
	}
}

/* Stores change their own bits and no others; loads give back what was stored. */
static void
storage(void **state)
{
	(void)state;
	for (unsigned i = 0; i < NALL; i++) {
		unsigned char bytes[64], before[64];
		DType t = all[i];
		unsigned bits = dtype_info[t].bits;
		for (unsigned n = 0; n < 7; n++) {
			memset(bytes, 0xa5, sizeof bytes);
			memcpy(before, bytes, sizeof bytes);
			uint64_t slot = t == DT_BOOL ? 1 : (UINT64_C(0x123456789abcdef6) >> (64 - bits));
			if (!dtype_is_float(t))
				slot = (uint64_t)slot_wrap(t, (int64_t)slot);
			slot_store(t, bytes, n, slot);
			assert_int_equal(slot_load(t, bytes, n), slot);
			for (unsigned b = 0; b < sizeof bytes * 8; b++)
				if (b < n * bits || b >= (n + 1) * bits)
					assert_int_equal(bytes[b / 8] >> b % 8 & 1, before[b / 8] >> b % 8 & 1);
		}
	}
	unsigned char two = 2;
	assert_int_equal(slot_load(DT_BOOL, &two, 0), 1);
	unsigned char nibbles = 0xf2;
	assert_int_equal((int64_t)slot_load(DT_I4, &nibbles, 1), -1);
	assert_int_equal(slot_load(DT_I4, &nibbles, 0), 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_narrow_code), cmocka_unit_test(every_boundary),
		cmocka_unit_test(wide_integers),     cmocka_unit_test(wide_floats),
		cmocka_unit_test(storage),
	};
	fill_tables();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
