/* text.h: a growing text in an arena; what printers write to. */
#ifndef TEXO_IR_TEXT_H
#define TEXO_IR_TEXT_H

#include "ir/arena.h"

typedef struct {
	Arena *arena;
	char *at; /* NUL after n bytes; NULL while empty */
	size_t n, cap;
} Text;

void text_init(Text *t, Arena *a);
void text_add(Text *t, const char *s, size_t n);
void text_printf(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same as %s and %llu, in a tenth of the time. */
void text_word(Text *t, const char *s);
void text_number(Text *t, uint64_t v);
/* A double so that reading it back gives the same bits: shortest of %.17g that does, inf, -inf, nan. */
void text_double(Text *t, double v);
/* A JSON string with its quotes. */
void text_json(Text *t, const char *s, size_t n);
/* Never NULL. */
const char *text_get(const Text *t);

#endif
