/* tir_build_test.c: the builder types and splats what it is given, refuses what can't be typed, and
 * the text says what was built. */
#include "tir_fixture.h"

static void
sum_loop(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_kernel(f);
	unsigned x = tir_add_buffer(k, name_cstr(f->names, "x"), DT_F16, false);
	unsigned y = tir_add_buffer(k, name_cstr(f->names, "a b"), DT_F32, true);
	tir_add_scalar(k, name_cstr(f->names, "N"), DT_I64);
	ValId n = tir_emit(k, OP_SCALAR, tir_scalar(DT_I64), 0, NULL, 0);
	ValId one = tir_int(k, DT_I64, 1), zero = tir_int(k, DT_I64, 0);
	ValId vx = tir_view(k, x, 1, &n, &one), vy = tir_view(k, y, 0, NULL, NULL);
	ValId acc = tir_float(k, DT_F32, 0.1);
	ValId i = tir_for(k, zero, n, one, &acc, 1);
	ValId e = tir_cast(k, DT_F32, tir_load(k, vx, &i, 0, 0, 0));
	tir_if(k, tir_binary(k, OP_LT, e, acc));
	ValId r = tir_binary(k, OP_ADD, acc, e);
	tir_else(k, &r, 1);
	r = acc;
	tir_end_if(k, &r, 1);
	acc = r;
	tir_end_for(k, &acc, 1);
	tir_store(k, vy, acc, NULL, 0, 0);
	fixture_round_trip(f, k);
	assert_string_equal(fixture_print(f, k),
	                    "kernel k\n"
	                    "buffer 0 x : f16\n"
	                    "buffer 1 \"a b\" : f32 written\n"
	                    "scalar 0 N : i64\n"
	                    "{\n"
	                    "  %1:i64 = scalar 0\n"
	                    "  %2:i64 = const 1\n"
	                    "  %3:i64 = const 0\n"
	                    "  %4 = buffer 0\n"
	                    "  %5:f16 = view %4, %1, %2\n"
	                    "  %6 = buffer 1\n"
	                    "  %7:f32 = view %6\n"
	                    "  %8:f32 = const 0.10000000149011612\n"
	                    "  %9 = for %3, %1, %2, %8 {\n"
	                    "    %10:i64 = blockarg 0\n"
	                    "    %11:f32 = blockarg 1\n"
	                    "    %12:f16 = load %5, %10\n"
	                    "    %13:f32 = cast %12\n"
	                    "    %14:bool = < %13, %11\n"
	                    "    %15 = if %14 {\n"
	                    "      %16:f32 = + %11, %13\n"
	                    "      %17 = yield %16\n"
	                    "    } else {\n"
	                    "      %18 = yield %11\n"
	                    "    }\n"
	                    "    %19:f32 = result 0 %15\n"
	                    "    %20 = yield %19\n"
	                    "  }\n"
	                    "  %21:f32 = result 0 %9\n"
	                    "  %22 = store %7, %21\n"
	                    "}\n");
}

static void
vectors_splat(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_kernel(f);
	unsigned y = tir_add_buffer(k, name_cstr(f->names, "y"), DT_I64, true);
	ValId one = tir_int(k, DT_I64, 1), n = tir_int(k, DT_I64, 8);
	ValId view = tir_view(k, y, 1, &n, &one);
	ValId v = tir_emit(k, OP_IOTA, tir_vector(DT_I64, 8), 0, NULL, 0);
	ValId sum = tir_binary(k, OP_ADD, v, one);
	assert_int_equal(tir_inst(k, sum)->type.lanes, 8);
	assert_int_equal(tir_inst(k, tir_arg(k, sum, 1))->op, OP_SPLAT);
	ValId c = tir_binary(k, OP_LT, one, v);
	assert_int_equal(tir_inst(k, c)->type.dtype, DT_BOOL);
	ValId s = tir_select(k, tir_binary(k, OP_EQ, one, n), one, sum);
	assert_int_equal(tir_inst(k, s)->type.lanes, 8);
	ValId at = tir_int(k, DT_I64, 0);
	tir_store(k, view, s, &at, c, TIR_LANES_ALONG(0));
	ValId l = tir_load(k, view, &v, tir_binary(k, OP_EQ, one, n), 0, 8);
	assert_int_equal(tir_inst(k, l)->imm.i, TIR_MASKED);
	tir_store(k, view, one, &v, 0, 0);
	fixture_round_trip(f, k);
}

/* Expects `call` to unwind as a bug. */
#define REFUSED(f, call)                                        \
	do {                                                    \
		if (setjmp((f)->unwind.env) == 0) {             \
			call;                                   \
			fail_msg("not refused: %s", #call);     \
		}                                               \
		assert_int_equal((f)->unwind.why, UNWIND_BUG);  \
	} while (0)

static void
mistakes(void **state)
{
	Fixture *f = *state;
	GUARD(f);
	TirKernel *k = fixture_kernel(f);
	ValId i = tir_int(k, DT_I64, 1), x = tir_float(k, DT_F32, 1), carried = 0;
	ValId v4 = tir_emit(k, OP_IOTA, tir_vector(DT_I64, 4), 0, NULL, 0);
	ValId v8 = tir_emit(k, OP_IOTA, tir_vector(DT_I64, 8), 0, NULL, 0);
	REFUSED(f, tir_binary(k, OP_ADD, i, x));
	REFUSED(f, tir_binary(k, OP_ADD, v4, v8));
	REFUSED(f, tir_bitcast(k, DT_U32, i));
	REFUSED(f, tir_select(k, i, i, x));
	REFUSED(f, tir_fma(k, x, x, i));
	REFUSED(f, tir_int(k, DT_F32, 1));
	REFUSED(f, tir_float(k, DT_I32, 1));
	REFUSED(f, tir_unary(k, OP_NEG, 99));
	REFUSED(f, tir_unary(k, OP_NEG, 0));
	REFUSED(f, tir_view(k, 0, 0, NULL, NULL));
	REFUSED(f, tir_load(k, x, NULL, 0, 0, 0));
	REFUSED(f, tir_end_for(k, NULL, 0));
	REFUSED(f, tir_else(k, NULL, 0));
	tir_for(k, i, i, i, NULL, 0);
	REFUSED(f, tir_else(k, NULL, 0));
	REFUSED(f, tir_end_for(k, &carried, 1));
	tir_end_for(k, NULL, 0);
	tir_if(k, tir_binary(k, OP_EQ, i, i));
	REFUSED(f, tir_end_if(k, NULL, 0));
	tir_else(k, &i, 1);
	REFUSED(f, tir_else(k, &i, 1));
	REFUSED(f, tir_end_if(k, NULL, 0));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sum_loop),
		TEST(vectors_splat),
		TEST(mistakes),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
