/* cascade_test.c: plans of cascades row by row of what is derived, what is late and what is refused, and
 * each plan's states against the definition on random data, over random trees of merges.
 *
 * The bound: with u = 2^-53 (2^-24 where f32 operations round), every rounding of a state is relative to a term G(x) * H(y) or to what it is
 * made of, terms of an exponential carry the rounding of their exponent, and n elements take at most n
 * combinations and moves: (16 n + 64 + 8 max |exponent|) * u * sum of |G * H|. Rows whose terms G * H are
 * larger than their sum have a sharper test of their own. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "cascade_run.h"
#include "tests/fuse/arena_setup.h"

/* Inputs s[i, j], v[j, d], k[j], w[j], c; then nodes by number from 6 on. D is 1 in all data. */
#define HEAD(fp) \
	"graph t " fp "\n" \
	"dim N param 0 axis 0 scale 1 offset 0 hint 1\n" \
	"dim M param 0 axis 1 scale 1 offset 0\n" \
	"dim D param 1 axis 1 scale 1 offset 0 hint 1\n" \
	"input %1 s : f32[$N, $M]\n" \
	"input %2 v : f32[$M, $D]\n" \
	"input %3 k : bool[$M]\n" \
	"input %4 w : f32[$M]\n" \
	"scalar %5 c : f32[]\n"
#define T(n, name) "tensor %" #n " " name " : f32[$N]\n"
#define NODE(n, monoid, body) "node %" #n " " monoid "\n  par i\n  red j 0 .. $M\n  body " body "\n"
#define GUARDED(n, monoid, body) "node %" #n " " monoid "\n  par i\n  red j 0 .. $M\n  guard %3[@1]\n  body " body "\n"
#define POINT(n, body) "node %" #n " none\n  par i\n  body " body "\n"
#define END(n) "result r %" #n "\n"
#define S "%1[@0, @1]"
#define W "%4[@1]"
#define R(n) "%" #n "[@0]"
#define SUB(a, b) "(- " a " " b ")"
#define MUL(a, b) "(* " a " " b ")"
#define DIV(a, b) "(/ " a " " b ")"
#define EXP(a) "(exp " a ")"
#define MEAN "(/ %6[@0] (cast:f32 $M))"
#define SOFTMAX NODE(6, "max", S) NODE(7, "sum", EXP(SUB(S, R(6))))

enum { LAST = 99 };

typedef struct {
	const char *name, *text;
	FoldPolicy policy; /* of the last member */
	unsigned rank, pass, nacc; /* of the last member and its pass */
	RemarkId late;
	Op op;             /* in the way */
	double scale;      /* of the data */
} Row;

static const Row rows[] = {
	{"softmax", HEAD("relaxed") T(6, "m") T(7, "l") SOFTMAX END(7), FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"attention", HEAD("relaxed") T(6, "m") T(7, "l") "tensor %8 o : f32[$N, $D]\n" SOFTMAX
	 "node %8 sum\n  par i d\n  red j 0 .. $M\n  body (* (exp (- %1[@0, @2] %6[@0])) %2[@2, @1])\n" END(8),
	 FOLD_STREAM, 1, 0, 4, REMARK_NONE, OP_NONE, 600},
	{"normalised attention", HEAD("relaxed") T(6, "m") T(7, "l") "tensor %8 o : f32[$N, $D]\n" SOFTMAX
	 "node %8 sum\n  par i d\n  red j 0 .. $M\n"
	 "  body (* (/ (exp (- %1[@0, @2] %6[@0])) %7[@0]) %2[@2, @1])\n" END(8),
	 FOLD_STREAM, 1, 0, 4, REMARK_NONE, OP_NONE, 600},
	{"rms norm times matrix", HEAD("relaxed") T(6, "q") T(7, "y") NODE(6, "sum", MUL(S, S))
	 NODE(7, "sum", DIV(MUL(S, W), "(sqrt " R(6) ")")) END(7), FOLD_HOIST, 1, 0, 3, REMARK_NONE, OP_NONE, 3},
	{"layer norm times matrix", HEAD("relaxed") T(6, "u") T(7, "q") T(8, "y") NODE(6, "sum", S)
	 NODE(7, "sum", MUL(SUB(S, MEAN), SUB(S, MEAN)))
	 NODE(8, "sum", MUL(MUL(SUB(S, MEAN), W), "(rsqrt " R(7) ")")) END(8), FOLD_MOMENTS, 2, 0, 6, REMARK_NONE, OP_NONE, 3},
	{"entropy", HEAD("relaxed") T(6, "m") T(7, "l") T(8, "h") SOFTMAX
	 NODE(8, "sum", MUL(EXP(SUB(S, R(6))), SUB(S, R(6)))) END(8), FOLD_MOMENTS, 2, 0, 4, REMARK_NONE, OP_NONE, 80},
	{"variance", HEAD("relaxed") T(6, "u") T(7, "q") NODE(6, "sum", S) NODE(7, "sum", MUL(SUB(S, MEAN), SUB(S, MEAN)))
	 END(7), FOLD_MOMENTS, 3, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"skewness", HEAD("relaxed") T(6, "u") T(7, "q") T(8, "k3") NODE(6, "sum", S)
	 NODE(7, "sum", MUL(SUB(S, MEAN), SUB(S, MEAN)))
	 NODE(8, "sum", MUL(MUL(SUB(S, MEAN), SUB(S, MEAN)), SUB(S, MEAN))) END(8),
	 FOLD_MOMENTS, 4, 0, 5, REMARK_NONE, OP_NONE, 3},
	{"absmax scale", HEAD("relaxed") T(6, "a") T(7, "y") NODE(6, "max", "(abs " S ")")
	 NODE(7, "sum", MUL(DIV(S, R(6)), W)) END(7), FOLD_HOIST, 1, 0, 3, REMARK_NONE, OP_NONE, 3},
	{"absmax cast", HEAD("relaxed") T(6, "a") T(7, "y") NODE(6, "max", "(abs " S ")")
	 NODE(7, "sum", MUL("(cast:f32 (cast:f8e4m3 (/ (* 448:f32 " S ") " R(6) ")))", W)) END(7),
	 FOLD_PLAIN, 1, 1, 1, REMARK_cascade_rounds, OP_CAST, 3},
	{"tanh", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S) NODE(7, "sum", "(tanh " SUB(S, R(6)) ")") END(7),
	 FOLD_PLAIN, 1, 1, 1, REMARK_cascade_mixes, OP_TANH, 3},
	{"gauss", HEAD("relaxed") T(6, "u") T(7, "y") NODE(6, "sum", S)
	 NODE(7, "sum", EXP("(neg " MUL(SUB(S, MEAN), SUB(S, MEAN)) ")")) END(7),
	 FOLD_PLAIN, 1, 1, 1, REMARK_cascade_mixes, OP_SUB, 3},
	{"to a minimum", HEAD("relaxed") T(6, "n") T(7, "y") NODE(6, "min", S) NODE(7, "sum", EXP(SUB(R(6), S))) END(7),
	 FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"off by one", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 NODE(7, "sum", EXP(SUB(S, "(max " R(6) " 0:f32)"))) END(7), FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"temperature", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 NODE(7, "sum", "(exp2 (* (abs %5[]) " SUB(S, R(6)) "))") END(7), FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 200},
	{"temperature of no sign", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 NODE(7, "sum", EXP("(* %5[] " SUB(S, R(6)) ")")) END(7), FOLD_PLAIN, 1, 1, 1, REMARK_cascade_unbounded, OP_EXP, 60},
	{"log probabilities", HEAD("relaxed") T(6, "m") T(7, "l") T(8, "y") SOFTMAX
	 NODE(8, "sum", MUL(EXP(SUB(S, "(+ " R(6) " (log " R(7) "))")), W)) END(8), FOLD_STREAM, 1, 0, 4, REMARK_NONE, OP_NONE, 600},
	{"divided exponentials", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S)
	 NODE(7, "sum", DIV(EXP(S), EXP(R(6)))) END(7), FOLD_HOIST, 1, 0, 3, REMARK_NONE, OP_NONE, 60},
	{"exponential of a mean", HEAD("relaxed") T(6, "u") T(7, "y") NODE(6, "sum", S) NODE(7, "sum", EXP(SUB(S, MEAN)))
	 END(7), FOLD_PLAIN, 1, 1, 1, REMARK_cascade_unbounded, OP_EXP, 30},
	{"twice the score", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S)
	 NODE(7, "sum", EXP(SUB(MUL("2:f32", S), R(6)))) END(7), FOLD_PLAIN, 1, 1, 1, REMARK_cascade_unbounded, OP_EXP, 30},
	{"bounded exponent", HEAD("relaxed") T(6, "u") T(7, "y") NODE(6, "sum", S)
	 NODE(7, "sum", EXP(SUB("(tanh " S ")", MEAN))) END(7), FOLD_HOIST, 1, 0, 3, REMARK_NONE, OP_NONE, 3},
	{"covariance", HEAD("relaxed") T(6, "u") T(7, "p") T(8, "y") NODE(6, "sum", S) NODE(7, "sum", W)
	 NODE(8, "sum", MUL(SUB(S, MEAN), SUB(W, "(/ %7[@0] (cast:f32 $M))"))) END(8),
	 FOLD_MOMENTS, 4, 0, 6, REMARK_NONE, OP_NONE, 3},
	{"second maximum", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "min", S) NODE(7, "max", SUB(W, R(6))) END(7),
	 FOLD_HOIST, 2, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"scaled maximum", HEAD("relaxed") T(6, "q") T(7, "y") NODE(6, "sum", MUL(S, S))
	 NODE(7, "max", DIV(W, "(sqrt (+ " R(6) " 1:f32))")) END(7), FOLD_HOIST, 1, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"maximum times a factor of no sign", HEAD("relaxed") T(6, "q") T(7, "y") NODE(6, "sum", S)
	 NODE(7, "max", MUL(W, R(6))) END(7), FOLD_PLAIN, 1, 1, 2, REMARK_cascade_distributes, OP_MUL, 3},
	{"product of differences", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S) NODE(7, "prod", SUB(S, R(6))) END(7),
	 FOLD_PLAIN, 1, 1, 1, REMARK_cascade_distributes, OP_SUB, 1},
	{"masked by a select", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S)
	 NODE(7, "sum", "(select %3[@1] " EXP(SUB(S, R(6))) " 0:f32)") END(7), FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"guarded against -inf", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S)
	 NODE(7, "sum", "(select (== " R(6) " -inf:f32) 0:f32 " EXP(SUB(S, R(6))) ")") END(7),
	 FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"masked by a guard", HEAD("relaxed") T(6, "m") T(7, "y") GUARDED(6, "max", S) GUARDED(7, "sum", EXP(SUB(S, R(6))))
	 END(7), FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"guarded mean and variance", HEAD("relaxed") T(6, "n") T(7, "u") T(8, "q") GUARDED(6, "sum", "1:f32")
	 GUARDED(7, "sum", S) GUARDED(8, "sum", "(pow " SUB(S, DIV(R(7), R(6))) " 2:f32)") END(8),
	 FOLD_MOMENTS, 3, 0, 6, REMARK_NONE, OP_NONE, 3},
	{"through pointwise nodes", HEAD("relaxed") T(6, "u") T(7, "mu") "tensor %8 dev : f32[$N, $M]\n" T(9, "q")
	 NODE(6, "sum", S) POINT(7, MEAN) "node %8 none\n  par i j\n  body (- %1[@0, @1] %7[@0])\n"
	 NODE(9, "sum", MUL("%8[@0, @1]", "%8[@0, @1]")) END(9), FOLD_MOMENTS, 3, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"a sum of products", HEAD("relaxed") T(6, "m") T(7, "l") T(8, "u") T(9, "y") SOFTMAX NODE(8, "sum", W)
	 NODE(9, "sum", MUL("(+ " EXP(SUB(S, R(6))) " 1:f32)", "(+ " W " " R(8) ")")) END(9),
	 FOLD_MOMENTS, 4, 0, 7, REMARK_NONE, OP_NONE, 3},
	{"difference to a maximum", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S) NODE(7, "sum", MUL(W, SUB(S, R(6)))) END(7),
	 FOLD_MOMENTS, 2, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"square of the difference to a minimum", HEAD("relaxed") T(6, "n") T(7, "y") NODE(6, "min", S)
	 NODE(7, "sum", MUL(W, MUL(SUB(R(6), S), SUB(R(6), S)))) END(7), FOLD_MOMENTS, 3, 0, 5, REMARK_NONE, OP_NONE, 3},
	{"nothing but differences", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S) NODE(7, "sum", SUB(R(6), S)) END(7),
	 FOLD_MOMENTS, 2, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"divided differences", HEAD("relaxed") T(6, "m") T(7, "l") T(8, "y") SOFTMAX NODE(8, "sum", DIV(SUB(S, R(6)), R(7))) END(8),
	 FOLD_MOMENTS, 2, 0, 5, REMARK_NONE, OP_NONE, 3},
	{"weighed log probabilities", HEAD("relaxed") T(6, "m") T(7, "l") T(8, "y") SOFTMAX
	 NODE(8, "sum", MUL(W, SUB(SUB(S, R(6)), "(log " R(7) ")"))) END(8), FOLD_MOMENTS, 2, 0, 5, REMARK_NONE, OP_NONE, 3},
	{"divergence", HEAD("relaxed") T(6, "m") T(7, "l") T(8, "y") SOFTMAX
	 NODE(8, "sum", MUL(W, SUB("(tanh " W ")", SUB(SUB(S, R(6)), "(log " R(7) ")")))) END(8),
	 FOLD_MOMENTS, 2, 0, 5, REMARK_NONE, OP_NONE, 3},
	{"difference to another's maximum", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", W) NODE(7, "sum", MUL(W, SUB(S, R(6)))) END(7),
	 FOLD_PLAIN, 1, 1, 1, REMARK_cascade_cancels, OP_SUB, 3},
	{"difference to a middle", HEAD("relaxed") T(6, "m") T(7, "n") T(8, "y") NODE(6, "max", S) NODE(7, "min", S)
	 NODE(8, "sum", MUL(W, SUB(S, MUL("0.5:f32", "(+ " R(6) " " R(7) ")")))) END(8), FOLD_PLAIN, 1, 1, 1, REMARK_cascade_cancels, OP_SUB, 3},
	{"differences of products", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S) NODE(7, "sum", SUB(MUL(S, W), MUL(R(6), W))) END(7),
	 FOLD_PLAIN, 1, 1, 1, REMARK_cascade_cancels, OP_SUB, 3},
	{"differences beside an exponential", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S)
	 NODE(7, "sum", "(+ " EXP(SUB(S, R(6))) " " SUB(S, R(6)) ")") END(7), FOLD_PLAIN, 1, 1, 1, REMARK_cascade_cancels, OP_ADD, 3},
	{"maximum of a difference less another", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S)
	 NODE(7, "max", SUB(SUB(S, R(6)), W)) END(7), FOLD_PLAIN, 1, 1, 2, REMARK_cascade_distributes, OP_SUB, 3},
	{"maximum of what falls", HEAD("relaxed") T(6, "n") T(7, "y") NODE(6, "min", S)
	 NODE(7, "max", MUL("0.25:f32", SUB(R(6), SUB(S, W)))) END(7), FOLD_HOIST, 2, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"range", HEAD("relaxed") T(6, "n") T(7, "y") NODE(6, "min", S) NODE(7, "max", SUB(S, R(6))) END(7),
	 FOLD_HOIST, 2, 0, 3, REMARK_NONE, OP_NONE, 3},
	{"maximum over a maximum", HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", "(abs " S ")")
	 NODE(7, "max", MUL(DIV(S, R(6)), W)) END(7), FOLD_PLAIN, 1, 1, 2, REMARK_cascade_distributes, OP_MUL, 3},
	{"normed magnitudes", HEAD("relaxed") T(6, "q") T(7, "y") NODE(6, "sum", MUL(S, S))
	 NODE(7, "max", "(abs " MUL(MUL(S, "(rsqrt (+ " R(6) " 1:f32))"), W) ")") END(7), FOLD_HOIST, 1, 0, 4, REMARK_NONE, OP_NONE, 3},
	{"finish with a default", HEAD("relaxed") T(6, "m") T(7, "l")
	 "node %6 max\n  par i\n  red j 0 .. $M\n  guard %3[@1]\n  body " S "\n  finish (select touched acc:f32 0:f32)\n"
	 GUARDED(7, "sum", EXP(SUB(S, R(6)))) END(7), FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 600},
	{"strict", HEAD("strict") T(6, "m") T(7, "l") SOFTMAX END(7), FOLD_PLAIN, 1, 1, 1, REMARK_cascade_strict, OP_NONE, 60},
	{"only what is late is late", HEAD("relaxed") T(6, "m") T(7, "t") T(8, "l") NODE(6, "max", S)
	 NODE(7, "sum", "(tanh " SUB(S, R(6)) ")") NODE(8, "sum", EXP(SUB(S, R(6)))) END(8),
	 FOLD_STREAM, 1, 0, 3, REMARK_NONE, OP_NONE, 60},
	{"late after late", HEAD("relaxed") T(6, "m") T(7, "t") T(8, "y") NODE(6, "max", S)
	 NODE(7, "sum", "(tanh " SUB(S, R(6)) ")") NODE(8, "sum", MUL(S, R(7))) END(8),
	 FOLD_HOIST, 1, 1, 3, REMARK_NONE, OP_NONE, 3},
	{"a guard of its own", HEAD("relaxed") T(6, "p") T(7, "m") T(8, "l") GUARDED(6, "sum", S) NODE(7, "max", S)
	 GUARDED(8, "sum", EXP(SUB(S, R(7)))) END(8), FOLD_STREAM, 1, 0, 4, REMARK_NONE, OP_NONE, 600},
	{"all and any and products", HEAD("relaxed") T(6, "m") "tensor %7 b : bool[$N]\n" T(8, "p") NODE(6, "max", S)
	 NODE(7, "all", "%3[@1]") NODE(8, "prod", S) END(8), FOLD_PLAIN, 1, 0, 4, REMARK_NONE, OP_NONE, 1},
};

static double
uniform(uint64_t *seed)
{
	return (double)run_random(seed) / 2147483648.0 * 2 - 1;
}

static void
fill(CascadeRun *r, const char *name, uint64_t *seed, double scale, double offset)
{
	double *x = run_input(r, name);
	for (unsigned k = 0; k < MAX_ELEMENTS; k++)
		x[k] = (float)(offset + scale * uniform(seed));
}

static void
fill_all(CascadeRun *r, uint64_t *seed, double scale)
{
	fill(r, "s", seed, scale, 0);
	fill(r, "v", seed, 1, 0);
	fill(r, "w", seed, 2, 0.25);
	run_input(r, "c")[0] = 0.75;
	unsigned kept = 1 + run_random(seed) % 4;
	for (unsigned k = 0; k < MAX_ELEMENTS; k++)
		run_input(r, "k")[k] = run_random(seed) % kept == 0;
}

static void
check_member(const CascadeRun *r, unsigned k, double room, const char *name)
{
	double got = r->got[k], want = r->want[k];
	bool same = isnan(want) ? isnan(got) : isinf(want) ? got == want : fabs(got - want) <= room;
	if (!same)
		run_fail(r, "%s, member %u, %u elements: %.17g, not %.17g within %.3g", name, k, r->n, got, want, room);
}

static double
room_of(const CascadeRun *r, unsigned k, double scale)
{
	double u = r->typed ? 0x1p-24 : 0x1p-53;
	double least = r->typed ? r->n * 0x1p-120 : 0; /* terms of f32 that vanish, times a weight */
	return (16 * r->n + 64 + 8 * scale) * u * (run_terms(r, k) + fabs(r->want[k])) + least;
}

static void
check_values(CascadeRun *r, uint64_t seed, double scale, const char *name)
{
	run_definition(r);
	run_merged(r, seed);
	for (unsigned k = 0; k < r->c.nmember; k++) {
		Monoid m = tensor_node(r->g, r->c.member[k].tensor)->monoid;
		bool empty = run_elements(r) == 0;
		if (empty && monoid_info[m].unit == UNIT_NONE && !tensor_node(r->g, r->c.member[k].tensor)->finish)
			continue; /* absent: any value */
		if (empty && m == MON_SUM)
			assert_true(r->got[k] == 0);
		else
			check_member(r, k, room_of(r, k, scale), name);
	}
}

static void
check_plan(const CascadeRun *r, const Row *row)
{
	const CascadeMember *m = &r->c.member[r->c.nmember - 1];
	if (!r->derived)
		fail_msg("%s: %s", row->name, run_text(r));
	Op op = OP_NONE;
	if (m->late.at)
		op = (Op)expr_get(r->g, m->late.at)->op;
	if (m->policy != row->policy || m->rank != row->rank || m->pass != row->pass || m->late.why != row->late ||
	    r->c.pass[m->pass].nacc != row->nacc || (row->op != OP_NONE && op != row->op))
		run_fail(r, "%s: another plan", row->name);
	if (m->late.why != REMARK_NONE)
		assert_int_equal(m->late.member, m->tensor);
}

static void
test_rows(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		run_begin(r, &arena, rows[k].text, NULL);
		check_plan(r, &rows[k]);
		uint64_t seed = 7 + k;
		for (int round = 0; round < 40; round++) {
			r->typed = round % 2;
			r->n = round < 8 ? (unsigned)round / 2 : 1 + run_random(&seed) % 50;
			fill_all(r, &seed, rows[k].scale);
			check_values(r, seed, rows[k].scale, rows[k].name);
		}
	}
}

/* merge is associative, and the empty state is its unit. */
static void
test_laws(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		double right[MAX_MEMBERS];
		run_begin(r, &arena, rows[k].text, NULL);
		uint64_t seed = 70 + k;
		for (int round = 0; round < 12; round++) {
			r->n = (unsigned)round * 3;
			fill_all(r, &seed, rows[k].scale);
			run_definition(r);
			if (!run_laws(r, seed, right))
				run_fail(r, "%s: the empty state is no unit", rows[k].name);
			for (unsigned m = 0; m < r->c.nmember && run_elements(r) > 0; m++)
				if (!(fabs(right[m] - r->got[m]) <= room_of(r, m, rows[k].scale)))
					run_fail(r, "%s, member %u: %.17g by (a b) c, %.17g by a (b c)", rows[k].name, m, r->got[m], right[m]);
		}
	}
}

static const Row *
row_named(const char *name)
{
	for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
		if (strcmp(rows[k].name, name) == 0)
			return &rows[k];
	fail_msg("no row %s", name);
	return NULL;
}

/* Scores of minus infinity weigh nothing, wherever they are; a row of nothing else, an infinity or a NaN
 * give what the definition gives. */
static void
test_infinite_scores(void **state)
{
	(void)state;
	static const char *const names[] = {"softmax", "attention", "normalised attention", "off by one", "log probabilities",
	                                    "temperature", "masked by a guard", "guarded against -inf", "entropy",
	                                    "difference to a maximum", "nothing but differences", "weighed log probabilities",
	                                    "second maximum", "range", "normed magnitudes"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		const Row *row = row_named(names[k]);
		run_begin(r, &arena, row->text, NULL);
		uint64_t seed = 700 + k;
		for (int round = 0; round < 60; round++) {
			r->n = 1 + run_random(&seed) % 30;
			fill_all(r, &seed, row->scale / 4);
			unsigned kept = 1 + run_random(&seed) % 8;
			for (unsigned j = 0; j < r->n; j++)
				if (run_random(&seed) % 8 >= kept - (round % 6 == 0))
					run_input(r, "s")[j] = -INFINITY;
			if (round % 10 == 9)
				run_input(r, "s")[run_random(&seed) % r->n] = round % 20 == 9 ? INFINITY : NAN;
			run_definition(r);
			run_merged(r, seed);
			for (unsigned m = 0; m < r->c.nmember && run_elements(r) > 0; m++)
				check_member(r, m, 1e-12 * (r->size[m] + fabs(r->want[m])), row->name);
		}
	}
}

/* Moments about a running mean keep their digits far from 0: the error is that of the data's own
 * rounding, not of squares of the offset. */
static void
test_offset(void **state)
{
	(void)state;
	static const char *const names[] = {"variance", "through pointwise nodes", "guarded mean and variance", "covariance"};
	for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		run_begin(r, &arena, row_named(names[k])->text, NULL);
		uint64_t seed = 7000 + k;
		for (int round = 0; round < 20; round++) {
			r->n = 200 + run_random(&seed) % 300;
			fill_all(r, &seed, 1);
			fill(r, "s", &seed, 1, 1e6);
			run_definition(r);
			run_merged(r, seed);
			unsigned last = r->c.nmember - 1;
			/* |s - mean| <= 2 with each difference within 2^-53 * 1e6 * few of exact */
			check_member(r, last, 1e-8 * r->size[last], names[k]);
		}
	}
}

/* The same data by sums of squares would miss by far more: the test above tests something. */
static void
test_offset_by_squares(void **state)
{
	(void)state;
	CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
	run_begin(r, &arena, row_named("variance")->text, NULL);
	uint64_t seed = 5;
	r->n = 400;
	fill(r, "s", &seed, 1, 1e6);
	run_definition(r);
	const double *s = run_input(r, "s");
	float sum = 0, squares = 0;
	for (unsigned k = 0; k < r->n; k++) {
		sum += (float)s[k];
		squares += (float)(s[k] * s[k]);
	}
	double want = r->want[r->c.nmember - 1];
	assert_true(fabs(squares - sum / (float)r->n * sum - want) > want);
}

/* Differences are within what their own size allows, however far from 0 the data is: the bound counts |s - m| and not |s|.
 * One element leaves exactly nothing, and so do equal ones. */
static void
test_near(void **state)
{
	(void)state;
	static const char *const names[] = {"difference to a maximum", "square of the difference to a minimum", "nothing but differences", "entropy"};
	static const char *const means[] = {"layer norm times matrix", "variance", "skewness", "covariance"};
	for (size_t k = 0; k < 8; k++) {
		const Row *row = row_named(k < 4 ? names[k] : means[k - 4]);
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		run_begin(r, &arena, row->text, NULL);
		assert_true(r->derived && r->c.npass == 1);
		r->typed = true;
		uint64_t seed = 8000 + k;
		for (int round = 0; round < 60; round++) {
			unsigned last = r->c.nmember - 1;
			bool equal = k >= 4 || round % 3 == 0;
			r->n = 1 + run_random(&seed) % 40;
			fill_all(r, &seed, 1);
			fill(r, "s", &seed, equal ? 0 : 2, 1000);
			run_definition(r);
			run_merged(r, seed);
			check_member(r, last, (16 * r->n + 64) * 0x1p-24 * r->size[last], row->name);
		}
	}
}

static void
test_options(void **state)
{
	(void)state;
	CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
	CascadeOptions few = {.max_accs = 2}, narrow = {.move_narrowed = true};
	uint64_t seed = 9;
	run_begin(r, &arena, row_named("softmax")->text, &few);
	assert_int_equal(r->c.npass, 2);
	assert_int_equal(r->c.member[1].late.why, REMARK_cascade_wide);

	static const char narrowed[] = HEAD("relaxed") T(6, "m") T(7, "l") "tensor %8 o : f32[$N, $D]\n" SOFTMAX
		"node %8 sum\n  par i d\n  red j 0 .. $M\n"
		"  body (* (cast:f32 (cast:bf16 (/ (exp (- %1[@0, @2] %6[@0])) %7[@0]))) %2[@2, @1])\n" END(8);
	run_begin(r, &arena, narrowed, NULL);
	assert_int_equal(r->c.npass, 2);
	assert_int_equal(r->c.member[2].late.why, REMARK_cascade_rounds);
	run_begin(r, &arena, narrowed, &narrow);
	assert_int_equal(r->c.npass, 1);
	assert_int_equal(r->c.member[2].policy, FOLD_STREAM);
	for (int round = 0; round < 20; round++) {
		r->n = 1 + run_random(&seed) % 40;
		fill_all(r, &seed, 6);
		run_definition(r);
		run_merged(r, seed);
		/* a bf16 is within 2^-9 of what it rounds, in both */
		check_member(r, 2, 0x1p-8 * r->size[2], "narrowed");
	}
}

typedef struct {
	const char *name, *text;
	RemarkId why;
} Group;

static const Group groups[] = {
	{"other ranges", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 "node %7 sum\n  par i\n  red j 1 .. $M\n  body " S "\n" END(7), REMARK_cascade_range},
	{"other guards", HEAD("relaxed") T(6, "m") T(7, "l") GUARDED(6, "max", S) NODE(7, "sum", EXP(SUB(S, R(6)))) END(7),
	 REMARK_cascade_range},
	{"a guard of its own, asked about", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 "node %7 sum\n  par i\n  red j 0 .. $M\n  guard %3[@1]\n  body " S "\n  finish (select touched acc:f32 1:f32)\n" END(7),
	 REMARK_cascade_range},
	{"a guard that reads", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 "node %7 sum\n  par i\n  red j 0 .. $M\n  guard (< " S " " R(6) ")\n  body " S "\n" END(7), REMARK_cascade_range},
	{"along the stream", HEAD("relaxed") "check E0701 (== $N $M) \"N == M\"\n" T(6, "m") T(7, "l") NODE(6, "max", S)
	 NODE(7, "sum", MUL(S, "%6[@1]")) END(7), REMARK_cascade_subscript},
	{"at a compound index", HEAD("relaxed") T(6, "m") T(7, "l") NODE(6, "max", S)
	 NODE(7, "sum", MUL(S, "%6[(div @0 2)]")) END(7), REMARK_cascade_subscript},
	{"through a sum", HEAD("relaxed") T(6, "m") "tensor %7 z : f32[]\n" T(8, "l") NODE(6, "max", S)
	 "node %7 none\n  body %6[0]\n" NODE(8, "sum", MUL(S, "%7[]")) END(8), REMARK_cascade_subscript},
	{"a position", HEAD("relaxed") "tensor %6 p : i64[$N]\n" NODE(6, "argmax", S) END(6), REMARK_cascade_position},
};

static void
test_groups(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof groups / sizeof *groups; k++) {
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		run_begin(r, &arena, groups[k].text, NULL);
		if (r->derived || r->why.why != groups[k].why)
			fail_msg("%s: %s", groups[k].name, run_text(r));
	}
}

/* A reduction that is no member stands between two that are; and a pointwise node is no member. */
static void
test_members(void **state)
{
	(void)state;
	static const char between[] = HEAD("relaxed") T(6, "m") "tensor %7 z : f32[]\n" T(8, "l") NODE(6, "max", S)
		"node %7 sum\n  red i 0 .. $N\n  body %6[@0]\n" NODE(8, "sum", MUL(S, "%7[]")) END(8);
	CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
	Cascade *c = ARENA_NEW(&arena, Cascade);
	Refusal why;
	TensorId apart[] = {6, 8}, order[] = {7, 6}, many[MAX_MEMBERS + 1] = {6};
	run_begin(r, &arena, between, NULL);
	assert_false(cascade_derive(r->g, &arena, apart, 2, NULL, c, &why));
	assert_int_equal(why.why, REMARK_cascade_between);
	assert_int_equal(why.member, 8);
	assert_false(cascade_derive(r->g, &arena, many, MAX_MEMBERS + 1, NULL, c, &why));
	assert_int_equal(why.why, REMARK_cascade_group);
	run_begin(r, &arena, row_named("softmax")->text, NULL);
	assert_false(cascade_derive(r->g, &arena, order, 2, NULL, c, &why));
	assert_int_equal(why.why, REMARK_cascade_group);
	TensorId input[] = {1};
	assert_false(cascade_derive(r->g, &arena, input, 1, NULL, c, &why));
	assert_int_equal(why.why, REMARK_cascade_group);
}

/* Parallel axes are matched by what is read; those of its own are a member's alone. */
static void
test_axes(void **state)
{
	(void)state;
	static const char text[] =
		"graph t relaxed\n"
		"dim N param 0 axis 0 scale 1 offset 0\n"
		"dim P param 0 axis 1 scale 1 offset 0\n"
		"dim M param 0 axis 2 scale 1 offset 0\n"
		"dim Q param 0 axis 3 scale 1 offset 0\n"
		"dim D param 1 axis 2 scale 1 offset 0\n"
		"input %1 s : f32[$N, $P, $M, $Q]\n"
		"input %2 v : f32[$M, $Q, $D]\n"
		"tensor %3 m : f32[$N, $P]\n"
		"tensor %4 l : f32[$N, $P]\n"
		"tensor %5 o : f32[$D, $P, $N]\n"
		"node %3 max\n  par n p\n  red a 0 .. $M\n  red b 0 .. $Q\n  body %1[@0, @1, @2, @3]\n"
		"node %4 sum\n  par n p\n  red a 0 .. $M\n  red b 0 .. $Q\n  body (exp (- %1[@0, @1, @2, @3] %3[@0, @1]))\n"
		"node %5 sum\n  par d p n\n  red a 0 .. $M\n  red b 0 .. $Q\n"
		"  body (* (/ (exp (- %1[@2, @1, @3, @4] %3[@2, @1])) %4[@2, @1]) %2[@3, @4, @0])\n"
		"result o %5\n";
	CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
	run_begin(r, &arena, text, NULL);
	if (!r->derived)
		fail_msg("%s", run_text(r));
	assert_int_equal(r->c.npar, 3);
	assert_int_equal(r->c.nred, 2);
	assert_int_equal(r->c.npass, 1);
	const CascadeMember *o = &r->c.member[2];
	assert_int_equal(o->axis[0], 2); /* d is new */
	assert_int_equal(o->axis[1], 1);
	assert_int_equal(o->axis[2], 0);
	assert_int_equal(o->policy, FOLD_STREAM);
	assert_int_equal(r->c.pass[0].nacc, 4);
	assert_int_equal(r->c.pass[0].acc[2].axes, 3);
	assert_int_equal(r->c.pass[0].acc[3].axes, 7);
	assert_int_equal(r->c.pass[0].acc[3].stage, 1);
	assert_int_equal(r->c.pass[0].anchor[0].axes, 3);
}

/* The text with each # as this number. */
static void
write_numbered(Text *t, const char *text, int number)
{
	for (; *text; text++)
		if (*text == '#')
			text_printf(t, "%d", number);
		else
			text_add(t, text, 1);
}

/* Bodies that are large, or small and unfold to much, are planned in no time. */
static void
test_large_bodies(void **state)
{
	(void)state;
	static const char *const step[] = {"(* ^# ^#)", "(max ^# (+ ^# 1:f32))", "(+ ^# (tanh ^#))", "(sqrt (+ ^# (abs ^#)))"};
	static const char *const start[] = {SUB(S, R(6)), R(6), S};
	static const char *const body[] = {"(exp (- " S " ^#))", "(* " S " ^#)", "(+ " S " (* ^# %6[@0]))"};
	for (unsigned k = 0; k < 4 * 3 * 3; k++) {
		CascadeRun *r = ARENA_NEW(&arena, CascadeRun);
		int n = k % 2 ? 400 : 60;
		Text t;
		text_init(&t, &arena);
		write_numbered(&t, HEAD("relaxed") T(6, "m") T(7, "y") NODE(6, "max", S) "let ^0 = ", 0);
		write_numbered(&t, start[k / 4 % 3], 0);
		for (int j = 0; j < n; j++) {
			text_printf(&t, "\nlet ^%d = ", j + 1);
			write_numbered(&t, step[k % 4], j);
		}
		write_numbered(&t, "\nnode %7 sum\n  par i\n  red j 0 .. $M\n  body ", 0);
		write_numbered(&t, body[k / 12], n);
		write_numbered(&t, "\n" END(7), 0);
		run_begin(r, &arena, text_get(&t), NULL);
		if (!r->derived)
			fail_msg("%u: %s", k, run_text(r));
		assert_true(strlen(run_text(r)) < 100000);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_rows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_laws, setup, teardown),
		cmocka_unit_test_setup_teardown(test_infinite_scores, setup, teardown),
		cmocka_unit_test_setup_teardown(test_offset, setup, teardown),
		cmocka_unit_test_setup_teardown(test_offset_by_squares, setup, teardown),
		cmocka_unit_test_setup_teardown(test_near, setup, teardown),
		cmocka_unit_test_setup_teardown(test_options, setup, teardown),
		cmocka_unit_test_setup_teardown(test_groups, setup, teardown),
		cmocka_unit_test_setup_teardown(test_members, setup, teardown),
		cmocka_unit_test_setup_teardown(test_axes, setup, teardown),
		cmocka_unit_test_setup_teardown(test_large_bodies, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
