/* random_cascade_test.c: random groups of reductions, each of which reads earlier ones in a random body:
 * the states that are derived, merged along random trees, give what the definition gives.
 * usage: random_cascade_test COUNT FIRST_SEED
 *
 * Bodies are products of factors of x, of y and of both, and sums of two such products. What is derived
 * in one pass must be the larger part, or this tests little. The bound is that of cascade_test.c, with what
 * later members make of the errors of those they read. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "cascade_run.h"

enum { FIRST = 5, PRELUDE = 5, MAX_RANDOM = 4 };

static const char head[] =
	"graph t relaxed\n"
	"dim N param 0 axis 0 scale 1 offset 0 hint 1\n"
	"dim M param 0 axis 1 scale 1 offset 0\n"
	"input %1 s : f32[$N, $M]\n"
	"input %2 w : f32[$M]\n"
	"input %3 k : bool[$M]\n"
	"scalar %4 c : f32[]\n";

#define S "%1[@0, @1]"
#define W "%2[@1]"
#define M "%5[@0]"  /* max s */
#define L "%6[@0]"  /* min s */
#define U "(/ %7[@0] (cast:f32 $M))" /* mean s */
#define Q "%8[@0]"  /* sum w^2 */
#define A "%9[@0]"  /* max |w| */

static const char *const prelude[PRELUDE] = {
	"max\n  par i\n  red j 0 .. $M\n  body " S, "min\n  par i\n  red j 0 .. $M\n  body " S,
	"sum\n  par i\n  red j 0 .. $M\n  body " S, "sum\n  par i\n  red j 0 .. $M\n  body (* " W " " W ")",
	"max\n  par i\n  red j 0 .. $M\n  body (abs " W ")",
};

/* %R stands for a random earlier member's value, squashed. */
static const char *const of_x[] = {S, W, "(* " W " " W ")", "(tanh " S ")", "(select %3[@1] " W " 0:f32)", "(abs " W ")",
                                   "(neg " S ")", "0.5:f32", "(exp (neg (abs " W ")))"};
static const char *const of_y[] = {"(tanh " M ")", "(rsqrt (+ " Q " 1:f32))", "(/ 1:f32 (+ " A " 0.5:f32))", "(tanh " U ")",
                                   "%4[]", "(exp (neg " A "))", "%R", "(sqrt " Q ")"};
static const char *const of_both[] = {
	"(exp (- " S " " M "))", "(exp (- " L " " S "))", "(exp (* 0.5:f32 (- " S " " M ")))", "(exp2 (- " S " " M "))",
	"(- " S " " M ")", "(- " S " " U ")", "(- " W " " U ")", "(* (- " S " " U ") (- " S " " U "))", "(pow (- " S " " U ") 2:f32)",
	"(exp (- " S " (max " M " 0:f32)))", "(abs (* " W " (rsqrt (+ " Q " 1:f32))))", "(sqrt (exp (- " S " " M ")))",
	"(/ (exp (- " S " " M ")) (+ " A " 1:f32))", "(+ (exp (- " S " " M ")) " W ")", "(tanh (- " S " " U "))",
	"(select %3[@1] (- " S " " U ") " W ")", "(select (< " M " 1:f32) (exp (- " S " " M ")) " W ")", "(- " S " %R)",
	"(log (* (exp (- " S " " M ")) (+ " Q " 1:f32)))", "(exp (- (- " S " " M ") (log (+ " Q " 1:f32))))",
	"(- (* " S " %R) (* " W " " U "))",
};

typedef struct {
	uint64_t seed;
	Text *out;
	unsigned member; /* being written */
} Writer;

#define PICK(w, list) ((list)[run_random(&(w)->seed) % (sizeof(list) / sizeof *(list))])

static void
write_factor(Writer *w, const char *text)
{
	const char *r;
	while ((r = strstr(text, "%R")) != NULL) {
		text_printf(w->out, "%.*s", (int)(r - text), text);
		unsigned earlier = FIRST + run_random(&w->seed) % (w->member - FIRST);
		text_printf(w->out, "(tanh %%%u[@0])", earlier);
		text = r + 2;
	}
	text_printf(w->out, "%s", text);
}

static void
write_product(Writer *w)
{
	unsigned n = 1 + run_random(&w->seed) % 3;
	for (unsigned k = 0; k < n; k++) {
		unsigned kind = run_random(&w->seed) % 5;
		text_printf(w->out, k + 1 < n ? "(* " : "");
		write_factor(w, kind == 0 ? PICK(w, of_x) : kind == 1 ? PICK(w, of_y) : PICK(w, of_both));
		text_printf(w->out, k + 1 < n ? " " : "");
	}
	for (unsigned k = 0; k + 1 < n; k++)
		text_printf(w->out, ")");
}

static const char *
random_cascade(Arena *a, uint64_t seed)
{
	Text t;
	Writer w = {.seed = seed, .out = &t};
	text_init(&t, a);
	text_printf(&t, "%s", head);
	unsigned n = PRELUDE + 1 + run_random(&w.seed) % MAX_RANDOM;
	for (unsigned k = 0; k < n; k++)
		text_printf(&t, "tensor %%%u r%u : f32[$N]\n", FIRST + k, k);
	for (unsigned k = 0; k < n; k++) {
		w.member = FIRST + k;
		text_printf(&t, "node %%%u ", FIRST + k);
		if (k < PRELUDE) {
			text_printf(&t, "%s\n", prelude[k]);
			continue;
		}
		unsigned kind = run_random(&w.seed) % 8;
		text_printf(&t, "%s\n  par i\n  red j 0 .. $M\n  body ", kind == 0 ? "max" : kind == 1 ? "min" : "sum");
		bool two = run_random(&w.seed) % 3 == 0;
		text_printf(&t, two ? run_random(&w.seed) % 2 ? "(+ " : "(- " : "");
		write_product(&w);
		if (two) {
			text_printf(&t, " ");
			write_product(&w);
			text_printf(&t, ")");
		}
		text_printf(&t, "\n");
	}
	text_printf(&t, "result r %%%u\n", FIRST + n - 1);
	return text_get(&t);
}

static int count = 400;
static uint64_t first = 1;

static void
fill(CascadeRun *r, uint64_t *seed)
{
	double offset = run_random(seed) % 3 == 0 ? 40 : 0;
	for (unsigned k = 0; k < r->n; k++) {
		run_input(r, "s")[k] = offset + ((double)run_random(seed) / 1073741824.0 - 1) * 8;
		run_input(r, "w")[k] = (double)run_random(seed) / 1073741824.0 - 1;
		run_input(r, "k")[k] = run_random(seed) % 3 != 0;
	}
	run_input(r, "c")[0] = 0.75;
}

/* The bound of member k: its own terms, and what it makes of the bounds of the members before it: a factor
 * of y here changes by at most `carry` times the change of what it reads, absolute or relative. */
static void
check(const CascadeRun *r, uint64_t seed)
{
	const double carry = 100;
	double relative = 0;
	for (unsigned k = 0; k < r->c.nmember; k++) {
		double u = (16 * r->n + 64 + 8 * 60) * 0x1p-53, terms = run_terms(r, k);
		double room = u * (terms + fabs(r->want[k])) + carry * relative * (terms + run_factors(r, k));
		if (r->c.member[k].rank == 0) /* its terms cancel identically: nothing to measure by */
			continue;
		if (!(fabs(r->got[k] - r->want[k]) <= room))
			run_fail(r, "seed %llu, member %u of %u elements: %.17g, not %.17g within %.3g", (unsigned long long)seed, k,
			         r->n, r->got[k], r->want[k], room);
		double scale = fmax(1, fabs(r->want[k])); /* read as tanh, or in sums with numbers like 1 */
		relative = fmax(relative, room / scale);
	}
}

typedef struct {
	unsigned once, all, policy[4];
} Tally;

static void
run_case(Arena *arena, int k, Tally *t)
{
	CascadeRun *r = ARENA_NEW(arena, CascadeRun);
	uint64_t number = first + (uint64_t)k, seed = number * 0x9e3779b97f4a7c15u;
	const char *text = random_cascade(arena, seed);
	run_begin(r, arena, text, NULL);
	if (!r->derived)
		run_fail(r, "seed %llu: %s", (unsigned long long)number, text);
	for (unsigned m = PRELUDE; m < r->c.nmember; m++) {
		bool once = r->c.member[m].late.why == REMARK_NONE;
		t->all++;
		t->once += once;
		t->policy[r->c.member[m].policy] += once;
	}
	for (int round = 0; round < 4; round++) {
		r->n = 1 + run_random(&seed) % 40;
		fill(r, &seed);
		run_definition(r);
		run_merged(r, seed);
		check(r, number);
	}
}

static void
run_in_arena(int k, Tally *t)
{
	Arena arena;
	Unwind unwind;
	arena_init(&arena, &host_default()->memory, &unwind);
	if (setjmp(unwind.env))
		fail_msg("case %d unwound: %s", k, unwind.text);
	run_case(&arena, k, t);
	arena_free(&arena);
}

static void
test_random(void **state)
{
	Tally t = {0};
	(void)state;
	for (int k = 0; k < count; k++)
		run_in_arena(k, &t);
	printf("%u members, %u in the pass of what they read: %u plain, %u hoisted, %u streamed, %u moments\n", t.all, t.once,
	       t.policy[FOLD_PLAIN], t.policy[FOLD_HOIST], t.policy[FOLD_STREAM], t.policy[FOLD_MOMENTS]);
	assert_true(2 * t.once > t.all);
	assert_true(t.policy[FOLD_HOIST] > 0 && t.policy[FOLD_STREAM] > 0 && t.policy[FOLD_MOMENTS] > 0);
}

int
main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(test_random)};
	if (argc > 1)
		count = atoi(argv[1]);
	if (argc > 2)
		first = strtoull(argv[2], NULL, 10);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
