/* format.h: a file as the formatter sees it: tokens in logical lines, with the comments that lie
 * between them. A logical line is what stands on one line where it fits: an attribute, the head of an
 * item up to its `{`, a statement, a `}`.
 *
 * format_read.c makes the lines, format_space.c says where blanks go, format_break.c breaks what is
 * too long, format.c aligns and puts everything together. */
#ifndef TEXO_FRONTEND_FORMAT_H
#define TEXO_FRONTEND_FORMAT_H

#include "frontend/lex.h"

enum { FORMAT_WIDTH = 100, FORMAT_INDENT = 2 };

typedef struct {
	uint32_t begin, end; /* bytes of the text, without blanks at the end */
	uint32_t width;      /* code points */
	bool own_line;       /* nothing but blanks stands before it */
	bool blank_before;   /* an empty line stands before it */
} Comment;

typedef struct {
	int kind;
	Span at;
	uint32_t width, end;       /* code points; of the logical line up to here, laid out flat */
	uint32_t match;            /* of a bracket: the other one */
	uint32_t comment, ncomment; /* before it, inside a logical line */
	uint32_t group;            /* of an operator written tight unless the group is mixed; 0 none */
	bool space;                /* a blank before it, unless it begins a line */
	bool first;                /* first on its line in the source */
	bool unary, cond;          /* an operator before its operand; a `:` of `?` */
} Piece;

typedef enum { LINE_PLAIN, LINE_HEAD, LINE_DEFINE, LINE_CLOSE } LineKind;

typedef struct {
	LineKind kind;
	uint32_t first, n;         /* pieces */
	uint32_t indent;           /* in columns */
	uint32_t comment, ncomment; /* lines of their own before it */
	uint32_t trail;            /* 1 + the comment behind it; 0 none */
	bool blank_before;
	bool pinned;               /* a comment stands inside: the line breaks stay where they are */
	uint32_t equals;           /* the `=` that may be aligned with those of the lines around; 0 none */
	uint32_t pad;              /* blanks before it for that */
	uint32_t gap;              /* blanks before the comment behind it */
} Line;

typedef struct {
	Arena *arena;
	const char *text;
	size_t n;
	VEC(Piece) piece;  /* [0] unused */
	VEC(Comment) comment;
	VEC(Line) line;    /* the last one has no pieces: comments at the end of the file */
	VEC(bool) mixed;   /* by Piece.group */
	Text out;
	uint32_t column;   /* of out */
} Format;

/* Tokens and comments into lines; the file parses. */
void format_lines(Format *l, Ast *t, FileId file);
/* Sets space, unary, cond, match, width and end of every piece. */
void format_spaces(Format *l);

/* What pieces i .. j-1 take on one line. */
uint32_t format_flat(const Format *l, uint32_t i, uint32_t j);
/* Writes them so. */
void format_put(Format *l, uint32_t i, uint32_t j);
void format_blanks(Format *l, uint32_t n);
void format_newline(Format *l, uint32_t indent);
/* A logical line without comments inside and without what is aligned, in as many lines as it takes. */
void format_broken(Format *l, const Line *line);

/* Whether two trees say the same, wherever their parts stand. */
bool ast_equal(const Ast *a, AstId x, const Ast *b, AstId y);

#endif
