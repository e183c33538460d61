/* tir_verify_test.c: the verifier names the rule each of these kernels breaks. Most are written as
 * text, behind a prelude of values to break rules with; what no text can say is made by hand. */
#include "tir_fixture.h"

/* %1 %2 i64, %3 f32, %4 bool, %5 i64x4, %6 f32x4, %7 boolx4, %8 i64x8, %9 u32; buffer 0 f32,
 * buffer 1 f32 written, %11 a view of rank 2 of the first, %13 one of rank 1 of the second */
static const char prelude[] =
	"kernel k\n"
	"buffer 0 a : f32\n"
	"buffer 1 b : f32 written\n"
	"scalar 0 n : i64\n"
	"{\n"
	"%1:i64 = const 1 %2:i64 = const 2 %3:f32 = const 3 %4:bool = const true\n"
	"%5:i64x4 = iota %6:f32x4 = splat %3 %7:boolx4 = splat %4 %8:i64x8 = iota %9:u32 = const 7\n"
	"%10 = buffer 0 %11:f32 = view %10, %1, %2, %1, %2\n"
	"%12 = buffer 1 %13:f32 = view %12, %1, %2\n";

typedef struct {
	const char *text, *error; /* the error without "kernel k: " */
} Row;

static const Row rows[] = {
	/* constants and leaves */
	{"%14:i4 = const 8", "%14 const: does not fit i4"},
	{"%14:u8 = const -1", "%14 const: does not fit u8"},
	{"%14:u16 = const 65536", "%14 const: does not fit u16"},
	{"%14:f32 = const 0.1", "%14 const: is no value of f32"},
	{"%14:f16 = const 65536", "%14 const: is no value of f16"},
	{"%14:f4e2m1 = const nan", "%14 const: is no value of f4e2m1"},
	{"%14:e8m0 = const 0", "%14 const: is no value of e8m0"},
	{"%14:c64 = const 0", "%14 const: has no type"},
	{"%14 = const 0", "%14 const: has no type"},
	{"%14:i64 = scalar 1", "%14 scalar: there are 1"},
	{"%14:i64 = scalar -1", "%14 scalar: there are 1"},
	{"%14:i32 = scalar 0", "%14 scalar: has not the scalar's type"},
	{"%14 = buffer 2", "%14 buffer: there are 2"},
	{"%14 = buffer -1", "%14 buffer: there are 2"},
	{"%14:f32 = buffer 0", "%14 buffer: has a type"},
	{"%14:i32 = task_lo", "%14 task_lo: is no i64 scalar"},
	{"%14:i64x4 = task_hi", "%14 task_hi: is no i64 scalar"},
	{"%14:i64 = iota", "%14 iota: is no vector"},
	{"%14:f32x4 = iota", "%14 iota: of f32"},
	{"%14:i64x257 = iota", "%14 iota: has 257 lanes"},
	/* signatures */
	{"%14:i64 = + %1, %3", "%14 +: operand 1 has another type"},
	{"%14:i32 = + %1, %2", "%14 +: the result must be i64 of 0 lanes"},
	{"%14:i64x4 = + %5, %1", "%14 +: operand 1 has another type"},
	{"%14:i64x4 = + %1, %2", "%14 +: the result must be i64 of 0 lanes"},
	{"%14:bool = + %4, %4", "%14 +: not defined on bool"},
	{"%14:f16 = cast %3 %15:f16 = * %14, %14", "%15 *: not defined on f16"},
	{"%14:i64 = / %1, %2", "%14 /: not defined on i64"},
	{"%14:f32 = div %3, %3", "%14 div: not defined on f32"},
	{"%14:i64 = exp %1", "%14 exp: not defined on i64"},
	{"%14:f64 = cast %3 %15:f64 = exp~bf16 %14", "%15 exp: narrowed, not of f32 or to no narrow float"},
	{"%14:f32 = exp2~f32 %3", "%14 exp2: narrowed, not of f32 or to no narrow float"},
	{"%14:f64 = cast %3 %15:f64 = ex2 %14", "%15 ex2: not defined on f64"},
	{"%14:f64 = cast %3 %15:f64 = rcp %14", "%15 rcp: not defined on f64"},
	{"%14:i64 = < %1, %2", "%14 <: the result must be bool of 0 lanes"},
	{"%14:i64 = && %1, %2", "%14 &&: not defined on i64"},
	{"%14:i64 = shl %1, %2", "%14 shl: not defined on i64"},
	{"%14:i64 = select %1, %1, %2", "%14 select: the condition is no bool"},
	{"%14:i64x4 = select %4, %5, %5", "%14 select: the condition has 0 lanes, not 4"},
	{"%14:i64 = select %4, %1, %3", "%14 select: operand 2 has another type"},
	{"%14:bool = isnan %1", "%14 isnan: not defined on i64"},
	{"%14:boolx4 = isnan %3", "%14 isnan: the result is no bool of 0 lanes"},
	{"%14:i64 = + %1", "%14 +: takes 2 operands, not 1"},
	{"%14:i64 = neg %1, %2", "%14 neg: takes 1 operands, not 2"},
	{"%14:f32 = fma %3, %3", "%14 fma: takes 3 operands, not 2"},
	{"%14:f32 = + %11, %11", "%14 +: operand 0 is no value"},
	{"%14:f32 = cast %10", "%14 cast: operand 0 is no value"},
	/* conversions and lanes */
	{"%14:f32x4 = cast %1", "%14 cast: changes the number of lanes"},
	{"%14:c64 = cast %3", "%14 cast: to c64"},
	{"%14:u64 = bitcast %3", "%14 bitcast: u64 is not as wide as f32"},
	{"%14:u8 = bitcast %4", "%14 bitcast: not defined on bool"},
	{"%14:i64x4 = splat %5", "%14 splat: goes from a scalar to a vector"},
	{"%14:i64 = splat %1", "%14 splat: goes from a scalar to a vector"},
	{"%14:i32x4 = splat %1", "%14 splat: changes the type"},
	{"%14:i64 = lane 4 %5", "%14 lane: there are 4 lanes"},
	{"%14:i64 = lane 0 %1", "%14 lane: takes fewer lanes than its vector has"},
	{"%14:i64x4 = lane 0 %5", "%14 lane: takes fewer lanes than its vector has"},
	{"%14:i64x2 = lane 3 %5", "%14 lane: there are 4 lanes"},
	{"%14:i64x4 = slide 4 %5, %5", "%14 slide: by no number of lanes that leaves some of both"},
	{"%14:i64x4 = slide 0 %5, %5", "%14 slide: by no number of lanes that leaves some of both"},
	{"%14:i64x2 = slide 1 %5, %5", "%14 slide: is of two types"},
	{"%14:i64x4 = slide 1 %5, %1", "%14 slide: is of two types"},
	{"%14:i64x4 = slide 131074 %5, %5", "%14 slide: by no number of lanes that leaves some of both"},
	{"%14:i64x4 = slide 196609 %5, %5", "%14 slide: in segments of 3 of 4 lanes"},
	{"%14:i64x4 = weave 0 %5, %5", "%14 weave: has not twice the lanes"},
	{"%14:i64x8 = weave 1 %5, %5", "%14 weave: by a bit that does not halve"},
	{"%14:i64x8 = weave 6 %5, %5", "%14 weave: by a bit that does not halve"},
	{"%14:i64x8 = weave 0 %5, %1", "%14 weave: is of two types"},
	/* views and accesses */
	{"%14:f32 = view %1, %1, %2", "%14 view: operand 0 is no buffer"},
	{"%14:f32 = view %10, %1, %3", "%14 view: operand 2 is no i64 scalar"},
	{"%14:f32 = view %10, %5, %1", "%14 view: operand 1 is no i64 scalar"},
	{"%14:f32 = view %10, %1", "%14 view: rank 0 takes 1 operands, not 2"},
	{"%14:f16 = view %10", "%14 view: has not the buffer's type"},
	{"%14 = fetch %10, %1", "%14 fetch: operand 0 is no view"},
	{"%14 = fetch %11, %1", "%14 fetch: rank 2 takes 3 operands, not 2"},
	{"%14 = fetch %11, %1, %5", "%14 fetch: operand 2 is no i64 scalar"},
	{"%14:f32 = fetch %11, %1, %1", "%14 fetch: has flags or a type"},
	{"%14:f32 = load %10, %1", "%14 load: operand 0 is no view"},
	{"%14:f32 = load %11, %1", "%14 load: rank 2 takes 3 operands, not 2"},
	{"%14:f32 = load %11, %1, %2, %4", "%14 load: rank 2 takes 3 operands, not 4"},
	{"%14:f32 = load %11, %1, %2 masked", "%14 load: rank 2 masked takes 4 operands, not 3"},
	{"%14:f16 = load %11, %1, %2", "%14 load: is f16, the view f32"},
	{"%14:f32 = load %11, %1, %3", "%14 load: index 1 is no i64"},
	{"%14:f32x4 = load %11, %1, %8", "%14 load: index 1 has 8 lanes, not 4"},
	{"%14:f32 = load %11, %1, %5", "%14 load: index 1 has 4 lanes, not 0"},
	{"%14:f32x4 = load %11, %1, %2 along 2", "%14 load: flags out of range"},
	{"%14:f32 = load %11, %1, %2 along 1", "%14 load: lanes along an axis, but no vector"},
	{"%14:f32 = load %11, %1, %2 ahead 0", "%14 load: a hint without lanes along an axis"},
	{"%14:f32x4 = load %11, %1, %2 ahead 2 along 1", "%14 load: looks ahead along an axis that does not exist"},
	{"%14:f32x4 = load %11, %1, %5 stream", "%14 load: a hint without lanes along an axis"},
	{"%14 = store %13, %3, %1 stream", "%14 store: a hint without lanes along an axis"},
	{"%14:f32x4 = load %11, %1, %5 along 1", "%14 load: index 1 is a vector and has lanes along it"},
	{"%14:f32 = load %11, %1, %2, %1 masked", "%14 load: the mask is no bool of 0 lanes"},
	{"%14:f32x4 = load %11, %1, %5, %4 masked", "%14 load: the mask is no bool of 4 lanes"},
	{"%14 = store %11, %3, %1, %2", "%14 store: the buffer is not marked written"},
	{"%14 = store %13, %1, %1", "%14 store: is i64, the view f32"},
	{"%14 = store %13, %13, %1", "%14 store: operand 1 is no value"},
	{"%14 = store %13, %3", "%14 store: rank 1 takes 3 operands, not 2"},
	{"%14 = store %13", "%14 store: operand 0 is no view"},
	{"%14:f32 = store %13, %3, %1", "%14 store: has a type"},
	{"%14 = store %13, %6, %1, %4 masked along 0", "%14 store: the mask is no bool of 4 lanes"},
	{"%14 = fault %1", "%14 fault: the id is no u32"},
	{"%14 = fault", "%14 fault: takes one operand"},
	{"%14 = fault %9, %9", "%14 fault: takes one operand"},
	{"%14:u32 = fault %9", "%14 fault: has a type"},
	/* loops */
	{"%14 = for %1, %2 { %15:i64 = blockarg 0 %16 = yield }", "%14 for: takes lo, hi and step"},
	{"%14 = for %1, %2, %3 { %15:i64 = blockarg 0 %16 = yield }", "%14 for: operand 2 is no i64 scalar"},
	{"%14 = for %1, %2, %1, %13 { %15:i64 = blockarg 0 %16 = yield }", "%14 for: operand 3 is no value"},
	{"%14:i64 = for %1, %2, %1 { %15:i64 = blockarg 0 %16 = yield }", "%14 for: has a type"},
	{"%14 = for %1, %2, %1 { %15 = yield }", "%14 for: the body has no block argument 0"},
	{"%14 = for %1, %2, %1, %3 { %15:i64 = blockarg 0 %16 = yield %3 }",
	 "%14 for: the body has no block argument 1"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 1 %16 = yield }", "%14 for: block argument 0 says 1"},
	{"%14 = for %1, %2, %1 { %15:f32 = blockarg 0 %16 = yield }", "%14 for: block argument 0 has another type"},
	{"%14 = for %1, %2, %1, %3 { %15:i64 = blockarg 0 %16:i64 = blockarg 1 %17 = yield %3 }",
	 "%14 for: block argument 1 has another type"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 %16:i64 = blockarg 1 %17 = yield }",
	 "%16 blockarg: more than the loop carries"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 %16:i64 = neg %1 %17:i64 = blockarg 0 %18 = yield }",
	 "%17 blockarg: more than the loop carries"},
	{"%14:i64 = blockarg 0", "%14 blockarg: outside a for"},
	{"%14 = for %1, %2, %1, %3 { %15:i64 = blockarg 0 %16:f32 = blockarg 1 %17 = yield }",
	 "%17 yield: 0 values, not 1"},
	{"%14 = for %1, %2, %1, %3 { %15:i64 = blockarg 0 %16:f32 = blockarg 1 %17 = yield %15 }",
	 "%17 yield: value 0 has another type"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 }", "%15 blockarg: is the last of its region"},
	{"%14 = for %1, %2, %1 { }", "%14 for: region 1 is empty"},
	{"%14 = yield", "%14 yield: is not the last of its region"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 %16 = yield %17 = yield }",
	 "%16 yield: is not the last of its region"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 %16 = yield } %17:i64 = neg %15",
	 "%17 neg: operand 0, %15, is not in scope"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 %16 = yield } %17:i64 = result 0 %14",
	 "%17 result: there are 0"},
	{"%14 = for %1, %2, %1, %3 { %15:i64 = blockarg 0 %16:f32 = blockarg 1 %17 = yield %16 }"
	 "%18:i64 = result 0 %14", "%18 result: has another type than the value yielded"},
	{"%14 = for %1, %2, %1, %3 { %15:i64 = blockarg 0 %16:f32 = blockarg 1 %17:f32 = result 0 %14"
	 " %18 = yield %17 }", "%17 result: inside its own region"},
	{"%14:i64 = result 0 %1", "%14 result: operand 0 is no for or if"},
	{"%14 = for %1, %2, %1 { %15:i64 = blockarg 0 %16 = yield } %17:f32 = cast %14",
	 "%17 cast: operand 0 is no value"},
	/* branches */
	{"%14 = if %1 { %15 = yield } else { %16 = yield }", "%14 if: the condition is no bool scalar"},
	{"%14 = if %7 { %15 = yield } else { %16 = yield }", "%14 if: the condition is no bool scalar"},
	{"%14:bool = if %4 { %15 = yield } else { %16 = yield }", "%14 if: has a type"},
	{"%14 = if %4 { %15 = yield }", "%14 if: region 2 is empty"},
	{"%14 = if %4 { %15 = yield %1 } else { %16 = yield }", "%16 yield: 0 values, not 1"},
	{"%14 = if %4 { %15 = yield %1 } else { %16 = yield %3 }", "%16 yield: value 0 has another type"},
	{"%14 = if %4 { %15 = yield %13 } else { %16 = yield %13 }", "%15 yield: operand 0 is no value"},
	{"%14 = if %4 { %15:i64 = neg %1 %16 = yield } else { %17:i64 = neg %15 %18 = yield }",
	 "%17 neg: operand 0, %15, is not in scope"},
	{"%14 = if %4 { %15:i64 = blockarg 0 %16 = yield } else { %17 = yield }", "%15 blockarg: outside a for"},
	{"%14 = if %4 { %15 = yield %1 } else { %16 = yield %2 } %17:i64 = result 1 %14",
	 "%17 result: there are 1"},
	{"%14 = if %4 { %15 = yield %1 } else { %16 = yield %2 } %17:i64 = result -1 %14",
	 "%17 result: there are 1"},
	{"%15:i64 = const 1 %16:i64 = neg %14", "%16 neg: operand 0, %14, is not in scope"},
};

static void
rejections(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	assert_true(sizeof rows / sizeof rows[0] >= 60);
	fixture_round_trip(f, fixture_read(f, arena_text(&f->arena, "%s}", prelude)));
	for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		const char *error = "accepted";
		TirKernel *k = fixture_read(f, arena_text(&f->arena, "%s%s\n}", prelude, rows[i].text));
		bool ok = tir_verify(k, &f->arena, &error);
		const char *want = arena_text(&f->arena, "kernel k: %s", rows[i].error);
		if (ok || strcmp(error, want) != 0)
			fail_msg("%s\n gives: %s\n wants: %s", rows[i].text, error, want);
	}
}

/* --- what text can't say --- */

typedef void BreakFn(TirKernel *k);

static ValId
find_op(const TirKernel *k, Op op)
{
	ValId v = 1;
	while (tir_inst(k, v)->op != op)
		v++;
	return v;
}

static TirInst *
inst(TirKernel *k, Op op)
{
	return &k->inst.at[find_op(k, op)];
}

static void no_operation(TirKernel *k) { inst(k, OP_NEG)->op = OP_NONE; }
static void beyond_operations(TirKernel *k) { inst(k, OP_NEG)->op = 255; }
static void graph_operation(TirKernel *k) { inst(k, OP_NEG)->op = OP_CONJ; }
static void type_number(TirKernel *k) { inst(k, OP_NEG)->type.dtype = 77; }
static void operand_table(TirKernel *k) { inst(k, OP_NEG)->arg = 1u << 30; }
static void operand_zero(TirKernel *k) { k->arg.at[inst(k, OP_NEG)->arg] = 0; }
static void operand_later(TirKernel *k) { k->arg.at[inst(k, OP_NEG)->arg] = k->inst.n - 1; }
static void twice(TirKernel *k) { vec_push(k->arena, &k->region.at[0].inst, find_op(k, OP_NEG)); }
static void unknown_id(TirKernel *k) { vec_push(k->arena, &k->region.at[0].inst, 4000); }
static void out_of_order(TirKernel *k)
{
	TirRegion *r = &k->region.at[0];
	ValId v = r->inst.at[0];
	r->inst.at[0] = r->inst.at[1];
	r->inst.at[1] = v;
}
static void region_table(TirKernel *k) { inst(k, OP_FOR)->region = 100; }
static void region_body(TirKernel *k) { inst(k, OP_FOR)->region = 0; }
static void region_shared(TirKernel *k) { inst(k, OP_IF)->region = inst(k, OP_FOR)->region; }
static void region_missing(TirKernel *k) { inst(k, OP_FOR)->nregion = 0; }
static void region_extra(TirKernel *k) { inst(k, OP_NEG)->nregion = 1; }
static void flags_wild(TirKernel *k) { inst(k, OP_LOAD)->imm.i = 4; }
static void flags_negative(TirKernel *k) { inst(k, OP_LOAD)->imm.i = -256; }
static void rank_wild(TirKernel *k) { inst(k, OP_VIEW)->imm.i = 10; }
static void rank_negative(TirKernel *k) { inst(k, OP_VIEW)->imm.i = -1; }
static void buffer_type(TirKernel *k) { k->buffer.at[0].dtype = DT_C64; }
static void scalar_type(TirKernel *k) { k->scalar.at[0].dtype = DT_NONE; }
static void posted(TirKernel *k) { k->buffer.at[0].posted = true; }
static void tight_tasks(TirKernel *k) { k->tight = true; }
static void anywhere_tasks(TirKernel *k) { k->anywhere = true; }
static void no_body(TirKernel *k) { k->region.n = 0; }
static void bool_two(TirKernel *k) { inst(k, OP_CONST)->imm.i = 2; }

static const char sound[] =
	"kernel k\nbuffer 0 a : f32\nscalar 0 n : i64\n{\n"
	"%1:bool = const true %2:i64 = scalar 0 %3:i64 = neg %2 %4 = buffer 0 %5:f32 = view %4, %2, %2\n"
	"%6:f32 = load %5, %2\n"
	"%7 = for %2, %3, %2 { %8:i64 = blockarg 0 %9 = yield }\n"
	"%10 = if %1 { %11 = yield } else { %12 = yield }\n}";

static const struct {
	BreakFn *fn;
	const char *error;
} breaks[] = {
	{no_operation, "%3: no operation of the tile IR"},
	{beyond_operations, "%3: no operation of the tile IR"},
	{graph_operation, "%3: no operation of the tile IR"},
	{type_number, "%3 neg: has type number 77"},
	{operand_table, "%3 neg: operands outside the table"},
	{operand_zero, "%3 neg: operand 0 is %0"},
	{operand_later, "%3 neg: operand 0 is %12"},
	{twice, "%3 neg: stands in two places"},
	{unknown_id, "region 0 holds %4000 of 13"},
	{out_of_order, "%1 const: stands after %2"},
	{region_table, "%7 for: regions outside the table"},
	{region_body, "%7 for: region 0 has two owners"},
	{region_shared, "%10 if: region 1 has two owners"},
	{region_missing, "%7 for: has 0 regions"},
	{region_extra, "%3 neg: has 1 regions"},
	{flags_wild, "%6 load: flags out of range"},
	{flags_negative, "%6 load: flags out of range"},
	{rank_wild, "%5 view: rank out of range"},
	{rank_negative, "%5 view: rank out of range"},
	{buffer_type, "buffer 0 has no type of the tile IR"},
	{scalar_type, "scalar 0 has no type of the tile IR"},
	{posted, "buffer 0 is not for words that blocks post"},
	{anywhere_tasks, "groups of 0 lanes"},
	{tight_tasks, "a thread's number is looked up anew outside a kernel of blocks"},
	{no_body, "has no body"},
	{bool_two, "%1 const: does not fit bool"},
};

static void
broken_tables(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	for (unsigned i = 0; i < sizeof breaks / sizeof breaks[0]; i++) {
		const char *error = "accepted";
		TirKernel *k = fixture_read(f, sound);
		fixture_round_trip(f, k);
		breaks[i].fn(k);
		assert_false(tir_verify(k, &f->arena, &error));
		assert_string_equal(error, arena_text(&f->arena, "kernel k: %s", breaks[i].error));
		TirRun run = {0};
		assert_false(tir_interpret(k, &f->arena, &run, &error));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(rejections),
		TEST(broken_tables),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
