/* prove_test.c: goals that follow, goals that do not, bounds, and what a goal costs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

#include <cmocka.h>

#include "cond_read.h"
#include "int_value.h"

typedef struct {
	const char *facts, *goal;
} Case;

static const Case provable[] = {
#define GOAL(facts, goal) {facts, goal},
#include "prove_yes.def"
};

static const Case unprovable[] = {
#include "prove_no.def"
#undef GOAL
};

typedef struct {
	Unwind unwind;
	Arena arena;
	Graph *g;
	Facts *f;
} Fixture;

static void
start(Fixture *x)
{
	*x = (Fixture){0};
	arena_init(&x->arena, &host_default()->memory, &x->unwind);
	if (setjmp(x->unwind.env))
		fail_msg("%s", x->unwind.text);
	x->g = graph_new(&x->arena, names_new(&x->arena));
	x->f = facts_new(x->g, &x->arena);
}

static double
seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void
run_cases(const Case *c, size_t n, bool want)
{
	unsigned wrong = 0;
	double worst = 0, total = 0;
	const char *slowest = "";
	for (size_t k = 0; k < n; k++) {
		Fixture x;
		start(&x);
		assert_true(facts_read(x.g, x.f, c[k].facts));
		ExprId goal = cond_read(x.g, c[k].goal);
		assert_true(goal != 0);
		uint32_t mark = facts_mark(x.f);
		double t = seconds();
		bool got = prove(x.f, goal);
		t = seconds() - t;
		total += t;
		if (t > worst) {
			worst = t;
			slowest = c[k].goal;
		}
		assert_int_equal(facts_mark(x.f), mark);
		if (got != want) {
			fprintf(stderr, "%s: %s |- %s\n", want ? "not proved" : "PROVED", c[k].facts, c[k].goal);
			wrong++;
		}
		arena_free(&x.arena);
	}
	printf("%zu goals, %.2f ms together, the slowest %.2f ms: %s\n", n, 1e3 * total, 1e3 * worst, slowest);
	assert_int_equal(wrong, 0);
	assert_true(n >= 80);
}

static void
goals_that_follow(void **state)
{
	(void)state;
	run_cases(provable, sizeof provable / sizeof *provable, true);
}

static void
goals_that_do_not(void **state)
{
	(void)state;
	run_cases(unprovable, sizeof unprovable / sizeof *unprovable, false);
}

static void
contradictions(void **state)
{
	(void)state;
	Fixture x;
	start(&x);
	assert_true(facts_read(x.g, x.f, "i in 0..N"));
	assert_false(prove_absurd(x.f));
	uint32_t mark = facts_mark(x.f);
	assert_true(facts_read(x.g, x.f, "N <= 0"));
	assert_true(prove_absurd(x.f));
	facts_pop(x.f, mark);
	assert_false(prove_absurd(x.f));
	assert_true(facts_read(x.g, x.f, "t[i] < 3; !(t[i] < 4)"));
	assert_true(prove_absurd(x.f));
	arena_free(&x.arena);
}

typedef struct {
	const char *facts, *e, *upper, *lower; /* NULL: none is found */
} Bound;

static const Bound bounds[] = {
	{"i in 0..N", "i", "N - 1", "0"},
	{"i in 0..N; j in 0..M", "i*4 + j", "4*N - 4 + M - 1", "0"},
	{"i in 0..N; j in 0..M", "i - j", "N - 1", "1 - M"},
	{"i in 0..N; j in 0..M; N >= 0; M >= 0", "i*M + j", "N*M - 1", "0"},
	{"b in 0..B; m in 0..M; n in 0..N; M >= 0; N >= 0", "b*(M*N) + m*N + n", "B*M*N - 1", "0"},
	{"p in 0..P; r in 0..R; U >= 1; P >= 0", "p*U + r - Q", "P*U - U + R - 1 - Q", "-Q"},
	{"i in 0..N", "(i + 3) div 4", "(N + 2) div 4", "0"},
	{"i in 0..N", "N - 1 - i", "N - 1", "0"},
	{"i in 0..N; j in 0..i", "j", "N - 2", "0"},
	{"i in 2..N; j in i..i + 3", "j", "N + 1", "2"},
	{"i in 0..N; G >= 1", "i div G", "(N - 1) div G", "0 div G"},
	{"i in 0..N", "t[i]", NULL, NULL},
	{"i in 0..N", "t[i] - t[i] + i", "N - 1", "0"},
	{"i in 0..N", "i * K", NULL, NULL},
	{"i in 0..N; K >= 0", "i * K", "(N - 1) * K", "0"},
	{"i in 0..N; K <= 0", "i * K", "0", "(N - 1) * K"},
	{"i in 0..N; j in 0..M", "min(i, j)", "min(N - 1, M - 1)", "0"},
	{"i in 0..N; j in 0..M", "min(i, t[j])", "N - 1", NULL}, /* one of the two is enough on that side */
	{"i in 0..N", "2*max(t[i], 3) + i", NULL, "6"},
	{"i in 0..N", "min(t[i], t[0])", NULL, NULL},
	{"i in 0..N", "i mod 4", "3", "0"},
	{"i in 0..t[0]", "i", NULL, "0"},
	{"", "N + 2", "N + 2", "N + 2"},
};

static void
check_bound(Fixture *x, ExprId e, bool upper, const char *want)
{
	ExprId got = prove_bound(x->f, e, upper);
	if (!want) {
		assert_int_equal(got, 0);
		return;
	}
	assert_int_not_equal(got, 0);
	assert_int_equal(index_norm(x->g, got), index_norm(x->g, cond_read(x->g, want)));
}

static void
extremes(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof bounds / sizeof *bounds; k++) {
		Fixture x;
		start(&x);
		assert_true(facts_read(x.g, x.f, bounds[k].facts));
		ExprId e = cond_read(x.g, bounds[k].e);
		check_bound(&x, e, true, bounds[k].upper);
		check_bound(&x, e, false, bounds[k].lower);
		arena_free(&x.arena);
	}
}

/* The loose limit catches what grows with the number of definitions, not a slow machine. */
static void
ten_thousand(void **state)
{
	(void)state;
	Fixture x;
	start(&x);
	Graph *g = x.g;
	ExprId zero = expr_int(g, DT_I64, 0), n = cond_read(g, "N"), m = cond_read(g, "M");
	double t = seconds();
	for (uint32_t k = 0; k < 10000; k++) {
		ExprId v[2] = {expr_ivar(g, 2 * k), expr_ivar(g, 2 * k + 1)}, hi[2] = {n, m};
		uint32_t mark = facts_mark(x.f);
		for (int a = 0; a < 2; a++)
			facts_push_range(x.f, v[a], zero, hi[a]);
		for (int read = 0; read < 4; read++)
			for (int a = 0; a < 2; a++) {
				assert_true(prove(x.f, expr_binary(g, OP_LE, zero, v[a])));
				assert_true(prove(x.f, expr_binary(g, OP_LT, v[a], hi[a])));
			}
		facts_pop(x.f, mark);
	}
	t = seconds() - t;
	printf("160,000 plain goals: %.1f ms\n", 1e3 * t);
	assert_true(t < 0.5);
	arena_free(&x.arena);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goals_that_follow), cmocka_unit_test(goals_that_do_not),
		cmocka_unit_test(contradictions),    cmocka_unit_test(extremes),
		cmocka_unit_test(ten_thousand),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
