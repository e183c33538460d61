/* format_read.c: tokens into logical lines. What lies between two tokens is blanks, line ends, `;`
 * and comments, so comments are found there and the lexer need not keep them. */
#include <string.h>

#include "frontend/format.h"
#include "frontend/parser.h"

typedef struct {
	Format *l;
	uint32_t end;       /* of the last token, in bytes */
	uint32_t depth;     /* of brackets */
	bool in_block;
	bool open;          /* the last line takes more pieces */
	bool ended;         /* an NL came: what follows is a line of its own */
} Reader;

static uint32_t
code_points(const char *s, size_t n)
{
	uint32_t k = 0;
	for (size_t i = 0; i < n; i++)
		k += ((unsigned char)s[i] & 0xc0) != 0x80;
	return k;
}

/* What stands between the last token and byte `to`: comments, and whether a blank line comes last. */
static bool
read_gap(Reader *r, uint32_t to)
{
	Format *l = r->l;
	uint32_t ends = r->end == 0 ? 1 : 0; /* line ends since the last thing */
	bool any = r->end > 0;
	for (uint32_t i = r->end; i < to; i++) {
		if (l->text[i] == '\n')
			ends++;
		if (l->text[i] != '#')
			continue;
		const char *stop = memchr(l->text + i, '\n', to - i);
		uint32_t end = stop ? (uint32_t)(stop - l->text) : to, last = end;
		while (strchr(" \t\r", l->text[last - 1]))
			last--;
		Comment c = {i, last, code_points(l->text + i, last - i), ends > 0, any && ends > 1};
		vec_push(l->arena, &l->comment, c);
		any = true;
		ends = 0;
		i = end - 1;
	}
	return any && ends > 1;
}

static Line *
last_line(Reader *r)
{
	return r->l->line.n ? &r->l->line.at[r->l->line.n - 1] : NULL;
}

/* Starts a line; the comments from `from` on stand before it, but for one behind the line above. */
static Line *
start_line(Reader *r, uint32_t from, bool blank)
{
	Format *l = r->l;
	Line *above = last_line(r);
	if (above && from < l->comment.n && !l->comment.at[from].own_line)
		above->trail = ++from;
	bool inner = above && above->kind == LINE_HEAD && r->in_block;
	if (inner && from < l->comment.n)
		l->comment.at[from].blank_before = false;
	Line line = {.first = l->piece.n, .comment = from, .ncomment = l->comment.n - from,
	             .indent = r->in_block ? FORMAT_INDENT : 0,
	             .blank_before = blank && !(inner && from == l->comment.n)};
	vec_push(l->arena, &l->line, line);
	r->open = true;
	return last_line(r);
}

/* The keyword or name that a line begins with says what it is. */
static LineKind
kind_of(const Reader *r, int first)
{
	if (first == '}')
		return LINE_CLOSE;
	if (first == T_FN || first == T_CONST)
		return LINE_DEFINE;
	if (r->in_block)
		return first == T_RETURN ? LINE_PLAIN : LINE_DEFINE;
	return LINE_PLAIN;
}

static void
track(Reader *r, const Token *t)
{
	if (t->kind == '(' || t->kind == '[' || t->kind == T_QOPEN)
		r->depth++;
	else if (t->kind == ')' || t->kind == ']')
		r->depth--;
	else if (t->kind == '{')
		r->in_block = true;
}

/* Attributes have lines of their own, before each other and before the item. */
static bool
follows_attribute(const Reader *r, const Token *t)
{
	const Line *line = &r->l->line.at[r->l->line.n - 1];
	return r->depth == 0 && !r->in_block && r->l->piece.at[line->first].kind == '@'
	       && (t->kind == T_GRAPH || t->kind == '@');
}

static void
add_token(Reader *r, const Token *t)
{
	Format *l = r->l;
	uint32_t from = l->comment.n;
	bool blank = read_gap(r, t->at.begin);
	Piece p = {.kind = t->kind, .at = t->at, .first = t->first, .width = t->at.end_col - t->at.col};
	if (!r->open || r->ended || follows_attribute(r, t)) {
		if (t->kind == '}')
			blank = false;
		Line *line = start_line(r, from, blank);
		if (t->kind == '}')
			r->in_block = false, line->indent = 0;
		line->kind = kind_of(r, t->kind);
	} else {
		p.comment = from;
		p.ncomment = l->comment.n - from;
		last_line(r)->pinned |= p.ncomment > 0;
	}
	track(r, t);
	Line *line = last_line(r);
	if (t->kind == '=' && r->depth == 0)
		line->equals = l->piece.n;
	vec_push(l->arena, &l->piece, p);
	line->n++;
	r->ended = false;
	if (t->kind == '{') {
		line->kind = LINE_HEAD;
		r->open = false;
	}
	r->end = t->at.end;
}

void
format_lines(Format *l, Ast *t, FileId file)
{
	Reader r = {.l = l};
	Lex x;
	vec_grow(l->arena, &l->piece, 1);
	lex_open(&x, t, file);
	for (;;) {
		Token k = lex_token(&x);
		if (k.kind == T_END)
			break;
		if (k.kind == T_NL)
			r.ended = true;
		else
			add_token(&r, &k);
	}
	lex_close(&x);
	uint32_t from = l->comment.n;
	read_gap(&r, (uint32_t)l->n);
	start_line(&r, from, false);
}
