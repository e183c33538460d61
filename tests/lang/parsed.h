/* parsed.h: one text through the parser, for the unit tests of the frontend. */
#ifndef TEXO_TESTS_LANG_PARSED_H
#define TEXO_TESTS_LANG_PARSED_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "frontend/ast.h"

typedef struct {
	Arena arena;
	Unwind unwind;
	Diags diags;
	Names *names;
	Ast *ast;
	FileId file;
	AstId root;
	Text out; /* tokens, when asked for */
} Parsed;

typedef enum { PARSE_TREE, PARSE_TOKENS } ParseWhat;

/* Fills *p; an unwinding fails the test. parsed_free ends it. */
void parsed_make(Parsed *p, ParseWhat what, const char *text, size_t n);
void parsed_free(Parsed *p);
/* The errors and warnings as "E0102@2:18 E0100@3:1". */
const char *parsed_diags(Parsed *p);

#endif
