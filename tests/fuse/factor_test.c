/* factor_test.c: e = sum of G(x) * H(y): the terms, the rank that sampling finds, and what is refused
 * naming which operator. x is what mentions axis 1, y the tensors m l u q a. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "passes/fuse/algebra.h"
#include "real_eval.h"
#include "tests/fuse/arena_setup.h"

static const char frame[] =
	"graph t relaxed\n"
	"dim N param 0 axis 0 scale 1 offset 0\n"
	"dim M param 0 axis 1 scale 1 offset 0\n"
	"input %%1 s : f32[$N, $M]\n"
	"input %%2 v : f32[$N, $M]\n"
	"input %%3 w : f32[$M]\n"
	"input %%4 k : bool[$M]\n"
	"scalar %%5 c : f32[]\n"
	"input %%6 m : f32[$N]\n"
	"input %%7 u : f32[$N]\n"
	"tensor %%8 l : f32[$N]\n"
	"tensor %%9 q : f32[$N]\n"
	"tensor %%10 a : f32[$N]\n"
	"tensor %%11 r : f32[$N, $M]\n"
	"node %%8 sum\n  par i\n  red j 0 .. $M\n  body (exp %%1[@0, @1])\n"
	"node %%9 sum\n  par i\n  red j 0 .. $M\n  body (* %%1[@0, @1] %%1[@0, @1])\n"
	"node %%10 max\n  par i\n  red j 0 .. $M\n  body (abs %%1[@0, @1])\n"
	"node %%11 none\n  par i j\n  body %s\n"
	"result r %%11\n";

static Side
side_of_leaf(void *user, const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	(void)user;
	if (p->op == OP_AXIS)
		return p->ref == 1 ? SIDE_X : SIDE_NONE;
	if (p->op != OP_READ)
		return SIDE_NONE;
	const char *name = name_text(g->names, g->tensor.at[p->ref].name);
	return strchr("mluqa", name[0]) ? SIDE_Y : strchr("svwkd", name[0]) ? SIDE_X : SIDE_NONE;
}

typedef struct {
	unsigned rank;
	const char *body;
} Row;

#define S "%1[@0, @1]"
#define V "%2[@0, @1]"
#define W "%3[@1]"
#define K "%4[@1]"
#define C "%5[]"
#define M "%6[@0]"
#define L "%8[@0]"
#define U "%7[@0]"
#define Q "%9[@0]"
#define A "%10[@0]"
#define SM "(- " S " " M ")"
#define SU "(- " S " " U ")"

/* DERIVATION.md, section 5, row by row, then each rule. */
static const Row accepted[] = {
	{1, "(exp " SM ")"},
	{1, "(* (exp " SM ") " V ")"},
	{1, "(/ (* (exp " SM ") " V ") " L ")"},
	{1, "(* (/ (exp " SM ") " L ") " V ")"},
	{1, "(/ (* " S " " W ") (sqrt " Q "))"},
	{2, "(/ (* " SU " " W ") (sqrt " Q "))"},
	{2, "(* (exp " SM ") " SM ")"},
	{3, "(* " SU " " SU ")"},
	{4, "(* (* " SU " " SU ") " SU ")"},
	{3, "(pow " SU " 2:f32)"},
	{4, "(pow " SU " 3:f32)"},
	{1, "(* (/ " S " " A ") " W ")"},
	{1, S},
	{1, M},
	{1, "(neg (* " S " " M "))"},
	{2, "(+ (* " S " " M ") (* " V " " L "))"},
	{1, "(+ (* " S " " M ") (* " V " " M "))"},
	{1, "(+ (* " S " " M ") (* " S " " L "))"},
	{1, "(- (* (+ " S " 1:f32) " M ") (* " S " " M "))"},
	{1, "(exp2 (* " C " " SM "))"},
	{1, "(exp (- (* " S " " C ") (+ (* " M " " C ") (log " L "))))"},
	{1, "(sqrt (exp " SM "))"},
	{1, "(rsqrt (/ " L " (exp " S ")))"},
	{1, "(abs (* " S " (/ " M " " L ")))"},
	{1, "(sqrt (* (* " S " " S ") (* " M " " M ")))"},
	{2, "(log (/ (exp " SM ") " L "))"},
	{1, "(select " K " (exp " SM ") 0:f32)"},
	{2, "(select " K " (exp " SM ") (* " V " " L "))"},
	{1, "(select (== " M " -inf:f32) 0:f32 (exp " SM "))"},
	{2, "(select (< (cast:f32 @1) " C ") " SM " 0:f32)"},
	{1, "(/ (exp " S ") (exp " M "))"},
	{3, "(* " SM " " SU ")"},
	{4, "(* " SM " (- " V " " U "))"},
	{1, "(* (exp " SM ") (cast:f32 (cast:bf16 " V ")))"},
	{1, "(* (exp " SM ") (cast:f32 (cast:bf16 " L ")))"},
	{2, "(- " S " " M ")"},
	{1, "(/ (* " S " " M ") " S ")"},
};

enum { MANY = 6 };

typedef struct {
	RemarkId why;
	Op op;
	const char *body;
	unsigned sampled; /* the rank that sampling finds; MANY: that or more; 0: not asked */
} Refused;

static const Refused refused[] = {
	{REMARK_cascade_mixes, OP_TANH, "(tanh " SM ")", MANY},
	{REMARK_cascade_mixes, OP_SUB, "(exp (neg (* " SU " " SU ")))", MANY},
	{REMARK_cascade_rounds, OP_CAST, "(* (cast:f32 (cast:f8e4m3 (/ (* 448:f32 " S ") " A "))) " W ")", 0},
	{REMARK_cascade_rounds, OP_CAST, "(* (cast:f32 (cast:bf16 (exp " SM "))) " V ")", 0},
	{REMARK_cascade_mixes, OP_MAX, "(max " S " " M ")", 0},
	{REMARK_cascade_mixes, OP_FDIV, "(/ 1:f32 " SM ")", 0},
	{REMARK_cascade_mixes, OP_FDIV, "(/ (exp " SM ") (+ " S " " M "))", 0},
	{REMARK_cascade_mixes, OP_ABS, "(abs " SM ")", 0},
	{REMARK_cascade_mixes, OP_SQRT, "(sqrt (* " S " " M "))", 0},
	{REMARK_cascade_mixes, OP_LOG, "(log (* " S " " M "))", 0},
	{REMARK_cascade_mixes, OP_POW, "(pow " S " " M ")", MANY},
	{REMARK_cascade_mixes, OP_ERF, "(* " V " (erf (/ " S " " L ")))", MANY},
	{REMARK_cascade_mixes, OP_SELECT, "(select (< " S " " M ") " S " 0:f32)", 0},
	{REMARK_cascade_mixes, OP_SIN, "(sin (+ " S " " M "))", 2},
	{REMARK_cascade_mixes, OP_FLOOR, "(* " W " (floor (* " S " " M ")))", 0},
	{REMARK_cascade_rank, OP_MUL, "(* (* " SU " " SU ") (* " SU " " SU "))", 5},
};

static Graph *
graph_with(const char *body, ExprId *e)
{
	const char *error = NULL, *text = arena_text(&arena, frame, body);
	Graph *g = graph_read(&arena, names_new(&arena), text, strlen(text), &error);
	if (!g || !graph_verify(g, &arena, &error))
		fail_msg("%s in %s", error, body);
	*e = g->node.at[g->node.n - 1].body;
	return g;
}

/* Fractions of both signs, positive where the tensor's body says so, by the leaf and the round. */
static double
leaf_value(void *user, const Graph *g, ExprId e)
{
	const Expr *p = expr_get(g, e);
	unsigned h = (e * 7919u + *(unsigned *)user * 104729u) % 1009;
	if (p->dtype == DT_BOOL || p->op == OP_AXIS)
		return h % 2;
	double v = (double)h / 500 - 1;
	return p->op == OP_READ && tensor_node(g, p->ref) ? fabs(v) + 0.25 : v;
}

/* The terms add up to e. */
static void
check_sum(const Graph *g, ExprId e, const Terms *t, const char *body)
{
	for (unsigned round = 0; round < 40; round++) {
		double sum = 0, size = 1, want = real_eval(g, e, leaf_value, &round);
		for (unsigned k = 0; k < t->n; k++) {
			double x = real_eval(g, t->g[k], leaf_value, &round) * real_eval(g, t->h[k], leaf_value, &round);
			sum += x;
			size += fabs(x);
		}
		if (!(fabs(sum - want) <= 1e-13 * size))
			fail_msg("%s: the terms add up to %.17g, not %.17g", body, sum, want);
	}
}

static void
test_accepted(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof accepted / sizeof *accepted; k++) {
		const Row *r = &accepted[k];
		ExprId e;
		Graph *g = graph_with(r->body, &e);
		Terms t;
		Refusal why;
		Text text;
		text_init(&text, &arena);
		if (!factor(g, &arena, e, side_of_leaf, NULL, &t, &why)) {
			refusal_print(g, &why, &text);
			fail_msg("%s: %s", r->body, text_get(&text));
		}
		if (t.n != r->rank || t.rank != r->rank || sampled_rank(g, &arena, e, side_of_leaf, NULL) != r->rank)
			fail_msg("%s: %u terms, rank %u", r->body, t.n, t.rank);
		for (unsigned j = 0; j < t.n; j++) {
			assert_int_equal(sampled_rank(g, &arena, t.g[j], side_of_leaf, NULL), 1);
			assert_int_equal(sampled_rank(g, &arena, t.h[j], side_of_leaf, NULL), 1);
		}
		check_sum(g, e, &t, r->body);
	}
}

static void
test_refused(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof refused / sizeof *refused; k++) {
		const Refused *r = &refused[k];
		ExprId e;
		Graph *g = graph_with(r->body, &e);
		Terms t;
		Refusal why;
		Text text;
		text_init(&text, &arena);
		if (factor(g, &arena, e, side_of_leaf, NULL, &t, &why))
			fail_msg("%s: accepted with %u terms", r->body, t.n);
		refusal_print(g, &why, &text);
		if (why.why != r->why || !why.at || expr_get(g, why.at)->op != r->op)
			fail_msg("%s: %s", r->body, text_get(&text));
		unsigned rank = sampled_rank(g, &arena, e, side_of_leaf, NULL);
		if (r->sampled && (r->sampled == MANY ? rank < MANY : rank != r->sampled))
			fail_msg("%s: sampled rank %u", r->body, rank);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_accepted, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
