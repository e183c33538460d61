/* parse.c: one file from text to tree. Nodes are made bottom up, children first, so a node's depth
 * is known when it is made and the limit is met before anything recursive sees the tree. */
#include <string.h>

#include "frontend/lex.h"

static uint16_t
depth_of(const Parse *p, AstId id)
{
	return id >= p->first ? p->depth.at[id - p->first] : 0;
}

AstId
ast_make(Parse *p, AstKind kind, Span at, const AstId *kid, unsigned nkid)
{
	Ast *t = p->ast;
	uint16_t depth = 0;
	uint32_t from = t->kid.n;
	AstId copy[8];
	if (nkid <= 8) { /* kid may point into the array that grows */
		for (unsigned k = 0; k < nkid; k++)
			copy[k] = kid[k];
		kid = copy;
	} else {
		kid = arena_copy(p->arena, kid, nkid * sizeof *kid);
	}
	vec_grow(p->arena, &t->kid, nkid);
	for (unsigned k = 0; k < nkid; k++) {
		t->kid.at[from + k] = kid[k];
		if (depth_of(p, kid[k]) > depth)
			depth = depth_of(p, kid[k]);
	}
	if (depth == MAX_DEPTH) {
		lex_stop(&p->lex, DIAG_E0904, at, "the expression is more than 1000 levels deep",
		         "give its inner parts names of their own; a long sum is `sum[i](...)`");
		depth--;
	}
	AstNode n = {.kind = (uint8_t)kind, .kid = from, .nkid = nkid, .at = at};
	vec_push(p->arena, &t->node, n);
	vec_push(p->arena, &p->depth, (uint16_t)(depth + 1));
	return t->node.n - 1;
}

AstId
ast_make_list(Parse *p, AstKind kind, Span at, const List *kids)
{
	AstId *kid = ARENA_ARRAY(p->arena, AstId, kids->n);
	uint32_t n = 0;
	for (const ListCell *c = kids->first; c; c = c->next)
		kid[n++] = c->id;
	AstId id = ast_make(p, kind, at, kid, n);
	ast_at(p, id)->flag = kids->gap;
	return id;
}

AstNode *
ast_at(Parse *p, AstId id)
{
	return &p->ast->node.at[id];
}

AstId
ast_named(Parse *p, AstId id, Name name, Span at)
{
	ast_at(p, id)->name = name;
	ast_at(p, id)->name_at = at;
	return id;
}

AstId
ast_worded(Parse *p, AstId id, Name text, Span at)
{
	ast_at(p, id)->num.text = text;
	ast_at(p, id)->text_at = at;
	return id;
}

List *
list_new(Parse *p)
{
	return ARENA_NEW(p->arena, List);
}

List *
list_add(Parse *p, List *l, AstId id)
{
	ListCell *c = ARENA_NEW(p->arena, ListCell);
	c->id = id;
	if (l->last)
		l->last->next = c;
	else
		l->first = c;
	l->last = c;
	l->n++;
	return l;
}

/* Room for the tree of a usual text of n bytes, so that the arrays seldom move. */
static void
reserve(Parse *p, size_t n)
{
	Ast *t = p->ast;
	uint32_t guess = (uint32_t)(n / 2) + 16;
	vec_grow(p->arena, &t->node, guess);
	vec_grow(p->arena, &t->kid, guess);
	vec_grow(p->arena, &p->depth, guess);
	t->node.n -= guess;
	t->kid.n -= guess;
	p->depth.n -= guess;
}

List *
list_gap(List *l)
{
	l->gap = true;
	return l;
}

AstId
parse_file(Ast *t, FileId file)
{
	Parse p = {.ast = t, .arena = t->arena, .first = t->node.n};
	if (source_check(t->diags, file)) {
		reserve(&p, t->diags->files.at[file - 1].n);
		lex_open(&p.lex, t, file);
		parse_run(&p);
		lex_close(&p.lex);
	}
	if (!p.root) { /* stopped before the end */
		Span none = {file, 1, 1, 1, 1, 0, 0};
		p.root = ast_make(&p, AST_FILE, none, NULL, 0);
		p.fn_gap = true;
	}
	ast_at(&p, p.root)->flag |= p.fn_gap || p.lex.fn_gap;
	return p.root;
}
