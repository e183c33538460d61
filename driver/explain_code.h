/* explain_code.h: `texo explain E0207`. */
#ifndef TEXO_DRIVER_EXPLAIN_CODE_H
#define TEXO_DRIVER_EXPLAIN_CODE_H

#include "driver/session.h"

/* Whether the operand is spelled like a code: a letter and digits. */
bool looks_like_code(const char *word);
/* Prints the code's long text; unknown codes are a usage error that shows near ones. */
ExitCode explain_code(Session *s, const char *word);

#endif
