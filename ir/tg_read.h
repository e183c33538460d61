/* tg_read.h: the scanner and expression part of the graph reader; graph_read (tg.h) is the way in.
 *
 * Blanks, line ends and commas separate; `#` begins a comment. Nothing about the text is trusted. The
 * first mistake is kept with its line; after it every function returns at once. */
#ifndef TEXO_IR_TG_READ_H
#define TEXO_IR_TG_READ_H

#include "ir/tg.h"

typedef struct {
	Graph *g;
	const char *at, *end;
	uint32_t line;
	const char *error; /* NULL: none yet */
	VEC(ExprId) let;
} Reader;

void reader_fail(Reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The next symbol is not at the end of the text. */
bool reader_more(Reader *r);
/* Takes the word if it comes next, whole. */
bool reader_accept(Reader *r, const char *word);
void reader_expect(Reader *r, const char *word);
/* Letters, digits, _ . + -; n == 0 when something else comes. */
const char *reader_word(Reader *r, size_t *n);
int64_t reader_int(Reader *r, int64_t lo, int64_t hi);
/* %7 and the like: the sign, then a number of at most `most`. */
uint32_t reader_id(Reader *r, char sign, uint32_t most);
Name reader_name(Reader *r);
const char *reader_quoted(Reader *r, size_t *n);
DType reader_dtype(Reader *r);
/* 0 after a mistake. */
ExprId reader_expr(Reader *r);

#endif
