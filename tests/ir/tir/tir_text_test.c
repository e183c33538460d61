/* tir_text_test.c: the text form: constants to the bit, names, messages with their line, and that no
 * text brings the reader, the verifier or the printer down. */
#include <math.h>

#include "tir_fixture.h"

static const char *
read_error(Fixture *f, const char *text, size_t n)
{
	const char *error = "read";
	return tir_read(&f->arena, f->names, text, n, &error) ? "read" : error;
}

static void
constants(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const double doubles[] = {0, -0.0, 1, 0.1, 1e300, -1e-310, 5e-324, (double)INFINITY,
	                                 -(double)INFINITY, 3.141592653589793, 123456789012345680.0};
	TirKernel *k = fixture_kernel(f);
	for (unsigned i = 0; i < sizeof doubles / sizeof doubles[0]; i++) {
		tir_float(k, DT_F64, doubles[i]);
		for (int t = 1; t < DT_COUNT; t++)
			if (t != DT_E8M0 && dtype_is_float((DType)t))
				tir_float(k, (DType)t, doubles[i]);
	}
	ValId one = tir_float(k, DT_F32, 1);
	tir_emit(k, OP_EXP, tir_scalar(DT_F32), TIR_NO_MORE_THAN_0, &one, 1);
	tir_emit(k, OP_EXP2, tir_scalar(DT_F32), DT_BF16 | TIR_NO_MORE_THAN_0, &one, 1);
	tir_emit(k, OP_FDIV, tir_scalar(DT_F32), TIR_MIDDLE, (ValId[]){one, one}, 2);
	tir_float(k, DT_E8M0, 0x1p-127);
	tir_float(k, DT_BF16, (double)NAN);
	tir_float(k, DT_F64, -(double)NAN);
	for (int t = 1; t < DT_COUNT; t++)
		if (!dtype_is_float((DType)t) && t != DT_C64) {
			tir_int(k, (DType)t, -1);
			tir_int(k, (DType)t, INT64_MIN);
			tir_int(k, (DType)t, INT64_MAX);
		}
	fixture_round_trip(f, k);
	TirKernel *again = fixture_read(f, fixture_print(f, k));
	assert_int_equal(again->inst.n, k->inst.n);
	for (ValId v = 1; v < k->inst.n; v++)
		if (!(dtype_is_float((DType)tir_inst(k, v)->type.dtype) && isnan(tir_inst(k, v)->imm.f)))
			assert_int_equal(tir_inst(again, v)->imm.i, tir_inst(k, v)->imm.i);
		else
			assert_true(isnan(tir_inst(again, v)->imm.f));
	/* a vector constant is a splat; a builder's float is rounded to its type */
	TirKernel *v = fixture_read(f, "kernel v {\n%1:f32x8 = const -0\n%2:f32x8 = exp~f16 %1\n%3:f32x8 = exp2 %2\n%4:f32x8 = ex2 %3\n%5:f32x8 = tanh~bf16 %4\n%6:f32x8 = rcp %5\n}\n");
	assert_int_equal(tir_inst(v, 2)->imm.i, DT_F16);
	fixture_round_trip(f, v);
	assert_true(signbit(tir_inst(v, 1)->imm.f));
	assert_true(tir_inst(k, tir_float(k, DT_F16, 0.1))->imm.f == 0.0999755859375);
}

static void
names(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const char *const texts[] = {"a", "a.b_C9", "9a", "", "a b", "\"\\", "\n\x01\x7f", "\xc3\xa9", "buffer"};
	for (unsigned i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		TirKernel *k = tir_new(&f->arena, f->names, name_cstr(f->names, texts[i]));
		tir_add_buffer(k, name_cstr(f->names, texts[i]), DT_U4, i % 2);
		tir_add_scalar(k, name_cstr(f->names, texts[i]), DT_BOOL);
		fixture_round_trip(f, k);
		TirKernel *again = fixture_read(f, fixture_print(f, k));
		assert_string_equal(name_text(f->names, again->name), texts[i]);
		assert_int_equal(again->buffer.at[0].name, k->buffer.at[0].name);
		assert_int_equal(again->buffer.at[0].written, i % 2);
		assert_int_equal(again->scalar.at[0].name, k->scalar.at[0].name);
	}
}

/* Gaps in the numbers stay as they are: messages of the verifier name the same instructions. */
static void
gaps(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_read(f, "kernel k # a comment\n{\n%3:i64 = const 1\n%70:i64 = neg %3 # and one\n}\n");
	assert_string_equal(fixture_print(f, k), "kernel k\n{\n  %3:i64 = const 1\n  %70:i64 = neg %3\n}\n");
	fixture_verify(f, k);
	assert_string_equal(fixture_print(f, fixture_read(f, fixture_print(f, k))), fixture_print(f, k));
}

static void
messages(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	static const struct {
		const char *text, *error;
	} rows[] = {
		{"", "line 1: 'kernel' was expected"},
		{"kernel", "line 1: a name was expected"},
		{"kernel \"a", "line 1: '\"' was expected"},
		{"kernel \"a\nb\"", "line 1: a name ends at its line's end"},
		{"kernel \"\\x\"", "line 1: no such escape in a name"},
		{"kernel \"\\u0000\"", "line 1: no such escape in a name"},
		{"kernel k", "line 1: '{' was expected"},
		{"kernel k\nbuffer 1 a : f32", "line 2: buffers and scalars are numbered from 0"},
		{"kernel k\nbuffer 0 a f32", "line 2: ':' was expected"},
		{"kernel k\nbuffer 0 a : f33", "line 2: a type was expected"},
		{"kernel k\nscalar x", "line 2: a number was expected"},
		{"kernel k {", "line 1: the text ends inside the kernel"},
		{"kernel k {}}", "line 1: text after the kernel"},
		{"kernel k { 5 }", "line 1: '%' was expected"},
		{"kernel k { %1:i64 + }", "line 1: '=' was expected"},
		{"kernel k { %1:i64 = cons 1 }", "line 1: an operation of the tile IR was expected"},
		{"kernel k { %1:i64 = axis }", "line 1: an operation of the tile IR was expected"},
		{"kernel k { %1:i64x = iota }", "line 1: a type was expected"},
		{"kernel k { %1:i64x0 = iota }", "line 1: a type was expected"},
		{"kernel k { %1:i64x70000000 = iota }", "line 1: a type has a wrong number of lanes"},
		{"kernel k { %1:i64xx = iota }", "line 1: a type was expected"},
		{"kernel k {\n%1:i64 = const x }", "line 2: a number was expected"},
		{"kernel k {\n%1:f64 = const x }", "line 2: a float was expected"},
		{"kernel k {\n%1:f64 = const 1e }", "line 2: a float was expected"},
		{"kernel k {\n%1:f64 = const infinity }", "line 2: a float was expected"},
		{"kernel k {\n%1:bool = const 1 }", "line 2: true or false was expected"},
		{"kernel k {\n%1:i64 = const 9223372036854775808 }", "line 2: a number is too large"},
		{"kernel k {\n%1:u64 = const 18446744073709551616 }", "line 2: a number is too large"},
		{"kernel k {\n%1:u64 = const -1 }", "line 2: a negative u64"},
		{"kernel k {\n%1:i64 = neg %1 }", "line 2: an operand does not come before its use"},
		{"kernel k {\n%1:i64 = neg %0 }", "line 2: an operand does not come before its use"},
		{"kernel k {\n%0:i64 = const 1 }", "line 2: ids must ascend"},
		{"kernel k {\n%1:i64 = const 1\n\n%1:i64 = const 1 }", "line 4: ids must ascend"},
		{"kernel k {\n%4000000000:i64 = const 1 }", "line 2: an id is too large"},
		{"kernel k {\n%5000000000:i64 = const 1 }", "line 2: a number is too large"},
		{"kernel k {\n%1:i64 = const 1 %2 = for %1, %1, %1 }", "line 2: '{' was expected"},
		{"kernel k {\n%1:i64 = const 1 %2 = for %1, %1, %1 { } else", "line 2: no else belongs here"},
		{"kernel k {\n%1:bool = const true %2 = if %1 { } else { } else", "line 2: no else belongs here"},
		{"kernel k {\n%1:i64 = const 1 %2:i64 = load %1, %1 along 9 }", "line 2: a number is too large"},
	};
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_string_equal(read_error(f, rows[i].text, strlen(rows[i].text)), rows[i].error);
	assert_string_equal(read_error(f, "kernel k {}", 10), "line 1: the text ends inside the kernel");
	assert_string_equal(fixture_print(f, fixture_read(f, "kernel k { %1:i64 = const -9223372036854775808 }")),
	                    "kernel k\n{\n  %1:i64 = const -9223372036854775808\n}\n");
}

static const char sample[] =
	"kernel k\nbuffer 0 a : f16\nbuffer 1 \"b c\" : u4 written\nscalar 0 n : i64\n{\n"
	"%1:i64 = scalar 0 %2:i64 = const 1 %3:i64 = const 0 %4:f32x4 = const 1.5\n"
	"%5 = buffer 0 %6:f16 = view %5, %1, %2 %7 = buffer 1 %8:u4 = view %7, %1, %2\n"
	"%9 = for %3, %1, %2, %4, %3 {\n"
	"%10:i64 = blockarg 0 %11:f32x4 = blockarg 1 %12:i64 = blockarg 2\n"
	"%13:bool = < %10, %2 %14:boolx4 = splat %13\n"
	"%15:f16x4 = load %6, %10, %14 masked ahead 0 along 0 %16:f32x4 = cast %15\n"
	"%17 = if %13 { %18:f32x4 = fma %16, %11, %4 %19 = yield %18, %10 } else { %20 = yield %4, %2 }\n"
	"%21:f32x4 = result 0 %17 %22:i64 = result 1 %17\n"
	"%23:u4x4 = cast %21 %24 = store %8, %23, %10, %14 masked stream along 0\n"
	"%25:u32 = const 65537 %26 = fault %25 %27 = yield %21, %22 }\n"
	"%28:f32x4 = result 0 %9 %29:f32 = lane 3 %28\n}\n";

static void
sample_is_sound(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	fixture_round_trip(f, fixture_read(f, sample));
}

static uint32_t
next_random(uint64_t *s)
{
	*s = *s * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*s >> 33);
}

/* A few edits: a byte changed, removed or repeated, a stretch copied elsewhere. */
static size_t
mutate(char *text, size_t n, size_t cap, uint64_t *seed)
{
	static const char letters[] = "%{}=:,0123456789 \nxfbiu-.\"\\+<";
	for (unsigned edits = 1 + next_random(seed) % 4; edits; edits--) {
		size_t at = next_random(seed) % n, from = next_random(seed) % n, len = next_random(seed) % 40;
		switch (next_random(seed) % 4) {
		case 0: text[at] = letters[next_random(seed) % (sizeof letters - 1)]; break;
		case 1: text[at] = (char)next_random(seed); break;
		case 2:
			memmove(text + at, text + at + 1, n - at - 1);
			n -= n > 1;
			break;
		default:
			if (from + len <= n && n + len <= cap) {
				memmove(text + at + len, text + at, n - at);
				memmove(text + at, text + (from >= at ? from + len <= n ? from : at : from), len);
				n += len;
			}
		}
	}
	return n;
}

static void
read_mutated(Fixture *f, const char *text, size_t n, unsigned *read, unsigned *verified)
{
	const char *error = NULL;
	GUARD(f);
	TirKernel *k = tir_read(&f->arena, f->names, text, n, &error);
	if (!k) {
		assert_non_null(error);
		return;
	}
	++*read;
	const char *once = fixture_print(f, k);
	assert_string_equal(fixture_print(f, fixture_read(f, once)), once);
	*verified += tir_verify(k, &f->arena, &error);
}

static void
any_text(void **state)
{
	Fixture *f = *state;
	uint64_t seed = 1;
	unsigned read = 0, verified = 0;
	for (unsigned i = 0; i < 20000; i++) {
		char text[4096];
		memcpy(text, sample, sizeof sample - 1);
		size_t n = mutate(text, sizeof sample - 1, sizeof text, &seed);
		fixture_teardown(state);
		fixture_setup(state);
		read_mutated(f, text, n, &read, &verified);
	}
	assert_true(read > 100 && verified > 10 && read > verified);
}

/* Regions as deep as text can make them. */
static void
deep(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	enum { DEPTH = 20000 };
	Text t;
	text_init(&t, &f->arena);
	text_printf(&t, "kernel k {\n%%1:bool = const true\n");
	for (unsigned i = 0; i < DEPTH; i++)
		text_printf(&t, "%%%u = if %%1 {\n", 2 + i);
	for (unsigned i = 0; i < DEPTH; i++)
		text_printf(&t, "%%%u = yield } else { %%%u = yield }\n", DEPTH + 2 + 2 * i, DEPTH + 3 + 2 * i);
	text_printf(&t, "}");
	TirKernel *k = fixture_read(f, text_get(&t));
	fixture_verify(f, k);
	TirRun run = {0};
	const char *error = "";
	assert_true(tir_interpret(k, &f->arena, &run, &error));
	TirKernel *copy = tir_rewrite(k, &f->arena, fixture_copy, NULL);
	fixture_verify(f, copy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(constants), TEST(names), TEST(gaps),          TEST(messages),
		TEST(sample_is_sound), TEST(any_text), TEST(deep),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
