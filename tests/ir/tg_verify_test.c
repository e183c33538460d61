/* tg_verify_test.c: each rule of tg.h broken in one place of the sample, and what the verifier says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ir/tg.h"
#include "tg_sample.h"

typedef struct {
	const char *from, *to, *error;
} Break;

static const Break by_text[] = {
	/* types of operations */
	{"(* $M 2)", "(* $M 2:i32)", "*: operands of different types"},
	{"(* $M 2)", "(*:i32 $M 2)", "*: its type is not what its operands give"},
	{"(* $M 2)", "(/ $M 2)", "/: / takes floats or c64"},
	{"(* $M 2)", "(cast:i64 (sqrt 2))", "sqrt: takes f32 or f64"},
	{"(== (mod $N 4) 0)", "(mod true false)", "mod: takes i32, i64, u32 or u64"},
	{"(&& (<= 1 $M) (!= %4[] 0))", "(&& (<= 1 $M) %4[])", "&&: operands of different types"},
	{"(&& (<= 1 $M) (!= %4[] 0))", "(! %4[])", "!: takes bool"},
	{"(<= @1 @0)", "(<= (cplx 0:f32 0:f32) (cplx 0:f32 0:f32))", "<=: c64 has no order"},
	{"(<= @1 @0)", "(<= 1:i8 2:i8)", "<=: no comparison of this type"},
	{"(<= @1 @0)", "(isnan @0)", "isnan: isnan takes f32 or f64 to bool"},
	{"1:f32 0.5:f32)", "1:f32 0.5:f64)", "select: select takes bool, T, T to T"},
	{"(select (< @1 (+ @0 1))", "(select (+ @0 1)", "select: select takes bool, T, T to T"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(abs (cplx 1:f32 1:f32))", "abs: no arithmetic on this type"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(tanh 1:i32)", "tanh: takes f32 or f64"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(cast:f32 (+ 1:f16 1:f16))", "+: no arithmetic on this type"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(cast:f32 (cast:i8? %9[@0, 0]))", "a free cast that does not round f32"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(cast:f32 (cplx 1:f32 1:f32))", "cast: no casts of this type"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(re 1:f32)", "re: takes c64 to f32"},
	{"(tanh %9[@0, (mod (+ @1 1) $M)])", "(im (conj 1:f32))", "conj: conj takes c64 to c64"},
	{"(cplx %7[@0] nan:f32)", "(cplx %7[@0] nan:f64)", "cplx: cplx takes f32, f32 to c64"},
	{"(root @0 $N)", "(root @0 1:i32)", "root: root takes i64, i64 to c64"},
	{"(rand %5[] @0 @1)", "(rand %4[] @0 @1)", "rand: the seed is u64, indices are i64"},
	{"(rand %5[] @0 @1)", "(rand %5[])", "rand: a seed and one to four indices are wanted"},
	{"(rand %5[] @0 @1)", "(rand %5[] @0 @0 @0 @0 @0)", "rand: a seed and one to four indices are wanted"},
	{"(rand %5[] @0 @1)", "(pow (cplx 1:f32 1:f32) (cplx 1:f32 1:f32))", "pow: no arithmetic on this type"},
	/* what may be mentioned where */
	{"(+ (* $M 2) 1)", "(+ (* @0 2) 1)", "an extent uses axis 0"},
	{"(+ (* $M 2) 1)", "?3", "an extent has an index that is no axis"},
	{"(+ (* $M 2) 1)", "(cast:i64 1.5:f32)", "where only integers may be"},
	{"tensor %8 g : f32[$M]", "tensor %8 g : f32[(cast:i64 %2[0])]", "only rank-0 parameters may be read here"},
	{"tensor %8 g : f32[$M]", "tensor %8 g : f32[1:i32]", "an extent is i32, not i64"},
	{"tensor %8 g : f32[$M]", "tensor %8 g : f32[%2[]]", "reads %2 of rank 1 with 0 subscripts"},
	{"(== (mod $N 4) 0)", "(mod $N 4)", "check 0: a check is i64, not bool"},
	{"(== (mod $N 4) 0)", "(== @0 0)", "check 0: a check uses axis 0"},
	{"domain (<= @1 @0)", "domain (<= @2 @0)", "domain uses axis 2, which it may not"},
	{"domain (<= @1 @0)", "domain @0", "domain is i64, not bool"},
	{"domain (<= @1 @0)", "domain touched", "touched outside finish"},
	{"guard (!= @2 @1)", "guard @2", "guard is i64, not bool"},
	{"guard (!= @2 @1)", "guard (!= @3 @1)", "guard uses axis 3"},
	{"(* ^0 ^0))", "acc:f32)", "acc, or of another type"},
	{"touched acc:f32 (- 1:f32", "touched acc:f64 (- 1:f64", "acc, or of another type"},
	{"acc:f32 (- 1:f32 (rand %5[] @0 @1))", "acc:f32 %1[@2, @0]", "finish uses axis 2"},
	{"acc:f32 (- 1:f32 (rand %5[] @0 @1))", "acc:f32 (cast:f32 ?0)", "finish has an index that is no axis"},
	{"red k 0 .. $M", "red k 0 .. @2", "an upper end uses axis 2"},
	{"red k 0 .. $M", "red k @2 .. $M", "a lower end uses axis 2"},
	{"red k 0 .. $M", "red k 0 .. 3:i32", "an upper end is i32, not i64"},
	{"clamp $N cut 3", "clamp @1 cut 3", "a clamp uses axis 1"},
	{"clamp $N cut 3", "clamp $N cut 1", "axis 1 names an access that is no cut"},
	{"clamp $N cut 3", "cut 3", "axis 1 reports a cut without a clamp"},
	/* reads */
	{"(* %1[@0, @2] %1[@1, @2])", "(* %1[@0, @2, 0] %1[@1, @2])", "reads %1 of rank 2 with 3 subscripts"},
	{"(* %1[@0, @2] %1[@1, @2])", "(* %1[@0, 1:i32] %1[@1, @2])", "a subscript of %1 is not i64"},
	{"(* %1[@0, @2] %1[@1, @2])", "(* %7[@0] %1[@1, @2])", "reads %7, which comes later"},
	{"(* %1[@0, @2] %1[@1, @2])", "(* %6[@0, @1] %1[@1, @2])", "reads %6, which comes later"},
	{"@0]!1", "@0]!3", "a read of %1 names an access that is no gather"},
	{"@0]!1", "@0]!9", "a read of %1 names an access that is no gather"},
	/* nodes */
	{"tensor %6 s : f32[$N, $N]", "tensor %6 s : f64[$N, $N]", "gives f32, its tensor is f64"},
	{"tensor %12 k : i64[]", "tensor %12 k : f32[]", "gives i64, its tensor is f32"},
	{"body (re (* (root @0 $N) (cplx %7[@0] nan:f32)))", "body (root @0 $N)", "argmax of c64"},
	{"node %7 max", "node %7 any", "any of f32"},
	{"node %6 sum", "node %6 none", "without a monoid, yet it reduces"},
	{"node %11 none\n", "node %11 none\n  guard true\n", "without a monoid, yet it reduces"},
	{"node %11 none\n", "node %11 none\n  finish 1:f16\n", "without a monoid, yet it reduces"},
	{"node %11 none\n", "node %11 none\n  target @0\n", "has targets without being a scatter"},
	{"node %11 none\n", "node %11 none\n  init 1:f16\n", "has init without being a scatter"},
	{"body (cast:f16 (+ (* (cast:f32 %3[@0]) 0.5:f32) %7[@0]))", "body (+ 1:f16 1:f16)", "+: no arithmetic"},
	/* scatter */
	{"guard (< @1 $M)\n", "guard (< @0 $M)\n", "guard uses axis 0, which it may not"},
	{"body %7[@1]\n", "body %7[@0]\n", "body uses axis 0, which it may not"},
	{"red \"a b\" 0 .. $N", "red \"a b\" 0 .. @0", "an upper end uses axis 0"},
	{"target (cast:i64 %2[@1])", "target @0", "a target uses axis 0"},
	{"target (cast:i64 %2[@1])", "target %2[@1]", "a target is i32, not i64"},
	{"  target (cast:i64 %2[@1]) access 2\n", "", "a target is not an expression"},
	{"access 2\n  init", "access 1\n  init", "target 0 names an access that is no scatter"},
	{"init (cast:f32 @0)", "init (cast:f32 @1)", "init uses axis 1"},
	{"init (cast:f32 @0)", "init @0", "init is i64, not f32"},
	{"node %8 sum scatter", "node %8 argmax scatter", "gives i64, its tensor is f32"},
	/* recurrences */
	{"%9[(- @0 1), @1] %10", "%9[(+ @0 1), @1] %10", "reads a later step of %9"},
	{"%9[(- @0 1), @1] %10", "%9[@0, @1] %10", "reads %9, which comes no earlier within a step"},
	{"%9[(- @0 1), @1] %10", "%9[(- @0 $N), @1] %10", "reads %9 at more than a constant distance"},
	{"%9[(- @0 1), @1] %10", "%9[(- @1 1), @1] %10", "reads %9 at more than a constant distance"},
	{"%10[(- @0 1), @1]", "%10[@0, @1]", "reads %10, which comes no earlier within a step"},
	{"recur 1 seq up members %9 %10", "recur 1 seq down members %9 %10", "reads a later step of %9"},
	{"recur 1 seq up members %9 %10", "recur 1 seq up members %10 %9", "reads %9, which comes no earlier"},
	{"recur 1 seq up members %9 %10", "recur 1 seq up members %9", "node %10 (c): is not among the members"},
	{"recur 1 seq up members %9 %10", "recur 1 seq up members %9 %10 %9", "%9 is a member twice"},
	{"recur 1 seq up members %9 %10", "recur 1 seq up members %9 %10 %11", "%11 does not know that it is a member"},
	{"recur 1 seq up members %9 %10", "recur 1 seq up members %9 %10 %3", "member 2 is not a node"},
	{"recur 1 seq up members %9 %10", "recur 1 seq up members", "recurrence 1: has no members"},
	{"recur 1 seq 0\nnode %10", "recur 1 seq 2\nnode %10", "sequential axis 0 of %9 is no parallel axis"},
	/* the outside */
	{"param 0 axis 0 scale 1", "param 0 axis 2 scale 1", "dim 1 (N): found at an axis that does not exist"},
	{"param 0 axis 0 scale 1", "param 9 axis 0 scale 1", "dim 1 (N): found at a parameter that does not exist"},
	{"param 0 axis 0 scale 1", "param 0 axis -1 scale 1", "found at a parameter that is no integer scalar"},
	{"param 0 axis 0 scale 1", "param 0 axis 0 scale 0", "dim 1 (N): has scale 0"},
	{"scalar %4 G : i64[]", "scalar %4 G : i64[4]", "tensor %4 (G): a scalar has rank 1"},
	{"overwrites %3", "overwrites %1", "result 0 (w): overwrites what is no inout"},
	{"result w %11", "result w %6", "overwrites a tensor of another type or rank"},
	{"result s %6", "result w %11 overwrites %3", "result 1 (w): overwrites %3 a second time"},
	{"result s %6", "result s %0", "result 1 (s): a tensor that does not exist"},
};

typedef struct {
	Unwind unwind;
	Arena arena;
	Graph *g;
} Fixture;

static void
start(Fixture *x, const char *text)
{
	const char *error = NULL;
	arena_init(&x->arena, &host_default()->memory, &x->unwind);
	if (setjmp(x->unwind.env))
		fail_msg("%s", x->unwind.text);
	x->g = graph_read(&x->arena, names_new(&x->arena), text, strlen(text), &error);
	if (!x->g)
		fail_msg("%s in\n%s", error, text);
}

static unsigned
unrefused(Fixture *x, const char *want, const char *label)
{
	const char *error = NULL;
	bool ok = graph_verify(x->g, &x->arena, &error);
	bool wrong = ok || !strstr(error, want);
	if (wrong)
		fprintf(stderr, "%s: '%s' instead of '%s'\n", label, ok ? "verified" : error, want);
	arena_free(&x->arena);
	return wrong;
}

static void
broken_text(void **state)
{
	(void)state;
	unsigned n = 0, wrong = 0;
	for (size_t k = 0; k < sizeof by_text / sizeof *by_text; k++) {
		const Break *b = &by_text[k];
		char text[sizeof tg_sample + 200];
		const char *at = strstr(tg_sample, b->from);
		if (!at)
			fail_msg("'%s' is not in the sample", b->from);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - tg_sample), tg_sample, b->to, at + strlen(b->from));
		Fixture x;
		start(&x, text);
		wrong += unrefused(&x, b->error, b->to);
		n++;
	}
	assert_int_equal(wrong, 0);
	printf("%u broken graphs\n", n);
	assert_true(n >= 60);
}

/* A dim with a turn is the one unknown of its axis then. */
static void
solved_dims(void **state)
{
	(void)state;
	static const char good[] = "graph g strict\n"
		"dim B param 1 axis 0 scale 1 offset 0\n"
		"dim T param 0 axis 0 turn 1\n"
		"dim U param 0 axis 1 turn 2\n"
		"input %1 x : f32[(* $B $T), (+ $U $T)]\n"
		"input %2 b : f32[$B]\n";
	static const Break bad[] = {
		{"axis 0 turn 1", "axis 0 turn 2", "dim 3 (U): is not solved from what is known at its turn"},
		{"axis 1 turn 2", "axis 1 turn 1", "dim 3 (U): is not solved from what is known at its turn"},
		{"axis 1 turn 2", "axis 0 turn 2", "dim 3 (U): is not solved from what is known at its turn"},
		{"axis 1 turn 2", "axis 1 turn 9", "dim 3 (U): has a turn and no axis, or a turn too high"},
		{"axis 0 scale 1 offset 0", "axis 0 scale 0 offset 0", "dim 1 (B): has scale 0"},
	};
	const char *error = NULL;
	Fixture x;
	start(&x, good);
	if (!graph_verify(x.g, &x.arena, &error))
		fail_msg("%s", error);
	Text out;
	text_init(&out, &x.arena);
	graph_print(x.g, &out);
	assert_string_equal(text_get(&out), good);
	arena_free(&x.arena);
	unsigned wrong = 0;
	for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
		char text[sizeof good + 50];
		const char *at = strstr(good, bad[k].from);
		snprintf(text, sizeof text, "%.*s%s%s", (int)(at - good), good, bad[k].to, at + strlen(bad[k].from));
		start(&x, text);
		wrong += unrefused(&x, bad[k].error, bad[k].to);
	}
	assert_int_equal(wrong, 0);
}

/* What text cannot say. */
#define BY_HAND(name, edit) \
	static void name(Graph *g) { edit; }
BY_HAND(param_missing, g->param.n--)
BY_HAND(param_order, g->param.at[1] = 1)
BY_HAND(param_added, vec_push(g->arena, &g->param, 6))
BY_HAND(parallel_range, tensor_node(g, 6)->axis[0].hi = tensor_node(g, 6)->body)
BY_HAND(wrong_output, tensor_node(g, 6)->out = 7)
BY_HAND(wrong_rank, tensor_node(g, 6)->npar = 1)
BY_HAND(too_many_axes, tensor_node(g, 6)->nred = 23)
BY_HAND(no_monoid, tensor_node(g, 6)->monoid = (Monoid)77)
BY_HAND(no_recur, tensor_node(g, 6)->recur = 9)
BY_HAND(not_member, tensor_node(g, 6)->recur = 1)
BY_HAND(no_body, tensor_node(g, 6)->body = 0)
BY_HAND(far_body, tensor_node(g, 6)->body = 1u << 30)
BY_HAND(arg_scatter, tensor_node(g, 12)->scatter = true)
BY_HAND(no_direction, g->recur.at[1].dir[0] = 0)
BY_HAND(no_seq, g->recur.at[1].nseq = 0)
BY_HAND(no_kind, g->tensor.at[6].kind = TENSOR_NONE)
BY_HAND(no_type, g->tensor.at[6].dtype = DT_NONE)
BY_HAND(late_input, g->tensor.at[12].kind = TENSOR_INPUT)
BY_HAND(operand_order, g->arg.at[g->expr.at[tensor_node(g, 6)->body].arg] = g->expr.n - 1)
BY_HAND(operand_none, g->arg.at[g->expr.at[tensor_node(g, 6)->body].arg] = 0)
BY_HAND(operand_range, g->expr.at[tensor_node(g, 6)->body].arg = 1u << 31)
BY_HAND(twice, vec_push(g->arena, &g->expr, g->expr.at[tensor_node(g, 6)->body]))
BY_HAND(no_op, g->expr.at[tensor_node(g, 6)->body].op = 0)
BY_HAND(tile_op, g->expr.at[tensor_node(g, 6)->body].op = OP_BXOR)
BY_HAND(no_dim, g->expr.at[expr_dim(g, 1)].ref = 9)
BY_HAND(no_tensor, g->expr.at[tensor_node(g, 8)->body].ref = 99)
BY_HAND(constant, g->expr.at[expr_float(g, DT_F32, 0.5)].imm.f = 0.1)
BY_HAND(access_text, g->access.at[1].text = NULL)
BY_HAND(check_text, g->check.at[0].text = NULL)

static const struct {
	void (*edit)(Graph *g);
	const char *error;
} hands[] = {
	{param_missing, "%5 is not parameter 4"},
	{param_order, "%2 is not parameter 1"},
	{param_added, "lists more parameters than there are"},
	{parallel_range, "parallel axis 0 has a range"},
	{wrong_output, "tensor %6 (s): is not the output of its node"},
	{wrong_rank, "has 1 parallel axes, its tensor rank 2"},
	{too_many_axes, "has too many axes"},
	{no_monoid, "has no such monoid"},
	{no_recur, "is in a recurrence that does not exist"},
	{not_member, "is not among the members of its recurrence"},
	{no_body, "body is not an expression"},
	{far_body, "body is not an expression"},
	{arg_scatter, "scatters with a monoid that can't"},
	{no_direction, "sequential axis 0 has no direction"},
	{no_seq, "has 0 sequential axes"},
	{no_kind, "tensor %6 (s): has no kind"},
	{no_type, "tensor %6 (s): has no type"},
	{late_input, "a parameter comes after a node"},
	{operand_order, "has an operand with no smaller id"},
	{operand_none, "has an operand with no smaller id"},
	{operand_range, "has its operands outside the pool"},
	{twice, "are equal"},
	{no_op, "has no operation"},
	{tile_op, "not an operation of the tensor graph"},
	{no_dim, "a dim that does not exist"},
	{no_tensor, "reads a tensor that does not exist"},
	{constant, "a constant is not a value of its type"},
	{access_text, "access 1: has no kind or text"},
	{check_text, "check 0: has no text"},
};

static void
broken_by_hand(void **state)
{
	(void)state;
	unsigned wrong = 0;
	for (size_t k = 0; k < sizeof hands / sizeof *hands; k++) {
		Fixture x;
		start(&x, tg_sample);
		hands[k].edit(x.g);
		wrong += unrefused(&x, hands[k].error, hands[k].error);
	}
	assert_int_equal(wrong, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_text),
		cmocka_unit_test(solved_dims),
		cmocka_unit_test(broken_by_hand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
