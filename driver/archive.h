/* archive.h: a static library of one object file. */
#ifndef TEXO_DRIVER_ARCHIVE_H
#define TEXO_DRIVER_ARCHIVE_H

#include "ir/text.h"

/* Writes a library with the n bytes of object, which defines these symbols, to out. */
void archive_write(const void *object, size_t n, const char *const *symbol, uint32_t nsymbol, Text *out);

#endif
