/* Decisions within their bounds: each program is evaluated with a condition that is true, one that
 * is false and one that the bounds leave open, and the last result must cover the first two. */
#include "bench.h"

#include <math.h>

typedef enum { SURELY_NOT, SURELY, PERHAPS_NOT, PERHAPS } Choice;

typedef struct {
	Bench b;
	TensorId x, i;
	ExprId cond;
} Scene;

static const float floats[4] = {3, -2, 5, 0.5f};
static const int32_t ints[4] = {2, 1, 3, 0};

/* exp(1) against numbers around it. */
static ExprId
condition(Bench *b, Choice c)
{
	if (c == SURELY || c == SURELY_NOT)
		return expr_int(b->g, DT_BOOL, c == SURELY);
	float near = c == PERHAPS ? nextafterf(2.7182817f, 3) : 2.7182817f; /* e is between them */
	return expr_binary(b->g, OP_LT, expr_unary(b->g, OP_EXP, bench_f32(b, 1)),
		bench_f32(b, (double)near));
}

static void
open_scene(Scene *s, Choice c)
{
	bench_open(&s->b, FP_RELAXED);
	s->x = bench_input(&s->b, DT_F32, floats, 1, 4, 0);
	s->i = bench_input(&s->b, DT_I32, ints, 1, 4, 0);
	s->cond = condition(&s->b, c);
}

static ExprId
read_x(Scene *s, ExprId at)
{
	return bench_read(&s->b, s->x, 1, at, 0, 0);
}

/* --- programs --- */

static TensorId
node_of(Scene *s, ExprId body)
{
	Node n = {.body = body};
	return bench_node(&s->b, n, (DType)expr_get(s->b.g, body)->dtype, 0, 0);
}

static ExprId
integer_choice(Scene *s)
{
	return expr_select(s->b.g, s->cond, bench_i64(&s->b, 3), bench_i64(&s->b, 1));
}

static TensorId
a_float_select(Scene *s)
{
	return node_of(s, expr_select(s->b.g, s->cond, read_x(s, bench_i64(&s->b, 0)),
		bench_f32(&s->b, 7)));
}

static TensorId
an_integer_select(Scene *s)
{
	return node_of(s, integer_choice(s));
}

static TensorId
integers_of_it(Scene *s)
{
	Graph *g = s->b.g;
	ExprId v = expr_binary(g, OP_MUL, integer_choice(s), bench_i64(&s->b, -5));
	v = expr_binary(g, OP_SUB, expr_binary(g, OP_ADD, v, bench_i64(&s->b, 9)), integer_choice(s));
	v = expr_binary(g, OP_MAX, expr_unary(g, OP_NEG, v), bench_i64(&s->b, 0));
	return node_of(s, expr_binary(g, OP_MIN, expr_unary(g, OP_ABS, v), bench_i64(&s->b, 100)));
}

static TensorId
a_complex_select(Scene *s)
{
	ExprId one = bench_f32(&s->b, 1), arg[2][2] = {{one, bench_f32(&s->b, 4)},
		{one, bench_f32(&s->b, 6)}};
	ExprId z[2];
	for (int k = 0; k < 2; k++)
		z[k] = expr_make(s->b.g, OP_CPLX, DT_C64, 0, 0, arg[k], 2);
	return node_of(s, expr_select(s->b.g, s->cond, z[0], z[1]));
}

static TensorId
an_integer_as_float(Scene *s)
{
	return node_of(s, expr_cast(s->b.g, DT_F32, integer_choice(s)));
}

static TensorId
a_narrow_integer(Scene *s)
{
	return node_of(s, expr_cast(s->b.g, DT_I4, integer_choice(s)));
}

/* 200 and 300 wrap to -56 and 44, which are no neighbours. */
static TensorId
a_wrapped_integer(Scene *s)
{
	ExprId v = expr_binary(s->b.g, OP_MUL, integer_choice(s), bench_i64(&s->b, 50));
	v = expr_binary(s->b.g, OP_ADD, v, bench_i64(&s->b, 150));
	return node_of(s, expr_cast(s->b.g, DT_I8, v));
}

static TensorId
a_bool_of_an_integer(Scene *s)
{
	ExprId v = expr_binary(s->b.g, OP_SUB, integer_choice(s), bench_i64(&s->b, 1));
	return node_of(s, expr_cast(s->b.g, DT_BOOL, v));
}

static TensorId
conjunction(Scene *s)
{
	Graph *g = s->b.g;
	ExprId yes = expr_binary(g, OP_LT, bench_f32(&s->b, 0), read_x(s, bench_i64(&s->b, 0)));
	return node_of(s, expr_binary(g, OP_AND, s->cond, yes));
}

static TensorId
disjunction(Scene *s)
{
	Graph *g = s->b.g;
	ExprId no = expr_binary(g, OP_LT, bench_f32(&s->b, 0), read_x(s, bench_i64(&s->b, 1)));
	return node_of(s, expr_binary(g, OP_OR, expr_binary(g, OP_OR, s->cond, no),
		expr_unary(g, OP_NOT, s->cond)));
}

static TensorId
reduction(Scene *s, Monoid m, bool integers)
{
	Node n = {.monoid = m};
	ExprId k = bench_reduced(&s->b, &n, 4);
	ExprId third = expr_binary(s->b.g, OP_EQ, k, bench_i64(&s->b, 2));
	n.guard = expr_binary(s->b.g, OP_OR, expr_unary(s->b.g, OP_NOT, third), s->cond);
	n.body = integers ? bench_read(&s->b, s->i, 1, k, 0, 0) : read_x(s, k);
	if (m == MON_ANY || m == MON_ALL)
		n.body = expr_binary(s->b.g, OP_LT, read_x(s, k), bench_f32(&s->b, 4));
	DType t = (DType)expr_get(s->b.g, n.body)->dtype;
	return bench_node(&s->b, n, m == MON_ARGMAX || m == MON_ARGMIN ? DT_I64 : t, 0, 0);
}

#define REDUCTION(name, monoid, integers) \
	static TensorId                       \
	name(Scene *s)                        \
	{                                     \
		return reduction(s, monoid, integers); \
	}

REDUCTION(a_sum, MON_SUM, false)
REDUCTION(a_product, MON_PROD, false)
REDUCTION(a_maximum, MON_MAX, false)
REDUCTION(a_minimum, MON_MIN, false)
REDUCTION(an_integer_sum, MON_SUM, true)
REDUCTION(an_integer_product, MON_PROD, true)
REDUCTION(an_integer_maximum, MON_MAX, true)
REDUCTION(an_any, MON_ANY, false)
REDUCTION(an_all, MON_ALL, false)
REDUCTION(an_argmax, MON_ARGMAX, false)
REDUCTION(an_integer_argmax, MON_ARGMAX, true)
REDUCTION(an_argmin, MON_ARGMIN, false)

/* Nothing but the uncertain term: finish does not know whether one arrived. */
static TensorId
only_uncertain_terms(Scene *s, int64_t count)
{
	Node n = {.monoid = MON_MAX};
	n.body = read_x(s, bench_reduced(&s->b, &n, count));
	n.guard = s->cond;
	n.finish = expr_select(s->b.g, expr_make(s->b.g, OP_TOUCHED, DT_BOOL, 0, 0, NULL, 0),
	                       expr_make(s->b.g, OP_ACC, DT_F32, 0, 0, NULL, 0), bench_f32(&s->b, -9));
	return bench_node(&s->b, n, DT_F32, 0, 0);
}

static TensorId
a_lonely_term(Scene *s)
{
	return only_uncertain_terms(s, 1);
}

static TensorId
lonely_terms(Scene *s)
{
	return only_uncertain_terms(s, 3);
}

/* An uncertain term before certain ones: the maximum of k > 0, or of all. */
static TensorId
a_late_start(Scene *s)
{
	Node n = {.monoid = MON_MAX};
	ExprId k = bench_reduced(&s->b, &n, 4);
	n.guard = expr_binary(s->b.g, OP_OR, expr_binary(s->b.g, OP_LT, bench_i64(&s->b, 0), k), s->cond);
	n.body = bench_read(&s->b, s->i, 1, k, 0, 0);
	n.body = expr_unary(s->b.g, OP_NEG, n.body);
	return bench_node(&s->b, n, DT_I32, 0, 0);
}

static TensorId
a_subscript(Scene *s)
{
	return node_of(s, read_x(s, integer_choice(s)));
}

static TensorId
a_range(Scene *s)
{
	Node n = {.monoid = MON_SUM};
	ExprId k = bench_reduced(&s->b, &n, 4);
	n.axis[0].hi = integer_choice(s);
	n.body = read_x(s, k);
	return bench_node(&s->b, n, DT_F32, 0, 0);
}

static TensorId
a_scatter_target(Scene *s)
{
	Node n = {.npar = 1, .monoid = MON_SUM, .scatter = true};
	ExprId k = bench_reduced(&s->b, &n, 4);
	n.target[0] = expr_binary(s->b.g, OP_SUB, integer_choice(s), bench_i64(&s->b, 1));
	n.body = read_x(s, k);
	return bench_node(&s->b, n, DT_F32, 4, 0);
}

static TensorId
a_domain(Scene *s)
{
	Node n = {.body = read_x(s, bench_i64(&s->b, 0)), .domain = s->cond};
	TensorId t = bench_node(&s->b, n, DT_F32, 0, 0);
	ExprId v = bench_read(&s->b, t, 0, 0, 0, 0);
	return node_of(s, expr_select(s->b.g, s->cond, v, bench_f32(&s->b, 1)));
}

typedef TensorId Program(Scene *s);

static const struct { const char *name; Program *build; } programs[] = {
#define PROGRAM(f) {#f, f}
	PROGRAM(a_float_select), PROGRAM(an_integer_select), PROGRAM(integers_of_it),
	PROGRAM(a_complex_select), PROGRAM(an_integer_as_float), PROGRAM(conjunction),
	PROGRAM(a_narrow_integer),
	PROGRAM(a_wrapped_integer), PROGRAM(a_bool_of_an_integer), PROGRAM(disjunction), PROGRAM(a_sum),
	PROGRAM(a_product), PROGRAM(a_maximum), PROGRAM(a_minimum), PROGRAM(an_integer_sum),
	PROGRAM(an_integer_product), PROGRAM(an_integer_maximum), PROGRAM(an_any), PROGRAM(an_all),
	PROGRAM(an_argmax), PROGRAM(an_integer_argmax), PROGRAM(an_argmin), PROGRAM(a_lonely_term),
	PROGRAM(lonely_terms), PROGRAM(a_late_start), PROGRAM(a_subscript), PROGRAM(a_range),
	PROGRAM(a_scatter_target), PROGRAM(a_domain),
#undef PROGRAM
};

static EvalTensor
evaluate(Scene *s, Program *build, Choice c)
{
	open_scene(s, c);
	bench_result(&s->b, build(s));
	assert_int_equal(bench_eval(&s->b), EVAL_OK);
	return s->b.out.result[0];
}

/* The outcome of a sure choice must be one that the open choice allows. */
static void
expect_covered(const char *name, const EvalTensor *open, const EvalTensor *sure)
{
	for (int64_t n = 0; n < open->count; n++) {
		const EvalValue *o = &open->at[n], *v = &sure->at[n];
		double gap = dtype_is_float(open->dtype) ? fabs(o->re - v->re) : fabs((double)(o->i - v->i));
		assert_true(v->err == 0 && !v->ambiguous);
		if (open->dtype == DT_C64)
			gap = fmax(fabs(o->re - v->re) - o->err, fabs(o->im - v->im) - o->ierr) + o->err;
		if (!(gap <= o->err))
			fail_msg("%s: %g %d +- %g does not cover %g %d", name, o->re, (int)o->i, o->err, v->re,
				(int)v->i);
	}
}

static void
open_choices_cover_both(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof programs / sizeof programs[0]; k++) {
		Scene s[4];
		EvalTensor t[4];
		for (int c = 0; c < 4; c++)
			t[c] = evaluate(&s[c], programs[k].build, (Choice)c);
		for (int c = PERHAPS_NOT; c <= PERHAPS; c++)
			for (int sure = SURELY_NOT; sure <= SURELY; sure++)
				expect_covered(programs[k].name, &t[c], &t[sure]);
		for (int c = 0; c < 4; c++)
			bench_close(&s[c].b);
	}
}

/* What both outcomes agree on stays certain, and a small difference stays small. */
static void
open_choices_do_not_spread(void **state)
{
	(void)state;
	static const struct { Program *build; double at_most; } rows[] = {
		{a_float_select, 4.1}, {an_integer_select, 2}, {an_integer_as_float, 2.01},
		{integers_of_it, 12},
		{a_minimum, 0}, {a_narrow_integer, 2}, {a_bool_of_an_integer, 1}, {an_integer_sum, 3},
		{an_all, 1}, {an_any, 0}, {a_sum, 5.01}, {a_maximum, 2.01},
		{a_lonely_term, 12.01}, {a_domain, 2.01},
	};
	for (size_t k = 0; k < sizeof rows / sizeof rows[0]; k++)
		for (int c = PERHAPS_NOT; c <= PERHAPS; c++) {
			Scene s;
			EvalTensor t = evaluate(&s, rows[k].build, (Choice)c);
			if (!(t.at[0].err <= rows[k].at_most))
				fail_msg("row %d: %g", (int)k, t.at[0].err);
			assert_int_equal(t.at[0].ambiguous, rows[k].at_most > 0);
			bench_close(&s.b);
		}
}

static void
a_part_may_be_ambiguous(void **state)
{
	(void)state;
	Scene s;
	EvalTensor t = evaluate(&s, a_complex_select, PERHAPS);
	assert_true(t.at[0].ambiguous && t.at[0].err == 0 && t.at[0].ierr >= 2 && t.at[0].ierr < 2.01);
	bench_close(&s.b);
}

/* Two branches that meet at the border, as in a sigmoid, are not ambiguous. */
static void
branches_that_agree_are_not_ambiguous(void **state)
{
	(void)state;
	Scene s;
	open_scene(&s, PERHAPS);
	Graph *g = s.b.g;
	ExprId e = expr_unary(g, OP_EXP, bench_f32(&s.b, 1));
	ExprId same = expr_binary(g, OP_MUL, expr_unary(g, OP_EXP2, bench_f32(&s.b,
		1.4426950408889634f)), bench_f32(&s.b, 1));
	bench_result(&s.b, node_of(&s, expr_select(g, s.cond, e, same)));
	assert_int_equal(bench_eval(&s.b), EVAL_OK);
	assert_true(!bench_at(&s.b, 0, 0)->ambiguous && bench_at(&s.b, 0, 0)->err < 2e-6);
	bench_close(&s.b);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(open_choices_cover_both),
		cmocka_unit_test(open_choices_do_not_spread),
		cmocka_unit_test(a_part_may_be_ambiguous),
		cmocka_unit_test(branches_that_agree_are_not_ambiguous),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
