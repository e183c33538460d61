/* parsed.c: see parsed.h. */
#include "parsed.h"

void
parsed_make(Parsed *p, ParseWhat what, const char *text, size_t n)
{
	*p = (Parsed){0};
	arena_init(&p->arena, &host_default()->memory, &p->unwind);
	if (setjmp(p->unwind.env))
		fail_msg("unwound: %s", p->unwind.text);
	p->names = names_new(&p->arena);
	diags_init(&p->diags, &p->arena);
	char *copy = arena_copy(&p->arena, text, n);
	p->file = diags_add_file(&p->diags, "t.tex", copy, n);
	p->ast = ast_new(&p->arena, p->names, &p->diags);
	text_init(&p->out, &p->arena);
	if (what == PARSE_TREE)
		p->root = parse_file(p->ast, p->file);
	else
		lex_print(p->ast, p->file, &p->out);
}

void
parsed_free(Parsed *p)
{
	arena_free(&p->arena);
}

const char *
parsed_diags(Parsed *p)
{
	Text t;
	text_init(&t, &p->arena);
	for (uint32_t k = 0; k < p->diags.list.n; k++) {
		const Diag *g = &p->diags.list.at[k];
		text_printf(&t, "%s%s@%u:%u", k ? " " : "", code_info[g->code].id, g->at.line, g->at.col);
	}
	return text_get(&t);
}
