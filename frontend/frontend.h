/* frontend.h: from text to tensor graphs. */
#ifndef TEXO_FRONTEND_FRONTEND_H
#define TEXO_FRONTEND_FRONTEND_H

#include "frontend/ast.h"
#include "ir/tg.h"

typedef struct {
	FpMode fp;                  /* unless a graph says @fp(...) */
	const char *const *statics; /* "N=4096": -D */
	uint32_t nstatics;
	const Host *host;           /* to read used files; NULL: none can be used but "std" */
} FrontendOptions;

/* A parameter of a graph as the command needs it to make inputs. */
typedef struct {
	VEC(Graph *) graph; /* every graph of the main file that checked without error, in source order */
	uint32_t ngraph;    /* graphs written, in error or not */
} Unit;

/* Parses and checks the file (already added to diags) and what it uses. Errors are in diags. */
Unit *frontend_compile(Arena *a, Names *names, Diags *diags, FileId file, const FrontendOptions *o);

/* The file's text in the language's one layout, n bytes: comments and meaning stay. NULL where it
 * does not parse; the errors are in diags. */
const char *frontend_layout(Arena *a, Names *names, Diags *diags, FileId file, size_t *n);

/* The text of the standard library. */
extern const char std_text[];
extern const unsigned std_text_size;

#endif
