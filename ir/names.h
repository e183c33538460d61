/* names.h: interned strings. Equal texts have equal ids; 0 is no name. */
#ifndef TEXO_IR_NAMES_H
#define TEXO_IR_NAMES_H

#include "ir/arena.h"

typedef uint32_t Name;
typedef struct Names Names;

Names *names_new(Arena *a);
Name name_of(Names *t, const char *text, size_t n);
Name name_cstr(Names *t, const char *text);
/* NUL-terminated, lives as long as the table; "" for 0. */
const char *name_text(const Names *t, Name id);

#endif
