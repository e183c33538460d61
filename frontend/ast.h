/* ast.h: what the parser makes of a file, and sema reads. One node kind for everything; ids into
 * one array, children in another. Names are interned. The tree keeps every span. */
#ifndef TEXO_FRONTEND_AST_H
#define TEXO_FRONTEND_AST_H

#include "ir/diag.h"
#include "ir/names.h"
#include "ir/op.h"
#include "ir/text.h"

typedef uint32_t AstId; /* 0: absent */

typedef enum {
	AST_NONE = 0,
#define AST(id, kids) AST_##id,
#include "frontend/ast.def"
} AstKind;

enum {
	AST_COUNT = 1
#define AST(id, kids) +1
#include "frontend/ast.def"
};

typedef struct {
	uint8_t kind;      /* AstKind */
	uint8_t op;        /* BINARY, UNARY, DEFINE: see ast.def */
	bool flag;         /* see ast.def */
	bool is_int;       /* NUM: written without point and exponent, and fits in i64 */
	uint32_t kid, nkid; /* Ast.kid[kid .. kid+nkid) */
	Name name;
	Span at;           /* the whole construct */
	Span name_at;      /* of `name` alone */
	Span text_at;      /* of num.text, where the kind has one */
	union {
		int64_t i;     /* NUM with is_int */
		double f;      /* NUM otherwise: correctly rounded */
		Name text;     /* STR */
	} num;
	uint64_t wide;     /* NUM that is an integer from 2^63 to 2^64 - 1, beside num.f; else 0 */
} AstNode;

typedef enum { /* AstNode.op of BINARY, UNARY and DEFINE */
	AB_NONE, AB_ADD, AB_SUB, AB_MUL, AB_FDIV, AB_IDIV, AB_IMOD, AB_POW, AB_EQ, AB_NE, AB_LT, AB_GT,
	AB_LE, AB_GE, AB_AND, AB_OR, AB_COALESCE, AB_NEG, AB_NOT, AB_SET, AB_ADDSET, AB_MAXSET, AB_MINSET
} AstOp;

typedef struct Ast {
	Arena *arena;
	Names *names;
	Diags *diags;
	VEC(AstNode) node; /* [0] unused */
	VEC(AstId) kid;
} Ast;

static inline const AstNode *
ast_get(const Ast *t, AstId id)
{
	return &t->node.at[id];
}

static inline AstId
ast_kid(const Ast *t, AstId id, unsigned k)
{
	return t->kid.at[t->node.at[id].kid + k];
}

/* The spelling of an operator, as in "+" or "+=". */
const char *ast_op_text(AstOp op);

/* Limits, named in the message when passed: 1 MiB of source, 4 KiB a token, 128 open brackets,
 * 1000 levels of tree. */
Ast *ast_new(Arena *a, Names *names, Diags *diags);
/* Parses a file that diags knows; returns its FILE node, with what could be recovered (statements
 * with errors are dropped). Errors are in diags. */
AstId parse_file(Ast *t, FileId file);
/* For --emit=tokens and --emit=ast. */
void lex_print(Ast *t, FileId file, Text *out);
void ast_print(const Ast *t, AstId root, Text *out);

#endif
