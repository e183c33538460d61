/* recovery_test.c: which errors one text gives, and that the statements between them survive. */
#include <stdio.h>
#include <string.h>

#include "parsed.h"

#define GRAPH "graph f(x: f32[N]) -> (y: f32[N]) {\n"

static uint32_t
count_kind(const Parsed *p, AstKind kind)
{
	uint32_t n = 0;
	for (uint32_t id = 1; id < p->ast->node.n; id++)
		n += p->ast->node.at[id].kind == kind;
	return n;
}

static void
expect_errors(const char *text, const char *want, uint32_t definitions)
{
	Parsed p;
	parsed_make(&p, PARSE_TREE, text, strlen(text));
	assert_string_equal(parsed_diags(&p), want);
	assert_int_equal(count_kind(&p, AST_DEFINE), definitions);
	parsed_free(&p);
}

static void
one_error_a_statement(void **state)
{
	(void)state;
	expect_errors(GRAPH " a = 1 2 3 4\n b = 1\n c = * 2\n d = 1\n}", "E0100@2:8 E0100@4:6", 2);
	expect_errors(GRAPH " a = (1, 2) + (3 4)\n b = 1\n}", "E0100@2:8", 1);
	expect_errors(GRAPH " a = f(1 2,\n  3,\n  4)\n b = 1\n}", "E0100@2:10", 1);
	expect_errors(GRAPH " a = .5 // $ 1abc\n b = 1\n}", "E0101@2:6", 1);
	expect_errors(GRAPH " a = 1 $ 2; b = 1\n}", "E0101@2:8", 1);
	expect_errors(GRAPH " a = b %% c & d\n b = 1\n}", "E0101@2:8 E0101@2:9", 1);
}

static void
brackets_left_open(void **state)
{
	(void)state;
	expect_errors(GRAPH " a = f(x[i]\n b = 1\n}", "E0102@2:12", 1);
	expect_errors(GRAPH " a = f(x[i\n b[j] += 1\n}", "E0102@2:11", 1);
	expect_errors(GRAPH " a = f(x[i\n}\nconst A = 1", "E0102@2:11", 0);
	expect_errors(GRAPH " a = f(x[i\nconst A = 1", "E0102@2:11 E0102@2:11", 0);
	expect_errors(GRAPH " a = f(x[i", "E0102@2:11 E0102@2:11", 0);
	expect_errors(GRAPH " a = f(x\n   + 1 == 2\n b = 1\n}", "E0102@3:12", 1);
	expect_errors(GRAPH " a = f[x)\n b = 1\n}", "E0102@2:9", 1);
	expect_errors(GRAPH " a = x)\n b = 1\n}", "E0102@2:7", 1);
	expect_errors("const A = 1 }\nconst B = 2 ]\n", "E0102@1:13 E0102@2:13", 0);
}

static void
blocks_left_open(void **state)
{
	(void)state;
	expect_errors(GRAPH " a = 1\n b = 2", "E0102@3:7", 2);
	expect_errors(GRAPH " a = 1\n" GRAPH " b = 2\n}\n", "E0102@2:7", 2);
	expect_errors("fn g(x) {\n a = 1\n\nfn h(x) = 2 3", "E0102@2:7 E0100@4:13", 1);
	expect_errors("fn g(x) {\n a = 1\n}\nfn h(x) = 2 3", "E0111@3:1 E0100@4:13", 1);
	expect_errors("fn g(x) {\n a = 1 1\n}\nfn h(x) = 2 3", "E0100@2:8 E0100@4:13", 0);
}

static void
headers(void **state)
{
	(void)state;
	expect_errors("graph f(x f32[N]) -> (y: f32[N]) {\n a = 1 1\n b = { 2\n}\n}\nconst A = 1 2",
	              "E0100@1:11 E0100@6:13", 0);
	expect_errors("graph f(x: f32[N]\n  -> (y: f32[N]) {\n a = 1\n}\nconst A = 1 2", "E0102@2:3 E0100@5:13", 0);
	expect_errors("fn f(x) = \ngraph g(a: f32) -> (y: f32) {\n y = a\n}\n", "E0100@1:10", 1);
	expect_errors("y = 2\nz = 3\nconst A = 1 2", "E0113@1:1 E0100@3:13", 0);
	expect_errors(GRAPH " for i in 0..N {\n  a = 1\n }\n b = 2\n}", "E0100@2:6", 1);
}

static void
words(void **state)
{
	(void)state;
	expect_errors(GRAPH " const = 2\n b = 1\n}", "E0107@2:2", 1);
	expect_errors(GRAPH " a = mesh + 2\n b = 1\n}", "E0107@2:6", 1);
	expect_errors(GRAPH " return x\n b = 1\n}", "E0111@2:2", 1);
	expect_errors("const in = 2", "E0107@1:7", 0);
	expect_errors(GRAPH " a = 1 = 2\n b = 1 < 2 < 3\n c = 1 == 2 != 3\n}", "E0103@2:8 E0104@3:12 E0104@4:13", 0);
}

static void
whole_files(void **state)
{
	(void)state;
	expect_errors("\\documentclass[a4paper]{article}\n", "E0110@1:1", 0);
	expect_errors("% notes\n%\n  \\begin{document}\n", "E0110@3:3", 0);
	expect_errors("\xef\xbb\xbf" "const A = 1\n", "", 0);
	expect_errors("const A = \xef\xbb\xbf" "1\n", "E0109@1:11", 0);
	expect_errors("const A = 1\xff\n", "E0108@1:12", 0);
	expect_errors("const A = 1 # \xed\xa0\x80\n", "E0108@1:15", 0);
	expect_errors("const A = 1\f\n", "E0101@1:12", 0);
	Parsed p;
	parsed_make(&p, PARSE_TREE, "const A\n= 1\0 2", 13);
	assert_string_equal(parsed_diags(&p), "E0108@2:4");
	parsed_free(&p);
}

static void
at_most_twenty(void **state)
{
	(void)state;
	Parsed p;
	char text[4096] = GRAPH;
	for (int k = 0; k < 100; k++)
		strcat(text, " a = 1 2\n");
	strcat(text, "}");
	parsed_make(&p, PARSE_TREE, text, strlen(text));
	assert_int_equal(p.diags.list.n, 20);
	assert_true(diags_full(&p.diags));
	parsed_free(&p);
}

/* Whatever is cut off, something is said and nothing breaks. */
static void
every_prefix(void **state)
{
	(void)state;
	const char *text = "use \"std\"\n@fp(strict)\ngraph f(x: f32[N], inout w: i32) -> (y: f32[N, @g])\n"
	                   "  where N mod 4 == 0, N ~ 64\n{\n  t: bf16[i in 0..N] = sum[j where j < i](x?[i - j] ?? 0)\n"
	                   "    else -1e-3\n  (a, b) = g(x, w); y[i, d] max= t[i] ? 2 : !b[d]\n}\n"
	                   "fn h[i](x) {\n  return x ** 2\n}\nmesh g[4]\ngraph b = grad(f, x)\n";
	size_t n = strlen(text);
	for (size_t k = 0; k <= n; k++) {
		Parsed p;
		parsed_make(&p, PARSE_TREE, text, k);
		for (uint32_t d = 0; d < p.diags.list.n; d++)
			assert_true(p.diags.list.at[d].at.end <= k && p.diags.list.at[d].at.line > 0);
		if (k == n)
			assert_string_equal(parsed_diags(&p), "");
		assert_non_null(diags_render(&p.diags, &p.arena, true));
		parsed_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_error_a_statement),
		cmocka_unit_test(brackets_left_open),
		cmocka_unit_test(blocks_left_open),
		cmocka_unit_test(headers),
		cmocka_unit_test(words),
		cmocka_unit_test(whole_files),
		cmocka_unit_test(at_most_twenty),
		cmocka_unit_test(every_prefix),
	};
	return cmocka_run_group_tests_name("recovery", tests, NULL, NULL);
}
