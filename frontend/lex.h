/* lex.h: between flex and bison. lexer.l makes raw tokens; lex.c turns line ends into NL tokens by
 * LANGUAGE.md's newline rule, keeps the open brackets, and skips what a syntax error leaves behind.
 *
 * Only lex.c, lexer.l, parser.y, parse.c and syntax_error.c include this file. */
#ifndef TEXO_FRONTEND_LEX_H
#define TEXO_FRONTEND_LEX_H

#include "frontend/ast.h"

enum {
	MAX_SOURCE = 1 << 20, /* bytes */
	MAX_TOKEN = 4096,     /* bytes */
	MAX_NESTING = 128,    /* open brackets */
	MAX_DEPTH = 1000      /* levels of the tree */
};

typedef struct {
	union {
		int64_t i;
		double f;
	} value;
	bool is_int;
	uint64_t wide; /* where value is an f: the integer that was written, from 2^63 to 2^64 - 1; else 0 */
} Number;

typedef struct ListCell {
	AstId id;
	struct ListCell *next;
} ListCell;

typedef struct {
	ListCell *first, *last;
	uint32_t n;
	bool gap; /* an entry was in error and is missing */
} List;

/* The statement part `where c else v`. */
typedef struct {
	AstId where, other;
} Dom;

typedef union {
	Name name;     /* ID, STR */
	Number number; /* NUM */
	AstId node;
	List *list;
	Dom dom;
} ParseValue;

typedef struct {
	int kind; /* bison's number, T_END at the end */
	ParseValue value;
	Span at;
	bool first; /* first on its line */
} Token;

typedef struct {
	char open; /* ( [ or { */
	Span at;
} Bracket;

typedef struct Lex {
	Arena *arena;
	Names *names;
	Diags *diags;
	const char *text;
	size_t n;
	FileId file;
	void *scanner; /* flex's */
	/* where flex stands */
	uint32_t line, col, at;
	bool line_end; /* seen since the last token */
	/* the newline rule */
	Token ahead;
	bool has_ahead;
	Token prev;          /* the last token handed out, NLs included */
	VEC(Bracket) open;
	uint32_t braces;     /* how many of them are { */
	Bracket inner;       /* the innermost bracket before the last token; open = 0: none */
	uint32_t inner_braces;
	Token pending[4];    /* handed out before anything else, last first */
	uint32_t npending;
	/* recovery */
	bool in_fn, has_return; /* of the block being read */
	bool block_broken;      /* an error was reported in it */
	bool skipping;          /* drop tokens to the end of the statement */
	uint32_t skip_braces;   /* the brace depth it ends at */
	bool fn_gap;            /* a function was given a return it does not have */
	bool stopped;           /* a limit was passed: only the end of the file follows */
} Lex;

void lex_open(Lex *x, Ast *t, FileId file);
void lex_close(Lex *x);
/* The next token, by the newline rule. */
Token lex_token(Lex *x);
/* The parser met an error at the last token. */
void lex_recover(Lex *x);
/* Reports a passed limit and lets the parser see nothing more. */
void lex_stop(Lex *x, DiagCode code, Span at, const char *message, const char *help);
/* For the actions in lexer.l. */
bool lex_fits(Lex *x, Span at);
int lex_word(Lex *x, ParseValue *v, const char *s, size_t n);
int lex_number(Lex *x, ParseValue *v, Span at, const char *s, size_t n);
int lex_string(Lex *x, ParseValue *v, Span at, const char *s, size_t n);
/* Reports a character that the language has no use for; the token that was probably meant, or the
 * one that makes the parser recover. */
int lex_stray(Lex *x, Span at, const char *s, size_t n);
Span lex_advance(Lex *x, const char *s, size_t n);
/* Gives back the last character of the token at *at. */
void lex_unread(Lex *x, Span *at);
/* Whether `max=` here could follow what it updates; else `max` is a name. */
bool lex_after_target(const Lex *x);
/* False with a report when the file is not a text this language could be written in. */
bool source_check(Diags *diags, FileId file);

typedef enum { NUMBER_OK, NUMBER_TOO_LARGE, NUMBER_WIDE_HEX } NumberResult;
/* Digits as lexer.l matches them; correctly rounded, whatever the locale and rounding mode. */
NumberResult number_read(const char *s, size_t n, Number *out);

/* --- bison's side --- */
typedef struct Parse {
	Lex lex;
	Ast *ast;
	Arena *arena;
	AstId root;
	bool fn_gap;          /* a function's block misses a statement */
	AstId first;          /* the first node of this file */
	VEC(uint16_t) depth;  /* of node first + k */
} Parse;

int parse_run(Parse *p);
/* The spelling of a token kind: "name", "'+'", "graph". */
const char *token_text(int kind);
/* Reports a token the grammar does not allow; expected holds the spellings that it does. */
void syntax_error(Parse *p, const char *const *expected, int n);

/* --- building the tree --- */
AstId ast_make(Parse *p, AstKind kind, Span at, const AstId *kid, unsigned nkid);
AstId ast_make_list(Parse *p, AstKind kind, Span at, const List *kids);
#define AST_NEW(p, kind, at, ...)               \
	ast_make((p), (kind), (at), (const AstId[]){__VA_ARGS__}, \
	         sizeof((const AstId[]){__VA_ARGS__}) / sizeof(AstId))
AstNode *ast_at(Parse *p, AstId id);
AstId ast_named(Parse *p, AstId id, Name name, Span at);
AstId ast_worded(Parse *p, AstId id, Name text, Span at);
List *list_new(Parse *p);
List *list_add(Parse *p, List *l, AstId id);
List *list_gap(List *l);

#endif
