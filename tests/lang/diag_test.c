/* diag_test.c: how a diagnostic is drawn, and its JSON. */
#include <stdlib.h>
#include <string.h>

#include "parsed.h"

/* Span of n code points on one line, from a byte offset. */
static Span
span_at(FileId file, uint32_t line, uint32_t col, uint32_t begin, uint32_t n)
{
	return (Span){file, line, col, line, col + n, begin, begin + n};
}

/* One diagnostic of code E0100 over text; the report in the arena of p. */
static const char *
report(Parsed *p, const char *text, Span at, const char *message, const char *label, const char *help)
{
	parsed_make(p, PARSE_TREE, "", 0);
	p->diags.files.n = 0;
	at.file = diags_add_file(&p->diags, "a.tex", text, strlen(text));
	Diag *g = diag_add(&p->diags, DIAG_E0100, at, "%s", message);
	g->label = label;
	g->help = help;
	return diags_render(&p->diags, &p->arena, false);
}

static void
plain(void **state)
{
	(void)state;
	Parsed p;
	const char *text = "a = 1\nb = bais + 2\n";
	assert_string_equal(report(&p, text, span_at(1, 2, 5, 10, 4), "no `bais`", "unknown", "did you mean `bias`?"),
	                    "error[E0100]: no `bais`\n"
	                    "  --> a.tex:2:5\n"
	                    "   |\n"
	                    " 2 | b = bais + 2\n"
	                    "   |     ^^^^ unknown\n"
	                    "   |\n"
	                    "   = help: did you mean `bias`?\n"
	                    "   = note: texo explain E0100\n");
	parsed_free(&p);
}

static void
notes_in_order(void **state)
{
	(void)state;
	Parsed p;
	parsed_make(&p, PARSE_TREE, "", 0);
	p.diags.files.n = 0;
	const char *a = "one\ntwo\nthree four\n", *b = "other\n";
	FileId fa = diags_add_file(&p.diags, "a.tex", a, strlen(a));
	FileId fb = diags_add_file(&p.diags, "b.tex", b, strlen(b));
	Diag *g = diag_add(&p.diags, DIAG_E0100, span_at(fa, 3, 7, 14, 4), "m");
	diag_note(&p.diags, g, span_at(fb, 1, 1, 0, 5), "elsewhere");
	diag_note(&p.diags, g, span_at(fa, 3, 1, 8, 5), "same line");
	diag_note(&p.diags, g, span_at(fa, 1, 1, 0, 3), "first");
	diag_note(&p.diags, g, (Span){0}, "no place");
	assert_string_equal(diags_render(&p.diags, &p.arena, false),
	                    "error[E0100]: m\n"
	                    "  --> a.tex:3:7\n"
	                    "   |\n"
	                    " 1 | one\n"
	                    "   | --- first\n"
	                    " 3 | three four\n"
	                    "   | ----- same line\n"
	                    "   |       ^^^^\n"
	                    "   |\n"
	                    "  ::: b.tex:1:1\n"
	                    "   |\n"
	                    " 1 | other\n"
	                    "   | ----- elsewhere\n"
	                    "   |\n"
	                    "   = note: no place\n"
	                    "   = note: texo explain E0100\n");
	parsed_free(&p);
}

static void
tabs_and_wide_bytes(void **state)
{
	(void)state;
	Parsed p;
	/* tab to column 4, e-acute takes one cell, the escape is drawn as four */
	const char *text = "\ta\t\xc3\xa9\x1b[31m$\n";
	assert_non_null(strstr(report(&p, text, span_at(1, 1, 10, 10, 1), "m", NULL, NULL),
	                       " 1 |     a   \xc3\xa9\\x1b[31m$\n"
	                       "   |                  ^\n"));
	parsed_free(&p);
	assert_non_null(strstr(report(&p, "\xff\xe2\x80\xaex$", span_at(1, 1, 4, 5, 1), "a\nb\x07", NULL, "c\nd"),
	                       "error[E0100]: a\\x0ab\\x07\n"
	                       "  --> a.tex:1:4\n"
	                       "   |\n"
	                       " 1 | \\xff\\u{202e}x$\n"
	                       "   |              ^\n"
	                       "   |\n"
	                       "   = help: c\n"
	                       "           d\n"));
	parsed_free(&p);
}

static void
long_lines_are_clipped(void **state)
{
	(void)state;
	Parsed p;
	enum { N = 1000000 };
	char *text = malloc(N + 1);
	memset(text, 'x', N);
	text[N] = 0;
	text[N / 2] = '$';
	const char *r = report(&p, text, span_at(1, 1, N / 2 + 1, N / 2, 1), "m", NULL, NULL);
	assert_true(strlen(r) < 600);
	const char *dollar = strchr(r, '$'), *caret = strchr(r, '^');
	assert_true(dollar && caret);
	const char *line = dollar, *under = caret;
	while (line[-1] != '\n')
		line--;
	while (under[-1] != '\n')
		under--;
	assert_int_equal(dollar - line, caret - under);
	assert_true(strncmp(line, " 1 | ...xxx", 11) == 0 && strstr(dollar, "xxx...\n"));
	parsed_free(&p);
	r = report(&p, text, (Span){1, 1, 1, 1, N, 0, N}, "m", NULL, NULL);
	assert_true(strlen(r) < 600);
	parsed_free(&p);
	free(text);
}

static void
odd_places(void **state)
{
	(void)state;
	Parsed p;
	/* at the end of a line, of the file, of an empty file, and over several lines */
	assert_non_null(strstr(report(&p, "ab\ncd", span_at(1, 1, 3, 2, 0), "m", NULL, NULL), " 1 | ab\n   |   ^\n"));
	parsed_free(&p);
	assert_non_null(strstr(report(&p, "ab\r\ncd", span_at(1, 2, 3, 6, 0), "m", NULL, NULL), " 2 | cd\n   |   ^\n"));
	parsed_free(&p);
	assert_non_null(strstr(report(&p, "", span_at(1, 1, 1, 0, 0), "m", NULL, NULL), " 1 | \n   | ^\n"));
	parsed_free(&p);
	assert_non_null(strstr(report(&p, "ab\ncd", (Span){1, 1, 2, 2, 2, 1, 4}, "m", NULL, NULL), " 1 | ab\n   |  ^\n"));
	parsed_free(&p);
	assert_non_null(strstr(report(&p, "ab", span_at(1, 9, 9, 999, 3), "m", NULL, NULL), "a.tex:9:9"));
	parsed_free(&p);
}

static void
json(void **state)
{
	(void)state;
	Parsed p;
	report(&p, "a\nb\n", span_at(1, 2, 1, 2, 1), "say \"b\"\n\xff", NULL, "h");
	assert_string_equal(diags_json(&p.diags, &p.arena),
	                    "{\"diagnostics\":[{\"code\":\"E0100\",\"severity\":\"error\",\"file\":\"a.tex\","
	                    "\"line\":2,\"column\":1,\"end_line\":2,\"end_column\":2,\"begin\":2,\"end\":3,"
	                    "\"message\":\"say \\\"b\\\"\\n\\\\xff\",\"label\":\"\",\"help\":\"h\",\"notes\":[]}]}\n");
	parsed_free(&p);
}

static void
twenty_errors(void **state)
{
	(void)state;
	Parsed p;
	parsed_make(&p, PARSE_TREE, "", 0);
	for (int k = 0; k < 19; k++)
		diag_add(&p.diags, DIAG_E0100, (Span){0}, "%d", k);
	assert_false(diags_full(&p.diags));
	for (int k = 0; k < 19; k++)
		assert_non_null(diag_add(&p.diags, DIAG_E0100, (Span){0}, "%d", k));
	assert_true(diags_full(&p.diags));
	assert_int_equal(p.diags.list.n, 20);
	assert_non_null(strstr(diags_render(&p.diags, &p.arena, false), "stopped after 20 errors"));
	parsed_free(&p);
}

static void
said_once(void **state)
{
	(void)state;
	Parsed p;
	parsed_make(&p, PARSE_TREE, "const A = 1 2", 13);
	Span at = p.diags.list.at[0].at;
	uint32_t n = p.diags.list.n;
	diag_add(&p.diags, DIAG_E0100, at, "%s", p.diags.list.at[0].message)->help = "dropped";
	assert_int_equal(p.diags.list.n, n);
	diag_add(&p.diags, DIAG_E0100, at, "another");
	diag_add(&p.diags, DIAG_E0101, at, "another");
	assert_int_equal(p.diags.list.n, n + 2);
	assert_int_equal(p.diags.nerror, n + 2);
	parsed_free(&p);
}

static void
codes(void **state)
{
	(void)state;
	assert_int_equal(code_named("E0100"), DIAG_E0100);
	assert_int_equal(code_named("e0100"), DIAG_E0100);
	assert_int_equal(code_named("E01000"), DIAG_NONE);
	assert_int_equal(code_named("E010"), DIAG_NONE);
	assert_int_equal(code_named(""), DIAG_NONE);
	for (unsigned c = 1; c < code_count; c++) {
		const CodeInfo *i = &code_info[c];
		assert_true(strlen(i->id) == 5 && *i->title && strlen(i->text) > strlen(i->title));
		assert_int_equal(i->id[0], i->severity == SEV_ERROR ? 'E' : i->severity == SEV_WARNING ? 'W' : 'R');
		assert_int_equal(code_named(i->id), c);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain),
		cmocka_unit_test(notes_in_order),
		cmocka_unit_test(tabs_and_wide_bytes),
		cmocka_unit_test(long_lines_are_clipped),
		cmocka_unit_test(odd_places),
		cmocka_unit_test(json),
		cmocka_unit_test(twenty_errors),
		cmocka_unit_test(said_once),
		cmocka_unit_test(codes),
	};
	return cmocka_run_group_tests_name("diag", tests, NULL, NULL);
}
