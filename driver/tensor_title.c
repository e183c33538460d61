/* tensor_title.c: see tensor_title.h. What has no name was written inside of a definition, or made by a pass for one: the
 * first one with a name that reads it, or reads what reads it. */
#include "driver/tensor_title.h"

#include <string.h>

/* The reader with a name that is fewest reads away, of several the first; 0: nothing named reads it. */
static TensorId
named_reader(const UseTable *uses, TensorId t)
{
	const Graph *g = uses->graph;
	VEC(TensorId) near = {0};
	bool *seen = ARENA_ARRAY(uses->arena, bool, g->tensor.n);
	vec_push(uses->arena, &near, t);
	seen[t] = true;
	for (uint32_t k = 0; k < near.n; k++)
		for (uint32_t i = uses->start[near.at[k]]; i < uses->start[near.at[k] + 1]; i++) {
			TensorId reader = uses->user[i];
			if (g->tensor.at[reader].name)
				return reader;
			if (!seen[reader])
				vec_push(uses->arena, &near, reader);
			seen[reader] = true;
		}
	return 0;
}

uint32_t
tensor_line(const UseTable *uses, FileId file, TensorId t)
{
	const Graph *g = uses->graph;
	if (g->tensor.at[t].at.file == file)
		return g->tensor.at[t].at.line;
	TensorId reader = named_reader(uses, t);
	return reader && g->tensor.at[reader].at.file == file ? g->tensor.at[reader].at.line : g->at.line;
}

static const char *
axes_text(const Graph *g, const Node *n, Arena *a)
{
	const char *s = "";
	for (unsigned r = n->npar; r < (unsigned)n->npar + n->nred; r++)
		if (n->axis[r].name)
			s = arena_text(a, "%s%s%s", s, *s ? ", " : "", name_text(g->names, n->axis[r].name));
	return *s ? arena_text(a, "[%s]", s) : s;
}

typedef struct {
	const char *what, *whose; /* "sum[k]", " of g" */
	uint32_t line;
} Title;

static Title
title_of(const UseTable *uses, FileId file, TensorId t, Arena *a)
{
	const Graph *g = uses->graph;
	const Node *n = tensor_node(g, t);
	const Expr *body = expr_get(g, n->body);
	Name copied = n->monoid == MON_NONE && body->op == OP_READ ? g->tensor.at[body->ref].name : 0;
	TensorId reader = named_reader(uses, t);
	Title title = {.what = "part", .whose = "", .line = tensor_line(uses, file, copied && reader ? reader : t)};
	if (n->monoid != MON_NONE)
		title.what = arena_text(a, "%s%s%s", monoid_info[n->monoid].text, axes_text(g, n, a), n->parts ? " in parts" : "");
	else if (copied)
		title.what = arena_text(a, "copy of %s", name_text(g->names, copied));
	if (reader)
		title.whose = arena_text(a, " %s %s", copied ? "for" : "of", name_text(g->names, g->tensor.at[reader].name));
	return title;
}

static bool
same_title(const Title *x, const Title *y)
{
	return x->what && strcmp(x->what, y->what) == 0 && strcmp(x->whose, y->whose) == 0 && x->line == y->line;
}

const char **
tensor_titles(const UseTable *uses, FileId file, Arena *a)
{
	const Graph *g = uses->graph;
	const char **text = ARENA_ARRAY(a, const char *, g->tensor.n);
	Title *title = ARENA_ARRAY(a, Title, g->tensor.n);
	for (TensorId t = 1; t < g->tensor.n; t++) {
		text[t] = name_text(g->names, g->tensor.at[t].name);
		if (g->tensor.at[t].name || !tensor_node(g, t))
			continue;
		title[t] = title_of(uses, file, t, a);
		unsigned same = 1;
		for (TensorId before = 1; before < t; before++)
			same += same_title(&title[before], &title[t]);
		const char *which = same > 1 ? arena_text(a, " %u", same) : "";
		text[t] = arena_text(a, "%s%s%s (line %u)", title[t].what, which, title[t].whose, title[t].line);
	}
	return text;
}
