/* legal.h: whether a kernel can be handed to LLVM for a target. */
#ifndef TEXO_CODEGEN_LEGAL_H
#define TEXO_CODEGEN_LEGAL_H

#include "codegen/target.h"
#include "ir/tir.h"

/* True, or false with a message that names the kernel and the operation. */
bool kernel_legal(const TirKernel *k, const Target *t, Arena *a, const char **why);

#endif
