/* pass_bodies.c: fold and simplify on one body after another: what it becomes, or that it stays; the
 * oracle agrees with each (pass_check.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pass_check.h"

typedef struct {
	const char *type, *body, *after; /* NULL: it stays */
} Body;

static const Body fold_bodies[] = {
	{"i64", "(+ 2 3)", "5"},
	{"i32", "(+ 2147483647:i32 1:i32)", "-2147483648:i32"},
	{"i32", "(* 65536:i32 65537:i32)", "65536:i32"},
	{"u32", "(- 0:u32 1:u32)", "4294967295:u32"},
	{"i64", "(div -7 2)", "-4"},
	{"i64", "(mod -7 2)", "1"},
	{"i64", "(mod 7 -2)", "-1"},
	{"i64", "(div 7 0)", "-1"},
	{"i64", "(mod 7 0)", "7"},
	{"u32", "(div 7:u32 0:u32)", "4294967295:u32"},
	{"u64", "(div 18446744073709551615:u64 2:u64)", "9223372036854775807:u64"},
	{"i64", "(div -9223372036854775808 -1)", "-9223372036854775808"},
	{"i64", "(mod -9223372036854775808 -1)", "0"},
	{"i64", "(pow 3 4)", "81"},
	{"i64", "(pow 2 -1)", "0"},
	{"i64", "(pow -1 -3)", "-1"},
	{"i64", "(pow 0 -1)", "-1"},
	{"i64", "(abs -9223372036854775808)", "-9223372036854775808"},
	{"i32", "(sign -9:i32)", "-1:i32"},
	{"u64", "(min 18446744073709551615:u64 1:u64)", "1:u64"},
	{"i64", "(max -1 1)", "1"},
	{"bool", "(< 18446744073709551615:u64 1:u64)", "false"},
	{"bool", "(<= 2 2)", "true"},
	{"bool", "(== nan:f32 nan:f32)", "false"},
	{"bool", "(!= nan:f32 nan:f32)", "true"},
	{"bool", "(== 0:f32 -0:f32)", "true"},
	{"bool", "(&& true (! false))", "true"},
	{"bool", "(|| false false)", "false"},
	{"bool", "(isnan nan:f64)", "true"},
	{"f32", "(+ 16777216:f32 1:f32)", "16777216:f32"},
	{"f32", "(/ 1:f32 3:f32)", "0.3333333432674408:f32"},
	{"f64", "(/ 1:f64 3:f64)", "0.3333333333333333:f64"},
	{"f32", "(/ 1:f32 -0:f32)", "-inf:f32"},
	{"f32", "(* 1.401298464324817e-45:f32 0.5:f32)", "0:f32"},
	{"f32", "(* 3.4028234663852886e+38:f32 2:f32)", "inf:f32"},
	{"f32", "(- inf:f32 inf:f32)", "nan:f32"},
	{"f32", "(+ -0:f32 -0:f32)", "-0:f32"},
	{"f32", "(min 0:f32 -0:f32)", "-0:f32"},
	{"f32", "(max -0:f32 0:f32)", "0:f32"},
	{"f32", "(max nan:f32 1:f32)", "nan:f32"},
	{"f32", "(sqrt 2:f32)", "1.4142135381698608:f32"},
	{"f32", "(sqrt -0:f32)", "-0:f32"},
	{"f32", "(round 2.5:f32)", "2:f32"},
	{"f32", "(round -0.5:f32)", "-0:f32"},
	{"f32", "(floor -0.5:f32)", "-1:f32"},
	{"f32", "(ceil -0.5:f32)", "-0:f32"},
	{"f32", "(sign -0:f32)", "0:f32"},
	{"f32", "(neg 0:f32)", "-0:f32"},
	{"f16", "(cast:f16 0.10000000149011612:f32)", "0.0999755859375:f16"},
	{"f16", "(cast:f16 65520:f32)", "inf:f16"},
	{"f16", "(cast:f16 65519:f32)", "65504:f16"},
	{"bf16", "(cast:bf16 9007199254740993)", "9007199254740992:bf16"},
	{"f8e4m3", "(cast:f8e4m3 1000:f32)", "448:f8e4m3"},
	{"f8e4m3", "(cast:f8e4m3 inf:f32)", "448:f8e4m3"},
	{"f8e5m2", "(cast:f8e5m2 1e+06:f32)", "inf:f8e5m2"},
	{"f4e2m1", "(cast:f4e2m1 2.5:f32)", "2:f4e2m1"},
	{"f4e2m1", "(cast:f4e2m1 nan:f32)", "0:f4e2m1"},
	{"e8m0", "(cast:e8m0 3:f32)", "2:e8m0"},
	{"e8m0", "(cast:e8m0 1.5:f32)", "2:e8m0"},
	{"e8m0", "(cast:e8m0 0:f32)", "5.877471754111438e-39:e8m0"},
	{"f32", "(cast:f32 9223372036854775807)", "9.223372036854776e+18:f32"},
	{"f32", "(cast:f32 16777217)", "16777216:f32"},
	{"f32", "(cast:f32 36028799166447617)", "3.602880131393126e+16:f32"},
	{"f64", "(cast:f64 18446744073709551615:u64)", "1.8446744073709552e+19:f64"},
	{"i8", "(cast:i8 -1e+09:f32)", "-128:i8"},
	{"i8", "(cast:i8 300)", "44:i8"},
	{"u8", "(cast:u8 -1.5:f32)", "0:u8"},
	{"u64", "(cast:u64 1.2676506002282294e+30:f32)", "18446744073709551615:u64"},
	{"i64", "(cast:i64 1.2676506002282294e+30:f32)", "9223372036854775807"},
	{"i64", "(cast:i64 nan:f32)", "0"},
	{"i64", "(cast:i64 -1.5:f32)", "-1"},
	{"bool", "(cast:bool nan:f32)", "true"},
	{"bool", "(cast:bool -0:f32)", "false"},
	{"f32", "(cast:f32 true)", "1:f32"},
	{"f32", "(* %1[@0] (+ 1:f32 1:f32))", "(* %1[@0] 2:f32)"},
	{"i64", "(* (+ 1 2) (- $N (div 9 2)))", "(* 3 (- $N 4))"},
	/* what is not exactly defined, and what is no constant */
	{"f32", "(exp 1:f32)", NULL},
	{"f32", "(pow 2:f32 3:f32)", NULL},
	{"f32", "(rsqrt 4:f32)", NULL},
	{"f32", "(sin 0:f32)", NULL},
	{"f32", "(+ %1[@0] 1:f32)", NULL},
	{"i64", "(+ @0 $N)", NULL},
	{"c64", "(* (cplx 1:f32 2:f32) (cplx 1:f32 2:f32))", NULL},
};

static const Body simplify_bodies[] = {
	{"f32", "(* %1[@0] 1:f32)", "%1[@0]"},
	{"f32", "(* 1:f32 %1[@0])", "%1[@0]"},
	{"f32", "(/ %1[@0] 1:f32)", "%1[@0]"},
	{"f32", "(+ %1[@0] -0:f32)", "%1[@0]"},
	{"f32", "(- %1[@0] 0:f32)", "%1[@0]"},
	{"f32", "(* %1[@0] -1:f32)", "(neg %1[@0])"},
	{"f32", "(/ %1[@0] -1:f32)", "(neg %1[@0])"},
	{"f32", "(/ %1[@0] 8:f32)", "(* %1[@0] 0.125:f32)"},
	{"f32", "(+ %1[@0] (neg %2[@0, 1]))", "(- %1[@0] %2[@0, 1])"},
	{"f32", "(- %1[@0] (neg %2[@0, 1]))", "(+ %1[@0] %2[@0, 1])"},
	{"f32", "(* (neg %1[@0]) (neg %2[@0, 1]))", "(* %1[@0] %2[@0, 1])"},
	{"f32", "(neg (neg %1[@0]))", "%1[@0]"},
	{"f32", "(abs (neg (abs %1[@0])))", "(abs %1[@0])"},
	{"i32", "(abs (neg %3[@0]))", "(abs %3[@0])"},
	{"u32", "(abs (neg %8[@0]))", "(neg %8[@0])"},
	{"f32", "(max %1[@0] %1[@0])", "%1[@0]"},
	{"f32", "(floor (round %1[@0]))", "(round %1[@0])"},
	{"f32", "(floor (cast:f32 %3[@0]))", "(cast:f32 %3[@0])"},
	{"i32", "(+ %3[@0] 0:i32)", "%3[@0]"},
	{"i32", "(div (* %3[@0] 1:i32) 1:i32)", "%3[@0]"},
	{"f32", "(select true %1[@0] 2:f32)", "%1[@0]"},
	{"f32", "(select false %1[@0] 2:f32)", "2:f32"},
	{"f32", "(select %4[@0] %1[@0] %1[@0])", "%1[@0]"},
	{"f32", "(select (! %4[@0]) %1[@0] 2:f32)", "(select %4[@0] 2:f32 %1[@0])"},
	{"f32", "(select %4[@0] (select %4[@0] %1[@0] 1:f32) 2:f32)", "(select %4[@0] %1[@0] 2:f32)"},
	{"f32", "(select %4[@0] 1:f32 (select %4[@0] %1[@0] 2:f32))", "(select %4[@0] 1:f32 2:f32)"},
	{"f32", "(select %4[@0] (exp %1[@0]) (exp (neg %1[@0])))", "(exp (select %4[@0] %1[@0] (neg %1[@0])))"},
	{"f32", "(select %4[@0] (/ 1:f32 %1[@0]) (/ %1[@0] 3:f32))",
	 "(/ (select %4[@0] 1:f32 %1[@0]) (select %4[@0] %1[@0] 3:f32))"},
	{"f32", "(select %4[@0] (/ (exp %1[@0]) (+ 1:f32 (exp %1[@0]))) (/ 1:f32 (+ 1:f32 (exp (neg %1[@0])))))",
	 "(/ (select %4[@0] ^0 1:f32) (+ 1:f32 ^0))"},
	{"f32", "(select %4[@0] (+ %1[@0] 1:f32) (+ %1[@0] 2:f32))", NULL},
	{"f32", "(select %4[@0] (exp %1[@0]) (sin %1[@0]))", NULL},
	{"i32", "(select %4[@0] (div %3[@0] 3:i32) (div 7:i32 %3[@0]))", NULL},
	{"bool", "(select %4[@0] true false)", "%4[@0]"},
	{"bool", "(select %4[@0] false true)", "(! %4[@0])"},
	{"bool", "(! (! %4[@0]))", "%4[@0]"},
	{"bool", "(! (< %3[@0] 2:i32))", "(<= 2:i32 %3[@0])"},
	{"bool", "(! (== %1[@0] 2:f32))", "(!= %1[@0] 2:f32)"},
	{"bool", "(&& true %4[@0])", "%4[@0]"},
	{"bool", "(&& %4[@0] false)", "false"},
	{"bool", "(&& false (< %1[7]!1 0:f32))", "false"},
	{"bool", "(|| %4[@0] %4[@0])", "%4[@0]"},
	{"bool", "(|| false %4[@0])", "%4[@0]"},
	{"bool", "(== %4[@0] true)", "%4[@0]"},
	{"bool", "(!= true %4[@0])", "(! %4[@0])"},
	{"f32", "(re (cplx %1[@0] 2:f32))", "%1[@0]"},
	{"f16", "(cast:f16 (cast:f32 %6[@0]))", "%6[@0]"},
	{"f64", "(cast:f64 (cast:f32 %6[@0]))", "(cast:f64 %6[@0])"},
	{"i8", "(cast:i8 (cast:i64 %3[@0]))", "(cast:i8 %3[@0])"},
	{"i32", "(cast:i32 (cast:f64 %3[@0]))", "%3[@0]"},
	{"bool", "(cast:bool (cast:i32 %4[@0]))", "%4[@0]"},
	{"f32", "%1[(- (+ @0 1) 1)]", "%1[@0]"},
	{"f32", "%1[(div (+ (* @0 4) 3) 4)]", "%1[@0]"},
	{"f32", "(select (< @0 $N) %1[@0] 0:f32)", "%1[@0]"},
	{"f32", "(select (<= $N @0) 0:f32 %1[(- (- $N 1) @0)])", "%1[(- (- $N @0) 1)]"},
	/* what is not the same to the bit */
	{"f32", "(+ %1[@0] 0:f32)", NULL},
	{"f32", "(- %1[@0] -0:f32)", NULL},
	{"f32", "(* %1[@0] 0:f32)", NULL},
	{"f32", "(- %1[@0] %1[@0])", NULL},
	{"f32", "(/ %1[@0] %1[@0])", NULL},
	{"f32", "(/ %1[@0] 3:f32)", NULL},
	{"f32", "(- 0:f32 %1[@0])", NULL},
	{"f32", "(+ (* %1[@0] 2:f32) (* %1[@0] 3:f32))", NULL},
	{"i32", "(* %3[@0] 0:i32)", NULL},
	{"i64", "(div (* %7[@0] 4) 4)", NULL},
	{"bool", "(! (< %1[@0] 2:f32))", NULL},
	{"bool", "(== %1[@0] %1[@0])", NULL},
	{"f32", "(cast:f32 (cast:f16 %1[@0]))", NULL},
	{"f32", "(cast:f32 (cast:i32 %1[@0]))", NULL},
	{"i8", "(cast:i8 (cast:f64 %3[@0]))", NULL},
	{"f64", "(cast:f64 (cast:f32 %3[@0]))", NULL},
	{"i64", "(cast:i64 (cast:u32 %3[@0]))", NULL},
	/* what would drop a fault */
	{"f32", "(select (< %1[(cast:i64 %3[@0])]!1 0:f32) 1:f32 1:f32)", NULL},
	{"bool", "(&& (< %1[(cast:i64 %3[@0])]!1 0:f32) false)", NULL},
	{"f32", "(re (cplx %1[@0] %1[(cast:i64 %3[@0])]!1))", NULL},
	{"f32", "(select (< @0 (- $N 1)) %1[(+ @0 1)] 0:f32)", NULL},
};

static bool
as_wanted(TensorPassFn *pass, FpMode fp, const Body *b)
{
	Unwind unwind;
	Arena a;
	arena_init(&a, &host_default()->memory, &unwind);
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	const char *got = body_after(&a, pass, fp, b->type, b->body);
	const char *want = b->after ? b->after : b->body;
	bool ok = strcmp(got, want) == 0;
	if (!ok)
		fprintf(stderr, "%s became %s, not %s\n", b->body, got, want);
	arena_free(&a);
	return ok;
}

static void
run(TensorPassFn *pass, FpMode fp, const Body *b, size_t n)
{
	unsigned wrong = 0;
	for (size_t k = 0; k < n; k++)
		wrong += !as_wanted(pass, fp, &b[k]);
	assert_int_equal(wrong, 0);
}

static void
folding(void **state)
{
	(void)state;
	run(pass_fold, FP_RELAXED, fold_bodies, sizeof fold_bodies / sizeof *fold_bodies);
}

static void
simplifying(void **state)
{
	(void)state;
	run(pass_simplify, FP_RELAXED, simplify_bodies, sizeof simplify_bodies / sizeof *simplify_bodies);
}

static void
strict_mode(void **state)
{
	static const Body folds[] = {{"f32", "(* 0.5:f32 0.25:f32)", NULL}, {"f32", "(+ 0.5:f32 0.25:f32)", "0.75:f32"}};
	static const Body simplified[] = {{"f32", "(/ %1[@0] 8:f32)", NULL}, {"f32", "(* %1[@0] 1:f32)", "%1[@0]"}};
	(void)state;
	run(pass_fold, FP_STRICT, folds, 2);
	run(pass_simplify, FP_STRICT, simplified, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(folding),
		cmocka_unit_test(simplifying),
		cmocka_unit_test(strict_mode),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
