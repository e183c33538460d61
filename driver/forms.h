/* forms.h: --emit, the forms of a program as text. */
#ifndef TEXO_DRIVER_FORMS_H
#define TEXO_DRIVER_FORMS_H

#include "driver/compile.h"

/* Writes the forms that --emit lists, in the order from source to machine, to -o (standard output
 * without it; with --json there as {"forms":[{"form","text"}]}). The unit need not be compiled yet: tokens and ast are
 * written for a program in error too, and its diagnostics are reported. */
ExitCode emit_forms(Session *s, SourceUnit *u);
/* Adds {"form":"tg","text":"..."} to what is in the brackets of such a list. */
void form_json(Text *list, const char *form, const char *text, size_t n);

#endif
