/* diag_entries.h: the diagnostics of several files as one JSON array. */
#ifndef TEXO_DRIVER_DIAG_ENTRIES_H
#define TEXO_DRIVER_DIAG_ENTRIES_H

#include "ir/text.h"

/* Adds the entries inside {"diagnostics":[...]}. */
void diag_entries_add(Text *json, const char *object);
/* Adds an entry for what has no place in a text: an unreadable file, a limit. code may be "", help NULL. */
void diag_entries_plain(Text *json, const char *code, const char *path, const char *message, const char *help);

#endif
