/* tir_ops_test.c: every operation on every type it is legal on, through a kernel, scalar and vector,
 * against expectations computed another way: integers in 128 bits, floats in long double. What the
 * verifier admits and what the interpreter can do are the same. */
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "ir/tir_lanes.h"
#include "ir/tir_slot.h"
#include "tir_fixture.h"

typedef __int128 Wide;
typedef unsigned __int128 UWide;

enum { SAMPLES = 1024, LANES = 8, NSPECIAL = 25 };

/* --- samples --- */

static uint64_t
next_random(uint64_t *s)
{
	*s ^= *s << 13;
	*s ^= *s >> 7;
	*s ^= *s << 17;
	return *s * UINT64_C(0x2545f4914f6cdd1d);
}

static const double special[NSPECIAL] = {
	0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 3.75, -3.75, 1e-40, -1e-310, (double)INFINITY, -(double)INFINITY,
	(double)NAN, 8388608.5, 16777215, DBL_MAX, DBL_MIN, FLT_MAX, -FLT_MIN, 1e30, -88.5, 4503599627370496.5};

static uint64_t
float_sample(DType t, uint64_t r)
{
	unsigned kind = r % 4;
	if (kind == 0)
		return slot_encode(t, special[(r >> 8) % NSPECIAL]);
	if (kind == 1)
		return slot_encode(t, (double)(int64_t)(r >> 8) / 9e14);
	return t == DT_F64 ? r * 3 : (uint32_t)(r >> 13);
}

static uint64_t
int_sample(DType t, uint64_t r)
{
	unsigned bits = dtype_info[t].bits;
	uint64_t v = r >> 9;
	switch (r % 5) {
	case 0: v = v % 9 - 4; break;
	case 1: v = (UINT64_C(1) << (bits - 1)) + v % 3 - 1; break;
	case 2: v = v % (bits + 3); break;
	default: v = r * 7; break;
	}
	return (uint64_t)slot_wrap(t, (int64_t)v);
}

/* Operand a of case i: first every pair of special values, then anything. */
static uint64_t
sample(DType t, unsigned i, unsigned a, uint64_t r)
{
	if (!dtype_is_float(t))
		return int_sample(t, r);
	if (dtype_info[t].arith != t)
		return r >> 7 & ((1u << dtype_info[t].bits) - 1);
	if (i < NSPECIAL * NSPECIAL && a < 2)
		return slot_encode(t, special[a ? i % NSPECIAL : i / NSPECIAL]);
	return float_sample(t, r);
}

/* --- integers, in 128 bits --- */

static Wide
wide(DType t, uint64_t slot)
{
	return dtype_info[t].kind == KIND_INT ? (Wide)(int64_t)slot : (Wide)slot;
}

static Wide
wide_floor_div(Wide x, Wide y)
{
	Wide q = x / y;
	return q * y != x && (x < 0) != (y < 0) ? q - 1 : q;
}

/* From the highest bit of the exponent down, keeping 64 bits. */
static Wide
wide_pow(Wide x, Wide y)
{
	if (y < 0)
		return x == 1 ? 1 : x == 0 ? -1 : x != -1 ? 0 : y % 2 ? -1 : 1;
	UWide r = 1;
	for (int b = 63; b >= 0; b--) {
		r = r * r & UINT64_MAX;
		if (y >> b & 1)
			r = r * ((UWide)x & UINT64_MAX) & UINT64_MAX;
	}
	return (Wide)r;
}

static Wide
bit_by_bit(Op op, Wide x, Wide y)
{
	Wide r = 0;
	for (int b = 63; b >= 0; b--) {
		int p = (int)(x >> b & 1), q = (int)(y >> b & 1);
		r = 2 * r + (op == OP_BAND ? p + q == 2 : op == OP_BOR ? p + q > 0 : p + q == 1);
	}
	return r;
}

static Wide
shifted(DType t, Op op, Wide x, Wide y)
{
	if (y >= dtype_info[t].bits)
		return 0;
	for (; y > 0; y--)
		x = op == OP_SHL ? x * 2 : x / 2;
	return x;
}

/* --- floats --- */

static long double
to_long(DType t, uint64_t slot)
{
	double d;
	float s;
	uint32_t low = (uint32_t)slot;
	memcpy(&d, &slot, sizeof d);
	memcpy(&s, &low, sizeof s);
	return t == DT_F64 ? d : s;
}

static long double
half_even(long double x)
{
	long double r = floorl(x), d = x - r;
	if (d > 0.5L || (d == 0.5L && fmodl(r, 2) != 0))
		r += 1;
	return copysignl(r, x);
}

static long double
extreme(Op op, long double x, long double y)
{
	if (isnan(x) || isnan(y))
		return NAN;
	if (x == 0 && y == 0)
		return op == OP_MIN ? (signbit(x) || signbit(y) ? -0.0L : 0.0L)
		                    : (signbit(x) && signbit(y) ? -0.0L : 0.0L);
	return (op == OP_MIN) == (x < y) ? x : y;
}

/* Within `ulps` units of the type of ref, which itself is good to 2^-60; equal where ref is special. */
static bool
is_near(DType t, uint64_t slot, long double ref, long double ulps)
{
	long double got = to_long(t, slot);
	long double rounded = t == DT_F64 ? (long double)(double)ref : (long double)(float)ref;
	if (isnan(rounded) || isnan(got))
		return isnan(rounded) && isnan(got);
	if (got == rounded)
		return !signbit(got) == !signbit(rounded);
	int e;
	frexpl(ref, &e);
	long double unit = t == DT_F64 ? ldexpl(1, e < -1021 ? -1074 : e - 53) : ldexpl(1, e < -125 ? -149 : e - 24);
	return isfinite(got) && fabsl(got - ref) <= ulps * unit * (1 + 0x1p-9L);
}

/* --- what each operation must give --- */

typedef struct {
	Op op;
	DType t;
	uint64_t in[3];
} Case;

static bool
int_result(const Case *c, uint64_t got)
{
	Wide x = wide(c->t, c->in[0]), y = wide(c->t, c->in[1]), r = 0;
	switch (c->op) {
	case OP_ADD: r = x + y; break;
	case OP_SUB: r = x - y; break;
	case OP_MUL: r = (Wide)((UWide)x * (UWide)y); break;
	case OP_IDIV: r = y ? wide_floor_div(x, y) : -1; break;
	case OP_IMOD: r = y ? x - y * wide_floor_div(x, y) : x; break;
	case OP_POW: r = wide_pow(x, y); break;
	case OP_NEG: r = -x; break;
	case OP_ABS: r = x < 0 ? -x : x; break;
	case OP_SIGN: r = x < 0 ? -1 : x != 0; break;
	case OP_MIN: r = x < y ? x : y; break;
	case OP_MAX: r = x > y ? x : y; break;
	case OP_SHL: case OP_SHR: r = shifted(c->t, c->op, x, y); break;
	case OP_BAND: case OP_BOR: case OP_BXOR: r = bit_by_bit(c->op, x, y); break;
	case OP_AND: r = x + y == 2; break;
	case OP_OR: r = x + y > 0; break;
	case OP_NOT: r = 1 - x; break;
	default: return false;
	}
	return got == (uint64_t)slot_wrap(c->t, (int64_t)r);
}

/* Units' results: as far from the exact ones as ops.def says, but the same where those are 0, infinite or NaN. */
static bool
unit_result(const Case *c, uint64_t got)
{
	long double x = to_long(c->t, c->in[0]), y = to_long(c->t, c->in[1]), r, far = 0, ulps = 0;
	switch (c->op) {
	case OP_LG2: r = log2l(x); far = x > 0.5L && x < 2 ? 0x1p-22L : 0; ulps = far > 0 ? 0 : 2; break;
	case OP_NEAR_DIV: r = x / y; ulps = 2; break;
	case OP_NEAR_SQRT: r = sqrtl(x); far = r * 0x1p-23L; break;
	case OP_NEAR_RSQRT: r = 1 / sqrtl(x); ulps = 2; break;
	case OP_NEAR_TANH: r = tanhl(x); far = fabsl(r) * 0x1p-11L; break;
	case OP_NEAR_SIN: r = sinl(x); far = exp2l(-20.5L); break;
	case OP_NEAR_COS: r = cosl(x); far = exp2l(-20.5L); break;
	case OP_FLUSH_MUL:
		x = fabsl(x) < 0x1p-126L ? copysignl(0, x) : x, y = fabsl(y) < 0x1p-126L ? copysignl(0, y) : y;
		r = fabsl((float)(x * y)) < 0x1p-126L ? copysignl(0, x * y) : x * y;
		ulps = 0.5L;
		break;
	default: return false;
	}
	return is_near(c->t, got, r, ulps) || (isfinite(r) && fabsl(to_long(c->t, got) - r) <= far * (1 + 0x1p-40L));
}

static bool
math_result(const Case *c, uint64_t got)
{
	long double x = to_long(c->t, c->in[0]), y = to_long(c->t, c->in[1]), r, ulps = c->t == DT_F64 ? 2 : 0.52L;
	switch (c->op) {
	case OP_POW: r = powl(x, y); break;
	case OP_RSQRT: r = 1 / sqrtl(x); break;
	case OP_EXP: r = expl(x); break;
	case OP_EXP2: r = exp2l(x); break;
	case OP_EX2: r = x < -126 ? 0 : exp2l(x); break;
	case OP_RCP: r = fabsl(x) < 0x1p-126L ? copysignl(INFINITY, x) : fabsl(x) > 0x1p126L ? copysignl(0, x) : 1 / x; break;
	case OP_EXPM1: r = expm1l(x); break;
	case OP_LOG: r = logl(x); break;
	case OP_LOG2: r = log2l(x); break;
	case OP_LOG1P: r = log1pl(x); break;
	case OP_TANH: r = tanhl(x); break;
	case OP_ERF: r = erfl(x); break;
	case OP_SIN: r = sinl(x); break;
	case OP_COS: r = cosl(x); break;
	default: return unit_result(c, got);
	}
	return is_near(c->t, got, r, ulps);
}

static bool
float_result(const Case *c, uint64_t got)
{
	long double x = to_long(c->t, c->in[0]), y = to_long(c->t, c->in[1]), z = to_long(c->t, c->in[2]);
	uint64_t sign = UINT64_C(1) << (dtype_info[c->t].bits - 1);
	switch (c->op) {
	case OP_ADD: return is_near(c->t, got, x + y, 0.5L);
	case OP_SUB: return is_near(c->t, got, x - y, 0.5L);
	case OP_MUL: return is_near(c->t, got, x * y, 0.5L);
	case OP_FDIV: return is_near(c->t, got, x / y, 0.5L);
	case OP_SQRT: return is_near(c->t, got, sqrtl(x), 0.5L);
	case OP_FMA: return is_near(c->t, got, fmal(x, y, z), 0.5L);
	case OP_SCALE: return is_near(c->t, got, !isfinite(y) ? (long double)NAN : scalbnl(x, (int)fmaxl(-30000, fminl(floorl(y), 30000))), 0.5L);
	case OP_NEG: return isnan(x) ? isnan(to_long(c->t, got)) : got == (c->in[0] ^ sign);
	case OP_ABS: return isnan(x) ? isnan(to_long(c->t, got)) : got == (c->in[0] & ~sign);
	case OP_SIGN: return is_near(c->t, got, isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0, 0);
	case OP_MIN: case OP_MAX: return is_near(c->t, got, extreme(c->op, x, y), 0);
	case OP_FLOOR: return is_near(c->t, got, floorl(x), 0);
	case OP_CEIL: return is_near(c->t, got, ceill(x), 0);
	case OP_TRUNC: return is_near(c->t, got, truncl(x), 0);
	case OP_ROUND: return is_near(c->t, got, isfinite(x) ? half_even(x) : x, 0);
	case OP_ISNAN: return got == (uint64_t)!!isnan(x);
	default: return math_result(c, got);
	}
}

static bool
compare_result(const Case *c, uint64_t got)
{
	bool less, equal, ordered = true;
	if (dtype_is_float(c->t)) {
		long double x = to_long(c->t, c->in[0]), y = to_long(c->t, c->in[1]);
		ordered = !isnan(x) && !isnan(y);
		less = ordered && y - x > 0;
		equal = ordered && !less && !(x - y > 0);
	} else {
		Wide d = wide(c->t, c->in[0]) - wide(c->t, c->in[1]);
		less = d < 0;
		equal = d == 0;
	}
	bool want = c->op == OP_EQ ? equal : c->op == OP_NE ? !equal : less || (c->op == OP_LE && equal);
	return got == want;
}

static bool
is_expected(const Case *c, uint64_t got)
{
	if (c->op == OP_SELECT)
		return got == c->in[c->in[0] ? 1 : 2];
	if (op_info[c->op].sig == SIG_CMP)
		return compare_result(c, got);
	return dtype_is_float(c->t) ? float_result(c, got) : int_result(c, got);
}

/* --- running --- */

static DType
operand_type(const Case *c, unsigned n)
{
	return c->op == OP_SELECT && n == 0 ? DT_BOOL : c->t;
}

static DType
result_type(const Case *c)
{
	return op_info[c->op].sig == SIG_CMP || c->op == OP_ISNAN ? DT_BOOL : c->t;
}

/* y[i] = op(x0[i], x1[i], x2[i]) for i in 0..SAMPLES, with or without vectors. */
static TirKernel *
op_kernel(Fixture *f, const Case *c, unsigned lanes)
{
	TirKernel *k = fixture_kernel(f);
	unsigned arity = (unsigned)op_info[c->op].arity;
	ValId n = tir_int(k, DT_I64, SAMPLES), one = tir_int(k, DT_I64, 1), zero = tir_int(k, DT_I64, 0);
	ValId view[4], arg[3];
	int64_t along = lanes ? TIR_LANES_ALONG(0) : 0;
	for (unsigned a = 0; a <= arity; a++) {
		DType t = a == arity ? result_type(c) : operand_type(c, a);
		view[a] = tir_view(k, tir_add_buffer(k, 0, t, a == arity), 1, &n, &one);
	}
	ValId i = tir_for(k, zero, n, tir_int(k, DT_I64, lanes ? lanes : 1), NULL, 0);
	for (unsigned a = 0; a < arity; a++)
		arg[a] = tir_load(k, view[a], &i, 0, along, lanes);
	ValId v = tir_emit(k, c->op, (TirType){(uint8_t)result_type(c), (uint16_t)lanes}, 0, arg, arity);
	tir_store(k, view[arity], v, &i, 0, along);
	tir_end_for(k, NULL, 0);
	return k;
}

static void
run_op(Fixture *f, Case c, unsigned lanes)
{
	TirKernel *k = op_kernel(f, &c, lanes);
	fixture_round_trip(f, k);
	unsigned arity = (unsigned)op_info[c.op].arity;
	static uint64_t in[3][SAMPLES];
	static unsigned char bytes[4][SAMPLES * 8];
	TirMemory memory[4];
	uint64_t seed = 0x9e3779b97f4a7c15u + c.op * 97u + c.t;
	for (unsigned a = 0; a <= arity; a++)
		memory[a] = (TirMemory){bytes[a], SAMPLES * 8};
	for (unsigned i = 0; i < SAMPLES; i++)
		for (unsigned a = 0; a < arity; a++) {
			in[a][i] = sample(operand_type(&c, a), i, a, next_random(&seed));
			slot_store(operand_type(&c, a), bytes[a], i, in[a][i]);
		}
	TirRun run = {.buffer = memory};
	const char *error = "";
	if (!tir_interpret(k, &f->arena, &run, &error))
		fail_msg("%s", error);
	for (unsigned i = 0; i < SAMPLES; i++) {
		for (unsigned a = 0; a < arity; a++)
			c.in[a] = in[a][i];
		uint64_t got = slot_load(result_type(&c), bytes[arity], i);
		if (!is_expected(&c, got))
			fail_msg("%s on %s: %#llx %#llx %#llx gives %#llx", op_info[c.op].text,
			         dtype_info[c.t].text, (unsigned long long)c.in[0], (unsigned long long)c.in[1],
			         (unsigned long long)c.in[2], (unsigned long long)got);
	}
}

static bool
has_own_test(Op op)
{
	return op == OP_CAST || op == OP_BITCAST || op == OP_SPLAT || op == OP_LANE || op == OP_SLIDE ||
	       op == OP_HALF || op == OP_WEAVE || op == OP_JOIN || op == OP_PICK || op == OP_ANY;
}

static void
every_row(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	unsigned ran = 0;
	for (int op = 1; op < OP_COUNT; op++) {
		if (op_info[op].cls != CLASS_MAP || !(op_info[op].level & LEVEL_L) || has_own_test((Op)op))
			continue;
		unsigned legal = 0;
		for (int t = 1; t < DT_COUNT; t++) {
			Case c = {.op = (Op)op, .t = (DType)t};
			const char *error;
			bool can = lane_function(c.op, c.t) != NULL || (op == OP_SELECT && t != DT_C64);
			assert_int_equal(t != DT_C64 && tir_verify(op_kernel(f, &c, 0), &f->arena, &error), can);
			if (!can)
				continue;
			run_op(f, c, 0);
			run_op(f, c, LANES);
			legal++;
		}
		assert_true(legal > 0);
		ran += legal;
	}
	assert_int_equal(ran, 182);
}

/* Legal types by the table of ir/README.md. */
static void
legal_types(void **state)
{
	(void)state;
	static const struct {
		Op op;
		const char *types;
	} rows[] = {
		{OP_ADD, "f64 f32 i64 i32 u64 u32 "}, {OP_MAX, "f64 f32 i64 i32 u64 u32 "},
		{OP_FDIV, "f64 f32 "}, {OP_EXP, "f64 f32 "}, {OP_FMA, "f64 f32 "}, {OP_SCALE, "f64 f32 "}, {OP_EX2, "f32 "}, {OP_RCP, "f32 "}, {OP_LG2, "f32 "}, {OP_NEAR_DIV, "f32 "}, {OP_ISNAN, "f64 f32 "},
		{OP_IDIV, "i64 i32 u64 u32 "}, {OP_POW, "f64 f32 i64 i32 u64 u32 "},
		{OP_LT, "f64 f32 i64 i32 u64 u32 bool "}, {OP_AND, "bool "}, {OP_NOT, "bool "},
		{OP_SHL, "u64 u32 u16 u8 "}, {OP_BXOR, "u64 u32 u16 u8 "},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		char types[200] = "";
		for (int t = 1; t < DT_COUNT; t++)
			if (lane_function(rows[i].op, (DType)t))
				strcat(strcat(types, dtype_info[t].text), " ");
		assert_string_equal(types, rows[i].types);
	}
}

/* Where rounding twice, or not fusing, would show. */
static void
fused(void **state)
{
	(void)state;
	LaneFn *fma32 = lane_function(OP_FMA, DT_F32), *fma64 = lane_function(OP_FMA, DT_F64);
	LaneFn *mul = lane_function(OP_MUL, DT_F32), *add = lane_function(OP_ADD, DT_F32);
	uint64_t x = slot_encode(DT_F32, 1 + 0x1p-23), z = slot_encode(DT_F32, -(1 + 0x1p-22)), r;
	fma32(&r, &x, &x, &z, 1);
	assert_true(slot_decode(DT_F32, r) == 0x1p-46);
	mul(&r, &x, &x, NULL, 1);
	add(&r, &r, &z, NULL, 1);
	assert_true(slot_decode(DT_F32, r) == 0);
	uint64_t c = slot_encode(DT_F32, 1 + 0x1p-23);
	uint64_t half = slot_encode(DT_F32, 0x1p-12), tiny = slot_encode(DT_F32, 0x1p-12 + 0x1p-35);
	fma32(&r, &half, &tiny, &c, 1); /* 1 + 2^-23 + 2^-24 + 2^-47 */
	assert_true(slot_decode(DT_F32, r) == 1 + 0x1p-22);
	/* the product is 2^-24 + 2^-70: in double the sum would lose the latter, and then be even */
	uint64_t p = slot_encode(DT_F32, 8384513 * 0x1p-35), q = slot_encode(DT_F32, 8392705 * 0x1p-35);
	uint64_t one = slot_encode(DT_F32, 1);
	fma32(&r, &p, &q, &one, 1);
	assert_true(slot_decode(DT_F32, r) == 1 + 0x1p-23);
	uint64_t d = slot_encode(DT_F64, 1 + 0x1p-52), e = slot_encode(DT_F64, -(1 + 0x1p-51));
	fma64(&r, &d, &d, &e, 1);
	assert_true(slot_decode(DT_F64, r) == 0x1p-104);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_row),
		TEST(legal_types),
		TEST(fused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
