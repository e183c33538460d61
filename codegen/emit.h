/* emit.h: one LLVM context with one module, from kernels to an object file and texts. */
#ifndef TEXO_CODEGEN_EMIT_H
#define TEXO_CODEGEN_EMIT_H

#include <llvm-c/Core.h>

#include "codegen/target.h"

typedef struct {
	Arena *arena;
	LLVMContextRef ctx;
	LLVMModuleRef module;
	LLVMBuilderRef builder;
	LLVMTargetMachineRef machine;
	LLVMMemoryBufferRef buffer; /* these two while they are copied: the arena may unwind then */
	char *text;
	char error[512]; /* the first thing LLVM complained about, or "" */
} Emit;

/* Owns LLVM objects: emit_close even when it returns false. */
bool emit_open(Emit *e, Arena *a, const Target *t, int level);
void emit_close(Emit *e);
/* Verifies and optimises the module. */
bool emit_optimise(Emit *e);
/* The module's text; its assembly; its object file. The module stays as it is. */
const char *emit_llvm(Emit *e);
bool emit_assembly(Emit *e, const char **text);
bool emit_object(Emit *e, const void **bytes, size_t *n);

#endif
