/* pass_graphs.c: the tensor passes on whole graphs: where each fires, where it must not, fuel; the
 * oracle agrees before and after (pass_check.h). */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "pass_check.h"

/* Statements before the nodes, and inputs; tensors follow from %8. */
static const char head[] =
	"graph t %s\n"
	"dim N param 0 axis 0 scale 1 offset 0 hint 6\n"
	"dim M param 1 axis 1 scale 1 offset 0 hint 5\n"
	"dim K param 2 axis 1 scale 1 offset 0 hint 4\n"
	"access 1 gather \"one\"\n"
	"access 2 gather \"two\"\n"
	"input %%1 x : f32[$N]\n"
	"input %%2 y : f32[$N, $M]\n"
	"input %%3 q : bf16[$N, $K]\n"
	"input %%4 w : bf16[$M, $K]\n"
	"input %%5 i : i32[$N]\n"
	"input %%6 b : bool[$N, $M]\n"
	"input %%7 v : i32[$N, $M]\n"
	"%s";

typedef struct {
	TensorPassFn *pass;
	const char *label, *rest;
	uint32_t done;
	const char *has, *lacks; /* in the text afterwards; NULL: nothing to see */
	FpMode fp;
	uint8_t rounds; /* 1: values change on purpose; 2: they are within both bounds, not the same */
	int64_t fuel; /* 0: no limit */
} Row;

#define PLAIN(body) "tensor %8 r : f32[$N, $M]\nnode %8 none\n par i j\n body " body "\nresult r %8\n"
#define ROWS(monoid, type, body, finish) \
	"tensor %8 r : " type "[$N]\nnode %8 " monoid "\n par i\n red j 0 .. $M\n body " body "\n" finish "result r %8\n"
#define TWO(first, second, reader) \
	"tensor %8 a : f32[$N, $M]\ntensor %9 b : f32[$N, $M]\ntensor %10 r : f32[$N, $M]\nnode %8 " first \
	"node %9 " second "node %10 none\n par i j\n body " reader "\nresult r %10\n"
#define CONTRACT(type, body) \
	"tensor %8 p : f32[$N, $K]\ntensor %9 r : " type "[$N, $M]\n" \
	"node %8 none\n par i k\n body (exp (cast:f32 %3[@0, @1]))\n" \
	"node %9 sum\n par i j\n red k 0 .. $K\n body " body "\nresult r %9\n"

/* Products of bf16 values and weights that the program rounds. */
#define WEIGHTS(type, weight) \
	"tensor %8 e : f32[$N, $K]\ntensor %9 l : f32[$N]\ntensor %10 p : f32[$N, $K]\ntensor %11 r : f32[$N, $M]\n" \
	"node %8 none\n par i k\n body (exp (cast:f32 %3[@0, @1]))\n" \
	"node %9 sum\n par i\n red k 0 .. $K\n body %8[@0, @1]\n" \
	"node %10 none\n par i k\n body (/ %8[@0, @1] %9[@0])\n" \
	"node %11 sum\n par i j\n red k 0 .. $K\n body (* (cast:f32 (cast:" type " " weight ")) (cast:f32 %4[@1, @2]))\nresult r %11\n"

#define NARROW(body) "tensor %8 r : bf16[$N, $M]\nnode %8 none\n par i j\n body (cast:bf16 " body ")\nresult r %8\n"
#define SOFTMAX(body, type, more) \
	"tensor %8 e : f32[$N, $K]\ntensor %9 s : f32[$N]\ntensor %10 r : " type "[$N, $K]\n" \
	"node %8 none\n par i k\n body (exp (cast:f32 %3[@0, @1]))\n" \
	"node %9 sum\n par i\n red k 0 .. $K\n body %8[@0, @1]\n" \
	"node %10 none\n par i k\n body " body "\nresult r %10\n" more

#define CAPPED(cap, type, more) \
	"tensor %8 s : f32[$N, $K]\ntensor %9 m : f32[$N]\ntensor %10 r : " type "[$N, $K]\n" \
	"node %8 none\n par i k\n body (* " cap ":f32 (tanh (cast:f32 %3[@0, @1])))\n" \
	"node %9 max\n par i\n red k 0 .. $K\n body %8[@0, @1]\n finish (select touched acc:f32 0:f32)\n" \
	"node %10 none\n par i k\n body (cast:" type " (exp (- %8[@0, @1] %9[@0])))\nresult r %10\n" more

#define FOLD(monoid, type, text) "tensor %8 r : " type "[]\nnode %8 " monoid "\n" text "result r %8\n"

/* Scores of N rows and M columns over a domain, whose first term is at row `at` of %3, and what asks for them there. */
#define SCORES(domain, at) \
	"tensor %8 s : f32[$N, $M]\ntensor %9 z : f32[$N, $M]\ntensor %10 r : f32[$N, $M]\n" \
	"node %8 sum\n par i j\n red k 0 .. $K\n domain " domain "\n body (* (cast:f32 %3[" at ", @2]) (cast:f32 %4[@1, @2]))\n" \
	"node %9 none\n par i j\n domain " domain "\n body (* %8[@0, @1] 0.5:f32)\n" \
	"node %10 none\n par i j\n body (select " domain " %9[@0, @1] 7:f32)\nresult r %10\n"

static const Row rows[] = {
	/* whole_products: what is asked for in part, and what is computed of it */
	{pass_whole_products, "below a diagonal", SCORES("(<= @1 @0)", "@0"), 2, "body (* %8[", "domain", FP_RELAXED, false, 0},
	{pass_whole_products, "by data as well", SCORES("(&& (<= @1 @0) %6[@0, @1])", "@0"), 2, NULL, "domain", FP_RELAXED, false, 0},
	{pass_whole_products, "not a band", SCORES("(&& (<= @1 @0) (< @0 (+ @1 2)))", "@0"), 0, "domain", NULL, FP_RELAXED, false, 0},
	{pass_whole_products, "not a few rows", SCORES("(< @0 2)", "@0"), 0, "domain", NULL, FP_RELAXED, false, 0},
	{pass_whole_products, "not one of many", SCORES("(== @1 (cast:i64 %5[@0]))", "@0"), 0, "domain", NULL, FP_RELAXED, false, 0},
	{pass_whole_products, "not one of many, as an alternative", SCORES("(|| (<= @1 @0) %6[@0, @1])", "@0"), 0, "domain", NULL, FP_RELAXED, false, 0},
	{pass_whole_products, "not what keeps a row inside", SCORES("(< (+ @0 @1) (- $N 1))", "(+ @0 1)"), 0, "domain", NULL, FP_RELAXED, false, 0},
	{pass_whole_products, "a row that is inside anyway", SCORES("(< (+ @0 @1) (- $N 1))", "(div @0 2)"), 2, NULL, "domain", FP_RELAXED, false, 0},
	{pass_whole_products, "fuel", SCORES("(<= @1 @0)", "@0"), 1, "domain", NULL, FP_RELAXED, false, 1},
	/* split_folds: parts of two terms */
	{pass_split_folds, "a sum", FOLD("sum", "f32", " red i 0 .. $N\n body %1[@0]\n"), 1, "tensor %8 r_parts : f32[",
	 NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "its type", FOLD("sum", "bf16", " red i 1 .. $N\n body (cast:f32 (cast:bf16 %1[@0]))\n finish (cast:bf16 acc:f32)\n"),
	 1, "tensor %8 r_parts : f32[", "r_present", FP_RELAXED, false, 0},
	{pass_split_folds, "a product", FOLD("prod", "i32", " red i 0 .. $N\n guard %6[@0, 1]\n body %5[@0]\n"), 1,
	 "r_parts", "r_present", FP_RELAXED, false, 0},
	{pass_split_folds, "empty parts", FOLD("max", "f32", " red i 0 .. $N\n guard %6[@0, 1]\n body %1[@0]\n finish (select touched acc:f32 7:f32)\n"),
	 1, "r_present", NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "empty parts of a sum", FOLD("sum", "f32", " red i 0 .. $N\n guard %6[@0, 1]\n body -0:f32\n"), 1, "r_present",
	 NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "all or nothing", FOLD("all", "bool", " red i 0 .. $N\n guard (< 2 @0)\n body %6[@0, 0]\n"), 1, "r_parts",
	 "r_present", FP_RELAXED, false, 0},
	{pass_split_folds, "a position", FOLD("argmax", "i64", " red i 0 .. $N\n body %1[@0]\n"), 1, "r_positions", NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "a position among some", FOLD("argmin", "i64", " red i 1 .. $N\n guard %6[@0, 1]\n body %1[@0]\n"
	 " finish (select touched (+ acc:i64 1) -1)\n"), 1, "r_present", NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "two ranges", FOLD("sum", "f32", " red i 0 .. $N\n red j 0 .. $M\n body %2[@0, @1]\n"), 1, "r_parts",
	 "r_present", FP_RELAXED, false, 0},
	{pass_split_folds, "a triangle", FOLD("min", "f32", " red i 1 .. $M\n red j 0 .. @0\n body %2[@0, @1]\n"), 1, "r_present",
	 NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "a long range within a short one", FOLD("sum", "f32", " red i 0 .. 2\n red j 0 .. $M\n body %2[@0, @1]\n"), 1,
	 "0 .. 2", NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "readers come after", "tensor %8 a : f32[]\ntensor %9 b : f32[$N]\ntensor %10 r : f32[]\n"
	 "node %8 sum\n red i 0 .. $N\n body %1[@0]\nnode %9 none\n par i\n body (- %1[@0] %8[])\n"
	 "node %10 max\n red i 0 .. $N\n body (abs %9[@0])\nresult r %10\nresult b %9\n", 2, "result r %12", NULL, FP_RELAXED, false, 0},
	{pass_split_folds, "together with what it reads", "tensor %8 m : f32[]\ntensor %9 r : f32[]\n"
	 "node %8 max\n red i 0 .. $N\n body %1[@0]\nnode %9 sum\n red i 0 .. $N\n body (exp (- %1[@0] %8[]))\nresult m %8\nresult r %9\n",
	 1, "m_parts_2 : f32[", "r_parts", FP_RELAXED, 2, 0},
	{pass_split_folds, "a variance with its mean", "tensor %8 s : f32[]\ntensor %9 m : f32[]\ntensor %10 r : f32[]\n"
	 "node %8 sum\n red i 1 .. $N\n body %1[@0]\nnode %9 none\n body (/ %8[] 5:f32)\n"
	 "node %10 sum\n red i 1 .. $N\n body (* (- %1[@0] %9[]) (- %1[@0] %9[]))\nresult s %8\nresult r %10\n",
	 1, "s_parts", "r_parts", FP_RELAXED, 2, 0},
	{pass_split_folds, "three of them", "tensor %8 m : f32[]\ntensor %9 s : f32[]\ntensor %10 r : f32[]\n"
	 "node %8 max\n red i 0 .. $N\n body %1[@0]\nnode %9 sum\n red i 0 .. $N\n body (exp (- %1[@0] %8[]))\n"
	 "node %10 sum\n red i 0 .. $N\n body (/ (* (exp (- %1[@0] %8[])) %1[@0]) %9[])\nresult r %10\n",
	 1, "m_parts_2", "r_parts", FP_RELAXED, 2, 0},
	{pass_split_folds, "not of another range", "tensor %8 m : f32[]\ntensor %9 r : f32[]\n"
	 "node %8 max\n red i 0 .. $N\n body %1[@0]\nnode %9 sum\n red i 1 .. $N\n body (exp (- %1[@0] %8[]))\nresult r %9\n",
	 2, "r_parts", "m_parts_2", FP_RELAXED, false, 0},
	{pass_split_folds, "not beyond the fuel", "tensor %8 a : f32[]\ntensor %9 r : f32[]\n"
	 "node %8 sum\n red i 0 .. $N\n body %1[@0]\nnode %9 max\n red i 0 .. $N\n body %1[@0]\nresult a %8\nresult r %9\n",
	 1, "a_parts", "r_parts", FP_RELAXED, false, 1},
	{pass_split_folds, "not what is short", FOLD("sum", "f32", " red i 0 .. 2\n body %1[@0]\n"), 0, NULL, "parts", FP_RELAXED, false, 0},
	{pass_split_folds, "not rows", ROWS("sum", "f32", "%2[@0, @1]", ""), 0, NULL, "parts", FP_RELAXED, false, 0},
	{pass_split_folds, "not a position among two ranges", FOLD("argmax", "i64", " red i 0 .. $N\n red j 0 .. $M\n body %2[@0, @1]\n"), 0,
	 NULL, "parts", FP_RELAXED, false, 0},
	{pass_split_folds, "not what was folded before", "tensor %8 s : f32[$N]\ntensor %9 r : f32[]\n"
	 "node %8 sum\n par i\n red j 0 .. $M\n body %2[@0, @1]\nnode %9 max\n red i 0 .. $N\n body %8[@0]\nresult r %9\n", 0, NULL,
	 "parts", FP_RELAXED, false, 0},
	/* cse */
	{pass_cse, "equal nodes", TWO("none\n par i j\n body (exp %2[@0, @1])\n", "none\n par p q\n body (exp %2[@0, @1])\n",
	 "(- %8[@0, @1] (* %9[@0, @1] 2:f32))"), 1, "(- %8[@0, @1] (* %8[@0, @1] 2:f32))", NULL, FP_RELAXED, false, 0},
	{pass_cse, "equal after their operands are", "tensor %8 a : f32[$N]\ntensor %9 b : f32[$N]\ntensor %10 c : f32[$N]\n"
	 "tensor %11 d : f32[$N]\nnode %8 none\n par i\n body (exp %1[@0])\nnode %9 none\n par i\n body (exp %1[@0])\n"
	 "node %10 none\n par i\n body (tanh %8[@0])\nnode %11 none\n par i\n body (tanh %9[@0])\nresult c %10\nresult d %11\n",
	 2, "result d %10", NULL, FP_RELAXED, false, 0},
	{pass_cse, "domains are joined", TWO("none\n par i j\n domain (< @1 @0)\n body (exp %2[@0, @1])\n",
	 "none\n par i j\n domain (< @0 @1)\n body (exp %2[@0, @1])\n",
	 "(select (< @1 @0) %8[@0, @1] (select (< @0 @1) %9[@0, @1] 0:f32))"), 1, "domain (|| (< @1 @0) (< @0 @1))", NULL,
	 FP_RELAXED, false, 0},
	{pass_cse, "a domain and everywhere", TWO("none\n par i j\n domain (< @1 @0)\n body (exp %2[@0, @1])\n",
	 "none\n par i j\n body (exp %2[@0, @1])\n", "(select (< @1 @0) %8[@0, @1] %9[@0, @1])"), 1, "body (select (< @1 @0) %8[@0, @1] %8[@0, @1])", "domain (", FP_RELAXED,
	 false, 0},
	{pass_cse, "other bodies", TWO("none\n par i j\n body (exp %2[@0, @1])\n", "none\n par i j\n body (exp2 %2[@0, @1])\n",
	 "(- %8[@0, @1] %9[@0, @1])"), 0, "%9[@0, @1])", NULL, FP_RELAXED, false, 0},
	{pass_cse, "other ranges", TWO("sum\n par i j\n red k 0 .. $K\n body (cast:f32 %3[@0, @2])\n",
	 "sum\n par i j\n red k 1 .. $K\n body (cast:f32 %3[@0, @2])\n", "(- %8[@0, @1] %9[@0, @1])"), 0, NULL, NULL, FP_RELAXED,
	 false, 0},
	{pass_cse, "other monoids", TWO("sum\n par i j\n red k 0 .. $K\n body (cast:f32 %3[@0, @2])\n",
	 "max\n par i j\n red k 0 .. $K\n body (cast:f32 %3[@0, @2])\n", "(- %8[@0, @1] %9[@0, @1])"), 0, NULL, NULL, FP_RELAXED,
	 false, 0},
	{pass_cse, "other finishes", TWO("sum\n par i j\n red k 0 .. $K\n body (cast:f32 %3[@0, @2])\n finish (neg acc:f32)\n",
	 "sum\n par i j\n red k 0 .. $K\n body (cast:f32 %3[@0, @2])\n finish (abs acc:f32)\n", "(- %8[@0, @1] %9[@0, @1])"), 0,
	 NULL, NULL, FP_RELAXED, false, 0},
	{pass_cse, "other accesses", TWO("none\n par i j\n body %1[(cast:i64 %5[@0])]!1\n",
	 "none\n par i j\n body %1[(cast:i64 %5[@0])]!2\n", "(- %9[@0, @1] %8[@0, @1])"), 0, NULL, NULL, FP_RELAXED, false, 0},
	/* dce */
	{pass_dce, "an unused node and its expressions", TWO("none\n par i j\n body (exp %2[@0, @1])\n",
	 "none\n par i j\n body %1[(cast:i64 %5[@0])]!2\n", "%8[@0, @1]"), 1, "tensor %9 r", "%10", FP_RELAXED, false, 0},
	{pass_dce, "ids are closed up", "tensor %8 a : f32[$N]\ntensor %9 c : f32[$N]\ntensor %10 r : f32[$N]\n"
	 "node %8 none\n par i\n body 1:f32\nnode %9 none\n par i\n body %1[(cast:i64 %5[@0])]!2\n"
	 "node %10 none\n par i\n body (neg %9[@0])\nresult r %10\n", 1, "body %1[(cast:i64 %5[@0])]!2", "%10", FP_RELAXED, false, 0},
	{pass_dce, "a recurrence lives as a whole", "tensor %8 dead : f32[$N]\ntensor %9 h : f32[$N]\ntensor %10 c : f32[$N]\n"
	 "recur 1 seq up members %9 %10\nnode %8 none\n par i\n body 1:f32\n"
	 "node %9 none\n par t\n body (select (< 0 @0) %10[(- @0 1)] 0:f32)\n recur 1 seq 0\n"
	 "node %10 none\n par t\n body (+ %9[@0] %1[@0])\n recur 1 seq 0\nresult h %9\n", 1, "members %8 %9", "tensor %10", FP_RELAXED,
	 false, 0},
	{pass_dce, "an unused recurrence goes", "tensor %8 h : f32[$N]\ntensor %9 r : f32[$N]\nrecur 1 seq up members %8\n"
	 "node %8 none\n par t\n body (select (< 0 @0) %8[(- @0 1)] 0:f32)\n recur 1 seq 0\n"
	 "node %9 none\n par i\n body %1[@0]\nresult r %9\n", 1, NULL, "recur", FP_RELAXED, false, 0},
	{pass_dce, "used nodes, checks and inputs stay", "check _ (<= 1 $M) \"M\"\n"
	 "tensor %8 r : f32[$N]\nnode %8 none\n par i\n body (+ %1[(cast:i64 %5[@0])]!1 %1[(cast:i64 %5[@0])]!2)\nresult r %8\n", 0,
	 "input %7 v", NULL, FP_RELAXED, false, 0},
	{pass_dce, "fuel", TWO("none\n par i j\n body %2[@0, @1]\n", "none\n par i j\n body %1[@0]\n", "1:f32"), 1, "tensor %9",
	 "tensor %10", FP_RELAXED, false, 1},
	/* fold_views */
	{pass_fold_views, "a transposed reversed view", "tensor %8 t : f32[$M, $N]\ntensor %9 r : f32[$N, $M]\n"
	 "node %8 none\n par j i\n body %2[(- (- $N 1) @1), @0]\nnode %9 none\n par i j\n body (exp %8[@1, (- (- $N 1) @0)])\n"
	 "result r %9\n", 1, "body (exp %2[@0, @1])", NULL, FP_RELAXED, false, 0},
	{pass_fold_views, "a view of a view, in a guard too", "tensor %8 a : f32[$N]\ntensor %9 c : f32[$N]\ntensor %10 r : f32[]\n"
	 "node %8 none\n par i\n body %2[@0, 2]\nnode %9 none\n par i\n body %8[@0]\n"
	 "node %10 sum\n red i 0 .. $N\n guard (< %9[@0] 1:f32)\n body %9[@0]\nresult r %10\n", 2, "guard (< %2[@0, 2] 1:f32)", NULL,
	 FP_RELAXED, false, 0},
	{pass_fold_views, "under its domain", "tensor %8 a : f32[$N]\ntensor %9 r : f32[$N]\n"
	 "node %8 none\n par i\n domain (< 0 @0)\n body %1[(- @0 1)]\n"
	 "node %9 none\n par i\n body (select (< 0 @0) %8[@0] 0:f32)\nresult r %9\n", 1, "(select (< 0 @0) %1[(- @0 1)] 0:f32)", NULL,
	 FP_RELAXED, false, 0},
	{pass_fold_views, "through what carries faults", "tensor %8 g : f32[$N]\ntensor %9 a : f32[$N]\ntensor %10 r : f32[$N]\n"
	 "node %8 none\n par i\n body (exp %1[(cast:i64 %5[@0])]!1)\nnode %9 none\n par i\n body %8[(- (- $N 1) @0)]\n"
	 "node %10 none\n par i\n body (select (< @0 2) 0:f32 %9[@0])\nresult r %10\n", 1, "%8[(- (- $N @0) 1)]", NULL, FP_RELAXED, false, 0},
	{pass_fold_views, "not a checked read of a view", "tensor %8 a : f32[$K]\ntensor %9 r : f32[$N]\n"
	 "node %8 none\n par i\n body %1[@0]\nnode %9 none\n par i\n body %8[(cast:i64 %5[@0])]!1\nresult r %9\n", 0, "%8[(cast", NULL,
	 FP_RELAXED, true, 0},
	{pass_fold_views, "not a gather", "tensor %8 a : f32[$N]\ntensor %9 r : f32[$N]\n"
	 "node %8 none\n par i\n body %1[(cast:i64 %5[@0])]!1\nnode %9 none\n par i\n body %8[@0]\nresult r %9\n", 0, "body %8[@0]", NULL,
	 FP_RELAXED, false, 0},
	{pass_fold_views, "not what computes", PLAIN("%2[@0, @1]"), 0, NULL, NULL, FP_RELAXED, false, 0},
	{pass_fold_views, "not what rounds", "tensor %8 a : bf16[$N]\ntensor %9 r : f32[$N]\n"
	 "node %8 none\n par i\n body (cast:bf16 %1[@0])\nnode %9 none\n par i\n body (cast:f32 %8[@0])\nresult r %9\n", 0, "%8[@0]", NULL,
	 FP_RELAXED, false, 0},
	/* select_to_domain */
	{pass_select_to_domain, "max of -inf", ROWS("max", "f32", "(select %6[@0, @1] %2[@0, @1] -inf:f32)", ""), 1, "guard %6[@0, @1]",
	 "body (select", FP_RELAXED, false, 0},
	{pass_select_to_domain, "min of inf, the other arm", ROWS("min", "f32", "(select %6[@0, @1] inf:f32 %2[@0, @1])", ""), 1,
	 "guard (! %6[@0, @1])", "body (select", FP_RELAXED, false, 0},
	{pass_select_to_domain, "sum of 0", ROWS("sum", "f32", "(select %6[@0, @1] %2[@0, @1] 0:f32)", ""), 1, "guard %6[@0, @1]",
	 "finish", FP_RELAXED, false, 0},
	{pass_select_to_domain, "sum of 0, strict", ROWS("sum", "f32", "(select %6[@0, @1] %2[@0, @1] 0:f32)", ""), 1,
	 "guard %6[@0, @1]", NULL, FP_STRICT, false, 0},
	{pass_select_to_domain, "product of 1", ROWS("prod", "i32", "(select %6[@0, @1] %7[@0, @1] 1:i32)", ""), 1, "guard", NULL,
	 FP_RELAXED, false, 0},
	{pass_select_to_domain, "max of the least integer", ROWS("max", "i32", "(select %6[@0, @1] %7[@0, @1] -2147483648:i32)",
	 "finish (+ acc:i32 acc:i32)\n"), 1, "(select touched acc:i32 -2147483648:i32)", NULL, FP_RELAXED, false, 0},
	{pass_select_to_domain, "any of &&", ROWS("any", "bool", "(&& (< @1 @0) %6[@0, @1])", ""), 1, "guard (< @1 @0)", NULL, FP_RELAXED,
	 false, 0},
	{pass_select_to_domain, "all of ||", ROWS("all", "bool", "(|| (< @1 @0) %6[@0, @1])", ""), 1, "guard (! (< @1 @0))", NULL,
	 FP_RELAXED, false, 0},
	{pass_select_to_domain, "not max of 0", ROWS("max", "f32", "(select %6[@0, @1] %2[@0, @1] 0:f32)", ""), 0, NULL, "guard",
	 FP_RELAXED, false, 0},
	{pass_select_to_domain, "not max of inf", ROWS("max", "f32", "(select %6[@0, @1] %2[@0, @1] inf:f32)", ""), 0, NULL, "guard",
	 FP_RELAXED, false, 0},
	{pass_select_to_domain, "not sum of -inf", ROWS("sum", "f32", "(select %6[@0, @1] %2[@0, @1] -inf:f32)", ""), 0, NULL, "guard",
	 FP_RELAXED, false, 0},
	{pass_select_to_domain, "not argmax", ROWS("argmax", "i64", "(select %6[@0, @1] %2[@0, @1] -inf:f32)", ""), 0, NULL, "guard",
	 FP_RELAXED, false, 0},
	{pass_select_to_domain, "not inside exp", ROWS("sum", "f32", "(exp (select %6[@0, @1] %2[@0, @1] -inf:f32))", ""), 0, NULL,
	 "guard", FP_RELAXED, false, 0},
	{pass_select_to_domain, "not where touched is asked for", ROWS("max", "f32", "(select %6[@0, @1] %2[@0, @1] -inf:f32)",
	 "finish (select touched acc:f32 5:f32)\n"), 0, NULL, "guard", FP_RELAXED, false, 0},
	{pass_select_to_domain, "not where the condition can fault", ROWS("sum", "f32",
	 "(select (< %1[(cast:i64 %5[@0])]!1 0:f32) %2[@0, @1] 0:f32)", ""), 0, NULL, "guard", FP_RELAXED, false, 0},
	/* pick_term */
	{pass_pick_term, "the term at an index of the element", ROWS("sum", "f32", "%2[@0, @1]", "guard (== @1 (- 3 @0))\n"), 1,
	 "body (select (&& (&& (< 0 $M) (<= 0 (- 3 @0))) (< (- 3 @0) $M)) %2[@0, (- 3 @0)] 0:f32)", "guard", FP_STRICT, false, 0},
	{pass_pick_term, "at what an input says, in a finish", ROWS("prod", "f32", "%2[@0, @1]",
	 "guard (== (cast:i64 %5[@0]) @1)\n finish (neg acc:f32)\n"), 1, "%2[@0, (cast:i64 %5[@0])] 1:f32)", "prod", FP_RELAXED, false, 0},
	{pass_pick_term, "where other conditions hold", ROWS("sum", "f32", "%2[@0, @1]", "guard (&& (== @1 @0) %6[@0, @1])\n"), 1,
	 "(< @0 $M)) %6[@0, @0])", NULL, FP_RELAXED, false, 0},
	{pass_pick_term, "not where another condition keeps a read in bounds", ROWS("sum", "f32", "%2[@0, @1]",
	 "guard (&& %6[@0, @1] (== @1 (cast:i64 %5[@0])))\n"), 0, "guard", NULL, FP_RELAXED, false, 0},
	{pass_pick_term, "not what can fault", ROWS("sum", "f32", "%2[@0, @1]", "guard (== @1 (cast:i64 %5[(cast:i64 %5[@0])]!1))\n"), 0,
	 "guard", NULL, FP_RELAXED, false, 0},
	{pass_pick_term, "not by itself", ROWS("sum", "f32", "%2[@0, @1]", "guard (== @1 (* @1 @1))\n"), 0, "guard", NULL, FP_RELAXED,
	 false, 0},
	{pass_pick_term, "not by less", ROWS("sum", "f32", "%2[@0, @1]", "guard (<= @1 @0)\n"), 0, "guard", NULL, FP_RELAXED, false, 0},
	{pass_pick_term, "not a maximum, which may have none", ROWS("max", "f32", "%2[@0, @1]",
	 "guard (== @1 @0)\n finish (select touched acc:f32 5:f32)\n"), 0, "guard", NULL, FP_RELAXED, false, 0},
	{pass_pick_term, "of two indices, one", FOLD("sum", "f32", " red i 0 .. $N\n red j 1 .. $M\n guard (== @1 @0)\n body %2[@0, @1]\n"),
	 1, "guard (&& (&& (< 1 $M) (<= 1 @0)) (< @0 $M))", "red j", FP_RELAXED, false, 0},
	{pass_pick_term, "not where another range looks at it", FOLD("sum", "f32",
	 " red i 0 .. $N\n red j 0 .. (min $M @0)\n guard (== @0 3)\n body %2[@0, @1]\n"), 0, "red i", NULL, FP_RELAXED, false, 0},
	/* narrow_contract */
	{pass_narrow_contract, "probabilities times values", CONTRACT("f32", "(* %8[@0, @2] (cast:f32 %4[@1, @2]))"), 1,
	 "body (* (cast:f32 (cast:bf16? %8[@0, @2])) (cast:f32 %4[@1, @2]))", NULL, FP_RELAXED, true, 0},
	{pass_narrow_contract, "a group of factors", CONTRACT("f32", "(* (* (cast:f32 %4[@1, @2]) %8[@0, @2]) %1[@0])"), 1,
	 "body (* (cast:f32 %4[@1, @2]) (cast:f32 (cast:bf16? (* %8[@0, @2] %1[@0]))))", NULL, FP_FAST, true, 0},
	{pass_narrow_contract, "not in strict mode", CONTRACT("f32", "(* %8[@0, @2] (cast:f32 %4[@1, @2]))"), 0, NULL, "(cast:bf16",
	 FP_STRICT, false, 0},
	{pass_narrow_contract, "not two narrow operands", CONTRACT("f32", "(* (cast:f32 %3[@0, @2]) (cast:f32 %4[@1, @2]))"), 0, NULL,
	 "(cast:bf16", FP_RELAXED, false, 0},
	{pass_narrow_contract, "not two wide ones", CONTRACT("f32", "(* %8[@0, @2] %2[@0, @1])"), 0, NULL, "(cast:bf16", FP_RELAXED,
	 false, 0},
	{pass_narrow_contract, "not a factor without the reduced axis", CONTRACT("f32", "(* %2[@0, @1] (cast:f32 %4[@1, @2]))"), 0, NULL,
	 "(cast:bf16", FP_RELAXED, false, 0},
	{pass_narrow_contract, "not where both have the same axes", CONTRACT("f32", "(* %8[@0, @2] (cast:f32 %3[@0, @2]))"), 0, NULL,
	 "(cast:bf16", FP_RELAXED, false, 0},
	{pass_narrow_contract, "not a sum of something else", CONTRACT("f32", "(+ %8[@0, @2] (cast:f32 %4[@1, @2]))"), 0, NULL,
	 "(cast:bf16", FP_RELAXED, false, 0},
	{pass_narrow_contract, "not in f64", CONTRACT("f64", "(* (cast:f64 %8[@0, @2]) (cast:f64 %4[@1, @2]))"), 0, NULL, "(cast:bf16",
	 FP_RELAXED, false, 0},
	{pass_narrow_contract, "weights that fast mode need not round", WEIGHTS("bf16", "(/ %8[@0, @2] %9[@0])"), 1,
	 "body (* (cast:f32 (cast:bf16? (/ %8[@0, @2] %9[@0]))) (cast:f32 %4[@1, @2]))", NULL, FP_FAST, true, 0},
	{pass_narrow_contract, "the same of f16, by a pointwise node", WEIGHTS("f16", "%10[@0, @2]"), 1,
	 "body (* (cast:f32 (cast:f16? %10[@0, @2])) (cast:f32 %4[@1, @2]))", NULL, FP_FAST, true, 0},
	{pass_narrow_contract, "not in relaxed mode", WEIGHTS("bf16", "(/ %8[@0, @2] %9[@0])"), 0, NULL, "?", FP_RELAXED, false, 0},
	{pass_narrow_contract, "not where no fold has a part", WEIGHTS("bf16", "(* %8[@0, @2] %8[@0, @2])"), 0, NULL, "?", FP_FAST, false, 0},
	{pass_narrow_contract, "not of types of few bits", WEIGHTS("f8e4m3", "(/ %8[@0, @2] %9[@0])"), 0, NULL, "?", FP_FAST, false, 0},
	/* narrow_math */
	{pass_narrow_math, "softmax", SOFTMAX("(cast:bf16 (/ %8[@0, @1] %9[@0]))", "bf16", ""), 1, "body (exp~bf16 (cast:f32 %3[@0, @1]))", NULL,
	 FP_RELAXED, false, 0},
	{pass_narrow_math, "the wider of two types", SOFTMAX("(cast:bf16 (* %8[@0, @1] (cast:f32 (cast:f16 %9[@0]))))", "bf16", ""), 1,
	 "(exp~f16 ", NULL, FP_FAST, false, 0},
	{pass_narrow_math, "a gate", NARROW("(* %2[@0, @1] (/ %1[@0] (+ 1:f32 (exp (neg %1[@0])))))"), 1, "(exp~bf16 (neg", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "a sum of one sign, arms and roots", NARROW("(sqrt (max 2:f32 (- (select %6[@0, @1] (exp %1[@0]) 1:f32) (neg (exp2 %1[@0])))))"),
	 2, "(exp2~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "a soft ramp", NARROW("(+ (max %1[@0] 0:f32) (log1p (exp (neg (abs %1[@0])))))"), 1, "(exp~bf16 ", NULL, FP_RELAXED,
	 false, 0},
	{pass_narrow_math, "not towards the pole of a logarithm", NARROW("(log1p (neg (exp %1[@0])))"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "the operand of a contraction", CONTRACT("f32", "(* (cast:f32 (cast:bf16? %8[@0, @2])) (cast:f32 %4[@1, @2]))"), 1,
	 "(exp~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "an outer function alone", NARROW("(exp (exp %1[@0]))"), 1, "(exp~bf16 (exp %1[@0]))", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "not in strict mode", NARROW("(exp %1[@0])"), 0, NULL, "~", FP_STRICT, false, 0},
	{pass_narrow_math, "not in f64", NARROW("(cast:f32 (exp (cast:f64 %1[@0])))"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not for a wide result", PLAIN("(exp %1[@0])"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not where one of two results is wide", SOFTMAX("(cast:bf16 (/ %8[@0, @1] %9[@0]))", "bf16", "result s %9\n"), 0, NULL,
	 "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not for f64 beside it", NARROW("(cast:f32 (+ (cast:f64 (exp %1[@0])) (cast:f64 %1[@0])))"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not what is compared", NARROW("(select (< (exp %1[@0]) %2[@0, @1]) 1:f32 2:f32)"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not what is counted", NARROW("(floor (exp %1[@0]))"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not a subscript", NARROW("%1[(cast:i64 (exp %1[@0]))]!1"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not a position", ROWS("argmax", "i64", "(exp %2[@0, @1])", ""), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not a difference", NARROW("(- (exp %1[@0]) 1:f32)"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not a sum of either sign", ROWS("sum", "bf16", "(* (exp %1[@0]) %2[@0, @1])", "finish (cast:bf16 acc:f32)\n"), 0, NULL, "~",
	 FP_RELAXED, false, 0},
	{pass_narrow_math, "a greatest", ROWS("max", "bf16", "(* (exp %1[@0]) %2[@0, @1])",
	 "finish (cast:bf16 (select touched acc:f32 0:f32))\n"), 1, "(exp~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "not a product of many", ROWS("prod", "bf16", "(exp %2[@0, @1])", "finish (cast:bf16 acc:f32)\n"), 0, NULL, "~",
	 FP_RELAXED, false, 0},
	{pass_narrow_math, "not the operand of a logarithm", ROWS("sum", "bf16", "(exp %2[@0, @1])", "finish (cast:bf16 (log acc:f32))\n"), 0, NULL, "~",
	 FP_RELAXED, false, 0},
	{pass_narrow_math, "a tanh", NARROW("(* %2[@0, @1] (tanh %1[@0]))"), 1, "(tanh~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "not a tanh and 1", NARROW("(* %2[@0, @1] (+ 1:f32 (tanh %1[@0])))"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not a sum of tanhs", ROWS("sum", "bf16", "(tanh %2[@0, @1])", "finish (cast:bf16 acc:f32)\n"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "capped exponents", CAPPED("30", "f16", ""), 2, "(tanh~f16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "not a cap that is too large", CAPPED("33", "f16", ""), 1, "(exp~f16 ", "(tanh~", FP_RELAXED, false, 0},
	{pass_narrow_math, "a large cap for fewer bits", CAPPED("256", "bf16", ""), 2, "(tanh~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "not a larger one", CAPPED("257", "bf16", ""), 1, "(exp~bf16 ", "(tanh~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not where capped scores are a wide result", CAPPED("30", "bf16", "result s %8\n"), 1, "(exp~bf16 ", "(tanh~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not where their greatest is one", CAPPED("30", "bf16", "result m %9\n"), 1, "(exp~bf16 ", "(tanh~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not for wide powers", CAPPED("30", "f32", ""), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "not capped exponents in strict mode", CAPPED("30", "bf16", ""), 0, NULL, "~", FP_STRICT, false, 0},
	{pass_narrow_math, "arms and quotients of exponents", NARROW("(exp2 (min %1[@0] (select %6[@0, @1] (abs (/ (tanh %1[@0]) 0.25:f32)) 0:f32)))"),
	 2, "(tanh~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "an exponent that may be divided by 0", NARROW("(exp (/ (tanh %1[@0]) (abs %2[@0, @1])))"), 1, "(exp~bf16 ", "(tanh~", FP_RELAXED,
	 false, 0},
	{pass_narrow_math, "a factor without a bound", NARROW("(exp (* (tanh %1[@0]) %2[@0, @1]))"), 1, "(exp~bf16 ", "(tanh~", FP_RELAXED, false, 0},
	{pass_narrow_math, "one with a bound", NARROW("(exp (* (tanh %1[@0]) (sin %2[@0, @1])))"), 2, "(tanh~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "a sum of many as an exponent", ROWS("sum", "bf16", "(tanh %2[@0, @1])", "finish (cast:bf16 (exp acc:f32))\n"), 1, "(exp~bf16 ",
	 "(tanh~", FP_RELAXED, false, 0},
	{pass_narrow_math, "an exponent of what ends in more than a power", NARROW("(exp (exp (tanh %1[@0])))"), 1, "(exp~bf16 (exp (tanh %1", "(tanh~",
	 FP_RELAXED, false, 0},
	{pass_narrow_math, "one in a difference", NARROW("(- (exp (tanh %1[@0])) 1:f32)"), 0, NULL, "~", FP_RELAXED, false, 0},
	{pass_narrow_math, "a result and an exponent", NARROW("(* (tanh %1[@0]) (exp (tanh %1[@0])))"), 2, "(tanh~bf16 ", NULL, FP_RELAXED, false, 0},
	{pass_narrow_math, "fuel", NARROW("(* (exp %1[@0]) (exp2 %1[@0]))"), 1, "~bf16", NULL, FP_RELAXED, false, 1},
	/* simplify, beyond bodies */
	{pass_simplify, "guards that follow from ranges", ROWS("sum", "f32", "%2[@0, @1]", "guard (&& (<= 0 @1) (&& (< @1 $M) %6[@0, @1]))\n"),
	 2, "guard %6[@0, @1]", NULL, FP_RELAXED, false, 0},
	{pass_simplify, "a body under its guard", ROWS("sum", "f32", "(select (<= @1 $M) (select (< 0 @1) %2[@0, (- @1 1)] 1:f32) 7:f32)",
	 "guard (< 1 @1)\n"), 4, "body %2[@0, (- @1 1)]", "7:f32", FP_RELAXED, false, 0},
	{pass_simplify, "a check that always holds", "check _ (<= 1 2) \"sure\"\ncheck _ (<= 1 $M) \"M\"\n" PLAIN("%2[@0, @1]"), 0, "\"M\"",
	 NULL, FP_RELAXED, false, 0},
	{pass_simplify, "not a guard that may fail", ROWS("sum", "f32", "%2[@0, @1]", "guard (< 0 @1)\n"), 0, "guard (< 0 @1)", NULL,
	 FP_RELAXED, false, 0},
	{pass_simplify, "fuel", PLAIN("(* (* %2[@0, @1] 1:f32) 1:f32)"), 1, "(* %2[@0, @1] 1:f32)", NULL, FP_RELAXED, false, 1},
	{pass_fold, "extents, ranges and checks", "check _ (<= (+ 1 1) $M) \"M\"\n"
	 "tensor %8 r : f32[(+ 2 3)]\nnode %8 sum\n par i\n red j (- 1 1) .. (* 2 2)\n body 2:f32\nresult r %8\n", 4, "f32[5]", "(+",
	 FP_RELAXED, false, 0},
};

static bool
check_row(const Row *r)
{
	static const char *const mode[] = {"strict", "relaxed", "fast"};
	Unwind unwind;
	Arena a;
	arena_init(&a, &host_default()->memory, &unwind);
	if (setjmp(unwind.env))
		fail_msg("%s: %s", r->label, unwind.text);
	static const PassKeeps keeps[] = {PASS_KEEPS_BITS, PASS_KEEPS_NOTHING, PASS_KEEPS_BOUNDS};
	PassResult got = pass_check(&a, r->pass, arena_text(&a, head, mode[r->fp], r->rest), r->fuel ? r->fuel : -1, keeps[r->rounds]);
	bool ok = got.done == r->done && (!r->has || strstr(got.after, r->has)) && (!r->lacks || !strstr(got.after, r->lacks)) &&
	          (!got.again || r->fuel);
	if (!ok)
		fprintf(stderr, "%s: %u rewrites, wanted %u with '%s' without '%s'%s\n%s%s\n", r->label, got.done, r->done,
		        r->has ? r->has : "", r->lacks ? r->lacks : "", got.again ? "; a second run changes:" : "", got.after,
		        got.again ? got.again : "");
	arena_free(&a);
	return ok;
}

/* A scatter that can fault is deleted when the program, as it was written, does not use it, and kept
 * when a pass made it unused. */
static void
faulting_scatters(void **state)
{
	static const char scatter[] =
		"access 3 scatter \"three\"\ntensor %%8 s : f32[$M]\ntensor %%9 r : f32[$M]\n"
		"node %%8 sum scatter\n par j\n red i 0 .. $N\n body 1:f32\n target (cast:i64 %%5[@1]) access 3\n"
		"node %%9 none\n par i\n body %s\nresult r %%9\n";
	(void)state;
	Unwind unwind;
	Arena a;
	arena_init(&a, &host_default()->memory, &unwind);
	if (setjmp(unwind.env))
		fail_msg("%s", unwind.text);
	for (int used = 0; used < 2; used++) {
		const char *rest = arena_text(&a, scatter, used ? "(select false %8[@0] 1:f32)" : "1:f32");
		const char *error, *text = arena_text(&a, head, "relaxed", rest);
		Graph *g = graph_read(&a, names_new(&a), text, strlen(text), &error);
		PassOptions o = {0};
		PassCtx cx = {.options = &o, .scratch = &a, .graph = g, .fuel = -1, .faulty = graph_may_fault(g, &a)};
		graph_mark_reports(g, &a);
		assert_int_equal(pass_simplify(g, &cx), used);
		assert_int_equal(pass_dce(g, &cx), !used);
		assert_int_equal(g->node.n, 1 + used);
	}
	arena_free(&a);
}

static void
whole_graphs(void **state)
{
	unsigned wrong = 0;
	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		wrong += !check_row(&rows[k]);
	assert_int_equal(wrong, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(whole_graphs), cmocka_unit_test(faulting_scatters)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
