/* frontend_fuzz.c: lexer, parser, layout and sema under libFuzzer. A finding is anything the sanitizers see,
 * a bug() of ours, memory without bound, a diagnostic that points outside the text, a report that
 * can't be drawn, a graph that breaks a rule of ir/tg.h or whose text does not read back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/frontend.h"

enum { MEMORY = 64 << 20, REPORT = 400000 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static _Noreturn void
finding(const char *what, const char *detail)
{
	fprintf(stderr, "finding: %s: %s\n", what, detail);
	abort();
}

static void
check_span(const Diags *d, Span at)
{
	if (!at.file)
		return;
	if (at.file > d->files.n)
		finding("span", "in a file that is not there");
	const SourceFile *f = &d->files.at[at.file - 1];
	if (at.begin > at.end || at.end > f->n || at.line < 1 || at.col < 1 || at.end_line < at.line)
		finding("span", "outside its file");
}

static void
check_diags(const Diags *d, Arena *a, bool drawn)
{
	if (d->nerror > d->max_errors)
		finding("diagnostics", "more than the most");
	for (uint32_t k = 0; k < d->list.n; k++) {
		const Diag *g = &d->list.at[k];
		check_span(d, g->at);
		if (!*g->message)
			finding("message", code_info[g->code].id);
		for (uint32_t j = 0; j < g->notes.n; j++)
			check_span(d, g->notes.at[j].at);
	}
	if (drawn && strlen(diags_render(d, a, false)) > REPORT)
		finding("report", "too long");
	if (drawn && strlen(diags_json(d, a)) > REPORT)
		finding("JSON", "too long");
}

/* Spans of children lie in their file; what is printed twice is the same. */
static void
check_tree(const Diags *d, const Ast *t, AstId root, Arena *a)
{
	Text out;
	text_init(&out, a);
	for (uint32_t id = 1; id < t->node.n; id++) {
		check_span(d, t->node.at[id].at);
		check_span(d, t->node.at[id].name_at);
	}
	ast_print(t, root, &out);
}

/* What checks is a graph by every rule, and its text reads back as itself. */
static void
check_graph(const Graph *g, Names *names, Arena *a)
{
	const char *error = "";
	if (!graph_verify(g, a, &error))
		finding("graph_verify", error);
	Text once, twice;
	text_init(&once, a);
	text_init(&twice, a);
	graph_print(g, &once);
	Graph *back = graph_read(a, names, text_get(&once), once.n, &error);
	if (!back)
		finding("graph_read", error);
	graph_print(back, &twice);
	if (strcmp(text_get(&once), text_get(&twice)) != 0)
		finding("graph_read", "prints otherwise");
}

/* What parses is laid out with the same meaning (a bug() else), and then stays as it is. */
static void
check_layout(Diags *d, Names *names, FileId file, Arena *a)
{
	size_t n, again;
	const char *text = frontend_layout(a, names, d, file, &n);
	if (!text)
		return;
	const char *twice = frontend_layout(a, names, d, diags_add_file(d, "fuzz.tex", text, n), &again);
	if (twice && (again != n || memcmp(text, twice, n) != 0))
		finding("layout", "not stable");
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	Unwind unwind = {0};
	Arena arena;
	char *text = malloc(n + 1); /* of its own, so that a read past its end is seen */
	memcpy(text, data, n);
	text[n] = 0;
	arena_init(&arena, &host_default()->memory, &unwind);
	arena.limit = MEMORY;
	if (setjmp(unwind.env) == 0) {
		Diags d;
		diags_init(&d, &arena);
		Names *names = names_new(&arena);
		FileId file = diags_add_file(&d, "fuzz.tex", text, n);
		if (n % 8 == 0) { /* the tree alone, and the tokens */
			Ast *t = ast_new(&arena, names, &d);
			Text out;
			text_init(&out, &arena);
			check_tree(&d, t, parse_file(t, file), &arena);
			lex_print(t, file, &out);
		} else if (n % 8 == 4) {
			check_layout(&d, names, file, &arena);
		} else {
			FrontendOptions o = {.fp = FP_RELAXED};
			Unit *u = frontend_compile(&arena, names, &d, file, &o);
			for (uint32_t k = 0; k < u->graph.n && d.nerror == 0; k++)
				check_graph(u->graph.at[k], names, &arena);
		}
		check_diags(&d, &arena, n % 4 == 1); /* drawing takes as long as all before it */
	} else if (unwind.why == UNWIND_BUG) {
		finding("bug", unwind.text);
	}
	arena_free(&arena);
	free(text);
	return 0;
}
