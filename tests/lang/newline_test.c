/* newline_test.c: where a line end ends a statement. Each case is a text and the lines of it that
 * end in an NL token, read off the token listing. */
#include <string.h>

#include "parsed.h"

/* The places of the NL tokens, as "1:6 3:2". */
static void
expect_ends(const char *text, const char *want)
{
	Parsed p;
	parsed_make(&p, PARSE_TOKENS, text, strlen(text));
	Text got;
	text_init(&got, &p.arena);
	for (const char *line = text_get(&p.out); *line;) {
		const char *end = strchr(line, '\n'), *space = memchr(line, ' ', (size_t)(end - line));
		if (strncmp(space, " end of line\n", 13) == 0)
			text_printf(&got, "%s%.*s", got.n ? " " : "", (int)(space - line), line);
		line = end + 1;
	}
	assert_string_equal(text_get(&got), want);
	parsed_free(&p);
}

static void
lines_end_after_what_can_end(void **state)
{
	(void)state;
	expect_ends("a = b\nc = 2\n", "1:6 2:6");
	expect_ends("a = b[i]\nc = f(x)\n", "1:9 2:9");
	expect_ends("use \"std\"\nfn", "1:10 2:3");
	expect_ends("a = b\n\n\n# c\nc = 2", "1:6 5:6");
	expect_ends("a = b # c\nc = 2", "1:6 2:6");
	expect_ends("a = b\r\nc = 2\r\n", "1:6 2:6");
	expect_ends("", "");
	expect_ends("\n\n# only a comment\n", "");
}

static void
lines_go_on_where_they_cannot_end(void **state)
{
	(void)state;
	static const char *const after[] = {
		"+", "-", "*", "/", "**", "div", "mod", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "??",
		"?", ":", ",", "=", "+=", "->", "where", "else", "in", "..", "!", "{", "@", "~",
	};
	for (size_t k = 0; k < sizeof after / sizeof after[0]; k++) {
		char text[64];
		size_t n = 0;
		n += strlen(strcpy(text + n, "a "));
		n += strlen(strcpy(text + n, after[k]));
		strcpy(text + n, "\nb");
		/* an open block gets its brace, and a line end behind it */
		expect_ends(text, after[k][0] == '{' ? "2:2 2:2" : "2:2");
	}
}

static void
a_line_that_starts_so_continues(void **state)
{
	(void)state;
	static const char *const start[] = {
		"+", "-", "*", "/", "**", "div", "mod", "==", "!=", "<", "<=", ">", ">=", "&&", "||", "??",
		"?", ":", "->", "where", "else", "~",
	};
	for (size_t k = 0; k < sizeof start / sizeof start[0]; k++) {
		char text[64];
		size_t n = 0;
		n += strlen(strcpy(text + n, "a\n\n# c\n"));
		n += strlen(strcpy(text + n, start[k]));
		strcpy(text + n, "\nb");
		expect_ends(text, "5:2");
	}
	expect_ends("a\n{ b }", "2:4 2:6");
}

static void
other_starts_do_not_continue(void **state)
{
	(void)state;
	static const char *const start[] = {"(", "[", "?[", "!", "=", "+=", ",", "@", "b", "1", "in", ".."};
	for (size_t k = 0; k < sizeof start / sizeof start[0]; k++) {
		char text[64];
		strcpy(text, "a\n");
		strcpy(text + 2, start[k]);
		Parsed p;
		parsed_make(&p, PARSE_TOKENS, text, strlen(text));
		assert_non_null(strstr(text_get(&p.out), "1:2 end of line\n2:1 "));
		parsed_free(&p);
	}
}

static void
newlines_in_brackets_are_blank(void **state)
{
	(void)state;
	expect_ends("a = f(\nx\n,\ny\n)\nb", "5:2 6:2");
	expect_ends("a = x[\ni\n]\nb", "3:2 4:2");
	expect_ends("a = x?[\ni\n]\nb", "3:2 4:2");
	expect_ends("a = (x\n- y == 2\n)", "3:2");
	/* braces are not such brackets */
	expect_ends("{\na\nb\n}", "2:2 3:2 4:2");
}

static void
braces_files_and_semicolons_end(void **state)
{
	(void)state;
	expect_ends("{ a }", "1:4 1:6");
	expect_ends("{ a; b }", "1:4 1:7 1:9");
	expect_ends("{ a;; b; }", "1:4 1:8 1:11");
	expect_ends("{ }", "1:4");
	expect_ends(";;\n;a;", "2:3");
	expect_ends("a", "1:2");
	expect_ends("a +", "1:4");
	expect_ends("a; b", "1:2 1:5");
}

static void
contextual_words(void **state)
{
	(void)state;
	static const struct {
		const char *text, *tokens;
	} cases[] = {
		{"g[i] max= e", "1:1 name \"g\"\n1:2 '['\n1:3 name \"i\"\n1:4 ']'\n1:6 max=\n1:11 name \"e\"\n1:12 end of line\n"},
		{"a min= 2", "1:1 name \"a\"\n1:3 min=\n1:8 number 2\n1:9 end of line\n"},
		{"max=2", "1:1 name \"max\"\n1:4 '='\n1:5 number 2\n1:6 end of line\n"},
		{"a\nmax=2", "1:1 name \"a\"\n1:2 end of line\n2:1 name \"max\"\n2:4 '='\n2:5 number 2\n2:6 end of line\n"},
		{"a max==b", "1:1 name \"a\"\n1:3 name \"max\"\n1:6 ==\n1:8 name \"b\"\n1:9 end of line\n"},
		{"grad max mean model", "1:1 name \"grad\"\n1:6 name \"max\"\n1:10 name \"mean\"\n1:15 name \"model\"\n1:20 end of line\n"},
		{"0..N", "1:1 number 0\n1:2 ..\n1:4 name \"N\"\n1:5 end of line\n"},
		{"1.5e3 1e2 0x1F 007", "1:1 number 1.5e+03\n1:7 number 1e+02\n1:11 number 31\n1:16 number 7\n1:19 end of line\n"},
		{"x?[i]??y?z:w", "1:1 name \"x\"\n1:2 ?[\n1:4 name \"i\"\n1:5 ']'\n1:6 ??\n1:8 name \"y\"\n1:9 '?'\n1:10 name \"z\"\n1:11 ':'\n1:12 name \"w\"\n1:13 end of line\n"},
	};
	for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
		Parsed p;
		parsed_make(&p, PARSE_TOKENS, cases[k].text, strlen(cases[k].text));
		assert_string_equal(text_get(&p.out), cases[k].tokens);
		parsed_free(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(lines_end_after_what_can_end),
		cmocka_unit_test(lines_go_on_where_they_cannot_end),
		cmocka_unit_test(a_line_that_starts_so_continues),
		cmocka_unit_test(other_starts_do_not_continue),
		cmocka_unit_test(newlines_in_brackets_are_blank),
		cmocka_unit_test(braces_files_and_semicolons_end),
		cmocka_unit_test(contextual_words),
	};
	return cmocka_run_group_tests_name("newline", tests, NULL, NULL);
}
