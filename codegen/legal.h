/* legal.h: whether a kernel can be handed to LLVM for a target. */
#ifndef TEXO_CODEGEN_LEGAL_H
#define TEXO_CODEGEN_LEGAL_H

#include "codegen/codegen.h"
#include "codegen/target.h"

/* True, or false with a message that names the kernel and the operation. */
bool kernel_legal(const TirKernel *k, const Target *t, Arena *a, const char **why);
/* The same of every kernel of n programs, and that each is well formed; of one whose passes are to come, of its arguments. */
CodegenStatus programs_legal(const Program *const *program, uint32_t n, const Target *t, Arena *a, const char **why);

#endif
