/* frontend.c: the entry point: parse, load what is used, check every graph of the file. */
#include "frontend/frontend.h"

#include <string.h>

#include "frontend/sema.h"

/* grad and mesh are part of the language and checked; what they ask for is not built yet. */
static void
check_derived(Sema *s, AstId id, uint32_t module)
{
	AstNode n = *ast_get(s->ast, id);
	AstId args = ast_kid(s->ast, id, 1);
	const char *word = name_text(s->names, n.num.text);
	if (strcmp(word, "grad") != 0) {
		diag_add(s->diags, DIAG_E0234, n.at, "a graph can be derived by `grad`; `%s` is unknown", word);
		return;
	}
	const AstNode *first = ast_get(s->ast, args)->nkid ? ast_get(s->ast, ast_kid(s->ast, args, 0)) : NULL;
	Item *f = first && first->kind == AST_NAME ? item_find(s, module, first->name) : NULL;
	if (!f || ast_get(s->ast, f->ast)->kind != AST_GRAPH) {
		diag_add(s->diags, DIAG_E0610, first ? first->at : n.at, "grad takes the name of a graph first");
		return;
	}
	AstId params = ast_kid(s->ast, f->ast, 1);
	for (unsigned k = 1; k < ast_get(s->ast, args)->nkid; k++) {
		AstNode x = *ast_get(s->ast, ast_kid(s->ast, args, k));
		AstId param = 0;
		for (unsigned p = 0; p < ast_get(s->ast, params)->nkid; p++)
			if (x.kind == AST_NAME && ast_get(s->ast, ast_kid(s->ast, params, p))->name == x.name)
				param = ast_kid(s->ast, params, p);
		if (!param) {
			diag_add(s->diags, DIAG_E0235, x.at, "this is not an input of `%s`", name_text(s->names, first->name));
			return;
		}
		if (ast_get(s->ast, param)->flag || !dtype_is_float(ast_dtype(s, param))) {
			diag_add(s->diags, DIAG_E0235, x.at, "integer and inout inputs have no derivative");
			return;
		}
	}
	if (ast_get(s->ast, args)->nkid < 2)
		diag_add(s->diags, DIAG_E0235, n.at, "grad names the inputs to differentiate by: `grad(f, x)`");
	else
		diag_add(s->diags, DIAG_E0910, n.at, "gradients are not built yet");
}

/* Where the dim of a -D is named: no file has it, so it is a text of its own. */
static Span
static_place(Sema *s, const char *text, size_t n)
{
	const char *given = arena_text(s->arena, "-D %s", text);
	FileId file = diags_add_file(s->diags, "<command line>", given, strlen(given));
	uint32_t column = sizeof "-D ";
	return (Span){.file = file, .line = 1, .col = column, .end_line = 1, .end_col = column + (uint32_t)n, .begin = column - 1,
	              .end = column - 1 + (uint32_t)n};
}

/* A -D for a name that is a dim of no graph. */
static void
check_statics(Sema *s, const Unit *u)
{
	for (uint32_t i = 0; i < s->options->nstatics && s->diags->nerror == 0; i++) {
		const char *text = s->options->statics[i];
		size_t n = strcspn(text, "=");
		bool found = false;
		for (uint32_t d = 0; d < s->static_dim.n; d++)
			found |= strncmp(name_text(s->names, s->static_dim.at[d]), text, n) == 0 && !name_text(s->names, s->static_dim.at[d])[n];
		NearName near = near_begin(arena_copy(s->arena, text, n));
		for (uint32_t g = 0; g < u->graph.n; g++)
			for (uint32_t d = 1; d < u->graph.at[g]->dim.n; d++) {
				const char *name = name_text(s->names, u->graph.at[g]->dim.at[d].name);
				found |= strlen(name) == n && memcmp(name, text, n) == 0;
				near_offer_name(&near, name);
			}
		if (found)
			continue;
		Diag *d = diag_add(s->diags, DIAG_E0706, static_place(s, text, n), "no graph of the file has a dim `%.*s`", (int)n, text);
		if (near.best)
			d->help = arena_text(s->arena, "did you mean `%s`?", near.best);
	}
}

/* Whether syntax errors left names out that the graphs may use: what would be said of those graphs
 * could be untrue. A graph whose own block misses a statement is left out alone. */
static bool
has_gaps(const Sema *s)
{
	bool gaps = false;
	for (uint32_t m = 0; m < s->module.n; m++)
		gaps |= ast_get(s->ast, s->module.at[m].ast)->flag;
	return gaps;
}

Unit *
frontend_compile(Arena *a, Names *names, Diags *diags, FileId file, const FrontendOptions *o)
{
	Unit *u = ARENA_NEW(a, Unit);
	Sema *s = ARENA_NEW(a, Sema);
	*s = (Sema){.arena = a, .names = names, .diags = diags, .options = o, .ast = ast_new(a, names, diags)};
	uint32_t module = sema_load(s, file, diags->files.at[file - 1].path, false);
	AstId ast = s->module.at[module].ast;
	bool syntax_ok = diags->nerror == 0, gaps = has_gaps(s);
	for (unsigned k = 0; k < ast_get(s->ast, ast)->nkid; k++) {
		AstId id = ast_kid(s->ast, ast, k);
		AstKind kind = (AstKind)ast_get(s->ast, id)->kind;
		u->ngraph += kind == AST_GRAPH || kind == AST_DERIVED;
		if (kind == AST_DERIVED && !gaps)
			check_derived(s, id, module);
		if (kind != AST_GRAPH || gaps || ast_get(s->ast, ast_kid(s->ast, id, 4))->flag)
			continue;
		Graph *g = sema_graph(s, id, module);
		if (!g && diags->nerror == 0)
			bug(a, "sema: the graph %s was refused without a word", name_text(names, ast_get(s->ast, id)->name));
		if (g && syntax_ok)
			vec_push(a, &u->graph, g);
	}
	if (u->ngraph == 0 && diags->nerror == 0 && ast_get(s->ast, ast)->nkid == 0)
		diag_add(diags, DIAG_W0204, ast_get(s->ast, ast)->at, "the file has no graph");
	check_statics(s, u);
	return u;
}
