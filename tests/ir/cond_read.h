/* cond_read.h: conditions as text for tests: `i*4 + r < N && N mod 4 == 0`. Names that start with a
 * capital are dims, others indices (IVAR); t[…] and u[…] read i64 tensors of rank 1. */
#ifndef TEXO_TESTS_IR_COND_READ_H
#define TEXO_TESTS_IR_COND_READ_H

#include "ir/prove.h"

/* The expression; 0 with a message on stderr when the text is wrong. */
ExprId cond_read(Graph *g, const char *text);
/* Pushes facts, separated by ';': conditions, or `i in lo..hi`. */
bool facts_read(Graph *g, Facts *f, const char *text);

#endif
