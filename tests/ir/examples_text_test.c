/* examples_text_test.c: every graph of the given .tex files verifies, and its text reads back to a graph
 * that verifies and prints the same.
 *
 * usage: examples_text_test FILE... */
#include <stdio.h>
#include <string.h>

#include "frontend/frontend.h"

static char *
read_file(Arena *a, const char *path, size_t *n)
{
	char *text = arena_alloc(a, 1 << 20);
	FILE *f = fopen(path, "rb");
	*n = f ? fread(text, 1, (1 << 20) - 1, f) : 0;
	if (f)
		fclose(f);
	return text;
}

static bool
check_graph(Arena *a, const Graph *g, const char *path)
{
	const char *error = NULL, *name = name_text(g->names, g->name);
	Text once, twice;
	text_init(&once, a);
	text_init(&twice, a);
	bool ok = graph_verify(g, a, &error);
	if (ok) {
		graph_print(g, &once);
		Graph *back = graph_read(a, names_new(a), once.at, once.n, &error);
		ok = back && graph_verify(back, a, &error);
		if (ok)
			graph_print(back, &twice);
	}
	if (ok && strcmp(once.at, twice.at) != 0) {
		error = "prints differently once read";
		ok = false;
	}
	if (!ok)
		printf("%s: graph %s: %s\n", path, name, error);
	return ok;
}

/* The number of graphs in the file, negative when one is wrong. */
static int
check_file(const char *path)
{
	Unwind unwind;
	Arena a;
	arena_init(&a, &host_default()->memory, &unwind);
	if (setjmp(unwind.env)) {
		printf("%s: %s\n", path, unwind.text);
		return -1;
	}
	size_t n;
	const char *text = read_file(&a, path, &n);
	Diags diags;
	diags_init(&diags, &a);
	FileId file = diags_add_file(&diags, path, text, n);
	FrontendOptions options = {.fp = FP_RELAXED, .host = host_default()};
	Unit *u = frontend_compile(&a, names_new(&a), &diags, file, &options);
	bool ok = u && diags.nerror == 0;
	if (!ok)
		printf("%s", diags_render(&diags, &a, false));
	int count = ok ? (int)u->graph.n : 0;
	for (int k = 0; k < count; k++)
		ok &= check_graph(&a, u->graph.at[k], path);
	arena_free(&a);
	return ok ? count : -1;
}

int
main(int argc, char **argv)
{
	int graphs = 0, wrong = 0;
	for (int k = 1; k < argc; k++) {
		int n = check_file(argv[k]);
		graphs += n > 0 ? n : 0;
		wrong += n < 0;
	}
	printf("%d files, %d graphs, %d files wrong\n", argc - 1, graphs, wrong);
	return wrong > 0 || graphs == 0;
}
