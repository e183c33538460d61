/* text.h: a growing text in an arena; what printers write to. */
#ifndef TEXO_IR_TEXT_H
#define TEXO_IR_TEXT_H

#include <string.h>

#include "ir/arena.h"

typedef struct {
	Arena *arena;
	char *at; /* NUL after n bytes; NULL while empty */
	size_t n, cap;
} Text;

void text_init(Text *t, Arena *a);
/* Makes room for n bytes more and their NUL. */
void text_room(Text *t, size_t n);
void text_printf(Text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* The same as %llu, in a tenth of the time. */
void text_number(Text *t, uint64_t v);
/* A double so that reading it back gives the same bits: shortest of %.17g that does, inf, -inf, nan. */
void text_double(Text *t, double v);
/* A JSON string with its quotes. */
void text_json(Text *t, const char *s, size_t n);
/* Never NULL. */
const char *text_get(const Text *t);

/* Here, as printers call these two for each word, of lengths that are mostly constants. */
static inline void
text_add(Text *t, const char *s, size_t n)
{
	if (n == 0)
		return;
	if (t->cap - t->n <= n)
		text_room(t, n);
	memcpy(t->at + t->n, s, n);
	t->n += n;
	t->at[t->n] = 0;
}

static inline void
text_word(Text *t, const char *s)
{
	text_add(t, s, strlen(s));
}

#endif
