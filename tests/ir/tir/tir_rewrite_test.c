/* tir_rewrite_test.c: a callback may replace an instruction by several, by loops and branches, drop
 * it, and change types; what it must not do is found. */
#include "tir_fixture.h"

static const char sums[] =
	"kernel k buffer 0 x : i64 buffer 1 y : i64 written scalar 0 n : i64 {\n"
	"%1:i64 = scalar 0 %2:i64 = const 1 %3:i64 = const 0 %4 = buffer 0 %5:i64 = view %4, %1, %2\n"
	"%6 = for %3, %1, %2, %3 { %7:i64 = blockarg 0 %8:i64 = blockarg 1\n"
	"  %9:i64 = load %5, %7 %10:bool = < %9, %3\n"
	"  %11 = if %10 { %12:i64 = abs %9 %13 = yield %12 } else { %14:i64 = pow %9, %9 %15 = yield %14 }\n"
	"  %16:i64 = result 0 %11 %17:i64 = + %8, %16 %18 = yield %17 }\n"
	"%19:i64 = result 0 %6 %20 = buffer 1 %21:i64 = view %20 %22 = store %21, %19 }";

/* abs as a branch, pow as a loop. */
static ValId
expand(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	unsigned *count = user;
	ValId zero, r;
	switch (tir_inst(from, v)->op) {
	case OP_ABS:
		++*count;
		zero = tir_int(to, DT_I64, 0);
		tir_if(to, tir_binary(to, OP_LT, arg[0], zero));
		r = tir_unary(to, OP_NEG, arg[0]);
		tir_else(to, &r, 1);
		r = arg[0];
		tir_end_if(to, &r, 1);
		return r;
	case OP_POW:
		++*count;
		r = tir_int(to, DT_I64, 1);
		tir_for(to, tir_int(to, DT_I64, 0), arg[1], tir_int(to, DT_I64, 1), &r, 1);
		r = tir_binary(to, OP_MUL, r, arg[0]);
		tir_end_for(to, &r, 1);
		return r;
	default:
		return tir_copy_inst(to, from, v, arg);
	}
}

static int64_t
run_sums(Fixture *f, const TirKernel *k)
{
	int64_t x[4] = {3, -5, 4, 0}, y = -1, n = 4;
	const void *scalar[] = {&n};
	TirMemory buffer[] = {{x, sizeof x}, {&y, sizeof y}};
	TirRun run = {.buffer = buffer, .scalar = scalar};
	const char *error = "";
	if (!tir_interpret(k, &f->arena, &run, &error))
		fail_msg("%s", error);
	return y;
}

static void
expansion(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	unsigned count = 0;
	TirKernel *k = fixture_read(f, sums);
	TirKernel *to = tir_rewrite(k, &f->arena, expand, &count);
	fixture_round_trip(f, to);
	assert_int_equal(count, 2);
	assert_null(strstr(fixture_print(f, to), "pow"));
	assert_null(strstr(fixture_print(f, to), "abs"));
	assert_int_equal(run_sums(f, k), 27 + 5 + 256 + 1);
	assert_int_equal(run_sums(f, to), 27 + 5 + 256 + 1);
}

/* Everything i64 but indices and extents becomes u64: carried values and results follow. */
static ValId
make_unsigned(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	const TirInst *p = tir_inst(from, v);
	ValId r = tir_copy_inst(to, from, v, arg);
	if (p->op == OP_LOAD || (p->op == OP_CONST && v == 4))
		return tir_cast(to, DT_U64, r);
	if (p->op == OP_ADD)
		to->inst.at[r].type = tir_scalar(DT_U64);
	return r;
}

static void
types_follow(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_read(f,
		"kernel k buffer 0 x : i64 buffer 1 y : u64 written scalar 0 n : i64 {\n"
		"%1:i64 = scalar 0 %2:i64 = const 1 %3:i64 = const 0 %4:i64 = const 5\n"
		"%5 = buffer 0 %6:i64 = view %5, %1, %2\n"
		"%7 = for %3, %1, %2, %4 { %8:i64 = blockarg 0 %9:i64 = blockarg 1\n"
		"  %10:i64 = load %6, %8 %11:i64 = + %9, %10 %12:bool = == %8, %3\n"
		"  %13 = if %12 { %14 = yield %11 } else { %15 = yield %11 } %16:i64 = result 0 %13 %17 = yield %16 }\n"
		"%18:i64 = result 0 %7 %19 = buffer 1 %20:u64 = view %19 %21 = store %20, %18 }");
	const char *error = "";
	assert_false(tir_verify(k, &f->arena, &error)); /* it stores an i64 as u64 */
	TirKernel *to = tir_rewrite(k, &f->arena, make_unsigned, NULL);
	fixture_round_trip(f, to);
	assert_int_equal(run_sums(f, to), 3 - 5 + 4 + 5);
}

static ValId
drop_stores(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	const Op *dropped = user;
	return tir_inst(from, v)->op == *dropped ? 0 : tir_copy_inst(to, from, v, arg);
}

static ValId
leave_open(void *user, TirKernel *to, const TirKernel *from, ValId v, const ValId *arg)
{
	(void)user;
	if (tir_inst(from, v)->op == OP_ABS)
		tir_for(to, arg[0], arg[0], arg[0], NULL, 0);
	return tir_copy_inst(to, from, v, arg);
}

static void
rewrite_bug(Fixture *f, TirEmitFn *emit, void *user, const char *message)
{
	TirKernel *k = fixture_read(f, sums);
	if (setjmp(f->unwind.env) == 0) {
		tir_rewrite(k, &f->arena, emit, user);
		fail_msg("no bug: %s", message);
	}
	assert_int_equal(f->unwind.why, UNWIND_BUG);
	assert_string_equal(f->unwind.text, message);
}

static void
mistakes(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	Op store = OP_STORE, load = OP_LOAD;
	TirKernel *to = tir_rewrite(fixture_read(f, sums), &f->arena, drop_stores, &store);
	fixture_round_trip(f, to);
	assert_int_equal(run_sums(f, to), -1);
	rewrite_bug(f, drop_stores, &load, "tir_rewrite: %9 was dropped, but %10 takes it");
	rewrite_bug(f, leave_open, NULL, "tir_rewrite: the callback left a region open at %12");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(expansion),
		TEST(types_follow),
		TEST(mistakes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
