/* tg_text_test.c: graphs as text: printing and reading back, mistakes with their lines, hostile text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "int_value.h"
#include "tg_sample.h"

typedef struct {
	Unwind unwind;
	Arena arena;
} Fixture;

static void
start(Fixture *x)
{
	*x = (Fixture){0};
	arena_init(&x->arena, &host_default()->memory, &x->unwind);
	if (setjmp(x->unwind.env))
		fail_msg("%s", x->unwind.text);
}

static const char *
printed(Fixture *x, const Graph *g)
{
	Text t;
	text_init(&t, &x->arena);
	graph_print(g, &t);
	return text_get(&t);
}

static Graph *
read_text(Fixture *x, const char *text, size_t n, const char **error)
{
	*error = NULL;
	return graph_read(&x->arena, names_new(&x->arena), text, n, error);
}

static Graph *
read_ok(Fixture *x, const char *text)
{
	const char *error;
	Graph *g = read_text(x, text, strlen(text), &error);
	if (!g)
		fail_msg("%s in\n%s", error, text);
	return g;
}

static void
round_trip(Fixture *x, const char *text)
{
	const char *once = printed(x, read_ok(x, text));
	assert_string_equal(printed(x, read_ok(x, once)), once);
}

static void
sample(void **state)
{
	(void)state;
	Fixture x;
	start(&x);
	const char *error;
	Graph *g = read_ok(&x, tg_sample);
	if (!graph_verify(g, &x.arena, &error))
		fail_msg("%s", error);
	assert_string_equal(printed(&x, g), tg_sample);
	arena_free(&x.arena);
}

static void
forms(void **state)
{
	(void)state;
	static const char *const text[] = {
		"graph _ strict",
		"graph \"odd name\\u00e4\\n\" fast",
		"graph g relaxed # a comment\n scalar %1 a : f64[] tensor %2 b : f64[] node %2 none body (neg %1[])",
		"graph g relaxed tensor %1 b : bool[] node %1 none body (&& true (! false)) result b %1",
		"graph g relaxed tensor %1 b:u64[] node %1 none body 18446744073709551615:u64",
		"graph g relaxed tensor %1 b:i8[] node %1 none body -128:i8",
		"graph g relaxed tensor %1 b:f16[] node %1 none body 65504:f16",
		"graph g relaxed tensor %1 b:f32[] node %1 none body 0.10000000149011612:f32",
		"graph g relaxed tensor %1 b:f64[] node %1 none body 0.1:f64",
		"graph g relaxed tensor %1 b:f64[] node %1 none body -0:f64",
		"graph g relaxed tensor %1 b:f32[] node %1 none body inf:f32",
		"graph g relaxed tensor %1 b:f32[] node %1 none body (cast:f32 (cast:bf16? (exp 1:f32)))",
		"graph g relaxed tensor %1 b:f16[] node %1 none body (cast:f16 (+ (exp~bf16 1:f32) (exp2~f16 (exp 1:f32))))",
		"graph g relaxed tensor %1 b:f32[2, 3] node %1 none par _ \"_\" body (randn 1:u64 @0 @1)",
	};
	for (size_t k = 0; k < sizeof text / sizeof *text; k++) {
		Fixture x;
		start(&x);
		round_trip(&x, text[k]);
		arena_free(&x.arena);
	}
}

static void
equal_dim_names(void **state)
{
	(void)state;
	Fixture x;
	start(&x);
	Graph *g = read_ok(&x, "graph g relaxed\n"
	                       "dim N param 0 axis 0 scale 1 offset 0\n"
	                       "dim N param 0 axis 1 scale 1 offset 0\n"
	                       "dim \"1 x\" param 0 axis 1 scale 1 offset 0\n"
	                       "input %1 x : f32[$N, $2, $3]\n");
	assert_int_equal(expr_get(g, g->tensor.at[1].extent[1])->ref, 2);
	round_trip(&x, printed(&x, g));
	arena_free(&x.arena);
}

/* Shared and deep expressions give text of their own size, which reads back to the same sharing. */
static void
sharing_and_depth(void **state)
{
	(void)state;
	Fixture x;
	start(&x);
	Graph *g = graph_new(&x.arena, names_new(&x.arena));
	ExprId one = expr_float(g, DT_F32, 1), e = expr_binary(g, OP_ADD, one, expr_unary(g, OP_EXP, one));
	for (int k = 0; k < 100; k++)
		e = expr_binary(g, OP_MUL, e, e);
	for (int k = 0; k < 20000; k++)
		e = expr_unary(g, OP_NEG, e);
	Node n = {.body = e};
	node_add(g, &n, 0, (Span){0}, DT_F32, NULL);
	const char *once = printed(&x, g);
	assert_true(strlen(once) < 250000);
	Graph *back = read_ok(&x, once);
	assert_int_equal(back->expr.n, g->expr.n);
	assert_string_equal(printed(&x, back), once);
	arena_free(&x.arena);
}

typedef struct {
	const char *text, *error;
} Mistake;

static const Mistake mistakes[] = {
	{"", "line 1: expected 'graph'"},
	{"graph", "line 1: expected a name"},
	{"graph g", "line 1: expected one of: strict … fast"},
	{"graph g quick", "line 1: expected one of: strict … fast"},
	{"graph g fast\nfoo", "line 2: expected one of: input … tensor"},
	{"graph g fast\ndim N param 0 axis 0 scale x", "line 2: expected a number"},
	{"graph g fast\ndim N param 99999999999 axis 0", "line 2: a number out of range"},
	{"graph g fast\n\ninput %2 x : f32[]", "line 3: tensors are numbered in order"},
	{"graph g fast\ninput %1 x : f31[]", "line 2: expected a type"},
	{"graph g fast\ninput %1 x : f32[1,2,3,4,5,6,7,8,9]", "line 2: more than 8 axes"},
	{"graph g fast\ninput %1 x : f32[$N]", "line 2: no such dim"},
	{"graph g fast\ninput %1 x : f32[$1]", "line 2: a number out of range"},
	{"graph g fast\ninput %1 x : f32[%1[]]", "line 2: a number out of range"},
	{"graph g fast\ninput %1 x : f32[(+ 1)]", "line 2: + with 1 operands"},
	{"graph g fast\ninput %1 x : f32[(+ 1 2 3)]", "line 2: + with 3 operands"},
	{"graph g fast\ninput %1 x : f32[(load 1)]", "line 2: expected an operation"},
	{"graph g fast\ninput %1 x : f32[(cast 1)]", "line 2: cast needs a type"},
	{"graph g fast\ninput %1 x : f32[(foo 1)]", "line 2: expected an operation"},
	{"graph g fast\ninput %1 x : f32[^0]", "line 2: ^0 is not named before"},
	{"graph g fast\nlet ^1 = 3", "line 2: names are numbered in order"},
	{"graph g fast\ninput %1 x : f32[300:u8]", "line 2: not a constant of type u8"},
	{"graph g fast\ninput %1 x : f32[0.1:f16]", "line 2: not a constant of type f16"},
	{"graph g fast\ninput %1 x : f32[1x]", "line 2: not a constant of type i64"},
	{"graph g fast\ninput %1 x : f32[9223372036854775808]", "line 2: not a constant of type i64"},
	{"graph g fast\ninput %1 x : f32[1", "line 2: expected an expression"},
	{"graph g fast\ninput %1 x : f32[(+ 1", "line 2: expected an expression"},
	{"graph g fast\ninput %1 \"x : f32[]", "line 2: no closing quote"},
	{"graph g fast\ninput %1 \"\\q\" : f32[]", "line 2: an escape that means nothing"},
	{"graph g fast\ncheck E9999 true \"\"", "line 2: no such code"},
	{"graph g fast\naccess 2 gather \"\"", "line 2: accesses are numbered in order"},
	{"graph g fast\naccess 1 gathers \"\"", "line 2: expected one of: gather … cut"},
	{"graph g fast\ntensor %1 y : f32[]", "line 2: %1 has no node"},
	{"graph g fast\ntensor %1 y : f32[]\nnode %1 none\nnode %1 none", "line 4: a node without a body"},
	{"graph g fast\ntensor %1 y : f32[]\nnode %1 none body 1:f32\nnode %1 none body 1:f32",
	 "line 4: %1 is not a tensor without a node"},
	{"graph g fast\ninput %1 y : f32[]\nnode %1 none body 1:f32", "line 3: %1 is not a tensor without a node"},
	{"graph g fast\ntensor %1 y : f32[]\nnode %1 total body 1:f32", "line 3: no such monoid"},
	{"graph g fast\ntensor %1 y : f32[]\nnode %1 none body 1:f32\n recur 1 seq", "line 4: a number out of range"},
	{"graph g fast\nresult y %1", "line 2: a number out of range"},
};

static void
located_mistakes(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof mistakes / sizeof *mistakes; k++) {
		Fixture x;
		start(&x);
		const char *error;
		Graph *g = read_text(&x, mistakes[k].text, strlen(mistakes[k].text), &error);
		if (g || strcmp(error, mistakes[k].error) != 0)
			fail_msg("'%s' for\n%s", g ? "read" : error, mistakes[k].text);
		arena_free(&x.arena);
	}
}

static void
deep_text(void **state)
{
	(void)state;
	Fixture x;
	start(&x);
	Text t;
	text_init(&t, &x.arena);
	text_printf(&t, "graph g fast\ninput %%1 x : f32[");
	for (int k = 0; k < 100000; k++)
		text_printf(&t, "(neg ");
	const char *error;
	assert_null(read_text(&x, text_get(&t), t.n, &error));
	assert_string_equal(error, "line 2: nested too deep");
	arena_free(&x.arena);
}

/* Bytes of the sample changed, lost, doubled and swapped: whatever is still read must verify or be
 * refused, print, and read back, without a crash (run under the sanitizers). */
static void
hostile_text(void **state)
{
	(void)state;
	Random r = {7};
	unsigned read = 0, verified = 0;
	for (int k = 0; k < 6000; k++) {
		Fixture x;
		start(&x);
		char text[sizeof tg_sample * 2];
		size_t n = sizeof tg_sample - 1;
		memcpy(text, tg_sample, n);
		for (unsigned edits = 1 + random_below(&r, 3); edits-- > 0;) {
			size_t at = random_below(&r, (uint32_t)n - 40), len = 1 + random_below(&r, 12), to = random_below(&r, (uint32_t)n - 40);
			unsigned kind = random_below(&r, 8);
			while (kind >= 4 && at + 1 < n && (text[at] < '0' || text[at] > '9'))
				at++;
			if (kind >= 4)
				text[at] = (char)('0' + random_below(&r, 10));
			else if (kind == 0)
				text[at] = "0123456789%^@$()[]!:. \n\"-"[random_below(&r, 25)];
			else if (kind == 1)
				memmove(text + at, text + at + len, n - at - len), n -= len;
			else if (kind == 2)
				memmove(text + at, text + to, len);
			else
				text[at] = (char)random_below(&r, 256);
		}
		if (random_below(&r, 8) == 0)
			n = random_below(&r, (uint32_t)n);
		const char *error;
		Graph *g = read_text(&x, text, n, &error);
		if (g) {
			read++;
			verified += graph_verify(g, &x.arena, &error);
			const char *once = printed(&x, g);
			assert_string_equal(printed(&x, read_ok(&x, once)), once);
		} else
			assert_int_equal(strncmp(error, "line ", 5), 0);
		arena_free(&x.arena);
	}
	printf("%u of 6000 read, %u verified\n", read, verified);
	assert_true(read > 300 && verified > 100 && verified < read);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sample),           cmocka_unit_test(forms),
		cmocka_unit_test(equal_dim_names),  cmocka_unit_test(sharing_and_depth),
		cmocka_unit_test(located_mistakes), cmocka_unit_test(deep_text),
		cmocka_unit_test(hostile_text),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
