/* assembler.h: machine code of a GPU's text, by NVIDIA's assembler, a program of the CUDA toolkit. Without
 * it the text stays text, and the GPU's driver assembles it when a kernel is loaded. */
#ifndef TEXO_DRIVER_ASSEMBLER_H
#define TEXO_DRIVER_ASSEMBLER_H

#include "codegen/codegen.h"
#include "driver/session.h"

/* Where on PATH it is, or NULL. */
const char *assembler_find(Arena *a);
/* Puts it into o as --assembler wants it; without that option only if `usual`, and if it is there. False
 * with a problem where it is asked for and lacks. */
bool assembler_choose(Session *s, bool usual, CodegenOptions *o);
/* What stands for the version of what o has, which asking it would take longer than it is worth; "" where o has none. */
const char *assembler_version(Arena *a, const CodegenOptions *o);
/* Puts it into o, or says that it lacks. */
bool assembler_need(Session *s, CodegenOptions *o);

#endif
